/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/terminal_filter.h"

#include "harness/test.h"

#include <string.h>

static const struct {
	const char *in, *out;
} table[] = {
	{"plain\ttext\r\n", "plain\ttext\r\n"},
	{"\033[31mred\033[0m", "red"},
	{"a\033]52;c;cm0gLXJm\007b", "ab"}, /* the clipboard */
	{"a\033]0;title\033\\b", "ab"},     /* the title */
	{"a\033[?1049hb\033[6nc", "abc"},   /* another screen; a question */
	{"a\033P+q544e\033\\b", "ab"},      /* a question by DCS */
	{"a\033(0b\033cc", "abc"},          /* a character set; a reset */
	{"a\033]0;never ended\nb", "a\nb"}, /* a newline ends a sequence */
	{"a\033\033[31mb", "ab"},           /* ESC within a sequence */
	{"nul\001\b\177bell\007", "nulbell"},
	{"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
	{"a\xc2\x9b"
	 "31mb",
	 "a31mb"}, /* U+009B is CSI */
	{"a\xc2\xa0"
	 "b",
	 "a\xc2\xa0"
	 "b"},
	{"a\x9b"
	 "31mb",
	 "a?31mb"},               /* not UTF-8 */
	{"\xc3\x9b", "\xc3\x9b"}, /* 0x9b inside a letter */
};

static void escapes_reach_no_terminal_however_they_are_cut(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++) {
		size_t len = strlen(table[i].in);

		for (size_t cut = 0; cut <= len; cut++) {
			struct hf_terminal_filter filter = {0};
			HF_AUTO_STRBUF out = HF_STRBUF_INIT(256);

			hf_terminal_filter_add(&filter, table[i].in, cut, &out);
			hf_terminal_filter_add(&filter, table[i].in + cut, len - cut, &out);
			assert_string_equal(out.data, table[i].out);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes_reach_no_terminal_however_they_are_cut),
	};

	return cmocka_run_group_tests_name("terminal_filter", tests, NULL, NULL);
}
