/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_CRASHES_H
#define HF_TESTS_SIM_CRASHES_H

#include "sim/sim.h"

/*
 * Small worlds without chance, in which the operator dies once: at every request in turn, before
 * it is sent, after it was done and before the reply is in, and after the reply.
 */

/* How a process ends, by the name of its pod and which of its starts it is; all others run for
 * SIM_SCRIPT_RUN and succeed. */
struct sim_script_end {
	const char *pod;
	int start; /* from 0 */
	hf_time after;
	int code;
	enum sim_trouble kind; /* EXITED, OOM_KILLED, PREEMPTED, EVICTED_NODE, OWN_LIMIT */
};
struct sim_script_deed {
	hf_time at;
	const char *patch; /* of the job; "": it is made again; NULL: it is deleted, or: */
	const char *off;   /* the machine of this pod loses power for ever, or: */
	const char
		*sick; /* the device of this pod's machine fails, and stays so for minutes, or: */
	const char *hangs; /* this one hangs, and its job stands still, or: */
	const char *mute;  /* the kubelet of this pod's machine is silent for four minutes, or: */
	const char *cut;   /* this pod's machine is cut off for 80 s, or: */
	const char
		*zone; /* the zone of this pod's machine is cut off, and heals node by node, or: */
	const char *all; /* likewise, all machines, that of this pod among them */
};
#define SIM_SCRIPT_RUN (40 * HF_SECOND)
#define SIM_SCRIPT_PARTS_MAX 4
struct sim_script {
	const char *name, *job;
	struct sim_script_end ends[SIM_SCRIPT_PARTS_MAX];
	struct sim_script_deed deeds[SIM_SCRIPT_PARTS_MAX];
	const char *result; /* what comes of it, wherever the operator dies */
	const char *other;  /* as good, where the operator comes too late for that; or NULL */
	int zones;          /* 0: by chance */
	size_t nodes;       /* likewise */
	bool mpi;           /* an MPIJob; else a PyTorchJob */
	bool devices;       /* there are agents */
	bool trains;        /* and ranks tell them of their steps */
	bool fences;        /* and end for want of contact, where the job asks for it */
};

enum sim_crash { SIM_CRASH_NEVER, SIM_CRASH_UNSENT, SIM_CRASH_UNANSWERED, SIM_CRASH_ANSWERED };

void sim_script_begin(struct sim *sim);
void sim_script_end(struct sim *sim);
/* How this start of this pod ends; NULL: well. */
const struct sim_script_end *sim_script_of(struct sim *sim, const char *pod, int start);
/* The world's end, as "Failed 2/0": charged to the application and the infrastructure, and to
 * devices where that is any. */
void sim_script_result(struct sim *sim, char result[256]);
/* The operator is about to send this request. */
void sim_script_request(struct sim_life *life, struct hf_fault *fault);

/* Every scenario (or the one of that name), every point; 0, 1, or 2: there is none of that name.
 * each: 1 takes every point, n every nth. */
int sim_crash_points(const char *only, unsigned each, bool narrow_schema, bool verbose);

#endif
