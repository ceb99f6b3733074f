/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"

#include "base/str.h"
#include "scheduler/fit_internal.h"

#include <stdio.h>
#include <string.h>

/* Tests of each filter alone. Input: documents of a pod and a node. */

/* Returns the reason why the pod does not fit on the node; NULL: the pod fits. */
static const char *fit_problem(const char *pod_text, const char *node_text, const char *used_text)
{
	static char buf[HF_FIT_REASON_MAX];
	static char result[HF_FIT_REASON_MAX];
	HF_AUTO_DOC pod = json_doc("%s", pod_text);
	HF_AUTO_DOC node = json_doc("%s", node_text);
	HF_AUTO_DOC other = json_doc("%s", used_text ? used_text : "{'spec':{'containers':[]}}");
	struct hf_amounts requests;
	struct hf_fit_node fit = {.node = hf_doc_json(node)};

	if (used_text)
		hf_fit_requests(hf_doc_json(other), &fit.used);
	hf_fit_requests(hf_doc_json(pod), &requests);
	const char *p = hf_fit_problem(hf_doc_json(pod), &requests, &fit, buf);
	if (!p)
		return NULL;
	snprintf(result, sizeof(result), "%s", p);
	return result;
}

struct fit_case {
	const char *pod, *node, *problem; /* problem NULL: the pod fits */
};

static void check_cases(const struct fit_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *p = fit_problem(cases[i].pod, cases[i].node, NULL);
		if (!hf_streq(p, cases[i].problem))
			fail_msg("%s on %s: %s, not %s", cases[i].pod, cases[i].node,
				 p ? p : "fits", cases[i].problem ? cases[i].problem : "fits");
	}
}

#define NO_MATCH "node(s) didn't match Pod's node affinity/selector"
#define NODE "{'metadata':{'name':'n1','labels':{'zone':'a','gpus':'8'}}}"

static void selectors_ask_for_labels(void **state)
{
	static const struct fit_case cases[] = {
		{"{'spec':{}}", NODE, NULL},
		{"{'spec':{'nodeSelector':{'zone':'a'}}}", NODE, NULL},
		{"{'spec':{'nodeSelector':{'zone':'a','gpus':'8'}}}", NODE, NULL},
		{"{'spec':{'nodeSelector':{'zone':'b'}}}", NODE, NO_MATCH},
		{"{'spec':{'nodeSelector':{'rack':'1'}}}", NODE, NO_MATCH},
		{"{'spec':{'nodeSelector':{'zone':'a'}}}", "{'metadata':{'name':'n'}}", NO_MATCH},
	};

	check_cases(cases, HF_ARRAY_LEN(cases));
}

#define AFFINITY(terms)                                                                            \
	"{'spec':{'affinity':{'nodeAffinity':{"                                                    \
	"'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[" terms "]}}}}}"
#define EXPRESSION(key, op, values)                                                                \
	"{'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" values "]}]}"
#define FIELD(op, values)                                                                          \
	"{'matchFields':[{'key':'metadata.name','operator':'" op "','values':[" values "]}]}"

static void affinity_terms_are_alternatives(void **state)
{
	static const struct fit_case cases[] = {
		{AFFINITY(EXPRESSION("zone", "In", "'a','b'")), NODE, NULL},
		{AFFINITY(EXPRESSION("zone", "In", "'b'")), NODE, NO_MATCH},
		{AFFINITY(EXPRESSION("zone", "NotIn", "'b'")), NODE, NULL},
		{AFFINITY(EXPRESSION("zone", "NotIn", "'a'")), NODE, NO_MATCH},
		{AFFINITY(EXPRESSION("rack", "NotIn", "'a'")), NODE, NULL},
		{AFFINITY(EXPRESSION("zone", "Exists", "")), NODE, NULL},
		{AFFINITY(EXPRESSION("rack", "Exists", "")), NODE, NO_MATCH},
		{AFFINITY(EXPRESSION("rack", "DoesNotExist", "")), NODE, NULL},
		{AFFINITY(EXPRESSION("gpus", "Gt", "'4'")), NODE, NULL},
		{AFFINITY(EXPRESSION("gpus", "Lt", "'8'")), NODE, NO_MATCH},
		{AFFINITY(EXPRESSION("zone", "Gt", "'4'")), NODE, NO_MATCH},
		{AFFINITY(EXPRESSION("zone", "Like", "'a'")), NODE, NO_MATCH},
		{AFFINITY(FIELD("In", "'n1'")), NODE, NULL},
		{AFFINITY(FIELD("NotIn", "'n1','n2'")), NODE, NO_MATCH},
		{AFFINITY(FIELD("NotIn", "'n2'")), NODE, NULL},
		{AFFINITY(EXPRESSION("zone", "In", "'b'") "," FIELD("In", "'n1'")), NODE, NULL},
		{AFFINITY("{'matchExpressions':[{'key':'zone','operator':'In','values':['a']}],"
			  "'matchFields':[{'key':'metadata.name','operator':'NotIn',"
			  "'values':['n1']}]}"),
		 NODE, NO_MATCH},
		/* An empty term matches no node; neither does an empty list of terms. */
		{AFFINITY("{}"), NODE, NO_MATCH},
		{AFFINITY(""), NODE, NO_MATCH},
		/* Preferred affinity does not exclude a node. */
		{"{'spec':{'affinity':{'nodeAffinity':{"
		 "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'preference':" EXPRESSION(
			 "zone", "In", "'b'") "}]}}}}",
		 NODE, NULL},
	};

	check_cases(cases, HF_ARRAY_LEN(cases));
}

