/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_RECORD_TEXT_H
#define HF_CORE_RECORD_TEXT_H

#include "base/arena.h"
#include "core/model/status.h"

HF_BEGIN_DECLS

/* Texts about one record of the ledger that need nothing but the record. */

/* The number of the signal: from the record, else derived from its exit code; 0: no signal. */
int64_t hf_record_signal(const struct hf_record *record);
/* "worker-3 was killed by SIGKILL (128+9) on node n1" */
const char *hf_record_evidence(struct hf_arena *arena, const struct hf_record *record);

HF_END_DECLS

#endif
