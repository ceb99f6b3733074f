/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * PaddleJob. Without a Master, the Workers train collectively and rendezvous at Worker 0. With a
 * Master, the Master is the parameter server and the Workers are its trainers.
 */
#include "framework/framework.h"
#include "framework/replicas_internal.h"

#include "core/model/names.h"

enum { MASTER, WORKER };

/* The variable with the pod's own IP address, which the kubelet fills in. The rank that is the
 * rendezvous binds to this address. */
#define OWN_ADDRESS "POD_IP_DUMMY"

static bool has_master(const struct hf_job *job)
{
	return job->roles[MASTER].present;
}

static void paddle_validate(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	static const struct hf_replicas_rules rules = {.known_types_only = true,
						       .single_role = -1,
						       .required_role = -1,
						       .quoted_container = true};

	hf_replicas_validate(view, &rules, errors);
}

static void paddle_defaults(struct hf_arena *arena, struct hf_job *job)
{
	hf_assert(job->framework == &hf_framework_paddle);
	hf_replicas_elastic(job, WORKER);
}

static int set_rendezvous_address(const struct hf_job *job, const struct hf_rank *rank,
				  struct hf_edits *edits, struct hf_error *err)
{
	int role = has_master(job) ? MASTER : WORKER;
	const char *type = job->framework->roles[role].name;
	const char *host = "$(" OWN_ADDRESS ")";
	int32_t port;
	int rc = hf_replicas_port(job, role, &port, err);

	if (rc < 0)
		return rc;
	if (rank->role == role && rank->index == 0) {
		struct hf_edit own = {.kind = HF_EDIT_ENV_FIELD,
				      .container = HF_EDIT_EVERY_CONTAINER,
				      .name = OWN_ADDRESS,
				      .value = "status.podIP"};

		hf_edits_add(edits, &own);
	} else {
		host = hf_replica_name(edits->arena, job->view->name, type, 0);
	}
	hf_edits_env(edits, HF_EDIT_EVERY_CONTAINER, "PADDLE_MASTER", "%s:%d", host, port);
	return 0;
}

static int paddle_pod(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		      struct hf_error *err)
{
	int rc;

	hf_assert(rank->role == MASTER || rank->role == WORKER);
	hf_replicas_env(edits, "PYTHONUNBUFFERED", "1");
	hf_replicas_env(edits, "PADDLE_JOB_ID", job->view->name);
	hf_replicas_env_number(edits, "PADDLE_NNODES", hf_job_total(job));
	rc = set_rendezvous_address(job, rank, edits, err);
	if (rc == 0 && has_master(job))
		hf_replicas_env(edits,
				rank->role == MASTER ? "PADDLE_SERVER_NUM" : "PADDLE_TRAINER_NUM",
				"1");
	return rc;
}

static bool paddle_is_master(const struct hf_job *job, const struct hf_rank *rank)
{
	hf_assert(job->framework == &hf_framework_paddle);
	return rank->role == MASTER;
}

static void paddle_judge(const struct hf_job *job, const struct hf_counts *counts,
			 struct hf_arena *arena, struct hf_judgement *ret_judgement)
{
	bool master = has_master(job);

	hf_replicas_judge(job, counts, master ? MASTER : WORKER, ret_judgement);
	hf_replicas_messages(job, !master, arena, ret_judgement);
}

const struct hf_framework hf_framework_paddle = {
	.api_version = "kubeflow.org/v1",
	.group = "kubeflow.org",
	.version = "v1",
	.kind = "PaddleJob",
	.plural = "paddlejobs",
	.singular = "paddlejob",
	.replicas_key = "paddleReplicaSpecs",
	.container_name = "paddle",
	.port_name = "master",
	.port_number = 36543,
	.inject_port = true,
	.has_services = true,
	.default_restart = HF_RESTART_ON_FAILURE,
	.controller_name = "paddlejob-controller",
	.metrics_name = "paddle",
	.has_scale = true,
	.scale_role = WORKER,
	.roles = {[MASTER] = {.name = "Master", .default_replicas = 1},
		  [WORKER] = {.name = "Worker", .default_replicas = 1}},
	.roles_len = 2,
	.validate = paddle_validate,
	.defaults = paddle_defaults,
	.pod = paddle_pod,
	.is_master = paddle_is_master,
	.judge = paddle_judge,
};
