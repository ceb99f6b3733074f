/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_REMEDY_ACTOR_H
#define HF_TESTS_SIM_REMEDY_ACTOR_H

#include "sim/remedy.h"

/*
 * The kubelet, the actor and the machine of each node, for Remediations. The actor's pod runs,
 * writes its intent as src/mend does, and acts. The result of the act is what the test has set for
 * the node.
 */

enum ra_end {
	RA_MENDS,
	/* the device works, but the agent keeps the fault until the operator acknowledges the
	 * reset */
	RA_KEEPS,
	RA_FAILS,    /* the tool fails with an exit code */
	RA_LIES,     /* the tool ends with 0, and the fault comes again */
	RA_NEVER,    /* the tool never ends; a reboot never ends either */
	RA_DIES,     /* the actor is killed right after it wrote its intent */
	RA_BUSY,     /* a process keeps the device open */
	RA_REFUSES,  /* the actor ends without writing a result */
	RA_NO_START, /* the kubelet does not start the pod */
	RA_ENDS
};

struct ra {
	struct rw *w;
	struct hf_timer *timer;
	struct hf_memstore_observer observer;
	enum ra_end reset[RW_NODES_MAX], reboot[RW_NODES_MAX];
	/* When the act on the node ends, the name of its Remediation, and whether it is a reboot.
	 * ends_at 0: no act. */
	hf_time ends_at[RW_NODES_MAX];
	char act[RW_NODES_MAX][254];
	bool reboots[RW_NODES_MAX];
	hf_time relapses_at[RW_NODES_MAX]; /* when the fault comes again; 0: never */
	enum ra_end end[RW_NODES_MAX];     /* how the act under way ends */
	bool keeps[RW_NODES_MAX];
	int at_once; /* the most acts that may be approved at the same time; -1: any number */
	int policy_at_once; /* the same of acts under a policy; 0: any number */
	unsigned acts, resets, mended, failed, cancelled, persons;
};

/* Creates the actors of the fleet; rw_teardown frees them. */
struct ra *ra_create(struct rw *w);
/* The same with an operator and policy "p", which permits one act at once. */
struct ra *ra_begin(struct rw *w, int nodes, const char *policy);
/* Sets the same results for the machines of all nodes. */
void ra_all(struct ra *a, enum ra_end reset, enum ra_end reboot);
/* From here on each act mends. A machine that never came back is switched on by a person. */
void ra_calm(struct ra *a);
/* Returns the greatest attempt of the node's Remediations, without INT32_MAX and above; 0: there is none. */
int ra_newest_attempt(struct ra *a, int node);
/* Returns the phase of the node's newest Remediation; "": it has none. */
const char *ra_phase(struct ra *a, int node);
/* The phase of a Remediation is an end of it. Accepts NULL. */
bool ra_is_final(const char *phase);
/* The Lease of acts on the node exists. */
bool ra_has_lease(struct ra *a, int node);
/* Return the number of Remediations that are at an end, and of all Remediations. */
int ra_count_final(struct ra *a);
int ra_count(struct ra *a);
/* A person creates a Remediation. `more` is JSON of further members of the spec. */
void ra_request(struct ra *a, int node, int attempt, const char *rung, const char *more);

#endif
