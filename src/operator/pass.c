/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/pass_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/kinds_internal.h"
#include "operator/narrow_schema_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts are written at most this often, so that other writers of the status (Kueue) get
 * their turn; while they go on changing, each write waits twice as long as the last. */
#define STATUS_GAP HF_SECOND
#define STATUS_GAP_MAX (4 * HF_SECOND)
/* Requests of one pass in its turn: a small job's pods come together, and are scheduled and told
 * of together; a job of thousands lets others in between. */
#define GATE_TURN 16
/* A wake-up that is due already would spin if the step kept asking for it. */
#define WAKE_MIN (10 * HF_MS)

static void advance(struct hf_pass *pass);

/* --- life ---------------------------------------------------------------------------------- */

static void pass_free(struct hf_pass *pass)
{
	pass->state->pass = NULL;
	hf_views_release(&pass->views);
	hf_doc_unref(pass->ledger_patch);
	hf_doc_unref(pass->patch);
	/* Jobs wait in the cache as text, a tenth of the tree. */
	hf_doc_drop_tree(pass->job);
	hf_doc_drop_tree(pass->stepped);
	hf_doc_unref(pass->job);
	hf_doc_unref(pass->stepped);
	hf_arena_destroy(pass->arena);
	free(pass->key);
	free(pass);
}

static void gate_leave(struct hf_pass *pass)
{
	struct hf_gate *gate = pass->gate;

	for (struct hf_pass **p = &gate->first; *p != NULL; p = &(*p)->gate_next) {
		if (*p != pass)
			continue;
		*p = pass->gate_next;
		if (*p == NULL)
			gate->last = p;
		break;
	}
	pass->gate = NULL;
}

void hf_pass_abort(struct hf_pass *pass)
{
	if (pass->gate != NULL)
		gate_leave(pass);
	hf_call_cancel(pass->call);
	for (size_t i = 0; i < pass->n_calls; i++)
		hf_call_cancel(pass->calls[i].call);
	pass_free(pass);
}

void hf_pass_fail(struct hf_pass *pass, int code, const char *message)
{
	if (pass->code != 0)
		return;
	hf_assert(code != 0);
	pass->code = code;
	snprintf(pass->message, sizeof(pass->message), "%s", message);
}

/* The job of this pass is still the one under its name. */
static bool still_there(const struct hf_pass *pass)
{
	const struct hf_cache_entry *entry = hf_cache_get(
		pass->kind->cache, hf_doc_namespace(pass->job), hf_doc_name(pass->job));

	return entry != NULL && hf_streq(entry->uid, hf_doc_uid(pass->job));
}

/* --- the end ------------------------------------------------------------------------------- */

static void ask_again(struct hf_pass *pass)
{
	struct hf_operator *op = pass->op;
	const char *key = pass->key;

	if (pass->code == 0) {
		hf_queue_forget(op->queue, key);
		if (pass->looking)
			hf_queue_add(op->queue, key);
	} else if (pass->retry_after > 0) {
		hf_queue_add_after(op->queue, key, pass->retry_after);
	} else {
		hf_queue_retry(op->queue, key);
	}
	if (pass->status_put_off)
		hf_queue_add_after(op->queue, key, pass->status_due - hf_loop_mono(op->loop));
	if (pass->planned && pass->plan.wake_at != HF_TIME_NEVER) {
		hf_time after = pass->plan.wake_at - hf_operator_now(op);

		hf_queue_add_after(op->queue, key, after < WAKE_MIN ? WAKE_MIN : after);
	}
}

static void finish(struct hf_pass *pass)
{
	struct hf_operator *op = pass->op;

	if (pass->gate != NULL)
		gate_leave(pass);
	if (op->options.passed != NULL) {
		const struct hf_operator_pass done = {
			.framework = pass->kind->framework,
			.job = pass->job,
			.plan = pass->planned ? &pass->plan : NULL,
			.told = pass->told,
			.code = pass->code,
			.message = pass->message,
			.gone = !still_there(pass),
		};

		op->options.passed(op->options.arg, &done);
	}
	if (pass->code != 0)
		hf_operator_problem(op, pass->key, pass->code, pass->message);
	hf_operator_count_pass(op, pass->kind->framework, pass->code,
			       hf_loop_mono(op->loop) - pass->began);
	ask_again(pass);
	HF_AUTOFREE char *key = hf_steal(&pass->key);
	bool routine_owed = pass->state->routine_owed;

	pass->state->routine_owed = false;
	pass_free(pass);
	if (routine_owed)
		hf_operator_enqueue_routine(op, key);
	hf_queue_done(op->queue, key);
	hf_operator_check_stopped(op);
}

