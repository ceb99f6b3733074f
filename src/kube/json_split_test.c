/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of json_split.c: events, lists and objects split without a tree. */
#include "kube/json_split_internal.h"

#include "harness/test.h"

#include <string.h>

static int split_event(const char *line, struct hf_kube_event_text *ret_event)
{
	struct hf_error err;

	return hf_kube_event_split(line, strlen(line), ret_event, &err);
}

static void an_event_is_its_type_and_its_object(void **state)
{
	static const char *const lines[] = {
		"{\"type\":\"ADDED\",\"object\":{\"a\":[1,\"}\"]}}",
		" { \"object\" : {\"a\":[1,\"}\"]} , \"more\":[{}], \"type\" : \"ADDED\" } ",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(lines); i++) {
		struct hf_kube_event_text event;
		assert_int_equal(split_event(lines[i], &event), 0);
		assert_true(hf_skip_equals(&event.type, "ADDED", 5));
		assert_int_equal(event.object_len, strlen("{\"a\":[1,\"}\"]}"));
		assert_memory_equal(event.object, "{\"a\":[1,\"}\"]}", event.object_len);
	}
}

static void a_line_that_is_no_event_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"[]",
		"\"ADDED\"",
		"{}",
		"{\"type\":\"ADDED\"}",
		"{\"type\":\"ADDED\",\"object\":7}",
		"{\"type\":\"ADDED\",\"object\":null}",
		"{\"type\":4,\"object\":{}}",
		"{\"object\":{}}",
		"{\"type\":\"ADDED\",\"object\":{}",
		"{\"type\":\"ADDED\",\"object\":{\"a\":\"x}}",
		"{\"type\":\"ADDED\",\"object\":{}} {}",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(lines); i++) {
		struct hf_kube_event_text event = {.object_len = 77};
		assert_int_equal(split_event(lines[i], &event), HF_E_BAD_REQUEST);
		assert_int_equal(event.object_len, 77);
	}
}

static int read_pods(const char *body, struct hf_kube_list *ret_list)
{
	struct hf_error err;

	return hf_kube_list_read(body, strlen(body), &hf_pods, ret_list, &err);
}

static void items_without_a_kind_get_that_of_the_list(void **state)
{
	struct hf_kube_list list;

	assert_int_equal(read_pods("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":"
				   "{\"resourceVersion\":\"42\",\"continue\":\"next\\u0041\","
				   "\"remainingItemCount\":7},\"items\":["
				   "{\"metadata\":{\"name\":\"a\"}}, {} ,"
				   "{\"kind\":\"Own\",\"metadata\":{\"name\":\"b\"}}]}",
				   &list),
			 0);
	assert_int_equal(list.len, 3);
	assert_string_equal(list.resource_version, "42");
	assert_string_equal(list.continue_token, "nextA");
	assert_int_equal(list.remaining, 7);
	assert_string_equal(hf_doc_name(list.items[0]), "a");
	assert_string_equal(
		hf_doc_text(list.items[0], NULL),
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}");
	assert_string_equal(hf_doc_text(list.items[1], NULL),
			    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}");
	assert_string_equal(hf_doc_text(list.items[2], NULL),
			    "{\"kind\":\"Own\",\"metadata\":{\"name\":\"b\"}}");
	for (size_t i = 0; i < list.len; i++) {
		assert_false(hf_doc_has_tree(list.items[i]));
		assert_non_null(hf_doc_json(list.items[i]));
	}
	hf_kube_list_release(&list);
}

static void a_list_of_nothing_is_empty_and_its_last_page(void **state)
{
	static const char *const bodies[] = {
		"{\"items\":[]}",
		"{\"items\":null,\"metadata\":null}",
		"{\"metadata\":{\"resourceVersion\":5,\"continue\":[]}}",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(bodies); i++) {
		struct hf_kube_list list;
		assert_int_equal(read_pods(bodies[i], &list), 0);
		assert_int_equal(list.len, 0);
		assert_string_equal(list.resource_version, "");
		assert_string_equal(list.continue_token, "");
		assert_int_equal(list.remaining, 0);
		hf_kube_list_release(&list);
	}
}

static void how_many_remain_is_not_guessed(void **state)
{
	struct hf_kube_list list;

	assert_int_equal(read_pods("{\"metadata\":{\"continue\":\"x\"},\"items\":[]}", &list), 0);
	assert_int_equal(list.remaining, -1);
	hf_kube_list_release(&list);
}

static void a_token_may_be_as_long_as_the_body(void **state)
{
	HF_AUTO_STRBUF body = HF_STRBUF_INIT((size_t)1 << 20);
	struct hf_kube_list list;

	(void)state;
	hf_strbuf_addstr(&body, "{\"items\":[],\"metadata\":{\"continue\":\"");
	for (int i = 0; i < 300000; i++)
		hf_strbuf_addstr(&body, "x");
	hf_strbuf_addstr(&body, "\"}}");
	assert_int_equal(read_pods(body.data, &list), 0);
	assert_int_equal(strlen(list.continue_token), 300000);
	hf_kube_list_release(&list);
}

static void a_body_that_is_no_list_is_refused(void **state)
{
	static const char *const bodies[] = {
		"",
		"<html>",
		"[]",
		"{\"items\":{}}",
		"{\"items\":[1]}",
		"{\"items\":[{}]",
		"{\"items\":[{]}",
		"{\"items\":[{\"a\":1}],\"metadata\":{\"resourceVersion\":\"\\ud800\"}}",
		"{\"items\":[]}x",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(bodies); i++) {
		struct hf_kube_list list = {.remaining = 77};
		assert_int_equal(read_pods(bodies[i], &list), HF_E_BAD_REQUEST);
		assert_int_equal(list.remaining, 77);
	}
}

static void an_object_keeps_its_text_and_anything_else_is_refused(void **state)
{
	static const char *const bodies[] = {
		"", "7", "[]", "{", "{}{}", "{\"a\":\"}", "upstream timed out"};
	static const char good[] = " {\"metadata\":{\"uid\":\"u\"}}\n";
	HF_AUTO_DOC doc = NULL;
	struct hf_error err;

	assert_int_equal(hf_kube_object_read(good, strlen(good), &doc, &err), 0);
	assert_string_equal(hf_doc_uid(doc), "u");
	assert_false(hf_doc_has_tree(doc));
	for (size_t i = 0; i < HF_ARRAY_LEN(bodies); i++) {
		struct hf_doc *none = NULL;
		assert_int_equal(hf_kube_object_read(bodies[i], strlen(bodies[i]), &none, &err),
				 HF_E_BAD_REQUEST);
		assert_null(none);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_its_type_and_its_object),
		cmocka_unit_test(a_line_that_is_no_event_is_refused),
		cmocka_unit_test(items_without_a_kind_get_that_of_the_list),
		cmocka_unit_test(a_list_of_nothing_is_empty_and_its_last_page),
		cmocka_unit_test(a_token_may_be_as_long_as_the_body),
		cmocka_unit_test(how_many_remain_is_not_guessed),
		cmocka_unit_test(a_body_that_is_no_list_is_refused),
		cmocka_unit_test(an_object_keeps_its_text_and_anything_else_is_refused),
	};

	return cmocka_run_group_tests_name("kube text", tests, NULL, NULL);
}
