/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The gRPC server against the module's own client, and against bytes that are no gRPC. */
#include "http/grpc_service.h"

#include "base/mem.h"
#include "harness/real_loop.h"
#include "http/grpc.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct bench {
	struct hf_test_loop t;
	char folder[40], path[64];
	int fd;
	struct hf_io *io;
	struct hf_grpc_service *service;
	struct hf_http_client *client;
	struct hf_grpc_call call;
	pid_t pid;
	int code, status;
	char text[HF_ERROR_TEXT_MAX];
	unsigned char *message;
	size_t message_len;
};

static int serve(void *arg, const struct hf_grpc_asked *asked, struct hf_strbuf *ret_message,
		 struct hf_error *err)
{
	struct bench *b = arg;

	b->pid = asked->pid;
	if (strcmp(asked->method, "/test/Echo") == 0) {
		hf_strbuf_add(ret_message, asked->message, asked->message_len);
		return HF_GRPC_OK;
	}
	if (strcmp(asked->method, "/test/Fill") == 0) {
		for (int i = 0; i < 70000; i++)
			hf_strbuf_addch(ret_message, 'x');
		return HF_GRPC_OK;
	}
	(void)hf_error_set(err, HF_E_UNSUPPORTED, "no method '%s', 100%%\n", asked->method);
	return HF_GRPC_UNIMPLEMENTED;
}

static void on_connection(void *arg, unsigned events)
{
	struct bench *b = arg;

	(void)events;
	hf_grpc_service_accept(b->service, b->fd);
}

static int set_up(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct hf_error err = {0};

	snprintf(b->folder, sizeof(b->folder), "/tmp/holdfast-grpcs-XXXXXX");
	assert_non_null(mkdtemp(b->folder));
	snprintf(b->path, sizeof(b->path), "%s/socket", b->folder);
	memcpy(name.sun_path, b->path, sizeof(b->path));
	hf_test_loop_init(&b->t);
	b->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(b->fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(b->fd, 64), 0);
	b->service = hf_grpc_service_create(b->t.loop, serve, b);
	assert_ok(hf_io_create(b->t.loop, b->fd, on_connection, b, &b->io, &err), &err);
	hf_io_want(b->io, HF_IO_READ);
	assert_ok(hf_http_client_create(b->t.loop,
					&(struct hf_http_client_spec){
						.base_url = "http://localhost",
						.unix_path = b->path,
						.http2_plain = true,
					},
					&b->client, &err),
		  &err);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	hf_http_client_destroy(b->client);
	hf_grpc_service_destroy(b->service);
	hf_io_destroy(b->io);
	(void)close(b->fd);
	(void)unlink(b->path);
	(void)rmdir(b->folder);
	free(b->message);
	hf_test_loop_release(&b->t);
	free(b);
	return 0;
}

static void on_done(void *arg, const struct hf_grpc_result *result)
{
	struct bench *b = arg;

	b->code = result->code;
	b->status = result->status;
	b->text[0] = '\0';
	free(b->message);
	b->message = NULL;
	b->message_len = result->message_len;
	if (result->code != 0) {
		snprintf(b->text, sizeof(b->text), "%s", result->err->text);
	} else {
		b->message = hf_xcalloc(1, result->message_len + 1);
		memcpy(b->message, result->message, result->message_len);
	}
	hf_loop_stop(b->t.loop);
}

static int ask(struct bench *b, const char *method, const void *message, size_t len)
{
	struct hf_error err;

	assert_ok(hf_grpc_call_start(&b->call, b->client,
				     &(struct hf_grpc_request){.method = method,
							       .message = message,
							       .message_len = len,
							       .timeout = 10 * HF_SECOND},
				     on_done, b, &err),
		  &err);
	hf_test_loop_run(&b->t);
	return b->code;
}

static void a_message_is_answered(void **state)
{
	struct bench *b = *state;
	HF_AUTOFREE char *large = hf_xcalloc(1, 60000);

	assert_int_equal(ask(b, "/test/Echo", "hello", 5), 0);
	assert_int_equal(b->message_len, 5);
	assert_memory_equal(b->message, "hello", 5);
	assert_int_equal(b->pid, getpid());
	assert_int_equal(ask(b, "/test/Echo", "", 0), 0);
	assert_int_equal(b->message_len, 0);
	memset(large, 'y', 60000);
	assert_int_equal(ask(b, "/test/Echo", large, 60000), 0);
	assert_int_equal(b->message_len, 60000);
	assert_memory_equal(b->message, large, 60000);
}

static void an_error_has_status_and_text(void **state)
{
	struct bench *b = *state;

	assert_int_not_equal(ask(b, "/test/None", "x", 1), 0);
	assert_int_equal(b->status, HF_GRPC_UNIMPLEMENTED);
	assert_non_null(strstr(b->text, "no method '/test/None', 100??"));
	assert_int_equal(ask(b, "/test/Echo", "x", 1), 0);
}

static void messages_have_limits(void **state)
{
	struct bench *b = *state;
	HF_AUTOFREE char *large = hf_xcalloc(1, 70000);

	assert_int_not_equal(ask(b, "/test/Echo", large, 70000), 0);
	assert_int_not_equal(ask(b, "/test/Fill", "", 0), 0);
	assert_int_equal(b->status, HF_GRPC_INTERNAL);
	assert_int_equal(ask(b, "/test/Echo", "x", 1), 0);
}

static int join_socket(const struct bench *b)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	memcpy(name.sun_path, b->path, sizeof(b->path));
	assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static void bytes_that_are_no_frames_end_the_connection(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	struct bench *b = *state;
	int fd = join_socket(b);
	char bytes[4096];
	ssize_t n = 1;

	assert_int_equal(send(fd, http, sizeof(http) - 1, MSG_NOSIGNAL), sizeof(http) - 1);
	assert_int_equal(ask(b, "/test/Echo", "x", 1), 0);
	for (int i = 0; i < 100 && (n > 0 || (n < 0 && errno == EAGAIN)); i++) {
		n = recv(fd, bytes, sizeof(bytes), 0);
		if (n != 0)
			(void)ask(b, "/test/Echo", "x", 1);
	}
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
	(void)close(fd);
}

/* Connections that send nothing do not keep other clients out. */
static void the_quietest_connection_gives_way(void **state)
{
	struct bench *b = *state;
	int fds[HF_GRPC_SERVICE_CONNECTIONS_MAX + 8];

	for (size_t i = 0; i < HF_ARRAY_LEN(fds); i++)
		fds[i] = join_socket(b);
	for (int i = 0; i < 10; i++)
		assert_int_equal(ask(b, "/test/Echo", "x", 1), 0);
	for (size_t i = 0; i < HF_ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_message_is_answered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_error_has_status_and_text, set_up, tear_down),
		cmocka_unit_test_setup_teardown(messages_have_limits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bytes_that_are_no_frames_end_the_connection, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_quietest_connection_gives_way, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
