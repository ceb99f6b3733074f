/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Contract tests of writing: rules 8 to 11, 17, 18, 22, 23 and 25 of src/store/CONTRACT.md. */
#include "contract/contract.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void a_create_sets_the_servers_fields(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create(w, &hf_pytorchjobs, ns, &o,
				"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{"
				"'name':'j','uid':'mine','generation':7,"
				"'creationTimestamp':'2001-01-01T00:00:00Z',"
				"'deletionTimestamp':'2001-01-01T00:00:00Z'},"
				"'spec':{'pytorchReplicaSpecs':{'Worker':{'replicas':1,'template':{"
				"'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}}},"
				"'status':{'startTime':'2001-01-01T00:00:00Z'}}"),
			 0);
	assert_int_equal(strlen(text_at(&o, "metadata.uid")), 36);
	assert_string_equal(text_at(&o, "metadata.namespace"), ns);
	assert_int_equal(number_at(&o, "metadata.generation"), 1);
	assert_true(strlen(text_at(&o, "metadata.resourceVersion")) > 0);
	assert_string_not_equal(text_at(&o, "metadata.creationTimestamp"), "2001-01-01T00:00:00Z");
	assert_false(has(&o, "metadata.deletionTimestamp"));
	assert_false(has(&o, "status.startTime"));
}

static void a_pod_begins_pending(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	assert_string_equal(text_at(&o, "status.phase"), "Pending");
	assert_string_equal(text_at(&o, "status.qosClass"), "BestEffort");
}

static void generated_names_differ(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME a = {0};
	AUTO_OUTCOME b = {0};
	const char *body =
		"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'generateName':'g-'}}";

	assert_int_equal(create(w, &hf_configmaps, ns, &a, "%s", body), 0);
	assert_int_equal(create(w, &hf_configmaps, ns, &b, "%s", body), 0);
	assert_int_equal(strncmp(text_at(&a, "metadata.name"), "g-", 2), 0);
	assert_int_equal(strlen(text_at(&a, "metadata.name")), 7);
	assert_string_not_equal(text_at(&a, "metadata.name"), text_at(&b, "metadata.name"));
}

static void a_name_that_exists_is_refused(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(create_configmap(w, ns, "c", &o), HF_E_EXISTS);
	assert_string_equal(o.message, "configmaps \"c\" already exists");
	/* An object of another kind may have the same name. */
	assert_int_equal(create_pod(w, ns, "c", &o), 0);
}

static void a_create_in_a_missing_namespace_is_not_found(struct world *w)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, "contract-nowhere", "c", &o), HF_E_NOT_FOUND);
	assert_string_equal(o.message, "namespaces \"contract-nowhere\" not found");
}

static void a_body_of_another_namespace_or_kind_is_refused(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create(w, &hf_configmaps, ns, &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c',"
				"'namespace':'elsewhere'}}"),
			 HF_E_BAD_REQUEST);
	assert_int_equal(create(w, &hf_configmaps, ns, &o,
				"{'apiVersion':'v1','kind':'Secret','metadata':{'name':'c'}}"),
			 HF_E_BAD_REQUEST);
	assert_int_equal(create(w, &hf_configmaps, ns, &o,
				"{'apiVersion':'v2','kind':'ConfigMap','metadata':{'name':'c'}}"),
			 HF_E_BAD_REQUEST);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), HF_E_NOT_FOUND);
}

