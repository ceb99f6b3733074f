/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_WIRE_H
#define HF_BASE_WIRE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Protobuf's wire format, a field at a time.  Nothing is copied, and each read is bounded by the
 * message it stands in; what the numbers mean is the caller's.
 */
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
	uint64_t value;       /* of HF_WIRE_VARINT */
	struct hf_wire bytes; /* of HF_WIRE_BYTES */
};

enum hf_wire_found {
	HF_WIRE_OK,
	HF_WIRE_NO_FIELD, /* what stands there begins none */
	HF_WIRE_NO_TYPE,  /* a group, given up long ago, or nothing that is known */
	HF_WIRE_CUT_OFF,
};

/* The next field; not to be asked at the end of the message. */
enum hf_wire_found hf_wire_next(struct hf_wire *in, struct hf_wire_field *ret_field);

/* false: it is cut off, or longer than 64 bits. */
bool hf_wire_varint(struct hf_wire *in, uint64_t *ret_value);

HF_END_DECLS

#endif
