/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/mem.h"
#include "store/request.h"
#include "store/resource.h"

#include <string.h>

static struct hf_doc *make_doc(const char *text)
{
	return hf_doc_from_text(text, strlen(text));
}

static void requests_that_make_sense_pass(void **state)
{
	HF_AUTO_DOC object = make_doc("{}");
	HF_AUTO_DOC list = make_doc("[]");
	const struct hf_request good[] = {
		{.verb = HF_VERB_GET, .resource = &hf_pods, .ns = "n", .name = "p"},
		{.verb = HF_VERB_GET, .resource = &hf_nodes, .name = "n.example.com"},
		{.verb = HF_VERB_LIST, .resource = &hf_pods},
		{.verb = HF_VERB_LIST, .resource = &hf_pods, .ns = "n", .limit = 5},
		{.verb = HF_VERB_CREATE, .resource = &hf_pods, .ns = "n", .body = object},
		{.verb = HF_VERB_CREATE,
		 .resource = &hf_pods,
		 .ns = "n",
		 .name = "p",
		 .subresource = "binding",
		 .body = object},
		{.verb = HF_VERB_PATCH,
		 .resource = &hf_pods,
		 .ns = "n",
		 .name = "p",
		 .body = list,
		 .patch_type = HF_PATCH_JSON},
		{.verb = HF_VERB_PATCH,
		 .resource = &hf_pods,
		 .ns = "n",
		 .name = "p",
		 .body = object,
		 .subresource = "status",
		 .field_validation = "Strict"},
		{.verb = HF_VERB_DELETE,
		 .resource = &hf_pods,
		 .ns = "n",
		 .name = "p",
		 .grace_seconds = HF_GRACE_DEFAULT},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(good); i++) {
		struct hf_error err = {0};
		assert_ok(hf_request_check(&good[i], &err), &err);
	}
}

struct bad_request {
	struct hf_request request;
	int code;
};

static void check_refused(const struct bad_request *bad, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct hf_error err = {0};
		int rc = hf_request_check(&bad[i].request, &err);
		if (rc != bad[i].code)
			fail_msg("case %zu: %s, not %s", i, hf_code_name(rc),
				 hf_code_name(bad[i].code));
		assert_true(strlen(err.text) > 0);
	}
}

#define GET_POD(...) .verb = HF_VERB_GET, .resource = &hf_pods, __VA_ARGS__

static void places_that_cannot_be_are_refused(void **state)
{
	const struct bad_request bad[] = {
		{{GET_POD(.ns = "n")}, HF_E_BAD_REQUEST},
		{{GET_POD(.ns = "n", .name = "")}, HF_E_BAD_REQUEST},
		{{GET_POD(.name = "p")}, HF_E_BAD_REQUEST},
		{{GET_POD(.ns = "..", .name = "p")}, HF_E_BAD_REQUEST},
		{{GET_POD(.ns = "n", .name = "a/b")}, HF_E_BAD_REQUEST},
		{{GET_POD(.ns = "n", .name = "a%2fb")}, HF_E_BAD_REQUEST},
		{{GET_POD(.ns = "n", .name = "a b")}, HF_E_BAD_REQUEST},
		{{GET_POD(.ns = "n", .name = "a\r\nb")}, HF_E_BAD_REQUEST},
		{{GET_POD(.ns = "n", .name = "p", .subresource = "exec")}, HF_E_NOT_FOUND},
		{{.verb = HF_VERB_GET, .resource = &hf_nodes, .ns = "n", .name = "p"},
		 HF_E_BAD_REQUEST},
	};

	check_refused(bad, HF_ARRAY_LEN(bad));
}

#define OF_POD(v, ...) .verb = (v), .resource = &hf_pods, .ns = "n", .name = "p", __VA_ARGS__

