/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/strbuf.h"
#include "json/jsonpath.h"

#include <string.h>

#define DOCUMENT                                                                                   \
	"{\"kind\":\"List\",\"n\":5,\"f\":1.5,\"big\":1e7,\"t\":true,\"nul\":null,\"s\":\"x<y\","  \
	"\"e\":{},\"items\":["                                                                     \
	"{\"name\":\"a\",\"v\":1,\"st\":{\"ph\":\"R\"},\"l\":[\"p\",\"q\"]},"                      \
	"{\"name\":\"b\",\"v\":2,\"st\":{\"ph\":\"S\"}},"                                          \
	"{\"name\":\"c\",\"v\":3,\"l\":[]}],\"a.b/c\":\"dotted\"}"

static struct hf_json *make_document(void)
{
	struct hf_json *value = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(DOCUMENT, strlen(DOCUMENT), NULL, &value, &err), &err);
	return value;
}

/* The expected outputs are client-go's, except for the differences that jsonpath.h lists. */
static void assert_prints(const char *const (*cases)[2], size_t len)
{
	HF_AUTO_JSON doc = make_document();

	for (size_t i = 0; i < len; i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
		HF_AUTO_JSONPATH path = NULL;
		struct hf_error err;
		assert_ok(hf_jsonpath_compile(cases[i][0], &path, &err), &err);
		assert_ok(hf_jsonpath_print(path, doc, &sb, &err), &err);
		if (strcmp(sb.data, cases[i][1]) != 0)
			fail_msg("%s: '%s' instead of '%s'", cases[i][0], sb.data, cases[i][1]);
	}
}

static void paths_find_what_kubectl_finds(void **state)
{
	static const char *const cases[][2] = {
		{"plain text", "plain text"},
		{"", ""},
		{"{.kind}", "List"},
		{"{ .kind }", "List"},
		{"a{.n}b{.kind}", "a5bList"},
		{"{.f} {.big} {.t} {.nul}", "1.5 1e+07 true null"},
		{"{.s}", "x<y"},
		{"{.items[0]}",
		 "{\"l\":[\"p\",\"q\"],\"name\":\"a\",\"st\":{\"ph\":\"R\"},\"v\":1}"},
		{"{.items[-1].name}", "c"},
		{"{.items[1:].name}", "b c"},
		{"{.items[:1].name}", "a"},
		{"{.items[3:].name}", ""},
		{"{.items[1:1].name}", ""},
		{"{.items[-1:].name}", "c"},
		{"{.items[0].l[-2:]}", "p q"},
		{"{.items[*].name}", "a b c"},
		{"{.items[*].nope}", ""},
		{"{.items[*].st.*}", "R S"},
		{"{.items.name}", ""},
		{"{.nope[0]}", ""},
		{"{.nul[0]}", ""},
		{"{.nul.x}", ""},
		{"{.kind.x}", ""},
		{"{.e.x}x{.n}", "x5"},
		{"{.a\\.b/c}", "dotted"},
		{"{['a\\.b/c']}", "dotted"},
		{"{['a.b/c']}", "dotted"},
		{"{[\"a.b/c\"]}", "dotted"},
		{"{.items[0]['name']}", "a"},
	};

	assert_prints(cases, HF_ARRAY_LEN(cases));
}

