/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"
#include "sim/remedy_dra_store.h"

#include "base/str.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

/* Single devices out of use: DeviceTaintRules for the devices of a DRA driver, in the place of a taint on the node. */

#define DEVICE "{'mode':'quarantine','quarantine':'Device'," WIDE "}"
#define OBSERVE "{'mode':'observe','quarantine':'Device'," WIDE "}"

struct gpu {
	const char *name, *uuid;
};

/* The driver of the node publishes these devices. */
static void publish_gpus(struct dra *dra, int node, int generation, const struct gpu *first,
			 const struct gpu *second)
{
	char name[16], text[512];

	rw_name(node, name);
	snprintf(
		text, sizeof(text),
		"{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'s-%s',"
		"'uid':'u-%s','resourceVersion':'1'},'spec':{'driver':'gpu.example.com','nodeName':'%s',"
		"'pool':{'name':'%s','generation':%d,'resourceSliceCount':1},'devices':[{'name':'%s',"
		"'attributes':{'uuid':{'string':'%s'}}},{'name':'%s','attributes':{'uuid':{'string':"
		"'%s'}}}]}}",
		name, name, name, name, generation, first->name, first->uuid, second->name,
		second->uuid);
	dra_publish(dra, name, text);
}

static void publish(struct dra *dra, int node, int generation, const char *device, const char *uuid)
{
	publish_gpus(dra, node, generation, &(struct gpu){device, uuid},
		     &(struct gpu){"other", "GPU-other"});
}

/* The driver publishes both GPUs that the agent of the node reports. */
static void publish_two(struct dra *dra, int node)
{
	char first[16], second[16];

	snprintf(first, sizeof(first), "GPU-n%03d", node);
	snprintf(second, sizeof(second), "GPU-n%03d-1", node);
	publish_gpus(dra, node, 2, &(struct gpu){"gpu-0", first}, &(struct gpu){"gpu-1", second});
}

static struct dra *begin(struct rw *w, int nodes, const char *policy)
{
	struct dra *dra = dra_create(w);
	char name[16], uuid[24];

	for (int i = 0; i < nodes; i++) {
		rw_name(i, name);
		snprintf(uuid, sizeof(uuid), "GPU-%s", name);
		publish(dra, i, 1, "gpu-0", uuid);
	}
	rw_begin(w, nodes, policy);
	return dra;
}

static void a_failed_device_goes_and_comes_back(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 10, DEVICE);

	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_int_equal(dra->rules_len, 1);
	assert_string_equal(dra_device_of(dra, "n003"), "gpu-0");
	assert_string_equal(dra_effect_of(dra, "n003"), "NoSchedule");
	assert_false(rw_tainted(w, 3));
	assert_true(dra_is_marked(w, "n003"));
	assert_string_equal(rw_status(w, "counts", "quarantined"), "1");
	assert_string_equal(dra_devices_out(w, "n003"), "GPU-n003");
	rw_say(w, 3, RW_PROBATION);
	rw_run(w, 5 * HF_MINUTE);
	assert_int_equal(dra->rules_len, 1);
	rw_say(w, 3, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_int_equal(dra->rules_len, 0);
	assert_false(dra_is_marked(w, "n003"));
	assert_string_equal(dra_devices_out(w, "n003"), "");
	assert_int_equal(dra->creates, 1);
	assert_int_equal(dra->deletes, 1);
	assert_int_equal(w->met.quarantines, 0);
}

/* A pass has read what the agent said before, and waits for the slices. */
static void a_device_that_recovers_during_a_pass_comes_back(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 10, DEVICE);

	rw_say(w, 3, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_int_equal(dra->rules_len, 1);
	dra->delay = 3 * HF_SECOND;
	rw_patch(w, &hf_nodes, "n003", "{'metadata':{'labels':{'rack':'other'}}}");
	rw_run(w, HF_SECOND);
	rw_say(w, 3, RW_WELL);
	rw_run(w, 12 * HF_SECOND);
	assert_int_equal(dra->rules_len, 0);
	assert_false(dra_is_marked(w, "n003"));
}

