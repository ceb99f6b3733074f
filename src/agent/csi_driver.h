/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_CSI_DRIVER_H
#define HF_AGENT_CSI_DRIVER_H

#include "base/error.h"
#include "base/strbuf.h"
#include "http/grpc_service.h"
#include "loop/loop.h"

HF_BEGIN_DECLS

/*
 * The agent's folder as an inline CSI volume, for pods that may not have a hostPath (the baseline Pod Security Standard).
 * Input: calls of the kubelet. Output: the folder is mounted in a pod, read-only.
 *
 * Two sockets in the kubelet's folder, which root alone can open: one by which the kubelet finds the driver
 * (pluginregistration.Registration), one for the driver itself (csi.v1.Identity, csi.v1.Node). The driver keeps no state: a
 * volume is a mount in the folder of a pod.
 */
struct hf_csi_driver;

#define HF_CSI_DRIVER_NAME "exec.holdfast.dev"

struct hf_csi_driver_options {
	struct hf_loop *loop;
	const char *kubelet_dir; /* "/var/lib/kubelet"; the same path here and for the kubelet */
	const char *folder;      /* the agent's folder */
	const char *node;
	hf_time look_every; /* as in struct hf_named_socket_options */
	/* Mount the folder at `target`, read-only, or unmount it: 0 or an errno. Tests replace them. NULL: by mount(2). */
	int (*mount)(const char *folder, const char *target);
	int (*unmount)(const char *target);
	/* Called after the kubelet has registered the driver, or has refused it; error NULL: it worked. */
	void (*registered)(void *arg, const char *error);
	void (*trouble)(void *arg, const char *why);
	void *arg;
};

int hf_csi_driver_create(const struct hf_csi_driver_options *options,
			 struct hf_csi_driver **ret_driver, struct hf_error *err) HF_MUST_CHECK;
/* Mounts stay: pods use them. NULL is fine; returns NULL. */
struct hf_csi_driver *hf_csi_driver_destroy(struct hf_csi_driver *driver);

/* Answers a call, as on the sockets. */
int hf_csi_driver_answer(void *driver, const struct hf_grpc_asked *asked,
			 struct hf_strbuf *ret_message, struct hf_error *err);

HF_END_DECLS

#endif
