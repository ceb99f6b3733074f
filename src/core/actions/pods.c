/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/actions/actions_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

/*
 * The pods of an active job: which to delete, which to create, and what a create waits for. Input:
 * the slots after all decisions. Output: the lists of deletes and creates.
 */

/* ---- building one pod ----------------------------------------------------------------------- */

static void add_edit(struct hf_edits *edits, enum hf_edit_kind kind, const char *name,
		     const char *value)
{
	struct hf_edit edit = {.kind = kind, .name = name, .value = value};

	hf_edits_add(edits, &edit);
}

/* Annotations are texts. */
static void add_number(struct hf_edits *edits, const char *name, int64_t value)
{
	add_edit(edits, HF_EDIT_ANNOTATION, name,
		 hf_arena_printf(edits->arena, "%lld", (long long)value));
}

/* The kubelet kills all processes at the end of the pod's grace, and the program needs a moment after
 * its save. */
#define AFTER_SAVE_SECONDS 5

static int64_t find_save_seconds(const struct hf_brain *b, int role)
{
	int64_t seconds = b->job.recovery.checkpoint_grace_seconds;
	int64_t most = hf_template_grace_seconds(b, role) - AFTER_SAVE_SECONDS;

	return seconds < most ? seconds : most;
}

/* Common edits come first, then the kind's.  Labels of Holdfast override those of the template,
 * and the kind's variables stand behind the user's. */
static int build_edits(const struct hf_brain *b, const struct hf_rank *rank, struct hf_edits *edits,
		       struct hf_error *err)
{
	const struct hf_framework *framework = b->job.framework;
	const struct hf_role *role = &b->job.roles[rank->role];
	int64_t save_seconds = find_save_seconds(b, rank->role);
	int labels_len;
	const struct hf_key_value *labels =
		hf_replica_labels(b, rank->role, rank->index, &labels_len);

	hf_assert(role->present);
	for (int i = 0; i < labels_len; i++)
		add_edit(edits, HF_EDIT_LABEL, labels[i].key, labels[i].value);
	if (framework->is_master && framework->is_master(&b->job, rank))
		add_edit(edits, HF_EDIT_LABEL, HF_LABEL_JOB_ROLE, "master");
	add_number(edits, HF_ANNOTATION_GENERATION, rank->generation);
	add_number(edits, HF_ANNOTATION_ATTEMPT, rank->attempt);
	add_number(edits, HF_ANNOTATION_INCIDENT, rank->incident);
	hf_pod_group_edits(b, rank->role, edits);
	if (role->add_port) {
		struct hf_edit port = {.kind = HF_EDIT_PORT,
				       .container = (int)role->default_container,
				       .name = framework->port_name,
				       .number = role->port};

		hf_edits_add(edits, &port);
	}
	add_edit(edits, HF_EDIT_RESTART_POLICY, NULL,
		 hf_restart_policy_name(hf_restart_policy_of_pods(b, role)));
	hf_avoid_nodes(b, rank->role, rank->attempt > 0 || rank->generation > 1, edits);
	if (b->job.recovery.fence_seconds > 0)
		hf_edits_env(edits, (int)role->default_container, HF_FENCE_ENV, "%lld",
			     (long long)b->job.recovery.fence_seconds);
	if (save_seconds > 0)
		hf_edits_env(edits, (int)role->default_container, HF_SAVE_ENV, "%lld",
			     (long long)save_seconds);
	if (b->roles[rank->role].slots[rank->index].held)
		hf_edits_env(edits, (int)role->default_container, HF_HOLD_ENV, "1");
	if (hf_inject_exec(&b->job, rank, edits, err) < 0)
		return err->code;
	return framework->pod ? framework->pod(&b->job, rank, edits, err) : 0;
}

/* Send the warnings about a pod template. Usually each is sent once in the life of a job: with the
 * first pod of the replica type. */
static void warn_of_template(struct hf_brain *b, const struct hf_rank *rank)
{
	if (rank->index > 0 || rank->attempt > 0 || rank->generation > 1)
		return;
	if (b->creates_pods++ == 0)
		hf_pod_group_warn(b);
	if (!b->job.roles[rank->role].pod->restart_policy)
		return;
	hf_event(
		b, true,
		hf_str_or(b->job.framework->template_restart_reason, "SetPodTemplateRestartPolicy"),
		"Restart policy in pod template will be overwritten by restart policy in "
		"replica spec");
}

