/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_KUBELET_PLAN_INTERNAL_H
#define HF_LOCAL_KUBELET_PLAN_INTERNAL_H

#include "base/time.h"
#include "local/journal_internal.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * What should happen to the containers of a pod now: a pure function of the pod's
 * containers, what the journal tells of them and the time.
 *
 * Init containers run one after the other, then all others.  A container that ended is
 * started again by the pod's restartPolicy: the first time at once, then after 10 s,
 * twice as long each time up to 300 s, and from 10 s again once an attempt has lasted
 * 10 minutes (as upstream's kubelet, kuberuntime and util/flowcontrol).  The back-off in
 * force is kept in the journal, so a kubelet that starts anew goes on where it was.
 */
#define HF_BACKOFF_FIRST_S 10u
#define HF_BACKOFF_MAX_S 300u
#define HF_BACKOFF_RESET (10 * HF_MINUTE)

enum hf_restart_policy { HF_RESTART_ALWAYS, HF_RESTART_ON_FAILURE, HF_RESTART_NEVER };
enum hf_pod_phase { HF_PHASE_PENDING, HF_PHASE_RUNNING, HF_PHASE_SUCCEEDED, HF_PHASE_FAILED };
const char *hf_kubelet_phase_name(enum hf_pod_phase phase);

enum hf_container_step {
	HF_STEP_NONE,    /* runs, or ended for good, or its turn has not come */
	HF_STEP_START,   /* start it now */
	HF_STEP_BACKOFF, /* start it at `at` */
	HF_STEP_BLOCKED, /* it would start, but cannot be prepared; tried again at `at` */
};

struct hf_plan_container {
	bool init;
	const struct hf_container_past *past; /* NULL: never begun */
	hf_time blocked_until;                /* HF_TIME_NONE: not blocked */
	/* What hf_pod_plan says. */
	enum hf_container_step step;
	unsigned attempt;   /* START, BACKOFF, BLOCKED: the number it gets */
	unsigned backoff_s; /* ... and the back-off in force from then on */
	hf_time at;
};

struct hf_pod_plan {
	/* Asked: */
	enum hf_restart_policy policy;
	bool stopping; /* nothing is started any more */
	hf_time now;
	struct hf_plan_container *containers; /* init containers first, in the order of the spec */
	size_t n;
	/* Answered: */
	enum hf_pod_phase phase;
	bool initialized; /* every init container has succeeded */
	bool over;        /* its containers ended it: nothing would run, stopping or not */
	bool finished;    /* nothing runs and nothing will */
	hf_time wake;     /* look again then; HF_TIME_NEVER */
};
void hf_pod_plan(struct hf_pod_plan *plan);

bool hf_attempt_running(const struct hf_attempt *attempt); /* BEGUN too */
bool hf_attempt_ended(const struct hf_attempt *attempt);
bool hf_attempt_succeeded(const struct hf_attempt *attempt);
/* As status.containerStatuses shows it: 128 + n for signal n. */
int hf_attempt_exit_code(const struct hf_attempt *attempt);

#endif
