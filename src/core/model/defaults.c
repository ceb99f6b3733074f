/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/framework.h"
#include "core/model/observed.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/*
 * Fills in what upstream defaults at each reconcile, and the defaults of spec.runPolicy.recovery.
 * Input: the job as written, the operator's settings.  Output: struct hf_job.
 */

#define INITIAL_SECONDS 10
#define MAX_SECONDS 600
#define RESET_AFTER_SECONDS 3600
/* The default of incidentSeconds: NCCL peers may notice a dead rank half an hour late. */
#define INCIDENT_SECONDS 1800
#define SETTLE_SECONDS 20
#define NODE_LOST_AFTER_SECONDS 60
#define FORCE_DELETE_AFTER_SECONDS 5
/* The default of replaceDelaySeconds: taint eviction usually forgets a pod within tenths of a
 * second after its removal. */
#define REPLACE_DELAY_SECONDS 2
#define IN_PLACE_LIMIT 3
#define IN_PLACE_WAIT_SECONDS 60

static int64_t pick_number(struct hf_opt_int own, struct hf_opt_int cluster, int64_t fallback)
{
	int64_t value = own.set ? own.value : cluster.set ? cluster.value : fallback;

	/* A negative number counts as 0.  Validation refuses it for a new job, but a job that has
	 * begun is not stopped. */
	return value > 0 ? value : 0;
}

static struct hf_opt_int pick_optional(struct hf_opt_int own, struct hf_opt_int cluster)
{
	struct hf_opt_int value = own.set ? own : cluster;

	if (value.set && value.value < 0)
		value.value = 0;
	return value;
}

/* The mode for nodeLost.forceDelete.  An unknown text gives the default, as an absent field
 * does. */
static enum hf_force parse_force_mode(const char *text)
{
	if (hf_streq(text, "Never"))
		return HF_FORCE_NEVER;
	return hf_streq(text, "Proven") ? HF_FORCE_PROVEN : HF_FORCE_PRESUMED;
}

/* Defaults for pods of lost nodes: forceDelete, afterSeconds, selfFence, replaceDelaySeconds. */
static void default_node_loss(const struct hf_recovery_spec *own,
			      const struct hf_recovery_spec *cluster, struct hf_recovery *ret)
{
	ret->force = parse_force_mode(
		hf_str_or(own->node_lost_force_delete, cluster->node_lost_force_delete));
	ret->node_lost_after_seconds =
		pick_number(own->node_lost_after_seconds, cluster->node_lost_after_seconds,
			    NODE_LOST_AFTER_SECONDS);
	ret->fence_seconds = 0;
	if (own->node_lost_self_fence.set ? own->node_lost_self_fence.value
					  : cluster->node_lost_self_fence.value) {
		if (ret->node_lost_after_seconds < HF_FENCE_AFTER_SECONDS_MIN)
			ret->node_lost_after_seconds = HF_FENCE_AFTER_SECONDS_MIN;
		ret->fence_seconds = ret->node_lost_after_seconds - HF_FENCE_MARGIN_SECONDS;
	}
	ret->force_delete_after_seconds =
		pick_number(own->force_delete_after_seconds, cluster->force_delete_after_seconds,
			    FORCE_DELETE_AFTER_SECONDS);
	ret->replace_delay_seconds = pick_number(
		own->replace_delay_seconds, cluster->replace_delay_seconds, REPLACE_DELAY_SECONDS);
	if (ret->replace_delay_seconds > HF_GONE_KEPT_SECONDS)
		ret->replace_delay_seconds = HF_GONE_KEPT_SECONDS;
}

static void default_devices(const struct hf_recovery_spec *own,
			    const struct hf_recovery_spec *cluster, struct hf_recovery *ret)
{
	const char *text = hf_str_or(own->device_on_unhealthy, cluster->device_on_unhealthy);
	const struct hf_opt_bool *avoid =
		own->device_avoid.set ? &own->device_avoid : &cluster->device_avoid;

	ret->on_unhealthy = hf_streq(text, "Ignore") ? HF_DEVICE_IGNORE
			    : hf_streq(text, "Fail") ? HF_DEVICE_FAIL
						     : HF_DEVICE_RESTART;
	ret->avoid_devices = !avoid->set || avoid->value;
}