/* --- the gate: who may send ---------------------------------------------------------------- */

static bool wants_to_send(const struct hf_pass *pass)
{
	if (pass->op->stopping)
		return false;
	switch (pass->phase) {
	case HF_PASS_LEDGER:
	case HF_PASS_STATUS:
	case HF_PASS_REREAD: return !pass->sent;
	case HF_PASS_STAGE:
		/* After a failure only what is unknown is still cleared up. */
		return pass->n_unsure > 0 || (pass->code == 0 && pass->next < pass->n_calls);
	case HF_PASS_OVER: break;
	}
	return false;
}

/* Decisions go before what was decided earlier: one request each. */
static struct hf_gate *gate_of(struct hf_pass *pass)
{
	bool first = pass->phase == HF_PASS_STAGE ? pass->n_unsure > 0 : pass->plan.status_urgent;

	return &pass->op->gates[first ? 0 : 1];
}

static void gate_enter(struct hf_pass *pass)
{
	struct hf_gate *gate = gate_of(pass);

	if (pass->gate != NULL || !wants_to_send(pass))
		return;
	pass->gate = gate;
	pass->gate_next = NULL;
	pass->turn_left = GATE_TURN;
	*gate->last = pass;
	gate->last = &pass->gate_next;
}

static void ledger_reply(void *arg, const struct hf_reply *reply);
static void status_reply(void *arg, const struct hf_reply *reply);
static void reread_reply(void *arg, const struct hf_reply *reply);

static void send_for_job(struct hf_pass *pass)
{
	bool ledger = pass->phase == HF_PASS_LEDGER, status = pass->phase == HF_PASS_STATUS;
	hf_reply_fn done = ledger ? ledger_reply : status ? status_reply : reread_reply;
	const struct hf_request request = {
		.verb = ledger || status ? HF_VERB_PATCH : HF_VERB_GET,
		.resource = pass->kind->resource,
		.ns = hf_doc_namespace(pass->job),
		.name = hf_doc_name(pass->job),
		.subresource = status ? "status" : NULL,
		.patch_type = HF_PATCH_MERGE,
		.body = ledger   ? pass->ledger_patch
			: status ? pass->patch
				 : NULL,
		.timeout = pass->op->options.request_timeout,
	};

	pass->sent = true;
	pass->op->in_flight++;
	pass->op->tokens--;
	pass->call = hf_store_request(pass->op->store, &request, done, pass);
}

static void send_for_stage(struct hf_pass *pass)
{
	struct hf_pass_call *call;

	if (pass->n_unsure > 0) {
		for (call = pass->calls; call->state != HF_CALL_UNSURE; call++)
			;
		pass->n_unsure--;
		hf_perform_read(call);
	} else {
		call = &pass->calls[pass->next++];
		hf_perform_send(call);
	}
	if (call->call != NULL) {
		pass->n_open++;
		pass->op->in_flight++;
		pass->op->tokens--;
	}
}

/* Send nothing more; what is under way is waited for. */
static void give_up(struct hf_pass *pass, int code, const char *message)
{
	hf_pass_fail(pass, code, message);
	pass->sent = true;
	pass->reread = false;
	pass->next = pass->n_calls;
	pass->n_unsure = 0;
	advance(pass);
}

void hf_pass_stop(struct hf_pass *pass)
{
	give_up(pass, HF_E_CANCELED, "the operator is stopping");
}

/* A token bucket, as client-go has it; asked only when somebody wants to send. */
static bool rate_allows(struct hf_operator *op)
{
	double qps = op->options.qps, burst = op->options.burst > 0 ? op->options.burst : 1;
	hf_time now = hf_loop_mono(op->loop);

	if (qps <= 0)
		return true;
	op->tokens += qps * (double)(now - op->tokens_at) / (double)HF_SECOND;
	if (op->tokens > burst)
		op->tokens = burst;
	op->tokens_at = now;
	if (op->tokens >= 1)
		return true;
	/* A nanosecond more than exact, or rounding would have it look again at once. */
	hf_timer_arm(op->gate_timer, (hf_time)((1 - op->tokens) / qps * (double)HF_SECOND) + 1);
	return false;
}

