/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * The processes of operators. Each has its own loop, so it can be stopped and continued (as by
 * SIGSTOP, or by a machine that swaps), and its wall clock may be wrong, while the world goes on.
 * Monotonic time is equal in all loops. In the loop of a stopped process it stands still until the
 * process goes on.
 */

#define PAUSE_MAX (2 * HF_MINUTE)

/* --- time ------------------------------------------------------------------------------------ */

static bool is_running(const struct sim_life *life)
{
	return life->loop != NULL && !life->paused;
}

static void align(struct sim *sim)
{
	for (size_t i = 0; i < sim->n_lives; i++)
		if (is_running(&sim->lives[i]))
			hf_loop_freeze(sim->lives[i].loop,
				       sim_now(sim) - hf_loop_mono(sim->lives[i].loop));
}

static hf_time next_due(const struct sim *sim)
{
	hf_time next = hf_loop_next_due(sim->loop);

	for (size_t i = 0; i < sim->n_lives; i++) {
		hf_time due = is_running(&sim->lives[i]) ? hf_loop_next_due(sim->lives[i].loop)
							 : HF_TIME_NEVER;

		next = due < next ? due : next;
	}
	return next;
}

static void run_ready(struct sim *sim)
{
	bool any = true;

	while (any && !sim->failed) {
		any = hf_loop_run_ready(sim->loop);
		for (size_t i = 0; i < sim->n_lives && !sim->failed; i++)
			if (is_running(&sim->lives[i]))
				any = hf_loop_run_ready(sim->lives[i].loop) || any;
	}
}

bool sim_advance(struct sim *sim, hf_time until)
{
	while (!sim->failed) {
		hf_time next;

		run_ready(sim);
		next = next_due(sim);
		if (next > until)
			break;
		if (next > sim_now(sim))
			hf_loop_freeze(sim->loop, next - sim_now(sim));
		align(sim);
	}
	if (!sim->failed) {
		hf_loop_freeze(sim->loop, until - sim_now(sim));
		align(sim);
	}
	return !sim->failed;
}

/* --- birth ----------------------------------------------------------------------------------- */

static void on_problem(void *arg, const char *key, int code, const char *message)
{
	struct sim_life *life = arg;

	if (strchr(key, '/') == NULL)
		sim_tell(life->sim, "%s: cache of %s: %s: %s", life->name, key, hf_code_name(code),
			 message);
}

static void on_passed(void *arg, const struct hf_operator_pass *pass)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;

	if (pass->code != 0)
		sim_tell(sim, "%s: pass over %s: %s", life->name, hf_doc_name(pass->job),
			 pass->message);
	else if (pass->plan != NULL)
		sim_tell(sim, "%s: %s %s", life->name, hf_doc_name(pass->job),
			 hf_str_or(pass->plan->summary, "has nothing to say"));
}

struct hf_operator *sim_acting(const struct sim_life *life)
{
	return life->manager != NULL ? hf_manager_operator(life->manager) : life->op;
}

static void on_state(void *arg, enum hf_manager_state state, const char *why)
{
	struct sim_life *life = arg;

	sim_tell(life->sim, "%s: %s %s", life->name, hf_manager_state_name(state), why);
	life->sim->leaders += state == HF_MANAGER_LEADING;
}

static int begin_manager(struct sim_life *life, const struct hf_operator_options *op,
			 struct hf_error *err)
{
	const struct hf_manager_options options = {
		.op = *op,
		.elect = true,
		.lease_ns = "default",
		.lease_name = SIM_LEASE,
		.identity = life->identity,
		.changed = on_state,
		.arg = life,
	};
	int rc;

	snprintf(life->identity, sizeof(life->identity), "%s-%08x", life->name,
		 (unsigned)hf_rng_next(&life->sim->rng));
	rc = hf_manager_create(&options, &life->manager, err);
	if (rc != 0)
		return rc;
	hf_manager_start(life->manager);
	if (!life->sim->calm)
		hf_timer_arm(life->stop_timer, sim_span(life->sim, 3 * life->sim->mood.trouble));
	return 0;
}

