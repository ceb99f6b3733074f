/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_LOG_FOLLOWER_H
#define HF_CLI_LOG_FOLLOWER_H

#include "json/doc.h"
#include "loop/loop.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * Prints the logs of many pods, one run of a container after the other.  The caller passes every
 * version of every pod.  When a run ends, the log of the pod's next run is opened.  A recreated pod
 * counts as a new pod.  If a log cannot be opened or breaks off, it is opened again: up to 10 times,
 * 500 ms apart, then once for each new version of its pod.  The last lines may then come twice.
 */
struct hf_log_follower;

/* limit of the pods of one hf_log_follower; after each restart of a job, all its new pods count
 * again */
#define HF_LOG_FOLLOWER_PODS_MAX 65536

struct hf_log_follower_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const char *ns;        /* the caller keeps it alive */
	const char *container; /* likewise; NULL: the training container */
	bool timestamps;
	/* how many last lines are printed of pods of hf_log_follower_join_pod; -1: all */
	int64_t tail_lines;
	int64_t since_seconds; /* likewise; 0: all */
	/* Called before the first bytes of a run (restartCount) of a container.  May be NULL. */
	void (*began)(void *arg, struct hf_doc *pod, int64_t run);
	void (*bytes)(void *arg, const char *pod, const char *bytes, size_t len);
	/* The same for the pod's init containers, without began. NULL: their logs are not followed. */
	void (*init_bytes)(void *arg, const char *pod, const char *container, const char *bytes,
			   size_t len);
	/* Called when the log of a run has ended. code: 0, or the error that ended the log. If the
	 * pod has a next run, its log has been opened before this call, so hf_log_follower_is_open
	 * counts it. */
	void (*ended)(void *arg, const char *pod, int code, const char *message);
	void *arg;
};

struct hf_log_follower *hf_log_follower_create(const struct hf_log_follower_options *options);
struct hf_log_follower *hf_log_follower_destroy(struct hf_log_follower *follows); /* NULL is fine */

/* Pass a new version of a pod; the first version adds the pod. */
void hf_log_follower_update_pod(struct hf_log_follower *follows, struct hf_doc *pod);
/* Add a pod that existed before the verb started: only its newest run is printed, limited by
 * tail_lines and since_seconds. */
void hf_log_follower_join_pod(struct hf_log_follower *follows, struct hf_doc *pod);
/* True while the log of any pod is open or will be opened again. */
bool hf_log_follower_is_open(const struct hf_log_follower *follows);
/* True if a container has ended and its log is still open: the log will end without a further
 * event. */
bool hf_log_follower_is_ending(const struct hf_log_follower *follows);

/* Find the newest run of the container that has started. Returns its number (restartCount); -1:
 * the container never started. container NULL: the training container. ret_running: the run has not
 * ended. */
int64_t hf_container_run(const struct hf_json *pod, const char *container, bool *ret_running);

HF_END_DECLS

#endif
