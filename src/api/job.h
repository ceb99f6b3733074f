/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_JOB_H
#define HF_API_JOB_H

#include "core/model/framework.h"
#include "core/model/observed.h"
#include "core/step.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * Reads documents into core's plain structs and writes core's status back into a document.
 *
 * No field gets a default: an absent field stays absent (core/model/job.h). Strings are borrowed from the
 * document and lists come from the arena, so both must outlive the result.
 */

/*
 * Reads a job. A field of a wrong type or range counts as absent and is added to errors (may be
 * NULL), with the text of an API server. settings may be NULL.
 */
void hf_job_read(struct hf_doc *doc, const struct hf_framework *framework,
		 const struct hf_settings *settings, struct hf_arena *arena,
		 struct hf_field_errors *errors, struct hf_job_view *ret_view);

/* Writes a digest of the job's spec without runPolicy: 16 hexadecimal digits.  Pods are made from that part of the spec,
 * so a pod with another digest was made before an edit. */
#define HF_SPEC_DIGEST_SIZE 17
void hf_job_spec_digest(const struct hf_json *job, char ret_text[HF_SPEC_DIGEST_SIZE]);

/* Reports unknown keys, as the API server's strict validation does: in metadata, spec, runPolicy,
 * recovery, replica specs, and in pod templates down to the containers. */
void hf_job_read_unknown(struct hf_doc *doc, const struct hf_framework *framework,
			 struct hf_field_errors *errors);

/* Checks the types of all fields, then every rule of core and of the kind. `lint` and admission
 * call this function. old: the stored job if this is an update, else NULL. */
void hf_job_check(struct hf_doc *doc, struct hf_doc *old, const struct hf_framework *framework,
		  struct hf_field_errors *errors);

/*
 * Builds the status object: a copy of the stored one (NULL: none) in which Holdfast's fields are
 * replaced. Members that this module does not know survive, also inside conditions and counts.
 * Entries of replicaStatuses for types that the kind does not have are removed. The caller owns the
 * result.
 */
struct hf_json *hf_status_write(const struct hf_status *status,
				const struct hf_framework *framework, const struct hf_json *stored);

/*
 * The ledger of a job whose CRD has no status.recovery is the text of an annotation. It contains
 * the job's UID, because a user who copies an object copies its annotations too.
 *
 * Builds the merge patch that writes this annotation. The server refuses the patch if the job's
 * resourceVersion has changed. *ret_patch stays unset if the annotation is up to date or the job
 * has no ledger. HF_E_TOO_LARGE: the text is longer than HF_LEDGER_TEXT_MAX.
 */
/* Kubernetes allows 256 KiB for all annotations together; a ledger takes at most 64 KiB. */
#define HF_LEDGER_TEXT_MAX ((size_t)128 << 10)
int hf_ledger_patch(const struct hf_ledger *ledger, const struct hf_framework *framework,
		    struct hf_doc *job, struct hf_doc **ret_patch, struct hf_error *err)
	HF_MUST_CHECK;

/* Returns podFailurePolicy and recovery of a job: the annotation holdfast.dev/run-policy with the fields of spec.runPolicy over
 * it; NULL: none. Without the annotation it is all of spec.runPolicy. The caller owns the result. */
struct hf_json *hf_job_run_policy(const struct hf_json *job);
/* Returns the ledger of a job, from status.recovery or else from the annotation; NULL: none. The
 * caller owns the result. */
struct hf_json *hf_job_recovery(const struct hf_json *job);

/* Reads a job's status without the rest of the job. */
void hf_status_read(const struct hf_json *status, const struct hf_framework *framework,
		    struct hf_arena *arena, struct hf_status *ret_status);

HF_END_DECLS

#endif
