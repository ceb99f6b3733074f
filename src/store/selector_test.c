/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/json_text.h"
#include "harness/test.h"

#include "base/mem.h"
#include "store/selector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool match_labels(const char *selector, const char *labels)
{
	struct hf_error err = {0};
	struct hf_selector *s = NULL;
	HF_AUTO_JSON object = json_of(labels);

	assert_ok(hf_selector_parse_labels(selector, &s, &err), &err);
	bool match = hf_selector_match_labels(s, object);
	hf_selector_destroy(s);
	return match;
}

static void label_selectors_decide_as_kubernetes_does(void **state)
{
	static const struct {
		const char *selector, *labels;
		bool match;
	} cases[] = {
		{"", "{}", true},
		{"  ", "{'a':'b'}", true},
		{"a=b", "{'a':'b'}", true},
		{"a=b", "{'a':'c'}", false},
		{"a=b", "{}", false},
		{"a==b", "{'a':'b'}", true},
		{"a!=b", "{'a':'c'}", true},
		{"a!=b", "{}", true},
		{"a!=b", "{'a':'b'}", false},
		{"a=", "{'a':''}", true},
		{"a=", "{'a':'b'}", false},
		{"a = b , c = d", "{'a':'b','c':'d'}", true},
		{"a=b,c=d", "{'a':'b'}", false},
		{"a in (b,c)", "{'a':'c'}", true},
		{"a in ( b , c )", "{'a':'b'}", true},
		{"a in (b)", "{}", false},
		{"a in (,b)", "{'a':''}", true},
		{"a notin (b,c)", "{'a':'d'}", true},
		{"a notin (b,c)", "{}", true},
		{"a notin (b,c)", "{'a':'b'}", false},
		{"a", "{'a':'x'}", true},
		{"a", "{}", false},
		{"!a", "{}", true},
		{"!a", "{'a':''}", false},
		{"! a", "{}", true},
		{"a>1", "{'a':'2'}", true},
		{"a>2", "{'a':'2'}", false},
		{"a<3", "{'a':'2'}", true},
		{"a>1", "{'a':'x'}", false},
		{"a>1", "{}", false},
		{"in=in", "{'in':'in'}", true},
		{"example.com/a-b_c.d=e", "{'example.com/a-b_c.d':'e'}", true},
		{"training.kubeflow.org/job-name=x,!deleted,tier in (a,b)",
		 "{'training.kubeflow.org/job-name':'x','tier':'b'}", true},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		if (match_labels(cases[i].selector, cases[i].labels) != cases[i].match)
			fail_msg("'%s' of %s", cases[i].selector, cases[i].labels);
}

static void a_malformed_label_selector_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *selector, *text;
	} cases[] = {
		{"a in", "found the end"},
		{"a in (b", "',' or ')'"},
		{"a in b", "'('"},
		{",", "a label key"},
		{"a=b,", "a label key"},
		{"a=b c", "',' or the end"},
		{"a b", "expected: one of"},
		{"=b", "a label key"},
		{"-a=b", "key: Invalid value"},
		{"a=b c=d", "position 4"},
		{"a=-b", "values: Invalid value"},
		{"a>x", "must be an integer"},
		{"a in (b))", "',' or the end"},
		{"!a=b", "',' or the end"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_error err = {0};
		struct hf_selector *s = (void *)&err;
		assert_code(hf_selector_parse_labels(cases[i].selector, &s, &err),
			    HF_E_BAD_REQUEST);
		assert_ptr_equal(s, &err);
		if (!strstr(err.text, cases[i].text))
			fail_msg("'%s': %s", cases[i].selector, err.text);
	}
}

