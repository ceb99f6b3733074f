/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/orders.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Orders without a connection to an agent, unless the test connects one; the tests give targets by take(). */
static struct hf_exec_orders open_orders(bool hold)
{
	struct hf_exec_orders o;

	hf_exec_orders_open(&o, "", hold, 0);
	return o;
}

static void take(struct hf_exec_orders *o, const char *line, int64_t now_ms)
{
	struct hf_process_target target;

	assert_true(hf_process_target_parse(line, strlen(line), &target));
	hf_exec_orders_take(o, &target, now_ms);
}

static void connect_agent(struct hf_exec_orders *o, int *ret_peer)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
	o->link.fd = fds[0];
	*ret_peer = fds[1];
}

static void expect_told_at(struct hf_exec_orders *o, int peer, const char *wanted, int64_t now_ms)
{
	char text[HF_PROCESS_LINE_BYTES_MAX] = "";

	hf_exec_orders_tell(o, now_ms);
	if (recv(peer, text, sizeof(text) - 1, MSG_DONTWAIT) < 0)
		text[0] = '\0';
	assert_string_equal(text, wanted);
}

static void expect_told(struct hf_exec_orders *o, int peer, const char *wanted)
{
	expect_told_at(o, peer, wanted, 0);
}

static void test_without_agent(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);

	assert_true(hf_exec_orders_let_start(&o, 0));
	hf_exec_orders_started(&o, 0);
	assert_int_equal(o.phase, HF_EXEC_RUNNING);
	assert_false(o.own.known);
	assert_false(hf_exec_orders_let_stay(&o));
	assert_true(hf_exec_orders_deadline_ms(&o) == INT64_MAX);
}

/* If exec is connected, it waits a second for a target before the first start; without an answer it starts CMD. */
static void test_first_start(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);
	int peer;

	connect_agent(&o, &peer);
	assert_false(hf_exec_orders_let_start(&o, HF_EXEC_FIRST_MS - 1));
	assert_true(hf_exec_orders_let_start(&o, HF_EXEC_FIRST_MS));
	/* A target without a start: the rank's job does not restart in place, so CMD starts at once. */
	take(&o, "target", 5);
	assert_true(hf_exec_orders_let_start(&o, 5));
	take(&o, "target generation=2 attempt=1 wait=60 first_generation=2 first_attempt=0", 6);
	assert_true(hf_exec_orders_let_start(&o, 6));
	hf_exec_orders_started(&o, 6);
	expect_told(&o, peer, "state phase=running generation=2 attempt=1 ordinal=1");
	(void)close(peer);
	hf_agent_link_close(&o.link);
}

static void test_learns_start_later(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);
	int peer;

	hf_exec_orders_started(&o, 0);
	connect_agent(&o, &peer);
	expect_told(&o, peer, "state phase=running ordinal=1");
	/* The target's start is above the pod's first start: that is an order to stop. */
	take(&o, "target generation=3 attempt=0 hold=1 wait=60 first_generation=2 first_attempt=1",
	     1);
	assert_int_equal(o.phase, HF_EXEC_SAVING);
	expect_told(&o, peer, "state phase=running generation=2 attempt=1 ordinal=1");
	expect_told(&o, peer, "");
	(void)close(peer);
	hf_agent_link_close(&o.link);
}

static void test_barrier(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);
	int peer;

	connect_agent(&o, &peer);
	take(&o, "target generation=1 attempt=0 wait=60 first_generation=1 first_attempt=0", 0);
	hf_exec_orders_started(&o, 0);
	expect_told(&o, peer, "state phase=running generation=1 attempt=0 ordinal=1");
	/* Targets that repeat, or are late or lower, change nothing. */
	take(&o, "target generation=1 attempt=0 wait=60", 1);
	take(&o, "target generation=0 attempt=9 hold=1 wait=60", 1);
	assert_int_equal(o.phase, HF_EXEC_RUNNING);
	take(&o, "target generation=2 attempt=0 hold=1 wait=60 rendezvous=2", 2);
	assert_int_equal(o.phase, HF_EXEC_SAVING);
	hf_exec_orders_move(&o, HF_EXEC_SAVED, 3);
	expect_told(&o, peer, "state phase=running generation=1 attempt=0 ordinal=1");
	hf_exec_orders_move(&o, HF_EXEC_STAY, 4);
	expect_told(&o, peer, "state phase=down generation=2 attempt=0 ordinal=1");
	assert_false(hf_exec_orders_let_start(&o, 4));
	/* A go for a start below the ordered one does not start CMD. */
	take(&o, "target generation=1 attempt=0 wait=60", 5);
	assert_false(hf_exec_orders_let_start(&o, 5));
	/* A newer order at the barrier. */
	take(&o, "target generation=3 attempt=0 hold=1 wait=60", 6);
	expect_told(&o, peer, "state phase=down generation=3 attempt=0 ordinal=1");
	take(&o, "target generation=2 attempt=0 wait=60", 7);
	assert_false(hf_exec_orders_let_start(&o, 7));
	take(&o, "target generation=3 attempt=0 wait=60", 8);
	assert_true(hf_exec_orders_let_start(&o, 8));
	hf_exec_orders_started(&o, 8);
	expect_told(&o, peer, "state phase=running generation=3 attempt=0 ordinal=2");
	(void)close(peer);
	hf_agent_link_close(&o.link);
}

