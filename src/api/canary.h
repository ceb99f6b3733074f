/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_CANARY_H
#define HF_API_CANARY_H

#include "api/device_rollout.h"
#include "api/lifetime.h"

HF_BEGIN_DECLS

/*
 * A canary: a job that a DeviceRollout creates on one node, to prove that training works there.
 * Input: the template in the spec of the DeviceRollout, and the job as the API server has it. Output: the job to
 * create, how the job goes, and the record of its times on the Node. Pure.
 */

/* Checks spec.proof.canary.template. HF_E_INVALID: err names the first wrong field, which begins with `path`. */
int hf_canary_template_check(const struct hf_json *pattern, const char *path, struct hf_error *err)
	HF_MUST_CHECK;

/* Prints the name of the canary of a node: the same facts give the same name, so that a job is not created twice.
 * tries: how often the rollout has begun with the node. */
#define HF_CANARY_NAME_MAX 56
struct hf_canary_place {
	const char *rollout_uid, *node;
	int64_t tries;
	bool before; /* the canary runs before the change */
};
const char *hf_canary_name(const struct hf_canary_place *place, char ret_name[HF_CANARY_NAME_MAX]);

/* Makes the job from the template: with this name and owner, its pods bound to the node with the label
 * kubernetes.io/hostname=hostname, and tolerating the node's cordon. The job has no ttlSecondsAfterFinished. */
struct hf_doc *hf_canary_job(const struct hf_json *pattern, const char *name,
			     const struct hf_owner *owner, const char *hostname);

/* How a canary goes. */
struct hf_canary_state {
	bool succeeded, failed;
	bool leaving;                 /* the job is being deleted */
	const char *message;          /* of the job's failure; NULL: none */
	hf_time created_at, ended_at; /* HF_TIME_NONE: unknown */
	/* how long the job ran, at least 1 once it has succeeded: while all its ranks ran, as far as its ledger says,
	 * or else from its start to its end */
	int64_t run_ms;
};
void hf_canary_read(const struct hf_json *job, struct hf_arena *arena,
		    struct hf_canary_state *ret_state);

/* The text of annotation HF_ROLLOUT_CANARY_ANNOTATION: the shortest times of canaries from this template on the node.
 * template_hash: of hf_canary_hash. */
#define HF_CANARY_HASH_MAX 17
const char *hf_canary_hash(const struct hf_json *pattern, char ret_hash[HF_CANARY_HASH_MAX]);
struct hf_json *hf_canary_history_json(const char *template_hash,
				       const struct hf_rollout_times *times);
/* Returns false if the text is no record of a canary from this template. */
bool hf_canary_history_read(const char *text, const char *template_hash, struct hf_arena *arena,
			    struct hf_rollout_times *ret_times);

HF_END_DECLS

#endif
