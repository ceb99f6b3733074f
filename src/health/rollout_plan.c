/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/rollout_plan.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The states of a DeviceRollout, with one function for each state.  All count the members first (struct tally).
 */

static const char *const state_names[HF_ROLLOUT_STATES] = {"Pending", "Rolling",     "Soaking",
							   "Halted",  "RollingBack", "Succeeded",
							   "Failed",  "Cancelled"};

#define BIT(state) (1u << HF_ROLLOUT_##state)
static const unsigned may_follow[HF_ROLLOUT_STATES] = {
	[HF_ROLLOUT_PENDING] = BIT(ROLLING) | BIT(CANCELLED),
	[HF_ROLLOUT_ROLLING] = BIT(SOAKING) | BIT(HALTED) | BIT(CANCELLED),
	[HF_ROLLOUT_SOAKING] = BIT(ROLLING) | BIT(HALTED) | BIT(SUCCEEDED) | BIT(CANCELLED),
	[HF_ROLLOUT_HALTED] = BIT(ROLLING_BACK) | BIT(CANCELLED),
	[HF_ROLLOUT_ROLLING_BACK] = BIT(HALTED) | BIT(ENDED_FAILED) | BIT(CANCELLED),
};

bool hf_rollout_state_may_follow(enum hf_rollout_state from, enum hf_rollout_state to)
{
	return from == to || (may_follow[from] & (1u << to)) != 0;
}

bool hf_rollout_state_is_end(enum hf_rollout_state state)
{
	return state >= HF_ROLLOUT_SUCCEEDED;
}

const char *hf_rollout_state_name(enum hf_rollout_state state)
{
	return state_names[state];
}

bool hf_rollout_state_of(const char *name, enum hf_rollout_state *ret_state)
{
	for (unsigned i = 0; i < HF_ROLLOUT_STATES; i++)
		if (hf_streq(hf_str_or(name, "Pending"), state_names[i])) {
			*ret_state = (enum hf_rollout_state)i;
			return true;
		}
	return false;
}

int32_t hf_rollout_wave_size(const struct hf_rollout_limit *wave, int32_t selected)
{
	int64_t size =
		wave->percent < 0 ? wave->count : ((int64_t)selected * wave->percent + 99) / 100;

	return size < selected ? (int32_t)size : selected;
}

/* Whether `count` on changed nodes is far above what `others` on unchanged nodes let expect. */
static bool is_far_above(const struct hf_rollout_totals *changed, int64_t count,
			 const struct hf_rollout_totals *unchanged, int64_t others)
{
	double expected;

	if (changed->device_minutes <= 0 || unchanged->device_minutes <= 0)
		return false;
	expected = (double)others / (double)unchanged->device_minutes *
		   (double)changed->device_minutes;
	return (double)count >= expected + HF_ROLLOUT_FAULTS_MORE &&
	       (double)count >= expected * HF_ROLLOUT_RATE_TIMES;
}

bool hf_rollout_is_worse(const struct hf_rollout_totals *changed,
			 const struct hf_rollout_totals *unchanged)
{
	return is_far_above(changed, changed->faults, unchanged, unchanged->faults);
}

bool hf_rollout_restarts_more(const struct hf_rollout_totals *changed,
			      const struct hf_rollout_totals *unchanged)
{
	return is_far_above(changed, changed->restarts, unchanged, unchanged->restarts);
}

HF_PRINTF(2, 3)
static void set_message(struct hf_rollout_plan *plan, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(plan->message, sizeof(plan->message), fmt, ap);
	va_end(ap);
}

static void wake_by(struct hf_rollout_plan *plan, hf_time at)
{
	if (at < plan->wake_at)
		plan->wake_at = at;
}

/* ---- counting ---------------------------------------------------------------------------------- */

