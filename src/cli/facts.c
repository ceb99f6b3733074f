/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Summarizes a job or a pod from its document: state, number of ranks, restarts, and the reason
 * why a container never started. */
#include "cli/facts.h"

#include "api/job.h"
#include "base/str.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"
#include "framework/framework.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct hf_json *hf_job_last_condition(const struct hf_json *job)
{
	const struct hf_json *list = hf_json_path(job, "status", "conditions", NULL);
	const struct hf_json *found = NULL;

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);
		if (hf_streq(hf_json_path_str(item, "status", NULL), "True"))
			found = item;
	}
	return found;
}

static int64_t number_of(const struct hf_json *object, const char *key)
{
	return hf_json_i64(hf_json_get(object, key), 0);
}

static void count_ranks(const struct hf_json *job, const struct hf_framework *framework,
			struct hf_job_facts *facts)
{
	const struct hf_json *specs = hf_json_path(job, "spec", framework->replicas_key, NULL);
	const struct hf_json *statuses = hf_json_path(job, "status", "replicaStatuses", NULL);
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(specs, it, &key, &value)) != NULL;) {
		int role = hf_framework_role(framework, key);
		if (role >= 0)
			facts->wanted += hf_json_i64(hf_json_get(value, "replicas"),
						     framework->roles[role].default_replicas);
	}
	for (void *it = NULL; (it = hf_json_next(statuses, it, &key, &value)) != NULL;) {
		facts->active += number_of(value, "active");
		facts->succeeded += number_of(value, "succeeded");
	}
}

int64_t hf_job_ready(const struct hf_job_facts *facts, int64_t ready)
{
	return facts->succeeded + (hf_streq(facts->state, HF_COND_SUCCEEDED) ? 0 : ready);
}

/* Returns the budget that the open or last incident was charged to; HF_BUDGETS: none. */
static int charged_budget(const struct hf_json *recovery)
{
	const char *name = hf_json_path_str(recovery, "incident", "charged", NULL);

	for (int i = 0; i < HF_BUDGETS; i++)
		if (hf_streq(name, hf_budget_name((enum hf_budget)i)))
			return i;
	return HF_BUDGETS;
}

/* Counts as hf_ledger_restarts does: a record without a scope restarted nothing. */
static void count_restarts(const struct hf_json *recovery, struct hf_job_facts *facts)
{
	const struct hf_json *last = hf_json_get(recovery, "last");
	int budget = charged_budget(recovery);

	memcpy(facts->restarts, facts->charged, sizeof(facts->restarts));
	if (last != NULL && hf_json_path_str(last, "scope", NULL) == NULL && budget < HF_BUDGETS &&
	    number_of(last, "incident") == number_of(hf_json_get(recovery, "incident"), "id") &&
	    facts->restarts[budget] > 0)
		facts->restarts[budget]--;
}

void hf_job_facts_read(const struct hf_json *job, struct hf_job_facts *ret_facts)
{
	const struct hf_json *condition = hf_job_last_condition(job);
	HF_AUTO_JSON recovery = hf_job_recovery(job);
	const struct hf_json *restarts = hf_json_get(recovery, "restarts");
	const char *kind = hf_str_or(hf_json_path_str(job, "kind", NULL), "");
	const struct hf_framework *framework = hf_framework_by_kind(
		hf_str_or(hf_json_path_str(job, "apiVersion", NULL), ""), kind);

	*ret_facts = (struct hf_job_facts){
		.kind = kind,
		.state = hf_str_or(hf_json_path_str(condition, "type", NULL), "Created"),
		.message = hf_str_or(hf_json_path_str(condition, "message", NULL), ""),
		.generation = number_of(recovery, "generation"),
	};
	for (int i = 0; i < HF_BUDGETS; i++)
		ret_facts->charged[i] = number_of(restarts, hf_budget_name((enum hf_budget)i));
	count_restarts(recovery, ret_facts);
	if (framework != NULL)
		count_ranks(job, framework, ret_facts);
}

int64_t hf_job_restarts(const struct hf_job_facts *facts)
{
	int64_t total = 0;

	for (int i = 0; i < HF_BUDGETS; i++)
		if (__builtin_add_overflow(total, facts->restarts[i], &total))
			return INT64_MAX;
	return total;
}

hf_time hf_facts_time(const char *text)
{
	hf_time at;

	return text != NULL && hf_time_parse(text, &at, NULL) == 0 ? at : HF_TIME_NONE;
}

const char *hf_facts_time_text(hf_time at, char text[HF_TIME_TEXT_MAX])
{
	text[0] = '\0';
	if (at != HF_TIME_NONE)
		hf_time_format(at, text);
	return text;
}

static hf_time time_of(const struct hf_json *object, const char *key)
{
	return hf_facts_time(hf_json_path_str(object, key, NULL));
}

