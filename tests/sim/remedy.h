/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_REMEDY_H
#define HF_TESTS_SIM_REMEDY_H

#include "base/random.h"
#include "ctl/metrics.h"
#include "harness/test.h"
#include "memstore/memstore.h"
#include "operator/operator.h"

/*
 * A fleet for HealthPolicy: nodes, the word of their agents, pods that hold devices, and an
 * operator that may die at any of its requests, on the in-memory engine and a virtual clock.  What
 * must hold always is looked at with each change of a Node.
 */

#define RW_NODES_MAX 1000
#define RW_START (1700000000 * HF_SECOND)

enum rw_death {
	RW_ALIVE,
	RW_BEFORE, /* the request is not sent */
	RW_AFTER,  /* it is done, and the reply is never seen */
};

struct rw_met {
	unsigned quarantines, releases; /* taints of ours that came and went */
	unsigned opened, closed;        /* the breaker, by itself and by a person */
	unsigned stale;                 /* of those, while evidence from before it still stood */
	unsigned deaths;                /* of the operator, at a write */
	unsigned refusals, lost;        /* of its requests and replies */
};

struct rw {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_store *client;
	struct hf_operator *op;
	struct hf_metrics *metrics;
	struct hf_memstore_observer observer;
	struct hf_timer *death;
	struct hf_rng rng;
	int nodes;
	/* What is wrong with each: an index of rw_ills. */
	int ill[RW_NODES_MAX];
	hf_time ill_since[RW_NODES_MAX];
	hf_time measured_at[RW_NODES_MAX]; /* found anew since; 0: told once */
	hf_time clock[RW_NODES_MAX];       /* of the node, ahead of the server's */
	bool silent[RW_NODES_MAX];
	int boots[RW_NODES_MAX];          /* reboots of the node */
	bool by_test[RW_NODES_MAX];       /* a test says what its agent says */
	bool bare[RW_NODES_MAX];          /* without any device */
	const char *holder[RW_NODES_MAX]; /* the pod that holds its device; NULL: none */

	/* Requests of the operator that write, and when it dies. */
	unsigned long long writes, die_at;
	enum rw_death how;
	unsigned refuse_permille; /* of its requests, by chance */
	bool refuse_evictions;
	/* What a test does to one of them; true: that is all. */
	bool (*fault)(const struct rw *w, const struct hf_request *request,
		      struct hf_fault *ret_fault);
	void (*end)(void *arg); /* called by rw_teardown; NULL: nothing */
	void *end_arg;
	const char *victim; /* a name, for its use */
	unsigned *reads;    /* a number, likewise */

	/* Invariants. */
	bool people_ask; /* for acts on nodes that are well */
	bool by_hand;    /* people take taints and marks off */
	int limit;       /* of nodes that are out at once; -1: none */
	int rate;        /* of quarantines within the hour */
	int taints_put;  /* ever */
	hf_time put_at[4096];
	hf_time closed_at; /* a person closed the breaker, which was open; 0: never */
	/* What was met, so that "nothing broke" means something. */
	struct rw_met met;
	char broken[512];
};

struct rw_ill {
	const char *state, *cls, *action;
};
extern const struct rw_ill rw_ills[];
enum {
	RW_WELL,
	RW_RESET,
	RW_REBOOT,
	RW_SLOW,
	RW_SUSPECT,
	RW_UNKNOWN,
	RW_PROBATION,
	RW_FAILED,
	RW_PLUGIN, /* its plugin has gone: all of its devices are well */
};

/* JSON with ' for ". */
#define QUARANTINE "{'mode':'quarantine'}"
#define WIDE                                                                                       \
	"'budget':{'maxUnavailable':{'percent':50},'maxQuarantines':{'count':60}},"                \
	"'breaker':{'percent':100}"
/* As a person leaves it who takes our taint off, and our mark. */
#define UNTAINTED                                                                                  \
	"{'spec':{'taints':[{'key':'nvidia.com/gpu','value':'present','effect':'NoSchedule'}]}}"
#define UNMARKED "{'metadata':{'annotations':{'holdfast.dev/quarantine':null}}}"

int rw_setup(void **state);
int rw_teardown(void **state);

void rw_fleet(struct rw *w, int nodes);
void rw_node(struct rw *w, int node); /* its Node object alone */
void rw_pod(struct rw *w, const char *name, int node, const char *owner_kind);
void rw_policy(struct rw *w, const char *spec); /* under the name p */
void rw_policy_named(struct rw *w, const char *name, const char *spec);
void rw_patch(struct rw *w, const struct hf_resource *resource, const char *name, const char *text);
void rw_patch_status(struct rw *w, const struct hf_resource *resource, const char *name,
		     const char *text);
/* A person closes the breaker, if it is open, by the next epoch. */
void rw_close_breaker(struct rw *w, int epoch);
void rw_delete(struct rw *w, const struct hf_resource *resource, const char *name);
void rw_say(struct rw *w, int node, int ill);
/* Boot of the node, as its agent and its kubelet report it. */
void rw_boot_id(const struct rw *w, int node, char ret_boot[40]);
/* Its fault, which stands, is found anew. */
void rw_measure(struct rw *w, int node);
void rw_say_again(struct rw *w); /* every agent, as a heartbeat */
void rw_start(struct rw *w);
void rw_stop(struct rw *w); /* as if it had died */
void rw_run(struct rw *w, hf_time span);
/* So many nodes that are well under that policy, and an operator that has seen them. */
void rw_begin(struct rw *w, int nodes, const char *policy);
/* Fails unless what the status says of that node begins so. */
void rw_expect_next(struct rw *w, int node, const char *start);
bool rw_tainted(struct rw *w, int node);
int rw_count_tainted(struct rw *w);
const struct hf_json *rw_get(struct rw *w, const struct hf_resource *resource, const char *ns,
			     const char *name);
const char *rw_status(struct rw *w, const char *a, const char *b);
/* What the status says of that node: "answer next why", "" for nothing. */
void rw_next(struct rw *w, int node, char text[256]);
bool rw_event(struct rw *w, const char *reason, const char *name);

#endif
