/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the retry rules: which failures of reads and writes are retried, how often, and after
 * which delay. */
#include "harness/test.h"
#include "kube/kube_internal.h"

static hf_time delay_of(struct hf_kube_try made)
{
	struct hf_rng rng;

	hf_rng_init(&rng, 7);
	return hf_kube_retry_delay(&made, &rng);
}

static bool is_retried(struct hf_kube_try made)
{
	return delay_of(made) != HF_TIME_NEVER;
}

static void reads_are_retried_after_transient_failures(void **state)
{
	static const int statuses[] = {500, 502, 503, 504};

	for (size_t i = 0; i < HF_ARRAY_LEN(statuses); i++) {
		assert_true(is_retried(
			(struct hf_kube_try){.reads = true, .tries = 1, .status = statuses[i]}));
		/* A write is not sent again, with or without Retry-After, because the server may
		 * have done it. */
		assert_false(is_retried((struct hf_kube_try){.tries = 1, .status = statuses[i]}));
		assert_false(is_retried((struct hf_kube_try){
			.tries = 1, .status = statuses[i], .retry_after = HF_SECOND}));
	}
	assert_true(
		is_retried((struct hf_kube_try){.reads = true, .tries = 1, .code = HF_E_TIMEOUT}));
	assert_false(is_retried((struct hf_kube_try){.tries = 1, .code = HF_E_TIMEOUT}));
}

static void writes_are_retried_if_unsent_or_refused_with_retry_after(void **state)
{
	assert_true(is_retried((struct hf_kube_try){.tries = 1, .code = HF_E_UNAVAILABLE}));
	assert_true(is_retried(
		(struct hf_kube_try){.tries = 1, .status = 429, .retry_after = HF_SECOND}));
	/* A 429 without Retry-After means that a disruption budget forbids the eviction: no
	 * retry. */
	assert_false(is_retried((struct hf_kube_try){.tries = 1, .status = 429}));
}

static void permanent_failures_are_not_retried(void **state)
{
	static const int statuses[] = {400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 501, 507};
	static const int codes[] = {HF_E_TOO_LARGE, HF_E_BAD_REQUEST, HF_E_TOO_MANY};

	for (size_t i = 0; i < HF_ARRAY_LEN(statuses); i++)
		assert_false(is_retried((struct hf_kube_try){.reads = true,
							     .tries = 1,
							     .status = statuses[i],
							     .retry_after = HF_SECOND}));
	for (size_t i = 0; i < HF_ARRAY_LEN(codes); i++)
		assert_false(is_retried(
			(struct hf_kube_try){.reads = true, .tries = 1, .code = codes[i]}));
	assert_false(is_retried((struct hf_kube_try){
		.reads = true, .tries = 1, .code = HF_E_UNAVAILABLE, .permanent = true}));
}

static void tries_are_counted_more_where_the_server_asks_to_come_back(void **state)
{
	struct hf_kube_try unasked = {.reads = true, .tries = 3, .status = 503};
	struct hf_kube_try asked = {.reads = true, .tries = 9, .status = 503, .retry_after = 1};

	assert_true(is_retried(unasked));
	unasked.tries = 4;
	assert_false(is_retried(unasked));
	assert_true(is_retried(asked));
	asked.tries = HF_KUBE_TRIES_MAX;
	assert_false(is_retried(asked));
}

static void delays_are_a_random_share_of_a_growing_span(void **state)
{
	static const hf_time spans[] = {100 * HF_MS, 200 * HF_MS, 400 * HF_MS};
	struct hf_rng rng;

	hf_rng_init(&rng, 1);
	for (unsigned tries = 1; tries <= 3; tries++) {
		hf_time least = HF_TIME_NEVER, most = 0;
		for (int i = 0; i < 1000; i++) {
			struct hf_kube_try made = {.reads = true, .tries = tries, .status = 503};
			hf_time delay = hf_kube_retry_delay(&made, &rng);
			least = delay < least ? delay : least;
			most = delay > most ? delay : most;
		}
		assert_in_range(least, 0, spans[tries - 1] / 20);
		assert_in_range(most, spans[tries - 1] / 20 * 19, spans[tries - 1]);
	}
	/* The delay is at least the time that the server asked for. A random share is added to
	 * it. */
	for (unsigned tries = 1; tries < HF_KUBE_TRIES_MAX; tries++)
		assert_in_range(delay_of((struct hf_kube_try){.tries = tries,
							      .status = 429,
							      .retry_after = 7 * HF_SECOND}),
				7 * HF_SECOND, 12 * HF_SECOND);
}

static void a_broken_stream_is_retried_at_once_and_then_with_delays(void **state)
{
	struct hf_kube_try made = {
		.reads = true, .tries = 1, .code = HF_E_TIMEOUT, .retry_now = true};

	assert_int_equal(delay_of(made), 0);
	made.tries = 2;
	assert_in_range(delay_of(made), 1, 200 * HF_MS);
	/* The server may have done this write, so it is not sent again, although retry_now is
	 * set. */
	made = (struct hf_kube_try){.tries = 1, .code = HF_E_TIMEOUT, .retry_now = true};
	assert_false(is_retried(made));
	made.code = HF_E_UNAVAILABLE;
	assert_int_equal(delay_of(made), 0);
}

static void equal_seeds_give_equal_delays(void **state)
{
	struct hf_kube_try made = {.reads = true, .tries = 3, .status = 500};

	assert_int_equal(delay_of(made), delay_of(made));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_are_retried_after_transient_failures),
		cmocka_unit_test(writes_are_retried_if_unsent_or_refused_with_retry_after),
		cmocka_unit_test(permanent_failures_are_not_retried),
		cmocka_unit_test(tries_are_counted_more_where_the_server_asks_to_come_back),
		cmocka_unit_test(delays_are_a_random_share_of_a_growing_span),
		cmocka_unit_test(a_broken_stream_is_retried_at_once_and_then_with_delays),
		cmocka_unit_test(equal_seeds_give_equal_delays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
