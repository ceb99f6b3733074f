/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/rollout_driver.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Rollouts with a canary, and rollouts under jobs: canaries that fail, never end or are slower, restarts of jobs by
 * devices, slower ranks, deaths of the operator, and people.
 */

#define SPEC(more, canary)                                                                         \
	"'change':{'daemonSet':{'namespace':'default','name':'driver'}},'soakSeconds':60" more     \
	",'proof':{'seconds':120,'canary':{'seconds':120," canary RD_CANARY "}}"
#define SLOWER "'slowerPercent':10,"

/* Canaries of `seconds` with steps of own_us, before (version 1) and after the change. */
static void canaries(struct rd *d, int before, int64_t before_us, int after, int64_t after_us)
{
	rd_use_jobs(d);
	d->canary[1] = (struct rd_canary){.seconds = before, .own_us = before_us};
	d->canary[2] = (struct rd_canary){.seconds = after, .own_us = after_us};
}

static int64_t number(struct rd *d, int node, const char *part, const char *key)
{
	return hf_json_i64(hf_json_path(rd_entry(d, "r", node), part, key, NULL), 0);
}

static const char *history(struct rd *d, int node)
{
	char name[16];

	rw_name(node, name);
	return hf_str_or(hf_json_path_str(rw_get(d->w, &hf_nodes, NULL, name), "metadata",
					  "annotations", "holdfast.dev/rollout-canary", NULL),
			 "");
}

/* ---- canaries that succeed ----------------------------------------------------------------------- */

static void a_canary_runs_before_and_after_the_change(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, SPEC(",'atOnce':2", SLOWER));

	canaries(d, 30, 100000, 30, 104000);
	d->at_once = 2;
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 3);
	assert_int_equal(d->total_deletes, 3);
	assert_int_equal(d->canaries_made, 6);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(number(d, i, "before", "stepMicros"), 100000);
		assert_in_range(number(d, i, "before", "runMillis"), 25000, 40000);
		assert_int_equal(number(d, i, "canary", "stepMicros"), 104000);
		rd_expect_node_message(d, i,
				       "the canary took 104.0 ms in each step, 100.0 ms before");
		/* The shorter time is kept. */
		assert_non_null(strstr(history(d, i), "\"stepMicros\":100000"));
	}
	rd_expect_clean(d);
}

static void a_node_with_a_history_runs_one_canary(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 2, SPEC("", SLOWER));

	canaries(d, 30, 100000, 30, 100000);
	d->canary[3] = (struct rd_canary){.seconds = 30, .own_us = 108000};
	d->canary[4] = (struct rd_canary){.seconds = 30, .own_us = 116000};
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->canaries_made, 4);
	rd_set_version(d, 3);
	rd_rollout(d, "s", SPEC("", SLOWER));
	rw_run(w, 30 * HF_MINUTE);
	assert_string_equal(rd_phase(d, "s"), "Succeeded");
	assert_int_equal(d->canaries_made, 6);
	/* Slower by 8 % each time: the third version is compared with the first. */
	rd_set_version(d, 4);
	rd_rollout(d, "t", SPEC("", SLOWER));
	rw_run(w, 30 * HF_MINUTE);
	assert_string_equal(rd_phase(d, "t"), "Halted");
	assert_non_null(strstr(rd_message(d, "t"), "116.0 ms in each step, 100.0 ms before"));
}

static void a_canary_without_a_limit_runs_after_the_change_only(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 2, SPEC("", ""));

	canaries(d, 0, 0, 90, 900000);
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->canaries_made, 2);
	assert_string_equal(history(d, 0), "");
	rd_expect_clean(d);
}

/* A person takes over the manifest of a job that goes away at its end. The rollout reads the job's end, then deletes the job. */
static void a_canary_that_would_go_away_at_its_end_is_seen(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 2, SPEC("", ""));

	canaries(d, 0, 0, 30, 0);
	rd_patch_spec(d, "r",
		      "'proof':{'canary':{'template':{'spec':{'runPolicy':{"
		      "'ttlSecondsAfterFinished':0}}}}}");
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->canaries_made, 2);
	rd_expect_clean(d);
}

