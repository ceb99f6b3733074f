/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/nodes.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "sim/check.h"
#include "sim/crashes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Scheduler and kubelets. Pods are bound, started and end after random times. Kubelets restart
 * containers in place where the policy says so, and end deleted pods with or without a last status.
 *
 * A process belongs to a machine. While the machine's kubelet is dead or cut off, the process runs
 * on and may end, but no status says so until the kubelet is back. A pod whose object was deleted
 * meanwhile is a zombie until then.
 */
#define TEXT_MAX 2048
#define SCHEDULE_AGAIN (5 * HF_SECOND)
#define ZOMBIE_MAX (5 * HF_SECOND) /* until a kubelet finds out that a pod's object is gone */
#define STUCK_SPAN (10 * HF_MINUTE)
#define UNBOUND_MAX HF_SECOND
#define SLOW_MAX HF_MINUTE
#define STOP_MAX (20 * HF_SECOND) /* until a deadline has ended the containers */
#define STANDS_LOOK (10 * HF_SECOND)
#define PODS_MAX 100000

enum pod_state {
	POD_NEW,     /* the scheduler looks for a node */
	POD_BOUND,   /* the pod has a node, and its process has not started yet */
	POD_RUNNING, /* the process runs */
	POD_EXITED,  /* the process has ended, and the kubelet could not report it */
	POD_WAITING, /* the kubelet is to start the container again */
	POD_HELD,    /* the process has ended for good, and the second container runs on */
	POD_STOPPED, /* activeDeadlineSeconds are over, so the kubelet ends the pod */
	POD_ENDING,  /* the object is marked for deletion */
	POD_OVER,    /* the pod has ended, and its status says so */
	POD_ZOMBIE,  /* the object is gone; the process may still run */
};

struct sim_pod {
	struct sim *sim;
	struct hf_timer *timer;
	char *name, *uid;
	char *policy;    /* restartPolicy */
	char *container; /* name of the first container */
	struct sim_node *node;
	enum pod_state state;
	bool deleted; /* its object has a deletionTimestamp */
	bool process;
	bool sidecar;    /* the pod has a second container */
	bool side_over;  /* the second container has ended */
	bool held;       /* the second container has outlived the process */
	bool side_fails; /* the second container ends with exit code 1 */
	bool told_stop;  /* the object has activeDeadlineSeconds, so the pod has to end */
	bool unplaced;   /* no node takes the pod, and the scheduler has said so */
	bool power_lost; /* the process ended because the machine lost power */
	hf_time grace;
	char started[HF_TIME_TEXT_MAX]; /* time of the first status of the kubelet */
	int restarts, code;
	/* restarts of the second container, and of an init container */
	int side_restarts, init_restarts;
	bool init_fails; /* the init container waits to be started again */
	/* the process ends itself after so many seconds without contact; 0: it has no fence */
	int64_t fence;
	const char *why;          /* reason of the end; a constant text */
	const char *phase, *more; /* of the last report; constant texts; NULL: no report yet */
	char said[256];           /* container state of the last report */
	/* how this run ends in a scenario; NULL: by chance */
	const struct sim_script_end *scripted;
};

struct sim_kubelet {
	struct hf_map *pods;   /* uid → struct sim_pod */
	struct hf_map *starts; /* name of a pod → number of starts of its process, in scenarios */
	struct hf_memstore_observer observer;
	struct hf_timer *deeds;
	struct hf_rng rng;
	struct hf_rng beside; /* random numbers of second containers, deadlines and slow starts */
	struct hf_rng again;  /* random numbers of restarts of other containers */
};

/* Random numbers of their own, so second containers change no other number. */
static hf_time span_beside(struct sim *sim, hf_time max)
{
	return HF_MS + (hf_time)hf_rng_below(&sim->kubelet->beside, (uint64_t)max);
}

static void pod_free(void *value)
{
	struct sim_pod *pod = value;

	hf_timer_destroy(pod->timer);
	free(pod->name);
	free(pod->uid);
	free(pod->policy);
	free(pod->container);
	free(pod);
}

static bool can_say(const struct sim_pod *pod)
{
	return pod->node != NULL && sim_node_alive(pod->node);
}

/* --- status -------------------------------------------------------------------------------- */

static const char *node_time(const struct sim_pod *pod, char buf[HF_TIME_TEXT_MAX])
{
	hf_time_format(hf_loop_wall(pod->sim->loop) + (pod->node ? pod->node->clock : 0), buf);
	return buf;
}

/* Returns the status of the init container; "": it was never restarted. */
static const char *init_status(const struct sim_pod *pod, char buf[TEXT_MAX / 4])
{
	buf[0] = '\0';
	if (pod->init_restarts > 0 || pod->init_fails)
		snprintf(buf, TEXT_MAX / 4,
			 "\"initContainerStatuses\":[{\"name\":\"fetch\",\"restartCount\":%d,"
			 "\"state\":{\"terminated\":{\"exitCode\":%d,\"reason\":\"%s\"}}}],",
			 pod->init_restarts, pod->init_fails ? 7 : 0,
			 pod->init_fails ? "Error" : "Completed");
	return buf;
}

