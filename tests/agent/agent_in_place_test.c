/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* A whole agent, and connections of `holdfast exec` that the test makes by hand: targets that follow the job, and what is
 * published of the processes, and when. */
#include "harness/agent_world.h"

#include "agent/processes.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS_MAX 200
/* In a ledger: the operator restarts ranks in place. */
#define WAITS "\"inPlaceWaitSeconds\":60,"
/* Ledgers of a restart of the whole job in place: all ranks stop, and then start. */
#define BARRIER                                                                                    \
	"{\"generation\":2,\"inPlaceBase\":1," WAITS "\"replicas\":{\"Worker\":{\"hold\":\"0-1\"}}}"
#define GO "{\"generation\":2,\"inPlaceBase\":1," WAITS "\"replicas\":{\"Worker\":{\"hold\":null}}}"

/* A connection of exec; the agent keeps the pointer alone. */
struct peer {
	int targets;
	char last[HF_PROCESS_LINE_BYTES_MAX];
};

struct test {
	struct world *w;
	struct peer peers[PEERS_MAX];
};

static struct hf_exec_peer *peer_of(struct test *t, int i)
{
	return (struct hf_exec_peer *)&t->peers[i];
}

static void on_target(void *arg HF_UNUSED, struct hf_exec_peer *to,
		      const struct hf_process_target *target)
{
	struct peer *peer = (struct peer *)to;

	peer->targets++;
	(void)hf_process_target_format(target, peer->last);
}

static int make(void **state)
{
	struct test *t = calloc(1, sizeof(*t));
	void *world;

	assert_int_equal(setup(&world), 0);
	t->w = world;
	t->w->send_target = on_target;
	t->w->no_devices = true;
	*state = t;
	return 0;
}

static int unmake(void **state)
{
	struct test *t = *state;
	void *world = t->w;
	int rc = teardown(&world);

	free(t);
	return rc;
}

/* ---- the API server's objects ------------------------------------------------------------------- */

static const char *uid_of(struct world *w, const struct hf_resource *resource, const char *name)
{
	return hf_doc_uid(hf_memstore_peek(w->memstore, resource, "default", name));
}

static void create_job(struct world *w, const char *name)
{
	char text[512];

	snprintf(
		text, sizeof(text),
		"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"%s\","
		"\"namespace\":\"default\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":2,"
		"\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}}}}}",
		name);
	apply(w, HF_VERB_CREATE, &hf_pytorchjobs, name, NULL, text);
}

/* Writes the ledger as the operator does. */
static void write_ledger(struct world *w, const char *job, const char *ledger)
{
	char text[512];

	snprintf(text, sizeof(text), "{\"status\":{\"recovery\":%s}}", ledger);
	apply(w, HF_VERB_PATCH, &hf_pytorchjobs, job, "status", text);
}

static void create_rank(struct world *w, const char *job, int index)
{
	char text[1024], name[64];

	snprintf(name, sizeof(name), "%s-worker-%d", job, index);
	snprintf(
		text, sizeof(text),
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\","
		"\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"name\":\"%s\","
		"\"uid\":\"%s\",\"controller\":true}],\"labels\":{\"training.kubeflow.org/replica-type\":\"worker\","
		"\"training.kubeflow.org/replica-index\":\"%d\"},\"annotations\":{\"holdfast.dev/generation\":\"1\","
		"\"holdfast.dev/attempt\":\"0\"}},\"spec\":{\"nodeName\":\"n1\",\"terminationGracePeriodSeconds\":7,"
		"\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}",
		name, job, uid_of(w, &hf_pytorchjobs, job), index);
	apply(w, HF_VERB_CREATE, &hf_pods, name, NULL, text);
}

/* ---- exec --------------------------------------------------------------------------------------- */

static void told(struct test *t, int i, const char *line)
{
	struct hf_process_state state;

	assert_true(hf_process_state_parse(line, strlen(line), &state));
	hf_agent_exec_told(t->w->agent, peer_of(t, i), &state);
}

static bool open_peer(struct test *t, int i, const char *pod)
{
	return hf_agent_exec_opened(t->w->agent, peer_of(t, i), uid_of(t->w, &hf_pods, pod));
}

