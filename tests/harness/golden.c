/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/golden.h"

#include "harness/golden_files.h"
#include "harness/test.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "json/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define GOLDEN_FILES_MAX 10000

struct tests {
	struct CMUnitTest *items;
	size_t len, cap, len_max;
};

/* The kind of golden files under test. A global variable, because cmocka gives a test one pointer
 * only, and that is the path of the file. */
static const struct golden_kind *golden;

struct loaded {
	struct golden_file file;
	char *text;
	/* the expectation in `text`; "": the file has no section with an expectation */
	const char *expected;
	struct hf_yaml *yaml;
};

static const char *find_section(const char *text, const char *name)
{
	const char *at = text;

	while ((at = strstr(at, name)) != NULL) {
		if (at == text || at[-1] == '\n')
			return at;
		at++;
	}
	return NULL;
}

static void load(struct loaded *g, const char *path)
{
	struct hf_error err = {0};
	struct hf_strbuf file = HF_STRBUF_INIT(FILE_BYTES_MAX);
	const char *section = NULL;

	*g = (struct loaded){.file = {.path = path}, .expected = ""};
	assert_ok(hf_fs_read(path, &file, &err), &err);
	g->text = hf_strbuf_detach(&file);
	if (g->text[0] != '#')
		fail_msg("%s: the first line must be a comment that says what the file shows",
			 path);
	for (int i = 0; !section && golden->sections[i]; i++) {
		section = find_section(g->text, golden->sections[i]);
		if (section)
			g->file.section = i;
	}
	if (section)
		g->expected = strchr(section, '\n') + 1;
	assert_ok(hf_yaml_parse(g->text, strlen(g->text), NULL, &g->yaml, &err), &err);
	assert_int_equal(hf_yaml_len(g->yaml), 1);
	g->file.root = hf_yaml_doc(g->yaml, 0);
}

static void release(struct loaded *g)
{
	g->yaml = hf_yaml_destroy(g->yaml);
	free(g->text);
}

/* Returns the actual text, with two blanks before each line as in the expectation of a file. */
static char *actual(const struct loaded *g)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(GOLDEN_TEXT_MAX);
	struct hf_strbuf sb = HF_STRBUF_INIT(GOLDEN_TEXT_MAX);

	golden->actual(&g->file, &text);
	for (const char *at = text.data; *at;) {
		const char *end = strchr(at, '\n');

		hf_strbuf_addstr(&sb, "  ");
		hf_strbuf_add(&sb, at, (size_t)(end - at) + 1);
		at = end + 1;
	}
	return hf_strbuf_detach(&sb);
}

/* Compares two texts. Fails with the first line that differs, because two texts of fifty lines
 * each would show nothing. */
static void compare(const char *path, const char *expected, const char *text)
{
	int line = 1;

	while (*expected && *expected == *text) {
		line += *expected == '\n';
		expected++;
		text++;
	}
	if (*expected == *text)
		return;
	while (line > 1 && expected[-1] != '\n') {
		expected--;
		text--;
	}
	fail_msg("%s: line %d of the expectation\nexpected: %.*s\nactual:   %.*s", path, line,
		 (int)strcspn(expected, "\n"), expected, (int)strcspn(text, "\n"), text);
}

static void it_is_as_written_down(void **state)
{
	struct loaded g;
	char *text;

	load(&g, *state);
	text = actual(&g);
	compare(g.file.path, g.expected, text);
	free(text);
	release(&g);
}

static int print(const char *path)
{
	struct loaded g;
	char *text;

	load(&g, path);
	text = actual(&g);
	fputs(text, stdout);
	free(text);
	release(&g);
	return 0;
}

static void add_test(void *vec, const char *path)
{
	struct tests *tests = vec;
	char *copy = hf_xstrdup(path);

	hf_assert(HF_VEC_PUSH(tests, ((struct CMUnitTest){.name = copy,
							  .test_func = it_is_as_written_down,
							  .initial_state = copy})));
}

static int run_folder(const char *folder)
{
	struct tests tests = {.len_max = GOLDEN_FILES_MAX};
	int rc;

	golden_each(folder, add_test, &tests);
	if (tests.len == 0) {
		fprintf(stderr, "%s: no golden files\n", folder);
		return 1;
	}
	rc = _cmocka_run_group_tests(golden->name, tests.items, tests.len, NULL, NULL);
	for (size_t i = 0; i < tests.len; i++)
		free(tests.items[i].initial_state);
	HF_VEC_RELEASE(&tests);
	return rc;
}

int golden_main(int argc, char **argv, const struct golden_kind *kind)
{
	golden = kind;
	if (argc == 3 && hf_streq(argv[1], "--print"))
		return print(argv[2]);
	if (argc == 2)
		return run_folder(argv[1]);
	fprintf(stderr, "usage: %s FOLDER\n       %s --print FILE\n", argv[0], argv[0]);
	return 2;
}
