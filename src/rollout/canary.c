/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout_internal.h"

#include "api/device_health.h"
#include "base/str.h"
#include "store/resource.h"

#include <stdio.h>
#include <string.h>

/*
 * The canary of a node: a job that the rollout creates, reads and deletes.
 * Input: the spec, the job as it was read, the Node and its DeviceHealth. Output: facts for health/rollout_node.h, and
 * the job to create. Invariant: the entry has the name of the job before the job is created. So each leader finds the
 * same job, and a second create is refused.
 */

#define HISTORY_BYTES 512

const struct hf_resource *hf_ro_canary_kind(const struct hf_rollout_spec *spec)
{
	if (!spec->proof.canary.wanted)
		return NULL;
	return hf_streq(spec->proof.canary.api_version, "batch/v1")
		       ? &hf_batch_jobs
		       : hf_resource_by_kind(spec->proof.canary.api_version,
					     spec->proof.canary.kind);
}

const char *hf_ro_present_canary(const struct ro_pass *pass)
{
	const char *slash =
		pass->entry->canary.job == NULL ? NULL : strchr(pass->entry->canary.job, '/');

	return slash == NULL ? "" : slash + 1;
}

bool hf_ro_may_have_canary(const struct ro_pass *pass)
{
	enum hf_rollout_phase phase;

	if (pass->spec_problem != NULL || pass->entry == NULL ||
	    *hf_ro_present_canary(pass) == '\0' || hf_ro_canary_kind(&pass->spec) == NULL ||
	    pass->state == HF_ROLLOUT_ROLLING_BACK ||
	    !hf_rollout_phase_of(pass->entry->phase, &phase))
		return false;
	return phase == HF_ROLLOUT_BASELINE || phase == HF_ROLLOUT_CANARY ||
	       phase == HF_ROLLOUT_RESTORING;
}

const char *hf_ro_canary_name(const struct ro_pass *pass, bool before)
{
	const struct hf_canary_place place = {.rollout_uid = pass->r.uid,
					      .node = pass->node,
					      .tries = pass->entry->tries,
					      .before = before};
	char name[HF_CANARY_NAME_MAX];

	return hf_arena_strdup(pass->arena, hf_canary_name(&place, name));
}

/* ---- facts --------------------------------------------------------------------------------------- */

static const struct hf_json *template_of(const struct ro *ro)
{
	return hf_json_path(hf_doc_json(ro->pass.docs[RO_READ_OBJECT]), "spec", "proof", "canary",
			    "template", NULL);
}

static struct hf_rollout_pace pace_of(const struct hf_rollout_times *times)
{
	return (struct hf_rollout_pace){.step_us = times->step_us, .run_ms = times->run_ms};
}

static bool is_of_job(struct hf_doc *pod, const char *job_uid)
{
	return hf_streq(hf_json_path_str(hf_find_controller(hf_doc_json(pod)), "uid", NULL),
			job_uid);
}

static bool is_pod_of(const struct ro *ro, const char *pod_uid, const char *job_uid)
{
	for (size_t i = 0; i < ro->pass.pods_len; i++)
		if (hf_streq(hf_doc_uid(ro->pass.pods[i]), pod_uid))
			return is_of_job(ro->pass.pods[i], job_uid);
	return false;
}

/* From the first start of a container to the last end; NONE: unknown. */
struct span {
	hf_time from, to;
};

static void add_containers(const struct hf_json *pod, struct span *span)
{
	const struct hf_json *list = hf_json_path(pod, "status", "containerStatuses", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *ended =
			hf_json_path(hf_json_item(list, i), "state", "terminated", NULL);
		const char *from = hf_json_path_str(ended, "startedAt", NULL);
		const char *to = hf_json_path_str(ended, "finishedAt", NULL);
		hf_time first, last;

		if (from == NULL || to == NULL || hf_time_parse(from, &first, NULL) != 0 ||
		    hf_time_parse(to, &last, NULL) != 0)
			continue;
		if (span->from == HF_TIME_NONE || first < span->from)
			span->from = first;
		if (span->to == HF_TIME_NONE || last > span->to)
			span->to = last;
	}
}

/* The times of the job's pods, by the kubelet: the job's own times are late if its operator was down. Without the pods,
 * the job's own times stay. */
static void take_pod_times(struct ro *ro, const char *job_uid, struct hf_canary_state *state)
{
	struct span span = {.from = HF_TIME_NONE, .to = HF_TIME_NONE};
	hf_time ended;

	for (size_t i = 0; i < ro->pass.pods_len; i++)
		if (is_of_job(ro->pass.pods[i], job_uid))
			add_containers(hf_doc_json(ro->pass.pods[i]), &span);
	if (span.from == HF_TIME_NONE || span.to <= span.from)
		return;
	state->run_ms = (span.to - span.from) / HF_MS;
	ended = hf_ro_convert_time(ro, ro->pass.node, span.to);
	if (state->ended_at == HF_TIME_NONE || ended < state->ended_at)
		state->ended_at = ended;
}

