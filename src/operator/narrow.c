/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/narrow_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/names.h"
#include "operator/pass_internal.h"

#include <stdlib.h>

/*
 * An API server drops what the schema of a kind does not name, and says so in a warning only.
 * Under upstream's CRDs that is status.recovery: the counters.  Two ways to find out, because
 * not every operator may read CRDs: by the schema, and by a reply that lacks all of the
 * ledger that was sent.
 */

const struct hf_resource hf_crds = {
	.group = "apiextensions.k8s.io",
	.version = "v1",
	.plural = "customresourcedefinitions",
	.singular = "customresourcedefinition",
	.kind = "CustomResourceDefinition",
	.namespaced = false,
};

/* One object is watched; the list of a server that ignores the selector is cut. */
#define CRDS_MAX 64

struct crd_view {
	bool narrow;
};

/* --- the schema ----------------------------------------------------------------------------- */

static bool keeps_unknown(const struct hf_json *schema)
{
	return hf_json_true(hf_json_get(schema, "x-kubernetes-preserve-unknown-fields"), false);
}

/* The schema of the version that the operator speaks; NULL: it is not served. */
static const struct hf_json *schema_of(const struct hf_json *crd, const char *version)
{
	const struct hf_json *versions = hf_json_path(crd, "spec", "versions", NULL);

	for (size_t i = 0; i < hf_json_len(versions); i++) {
		const struct hf_json *item = hf_json_item(versions, i);

		if (hf_streq(hf_json_path_str(item, "name", NULL), version))
			return hf_json_path(item, "schema", "openAPIV3Schema", NULL);
	}
	return NULL;
}

bool hf_crd_is_narrow(const struct hf_json *crd, const char *version)
{
	const struct hf_json *root = schema_of(crd, version);
	const struct hf_json *status = hf_json_path(root, "properties", "status", NULL);
	const struct hf_json *recovery = hf_json_path(status, "properties", "recovery", NULL);

	if (root == NULL || keeps_unknown(root) || keeps_unknown(status))
		return false;
	return !keeps_unknown(recovery) &&
	       hf_json_path(recovery, "properties", "generation", NULL) == NULL;
}

/* --- watching it ---------------------------------------------------------------------------- */

static void *decode(void *arg, struct hf_doc *doc)
{
	const struct hf_kind *kind = arg;
	HF_AUTOFREE char *name =
		hf_xasprintf("%s.%s", kind->resource->plural, kind->resource->group);
	struct crd_view *view;

	if (!hf_streq(hf_doc_name(doc), name))
		return NULL;
	view = hf_xcalloc(1, sizeof(*view));
	view->narrow = hf_crd_is_narrow(hf_doc_json(doc), kind->resource->version);
	return view;
}

static void crd_changed(void *arg, enum hf_cache_change change, const struct hf_cache_entry *before,
			const struct hf_cache_entry *now)
{
	struct hf_kind *kind = arg;

	if (change == HF_CACHE_SYNCED) {
		hf_operator_check_synced(kind->op);
		return;
	}
	if (now == NULL)
		return;
	kind->narrow = ((const struct crd_view *)now->view)->narrow;
	hf_operator_enqueue_kind(kind);
}

static void crd_problem(void *arg, int code, const char *message)
{
	struct hf_kind *kind = arg;
	HF_AUTOFREE char *name = hf_xasprintf("crd/%s", kind->resource->plural);

	/* Without the right to look, the replies will tell. */
	if (code == HF_E_FORBIDDEN || code == HF_E_NOT_FOUND || code == HF_E_UNSUPPORTED) {
		kind->crd_unseen = true;
		hf_operator_check_synced(kind->op);
	}
	hf_operator_problem(kind->op, name, code, message);
}

void hf_narrow_init(struct hf_kind *kind)
{
	struct hf_operator *op = kind->op;

	if (!op->options.watch_crds)
		return;
	HF_AUTOFREE char *selector =
		hf_xasprintf("metadata.name=%s.%s", kind->resource->plural, kind->resource->group);
	const struct hf_cache_options options = {
		.loop = op->loop,
		.store = op->store,
		.resource = &hf_crds,
		.field_selector = selector,
		.seed = op->options.seed ^ hf_hash_str(selector),
		.entries_max = CRDS_MAX,
		.decode = decode,
		.view_free = free,
		.changed = crd_changed,
		.problem = crd_problem,
		.arg = kind,
	};

	kind->crd = hf_cache_create(&options);
}

void hf_narrow_start(struct hf_kind *kind)
{
	if (kind->crd != NULL)
		hf_cache_start(kind->crd);
}

bool hf_narrow_synced(const struct hf_kind *kind)
{
	return kind->crd == NULL || kind->crd_unseen || hf_cache_synced(kind->crd);
}

void hf_narrow_release(struct hf_kind *kind)
{
	kind->crd = hf_cache_destroy(kind->crd);
}

/* --- what follows --------------------------------------------------------------------------- */

void hf_narrow_tell(struct hf_pass *pass)
{
	struct hf_kind *kind = pass->kind;

	if (!kind->narrow || kind->narrow_told)
		return;
	kind->narrow_told = true;
	hf_report_job(pass, true, "NarrowCRD",
		      "the cluster's CRD has no place for status.recovery: what Holdfast counts is "
		      "kept in an annotation, and podFailurePolicy and recovery are read from "
		      "one (see holdfast manifests --crds)");
}

bool hf_narrow_learn(struct hf_pass *pass, struct hf_doc *reply)
{
	const struct hf_json *sent =
		hf_json_path(hf_doc_json(pass->patch), "status", "recovery", NULL);

	/* A part that is missing is another thing: then the schema is of another version. */
	if (pass->kind->narrow || hf_json_type(sent) != HF_JSON_OBJECT ||
	    hf_json_path(hf_doc_json(reply), "status", "recovery", NULL) != NULL)
		return false;
	pass->kind->narrow = true;
	return true;
}

void hf_narrow_begin(struct hf_pass *pass)
{
	struct hf_kind *kind = pass->kind;

	/* What stands in an annotation stays there, unless the schema says that it need not: a
	 * status that is written before its ledger would be ahead of it. */
	if (!kind->narrow && pass->view.ledger_annotated && (kind->crd == NULL || kind->crd_unseen))
		kind->narrow = true;
	if (!kind->narrow || !pass->status_left)
		return;
	pass->narrow = true;
	pass->ledger_left = true;
	/* An end is decided once.  Written only in the ledger it would be thought over again. */
	pass->status_first = hf_status_is_finished(&pass->plan.status);
	hf_narrow_tell(pass);
}

bool hf_ledger_arrived(struct hf_doc *patch, struct hf_doc *reply)
{
	const char *sent = hf_json_path_str(hf_doc_json(patch), "metadata", "annotations",
					    HF_ANNOTATION_LEDGER, NULL);

	return hf_streq(sent, hf_json_path_str(hf_doc_json(reply), "metadata", "annotations",
					       HF_ANNOTATION_LEDGER, NULL));
}
