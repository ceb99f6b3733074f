/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Builds the status of a pod, from the journal and the plan. Each status is built anew, not
 * changed. */

#define DRAIN_TEXT "'holdfast down' or the end of 'holdfast run' ended the pod"
/* limit of the log's end that becomes a termination message, as in upstream's kubelet */
#define FALLBACK_BYTES_MAX 2048
#define FALLBACK_LINES_MAX 80

static void set_time(struct hf_json *object, const char *key, hf_time t)
{
	char text[HF_TIME_TEXT_MAX];

	if (t == HF_TIME_NONE) {
		hf_json_set(object, key, hf_json_null());
		return;
	}
	hf_time_format(t, text);
	hf_json_set_str(object, key, text);
}

/* --- termination messages --- */

static void read_termination_file(const struct hf_kubelet_pod *pod, const char *container,
				  unsigned attempt, struct hf_strbuf *sb)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/term/%s.%u", pod->dir, container, attempt);
	HF_AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char *at = hf_strbuf_reserve(sb, HF_TERMINATION_BYTES_MAX);
	ssize_t n = fd < 0 || !at ? -1 : read(fd, at, HF_TERMINATION_BYTES_MAX);

	if (n > 0)
		hf_strbuf_grew(sb, (size_t)n);
}

static void set_message(const struct hf_kubelet_pod *pod, const struct hf_kubelet_pod_container *c,
			const struct hf_attempt *a, struct hf_json *terminated)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)HF_TERMINATION_BYTES_MAX);
	const char *policy = hf_json_path_str(c->spec, "terminationMessagePolicy", NULL);

	if (a->text[0]) {
		hf_json_set_str(terminated, "message", a->text);
		return;
	}
	read_termination_file(pod, c->name, a->number, &sb);
	if (!sb.len && hf_streq(policy, "FallbackToLogsOnError") && !hf_attempt_succeeded(a))
		hf_kubelet_logs_tail(pod->dir, c->name, a->number, FALLBACK_BYTES_MAX,
				     FALLBACK_LINES_MAX, &sb);
	if (sb.len)
		hf_json_set_str(terminated, "message", sb.data);
}

/* --- states of a container --- */

static const char *reason_of(const struct hf_attempt *a)
{
	if (a->state == HF_ATTEMPT_FAILED)
		return "StartError";
	/* An attempt that ran has a text only if it was lost: the text is the message. */
	if (a->text[0])
		return "ContainerStatusUnknown";
	if (a->oom)
		return "OOMKilled";
	return hf_attempt_succeeded(a) ? "Completed" : "Error";
}

static void container_id(const struct hf_kubelet_pod *pod, const char *name, unsigned attempt,
			 struct hf_json *object)
{
	HF_AUTOFREE char *id = hf_kubelet_container_id(pod, name, attempt);

	hf_json_set_str(object, "containerID", id);
}

static struct hf_json *terminated_state(const struct hf_kubelet_pod *pod,
					const struct hf_kubelet_pod_container *c,
					const struct hf_attempt *a)
{
	struct hf_json *state = hf_json_object();
	struct hf_json *t = hf_json_ensure_object(state, "terminated");

	hf_json_set_i64(t, "exitCode", hf_attempt_exit_code(a));
	if (a->signum)
		hf_json_set_i64(t, "signal", a->signum);
	hf_json_set_str(t, "reason", reason_of(a));
	set_message(pod, c, a, t);
	set_time(t, "startedAt", a->started != HF_TIME_NONE ? a->started : a->begun);
	set_time(t, "finishedAt", a->finished);
	container_id(pod, c->name, a->number, t);
	return state;
}

static struct hf_json *waiting_state(const char *reason, const char *message)
{
	struct hf_json *state = hf_json_object();
	struct hf_json *w = hf_json_ensure_object(state, "waiting");

	hf_json_set_str(w, "reason", reason);
	if (!hf_str_is_empty(message))
		hf_json_set_str(w, "message", message);
	return state;
}

static struct hf_json *waiting_backoff(const struct hf_kubelet_pod *pod,
				       const struct hf_kubelet_pod_container *c,
				       const struct hf_attempt *last)
{
	HF_AUTOFREE char *message =
		hf_xasprintf("back-off %us restarting failed container=%s pod=%s_%s(%s)",
			     last->backoff_s, c->name, pod->name, pod->ns, pod->uid);

	return waiting_state("CrashLoopBackOff", message);
}

