/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_DISKS_H
#define HF_CLI_DISKS_H

#include "cli/cli.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/* Limit of the nodes that one command reads, because the pods of a large job run on many nodes. */
#define HF_CLI_DISKS_MAX 8

/*
 * Call fn for each node with little disk space (condition DiskPressure) on which one of the pods
 * runs.  On such a node logs may have holes and programs may fail, and the job's own status does not
 * say so.  docs may hold other objects than pods.  Nodes that cannot be read are left out.
 */
void hf_cli_short_disks(struct hf_cli *cli, struct hf_doc *const *docs, size_t n,
			void (*fn)(void *arg, const char *node, const char *why), void *arg);

/* Return the message of the node's condition DiskPressure; NULL: the condition is not True. */
const char *hf_node_short_disk(struct hf_doc *node);

HF_END_DECLS

#endif