static struct hf_pass *gate_first(struct hf_operator *op)
{
	return op->gates[0].first != NULL ? op->gates[0].first : op->gates[1].first;
}

void hf_gate_open(struct hf_operator *op)
{
	struct hf_pass *pass;

	if (op->in_gate)
		return;
	op->in_gate = true;
	while (op->in_flight < op->in_flight_max && (pass = gate_first(op)) != NULL) {
		if (wants_to_send(pass) && !rate_allows(op))
			break;
		if (--pass->turn_left <= 0 || pass->phase != HF_PASS_STAGE || !wants_to_send(pass))
			gate_leave(pass);
		if (!wants_to_send(pass)) {
			advance(pass);
		} else if (!still_there(pass)) {
			give_up(pass, HF_E_NOT_FOUND, "the job is gone");
		} else if (pass->phase == HF_PASS_STAGE) {
			send_for_stage(pass);
			advance(pass);
		} else {
			send_for_job(pass);
		}
	}
	op->in_gate = false;
}

/* --- from phase to phase ------------------------------------------------------------------- */

static void stage_begin(struct hf_pass *pass)
{
	const struct hf_stage *stage = &pass->plan.stages[pass->stage];

	pass->phase = HF_PASS_STAGE;
	pass->calls = HF_ARENA_ARRAY(pass->arena, struct hf_pass_call, stage->actions_len + 1);
	pass->n_calls = stage->actions_len;
	pass->next = 0;
	for (size_t i = 0; i < stage->actions_len; i++)
		pass->calls[i] = (struct hf_pass_call){.pass = pass, .action = &stage->actions[i]};
}

static bool stage_is_over(const struct hf_pass *pass)
{
	bool all_sent = pass->code != 0 || pass->next == pass->n_calls;

	return pass->n_open == 0 && (pass->op->stopping || (pass->n_unsure == 0 && all_sent));
}

/* The one request of these phases is answered, or will not be sent any more. */
static bool request_is_over(const struct hf_pass *pass)
{
	return pass->call == NULL && (pass->sent || pass->op->stopping);
}

static void stages_advance(struct hf_pass *pass)
{
	while (pass->phase == HF_PASS_STAGE && stage_is_over(pass)) {
		hf_report_stage(pass);
		pass->stage++;
		if (pass->code != 0 || pass->op->stopping || pass->stage == pass->plan.stages_len)
			pass->phase = HF_PASS_OVER;
		else
			stage_begin(pass);
	}
}

/* After whatever happened: go to the next phase, or wait for a reply or for the gate. */
static void advance(struct hf_pass *pass)
{
	if ((pass->phase == HF_PASS_LEDGER || pass->phase == HF_PASS_STATUS) &&
	    request_is_over(pass))
		pass->phase = HF_PASS_OVER;
	stages_advance(pass);
	if (pass->phase == HF_PASS_REREAD && request_is_over(pass))
		pass->phase = HF_PASS_OVER;
	if (pass->phase == HF_PASS_OVER && pass->reread && !pass->op->stopping) {
		pass->reread = false;
		pass->sent = false;
		pass->phase = HF_PASS_REREAD;
	}
	if (pass->phase == HF_PASS_OVER) {
		finish(pass);
		return;
	}
	gate_enter(pass);
	hf_gate_open(pass->op);
}

static void stages_begin(struct hf_pass *pass)
{
	pass->stage = 0;
	if (pass->plan.stages_len > 0)
		stage_begin(pass);
	else
		pass->phase = HF_PASS_OVER;
}

static void replied(struct hf_pass *pass, const struct hf_reply *reply)
{
	pass->op->in_flight--;
	hf_operator_heard(pass->op, reply);
	if (reply->retry_after > pass->retry_after)
		pass->retry_after = reply->retry_after;
}

