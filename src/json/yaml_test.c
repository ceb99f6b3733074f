/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "json/yaml.h"

#include <stdlib.h>
#include <string.h>

static struct hf_yaml *parse_text(const char *text)
{
	struct hf_yaml *yaml = NULL;
	struct hf_error err;

	assert_ok(hf_yaml_parse(text, strlen(text), NULL, &yaml, &err), &err);
	return yaml;
}

/* Checks that the documents of the text, written as JSON with one document a line, equal `want`. */
static void assert_read(const char *text, const char *want)
{
	HF_AUTO_YAML yaml = parse_text(text);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);

	for (size_t i = 0; i < hf_yaml_len(yaml); i++) {
		hf_json_write(hf_yaml_doc(yaml, i), HF_JSON_COMPACT, &sb);
		hf_strbuf_addch(&sb, '\n');
	}
	assert_string_equal(sb.data, want);
}

static void assert_refused(const char *text, int code, const char *want)
{
	struct hf_yaml *yaml = NULL;
	struct hf_error err;

	if (hf_yaml_parse(text, strlen(text), NULL, &yaml, &err) != code)
		fail_msg("'%s': not refused as it should be", text);
	assert_null(yaml);
	assert_string_equal(err.text, want);
}

static void plain_scalars_are_resolved_as_by_kubectl(void **state)
{
	/* clang-format off */
	static const struct {
		const char *yaml, *json;
	} cases[] = {
		{ "yes", "true" }, { "On", "true" }, { "y", "true" }, { "TRUE", "true" },
		{ "no", "false" }, { "OFF", "false" }, { "N", "false" }, { "False", "false" },
		{ "~", "null" }, { "Null", "null" }, { "", "null" }, { "nUll", "\"nUll\"" },
		{ "0", "0" }, { "-5", "-5" }, { "+5", "5" }, { "1_000", "1000" }, { "_1", "\"_1\"" },
		{ "0x1F", "31" }, { "-0X1f", "-31" }, { "017", "15" }, { "0o17", "15" },
		{ "0b101", "5" }, { "08", "8" }, { "0o8", "\"0o8\"" }, { "0x", "\"0x\"" },
		{ "9223372036854775807", "9223372036854775807" },
		{ "-9223372036854775808", "-9223372036854775808" },
		{ "9223372036854775808", "9223372036854776000.0" },
		{ "18446744073709551615", "18446744073709552000.0" },
		{ "0xffffffffffffffff", "18446744073709552000.0" },
		{ "0x1ffffffffffffffff", "\"0x1ffffffffffffffff\"" },
		{ "-9223372036854775809", "-9223372036854776000.0" },
		{ "99999999999999999999999", "1e+23" },
		{ "1.5", "1.5" }, { ".5", "0.5" }, { "-.5e1", "-5" }, { "1.", "1" }, { "3.0", "3" },
		{ "1e3", "1000" }, { "1E5", "100000" }, { "1e999", "\"1e999\"" }, { "-0.0", "0" },
		{ "1e", "\"1e\"" }, { "1.2.3", "\"1.2.3\"" }, { "1,000", "\"1,000\"" },
		{ "-", "[null]" }, { "--", "\"--\"" }, { "+", "\"+\"" }, { ".", "\".\"" },
		{ "12:30:45", "\"12:30:45\"" }, { "2020-01-02", "\"2020-01-02\"" }, { "=", "\"=\"" },
		{ "<<", "\"<<\"" }, { "'5'", "\"5\"" }, { "\"yes\"", "\"yes\"" },
		{ "!!str 5", "\"5\"" }, { "!!int '5'", "5" }, { "!!float 5", "5" }, { "! 5", "\"5\"" },
		{ "!!null ''", "null" }, { "\"\\u00e4\"", "\"\xc3\xa4\"" }, { "a b  c", "\"a b  c\"" },
		{ "|\n  x\n   y\n", "\"x\\n y\\n\"" }, { ">-\n  x\n  y\n", "\"x y\"" },
	};
	/* clang-format on */

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_STRBUF yaml = HF_STRBUF_INIT(4096);
		HF_AUTO_STRBUF json = HF_STRBUF_INIT(4096);
		/* "-" gets a line of its own: "v: -" would be a list in an invalid position. */
		bool list = strcmp(cases[i].yaml, "-") == 0;
		hf_strbuf_addf(&yaml, list ? "v:\n  %s\n" : "v: %s\n", cases[i].yaml);
		hf_strbuf_addf(&json, "{\"v\":%s}\n", cases[i].json);
		assert_read(yaml.data, json.data);
	}
}

