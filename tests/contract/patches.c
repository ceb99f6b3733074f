/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Contract tests of patches: rules 18 to 21 and 24 of src/store/CONTRACT.md. */
#include "contract/contract.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static int patch_object(struct world *w, struct at at, enum hf_patch_type type, struct outcome *o,
			const char *text)
{
	HF_AUTO_DOC body = json_doc("%s", text);

	return ask(w,
		   &(struct hf_request){.verb = HF_VERB_PATCH,
					.resource = at.resource,
					.ns = at.ns,
					.name = at.name,
					.patch_type = type,
					.body = body},
		   o);
}

static void a_merge_patch_adds_changes_and_removes(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(
		merge(w, AT(&hf_configmaps, ns, "c"), &o,
		      "{'data':{'k':null,'new':'n'},'metadata':{'annotations':{'a':'b'}}}"),
		0);
	assert_false(has(&o, "data.k"));
	assert_string_equal(text_at(&o, "data.new"), "n");
	assert_string_equal(text_at(&o, "metadata.annotations.a"), "b");
	assert_string_equal(text_at(&o, "metadata.labels.app"), "c");
}

static void a_merge_patch_replaces_lists_whole(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_job(w, ns, "j", &o), 0);
	assert_int_equal(merge_status(w, AT(&hf_pytorchjobs, ns, "j"), &o,
				      "{'status':{'conditions':[{'type':'Created','status':'True'},"
				      "{'type':'Running','status':'True'}]}}"),
			 0);
	assert_int_equal(
		merge_status(w, AT(&hf_pytorchjobs, ns, "j"), &o,
			     "{'status':{'conditions':[{'type':'Failed','status':'True'}]}}"),
		0);
	assert_string_equal(text_at(&o, "status.conditions.0.type"), "Failed");
	assert_false(has(&o, "status.conditions.1"));
}

static void a_patch_of_a_stale_version_conflicts(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME old = {0};
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &old), 0);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "c"), &o,
			       "{'metadata':{'resourceVersion':'%s'},'data':{'k':'1'}}",
			       text_at(&old, "metadata.resourceVersion")),
			 0);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "c"), &o,
			       "{'metadata':{'resourceVersion':'%s'},'data':{'k':'2'}}",
			       text_at(&old, "metadata.resourceVersion")),
			 HF_E_CONFLICT);
	assert_string_equal(
		o.message,
		"Operation cannot be fulfilled on configmaps \"c\": the object has been "
		"modified; please apply your changes to the latest version and try again");
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), 0);
	assert_string_equal(text_at(&o, "data.k"), "1");
}

static void a_status_patch_of_a_stale_version_conflicts(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME old = {0};
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_job(w, ns, "j", &old), 0);
	assert_int_equal(
		merge(w, AT(&hf_pytorchjobs, ns, "j"), &o, "{'metadata':{'labels':{'a':'b'}}}"), 0);
	assert_int_equal(merge_status(w, AT(&hf_pytorchjobs, ns, "j"), &o,
				      "{'metadata':{'resourceVersion':'%s'},"
				      "'status':{'startTime':'2026-01-01T00:00:00Z'}}",
				      text_at(&old, "metadata.resourceVersion")),
			 HF_E_CONFLICT);
	assert_int_equal(get(w, &hf_pytorchjobs, ns, "j", &o), 0);
	assert_false(has(&o, "status.startTime"));
}

