/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/plane.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void set(const char *name, const char *value)
{
	assert_int_equal(value != NULL ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void the_folder_is_the_first_that_is_named(void **state)
{
	static const struct {
		const char *dir, *state, *home, *wanted;
	} cases[] = {
		{"/d", "/s", "/h", "/d"},
		{NULL, "/s", "/h", "/s/holdfast"},
		{"", "", "/h", "/h/.local/state/holdfast"},
		/* The XDG specification says to ignore a relative path. */
		{NULL, "s", "/h", "/h/.local/state/holdfast"},
		{"d", "/s", "/h", NULL},
		{NULL, NULL, NULL, NULL},
		{NULL, NULL, "h", NULL},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTOFREE char *dir = NULL;
		struct hf_error err = {0};
		set("HOLDFAST_DIR", cases[i].dir);
		set("XDG_STATE_HOME", cases[i].state);
		set("HOME", cases[i].home);
		if (cases[i].wanted != NULL) {
			assert_ok(hf_plane_default_dir(&dir, &err), &err);
			assert_string_equal(dir, cases[i].wanted);
			continue;
		}
		assert_code(hf_plane_default_dir(&dir, &err), HF_E_INVALID);
		assert_null(dir);
		assert_string_equal(
			err.text,
			cases[i].dir != NULL
				? "HOLDFAST_DIR must be an absolute path, not 'd'"
				: "no folder for Holdfast's data: set HOME or HOLDFAST_DIR to an absolute path");
	}
}

static void a_folder_that_cannot_be_made_is_the_machines_doing(void **state)
{
	char dir[] = "/tmp/hf-plane-XXXXXX";
	HF_AUTOFREE char *deep = NULL;
	HF_AUTOFREE char *file = NULL;
	struct hf_error err = {0};
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	deep = hf_xasprintf("%s/a/b", dir);
	assert_ok(hf_plane_make_dir(deep, &err), &err);
	assert_ok(hf_plane_make_dir(deep, &err), &err);
	assert_int_equal(stat(deep, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_code(hf_plane_make_dir("/proc/nowhere", &err), HF_E_IO);
	assert_non_null(strstr(err.text, "/proc/nowhere"));
	file = hf_xasprintf("%s/a/b/c", dir);
	assert_int_equal(rmdir(deep), 0);
	FILE *made = fopen(deep, "w");
	assert_non_null(made);
	assert_int_equal(fclose(made), 0);
	assert_code(hf_plane_make_dir(file, &err), HF_E_IO);
	assert_int_equal(unlink(deep), 0);
	deep[strlen(deep) - 2] = '\0';
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_folder_is_the_first_that_is_named),
		cmocka_unit_test(a_folder_that_cannot_be_made_is_the_machines_doing),
	};

	return cmocka_run_group_tests_name("plane", tests, NULL, NULL);
}
