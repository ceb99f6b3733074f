/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/process_memory.h"

#include "base/mem.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Returns the value in kB of a line of /proc/self/status. */
static long status_kb(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kb = -1;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			kb = strtol(line + strlen(name), NULL, 10);
	assert_int_equal(fclose(file), 0);
	assert_true(kb >= 0);
	return kb;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void test_what_the_start_mapped_goes_and_comes_back_when_used(void **state)
{
	int numbers[] = {3, 1, 2};
	long before = status_kb("RssFile:"), after;

	hf_process_memory_drop_start();
	after = status_kb("RssFile:");
	assert_true(after < before);
	/* A second call does no harm, and code and tables still work. */
	hf_process_memory_drop_start();
	qsort(numbers, 3, sizeof(numbers[0]), by_number);
	assert_int_equal(numbers[0], 1);
	assert_int_equal(numbers[2], 3);
	assert_string_equal(strerror(0), "Success");
}

/* Skipped under ASan, which replaces glibc's heap. */
static void test_a_hole_in_the_heap_goes_back(void **state)
{
#if defined(__GLIBC__) && !HF_UNDER_ASAN
	enum { BLOCKS = 4000, BYTES = 4000 };
	HF_AUTOFREE char **blocks = hf_xcalloc(BLOCKS, sizeof(*blocks));
	long full, trimmed;

	hf_process_memory_set_up();
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = memset(hf_xmalloc(BYTES), i, BYTES);
	full = status_kb("RssAnon:");
	/* The last block stays allocated, so the heap cannot shrink at its end. */
	for (int i = 0; i < BLOCKS - 1; i++)
		free(blocks[i]);
	assert_true(hf_process_memory_trim());
	trimmed = status_kb("RssAnon:");
	free(blocks[BLOCKS - 1]);
	assert_true(full - trimmed > 10000);
#else
	hf_process_memory_set_up();
	(void)hf_process_memory_trim();
#endif
}

static void test_a_heap_without_holes_is_not_walked(void **state)
{
	hf_process_memory_set_up();
	(void)hf_process_memory_trim();
	assert_false(hf_process_memory_trim());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_start_mapped_goes_and_comes_back_when_used),
		cmocka_unit_test(test_a_hole_in_the_heap_goes_back),
		cmocka_unit_test(test_a_heap_without_holes_is_not_walked),
	};

	return cmocka_run_group_tests_name("process_memory", tests, NULL, NULL);
}
