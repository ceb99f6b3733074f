/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_NARROW_SCHEMA_INTERNAL_H
#define HF_OPERATOR_NARROW_SCHEMA_INTERNAL_H

#include "operator/operator_internal.h"

/*
 * Kinds whose CRD does not keep the ledger ("narrow"): it is kept in an annotation then,
 * which is patched, guarded by resourceVersion, before the status is.  Between the two the
 * process may die: what was counted is counted, and the next step writes the status anew.
 * The other way round the status could say what the ledger never heard of.  That a suspension
 * or an end is booked, the ledger says by its phase: neither is booked twice or thought over.
 *
 * When the CRDs become wide, every API server takes them over in its own time, and serves the watches that
 * it has by the old schema for a second and more: they show a job without the ledger, under the
 * version that has it.  Hence two rules.  The ledger stays in the annotation until the schema has been
 * wide for HF_WIDE_SETTLE.  And a job that shows none in its status, though there should be one, is
 * read live before it is stepped: what the annotation says was true before the ledger moved.
 */
#define HF_WIDE_SETTLE                                                                             \
	(5 * HF_SECOND) /* what Kubernetes reckons for a new CRD to be known everywhere */

extern const struct hf_resource hf_crds;

/* The version's schema has no place for status.recovery.  One that is not served is not narrow. */
bool hf_crd_is_narrow(struct hf_doc *crd, const char *version, struct hf_arena *scratch);

/* Watches the kind's CRD where options.watch_crds says so. */
void hf_narrow_init(struct hf_kind *kind);
void hf_narrow_start(struct hf_kind *kind);
bool hf_narrow_synced(const struct hf_kind *kind);
void hf_narrow_release(struct hf_kind *kind);

struct hf_pass;
/* One event for each kind, at the first of its jobs that has something to write. */
void hf_narrow_tell(struct hf_pass *pass);
/* The reply to a status patch lacks the whole ledger: from here on the kind is narrow.  false:
 * it was not that. */
bool hf_narrow_learn(struct hf_pass *pass, struct hf_doc *reply);
/* The job was read: whether it has to be read live before anything is decided. */
bool hf_narrow_must_look(const struct hf_pass *pass);
/* After a step that changes the status: what is to be written where, and in which order. */
void hf_narrow_begin(struct hf_pass *pass);
bool hf_ledger_arrived(struct hf_doc *patch, struct hf_doc *reply);

#endif