struct tally {
	const struct hf_rollout_view *view;
	struct hf_arena *arena;
	/* the members by group and name */
	const struct hf_rollout_member **sorted;
	int32_t fresh;                           /* members that may begin now */
	const struct hf_rollout_member *blocked; /* the first blocked member; NULL: none */
	int32_t blocked_len;
	const struct hf_rollout_member *passing; /* the first blocked member that may begin later */
	int32_t passing_len;
	const struct hf_rollout_member *working; /* the first member in work */
	const struct hf_rollout_member *failed;  /* the first failed member */
	const struct hf_rollout_member *left;    /* the first member that keeps the change */
	int32_t had_len; /* members that had the change before the rollout, and still have it */
	/* Members that were well, and failed while the change was taken back; the first of them. */
	int32_t lost_len;
	const struct hf_rollout_member *lost;
	const struct hf_rollout_member
		*no_canary; /* the first member that is skipped because its canary has failed */
};

static int compare_members(const void *a, const void *b)
{
	const struct hf_rollout_member *x = *(const struct hf_rollout_member *const *)a;
	const struct hf_rollout_member *y = *(const struct hf_rollout_member *const *)b;
	int order = strcmp(x->group, y->group);

	return order != 0 ? order : strcmp(x->name, y->name);
}

static bool is_in_work(const struct hf_rollout_member *m)
{
	return m->listed && !hf_rollout_phase_is_end(m->phase);
}

/* The node had the change before the rollout began with it. */
static bool is_foreign(const struct hf_rollout_member *m)
{
	return m->changed && !m->marked && !m->listed;
}

/* The rollout has proved the node. Another may have taken the change away since: then the node is sick. */
static bool is_done(const struct hf_rollout_member *m)
{
	return m->listed ? m->phase == HF_ROLLOUT_DONE
			 : m->marked && !m->back && (m->changed || m->sick != NULL);
}

static bool is_last_wave(const struct hf_rollout_view *view)
{
	return view->wave >= (int32_t)view->waves_len;
}

/* A skipped node is tried again in the last wave. */
static bool is_retried(const struct hf_rollout_view *view, const struct hf_rollout_member *m)
{
	return m->listed && m->phase == HF_ROLLOUT_SKIPPED && m->tries < HF_ROLLOUT_TRIES_MAX &&
	       is_last_wave(view);
}

/* The change can be taken back. A label without a mark has an unknown value before. A node may get a new pod of the DaemonSet
 * without the rollout, but a node that had the change when the rollout began never had the previous template. */
static bool is_returnable(const struct hf_rollout_view *view, const struct hf_rollout_member *m)
{
	return m->marked || (!view->is_label && !m->had_before);
}

static bool is_candidate(const struct hf_rollout_view *view, const struct hf_rollout_member *m)
{
	if (view->state == HF_ROLLOUT_ROLLING_BACK)
		return !is_in_work(m) && m->tries < 2 * HF_ROLLOUT_TRIES_MAX && !m->back &&
		       (m->changed || (m->listed && m->phase == HF_ROLLOUT_FAILED)) &&
		       is_returnable(view, m) && !(m->listed && m->phase == HF_ROLLOUT_ROLLED_BACK);
	return is_retried(view, m) || (!m->listed && !m->changed && !is_done(m));
}

bool hf_rollout_may_begin(const struct hf_rollout_view *view, const struct hf_rollout_member *m)
{
	return is_candidate(view, m) && m->blocked == NULL && !m->limited;
}

static void count_candidate(const struct hf_rollout_member *m, struct tally *tally)
{
	if (m->blocked == NULL) {
		tally->fresh++;
		return;
	}
	/* A node with an entry was skipped, and counts as skipped. */
	tally->blocked_len += !m->listed;
	if (tally->blocked == NULL)
		tally->blocked = m;
	tally->passing_len += m->passing;
	if (m->passing && tally->passing == NULL)
		tally->passing = m;
}

/* The node has the change, as if there were no rollback. If a person has taken the mark of a label away, the previous value
 * is unknown. */
static bool keeps_change(const struct hf_rollout_view *view, const struct hf_rollout_member *m)
{
	return m->changed && (is_done(m) || is_returnable(view, m)) && !is_in_work(m) &&
	       !(m->listed &&
		 (m->phase == HF_ROLLOUT_FAILED || m->phase == HF_ROLLOUT_ROLLED_BACK));
}

