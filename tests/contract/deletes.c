/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Contract tests of deleting: rules 26 to 30 of src/store/CONTRACT.md. */
#include "contract/contract.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static int delete_as(struct world *w, const struct hf_resource *r, const char *ns, const char *name,
		     enum hf_propagation propagation, struct outcome *o)
{
	return ask(w,
		   &(struct hf_request){.verb = HF_VERB_DELETE,
					.resource = r,
					.ns = ns,
					.name = name,
					.grace_seconds = HF_GRACE_DEFAULT,
					.propagation = propagation},
		   o);
}

static int delete_pod(struct world *w, const char *ns, const char *name, int64_t grace,
		      struct outcome *o)
{
	return ask(w,
		   &(struct hf_request){.verb = HF_VERB_DELETE,
					.resource = &hf_pods,
					.ns = ns,
					.name = name,
					.grace_seconds = grace},
		   o);
}

static void a_deleted_object_is_gone_and_its_name_free(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "c", &o), 0);
	assert_non_null(o.object);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), HF_E_NOT_FOUND);
	assert_int_equal(erase(w, &hf_configmaps, ns, "c", &o), HF_E_NOT_FOUND);
	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
}

static void preconditions_are_checked(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME made = {0};
	AUTO_OUTCOME o = {0};
	struct hf_request request = {.verb = HF_VERB_DELETE,
				     .resource = &hf_configmaps,
				     .ns = ns,
				     .name = "c",
				     .grace_seconds = HF_GRACE_DEFAULT};

	assert_int_equal(create_configmap(w, ns, "c", &made), 0);
	request.precondition_uid = "11111111-2222-3333-4444-555555555555";
	assert_int_equal(ask(w, &request, &o), HF_E_CONFLICT);
	request.precondition_uid = text_at(&made, "metadata.uid");
	request.precondition_resource_version = "1";
	assert_int_equal(ask(w, &request, &o), HF_E_CONFLICT);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), 0);
	request.precondition_resource_version = text_at(&made, "metadata.resourceVersion");
	assert_int_equal(ask(w, &request, &o), 0);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), HF_E_NOT_FOUND);
}

static hf_time time_at(const struct outcome *o, const char *path)
{
	struct hf_error err = {0};
	hf_time t = 0;

	assert_ok(hf_time_parse(text_at(o, path), &t, &err), &err);
	return t;
}

static void a_pod_on_a_node_is_marked_and_waits(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	hf_time marked;

	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	bind_pod(w, ns, "p", "node-a");
	assert_int_equal(delete_pod(w, ns, "p", HF_GRACE_DEFAULT, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), 0);
	assert_int_equal(number_at(&o, "metadata.deletionGracePeriodSeconds"), 20);
	assert_int_equal(number_at(&o, "metadata.generation"), 2);
	marked = time_at(&o, "metadata.deletionTimestamp");
	/* A longer grace period is ignored, a shorter one brings the deletion forward. */
	assert_int_equal(delete_pod(w, ns, "p", 100, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), 0);
	assert_int_equal(number_at(&o, "metadata.deletionGracePeriodSeconds"), 20);
	assert_int_equal(delete_pod(w, ns, "p", 5, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), 0);
	assert_int_equal(number_at(&o, "metadata.deletionGracePeriodSeconds"), 5);
	assert_int_equal(time_at(&o, "metadata.deletionTimestamp"), marked - 15 * HF_SECOND);
	/* The kubelet deletes it with grace 0. */
	assert_int_equal(delete_pod(w, ns, "p", 0, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), HF_E_NOT_FOUND);
}

