/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

#include <stdlib.h>

/* The most restarts of one pod's containers that one step counts; the next step counts more.  A
 * kubelet delays restarts up to five minutes each, so this is more than a night's worth. */
#define UNITS_MAX 100

/*
 * Collects the terminations of present attempts that have not been counted.  Output:
 * hf_brain.terminations with class, rule and policy.
 *
 * A termination of an older attempt, an older generation or an index beyond the replicas is not
 * collected: it was counted before, or the operator itself ended the pod.
 */

static int compare_times(const void *left, const void *right)
{
	const struct hf_termination *a = left;
	const struct hf_termination *b = right;
	/* An unknown time sorts last. */
	hf_time at = a->finished_at == HF_TIME_NONE ? HF_TIME_NEVER : a->finished_at;
	hf_time bt = b->finished_at == HF_TIME_NONE ? HF_TIME_NEVER : b->finished_at;

	/* The restart of a container comes before the end of its pod. */
	if ((a->kind == HF_TERMINATION_RESTARTED) != (b->kind == HF_TERMINATION_RESTARTED))
		return a->kind == HF_TERMINATION_RESTARTED ? -1 : 1;
	if (at != bt)
		return at < bt ? -1 : 1;
	/* Nodes report whole seconds.  Of two terminations in one second, the one that restarts
	 * comes before the one that would fail the job, because a failed job cannot be taken
	 * back. */
	if (at != HF_TIME_NEVER && a->fate != b->fate)
		return a->fate == HF_FATE_RESTART ? -1 : 1;
	if (a->role != b->role)
		return a->role - b->role;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* The reason and the message of a container other than the own container.  The message names that
 * container. */
static void read_other_reason(const struct hf_brain *b, struct hf_termination *termination,
			      const struct hf_container_seen *container,
			      const struct hf_container_termination *last)
{
	const char *message = hf_str_or(last->message, "");

	termination->status_reason = hf_container_reason_telling(last->reason);
	if (termination->status_reason && *message != '\0') {
		termination->status_message =
			hf_arena_printf(b->arena, "container '%s': %s", container->name, message);
		return;
	}
	if (container->init && !termination->status_reason)
		termination->status_reason = HF_REASON_INIT_FAILED;
	termination->status_message = hf_arena_printf(
		b->arena, "container '%s' exited with code %lld%s%s", container->name,
		(long long)last->exit_code.value, *message != '\0' ? ": " : "", message);
}

/* The last failed init container; NULL: no init container failed.  Init containers run one after
 * the other. */
static const struct hf_container_seen *find_failed_init(const struct hf_brain *b, int role,
							const struct hf_pod *pod)
{
	const struct hf_container_seen *found = NULL;

	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *seen = &pod->containers[i];
		bool failed = seen->phase == HF_CONTAINER_TERMINATED
				      ? seen->exit_code != 0
				      : seen->last_exit_code.set && seen->last_exit_code.value != 0;

		if (seen->init && failed && !hf_init_wait_is_added(b, role, seen))
			found = seen;
	}
	return found;
}

/* The reason and the message of the last termination, for a container that the kubelet starts
 * again. */
static void read_last_reason(const struct hf_brain *b, struct hf_termination *termination)
{
	const struct hf_container_seen *own =
		hf_own_container(b, termination->role, termination->pod);
	const struct hf_container_seen *init =
		termination->before_start ? find_failed_init(b, termination->role, termination->pod)
					  : NULL;
	struct hf_container_termination last;

	if (init) {
		last = hf_container_last_termination(init);
		read_other_reason(b, termination, init, &last);
		return;
	}
	if (!own)
		return;
	last = hf_container_last_termination(own);
	termination->status_reason = hf_container_reason_telling(last.reason);
	termination->status_message = last.message;
	/* If a postStart hook fails, the kubelet kills the container.  It reports the hook only
	 * while the container waits. */
	if (own->phase == HF_CONTAINER_WAITING &&
	    hf_streq(own->waiting_reason, HF_REASON_POST_START)) {
		termination->status_reason = own->waiting_reason;
		termination->status_message = own->waiting_message;
	}
}

/* The reason of the kind's own container.  If that has not run, the reason of the container that
 * kept it from running. */
