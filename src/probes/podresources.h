/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PODRESOURCES_H
#define HF_PROBES_PODRESOURCES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * The kubelet's PodResources v1 over its unix socket: which container holds which device, by device
 * plugin or claim (DRA), and which devices the kubelet would still hand out.
 *
 * The decoder reads messages field by field into flat lists and skips all other fields (CPUs,
 * memory, topology). So an answer costs its own size and a bounded list.
 */

/* 250 pods with 64 devices each. */
#define HF_PODRESOURCES_DEVICES_MAX 16384
/* Of a name or an id; Kubernetes' names end at 253. */
#define HF_PODRESOURCES_TEXT_MAX 512
/* An answer and the lists made of it. */
#define HF_PODRESOURCES_BYTES_MAX ((size_t)4 << 20)
#define HF_PODRESOURCES_ARENA_MAX ((size_t)8 << 20)

/* A device and its holder. The texts live as long as the arena, and are never NULL. */
struct hf_podresources_device {
	const char *ns, *pod, *container; /* "" in what is allocatable */
	const char
		*resource; /* "nvidia.com/gpu"; of a claim: the driver's name, "gpu.nvidia.com" */
	const char *id;    /* as the plugin calls it; of a claim: as its pool does */
	const char *pool;  /* of a claim */
	const char *claim_ns, *claim; /* "" for a device plugin's */
	const char *cdi; /* of a claim: its first CDI device, "k8s.gpu.nvidia.com/device=…" */
};

struct hf_podresources {
	const struct hf_podresources_device *devices; /* in the order they came in */
	size_t devices_len;
	size_t pods; /* all reported pods, with or without devices */
};

/* Pure.  HF_E_BAD_REQUEST: no such message; HF_E_TOO_LARGE: more devices than above, or more
 * texts than the arena (of HF_PODRESOURCES_ARENA_MAX) has room for. */
int hf_podresources_decode_list(const void *bytes, size_t len, struct hf_arena *arena,
				struct hf_podresources *ret_found, struct hf_error *err)
	HF_MUST_CHECK;
int hf_podresources_decode_get(const void *bytes, size_t len, struct hf_arena *arena,
			       struct hf_podresources *ret_found, struct hf_error *err)
	HF_MUST_CHECK;
int hf_podresources_decode_allocatable(const void *bytes, size_t len, struct hf_arena *arena,
				       struct hf_podresources *ret_found, struct hf_error *err)
	HF_MUST_CHECK;

/* How many different devices of a resource there are; replicas of a shared one ("GPU-…::3")
 * count once. */
size_t hf_podresources_count(const struct hf_podresources *found, const char *resource,
			     struct hf_arena *arena);

/* The names of a device: the driver's, the bus address, the number. */
struct hf_podresources_names {
	const char *uuid;    /* "GPU-…"; "" not known, here and below */
	const char *address; /* "0000:1a:00.0" */
	int minor;           /* of /dev/nvidia1; -1 */
};
/* Whether the device of a container is that one: plugins name devices by UUID or bus address,
 * claims of the vendor's DRA driver "gpu-1" by the minor number. */
bool hf_podresources_is(const struct hf_podresources_device *device,
			const struct hf_podresources_names *names);

/* A line for each device, the same bytes for the same list. */
void hf_podresources_render(const struct hf_podresources *found, struct hf_strbuf *sb);

/* ---- asking ---- */

struct hf_podresources_client;

/* found is NULL where code is not 0; both live until fn returns. */
typedef void (*hf_podresources_fn)(void *arg, int code, const struct hf_podresources *found,
				   const struct hf_error *err);

/* Connects for each question anew: a kubelet that has restarted is no special case.  timeout is
 * of one question, however it is stuck. */
int hf_podresources_client_create(struct hf_loop *loop, const char *socket_path, hf_time timeout,
				  struct hf_podresources_client **ret_client, struct hf_error *err)
	HF_MUST_CHECK;
/* Drops what is under way; NULL is fine; returns NULL. */
struct hf_podresources_client *hf_podresources_client_destroy(
	struct hf_podresources_client *client);

/* One question of each kind at a time: HF_E_CONFLICT while one is under way.  fn may ask again,
 * and may destroy the client. */
int hf_podresources_list(struct hf_podresources_client *client, hf_podresources_fn fn, void *arg,
			 struct hf_error *err) HF_MUST_CHECK;
int hf_podresources_allocatable(struct hf_podresources_client *client, hf_podresources_fn fn,
				void *arg, struct hf_error *err) HF_MUST_CHECK;
/* HF_E_NOT_FOUND or HF_E_INTERNAL (kubelets to 1.36 have no better code): no such pod.
 * HF_E_UNSUPPORTED: the kubelet lacks this call. */
int hf_podresources_get(struct hf_podresources_client *client, const char *ns, const char *pod,
			hf_podresources_fn fn, void *arg, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
