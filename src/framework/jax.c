/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * JAXJob. It has Workers only. Worker 0 is the coordinator; every rank gets its address, the
 * number of processes and its own index as environment variables.
 */
#include "framework/framework.h"
#include "framework/replicas_internal.h"

#include "core/model/names.h"

enum { WORKER };

static void jax_validate(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	static const struct hf_replicas_rules rules = {
		.known_types_only = true, .single_role = -1, .required_role = -1};

	hf_replicas_validate(view, &rules, errors);
}

static int jax_pod(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		   struct hf_error *err)
{
	int32_t port;
	int rc = hf_replicas_port(job, WORKER, &port, err);

	hf_assert(rank->role == WORKER);
	if (rc < 0)
		return rc;
	hf_replicas_env(edits, "PYTHONUNBUFFERED", "1");
	hf_replicas_env_number(edits, "COORDINATOR_PORT", port);
	hf_replicas_env(edits, "COORDINATOR_ADDRESS",
			hf_replica_name(edits->arena, job->view->name, "Worker", 0));
	hf_replicas_env_number(edits, "NUM_PROCESSES", hf_job_total(job));
	hf_replicas_env_number(edits, "PROCESS_ID", rank->index);
	return 0;
}

static bool jax_is_master(const struct hf_job *job, const struct hf_rank *rank)
{
	hf_assert(job->framework == &hf_framework_jax);
	return rank->index == 0;
}

static void jax_judge(const struct hf_job *job, const struct hf_counts *counts,
		      struct hf_arena *arena, struct hf_judgement *ret_judgement)
{
	hf_replicas_judge(job, counts, WORKER, ret_judgement);
	hf_replicas_messages(job, true, arena, ret_judgement);
}

const struct hf_framework hf_framework_jax = {
	.api_version = "kubeflow.org/v1",
	.group = "kubeflow.org",
	.version = "v1",
	.kind = "JAXJob",
	.plural = "jaxjobs",
	.singular = "jaxjob",
	.replicas_key = "jaxReplicaSpecs",
	.container_name = "jax",
	.port_name = "jaxjob-port",
	.port_number = 6666,
	.inject_port = true,
	.has_services = true,
	.default_restart = HF_RESTART_NEVER,
	.controller_name = "jaxjob-controller",
	.metrics_name = "jax",
	.has_scale = true,
	.scale_role = WORKER,
	.roles = {[WORKER] = {.name = "Worker", .default_replicas = 1}},
	.roles_len = 1,
	.validate = jax_validate,
	.pod = jax_pod,
	.is_master = jax_is_master,
	.judge = jax_judge,
};
