/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/processes.h"

#include "agent/report_socket.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Decides the target of each process under `holdfast exec` on this node, and when news of them is
 * published.
 *
 * Input: connections and states of exec, the node's pods, the jobs of these pods.  Output:
 * targets, and the list DeviceHealth.status.processes.
 *
 * Three timers: `repeat` sends held targets again, `wave` joins urgent news of several ranks into
 * one write, `later` is for news that may wait.
 */

struct process {
	struct hf_exec_peer *peer;
	char uid[HF_REPORT_POD_UID_MAX]; /* of the pod */
	/* the connection has ended, and the process's last state has yet to be published */
	bool closed;
	bool told; /* `holdfast exec` has sent at least one state */
	struct hf_process_state state;
	hf_time at; /* when the phase, the start or the ordinal of the state last changed */
	/* when the agent heard of that change: later than `at` if it was away when the process ended */
	hf_time heard_at;
	/* the process had ended before exec connected, so this end may explain ends that are published already */
	bool ended_before;
	bool sent;
	struct hf_process_target target; /* the last one sent */
	/* an order waits until the API server has DeviceHealth with this pod */
	bool withheld;
	/* Another exec of the pod was connected at the same time. */
	bool several;
	/* the pod is a rank, and this connection counts for the pod */
	bool listed;
	bool leads;                    /* the rank has index 0 in its replica type */
	hf_time step_at;               /* when this process told its first step */
	hf_time saved_at;              /* when it told the first save that is not published yet */
	struct hf_process_start stamp; /* of the pod */
	char job[HF_POD_RANK_UID_MAX];
	/* The state that was last published in DeviceHealth; valid if `published`. */
	bool published;
	struct hf_process_state as;
};

struct hf_processes {
	struct hf_processes_options options;
	struct hf_job_watches *jobs;
	struct process items[HF_PROCESSES_MAX];
	size_t len;
	bool gone; /* a process of the published list has ended since the list was published */
	hf_time gone_at, started_at, published_at;
	/* The UIDs of the pods in DeviceHealth.status.processes, as the API server has it. */
	char reported[HF_PROCESSES_MAX][HF_REPORT_POD_UID_MAX];
	size_t reported_len;
	struct hf_task *refresh;
	struct hf_timer *repeat, *wave, *later;
};

static hf_time get_now(const struct hf_processes *p)
{
	return p->options.now(p->options.arg);
}

/* ---- which processes are published, and when ---------------------------------------------------- */

static bool is_settled(const struct hf_processes *p)
{
	return p->started_at != HF_TIME_NONE && get_now(p) - p->started_at >= HF_PROCESSES_SETTLE;
}

/* The state; if exec does not know its start yet, with the start that the pod was created for. */
static struct hf_process_state fill_in(const struct process *process)
{
	struct hf_process_state state = process->state;

	if (!state.start.known)
		state.start = process->stamp;
	return state;
}

static bool differ_in_phase(const struct hf_process_state *a, const struct hf_process_state *b)
{
	return a->phase != b->phase || a->ordinal != b->ordinal ||
	       hf_process_start_order(&a->start, &b->start) != 0;
}

/* The first step of a process is published, so that the restart of its job is known to be over; one rank of a type says
 * it for all. */
static bool owes_first_step(const struct process *process)
{
	const struct hf_process_state *state = &process->state;

	return process->listed && process->told && process->leads &&
	       state->phase == HF_PROCESS_LINE_RUNNING && state->has_step &&
	       (!process->published || !process->as.has_step ||
		process->as.ordinal != state->ordinal);
}

static bool has_new_save(const struct process *process)
{
	return process->state.has_saved &&
	       (!process->as.has_saved || process->as.saved != process->state.saved);
}

static bool has_new_step(const struct process *process)
{
	return process->state.has_step &&
	       (!process->as.has_step || process->as.step != process->state.step);
}

/* The operator knows steps and saves from this list alone.  One rank of a type tells them for all. */
static bool owes_steps(const struct process *process)
{
	return process->listed && process->told && process->leads && process->published &&
	       process->state.phase == HF_PROCESS_LINE_RUNNING &&
	       (has_new_save(process) || has_new_step(process));
}

static bool is_news(const struct process *process)
{
	const struct hf_process_state state = fill_in(process);

	return process->listed && process->told &&
	       (!process->published || differ_in_phase(&state, &process->as) ||
		owes_first_step(process) || owes_steps(process));
}

static bool is_urgent(const struct process *process)
{
	if (process->withheld || process->closed)
		return true;
	switch (process->state.phase) {
	case HF_PROCESS_LINE_ENDED:
	case HF_PROCESS_LINE_DOWN: return true;
	case HF_PROCESS_LINE_WAITING: return process->sent && process->target.hold;
	default: return false;
	}
}

