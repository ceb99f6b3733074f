/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/log_tail.h"

#include "harness/test.h"

#include <string.h>

static void add(struct hf_log_tails *tails, const char *pod, const char *text)
{
	hf_log_tails_add(tails, pod, text, strlen(text));
}

static void each_pod_has_its_own_tail(void **state)
{
	struct hf_log_tails *tails = hf_log_tails_create();

	assert_null(hf_log_tails_get(tails, "a"));
	add(tails, "a", "one\n");
	add(tails, "b", "other\n");
	add(tails, "a", "two\n");
	assert_string_equal(hf_log_tails_get(tails, "a")->data, "one\ntwo\n");
	(void)hf_log_tails_destroy(tails);
}

static void a_silent_next_run_keeps_the_tail_of_the_last(void **state)
{
	struct hf_log_tails *tails = hf_log_tails_create();

	hf_log_tails_begin(tails, "a");
	add(tails, "a", "first run\n");
	hf_log_tails_begin(tails, "a");
	assert_string_equal(hf_log_tails_get(tails, "a")->data, "first run\n");
	add(tails, "a", "second run\n");
	assert_string_equal(hf_log_tails_get(tails, "a")->data, "second run\n");
	(void)hf_log_tails_destroy(tails);
}

static void only_the_end_is_kept(void **state)
{
	struct hf_log_tails *tails = hf_log_tails_create();
	static char big[3 * HF_LOG_TAIL_BYTES_MAX];
	const struct hf_strbuf *tail;

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = 'y';
	hf_log_tails_add(tails, "a", big, sizeof(big));
	for (int i = 0; i < 10000; i++)
		add(tails, "a", "0123456789");
	tail = hf_log_tails_get(tails, "a");
	assert_true(tail->len >= HF_LOG_TAIL_BYTES_MAX && tail->len <= 2 * HF_LOG_TAIL_BYTES_MAX);
	assert_false(tail->full);
	assert_memory_equal(tail->data + tail->len - 10, "0123456789", 10);
	(void)hf_log_tails_destroy(tails);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pod_has_its_own_tail),
		cmocka_unit_test(a_silent_next_run_keeps_the_tail_of_the_last),
		cmocka_unit_test(only_the_end_is_kept),
	};

	return cmocka_run_group_tests_name("log_tail", tests, NULL, NULL);
}
