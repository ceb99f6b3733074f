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
 * Leader election by a coordination.k8s.io/v1 Lease, understood by client-go's electors
 * and they by this one.
 *
 *   READ ─ nobody's, ours, or not renewed for its duration ─▶ WRITE ─ 200 ─▶ held
 *    ▲ └─ somebody's: again after `retry` and some jitter       │            │ each `retry`:
 *    └──────────────── anything but 200 ◀───────────────────────┴────────────┘ WRITE again
 *
 * Clocks.  Another's Lease has run out when *we* have seen its record unchanged for as
 * long as it says; the times written in it are for people.  Our own is good for
 * renew_deadline from the moment the write that renewed it was *sent*, which is
 * earlier than anybody else can have seen it, and shorter than `duration`, after which
 * others take over: the difference is what late requests and drifting clocks may cost.
 * Both are spans of the monotonic clock, which runs on while a process is stopped.
 *
 * A Lease does not fence: who holds it must ask hf_lease_left before each request it
 * sends and end that request within what is left (ctl/front.h does both).
 *
 * Whatever is found in the Lease, by hand or by mistake, is a record that somebody
 * else wrote: it is waited for its duration (ours, if it states none; an hour at
 * most), then overwritten.  A Lease that was deleted is made again.
 */
struct hf_lease;

/* client-go's figures: a dead leader is replaced after 15 to 20 s, and an API server that is
 * away for less than 10 s costs no leadership. */
#define HF_LEASE_DURATION (15 * HF_SECOND)
#define HF_LEASE_RENEW_DEADLINE (10 * HF_SECOND)
#define HF_LEASE_RETRY (2 * HF_SECOND)
/* What a record may say of its own duration. */
#define HF_LEASE_DURATION_MAX HF_HOUR
/* How long giving it up may take. */
#define HF_LEASE_RELEASE_MAX (2 * HF_SECOND)

struct hf_lease_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *ns, *name;         /* copied */
	const char *identity;          /* of this process, different from every other's; copied */
	hf_time duration;              /* 0: HF_LEASE_DURATION; whole seconds */
	hf_time renew_deadline, retry; /* 0: the figures above; retry < renew_deadline < duration */
	uint64_t seed;                 /* of the jitter */

	/* It was got or lost; from the loop.  Must not destroy the lease. */
	void (*changed)(void *arg, bool held, const char *why);
	/* A read or write failed and will be tried again; may be NULL. */
	void (*problem)(void *arg, int code, const char *message);
	void *arg;
};

struct hf_lease *hf_lease_create(const struct hf_lease_options *options);
void hf_lease_start(struct hf_lease *lease);
/* Nothing is written: the Lease runs out by itself.  NULL is fine; returns NULL. */
struct hf_lease *hf_lease_destroy(struct hf_lease *lease);

/* How long it is still held, as of now; 0: it is not. */
hf_time hf_lease_left(const struct hf_lease *lease);
/* Who held it when it was last read or written; "": nobody, or not known. */
const char *hf_lease_holder(const struct hf_lease *lease);

/*
 * The end: give it up, if it is held, so that the next one need not wait.  From this call on it
 * is not held; `done` runs from the loop once the API server has answered, or did not for
 * HF_LEASE_RELEASE_MAX.  `changed` is not called any more.
 */
void hf_lease_release(struct hf_lease *lease, hf_task_fn done, void *arg);

#endif
