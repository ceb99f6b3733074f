/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/process_metrics.h"

#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double value_of(const char *text, const char *name)
{
	char start[96];
	const char *at;

	snprintf(start, sizeof(start), "\n%s ", name);
	at = strstr(text, start);
	if (at == NULL)
		fail_msg("no %s in:\n%s", name, text);
	return strtod(at + strlen(start), NULL);
}

static void test_the_process_tells_of_itself(void **state)
{
	struct hf_metrics *metrics = hf_metrics_create();
	HF_AUTO_STRBUF text = HF_STRBUF_INIT((size_t)1 << 20);

	hf_process_metrics_update(metrics);
	hf_process_metrics_update(metrics);
	hf_metrics_render(metrics, &text);
	assert_non_null(strstr(text.data, "holdfast_build_info{version=\"" HF_VERSION "\"} 1\n"));
	assert_true(value_of(text.data, "process_cpu_seconds_total") >= 0);
	assert_true(value_of(text.data, "process_resident_memory_bytes") > 100000);
	assert_true(value_of(text.data, "process_virtual_memory_bytes") >
		    value_of(text.data, "process_resident_memory_bytes"));
	assert_true(value_of(text.data, "process_open_fds") >= 3);
	assert_true(value_of(text.data, "process_max_fds") >=
		    value_of(text.data, "process_open_fds"));
	double start = value_of(text.data, "process_start_time_seconds");
	assert_true(start <= (double)time(NULL) + 1 && start > (double)time(NULL) - 3600);
	hf_metrics_destroy(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_process_tells_of_itself),
	};

	return cmocka_run_group_tests_name("process_metrics", tests, NULL, NULL);
}
