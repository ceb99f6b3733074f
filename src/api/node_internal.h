/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_NODE_INTERNAL_H
#define HF_API_NODE_INTERNAL_H

#include "json/fields.h"

/* The field tables of a Node's spec and status, used by node.c and quarantine.c. Each of these
 * files has its own table for metadata. */

struct hf_node_taint_read {
	uint64_t present;
	const char *key, *value, *effect;
	hf_time added_at; /* valid if HF_NODE_TAINT_ADDED is present */
};
enum { HF_NODE_TAINT_KEY, HF_NODE_TAINT_VALUE, HF_NODE_TAINT_EFFECT, HF_NODE_TAINT_ADDED };
struct hf_node_spec_read {
	uint64_t present;
	bool unschedulable;
	HF_LIST(struct hf_node_taint_read) taints;
};
struct hf_node_condition_read {
	uint64_t present;
	const char *type, *status;
	hf_time changed_at;
};
struct hf_node_info_read {
	uint64_t present;
	const char *boot_id;
};
struct hf_node_status_read {
	uint64_t present;
	HF_LIST(struct hf_node_condition_read) conditions;
	struct hf_node_info_read info;
};

extern const struct hf_field_table hf_node_spec_table, hf_node_status_table;

enum { HF_NODE_CONDITION_TYPE, HF_NODE_CONDITION_STATUS, HF_NODE_CONDITION_CHANGED };

/* Returns condition Ready of the status, or NULL if the status has none. */
const struct hf_node_condition_read *hf_node_ready_condition(
	const struct hf_node_status_read *status);
/* Returns the status of condition Ready ("True", "False", "Unknown"), or NULL if there is none. */
const char *hf_node_ready_status(const struct hf_node_status_read *status);

#endif