#define TAINTED(effect)                                                                            \
	"{'metadata':{'name':'n'},'spec':{'taints':[{'key':'k','value':'v','effect':'" effect      \
	"'}]}}"
#define TOLERATES(toleration) "{'spec':{'tolerations':[" toleration "]}}"
#define TAINT_PROBLEM "node(s) had untolerated taint {k: v}"

static void taints_keep_away_pods_without_toleration(void **state)
{
	static const struct fit_case cases[] = {
		{"{'spec':{}}", TAINTED("NoSchedule"), TAINT_PROBLEM},
		{"{'spec':{}}", TAINTED("NoExecute"), TAINT_PROBLEM},
		{"{'spec':{}}", TAINTED("PreferNoSchedule"), NULL},
		{TOLERATES("{'key':'k','operator':'Exists'}"), TAINTED("NoSchedule"), NULL},
		{TOLERATES("{'operator':'Exists'}"), TAINTED("NoExecute"), NULL},
		{TOLERATES("{'key':'k','value':'v'}"), TAINTED("NoSchedule"), NULL},
		{TOLERATES("{'key':'k','operator':'Equal','value':'w'}"), TAINTED("NoSchedule"),
		 TAINT_PROBLEM},
		{TOLERATES("{'key':'other','operator':'Exists'}"), TAINTED("NoSchedule"),
		 TAINT_PROBLEM},
		{TOLERATES("{'key':'k','operator':'Exists','effect':'NoExecute'}"),
		 TAINTED("NoSchedule"), TAINT_PROBLEM},
		{TOLERATES("{'key':'x','operator':'Exists'},{'key':'k','operator':'Exists'}"),
		 TAINTED("NoSchedule"), NULL},
		{TOLERATES("{'operator':'Equal','value':'v'}"), TAINTED("NoSchedule"),
		 TAINT_PROBLEM},
	};

	check_cases(cases, HF_ARRAY_LEN(cases));
}

static void a_cordoned_node_takes_no_pods(void **state)
{
	static const char cordoned[] = "{'metadata':{'name':'n'},'spec':{'unschedulable':true}}";
	static const struct fit_case cases[] = {
		{"{'spec':{}}", cordoned, "node(s) were unschedulable"},
		{"{'spec':{}}", "{'metadata':{'name':'n'},'spec':{'unschedulable':false}}", NULL},
		{TOLERATES("{'key':'node.kubernetes.io/unschedulable','operator':'Exists'}"),
		 cordoned, NULL},
	};

	check_cases(cases, HF_ARRAY_LEN(cases));
}

#define ROOM(what) "{'metadata':{'name':'n'},'status':{'allocatable':{" what "}}}"
#define ASKS(what) "{'spec':{'containers':[{'resources':{'requests':{" what "}}}]}}"