static void wishes_that_cannot_be_are_refused(void **state)
{
	const struct bad_request bad[] = {
		{{OF_POD(HF_VERB_DELETE, .subresource = "status")}, HF_E_METHOD},
		{{OF_POD(HF_VERB_DELETE, .grace_seconds = -2)}, HF_E_INVALID},
		{{.verb = HF_VERB_LIST, .resource = &hf_pods, .limit = -1}, HF_E_BAD_REQUEST},
	};

	check_refused(bad, HF_ARRAY_LEN(bad));
}

static void bodies_of_the_wrong_shape_are_refused(void **state)
{
	HF_AUTO_DOC object = make_doc("{}");
	HF_AUTO_DOC list = make_doc("[]");
	HF_AUTO_DOC broken = make_doc("{");
	const struct bad_request bad[] = {
		{{OF_POD(HF_VERB_UPDATE, .body = NULL)}, HF_E_BAD_REQUEST},
		{{OF_POD(HF_VERB_UPDATE, .body = broken)}, HF_E_BAD_REQUEST},
		{{OF_POD(HF_VERB_UPDATE, .body = list)}, HF_E_BAD_REQUEST},
		{{OF_POD(HF_VERB_PATCH, .body = list, .patch_type = HF_PATCH_MERGE)},
		 HF_E_BAD_REQUEST},
		{{OF_POD(HF_VERB_PATCH, .body = object, .patch_type = HF_PATCH_JSON)},
		 HF_E_BAD_REQUEST},
		{{OF_POD(HF_VERB_UPDATE, .body = object, .field_validation = "Perhaps")},
		 HF_E_INVALID},
	};

	check_refused(bad, HF_ARRAY_LEN(bad));
}

static void watches_are_checked_too(void **state)
{
	struct hf_error err = {0};

	assert_ok(hf_watch_options_check(&(struct hf_watch_options){.resource = &hf_pods}, &err),
		  &err);
	assert_code(hf_watch_options_check(
			    &(struct hf_watch_options){.resource = &hf_pods, .ns = "a/b"}, &err),
		    HF_E_BAD_REQUEST);
	assert_code(hf_watch_options_check(
			    &(struct hf_watch_options){.resource = &hf_nodes, .ns = "n"}, &err),
		    HF_E_BAD_REQUEST);
}

static void a_copy_stands_on_its_own(void **state)
{
	char ns[] = "space", name[] = "pod", labels[] = "a=b", uid[] = "u-1";
	struct hf_doc *body = make_doc("{\"a\":1}");
	struct hf_request *copy = hf_request_copy(&(struct hf_request){.verb = HF_VERB_PATCH,
								       .resource = &hf_pods,
								       .ns = ns,
								       .name = name,
								       .label_selector = labels,
								       .precondition_uid = uid,
								       .body = body,
								       .limit = 7});

	memset(ns, 'x', sizeof(ns));
	memset(name, 'x', sizeof(name));
	memset(labels, 'x', sizeof(labels));
	memset(uid, 'x', sizeof(uid));
	hf_doc_unref(body);
	assert_string_equal(copy->ns, "space");
	assert_string_equal(copy->name, "pod");
	assert_string_equal(copy->label_selector, "a=b");
	assert_string_equal(copy->precondition_uid, "u-1");
	assert_null(copy->subresource);
	assert_null(copy->field_selector);
	assert_int_equal(copy->limit, 7);
	assert_int_equal(hf_json_i64(hf_json_get(hf_doc_json(copy->body), "a"), 0), 1);
	assert_null(hf_request_free(copy));
	assert_null(hf_request_free(NULL));
}