static void a_pod_without_a_running_container_is_deleted_at_once(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_pod(w, ns, "unbound", &o), 0);
	assert_int_equal(delete_pod(w, ns, "unbound", HF_GRACE_DEFAULT, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "unbound", &o), HF_E_NOT_FOUND);

	assert_int_equal(create_pod(w, ns, "ended", &o), 0);
	bind_pod(w, ns, "ended", "node-a");
	assert_int_equal(
		merge_status(w, AT(&hf_pods, ns, "ended"), &o, "{'status':{'phase':'Succeeded'}}"),
		0);
	assert_int_equal(delete_pod(w, ns, "ended", HF_GRACE_DEFAULT, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "ended", &o), HF_E_NOT_FOUND);

	assert_int_equal(create_pod(w, ns, "forced", &o), 0);
	bind_pod(w, ns, "forced", "node-a");
	assert_int_equal(delete_pod(w, ns, "forced", 0, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "forced", &o), HF_E_NOT_FOUND);
}

/* Also with grace 0: otherwise a deletion by a user would look like a pod that vanished. */
static void a_watch_shows_the_mark_of_a_pod_deleted_at_once(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};

	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	bind_pod(w, ns, "p", "node-a");
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), 0);
	assert_int_equal(number_at(&o, "metadata.generation"), 1);
	seen_start(w, &s,
		   &(struct hf_watch_options){.resource = &hf_pods,
					      .ns = ns,
					      .resource_version =
						      text_at(&o, "metadata.resourceVersion")});
	AUTO_OUTCOME last = {0};
	assert_int_equal(delete_pod(w, ns, "p", 0, &last), 0);
	wait_events(w, &s, 2);
	assert_string_equal(seen_text(&s), "M:p D:p");
	for (int i = 0; i < 2; i++) {
		const struct hf_json *meta =
			hf_json_get(hf_doc_json(s.events[i].object), "metadata");

		assert_non_null(hf_json_get(meta, "deletionTimestamp"));
		assert_int_equal(hf_json_i64(hf_json_get(meta, "deletionGracePeriodSeconds"), -1),
				 0);
		assert_int_equal(hf_json_i64(hf_json_get(meta, "generation"), 0), 2);
	}
	assert_int_equal(number_at(&last, "metadata.deletionGracePeriodSeconds"), 0);
}

static int delete_pod_as(struct world *w, const char *ns, const char *name, int64_t grace,
			 enum hf_propagation propagation, struct outcome *o)
{
	return ask(w,
		   &(struct hf_request){.verb = HF_VERB_DELETE,
					.resource = &hf_pods,
					.ns = ns,
					.name = name,
					.grace_seconds = grace,
					.propagation = propagation},
		   o);
}

static void a_terminating_pod_takes_no_finalizers(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	bind_pod(w, ns, "p", "node-a");
	assert_int_equal(delete_pod(w, ns, "p", HF_GRACE_DEFAULT, &o), 0);
	assert_int_equal(delete_pod_as(w, ns, "p", HF_GRACE_DEFAULT, HF_PROPAGATE_ORPHAN, &o), 0);
	assert_false(has(&o, "metadata.finalizers.0"));
	assert_int_equal(delete_pod_as(w, ns, "p", 20, HF_PROPAGATE_FOREGROUND, &o), 0);
	assert_false(has(&o, "metadata.finalizers.0"));
	assert_int_equal(delete_pod(w, ns, "p", 0, &o), 0);
}

static void a_pod_without_grace_left_is_deleted_by_any_delete(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	int code = 0;

	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	bind_pod(w, ns, "p", "node-a");
	assert_int_equal(
		merge_status(w, AT(&hf_pods, ns, "p"), &o, "{'status':{'phase':'Failed'}}"), 0);
	/* The pod has ended, so only its finalizer keeps it. The garbage collector removes the
	 * finalizer, or a delete with another propagation does. */
	assert_int_equal(delete_pod_as(w, ns, "p", HF_GRACE_DEFAULT, HF_PROPAGATE_FOREGROUND, &o),
			 0);
	code = delete_pod_as(w, ns, "p", 7, HF_PROPAGATE_BACKGROUND, &o);
	assert_true(code == 0 || code == HF_E_NOT_FOUND);
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), HF_E_NOT_FOUND);
}

