/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"
#include "core/model/ledger_text_internal.h"

#include <string.h>

/*
 * Questions about one rank: its names, its own container, its terminations, its pod.  Only
 * hf_slot_count_all changes the working state: the counts of the rank that it is given.
 */

/* Parse the index behind the last dash of a name: decimal, without a leading zero. */
static bool parse_index(const char *text, int32_t *ret_index)
{
	int64_t index = 0;

	if (text[0] < '0' || text[0] > '9' || (text[0] == '0' && text[1] != '\0'))
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		index = index * 10 + (*text - '0');
		if (index >= HF_RANKS_MAX)
			return false;
	}
	*ret_index = (int32_t)index;
	return true;
}

const char *hf_rank_pod_name(const struct hf_brain *b, int role, int64_t index)
{
	hf_assert(role < b->roles_len);
	return hf_framework_pod_name(b->job.framework, role, b->arena, b->view->name, index);
}

bool hf_rank_find(const struct hf_brain *b, const char *name, int *ret_role, int32_t *ret_index)
{
	size_t job_len = strlen(b->view->name);

	hf_assert(name && b->roles_len > 0);
	if (strncmp(name, b->view->name, job_len) != 0 || name[job_len] != '-')
		return false;
	name += job_len + 1;
	for (int r = 0; r < b->roles_len; r++) {
		size_t len = strlen(b->roles[r].lower);

		if (strncmp(name, b->roles[r].lower, len) != 0)
			continue;
		if (b->roles[r].single
			    ? name[len] == '\0'
			    : name[len] == '-' && parse_index(name + len + 1, ret_index)) {
			if (b->roles[r].single)
				*ret_index = 0;
			*ret_role = r;
			return true;
		}
	}
	return false;
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

bool hf_init_wait_is_added(const struct hf_brain *b, int role,
			   const struct hf_container_seen *container)
{
	const char *name = b->job.framework->init_container;
	const struct hf_role *spec = &b->job.roles[role];

	if (!name || !container->init || !hf_streq(container->name, name))
		return false;
	for (size_t i = 0; spec->present && i < spec->pod->init_containers_len; i++) {
		if (hf_streq(spec->pod->init_containers[i].name, name))
			return false;
	}
	return true;
}

/* The container's terminations concern the rank. */
static bool concerns_rank(const struct hf_brain *b, int role, const struct hf_container_seen *seen,
			  const struct hf_container_seen *own)
{
	return seen == own || (seen->init && !hf_init_wait_is_added(b, role, seen));
}

static void add_up(struct hf_pod_count *count, const struct hf_container_seen *seen, int64_t more)
{
	int64_t *sum = seen->init ? &count->init : &count->own;

	/* Any client may have edited the pod's status: negative numbers count as 0, and each sum
	 * has a limit. */
	if (more > 0)
		*sum = *sum + more < HF_COUNTER_MAX ? *sum + more : HF_COUNTER_MAX;
}

struct hf_pod_count hf_pod_restarts(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	const struct hf_container_seen *own = hf_own_container(b, role, pod);
	struct hf_pod_count count = {.begun = own && hf_container_has_begun(own)};

	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *seen = &pod->containers[i];

		if (concerns_rank(b, role, seen, own))
			add_up(&count, seen, seen->restart_count);
	}
	return count;
}

/*
 * The container has ended, and the kubelet will start it again.
 *
 * The kubelet raises restartCount only with the next start.  Until then the container is
 * Terminated, or Waiting with its last termination beside it.  A container that waits as
 * ContainerCreating has been started anew, so its restartCount includes the termination.
 */
static bool is_to_start_again(const struct hf_container_seen *container)
{
	switch (container->phase) {
	case HF_CONTAINER_TERMINATED:
		return container->again == HF_AGAIN_ALWAYS ||
		       (container->again == HF_AGAIN_ON_FAILURE && container->exit_code != 0);
	case HF_CONTAINER_WAITING:
		return (container->again == HF_AGAIN_ALWAYS ||
			container->again == HF_AGAIN_ON_FAILURE) &&
		       container->last_exit_code.set && container->waiting_reason &&
		       !hf_streq(container->waiting_reason, "ContainerCreating") &&
		       !hf_streq(container->waiting_reason, "PodInitializing");
	case HF_CONTAINER_UNKNOWN:
	case HF_CONTAINER_RUNNING: break;
	}
	return false;
}