static void a_wrong_uid_passes_in_a_custom_status_patch_and_nowhere_else(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	const char *uid = "11111111-2222-3333-4444-555555555555";

	assert_int_equal(create_job(w, ns, "j", &o), 0);
	assert_int_equal(merge_status(w, AT(&hf_pytorchjobs, ns, "j"), &o,
				      "{'metadata':{'uid':'%s'},"
				      "'status':{'startTime':'2026-01-01T00:00:00Z'}}",
				      uid),
			 0);
	assert_string_equal(text_at(&o, "status.startTime"), "2026-01-01T00:00:00Z");
	assert_string_not_equal(text_at(&o, "metadata.uid"), uid);
	assert_int_not_equal(merge(w, AT(&hf_pytorchjobs, ns, "j"), &o,
				   "{'metadata':{'uid':'%s','labels':{'a':'b'}}}", uid),
			     0);
	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	assert_int_not_equal(merge_status(w, AT(&hf_pods, ns, "p"), &o,
					  "{'metadata':{'uid':'%s'},"
					  "'status':{'phase':'Running'}}",
					  uid),
			     0);
	assert_int_equal(get(w, &hf_pods, ns, "p", &o), 0);
	assert_string_equal(text_at(&o, "status.phase"), "Pending");
}

static void the_object_and_its_status_are_written_apart(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_job(w, ns, "j", &o), 0);
	assert_int_equal(merge(w, AT(&hf_pytorchjobs, ns, "j"), &o,
			       "{'status':{'startTime':'2026-01-01T00:00:00Z'}}"),
			 0);
	assert_false(has(&o, "status.startTime"));
	assert_int_equal(merge_status(w, AT(&hf_pytorchjobs, ns, "j"), &o,
				      "{'metadata':{'labels':{'a':'b'}},"
				      "'spec':{'runPolicy':{'backoffLimit':9}},"
				      "'status':{'startTime':'2026-01-02T00:00:00Z'}}"),
			 0);
	assert_string_equal(text_at(&o, "status.startTime"), "2026-01-02T00:00:00Z");
	assert_false(has(&o, "metadata.labels.a"));
	assert_int_not_equal(number_at(&o, "spec.runPolicy.backoffLimit"), 9);
	/* A PUT of the whole object keeps the status, even if the body has none. */
	struct hf_json *object = hf_doc_copy_json(o.object);
	hf_json_remove(object, "status");
	hf_json_set_str(hf_json_ensure_object(hf_json_get(object, "metadata"), "labels"), "x", "y");
	assert_int_equal(update(w, &hf_pytorchjobs, ns, "j", &o, object), 0);
	assert_string_equal(text_at(&o, "status.startTime"), "2026-01-02T00:00:00Z");
	assert_string_equal(text_at(&o, "metadata.labels.x"), "y");
}

static void a_pod_and_its_status_are_written_apart(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	assert_int_equal(merge(w, AT(&hf_pods, ns, "p"), &o, "{'status':{'phase':'Running'}}"), 0);
	assert_string_equal(text_at(&o, "status.phase"), "Pending");
	assert_int_equal(merge_status(w, AT(&hf_pods, ns, "p"), &o,
				      "{'spec':{'activeDeadlineSeconds':5},"
				      "'status':{'phase':'Running'}}"),
			 0);
	assert_string_equal(text_at(&o, "status.phase"), "Running");
	assert_false(has(&o, "spec.activeDeadlineSeconds"));
}

static void a_json_patch_is_all_or_nothing(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(patch_object(w, AT(&hf_configmaps, ns, "c"), HF_PATCH_JSON, &o,
				      "[{'op':'add','path':'/data/n','value':'1'},"
				      "{'op':'replace','path':'/data/k','value':'2'}]"),
			 0);
	assert_string_equal(text_at(&o, "data.n"), "1");
	assert_string_equal(text_at(&o, "data.k"), "2");
	assert_int_equal(patch_object(w, AT(&hf_configmaps, ns, "c"), HF_PATCH_JSON, &o,
				      "[{'op':'replace','path':'/data/k','value':'3'},"
				      "{'op':'test','path':'/data/n','value':'nope'}]"),
			 HF_E_INVALID);
	assert_int_equal(patch_object(w, AT(&hf_configmaps, ns, "c"), HF_PATCH_JSON, &o,
				      "[{'op':'remove','path':'/data/absent'}]"),
			 HF_E_INVALID);
	assert_int_equal(get(w, &hf_configmaps, ns, "c", &o), 0);
	assert_string_equal(text_at(&o, "data.k"), "2");
}

