/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"

/*
 * What an operator may not know after a list from the past. The list has the state before some
 * changes; the watch brings these changes later. The operator has to know all that was stored in
 * the job before those changes, and after them.
 */

/* For this time after a list from the past an operator may still not know the present: its watch is
 * behind or has lost an event, and the process is stopped besides. */
#define PAST_LASTS (10 * HF_MINUTE)

static struct sim_past *past_of(struct sim *sim, const struct hf_resource *resource)
{
	struct sim_past *past = sim->checks->past;
	size_t i = 0;

	while (past[i].resource != NULL && past[i].resource != resource) {
		i++;
		hf_assert(i < SIM_PASTS_MAX);
	}
	past[i].resource = resource;
	return &past[i];
}

void sim_past_changed(struct sim *sim, const struct hf_resource *resource)
{
	past_of(sim, resource)->changes++;
}

static bool is_over(const struct sim *sim, const struct sim_past *past)
{
	return past->at == 0 || sim_now(sim) - past->at > PAST_LASTS;
}

void sim_past_told(struct sim *sim, const struct hf_resource *resource, uint64_t stale)
{
	struct sim_past *past;
	uint64_t from;

	if (!hf_resource_is_job(resource) && resource != &hf_pods)
		return;
	past = past_of(sim, resource);
	from = past->changes > stale ? past->changes - stale : 0;
	past->from = is_over(sim, past) || from < past->from ? from : past->from;
	past->to = past->changes;
	/* The value 0 means that there was no list from the past. */
	past->at = sim_now(sim) > 0 ? sim_now(sim) : 1;
}

static bool may_not_know(struct sim *sim, const struct hf_resource *resource, uint64_t change)
{
	const struct sim_past *past = past_of(sim, resource);

	return !is_over(sim, past) && change > past->from && change <= past->to;
}

bool sim_may_not_know(struct sim *sim, const struct sim_job_truth *job, uint64_t change)
{
	return may_not_know(sim, sim_kind_of(sim, job->name)->resource, change);
}

void sim_past_made(struct sim *sim, struct sim_pod_truth *pod)
{
	pod->made_in = past_of(sim, &hf_pods)->changes;
}

bool sim_may_not_know_of(struct sim *sim, const struct sim_pod_truth *pod)
{
	return may_not_know(sim, &hf_pods, pod->made_in);
}

static void note_succeeded(struct sim_job_truth *job, int role, const char *had, const char *has,
			   uint64_t change)
{
	for (int i = 0; !hf_streq(had, has) && i < SIM_PODS_MAX; i++)
		if (sim_ranges_have(has, i) && !sim_ranges_have(had, i))
			job->succeeded_in[role][i] = change;
}

/* Notes the ranks that the ledger lists as trained: their programs have succeeded, but their pods
 * have not ended. */
static void note_trained(struct sim_job_truth *job, int role, const struct hf_json *status)
{
	const char *trained = sim_ledger_text(status, sim_role_names[role], "trained");

	for (int i = 0; trained[0] != '\0' && i < SIM_PODS_MAX; i++)
		if (sim_ranges_have(trained, i))
			job->trained_in[role][i] = sim_ledger_int(status, NULL, "generation");
}

void sim_past_note(struct sim *sim, struct sim_job_truth *job, const struct hf_json *before,
		   const struct hf_json *after)
{
	uint64_t change = past_of(sim, sim_kind_of(sim, job->name)->resource)->changes;

	if (sim_terminal_of(before) == NULL && sim_terminal_of(after) != NULL)
		job->terminal_in = change;
	if (!sim_condition_is(before, "Suspended") && sim_condition_is(after, "Suspended"))
		job->suspended_in = change;
	for (int role = 0; role < SIM_ROLES; role++) {
		note_succeeded(job, role,
			       sim_ledger_text(before, sim_role_names[role], "succeeded"),
			       sim_ledger_text(after, sim_role_names[role], "succeeded"), change);
		note_trained(job, role, after);
	}
}