static void test_stay(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);
	int peer;

	connect_agent(&o, &peer);
	take(&o, "target generation=1 attempt=0 wait=60", 0);
	hf_exec_orders_started(&o, 0);
	assert_true(hf_exec_orders_let_stay(&o));
	take(&o, "target generation=1 attempt=0", 1);
	assert_false(hf_exec_orders_let_stay(&o));
	take(&o, "target generation=1 attempt=0 wait=60", 2);
	o.leaving = true;
	assert_false(hf_exec_orders_let_stay(&o));
	o.leaving = false;
	o.told.code = 3;
	hf_exec_orders_move(&o, HF_EXEC_STAY, 1000);
	assert_int_equal(o.phase, HF_EXEC_ENDED);
	assert_true(hf_exec_orders_deadline_ms(&o) == 61000);
	/* Repeated targets do not make exec wait longer after CMD has ended.  If the job forbids restarts in
	 * place, exec ends at once. */
	take(&o, "target generation=1 attempt=0 wait=60 hold=1", 30000);
	assert_true(hf_exec_orders_deadline_ms(&o) == 61000);
	take(&o, "target generation=1 attempt=0", 31000);
	assert_true(hf_exec_orders_deadline_ms(&o) == 1000);
	/* A target for the next attempt of this rank alone has no hold, so CMD starts at once. */
	take(&o, "target generation=1 attempt=1 wait=60", 32000);
	assert_int_equal(o.phase, HF_EXEC_DOWN);
	assert_true(hf_exec_orders_let_start(&o, 32000));
	(void)close(peer);
	hf_agent_link_close(&o.link);
}

/* An agent that was killed comes back within seconds. */
static void test_stay_without_connection(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);
	int peer;

	connect_agent(&o, &peer);
	take(&o, "target generation=1 attempt=0 wait=60", 0);
	hf_exec_orders_started(&o, 0);
	hf_agent_link_close(&o.link);
	(void)close(peer);
	assert_true(hf_exec_orders_let_stay(&o));
	hf_exec_orders_move(&o, HF_EXEC_STAY, 1000);
	assert_int_equal(o.phase, HF_EXEC_ENDED);
	assert_true(hf_exec_orders_deadline_ms(&o) == 1000 + HF_EXEC_RETURN_MS);
	hf_exec_orders_receive(&o, 2000);
	assert_true(hf_exec_orders_deadline_ms(&o) == 1000 + HF_EXEC_RETURN_MS);
	/* The agent is back: it has the whole wait to answer. */
	connect_agent(&o, &peer);
	hf_exec_orders_receive(&o, 3000);
	assert_true(hf_exec_orders_deadline_ms(&o) == 61000);
	/* The agent learns when CMD ended. */
	expect_told_at(&o, peer, "state phase=ended generation=1 attempt=0 ordinal=1 ended_ms=2500",
		       3500);
	(void)close(peer);
	hf_agent_link_close(&o.link);

	/* A shorter wait counts. */
	o = open_orders(false);
	take(&o, "target generation=1 attempt=0 wait=5", 0);
	hf_exec_orders_started(&o, 0);
	hf_exec_orders_move(&o, HF_EXEC_STAY, 1000);
	assert_true(hf_exec_orders_deadline_ms(&o) == 6000);
}

static void test_down_is_over(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);

	take(&o, "target generation=1 attempt=0 wait=60", 0);
	hf_exec_orders_started(&o, 0);
	take(&o, "target generation=2 attempt=0 wait=60 hold=1", 1000);
	hf_exec_orders_move(&o, HF_EXEC_STAY, 2000);
	assert_true(hf_exec_orders_deadline_ms(&o) == 62000);
	/* While the agent repeats the target with a hold, the rank waits on. */
	take(&o, "target generation=2 attempt=0 wait=60 hold=1", 12000);
	assert_true(hf_exec_orders_deadline_ms(&o) == 72000);
	assert_true(hf_exec_orders_wake_ms(&o, 12000) == 72000);
	/* A go comes in time, however short the wait of its target is. */
	take(&o, "target generation=2 attempt=0 wait=2", 20000);
	assert_true(hf_exec_orders_let_start(&o, 20000));
	assert_true(hf_exec_orders_deadline_ms(&o) == 22000);
}

/* An exec that has stopped its rank by an order reports the save, although the job does not restart in place: the
 * operator deletes the pod after that report. */
