/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_READY_H
#define HF_CLI_READY_H

#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * Counts the pods of each job whose condition Ready is True.  A job's own status counts active pods,
 * and a pod in a crash loop is active too.
 */
struct hf_ready;

struct hf_ready *hf_ready_create(void);
struct hf_ready *hf_ready_destroy(struct hf_ready *ready); /* NULL is fine */

/* Count a new version of a pod; gone: the pod was deleted.  True: the count of its job has changed. */
bool hf_ready_see(struct hf_ready *ready, struct hf_doc *pod, bool gone);
/* Count a pod no longer, as if it were deleted; an unknown UID is fine.  True: as hf_ready_see. */
bool hf_ready_forget(struct hf_ready *ready, const char *uid);
int64_t hf_ready_count(const struct hf_ready *ready, const char *ns, const char *job);

/* Return the name of the pod's job, from its label; NULL: the pod has no job label. */
const char *hf_pod_job(struct hf_doc *pod);

HF_END_DECLS

#endif
