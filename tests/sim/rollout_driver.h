/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_ROLLOUT_DRIVER_H
#define HF_TESTS_SIM_ROLLOUT_DRIVER_H

#include "api/device_health.h"
#include "harness/json_text.h"
#include "sim/remedy.h"

/*
 * A driver's DaemonSet with updateStrategy OnDelete on the fleet of remedy.h: the DaemonSet and its revisions, its
 * controller, kubelets that start and remove pods, and agents that answer requests for a report. The embedded store knows
 * no kinds of group apps, so a store in front of it keeps them.
 *
 * The invariants of rollouts are checked at each change.
 */

#define RD_VERSIONS_MAX 8
#define RD_GPUS 8
#define RD_RUNS_MAX 128 /* pods of jobs */
#define RD_RANKS_MAX 8  /* ranks of a node */

/* A canary that takes all GPUs of a node. In this text ' stands for ". */
#define RD_CANARY                                                                                  \
	"'template':{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{'namespace':"  \
	"'default'},'spec':{'pytorchReplicaSpecs':{'Master':{'replicas':1,'restartPolicy':"        \
	"'Never','template':{'spec':{'containers':[{'name':'pytorch','image':'i','resources':{"    \
	"'limits':{'nvidia.com/gpu':'8'}}}]}}}}}}"

/* What a version of the driver does on a node. */
enum rd_effect {
	RD_WORKS,
	RD_BREAKS_DEVICE, /* a device fails a while after the pod is Ready */
	RD_LOSES_GPU,     /* the node offers one GPU less */
	RD_NOT_ANSWERS, /* the driver answers no question: the agent knows nothing of the device */
	RD_NEVER_READY, /* the pod never becomes Ready */
	RD_CRASHES,     /* the pod ends 2 s after it became Ready, again and again */
	RD_ENDS_LATER,  /* the pod ends a minute after it became Ready, and does not come back */
};

/* How a canary goes on a node with a version of the driver. */
struct rd_canary {
	int seconds; /* how long it runs; 0: it never ends */
	bool fails;
	int64_t own_us; /* of its rank; 0: the rank reports no steps */
};

/* A pod of a job on a node. */
struct rd_run {
	char pod[64], uid[64];
	int node;
	hf_time since;
	bool running, seen;
};

struct rd {
	struct rw *w;
	struct hf_timer *timer;
	struct hf_memstore_observer observer;
	int version;                   /* of the template */
	int revision[RD_VERSIONS_MAX]; /* number of each ControllerRevision; 0: none */
	int newest_revision, generation, object_version;
	const char *strategy; /* "OnDelete" */
	bool gone;            /* the DaemonSet does not exist */
	/* It is a DRA driver: it offers GPUs in ResourceSlices, and the kubelet offers none. */
	bool is_dra;
	bool no_slices; /* the operator may not list ResourceSlices */
	/* For so long after the start of a new driver, the kubelet keeps the slices of the old one. */
	hf_time slices_stay;
	enum rd_effect effect[RW_NODES_MAX][RD_VERSIONS_MAX];
	int runs[RW_NODES_MAX];         /* version of the node's pod; 0: none */
	hf_time ready_at[RW_NODES_MAX]; /* when the pod becomes Ready */
	bool ready[RW_NODES_MAX], asked[RW_NODES_MAX], bare[RW_NODES_MAX];
	int pods_made;
	struct rd_canary canary[RD_VERSIONS_MAX];
	int canary_fails_on; /* number of the node on which each canary fails, plus 1; 0: canaries fail on no node */
	int64_t own_us[RD_VERSIONS_MAX]; /* of a rank of the job "train" */
	int canaries_made;               /* jobs */
	struct rd_run jobs[RD_RUNS_MAX];
	size_t jobs_len;
	struct hf_rank_report reports[RD_RANKS_MAX];
	hf_time breaks_after; /* a device fails so long after the pod is Ready */
	/* Of the invariants. */
	int at_once;      /* most nodes with a cordon of the rollout; -1: any number */
	bool beside_pods; /* pods may hold devices during the change */
	bool by_hand;     /* people take cordons off */
	int deletes
		[RW_NODES_MAX]; /* pods of the driver that were deleted while they had an old version */
	int most_cordoned, total_deletes, undos;
};

struct rd *rd_create(struct rw *w, int nodes);
/* The same with an operator, a new version of the driver, and DeviceRollout "r" with this spec. */
struct rd *rd_begin(struct rw *w, int nodes, const char *spec);
/* Starts the operator, changes the template to version 2, and creates DeviceRollout "r" with this spec. */
void rd_roll(struct rd *d, const char *spec);
/* A person changes the template to this version. */
void rd_set_version(struct rd *d, int version);
/* What this version of the driver does on all nodes. */
void rd_set_effect(struct rd *d, int version, enum rd_effect effect);
/* The kubelet evicts the driver's pod of the node. The next pod has the version of the template. */
void rd_evict(struct rd *d, int node);
bool rd_is_evicted(const struct hf_json *pod);
/* In this text ' stands for ". Creates the DeviceRollout; spec without its braces. */
void rd_rollout(struct rd *d, const char *name, const char *spec);
void rd_patch_spec(struct rd *d, const char *name, const char *spec);
/* Both run the loop in steps of a second until rollout "r", or its entry for the node, has this phase. They fail after an
 * hour. */
void rd_run_until(struct rd *d, const char *phase);
void rd_run_node_until(struct rd *d, int node, const char *phase);
void rd_expect_phase(struct rd *d, const char *phase);
/* The message of rollout "r", or of its entry for the node, has `part`. */
void rd_expect_message(struct rd *d, const char *part);
void rd_expect_node_message(struct rd *d, int node, const char *part);
/* The condition begins with `start` and has `part`. */
void rd_expect_condition(struct rd *d, const char *type, const char *start, const char *part);
/* Parts of the status; "": absent. */
const char *rd_phase(struct rd *d, const char *name);
const char *rd_message(struct rd *d, const char *name);
const char *rd_node_phase(struct rd *d, const char *name, int node);
const char *rd_node_message(struct rd *d, const char *name, int node);
/* The entry of the node in the status; NULL: none. */
const struct hf_json *rd_entry(struct rd *d, const char *name, int node);
/* "True ReasonOfIt message"; "": no such condition. */
const char *rd_condition(struct rd *d, const char *name, const char *type);
int rd_count(struct rd *d, const char *name, const char *key);
/* Text of the mark that a rollout of the driver has left on the Node, or a rollout of this label; NULL: none. */
const char *rd_mark(const struct hf_json *node, const char *label);
bool rd_is_cordoned(struct rd *d, int node);
int rd_count_running(struct rd *d, int version);
/* Fails if a cordon, an annotation of a cordon, a Lease or a condition True of the rollout is left. */
void rd_expect_clean(struct rd *d);
/* A pod that requests a device. owner NULL: it has no controller. */
void rd_pod(struct rd *d, const char *name, int node, const char *owner);
void rd_end_pod(struct rd *d, const char *name);

/* --- rollout_jobs.c --- */
/* Ranks report their steps from now on. */
void rd_use_jobs(struct rd *d);
void rd_tick_jobs(struct rd *d);
/* The agent of the node reports, if the node is well. */
void rd_report(struct rd *d, int node);
/* Creates the job "train", with rank i on node i. */
void rd_train(struct rd *d, int ranks);
int rd_count_canaries(struct rd *d);
/* A person deletes a canary. */
void rd_delete_canary(struct rd *d);

#endif
