/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/otlp_exporter.h"

#include "harness/real_loop.h"
#include "harness/test.h"

#include "app/plain_http.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

/* The exporter sends traces to a collector, which is a server in this process. */

struct bench {
	struct hf_test_loop t;
	struct hf_timer *look;
	struct hf_http_server *collector;
	struct hf_metrics *metrics;
	struct hf_otlp_exporter *exporter;
	/* HTTP status of the answer to each request; 0 stands for 200 */
	int answers[8];
	size_t requests;
	size_t spans; /* of requests that were answered with 200 */
	char *authorization;
	unsigned problems, ends_of_problems;
};

static void stop_loop(void *arg)
{
	hf_loop_stop(arg);
}

/* Runs the loop until the condition holds; fails after a minute. */
#define RUN_UNTIL(bench, condition)                                                                \
	do {                                                                                       \
		hf_time since_ = hf_loop_mono((bench)->t.loop);                                    \
		while (!(condition)) {                                                             \
			assert_true(hf_loop_mono((bench)->t.loop) - since_ < HF_MINUTE);           \
			hf_timer_arm((bench)->look, 10 * HF_MS);                                   \
			hf_test_loop_run(&(bench)->t);                                             \
		}                                                                                  \
	} while (0)

static size_t count_spans(const struct hf_exchange *ex)
{
	struct hf_json *body = NULL;
	struct hf_error err;
	size_t len, n;
	const char *text = hf_exchange_body(ex, &len);

	assert_ok(hf_json_parse(text, len, NULL, &body, &err), &err);
	n = hf_json_len(hf_json_get(
		hf_json_item(hf_json_get(hf_json_item(hf_json_get(body, "resourceSpans"), 0),
					 "scopeSpans"),
			     0),
		"spans"));
	hf_json_unref(body);
	return n;
}

static void collect(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;
	int status = bench->answers[bench->requests++ % HF_ARRAY_LEN(bench->answers)];
	const char *authorization = hf_exchange_header(ex, "Authorization");

	assert_string_equal(hf_exchange_method(ex), "POST");
	assert_string_equal(hf_exchange_path(ex), "/v1/traces");
	assert_string_equal(hf_exchange_header(ex, "Content-Type"), "application/json");
	free(bench->authorization);
	bench->authorization = authorization == NULL ? NULL : hf_xstrdup(authorization);
	if (status == 0)
		bench->spans += count_spans(ex);
	hf_exchange_respond(ex, status == 0 ? 200 : status, "application/json", "{}", 2);
}

static void note_problem(void *arg, const char *message)
{
	struct bench *bench = arg;

	if (message != NULL)
		bench->problems++;
	else
		bench->ends_of_problems++;
}

static int create(struct bench *bench, const char *endpoint, const char *headers,
		  struct hf_error *err)
{
	const struct hf_otlp_options options = {.loop = bench->t.loop,
						.endpoint = endpoint,
						.headers = headers,
						.metrics = bench->metrics,
						.problem = note_problem,
						.arg = bench,
						.seed = 7};

	return hf_otlp_create(&options, &bench->exporter, err);
}

static void begin(struct bench *bench, const char *headers)
{
	char endpoint[64];
	struct hf_error err;

	memset(bench, 0, sizeof(*bench));
	hf_test_loop_init(&bench->t);
	bench->look = hf_timer_create(bench->t.loop, stop_loop, bench->t.loop);
	bench->metrics = hf_metrics_create();
	assert_ok(hf_plain_listen(bench->t.loop, "127.0.0.1:0", collect, bench, &bench->collector,
				  &err),
		  &err);
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u",
		 (unsigned)hf_http_server_port(bench->collector));
	assert_ok(create(bench, endpoint, headers, &err), &err);
}

static void end(struct bench *bench)
{
	hf_otlp_destroy(bench->exporter);
	hf_http_server_destroy(bench->collector);
	hf_metrics_destroy(bench->metrics);
	free(bench->authorization);
	hf_timer_destroy(bench->look);
	hf_test_loop_release(&bench->t);
}

