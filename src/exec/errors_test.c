/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/cause.h"
#include "exec/tail.h"

#include <stdio.h>
#include <string.h>

/*
 * Compares errors.def with the names in the headers, and reads each row as a line of stderr, in the forms in which
 * programs print errors.
 */

enum { RUNTIME, DRIVER, HIP, NCCL, CUBLAS, CUDNN, NVML, KERNEL, CONTAINER, VERBS, LIBRARIES };

enum {
	APPLICATION = HF_EXEC_CAUSE_NONE,
	DEVICE_FATAL = HF_EXEC_CAUSE_DEVICE_FATAL,
	DEVICE_TRANSIENT = HF_EXEC_CAUSE_DEVICE_TRANSIENT,
	FABRIC = HF_EXEC_CAUSE_FABRIC,
	DRIVER_OF_NODE = HF_EXEC_CAUSE_DRIVER,
};
#define CLASS_APPLICATION APPLICATION
#define CLASS_DEVICE_FATAL DEVICE_FATAL
#define CLASS_DEVICE_TRANSIENT DEVICE_TRANSIENT
#define CLASS_FABRIC FABRIC
#define CLASS_DRIVER DRIVER_OF_NODE

struct error {
	int library;
	int number;
	const char *name;
	int cause;
	const char *text;
	const char *source;
	const char *why;
};

#define E(library, number, name, class, text, source, why)                                         \
	{library, number, name, CLASS_##class, text, source, why},
static const struct error errors[] = {
#include "exec/errors.def"
};

#define N(library, name) {library, name},
static const struct {
	int library;
	const char *name;
} names[] = {
#include "exec/errors_names.def"
};

/* ---- the lists --------------------------------------------------------------------------------- */

static bool has_row(int library, const char *name)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(errors); i++)
		if (errors[i].library == library && strcmp(errors[i].name, name) == 0)
			return true;
	return false;
}

static bool is_listed(const struct error *error)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		if (names[i].library == error->library && strcmp(names[i].name, error->name) == 0)
			return true;
	return false;
}

static void each_name_of_the_headers_has_a_row(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		if (!has_row(names[i].library, names[i].name))
			fail_msg("errors.def has no row for %s", names[i].name);
}

static void each_row_has_a_name_of_the_headers(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(errors); i++)
		if (errors[i].library < KERNEL && !is_listed(&errors[i]))
			fail_msg("errors_names.def does not list %s", errors[i].name);
}

/* The number of names in each header that errors.def names: a list that loses a name fails here. */
static void the_lists_are_as_long_as_the_headers(void **state)
{
	static const int expected[LIBRARIES] = {
		[RUNTIME] = 139, [DRIVER] = 106, [HIP] = 80,  [NCCL] = 9,
		[CUBLAS] = 10,   [CUDNN] = 54,   [NVML] = 32,
	};
	int len[LIBRARIES] = {0};

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		len[names[i].library]++;
	assert_memory_equal(len, expected, sizeof(len));
}

static void each_row_tells_its_source_and_its_reason(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(errors); i++)
		if (errors[i].source[0] == '\0' || errors[i].why[0] == '\0')
			fail_msg("%s has no source or no reason", errors[i].name);
}

/* The CUDA runtime and the CUDA driver number their errors alike: a number has the same class in both lists. */
static void a_number_has_one_cause(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(errors); i++)
		for (size_t j = 0; j < i; j++)
			if (errors[i].library <= DRIVER && errors[j].library <= DRIVER &&
			    errors[i].number == errors[j].number &&
			    errors[i].cause != errors[j].cause)
				fail_msg("%s and %s differ", errors[i].name, errors[j].name);
}

/* ---- the forms --------------------------------------------------------------------------------- */

static const char *name_of(const struct error *error)
{
	return error->name;
}

static const char *text_of(const struct error *error)
{
	return error->text;
}

/* A line that a program prints: the text before an error's name or text, and the text behind it. */
struct form {
	const char *before, *after;
	const char *(*said)(const struct error *error);
};

