/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/policy/policy_internal.h"

#include "base/str.h"

/*
 * A verdict that would end the job.  It is written when it is reached, takes effect when it has
 * settled (settle.c), and is withdrawn when a better cause is seen.  The ledger keeps it, so it
 * survives a crash of the operator and the loss of the pods that it was read from.  Writes: the
 * ledger's verdict, incident and records.
 *
 * Under narrow-schema CRDs the ledger is written before the status.  A verdict that took effect is
 * charged in the ledger, so it stands until the status says Failed as well.
 */

/* The message of a FailJob rule in the words of batch/v1, for which people search. */
static const char *describe_rule(const struct hf_brain *b, const struct hf_termination *termination)
{
	const struct hf_rule *rule = &b->view->run_policy.rules[termination->rule];
	const char *ns = hf_str_or(b->view->ns, "");

	if (rule->has_exit_codes)
		return hf_arena_printf(b->arena,
				       "Container %s for pod %s/%s failed with exit code %d "
				       "matching FailJob rule at index %d",
				       termination->matched, ns, termination->pod->name,
				       termination->matched_code, termination->rule);
	if (rule->has_pod_conditions)
		return hf_arena_printf(
			b->arena, "Pod %s/%s has condition %s matching FailJob rule at index %d",
			ns, termination->pod->name, termination->matched, termination->rule);
	if (rule->has_device)
		return hf_arena_printf(
			b->arena, "Pod %s/%s has device %s (%s) matching FailJob rule at index %d",
			ns, termination->pod->name, termination->device->id,
			termination->device->cls, termination->rule);
	return hf_arena_printf(b->arena,
			       "Pod %s/%s has reason %s matching FailJob rule at index %d", ns,
			       termination->pod->name, termination->matched, termination->rule);
}

/* The message of the verdict, in upstream's words where upstream has the same failure. */
static const char *describe_as_upstream(const struct hf_brain *b,
					const struct hf_termination *termination)
{
	const struct hf_framework *framework = b->job.framework;
	const char *type = b->roles[termination->role].type;
	int32_t failed = b->failed_count[termination->role];

	if (hf_streq(termination->verdict, HF_VERDICT_RULE))
		return describe_rule(b, termination);
	if (hf_streq(termination->verdict, HF_VERDICT_DEVICE))
		return hf_arena_printf(b->arena,
				       "%s %s is failed because device %s of pod %s failed (%s).",
				       framework->kind, b->view->name, termination->device->id,
				       termination->pod->name, termination->device->cls);
	if (hf_streq(termination->verdict, HF_VERDICT_DO_NOT_RESTART))
		return hf_arena_printf(
			b->arena,
			"Pod %s/%s exited with code 93, which asks for no restart. A "
			"rule of podFailurePolicy for this code goes before that.",
			hf_str_or(b->view->ns, ""), termination->pod->name);
	if (hf_streq(termination->verdict, HF_VERDICT_LOG_RULE))
		return hf_arena_printf(
			b->arena,
			"Pod %s/%s broke a rule of recovery.logRules with action FailJob (code "
			"229); its termination message names the rule.",
			hf_str_or(b->view->ns, ""), termination->pod->name);
	if (hf_streq(termination->verdict, HF_VERDICT_EXIT_CODE))
		return hf_arena_printf(b->arena,
				       "job \"%s\" is failing because \"%s\" replica(s) failed.",
				       b->view->name, type);
	if (framework->failed_message)
		return framework->failed_message(&b->job, termination->role, failed, b->arena);
	return hf_arena_printf(b->arena, "%s %s is failed because %d %s replica(s) failed.",
			       framework->kind, b->view->name, failed, type);
}

static const char *describe_verdict(const struct hf_brain *b,
				    const struct hf_termination *termination)
{
	return hf_arena_printf(b->arena, "%s%s", describe_as_upstream(b, termination),
			       hf_never_started_text(b));
}