static void a_strategic_patch_knows_the_lists_of_built_in_kinds(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(
		create(w, &hf_pods, ns, &o,
		       "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p',"
		       "'finalizers':['example.com/a']},'spec':{'schedulerName':'nobody',"
		       "'containers':[{'name':'a','image':'i'},{'name':'b','image':'i'}]}}"),
		0);
	assert_int_equal(patch_object(w, AT(&hf_pods, ns, "p"), HF_PATCH_STRATEGIC, &o,
				      "{'metadata':{'finalizers':['example.com/b']},"
				      "'spec':{'containers':[{'name':'b','image':'new'}]}}"),
			 0);
	assert_string_equal(text_at(&o, "spec.containers.0.name"), "a");
	assert_string_equal(text_at(&o, "spec.containers.0.image"), "i");
	assert_string_equal(text_at(&o, "spec.containers.1.image"), "new");
	assert_true(has(&o, "metadata.finalizers.1"));
	assert_int_equal(patch_object(w, AT(&hf_pods, ns, "p"), HF_PATCH_MERGE, &o,
				      "{'metadata':{'finalizers':null}}"),
			 0);
}

static void a_strategic_patch_of_a_custom_kind_is_refused(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_job(w, ns, "j", &o), 0);
	assert_int_equal(patch_object(w, AT(&hf_pytorchjobs, ns, "j"), HF_PATCH_STRATEGIC, &o,
				      "{'metadata':{'labels':{'a':'b'}}}"),
			 HF_E_MEDIA_TYPE);
	assert_int_equal(number_at(&o, "code"), 415);
}

/* Applies `data` to ConfigMap "c" as this field manager. */
static int apply_data(struct world *w, const char *ns, const char *manager, bool force,
		      struct outcome *o, const char *data)
{
	HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'ConfigMap',"
				    "'metadata':{'name':'c'},'data':%s}",
				    data);

	return ask(w,
		   &(struct hf_request){.verb = HF_VERB_PATCH,
					.resource = &hf_configmaps,
					.ns = ns,
					.name = "c",
					.patch_type = HF_PATCH_APPLY,
					.field_manager = manager,
					.force = force,
					.body = body},
		   o);
}

static void an_apply_creates_an_absent_object_and_owns_its_fields(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'a':'1'}"), 0);
	assert_string_equal(text_at(&o, "data.a"), "1");
	assert_string_equal(text_at(&o, "metadata.managedFields.0.manager"), "one");
	assert_string_equal(text_at(&o, "metadata.managedFields.0.operation"), "Apply");
	assert_string_equal(text_at(&o, "metadata.managedFields.0.apiVersion"), "v1");
	assert_true(has(&o, "metadata.managedFields.0.fieldsV1.f:data.f:a"));
	assert_false(has(&o, "metadata.managedFields.1"));
}

static void the_same_apply_again_writes_nothing(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0}, again = {0};

	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'a':'1'}"), 0);
	assert_int_equal(apply_data(w, ns, "one", false, &again, "{'a':'1'}"), 0);
	assert_string_equal(text_at(&again, "metadata.resourceVersion"),
			    text_at(&o, "metadata.resourceVersion"));
}

static void a_field_of_another_manager_is_a_conflict_unless_forced(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'a':'1','b':'1'}"), 0);
	/* Two managers may own a field if they apply the same value. */
	assert_int_equal(apply_data(w, ns, "two", false, &o, "{'a':'1'}"), 0);
	assert_int_equal(apply_data(w, ns, "two", false, &o, "{'a':'2'}"), HF_E_CONFLICT);
	assert_string_equal(text_at(&o, "details.causes.0.reason"), "FieldManagerConflict");
	assert_string_equal(text_at(&o, "details.causes.0.field"), ".data.a");
	assert_non_null(strstr(text_at(&o, "message"), "conflict with \"one\""));
	assert_int_equal(apply_data(w, ns, "two", true, &o, "{'a':'2'}"), 0);
	assert_string_equal(text_at(&o, "data.a"), "2");
	assert_string_equal(text_at(&o, "data.b"), "1");
	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'a':'1','b':'1'}"), HF_E_CONFLICT);
}

