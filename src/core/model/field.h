/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_FIELD_H
#define HF_CORE_FIELD_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * Errors of fields, worded as apimachinery's field.Error words them (validation/field):
 *
 *     spec.pytorchReplicaSpecs[Master].replicas: Forbidden: must be 1
 *
 * A client reads the same sentence from Holdfast as from an API server.
 */
enum hf_problem {
	HF_PROBLEM_REQUIRED, /* "Required value" */
	HF_PROBLEM_INVALID,  /* "Invalid value: <value>" */
	/* "Unsupported value: <value>"; `detail` lists the supported values */
	HF_PROBLEM_NOT_SUPPORTED,
	HF_PROBLEM_FORBIDDEN, /* "Forbidden" */
	HF_PROBLEM_DUPLICATE, /* "Duplicate value: <value>" */
	HF_PROBLEM_TYPE,      /* "Invalid value: <value>", reason FieldValueTypeInvalid */
	HF_PROBLEM_UNKNOWN,  /* "unknown field", in the words of the API server's strict decoding */
	HF_PROBLEM_TOO_MANY, /* "Too many: <value>" */
	HF_PROBLEM_NOT_FOUND, /* "Not found: <value>" */
};
/* The reason for this problem in the causes of a Status: "FieldValueRequired", … */
const char *hf_problem_reason(enum hf_problem problem);

struct hf_field_error {
	enum hf_problem problem;
	const char *field; /* "spec.pytorchReplicaSpecs[Worker].replicas" */
	const char *value; /* the refused value as JSON; NULL if showing the value would not help */
	const char *detail; /* "": no detail */
};

/* Errors beyond this number are counted and not kept. */
#define HF_FIELD_ERRORS_MAX 32

struct hf_field_errors {
	struct hf_arena *arena; /* texts live here */
	struct hf_field_error items[HF_FIELD_ERRORS_MAX];
	size_t len;
	size_t dropped;
	/* Deprecations, for instance: shown, never refused. */
	const char *warnings[HF_FIELD_ERRORS_MAX];
	size_t warnings_len;
};

void hf_field_errors_init(struct hf_field_errors *errors, struct hf_arena *arena);

/* Add an error.  `field` and the arguments behind it are a printf format; value and detail are
 * copied.  If the value is a string, the caller quotes it (hf_field_quote). */
void hf_field_add(struct hf_field_errors *errors, enum hf_problem problem, const char *value,
		  const char *detail, const char *field_fmt, ...) HF_PRINTF(5, 6);
void hf_field_warn(struct hf_field_errors *errors, const char *fmt, ...) HF_PRINTF(2, 3);
/* The text in quotes, as Go's %q prints it, in the arena of `errors`. */
const char *hf_field_quote(struct hf_field_errors *errors, const char *text);

/* "<field>: Required value: <detail>" */
void hf_field_error_write(const struct hf_field_error *error, struct hf_strbuf *sb);
/* Write all errors as apimachinery does: one sentence, or "[a, b]" for several; "" without
 * errors. */
void hf_field_errors_write(const struct hf_field_errors *errors, struct hf_strbuf *sb);
/* 0 if there are no errors; else HF_E_INVALID, with the text of hf_field_errors_write. */
int hf_field_errors_result(const struct hf_field_errors *errors, struct hf_error *err)
	HF_MUST_CHECK;

HF_END_DECLS

#endif
