/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"

#include "api/reader_internal.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "core/model/names.h"
#include "json/patch.h"

#include <string.h>

/*
 * Reads and writes the annotations that hold what a job's CRD has no field for:
 *   holdfast.dev/run-policy   podFailurePolicy and recovery of runPolicy, written by users
 *   holdfast.dev/ledger       the ledger, written by Holdfast
 * Each value is the text of a JSON object. The parsed tree lives only during the read, so every
 * string that is read from it is copied to the arena.
 */

#define VALUE_BYTES_MAX 80 /* bytes of an unreadable value that an error message quotes */

/* Parses the annotation `name`. Returns HF_E_NOT_FOUND if the job has no such annotation,
 * HF_E_BAD_REQUEST if its value is not an object, else the result of hf_json_parse. */
static int parse_annotation(const struct hf_json *root, const char *name, struct hf_json **ret_json,
			    struct hf_error *err)
{
	const char *text = hf_json_path_str(root, "metadata", "annotations", name, NULL);
	HF_AUTO_JSON json = NULL;
	int rc;

	if (text == NULL)
		return HF_E_NOT_FOUND;
	rc = hf_json_parse(text, strlen(text), NULL, &json, err);
	if (rc != 0)
		return rc;
	if (hf_json_type(json) != HF_JSON_OBJECT)
		return hf_error_set(err, HF_E_BAD_REQUEST, "is no JSON object");
	*ret_json = hf_steal(&json);
	return 0;
}

/* Merges the policy of the annotation with spec.runPolicy. Where both set a field, the value of the
 * spec counts; this holds for fields of nested objects too. */
static struct hf_json *merge_policy(const struct hf_json *annotation, const struct hf_json *spec)
{
	static const char *const keys[] = {"podFailurePolicy", "recovery"};
	const struct hf_json *policy = hf_json_get(spec, "runPolicy");
	HF_AUTO_JSON patch = hf_json_object();

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++)
		if (hf_json_get(policy, keys[i]) != NULL)
			hf_json_set(patch, keys[i], hf_json_copy(hf_json_get(policy, keys[i])));
	return hf_json_merge_patch(annotation, patch);
}

struct hf_json *hf_job_run_policy(const struct hf_json *job)
{
	const struct hf_json *spec = hf_json_get(job, "spec");
	HF_AUTO_JSON annotation = NULL;
	struct hf_error err;

	if (parse_annotation(job, HF_ANNOTATION_RUN_POLICY, &annotation, &err) != 0)
		return hf_json_ref(hf_json_get(spec, "runPolicy"));
	return merge_policy(annotation, spec);
}

/* Quotes the annotation's value for an error message, cut at VALUE_BYTES_MAX. */
static const char *quote_front(struct hf_field_errors *errors, const struct hf_json *root)
{
	const char *text =
		hf_json_path_str(root, "metadata", "annotations", HF_ANNOTATION_RUN_POLICY, NULL);
	size_t len = strlen(text), cut = len;

	if (len > VALUE_BYTES_MAX)
		for (cut = VALUE_BYTES_MAX; cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80;)
			cut--;
	HF_AUTOFREE char *front = hf_xasprintf("%.*s%s", (int)cut, text, cut < len ? "..." : "");
	return hf_field_quote(errors, front);
}

void hf_read_policy_annotation(struct hf_reader *outer, const struct hf_json *root,
			       struct hf_job_view *view)
{
	struct hf_field_errors errors;
	struct hf_reader r = {.arena = outer->arena, .errors = &errors, .copy = true};
	HF_AUTO_JSON annotation = NULL;
	HF_AUTO_JSON merged = NULL;
	struct hf_error err;
	int rc = parse_annotation(root, HF_ANNOTATION_RUN_POLICY, &annotation, &err);