static const struct form cuda_forms[] = {
	/* PyTorch */
	{"RuntimeError: CUDA error: ", "", text_of},
	{"[rank3]: torch.AcceleratorError: CUDA error: ", "", text_of},
	{"  what():  CUDA error: ", " Search for `cudaErrorX' in https://docs", text_of},
	{"RuntimeError: CUDA driver error: ", "", text_of},
	{"RuntimeError: CUDA error: ", "", name_of},
	/* NCCL */
	{"n7:91:112 [3] enqueue.cc:1420 NCCL WARN Cuda failure '", "'", text_of},
	{"n7:91:112 [3] NCCL WARN Cuda failure 1 '", "'", text_of},
	/* the forms of XLA, CuPy, Kokkos, Triton, TensorRT and the samples of CUDA */
	{"failed call to cuInit: CUDA_ERROR_X: ", "", text_of},
	{"cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorX: ", "", text_of},
	{"RuntimeError: Triton Error [CUDA]: ", "", text_of},
	{"Error Code 1: Cuda Runtime (", ")", text_of},
	{"GPUassert: ", " kernel.cu 57", text_of},
	{"CUDA error at sum.cu:12 code=1(", ") \"cudaMalloc(&p, n)\"", name_of},
	/* Numba, DALI, cuda-python */
	{"numba.cuda.cudadrv.driver.CudaAPIError: [1] Call to cuMemcpyDtoH results in ", "",
	 name_of},
	{"CUDA runtime API error ", " (1):", name_of},
	{"CUDAError: ", ": it failed", name_of},
	/* A message that a call failed, of Horovod, UCX, JAX and TensorFlow */
	{"  what():  cudaEventSynchronize failed: ", "", text_of},
	{"[n7:91:0] cuda_copy_md.c:270 UCX  ERROR cuMemHostRegister_v2(p, n, 0x01) failed: ", "",
	 text_of},
	{"RuntimeError: jaxlib/cuda/versions_helpers.cc:113: operation cuInit(0) failed: ", "",
	 name_of},
	{"InternalError: cudaSetDevice() on GPU:0 failed. Status: ", "", text_of},
	/* FlashAttention, TensorRT-LLM, RAFT, cudarc */
	{"CUDA error (/src/flash_fwd_launch_template.h:123): ", "", text_of},
	{"[TensorRT-LLM][ERROR] CUDA runtime error in cudaMallocAsync(p, n, s): ", " (a.h:12)",
	 text_of},
	{"RuntimeError: CUDA error encountered at: file=/a.cu line=12: call='f(s)', Reason=",
	 ":text", name_of},
	{"DriverError(", ", \"text\")", name_of},
};

static const struct form hip_forms[] = {
	{"RuntimeError: HIP error: ", "", text_of},
	{"n7:91:112 [3] NCCL WARN HIP failure '", "'", text_of},
	{"RuntimeError: HIP error: ", "", name_of},
	{"RuntimeError: Triton Error [HIP]: ", "", text_of},
};

static const struct form nccl_forms[] = {
	{"torch.distributed.DistBackendError: NCCL error in: a.cpp:3356, ", ", NCCL version 2.27",
	 text_of},
	{"NCCL error: ", "", text_of},
	{"RuntimeError: NCCL Error 1: ", "", text_of},
	{"", ": Call failed", name_of},
};

static const struct form name_forms[] = {
	{"RuntimeError: CUDA error: ", " when calling `cublasCreate(handle)`", name_of},
	{"RuntimeError: cuDNN error: ", "", name_of},
	{"CUDA error: ", "", text_of},
};

static const struct form nvml_forms[] = {
	{"n7:91:112 [0] NCCL WARN nvmlInit_v2() failed: ", "", text_of},
	{"pynvml.NVMLError_X: ", "", text_of},
	{"Failed to initialize NVML: ", "", text_of},
	{"NVML error: ", "", name_of},
};

static const struct form kernel_forms[] = {
	{"NVRM: Xid (PCI:0000:3b:00): 79, pid=71, name=python, ", ".", text_of},
};

static const struct form container_forms[] = {
	{"nvidia-container-cli: initialization error: ", ": unknown", text_of},
};

static const struct form verbs_forms[] = {
	{"n7:91:140 [0] transport/net_ib.cc:90 NCCL WARN NET/IB : mlx5_0:1 async fatal event: ", "",
	 text_of},
};