bool hf_job_delay_read(const struct hf_json *job, hf_time now, struct hf_job_delay *ret_delay)
{
	HF_AUTO_JSON recovery = hf_job_recovery(job);
	int budget = charged_budget(recovery);
	struct hf_job_facts facts;

	*ret_delay = (struct hf_job_delay){.until = time_of(recovery, "notBefore"), .limit = -1};
	if (ret_delay->until == HF_TIME_NONE || ret_delay->until <= now)
		return false;
	hf_job_facts_read(job, &facts);
	if (budget < HF_BUDGETS)
		ret_delay->restart = facts.restarts[budget];
	if (budget == HF_BUDGET_APPLICATION)
		ret_delay->limit = hf_json_i64(
			hf_json_path(job, "spec", "runPolicy", "backoffLimit", NULL), -1);
	return true;
}

void hf_job_delay_text(const struct hf_job_delay *delay, hf_time now, struct hf_strbuf *sb)
{
	hf_time left = delay->until > now ? delay->until - now : 0;

	hf_strbuf_addf(sb, "restarting in %" PRId64 " s", (left + HF_SECOND - 1) / HF_SECOND);
	if (delay->restart > 0)
		hf_strbuf_addf(sb, " (restart %" PRId64, delay->restart);
	if (delay->restart > 0 && delay->limit >= delay->restart)
		hf_strbuf_addf(sb, " of %" PRId64, delay->limit);
	if (delay->restart > 0)
		hf_strbuf_addch(sb, ')');
}

/* Any client may have edited the numbers. */
static int64_t count_of(const struct hf_json *object, const char *key)
{
	int64_t count = number_of(object, key);

	return count < 0 || count > INT32_MAX ? 0 : count;
}

void hf_job_training_read(const struct hf_json *job, hf_time now,
			  struct hf_job_training *ret_training)
{
	const struct hf_json *status = hf_json_get(job, "status");
	const struct hf_json *condition = hf_job_last_condition(job);
	HF_AUTO_JSON recovery = hf_job_recovery(job);
	const struct hf_json *restarts = hf_json_get(recovery, "restarts");
	struct hf_condition state = {
		.type = hf_str_or(hf_json_path_str(condition, "type", NULL), ""), .status = "True"};
	struct hf_status known = {
		.conditions = &state,
		.conditions_len = 1,
		.start_time = time_of(status, "startTime"),
		.completion_time = time_of(status, "completionTime"),
		.ledger = {.present = recovery != NULL,
			   .phase = hf_phase_parse(hf_json_path_str(recovery, "phase", NULL)),
			   .since = time_of(recovery, "since"),
			   .active_seconds = count_of(recovery, "activeSeconds"),
			   .productive_seconds = count_of(recovery, "productiveSeconds"),
			   .save_ms = count_of(recovery, "saveMillis")},
	};

	known.ledger.verdict.reason = hf_json_path_str(recovery, "verdict", "reason", NULL);
	for (int i = 0; i < HF_BUDGETS; i++)
		known.ledger.restarts[i] = count_of(restarts, hf_budget_name((enum hf_budget)i));
	*ret_training = (struct hf_job_training){.step = number_of(recovery, "step"),
						 .saved_step = number_of(recovery, "savedStep")};
	ret_training->times = hf_status_training_times(&known);
	ret_training->has_ettr =
		hf_training_ettr(&ret_training->times, now, &ret_training->ettr_permille);
	ret_training->has_advice = hf_status_advise(&known, now, &ret_training->advice);
}

int64_t hf_record_lost_read(const struct hf_json *record)
{
	const struct hf_record known = {.step = number_of(record, "step"),
					.saved_step = number_of(record, "savedStep")};

	return hf_record_lost_steps(&known);
}

/* Returns the reason why a container waits or has ended: kubectl prints it as the pod's status.
 * NULL: the container has no such reason. */
static const char *container_reason(const struct hf_json *status)
{
	const struct hf_json *state = hf_json_get(status, "state");
	const char *waiting = hf_json_path_str(state, "waiting", "reason", NULL);
	const char *ended = hf_json_path_str(state, "terminated", "reason", NULL);

	return !hf_str_is_empty(waiting) ? waiting : hf_str_is_empty(ended) ? NULL : ended;
}

/* Writes the status of a pod that initializes: "Init:1/2" while init containers run, "Init:Error"
 * after one has failed. False: all init containers are done. */
static bool init_status(const struct hf_json *pod, struct hf_pod_facts *facts)
{
	const struct hf_json *list = hf_json_path(pod, "status", "initContainerStatuses", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *status = hf_json_item(list, i);
		const struct hf_json *ended = hf_json_path(status, "state", "terminated", NULL);
		const char *reason = container_reason(status);
		if (ended != NULL && hf_json_i64(hf_json_get(ended, "exitCode"), -1) == 0)
			continue;
		if (reason != NULL && !hf_streq(reason, "PodInitializing"))
			(void)snprintf(facts->status, sizeof(facts->status), "Init:%s", reason);
		else
			(void)snprintf(facts->status, sizeof(facts->status), "Init:%zu/%zu", i,
				       hf_json_len(list));
		return true;
	}
	return false;
}

