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
 * ownerReference with that UID.  Strings are borrowed from doc, lists come from the
 * arena.  Fields of a wrong type count as absent: an API server has checked them.
 */
void hf_pod_read(struct hf_doc *doc, const char *job_uid, struct hf_arena *arena,
		 struct hf_pod *ret_pod);
void hf_service_read(struct hf_doc *doc, const char *job_uid, struct hf_service_seen *ret_service);

/* The UID of the controller ownerReference; NULL: it has none. */
const char *hf_controller_uid(struct hf_doc *doc);
/* And its kind, name: "PyTorchJob", "ddp"; false: it has none. */
bool hf_controller_ref(struct hf_doc *doc, const char **ret_api_version, const char **ret_kind,
		       const char **ret_name, const char **ret_uid);

HF_END_DECLS

#endif