static void an_apply_removes_omitted_fields_unless_another_manager_owns_them(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'a':'1','b':'1','c':'1'}"), 0);
	assert_int_equal(apply_data(w, ns, "two", false, &o, "{'b':'1','d':'1'}"), 0);
	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'c':'1'}"), 0);
	assert_false(has(&o, "data.a"));
	assert_true(has(&o, "data.b"));
	assert_true(has(&o, "data.c"));
	assert_true(has(&o, "data.d"));
}

static void a_patch_makes_its_manager_the_owner(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'a':'1','b':'1'}"), 0);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "c"), &o, "{'data':{'a':'2','b':null}}"),
			 0);
	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'a':'1'}"), HF_E_CONFLICT);
	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'b':'3'}"), 0);
	assert_string_equal(text_at(&o, "data.a"), "2");
}

static void fields_from_before_the_first_apply_belong_to_another_manager(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'new':'1'}"), 0);
	assert_int_equal(apply_data(w, ns, "one", false, &o, "{'k':'other'}"), HF_E_CONFLICT);
	assert_int_equal(apply_data(w, ns, "one", true, &o, "{'k':'other'}"), 0);
	assert_string_equal(text_at(&o, "data.k"), "other");
	assert_false(has(&o, "data.new"));
}

static void a_patch_of_the_wrong_shape_is_refused(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(patch_object(w, AT(&hf_configmaps, ns, "c"), HF_PATCH_MERGE, &o, "[1]"),
			 HF_E_BAD_REQUEST);
	assert_int_equal(patch_object(w, AT(&hf_configmaps, ns, "c"), HF_PATCH_JSON, &o, "{'a':1}"),
			 HF_E_BAD_REQUEST);
	assert_int_not_equal(patch_object(w, AT(&hf_configmaps, ns, "c"), HF_PATCH_MERGE, &o,
					  "{'metadata':{'name':'other'}}"),
			     0);
	assert_int_not_equal(patch_object(w, AT(&hf_configmaps, ns, "c"), HF_PATCH_MERGE, &o,
					  "{'kind':'Secret'}"),
			     0);
}

static void unknown_fields_survive_a_patch(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(create(w, &hf_configmaps, ns, &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c',"
				"'annotations':{'example.com/unknown':'1'}},'data':{'x':'y'}}"),
			 0);
	assert_int_equal(
		merge(w, AT(&hf_configmaps, ns, "c"), &o, "{'metadata':{'labels':{'a':'b'}}}"), 0);
	assert_string_equal(text_at(&o, "metadata.annotations.example"), "");
	assert_string_equal(text_at(&o, "data.x"), "y");
	assert_int_equal(
		hf_json_len(hf_json_path(hf_doc_json(o.object), "metadata", "annotations", NULL)),
		1);
}

static void scale_is_the_count_of_workers(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	HF_AUTO_DOC body = json_doc("{'spec':{'replicas':5}}");
	struct hf_request request = {.verb = HF_VERB_GET,
				     .resource = &hf_pytorchjobs,
				     .ns = ns,
				     .name = "j",
				     .subresource = "scale"};

	assert_int_equal(create_job(w, ns, "j", &o), 0);
	assert_int_equal(ask(w, &request, &o), 0);
	assert_string_equal(text_at(&o, "kind"), "Scale");
	assert_int_equal(number_at(&o, "spec.replicas"), 2);
	request.verb = HF_VERB_PATCH;
	request.body = body;
	assert_int_equal(ask(w, &request, &o), 0);
	assert_int_equal(number_at(&o, "spec.replicas"), 5);
	assert_int_equal(get(w, &hf_pytorchjobs, ns, "j", &o), 0);
	assert_int_equal(number_at(&o, "spec.pytorchReplicaSpecs.Worker.replicas"), 5);
	assert_int_equal(number_at(&o, "metadata.generation"), 2);
}