/* Builds the waiting state of a container that was never started, with the reason. */
static struct hf_json *waiting_first(const struct hf_kubelet_pod *pod,
				     const struct hf_kubelet_pod_container *c,
				     const struct hf_pod_plan *plan)
{
	if (pod->trouble[0])
		return waiting_state(hf_str_or(pod->trouble_reason, "ContainerCreating"),
				     pod->trouble);
	if (c->reason[0])
		return waiting_state(c->reason, c->message);
	return waiting_state(plan->initialized || c->init ? "ContainerCreating" : "PodInitializing",
			     NULL);
}

static struct hf_json *state_of(const struct hf_kubelet_pod *pod,
				const struct hf_kubelet_pod_container *c,
				const struct hf_plan_container *p, const struct hf_pod_plan *plan)
{
	const struct hf_attempt *last = p->past ? &p->past->last : NULL;
	struct hf_json *state;

	if (!last || last->state == HF_ATTEMPT_NONE)
		return waiting_first(pod, c, plan);
	if (last->state == HF_ATTEMPT_BEGUN)
		return waiting_state("ContainerCreating", NULL);
	if (hf_attempt_ended(last)) {
		if (p->step == HF_STEP_BACKOFF)
			return waiting_backoff(pod, c, last);
		if (p->step == HF_STEP_BLOCKED)
			return waiting_state(hf_str_or(c->reason, "ContainerCreating"), c->message);
		return terminated_state(pod, c, last);
	}
	state = hf_json_object();
	set_time(hf_json_ensure_object(state, "running"), "startedAt", last->started);
	return state;
}

static struct hf_json *last_state_of(const struct hf_kubelet_pod *pod,
				     const struct hf_kubelet_pod_container *c,
				     const struct hf_plan_container *p)
{
	const struct hf_container_past *past = p->past;
	bool shown = past && hf_attempt_ended(&past->last) &&
		     (p->step == HF_STEP_BACKOFF || p->step == HF_STEP_BLOCKED);

	if (shown)
		return terminated_state(pod, c, &past->last);
	if (past && hf_attempt_ended(&past->previous))
		return terminated_state(pod, c, &past->previous);
	return hf_json_object();
}

static struct hf_json *container_status(const struct hf_kubelet_pod *pod,
					const struct hf_kubelet_pod_container *c,
					const struct hf_plan_container *p,
					const struct hf_pod_plan *plan)
{
	const struct hf_attempt *last = p->past ? &p->past->last : NULL;
	struct hf_json *s = hf_json_object();
	bool runs = last && last->state == HF_ATTEMPT_RUNNING;
	bool ready = hf_plan_container_ready(p);
	/* Show the image of the present spec: a client may change the image of a running pod. */
	const char *image = hf_json_path_str(c->spec, "image", NULL);

	hf_json_set_str(s, "name", c->name);
	hf_json_set(s, "state", state_of(pod, c, p, plan));
	hf_json_set(s, "lastState", last_state_of(pod, c, p));
	hf_json_set_bool(s, "ready",
			 c->init && !c->sidecar ? last && hf_attempt_succeeded(last) : ready);
	hf_json_set_i64(s, "restartCount", last ? (int64_t)last->number : 0);
	hf_json_set_str(s, "image", hf_str_or(image, ""));
	hf_json_set_str(s, "imageID", "");
	if (last && last->state != HF_ATTEMPT_NONE)
		container_id(pod, c->name, last->number, s);
	hf_json_set_bool(s, "started", runs && !p->starting);
	return s;
}

/* --- conditions --- */

struct condition {
	const char *type;
	bool status;
	const char *reason, *message;
};

static const struct hf_json *find_condition(const struct hf_json *conditions, const char *type)
{
	for (size_t i = 0; i < hf_json_len(conditions); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(conditions, i), "type", NULL), type))
			return hf_json_item(conditions, i);
	return NULL;
}

static struct hf_json *make_condition(const struct condition *c, const struct hf_json *old,
				      hf_time now)
{
	struct hf_json *made = hf_json_object();
	const char *status = c->status ? "True" : "False";
	const struct hf_json *since = hf_json_get(old, "lastTransitionTime");

	hf_json_set_str(made, "type", c->type);
	hf_json_set_str(made, "status", status);
	hf_json_set(made, "lastProbeTime", hf_json_null());
	if (hf_streq(hf_json_path_str(old, "status", NULL), status) && hf_json_str(since, NULL))
		hf_json_set(made, "lastTransitionTime", hf_json_copy(since));
	else
		set_time(made, "lastTransitionTime", now);
	hf_json_set_str(made, "reason", c->reason);
	hf_json_set_str(made, "message", c->message);
	return made;
}

