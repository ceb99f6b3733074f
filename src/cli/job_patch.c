/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Makes the patches of suspend, resume and restart, and the Event with a person's reason. */
#include "cli/job_patch.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/rank.h"
#include "core/model/names.h"

#include <stdlib.h>

int hf_job_refuse_ended(struct hf_doc *job, struct hf_error *err)
{
	struct hf_job_facts facts;

	hf_job_facts_read(hf_doc_json(job), &facts);
	if (!hf_streq(facts.state, "Succeeded") && !hf_streq(facts.state, "Failed"))
		return 0;
	return hf_error_set(
		err, HF_E_CONFLICT,
		"%s has already ended (%s) and cannot be changed; create a new job instead",
		hf_doc_name(job), facts.state);
}

static const struct hf_json *suspend_of(struct hf_doc *job)
{
	return hf_json_path(hf_doc_json(job), "spec", "runPolicy", "suspend", NULL);
}

int hf_job_patch_suspend(struct hf_doc *job, bool suspend, struct hf_json **ret_patch,
			 struct hf_error *err)
{
	struct hf_json *patch;
	int rc = hf_job_refuse_ended(job, err);

	if (rc != 0 || hf_json_true(suspend_of(job), false) == suspend)
		return rc;
	patch = hf_json_object();
	hf_json_set_bool(hf_json_ensure_object(hf_json_ensure_object(patch, "spec"), "runPolicy"),
			 "suspend", suspend);
	*ret_patch = patch;
	return 0;
}

/* The annotation causes one restart for each new value (core/model/names.h), so the value contains
 * the time. */
int hf_job_patch_restart(const struct hf_job_restart *restart, struct hf_json **ret_patch,
			 struct hf_error *err)
{
	struct hf_doc *job = restart->job;
	HF_AUTOFREE char *rank = NULL;
	HF_AUTOFREE char *value = NULL;
	char now[HF_TIME_TEXT_MAX];
	struct hf_json *patch;
	int rc = hf_job_refuse_ended(job, err);

	if (rc == 0 && restart->word != NULL)
		rc = hf_cli_rank_name(restart->framework, hf_doc_json(job), restart->word, &rank,
				      err);
	if (rc == 0 && hf_json_true(suspend_of(job), false))
		rc = hf_error_set(
			err, HF_E_CONFLICT,
			"%s is suspended, so there is nothing to restart: 'holdfast resume %s' starts it",
			hf_doc_name(job), hf_doc_name(job));
	if (rc != 0)
		return rc;
	hf_time_format_micro(restart->now, now);
	value = rank != NULL ? hf_xasprintf("%s %s", now, rank) : hf_xstrdup(now);
	patch = hf_json_object();
	hf_json_set_str(
		hf_json_ensure_object(hf_json_ensure_object(patch, "metadata"), "annotations"),
		HF_ANNOTATION_RESTART, value);
	*ret_patch = patch;
	return 0;
}

static struct hf_json *reference_to(struct hf_doc *job)
{
	const struct hf_json *root = hf_doc_json(job);
	struct hf_json *reference = hf_json_object();

	hf_json_set_str(reference, "apiVersion", hf_json_path_str(root, "apiVersion", NULL));
	hf_json_set_str(reference, "kind", hf_json_path_str(root, "kind", NULL));
	hf_json_set_str(reference, "name", hf_doc_name(job));
	hf_json_set_str(reference, "namespace", hf_doc_namespace(job));
	hf_json_set_str(reference, "uid", hf_doc_uid(job));
	return reference;
}

struct hf_doc *hf_job_reason_event(struct hf_doc *job, const char *event_reason, const char *text,
				   hf_time now)
{
	HF_AUTOFREE char *prefix = hf_xasprintf("%s.", hf_doc_name(job));
	struct hf_json *event = hf_json_object(), *metadata;
	char at[HF_TIME_TEXT_MAX];

	hf_time_format(now, at);
	hf_json_set_str(event, "apiVersion", "v1");
	hf_json_set_str(event, "kind", "Event");
	metadata = hf_json_ensure_object(event, "metadata");
	hf_json_set_str(metadata, "generateName", prefix);
	hf_json_set_str(metadata, "namespace", hf_doc_namespace(job));
	hf_json_set(event, "involvedObject", reference_to(job));
	hf_json_set_str(event, "type", "Normal");
	hf_json_set_str(event, "reason", event_reason);
	hf_json_set_str(event, "message", text);
	hf_json_set_str(hf_json_ensure_object(event, "source"), "component", "holdfast");
	hf_json_set_str(event, "firstTimestamp", at);
	hf_json_set_str(event, "lastTimestamp", at);
	hf_json_set_i64(event, "count", 1);
	return hf_doc_from_json(event);
}
