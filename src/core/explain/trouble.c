/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "base/str.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"

#include <string.h>

/*
 * What keeps ranks from running: no node takes the pod, a container does not start, or a container
 * ends again and again.  For people only; no decision depends on it.  Of many ranks with one kind
 * of trouble, the first is told in full and the others are counted.
 *
 * A container that the kubelet cannot start sets the condition ContainerNotStarted too, under
 * every restart policy: the job may stay Created or Running for ever otherwise.
 */

enum trouble {
	TROUBLE_NODE,    /* no node takes the pod */
	TROUBLE_START,   /* a container cannot be started */
	TROUBLE_BACKOFF, /* a container that ended waits to be started again */
	TROUBLE_READY,   /* all containers run, and the pod's condition Ready is False */
	TROUBLES,
};

struct found {
	int32_t count;
	int role;
	int32_t index;
	const struct hf_container_seen *container; /* of START and BACKOFF */
	const char *message;                       /* of NODE and READY */
};

static const struct hf_pod_condition *find_condition(const struct hf_pod *pod, const char *type)
{
	for (size_t i = 0; i < pod->conditions_len; i++)
		if (hf_streq(pod->conditions[i].type, type))
			return &pod->conditions[i];
	return NULL;
}

/* The trouble of one container.  A container that starts normally waits with a reason but without a
 * message. */
static enum trouble find_container_trouble(const struct hf_container_seen *container)
{
	const char *reason = container->waiting_reason;

	if (container->phase != HF_CONTAINER_WAITING || hf_str_is_empty(reason))
		return TROUBLES;
	if (hf_streq(reason, "CrashLoopBackOff"))
		return TROUBLE_BACKOFF;
	if (hf_streq(reason, "PodInitializing") ||
	    (hf_streq(reason, "ContainerCreating") && hf_str_is_empty(container->waiting_message)))
		return TROUBLES;
	return TROUBLE_START;
}

static enum trouble find_pod_trouble(const struct hf_pod *pod, struct found *found)
{
	const struct hf_pod_condition *seen;
	bool runs = pod->containers_len > 0;

	for (size_t i = 0; i < pod->containers_len; i++) {
		enum trouble trouble = find_container_trouble(&pod->containers[i]);

		found->container = &pod->containers[i];
		if (trouble != TROUBLES)
			return trouble;
		runs = runs && (pod->containers[i].init ||
				pod->containers[i].phase == HF_CONTAINER_RUNNING);
	}
	if (pod->phase == HF_POD_PENDING && !pod->node) {
		seen = find_condition(pod, "PodScheduled");
		found->message = seen ? seen->message : NULL;
		return seen && hf_streq(seen->reason, "Unschedulable") ? TROUBLE_NODE : TROUBLES;
	}
	if (pod->phase != HF_POD_RUNNING || !runs)
		return TROUBLES;
	seen = find_condition(pod, "Ready");
	found->message = seen ? seen->message : NULL;
	return seen && hf_streq(seen->status, "False") ? TROUBLE_READY : TROUBLES;
}

/* "worker-0 and 3 more" */
static const char *name_ranks(const struct hf_brain *b, const struct found *found)
{
	const char *rank = hf_rank_name(b->arena, b->roles[found->role].type, found->index);

	return found->count > 1
		       ? hf_arena_printf(b->arena, "%s and %d more", rank, found->count - 1)
		       : rank;
}

/* ": text", or "".  The text comes from a node or from the scheduler. */
static const char *describe_text(const struct hf_brain *b, const char *text)
{
	return hf_str_is_empty(text)
		       ? ""
		       : hf_arena_printf(b->arena, ": %s", hf_status_message_clean(b->arena, text));
}

static void tell_node(const struct hf_brain *b, const struct found *found)
{
	hf_say(b, b->now, HF_TOPIC_BLOCKED, "no node takes %s%s", name_ranks(b, found),
	       describe_text(b, found->message));
	hf_say(b, b->now, HF_TOPIC_NEXT, "a pod starts as soon as a node has room for it");
}

/* What has to be done about a container that cannot start. */
static const char *find_next(const struct hf_brain *b, const struct hf_container_seen *container,
			     const struct hf_container_reason *row)
{
	bool added = container->init && hf_streq(container->name, b->job.framework->init_container);

	/* In a cluster without a way to public registries its default image cannot be pulled. */
	if (added && strstr(container->waiting_reason, "Image"))
		return "the operator adds this container: the administrator of the cluster must "
		       "provide its image, or name another one by the operator's flag "
		       "--pytorch-init-container-image";
	return row ? hf_container_reason_next(row) : "";
}

