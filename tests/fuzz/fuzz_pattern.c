/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: lines of a trainer's log, or, after the letter 'r', a regular expression and lines. A
 * step that is read can be reported: its loss has the form that a report needs. */

#include "fuzz/fuzz.h"
#include "base/mem.h"
#include "pattern/pattern.h"

#include <stdlib.h>
#include <string.h>

static struct hf_pattern *builtin;

static void check_step(const struct hf_pattern_step *step)
{
	char text[HF_BEAT_BYTES_MAX];
	struct hf_beat read;

	hf_assert(step->beat.has_step && step->per_second >= 0);
	hf_assert(hf_beat_parse(text, hf_beat_format(&step->beat, text), &read));
	hf_assert(read.step == step->beat.step && strcmp(read.loss, step->beat.loss) == 0);
}

static void read_lines(const struct hf_pattern *pattern, const char *bytes, size_t size)
{
	struct hf_pattern_rank rank = {0};
	struct hf_pattern_step step;
	struct hf_error err;

	for (size_t at = 0; at < size;) {
		const char *end = memchr(bytes + at, '\n', size - at);
		size_t len = end != NULL ? (size_t)(end - bytes) - at : size - at;
		/* A block of exactly the line's size, so that the sanitizer finds a read past its
		 * end. */
		char *line = malloc(len + 1);

		hf_assert(line);
		memcpy(line, bytes + at, len);
		line = realloc(line, len > 0 ? len : 1);
		if (hf_pattern_read(pattern, &rank, line, len, &step, &err) == HF_PATTERN_STEP)
			check_step(&step);
		free(line);
		at += len + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data, *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
	struct hf_pattern *own = NULL;
	struct hf_error err;
	char *regex;

	if (builtin == NULL)
		hf_assert(hf_pattern_create(NULL, &builtin, &err) == 0);
	if (size == 0 || bytes[0] != 'r' || end == NULL) {
		read_lines(builtin, bytes, size);
		return 0;
	}
	regex = hf_xstrndup(bytes + 1, (size_t)(end - bytes) - 1);
	if (hf_pattern_create(regex, &own, &err) == 0)
		read_lines(own, end + 1, size - (size_t)(end + 1 - bytes));
	hf_pattern_destroy(own);
	free(regex);
	return 0;
}