void hf_verdict_of_termination(struct hf_brain *b, const struct hf_termination *termination)
{
	hf_assert(termination->fate == HF_FATE_FAIL && termination->verdict);
	hf_assert(termination->pod);
	if (hf_incident_covers(b, termination))
		hf_incident_record(b, termination);
	else
		hf_incident_open(b, termination, termination->cls, HF_BUDGET_PENDING);
	hf_termination_event(b, termination);
	hf_verdict_set(b, termination->verdict, describe_verdict(b, termination));
}

/* The better cause belongs to another budget, which is used up: the job fails for that budget. */
static void fail_by_budget(struct hf_brain *b, enum hf_budget budget)
{
	/* The verdict is set only once.  Its time must stay that of the first sight, because
	 * settling counts from that time. */
	if (!hf_streq(b->ledger.verdict.reason, hf_budget_verdict(budget)))
		hf_verdict_set(b, hf_budget_verdict(budget), hf_budget_message(b, budget));
}

/* Withdraw the verdict: the job does not fail. Its incident is charged to the budget of this
 * termination, which is now its cause. */
static void withdraw_verdict(struct hf_brain *b, const struct hf_termination *termination,
			     enum hf_budget budget)
{
	struct hf_ledger *ledger = &b->ledger;

	ledger->verdict = (struct hf_verdict){.at = HF_TIME_NONE};
	b->gave_way = true;
	/* The termination that set the verdict belonged to an incident that had been charged
	 * before, and hf_incident_adopt has moved that charge. */
	if (ledger->incident.charged != HF_BUDGET_PENDING)
		return;
	hf_delay_next(b, hf_class_budget(termination->cls));
	hf_budget_charge(b, budget);
	hf_incident_ensure_record(b, termination);
	ledger->records[0].decided_at = b->now;
	hf_restart_tell(b, termination->cls);
}

static void give_way_to(struct hf_brain *b, const struct hf_termination *termination)
{
	enum hf_budget budget = hf_termination_budget(termination);

	if (!hf_incident_adopt(b, termination) || !hf_budget_allows(b, budget))
		fail_by_budget(b, budget);
	else
		withdraw_verdict(b, termination, budget);
}

/* Later evidence may change the verdict.  A verdict of a rule or of device.onUnhealthy is final. */
static bool may_change(const struct hf_brain *b)
{
	return hf_verdict_pending(b) && !hf_streq(b->ledger.verdict.reason, HF_VERDICT_RULE) &&
	       !hf_streq(b->ledger.verdict.reason, HF_VERDICT_DEVICE);
}

bool hf_verdict_is_final(const struct hf_brain *b)
{
	return hf_verdict_pending(b) && (!may_change(b) || b->ledger.phase == HF_PHASE_ENDED);
}

/*
 * Find a lost node that is the cause of the verdict's incident.
 *
 * Peers notice a dying node long before it counts as lost, and some nodes never count as lost, for
 * instance in a long storm.  When the wait is over, a node that is still Unknown is taken as the
 * cause, because a failed job cannot be taken back.
 */
static bool find_lost_node(const struct hf_brain *b, struct hf_termination *ret_end)
{
	int64_t incident = b->ledger.incident.id;
	hf_time at = b->ledger.verdict.at;

	if (!may_change(b) || !hf_class_is_application(b->ledger.incident.cause) ||
	    at == HF_TIME_NONE)
		return false;
	return hf_node_loss_cause(b, incident, at, ret_end) ||
	       (b->now >= hf_settle_latest(b, at) &&
		hf_node_loss_suspect(b, incident, at, ret_end));
}

/* The termination that set the verdict.  NULL: a budget set the verdict, or the pod is gone, and
 * with the pod the finish time. */
