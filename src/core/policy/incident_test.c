/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include <stdio.h>

static struct brain b;

static const struct hf_ledger *ledger(void)
{
	return &b.plan.status.ledger;
}

/* The pod ends by an eviction. */
static void evict(const char *pod)
{
	brain_exit(&b, pod, 143);
	brain_disrupt(&b, pod);
}

/* All ranks run again after this time. */
static void run_again(int seconds)
{
	brain_after(&b, seconds);
	brain_start_all(&b);
	brain_quiet(&b);
}

/* One incident from start to end: hand-0 crashes, is replaced, and all ranks run again. */
static void one_incident(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_after(&b, 60);
	brain_exit(&b, "demo-hand-0", 137);
	brain_quiet(&b);
	run_again(30);
	assert_int_equal(b.view.status.ledger.incident.id, 1);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
}

static void two_hundred_peers_cost_one(void **state)
{
	char name[32];
	int attempts = 0;

	(void)state;
	brain_init(&b, &brain_kind, 1, 200);
	brain_run_up(&b);
	for (int i = 0; i < 200; i += 2) {
		snprintf(name, sizeof(name), "demo-hand-%d", i);
		brain_exit(&b, name, 137);
	}
	brain_quiet(&b);
	/* The remaining peers notice the fault later, at different times. */
	for (int i = 1; i < 200; i += 2) {
		brain_after(&b, 5);
		snprintf(name, sizeof(name), "demo-hand-%d", i);
		brain_exit(&b, name, 1);
		brain_quiet(&b);
	}
	assert_int_equal(ledger()->incident.id, 1);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	for (const char *c = ledger()->roles[BRAIN_HAND].attempts; *c; c++)
		attempts += *c == ':';
	assert_int_equal(attempts, 200);
	brain_release(&b);
}

static void an_attempt_that_began_after_it_opens_the_next(void **state)
{
	(void)state;
	one_incident();
	brain_exit(&b, "demo-hand-0", 137);
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 2);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 2);
	assert_int_equal(ledger()->records_len, 2);
	brain_release(&b);
}

static void a_peer_that_began_before_it_costs_nothing_for_half_an_hour(void **state)
{
	(void)state;
	one_incident();
	brain_after(&b, 1799);
	brain_exit(&b, "demo-hand-1", 137);
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 1);
	brain_release(&b);
	one_incident();
	brain_after(&b, 1801);
	brain_exit(&b, "demo-hand-1", 137);
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 2);
	brain_release(&b);
}

static void an_incident_stays_open_while_a_rank_is_not_back(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 137);
	brain_quiet(&b);
	brain_after(&b, 100000); /* the new pod stays Pending */
	brain_exit(&b, "demo-hand-1", 1);
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 1);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	brain_release(&b);
}

static void a_late_peer_reopens_the_wait_for_all_ranks(void **state)
{
	(void)state;
	one_incident();
	assert_true(b.view.status.ledger.records[0].running_at != HF_TIME_NONE);
	brain_exit(&b, "demo-hand-1", 1);
	brain_step(&b);
	assert_true(ledger()->records[0].running_at == HF_TIME_NONE);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	brain_release(&b);
}

static void a_vanished_pod_belongs_to_what_is_being_mended(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 137);
	brain_quiet(&b);
	brain_gone(&b, "demo-hand-1");
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 1);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 0);
	brain_release(&b);
	one_incident();
	brain_gone(&b, "demo-hand-1");
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 2);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	brain_release(&b);
}

static void evidence_of_infrastructure_takes_the_whole_incident(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	brain_exit(&b, "demo-hand-1", 1);
	brain_disrupt(&b, "demo-hand-1");
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 1);
	assert_int_equal(ledger()->incident.cause, HF_CLASS_INFRASTRUCTURE);
	assert_int_equal(ledger()->incident.charged, HF_BUDGET_INFRASTRUCTURE);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 0);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_int_equal(ledger()->records[0].cause, HF_CLASS_INFRASTRUCTURE);
	brain_release(&b);
}

