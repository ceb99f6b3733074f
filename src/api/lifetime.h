/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_LIFETIME_H
#define HF_API_LIFETIME_H

#include "base/time.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/*
 * How long objects live: their creation, owners and finalizers, and the end of a pod.
 * Input: objects of any kind, as JSON. Output: facts, or parts of metadata. Pure.
 */

struct hf_owner {
	const char *api_version, *kind, *name, *uid;
};

/* Makes this object the one owner in the metadata of another object. */
void hf_set_owner(struct hf_json *metadata, const struct hf_owner *owner);
/* True if an owner of the object has this UID. */
bool hf_is_owned_by(const struct hf_json *object, const char *uid);
/* Returns the owner reference of the object's controller; NULL: the object has none. */
const struct hf_json *hf_find_controller(const struct hf_json *object);

/* When the object was created, by the API server's clock in whole seconds; 0: unknown. */
hf_time hf_created_at(const struct hf_json *object);
/* True if the object is marked for deletion, and something still keeps it: finalizers, or the pod's kubelet. */
bool hf_is_leaving(const struct hf_json *object);
bool hf_has_finalizer(const struct hf_json *object, const char *finalizer);
/* Builds the merge patch that adds or removes the finalizer. The server refuses it if the object has changed since doc
 * was read. */
struct hf_doc *hf_finalizer_patch(struct hf_doc *doc, const char *finalizer, bool wanted);

/* True if a DaemonSet or the kubelet (static pod) would create the pod again on its node. */
bool hf_is_pod_of_node(const struct hf_json *pod);
/* True for a pod of a GPU device plugin's DaemonSet, by the labels of the vendors' manifests. */
bool hf_is_plugin_pod(const struct hf_json *pod);
/* True if all containers of the pod have ended for good. */
bool hf_has_pod_ended(const struct hf_json *pod);
/* True if the pod has ended and nothing waits for its end: it holds nothing, and a node may have thousands of such pods. */
bool hf_is_pod_over(const struct hf_json *pod);
/* True if the spec of a pod asks for extended resources or has resource claims: its containers may be given devices. */
bool hf_asks_for_devices(const struct hf_json *pod_spec);
/* The first ResourceClaim that the spec of a pod names. Unlike one that is made for the pod from a template, it keeps its
 * devices while any pod uses it. NULL: none. */
const char *hf_find_shared_claim(const struct hf_json *pod_spec);

HF_END_DECLS

#endif
