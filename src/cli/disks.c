/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Finds nodes with little free disk space (condition DiskPressure) among the nodes where pods of
 * a job run. */
#include "cli/disks.h"

#include "base/str.h"
#include "cli/request.h"
#include "store/resource.h"

const char *hf_node_short_disk(struct hf_doc *node)
{
	const struct hf_json *list = hf_json_path(hf_doc_json(node), "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);
		if (hf_streq(hf_json_path_str(item, "type", NULL), "DiskPressure") &&
		    hf_streq(hf_json_path_str(item, "status", NULL), "True"))
			return hf_str_or(hf_json_path_str(item, "message", NULL),
					 "the node's disk is nearly full");
	}
	return NULL;
}

/* Returns the name of the node on which the pod runs or will run. NULL: the pod has ended, or has
 * no node yet. */
static const char *node_of(struct hf_doc *doc)
{
	const char *phase = hf_json_path_str(hf_doc_json(doc), "status", "phase", NULL);

	if (hf_streq(phase, "Succeeded") || hf_streq(phase, "Failed"))
		return NULL;
	return hf_json_path_str(hf_doc_json(doc), "spec", "nodeName", NULL);
}

void hf_cli_short_disks(struct hf_cli *cli, struct hf_doc *const *docs, size_t n,
			void (*fn)(void *arg, const char *node, const char *why), void *arg)
{
	const char *names[HF_CLI_DISKS_MAX];
	size_t len = 0;

	for (size_t i = 0; i < n && len < HF_CLI_DISKS_MAX; i++) {
		const char *name = node_of(docs[i]);
		bool known = name == NULL;
		for (size_t k = 0; k < len && !known; k++)
			known = hf_streq(names[k], name);
		if (!known)
			names[len++] = name;
	}
	for (size_t i = 0; i < len; i++) {
		struct hf_request request = {
			.verb = HF_VERB_GET, .resource = &hf_nodes, .name = names[i]};
		HF_AUTO_CLI_REPLY reply = {.object = NULL};
		const char *why = hf_cli_request(cli, &request, &reply, NULL) == 0
					  ? hf_node_short_disk(reply.object)
					  : NULL;
		if (why != NULL)
			fn(arg, names[i], why);
	}
}