static void a_status_says_what_an_api_server_would(void **state)
{
	struct hf_json *causes = hf_json_array();
	HF_AUTO_JSON failure = NULL;
	HF_AUTO_JSON success = NULL;
	struct hf_strbuf sb = HF_STRBUF_INIT(4096);

	hf_json_append(causes, hf_json_object());
	failure = hf_status_failure(&(struct hf_status_args){.code = HF_E_TOO_MANY,
							     .message = "slow down",
							     .resource = &hf_pytorchjobs,
							     .name = "j",
							     .uid = "u",
							     .causes = causes,
							     .retry_after_s = 3});
	hf_json_write(failure, HF_JSON_COMPACT, &sb);
	assert_string_equal(sb.data,
			    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
			    "\"status\":\"Failure\",\"message\":\"slow down\","
			    "\"reason\":\"TooManyRequests\",\"details\":{\"name\":\"j\","
			    "\"group\":\"kubeflow.org\",\"kind\":\"pytorchjobs\",\"uid\":\"u\","
			    "\"causes\":[{}],\"retryAfterSeconds\":3},\"code\":429}");
	hf_strbuf_clear(&sb);
	success = hf_status_success(&hf_configmaps, "c", "u");
	hf_json_write(success, HF_JSON_COMPACT, &sb);
	assert_string_equal(sb.data, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
				     "\"status\":\"Success\",\"details\":{\"name\":\"c\","
				     "\"kind\":\"configmaps\",\"uid\":\"u\"}}");
	hf_strbuf_release(&sb);
}

static void a_status_without_a_kind_has_no_details(void **state)
{
	HF_AUTO_JSON plain = hf_status_failure(
		&(struct hf_status_args){.code = HF_E_NOT_FOUND, .message = "nothing here"});
	HF_AUTO_JSON later = hf_status_failure(&(struct hf_status_args){
		.code = HF_E_UNAVAILABLE, .message = "later", .retry_after_s = 1});

	assert_null(hf_json_get(plain, "details"));
	assert_int_equal(hf_json_i64(hf_json_path(later, "details", "retryAfterSeconds", NULL), 0),
			 1);
}

static void an_invalid_object_is_named_by_its_kind(void **state)
{
	HF_AUTO_JSON invalid = hf_status_failure(&(struct hf_status_args){
		.code = HF_E_INVALID, .message = "no", .resource = &hf_pods, .name = "p"});

	assert_string_equal(hf_json_path_str(invalid, "details", "kind", NULL), "Pod");
	assert_string_equal(hf_json_path_str(invalid, "details", "name", NULL), "p");
}

static void messages_are_an_api_servers(void **state)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(4096);

	hf_message_not_found(&sb, &hf_pytorchjobs, "j");
	assert_string_equal(sb.data, "pytorchjobs.kubeflow.org \"j\" not found");
	hf_strbuf_clear(&sb);
	hf_message_exists(&sb, &hf_pods, "p");
	assert_string_equal(sb.data, "pods \"p\" already exists");
	hf_strbuf_clear(&sb);
	hf_message_conflict(&sb, &hf_pods, "p", HF_MESSAGE_MODIFIED);
	assert_string_equal(sb.data, "Operation cannot be fulfilled on pods \"p\": the object has "
				     "been modified; please apply your changes to the latest "
				     "version and try again");
	hf_strbuf_clear(&sb);
	hf_message_invalid(&sb, &hf_pytorchjobs, "J", "metadata.name: no");
	assert_string_equal(sb.data, "PyTorchJob.kubeflow.org \"J\" is invalid: metadata.name: no");
	hf_strbuf_clear(&sb);
	hf_message_forbidden(&sb, &hf_pods, NULL, "closed");
	assert_string_equal(sb.data, "pods \"\" is forbidden: closed");
	hf_strbuf_release(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_make_sense_pass),
		cmocka_unit_test(places_that_cannot_be_are_refused),
		cmocka_unit_test(wishes_that_cannot_be_are_refused),
		cmocka_unit_test(bodies_of_the_wrong_shape_are_refused),
		cmocka_unit_test(watches_are_checked_too),
		cmocka_unit_test(a_copy_stands_on_its_own),
		cmocka_unit_test(a_status_says_what_an_api_server_would),
		cmocka_unit_test(a_status_without_a_kind_has_no_details),
		cmocka_unit_test(an_invalid_object_is_named_by_its_kind),
		cmocka_unit_test(messages_are_an_api_servers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
