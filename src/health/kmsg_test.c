/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/kmsg.h"

#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct hf_health_record record;

static enum hf_health_kmsg parse(const char *text)
{
	return hf_health_kmsg_parse(text, strlen(text), &record);
}

static void assert_text(const char *text)
{
	assert_int_equal(record.text_len, strlen(text));
	assert_memory_equal(record.text, text, record.text_len);
}

static void a_record_has_its_numbers_and_no_context(void **state)
{
	(void)state;
	assert_int_equal(parse("3,1234,5678901,-;hello\n SUBSYSTEM=pci\n DEVICE=+pci:0\n"),
			 HF_HEALTH_KMSG_KERNEL);
	assert_int_equal(record.priority, 3);
	assert_int_equal(record.seq, 1234);
	assert_int_equal(record.usec, 5678901);
	assert_false(record.continuation);
	assert_text("hello");
	/* Newer kernels add the caller behind the flags. */
	assert_int_equal(parse("3,1,2,c,caller=T1;x"), HF_HEALTH_KMSG_KERNEL);
	assert_true(record.continuation);
	assert_text("x");
}

static void another_facility_is_forged(void **state)
{
	(void)state;
	assert_int_equal(parse("12,1,2,-;NVRM: Xid (PCI:0000:1a:00): 79, x"),
			 HF_HEALTH_KMSG_FORGED);
	assert_int_equal(record.facility, 1);
	assert_int_equal(parse("999999999,1,2,-;x"), HF_HEALTH_KMSG_FORGED);
}

static void escapes_are_undone(void **state)
{
	(void)state;
	parse("6,1,2,-;a\\x0ab\\x5cc\\x00d\\xZZ\\x4");
	assert_int_equal(record.text_len, 14);
	assert_memory_equal(record.text, "a\nb\\c\0d\\xZZ\\x4", 14);
}

static void what_is_no_record_is_broken(void **state)
{
	static const char *const bad[] = {"",
					  "hello",
					  ";",
					  "6;x",
					  "6,1;x",
					  "6,1,2;x",
					  "x,1,2,-;t",
					  "6,-1,2,-;t",
					  "6,1,2,-",
					  "6,1,2,-\n",
					  "6 ,1,2,-;t",
					  ",,,;",
					  "6,99999999999999999999,2,-;t",
					  "1234567890,1,2,-;t"};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		assert_int_equal(parse(bad[i]), HF_HEALTH_KMSG_BROKEN);
	assert_int_equal(hf_health_kmsg_parse(NULL, 0, &record), HF_HEALTH_KMSG_BROKEN);
}

static void a_record_longer_than_any_is_cut(void **state)
{
	static char text[2 * HF_HEALTH_RECORD_MAX];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "6,1,2,-;", 8);
	assert_int_equal(hf_health_kmsg_parse(text, sizeof(text), &record), HF_HEALTH_KMSG_KERNEL);
	assert_int_equal(record.text_len, HF_HEALTH_RECORD_MAX - 8);
	hf_health_kmsg_bare(text, sizeof(text), &record);
	assert_int_equal(record.text_len, HF_HEALTH_RECORD_MAX);
}

static void a_bare_line_may_have_a_prefix(void **state)
{
	(void)state;
	hf_health_kmsg_bare("<3>[   12.345] NVRM: x\r\n", 24, &record);
	assert_text("NVRM: x");
	assert_int_equal(record.usec, 12345000);
	assert_int_equal(record.priority, 3);
	hf_health_kmsg_bare("[7] x", 5, &record);
	assert_text("x");
	hf_health_kmsg_bare("[no time] x", 11, &record);
	assert_text("[no time] x");
	hf_health_kmsg_bare("<14>x", 5, &record);
	assert_int_equal(record.facility, 1);
	hf_health_kmsg_bare("", 0, &record);
	assert_text("");
}

