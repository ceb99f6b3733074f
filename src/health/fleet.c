/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Decides the next action for each node of a fleet: budgets, breaker and spares.  The ladder (ladder.c) proposes the
 * actions.
 * Invariants: the order of the nodes does not matter; the decisions of one call together exceed no budget.
 */
#include "health/fleet.h"
#include "health/ladder_internal.h"

#include "base/compare.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

const struct hf_health_policy hf_health_policy_default = {
	.mode = HF_HEALTH_OBSERVE,
	.unavailable = {.count = -1, .percent = 10, .at_least_one = true},
	.quarantines = {.count = 5, .percent = -1},
	.quarantine_window = HF_HOUR,
	.concurrent = 1,
	.per_domain = 2,
	.node_attempts = 5,
	.node_window = 7 * HF_DAY,
	.job_evictions = 2,
	/* A breaker larger than the number of nodes that may be quarantined in its window would never open. */
	.breaker = {.count = -1, .percent = 20, .at_least_one = false},
	.breaker_window = 5 * HF_MINUTE,
	.rungs =
		{
			[HF_HEALTH_RESTART_PROCESS] = {.attempts = 3,
						       .window = HF_HOUR,
						       .timeout = 5 * HF_MINUTE},
			[HF_HEALTH_MOVE_POD] = {.attempts = 2,
						.window = HF_HOUR,
						.timeout = 5 * HF_MINUTE},
			[HF_HEALTH_QUARANTINE] = {.timeout = 5 * HF_MINUTE},
			[HF_HEALTH_RESET_DEVICE] = {.attempts = 2,
						    .window = HF_DAY,
						    .timeout = 10 * HF_MINUTE,
						    .settle = HF_MINUTE},
			[HF_HEALTH_RESTART_DRIVER] = {.attempts = 2,
						      .window = HF_DAY,
						      .timeout = 10 * HF_MINUTE,
						      .settle = 2 * HF_MINUTE},
			[HF_HEALTH_RESTART_NODE] = {.attempts = 2,
						    .window = HF_DAY,
						    .timeout = HF_HOUR,
						    .settle = 10 * HF_MINUTE},
			[HF_HEALTH_REPLACE_NODE] = {.attempts = 1,
						    .window = 7 * HF_DAY,
						    .timeout = HF_HOUR},
		},
	/* An agent without news writes every six minutes; two of these writes may be lost. */
	.stale_after = 15 * HF_MINUTE,
};

static const char *const mode_names[] = {"observe", "quarantine", "remediate"};
static const char *const answer_names[HF_HEALTH_ANSWERS] = {"nothing", "go", "would", "held",
							    "waits"};
static const char *const doing_names[HF_HEALTH_DOINGS] = {"nothing", "quarantine", "remedy",
							  "fail",    "give-up",    "release"};
static const char *const why_texts[] = {
#define X(name, text) text,
	HF_HEALTH_WHYS(X)
#undef X
};

const char *hf_health_mode_name(enum hf_health_mode mode)
{
	return (unsigned)mode < HF_ARRAY_LEN(mode_names) ? mode_names[mode] : "?";
}

const char *hf_health_answer_name(enum hf_health_answer answer)
{
	return (unsigned)answer < HF_HEALTH_ANSWERS ? answer_names[answer] : "?";
}

const char *hf_health_doing_name(enum hf_health_doing doing)
{
	return (unsigned)doing < HF_HEALTH_DOINGS ? doing_names[doing] : "?";
}

const char *hf_health_why_text(enum hf_health_why why)
{
	return (unsigned)why < HF_HEALTH_WHY_COUNT ? why_texts[why] : "?";
}

/* ---- the policy ---------------------------------------------------------------------------------- */

static bool limit_is_sound(const struct hf_health_limit *limit)
{
	return limit->count >= -1 && limit->percent >= -1 && limit->percent <= 100;
}

static bool numbers_are_sound(const struct hf_health_policy *policy)
{
	const int64_t numbers[] = {policy->concurrent,        policy->per_domain,
				   policy->node_attempts,     policy->job_evictions,
				   policy->quarantine_window, policy->breaker_window,
				   policy->node_window,       policy->stale_after - 1};

	for (size_t i = 0; i < HF_ARRAY_LEN(numbers); i++) {
		if (numbers[i] < 0)
			return false;
	}
	return true;
}

