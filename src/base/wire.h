/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_WIRE_H
#define HF_BASE_WIRE_H

#include "base/compiler.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

HF_BEGIN_DECLS

/* Reads the wire format of Protocol Buffers, one field at a time. Nothing is copied, and no read
 * goes beyond the end of the message. The caller interprets the field numbers. */
struct hf_wire {
	const unsigned char *at, *end; /* borrowed */
};

enum hf_wire_type {
	HF_WIRE_VARINT = 0,
	HF_WIRE_FIXED64 = 1,
	HF_WIRE_BYTES = 2,
	HF_WIRE_FIXED32 = 5,
};

struct hf_wire_field {
	uint32_t number;
	enum hf_wire_type type;
	uint64_t value;       /* value of an HF_WIRE_VARINT */
	struct hf_wire bytes; /* content of an HF_WIRE_BYTES */
};

enum hf_wire_found {
	HF_WIRE_OK,
	HF_WIRE_NO_FIELD, /* the bytes are no valid field key */
	HF_WIRE_NO_TYPE,  /* an unknown type, or a group, which protobuf has deprecated */
	/* the message ends inside the field */
	HF_WIRE_CUT_OFF,
};

/* Reads the next field. The caller must check first that the message has bytes left. */
enum hf_wire_found hf_wire_next(struct hf_wire *in, struct hf_wire_field *ret_field);

/* Reads a variable-length integer. False if it is cut off or longer than 64 bits. */
bool hf_wire_varint(struct hf_wire *in, uint64_t *ret_value);

/* Append a field to a message. What does not fit sets the buffer's `full`. A value of 0, or "", is a field's default, which
 * proto3 leaves out: so do these. */
void hf_wire_add_number(struct hf_strbuf *message, uint32_t field, uint64_t value);
void hf_wire_add_text(struct hf_strbuf *message, uint32_t field, const char *text);
/* An embedded message, also an empty one. */
void hf_wire_add_message(struct hf_strbuf *message, uint32_t field, const struct hf_strbuf *inner);

HF_END_DECLS

#endif