void hf_pod_facts_read(const struct hf_json *pod, struct hf_pod_facts *ret_facts)
{
	const struct hf_json *list = hf_json_path(pod, "status", "containerStatuses", NULL);
	const char *status = hf_json_path_str(pod, "status", "reason", NULL);

	*ret_facts = (struct hf_pod_facts){
		.containers = (int64_t)hf_json_len(hf_json_path(pod, "spec", "containers", NULL)),
	};
	if (status == NULL)
		status = hf_str_or(hf_json_path_str(pod, "status", "phase", NULL), "Pending");
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *container = hf_json_item(list, i);
		const char *reason = container_reason(container);
		ret_facts->restarts += number_of(container, "restartCount");
		ret_facts->ready += hf_json_true(hf_json_get(container, "ready"), false);
		if (reason != NULL)
			status = reason;
	}
	if (hf_json_path(pod, "metadata", "deletionTimestamp", NULL) != NULL)
		status = "Terminating";
	else if (init_status(pod, ret_facts))
		return;
	(void)snprintf(ret_facts->status, sizeof(ret_facts->status), "%s", status);
}

bool hf_reason_failed_start(const struct hf_json *state, char ret_text[HF_FAILED_START_MAX])
{
	const char *reason = hf_json_path_str(state, "reason", NULL);
	const char *message = hf_json_path_str(state, "message", NULL);
	const struct hf_container_reason *row = hf_container_reason_find(reason);
	char text[HF_STATUS_MESSAGE_MAX + 1];

	/* Without a message, ContainerCreating and PodInitializing are normal stages of a
	 * start. */
	if (row == NULL || !row->never_started ||
	    (row->actor == HF_ACTOR_NONE && hf_str_is_empty(message)))
		return false;
	hf_status_message_write(message, text);
	snprintf(ret_text, HF_FAILED_START_MAX, "%s%s%s", reason, *text != '\0' ? ": " : "", text);
	return true;
}

/* The container that the kind of the pod's job names, such as "pytorch"; "": the pod is of no job. */
static const char *find_own_name(const struct hf_json *pod)
{
	const struct hf_json *owners = hf_json_path(pod, "metadata", "ownerReferences", NULL);

	for (size_t i = 0; i < hf_json_len(owners); i++) {
		const struct hf_json *owner = hf_json_item(owners, i);
		const struct hf_framework *framework = hf_framework_by_kind(
			hf_json_path_str(owner, "apiVersion", NULL),
			hf_json_path_str(owner, "kind", NULL));

		if (framework != NULL)
			return framework->container_name;
	}
	return "";
}

const struct hf_json *hf_pod_main_status(const struct hf_json *pod)
{
	const struct hf_json *list = hf_json_path(pod, "status", "containerStatuses", NULL);
	const char *own = hf_json_len(list) > 1 ? find_own_name(pod) : "";

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "name", NULL), own))
			return hf_json_item(list, i);
	return hf_json_item(list, 0);
}

const struct hf_json *hf_pod_container_status(const struct hf_json *pod, const char *name)
{
	static const char *const lists[] = {"containerStatuses", "initContainerStatuses"};

	for (size_t l = 0; l < HF_ARRAY_LEN(lists); l++) {
		const struct hf_json *list = hf_json_path(pod, "status", lists[l], NULL);

		for (size_t i = 0; i < hf_json_len(list); i++)
			if (hf_streq(hf_json_path_str(hf_json_item(list, i), "name", NULL), name))
				return hf_json_item(list, i);
	}
	return NULL;
}

static bool has_failed(const struct hf_json *terminated)
{
	return hf_json_i64(hf_json_get(terminated, "exitCode"), 0) != 0;
}

const struct hf_json *hf_pod_failed_init(const struct hf_json *pod)
{
	const struct hf_json *list = hf_json_path(pod, "status", "initContainerStatuses", NULL);
	const struct hf_json *state = hf_json_get(hf_pod_main_status(pod), "state");

	/* A sidecar may end with any code after the program has begun. */
	if (hf_json_get(state, "running") != NULL || hf_json_get(state, "terminated") != NULL)
		return NULL;
	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *status = hf_json_item(list, i);

		if (has_failed(hf_json_path(status, "state", "terminated", NULL)) ||
		    (hf_streq(hf_json_path_str(status, "state", "waiting", "reason", NULL),
			      "CrashLoopBackOff") &&
		     has_failed(hf_json_path(status, "lastState", "terminated", NULL))))
			return status;
	}
	return NULL;
}

bool hf_container_failed_start(const struct hf_json *status, char ret_text[HF_FAILED_START_MAX])
{
	const struct hf_json *state = hf_json_get(status, "state");

	if (hf_json_get(state, "running") != NULL)
		return false;
	if (hf_json_get(state, "terminated") != NULL)
		return hf_reason_failed_start(hf_json_get(state, "terminated"), ret_text);
	return hf_reason_failed_start(hf_json_get(state, "waiting"), ret_text) ||
	       hf_reason_failed_start(hf_json_path(status, "lastState", "terminated", NULL),
				      ret_text);
}