/* Returns the status of the second container, with a comma before it; "": there is none. */
static const char *sidecar_status(const struct sim_pod *pod, const char *phase,
				  char buf[TEXT_MAX / 4])
{
	if (!pod->sidecar)
		return "";
	if (pod->side_fails)
		return ",{\"name\":\"proxy\",\"restartCount\":0,\"state\":{\"terminated\":{"
		       "\"exitCode\":1,\"reason\":\"Error\"}}}";
	if (pod->side_over || hf_streq(phase, "Failed") || hf_streq(phase, "Succeeded"))
		return ",{\"name\":\"proxy\",\"restartCount\":0,\"state\":{\"terminated\":{"
		       "\"exitCode\":0,\"reason\":\"Completed\"}}}";
	if (hf_streq(phase, "Pending"))
		return ",{\"name\":\"proxy\",\"restartCount\":0,\"state\":{\"waiting\":{"
		       "\"reason\":\"ContainerCreating\"}}}";
	snprintf(buf, TEXT_MAX / 4,
		 ",{\"name\":\"proxy\",\"restartCount\":%d,\"state\":{\"running\":{}}%s}",
		 pod->side_restarts,
		 pod->side_restarts > 0 ? ",\"lastState\":{\"terminated\":{\"exitCode\":3}}" : "");
	return buf;
}

static void report(struct sim_pod *pod, const char *phase, const char *state, const char *more)
{
	char text[TEXT_MAX], init[TEXT_MAX / 4], side[TEXT_MAX / 4];
	struct sim_plugin_words words;
	bool unhealthy = sim_plugin_words(pod->node, pod->uid, phase, &words);
	int rc;

	if (pod->started[0] == '\0')
		node_time(pod, pod->started);
	snprintf(text, sizeof(text),
		 "{\"status\":{\"phase\":\"%s\"%s,\"startTime\":\"%s\",%s\"containerStatuses\":[{"
		 "\"name\":\"%s\",\"ready\":%s,\"restartCount\":%d,\"state\":{%s}%s}%s%s]}}",
		 phase, more, pod->started, init_status(pod, init), pod->container,
		 hf_streq(phase, "Running") ? "true" : "false", pod->restarts, state, words.mine,
		 words.beside, sidecar_status(pod, phase, side));
	rc = sim_patch(pod->sim, &hf_pods, "default", pod->name, "status", text);
	if (!pod->sim->mood.plugins)
		return;
	pod->phase = phase;
	pod->more = more;
	if (state != pod->said)
		snprintf(pod->said, sizeof(pod->said), "%s", state);
	if (rc == 0)
		sim_check_word(pod->sim, pod->uid, unhealthy);
}

static void report_running(struct sim_pod *pod)
{
	char state[256], now[HF_TIME_TEXT_MAX];

	snprintf(state, sizeof(state), "\"running\":{\"startedAt\":\"%s\"}", node_time(pod, now));
	report(pod, "Running", state, "");
}

static void report_exit(struct sim_pod *pod, const char *phase, const char *more)
{
	char state[256], now[HF_TIME_TEXT_MAX];

	snprintf(state, sizeof(state),
		 "\"terminated\":{\"exitCode\":%d,\"reason\":\"%s\",\"finishedAt\":\"%s\"}",
		 pod->code,
		 pod->why != NULL ? pod->why
		 : pod->code == 0 ? "Completed"
				  : "Error",
		 node_time(pod, now));
	report(pod, phase, state, more);
}

static void report_ended(struct sim_pod *pod, const char *more)
{
	report_exit(pod, pod->code == 0 && !pod->side_fails ? "Succeeded" : "Failed", more);
}

/* The first status says how the container ended. Later ones say CrashLoopBackOff. */
static void report_waiting(struct sim_pod *pod)
{
	char state[256];

	if (pod->restarts == 0) {
		report_exit(pod, "Running", "");
		return;
	}
	snprintf(state, sizeof(state),
		 "\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},"
		 "\"lastState\":{\"terminated\":{\"exitCode\":%d}",
		 pod->code);
	report(pod, "Running", state, "");
}

/* --- a pod's life -------------------------------------------------------------------------- */

static void process_ends(struct sim_pod *pod)
{
	if (pod->process)
		sim_check_process_ends(pod->sim, pod->uid);
	pod->process = false;
	if (pod->fence > 0)
		sim_fence_ended(pod->sim, pod->uid);
}

/* Returns the scripted end of this start. Starts are counted by name, so a replacement goes on with
 * its predecessor's count. */
static const struct sim_script_end *scripted(const struct sim_pod *pod)
{
	struct hf_map *starts = pod->sim->kubelet->starts;
	unsigned char *count = hf_map_get(starts, pod->name);

	if (count == NULL) {
		count = hf_xcalloc(1, 1);
		bool put = hf_map_put(starts, pod->name, count);

		hf_assert(put);
	}
	return sim_script_of(pod->sim, pod->name, (*count)++);
}