static void names_and_labels_are_checked(struct world *w)
{
	static const char *const bad[] = {
		"'name':'Upper'",
		"'name':'under_score'",
		"'name':'-a'",
		"'name':'ok','labels':{'bad key':'v'}",
		"'name':'ok','labels':{'k':'bad value'}",
		"'name':'ok','annotations':{'bad key':'v'}",
		"'name':'ok','finalizers':['not a name']",
		"'name':'ok','ownerReferences':[{'kind':'Pod','name':'x','uid':'u'}]",
		"'labels':{'a':'b'}",
	};
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		if (create(w, &hf_configmaps, ns, &o,
			   "{'apiVersion':'v1','kind':'ConfigMap','metadata':{%s}}",
			   bad[i]) != HF_E_INVALID)
			fail_msg("%s: %s (%s)", bad[i], hf_code_name(o.code), o.message);
		assert_string_equal(text_at(&o, "reason"), "Invalid");
	}
	/* The name of a Service must be a single DNS label. */
	assert_int_equal(create(w, &hf_services, ns, &o,
				"{'apiVersion':'v1','kind':'Service','metadata':{'name':'a.b'},"
				"'spec':{'clusterIP':'None','ports':[{'port':1}]}}"),
			 HF_E_INVALID);
}

static void a_create_with_a_version_is_refused(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_not_equal(create(w, &hf_configmaps, ns, &o,
				    "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c',"
				    "'resourceVersion':'5'}}"),
			     0);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), HF_E_NOT_FOUND);
}

/* --- versions --- */

static void every_change_has_another_version(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	unsigned long long last;

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	last = strtoull(text_at(&o, "metadata.resourceVersion"), NULL, 10);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(
			merge(w, AT(&hf_configmaps, ns, "c"), &o, "{'data':{'i':'%d'}}", i), 0);
		unsigned long long now =
			strtoull(text_at(&o, "metadata.resourceVersion"), NULL, 10);
		assert_true(now > last);
		last = now;
	}
}

static void a_write_that_changes_nothing_keeps_the_version(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_OUTCOME again = {0};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "c"), &again, "{'data':{'k':'v'}}"), 0);
	assert_string_equal(text_at(&again, "metadata.resourceVersion"),
			    text_at(&o, "metadata.resourceVersion"));
	assert_int_equal(update(w, &hf_configmaps, ns, "c", &again, hf_doc_copy_json(o.object)), 0);
	assert_string_equal(text_at(&again, "metadata.resourceVersion"),
			    text_at(&o, "metadata.resourceVersion"));
}

static void a_name_created_again_has_another_uid(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME first = {0};
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &first), 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "c", &o), 0);
	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_string_not_equal(text_at(&first, "metadata.uid"), text_at(&o, "metadata.uid"));
}

static void generation_counts_changes_of_the_spec(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_job(w, ns, "j", &o), 0);
	assert_int_equal(number_at(&o, "metadata.generation"), 1);
	assert_int_equal(merge(w, AT(&hf_pytorchjobs, ns, "j"), &o,
			       "{'spec':{'runPolicy':{'backoffLimit':3}}}"),
			 0);
	assert_int_equal(number_at(&o, "metadata.generation"), 2);
	assert_int_equal(
		merge(w, AT(&hf_pytorchjobs, ns, "j"), &o, "{'metadata':{'labels':{'a':'b'}}}"), 0);
	assert_int_equal(merge_status(w, AT(&hf_pytorchjobs, ns, "j"), &o,
				      "{'status':{'startTime':'2026-01-01T00:00:00Z'}}"),
			 0);
	assert_int_equal(number_at(&o, "metadata.generation"), 2);
	/* A client cannot set the generation either. */
	assert_int_equal(merge(w, AT(&hf_pytorchjobs, ns, "j"), &o,
			       "{'metadata':{'generation':99,'labels':{'a':'c'}}}"),
			 0);
	assert_int_equal(number_at(&o, "metadata.generation"), 2);
}

/* --- update --- */

static struct hf_json *with_data(struct hf_doc *doc, const char *value)
{
	struct hf_json *object = hf_doc_copy_json(doc);

	hf_json_set_str(hf_json_ensure_object(object, "data"), "k", value);
	return object;
}