static void read_reason(const struct hf_brain *b, struct hf_termination *termination,
			const struct hf_container_seen *own)
{
	bool own_ended = own && own->phase == HF_CONTAINER_TERMINATED;

	for (size_t i = 0; i < termination->pod->containers_len && !termination->status_reason;
	     i++) {
		const struct hf_container_seen *container = &termination->pod->containers[i];
		struct hf_container_termination last = {.exit_code =
								HF_SOME_INT(container->exit_code),
							.reason = container->terminated_reason,
							.message = container->terminated_message};

		if (container->phase != HF_CONTAINER_TERMINATED || container->exit_code == 0 ||
		    (own_ended && container != own))
			continue;
		if (container != own) {
			read_other_reason(b, termination, container, &last);
			continue;
		}
		termination->status_reason = hf_container_reason_telling(last.reason);
		termination->status_message = last.message;
	}
}

/* When the first of the pod's containers failed; NONE: no container failed, or the time is
 * unknown. */
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

/* Read exit code, signal and time of the kind's own container.  If that container has not failed,
 * the time is that of the first failed container. */
static void read_exit(const struct hf_brain *b, struct hf_termination *termination)
{
	const struct hf_container_seen *own =
		hf_own_container(b, termination->role, termination->pod);
	bool own_ended = own && own->phase == HF_CONTAINER_TERMINATED;
	struct hf_container_termination last;

	termination->finished_at =
		own_ended && own->exit_code != 0 && own->finished_at != HF_TIME_NONE
			? own->finished_at
			: find_first_failure(termination->pod);
	read_reason(b, termination, own);
	if (!own_ended)
		return;
	last = hf_container_last_termination(own);
	termination->exit_code = last.exit_code;
	if (last.signal > 0)
		termination->signal = HF_SOME_INT(last.signal);
}

/* The ledger's pod exists, but a person removed its owner reference: that is no termination. */
static bool is_orphaned(const struct hf_brain *b, const struct hf_slot *slot)
{
	const struct hf_pod *holder = slot->pod_holder;

	return holder && !slot->pod_leaving && holder->stamped &&
	       holder->generation == b->ledger.generation && holder->attempt == slot->attempt;
}

/* How the pod of a present attempt ended; false: it runs.  A pod that succeeded is no termination,
 * even while it is being deleted. */
static bool find_kind(const struct hf_brain *b, const struct hf_slot *slot,
		      const struct hf_pod *pod, enum hf_termination_kind *ret_kind)
{
	if (pod->phase == HF_POD_SUCCEEDED)
		return false;
	if (pod->deletion_time != HF_TIME_NONE)
		*ret_kind = HF_TERMINATION_DELETED;
	else if (pod->phase == HF_POD_FAILED || slot->phase == HF_SLOT_BROKEN)
		*ret_kind = HF_TERMINATION_FAILED;
	else if (hf_node_loss_gives_up(b, pod))
		*ret_kind = HF_TERMINATION_LOST;
	/* A rank with an ended program does not need its device any more. */
	else if (slot->phase != HF_SLOT_TRAINED && hf_device_ends_pod(b, pod))
		*ret_kind = HF_TERMINATION_UNHEALTHY;
	else
		return false;
	return true;
}

/* A copy of the pod as its kubelet would report it if the own container had ended with the
 * process. */
static const struct hf_pod *make_ended_pod(const struct hf_brain *b, int role,
					   const struct hf_pod *pod,
					   const struct hf_process_seen *process)
{
	struct hf_container_seen *containers =
		HF_ARENA_ARRAY(b->arena, struct hf_container_seen, pod->containers_len + 1);
	const struct hf_container_seen *own = hf_own_container(b, role, pod);
	struct hf_pod *ended = HF_ARENA_NEW(b->arena, struct hf_pod);

	hf_assert(own);
	*ended = *pod;
	ended->containers = containers;
	for (size_t i = 0; i < pod->containers_len; i++) {
		containers[i] = pod->containers[i];
		if (&pod->containers[i] != own)
			continue;
		containers[i].phase = HF_CONTAINER_TERMINATED;
		containers[i].again = HF_AGAIN_NEVER;
		containers[i].exit_code =
			(int32_t)(process->code.set ? process->code.value
						    : 128 + process->signal.value);
		containers[i].signal = (int32_t)process->signal.value;
		containers[i].terminated_reason = hf_str_or(process->cause, "Error");
		containers[i].terminated_message = process->message;
		containers[i].finished_at = process->at;
		containers[i].last_exit_code.set = false;
	}
	return ended;
}