struct hf_pod_count hf_pod_terminations(const struct hf_brain *b, int role,
					const struct hf_pod *pod)
{
	const struct hf_container_seen *own = hf_own_container(b, role, pod);
	struct hf_pod_count count = hf_pod_restarts(b, role, pod);

	/* The kubelet starts no container in a pod that ends.  Then the end of the pod is counted
	 * instead. */
	if (pod->deletion_time != HF_TIME_NONE || pod->phase == HF_POD_FAILED ||
	    pod->phase == HF_POD_SUCCEEDED)
		return count;
	for (size_t i = 0; i < pod->containers_len; i++) {
		const struct hf_container_seen *seen = &pod->containers[i];

		if (concerns_rank(b, role, seen, own) && is_to_start_again(seen))
			add_up(&count, seen, 1);
	}
	return count;
}

int64_t hf_slot_uncounted(const struct hf_slot *slot, const struct hf_pod_count *terminations)
{
	int64_t units = terminations->begun ? terminations->own - slot->seen
					    : terminations->init - slot->init_seen;

	return units > 0 ? units : 0;
}

void hf_slot_count_all(const struct hf_brain *b, int role, struct hf_slot *slot,
		       const struct hf_pod *pod)
{
	struct hf_pod_count terminations = hf_pod_terminations(b, role, pod);

	slot->seen = terminations.own;
	slot->init_seen = terminations.init;
}

bool hf_slot_is_up(const struct hf_slot *slot)
{
	static const bool up[HF_SLOT_PHASES] = {
		[HF_SLOT_RUNNING] = true,
		[HF_SLOT_TRAINED] = true,
	};

	hf_assert(slot->phase < HF_SLOT_PHASES);
	return up[slot->phase];
}

/* ---- the numbers of a pod that restarts in place keep --------------------------------------------- */

/*
 * A restart in place raises the ledger's numbers, and the pod keeps the stamps of its creation.  An
 * example, of a pod that was created with generation 3 and attempt 2:
 *
 *     event                             generation  in_place_base  attempt  in_place  pod's stamps
 *     the pod runs                           3            0           2         0        3, 2
 *     the rank restarts alone in place       3            0           3         1        3, 2
 *     all ranks restart in place             4            3           3         1        3, 2
 *     the rank alone once more               4            3           4         2        3, 2
 *     its pod is re-created                  4            3           5         0        4, 5
 *
 * The first two numbers are the job's, the next two the rank's.  A pod is current while its
 * generation is in_place_base or later and its attempt plus in_place is the rank's attempt.  A pod
 * of this rank with stamps 3, 1 would not be: 1 + 1 is not 3.  A restart of all ranks in new pods
 * sets in_place_base and each in_place to 0.
 *
 * A pod without stamps was created by another operator, so nothing in the pod names the attempt.
 * It belongs to the present attempt if the ledger has seen that attempt's pod.  In generation 0 no
 * pod has stamps.
 */
bool hf_slot_is_current(const struct hf_brain *b, const struct hf_slot *slot,
			const struct hf_pod *pod)
{
	if (!pod->stamped)
		return (pod == slot->pod && slot->created) ||
		       (b->ledger.generation == 0 && slot->attempt == 0);
	/* Restarts in place raise the ledger's numbers and leave the pod's stamps. */
	if (pod->generation != b->ledger.generation &&
	    (b->ledger.in_place_base == 0 || pod->generation < b->ledger.in_place_base ||
	     pod->generation > b->ledger.generation))
		return false;
	return pod->attempt + slot->in_place == slot->attempt;
}

bool hf_slot_has_new_pod(const struct hf_brain *b, const struct hf_slot *slot)
{
	return slot->pod && slot->pod->stamped && slot->pod->generation == b->ledger.generation &&
	       slot->pod->attempt == slot->attempt;
}

/* ---- the rank's process under exec ---------------------------------------------------------- */

/* The report is older than the container: it describes an exec that has ended.  Kubelets write
 * whole seconds. */
static bool is_stale(const struct hf_container_seen *own, const struct hf_process_seen *process)
{
	hf_time from = own->started_at;

	if (from == HF_TIME_NONE || process->at == HF_TIME_NONE)
		return false;
	if (own->restart_count > 0)
		from = hf_time_add(from, HF_SECOND);
	return process->at < from;
}

const struct hf_process_seen *hf_slot_process(const struct hf_brain *b, int role,
					      const struct hf_slot *slot)
{
	const struct hf_pod *pod = slot->pod;
	const struct hf_process_seen *process = pod ? pod->process : NULL;
	const struct hf_container_seen *own;

	if (!process || !slot->current || !pod->stamped || hf_pod_is_terminating(pod) ||
	    process->generation < pod->generation || process->generation > b->ledger.generation ||
	    process->attempt < pod->attempt || process->attempt > slot->attempt)
		return NULL;
	own = hf_own_container(b, role, pod);
	return own && own->phase == HF_CONTAINER_RUNNING && !is_stale(own, process) ? process
										    : NULL;
}