/* hand-0 is evicted, and all ranks run again after 30 s. */
static void one_eviction(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_after(&b, 60);
	evict("demo-hand-0");
	brain_quiet(&b);
	run_again(30);
	assert_int_equal(b.view.status.ledger.incident.id, 1);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 1);
}

/* Two nodes are emptied one after the other. The second eviction stops ranks that have started since the first one. */
static void an_eviction_after_the_recovery_opens_the_next(void **state)
{
	(void)state;
	one_eviction();
	evict("demo-hand-1");
	brain_quiet(&b);
	assert_int_equal(ledger()->incident.id, 2);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 2);
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 2);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 0);
	brain_release(&b);
}

static void an_eviction_before_the_recovery_costs_nothing(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	evict("demo-hand-0");
	brain_quiet(&b);
	brain_after(&b, 100000); /* the new pod stays Pending */
	evict("demo-hand-1");
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 1);
	brain_release(&b);
}

/* An eviction may be reported after the peers that crash of it. */
static void an_eviction_explains_a_crash_of_the_last_minute(void **state)
{
	(void)state;
	one_incident();
	brain_after(&b, 30);
	evict("demo-hand-1");
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 1);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 0);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	brain_release(&b);
	one_incident();
	brain_after(&b, 31);
	evict("demo-hand-1");
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 2);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	brain_release(&b);
}

static void put(const char *pod, const char *node)
{
	struct brain_pod *at = brain_pod(&b, pod);

	snprintf(at->node, sizeof(at->node), "%s", node);
}

/* hand-0 and hand-1 are on node n0, hand-2 and the boss on n1. hand-0 is evicted and moves to n1, and all ranks run again. */
static void one_rank_leaves_its_node(void)
{
	brain_init(&b, &brain_kind, 1, 3);
	b.view.run_policy.recovery.infrastructure_limit = HF_SOME_INT(1);
	brain_run_up(&b);
	put("demo-boss-0", "n1");
	put("demo-hand-0", "n0");
	put("demo-hand-1", "n0");
	put("demo-hand-2", "n1");
	brain_after(&b, 60);
	evict("demo-hand-0");
	brain_quiet(&b);
	put("demo-hand-0", "n1");
	run_again(20);
	assert_true(b.view.status.ledger.records[0].running_at != HF_TIME_NONE);
}

/* A drain that a PodDisruptionBudget holds up, or a kubelet that shuts its node down while one rank saves for longer. */
static void ranks_that_leave_one_node_cost_one(void **state)
{
	(void)state;
	one_rank_leaves_its_node();
	evict("demo-hand-1");
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_int_equal(ledger()->streak[HF_BUDGET_INFRASTRUCTURE], 1);
	assert_string_equal(ledger()->records[0].replica, "hand-1");
	assert_true(brain_says(&b, HF_TOPIC_BUDGET, "the same fault of node n0"));
	/* It stops the rank that has moved, too. */
	assert_int_equal(ledger()->incident.id, 2);
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 2);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 0);
	brain_release(&b);
	/* A peer crashes of the next eviction, and is reported first. */
	one_rank_leaves_its_node();
	brain_exit(&b, "demo-hand-0", 137);
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_APPLICATION], 1);
	brain_after(&b, 2);
	evict("demo-hand-1");
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	assert_int_equal(ledger()->incident.cause, HF_CLASS_INFRASTRUCTURE);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1); /* no more are allowed */
	brain_release(&b);
	/* So it is if the crash is a verdict. */
	one_rank_leaves_its_node();
	b.replicas[1].restart_policy = "ExitCode";
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	brain_perform_all(&b);
	brain_after(&b, 2);
	evict("demo-hand-1");
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	brain_release(&b);
	/* The next node costs one more. */
	one_rank_leaves_its_node();
	evict("demo-hand-2");
	evict("demo-hand-1");
	brain_nodes_heard(&b);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_release(&b);
}

