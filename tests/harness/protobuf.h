/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_PROTOBUF_H
#define HF_TESTS_HARNESS_PROTOBUF_H

/* Builds messages in protobuf's wire format, field by field. */

#include "base/strbuf.h"

#include <string.h>

static inline void hf_pb_varint(struct hf_strbuf *sb, uint64_t value)
{
	for (; value >= 128; value >>= 7)
		hf_strbuf_addch(sb, (char)(128 | (value & 127)));
	hf_strbuf_addch(sb, (char)value);
}

static inline void hf_pb_number(struct hf_strbuf *sb, unsigned field, uint64_t value)
{
	hf_pb_varint(sb, field << 3);
	hf_pb_varint(sb, value);
}

static inline void hf_pb_bytes(struct hf_strbuf *sb, unsigned field, const void *bytes, size_t len)
{
	hf_pb_varint(sb, field << 3 | 2);
	hf_pb_varint(sb, len);
	hf_strbuf_add(sb, bytes, len);
}

static inline void hf_pb_text(struct hf_strbuf *sb, unsigned field, const char *text)
{
	hf_pb_bytes(sb, field, text, strlen(text));
}

#endif
