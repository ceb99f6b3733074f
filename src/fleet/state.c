/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/fleet_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * What the other files of this folder share: the clock, the timer of the next round, and the table
 * of objects that are left alone for a while.
 *
 * Input: struct hf_fleet and the env. Output: a later round, or an entry of the table. This file calls
 * none of the others.
 */

/* How soon a round goes on with work that is no new trouble: the more nodes a round looks at, the later. */
#define ON_MIN (50 * HF_MS)
#define ON_PER_NODE (HF_MS / 10)
#define QUIET (300 * HF_MS)
#define GATHER_MAX HF_SECOND
/* Most such rounds in a second: another writer that undoes each step causes no flood. */
#define ON_MAX 5

/* --- clock, log, look-ups and refusals -------------------------------------------------------- */

hf_time hf_fleet_now(const struct hf_fleet *fleet)
{
	return fleet->env.now(fleet->env.arg);
}

bool hf_fleet_can_see(const struct hf_fleet *fleet)
{
	return fleet->nodes != NULL && hf_cache_synced(fleet->nodes) &&
	       hf_cache_synced(fleet->health) && hf_cache_synced(fleet->policies_cache) &&
	       fleet->knows_acts && fleet->env.knows_pods(fleet->env.arg);
}

void hf_fleet_note_reply(const struct hf_fleet *fleet, const struct hf_reply *reply)
{
	fleet->env.heard(fleet->env.arg, reply);
}

void hf_fleet_log_problem(const struct hf_fleet *fleet, const char *what, int code,
			  const char *message)
{
	fleet->env.problem(fleet->env.arg, what, code, message);
}

void hf_fleet_log_list_problem(const struct hf_fleet *fleet, const char *what, bool *unseen,
			       int code, const char *message)
{
	bool told = *unseen;

	if (code == HF_E_NOT_FOUND || code == HF_E_FORBIDDEN || code == HF_E_UNSUPPORTED) {
		*unseen = true;
		if (told || code != HF_E_FORBIDDEN)
			return;
	}
	hf_fleet_log_problem(fleet, what, code, message);
}

struct fleet_policy *hf_fleet_find_policy(const struct hf_fleet *fleet, const char *name)
{
	for (size_t i = 0; i < fleet->n_policies; i++)
		if (hf_streq(fleet->policies[i]->name, name))
			return fleet->policies[i];
	return NULL;
}

void hf_fleet_look_soon(struct hf_fleet *fleet, hf_time within)
{
	hf_time due = hf_timer_due(fleet->timer), now = hf_loop_mono(fleet->env.loop);

	if (now + within < fleet->rests_until)
		within = fleet->rests_until - now;
	if (fleet->stopped || (hf_timer_armed(fleet->timer) && due <= now + within))
		return;
	hf_timer_arm(fleet->timer, within);
}

void hf_fleet_look_on(struct hf_fleet *fleet)
{
	size_t nodes = fleet->nodes == NULL ? 0 : hf_cache_len(fleet->nodes);
	hf_time within = ON_MIN + (hf_time)nodes * ON_PER_NODE;
	hf_time now = hf_loop_mono(fleet->env.loop);

	if (now - fleet->on_since >= HF_SECOND) {
		fleet->on_since = now;
		fleet->on_count = 0;
	}
	if (++fleet->on_count > ON_MAX || within > HF_SECOND)
		within = HF_SECOND;
	/* The round that gathers faults must not come earlier than it would. */
	if (fleet->gathers)
		within = hf_fleet_gathers_for(fleet);
	hf_fleet_look_soon(fleet, within);
}

void hf_fleet_gather(struct hf_fleet *fleet)
{
	hf_time now = hf_loop_mono(fleet->env.loop), within;

	if (!fleet->gathers)
		fleet->gathers_until = now + GATHER_MAX;
	fleet->gathers = true;
	within = hf_fleet_gathers_for(fleet);
	if (within > QUIET)
		within = QUIET;
	if (now + within < fleet->rests_until)
		within = fleet->rests_until - now;
	if (!fleet->stopped)
		hf_timer_arm(fleet->timer, within);
}

hf_time hf_fleet_gathers_for(const struct hf_fleet *fleet)
{
	hf_time left = fleet->gathers_until - hf_loop_mono(fleet->env.loop);

	if (!fleet->gathers)
		return 0;
	/* An overdue round starts when the step under way has ended. */
	return left > ON_MIN ? left : ON_MIN;
}

void hf_fleet_refuse(struct hf_fleet *fleet, const char *uid, hf_time wait, bool grows)
{
	struct fleet_refusal *refusal = hf_map_get(fleet->refusals, uid);

	if (refusal == NULL) {
		refusal = hf_xcalloc(1, sizeof(*refusal));
		/* If the table is full, most entries belong to deleted objects: clear the table. */
		if (hf_map_len(fleet->refusals) >= HF_FLEET_REFUSALS_MAX)
			hf_map_clear(fleet->refusals);
		if (!hf_map_put(fleet->refusals, uid, refusal)) {
			free(refusal);
			return;
		}
	}
	refusal->why[0] = '\0';
	refusal->times += grows;
	refusal->not_before = hf_fleet_now(fleet) +
			      (grows ? hf_health_drain_backoff(refusal->times, wait) : wait);
}

void hf_fleet_note_refused(struct hf_fleet *fleet, const char *uid, const char *why)
{
	struct fleet_refusal *refusal = hf_map_get(fleet->refusals, uid);

	if (refusal != NULL)
		snprintf(refusal->why, sizeof(refusal->why), "%s", why);
}

const char *hf_fleet_find_refused(const struct hf_fleet *fleet, const char *uid)
{
	const struct fleet_refusal *refusal = hf_map_get(fleet->refusals, uid);

	return refusal == NULL || refusal->why[0] == '\0' ? NULL : refusal->why;
}

hf_time hf_fleet_not_before(const struct hf_fleet *fleet, const char *uid)
{
	const struct fleet_refusal *refusal = hf_map_get(fleet->refusals, uid);

	return refusal == NULL ? 0 : refusal->not_before;
}

bool hf_fleet_is_server_failure(int code)
{
	return code == HF_E_UNAVAILABLE || code == HF_E_TIMEOUT || code == HF_E_TOO_MANY ||
	       code == HF_E_UNAUTHORIZED;
}

/* --- pods that came after the quarantine ---------------------------------------------------- */

/* Key in the table of refusals under which a node's late pods are counted. */
static char *late_key(const char *node)
{
	return hf_xasprintf("late/%s", node);
}

void hf_fleet_count_late(struct hf_fleet *fleet, const char *node)
{
	HF_AUTOFREE char *key = late_key(node);

	hf_fleet_refuse(fleet, key, 0, true);
}

unsigned hf_fleet_late_pods(const struct hf_fleet *fleet, const char *node)
{
	HF_AUTOFREE char *key = late_key(node);
	const struct fleet_refusal *late = hf_map_get(fleet->refusals, key);

	return late == NULL ? 0 : late->times;
}

void hf_fleet_forget_late(struct hf_fleet *fleet, const char *node)
{
	HF_AUTOFREE char *key = late_key(node);

	hf_map_remove(fleet->refusals, key);
}