/* hand-0 starts again on the node that it was evicted from: its next eviction is another one. */
static void a_rank_that_came_to_a_node_later_costs_one_more(void **state)
{
	(void)state;
	one_rank_leaves_its_node();
	put("demo-hand-0", "n0");
	evict("demo-hand-0");
	brain_nodes_heard(&b);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_release(&b);
	/* So is one after the end of the incident. */
	one_rank_leaves_its_node();
	brain_after(&b, 1800);
	evict("demo-hand-1");
	brain_nodes_heard(&b);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_release(&b);
}

/* Ten minutes after the eviction of hand-0 another node dies, and a peer that the eviction has moved crashes of that later. */
static void a_node_lost_after_the_recovery_opens_the_next(void **state)
{
	(void)state;
	one_rank_leaves_its_node();
	b.view.run_policy.recovery.infrastructure_limit = (struct hf_opt_int){0};
	put("demo-hand-0", "n0");
	put("demo-hand-1", "n0");
	put("demo-boss-0", "n0");
	brain_after(&b, 600);
	brain_nodes_heard(&b);
	brain_quiet(&b);
	brain_lose(&b, "n1"); /* with hand-2, which has started before */
	brain_quiet(&b);
	for (int i = 0; i < 12; i++) {
		brain_after(&b, 10);
		brain_answer(&b);
		brain_quiet(&b);
	}
	brain_start_all(&b);
	brain_quiet(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	assert_int_equal(ledger()->incident.id, 2);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 2);
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 0);
	brain_release(&b);
}

static void fail_device(const char *pod, struct hf_device_seen *device)
{
	brain_pod(&b, pod)->pod.devices = device;
	brain_pod(&b, pod)->pod.devices_len = 1;
}

/* One device fails under two ranks. The second rank's agent reports it when the first rank runs again. */
static void a_device_fault_that_is_reported_late_costs_one(void **state)
{
	struct hf_device_seen device = {
		.id = "GPU-1", .cls = "reboot", .agent = true, .fatal = true, .held = true};

	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	b.replicas[1].restart_policy = "ExitCode";
	brain_run_up(&b);
	brain_after(&b, 60);
	device.first = device.last = b.now;
	fail_device("demo-hand-0", &device);
	brain_quiet(&b);
	brain_terminating_gone(&b);
	brain_quiet(&b);
	brain_after(&b, 20);
	brain_quiet(&b);
	brain_start_all(&b);
	brain_quiet(&b);
	brain_pod(&b, "demo-hand-0")->pod.devices_len = 0;
	assert_string_equal(brain_last_condition(&b), HF_COND_RUNNING);
	brain_after(&b, 30);
	brain_nodes_heard(&b);
	fail_device("demo-hand-1", &device);
	brain_quiet(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_after(&b, 1);
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	assert_int_equal(ledger()->restarts[HF_BUDGET_DEVICE], 1);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 0);
	brain_release(&b);
}

/* All ranks run again soon after a crash, and then a rank is evicted: the crash is not of that. */
static void an_eviction_soon_after_a_crash_opens_the_next(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	b.replicas[1].restart_policy = "ExitCode";
	brain_run_up(&b);
	brain_after(&b, 60);
	brain_exit(&b, "demo-hand-0", 137);
	brain_quiet(&b);
	run_again(10);
	brain_after(&b, 30);
	brain_nodes_heard(&b);
	brain_disrupt(&b, "demo-hand-1");
	brain_terminate(&b, "demo-hand-1");
	brain_quiet(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_after(&b, 1);
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	brain_release(&b);
}

/* A person deletes the pod of a rank that was not part of the last incident. */
static void a_deletion_after_the_recovery_opens_the_next(void **state)
{
	(void)state;
	one_eviction();
	brain_terminate(&b, "demo-hand-1");
	brain_quiet(&b);
	assert_int_equal(ledger()->incident.id, 2);
	assert_int_equal(ledger()->incident.charged, HF_BUDGET_NONE);
	brain_exit(&b, "demo-hand-0", 1);
	brain_step(&b);
	assert_int_equal(ledger()->incident.id, 2);
	assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 0);
	brain_release(&b);
}

