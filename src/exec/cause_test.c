/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/cause.h"

#include <string.h>

static enum hf_exec_cause of(const char *line)
{
	return hf_exec_cause_of(line, strlen(line));
}

static void sentences_of_the_driver_name_a_cause(void **state)
{
	assert_int_equal(of("RuntimeError: CUDA error: uncorrectable ECC error encountered"), 220);
	assert_int_equal(
		of("Unable to determine the device handle for GPU 0000:1B:00.0: GPU is lost"), 220);
	assert_int_equal(of("CUDA error: CUDA-capable device(s) is/are busy or unavailable"), 221);
	assert_int_equal(of("CUDA error: uncorrectable NVLink error detected during the execution"),
			 222);
	assert_int_equal(of("Failed to initialize NVML: Driver/library version mismatch"), 224);
}

static void what_follows_from_a_peer_or_a_mistake_names_none(void **state)
{
	static const char *const lines[] = {
		"",
		"CUDA error: an illegal memory access was encountered",
		"CUDA error: device-side assert triggered",
		"CUDA out of memory. Tried to allocate 2.00 GiB",
		"NCCL WARN NET/IB : Got completion from peer 10.0.0.7 with status=12 opcode=0",
		"ncclRemoteError: A call failed possibly due to a network error",
		"[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12)",
		"ConnectionResetError: [Errno 104] Connection reset by peer",
		/* Programs built for devices, where they were given none or the wrong number. */
		("E0000 cuda_platform.cc:51] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no "
		 "CUDA-capable device is detected"),
		"RuntimeError: No HIP GPUs are available: no ROCm-capable device is detected",
		"CUDA error: CUDA driver version is insufficient for CUDA runtime version",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(lines); i++)
		assert_int_equal(of(lines[i]), HF_EXEC_CAUSE_NONE);
}

static void each_code_has_a_name(void **state)
{
	for (int code = 220; code <= 226; code++)
		assert_string_not_equal(hf_exec_cause_name((enum hf_exec_cause)code), "");
	assert_string_equal(hf_exec_cause_name(HF_EXEC_CAUSE_NONE), "");
	assert_string_equal(hf_exec_cause_name(HF_EXEC_CAUSE_HANG), "hang");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentences_of_the_driver_name_a_cause),
		cmocka_unit_test(what_follows_from_a_peer_or_a_mistake_names_none),
		cmocka_unit_test(each_code_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
