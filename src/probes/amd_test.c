/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "probes/amd.h"

#include <string.h>

/* Sizes of the tables that the drivers write. Version 1.8 exists in two sizes. */
static const struct form {
	unsigned char content;
	size_t size, cycles;
} forms[] = {{6, 1664, 32}, {7, 2208, 40}, {8, 3360, 40}, {8, 3872, 40}};

static unsigned char table[4096];

static void put(size_t at, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		table[at + (size_t)i] = (unsigned char)(number >> (8 * i));
}

/* Fills the table as the driver does at first: every field that the driver does not know is full of
 * one bits. */
static void begin(const struct form *form)
{
	memset(table, 0xff, sizeof(table));
	table[0] = (unsigned char)form->size;
	table[1] = (unsigned char)(form->size >> 8);
	table[2] = 1;
	table[3] = form->content;
}

static void put_counters(const struct form *form, const uint32_t numbers[6])
{
	begin(form);
	for (size_t i = 0; i < 6; i++)
		put(form->cycles + 4 * i, numbers[i]);
}

static struct hf_amd_throttle read_counters(const struct form *form, const uint32_t numbers[6])
{
	struct hf_amd_throttle found;

	put_counters(form, numbers);
	hf_amd_metrics(table, form->size, &found);
	return found;
}

static void what_held_it_back_longest_counts(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(forms); i++) {
		struct hf_amd_throttle before =
			read_counters(&forms[i], (const uint32_t[6]){1000, 5, 100, 7, 8, 9});
		struct hf_amd_throttle now =
			read_counters(&forms[i], (const uint32_t[6]){3000, 5, 1900, 207, 508, 10});
		uint32_t percent = 0;

		assert_true(before.known && now.known);
		assert_int_equal(before.cycles, 1000);
		assert_memory_equal(before.held, ((const uint32_t[4]){5, 7, 8, 9}), 16);
		/* A limit of heat acted in 25 % of the cycles. Power capping in 1,800 cycles does
		 * not count. */
		assert_true(hf_amd_throttled(&before, &now, &percent));
		assert_int_equal(percent, 25);
	}
}

static void a_device_that_says_a_part_is_judged_by_that(void **state)
{
	const uint32_t none = UINT32_MAX;
	struct hf_amd_throttle before =
		read_counters(&forms[0], (const uint32_t[6]){0, none, none, 0, none, none});
	struct hf_amd_throttle now =
		read_counters(&forms[0], (const uint32_t[6]){10, none, none, 10, none, 4});
	uint32_t percent = 0;

	assert_true(hf_amd_throttled(&before, &now, &percent));
	assert_int_equal(percent, 100);
	now = read_counters(&forms[0], (const uint32_t[6]){10, none, 3, none, none, none});
	assert_false(now.known);
	assert_false(hf_amd_throttled(&before, &now, &percent));
}

static void counters_that_make_no_sense_say_nothing(void **state)
{
	const struct hf_amd_throttle before = {.known = true, .cycles = 100, .held = {9, 9, 9, 9}};
	struct hf_amd_throttle now = before;
	uint32_t percent = 77;

	/* No rate is known if no cycle passed, if the counter fell, or if a limit acted in more
	 * cycles than passed. */
	assert_false(hf_amd_throttled(&before, &now, &percent));
	now.cycles = 50;
	assert_false(hf_amd_throttled(&before, &now, &percent));
	now = (struct hf_amd_throttle){.known = true, .cycles = 200, .held = {1, 200, 300, 8}};
	assert_false(hf_amd_throttled(&before, &now, &percent));
	assert_int_equal(percent, 77);
	now.known = false;
	assert_false(hf_amd_throttled(&before, &now, &percent));
}

static void what_the_device_does_not_say_is_no_load(void **state)
{
	const uint32_t numbers[6] = {1, 1, 1, 1, 1, 1};
	struct hf_amd_throttle found;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(forms); i++) {
		found = read_counters(&forms[i], numbers);
		assert_int_equal(found.load_percent, 0);
		table[12] = 93;
		table[13] = 0;
		hf_amd_metrics(table, forms[i].size, &found);
		assert_int_equal(found.load_percent, 93);
		table[13] = 1;
		hf_amd_metrics(table, forms[i].size, &found);
		assert_int_equal(found.load_percent, 0);
	}
}

static void another_table_is_not_known(void **state)
{
	const struct form *form = &forms[1];
	const uint32_t numbers[6] = {1, 1, 1, 1, 1, 1};
	struct hf_amd_throttle found = read_counters(form, numbers);

	assert_true(found.known);
	/* A table that is cut short is ignored, unless its header gives the shorter size and the
	 * counters are inside. */
	for (size_t len = 0; len < form->size; len++) {
		put_counters(form, numbers);
		hf_amd_metrics(table, len, &found);
		assert_false(found.known);
		table[0] = (unsigned char)len;
		table[1] = (unsigned char)(len >> 8);
		hf_amd_metrics(table, len, &found);
		assert_true(found.known == (len >= 64));
	}
	for (unsigned content = 0; content < 256; content++) {
		put_counters(form, numbers);
		table[3] = (unsigned char)content;
		hf_amd_metrics(table, form->size, &found);
		/* Only versions 1.7 and 1.8 have this layout; read as 1.6, its counters are all one
		 * bits, which means not known. */
		assert_true(found.known == (content == 7 || content == 8));
	}
	put_counters(form, numbers);
	table[2] = 2; /* format of processors with graphics */
	hf_amd_metrics(table, form->size, &found);
	assert_false(found.known);
	begin(form);
	hf_amd_metrics(table, form->size, &found);
	assert_false(found.known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_held_it_back_longest_counts),
		cmocka_unit_test(a_device_that_says_a_part_is_judged_by_that),
		cmocka_unit_test(counters_that_make_no_sense_say_nothing),
		cmocka_unit_test(what_the_device_does_not_say_is_no_load),
		cmocka_unit_test(another_table_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
