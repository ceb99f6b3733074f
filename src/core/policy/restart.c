/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

/* Restarts of one rank, and restarts that a person asks for. */

/* The next attempt: the pod of the last one is not present any more, so it is deleted, and when
 * its name is free the new one is created. */
void hf_restart_replica(struct hf_brain *b, int role, int32_t index)
{
	struct hf_slot *slot = &b->crews[role].slots[index];

	hf_assert(role < b->crews_len && index < b->crews[role].slots_len);
	hf_assert(!slot->succeeded);
	slot->attempt++;
	slot->seen = 0;
	slot->created = slot->trained = slot->covered = slot->current = false;
	slot->phase = HF_SLOT_ABSENT;
}

void hf_restart_tell(struct hf_brain *b, enum hf_class cause)
{
	hf_assert(b->ledger.incident.id > 0);
	hf_cause_event(b);
	b->plan->metrics[HF_METRIC_RESTARTED]++;
	b->plan->metrics[HF_METRIC_RESTARTS]++;
	b->plan->restart_cause = cause;
}

/* Ranks beyond the replicas: what becomes of their pods is ours, also when the job grows again
 * before they are gone. */
void hf_restart_retire(struct hf_brain *b)
{
	for (int r = 0; r < b->crews_len; r++) {
		/* Pods of a type that was taken out of the spec stay what they are. */
		for (int32_t i = b->crews[r].replicas;
		     b->crews[r].present && i < b->crews[r].slots_len; i++) {
			struct hf_slot *slot = &b->crews[r].slots[i];

			if (slot->current)
				slot->attempt++;
			slot->seen = 0;
			slot->created = slot->trained = slot->covered = slot->current = false;
			slot->phase = HF_SLOT_ABSENT;
		}
	}
}

/* Only a job of thousands whose ranks each restart alone gets here: its text of attempts does not
 * collapse into ranges.  With a new generation all attempts may start from 0 again. */
void hf_restart_when_too_large(struct hf_brain *b)
{
	hf_ledger_write(b);
	if (hf_ledger_bytes(&b->ledger) <= HF_LEDGER_BYTES_MAX)
		return;
	for (int r = 0; r < b->crews_len; r++) {
		for (int32_t i = 0; i < b->crews[r].slots_len; i++)
			b->crews[r].slots[i].attempt = 0;
	}
	hf_gang_restart(b);
	/* Who waited in vain may be the first to end, and leaves no record. */
	if (b->ledger.records_len > 0) {
		b->ledger.records_len = 1;
		b->ledger.records[0].scope = "Job";
		b->ledger.records[0].generation = b->ledger.generation;
	}
	b->plan->restart_scope = HF_SCOPE_JOB;
	hf_say(b, b->now, HF_TOPIC_DECISION,
	       "the ledger has outgrown its limit: all ranks restart and it begins anew");
}

/* "<time>" or "<time> worker-1": what follows the first blank. */
static const char *named_replica(const char *request)
{
	const char *blank = strchr(request, ' ');

	return blank && blank[1] ? blank + 1 : NULL;
}

static struct hf_slot *find_replica(struct hf_brain *b, const char *replica, int *ret_role,
				    int32_t *ret_index)
{
	const char *name = hf_arena_printf(b->arena, "%s-%s", b->view->name, replica);

	/* The one of its role is found with its number too, as records have it. */
	for (int r = 0; r < b->crews_len; r++)
		if (b->crews[r].single &&
		    hf_streq(replica, hf_rank_name(b->arena, b->crews[r].type, 0)))
			name = hf_rank_pod_name(b, r, 0);
	if (!hf_world_find(b, name, ret_role, ret_index) ||
	    *ret_index >= b->crews[*ret_role].replicas)
		return NULL;
	return &b->crews[*ret_role].slots[*ret_index];
}

static void requested(struct hf_brain *b)
{
	hf_assert(b->ledger.records_len > 0);
	b->ledger.records[0].rule = HF_ANNOTATION_RESTART;
	b->restarting = true;
	hf_restart_tell(b, HF_CLASS_USER);
}

