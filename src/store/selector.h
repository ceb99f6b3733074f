/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_STORE_SELECTOR_H
#define HF_STORE_SELECTOR_H

#include "base/error.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Selectors, read as an API server reads them.  A parsed selector is immutable
 * and owns its text; matching allocates nothing.
 *
 *   label   a=b  a==b  a!=b  a in (x,y)  a notin (x,y)  a  !a  a>3  a<3, joined by commas
 *   field   path=value  path==value  path!=value, joined by commas; "\," "\=" "\\" escape
 *
 * An absent label satisfies "!=", "notin" and "!a"; an absent field is "".
 */
struct hf_selector;

#define HF_SELECTOR_BYTES_MAX 16384 /* of text; a URL holds less */
#define HF_SELECTOR_REQUIREMENTS_MAX 256
#define HF_SELECTOR_VALUES_MAX 1024 /* over all requirements */

/* NULL or "" gives NULL, which matches everything.  HF_E_BAD_REQUEST for what is not a
 * selector, with a text that names the place. */
int hf_selector_parse_labels(const char *text, struct hf_selector **ret_selector,
			     struct hf_error *err) HF_MUST_CHECK;
/* known: the paths allowed beyond metadata.name and metadata.namespace, NULL-terminated (see
 * struct hf_resource_info), or NULL to allow any.  Another path gives HF_E_BAD_REQUEST. */
int hf_selector_parse_fields(const char *text, const char *const *known,
			     struct hf_selector **ret_selector, struct hf_error *err) HF_MUST_CHECK;
/* From a LabelSelector object {matchLabels, matchExpressions}; an absent or null one matches
 * nothing in Kubernetes: ask before.  {} gives NULL. */
int hf_selector_from_json(const struct hf_json *selector, struct hf_selector **ret_selector,
			  struct hf_error *err) HF_MUST_CHECK;
struct hf_selector *hf_selector_destroy(struct hf_selector *selector); /* NULL is fine */

/* labels: the object under metadata.labels, may be absent. */
bool hf_selector_match_labels(const struct hf_selector *selector, const struct hf_json *labels);
/* object: the whole object.  Booleans and numbers are compared by their text. */
bool hf_selector_match_fields(const struct hf_selector *selector, const struct hf_json *object);

/* The value a selector of fields demands for a path by "=", else NULL: lets a list of one
 * name be a look-up.  Borrowed from selector. */
const char *hf_selector_exact(const struct hf_selector *selector, const char *path);

#endif