static const struct hf_json *processes(struct world *w)
{
	struct hf_doc *doc = hf_memstore_peek(w->memstore, &hf_devicehealths, NULL, "n1");

	return doc != NULL ? hf_json_path(hf_doc_json(doc), "status", "processes", NULL) : NULL;
}

/* "worker-0 Running 1/0 #1", or "-" */
static const char *show(struct world *w, size_t i)
{
	const struct hf_json *item = hf_json_item(processes(w), i);
	static char text[1024];

	if (item == NULL)
		return "-";
	snprintf(text, sizeof(text), "%s %s %lld/%lld #%lld", hf_json_path_str(item, "pod", NULL),
		 hf_json_path_str(item, "phase", NULL),
		 (long long)hf_json_i64(hf_json_get(item, "generation"), -1),
		 (long long)hf_json_i64(hf_json_get(item, "attempt"), -1),
		 (long long)hf_json_i64(hf_json_get(item, "ordinal"), -1));
	return text;
}

/* A job "j" with the ranks 0 and 1 on this node, which run under exec. */
static void begin(struct test *t)
{
	create_job(t->w, "j");
	write_ledger(t->w, "j", "{" WAITS "\"generation\":1}");
	create_rank(t->w, "j", 0);
	create_rank(t->w, "j", 1);
	open_agent(t->w);
	run_for(t->w, 2 * HF_SECOND);
	assert_true(open_peer(t, 0, "j-worker-0"));
	assert_true(open_peer(t, 1, "j-worker-1"));
	run_for(t->w, HF_SECOND);
	told(t, 0, "state phase=running generation=1 attempt=0 ordinal=1");
	told(t, 1, "state phase=running generation=1 attempt=0 ordinal=1");
}

static void test_a_note_is_an_event_of_the_pod(void **state)
{
	struct test *t = *state;
	size_t events;

	begin(t);
	events = hf_memstore_count(t->w->memstore, &hf_events);
	hf_agent_exec_noted(t->w->agent, uid_of(t->w, &hf_pods, "j-worker-0"),
			    "log rule 'loss': nan is not finite, 1 line in a row");
	hf_agent_exec_noted(t->w->agent, "no-such-pod", "log rule 'loss'");
	run_for(t->w, 2 * HF_SECOND);
	assert_int_equal(hf_memstore_count(t->w->memstore, &hf_events), events + 1);
}

#define FIRST " first_generation=1 first_attempt=0"

static void test_targets_follow_the_job(void **state)
{
	struct test *t = *state;

	begin(t);
	assert_string_equal(t->peers[0].last,
			    "target generation=1 attempt=0 wait=60 grace=7" FIRST);
	assert_int_equal(t->peers[0].targets, 1);
	write_ledger(t->w, "j", BARRIER);
	run_for(t->w, 10 * HF_MS);
	assert_string_equal(t->peers[0].last,
			    "target generation=2 attempt=0 hold=1 wait=60 grace=7" FIRST
			    " rendezvous=2");
	assert_int_equal(t->peers[1].targets, 2);
	/* A target that holds a rank is repeated while it stands, and no other is. */
	run_for(t->w, 25 * HF_SECOND);
	assert_in_range(t->peers[0].targets, 4, 5);
	write_ledger(t->w, "j", GO);
	run_for(t->w, HF_SECOND);
	assert_string_equal(t->peers[1].last,
			    "target generation=2 attempt=0 wait=60 grace=7" FIRST " rendezvous=2");
	t->peers[1].targets = 0;
	run_for(t->w, HF_MINUTE);
	assert_int_equal(t->peers[1].targets, 0);
	/* The job is over. */
	apply(t->w, HF_VERB_DELETE, &hf_pytorchjobs, "j", NULL, NULL);
	run_for(t->w, HF_SECOND);
	assert_string_equal(t->peers[1].last, "target");
}