static void finalizers_hold_an_object_back(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create(w, &hf_configmaps, ns, &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c',"
				"'finalizers':['example.com/a','example.com/b']}}"),
			 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "c", &o), 0);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), 0);
	assert_true(has(&o, "metadata.deletionTimestamp"));
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "c"), &o,
			       "{'metadata':{'finalizers':['example.com/a','example.com/c']}}"),
			 HF_E_INVALID);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "c"), &o,
			       "{'metadata':{'finalizers':['example.com/b']}}"),
			 0);
	/* The object still exists: writes succeed, and its name is in use. */
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "c"), &o, "{'data':{'x':'y'}}"), 0);
	assert_int_equal(create_configmap(w, ns, "c", &o), HF_E_EXISTS);
	assert_int_equal(
		merge(w, AT(&hf_configmaps, ns, "c"), &o, "{'metadata':{'finalizers':null}}"), 0);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), HF_E_NOT_FOUND);
}

static void a_deletion_mark_cannot_be_removed(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create(w, &hf_configmaps, ns, &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c',"
				"'finalizers':['example.com/a']}}"),
			 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "c", &o), 0);
	merge(w, AT(&hf_configmaps, ns, "c"), &o, "{'metadata':{'deletionTimestamp':null}}");
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), 0);
	assert_true(has(&o, "metadata.deletionTimestamp"));
	assert_int_equal(
		merge(w, AT(&hf_configmaps, ns, "c"), &o, "{'metadata':{'finalizers':null}}"), 0);
}

/* --- garbage collection --- */

static void create_owned(struct world *w, const char *ns, const char *name, const char *owner_uid,
			 bool blocks, const char *finalizer)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(create(w, &hf_configmaps, ns, &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'%s',"
				"'finalizers':[%s],"
				"'ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap',"
				"'name':'owner','uid':'%s','controller':true,"
				"'blockOwnerDeletion':%s}]}}",
				name, finalizer, owner_uid, blocks ? "true" : "false"),
			 0);
}

static bool configmap_exists(struct world *w, const char *ns, const char *name)
{
	AUTO_OUTCOME o = {0};

	return get(w, &hf_configmaps, ns, name, &o) == 0;
}

static void wait_gone(struct world *w, const char *ns, const char *name)
{
	for (int i = 0; i < 100 && configmap_exists(w, ns, name); i++)
		w->pass(w, HF_SECOND);
	assert_false(configmap_exists(w, ns, name));
}

static void owned_objects_are_deleted_with_their_owner(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "owner", &o), 0);
	create_owned(w, ns, "owned", text_at(&o, "metadata.uid"), true, "");
	assert_int_equal(create_configmap(w, ns, "other", &o), 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "owner", &o), 0);
	assert_false(configmap_exists(w, ns, "owner"));
	wait_gone(w, ns, "owned");
	assert_true(configmap_exists(w, ns, "other"));
}

static void an_object_whose_owner_has_another_uid_is_deleted(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "owner", &o), 0);
	create_owned(w, ns, "stray", "11111111-2222-3333-4444-555555555555", true, "");
	wait_gone(w, ns, "stray");
	assert_true(configmap_exists(w, ns, "owner"));
}

static void a_second_owner_keeps_an_object(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME a = {0};
	AUTO_OUTCOME b = {0};
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "a", &a), 0);
	assert_int_equal(create_configmap(w, ns, "b", &b), 0);
	assert_int_equal(create(w, &hf_configmaps, ns, &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'shared',"
				"'ownerReferences':["
				"{'apiVersion':'v1','kind':'ConfigMap','name':'a','uid':'%s'},"
				"{'apiVersion':'v1','kind':'ConfigMap','name':'b','uid':'%s'}]}}",
				text_at(&a, "metadata.uid"), text_at(&b, "metadata.uid")),
			 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "a", &o), 0);
	for (int i = 0; i < 100; i++) {
		w->pass(w, HF_SECOND);
		assert_int_equal(get(w, &hf_configmaps, ns, "shared", &o), 0);
		if (!has(&o, "metadata.ownerReferences.1"))
			break;
	}
	assert_string_equal(text_at(&o, "metadata.ownerReferences.0.name"), "b");
	assert_false(has(&o, "metadata.ownerReferences.1"));
}

