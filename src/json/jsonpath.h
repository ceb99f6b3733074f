/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_JSONPATH_H
#define HF_JSON_JSONPATH_H

#include "json/json.h"

/*
 * The part of kubectl's jsonpath that users need for -o jsonpath, custom-columns and --sort-by.
 *
 *     {.items[*].metadata.name}                       keys, all items
 *     {.items[0].spec} {.items[-1]} {.items[1:3]}     one item, from the end, a slice
 *     {.metadata.labels['app.kubernetes.io/name']}    a key in quotes; also a\.b
 *     {.items[?(@.status.phase=="Running")].metadata.name}   filters with == != < <= > >=,
 *                                                     or only existence: ?(@.spec.host)
 *     {range .items[*]}{.metadata.name}{"\n"}{end}    a loop
 *     {@} {$} text outside braces, {"quoted"} inside  the current value, literals
 *     {.*}                                            all values of an object
 *
 * Not supported, with an error that names the feature (HF_E_UNSUPPORTED): recursive descent (..),
 * unions ([a,b]), slices with a step, && and ||. Otherwise results equal those of client-go's
 * util/jsonpath, with these differences:
 *
 * - Numbers are compared by value. (client-go: comparing an int with a float is an error.)
 * - ['a.b'] is one key. (client-go: two.)
 * - {.} is the current value. (client-go: nothing.)
 * - A filter for existence treats an unreachable value as absent.
 * - {.*} keeps the document's order. (client-go: no defined order.)
 * - A {range} without {end} is an error.
 */
struct hf_jsonpath;

#define HF_JSONPATH_TEXT_MAX 4096      /* bytes of a template */
#define HF_JSONPATH_NODES_MAX 512      /* parts of a template */
#define HF_JSONPATH_DEPTH_MAX 16       /* nested ranges and filters */
#define HF_JSONPATH_RESULTS_MAX 100000 /* values that one expression may find */

/* Compiles a template. HF_E_INVALID: the template is wrong. HF_E_UNSUPPORTED: the template uses a
 * feature that is not supported. The error text gives the problem and the position of the
 * character. */
int hf_jsonpath_compile(const char *text, struct hf_jsonpath **ret_path, struct hf_error *err)
	HF_MUST_CHECK;
/* Compiles a path as kubectl's custom-columns and --sort-by accept it: without braces, without
 * the leading dot. Only a single expression is allowed. */
int hf_jsonpath_compile_relaxed(const char *text, struct hf_jsonpath **ret_path,
				struct hf_error *err) HF_MUST_CHECK;
struct hf_jsonpath *hf_jsonpath_destroy(struct hf_jsonpath *path); /* accepts NULL; returns NULL */
void hf_jsonpath_cleanup(struct hf_jsonpath **path);
#define HF_AUTO_JSONPATH HF_CLEANUP(hf_jsonpath_cleanup) struct hf_jsonpath *

/* Prints the template for a value. Results of one expression are separated by spaces. Strings
 * are printed without quotes, other scalars as Go prints them, objects and arrays as compact
 * sorted JSON with < > & escaped. A missing key prints nothing (as kubectl get, which allows
 * missing keys). An index out of range is HF_E_INVALID, as in kubectl; sb then holds the text
 * before the error. */
int hf_jsonpath_print(const struct hf_jsonpath *path, const struct hf_json *value,
		      struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;

/* Prints the values that a relaxed path finds, joined by "," as custom-columns does; "<none>" if
 * there are none. */
int hf_jsonpath_column(const struct hf_jsonpath *path, const struct hf_json *value,
		       struct hf_strbuf *sb, struct hf_error *err) HF_MUST_CHECK;

#endif
