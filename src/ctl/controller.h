/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_CONTROLLER_H
#define HF_CTL_CONTROLLER_H

#include "ctl/metrics.h"
#include "ctl/recorder.h"
#include "ctl/webhook.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Further controllers, such as the fleet's, that work beside the controller for jobs. The
 * modules do not include each other: the program joins them by these two structs.
 *
 * - struct hf_controller is what the controller for jobs may do with a further controller.
 * - struct hf_controller_env is what a further controller may ask of the controller for jobs.
 *
 * Lifetime: the controller for jobs creates the others when it is created itself, and destroys
 * them first. So the env stays valid as long as they exist.
 */
struct hf_controller {
	const struct hf_controller_ops *ops;
};

/* Asks for each of `nodes`, in their order, whether it may go out of use while the nodes of `out` are out of use. A
 * node that may go out counts as out of use for all later nodes of the list. */
struct hf_limit_question {
	const char *const *nodes;
	size_t len;
	const char *const *out;
	size_t out_len;
	/* For each node: a static text with the limit that keeps the node in use. NULL: the node may go out of use. */
	const char **ret_limits;
};

/* A restart of a job that a device caused, or the end of the job for that reason, by the job's ledger. */
struct hf_device_restart {
	const char *node; /* the node of the device; never NULL */
	hf_time at;       /* when the operator saw it */
};
typedef void (*hf_device_restart_fn)(void *arg, const struct hf_device_restart *restart);

struct hf_controller_ops {
	/* Begins to list and watch. */
	void (*start)(struct hf_controller *controller);
	/* Called when a cache of the controller for jobs has become complete. */
	void (*wake)(struct hf_controller *controller);
	/* Cancels the requests under way. The controller sends no more requests. */
	void (*stop)(struct hf_controller *controller);
	/* Brings the controller's gauges up to date. Called only if the env has metrics. */
	void (*update_metrics)(struct hf_controller *controller);
	/* Frees the controller without any further request, as if the process had died. */
	void (*destroy)(struct hf_controller *controller);
	/* As find_limits of the env. NULL: the controller has no such limits. */
	void (*find_limits)(struct hf_controller *controller,
			    const struct hf_limit_question *question);
};

struct hf_controller_env {
	struct hf_loop *loop;
	struct hf_store *store;
	struct hf_recorder *recorder;
	struct hf_metrics *metrics; /* NULL: no metrics */
	uint64_t seed;              /* seed of jitter and hash tables */
	hf_time request_timeout;    /* timeout of each request; span */
	const char *image;          /* image of this program; NULL: unknown */
	const char *pod_ns; /* namespace of the operator's own pods; NULL: it runs in no pod */
	const struct hf_webhooks *webhooks; /* NULL: the program calls none */
	void *arg;                          /* argument of the functions below */

	/* Returns the API server's time, as far as it is known. The time never steps back. */
	hf_time (*now)(void *arg);
	/* Must be called with each reply of the API server: its Date header sets the clock that
	 * `now` reads. */
	void (*heard)(void *arg, const struct hf_reply *reply);
	/* Logs an error of a request that is being retried. what: what was requested, such as
	 * "healthpolicies". */
	void (*problem)(void *arg, const char *what, int code, const char *message);
	/* True once all pods and the jobs that own them have been listed. */
	bool (*knows_pods)(void *arg);
	/* Returns the key of the job that owns the pod, such as "pytorchjobs/ns/name". NULL: no job
	 * owns the pod, or the pod has another UID. With uid "" every UID is accepted. */
	const char *(*find_job)(void *arg, const char *ns, const char *pod, const char *uid);
	/* True if the job with this key has the condition Restarting=True. key may be NULL. */
	bool (*is_restarting)(void *arg, const char *key);
	/* True if a restart under way of the job with this key ends this pod. key may be NULL. */
	bool (*is_moved)(void *arg, const char *key, const struct hf_json *pod);
	/* Returns the field by which the job with this key fails once this pod of it is evicted: its rules, or the limit of its
	 * budget for infrastructure, unless the eviction belongs to a restart under way. NULL: the job does not fail. key may
	 * be NULL. */
	const char *(*fails_by_eviction)(void *arg, const char *key, const struct hf_json *pod);
	/* Finds the limits of HealthPolicies that forbid nodes to go out of use. */
	void (*find_limits)(void *arg, const struct hf_limit_question *question);
	/* Calls fn for each restart by a device that the ledgers of all jobs still have. */
	void (*each_device_restart)(void *arg, hf_device_restart_fn fn, void *fn_arg);
};

/* Most controllers that the program may join to the controller for jobs. */
#define HF_CONTROLLERS_MAX 4

#endif