/* True if the kubelet may restart other containers of this pod. */
static bool restarts_containers(const struct sim_pod *pod)
{
	return pod->sidecar && pod->sim->script == NULL && !pod->sim->calm &&
	       (hf_streq(pod->policy, "Always") || hf_streq(pod->policy, "OnFailure"));
}

/* True if the init container fails now, so that the kubelet starts it again. */
static bool fails_before_start(struct sim_pod *pod)
{
	bool began = pod->state != POD_BOUND;

	pod->init_restarts += pod->init_fails;
	pod->init_fails = false;
	if (began || !restarts_containers(pod) || hf_rng_below(&pod->sim->kubelet->again, 6) > 0)
		return false;
	pod->init_fails = true;
	sim_tell(pod->sim, "kubelet: init container fetch of %s exited with 7", pod->name);
	sim_check_init_ends(pod->sim, pod->uid);
	report(pod, "Pending", "\"waiting\":{\"reason\":\"PodInitializing\"}", "");
	hf_timer_arm(pod->timer, HF_MS + (hf_time)hf_rng_below(&pod->sim->kubelet->again,
							       (uint64_t)(10 * HF_SECOND)));
	return true;
}

/* Restarts the second container alone, or with the whole pod (as after a lost sandbox). Neither
 * adds a termination of the rank to that of the program. */
static void restart_beside(struct sim_pod *pod, bool whole)
{
	uint64_t count = hf_rng_below(&pod->sim->kubelet->again, 4);

	if (!restarts_containers(pod) || count == 0)
		return;
	pod->side_restarts += (int)count;
	if (whole)
		pod->init_restarts++;
	sim_tell(pod->sim, "kubelet: container proxy of %s was restarted %d time(s)", pod->name,
		 (int)count);
}

static bool waits_for_contact(struct sim_pod *pod);

static void process_starts(struct sim_pod *pod)
{
	struct sim *sim = pod->sim;

	if (!can_say(pod))
		return; /* when its kubelet is back */
	if (fails_before_start(pod))
		return;
	if (pod->fence > 0 && waits_for_contact(pod))
		return;
	restart_beside(pod, pod->state == POD_WAITING);
	if (pod->state == POD_WAITING) {
		sim_check_starts_again(sim, pod->uid);
		pod->restarts++;
	}
	pod->state = POD_RUNNING;
	pod->process = true;
	pod->why = NULL;
	sim_tell(sim, "kubelet: %s runs on %s (restarts %d)", pod->name, pod->node->name,
		 pod->restarts);
	sim_check_process_starts(sim, pod->uid);
	report_running(pod);
	sim_device_pod(pod->node, pod->name, pod->uid, false);
	pod->scripted = sim->script == NULL ? NULL : scripted(pod);
	if (pod->scripted != NULL)
		hf_timer_arm(pod->timer, pod->scripted->after);
	else if (sim->script != NULL)
		hf_timer_arm(pod->timer, sim->mood.run_max);
	else
		hf_timer_arm(pod->timer, HF_SECOND + sim_span(sim, sim->mood.run_max));
}

/* The longest time that a second container runs on, longer than operators may wait. */
#define SIDECAR_MAX (8 * HF_MINUTE)

static bool is_outlived(struct sim_pod *pod)
{
	bool final = hf_streq(pod->policy, "Never") ||
		     (hf_streq(pod->policy, "OnFailure") && pod->code == 0);

	return pod->sidecar && !pod->held && final &&
	       hf_rng_below(&pod->sim->kubelet->beside, 4) < 3;
}

static void hold(struct sim_pod *pod)
{
	pod->state = POD_HELD;
	pod->held = true;
	sim_tell(pod->sim, "kubelet: %s exited with %d, and container proxy runs on", pod->name,
		 pod->code);
	report_exit(pod, "Running", "");
	sim_check_held(pod->sim, pod->uid, pod->code);
	hf_timer_arm(pod->timer, HF_SECOND + span_beside(pod->sim, SIDECAR_MAX));
}

static void see_end(struct sim_pod *pod, const char *more);

static void sidecar_ends(struct sim_pod *pod)
{
	if (!can_say(pod))
		return; /* when its kubelet is back */
	pod->sim->ends_quiet += pod->sim->quiet;
	sim_check_held_ends(pod->sim, pod->uid);
	/* The second container stays ended, so the pod fails although its rank has succeeded. */
	pod->side_fails = pod->code == 0 && hf_streq(pod->policy, "Never") &&
			  hf_rng_below(&pod->sim->kubelet->beside, 3) == 0;
	if (pod->side_fails)
		sim_tell(pod->sim, "kubelet: container proxy of %s fails", pod->name);
	see_end(pod, "");
}

