/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_JOB_RESOURCES_H
#define HF_APP_JOB_RESOURCES_H

#include "cli/job_manifest.h"

/* The resources that the pods of a job ask for, and the resources of a machine. Amounts are in
 * thousandths. Pure. */

struct hf_local_machine {
	int64_t cpus;
	int64_t memory_bytes;
	int64_t disk_bytes;  /* of the file system with the pods' folders */
	int64_t nvidia, amd; /* GPUs for pods */
	int64_t pods;        /* that the node takes */
};

/* The flag --max-pods of `run` and `up`: how many pods the node takes. Set the default without the flag.
 * Returns 0, or HF_EXIT_USAGE after a message. */
#define HF_MAX_PODS_LIMIT 1000
int hf_max_pods_read(const struct hf_cli *cli, int *ret_pods);

/* The flag --network of `run` and `up`: true for host, false for auto and without the flag. Returns 0, or
 * HF_EXIT_USAGE after a message. */
int hf_network_read(const struct hf_cli *cli, bool *ret_host);

/* One replica type of the job. */
struct hf_job_replicas {
	const char *type;
	int64_t n;
	struct hf_json *spec;  /* of the pods */
	struct hf_json *value; /* the whole entry */
	char path[256];
	/* the operator sets the command of the first container, so the manifest needs none */
	bool command_given;
};

/* Read the next replica type of a job's document. Set *it to NULL before the first call. */
bool hf_job_replicas_next(const struct hf_framework *framework, const struct hf_json *job,
			  void **it, struct hf_job_replicas *ret_replicas);

/* How much of the resource the container requests; without a request, its limit. */
int64_t hf_job_request_of(const struct hf_json *container, const char *resource);
/* What a pod requests, as the scheduler counts: the sum of its containers and sidecars, or the request of one other
 * init container if that is more. At most INT64_MAX. */
int64_t hf_job_request(const struct hf_json *pod_spec, const char *resource);
/* The sum of hf_job_request over all pods of the job, at most INT64_MAX. */
int64_t hf_job_requests(const struct hf_framework *framework, const struct hf_json *job,
			const char *resource);

/* The resource names for hf_job_machine_has: CPU, memory, disk and GPUs; ends with NULL. */
extern const char *const hf_job_resources[];
int64_t hf_job_machine_has(const struct hf_local_machine *machine, const char *resource);
/* True if the pods of the job ask for GPUs. */
bool hf_job_wants_gpus(const struct hf_framework *framework, const struct hf_json *job);
/* True for a resource that every node has (CPU, memory, storage). All other resources are
 * devices. */
bool hf_job_is_common(const char *resource);
/* True for a resource that every node has, or for GPUs. The plane's node offers no other
 * resources. */
bool hf_job_knows(const char *resource);

/* Write an amount for a person: "2 CPUs", "1.5 GiB of memory", "3 nvidia.com/gpu". */
#define HF_JOB_AMOUNT_MAX 128
void hf_job_format_amount(const char *resource, int64_t milli, char ret_text[HF_JOB_AMOUNT_MAX]);

#endif
