/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* README.md of src/store: 26 to 30. */

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

static void preconditions_are_held_to(struct world *w)
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
	/* Longer is ignored, shorter brings the end nearer. */
	assert_int_equal(delete_pod(w, ns, "p", 100, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), 0);
	assert_int_equal(number_at(&o, "metadata.deletionGracePeriodSeconds"), 20);
	assert_int_equal(delete_pod(w, ns, "p", 5, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), 0);
	assert_int_equal(number_at(&o, "metadata.deletionGracePeriodSeconds"), 5);
	assert_int_equal(time_at(&o, "metadata.deletionTimestamp"), marked - 15 * HF_SECOND);
	/* Who runs it ends it. */
	assert_int_equal(delete_pod(w, ns, "p", 0, &o), 0);
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), HF_E_NOT_FOUND);
}

static void a_pod_nobody_runs_goes_at_once(struct world *w)
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

/* With force too: else a person's delete would look like a pod that vanished. */
static void who_watches_sees_the_mark_of_a_pod_that_goes_at_once(struct world *w)
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

static void a_pod_on_its_way_takes_no_finalizers(struct world *w)
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

static void a_pod_without_time_left_goes_whatever_is_asked(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	int code = 0;

	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	bind_pod(w, ns, "p", "node-a");
	assert_int_equal(
		merge_status(w, AT(&hf_pods, ns, "p"), &o, "{'status':{'phase':'Failed'}}"), 0);
	/* It has ended: its finalizer alone keeps it, which the garbage collector takes away, or
	 * who asks for another propagation. */
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
	/* Still an object: it can be written, and its name is taken. */
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "c"), &o, "{'data':{'x':'y'}}"), 0);
	assert_int_equal(create_configmap(w, ns, "c", &o), HF_E_EXISTS);
	assert_int_equal(
		merge(w, AT(&hf_configmaps, ns, "c"), &o, "{'metadata':{'finalizers':null}}"), 0);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), HF_E_NOT_FOUND);
}

static void a_mark_cannot_be_taken_back(struct world *w)
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

/* --- garbage --- */

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

static bool exists(struct world *w, const char *ns, const char *name)
{
	AUTO_OUTCOME o = {0};

	return get(w, &hf_configmaps, ns, name, &o) == 0;
}

static void wait_gone(struct world *w, const char *ns, const char *name)
{
	for (int i = 0; i < 100 && exists(w, ns, name); i++)
		w->pass(w, HF_SECOND);
	assert_false(exists(w, ns, name));
}

static void what_an_object_owned_goes_with_it(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "owner", &o), 0);
	create_owned(w, ns, "owned", text_at(&o, "metadata.uid"), true, "");
	assert_int_equal(create_configmap(w, ns, "other", &o), 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "owner", &o), 0);
	assert_false(exists(w, ns, "owner"));
	wait_gone(w, ns, "owned");
	assert_true(exists(w, ns, "other"));
}

static void an_object_whose_owner_has_another_uid_goes(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "owner", &o), 0);
	create_owned(w, ns, "stray", "11111111-2222-3333-4444-555555555555", true, "");
	wait_gone(w, ns, "stray");
	assert_true(exists(w, ns, "owner"));
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
	/* Held back by somebody's finalizer, so that the order can be seen. */
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
	assert_false(exists(w, ns, "owned"));
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
	assert_true(exists(w, ns, "owned"));
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
	{"26: preconditions are held to", preconditions_are_held_to},
	{"27: a pod on a node is marked and waits", a_pod_on_a_node_is_marked_and_waits},
	{"27: a pod nobody runs goes at once", a_pod_nobody_runs_goes_at_once},
	{"27: who watches sees the mark of a pod that goes at once",
	 who_watches_sees_the_mark_of_a_pod_that_goes_at_once},
	{"27: a pod on its way takes no finalizers", a_pod_on_its_way_takes_no_finalizers},
	{"27: a pod without time left goes whatever is asked",
	 a_pod_without_time_left_goes_whatever_is_asked},
	{"28: finalizers hold an object back", finalizers_hold_an_object_back},
	{"28: a mark cannot be taken back", a_mark_cannot_be_taken_back},
	{"29: what an object owned goes with it", what_an_object_owned_goes_with_it},
	{"29: an object whose owner has another uid goes",
	 an_object_whose_owner_has_another_uid_goes},
	{"29: a second owner keeps an object", a_second_owner_keeps_an_object},
	{"29: in the foreground the owner waits", in_the_foreground_the_owner_waits},
	{"29: orphans stay without their owner", orphans_stay_without_their_owner},
	{"29: a deleted namespace takes its content along",
	 a_deleted_namespace_takes_its_content_along},
	{"30: a deleted object is gone and its name free",
	 a_deleted_object_is_gone_and_its_name_free},
	{NULL, NULL},
};
