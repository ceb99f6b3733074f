/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: a program's stderr. The first byte gives the size of the pieces in which it arrives, and
 * the room for it. The kept end is printable text that fits into its room, and cleaning it again
 * changes nothing. */

#include "exec/tail.h"
#include "exec/text.h"
#include "fuzz/fuzz.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const char *text, size_t len)
{
	char *again = malloc(len + 1);
	struct hf_json *string;

	hf_assert(again);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		hf_assert((c >= ' ' && c != 0x7f) || c == '\n' || c == '\t');
	}
	memcpy(again, text, len);
	again[len] = '\0';
	/* hf_json_string replaces bytes that are not UTF-8, so an equal text shows that the text
	 * is UTF-8. */
	string = hf_json_string(again);
	hf_assert(strcmp(hf_json_str(string, ""), again) == 0);
	hf_json_unref(string);
	hf_assert(hf_exec_text_clean(again, len) == len && memcmp(again, text, len) == 0);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hf_tail tail;
	size_t piece = size > 0 ? (size_t)data[0] * 16 + 1 : 1;
	size_t room = size > 0 && data[0] % 2 != 0 ? (size_t)data[0] : HF_TAIL_BYTES_MAX, len;
	char *text = malloc(room > 0 ? room : 1);
	const char *line;

	hf_assert(text);
	memset(&tail, 0, sizeof(tail));
	for (size_t at = 1; at < size; at += piece)
		hf_tail_add(&tail, (const char *)data + at, size - at < piece ? size - at : piece,
			    0);
	hf_tail_end(&tail, 0);
	line = hf_tail_cause_line(&tail, 0);
	hf_assert(strnlen(line, sizeof(tail.named[0].line)) < sizeof(tail.named[0].line));
	hf_assert((hf_tail_cause(&tail, 0) == HF_EXEC_CAUSE_NONE) == (line[0] == '\0'));
	len = hf_tail_text(&tail, text, room);
	hf_assert(len <= room);
	check_text(text, len);
	free(text);
	return 0;
}