static void selectors_have_limits(void **state)
{
	struct hf_error err = {0};
	struct hf_selector *s = NULL;
	size_t len = HF_SELECTOR_BYTES_MAX + 1;
	HF_AUTOFREE char *text = hf_xmalloc(len + 1);

	memset(text, 'a', len);
	text[len] = '\0';
	assert_code(hf_selector_parse_labels(text, &s, &err), HF_E_BAD_REQUEST);
	assert_code(hf_selector_parse_fields(text, NULL, &s, &err), HF_E_BAD_REQUEST);
	/* A text with one requirement too many, and then a text with one value too many. */
	char *at = text;
	for (int i = 0; i <= HF_SELECTOR_REQUIREMENTS_MAX; i++)
		at += snprintf(at, 16, "k%d,", i);
	at[-1] = '\0';
	assert_code(hf_selector_parse_labels(text, &s, &err), HF_E_BAD_REQUEST);
	assert_non_null(strstr(err.text, "requirements"));
	at = text;
	memcpy(at, "a in (", 6);
	at += 6;
	for (int i = 0; i <= HF_SELECTOR_VALUES_MAX; i++, at += 2)
		memcpy(at, "x,", 2);
	memcpy(at - 1, ")", 2);
	assert_code(hf_selector_parse_labels(text, &s, &err), HF_E_BAD_REQUEST);
	assert_non_null(strstr(err.text, "values"));
}

static const char object_text[] =
	"{'metadata':{'name':'p','namespace':'n'},'spec':{'nodeName':'node-a','hostNetwork':true,"
	"'replicas':3},'status':{'phase':'Running'},'source':{'component':'kubelet'},"
	"'reason':'a,b=c'}";

static void field_selectors_compare_text(void **state)
{
	static const struct {
		const char *selector;
		bool match;
	} cases[] = {
		{"", true},
		{"metadata.name=p", true},
		{"metadata.name==p,metadata.namespace=n", true},
		{"metadata.name!=p", false},
		{"metadata.name=q", false},
		{"spec.nodeName=node-a,status.phase!=Failed", true},
		{"spec.absent=", true},
		{"spec.absent!=", false},
		{"spec.hostNetwork=true", true},
		{"spec.unschedulable=false", true},
		{"spec.replicas=3", true},
		{"source=kubelet", true},
		{"reason=a\\,b\\=c", true},
		{"reason=a\\,b", false},
		{",metadata.name=p,", true},
	};
	HF_AUTO_JSON object = json_of(object_text);

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_error err = {0};
		struct hf_selector *s = NULL;
		assert_ok(hf_selector_parse_fields(cases[i].selector, NULL, &s, &err), &err);
		if (hf_selector_match_fields(s, object) != cases[i].match)
			fail_msg("'%s'", cases[i].selector);
		hf_selector_destroy(s);
	}
}

static void an_events_source_may_be_its_controller(void **state)
{
	struct hf_error err = {0};
	struct hf_selector *s = NULL;
	HF_AUTO_JSON object = json_of("{'reportingComponent':'sched'}");

	assert_ok(hf_selector_parse_fields("source=sched", NULL, &s, &err), &err);
	assert_true(hf_selector_match_fields(s, object));
	hf_selector_destroy(s);
}

static void a_malformed_field_selector_is_refused(void **state)
{
	static const char *const bad[] = {"a", "a!b", "metadata.name=a\\x", "metadata.name=a\\",
					  "!="};
	static const char *const known[] = {"spec.nodeName", NULL};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct hf_error err = {0};
		struct hf_selector *s = NULL;
		/* "!=" compares the field "" with "". No kind has a field with that path, so it is
		 * refused. */
		assert_code(hf_selector_parse_fields(bad[i], known, &s, &err), HF_E_BAD_REQUEST);
		assert_null(s);
	}
}

static void only_known_fields_select(void **state)
{
	static const char *const known[] = {"spec.nodeName", NULL};
	struct hf_error err = {0};
	struct hf_selector *s = NULL;

	assert_ok(hf_selector_parse_fields("spec.nodeName=a,metadata.name=b", known, &s, &err),
		  &err);
	s = hf_selector_destroy(s);
	assert_code(hf_selector_parse_fields("spec.other=a", known, &s, &err), HF_E_BAD_REQUEST);
	assert_string_equal(err.text, "field label not supported: spec.other");
}

