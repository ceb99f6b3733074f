/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Scheduler and kubelet in one: pods are bound after a while, started after another, run,
 * exit with some code, are restarted in place where their policy says so, and end when they
 * are deleted, with or without a word about how.
 */
#define NODES 4
#define TEXT_MAX 2048

enum pod_state { POD_NEW, POD_BOUND, POD_RUNNING, POD_WAITING, POD_ENDING, POD_OVER };

struct sim_pod {
	struct sim *sim;
	struct hf_timer *timer;
	char *name, *uid;
	char *policy; /* restartPolicy */
	enum pod_state state;
	hf_time grace;
	int restarts, code;
};

struct sim_kubelet {
	struct hf_map *pods; /* uid → struct sim_pod */
	struct hf_local_observer observer;
};

static void pod_free(void *value)
{
	struct sim_pod *pod = value;

	hf_timer_destroy(pod->timer);
	free(pod->name);
	free(pod->uid);
	free(pod->policy);
	free(pod);
}

/* --- status -------------------------------------------------------------------------------- */

static void report(struct sim_pod *pod, const char *phase, const char *state, const char *more)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text),
		 "{\"status\":{\"phase\":\"%s\"%s,\"containerStatuses\":[{\"name\":\"pytorch\","
		 "\"ready\":%s,\"restartCount\":%d,\"state\":{%s}}]}}",
		 phase, more, hf_streq(phase, "Running") ? "true" : "false", pod->restarts, state);
	sim_patch(pod->sim, &hf_pods, "default", pod->name, "status", text);
}

static const char *now_text(struct sim *sim, char buf[HF_TIME_TEXT_MAX])
{
	hf_time_format(hf_loop_wall(sim->loop), buf);
	return buf;
}

static void report_running(struct sim_pod *pod)
{
	char state[256], now[HF_TIME_TEXT_MAX];

	snprintf(state, sizeof(state), "\"running\":{\"startedAt\":\"%s\"}",
		 now_text(pod->sim, now));
	report(pod, "Running", state, "");
}

static void report_ended(struct sim_pod *pod, const char *more)
{
	char state[256], now[HF_TIME_TEXT_MAX];

	snprintf(state, sizeof(state),
		 "\"terminated\":{\"exitCode\":%d,\"reason\":\"%s\",\"finishedAt\":\"%s\"}",
		 pod->code, pod->code == 0 ? "Completed" : "Error", now_text(pod->sim, now));
	report(pod, pod->code == 0 ? "Succeeded" : "Failed", state, more);
}

/* --- a pod's life -------------------------------------------------------------------------- */

static void process_starts(struct sim_pod *pod)
{
	struct sim *sim = pod->sim;

	pod->state = POD_RUNNING;
	sim_tell(sim, "kubelet: %s runs (restarts %d)", pod->name, pod->restarts);
	sim_check_process_starts(sim, pod->uid);
	report_running(pod);
	hf_timer_arm(pod->timer, HF_SECOND + sim_span(sim, sim->mood.run_max));
}

static int random_code(struct sim *sim)
{
	static const int codes[] = {1, 1, 2, 137, 137, 143, 220};

	if (sim->calm || hf_rng_below(&sim->rng, 100) >= sim->mood.fail_percent)
		return 0;
	return codes[hf_rng_below(&sim->rng, HF_ARRAY_LEN(codes))];
}

static void process_exits(struct sim_pod *pod)
{
	struct sim *sim = pod->sim;
	bool again;

	pod->code = random_code(sim);
	/* A pod that restarts for ever keeps no job from its end: in the calm it does not. */
	again = (hf_streq(pod->policy, "Always") && !sim->calm) ||
		(hf_streq(pod->policy, "OnFailure") && pod->code != 0);
	sim_check_process_ends(sim, pod->uid);
	if (again) {
		pod->state = POD_WAITING;
		pod->restarts++;
		sim_check_restart_in_place(sim, pod->uid);
		sim_tell(sim, "kubelet: %s exited with %d, restart %d", pod->name, pod->code,
			 pod->restarts);
		report(pod, "Running", "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}", "");
		hf_timer_arm(pod->timer, sim_span(sim, 10 * HF_SECOND));
		return;
	}
	pod->state = POD_OVER;
	sim_tell(sim, "kubelet: %s exited with %d", pod->name, pod->code);
	if (pod->code != 0 && sim_chance(sim, 150))
		report_ended(pod, ",\"reason\":\"Preempting\",\"conditions\":[{\"type\":"
				  "\"DisruptionTarget\",\"status\":\"True\",\"reason\":"
				  "\"PreemptionByScheduler\"}]");
	else
		report_ended(pod, "");
}

