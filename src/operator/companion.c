/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/watch_internal.h"

#include "api/condition.h"
#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/names.h"
#include "core/model/status.h"
#include "operator/kinds_internal.h"
#include "operator/look.h"

/*
 * The controllers that run beside the operator (src/fleet, src/rollout), and what the operator answers
 * to them: the time, the log, the job that owns a pod, whether a job restarts, restarts by devices, and
 * the limits of nodes.
 *
 * Input: the caches.  Output: answers.  Replies that the other controllers receive set the
 * operator's clock; nothing else is changed.
 */

static hf_time tell_time(void *arg)
{
	return hf_operator_now(arg);
}

static void take_reply(void *arg, const struct hf_reply *reply)
{
	hf_operator_heard(arg, reply);
}

static void pass_problem_on(void *arg, const char *what, int code, const char *message)
{
	hf_operator_problem(arg, what, code, message);
}

static bool knows_pods(void *arg)
{
	const struct hf_operator *op = arg;

	return hf_cache_synced(op->pods.cache) && hf_kinds_listed(op);
}

static const char *find_owner(void *arg, const char *ns, const char *pod, const char *uid)
{
	const struct hf_operator *op = arg;
	const struct hf_cache_entry *entry = hf_cache_get(op->pods.cache, ns, pod);
	const struct hf_view *view = entry == NULL ? NULL : entry->view;

	if (view == NULL || view->controller_uid == NULL ||
	    (!hf_str_is_empty(uid) && !hf_streq(entry->uid, uid)))
		return NULL;
	return hf_map_get(op->job_keys, view->controller_uid);
}

/* The job with this key; NULL: none. */
static const struct hf_json *find_job(struct hf_operator *op, const char *key)
{
	HF_AUTOFREE char *ns = NULL;
	const char *name = NULL;
	const struct hf_kind *kind = key == NULL ? NULL : hf_kind_of_key(op, key, &ns, &name);
	const struct hf_cache_entry *entry =
		kind == NULL ? NULL : hf_cache_get(kind->cache, ns, name);

	return entry == NULL ? NULL : hf_doc_json(entry->doc);
}

static bool is_restarting(void *arg, const char *key)
{
	return hf_condition_is_true(find_job(arg, key), HF_COND_RESTARTING);
}

/* The number that the operator has stamped on the pod; 0: none. */
static int64_t read_stamp(const struct hf_json *pod, const char *annotation)
{
	const char *text = hf_json_path_str(pod, "metadata", "annotations", annotation, NULL);
	int64_t number = 0;

	return hf_str_to_i64(hf_str_or(text, ""), 0, INT64_MAX, &number, NULL) == 0 ? number : 0;
}

/* A restart of all ranks ends the pods of older generations. If ranks restart in their pods, or one rank alone, the other
 * pods stay. */
static bool is_moved(void *arg, const char *key, const struct hf_json *pod)
{
	const struct hf_json *job = find_job(arg, key);
	HF_AUTO_JSON ledger = NULL;
	int64_t oldest;

	if (!hf_condition_is_true(job, HF_COND_RESTARTING))
		return false;
	ledger = hf_job_recovery(job);
	oldest = hf_json_i64(hf_json_get(ledger, "inPlaceBase"), 0);
	if (oldest == 0)
		oldest = hf_json_i64(hf_json_get(ledger, "generation"), 0);
	return read_stamp(pod, HF_ANNOTATION_GENERATION) < oldest;
}

/* As hf_incident_covers: the eviction belongs to the last incident if not all ranks have run again since, the pod is older
 * than the incident, and the program itself has not failed. An elastic job runs meanwhile, and has no condition Restarting. */
static bool is_covered(const struct hf_json *ledger, const struct hf_json *pod)
{
	const struct hf_json *incident = hf_json_get(ledger, "incident");
	const struct hf_json *last = hf_json_get(ledger, "last");

	if (last == NULL || hf_json_get(last, "runningAt") != NULL ||
	    hf_class_is_application(
		    hf_class_parse(hf_str_or(hf_json_path_str(incident, "cause", NULL), ""))))
		return false;
	/* A pod without a stamp is older than each incident. */
	return read_stamp(pod, HF_ANNOTATION_INCIDENT) <
	       hf_json_i64(hf_json_get(incident, "id"), 0);
}

/* The rule matches a pod that the eviction API ends. */
static bool matches_eviction(const struct hf_json *rule)
{
	const struct hf_json *list = hf_json_get(rule, "onPodConditions");

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);
		const char *status = hf_json_path_str(item, "status", NULL);
		const char *reason = hf_json_path_str(item, "reason", NULL);

		if (hf_streq(hf_json_path_str(item, "type", NULL), "DisruptionTarget") &&
		    hf_streq(hf_str_or(status, "True"), "True") &&
		    (reason == NULL || hf_streq(reason, "EvictionByEvictionAPI")))
			return true;
	}
	return false;
}

