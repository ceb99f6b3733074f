/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "harness/raw_client.h"

#include "app/probes.h"

struct bench {
	struct hf_test_loop t;
	struct hf_probes *probes;
	const char *not_ready; /* NULL: ready */
	size_t metrics_bytes;  /* bytes of metrics to add to the usual metrics */
};

static int ready(void *arg, struct hf_error *err)
{
	const struct bench *bench = arg;

	return bench->not_ready == NULL
		       ? 0
		       : hf_error_set(err, HF_E_UNAVAILABLE, "%s", bench->not_ready);
}

static void metrics(void *arg, struct hf_strbuf *sb)
{
	const struct bench *bench = arg;

	hf_strbuf_addstr(sb, "up 1\n");
	for (size_t i = 0; i < bench->metrics_bytes; i += 64)
		hf_strbuf_addstr(sb, "################################"
				     "################################");
}

static int create(struct bench *bench, const char *health, const char *where, struct hf_error *err)
{
	const struct hf_probes_options options = {.loop = bench->t.loop,
						  .health_address = health,
						  .metrics_address = where,
						  .ready = ready,
						  .metrics = metrics,
						  .arg = bench};

	return hf_probes_create(&options, &bench->probes, err);
}

static void begin(struct bench *bench)
{
	struct hf_error err;

	*bench = (struct bench){.not_ready = NULL};
	hf_test_loop_init(&bench->t);
	assert_ok(create(bench, "127.0.0.1:0", "127.0.0.1:0", &err), &err);
}

static void end(struct bench *bench)
{
	bench->probes = hf_probes_destroy(bench->probes);
	hf_test_loop_release(&bench->t);
}

static void asks(struct bench *bench, uint16_t port, const char *request, const char *answer)
{
	struct hf_raw raw;

	hf_raw_open(&raw, &bench->t, port);
	hf_raw_say(&raw, request);
	hf_raw_say(&raw, " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
	hf_raw_expect(&raw, answer);
	hf_raw_close(&raw);
}

static void test_health_and_readiness_answer_on_their_address(void **state)
{
	struct bench bench;

	begin(&bench);
	uint16_t port = hf_probes_health_port(bench.probes);
	asks(&bench, port, "GET /healthz", "HTTP/1.1 200 OK");
	asks(&bench, port, "GET /readyz?verbose", "HTTP/1.1 200 OK");
	bench.not_ready = "caches are being filled";
	asks(&bench, port, "GET /readyz", "HTTP/1.1 503");
	asks(&bench, port, "GET /readyz", "not ready: caches are being filled\n");
	asks(&bench, port, "GET /healthz", "HTTP/1.1 200 OK");
	asks(&bench, port, "GET /metrics", "HTTP/1.1 404");
	asks(&bench, port, "POST /healthz", "HTTP/1.1 405");
	end(&bench);
}

static void test_metrics_answer_on_theirs(void **state)
{
	struct bench bench;

	begin(&bench);
	uint16_t port = hf_probes_metrics_port(bench.probes);
	asks(&bench, port, "GET /metrics", "\r\n\r\nup 1\n");
	asks(&bench, port, "GET /metrics", "text/plain; version=0.0.4; charset=utf-8");
	asks(&bench, port, "GET /healthz", "HTTP/1.1 404");
	asks(&bench, port, "DELETE /metrics", "HTTP/1.1 405");
	bench.metrics_bytes = HF_METRICS_BYTES_MAX;
	asks(&bench, port, "GET /metrics", "HTTP/1.1 500");
	end(&bench);
}

static void test_zero_is_nowhere(void **state)
{
	struct bench bench = {.not_ready = NULL};
	struct hf_error err;

	hf_test_loop_init(&bench.t);
	assert_ok(create(&bench, "0", "", &err), &err);
	assert_int_equal(hf_probes_health_port(bench.probes), 0);
	assert_int_equal(hf_probes_metrics_port(bench.probes), 0);
	end(&bench);
}

static void test_no_host_is_every_address_and_a_taken_port_is_told(void **state)
{
	struct bench bench = {.not_ready = NULL};
	struct hf_probes *first;
	struct hf_error err;
	char taken[16];

	hf_test_loop_init(&bench.t);
	assert_ok(create(&bench, ":0", "localhost:0", &err), &err);
	asks(&bench, hf_probes_health_port(bench.probes), "GET /healthz", "HTTP/1.1 200 OK");
	snprintf(taken, sizeof(taken), ":%u", (unsigned)hf_probes_health_port(bench.probes));
	first = bench.probes;
	assert_code(create(&bench, "0", taken, &err), HF_E_IO);
	assert_non_null(strstr(err.text, "cannot listen on ':"));
	bench.probes = first;
	end(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_health_and_readiness_answer_on_their_address),
		cmocka_unit_test(test_metrics_answer_on_theirs),
		cmocka_unit_test(test_zero_is_nowhere),
		cmocka_unit_test(test_no_host_is_every_address_and_a_taken_port_is_told),
	};

	return cmocka_run_group_tests_name("probes", tests, NULL, NULL);
}
