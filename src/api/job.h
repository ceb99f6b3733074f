/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_JOB_H
#define HF_API_JOB_H

#include "core/framework.h"
#include "core/observed.h"
#include "core/step.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * Documents to the brain's plain structs, and the brain's status back to a document.
 *
 * Nothing is defaulted: absent stays absent (core/job.h).  Strings are borrowed
 * from the document, lists come from the arena; both must outlive what was read.
 */

/*
 * Read a job.  Whatever can be read is read; each field of a wrong type or range is put into
 * errors (may be NULL) in the words of an API server and counts as absent.  settings may be
 * NULL.
 */
void hf_job_read(struct hf_doc *doc, const struct hf_framework *framework,
		 const struct hf_settings *settings, struct hf_arena *arena,
		 struct hf_field_errors *errors, struct hf_job_view *ret_view);

/* Report keys that no field has, as strict validation does: in metadata, spec, runPolicy,
 * recovery, replica specs, and in pod templates down to the containers. */
void hf_job_read_unknown(struct hf_doc *doc, const struct hf_framework *framework,
			 struct hf_field_errors *errors);

/* Everything at once, for lint and for admission: types, then every rule of core and of the
 * kind.  old: what is stored, on update; else NULL. */
void hf_job_check(struct hf_doc *doc, struct hf_doc *old, const struct hf_framework *framework,
		  struct hf_field_errors *errors);

/*
 * The status object as the plan wants it: what is stored, with the fields that Holdfast owns
 * replaced.  Members nobody here knows survive, inside conditions and counts too; replica types that
 * the kind does not have are no longer counted by anybody, and go.
 * stored is the document's present status (NULL: none).  The result is the caller's.
 */
struct hf_json *hf_status_write(const struct hf_status *status,
				const struct hf_framework *framework, const struct hf_json *stored);

/*
 * Where the CRD has no place for it, the ledger is the text of an annotation, with the job's
 * UID in it, since annotations are copied with an object.  The merge patch,
 * guarded by resourceVersion, that makes it so; *ret_patch is left alone when it is so already
 * or there is no ledger to write.  HF_E_TOO_LARGE: it is longer than HF_LEDGER_TEXT_MAX.
 */
/* All annotations together may have 256 KiB; a ledger has 64 at most. */
#define HF_LEDGER_TEXT_MAX ((size_t)128 << 10)
int hf_ledger_patch(const struct hf_ledger *ledger, const struct hf_framework *framework,
		    struct hf_doc *job, struct hf_doc **ret_patch, struct hf_error *err)
	HF_MUST_CHECK;

/* status.recovery of a job, wherever it stands; the caller's, NULL: none. */
struct hf_json *hf_job_recovery(const struct hf_json *job);

/* Read status alone. */
void hf_status_read(const struct hf_json *status, const struct hf_framework *framework,
		    struct hf_arena *arena, struct hf_status *ret_status);

HF_END_DECLS

#endif
