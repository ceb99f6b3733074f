/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/mem.h"
#include "json/jsonpath.h"
#include "json/yaml.h"
#include "json/yaml_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* tests/golden/json/README.md names the source of the expected outputs. */
static const char *golden_folder;

typedef void (*case_fn)(const struct hf_json *line, int number);

static void for_each_line(const char *name, case_fn check)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", golden_folder, name);
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t cap = 0;
	int number = 0;

	if (!file)
		fail_msg("cannot open %s", path);
	for (ssize_t len; (len = getline(&text, &cap, file)) > 0;) {
		HF_AUTO_JSON line = NULL;
		struct hf_error err;
		assert_ok(hf_json_parse(text, (size_t)len, NULL, &line, &err), &err);
		check(line, ++number);
	}
	free(text);
	fclose(file);
	assert_true(number > 50);
}

static void check_yaml_read(const struct hf_json *line, int number)
{
	const char *text = hf_json_path_str(line, "yaml", NULL);
	const struct hf_json *want = hf_json_get(line, "json");
	HF_AUTO_YAML yaml = NULL;
	struct hf_error err;
	int rc = hf_yaml_parse(text, strlen(text), NULL, &yaml, &err);

	if (hf_json_true(hf_json_get(line, "refused"), false)) {
		if (rc != HF_E_BAD_REQUEST)
			fail_msg("line %d: not refused: %s", number, text);
		return;
	}
	if (rc != 0)
		fail_msg("line %d: %s: %s", number, err.text, text);
	if (hf_json_type(want) == HF_JSON_NULL)
		assert_int_equal(hf_yaml_len(yaml), 0);
	else if (hf_yaml_len(yaml) != 1 || !hf_json_equal(hf_yaml_doc(yaml, 0), want))
		fail_msg("line %d: read as something else: %s", number, text);
}

static void yaml_is_read_as_kubectl_reads_it(void **state)
{
	for_each_line("yaml_read.jsonl", check_yaml_read);
}

static void check_yaml_write(const struct hf_json *line, int number)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);

	hf_yaml_write(hf_json_get(line, "json"), &sb);
	if (strcmp(sb.data, hf_json_path_str(line, "yaml", NULL)) != 0)
		fail_msg("line %d: %s", number, sb.data);
}

static void yaml_is_printed_as_kubectl_prints_it(void **state)
{
	for_each_line("yaml_write.jsonl", check_yaml_write);
}

static struct hf_json *document;

static void check_jsonpath(const struct hf_json *line, int number)
{
	const char *template = hf_json_path_str(line, "template", NULL);
	const char *want = hf_json_path_str(line, "prints", NULL);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	HF_AUTO_JSONPATH path = NULL;
	struct hf_error err;

	if (number == 1) {
		document = hf_json_copy(hf_json_get(line, "document"));
		return;
	}
	int rc = hf_jsonpath_compile(template, &path, &err);
	if (rc == 0)
		rc = hf_jsonpath_print(path, document, &sb, &err);
	if (want && rc != 0)
		fail_msg("line %d: %s: %s", number, template, err.text);
	if (want && strcmp(sb.data, want) != 0)
		fail_msg("line %d: %s: %s", number, template, sb.data);
	if (!want && rc == 0)
		fail_msg("line %d: %s: not refused", number, template);
}

static void jsonpath_prints_what_kubectl_prints(void **state)
{
	for_each_line("jsonpath.jsonl", check_jsonpath);
	document = hf_json_unref(document);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml_is_read_as_kubectl_reads_it),
		cmocka_unit_test(yaml_is_printed_as_kubectl_prints_it),
		cmocka_unit_test(jsonpath_prints_what_kubectl_prints),
	};

	if (argc != 2)
		return 2;
	golden_folder = argv[1];
	return cmocka_run_group_tests_name("json/golden", tests, NULL, NULL);
}
