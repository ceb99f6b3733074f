/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * PyTorchJob: a Master and Workers that find each other by MASTER_ADDR (static), or Workers that
 * meet at a rendezvous (elastic, torchrun). A job may use both.
 */
#include "framework/framework.h"
#include "framework/replicas_internal.h"

#include "base/str.h"
#include "core/model/names.h"

#include <stdlib.h>
#include <string.h>

enum { MASTER, WORKER };

#define CONTAINER_NAME "pytorch"
#define PORT_NAME "pytorchjob-port"
#define INIT_CONTAINER "init-pytorch"
#define INIT_IMAGE "alpine:3.10"
#define INIT_TRIES 100
/* bytes of the list of key=value pairs in PET_RDZV_CONF */
#define RDZV_CONF_MAX ((size_t)16 << 10)

static bool has_master(const struct hf_job *job)
{
	return job->roles[MASTER].present;
}

/* ---- validation and defaults ---------------------------------------------------------------- */

/* Larger than any number of processes on a machine. Multiplied by HF_RANKS_MAX, such a number
 * stays far below 2^63. */
#define NPROC_DIGITS_MAX 9
#define NPROC_PROBLEM "a number may have 9 digits at most"

/* True if the text is a number with too many digits. */
static bool has_too_many_digits(const char *nproc)
{
	const char *digits = nproc + (nproc[0] == '-' || nproc[0] == '+');
	size_t len = strspn(digits, "0123456789");

	return len > NPROC_DIGITS_MAX && digits[len] == '\0';
}

static void pytorch_validate(const struct hf_job_view *view, struct hf_field_errors *errors)
{
	static const struct hf_replicas_rules rules = {.known_types_only = true,
						       .single_role = MASTER,
						       .others_at_least_one = true,
						       .required_role = -1};
	const struct hf_elastic_policy *elastic = &view->elastic;
	bool worker = false;

	for (size_t i = 0; i < view->replicas_len; i++)
		worker = worker || hf_streq(view->replicas[i].type, "Worker");
	if (elastic->present && !worker)
		hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL,
			     "must be configured if elastic policy is used",
			     "spec.pytorchReplicaSpecs[Worker]");
	if (elastic->present && elastic->nproc_per_node.set) {
		hf_field_warn(errors, "spec.elasticPolicy.nProcPerNode is deprecated, use "
				      "spec.nprocPerNode instead");
		if (view->nproc_per_node)
			hf_field_add(errors, HF_PROBLEM_FORBIDDEN, NULL,
				     "must not be used with spec.nprocPerNode",
				     "spec.elasticPolicy.nProcPerNode");
	}
	if (view->nproc_per_node && has_too_many_digits(view->nproc_per_node))
		hf_field_add(errors, HF_PROBLEM_INVALID,
			     hf_field_quote(errors, view->nproc_per_node), NPROC_PROBLEM,
			     "spec.nprocPerNode");
	hf_replicas_validate(view, &rules, errors);
}

static void pytorch_defaults(struct hf_arena *arena, struct hf_job *job)
{
	const struct hf_elastic_policy *elastic = &job->elastic;

	hf_assert(job->framework == &hf_framework_pytorch);
	hf_replicas_elastic(job, WORKER);
	if (!job->nproc_per_node && !(elastic->present && elastic->nproc_per_node.set))
		job->nproc_per_node = "auto";
}

/* ---- a pod -------------------------------------------------------------------------------------- */

/* Reads nprocPerNode. Upstream multiplies the world size by nprocPerNode only if that is a number.
 * A job that was created under another operator may have a number that is too large: only this
 * operator's validation refuses it. */
static int read_nproc(const struct hf_job *job, int64_t *ret_nproc, struct hf_error *err)
{
	const char *nproc = job->nproc_per_node;

	if (nproc && has_too_many_digits(nproc))
		return hf_error_set(err, HF_E_INVALID, "spec.nprocPerNode: '%.40s': " NPROC_PROBLEM,
				    nproc);
	*ret_nproc = nproc && hf_str_is_integer(nproc) ? strtoll(nproc, NULL, 10) : 1;
	return 0;
}

