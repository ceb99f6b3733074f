/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/output.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "harness/json_text.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

static const struct hf_flag output_flag = {"output", 'o', "FORMAT", "", NULL};
static const struct hf_flag no_headers = {"no-headers", 0, NULL, "", NULL};

struct caught {
	struct hf_cli cli;
	char *out, *err;
	size_t out_len, err_len;
};

static void begin(struct caught *c, const char *format)
{
	static const struct hf_cli_verb verb = {.name = "get"};

	memset(c, 0, sizeof(*c));
	c->cli.program = "holdfast";
	c->cli.verb = &verb;
	c->cli.out = open_memstream(&c->out, &c->out_len);
	c->cli.err = open_memstream(&c->err, &c->err_len);
	if (format != NULL)
		c->cli.flags[c->cli.n_flags++] =
			(struct hf_flag_item){.flag = &output_flag, .value = format};
}

static void end(struct caught *c)
{
	assert_int_equal(fclose(c->cli.out), 0);
	assert_int_equal(fclose(c->cli.err), 0);
	free(c->out);
	free(c->err);
}

/* Checks what -o FORMAT prints for a list of n objects; n may be 0. */
static void assert_prints(const char *format, const char *const *texts, size_t n, bool single,
			  const char *wanted)
{
	struct hf_doc *docs[4];
	struct caught c;

	begin(&c, format);
	HF_AUTO_OUTPUT output = {.kind = HF_OUTPUT_TABLE};
	assert_int_equal(hf_output_parse(&c.cli, &output), 0);
	for (size_t i = 0; i < n; i++)
		docs[i] = json_doc_of(texts[i]);
	assert_int_equal(hf_output_docs(&c.cli, &output, docs, n, single), 0);
	for (size_t i = 0; i < n; i++)
		hf_doc_unref(docs[i]);
	assert_int_equal(fflush(c.cli.out), 0);
	assert_string_equal(c.out, wanted);
	end(&c);
}

static const char *const two[] = {
	"{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'status':{'phase':'Running'}}",
	"{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'name':'j'}}",
};

static void names_are_those_that_kubectl_takes_back(void **state)
{
	static const char *const odd[] = {
		"{'apiVersion':'x/v1','kind':'Odd','metadata':{'name':'o'}}", "{}"};

	(void)state;
	assert_prints("name", two, 2, false, "pod/p\npytorchjob.kubeflow.org/j\n");
	assert_prints("name", odd, 2, false, "object/o\nobject/\n");
	assert_prints("name", NULL, 0, false, "");
}

static void one_object_is_itself_and_several_are_a_list(void **state)
{
	static const char *const small[] = {"{'kind':'A','metadata':{'name':'x'}}"};

	(void)state;
	assert_prints("json", small, 1, true,
		      "{\n    \"kind\": \"A\",\n    \"metadata\": {\n        \"name\": \"x\"\n"
		      "    }\n}\n");
	assert_prints("yaml", small, 1, true, "kind: A\nmetadata:\n  name: x\n");
	assert_prints("yaml", small, 1, false,
		      "apiVersion: v1\nitems:\n- kind: A\n  metadata:\n    name: x\nkind: List\n"
		      "metadata:\n  resourceVersion: \"\"\n");
}

static void an_empty_list_is_a_list_too(void **state)
{
	(void)state;
	assert_prints(
		"yaml", NULL, 0, true,
		"apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n");
	assert_prints("jsonpath={.items[*].metadata.name}", NULL, 0, false, "");
	assert_prints("custom-columns=NAME:.metadata.name", NULL, 0, false, "NAME\n");
}

static void paths_and_columns_show_what_is_there(void **state)
{
	(void)state;
	assert_prints("jsonpath={range .items[*]}{.metadata.name}={.status.phase};{end}", two, 2,
		      false, "p=Running;j=;");
	assert_prints("jsonpath={.metadata.name}", two, 1, true, "p");
	assert_prints("custom-columns=N:.metadata.name,PHASE:{.status.phase}", two, 2, false,
		      "N   PHASE\np   Running\nj   <none>\n");
}

