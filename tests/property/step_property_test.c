/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/random.h"
#include "harness/test.h"

#include "base/str.h"
#include "core/model/names.h"
#include "framework/framework.h"

#include <stdlib.h>
#include <string.h>

/*
 * What holds of every plan, whatever the job and whatever happens to it.  Each seed is a job
 * and a life: pods start, crash, are deleted, vanish; people suspend, scale and restart; writes
 * and actions are lost, cut off in the middle or done twice.
 */

#define SEEDS 400
#define EVENTS 120

/* Big, so not on the stack; set up anew by each test. */
static struct brain world;

struct life {
	struct brain *b;
	uint64_t random;
	uint64_t seed;
	bool execs; /* agents report programs, truly or not */
	/* the highest of each, as written */
	int64_t generation, incidents, restarts;
	const char *terminal;
	int64_t created_at_terminal;
	/* ranks that were written down as succeeded, and in which generation */
	char succeeded[64][BRAIN_TEXT_MAX];
	int64_t succeeded_in[64];
	size_t succeeded_len;
};

static unsigned roll(struct life *life, unsigned below)
{
	return (unsigned)test_random_below(&life->random, below);
}

/* ---- a job ------------------------------------------------------------------------------------------ */

static void random_rules(struct life *life)
{
	static const int32_t codes[] = {42, 220};
	static const char *const reasons[] = {"Evicted"};
	struct brain *b = life->b;
	struct hf_run_policy *policy = &b->view.run_policy;

	policy->has_pod_failure_policy = true;
	policy->rules_len = 1 + roll(life, 2);
	b->rules[0] = (struct hf_rule){.name = "codes",
				       .action = (enum hf_rule_action)roll(life, 5),
				       .has_exit_codes = true,
				       .op = HF_RULE_IN,
				       .values = codes,
				       .values_len = HF_ARRAY_LEN(codes)};
	b->rules[1] = (struct hf_rule){.action = (enum hf_rule_action)roll(life, 5),
				       .has_pod_reasons = true,
				       .pod_reasons = reasons,
				       .pod_reasons_len = HF_ARRAY_LEN(reasons)};
}

static void random_job(struct life *life)
{
	static const char *const restart[] = {"OnFailure", "Never", "ExitCode", "Always", NULL};
	static const char *const clean[] = {NULL, "None", "Running", "All"};
	static const char *const force[] = {NULL, NULL, "Presumed", "Proven", "Never"};
	struct brain *b = life->b;
	struct hf_run_policy *policy = &b->view.run_policy;

	brain_init(b, roll(life, 2) ? &brain_kind : &hf_framework_pytorch, (int)roll(life, 2),
		   1 + (int)roll(life, 4));
	for (size_t i = 0; i < b->view.replicas_len; i++)
		b->replicas[i].restart_policy = restart[roll(life, HF_ARRAY_LEN(restart))];
	policy->clean_pod_policy = clean[roll(life, HF_ARRAY_LEN(clean))];
	if (roll(life, 2))
		policy->backoff_limit = HF_SOME_INT(roll(life, 4));
	if (roll(life, 3) == 0)
		policy->recovery.infrastructure_limit = HF_SOME_INT(roll(life, 3));
	if (roll(life, 4) == 0)
		policy->active_deadline_seconds = HF_SOME_INT(10 + roll(life, 3000));
	if (roll(life, 3) == 0)
		policy->ttl_seconds_after_finished = HF_SOME_INT(roll(life, 600));
	if (roll(life, 2))
		policy->recovery.restart_scope = "Job";
	if (roll(life, 3) == 0)
		policy->recovery.incident_seconds = HF_SOME_INT(roll(life, 100));
	if (roll(life, 4) == 0)
		policy->recovery.restart_grace_seconds = HF_SOME_INT(1);
	if (roll(life, 4) == 0)
		random_rules(life);
	policy->recovery.node_lost_force_delete = force[roll(life, HF_ARRAY_LEN(force))];
	if (roll(life, 3) == 0)
		policy->recovery.node_lost_after_seconds = HF_SOME_INT(1 + roll(life, 90));
	b->claims_exclusive = roll(life, 2);
	if (roll(life, 4) == 0 && b->view.replicas_len == 1) {
		b->view.elastic.present = true;
		b->view.elastic.min_replicas = HF_SOME_INT(1);
	}
	policy->suspend = HF_SOME_BOOL(roll(life, 8) == 0);
}

