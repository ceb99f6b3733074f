/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_CRASHES_H
#define HF_TESTS_SIM_CRASHES_H

#include "sim/sim.h"

/*
 * Scenarios without chance, in which the operator dies once. A scenario runs once for each request
 * and each of three moments: before the request is sent, after it was done and before the reply
 * arrives, and after the reply.
 */

/* How the process of a pod ends at its n-th start. Every start without an entry runs for
 * SIM_SCRIPT_RUN and succeeds. */
struct sim_script_end {
	const char *pod;
	int start; /* from 0 */
	hf_time after;
	int code;
	enum sim_trouble kind; /* EXITED, OOM_KILLED, PREEMPTED, EVICTED_NODE, OWN_LIMIT */
};
struct sim_script_deed {
	hf_time at;
	/* What happens at this time: one of the members below. patch is a merge patch of the job;
	 * "": the job is created again; NULL: the job is deleted, unless another member is set. */
	const char *patch;
	const char *off;   /* the machine of this pod loses power for ever */
	const char *sick;  /* the device of this pod's machine fails, for some minutes */
	const char *hangs; /* this pod hangs, so its whole job stands still */
	const char *mute;  /* the kubelet of this pod's machine is silent for four minutes */
	const char *cut;   /* this pod's machine is cut off for 80 s */
	/* the zone of this pod's machine is cut off, and its nodes come back one by one */
	const char *zone;
	const char *all; /* all machines are cut off, and come back one by one */
};
#define SIM_SCRIPT_RUN (40 * HF_SECOND)
#define SIM_SCRIPT_PARTS_MAX 4
struct sim_script {
	const char *name, *job;
	struct sim_script_end ends[SIM_SCRIPT_PARTS_MAX];
	struct sim_script_deed deeds[SIM_SCRIPT_PARTS_MAX];
	const char *result; /* the result of the scenario, at whatever request the operator dies */
	/* a second allowed result, if the operator's death makes it too late for the first; or
	 * NULL */
	const char *other;
	int zones;    /* number of zones; 0: by chance */
	size_t nodes; /* number of nodes; 0: by chance */
	bool mpi;     /* an MPIJob; else a PyTorchJob */
	bool devices; /* nodes have agents that report devices */
	bool trains;  /* nodes have agents, and ranks report their steps to them */
	bool fences;  /* ranks fence themselves, if the job asks for it */
};

enum sim_crash { SIM_CRASH_NEVER, SIM_CRASH_UNSENT, SIM_CRASH_UNANSWERED, SIM_CRASH_ANSWERED };

void sim_script_begin(struct sim *sim);
void sim_script_end(struct sim *sim);
/* Returns how this start of this pod ends; NULL: the process succeeds. */
const struct sim_script_end *sim_script_of(struct sim *sim, const char *pod, int start);
/* Writes the result of a run, such as "Failed 2/0": the final condition and the charges to
 * application and infrastructure. A third number, the charges to devices, follows if it is not
 * 0. */
void sim_script_result(struct sim *sim, char result[256]);
/* Called before the operator sends a request. */
void sim_script_request(struct sim_life *life, struct hf_fault *fault);

/* Runs every scenario, or the one named `only`, with a death at every point (each 1) or at every
 * n-th point (each n). Returns 0 if all held, 1 if one failed, 2 if no scenario has this name. */
int sim_crash_points(const char *only, unsigned each, bool narrow_schema, bool verbose);

#endif
