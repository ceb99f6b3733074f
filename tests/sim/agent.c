/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/agent.h"

#include "api/device_health.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"
#include "memstore/memstore.h"
#include "store/resource.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The real agent, which dies once in each run: at each moment at which it does something, and at
 * each of its requests, before the store has done it and after. The next agent finds the journal
 * and the kernel's log.
 *
 * At the end the store must have what an agent would have written that never died. At no time may a
 * device that failed be called healthy before the kernel said that it was mended.
 */

#define GPUS 3
#define NEXT_ONE_AFTER (3 * HF_SECOND)
#define STORY_END (100 * HF_SECOND)

struct line {
	hf_time at;
	int gpu;
	const char *text; /* the text of the line behind the device's address */
	bool mends;
};
/* What the kernel logs. The first agent starts before these lines, because an agent ignores lines
 * that a log file had before its first start. */
static const struct line lines[] = {
	{8 * HF_SECOND, 0, "119, pid=1, Timeout after 6s of waiting", false},
	{8 * HF_SECOND + 5 * HF_MS, 0, "119, pid=1, Timeout after 6s of waiting", false},
	{15 * HF_SECOND, 1, "79, pid=1, GPU has fallen off the bus.", false},
	{25 * HF_SECOND, 0,
	 "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", true},
	{40 * HF_SECOND, 2, "31, pid=1, name=python, MMU Fault", false},
	{41 * HF_SECOND, 0, "119, pid=2, Timeout after 6s of waiting", false},
};

enum death { NEVER, AT_TURN, UNSENT, UNANSWERED, DEATHS };

struct world {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_store *client;
	struct hf_metrics *metrics;
	struct hf_agent *agent;
	struct hf_memstore_observer observer;
	struct hf_timer *birth, *death;
	char dir[64], log[96], state[96];
	size_t said; /* lines of `lines` that the kernel has logged */
	enum death how;
	unsigned at, turns, requests;
	bool broken[GPUS]; /* by the kernel's lines */
	char wrong[256];
};

/* What the store says at the end of a run, as text. */
struct knowledge {
	struct hf_strbuf devices, conditions;
	unsigned events; /* events that were written, of any reason */
};

static void forget(struct knowledge *known)
{
	hf_strbuf_release(&known->devices);
	hf_strbuf_release(&known->conditions);
}

static void address(int gpu, char text[16])
{
	snprintf(text, 16, "0000:%02x:00.0", 0x1a + gpu);
}

/* --- the agent ------------------------------------------------------------------------------------ */

static void kill_it(struct world *w)
{
	w->agent = hf_agent_destroy(w->agent);
	w->client = hf_store_destroy(w->client);
	w->how = NEVER;
	hf_timer_arm(w->birth, NEXT_ONE_AFTER);
}

static void on_death(void *arg)
{
	kill_it(arg);
}

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *ret_fault)
{
	struct world *w = arg;

	w->requests++;
	if ((w->how != UNSENT && w->how != UNANSWERED) || w->requests != w->at)
		return;
	if (w->how == UNSENT)
		ret_fault->delay_before = HF_HOUR;
	else
		ret_fault->delay_after = HF_HOUR;
	hf_timer_arm(w->death, HF_US);
}

static void be_born(void *arg)
{
	struct world *w = arg;
	const struct hf_memstore_faults faults = {.request = on_request, .arg = w};

	w->client = hf_memstore_client_create(w->memstore, &faults);
	const struct hf_agent_options options = {
		.loop = w->loop,
		.store = w->client,
		.node = "n1",
		.boot_id = "11111111-2222",
		.state_dir = w->state,
		.kmsg = w->log,
		.metrics = w->metrics,
		.seed = 7,
	};
	struct hf_error err;

	assert_ok(hf_agent_create(&options, &w->agent, &err), &err);
	for (int i = 0; i < GPUS; i++) {
		struct hf_health_presence gpu = {.kind = HF_HEALTH_GPU};

		address(i, gpu.id);
		snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-%d", i);
		hf_intake_device(hf_agent_intake(w->agent), &gpu);
	}
	hf_agent_start(w->agent);
}

/* --- the kernel ------------------------------------------------------------------------------------ */

