/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_CONTROLLER_H
#define HF_CTL_CONTROLLER_H

#include "ctl/metrics.h"
#include "ctl/recorder.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A controller that works beside the one for jobs, as the fleet's does. The two modules do not
 * include each other: the program joins them by these two structs.
 *
 * - struct hf_controller is what the controller for jobs may do with the other one.
 * - struct hf_controller_env is what the other one may ask of the controller for jobs.
 *
 * Lifetime: the controller for jobs creates the other one when it is created itself, and destroys
 * it first. So the env stays valid as long as the other controller exists.
 */
struct hf_controller {
	const struct hf_controller_ops *ops;
};

struct hf_controller_ops {
	/* Begins to list and watch. */
	void (*start)(struct hf_controller *controller);
	/* A cache of the controller for jobs is complete. */
	void (*wake)(struct hf_controller *controller);
	/* Cancels the requests under way and sends no more. */
	void (*stop)(struct hf_controller *controller);
	/* Brings the gauges up to date. Called only if the env has metrics. */
	void (*update_metrics)(struct hf_controller *controller);
	/* As if the process had died. */
	void (*destroy)(struct hf_controller *controller);
};

struct hf_controller_env {
	struct hf_loop *loop;
	struct hf_store *store;
	struct hf_recorder *recorder;
	struct hf_metrics *metrics; /* NULL: no metrics */
	uint64_t seed;              /* of jitter and tables */
	hf_time request_timeout;    /* span */
	void *arg;                  /* of the functions below */

	/* The API server's time, as far as it is known. It never steps back. */
	hf_time (*now)(void *arg);
	/* Must be called with each reply: its Date header sets that clock. */
	void (*heard)(void *arg, const struct hf_reply *reply);
	/* Logs an error that is being retried. what: a plural, such as "healthpolicies". */
	void (*problem)(void *arg, const char *what, int code, const char *message);
	/* All pods have been listed. */
	bool (*knows_pods)(void *arg);
	/* Key of the job that owns the pod, such as "pytorchjobs/ns/name". NULL: no job owns it, or the
	 * pod has another UID. uid "": any UID. */
	const char *(*find_job)(void *arg, const char *ns, const char *pod, const char *uid);
	/* The job has condition Restarting=True. key may be NULL. */
	bool (*is_restarting)(void *arg, const char *key);
};

#endif
