/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_RUN_OBJECTS_H
#define HF_APP_RUN_OBJECTS_H

#include "app/run_input.h"
#include "store/store.h"

/* Creates in a store what `run` was asked to run: the namespaces and the other objects of the manifest, then the
 * job. */
struct hf_run_objects;

struct hf_run_objects_options {
	struct hf_store *store;
	struct hf_run_input *in;            /* gets the namespaces */
	const struct hf_resource *resource; /* of the job */
	const char *ns;                     /* of the job */
	/* Called once, from the loop: code 0 when the job exists, else the first refusal. May destroy the creator. */
	void (*done)(void *arg, int code, const char *message);
	void *arg;
};

/* All of options outlives the creator. */
struct hf_run_objects *hf_run_objects_create(const struct hf_run_objects_options *options);
/* Create no further object. NULL is fine; returns NULL. */
struct hf_run_objects *hf_run_objects_destroy(struct hf_run_objects *objects);

#endif
