/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_GPU_SEARCH_H
#define HF_KUBELET_GPU_SEARCH_H

#include "base/error.h"
#include "json/json.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>

/* Finds the GPUs of this machine: NVIDIA's by NVML, AMD's by sysfs. */
struct hf_gpu_search;

#define HF_GPUS_MAX 128

/* Called once, from the loop. gpus: a list of {"resource", "id"}; NULL: the search failed. why: the
 * reason why GPUs may be missing, or "". Both are borrowed for the call. */
typedef void (*hf_gpu_search_fn)(void *arg, const struct hf_json *gpus, const char *why);

struct hf_gpu_search_options {
	struct hf_loop *loop;
	const char *exe; /* path of the program with the verb "shim", which is started */
	const char *sysfs;
	hf_gpu_search_fn found;
	void *arg;
};
int hf_gpu_search_start(const struct hf_gpu_search_options *options,
			struct hf_gpu_search **ret_search, struct hf_error *err) HF_MUST_CHECK;
/* NULL is allowed; returns NULL. */
struct hf_gpu_search *hf_gpu_search_destroy(struct hf_gpu_search *search);

/* Checks the text of the option `gpus` (kubelet.h). HF_E_INVALID: it is not "all", "none" or a
 * list of numbers. */
int hf_gpu_option_check(const char *option, struct hf_error *err) HF_MUST_CHECK;
/* Tells whether the option allows the GPU number `place`. The numbers count the GPUs of all kinds
 * in one sequence. */
bool hf_gpu_option_allows(const char *option, size_t place);

#endif
