/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/plane.h"

#include "base/str.h"
#include "memstore/engine_internal.h"

#include <stdio.h>
#include <string.h>

static const char *qos_of(const char *spec)
{
	static char qos[32];
	HF_AUTO_DOC doc = json_doc("{'spec':%s}", spec);
	HF_AUTO_JSON pod = hf_doc_copy_json(doc);

	hf_pod_init(pod);
	snprintf(qos, sizeof(qos), "%s", hf_json_path_str(pod, "status", "qosClass", NULL));
	return qos;
}

#define ONE(resources) "{'containers':[{'resources':" resources "}]}"
#define ALL "'cpu':'1','memory':'1Gi'"

static void the_class_of_service_follows_from_requests_and_limits(void **state)
{
	static const struct {
		const char *spec, *qos;
	} cases[] = {
		{"{}", "BestEffort"},
		{ONE("{}"), "BestEffort"},
		{ONE("{'limits':{" ALL "}}"), "Guaranteed"},
		{ONE("{'limits':{" ALL "},'requests':{" ALL "}}"), "Guaranteed"},
		{ONE("{'limits':{" ALL "},'requests':{'cpu':'500m'}}"), "Burstable"},
		{ONE("{'limits':{'cpu':'1'}}"), "Burstable"},
		{ONE("{'requests':{'memory':'1Gi'}}"), "Burstable"},
		/* Only cpu and memory count. */
		{ONE("{'limits':{'nvidia.com/gpu':'1'}}"), "BestEffort"},
		/* Guaranteed needs limits in every container. */
		{"{'containers':[{'resources':{'limits':{" ALL "}}},{}]}", "Burstable"},
		{"{'containers':[{'resources':{'limits':{" ALL "}}}],'initContainers':[{}]}",
		 "Burstable"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		if (!hf_streq(qos_of(cases[i].spec), cases[i].qos))
			fail_msg("%s: %s", cases[i].spec, qos_of(cases[i].spec));
}

static void grace_is_the_requests_or_the_pods(void **state)
{
	static const struct {
		const char *pod;
		int64_t asked, grace;
	} cases[] = {
		{"{'spec':{'nodeName':'n'}}", HF_GRACE_DEFAULT, 30},
		{"{'spec':{'nodeName':'n','terminationGracePeriodSeconds':5}}", HF_GRACE_DEFAULT,
		 5},
		{"{'spec':{'nodeName':'n','terminationGracePeriodSeconds':5}}", 60, 60},
		{"{'spec':{'nodeName':'n','terminationGracePeriodSeconds':5}}", 0, 0},
		{"{'spec':{'nodeName':'n','terminationGracePeriodSeconds':-3}}", HF_GRACE_DEFAULT,
		 1},
		{"{'spec':{}}", 60, 0},
		{"{'spec':{'nodeName':'n'},'status':{'phase':'Running'}}", 60, 60},
		{"{'spec':{'nodeName':'n'},'status':{'phase':'Failed'}}", 60, 0},
		{"{'spec':{'nodeName':'n'},'status':{'phase':'Succeeded'}}", HF_GRACE_DEFAULT, 0},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_DOC pod = json_doc("%s", cases[i].pod);
		int64_t grace = hf_pod_grace_seconds(hf_doc_json(pod), cases[i].asked);
		if (grace != cases[i].grace)
			fail_msg("%s: %lld", cases[i].pod, (long long)grace);
	}
}

static void few_fields_of_a_pod_may_change(void **state)
{
	static const struct {
		const char *patch;
		bool allowed;
	} cases[] = {
		{"{'metadata':{'labels':{'a':'b'},'annotations':{'c':'d'}}}", true},
		{"{'spec':{'activeDeadlineSeconds':5}}", true},
		{"{'spec':{'tolerations':[{'operator':'Exists'}]}}", true},
		{"{'spec':{'containers':[{'name':'c','image':'other'}]}}", true},
		{"{'spec':{'containers':[{'name':'d','image':'i'}]}}", false},
		{"{'spec':{'containers':[{'name':'c','image':'i','command':['x']}]}}", false},
		{"{'spec':{'nodeName':'n'}}", false},
		{"{'spec':{'nodeSelector':{'a':'b'}}}", false},
		{"{'spec':{'restartPolicy':'Never'}}", false},
		{"{'spec':null}", false},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct plane p;
		AUTO_OUTCOME o = {0};
		plane_open(&p, NULL, false);
		assert_int_equal(create_pod(&p.w, "default", "p", &o), 0);
		int code = merge(&p.w, AT(&hf_pods, "default", "p"), &o, "%s", cases[i].patch);
		if (code != (cases[i].allowed ? 0 : HF_E_INVALID))
			fail_msg("%s: %s", cases[i].patch, o.message);
		plane_close(&p);
	}
}

static void a_deadline_may_be_added_and_lowered(void **state)
{
	static const struct {
		const char *patch;
		bool allowed;
	} steps[] = {
		{"{'spec':{'activeDeadlineSeconds':50}}", true},
		{"{'spec':{'activeDeadlineSeconds':51}}", false},
		{"{'spec':{'activeDeadlineSeconds':null}}", false},
		{"{'spec':{'activeDeadlineSeconds':1}}", true},
		{"{'metadata':{'labels':{'a':'b'}}}", true},
	};
	struct plane p;
	AUTO_OUTCOME made = {0};

	plane_open(&p, NULL, false);
	assert_int_equal(create_pod(&p.w, "default", "p", &made), 0);
	for (size_t i = 0; i < HF_ARRAY_LEN(steps); i++) {
		AUTO_OUTCOME o = {0};
		int code = merge(&p.w, AT(&hf_pods, "default", "p"), &o, "%s", steps[i].patch);
		if (code != (steps[i].allowed ? 0 : HF_E_INVALID))
			fail_msg("%s: %s", steps[i].patch, o.message);
	}
	plane_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_class_of_service_follows_from_requests_and_limits),
		cmocka_unit_test(grace_is_the_requests_or_the_pods),
		cmocka_unit_test(few_fields_of_a_pod_may_change),
		cmocka_unit_test(a_deadline_may_be_added_and_lowered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