static void an_older_cluster_serves_v1beta2(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 3, DEVICE);

	/* The first operator knows v1; the next one finds another version. */
	rw_stop(w);
	dra->serves = "v1beta2";
	rw_start(w);
	rw_say(w, 1, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(dra_device_of(dra, "n001"), "gpu-0");
	assert_string_equal(hf_json_path_str(hf_doc_json(dra->rules[0]), "apiVersion", NULL),
			    "resource.k8s.io/v1beta2");
}

static void without_dra_the_node_is_taken_out(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 3, DEVICE);

	rw_stop(w);
	dra->serves = NULL;
	rw_start(w);
	rw_say(w, 1, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 1));
	assert_int_equal(dra->rules_len, 0);
	rw_say(w, 1, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_false(rw_tainted(w, 1));
}

/* No slice has the device, a fault concerns the whole node, the API server refuses the rule. */
static void what_no_rule_can_say_takes_the_node(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 5, DEVICE);

	publish(dra, 1, 2, "gpu-0", "GPU-elsewhere");
	rw_say(w, 1, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 1));
	dra->refuse_rules = HF_E_FORBIDDEN;
	rw_say(w, 2, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_true(rw_tainted(w, 2));
	assert_int_equal(dra->rules_len, 0);
}

static void a_mode_that_observes_tries_rules_without_effect(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 5, OBSERVE);

	rw_say(w, 1, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(dra_effect_of(dra, "n001"), "None");
	assert_false(dra_is_marked(w, "n001"));
	rw_say(w, 1, RW_WELL);
	rw_run(w, HF_MINUTE);
	assert_int_equal(dra->rules_len, 0);
}

/* The rule names a device, and the driver gives that name to another GPU. */
static void a_renumbered_device_is_followed(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 5, DEVICE);

	rw_say(w, 1, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(dra_device_of(dra, "n001"), "gpu-0");
	publish(dra, 1, 2, "gpu-7", "GPU-n001");
	rw_run(w, 6 * HF_MINUTE);
	assert_int_equal(dra->rules_len, 1);
	assert_string_equal(dra_device_of(dra, "n001"), "gpu-7");
	/* The driver is away: the rule stays, and the node is not taken out. */
	dra_publish(dra, "n001", NULL);
	rw_run(w, 6 * HF_MINUTE);
	assert_int_equal(dra->rules_len, 1);
	assert_false(rw_tainted(w, 1));
}

/* The failed GPU is not published any more, and the driver has counted the others anew: the rule would take a well GPU out
 * of use. */
static void a_name_that_another_gpu_gets_is_free(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 5, DEVICE);

	rw_say(w, 1, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(dra_device_of(dra, "n001"), "gpu-0");
	publish(dra, 1, 2, "gpu-0", "GPU-elsewhere");
	rw_run(w, 6 * HF_MINUTE);
	assert_int_equal(dra->rules_len, 0);
	assert_true(rw_tainted(w, 1));
}

static void a_rule_that_a_person_removed_stays_away(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 5, DEVICE);

	rw_say(w, 1, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_int_equal(dra->rules_len, 1);
	dra_remove_rule(dra, 0);
	rw_run(w, 2 * HF_MINUTE);
	assert_int_equal(dra->rules_len, 0);
	/* The next leader knows it too. */
	rw_stop(w);
	rw_start(w);
	rw_run(w, 2 * HF_MINUTE);
	assert_int_equal(dra->rules_len, 0);
	assert_false(rw_tainted(w, 1));
	/* Newer evidence. */
	rw_say(w, 1, RW_REBOOT);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(dra->rules_len, 1);
}

/* While no operator runs, a person ends the quarantine. Jobs must not be told any longer that no pod can be given the
 * device. */
