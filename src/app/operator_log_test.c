/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/operator_log.h"

#include "harness/test.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The log lines, parsed as JSON. */
struct bench {
	struct hf_loop *loop;
	struct hf_operator_log *log;
	FILE *out;
	char *text;
	size_t len;
};

static int setup(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	bench->loop = hf_loop_create_virtual(0);
	bench->log = hf_operator_log_create(bench->loop, 7);
	bench->out = open_memstream(&bench->text, &bench->len);
	assert_non_null(bench->out);
	hf_log_setup(bench->out, HF_LOG_INFO, HF_LOG_JSON);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hf_log_setup(NULL, HF_LOG_INFO, HF_LOG_JSON);
	(void)fclose(bench->out);
	free(bench->text);
	hf_operator_log_destroy(bench->log);
	hf_loop_destroy(bench->loop);
	free(bench);
	return 0;
}

/* Returns the line number n of the log, counted from 0. Fails the test if there is no such
 * line. */
static struct hf_json *line(struct bench *bench, size_t n)
{
	struct hf_json *value = NULL;
	struct hf_error err;
	const char *at;

	(void)fflush(bench->out);
	at = bench->text;
	for (; n > 0 && at != NULL; n--) {
		at = strchr(at, '\n');
		at += at != NULL;
	}
	assert_non_null(at);
	assert_ok(hf_json_parse(at, strcspn(at, "\n"), NULL, &value, &err), &err);
	return value;
}

static size_t lines(struct bench *bench)
{
	size_t n = 0;

	(void)fflush(bench->out);
	for (const char *p = bench->text; p != NULL && (p = strchr(p, '\n')) != NULL; p++)
		n++;
	return n;
}

static const char *get(const struct hf_json *value, const char *key)
{
	return hf_json_str(hf_json_get(value, key), "absent");
}

static struct hf_doc *job(void)
{
	static const char text[] = "{\"metadata\":{\"name\":\"ddp\",\"namespace\":\"team\"}}";

	return hf_doc_from_text(text, sizeof(text) - 1);
}

static void passed_of(struct bench *bench, const struct hf_plan *plan, int code,
		      const char *message, bool gone)
{
	HF_AUTO_DOC doc = job();
	const struct hf_operator_pass pass = {.framework = &hf_framework_pytorch,
					      .job = doc,
					      .plan = plan,
					      .told = plan != NULL,
					      .code = code,
					      .message = message,
					      .gone = gone};

	hf_operator_log_passed(bench->log, &pass);
}

static void passed(struct bench *bench, const struct hf_plan *plan, int code, const char *message)
{
	passed_of(bench, plan, code, message, false);
}

static void test_a_failed_pass_is_a_line_with_controller_runtimes_keys(void **state)
{
	struct bench *bench = *state;

	passed(bench, NULL, HF_E_FORBIDDEN, "pods is forbidden");
	HF_AUTO_JSON first = line(bench, 0);
	assert_string_equal(get(first, "level"), "error");
	assert_string_equal(get(first, "msg"), "Reconciler error");
	assert_string_equal(get(first, "logger"), "operator");
	assert_string_equal(get(first, "controller"), "pytorchjob-controller");
	assert_string_equal(get(first, "namespace"), "team");
	assert_string_equal(get(first, "name"), "ddp");
	assert_string_equal(get(first, "job"), "team/ddp");
	assert_string_equal(get(first, "error"), "pods is forbidden");
	assert_int_equal(strlen(get(first, "reconcileID")), 36);
	assert_int_equal(get(first, "reconcileID")[14], '4');
}

static void test_each_event_of_a_job_is_a_line(void **state)
{
	struct bench *bench = *state;
	const struct hf_plan_event events[] = {
		{.warning = true, .reason = "PyTorchJobRestarting", .message = "one failed"},
		{.reason = "ExitedWithCode", .message = "code 1", .pod = "ddp-worker-0"},
	};
	struct hf_plan plan = {.events = events, .events_len = 2};

	plan.status.ledger = (struct hf_ledger){.present = true, .generation = 3, .records_len = 1};
	plan.status.ledger.records[0].node = "node-7";
	plan.metrics[HF_METRIC_RESTARTS] = 1;
	plan.restart_cause = HF_CLASS_APPLICATION;
	passed(bench, &plan, 0, "");
	HF_AUTO_JSON first = line(bench, 0);
	HF_AUTO_JSON second = line(bench, 1);
	assert_string_equal(get(first, "level"), "warn");
	assert_string_equal(get(first, "msg"), "PyTorchJobRestarting");
	assert_string_equal(get(first, "event"), "one failed");
	assert_string_equal(get(first, "generation"), "3");
	assert_string_equal(get(first, "cause"), "application");
	assert_string_equal(get(first, "node"), "node-7");
	assert_string_equal(get(first, "pod"), "absent");
	assert_string_equal(get(second, "level"), "info");
	assert_string_equal(get(second, "pod"), "ddp-worker-0");
	assert_string_equal(get(first, "reconcileID"), get(second, "reconcileID"));
}

static void test_quiet_passes_and_conflicts_are_not_told(void **state)
{
	struct bench *bench = *state;
	const struct hf_plan plan = {.events_len = 0};

	passed(bench, &plan, 0, "");
	passed(bench, NULL, 0, "");
	passed(bench, NULL, HF_E_CONFLICT, "modified");
	passed_of(bench, NULL, HF_E_NOT_FOUND, "the job is gone", true);
	passed(bench, NULL, HF_E_CANCELED, "stopping");
	assert_int_equal(lines(bench), 0);
}