/* ---- what happens to it -------------------------------------------------------------------------------- */

/* What is done to a pod from outside. */
static void disturb_pod(struct life *life, struct brain_pod *pod)
{
	if (roll(life, 2)) {
		if (roll(life, 2)) {
			brain_disrupt(life->b, pod->name);
			brain_terminate(life->b, pod->name);
		}
	} else if (roll(life, 4) == 0) {
		brain_exit(life->b, pod->name, 137);
		pod->pod.reason = "Evicted";
	}
}

/* Its container ends, and the kubelet is to start it again, or has done so in the meantime. */
static void crash_pod(struct life *life, struct brain_pod *pod)
{
	if (roll(life, 2))
		brain_end_in_place(life->b, pod->name, 1);
	else
		brain_crash_in_place(life->b, pod->name);
}

static void happens_to_pod(struct life *life, struct brain_pod *pod)
{
	static const int codes[] = {0, 0, 0, 1, 42, 137, 143, 220};
	struct brain *b = life->b;
	bool over = pod->pod.phase == HF_POD_SUCCEEDED || pod->pod.phase == HF_POD_FAILED;

	switch (roll(life, 8)) {
	case 0:
	case 1:
		if (pod->pod.phase == HF_POD_PENDING)
			brain_start(b, pod->name);
		break;
	case 2:
		if (!over)
			brain_exit(b, pod->name, codes[roll(life, HF_ARRAY_LEN(codes))]);
		break;
	case 3:
		if (pod->pod.phase == HF_POD_RUNNING)
			crash_pod(life, pod);
		break;
	case 4: brain_terminate(b, pod->name); break;
	case 5:
		if (pod->pod.deletion_time != HF_TIME_NONE || roll(life, 4) == 0)
			brain_gone(b, pod->name);
		break;
	default:
		if (!over)
			disturb_pod(life, pod);
		break;
	}
}

/* Any report, of a process that there is or not: what an agent says must break nothing. */
static void report_something(struct life *life, struct brain_pod *pod)
{
	static const int codes[] = {1, 42, 93, 137};
	int64_t generation = life->b->view.status.ledger.generation;

	brain_report(life->b, pod->name, (enum hf_process_phase)roll(life, HF_PROCESS_PHASES),
		     generation + roll(life, 3) - 1, pod->pod.attempt + roll(life, 3) - 1);
	pod->process.code = HF_SOME_INT(codes[roll(life, HF_ARRAY_LEN(codes))]);
	pod->process.step = roll(life, 100);
	if (roll(life, 3) == 0)
		pod->process.at = HF_TIME_NONE;
}

static bool is_storm(const struct hf_node_seen *node)
{
	return node->zone_lost > 2 && node->zone_lost * 100 >= node->zone_nodes * 55;
}

/* So many nodes of its zone are lost now: a storm may begin, or end. */
static void weather(struct brain *b, struct hf_node_seen *node, int32_t lost)
{
	node->zone_lost = lost;
	if (is_storm(node))
		node->calm_since = HF_TIME_NONE;
	else if (node->calm_since == HF_TIME_NONE)
		node->calm_since = b->now;
}

static void happens_to_node(struct life *life)
{
	struct brain *b = life->b;
	struct hf_node_seen *node = &b->nodes[roll(life, (unsigned)b->nodes_len)];
	bool lost = node->ready == HF_NODE_UNKNOWN || node->ready == HF_NODE_GONE;

	switch (roll(life, 8)) {
	case 0:
	case 1:
		if (!lost)
			brain_lose(b, node->name);
		break;
	case 2:
		if (node->ready != HF_NODE_GONE) {
			brain_lose(b, node->name);
			node->ready = HF_NODE_GONE;
		}
		break;
	case 3:
		node->out_of_service = true;
		node->no_execute = true;
		break;
	case 4: weather(b, node, (int32_t)roll(life, 10)); break;
	case 5:
		if (lost && node->ready == HF_NODE_UNKNOWN)
			node->lease_since = node->renewed_at = b->now;
		break;
	default: brain_regain(b, node->name);
	}
}