static const char *rung_problem(const struct hf_health_rung *rung)
{
	if (rung->attempts < 0 || rung->window < 0 || rung->timeout < 0 || rung->settle < 0)
		return "a number below zero";
	return rung->attempts > 0 && rung->timeout < HF_MINUTE
		       ? "a remedy has a timeout below a minute"
		       : NULL;
}

const char *hf_health_policy_problem(const struct hf_health_policy *policy)
{
	if ((unsigned)policy->mode > HF_HEALTH_REMEDIATES)
		return "the mode is unknown";
	if (!limit_is_sound(&policy->unavailable) || !limit_is_sound(&policy->quarantines) ||
	    !limit_is_sound(&policy->breaker))
		return "a limit is out of range";
	if (!numbers_are_sound(policy))
		return "a number below zero";
	for (size_t i = 0; i < HF_HEALTH_ACTIONS; i++) {
		const char *problem = rung_problem(&policy->rungs[i]);

		if (problem)
			return problem;
	}
	return policy->windows_len > HF_HEALTH_WINDOWS_MAX ? "too many windows" : NULL;
}

int32_t hf_health_limit_of(const struct hf_health_limit *limit, size_t total)
{
	int64_t share = limit->percent < 0 ? -1 : (int64_t)total * limit->percent / 100;
	int64_t value = limit->count;

	if (share == 0 && limit->at_least_one && total > 0)
		share = 1;
	if (value < 0 || (share >= 0 && share < value))
		value = share;
	return value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

/* Days since 1970-01-01, a Thursday. */
bool hf_health_in_window(const struct hf_health_window *windows, size_t len, hf_time now)
{
	int64_t minute = now / HF_MINUTE, day = minute / (24 * 60);
	int32_t of_day = (int32_t)(minute % (24 * 60));

	for (size_t i = 0; i < len; i++) {
		const struct hf_health_window *w = &windows[i];
		bool over = w->to_minute < w->from_minute;
		bool late = of_day >= w->from_minute, early = of_day < w->to_minute;
		/* After midnight the time belongs to the window that began on the day before. */
		int64_t begun = over && !late ? day - 1 : day;

		if ((over ? late || early : late && early) &&
		    w->days & 1u << (unsigned)((begun + 4) % 7))
			return true;
	}
	return len == 0;
}

hf_time hf_health_find_opening(const struct hf_health_window *windows, size_t len, hf_time now)
{
	int64_t today = now / HF_DAY;
	hf_time first = HF_TIME_NONE;

	for (size_t i = 0; i < len; i++)
		for (int64_t day = today; day <= today + 7; day++) {
			hf_time at = day * HF_DAY + windows[i].from_minute * HF_MINUTE;

			if (windows[i].days & 1u << (unsigned)((day + 4) % 7) && at > now &&
			    (first == HF_TIME_NONE || at < first))
				first = at;
		}
	return first;
}

static hf_time at_most(hf_time at, hf_time most)
{
	return at == HF_TIME_NONE || at < most ? at : most;
}

hf_time hf_health_convert_time(hf_time at, hf_time observed_at, hf_time heard_at, hf_time now)
{
	if (at == HF_TIME_NONE || observed_at == HF_TIME_NONE || heard_at == HF_TIME_NONE)
		return at_most(at, now);
	return at_most(heard_at - (observed_at - at), heard_at);
}

/* ---- budgets ----------------------------------------------------------------------------------------- */

/* Numbers by name, sorted. */
struct tally {
	const char *name;
	int32_t n;
};

struct tallies {
	struct tally *all;
	size_t len;
};

struct budgets {
	const struct hf_health_fleet *fleet;
	const struct hf_health_policy *policy;
	int32_t unavailable, quarantines, concurrent; /* left; -1: no limit */
	bool in_window;
	struct hf_health_breaker breaker;
	/* domains: number of nodes out of use, by failure domain. jobs: number of nodes that this
	 * plan quarantines, by job. */
	struct tallies domains, jobs;
};

static int32_t subtract_used(int32_t limit, int32_t used)
{
	if (limit < 0)
		return -1;
	return used >= limit ? 0 : limit - used;
}

static int by_tally(const void *left, const void *right)
{
	return strcmp(((const struct tally *)left)->name, ((const struct tally *)right)->name);
}

/* Sorts the tallies by name, and adds up tallies with the same name. */
static void add_up(struct tallies *tallies)
{
	size_t len = 0;

	if (tallies->len > 0)
		qsort(tallies->all, tallies->len, sizeof(*tallies->all), by_tally);
	for (size_t i = 0; i < tallies->len; i++) {
		if (len > 0 && hf_streq(tallies->all[len - 1].name, tallies->all[i].name))
			tallies->all[len - 1].n += tallies->all[i].n;
		else
			tallies->all[len++] = tallies->all[i];
	}
	tallies->len = len;
}

/* Finds the tally of this name. NULL: the name is empty. */
static struct tally *find_tally(const struct tallies *tallies, const char *name)
{
	const struct tally key = {.name = name};

	if (hf_str_is_empty(name))
		return NULL;
	return bsearch(&key, tallies->all, tallies->len, sizeof(key), by_tally);
}

static void count_names(struct budgets *b, struct hf_arena *arena)
{
	const struct hf_health_fleet *fleet = b->fleet;

	b->domains = (struct tallies){HF_ARENA_ARRAY(arena, struct tally, fleet->nodes_len + 1),
				      fleet->nodes_len};
	b->jobs = (struct tallies){HF_ARENA_ARRAY(arena, struct tally, fleet->nodes_len + 1),
				   fleet->nodes_len};
	for (size_t i = 0; i < fleet->nodes_len; i++) {
		const struct hf_health_node *node = &fleet->nodes[i];

		b->domains.all[i] = (struct tally){hf_str_or(node->domain, ""), node->unavailable};
		b->jobs.all[i] = (struct tally){hf_str_or(node->job, ""), 0};
	}
	add_up(&b->domains);
	add_up(&b->jobs);
}

static int32_t count_within(const struct hf_health_fleet *fleet, hf_time window)
{
	int32_t n = 0;

	for (size_t i = 0; i < fleet->quarantined_len; i++)
		n += fleet->now - fleet->quarantined[i].at <= window;
	return n;
}

static void init_budgets(struct budgets *b, struct hf_arena *arena)
{
	const struct hf_health_policy *policy = b->policy;
	const struct hf_health_fleet *fleet = b->fleet;
	int32_t out = 0, at_work = 0;

	for (size_t i = 0; i < fleet->nodes_len; i++) {
		out += fleet->nodes[i].unavailable;
		at_work += fleet->nodes[i].running != HF_HEALTH_RECORD;
	}
	b->unavailable =
		subtract_used(hf_health_limit_of(&policy->unavailable, fleet->selected), out);
	b->quarantines = subtract_used(hf_health_limit_of(&policy->quarantines, fleet->selected),
				       count_within(fleet, policy->quarantine_window));
	/* A quarantine that the policy's status has no room to record would not count later, so it is not allowed. */
	if (fleet->room >= 0 && (b->quarantines < 0 || b->quarantines > fleet->room))
		b->quarantines = fleet->room;
	b->concurrent = subtract_used(policy->concurrent, at_work);
	b->in_window = hf_health_in_window(policy->windows, policy->windows_len, fleet->now);
	b->breaker = fleet->breaker;
	count_names(b, arena);
}

/* ---- the breaker -------------------------------------------------------------------------------------- */

struct failure {
	hf_time at;
	bool weighed;
};

static int by_time(const void *left, const void *right)
{
	hf_time a = ((const struct failure *)left)->at, b = ((const struct failure *)right)->at;

	return a < b ? -1 : a > b;
}

/* The largest number of failures within one window, at any time: no operator may have run at that time.  A window
 * counts only if it has a failure that no decision has weighed yet: for old failures only the limit can have
 * changed. */
static int32_t most_at_once(const struct failure *failures, size_t len, hf_time window)
{
	size_t most = 0, from = 0, news = 0;

	for (size_t i = 0; i < len; i++) {
		news += !failures[i].weighed;
		for (; failures[i].at - failures[from].at > window; from++)
			news -= !failures[from].weighed;
		most = news > 0 && i - from + 1 > most ? i - from + 1 : most;
	}
	return (int32_t)most;
}

static hf_time find_begin(const struct hf_health_node *node)
{
	return node->began_at != HF_TIME_NONE ? node->began_at : node->evidence_at;
}

/* The number of nodes that were quarantined within the window, or will be for faults that began in it.  A node
 * counts once, also if it fails again or if its taint was taken off. */
static int32_t newly_bad(const struct budgets *b, const struct hf_health_node *const *wanted,
			 size_t wanted_len, struct hf_arena *arena)
{
	const struct hf_health_fleet *fleet = b->fleet;
	hf_time window = b->policy->breaker_window;
	const char **names =
		HF_ARENA_ARRAY(arena, const char *, fleet->quarantined_len + wanted_len + 1);
	size_t len = 0;
	int32_t n = 0;

	for (size_t i = 0; i < fleet->quarantined_len; i++)
		if (fleet->now - fleet->quarantined[i].at <= window)
			names[len++] = fleet->quarantined[i].node;
	for (size_t i = 0; i < wanted_len; i++)
		if (fleet->now - find_begin(wanted[i]) <= window)
			names[len++] = wanted[i]->name;
	if (len > 0)
		qsort(names, len, sizeof(*names), hf_compare_by_name);
	for (size_t i = 0; i < len; i++)
		n += i == 0 || !hf_streq(names[i], names[i - 1]);
	return n;
}

/* Opens the breaker if too many nodes fail within the window: that is no chance, and Holdfast does nothing more
 * until a person has looked.  Nodes that only wait for their quarantine count too, so the breaker opens before the
 * first of a thousand quarantines.  Two kinds do not count: nodes that budgets have held back for longer than the
 * window, and faults from before a person closed the breaker.  A measured fault is found again after that closing,
 * and would open the breaker each time. */
static void trip_breaker(struct budgets *b, const struct hf_health_node *const *nodes,
			 const struct hf_health_decision *decisions, size_t len,
			 struct hf_arena *arena)
{
	int32_t limit = hf_health_limit_of(&b->policy->breaker, b->fleet->selected), bad, most;
	const struct hf_health_node **wanted =
		HF_ARENA_ARRAY(arena, const struct hf_health_node *, len + 1);
	struct failure *failures = HF_ARENA_ARRAY(arena, struct failure, len + 1);
	size_t wanted_len = 0, news = 0;

	for (size_t i = 0; i < len; i++) {
		if (decisions[i].doing != HF_HEALTH_DO_QUARANTINE ||
		    decisions[i].answer != HF_HEALTH_GO ||
		    find_begin(nodes[i]) < b->fleet->breaker.closed_at)
			continue;
		failures[wanted_len] =
			(struct failure){.at = find_begin(nodes[i]), .weighed = nodes[i]->weighed};
		news += !nodes[i]->weighed;
		wanted[wanted_len++] = nodes[i];
	}
	if (wanted_len > 0)
		qsort(failures, wanted_len, sizeof(*failures), by_time);
	/* If no node has failed since the last decision, only the number of nodes or a limit has changed. */
	bad = news > 0 ? newly_bad(b, wanted, wanted_len, arena) : 0;
	most = most_at_once(failures, wanted_len, b->policy->breaker_window);
	bad = most > bad ? most : bad;
	/* A single node never opens the breaker, also in a small cluster. */
	if (limit >= 0 && bad > (limit > 1 ? limit : 1))
		b->breaker.tripped = true;
}

/* ---- one decision ------------------------------------------------------------------------------------- */

/* Whether the job has had as many disturbances as the policy allows.  A job that restarts anyway loses nothing by
 * this node, and a node with a fatal fault has stopped the job already. */
static bool is_disturbed_enough(const struct budgets *b, const struct hf_health_node *node)
{
	const struct tally *job = find_tally(&b->jobs, node->job);

	return job && !node->counted && !node->job_restarting && b->policy->job_evictions > 0 &&
	       node->job_evictions + job->n >= b->policy->job_evictions &&
	       !hf_health_is_fatal(node->cls);
}

static enum hf_health_why hold_quarantine(struct budgets *b, const struct hf_health_node *node)
{
	const struct tally *domain = find_tally(&b->domains, node->domain);

	if (!node->unavailable) {
		if (b->unavailable == 0)
			return HF_HEALTH_WHY_UNAVAILABLE;
		if (domain && b->policy->per_domain > 0 && domain->n >= b->policy->per_domain)
			return HF_HEALTH_WHY_DOMAIN;
	}
	if (b->quarantines == 0 && !node->counted)
		return HF_HEALTH_WHY_RATE;
	if (is_disturbed_enough(b, node))
		return HF_HEALTH_WHY_JOB;
	/* A node with a fatal fault has stopped its work, so it is quarantined outside the windows too. */
	if (!b->in_window && !hf_health_is_fatal(node->cls))
		return HF_HEALTH_WHY_WINDOW;
	return HF_HEALTH_WHY_COUNT;
}

static enum hf_health_why find_hold(struct budgets *b, const struct hf_health_node *node,
				    const struct hf_health_decision *d)
{
	if (b->policy->paused)
		return HF_HEALTH_WHY_PAUSED;
	if (b->breaker.tripped)
		return HF_HEALTH_WHY_BREAKER;
	if (b->fleet->now < node->not_before)
		return HF_HEALTH_WHY_REFUSED;
	if (d->doing == HF_HEALTH_DO_QUARANTINE)
		return hold_quarantine(b, node);
	if (d->doing != HF_HEALTH_DO_REMEDY)
		return HF_HEALTH_WHY_COUNT;
	/* A node that a person or another tool has cordoned gets no remedy beside theirs. */
	if (node->foreign)
		return HF_HEALTH_WHY_FOREIGN;
	if (node->held)
		return HF_HEALTH_WHY_HELD;
	if (node->no_remedy || (node->no_reset && d->action == HF_HEALTH_RESET_DEVICE))
		return HF_HEALTH_WHY_NO_REMEDY;
	if (b->concurrent == 0)
		return HF_HEALTH_WHY_CONCURRENT;
	return b->in_window ? HF_HEALTH_WHY_COUNT : HF_HEALTH_WHY_WINDOW;
}

static void spend_budgets(struct budgets *b, const struct hf_health_node *node,
			  const struct hf_health_decision *d)
{
	struct tally *domain = find_tally(&b->domains, node->domain);
	struct tally *job = find_tally(&b->jobs, node->job);

	if (d->doing == HF_HEALTH_DO_REMEDY && b->concurrent > 0)
		b->concurrent--;
	if (d->doing != HF_HEALTH_DO_QUARANTINE)
		return;
	if (b->quarantines > 0 && !node->counted)
		b->quarantines--;
	if (job && !node->counted)
		job->n++;
	if (node->unavailable)
		return;
	if (b->unavailable > 0)
		b->unavailable--;
	if (domain)
		domain->n++;
}

static bool mode_does(enum hf_health_mode mode, enum hf_health_doing doing)
{
	if (doing == HF_HEALTH_DO_QUARANTINE || doing == HF_HEALTH_DO_RELEASE)
		return mode >= HF_HEALTH_QUARANTINES;
	return mode >= HF_HEALTH_REMEDIATES;
}

static void decide_node(struct budgets *b, const struct hf_health_node *node,
			struct hf_health_decision *d)
{
	enum hf_health_why why;

	/* To record that a remedy has failed disturbs no pod, so no budget holds it back. */
	if (d->answer != HF_HEALTH_GO || d->doing == HF_HEALTH_DO_FAIL)
		return;
	why = find_hold(b, node, d);
	if (why != HF_HEALTH_WHY_COUNT) {
		d->answer = HF_HEALTH_HELD;
		d->why = why;
		return;
	}
	if (node->job_restarting && d->doing == HF_HEALTH_DO_QUARANTINE)
		d->why = HF_HEALTH_WHY_JOB_RESTARTING;
	/* If the mode only shows decisions, a decision uses the budgets too. So the decisions are
	 * the same as in a mode that acts. */
	spend_budgets(b, node, d);
	if (!mode_does(b->policy->mode, d->doing))
		d->answer = HF_HEALTH_WOULD;
}

/* Sorts nodes for the budgets: the strictest class first, then the oldest fault, then by name. */
static int by_need(const void *left, const void *right)
{
	const struct hf_health_node *a = *(const struct hf_health_node *const *)left;
	const struct hf_health_node *b = *(const struct hf_health_node *const *)right;

	if (a->cls != b->cls)
		return a->cls > b->cls ? -1 : 1;
	if (find_begin(a) != find_begin(b))
		return find_begin(a) < find_begin(b) ? -1 : 1;
	return strcmp(a->name, b->name);
}

int hf_health_fleet_decide(const struct hf_health_fleet *fleet,
			   const struct hf_health_policy *policy, struct hf_arena *arena,
			   struct hf_health_fleet_plan *ret_plan, struct hf_error *err)
{
	struct budgets b = {.fleet = fleet, .policy = policy};
	struct hf_health_decision *decisions;
	const struct hf_health_node **nodes;
	hf_time wake = HF_TIME_NEVER, at;
	size_t len = fleet->nodes_len;

	hf_assert(!hf_health_policy_problem(policy));
	if (len > HF_HEALTH_NODES_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "the cluster has %zu nodes; Holdfast decides about at most %d",
				    len, HF_HEALTH_NODES_MAX);
	init_budgets(&b, arena);
	nodes = HF_ARENA_ARRAY(arena, const struct hf_health_node *, len + 1);
	decisions = HF_ARENA_ARRAY(arena, struct hf_health_decision, len + 1);
	for (size_t i = 0; i < len; i++)
		nodes[i] = &fleet->nodes[i];
	if (len > 0)
		qsort(nodes, len, sizeof(*nodes), by_need);
	for (size_t i = 0; i < len; i++) {
		decisions[i] = hf_health_ladder(nodes[i], fleet, policy, &at);
		wake = at < wake ? at : wake;
	}
	trip_breaker(&b, nodes, decisions, len, arena);
	for (size_t i = 0; i < len; i++) {
		decide_node(&b, nodes[i], &decisions[i]);
		/* Windows open and rates fall, so a decision that is held may change with time alone. */
		at = decisions[i].why == HF_HEALTH_WHY_REFUSED ? nodes[i]->not_before
							       : fleet->now + HF_MINUTE;
		if (decisions[i].answer == HF_HEALTH_HELD && at < wake)
			wake = at;
	}
	if (len > 0)
		qsort(decisions, len, sizeof(*decisions), hf_compare_by_name);
	*ret_plan = (struct hf_health_fleet_plan){
		.decisions = decisions,
		.len = len,
		.breaker = b.breaker,
		.breaker_tripped_now = b.breaker.tripped && !fleet->breaker.tripped,
		.unavailable_left = b.unavailable,
		.quarantines_left = b.quarantines,
		.concurrent_left = b.concurrent,
		.wake_at = wake,
	};
	return 0;
}

/* ---- spares ------------------------------------------------------------------------------------------ */

static bool is_slow_at_work(const struct hf_health_node *node)
{
	return hf_health_is_weak(node->cls) && !hf_str_is_empty(node->job);
}

/* Whether the node would be quarantined if a spare node could take its work. */
static bool wants_a_spare(const struct hf_health_node *node, const struct hf_health_fleet *fleet,
			  const struct hf_health_policy *policy)
{
	struct hf_health_node with = *node;
	struct hf_health_decision d;
	hf_time wake;

	with.replaceable = true;
	d = hf_health_ladder(&with, fleet, policy, &wake);
	return d.doing == HF_HEALTH_DO_QUARANTINE && d.answer == HF_HEALTH_GO &&
	       fleet->now >= node->not_before;
}

/* Counts the free nodes of each kind, less `keep` nodes that must stay free. */
static struct tallies count_spares(const struct hf_health_fleet *fleet, int32_t keep,
				   struct hf_arena *arena)
{
	struct tallies kinds = {HF_ARENA_ARRAY(arena, struct tally, fleet->nodes_len + 1),
				fleet->nodes_len};

	for (size_t i = 0; i < fleet->nodes_len; i++)
		kinds.all[i] = (struct tally){hf_str_or(fleet->nodes[i].like, "any"),
					      fleet->nodes[i].free};
	add_up(&kinds);
	for (size_t i = 0; i < kinds.len; i++)
		kinds.all[i].n -= keep;
	return kinds;
}

static struct tally *find_kind(const struct tallies *kinds, const struct hf_health_node *node)
{
	return find_tally(kinds, hf_str_or(node->like, "any"));
}

int32_t hf_health_fleet_spares(const struct hf_health_fleet *fleet,
			       const struct hf_health_policy *policy, int32_t keep,
			       struct hf_health_node *nodes, struct hf_arena *arena)
{
	const struct hf_health_node **wanting =
		HF_ARENA_ARRAY(arena, const struct hf_health_node *, fleet->nodes_len + 1);
	const struct tallies kinds = count_spares(fleet, keep, arena);
	int32_t usable = 0;
	size_t n = 0;

	for (size_t i = 0; i < kinds.len; i++)
		usable += kinds.all[i].n > 0 ? kinds.all[i].n : 0;
	for (size_t i = 0; i < fleet->nodes_len; i++) {
		bool at_work = is_slow_at_work(&nodes[i]);

		nodes[i].replaceable = !at_work || nodes[i].owned;
		/* A quarantine moves no pod: while a quarantined node still has work, a spare stays reserved for
		 * it. */
		if (at_work && nodes[i].owned)
			find_kind(&kinds, &nodes[i])->n--;
		else if (at_work && wants_a_spare(&nodes[i], fleet, policy))
			wanting[n++] = &nodes[i];
	}
	if (n > 0)
		qsort(wanting, n, sizeof(*wanting), by_need);
	for (size_t i = 0; i < n; i++) {
		struct tally *kind = find_kind(&kinds, wanting[i]);

		nodes[wanting[i] - nodes].replaceable = kind->n > 0;
		kind->n -= kind->n > 0;
	}
	return usable;
}
