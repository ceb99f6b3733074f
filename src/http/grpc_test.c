/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of gRPC calls against a server that responds correctly, wrongly, late and never. */
#include "harness/grpc_server.h"
#include "http/grpc.h"

struct bench {
	struct hf_test_loop t;
	char folder[40], path[64];
	struct hf_grpc_server server;
	struct hf_grpc_answer answer;
	char got[64];
	size_t got_len;

	struct hf_http_client *client;
	struct hf_grpc_call call;
	unsigned done;
	int code, status;
	char message[64], text[HF_ERROR_TEXT_MAX];
	size_t message_len;
	bool again;
};

static void serve_call(void *arg, size_t head_len, const char *message, size_t len,
		       struct hf_grpc_answer *ret_answer)
{
	struct bench *b = arg;

	b->got_len = len < sizeof(b->got) ? len : sizeof(b->got);
	memcpy(b->got, message, b->got_len);
	*ret_answer = b->answer;
}

static int set_up(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));
	struct hf_error err = {0};

	snprintf(b->folder, sizeof(b->folder), "/tmp/holdfast-grpc-XXXXXX");
	assert_non_null(mkdtemp(b->folder));
	snprintf(b->path, sizeof(b->path), "%s/socket", b->folder);
	hf_test_loop_init(&b->t);
	b->server.serve = serve_call;
	b->server.arg = b;
	hf_grpc_server_start(&b->server, b->t.loop, b->path);
	assert_ok(hf_http_client_create(b->t.loop,
					&(struct hf_http_client_spec){
						.base_url = "http://localhost",
						.unix_path = b->path,
						.http2_plain = true,
					},
					&b->client, &err),
		  &err);
	b->answer =
		(struct hf_grpc_answer){.body = "\0\0\0\0\5hello", .body_len = 10, .status = "0"};
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	hf_grpc_call_cancel(&b->call);
	hf_http_client_destroy(b->client);
	hf_grpc_server_stop(&b->server);
	hf_test_loop_release(&b->t);
	rmdir(b->folder);
	free(b);
	return 0;
}

static void start_call(struct bench *b, hf_time timeout, size_t max);

static void on_done(void *arg, const struct hf_grpc_result *result)
{
	struct bench *b = arg;

	b->done++;
	b->code = result->code;
	b->status = result->status;
	b->message_len = result->message_len;
	snprintf(b->message, sizeof(b->message), "%.*s", (int)result->message_len,
		 result->message ? (const char *)result->message : "");
	snprintf(b->text, sizeof(b->text), "%s", result->err->text);
	if (b->again) {
		b->again = false;
		start_call(b, HF_MINUTE, 0);
		return;
	}
	hf_loop_stop(b->t.loop);
}

static void start_call(struct bench *b, hf_time timeout, size_t max)
{
	struct hf_error err = {0};

	assert_ok(hf_grpc_call_start(&b->call, b->client,
				     &(struct hf_grpc_request){
					     .method = "/v1.Lister/List",
					     .message = "ask",
					     .message_len = 3,
					     .timeout = timeout,
					     .message_bytes_max = max,
				     },
				     on_done, b, &err),
		  &err);
}

static void call_and_wait(struct bench *b, hf_time timeout, size_t max)
{
	unsigned before = b->done;

	start_call(b, timeout, max);
	while (b->done == before)
		hf_test_loop_run(&b->t);
}

static void a_message_is_sent_and_one_comes_back(void **state)
{
	struct bench *b = *state;

	b->again = true; /* start the call again from inside the first callback */
	call_and_wait(b, HF_MINUTE, 0);
	while (b->done < 2)
		hf_test_loop_run(&b->t);
	assert_int_equal(b->code, 0);
	assert_int_equal(b->status, 0);
	assert_string_equal(b->message, "hello");
	assert_int_equal(b->got_len, 3);
	assert_memory_equal(b->got, "ask", 3);
	assert_int_equal(b->server.calls, 2);
}

static void an_empty_message_is_accepted(void **state)
{
	struct bench *b = *state;

	b->answer.body = "\0\0\0\0\0";
	b->answer.body_len = 5;
	call_and_wait(b, HF_MINUTE, 0);
	assert_int_equal(b->code, 0);
	assert_int_equal(b->message_len, 0);
}

static void a_status_becomes_an_error_with_its_message(void **state)
{
	struct bench *b = *state;

	b->answer = (struct hf_grpc_answer){.status = "12",
					    .message = "no%20such%0amethod%e2%82%ac %zz%4",
					    .trailers_only = true};
	call_and_wait(b, HF_MINUTE, 0);
	assert_int_equal(b->code, HF_E_UNSUPPORTED);
	assert_int_equal(b->status, 12);
	assert_string_equal(b->text, "gRPC status 12: no such?method??? %zz%4");
	/* The status may also come after a body; then it counts, and the body is not used. */
	b->answer = (struct hf_grpc_answer){
		.body = "\0\0\0\0\5hello", .body_len = 10, .status = "5", .message = "gone"};
	call_and_wait(b, HF_MINUTE, 0);
	assert_int_equal(b->code, HF_E_NOT_FOUND);
	assert_string_equal(b->message, "");
}