/* Facts of the spec that an API server would have written at its birth. */
static void furnish_pods(struct life *life)
{
	static const char *const claims[] = {"data"};

	for (size_t i = 0; i < life->b->pods_len; i++) {
		struct hf_pod *pod = &life->b->pods[i].pod;

		if (pod->tolerates_unreachable.set)
			continue;
		pod->tolerates_unreachable = HF_SOME_INT(roll(life, 5) ? 300 : 400);
		if (roll(life, 5) == 0) {
			pod->claims = claims;
			pod->claims_len = HF_ARRAY_LEN(claims);
		}
	}
}

static void happens_to_job(struct life *life)
{
	static const char *const requests[] = {"2026-01-01T00:00:01Z",
					       "2026-01-01T00:00:02Z hand-0",
					       "2026-01-01T00:00:03Z worker-9"};
	struct brain *b = life->b;
	struct hf_run_policy *policy = &b->view.run_policy;

	switch (roll(life, 14)) {
	case 0: brain_after(b, (int)roll(life, 300)); break;
	case 1: brain_after(b, 1 + (int)roll(life, 20)); break;
	case 2: brain_nodes_heard(b); break;
	case 3:
		if (roll(life, 3) == 0)
			policy->suspend.value = !policy->suspend.value;
		break;
	case 4:
		if (roll(life, 4) == 0)
			b->replicas[b->view.replicas_len - 1].replicas =
				HF_SOME_INT(1 + roll(life, 5));
		break;
	case 5:
		if (roll(life, 4) == 0)
			b->view.restart = requests[roll(life, HF_ARRAY_LEN(requests))];
		break;
	case 6:
	case 7:
	case 8: brain_start_all(b); break;
	case 9: brain_terminating_gone(b); break;
	default:
		if (b->pods_len > 0)
			happens_to_pod(life, &b->pods[roll(life, (unsigned)b->pods_len)]);
	}
}

static void happens(struct life *life)
{
	struct brain *b = life->b;

	if (life->execs && b->pods_len > 0 && roll(life, 3) == 0)
		report_something(life, &b->pods[roll(life, (unsigned)b->pods_len)]);
	else
		happens_to_job(life);
}

/* ---- what holds of a plan --------------------------------------------------------------------------------- */

static void same_input_same_bytes(struct life *life)
{
	struct brain *b = life->b;
	char *first = brain_text(b), *again;

	for (unsigned shuffle = 0; shuffle < 4; shuffle++) {
		b->shuffle = shuffle;
		brain_step(b);
		again = brain_text(b);
		if (!hf_streq(first, again))
			fail_msg("seed %llu: order %u of the same input gives\n%s\nnot\n%s",
				 (unsigned long long)life->seed, shuffle, again, first);
		free(again);
	}
	b->shuffle = 0;
	free(first);
}

static void conditions_hold(struct life *life)
{
	const struct hf_status *status = &life->b->plan.status;
	bool finished = hf_status_is_finished(status);
	bool suspended = hf_status_is_true(status, HF_COND_SUSPENDED);
	bool running = hf_status_is_true(status, HF_COND_RUNNING);
	bool restarting = hf_status_is_true(status, HF_COND_RESTARTING);

	assert_false(running && restarting);
	assert_false(finished && (running || restarting));
	assert_false(suspended && !finished && (running || restarting));
	assert_int_equal(finished, status->completion_time != HF_TIME_NONE);
	assert_true(status->conditions_len > 0);
	assert_string_equal(status->conditions[status->conditions_len - 1].status, "True");
	for (size_t i = 0; i < status->conditions_len; i++) {
		assert_false(hf_str_is_empty(status->conditions[i].type));
		assert_false(hf_str_is_empty(status->conditions[i].status));
		for (size_t j = i + 1; j < status->conditions_len; j++)
			assert_string_not_equal(status->conditions[i].type,
						status->conditions[j].type);
	}
}

