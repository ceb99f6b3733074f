/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_LINES_TEST_H
#define HF_API_LINES_TEST_H

#include "core/model/field.h"

/* Writes each error on a line, as a client of the API server sees it. */
static inline void write_lines(const struct hf_field_errors *errors, struct hf_strbuf *out)
{
	for (size_t i = 0; i < errors->len; i++) {
		hf_field_error_write(&errors->items[i], out);
		hf_strbuf_addch(out, '\n');
	}
}

#endif