/* The kubelet sees that the process has ended, and restarts it or reports the end. */
static void see_end(struct sim_pod *pod, const char *more)
{
	struct sim *sim = pod->sim;
	/* Policy Always restarts for ever. In the calm it must not, so that the job can end. */
	bool again = (hf_streq(pod->policy, "Always") && !sim->calm) ||
		     (hf_streq(pod->policy, "OnFailure") && pod->code != 0);

	if (!can_say(pod)) {
		pod->state = POD_EXITED;
		return;
	}
	if (again && more[0] == '\0') {
		pod->state = POD_WAITING;
		sim_tell(sim, "kubelet: %s exited with %d, and is to be restarted", pod->name,
			 pod->code);
		sim_check_ends_in_place(sim, pod->uid);
		report_waiting(pod);
		/* A real kubelet waits 0 s before the first restart, then 10 s, 20 s, … */
		hf_timer_arm(pod->timer,
			     sim_span(sim, pod->restarts == 0 ? HF_SECOND : 10 * HF_SECOND));
		return;
	}
	if (more[0] == '\0' && is_outlived(pod)) {
		hold(pod);
		return;
	}
	pod->side_over = true;
	pod->state = POD_OVER;
	hf_timer_disarm(pod->timer);
	sim_device_pod(pod->node, pod->name, pod->uid, false);
	sim_tell(sim, "kubelet: %s exited with %d%s", pod->name, pod->code, more);
	/* A kubelet reports that the container has ended before it reports that the pod has. */
	if (more[0] == '\0')
		report_exit(pod, "Running", "");
	report_ended(pod, more);
}

static void process_exits(struct sim_pod *pod, int code, const char *more)
{
	pod->code = code;
	pod->sim->ends_quiet += pod->sim->quiet;
	process_ends(pod);
	see_end(pod, more);
}

/* The kubelet has ended all containers because of the deadline; restartPolicy does not matter. */
static void stop_is_over(struct sim_pod *pod)
{
	if (!can_say(pod))
		return; /* when its kubelet is back */
	if (!pod->held)
		pod->code = 143;
	process_ends(pod);
	pod->side_over = true;
	pod->state = POD_OVER;
	sim_device_pod(pod->node, pod->name, pod->uid, false);
	sim_tell(pod->sim, "kubelet: %s is ended by its deadline", pod->name);
	report_exit(pod, "Failed", ",\"reason\":\"DeadlineExceeded\"");
}

#define FENCED 226

/* The container runs while exec waits for a contact, but the training process does not. */
static bool waits_for_contact(struct sim_pod *pod)
{
	enum sim_fence_word word = sim_fence_starts(pod->node, pod->uid, pod->fence);

	if (word == SIM_FENCE_HOLDS)
		return false;
	if (word == SIM_FENCE_WAITS) {
		hf_timer_arm(pod->timer, HF_SECOND);
		return true;
	}
	pod->state = POD_RUNNING;
	sim_check_fenced(pod->sim, pod->uid);
	process_exits(pod, FENCED, "");
	return true;
}

void sim_kubelet_fenced(struct sim_node *node, const char *uid, const char *why)
{
	struct sim_pod *pod = hf_map_get(node->sim->kubelet->pods, uid);

	sim_tell(node->sim, "exec: %s on %s ends itself: %s", pod->name, node->name, why);
	sim_check_fenced(node->sim, uid);
	if (pod->state == POD_RUNNING)
		process_exits(pod, FENCED, "");
	else
		process_ends(pod);
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

	if (!can_say(pod) && pod->node != NULL)
		return;
	process_ends(pod);
	if (pod->state == POD_ENDING && (sim->played || sim_chance(sim, 500))) {
		if (!pod->held)
			pod->code = 143;
		pod->side_over = true;
		report_exit(pod, "Failed", "");
	}
	sim_tell(sim, "kubelet: %s is gone", name);
	pod->state = POD_OVER;
	sim_apply(sim, &request); /* the observer frees the pod, in the next turn */
}

static void reject(struct sim_pod *pod, const char *reason)
{
	char text[256];

	snprintf(text, sizeof(text), "{\"status\":{\"phase\":\"Failed\",\"reason\":\"%s\"}}",
		 reason);
	sim_tell(pod->sim, "kubelet: %s is refused: %s", pod->name, reason);
	pod->state = POD_OVER;
	pod->phase = NULL; /* the kubelet has reported no device for this pod */
	sim_patch(pod->sim, &hf_pods, "default", pod->name, "status", text);
}

/* True if the start takes long, as with a large image or a slow volume. */
static bool is_slow(struct sim *sim)
{
	return sim->script == NULL && !sim->calm && !sim->mood.plugins && !sim->mood.fences &&
	       hf_rng_below(&sim->kubelet->beside, 100) < 3;
}

