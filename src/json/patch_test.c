/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/strbuf.h"
#include "json/patch.h"

#include <string.h>

static struct hf_json *parse_text(const char *text)
{
	struct hf_json *value = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(text, strlen(text), NULL, &value, &err), &err);
	return value;
}

static void assert_equal_text(const struct hf_json *value, const char *want)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1 << 16);
	HF_AUTO_JSON wanted = parse_text(want);

	hf_json_write(value, HF_JSON_COMPACT, &sb);
	if (!hf_json_equal(value, wanted))
		fail_msg("%s instead of %s", sb.data, want);
}

static void merge_patch_does_what_rfc_7386_lists(void **state)
{
	/* The cases of the RFC's appendix A, and some more. */
	static const char *const cases[][3] = {
		{"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
		{"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
		{"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
		{"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
		{"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
		{"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
		{"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}",
		 "{\"a\":{\"b\":\"d\"}}"},
		{"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
		{"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
		{"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
		{"{\"a\":\"foo\"}", "null", "null"},
		{"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
		{"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
		{"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
		{"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
		{"{}", "{\"a\":[null,{\"b\":null}]}", "{\"a\":[null,{\"b\":null}]}"},
		{"{\"a\":{\"b\":1,\"c\":2}}", "{}", "{\"a\":{\"b\":1,\"c\":2}}"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_JSON target = parse_text(cases[i][0]);
		HF_AUTO_JSON before = hf_json_copy(target);
		HF_AUTO_JSON patch = parse_text(cases[i][1]);
		HF_AUTO_JSON result = hf_json_merge_patch(target, patch);
		assert_equal_text(result, cases[i][2]);
		assert_true(hf_json_equal(target, before));
	}
	HF_AUTO_JSON patch = parse_text("{\"a\":1,\"b\":null}");
	HF_AUTO_JSON made = hf_json_merge_patch(NULL, patch);
	assert_equal_text(made, "{\"a\":1}");
}

static void the_result_shares_nothing_that_can_change(void **state)
{
	HF_AUTO_JSON target = parse_text("{\"a\":{\"b\":1}}");
	HF_AUTO_JSON patch = parse_text("{\"c\":{\"d\":[1]}}");
	HF_AUTO_JSON result = hf_json_merge_patch(target, patch);

	hf_json_set_i64(hf_json_get(result, "a"), "b", 2);
	hf_json_append(hf_json_path(result, "c", "d", NULL), hf_json_int(2));
	assert_equal_text(target, "{\"a\":{\"b\":1}}");
	assert_equal_text(patch, "{\"c\":{\"d\":[1]}}");
}

static void a_diff_is_the_smallest_patch_to_the_target(void **state)
{
	static const char *const cases[][3] = {
		{"{}", "{}", "{}"},
		{"{\"a\":1}", "{\"a\":1}", "{}"},
		{"{\"a\":1}", "{\"a\":2}", "{\"a\":2}"},
		{"{\"a\":1}", "{}", "{\"a\":null}"},
		{"{}", "{\"a\":{\"b\":{}}}", "{\"a\":{\"b\":{}}}"},
		{"{\"s\":{\"a\":1,\"b\":2}}", "{\"s\":{\"a\":1,\"c\":3}}",
		 "{\"s\":{\"b\":null,\"c\":3}}"},
		{"{\"s\":{\"a\":1}}", "{\"s\":{}}", "{\"s\":{\"a\":null}}"},
		{"{\"s\":{\"a\":1}}", "{\"s\":[1]}", "{\"s\":[1]}"},
		{"{\"s\":[1]}", "{\"s\":{\"a\":1}}", "{\"s\":{\"a\":1}}"},
		{"{\"l\":[{\"a\":1}]}", "{\"l\":[{\"a\":null}]}", "{\"l\":[{\"a\":null}]}"},
		{"{\"a\":1}", "{\"a\":null}", "{\"a\":null}"},
		{"{\"a\":null}", "{\"a\":null}", "{}"},
		{"{\"a\":null}", "{}", "{}"},
		{"{}", "{\"a\":null,\"b\":{\"c\":null}}", "{\"b\":{}}"},
		{"{\"a\":1}", "{\"a\":1.0}", "{}"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_JSON from = parse_text(cases[i][0]);
		HF_AUTO_JSON to = parse_text(cases[i][1]);
		HF_AUTO_JSON patch = hf_json_merge_diff(from, to);
		assert_equal_text(patch, cases[i][2]);
		/* Applying the patch gives the target: no difference is left. */
		HF_AUTO_JSON result = hf_json_merge_patch(from, patch);
		HF_AUTO_JSON rest = hf_json_merge_diff(result, to);
		assert_int_equal(hf_json_len(rest), 0);
	}
}

static void json_patch_does_what_rfc_6902_says(void **state)
{
	static const char *const cases[][3] = {
		{"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
		 "{\"baz\":\"qux\",\"foo\":\"bar\"}"},
		{"{\"foo\":[\"bar\",\"baz\"]}",
		 "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
		 "{\"foo\":[\"bar\",\"qux\",\"baz\"]}"},
		{"{\"foo\":[1]}", "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":2}]",
		 "{\"foo\":[1,2]}"},
		{"{\"foo\":[1]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":[2]}]",
		 "{\"foo\":[1,[2]]}"},
		{"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}"},
		{"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":[5]}]", "[5]"},
		{"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/\",\"value\":2}]", "{\"a\":1,\"\":2}"},
		{"{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]",
		 "{\"foo\":\"bar\"}"},
		{"{\"foo\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]",
		 "{\"foo\":[1,3]}"},
		{"{\"a\":null}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{}"},
		{"{\"baz\":\"qux\"}", "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]",
		 "{\"baz\":\"boo\"}"},
		{"[1,2]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":{\"x\":1}}]",
		 "[1,{\"x\":1}]"},
		{"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":2}]", "2"},
		{"{\"foo\":{\"bar\":\"baz\",\"w\":\"fred\"},\"qux\":{\"c\":\"g\"}}",
		 "[{\"op\":\"move\",\"from\":\"/foo/w\",\"path\":\"/qux/thud\"}]",
		 "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"c\":\"g\",\"thud\":\"fred\"}}"},
		{"{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
		 "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
		 "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}"},
		{"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]",
		 "{\"a\":{\"b\":1}}"},
		{"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"\"}]",
		 "{\"b\":1}"},
		{"{\"a\":{\"b\":1}}",
		 "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"},"
		 "{\"op\":\"add\",\"path\":\"/c/d\",\"value\":2}]",
		 "{\"a\":{\"b\":1},\"c\":{\"b\":1,\"d\":2}}"},
		{"{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/a/c\"}]",
		 "{\"a\":{\"b\":1,\"c\":{\"a\":{\"b\":1}}}}"},
		{"{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}",
		 "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"qux\"},"
		 "{\"op\":\"test\",\"path\":\"/foo/1\",\"value\":2.0}]",
		 "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}"},
		{"{\"/\":9,\"~1\":10,\"m~n\":1}",
		 "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10},"
		 "{\"op\":\"test\",\"path\":\"/~1\",\"value\":9},"
		 "{\"op\":\"remove\",\"path\":\"/m~0n\"}]",
		 "{\"/\":9,\"~1\":10}"},
		{"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":1,\"xyz\":123}]",
		 "{\"a\":1,\"b\":1}"},
		{"{\"a\":1}", "[]", "{\"a\":1}"},
		{"{\"0\":1,\"-\":2}",
		 "[{\"op\":\"remove\",\"path\":\"/0\"},"
		 "{\"op\":\"replace\",\"path\":\"/-\",\"value\":3}]",
		 "{\"-\":3}"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_JSON target = parse_text(cases[i][0]);
		HF_AUTO_JSON before = hf_json_copy(target);
		HF_AUTO_JSON ops = parse_text(cases[i][1]);
		HF_AUTO_JSON result = NULL;
		struct hf_error err;
		assert_ok(hf_json_patch(target, ops, &result, &err), &err);
		assert_equal_text(result, cases[i][2]);
		assert_true(hf_json_equal(target, before));
	}
}

static void an_operation_that_fails_is_invalid_and_changes_nothing(void **state)
{
	static const char *const cases[][2] = {
		{"[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]",
		 "operation 0 (test /a): test failed: the value is different"},
		{"[{\"op\":\"test\",\"path\":\"/x\",\"value\":null}]",
		 "operation 0 (test /x): the path is not in the document"},
		{"[{\"op\":\"add\",\"path\":\"/b\",\"value\":1},{\"op\":\"remove\",\"path\":\"/x\"}]",
		 "operation 1 (remove /x): the path is not in the document"},
		{"[{\"op\":\"replace\",\"path\":\"/l/3\",\"value\":1}]",
		 "operation 0 (replace /l/3): the path is not in the document"},
		{"[{\"op\":\"replace\",\"path\":\"/l/-\",\"value\":1}]",
		 "operation 0 (replace /l/-): the path is not in the document"},
		{"[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":1}]",
		 "operation 0 (add /x/y): the parent of the path is not in the document"},
		{"[{\"op\":\"add\",\"path\":\"/a/y\",\"value\":1}]",
		 "operation 0 (add /a/y): the parent is neither an object nor an array"},
		{"[{\"op\":\"add\",\"path\":\"/l/4\",\"value\":1}]",
		 "operation 0 (add /l/4): the index is out of range"},
		{"[{\"op\":\"add\",\"path\":\"/l/-1\",\"value\":1}]",
		 "operation 0 (add /l/-1): the index is out of range"},
		{"[{\"op\":\"add\",\"path\":\"/l/01\",\"value\":1}]",
		 "operation 0 (add /l/01): the index is out of range"},
		{"[{\"op\":\"add\",\"path\":\"/l/1e0\",\"value\":1}]",
		 "operation 0 (add /l/1e0): the index is out of range"},
		{"[{\"op\":\"add\",\"path\":\"/l/99999999999999999999\",\"value\":1}]",
		 "operation 0 (add /l/99999999999999999999): the index is out of range"},
		{"[{\"op\":\"copy\",\"from\":\"/x\",\"path\":\"/y\"}]",
		 "operation 0 (copy /y): 'from' is not in the document"},
		{"[{\"op\":\"move\",\"from\":\"/o\",\"path\":\"/o/p/q\"}]",
		 "operation 0 (move /o/p/q): a value cannot be moved into itself"},
		{"[{\"op\":\"remove\",\"path\":\"\"}]",
		 "operation 0 (remove ): the whole document cannot be removed"},
		{"[{\"op\":\"spam\",\"path\":\"/a\"}]", "operation 0: no such operation 'spam'"},
	};
	HF_AUTO_JSON target = parse_text("{\"a\":1,\"l\":[1,2,3],\"o\":{\"p\":{}}}");

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_JSON ops = parse_text(cases[i][0]);
		struct hf_json *result = NULL;
		struct hf_error err;
		assert_code(hf_json_patch(target, ops, &result, &err), HF_E_INVALID);
		assert_string_equal(err.text, cases[i][1]);
		assert_null(result);
		assert_equal_text(target, "{\"a\":1,\"l\":[1,2,3],\"o\":{\"p\":{}}}");
	}
}

static void a_malformed_patch_is_a_bad_request(void **state)
{
	static const char *const cases[][2] = {
		{"{}", "a JSON patch must be an array"},
		{"[5]", "operation 0: 'op' must be a string"},
		{"[{\"op\":1,\"path\":\"/a\"}]", "operation 0: 'op' must be a string"},
		{"[{\"op\":\"add\",\"value\":1}]", "operation 0: 'path' must be a JSON pointer"},
		{"[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]",
		 "operation 0: 'path' must be a JSON pointer"},
		{"[{\"op\":\"add\",\"path\":\"/a~2\",\"value\":1}]",
		 "operation 0: 'path' must be a JSON pointer"},
		{"[{\"op\":\"add\",\"path\":\"/a~\",\"value\":1}]",
		 "operation 0: 'path' must be a JSON pointer"},
		{"[{\"op\":\"add\",\"path\":\"/a\"}]", "operation 0: 'value' is missing"},
		{"[{\"op\":\"test\",\"path\":\"/a\"}]", "operation 0: 'value' is missing"},
		{"[{\"op\":\"copy\",\"path\":\"/a\"}]",
		 "operation 0: 'from' must be a JSON pointer"},
	};
	HF_AUTO_JSON target = parse_text("{}");

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_JSON ops = parse_text(cases[i][0]);
		struct hf_json *result = NULL;
		struct hf_error err;
		assert_code(hf_json_patch(target, ops, &result, &err), HF_E_BAD_REQUEST);
		assert_string_equal(err.text, cases[i][1]);
	}
}

static void operations_and_copies_are_bounded(void **state)
{
	HF_AUTO_JSON target = parse_text("{\"a\":\"0123456789012345678901234567890123456789\"}");
	HF_AUTO_JSON ops = hf_json_array();
	struct hf_json *result = NULL;
	struct hf_error err;

	for (int i = 0; i <= HF_JSON_PATCH_OPS_MAX; i++) {
		struct hf_json *op = hf_json_object();
		hf_json_set_str(op, "op", "test");
		hf_json_set_str(op, "path", "/a");
		hf_json_set_str(op, "value", "0123456789012345678901234567890123456789");
		hf_json_append(ops, op);
	}
	assert_code(hf_json_patch(target, ops, &result, &err), HF_E_TOO_LARGE);
	hf_json_remove_item(ops, 0);
	assert_ok(hf_json_patch(target, ops, &result, &err), &err);
	result = hf_json_unref(result);

	/* With each copy the document becomes twice as large, and deeper. */
	HF_AUTO_JSON wide = parse_text("{\"l\":[\"0123456789\"]}");
	HF_AUTO_JSON doubling = hf_json_array();
	for (int i = 0; i < 40; i++) {
		HF_AUTO_JSON op = parse_text("{\"op\":\"copy\",\"from\":\"/l\",\"path\":\"/l/-\"}");
		hf_json_append(doubling, hf_json_ref(op));
	}
	assert_code(hf_json_patch(wide, doubling, &result, &err), HF_E_TOO_LARGE);
	assert_null(result);
}

static void depth_is_bounded(void **state)
{
	HF_AUTO_JSON target = parse_text("{}");
	HF_AUTO_JSON ops = hf_json_array();
	HF_AUTO_STRBUF path = HF_STRBUF_INIT(4096);
	struct hf_json *result = NULL;
	struct hf_error err;
	int rc = 0;

	for (int i = 0; i < HF_JSON_DEPTH_MAX - 1; i++) {
		struct hf_json *op = hf_json_object();
		hf_strbuf_addstr(&path, "/a");
		hf_json_set_str(op, "op", "add");
		hf_json_set_str(op, "path", path.data);
		hf_json_set(op, "value", hf_json_object());
		hf_json_append(ops, op);
	}
	assert_ok(hf_json_patch(target, ops, &result, &err), &err);
	HF_AUTO_JSON deep = result;
	HF_AUTO_JSON more = parse_text("[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"},"
				       "{\"op\":\"add\",\"path\":\"/a\",\"value\":{}},"
				       "{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/a/b\"}]");
	rc = hf_json_patch(deep, more, &result, &err);
	assert_code(rc, HF_E_TOO_LARGE);
	assert_string_equal(err.text,
			    "operation 2 (move /a/b): nested too deeply, or too much is moved");
	HF_AUTO_JSON replacing = parse_text("[{\"op\":\"add\",\"path\":\"/c\",\"value\":1},"
					    "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/d\"}]");
	HF_AUTO_JSON fine = NULL;
	assert_ok(hf_json_patch(deep, replacing, &fine, &err), &err);
}

static void moving_much_many_times_is_cut_short(void **state)
{
	HF_AUTO_JSON target = parse_text("{\"a\":[]}");
	HF_AUTO_JSON ops = hf_json_array();
	struct hf_json *result = NULL;
	struct hf_error err;

	for (int i = 0; i < 1000; i++)
		hf_json_append(hf_json_get(target, "a"), hf_json_int(i));
	for (int i = 0; i < 5000; i++) {
		struct hf_json *op = hf_json_object();
		hf_json_set_str(op, "op", "move");
		hf_json_set_str(op, "from", i % 2 ? "/b" : "/a");
		hf_json_set_str(op, "path", i % 2 ? "/a" : "/b");
		hf_json_append(ops, op);
	}
	assert_code(hf_json_patch(target, ops, &result, &err), HF_E_TOO_LARGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merge_patch_does_what_rfc_7386_lists),
		cmocka_unit_test(the_result_shares_nothing_that_can_change),
		cmocka_unit_test(a_diff_is_the_smallest_patch_to_the_target),
		cmocka_unit_test(json_patch_does_what_rfc_6902_says),
		cmocka_unit_test(an_operation_that_fails_is_invalid_and_changes_nothing),
		cmocka_unit_test(a_malformed_patch_is_a_bad_request),
		cmocka_unit_test(operations_and_copies_are_bounded),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(moving_much_many_times_is_cut_short),
	};
	return cmocka_run_group_tests_name("json/patch", tests, NULL, NULL);
}
