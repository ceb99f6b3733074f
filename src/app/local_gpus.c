/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The GPUs of this machine for `run` and `up`. Input: the flag --gpus, and what NVML and sysfs find. */
#include "app/local_gpus.h"

#include "base/str.h"
#include "kubelet/gpu_search.h"
#include "kubelet/kubelet.h"

#include <stdio.h>
#include <stdlib.h>

const char *hf_local_gpus_option(const struct hf_cli *cli)
{
	const char *flag = hf_cli_flag(cli, "gpus");
	const char *shell = getenv("CUDA_VISIBLE_DEVICES");
	struct hf_error err;

	if (flag != NULL || shell == NULL || !hf_streq(cli->verb->name, "run"))
		return flag;
	/* In CUDA_VISIBLE_DEVICES, "" and "-1" mean that no GPU is visible. */
	if (*shell == '\0' || hf_streq(shell, "-1"))
		return "none";
	/* If the variable has names (GPU-…, MIG-…) instead of numbers, offer every GPU: names are
	 * not supported here. */
	return hf_gpu_option_check(shell, &err) == 0 ? shell : NULL;
}

int64_t hf_local_gpus_named(const struct hf_cli *cli)
{
	const char *flag = hf_cli_flag(cli, "gpus");
	int64_t n = 0;

	if (flag == NULL || hf_streq(flag, "all") || hf_streq(flag, "none"))
		return 0;
	for (size_t i = 0; i < HF_GPUS_MAX; i++)
		n += hf_gpu_option_allows(flag, i);
	return n;
}

int hf_local_gpus_check(const struct hf_cli *cli)
{
	struct hf_error err;

	if (hf_gpu_option_check(hf_cli_flag(cli, "gpus"), &err) == 0)
		return 0;
	return hf_cli_usage(cli, "--gpus: %s", err.text);
}

struct hf_local_gpus hf_local_gpus_count(const struct hf_cli *cli)
{
	struct hf_kubelet_gpu_counts counts;
	struct hf_local_gpus gpus = {0};
	struct hf_error err;

	if (!cli->starts_helpers)
		return gpus;
	if (hf_kubelet_count_gpus(hf_local_gpus_option(cli), NULL, &counts, &err) != 0) {
		(void)snprintf(gpus.why, sizeof(gpus.why), "%s", err.text);
		return gpus;
	}
	gpus.nvidia = counts.nvidia;
	gpus.amd = counts.amd;
	(void)snprintf(gpus.why, sizeof(gpus.why), "%s", counts.why);
	return gpus;
}