/* The own work in a step of the job's slowest rank on this node; 0: no rank has reported it. */
static int64_t find_step(struct ro *ro, const char *job_uid)
{
	struct hf_device_health health;
	int64_t slowest = 0;

	if (ro->pass.docs[RO_READ_HEALTH] == NULL || hf_str_is_empty(job_uid))
		return 0;
	hf_device_health_read(ro->pass.docs[RO_READ_HEALTH], ro->pass.arena, &health);
	for (size_t i = 0; i < health.ranks.len; i++) {
		const struct hf_rank_report *rank = &health.ranks.items[i];

		if (rank->own_us > slowest && is_pod_of(ro, rank->uid, job_uid))
			slowest = rank->own_us;
	}
	return slowest;
}

static void see_job(struct ro *ro, struct hf_rollout_canary *canary)
{
	struct hf_doc *doc = ro->pass.docs[RO_READ_CANARY];
	struct hf_canary_state state;

	if (!hf_is_owned_by(hf_doc_json(doc), ro->pass.r.uid)) {
		canary->state = HF_ROLLOUT_JOB_OTHERS;
		return;
	}
	hf_canary_read(hf_doc_json(doc), ro->pass.arena, &state);
	if (state.succeeded && !hf_str_is_empty(hf_doc_uid(doc)))
		take_pod_times(ro, hf_doc_uid(doc), &state);
	canary->state = state.failed      ? HF_ROLLOUT_JOB_FAILED
			: state.succeeded ? HF_ROLLOUT_JOB_SUCCEEDED
					  : HF_ROLLOUT_JOB_RUNS;
	canary->leaving = state.leaving;
	canary->why = state.message;
	canary->seen = (struct hf_rollout_pace){.step_us = find_step(ro, hf_doc_uid(doc)),
						.run_ms = state.run_ms};
	if (state.created_at != HF_TIME_NONE && state.ended_at > state.created_at)
		canary->took = state.ended_at - state.created_at;
}

struct hf_rollout_times hf_ro_canary_history(struct ro *ro)
{
	const char *text = hf_json_path_str(hf_doc_json(ro->pass.docs[RO_READ_NODE]), "metadata",
					    "annotations", HF_ROLLOUT_CANARY_ANNOTATION, NULL);
	struct hf_rollout_times times = {0};
	char hash[HF_CANARY_HASH_MAX];

	if (text != NULL)
		(void)hf_canary_history_read(text, hf_canary_hash(template_of(ro), hash),
					     ro->pass.arena, &times);
	return times;
}

/* The record keeps the shortest times, so that many rollouts cannot slow a node down bit by bit. */
static void see_history(struct ro *ro, struct ro_facts *facts)
{
	struct hf_rollout_canary *canary = &facts->view.canary;
	struct hf_rollout_times known = hf_ro_canary_history(ro), best;
	struct hf_rollout_pace pace = hf_rollout_best_pace(&canary->before, &canary->after);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HISTORY_BYTES);
	char hash[HF_CANARY_HASH_MAX];
	HF_AUTO_JSON json = NULL;

	best = (struct hf_rollout_times){.step_us = pace.step_us, .run_ms = pace.run_ms};
	canary->kept = best.run_ms <= 0 || ro->pass.docs[RO_READ_NODE] == NULL ||
		       (known.step_us == best.step_us && known.run_ms == best.run_ms);
	if (canary->kept)
		return;
	json = hf_canary_history_json(hf_canary_hash(template_of(ro), hash), &best);
	hf_json_write(json, HF_JSON_COMPACT, &text);
	facts->history = hf_arena_strdup(ro->pass.arena, text.data);
}

void hf_ro_see_canary(struct ro *ro, struct ro_facts *facts)
{
	const struct ro_pass *pass = &ro->pass;
	struct hf_rollout_canary *canary = &facts->view.canary;

	canary->wanted = pass->spec_problem == NULL && hf_ro_canary_kind(&pass->spec) != NULL;
	if (!canary->wanted)
		return;
	canary->slower_percent = pass->spec.proof.canary.slower_percent;
	canary->within = pass->spec.proof.canary.within;
	canary->before = pace_of(&pass->entry->before.canary);
	canary->after = pace_of(&pass->entry->canary.times);
	canary->job = hf_str_or(pass->entry->canary.job, "");
	if (pass->docs[RO_READ_CANARY] != NULL)
		see_job(ro, canary);
	else
		canary->why = hf_ro_refusal(ro);
	if (facts->view.phase == HF_ROLLOUT_CANARY)
		see_history(ro, facts);
}

/* ---- the job ------------------------------------------------------------------------------------- */

bool hf_ro_create_canary(struct ro *ro, struct hf_request *ret_request, struct hf_doc **ret_body)
{
	const struct ro_pass *pass = &ro->pass;
	const struct hf_owner owner = {.api_version = HF_ROLLOUT_API_VERSION,
				       .kind = HF_ROLLOUT_KIND,
				       .name = pass->name,
				       .uid = pass->r.uid};
	const char *hostname = hf_json_path_str(hf_doc_json(pass->docs[RO_READ_NODE]), "metadata",
						"labels", "kubernetes.io/hostname", NULL);

	*ret_body = hf_canary_job(template_of(ro), hf_ro_present_canary(pass), &owner,
				  hf_str_or(hostname, pass->node));
	*ret_request = (struct hf_request){.verb = HF_VERB_CREATE,
					   .resource = hf_ro_canary_kind(&pass->spec),
					   .ns = pass->spec.proof.canary.ns,
					   .body = *ret_body};
	return true;
}
