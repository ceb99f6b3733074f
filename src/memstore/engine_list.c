/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* GET and LIST, for the present state or an earlier version, and the dispatch of all verbs
 * (hf_engine_apply). Input: a request; output: a struct hf_result, which the caller releases. */

struct lister {
	struct hf_op *op;
	const struct hf_selector *labels, *fields;
	const char *ns; /* NULL: all namespaces */
	/* The key of the last object of the previous page, behind which this page begins; NULL:
	 * this is the first page. */
	const char *after_ns, *after_name;
	HF_VEC(struct hf_doc *) docs;
	bool more;        /* the page is full, and at least one further object matches */
	int64_t unlisted; /* matching objects after the page */
};

static bool is_selected(const struct lister *l, struct hf_doc *doc)
{
	const struct hf_json *object = hf_doc_json(doc);

	return hf_selector_match_labels(l->labels,
					hf_json_path(object, "metadata", "labels", NULL)) &&
	       hf_selector_match_fields(l->fields, object);
}

/* Adds doc if the selectors match it. Returns false if the list needs no further objects. */
static bool list_one(struct lister *l, struct hf_doc *doc)
{
	int64_t limit = l->op->request->limit;

	if (!is_selected(l, doc))
		return true;
	if (limit > 0 && l->docs.len == (size_t)limit) {
		l->more = true;
		l->unlisted++;
		/* Continue if the reply needs the number of further objects (remainingItemCount).
		 * With selectors the number is left out, because counting would evaluate them for
		 * all objects. */
		return !l->labels && !l->fields;
	}
	hf_assert(HF_VEC_PUSH(&l->docs, hf_doc_ref(doc)));
	return true;
}

static bool list_past(void *arg, struct hf_doc *doc)
{
	struct lister *l = arg;

	if (l->ns && !hf_streq(hf_doc_namespace(doc), l->ns))
		return true;
	return list_one(l, doc);
}

static void list_now(struct lister *l)
{
	const struct hf_kind *kind = l->op->kind;
	const char *exact = hf_selector_exact(l->fields, "metadata.name");

	if (exact && (l->ns || !kind->resource->namespaced)) {
		struct hf_entry *entry = hf_kind_find(kind, l->ns, exact);
		if (entry)
			list_one(l, entry->doc);
		return;
	}
	for (size_t i = hf_kind_lower_bound(kind, hf_str_or(l->ns, ""), ""); i < kind->entries.len;
	     i++) {
		struct hf_entry *entry = kind->entries.items[i];
		if ((l->ns && !hf_streq(entry->ns, l->ns)) || !list_one(l, entry->doc))
			break;
	}
}

/* Parses "VERSION:NAMESPACE/NAME": the version of the whole list, and the last key of the previous
 * page. */
static int parse_token(struct hf_op *op, struct lister *l, char *token, uint64_t *ret_version)
{
	char *colon = strchr(token, ':');
	char *slash = colon ? strchr(colon, '/') : NULL;
	int64_t version;

	if (colon)
		*colon = '\0';
	if (!slash || hf_str_to_i64(token, 0, INT64_MAX, &version, NULL))
		return hf_op_fail(op, HF_E_BAD_REQUEST, "continue key is not valid");
	*slash = '\0';
	l->after_ns = colon + 1;
	l->after_name = slash + 1;
	*ret_version = (uint64_t)version;
	return 0;
}

static int list_at(struct lister *l)
{
	struct hf_op *op = l->op;
	struct hf_error err = {0};
	const struct hf_snapshot snapshot = {
		.kind = op->kind,
		.version = op->result->version,
		.after_ns = l->after_ns,
		.after_name = l->after_name,
		.fn = list_past,
		.arg = l,
	};
	int rc = hf_engine_snapshot(op->engine, &snapshot, &err);

	return rc ? hf_op_fail(op, rc, "%s", err.text) : 0;
}

static int list_continued(struct lister *l)
{
	HF_AUTOFREE char *token = hf_xstrdup(l->op->request->continue_token);
	int rc = parse_token(l->op, l, token, &l->op->result->version);

	return rc ? rc : list_at(l);
}

/* Refuses a resourceVersion that the store has not reached yet. */
static int check_version(struct hf_op *op)
{
	const char *text = op->request->resource_version;
	int64_t version;

	if (hf_str_is_empty(text))
		return 0;
	if (hf_str_to_i64(text, 0, INT64_MAX, &version, NULL))
		return hf_op_fail(op, HF_E_BAD_REQUEST, "resourceVersion: Invalid value: \"%s\"",
				  text);
	if ((uint64_t)version > op->engine->version)
		return hf_op_fail(op, HF_E_TIMEOUT,
				  "Too large resource version: %" PRId64 ", current: %" PRIu64,
				  version, op->engine->version);
	return 0;
}

static void finish_list(struct lister *l)
{
	struct hf_result *result = l->op->result;
	struct hf_doc *last = l->docs.len ? l->docs.items[l->docs.len - 1] : NULL;

	result->items = l->docs.items;
	result->n_items = l->docs.len;
	result->remaining = l->more ? (l->labels || l->fields ? -1 : l->unlisted) : 0;
	if (l->more)
		result->continue_token = hf_xasprintf("%" PRIu64 ":%s/%s", result->version,
						      hf_doc_namespace(last), hf_doc_name(last));
}

