/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/cause.h"

#include <string.h>

static enum hf_exec_cause of(const char *line)
{
	return hf_exec_cause_of(line, strlen(line));
}

/* As programs, frameworks and tools of the vendors print them. */
static const struct {
	int code;
	const char *line;
} said[] = {
	/* torch */
	{220, "RuntimeError: CUDA error: uncorrectable ECC error encountered"},
	{220, "[rank3]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\r"},
	{220, "  what():  CUDA error: uncorrectable ECC error encountered"},
	{220, "RuntimeError: HIP error: uncorrectable ECC error encountered"},
	{220, "RuntimeError: CUDA driver error: uncorrectable ECC error encountered"},
	{220, "RuntimeError('CUDA error: uncorrectable ECC error encountered\\nCUDA kernel errors"},
	{220, ("CUDA error: uncorrectable ECC error encountered Search for "
	       "`cudaErrorECCUncorrectable' in https://docs.nvidia.com/")},
	{220, ("cuda runtime error (214) : uncorrectable ECC error encountered at "
	       "/pytorch/aten/src/THC/THCGeneral.cpp:54")},
	{224, ("UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did "
	       "you run some cuda functions before calling NumCudaDevices() that might have "
	       "already set an error? Error 802: system not yet initialized (Triggered "
	       "internally at ../c10/cuda/CUDAFunctions.cpp:108.)")},
	{224,
	 "RuntimeError: ... Error 803: system has unsupported display driver / cuda driver combination"},
	{222, "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution"},
	{220, ("[rank3]: RuntimeError: CUDA error: uncorrectable ECC error encountered, file "
	       "train.cu")},
	{222, "CUDA error: uncorrectable NVLink error detected"},
	{222,
	 ("\"message\": \"RuntimeError: CUDA error: uncorrectable NVLink error detected during "
	  "the execution\\nCUDA kernel errors might be")},
	{221, "CUDA error: CUDA-capable device(s) is/are busy or unavailable"},
	/* The header of CUDA names the hardware first: the process is started again (errors.def) */
	{221, ("torch.AcceleratorError: CUDA error: Invalid access of peer GPU memory over "
	       "nvlink or a hardware error")},
	{221, "RuntimeError: CUDA error: hardware stack error"},
	/* XLA and what comes from it */
	{220, ("F tensorflow/stream_executor/lib/statusor.cc:34] Internal: failed call to "
	       "cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error "
	       "encountered")},
	{224, ("E0000 cuda_platform.cc:51] failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: "
	       "system not yet initialized")},
	{224, ("failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: "
	       "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver / cuda "
	       "driver combination")},
	/* NCCL and its tests */
	{220, ("node7:91:112 [3] enqueue.cc:1420 NCCL WARN Cuda failure 'uncorrectable ECC error "
	       "encountered'")},
	{224,
	 "bm-h100:630:635 [2] transport/nvls.cc:254 NCCL WARN Cuda failure 802 'system not yet initialized'"},
	{222,
	 "Test CUDA failure common.cu:892 'uncorrectable NVLink error detected during the execution'"},
	{224, "node7:91:112 [0] NCCL WARN nvmlInit_v2() failed: Driver/library version mismatch"},
	{220, "node7:91:112 [0] NCCL WARN nvmlDeviceGetHandleByPciBusId() failed: GPU is lost"},
	/* others */
	{220, ("cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorECCUncorrectable: "
	       "uncorrectable ECC error encountered")},
	{220, "RuntimeError: Triton Error [CUDA]: uncorrectable ECC error encountered"},
	{220, ("Check failed: cudaSuccess == cudaStat (0 vs. 39) Cuda Error: uncorrectable ECC "
	       "error encountered")},
	{220, "OSError: CUDA error(214), uncorrectable ECC error encountered. [Hint: ...]"},
	{220,
	 "CUDA error: uncorrectable ECC error encountered (code #214, ERROR_ECC_UNCORRECTABLE)"},
	{220, "Check failed: e == cudaSuccess: CUDA: uncorrectable ECC error encountered"},
	{220, "GPUassert: uncorrectable ECC error encountered kernel.cu 57"},
	{220, "CUDA Error: uncorrectable ECC error encountered in train.cu at line 3"},
	{220, "CUDA error 214: uncorrectable ECC error encountered"},
	{220, "CUDA error at sum.cu:12: uncorrectable ECC error encountered"},
	{220, ("cudaDeviceSynchronize() error( cudaErrorECCUncorrectable): uncorrectable ECC error "
	       "encountered /src/Kokkos_Cuda.cpp:159")},
	{220,
	 "[TRT] 1: [runner.cpp::run::12] Error Code 1: Cuda Runtime (uncorrectable ECC error encountered)"},
	/* NVML and the kernel */
	{220, "Unable to determine the device handle for GPU 0000:1B:00.0: GPU is lost"},
	{220,
	 ("Unable to determine the device handle for GPU 0000:1B:00.0: GPU is lost.  Reboot the "
	  "system to recover this GPU")},
	{220, "Unable to determine the device handle for GPU0: 0000:1B:00.0: GPU is lost"},
	{220, "Unable to determine the device handle for GPU0000:1B:00.0: GPU is lost"},
	{220, "pynvml.nvml.NVMLError_GpuIsLost: GPU is lost"},
	{220, "pynvml.NVMLError: GPU is lost"},
	{220, "NVRM: Xid (PCI:0000:3b:00): 79, pid=71, name=python, GPU has fallen off the bus."},
	{220, "[171657.3] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."},
	{224, "Failed to initialize NVML: Driver/library version mismatch"},
	{224, "failed to init NVML: Driver/library version mismatch"},
	{224, "NVMLError_LibRmVersionMismatch: Driver/library version mismatch"},
};

