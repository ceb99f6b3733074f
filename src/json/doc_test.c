/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "json/doc.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define POD                                                                                        \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"7\"}}"

static void a_text_is_parsed_when_first_asked_for(void **state)
{
	HF_AUTO_DOC doc = hf_doc_from_text(POD, strlen(POD));
	const struct hf_json *tree = hf_doc_json(doc);

	assert_string_equal(hf_json_path_str(tree, "metadata", "name", NULL), "p");
	assert_ptr_equal(hf_doc_json(doc), tree);
}

static void a_tree_is_written_when_its_text_is_asked_for(void **state)
{
	struct hf_json *root = hf_json_object();
	size_t len = 0;

	hf_json_set_str(root, "kind", "Pod");
	HF_AUTO_DOC doc = hf_doc_from_json(root);
	assert_string_equal(hf_doc_text(doc, &len), "{\"kind\":\"Pod\"}");
	assert_int_equal(len, 14);
	assert_ptr_equal(hf_doc_text(doc, NULL), hf_doc_text(doc, NULL));
}

static void metadata_is_read_from_either_form(void **state)
{
	struct hf_doc *parsed = NULL;
	struct hf_error err;

	assert_ok(hf_doc_parse(POD, strlen(POD), NULL, &parsed, &err), &err);
	HF_AUTO_DOC tree = parsed;
	HF_AUTO_DOC text = hf_doc_from_text(POD, strlen(POD));
	struct hf_doc *both[] = {tree, text};
	for (int i = 0; i < 2; i++) {
		assert_string_equal(hf_doc_name(both[i]), "p");
		assert_string_equal(hf_doc_namespace(both[i]), "ns");
		assert_string_equal(hf_doc_uid(both[i]), "u");
		assert_string_equal(hf_doc_resource_version(both[i]), "7");
	}
	assert_false(hf_doc_has_tree(text));
	const char *name = hf_doc_name(text);
	assert_non_null(hf_doc_json(text));
	/* Making the tree later does not move the string. */
	assert_ptr_equal(hf_doc_name(text), name);
}

static void metadata_is_found_behind_anything(void **state)
{
	static const char text[] =
		"{\"spec\":{\"metadata\":{\"name\":\"inner\"}},\"l\":[1,{}],"
		"\"m\\u0065tadata\":{\"managedFields\":[{\"name\":\"x\"}],"
		"\"labels\":{\"name\":\"y\"},\"name\":\"n\\u00e4\",\"uid\":null},"
		"\"status\":{}}";
	HF_AUTO_DOC doc = hf_doc_from_text(text, sizeof(text) - 1);

	assert_string_equal(hf_doc_name(doc), "n\xc3\xa4");
	assert_string_equal(hf_doc_uid(doc), "");
	assert_false(hf_doc_has_tree(doc));
}

static void absent_fields_read_as_empty(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"metadata\":{\"name\":5}}",
		"[]",
		"3",
		"",
		"{\"metadata\":[]}",
		"{\"metadata\":{\"name\":\"\\ud800\"}}",
		"{\"metadata\":{\"labels\":[",
		"{\"a\":x",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		HF_AUTO_DOC doc = hf_doc_from_text(texts[i], strlen(texts[i]));
		assert_string_equal(hf_doc_name(doc), "");
		assert_string_equal(hf_doc_uid(doc), "");
	}
	assert_string_equal(hf_doc_name(NULL), "");
	assert_null(hf_doc_json(NULL));
}

static void bad_text_has_no_tree_and_is_refused_by_parse(void **state)
{
	struct hf_doc *parsed = NULL;
	struct hf_error err;
	HF_AUTO_DOC doc = hf_doc_from_text("{", 1);

	assert_null(hf_doc_json(doc));
	assert_null(hf_doc_json(doc));
	assert_null(hf_doc_copy_json(doc));
	assert_string_equal(hf_doc_name(doc), "");
	assert_string_equal(hf_doc_text(doc, NULL), "{");
	assert_code(hf_doc_parse("{", 1, NULL, &parsed, &err), HF_E_BAD_REQUEST);
	assert_null(parsed);
}

static void an_escaped_nul_is_the_replacement_character(void **state)
{
	static const char text[] = "{\"metadata\":{\"name\":\"\\u0000a\\\\u0000\"},\"b\":"
				   "\"\\\\\\u0000\\u0000\"}";
	HF_AUTO_DOC doc = hf_doc_from_text(text, sizeof(text) - 1);

	(void)state;
	assert_string_equal(hf_doc_name(doc), "\xEF\xBF\xBD"
					      "a\\u0000");
	assert_string_equal(hf_json_path_str(hf_doc_json(doc), "b", NULL), "\\"
									   "\xEF\xBF\xBD"
									   "\xEF\xBF\xBD");
}

