/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/node.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/shim.h"
#include "kubelet/runtime/shim_internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tests the GPUs of a node with the double of NVML (tests/doubles/nvml.c) and a sysfs of the test. */

#define STR(json, ...) hf_json_path_str((json), __VA_ARGS__, NULL)
#define UUID(digit) "GPU-5a1d0000-0000-4000-8000-0000000000" digit

static char double_path[PATH_MAX]; /* path of the double of NVML; an argument of this program */

static const char show[] = "echo c=$CUDA_VISIBLE_DEVICES; echo r=$ROCR_VISIBLE_DEVICES";

/* Starts a new kubelet on a machine with the given GPUs: the double of NVML reports NVIDIA's, the
 * test's sysfs AMD's. */
static void restart(struct testnode *n, const char *gpus, const char *devices)
{
	HF_AUTOFREE char *library = hf_xasprintf("%s/libnvidia-ml.so.1", n->dir);
	HF_AUTOFREE char *file = hf_xasprintf("%s/nvml", n->dir);

	testnode_stop(n);
	(void)unlink(library);
	assert_int_equal(symlink(double_path, library), 0);
	testnode_file(n, "nvml", devices);
	assert_int_equal(setenv("LD_LIBRARY_PATH", n->dir, 1), 0);
	assert_int_equal(setenv("HF_NVML_DOUBLE", file, 1), 0);
	n->gpus = gpus;
	testnode_start(n);
}

static const char *capacity_of(struct testnode *n, const char *resource)
{
	return STR(hf_doc_json(hf_memstore_peek(n->memstore, &hf_nodes, NULL, "local")), "status",
		   "capacity", resource);
}

static bool amount_is(struct testnode *n, void *arg)
{
	return hf_streq(capacity_of(n, "nvidia.com/gpu"), arg);
}

static void wait_amount(struct testnode *n, const char *amount)
{
	HF_AUTOFREE char *copy = amount ? hf_xstrdup(amount) : NULL;

	testnode_wait(n, amount_is, copy);
}

/* Adds a pod that writes its variables to a file. ends: the pod then ends; false: it keeps
 * running. */
static void add_pod(struct testnode *n, const char *name, int gpus, bool ends)
{
	testnode_pod(n, name,
		     "'restartPolicy':'Never','containers':[{'name':'main','workingDir':'%s',"
		     "'command':['sh','-c','(%s) > %s.part; mv %s.part %s.out%s'],'resources':{"
		     "'limits':{'nvidia.com/gpu':'%d'}}}]",
		     n->dir, show, name, name, name, ends ? "" : "; exec tail -f /dev/null", gpus);
}

struct output {
	const char *pod, *text;
};

static bool has_output(struct testnode *n, void *arg)
{
	const struct output *o = arg;
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s.out", n->dir, o->pod);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	if (hf_fs_read(path, &text, NULL) != 0)
		return false;
	assert_string_equal(text.data, o->text);
	return true;
}

static void wait_output(struct testnode *n, const char *pod, const char *text)
{
	struct output o = {pod, text};

	testnode_wait(n, has_output, &o);
}

static bool waits_for_gpu(struct testnode *n, void *arg HF_UNUSED)
{
	return hf_streq(STR(testnode_container(n, "d", 0, false), "state", "waiting", "message"),
			"container main waits for 1 more free nvidia.com/gpu");
}

static void each_container_has_its_own_gpus(void **state)
{
	struct testnode *n = *state;

	restart(n, NULL, "devices 3\n");
	wait_amount(n, "3");
	add_pod(n, "a", 2, false);
	wait_output(n, "a", "c=" UUID("00") "," UUID("01") "\nr=\n");
	add_pod(n, "b", 1, false);
	wait_output(n, "b", "c=" UUID("02") "\nr=\n");
	testnode_script(n, "c", "Never", show);
	testnode_wait_phase(n, "c", "Succeeded");
	testnode_assert_output(n, "c", "c=\nr=\n");
	/* A later kubelet knows the owners. */
	restart(n, NULL, "devices 3\n");
	add_pod(n, "d", 1, true);
	testnode_wait(n, waits_for_gpu, NULL);
	testnode_delete(n, "b", 0);
	testnode_wait_phase(n, "d", "Succeeded");
	wait_output(n, "d", "c=" UUID("02") "\nr=\n");
}

