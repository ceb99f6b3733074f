/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/field.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Errors of fields, in the words of Kubernetes' apimachinery.  Input: the kind of problem, the
 * path, the value.  Output: texts in an arena.
 */

static const struct {
	const char *text;
	const char *reason;
	bool shows_value;
} problems[] = {
	[HF_PROBLEM_REQUIRED] = {"Required value", "FieldValueRequired", false},
	[HF_PROBLEM_INVALID] = {"Invalid value", "FieldValueInvalid", true},
	[HF_PROBLEM_NOT_SUPPORTED] = {"Unsupported value", "FieldValueNotSupported", true},
	[HF_PROBLEM_FORBIDDEN] = {"Forbidden", "FieldValueForbidden", false},
	[HF_PROBLEM_DUPLICATE] = {"Duplicate value", "FieldValueDuplicate", true},
	[HF_PROBLEM_TYPE] = {"Invalid value", "FieldValueTypeInvalid", true},
	[HF_PROBLEM_UNKNOWN] = {"unknown field", "FieldValueInvalid", false},
	[HF_PROBLEM_TOO_MANY] = {"Too many", "FieldValueTooMany", true},
	[HF_PROBLEM_NOT_FOUND] = {"Not found", "FieldValueNotFound", true},
};

/* The most bytes of a field path or a message.  Paths are as deep as the schema, and a message
 * names one value. */
#define TEXT_MAX 1024

const char *hf_problem_reason(enum hf_problem problem)
{
	hf_assert((size_t)problem < HF_ARRAY_LEN(problems));
	return problems[problem].reason;
}

void hf_field_errors_init(struct hf_field_errors *errors, struct hf_arena *arena)
{
	hf_assert(arena);
	memset(errors, 0, sizeof(*errors));
	errors->arena = arena;
}

static const char *format_text(struct hf_field_errors *errors, const char *fmt, va_list ap)
	HF_PRINTF(2, 0);
static const char *format_text(struct hf_field_errors *errors, const char *fmt, va_list ap)
{
	char text[TEXT_MAX];
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	hf_assert(n >= 0);
	if ((size_t)n >= sizeof(text))
		text[hf_utf8_cut(text, sizeof(text) - 2)] = '\0';
	return hf_arena_strdup(errors->arena, text);
}

void hf_field_add(struct hf_field_errors *errors, enum hf_problem problem, const char *value,
		  const char *detail, const char *field_fmt, ...)
{
	struct hf_field_error *error;
	va_list ap;

	hf_assert((size_t)problem < HF_ARRAY_LEN(problems));
	hf_assert(errors->arena && detail);
	if (errors->len == HF_FIELD_ERRORS_MAX) {
		errors->dropped++;
		return;
	}
	error = &errors->items[errors->len++];
	error->problem = problem;
	error->value = value ? hf_arena_strdup(errors->arena, value) : NULL;
	error->detail = hf_arena_strdup(errors->arena, detail);
	va_start(ap, field_fmt);
	error->field = format_text(errors, field_fmt, ap);
	va_end(ap);
}

void hf_field_warn(struct hf_field_errors *errors, const char *fmt, ...)
{
	va_list ap;

	hf_assert(errors->arena);
	if (errors->warnings_len == HF_FIELD_ERRORS_MAX)
		return;
	va_start(ap, fmt);
	errors->warnings[errors->warnings_len++] = format_text(errors, fmt, ap);
	va_end(ap);
}

const char *hf_field_quote(struct hf_field_errors *errors, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	char *quoted = hf_arena_alloc(errors->arena, 4 * strlen(text) + 3);
	char *to = quoted;

	*to++ = '"';
	for (const char *c = text; *c; c++) {
		unsigned char byte = (unsigned char)*c;

		if (byte == '"' || byte == '\\') {
			*to++ = '\\';
			*to++ = *c;
		} else if (byte == '\n' || byte == '\t' || byte == '\r') {
			*to++ = '\\';
			*to++ = byte == '\n' ? 'n' : byte == '\t' ? 't' : 'r';
		} else if (byte < 0x20 || byte == 0x7f) {
			*to++ = '\\';
			*to++ = 'x';
			*to++ = hex[byte >> 4];
			*to++ = hex[byte & 15];
		} else {
			*to++ = *c;
		}
	}
	*to++ = '"';
	*to = '\0';
	return quoted;
}

void hf_field_error_write(const struct hf_field_error *error, struct hf_strbuf *sb)
{
	hf_assert((size_t)error->problem < HF_ARRAY_LEN(problems));
	if (error->problem == HF_PROBLEM_UNKNOWN) {
		/* Strict decoding names the field last. */
		hf_strbuf_addf(sb, "unknown field \"%s\"", error->field);
		return;
	}
	hf_strbuf_addf(sb, "%s: %s", error->field, problems[error->problem].text);
	if (problems[error->problem].shows_value)
		hf_strbuf_addf(sb, ": %s", error->value ? error->value : "null");
	if (*error->detail)
		hf_strbuf_addf(sb, ": %s", error->detail);
}

void hf_field_errors_write(const struct hf_field_errors *errors, struct hf_strbuf *sb)
{
	bool many = errors->len + errors->dropped > 1;

	hf_assert(errors->dropped == 0 || errors->len == HF_FIELD_ERRORS_MAX);
	if (many)
		hf_strbuf_addch(sb, '[');
	for (size_t i = 0; i < errors->len; i++) {
		if (i > 0)
			hf_strbuf_addstr(sb, ", ");
		hf_field_error_write(&errors->items[i], sb);
	}
	if (errors->dropped > 0)
		hf_strbuf_addf(sb, ", and %zu more", errors->dropped);
	if (many)
		hf_strbuf_addch(sb, ']');
}

int hf_field_errors_result(const struct hf_field_errors *errors, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX * 4);

	if (errors->len == 0)
		return 0;
	hf_field_errors_write(errors, &sb);
	return hf_error_set(err, HF_E_INVALID, "%s", sb.data);
}