static void pod_bind(struct sim_pod *pod)
{
	static const char *const refusals[] = {"UnexpectedAdmissionError", "OutOfcpu",
					       "NodeAffinity"};
	struct sim *sim = pod->sim;
	struct hf_doc *doc = hf_memstore_peek(sim->memstore, &hf_pods, "default", pod->name);
	struct sim_node *node = sim_node_for(sim, hf_json_get(hf_doc_json(doc), "spec"));
	char text[256];
	HF_AUTO_DOC body = NULL;

	if (node == NULL) {
		hf_timer_arm(pod->timer, SCHEDULE_AGAIN);
		/* The scheduler writes this condition once. */
		if (!pod->unplaced)
			sim_pod_mark(sim, pod->name, "PodScheduled", "False", "Unschedulable",
				     NULL);
		pod->unplaced = true;
		sim_check_unplaced(sim, pod->uid);
		return;
	}
	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\"},"
		 "\"target\":{\"kind\":\"Node\",\"name\":\"%s\"}}",
		 pod->name, node->name);
	body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = "default",
					   .name = pod->name,
					   .subresource = "binding",
					   .body = body};

	pod->node = node;
	if (sim_apply(sim, &request) != 0) {
		pod->node = NULL;
		return;
	}
	sim_check_bound(sim, pod->uid, node->name);
	sim_device_pod(node, pod->name, pod->uid, false);
	if (!sim_node_alive(node))
		sim_check_away(sim, pod->uid);
	pod->state = POD_BOUND;
	if (can_say(pod))
		report(pod, "Pending", "\"waiting\":{\"reason\":\"ContainerCreating\"}", "");
	if (node->shutting_down && can_say(pod))
		reject(pod, "NodeShutdown");
	else if (can_say(pod) && sim->mood.per_hour[SIM_BY_POD] > 0 &&
		 sim->mood.weight[SIM_REJECTED] > 0 && !sim->calm && sim_chance(sim, 20) &&
		 sim_do(sim, SIM_REJECTED))
		reject(pod, refusals[sim_how(sim, HF_ARRAY_LEN(refusals))]);
	else
		hf_timer_arm(pod->timer, is_slow(sim) ? span_beside(sim, SLOW_MAX)
						      : sim_span(sim, sim->mood.start_max));
}

static void zombie_ends(struct sim_pod *pod)
{
	if (pod->node != NULL && !sim_node_alive(pod->node) && pod->process)
		return; /* when its kubelet is back */
	process_ends(pod);
	hf_map_remove(pod->sim->kubelet->pods, pod->uid);
}

static void happen(struct sim_pod *pod, enum sim_trouble kind);

static void run_is_over(struct sim_pod *pod)
{
	const struct sim_script_end *end = pod->scripted;

	/* If one rank hangs, no rank reaches the last step. */
	if (sim_training_stands(pod->sim, pod->uid)) {
		hf_timer_arm(pod->timer, STANDS_LOOK);
		return;
	}
	if (end == NULL || end->kind == SIM_EXITED)
		process_exits(pod, end == NULL ? 0 : end->code, "");
	else
		happen(pod, end->kind);
}

static void pod_turn(void *arg)
{
	struct sim_pod *pod = arg;

	switch (pod->state) {
	case POD_NEW: pod_bind(pod); break;
	case POD_BOUND:
	case POD_WAITING: process_starts(pod); break;
	case POD_RUNNING: run_is_over(pod); break;
	case POD_EXITED: see_end(pod, ""); break;
	case POD_HELD: sidecar_ends(pod); break;
	case POD_STOPPED: stop_is_over(pod); break;
	case POD_ENDING:
	case POD_OVER: pod_ends(pod); break;
	case POD_ZOMBIE: zombie_ends(pod); break;
	}
}

/* --- what happens to pods -------------------------------------------------------------------- */

static void delete_pod(struct sim_pod *pod, int64_t grace)
{
	const struct hf_request request = {.verb = HF_VERB_DELETE,
					   .resource = &hf_pods,
					   .ns = "default",
					   .name = pod->name,
					   .grace_seconds = grace,
					   .precondition_uid = pod->uid};

	sim_apply(pod->sim, &request);
}

/* Deletes the pod by force in a gap of the operator's watches. If a finalizer keeps the object, or
 * a list from the past shows it marked for deletion, the operator sees a delete like a person's. */
static void vanish(struct sim_pod *pod)
{
	struct hf_doc *doc = hf_memstore_peek(pod->sim->memstore, &hf_pods, "default", pod->name);
	bool kept = doc != NULL &&
		    hf_json_len(hf_json_path(hf_doc_json(doc), "metadata", "finalizers", NULL)) > 0;

	if (doc != NULL && (kept || sim_lists_lie(pod->sim)))
		sim_check_touched(pod->sim, doc);
	if (!kept)
		sim_check_unseen(pod->sim, pod->uid);
	delete_pod(pod, 0);
}

static void disrupt(struct sim_pod *pod, const char *reason)
{
	sim_tell(pod->sim, "world: %s goes: %s", pod->name, reason);
	sim_pod_mark(pod->sim, pod->name, "DisruptionTarget", "True", reason, NULL);
	delete_pod(pod, HF_GRACE_DEFAULT);
}

