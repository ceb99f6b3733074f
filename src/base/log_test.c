/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/log.h"

#include "harness/test.h"
#include "harness/random.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- a sink in memory, and a clock with a fixed time */

static char *written;
static size_t written_len;
static FILE *sink;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	/* The time 2026-11-21T09:00:01.250Z, and 999,999 ns that a log line does not show. */
	*ret_now = (struct timespec){.tv_sec = 1795251601, .tv_nsec = 250999999};
	return 0;
}

static void open_sink(enum hf_log_level level, enum hf_log_format format)
{
	if (sink)
		fclose(sink);
	free(written);
	written = NULL;
	sink = open_memstream(&written, &written_len);
	assert_non_null(sink);
	hf_log_setup(sink, level, format);
}

static int close_sink(void **state)
{
	hf_log_setup(NULL, HF_LOG_INFO, HF_LOG_TEXT);
	if (sink)
		fclose(sink);
	sink = NULL;
	free(written);
	written = NULL;
	return 0;
}

static size_t count_lines(void)
{
	size_t n = 0;

	for (size_t i = 0; i < written_len; i++)
		n += written[i] == '\n';
	return n;
}

/* ---- a reader of JSON lines, strict enough to find a forged line */

/* Returns the position after one JSON string, or NULL if it is invalid. Control characters,
 * which a terminal could obey, are invalid. */
static const char *skip_json_string(const char *p)
{
	if (*p++ != '"')
		return NULL;
	while (*p && *p != '"') {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return NULL;
		if (*p != '\\') {
			p++;
		} else if (p[1] == 'u') {
			if (strspn(p + 2, "0123456789abcdef") < 4)
				return NULL;
			p += 6;
		} else if (p[1] && strchr("\"\\ntr", p[1])) {
			p += 2;
		} else {
			return NULL;
		}
	}
	return *p == '"' ? p + 1 : NULL;
}

/* Counts the key/value pairs of one JSON line. Returns -1 if `line` is not exactly one JSON
 * object. */
static int count_json_pairs(const char *line)
{
	const char *p = line;
	int pairs = 0;

	if (*p != '{')
		return -1;
	do {
		p = skip_json_string(p + 1);
		if (!p || *p != ':')
			return -1;
		p = skip_json_string(p + 1);
		if (!p)
			return -1;
		pairs++;
	} while (*p == ',');
	return strcmp(p, "}\n") == 0 ? pairs : -1;
}

/* ---- lines */

static void a_text_line_has_time_level_message_and_pairs(void **state)
{
	open_sink(HF_LOG_INFO, HF_LOG_TEXT);
	hf_log(HF_LOG_INFO, NULL, "job running", "namespace", "default", "name", "ddp", NULL);
	assert_string_equal(written, "2026-11-21T09:00:01.250Z INFO  job running  "
				     "namespace=default name=ddp\n");
}

static void a_text_line_may_have_a_logger_and_no_pairs(void **state)
{
	open_sink(HF_LOG_INFO, HF_LOG_TEXT);
	hf_log(HF_LOG_ERROR, "agent", "probe failed", NULL);
	assert_string_equal(written, "2026-11-21T09:00:01.250Z ERROR agent: probe failed\n");
}

static void a_json_line_has_the_keys_of_controller_runtime(void **state)
{
	open_sink(HF_LOG_INFO, HF_LOG_JSON);
	hf_log(HF_LOG_WARN, "operator", "pod lost", "pod", "ddp-worker-1", "cause", NULL, NULL);
	assert_string_equal(written, "{\"level\":\"warn\",\"ts\":\"2026-11-21T09:00:01.250Z\","
				     "\"logger\":\"operator\",\"msg\":\"pod lost\","
				     "\"pod\":\"ddp-worker-1\",\"cause\":\"\"}\n");
	open_sink(HF_LOG_INFO, HF_LOG_JSON);
	hf_log(HF_LOG_INFO, "", "started", NULL);
	assert_string_equal(written, "{\"level\":\"info\",\"ts\":\"2026-11-21T09:00:01.250Z\","
				     "\"msg\":\"started\"}\n");
}

static void levels_below_the_set_one_are_dropped(void **state)
{
	open_sink(HF_LOG_WARN, HF_LOG_TEXT);
	hf_log(HF_LOG_DEBUG, NULL, "d", NULL);
	hf_log(HF_LOG_INFO, NULL, "i", NULL);
	hf_log(HF_LOG_WARN, NULL, "w", NULL);
	hf_log(HF_LOG_ERROR, NULL, "e", NULL);
	assert_int_equal(count_lines(), 2);
	assert_false(hf_log_enabled(HF_LOG_INFO));
	assert_true(hf_log_enabled(HF_LOG_WARN));
	open_sink(HF_LOG_DEBUG, HF_LOG_TEXT);
	hf_log(HF_LOG_DEBUG, NULL, "d", NULL);
	assert_true(hf_str_has_suffix(written, " DEBUG d\n"));
}

