/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_SLOW_ENDS_H
#define HF_APP_SLOW_ENDS_H

#include "base/time.h"
#include "json/doc.h"
#include "memstore/memstore.h"

/*
 * Finds pods whose processes run on after SIGTERM, so that `run` can print why nothing happens until the
 * SIGKILL. Each pod is reported once.
 *
 * Input: the pods of the job, at each tick. Output: at most one line.
 */
struct hf_slow_ends;

/* Between SIGTERM and the report: most programs end within this time. */
#define HF_SLOW_ENDS_AFTER (2 * HF_SECOND)

/* job: its name, with which the names of its pods begin. */
struct hf_slow_ends *hf_slow_ends_create(const char *job);
struct hf_slow_ends *hf_slow_ends_destroy(struct hf_slow_ends *ends); /* NULL is fine */

/* Look at the pods of the namespace. stopping_since: when `run` began to end all pods; HF_TIME_NONE: it did
 * not. Return "waiting up to 28 s for worker-1 to end; …" if pods are found that were not reported before;
 * else NULL. The caller frees the text. */
char *hf_slow_ends_look(struct hf_slow_ends *ends, struct hf_memstore *store, const char *ns,
			hf_time stopping_since, hf_time now);

/* The parts of a look, for tests: begin, pass each pod, take the text. */
void hf_slow_ends_begin(struct hf_slow_ends *ends, hf_time stopping_since, hf_time now);
void hf_slow_ends_pod(struct hf_slow_ends *ends, struct hf_doc *pod);
char *hf_slow_ends_take(struct hf_slow_ends *ends);

#endif