static void bare(const char *line)
{
	hf_health_kmsg_bare(line, strlen(line), &record);
}

static void a_bare_line_is_read_as_dmesg_prints_it(void **state)
{
	(void)state;
	bare("[   12.345678] [   T4711] NVRM: x");
	assert_text("NVRM: x");
	assert_int_equal(record.usec, 12345678);
	bare("[   12.345678] [    C2] NVRM: x");
	assert_text("NVRM: x");
	bare("<6>[   12.345678][ T1] NVRM: x");
	assert_text("NVRM: x");
	bare("kern  :warn  : [   12.345678] [ T1] NVRM: x");
	assert_text("NVRM: x");
	assert_int_equal(record.usec, 12345678);
	bare("kern  :info  : NVRM: x");
	assert_text("NVRM: x");
}

/* Times as dmesg of util-linux 2.38 prints them with -T, -d, -e and --time-format iso. */
static void a_bare_line_may_have_any_time_of_dmesg(void **state)
{
	static const char *const times[] = {
		"[Fri Nov 27 22:23:44 2026] ",
		"[Mon Nov  2 22:23:44 2026 <    1.000012>] ",
		"[<    1.000012>] ",
		"[Nov27 22:23] ",
		"[  +1.000012] ",
		"2026-11-27T22:23:44,345678+00:00 ",
		"kern  :info  : 2026-11-27T22:23:44,345678-05:30 ",
	};
	char line[128];

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(times); i++) {
		snprintf(line, sizeof(line), "%sNVRM: x", times[i]);
		bare(line);
		assert_text("NVRM: x");
		assert_int_equal(record.usec, 0);
	}
	bare("[171657.345678 <    0.000012>] NVRM: x");
	assert_text("NVRM: x");
	assert_int_equal(record.usec, 171657345678);
}

static void what_anybody_may_write_stays(void **state)
{
	static const char *const lines[] = {
		"user  :notice: [   12.345678] NVRM: x",
		"Nov 22 10:00:00 gpu-7 kernel: [   12.345678] NVRM: x",
		"2026-11-22T10:00:00.000000+00:00 gpu-7 kernel: NVRM: x",
		"2026-11-22T10:00:00,000000+00:00gpu-7 kernel: NVRM: x",
		"[Fri Nov 27 2026] NVRM: x",
		"[Nov27 22:23",
		"[Hardware Error]: x",
		"[<    x>] NVRM: x",
		"[T] NVRM: x",
		"[ X1] NVRM: x",
		"[ T1 NVRM: x",
		"kern:NVRM: x",
		"kern",
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(lines); i++) {
		bare(lines[i]);
		assert_text(lines[i]);
	}
}

static void a_further_line_of_a_record_is_marked_and_stripped(void **state)
{
	(void)state;
	bare("               NVRM: x");
	assert_true(record.indented);
	assert_text("NVRM: x");
	bare("\tNVRM: x");
	assert_true(record.indented);
	bare("[   12.345678] NVRM: x");
	assert_false(record.indented);
	bare("   ");
	assert_true(record.indented);
	assert_text("");
	assert_int_equal(hf_health_kmsg_parse("6,1,2,-; x", 10, &record), HF_HEALTH_KMSG_KERNEL);
	assert_false(record.indented);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_has_its_numbers_and_no_context),
		cmocka_unit_test(another_facility_is_forged),
		cmocka_unit_test(escapes_are_undone),
		cmocka_unit_test(what_is_no_record_is_broken),
		cmocka_unit_test(a_record_longer_than_any_is_cut),
		cmocka_unit_test(a_bare_line_may_have_a_prefix),
		cmocka_unit_test(a_bare_line_is_read_as_dmesg_prints_it),
		cmocka_unit_test(a_bare_line_may_have_any_time_of_dmesg),
		cmocka_unit_test(what_anybody_may_write_stays),
		cmocka_unit_test(a_further_line_of_a_record_is_marked_and_stripped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