void hf_pass_replied(struct hf_pass *pass, const struct hf_reply *reply)
{
	struct hf_operator *op = pass->op;

	pass->n_open--;
	replied(pass, reply);
	advance(pass);
	hf_gate_open(op);
}

/* --- status -------------------------------------------------------------------------------- */

/* Patches name the version they were made for: if the cache still has that one, the reply is that
 * and what we wrote. */
static void job_is_now(struct hf_pass *pass, struct hf_doc *object)
{
	const struct hf_cache_entry *entry = hf_cache_get(
		pass->kind->cache, hf_doc_namespace(pass->job), hf_doc_name(pass->job));

	pass->op->own_write = entry != NULL &&
			      hf_streq(entry->resource_version, hf_doc_resource_version(pass->job));
	pass->op->own_routine = !pass->plan.status_urgent;
	hf_cache_put_reply(pass->kind->cache, object);
	pass->op->own_write = false;
	hf_doc_unref(pass->job);
	pass->job = hf_doc_ref(object);
}

/* Counters that are not stored would be counted again: better no action at all. */
static void not_kept(struct hf_pass *pass)
{
	static const char text[] = "the API server did not keep all of the job's status: "
				   "nothing is done for this job (is its CRD too narrow?)";

	hf_report_job(pass, true, "StatusNotKept", text);
	hf_pass_fail(pass, HF_E_UNSUPPORTED, text);
}

static bool ledger_begin(struct hf_pass *pass)
{
	struct hf_error err;

	pass->ledger_left = false;
	if (hf_ledger_patch(&pass->plan.status.ledger, pass->kind->framework, pass->job,
			    &pass->ledger_patch, &err) != 0) {
		hf_report_job(pass, true, "StatusNotKept", err.text);
		hf_pass_fail(pass, err.code, err.text);
		pass->phase = HF_PASS_OVER;
		return true;
	}
	if (pass->ledger_patch == NULL)
		return false;
	pass->phase = HF_PASS_LEDGER;
	pass->sent = false;
	return true;
}

static bool status_begin(struct hf_pass *pass)
{
	struct hf_status status = pass->plan.status;

	pass->status_left = false;
	/* There the status is written as if there were no ledger. */
	if (pass->narrow)
		status.ledger.kept = true;
	pass->patch = hf_status_patch(pass->job, pass->kind->framework, &status);
	if (pass->patch == NULL)
		return false;
	pass->phase = HF_PASS_STATUS;
	pass->sent = false;
	return true;
}

/* What is left to be written, the ledger first, each after the other's 200; then the actions.
 * Whoever dies in between finds a ledger that is ahead of the status, and has nothing to count
 * again: a verdict stands in it, and so does every success. */
static void write_on(struct hf_pass *pass)
{
	while (pass->ledger_left || pass->status_left) {
		if (pass->ledger_left ? ledger_begin(pass) : status_begin(pass))
			return;
	}
	hf_report_plan(pass);
	stages_begin(pass);
}

static void ledger_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_pass *pass = arg;
	struct hf_operator *op = pass->op;

	pass->call = NULL;
	replied(pass, reply);
	if (reply->code != 0) {
		hf_pass_fail(pass, reply->code, reply->message);
		pass->state->unsure = pass->reread = true;
	} else {
		pass->state->unsure = false;
		pass->state->status_written = hf_loop_mono(op->loop);
		job_is_now(pass, reply->object);
		if (hf_ledger_arrived(pass->ledger_patch, reply->object))
			write_on(pass);
		else
			not_kept(pass);
	}
	advance(pass);
	hf_gate_open(op);
}

static void note_written(struct hf_pass *pass)
{
	struct hf_job_state *state = pass->state;
	hf_time now = hf_loop_mono(pass->op->loop), last = state->status_written;

	if (pass->plan.status_urgent || last == HF_TIME_NONE || now - last > 2 * state->status_gap)
		state->status_gap = STATUS_GAP;
	else if (state->status_gap < STATUS_GAP_MAX)
		state->status_gap *= 2;
	state->status_written = now;
	state->status_owed = HF_TIME_NONE;
	state->unsure = false;
	state->pods_made = state->services_made = 0;
}