static void containers_are_read_in_block_and_flow_style(void **state)
{
	assert_read(
		"a:\n- 1\n- b: 2\n  c: [3, {d: e}]\n-\n  - 4\nf: {}\ng: []\nh:\n",
		"{\"a\":[1,{\"b\":2,\"c\":[3,{\"d\":\"e\"}]},[4]],\"f\":{},\"g\":[],\"h\":null}\n");
	assert_read("? a\n: b\n", "{\"a\":\"b\"}\n");
	assert_read("!!map {a: !!seq [b]}", "{\"a\":[\"b\"]}\n");
	assert_read("\"5\": x\n'true': z\n", "{\"5\":\"x\",\"true\":\"z\"}\n");
}

static void several_documents_are_kept_apart_and_empty_ones_left_out(void **state)
{
	assert_read("a: 1\n---\n# nothing\n---\nb: 2\n...\n---\n~\n--- 5\n",
		    "{\"a\":1}\n{\"b\":2}\n5\n");
	assert_read("", "");
	struct hf_yaml *nothing = NULL;
	assert_int_equal(hf_yaml_parse(NULL, 0, NULL, &nothing, NULL), 0);
	assert_int_equal(hf_yaml_len(nothing), 0);
	hf_yaml_destroy(nothing);
	assert_read("# a comment\n", "");
	assert_read("---\n---\n", "");
	assert_read("%YAML 1.1\n---\na: b\n", "{\"a\":\"b\"}\n");
	assert_read("\xef\xbb\xbf"
		    "a: b\n",
		    "{\"a\":\"b\"}\n");
	assert_read("\xef\xbb\xbf"
		    "# as some editors begin\n---\na: b\n",
		    "{\"a\":\"b\"}\n");
	assert_read("\xef\xbb\xbf", "");
}

static void json_that_is_not_yaml_is_read(void **state)
{
	assert_read("{\"a\": [1, 2.5, \"x\"], \"b\": {\"c\": null}}",
		    "{\"a\":[1,2.5,\"x\"],\"b\":{\"c\":null}}\n");
	assert_read("\xef\xbb\xbf{\t\"a\":\t1}", "{\"a\":1}\n");
	assert_read("{\n\t\"a\":\t\"\\ud83d\\ude00\"\n}", "{\"a\":\"\xf0\x9f\x98\x80\"}\n");
	assert_refused("{\n\t\"a\":\t}}", HF_E_BAD_REQUEST,
		       "line 2, column 8: did not find expected <document start>");
}

static void anchors_aliases_and_merges_are_expanded(void **state)
{
	assert_read("a: &x [1, 2]\nb: *x\nc: {d: *x}\n",
		    "{\"a\":[1,2],\"b\":[1,2],\"c\":{\"d\":[1,2]}}\n");
	assert_read("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}\n");
	assert_read("a: &k key\n*k : v\n", "{\"a\":\"key\",\"key\":\"v\"}\n");
	assert_read("base: &b {x: 1, w: 2}\nm:\n  <<: *b\n  w: 3\n",
		    "{\"base\":{\"x\":1,\"w\":2},\"m\":{\"w\":3,\"x\":1}}\n");
	assert_read("m:\n  w: 3\n  <<: {x: 1, w: 2}\n", "{\"m\":{\"w\":3,\"x\":1}}\n");
	assert_read("a: &a {x: 1}\nb: &b {x: 2, z: 3}\nm:\n  <<: [*a, *b]\n",
		    "{\"a\":{\"x\":1},\"b\":{\"x\":2,\"z\":3},\"m\":{\"x\":1,\"z\":3}}\n");
	assert_read("m: {'<<': 1}\n", "{\"m\":{\"<<\":1}}\n");
	assert_read("b: &b {x: {w: 1}}\nm: &m\n  <<: *b\np: *m\n",
		    "{\"b\":{\"x\":{\"w\":1}},\"m\":{\"x\":{\"w\":1}},\"p\":{\"x\":{\"w\":1}}}\n");
}