static void the_next_leader_takes_back_what_jobs_were_told(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 5, DEVICE);

	rw_say(w, 1, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	assert_string_equal(dra_devices_out(w, "n001"), "GPU-n001");
	rw_stop(w);
	dra_remove_rule(dra, 0);
	rw_patch(w, &hf_nodes, "n001", UNMARKED);
	rw_patch(w, &hf_healthpolicies, "p", "{'spec':{'quarantine':'Node'}}");
	rw_start(w);
	rw_run(w, HF_MINUTE);
	assert_string_equal(dra_devices_out(w, "n001"), "");
}

static void budgets_count_nodes_with_a_device_out(void **state)
{
	struct rw *w = *state;
	struct dra *dra =
		begin(w, 10,
		      "{'mode':'quarantine','quarantine':'Device','budget':{'maxUnavailable':"
		      "{'count':2},'maxQuarantines':{'count':60}},'breaker':{'percent':100}}");

	for (int i = 0; i < 6; i++)
		rw_say(w, i, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_int_equal(dra->rules_len, 2);
	rw_expect_next(w, 5, "held quarantine unavailable");
}

/* ---- the last rung ------------------------------------------------------------------------------- */

struct ladder {
	struct dra *dra;
	struct ra *actors;
};

/* Actors whose acts all fail, beside the DRA driver. */
static void begin_ladder(struct rw *w, struct ladder *ladder, const char *policy)
{
	ladder->actors = ra_create(w);
	ra_all(ladder->actors, RA_FAILS, RA_LIES);
	ladder->dra = begin(w, 5, policy);
}

static const char *effect_after(struct rw *w, const struct ladder *ladder, hf_time span)
{
	rw_run(w, span);
	return dra_effect_of(ladder->dra, "n001");
}

static void pods_leave_a_device_at_once_only_after_the_last_remedy(void **state)
{
	struct rw *w = *state;
	struct ladder ladder;

	begin_ladder(
		w, &ladder,
		"{'mode':'remediate','quarantine':'Device','mend':{'rungs':['reset-device']}," WIDE
		"}");
	rw_say(w, 1, RW_RESET);
	rw_run(w, 5 * HF_SECOND);
	for (int i = 0; i < 3600 && ladder.actors->persons == 0; i++)
		assert_string_equal(effect_after(w, &ladder, HF_SECOND), "NoSchedule");
	assert_int_equal(ladder.actors->failed, 1);
	assert_int_equal(ladder.actors->persons, 1);
	assert_string_equal(effect_after(w, &ladder, 10 * HF_SECOND), "NoExecute");
	assert_string_equal(dra_device_of(ladder.dra, "n001"), "gpu-0");
	/* The next leader decides the same. */
	rw_stop(w);
	rw_start(w);
	assert_string_equal(effect_after(w, &ladder, HF_MINUTE), "NoExecute");
	/* The person refuses: new pods are kept off the device, and running pods stay. */
	rw_patch(w, &hf_remediations, "n001-2", "{'spec':{'cancel':true}}");
	assert_string_equal(effect_after(w, &ladder, HF_MINUTE), "NoSchedule");
	rw_say(w, 1, RW_WELL);
	assert_string_equal(effect_after(w, &ladder, HF_MINUTE), "");
	assert_int_equal(ladder.dra->rules_len, 0);
}

/* The budget allows one node, which is the node with the device out of use. The quarantine stays the policy's: the failed
 * reboot counts in it, and the node is released by the policy, after the probation. */
static void a_reboot_takes_the_node_of_a_device_out(void **state)
{
	for (int mends = 0; mends < 2; mends++) {
		struct rw *w;
		struct ladder ladder;

		rw_setup((void **)&w);
		w->limit = 1;
		begin_ladder(w, &ladder,
			     "{'mode':'remediate','quarantine':'Device','mend':{},'breaker':{"
			     "'percent':100}}");
		ra_all(ladder.actors, RA_FAILS, mends == 1 ? RA_MENDS : RA_LIES);
		rw_say(w, 1, RW_RESET);
		for (int i = 0; i < 300 && !rw_tainted(w, 1); i++)
			rw_run(w, HF_SECOND);
		assert_true(rw_tainted(w, 1));
		assert_non_null(strstr(dra_mark_of(w, "n001"), "\"policy\":\"p\""));
		assert_null(strstr(dra_mark_of(w, "n001"), "Device"));
		rw_run(w, 10 * HF_MINUTE);
		assert_int_equal(ladder.actors->acts, 2);
		assert_int_equal(w->boots[1], 1);
		assert_int_equal(ladder.actors->persons, 1 - mends);
		assert_int_equal(rw_tainted(w, 1), 1 - mends);
		assert_int_equal(ladder.dra->rules_len, 0);
		rw_teardown((void **)&w);
	}
	(void)state;
}

/* The API server is slow: the quarantine is confirmed only when the rule is there. */
static void a_reset_waits_for_the_rule(void **state)
{
	struct rw *w = *state;
	static struct ladder ladder; /* the teardown uses it */

	begin_ladder(
		w, &ladder,
		"{'mode':'remediate','quarantine':'Device','mend':{'rungs':['reset-device']}," WIDE
		"}");
	ra_all(ladder.actors, RA_MENDS, RA_MENDS);
	ladder.dra->delay = 7 * HF_SECOND;
	rw_say(w, 1, RW_RESET);
	for (int i = 0; i < 300 && ladder.dra->rules_len == 0; i++) {
		rw_run(w, HF_SECOND / 5);
		assert_true(ladder.dra->rules_len > 0 || ladder.actors->acts == 0);
	}
	assert_int_equal(ladder.dra->rules_len, 1);
	assert_false(rw_tainted(w, 1));
	rw_run(w, 5 * HF_MINUTE);
	assert_int_equal(ladder.actors->resets, 1);
	assert_false(rw_tainted(w, 1));
}

/* A person resets another device than the one that is out of use: pods could be given it during the act. */
static void a_reset_of_another_device_takes_the_node(void **state)
{
	struct rw *w = *state;
	static struct ladder ladder; /* the teardown uses it */

	w->gpus = 2;
	begin_ladder(w, &ladder, DEVICE);
	w->people_ask = true;
	rw_say(w, 1, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(ladder.dra->rules_len, 1);
	ra_all(ladder.actors, RA_NO_START, RA_NO_START);
	rw_create(w, &hf_remediations, NULL,
		  "{'apiVersion':'holdfast.dev/v1alpha1','kind':'Remediation','metadata':{'name':"
		  "'n001-1'},'spec':{'node':'n001','rung':'reset-device','attempt':1,'nonce':"
		  "'0123456789abcdef0123456789abcdef','requestedBy':'ann','devices':[{'id':"
		  "'0000:1b:00.0','uuid':'GPU-n001-1'}]}}");
	rw_run(w, 10 * HF_SECOND);
	assert_string_equal(ra_phase(ladder.actors, 1), "Approved");
	assert_true(rw_tainted(w, 1));
}

/* A person is asked for the node, and the policy forbids to evict, to remediate or to mend. */
static void pods_stay_on_a_device_if_the_policy_evicts_none(void **state)
{
	static const char *const policies[] = {
		"{'mode':'remediate','quarantine':'Device','drain':{'mode':'complete'},'mend':{}," WIDE
		"}",
		"{'mode':'quarantine','quarantine':'Device','mend':{}," WIDE "}",
		"{'mode':'remediate','quarantine':'Device'," WIDE "}"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(policies); i++) {
		struct rw *w;
		struct ladder ladder;

		rw_setup((void **)&w);
		begin_ladder(w, &ladder, policies[i]);
		/* No rung mends state Failed. */
		rw_say(w, 1, RW_FAILED);
		rw_run(w, HF_MINUTE);
		if (ladder.actors->persons == 0)
			ra_request(ladder.actors, 1, 1, "person", "");
		for (int k = 0; k < 60; k++)
			assert_string_equal(effect_after(w, &ladder, HF_MINUTE), "NoSchedule");
		rw_teardown((void **)&w);
	}
}

/* A person notes a task, or tries one, before the policy has tried its remedies. */
static void a_task_that_a_person_ordered_is_not_the_last_rung(void **state)
{
	struct rw *w = *state;
	static struct ladder ladder; /* the teardown uses it */

	begin_ladder(w, &ladder, "{'mode':'remediate','quarantine':'Device','mend':{}," WIDE "}");
	ra_all(ladder.actors, RA_NO_START, RA_NO_START);
	w->people_ask = true;
	rw_say(w, 1, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	ra_request(ladder.actors, 1, 2, "person", "");
	for (int i = 0; i < 5; i++)
		assert_string_equal(effect_after(w, &ladder, HF_MINUTE), "NoSchedule");
}

/* One of two failed GPUs is well again. The API server gives no answer to the delete of its rule, and performs it later. That
 * is no person who wants the node's devices back: the other GPU has not recovered. */
static void a_late_delete_is_no_wish_of_a_person(void **state)
{
	struct rw *w = *state;
	struct dra *dra;

	w->gpus = 2;
	dra = begin(w, 5, DEVICE);
	publish_two(dra, 1);
	w->sick[1] = 3;
	rw_say(w, 1, RW_RESET);
	rw_run(w, 10 * HF_SECOND);
	assert_int_equal(dra->rules_len, 2);
	dra->refuse_rules = HF_E_TIMEOUT;
	w->sick[1] = 1;
	rw_report(w, 1);
	rw_run(w, 500 * HF_MS);
	dra_remove_rule(dra, hf_streq(dra_device_of(dra, "n001"), "gpu-1") ? 0 : 1);
	dra->refuse_rules = 0;
	rw_run(w, 10 * HF_MINUTE);
	assert_int_equal(dra->rules_len, 1);
	assert_string_equal(dra_device_of(dra, "n001"), "gpu-0");
	assert_null(strstr(dra_mark_of(w, "n001"), "takenOff"));
}

/* The operator dies at each of its writes: each device has at most one rule, and at the end none is left. */
static void the_operator_may_die_at_each_write(void **state)
{
	struct rw *w = *state;
	struct dra *dra = begin(w, 4, DEVICE);

	for (unsigned die = 1; die < 12; die++) {
		w->how = die % 2 == 0 ? RW_BEFORE : RW_AFTER;
		w->die_at = w->writes + die / 2 + 1;
		rw_say(w, 1, RW_RESET);
		rw_run(w, 10 * HF_SECOND);
		w->how = RW_ALIVE;
		rw_stop(w);
		rw_start(w);
		rw_run(w, 10 * HF_SECOND);
		assert_int_equal(dra->rules_len, 1);
		rw_say(w, 1, RW_WELL);
		rw_stop(w);
		rw_start(w);
		rw_run(w, HF_MINUTE);
		assert_int_equal(dra->rules_len, 0);
		assert_false(dra_is_marked(w, "n001"));
		rw_run(w, HF_HOUR * 13);
	}
}

int main(int argc, char **argv)
{
#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(a_failed_device_goes_and_comes_back),
		T(a_device_that_recovers_during_a_pass_comes_back),
		T(an_older_cluster_serves_v1beta2),
		T(without_dra_the_node_is_taken_out),
		T(what_no_rule_can_say_takes_the_node),
		T(a_mode_that_observes_tries_rules_without_effect),
		T(a_renumbered_device_is_followed),
		T(a_name_that_another_gpu_gets_is_free),
		T(a_rule_that_a_person_removed_stays_away),
		T(the_next_leader_takes_back_what_jobs_were_told),
		T(budgets_count_nodes_with_a_device_out),
		T(pods_leave_a_device_at_once_only_after_the_last_remedy),
		cmocka_unit_test(a_reboot_takes_the_node_of_a_device_out),
		T(a_reset_waits_for_the_rule),
		T(a_reset_of_another_device_takes_the_node),
		cmocka_unit_test(pods_stay_on_a_device_if_the_policy_evicts_none),
		T(a_task_that_a_person_ordered_is_not_the_last_rung),
		T(a_late_delete_is_no_wish_of_a_person),
		T(the_operator_may_die_at_each_write),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
