/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the parser of request targets. */
#include "harness/test.h"
#include "http/target.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "http/server.h"

#include <string.h>

static void parse_target(const char *raw, struct hf_target *target)
{
	struct hf_error err = {0};

	assert_ok(hf_target_parse(raw, target, &err), &err);
	assert_string_equal(target->raw, raw);
}

static void assert_refused(const char *raw, int code)
{
	struct hf_target target = {0};
	struct hf_error err = {0};

	assert_code(hf_target_parse(raw, &target, &err), code);
	assert_int_equal(err.code, code);
	assert_true(err.text[0] != '\0');
	assert_null(target.raw);
}

static void assert_pair(const struct hf_target *target, size_t i, const char *name,
			const char *value)
{
	assert_true(i < target->query_count);
	assert_string_equal(target->query[i].name, name);
	assert_string_equal(target->query[i].value, value);
}

static void paths_are_decoded(void **state)
{
	static const struct {
		const char *raw, *path;
	} cases[] = {
		{"/", "/"},
		{"/api/v1/pods", "/api/v1/pods"},
		{"/a%2Fb%20c", "/a/b c"},
		{"/%e2%82%ac%E2%82%AC", "/\xe2\x82\xac\xe2\x82\xac"},
		{"/a+b", "/a+b"}, /* only a query uses plus for a blank */
		{"/?", "/"},
		{"http://host:80/x", "/x"},
		{"https://[::1]/x?y", "/x"},
		{"//x", "//x"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_target target;

		parse_target(cases[i].raw, &target);
		assert_string_equal(target.path, cases[i].path);
		hf_target_release(&target);
	}
}

static void queries_keep_order_and_repetition(void **state)
{
	struct hf_target target;

	parse_target("/p?labelSelector=a%3Db,c+in+(d)&watch=1&x&watch=&&=v&%26=%3D", &target);
	assert_int_equal(target.query_count, 6);
	assert_pair(&target, 0, "labelSelector", "a=b,c in (d)");
	assert_pair(&target, 1, "watch", "1");
	assert_pair(&target, 2, "x", "");
	assert_pair(&target, 3, "watch", "");
	assert_pair(&target, 4, "", "v");
	assert_pair(&target, 5, "&", "=");
	hf_target_release(&target);
}

static void a_target_without_a_path_is_refused(void **state)
{
	assert_refused("", HF_E_BAD_REQUEST);
	assert_refused("*", HF_E_BAD_REQUEST);
	assert_refused("api", HF_E_BAD_REQUEST);
	assert_refused("?a=b", HF_E_BAD_REQUEST);
	assert_refused("http://host", HF_E_BAD_REQUEST);
	assert_refused("http://host?a", HF_E_BAD_REQUEST);
}

static void broken_escapes_are_refused(void **state)
{
	assert_refused("/%", HF_E_BAD_REQUEST);
	assert_refused("/%4", HF_E_BAD_REQUEST);
	assert_refused("/%4g", HF_E_BAD_REQUEST);
	assert_refused("/%00", HF_E_BAD_REQUEST);
	assert_refused("/%ff", HF_E_BAD_REQUEST); /* decodes to invalid UTF-8 */
	assert_refused("/%c0%af", HF_E_BAD_REQUEST);
	assert_refused("/x?a=%", HF_E_BAD_REQUEST);
	assert_refused("/x?%zz=1", HF_E_BAD_REQUEST);
	assert_refused("/x?a=%00", HF_E_BAD_REQUEST);
	assert_refused("/x?a=%f", HF_E_BAD_REQUEST);
}

static void limits_hold_at_their_edge(void **state)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(100000);
	struct hf_target target;

	hf_strbuf_addstr(&sb, "/?a");
	for (int i = 1; i < HF_HTTP_QUERY_PARAMS_MAX; i++)
		hf_strbuf_addstr(&sb, "&a");
	parse_target(sb.data, &target);
	assert_int_equal(target.query_count, HF_HTTP_QUERY_PARAMS_MAX);
	hf_target_release(&target);
	hf_strbuf_addstr(&sb, "&a");
	assert_refused(sb.data, HF_E_BAD_REQUEST);

	hf_strbuf_clear(&sb);
	hf_strbuf_addch(&sb, '/');
	while (sb.len < HF_HTTP_TARGET_BYTES_MAX)
		hf_strbuf_addch(&sb, 'x');
	parse_target(sb.data, &target);
	hf_target_release(&target);
	hf_strbuf_addch(&sb, 'x');
	assert_refused(sb.data, HF_E_TOO_LARGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_decoded),
		cmocka_unit_test(queries_keep_order_and_repetition),
		cmocka_unit_test(a_target_without_a_path_is_refused),
		cmocka_unit_test(broken_escapes_are_refused),
		cmocka_unit_test(limits_hold_at_their_edge),
	};
	return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
