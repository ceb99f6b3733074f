/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"
#include "scheduler/scheduler.h"

#include <stdio.h>
#include <string.h>

/* Tests which fields of a pod's spec rule out a node for ever. */

static char seen[2048];

static void note(void *arg, const char *field, const char *text)
{
	size_t len = strlen(seen);

	(void)arg;
	(void)snprintf(seen + len, sizeof(seen) - len, "%s: %s\n", field, text);
}

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static void each_field_that_rules_the_node_out_is_named(void **state)
{
	static const struct {
		const char *spec, *findings;
	} rows[] = {
		{"{}", ""},
		{"{'schedulerName':'','nodeName':'n1','schedulingGates':[],'nodeSelector':{'os':'linux'}}",
		 ""},
		{"{'schedulerName':'default-scheduler','affinity':{'nodeAffinity':{'" REQUIRED
		 "':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'os','operator':'Exists'}]}]}},"
		 "'podAntiAffinity':{'" PREFERRED "':[{'weight':1}]}}}",
		 ""},
		{"{'schedulerName':'volcano'}",
		 "schedulerName: the pods wait for the scheduler 'volcano', and only default-scheduler runs "
		 "here; remove the field\n"},
		{"{'nodeName':'gpu-7'}",
		 "nodeName: the pods run on node 'gpu-7' only, and this machine is node 'n1'; remove the "
		 "field\n"},
		{"{'schedulingGates':[{'name':'quota'}]}",
		 "schedulingGates: the pods wait until the gate 'quota' is removed, and no program here "
		 "removes it; remove the field\n"},
		{"{'nodeSelector':{'os':'linux','disk':'ssd'}}",
		 "nodeSelector: the pods run only on nodes with the label 'disk=ssd', which node 'n1', this "
		 "machine, does not have; remove the label\n"},
		{"{'affinity':{'nodeAffinity':{'" REQUIRED
		 "':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'disk','operator':'Exists'}]}]}}}}",
		 "affinity.nodeAffinity: no term of " REQUIRED
		 " matches node 'n1', this machine; remove the terms\n"},
		{"{'schedulerName':'x','affinity':{'podAntiAffinity':{'" REQUIRED
		 "':[{'topologyKey':'host'}]}}}",
		 "schedulerName: the pods wait for the scheduler 'x', and only default-scheduler runs here; "
		 "remove the field\naffinity.podAntiAffinity: the scheduler of this machine's one node does "
		 "not support " REQUIRED ", so the pods would wait for ever; remove it\n"},
	};
	HF_AUTO_DOC node = json_doc("{'metadata':{'name':'n1','labels':{'os':'linux'}}}");

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		HF_AUTO_DOC spec = json_doc("%s", rows[i].spec);

		seen[0] = '\0';
		hf_placement_check(hf_doc_json(spec), hf_doc_json(node), note, NULL);
		assert_string_equal(seen, rows[i].findings);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_that_rules_the_node_out_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