static void test_not_found_for_a_job_that_is_there_is_told(void **state)
{
	struct bench *bench = *state;

	passed(bench, NULL, HF_E_NOT_FOUND, "the server answered with HTTP status 404");
	HF_AUTO_JSON first = line(bench, 0);
	assert_string_equal(get(first, "msg"), "Reconciler error");
	assert_string_equal(get(first, "level"), "error");
	assert_string_equal(get(first, "code"), "NOT_FOUND");
}

static void test_what_users_wrote_stays_in_its_line(void **state)
{
	struct bench *bench = *state;

	passed(bench, NULL, HF_E_INVALID, "a\n{\"level\":\"info\"}\x1b[31m\xff");
	assert_int_equal(lines(bench), 1);
	HF_AUTO_JSON first = line(bench, 0);
	assert_string_equal(get(first, "error"), "a\n{\"level\":\"info\"}\x1b[31m\xef\xbf\xbd");
	(void)fflush(bench->out);
	assert_null(strchr(bench->text, '\x1b'));
}

static void test_a_kind_that_comes_too_often_is_thinned_out_and_counted(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < HF_LOG_BURST + 50; i++)
		passed(bench, NULL, HF_E_FORBIDDEN, "no");
	assert_int_equal(lines(bench), HF_LOG_BURST);
	/* The other kinds are not limited. */
	hf_operator_log_state(bench->log, HF_MANAGER_LEADING, "");
	assert_int_equal(lines(bench), HF_LOG_BURST + 1);
	hf_loop_run_until(bench->loop, HF_SECOND);
	passed(bench, NULL, HF_E_FORBIDDEN, "no");
	HF_AUTO_JSON last = line(bench, HF_LOG_BURST + 1);
	assert_string_equal(get(last, "suppressed"), "50");
	for (int i = 0; i < 50; i++)
		passed(bench, NULL, HF_E_FORBIDDEN, "no");
	assert_int_equal(lines(bench), HF_LOG_BURST + 1 + HF_LOG_PER_SECOND);
}

static void test_kinds_without_end_share_one_limit(void **state)
{
	struct bench *bench = *state;
	unsigned long long suppressed;
	char kind[32];
	int allowed = 0;

	for (int i = 0; i < 10000; i++) {
		snprintf(kind, sizeof(kind), "kind %d", i);
		allowed += hf_operator_log_allows(bench->log, kind, &suppressed);
	}
	assert_int_equal(allowed, 256 + HF_LOG_BURST);
}

static void test_trouble_with_caches_and_the_lease_is_told(void **state)
{
	struct bench *bench = *state;

	hf_operator_log_problem(bench->log, "pytorchjobs", HF_E_NOT_FOUND, "no such kind");
	hf_operator_log_problem(bench->log, "pytorchjobs/a/b", HF_E_NOT_FOUND, "told by passed");
	hf_operator_log_trouble(bench->log, "lease", HF_E_FORBIDDEN, "not allowed");
	hf_operator_log_state(bench->log, HF_MANAGER_YIELDING, "another one");
	assert_int_equal(lines(bench), 3);
	HF_AUTO_JSON cache = line(bench, 0);
	HF_AUTO_JSON lease = line(bench, 1);
	HF_AUTO_JSON yield = line(bench, 2);
	assert_string_equal(get(cache, "resource"), "pytorchjobs");
	assert_string_equal(get(cache, "code"), "NOT_FOUND");
	assert_string_equal(get(lease, "object"), "lease");
	assert_string_equal(get(yield, "level"), "warn");
	assert_string_equal(get(yield, "state"), "yielding");
	assert_string_equal(get(yield, "reason"), "another one");
}

/* A watch that is too old for the server's history is normal, because the cache lists again. So
 * nothing is logged as an error. */
static void test_a_version_that_expired_is_routine(void **state)
{
	struct bench *bench = *state;

	hf_operator_log_problem(bench->log, "pods", HF_E_GONE, "too old resource version");
	assert_int_equal(lines(bench), 1);
	HF_AUTO_JSON first = line(bench, 0);
	assert_string_equal(get(first, "level"), "info");
	assert_string_equal(get(first, "msg"), "Listing again");
	assert_string_equal(get(first, "resource"), "pods");
	assert_string_equal(get(first, "reason"), "too old resource version");
	assert_string_equal(get(first, "error"), "absent");
}

static void test_a_server_that_asks_to_wait_is_a_warning(void **state)
{
	struct bench *bench = *state;

	hf_operator_log_problem(bench->log, "tfjobs", HF_E_TOO_MANY, "storage is (re)initializing");
	HF_AUTO_JSON first = line(bench, 0);
	assert_string_equal(get(first, "level"), "warn");
	assert_string_equal(get(first, "code"), "TOO_MANY");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_failed_pass_is_a_line_with_controller_runtimes_keys),
		T(test_each_event_of_a_job_is_a_line),
		T(test_quiet_passes_and_conflicts_are_not_told),
		T(test_not_found_for_a_job_that_is_there_is_told),
		T(test_what_users_wrote_stays_in_its_line),
		T(test_a_kind_that_comes_too_often_is_thinned_out_and_counted),
		T(test_kinds_without_end_share_one_limit),
		T(test_trouble_with_caches_and_the_lease_is_told),
		T(test_a_version_that_expired_is_routine),
		T(test_a_server_that_asks_to_wait_is_a_warning),
	};

	return cmocka_run_group_tests_name("operator_log", tests, NULL, NULL);
}