/* A rank that succeeded is not run again in its generation, whatever becomes of its pod. */
static void no_success_runs_again(struct life *life)
{
	for (size_t i = 0; i < life->succeeded_len; i++) {
		if (life->succeeded_in[i] == life->b->plan.status.ledger.generation)
			assert_false(brain_creates(life->b, life->succeeded[i]));
	}
}

/* What is terminating is not deleted again, unless by force. */
static void no_delete_twice(struct life *life)
{
	for (size_t i = 0; i < life->b->pods_len; i++) {
		const struct brain_pod *pod = &life->b->pods[i];

		const struct hf_action *action =
			brain_action(life->b, HF_ACTION_DELETE_POD, pod->name);

		if (pod->pod.deletion_time != HF_TIME_NONE && action)
			assert_non_null(action->resource_version);
	}
}

static bool is_on_a_lost_node(struct brain *b, const struct brain_pod *pod)
{
	return *pod->node && (brain_node(b, pod->node)->ready != HF_NODE_READY ||
			      brain_node(b, pod->node)->out_of_service);
}

/* A pod that a plan itself ended opens no incident.  So if an incident opens, a pod was ended by
 * another actor, a pod is missing, or a restart was asked for. */
static void no_incident_of_ours(struct life *life)
{
	struct brain *b = life->b;
	const struct hf_ledger *before = &b->view.status.ledger;
	const struct hf_ledger *after = &b->plan.status.ledger;
	const char *name;

	if (after->incident.id == before->incident.id || !before->present ||
	    !hf_streq(after->restart_handled, before->restart_handled))
		return;
	for (size_t i = 0; i < b->pods_len; i++) {
		const struct brain_pod *pod = &b->pods[i];

		if (!pod->ours &&
		    (pod->pod.phase == HF_POD_FAILED || pod->pod.deletion_time != HF_TIME_NONE ||
		     pod->containers[0].restart_count > 0 ||
		     pod->containers[0].phase == HF_CONTAINER_TERMINATED ||
		     (pod->reported && pod->process.phase == HF_PROCESS_ENDED) ||
		     is_on_a_lost_node(b, pod)))
			return;
	}
	assert_non_null(after->records[0].replica);
	name = hf_arena_printf(b->pass, "demo-%s", after->records[0].replica);
	assert_null(brain_pod(b, name));
	assert_false(brain_gone_by_us(b, name));
}

/* ---- nodes: what is lost, said once more and differently than in core --------------------------- */

static bool is_silent(struct brain *b, const struct hf_node_seen *node)
{
	hf_time after = 60 * HF_SECOND;
	hf_time last = node->since;

	if (b->view.run_policy.recovery.node_lost_after_seconds.set)
		after = b->view.run_policy.recovery.node_lost_after_seconds.value * HF_SECOND;
	if (node->renewed_at > last)
		last = node->renewed_at;
	if (node->calm_since > last)
		last = node->calm_since;
	for (size_t i = 0; i < b->pods_len; i++) {
		if (hf_streq(b->pods[i].node, node->name) && b->pods[i].pod.news_at > last)
			last = b->pods[i].pod.news_at;
	}
	return node->unreachable && b->now - last >= after && node->lease_read_at - last >= after &&
	       (node->lease_since == HF_TIME_NONE ||
		node->lease_read_at - node->lease_since >= after);
}

static bool is_proven_dead(const struct brain *b, const struct hf_node_seen *node)
{
	if (node->out_of_service)
		return node->ready != HF_NODE_READY ||
		       (node->lease_since != HF_TIME_NONE &&
			node->lease_read_at - node->lease_since >= 15 * HF_SECOND);
	return node->ready == HF_NODE_GONE && b->now - node->since >= 40 * HF_SECOND &&
	       node->confirmed_at - node->since >= 40 * HF_SECOND;
}

