/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_JSON_TEXT_H
#define HF_TESTS_HARNESS_JSON_TEXT_H

/* JSON in the C text of a test, written with ' in place of ". */

#include "harness/test.h"

#include "base/mem.h"
#include "json/doc.h"
#include "json/json.h"

#include <string.h>

/* In place. */
static inline char *json_text(char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if (*c == '\'')
			*c = '"';
	return text;
}

/* Parses JSON text; the caller owns the value. If the text is not JSON, the test fails. */
static inline struct hf_json *json_of(const char *text)
{
	HF_AUTOFREE char *copy = json_text(hf_xstrdup(text));
	struct hf_json *value = NULL;
	struct hf_error err;

	assert_ok(hf_json_parse(copy, strlen(copy), NULL, &value, &err), &err);
	return value;
}

static inline struct hf_doc *json_doc_of(const char *text)
{
	HF_AUTOFREE char *copy = json_text(hf_xstrdup(text));
	struct hf_doc *doc = NULL;
	struct hf_error err;

	assert_ok(hf_doc_parse(copy, strlen(copy), NULL, &doc, &err), &err);
	return doc;
}

#endif