static void pods_leave_before_the_first_canary(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 1);

	canaries(d, 30, 0, 30, 0);
	rd_pod(d, "train-0", 0, "set");
	rd_roll(d, SPEC(",'empty':'Wait'", SLOWER));
	rw_run(w, 5 * HF_MINUTE);
	assert_string_equal(rd_node_phase(d, "r", 0), "Emptying");
	assert_int_equal(d->canaries_made, 0);
	rd_end_pod(d, "train-0");
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
}

/* ---- canaries that speak against the change ------------------------------------------------------ */

static void a_canary_with_slower_steps_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, SPEC(",'atOnce':4", SLOWER));

	canaries(d, 30, 100000, 30, 130000);
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed",
			    "took 130.0 ms in each step, 100.0 ms before the change: more than 10 "
			    "% longer");
	rd_expect_condition(d, "Halted", "True NodeFailed", "job default/canary-n000-");
	assert_int_equal(d->total_deletes, 1);
	assert_true(rd_is_cordoned(d, 0));
	assert_int_equal(rd_count_canaries(d), 0);
	/* A node that failed is no history. */
	assert_string_equal(history(d, 0), "");
}

static void a_canary_that_takes_longer_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, SPEC("", SLOWER));

	canaries(d, 30, 0, 60, 0);
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed", " s before the change: more than 10 %");
	assert_int_equal(d->total_deletes, 1);
}

static void a_canary_that_fails_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, SPEC("", SLOWER));

	canaries(d, 30, 100000, 10, 100000);
	d->canary[2].fails = true;
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed", "job default/canary-n000-");
	rd_expect_condition(d, "Halted", "True NodeFailed", ", failed: ");
	assert_int_equal(d->total_deletes, 1);
	assert_int_equal(rd_count_canaries(d), 0);
	assert_true(rw_event(w, "RolloutNodeFailed", "n000"));
}

static void a_canary_that_never_ends_halts(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, SPEC("", ""));

	canaries(d, 30, 0, 0, 0);
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed", "has not succeeded within 120 s");
	assert_int_equal(d->total_deletes, 1);
	assert_int_equal(rd_count_canaries(d), 0);
}

static void a_canary_takes_the_change_back(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, SPEC(",'onFailure':'Rollback','waves':[1,'100%']", SLOWER));

	canaries(d, 30, 100000, 30, 100000);
	for (int i = 0; i < 240 && rd_count_running(d, 2) < 3; i++)
		rw_run(w, 10 * HF_SECOND);
	d->canary[2].own_us = 150000;
	rw_run(w, 2 * HF_HOUR);
	rd_expect_phase(d, "Failed");
	assert_int_equal(rd_count_running(d, 1), 6);
	rd_expect_condition(d, "Halted", "True NodeFailed", "150.0 ms in each step");
	rd_expect_condition(d, "RolledBack", "True Proved", "");
	rd_expect_clean(d);
}

/* ---- canaries that fail before the change -------------------------------------------------------- */

static void a_canary_that_never_succeeded_halts_before_any_change(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20, SPEC("", SLOWER));

	canaries(d, 10, 0, 10, 0);
	d->canary[1].fails = true;
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True CanaryFailed", "failed before the change");
	assert_int_equal(d->total_deletes, 0);
	assert_int_equal(d->canaries_made, 1);
	/* Nothing was changed, so the node is given back. */
	rd_expect_clean(d);
}

static void a_node_on_which_the_canary_fails_is_left_unchanged(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 4, SPEC("", SLOWER));

	canaries(d, 10, 100000, 10, 100000);
	d->canary_fails_on = 3;
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->deletes[2], 0);
	assert_int_equal(rd_count_running(d, 2), 3);
	assert_string_equal(rd_node_phase(d, "r", 2), "Skipped");
	/* It is not emptied a second time. */
	assert_int_equal(d->canaries_made, 7);
	rd_expect_clean(d);
}

