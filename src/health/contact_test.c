/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "health/contact.h"

#include <stdio.h>
#include <string.h>

#define BOOT "0a1b2c3d-1111-2222-3333-444455556666"
#define LIMIT_MS 50000

static const struct hf_contact now = {.boot_id = BOOT, .at_ms = 1000000};

static enum hf_contact_word judge(const char *text, uint64_t *age_ms)
{
	return hf_contact_judge(text, strlen(text), &now, LIMIT_MS, age_ms);
}

static void what_is_written_can_be_read(void **state)
{
	struct hf_contact longest = {.at_ms = 999999999999999}, read;
	char text[HF_CONTACT_BYTES_MAX];
	size_t len = hf_contact_format(&now, text);

	assert_string_equal(text, "holdfast-contact/1 boot=" BOOT " at_ms=1000000\n");
	assert_true(hf_contact_parse(text, len, &read));
	assert_string_equal(read.boot_id, now.boot_id);
	assert_true(read.at_ms == now.at_ms);
	memset(longest.boot_id, 'f', sizeof(longest.boot_id) - 1);
	len = hf_contact_format(&longest, text);
	assert_true(hf_contact_parse(text, len, &read));
	assert_string_equal(read.boot_id, longest.boot_id);
	assert_true(read.at_ms == longest.at_ms);
}

static void a_contact_holds_until_its_limit(void **state)
{
	uint64_t age_ms = 7;

	assert_int_equal(judge("holdfast-contact/1 boot=" BOOT " at_ms=1000000\n", &age_ms),
			 HF_CONTACT_FRESH);
	assert_int_equal(age_ms, 0);
	assert_int_equal(judge("holdfast-contact/1 boot=" BOOT " at_ms=950001\n", &age_ms),
			 HF_CONTACT_FRESH);
	assert_int_equal(judge("holdfast-contact/1 boot=" BOOT " at_ms=950000\n", &age_ms),
			 HF_CONTACT_OLD);
	assert_int_equal(age_ms, LIMIT_MS);
	assert_int_equal(judge("holdfast-contact/1 boot=" BOOT " at_ms=0\n", &age_ms),
			 HF_CONTACT_OLD);
}

static void no_other_clock_counts(void **state)
{
	uint64_t age_ms = 7;

	assert_int_equal(judge("holdfast-contact/1 boot=" BOOT " at_ms=1000001\n", &age_ms),
			 HF_CONTACT_FUTURE);
	assert_int_equal(judge("holdfast-contact/1 boot=0a1b at_ms=1000000\n", &age_ms),
			 HF_CONTACT_OTHER_BOOT);
	assert_int_equal(age_ms, 7);
}

static void whatever_else_is_no_record(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"holdfast-contact/1",
		"holdfast-contact/2 boot=" BOOT " at_ms=1000000\n",
		"holdfast-contact/1 boot=" BOOT " at_ms=1000000",
		"holdfast-contact/1 boot=" BOOT " at_ms=1000000\n\n",
		"holdfast-contact/1 boot=" BOOT " at_ms=1000000 \n",
		"holdfast-contact/1 boot=" BOOT " at_ms=-1\n",
		"holdfast-contact/1 boot=" BOOT " at_ms=+1000000\n",
		"holdfast-contact/1 boot=" BOOT " at_ms=1e6\n",
		"holdfast-contact/1 boot=" BOOT " at_ms=\n",
		"holdfast-contact/1 boot=" BOOT " at_ms=1000000000000000\n",
		"holdfast-contact/1 boot= at_ms=1000000\n",
		"holdfast-contact/1  boot=" BOOT " at_ms=1000000\n",
		"holdfast-contact/1 boot=a/b at_ms=1000000\n",
		" holdfast-contact/1 boot=" BOOT " at_ms=1000000\n",
	};
	uint64_t age_ms;

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++)
		assert_int_equal(judge(texts[i], &age_ms), HF_CONTACT_BROKEN);
}

static void a_record_that_is_cut_or_changed_is_none_or_says_what_it_says(void **state)
{
	char text[HF_CONTACT_BYTES_MAX], other[HF_CONTACT_BYTES_MAX];
	size_t len = hf_contact_format(&now, text);
	struct hf_contact read;

	for (size_t n = 0; n < len; n++)
		assert_false(hf_contact_parse(text, n, &read));
	for (size_t i = 0; i < len; i++) {
		memcpy(other, text, len);
		other[i] = '\0';
		assert_false(hf_contact_parse(other, len, &read));
		other[i] = (char)0xff;
		assert_false(hf_contact_parse(other, len, &read));
	}
	memset(other, '1', sizeof(other));
	assert_false(hf_contact_parse(other, sizeof(other), &read));
}

static void a_name_of_a_boot_that_is_too_long_is_none(void **state)
{
	char text[HF_CONTACT_BYTES_MAX];
	struct hf_contact read;
	int n = snprintf(text, sizeof(text), "holdfast-contact/1 boot=%064d at_ms=1\n", 7);

	assert_false(hf_contact_parse(text, (size_t)n, &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_can_be_read),
		cmocka_unit_test(a_contact_holds_until_its_limit),
		cmocka_unit_test(no_other_clock_counts),
		cmocka_unit_test(whatever_else_is_no_record),
		cmocka_unit_test(a_record_that_is_cut_or_changed_is_none_or_says_what_it_says),
		cmocka_unit_test(a_name_of_a_boot_that_is_too_long_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
