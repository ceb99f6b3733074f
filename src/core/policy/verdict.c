/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/state/brain_internal.h"

#include "base/str.h"

/*
 * A verdict that ends the job is written down when it is reached and carried out when it has
 * settled: it survives a crash of this program and the pods it was read from.
 *
 * Where the CRD has no place for the ledger it is written before the status.  A verdict that was
 * carried out is charged by then, so it stands, whatever happens until the status says it too.
 */

bool hf_verdict_pending(const struct hf_brain *b)
{
	return b->ledger.verdict.reason != NULL && !hf_cond_finished(b);
}

void hf_verdict_set(struct hf_brain *b, const char *reason, const char *message)
{
	hf_assert(reason && message);
	hf_assert(!hf_cond_finished(b));
	b->ledger.verdict.reason = reason;
	b->ledger.verdict.message = message;
	b->ledger.verdict.at = b->now;
}

/* The words of batch/v1, which people grep for. */
static const char *rule_message(struct hf_brain *b, const struct hf_end *end)
{
	const struct hf_rule *rule = &b->view->run_policy.rules[end->rule];
	const char *ns = hf_str_or(b->view->ns, "");

	if (rule->has_exit_codes)
		return hf_arena_printf(b->arena,
				       "Container %s for pod %s/%s failed with exit code %d "
				       "matching FailJob rule at index %d",
				       end->matched, ns, end->pod->name, end->matched_code,
				       end->rule);
	if (rule->has_pod_conditions)
		return hf_arena_printf(
			b->arena, "Pod %s/%s has condition %s matching FailJob rule at index %d",
			ns, end->pod->name, end->matched, end->rule);
	if (rule->has_device)
		return hf_arena_printf(
			b->arena, "Pod %s/%s has device %s (%s) matching FailJob rule at index %d",
			ns, end->pod->name, end->device->id, end->device->cls, end->rule);
	return hf_arena_printf(b->arena,
			       "Pod %s/%s has reason %s matching FailJob rule at index %d", ns,
			       end->pod->name, end->matched, end->rule);
}

/* Upstream has one text for each way in which a replica fails a job. */
static const char *upstream_message(struct hf_brain *b, const struct hf_end *end)
{
	const struct hf_framework *framework = b->job.framework;
	const char *type = b->crews[end->role].type;
	int32_t failed = b->failed_ends[end->role];

	if (hf_streq(end->verdict, HF_VERDICT_RULE))
		return rule_message(b, end);
	if (hf_streq(end->verdict, HF_VERDICT_DEVICE))
		return hf_arena_printf(b->arena,
				       "%s %s is failed because device %s of pod %s failed (%s).",
				       framework->kind, b->view->name, end->device->id,
				       end->pod->name, end->device->cls);
	if (hf_streq(end->verdict, HF_VERDICT_EXIT_CODE))
		return hf_arena_printf(b->arena,
				       "job \"%s\" is failing because \"%s\" replica(s) failed.",
				       b->view->name, type);
	if (framework->failed_message)
		return framework->failed_message(&b->job, end->role, failed, b->arena);
	return hf_arena_printf(b->arena, "%s %s is failed because %d %s replica(s) failed.",
			       framework->kind, b->view->name, failed, type);
}

static const char *end_message(struct hf_brain *b, const struct hf_end *end)
{
	return hf_arena_printf(b->arena, "%s%s", upstream_message(b, end),
			       hf_never_started_text(b));
}

void hf_verdict_of_end(struct hf_brain *b, const struct hf_end *end)
{
	hf_assert(end->fate == HF_FATE_FAIL && end->verdict);
	hf_assert(end->pod);
	if (hf_incident_covers(b, end))
		hf_incident_record(b, end);
	else
		hf_incident_open(b, end, end->cls, HF_BUDGET_PENDING);
	hf_end_event(b, end);
	hf_verdict_set(b, end->verdict, end_message(b, end));
}

/* The cause has another budget, and that is used up. */
static void fail_by_budget(struct hf_brain *b, enum hf_budget budget)
{
	/* Once: its time is that of the end, and the settling counts from there. */
	if (!hf_streq(b->ledger.verdict.reason, hf_budget_verdict(budget)))
		hf_verdict_set(b, hf_budget_verdict(budget), hf_budget_message(b, budget));
}

/* The job is not to fail after all: the end, of which its incident tells, is its cause. */
static void withdraw(struct hf_brain *b, const struct hf_end *end, enum hf_budget budget)
{
	struct hf_ledger *ledger = &b->ledger;

	ledger->verdict = (struct hf_verdict){.at = HF_TIME_NONE};
	b->gave_way = true;
	/* The end belonged to an incident that had been charged: adopting moved that. */
	if (ledger->incident.charged != HF_BUDGET_PENDING)
		return;
	hf_delay_next(b, hf_class_budget(end->cls));
	hf_budget_charge(b, budget);
	hf_incident_ensure_record(b, end);
	ledger->records[0].decided_at = b->now;
	hf_restart_tell(b, end->cls);
}