static void an_update_of_a_stale_version_conflicts(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME old = {0};
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &old), 0);
	assert_int_equal(update(w, &hf_configmaps, ns, "c", &o, with_data(old.object, "1")), 0);
	assert_string_equal(text_at(&o, "data.k"), "1");
	assert_int_equal(update(w, &hf_configmaps, ns, "c", &o, with_data(old.object, "2")),
			 HF_E_CONFLICT);
	assert_string_equal(text_at(&o, "reason"), "Conflict");
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), 0);
	assert_string_equal(text_at(&o, "data.k"), "1");
}

static void an_update_without_a_version_depends_on_the_kind(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	struct hf_json *object;

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	object = with_data(o.object, "1");
	hf_json_remove(hf_json_get(object, "metadata"), "resourceVersion");
	assert_int_equal(update(w, &hf_configmaps, ns, "c", &o, object), 0);

	assert_int_equal(create_job(w, ns, "j", &o), 0);
	object = hf_doc_copy_json(o.object);
	hf_json_remove(hf_json_get(object, "metadata"), "resourceVersion");
	assert_int_equal(update(w, &hf_pytorchjobs, ns, "j", &o, object), HF_E_INVALID);

	assert_int_equal(create(w, &hf_leases, ns, &o,
				"{'apiVersion':'coordination.k8s.io/v1','kind':'Lease',"
				"'metadata':{'name':'l'},'spec':{'holderIdentity':'a'}}"),
			 0);
	object = hf_doc_copy_json(o.object);
	hf_json_remove(hf_json_get(object, "metadata"), "resourceVersion");
	assert_int_equal(update(w, &hf_leases, ns, "l", &o, object), HF_E_INVALID);
}

static void an_update_with_another_uid_conflicts(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	struct hf_json *object = with_data(o.object, "1");
	hf_json_set_str(hf_json_get(object, "metadata"), "uid",
			"11111111-2222-3333-4444-555555555555");
	assert_int_equal(update(w, &hf_configmaps, ns, "c", &o, object), HF_E_CONFLICT);
}

static void an_update_of_a_missing_object_is_not_found(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	struct hf_json *object = hf_doc_copy_json(o.object);
	assert_int_equal(erase(w, &hf_configmaps, ns, "c", &o), 0);
	assert_int_not_equal(update(w, &hf_configmaps, ns, "c", &o, object), 0);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), HF_E_NOT_FOUND);
}

static void identity_cannot_be_changed(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME before = {0};
	AUTO_OUTCOME o = {0};
	struct hf_json *object;

	assert_int_equal(create_configmap(w, ns, "c", &before), 0);
	object = with_data(before.object, "1");
	hf_json_set_str(hf_json_get(object, "metadata"), "name", "d");
	assert_int_equal(update(w, &hf_configmaps, ns, "c", &o, object), HF_E_BAD_REQUEST);
	/* Server-owned fields that are left out or changed keep their values. */
	object = with_data(before.object, "2");
	hf_json_remove(hf_json_get(object, "metadata"), "uid");
	hf_json_set_str(hf_json_get(object, "metadata"), "creationTimestamp",
			"2001-01-01T00:00:00Z");
	assert_int_equal(update(w, &hf_configmaps, ns, "c", &o, object), 0);
	assert_string_equal(text_at(&o, "metadata.uid"), text_at(&before, "metadata.uid"));
	assert_string_equal(text_at(&o, "metadata.creationTimestamp"),
			    text_at(&before, "metadata.creationTimestamp"));
}

static void the_spec_of_a_pod_is_immutable(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	assert_int_equal(merge(w, AT(&hf_pods, ns, "p"), &o, "{'spec':{'hostNetwork':true}}"),
			 HF_E_INVALID);
	assert_int_equal(
		merge(w, AT(&hf_pods, ns, "p"), &o, "{'spec':{'activeDeadlineSeconds':100}}"), 0);
}