/* A step without a save waits for the heartbeat. */
static hf_time find_save_due(const struct hf_processes *p, const struct process *process)
{
	hf_time at = p->published_at + HF_PROCESSES_SAVED_EVERY;
	hf_time soonest = process->saved_at + HF_PROCESSES_STEP_WITHIN;

	if (!has_new_save(process))
		return HF_TIME_NEVER;
	return at > soonest ? at : soonest;
}

static hf_time find_due(const struct hf_processes *p, const struct process *process)
{
	const struct hf_process_state state = fill_in(process);

	if (owes_first_step(process))
		return process->step_at + HF_PROCESSES_STEP_WITHIN;
	if (process->published)
		return differ_in_phase(&state, &process->as)
			       ? process->heard_at + HF_PROCESSES_AGAIN_WITHIN
			       : find_save_due(p, process);
	return process->heard_at +
	       (process->target.wait_s > 0 ? HF_PROCESSES_FIRST_WITHIN : HF_PROCESSES_NEW_WITHIN);
}

/* Whether an order holds the rank and its process still runs. */
static bool is_stopping(const struct process *process)
{
	return process->listed && process->told && !process->closed && process->sent &&
	       process->target.hold && process->state.phase == HF_PROCESS_LINE_RUNNING;
}

/* When urgent news has to be published.  Ranks that are down for the barrier wait for the node's other ranks: the
 * operator waits for the last rank of the barrier anyway. */
static hf_time find_urgent_due(const struct hf_processes *p)
{
	hf_time due = HF_TIME_NEVER, last = HF_TIME_NEVER;
	bool stopping = false;

	for (size_t i = 0; i < p->len; i++) {
		const struct process *process = &p->items[i];
		bool held = process->sent && process->target.hold && !process->closed;
		hf_time *at = held ? &last : &due;

		stopping |= is_stopping(process);
		if (is_news(process) && is_urgent(process) && process->heard_at < *at)
			*at = process->heard_at;
	}
	if (last != HF_TIME_NEVER)
		last += stopping ? HF_PROCESSES_BARRIER : HF_PROCESSES_WAVE;
	if (due != HF_TIME_NEVER)
		due += HF_PROCESSES_WAVE;
	if (last < due)
		due = last;
	return due < p->started_at + HF_PROCESSES_SETTLE ? p->started_at + HF_PROCESSES_SETTLE
							 : due;
}

static void look_for_news(struct hf_processes *p)
{
	hf_time later = p->gone ? p->gone_at + HF_PROCESSES_AGAIN_WITHIN : HF_TIME_NEVER;
	hf_time now = get_now(p), urgent;

	for (size_t i = 0; i < p->len; i++)
		if (is_news(&p->items[i]) && find_due(p, &p->items[i]) < later)
			later = find_due(p, &p->items[i]);
	if (later == HF_TIME_NEVER)
		hf_timer_disarm(p->later);
	else
		hf_timer_arm(p->later, later - now);
	if (p->started_at == HF_TIME_NONE)
		return;
	urgent = find_urgent_due(p);
	if (urgent == HF_TIME_NEVER)
		hf_timer_disarm(p->wave);
	else
		hf_timer_arm(p->wave, urgent > now ? urgent - now : 0);
}

static void on_wave(void *arg)
{
	struct hf_processes *p = arg;

	if (find_urgent_due(p) <= get_now(p))
		p->options.news(p->options.arg, true);
}

static void on_later(void *arg)
{
	struct hf_processes *p = arg;

	p->options.news(p->options.arg, false);
}

static int by_pod(const void *left, const void *right)
{
	const struct hf_process_entry *a = left, *b = right;
	int order = strcmp(a->ns, b->ns);

	return order != 0 ? order : strcmp(a->pod, b->pod);
}

/* Whether the connection has ended and another exec of the pod is connected. */
static bool is_replaced(const struct hf_processes *p, const struct process *process)
{
	for (size_t i = 0; process->closed && i < p->len; i++)
		if (!p->items[i].closed && hf_streq(p->items[i].uid, process->uid))
			return true;
	return false;
}

/* Notes that a published process is no longer in the list. */
static void note_gone(struct hf_processes *p)
{
	p->gone = true;
	p->gone_at = get_now(p);
}

static void remove_process(struct hf_processes *p, struct process *process)
{
	size_t at = (size_t)(process - p->items);

	p->len--;
	memmove(process, process + 1, (p->len - at) * sizeof(*process));
}

