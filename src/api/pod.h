/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_POD_H
#define HF_API_POD_H

#include "base/arena.h"
#include "core/model/observed.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * Read pods and services into core's structs, without building a tree. `owned` means: the object
 * has a controller ownerReference with job_uid, or with any UID if job_uid is NULL. Names are
 * borrowed from doc; other strings and lists come from the arena. Fields of a wrong type count as
 * absent (an API server has checked them); a document that cannot be parsed has no fields.
 *
 * Both return the UID of the controller, or NULL if there is none.
 */
const char *hf_pod_read(struct hf_doc *doc, const char *job_uid, struct hf_arena *arena,
			struct hf_pod *ret_pod);
const char *hf_service_read(struct hf_doc *doc, const char *job_uid, struct hf_arena *arena,
			    struct hf_service_seen *ret_service);

/* For any object: the UID of its controller ownerReference (NULL: none), and whether it has a
 * deletionTimestamp. */
const char *hf_controller_uid(struct hf_doc *doc, struct hf_arena *arena);
bool hf_is_terminating(struct hf_doc *doc, struct hf_arena *arena);
/* Takes the object in the reply to a DELETE. True if the object is not stored any more. If the
 * object has a grace period or finalizers, the server only marks it for deletion and keeps it. */
bool hf_is_deleted(struct hf_doc *doc, struct hf_arena *arena);

HF_END_DECLS

#endif