static void a_malformed_response_is_refused(void **state)
{
	static const struct hf_grpc_answer bad[] = {
		{.body = "\0\0\0\0\5hello", .body_len = 10}, /* the response is cut off before its
		                                              * grpc-status */
		{.body = "\1\0\0\0\5hello", .body_len = 10, .status = "0"},
		{.body = "\0\0\0\0\6hello", .body_len = 10, .status = "0"},
		{.body = "\0\0\0\0\4hello", .body_len = 10, .status = "0"},
		{.body = "\0\0\0\0", .body_len = 4, .status = "0"},
		{.body = "\0\0\0\0\1a\0\0\0\0\1b", .body_len = 12, .status = "0"},
		{.status = "0"},
		{.content_type = "text/html",
		 .body = "\0\0\0\0\5hello",
		 .body_len = 10,
		 .status = "0"},
	};
	struct bench *b = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		b->answer = bad[i];
		call_and_wait(b, HF_MINUTE, 0);
		assert_int_equal(b->code, HF_E_BAD_REQUEST);
		assert_string_equal(b->message, "");
	}
}

static void a_malformed_status_is_unknown(void **state)
{
	struct bench *b = *state;

	b->answer.status = "many";
	call_and_wait(b, HF_MINUTE, 0);
	assert_int_equal(b->code, HF_E_INTERNAL);
	assert_int_equal(b->status, HF_GRPC_UNKNOWN);
}

static void silence_ends_with_the_deadline(void **state)
{
	struct bench *b = *state;

	b->answer = (struct hf_grpc_answer){.silent = true};
	call_and_wait(b, 100 * HF_MS, 0);
	assert_int_equal(b->code, HF_E_TIMEOUT);
	assert_int_equal(b->status, -1);
}

static void a_server_that_hangs_up_or_is_gone_is_an_error(void **state)
{
	struct bench *b = *state;

	b->answer = (struct hf_grpc_answer){.hang_up = true};
	call_and_wait(b, HF_MINUTE, 0);
	assert_true(b->code < 0);
	hf_grpc_server_stop(&b->server);
	call_and_wait(b, HF_MINUTE, 0);
	assert_int_equal(b->code, HF_E_UNAVAILABLE);
}

static void an_answer_has_a_limit(void **state)
{
	struct bench *b = *state;

	call_and_wait(b, HF_MINUTE, 5);
	assert_int_equal(b->code, 0);
	call_and_wait(b, HF_MINUTE, 4);
	assert_int_equal(b->code, HF_E_TOO_LARGE);
}

/* With a receive buffer below its default, libcurl 7.88 forgets the rest of a larger response. */
static void answers_of_all_sizes_come_whole(void **state)
{
	static const size_t sizes[] = {3000, 4096,  5000,  6000,  7000,
				       9000, 13000, 20000, 40000, 60000};
	struct bench *b = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(sizes); i++) {
		HF_AUTOFREE unsigned char *body = hf_xcalloc(1, sizes[i] + 5);

		body[3] = (unsigned char)(sizes[i] >> 8);
		body[4] = (unsigned char)sizes[i];
		b->answer.body = body;
		b->answer.body_len = sizes[i] + 5;
		call_and_wait(b, 5 * HF_SECOND, 0);
		assert_int_equal(b->code, 0);
		assert_int_equal(b->message_len, sizes[i]);
	}
}

static void a_canceled_call_is_silent(void **state)
{
	struct bench *b = *state;

	start_call(b, HF_MINUTE, 0);
	hf_grpc_call_cancel(&b->call);
	hf_grpc_call_cancel(&b->call);
	call_and_wait(b, HF_MINUTE, 0);
	assert_int_equal(b->done, 1);
}

static void each_status_has_a_code(void **state)
{
	char text[8];

	for (int i = 1; i <= HF_GRPC_STATUS_MAX; i++)
		assert_true(hf_grpc_status_code(i) < 0);
	assert_int_equal(hf_grpc_status_code(4), HF_E_TIMEOUT);
	assert_int_equal(hf_grpc_status_code(7), HF_E_FORBIDDEN);
	assert_int_equal(hf_grpc_status_code(14), HF_E_UNAVAILABLE);
	assert_int_equal(hf_grpc_status_code(99), HF_E_INTERNAL);
	assert_int_equal(hf_grpc_status_parse(NULL), -1);
	assert_int_equal(hf_grpc_status_parse("16"), 16);
	assert_int_equal(hf_grpc_status_parse("17"), HF_GRPC_UNKNOWN);
	assert_int_equal(hf_grpc_status_parse("-1"), HF_GRPC_UNKNOWN);
	assert_int_equal(hf_grpc_status_parse(""), HF_GRPC_UNKNOWN);
	hf_grpc_text_decode("%41bcdefghijk", text, sizeof(text));
	assert_string_equal(text, "Abcdefg");
	hf_grpc_text_decode(NULL, text, sizeof(text));
	assert_string_equal(text, "");
}

static void a_timeout_of_more_than_eight_digits_does_not_wrap(void **state)
{
	(void)state;
	assert_int_equal(hf_grpc_timeout_ms(1), 1);
	assert_int_equal(hf_grpc_timeout_ms(HF_MINUTE), 60000);
	assert_int_equal(hf_grpc_timeout_ms(99999999 * HF_MS), 99999999);
	assert_int_equal(hf_grpc_timeout_ms(100000000 * HF_MS), 99999999);
	assert_int_equal(hf_grpc_timeout_ms(INT64_MAX), 99999999);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_message_is_sent_and_one_comes_back),
		T(an_empty_message_is_accepted),
		T(a_status_becomes_an_error_with_its_message),
		T(a_malformed_response_is_refused),
		T(a_malformed_status_is_unknown),
		T(silence_ends_with_the_deadline),
		T(a_server_that_hangs_up_or_is_gone_is_an_error),
		T(an_answer_has_a_limit),
		T(answers_of_all_sizes_come_whole),
		T(a_canceled_call_is_silent),
		cmocka_unit_test(each_status_has_a_code),
		cmocka_unit_test(a_timeout_of_more_than_eight_digits_does_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