static void of_two_writers_one_wins(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	struct outcome writers[8] = {0};
	int won = 0;

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	for (int i = 0; i < 8; i++) {
		char value[12];
		snprintf(value, sizeof(value), "%d", i);
		HF_AUTO_DOC body = hf_doc_from_json(with_data(o.object, value));
		hf_store_request(i % 2 ? w->store : w->other,
				 &(struct hf_request){.verb = HF_VERB_UPDATE,
						      .resource = &hf_configmaps,
						      .ns = ns,
						      .name = "c",
						      .body = body},
				 outcome_take, &writers[i]);
	}
	for (int i = 0; i < 8; i++) {
		wait_for(w, &writers[i].calls, 1);
		assert_true(writers[i].code == 0 || writers[i].code == HF_E_CONFLICT);
		won += writers[i].code == 0;
		outcome_release(&writers[i]);
	}
	assert_int_equal(won, 1);
}

static void a_dry_run_stores_nothing(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
				    "'name':'c'}}");
	HF_AUTO_DOC patch = json_doc("{'data':{'k':'other'}}");
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .resource = &hf_configmaps,
				     .ns = ns,
				     .body = body,
				     .dry_run = true};

	assert_int_equal(ask(w, &request, &o), 0);
	assert_string_equal(text_at(&o, "metadata.name"), "c");
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), HF_E_NOT_FOUND);

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(ask(w, &request, &o), HF_E_EXISTS);
	request.verb = HF_VERB_PATCH;
	request.name = "c";
	request.body = patch;
	assert_int_equal(ask(w, &request, &o), 0);
	assert_string_equal(text_at(&o, "data.k"), "other");
	request.verb = HF_VERB_DELETE;
	request.grace_seconds = HF_GRACE_DEFAULT;
	assert_int_equal(ask(w, &request, &o), 0);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), 0);
	assert_string_equal(text_at(&o, "data.k"), "v");
}

static void an_object_too_large_is_refused(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	size_t len = (size_t)1700 << 10;
	HF_AUTOFREE char *big = hf_xmalloc(len + 1);

	memset(big, 'x', len);
	big[len] = '\0';
	assert_int_not_equal(create(w, &hf_configmaps, ns, &o,
				    "{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
				    "'name':'big'},'data':{'k':'%s'}}",
				    big),
			     0);
	assert_int_equal(get(w, &hf_configmaps, ns, "big", &o), HF_E_NOT_FOUND);
}

const struct contract_test contract_writes[] = {
	{"8: every change has another version", every_change_has_another_version},
	{"9: a write that changes nothing keeps the version",
	 a_write_that_changes_nothing_keeps_the_version},
	{"10: a name created again has another uid", a_name_created_again_has_another_uid},
	{"11: generation counts changes of the spec", generation_counts_changes_of_the_spec},
	{"17: a create sets the server's fields", a_create_sets_the_servers_fields},
	{"17: a pod begins pending", a_pod_begins_pending},
	{"17: generated names differ", generated_names_differ},
	{"17: a name that exists is refused", a_name_that_exists_is_refused},
	{"17: a create in a missing namespace is not found",
	 a_create_in_a_missing_namespace_is_not_found},
	{"17: a body of another namespace or kind is refused",
	 a_body_of_another_namespace_or_kind_is_refused},
	{"17: names and labels are checked", names_and_labels_are_checked},
	{"17: a create with a version is refused", a_create_with_a_version_is_refused},
	{"18: an update of a stale version conflicts", an_update_of_a_stale_version_conflicts},
	{"18: an update without a version depends on the kind",
	 an_update_without_a_version_depends_on_the_kind},
	{"18: an update with another uid conflicts", an_update_with_another_uid_conflicts},
	{"18: an update of a missing object is not found",
	 an_update_of_a_missing_object_is_not_found},
	{"18: of two writers one wins", of_two_writers_one_wins},
	{"22: identity cannot be changed", identity_cannot_be_changed},
	{"22: the spec of a pod is immutable", the_spec_of_a_pod_is_immutable},
	{"23: a dry run stores nothing", a_dry_run_stores_nothing},
	{"25: an object too large is refused", an_object_too_large_is_refused},
	{NULL, NULL},
};
