/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_PATCH_H
#define HF_JSON_PATCH_H

#include "json/json.h"

/*
 * Changing documents by patches.  Inputs are read-only; every result is a new tree that
 * shares nothing changeable with them and is the caller's.
 */

/* RFC 7386.  target may be NULL (nothing there yet). */
struct hf_json *hf_json_merge_patch(const struct hf_json *target, const struct hf_json *patch);

/*
 * The smallest merge patch that makes `to` of `from`: {} where they are equal.  Both are
 * objects.  A merge patch cannot say "set this to null": a null in `to` counts as absent,
 * inside arrays it stays.
 */
struct hf_json *hf_json_merge_diff(const struct hf_json *from, const struct hf_json *to);

/* As the API server limits them (apiserver, endpoints/handlers/patch.go). */
#define HF_JSON_PATCH_OPS_MAX 10000
#define HF_JSON_PATCH_COPY_BYTES_MAX ((size_t)3 << 20) /* what all "copy" of a patch may add */

/*
 * RFC 6902: add, remove, replace, move, copy, test.  All or nothing.
 *
 * HF_E_BAD_REQUEST: ops is no array of objects whose op and path (and from) are strings, a
 * pointer is none, a value is missing; HF_E_TOO_LARGE: over a limit above, or the result would
 * be nested deeper than HF_JSON_DEPTH_MAX; HF_E_INVALID: an operation could not be done — a
 * test failed, a path is not there, an index is out of range (negative ones are), the
 * operation is unknown.  The text names the operation by its index, its kind and its path.
 */
int hf_json_patch(const struct hf_json *target, const struct hf_json *ops,
		  struct hf_json **ret_value, struct hf_error *err) HF_MUST_CHECK;

#endif
