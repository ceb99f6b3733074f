/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of certificate files that are replaced while a store uses a server over TLS. */
#include "harness/real_loop.h"
#include "harness/test.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/certificate.h"
#include "http/server.h"
#include "kube/kube_internal.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct bench {
	struct hf_test_loop t;
	struct hf_http_server *server;
	struct hf_store *store;
	struct hf_kube_config config;
	/* requests: number received so far; refusals: how many of the first requests get a 401. */
	unsigned requests, refusals;
	bool done;
	int code;
	char message[HF_ERROR_TEXT_MAX];
};

static struct hf_certificate ca, other_ca, server_pair, pair, other_pair;
static char folder[] = "/tmp/holdfast-rotation-XXXXXX";

static int make_all(void **state)
{
	static const char *const names[] = {"127.0.0.1", NULL};
	struct hf_certificate_spec spec = {.common_name = "test CA",
					   .now = (hf_time)time(NULL) * HF_SECOND,
					   .valid_for = HF_DAY};
	struct hf_error err;

	assert_ok(hf_certificate_make_ca(&spec, &ca, &err), &err);
	assert_ok(hf_certificate_make_ca(&spec, &other_ca, &err), &err);
	spec.common_name = "someone";
	assert_ok(hf_certificate_make_client(&ca, &spec, &pair, &err), &err);
	assert_ok(hf_certificate_make_client(&ca, &spec, &other_pair, &err), &err);
	spec.common_name = NULL;
	spec.names = names;
	assert_ok(hf_certificate_make_server(&ca, &spec, &server_pair, &err), &err);
	return mkdtemp(folder) == NULL;
}

static int release_all(void **state)
{
	hf_certificate_release(&ca);
	hf_certificate_release(&other_ca);
	hf_certificate_release(&server_pair);
	hf_certificate_release(&pair);
	hf_certificate_release(&other_pair);
	return hf_fs_remove_tree(folder, NULL);
}

static char *write_file(const char *name, const char *text)
{
	char *path = hf_xasprintf("%s/%s", folder, name);
	struct hf_error err;

	assert_ok(hf_fs_write_atomic(path, text, strlen(text), 0600, &err), &err);
	return path;
}

static void replace_file(const char *name, const char *text)
{
	free(write_file(name, text));
}

static void on_request(void *arg, struct hf_exchange *ex)
{
	static const char pod[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"
				  "\"name\":\"a\",\"resourceVersion\":\"5\"}}";
	struct bench *bench = arg;
	bool refused = bench->requests++ < bench->refusals;

	hf_exchange_respond(ex, refused ? 401 : 200, "application/json", refused ? "" : pod,
			    refused ? 0 : strlen(pod));
}

static int set_up(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	struct hf_error err;

	hf_test_loop_init(&bench->t);
	const struct hf_http_server_spec spec = {
		.address = "127.0.0.1",
		.cert_pem = server_pair.cert_pem,
		.key_pem = server_pair.key_pem,
		.handler = on_request,
		.arg = bench,
	};
	assert_ok(hf_http_server_create(bench->t.loop, &spec, &bench->server, &err), &err);
	bench->config.server =
		hf_xasprintf("https://127.0.0.1:%u", hf_http_server_port(bench->server));
	bench->config.ca_pem = hf_xstrdup(ca.cert_pem);
	bench->config.proxy_url = hf_xstrdup("");
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hf_store_destroy(bench->store);
	hf_http_server_destroy(bench->server);
	hf_kube_config_release(&bench->config);
	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct bench *bench = arg;

	bench->done = true;
	bench->code = reply->code;
	snprintf(bench->message, sizeof(bench->message), "%s", reply->message);
	hf_loop_stop(bench->t.loop);
}

static int get_pod(struct bench *bench)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_pods, .ns = "default", .name = "a"};
	struct hf_error err;

	if (bench->store == NULL)
		assert_ok(hf_kube_create(bench->t.loop, &bench->config, &bench->store, &err), &err);
	bench->done = false;
	(void)hf_store_request(bench->store, &request, on_reply, bench);
	while (!bench->done)
		hf_test_loop_run(&bench->t);
	return bench->code;
}

static void use_ca_file(struct bench *bench, const char *pem)
{
	bench->config.ca_file = write_file("ca", pem);
	free(bench->config.ca_pem);
	bench->config.ca_pem = hf_xstrdup(pem);
}

static void use_pair(struct bench *bench)
{
	bench->config.cert_file = write_file("cert", pair.cert_pem);
	bench->config.key_file = write_file("key", pair.key_pem);
	bench->config.cert_pem = hf_xstrdup(pair.cert_pem);
	bench->config.key_pem = hf_xstrdup(pair.key_pem);
}

/* Makes the store believe that it read the files `span` earlier than it did. */
static void age_files(struct bench *bench, hf_time span)
{
	((struct hf_kube *)bench->store)->credentials->files_read_at -= span;
}

static size_t count_connections(const struct bench *bench)
{
	return hf_http_server_connections(bench->server);
}