static void ranges_filters_and_literals_print_what_kubectl_prints(void **state)
{
	static const char *const cases[][2] = {
		{"{range .items[*]}{.name}{\"\\n\"}{end}", "a\nb\nc\n"},
		{"{range .items[*]}{.name}={.st.ph},{end}tail", "a=R,b=S,c=,tail"},
		{"{range .nope[*]}{.name}{end}tail", "tail"},
		{"{range .items[*]}{range .l[*]}{@},{end};{end}", "p,q,;;;"},
		{"{range .items[*]}[{.name}, {.v}] { end }", "[a, 1] [b, 2] [c, 3] "},
		{"{range}{.n}{end}", "5"},
		{"{.items[?(@.name==\"b\")].v}", "2"},
		{"{.items[?(@.name=='b')].v}", "2"},
		{"{.items[?( @.v > 1 )].name}", "b c"},
		{"{.items[?(@.v>=2)].name}", "b c"},
		{"{.items[?(@.v<1.5)].name}", "a"},
		{"{.items[?(@.v<=-1)].name}", ""},
		{"{.items[?(@.st)].name}", "a b"},
		{"{.items[?(@.l[0])].name}", "a"},
		{"{.items[?(@.st.ph!='R')].name}", "b"},
		{"{.items[?(@.name==@.st.ph)].name}", ""},
		{"{.items[?(true)].name}", "a b c"},
		{"{.items[?(@['name']==\"a)]\")].name}", ""},
		{"{\"a\" \"b\"}", "b"},
		{"{.n \"b\"}", "b"},
		{"{.items[*].v \"x\"}", "x"},
		{"{.items[*] 5}", "5 5 5"},
		{"{5}{true}{+2}{-1.50}", "5true2-1.5"},
		{"{'it\\'s'}{\"\\u00e9\\t\\\\\"}", "it's\xc3\xa9\t\\"},
		{"{.n .x}", ""},
	};

	assert_prints(cases, HF_ARRAY_LEN(cases));
}

static void the_value_itself_has_three_names(void **state)
{
	static const char *const texts[] = {"{@}", "{$}", "{}", "{.}"};
	HF_AUTO_JSON value = hf_json_object();

	hf_json_set_str(value, "b", "<");
	hf_json_set_i64(value, "a", 1);
	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
		HF_AUTO_JSONPATH path = NULL;
		struct hf_error err;
		assert_ok(hf_jsonpath_compile(texts[i], &path, &err), &err);
		assert_ok(hf_jsonpath_print(path, value, &sb, &err), &err);
		assert_string_equal(sb.data, "{\"a\":1,\"b\":\"\\u003c\"}");
	}
}

static void in_nothing_nothing_is_found(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
	HF_AUTO_JSONPATH path = NULL;
	struct hf_error err;

	assert_ok(hf_jsonpath_compile_relaxed("@", &path, &err), &err);
	assert_ok(hf_jsonpath_print(path, NULL, &sb, &err), &err);
	assert_string_equal(sb.data, "");
	assert_ok(hf_jsonpath_column(path, NULL, &sb, &err), &err);
	assert_string_equal(sb.data, "<none>");
}