static void status_good(struct hf_pass *pass, struct hf_doc *object)
{
	bool arrived = hf_status_arrived(pass->patch, object);

	note_written(pass);
	if (arrived && pass->plan.status.ledger.present && !pass->plan.status.ledger.kept)
		pass->kind->keeps = true;
	job_is_now(pass, object);
	if (!arrived && hf_narrow_learn(pass, object)) {
		hf_narrow_tell(pass);
		hf_pass_fail(pass, HF_E_UNSUPPORTED,
			     pass->kind->narrow ? "the API server drops status.recovery: an "
						  "annotation will hold it"
						: "the API server drops status.recovery, though "
						  "its CRD has it: tried again");
		return;
	}
	if (arrived)
		write_on(pass);
	else
		not_kept(pass);
}

static void count_status(struct hf_pass *pass, int code)
{
	const char *kind = pass->kind->framework->kind;

	if (pass->op->metrics.status_patches != NULL)
		hf_family_add(pass->op->metrics.status_patches, 1, kind, NULL);
	if (pass->op->metrics.status_conflicts != NULL && code == HF_E_CONFLICT)
		hf_family_add(pass->op->metrics.status_conflicts, 1, kind, NULL);
}

static void status_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_pass *pass = arg;
	struct hf_operator *op = pass->op;

	pass->call = NULL;
	replied(pass, reply);
	count_status(pass, reply->code);
	if (reply->code == 0) {
		status_good(pass, reply->object);
	} else {
		hf_pass_fail(pass, reply->code, reply->message);
		/* Whatever it was: a time-out may have been done, a conflict or "not found" says
		 * that the cache is behind. */
		pass->state->unsure = pass->reread = true;
	}
	advance(pass);
	hf_gate_open(op);
}

/* A conflict is nothing to tell of; that it cannot be resolved is. */
static void read_failed(struct hf_pass *pass, const struct hf_reply *reply)
{
	pass->code = 0;
	hf_pass_fail(pass, reply->code, reply->message);
}

static void live_read(struct hf_pass *pass, struct hf_doc *object)
{
	free(pass->state->looked);
	pass->state->looked = hf_xstrdup(hf_doc_resource_version(object));
	pass->state->unsure = false;
	pass->state->pods_made = pass->state->services_made = 0;
	hf_cache_put_live(pass->kind->cache, object);
}

static void reread_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_pass *pass = arg;
	struct hf_operator *op = pass->op;

	pass->call = NULL;
	replied(pass, reply);
	if (reply->code == 0)
		live_read(pass, reply->object);
	else if (reply->code == HF_E_NOT_FOUND)
		hf_cache_put_gone(pass->kind->cache, hf_doc_namespace(pass->job),
				  hf_doc_name(pass->job), hf_doc_uid(pass->job));
	else
		read_failed(pass, reply);
	advance(pass);
	hf_gate_open(op);
}

/* --- the step ------------------------------------------------------------------------------ */

static int read_job(struct hf_pass *pass, struct hf_error *err)
{
	/* An empty job would be a wrong one: nothing is decided on what cannot be read. */
	if (hf_doc_json(pass->stepped) == NULL)
		return hf_error_set(err, HF_E_UNAVAILABLE,
				    "the job that the server sent is no JSON");
	hf_job_read(pass->stepped, pass->kind->framework, &pass->op->options.settings, pass->arena,
		    NULL, &pass->view);
	/* What happens to its pods is no failure, though the job itself may not be marked yet. */
	if (pass->view.deletion_time == HF_TIME_NONE &&
	    hf_operator_is_ending(pass->op, pass->view.ns))
		pass->view.deletion_time = hf_operator_now(pass->op);
	return 0;
}

