/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_LOCAL_GPUS_H
#define HF_APP_LOCAL_GPUS_H

#include "cli/cli.h"

/* The GPUs of this machine for the pods of `run` and `up`: the flag --gpus, and how many there are. */
struct hf_local_gpus {
	int64_t nvidia, amd;
	char why[HF_ERROR_TEXT_MAX]; /* why GPUs may be missing; "": no reason is known */
};

/* Return the value of --gpus. Without the flag, `run` uses the numbers in $CUDA_VISIBLE_DEVICES.
 * NULL: all GPUs. */
const char *hf_local_gpus_option(const struct hf_cli *cli);
/* How many GPUs the flag names by number; 0: it names none. */
int64_t hf_local_gpus_named(const struct hf_cli *cli);
/* Check the flag.  Returns 0, or HF_EXIT_USAGE after a message. */
int hf_local_gpus_check(const struct hf_cli *cli);
/* Count the GPUs that the flag allows.  Blocks until NVML has answered, at most 20 s. */
struct hf_local_gpus hf_local_gpus_count(const struct hf_cli *cli);

#endif
