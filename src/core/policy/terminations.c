/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"
#include "core/model/container_reason.h"

#include <stdlib.h>

/* Container restarts of one pod that one step counts; the rest is for the next.  Kubelets back off
 * to one in five minutes, so this is a night's worth. */
#define UNITS_MAX 100

/*
 * The ends that have not been counted: of an attempt that the ledger says is the present one.
 * An end of an older attempt, an older generation or an index beyond the replicas was ours, or
 * was counted before; it is not even collected.
 */

static int by_time(const void *left, const void *right)
{
	const struct hf_end *a = left;
	const struct hf_end *b = right;
	/* Not known sorts last. */
	hf_time at = a->finished_at == HF_TIME_NONE ? HF_TIME_NEVER : a->finished_at;
	hf_time bt = b->finished_at == HF_TIME_NONE ? HF_TIME_NEVER : b->finished_at;

	/* What the kubelet restarted came before the end of the pod. */
	if ((a->kind == HF_END_RESTARTED) != (b->kind == HF_END_RESTARTED))
		return a->kind == HF_END_RESTARTED ? -1 : 1;
	if (at != bt)
		return at < bt ? -1 : 1;
	/* Nodes tell whole seconds.  Of two that ended in one, the one that is tried again explains the one
	 * that would fail the job: that could not be taken back. */
	if (at != HF_TIME_NEVER && a->fate != b->fate)
		return a->fate == HF_FATE_RESTART ? -1 : 1;
	if (a->role != b->role)
		return a->role - b->role;
	return a->index < b->index ? -1 : a->index > b->index;
}

const char *hf_own_container_name(const struct hf_brain *b, int role)
{
	const struct hf_role *spec = &b->job.roles[role];

	if (spec->present && spec->pod->containers_len > 0)
		return spec->pod->containers[spec->default_container].name;
	return b->job.framework->container_name;
}

const struct hf_container_seen *hf_own_container(const struct hf_brain *b, int role,
						 const struct hf_pod *pod)
{
	return hf_pod_find_container(pod, hf_own_container_name(b, role));
}

const char *hf_telling_reason(const char *reason)
{
	const struct hf_container_reason *row = hf_container_reason_find(reason);

	return row && !hf_streq(reason, "Completed") && !hf_streq(reason, "Error") ? reason : NULL;
}

/* The reason of the last termination in place. */
static void read_last_reason(const struct hf_brain *b, struct hf_end *end)
{
	const struct hf_container_seen *own = hf_own_container(b, end->role, end->pod);
	struct hf_container_end last;

	if (!own)
		return;
	last = hf_container_last_end(own);
	end->status_reason = hf_telling_reason(last.reason);
	end->status_message = last.message;
	/* The kubelet kills a container when its hook fails, and tells the hook only while it waits. */
	if (own->phase == HF_CONTAINER_WAITING &&
	    hf_streq(own->waiting_reason, HF_REASON_POST_START)) {
		end->status_reason = own->waiting_reason;
		end->status_message = own->waiting_message;
	}
}

/* The reason of the kind's own container; before that has run, of the container that kept it from running. */
static void read_reason(const struct hf_brain *b, struct hf_end *end,
			const struct hf_container_seen *own)
{
	bool own_ended = own && own->phase == HF_CONTAINER_TERMINATED;

	for (size_t i = 0; i < end->pod->containers_len && !end->status_reason; i++) {
		const struct hf_container_seen *container = &end->pod->containers[i];

		if (container->phase != HF_CONTAINER_TERMINATED || container->exit_code == 0 ||
		    (own_ended && container != own))
			continue;
		end->status_reason = hf_telling_reason(container->terminated_reason);
		end->status_message = container->terminated_message;
		if (end->status_message && container != own)
			end->status_message = hf_arena_printf(b->arena, "container '%s': %s",
							      container->name, end->status_message);
	}
}

/* When the pod's first container failed; NONE: no container did, or the time is unknown. */
static hf_time find_first_failure(const struct hf_pod *pod)
{
	hf_time first = HF_TIME_NONE;

	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *container = &pod->containers[i];

		if (container->phase == HF_CONTAINER_TERMINATED && container->exit_code != 0 &&
		    container->finished_at != HF_TIME_NONE &&
		    (first == HF_TIME_NONE || container->finished_at < first))
			first = container->finished_at;
	}
	return first;
}

/* Exit code, signal and time of the kind's own container.  If that one has not failed, the time is that
 * of the pod's first failure. */
static void read_exit(const struct hf_brain *b, struct hf_end *end)
{
	const struct hf_container_seen *own = hf_own_container(b, end->role, end->pod);
	bool own_ended = own && own->phase == HF_CONTAINER_TERMINATED;
	struct hf_container_end last;

	end->finished_at = own_ended && own->exit_code != 0 && own->finished_at != HF_TIME_NONE
				   ? own->finished_at
				   : find_first_failure(end->pod);
	read_reason(b, end, own);
	if (!own_ended)
		return;
	last = hf_container_last_end(own);
	end->exit_code = last.exit_code;
	if (last.signal > 0)
		end->signal = HF_SOME_INT(last.signal);
}

/* The very pod that the ledger knows, with its owner taken off by somebody: it has not ended. */
static bool is_orphaned(const struct hf_brain *b, const struct hf_slot *slot)
{
	const struct hf_pod *holder = slot->pod_holder;

	return holder && !slot->pod_leaving && holder->stamped &&
	       holder->generation == b->ledger.generation && holder->attempt == slot->attempt;
}