	if (rc == HF_E_NOT_FOUND)
		return;
	view->policy_annotated = true;
	hf_field_errors_init(&errors, outer->arena);
	(void)hf_reader_enter(&r, "metadata.annotations[" HF_ANNOTATION_RUN_POLICY "]");
	if (rc != 0) {
		hf_field_add(&errors, HF_PROBLEM_INVALID, quote_front(&errors, root), err.text,
			     "%s", hf_reader_path(&r));
	} else {
		hf_check_policy_additions(&r, view->framework, annotation);
		merged = merge_policy(annotation, hf_json_get(root, "spec"));
		hf_read_policy_additions(&r, merged, &view->run_policy);
	}
	if (hf_field_errors_result(&errors, &err) != 0)
		view->policy_problem = hf_arena_strdup(outer->arena, err.text);
	for (size_t i = 0; outer->errors != NULL && i < errors.len; i++)
		hf_field_add(outer->errors, errors.items[i].problem, errors.items[i].value,
			     hf_str_or(errors.items[i].detail, ""), "%s", errors.items[i].field);
}

/* True if the ledger of the annotation contains the UID of this job. A copied object keeps its
 * annotations but has another UID, so the copied ledger belongs to another job. */
static bool is_of(const struct hf_json *ledger, const char *uid)
{
	return hf_streq(hf_json_path_str(ledger, "uid", NULL), uid);
}

void hf_read_ledger_annotation(const struct hf_json *root, struct hf_arena *arena,
			       struct hf_job_view *view)
{
	struct hf_reader r = {.arena = arena, .copy = true};
	HF_AUTO_JSON ledger = NULL;
	struct hf_error err;
	int rc = parse_annotation(root, HF_ANNOTATION_LEDGER, &ledger, &err);

	if (rc == HF_E_NOT_FOUND)
		return;
	if (rc == 0 && !is_of(ledger, view->uid))
		return;
	if (rc == 0)
		hf_read_ledger(&r, ledger, view->framework, &view->status.ledger);
	/* A ledger that cannot be read is reported as broken, never as absent: the counters may be
	 * nonzero. */
	view->status.ledger.present = true;
	view->status.ledger.broken = rc != 0;
	view->ledger_annotated = true;
}

struct hf_json *hf_job_recovery(const struct hf_json *job)
{
	struct hf_json *stored = hf_json_path(job, "status", "recovery", NULL);
	HF_AUTO_JSON ledger = NULL;
	struct hf_error err;

	if (stored != NULL)
		return hf_json_ref(stored);
	if (parse_annotation(job, HF_ANNOTATION_LEDGER, &ledger, &err) != 0 ||
	    !is_of(ledger, hf_json_path_str(job, "metadata", "uid", NULL)))
		return NULL;
	return hf_steal(&ledger);
}

int hf_ledger_patch(const struct hf_ledger *ledger, const struct hf_framework *framework,
		    struct hf_doc *job, struct hf_doc **ret_patch, struct hf_error *err)
{
	const char *stored = hf_json_path_str(hf_doc_json(job), "metadata", "annotations",
					      HF_ANNOTATION_LEDGER, NULL);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_LEDGER_TEXT_MAX);
	HF_AUTO_JSON written = NULL;
	struct hf_json *patch, *metadata;

	if (ledger->kept || !ledger->present)
		return 0;
	written = hf_ledger_json(ledger, framework);
	hf_json_set_str(written, "uid", hf_doc_uid(job));
	hf_json_write(written, HF_JSON_COMPACT, &text);
	if (text.full)
		return hf_error_set(err, HF_E_TOO_LARGE,
				    "the job's ledger has more than %zu bytes: an annotation "
				    "cannot hold it",
				    HF_LEDGER_TEXT_MAX);
	if (hf_streq(text.data, stored))
		return 0;
	patch = hf_json_object();
	metadata = hf_json_ensure_object(patch, "metadata");
	hf_json_set_str(metadata, "resourceVersion", hf_doc_resource_version(job));
	hf_json_set_str(hf_json_ensure_object(metadata, "annotations"), HF_ANNOTATION_LEDGER,
			text.data);
	*ret_patch = hf_doc_from_json(patch);
	return 0;
}
