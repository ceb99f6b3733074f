/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_REMEDY_DRA_STORE_H
#define HF_TESTS_SIM_REMEDY_DRA_STORE_H

#include "sim/remedy.h"
#include "store/backend.h"

/*
 * ResourceSlices and DeviceTaintRules of the world, in a store in front of the embedded one (front_store.h), which knows no
 * kinds of resource.k8s.io.
 */

#define DRA_OBJECTS_MAX 64
#define DRA_WATCHES_MAX 8

struct dra;

struct dra_watch {
	struct hf_watch base; /* first */
	struct dra *dra;
	hf_event_fn fn;
	void *arg;
};

struct dra {
	struct hf_loop *loop;
	struct hf_doc *rules[DRA_OBJECTS_MAX], *slices[DRA_OBJECTS_MAX];
	size_t rules_len, slices_len;
	int64_t version;
	/* the version of DeviceTaintRule that the cluster serves; NULL: none */
	const char *serves;
	hf_time delay;    /* of each reply */
	int refuse_rules; /* code with which writes of rules are refused; 0: they are accepted */
	unsigned creates, changes, deletes;
	/* chance that a request is refused or its reply is lost, by `rng` */
	unsigned lose_permille;
	struct hf_rng *rng;
	bool loses; /* the answer to the present request is lost, or the request is refused */
	/* Called with each rule that is created or changed; NULL: not set. */
	void (*put)(void *arg, const struct hf_json *rule);
	void *put_arg;
	struct dra_watch *watches[DRA_WATCHES_MAX];
	char broken[256]; /* a promise that was broken; "": none */
};

/* The world's operators find these kinds from now on.  rw_teardown fails if a promise was broken, and frees all. */
struct dra *dra_create(struct rw *w);
/* In this text ' stands for ". Replaces the slice of this node; NULL: the driver is away. */
void dra_publish(struct dra *dra, const char *node, const char *text);
/* The same, but the other slices of the node stay. */
void dra_publish_more(struct dra *dra, const char *text);
/* A person patches the rule. */
void dra_edit_rule(struct dra *dra, size_t at, const char *text);
/* A person deletes the rule. */
void dra_remove_rule(struct dra *dra, size_t at);
/* The device of the only rule of the node; "": there is none. */
const char *dra_device_of(const struct dra *dra, const char *node);
const char *dra_effect_of(const struct dra *dra, const char *node);
/* The mark of the node's quarantine; "": none. */
const char *dra_mark_of(struct rw *w, const char *node);
bool dra_is_marked(struct rw *w, const char *node);
/* What the jobs are told of the node's devices; "": nothing. */
const char *dra_devices_out(struct rw *w, const char *node);

#endif