static void kernel_says(struct world *w, const struct line *line)
{
	int fd = open(w->log, O_WRONLY | O_APPEND | O_CLOEXEC);
	char text[256];
	size_t len = (size_t)snprintf(text, sizeof(text), "NVRM: Xid (PCI:0000:%02x:00): %s\n",
				      0x1a + line->gpu, line->text);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
	if (hf_str_has_prefix(line->text, "31,"))
		return; /* Xid 31 is a fault of the program, so the device's state stays as it is */
	w->broken[line->gpu] = !line->mends;
}

/* --- checked at each write: a broken device stays Unhealthy until the kernel says otherwise --- */

static const char *state_in(struct hf_doc *doc, int gpu)
{
	const struct hf_json *list = hf_json_path(hf_doc_json(doc), "status", "devices", NULL);
	char id[16];

	address(gpu, id);
	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "id", NULL), id))
			return hf_json_path_str(hf_json_item(list, i), "state", NULL);
	return NULL;
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct world *w = arg;

	if (change->resource != &hf_devicehealths || change->after == NULL)
		return;
	for (int gpu = 0; gpu < GPUS; gpu++)
		if (w->broken[gpu] && hf_streq(state_in(change->before, gpu), "Unhealthy") &&
		    !hf_streq(state_in(change->after, gpu), "Unhealthy"))
			snprintf(w->wrong, sizeof(w->wrong),
				 "GPU %d was reported as Unhealthy, and is now reported as %s", gpu,
				 hf_str_or(state_in(change->after, gpu), "nothing"));
}

static void on_reset(void *arg)
{
	struct world *w = arg;

	snprintf(w->wrong, sizeof(w->wrong), "the store was reset");
}

/* --- a story ------------------------------------------------------------------------------------- */

static void begin(struct world *w)
{
	static const char node[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}";
	const struct hf_memstore_options options = {.data_dir = NULL, .event_ttl = HF_DAY};
	HF_AUTO_DOC body = hf_doc_from_text(node, strlen(node));
	const struct hf_request create = {
		.verb = HF_VERB_CREATE, .resource = &hf_nodes, .body = body};
	HF_AUTO_RESULT result = {0};
	struct hf_error err;

	*w = (struct world){.loop = hf_loop_create_virtual(20000 * HF_DAY)};
	assert_ok(hf_memstore_create(w->loop, &options, &w->memstore, &err), &err);
	w->metrics = hf_metrics_create();
	w->birth = hf_timer_create(w->loop, be_born, w);
	w->death = hf_timer_create(w->loop, on_death, w);
	w->observer =
		(struct hf_memstore_observer){.changed = on_change, .reset = on_reset, .arg = w};
	hf_memstore_observe(w->memstore, &w->observer);
	/* A folder in memory, if there is one: each journal is synced to its disk, which is
	 * slow. */
	snprintf(w->dir, sizeof(w->dir), "%s/hf-sim-agent-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->log, sizeof(w->log), "%s/kmsg", w->dir);
	snprintf(w->state, sizeof(w->state), "%s/state", w->dir);
	assert_ok(hf_fs_write_atomic(w->log, "", 0, 0600, &err), &err);
	hf_memstore_apply(w->memstore, &create, &result);
	assert_int_equal(result.code, 0);
	hf_timer_arm(w->birth, 0);
}

static void end(struct world *w)
{
	struct hf_error err;

	w->agent = hf_agent_destroy(w->agent);
	hf_store_destroy(w->client);
	hf_timer_destroy(w->birth);
	hf_timer_destroy(w->death);
	hf_memstore_unobserve(w->memstore, &w->observer);
	hf_memstore_destroy(w->memstore);
	hf_metrics_destroy(w->metrics);
	hf_loop_destroy(w->loop);
	assert_ok(hf_fs_remove_tree(w->dir, &err), &err);
}

/* Moves the clock to the next moment at which something is due, and runs what is due, until the
 * story ends. */
static void live(struct world *w)
{
	while (hf_loop_mono(w->loop) < STORY_END) {
		hf_time now = hf_loop_mono(w->loop), next = hf_loop_next_due(w->loop);

		if (w->said < HF_ARRAY_LEN(lines) && lines[w->said].at < next)
			next = lines[w->said].at;
		next = next < STORY_END ? next : STORY_END;
		if (next > now)
			hf_loop_freeze(w->loop, next - now);
		while (w->said < HF_ARRAY_LEN(lines) && lines[w->said].at <= next)
			kernel_says(w, &lines[w->said++]);
		(void)hf_loop_run_ready(w->loop);
		if (w->agent != NULL && ++w->turns == w->at && w->how == AT_TURN)
			kill_it(w);
	}
}

/* --- what the store has at the end --------------------------------------------------------------- */

static void count_event(void *arg, struct hf_doc *doc)
{
	*(unsigned *)arg += (unsigned)hf_json_i64(hf_json_get(hf_doc_json(doc), "count"), 1);
}

static void learn(struct world *w, struct knowledge *ret)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)4 << 20);
	const struct hf_json *list =
		hf_json_path(hf_doc_json(hf_memstore_peek(w->memstore, &hf_nodes, NULL, "n1")),
			     "status", "conditions", NULL);
	struct hf_doc *doc = hf_memstore_peek(w->memstore, &hf_devicehealths, NULL, "n1");
	struct hf_device_health health;

	*ret = (struct knowledge){.devices = HF_STRBUF_INIT(4096),
				  .conditions = HF_STRBUF_INIT(4096)};
	assert_non_null(doc);
	hf_device_health_read(doc, arena, &health);
	for (size_t i = 0; i < health.devices.len; i++) {
		const struct hf_device_report *device = &health.devices.items[i];

		hf_strbuf_addf(&ret->devices, "%s %s %lld:", device->id,
			       hf_str_or(device->state, "-"), (long long)device->generation);
		for (size_t f = 0; f < device->faults.len; f++)
			hf_strbuf_addf(&ret->devices, " %s%s×%lld", device->faults.items[f].cls,
				       device->faults.items[f].acts ? " acts" : "",
				       (long long)device->faults.items[f].count);
		hf_strbuf_addch(&ret->devices, '\n');
	}
	for (size_t i = 0; i < hf_json_len(list); i++)
		hf_strbuf_addf(&ret->conditions, "%s=%s ",
			       hf_json_path_str(hf_json_item(list, i), "type", NULL),
			       hf_json_path_str(hf_json_item(list, i), "status", NULL));
	hf_memstore_each(w->memstore, &hf_events, NULL, count_event, &ret->events);
}