/* Finds the first managedFields entry with this subresource; NULL: no entry. */
static const struct hf_json *find_managed_entry(const struct outcome *o, const char *subresource)
{
	const struct hf_json *entries =
		hf_json_path(hf_doc_json(o->object), "metadata", "managedFields", NULL);

	for (size_t i = 0; i < hf_json_len(entries); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(entries, i), "subresource", NULL),
			     subresource))
			return hf_json_item(entries, i);
	return NULL;
}

static void a_scale_write_has_its_own_managed_fields_entry(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	HF_AUTO_DOC body = json_doc("{'spec':{'replicas':5}}");
	HF_AUTO_DOC label = json_doc("{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob',"
				     "'metadata':{'name':'j','labels':{'a':'b'}}}");
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_pytorchjobs,
				     .ns = ns,
				     .name = "j",
				     .patch_type = HF_PATCH_APPLY,
				     .field_manager = "one",
				     .body = label};

	/* managedFields is kept from the first apply on. */
	assert_int_equal(create_job(w, ns, "j", &o), 0);
	assert_int_equal(ask(w, &request, &o), 0);
	assert_null(find_managed_entry(&o, "scale"));
	request.patch_type = HF_PATCH_MERGE;
	request.subresource = "scale";
	request.body = body;
	assert_int_equal(ask(w, &request, &o), 0);
	assert_int_equal(get(w, &hf_pytorchjobs, ns, "j", &o), 0);
	assert_non_null(hf_json_path(find_managed_entry(&o, "scale"), "fieldsV1", "f:spec",
				     "f:pytorchReplicaSpecs", "f:Worker", "f:replicas", NULL));
}

const struct contract_test contract_patches[] = {
	{"18: a patch of a stale version conflicts", a_patch_of_a_stale_version_conflicts},
	{"19: a status patch of a stale version conflicts",
	 a_status_patch_of_a_stale_version_conflicts},
	{"19: a wrong uid passes in a custom status patch and nowhere else",
	 a_wrong_uid_passes_in_a_custom_status_patch_and_nowhere_else},
	{"20: the object and its status are written apart",
	 the_object_and_its_status_are_written_apart},
	{"20: a pod and its status are written apart", a_pod_and_its_status_are_written_apart},
	{"20: unknown fields survive a patch", unknown_fields_survive_a_patch},
	{"21: a merge patch adds, changes and removes", a_merge_patch_adds_changes_and_removes},
	{"21: a merge patch replaces lists whole", a_merge_patch_replaces_lists_whole},
	{"21: a JSON patch is all or nothing", a_json_patch_is_all_or_nothing},
	{"21: a strategic patch knows the lists of built-in kinds",
	 a_strategic_patch_knows_the_lists_of_built_in_kinds},
	{"21: a strategic patch of a custom kind is refused",
	 a_strategic_patch_of_a_custom_kind_is_refused},
	{"21: an apply creates an absent object and owns its fields",
	 an_apply_creates_an_absent_object_and_owns_its_fields},
	{"21: the same apply again writes nothing", the_same_apply_again_writes_nothing},
	{"21: a field of another manager is a conflict unless forced",
	 a_field_of_another_manager_is_a_conflict_unless_forced},
	{"21: an apply removes omitted fields unless another manager owns them",
	 an_apply_removes_omitted_fields_unless_another_manager_owns_them},
	{"21: a patch makes its manager the owner", a_patch_makes_its_manager_the_owner},
	{"21: fields from before the first apply belong to another manager",
	 fields_from_before_the_first_apply_belong_to_another_manager},
	{"21: a patch of the wrong shape is refused", a_patch_of_the_wrong_shape_is_refused},
	{"24: scale is the count of workers", scale_is_the_count_of_workers},
	{"24: a scale write has its own managedFields entry",
	 a_scale_write_has_its_own_managed_fields_entry},
	{NULL, NULL},
};