/* The operator does not know yet that the ranks run under exec, so its order is not meant for them. */
static void test_an_order_waits_for_the_report(void **state)
{
	struct test *t = *state;

	begin(t);
	t->w->refuse = HF_E_UNAVAILABLE;
	write_ledger(t->w, "j", BARRIER);
	run_for(t->w, 5 * HF_SECOND);
	assert_string_equal(t->peers[0].last,
			    "target generation=1 attempt=0 wait=60 grace=7" FIRST);
	t->w->refuse = 0;
	run_for(t->w, 5 * HF_SECOND);
	assert_string_equal(show(t->w, 0), "j-worker-0 Running 1/0 #1");
	assert_string_equal(t->peers[0].last,
			    "target generation=2 attempt=0 hold=1 wait=60 grace=7" FIRST
			    " rendezvous=2");
	/* An exec that connects again, or to the next agent, has its report there. */
	hf_agent_exec_closed(t->w->agent, peer_of(t, 1));
	assert_true(open_peer(t, 2, "j-worker-1"));
	run_for(t->w, HF_SECOND);
	assert_string_equal(t->peers[2].last, t->peers[0].last);
}

static void test_terminations_are_published_at_once(void **state)
{
	struct test *t = *state;
	const struct hf_json *item;
	int writes;

	begin(t);
	run_for(t->w, HF_MINUTE);
	assert_string_equal(show(t->w, 0), "j-worker-0 Running 1/0 #1");
	writes = t->w->device_writes;
	told(t, 0,
	     "state phase=ended generation=1 attempt=0 ordinal=1 code=137 signal=9 step=41 saved=30 save_ms=1500 words=Killed");
	run_for(t->w, 20 * HF_MS);
	assert_string_equal(show(t->w, 0), "j-worker-0 Ended 1/0 #1");
	item = hf_json_item(processes(t->w), 0);
	assert_int_equal(hf_json_i64(hf_json_get(item, "code"), -1), 137);
	assert_int_equal(hf_json_i64(hf_json_get(item, "signal"), -1), 9);
	assert_int_equal(hf_json_i64(hf_json_get(item, "step"), -1), 41);
	assert_int_equal(hf_json_i64(hf_json_get(item, "savedStep"), -1), 30);
	assert_int_equal(hf_json_i64(hf_json_get(item, "saveMillis"), -1), 1500);
	assert_string_equal(hf_json_path_str(item, "message", NULL), "Killed");
	assert_string_equal(hf_json_path_str(item, "job", NULL),
			    uid_of(t->w, &hf_pytorchjobs, "j"));
	assert_string_equal(hf_json_path_str(item, "uid", NULL),
			    uid_of(t->w, &hf_pods, "j-worker-0"));
	/* The order: both are down within moments of each other, in one write. */
	write_ledger(t->w, "j", BARRIER);
	run_for(t->w, 5 * HF_MS);
	told(t, 0, "state phase=down generation=2 attempt=0 ordinal=1");
	run_for(t->w, 5 * HF_MS);
	told(t, 1, "state phase=down generation=2 attempt=0 ordinal=1");
	run_for(t->w, 20 * HF_MS);
	assert_string_equal(show(t->w, 0), "j-worker-0 Down 2/0 #1");
	assert_string_equal(show(t->w, 1), "j-worker-1 Down 2/0 #1");
	assert_int_equal(t->w->device_writes, writes + 2);
	/* The start again has no write of its own for minutes. */
	write_ledger(t->w, "j", GO);
	told(t, 0, "state phase=running generation=2 attempt=0 ordinal=2");
	told(t, 1, "state phase=running generation=2 attempt=0 ordinal=2");
	run_for(t->w, HF_MINUTE);
	assert_in_range(t->w->device_writes, writes + 2, writes + 3);
	run_for(t->w, 3 * HF_MINUTE);
	assert_string_equal(show(t->w, 1), "j-worker-1 Running 2/0 #2");
	assert_in_range(t->w->device_writes, writes + 3, writes + 4);
}

static int64_t number_of(struct world *w, const char *key)
{
	return hf_json_i64(hf_json_get(hf_json_item(processes(w), 0), key), -1);
}

