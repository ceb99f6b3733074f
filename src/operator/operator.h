/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_OPERATOR_H
#define HF_OPERATOR_OPERATOR_H

#include "core/model/framework.h"
#include "core/model/observed.h"
#include "core/step.h"
#include "ctl/controller.h"
#include "ctl/metrics.h"
#include "json/doc.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The job operator: gives facts to the step (core) and performs its plan.
 *   watches ──▶ caches ──▶ queue of jobs ──▶ pass:  read ─▶ hf_job_step ─▶ status patch
 *                  ▲                                                          │ its 200
 *                  └────────── replies go into the caches at once ◀── stages ◀┘
 * A job has at most one pass at a time. A pass runs one step, sends at most one status patch
 * (guarded by resourceVersion), then the plan's stages in order, then events and the wake-up. A
 * reply that is not good ends the pass; the job is read and stepped again. Between passes only
 * times and digests are remembered, so a restart of the process loses nothing.
 * Works on the store interface: the embedded plane, an API server and the simulator run the same
 * code. The loop is its only clock.
 */
struct hf_operator;

/* The most requests under way, of all jobs together.  Beyond about 32, an API server only gets
 * slower. */
#define HF_OPERATOR_IN_FLIGHT_MAX 32
/* The most passes at once.  Each pass holds the memory of one step (about 1 KB a rank) until it is
 * over. */
#define HF_OPERATOR_PASSES_MAX 40
/* The most memory of one pass: enough for a job of 20,000 ranks with its edits and texts. */
#define HF_OPERATOR_PASS_BYTES_MAX ((size_t)256 << 20)

/* The report on a pass that is over, for progress displays and tests.  Valid during the
 * callback. */
struct hf_operator_pass {
	const struct hf_framework *framework;
	struct hf_doc *job;         /* the job as it was last stored in the API server */
	const struct hf_plan *plan; /* NULL: the step failed */
	bool told; /* the events of the plan are recorded, and its status is stored */
	/* 0: the pass did all that was planned; else the error why it did not */
	int code;
	const char *message; /* the text that belongs to `code`; "": code is 0 */
	bool gone;           /* the job no longer exists, so a failure of the pass is no problem */
};

/* A restart that has ended, or the first step after it, for traces.  Valid during the callback. */
struct hf_operator_recovery {
	const struct hf_job_view *job;
	const struct hf_record *record;
	/* false: all ranks run again.  true: a step was seen after that, and the rest was reported
	 * before. */
	bool stepped;
};