static int step(struct hf_pass *pass, struct hf_error *err)
{
	struct hf_operator *op = pass->op;
	hf_time now = hf_operator_now(op), begin = hf_loop_mono(op->loop);
	struct hf_observe_args args = {.pods = op->pods.cache,
				       .services = op->services.cache,
				       .job = &pass->view,
				       .state = pass->state,
				       .now = now,
				       .facts = &op->facts,
				       .mono = begin,
				       .key = pass->key};

	for (size_t i = 0; i < HF_EXTRA_KINDS; i++)
		args.extras[i] = op->extras[i].cache;
	struct hf_observed seen;
	int rc;

	hf_extras_start_rare(op, &pass->view);
	hf_observe(&args, pass->arena, &pass->views, &seen);
	pass->state->size = seen.pods_len + seen.services_len;
	rc = hf_job_step(&pass->view, &seen, now, pass->arena, &pass->plan, err);
	pass->planned = rc == 0;
	if (pass->planned && op->facts.asks != NULL)
		hf_asks_set(op->facts.asks, pass->key, pass->view.ns, &pass->plan);
	if (op->metrics.steps != NULL)
		hf_family_observe(op->metrics.steps,
				  (double)(hf_loop_mono(op->loop) - begin) / (double)HF_SECOND,
				  pass->kind->framework->kind, NULL);
	return rc;
}

/* Whether a first ledger that is not written yet would be kept: pods are made before it is. */
static bool ledger_has_place(const struct hf_kind *kind)
{
	return kind->keeps || kind->narrow || (kind->crd != NULL && !kind->crd_unseen);
}

static bool begins_ledger(const struct hf_pass *pass)
{
	return pass->plan.status.ledger.present && !pass->view.status.ledger.present;
}

/* Told with the status, and known to this plan alone: the next one sees no pod to force. */
static bool forces(const struct hf_plan *plan)
{
	return plan->metrics[HF_METRIC_FORCED_PROVEN] > 0 ||
	       plan->metrics[HF_METRIC_FORCED_PRESUMED] > 0;
}

static bool is_rising(const struct hf_plan *plan)
{
	return plan->status.ledger.present && plan->status.ledger.phase == HF_PHASE_CREATING;
}

static void note_rise(struct hf_pass *pass)
{
	struct hf_job_state *state = pass->state;
	hf_time now = hf_loop_mono(pass->op->loop);
	bool rising = is_rising(&pass->plan), was = state->starting_since != HF_TIME_NONE;

	if (rising && !was) {
		state->starting_since = now;
		hf_startups_begin(&pass->op->startups, now);
	} else if (was && !rising) {
		hf_startups_end(&pass->op->startups, state->starting_since, true, now);
		state->starting_since = HF_TIME_NONE;
	}
}

/* How long progress waits for more of it.  A job with a deadline is not told late of its start. */
static hf_time patience(const struct hf_pass *pass)
{
	struct hf_operator *op = pass->op;
	const struct hf_plan *plan = &pass->plan;
	hf_time gather = hf_operator_gather_time(op), rise;

	if (!is_rising(plan) || plan->wake_at != HF_TIME_NEVER)
		return plan->stages_len > 0 ? gather : 0;
	rise = hf_startups_status_wait(&op->startups, begins_ledger(pass), hf_loop_mono(op->loop));
	return rise > gather ? rise : gather;
}

/* What nothing waits for is written when the actions have brought more of it, or its time is up. */
static bool put_off(struct hf_pass *pass)
{
	const struct hf_plan *plan = &pass->plan;
	struct hf_job_state *state = pass->state;
	hf_time now = hf_loop_mono(pass->op->loop), due;

	if (!plan->status_changed)
		state->status_owed = HF_TIME_NONE;
	/* A ledger may be there that the cache has not: nothing is made before the guarded write. */
	if (!plan->status_changed || plan->status_urgent || forces(plan) || state->unsure ||
	    (begins_ledger(pass) && !ledger_has_place(pass->kind)))
		return false;
	if (state->status_owed == HF_TIME_NONE)
		state->status_owed = now;
	due = state->status_owed + patience(pass);
	if (state->status_written != HF_TIME_NONE &&
	    due < state->status_written + state->status_gap)
		due = state->status_written + state->status_gap;
	pass->status_due = due;
	return now < due;
}

static bool makes_again(const struct hf_plan *plan, enum hf_action_kind kind, size_t made)
{
	size_t creates = 0;

	for (size_t s = 0; made > 0 && s < plan->stages_len; s++)
		for (size_t i = 0; i < plan->stages[s].actions_len; i++)
			creates += plan->stages[s].actions[i].kind == kind;
	return creates > 0 && made >= 2 * creates;
}

/* Pods or services that go as soon as they are made, before anything was written of them: of a job that
 * is gone, perhaps, or going, which the garbage collector knows before we do. */
