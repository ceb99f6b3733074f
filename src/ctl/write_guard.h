/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CTL_WRITE_GUARD_H
#define HF_CTL_WRITE_GUARD_H

#include "base/time.h"
#include "loop/loop.h"
#include "store/store.h"

/*
 * A store in front of another store. Before each write, it asks how long this process may still
 * write (`left`). If that time is over, it does not send the write. Else it sends the write with a
 * deadline within that time. Reads are forwarded unchanged.
 *
 * A write that is not sent is answered with HF_E_UNAVAILABLE, which means "not done". The answer
 * comes from the loop, as every answer.
 *
 * Watches and logs belong to the store behind and use its handles; end them before you destroy the
 * guard. Destroying the guard ends its requests with HF_E_CANCELED and does not destroy the store
 * behind.
 */
struct hf_write_guard_options {
	struct hf_loop *loop;
	struct hf_store *store; /* the store behind; must outlive the guard */
	/* Returns the span during which writes may still be in flight; 0 or less means that no
	 * write may be sent. If the function is NULL, writes are always sent. */
	hf_time (*left)(void *arg);
	void *arg;
	hf_time timeout; /* deadline of writes that have none; 0: 30 s */
};

struct hf_store *hf_write_guard_create(const struct hf_write_guard_options *options);
/* The number of writes that were not sent. */
unsigned long long hf_write_guard_held_back(const struct hf_store *guard);

#endif
