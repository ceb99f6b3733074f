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
 * The kubelet's PodResources API v1 over its unix socket. It tells which container holds which
 * device, from a device plugin or a claim (DRA), and which devices the kubelet can still hand out.
 *
 * The decoder reads the few needed fields into flat lists and skips all others (CPUs, memory,
 * topology). So an answer needs its own size and a list with a limit.
 */

/* Limit of devices in an answer: 250 pods with 64 devices each. */
#define HF_PODRESOURCES_DEVICES_MAX 16384
/* Limit of a name or id in bytes. Kubernetes' names have at most 253. */
#define HF_PODRESOURCES_TEXT_MAX 512
/* Limits of an answer, and of the memory for the lists made from it. */
#define HF_PODRESOURCES_BYTES_MAX ((size_t)4 << 20)
#define HF_PODRESOURCES_ARENA_MAX ((size_t)8 << 20)

/* A device and the container that holds it. The strings live as long as the arena and are never
 * NULL. */
struct hf_podresources_device {
	/* the container that holds the device; "" in the answer about allocatable devices, which
	 * names no container */
	const char *ns, *pod, *container;
	const char
		/* "nvidia.com/gpu"; for a claim: the name of the DRA driver, "gpu.nvidia.com" */
		*resource;
	const char *id;   /* name of the device in its device plugin; for a claim: in the pool */
	const char *pool; /* pool of a claim's device */
	/* the ResourceClaim that the device was allocated for; "" for a device of a device
	 * plugin */
	const char *claim_ns, *claim;
	/* for a claim: its first CDI device, "k8s.gpu.nvidia.com/device=…" */
	const char *cdi;
};

struct hf_podresources {
	/* the devices in the order of the kubelet's answer */
	const struct hf_podresources_device *devices;
	size_t devices_len;
	size_t pods; /* number of pods in the answer, with or without devices */
};

/* Decode an answer. Pure functions. HF_E_BAD_REQUEST: the bytes are no such message.
 * HF_E_TOO_LARGE: more than HF_PODRESOURCES_DEVICES_MAX devices, or more text than fits into the
 * arena (of HF_PODRESOURCES_ARENA_MAX). */
int hf_podresources_decode_list(const void *bytes, size_t len, struct hf_arena *arena,
				struct hf_podresources *ret_found, struct hf_error *err)
	HF_MUST_CHECK;
int hf_podresources_decode_get(const void *bytes, size_t len, struct hf_arena *arena,
			       struct hf_podresources *ret_found, struct hf_error *err)
	HF_MUST_CHECK;
int hf_podresources_decode_allocatable(const void *bytes, size_t len, struct hf_arena *arena,
				       struct hf_podresources *ret_found, struct hf_error *err)
	HF_MUST_CHECK;

/* Counts the devices of a resource. Replicas of a shared device ("GPU-…::3") count once. */
size_t hf_podresources_count(const struct hf_podresources *found, const char *resource,
			     struct hf_arena *arena);

/* The names of a device: its UUID, its PCI address, its minor number. */
struct hf_podresources_names {
	const char *uuid;    /* "GPU-…"; "" here and below: not known */
	const char *address; /* "0000:1a:00.0" */
	int minor;           /* number in /dev/nvidia1; -1: not known */
};
/* Whether the container's device has one of these names. Device plugins use the UUID or PCI
 * address. Claims of NVIDIA's DRA driver use "gpu-1", with the minor number. */
bool hf_podresources_is(const struct hf_podresources_device *device,
			const struct hf_podresources_names *names);

/* Writes one line for each device. The same list always gives the same bytes. */
void hf_podresources_render(const struct hf_podresources *found, struct hf_strbuf *sb);

/* ---- asking ---- */

struct hf_podresources_client;

/* Receives an answer. found is NULL if code is not 0. found and err are valid until fn returns. */
typedef void (*hf_podresources_fn)(void *arg, int code, const struct hf_podresources *found,
				   const struct hf_error *err);

/* Each question opens its own connection, so a restart of the kubelet needs no special care.
 * timeout: of one question, wherever it hangs. */
int hf_podresources_client_create(struct hf_loop *loop, const char *socket_path, hf_time timeout,
				  struct hf_podresources_client **ret_client, struct hf_error *err)
	HF_MUST_CHECK;
/* Drops open questions. NULL is fine. Returns NULL. */
struct hf_podresources_client *hf_podresources_client_destroy(
	struct hf_podresources_client *client);

/* Ask the kubelet. One question of each kind at a time: HF_E_CONFLICT while one is open. fn may ask
 * again, and may destroy the client. */
int hf_podresources_list(struct hf_podresources_client *client, hf_podresources_fn fn, void *arg,
			 struct hf_error *err) HF_MUST_CHECK;
int hf_podresources_allocatable(struct hf_podresources_client *client, hf_podresources_fn fn,
				void *arg, struct hf_error *err) HF_MUST_CHECK;
/* Asks for one pod. HF_E_NOT_FOUND or HF_E_INTERNAL (kubelets up to 1.36 have no better code):
 * there is no such pod. HF_E_UNSUPPORTED: the kubelet lacks this call. */
int hf_podresources_get(struct hf_podresources_client *client, const char *ns, const char *pod,
			hf_podresources_fn fn, void *arg, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
