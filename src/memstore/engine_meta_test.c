/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/plane.h"

#include "base/mem.h"
#include "base/str.h"
#include "memstore/engine_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests of the metadata rules that only this engine has. tests/contract has the rules that hold for
 * every store. */

static int create_with(struct plane *p, const char *meta, struct outcome *o)
{
	return create(&p->w, &hf_configmaps, "default", o,
		      "{'apiVersion':'v1','kind':'ConfigMap','metadata':{%s}}", meta);
}

static void problems_name_their_field(void **state)
{
	static const struct {
		const char *meta, *field, *text;
	} cases[] = {
		{"'name':'A'", "metadata.name", "lowercase RFC 1123 subdomain"},
		{"'name':''", "metadata.name", "name or generateName is required"},
		{"'name':'a','labels':{'x y':'v'}", "metadata.labels", "Invalid value: \"x y\""},
		{"'name':'a','labels':{'x':'v v'}", "metadata.labels", "Invalid value: \"v v\""},
		{"'name':'a','labels':{'x':3}", "metadata.labels", "must be a string"},
		{"'name':'a','labels':['x']", "metadata.labels", "must be an object, not array"},
		{"'name':'a','annotations':{'x':{}}", "metadata.annotations", "must be a string"},
		{"'name':'a','annotations':'x'", "metadata.annotations", "must be an object"},
		{"'name':'a','ownerReferences':{}", "metadata.ownerReferences", "must be an array"},
		{"'name':'a','ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p'}]",
		 "metadata.ownerReferences[0].uid", "uid must not be empty"},
		{"'name':'a','ownerReferences':["
		 "{'apiVersion':'v1','kind':'Pod','name':'p','uid':'1','controller':true},"
		 "{'apiVersion':'v1','kind':'Pod','name':'q','uid':'2','controller':true}]",
		 "metadata.ownerReferences", "Found \"true\" in references for p and q"},
		{"'name':'a','finalizers':['x y']", "metadata.finalizers",
		 "Invalid value: \"x y\""},
		{"'name':'a','finalizers':'x'", "metadata.finalizers", "must be an array"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct plane p;
		AUTO_OUTCOME o = {0};
		plane_open(&p, NULL, false);
		if (create_with(&p, cases[i].meta, &o) != HF_E_INVALID)
			fail_msg("%s: %s", cases[i].meta, hf_code_name(o.code));
		assert_string_equal(text_at(&o, "details.causes.0.field"), cases[i].field);
		if (!strstr(text_at(&o, "details.causes.0.message"), cases[i].text))
			fail_msg("%s: %s", cases[i].meta, o.message);
		plane_close(&p);
	}
}

static void several_problems_come_together(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	assert_int_equal(
		create_with(&p, "'name':'A','labels':{'x y':'v'},'finalizers':['z z']", &o),
		HF_E_INVALID);
	assert_true(has(&o, "details.causes.2"));
	assert_false(has(&o, "details.causes.3"));
	assert_non_null(strstr(o.message, "is invalid: [metadata.name: "));
	plane_close(&p);
}

static void annotations_have_a_limit_together(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	size_t len = (size_t)130 << 10;
	HF_AUTOFREE char *big = hf_xmalloc(len + 1);

	memset(big, 'x', len);
	big[len] = '\0';
	plane_open(&p, NULL, false);
	assert_int_equal(create(&p.w, &hf_configmaps, "default", &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a',"
				"'annotations':{'Example.com/A':'%s'}}}",
				big),
			 0);
	assert_int_equal(merge(&p.w, AT(&hf_configmaps, "default", "a"), &o,
			       "{'metadata':{'annotations':{'b':'%s'}}}", big),
			 HF_E_INVALID);
	assert_string_equal(text_at(&o, "details.causes.0.reason"), "FieldValueTooLong");
	plane_close(&p);
}

static void null_means_absent(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	/* Go clients send nulls for fields that they have not set. */
	assert_int_equal(create(&p.w, &hf_configmaps, "default", &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a',"
				"'creationTimestamp':null,'labels':null,'ownerReferences':null},"
				"'data':null}"),
			 0);
	assert_false(has(&o, "metadata.labels"));
	assert_false(has(&o, "data"));
	struct hf_json *object = hf_doc_copy_json(o.object);
	hf_json_set(object, "data", hf_json_null());
	hf_json_set(hf_json_get(object, "metadata"), "annotations", hf_json_null());
	assert_int_equal(update(&p.w, &hf_configmaps, "default", "a", &o, object), 0);
	assert_false(has(&o, "metadata.annotations"));
	plane_close(&p);
}

static void a_generated_name_is_cut_to_fit_a_label(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	const char *base = "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-g2345";

	plane_open(&p, NULL, false);
	HF_AUTOFREE char *meta = hf_xasprintf("'generateName':'%s'", base);
	assert_int_equal(create_with(&p, meta, &o), 0);
	const char *name = text_at(&o, "metadata.name");
	assert_int_equal(strlen(name), 63);
	assert_memory_equal(name, base, 58);
	/* name takes precedence over generateName. */
	assert_int_equal(create_with(&p, "'name':'given','generateName':'x-'", &o), 0);
	assert_string_equal(text_at(&o, "metadata.name"), "given");
	plane_close(&p);
}

static void uids_are_random_ones_of_version_4(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	for (int i = 0; i < 50; i++) {
		char meta[32];
		snprintf(meta, sizeof(meta), "'name':'c%d'", i);
		assert_int_equal(create_with(&p, meta, &o), 0);
		const char *uid = text_at(&o, "metadata.uid");
		assert_int_equal(strlen(uid), 36);
		assert_int_equal(uid[14], '4');
		assert_non_null(strchr("89ab", uid[19]));
		assert_int_equal(strspn(uid, "0123456789abcdef-"), 36);
	}
	plane_close(&p);
}

static void managed_fields_of_plain_writes_are_dropped(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	assert_int_equal(create_with(&p, "'name':'a','managedFields':[{'manager':'x'}]", &o), 0);
	assert_false(has(&o, "metadata.managedFields"));
	assert_int_equal(merge(&p.w, AT(&hf_configmaps, "default", "a"), &o,
			       "{'metadata':{'managedFields':[{}],'selfLink':'/x'}}"),
			 0);
	assert_false(has(&o, "metadata.managedFields"));
	assert_false(has(&o, "metadata.selfLink"));
	plane_close(&p);
}

static void a_cluster_scoped_object_has_no_namespace(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	assert_int_equal(create(&p.w, &hf_nodes, NULL, &o,
				"{'apiVersion':'v1','kind':'Node','metadata':{'name':'n',"
				"'namespace':'default'},'status':{'phase':'x'}}"),
			 0);
	assert_false(has(&o, "metadata.namespace"));
	/* The kubelet sets a node's status when it creates the node. */
	assert_string_equal(text_at(&o, "status.phase"), "x");
	plane_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(problems_name_their_field),
		cmocka_unit_test(several_problems_come_together),
		cmocka_unit_test(annotations_have_a_limit_together),
		cmocka_unit_test(null_means_absent),
		cmocka_unit_test(a_generated_name_is_cut_to_fit_a_label),
		cmocka_unit_test(uids_are_random_ones_of_version_4),
		cmocka_unit_test(managed_fields_of_plain_writes_are_dropped),
		cmocka_unit_test(a_cluster_scoped_object_has_no_namespace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
