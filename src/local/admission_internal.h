/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_ADMISSION_INTERNAL_H
#define HF_LOCAL_ADMISSION_INTERNAL_H

#include "api/pod_rules.h"
#include "api/schema.h"
#include "base/strbuf.h"
#include "local/local.h"

/*
 * What the rules of each kind share: looking at fields, and problems worded as an API server
 * words them.
 */

/*
 * Types and unknown fields of admission->object by its table.  A wrong type is
 * HF_E_BAD_REQUEST, as it cannot be decoded; an unknown field is removed, with what
 * fieldValidation asks for.
 */
int hf_fields_check(struct hf_admission *admission, const struct hf_schema *schema,
		    struct hf_error *err) HF_MUST_CHECK;

/* What strict decoding found: refused or warned of, as fieldValidation says.  unknown: field
 * paths; len of them. */
int hf_fields_unknown(struct hf_admission *admission, char *const *unknown, size_t len,
		      struct hf_error *err) HF_MUST_CHECK;
/* Remove the field at a path as error texts have it (spec.a.b[0].c); false: not there. */
bool hf_fields_remove(struct hf_json *object, const char *path);
#define HF_FIELDS_UNKNOWN_MAX 32 /* told of one object; all are removed */

/* Causes.  The field is the format; message is what stands behind "field: ". */
void hf_problem_required(struct hf_admission *admission, const char *detail, const char *fmt, ...)
	HF_PRINTF(3, 4);
/* value: as JSON prints it. */
void hf_problem_invalid(struct hf_admission *admission, const struct hf_json *value,
			const char *detail, const char *fmt, ...) HF_PRINTF(4, 5);
/* supported ends with NULL. */
void hf_problem_not_supported(struct hf_admission *admission, const char *value,
			      const char *const *supported, const char *fmt, ...) HF_PRINTF(4, 5);

/* Memory of one check: texts of an object (1.5 MiB at most), quoted (four times) and copied. */
#define HF_ADMISSION_BYTES_MAX ((size_t)64 << 20)
/* As causes and warnings. */
void hf_admission_report(struct hf_admission *admission, const struct hf_field_errors *errors);

/* Set a member that is absent. */
void hf_default_str(struct hf_json *object, const char *key, const char *value);
void hf_default_i64(struct hf_json *object, const char *key, int64_t value);
void hf_default_bool(struct hf_json *object, const char *key, bool value);

/* The kinds. */
int hf_admit_job(void *framework, struct hf_admission *admission, struct hf_error *err);
int hf_admit_pod(void *arg, struct hf_admission *admission, struct hf_error *err);
int hf_admit_service(void *arg, struct hf_admission *admission, struct hf_error *err);
int hf_admit_configmap(void *arg, struct hf_admission *admission, struct hf_error *err);
int hf_admit_secret(void *arg, struct hf_admission *admission, struct hf_error *err);

#endif