/* The rank's process has ended while exec keeps the container running: that is the termination of
 * the rank.  True: it was found. */
static bool collect_process(struct hf_brain *b, struct hf_termination *termination)
{
	const struct hf_slot *slot = &b->roles[termination->role].slots[termination->index];
	const struct hf_process_seen *process = hf_slot_process(b, termination->role, slot);

	if (!process || slot->held || process->phase != HF_PROCESS_ENDED ||
	    !hf_slot_is_reached(b, slot, process))
		return false;
	termination->kind = HF_TERMINATION_FAILED;
	termination->process = true;
	termination->pod = make_ended_pod(b, termination->role, slot->pod, process);
	return true;
}

void hf_termination_of_process(const struct hf_brain *b, int role, int32_t index,
			       const struct hf_process_seen *process,
			       struct hf_termination *ret_termination)
{
	*ret_termination = (struct hf_termination){
		.kind = HF_TERMINATION_FAILED,
		.role = role,
		.index = index,
		.pod = make_ended_pod(b, role, b->roles[role].slots[index].pod, process),
		.process = true,
		.finished_at = HF_TIME_NONE,
		.rule = -1};
	read_exit(b, ret_termination);
	hf_classify(b, ret_termination);
}

/*
 * The order to restart in place was given, and no process of the new attempt has run yet.  The
 * previous attempt's termination was counted with that order.  So if the pod ends now, nothing is
 * charged, and barrier.c re-creates the pod.
 */
static bool collect_fallen(struct hf_brain *b, int role, struct hf_slot *slot)
{
	const struct hf_pod *pod = hf_slot_pod(b, slot);
	enum hf_termination_kind kind;
	struct hf_pod_count count;

	if (hf_slot_has_run(b, role, slot))
		return false;
	if (!pod) {
		slot->fell = slot->created;
		return true;
	}
	count = hf_pod_terminations(b, role, pod);
	if (hf_slot_uncounted(slot, &count) > 0) {
		hf_slot_count_all(b, role, slot, pod);
		/* A restart of the container without an order starts the program at once. */
		slot->covered = !slot->held;
	}
	slot->fell = !slot->pod || find_kind(b, slot, pod, &kind) ||
		     (slot->held && (hf_pod_is_terminal(pod) || slot->phase == HF_SLOT_ENDED ||
				     slot->phase == HF_SLOT_TRAINED));
	return slot->fell || slot->held;
}

/* The last termination in the pod was already counted, and the container did not start again. */
static bool is_counted(const struct hf_brain *b, int role, const struct hf_slot *slot,
		       const struct hf_pod *pod)
{
	struct hf_pod_count restarts = hf_pod_restarts(b, role, pod);

	return restarts.begun ? slot->seen > restarts.own : slot->init_seen > restarts.init;
}

/* Collect up to two terminations of one rank: its container was restarted, and then its pod
 * ended. */
static void collect_slot(struct hf_brain *b, int role, int32_t index)
{
	struct hf_slot *slot = &b->roles[role].slots[index];
	struct hf_termination termination = {.role = role,
					     .index = index,
					     .pod = hf_slot_pod(b, slot),
					     .rule = -1,
					     .finished_at = HF_TIME_NONE};
	struct hf_pod_count count;
	int64_t units;

	/* A success is final: a later change of its pod is no termination. */
	if (slot->succeeded || (slot->pod ? !slot->current : is_orphaned(b, slot)))
		return;
	if (collect_fallen(b, role, slot))
		return;
	if (!termination.pod) {
		if (!slot->created)
			return;
		termination.kind = HF_TERMINATION_VANISHED;
		b->terminations[b->terminations_len++] = termination;
		return;
	}
	count = hf_pod_terminations(b, role, termination.pod);
	units = hf_slot_uncounted(slot, &count);
	termination.before_start = !count.begun;
	/* A rank that has trained is done: restarts of its other containers are no terminations of
	 * the rank. */
	if (units > 0 && slot->phase != HF_SLOT_TRAINED) {
		termination.kind = HF_TERMINATION_RESTARTED;
		termination.units = units < UNITS_MAX ? (int32_t)units : UNITS_MAX;
		read_last_reason(b, &termination);
		b->terminations[b->terminations_len++] = termination;
		termination.status_reason = termination.status_message = NULL;
	}
	if (!collect_process(b, &termination) &&
	    !find_kind(b, slot, termination.pod, &termination.kind))
		return;
	termination.units = 0;
	termination.counted = termination.kind == HF_TERMINATION_FAILED &&
			      is_counted(b, role, slot, termination.pod);
	/* A pod of kind UNHEALTHY still runs, so it has no exit code. */
	if (termination.kind != HF_TERMINATION_UNHEALTHY)
		read_exit(b, &termination);
	b->terminations[b->terminations_len++] = termination;
}