#define EVICTED_BY_NODE                                                                            \
	",\"reason\":\"Evicted\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"       \
	"\"True\",\"reason\":\"TerminationByKubelet\"}]"

/* Handles the troubles that only a live kubelet can cause; false: another trouble. */
static bool happen_at_home(struct sim_pod *pod, enum sim_trouble kind)
{
	if (kind != SIM_OOM_KILLED && kind != SIM_EVICTED_NODE && kind != SIM_OWN_LIMIT)
		return false;
	if (!can_say(pod) || pod->state != POD_RUNNING)
		return true;
	if (kind == SIM_OOM_KILLED) {
		pod->why = "OOMKilled";
		sim_check_oom(pod->sim, pod->uid);
	}
	process_exits(pod, 137,
		      kind == SIM_OOM_KILLED     ? ""
		      : kind == SIM_EVICTED_NODE ? EVICTED_BY_NODE
						 : ",\"reason\":\"Evicted\"");
	return true;
}

static void happen(struct sim_pod *pod, enum sim_trouble kind)
{
	static const int codes[] = {1, 1, 2, 137, 137, 143, 220};
	struct sim *sim = pod->sim;

	if (happen_at_home(pod, kind))
		return;
	switch (kind) {
	case SIM_EXITED:
		if (pod->state == POD_RUNNING)
			process_exits(pod, codes[sim_how(sim, HF_ARRAY_LEN(codes))], "");
		break;
	case SIM_PREEMPTED: disrupt(pod, "PreemptionByScheduler"); break;
	case SIM_EVICTED_API: disrupt(pod, "EvictionByEvictionAPI"); break;
	case SIM_VANISHED: vanish(pod); break;
	case SIM_HUNG: sim_training_hangs(sim, pod->uid); break;
	case SIM_PLUGIN_FAILS:
	case SIM_PLUGIN_BLINKS:
	case SIM_PLUGIN_SILENT: sim_plugin_happens(pod->node, kind); break;
	case SIM_STUCK:
		if (can_say(pod) && pod->state == POD_ENDING)
			hf_timer_arm(pod->timer, sim_how_span(sim, STUCK_SPAN));
		break;
	default: break; /* REJECTED happens in pod_bind */
	}
}

static struct sim_pod *random_pod(struct sim *sim)
{
	struct sim_pod *found = NULL;
	uint64_t seen = 0;
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sim->kubelet->pods, &it, &key, &value);) {
		struct sim_pod *pod = value;

		if (pod->state != POD_ZOMBIE && pod->state != POD_OVER &&
		    hf_rng_below(&sim->kubelet->rng, ++seen) == 0)
			found = pod;
	}
	return found;
}

static void deed_arm(struct sim *sim)
{
	unsigned per_hour = sim->mood.per_hour[SIM_BY_POD];

	if (per_hour > 0 && !sim->calm)
		hf_timer_arm(sim->kubelet->deeds,
			     HF_MS + (hf_time)hf_rng_below(&sim->kubelet->rng,
							   (uint64_t)(2 * HF_HOUR / per_hour)));
}

static void on_deed(void *arg)
{
	struct sim *sim = arg;
	enum sim_trouble kind = sim_pick(sim, SIM_BY_POD, &sim->kubelet->rng);
	struct sim_pod *pod = random_pod(sim);
	/* One fault may end several pods in the same moment. */
	uint64_t many = hf_rng_below(&sim->kubelet->rng, 5) == 0 ? 4 : 1;

	deed_arm(sim);
	if (sim->calm || pod == NULL || kind == SIM_TROUBLES || kind == SIM_REJECTED ||
	    !sim_do(sim, kind))
		return;
	for (uint64_t i = 0; i < many && pod != NULL; i++, pod = random_pod(sim))
		happen(pod, kind);
}

/* --- nodes ----------------------------------------------------------------------------------- */

/* A copy of the list of a node's pods, because pods leave the map while the list is used. */
struct pods {
	HF_VEC(struct sim_pod *) pods;
};

static void pods_of(const struct sim_node *node, struct pods *ret_pods)
{
	const char *key;
	void *value;

	*ret_pods = (struct pods){.pods = HF_VEC_INIT(PODS_MAX)};
	for (size_t it = 0; hf_map_next(node->sim->kubelet->pods, &it, &key, &value);) {
		struct sim_pod *pod = value;

		if (pod->node != node)
			continue;
		bool pushed = HF_VEC_PUSH(&ret_pods->pods, pod);

		hf_assert(pushed);
	}
}