static void forced_with_evidence(struct life *life, const struct hf_action *action)
{
	struct brain *b = life->b;
	const struct brain_pod *pod = brain_pod(b, action->name);
	const char *mode = b->view.run_policy.recovery.node_lost_force_delete;
	const struct hf_node_seen *node;
	bool over;

	assert_non_null(pod);
	assert_string_equal(action->uid, pod->uid);
	assert_string_equal(action->resource_version, pod->version);
	assert_true(pod->pod.deletion_time != HF_TIME_NONE);
	over = pod->pod.phase == HF_POD_FAILED || pod->pod.phase == HF_POD_SUCCEEDED;
	assert_int_equal(over, action->kind == HF_ACTION_DELETE_POD);
	node = brain_node(b, pod->node);
	assert_false(hf_streq(mode, "Never"));
	if (is_proven_dead(b, node))
		return;
	assert_false(hf_streq(mode, "Proven"));
	assert_int_equal(node->ready, HF_NODE_UNKNOWN);
	assert_true(is_silent(b, node));
	assert_true(b->now - pod->pod.deletion_time >= 5 * HF_SECOND);
	assert_false(is_storm(node));
	if (pod->pod.claims_len > 0)
		assert_true(b->claims_len > 0 && !b->claims_exclusive);
}

static void names_stay_empty(struct brain *b, const struct hf_action *action)
{
	for (size_t i = 0; i < b->gone_len; i++) {
		if (b->gone[i].no_execute && hf_streq(b->gone[i].name, action->name))
			assert_true(b->now - b->gone[i].at >= 2 * HF_SECOND);
	}
}

static void nodes_hold(struct life *life)
{
	struct brain *b = life->b;

	for (size_t s = 0; s < b->plan.stages_len; s++) {
		for (size_t a = 0; a < b->plan.stages[s].actions_len; a++) {
			const struct hf_action *action = &b->plan.stages[s].actions[a];

			if (action->kind == HF_ACTION_FAIL_POD ||
			    (action->kind == HF_ACTION_DELETE_POD && action->grace_seconds.set &&
			     action->grace_seconds.value == 0))
				forced_with_evidence(life, action);
			if (action->kind == HF_ACTION_CREATE_POD)
				names_stay_empty(b, action);
		}
	}
}

static void actions_hold(struct life *life)
{
	struct brain *b = life->b;
	const struct hf_status *status = &b->plan.status;
	bool finished = hf_status_is_finished(status);
	int creates = brain_count(b, HF_ACTION_CREATE_POD);

	if (finished || b->view.run_policy.suspend.value)
		assert_int_equal(creates, 0);
	if (status->ledger.not_before != HF_TIME_NONE && b->now < status->ledger.not_before)
		assert_int_equal(creates, 0);
	/* The barrier, on what is really there. */
	for (size_t i = 0; i < b->pods_len && creates > 0; i++)
		assert_true(b->pods[i].pod.generation >= (status->ledger.in_place_base > 0
								  ? status->ledger.in_place_base
								  : status->ledger.generation));
	if (brain_count(b, HF_ACTION_DELETE_JOB) > 0)
		assert_true(finished);
	assert_true(b->plan.wake_at > b->now);
	/* harness/brain.c checks that deletes name our own objects. */
	nodes_hold(life);
	no_success_runs_again(life);
	no_delete_twice(life);
	no_incident_of_ours(life);
}

static void ledger_holds(struct life *life)
{
	const struct hf_ledger *ledger = &life->b->plan.status.ledger;
	int64_t restarts = 0;

	if (!ledger->present)
		return;
	for (int i = 0; i < HF_BUDGETS; i++)
		restarts += ledger->restarts[i];
	assert_true(ledger->generation >= life->generation);
	assert_true(ledger->incident.id >= life->incidents);
	assert_true(restarts >= life->restarts);
	/* One incident, one unit. */
	assert_true(restarts - life->restarts <= ledger->incident.id - life->incidents ||
		    life->b->view.status.ledger.incident.charged == HF_BUDGET_PENDING);
	assert_true(restarts <= ledger->incident.id);
	for (int i = 0; i < HF_BUDGETS; i++) {
		struct hf_opt_int limit =
			i == HF_BUDGET_APPLICATION
				? life->b->view.run_policy.backoff_limit
				: life->b->view.run_policy.recovery.infrastructure_limit;

		if (limit.set && i != HF_BUDGET_DEVICE && ledger->restarts[i] > limit.value)
			assert_true(hf_status_is_finished(&life->b->plan.status));
	}
}

