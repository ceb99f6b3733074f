/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_PLAN_INTERNAL_H
#define HF_KUBELET_PLAN_INTERNAL_H

#include "base/time.h"
#include "kubelet/runtime/journal_internal.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Decides what should happen to the containers of a pod now: a pure function of its containers,
 * their journal and the time.
 *
 * Init containers run one after the other, then all others. The next container starts as soon as a
 * sidecar has started. A sidecar is restarted under every restartPolicy. The phase does not depend on
 * its exit code.
 *
 * By the pod's restartPolicy a container that has ended starts again: first at once, then after 10 s, then
 * after twice as long each time, up to 300 s. An attempt of 10 minutes resets the back-off to 10 s. Upstream's
 * kubelet does the same (kuberuntime, util/flowcontrol). The journal keeps the back-off, so a new kubelet
 * continues it.
 */
#define HF_BACKOFF_FIRST_S 10u
#define HF_BACKOFF_MAX_S 300u
#define HF_BACKOFF_RESET (10 * HF_MINUTE)

enum hf_restart_policy { HF_RESTART_ALWAYS, HF_RESTART_ON_FAILURE, HF_RESTART_NEVER };
enum hf_pod_phase { HF_PHASE_PENDING, HF_PHASE_RUNNING, HF_PHASE_SUCCEEDED, HF_PHASE_FAILED };
const char *hf_kubelet_phase_name(enum hf_pod_phase phase);

enum hf_container_step {
	/* nothing to do: the container runs, has ended for good, or waits for other containers */
	HF_STEP_NONE,
	HF_STEP_START,   /* start the container now */
	HF_STEP_BACKOFF, /* start the container at `at` */
	HF_STEP_BLOCKED, /* the start could not be prepared; try again at `at` */
};

struct hf_plan_container {
	bool init;
	/* an init container with restartPolicy Always, which runs as long as the other containers */
	bool sidecar;
	/* the container runs, but its startup probe or postStart hook has not succeeded yet */
	bool starting;
	/* the readiness probe fails, which changes only the status of the container */
	bool unready;
	const struct hf_container_past *past; /* NULL: never started */
	hf_time blocked_until;                /* HF_TIME_NONE: not blocked */
	/* The plan: */
	enum hf_container_step step;
	unsigned attempt;   /* number of the next attempt, if step is START, BACKOFF or BLOCKED */
	unsigned backoff_s; /* the delay before the attempt after `attempt`, if that one fails */
	hf_time at;
};

struct hf_pod_plan {
	/* Input: */
	enum hf_restart_policy policy;
	bool stopping; /* no container is started any more */
	hf_time now;
	/* init containers first, in the order of the spec */
	struct hf_plan_container *containers;
	size_t n;
	/* The plan: */
	enum hf_pod_phase phase;
	/* every init container has succeeded and every sidecar has started */
	bool initialized;
	/* the pod's work has ended by itself: no main container would run even if the pod were not
	 * being stopped */
	bool over;
	bool end_sidecars; /* only sidecars still run, so the kubelet tells them to end */
	bool finished;     /* no container runs and none will */
	hf_time wake;      /* when the plan changes without an event; HF_TIME_NEVER: never */
};
void hf_pod_plan(struct hf_pod_plan *plan);

/* Tells whether the container runs and is ready. */
bool hf_plan_container_ready(const struct hf_plan_container *container);
bool hf_attempt_running(const struct hf_attempt *attempt); /* BEGUN or RUNNING */
bool hf_attempt_ended(const struct hf_attempt *attempt);
bool hf_attempt_succeeded(const struct hf_attempt *attempt);
/* Returns the exit code that status.containerStatuses shows: 128 + n for signal n. */
int hf_attempt_exit_code(const struct hf_attempt *attempt);

#endif
