/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/rules.h"

#include "harness/test.h"

static const struct hf_health_rules *const builtin = &hf_health_rules_builtin;

static struct hf_health_evidence xid(int code)
{
	struct hf_health_evidence e = hf_health_evidence_none();

	e.detector = HF_HEALTH_XID;
	e.code = code;
	return e;
}

static enum hf_health_class class_of(const struct hf_health_evidence *e)
{
	const struct hf_health_rule *rule = hf_health_rules_match(builtin, e);

	return rule ? rule->cls : HF_HEALTH_UNRATED;
}

static void the_table_is_sound(void **state)
{
	size_t at;

	(void)state;
	assert_null(hf_health_rules_problem(builtin, &at));
}

/* The class of each number in the vendor's catalogue; other numbers are recorded and never act.  Xid 79 is the
 * lost bus, 144 to 150 are rated by their line, and 13 and 31 are a program's until they repeat. */
static void numbers_have_the_vendors_class(void **state)
{
	static const struct {
		int from, to;
		enum hf_health_class cls;
	} rows[] = {
		{8, 8, HF_HEALTH_APP},           {11, 11, HF_HEALTH_APP},
		{25, 25, HF_HEALTH_APP},         {32, 32, HF_HEALTH_APP},
		{39, 41, HF_HEALTH_APP},         {45, 45, HF_HEALTH_APP},
		{60, 60, HF_HEALTH_APP},         {68, 72, HF_HEALTH_APP},
		{75, 77, HF_HEALTH_APP},         {80, 80, HF_HEALTH_APP},
		{82, 86, HF_HEALTH_APP},         {88, 89, HF_HEALTH_APP},
		{94, 94, HF_HEALTH_APP},         {96, 105, HF_HEALTH_APP},
		{126, 135, HF_HEALTH_APP},       {139, 139, HF_HEALTH_APP},
		{13, 13, HF_HEALTH_DEGRADED},    {31, 31, HF_HEALTH_DEGRADED},
		{14, 14, HF_HEALTH_INFO},        {37, 38, HF_HEALTH_INFO},
		{43, 44, HF_HEALTH_INFO},        {63, 63, HF_HEALTH_INFO},
		{66, 67, HF_HEALTH_INFO},        {92, 93, HF_HEALTH_INFO},
		{106, 107, HF_HEALTH_INFO},      {121, 121, HF_HEALTH_INFO},
		{137, 137, HF_HEALTH_INFO},      {141, 141, HF_HEALTH_INFO},
		{152, 154, HF_HEALTH_INFO},      {157, 157, HF_HEALTH_INFO},
		{160, 161, HF_HEALTH_INFO},      {171, 172, HF_HEALTH_INFO},
		{46, 46, HF_HEALTH_GPU_RESET},   {48, 48, HF_HEALTH_GPU_RESET},
		{62, 62, HF_HEALTH_GPU_RESET},   {64, 64, HF_HEALTH_GPU_RESET},
		{95, 95, HF_HEALTH_GPU_RESET},   {109, 110, HF_HEALTH_GPU_RESET},
		{119, 120, HF_HEALTH_GPU_RESET}, {136, 136, HF_HEALTH_GPU_RESET},
		{140, 140, HF_HEALTH_GPU_RESET}, {143, 143, HF_HEALTH_GPU_RESET},
		{155, 156, HF_HEALTH_GPU_RESET}, {158, 158, HF_HEALTH_GPU_RESET},
		{151, 151, HF_HEALTH_REBOOT},    {54, 54, HF_HEALTH_SUPPORT},
		{142, 142, HF_HEALTH_SUPPORT},   {78, 78, HF_HEALTH_SOFTWARE},
		{159, 159, HF_HEALTH_SOFTWARE},  {74, 74, HF_HEALTH_FABRIC},
	};
	enum hf_health_class expected[1000];

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(expected); i++)
		expected[i] = HF_HEALTH_UNRATED;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++)
		for (int code = rows[i].from; code <= rows[i].to; code++)
			expected[code] = rows[i].cls;
	for (int code = 0; code < (int)HF_ARRAY_LEN(expected); code++) {
		struct hf_health_evidence e = xid(code);

		if (class_of(&e) != expected[code])
			fail_msg("Xid %d is %s", code, hf_health_class_name(class_of(&e)));
	}
}

static void nvlink_5_goes_by_the_line_and_not_by_the_number(void **state)
{
	(void)state;
	for (int code = 144; code <= 150; code++) {
		struct hf_health_evidence e = xid(code);

		assert_int_equal(class_of(&e), HF_HEALTH_UNRATED);
		e.severity = HF_HEALTH_NONFATAL;
		assert_int_equal(class_of(&e), HF_HEALTH_INFO);
		e.severity = HF_HEALTH_FATAL;
		assert_int_equal(class_of(&e), HF_HEALTH_GPU_RESET);
	}
}

