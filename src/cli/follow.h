/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_FOLLOW_H
#define HF_CLI_FOLLOW_H

#include "json/doc.h"
#include "loop/loop.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * The logs of many pods, one run of a container after the other: a pod's next run begins where
 * the last one ended, and a pod made anew is another pod.  Told of every version of the pods.
 * A log that cannot be opened, or that breaks off, is tried again for some seconds, and once
 * more when its pod is told of again; what was told last may then come twice.
 */
struct hf_follows;

#define HF_FOLLOWS_MAX 65536 /* pods in one life; each restart of a job makes as many as it has */

struct hf_follows_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *ns;        /* kept by the caller */
	const char *container; /* likewise; NULL: the pod's first */
	bool timestamps;
	int64_t tail_lines;    /* of pods that are joined; -1: all */
	int64_t since_seconds; /* likewise; 0: all */
	/* That run (restartCount) of the container is told of from here on; NULL: unwanted. */
	void (*began)(void *arg, struct hf_doc *pod, int64_t run);
	void (*bytes)(void *arg, const char *pod, const char *bytes, size_t len);
	/* One run is told to its end; code: 0, or why there is nothing more.  May ask whether
	 * others are open; the next run of this pod, where there is one, is open already. */
	void (*ended)(void *arg, const char *pod, int code, const char *message);
	void *arg;
};

struct hf_follows *hf_follows_create(const struct hf_follows_options *options);
struct hf_follows *hf_follows_destroy(struct hf_follows *follows); /* NULL is fine */

void hf_follows_pod(struct hf_follows *follows, struct hf_doc *pod);
/* A pod that is older than we are: of its runs so far only the newest, as far as tail_lines and
 * since_seconds say. */
void hf_follows_join(struct hf_follows *follows, struct hf_doc *pod);
bool hf_follows_open(const struct hf_follows *follows);
/* Is one open whose container has ended, so that its log will too? */
bool hf_follows_ending(const struct hf_follows *follows);

/* The number of the newest run of that container (NULL: the first) that can have written
 * something; -1: none has started.  ret_running: it goes on. */
int64_t hf_container_run(const struct hf_json *pod, const char *container, bool *ret_running);

HF_END_DECLS

#endif
