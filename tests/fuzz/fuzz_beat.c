/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: the bytes of a report datagram from a training process. A report that is accepted has
 * values within their limits, and is the same after it is written and read again. */

#include "fuzz/fuzz.h"
#include "health/beat.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const char *text, size_t size)
{
	hf_assert(strnlen(text, size) < size);
	for (; *text != '\0'; text++)
		hf_assert(*text > ' ' && *text <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A block of exactly the input's size, so that the sanitizer finds a read past its end. */
	char *bytes = malloc(size + 1), text[HF_BEAT_BYTES_MAX], again[HF_BEAT_BYTES_MAX];
	struct hf_beat beat, read;
	size_t len;

	hf_assert(bytes);
	if (size > 0)
		memcpy(bytes, data, size);
	bytes = realloc(bytes, size > 0 ? size : 1);
	if (hf_beat_parse(bytes, size, &beat)) {
		hf_assert(beat.rank >= -1 && beat.rank < HF_HEALTH_RANKS_MAX);
		check_text(beat.loss, sizeof(beat.loss));
		check_text(beat.group, sizeof(beat.group));
		len = hf_beat_format(&beat, text);
		hf_assert(hf_beat_parse(text, len, &read));
		hf_assert(hf_beat_format(&read, again) == len && memcmp(text, again, len) == 0);
	}
	free(bytes);
	return 0;
}