/* The way back does not work on this node. A sick device says nothing about it, because the change may have broken the device,
 * and neither does a node that was away. */
static bool is_lost(const struct hf_rollout_member *m)
{
	return m->listed && m->phase == HF_ROLLOUT_FAILED && m->was_well && !m->was_away && !m->out;
}

static void count_way_back(const struct hf_rollout_view *view, const struct hf_rollout_member *m,
			   struct tally *tally, struct hf_rollout_plan *plan)
{
	if (keeps_change(view, m)) {
		plan->left++;
		if (tally->left == NULL)
			tally->left = m;
	}
	tally->had_len += m->changed && m->had_before && !m->marked && !view->is_label;
	if (is_lost(m)) {
		tally->lost_len++;
		if (tally->lost == NULL)
			tally->lost = m;
	}
}

static void count_members(const struct hf_rollout_view *view, struct tally *tally,
			  struct hf_rollout_plan *plan)
{
	for (size_t i = 0; i < view->members_len; i++) {
		const struct hf_rollout_member *m = tally->sorted[i];

		plan->selected += !is_foreign(m);
		plan->work += is_in_work(m);
		if (is_in_work(m) && tally->working == NULL)
			tally->working = m;
		plan->changed += is_done(m);
		plan->failed += m->listed && m->phase == HF_ROLLOUT_FAILED;
		plan->skipped += m->listed && m->phase == HF_ROLLOUT_SKIPPED;
		if (m->listed && m->phase == HF_ROLLOUT_FAILED && tally->failed == NULL)
			tally->failed = m;
		if (m->listed && m->phase == HF_ROLLOUT_SKIPPED && m->canary_failed &&
		    tally->no_canary == NULL)
			tally->no_canary = m;
		if (is_candidate(view, m))
			count_candidate(m, tally);
		count_way_back(view, m, tally, plan);
	}
}

/* ---- the choice of nodes ----------------------------------------------------------------------- */

static bool is_chosen(const struct hf_rollout_plan *plan, const struct hf_rollout_member *m)
{
	for (size_t i = 0; i < plan->begin_len; i++)
		if (plan->begin[i] == m)
			return true;
	return false;
}

static bool may_begin(const struct tally *tally, const struct hf_rollout_plan *plan,
		      const struct hf_rollout_member *m)
{
	return hf_rollout_may_begin(tally->view, m) && !is_chosen(plan, m);
}

/* Finds the next member of the group in [from, to), a node that was not tried yet first.  ret_used: how many nodes of
 * the group the rollout has begun with. */
static const struct hf_rollout_member *find_in_group(const struct tally *tally,
						     const struct hf_rollout_plan *plan,
						     size_t from, size_t to, int32_t *ret_used)
{
	const struct hf_rollout_member *best = NULL;

	*ret_used = 0;
	for (size_t i = from; i < to; i++) {
		const struct hf_rollout_member *m = tally->sorted[i];

		*ret_used += is_chosen(plan, m) || m->listed || is_done(m);
		if (may_begin(tally, plan, m) && (best == NULL || m->tries < best->tries))
			best = m;
	}
	return best;
}

/* Chooses from the group with the fewest nodes so far. */
static const struct hf_rollout_member *choose_forward(const struct tally *tally,
						      const struct hf_rollout_plan *plan)
{
	const struct hf_rollout_member *best = NULL;
	size_t len = tally->view->members_len;
	int32_t best_used = 0;

	for (size_t from = 0, to; from < len; from = to) {
		const struct hf_rollout_member *m;
		int32_t used;

		for (to = from + 1;
		     to < len && hf_streq(tally->sorted[from]->group, tally->sorted[to]->group);)
			to++;
		m = find_in_group(tally, plan, from, to, &used);
		if (m != NULL && (best == NULL || m->tries < best->tries ||
				  (m->tries == best->tries && used < best_used))) {
			best = m;
			best_used = used;
		}
	}
	return best;
}

