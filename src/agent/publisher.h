/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_PUBLISHER_H
#define HF_AGENT_PUBLISHER_H

#include "ctl/metrics.h"
#include "json/json.h"
#include "loop/loop.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * Sends patches to the API server: one at a time for each object, always the newest.
 *
 * - A failed patch is sent again with growing delays (0.5 s to 30 s; Retry-After is kept).
 * - A pod's patch is dropped when the pod is gone or replaced, or after HF_PUBLISH_TRIES.  The patches of the node's
 *   two objects are never dropped.
 * - A missing DeviceHealth object is created.  If its status is still missing after that, the write has failed.
 */
struct hf_publisher;

#define HF_PUBLISH_TRIES 12
/* Most pods with a patch at a time: more than can hold a device of a node. */
#define HF_PUBLISH_PODS_MAX 256
/* Least time between two writes of DeviceHealth that are not urgent. */
#define HF_PUBLISH_GAP HF_SECOND
/* Most urgent writes in a row that do not wait for the gap; each second allows one more. */
#define HF_PUBLISH_URGENT_MAX 20

struct hf_publisher_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *node; /* copied */
	uint64_t seed;
	struct hf_metrics *metrics; /* may be NULL */
	/* A write failed, or (code 0) the first write after a failure succeeded.  what: "node", "devicehealth" or
	 * "pod". */
	void (*trouble)(void *arg, const char *what, int code, const char *message);
	/* DeviceHealth as the API server has it, after each write and each question; NULL: the API server has
	 * none.  May be NULL. */
	void (*seen)(void *arg, struct hf_doc *health);
	void *arg;
};

struct hf_publisher *hf_publisher_create(const struct hf_publisher_options *options);
struct hf_publisher *hf_publisher_destroy(struct hf_publisher *publisher); /* NULL is fine */

/* Send a patch of the Node, or of DeviceHealth. Both functions take over the patch. */
void hf_publisher_node(struct hf_publisher *publisher, struct hf_json *patch);
void hf_publisher_device(struct hf_publisher *publisher, struct hf_json *patch);
/* Sends these members of DeviceHealth's status without the gap between writes.  They are added to a patch that
 * waits. */
void hf_publisher_urgent(struct hf_publisher *publisher, struct hf_json *patch);
void hf_publisher_pod(struct hf_publisher *publisher, const char *ns, const char *name,
		      const char *uid, struct hf_json *patch);
/* Asks for DeviceHealth: `seen` follows.  A write that is under way or waits brings the answer too.  The question
 * is a patch without members, so it needs no right besides that to write. */
void hf_publisher_ask(struct hf_publisher *publisher);
/* Whether no request is under way and no patch waits. */
bool hf_publisher_is_idle(const struct hf_publisher *publisher);
/* "devicehealth: MESSAGE": why one of the node's objects cannot be written; NULL: the last writes did not fail. */
const char *hf_publisher_why(const struct hf_publisher *publisher);
/* Whether both of the node's objects have been written at least once. */
bool hf_publisher_has_written(const struct hf_publisher *publisher);

HF_END_DECLS

#endif
