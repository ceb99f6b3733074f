/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

#include <string.h>

static struct brain b;

static void lines_are_bounded(void **state)
{
	struct hf_notes notes = {0};
	struct hf_brain brain = {.notes = &notes};

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain.arena = b.pass;
	notes.reasons = HF_ARENA_ARRAY(b.pass, struct hf_reason, HF_REASONS_MAX);
	for (int i = 0; i < HF_REASONS_MAX + 10; i++)
		hf_say(&brain, b.now, HF_TOPIC_NEXT, "line %d", i);
	assert_int_equal(notes.reasons_len, HF_REASONS_MAX);
	assert_string_equal(notes.reasons[0].text, "line 0");
	brain_release(&b);
}

/* A line holds 511 bytes.  The 170th character of three bytes would be cut in its middle, so it is
 * left out. */
static void a_long_line_ends_with_a_whole_character(void **state)
{
	struct hf_notes notes = {0};
	struct hf_brain brain = {.notes = &notes};
	char text[3 * 300 + 1] = "";

	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain.arena = b.pass;
	notes.reasons = HF_ARENA_ARRAY(b.pass, struct hf_reason, HF_REASONS_MAX);
	for (int i = 0; i < 300; i++)
		memcpy(text + 3 * i, "\u20ac", 4);
	for (int shift = 0; shift < 3; shift++) {
		const char *said;

		hf_say(&brain, b.now, HF_TOPIC_NEXT, "%.*s%s", shift, "xx", text);
		said = notes.reasons[shift].text;
		assert_true(hf_utf8_valid(said, strlen(said)));
		assert_true(strlen(said) > 500);
		assert_string_equal(said + strlen(said) - 3, "...");
	}
	brain_release(&b);
}

static void the_earliest_wake_up_wins(void **state)
{
	struct hf_notes notes = {.wake_at = HF_TIME_NEVER};
	struct hf_brain brain = {.notes = &notes, .now = 10};

	(void)state;
	hf_wake(&brain, 100);
	hf_wake(&brain, 50);
	hf_wake(&brain, 70);
	assert_int_equal(notes.wake_at, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_bounded),
		cmocka_unit_test(a_long_line_ends_with_a_whole_character),
		cmocka_unit_test(the_earliest_wake_up_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