static void a_cause_is_adopted_once(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	for (int i = 1; i < 3; i++) {
		const char *name = i == 1 ? "demo-hand-1" : "demo-hand-2";

		brain_exit(&b, name, 1);
		brain_disrupt(&b, name);
		brain_quiet(&b);
	}
	assert_int_equal(ledger()->restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	brain_release(&b);
}

static void the_end_that_finished_first_explains_the_incident(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	b.replicas[1].restart_policy = "ExitCode";
	brain_run_up(&b);
	brain_after(&b, 10);
	brain_exit(&b, "demo-hand-2", 137); /* the cause … */
	brain_after(&b, 1);
	brain_exit(&b, "demo-hand-0", 1); /* ranks that fail because of hand-2's termination */
	brain_exit(&b, "demo-hand-1", 1);
	brain_step(&b);
	assert_string_equal(ledger()->records[0].replica, "hand-2");
	assert_string_equal(brain_last_condition(&b), HF_COND_RESTARTING);
	brain_release(&b);
	/* In the opposite order, the permanent exit code comes first and fails the job. */
	brain_init(&b, &brain_kind, 1, 3);
	b.replicas[1].restart_policy = "ExitCode";
	brain_run_up(&b);
	brain_exit(&b, "demo-hand-0", 1);
	brain_after(&b, 1);
	brain_exit(&b, "demo-hand-2", 137);
	brain_nodes_heard(&b);
	brain_step(&b);
	assert_string_equal(brain_last_condition(&b), HF_COND_FAILED);
	brain_release(&b);
}

static void end_process(const char *name, int64_t generation, int code)
{
	brain_report(&b, name, HF_PROCESS_ENDED, generation, 0);
	brain_pod(&b, name)->process.code = HF_SOME_INT(code);
}

/* hand-1 fails of the end of hand-0, which is reported later; hand-2 has failed after both. */
static void an_earlier_end_that_is_reported_late_explains_the_incident(void **state)
{
	static const char *const scopes[] = {"Job", "Replica"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(scopes); i++) {
		brain_init(&b, &brain_kind, 1, 3);
		b.view.run_policy.recovery.restart_scope = scopes[i];
		brain_run_up_exec(&b);
		brain_after(&b, 60);
		end_process("demo-hand-1", 1, 1);
		brain_step(&b);
		brain_perform_all(&b);
		assert_string_equal(ledger()->records[0].replica, "hand-1");
		end_process("demo-hand-2", 1, 3);
		brain_pod(&b, "demo-hand-2")->process.at = b.now + HF_MS;
		brain_step(&b);
		brain_perform_all(&b);
		assert_string_equal(ledger()->records[0].replica, "hand-1");
		brain_after(&b, 1);
		end_process("demo-hand-0", 1, 137);
		brain_pod(&b, "demo-hand-0")->process.at = b.now - 1200 * HF_MS;
		brain_step(&b);
		assert_string_equal(ledger()->records[0].replica, "hand-0");
		assert_int_equal(ledger()->records[0].exit_code.value, 137);
		assert_int_equal(ledger()->incident.id, 1);
		assert_int_equal(ledger()->restarts[HF_BUDGET_APPLICATION], 1);
		brain_release(&b);
	}
}

/* The end of a process before the one that failed explains nothing. */
static void an_end_of_an_earlier_generation_explains_no_later_incident(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 3);
	b.view.run_policy.recovery.restart_scope = "Job";
	brain_run_up_exec(&b);
	brain_after(&b, 60);
	end_process("demo-hand-0", 1, 1);
	brain_step(&b);
	brain_perform_all(&b);
	brain_report_all(&b, HF_PROCESS_DOWN, 2);
	brain_step(&b);
	brain_perform_all(&b);
	brain_after(&b, 60);
	brain_report_all(&b, HF_PROCESS_RUNNING, 2);
	brain_step(&b);
	brain_perform_all(&b);
	end_process("demo-hand-1", 2, 1);
	end_process("demo-hand-0", 1, 137);
	brain_pod(&b, "demo-hand-0")->process.at = b.now - HF_SECOND;
	brain_step(&b);
	brain_perform_all(&b);
	brain_step(&b);
	assert_int_equal(ledger()->generation, 3);
	assert_string_equal(ledger()->records[0].replica, "hand-1");
	brain_release(&b);
}