static bool create_pod(struct hf_brain *b, int role, int32_t index)
{
	const struct hf_slot *slot = &b->roles[role].slots[index];
	struct hf_rank rank = {.role = role,
			       .index = index,
			       .generation = b->ledger.generation,
			       .attempt = slot->attempt,
			       .incident = hf_incident_stamp(b, role, index)};
	struct hf_action action = {.kind = HF_ACTION_CREATE_POD, .role = role, .index = index};
	struct hf_error err = {0};
	struct hf_edits edits;

	action.name = hf_rank_pod_name(b, role, index);
	/* If a pod's name is too long for a service, peers cannot find the pod, so no pod is
	 * created. services.c reports the problem. */
	if (b->job.framework->has_services && strlen(action.name) > HF_SERVICE_NAME_LEN_MAX)
		return false;
	hf_edits_init(&edits, &b->cache->shared, b->arena);
	if (build_edits(b, &rank, &edits, &err) < 0) {
		hf_say(b, b->now, HF_TOPIC_BLOCKED, "no pod can be made for %s-%d: %s",
		       b->roles[role].lower, index, err.text);
		return false;
	}
	b->create_bytes += edits.bytes;
	warn_of_template(b, &rank);
	action.edits = edits.items;
	action.edits_len = edits.len;
	hf_action_add(b, &b->creates, &action);
	return true;
}

/* ---- all pods ------------------------------------------------------------------------------- */

/* The ranks without a pod, and the ranks that wait until their previous pod is gone. */
struct missing {
	int32_t count;
	int32_t leaving; /* ranks that wait until the previous pod is gone */
	const char *leaving_name;
};

/* Delete the pod of a rank if it is superfluous; count the rank if it lacks a pod. */
static void plan_rank(struct hf_brain *b, int role, int32_t index, struct missing *missing)
{
	const struct hf_role_slots *ranks = &b->roles[role];
	struct hf_slot *slot = &ranks->slots[index];
	bool wanted = index < ranks->replicas;
	/* Pods of a type that was removed from the spec stay, as under upstream's operator. */
	bool stays = (wanted || !ranks->present) && slot->current;

	if (slot->pod && !stays) {
		struct hf_opt_int none = {0};
		bool gang = b->ledger.phase == HF_PHASE_TEARING;

		if (!hf_job_save_is_awaited(b, role, slot))
			hf_pod_delete(b, slot->pod,
				      gang ? b->job.recovery.restart_grace_seconds : none);
		if (wanted && missing->leaving++ == 0)
			missing->leaving_name = slot->pod->name;
	} else if (wanted && !slot->pod && !slot->succeeded) {
		missing->count++;
	}
}

/* The bytes of variables that one step may create.  If every rank's variables name all other ranks,
 * their size grows with the square of the ranks. */
#define CREATE_BYTES_MAX ((size_t)32 << 20)

static void create_role(struct hf_brain *b, int role, struct hf_empty_names *empty)
{
	for (int32_t i = 0; i < b->roles[role].replicas; i++) {
		const struct hf_slot *slot = &b->roles[role].slots[i];

		if (b->create_bytes > CREATE_BYTES_MAX) {
			hf_wake(b, b->now + HF_US);
			return;
		}
		if (slot->pod || slot->succeeded || slot->pod_taken ||
		    hf_name_reuse_waits(b, role, i, empty))
			continue;
		/* The cause is the same for all ranks of the role: if the pod of one cannot be
		 * created, none can. */
		if (!create_pod(b, role, i))
			break;
	}
}

static void create_missing(struct hf_brain *b)
{
	struct hf_empty_names empty = {0};

	for (int r = 0; r < b->roles_len; r++)
		create_role(b, r, &empty);
	hf_name_reuse_tell(b, &empty);
}

static void say_leaving(const struct hf_brain *b, const struct missing *missing)
{
	/* The explanation of a restart in place is barrier.c's task. */
	if (b->barrier && hf_barrier_is_of_all(b))
		return;
	if (b->ledger.phase == HF_PHASE_TEARING)
		hf_say(b, b->now, HF_TOPIC_BLOCKED,
		       "generation %lld waits until %d pod(s) of older generations are gone, "
		       "%s first",
		       (long long)b->ledger.generation, b->older_pods,
		       hf_str_or(missing->leaving_name, "one beyond the replicas"));
	else if (missing->leaving > 0)
		hf_say(b, b->now, HF_TOPIC_BLOCKED,
		       "%d replica(s) wait until their previous pod is gone, %s first",
		       missing->leaving, missing->leaving_name);
}

void hf_pods_plan(struct hf_brain *b)
{
	struct missing missing = {0};

	hf_assert(!b->job.suspend && b->ledger.present);
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].slots_len; i++)
			plan_rank(b, r, i, &missing);
	}
	say_leaving(b, &missing);
	/* While a verdict settles, the job starts no pod. */
	if (missing.count + missing.leaving == 0 || b->settling)
		return;
	if (b->ledger.not_before != HF_TIME_NONE && b->now < b->ledger.not_before) {
		hf_wake(b, b->ledger.not_before);
		hf_say(b, b->ledger.not_before, HF_TOPIC_NEXT,
		       "%d pod(s) are created in %s: the delay grows with each restart",
		       missing.count + missing.leaving,
		       hf_span_text(b->arena, hf_elapsed(b->now, b->ledger.not_before)));
		return;
	}
	/* Pods of two generations never run side by side, so no pod is created while an older one
	 * exists. */
	if (b->older_pods == 0 && !b->extras_wait && !b->gated)
		create_missing(b);
}
