/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/kubelet_internal.h"

#include "harness/test.h"

#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define GIB ((uint64_t)1 << 30)

static bool is_short(uint64_t bytes, uint64_t free_bytes, bool before)
{
	return hf_kubelet_disk_is_short(
		&(struct hf_kubelet_disk){.bytes = bytes, .free_bytes = free_bytes}, before);
}

static void a_small_disk_is_short_below_a_tenth(void **state)
{
	assert_false(is_short(3000 * KIB, 300 * KIB, false));
	assert_true(is_short(3000 * KIB, 299 * KIB, false));
	assert_true(is_short(3000 * KIB, 0, false));
}

static void a_large_disk_is_short_below_a_gibibyte(void **state)
{
	assert_false(is_short(2000 * GIB, 2 * GIB, false));
	assert_false(is_short(2000 * GIB, GIB, false));
	assert_true(is_short(2000 * GIB, GIB - 1, false));
}

static void disk_pressure_ends_with_a_quarter_more_room(void **state)
{
	assert_true(is_short(3000 * KIB, 300 * KIB, true));
	assert_true(is_short(3000 * KIB, 374 * KIB, true));
	assert_false(is_short(3000 * KIB, 375 * KIB, true));
}

static void inodes_count_where_there_are_any(void **state)
{
	struct hf_kubelet_disk disk = {
		.bytes = GIB, .free_bytes = GIB, .files = 1000, .free_files = 49};

	assert_true(hf_kubelet_disk_is_short(&disk, false));
	disk.free_files = 50;
	assert_false(hf_kubelet_disk_is_short(&disk, false));
	assert_true(hf_kubelet_disk_is_short(&disk, true));
	disk.files = 1000000000;
	disk.free_files = 10000;
	assert_false(hf_kubelet_disk_is_short(&disk, false));
	disk.files = disk.free_files = 0;
	assert_false(hf_kubelet_disk_is_short(&disk, false));
}

static void disk_pressure_names_the_free_bytes(void **state)
{
	struct hf_kubelet_disk disk;
	char text[256];

	assert_true(hf_kubelet_disk_read("/", &disk));
	assert_true(disk.bytes >= disk.free_bytes && disk.bytes > 0);
	assert_false(hf_kubelet_disk_read("/no such folder", &disk));
	disk = (struct hf_kubelet_disk){
		.bytes = 3000 * KIB, .free_bytes = 12 * KIB, .files = 9, .free_files = 7};
	hf_kubelet_disk_text(&disk, "/d", text, sizeof(text));
	assert_string_equal(text, "the disk that holds /d is nearly full: 12 of 3000 KiB are free");
	disk = (struct hf_kubelet_disk){
		.bytes = 3000 * KIB, .free_bytes = 2000 * KIB, .files = 900, .free_files = 7};
	hf_kubelet_disk_text(&disk, "/d", text, sizeof(text));
	assert_string_equal(text,
			    "the disk that holds /d is nearly full: 7 of 900 inodes are free");
	disk = (struct hf_kubelet_disk){.bytes = 20 * GIB, .free_bytes = GIB / 2, .files = 9};
	hf_kubelet_disk_text(&disk, "/d", text, sizeof(text));
	assert_non_null(strstr(text, "512 of 20480 MiB are free"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_disk_is_short_below_a_tenth),
		cmocka_unit_test(a_large_disk_is_short_below_a_gibibyte),
		cmocka_unit_test(disk_pressure_ends_with_a_quarter_more_room),
		cmocka_unit_test(inodes_count_where_there_are_any),
		cmocka_unit_test(disk_pressure_names_the_free_bytes),
	};

	return cmocka_run_group_tests_name("kubelet_disk", tests, NULL, NULL);
}