static void the_option_chooses_gpus(void **state)
{
	struct testnode *n = *state;

	restart(n, "1,7", "devices 3\n");
	wait_amount(n, "1");
	assert_non_null(strstr(n->notice, "there is no GPU 7; this machine has 3"));
	add_pod(n, "a", 1, true);
	testnode_wait_phase(n, "a", "Succeeded");
	wait_output(n, "a", "c=" UUID("01") "\nr=\n");
	restart(n, "none", "devices 3\n");
	wait_amount(n, NULL);
	testnode_script(n, "b", "Never",
			"test -z \\\"${CUDA_VISIBLE_DEVICES-x}\\\" && echo hidden");
	testnode_wait_phase(n, "b", "Succeeded");
	testnode_assert_output(n, "b", "hidden\n");
}

static void a_wrong_option_is_refused(void **state)
{
	struct testnode *n = *state;
	struct hf_kubelet_options options = {
		.loop = n->loop, .state_dir = "/nowhere", .gpus = "0,x"};
	struct hf_kubelet *kubelet = NULL;
	struct hf_error err;

	assert_code(hf_kubelet_create(&options, &kubelet, &err), HF_E_INVALID);
	assert_null(kubelet);
}

static void a_gpu_that_is_lost_is_not_offered(void **state)
{
	struct testnode *n = *state;

	restart(n, NULL, "devices 2\nlost 1\n");
	wait_amount(n, "1");
}

static bool allocatable_is(struct testnode *n, void *arg)
{
	struct hf_doc *node = hf_memstore_peek(n->memstore, &hf_nodes, NULL, "local");

	return hf_streq(STR(hf_doc_json(node), "status", "allocatable", "nvidia.com/gpu"), arg) &&
	       hf_streq(capacity_of(n, "nvidia.com/gpu"), "2");
}

struct owners {
	char text[512];
};

static void add_owner(void *arg, const struct hf_kubelet_gpu_owner *owner)
{
	struct owners *owners = arg;
	size_t len = strlen(owners->text);

	(void)snprintf(owners->text + len, sizeof(owners->text) - len, "%s/%s/%s %s %s\n",
		       owner->ns, owner->pod, owner->container, owner->resource, owner->id);
}

static void no_pod_gets_a_gpu_that_is_out_of_service(void **state)
{
	struct testnode *n = *state;
	struct owners owners = {.text = ""};
	char one[] = "1", two[] = "2";

	restart(n, NULL, "devices 2\n");
	wait_amount(n, "2");
	hf_kubelet_set_gpu_works(n->kubelet, UUID("00"), false, "Xid 79");
	hf_kubelet_set_gpu_works(n->kubelet, "GPU-of-no-machine", false, "Xid 79");
	assert_non_null(strstr(n->notice, "GPU 0 (" UUID("00") ") is out of service"));
	testnode_wait(n, allocatable_is, one);
	add_pod(n, "a", 1, false);
	wait_output(n, "a", "c=" UUID("01") "\nr=\n");
	hf_kubelet_each_gpu_owner(n->kubelet, add_owner, &owners);
	assert_string_equal(owners.text, "default/a/main nvidia.com/gpu " UUID("01") "\n");
	/* A pod that waits for a GPU gets the repaired GPU when the GPU is back in service. */
	add_pod(n, "d", 1, true);
	testnode_wait(n, waits_for_gpu, NULL);
	hf_kubelet_set_gpu_works(n->kubelet, UUID("00"), true, "");
	testnode_wait(n, allocatable_is, two);
	testnode_wait_phase(n, "d", "Succeeded");
	wait_output(n, "d", "c=" UUID("00") "\nr=\n");
}

static void a_driver_that_fails_is_said_and_the_node_works(void **state)
{
	struct testnode *n = *state;

	restart(n, NULL, "crash nvmlInit_v2\n");
	assert_true(n->ready);
	assert_non_null(strstr(n->notice, "no GPU of NVIDIA's is offered to pods"));
	wait_amount(n, NULL);
	testnode_script(n, "a", "Never", "exit 0");
	testnode_wait_phase(n, "a", "Succeeded");
}

