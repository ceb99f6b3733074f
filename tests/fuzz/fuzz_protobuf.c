/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: an object in Kubernetes' protobuf. An object that is accepted is JSON that can be written
 * and read again. */

#include "api/schema.h"
#include "base/compiler.h"
#include "fuzz/fuzz.h"
#include "json/json.h"

#include <string.h>

static void check(const uint8_t *data, size_t size)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT((size_t)64 << 20);
	const struct hf_json_limits limits = {.bytes_max = (size_t)64 << 20};
	HF_AUTO_JSON object = NULL;
	HF_AUTO_JSON back = NULL;
	struct hf_error err = {0};
	int rc = hf_protobuf_decode(data, size, &object, &err);

	if (rc != 0) {
		hf_assert(rc == err.code && err.text[0] != '\0' && object == NULL);
		return;
	}
	hf_json_write(object, HF_JSON_COMPACT, &sb);
	rc = hf_json_parse(sb.data, sb.len, &limits, &back, &err);
	hf_assert(rc == 0);
	hf_assert(hf_json_equal(object, back));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check(data, size);
	return 0;
}