static void only_ten_restarts_and_the_last_are_kept(void **state)
{
	(void)state;
	one_incident();
	for (int i = 0; i < 15; i++) {
		brain_exit(&b, "demo-hand-0", 137);
		brain_quiet(&b);
		brain_after(&b, 700);
		brain_quiet(&b);
		brain_start_all(&b);
		brain_quiet(&b);
	}
	assert_int_equal(ledger()->incident.id, 16);
	assert_int_equal(ledger()->records_len, HF_RECORDS_MAX);
	assert_int_equal(ledger()->records[0].incident, 16);
	assert_int_equal(ledger()->records[HF_RECORDS_MAX - 1].incident, 16 - HF_RECORDS_MAX + 1);
	brain_release(&b);
}

static void the_code_of_a_run_that_the_kubelet_replaced_is_in_the_record(void **state)
{
	struct hf_container_seen *container;

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_crash_in_place(&b, "demo-hand-1");
	container = &brain_pod(&b, "demo-hand-1")->containers[0];
	container->last_exit_code = HF_SOME_INT(139);
	container->last_signal = 11;
	brain_quiet(&b);
	assert_string_equal(ledger()->records[0].replica, "hand-1");
	assert_true(ledger()->records[0].exit_code.set);
	assert_int_equal(ledger()->records[0].exit_code.value, 139);
	assert_int_equal(ledger()->records[0].signal.value, 11);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_hundred_peers_cost_one),
		cmocka_unit_test(an_attempt_that_began_after_it_opens_the_next),
		cmocka_unit_test(a_peer_that_began_before_it_costs_nothing_for_half_an_hour),
		cmocka_unit_test(an_incident_stays_open_while_a_rank_is_not_back),
		cmocka_unit_test(a_late_peer_reopens_the_wait_for_all_ranks),
		cmocka_unit_test(a_vanished_pod_belongs_to_what_is_being_mended),
		cmocka_unit_test(evidence_of_infrastructure_takes_the_whole_incident),
		cmocka_unit_test(an_eviction_after_the_recovery_opens_the_next),
		cmocka_unit_test(an_eviction_before_the_recovery_costs_nothing),
		cmocka_unit_test(an_eviction_explains_a_crash_of_the_last_minute),
		cmocka_unit_test(ranks_that_leave_one_node_cost_one),
		cmocka_unit_test(a_rank_that_came_to_a_node_later_costs_one_more),
		cmocka_unit_test(a_node_lost_after_the_recovery_opens_the_next),
		cmocka_unit_test(a_device_fault_that_is_reported_late_costs_one),
		cmocka_unit_test(an_eviction_soon_after_a_crash_opens_the_next),
		cmocka_unit_test(a_deletion_after_the_recovery_opens_the_next),
		cmocka_unit_test(a_cause_is_adopted_once),
		cmocka_unit_test(the_end_that_finished_first_explains_the_incident),
		cmocka_unit_test(an_earlier_end_that_is_reported_late_explains_the_incident),
		cmocka_unit_test(an_end_of_an_earlier_generation_explains_no_later_incident),
		cmocka_unit_test(only_ten_restarts_and_the_last_are_kept),
		cmocka_unit_test(the_code_of_a_run_that_the_kubelet_replaced_is_in_the_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