/* Node 0 of the topology is a processor. The second GPU has no unique number. */
static void gpus_of_amd_are_found_in_sysfs(void **state)
{
	struct testnode *n = *state;
	static const char *const properties[] = {
		"cpu_cores_count 8\nsimd_count 0\n",
		("cpu_cores_count 0\nsimd_count 304\nlocation_id 49920\ndomain 1\n"
		 "unique_id 81985529216486895\n"),
		"cpu_cores_count 0\nsimd_count 304\nunique_id 0\n"};
	HF_AUTOFREE char *sysfs = hf_xasprintf("%s/sys", n->dir);

	for (size_t i = 0; i < HF_ARRAY_LEN(properties); i++) {
		HF_AUTOFREE char *dir =
			hf_xasprintf("%s/class/kfd/kfd/topology/nodes/%zu", sysfs, i);
		HF_AUTOFREE char *file =
			hf_xasprintf("sys/class/kfd/kfd/topology/nodes/%zu/properties", i);
		struct hf_error err;

		assert_ok(hf_fs_mkdirs(dir, 0755, &err), &err);
		testnode_file(n, file, properties[i]);
	}
	n->sysfs = sysfs;
	restart(n, NULL, "devices 0\n");
	testnode_pod(n, "a",
		     "'restartPolicy':'Never','containers':[{'name':'main','command':['sh','-c',"
		     "'%s'],'resources':{'limits':{'amd.com/gpu':2}}}]",
		     show);
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "c=\nr=GPU-0123456789abcdef,1\n");
	assert_string_equal(capacity_of(n, "amd.com/gpu"), "2");
	hf_kubelet_set_gpu_works(n->kubelet, "0001:c3:00.0", false, "a fault");
	assert_string_equal(n->notice, "GPU 0 (GPU-0123456789abcdef) is out of service, and no "
				       "further pod gets it: a fault");
	testnode_stop(n);
	n->sysfs = NULL;
	testnode_start(n);
}

static void an_owner_in_the_file_of_a_pod_must_be_complete(void **state HF_UNUSED)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	struct hf_shim_gpu gpu = {.container = "main", .resource = HF_SHIM_NVIDIA, .id = "GPU-1"};
	struct hf_shim_pod pod = {.ns = "default",
				  .name = "a",
				  .uid = "u",
				  .hostname = "a",
				  .gpus = &gpu,
				  .n_gpus = 1,
				  .log_bytes_max = 1,
				  .log_files_max = 1};
	HF_AUTO_JSON whole = hf_shim_pod_to_json(&pod);
	struct hf_shim_pod read;
	struct hf_error err;

	assert_ok(hf_shim_pod_from_json(whole, arena, &read, &err), &err);
	assert_int_equal(read.n_gpus, 1);
	assert_string_equal(read.gpus[0].container, "main");
	assert_string_equal(read.gpus[0].resource, HF_SHIM_NVIDIA);
	assert_string_equal(read.gpus[0].id, "GPU-1");
	gpu.id = NULL;
	HF_AUTO_JSON part = hf_shim_pod_to_json(&pod);
	assert_int_equal(hf_shim_pod_from_json(part, arena, &read, &err), HF_E_INVALID);
	assert_string_equal(err.text, "'pod.json' has a GPU without an owner");
}

int main(int argc, char **argv)
{
#define T(name) TESTNODE_TEST(name, memory)
	const struct CMUnitTest tests[] = {
		T(each_container_has_its_own_gpus),
		T(the_option_chooses_gpus),
		T(a_wrong_option_is_refused),
		T(a_gpu_that_is_lost_is_not_offered),
		T(no_pod_gets_a_gpu_that_is_out_of_service),
		T(a_driver_that_fails_is_said_and_the_node_works),
		T(gpus_of_amd_are_found_in_sysfs),
		cmocka_unit_test(an_owner_in_the_file_of_a_pod_must_be_complete),
	};
	int rc = hf_shim_helper_main(argc, argv);

	if (rc >= 0)
		return rc;
	if (argc != 2)
		return 2;
	if (!realpath(argv[1], double_path))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
