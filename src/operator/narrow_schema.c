/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/narrow_schema_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/names.h"
#include "json/fields.h"
#include "operator/kinds_internal.h"
#include "operator/pass_internal.h"

#include <stdlib.h>

/*
 * Kinds with a CRD that has no field status.recovery (a narrow schema): how the operator finds out,
 * and where it writes then.
 *
 * Input: the CRD, or a reply that lacks the whole ledger that was sent.  Output: kind->narrow, and
 * for each pass which documents are written.
 *
 * An API server drops unknown fields and reports that only in a warning.  An operator without the
 * right to read CRDs finds out by the reply.
 */

const struct hf_resource hf_crds = {
	.group = "apiextensions.k8s.io",
	.version = "v1",
	.plural = "customresourcedefinitions",
	.singular = "customresourcedefinition",
	.kind = "CustomResourceDefinition",
	.namespaced = false,
};

/* The most CRDs in a list.  Only one object is watched, but a server may ignore the selector. */
#define CRDS_MAX 64

struct crd_view {
	bool narrow;
};

/* --- the schema ------------------------------------------------------------------------------- */

/* The fields of a CRD that are read.  A CRD may have a megabyte, so no tree is built for it. */
struct recovery_properties {
	uint64_t present;
};
struct recovery_schema {
	uint64_t present;
	bool keeps_unknown;
	struct recovery_properties properties;
};
struct status_properties {
	uint64_t present;
	struct recovery_schema recovery;
};
struct status_schema {
	uint64_t present;
	bool keeps_unknown;
	struct status_properties properties;
};
struct root_properties {
	uint64_t present;
	struct status_schema status;
};
struct root_schema {
	uint64_t present;
	bool keeps_unknown;
	struct root_properties properties;
};
struct schema {
	uint64_t present;
	struct root_schema root;
};
struct version {
	uint64_t present;
	const char *name;
	struct schema schema;
};
struct spec {
	uint64_t present;
	HF_LIST(struct version) versions;
};
struct crd {
	uint64_t present;
	struct spec spec;
};

#define KEEPS_UNKNOWN "x-kubernetes-preserve-unknown-fields"
#define VERSIONS_MAX 100

static const struct hf_field recovery_property_fields[] = {HF_FIELD_PRESENCE("generation", 0)};
static const struct hf_field_table recovery_properties =
	HF_FIELD_TABLE(recovery_property_fields, struct recovery_properties);
static const struct hf_field recovery_fields[] = {
	HF_FIELD_BOOL(KEEPS_UNKNOWN, struct recovery_schema, keeps_unknown, 0),
	HF_FIELD_OBJECT("properties", struct recovery_schema, properties, &recovery_properties, 0),
};
static const struct hf_field_table recovery_table =
	HF_FIELD_TABLE(recovery_fields, struct recovery_schema);
static const struct hf_field status_property_fields[] = {
	HF_FIELD_OBJECT("recovery", struct status_properties, recovery, &recovery_table, 0),
};
static const struct hf_field_table status_properties =
	HF_FIELD_TABLE(status_property_fields, struct status_properties);
static const struct hf_field status_fields[] = {
	HF_FIELD_BOOL(KEEPS_UNKNOWN, struct status_schema, keeps_unknown, 0),
	HF_FIELD_OBJECT("properties", struct status_schema, properties, &status_properties, 0),
};
static const struct hf_field_table status_table =
	HF_FIELD_TABLE(status_fields, struct status_schema);
static const struct hf_field root_property_fields[] = {
	HF_FIELD_OBJECT("status", struct root_properties, status, &status_table, 0),
};
static const struct hf_field_table root_properties =
	HF_FIELD_TABLE(root_property_fields, struct root_properties);
