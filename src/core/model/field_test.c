/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/field.h"

#include "harness/test.h"

#include <string.h>

struct fixture {
	struct hf_arena *arena;
	struct hf_field_errors errors;
	struct hf_strbuf sb;
};

static struct fixture begin(void)
{
	struct fixture f = {.arena = hf_arena_create(1 << 20), .sb = HF_STRBUF_INIT(1 << 16)};

	hf_field_errors_init(&f.errors, f.arena);
	return f;
}

static void end(struct fixture *f)
{
	hf_strbuf_release(&f->sb);
	hf_arena_destroy(f->arena);
}

static void each_kind_reads_as_apimachinery_writes_it(void **state)
{
	static const char *const texts[] = {
		"a: Required value: must be there",
		"a: Invalid value: 7: must be there",
		"a: Unsupported value: 7: must be there",
		"a: Forbidden: must be there",
		"a: Duplicate value: 7: must be there",
		"a: Invalid value: 7: must be there",
		"unknown field \"a\"",
		"a: Too many: 7: must be there",
	};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		struct fixture f = begin();

		hf_field_add(&f.errors, (enum hf_problem)i, "7", "must be there", "%s", "a");
		hf_field_errors_write(&f.errors, &f.sb);
		assert_string_equal(f.sb.data, texts[i]);
		assert_true(strncmp(hf_problem_reason((enum hf_problem)i), "FieldValue", 10) == 0);
		end(&f);
	}
}

static void several_errors_are_one_list(void **state)
{
	struct fixture f = begin();
	struct hf_error err = {0};

	(void)state;
	hf_field_errors_write(&f.errors, &f.sb);
	assert_string_equal(f.sb.data, "");
	assert_int_equal(hf_field_errors_result(&f.errors, &err), 0);
	hf_field_add(&f.errors, HF_PROBLEM_REQUIRED, NULL, "", "spec.%s[%d]", "list", 3);
	hf_field_add(&f.errors, HF_PROBLEM_INVALID, NULL, "odd", "b");
	hf_field_errors_write(&f.errors, &f.sb);
	assert_string_equal(f.sb.data,
			    "[spec.list[3]: Required value, b: Invalid value: null: odd]");
	assert_code(hf_field_errors_result(&f.errors, &err), HF_E_INVALID);
	assert_string_equal(err.text, f.sb.data);
	end(&f);
}

static void errors_beyond_the_limit_are_counted(void **state)
{
	struct fixture f = begin();

	(void)state;
	for (int i = 0; i < HF_FIELD_ERRORS_MAX + 5; i++) {
		hf_field_add(&f.errors, HF_PROBLEM_FORBIDDEN, NULL, "", "f%d", i);
		hf_field_warn(&f.errors, "w%d", i);
	}
	assert_int_equal(f.errors.len, HF_FIELD_ERRORS_MAX);
	assert_int_equal(f.errors.warnings_len, HF_FIELD_ERRORS_MAX);
	assert_int_equal(f.errors.dropped, 5);
	hf_field_errors_write(&f.errors, &f.sb);
	assert_non_null(strstr(f.sb.data, ", and 5 more]"));
	end(&f);
}

static void strings_are_quoted_as_go_quotes_them(void **state)
{
	struct fixture f = begin();

	(void)state;
	assert_string_equal(hf_field_quote(&f.errors, "plain"), "\"plain\"");
	assert_string_equal(hf_field_quote(&f.errors, "a\"b\\c"), "\"a\\\"b\\\\c\"");
	assert_string_equal(hf_field_quote(&f.errors, "\n\t\x01"), "\"\\n\\t\\x01\"");
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_reads_as_apimachinery_writes_it),
		cmocka_unit_test(several_errors_are_one_list),
		cmocka_unit_test(errors_beyond_the_limit_are_counted),
		cmocka_unit_test(strings_are_quoted_as_go_quotes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