/* The newest change is taken back first. */
static const struct hf_rollout_member *choose_backward(const struct tally *tally,
						       const struct hf_rollout_plan *plan)
{
	const struct hf_rollout_member *best = NULL;

	for (size_t i = 0; i < tally->view->members_len; i++) {
		const struct hf_rollout_member *m = tally->sorted[i];

		if (may_begin(tally, plan, m) && (best == NULL || m->changed_at > best->changed_at))
			best = m;
	}
	return best;
}

/* Chooses up to `most` members that begin now. */
static void choose_nodes(const struct tally *tally, int32_t most, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_view *view = tally->view;
	bool back = view->state == HF_ROLLOUT_ROLLING_BACK;

	if (most > view->at_once - plan->work)
		most = view->at_once - plan->work;
	while ((int32_t)plan->begin_len < most && plan->begin_len < HF_ROLLOUT_BEGIN_MAX) {
		const struct hf_rollout_member *m =
			back ? choose_backward(tally, plan) : choose_forward(tally, plan);

		if (m == NULL)
			return;
		plan->begin[plan->begin_len++] = m;
	}
}

/* ---- what halts -------------------------------------------------------------------------------- */

HF_PRINTF(3, 4)
static bool set_halt(struct hf_rollout_plan *plan, const char *reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(plan->halt, sizeof(plan->halt), fmt, ap);
	va_end(ap);
	plan->halt_reason = reason;
	plan->next = HF_ROLLOUT_HALTED;
	set_message(plan, "halted: %.380s", plan->halt);
	return true;
}

/* Nodes that were lost so much earlier have another cause in common, such as that they are switched off. */
#define LOST_APART (10 * HF_MINUTE)

/* Half of the unchanged nodes are lost since then too: a network or the control plane is the cause, and not the change. */
static bool is_outage(const struct hf_rollout_view *view, const struct hf_rollout_member *changed)
{
	int32_t unchanged = 0, lost = 0;

	for (size_t i = 0; i < view->members_len; i++) {
		const struct hf_rollout_member *m = &view->members[i];

		if (m->changed || m->lost_for > hf_time_add(changed->lost_for, LOST_APART))
			continue;
		unchanged++;
		lost += m->lost != NULL;
	}
	return lost > 0 && 2 * lost >= unchanged;
}

/* Returns why the proved node counts as failed; NULL: it does not. */
static const char *find_failure(const struct hf_rollout_view *view,
				const struct hf_rollout_member *m)
{
	if (m->sick != NULL)
		return m->sick;
	return m->lost != NULL && !is_outage(view, m) ? m->lost : NULL;
}

/* Finds a proved node with a device that has failed since, or that is lost: the node counts as failed. If the status has no room
 * left, it is enough that the rollout halts. */
static bool find_sick(const struct tally *tally, struct hf_rollout_plan *plan)
{
	if (tally->view->full && plan->failed > tally->view->failures_max)
		return false;
	for (size_t i = 0; i < tally->view->members_len; i++) {
		const struct hf_rollout_member *m = tally->sorted[i];
		const char *why = is_done(m) ? find_failure(tally->view, m) : NULL;

		if (why == NULL)
			continue;
		plan->fails = m;
		plan->fails_why =
			hf_arena_printf(tally->arena, "%.200s, after the change was proved", why);
		set_message(plan, "node %s: %s", m->name, plan->fails_why);
		return true;
	}
	return false;
}

static bool find_rates(const struct hf_rollout_view *view, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_totals *c = &view->changed, *u = &view->unchanged;
	const struct hf_rollout_steps *s = &view->steps;
	bool faults = hf_rollout_is_worse(c, u);

	if (faults || hf_rollout_restarts_more(c, u))
		return set_halt(
			plan, faults ? "MoreFaults" : "MoreRestarts",
			"changed nodes had %lld %s in %lld device-hours, and unchanged nodes %lld "
			"in %lld",
			(long long)(faults ? c->faults : c->restarts),
			faults ? "faults" : "restarts of jobs by devices",
			(long long)(c->device_minutes / 60),
			(long long)(faults ? u->faults : u->restarts),
			(long long)(u->device_minutes / 60));
	if (hf_rollout_steps_are_slower(s))
		return set_halt(plan, "SlowerSteps",
				"ranks on %lld changed nodes work %lld.%02lld times as long in "
				"each step as ranks of the same jobs on %lld unchanged nodes",
				(long long)s->changed_nodes, (long long)(s->permille / 1000),
				(long long)(s->permille % 1000 / 10),
				(long long)s->unchanged_nodes);
	return false;
}

