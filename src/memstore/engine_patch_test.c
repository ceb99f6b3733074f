/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"

#include "harness/random.h"
#include "json/patch.h"
#include "memstore/engine_internal.h"

#include <stdio.h>
#include <string.h>

static void check_merge(const char *target_text, const char *patch_text, const char *expected_text)
{
	HF_AUTO_DOC target = json_doc("%s", target_text);
	HF_AUTO_DOC patch = json_doc("%s", patch_text);
	HF_AUTO_DOC expected = json_doc("%s", expected_text);
	HF_AUTO_JSON result = hf_patch_merge(hf_doc_json(target), hf_doc_json(patch));

	if (!hf_json_equal(result, hf_doc_json(expected)))
		fail_msg("%s + %s is not %s", target_text, patch_text, expected_text);
}

/* The table in appendix A of RFC 7386. */
static void cases_of_rfc_7386_pass(void **state)
{
	check_merge("{'a':'b'}", "{'a':'c'}", "{'a':'c'}");
	check_merge("{'a':'b'}", "{'b':'c'}", "{'a':'b','b':'c'}");
	check_merge("{'a':'b'}", "{'a':null}", "{}");
	check_merge("{'a':'b','b':'c'}", "{'a':null}", "{'b':'c'}");
	check_merge("{'a':['b']}", "{'a':'c'}", "{'a':'c'}");
	check_merge("{'a':'c'}", "{'a':['b']}", "{'a':['b']}");
	check_merge("{'a':{'b':'c'}}", "{'a':{'b':'d','c':null}}", "{'a':{'b':'d'}}");
	check_merge("{'a':[{'b':'c'}]}", "{'a':[1]}", "{'a':[1]}");
	check_merge("['a','b']", "['c','d']", "['c','d']");
	check_merge("{'a':'b'}", "['c']", "['c']");
	check_merge("{'e':null}", "{'a':1}", "{'e':null,'a':1}");
	check_merge("[1,2]", "{'a':'b','c':null}", "{'a':'b'}");
	check_merge("{}", "{'a':{'bb':{'ccc':null}}}", "{'a':{'bb':{}}}");
}

static void what_does_not_change_is_shared(void **state)
{
	HF_AUTO_DOC target = json_doc("{'metadata':{'name':'n','labels':{'a':'b'}},"
				      "'spec':{'list':[1,2,3]},'status':{'phase':'x'}}");
	HF_AUTO_DOC patch = json_doc("{'status':{'phase':'y'}}");
	const struct hf_json *before = hf_doc_json(target);
	HF_AUTO_JSON after = hf_patch_merge(before, hf_doc_json(patch));

	assert_ptr_not_equal(after, before);
	assert_ptr_equal(hf_json_get(after, "metadata"), hf_json_get(before, "metadata"));
	assert_ptr_equal(hf_json_get(after, "spec"), hf_json_get(before, "spec"));
	assert_string_equal(hf_json_path_str(after, "status", "phase", NULL), "y");
	/* The target has not changed. */
	assert_string_equal(hf_json_path_str(before, "status", "phase", NULL), "x");
}

static void a_patch_that_changes_nothing_gives_the_target_itself(void **state)
{
	static const char *const patches[] = {
		"{}",       "{'a':1}",         "{'b':{'c':[1,{'d':null}]}}",
		"{'b':{}}", "{'absent':null}", "{'b':{'absent':null}}",
	};
	HF_AUTO_DOC target = json_doc("{'a':1,'b':{'c':[1,{'d':null}]}}");

	for (size_t i = 0; i < HF_ARRAY_LEN(patches); i++) {
		HF_AUTO_DOC patch = json_doc("%s", patches[i]);
		HF_AUTO_JSON result = hf_patch_merge(hf_doc_json(target), hf_doc_json(patch));
		if (result != hf_doc_json(target))
			fail_msg("%s", patches[i]);
	}
}

/* --- compared with the plain implementation of json/patch.h --- */

static struct hf_json *random_value(uint64_t *seed, int depth)
{
	switch (test_random_below(seed, depth > 0 ? 8 : 4)) {
	case 0: return hf_json_null();
	case 1: return hf_json_int((int64_t)test_random_below(seed, 3));
	case 2: return hf_json_string(test_random_below(seed, 2) ? "x" : "y");
	case 3: return hf_json_bool(true);
	case 4: {
		struct hf_json *array = hf_json_array();
		for (uint64_t n = test_random_below(seed, 3); n > 0; n--)
			hf_json_append(array, random_value(seed, depth - 1));
		return array;
	}
	default: {
		struct hf_json *object = hf_json_object();
		for (uint64_t n = test_random_below(seed, 4); n > 0; n--) {
			char key[2] = {(char)('a' + test_random_below(seed, 4)), '\0'};
			hf_json_set(object, key, random_value(seed, depth - 1));
		}
		return object;
	}
	}
}

static void sharing_gives_the_same_as_copying(void **state)
{
	for (uint64_t round = 0; round < 20000; round++) {
		uint64_t seed = round;
		HF_AUTO_JSON target = random_value(&seed, 4);
		HF_AUTO_JSON patch = random_value(&seed, 4);
		HF_AUTO_JSON keep = hf_json_copy(target);
		HF_AUTO_JSON shared = hf_patch_merge(target, patch);
		HF_AUTO_JSON copied = hf_json_merge_patch(target, patch);
		if (!hf_json_equal(shared, copied))
			fail_msg("round %llu differs", (unsigned long long)round);
		assert_true(hf_json_equal(target, keep));
		/* If the patch changes nothing, the result is the target itself. */
		if (hf_json_equal(target, copied))
			assert_ptr_equal(shared, target);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases_of_rfc_7386_pass),
		cmocka_unit_test(what_does_not_change_is_shared),
		cmocka_unit_test(a_patch_that_changes_nothing_gives_the_target_itself),
		cmocka_unit_test(sharing_gives_the_same_as_copying),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