static const struct {
	const struct form *forms;
	size_t len;
} forms[LIBRARIES] = {
	[RUNTIME] = {cuda_forms, HF_ARRAY_LEN(cuda_forms)},
	[DRIVER] = {cuda_forms, HF_ARRAY_LEN(cuda_forms)},
	[HIP] = {hip_forms, HF_ARRAY_LEN(hip_forms)},
	[NCCL] = {nccl_forms, HF_ARRAY_LEN(nccl_forms)},
	[CUBLAS] = {name_forms, HF_ARRAY_LEN(name_forms)},
	[CUDNN] = {name_forms, HF_ARRAY_LEN(name_forms)},
	[NVML] = {nvml_forms, HF_ARRAY_LEN(nvml_forms)},
	[KERNEL] = {kernel_forms, HF_ARRAY_LEN(kernel_forms)},
	[CONTAINER] = {container_forms, HF_ARRAY_LEN(container_forms)},
	[VERBS] = {verbs_forms, HF_ARRAY_LEN(verbs_forms)},
};

static void assert_said(const struct error *error, const char *line)
{
	struct hf_tail tail = {0};
	int cause;

	hf_tail_add(&tail, line, strlen(line), 0);
	hf_tail_add(&tail, "\n", 1, 0);
	cause = (int)hf_tail_cause(&tail, 0);
	if (cause != error->cause)
		fail_msg("%d, not %d (%s): %s", cause, error->cause, error->name, line);
}

static void each_form_of_each_row_gives_its_cause(void **state)
{
	char line[1024];

	for (size_t i = 0; i < HF_ARRAY_LEN(errors); i++) {
		for (size_t f = 0; f < forms[errors[i].library].len; f++) {
			const struct form *form = &forms[errors[i].library].forms[f];

			if (form->said(&errors[i])[0] == '\0')
				continue;
			snprintf(line, sizeof(line), "%s%s%s", form->before, form->said(&errors[i]),
				 form->after);
			assert_said(&errors[i], line);
		}
	}
}

/* A warning of torch.cuda holds the error's number without its name; RMM prints the name, a blank and the text. */
static void the_number_and_both_together_give_the_cause(void **state)
{
	char line[1024];

	for (size_t i = 0; i < HF_ARRAY_LEN(errors); i++) {
		if (errors[i].library > DRIVER || errors[i].text[0] == '\0')
			continue;
		snprintf(line, sizeof(line),
			 "UserWarning: Unexpected error from cudaGetDeviceCount(). Error %d: %s "
			 "(Triggered internally at a.cpp:108.)",
			 errors[i].number, errors[i].text);
		assert_said(&errors[i], line);
		snprintf(line, sizeof(line), "CUDA error at: /src/a.hpp:12: %s %s", errors[i].name,
			 errors[i].text);
		assert_said(&errors[i], line);
	}
}

/* The words of an error are no cause in a program's own sentence, in source code of a traceback and in a list. */
static void without_a_form_no_row_gives_a_cause(void **state)
{
	static const char *const sentences[] = {
		"retry on: %s", "the log said %s", "    if err == cudart.%s:", "errors = ['%s', ",
		"%s",           "note (%s) above", "saw %s 3 times",
	};
	struct hf_tail tail;
	char line[1024];

	for (size_t i = 0; i < HF_ARRAY_LEN(errors); i++) {
		for (size_t s = 0; s < 2 * HF_ARRAY_LEN(sentences); s++) {
			const char *said = s % 2 == 0 ? errors[i].text : errors[i].name;
			const char *form = sentences[s / 2], *place = strstr(form, "%s");

			snprintf(line, sizeof(line), "%.*s%s%s\n", (int)(place - form), form, said,
				 place + 2);
			memset(&tail, 0, sizeof(tail));
			hf_tail_add(&tail, line, strlen(line), 0);
			if (hf_tail_cause(&tail, 0) != HF_EXEC_CAUSE_NONE)
				fail_msg("%d: %s", (int)hf_tail_cause(&tail, 0), line);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_of_the_headers_has_a_row),
		cmocka_unit_test(each_row_has_a_name_of_the_headers),
		cmocka_unit_test(the_lists_are_as_long_as_the_headers),
		cmocka_unit_test(each_row_tells_its_source_and_its_reason),
		cmocka_unit_test(a_number_has_one_cause),
		cmocka_unit_test(each_form_of_each_row_gives_its_cause),
		cmocka_unit_test(the_number_and_both_together_give_the_cause),
		cmocka_unit_test(without_a_form_no_row_gives_a_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