/* The operator knows steps and saves from the first rank of a type alone. */
static void test_saves_are_published_soon_and_steps_seldom(void **state)
{
	struct test *t = *state;
	int writes;

	begin(t);
	told(t, 0, "state phase=running generation=1 attempt=0 ordinal=1 step=1");
	run_for(t->w, 2 * HF_MINUTE);
	writes = t->w->device_writes;
	told(t, 0, "state phase=running generation=1 attempt=0 ordinal=1 step=41 saved=40");
	told(t, 1, "state phase=running generation=1 attempt=0 ordinal=1 step=42 saved=40");
	run_for(t->w, 2 * HF_SECOND);
	assert_int_equal(number_of(t->w, "step"), 41);
	assert_int_equal(number_of(t->w, "savedStep"), 40);
	assert_int_equal(t->w->device_writes, writes + 1);
	/* Many saves are few writes. */
	for (int i = 0; i < 60; i++) {
		char line[128];

		snprintf(line, sizeof(line),
			 "state phase=running generation=1 attempt=0 ordinal=1 step=%d saved=%d",
			 50 + i, 50 + i);
		told(t, 0, line);
		run_for(t->w, HF_SECOND);
	}
	assert_in_range(t->w->device_writes, writes + 2, writes + 3);
	run_for(t->w, HF_MINUTE);
	writes = t->w->device_writes;
	assert_int_equal(number_of(t->w, "savedStep"), 109);
	/* A step alone, and saves of other ranks, wait for the heartbeat: each 5 minutes ± 20 %. */
	told(t, 0, "state phase=running generation=1 attempt=0 ordinal=1 step=200 saved=109");
	told(t, 1, "state phase=running generation=1 attempt=0 ordinal=1 step=200 saved=190");
	run_for(t->w, 6 * HF_MINUTE);
	assert_int_equal(number_of(t->w, "step"), 200);
	assert_in_range(t->w->device_writes, writes + 1, writes + 2);
}

/* exec ends with its program: the last state is that of a running process. */
static void test_the_last_step_of_an_exec_that_ends_is_published(void **state)
{
	struct test *t = *state;

	begin(t);
	told(t, 0, "state phase=running generation=1 attempt=0 ordinal=1 step=1");
	run_for(t->w, HF_MINUTE);
	told(t, 0, "state phase=running generation=1 attempt=0 ordinal=1 step=90 saved=80");
	hf_agent_exec_closed(t->w->agent, peer_of(t, 0));
	run_for(t->w, 50 * HF_MS);
	assert_string_equal(show(t->w, 0), "j-worker-0 Running 1/0 #1");
	assert_int_equal(number_of(t->w, "step"), 90);
	assert_int_equal(number_of(t->w, "savedStep"), 80);
	run_for(t->w, 4 * HF_MINUTE);
	assert_string_equal(show(t->w, 0), "j-worker-1 Running 1/0 #1");
}

/* The operator waits for all ranks, so one write of a node tells of all; a rank that takes long delays the others' a second. */
static void test_a_barrier_is_one_write(void **state)
{
	struct test *t = *state;
	int writes;

	begin(t);
	run_for(t->w, HF_MINUTE);
	writes = t->w->device_writes;
	write_ledger(t->w, "j", BARRIER);
	run_for(t->w, 5 * HF_MS);
	told(t, 0, "state phase=down generation=2 attempt=0 ordinal=1");
	run_for(t->w, 700 * HF_MS);
	assert_int_equal(t->w->device_writes, writes);
	told(t, 1, "state phase=down generation=2 attempt=0 ordinal=1");
	run_for(t->w, 20 * HF_MS);
	assert_string_equal(show(t->w, 0), "j-worker-0 Down 2/0 #1");
	assert_string_equal(show(t->w, 1), "j-worker-1 Down 2/0 #1");
	assert_int_equal(t->w->device_writes, writes + 1);
}

