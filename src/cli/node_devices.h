/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_NODE_DEVICES_H
#define HF_CLI_NODE_DEVICES_H

#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "json/json.h"

HF_BEGIN_DECLS

/* What DeviceHealth objects tell of nodes, for `get nodes -o wide` and `check`. */

/* A report older than this is old: the agent is silent. It is the operator's limit. */
#define HF_CLI_AGENT_SILENT (15 * HF_MINUTE)

/*
 * Add the versions of a node's GPU driver: "570.86.15", or with the parts that differ from it:
 * "570.86.15, module 570.124.06". Returns true if parts differ. Adds nothing if no version is known.
 * health: a DeviceHealth; NULL: the node has none.
 */
bool hf_driver_versions(const struct hf_json *health, struct hf_strbuf *text);

/* The DeviceHealth objects of all nodes, and the restarts of their device plugins, read once. */
struct hf_node_devices;
/* Reads the objects; if they cannot be read, no node has one, or no restarts. Never NULL. */
struct hf_node_devices *hf_node_devices_read(struct hf_cli *cli);
struct hf_node_devices *hf_node_devices_destroy(struct hf_node_devices *devices); /* NULL is fine */

#define HF_NODE_DEVICES_COLUMNS 3
/* Adds the cells of a node: state of its devices, versions of the driver, state of the device plugin. The
 * restarts are those of the pods that the plugins have now, as in kubectl's table. */
void hf_node_devices_cells(const struct hf_node_devices *devices, const char *node, hf_time now,
			   struct hf_table *table);

HF_END_DECLS

#endif