static bool must_halt(const struct tally *tally, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_view *view = tally->view;

	if (view->problem != NULL)
		return set_halt(plan, "Invalid", "%s", view->problem);
	if (view->superseded != NULL)
		return set_halt(plan, "Superseded", "%s", view->superseded);
	if (plan->failed > view->failures_max)
		return set_halt(plan, "NodeFailed", "%d node%s failed, first %s: %.260s",
				plan->failed, plan->failed == 1 ? "" : "s", tally->failed->name,
				hf_str_or(tally->failed->message, "no proof"));
	/* A canary that has never succeeded may be wrong itself. Each further node would be emptied for nothing. */
	if (tally->no_canary != NULL && plan->changed == 0)
		return set_halt(plan, "CanaryFailed",
				"no node was changed, because of node %s: %.260s",
				tally->no_canary->name,
				hf_str_or(tally->no_canary->message, "the canary failed"));
	return find_rates(view, plan);
}

/* ---- the states -------------------------------------------------------------------------------- */

static void plan_pending(const struct tally *tally, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_view *view = tally->view;

	if (view->problem != NULL)
		set_message(plan, "%s", view->problem);
	else if (view->rival != NULL)
		set_message(plan, "waits for DeviceRollout %s, which changes the same",
			    view->rival);
	else if (view->paused)
		set_message(plan, "paused before the first wave (spec.paused)");
	else if (view->closed != NULL)
		set_message(plan, "waits: %s", view->closed);
	else {
		plan->next = HF_ROLLOUT_ROLLING;
		plan->wave = 1;
		set_message(plan, "wave 1 of %zu begins", view->waves_len);
	}
}

/* The number of nodes after which the present wave is over. */
static int32_t find_goal(const struct hf_rollout_view *view, const struct hf_rollout_plan *plan)
{
	int32_t goal = 0;

	for (size_t i = 0; i < view->waves_len && (int32_t)i < view->wave; i++) {
		int32_t size = hf_rollout_wave_size(&view->waves[i], plan->selected);

		if (size > goal)
			goal = size;
	}
	return goal;
}

/* waits: why no further node begins now; NULL: they do. */
static void tell_wave(const struct tally *tally, struct hf_rollout_plan *plan, int32_t goal,
		      const char *waits)
{
	const struct hf_rollout_view *view = tally->view;
	const char *what = view->paused ? "; paused (spec.paused)" : "";

	set_message(plan,
		    "wave %d of %zu: %d of %d nodes changed, %d in work, %d failed, %d skipped; "
		    "this wave ends at %d%s%s%s",
		    view->wave, view->waves_len, plan->changed, plan->selected,
		    plan->work + (int32_t)plan->begin_len, plan->failed, plan->skipped, goal, what,
		    waits != NULL ? "; waits: " : "", hf_str_or(waits, ""));
}

/* Returns true if the wave waits, because no node may begin now and some may later. A rollout that went on would end while
 * the control plane has lost all nodes for a minute. */
static bool waits_for_nodes(const struct tally *tally, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_view *view = tally->view;
	char text[HF_TIME_TEXT_MAX];

	if (tally->passing == NULL || view->now >= view->wait_until)
		return false;
	hf_time_format(view->wait_until, text);
	set_message(plan,
		    "wave %d of %zu waits until %s for %d node%s that may not begin yet, first %s: "
		    "%.200s",
		    view->wave, view->waves_len, text, tally->passing_len,
		    tally->passing_len == 1 ? "" : "s", tally->passing->name,
		    tally->passing->blocked);
	wake_by(plan, view->wait_until);
	return true;
}

/* Returns true if no node may begin now anyway, and some that may not begin yet may later: a wave does not end without them
 * meanwhile. */
