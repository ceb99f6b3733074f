/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_STORE_SELECTOR_H
#define HF_STORE_SELECTOR_H

#include "base/error.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Selectors, read as an API server reads them. A parsed selector never changes and owns its text.
 * Matching allocates nothing.
 *
 *     label  a=b  a==b  a!=b  a in (x,y)  a notin (x,y)  a  !a  a>3  a<3, joined by commas
 *     field  path=value  path==value  path!=value, joined by commas; "\," "\=" "\\" escape
 *
 * An absent label satisfies "!=", "notin" and "!a". An absent field has the value "".
 */
struct hf_selector;

#define HF_SELECTOR_BYTES_MAX 16384 /* most bytes of a selector's text; a URL cannot hold more */
#define HF_SELECTOR_REQUIREMENTS_MAX 256
#define HF_SELECTOR_VALUES_MAX 1024 /* most values in all requirements of a selector together */

/* NULL or "" gives NULL, which matches every object. HF_E_BAD_REQUEST for a text that is not a
 * selector; the error text names the position. */
int hf_selector_parse_labels(const char *text, struct hf_selector **ret_selector,
			     struct hf_error *err) HF_MUST_CHECK;
/* known lists the allowed paths besides metadata.name and metadata.namespace, and ends with NULL
 * (see struct hf_resource_info). If known is NULL, every path is allowed. Any other path gives
 * HF_E_BAD_REQUEST. */
int hf_selector_parse_fields(const char *text, const char *const *known,
			     struct hf_selector **ret_selector, struct hf_error *err) HF_MUST_CHECK;
/* Reads a LabelSelector object {matchLabels, matchExpressions}. {} gives NULL, which matches
 * every object. In Kubernetes an absent or null LabelSelector matches nothing, so the caller
 * must check for that first. */
int hf_selector_from_json(const struct hf_json *selector, struct hf_selector **ret_selector,
			  struct hf_error *err) HF_MUST_CHECK;
/* Accepts NULL; returns NULL. */
struct hf_selector *hf_selector_destroy(struct hf_selector *selector);

/* labels is the object metadata.labels, or absent. */
bool hf_selector_match_labels(const struct hf_selector *selector, const struct hf_json *labels);
/* object is the complete object. Booleans and numbers are compared as texts. */
bool hf_selector_match_fields(const struct hf_selector *selector, const struct hf_json *object);

/* Returns the value that the selector demands for this field path with "=", or NULL. With it, a
 * list of one name becomes a direct look-up. The value belongs to selector. */
const char *hf_selector_exact(const struct hf_selector *selector, const char *path);

#endif
