/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_LOG_TAIL_H
#define HF_APP_LOG_TAIL_H

#include "base/strbuf.h"

#include <stddef.h>

/*
 * Keeps the end of each pod's log in memory, for the report of a failure: the pod and its files
 * may be gone by then. When a container starts again, the first bytes of its new log replace the
 * kept end of the previous log.
 */
struct hf_log_tails;

#define HF_LOG_TAIL_BYTES_MAX ((size_t)32 << 10) /* of one pod */
#define HF_LOG_TAIL_PODS_MAX 1024

struct hf_log_tails *hf_log_tails_create(void);
struct hf_log_tails *hf_log_tails_destroy(struct hf_log_tails *tails); /* NULL is fine */

/* Note that a container of the pod has started: the next bytes of its log replace the kept
 * bytes. */
void hf_log_tails_begin(struct hf_log_tails *tails, const char *pod);
void hf_log_tails_add(struct hf_log_tails *tails, const char *pod, const char *bytes, size_t len);
/* Return the kept end of the pod's log; its first line may be incomplete. Borrowed until the next
 * call. NULL: there are no bytes. */
const struct hf_strbuf *hf_log_tails_get(struct hf_log_tails *tails, const char *pod);

#endif