static void in_the_foreground_the_owner_waits(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "owner", &o), 0);
	/* A finalizer holds it back, so that the order of the deletions can be seen. */
	create_owned(w, ns, "owned", text_at(&o, "metadata.uid"), true, "'example.com/a'");
	assert_int_equal(delete_as(w, &hf_configmaps, ns, "owner", HF_PROPAGATE_FOREGROUND, &o), 0);
	for (int i = 0; i < 100; i++) {
		w->pass(w, HF_SECOND);
		assert_int_equal(get(w, &hf_configmaps, ns, "owned", &o), 0);
		if (has(&o, "metadata.deletionTimestamp"))
			break;
	}
	assert_true(has(&o, "metadata.deletionTimestamp"));
	assert_int_equal(get(w, &hf_configmaps, ns, "owner", &o), 0);
	assert_true(has(&o, "metadata.deletionTimestamp"));
	assert_string_equal(text_at(&o, "metadata.finalizers.0"), "foregroundDeletion");
	assert_int_equal(
		merge(w, AT(&hf_configmaps, ns, "owned"), &o, "{'metadata':{'finalizers':null}}"),
		0);
	wait_gone(w, ns, "owner");
	assert_false(configmap_exists(w, ns, "owned"));
}

static void orphans_stay_without_their_owner(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "owner", &o), 0);
	create_owned(w, ns, "owned", text_at(&o, "metadata.uid"), true, "");
	assert_int_equal(delete_as(w, &hf_configmaps, ns, "owner", HF_PROPAGATE_ORPHAN, &o), 0);
	wait_gone(w, ns, "owner");
	assert_int_equal(get(w, &hf_configmaps, ns, "owned", &o), 0);
	assert_false(has(&o, "metadata.ownerReferences.0"));
	w->pass(w, HF_SECOND);
	assert_true(configmap_exists(w, ns, "owned"));
}

static void a_deleted_namespace_takes_its_content_along(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	int code = 0;

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	assert_int_equal(erase(w, &hf_namespaces, NULL, ns, &o), 0);
	for (int i = 0; i < 100 && code == 0; i++) {
		w->pass(w, HF_SECOND);
		code = get(w, &hf_namespaces, NULL, ns, &o);
	}
	assert_int_equal(code, HF_E_NOT_FOUND);
	assert_int_equal(list(w, &hf_pods, ns, &o), 0);
	assert_int_equal(o.n_items, 0);
	assert_int_equal(create_configmap(w, ns, "c", &o), HF_E_NOT_FOUND);
}

const struct contract_test contract_deletes[] = {
	{"26: preconditions are checked", preconditions_are_checked},
	{"27: a pod on a node is marked and waits", a_pod_on_a_node_is_marked_and_waits},
	{"27: a pod without a running container is deleted at once",
	 a_pod_without_a_running_container_is_deleted_at_once},
	{"27: a watch shows the mark of a pod deleted at once",
	 a_watch_shows_the_mark_of_a_pod_deleted_at_once},
	{"27: a terminating pod takes no finalizers", a_terminating_pod_takes_no_finalizers},
	{"27: a pod without grace left is deleted by any delete",
	 a_pod_without_grace_left_is_deleted_by_any_delete},
	{"28: finalizers hold an object back", finalizers_hold_an_object_back},
	{"28: a deletion mark cannot be removed", a_deletion_mark_cannot_be_removed},
	{"29: owned objects are deleted with their owner",
	 owned_objects_are_deleted_with_their_owner},
	{"29: an object whose owner has another uid is deleted",
	 an_object_whose_owner_has_another_uid_is_deleted},
	{"29: a second owner keeps an object", a_second_owner_keeps_an_object},
	{"29: in the foreground the owner waits", in_the_foreground_the_owner_waits},
	{"29: orphans stay without their owner", orphans_stay_without_their_owner},
	{"29: a deleted namespace takes its content along",
	 a_deleted_namespace_takes_its_content_along},
	{"30: a deleted object is gone and its name free",
	 a_deleted_object_is_gone_and_its_name_free},
	{NULL, NULL},
};
