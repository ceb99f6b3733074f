/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include <string.h>

/* The rules of `holdfast check` in the order of the output. */

struct rule {
	hf_check_rule decide;
	/* only on a cluster: a `holdfast up` has its kinds built in, and no operator of others */
	bool cluster;
	bool migrate; /* only for `check migrate` */
};

static const struct rule rules[] = {
	{hf_check_api_server, false, false},  {hf_check_clocks, false, false},
	{hf_check_rights, true, false},       {hf_check_operators, true, false},
	{hf_check_webhooks, true, false},     {hf_check_crds, true, false},
	{hf_check_policies, true, false},     {hf_check_kueue, true, false},
	{hf_check_gang, true, false},         {hf_check_agents, false, false},
	{hf_check_drivers, false, false},     {hf_check_images, false, false},
	{hf_check_remediations, true, false}, {hf_check_rollouts, true, false},
	{hf_check_owners, true, true},        {hf_check_jobs, true, true},
};

void hf_check_decide(const struct hf_check_facts *facts, struct hf_check_lines *lines)
{
	bool cluster = facts->version == NULL || strstr(facts->version, "+holdfast") == NULL;

	for (size_t i = 0; i < HF_ARRAY_LEN(rules); i++)
		if ((cluster || !rules[i].cluster) && (facts->migrate || !rules[i].migrate))
			rules[i].decide(facts, lines);
}
