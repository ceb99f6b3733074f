/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_DISKS_H
#define HF_CLI_DISKS_H

#include "cli/cli.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/* Nodes that are looked at for one command; the pods of a large job stand on many. */
#define HF_CLI_DISKS_MAX 8

/*
 * Tell of the nodes whose disk is short (condition DiskPressure) among those where these pods run:
 * their logs may have holes and their programs fail for want of room, which nothing in the job
 * says.  docs may hold other objects too.  What cannot be read is passed over.
 */
void hf_cli_short_disks(struct hf_cli *cli, struct hf_doc *const *docs, size_t n,
			void (*fn)(void *arg, const char *node, const char *why), void *arg);

/* The Node's message; NULL: there is room. */
const char *hf_node_short_disk(struct hf_doc *node);

HF_END_DECLS

#endif