static void a_nul_byte_makes_the_text_invalid_and_does_not_end_it(void **state)
{
	static const char text[] =
		"{\"metadata\":\0{\"name\":\"a long name, longer than the rest\"}}";
	HF_AUTO_DOC doc = hf_doc_from_text(text, sizeof(text) - 1);
	size_t len;

	assert_string_equal(hf_doc_name(doc), "");
	assert_null(hf_doc_json(doc));
	assert_memory_equal(hf_doc_text(doc, &len), text, sizeof(text));
	assert_int_equal(len, sizeof(text) - 1);
}

static void a_copy_may_be_changed_and_the_document_stays(void **state)
{
	HF_AUTO_DOC doc = hf_doc_from_text(POD, strlen(POD));
	HF_AUTO_JSON copy = hf_doc_copy_json(doc);

	hf_json_set_str(hf_json_get(copy, "metadata"), "name", "other");
	assert_string_equal(hf_doc_name(doc), "p");
}

static void a_tree_is_dropped_and_made_again(void **state)
{
	HF_AUTO_DOC doc = hf_doc_from_text(POD, strlen(POD));
	HF_AUTO_DOC parsed = NULL;
	struct hf_error err;

	assert_non_null(hf_doc_json(doc));
	const char *name = hf_doc_name(doc);
	hf_doc_drop_tree(doc);
	assert_false(hf_doc_has_tree(doc));
	assert_string_equal(name, "p");
	assert_string_equal(hf_json_path_str(hf_doc_json(doc), "metadata", "name", NULL), "p");

	/* A document without its own text cannot make the tree again, so it is kept. */
	assert_ok(hf_doc_parse(POD, strlen(POD), NULL, &parsed, &err), &err);
	assert_non_null(hf_doc_text(parsed, NULL));
	hf_doc_drop_tree(parsed);
	assert_true(hf_doc_has_tree(parsed));
	hf_doc_drop_tree(NULL);
}

static void one_member_is_read_without_a_tree_of_the_rest(void **state)
{
	static const char text[] = "{\"a\":{\"status\":1},\"status\":{\"n\":[1,2]},\"bad\":}";
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));
	HF_AUTO_DOC whole = hf_doc_from_text(POD, strlen(POD));
	HF_AUTO_JSON member = hf_doc_member_json(doc, "status");

	assert_int_equal(hf_json_len(hf_json_get(member, "n")), 2);
	assert_false(hf_doc_has_tree(doc));
	assert_null(hf_doc_member_json(doc, "none"));
	assert_null(hf_doc_member_json(doc, "bad"));
	/* Now the document has a tree already, and the member comes from that tree. */
	assert_non_null(hf_doc_json(whole));
	HF_AUTO_JSON metadata = hf_doc_member_json(whole, "metadata");
	assert_ptr_equal(metadata, hf_json_get(hf_doc_json(whole), "metadata"));
}

static void a_member_is_left_out_with_its_comma(void **state)
{
	static const struct {
		const char *text, *without;
	} cases[] = {
		{"{\"metadata\":{\"managedFields\":[{}],\"a\":1},\"z\":2}",
		 "{\"metadata\":{\"a\":1},\"z\":2}"},
		{"{\"metadata\":{\"a\":1 , \"managedFields\" : {\"managedFields\":\"}\"} }}",
		 "{\"metadata\":{\"a\":1}}"},
		{"{\"metadata\":{\"a\":1,\"managedFields\":null,\"b\":2}}",
		 "{\"metadata\":{\"a\":1,\"b\":2}}"},
		{"{\"metadata\":{ \"managedFields\":1 }}", "{\"metadata\":{}}"},
		{"{\"metadata\":{ \"managedFields\":1 , \"b\":2}}", "{\"metadata\":{ \"b\":2}}"},
	};
	static const char *const unchanged[] = {"{\"metadata\":{\"a\":{\"managedFields\":1}}}",
						"{\"managedFields\":1}",
						"{\"metadata\":[1]}",
						"{\"metadata\":{\"managedFields\":",
						"7",
						""};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_DOC doc = hf_doc_from_text(cases[i].text, strlen(cases[i].text));
		HF_AUTO_DOC without = hf_doc_without_managed_fields(doc);
		assert_string_equal(hf_doc_text(without, NULL), cases[i].without);
		assert_non_null(hf_doc_json(without));
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(unchanged); i++) {
		HF_AUTO_DOC doc = hf_doc_from_text(unchanged[i], strlen(unchanged[i]));
		HF_AUTO_DOC without = hf_doc_without_managed_fields(doc);
		assert_ptr_equal(without, doc);
	}
}

