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
 * A fleet for the tests of HealthPolicy, on the in-memory engine and a virtual clock: nodes, what
 * their agents report, and pods that hold devices. The operator may die at any of its requests. The
 * invariants are checked at each change of a Node.
 */

#define RW_NODES_MAX 1000
#define RW_ENDS_MAX 4
#define RW_START (1700000000 * HF_SECOND)

enum rw_death {
	RW_ALIVE,
	RW_BEFORE, /* the request is not sent */
	RW_AFTER,  /* the request is done, but its reply never arrives */
};

struct hf_device_health;

struct rw_met {
	unsigned quarantines, releases; /* taints of Holdfast that were put on and taken off */
	/* opened: the breaker opened by itself; closed: a person closed it */
	unsigned opened, closed;
	unsigned stale;          /* of `closed`: while a fault from before still existed */
	unsigned deaths;         /* deaths of the operator at a write */
	unsigned refusals, lost; /* refused requests and lost replies of the operator */
};

struct rw {
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_store *client;
	struct hf_operator *op;
	/* The kinds of jobs, with NULL at the end; NULL: PyTorchJob alone. */
	const struct hf_framework *const *frameworks;
	/* A former leader that goes on acting beside op; NULL: none. */
	struct hf_operator *second;
	struct hf_store *second_client;
	struct hf_metrics *metrics;
	struct hf_memstore_observer observer;
	struct hf_timer *death;
	struct hf_rng rng, uids;
	int nodes;
	/* What is wrong with each node: an index of rw_ills. */
	int ill[RW_NODES_MAX];
	hf_time ill_since[RW_NODES_MAX];
	hf_time measured_at[RW_NODES_MAX]; /* when the fault was last found again; 0: only once */
	hf_time clock[RW_NODES_MAX];       /* the node's clock minus the server's clock */
	bool silent[RW_NODES_MAX];
	bool mute[RW_NODES_MAX]; /* the agent alone is silent */
	/* The number of GPUs of each node whose report no test writes, at most 8. 0: one GPU. */
	int gpus;
	/* If the node is ill, these of its GPUs are sick: bit 3 is GPU 3. 0: GPU 0 is. */
	unsigned sick[RW_NODES_MAX];
	int boots[RW_NODES_MAX];    /* reboots of the node */
	bool by_test[RW_NODES_MAX]; /* a test writes the node's DeviceHealth itself */
	bool bare[RW_NODES_MAX];    /* the node has no device */
	/* The agent is of an older version, which reports neither the boot nor UUIDs. */
	bool old_agent[RW_NODES_MAX];
	/* The agent does not know the UUIDs of sick GPUs. */
	bool unnamed[RW_NODES_MAX];
	/* name of the pod that holds the node's device; NULL: none */
	const char *holder[RW_NODES_MAX];

	/* Writes of the operator so far; the operator dies at write number die_at. */
	unsigned long long writes, die_at;
	enum rw_death how;
	/* chance that a request of the operator is refused or its reply is lost */
	unsigned refuse_permille;
	bool refuse_evictions;
	/* A test's own fault for a request. If it returns true, no other fault follows. */
	bool (*fault)(const struct rw *w, const struct hf_request *request,
		      struct hf_fault *ret_fault);
	/* The same for an event of a watch; NULL: not set. */
	void (*event_fault)(void *arg, const struct hf_watch_options *options,
			    const struct hf_event *event, struct hf_event_fault *ret_fault);
	/* Wraps the store of each life of the operator; NULL: not set. */
	struct hf_store *(*wrap)(void *arg, struct hf_store *client);
	void *wrap_arg;
	/* Of each life of the operator; NULL: it calls no webhooks. */
	const struct hf_webhooks *webhooks;
	/* Adds the ranks of the node to its report; NULL: not set. */
	void (*ranks)(void *arg, int node, struct hf_device_health *health);
	void *ranks_arg;
	struct rw_end {
		void (*fn)(void *arg);
		void *arg;
	} ends[RW_ENDS_MAX];
	size_t ends_len;
	const char *victim; /* a name for the use of `fault` */
	unsigned *reads;    /* a counter for the use of `fault` */

	/* Invariants. */
	/* people ask for acts on nodes that are well, so taints without a fault are allowed */
	bool people_ask;
	bool by_hand; /* people take taints and marks off, so releases of sick nodes are allowed */
	int limit;    /* the most nodes that may be out at once; -1: any number */
	int rate;     /* the most quarantines within an hour; -1: any number */
	int taints_put; /* number of taints that were ever put on */
	hf_time put_at[4096];
	hf_time closed_at; /* when a person closed the open breaker; 0: never */
	/* Counts what happened, because a run that met nothing proves nothing. */
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
	RW_PLUGIN,  /* the device plugin has gone; all devices are well */
	RW_UNSEEN,  /* the agent knows nothing of the device: it may be gone */
	RW_PROGRAM, /* the program that used the device has made an error; the device is well */
};

/* In these texts ' stands for ". */
#define QUARANTINE "{'mode':'quarantine'}"
#define WIDE                                                                                       \
	"'budget':{'maxUnavailable':{'percent':50},'maxQuarantines':{'count':60}},"                \
	"'breaker':{'percent':100}"
