/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_POD_H
#define HF_API_POD_H

#include "base/arena.h"
#include "core/observed.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * Pods and services as the brain sees them.  job_uid decides `owned`: a controller
 * ownerReference with that UID, or with any where it is NULL.  Names are borrowed from doc,
 * other strings and lists come from the arena.  Fields of a wrong type count as absent: an
 * API server has checked them; broken text has no fields.  Makes no tree of a text.
 *
 * They return the UID of the controller, NULL where there is none.
 */
const char *hf_pod_read(struct hf_doc *doc, const char *job_uid, struct hf_arena *arena,
			struct hf_pod *ret_pod);
const char *hf_service_read(struct hf_doc *doc, const char *job_uid, struct hf_arena *arena,
			    struct hf_service_seen *ret_service);

/* Of any object: the UID of the controller ownerReference (NULL: it has none), and whether it
 * has a deletionTimestamp. */
const char *hf_controller_uid(struct hf_doc *doc, struct hf_arena *arena);
bool hf_is_terminating(struct hf_doc *doc, struct hf_arena *arena);
/* Of an object that a DELETE answered with: it is not stored any more.  Marked it is with a grace, or
 * where finalizers keep it. */
bool hf_is_deleted(struct hf_doc *doc, struct hf_arena *arena);

HF_END_DECLS

#endif
