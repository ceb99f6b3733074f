/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_NODES_H
#define HF_PAGE_NODES_H

#include "loop/loop.h"
#include "page/node_facts.h"
#include "page/query.h"
#include "page/ring.h"
#include "page/sessions.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * The table of nodes. The page watches Nodes, DeviceHealth, HealthPolicy and Remediation objects itself and keeps about
 * 2 KiB of a node: the operator keeps fifty bytes of a Node, and nothing of a device's evidence. A kind that the cluster does
 * not have is looked for again, as the caches of ctl do.
 */
struct hf_page_nodes;
struct hf_page_nodes_options {
	struct hf_loop *loop;
	struct hf_store *store;
	const struct hf_page_source *source;
	struct hf_page_ranks *ranks;
	struct hf_page_ring *ring;
	hf_time settle; /* 0: HF_PAGE_SETTLE of jobs.h */
	uint64_t seed;
	void (*changed)(void *arg); /* changes went into the ring */
	void *arg;
};
struct hf_page_nodes *hf_page_nodes_create(const struct hf_page_nodes_options *options);
struct hf_page_nodes *hf_page_nodes_destroy(
	struct hf_page_nodes *nodes); /* NULL is fine; returns NULL */

/* The JSON of a page of nodes, with budgets and breaker. The jobs of a node are those that the session may see. */
struct hf_json *hf_page_nodes_list(struct hf_page_nodes *nodes,
				   const struct hf_page_session *session,
				   const struct hf_page_query *query);
/* The JSON of one node; NULL: unknown. */
struct hf_json *hf_page_nodes_one(struct hf_page_nodes *nodes,
				  const struct hf_page_session *session, const char *name);
/* How many nodes are in which state. */
struct hf_json *hf_page_nodes_count(struct hf_page_nodes *nodes, int64_t *ret_total);
/* Devices that are not healthy, of all nodes. */
int64_t hf_page_nodes_lost_devices(const struct hf_page_nodes *nodes);

HF_END_DECLS

#endif
