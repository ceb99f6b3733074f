/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/watch_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/model/status.h"

/*
 * What the operator answers to the controller for nodes (src/fleet): the time, the log, the job
 * that owns a pod, and whether a job restarts.
 *
 * Input: the caches.  Output: answers.  Replies that the other controller receives set the
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
	return hf_cache_synced(((const struct hf_operator *)arg)->pods.cache);
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

static bool has_restarting(const struct hf_json *job)
{
	const struct hf_json *list = hf_json_path(job, "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *c = hf_json_item(list, i);

		if (hf_streq(hf_json_path_str(c, "type", NULL), HF_COND_RESTARTING))
			return hf_streq(hf_json_path_str(c, "status", NULL), "True");
	}
	return false;
}

static bool is_restarting(void *arg, const char *key)
{
	struct hf_operator *op = arg;
	HF_AUTOFREE char *ns = NULL;
	const char *name = NULL;
	const struct hf_kind *kind = key == NULL ? NULL : hf_kind_of_key(op, key, &ns, &name);
	const struct hf_cache_entry *entry =
		kind == NULL ? NULL : hf_cache_get(kind->cache, ns, name);

	return entry != NULL && has_restarting(hf_doc_json(entry->doc));
}

void hf_companion_create(struct hf_operator *op)
{
	const struct hf_controller_env env = {
		.loop = op->loop,
		.store = op->store,
		.recorder = op->recorder,
		.metrics = op->options.metrics,
		.seed = op->options.seed,
		.request_timeout = op->options.request_timeout,
		.image = op->options.image,
		.arg = op,
		.now = tell_time,
		.heard = take_reply,
		.problem = pass_problem_on,
		.knows_pods = knows_pods,
		.find_job = find_owner,
		.is_restarting = is_restarting,
	};

	op->companion = op->options.create_companion(&env);
}
