/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/pass_internal.h"

#include "base/str.h"

/*
 * Writes the Events of a pass: those that the plan holds, and those about actions that failed or
 * were performed, with the reasons and texts of upstream's operator.
 */

#define TEXT_MAX 4096

static struct hf_event_note note_of(const struct hf_kind *kind, struct hf_doc *job, bool warning,
				    const char *reason, const char *message)
{
	const struct hf_framework *framework = kind->framework;

	return (struct hf_event_note){
		.api_version = framework->api_version,
		.kind = framework->kind,
		.ns = hf_doc_namespace(job),
		.name = hf_doc_name(job),
		.uid = hf_doc_uid(job),
		.resource_version = hf_doc_resource_version(job),
		.type = warning ? "Warning" : "Normal",
		.reason = reason,
		.message = message,
		.component = framework->controller_name,
	};
}

static struct hf_event_note job_note(const struct hf_pass *pass, bool warning, const char *reason,
				     const char *message)
{
	return note_of(pass->kind, pass->job, warning, reason, message);
}

void hf_report_waiting(struct hf_kind *kind, struct hf_doc *job, const char *reason,
		       const char *message)
{
	struct hf_event_note note = note_of(kind, job, true, reason, message);

	/* A routine event, because all jobs of a cluster may wait for the same CRD. */
	note.routine = true;
	hf_recorder_record(kind->op->recorder, &note, hf_operator_now(kind->op));
}

void hf_report_job(struct hf_pass *pass, bool warning, const char *reason, const char *message)
{
	const struct hf_event_note note = job_note(pass, warning, reason, message);

	hf_recorder_record(pass->op->recorder, &note, hf_operator_now(pass->op));
}

static void report_pod(struct hf_pass *pass, const struct hf_plan_event *event)
{
	const struct hf_event_note note = {
		.api_version = "v1",
		.kind = "Pod",
		.ns = hf_doc_namespace(pass->job),
		.name = event->pod,
		.uid = event->pod_uid,
		.type = event->warning ? "Warning" : "Normal",
		.reason = event->reason,
		.message = event->message,
		.component = pass->kind->framework->controller_name,
	};

	hf_recorder_record(pass->op->recorder, &note, hf_operator_now(pass->op));
}

void hf_report_plan(struct hf_pass *pass)
{
	const struct hf_plan *plan = &pass->plan;

	pass->progress = HF_PROGRESS_REPORTED;
	for (size_t i = 0; i < plan->events_len; i++) {
		const struct hf_plan_event *event = &plan->events[i];

		if (event->pod != NULL)
			report_pod(pass, event);
		else
			hf_report_job(pass, event->warning, event->reason, event->message);
	}
	hf_operator_count_plan(pass->op, pass->key, &pass->view, plan);
}

/* The reasons and words of events by kind of action, as in upstream (pkg/controller.v1/control). */
static const struct {
	const char *done, *failed; /* reasons */
	const char *verb, *thing;
} words[HF_ACTION_KINDS] = {
	[HF_ACTION_CREATE_POD] = {"SuccessfulCreatePod", "FailedCreatePod", "Created", "pod"},
	[HF_ACTION_DELETE_POD] = {"SuccessfulDeletePod", "FailedDeletePod", "Deleted", "pod"},
	[HF_ACTION_CREATE_SERVICE] = {"SuccessfulCreateService", "FailedCreateService", "Created",
				      "service"},
	[HF_ACTION_DELETE_SERVICE] = {"SuccessfulDeleteService", "FailedDeleteService", "Deleted",
				      "service"},
	[HF_ACTION_DELETE_JOB] = {"SuccessfulDeleteJob", "FailedDeleteJob", "Deleted", "job"},
	[HF_ACTION_FAIL_POD] = {"PodNodeLost", "FailedPodNodeLost", "Gave up", "pod"},
	[HF_ACTION_STOP_POD] = {"SuccessfulStopPod", "FailedStopPod", "Told the kubelet to end",
				"pod"},
	[HF_ACTION_CREATE_EXTRA] = {NULL, "FailedCreate", "Created", "object"},
	[HF_ACTION_UPDATE_EXTRA] = {NULL, "FailedUpdate", "Changed", "object"},
	[HF_ACTION_DELETE_EXTRA] = {NULL, "FailedDelete", "Deleted", "object"},
};

