/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APISERVER_ADMISSION_INTERNAL_H
#define HF_APISERVER_ADMISSION_INTERNAL_H

#include "api/pod_rules.h"
#include "api/schema.h"
#include "base/strbuf.h"
#include "memstore/memstore.h"

/*
 * Shared by the rules of all kinds: field checks, defaults, and problems in the words of an API
 * server.
 */

/*
 * Checks admission->object against its table of fields. Returns HF_E_BAD_REQUEST for a wrong type:
 * an API server could not decode such an object. Removes unknown fields; fieldValidation decides
 * whether they are also refused or warned of.
 */
int hf_fields_check(struct hf_admission *admission, const struct hf_schema *schema,
		    struct hf_error *err) HF_MUST_CHECK;

/* Refuses the request, or adds warnings, because unknown fields were removed; fieldValidation
 * decides which of the two. unknown: the paths of `len` removed fields. */
int hf_fields_unknown(struct hf_admission *admission, char *const *unknown, size_t len,
		      struct hf_error *err) HF_MUST_CHECK;
/* Removes the field at a path like spec.a.b[0].c; false if the object has no such field. */
bool hf_fields_remove(struct hf_json *object, const char *path);
#define HF_FIELDS_UNKNOWN_MAX 32 /* paths reported; all fields are removed */

/* Adds a cause for a missing value. fmt and its arguments make the path of the field; detail is
 * the text after the reason. */
void hf_problem_required(struct hf_admission *admission, const char *detail, const char *fmt, ...)
	HF_PRINTF(3, 4);
/* Adds a cause for an invalid value. value is printed as JSON; NULL prints null. */
void hf_problem_invalid(struct hf_admission *admission, const struct hf_json *value,
			const char *detail, const char *fmt, ...) HF_PRINTF(4, 5);
/* Adds a cause for a value that is not among the supported ones. supported ends with NULL. */
void hf_problem_not_supported(struct hf_admission *admission, const char *value,
			      const char *const *supported, const char *fmt, ...) HF_PRINTF(4, 5);

/* Memory limit of one check: the object's texts (at most 1.5 MiB), quoted (four times) and
 * copied. */
#define HF_ADMISSION_BYTES_MAX ((size_t)64 << 20)
/* Makes a cause of each error, and a Warning header of each warning. */
void hf_admission_report(struct hf_admission *admission, const struct hf_field_errors *errors);

/* Sets a default: a member that is absent or null gets the value. */
void hf_default_str(struct hf_json *object, const char *key, const char *value);
void hf_default_i64(struct hf_json *object, const char *key, int64_t value);
void hf_default_bool(struct hf_json *object, const char *key, bool value);

/* The rules, one per kind; hf_memstore_rules.admit. */
int hf_admit_job(void *framework, struct hf_admission *admission, struct hf_error *err);
int hf_admit_pod(void *arg, struct hf_admission *admission, struct hf_error *err);
int hf_admit_service(void *arg, struct hf_admission *admission, struct hf_error *err);
int hf_admit_configmap(void *arg, struct hf_admission *admission, struct hf_error *err);
int hf_admit_secret(void *arg, struct hf_admission *admission, struct hf_error *err);

#endif
