/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/admission.h"

#include "api/job.h"
#include "apiserver/admission_internal.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/resource.h"

#include <stdlib.h>

/*
 * Admission of jobs, and the table that gives each kind its rules.
 *
 * Input: the object of a CREATE, PUT or PATCH, private to the request. Output: the same object with
 * defaults and without unknown fields, or the causes of an "Invalid" Status. Jobs follow the CRD's
 * defaults and the rules of api/job.h. The other kinds are in admission_pod.c and admission_core.c.
 */

/* Limit of passes over a job's unknown fields; each pass finds at most HF_FIELD_ERRORS_MAX of
 * them. */
#define UNKNOWN_PASSES_MAX 64

/* ---- jobs --------------------------------------------------------------------------------- */

/* Sets the defaults that the CRD has. runPolicy is needed because list_jobs of the Python SDK
 * fails on a job without it. */
static void default_job(struct hf_json *object)
{
	struct hf_json *spec = hf_json_get(object, "spec"), *policy;

	if (hf_json_type(spec) != HF_JSON_OBJECT)
		return;
	policy = hf_json_get(spec, "runPolicy");
	if (policy == NULL || hf_json_type(policy) == HF_JSON_NULL)
		policy = hf_json_ensure_object(spec, "runPolicy");
	if (hf_json_type(policy) == HF_JSON_OBJECT)
		hf_default_bool(policy, "suspend", false);
}

/* Removes every field that the job's schema does not have, as an API server does with a CRD. Puts
 * the paths of the removed fields into unknown, at most HF_FIELDS_UNKNOWN_MAX; the texts belong to
 * the arena. */
static int prune_job(struct hf_json *object, const struct hf_framework *framework,
		     struct hf_arena *arena, char *unknown[HF_FIELDS_UNKNOWN_MAX], size_t *ret_len)
{
	size_t len = 0;

	for (int pass = 0; pass < UNKNOWN_PASSES_MAX; pass++) {
		struct hf_field_errors errors;
		HF_AUTO_DOC doc = hf_doc_from_json(hf_json_ref(object));
		hf_field_errors_init(&errors, arena);
		hf_job_read_unknown(doc, framework, &errors);
		for (size_t i = 0; i < errors.len; i++) {
			if (len < HF_FIELDS_UNKNOWN_MAX)
				unknown[len++] = hf_arena_strdup(arena, errors.items[i].field);
			/* Give up if a field cannot be removed: each pass would find it again. */
			if (!hf_fields_remove(object, errors.items[i].field))
				return HF_E_BAD_REQUEST;
		}
		if (errors.dropped == 0) {
			*ret_len = len;
			return 0;
		}
	}
	return HF_E_BAD_REQUEST;
}

int hf_admit_job(void *arg, struct hf_admission *admission, struct hf_error *err)
{
	const struct hf_framework *framework = arg;
	HF_AUTO_ARENA arena = hf_arena_create(HF_ADMISSION_BYTES_MAX);
	char *unknown[HF_FIELDS_UNKNOWN_MAX];
	struct hf_field_errors errors;
	size_t n_unknown = 0;
	int rc = prune_job(admission->object, framework, arena, unknown, &n_unknown);

	if (rc != 0)
		return hf_error_set(err, rc, "%s has more unknown fields than Holdfast can remove",
				    framework->kind);
	rc = hf_fields_unknown(admission, unknown, n_unknown, err);
	if (rc != 0)
		return rc;
	default_job(admission->object);
	HF_AUTO_DOC doc = hf_doc_from_json(hf_json_ref(admission->object));
	HF_AUTO_DOC old = admission->before == NULL
				  ? NULL
				  : hf_doc_from_json(hf_json_share(admission->before));
	hf_field_errors_init(&errors, arena);
	hf_job_check(doc, old, framework, &errors);
	hf_admission_report(admission, &errors);
	return errors.len == 0 ? 0 : hf_error_set(err, HF_E_INVALID, "%zu problems", errors.len);
}

/* Refuses a job of a kind that this plane does not run: no controller would ever create its
 * pods. */
static int refuse_job(void *arg, struct hf_admission *admission, struct hf_error *err)
{
	return hf_error_set(err, HF_E_FORBIDDEN, "this version of Holdfast does not run %s",
			    admission->resource->kind);
}

/* ---- */

static void install_jobs(struct hf_memstore *memstore, const struct hf_framework *const *frameworks)
{
	for (size_t i = 0; i < hf_resource_count(); i++) {
		const struct hf_resource *resource = hf_resource_at(i)->resource;
		struct hf_memstore_rules rules = {.admit = refuse_job};
		if (!hf_resource_is_job(resource))
			continue;
		for (size_t k = 0; frameworks[k] != NULL; k++) {
			/* A union, because the rules have a pointer without const, and
			 * hf_admit_job only reads through it. */
			union {
				const struct hf_framework *table;
				void *arg;
			} u = {.table = frameworks[k]};
			if (hf_streq(u.table->plural, resource->plural))
				rules = (struct hf_memstore_rules){.admit = hf_admit_job,
								   .arg = u.arg};
		}
		hf_memstore_set_rules(memstore, resource, &rules);
	}
}

void hf_admission_install(struct hf_memstore *memstore,
			  const struct hf_framework *const *frameworks)
{
	static const struct {
		const struct hf_resource *resource;
		int (*admit)(void *arg, struct hf_admission *admission, struct hf_error *err);
	} kinds[] = {
		{&hf_pods, hf_admit_pod},
		{&hf_services, hf_admit_service},
		{&hf_configmaps, hf_admit_configmap},
		{&hf_secrets, hf_admit_secret},
	};

	install_jobs(memstore, frameworks);
	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		hf_memstore_set_rules(memstore, kinds[i].resource,
				      &(struct hf_memstore_rules){.admit = kinds[i].admit});
}