static void a_ca_that_was_replaced_is_read_when_the_server_is_not_trusted(void **state)
{
	struct bench *bench = *state;

	use_ca_file(bench, other_ca.cert_pem);
	assert_int_equal(get_pod(bench), HF_E_UNAVAILABLE);
	replace_file("ca", ca.cert_pem);
	age_files(bench, HF_SECOND);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(bench->requests, 1);
}

static void files_are_read_again_when_a_minute_old(void **state)
{
	struct bench *bench = *state;

	use_ca_file(bench, ca.cert_pem);
	assert_int_equal(get_pod(bench), 0);
	/* The client would not trust this server with the new CA, but the open connection stays in
	 * use. */
	replace_file("ca", other_ca.cert_pem);
	assert_int_equal(get_pod(bench), 0);
	age_files(bench, HF_MINUTE);
	assert_int_equal(get_pod(bench), HF_E_UNAVAILABLE);
	/* If the CA file is missing or empty, as during a write, the client keeps the old CA. */
	replace_file("ca", ca.cert_pem);
	age_files(bench, HF_MINUTE);
	assert_int_equal(get_pod(bench), 0);
	replace_file("ca", "");
	age_files(bench, HF_MINUTE);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(unlink(bench->config.ca_file), 0);
	age_files(bench, HF_MINUTE);
	assert_int_equal(get_pod(bench), 0);
}

static void a_client_certificate_that_was_replaced_is_read_upon_401(void **state)
{
	struct bench *bench = *state;

	use_pair(bench);
	assert_int_equal(get_pod(bench), 0);
	bench->refusals = bench->requests + 1;
	replace_file("cert", other_pair.cert_pem);
	replace_file("key", other_pair.key_pem);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(bench->requests, 3);
	assert_int_equal(count_connections(bench), 2);
	/* The files are unchanged, so a retry could not succeed: the 401 is reported after one
	 * request. */
	bench->refusals = bench->requests + 1;
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_int_equal(bench->requests, 4);
}

static void a_certificate_is_taken_once_its_key_has_come(void **state)
{
	struct bench *bench = *state;

	use_pair(bench);
	bench->refusals = 1;
	replace_file("cert", other_pair.cert_pem);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(count_connections(bench), 1);
	bench->refusals = bench->requests + 1;
	replace_file("key", other_pair.key_pem);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(count_connections(bench), 2);
}

static void an_unusable_certificate_file_keeps_the_old_certificate(void **state)
{
	struct bench *bench = *state;
	size_t before;

	use_ca_file(bench, ca.cert_pem);
	use_pair(bench);
	assert_int_equal(get_pod(bench), 0);
	before = count_connections(bench);
	/* First a file with half a certificate, then a FIFO without a writer: neither may stop the
	 * client. */
	HF_AUTOFREE char *half = hf_xstrndup(ca.cert_pem, strlen(ca.cert_pem) / 2);
	replace_file("ca", half);
	assert_int_equal(unlink(bench->config.cert_file), 0);
	assert_int_equal(mkfifo(bench->config.cert_file, 0600), 0);
	age_files(bench, HF_MINUTE);
	assert_int_equal(get_pod(bench), 0);
	assert_int_equal(count_connections(bench), before);
	assert_int_equal(unlink(bench->config.cert_file), 0);
}

static void a_client_certificate_that_has_ended_is_named_with_the_refusal(void **state)
{
	struct hf_certificate_spec spec = {.common_name = "someone",
					   .now = (hf_time)time(NULL) * HF_SECOND - HF_DAY,
					   .valid_for = HF_HOUR};
	struct bench *bench = *state;
	struct hf_certificate ended;
	struct hf_error err;

	assert_ok(hf_certificate_make_client(&ca, &spec, &ended, &err), &err);
	bench->refusals = 9;
	use_pair(bench);
	replace_file("cert", ended.cert_pem);
	replace_file("key", ended.key_pem);
	assert_int_equal(get_pod(bench), HF_E_UNAUTHORIZED);
	HF_AUTOFREE char *text =
		hf_xasprintf("the client certificate in %s expired at ", bench->config.cert_file);
	if (!strstr(bench->message, text))
		fail_msg("%s", bench->message);
	hf_certificate_release(&ended);
}

static void without_files_nothing_is_read(void **state)
{
	struct bench *bench = *state;

	free(bench->config.ca_pem);
	bench->config.ca_pem = hf_xstrdup(other_ca.cert_pem);
	assert_int_equal(get_pod(bench), HF_E_UNAVAILABLE);
	assert_int_equal(get_pod(bench), HF_E_UNAVAILABLE);
	assert_int_equal(bench->requests, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		UNIT(a_ca_that_was_replaced_is_read_when_the_server_is_not_trusted),
		UNIT(files_are_read_again_when_a_minute_old),
		UNIT(a_client_certificate_that_was_replaced_is_read_upon_401),
		UNIT(a_certificate_is_taken_once_its_key_has_come),
		UNIT(an_unusable_certificate_file_keeps_the_old_certificate),
		UNIT(a_client_certificate_that_has_ended_is_named_with_the_refusal),
		UNIT(without_files_nothing_is_read),
	};

	return cmocka_run_group_tests(tests, make_all, release_all);
}