static bool refuse_canary(const struct rw *w, const struct hf_request *request,
			  struct hf_fault *ret_fault)
{
	(void)w;
	if (request->verb != HF_VERB_CREATE || request->resource != &hf_pytorchjobs)
		return false;
	ret_fault->refuse = HF_E_FORBIDDEN;
	ret_fault->message = "exceeded quota: gpus";
	return true;
}

static void a_refused_canary_is_named(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, SPEC("", ""));

	canaries(d, 10, 0, 10, 0);
	w->fault = refuse_canary;
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed",
			    "has not succeeded within 120 s: exceeded quota: gpus");
	assert_true(rw_event(w, "CanaryRefused", "n000"));
}

static void a_job_of_another_owner_is_left_alone(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, SPEC("", ""));
	char text[1024], job[80];

	canaries(d, 10, 0, 0, 0);
	for (int i = 0; i < 60 && d->canaries_made == 0; i++)
		rw_run(w, 5 * HF_SECOND);
	snprintf(job, sizeof(job), "%s",
		 hf_str_or(hf_json_path_str(rd_entry(d, "r", 0), "canary", "job", NULL), "?"));
	w->fault = refuse_canary;
	rd_delete_canary(d);
	rw_run(w, 2 * HF_SECOND);
	snprintf(
		text, sizeof(text),
		"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'%s',"
		"'namespace':'default'},'spec':{'runPolicy':{'suspend':true},'pytorchReplicaSpecs':{"
		"'Master':{'replicas':1,'template':{'spec':{'containers':[{'name':'pytorch',"
		"'image':'i'}]}}}}}}",
		job + strlen("default/"));
	rw_create(w, &hf_pytorchjobs, "default", text);
	w->fault = NULL;
	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True NodeFailed", "the job is not of this rollout");
	assert_int_equal(rd_count_canaries(d), 1);
}

/* ---- people -------------------------------------------------------------------------------------- */

static void a_canary_that_a_person_deletes_is_made_again(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 1, SPEC("", SLOWER));

	canaries(d, 30, 0, 30, 0);
	for (int i = 0; i < 60 && d->canaries_made == 0; i++)
		rw_run(w, 5 * HF_SECOND);
	rd_delete_canary(d);
	rw_run(w, 20 * HF_MINUTE);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->canaries_made, 3);
	rd_expect_clean(d);
}

static void a_cancel_deletes_the_canary(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, SPEC("", SLOWER));

	canaries(d, 100, 0, 30, 0);
	for (int i = 0; i < 60 && d->canaries_made == 0; i++)
		rw_run(w, 5 * HF_SECOND);
	assert_string_equal(rd_node_phase(d, "r", 0), "Baseline");
	rd_patch_spec(d, "r", "'cancel':true");
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Cancelled");
	assert_int_equal(d->total_deletes, 0);
	rd_expect_clean(d);
}

static void a_deleted_rollout_deletes_its_canary(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 3, SPEC("", ""));

	canaries(d, 0, 0, 60, 0);
	for (int i = 0; i < 60 && d->canaries_made == 0; i++)
		rw_run(w, 5 * HF_SECOND);
	assert_string_equal(rd_node_phase(d, "r", 0), "Canary");
	rw_delete(w, &hf_devicerollouts, "r");
	rw_run(w, 5 * HF_MINUTE);
	assert_null(rw_get(w, &hf_devicerollouts, NULL, "r"));
	assert_int_equal(rd_count_running(d, 2), 1);
	rd_expect_clean(d);
}

/* ---- what jobs show ------------------------------------------------------------------------------ */

