/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * XGBoostJob, for XGBoost's tracker or LightGBM. Master 0 decides about the job. All ranks find
 * it by MASTER_ADDR, and the Workers of LightGBM find each other by WORKER_ADDRS.
 */
#include "framework/framework.h"
#include "framework/replicas_internal.h"

#include "core/model/names.h"

enum { MASTER, WORKER };

static void xgboost_validate(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	static const struct hf_replicas_rules rules = {
		.known_types_only = true, .single_role = MASTER, .required_role = MASTER};

	hf_replicas_validate(view, &rules, errors);
}

static int join_peers(const struct hf_job *job, int32_t total, struct hf_edits *edits,
		      struct hf_error *err)
{
	HF_AUTO_STRBUF addresses = HF_STRBUF_INIT(HF_ENV_VALUE_MAX);
	int rc;

	for (int32_t i = 0; i < total - 1; i++)
		hf_strbuf_addf(&addresses, "%s%s", i > 0 ? "," : "",
			       hf_replica_name(edits->arena, job->view->name, "Worker", i));
	rc = hf_strbuf_ok(&addresses, "the variable WORKER_ADDRS", err);
	if (rc == 0)
		*edits->shared = hf_arena_strdup(edits->arena, addresses.data);
	return rc;
}

/* Sets the list of peers, which LightGBM needs. */
static int set_peers(const struct hf_job *job, int32_t total, struct hf_edits *edits,
		     struct hf_error *err)
{
	int32_t port;
	int rc = hf_replicas_port(job, WORKER, &port, err);

	if (rc == 0 && !*edits->shared)
		rc = join_peers(job, total, edits, err);
	if (rc < 0)
		return rc;
	hf_replicas_env_number(edits, "WORKER_PORT", port);
	hf_replicas_env(edits, "WORKER_ADDRS", *edits->shared);
	return 0;
}

static int xgboost_pod(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		       struct hf_error *err)
{
	int64_t number = rank->index;
	int32_t total = hf_job_total(job), port;
	int rc = hf_replicas_port(job, MASTER, &port, err);

	hf_assert(rank->role == MASTER || rank->role == WORKER);
	if (rc < 0)
		return rc;
	if (rank->role == WORKER)
		number += job->roles[MASTER].replicas;
	hf_replicas_env_number(edits, "MASTER_PORT", port);
	hf_replicas_env(edits, "MASTER_ADDR",
			hf_replica_name(edits->arena, job->view->name, "Master", 0));
	hf_replicas_env_number(edits, "WORLD_SIZE", total);
	hf_replicas_env_number(edits, "RANK", number);
	hf_replicas_env(edits, "PYTHONUNBUFFERED", "1");
	return total > 1 ? set_peers(job, total, edits, err) : 0;
}

static bool xgboost_is_master(const struct hf_job *job, const struct hf_rank *rank)
{
	hf_assert(job->framework == &hf_framework_xgboost);
	return rank->role == MASTER;
}

static void xgboost_judge(const struct hf_job *job, const struct hf_counts *counts,
			  struct hf_arena *arena, struct hf_judgement *ret_judgement)
{
	hf_replicas_judge(job, counts, MASTER, ret_judgement);
	hf_replicas_messages(job, false, arena, ret_judgement);
}

const struct hf_framework hf_framework_xgboost = {
	.api_version = "kubeflow.org/v1",
	.group = "kubeflow.org",
	.version = "v1",
	.kind = "XGBoostJob",
	.plural = "xgboostjobs",
	.singular = "xgboostjob",
	.replicas_key = "xgbReplicaSpecs",
	.container_name = "xgboost",
	.port_name = "xgboostjob-port",
	.port_number = 9999,
	.inject_port = true,
	.has_services = true,
	.default_restart = HF_RESTART_NEVER,
	.controller_name = "xgboostjob-controller",
	.metrics_name = "xgboost",
	.roles = {[MASTER] = {.name = "Master", .default_replicas = 1},
		  [WORKER] = {.name = "Worker", .default_replicas = 1}},
	.roles_len = 2,
	.validate = xgboost_validate,
	.pod = xgboost_pod,
	.is_master = xgboost_is_master,
	.judge = xgboost_judge,
};
