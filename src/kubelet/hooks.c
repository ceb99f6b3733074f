/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include <stdio.h>

/*
 * postStart and preStop hooks. A container counts as started once its postStart hook has succeeded; if
 * the hook fails, the container is stopped. A preStop hook runs before SIGTERM, within the grace
 * period. A postStart hook belongs to a start that this kubelet asked for: a later kubelet does not
 * repeat it.
 */
#define ARENA_BYTES_MAX ((size_t)1 << 20)
#define HTTP_WITHIN_S 30
/* Upstream has no time limit for a postStart hook, and the exec here needs one: a day is longer
 * than any hook takes. */
#define POST_START_WITHIN HF_DAY

static const struct hf_json *hook_of(const struct hf_kubelet_pod_container *c, const char *name)
{
	const struct hf_json *hook = hf_json_path(c->spec, "lifecycle", name, NULL);

	if (hf_kubelet_handler_uses_tls(hook) || hf_json_get(hook, "tcpSocket"))
		return NULL; /* ignored; check.c says so */
	return hf_json_len(hook) > 0 ? hook : NULL;
}

static bool start_hook(struct hf_kubelet_pod_container *c, const char *name, hf_time within,
		       hf_kubelet_exec_fn done)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES_MAX);
	struct hf_kubelet_handler handler;

	c->hook = hf_kubelet_exec_destroy(c->hook);
	if (hf_kubelet_handler_make(c->pod, c->spec, hook_of(c, name), HTTP_WITHIN_S, arena,
				    &handler))
		c->hook = hf_kubelet_exec_start(c->pod, c->name, &handler, within, done, c);
	return c->hook != NULL;
}

/* --- postStart --- */

static void on_post_start(void *arg, const struct hf_kubelet_exec_result *result)
{
	struct hf_kubelet_pod_container *c = arg;

	c->hook = hf_kubelet_exec_destroy(c->hook);
	c->post_start_runs = false;
	hf_kubelet_pod_wake(c->pod);
	/* If the hook could not run, the container has ended meanwhile, which is reported
	 * anyway. */
	if (!result->ran || result->code == 0)
		return;
	hf_kubelet_event(c->pod, "Warning", "FailedPostStartHook",
			 "postStart hook of container %s failed with code %d: %s", c->name,
			 result->code, result->text);
	hf_kubelet_container_fail(c, c->post_start_attempt, "failed postStart hook", -1);
}

void hf_kubelet_post_start_expect(struct hf_kubelet_pod_container *c)
{
	c->post_start_attempt = c->attempt;
	c->post_start_due = hook_of(c, "postStart") != NULL;
	c->post_start_runs = c->post_start_due;
}

void hf_kubelet_post_start_sync(struct hf_kubelet_pod_container *c)
{
	const struct hf_container_past *past = hf_pod_past_find(&c->pod->past, c->name);

	if (!c->post_start_due || !past || past->last.number < c->post_start_attempt)
		return;
	if (hf_attempt_ended(&past->last)) {
		c->post_start_due = c->post_start_runs = false;
		return;
	}
	if (past->last.state != HF_ATTEMPT_RUNNING)
		return;
	c->post_start_due = false;
	if (!start_hook(c, "postStart", POST_START_WITHIN, on_post_start))
		on_post_start(c, &(struct hf_kubelet_exec_result){
					 .ran = true, .code = -1, .text = "it cannot be run"});
}

/* --- preStop --- */

static void on_pre_stop(void *arg, const struct hf_kubelet_exec_result *result)
{
	struct hf_kubelet_pod_container *c = arg;

	c->hook = hf_kubelet_exec_destroy(c->hook);
	c->pre_stop_runs = false;
	if (result->code != 0)
		hf_kubelet_event(c->pod, "Warning", "FailedPreStopHook",
				 "preStop hook of container %s failed with code %d: %s", c->name,
				 result->code, result->text);
	hf_kubelet_pod_wake(c->pod);
}

bool hf_kubelet_pre_stop(struct hf_kubelet_pod_container *c, unsigned attempt, hf_time within)
{
	if (!hook_of(c, "preStop"))
		return true;
	if (c->pre_stop_attempt == (int64_t)attempt)
		return !c->pre_stop_runs;
	c->pre_stop_attempt = (int64_t)attempt;
	c->post_start_due = c->post_start_runs = false;
	c->pre_stop_runs = start_hook(c, "preStop", within, on_pre_stop);
	return !c->pre_stop_runs;
}
