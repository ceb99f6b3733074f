/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads the wire format of Protocol Buffers, one field at a time. Input: the rest of a message;
 * output: one field, or the reason why the bytes are no field.
 */
#include "base/wire.h"

#include <string.h>

#define NUMBER_MAX 536870911 /* the largest field number that protobuf allows */

bool hf_wire_varint(struct hf_wire *in, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		unsigned char byte = *in->at++;

		/* The tenth byte has room for only one of the 64 bits. */
		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static bool take_bytes(struct hf_wire *in, uint64_t len, struct hf_wire *ret_bytes)
{
	if (len > (uint64_t)(in->end - in->at))
		return false;
	*ret_bytes = (struct hf_wire){in->at, in->at + len};
	in->at += len;
	return true;
}

enum hf_wire_found hf_wire_next(struct hf_wire *in, struct hf_wire_field *ret_field)
{
	struct hf_wire fixed;
	uint64_t key, len;
	bool ok;

	if (!hf_wire_varint(in, &key) || key >> 3 == 0 || key >> 3 > NUMBER_MAX)
		return HF_WIRE_NO_FIELD;
	*ret_field = (struct hf_wire_field){.number = (uint32_t)(key >> 3),
					    .type = (enum hf_wire_type)(key & 7)};
	switch (key & 7) {
	case HF_WIRE_VARINT: ok = hf_wire_varint(in, &ret_field->value); break;
	case HF_WIRE_FIXED64: ok = take_bytes(in, 8, &fixed); break;
	case HF_WIRE_FIXED32: ok = take_bytes(in, 4, &fixed); break;
	case HF_WIRE_BYTES:
		ok = hf_wire_varint(in, &len) && take_bytes(in, len, &ret_field->bytes);
		break;
	default: return HF_WIRE_NO_TYPE;
	}
	return ok ? HF_WIRE_OK : HF_WIRE_CUT_OFF;
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void add_varint(struct hf_strbuf *message, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		hf_strbuf_addch(message, (char)(value | 0x80));
	hf_strbuf_addch(message, (char)value);
}

static void add_bytes(struct hf_strbuf *message, uint32_t field, const char *bytes, size_t len)
{
	add_varint(message, (uint64_t)field << 3 | HF_WIRE_BYTES);
	add_varint(message, len);
	hf_strbuf_add(message, bytes, len);
}

void hf_wire_add_number(struct hf_strbuf *message, uint32_t field, uint64_t value)
{
	if (value == 0)
		return;
	add_varint(message, (uint64_t)field << 3 | HF_WIRE_VARINT);
	add_varint(message, value);
}

void hf_wire_add_text(struct hf_strbuf *message, uint32_t field, const char *text)
{
	if (text[0] != '\0')
		add_bytes(message, field, text, strlen(text));
}

void hf_wire_add_message(struct hf_strbuf *message, uint32_t field, const struct hf_strbuf *inner)
{
	add_bytes(message, field, inner->data, inner->len);
}
