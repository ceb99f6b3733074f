/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_FOLLOW_H
#define HF_CLI_FOLLOW_H

#include "json/doc.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * The logs of many pods, one run of a container after the other: a pod's next run begins where
 * the last one ended, and a pod made anew is another pod.  Told of every version of the pods.
 */
struct hf_follows;

#define HF_FOLLOWS_MAX 65536 /* pods in one life; each restart of a job makes as many as it has */

struct hf_follows_options {
	struct hf_store *store;
	const char *ns;        /* kept by the caller */
	const char *container; /* likewise; NULL: the pod's first */
	void (*bytes)(void *arg, const char *pod, const char *bytes, size_t len);
	/* One run is told to its end; code: 0, or why there is nothing more.  May ask whether
	 * others are open; the next run of this pod, where there is one, is open already. */
	void (*ended)(void *arg, const char *pod, int code, const char *message);
	void *arg;
};

struct hf_follows *hf_follows_create(const struct hf_follows_options *options);
struct hf_follows *hf_follows_destroy(struct hf_follows *follows); /* NULL is fine */

void hf_follows_pod(struct hf_follows *follows, struct hf_doc *pod);
bool hf_follows_open(const struct hf_follows *follows);

/* The number of the newest run of that container (NULL: the first) that can have written
 * something; -1: none has started.  ret_running: it goes on. */
int64_t hf_container_run(const struct hf_json *pod, const char *container, bool *ret_running);

HF_END_DECLS

#endif
