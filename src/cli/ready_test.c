/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/ready.h"

#include "base/mem.h"
#include "harness/test.h"

#include <string.h>

/* Makes a pod. job "": the pod has no job label. */
static struct hf_doc *pod(const char *uid, const char *job, const char *ready)
{
	HF_AUTOFREE char *label =
		*job != '\0' ? hf_xasprintf("\"training.kubeflow.org/job-name\":\"%s\"", job)
			     : hf_xstrdup("");
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"%s\",\"labels\":{%s}},"
		"\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodScheduled\","
		"\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
		uid, label, ready);

	return hf_doc_from_text(text, strlen(text));
}

static bool see(struct hf_ready *ready, const char *uid, const char *job, const char *state,
		bool gone)
{
	HF_AUTO_DOC doc = pod(uid, job, state);

	return hf_ready_see(ready, doc, gone);
}

static void pods_are_counted_by_job_as_they_become_ready_and_unready(void **state)
{
	struct hf_ready *ready = hf_ready_create();

	(void)state;
	assert_int_equal(hf_ready_count(ready, "n", "a"), 0);
	assert_false(see(ready, "1", "a", "False", false));
	assert_true(see(ready, "1", "a", "True", false));
	assert_false(see(ready, "1", "a", "True", false));
	assert_true(see(ready, "2", "a", "True", false));
	assert_true(see(ready, "3", "b", "True", false));
	assert_int_equal(hf_ready_count(ready, "n", "a"), 2);
	assert_int_equal(hf_ready_count(ready, "m", "a"), 0);
	assert_int_equal(hf_ready_count(ready, "n", "b"), 1);
	assert_true(see(ready, "1", "a", "Unknown", false));
	assert_true(see(ready, "2", "a", "True", true));
	assert_false(see(ready, "2", "a", "True", true));
	assert_int_equal(hf_ready_count(ready, "n", "a"), 0);
	assert_true(hf_ready_forget(ready, "3"));
	assert_false(hf_ready_forget(ready, "3"));
	assert_int_equal(hf_ready_count(ready, "n", "b"), 0);
	(void)hf_ready_destroy(ready);
}

static void pods_of_no_job_are_not_counted(void **state)
{
	struct hf_ready *ready = hf_ready_create();
	HF_AUTO_DOC bare = hf_doc_from_text("{}", 2);

	(void)state;
	assert_false(see(ready, "1", "", "True", false));
	assert_false(hf_ready_see(ready, bare, false));
	(void)hf_ready_destroy(ready);
	assert_null(hf_ready_destroy(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_are_counted_by_job_as_they_become_ready_and_unready),
		cmocka_unit_test(pods_of_no_job_are_not_counted),
	};

	return cmocka_run_group_tests_name("ready", tests, NULL, NULL);
}
