/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_JSONPATH_H
#define HF_JSON_JSONPATH_H

#include "json/json.h"

/*
 * The part of kubectl's jsonpath that people use: for -o jsonpath, custom-columns, --sort-by.
 *
 *     {.items[*].metadata.name}                          keys, all items
 *     {.items[0].spec} {.items[-1]} {.items[1:3]}        one item, from the end, a slice
 *     {.metadata.labels['app.kubernetes.io/name']}       a key in quotes; also a\.b
 *     {.items[?(@.status.phase=="Running")].metadata.name}   filters with == != < <= > >=,
 *                                                        or mere existence: ?(@.spec.host)
 *     {range .items[*]}{.metadata.name}{"\n"}{end}       a loop
 *     {@} {$} text outside braces, {"quoted"} inside     the value at hand, literals
 *     {.*}                                               all values of an object
 *
 * Refused by name (HF_E_UNSUPPORTED): recursive descent (..), unions ([a,b]), slices with a
 * step, && and ||.  Otherwise results are those of client-go's util/jsonpath, but for these:
 * numbers compare by value (there an int and a float are an error), ['a.b'] is one key (there
 * two), {.} is the value at hand (there nothing), a filter of mere existence takes what cannot
 * be reached as absent, {.*} keeps the document's order (there none), and a {range} without
 * its {end} is an error.
 */
struct hf_jsonpath;

#define HF_JSONPATH_TEXT_MAX 4096      /* bytes of a template */
#define HF_JSONPATH_NODES_MAX 512      /* parts of a template */
#define HF_JSONPATH_DEPTH_MAX 16       /* range inside range, filters */
#define HF_JSONPATH_RESULTS_MAX 100000 /* values one expression may find */

/* HF_E_INVALID: the template is wrong; HF_E_UNSUPPORTED: refused by name as above.  The text
 * says what and at which character. */
int hf_jsonpath_compile(const char *text, struct hf_jsonpath **ret_path, struct hf_error *err)
	HF_MUST_CHECK;
/* As kubectl's custom-columns and --sort-by take it: braces and the leading dot may be left
 * out, nothing but one expression is allowed. */
int hf_jsonpath_compile_relaxed(const char *text, struct hf_jsonpath **ret_path,
				struct hf_error *err) HF_MUST_CHECK;
struct hf_jsonpath *hf_jsonpath_destroy(struct hf_jsonpath *path); /* NULL is fine; NULL */
void hf_jsonpath_cleanup(struct hf_jsonpath **path);
#define HF_AUTO_JSONPATH HF_CLEANUP(hf_jsonpath_cleanup) struct hf_jsonpath *

/*
 * Print what the template makes of value: results of one expression separated by spaces,
 * strings bare, other scalars as Go prints them, objects and arrays as compact sorted JSON
 * with < > & escaped.  A key that is not there prints nothing (kubectl get allows missing
 * keys).  An index out of range is HF_E_INVALID, as in kubectl; sb has what came before.
 */
int hf_jsonpath_print(const struct hf_jsonpath *path, const struct hf_json *value,
		      struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;

/* The values that a relaxed path finds, joined by "," as custom-columns does; "<none>" where
 * there are none. */
int hf_jsonpath_column(const struct hf_jsonpath *path, const struct hf_json *value,
		       struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;

#endif