static void test_down_without_wait(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);
	int peer;

	connect_agent(&o, &peer);
	take(&o, "target generation=1 attempt=0 save=20", 0);
	hf_exec_orders_started(&o, 0);
	assert_false(hf_exec_orders_let_stay(&o));
	take(&o, "target generation=2 attempt=0 save=20 hold=1", 1000);
	assert_int_equal(o.phase, HF_EXEC_SAVING);
	assert_true(hf_exec_orders_let_stay(&o));
	hf_exec_orders_move(&o, HF_EXEC_SAVED, 2000);
	assert_true(hf_exec_orders_let_stay(&o));
	o.told.has_saved = true;
	o.told.saved = 83;
	hf_exec_orders_move(&o, HF_EXEC_STAY, 3000);
	expect_told(&o, peer, "state phase=down generation=2 attempt=0 ordinal=1 saved=83");
	assert_true(hf_exec_orders_deadline_ms(&o) == 3000 + HF_EXEC_HOLD_S * 1000);
	(void)close(peer);
	hf_agent_link_close(&o.link);
}

static void test_hold(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(true);

	assert_false(hf_exec_orders_let_start(&o, 10 * HF_EXEC_FIRST_MS));
	assert_true(hf_exec_orders_deadline_ms(&o) == HF_EXEC_HOLD_S * 1000);
	/* The agent does not know the ledger's last write yet: its target is below the pod's first start, so CMD
	 * does not start. */
	take(&o, "target generation=1 attempt=0 wait=60 first_generation=2 first_attempt=0", 1000);
	assert_false(hf_exec_orders_let_start(&o, 1000));
	take(&o, "target generation=2 attempt=0 wait=60 hold=1 first_generation=2 first_attempt=0",
	     2000);
	assert_false(hf_exec_orders_let_start(&o, 2000));
	assert_true(hf_exec_orders_deadline_ms(&o) == 62000);
	take(&o, "target generation=2 attempt=0 wait=60 first_generation=2 first_attempt=0", 3000);
	assert_true(hf_exec_orders_let_start(&o, 3000));
	hf_exec_orders_started(&o, 3000);
	assert_true(o.own.known && o.own.generation == 2);
}

/* A target below the one that holds the rank does not let CMD start. */
static void test_a_late_target_does_not_end_the_hold(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);

	take(&o, "target generation=5 attempt=0 wait=60 hold=1", 0);
	assert_false(hf_exec_orders_let_start(&o, 0));
	take(&o, "target generation=4 attempt=7 wait=60", 1);
	assert_false(hf_exec_orders_let_start(&o, HF_EXEC_FIRST_MS + 1));
	take(&o, "target generation=5 attempt=0 wait=60", 2);
	assert_true(hf_exec_orders_let_start(&o, 2));
}

static void test_takes_some_targets_at_once(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);
	char line[64];
	int peer;

	connect_agent(&o, &peer);
	for (int i = 1; i <= 100; i++) {
		snprintf(line, sizeof(line), "target generation=%d attempt=0 wait=60", i);
		assert_true(send(peer, line, strlen(line), MSG_DONTWAIT) > 0);
	}
	hf_exec_orders_receive(&o, 0);
	assert_int_equal(o.target.start.generation, 64);
	hf_exec_orders_receive(&o, 0);
	assert_int_equal(o.target.start.generation, 100);
	(void)close(peer);
	hf_agent_link_close(&o.link);
}

/* A rank whose first target has a hold waits as a rank with HOLDFAST_HOLD does. */
static void test_held_at_start(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);
	int peer;

	connect_agent(&o, &peer);
	take(&o, "target generation=2 attempt=0 wait=60 hold=1 first_generation=2 first_attempt=0",
	     1);
	hf_agent_link_close(&o.link);
	assert_false(hf_exec_orders_let_start(&o, 2 * HF_EXEC_FIRST_MS));
	o.link.fd = dup(peer);
	o.link.due = true;
	expect_told(&o, peer, "");
	(void)close(peer);
	hf_agent_link_close(&o.link);
}

/* After a signal to end, or after the fence has ended CMD, no order counts. */
static void test_leaving(void **state HF_UNUSED)
{
	struct hf_exec_orders o = open_orders(false);

	take(&o, "target generation=1 attempt=0 wait=60", 0);
	hf_exec_orders_started(&o, 0);
	o.leaving = true;
	take(&o, "target generation=2 attempt=0 wait=60", 1);
	assert_int_equal(o.phase, HF_EXEC_RUNNING);
	o.leaving = false;
	hf_exec_orders_move(&o, HF_EXEC_FENCED, 2);
	take(&o, "target generation=2 attempt=0 wait=60", 3);
	assert_int_equal(o.phase, HF_EXEC_LEAVING);
	assert_false(hf_exec_orders_let_start(&o, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_agent),
		cmocka_unit_test(test_first_start),
		cmocka_unit_test(test_learns_start_later),
		cmocka_unit_test(test_barrier),
		cmocka_unit_test(test_stay),
		cmocka_unit_test(test_stay_without_connection),
		cmocka_unit_test(test_down_is_over),
		cmocka_unit_test(test_down_without_wait),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_a_late_target_does_not_end_the_hold),
		cmocka_unit_test(test_takes_some_targets_at_once),
		cmocka_unit_test(test_held_at_start),
		cmocka_unit_test(test_leaving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
