/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_FRONT_H
#define HF_CTL_FRONT_H

#include "base/time.h"
#include "loop/loop.h"
#include "store/store.h"

/*
 * A store in front of a store: it asks, before each write is sent, how long this process
 * may still act, sends nothing when that is over, and gives the write a deadline
 * within it.  Reads pass.
 *
 * A write that is not sent is answered with HF_E_UNAVAILABLE ("not done"), from the
 * loop as every answer.
 *
 * Watches and logs are those of the store behind, with its handles: end them before
 * the front is destroyed.  Destroying the front ends its requests with
 * HF_E_CANCELED and leaves the store behind alone.
 */
struct hf_front_options {
	struct hf_loop *loop;
	struct hf_store *store; /* behind; outlives the front */
	/* Span for which writes may be under way from now; 0 or less: none may be sent.  NULL:
	 * always. */
	hf_time (*left)(void *arg);
	void *arg;
	hf_time timeout; /* of writes that state none; 0: 30 s */
};

struct hf_store *hf_front_create(const struct hf_front_options *options);
/* Writes that were not sent, so far. */
unsigned long long hf_front_held_back(const struct hf_store *front);

#endif