static bool rests(const struct tally *tally)
{
	return tally->fresh == 0 && tally->passing != NULL &&
	       (tally->view->paused || tally->view->closed != NULL);
}

/* So long it takes to see that a changed node is lost. */
#define LOOK_FIRST (HF_MINUTE + 5 * HF_SECOND)

/* No further node begins before this operator has watched the changed nodes for a while. Returns that as text; NULL: it has. */
static const char *look_first(const struct tally *tally, struct hf_rollout_plan *plan)
{
	hf_time until = hf_time_add(tally->view->seen_since, LOOK_FIRST);
	char text[HF_TIME_TEXT_MAX];

	if (plan->changed == 0 || tally->view->now >= until)
		return NULL;
	wake_by(plan, until);
	hf_time_format(until, text);
	return hf_arena_printf(tally->arena, "the changed nodes are watched until %s", text);
}

static void plan_rolling(const struct tally *tally, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_view *view = tally->view;
	/* A skipped or failed node proves nothing, so another node takes its place. */
	int32_t goal = find_goal(view, plan), missing = goal - plan->changed;
	const char *waits;

	if (find_sick(tally, plan) || must_halt(tally, plan))
		return;
	if (plan->work == 0 && missing > 0 && tally->fresh == 0 && waits_for_nodes(tally, plan))
		return;
	if (plan->work == 0 && (missing <= 0 || (tally->fresh == 0 && !rests(tally)))) {
		plan->next = HF_ROLLOUT_SOAKING;
		plan->soak_since = view->newest_end;
		set_message(plan, "wave %d of %zu is handled: %d of %d nodes changed", view->wave,
			    view->waves_len, plan->changed, plan->selected);
		return;
	}
	waits = view->closed;
	if (waits == NULL && missing > plan->work)
		waits = look_first(tally, plan);
	if (!view->paused && waits == NULL)
		choose_nodes(tally, missing - plan->work, plan);
	tell_wave(tally, plan, goal, waits);
}

static void tell_nothing(const struct hf_rollout_view *view, struct hf_rollout_plan *plan)
{
	if (view->members_len == 0)
		set_message(plan, "nothing to change: spec.nodeSelector selects no node%s",
			    view->is_label ? "" : " with a pod of the DaemonSet");
	else
		set_message(plan, "nothing to change: all %zu selected nodes have the %s already",
			    view->members_len,
			    view->is_label ? "label" : "newest template of the DaemonSet");
}

static void tell_end(const struct tally *tally, struct hf_rollout_plan *plan)
{
	if (plan->selected == 0) {
		tell_nothing(tally->view, plan);
		return;
	}
	set_message(plan, "%d of %d nodes changed and proved, %d failed, %d skipped%s%s%s%s",
		    plan->changed, plan->selected, plan->failed, plan->skipped + tally->blocked_len,
		    tally->blocked != NULL ? ", first " : "",
		    tally->blocked != NULL ? tally->blocked->name : "",
		    tally->blocked != NULL ? ": " : "",
		    tally->blocked != NULL ? tally->blocked->blocked : "");
}

/* So long it takes to see that a node is lost or that its agent is silent. */
#define WATCH_MAX (16 * HF_MINUTE)

/* Without an operator, nothing is seen of the changed nodes. A soak does not end before they have been watched for a while. */
hf_time hf_rollout_find_soak_end(const struct hf_rollout_view *view)
{
	hf_time soaked = hf_time_add(view->newest_end, view->soak);
	hf_time watched =
		hf_time_add(view->seen_since, view->soak < WATCH_MAX ? view->soak : WATCH_MAX);

	if (view->newest_end == HF_TIME_NONE)
		return view->now;
	return soaked > watched ? soaked : watched;
}