static bool is_ours(const struct condition *ours, size_t n, const char *type)
{
	for (size_t i = 0; i < n; i++)
		if (hf_streq(ours[i].type, type))
			return true;
	return false;
}

/* Builds the list of conditions: first the unchanged conditions of other writers, then the
 * kubelet's conditions. */
static struct hf_json *merge_conditions(const struct hf_json *old, const struct condition *ours,
					size_t n, hf_time now)
{
	struct hf_json *all = hf_json_array();

	for (size_t i = 0; i < hf_json_len(old); i++) {
		const struct hf_json *item = hf_json_item(old, i);

		if (!is_ours(ours, n, hf_json_path_str(item, "type", NULL)))
			hf_json_append(all, hf_json_copy(item));
	}
	for (size_t i = 0; i < n; i++)
		hf_json_append(all,
			       make_condition(&ours[i], find_condition(old, ours[i].type), now));
	return all;
}

/* Writes "containers with unready status: [a b]", as upstream does. */
static void list_unready(const struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan,
			 bool init, const char *what, struct hf_strbuf *sb)
{
	hf_strbuf_addf(sb, "containers with %s status: [", what);
	for (size_t i = 0; i < plan->n; i++) {
		const struct hf_plan_container *p = &plan->containers[i];
		const struct hf_attempt *last = p->past ? &p->past->last : NULL;
		bool good = last && (init && !p->sidecar ? hf_attempt_succeeded(last)
							 : hf_plan_container_ready(p));

		if (p->init == init && !good)
			hf_strbuf_addf(sb, "%s%s", sb->data[sb->len - 1] == '[' ? "" : " ",
				       pod->containers[i].name);
	}
	hf_strbuf_addch(sb, ']');
}

static bool all_ready(const struct hf_pod_plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct hf_plan_container *p = &plan->containers[i];

		if ((!p->init || p->sidecar) && !hf_plan_container_ready(p))
			return false;
	}
	return plan->initialized;
}

/* Builds the condition Ready or ContainersReady. A False condition has reason and message. */
static struct condition ready_condition(const char *type, const struct hf_pod_plan *plan,
					enum hf_pod_phase phase, const char *unready)
{
	struct condition c = {.type = type, .status = phase == HF_PHASE_RUNNING && all_ready(plan)};

	if (phase == HF_PHASE_SUCCEEDED || phase == HF_PHASE_FAILED) {
		c.reason = phase == HF_PHASE_SUCCEEDED ? "PodCompleted" : "PodFailed";
	} else if (!c.status) {
		c.reason = "ContainersNotReady";
		c.message = unready;
	}
	return c;
}

static struct condition initialized_condition(const struct hf_pod_plan *plan,
					      enum hf_pod_phase phase, const char *incomplete)
{
	if (!plan->initialized)
		return (struct condition){"Initialized", false, "ContainersNotInitialized",
					  incomplete};
	return (struct condition){"Initialized", true,
				  phase == HF_PHASE_SUCCEEDED ? "PodCompleted" : NULL, NULL};
}

static struct hf_json *conditions_of(const struct hf_kubelet_pod *pod,
				     const struct hf_pod_plan *plan, enum hf_pod_phase phase,
				     hf_time now)
{
	HF_AUTO_STRBUF unready = HF_STRBUF_INIT((size_t)8 << 10);
	HF_AUTO_STRBUF incomplete = HF_STRBUF_INIT((size_t)8 << 10);
	const struct hf_json *old =
		hf_json_path(hf_doc_json(pod->doc), "status", "conditions", NULL);
	bool sandbox =
		pod->state == HF_KUBELET_POD_RUNNING || pod->state == HF_KUBELET_POD_QUITTING;
	bool disrupted =
		pod->lost || (phase == HF_PHASE_FAILED && hf_kubelet_pod_drained(pod, plan));
	struct condition ours[6];
	size_t n = 0;

	list_unready(pod, plan, false, "unready", &unready);
	list_unready(pod, plan, true, "incomplete", &incomplete);
	ours[n++] = (struct condition){"PodReadyToStartContainers", sandbox, NULL, NULL};
	ours[n++] = initialized_condition(plan, phase, incomplete.data);
	ours[n++] = ready_condition("Ready", plan, phase, unready.data);
	ours[n++] = ready_condition("ContainersReady", plan, phase, unready.data);
	if (!find_condition(old, "PodScheduled"))
		ours[n++] = (struct condition){"PodScheduled", true, NULL, NULL};
	/* Adds the condition DisruptionTarget, which tells clients that the program did not cause
	 * the failure. */
	if (disrupted && !find_condition(old, "DisruptionTarget"))
		ours[n++] = (struct condition){"DisruptionTarget", true,
					       pod->lost ? "TerminationByKubelet"
							 : "TerminationByHoldfast",
					       pod->lost ? pod->lost_text : DRAIN_TEXT};
	return merge_conditions(old, ours, n, now);
}