void sim_kubelet_down(struct sim_node *node)
{
	struct pods list;

	sim_check_node_down(node->sim, node->name);
	pods_of(node, &list);
	for (size_t i = 0; i < list.pods.len; i++) {
		struct sim_pod *pod = list.pods.items[i];

		sim_check_away(node->sim, pod->uid);
		if (node->power)
			continue;
		pod->power_lost = pod->power_lost || pod->process;
		process_ends(pod);
		hf_timer_disarm(pod->timer);
		if (pod->state == POD_ZOMBIE)
			hf_map_remove(node->sim->kubelet->pods, pod->uid);
		else if (pod->state == POD_RUNNING)
			pod->state = POD_EXITED;
	}
	HF_VEC_RELEASE(&list.pods);
}

static void find_again(struct sim_pod *pod)
{
	struct sim *sim = pod->sim;

	if (pod->power_lost && pod->state == POD_EXITED) {
		pod->code = 137;
		pod->why = "ContainerStatusUnknown";
		sim_check_code_lost(pod->sim, pod->uid);
	}
	pod->power_lost = false;
	if (pod->deleted && pod->state != POD_ZOMBIE)
		pod->state = pod->state == POD_OVER ? POD_OVER : POD_ENDING;
	else if (pod->told_stop && pod->state != POD_OVER && pod->state != POD_ZOMBIE)
		pod->state = POD_STOPPED;
	/* The control plane has set Ready to False, so the kubelet sets it to True again. */
	if (pod->state == POD_RUNNING)
		sim_pod_mark(sim, pod->name, "Ready", "True", "", NULL);
	if (pod->state == POD_RUNNING || (pod->state == POD_OVER && !pod->deleted))
		return;
	hf_timer_arm(pod->timer, sim_span(sim, ZOMBIE_MAX));
}

void sim_kubelet_up(struct sim_node *node)
{
	struct pods list;

	pods_of(node, &list);
	for (size_t i = 0; i < list.pods.len; i++)
		find_again(list.pods.items[i]);
	HF_VEC_RELEASE(&list.pods);
}

void sim_kubelet_device_fails(struct sim_node *node)
{
	static const int codes[] = {1, 137, 139};
	struct sim *sim = node->sim;
	bool hang = sim->script != NULL || sim_how(sim, 2) == 0;
	struct pods list;

	if (!sim->mood.plugins)
		sim_check_sick_late(sim, node->name);
	pods_of(node, &list);
	for (size_t i = 0; i < list.pods.len; i++) {
		struct sim_pod *pod = list.pods.items[i];

		if (!sim->mood.plugins)
			sim_check_sick(sim, pod->uid);
		if (pod->state == POD_RUNNING && !hang)
			process_exits(pod, codes[sim_how(sim, HF_ARRAY_LEN(codes))], "");
	}
	HF_VEC_RELEASE(&list.pods);
}

void sim_kubelet_says_again(struct sim_node *node)
{
	struct pods list;

	pods_of(node, &list);
	for (size_t i = 0; i < list.pods.len; i++) {
		struct sim_pod *pod = list.pods.items[i];

		/* Of a pod that has ended, the kubelet may write no more statuses. */
		if (!can_say(pod) || pod->phase == NULL || pod->state == POD_ZOMBIE ||
		    (pod->state == POD_OVER && sim_chance(node->sim, 500)))
			continue;
		report(pod, pod->phase, pod->said, pod->more);
	}
	HF_VEC_RELEASE(&list.pods);
}

void sim_kubelet_each(struct sim_node *node,
		      void (*fn)(void *arg, const char *name, const char *uid, bool over),
		      void *arg)
{
	struct pods list;

	pods_of(node, &list);
	for (size_t i = 0; i < list.pods.len; i++) {
		const struct sim_pod *pod = list.pods.items[i];

		fn(arg, pod->name, pod->uid, pod->state == POD_OVER || pod->state == POD_ZOMBIE);
	}
	HF_VEC_RELEASE(&list.pods);
}

void sim_kubelet_shutdown(struct sim_node *node)
{
	struct sim *sim = node->sim;
	/* the machine loses power before the last statuses are written */
	bool lost = sim_how(sim, 4) == 0;
	struct pods list;

	pods_of(node, &list);
	for (size_t i = 0; i < list.pods.len; i++) {
		struct sim_pod *pod = list.pods.items[i];

		sim_check_away(sim, pod->uid);
		if (pod->state != POD_RUNNING || (lost && sim_how(sim, 2) == 0))
			continue;
		pod->why = NULL;
		process_exits(pod, 143,
			      ",\"reason\":\"Terminated\",\"conditions\":[{\"type\":"
			      "\"DisruptionTarget\",\"status\":\"True\",\"reason\":"
			      "\"TerminationByKubelet\"}]");
	}
	HF_VEC_RELEASE(&list.pods);
}

/* --- changes that kubelets see -------------------------------------------------------------- */