static void tell_start(const struct hf_brain *b, const struct found *found)
{
	const struct hf_container_seen *container = found->container;
	const struct hf_container_reason *row = hf_container_reason_find(container->waiting_reason);
	const char *next = find_next(b, container, row);

	hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s cannot start container '%s': %s%s%s%s%s",
	       name_ranks(b, found), container->name, container->waiting_reason, row ? " (" : "",
	       row ? row->sentence : "", row ? ")" : "",
	       describe_text(b, container->waiting_message));
	hf_say(b, b->now, HF_TOPIC_NEXT, "%s",
	       *next ? next
		     : "the kubelet tries again; provide what the container asks for, or correct "
		       "it in a new job");
}

/* How the previous run of the container ended: that says more than that the kubelet waits. */
static const char *describe_last_run(const struct hf_brain *b,
				     const struct hf_container_seen *container)
{
	struct hf_container_termination last = hf_container_last_termination(container);
	const struct hf_container_reason *row = hf_container_reason_find(last.reason);
	long long code = (long long)last.exit_code.value;
	int64_t number = last.signal > 0 ? last.signal : hf_exit_code_signal(code);
	bool lost = hf_exit_code_is_lost(last.reason);
	const char *message = describe_text(b, last.message);

	if (!last.exit_code.set)
		return "";
	if (row && row->never_started)
		return hf_arena_printf(b->arena, " because its program never started (%s)%s",
				       last.reason, message);
	if (!lost && hf_signal_name(number))
		return hf_arena_printf(b->arena, " after %s ended it with code %lld (%s)%s",
				       hf_signal_name(number), code,
				       hf_str_or(last.reason, "Error"), message);
	return hf_arena_printf(b->arena, " after it ended with code %lld (%s)%s", code,
			       hf_str_or(last.reason, "Error"), message);
}

static void tell_backoff(const struct hf_brain *b, const struct found *found)
{
	const struct hf_container_seen *container = found->container;

	hf_say(b, b->now, HF_TOPIC_BLOCKED, "container '%s' of %s waits in CrashLoopBackOff%s",
	       container->name, name_ranks(b, found), describe_last_run(b, container));
	hf_say(b, b->now, HF_TOPIC_NEXT,
	       "the kubelet starts the container again, after a longer wait each time%s",
	       describe_text(b, container->waiting_message));
}

static void tell_ready(const struct hf_brain *b, const struct found *found)
{
	hf_say(b, b->now, HF_TOPIC_BLOCKED, "%s runs but is not ready%s", name_ranks(b, found),
	       describe_text(b, found->message));
	hf_say(b, b->now, HF_TOPIC_NEXT,
	       "Holdfast does nothing about this: the program must answer its readiness check");
}

/* The control plane calls pods of a silent node not ready, even if the program is ready.  A caller
 * that does not watch nodes goes by the condition NodeUnreachable. */
static bool is_node_trouble(const struct hf_brain *b, const struct hf_pod *pod)
{
	return b->seen->blind ? hf_cond_is_true(b, HF_COND_NODE_UNREACHABLE)
			      : hf_node_lost(b, pod) != NULL;
}

static void note_rank(struct found *first, const struct found *found)
{
	int32_t count = first->count;

	if (count == 0)
		*first = *found;
	first->count = count + 1;
}

static bool is_on_the_way(const struct hf_slot *slot)
{
	return slot->phase == HF_SLOT_STARTING;
}

/* The reason why the program of a container does not start, and the node's text; NULL if it
 * starts. */
static const char *find_start_failure(const struct hf_container_seen *container,
				      const char **ret_message)
{
	enum trouble trouble = find_container_trouble(container);
	const struct hf_container_reason *row;
	struct hf_container_termination last = hf_container_last_termination(container);

	*ret_message = trouble == TROUBLE_START ? container->waiting_message : last.message;
	if (trouble == TROUBLE_START)
		return container->waiting_reason;
	if (trouble != TROUBLE_BACKOFF && container->phase != HF_CONTAINER_TERMINATED)
		return NULL;
	row = hf_container_reason_find(last.reason);
	return row && row->never_started ? last.reason : NULL;
}

/* The first container of the pod that the kubelet could not start and will try again; NULL: none. */
static const struct hf_container_seen *find_not_started(const struct hf_pod *pod)
{
	const char *message;

	if (pod->phase == HF_POD_FAILED || pod->phase == HF_POD_SUCCEEDED)
		return NULL;
	for (size_t i = 0; i < pod->containers_len; i++) {
		if (!hf_container_is_over(&pod->containers[i]) &&
		    find_start_failure(&pod->containers[i], &message))
			return &pod->containers[i];
	}
	return NULL;
}

/* Between two pulls the kubelet reports ImagePullBackOff instead of the failure itself.  Then the
 * condition keeps its earlier, better text. */
