/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RANK_STATES_H
#define HF_APP_RANK_STATES_H

#include "base/map.h"
#include "cli/job_manifest.h"
#include "memstore/memstore.h"

/* What `run` needs to know about the pods of its job. Texts and documents are borrowed from the store. */

/*
 * The ranks of a program. A PyTorchJob has succeeded when rank 0 has. A program (`run train.py`)
 * has succeeded when every rank has, as under torchrun.
 */
struct hf_rank_states {
	const char *unfinished; /* name of a pod that has not ended; NULL: all pods have ended */
	struct hf_doc *failed;  /* a pod that has failed; NULL: no pod has failed */
};
struct hf_rank_states hf_rank_states_of(struct hf_memstore *store, const char *ns);

/* The kubelet cannot make a container of this pod from the manifest and gives this message. */
struct hf_blocked_pod {
	const char *pod, *message; /* NULL: no such pod */
};
struct hf_blocked_pod hf_blocked_pod_of(struct hf_memstore *store, const char *ns);

/* True if the job has no backoffLimit, and a rank of it (pod, or the job as a whole) has been started again. */
bool hf_restarts_without_limit(const struct hf_json *job, const struct hf_json *pod);

/* Add the pod's name to `started` if a container of the pod has run. The values of the map are not
 * used. */
void hf_note_started(struct hf_map *started, struct hf_doc *pod);
/* Say how many ranks of the job are not in `started`. NULL: all ranks are, or the job is elastic and
 * may run with fewer. The caller frees the text. */
char *hf_never_started(const struct hf_manifest *manifest, const struct hf_json *job,
		       const struct hf_map *started);

/* Returns the scheduler's message why no node fits the pod; NULL: the pod is not unschedulable. */
const char *hf_rank_unschedulable(const struct hf_json *pod);

#endif