static bool makes_in_vain(const struct hf_pass *pass)
{
	return makes_again(&pass->plan, HF_ACTION_CREATE_POD, pass->state->pods_made) ||
	       makes_again(&pass->plan, HF_ACTION_CREATE_SERVICE, pass->state->services_made);
}

/* There may be a status that says otherwise, and no guarded write goes before what this plan does. */
static bool acts_unsure(const struct hf_pass *pass)
{
	return pass->state->unsure && !pass->plan.status_changed && pass->plan.stages_len > 0;
}

static void look_live(struct hf_pass *pass)
{
	pass->phase = HF_PASS_REREAD;
	pass->looking = true;
}

static void begin(struct hf_pass *pass)
{
	struct hf_error err;
	int rc = read_job(pass, &err);

	if (rc == 0 && hf_narrow_must_look(pass)) {
		look_live(pass);
		return;
	}
	if (rc == 0)
		rc = step(pass, &err);
	if (rc != 0) {
		hf_report_job(pass, true, "FailedStep", err.text);
		hf_pass_fail(pass, err.code, err.text);
		pass->phase = HF_PASS_OVER;
		return;
	}
	note_rise(pass);
	pass->status_put_off = put_off(pass);
	if (acts_unsure(pass) ||
	    ((pass->status_put_off || !pass->plan.status_changed) && makes_in_vain(pass))) {
		look_live(pass);
		return;
	}
	if (pass->status_put_off) {
		stages_begin(pass);
		return;
	}
	pass->status_left = pass->plan.status_changed;
	hf_narrow_begin(pass);
	write_on(pass);
}

static struct hf_job_state *state_of(struct hf_operator *op, const char *key)
{
	struct hf_job_state *state = hf_map_get(op->states, key);

	if (state != NULL)
		return state;
	state = hf_xcalloc(1, sizeof(*state));
	state->status_written = state->status_owed = HF_TIME_NONE;
	state->starting_since = state->success_due = HF_TIME_NONE;
	state->status_gap = STATUS_GAP;
	/* The queue holds fewer keys than the map may. */
	bool put = hf_map_put(op->states, key, state);

	hf_assert(put);
	return state;
}

static void state_forget(struct hf_operator *op, const char *key)
{
	struct hf_job_state *state = hf_map_get(op->states, key);

	if (state != NULL && state->starting_since != HF_TIME_NONE)
		hf_startups_end(&op->startups, state->starting_since, false,
				hf_loop_mono(op->loop));
	hf_map_remove(op->states, key);
}

void hf_pass_run(void *arg, const char *key)
{
	struct hf_operator *op = arg;
	HF_AUTOFREE char *ns = NULL;
	const char *name = NULL;
	struct hf_kind *kind = hf_kind_of_key(op, key, &ns, &name);
	const struct hf_cache_entry *entry = hf_cache_get(kind->cache, ns, name);
	struct hf_pass *pass;

	/* All jobs of a kind are looked at when it begins, and when what they need is known. */
	if (entry != NULL && !op->stopping)
		hf_extras_start(op, kind->framework);
	if (entry == NULL || op->stopping || !kind->running ||
	    !hf_extras_synced(op, kind->framework)) {
		if (entry != NULL && kind->running && !op->stopping)
			hf_groups_tell(kind, entry->doc);
		state_forget(op, key);
		if (op->facts.asks != NULL)
			hf_asks_forget(op->facts.asks, key);
		hf_queue_forget(op->queue, key);
		hf_queue_done(op->queue, key);
		return;
	}
	pass = hf_xcalloc(1, sizeof(*pass));
	pass->op = op;
	pass->kind = kind;
	pass->state = state_of(op, key);
	pass->state->pass = pass;
	pass->key = hf_xstrdup(key);
	pass->began = hf_loop_mono(op->loop);
	pass->job = hf_doc_ref(entry->doc);
	pass->stepped = hf_doc_ref(entry->doc);
	pass->arena = hf_arena_create(HF_OPERATOR_PASS_BYTES_MAX);
	/* Ranks, as many pods and services again that are no rank's any more, and strangers. */
	pass->views.len_max = 8 * (size_t)HF_RANKS_MAX;
	begin(pass);
	advance(pass);
}