static void an_alias_gives_a_copy(void **state)
{
	HF_AUTO_YAML yaml = parse_text("a: &x {k: 1}\nb: *x\n");
	struct hf_json *doc = hf_yaml_doc(yaml, 0);

	hf_json_set_i64(hf_json_get(doc, "b"), "k", 2);
	assert_int_equal(hf_json_i64(hf_json_path(doc, "a", "k", NULL), 0), 1);
}

static void mistakes_are_refused_with_line_and_column(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"a: 1\nb: 2\na: 3\n", "line 3, column 1: duplicate key 'a', first in line 1"},
		{"m:\n  x: 1\n  'x': 2\n", "line 3, column 3: duplicate key 'x', first in line 2"},
		{"a:\n\tb: 1\n", "line 2, column 1: found a tab where indentation is expected"},
		{"a: 1\n b: 2\n",
		 "line 2, column 3: mapping values are not allowed in this context"},
		{"a: [1, 2\nb: 3\n", "line 2, column 2: did not find expected ',' or ']' "
				     "(while parsing a flow sequence that begins in line 1)"},
		{"8080: x\n",
		 "line 1, column 1: a key must be a string, not an integer: put it in quotes"},
		{"yes: x\n",
		 "line 1, column 1: a key must be a string, not a boolean: put it in quotes"},
		{"? [a]\n: x\n",
		 "line 1, column 3: a key must be a string, not an array: put it in quotes"},
		{"~: x\n",
		 "line 1, column 1: a key must be a string, not a null: put it in quotes"},
		{"a: *nope\n", "line 1, column 4: an alias without its anchor"},
		{"a: &x\n  b: *x\n", "line 2, column 6: an alias inside its own anchor"},
		{"a: &x 1\n---\nb: *x\n", "line 3, column 4: an alias without its anchor"},
		{"a: .inf\n", "line 1, column 4: an infinite number or NaN"},
		{"a: .NaN\n", "line 1, column 4: an infinite number or NaN"},
		{"a: !!int x\n", "line 1, column 4: the value is not of type !!int"},
		{"a: !!binary aGk=\n",
		 "line 1, column 4: a tag that is not !!str, !!int, !!float, !!bool or !!null"},
		{"a: !mine {}\n", "line 1, column 4: an unknown tag"},
		{"a: \"x\\0y\"\n", "line 1, column 4: a NUL in a string"},
		{"a: x\xff\n", "line 1, column 5: not UTF-8"},
		{"a: b\nc: \xc3\n", "line 2, column 4: not UTF-8"},
		{"a: \x01\n", "line 1, column 4: a control character"},
		{"m: {<<: 5}\n",
		 "line 1, column 10: the value of '<<' must be a map or a list of maps"},
		{"m: {<<: [{a: 1}, 5]}\n",
		 "line 1, column 20: the value of '<<' must be a map or a list of maps"},
		{"m:\n  <<: {a: 1}\n  <<: {b: 1}\n", "line 3, column 3: duplicate key '<<'"},
		{"%YAML 3.0\n---\na: 1\n", "line 1, column 1: found incompatible YAML document"},
		{"a: 'x\n", "line 2, column 1: found unexpected end of stream "
			    "(while scanning a quoted scalar that begins in line 1)"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++)
		assert_refused(cases[i].text, HF_E_BAD_REQUEST, cases[i].error);
}

static void a_nul_in_the_text_is_refused(void **state)
{
	struct hf_yaml *yaml = NULL;
	struct hf_error err;

	assert_code(hf_yaml_parse("a: \0b", 5, NULL, &yaml, &err), HF_E_BAD_REQUEST);
	assert_string_equal(err.text, "line 1, column 4: a control character");
	assert_code(hf_yaml_parse("\0{}", 3, NULL, &yaml, &err), HF_E_BAD_REQUEST);
}