struct hf_operator_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *ns; /* NULL: all namespaces; copied */
	const struct hf_framework *const
		/* the kinds of jobs to serve; the list ends with NULL and must be static */
		*frameworks;
	struct hf_settings settings; /* strings outlive the operator */
	/* A YAML list of containers that replaces the built-in init container, with {{.MasterAddr}},
	 * {{.InitContainerImage}} and {{.MaxTries}}; NULL: none.  Copied. */
	const char *init_container_template;
	uint64_t seed;              /* seed for jitter and hash tables, drawn by the program */
	struct hf_metrics *metrics; /* outlives the operator; NULL: no metrics */
	size_t in_flight_max;       /* 0: HF_OPERATOR_IN_FLIGHT_MAX */
	size_t passes_max;          /* 0: HF_OPERATOR_PASSES_MAX */
	/* Limit of requests of passes a second, and how many may be sent at once after a rest; qps
	 * 0: no limit. */
	double qps;
	unsigned burst;
	hf_time request_timeout; /* span; 0: 30 s */

	/* Watch the CRDs of the kinds, to see whether they keep the ledger.  False: the first reply
	 * without the ledger decides. */
	bool watch_crds;

	/* Watch Nodes, and read Leases and other objects while plans ask for them.  False: the
	 * kubelet runs in this process, and every node is alive.  Without the right to list Nodes
	 * every node counts as silent, and none is ever lost. */
	bool watch_nodes;
	/* Watch what agents report of devices and processes.  This is possible without watch_nodes
	 * as well: agent and kubelet then run in this process. */
	bool watch_agents;
	/* Functions that create the controllers beside the operator; NULL: none.  With watch_nodes, an
	 * operator of all namespaces calls them in this order. */
	struct hf_controller *(*companions[HF_CONTROLLERS_MAX])(
		const struct hf_controller_env *env);
	/* The image of this program, for the pods of the controller for nodes.  NULL: unknown.
	 * Must stay valid. */
	const char *image;
	/* Namespace of the operator's own pods; NULL: it runs in no pod.  Must stay valid. */
	const char *pod_ns;
	/* For the companions; NULL: no webhook is called.  Must stay valid. */
	const struct hf_webhooks *webhooks;
	/* Called with each version of a job that a cache takes in, except while this operator may
	 * be writing to the job.  `was` is the version before; NULL for a new job.  Must not
	 * destroy the operator.  May be NULL. */
	void (*job_seen)(void *arg, struct hf_doc *was, struct hf_doc *job);
	void *job_seen_arg;
	/* May be NULL. */
	void (*passed)(void *arg, const struct hf_operator_pass *pass);
	/* Called once for each restart and each first step after one, when the status with it is
	 * stored.  May be NULL. */
	void (*recovered)(void *arg, const struct hf_operator_recovery *recovery);
	/* Called when a job or a pod of a job was added, changed or deleted in the caches; key as
	 * below.  Must not call the operator.  May be NULL. */
	void (*seen)(void *arg, const char *key);
	/* Called with each event that the operator records.  The callback must not record an event.  May be NULL. */
	void (*noted)(void *arg, const struct hf_event_note *note, hf_time now);
	/* Called with an error that is being retried; key is "pytorchjobs/ns/name" or a plural.
	 * Code 0: the problem of that plural is over. */
	void (*problem)(void *arg, const char *key, int code, const char *message);
	void *arg;
};

/* HF_E_INVALID: the init container template cannot be used.  HF_E_UNSUPPORTED: the store does not
 * know a kind. */
int hf_operator_create(const struct hf_operator_options *options, struct hf_operator **ret_operator,
		       struct hf_error *err) HF_MUST_CHECK;
/* Begin to list and watch, from the loop.  Passes over a kind begin when its jobs, pods and
 * services are known.  A kind with a missing CRD is looked for again and does not delay other
 * kinds. */
void hf_operator_start(struct hf_operator *op);
/* Begin no more passes and send no more requests.  Calls `stopped` from the loop when all replies
 * are in. */
void hf_operator_stop(struct hf_operator *op, hf_task_fn stopped, void *arg);
/* Cancel everything at once, as if the process had died.  NULL is allowed. */
struct hf_operator *hf_operator_destroy(struct hf_operator *op);

/* All jobs of the kinds that the cluster knows are listed, and the cluster knows at least one
 * kind. */
bool hf_operator_synced(const struct hf_operator *op);
/* Append a sentence that names the kinds that the cluster lacks; nothing if it has all. */
void hf_operator_missing(const struct hf_operator *op, struct hf_strbuf *sb);
/* No pass is running or waiting, and no event waits to be sent. */
bool hf_operator_idle(const struct hf_operator *op);
/* API-server time, estimated from the replies and the monotonic clock; never steps back. */
hf_time hf_operator_now(struct hf_operator *op);

/* Compute the plan for a job as the caches have it now, for `holdfast why`.  Nothing is performed.
 * The results borrow from the arena and the caches: use them before the loop runs again.
 * HF_E_NOT_FOUND: no such job. */
struct hf_job_ref {
	const struct hf_framework *framework;
	const char *ns;
	const char *name;
};
int hf_operator_explain(struct hf_operator *op, const struct hf_job_ref *job,
			struct hf_arena *arena, struct hf_job_view *ret_view,
			struct hf_plan *ret_plan, struct hf_error *err) HF_MUST_CHECK;

/* Bring the gauges up to date, before hf_metrics_render. */
void hf_operator_update_metrics(struct hf_operator *op);

#endif
