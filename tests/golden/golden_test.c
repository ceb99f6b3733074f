/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/moment.h"
#include "harness/test.h"

#include "api/job.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/yaml.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * golden_test FOLDER         run every file in it; see README.md for what is in one
 * golden_test --print FILE   print what is actual, to be read and pasted by a person
 */

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define ARENA_BYTES ((size_t)256 << 20)
#define TEXT_MAX ((size_t)16 << 20)

struct golden {
	const char *path;
	char *text;           /* of the whole file */
	const char *expected; /* behind the line "plan:" or "errors:", indented */
	bool errors;          /* the file is about validation */
	struct hf_yaml *yaml;
	const struct hf_json *root;
	struct hf_arena *arena;
};

/* The expectation is the last section, compared as text; it is YAML all the same. */
static char *find_section(char *text, const char *name)
{
	char *at = text;

	while ((at = strstr(at, name)) != NULL) {
		if (at == text || at[-1] == '\n')
			return at;
		at++;
	}
	return NULL;
}

static void load(struct golden *g, const char *path)
{
	struct hf_error err = {0};
	struct hf_strbuf file = HF_STRBUF_INIT(FILE_BYTES_MAX);
	char *section;

	memset(g, 0, sizeof(*g));
	g->path = path;
	assert_ok(hf_fs_read(path, &file, &err), &err);
	g->text = hf_strbuf_detach(&file);
	section = find_section(g->text, "plan:\n");
	if (!section) {
		section = find_section(g->text, "errors:\n");
		g->errors = section != NULL;
	}
	g->expected = section ? strchr(section, '\n') + 1 : "";
	assert_ok(hf_yaml_parse(g->text, strlen(g->text), NULL, &g->yaml, &err), &err);
	assert_int_equal(hf_yaml_len(g->yaml), 1);
	g->root = hf_yaml_doc(g->yaml, 0);
	g->arena = hf_arena_create(ARENA_BYTES);
}

static void release(struct golden *g)
{
	g->arena = hf_arena_destroy(g->arena);
	g->yaml = hf_yaml_destroy(g->yaml);
	free(g->text);
}

static char *actual_plan(const struct golden *g)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(TEXT_MAX);
	struct hf_error err = {0};
	struct moment moment;
	struct hf_plan plan;

	moment_read(&moment, g->root, g->arena);
	assert_non_null(moment.framework);
	assert_ok(hf_job_step(&moment.view, &moment.seen, moment.now, g->arena, &plan, &err), &err);
	hf_plan_render(&plan, moment.framework, &sb);
	moment_release(&moment);
	return hf_strbuf_detach(&sb);
}

static char *actual_errors(const struct golden *g)
{
	const struct hf_json *old = hf_json_get(g->root, "old");
	HF_AUTO_DOC old_doc = old ? hf_doc_from_json(hf_json_copy(old)) : NULL;
	struct hf_strbuf sb = HF_STRBUF_INIT(TEXT_MAX);
	struct hf_field_errors errors;
	struct hf_job_view old_view;
	struct moment moment;

	hf_field_errors_init(&errors, g->arena);
	moment_read(&moment, g->root, g->arena);
	assert_non_null(moment.framework);
	if (old_doc)
		hf_job_read(old_doc, moment.framework, NULL, g->arena, NULL, &old_view);
	hf_job_validate(&moment.view, old_doc ? &old_view : NULL, &errors);
	for (size_t i = 0; i < errors.len; i++) {
		struct hf_strbuf line = HF_STRBUF_INIT(TEXT_MAX);

		hf_field_error_write(&errors.items[i], &line);
		hf_strbuf_addf(&sb, "- %s\n", hf_field_quote(&errors, line.data));
		hf_strbuf_release(&line);
	}
	for (size_t i = 0; i < errors.warnings_len; i++)
		hf_strbuf_addf(&sb, "- \"warning: %s\"\n", errors.warnings[i]);
	moment_release(&moment);
	return hf_strbuf_detach(&sb);
}

/* Two blanks before each line, as it stands in the file. */
static char *indent(const char *text)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(TEXT_MAX);

	while (*text) {
		const char *end = strchr(text, '\n');

		hf_strbuf_addstr(&sb, "  ");
		hf_strbuf_add(&sb, text, (size_t)(end - text) + 1);
		text = end + 1;
	}
	return hf_strbuf_detach(&sb);
}

static char *actual(const struct golden *g)
{
	char *text = g->errors ? actual_errors(g) : actual_plan(g);
	char *indented = indent(text);

	free(text);
	return indented;
}

/* The first line that differs says more than two texts of fifty lines. */
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

static void the_plan_is_as_written_down(void **state)
{
	struct golden g;
	char *text;

	load(&g, *state);
	text = actual(&g);
	compare(g.path, g.expected, text);
	free(text);
	release(&g);
}

static int print(const char *path)
{
	struct golden g;
	char *text;

	load(&g, path);
	text = actual(&g);
	fputs(text, stdout);
	free(text);
	release(&g);
	return 0;
}

static int is_yaml(const struct dirent *entry)
{
	return hf_str_has_suffix(entry->d_name, ".yaml");
}

static int run_folder(const char *folder)
{
	struct dirent **names;
	struct CMUnitTest *tests;
	int n = scandir(folder, &names, is_yaml, alphasort), rc;

	if (n <= 0) {
		fprintf(stderr, "%s: no golden files\n", folder);
		return 1;
	}
	tests = hf_xcalloc((size_t)n, sizeof(*tests));
	for (int i = 0; i < n; i++) {
		char *path = hf_xasprintf("%s/%s", folder, names[i]->d_name);

		tests[i] = (struct CMUnitTest){.name = path,
					       .test_func = the_plan_is_as_written_down,
					       .initial_state = path};
		free(names[i]);
	}
	free(names);
	rc = _cmocka_run_group_tests("golden", tests, (size_t)n, NULL, NULL);
	for (int i = 0; i < n; i++)
		free(tests[i].initial_state);
	free(tests);
	return rc;
}

int main(int argc, char **argv)
{
	if (argc == 3 && hf_streq(argv[1], "--print"))
		return print(argv[2]);
	if (argc == 2)
		return run_folder(argv[1]);
	fprintf(stderr, "usage: %s FOLDER\n       %s --print FILE\n", argv[0], argv[0]);
	return 2;
}
