/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_MANAGER_H
#define HF_OPERATOR_MANAGER_H

#include "ctl/lease.h"
#include "operator/operator.h"

/*
 * Decides when this operator may act: it holds the Lease (if leaders are elected), and no other
 * operator writes to its jobs (operator/rival.h).
 *   STANDBY ─Lease taken─▶ LOOKING ─no rival─▶ LEADING ─stop─▶ STOPPING ─▶ OVER
 *      ▲                    │    ▲               │  │             (Lease given up)
 *      │               a rival   │30 s to 10 min │  └─ a rival wrote or is ready ─▶ YIELDING
 *      │                    └─▶ YIELDING ◀──────┘
 *      └──────────── Lease lost, from any of them ┘
 * The operator exists only while LEADING and STOPPING. When the Lease is lost or a rival appears,
 * the manager destroys it in the same turn, as if the process had died; nothing of it is sent
 * afterwards. Writes pass a guard (ctl/write_guard.h), which asks the Lease by the monotonic clock
 * before each one. So a process that was stopped and continues sends nothing, whichever callback
 * runs first.
 * Works on the store interface and the loop. Lifetime: process.
 */
struct hf_manager;

enum hf_manager_state {
	HF_MANAGER_STANDBY,
	HF_MANAGER_LOOKING,
	HF_MANAGER_YIELDING,
	HF_MANAGER_LEADING,
	HF_MANAGER_STOPPING,
	HF_MANAGER_OVER,
};
const char *hf_manager_state_name(enum hf_manager_state state); /* "standby", … */

/* First and longest time for which this operator waits beside a rival. */
#define HF_MANAGER_YIELD_MIN (30 * HF_SECOND)
#define HF_MANAGER_YIELD_MAX (10 * HF_MINUTE)
/* How often a leader looks for the Deployment of the Go operator: one GET for each namespace. */
#define HF_MANAGER_LOOK_AGAIN HF_MINUTE
/* For this long after a rival made it step back, managedFields in lists alone count as writes of a
 * rival. */
#define HF_MANAGER_WARY (10 * HF_SECOND)
/* Times in managedFields count only up to this much later than the estimated server time. */
#define HF_MANAGER_SKEW (5 * HF_SECOND)
/* How long a stop waits for requests under way.  With two seconds for the Lease that is less than
 * the ten seconds that Holdfast's Deployment allows. */
#define HF_MANAGER_STOP_MAX (6 * HF_SECOND)
#define HF_RIVAL_NS_MAX 2

struct hf_manager_options {
	/* Options of the operator: loop, store, metrics and so on; job_seen must be NULL. */
	struct hf_operator_options op;
	bool elect;
	/* A store for the Lease alone, so that no other request delays its renewals; NULL: the
	 * operator's store. */
	struct hf_store *lease_store;
	const char *lease_ns, *lease_name, *identity; /* copied */
	/* Namespaces in which the Go operator's Deployment may be; NULL: no (further) namespace. */
	const char *rival_ns[HF_RIVAL_NS_MAX];
	/* Called from the loop when the state changes; `why` is a sentence for people.  May be
	 * NULL. */
	void (*changed)(void *arg, enum hf_manager_state state, const char *why);
	/* Called with an error that is being retried, of the election or of the search for rivals;
	 * what: "lease", … */
	void (*problem)(void *arg, const char *what, int code, const char *message);
	void *arg; /* of these two */
};

/* Fails like hf_operator_create, which is tried once here, so that it does not fail later. */
int hf_manager_create(const struct hf_manager_options *options, struct hf_manager **ret_manager,
		      struct hf_error *err) HF_MUST_CHECK;
void hf_manager_start(struct hf_manager *manager);
/* Finish requests under way (in HF_MANAGER_STOP_MAX at most), give the Lease up, then call
 * `stopped`. */
void hf_manager_stop(struct hf_manager *manager, hf_task_fn stopped, void *arg);
/* Cancel everything at once, as if the process had died.  NULL is allowed; returns NULL. */
struct hf_manager *hf_manager_destroy(struct hf_manager *manager);

/* Returns the operator that the manager runs. NULL: the state is neither LEADING nor STOPPING. */
struct hf_operator *hf_manager_operator(const struct hf_manager *manager);
/* 0: this process acts, or stands by for another process that acts; err's text is then "" or a hint
 * for people.  HF_E_UNAVAILABLE: err's text says why not. */
int hf_manager_ready(const struct hf_manager *manager, struct hf_error *err) HF_MUST_CHECK;
/* Before hf_metrics_render. */
void hf_manager_update_metrics(struct hf_manager *manager);

#endif
