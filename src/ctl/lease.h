/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_LEASE_H
#define HF_CTL_LEASE_H

#include "base/time.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Leader election with a Lease of coordination.k8s.io/v1. It works together with the electors of
 * client-go.
 *
 *     READ ─ no holder, ours, or expired ──────────────▶ WRITE ─ 200 ─▶ held ─ each `retry` ─▶ WRITE
 *      ▲ └─ held by another process: READ again after `retry` and jitter
 *      └──────────── any answer other than 200 ◀───────────┘
 *
 * Clocks. Another process's Lease has expired when this process has seen its record unchanged for
 * the duration that the record states. The times in the record are never used. Our own Lease is
 * valid for renew_deadline from the moment the renewing write was *sent*. That moment is earlier
 * than any other process can have seen the write, and renew_deadline is shorter than `duration`,
 * after which others take over. The difference is the margin for late requests and drifting clocks.
 * Both spans use the monotonic clock, which continues while a process is stopped.
 *
 * A Lease alone does not stop late writes. The holder must call hf_lease_left before each request,
 * and must limit the request to that time (ctl/write_guard.h does both).
 *
 * Any content of the Lease, even one edited by hand, counts as the record of another process. This
 * process waits for the stated duration (for its own duration if none is stated, for one hour at
 * most) and then overwrites the record. A Lease that was deleted is created again.
 */
struct hf_lease;

/* client-go's defaults. A dead leader is replaced after 15 to 20 s. An API server that is
 * unreachable for less than 10 s does not end the leadership. */
#define HF_LEASE_DURATION (15 * HF_SECOND)
#define HF_LEASE_RENEW_DEADLINE (10 * HF_SECOND)
#define HF_LEASE_RETRY (2 * HF_SECOND)
/* The longest duration that this process respects in another process's record. */
#define HF_LEASE_DURATION_MAX HF_HOUR
/* The longest time that a release may take. */
#define HF_LEASE_RELEASE_MAX (2 * HF_SECOND)

struct hf_lease_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *ns, *name; /* copied */
	const char *identity;  /* unique for each process; copied */
	hf_time duration;      /* 0: HF_LEASE_DURATION; whole seconds */
	/* 0: the constants above; retry < renew_deadline < duration. */
	hf_time renew_deadline, retry;
	uint64_t seed; /* for the jitter */

	/* Called when the Lease was gained or lost. The call comes from the loop; it must not
	 * destroy the lease. */
	void (*changed)(void *arg, bool held, const char *why);
	/* A read or write failed and will be repeated; may be NULL. */
	void (*problem)(void *arg, int code, const char *message);
	void *arg;
};

struct hf_lease *hf_lease_create(const struct hf_lease_options *options);
void hf_lease_start(struct hf_lease *lease);
/* Frees the struct and writes nothing: the Lease in the API server expires on its own. Accepts
 * NULL; returns NULL. */
struct hf_lease *hf_lease_destroy(struct hf_lease *lease);

/* How long this process still holds the Lease; 0 if another process or no process does. */
hf_time hf_lease_left(const struct hf_lease *lease);
/* The holder's identity as last read or written; "" if there is none or it is unknown. */
const char *hf_lease_holder(const struct hf_lease *lease);

/* Releases the Lease if this process holds it, so that the next leader need not wait. The Lease
 * counts as not held from this call on. `done` runs from the loop after the API server's answer,
 * or after HF_LEASE_RELEASE_MAX without one. `changed` is not called any more. */
void hf_lease_release(struct hf_lease *lease, hf_task_fn done, void *arg);

#endif
