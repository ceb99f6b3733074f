/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"
#include "api/lines_test.h"

#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "harness/json_text.h"
#include "harness/test.h"

#include <string.h>

#define ARENA_BYTES ((size_t)16 << 20)
#define T "spec.pytorchReplicaSpecs.Worker.template."

/* Returns the errors for a job with this pod template, one a line. The template is JSON with ' in
 * place of ". */
static char *said(const char *template)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name'"
		":'a'},'spec':{'pytorchReplicaSpecs':{'Worker':{'template':%s}}}}",
		template);
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(65536);
	struct hf_field_errors errors;
	HF_AUTO_DOC doc = json_doc_of(text);

	hf_field_errors_init(&errors, arena);
	hf_job_check(doc, NULL, &hf_framework_pytorch, &errors);
	write_lines(&errors, &out);
	return hf_strbuf_detach(&out);
}

#define C(more) "{'spec':{'containers':[{'name':'pytorch','image':'x'" more "}]}}"
#define OF(path, want, got)                                                                        \
	T path ": Invalid value: \"" got "\": " T path " in body must be of type " want ": \"" got \
	       "\"\n"

static void a_wrong_type_anywhere_in_a_template_is_told_as_a_crd_would(void **state)
{
	static const struct {
		const char *template, *text;
	} cases[] = {
		{C(",'env':[{'name':'STEPS','value':'300'}],'command':['ls']"), ""},
		{C(",'env':[{'name':'STEPS','value':300}]"),
		 OF("spec.containers[0].env[0].value", "string", "integer")},
		{C(",'command':'ls'"), OF("spec.containers[0].command", "array", "string")},
		{C(",'command':[1,'a']"), OF("spec.containers[0].command[0]", "string", "integer")},
		{C(",'resources':{'limits':{'cpu':1,'memory':'1.5Gi','nvidia.com/gpu':1.5}}"), ""},
		{C(",'resources':{'limits':{'cpu':true}}"),
		 OF("spec.containers[0].resources.limits.cpu", "integer or string", "boolean")},
		{C(",'resources':{'limits':{'memory':'1GB'}}"),
		 T "spec.containers[0].resources.limits.memory: Invalid value: \"1GB\": not a "
		   "quantity such as 500m, 2 or 1.5Gi\n"},
		{C(",'ports':[{'containerPort':'80'}]"),
		 OF("spec.containers[0].ports[0].containerPort", "integer", "string")},
		{C(",'ports':[{'containerPort':4294967297}]"), T
		 "spec.containers[0].ports[0].containerPort: Invalid value: \"integer\": must fit in "
		 "32 bits\n"},
		{C(",'livenessProbe':{'httpGet':{'port':'http'}}"), ""},
		{"{'metadata':{'labels':{'a':1}},'spec':{'containers':[{'name':'pytorch','image':"
		 "'x'}]}}",
		 OF("metadata.labels.a", "string", "integer")},
		{"{'metadata':{'labels':[]},'spec':{'containers':[{'name':'pytorch','image':'x'}]}}",
		 OF("metadata.labels", "object", "array")},
		{"{'metadata':{'creationTimestamp':null},'spec':{'nodeSelector':null,'containers':"
		 "[{'name':'pytorch','image':'x'}]}}",
		 ""},
		{"{'spec':{'containers':{}}}", OF("spec.containers", "array", "object")},
		{"{'spec':{'containers':['x']}}", OF("spec.containers[0]", "object", "string")},
		{"{'spec':[]}", OF("spec", "object", "array")},
		{"[]", "spec.pytorchReplicaSpecs.Worker.template: Invalid value: \"array\": "
		       "spec.pytorchReplicaSpecs.Worker.template in body must be of type object: "
		       "\"array\"\n"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *text = said(cases[i].template);
		if (!hf_streq(text, cases[i].text))
			fail_msg("%s\nsaid: %swanted: %s", cases[i].template, text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_type_anywhere_in_a_template_is_told_as_a_crd_would),
	};

	return cmocka_run_group_tests_name("types", tests, NULL, NULL);
}