void hf_report_failure(struct hf_pass *pass, const struct hf_action *action, const char *message)
{
	enum hf_action_kind kind = action->kind;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF reason = HF_STRBUF_INIT(TEXT_MAX);

	hf_strbuf_addf(&text, "Error %s: %s",
		       kind == HF_ACTION_FAIL_POD              ? "failing"
		       : kind == HF_ACTION_STOP_POD            ? "ending"
		       : kind == HF_ACTION_UPDATE_EXTRA        ? "changing"
		       : hf_streq(words[kind].verb, "Created") ? "creating"
							       : "deleting",
		       message);
	hf_strbuf_addf(&reason, "%s%s", words[kind].failed,
		       action->extra == NULL ? "" : hf_extra_kind_name(action->extra->kind));
	hf_report_job(pass, true, reason.data, text.data);
}

void hf_report_extra(struct hf_pass *pass, const struct hf_action *action)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	if (action->kind != HF_ACTION_DELETE_EXTRA ||
	    (action->extra->kind != HF_EXTRA_POD_GROUP &&
	     action->extra->kind != HF_EXTRA_VOLCANO_GROUP))
		return;
	hf_strbuf_addf(&text, "Deleted PodGroup: %s", action->name);
	hf_report_job(pass, false, "SuccessfulDeletePodGroup", text.data);
}

static void report_done(struct hf_pass *pass, int kind, bool with_services)
{
	const struct hf_tally *tally = &pass->tally[kind];
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	if (tally->n == 1)
		hf_strbuf_addf(&text, "%s %s%s: ", words[kind].verb, words[kind].thing,
			       with_services ? " and its service" : "");
	else
		hf_strbuf_addf(&text, "%s %zu %ss%s: ", words[kind].verb, tally->n,
			       words[kind].thing, with_services ? " and their services" : "");
	for (size_t i = 0; i < tally->n && i < HF_TALLY_NAMES_MAX; i++)
		hf_strbuf_addf(&text, "%s%s", i == 0 ? "" : ", ", tally->names[i]);
	if (tally->n > HF_TALLY_NAMES_MAX)
		hf_strbuf_addstr(&text, ", ...");
	struct hf_event_note note = job_note(pass, false, words[kind].done, text.data);

	/* Events about the first pods of a job are routine, because the status and the pods show
	 * the same. */
	note.routine = !pass->view.status.ledger.present &&
		       (kind == HF_ACTION_CREATE_POD || kind == HF_ACTION_CREATE_SERVICE);
	hf_recorder_record(pass->op->recorder, &note, hf_operator_now(pass->op));
}

/* Record one event for each kind of action in a stage, where upstream records one for each object.
 * If as many pods as services were created, they share an event, because they share names. */
void hf_report_stage(struct hf_pass *pass)
{
	struct hf_tally *services = &pass->tally[HF_ACTION_CREATE_SERVICE];
	bool paired = services->n > 0 && services->n == pass->tally[HF_ACTION_CREATE_POD].n;

	if (paired)
		services->n = 0;
	for (int kind = 0; kind < HF_ACTION_KINDS; kind++) {
		struct hf_tally *tally = &pass->tally[kind];

		if (tally->n == 0)
			continue;
		/* Upstream records no event for extra objects, which change with each worker. */
		if (words[kind].done != NULL)
			report_done(pass, kind, paired && kind == HF_ACTION_CREATE_POD);
		if (kind == HF_ACTION_DELETE_JOB &&
		    pass->op->metrics.jobs[HF_METRIC_DELETED] != NULL)
			hf_family_add(pass->op->metrics.jobs[HF_METRIC_DELETED], 1,
				      hf_doc_namespace(pass->job),
				      pass->kind->framework->metrics_name, NULL);
		*tally = (struct hf_tally){0};
	}
}
