/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/rank.h"

#include "framework/framework.h"
#include "json/doc.h"

#include "base/mem.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

static const char *const spec =
	"{\"metadata\":{\"name\":\"ddp\"},\"spec\":{\"pytorchReplicaSpecs\":"
	"{\"Worker\":{\"replicas\":3},\"Master\":{}}}}";

static void assert_rank(const char *word, const char *wanted)
{
	HF_AUTO_DOC job = hf_doc_from_text(spec, strlen(spec));
	HF_AUTOFREE char *name = NULL;
	struct hf_error err;
	int rc = hf_cli_rank_name(&hf_framework_pytorch, hf_doc_json(job), word, &name, &err);

	if (wanted == NULL) {
		assert_code(rc, HF_E_INVALID);
		assert_null(name);
		assert_non_null(strstr(err.text, "it has master-0, worker-0 to worker-2"));
	} else {
		assert_ok(rc, &err);
		assert_string_equal(name, wanted);
	}
}

static void a_replica_is_known_by_name_or_number(void **state)
{
	assert_rank("master-0", "master-0");
	assert_rank("worker-2", "worker-2");
	assert_rank("0", "master-0");
	assert_rank("1", "worker-0");
	assert_rank("3", "worker-2");
}

static void what_the_spec_has_not_is_refused_with_what_it_has(void **state)
{
	static const char *const bad[] = {"",       "4",          "-1",         "worker-3",
					  "worker", "worker-",    "worker-01x", "Worker-0",
					  "boss-0", "worker-0-0", "master-1",   "worker--1"};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		assert_rank(bad[i], NULL);
}

static void a_job_without_replicas_has_none(void **state)
{
	static const char text[] = "{\"spec\":{}}";
	HF_AUTO_DOC job = hf_doc_from_text(text, strlen(text));
	char *name = NULL;
	struct hf_error err;

	assert_code(hf_cli_rank_name(&hf_framework_pytorch, hf_doc_json(job), "0", &name, &err),
		    HF_E_INVALID);
	assert_string_equal(err.text, "no replica '0' in the job; it has none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replica_is_known_by_name_or_number),
		cmocka_unit_test(what_the_spec_has_not_is_refused_with_what_it_has),
		cmocka_unit_test(a_job_without_replicas_has_none),
	};

	return cmocka_run_group_tests_name("rank", tests, NULL, NULL);
}