/* A document that was made with the marks of its text answers as one that was made without them. */
static void assert_same_docs(const char *text)
{
	HF_AUTO_DOC plain = hf_doc_from_text(text, strlen(text));
	struct hf_doc_marks marks;
	struct hf_skip s;

	hf_skip_init(&s, text, strlen(text));
	assert_true(hf_doc_skip(&s, &marks));
	assert_true(hf_skip_at_end(&s));
	HF_AUTO_DOC marked = hf_doc_from_marked_text(text, strlen(text), &marks);
	HF_AUTO_DOC rest = hf_doc_without_managed_fields(marked);
	HF_AUTO_DOC plain_rest = hf_doc_without_managed_fields(plain);
	struct hf_doc *const docs[] = {marked, rest};
	for (size_t i = 0; i < HF_ARRAY_LEN(docs); i++) {
		assert_string_equal(hf_doc_name(docs[i]), hf_doc_name(plain));
		assert_string_equal(hf_doc_namespace(docs[i]), hf_doc_namespace(plain));
		assert_string_equal(hf_doc_uid(docs[i]), hf_doc_uid(plain));
		assert_string_equal(hf_doc_resource_version(docs[i]),
				    hf_doc_resource_version(plain));
	}
	assert_string_equal(hf_doc_text(marked, NULL), hf_doc_text(plain, NULL));
	assert_string_equal(hf_doc_text(rest, NULL), hf_doc_text(plain_rest, NULL));
	assert_int_equal(rest == marked, plain_rest == plain);
	HF_AUTO_DOC again = hf_doc_without_managed_fields(rest);
	assert_ptr_equal(again, rest);
}

static void marks_of_a_pass_change_no_answer(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"metadata\":{}}",
		"{\"metadata\":7}",
		"{\"metadata\":[{\"name\":\"a\"}],\"metadata\":{\"name\":\"b\"}}",
		"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\","
		"\"resourceVersion\":\"1\",\"managedFields\":[{\"f:a\":{\"k:{\\\"n\\\":1}\":{}}}]},"
		"\"spec\":{\"metadata\":{\"name\":\"x\"}}}",
		"{\"metadata\" : { \"managedFields\" : [ ] , \"name\" : \"\\u0000a\\\\u0000\" } }",
		"{\"metadata\":{\"managedFields\":null}}",
		"{\"metadata\":{\"name\":\"a\",\"managedFields\":[],\"uid\":7,\"name\":\"b\"}}",
		"{\"metadata\":{\"labels\":{\"managedFields\":\"x\",\"name\":\"y\"},\"name\":\"\\u00e4\"}}",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++)
		assert_same_docs(texts[i]);
}

static void a_pass_refuses_broken_text(void **state)
{
	static const char *const texts[] = {"",
					    "7",
					    "[]",
					    "{",
					    "{\"metadata\"",
					    "{\"metadata\":{",
					    "{\"metadata\":{\"name\":\"a",
					    "{\"metadata\":{\"managedFields\":[]",
					    "{\"metadata\":{\"managedFields\":[] ,",
					    "{\"metadata\":{\"name\":\"a\"}"};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		size_t len = strlen(texts[i]);
		/* The copy ends without a NUL, so that AddressSanitizer reports a read beyond the
		 * text. */
		char *exact = memcpy(hf_xmalloc(len > 0 ? len : 1), texts[i], len);
		struct hf_doc_marks marks;
		struct hf_skip s;

		hf_skip_init(&s, exact, len);
		assert_false(hf_doc_skip(&s, &marks));
		free(exact);
	}
}

static void references_are_counted(void **state)
{
	struct hf_doc *doc = hf_doc_from_text(POD, strlen(POD));
	struct hf_doc *second = hf_doc_ref(doc);

	assert_ptr_equal(second, doc);
	assert_null(hf_doc_unref(doc));
	assert_string_equal(hf_doc_name(second), "p");
	assert_null(hf_doc_unref(second));
	assert_null(hf_doc_ref(NULL));
	assert_null(hf_doc_unref(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_parsed_when_first_asked_for),
		cmocka_unit_test(a_tree_is_written_when_its_text_is_asked_for),
		cmocka_unit_test(an_escaped_nul_is_the_replacement_character),
		cmocka_unit_test(metadata_is_read_from_either_form),
		cmocka_unit_test(metadata_is_found_behind_anything),
		cmocka_unit_test(absent_fields_read_as_empty),
		cmocka_unit_test(bad_text_has_no_tree_and_is_refused_by_parse),
		cmocka_unit_test(a_nul_byte_makes_the_text_invalid_and_does_not_end_it),
		cmocka_unit_test(a_copy_may_be_changed_and_the_document_stays),
		cmocka_unit_test(a_tree_is_dropped_and_made_again),
		cmocka_unit_test(one_member_is_read_without_a_tree_of_the_rest),
		cmocka_unit_test(a_member_is_left_out_with_its_comma),
		cmocka_unit_test(marks_of_a_pass_change_no_answer),
		cmocka_unit_test(a_pass_refuses_broken_text),
		cmocka_unit_test(references_are_counted),
	};
	return cmocka_run_group_tests_name("json/doc", tests, NULL, NULL);
}