/* Sets the variables of torch.distributed, and the same values as PET_*, which torchrun reads. */
static int set_static_env(const struct hf_job *job, const struct hf_rank *rank,
			  struct hf_edits *edits, struct hf_error *err)
{
	const char *address = hf_replica_name(edits->arena, job->view->name, "Master", 0);
	int64_t number = rank->role == WORKER ? rank->index + 1 : rank->index;
	int64_t nproc = 1;
	int32_t port;
	int rc = hf_replicas_port(job, MASTER, &port, err);

	if (rc == 0)
		rc = read_nproc(job, &nproc, err);
	if (rc < 0)
		return rc;
	hf_replicas_env_number(edits, "MASTER_PORT", port);
	hf_replicas_env_number(edits, "PET_MASTER_PORT", port);
	hf_replicas_env(edits, "MASTER_ADDR", address);
	hf_replicas_env(edits, "PET_MASTER_ADDR", address);
	hf_replicas_env_number(edits, "WORLD_SIZE", hf_job_total(job) * nproc);
	hf_replicas_env_number(edits, "RANK", number);
	hf_replicas_env_number(edits, "PET_NODE_RANK", number);
	return 0;
}

/* Sets the rendezvous endpoint of torchrun: the one in the spec, or Worker 0, which every
 * elastic job has. */
static int set_rdzv_endpoint(const struct hf_job *job, struct hf_edits *edits, struct hf_error *err)
{
	const struct hf_elastic_policy *elastic = &job->elastic;
	const char *host = elastic->rdzv_host;
	int32_t port = (int32_t)elastic->rdzv_port.value;

	if (!host)
		host = hf_replica_name(edits->arena, job->view->name, "Worker", 0);
	if (!elastic->rdzv_port.set) {
		int rc = hf_replicas_port(job, WORKER, &port, err);

		if (rc < 0)
			return rc;
	}
	hf_edits_env(edits, HF_EDIT_EVERY_CONTAINER, "PET_RDZV_ENDPOINT", "%s:%d", host, port);
	return 0;
}

/* Sets the rendezvous id. From generation 2 on, the generation is appended, so that a rank of an
 * older generation cannot join. A generation grows when all ranks are new: at a restart with
 * scope Job, and after a suspension. With scope Replica, surviving ranks keep the old id, and
 * the generation does not grow. */
static void set_rdzv_id(const struct hf_job *job, const struct hf_rank *rank,
			struct hf_edits *edits)
{
	const char *id = job->elastic.rdzv_id;

	if (id && rank->generation > 1)
		hf_edits_env(edits, HF_EDIT_EVERY_CONTAINER, "PET_RDZV_ID", "%s-%lld", id,
			     (long long)rank->generation);
	else if (id)
		hf_replicas_env(edits, "PET_RDZV_ID", id);
}

/* Sets the variables of torchrun in upstream's order, after PET_NPROC_PER_NODE. If a variable is
 * set twice, the later value wins. */
static int set_elastic_env(const struct hf_job *job, const struct hf_rank *rank,
			   struct hf_edits *edits, struct hf_error *err)
{
	const struct hf_elastic_policy *elastic = &job->elastic;
	HF_AUTO_STRBUF conf = HF_STRBUF_INIT(RDZV_CONF_MAX);
	int rc = set_rdzv_endpoint(job, edits, err);