/* The kind lets the job continue without this rank.  The pod stays as it is, and nothing is
 * charged. A rule that matches has priority. */
static bool is_outlived(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_framework *framework = b->job.framework;

	return framework->outlives && termination->fate == HF_FATE_FAIL && termination->rule < 0 &&
	       framework->outlives(&b->job, termination->role);
}

/* The program itself is the cause, or progressDeadlineSeconds: a restart in the same pod may
 * help. */
static bool is_of_program(const struct hf_termination *termination)
{
	return termination->kind == HF_TERMINATION_HUNG ||
	       (hf_class_is_application(termination->cls) &&
		(termination->process || termination->kind == HF_TERMINATION_RESTARTED));
}

/* Fill in class, rule and policy of each termination, and drop those without a consequence. */
static void decide_each(struct hf_brain *b)
{
	int32_t outlived = 0;
	size_t len = 0;

	for (size_t i = 0; i < b->terminations_len; i++) {
		struct hf_termination *termination = &b->terminations[i];

		hf_classify(b, termination);
		termination->rule = hf_rules_match(b, termination);
		if (termination->gave_up && termination->rule < 0 &&
		    termination->cls == HF_CLASS_APPLICATION) {
			b->roles[termination->role].slots[termination->index].gave_up = true;
			continue;
		}
		hf_restart_policy_decide(b, termination);
		if (is_outlived(b, termination)) {
			outlived++;
			continue;
		}
		if (termination->kind != HF_TERMINATION_RESTARTED)
			b->failed_count[termination->role]++;
		if (!is_of_program(termination))
			b->roles[termination->role].slots[termination->index].moves = true;
		b->terminations[len++] = *termination;
	}
	b->terminations_len = len;
	if (outlived > 0)
		hf_say(b, b->now, HF_TOPIC_RULE,
		       "%d replica(s) have failed, and the job goes on without them", outlived);
}

void hf_terminations_collect(struct hf_brain *b)
{
	size_t slots = 0;

	hf_assert(b->ledger.present && b->terminations_len == 0);
	for (int r = 0; r < b->roles_len; r++)
		slots += (size_t)b->roles[r].replicas;
	/* Two for each rank: the kubelet may have restarted its container, and then the pod may
	 * have ended. */
	b->terminations = HF_ARENA_ARRAY(b->arena, struct hf_termination, 2 * slots + 1);
	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++)
			collect_slot(b, r, i);
	}
	/* If any rank has terminated, its peers wait for that rank: the job does not hang. */
	if (b->terminations_len == 0 && hf_progress_find_hang(b, &b->terminations[0]))
		b->terminations_len = 1;
	hf_assert(b->terminations_len <= 2 * slots);
	decide_each(b);
	qsort(b->terminations, b->terminations_len, sizeof(*b->terminations), compare_times);
}

void hf_termination_event(const struct hf_brain *b, const struct hf_termination *termination)
{
	hf_assert(termination->rule >= -1);
	if (termination->pod && termination->exit_code.set)
		hf_event(b, false, "ExitedWithCode",
			 hf_arena_printf(b->arena, "Pod: %s.%s exited with code %lld",
					 hf_str_or(b->view->ns, ""), termination->pod->name,
					 (long long)termination->exit_code.value));
}