/* A job that has ended, and whose ledger has `restarts` restarts by devices of the node, just now. */
static void end_job(struct rd *d, const char *name, const char *node, int restarts)
{
	char text[4096], at[HF_TIME_TEXT_MAX];
	size_t len;

	hf_time_format_micro(hf_loop_wall(d->w->loop), at);
	snprintf(text, sizeof(text),
		 "{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'%s',"
		 "'namespace':'default'},'spec':{'runPolicy':{'cleanPodPolicy':'None'},"
		 "'pytorchReplicaSpecs':{'Worker':{'replicas':1,'template':{'spec':{'containers':[{"
		 "'name':'pytorch','image':'i'}]}}}}}}",
		 name);
	rw_create(d->w, &hf_pytorchjobs, "default", text);
	len = (size_t)snprintf(text, sizeof(text),
			       "{'status':{'conditions':[{'type':'Succeeded','status':'True'}],"
			       "'recovery':{'schema':1,'generation':9,'phase':'Ended','history':[");
	for (int i = 0; i < restarts; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s{'cause':'device','node':'%s','detectedAt':'%s'}",
					i > 0 ? "," : "", node, at);
	snprintf(text + len, sizeof(text) - len, "]}}}");
	rw_patch_in(d->w, &hf_pytorchjobs, "default", name, "status", text);
}

static int64_t evidence(struct rd *d, const char *side, const char *key)
{
	return hf_json_i64(hf_json_path(rw_get(d->w, &hf_devicerollouts, NULL, "r"), "status",
					"evidence", side, key, NULL),
			   -1);
}

static void restarts_by_devices_of_changed_nodes_halt(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 20,
				"'change':{'daemonSet':{'namespace':'default','name':'driver'}},"
				"'soakSeconds':3600,'waves':[2,'100%']");

	rw_run(w, 10 * HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	/* On a node without the change, and fewer than three on the changed ones. */
	end_job(d, "a", "n010", 5);
	end_job(d, "b", "n000", 2);
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Soaking");
	assert_int_equal(evidence(d, "changed", "restarts"), 2);
	assert_int_equal(evidence(d, "unchanged", "restarts"), 5);
	end_job(d, "c", "n001", 3);
	rw_run(w, HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True MoreRestarts",
			    "changed nodes had 5 restarts of jobs by devices in ");
	assert_int_equal(d->total_deletes, 2);
}

/* The pods of the job hold no device, so they stay on their nodes. */
static void slower_ranks_on_changed_nodes_halt(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 8);

	rd_use_jobs(d);
	d->own_us[1] = 100000;
	d->own_us[2] = 130000;
	rw_start(w);
	rd_train(d, 8);
	rw_run(w, 30 * HF_SECOND);
	rd_set_version(d, 2);
	rd_rollout(d, "r",
		   "'change':{'daemonSet':{'namespace':'default','name':'driver'}},"
		   "'soakSeconds':300,'waves':[2,4,8]");
	rw_run(w, 5 * HF_MINUTE);
	/* Two slow nodes may have been slow before. */
	assert_int_equal(rd_count_running(d, 2), 2);
	rd_expect_phase(d, "Soaking");
	rw_run(w, 30 * HF_MINUTE);
	rd_expect_phase(d, "Halted");
	rd_expect_condition(d, "Halted", "True SlowerSteps",
			    " changed nodes work 1.30 times as long in each step as ranks of the "
			    "same jobs on ");
	assert_in_range(evidence(d, "changed", "stepNodes"), 3, 4);
	assert_true(rd_count_running(d, 2) <= 4);
}

static void ranks_as_fast_as_the_others_halt_nothing(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_create(w, 8);

	rd_use_jobs(d);
	d->own_us[1] = 100000;
	d->own_us[2] = 115000;
	rw_start(w);
	rd_train(d, 8);
	rw_run(w, 30 * HF_SECOND);
	rd_set_version(d, 2);
	rd_rollout(d, "r",
		   "'change':{'daemonSet':{'namespace':'default','name':'driver'}},"
		   "'soakSeconds':60,'waves':[2,4,8]");
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(rd_count_running(d, 2), 8);
}

/* ---- deaths and two leaders ---------------------------------------------------------------------- */

