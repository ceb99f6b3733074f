/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include "api/remediation.h"
#include "base/str.h"

#include <string.h>

/*
 * Acts under an API server that refuses a request of the operator, and pods that may not be evicted. The node of each test is n003.
 */

#define NODE 3
#define NAME "n003"
#define ACT NAME "-1"
#define MEND "{'mode':'remediate','mend':{}," WIDE "}"

/* A request that the API server refuses. ns NULL: any. */
struct refused {
	const char *plural;
	enum hf_verb verb;
	const char *ns, *phase;
};
static const struct refused list_acts = {"remediations", HF_VERB_LIST, NULL, ""};
static const struct refused *refused;
static int refusal = HF_E_FORBIDDEN;

static bool refuse(const struct rw *w, const struct hf_request *request, struct hf_fault *ret_fault)
{
	if (!hf_streq(request->resource->plural, refused->plural) ||
	    request->verb != refused->verb || !hf_str_is_empty(request->subresource) ||
	    (refused->ns != NULL && !hf_streq(request->ns, refused->ns)))
		return false;
	*ret_fault = (struct hf_fault){.refuse = refusal, .message = "no right"};
	return true;
}

/* The message of the act names the refusal, and the act goes on once the right is there. */
static void a_missing_right_is_named(void **state)
{
	static const struct refused all[] = {
		{"daemonsets", HF_VERB_GET, NULL, "Pending"},
		{"nodemaintenances", HF_VERB_LIST, NULL, "Pending"},
		{"leases", HF_VERB_GET, HF_MEND_NAMESPACE, "Pending"},
		{"leases", HF_VERB_CREATE, HF_MEND_NAMESPACE, "Pending"},
		{"pods", HF_VERB_GET, HF_MEND_NAMESPACE, "Pending"},
		{"pods", HF_VERB_LIST, NULL, "Draining"},
		{"pods", HF_VERB_CREATE, HF_MEND_NAMESPACE, "Approved"},
		{"devicehealths", HF_VERB_PATCH, NULL, "Verifying"},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(all); i++) {
		unsigned long long writes;
		struct rw *w;
		struct ra *a;

		rw_setup((void **)&w);
		a = ra_begin(w, 10, MEND);
		refused = &all[i];
		w->fault = refuse;
		rw_say(w, NODE, RW_RESET);
		rw_run(w, 3 * HF_MINUTE);
		if (!hf_streq(ra_phase(a, NODE), all[i].phase))
			fail_msg("%s: %s", all[i].plural, ra_phase(a, NODE));
		rw_expect_message(w, ACT, "refuses a request of the operator: no right");
		/* The message is written once. */
		writes = w->writes;
		rw_run(w, 5 * HF_MINUTE);
		assert_true(w->writes - writes < 30);
		w->fault = NULL;
		rw_run(w, 10 * HF_MINUTE);
		assert_string_equal(ra_phase(a, NODE), "Succeeded");
		assert_string_equal(rw_message(w, ACT),
				    "1 device back with the same UUID and no new fault");
		rw_teardown((void **)&w);
	}
}

/* The pod has another GPU of the node than the one that is going to fail. */
static struct ra *begin_beside_pod(struct rw *w, const char *policy)
{
	struct ra *a = ra_create(w);

	w->gpus = 2;
	w->sick[NODE] = 2;
	rw_fleet(w, 10);
	rw_pod(w, "serve", NODE, "ReplicaSet");
	rw_policy(w, policy);
	rw_start(w);
	rw_run(w, 5 * HF_SECOND);
	return a;
}

static bool refuse_evictions(const struct rw *w, const struct hf_request *request,
			     struct hf_fault *ret_fault)
{
	(void)w;
	if (!hf_streq(request->subresource, "eviction"))
		return false;
	*ret_fault = (struct hf_fault){.refuse = HF_E_INTERNAL,
				       .message = "This pod has more than one PodDisruptionBudget"};
	return true;
}

/* No later try succeeds either. */
static void a_pod_that_cannot_be_evicted_has_its_reason(void **state)
{
	struct rw *w = *state;
	struct ra *a = begin_beside_pod(w, MEND);

	w->fault = refuse_evictions;
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, 3 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Draining");
	rw_expect_message(w, ACT, "default/serve: This pod has more than one PodDisruptionBudget");
}