/* The Node after a person took off Holdfast's taint, and the patch that removes Holdfast's mark. */
#define UNTAINTED                                                                                  \
	"{'spec':{'taints':[{'key':'nvidia.com/gpu','value':'present','effect':'NoSchedule'}]}}"
#define UNMARKED "{'metadata':{'annotations':{'holdfast.dev/quarantine':null}}}"

/* The arguments of a program of tests, [-x] PATTERN: it runs only the tests whose names match, or with -x all others. */
void rw_choose_tests(int argc, char **argv);
int rw_setup(void **state);
int rw_teardown(void **state);

/* Calls fn at rw_teardown, after the operator's end; what was set last is called first. */
void rw_at_end(struct rw *w, void (*fn)(void *arg), void *arg);

void rw_fleet(struct rw *w, int nodes);
void rw_node(struct rw *w, int node); /* creates the Node object alone */
void rw_pod(struct rw *w, const char *name, int node, const char *owner_kind);
/* The pod that holds the devices of the node ends, and the node's agent reports it. */
void rw_end_work(struct rw *w, const char *name, int node);
void rw_policy(struct rw *w, const char *spec); /* creates the policy with name "p" */
void rw_policy_named(struct rw *w, const char *name, const char *spec);
void rw_create(struct rw *w, const struct hf_resource *resource, const char *ns, const char *text);
/* sub: "status", or NULL for the object itself. */
void rw_patch_in(struct rw *w, const struct hf_resource *resource, const char *ns, const char *name,
		 const char *sub, const char *text);
/* The same for kinds without a namespace. */
void rw_patch(struct rw *w, const struct hf_resource *resource, const char *name, const char *text);
void rw_patch_status(struct rw *w, const struct hf_resource *resource, const char *name,
		     const char *text);
/* Patches the Node. */
void rw_patch_node(struct rw *w, int node, const char *text);
/* status of the Node's condition Ready: "True", "False" or "Unknown". It is the only condition afterwards. */
void rw_set_ready(struct rw *w, int node, const char *status);
/* A person closes the breaker by setting this epoch. The epoch counts even if the breaker is not
 * open. */
void rw_close_breaker(struct rw *w, int epoch);
/* Deletes the object with these grace seconds. Returns the code of the reply: it may be gone already. */
int rw_remove(struct rw *w, const struct hf_resource *resource, const char *ns, const char *name,
	      int64_t grace);
void rw_delete(struct rw *w, const struct hf_resource *resource, const char *name);
void rw_say(struct rw *w, int node, int ill);
/* The agent reports once more, unless it is silent. */
void rw_report(struct rw *w, int node);
/* The name of the node: "n003" is node 3. */
void rw_name(int node, char ret_name[16]);
/* The node of this name; fails if it is none of the fleet. */
int rw_index_of(const struct rw *w, const char *name);
/* Notes the first invariant that breaks, and the name of the object; rw_run fails then. */
void rw_break(struct rw *w, const char *what, const char *name);
/* The boot id of the node, as its agent and its kubelet report it. */
void rw_boot_id(const struct rw *w, int node, char ret_boot[40]);
/* The agent finds the fault of the node again. */
void rw_measure(struct rw *w, int node);
void rw_say_again(struct rw *w); /* each agent reports once more, as a heartbeat */
void rw_start(struct rw *w);
void rw_stop(struct rw *w); /* the operator's process ends without a clean stop */
void rw_run(struct rw *w, hf_time span);
/* Starts a new leader while the former one goes on acting; the next call ends the former one, and so does rw_teardown.
 * Does nothing while the operator is dead or about to die. */
void rw_change_leaders(struct rw *w);
/* The operator dies before or after one of its next six writes. */
void rw_kill_soon(struct rw *w);
/* One operator lives on, and no request is lost. */
void rw_calm(struct rw *w);
/* A random number below `below`. */
unsigned rw_pick(struct rw *w, unsigned below);
/* The name of a pod of the node, "p3"; node: below 12. */
const char *rw_pod_name(int node);
/* Creates a fleet of well nodes and a policy, and starts an operator, which has seen all of them at
 * the return. */
void rw_begin(struct rw *w, int nodes, const char *policy);
/* Fails unless rw_next for the node begins with `start`. */
void rw_expect_next(struct rw *w, int node, const char *start);
bool rw_tainted(struct rw *w, int node);
int rw_count_tainted(struct rw *w);
const struct hf_json *rw_get(struct rw *w, const struct hf_resource *resource, const char *ns,
			     const char *name);
const char *rw_status(struct rw *w, const char *a, const char *b);
/* Writes what the policy's status says of the node, as "answer next why"; "": the status does not
 * list the node. */
void rw_next(struct rw *w, int node, char text[256]);
/* The rung and the message of the Remediation; "": none. */
const char *rw_rung(struct rw *w, const char *act);
const char *rw_message(struct rw *w, const char *act);
/* Fails unless the message of the Remediation has `part`. */
void rw_expect_message(struct rw *w, const char *act, const char *part);
/* The pod is gone or is to leave. */
bool rw_is_evicted(struct rw *w, const char *ns, const char *pod);
bool rw_event(struct rw *w, const char *reason, const char *name);

#endif