static void billions_of_laughs_are_cut_short(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	struct hf_yaml *yaml = NULL;
	struct hf_error err;

	hf_strbuf_addstr(&sb, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
	for (int i = 1; i < 10; i++)
		hf_strbuf_addf(&sb, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
			       i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_code(hf_yaml_parse(sb.data, sb.len, NULL, &yaml, &err), HF_E_TOO_LARGE);
	assert_non_null(strstr(err.text, "more than 250000 values"));

	/* An alias expands to few values, but to long ones, so the limit on bytes applies. */
	hf_strbuf_clear(&sb);
	hf_strbuf_addstr(&sb, "a: &a ");
	for (int i = 0; i < 1000; i++)
		hf_strbuf_addstr(&sb, "0123456789");
	hf_strbuf_addstr(
		&sb, "\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
		     "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n");
	assert_code(hf_yaml_parse(sb.data, sb.len, NULL, &yaml, &err), HF_E_TOO_LARGE);
	assert_non_null(strstr(err.text, "bytes of text"));

	/* Merge a map that itself grew by merging. */
	hf_strbuf_clear(&sb);
	hf_strbuf_addstr(&sb, "a0: &a0 {k: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n");
	for (int i = 1; i < 25; i++)
		hf_strbuf_addf(&sb, "a%d: &a%d {l%d: *a%d, <<: *a%d}\n", i, i, i, i - 1, i - 1);
	assert_code(hf_yaml_parse(sb.data, sb.len, NULL, &yaml, &err), HF_E_TOO_LARGE);
}

static void depth_is_bounded_in_the_text_and_by_aliases(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);
	struct hf_yaml *yaml = NULL;
	struct hf_error err;

	for (int i = 0; i < 500000; i++)
		hf_strbuf_addch(&sb, '[');
	assert_code(hf_yaml_parse(sb.data, sb.len, NULL, &yaml, &err), HF_E_TOO_LARGE);
	assert_string_equal(err.text, "line 1, column 65: nested too deeply");

	hf_strbuf_clear(&sb);
	for (int i = 0; i < 5000; i++)
		hf_strbuf_addstr(&sb, "- ");
	assert_code(hf_yaml_parse(sb.data, sb.len, NULL, &yaml, &err), HF_E_TOO_LARGE);

	hf_strbuf_clear(&sb);
	hf_strbuf_addstr(&sb, "a0: &a0 [[[[[[[[1]]]]]]]]\n");
	for (int i = 1; i < 10; i++)
		hf_strbuf_addf(&sb, "a%d: &a%d [[[[[[[[*a%d]]]]]]]]\n", i, i, i - 1);
	assert_code(hf_yaml_parse(sb.data, sb.len, NULL, &yaml, &err), HF_E_TOO_LARGE);
	assert_non_null(strstr(err.text, "nested too deeply"));
}

static void size_documents_nodes_and_anchors_are_bounded(void **state)
{
	const struct hf_yaml_limits limits = {.bytes_max = 40, .docs_max = 2, .nodes_max = 5};
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);
	struct hf_yaml *yaml = NULL;
	struct hf_error err;
	static char big[50 << 20];

	assert_code(hf_yaml_parse("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 41, &limits, &yaml,
				  &err),
		    HF_E_TOO_LARGE);
	assert_string_equal(err.text, "41 bytes of YAML, more than the limit of 40");
	assert_code(hf_yaml_parse("--- 1\n--- 2\n--- 3\n", 18, &limits, &yaml, &err),
		    HF_E_TOO_LARGE);
	assert_code(hf_yaml_parse("[1, 2, 3, 4, 5]", 15, &limits, &yaml, &err), HF_E_TOO_LARGE);
	memset(big, ' ', sizeof(big));
	assert_code(hf_yaml_parse(big, sizeof(big), NULL, &yaml, &err), HF_E_TOO_LARGE);
	for (int i = 0; i < 2000; i++)
		hf_strbuf_addf(&sb, "- &a%d x\n", i);
	assert_code(hf_yaml_parse(sb.data, sb.len, NULL, &yaml, &err), HF_E_TOO_LARGE);
	assert_non_null(strstr(err.text, "too many anchors"));
}