static void run(struct world *w, enum death how, unsigned at, struct knowledge *ret)
{
	begin(w);
	w->how = how;
	w->at = at;
	live(w);
	learn(w, ret);
	if (w->wrong[0] != '\0')
		fail_msg("it dies %d at %u: %s", (int)how, at, w->wrong);
	end(w);
}

static void whenever_it_dies_the_same_is_known_in_the_end(void **state)
{
	struct world w;
	struct knowledge truth, known;
	unsigned points[DEATHS] = {0}, tried = 0;

	run(&w, NEVER, 0, &truth);
	/* Without these states at the end of the story the comparison below would prove nothing. */
	assert_non_null(strstr(truth.devices.data, "0000:1a:00.0 Unhealthy"));
	assert_non_null(strstr(truth.devices.data, "0000:1b:00.0 Unhealthy"));
	assert_non_null(strstr(truth.devices.data, "0000:1c:00.0 Healthy"));
	points[AT_TURN] = w.turns;
	points[UNSENT] = points[UNANSWERED] = w.requests;
	assert_true(w.turns > 50 && w.requests > 10);
	for (int how = AT_TURN; how < DEATHS; how++) {
		for (unsigned at = 1; at <= points[how]; at++, tried++) {
			run(&w, (enum death)how, at, &known);
			if (strcmp(known.devices.data, truth.devices.data) != 0 ||
			    strcmp(known.conditions.data, truth.conditions.data) != 0)
				fail_msg("it dies %d at %u:\n%s%s\nexpected:\n%s%s", how, at,
					 known.devices.data, known.conditions.data,
					 truth.devices.data, truth.conditions.data);
			/* An event in the journal is not written twice. An event that the agent was
			 * about to write may be lost. */
			if (known.events > truth.events)
				fail_msg("death %d at point %u: %u events, but %u without a death",
					 how, at, known.events, truth.events);
			forget(&known);
		}
	}
	forget(&truth);
	print_message("%u deaths\n", tried);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whenever_it_dies_the_same_is_known_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
