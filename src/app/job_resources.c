/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Computes the resources that the pods of a job ask for. Input: a checked manifest. */
#include "app/job_resources.h"

#include "base/quantity.h"
#include "base/str.h"
#include "kubelet/kubelet.h"

#include <inttypes.h>
#include <stdio.h>

#define NVIDIA "nvidia.com/gpu"
#define AMD "amd.com/gpu"
#define DISK "ephemeral-storage"

const char *const hf_job_resources[] = {"cpu", "memory", DISK, NVIDIA, AMD, NULL};

int hf_max_pods_read(const struct hf_cli *cli, int *ret_pods)
{
	const char *text = hf_cli_flag(cli, "max-pods");
	int64_t pods = HF_KUBELET_PODS_MAX;
	struct hf_error err;

	if (text != NULL && hf_str_to_i64(text, 1, HF_MAX_PODS_LIMIT, &pods, &err) != 0)
		return hf_cli_usage(cli, "--max-pods: %s", err.text);
	*ret_pods = (int)pods;
	return 0;
}

int hf_network_read(const struct hf_cli *cli, bool *ret_host)
{
	const char *network = hf_str_or(hf_cli_flag(cli, "network"), "auto");

	*ret_host = hf_streq(network, "host");
	if (!*ret_host && !hf_streq(network, "auto"))
		return hf_cli_usage(cli, "--network takes auto or host, not '%s'", network);
	return 0;
}

bool hf_job_replicas_next(const struct hf_framework *framework, const struct hf_json *job,
			  void **it, struct hf_job_replicas *ret_replicas)
{
	const struct hf_json *all = hf_json_path(job, "spec", framework->replicas_key, NULL);
	struct hf_json *value;
	const char *type;
	int role;

	do {
		*it = hf_json_next(all, *it, &type, &value);
		if (*it == NULL)
			return false;
	} while (hf_json_type(value) != HF_JSON_OBJECT);
	role = hf_framework_role(framework, type);
	*ret_replicas = (struct hf_job_replicas){
		.type = type,
		.n = hf_json_i64(hf_json_get(value, "replicas"), 1),
		.spec = hf_json_get(hf_json_get(value, "template"), "spec"),
		.value = value,
		.command_given = hf_has_role(framework->given_commands, role),
	};
	(void)snprintf(ret_replicas->path, sizeof(ret_replicas->path),
		       "spec.%s[%.60s].template.spec", framework->replicas_key, type);
	return true;
}

int64_t hf_job_request_of(const struct hf_json *container, const char *resource)
{
	static const char *const keys[] = {"requests", "limits"};

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++) {
		const struct hf_json *value =
			hf_json_get(hf_json_path(container, "resources", keys[i], NULL), resource);
		char number[32];
		const char *text = hf_json_str(value, NULL);
		int64_t milli;

		if (text == NULL && value != NULL) {
			(void)snprintf(number, sizeof(number), "%" PRId64, hf_json_i64(value, 0));
			text = number;
		}
		if (text != NULL && hf_quantity_parse_milli(text, &milli, NULL) == 0)
			return milli;
	}
	return 0;
}

static bool is_sidecar(const struct hf_json *init_container)
{
	return hf_streq(hf_json_path_str(init_container, "restartPolicy", NULL), "Always");
}

/* As the scheduler counts: all containers run at once, sidecars too, and other init containers run one by one before. */
int64_t hf_job_request(const struct hf_json *pod_spec, const char *resource)
{
	const struct hf_json *list = hf_json_get(pod_spec, "containers");
	const struct hf_json *inits = hf_json_get(pod_spec, "initContainers");
	int64_t total = 0, before = 0;

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (__builtin_add_overflow(
			    total, hf_job_request_of(hf_json_item(list, i), resource), &total))
			return INT64_MAX;
	for (size_t i = 0; i < hf_json_len(inits); i++) {
		int64_t one = hf_job_request_of(hf_json_item(inits, i), resource);

		if (!is_sidecar(hf_json_item(inits, i)))
			before = one > before ? one : before;
		else if (__builtin_add_overflow(total, one, &total))
			return INT64_MAX;
	}
	return total > before ? total : before;
}

int64_t hf_job_requests(const struct hf_framework *framework, const struct hf_json *job,
			const char *resource)
{
	struct hf_job_replicas r;
	int64_t total = 0, all;

	for (void *it = NULL; hf_job_replicas_next(framework, job, &it, &r);)
		if (__builtin_mul_overflow(hf_job_request(r.spec, resource), r.n, &all) ||
		    __builtin_add_overflow(total, all, &total))
			return INT64_MAX;
	return total;
}

int64_t hf_job_machine_has(const struct hf_local_machine *machine, const char *resource)
{
	int64_t amount = hf_streq(resource, "cpu")      ? machine->cpus
			 : hf_streq(resource, "memory") ? machine->memory_bytes
			 : hf_streq(resource, DISK)     ? machine->disk_bytes
			 : hf_streq(resource, NVIDIA)   ? machine->nvidia
			 : hf_streq(resource, AMD)      ? machine->amd
							: 0;
	int64_t milli;

	return __builtin_mul_overflow(amount, 1000, &milli) ? INT64_MAX : milli;
}

bool hf_job_wants_gpus(const struct hf_framework *framework, const struct hf_json *job)
{
	for (size_t i = 0; hf_job_resources[i] != NULL; i++)
		if (!hf_job_is_common(hf_job_resources[i]) &&
		    hf_job_requests(framework, job, hf_job_resources[i]) > 0)
			return true;
	return false;
}

bool hf_job_is_common(const char *resource)
{
	return hf_streq(resource, "cpu") || hf_streq(resource, "memory") ||
	       hf_streq(resource, DISK) || hf_streq(resource, "pods");
}

bool hf_job_knows(const char *resource)
{
	for (size_t i = 0; hf_job_resources[i] != NULL; i++)
		if (hf_streq(resource, hf_job_resources[i]))
			return true;
	return hf_job_is_common(resource);
}

void hf_job_format_amount(const char *resource, int64_t milli, char ret_text[HF_JOB_AMOUNT_MAX])
{
	if (hf_streq(resource, "cpu"))
		(void)snprintf(ret_text, HF_JOB_AMOUNT_MAX, "%g CPUs", (double)milli / 1000);
	else if (hf_streq(resource, "memory"))
		(void)snprintf(ret_text, HF_JOB_AMOUNT_MAX, "%.1f GiB of memory",
			       (double)milli / 1000 / ((int64_t)1 << 30));
	else if (hf_streq(resource, DISK))
		(void)snprintf(ret_text, HF_JOB_AMOUNT_MAX, "%.1f GiB of disk (" DISK ")",
			       (double)milli / 1000 / ((int64_t)1 << 30));
	else if (milli == 0)
		(void)snprintf(ret_text, HF_JOB_AMOUNT_MAX, "none");
	else
		(void)snprintf(ret_text, HF_JOB_AMOUNT_MAX, "%" PRId64 " %.80s", milli / 1000,
			       resource);
}