static void the_place_of_a_field_is_found_by_its_path(void **state)
{
	HF_AUTO_YAML yaml = parse_text("apiVersion: v1\n"
				       "metadata:\n"
				       "  labels:\n"
				       "    app.kubernetes.io/name: x\n"
				       "spec:\n"
				       "  pytorchReplicaSpecs:\n"
				       "    Worker:\n"
				       "      replicas: 3\n"
				       "      containers:\n"
				       "      - name: a\n"
				       "      - name: b\n"
				       "        image: c\n"
				       "---\n"
				       "x: &m {v: 1}\n"
				       "z:\n"
				       "  <<: *m\n"
				       "w: *m\n");
	static const struct {
		size_t doc;
		const char *path;
		struct hf_yaml_place place;
	} cases[] = {
		{0, "", {1, 1, true}},
		{0, "apiVersion", {1, 1, true}},
		{0, "metadata.labels[app.kubernetes.io/name]", {4, 5, true}},
		{0, "metadata.labels.app.kubernetes.io/name", {4, 5, true}},
		{0, "spec.pytorchReplicaSpecs[Worker].replicas", {8, 7, true}},
		{0, "spec.pytorchReplicaSpecs.Worker.replicas", {8, 7, true}},
		{0, "spec.pytorchReplicaSpecs[Worker].containers[0]", {10, 9, true}},
		{0, "spec.pytorchReplicaSpecs[Worker].containers[1].image", {12, 9, true}},
		{0, "spec.pytorchReplicaSpecs[Worker].containers[0].image", {10, 9, false}},
		{0, "spec.pytorchReplicaSpecs[Worker].containers[7]", {9, 7, false}},
		{0, "spec.pytorchReplicaSpecs[Master].replicas", {6, 3, false}},
		{0, "status", {1, 1, false}},
		{0, "spec[0]", {5, 1, false}},
		{0, "spec.", {5, 1, false}},
		{0, "spec[", {5, 1, false}},
		{1, "x.v", {14, 8, true}},
		{1, "z.v", {14, 8, true}},
		{1, "w", {17, 1, true}},
		{1, "w.v", {14, 8, true}},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_yaml_place place = hf_yaml_find(yaml, cases[i].doc, cases[i].path);
		if (place.line != cases[i].place.line || place.column != cases[i].place.column ||
		    place.exact != cases[i].place.exact)
			fail_msg("%s: line %d, column %d, %d", cases[i].path, place.line,
				 place.column, place.exact);
	}
	HF_AUTO_YAML json = parse_text("{\"a\": \"\\ud83d\\ude00\"}");
	assert_int_equal(hf_yaml_find(json, 0, "a").line, 0);
}

static void a_document_outlives_its_file(void **state)
{
	struct hf_yaml *yaml = parse_text("a: b\n");
	HF_AUTO_JSON doc = hf_json_ref(hf_yaml_doc(yaml, 0));

	assert_null(hf_yaml_destroy(yaml));
	assert_string_equal(hf_json_path_str(doc, "a", NULL), "b");
	assert_null(hf_yaml_destroy(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_scalars_are_resolved_as_by_kubectl),
		cmocka_unit_test(containers_are_read_in_block_and_flow_style),
		cmocka_unit_test(several_documents_are_kept_apart_and_empty_ones_left_out),
		cmocka_unit_test(json_that_is_not_yaml_is_read),
		cmocka_unit_test(anchors_aliases_and_merges_are_expanded),
		cmocka_unit_test(an_alias_gives_a_copy),
		cmocka_unit_test(mistakes_are_refused_with_line_and_column),
		cmocka_unit_test(a_nul_in_the_text_is_refused),
		cmocka_unit_test(billions_of_laughs_are_cut_short),
		cmocka_unit_test(depth_is_bounded_in_the_text_and_by_aliases),
		cmocka_unit_test(size_documents_nodes_and_anchors_are_bounded),
		cmocka_unit_test(the_place_of_a_field_is_found_by_its_path),
		cmocka_unit_test(a_document_outlives_its_file),
	};
	return cmocka_run_group_tests_name("json/yaml", tests, NULL, NULL);
}
