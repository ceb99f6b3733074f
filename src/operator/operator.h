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

/* Requests under way, all jobs together: beyond about 32 an API server only gets slower. */
#define HF_OPERATOR_IN_FLIGHT_MAX 32
/* Passes at once.  Each holds one step's memory (about 1 KB a rank) until it is over. */
#define HF_OPERATOR_PASSES_MAX 40
/* Of one step: a job of 20,000 ranks with its edits and texts. */
#define HF_OPERATOR_PASS_BYTES_MAX ((size_t)256 << 20)

/* A pass that is over, for progress displays and tests.  Valid during the callback. */
struct hf_operator_pass {
	const struct hf_framework *framework;
	struct hf_doc *job;         /* as last stored */
	const struct hf_plan *plan; /* NULL: the step failed */
	bool told;                  /* its events are recorded, and their content is stored */
	int code;                   /* 0: everything planned was done; else why the rest was not */
	const char *message;        /* of code, "" for 0 */
	bool gone;                  /* the job is no longer there: what failed is no trouble */
};

struct hf_operator_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *ns; /* NULL: all namespaces; copied */
	const struct hf_framework *const
		*frameworks;         /* the kinds to serve; ends with NULL; static */
	struct hf_settings settings; /* strings outlive the operator */
	/* A YAML list of containers that replaces the built-in init container, with {{.MasterAddr}},
	 * {{.InitContainerImage}} and {{.MaxTries}}; NULL: none.  Copied. */
	const char *init_container_template;
	uint64_t seed;              /* of jitter and tables: drawn by the program */
	struct hf_metrics *metrics; /* outlives the operator; NULL: no metrics */
	size_t in_flight_max;       /* 0: HF_OPERATOR_IN_FLIGHT_MAX */
	size_t passes_max;          /* 0: HF_OPERATOR_PASSES_MAX */
	/* Requests of passes a second, and how many at once after a rest; 0: any. */
	double qps;
	unsigned burst;
	hf_time request_timeout; /* span; 0: 30 s */

	/* Watch the CRDs of the kinds, to see whether they keep the ledger. False: the first reply
	 * without it decides. */
	bool watch_crds;

	/* Watch Nodes, and read Leases and other objects while plans ask for them. False: the
	 * kubelet runs in this process, and every node is alive. Without the right to list Nodes
	 * every node is silent, and none is ever lost. */
	bool watch_nodes;
	/* Watch what agents report of devices and processes, also without watch_nodes, where the
	 * agent and the kubelet run in this process. */
	bool watch_agents;
	/* Creates the controller that works beside this one. Needs watch_nodes and all namespaces;
	 * else it is not called. NULL: none. */
	struct hf_controller *(*create_companion)(const struct hf_controller_env *env);
	/* Image of this program, for the pods of the companion. NULL: unknown. Must stay valid. */
	const char *image;
	/* May be NULL. Called with each version of a job that a cache takes in, except while this
	 * operator may be writing to the job. `was` is the version before; NULL for a new job. Must
	 * not destroy the operator. */
	void (*job_seen)(void *arg, struct hf_doc *was, struct hf_doc *job);
	void *job_seen_arg;
	/* May be NULL. */
	void (*passed)(void *arg, const struct hf_operator_pass *pass);
	/* An error that is being retried; key is "pytorchjobs/ns/name" or a plural. Code 0: the
	 * error of a plural is over. */
	void (*problem)(void *arg, const char *key, int code, const char *message);
	void *arg;
};

/* HF_E_INVALID: the init container template cannot be used; HF_E_UNSUPPORTED: the store does not
 * know a kind. */
int hf_operator_create(const struct hf_operator_options *options, struct hf_operator **ret_operator,
		       struct hf_error *err) HF_MUST_CHECK;
/* Begins to list and watch, from the loop. Passes over a kind begin once its jobs, pods and
 * services are known. A kind with a missing CRD is looked for again and holds up no other. */
void hf_operator_start(struct hf_operator *op);
/* Begins no pass and sends no request any more. Calls `stopped` from the loop when all replies are
 * in. */
void hf_operator_stop(struct hf_operator *op, hf_task_fn stopped, void *arg);
/* Cancels everything at once, as if the process had died. NULL is fine. */
struct hf_operator *hf_operator_destroy(struct hf_operator *op);

/* All jobs of the kinds that the cluster knows are listed, and it knows at least one kind. */
bool hf_operator_synced(const struct hf_operator *op);
/* Adds a sentence that names the kinds the cluster lacks; nothing if it has all. */
void hf_operator_missing(const struct hf_operator *op, struct hf_strbuf *sb);
/* No pass is running or waiting, and no event is waiting to be sent. */
bool hf_operator_idle(const struct hf_operator *op);
/* API-server time, as estimated from its replies and the monotonic clock; never steps back. */
hf_time hf_operator_now(struct hf_operator *op);

/* The plan for a job as the caches have it now, for `why`. Nothing is performed. The results borrow
 * from the arena and the caches: use them before the loop runs again. HF_E_NOT_FOUND: no such job. */
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