static void columns_may_do_without_headers(void **state)
{
	struct hf_doc *item = json_doc_of(two[0]);
	struct caught c;

	(void)state;
	begin(&c, "custom-columns=N:.metadata.name");
	c.cli.flags[c.cli.n_flags++] = (struct hf_flag_item){.flag = &no_headers, .value = ""};
	HF_AUTO_OUTPUT output = {.kind = HF_OUTPUT_TABLE};
	assert_int_equal(hf_output_parse(&c.cli, &output), 0);
	assert_int_equal(hf_output_docs(&c.cli, &output, &item, 1, true), 0);
	assert_int_equal(fflush(c.cli.out), 0);
	assert_string_equal(c.out, "p\n");
	hf_doc_unref(item);
	end(&c);
}

static void without_a_format_it_is_a_table(void **state)
{
	static const char *const formats[] = {NULL, "wide"};
	static const enum hf_output_kind kinds[] = {HF_OUTPUT_TABLE, HF_OUTPUT_WIDE};
	struct caught c;

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(formats); i++) {
		begin(&c, formats[i]);
		HF_AUTO_OUTPUT output = {.kind = HF_OUTPUT_JSON};
		assert_int_equal(hf_output_parse(&c.cli, &output), 0);
		assert_int_equal(output.kind, kinds[i]);
		end(&c);
	}
}

static void what_is_no_format_is_refused_by_name(void **state)
{
	static const struct {
		const char *format, *text;
	} cases[] = {
		{"", "not ''"},
		{"JSON", "not 'JSON'"},
		{"jsonpath", "not 'jsonpath'"},
		{"go-template={{.x}}", "not 'go-template={{.x}}'"},
		{"jsonpath={.a", "-o jsonpath: "},
		{"jsonpath={.a[?(@.b=~'x')]}", "-o jsonpath: "},
		{"custom-columns=", "'' is not HEADER:PATH"},
		{"custom-columns=:.a", "':.a' is not HEADER:PATH"},
		{"custom-columns=A:.a,", "'' is not HEADER:PATH"},
		{"custom-columns=A:.a,B:{.b", "column 'B': "},
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct caught c;
		begin(&c, cases[i].format);
		HF_AUTO_OUTPUT output = {.kind = HF_OUTPUT_TABLE};
		assert_int_equal(hf_output_parse(&c.cli, &output), HF_EXIT_USAGE);
		assert_int_equal(fflush(c.cli.err), 0);
		if (strstr(c.err, cases[i].text) == NULL)
			fail_msg("'%s': %s", cases[i].format, c.err);
		end(&c);
	}
}

static void more_columns_than_a_screen_has_are_refused(void **state)
{
	HF_AUTO_STRBUF format = HF_STRBUF_INIT(4096);
	struct caught c;

	(void)state;
	hf_strbuf_addstr(&format, "custom-columns=A:.a");
	for (int i = 1; i < HF_OUTPUT_COLUMNS_MAX; i++)
		hf_strbuf_addstr(&format, ",A:.a");
	begin(&c, format.data);
	HF_AUTO_OUTPUT output = {.kind = HF_OUTPUT_TABLE};
	assert_int_equal(hf_output_parse(&c.cli, &output), 0);
	end(&c);
	hf_strbuf_addstr(&format, ",A:.a");
	begin(&c, format.data);
	HF_AUTO_OUTPUT more = {.kind = HF_OUTPUT_TABLE};
	assert_int_equal(hf_output_parse(&c.cli, &more), HF_EXIT_USAGE);
	assert_int_equal(fflush(c.cli.err), 0);
	assert_non_null(strstr(c.err, "more than 64 columns"));
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_that_kubectl_takes_back),
		cmocka_unit_test(one_object_is_itself_and_several_are_a_list),
		cmocka_unit_test(an_empty_list_is_a_list_too),
		cmocka_unit_test(paths_and_columns_show_what_is_there),
		cmocka_unit_test(columns_may_do_without_headers),
		cmocka_unit_test(without_a_format_it_is_a_table),
		cmocka_unit_test(what_is_no_format_is_refused_by_name),
		cmocka_unit_test(more_columns_than_a_screen_has_are_refused),
	};

	return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
