/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/kinds_internal.h"

#include "base/str.h"

/*
 * Kinds of jobs that the cluster does not know.
 *
 * Input: errors and successes of the kinds' caches.  Output: log lines, and the text for /readyz.
 * A missing kind is logged once and looked for again; it does not delay the other kinds.
 */

void hf_kind_found(struct hf_kind *kind)
{
	if (!kind->missing)
		return;
	kind->missing = false;
	hf_operator_problem(kind->op, kind->resource->plural, 0, "the cluster knows this kind now");
}

void hf_kind_problem(struct hf_kind *kind, int code, const char *message)
{
	if (kind->failed_at == HF_TIME_NONE)
		kind->failed_at = hf_loop_mono(kind->op->loop);
	if (code != HF_E_NOT_FOUND) {
		hf_operator_problem(kind->op, kind->resource->plural, code, message);
		return;
	}
	if (kind->missing)
		return;
	kind->missing = true;
	hf_operator_problem(
		kind->op, kind->resource->plural, code,
		"the cluster does not know this kind: its jobs are ignored until its CRD "
		"is there (see holdfast manifests --crds)");
}

bool hf_kinds_known(const struct hf_operator *op)
{
	const struct hf_kind *groups = hf_groups_kind(op);
	bool known = op->running && (groups == NULL || hf_cache_synced(groups->cache));

	for (size_t i = 0; i < op->n_kinds; i++)
		known = known && (op->kinds[i].running || op->kinds[i].missing);
	return known;
}

/* The right to list a kind may be missing for ever, or its conversion fail. */
#define LIST_WAIT HF_MINUTE

static bool is_listed(const struct hf_kind *kind)
{
	return hf_cache_synced(kind->cache) || kind->missing ||
	       (kind->failed_at != HF_TIME_NONE &&
		hf_loop_mono(kind->op->loop) - kind->failed_at >= LIST_WAIT);
}

bool hf_kinds_listed(const struct hf_operator *op)
{
	for (size_t i = 0; i < op->n_kinds; i++)
		if (!is_listed(&op->kinds[i]))
			return false;
	return true;
}

void hf_kinds_describe(const struct hf_operator *op, struct hf_strbuf *sb)
{
	const struct hf_kind *groups = hf_groups_kind(op);
	const char *between = "the cluster lacks the CRD of ";

	for (size_t i = 0; i < op->n_kinds; i++) {
		if (!op->kinds[i].missing)
			continue;
		hf_strbuf_addf(sb, "%s%s", between, op->kinds[i].framework->kind);
		between = ", ";
	}
	if (groups != NULL && groups->missing)
		hf_strbuf_addf(sb, "%s%s of %s", between, groups->resource->kind,
			       groups->resource->group);
}