static void requests_must_fit_the_free_amounts(void **state)
{
	static const struct fit_case cases[] = {
		{ASKS("'cpu':'2'"), ROOM("'cpu':'2'"), NULL},
		{ASKS("'cpu':'2001m'"), ROOM("'cpu':'2'"), "Insufficient cpu"},
		{ASKS("'memory':'1Gi'"), ROOM("'memory':'1024Mi'"), NULL},
		{ASKS("'memory':'1Gi'"), ROOM("'memory':'1G'"), "Insufficient memory"},
		{ASKS("'nvidia.com/gpu':1"), ROOM("'cpu':'2'"), "Insufficient nvidia.com/gpu"},
		{ASKS("'nvidia.com/gpu':'1'"), ROOM("'nvidia.com/gpu':'8'"), NULL},
		{ASKS("'cpu':0"), ROOM(""), NULL},
		/* A limit without a request counts as request. */
		{"{'spec':{'containers':[{'resources':{'limits':{'cpu':'3'}}}]}}",
		 ROOM("'cpu':'2'"), "Insufficient cpu"},
		{"{'spec':{'containers':[{'resources':{'limits':{'cpu':'3'},"
		 "'requests':{'cpu':'1'}}}]}}",
		 ROOM("'cpu':'2'"), NULL},
		/* The requests of the containers add up; of the init containers, only the largest
		 * request counts. */
		{"{'spec':{'containers':[{'resources':{'requests':{'cpu':'1'}}},"
		 "{'resources':{'requests':{'cpu':'1500m'}}}]}}",
		 ROOM("'cpu':'2'"), "Insufficient cpu"},
		{"{'spec':{'containers':[{'resources':{'requests':{'cpu':'1'}}}],"
		 "'initContainers':[{'resources':{'requests':{'cpu':'2'}}}]}}",
		 ROOM("'cpu':'2'"), NULL},
		{"{'spec':{'containers':[{'resources':{'requests':{'cpu':'1'}}}],"
		 "'initContainers':[{'resources':{'requests':{'cpu':'3'}}}]}}",
		 ROOM("'cpu':'2'"), "Insufficient cpu"},
		/* A sidecar runs beside the containers, so its request is added. */
		{"{'spec':{'containers':[{'resources':{'requests':{'cpu':'1'}}}],"
		 "'initContainers':[{'restartPolicy':'Always',"
		 "'resources':{'requests':{'cpu':'1500m'}}}]}}",
		 ROOM("'cpu':'2'"), "Insufficient cpu"},
		{"{'spec':{}}", ROOM("'pods':'0'"), "Too many pods"},
		{"{'spec':{}}", ROOM("'pods':'1'"), NULL},
		{ASKS("'cpu':'9999999999999999999E'"), ROOM("'cpu':'2'"), "Insufficient cpu"},
	};

	check_cases(cases, HF_ARRAY_LEN(cases));
}

static void running_pods_use_resources(void **state)
{
	assert_null(fit_problem(ASKS("'cpu':'1'"), ROOM("'cpu':'2'"), ASKS("'cpu':'1'")));
	assert_string_equal(
		fit_problem(ASKS("'cpu':'1'"), ROOM("'cpu':'2'"), ASKS("'cpu':'1100m'")),
		"Insufficient cpu");
	assert_string_equal(fit_problem(ASKS(""), ROOM("'pods':'1'"), ASKS("")), "Too many pods");
}

static void unsupported_requirements_are_reported(void **state)
{
	static const char pod[] =
		"{'spec':{'affinity':{'podAntiAffinity':{"
		"'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'zone'}]}}}}";

	assert_non_null(strstr(fit_problem(pod, NODE, NULL),
			       "does not support required pod (anti-)affinity"));
}

static void amounts_have_a_limit_and_do_not_overflow(void **state)
{
	struct hf_amounts a = {0};
	static char texts[HF_FIT_RESOURCES_MAX + 4][8];

	hf_amounts_add(&a, "cpu", INT64_MAX);
	hf_amounts_add(&a, "cpu", 5);
	assert_int_equal(hf_amounts_get(&a, "cpu"), INT64_MAX);
	assert_int_equal(hf_amounts_get(&a, "other"), 0);
	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		snprintf(texts[i], sizeof(texts[i]), "r%zu", i);
		hf_amounts_add(&a, texts[i], 1);
	}
	assert_int_equal(a.n, HF_FIT_RESOURCES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selectors_ask_for_labels),
		cmocka_unit_test(affinity_terms_are_alternatives),
		cmocka_unit_test(taints_keep_away_pods_without_toleration),
		cmocka_unit_test(a_cordoned_node_takes_no_pods),
		cmocka_unit_test(requests_must_fit_the_free_amounts),
		cmocka_unit_test(running_pods_use_resources),
		cmocka_unit_test(unsupported_requirements_are_reported),
		cmocka_unit_test(amounts_have_a_limit_and_do_not_overflow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