/* --- the whole status --- */

static bool is_terminal(const char *phase)
{
	return hf_streq(phase, "Succeeded") || hf_streq(phase, "Failed");
}

static void set_reason(const struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan,
		       enum hf_pod_phase phase, struct hf_json *status)
{
	const struct hf_json *stored = hf_json_get(hf_doc_json(pod->doc), "status");
	const char *reason = NULL, *message = NULL;

	if (is_terminal(hf_json_path_str(stored, "phase", NULL))) {
		reason = hf_json_path_str(stored, "reason", NULL);
		message = hf_json_path_str(stored, "message", NULL);
	} else if (pod->lost) {
		reason = "Lost";
		message = pod->lost_text;
	} else if (pod->stop == HF_KUBELET_POD_STOP_DEADLINE) {
		reason = "DeadlineExceeded";
		message = "Pod was active on the node longer than the specified deadline";
	} else if (phase == HF_PHASE_FAILED && hf_kubelet_pod_drained(pod, plan)) {
		reason = "Terminated";
		message = DRAIN_TEXT;
	}
	hf_json_set_str(status, "reason", reason);
	hf_json_set_str(status, "message", message);
}

/* Returns the phase to write. A stored Failed or Succeeded is kept. Failed or Succeeded is not
 * written before the shim has ended. */
static enum hf_pod_phase phase_of(const struct hf_kubelet_pod *pod, const struct hf_pod_plan *plan)
{
	const char *stored = hf_json_path_str(hf_doc_json(pod->doc), "status", "phase", NULL);

	if (is_terminal(stored))
		return hf_streq(stored, "Failed") ? HF_PHASE_FAILED : HF_PHASE_SUCCEEDED;
	if (!plan->finished)
		return plan->phase;
	if (pod->state != HF_KUBELET_POD_ENDED)
		return hf_streq(stored, "Running") ? HF_PHASE_RUNNING : HF_PHASE_PENDING;
	/* A pod that was ended is Failed, even if its program exited with 0: it has not done its
	 * work. Upstream's kubelet does so with pods of a node that is shut down. */
	if (pod->lost || pod->stop == HF_KUBELET_POD_STOP_DEADLINE ||
	    hf_kubelet_pod_drained(pod, plan))
		return HF_PHASE_FAILED;
	return plan->phase;
}

struct hf_json *hf_kubelet_status_build(const struct hf_kubelet_pod *pod,
					const struct hf_pod_plan *plan, hf_time now)
{
	struct hf_json *status = hf_json_object();
	struct hf_json *lists[2] = {hf_json_array(), hf_json_array()};
	enum hf_pod_phase phase = phase_of(pod, plan);
	const char *ip = pod->config.host_network ? HF_KUBELET_HOST_IP : pod->config.ip;

	hf_json_set_str(status, "phase", hf_kubelet_phase_name(phase));
	set_reason(pod, plan, phase, status);
	hf_json_set(status, "conditions", conditions_of(pod, plan, phase, now));
	hf_json_set_str(status, "hostIP", HF_KUBELET_HOST_IP);
	if (ip) {
		struct hf_json *item = hf_json_object();

		hf_json_set_str(status, "podIP", ip);
		hf_json_set_str(item, "ip", ip);
		hf_json_append(hf_json_ensure_array(status, "podIPs"), item);
	}
	set_time(status, "startTime", pod->start_time);
	for (size_t i = 0; i < pod->n; i++)
		hf_json_append(
			lists[pod->containers[i].init],
			container_status(pod, &pod->containers[i], &plan->containers[i], plan));
	hf_json_set(status, "containerStatuses", lists[0]);
	if (hf_json_len(lists[1]) > 0)
		hf_json_set(status, "initContainerStatuses", lists[1]);
	else
		(void)hf_json_unref(lists[1]);
	return status;
}