/* The first rule that matches decides. A rule for some replica types counts only if it fails the job: the type of the pod is not
 * known here. */
static bool has_fail_rule(const struct hf_json *policy)
{
	const struct hf_json *rules = hf_json_path(policy, "podFailurePolicy", "rules", NULL);

	for (size_t i = 0; i < hf_json_len(rules); i++) {
		const struct hf_json *rule = hf_json_item(rules, i);
		bool fails = hf_streq(hf_json_path_str(rule, "action", NULL), "FailJob");

		if (matches_eviction(rule) && (fails || hf_json_get(rule, "replicaTypes") == NULL))
			return fails;
	}
	return false;
}

/* One more incident of infrastructure fails the job, and the eviction of this pod would be one. */
static bool is_limit_reached(const struct hf_operator *op, const struct hf_json *job,
			     const struct hf_json *policy, const struct hf_json *pod)
{
	const struct hf_opt_int *usual = &op->options.settings.recovery.infrastructure_limit;
	int64_t limit = hf_json_i64(hf_json_path(policy, "recovery", "infrastructureLimit", NULL),
				    usual->set ? usual->value : -1);
	HF_AUTO_JSON ledger = limit >= 0 ? hf_job_recovery(job) : NULL;

	return limit >= 0 &&
	       hf_json_i64(hf_json_path(ledger, "restarts",
					hf_budget_name(HF_BUDGET_INFRASTRUCTURE), NULL),
			   0) >= limit &&
	       !is_covered(ledger, pod);
}

static const char *fails_by_eviction(void *arg, const char *key, const struct hf_json *pod)
{
	const struct hf_json *job = find_job(arg, key);
	HF_AUTO_JSON policy = NULL;

	/* Pods may go on when their job has ended. */
	if (job == NULL || hf_condition_is_true(job, HF_COND_SUCCEEDED) ||
	    hf_condition_is_true(job, HF_COND_FAILED))
		return NULL;
	policy = hf_job_run_policy(job);
	if (has_fail_rule(policy))
		return "runPolicy.podFailurePolicy";
	return is_limit_reached(arg, job, policy, pod) ? "runPolicy.recovery.infrastructureLimit"
						       : NULL;
}

static void find_limits(void *arg, const struct hf_limit_question *question)
{
	const struct hf_operator *op = arg;

	for (size_t i = 0; i < question->len; i++)
		question->ret_limits[i] = NULL;
	for (size_t i = 0; i < HF_CONTROLLERS_MAX; i++) {
		struct hf_controller *c = op->companions[i];

		if (c != NULL && c->ops->find_limits != NULL)
			c->ops->find_limits(c, question);
	}
}

static void each_device_restart(void *arg, hf_device_restart_fn fn, void *fn_arg)
{
	hf_operator_each_device_restart(arg, fn, fn_arg);
}

void hf_companions_create(struct hf_operator *op)
{
	const struct hf_controller_env env = {
		.loop = op->loop,
		.store = op->store,
		.recorder = op->recorder,
		.metrics = op->options.metrics,
		.seed = op->options.seed,
		.request_timeout = op->options.request_timeout,
		.image = op->options.image,
		.pod_ns = op->options.pod_ns,
		.webhooks = op->options.webhooks,
		.arg = op,
		.now = tell_time,
		.heard = take_reply,
		.problem = pass_problem_on,
		.knows_pods = knows_pods,
		.find_job = find_owner,
		.is_restarting = is_restarting,
		.is_moved = is_moved,
		.fails_by_eviction = fails_by_eviction,
		.find_limits = find_limits,
		.each_device_restart = each_device_restart,
	};

	for (size_t i = 0; i < HF_CONTROLLERS_MAX; i++)
		if (op->options.companions[i] != NULL)
			op->companions[i] = op->options.companions[i](&env);
}

#define CALL_EACH(op, member)                                                                      \
	for (size_t i = 0; i < HF_CONTROLLERS_MAX; i++)                                            \
		if ((op)->companions[i] != NULL)                                                   \
	(op)->companions[i]->ops->member((op)->companions[i])

void hf_companions_start(struct hf_operator *op)
{
	CALL_EACH(op, start);
}

void hf_companions_wake(struct hf_operator *op)
{
	CALL_EACH(op, wake);
}

void hf_companions_stop(struct hf_operator *op)
{
	CALL_EACH(op, stop);
}

void hf_companions_update_metrics(struct hf_operator *op)
{
	CALL_EACH(op, update_metrics);
}

void hf_companions_destroy(struct hf_operator *op)
{
	CALL_EACH(op, destroy);
	for (size_t i = 0; i < HF_CONTROLLERS_MAX; i++)
		op->companions[i] = NULL;
}
