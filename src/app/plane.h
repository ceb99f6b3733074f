/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PLANE_H
#define HF_APP_PLANE_H

#include "agent/report_socket.h"
#include "ctl/metrics.h"
#include "kubelet/kubelet.h"
#include "loop/loop.h"
#include "memstore/memstore.h"
#include "operator/operator.h"

#include <stdio.h>

/*
 * The embedded plane: the store with garbage collector and scheduler, the kubelet and the operator, on
 * one loop in one process.  `run` and `up` use it.
 */
struct hf_plane;

/* The init container that the plane adds to the Workers of a PyTorchJob. */
#define HF_PLANE_INIT_CONTAINER "init-pytorch"

struct hf_plane_options {
	struct hf_loop *loop; /* real; outlives the plane */
	/* folder for all data: an absolute path; made with mode 0700 if it is missing */
	const char *dir;
	/* keep objects in memory: after the process only logs are left, and the pods end with it */
	bool in_memory;
	/* The folders of PersistentVolumeClaims.  NULL: "claims" in dir; if in_memory, "claims" in
	 * hf_plane_default_dir, so that a later run finds its data again. */
	const char *claims_dir;
	/* the GPUs that pods may use: NULL or "all", "none", numbers such as "0,2" */
	const char *gpus;
	/* Watch the GPUs that the node offers (app/node_health.h).  This program must be able to start
	 * itself as "agent --nvml-child". */
	bool watch_gpus;
	/* do not create the operator: another process operates the jobs, over the API */
	bool no_operator;
	/* As in struct hf_kubelet_options: the plane only ends the pods that an earlier one left. It has
	 * no operator, no scheduler and no agent. hf_plane_stop tells when the pods have ended. */
	bool only_drains;
	enum hf_kubelet_network network;
	int pods_max; /* as in struct hf_kubelet_options */
	/* folder for the logs of deleted pods, as in struct hf_kubelet_options; may be NULL */
	const char *kept_logs;
	/* ranks get no init container that waits until the master's name resolves */
	bool no_init_containers;
	/* "NAME=value" for every container; ends with NULL, outlives hf_plane_create. May be
	 * NULL. */
	const char *const *env;
	/* address of the page, such as "127.0.0.1:0"; NULL: no page.  Needs the operator. */
	const char *page;
	void (*notice)(void *arg, const char *text); /* may be NULL */
	/* Called when the store begins to refuse writes (err says why), and when it accepts writes
	 * again (err NULL). May be NULL. */
	void (*health)(void *arg, const struct hf_error *err);
	void (*ready)(void *arg, int code, const char *message);        /* pods can run now */
	void (*passed)(void *arg, const struct hf_operator_pass *pass); /* may be NULL */
	void (*problem)(void *arg, const char *key, int code,
			const char *message); /* may be NULL */
	/* Called when a process of the pod reports its training step or that it is alive. May be
	 * NULL. */
	void (*heard)(void *arg, const char *pod_uid, const struct hf_beat *beat);
	void *arg;
};

/* Create the plane. Errors are those of hf_memstore_create and hf_kubelet_create. After an error
 * nothing of the plane is left. */
int hf_plane_create(const struct hf_plane_options *options, struct hf_plane **ret_plane,
		    struct hf_error *err) HF_MUST_CHECK;
/* Free the plane.  Its pods keep running; hf_plane_stop ends them.  NULL is fine; returns NULL. */
struct hf_plane *hf_plane_destroy(struct hf_plane *plane);

/*
 * End the plane gracefully: the operator stops acting, and every pod is ended, with the grace of
 * hf_kubelet_drain. Then `stopped` is called from the loop. May be called again with a shorter
 * grace.
 */
void hf_plane_stop(struct hf_plane *plane, hf_time grace, void (*stopped)(void *arg), void *arg);

struct hf_memstore *hf_plane_local(struct hf_plane *plane);
struct hf_store *hf_plane_store(struct hf_plane *plane);
struct hf_kubelet *hf_plane_kubelet(struct hf_plane *plane);
struct hf_operator *hf_plane_operator(struct hf_plane *plane); /* NULL with no_operator */
struct hf_metrics *hf_plane_metrics(
	struct hf_plane *plane); /* with the newest numbers of the page */
/* Print "page: URL" behind the prefix. The URL has a token that works once. Prints nothing without a page. */
void hf_plane_print_page(const struct hf_plane *plane, const char *prefix, FILE *out);

/*
 * The folder for data that outlives the process: $HOLDFAST_DIR, else $XDG_STATE_HOME/holdfast, else
 * ~/.local/state/holdfast.  The caller frees the text.
 */
int hf_plane_default_dir(char **ret_dir, struct hf_error *err) HF_MUST_CHECK;
/* Make the folder and its parents if they are missing. HF_E_IO or HF_E_NO_SPACE: a folder cannot
 * be made. */
int hf_plane_make_dir(const char *dir, struct hf_error *err) HF_MUST_CHECK;

#endif