bool hf_processes_list(const struct hf_processes *p, struct hf_arena *arena,
		       struct hf_process_entry **ret_items, size_t *ret_len)
{
	struct hf_process_entry *items = HF_ARENA_ARRAY(arena, struct hf_process_entry, p->len + 1);
	size_t len = 0;

	for (size_t i = 0; i < p->len; i++) {
		const struct process *process = &p->items[i];
		const struct hf_pod_rank *rank;
		struct hf_pod_name name;

		if (!process->listed || !process->told || is_replaced(p, process) ||
		    !p->options.pod(p->options.arg, process->uid, &name, &rank))
			continue;
		items[len++] =
			(struct hf_process_entry){.ns = hf_arena_strdup(arena, name.ns),
						  .pod = hf_arena_strdup(arena, name.name),
						  .uid = hf_arena_strdup(arena, name.uid),
						  .job = hf_arena_strdup(arena, process->job),
						  .state = fill_in(process),
						  .at = process->at};
	}
	if (len > 0)
		qsort(items, len, sizeof(*items), by_pod);
	*ret_items = items;
	*ret_len = len;
	return is_settled(p);
}

void hf_processes_published(struct hf_processes *p)
{
	if (!is_settled(p))
		return;
	p->gone = false;
	p->published_at = get_now(p);
	for (size_t i = 0; i < p->len; i++) {
		struct process *process = &p->items[i];

		if (!process->listed || !process->told)
			continue;
		process->published = true;
		process->as = fill_in(process);
	}
	for (size_t i = p->len; i-- > 0;) {
		if (!p->items[i].closed)
			continue;
		remove_process(p, &p->items[i]);
		note_gone(p);
	}
	look_for_news(p);
}

/* ---- targets ------------------------------------------------------------------------------------ */

static bool is_reported(const struct hf_processes *p, const struct process *process)
{
	for (size_t i = 0; i < p->reported_len; i++)
		if (hf_streq(p->reported[i], process->uid))
			return true;
	return false;
}

/* Whether the target is an order: it stops the present process, or lets the next one start. */
static bool is_order(const struct process *process, const struct hf_process_target *target)
{
	const struct hf_process_state state = fill_in(process);
	const struct hf_process_start *own = process->told ? &state.start : &process->stamp;

	if (!target->start.known || (process->told && state.phase == HF_PROCESS_LINE_WAITING))
		return false;
	return target->hold || hf_process_start_order(&target->start, own) > 0;
}

static bool is_same_target(const struct hf_process_target *a, const struct hf_process_target *b)
{
	char left[HF_PROCESS_LINE_BYTES_MAX], right[HF_PROCESS_LINE_BYTES_MAX];

	(void)hf_process_target_format(a, left);
	(void)hf_process_target_format(b, right);
	return strcmp(left, right) == 0;
}

/* Whether the API server has yet to learn of an end that the agent learned late.  An order would turn the state to
 * DOWN, which has no exit code. */
static bool is_end_due(const struct process *process)
{
	return process->ended_before && process->state.phase == HF_PROCESS_LINE_ENDED &&
	       is_news(process);
}

/* Whether another exec of the same pod is connected.  Then the agent does not know which of them runs the rank, and
 * orders for one would leave the program of the other running.  This also holds for the one that outlives the other. */
static bool is_one_of_several(const struct hf_processes *p, size_t i)
{
	for (size_t k = 0; k < p->len; k++)
		if (k != i && !p->items[k].closed && hf_streq(p->items[k].uid, p->items[i].uid))
			return true;
	return false;
}

/* Finds the target of the process.  False: the target is not known yet. */
static bool find_target(struct hf_processes *p, size_t i, struct hf_process_target *ret_target)
{
	struct process *process = &p->items[i];
	const struct hf_job_orders *orders;
	const struct hf_pod_rank *rank;
	struct hf_pod_name name;

	*ret_target = (struct hf_process_target){.hold = false};
	process->listed = false;
	process->several |= is_one_of_several(p, i);
	if (process->several)
		return true;
	if (!p->options.pod(p->options.arg, process->uid, &name, &rank))
		return false;
	if (rank->kind == NULL)
		return true;
	process->leads = rank->index == 0;
	process->stamp = (struct hf_process_start){true, rank->generation, rank->attempt};
	snprintf(process->job, sizeof(process->job), "%s", rank->job_uid);
	if (!hf_job_watches_want(p->jobs, rank, name.ns, &orders))
		return false;
	/* The pod has a stamp of the ledger, so the ledger exists and the watch of the job is behind. */
	if (orders != NULL && !hf_job_orders_have_ledger(orders))
		return false;
	if (orders != NULL)
		process->listed = hf_job_orders_target(orders, rank, ret_target);
	return true;
}

