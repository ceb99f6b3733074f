/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/slow_ends.h"

#include "base/mem.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNNING "\"status\":{\"containerStatuses\":[{\"state\":{\"running\":{}}}]}"
#define ENDED "\"status\":{\"containerStatuses\":[{\"state\":{\"terminated\":{}}}]}"
/* deleted at second 10, with a grace period of 30 seconds */
#define DELETED ",\"deletionGracePeriodSeconds\":30,\"deletionTimestamp\":\"1970-01-01T00:00:40Z\""

static void pass_pod(struct hf_slow_ends *ends, const char *name, const char *deleted,
		     const char *rest)
{
	HF_AUTOFREE char *text =
		hf_xasprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\"%s},%s}", name, name,
			     deleted, rest);
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));

	hf_slow_ends_pod(ends, doc);
}

static void assert_taken(struct hf_slow_ends *ends, const char *wanted)
{
	HF_AUTOFREE char *text = hf_slow_ends_take(ends);

	if (wanted == NULL)
		assert_null(text);
	else
		assert_string_equal(text, wanted);
}

static void a_deleted_pod_that_runs_on_is_reported_once(void **state)
{
	struct hf_slow_ends *ends = hf_slow_ends_create("ddp");

	hf_slow_ends_begin(ends, HF_TIME_NONE, 11 * HF_SECOND);
	pass_pod(ends, "ddp-worker-0", DELETED, RUNNING);
	assert_taken(ends, NULL); /* it has had one second */
	hf_slow_ends_begin(ends, HF_TIME_NONE, 12 * HF_SECOND);
	pass_pod(ends, "ddp-worker-0", DELETED, RUNNING);
	pass_pod(ends, "ddp-worker-1", "", RUNNING);
	pass_pod(ends, "ddp-worker-2", DELETED, ENDED);
	assert_taken(ends, "waiting up to 28 s for worker-0 to end; the process has not ended at "
			   "SIGTERM, and SIGKILL follows");
	hf_slow_ends_begin(ends, HF_TIME_NONE, 14 * HF_SECOND);
	pass_pod(ends, "ddp-worker-0", DELETED, RUNNING);
	assert_taken(ends, NULL);
	ends = hf_slow_ends_destroy(ends);
}

static void a_stop_names_the_second_interrupt(void **state)
{
	struct hf_slow_ends *ends = hf_slow_ends_create("ddp");

	hf_slow_ends_begin(ends, 20 * HF_SECOND, 23 * HF_SECOND);
	pass_pod(ends, "ddp-worker-0", "",
		 "\"spec\":{\"terminationGracePeriodSeconds\":5}," RUNNING);
	assert_taken(ends, "waiting up to 2 s for worker-0 to end; Ctrl-C again kills it");
	for (int i = 1; i <= 5; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "ddp-worker-%d", i);
		pass_pod(ends, name, "", RUNNING);
	}
	hf_slow_ends_begin(ends, 20 * HF_SECOND, 23 * HF_SECOND);
	for (int i = 6; i <= 10; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "ddp-worker-%d", i);
		pass_pod(ends, name, "", RUNNING);
	}
	assert_taken(ends, "waiting up to 27 s for worker-6, worker-7, worker-8 and 2 more to end; "
			   "Ctrl-C again kills them");
	ends = hf_slow_ends_destroy(ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deleted_pod_that_runs_on_is_reported_once),
		cmocka_unit_test(a_stop_names_the_second_interrupt),
	};

	return cmocka_run_group_tests_name("slow_ends", tests, NULL, NULL);
}
