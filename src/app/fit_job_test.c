/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/fit_job.h"

#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "harness/test.h"
#include "json/json.h"

#include <string.h>

/* Fits a job to a machine with 4 CPUs, 8 GiB and 2 GPUs of NVIDIA, and checks the result. spec:
 * members of the job's spec beside the replicas, each with a comma; resources: the resources of
 * every container. */
static void assert_fits(const char *spec, int workers, const char *resources, const char *notes,
			const char *wanted_master, const char *wanted_worker)
{
	const struct hf_local_machine machine = {.cpus = 4,
						 .memory_bytes = (int64_t)8 << 30,
						 .disk_bytes = (int64_t)100 << 30,
						 .nvidia = 2};
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"spec\":{%s\"pytorchReplicaSpecs\":{\"Master\":{\"replicas\":1,\"template\":{\"spec\":"
		"{\"containers\":[{\"resources\":%s}]}}},\"Worker\":{\"replicas\":%d,\"template\":{\"spec\":"
		"{\"containers\":[{\"resources\":%s}]}}}}}}",
		spec, resources, workers, resources);
	struct hf_manifest job = {.doc = hf_doc_from_text(text, strlen(text)),
				  .framework =
					  hf_framework_by_kind("kubeflow.org/v1", "PyTorchJob")};
	HF_AUTO_STRBUF seen = HF_STRBUF_INIT(4096);
	const char *const wanted[] = {wanted_master, wanted_worker};
	struct hf_job_replicas r;
	size_t n = 0;

	hf_fit_job(&machine, &job, &seen);
	assert_string_equal(seen.data, notes);
	for (void *it = NULL; hf_job_replicas_next(job.framework, hf_doc_json(job.doc), &it, &r);
	     n++) {
		HF_AUTO_STRBUF line = HF_STRBUF_INIT(4096);

		hf_strbuf_addf(&line, "%d ", (int)r.n);
		hf_json_write(hf_json_get(hf_json_item(hf_json_get(r.spec, "containers"), 0),
					  "resources"),
			      HF_JSON_COMPACT, &line);
		assert_string_equal(line.data, wanted[n]);
	}
	assert_int_equal(n, 2);
	assert_null(hf_json_path(hf_doc_json(job.doc), "spec", "runPolicy", "schedulingPolicy",
				 "minAvailable", NULL));
	hf_manifest_release(&job);
}

static void a_job_that_fits_stays_as_it_is(void **state)
{
	assert_fits("", 1, "{\"limits\":{\"nvidia.com/gpu\":1}}", "",
		    "1 {\"limits\":{\"nvidia.com/gpu\":1}}",
		    "1 {\"limits\":{\"nvidia.com/gpu\":1}}");
}

static void too_many_pods_become_fewer(void **state)
{
	assert_fits(
		"\"runPolicy\":{\"schedulingPolicy\":{\"minAvailable\":8}},", 7,
		"{\"limits\":{\"nvidia.com/gpu\":1}}",
		"--fit: Worker has 1 of its 7 pods, because this machine has 2 nvidia.com/gpu\n",
		"1 {\"limits\":{\"nvidia.com/gpu\":1}}", "1 {\"limits\":{\"nvidia.com/gpu\":1}}");
	/* An elastic job stays as it is: it may run with fewer pods. */
	assert_fits("\"elasticPolicy\":{},", 7, "{\"limits\":{\"nvidia.com/gpu\":1}}", "",
		    "1 {\"limits\":{\"nvidia.com/gpu\":1}}",
		    "7 {\"limits\":{\"nvidia.com/gpu\":1}}");
}

static void if_the_smallest_job_is_too_large_no_pod_has_gpus(void **state)
{
	assert_fits(
		"", 3,
		"{\"limits\":{\"nvidia.com/gpu\":2},\"requests\":{\"nvidia.com/gpu\":2,\"cpu\":1}}",
		"--fit: no pod has GPUs, because the smallest job asks for 4 nvidia.com/gpu, and this "
		"machine has 2 nvidia.com/gpu\n",
		"1 {\"limits\":{},\"requests\":{\"cpu\":1}}",
		"3 {\"limits\":{},\"requests\":{\"cpu\":1}}");
	assert_fits(
		"", 3, "{\"limits\":{\"amd.com/gpu\":1}}",
		"--fit: no pod has GPUs, because the smallest job asks for 2 amd.com/gpu, and this "
		"machine has none\n",
		"1 {\"limits\":{}}", "3 {\"limits\":{}}");
}

static void cpu_memory_and_other_devices_are_not_asked_for(void **state)
{
	assert_fits(
		"", 3,
		"{\"limits\":{\"cpu\":2,\"memory\":\"3Gi\",\"rdma/hca\":1},\"requests\":{\"memory\":\"1Gi\"}}",
		"--fit: the pods share all of this machine's cpu, because they ask for 8 CPUs, and this "
		"machine has 4 CPUs\n--fit: no pod has rdma/hca, because this machine offers none\n",
		"1 {\"limits\":{\"memory\":\"3Gi\"},\"requests\":{\"memory\":\"1Gi\"}}",
		"3 {\"limits\":{\"memory\":\"3Gi\"},\"requests\":{\"memory\":\"1Gi\"}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_that_fits_stays_as_it_is),
		cmocka_unit_test(too_many_pods_become_fewer),
		cmocka_unit_test(if_the_smallest_job_is_too_large_no_pod_has_gpus),
		cmocka_unit_test(cpu_memory_and_other_devices_are_not_asked_for),
	};

	return cmocka_run_group_tests_name("fit_job", tests, NULL, NULL);
}