static void sentences_of_the_driver_name_a_cause(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(said); i++)
		if ((int)of(said[i].line) != said[i].code)
			fail_msg("%d, not %d: %s", of(said[i].line), said[i].code, said[i].line);
}

static void what_a_program_says_in_such_words_names_none(void **state)
{
	static const char *const lines[] = {
		"throughput: 3% of the time on the GPU is lost to padding",
		"NOTE: GPU is lost",
		"WARNING: 12% of the GPU is lost: see the profile",
		"NVML: GPU is lost to padding",
		"NVML: GPU is lost to, say, padding",
		"WARNING: logging system not yet initialized, using defaults",
		"logging: system not yet initialized",
		"RuntimeError: system not yet initialized",
		"Error 7: system not yet initialized",
		"CUDA error: system not yet initialized by the launcher",
		"CUDA error: logging system not yet initialized",
		"barracuda error: system not yet initialized",
		"GPU has fallen off the bus, they say",
		"simulating: GPU has fallen off the bus",
		"check: Driver/library version mismatch",
		"Plugin error: Driver/library version mismatch",
		"retry on: uncorrectable ECC error encountered",
		"retry on: ['CUDA error: uncorrectable ECC error encountered', 'CUDA error: unknown error']",
		"    if \"CUDA error: uncorrectable ECC error encountered\" in str(e):",
		"all CUDA-capable device(s) is/are busy or unavailable here",
		"0 uncorrectable ECC error encountered so far",
		"uncorrectable NVLink error detected: 0",
		"uncorrectable ECC error encountered",
		("WARNING CUDA error: CUDA-capable device(s) is/are busy or unavailable, retrying "
		 "1/3"),
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(lines); i++)
		if (of(lines[i]) != HF_EXEC_CAUSE_NONE)
			fail_msg("%d: %s", of(lines[i]), lines[i]);
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
		cmocka_unit_test(what_a_program_says_in_such_words_names_none),
		cmocka_unit_test(what_follows_from_a_peer_or_a_mistake_names_none),
		cmocka_unit_test(each_code_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
