/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fuzz/fuzz.h"
#include "health/contact.h"

#include <string.h>

/* Input: the file /run/holdfast/contact. A record that is accepted is the same after it is written
 * and read again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hf_contact now = {.boot_id = "0a1b2c3d", .at_ms = UINT64_C(1) << 40};
	struct hf_contact contact, again;
	char text[HF_CONTACT_BYTES_MAX];
	uint64_t age_ms = 0;
	enum hf_contact_word word =
		hf_contact_judge((const char *)data, size, &now, 50000, &age_ms);
	size_t len;

	if (!hf_contact_parse((const char *)data, size, &contact)) {
		hf_assert(word == HF_CONTACT_BROKEN);
		return 0;
	}
	hf_assert(word != HF_CONTACT_FRESH || age_ms < 50000);
	len = hf_contact_format(&contact, text);
	hf_assert(hf_contact_parse(text, len, &again));
	hf_assert(strcmp(again.boot_id, contact.boot_id) == 0 && again.at_ms == contact.at_ms);
	return 0;
}