static void give_way(struct hf_brain *b, const struct hf_end *end)
{
	enum hf_budget budget = hf_end_budget(end);

	if (!hf_incident_adopt(b, end) || !hf_budget_allows(b, budget))
		fail_by_budget(b, budget);
	else
		withdraw(b, end, budget);
}

/* A person wrote the rule, or wants the job to fail with its device; a deadline does not care for
 * causes. */
static bool may_turn(const struct hf_brain *b)
{
	return hf_verdict_pending(b) && !hf_streq(b->ledger.verdict.reason, HF_VERDICT_RULE) &&
	       !hf_streq(b->ledger.verdict.reason, HF_VERDICT_DEVICE);
}

bool hf_verdict_is_final(const struct hf_brain *b)
{
	return hf_verdict_pending(b) && (!may_turn(b) || b->ledger.phase == HF_PHASE_ENDED);
}

/* Peers of a node that dies see it long before the node counts as lost.  Some nodes never count as lost,
 * as in a long storm: when the wait is over, a node that is still Unknown is the cause, as no restart can
 * make good a job that has failed. */
static bool find_lost(struct hf_brain *b, struct hf_end *ret_end)
{
	int64_t incident = b->ledger.incident.id;
	hf_time at = b->ledger.verdict.at;

	if (!may_turn(b) || !hf_class_is_application(b->ledger.incident.cause) ||
	    at == HF_TIME_NONE)
		return false;
	return hf_lost_cause(b, incident, at, ret_end) ||
	       (b->now >= hf_settle_end(b, at) && hf_lost_suspect(b, incident, at, ret_end));
}

/* The end that the verdict is of; NULL: a budget's, or its pod has gone, and when it ended with it. */
static const struct hf_end *find_verdicts(const struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];

	if (b->ledger.records_len == 0 || last->incident != b->ledger.incident.id ||
	    (!hf_streq(b->ledger.verdict.reason, HF_VERDICT_EXIT_CODE) &&
	     !hf_streq(b->ledger.verdict.reason, HF_VERDICT_NEVER)))
		return NULL;
	for (size_t i = 0; i < b->ends_len; i++) {
		if (b->ends[i].kind == HF_END_FAILED && hf_streq(b->ends[i].pod->name, last->pod))
			return &b->ends[i];
	}
	return NULL;
}

/* What finished first is the cause, in whichever order kubelets tell of it: they look for ended
 * containers once a second. */
static const struct hf_end *find_first(struct hf_brain *b)
{
	const struct hf_end *of = find_verdicts(b);

	for (const struct hf_end *end = b->ends; of && end < of; end++) {
		if (end->kind == HF_END_RESTARTED || hf_end_is_ignored(end) ||
		    !hf_incident_covers(b, end))
			continue;
		/* They are in order of time; who does not know his has none to come before. */
		return end->fate == HF_FATE_RESTART && of->finished_at != HF_TIME_NONE ? end : NULL;
	}
	return NULL;
}

static void give_way_to_first(struct hf_brain *b, const struct hf_end *end)
{
	hf_assert(end->fate == HF_FATE_RESTART);
	hf_incident_retell(b, end);
	if (hf_budget_allows(b, end->budget))
		withdraw(b, end, end->budget);
	else
		fail_by_budget(b, end->budget);
}

void hf_verdict_reconsider(struct hf_brain *b)
{
	const struct hf_end *first;
	struct hf_end lost;

	if (!may_turn(b))
		return;
	for (size_t i = 0; i < b->ends_len; i++) {
		if (hf_end_outranks(&b->ends[i]) && b->ends[i].fate != HF_FATE_FAIL &&
		    hf_lost_precedes(b, &b->ends[i], b->ledger.verdict.at)) {
			b->ends[i].spent = true;
			give_way(b, &b->ends[i]);
			return;
		}
	}
	if (find_lost(b, &lost)) {
		give_way(b, &lost);
		return;
	}
	first = find_first(b);
	if (first)
		give_way_to_first(b, first);
}

void hf_verdict_settle(struct hf_brain *b)
{
	const struct hf_verdict *verdict = &b->ledger.verdict;
	const char *silent = NULL;
	struct hf_end lost;
	hf_time until;

	if (!hf_verdict_pending(b))
		return;
	/* What cannot turn has nothing to wait for. */
	if (hf_verdict_is_final(b)) {
		hf_finish_failed(b);
		return;
	}
	if (find_lost(b, &lost)) {
		/* The verdict is of this step, and its cause is here already: the next step, with the
		 * incident written down, lets it give way. */
		b->settling = true;
		hf_wake(b, hf_time_add(b->now, HF_SECOND));
		return;
	}
	if (hf_settle_done(b, verdict->at, &until, &silent)) {
		hf_finish_failed(b);
		return;
	}
	b->settling = true;
	hf_wake(b, until);
	hf_say(b, b->now, HF_TOPIC_BLOCKED,
	       "the verdict %s waits for news of node %s, until %s at the latest", verdict->reason,
	       silent, hf_time_text(b->arena, until));
	hf_say(b, until, HF_TOPIC_NEXT,
	       "the job fails, unless its cause turns out to be a node or a "
	       "device");
}
