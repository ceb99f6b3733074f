/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_READY_H
#define HF_CLI_READY_H

#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * How many pods of each job are ready, as their Ready conditions say.  A job's own status knows
 * of pods that are active, which one in a crash loop is too.
 */
struct hf_ready;

struct hf_ready *hf_ready_create(void);
struct hf_ready *hf_ready_destroy(struct hf_ready *ready); /* NULL is fine */

/* A pod as it is now, or (gone) was last.  true: its job's number is another one. */
bool hf_ready_see(struct hf_ready *ready, struct hf_doc *pod, bool gone);
int64_t hf_ready_count(const struct hf_ready *ready, const char *ns, const char *job);

/* The name of a pod's job; NULL: it has none. */
const char *hf_pod_job(struct hf_doc *pod);

HF_END_DECLS

#endif
