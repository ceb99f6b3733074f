/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * TFJob. Every rank learns the addresses of all others from TF_CONFIG. The Chief or the Master
 * decides about the job. Without either, Worker 0 decides, or all Workers if successPolicy is
 * AllWorkers.
 */
#include "framework/framework.h"
#include "framework/replicas_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <string.h>

/* The roles of a TFJob, in the order in which upstream handles them. */
enum { CHIEF, EVALUATOR, MASTER, PS, WORKER };

#define CONTAINER_NAME "tensorflow"
#define ALL_WORKERS "AllWorkers"
#define CONFIG_VARIABLE "the variable TF_CONFIG"

/* ---- validation ----------------------------------------------------------------------------- */

static void tensorflow_validate(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	/* Any replica type is accepted; types that TFJob does not define have no ranks. */
	static const struct hf_replicas_rules rules = {.single_role = -1, .required_role = -1};
	int deciders = 0;

	hf_replicas_validate(view, &rules, errors);
	for (size_t i = 0; i < view->replicas_len; i++)
		deciders += hf_streq(view->replicas[i].type, "Chief") ||
			    hf_streq(view->replicas[i].type, "Master");
	if (deciders > 1)
		hf_field_add(errors, HF_PROBLEM_FORBIDDEN, NULL,
			     "must not have more than 1 Chief or Master role",
			     "spec.tfReplicaSpecs");
}

/* ---- TF_CONFIG ------------------------------------------------------------------------------ */

static void add_address(const struct hf_job *job, int role, int32_t index, struct hf_arena *arena,
			struct hf_strbuf *sb)
{
	const char *domain = job->settings->cluster_domain;
	const char *name =
		hf_replica_name(arena, job->view->name, job->framework->roles[role].name, index);

	hf_strbuf_addf(sb, "\"%s.%s.svc%s%s:%d\"", name, hf_str_or(job->view->ns, ""),
		       hf_str_is_empty(domain) ? "" : ".", hf_str_or(domain, ""),
		       job->roles[role].port);
}

static void add_addresses(const struct hf_job *job, int role, struct hf_arena *arena,
			  struct hf_strbuf *sb)
{
	hf_strbuf_addstr(sb, "[");
	for (int32_t i = 0; i < job->roles[role].replicas; i++) {
		hf_strbuf_addstr(sb, i > 0 ? "," : "");
		add_address(job, role, i, arena, sb);
	}
	hf_strbuf_addstr(sb, "]");
}

/* Makes the cluster section of TF_CONFIG once, for all ranks. The roles are sorted by their
 * keys. */
static int share_cluster(const struct hf_job *job, struct hf_edits *edits, struct hf_error *err)
{
	HF_AUTO_STRBUF cluster = HF_STRBUF_INIT(HF_ENV_VALUE_MAX);
	const char *comma = "";
	int rc;

	hf_strbuf_addstr(&cluster, "{");
	for (int role = CHIEF; role <= WORKER; role++) {
		if (!job->roles[role].present)
			continue;
		hf_strbuf_addf(&cluster, "%s\"%s\":", comma,
			       hf_type_lower(edits->arena, job->framework->roles[role].name));
		add_addresses(job, role, edits->arena, &cluster);
		comma = ",";
	}
	hf_strbuf_addstr(&cluster, "}");
	rc = hf_strbuf_ok(&cluster, CONFIG_VARIABLE, err);
	if (rc == 0)
		*edits->shared = hf_arena_strdup(edits->arena, cluster.data);
	return rc;
}

/* Makes the cluster section of TF_CONFIG for dynamic workers. A rank gets only its own address and
 * those of the parameter servers, because other workers come and go. */
static void add_sparse_cluster(const struct hf_job *job, const struct hf_rank *rank,
			       struct hf_arena *arena, struct hf_strbuf *sb)
{
	hf_strbuf_addstr(sb, "{\"worker\":{");
	if (rank->role == WORKER) {
		hf_strbuf_addf(sb, "\"%d\":", rank->index);
		add_address(job, WORKER, rank->index, arena, sb);
	}
	hf_strbuf_addstr(sb, "},\"ps\":");
	if (rank->role == WORKER && !job->roles[PS].present) {
		hf_strbuf_addstr(sb, "null");
	} else if (rank->role == WORKER) {
		add_addresses(job, PS, arena, sb);
	} else {
		hf_strbuf_addstr(sb, "[");
		if (rank->role == PS)
			add_address(job, PS, rank->index, arena, sb);
		hf_strbuf_addstr(sb, "]");
	}
	hf_strbuf_addstr(sb, "}");
}