static void an_old_link_goes_by_its_register(void **state)
{
	struct hf_health_evidence e = xid(74);

	(void)state;
	assert_int_equal(class_of(&e), HF_HEALTH_FABRIC);
	e.has_word = true;
	e.word = 1u << 4;
	assert_int_equal(class_of(&e), HF_HEALTH_GPU_RESET);
	assert_int_equal(hf_health_rules_match(builtin, &e)->count, 2);
	e.word = 1u << 21;
	assert_true(hf_health_rules_match(builtin, &e)->follows);
	e.word = 1u << 23 | 1u << 30;
	assert_int_equal(class_of(&e), HF_HEALTH_INFO);
	e.word = 1u << 23 | 1u << 29;
	assert_int_equal(class_of(&e), HF_HEALTH_FABRIC);
}

static void a_narrow_rule_before_a_wide_one(void **state)
{
	const struct hf_health_rule items[] = {
		{.detector = HF_HEALTH_XID,
		 .code_min = 149,
		 .code_max = 149,
		 .subcode = 4,
		 .cls = HF_HEALTH_INFO},
		{.detector = HF_HEALTH_XID,
		 .code_min = 0,
		 .code_max = 999,
		 .subcode = -1,
		 .cls = HF_HEALTH_REBOOT,
		 .clear = HF_HEALTH_BY_BOOT},
	};
	const struct hf_health_rules rules = {.items = items, .len = 2};
	struct hf_health_evidence e = xid(149);

	(void)state;
	assert_ptr_equal(hf_health_rules_match(&rules, &e), &items[1]);
	e.subcode = 4;
	assert_ptr_equal(hf_health_rules_match(&rules, &e), &items[0]);
}

static void the_hash_is_of_what_the_table_says(void **state)
{
	struct hf_health_rule items[2] = {hf_health_rules_builtin.items[0],
					  hf_health_rules_builtin.items[1]};
	struct hf_health_rules rules = {.items = items, .len = 2, .escalate_count = 5};
	uint64_t before = hf_health_rules_hash(&rules);

	(void)state;
	assert_int_equal(hf_health_rules_hash(&rules), before);
	items[1].window++;
	assert_int_not_equal(hf_health_rules_hash(&rules), before);
	items[1].window--;
	items[0].cls = HF_HEALTH_REBOOT;
	assert_int_not_equal(hf_health_rules_hash(&rules), before);
}

static void a_table_that_makes_no_sense_is_refused(void **state)
{
	const struct hf_health_rule good = {.detector = HF_HEALTH_XID, .cls = HF_HEALTH_APP};
	struct hf_health_rule bad[8] = {good, good, good, good, good, good, good, good};
	size_t at;

	(void)state;
	bad[0].cls = (enum hf_health_class)99;
	bad[1].code_min = 2;
	bad[2].count = HF_HEALTH_REPEATS_MAX + 1;
	bad[3].count = 2;
	bad[4].burst = -1;
	bad[5].cls = HF_HEALTH_REBOOT;
	/* The first time would mean a replacement of the device, and would end by itself. */
	bad[6] = (struct hf_health_rule){.cls = HF_HEALTH_DEGRADED,
					 .below = HF_HEALTH_REPLACE,
					 .count = 2,
					 .window = HF_HOUR};
	bad[7] = (struct hf_health_rule){.cls = HF_HEALTH_DEGRADED,
					 .below = HF_HEALTH_FABRIC,
					 .count = 2,
					 .window = HF_HOUR};
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		const struct hf_health_rule two[] = {good, bad[i]};
		struct hf_health_rules rules = {.items = two, .len = 2};

		assert_non_null(hf_health_rules_problem(&rules, &at));
		assert_int_equal(at, 1);
	}
	assert_non_null(hf_health_rules_problem(
		&(struct hf_health_rules){.items = &good, .len = 1, .escalate_count = 99}, &at));
	assert_non_null(hf_health_rules_problem(
		&(struct hf_health_rules){.items = &good, .len = 99999}, &at));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_sound),
		cmocka_unit_test(numbers_have_the_vendors_class),
		cmocka_unit_test(nvlink_5_goes_by_the_line_and_not_by_the_number),
		cmocka_unit_test(an_old_link_goes_by_its_register),
		cmocka_unit_test(a_narrow_rule_before_a_wide_one),
		cmocka_unit_test(the_hash_is_of_what_the_table_says),
		cmocka_unit_test(a_table_that_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