static void remember(struct life *life)
{
	const struct hf_status *status = &life->b->view.status;
	const char *terminal = hf_status_is_true(status, HF_COND_FAILED)      ? HF_COND_FAILED
			       : hf_status_is_true(status, HF_COND_SUCCEEDED) ? HF_COND_SUCCEEDED
									      : NULL;

	life->generation = status->ledger.generation;
	life->incidents = status->ledger.incident.id;
	life->restarts = 0;
	for (int i = 0; i < HF_BUDGETS; i++)
		life->restarts += status->ledger.restarts[i];
	if (life->terminal) {
		assert_non_null(terminal);
		assert_string_equal(life->terminal, terminal);
		assert_int_equal(life->created_at_terminal, life->b->created);
	} else if (terminal) {
		life->created_at_terminal = life->b->created;
	}
	life->terminal = terminal;
}

/* "17:2,40:1": what stands behind the index of the pod's name. */
static int64_t attempt_written(const struct brain *b, const char *pod)
{
	int64_t index = strtoll(strrchr(pod, '-') + 1, NULL, 10);

	for (int r = 0; r < b->view.framework->roles_len; r++) {
		const char *text = b->plan.status.ledger.roles[r].attempts;
		const char *type = hf_type_lower(b->pass, b->view.framework->roles[r].name);

		if (!strstr(pod, type))
			continue;
		while (text && *text) {
			char *end;
			int64_t i = strtoll(text, &end, 10);
			int64_t attempt = strtoll(end + 1, &end, 10);

			if (i == index)
				return attempt;
			text = *end == ',' ? end + 1 : NULL;
		}
	}
	return 0;
}

/* "0-3,7" */
static bool is_held(const struct brain *b, const char *pod)
{
	int64_t index = strtoll(strrchr(pod, '-') + 1, NULL, 10);

	for (int r = 0; r < b->view.framework->roles_len; r++) {
		const char *text = b->view.status.ledger.roles[r].hold;

		if (!strstr(pod, hf_type_lower(b->pass, b->view.framework->roles[r].name)))
			continue;
		while (text && *text) {
			char *end;
			int64_t from = strtoll(text, &end, 10);
			int64_t to = *end == '-' ? strtoll(end + 1, &end, 10) : from;

			if (index >= from && index <= to)
				return true;
			text = *end == ',' ? end + 1 : NULL;
		}
	}
	return false;
}

/* Agents and execs do as the ledger says. */
static void obey_orders(struct life *life)
{
	struct brain *b = life->b;

	for (size_t i = 0; i < b->pods_len && life->execs; i++) {
		struct brain_pod *pod = &b->pods[i];

		if (pod->containers[0].phase == HF_CONTAINER_RUNNING)
			brain_report(b, pod->name,
				     is_held(b, pod->name) ? HF_PROCESS_DOWN : HF_PROCESS_RUNNING,
				     b->view.status.ledger.generation,
				     attempt_written(b, pod->name));
	}
}

static void remember_successes(struct life *life)
{
	struct brain *b = life->b;

	for (size_t i = 0; i < b->pods_len; i++) {
		const struct brain_pod *pod = &b->pods[i];

		if (pod->pod.phase != HF_POD_SUCCEEDED ||
		    pod->pod.generation != b->plan.status.ledger.generation ||
		    pod->pod.attempt != attempt_written(b, pod->name) ||
		    b->view.run_policy.suspend.value ||
		    life->succeeded_len == HF_ARRAY_LEN(life->succeeded))
			continue;
		memcpy(life->succeeded[life->succeeded_len], pod->name, BRAIN_TEXT_MAX);
		life->succeeded_in[life->succeeded_len++] = pod->pod.generation;
	}
}

static void write_status(struct life *life)
{
	brain_write_status(life->b);
	remember_successes(life);
}

/* ---- performing, more or less ------------------------------------------------------------------------------ */

