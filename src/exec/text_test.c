/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/text.h"

#include <string.h>

struct row {
	const char *bytes;
	size_t len; /* 0: as a string */
	const char *expected;
};

#define ROW(bytes, expected)                                                                       \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, expected                                                 \
	}

static void check(const struct row *rows, size_t len)
{
	char text[256];

	for (size_t i = 0; i < len; i++) {
		size_t n;

		hf_assert(rows[i].len < sizeof(text));
		memcpy(text, rows[i].bytes, rows[i].len);
		n = hf_exec_text_clean(text, rows[i].len);
		assert_true(n <= rows[i].len);
		text[n] = '\0';
		assert_string_equal(text, rows[i].expected);
		assert_int_equal(strlen(text), n);
	}
}

static void text_stays_as_it_is(void **state)
{
	static const struct row rows[] = {
		ROW("", ""),
		ROW("one\n\ttwo\n\n", "one\n\ttwo\n\n"),
		ROW("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xef\xbf\xbd",
		    "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xef\xbf\xbd"),
	};

	check(rows, HF_ARRAY_LEN(rows));
}

static void control_bytes_go(void **state)
{
	static const struct row rows[] = {
		ROW("a\0b\x01\x07\x7f"
		    "c\v\f\n",
		    "abc\n"),
		ROW("\0\0\0", ""),
		/* of Latin-1, in UTF-8 */
		ROW("a\xc2\x80\xc2\x9f"
		    "b\xc2\xa0",
		    "ab\xc2\xa0"),
	};

	check(rows, HF_ARRAY_LEN(rows));
}

static void bytes_that_are_no_characters_are_marked(void **state)
{
	static const struct row rows[] = {
		ROW("a\xff"
		    "b",
		    "a?b"),
		ROW("\x80\xbf", "??"),
		/* these bytes are an overlong form, a surrogate, a number beyond Unicode */
		ROW("\xc0\xaf.", "??."),
		ROW("\xe0\x80\xaf.", "???."),
		ROW("\xed\xa0\x80.", "???."),
		ROW("\xf4\x90\x80\x80.", "????."),
		/* here a character is cut off by another character, and by the end */
		ROW("\xe2\x82"
		    "a",
		    "?a"),
		ROW("a\xe2\x82", "a"),
		ROW("a\xf0\x9f\x98", "a"),
		ROW("a\xe2\x82\n", "a?\n"),
	};

	check(rows, HF_ARRAY_LEN(rows));
}

static void colours_go_whole(void **state)
{
	static const struct row rows[] = {
		ROW("\x1b[31mred\x1b[0m\n", "red\n"),
		ROW("\x1b[1;38;5;196mx\x1b[m", "x"),
		ROW("\x1b]0;a title\ax\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\", "xlink"),
		ROW("\x1b(Ba\x1b=b\x1bMc", "abc"),
		ROW("\x1b[?25lx\x1b[?25h", "x"),
		/* a sequence cut off by the end of the text, by a line feed, by another character */
		ROW("a\x1b", "a"),
		ROW("a\x1b[3", "a"),
		ROW("a\x1b[3\nb", "a\nb"),
		ROW("a\x1b[31\xc3\xa4", "a\xc3\xa4"),
		ROW("a\x1b]0;title\nb", "a\nb"),
		ROW("a\x1b\x1b[31mb", "ab"),
	};

	check(rows, HF_ARRAY_LEN(rows));
}

static void of_a_progress_bar_the_last_state_stays(void **state)
{
	static const struct row rows[] = {
		ROW(" 1%|  |\r50%|# |\r99%|##|\ndone\n", "99%|##|\ndone\n"),
		ROW("50%\r", "50%"),
		ROW("a line of DOS\r\n", "a line of DOS\n"),
		ROW("50%|# |\r        \rerror\n", "error\n"),
		ROW("50%|# |\r\x1b[Kerror\n", "error\n"),
		ROW("50%|# |\r\x1b[K\n", "\n"),
		ROW("50%|# |\x1b[2K\x1b[1Gerror\n", "error\n"),
		ROW("50%\x1b[K\n", "50%\n"),
		ROW("\rx\r\r\ry\n", "y\n"),
		ROW("one\n\rtwo\n", "one\ntwo\n"),
		/* spinners, and the bold of printers */
		ROW("wait |\b/\b-\b\\\n", "wait \\\n"),
		ROW("\b\bx\b\b\b\xc3\xa4\bb\n", "b\n"),
		ROW("a\n\b\bb", "a\nb"),
		ROW("12%\b\b\b13%\b\b\b", "13%"),
	};

	check(rows, HF_ARRAY_LEN(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_stays_as_it_is),
		cmocka_unit_test(control_bytes_go),
		cmocka_unit_test(bytes_that_are_no_characters_are_marked),
		cmocka_unit_test(colours_go_whole),
		cmocka_unit_test(of_a_progress_bar_the_last_state_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
