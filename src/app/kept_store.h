/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_KEPT_STORE_H
#define HF_APP_KEPT_STORE_H

#include "app/kept_runs.h"
#include "loop/loop.h"
#include "store/store.h"

/*
 * A kept run as a server: a store in memory with the objects of the run. The logs come from the
 * folder of the run.  The verbs that only read (why, describe, logs, events) work on it as on a cluster.
 */
struct hf_kept_store;

/* Open the run.  *ret_client is a client of the store; destroy it before the kept store.  HF_E_NOT_FOUND: the run ended
 * before its job was created, or its job is not created yet. */
int hf_kept_store_open(struct hf_loop *loop, const struct hf_kept_run *run,
		       struct hf_kept_store **ret_kept, struct hf_store **ret_client,
		       struct hf_error *err) HF_MUST_CHECK;
/* Follow the run while its process lives: what it saves, about once a second, replaces the objects of the store, and logs
 * can be followed. over is called once its process has ended. If the run ended before its job, the store then loses
 * the job. */
void hf_kept_store_follow(struct hf_kept_store *kept, void (*over)(void *arg), void *over_arg);
struct hf_kept_store *hf_kept_store_close(struct hf_kept_store *kept); /* NULL is fine */

#endif