	if (rc < 0)
		return rc;
	hf_replicas_env(edits, "PET_RDZV_BACKEND",
			elastic->rdzv_backend ? elastic->rdzv_backend : "c10d");
	hf_assert(elastic->min_replicas.set && elastic->max_replicas.set);
	hf_edits_env(edits, HF_EDIT_EVERY_CONTAINER, "PET_NNODES", "%lld:%lld",
		     (long long)elastic->min_replicas.value,
		     (long long)elastic->max_replicas.value);
	if (elastic->max_restarts.set)
		hf_replicas_env_number(edits, "PET_MAX_RESTARTS", elastic->max_restarts.value);
	if (elastic->nproc_per_node.set)
		hf_replicas_env_number(edits, "PET_NPROC_PER_NODE", elastic->nproc_per_node.value);
	set_rdzv_id(job, rank, edits);
	for (size_t i = 0; i < elastic->rdzv_conf_len; i++)
		hf_strbuf_addf(&conf, "%s%s=%s", i > 0 ? "," : "", elastic->rdzv_conf[i].key,
			       elastic->rdzv_conf[i].value);
	rc = hf_strbuf_ok(&conf, "spec.elasticPolicy.rdzvConf", err);
	if (rc < 0)
		return rc;
	if (elastic->rdzv_conf_len > 0)
		hf_replicas_env(edits, "PET_RDZV_CONF", hf_arena_strdup(edits->arena, conf.data));
	if (elastic->standalone.set && elastic->standalone.value)
		hf_replicas_env(edits, "PET_STANDALONE", "");
	return 0;
}

/* Adds the init container that waits until the Master's name resolves. Without it, torch would
 * fail on a name that does not resolve yet. */
static void add_init_container(const struct hf_job *job, struct hf_edits *edits)
{
	static const struct hf_key_value limits[] = {{"cpu", "100m"}, {"memory", "20Mi"}};
	static const struct hf_key_value requests[] = {{"cpu", "50m"}, {"memory", "10Mi"}};
	const struct hf_settings *settings = job->settings;
	const char *address = hf_replica_name(edits->arena, job->view->name, "Master", 0);
	struct hf_edit edit = {.kind = HF_EDIT_INIT_CONTAINER, .value = address};
	struct hf_container_build *build;
	const char **command;

	if (!settings->init_container_template) {
		build = HF_ARENA_NEW(edits->arena, struct hf_container_build);
		command = HF_ARENA_ARRAY(edits->arena, const char *, 3);
		command[0] = "sh";
		command[1] = "-c";
		command[2] = hf_arena_printf(
			edits->arena,
			"err=1;for i in $(seq %d); do if nslookup %s; then err=0 && break; fi;"
			"echo waiting for master; sleep 2; done; exit $err",
			settings->init_container_max_tries ? settings->init_container_max_tries
							   : INIT_TRIES,
			address);
		*build = (struct hf_container_build){
			.name = INIT_CONTAINER,
			.image = hf_str_or(settings->init_container_image, INIT_IMAGE),
			.image_pull_policy = "IfNotPresent",
			.command = command,
			.command_len = 3,
			.limits = limits,
			.limits_len = HF_ARRAY_LEN(limits),
			.requests = requests,
			.requests_len = HF_ARRAY_LEN(requests),
		};
		edit.add = build;
	}
	hf_edits_add(edits, &edit);
}

static int pytorch_pod(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		       struct hf_error *err)
{
	int rc;

	hf_assert(rank->role == MASTER || rank->role == WORKER);
	hf_replicas_env(edits, "PYTHONUNBUFFERED", "1");
	if (has_master(job)) {
		rc = set_static_env(job, rank, edits, err);
		if (rc < 0)
			return rc;
	}
	if (job->nproc_per_node)
		hf_replicas_env(edits, "PET_NPROC_PER_NODE", job->nproc_per_node);
	if (job->elastic.present) {
		rc = set_elastic_env(job, rank, edits, err);
		if (rc < 0)
			return rc;
	} else {
		hf_replicas_env_number(edits, "PET_NNODES", hf_job_total(job));
	}
	if (has_master(job) && rank->role == WORKER)
		add_init_container(job, edits);
	return 0;
}

/* True for the rank that gets the label job-role=master. get_job_logs of the Python SDK looks for
 * that label. */
static bool pytorch_is_master(const struct hf_job *job, const struct hf_rank *rank)
{
	if (has_master(job))
		return rank->role == MASTER;
	return rank->role == WORKER && rank->index == 0;
}

/* ---- the autoscaler --------------------------------------------------------------------------- */