static const struct hf_termination *find_verdict_termination(const struct hf_brain *b)
{
	const struct hf_record *last = &b->ledger.records[0];

	if (b->ledger.records_len == 0 || last->incident != b->ledger.incident.id ||
	    (!hf_streq(b->ledger.verdict.reason, HF_VERDICT_EXIT_CODE) &&
	     !hf_streq(b->ledger.verdict.reason, HF_VERDICT_DO_NOT_RESTART) &&
	     !hf_streq(b->ledger.verdict.reason, HF_VERDICT_LOG_RULE) &&
	     !hf_streq(b->ledger.verdict.reason, HF_VERDICT_NEVER)))
		return NULL;
	for (size_t i = 0; i < b->terminations_len; i++) {
		if (b->terminations[i].kind == HF_TERMINATION_FAILED &&
		    hf_streq(b->terminations[i].pod->name, last->pod))
			return &b->terminations[i];
	}
	return NULL;
}

/* A termination that finished before the verdict's, and that restarts: it is the cause.  The order
 * of reports says nothing, because kubelets look for ended containers once a second. */
static const struct hf_termination *find_first(const struct hf_brain *b)
{
	const struct hf_termination *of = find_verdict_termination(b);

	for (const struct hf_termination *termination = b->terminations; of && termination < of;
	     termination++) {
		if (termination->kind == HF_TERMINATION_RESTARTED ||
		    hf_termination_is_ignored(termination) || !hf_incident_covers(b, termination))
			continue;
		/* The list is sorted by finish time.  If the time of the verdict's termination is
		 * unknown, no termination counts as earlier. */
		return termination->fate == HF_FATE_RESTART && of->finished_at != HF_TIME_NONE
			       ? termination
			       : NULL;
	}
	return NULL;
}

static void give_way_to_first(struct hf_brain *b, const struct hf_termination *termination)
{
	hf_assert(termination->fate == HF_FATE_RESTART);
	hf_incident_set_cause(b, termination);
	if (hf_budget_allows(b, termination->budget))
		withdraw_verdict(b, termination, termination->budget);
	else
		fail_by_budget(b, termination->budget);
}

void hf_verdict_reconsider(struct hf_brain *b)
{
	const struct hf_termination *first;
	struct hf_termination lost;

	if (!may_change(b))
		return;
	for (size_t i = 0; i < b->terminations_len; i++) {
		if (hf_termination_outranks(&b->terminations[i]) &&
		    b->terminations[i].fate != HF_FATE_FAIL &&
		    hf_node_loss_precedes(b, &b->terminations[i], b->ledger.verdict.at)) {
			b->terminations[i].used_by_verdict = true;
			give_way_to(b, &b->terminations[i]);
			return;
		}
	}
	if (find_lost_node(b, &lost)) {
		give_way_to(b, &lost);
		return;
	}
	first = find_first(b);
	if (first)
		give_way_to_first(b, first);
}

bool hf_verdict_settle(struct hf_brain *b)
{
	const struct hf_verdict *verdict = &b->ledger.verdict;
	struct hf_settling settling;
	struct hf_termination lost;

	if (!hf_verdict_pending(b))
		return false;
	if (hf_verdict_is_final(b))
		return true;
	if (find_lost_node(b, &lost)) {
		/* The verdict was set in this step, and its cause is known already.  The next step
		 * withdraws it, after the incident is written. */
		b->settling = true;
		hf_wake(b, hf_time_add(b->now, HF_SECOND));
		return false;
	}
	settling = hf_settle_look(b, verdict->at);
	if (settling.done)
		return true;
	b->settling = true;
	hf_wake(b, settling.until);
	hf_say(b, b->now, HF_TOPIC_BLOCKED,
	       "the verdict %s waits for news of node %s, until %s at the latest", verdict->reason,
	       settling.silent, hf_time_text(b->arena, settling.until));
	hf_say(b, settling.until, HF_TOPIC_NEXT,
	       "the job fails, unless its cause turns out to be a node or a "
	       "device");
	return false;
}
