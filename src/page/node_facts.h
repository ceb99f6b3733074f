/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_NODE_FACTS_H
#define HF_PAGE_NODE_FACTS_H

#include "page/ranks.h"

HF_BEGIN_DECLS

/* What the page keeps of a Node, of a DeviceHealth and of a Remediation. Pure: documents in, facts out. */

struct hf_page_node {
	bool ready, unknown; /* condition Ready is True; is Unknown or absent */
	bool cordoned, paused;
	bool quarantined;   /* by Holdfast: its taint and its mark */
	hf_time since;      /* of the quarantine, else of the last change of condition Ready */
	char *policy, *cls; /* of the quarantine; NULL: none */
};

struct hf_page_health {
	char *state, *cls, *action; /* cls and action NULL: none */
	hf_time since;              /* time of the last change of a device's state; NONE: never */
	hf_time observed_at;        /* the node's clock */
	int32_t well, total;        /* devices, without the node itself */
	char *devices;              /* JSON: the list "devices" of the page of one node */
};

struct hf_page_mend {
	char *node, *rung, *phase, *message; /* message NULL: none */
	hf_time at;                          /* when the object was created */
};

struct hf_page_node *hf_page_node_read(struct hf_doc *doc);
void hf_page_node_free(void *node);
/* Reports of ranks go to `ranks`. */
struct hf_page_health *hf_page_health_read(struct hf_doc *doc, struct hf_page_ranks *ranks);
void hf_page_health_free(void *health);
struct hf_page_mend *hf_page_mend_read(struct hf_doc *doc);
void hf_page_mend_free(void *mend);

/* An agent without news writes every six minutes, so it has missed two writes by then. */
#define HF_PAGE_AGENT_SILENT (15 * HF_MINUTE)

struct hf_page_node_input {
	const char *name;
	const struct hf_page_node *node;     /* NULL: the Node is gone or cannot be seen */
	const struct hf_page_health *health; /* NULL: no agent */
	/* the answer about this node in the status of a HealthPolicy: {"answer", "next", "why"}; NULL: none */
	const struct hf_json *answer;
	hf_time now;
};
/* The word for the node's state; a constant text or of the health. */
const char *hf_page_node_state(const struct hf_page_node_input *input);
/* The JSON of a node in lists and in the stream, without its jobs. The caller owns it. */
struct hf_json *hf_page_node_json(const struct hf_page_node_input *input);

HF_END_DECLS

#endif
