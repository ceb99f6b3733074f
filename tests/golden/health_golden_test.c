/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health_scene.h"
#include "harness/test.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/yaml.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * health_golden_test FOLDER         run every file in it; see README.md there for what is in one
 * health_golden_test --print FILE   print what is actual, to be read and pasted by a person
 */

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define TEXT_MAX ((size_t)16 << 20)

/* The whole file; what is expected begins behind the line "then:". */
static char *load(const char *path, const char **ret_expected)
{
	struct hf_strbuf file = HF_STRBUF_INIT(FILE_BYTES_MAX);
	struct hf_error err = {0};
	const char *at;
	char *text;

	assert_ok(hf_fs_read(path, &file, &err), &err);
	text = hf_strbuf_detach(&file);
	at = strstr(text, "\nthen: |\n");
	*ret_expected = at ? strchr(at + 1, '\n') + 1 : "";
	return text;
}

static char *actual(const char *text)
{
	struct hf_strbuf said = HF_STRBUF_INIT(TEXT_MAX), sb = HF_STRBUF_INIT(TEXT_MAX);
	struct hf_error err = {0};
	HF_AUTO_YAML yaml = NULL;

	assert_ok(hf_yaml_parse(text, strlen(text), NULL, &yaml, &err), &err);
	assert_int_equal(hf_yaml_len(yaml), 1);
	health_scene_run(hf_yaml_doc(yaml, 0), &said);
	for (const char *at = said.data; *at;) {
		const char *end = strchr(at, '\n');

		hf_strbuf_addf(&sb, "  %.*s\n", (int)(end - at), at);
		at = end + 1;
	}
	hf_strbuf_release(&said);
	return hf_strbuf_detach(&sb);
}

static void the_node_is_as_written_down(void **state)
{
	const char *path = *state, *expected;
	char *text = load(path, &expected), *is = actual(text), *at = is;
	int line = 1;

	while (*expected && *expected == *at) {
		line += *expected == '\n';
		expected++;
		at++;
	}
	if (*expected != *at) {
		while (line > 1 && expected[-1] != '\n') {
			expected--;
			at--;
		}
		fail_msg("%s: line %d of the expectation\nexpected: %.*s\nactual:   %.*s", path,
			 line, (int)strcspn(expected, "\n"), expected, (int)strcspn(at, "\n"), at);
	}
	free(is);
	free(text);
}

static int print(const char *path)
{
	const char *expected;
	char *text = load(path, &expected), *is = actual(text);

	fputs(is, stdout);
	free(is);
	free(text);
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
					       .test_func = the_node_is_as_written_down,
					       .initial_state = path};
		free(names[i]);
	}
	free(names);
	rc = _cmocka_run_group_tests("health golden", tests, (size_t)n, NULL, NULL);
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