static void send_target(struct hf_processes *p, struct process *process,
			const struct hf_process_target *target)
{
	process->target = *target;
	process->sent = true;
	p->options.send(p->options.arg, process->peer, target);
}

/* Works out all targets anew: each is cheap, and no event can be missed. */
static void on_refresh(void *arg)
{
	struct hf_processes *p = arg;
	bool several = false;

	hf_job_watches_begin(p->jobs);
	for (size_t i = 0; i < p->len; i++) {
		struct process *process = &p->items[i];
		bool was_listed = process->listed;
		struct hf_process_target target;

		if (process->closed)
			continue;
		if (find_target(p, i, &target)) {
			process->withheld = is_order(process, &target) &&
					    (!is_reported(p, process) || is_end_due(process));
			if (!process->withheld &&
			    (!process->sent || !is_same_target(&process->target, &target)))
				send_target(p, process, &target);
		}
		if (was_listed && !process->listed && process->published) {
			note_gone(p);
			process->published = false;
			several |= process->several;
		}
	}
	hf_job_watches_end(p->jobs);
	look_for_news(p);
	/* The operator must not count on the rank for a restart in place. */
	if (several)
		p->options.news(p->options.arg, true);
	if (p->len > 0 && !hf_timer_armed(p->repeat))
		hf_timer_arm(p->repeat, HF_PROCESSES_REPEAT);
}

static void on_repeat(void *arg)
{
	struct hf_processes *p = arg;

	for (size_t i = 0; i < p->len; i++) {
		const struct process *process = &p->items[i];

		if (!process->closed && process->sent && process->target.hold)
			p->options.send(p->options.arg, process->peer, &process->target);
	}
	if (p->len > 0)
		hf_timer_arm(p->repeat, HF_PROCESSES_REPEAT);
}

static void on_jobs_changed(void *arg)
{
	struct hf_processes *p = arg;

	hf_task_post(p->refresh);
}

static void on_jobs_problem(void *arg, const char *job, int code, const char *message)
{
	struct hf_processes *p = arg;

	p->options.problem(p->options.arg, job, code, message);
}

/* ---- connections -------------------------------------------------------------------------------- */

static struct process *find_process(struct hf_processes *p, const struct hf_exec_peer *peer)
{
	for (size_t i = 0; i < p->len; i++)
		if (p->items[i].peer == peer)
			return &p->items[i];
	return NULL;
}

bool hf_processes_opened(struct hf_processes *p, struct hf_exec_peer *peer, const char *pod_uid)
{
	struct process *process;
	size_t of_pod = 0;

	for (size_t i = 0; i < p->len; i++)
		of_pod += hf_streq(p->items[i].uid, pod_uid);
	if (p->len == HF_PROCESSES_MAX || of_pod >= HF_PROCESSES_POD_MAX)
		return false;
	process = &p->items[p->len++];
	*process = (struct process){.peer = peer};
	snprintf(process->uid, sizeof(process->uid), "%s", pod_uid);
	hf_task_post(p->refresh);
	return true;
}

void hf_processes_told(struct hf_processes *p, const struct hf_exec_peer *peer,
		       const struct hf_process_state *state)
{
	struct process *process = find_process(p, peer);

	if (process == NULL)
		return;
	if (!process->told)
		process->ended_before = state->phase == HF_PROCESS_LINE_ENDED;
	if (!process->told || differ_in_phase(&process->state, state)) {
		process->heard_at = get_now(p);
		process->at = process->heard_at;
		if (state->phase == HF_PROCESS_LINE_ENDED)
			process->at -= state->ended_ms * HF_MS;
	}
	if (!process->told || process->withheld)
		hf_task_post(p->refresh);
	if (state->has_step &&
	    (!process->state.has_step || process->state.ordinal != state->ordinal))
		process->step_at = get_now(p);
	if (!has_new_save(process))
		process->saved_at = get_now(p);
	process->told = true;
	process->state = *state;
	look_for_news(p);
}

void hf_processes_seen(struct hf_processes *p, const struct hf_json *health)
{
	const struct hf_json *list = hf_json_path(health, "status", "processes", NULL);

	p->reported_len = 0;
	for (size_t i = 0; i < hf_json_len(list) && p->reported_len < HF_PROCESSES_MAX; i++)
		snprintf(p->reported[p->reported_len++], HF_REPORT_POD_UID_MAX, "%s",
			 hf_json_str(hf_json_get(hf_json_item(list, i), "uid"), ""));
	hf_processes_pods_changed(p);
}