static void test_a_barrier_does_not_wait_for_ever(void **state)
{
	struct test *t = *state;

	begin(t);
	run_for(t->w, HF_MINUTE);
	write_ledger(t->w, "j", BARRIER);
	run_for(t->w, 5 * HF_MS);
	told(t, 0, "state phase=down generation=2 attempt=0 ordinal=1");
	run_for(t->w, 980 * HF_MS);
	assert_string_equal(show(t->w, 0), "j-worker-0 Running 1/0 #1");
	run_for(t->w, 40 * HF_MS);
	assert_string_equal(show(t->w, 0), "j-worker-0 Down 2/0 #1");
	assert_string_equal(show(t->w, 1), "j-worker-1 Running 1/0 #1");
	told(t, 1, "state phase=down generation=2 attempt=0 ordinal=1");
	run_for(t->w, 20 * HF_MS);
	assert_string_equal(show(t->w, 1), "j-worker-1 Down 2/0 #1");
}

/* A rank whose pod was created for the restart waits: the barrier needs to know that. */
static void test_a_held_rank_is_published_at_once(void **state)
{
	struct test *t = *state;

	create_job(t->w, "j");
	write_ledger(t->w, "j",
		     "{" WAITS "\"generation\":1,\"replicas\":{\"Worker\":{\"hold\":\"0\"}}}");
	create_rank(t->w, "j", 0);
	create_rank(t->w, "j", 1);
	open_agent(t->w);
	run_for(t->w, 5 * HF_SECOND);
	assert_true(open_peer(t, 0, "j-worker-0"));
	assert_true(open_peer(t, 1, "j-worker-1"));
	told(t, 0, "state phase=waiting");
	told(t, 1, "state phase=waiting");
	run_for(t->w, 100 * HF_MS);
	/* exec does not know its start yet; the pod does. */
	assert_string_equal(show(t->w, 0), "j-worker-0 Waiting 1/0 #0");
	/* Rank 1 is free: it is published with that, and would have waited otherwise. */
	assert_string_equal(show(t->w, 1), "j-worker-1 Waiting 1/0 #0");
}

static void test_no_ranks_no_writes(void **state)
{
	struct test *t = *state;
	int writes;

	begin(t);
	run_for(t->w, HF_HOUR);
	writes = t->w->device_writes;
	run_for(t->w, HF_DAY);
	/* The heartbeat alone: each 5 minutes ± 20 %. */
	assert_in_range(t->w->device_writes - writes, 240, 360);
	assert_string_equal(show(t->w, 1), "j-worker-1 Running 1/0 #1");
}

/* The agent starts anew: what the former one published stays until each exec had its time to connect. */
static void test_agent_starts_anew(void **state)
{
	struct test *t = *state;

	begin(t);
	run_for(t->w, HF_MINUTE);
	hf_agent_stop(t->w->agent);
	hf_agent_destroy(t->w->agent);
	open_agent(t->w);
	run_for(t->w, 900 * HF_MS);
	assert_int_equal(hf_json_len(processes(t->w)), 2);
	assert_true(open_peer(t, 0, "j-worker-0"));
	told(t, 0, "state phase=ended generation=1 attempt=0 ordinal=1 code=1");
	run_for(t->w, HF_SECOND);
	assert_string_equal(show(t->w, 0), "j-worker-0 Ended 1/0 #1");
	/* Rank 1 is not there any more. */
	assert_string_equal(show(t->w, 1), "-");
}

/* Both processes ended while the agent was away.  The ends have their own times, in whatever order exec connects, and
 * are published before an order turns them to Down. */
