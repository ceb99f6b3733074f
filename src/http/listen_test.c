/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of listening: addresses, ports and socket files. */
#include "harness/real_loop.h"
#include "http/client.h"
#include "http/server.h"

#include "base/mem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bench {
	struct hf_test_loop t;
	struct hf_http_server *server;
	char dir[64], path[128];
	int status, code;
	char body[32];
};

static void on_request(void *arg, struct hf_exchange *ex)
{
	hf_exchange_respond(ex, 200, NULL, "hi", 2);
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->t);
	snprintf(bench->dir, sizeof(bench->dir), "/tmp/holdfast-listen-XXXXXX");
	assert_non_null(mkdtemp(bench->dir));
	snprintf(bench->path, sizeof(bench->path), "%s/socket", bench->dir);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_http_server_destroy(bench->server);
	hf_test_loop_release(&bench->t);
	(void)unlink(bench->path);
	assert_int_equal(rmdir(bench->dir), 0);
	free(bench);
	return 0;
}

static int listen_on(struct bench *bench, const char *address, uint16_t port, const char *path,
		     struct hf_error *err)
{
	struct hf_http_server_spec spec = {
		.address = address, .port = port, .unix_path = path, .handler = on_request};

	return hf_http_server_create(bench->t.loop, &spec, &bench->server, err);
}

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct bench *bench = arg;

	bench->code = result->code;
	bench->status = result->status;
	snprintf(bench->body, sizeof(bench->body), "%s", result->body);
	hf_loop_stop(bench->t.loop);
}

static void assert_serves(struct bench *bench, const char *url, const char *unix_path)
{
	struct hf_http_client_spec spec = {
		.base_url = url, .unix_path = unix_path, .proxy_url = ""};
	struct hf_http_request request = {
		.method = "GET", .target = "/", .on_done = on_done, .arg = bench};
	struct hf_http_client *client;
	struct hf_error err = {0};

	assert_ok(hf_http_client_create(bench->t.loop, &spec, &client, &err), &err);
	assert_ok(hf_http_client_send(client, &request, NULL, &err), &err);
	hf_test_loop_run(&bench->t);
	hf_http_client_destroy(client);
	assert_int_equal(bench->code, 0);
	assert_int_equal(bench->status, 200);
	assert_string_equal(bench->body, "hi");
}

static void v4_and_v6_loopback_are_listened_on(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	char url[64];

	assert_ok(listen_on(bench, "127.0.0.1", 0, NULL, &err), &err);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", hf_http_server_port(bench->server));
	assert_serves(bench, url, NULL);
	bench->server = hf_http_server_destroy(bench->server);
	int rc = listen_on(bench, "::1", 0, NULL, &err);
	if (rc < 0) /* the machine has no IPv6 */
		skip();
	snprintf(url, sizeof(url), "http://[::1]:%u", hf_http_server_port(bench->server));
	assert_serves(bench, url, NULL);
}

static void a_port_in_use_is_an_error_with_its_number(void **state)
{
	struct bench *bench = *state, second = {0};
	struct hf_error err = {0};
	char number[16];

	assert_ok(listen_on(bench, "127.0.0.1", 0, NULL, &err), &err);
	uint16_t port = hf_http_server_port(bench->server);
	second.t = bench->t;
	assert_code(listen_on(&second, "127.0.0.1", port, NULL, &err), HF_E_IO);
	assert_null(second.server);
	snprintf(number, sizeof(number), "%u", port);
	assert_non_null(strstr(err.text, number));
}

static void a_free_port_is_reported_without_taking_it(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	uint16_t port;

	assert_ok(listen_on(bench, "127.0.0.1", 0, NULL, &err), &err);
	port = hf_http_server_port(bench->server);
	assert_code(hf_http_listen_check("127.0.0.1", port, &err), HF_E_IO);
	bench->server = hf_http_server_destroy(bench->server);
	assert_ok(hf_http_listen_check("127.0.0.1", port, &err), &err);
	assert_ok(listen_on(bench, "127.0.0.1", port, NULL, &err), &err);
}

static void a_malformed_address_is_refused(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	char path[200];

	assert_code(listen_on(bench, "localhost", 0, NULL, &err), HF_E_INVALID);
	assert_code(listen_on(bench, "", 0, NULL, &err), HF_E_INVALID);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_code(listen_on(bench, NULL, 0, path, &err), HF_E_INVALID);
	assert_code(listen_on(bench, NULL, 0, "/no/such/folder/socket", &err), HF_E_IO);
}

static void a_socket_file_is_private_and_goes_with_the_server(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	struct stat st;

	assert_ok(listen_on(bench, NULL, 0, bench->path, &err), &err);
	assert_int_equal(hf_http_server_port(bench->server), 0);
	assert_int_equal(stat(bench->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_serves(bench, "http://anything", bench->path);
	bench->server = hf_http_server_destroy(bench->server);
	assert_int_equal(stat(bench->path, &st), -1);
}

static void a_socket_file_in_use_is_left_alone(void **state)
{
	struct bench *bench = *state, second = {0};
	struct hf_error err = {0};

	assert_ok(listen_on(bench, NULL, 0, bench->path, &err), &err);
	second.t = bench->t;
	assert_code(listen_on(&second, NULL, 0, bench->path, &err), HF_E_IO);
	assert_serves(bench, "http://anything", bench->path);
}

static void a_socket_file_whose_server_died_is_taken_over(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	char kept[160];

	/* The hard link survives the unlink of a clean shutdown, as a socket file survives a
	 * crash. */
	snprintf(kept, sizeof(kept), "%s.kept", bench->path);
	assert_ok(listen_on(bench, NULL, 0, bench->path, &err), &err);
	assert_int_equal(link(bench->path, kept), 0);
	bench->server = hf_http_server_destroy(bench->server);
	assert_int_equal(rename(kept, bench->path), 0);
	assert_ok(listen_on(bench, NULL, 0, bench->path, &err), &err);
	assert_serves(bench, "http://anything", bench->path);
}

static void a_file_that_is_no_socket_is_never_removed(void **state)
{
	struct bench *bench = *state;
	struct hf_error err = {0};
	int fd = open(bench->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
	assert_code(listen_on(bench, NULL, 0, bench->path, &err), HF_E_IO);
	assert_int_equal(access(bench->path, F_OK), 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(v4_and_v6_loopback_are_listened_on),
		UNIT(a_port_in_use_is_an_error_with_its_number),
		UNIT(a_free_port_is_reported_without_taking_it),
		UNIT(a_malformed_address_is_refused),
		UNIT(a_socket_file_is_private_and_goes_with_the_server),
		UNIT(a_socket_file_in_use_is_left_alone),
		UNIT(a_socket_file_whose_server_died_is_taken_over),
		UNIT(a_file_that_is_no_socket_is_never_removed),
	};
	return cmocka_run_group_tests_name("listen", tests, NULL, NULL);
}
