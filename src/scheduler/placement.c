/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Checks whether the spec of a pod alone rules out a node for ever. Input: the spec and the node's document.
 * Output: the fields, each with a sentence for the author of the manifest. */
#include "scheduler/fit_internal.h"
#include "scheduler/scheduler.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

#define TEXT_MAX 512

struct check {
	const struct hf_json *spec, *node;
	const char *name; /* of the node */
	hf_placement_fn found;
	void *arg;
};

static HF_PRINTF(3, 4) void report(const struct check *c, const char *field, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->found(c->arg, field, text);
}

static void check_names(const struct check *c)
{
	const char *scheduler = hf_fit_other_scheduler(c->spec);
	const char *node = hf_json_path_str(c->spec, "nodeName", NULL);

	if (scheduler)
		report(c, "schedulerName",
		       "the pods wait for the scheduler '%.100s', and only " HF_SCHEDULER_NAME
		       " runs here; remove the field",
		       scheduler);
	if (!hf_str_is_empty(node) && !hf_streq(node, c->name))
		report(c, "nodeName",
		       "the pods run on node '%.100s' only, and this machine is node '%.100s'; remove "
		       "the field",
		       node, c->name);
	if (hf_json_len(hf_json_get(c->spec, "schedulingGates")) > 0)
		report(c, "schedulingGates",
		       "the pods wait until the gate '%.100s' is removed, and no program here removes "
		       "it; remove the field",
		       hf_str_or(hf_json_path_str(
					 hf_json_item(hf_json_get(c->spec, "schedulingGates"), 0),
					 "name", NULL),
				 ""));
}

static void check_labels(const struct check *c)
{
	const char *key = hf_fit_missing_label(c->spec, c->node);

	if (key)
		report(c, "nodeSelector",
		       "the pods run only on nodes with the label '%.100s=%.100s', which node '%.100s', "
		       "this machine, does not have; remove the label",
		       key,
		       hf_str_or(hf_json_str(hf_json_get(hf_json_get(c->spec, "nodeSelector"), key),
					     NULL),
				 ""),
		       c->name);
	if (!hf_fit_node_affinity(c->spec, c->node))
		report(c, "affinity.nodeAffinity",
		       "no term of " HF_FIT_REQUIRED
		       " matches node '%.100s', this machine; remove the "
		       "terms",
		       c->name);
}

static void check_pod_affinity(const struct check *c)
{
	const char *name = hf_fit_unsupported(c->spec);
	HF_AUTOFREE char *field = name ? hf_xasprintf("affinity.%s", name) : NULL;

	if (name)
		report(c, field,
		       "the scheduler of this machine's one node does not support " HF_FIT_REQUIRED
		       ", so the pods would wait for ever; remove it");
}

void hf_placement_check(const struct hf_json *spec, const struct hf_json *node,
			hf_placement_fn found, void *arg)
{
	const struct check check = {
		.spec = spec,
		.node = node,
		.name = hf_str_or(hf_json_path_str(node, "metadata", "name", NULL), ""),
		.found = found,
		.arg = arg};

	check_names(&check);
	check_labels(&check);
	check_pod_affinity(&check);
}
