/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/job_resources.h"
#include "app/local_check.h"

#include "base/mem.h"
#include "framework/framework.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static char seen[1024];

static void note_finding(void *arg, bool refused, const char *field, const char *text)
{
	size_t len = strlen(seen);

	(void)snprintf(seen + len, sizeof(seen) - len, "%s%s: %s\n", refused ? "" : "warning ",
		       field, text);
}

static struct hf_manifest make_job(const char *elastic, const char *resources, int workers)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"{\"metadata\":{\"name\":\"j\"},\"spec\":{%s\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":"
		"%d,\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"command\":[\"ls\"],"
		"\"resources\":%s}]}}}}}}",
		elastic, workers, resources);

	return (struct hf_manifest){.doc = hf_doc_from_text(text, strlen(text)),
				    .framework =
					    hf_framework_by_kind("kubeflow.org/v1", "PyTorchJob")};
}

/* Checks the findings about a job on a machine with 4 CPUs, 8 GiB and 2 GPUs. */
static void assert_resources(const char *elastic, const char *resources, int workers,
			     const char *wanted)
{
	const struct hf_local_machine machine = {.cpus = 4,
						 .memory_bytes = (int64_t)8 << 30,
						 .disk_bytes = (int64_t)100 << 30,
						 .nvidia = 2,
						 .pods = 110};
	struct hf_manifest job = make_job(elastic, resources, workers);

	seen[0] = '\0';
	hf_local_check_resources(&job, &machine, note_finding, NULL);
	assert_string_equal(seen, wanted);
	hf_manifest_release(&job);
}

#define PODS "spec.pytorchReplicaSpecs"
#define ALONE "; 'holdfast run --fit' runs it without this request\n"
#define PATH PODS "[Worker].template.spec"

static void a_job_has_no_more_pods_than_a_node_takes(void **state)
{
	assert_resources("", "{}", 110, "");
	assert_resources("\"elasticPolicy\":{},", "{}", 111, "");
	assert_resources("", "{}", 200,
			 PODS
			 "[Worker].replicas: the job has 200 pods, and a node takes 110 "
			 "(--max-pods), as in Kubernetes; 'holdfast run --max-pods 200' raises the "
			 "limit, or let a pod have several ranks (torchrun --nproc_per_node)\n");
}

static void a_missing_host_path_is_found(void **state)
{
	static const char format[] =
		"{\"metadata\":{\"name\":\"j\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{"
		"\"template\":{\"spec\":{\"volumes\":[{\"name\":\"a\",\"hostPath\":{\"path\":\"/tmp\"}},"
		"{\"name\":\"b\",\"hostPath\":{\"path\":\"%s\",\"type\":\"%s\"}}],\"containers\":"
		"[{\"name\":\"pytorch\",\"command\":[\"ls\"]}]}}}}}}";
	static const struct {
		const char *path, *type, *wanted;
	} rows[] = {
		{"/tmp/no/such", "",
		 PATH
		 ".volumes[1].hostPath: hostPath '/tmp/no/such': No such file or directory; make "
		 "it, or set type: DirectoryOrCreate\n"},
		{"/tmp/no/such", "DirectoryOrCreate", ""},
		{"/tmp", "File",
		 PATH ".volumes[1].hostPath: hostPath type check failed: /tmp is not a File\n"},
	};
	const struct hf_cli cli = {.n_flags = 0};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		HF_AUTOFREE char *text = hf_xasprintf(format, rows[i].path, rows[i].type);
		struct hf_manifest job = {
			.doc = hf_doc_from_text(text, strlen(text)),
			.framework = hf_framework_by_kind("kubeflow.org/v1", "PyTorchJob")};

		seen[0] = '\0';
		hf_local_check(&cli, &job, note_finding, NULL);
		assert_string_equal(seen, rows[i].wanted);
		hf_manifest_release(&job);
	}
}

static void a_pod_may_not_ask_for_more_than_the_machine_has(void **state)
{
	assert_resources("", "{}", 100, "");
	assert_resources("", "{\"requests\":{\"cpu\":4,\"memory\":\"8Gi\"}}", 1, "");
	assert_resources(
		"", "{\"requests\":{\"cpu\":\"4001m\"}}", 1,
		PATH ": each pod of Worker asks for 4.001 CPUs, and this machine has 4 CPUs" ALONE);
	assert_resources(
		"", "{\"requests\":{\"ephemeral-storage\":\"9000Gi\"}}", 1,
		PATH
		": each pod of Worker asks for 9000.0 GiB of disk (ephemeral-storage), and this "
		"machine has 100.0 GiB of disk (ephemeral-storage)" ALONE);
	/* If a container has a limit and no request, the limit counts as the request. */
	assert_resources("", "{\"limits\":{\"memory\":\"64Gi\"}}", 1,
			 PATH
			 ": each pod of Worker asks for 64.0 GiB of memory, and this machine has "
			 "8.0 GiB of memory" ALONE);
	assert_resources("", "{\"limits\":{\"cpu\":64},\"requests\":{\"cpu\":1}}", 1, "");
}

static void init_containers_count_as_for_the_scheduler(void **state)
{
	static const struct {
		const char *pod;
		int64_t cpus;
	} table[] = {
		{"{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":1}}}],"
		 "\"initContainers\":[{\"resources\":{\"requests\":{\"cpu\":3}}},{}]}",
		 3},
		{"{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":4}}}],"
		 "\"initContainers\":[{\"resources\":{\"requests\":{\"cpu\":3}}}]}",
		 4},
		{"{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":1}}}],"
		 "\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":2}}}]}",
		 3},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++) {
		HF_AUTO_JSON pod = NULL;

		assert_int_equal(
			hf_json_parse(table[i].pod, strlen(table[i].pod), NULL, &pod, NULL), 0);
		assert_int_equal(hf_job_request(pod, "cpu"), table[i].cpus * 1000);
	}
}

