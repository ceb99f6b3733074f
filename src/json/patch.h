/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_PATCH_H
#define HF_JSON_PATCH_H

#include "json/json.h"

/* Changes documents by patches. Inputs are read-only. Every result is a new tree, which the
 * caller owns and which shares nothing changeable with the inputs. */

/* Applies a merge patch (RFC 7386). target may be NULL if there is no document yet. */
struct hf_json *hf_json_merge_patch(const struct hf_json *target, const struct hf_json *patch);

/* Returns the smallest merge patch that changes `from` into `to`; {} if they are equal. Both
 * must be objects. A merge patch cannot set a value to null. So a null in `to` counts as absent,
 * except inside arrays. */
struct hf_json *hf_json_merge_diff(const struct hf_json *from, const struct hf_json *to);

/* The API server's limits (apiserver, endpoints/handlers/patch.go). */
#define HF_JSON_PATCH_OPS_MAX 10000
/* Bytes that all "copy" operations of a patch may add. */
#define HF_JSON_PATCH_COPY_BYTES_MAX ((size_t)3 << 20)

/*
 * Applies a JSON patch (RFC 6902: add, remove, replace, move, copy, test), completely or not at
 * all.
 *
 * - HF_E_BAD_REQUEST: ops is not an array of objects with the strings op and path (and from), a
 *   pointer is malformed, or a value is missing.
 * - HF_E_TOO_LARGE: a limit above is exceeded, or the result would be deeper than
 *   HF_JSON_DEPTH_MAX.
 * - HF_E_INVALID: an operation failed. A test failed, a path does not exist, an index is out of
 *   range (negative indexes always are), or the operation is unknown.
 *
 * The text names the operation by its index, its kind and its path.
 */
int hf_json_patch(const struct hf_json *target, const struct hf_json *ops,
		  struct hf_json **ret_value, struct hf_error *err) HF_MUST_CHECK;

#endif