static void test_ends_while_the_agent_was_away(void **state)
{
	struct test *t = *state;
	const struct hf_json *first, *second;

	begin(t);
	run_for(t->w, HF_MINUTE);
	hf_agent_stop(t->w->agent);
	hf_agent_destroy(t->w->agent);
	write_ledger(t->w, "j", BARRIER);
	open_agent(t->w);
	run_for(t->w, 900 * HF_MS);
	assert_true(open_peer(t, 1, "j-worker-1"));
	told(t, 1, "state phase=ended generation=1 attempt=0 ordinal=1 code=1 ended_ms=2000");
	run_for(t->w, 100 * HF_MS);
	assert_true(open_peer(t, 0, "j-worker-0"));
	t->peers[0].targets = t->peers[1].targets = 0;
	told(t, 0,
	     "state phase=ended generation=1 attempt=0 ordinal=1 code=137 signal=9 ended_ms=2200");
	run_for(t->w, 400 * HF_MS);
	assert_int_equal(t->peers[0].targets, 0);
	run_for(t->w, HF_SECOND);
	assert_string_equal(show(t->w, 0), "j-worker-0 Ended 1/0 #1");
	assert_string_equal(show(t->w, 1), "j-worker-1 Ended 1/0 #1");
	first = hf_json_item(processes(t->w), 0);
	second = hf_json_item(processes(t->w), 1);
	assert_true(strcmp(hf_json_path_str(first, "time", NULL),
			   hf_json_path_str(second, "time", NULL)) < 0);
	assert_string_equal(t->peers[0].last,
			    "target generation=2 attempt=0 hold=1 wait=60 grace=7" FIRST
			    " rendezvous=2");
	assert_string_equal(t->peers[1].last, t->peers[0].last);
}

static void test_a_closed_connection_leaves_the_list(void **state)
{
	struct test *t = *state;

	begin(t);
	run_for(t->w, HF_MINUTE);
	hf_agent_exec_closed(t->w->agent, peer_of(t, 0));
	run_for(t->w, 4 * HF_MINUTE);
	assert_string_equal(show(t->w, 0), "j-worker-1 Running 1/0 #1");
	assert_string_equal(show(t->w, 1), "-");
}

/* The watch is behind: a target without a start would start the program without its generation. */
static void test_no_target_before_the_ledger(void **state)
{
	struct test *t = *state;

	create_job(t->w, "j");
	create_rank(t->w, "j", 0);
	open_agent(t->w);
	run_for(t->w, 2 * HF_SECOND);
	assert_true(open_peer(t, 0, "j-worker-0"));
	told(t, 0, "state phase=waiting");
	run_for(t->w, 500 * HF_MS);
	assert_int_equal(t->peers[0].targets, 0);
	write_ledger(t->w, "j", "{\"generation\":1}");
	run_for(t->w, 10 * HF_MS);
	assert_string_equal(t->peers[0].last, "target generation=1 attempt=0 grace=7" FIRST);
}

/* exec is killed soon after a start: the operator learns at once that the program ran, or it would not count its end. */
static void test_a_start_is_told_when_its_exec_is_gone(void **state)
{
	struct test *t = *state;

	begin(t);
	run_for(t->w, HF_MINUTE);
	write_ledger(t->w, "j", "{\"generation\":2,\"inPlaceBase\":1," WAITS "\"replicas\":{}}");
	run_for(t->w, HF_SECOND);
	told(t, 0, "state phase=running generation=2 attempt=0 ordinal=2");
	run_for(t->w, HF_SECOND);
	assert_string_equal(show(t->w, 0), "j-worker-0 Running 1/0 #1");
	hf_agent_exec_closed(t->w->agent, peer_of(t, 0));
	run_for(t->w, 20 * HF_MS);
	assert_string_equal(show(t->w, 0), "j-worker-0 Running 2/0 #2");
	run_for(t->w, 4 * HF_MINUTE);
	assert_string_equal(show(t->w, 0), "j-worker-1 Running 1/0 #1");
}

/* The operator restarts nothing in place: the ranks do not wait, and their ends are told. */
static void test_no_restart_in_place(void **state)
{
	struct test *t = *state;

	begin(t);
	run_for(t->w, HF_MINUTE);
	write_ledger(t->w, "j", "{\"generation\":1,\"inPlaceWaitSeconds\":null}");
	run_for(t->w, HF_SECOND);
	assert_string_equal(t->peers[1].last, "target generation=1 attempt=0 grace=7" FIRST);
	assert_string_equal(show(t->w, 1), "j-worker-1 Running 1/0 #1");
}