/* The metrics that an API server sets if the list of metrics is empty. */
#define CPU_METRIC                                                                                 \
	"[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":"                       \
	"{\"type\":\"Utilization\",\"averageUtilization\":80}}}]"

/* Plans the autoscaler of a job, which changes the number of Workers through /scale. No pod waits
 * for it. As in upstream, a job with metrics has an autoscaler while it is not suspended, and a
 * finished job keeps it. */
static void pytorch_extras(const struct hf_job *job, const struct hf_ranks_seen *seen,
			   struct hf_extras *extras)
{
	const struct hf_elastic_policy *elastic = &job->elastic;
	struct hf_extra *scaler;

	hf_assert(job->framework == &hf_framework_pytorch);
	if (!elastic->present || !elastic->has_metrics || job->settings->no_autoscaler ||
	    seen->life == HF_LIFE_FINISHED)
		return;
	scaler = hf_extras_add(extras, HF_EXTRA_AUTOSCALER, job->view->name);
	scaler->aside = true;
	scaler->gone = seen->life != HF_LIFE_ACTIVE;
	if (scaler->gone)
		return;
	hf_extra_set(extras, scaler, "spec/scaleTargetRef/kind", job->framework->kind);
	hf_extra_set(extras, scaler, "spec/scaleTargetRef/name", job->view->name);
	hf_extra_set(extras, scaler, "spec/scaleTargetRef/apiVersion", job->framework->api_version);
	hf_assert(elastic->min_replicas.set && elastic->max_replicas.set);
	hf_extra_set_number(extras, scaler, "spec/minReplicas", elastic->min_replicas.value);
	hf_extra_set_number(extras, scaler, "spec/maxReplicas", elastic->max_replicas.value);
	hf_extra_set_json(extras, scaler, HF_AUTOSCALER_METRICS,
			  hf_str_or(elastic->metrics, CPU_METRIC), elastic->metrics_digest);
}

/* ---- counts to conditions -------------------------------------------------------------------------- */

static void pytorch_judge(const struct hf_job *job, const struct hf_counts *counts,
			  struct hf_arena *arena, struct hf_judgement *ret_judgement)
{
	bool master = has_master(job);

	hf_replicas_judge(job, counts, master ? MASTER : WORKER, ret_judgement);
	hf_replicas_messages(job, !master, arena, ret_judgement);
	if (!master && job->elastic.present && job->roles[WORKER].replicas > 0 &&
	    counts[WORKER].succeeded > 0)
		ret_judgement->succeeded = true;
}

/* True if an elastic job continues although ranks are missing. As torchrun, it needs the minimum
 * of nodes. */
static bool pytorch_goes_on(const struct hf_job *job, const struct hf_counts *counts)
{
	if (!job->elastic.present)
		return false;
	if (has_master(job) && counts[MASTER].active == 0)
		return false;
	return counts[WORKER].active > 0 &&
	       counts[WORKER].active >= job->elastic.min_replicas.value;
}

const struct hf_framework hf_framework_pytorch = {
	.api_version = "kubeflow.org/v1",
	.group = "kubeflow.org",
	.version = "v1",
	.kind = "PyTorchJob",
	.plural = "pytorchjobs",
	.singular = "pytorchjob",
	.replicas_key = "pytorchReplicaSpecs",
	.container_name = CONTAINER_NAME,
	.init_container = INIT_CONTAINER,
	.awaited_role = MASTER,
	.port_name = PORT_NAME,
	.port_number = 23456,
	.inject_port = true,
	.has_services = true,
	.default_restart = HF_RESTART_ON_FAILURE,
	.controller_name = "pytorchjob-controller",
	.metrics_name = "pytorch",
	.has_scale = true,
	.scale_role = WORKER,
	.extra_kinds = HF_EXTRA_BIT(HF_EXTRA_AUTOSCALER),
	.rare_kinds = HF_EXTRA_BIT(HF_EXTRA_AUTOSCALER),
	.roles = {[MASTER] = {.name = "Master", .default_replicas = 1},
		  [WORKER] = {.name = "Worker", .default_replicas = 1}},
	.roles_len = 2,
	.validate = pytorch_validate,
	.defaults = pytorch_defaults,
	.pod = pytorch_pod,
	.is_master = pytorch_is_master,
	.judge = pytorch_judge,
	.extras = pytorch_extras,
	.goes_on = pytorch_goes_on,
};