static int list_with(struct hf_op *op, struct lister *l, const uint64_t *past)
{
	int rc = 0;

	op->result->version = past ? *past : op->engine->version;
	if (op->request->continue_token && *op->request->continue_token)
		rc = list_continued(l);
	else if (past)
		rc = list_at(l);
	else
		list_now(l);
	if (rc == 0) {
		finish_list(l);
		return 0;
	}
	for (size_t i = 0; i < l->docs.len; i++)
		hf_doc_unref(l->docs.items[i]);
	HF_VEC_RELEASE(&l->docs);
	return rc;
}

/* Lists objects, in their state at the version *past; NULL: in their present state. */
static int list_objects(struct hf_op *op, const uint64_t *past)
{
	const struct hf_request *request = op->request;
	struct hf_selector *labels = NULL, *fields = NULL;
	struct hf_error err = {0};
	int rc = hf_selector_parse_labels(request->label_selector, &labels, &err);

	if (rc == 0)
		rc = hf_selector_parse_fields(request->field_selector, op->kind->info->fields,
					      &fields, &err);
	if (rc == 0) {
		struct lister l = {.op = op,
				   .labels = labels,
				   .fields = fields,
				   .ns = op->kind->resource->namespaced ? request->ns : NULL};
		l.docs.len_max = SIZE_MAX / sizeof(struct hf_doc *);
		rc = check_version(op);
		if (rc == 0)
			rc = list_with(op, &l, past);
	} else {
		rc = hf_op_fail(op, rc, "%s", err.text);
	}
	hf_selector_destroy(labels);
	hf_selector_destroy(fields);
	return rc;
}

int hf_op_list(struct hf_op *op)
{
	return list_objects(op, NULL);
}

int hf_op_get(struct hf_op *op)
{
	struct hf_entry *entry = hf_kind_find(op->kind, op->request->ns, op->request->name);

	if (!entry)
		return hf_op_not_found(op);
	if (hf_streq(op->request->subresource, "scale")) {
		struct hf_json *scale = hf_op_scale_of(op, entry);
		return scale ? hf_op_done(op, hf_doc_from_json(scale)) : op->result->code;
	}
	if (hf_streq(op->request->subresource, "status") && !op->kind->info->status)
		return hf_op_fail(op, HF_E_NOT_FOUND,
				  "the server could not find the requested resource");
	int rc = check_version(op);
	return rc ? rc : hf_op_done(op, hf_doc_ref(entry->doc));
}

/* --- dispatch --- */

static bool op_init(struct hf_op *op, struct hf_engine *engine, const struct hf_request *request,
		    struct hf_result *result)
{
	*result = (struct hf_result){.remaining = -1};
	*op = (struct hf_op){.engine = engine,
			     .request = request,
			     .result = result,
			     .kind = hf_engine_kind(engine, request->resource),
			     .now = engine->env.now(engine->env.now_arg)};
	if (!op->kind) {
		hf_op_fail(op, HF_E_NOT_FOUND, "the server could not find the requested resource");
		return false;
	}
	struct hf_error err = {0};
	int rc = hf_request_check(request, &err);
	if (rc)
		hf_op_fail(op, rc, "%s", err.text);
	return rc == 0;
}

void hf_engine_apply(struct hf_engine *engine, const struct hf_request *request,
		     struct hf_result *ret_result)
{
	static int (*const verbs[])(struct hf_op * op) = {
		[HF_VERB_GET] = hf_op_get,       [HF_VERB_LIST] = hf_op_list,
		[HF_VERB_CREATE] = hf_op_create, [HF_VERB_UPDATE] = hf_op_update,
		[HF_VERB_PATCH] = hf_op_patch,   [HF_VERB_DELETE] = hf_op_delete,
	};
	struct hf_op op;

	hf_assert((size_t)request->verb < HF_ARRAY_LEN(verbs));
	if (op_init(&op, engine, request, ret_result))
		verbs[request->verb](&op);
	hf_json_unref(op.causes);
}

/* Returns the version at which the kind was before its last `stale` changes. */
static uint64_t version_ago(const struct hf_kind *kind, uint64_t stale)
{
	const struct hf_history *h = &kind->history;

	if (stale >= h->len)
		return h->oldest;
	return hf_history_at(h, h->first + h->len - stale)->version - 1;
}

void hf_engine_read_past(struct hf_engine *engine, const struct hf_request *request, uint64_t stale,
			 struct hf_result *ret_result)
{
	struct hf_op op;
	struct hf_request as_list = *request;

	if (stale == 0 || (request->verb != HF_VERB_GET && request->verb != HF_VERB_LIST)) {
		hf_engine_apply(engine, request, ret_result);
		return;
	}
	if (!op_init(&op, engine, request, ret_result))
		return;
	uint64_t version = version_ago(op.kind, stale);
	if (request->verb == HF_VERB_LIST) {
		list_objects(&op, &version);
		return;
	}
	/* An old state can only be listed, so read the object as a list with a field selector for
	 * its name. */
	HF_AUTOFREE char *fields = hf_xasprintf("metadata.name=%s", request->name);
	as_list.verb = HF_VERB_LIST;
	as_list.field_selector = fields;
	as_list.limit = 0;
	op.request = &as_list;
	if (list_objects(&op, &version))
		return;
	struct hf_doc *found = ret_result->n_items ? hf_doc_ref(ret_result->items[0]) : NULL;
	hf_result_release(ret_result);
	op.request = request;
	if (found)
		hf_op_done(&op, found);
	else
		hf_op_not_found(&op);
}
