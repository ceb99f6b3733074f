/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/ledger_text_internal.h"

#include "base/ascii.h"
#include "core/model/status.h"

#include <string.h>

/*
 * Reads and writes the compact texts of the ledger, and makes an empty ledger.  Any client may have
 * edited the texts: a malformed text gives HF_E_INVALID.
 */

/* Read a decimal number in [0, max] at *at and move *at behind it.  False: no such number, and *at
 * stays. */
static bool read_number(const char **at, int64_t max, int64_t *ret_value)
{
	const char *c = *at;
	int64_t value = 0;

	if (!hf_ascii_is_digit(*c))
		return false;
	for (; hf_ascii_is_digit(*c); c++) {
		value = value * 10 + (*c - '0');
		if (value > max)
			return false;
	}
	*at = c;
	*ret_value = value;
	return true;
}

/* Read what follows an element: a comma and another element, or the end of the text. */
static bool read_separator(const char **at)
{
	if (**at == '\0')
		return true;
	if (**at != ',' || (*at)[1] == '\0')
		return false;
	(*at)++;
	return true;
}

int hf_ranges_next(struct hf_compact *cursor, int32_t *ret_from, int32_t *ret_to)
{
	int64_t from, to;

	hf_assert(cursor->last >= -1 && cursor->last < HF_RANKS_MAX);
	if (!cursor->at || *cursor->at == '\0')
		return 0;
	if (!read_number(&cursor->at, HF_RANKS_MAX - 1, &from) || from <= cursor->last)
		return HF_E_INVALID;
	to = from;
	if (*cursor->at == '-') {
		cursor->at++;
		if (!read_number(&cursor->at, HF_RANKS_MAX - 1, &to) || to <= from)
			return HF_E_INVALID;
	}
	if (!read_separator(&cursor->at))
		return HF_E_INVALID;
	cursor->last = to;
	*ret_from = (int32_t)from;
	*ret_to = (int32_t)to;
	return 1;
}

int hf_sparse_next(struct hf_compact *cursor, int32_t *ret_index, int64_t *ret_value)
{
	int64_t index, value;

	hf_assert(cursor->last >= -1 && cursor->last < HF_RANKS_MAX);
	if (!cursor->at || *cursor->at == '\0')
		return 0;
	if (!read_number(&cursor->at, HF_RANKS_MAX - 1, &index) || index <= cursor->last)
		return HF_E_INVALID;
	if (*cursor->at != ':')
		return HF_E_INVALID;
	cursor->at++;
	if (!read_number(&cursor->at, HF_COUNTER_MAX, &value) || value == 0 ||
	    !read_separator(&cursor->at))
		return HF_E_INVALID;
	cursor->last = index;
	*ret_index = (int32_t)index;
	*ret_value = value;
	return 1;
}

void hf_ranges_finish(struct hf_ranges_writer *writer)
{
	if (writer->from < 0)
		return;
	hf_assert(writer->to >= writer->from);
	if (writer->sb->len > 0)
		hf_strbuf_addch(writer->sb, ',');
	hf_strbuf_addf(writer->sb, "%d", writer->from);
	if (writer->to > writer->from)
		hf_strbuf_addf(writer->sb, "-%d", writer->to);
	writer->from = -1;
}

void hf_ranges_add(struct hf_ranges_writer *writer, int32_t index)
{
	hf_assert(index >= 0 && index < HF_RANKS_MAX);
	if (writer->from >= 0 && index == writer->to + 1) {
		writer->to = index;
		return;
	}
	hf_assert(writer->from < 0 || index > writer->to);
	hf_ranges_finish(writer);
	writer->from = index;
	writer->to = index;
}

void hf_sparse_add(struct hf_strbuf *sb, int32_t index, int64_t value)
{
	hf_assert(index >= 0 && index < HF_RANKS_MAX);
	hf_assert(value >= 0 && value <= INT32_MAX);
	if (value == 0)
		return;
	if (sb->len > 0)
		hf_strbuf_addch(sb, ',');
	hf_strbuf_addf(sb, "%d:%lld", index, (long long)value);
}

void hf_ledger_blank(struct hf_ledger *ledger)
{
	memset(ledger, 0, sizeof(*ledger));
	ledger->present = true;
	ledger->schema = HF_LEDGER_SCHEMA;
	ledger->phase = HF_PHASE_CREATING;
	ledger->since = HF_TIME_NONE;
	ledger->not_before = HF_TIME_NONE;
	ledger->in_place_at = ledger->save_until = ledger->steps_at = HF_TIME_NONE;
	ledger->incident.opened_at = HF_TIME_NONE;
	ledger->incident.charged = HF_BUDGET_NONE;
	ledger->verdict.at = HF_TIME_NONE;
}
