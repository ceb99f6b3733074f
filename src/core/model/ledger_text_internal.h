/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_LEDGER_INTERNAL_H
#define HF_CORE_LEDGER_INTERNAL_H

#include "base/strbuf.h"
#include "core/model/types.h"

/* The highest generation, attempt, incident and restart counter that is accepted.  The value is far
 * below 32 bits, so no counter overflows in the life of a job. */
#define HF_COUNTER_MAX 1000000000
/* The highest stamp of a pod that is accepted; a higher stamp was edited by hand.  A ledger that
 * takes over a stamp must have room to count on. */
#define HF_STAMP_MAX (HF_COUNTER_MAX / 2)

HF_BEGIN_DECLS

/*
 * The compact texts of the ledger.
 *
 *     ranges       "0-3,7"        ascending, disjoint, no blanks, smallest form not required
 *     sparse map   "17:2,40:1"    ascending indexes, values above 0
 *
 * A cursor starts as {text}.  next returns 1 and an element, 0 at the end, HF_E_INVALID for an
 * invalid text.
 */
struct hf_compact {
	const char *at; /* NULL is an empty text */
	int64_t last;   /* the highest index so far */
};
#define HF_COMPACT_INIT(text)                                                                      \
	{                                                                                          \
		.at = (text), .last = -1                                                           \
	}

int hf_ranges_next(struct hf_compact *cursor, int32_t *ret_from, int32_t *ret_to);
int hf_sparse_next(struct hf_compact *cursor, int32_t *ret_index, int64_t *ret_value);

/* Writers of compact texts: indexes must be added in ascending order. */
struct hf_ranges_writer {
	struct hf_strbuf *sb;
	int32_t from; /* the range being collected; -1: none */
	int32_t to;
};
#define HF_RANGES_WRITER_INIT(buf)                                                                 \
	{                                                                                          \
		.sb = (buf), .from = -1, .to = -1                                                  \
	}
void hf_ranges_add(struct hf_ranges_writer *writer, int32_t index);
void hf_ranges_finish(struct hf_ranges_writer *writer);
void hf_sparse_add(struct hf_strbuf *sb, int32_t index, int64_t value); /* value 0: left out */

struct hf_ledger;
/* Make an empty ledger, with `present` set. */
void hf_ledger_blank(struct hf_ledger *ledger);

HF_END_DECLS

#endif
