/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tells users that no operator leads, so that nothing decides on their jobs. Input: the Lease of leader election
 * and the jobs. */
#include "cli/leader.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/request.h"
#include "core/model/names.h"
#include "store/resource.h"

#include <stdlib.h>

/* A leader renews its Lease every two seconds. A minute allows for an API server that is busy, for an operator that
 * starts again, and for clocks that differ. */
#define LATE HF_MINUTE

void hf_leader_read(const struct hf_json *lease, hf_time now, struct hf_leader *ret_leader)
{
	const struct hf_json *spec = hf_json_get(lease, "spec");

	*ret_leader = (struct hf_leader){
		.ns = hf_str_or(hf_json_path_str(lease, "metadata", "namespace", NULL), ""),
		.holder = hf_str_or(hf_json_path_str(spec, "holderIdentity", NULL), ""),
		.renewed_at = hf_facts_time(hf_json_path_str(spec, "renewTime", NULL)),
	};
	ret_leader->leads = *ret_leader->holder != '\0' && ret_leader->renewed_at != HF_TIME_NONE &&
			    ret_leader->renewed_at >= now - LATE;
}

void hf_no_leader_release(struct hf_no_leader *missing)
{
	free(missing->found);
	free(missing->action);
	*missing = (struct hf_no_leader){.found = NULL};
}

/* An operator would decide on the job: it has not ended, and no other controller manages it. */
static bool is_active(const struct hf_json *job)
{
	const char *manager = hf_json_path_str(job, "spec", "runPolicy", "managedBy", NULL);

	return !hf_condition_is_true(job, "Succeeded") && !hf_condition_is_true(job, "Failed") &&
	       (hf_str_is_empty(manager) || hf_streq(manager, HF_MANAGED_BY_US));
}

/* The job has had no status for longer than an operator needs. */
static bool is_untouched(const struct hf_json *job, hf_time now)
{
	hf_time made = hf_facts_time(hf_json_path_str(job, "metadata", "creationTimestamp", NULL));

	return hf_json_len(hf_json_path(job, "status", "conditions", NULL)) == 0 &&
	       made != HF_TIME_NONE && made < now - LATE;
}

/* Operators of several namespaces have a Lease each: finds the Lease with the last renewal. False: there is no Lease. */
static bool find_newest(const struct hf_cli_reply *leases, hf_time now,
			struct hf_leader *ret_newest)
{
	struct hf_leader leader;

	for (size_t i = 0; i < leases->n_items; i++) {
		hf_leader_read(hf_doc_json(leases->items[i]), now, &leader);
		if (i == 0 || leader.renewed_at > ret_newest->renewed_at)
			*ret_newest = leader;
	}
	return leases->n_items > 0;
}

static void tell_stale(const struct hf_leader *last, hf_time now, struct hf_no_leader *missing)
{
	char at[HF_TIME_TEXT_MAX], span[HF_TIME_TEXT_MAX];
	HF_AUTOFREE char *when = NULL;

	if (last->renewed_at == HF_TIME_NONE)
		when = hf_xstrdup("was never renewed");
	else {
		hf_span_format(now - last->renewed_at, span);
		when = *last->holder != '\0'
			       ? hf_xasprintf("was last renewed by '%s' at %s, %s ago",
					      last->holder,
					      hf_facts_time_text(last->renewed_at, at), span)
			       : hf_xasprintf(
					 "was given up at %s, %s ago, and nothing has taken it",
					 hf_facts_time_text(last->renewed_at, at), span);
	}
	missing->found =
		hf_xasprintf("no operator leads: Lease %s/%s %s", last->ns, HF_LEADER_LEASE, when);
	missing->action =
		hf_xasprintf("nothing is decided until an operator leads: look at its pods with "
			     "'kubectl -n %s get pods', and run 'holdfast check'",
			     last->ns);
}

static void tell_none(const char *job, struct hf_no_leader *missing)
{
	missing->found = hf_xasprintf(
		"no operator leads: there is no Lease %s, and nothing has written a status "
		"for job '%s'",
		HF_LEADER_LEASE, job);
	missing->action =
		hf_xstrdup("nothing is decided until an operator runs: run 'holdfast check', and "
			   "install one (docs/how-to/install-operator.md)");
}

void hf_no_leader_find(struct hf_cli *cli, struct hf_doc *const *jobs, size_t n,
		       struct hf_no_leader *ret_missing)
{
	const struct hf_request request = {.verb = HF_VERB_LIST,
					   .resource = &hf_leases,
					   .field_selector = "metadata.name=" HF_LEADER_LEASE};
	const char *untouched = NULL;
	HF_AUTO_CLI_REPLY leases = {.object = NULL};
	struct hf_leader newest;
	bool active = false;
	hf_time now;

	*ret_missing = (struct hf_no_leader){.found = NULL};
	for (size_t i = 0; i < n && !active; i++)
		active = is_active(hf_doc_json(jobs[i]));
	/* A kept run is over or has its operator in `run`. */
	if (!active || cli->kept != NULL || hf_cli_request(cli, &request, &leases, NULL) != 0)
		return;
	now = leases.server_time != HF_TIME_NONE ? leases.server_time : hf_loop_wall(cli->loop);
	if (find_newest(&leases, now, &newest)) {
		if (!newest.leads)
			tell_stale(&newest, now, ret_missing);
		return;
	}
	for (size_t i = 0; i < n && untouched == NULL; i++)
		if (is_active(hf_doc_json(jobs[i])) && is_untouched(hf_doc_json(jobs[i]), now))
			untouched = hf_doc_name(jobs[i]);
	if (untouched != NULL)
		tell_none(untouched, ret_missing);
}
