/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_NODE_INTERNAL_H
#define HF_API_NODE_INTERNAL_H

#include "json/fields.h"

/* What the readers of a Node read alike; each has metadata of its own. */

struct hf_node_taint_read {
	uint64_t present;
	const char *key, *value, *effect;
	hf_time added_at; /* where HF_NODE_TAINT_ADDED is present */
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

/* Condition Ready; NULL: there is none. */
const struct hf_node_condition_read *hf_node_ready_condition(
	const struct hf_node_status_read *status);
/* Its status; NULL where there is none. */
const char *hf_node_ready_status(const struct hf_node_status_read *status);

#endif