/* How the pod of a present attempt has ended; false: the pod runs. A pod that succeeded was not ended,
 * whoever deletes it. */
static bool find_kind(struct hf_brain *b, const struct hf_slot *slot, const struct hf_pod *pod,
		      enum hf_end_kind *ret_kind)
{
	if (pod->phase == HF_POD_SUCCEEDED)
		return false;
	if (pod->deletion_time != HF_TIME_NONE)
		*ret_kind = HF_END_DELETED;
	else if (pod->phase == HF_POD_FAILED || slot->phase == HF_SLOT_BROKEN)
		*ret_kind = HF_END_FAILED;
	else if (hf_lost_is_given_up(b, pod))
		*ret_kind = HF_END_LOST;
	/* A device is of no more use to a program that has ended. */
	else if (slot->phase != HF_SLOT_TRAINED && hf_device_ends(b, pod))
		*ret_kind = HF_END_SICK;
	else
		return false;
	return true;
}

/* Up to two ends of one rank: its containers were restarted, and then the pod ended. */
static void collect_slot(struct hf_brain *b, int role, int32_t index)
{
	struct hf_slot *slot = &b->crews[role].slots[index];
	struct hf_end end = {.role = role,
			     .index = index,
			     .pod = hf_slot_pod(b, slot),
			     .rule = -1,
			     .finished_at = HF_TIME_NONE};
	int64_t units;

	/* A success is for good: whatever somebody writes into its pod later is no end of it. */
	if (slot->succeeded || (slot->pod ? !slot->current : is_orphaned(b, slot)))
		return;
	if (!end.pod) {
		if (!slot->created)
			return;
		end.kind = HF_END_VANISHED;
		b->ends[b->ends_len++] = end;
		return;
	}
	units = hf_pod_terminations(b, role, end.pod) - slot->seen;
	/* After the program has succeeded, restarts of other containers are no ends of its rank. */
	if (units > 0 && slot->phase != HF_SLOT_TRAINED) {
		end.kind = HF_END_RESTARTED;
		end.units = units < UNITS_MAX ? (int32_t)units : UNITS_MAX;
		read_last_reason(b, &end);
		b->ends[b->ends_len++] = end;
		end.status_reason = end.status_message = NULL;
	}
	if (!find_kind(b, slot, end.pod, &end.kind))
		return;
	end.units = 0;
	end.counted = end.kind == HF_END_FAILED && slot->seen > hf_pod_restarts(b, role, end.pod);
	/* One that runs has not ended, whichever of its containers has. */
	if (end.kind != HF_END_SICK)
		read_exit(b, &end);
	b->ends[b->ends_len++] = end;
}

/* A pod that the job does without: it stays as it is, and nothing is charged.  A rule that a person
 * wrote goes before that. */
static bool is_outlived(const struct hf_brain *b, const struct hf_end *end)
{
	const struct hf_framework *framework = b->job.framework;

	return framework->outlives && end->fate == HF_FATE_FAIL && end->rule < 0 &&
	       framework->outlives(&b->job, end->role);
}

/* Class, rule and policy of each; those that nothing follows from are dropped. */
static void decide(struct hf_brain *b)
{
	int32_t outlived = 0;
	size_t len = 0;

	for (size_t i = 0; i < b->ends_len; i++) {
		struct hf_end *end = &b->ends[i];

		hf_classify(b, end);
		end->rule = hf_rules_match(b, end);
		if (end->gave_up && end->rule < 0 && end->cls == HF_CLASS_APPLICATION) {
			b->crews[end->role].slots[end->index].gave_up = true;
			continue;
		}
		hf_policy_decide(b, end);
		if (is_outlived(b, end)) {
			outlived++;
			continue;
		}
		if (end->kind != HF_END_RESTARTED)
			b->failed_ends[end->role]++;
		b->ends[len++] = *end;
	}
	b->ends_len = len;
	if (outlived > 0)
		hf_say(b, b->now, HF_TOPIC_RULE,
		       "%d replica(s) have failed, and the job goes on without them", outlived);
}

void hf_ends_collect(struct hf_brain *b)
{
	size_t slots = 0;

	hf_assert(b->ledger.present && b->ends_len == 0);
	for (int r = 0; r < b->crews_len; r++)
		slots += (size_t)b->crews[r].replicas;
	/* A rank can have been restarted by the kubelet and have ended, both unseen. */
	b->ends = HF_ARENA_ARRAY(b->arena, struct hf_end, 2 * slots + 1);
	for (int r = 0; r < b->crews_len; r++) {
		for (int32_t i = 0; i < b->crews[r].replicas; i++)
			collect_slot(b, r, i);
	}
	/* What has ended explains why the others wait. */
	if (b->ends_len == 0 && hf_advance_hung(b, &b->ends[0]))
		b->ends_len = 1;
	hf_assert(b->ends_len <= 2 * slots);
	decide(b);
	qsort(b->ends, b->ends_len, sizeof(*b->ends), by_time);
}

void hf_end_event(struct hf_brain *b, const struct hf_end *end)
{
	hf_assert(end->rule >= -1);
	if (end->pod && end->exit_code.set)
		hf_event(b, false, "ExitedWithCode",
			 hf_arena_printf(b->arena, "Pod: %s.%s exited with code %lld",
					 hf_str_or(b->view->ns, ""), end->pod->name,
					 (long long)end->exit_code.value));
}
