/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/text.h"

#include "base/mem.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

static char *printed(const char *text, bool utf8)
{
	char *out = NULL;
	size_t len;
	FILE *file = open_memstream(&out, &len);

	hf_text_print(file, text, utf8);
	assert_int_equal(fclose(file), 0);
	return out;
}

static void assert_printed(const char *text, bool utf8, const char *wanted)
{
	HF_AUTOFREE char *out = printed(text, utf8);

	assert_string_equal(out, wanted);
}

static void control_characters_become_marks(void **state)
{
	assert_printed("a\033[2Jb\nc\177", true, "a?[2Jb?c?");
	assert_printed("a\xc2\x9b"
		       "2Jb",
		       true, "a?2Jb"); /* CSI as one letter */
	assert_printed("\xc2\xa0\xc3\x9b", true, "\xc2\xa0\xc3\x9b");
}

static void without_utf8_letters_become_ascii(void **state)
{
	assert_printed("JOB\xe2\x80\xa6 \xc3\xa4", true, "JOB\xe2\x80\xa6 \xc3\xa4");
	assert_printed("JOB\xe2\x80\xa6 \xc3\xa4\xe2\x82\xacx", false, "JOB... ??x");
	assert_printed("\xff\xfe", false, "??");
}

static void blanking_keeps_the_length(void **state)
{
	char text[] = "a\tb\xc2\x80"
		      "c\xc3\xa4";

	hf_text_blank(text);
	assert_string_equal(text, "a b  c\xc3\xa4");
	assert_int_equal(hf_text_control(""), 0);
}

static void assert_clean(const char *text, size_t len, bool utf8, const char *wanted)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(256);

	hf_text_add_clean(&sb, text, len, utf8);
	assert_string_equal(sb.data, wanted);
}

static void output_of_programs_is_cleaned(void **state)
{
	assert_clean("\033[1;31mred\033[0m\tx\r", 18, true, "red x");
	assert_clean("\033]0;title\a1\033]8;;http://x\033\\2\033c3", 31, true, "123");
	assert_clean("a\033[12", 5, true, "a");
	assert_clean("a\0b\xff\xc3", 5, true, "ab??");
	assert_clean("\xc3\xa4\xc2\x9b"
		     "2J",
		     6, true,
		     "\xc3\xa4"
		     "2J");
	assert_clean("\xc3\xa4z", 3, false, "?z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_characters_become_marks),
		cmocka_unit_test(without_utf8_letters_become_ascii),
		cmocka_unit_test(blanking_keeps_the_length),
		cmocka_unit_test(output_of_programs_is_cleaned),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