static void be_born(void *arg)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;
	struct hf_memstore_faults faults;
	struct hf_error err;
	int rc;

	life->loop = hf_loop_create_virtual(hf_loop_wall(sim->loop) - sim_now(sim) + life->skew);
	hf_loop_freeze(life->loop, sim_now(sim));
	sim_faults_init(life, &faults);
	life->bare = life->client = hf_memstore_client_create(sim->memstore, &faults);
	if (sim->narrow_schema)
		life->client = sim_narrow_schema_create(life->client);
	sim_tell(sim, "%s: starts", life->name);
	const struct hf_operator_options options = {
		.loop = life->loop,
		.store = life->client,
		.frameworks = sim_frameworks(sim),
		/* In worlds without trouble of nodes some operators do not watch nodes. Reports of
		 * agents on ranks need this watch too. */
		.watch_nodes = sim->mood.per_hour[SIM_BY_NODE] > 0 || sim->mood.trains ||
			       sim->mood.plugins || sim->seed % 3 == 0 || sim->script != NULL,
		.seed = hf_rng_next(&sim->rng),
		.passed = on_passed,
		.problem = on_problem,
		.arg = life,
	};

	rc = sim->n_lives > 1 ? begin_manager(life, &options, &err)
			      : hf_operator_create(&options, &life->op, &err);
	if (rc != 0)
		sim_fail(sim, "start", "%s", err.text);
	else if (life->op != NULL)
		hf_operator_start(life->op);
}

/* --- death ----------------------------------------------------------------------------------- */

static void die(struct sim_life *life)
{
	life->op = hf_operator_destroy(life->op);
	life->manager = hf_manager_destroy(life->manager);
	life->client = hf_store_destroy(life->client);
	life->bare = NULL;
	life->loop = hf_loop_destroy(life->loop);
	life->paused = life->stopping = life->stopped = false;
}

static void crash(void *arg)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;

	if (life->client == NULL)
		return;
	sim_tell(sim, "%s: DIES", life->name);
	sim_check_gap(sim);
	sim->crashes++;
	die(life);
	hf_timer_arm(life->birth_timer, sim_span(sim, 10 * HF_SECOND));
}

static void on_stopped(void *arg)
{
	struct sim_life *life = arg;

	sim_tell(life->sim, "%s: has stopped", life->name);
	life->stopped = true;
	sim_crash_in(life, sim_span(life->sim, HF_SECOND));
}

static void stop(void *arg)
{
	struct sim_life *life = arg;

	if (life->manager == NULL || life->stopping || life->paused)
		return;
	sim_tell(life->sim, "%s: is told to stop", life->name);
	life->stopping = true;
	hf_manager_stop(life->manager, on_stopped, life);
}

void sim_crash_in(struct sim_life *life, hf_time after)
{
	if (!hf_timer_armed(life->crash_timer))
		hf_timer_arm(life->crash_timer, after);
}

/* --- a process is stopped and continued ---------------------------------------------------------- */

static void go_on(void *arg)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;

	if (!life->paused)
		return;
	sim_tell(sim, "%s: goes on", life->name);
	life->paused = false;
	hf_loop_freeze(life->loop, sim_now(sim) - hf_loop_mono(life->loop));
	/* In half of the cases due timers run before the events that came in meanwhile, else after
	 * them. */
	if (sim_chance(sim, 500))
		(void)hf_loop_run_ready(life->loop);
	hf_memstore_client_pause(life->bare, false);
}

static void pause_life(struct sim_life *life)
{
	hf_time span = sim_how_span(life->sim, PAUSE_MAX);

	sim_tell(life->sim, "%s: is stopped for %lld s", life->name, (long long)(span / HF_SECOND));
	life->paused = true;
	hf_memstore_client_pause(life->bare, true);
	hf_timer_arm(life->wake_timer, span);
	/* In half of the cases a pod is deleted while the process is stopped, so the pod is gone
	 * when it goes on. */
	if (sim_how(life->sim, 2) == 0)
		sim_people_delete_pod(life->sim);
}