static void perform_some(struct life *life)
{
	struct brain *b = life->b;
	size_t limit = hf_plan_actions(&b->plan), done = 0;

	switch (roll(life, 6)) {
	case 0: return; /* all of it is lost */
	case 1:
		write_status(life); /* died behind the write */
		return;
	case 2: /* died in the middle; what is not urgent may not have been written */
		if (b->plan.status_urgent || roll(life, 2))
			write_status(life);
		limit = limit > 0 ? roll(life, (unsigned)limit + 1) : 0;
		break;
	default: write_status(life);
	}
	for (size_t s = 0; s < b->plan.stages_len; s++) {
		for (size_t a = 0; a < b->plan.stages[s].actions_len; a++) {
			if (done++ >= limit)
				return;
			brain_perform(b, &b->plan.stages[s].actions[a]);
			if (roll(life, 4) == 0) /* the reply was lost: sent again */
				brain_perform(b, &b->plan.stages[s].actions[a]);
		}
	}
}

static void check_plan(struct life *life)
{
	conditions_hold(life);
	actions_hold(life);
	ledger_holds(life);
}

/* With nothing from outside but kubelets that do their work, the plans come to rest. */
static void comes_to_rest(struct life *life)
{
	struct brain *b = life->b;

	for (int round = 0; round < 200; round++) {
		obey_orders(life);
		brain_step(b);
		if (b->job_deleted)
			return;
		check_plan(life);
		if (!b->plan.status_changed && hf_plan_actions(&b->plan) == 0) {
			if (b->plan.wake_at == HF_TIME_NEVER)
				return;
			b->now = b->plan.wake_at;
			brain_nodes_heard(b);
			brain_answer(b);
			brain_terminating_gone(b);
			continue;
		}
		brain_perform_all(b);
		brain_answer(b);
		remember(life);
		brain_terminating_gone(b);
		brain_start_all(b);
	}
	fail_msg("seed %llu: no rest, after\n%s", (unsigned long long)life->seed, brain_text(b));
}

static void live(uint64_t seed, bool execs)
{
	struct life life = {.b = &world, .random = seed * 7919 + 1, .seed = seed, .execs = execs};

	random_job(&life);
	for (size_t i = 0; i < world.nodes_len; i++)
		world.nodes[i].has_agent = execs;
	for (int i = 0; i < EVENTS && !world.job_deleted; i++) {
		if (roll(&life, 8) > 0)
			happens(&life);
		else if (roll(&life, 2))
			happens_to_node(&life);
		else
			brain_answer(&world);
		furnish_pods(&life);
		brain_step(&world);
		check_plan(&life);
		if (i % 5 == 0)
			same_input_same_bytes(&life);
		perform_some(&life);
		remember(&life);
	}
	if (!world.job_deleted)
		comes_to_rest(&life);
	brain_release(&world);
}

static void every_plan_keeps_its_promises_on_four_hundred_lives(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		live(seed, false);
}

static void every_plan_keeps_them_whatever_agents_report_of_programs(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		live(SEEDS + seed, true);
}

/* ---- dying between any two actions ------------------------------------------------------------------------------ */

/* What the operator was about to do when it died: the status write is action 0. */
struct cut {
	int step;
	size_t action;
	bool reply_lost; /* the action was done, and its reply was lost */
};

/* Performs the stages up to the cut; true: it died there. */
static bool perform_until(struct brain *b, const struct cut *cut)
{
	size_t n = 0;

	for (size_t s = 0; s < b->plan.stages_len; s++) {
		for (size_t a = 0; a < b->plan.stages[s].actions_len; a++) {
			bool here = cut && ++n == cut->action;

			if (!here || cut->reply_lost)
				brain_perform(b, &b->plan.stages[s].actions[a]);
			if (here)
				return true;
		}
	}
	return false;
}

/* One pass of an operator that may die in it; true: it died. */
static bool pass_with_cut(struct brain *b, const struct cut *cut)
{
	bool at_status = cut && cut->action == 0;
	bool died;

	if (at_status && !cut->reply_lost)
		return true;
	brain_write_status(b);
	if (at_status)
		return true;
	died = perform_until(b, cut);
	brain_answer(b);
	brain_terminating_gone(b);
	brain_start_all(b);
	return died;
}