static void restart_named(struct hf_brain *b, const char *replica)
{
	struct hf_slot *slot;
	int32_t index;
	int role;

	slot = find_replica(b, replica, &role, &index);
	hf_assert(slot && slot->pod && !slot->succeeded);
	hf_delay_next(b, hf_class_budget(HF_CLASS_USER));
	hf_incident_open(b, NULL, HF_CLASS_USER, HF_BUDGET_NONE);
	b->ledger.records[0].scope = "Replica";
	b->ledger.records[0].replica = hf_rank_name(b->arena, b->crews[role].type, index);
	b->ledger.records[0].pod = slot->pod->name;
	b->ledger.records[0].node = slot->pod->node;
	b->restarting_role = role;
	b->plan->restart_scope = HF_SCOPE_REPLICA;
	hf_restart_replica(b, role, index);
	requested(b);
}

/* What the ledger keeps of a request: anybody may write a long one, and that is never a good one. */
#define HANDLED_BYTES_MAX 128

const char *hf_restart_key(struct hf_brain *b)
{
	const char *request = b->view->restart;
	size_t len = HANDLED_BYTES_MAX;

	if (hf_str_is_empty(request) || strlen(request) <= HANDLED_BYTES_MAX)
		return request;
	/* Not in the middle of a character. */
	while (len > 0 && ((unsigned char)request[len] & 0xc0) == 0x80)
		len--;
	return hf_arena_strndup(b->arena, request, len);
}

static bool is_time(struct hf_brain *b, const char *request)
{
	hf_time time;

	return hf_time_parse(hf_arena_strndup(b->arena, request, strcspn(request, " ")), &time,
			     NULL) == 0;
}

/* Why nothing can ever come of it; NULL: something can. */
static const char *problem_of(struct hf_brain *b, const char *request)
{
	const char *replica = named_replica(request);
	int32_t index;
	int role;

	if (strlen(request) > HANDLED_BYTES_MAX || !is_time(b, request))
		return "annotation " HF_ANNOTATION_RESTART
		       " is no time as 2026-01-31T12:00:00Z, with a replica as worker-1 behind it "
		       "or without: nothing is restarted";
	if (replica && !find_replica(b, replica, &role, &index))
		return hf_arena_printf(b->arena, "cannot restart '%s': there is no such replica",
				       replica);
	return NULL;
}

/* What the named one lacks at this moment. */
static const char *lack_of(struct hf_brain *b, const char *replica)
{
	const struct hf_slot *slot;
	int32_t index;
	int role;

	if (!replica || b->job.recovery.scope == HF_SCOPE_JOB)
		return NULL;
	slot = find_replica(b, replica, &role, &index);
	if (slot->pod && !slot->succeeded)
		return NULL;
	return hf_arena_printf(b->arena, "cannot restart '%s': %s", replica,
			       slot->succeeded ? "it has succeeded" : "it has no pod");
}

/* A request that cannot be met is handled too: there is one event of it, and no further try. */
void hf_restart_requested(struct hf_brain *b)
{
	const char *request = b->view->restart;
	bool begun = b->view->status.ledger.present;
	const char *replica, *problem, *key = hf_restart_key(b);

	if (hf_str_is_empty(request) || hf_verdict_pending(b))
		return;
	problem = problem_of(b, request);
	if (problem)
		hf_say(b, b->now, HF_TOPIC_DECISION, "%s", problem);
	if (hf_streq(key, b->ledger.restart_handled))
		return;
	b->ledger.restart_handled = key;
	/* Written before anything ran: there is nothing to restart. */
	if (!begun && b->seen->pods_len == 0)
		return;
	replica = named_replica(request);
	if (!problem)
		problem = lack_of(b, replica);
	if (problem) {
		hf_event(b, true, hf_cond_reason(b, "Restarting"), problem);
		return;
	}
	if (replica && b->job.recovery.scope == HF_SCOPE_REPLICA) {
		restart_named(b, replica);
		return;
	}
	hf_delay_next(b, hf_class_budget(HF_CLASS_USER));
	hf_incident_open(b, NULL, HF_CLASS_USER, HF_BUDGET_NONE);
	hf_gang_restart(b);
	b->ledger.records[0].scope = "Job";
	b->ledger.records[0].generation = b->ledger.generation;
	b->plan->restart_scope = HF_SCOPE_JOB;
	requested(b);
}
