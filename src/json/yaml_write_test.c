/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/strbuf.h"
#include "json/yaml.h"
#include "json/yaml_internal.h"
#include "json/yaml_write.h"

#include <string.h>

static struct hf_json *parse_text(const char *text)
{
	struct hf_json *value = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(text, strlen(text), NULL, &value, &err), &err);
	return value;
}

static void assert_written(const char *json, const char *want)
{
	HF_AUTO_JSON value = parse_text(json);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);

	hf_yaml_write(value, &sb);
	assert_string_equal(sb.data, want);
}

static void lay_out_is_that_of_kubectl(void **state)
{
	assert_written("{\"spec\":{\"containers\":[{\"name\":\"a\",\"args\":[\"-c\",\"x\"]},{}],"
		       "\"nested\":[[1,2],[]]},\"kind\":\"Pod\",\"n\":null,\"b\":true,\"i\":-5}",
		       "b: true\n"
		       "i: -5\n"
		       "kind: Pod\n"
		       "\"n\": null\n"
		       "spec:\n"
		       "  containers:\n"
		       "  - args:\n"
		       "    - -c\n"
		       "    - x\n"
		       "    name: a\n"
		       "  - {}\n"
		       "  nested:\n"
		       "  - - 1\n"
		       "    - 2\n"
		       "  - []\n");
	assert_written("{}", "{}\n");
	assert_written("[]", "[]\n");
	assert_written("\"a\"", "a\n");
}

static void strings_are_quoted_exactly_when_needed(void **state)
{
	/* The strings as kubectl 1.32 prints them. */
	assert_written(
		"[\"\",\"- x\",\"a #b\",\"12:30\",\"0x10\",\"1e3\",\"null\",\"~\",\"=\",\"<<\","
		"\"yes\",\"y\",\".5\",\"tab\\tx\",\"!x\",\"%y\",\"@z\",\"`\",\"{\",\"a{\",\"[x\","
		"\"*s\",\"&s\",\"|\",\">\",\"?\",\"? x\",\"-\",\"--\",\"---\",\"a: b\",\"a:\","
		"\":a\",\"#\",\"x#\",\"'\",\"\\\"\",\"2020-01-01\",\"0o7\",\"1_000\",\"012\","
		"\"+1\",\"0.0.0.0\",\"trail \",\"\xc3\xa9\",\"2020-02-30\"]",
		"- \"\"\n- '- x'\n- 'a #b'\n- \"12:30\"\n- \"0x10\"\n- \"1e3\"\n- \"null\"\n"
		"- \"~\"\n- =\n- <<\n- \"yes\"\n- \"y\"\n- \".5\"\n- \"tab\\tx\"\n- '!x'\n- '%y'\n"
		"- '@z'\n- '`'\n- '{'\n- a{\n- '[x'\n- '*s'\n- '&s'\n- '|'\n- '>'\n- '?'\n"
		"- '? x'\n- '-'\n- --\n- '---'\n- 'a: b'\n- 'a:'\n- :a\n- '#'\n- x#\n- ''''\n"
		"- '\"'\n- \"2020-01-01\"\n- \"0o7\"\n- \"1_000\"\n- \"012\"\n- \"+1\"\n- 0.0.0.0\n"
		"- 'trail '\n- \xc3\xa9\n- 2020-02-30\n");
}

static void several_lines_are_printed_as_a_block(void **state)
{
	assert_written("[\"line1\\nline2\\n\",\"no end\\nx\",\"  lead\\nx\",\"two\\n\\n\","
		       "\"\\n\",\"a \\nb\"]",
		       "- |\n  line1\n  line2\n"
		       "- |-\n  no end\n  x\n"
		       "- |2-\n    lead\n  x\n"
		       "- |+\n  two\n\n"
		       "- |2+\n\n"
		       "- \"a \\nb\"\n");
	/* A text of several lines at the end of the document is not followed by a line "...". */
	assert_written("{\"a\":\"x\\n\\n\"}", "a: |+\n  x\n\n");
}

static void long_lines_are_folded(void **state)
{
	assert_written(
		"{\"a\":\"this is a very long text with many words and goes on and on beyond "
		"the eighty columns of a terminal or even more than that\"}",
		"a: this is a very long text with many words and goes on and on beyond the "
		"eighty columns\n"
		"  of a terminal or even more than that\n");
}

