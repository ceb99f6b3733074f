/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/origin.h"

#include <string.h>

#define ECC "CUDA error: uncorrectable ECC error encountered"

static void assert_all(enum hf_exec_origin origin, const char *const *lines, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (hf_exec_find_origin(lines[i], strlen(lines[i])) != origin)
			fail_msg("%d, not %d: %s", hf_exec_find_origin(lines[i], strlen(lines[i])),
				 origin, lines[i]);
}

static void what_a_launcher_passes_on_bears_its_mark(void **state)
{
	static const char *const lines[] = {
		/* Ray */
		"(RayTrainWorker pid=123, ip=10.0.0.2) RuntimeError: " ECC,
		"  (pid=123, ip=10.0.0.2) RuntimeError: " ECC,
		/* pdsh, for DeepSpeed */
		"10.0.0.7: RuntimeError: " ECC,
		"fd00:10:244::7: RuntimeError: " ECC,
		"gr064:   what():  " ECC,
		"worker-1.train.default.svc: " ECC,
		"DGX-01: node7:91:112 [3] NCCL WARN Cuda failure 'uncorrectable ECC error encountered'",
		"GPU01: RuntimeError: " ECC,
		/* mpirun and horovodrun */
		"[1,3]<stderr>:RuntimeError: " ECC,
		"[3]<stderr>:  what():  " ECC,
		"Tue Nov 24 09:26:01 2026[1,3]<stderr>:RuntimeError: " ECC,
		"[prterun-launcher-55@1,3]<stderr>: RuntimeError: " ECC,
		"<stderr rank=\"3\">RuntimeError: " ECC "</stderr>",
		/* srun, Hydra, kubectl */
		"3: RuntimeError: " ECC,
		" 3: RuntimeError: " ECC,
		"[3] RuntimeError: " ECC,
		"[pod/train-worker-1/pytorch] RuntimeError: " ECC,
	};

	assert_all(HF_EXEC_ORIGIN_RELAYED, lines, HF_ARRAY_LEN(lines));
}

static void what_tells_of_others_begins_their_words(void **state)
{
	static const char *const lines[] = {
		"ray::Trainer.train() (pid=4242, ip=10.0.0.2, actor_id=7f, repr=<Trainer object>)",
		"ray.exceptions.RayTaskError(RuntimeError): ray::f() (pid=7, ip=10.0.0.2)",
		("The actor died because of an error raised in its creation task, ray::A.__init__() "
		 "(pid=7, ip=10.0.0.2, actor_id=7f)"),
		"(Trainer pid=8) ray.exceptions.RayTaskError: ray::f() (pid=7, ip=10.0.0.2)",
		"ray.train.WorkerGroupError: Training failed due to worker errors:",
		"[Rank 5]:",
		"[Rank 1, 5]:",
		"Traceback (most recent call last): (RANK 5)",
		"[rank3]: Traceback (most recent call last): (RANK 5)",
		("\"message\": \"CheckpointException: CheckpointException ranks:dict_keys([5])\\n"
		 "Traceback (most recent call last): (RANK 5)\\n  File \\\"/train.py\\\""),
		("E0926 17:26:32.075402  157988 coordination_service_agent.cc:332] Polled an error "
		 "from coordination service (this can be an error from this or another task)."),
		("Error reported from /job:worker/task:5: INTERNAL: CUDA_ERROR_ECC_UNCORRECTABLE: "
		 "uncorrectable ECC error encountered"),
		("org.apache.spark.SparkException: Lost task 0.3 in stage 1.0 (TID 7) (10.0.0.2 "
		 "executor 1): org.apache.spark.api.python.PythonException: Traceback"),
	};

	assert_all(HF_EXEC_ORIGIN_OTHERS, lines, HF_ARRAY_LEN(lines));
}

static void what_a_runtime_prints_where_it_fails_is_its_own(void **state)
{
	static const char *const lines[] = {
		"  what():  " ECC,
		"[default0]:  what():  " ECC,
		"node7:91:112 [3] enqueue.cc:1420 NCCL WARN Cuda failure 'uncorrectable ECC error encountered'",
		("[rank5]:[E1124 09:26:01.123 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID "
		 "0(default_pg) Rank 5] Process group watchdog thread terminated with exception: " ECC),
	};

	assert_all(HF_EXEC_ORIGIN_OWN, lines, HF_ARRAY_LEN(lines));
}

static void a_plain_line_does_not_name_its_rank(void **state)
{
	static const char *const lines[] = {
		"",
		"[",
		"(",
		": ",
		"Traceback (most recent call last):",
		"RuntimeError: " ECC,
		"[rank3]: RuntimeError: " ECC,
		"[default3]:RuntimeError: " ECC,
		"[Rank 3] RuntimeError: " ECC,
		"[TRT] 1: [runner.cpp::run::12] Error Code 1: Cuda Runtime (uncorrectable ECC error)",
		"[171657.3] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
		"(RayTrainWorker pid=123) RuntimeError: " ECC,
		"torch.AcceleratorError: " ECC,
		"cudaErrorECCUncorrectable: uncorrectable ECC error encountered",
		"NVMLError_GpuIsLost: GPU is lost",
		"pycuda.error: " ECC,
		"error: " ECC,
		"/usr/bin/train: " ECC,
		"train.cu:12: " ECC,
		"09:26:01: " ECC,
		"2026-11-24 09:26:01.123: F tensorflow/x.cc:34] " ECC,
		"  host      : worker-1",
		"  rank      : 5 (local_rank: 1)",
		/* a line of torch's source code, as a traceback prints it */
		"    str += f\"Traceback (most recent call last): (RANK {rank})\\n\"",
	};

	assert_all(HF_EXEC_ORIGIN_SAME, lines, HF_ARRAY_LEN(lines));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_launcher_passes_on_bears_its_mark),
		cmocka_unit_test(what_tells_of_others_begins_their_words),
		cmocka_unit_test(what_a_runtime_prints_where_it_fails_is_its_own),
		cmocka_unit_test(a_plain_line_does_not_name_its_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