void hf_processes_closed(struct hf_processes *p, const struct hf_exec_peer *peer)
{
	struct process *process = find_process(p, peer);

	if (process == NULL)
		return;
	process->peer = NULL;
	/* Keeps the process until its start is published: else the operator would not count the end of the pod as
	 * the end of this start.  The last step of a first rank is published too. */
	if (is_news(process) && process->state.phase == HF_PROCESS_LINE_RUNNING) {
		process->closed = true;
		hf_task_post(p->refresh);
		return;
	}
	if (process->published)
		note_gone(p);
	remove_process(p, process);
	/* Another connection of the same pod may now be the only one. */
	hf_task_post(p->refresh);
}

void hf_processes_pods_changed(struct hf_processes *p)
{
	if (p->len > 0)
		hf_task_post(p->refresh);
}

/* ---- */

struct hf_processes *hf_processes_create(const struct hf_processes_options *options)
{
	struct hf_processes *p = hf_xcalloc(1, sizeof(*p));
	const struct hf_job_watches_options jobs = {.loop = options->loop,
						    .store = options->store,
						    .seed = options->seed,
						    .changed = on_jobs_changed,
						    .problem = on_jobs_problem,
						    .arg = p};

	p->options = *options;
	p->started_at = p->published_at = HF_TIME_NONE;
	p->jobs = hf_job_watches_create(&jobs);
	p->refresh = hf_task_create(options->loop, on_refresh, p);
	p->repeat = hf_timer_create(options->loop, on_repeat, p);
	p->wave = hf_timer_create(options->loop, on_wave, p);
	p->later = hf_timer_create(options->loop, on_later, p);
	return p;
}

void hf_processes_start(struct hf_processes *p)
{
	p->started_at = get_now(p);
}

struct hf_processes *hf_processes_destroy(struct hf_processes *p)
{
	if (p == NULL)
		return NULL;
	hf_task_destroy(p->refresh);
	hf_timer_destroy(p->repeat);
	hf_timer_destroy(p->wave);
	hf_timer_destroy(p->later);
	hf_job_watches_destroy(p->jobs);
	free(p);
	return NULL;
}

/* ---- JSON --------------------------------------------------------------------------------------- */

/* The phases of a process as DeviceHealth and its CRD name them. */
static const char *const phase_names[HF_PROCESS_LINE_PHASES] = {
	[HF_PROCESS_LINE_WAITING] = "Waiting",
	[HF_PROCESS_LINE_RUNNING] = "Running",
	[HF_PROCESS_LINE_ENDED] = "Ended",
	[HF_PROCESS_LINE_DOWN] = "Down",
};

static struct hf_json *make_item(const struct hf_process_entry *report, hf_time wall_less)
{
	const struct hf_process_state *state = &report->state;
	struct hf_json *item = hf_json_object();
	char text[HF_TIME_TEXT_MAX];

	hf_json_set_str(item, "namespace", report->ns);
	hf_json_set_str(item, "pod", report->pod);
	hf_json_set_str(item, "uid", report->uid);
	hf_json_set_str(item, "job", report->job);
	hf_json_set_i64(item, "generation", state->start.generation);
	hf_json_set_i64(item, "attempt", state->start.attempt);
	hf_json_set_i64(item, "ordinal", (int64_t)state->ordinal);
	hf_json_set_str(item, "phase", phase_names[state->phase]);
	if (state->phase == HF_PROCESS_LINE_ENDED) {
		hf_json_set_i64(item, "code", (int64_t)state->code);
		if (state->signal > 0)
			hf_json_set_i64(item, "signal", (int64_t)state->signal);
		if (state->cause[0] != '\0')
			hf_json_set_str(item, "cause", state->cause);
		if (state->words[0] != '\0')
			hf_json_set_str(item, "message", state->words);
	}
	if (state->has_step)
		hf_json_set_i64(item, "step", (int64_t)state->step);
	if (state->has_saved)
		hf_json_set_i64(item, "savedStep", (int64_t)state->saved);
	if (state->save_ms > 0)
		hf_json_set_i64(item, "saveMillis", (int64_t)state->save_ms);
	hf_time_format_micro(hf_time_add(report->at, wall_less), text);
	hf_json_set_str(item, "time", text);
	return item;
}

struct hf_json *hf_process_entries_json(const struct hf_process_entry *items, size_t len,
					hf_time wall_less)
{
	struct hf_json *list = hf_json_array();

	for (size_t i = 0; i < len; i++)
		hf_json_append(list, make_item(&items[i], wall_less));
	return list;
}