static void list_again(void *arg)
{
	struct sim_life *life = arg;

	sim_check_gap(life->sim);
	if (life->bare != NULL)
		hf_memstore_client_break_watches(life->bare, HF_E_GONE, "events were lost");
	/* A watch that was between two connections resumes where it was, so all watches are broken
	 * once more. */
	if (life->relist_twice)
		hf_timer_arm(life->relist_timer, HF_MINUTE);
	life->relist_twice = false;
}

static void step_clock(struct sim *sim, struct hf_loop *loop, hf_time *skew)
{
	hf_time by = sim_how_span(sim, 20 * HF_MINUTE) - 10 * HF_MINUTE;

	sim_tell(sim, "  the clock steps by %lld s", (long long)(by / HF_SECOND));
	if (skew != NULL)
		*skew += by;
	if (loop != NULL)
		hf_loop_step_wall(loop, by);
}

static void happen(struct sim_life *life, enum sim_trouble kind)
{
	if (kind == SIM_TROUBLES || !sim_do(life->sim, kind))
		return;
	switch (kind) {
	case SIM_PAUSED:
		if (is_running(life))
			pause_life(life);
		break;
	case SIM_CLOCK_OPERATOR: step_clock(life->sim, life->loop, &life->skew); break;
	case SIM_CLOCK_SERVER: step_clock(life->sim, life->sim->loop, NULL); break;
	case SIM_KILLED: sim_crash_in(life, 0); break;
	default: hf_assert(false);
	}
}

static void deed_timer_arm(struct sim *sim)
{
	unsigned per_hour = sim->mood.per_hour[SIM_BY_LIFE];

	if (per_hour > 0)
		hf_timer_arm(sim->lives_timer, sim_span(sim, 2 * HF_HOUR / per_hour));
}

static void on_deed(void *arg)
{
	struct sim *sim = arg;
	struct sim_life *life = &sim->lives[hf_rng_below(&sim->rng, sim->n_lives)];

	if (sim->calm)
		return;
	happen(life, sim_pick(sim, SIM_BY_LIFE, &sim->rng));
	deed_timer_arm(sim);
}

/* --- all of them ----------------------------------------------------------------------------- */

void sim_lives_begin(struct sim *sim)
{
	static const char *const names[SIM_LIVES_MAX] = {"operator", "other"};

	/* Every fourth world has two operators, which elect a leader. */
	sim->n_lives = sim->seed % 4 == 3 && sim->script == NULL ? 2 : 1;
	sim->lives_timer = hf_timer_create(sim->loop, on_deed, sim);
	deed_timer_arm(sim);
	for (size_t i = 0; i < sim->n_lives; i++) {
		struct sim_life *life = &sim->lives[i];

		life->sim = sim;
		life->name = names[i];
		if (!sim->mood.sunny && sim_chance(sim, 300))
			life->skew = sim_span(sim, 20 * HF_MINUTE) - 10 * HF_MINUTE;
		life->crash_timer = hf_timer_create(sim->loop, crash, life);
		life->birth_timer = hf_timer_create(sim->loop, be_born, life);
		life->stop_timer = hf_timer_create(sim->loop, stop, life);
		life->wake_timer = hf_timer_create(sim->loop, go_on, life);
		life->relist_timer = hf_timer_create(sim->loop, list_again, life);
		hf_timer_arm(life->birth_timer, 0);
	}
}

void sim_lives_calm(struct sim *sim)
{
	for (size_t i = 0; i < sim->n_lives; i++) {
		struct sim_life *life = &sim->lives[i];

		if (!life->stopping)
			hf_timer_disarm(life->crash_timer);
		hf_timer_disarm(life->stop_timer);
		go_on(life);
	}
}

void sim_lives_end(struct sim *sim)
{
	for (size_t i = 0; i < sim->n_lives; i++) {
		struct sim_life *life = &sim->lives[i];

		die(life);
		hf_timer_destroy(life->crash_timer);
		hf_timer_destroy(life->birth_timer);
		hf_timer_destroy(life->stop_timer);
		hf_timer_destroy(life->wake_timer);
		hf_timer_destroy(life->relist_timer);
	}
	hf_timer_destroy(sim->lives_timer);
}