/* The operator learns within a second that the ranks run under exec: until then they do not wait for orders. */
static void test_a_new_job_is_published_soon(void **state)
{
	struct test *t = *state;

	create_job(t->w, "j");
	write_ledger(t->w, "j", "{\"generation\":1}");
	create_rank(t->w, "j", 0);
	open_agent(t->w);
	run_for(t->w, 10 * HF_SECOND);
	assert_true(open_peer(t, 0, "j-worker-0"));
	told(t, 0, "state phase=running generation=1 attempt=0 ordinal=1");
	run_for(t->w, 2 * HF_SECOND);
	assert_string_equal(show(t->w, 0), "j-worker-0 Running 1/0 #1");
	assert_string_equal(t->peers[0].last, "target generation=1 attempt=0 grace=7" FIRST);
}

/* ---- hostile peers ------------------------------------------------------------------------------ */

static void test_pods_that_are_no_ranks(void **state)
{
	struct test *t = *state;

	begin(t);
	apply(t->w, HF_VERB_CREATE, &hf_pods, "other", NULL,
	      "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"other\",\"namespace\":\"default\"},"
	      "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");
	run_for(t->w, HF_SECOND);
	assert_true(open_peer(t, 2, "other"));
	/* A pod that the API server does not know gets no answer yet. */
	assert_true(hf_agent_exec_opened(t->w->agent, peer_of(t, 3), "no-such-pod"));
	told(t, 2, "state phase=ended generation=1 attempt=0 ordinal=1 code=1");
	told(t, 3, "state phase=ended generation=1 attempt=0 ordinal=1 code=1");
	run_for(t->w, 30 * HF_SECOND);
	assert_string_equal(t->peers[2].last, "target");
	assert_int_equal(t->peers[3].targets, 0);
	assert_int_equal(hf_json_len(processes(t->w)), 2);
}

/* With several execs in a pod, in a sidecar for example, it is unknown which one runs the rank: none gets orders, and the
 * operator learns at once that the rank cannot restart in place. */
static void test_of_several_connections_of_a_pod_none_counts(void **state)
{
	struct test *t = *state;

	begin(t);
	run_for(t->w, HF_MINUTE);
	assert_string_equal(show(t->w, 0), "j-worker-0 Running 1/0 #1");
	for (int i = 2; i < 5; i++)
		assert_true(open_peer(t, i, "j-worker-0"));
	assert_false(open_peer(t, 5, "j-worker-0"));
	told(t, 2, "state phase=down generation=9 attempt=0 ordinal=7");
	run_for(t->w, HF_SECOND);
	assert_string_equal(t->peers[0].last, "target");
	assert_string_equal(t->peers[2].last, "target");
	assert_string_equal(show(t->w, 0), "j-worker-1 Running 1/0 #1");
	assert_string_equal(show(t->w, 1), "-");
	write_ledger(t->w, "j", BARRIER);
	run_for(t->w, HF_SECOND);
	assert_string_equal(t->peers[0].last, "target");
	assert_string_equal(t->peers[2].last, "target");
	/* The connection that stays may be that of the sidecar. */
	for (int i = 2; i < 5; i++)
		hf_agent_exec_closed(t->w->agent, peer_of(t, i));
	run_for(t->w, 10 * HF_SECOND);
	assert_string_equal(t->peers[0].last, "target");
	assert_string_equal(show(t->w, 0), "j-worker-1 Running 1/0 #1");
}

/* exec in a container that was started again may connect before the end of the former connection is known. */
static void test_the_last_open_connection_of_a_pod_counts(void **state)
{
	struct test *t = *state;

	begin(t);
	run_for(t->w, HF_MINUTE);
	assert_true(open_peer(t, 2, "j-worker-0"));
	hf_agent_exec_closed(t->w->agent, peer_of(t, 0));
	run_for(t->w, HF_SECOND);
	assert_string_equal(t->peers[2].last,
			    "target generation=1 attempt=0 wait=60 grace=7" FIRST);
}