static const struct hf_field root_fields[] = {
	HF_FIELD_BOOL(KEEPS_UNKNOWN, struct root_schema, keeps_unknown, 0),
	HF_FIELD_OBJECT("properties", struct root_schema, properties, &root_properties, 0),
};
static const struct hf_field_table root_table = HF_FIELD_TABLE(root_fields, struct root_schema);
static const struct hf_field schema_fields[] = {
	HF_FIELD_OBJECT("openAPIV3Schema", struct schema, root, &root_table, 0),
};
static const struct hf_field_table schema_table = HF_FIELD_TABLE(schema_fields, struct schema);
static const struct hf_field version_fields[] = {
	HF_FIELD_STRING("name", struct version, name, 0, 0),
	HF_FIELD_OBJECT("schema", struct version, schema, &schema_table, 0),
};
static const struct hf_field_table version_table = HF_FIELD_TABLE(version_fields, struct version);
static const struct hf_field spec_fields[] = {
	HF_FIELD_OBJECTS("versions", struct spec, versions, &version_table, VERSIONS_MAX, 0),
};
static const struct hf_field_table spec_table = HF_FIELD_TABLE(spec_fields, struct spec);
static const struct hf_field crd_fields[] = {
	HF_FIELD_OBJECT("spec", struct crd, spec, &spec_table, 0),
};
static const struct hf_field_table crd_table = HF_FIELD_TABLE(crd_fields, struct crd);

static bool is_narrow(const struct version *version)
{
	const struct root_schema *root = &version->schema.root;
	const struct status_schema *status = &root->properties.status;
	const struct recovery_schema *recovery = &status->properties.recovery;
	bool keeps = root->keeps_unknown || status->keeps_unknown || recovery->keeps_unknown;

	/* A version without a schema keeps all fields, so it is not narrow. */
	return version->schema.present != 0 && !keeps && recovery->properties.present == 0;
}

bool hf_crd_is_narrow(struct hf_doc *doc, const char *version, struct hf_arena *scratch)
{
	struct crd crd;
	bool narrow = false;

	if (hf_fields_read_doc(&crd_table, doc, NULL, scratch, &crd, NULL) == 0)
		for (size_t i = 0; i < crd.spec.versions.len; i++)
			if (hf_streq(crd.spec.versions.items[i].name, version))
				narrow = is_narrow(&crd.spec.versions.items[i]);
	hf_arena_reset(scratch);
	return narrow;
}

/* --- watching the CRD of a kind --------------------------------------------------------------- */

static void *decode_crd(void *arg, struct hf_doc *doc)
{
	const struct hf_kind *kind = arg;
	HF_AUTOFREE char *name =
		hf_xasprintf("%s.%s", kind->resource->plural, kind->resource->group);
	struct crd_view *view;

	if (!hf_streq(hf_doc_name(doc), name))
		return NULL;
	view = hf_xcalloc(1, sizeof(*view));
	view->narrow = hf_crd_is_narrow(doc, kind->resource->version, kind->op->scratch);
	return view;
}

static bool schema_is_known(const struct hf_kind *kind)
{
	return kind->crd != NULL && !kind->crd_unseen;
}

static void wide_settled(void *arg)
{
	struct hf_kind *kind = arg;

	kind->narrow = false;
	hf_operator_enqueue_kind(kind);
}

/* Note the schema of the kind's CRD.  A change from narrow to wide counts only after
 * HF_WIDE_SETTLE, except at the start: no job changes its form then, and hf_narrow_begin handles
 * jobs with an annotation. */
static void schema_is(struct hf_kind *kind, bool narrow)
{
	bool goes_over = !narrow && kind->narrow && kind->running;

	if (narrow) {
		kind->wide_since = HF_TIME_NONE;
		kind->was_narrow = true;
		hf_timer_disarm(kind->wide_timer);
	} else if (kind->wide_since == HF_TIME_NONE) {
		kind->wide_since = hf_loop_mono(kind->op->loop);
		if (goes_over)
			hf_timer_arm(kind->wide_timer, HF_WIDE_SETTLE);
	}
	kind->narrow = narrow || hf_timer_armed(kind->wide_timer);
}

static void crd_changed(void *arg, enum hf_cache_change change, const struct hf_cache_entry *before,
			const struct hf_cache_entry *now)
{
	struct hf_kind *kind = arg;

	kind->crd_unseen = false;
	if (change == HF_CACHE_SYNCED) {
		hf_operator_check_synced(kind->op);
		return;
	}
	if (now == NULL)
		return;
	schema_is(kind, ((const struct crd_view *)now->view)->narrow);
	if (kind->running)
		hf_kind_found(kind);
	hf_operator_enqueue_kind(kind);
}