/* false: the life had no such moment. */
static bool run_with_cut(struct brain *b, const struct cut *cut)
{
	bool cut_off = false;

	for (int step = 0; step < 60; step++) {
		brain_step(b);
		if (!b->plan.status_changed && hf_plan_actions(&b->plan) == 0) {
			if (b->plan.wake_at == HF_TIME_NEVER)
				return cut_off;
			b->now = b->plan.wake_at;
			brain_answer(b);
			continue;
		}
		if (pass_with_cut(b, step == cut->step ? cut : NULL))
			cut_off = true;
	}
	fail_msg("no rest");
	return false;
}

/* Only one pod of the job is on its node. */
static void strand_others(struct brain *b, const char *name)
{
	const struct brain_pod *pod = brain_pod(b, name);

	for (size_t i = 0; i < b->pods_len; i++) {
		if (&b->pods[i] != pod)
			memcpy(b->pods[i].node, hf_streq(pod->node, "n0") ? "n1" : "n0", 3);
	}
}

static void one_failure(struct brain *b, const char *scope, const char *what)
{
	brain_init(b, &brain_kind, 1, 3);
	b->view.run_policy.recovery.restart_scope = scope;
	b->view.run_policy.backoff_limit = HF_SOME_INT(3);
	brain_run_up(b);
	brain_after(b, 100);
	if (hf_streq(what, "crash")) {
		brain_exit(b, "demo-hand-1", 137);
	} else if (hf_streq(what, "two crash")) {
		brain_exit(b, "demo-hand-1", 137);
		brain_exit(b, "demo-hand-2", 1);
	} else if (hf_streq(what, "in place")) {
		brain_crash_in_place(b, "demo-hand-1");
	} else if (hf_streq(what, "node lost")) {
		brain_lose(b, brain_pod(b, "demo-hand-1")->node);
		strand_others(b, "demo-hand-1");
	} else {
		brain_gone(b, "demo-hand-1");
	}
}

static void count_once_at_every_cut(const char *scope, const char *what, enum hf_budget budget)
{
	static const bool lost[] = {false, true};

	for (int step = 0; step < 16; step++) {
		for (size_t action = 0; action < 12; action++) {
			for (size_t l = 0; l < HF_ARRAY_LEN(lost); l++) {
				struct cut cut = {step, action, lost[l]};
				bool was;

				one_failure(&world, scope, what);
				was = run_with_cut(&world, &cut);
				for (int i = 0; i < HF_BUDGETS; i++)
					assert_int_equal(world.view.status.ledger.restarts[i],
							 i == (int)budget);
				assert_int_equal(world.view.status.ledger.incident.id, 1);
				assert_int_equal(world.pods_len, 4);
				brain_release(&world);
				if (!was && action > 0)
					action = 12;
			}
		}
	}
}

static void each_observed_end_counts_once_wherever_the_operator_dies(void **state)
{
	(void)state;
	count_once_at_every_cut("Replica", "crash", HF_BUDGET_APPLICATION);
	count_once_at_every_cut("Job", "crash", HF_BUDGET_APPLICATION);
	count_once_at_every_cut("Replica", "two crash", HF_BUDGET_APPLICATION);
	count_once_at_every_cut("Job", "two crash", HF_BUDGET_APPLICATION);
	count_once_at_every_cut("Replica", "in place", HF_BUDGET_APPLICATION);
	count_once_at_every_cut("Replica", "vanish", HF_BUDGET_INFRASTRUCTURE);
	count_once_at_every_cut("Job", "vanish", HF_BUDGET_INFRASTRUCTURE);
	count_once_at_every_cut("Replica", "node lost", HF_BUDGET_INFRASTRUCTURE);
	count_once_at_every_cut("Job", "node lost", HF_BUDGET_INFRASTRUCTURE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plan_keeps_its_promises_on_four_hundred_lives),
		cmocka_unit_test(every_plan_keeps_them_whatever_agents_report_of_programs),
		cmocka_unit_test(each_observed_end_counts_once_wherever_the_operator_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
