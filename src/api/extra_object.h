/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_EXTRA_OBJECT_H
#define HF_API_EXTRA_OBJECT_H

#include "base/arena.h"
#include "core/model/extra_object.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * Extra objects of jobs (core/model/extra_object.h): reading and writing.
 *
 * hf_extra_read reads an object that was stored for a job. Texts are borrowed from doc. ret_extra's
 * `owned` is true if the controller's UID is job_uid; with job_uid NULL, if the object has any
 * controller. An object without a controller gets digest 0. Returns the UID of the controller, or
 * NULL if the object has none.
 */
const char *hf_extra_read(struct hf_doc *doc, enum hf_extra_kind kind, const char *job_uid,
			  struct hf_arena *arena, struct hf_extra_seen *ret_seen);

/* Returns the digest of a value at the path, as hf_extra_read computes it. */
uint64_t hf_extra_value_digest(const char *path, const struct hf_json *value);

/* Builds the object without its owner: apiVersion, kind, metadata.name and labels, content. */
struct hf_json *hf_extra_write(const struct hf_extra *extra);
/* Builds the JSON patch that sets every member that Holdfast owns in objects of this kind. The
 * server refuses the patch if the stored object has another UID. */
struct hf_json *hf_extra_patch(const struct hf_extra *extra, const char *uid);

HF_END_DECLS

#endif
