/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

/*
 * The annotation holdfast.dev/restart: a person asks for the restart of one rank or of all.  Each
 * value is acted on once; the ledger keeps the last value in restartHandled.  Writes: the ledger's
 * incident and restartHandled, and the slots.
 */

/* The rank in "<time> worker-1"; NULL for "<time>", which means all ranks. */
static const char *find_named_replica(const char *request)
{
	const char *blank = strchr(request, ' ');

	return blank && blank[1] ? blank + 1 : NULL;
}

static struct hf_slot *find_replica(const struct hf_brain *b, const char *replica, int *ret_role,
				    int32_t *ret_index)
{
	const char *name = hf_arena_printf(b->arena, "%s-%s", b->view->name, replica);

	/* A role with one rank has pods without an index, but records call the rank "<type>-0":
	 * that name is accepted as well. */
	for (int r = 0; r < b->roles_len; r++)
		if (b->roles[r].single &&
		    hf_streq(replica, hf_rank_name(b->arena, b->roles[r].type, 0)))
			name = hf_rank_pod_name(b, r, 0);
	if (!hf_rank_find(b, name, ret_role, ret_index) ||
	    *ret_index >= b->roles[*ret_role].replicas)
		return NULL;
	return &b->roles[*ret_role].slots[*ret_index];
}

static void tell_request(struct hf_brain *b)
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
	hf_steps_note(b);
	hf_job_save_request(b);
	b->ledger.records[0].scope = "Replica";
	b->ledger.records[0].replica = hf_rank_name(b->arena, b->roles[role].type, index);
	b->ledger.records[0].pod = slot->pod->name;
	b->ledger.records[0].node = slot->pod->node;
	b->restarting_role = role;
	b->plan->restart_scope = HF_SCOPE_REPLICA;
	b->ledger.records[0].in_place = hf_restart_replica_any(b, role, index);
	if (b->ledger.records[0].in_place)
		hf_ranks_refresh(b);
	tell_request(b);
}

/* The most bytes of a value that the ledger keeps.  A longer value is never valid. */
#define HANDLED_BYTES_MAX 128

const char *hf_restart_request_key(const struct hf_brain *b)
{
	const char *request = b->view->restart;
	size_t len = HANDLED_BYTES_MAX;

	if (hf_str_is_empty(request) || strlen(request) <= HANDLED_BYTES_MAX)
		return request;
	/* A text that is cut must not end within a UTF-8 character. */
	while (len > 0 && ((unsigned char)request[len] & 0xc0) == 0x80)
		len--;
	return hf_arena_strndup(b->arena, request, len);
}

static bool is_time(const struct hf_brain *b, const char *request)
{
	hf_time time;

	return hf_time_parse(hf_arena_strndup(b->arena, request, strcspn(request, " ")), &time,
			     NULL) == 0;
}

/* Why the value can never be acted on; NULL: it can. */
static const char *find_problem(const struct hf_brain *b, const char *request)
{
	const char *replica = find_named_replica(request);
	int32_t index;
	int role;

	if (strlen(request) > HANDLED_BYTES_MAX || !is_time(b, request))
		return "annotation " HF_ANNOTATION_RESTART
		       " must be a time such as 2026-01-31T12:00:00Z, or a time, a blank and a "
		       "replica such as worker-1: nothing is restarted";
	if (replica && !find_replica(b, replica, &role, &index))
		return hf_arena_printf(b->arena, "cannot restart '%s': there is no such replica",
				       replica);
	return NULL;
}

/* Why the named rank cannot restart now (no pod, or it has succeeded); NULL: it can. */
static const char *find_lack(const struct hf_brain *b, const char *replica)
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

/* Act on the annotation once for each value.  A value that cannot be acted on is reported by one
 * event and is not tried again. */
void hf_restart_request_step(struct hf_brain *b)
{
	const char *request = b->view->restart;
	bool begun = b->view->status.ledger.present;
	const char *replica, *problem, *key = hf_restart_request_key(b);

	if (hf_str_is_empty(request) || hf_verdict_pending(b))
		return;
	problem = find_problem(b, request);
	if (problem)
		hf_say(b, b->now, HF_TOPIC_DECISION, "%s", problem);
	if (hf_streq(key, b->ledger.restart_handled))
		return;
	b->ledger.restart_handled = key;
	/* The annotation was written before the job had pods, so there is nothing to restart. */
	if (!begun && b->seen->pods_len == 0)
		return;
	replica = find_named_replica(request);
	if (!problem)
		problem = find_lack(b, replica);
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
	hf_steps_note(b);
	hf_job_save_request(b);
	b->ledger.records[0].scope = "Job";
	b->ledger.records[0].in_place = hf_gang_restart_any(b);
	b->ledger.records[0].generation = b->ledger.generation;
	b->plan->restart_scope = HF_SCOPE_JOB;
	tell_request(b);
}