static void an_unsupported_feature_is_refused_by_name(void **state)
{
	static const char *const cases[][2] = {
		{"{..name}", "jsonpath, character 3: recursive descent (..) is not supported"},
		{"{.items[0,1]}", "jsonpath, character 10: a union ([a,b]) is not supported"},
		{"{['a','b']}", "jsonpath, character 6: a union ([a,b]) is not supported"},
		{"{.items[::2]}", "jsonpath, character 10: a slice with a step is not supported"},
		{"{.items[?(@.a==1 && @.b==2)]}",
		 "jsonpath, character 18: && and || are not supported"},
		{"{.items[?(@.a||@.b)]}", "jsonpath, character 14: && and || are not supported"},
		{"{.items[?(@.a=~'x')]}", "jsonpath, character 14: an operator other than == != < "
					  "<= > >= is not supported"},
		{"{\"\\x41\"}", "jsonpath, character 4: an escape that is not supported"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_jsonpath *path = NULL;
		struct hf_error err;
		assert_code(hf_jsonpath_compile(cases[i][0], &path, &err), HF_E_UNSUPPORTED);
		assert_string_equal(err.text, cases[i][1]);
		assert_null(path);
	}
}

static void wrong_templates_are_refused_with_their_place(void **state)
{
	static const char *const cases[][2] = {
		{"{.n", "jsonpath, character 4: '}' is expected"},
		{"{.n\n}", "jsonpath, character 4: '}' is expected"},
		{"{end}", "jsonpath, character 2: {end} without {range}"},
		{"{range .a}", "jsonpath, character 11: {range} without {end}"},
		{"{range .a}{end x}", "jsonpath, character 16: '}' is expected"},
		{"{foo}", "jsonpath, character 2: an unknown word; a key begins with a dot"},
		{"{#}", "jsonpath, character 2: an unexpected character"},
		{"{.a[b]}",
		 "jsonpath, character 5: an index, a slice, * or a quoted key is expected"},
		{"{.a[]}",
		 "jsonpath, character 5: an index, a slice, * or a quoted key is expected"},
		{"{.a[1}", "jsonpath, character 6: ']' is expected"},
		{"{.a[-]}", "jsonpath, character 5: not an index"},
		{"{.a[99999999999]}", "jsonpath, character 5: not an index"},
		{"{.a[1:99999999999999999999]}", "jsonpath, character 7: not an index"},
		{"{['a}", "jsonpath, character 6: a quoted key without its closing quote"},
		{"{\"a}", "jsonpath, character 5: a quoted text without its closing quote"},
		{"{\"\\", "jsonpath, character 4: an escape that is not supported"},
		{"{\"\\u12\"}", "jsonpath, character 7: \\u needs four hexadecimal digits"},
		{"{\"\\ud800\"}", "jsonpath, character 9: \\u does not name a character"},
		{"{1.2.3}", "jsonpath, character 7: not a number"},
		{"{-}", "jsonpath, character 3: not a number"},
		{"{.a[?@.b]}", "jsonpath, character 5: '(' is expected"},
		{"{.a[?(@.b]}", "jsonpath, character 10: an unexpected character"},
		{"{.a[?(@.b)}", "jsonpath, character 10: ')]' is expected"},
		{"{.a[?(@.b", "jsonpath, character 10: ')' is expected"},
		{"{.a[?(@.b==)]}", "jsonpath, character 12: nothing to compare with"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_jsonpath *path = NULL;
		struct hf_error err;
		int rc = hf_jsonpath_compile(cases[i][0], &path, &err);
		if (rc == 0)
			fail_msg("%s was accepted", cases[i][0]);
		if (rc != HF_E_INVALID && rc != HF_E_UNSUPPORTED)
			fail_msg("%s: %d", cases[i][0], rc);
		assert_string_equal(err.text, cases[i][1]);
		assert_null(path);
	}
}

static void a_path_that_does_not_fit_the_document_is_an_error(void **state)
{
	static const char *const cases[][2] = {
		{"{.items[5]}", "jsonpath: array index out of bounds: index 5, length 3"},
		{"{.items[-5]}", "jsonpath: array index out of bounds: index -2, length 3"},
		{"{.items[1:9]}", "jsonpath: array index out of bounds: index 8, length 3"},
		{"{.items[2:1]}", "jsonpath: starting index 2 is greater than ending index 1"},
		{"{.kind[0]}", "jsonpath: string is not an array"},
		{"{.e[?(@.x)]}", "jsonpath: object cannot be filtered"},
		{"{.items[?(@.v==\"1\")]}", "jsonpath: integer and string cannot be compared"},
		{"{.items[?(@.v==true)]}", "jsonpath: integer and boolean cannot be compared"},
		{"{.items[?(@.l[0]=='p')]}",
		 "jsonpath: array index out of bounds: index 0, length 0"},
		{"{.items[?(@.*=='p')]}", "jsonpath: only one value can be compared at a time"},
	};
	HF_AUTO_JSON doc = make_document();

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
		HF_AUTO_JSONPATH path = NULL;
		struct hf_error err;
		assert_ok(hf_jsonpath_compile(cases[i][0], &path, &err), &err);
		assert_code(hf_jsonpath_print(path, doc, &sb, &err), HF_E_INVALID);
		assert_string_equal(err.text, cases[i][1]);
	}
}

static void columns_take_paths_without_braces_and_dots(void **state)
{
	static const char *const cases[][2] = {
		{".kind", "List"},           {"kind", "List"},
		{"{.kind}", "List"},         {"{kind}", "List"},
		{".items[*].name", "a,b,c"}, {".nope", "<none>"},
		{".nul", "<none>"},          {".e", "{}"},
		{"['a.b/c']", "dotted"},     {".items[?(@.v==2)].name", "b"},
	};
	static const char *const wrong[] = {"", "{}", ".a}{.b", ".a[", "a b}c{"};
	HF_AUTO_JSON doc = make_document();
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
		HF_AUTO_JSONPATH path = NULL;
		assert_ok(hf_jsonpath_compile_relaxed(cases[i][0], &path, &err), &err);
		assert_ok(hf_jsonpath_column(path, doc, &sb, &err), &err);
		assert_string_equal(sb.data, cases[i][1]);
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(wrong); i++) {
		HF_AUTO_JSONPATH path = NULL;
		if (hf_jsonpath_compile_relaxed(wrong[i], &path, &err) == 0)
			fail_msg("'%s' was accepted", wrong[i]);
	}
}