static void plan_soaking(const struct tally *tally, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_view *view = tally->view;
	hf_time until = hf_rollout_find_soak_end(view);
	bool longer = until > hf_time_add(view->newest_end, view->soak);
	char text[HF_TIME_TEXT_MAX], since[HF_TIME_TEXT_MAX];

	if (find_sick(tally, plan) || must_halt(tally, plan))
		return;
	/* Each changed node has left the cluster or was made again, so nothing is left that soaks. */
	if (plan->changed == 0 && tally->fresh > 0) {
		plan->next = HF_ROLLOUT_ROLLING;
		plan->soak_since = HF_TIME_NONE;
		set_message(plan, "wave %d of %zu begins again: no changed node is left",
			    view->wave, view->waves_len);
		return;
	}
	if (view->now < until) {
		hf_time_format(until, text);
		hf_time_format(view->seen_since, since);
		set_message(plan, "wave %d of %zu soaks until %s: %d of %d nodes changed%s%s",
			    view->wave, view->waves_len, text, plan->changed, plan->selected,
			    longer ? "; watched only since " : "", longer ? since : "");
		wake_by(plan, until);
		return;
	}
	plan->soak_since = HF_TIME_NONE;
	if (is_last_wave(view)) {
		plan->next = HF_ROLLOUT_SUCCEEDED;
		tell_end(tally, plan);
		return;
	}
	plan->next = HF_ROLLOUT_ROLLING;
	plan->wave = view->wave + 1;
	set_message(plan, "wave %d of %zu begins", plan->wave, view->waves_len);
}

/* A halted rollout stays halted until a person cancels or deletes it, unless it is taken back.  A rollback begins when
 * no node is in work any more. */
static void plan_halted(const struct tally *tally, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_view *view = tally->view;

	if (!view->rolls_back || view->superseded != NULL || view->problem != NULL ||
	    tally->lost_len > view->failures_max ||
	    (view->halted_without_evidence && plan->failed <= view->failures_max))
		return;
	if (!view->can_go_back) {
		set_message(plan, "halted, and not taken back: there is no previous revision, or a "
				  "person has undone it before the rollout");
		return;
	}
	if (plan->work > 0) {
		set_message(plan,
			    "halted; the change is taken back once no node is in work: %d node%s "
			    "left, first %s: %.200s",
			    plan->work, plan->work == 1 ? "" : "s", tally->working->name,
			    hf_str_or(tally->working->message, "no message"));
		return;
	}
	plan->next = HF_ROLLOUT_ROLLING_BACK;
	set_message(plan, "the change is taken back");
}

/* Whether the change can be taken back now; else the plan says why not. */
static bool can_take_back(const struct hf_rollout_view *view, struct hf_rollout_plan *plan)
{
	/* A halt would end the rollback for good, and leave nodes with the change that has failed. */
	if (view->problem != NULL) {
		set_message(plan, "the change is not taken back yet: %.380s", view->problem);
		return false;
	}
	if (view->superseded != NULL) {
		/* Unlike Superseded: the evidence of before counts, and the rollback goes on afterwards. */
		(void)set_halt(plan, "RollbackSuperseded", "%s", view->superseded);
		return false;
	}
	/* The revisions of a new DaemonSet are not there yet. */
	if (!view->template_is_back && view->closed != NULL) {
		set_message(plan, "the change is not taken back yet: %.380s", view->closed);
		return false;
	}
	if (!view->template_is_back && !view->can_go_back) {
		(void)set_halt(plan, "NoRevision", "the previous revision does not exist any more");
		return false;
	}
	return true;
}

/* Returns true if the rollback has broken more well nodes than may fail: it would break the next one too. The nodes in work
 * end their work first. */
static bool stops_rollback(const struct tally *tally, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_member *lost = tally->lost;

	if (tally->lost_len <= tally->view->failures_max)
		return false;
	if (plan->work > 0) {
		set_message(plan, "the rollback stops once no node is in work: %d left; %s: %.200s",
			    plan->work, lost->name, hf_str_or(lost->message, "no proof"));
		return true;
	}
	return set_halt(
		plan, "RollbackFailed",
		"%d well node%s failed while the change was taken back, first %s: %.180s; %d "
		"node%s the change",
		tally->lost_len, tally->lost_len == 1 ? "" : "s", lost->name,
		hf_str_or(lost->message, "no proof"), plan->left,
		plan->left == 1 ? " keeps" : "s keep");
}

