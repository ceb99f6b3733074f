/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_NARROW_SCHEMA_INTERNAL_H
#define HF_OPERATOR_NARROW_SCHEMA_INTERNAL_H

#include "operator/operator_internal.h"

/*
 * Kinds with a narrow schema: their CRD has no field status.recovery.
 * The ledger is written into an annotation first, guarded by resourceVersion, and then the status.
 * If the process dies in between, the counters are stored, and the next step writes the status. In
 * the other order the status could report what the ledger lacks. The ledger's phase says that a
 * suspension or a termination is recorded, so neither is recorded twice.
 * When a CRD becomes wide, each API server takes it over in its own time. Open watches show the old
 * schema for a second and more: a job without its ledger, under the version that has it. Hence two
 * rules:
 * - The ledger stays in the annotation until the schema has been wide for HF_WIDE_SETTLE.
 * - A job that should have a ledger and shows none is read live before it is stepped.
 */
#define HF_WIDE_SETTLE (5 * HF_SECOND) /* the time in which a new CRD reaches every API server */

extern const struct hf_resource hf_crds;

/* The schema of this version has no field status.recovery. False if the CRD lacks the version. */
bool hf_crd_is_narrow(struct hf_doc *crd, const char *version, struct hf_arena *scratch);

/* Watches the kind's CRD where options.watch_crds says so. */
void hf_narrow_init(struct hf_kind *kind);
void hf_narrow_start(struct hf_kind *kind);
bool hf_narrow_synced(const struct hf_kind *kind);
void hf_narrow_release(struct hf_kind *kind);

struct hf_pass;
/* Records one event for each kind, at the first job with a status to write. */
void hf_narrow_tell(struct hf_pass *pass);
/* The reply to a status patch lacks the whole ledger: marks the kind as narrow. False: another part
 * is missing. */
bool hf_narrow_learn(struct hf_pass *pass, struct hf_doc *reply);
/* The job must be read live before its step. */
bool hf_narrow_must_look(const struct hf_pass *pass);
/* After a step with a new status: chooses what is written where, and in which order. */
void hf_narrow_begin(struct hf_pass *pass);
bool hf_ledger_arrived(struct hf_doc *patch, struct hf_doc *reply);

#endif