static void without_a_sink_nothing_is_written(void **state)
{
	hf_log_setup(NULL, HF_LOG_DEBUG, HF_LOG_TEXT);
	assert_false(hf_log_enabled(HF_LOG_ERROR));
	hf_log(HF_LOG_ERROR, NULL, "nobody reads this", NULL);
}

static void values_are_quoted_only_where_they_must_be(void **state)
{
	static const struct {
		const char *value;
		const char *text;
	} rows[] = {
		{"plain-1.2/x:y", "plain-1.2/x:y"},
		{"", "\"\""},
		{"two words", "\"two words\""},
		{"a=b", "\"a=b\""},
		{"say \"hi\"", "\"say \\\"hi\\\"\""},
		{"C:\\dir", "\"C:\\\\dir\""},
		{"tab\there", "\"tab\\there\""},
		{"line\nbreak\r", "\"line\\nbreak\\r\""},
		{"\x1b[31mred", "\"\\u001b[31mred\""},
		{"\x7f", "\"\\u007f\""},
		{"na\xc3\xafve", "\"na\xc3\xafve\""},
		{"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
		{"bad\xff"
		 "byte",
		 "\"bad\\xffbyte\""},
		{"cut\xe2\x82", "\"cut\\xe2\\x82\""},
		{"\xc2\x9b"
		 "31m",
		 "\"\\u009b31m\""},                  /* the terminal control CSI as one character */
		{"a\xe2\x80\xa8z", "\"a\\u2028z\""}, /* line separator */
		{"a\xe2\x80\xae"
		 "cba",
		 "\"a\\u202ecba\""}, /* right-to-left override */
		{"\xef\xbb\xbf", "\"\\ufeff\""},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		char want[128];

		open_sink(HF_LOG_INFO, HF_LOG_TEXT);
		hf_log(HF_LOG_INFO, NULL, "m", "k", rows[i].value, NULL);
		(void)snprintf(want, sizeof(want), "2026-11-21T09:00:01.250Z INFO  m  k=%s\n",
			       rows[i].text);
		assert_string_equal(written, want);
	}
}

static void json_escapes_what_json_and_terminals_need(void **state)
{
	open_sink(HF_LOG_INFO, HF_LOG_JSON);
	hf_log(HF_LOG_INFO, NULL, "m", "k", "\"q\" \\ \n\x01\x1b\x7f \xff \xe2\x80\xa8 \xc3\xaf",
	       NULL);
	assert_non_null(strstr(written, "\"k\":\"\\\"q\\\" \\\\ \\n\\u0001\\u001b\\u007f "
					"\\ufffd \\u2028 \xc3\xaf\"}\n"));
	assert_int_equal(count_json_pairs(written), 4);
}

static void no_value_forges_a_second_line(void **state)
{
	static const char forged[] =
		"x\n2026-11-21T09:00:01.250Z INFO  all is well\r\n{\"level\":\"info\"}\n";
	static const enum hf_log_format formats[] = {HF_LOG_TEXT, HF_LOG_JSON};

	for (size_t f = 0; f < HF_ARRAY_LEN(formats); f++) {
		open_sink(HF_LOG_INFO, formats[f]);
		hf_log(HF_LOG_INFO, forged, forged, forged, forged, NULL);
		assert_int_equal(count_lines(), 1);
		assert_null(strchr(written, '\r'));
	}
	assert_int_equal(count_json_pairs(written), 5);
}

static void a_value_without_end_is_cut_and_the_line_still_ends(void **state)
{
	static char value[100000];

	memset(value, 'v', sizeof(value) - 1);
	open_sink(HF_LOG_INFO, HF_LOG_TEXT);
	hf_log(HF_LOG_INFO, NULL, "m", "a", "1", "k", value, "never", "seen", NULL);
	assert_int_equal(count_lines(), 1);
	assert_in_range(written_len, 16000, 16384);
	assert_true(hf_str_has_suffix(written, "vvv cut=true\n"));
	assert_null(strstr(written, "seen"));
	open_sink(HF_LOG_INFO, HF_LOG_JSON);
	hf_log(HF_LOG_INFO, NULL, "m", "a", "1", "k", value, "never", "seen", NULL);
	assert_in_range(written_len, 16000, 16384);
	assert_true(hf_str_has_suffix(written, "vvv\",\"cut\":\"true\"}\n"));
	assert_int_equal(count_json_pairs(written), 6);
}

static void a_message_without_end_is_cut_too(void **state)
{
	static char text[50000];

	memset(text, '\n', sizeof(text) - 1);
	open_sink(HF_LOG_INFO, HF_LOG_JSON);
	hf_log(HF_LOG_INFO, text, text, text, text, NULL);
	assert_int_equal(count_lines(), 1);
	assert_true(count_json_pairs(written) > 0);
	open_sink(HF_LOG_INFO, HF_LOG_TEXT);
	hf_log(HF_LOG_INFO, text, text, text, text, NULL);
	assert_int_equal(count_lines(), 1);
	assert_true(hf_str_has_suffix(written, " cut=true\n"));
}

/* The cut may fall into a key, between key and value, or into an escape. */
static void a_line_is_whole_wherever_it_is_cut(void **state)
{
	static char value[17000];

	for (size_t len = 16100; len < 16420; len++) {
		memset(value, 'v', len);
		value[len] = '\0';
		open_sink(HF_LOG_INFO, HF_LOG_JSON);
		hf_log(HF_LOG_INFO, NULL, "m", "k", value, "key2", "\x01\xe2\x82\xac\"\xff", "key3",
		       "", NULL);
		assert_int_equal(count_lines(), 1);
		assert_true(count_json_pairs(written) >= 4);
		assert_true(hf_utf8_valid(written, written_len));
		open_sink(HF_LOG_INFO, HF_LOG_TEXT);
		hf_log(HF_LOG_INFO, NULL, "m", "k", value, "key2", "\x01\xe2\x82\xac\"\xff", "key3",
		       "", NULL);
		assert_int_equal(count_lines(), 1);
		assert_true(hf_utf8_valid(written, written_len));
		assert_true(written_len <= 16384);
	}
}

static void any_bytes_make_one_sound_line(void **state)
{
	uint64_t seed = 12;

	for (int i = 0; i < 5000; i++) {
		char text[64];
		size_t len = test_random_below(&seed, sizeof(text));

		for (size_t b = 0; b < len; b++)
			text[b] = (char)(1 + test_random_below(&seed, 255));
		text[len] = '\0';
		open_sink(HF_LOG_INFO, i % 2 ? HF_LOG_JSON : HF_LOG_TEXT);
		hf_log(HF_LOG_INFO, "l", text, "k", text, text, "v", NULL);
		assert_int_equal(count_lines(), 1);
		assert_true(hf_utf8_valid(written, written_len));
		for (size_t b = 0; b + 1 < written_len; b++)
			assert_true((unsigned char)written[b] >= 0x20 && written[b] != 0x7f);
		if (i % 2)
			assert_int_equal(count_json_pairs(written), 6);
	}
}

static void each_line_is_there_when_the_call_returns(void **state)
{
	open_sink(HF_LOG_INFO, HF_LOG_TEXT);
	hf_log(HF_LOG_INFO, NULL, "one", NULL);
	assert_int_equal(count_lines(), 1);
	hf_log(HF_LOG_INFO, NULL, "two", NULL);
	assert_int_equal(count_lines(), 2);
}

static void a_full_sink_does_not_stop_the_program(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	hf_log_setup(full, HF_LOG_INFO, HF_LOG_TEXT);
	hf_log(HF_LOG_INFO, NULL, "lost", NULL);
	hf_log(HF_LOG_INFO, NULL, "lost too", NULL);
	hf_log_setup(NULL, HF_LOG_INFO, HF_LOG_TEXT);
	fclose(full);
}

#define log_test(f) cmocka_unit_test_teardown(f, close_sink)

int main(void)
{
	const struct CMUnitTest tests[] = {
		log_test(a_text_line_has_time_level_message_and_pairs),
		log_test(a_text_line_may_have_a_logger_and_no_pairs),
		log_test(a_json_line_has_the_keys_of_controller_runtime),
		log_test(levels_below_the_set_one_are_dropped),
		log_test(without_a_sink_nothing_is_written),
		log_test(values_are_quoted_only_where_they_must_be),
		log_test(json_escapes_what_json_and_terminals_need),
		log_test(no_value_forges_a_second_line),
		log_test(a_value_without_end_is_cut_and_the_line_still_ends),
		log_test(a_message_without_end_is_cut_too),
		log_test(a_line_is_whole_wherever_it_is_cut),
		log_test(any_bytes_make_one_sound_line),
		log_test(each_line_is_there_when_the_call_returns),
		log_test(a_full_sink_does_not_stop_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
