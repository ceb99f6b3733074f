/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_EXTRA_H
#define HF_API_EXTRA_H

#include "base/arena.h"
#include "core/extra.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * Extra objects of jobs (core/extra.h), from documents and to them.
 *
 * Read: texts are borrowed from doc; job_uid decides `owned` as in api/pod.h.  Only what has a
 * controller is looked into: the digest of others is 0.  Returns the UID of the controller, NULL
 * where there is none.
 */
const char *hf_extra_read(struct hf_doc *doc, enum hf_extra_kind kind, const char *job_uid,
			  struct hf_arena *arena, struct hf_extra_seen *ret_seen);

/* The digest of a value that stands at the path. */
uint64_t hf_extra_value_digest(const char *path, const struct hf_json *value);

/* The object without its owner: apiVersion, kind, metadata.name and labels, content. */
struct hf_json *hf_extra_write(const struct hf_extra *extra);
/* The JSON patch that makes the members of its kind as they should be, refused when the object is
 * another one than that of this UID. */
struct hf_json *hf_extra_patch(const struct hf_extra *extra, const char *uid);

HF_END_DECLS

#endif