static int tensorflow_pod(const struct hf_job *job, const struct hf_rank *rank,
			  struct hf_edits *edits, struct hf_error *err)
{
	const struct hf_role *role;
	bool sparse = job->view->dynamic_workers;
	HF_AUTO_STRBUF config = HF_STRBUF_INIT(HF_ENV_VALUE_MAX);
	int rc = 0;

	hf_assert(rank->role >= CHIEF && rank->role <= WORKER);
	role = &job->roles[rank->role];
	/* A single rank trains locally and needs no TF_CONFIG. */
	if (hf_job_total(job) == 1 || role->pod->containers_len == 0 ||
	    !hf_streq(role->pod->containers[role->default_container].name, CONTAINER_NAME))
		return 0;
	if (!sparse && !*edits->shared)
		rc = share_cluster(job, edits, err);
	if (rc < 0)
		return rc;
	hf_strbuf_addstr(&config, "{\"cluster\":");
	if (sparse)
		add_sparse_cluster(job, rank, edits->arena, &config);
	else
		hf_strbuf_addstr(&config, *edits->shared);
	hf_strbuf_addf(&config, ",\"task\":{\"type\":\"%s\",\"index\":%d}%s}",
		       hf_type_lower(edits->arena, job->framework->roles[rank->role].name),
		       rank->index, sparse ? "" : ",\"environment\":\"cloud\"");
	rc = hf_strbuf_ok(&config, CONFIG_VARIABLE, err);
	if (rc == 0)
		hf_edits_env_text(edits, (int)role->default_container, "TF_CONFIG",
				  hf_arena_strdup(edits->arena, config.data));
	return rc;
}

/* ---- counts to conditions -------------------------------------------------------------------- */

static int deciding_role(const struct hf_job *job)
{
	if (job->roles[CHIEF].present)
		return CHIEF;
	return job->roles[MASTER].present ? MASTER : WORKER;
}

static bool tensorflow_is_master(const struct hf_job *job, const struct hf_rank *rank)
{
	int role = deciding_role(job);

	hf_assert(job->framework == &hf_framework_tensorflow);
	if (role == WORKER)
		return rank->role == WORKER && rank->index == 0;
	return rank->role == CHIEF || rank->role == MASTER;
}

static void tensorflow_judge(const struct hf_job *job, const struct hf_counts *counts,
			     struct hf_arena *arena, struct hf_judgement *ret_judgement)
{
	int role = deciding_role(job);

	hf_replicas_judge(job, counts, role, ret_judgement);
	hf_replicas_messages(job, true, arena, ret_judgement);
	if (role == WORKER && counts[WORKER].first_succeeded &&
	    !hf_streq(job->view->success_policy, ALL_WORKERS))
		ret_judgement->succeeded = true;
}

/* Dynamic workers come and go, so a failed worker does not fail the job, as in upstream. */
static bool tensorflow_outlives(const struct hf_job *job, int role)
{
	hf_assert(job->framework == &hf_framework_tensorflow);
	return role == WORKER && job->view->dynamic_workers;
}

static const char *tensorflow_failed(const struct hf_job *job, int role, int32_t failed,
				     struct hf_arena *arena)
{
	return hf_arena_printf(arena, "TFJob %s/%s has failed because %d %s replica(s) failed.",
			       hf_str_or(job->view->ns, ""), job->view->name, failed,
			       job->framework->roles[role].name);
}

const struct hf_framework hf_framework_tensorflow = {
	.api_version = "kubeflow.org/v1",
	.group = "kubeflow.org",
	.version = "v1",
	.kind = "TFJob",
	.any_type = true,
	.plural = "tfjobs",
	.singular = "tfjob",
	.replicas_key = "tfReplicaSpecs",
	.container_name = CONTAINER_NAME,
	.port_name = "tfjob-port",
	.port_number = 2222,
	.inject_port = true,
	.has_services = true,
	.default_restart = HF_RESTART_NEVER,
	.controller_name = "tfjob-controller",
	.metrics_name = "tensorflow",
	.roles = {[CHIEF] = {.name = "Chief", .default_replicas = 1},
		  [EVALUATOR] = {.name = "Evaluator", .default_replicas = 1},
		  [MASTER] = {.name = "Master", .default_replicas = 1},
		  [PS] = {.name = "PS", .default_replicas = 1},
		  [WORKER] = {.name = "Worker", .default_replicas = 1}},
	.roles_len = 5,
	.validate = tensorflow_validate,
	.pod = tensorflow_pod,
	.is_master = tensorflow_is_master,
	.judge = tensorflow_judge,
	.outlives = tensorflow_outlives,
	.failed_message = tensorflow_failed,
};