static void pod_ends(struct sim_pod *pod)
{
	struct sim *sim = pod->sim;
	HF_AUTOFREE char *name = hf_xstrdup(pod->name), *uid = hf_xstrdup(pod->uid);
	const struct hf_request request = {.verb = HF_VERB_DELETE,
					   .resource = &hf_pods,
					   .ns = "default",
					   .name = name,
					   .precondition_uid = uid};

	sim_check_process_ends(sim, pod->uid);
	if (pod->state == POD_ENDING && sim_chance(sim, 500)) {
		pod->code = 143;
		report_ended(pod, "");
	}
	sim_tell(sim, "kubelet: %s is gone", name);
	sim_apply(sim, &request); /* the observer frees the pod, in the next turn */
}

static void pod_bind(struct sim_pod *pod)
{
	struct sim *sim = pod->sim;
	char text[256];
	HF_AUTO_DOC body = NULL;

	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\"},"
		 "\"target\":{\"kind\":\"Node\",\"name\":\"node-%d\"}}",
		 pod->name, (int)hf_rng_below(&sim->rng, NODES));
	body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = "default",
					   .name = pod->name,
					   .subresource = "binding",
					   .body = body};

	if (sim_apply(sim, &request) != 0)
		return;
	pod->state = POD_BOUND;
	hf_timer_arm(pod->timer, sim_span(sim, sim->mood.start_max));
}

static void pod_turn(void *arg)
{
	struct sim_pod *pod = arg;

	switch (pod->state) {
	case POD_NEW: pod_bind(pod); break;
	case POD_BOUND:
	case POD_WAITING: process_starts(pod); break;
	case POD_RUNNING: process_exits(pod); break;
	case POD_ENDING:
	case POD_OVER: pod_ends(pod); break;
	}
}

/* --- what it hears ------------------------------------------------------------------------- */

static void pod_created(struct sim *sim, struct hf_doc *doc)
{
	struct sim_pod *pod = hf_xcalloc(1, sizeof(*pod));
	const struct hf_json *spec = hf_json_get(hf_doc_json(doc), "spec");

	pod->sim = sim;
	pod->name = hf_xstrdup(hf_doc_name(doc));
	pod->uid = hf_xstrdup(hf_doc_uid(doc));
	pod->policy = hf_xstrdup(hf_json_str(hf_json_get(spec, "restartPolicy"), "Always"));
	pod->timer = hf_timer_create(sim->loop, pod_turn, pod);
	bool put = hf_map_put(sim->kubelet->pods, pod->uid, pod);

	hf_assert(put);
	hf_timer_arm(pod->timer, sim_span(sim, HF_SECOND));
}

static void on_change(void *arg, const struct hf_local_change *change)
{
	struct sim *sim = arg;
	struct hf_doc *doc = change->after != NULL ? change->after : change->before;
	struct sim_pod *pod;
	const struct hf_json *meta;

	if (change->resource != &hf_pods)
		return;
	if (change->before == NULL) {
		pod_created(sim, doc);
		return;
	}
	pod = hf_map_get(sim->kubelet->pods, hf_doc_uid(doc));
	if (pod == NULL)
		return;
	if (change->after == NULL) {
		/* Forced: the node ends what is left. */
		sim_check_process_ends(sim, pod->uid);
		hf_map_remove(sim->kubelet->pods, pod->uid);
		return;
	}
	meta = hf_json_get(hf_doc_json(doc), "metadata");
	if (hf_json_get(meta, "deletionTimestamp") == NULL || pod->state == POD_ENDING)
		return;
	pod->grace = hf_json_i64(hf_json_get(meta, "deletionGracePeriodSeconds"), 0) * HF_SECOND;
	pod->state = pod->state == POD_OVER ? POD_OVER : POD_ENDING;
	if (pod->state == POD_OVER && hf_timer_armed(pod->timer))
		return;
	hf_timer_arm(pod->timer, sim_span(sim, pod->grace + HF_SECOND));
}

void sim_kubelet_init(struct sim *sim)
{
	struct sim_kubelet *kubelet = hf_xcalloc(1, sizeof(*kubelet));

	kubelet->pods = hf_map_create(100000, 0, pod_free);
	kubelet->observer =
		(struct hf_local_observer){.changed = on_change, .reset = sim_on_reset, .arg = sim};
	sim->kubelet = kubelet;
	hf_local_observe(sim->local, &kubelet->observer);
}

void sim_kubelet_release(struct sim *sim)
{
	hf_local_unobserve(sim->local, &sim->kubelet->observer);
	hf_map_destroy(sim->kubelet->pods);
	free(sim->kubelet);
}
