/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_REMEDY_ACTOR_H
#define HF_TESTS_SIM_REMEDY_ACTOR_H

#include "sim/remedy.h"

/*
 * The kubelet, the actor and the machine of each node of a fleet, for Remediations: the actor's pod runs,
 * writes its intent as src/mend does, acts, and the machine does what the test says.
 */

enum ra_end {
	RA_MENDS,
	RA_KEEPS,    /* the agent keeps the fault until the operator ends it */
	RA_FAILS,    /* the tool fails, with its exit code */
	RA_LIES,     /* the tool says 0, and the fault comes again */
	RA_NEVER,    /* the tool never ends; a reboot never comes back */
	RA_DIES,     /* the actor is killed right after its intent */
	RA_BUSY,     /* a process keeps the device */
	RA_REFUSES,  /* the actor ends without a word */
	RA_NO_START, /* the kubelet does not start the pod */
	RA_ENDS
};

struct ra {
	struct rw *w;
	struct hf_timer *timer;
	struct hf_memstore_observer observer;
	enum ra_end reset[RW_NODES_MAX], reboot[RW_NODES_MAX];
	/* 0: no act; else when it ends, and what it is. */
	hf_time ends_at[RW_NODES_MAX];
	char act[RW_NODES_MAX][254];
	bool reboots[RW_NODES_MAX];
	hf_time relapses_at[RW_NODES_MAX]; /* 0: not */
	bool keeps[RW_NODES_MAX];
	int at_once; /* most acts that may be approved at once; -1: any */
	unsigned acts, resets, mended, failed, cancelled, persons;
};

/* rw_teardown frees it. */
struct ra *ra_create(struct rw *w);
/* Every node's machine does the same. */
void ra_all(struct ra *a, enum ra_end reset, enum ra_end reboot);
/* The phase of the newest Remediation of the node; "" if there is none. */
const char *ra_phase(struct ra *a, int node);
/* How many Remediations are at an end, and how many exist. */
int ra_count_final(struct ra *a);
int ra_count(struct ra *a);
/* A person asks for an act. devices: reset the node's device. */
void ra_request(struct ra *a, int node, int attempt, const char *rung, const char *more);

#endif
