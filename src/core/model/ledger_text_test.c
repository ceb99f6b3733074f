/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/ledger_text_internal.h"

#include "harness/test.h"

#include <string.h>

#include <stdio.h>

/* Read a text of ranges and list its elements, as "0..3 7..7"; "broken" for a malformed text. */
static const char *read_ranges(const char *text)
{
	static char out[256];
	struct hf_compact cursor = HF_COMPACT_INIT(text);
	int32_t from, to;
	size_t at = 0;
	int rc;

	out[0] = '\0';
	while ((rc = hf_ranges_next(&cursor, &from, &to)) > 0)
		at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%d..%d", at ? " " : "", from,
				       to);
	return rc < 0 ? "broken" : out;
}

static const char *read_sparse(const char *text)
{
	static char out[256];
	struct hf_compact cursor = HF_COMPACT_INIT(text);
	int32_t index;
	int64_t value;
	size_t at = 0;
	int rc;

	out[0] = '\0';
	while ((rc = hf_sparse_next(&cursor, &index, &value)) > 0)
		at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%d=%lld", at ? " " : "",
				       index, (long long)value);
	return rc < 0 ? "broken" : out;
}

static void ranges_are_read(void **state)
{
	(void)state;
	assert_string_equal(read_ranges(NULL), "");
	assert_string_equal(read_ranges(""), "");
	assert_string_equal(read_ranges("0"), "0..0");
	assert_string_equal(read_ranges("0-999"), "0..999");
	assert_string_equal(read_ranges("0-3,7,9-10"), "0..3 7..7 9..10");
	assert_string_equal(read_ranges("0-1,2-3"), "0..1 2..3");
	assert_string_equal(read_ranges("19999"), "19999..19999");
}

static void ranges_that_are_none_are_refused(void **state)
{
	static const char *const texts[] = {
		"x",   "-1",  "1-",  "1-1",   "2-1",     "1,",
		",1",  "1,1", "3,2", "1-3,2", " 1",      "1 ",
		"1;2", "0x1", "+1",  "20000", "0-20000", "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		if (strcmp(read_ranges(texts[i]), "broken") != 0)
			fail_msg("'%s' is read as %s", texts[i], read_ranges(texts[i]));
	}
}

static void sparse_maps_are_read(void **state)
{
	(void)state;
	assert_string_equal(read_sparse(NULL), "");
	assert_string_equal(read_sparse("17:2,40:1"), "17=2 40=1");
	assert_string_equal(read_sparse("0:1000000000"), "0=1000000000");
}

static void sparse_maps_that_are_none_are_refused(void **state)
{
	static const char *const texts[] = {"1",       ":",       "1:",    "1:0",
					    "1:-1",    "1:x",     "1:2,",  "2:1,1:1",
					    "1:1,1:2", "20000:1", "1:2:3", "1:1000000001"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		if (strcmp(read_sparse(texts[i]), "broken") != 0)
			fail_msg("'%s' is read as %s", texts[i], read_sparse(texts[i]));
	}
}

static void ranges_are_written_in_their_smallest_form(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(256);
	struct hf_ranges_writer writer = HF_RANGES_WRITER_INIT(&sb);

	(void)state;
	hf_ranges_finish(&writer);
	assert_string_equal(sb.data, "");
	for (int i = 0; i < 4; i++)
		hf_ranges_add(&writer, i);
	hf_ranges_add(&writer, 7);
	hf_ranges_add(&writer, 9);
	hf_ranges_add(&writer, 10);
	hf_ranges_finish(&writer);
	assert_string_equal(sb.data, "0-3,7,9-10");
}

static void sparse_maps_leave_zeros_out(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(256);

	(void)state;
	hf_sparse_add(&sb, 0, 0);
	hf_sparse_add(&sb, 17, 2);
	hf_sparse_add(&sb, 18, 0);
	hf_sparse_add(&sb, 40, 1);
	assert_string_equal(sb.data, "17:2,40:1");
}

static void what_is_written_is_read_back(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 256; bits++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(256);
		struct hf_ranges_writer writer = HF_RANGES_WRITER_INIT(&sb);
		struct hf_compact cursor;
		unsigned back = 0;
		int32_t from, to;

		for (int i = 0; i < 8; i++) {
			if (bits & 1u << i)
				hf_ranges_add(&writer, i);
		}
		hf_ranges_finish(&writer);
		cursor = (struct hf_compact)HF_COMPACT_INIT(sb.data);
		while (hf_ranges_next(&cursor, &from, &to) > 0) {
			for (int32_t i = from; i <= to; i++)
				back |= 1u << i;
		}
		assert_int_equal(back, bits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_read),
		cmocka_unit_test(ranges_that_are_none_are_refused),
		cmocka_unit_test(sparse_maps_are_read),
		cmocka_unit_test(sparse_maps_that_are_none_are_refused),
		cmocka_unit_test(ranges_are_written_in_their_smallest_form),
		cmocka_unit_test(sparse_maps_leave_zeros_out),
		cmocka_unit_test(what_is_written_is_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
