/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_REMEDY_SWARM_WILD_H
#define HF_TESTS_SIM_REMEDY_SWARM_WILD_H

#include "sim/remedy_swarm.h"

#include "sim/remedy_dra_store.h"
#include "store/backend.h"

/*
 * The wild world of remedy_swarm: all troubles of the wide world, and
 * - rung external with a controller of its own (remedy_swarm_fix.c),
 * - jobs with gangs, their scheduler and kubelets (remedy_swarm_gang.c),
 * - DRA drivers and quarantines of single devices, locks of kured and NodeMaintenance, requests that fail in each way,
 *   late watches, and clocks of the control plane that step (remedy_swarm_wild.c).
 */

#define FIX_OBJECTS_MAX 32
#define GANG_PODS_MAX 32
#define GANGS 3
#define ACTS_MAX 512

struct fix {
	struct hf_doc *doc;
	char node[16];
	bool foreign;      /* a person or another program has created it */
	bool leaves;       /* it has a deletionTimestamp; a finalizer keeps it */
	bool began, ended; /* the controller has begun with the machine, is done with it */
	hf_time due;       /* of the next step */
};

/* What the cluster has of fix.example. */
struct fixes {
	struct hf_doc *template;
	struct fix objects[FIX_OBJECTS_MAX];
	size_t len;
	int refuse;    /* code for each write; 0: accepted */
	hf_time delay; /* of each answer */
	bool linger;
	unsigned lose_permille, uids, creates, deletes, foreign;
};

struct gang_pod {
	char name[64], uid[64];
	int node;
	hf_time gone_at; /* of a deleted pod; 0: it is not deleted */
	bool seen;
};

struct wild {
	struct rs *s;
	struct hf_rng rng; /* of the faults */
	struct hf_timer *timer;
	struct hf_memstore_observer observer;
	struct fixes fixes;
	struct gang_pod pods[GANG_PODS_MAX];
	size_t pods_len;
	char holders[RS_NODES_MAX][64]; /* names for struct rw */
	struct dra *dra;                /* NULL: the cluster has no DRA driver */
	hf_time dra_delay;
	int generations[RS_NODES_MAX], names[RS_NODES_MAX][8];
	bool away[RS_NODES_MAX];
	hf_time named_at[RS_NODES_MAX]; /* when the driver last renamed devices */
	unsigned fail_permille;         /* of the operator's requests, in each of many ways */
	bool slow_watches;
	bool off[RS_NODES_MAX];         /* a power cycle is under way */
	bool was_deleted[RS_NODES_MAX]; /* the Node object, once */
	char kured[512];                /* the lock of kured, as a text of json_doc_of; "": none */
	bool in_maintenance[RS_NODES_MAX]; /* a NodeMaintenance names the node */
	struct hf_store *(*dra_wrap)(void *arg, struct hf_store *inner);
	void *dra_arg;
	struct act_count {
		char uid[64];
		unsigned writes;
	} acts[ACTS_MAX]; /* how often each Remediation was written */
	size_t acts_len;
	unsigned long long changes; /* of Nodes, Remediations and Leases */
};

/* --- remedy_swarm_wild.c --- */
/* Call this before rw_begin. May change the text of the policy, of 1024 bytes. */
void rs_wild_create(struct rs *s, unsigned seed, char *policy);
void rs_wild_begin(struct rs *s);
void rs_wild_destroy(struct rs *s);
void rs_disturb_wildly(struct rs *s);
void rs_calm_down_wildly(struct rs *s);
void rs_wild_expect_end(struct rs *s, unsigned seed);
unsigned wild_pick(struct wild *wild, unsigned below);
/* Kubernetes deletes what belongs to a Node that is gone. */
void wild_collect(struct wild *wild, const char *node);
/* The machine has rebooted and has registered. */
void wild_come_back(struct wild *wild, int node);

/* --- remedy_swarm_fix.c --- */
void fix_create_template(struct wild *wild);
struct hf_store *fix_wrap(struct wild *wild, struct hf_store *inner);
void fix_tick(struct wild *wild);
void fix_destroy(struct wild *wild);
/* People change templates, objects and rights. */
void fix_disturb(struct wild *wild, int node);
/* The machine loses its power, and comes back some time. */
void fix_switch_off(struct wild *wild, int node);
/* From here on deleted objects stay for a while, or go at once. */
void fix_linger(struct wild *wild);
void fix_calm(struct wild *wild);
void fix_expect_end(struct wild *wild, unsigned seed);

/* --- remedy_swarm_gang.c --- */
void gang_create(struct wild *wild, int number);
void gang_tick(struct wild *wild);
/* The pod does not exist any more, so it holds no device. */
void gang_forget(struct wild *wild, const char *uid);
/* A pod of a job is bound to the node, and is not asked to leave. */
const char *gang_on_node(struct wild *wild, int node);
/* The pod of the device plugin is on the node. */
bool gang_has_plugin(struct wild *wild, int node);
void gang_drop_plugin(struct wild *wild, int node);

#endif