static void keys_are_sorted_with_digits_by_number(void **state)
{
	assert_written(
		"{\"a10\":0,\"a9\":0,\"B\":0,\"a\":0,\"10\":0,\"9\":0,\"a-b\":0,"
		"\"ab\":0,\"a01\":0,"
		"\"a1\":0,\"\xc3\xa9\":0,\"_\":0}",
		"_: 0\n\"9\": 0\n\"10\": 0\nB: 0\na: 0\na-b: 0\na1: 0\na01: 0\na9: 0\na10: 0\n"
		"ab: 0\n\xc3\xa9: 0\n");
}

static void numbers_are_printed_as_go_prints_them(void **state)
{
	assert_written("[0.5,1.0,100000.5,1234567.5,1e21,1e-7,0.0001,-0.0,9223372036854775807]",
		       "- 0.5\n- 1\n- 100000.5\n- 1.2345675e+06\n- 1e+21\n- 1e-07\n- 0.0001\n- -0\n"
		       "- 9223372036854775807\n");
}

static void written_yaml_reads_back_equal(void **state)
{
	/* clang-format off */
	static const char *const pieces[] = {
		"yes", "~", "12:30", "-", "- ", ": ", " #", "\n", "\n\n", " ", "\t", "\r", "'", "\"", "\\",
		"{", "]", "&a", "*a", "!", "%", "@", "`", "|", ">", "?", "a", "key", "0x1", "1e3", ",",
		"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xc2\xa0", "\xef\xbb\xbf", "\x01", "\x7f",
		"\xf0\x9f\x98\x80", "\xc3\xa9", "<<", "=", "...", "---", "word word word word word word ",
	};
	/* clang-format on */
	uint64_t x = 88172645463325252u;

	for (int round = 0; round < 5000; round++) {
		HF_AUTO_JSON value = hf_json_object();
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
		struct hf_yaml *yaml = NULL;
		struct hf_error err;
		for (int k = 0; k < 2; k++) {
			HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			uint64_t y = x;
			for (unsigned n = (unsigned)(x >> 60); n > 0; n--) {
				y = y * 6364136223846793005u + 1442695040888963407u;
				hf_strbuf_addstr(&text, pieces[(y >> 33) % HF_ARRAY_LEN(pieces)]);
			}
			hf_json_set(value, k ? text.data : "v", hf_json_string(text.data));
		}
		hf_yaml_write(value, &sb);
		assert_ok(hf_yaml_parse(sb.data, sb.len, NULL, &yaml, &err), &err);
		if (!hf_json_equal(hf_yaml_doc(yaml, 0), value))
			fail_msg("not the same: %s", sb.data);
		hf_yaml_destroy(yaml);
	}
}

static void dates_and_base_60_are_recognized(void **state)
{
	static const char *const dates[] = {"2020-01-02",
					    "2020-1-2",
					    "2024-02-29",
					    "2020-01-02T03:04:05Z",
					    "2020-1-2t3:4:5.5+01:00",
					    "2020-01-02 03:04:05",
					    "2020-01-02 03:04:05.123"};
	static const char *const no_dates[] = {"",
					       "2020",
					       "2020-",
					       "2020-13-01",
					       "2020-00-01",
					       "2023-02-29",
					       "2020-01-32",
					       "2020-01-02T",
					       "20-01-02",
					       "2020-01-02T03:04:05",
					       "2020-01-02 03:04:05Z",
					       "2020-01-02T24:00:00Z",
					       "2020-01-02T03:04:05+99:00",
					       "2020-01-02x",
					       "2020-01-02T03:04Z"};

	for (size_t i = 0; i < HF_ARRAY_LEN(dates); i++)
		assert_true(hf_yaml_is_timestamp(dates[i]));
	for (size_t i = 0; i < HF_ARRAY_LEN(no_dates); i++)
		if (hf_yaml_is_timestamp(no_dates[i]))
			fail_msg("%s", no_dates[i]);
	assert_true(hf_yaml_is_base60("12:30"));
	assert_true(hf_yaml_is_base60("-1_0:5:59.5"));
	assert_false(hf_yaml_is_base60("12"));
	assert_false(hf_yaml_is_base60("12:60"));
	assert_false(hf_yaml_is_base60("12:30:x"));
	assert_false(hf_yaml_is_base60(":30"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lay_out_is_that_of_kubectl),
		cmocka_unit_test(strings_are_quoted_exactly_when_needed),
		cmocka_unit_test(several_lines_are_printed_as_a_block),
		cmocka_unit_test(long_lines_are_folded),
		cmocka_unit_test(keys_are_sorted_with_digits_by_number),
		cmocka_unit_test(numbers_are_printed_as_go_prints_them),
		cmocka_unit_test(written_yaml_reads_back_equal),
		cmocka_unit_test(dates_and_base_60_are_recognized),
	};
	return cmocka_run_group_tests_name("json/yaml_write", tests, NULL, NULL);
}