bool hf_slot_is_reached(const struct hf_brain *b, const struct hf_slot *slot,
			const struct hf_process_seen *process)
{
	return process->generation == b->ledger.generation && process->attempt == slot->attempt;
}

/* An exec that waits for an order ends its pod after inPlaceWaitSeconds.  A pod that still runs
 * this many seconds later must have started its process. */
#define UNREPORTED_EXTRA_SECONDS 60

/* The container's last end is that of an exec that waited in vain for an order to start.  A pod that
 * was made at a barrier waits like this too.  If no rank of the job has restarted in place, the code
 * is the program's own. */
static bool has_waited_in_vain(const struct hf_brain *b, int role, const struct hf_pod *pod)
{
	const struct hf_container_seen *own = hf_own_container(b, role, pod);
	struct hf_container_termination last;

	if (!own || b->ledger.in_place_at == HF_TIME_NONE)
		return false;
	last = hf_container_last_termination(own);
	return last.exit_code.set && last.exit_code.value == HF_BARRIER_EXIT_CODE;
}

/* A process of the present attempt has run, as far as is known.  True by one of these signs:
 *
 * - The rank has no pod, or a pod without stamps: such a rank never restarts in place.
 * - The kubelet restarted the container without an order (covered), so its program started at once.
 * - A report shows that the process runs or ended.
 * - The pod was created for this attempt, and no report contradicts: it starts without an order.
 * - An exec that got no order would have ended its pod by now.
 */
bool hf_slot_has_run(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	const struct hf_pod *pod = slot->pod;
	const struct hf_process_seen *process = pod ? pod->process : NULL;
	bool reached = process && hf_slot_is_reached(b, slot, process);

	if (slot->held)
		return false;
	if (!pod || !pod->stamped || slot->covered)
		return true;
	if (reached && (process->phase == HF_PROCESS_RUNNING || process->phase == HF_PROCESS_ENDED))
		return true;
	if (!reached && hf_slot_has_new_pod(b, slot) && !has_waited_in_vain(b, role, pod))
		return true;
	return b->now >= hf_time_add(hf_slot_presumed_at(b),
				     hf_seconds(b->job.recovery.in_place_wait_seconds +
						UNREPORTED_EXTRA_SECONDS));
}

bool hf_slot_is_down(const struct hf_brain *b, int role, const struct hf_slot *slot)
{
	const struct hf_process_seen *process = hf_slot_process(b, role, slot);

	return process && hf_slot_is_reached(b, slot, process) &&
	       (process->phase == HF_PROCESS_DOWN || process->phase == HF_PROCESS_WAITING);
}

bool hf_barrier_is_of_all(const struct hf_brain *b)
{
	/* A restart of all ranks in place raises the generation above the pods' stamps. */
	return b->ledger.in_place_base > 0 && b->ledger.in_place_base < b->ledger.generation &&
	       (b->ledger.records_len == 0 || !hf_streq(b->ledger.records[0].scope, "Replica"));
}

/* Seconds after an order at which its process counts as started.  An agent starts the process
 * within milliseconds and may report it minutes later, with its next write.  It reports a failed
 * start at once. */
#define UP_SECONDS 2

hf_time hf_slot_presumed_at(const struct hf_brain *b)
{
	hf_time down_at = b->ledger.records_len > 0 ? b->ledger.records[0].down_at : HF_TIME_NONE;
	hf_time at = b->ledger.in_place_at;

	if (down_at != HF_TIME_NONE && down_at > at)
		at = down_at;
	return at == HF_TIME_NONE ? b->now : hf_time_add(at, hf_seconds(UP_SECONDS));
}

/* The incident after which the pod's present process started.  The pod's stamp names the incident of
 * its creation; a later restart of the rank alone or of all ranks in place stands in the ledger.
 * In the example above: incident 5 created the pod, the rank restarted alone in incident 6, and all
 * ranks in incident 7.  Then the answer is 7. */
int64_t hf_slot_incident(const struct hf_brain *b, const struct hf_slot *slot,
			 const struct hf_pod *pod)
{
	int64_t incident = pod->stamped ? pod->incident : 0;

	if (!hf_slot_is_current(b, slot, pod))
		return incident;
	if (slot->in_place_since > incident)
		incident = slot->in_place_since;
	if (pod->stamped && pod->generation < b->ledger.generation &&
	    b->ledger.in_place_incident > incident)
		incident = b->ledger.in_place_incident;
	return incident;
}

const struct hf_pod *hf_slot_pod(const struct hf_brain *b, const struct hf_slot *slot)
{
	if (slot->pod)
		return slot->pod;
	return slot->last && slot->created && hf_slot_is_current(b, slot, slot->last) ? slot->last
										      : NULL;
}