static void a_pod_that_the_policy_leaves_out_has_its_reason(void **state)
{
	struct rw *w = *state;
	struct ra *a = begin_beside_pod(
		w, "{'mode':'remediate','mend':{},'drain':{'podSelector':{'matchLabels':{'app':"
		   "'train'}}}," WIDE "}");

	/* A person asks before. */
	w->people_ask = true;
	ra_request(a, NODE, 1, "reboot", ",'policy':'p','dryRun':true");
	rw_run(w, HF_SECOND);
	rw_expect_message(w, ACT, "1 of 1 pod would stay: default/serve: spec.drain.podSelector");
	rw_say(w, NODE, RW_REBOOT);
	rw_run(w, 3 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Draining");
	rw_expect_message(w, NAME "-2", "default/serve: spec.drain.podSelector of the policy");
	assert_false(rw_is_evicted(w, "default", "serve"));
}

static const char *text_of_node(struct rw *w, const char *key)
{
	const struct hf_json *policy = rw_get(w, &hf_healthpolicies, NULL, "p");
	const struct hf_json *node = hf_json_item(hf_json_path(policy, "status", "nodes", NULL), 0);

	return hf_str_or(hf_json_path_str(node, key, NULL), "");
}

static void a_missing_right_to_create_acts_is_told(void **state)
{
	static const struct refused create = {"remediations", HF_VERB_CREATE, NULL, ""};
	struct rw *w = *state;
	struct ra *a;

	refused = &create;
	w->fault = refuse;
	a = ra_begin(w, 10, MEND);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_true(rw_event(w, "MendRefused", NAME));
	assert_string_equal(text_of_node(w, "answer"), "held");
	assert_string_equal(
		text_of_node(w, "why"),
		"no act can be created; are the rights of 'holdfast manifests --mender' "
		"there? no right");
	w->fault = NULL;
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(a, NODE), "Succeeded");
	assert_null(strstr(text_of_node(w, "why"), "no right"));
}

/* A new leader that cannot list Remediations does not know of the act on the node. */
static void expect_no_release(struct rw *w, int code, int ill)
{
	rw_stop(w);
	refused = &list_acts;
	refusal = code;
	w->fault = refuse;
	rw_say(w, NODE, ill);
	rw_start(w);
	for (int minute = 0; minute < 5; minute++) {
		rw_run(w, HF_MINUTE);
		assert_true(rw_tainted(w, NODE));
	}
	refusal = HF_E_FORBIDDEN;
}

static void nobody_releases_before_acts_are_listed(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_all(a, RA_NO_START, RA_NO_START);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(ra_phase(a, NODE), "Approved");
	expect_no_release(w, HF_E_UNAVAILABLE, RW_WELL);
}

static void without_the_right_to_list_acts_theirs_is_not_released(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	w->people_ask = true;
	ra_all(a, RA_NO_START, RA_NO_START);
	ra_request(a, NODE, 1, "reboot", "");
	rw_run(w, 20 * HF_SECOND);
	assert_string_equal(ra_phase(a, NODE), "Approved");
	expect_no_release(w, HF_E_FORBIDDEN, RW_WELL);
}

/* The quarantine comes, and the node shows why no act follows. */
static void expect_no_act(struct rw *w)
{
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 5 * HF_MINUTE);
	assert_true(rw_tainted(w, NODE));
	rw_expect_next(w, NODE, "held reset-device no-remedy");
	assert_true(rw_event(w, "RemediationBlocked", NAME));
	assert_null(rw_get(w, &hf_remediations, NULL, ACT));
}

static void without_the_right_to_list_acts_none_is_created(void **state)
{
	struct rw *w = *state;

	refused = &list_acts;
	w->fault = refuse;
	(void)ra_begin(w, 10, MEND);
	expect_no_act(w);
}

/* The default rights name no Remediations. What would mend a node is shown all the same. */
static void without_the_right_to_list_acts_a_plan_is_shown(void **state)
{
	struct rw *w = *state;

	refused = &list_acts;
	w->fault = refuse;
	(void)ra_begin(w, 10, "{'mode':'quarantine'," WIDE "}");
	rw_say(w, NODE, RW_RESET);
	rw_run(w, 5 * HF_MINUTE);
	assert_true(rw_tainted(w, NODE));
	rw_expect_next(w, NODE, "would reset-device");
}

/* A newer version has begun an act of which this one knows too little. */
static void beside_an_act_that_nobody_can_read_none_is_created(void **state)
{
	struct rw *w = *state;
	struct ra *a = ra_begin(w, 10, MEND);

	ra_request(a, NODE + 1, 1, "reset-device", ",'deadlineSeconds':'long'");
	rw_patch_status(w, &hf_remediations, "n004-1", "{'status':{'phase':'Draining'}}");
	expect_no_act(w);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_right_is_named),
		T(a_pod_that_cannot_be_evicted_has_its_reason),
		T(a_pod_that_the_policy_leaves_out_has_its_reason),
		T(a_missing_right_to_create_acts_is_told),
		T(nobody_releases_before_acts_are_listed),
		T(without_the_right_to_list_acts_theirs_is_not_released),
		T(without_the_right_to_list_acts_none_is_created),
		T(without_the_right_to_list_acts_a_plan_is_shown),
		T(beside_an_act_that_nobody_can_read_none_is_created),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