static void pod_created(struct sim *sim, struct hf_doc *doc)
{
	struct sim_pod *pod = hf_xcalloc(1, sizeof(*pod));
	const struct hf_json *spec = hf_json_get(hf_doc_json(doc), "spec");

	pod->sim = sim;
	pod->name = hf_xstrdup(hf_doc_name(doc));
	pod->uid = hf_xstrdup(hf_doc_uid(doc));
	pod->policy = hf_xstrdup(hf_json_str(hf_json_get(spec, "restartPolicy"), "Always"));
	pod->container = hf_xstrdup(hf_json_str(
		hf_json_get(hf_json_item(hf_json_get(spec, "containers"), 0), "name"), "main"));
	pod->sidecar = hf_json_len(hf_json_get(spec, "containers")) > 1;
	pod->fence = sim->mood.fences ? sim_fence_seconds(hf_doc_json(doc)) : 0;
	pod->timer = hf_timer_create(sim->loop, pod_turn, pod);
	bool put = hf_map_put(sim->kubelet->pods, pod->uid, pod);

	hf_assert(put);
	hf_timer_arm(pod->timer, sim_span(sim, UNBOUND_MAX));
}

/* The object of the pod is gone: by force, or because the pod was over. The kubelet ends what still
 * runs when it notices. */
static void pod_gone(struct sim_pod *pod)
{
	pod->state = POD_ZOMBIE;
	sim_check_given_up(pod->sim, pod->uid);
	if (pod->node != NULL)
		sim_device_pod(pod->node, pod->name, pod->uid, true);
	if (!pod->process) {
		sim_fence_ended(pod->sim, pod->uid);
		hf_map_remove(pod->sim->kubelet->pods, pod->uid);
		return;
	}
	hf_timer_arm(pod->timer, sim_span(pod->sim, ZOMBIE_MAX));
}

static void pod_told_to_end(struct sim_pod *pod, const struct hf_json *meta)
{
	pod->deleted = true;
	if (pod->state == POD_ENDING || (!can_say(pod) && pod->node != NULL))
		return;
	pod->grace = hf_json_i64(hf_json_get(meta, "deletionGracePeriodSeconds"), 0) * HF_SECOND;
	pod->state = pod->state == POD_OVER ? POD_OVER : POD_ENDING;
	if (pod->state == POD_OVER && hf_timer_armed(pod->timer))
		return;
	hf_timer_arm(pod->timer, sim_span(pod->sim, pod->grace + HF_SECOND));
}

/* The pod got a deadline that is over. A pod without a node has no kubelet that could end it. */
static void pod_told_to_stop(struct sim_pod *pod)
{
	pod->told_stop = true;
	if (pod->deleted || pod->state == POD_NEW || pod->state == POD_OVER ||
	    pod->state == POD_ZOMBIE || !can_say(pod))
		return;
	pod->state = POD_STOPPED;
	hf_timer_arm(pod->timer, span_beside(pod->sim, STOP_MAX));
}

static void on_change(void *arg, const struct hf_memstore_change *change)
{
	struct sim *sim = arg;
	struct hf_doc *doc = change->after != NULL ? change->after : change->before;
	struct sim_pod *pod;
	const struct hf_json *meta;

	if (change->resource != &hf_pods)
		return;
	sim_lifecycle_pod(sim, change);
	if (change->before == NULL) {
		pod_created(sim, doc);
		return;
	}
	pod = hf_map_get(sim->kubelet->pods, hf_doc_uid(doc));
	if (pod == NULL)
		return;
	if (change->after == NULL) {
		pod_gone(pod);
		return;
	}
	meta = hf_json_get(hf_doc_json(doc), "metadata");
	if (hf_json_get(meta, "deletionTimestamp") != NULL && !pod->deleted)
		pod_told_to_end(pod, meta);
	if (!pod->told_stop &&
	    hf_json_path(hf_doc_json(doc), "spec", "activeDeadlineSeconds", NULL) != NULL)
		pod_told_to_stop(pod);
}

void sim_kubelet_init(struct sim *sim)
{
	struct sim_kubelet *kubelet = hf_xcalloc(1, sizeof(*kubelet));

	kubelet->pods = hf_map_create(PODS_MAX, 0, pod_free);
	kubelet->starts = hf_map_create(PODS_MAX, 0, free);
	kubelet->observer = (struct hf_memstore_observer){
		.changed = on_change, .reset = sim_on_reset, .arg = sim};
	hf_rng_init(&kubelet->rng, sim->seed + 4);
	hf_rng_init(&kubelet->beside, sim->seed + 40);
	hf_rng_init(&kubelet->again, sim->seed + 42);
	kubelet->deeds = hf_timer_create(sim->loop, on_deed, sim);
	sim->kubelet = kubelet;
	hf_memstore_observe(sim->memstore, &kubelet->observer);
	sim_nodes_init(sim);
	deed_arm(sim);
}

void sim_kubelet_release(struct sim *sim)
{
	sim_nodes_release(sim);
	hf_memstore_unobserve(sim->memstore, &sim->kubelet->observer);
	hf_map_destroy(sim->kubelet->pods);
	hf_map_destroy(sim->kubelet->starts);
	hf_timer_destroy(sim->kubelet->deeds);
	free(sim->kubelet);
}
