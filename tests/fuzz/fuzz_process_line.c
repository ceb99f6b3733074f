/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a line between `holdfast exec` and the agent. A line that is accepted has values within
 * their limits, and is the same after it is written and parsed again. */

#include "fuzz/fuzz.h"
#include "health/process_line.h"

#include <stdlib.h>
#include <string.h>

static void check_state(const char *bytes, size_t size)
{
	char text[HF_PROCESS_LINE_BYTES_MAX], again[HF_PROCESS_LINE_BYTES_MAX];
	struct hf_process_state state, read;
	size_t len;

	if (!hf_process_state_parse(bytes, size, &state))
		return;
	hf_assert(state.phase < HF_PROCESS_LINE_PHASES && state.code <= HF_PROCESS_CODE_MAX);
	hf_assert(strnlen(state.words, sizeof(state.words)) < sizeof(state.words));
	hf_assert(strnlen(state.cause, sizeof(state.cause)) < sizeof(state.cause));
	len = hf_process_state_format(&state, text);
	hf_assert(hf_process_state_parse(text, len, &read));
	hf_assert(hf_process_state_format(&read, again) == len && memcmp(text, again, len) == 0);
}

static void check_target(const char *bytes, size_t size)
{
	char text[HF_PROCESS_LINE_BYTES_MAX], again[HF_PROCESS_LINE_BYTES_MAX];
	struct hf_process_target target, read;
	size_t len;

	if (!hf_process_target_parse(bytes, size, &target))
		return;
	hf_assert(target.wait_s <= HF_PROCESS_SPAN_MAX && target.save_s <= HF_PROCESS_SPAN_MAX);
	len = hf_process_target_format(&target, text);
	hf_assert(hf_process_target_parse(text, len, &read));
	hf_assert(hf_process_target_format(&read, again) == len && memcmp(text, again, len) == 0);
}

static void check_note(const char *bytes, size_t size)
{
	char text[HF_PROCESS_LINE_BYTES_MAX], words[HF_PROCESS_WORDS_MAX],
		read[HF_PROCESS_WORDS_MAX];
	size_t len;

	if (!hf_process_note_parse(bytes, size, words))
		return;
	len = hf_process_note_format(words, text);
	/* Blanks at the end are not written. */
	if (hf_process_note_parse(text, len, read))
		hf_assert(strncmp(words, read, strlen(read)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A block of exactly the input's size, so that the sanitizer finds a read past its end. */
	char *bytes = malloc(size > 0 ? size : 1), words[HF_PROCESS_WORDS_MAX];

	hf_assert(bytes);
	if (size > 0)
		memcpy(bytes, data, size);
	check_state(bytes, size);
	check_target(bytes, size);
	check_note(bytes, size);
	hf_process_words(bytes, size, words);
	hf_assert(strnlen(words, sizeof(words)) < sizeof(words));
	free(bytes);
	return 0;
}
