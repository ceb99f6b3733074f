/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_HEALTH_WATCH_H
#define HF_AGENT_HEALTH_WATCH_H

#include "loop/loop.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * Watches the DeviceHealth of this node for annotations that the operator or a person writes.
 * Input: one watch, by the name of the object.  Output: a call with the annotations at each change of the object.
 * Invariant: nothing is written.  Without the right to watch, the agent asks for the object now and then instead.
 */
struct hf_health_watch;

struct hf_health_watch_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *node; /* copied */
	uint64_t seed;
	/* NULL: the object has no such annotation */
	void (*changed)(void *arg, const char *cleared, const char *report);
	void *arg;
};

struct hf_health_watch *hf_health_watch_create(const struct hf_health_watch_options *options);
struct hf_health_watch *hf_health_watch_destroy(struct hf_health_watch *watch); /* NULL is fine */
void hf_health_watch_start(struct hf_health_watch *watch);
/* Whether the API server has answered the watch at least once. */
bool hf_health_watch_works(const struct hf_health_watch *watch);

HF_END_DECLS

#endif