static bool is_condition_told(const struct hf_brain *b, const char *reason, const char *begin)
{
	const struct hf_condition *told = hf_cond_find(b, HF_COND_NOT_STARTED);

	return hf_streq(reason, "ImagePullBackOff") && told && hf_streq(told->status, "True") &&
	       hf_str_has_prefix(told->message, begin);
}

/* The containers of two ranks have the same name: probably they cannot start for the same reason. */
static bool is_same_container(const struct found *first, const struct found *found)
{
	return first->count == 0 || hf_streq(first->container->name, found->container->name);
}

static void note_not_started(struct found *first, const struct hf_pod *pod,
			     const struct found *place)
{
	struct found found = {
		.role = place->role, .index = place->index, .container = find_not_started(pod)};

	if (found.container && is_same_container(first, &found))
		note_rank(first, &found);
}

static void show_not_started(struct hf_brain *b, const struct found *found)
{
	const char *text, *reason = find_start_failure(found->container, &text);
	const struct hf_container_reason *row = hf_container_reason_find(reason);
	const char *begin = hf_arena_printf(b->arena, "container %s of %s cannot start: ",
					    found->container->name, name_ranks(b, found));
	const char *message =
		hf_arena_printf(b->arena, "%s%s%s%s%s%s", begin, reason, row ? " (" : "",
				row ? row->sentence : "", row ? ")" : "", describe_text(b, text));

	if (is_condition_told(b, reason, begin))
		return;
	if (!hf_cond_is_true(b, HF_COND_NOT_STARTED))
		hf_event(b, true, "ContainerNotStarted", message);
	hf_cond_set(b, HF_COND_NOT_STARTED, true, "StartFailed", message);
}

void hf_trouble_clear(struct hf_brain *b)
{
	hf_cond_lower(b, HF_COND_NOT_STARTED, "NoneWaits",
		      "No container of an active job waits because it cannot start.");
}

static void set_not_started(struct hf_brain *b, const struct found *not_started)
{
	if (not_started->count > 0)
		show_not_started(b, not_started);
	else
		hf_trouble_clear(b);
}

/* What keeps ranks from running, by the kind of trouble. */
struct troubles {
	struct found of[TROUBLES];
	/* ranks of which another container cannot start than that of of[TROUBLE_START] */
	struct found other_start;
};

static void note_trouble(struct troubles *troubles, enum trouble trouble, const struct found *found)
{
	if (trouble == TROUBLE_START && !is_same_container(&troubles->of[TROUBLE_START], found))
		note_rank(&troubles->other_start, found);
	else
		note_rank(&troubles->of[trouble], found);
}

/* Returns false if there is no trouble. */
static bool tell_troubles(const struct hf_brain *b, const struct troubles *troubles)
{
	static void (*const tell[TROUBLES])(const struct hf_brain *, const struct found *) = {
		[TROUBLE_NODE] = tell_node,
		[TROUBLE_START] = tell_start,
		[TROUBLE_BACKOFF] = tell_backoff,
		[TROUBLE_READY] = tell_ready,
	};
	bool told = false;

	for (int i = 0; i < TROUBLES; i++) {
		if (troubles->of[i].count > 0)
			tell[i](b, &troubles->of[i]);
		if (i == TROUBLE_START && troubles->other_start.count > 0)
			tell_start(b, &troubles->other_start);
		told = told || troubles->of[i].count > 0;
	}
	return told;
}

void hf_trouble_tell(struct hf_brain *b)
{
	struct troubles troubles = {0};
	struct found on_the_way = {0}, not_started = {0};

	for (int r = 0; r < b->roles_len; r++) {
		for (int32_t i = 0; i < b->roles[r].replicas; i++) {
			const struct hf_slot *slot = &b->roles[r].slots[i];
			struct found found = {.role = r, .index = i};
			enum trouble trouble = TROUBLES;

			if (slot->pod && slot->current &&
			    slot->pod->deletion_time == HF_TIME_NONE) {
				trouble = find_pod_trouble(slot->pod, &found);
				note_not_started(&not_started, slot->pod, &found);
			}
			/* explain/node_loss_text.c has told it. */
			if (trouble == TROUBLE_READY && is_node_trouble(b, slot->pod))
				continue;
			if (trouble != TROUBLES)
				note_trouble(&troubles, trouble, &found);
			else if (is_on_the_way(slot))
				note_rank(&on_the_way, &found);
		}
	}
	set_not_started(b, &not_started);
	if (!tell_troubles(b, &troubles) && on_the_way.count > 0)
		hf_say(b, b->now, HF_TOPIC_NEXT, "waiting for %s to start",
		       name_ranks(b, &on_the_way));
}