static bool run_with_death(struct rw *w, unsigned long long at, enum rw_death how, bool slow)
{
	struct rd *d = rd_create(w, 2);
	bool died;

	/* Steps may be missed, because a rank reports them only while it runs. */
	canaries(d, 20, 100000, slow ? 40 : 20, slow ? 130000 : 100000);
	d->at_once = 1;
	w->how = how;
	w->die_at = at;
	rd_roll(d, SPEC(",'onFailure':'Rollback','waves':['100%']", SLOWER));
	for (int i = 0; i < 40; i++) {
		rw_run(w, 30 * HF_SECOND);
		if (w->op == NULL)
			rw_start(w);
	}
	died = w->met.deaths > 0;
	rd_expect_phase(d, slow ? "Failed" : "Succeeded");
	assert_int_equal(rd_count_running(d, slow ? 1 : 2), 2);
	/* A second canary of the same side is never made: its name follows from the node. */
	assert_int_equal(d->canaries_made, slow ? 2 : 4);
	for (int i = 0; i < 2; i++)
		assert_true(d->deletes[i] <= (slow ? 2 : 1));
	rd_expect_clean(d);
	return died;
}

static void run_deaths(enum rw_death how, bool slow)
{
	for (unsigned long long at = 1;; at++) {
		void *state = NULL;
		bool died;

		assert_int_equal(rw_setup(&state), 0);
		died = run_with_death(state, at, how, slow);
		assert_int_equal(rw_teardown(&state), 0);
		if (!died) {
			print_message("died at each of %llu writes\n", at - 1);
			assert_true(at > 40);
			return;
		}
	}
}

static void it_goes_on_after_a_death_before_each_write(void **state)
{
	(void)state;
	run_deaths(RW_BEFORE, false);
}

static void it_goes_on_after_a_death_after_each_write(void **state)
{
	(void)state;
	run_deaths(RW_AFTER, false);
}

static void a_slower_canary_halts_after_a_death_after_each_write(void **state)
{
	(void)state;
	run_deaths(RW_AFTER, true);
}

static void two_leaders_make_each_canary_once(void **state)
{
	struct rw *w = *state;
	struct rd *d = rd_begin(w, 6, SPEC(",'atOnce':2", SLOWER));

	canaries(d, 30, 100000, 30, 100000);
	d->at_once = 2;
	rw_change_leaders(w);
	rw_run(w, HF_HOUR);
	rd_expect_phase(d, "Succeeded");
	assert_int_equal(d->canaries_made, 12);
	for (int i = 0; i < 6; i++)
		assert_int_equal(d->deletes[i], 1);
	rd_expect_clean(d);
}

#define T(test) cmocka_unit_test_setup_teardown(test, rw_setup, rw_teardown)

/* rollout_canary [long|short [[-x] PATTERN]]: as rollout. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(a_canary_runs_before_and_after_the_change),
		T(a_node_with_a_history_runs_one_canary),
		T(a_canary_without_a_limit_runs_after_the_change_only),
		T(a_canary_that_would_go_away_at_its_end_is_seen),
		T(pods_leave_before_the_first_canary),
		T(a_canary_with_slower_steps_halts),
		T(a_canary_that_takes_longer_halts),
		T(a_canary_that_fails_halts),
		T(a_canary_that_never_ends_halts),
		T(a_canary_takes_the_change_back),
		T(a_canary_that_never_succeeded_halts_before_any_change),
		T(a_node_on_which_the_canary_fails_is_left_unchanged),
		T(a_refused_canary_is_named),
		T(a_job_of_another_owner_is_left_alone),
		T(a_canary_that_a_person_deletes_is_made_again),
		T(a_cancel_deletes_the_canary),
		T(a_deleted_rollout_deletes_its_canary),
		T(restarts_by_devices_of_changed_nodes_halt),
		T(slower_ranks_on_changed_nodes_halt),
		T(ranks_as_fast_as_the_others_halt_nothing),
		T(two_leaders_make_each_canary_once),
	};

	const struct CMUnitTest long_tests[] = {
		cmocka_unit_test(it_goes_on_after_a_death_before_each_write),
		cmocka_unit_test(it_goes_on_after_a_death_after_each_write),
		cmocka_unit_test(a_slower_canary_halts_after_a_death_after_each_write),
	};

	rw_choose_tests(argc - 1, argv + 1);
	if (argc > 1 && hf_streq(argv[1], "long"))
		return cmocka_run_group_tests_name("rollout, canary, long", long_tests, NULL, NULL);
	return cmocka_run_group_tests_name("rollout, canary", tests, NULL, NULL);
}
