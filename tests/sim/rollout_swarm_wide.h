/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_ROLLOUT_SWARM_WIDE_H
#define HF_TESTS_SIM_ROLLOUT_SWARM_WIDE_H

#include "sim/rollout_driver.h"

/*
 * What the wide world of rollout_swarm adds: windows, a narrow budget of the HealthPolicy, a job with a rank on each node, more
 * than one pod on a node, labels that nodes had before, and a second rollout of the same label.
 *
 * It checks at each change: a node is cordoned only in a window and within the budget, no pod without a controller is moved, and no
 * pod is moved beside one; a label changes only on a cordoned and marked node; a wave begins only after its soak. At the end: the
 * numbers of the status are those of its entries, nothing is left of a change that was taken back, and a rollback has broken no
 * more well nodes than maxFailures and the nodes in work.
 */

/* The wild world adds what happens to nodes without the rollouts: the kubelet evicts pods of the driver, people give the label of
 * the rollouts a value of their own, and nodes leave the selection and come back. In a quarter of the seeds, the last wave of rollout
 * "r" is a part of the nodes. Its numbers are drawn apart, so that the rest of a seed goes on as in the wide world. */
struct rsw {
	struct rw *w;
	struct rd *d;
	struct hf_memstore_observer observer;
	int budget;                          /* most nodes out of use; 0: any number */
	int windows[3][2];                   /* minutes of the day; from 0 to 0: none */
	bool windowed, has_rival, strangers; /* strangers write into the status */
	bool begun;                          /* the rollouts exist */
	bool wild;
	bool pilot;        /* rollout "r" ends before it has changed all nodes */
	struct hf_rng rng; /* of the wild world */
	bool two_leaders;
	hf_time soak;                  /* of rollout "r" */
	char label[RW_NODES_MAX][8];   /* of each node before any rollout; "": none */
	const char *pod[RW_NODES_MAX]; /* a second pod of the node; NULL: none */
	bool bare[RW_NODES_MAX];       /* that pod has no controller */
	bool renewed[RW_NODES_MAX];    /* the Node was made again */
};

void rsw_begin(struct rsw *s, struct rw *w, struct rd *d);
/* Draws what the spec of a rollout has more; adds it to the text of `size` bytes. */
void rsw_add_windows(struct rsw *s, char *text, size_t size);
/* In the wild world, adds the selection of nodes. */
void rsw_add_selector(struct rsw *s, char *text, size_t size);
/* The budget of the HealthPolicy. */
void rsw_print_budget(const struct rsw *s, char *text, size_t size);
/* Once the rollouts exist. gentle: no version of the driver makes steps much slower. */
void rsw_begin_jobs(struct rsw *s, bool gentle);
void rsw_disturb(struct rsw *s, int node);
/* Of the wild world. No rollout changes the node at this time. Returns true if the node may have the newest version now without
 * rollout "r". */
bool rsw_disturb_wildly(struct rsw *s, int node);
void rsw_calm(struct rsw *s);
void rsw_expect(struct rsw *s, unsigned seed);
void rsw_end(struct rsw *s);

#endif