/* Reports n restarts of five spans each. */
static void report(struct bench *bench, size_t n)
{
	struct hf_job_view job = {.framework = hf_framework_by_name("pytorchjobs"),
				  .ns = "team",
				  .name = "llama",
				  .uid = "u1"};
	struct hf_record record = {.ended_at = HF_SECOND,
				   .detected_at = 2 * HF_SECOND,
				   .decided_at = 3 * HF_SECOND,
				   .down_at = 4 * HF_SECOND,
				   .running_at = 5 * HF_SECOND,
				   .stepped_at = HF_TIME_NONE};
	const struct hf_operator_recovery recovery = {.job = &job, .record = &record};

	for (size_t i = 0; i < n; i++, record.generation++)
		hf_otlp_add(bench->exporter, &recovery);
}

static bool has_metric(const struct bench *bench, const char *line)
{
	struct hf_strbuf text = HF_STRBUF_INIT((size_t)1 << 20);
	bool found;

	hf_metrics_render(bench->metrics, &text);
	found = strstr(text.data, line) != NULL;
	hf_strbuf_release(&text);
	return found;
}

static void restarts_at_the_same_time_share_a_request(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench, "Authorization=Basic%20eDp5,x-team=a");
	report(&bench, 3);
	RUN_UNTIL(&bench, bench.spans == 15);
	assert_int_equal(bench.requests, 1);
	assert_string_equal(bench.authorization, "Basic eDp5");
	RUN_UNTIL(&bench, has_metric(&bench, "holdfast_trace_spans_total{result=\"sent\"} 15"));
	end(&bench);
}

static void a_busy_collector_is_asked_again(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench, NULL);
	bench.answers[0] = 503;
	report(&bench, 1);
	RUN_UNTIL(&bench, bench.spans == 5);
	RUN_UNTIL(&bench, bench.ends_of_problems == 1);
	assert_int_equal(bench.requests, 2);
	assert_int_equal(bench.problems, 1);
	end(&bench);
}

static void a_refused_request_is_dropped_and_the_next_one_sent(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench, "");
	bench.answers[0] = 400;
	report(&bench, 1);
	RUN_UNTIL(&bench, has_metric(&bench, "holdfast_trace_spans_total{result=\"dropped\"} 5"));
	report(&bench, 2);
	RUN_UNTIL(&bench, bench.spans == 10);
	assert_int_equal(bench.requests, 2);
	end(&bench);
}

static void spans_beyond_the_limit_are_dropped_and_counted(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench, NULL);
	report(&bench, HF_OTLP_SPANS_MAX / 5 + 10);
	assert_true(has_metric(&bench, "holdfast_trace_spans_total{result=\"dropped\"} 50"));
	RUN_UNTIL(&bench, bench.spans == HF_OTLP_SPANS_MAX / 5 * 5);
	end(&bench);
}

static void wrong_settings_are_refused(void **state)
{
	struct bench bench = {.problems = 0};
	struct hf_error err;

	(void)state;
	hf_test_loop_init(&bench.t);
	bench.metrics = hf_metrics_create();
	assert_code(create(&bench, "collector", NULL, &err), HF_E_INVALID);
	assert_code(create(&bench, "http://127.0.0.1:1", "secret", &err), HF_E_INVALID);
	assert_string_equal(err.text, "header 1 is not of the form NAME=VALUE");
	assert_code(create(&bench, "http://127.0.0.1:1", "a=b,c=%2", &err), HF_E_INVALID);
	assert_string_equal(err.text, "the value of header 'c' has a '%' without two hexadecimal "
				      "digits");
	hf_metrics_destroy(bench.metrics);
	hf_test_loop_release(&bench.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restarts_at_the_same_time_share_a_request),
		cmocka_unit_test(a_busy_collector_is_asked_again),
		cmocka_unit_test(a_refused_request_is_dropped_and_the_next_one_sent),
		cmocka_unit_test(spans_beyond_the_limit_are_dropped_and_counted),
		cmocka_unit_test(wrong_settings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
