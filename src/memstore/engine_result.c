/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "memstore/engine_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/*
 * Results of requests: the reply's object, or a Status with message and causes in an API server's
 * words; the calls of the kinds' rules (admission).
 */

/* Longest message of one result. */
#define MESSAGE_BYTES_MAX 8192
#define WARNINGS_MAX 32
#define CAUSES_MAX 64

void hf_result_release(struct hf_result *result)
{
	hf_doc_unref(result->object);
	for (size_t i = 0; i < result->n_items; i++)
		hf_doc_unref(result->items[i]);
	free(result->items);
	free(result->continue_token);
	for (size_t i = 0; i < result->n_warnings; i++)
		free(result->warnings[i]);
	free(result->warnings);
	*result = (struct hf_result){0};
}

/* Put the whole message into the Status; result->err has room for its beginning only. */
static int fail_text(struct hf_op *op, int code, const char *name, const char *message)
{
	struct hf_result *result = op->result;
	struct hf_status_args args = {
		.code = code,
		.message = message,
		/* Leave details out of an "Invalid" Status without causes: then clients show the
		 * message instead. */
		.resource = op->kind && (code != HF_E_INVALID || op->causes) ? op->kind->resource
									     : NULL,
		.name = name,
		.causes = hf_steal(&op->causes),
	};

	hf_error_set(&result->err, code, "%s", message);
	result->code = code;
	hf_doc_unref(result->object);
	result->object = hf_doc_from_json(hf_status_failure(&args));
	return code;
}

static int fail_buf(struct hf_op *op, int code, const char *name, struct hf_strbuf *sb)
{
	int rc = fail_text(op, code, name, sb->data);

	hf_strbuf_release(sb);
	return rc;
}

int hf_op_fail(struct hf_op *op, int code, const char *fmt, ...)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&sb, fmt, ap);
	va_end(ap);
	return fail_buf(op, code, op->request->name, &sb);
}

int hf_op_not_found(struct hf_op *op)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);

	hf_message_not_found(&sb, op->kind->resource, op->request->name);
	return fail_buf(op, HF_E_NOT_FOUND, op->request->name, &sb);
}

int hf_op_exists(struct hf_op *op, const char *name)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);

	hf_message_exists(&sb, op->kind->resource, name);
	return fail_buf(op, HF_E_EXISTS, name, &sb);
}

int hf_op_conflict(struct hf_op *op, const char *why)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);

	hf_message_conflict(&sb, op->kind->resource, op->request->name, why);
	return fail_buf(op, HF_E_CONFLICT, op->request->name, &sb);
}

int hf_op_forbidden(struct hf_op *op, const char *name, const char *why)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);

	hf_message_forbidden(&sb, op->kind->resource, name, why);
	return fail_buf(op, HF_E_FORBIDDEN, name, &sb);
}

int hf_op_done(struct hf_op *op, struct hf_doc *object)
{
	op->result->code = HF_OK;
	op->result->object = object;
	return HF_OK;
}

static void add_cause(struct hf_op *op, const char *reason, const char *field, const char *message)
{
	if (!op->causes)
		op->causes = hf_json_array();
	if (hf_json_len(op->causes) >= CAUSES_MAX)
		return;
	struct hf_json *cause = hf_json_object();
	hf_json_set_str(cause, "reason", reason);
	hf_json_set_str(cause, "message", message);
	hf_json_set_str(cause, "field", field);
	hf_json_append(op->causes, cause);
}

void hf_op_problem(struct hf_op *op, const char *reason, const char *field, const char *fmt, ...)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&sb, fmt, ap);
	va_end(ap);
	add_cause(op, reason, field, sb.data);
	hf_strbuf_release(&sb);
}

bool hf_op_has_problems(const struct hf_op *op)
{
	return op->causes != NULL;
}

/* Makes the Status of an invalid object. The message joins the causes as apimachinery does:
 * "field: message", several causes in brackets. */
int hf_op_invalid(struct hf_op *op, const char *name)
{
	struct hf_strbuf list = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);
	struct hf_strbuf sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);
	size_t n = hf_json_len(op->causes);

	if (n > 1)
		hf_strbuf_addch(&list, '[');
	for (size_t i = 0; i < n; i++) {
		const struct hf_json *cause = hf_json_item(op->causes, i);
		hf_strbuf_addf(&list, "%s%s: %s", i ? ", " : "",
			       hf_json_str(hf_json_get(cause, "field"), ""),
			       hf_json_str(hf_json_get(cause, "message"), ""));
	}
	if (n > 1)
		hf_strbuf_addch(&list, ']');
	hf_message_invalid(&sb, op->kind->resource, name, list.data);
	hf_strbuf_release(&list);
	return fail_buf(op, HF_E_INVALID, name, &sb);
}

void hf_op_warn(struct hf_op *op, const char *text)
{
	struct hf_result *result = op->result;

	if (result->n_warnings == WARNINGS_MAX)
		return;
	result->warnings = hf_xrealloc(result->warnings, (result->n_warnings + 1) * sizeof(char *));
	result->warnings[result->n_warnings++] = hf_xstrdup(text);
}

/* --- admission --- */

void hf_admission_cause(struct hf_admission *admission, const char *reason, const char *field,
			const char *message)
{
	add_cause(admission->internal, reason, field, message);
}

void hf_admission_warn(struct hf_admission *admission, const char *text)
{
	hf_op_warn(admission->internal, text);
}

/* Makes the Status for the code that a rule returned. HF_E_INVALID uses the causes that the rule
 * added; other codes use the text of err. */
static int admit_refused(struct hf_op *op, int code, const char *name, const struct hf_error *err)
{
	if (code == HF_E_INVALID && hf_op_has_problems(op))
		return hf_op_invalid(op, name);
	if (code == HF_E_FORBIDDEN)
		return hf_op_forbidden(op, name, err->text);
	return hf_op_fail(op, code, "%s", err->text);
}

int hf_op_admit(struct hf_op *op, enum hf_verb verb, struct hf_doc *before, struct hf_json **object)
{
	const struct hf_memstore_rules *rules = &op->kind->rules;
	const struct hf_request *request = op->request;
	struct hf_error err = {0};

	if (!rules->admit || (request->subresource && !rules->on_status) ||
	    (verb == HF_VERB_DELETE && !rules->on_delete))
		return 0;
	if (object) {
		/* Copy the object for the rule, which may change it: the object may share parts
		 * with the stored object. */
		struct hf_json *private = hf_json_copy(*object);
		hf_json_unref(*object);
		*object = private;
	}
	struct hf_admission admission = {
		.verb = verb,
		.resource = op->kind->resource,
		.subresource = request->subresource,
		.ns = request->ns,
		.name = hf_str_or(
			request->name,
			object ? hf_str_or(hf_json_path_str(*object, "metadata", "name", NULL), "")
			       : ""),
		.before = hf_doc_json(before),
		.object = object ? *object : NULL,
		.field_validation = hf_str_or(request->field_validation, "Warn"),
		.dry_run = request->dry_run,
		.internal = op,
	};
	int rc = rules->admit(rules->arg, &admission, &err);
	if (rc)
		return admit_refused(op, rc, admission.name, &err);
	return hf_op_has_problems(op) ? hf_op_invalid(op, admission.name) : 0;
}
