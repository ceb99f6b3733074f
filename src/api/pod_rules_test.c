/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/lines_test.h"
#include "api/pod_rules.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"
#include "harness/test.h"
#include "json/doc.h"

#include <string.h>

#define ARENA_BYTES ((size_t)16 << 20)

/* Returns the errors for the spec of a pod, one a line. The spec is JSON with ' in place of ". The
 * caller frees the text. */
static char *said(const char *spec)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(65536);
	struct hf_field_errors errors;
	HF_AUTO_DOC doc = json_doc_of(spec);

	hf_field_errors_init(&errors, arena);
	hf_pod_rules_check(hf_doc_json(doc), "spec", &errors);
	write_lines(&errors, &out);
	return hf_strbuf_detach(&out);
}

#define C(more) "{'containers':[{'name':'c','image':'x'" more "}]}"

static void each_problem_is_told_with_its_field(void **state)
{
	static const struct {
		const char *spec, *text;
	} cases[] = {
		{"{}", "spec.containers: Required value\n"},
		{C(""), ""},
		{"{'containers':[{}]}", "spec.containers[0].name: Required value\n"
					"spec.containers[0].image: Required value\n"},
		{"{'containers':[{'name':'c','image':'x'},{'name':'c','image':'x'}]}",
		 "spec.containers[1].name: Duplicate value: \"c\"\n"},
		{C(",'env':[{'value':'x'},{'name':'A=B'}]"),
		 "spec.containers[0].env[0].name: Required value\n"
		 "spec.containers[0].env[1].name: Invalid value: \"A=B\": a valid environment "
		 "variable name must not contain '='\n"},
		{C(",'env':[{'name':'A','value':'x','valueFrom':{'fieldRef':{}}}]"),
		 "spec.containers[0].env[0].valueFrom: Invalid value: null: may not be specified "
		 "when `value` is not empty\n"},
		{C(",'ports':[{},{'containerPort':70000},{'containerPort':1,'name':'A'},"
		   "{'containerPort':1,'name':'abcdefghijklmnop','protocol':'tcp'}]"),
		 "spec.containers[0].ports[0].containerPort: Required value\n"
		 "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between "
		 "1 and 65535, inclusive\n"
		 "spec.containers[0].ports[2].name: Invalid value: \"A\": "},
		{C(",'volumeMounts':[{'name':'v','mountPath':'/v'},{}]"),
		 "spec.containers[0].volumeMounts[0].name: Not found: \"v\"\n"
		 "spec.containers[0].volumeMounts[1].name: Required value\n"
		 "spec.containers[0].volumeMounts[1].mountPath: Required value\n"},
		{C(",'resources':{'limits':{'memory':'-1Gi','cpu':'1GB'}}"),
		 "spec.containers[0].resources.limits[memory]: Invalid value: \"-1Gi\": must be "
		 "greater than or equal to 0\n"
		 "spec.containers[0].resources.limits[cpu]: Invalid value: \"1GB\": quantities must"},
		{C(",'resources':{'limits':{'cpu':'1'},'requests':{'cpu':'2'}}"),
		 "spec.containers[0].resources.requests[cpu]: Invalid value: \"2\": must be less "
		 "than or equal to cpu limit\n"},
		{C(",'resources':{'limits':{'cpu':'1'},'requests':{'cpu':'500m','memory':1}}"), ""},
		{C(",'imagePullPolicy':'always'"),
		 "spec.containers[0].imagePullPolicy: Unsupported value: \"always\": supported "
		 "values: \"Always\", \"IfNotPresent\", \"Never\"\n"},
		{"{'initContainers':[{'name':'i','image':''}],'containers':[{'name':'c',"
		 "'image':'x'}]}",
		 "spec.initContainers[0].image: Required value\n"},
		{"{'volumes':[{'name':'v'},{'name':'v'},{'name':'h','hostPath':{}}],'containers':"
		 "[{'name':'c','image':'x'}]}",
		 "spec.volumes[1].name: Duplicate value: \"v\"\n"
		 "spec.volumes[2].hostPath.path: Required value\n"},
		{"{'activeDeadlineSeconds':0,'terminationGracePeriodSeconds':-1,'hostname':'A',"
		 "'restartPolicy':'never','containers':[{'name':'c','image':'x'}]}",
		 "spec.restartPolicy: Unsupported value: \"never\": supported values: \"Always\", "
		 "\"OnFailure\", \"Never\"\n"
		 "spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or "
		 "equal to 0\n"
		 "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
		 "inclusive\n"
		 "spec.hostname: Invalid value: \"A\": "},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = said(cases[i].spec);
		if (*cases[i].text == '\0' ? *text != '\0'
					   : !hf_str_has_prefix(text, cases[i].text))
			fail_msg("%s\nsaid: %swanted: %s", cases[i].spec, text, cases[i].text);
	}
}

static void more_than_can_be_told_is_counted(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_JSON spec = hf_json_object();
	struct hf_field_errors errors;

	(void)state;
	for (int i = 0; i < 100; i++)
		hf_json_append(hf_json_ensure_array(spec, "containers"), hf_json_object());
	hf_field_errors_init(&errors, arena);
	hf_pod_rules_check(spec, "spec", &errors);
	assert_int_equal(errors.len, HF_FIELD_ERRORS_MAX);
	assert_int_equal(errors.len + errors.dropped, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_problem_is_told_with_its_field),
		cmocka_unit_test(more_than_can_be_told_is_counted),
	};

	return cmocka_run_group_tests_name("pod_rules", tests, NULL, NULL);
}