static void all_pods_together_may_not_either(void **state)
{
	assert_resources("", "{\"requests\":{\"cpu\":2}}", 2, "");
	assert_resources("", "{\"requests\":{\"cpu\":2}}", 3,
			 PATH
			 ": the 3 pods ask for 6 CPUs together, and this machine has 4 CPUs" ALONE);
	assert_resources("\"elasticPolicy\":{},", "{\"requests\":{\"cpu\":2}}", 3, "");
	assert_resources("", "{\"requests\":{\"memory\":\"9000000000Gi\"}}", 2147483647,
			 PODS
			 "[Worker].replicas: the job has 2147483647 pods, and a node takes 110 "
			 "(--max-pods), as in Kubernetes; let a pod have several ranks (torchrun "
			 "--nproc_per_node)\n" PATH
			 ": each pod of Worker asks for 8589934.6 GiB of memory, and this machine "
			 "has 8.0 GiB of memory" ALONE);
}

#define OFFER "; 'holdfast run --fit' runs it with fewer ranks or without GPUs\n"

static void gpus_are_counted(void **state)
{
	assert_resources("", "{\"limits\":{\"nvidia.com/gpu\":0}}", 3, "");
	assert_resources("", "{\"limits\":{\"nvidia.com/gpu\":1}}", 2, "");
	assert_resources("", "{\"limits\":{\"nvidia.com/gpu\":8}}", 1,
			 PATH
			 ": each pod of Worker asks for 8 nvidia.com/gpu, and this machine has "
			 "2 nvidia.com/gpu" OFFER);
	assert_resources("", "{\"limits\":{\"nvidia.com/gpu\":\"1\"}}", 3,
			 PATH
			 ": the 3 pods ask for 3 nvidia.com/gpu together, and this machine has "
			 "2 nvidia.com/gpu" OFFER);
	assert_resources("\"elasticPolicy\":{},", "{\"limits\":{\"nvidia.com/gpu\":1}}", 3, "");
	assert_resources(
		"", "{\"limits\":{\"amd.com/gpu\":1}}", 1,
		PATH
		": each pod of Worker asks for 1 amd.com/gpu, and this machine has none" OFFER);
}

static void other_devices_are_not_offered(void **state)
{
	assert_resources(
		"", "{\"limits\":{\"rdma/hca\":1}}", 1,
		PATH
		".containers[0].resources: each pod of Worker asks for 1 rdma/hca, and the node "
		"of 'holdfast run' offers none; remove the limit to run without, or use --fit\n");
}

/* The node of `run` has the labels that its kubelet registers. */
static void a_pod_that_no_node_here_may_run_is_found(void **state)
{
	static const struct {
		const char *spec, *field; /* field NULL: no finding */
	} rows[] = {
		{"\"nodeSelector\":{\"kubernetes.io/os\":\"linux\",\"kubernetes.io/hostname\":\"local\"}",
		 NULL},
		{"\"nodeSelector\":{\"node.kubernetes.io/instance-type\":\"p4d\"}",
		 "nodeSelector: "},
		{"\"schedulerName\":\"volcano\"", "schedulerName: "},
		{"\"nodeName\":\"gpu-node-7\"", "nodeName: "},
	};
	const struct hf_cli cli = {.n_flags = 0};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		HF_AUTOFREE char *text = hf_xasprintf(
			"{\"metadata\":{\"name\":\"j\"},\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{"
			"\"template\":{\"spec\":{%s,\"containers\":[{\"name\":\"pytorch\",\"command\":"
			"[\"ls\"]}]}}}}}}",
			rows[i].spec);
		HF_AUTOFREE char *wanted =
			rows[i].field != NULL ? hf_xasprintf(PATH ".%s", rows[i].field) : NULL;
		struct hf_manifest job = {
			.doc = hf_doc_from_text(text, strlen(text)),
			.framework = hf_framework_by_kind("kubeflow.org/v1", "PyTorchJob")};

		seen[0] = '\0';
		hf_local_check(&cli, &job, note_finding, NULL);
		if (wanted == NULL)
			assert_string_equal(seen, "");
		else
			assert_ptr_equal(strstr(seen, wanted), seen);
		hf_manifest_release(&job);
	}
}

static void what_the_kubelet_refuses_is_found(void **state)
{
	const struct hf_cli cli = {.n_flags = 0};
	struct hf_manifest job = make_job("", "{\"claims\":[{\"name\":\"c\"}]}", 1);

	seen[0] = '\0';
	hf_local_check(&cli, &job, note_finding, NULL);
	assert_non_null(strstr(seen, PATH ".containers[0].resources.claims: "));
	hf_manifest_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_has_no_more_pods_than_a_node_takes),
		cmocka_unit_test(a_missing_host_path_is_found),
		cmocka_unit_test(a_pod_may_not_ask_for_more_than_the_machine_has),
		cmocka_unit_test(init_containers_count_as_for_the_scheduler),
		cmocka_unit_test(all_pods_together_may_not_either),
		cmocka_unit_test(gpus_are_counted),
		cmocka_unit_test(other_devices_are_not_offered),
		cmocka_unit_test(a_pod_that_no_node_here_may_run_is_found),
		cmocka_unit_test(what_the_kubelet_refuses_is_found),
	};

	return cmocka_run_group_tests_name("local_check", tests, NULL, NULL);
}
