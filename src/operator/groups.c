/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/kinds_internal.h"

#include "base/strbuf.h"

/*
 * The pod groups of a gang scheduler, if their CRD is missing.
 *
 * Input: errors of the pod groups' cache.  Output: log lines, and events of waiting jobs.
 *
 * Upstream's operator exits without that CRD.  This operator reports that it is not ready, and why.
 * Its jobs wait, and begin or go on when the CRD exists.
 */

#define TEXT_MAX 1024

void hf_groups_start(struct hf_operator *op)
{
	const struct hf_kind *groups = hf_groups_kind(op);

	if (groups != NULL)
		hf_extras_start_kind(op, groups->extra);
}

void hf_groups_problem(struct hf_kind *groups, int code, const char *message)
{
	struct hf_operator *op = groups->op;
	const struct hf_resource *resource = groups->resource;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	if (code == HF_E_FORBIDDEN)
		hf_strbuf_addf(&text,
			       "%s; `holdfast manifests --operator --gang-scheduler-name %s` has "
			       "the right",
			       message, op->options.settings.gang_scheduler);
	if (code != HF_E_NOT_FOUND) {
		hf_operator_problem(op, resource->plural, code, text.len > 0 ? text.data : message);
		return;
	}
	if (groups->missing)
		return;
	groups->missing = true;
	hf_strbuf_addf(&text,
		       "the cluster does not know this kind; all jobs wait "
		       "until the CRD %s.%s of the gang scheduler \"%s\" is there",
		       resource->plural, resource->group, op->options.settings.gang_scheduler);
	hf_operator_problem(op, resource->plural, code, text.data);
	/* Queue the waiting jobs, so that every waiting job gets an event. */
	for (size_t i = 0; i < op->n_kinds; i++)
		if (op->kinds[i].running)
			hf_operator_enqueue_kind(&op->kinds[i]);
}

void hf_groups_tell(struct hf_kind *kind, struct hf_doc *job)
{
	const struct hf_kind *groups = hf_groups_kind(kind->op);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	if (groups == NULL || !groups->missing)
		return;
	hf_strbuf_addf(
		&text,
		"The job waits: the cluster lacks the CRD %s.%s of the gang scheduler \"%s\"",
		groups->resource->plural, groups->resource->group,
		kind->op->options.settings.gang_scheduler);
	hf_report_waiting(kind, job, "MissingCRD", text.data);
}