/* Defaults for restarts in place and exec in the pods, and limits for restarts without progress. */
static void default_in_place(const struct hf_recovery_spec *own,
			     const struct hf_recovery_spec *cluster, struct hf_recovery *ret)
{
	const struct hf_recovery_spec *rules = own->has_log_rules ? own : cluster;

	ret->log_rules = rules->log_rules;
	ret->log_rules_fail = rules->log_rules_fail;
	ret->log_rule_error = rules->log_rule_errors_len > 0 ? rules->log_rule_errors : NULL;
	ret->inject_exec = hf_streq(hf_str_or(own->exec, cluster->exec), "Inject");
	ret->in_place_limit =
		pick_number(own->in_place_limit, cluster->in_place_limit, IN_PLACE_LIMIT);
	ret->in_place = !hf_streq(hf_str_or(own->in_place, cluster->in_place), "Never") &&
			ret->in_place_limit > 0;
	ret->in_place_wait_seconds = pick_number(
		own->in_place_wait_seconds, cluster->in_place_wait_seconds, IN_PLACE_WAIT_SECONDS);
	ret->checkpoint_grace_seconds =
		pick_number(own->checkpoint_grace_seconds, cluster->checkpoint_grace_seconds, 0);
	ret->no_progress_limit = pick_number(own->no_progress_limit, cluster->no_progress_limit, 0);
}

/* For each field of recovery: the job's own value, else the cluster's default from the operator's
 * file, else Holdfast's default. */
static void default_recovery(const struct hf_run_policy *policy,
			     const struct hf_recovery_spec *cluster, struct hf_recovery *ret)
{
	const struct hf_recovery_spec *own = &policy->recovery;
	const char *scope = hf_str_or(own->restart_scope, cluster->restart_scope);

	ret->scope = hf_streq(scope, "Job") ? HF_SCOPE_JOB : HF_SCOPE_REPLICA;
	ret->limits[HF_BUDGET_APPLICATION] = policy->backoff_limit;
	ret->limits[HF_BUDGET_INFRASTRUCTURE] =
		pick_optional(own->infrastructure_limit, cluster->infrastructure_limit);
	ret->limits[HF_BUDGET_DEVICE] = pick_optional(own->device_limit, cluster->device_limit);
	ret->backoff_initial_seconds = pick_number(
		own->backoff_initial_seconds, cluster->backoff_initial_seconds, INITIAL_SECONDS);
	ret->backoff_max_seconds =
		pick_number(own->backoff_max_seconds, cluster->backoff_max_seconds, MAX_SECONDS);
	ret->backoff_reset_after_seconds =
		pick_number(own->backoff_reset_after_seconds, cluster->backoff_reset_after_seconds,
			    RESET_AFTER_SECONDS);
	ret->incident_seconds =
		pick_number(own->incident_seconds, cluster->incident_seconds, INCIDENT_SECONDS);
	ret->settle_seconds =
		pick_number(own->settle_seconds, cluster->settle_seconds, SETTLE_SECONDS);
	default_node_loss(own, cluster, ret);
	default_devices(own, cluster, ret);
	default_in_place(own, cluster, ret);
	ret->progress_deadline_seconds =
		pick_optional(own->progress_deadline_seconds, cluster->progress_deadline_seconds);
	ret->restart_grace_seconds =
		pick_optional(own->restart_grace_seconds, cluster->restart_grace_seconds);
	ret->sidecar_grace_seconds =
		pick_optional(own->sidecar_grace_seconds, cluster->sidecar_grace_seconds);
	ret->after_end = hf_streq(hf_str_or(own->pods_after_end, cluster->pods_after_end), "Keep")
				 ? HF_AFTER_END_KEEP
				 : HF_AFTER_END_STOP;
	/* restartGraceSeconds 0 counts as 1.  With a grace of 0 the API server removes the pod
	 * object without asking the kubelet, and the next pod of that name would start beside the
	 * old one. */
	if (ret->restart_grace_seconds.set && ret->restart_grace_seconds.value == 0)
		ret->restart_grace_seconds.value = 1;
}

/* NULL means None: keep every pod.  "Running" means: delete pods that run.  Any other text means
 * All, as upstream. */
enum hf_clean hf_clean_parse(const char *text)
{
	if (!text || hf_streq(text, "None"))
		return HF_CLEAN_NONE;
	return hf_streq(text, "Running") ? HF_CLEAN_RUNNING : HF_CLEAN_ALL;
}

/* The spec of a role.  If the job spells a type in two ways ("worker", "Worker"), the canonical
 * spelling counts, else the first in byte order.  So the order of the document does not matter. */
static const struct hf_replica_spec *find_spec(const struct hf_job_view *view, int role)
{
	const char *canonical = view->framework->roles[role].name;
	const struct hf_replica_spec *best = NULL;

	for (size_t i = 0; i < view->replicas_len; i++) {
		const struct hf_replica_spec *spec = &view->replicas[i];

		if (spec->null || !hf_str_case_eq(spec->type, canonical))
			continue;
		if (hf_streq(spec->type, canonical))
			return spec;
		if (!best || strcmp(spec->type, best->type) < 0)
			best = spec;
	}
	return best;
}