/* A pod that claims to be of a job with another UID, and a flood of states. */
static void test_forged_owner_and_flood(void **state)
{
	struct test *t = *state;
	char line[128];
	int writes;

	begin(t);
	run_for(t->w, HF_MINUTE);
	apply(t->w, HF_VERB_CREATE, &hf_pods, "forged", NULL,
	      "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"forged\",\"namespace\":\"default\","
	      "\"ownerReferences\":[{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"name\":\"j\","
	      "\"uid\":\"another\",\"controller\":true}],\"labels\":{\"training.kubeflow.org/replica-type\":\"worker\","
	      "\"training.kubeflow.org/replica-index\":\"0\"},\"annotations\":{\"holdfast.dev/generation\":\"1\","
	      "\"holdfast.dev/attempt\":\"0\"}},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");
	run_for(t->w, HF_SECOND);
	assert_true(open_peer(t, 2, "forged"));
	told(t, 2, "state phase=ended generation=1 attempt=0 ordinal=1 code=1");
	run_for(t->w, HF_SECOND);
	assert_string_equal(t->peers[2].last, "target");
	assert_int_equal(hf_json_len(processes(t->w)), 2);
	writes = t->w->device_writes;
	for (int i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line),
			 "state phase=ended generation=1 attempt=0 ordinal=%d code=1", i + 2);
		told(t, 0, line);
		run_for(t->w, 50 * HF_MS);
	}
	/* In 50 s the agent writes each urgent state, and at least once a second. */
	assert_in_range(t->w->device_writes - writes, 20, 130);
}

static void test_many_connections(void **state)
{
	struct test *t = *state;
	char uid[32];
	int opened = 0;

	begin(t);
	for (int i = 2; i < PEERS_MAX; i++) {
		snprintf(uid, sizeof(uid), "uid-%d", i);
		opened += hf_agent_exec_opened(t->w->agent, peer_of(t, i), uid);
	}
	assert_int_equal(opened, HF_PROCESSES_MAX - 2);
	run_for(t->w, HF_SECOND);
	assert_string_equal(t->peers[0].last,
			    "target generation=1 attempt=0 wait=60 grace=7" FIRST);
}

/* The write fails: the newest list is written once it can be. */
static void test_a_refused_write_comes_again(void **state)
{
	struct test *t = *state;

	begin(t);
	run_for(t->w, HF_MINUTE);
	t->w->refuse = HF_E_UNAVAILABLE;
	told(t, 0, "state phase=ended generation=1 attempt=0 ordinal=1 code=1");
	run_for(t->w, HF_SECOND);
	kernel_says(t->w, LOST);
	told(t, 1, "state phase=ended generation=1 attempt=0 ordinal=1 code=2");
	run_for(t->w, 5 * HF_SECOND);
	t->w->refuse = 0;
	run_for(t->w, HF_MINUTE);
	assert_string_equal(show(t->w, 0), "j-worker-0 Ended 1/0 #1");
	assert_string_equal(show(t->w, 1), "j-worker-1 Ended 1/0 #1");
	/* And the rest of the object was not lost for it. */
	assert_string_equal(status_of(t->w, &hf_nodes, "n1", "AcceleratorUnhealthy"), "True");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)
	const struct CMUnitTest tests[] = {
		TEST(test_targets_follow_the_job),
		TEST(test_a_note_is_an_event_of_the_pod),
		TEST(test_an_order_waits_for_the_report),
		TEST(test_terminations_are_published_at_once),
		TEST(test_a_held_rank_is_published_at_once),
		TEST(test_saves_are_published_soon_and_steps_seldom),
		TEST(test_the_last_step_of_an_exec_that_ends_is_published),
		TEST(test_a_barrier_is_one_write),
		TEST(test_no_target_before_the_ledger),
		TEST(test_a_start_is_told_when_its_exec_is_gone),
		TEST(test_a_barrier_does_not_wait_for_ever),
		TEST(test_no_ranks_no_writes),
		TEST(test_agent_starts_anew),
		TEST(test_ends_while_the_agent_was_away),
		TEST(test_a_closed_connection_leaves_the_list),
		TEST(test_no_restart_in_place),
		TEST(test_a_new_job_is_published_soon),
		TEST(test_pods_that_are_no_ranks),
		TEST(test_of_several_connections_of_a_pod_none_counts),
		TEST(test_the_last_open_connection_of_a_pod_counts),
		TEST(test_forged_owner_and_flood),
		TEST(test_many_connections),
		TEST(test_a_refused_write_comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