static void tell_taken_back(const struct tally *tally, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_member *left = tally->left;
	char had[128] = "";

	if (tally->had_len > 0)
		snprintf(had, sizeof(had),
			 "; %d had it before the rollout and keep%s it: another DeviceRollout "
			 "takes it back",
			 tally->had_len, tally->had_len == 1 ? "s" : "");
	set_message(plan,
		    "taken back (condition Halted says why); %d node%s failed on the way back, %d "
		    "keep%s the change%s%s%s%.140s%s",
		    plan->failed, plan->failed == 1 ? "" : "s", plan->left,
		    plan->left == 1 ? "s" : "", left == NULL ? "" : ", first ",
		    left == NULL ? "" : left->name, left == NULL ? "" : ": ",
		    left == NULL                     ? ""
		    : left->blocked != NULL          ? left->blocked
		    : is_done(left) && !left->marked ? "its mark is gone"
						     : hf_str_or(left->message, "not taken back"),
		    had);
}

static void plan_rollback(const struct tally *tally, struct hf_rollout_plan *plan)
{
	const struct hf_rollout_view *view = tally->view;
	int32_t left = 0;

	if (!can_take_back(view, plan) || stops_rollback(tally, plan))
		return;
	if (!view->template_is_back) {
		plan->undo_template = true;
		set_message(plan, "writes the previous template into the DaemonSet");
		return;
	}
	for (size_t i = 0; i < view->members_len; i++)
		left += is_candidate(view, tally->sorted[i]);
	if (plan->work == 0 && tally->fresh == 0) {
		plan->next = HF_ROLLOUT_ENDED_FAILED;
		tell_taken_back(tally, plan);
		return;
	}
	if (!view->paused && view->closed == NULL)
		choose_nodes(tally, left, plan);
	set_message(plan, "takes the change back: %d node%s left, %d in work%s", left,
		    left == 1 ? "" : "s", plan->work + (int32_t)plan->begin_len,
		    view->paused ? "; paused (spec.paused)" : "");
}

static void plan_cancel(struct hf_rollout_plan *plan)
{
	if (plan->work > 0) {
		set_message(plan, "is cancelled: %d node%s still in work", plan->work,
			    plan->work == 1 ? "" : "s");
		return;
	}
	plan->next = HF_ROLLOUT_CANCELLED;
	plan->soak_since = HF_TIME_NONE;
	set_message(plan, "cancelled: %d of %d nodes changed, %d failed", plan->changed,
		    plan->selected, plan->failed);
}

void hf_rollout_plan(const struct hf_rollout_view *view, struct hf_arena *arena,
		     struct hf_rollout_plan *ret_plan)
{
	struct tally tally = {.view = view,
			      .arena = arena,
			      .sorted = HF_ARENA_ARRAY(arena, const struct hf_rollout_member *,
						       view->members_len + 1)};
	struct hf_rollout_plan *plan = ret_plan;

	*plan = (struct hf_rollout_plan){.next = view->state,
					 .wave = view->wave,
					 .soak_since = view->soak_since,
					 .wake_at = HF_TIME_NEVER};
	for (size_t i = 0; i < view->members_len; i++)
		tally.sorted[i] = &view->members[i];
	if (view->members_len > 0)
		qsort(tally.sorted, view->members_len, sizeof(const struct hf_rollout_member *),
		      compare_members);
	count_members(view, &tally, plan);
	if (hf_rollout_state_is_end(view->state))
		return;
	if (view->cancel) {
		plan_cancel(plan);
		return;
	}
	switch (view->state) {
	case HF_ROLLOUT_PENDING: plan_pending(&tally, plan); break;
	case HF_ROLLOUT_ROLLING: plan_rolling(&tally, plan); break;
	case HF_ROLLOUT_SOAKING: plan_soaking(&tally, plan); break;
	case HF_ROLLOUT_HALTED: plan_halted(&tally, plan); break;
	default: plan_rollback(&tally, plan); break;
	}
	hf_assert(hf_rollout_state_may_follow(view->state, plan->next));
}
