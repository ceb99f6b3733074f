/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_REMEDY_SWARM_H
#define HF_TESTS_SIM_REMEDY_SWARM_H

#include "sim/remedy_actor.h"

/*
 * The state of remedy_swarm, and its wide world: policies that overlap and change, nodes with several GPUs, people who
 * cordon, pause, lock and delete nodes, agents that fall silent, evictions that are refused, and requests with odd
 * specs.
 */

#define RS_NODES_MAX 12

struct rs {
	struct rw *w;
	struct ra *a;
	bool held[RS_NODES_MAX]; /* annotation holdfast.dev/hold */
	const char *pods[RS_NODES_MAX];
	unsigned troubles;
	/* Of the wide world alone. */
	bool wide;
	struct hf_memstore_observer observer;
	bool gone[RS_NODES_MAX]; /* deleted for good */
	hf_time changed_at; /* when a person last changed what the invariants of a policy count; 0: never */
	unsigned requests; /* requests with odd specs so far */
	struct wild *wild; /* NULL: another world */
	bool clocks_step;  /* those of the control plane; of the wild world alone */
};

struct rs_list {
	struct hf_doc *docs[512];
	size_t len;
};

/* --- remedy_swarm_wide.c --- */
unsigned rs_pick(struct rs *s, unsigned below);
/* Lists the Remediations; rs_drop_list frees the list. */
void rs_list_acts(struct rs *s, struct rs_list *list);
void rs_drop_list(struct rs_list *list);
const char *rs_phase_of(struct hf_doc *act);
/* Returns a text of the spec; "": it is missing. act may be NULL. */
const char *rs_text_of(const struct hf_json *act, const char *key);
bool rs_is_final(struct hf_doc *act);
/* The Node object exists. */
bool rs_has_node(struct rs *s, int node);
/* An act on the node is approved and has not begun. */
bool rs_is_approved(struct rs *s, int node);
/* Prints the Node, its DeviceHealth, its acts and all open acts, so that a failure can be explained. */
void rs_print_node(struct rs *s, const struct rs_list *list, int node);
/* Gives the nodes their labels. Call this after rw_begin. */
void rs_widen(struct rs *s);
void rs_disturb_widely(struct rs *s);
/* People end all that they hold back, and only the policy of all nodes is left, with this spec. */
void rs_calm_down_widely(struct rs *s, const char *policy);

/* --- remedy_swarm_rules.c --- */
/* From here on the limits of each policy are checked at each write, until rs_unwatch. */
void rs_watch(struct rs *s);
void rs_unwatch(struct rs *s);
/* Fails if something is left on a node that neither an open act nor a sick device explains, or an actor without an open
 * act. */
void rs_expect_clean(struct rs *s, unsigned seed, const struct rs_list *list);

#endif