static void the_exact_value_of_a_path_is_found(void **state)
{
	struct hf_error err = {0};
	struct hf_selector *s = NULL;

	assert_ok(hf_selector_parse_fields("metadata.name=p,spec.a.b=c,status.phase!=x", NULL, &s,
					   &err),
		  &err);
	assert_string_equal(hf_selector_exact(s, "metadata.name"), "p");
	assert_string_equal(hf_selector_exact(s, "spec.a.b"), "c");
	assert_null(hf_selector_exact(s, "spec.a"));
	assert_null(hf_selector_exact(s, "spec.a.b.c"));
	assert_null(hf_selector_exact(s, "status.phase"));
	assert_null(hf_selector_exact(NULL, "metadata.name"));
	hf_selector_destroy(s);
}

static void a_label_selector_object_is_read(void **state)
{
	static const struct {
		const char *selector, *labels;
		bool match;
	} cases[] = {
		{"{}", "{}", true},
		{"{'matchLabels':{'a':'b'}}", "{'a':'b','c':'d'}", true},
		{"{'matchLabels':{'a':'b'}}", "{'a':'c'}", false},
		{"{'matchExpressions':[{'key':'a','operator':'In','values':['x','y']}]}",
		 "{'a':'y'}", true},
		{"{'matchExpressions':[{'key':'a','operator':'NotIn','values':['x']}]}", "{}",
		 true},
		{"{'matchExpressions':[{'key':'a','operator':'Exists'}]}", "{}", false},
		{"{'matchExpressions':[{'key':'a','operator':'DoesNotExist'}]}", "{}", true},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_error err = {0};
		struct hf_selector *s = NULL;
		HF_AUTO_JSON selector = json_of(cases[i].selector);
		HF_AUTO_JSON labels = json_of(cases[i].labels);
		assert_ok(hf_selector_from_json(selector, &s, &err), &err);
		if (hf_selector_match_labels(s, labels) != cases[i].match)
			fail_msg("%s", cases[i].selector);
		hf_selector_destroy(s);
	}
}

static void a_malformed_label_selector_object_is_refused(void **state)
{
	static const char *const bad[] = {
		"{'matchExpressions':[{'key':'a','operator':'Like','values':['x']}]}",
		"{'matchExpressions':[{'key':'a','operator':'In'}]}",
		"{'matchExpressions':[{'key':'a','operator':'Exists','values':['x']}]}",
		"{'matchExpressions':[{'operator':'Exists'}]}",
		"{'matchExpressions':[{'key':'\xC3\xBC','operator':'Exists'}]}",
		"{'matchExpressions':[{'key':'a','operator':'In','values':['b c']}]}",
		"{'matchLabels':{'bad key!/x':'y'}}",
		"{'matchLabels':{'a':'bad value'}}",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		struct hf_error err = {0};
		struct hf_selector *s = NULL;
		HF_AUTO_JSON selector = json_of(bad[i]);
		assert_code(hf_selector_from_json(selector, &s, &err), HF_E_BAD_REQUEST);
		assert_null(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(label_selectors_decide_as_kubernetes_does),
		cmocka_unit_test(a_malformed_label_selector_is_refused_with_its_place),
		cmocka_unit_test(selectors_have_limits),
		cmocka_unit_test(field_selectors_compare_text),
		cmocka_unit_test(an_events_source_may_be_its_controller),
		cmocka_unit_test(a_malformed_field_selector_is_refused),
		cmocka_unit_test(only_known_fields_select),
		cmocka_unit_test(the_exact_value_of_a_path_is_found),
		cmocka_unit_test(a_label_selector_object_is_read),
		cmocka_unit_test(a_malformed_label_selector_object_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
