/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/env_file.h"

#include "harness/test.h"

#include <stdio.h>
#include <string.h>

/* Reads all variables of the text and joins them: "1:A=1|3:B". An error ends the text: "!2:why". */
static void assert_read(const char *text, size_t len, const char *wanted)
{
	struct hf_env_item item = {.text = HF_STRBUF_INIT(4096)};
	HF_AUTO_STRBUF seen = HF_STRBUF_INIT(4096);
	struct hf_env_file file;
	struct hf_error err;
	int rc;

	hf_env_file_begin(&file, text, len);
	while ((rc = hf_env_file_next(&file, &item, &err)) == 0 && item.text.len > 0)
		hf_strbuf_addf(&seen, "%s%d:%s", seen.len > 0 ? "|" : "", item.line,
			       item.text.data);
	if (rc != 0)
		hf_strbuf_addf(&seen, "!%d:%s", item.line, err.text);
	assert_string_equal(seen.len > 0 ? seen.data : "", wanted);
	hf_strbuf_release(&item.text);
}

#define READ(text, wanted) assert_read(text, sizeof(text) - 1, wanted)

static void a_line_has_a_name_and_a_value(void **state)
{
	READ("", "");
	READ("\n# none\n   \n", "");
	READ("A=1\nB=\nC", "1:A=1|2:B=|3:C");
	READ("  A  =  two words  \nB=x=y", "1:A=two words|2:B=x=y");
	READ("export A=1\nexport\tB=2\nexported=3\nexport=4",
	     "1:A=1|2:B=2|3:exported=3|4:export=4");
	READ("A=$HOME", "1:A=$HOME");
}

static void a_file_of_windows_is_read_alike(void **state)
{
	READ("\xef\xbb\xbf"
	     "A=1\r\n\r\nB=\"x\"\r\nC\r\n",
	     "1:A=1|3:B=x|4:C");
	READ("A=\"x\r\ny\"\r\n", "1:A=x\ny");
}

static void a_comment_needs_a_blank_before_it(void **state)
{
	READ("A=1 # one\nB=a#b\nC='x' # y\nD=# z", "1:A=1|2:B=a#b|3:C=x|4:D=# z");
	READ("A= # one", "1:A=");
}

static void quotes_keep_the_value_as_it_is(void **state)
{
	READ("A='a \"b\" \\n $C'", "1:A=a \"b\" \\n $C");
	READ("A=\"a\\tb \\\"c\\\" \\\\ \\$ \\q\"", "1:A=a\tb \"c\" \\ $ \\q");
	READ("A=it's\nB=x\"y\"", "1:A=it's|2:B=x\"y\"");
	READ("A='one\ntwo'\nB=2", "1:A=one\ntwo|3:B=2");
}

static void a_wrong_line_is_named(void **state)
{
	READ("A=1\n\nB=\"x\nC=2\n", "1:A=1!3:the value begins with a quote that is not closed");
	READ("A='x' y\n", "!1:text follows the closing quote of the value");
	READ("A=\xff\n", "!1:the value is not UTF-8; save the file as UTF-8");
	READ("\xff=1\n", "!1:the name of the variable is not UTF-8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_a_name_and_a_value),
		cmocka_unit_test(a_file_of_windows_is_read_alike),
		cmocka_unit_test(a_comment_needs_a_blank_before_it),
		cmocka_unit_test(quotes_keep_the_value_as_it_is),
		cmocka_unit_test(a_wrong_line_is_named),
	};

	return cmocka_run_group_tests_name("env_file", tests, NULL, NULL);
}