static void crd_problem(void *arg, int code, const char *message)
{
	struct hf_kind *kind = arg;
	bool told = kind->crd_unseen;

	/* Without the right to read CRDs, replies show whether the schema is narrow.  The missing
	 * right is logged once. */
	if (code == HF_E_FORBIDDEN || code == HF_E_NOT_FOUND || code == HF_E_UNSUPPORTED) {
		kind->crd_unseen = true;
		hf_operator_check_synced(kind->op);
		if (told)
			return;
	}
	hf_operator_problem(kind->op, hf_crds.plural, code, message);
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
		.decode = decode_crd,
		.view_free = free,
		.changed = crd_changed,
		.problem = crd_problem,
		.arg = kind,
	};

	kind->crd = hf_cache_create(&options);
	kind->wide_since = HF_TIME_NONE;
	kind->wide_timer = hf_timer_create(op->loop, wide_settled, kind);
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
	hf_timer_destroy(kind->wide_timer);
}

/* --- what the schema means for a job ---------------------------------------------------------- */

void hf_narrow_tell(struct hf_pass *pass)
{
	struct hf_kind *kind = pass->kind;

	if (!kind->narrow || kind->narrow_told)
		return;
	kind->narrow_told = true;
	hf_report_job(
		pass, true, "NarrowCRD",
		"the cluster's CRD has no field status.recovery: Holdfast keeps its counters in an "
		"annotation, and reads podFailurePolicy and recovery from "
		"annotations (see holdfast manifests --crds)");
}

bool hf_narrow_learn(struct hf_pass *pass, struct hf_doc *reply)
{
	const struct hf_json *sent =
		hf_json_path(hf_doc_json(pass->patch), "status", "recovery", NULL);

	/* If only some fields of the ledger are missing in the reply, the CRD is of another
	 * version, not narrow. */
	if (pass->kind->narrow || hf_json_type(sent) != HF_JSON_OBJECT ||
	    hf_json_path(hf_doc_json(reply), "status", "recovery", NULL) != NULL)
		return false;
	/* If the CRD is known to have the field, only the API server that answered is behind. */
	pass->kind->was_narrow = true;
	pass->kind->narrow = !schema_is_known(pass->kind);
	return true;
}

bool hf_narrow_must_look(const struct hf_pass *pass)
{
	const struct hf_kind *kind = pass->kind;
	const struct hf_status *status = &pass->view.status;
	bool begun = status->conditions_len > 0 || status->start_time != HF_TIME_NONE;
	bool hidden = pass->view.ledger_annotated ||
		      (kind->was_narrow && begun && !status->ledger.present);

	return hidden && schema_is_known(kind) && !kind->narrow && !hf_status_is_finished(status) &&
	       !hf_streq(pass->state->looked, hf_doc_resource_version(pass->job));
}

/* The schema is wide, but not for long enough to move a ledger out of its annotation. */
static bool is_fresh(const struct hf_kind *kind)
{
	return kind->wide_since != HF_TIME_NONE &&
	       hf_loop_mono(kind->op->loop) - kind->wide_since < HF_WIDE_SETTLE;
}

void hf_narrow_begin(struct hf_pass *pass)
{
	struct hf_kind *kind = pass->kind;
	bool annotated = pass->view.ledger_annotated;

	/* Keep a ledger in its annotation until the schema is known to be wide.  Otherwise the
	 * status would be written before its ledger.  One job's annotation says nothing of its kind:
	 * a user may have written it. */
	bool unknown = annotated && !schema_is_known(kind) && !kind->keeps;
	/* A stored status.recovery shows that the CRD has the field. */
	bool in_status = pass->view.status.ledger.present && !annotated;

	if (in_status || pass->writes != HF_WRITES_STATUS ||
	    !(kind->narrow || unknown || (annotated && is_fresh(kind))))
		return;
	pass->writes = HF_WRITES_LEDGER;
	hf_narrow_tell(pass);
}

bool hf_ledger_arrived(struct hf_doc *patch, struct hf_doc *reply)
{
	const char *sent = hf_json_path_str(hf_doc_json(patch), "metadata", "annotations",
					    HF_ANNOTATION_LEDGER, NULL);

	return hf_streq(sent, hf_json_path_str(hf_doc_json(reply), "metadata", "annotations",
					       HF_ANNOTATION_LEDGER, NULL));
}