/* A replica spec and the place of its type among the kind's types: qsort passes no context to its
 * comparison. */
struct placed {
	const struct hf_replica_spec *spec;
	int place;
};

static int compare_places(const void *left, const void *right)
{
	const struct placed *a = left;
	const struct placed *b = right;

	return a->place != b->place ? a->place - b->place : strcmp(a->spec->type, b->spec->type);
}

const struct hf_replica_spec *const *hf_job_replicas(const struct hf_job_view *view,
						     struct hf_arena *arena)
{
	struct placed *placed = HF_ARENA_ARRAY(arena, struct placed, view->replicas_len + 1);
	const struct hf_replica_spec **specs =
		HF_ARENA_ARRAY(arena, const struct hf_replica_spec *, view->replicas_len + 1);

	hf_assert(view->framework);
	for (size_t i = 0; i < view->replicas_len; i++) {
		int role = hf_framework_role(view->framework, view->replicas[i].type);

		placed[i].spec = &view->replicas[i];
		placed[i].place = role >= 0 ? role : HF_ROLES_MAX;
	}
	qsort(placed, view->replicas_len, sizeof(*placed), compare_places);
	for (size_t i = 0; i < view->replicas_len; i++)
		specs[i] = placed[i].spec;
	return specs;
}

/* Find the kind's container and port.  Walks backwards, so that the first of several ports with the
 * name wins. */
static void default_port(const struct hf_framework *framework, struct hf_role *role)
{
	const struct hf_template *pod = role->pod;
	const struct hf_container *container = NULL;

	role->default_container = hf_framework_container(framework, pod);
	role->port = framework->port_number;
	role->add_port = framework->inject_port && pod->containers_len > 0;
	if (pod->containers_len == 0)
		return;
	container = &pod->containers[role->default_container];
	for (size_t i = container->ports_len; i-- > 0;) {
		if (hf_streq(container->ports[i].name, framework->port_name)) {
			role->port = container->ports[i].number;
			role->add_port = false;
		}
	}
}

static void default_role(const struct hf_job_view *view, int index, struct hf_role *role)
{
	const struct hf_framework *framework = view->framework;
	const struct hf_replica_spec *spec = find_spec(view, index);
	int64_t replicas;

	if (!spec)
		return;
	role->present = true;
	replicas = spec->replicas.set ? spec->replicas.value
				      : framework->roles[index].default_replicas;
	role->replicas = (int32_t)(replicas < 0              ? 0
				   : replicas > HF_RANKS_MAX ? HF_RANKS_MAX
							     : replicas);
	/* Validation refuses more than one rank of such a role, but a job that another operator
	 * began may have more. */
	if ((framework->single_roles >> index & 1u) != 0 && role->replicas > 1)
		role->replicas = 1;
	role->restart = hf_restart_policy_parse(spec->restart_policy);
	if (role->restart == HF_RESTART_UNSET)
		role->restart = framework->default_restart;
	role->pod = &spec->pod;
	default_port(framework, role);
}

void hf_job_defaults(const struct hf_job_view *view, struct hf_arena *arena, struct hf_job *ret_job)
{
	static const struct hf_settings no_settings = {0};
	const struct hf_framework *framework = view->framework;

	/* A kind's table that breaks this is a bug of Holdfast, not an error in a job. */
	hf_assert(framework && framework->roles_len > 0 && framework->roles_len <= HF_ROLES_MAX);
	memset(ret_job, 0, sizeof(*ret_job));
	ret_job->view = view;
	ret_job->framework = framework;
	ret_job->settings = view->settings ? view->settings : &no_settings;
	default_recovery(&view->run_policy, &ret_job->settings->recovery, &ret_job->recovery);
	if (ret_job->settings->no_fence)
		ret_job->recovery.fence_seconds = 0;
	ret_job->clean = hf_clean_parse(view->run_policy.clean_pod_policy);
	ret_job->suspend = view->run_policy.suspend.set && view->run_policy.suspend.value;
	ret_job->elastic = view->elastic;
	ret_job->nproc_per_node = view->nproc_per_node;
	for (int i = 0; i < framework->roles_len; i++) {
		default_role(view, i, &ret_job->roles[i]);
		ret_job->ranks += ret_job->roles[i].replicas;
	}
	if (framework->defaults)
		framework->defaults(arena, ret_job);
}