static void length_parts_depth_and_results_are_bounded(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 20);
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(16);
	HF_AUTO_JSON list = hf_json_array();
	HF_AUTO_JSON doc = make_document();
	struct hf_jsonpath *path = NULL;
	struct hf_error err;

	for (int i = 0; i <= HF_JSONPATH_TEXT_MAX; i++)
		hf_strbuf_addch(&sb, 'x');
	assert_code(hf_jsonpath_compile(sb.data, &path, &err), HF_E_INVALID);
	assert_code(hf_jsonpath_compile_relaxed(sb.data, &path, &err), HF_E_INVALID);

	hf_strbuf_clear(&sb);
	for (int i = 0; i <= HF_JSONPATH_NODES_MAX; i++)
		hf_strbuf_addstr(&sb, "{.a}");
	assert_code(hf_jsonpath_compile(sb.data, &path, &err), HF_E_INVALID);

	hf_strbuf_clear(&sb);
	for (int i = 0; i <= HF_JSONPATH_DEPTH_MAX; i++)
		hf_strbuf_addstr(&sb, "{range .a}");
	assert_code(hf_jsonpath_compile(sb.data, &path, &err), HF_E_INVALID);
	assert_non_null(strstr(err.text, "nested too deeply"));

	hf_strbuf_clear(&sb);
	hf_strbuf_addstr(&sb, "{.a");
	for (int i = 0; i <= HF_JSONPATH_DEPTH_MAX; i++)
		hf_strbuf_addstr(&sb, "[?(@.a");
	assert_code(hf_jsonpath_compile(sb.data, &path, &err), HF_E_INVALID);
	assert_non_null(strstr(err.text, "nested too deeply"));

	for (int i = 0; i <= HF_JSONPATH_RESULTS_MAX; i++)
		hf_json_append(list, hf_json_int(i));
	assert_ok(hf_jsonpath_compile("{[*]}", &path, &err), &err);
	hf_strbuf_clear(&sb);
	assert_code(hf_jsonpath_print(path, list, &sb, &err), HF_E_TOO_LARGE);
	path = hf_jsonpath_destroy(path);

	assert_ok(hf_jsonpath_compile("{.items}", &path, &err), &err);
	assert_code(hf_jsonpath_print(path, doc, &out, &err), HF_E_TOO_LARGE);
	assert_null(hf_jsonpath_destroy(path));
	assert_null(hf_jsonpath_destroy(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_find_what_kubectl_finds),
		cmocka_unit_test(ranges_filters_and_literals_print_what_kubectl_prints),
		cmocka_unit_test(the_value_itself_has_three_names),
		cmocka_unit_test(in_nothing_nothing_is_found),
		cmocka_unit_test(an_unsupported_feature_is_refused_by_name),
		cmocka_unit_test(wrong_templates_are_refused_with_their_place),
		cmocka_unit_test(a_path_that_does_not_fit_the_document_is_an_error),
		cmocka_unit_test(columns_take_paths_without_braces_and_dots),
		cmocka_unit_test(length_parts_depth_and_results_are_bounded),
	};
	return cmocka_run_group_tests_name("json/jsonpath", tests, NULL, NULL);
}
