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

/*
 * One pass over one job: reads the job, runs the step (core), writes the status, then performs the
 * plan's stages.  The phases are in pass_internal.h.
 *
 * Input: the key of a job in the queue.  Output: requests through the gates; their answers in the
 * caches; the job's next wake-up.
 *
 * Invariants: no action is sent before the API server has stored the status that explains it; a job
 * has at most one pass at a time.
 */

/* The shortest time until a wake-up.  A step that kept asking for a wake-up in the past would
 * otherwise keep the process busy. */
#define WAKE_MIN (10 * HF_MS)
/* A job has at most so many passes with writes within BUSY_TIME, and then rests until its end.  More are needed only
 * where another writer, such as a second leader, undoes each write at once. */
#define BUSY_PASSES_MAX 100
#define BUSY_TIME HF_SECOND

/* --- phases ----------------------------------------------------------------------------------- */

#define PHASE_BIT(phase) (1U << (phase))

/* The table of pass_internal.h. */
static const unsigned next_phases[HF_PASS_PHASES] = {
	[HF_PASS_DECIDE] = PHASE_BIT(HF_PASS_LEDGER) | PHASE_BIT(HF_PASS_STATUS) |
			   PHASE_BIT(HF_PASS_STAGE) | PHASE_BIT(HF_PASS_READ) |
			   PHASE_BIT(HF_PASS_OVER),
	[HF_PASS_LEDGER] =
		PHASE_BIT(HF_PASS_STATUS) | PHASE_BIT(HF_PASS_STAGE) | PHASE_BIT(HF_PASS_OVER),
	[HF_PASS_STATUS] = PHASE_BIT(HF_PASS_STAGE) | PHASE_BIT(HF_PASS_OVER),
	[HF_PASS_STAGE] = PHASE_BIT(HF_PASS_STAGE) | PHASE_BIT(HF_PASS_OVER),
	[HF_PASS_READ] = PHASE_BIT(HF_PASS_OVER),
	[HF_PASS_OVER] = PHASE_BIT(HF_PASS_READ),
};

static void enter_phase(struct hf_pass *pass, enum hf_pass_phase phase)
{
	hf_assert((next_phases[pass->phase] & PHASE_BIT(phase)) != 0);
	pass->phase = phase;
	pass->request = HF_REQUEST_WAITING;
}

/* --- life ------------------------------------------------------------------------------------- */

static void free_pass(struct hf_pass *pass)
{
	pass->state->pass = NULL;
	hf_views_release(&pass->views);
	hf_doc_unref(pass->ledger_patch);
	hf_doc_unref(pass->patch);
	/* Outside of passes the cache keeps jobs as text, which takes a tenth of the memory of the
	 * tree. */
	hf_doc_drop_tree(pass->job);
	hf_doc_drop_tree(pass->stepped);
	hf_doc_unref(pass->job);
	hf_doc_unref(pass->stepped);
	hf_arena_destroy(pass->arena);
	free(pass->key);
	free(pass);
}

void hf_pass_abort(struct hf_pass *pass)
{
	hf_gate_leave(pass);
	hf_call_cancel(pass->call);
	for (size_t i = 0; i < pass->n_calls; i++)
		hf_call_cancel(pass->calls[i].call);
	free_pass(pass);
}

void hf_pass_fail(struct hf_pass *pass, int code, const char *message)
{
	if (pass->code != 0)
		return;
	hf_assert(code != 0);
	pass->code = code;
	snprintf(pass->message, sizeof(pass->message), "%s", message);
}

bool hf_pass_has_job(const struct hf_pass *pass)
{
	const struct hf_cache_entry *entry = hf_cache_get(
		pass->kind->cache, hf_doc_namespace(pass->job), hf_doc_name(pass->job));

	return entry != NULL && hf_streq(entry->uid, hf_doc_uid(pass->job));
}

void hf_pass_give_up(struct hf_pass *pass, int code, const char *message)
{
	hf_pass_fail(pass, code, message);
	if (pass->request == HF_REQUEST_WAITING)
		pass->request = HF_REQUEST_OVER;
	if (pass->then == HF_THEN_READ)
		pass->then = HF_THEN_END;
	pass->next = pass->n_calls;
	pass->n_unsure = 0;
	hf_pass_advance(pass);
}

void hf_pass_stop(struct hf_pass *pass)
{
	hf_pass_give_up(pass, HF_E_CANCELED, "the operator is stopping");
}

/* --- the end of a pass ------------------------------------------------------------------------ */

static void queue_again(struct hf_pass *pass)
{
	struct hf_operator *op = pass->op;
	const char *key = pass->key;

	if (pass->code == 0) {
		hf_queue_forget(op->queue, key);
		if (pass->then == HF_THEN_STEP)
			hf_queue_add(op->queue, key);
	} else if (pass->retry_after > 0) {
		hf_queue_add_after(op->queue, key, pass->retry_after);
	} else {
		hf_queue_retry(op->queue, key);
	}
	if (pass->status_due != HF_TIME_NONE)
		hf_queue_add_after(op->queue, key, pass->status_due - hf_loop_mono(op->loop));
	if (pass->progress >= HF_PROGRESS_PLANNED && pass->plan.wake_at != HF_TIME_NEVER) {
		hf_time after = pass->plan.wake_at - hf_operator_now(op);

		hf_queue_add_after(op->queue, key, after < WAKE_MIN ? WAKE_MIN : after);
	}
}

static void tell_passed(const struct hf_pass *pass)
{
	const struct hf_operator_pass done = {
		.framework = pass->kind->framework,
		.job = pass->job,
		.plan = pass->progress >= HF_PROGRESS_PLANNED ? &pass->plan : NULL,
		.told = pass->progress == HF_PROGRESS_REPORTED,
		.code = pass->code,
		.message = pass->message,
		.gone = !hf_pass_has_job(pass),
	};

	if (pass->op->options.passed != NULL)
		pass->op->options.passed(pass->op->options.arg, &done);
}

static void count_busy_pass(const struct hf_pass *pass)
{
	struct hf_job_state *state = pass->state;

	if (pass->n_calls == 0 && pass->patch == NULL && pass->ledger_patch == NULL)
		return;
	if (state->busy_passes == 0 || pass->began >= state->busy_since + BUSY_TIME) {
		state->busy_since = pass->began;
		state->busy_passes = 0;
	}
	state->busy_passes++;
}

/* How long the job rests before its next pass; 0: not at all. */
static hf_time find_rest(const struct hf_operator *op, const char *key)
{
	const struct hf_job_state *state = hf_map_get(op->states, key);
	hf_time now = hf_loop_mono(op->loop);

	if (state == NULL || state->busy_passes < BUSY_PASSES_MAX ||
	    now >= state->busy_since + BUSY_TIME)
		return 0;
	return state->busy_since + BUSY_TIME - now;
}

static void end_pass(struct hf_pass *pass)
{
	struct hf_operator *op = pass->op;

	count_busy_pass(pass);

	hf_gate_leave(pass);
	tell_passed(pass);
	if (pass->code != 0)
		hf_operator_problem(op, pass->key, pass->code, pass->message);
	hf_operator_count_pass(op, pass->kind->framework, pass->code,
			       hf_loop_mono(op->loop) - pass->began);
	queue_again(pass);
	HF_AUTOFREE char *key = hf_steal(&pass->key);
	bool routine_owed = pass->state->routine_owed;

	pass->state->routine_owed = false;
	free_pass(pass);
	if (routine_owed)
		hf_operator_enqueue_routine(op, key);
	hf_queue_done(op->queue, key);
	hf_operator_check_stopped(op);
}

/* --- from phase to phase ---------------------------------------------------------------------- */

static void enter_stage(struct hf_pass *pass)
{
	const struct hf_stage *stage = &pass->plan.stages[pass->stage];

	enter_phase(pass, HF_PASS_STAGE);
	pass->calls = HF_ARENA_ARRAY(pass->arena, struct hf_pass_call, stage->actions_len + 1);
	pass->n_calls = stage->actions_len;
	pass->next = 0;
	for (size_t i = 0; i < stage->actions_len; i++)
		pass->calls[i] = (struct hf_pass_call){.pass = pass, .action = &stage->actions[i]};
}

static void enter_first_stage(struct hf_pass *pass)
{
	pass->stage = 0;
	if (pass->plan.stages_len > 0)
		enter_stage(pass);
	else
		enter_phase(pass, HF_PASS_OVER);
}

static bool is_stage_over(const struct hf_pass *pass)
{
	bool all_sent = pass->code != 0 || pass->next == pass->n_calls;

	return pass->n_open == 0 && (pass->op->stopping || (pass->n_unsure == 0 && all_sent));
}

static bool is_request_over(const struct hf_pass *pass)
{
	return pass->request == HF_REQUEST_OVER ||
	       (pass->request == HF_REQUEST_WAITING && pass->op->stopping);
}

static void leave_finished_stages(struct hf_pass *pass)
{
	while (pass->phase == HF_PASS_STAGE && is_stage_over(pass)) {
		hf_report_stage(pass);
		pass->stage++;
		if (pass->code != 0 || pass->op->stopping || pass->stage == pass->plan.stages_len)
			enter_phase(pass, HF_PASS_OVER);
		else
			enter_stage(pass);
	}
}

void hf_pass_advance(struct hf_pass *pass)
{
	bool has_request = pass->phase == HF_PASS_LEDGER || pass->phase == HF_PASS_STATUS ||
			   pass->phase == HF_PASS_READ;

	if (has_request && is_request_over(pass))
		enter_phase(pass, HF_PASS_OVER);
	leave_finished_stages(pass);
	if (pass->phase == HF_PASS_OVER && pass->then == HF_THEN_READ && !pass->op->stopping) {
		pass->then = HF_THEN_END;
		enter_phase(pass, HF_PASS_READ);
	}
	if (pass->phase == HF_PASS_OVER) {
		end_pass(pass);
		return;
	}
	hf_gate_enter(pass);
	hf_gate_open(pass->op);
}

static void note_reply(struct hf_pass *pass, const struct hf_reply *reply)
{
	pass->op->in_flight--;
	hf_operator_heard(pass->op, reply);
	if (reply->retry_after > pass->retry_after)
		pass->retry_after = reply->retry_after;
}

void hf_pass_take_reply(struct hf_pass *pass, const struct hf_reply *reply)
{
	struct hf_operator *op = pass->op;

	pass->n_open--;
	note_reply(pass, reply);
	hf_pass_advance(pass);
	hf_gate_open(op);
}

/* --- the ledger and the status ---------------------------------------------------------------- */

/* Take the answer to the pass's own patch into the cache.  The patch names the version of the job
 * that it was made for.  If the cache still has that version, the answer contains no change by
 * another client. */
static void take_written_job(struct hf_pass *pass, struct hf_doc *object)
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

/* The API server has dropped fields of the ledger.  The same incident would be charged again, so
 * the pass performs no action. */
static void fail_not_kept(struct hf_pass *pass)
{
	static const char text[] =
		"the API server did not store all of this job's status: Holdfast does nothing for "
		"the job until it does (does its CRD lack fields? see holdfast manifests --crds)";

	hf_report_job(pass, true, "StatusNotKept", text);
	hf_pass_fail(pass, HF_E_UNSUPPORTED, text);
}

/* Begin to write the ledger into its annotation.  False: the stored ledger is already equal. */
static bool begin_ledger(struct hf_pass *pass)
{
	struct hf_error err;

	if (hf_ledger_patch(&pass->plan.status.ledger, pass->kind->framework, pass->job,
			    &pass->ledger_patch, &err) != 0) {
		hf_report_job(pass, true, "StatusNotKept", err.text);
		hf_pass_fail(pass, err.code, err.text);
		enter_phase(pass, HF_PASS_OVER);
		return true;
	}
	if (pass->ledger_patch == NULL)
		return false;
	enter_phase(pass, HF_PASS_LEDGER);
	return true;
}

/* Begin to write the status.  False: the stored status is already equal. */
static bool begin_status(struct hf_pass *pass)
{
	struct hf_status status = pass->plan.status;

	/* If the ledger is in the annotation, the status is written without it. */
	if (pass->writes == HF_WRITES_LEDGER)
		status.ledger.kept = true;
	pass->patch = hf_status_patch(pass->job, pass->kind->framework, &status);
	if (pass->patch == NULL)
		return false;
	enter_phase(pass, HF_PASS_STATUS);
	return true;
}

static void begin_actions(struct hf_pass *pass)
{
	hf_report_plan(pass);
	enter_first_stage(pass);
}

/* The order is: ledger, status, actions.  If the process dies between the first two, the ledger is
 * ahead of the status.  The next step then charges nothing twice, because the ledger has the
 * verdict and each success. */
static void begin_writes(struct hf_pass *pass)
{
	if (pass->writes == HF_WRITES_LEDGER && begin_ledger(pass))
		return;
	if (pass->writes != HF_WRITES_NONE && begin_status(pass))
		return;
	begin_actions(pass);
}

static void take_ledger_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_pass *pass = arg;
	struct hf_operator *op = pass->op;

	pass->call = NULL;
	pass->request = HF_REQUEST_OVER;
	note_reply(pass, reply);
	if (reply->code != 0) {
		hf_pass_fail(pass, reply->code, reply->message);
		pass->state->unsure = true;
		pass->then = HF_THEN_READ;
	} else {
		pass->state->unsure = false;
		pass->state->status_written = hf_loop_mono(op->loop);
		take_written_job(pass, reply->object);
		if (!hf_ledger_arrived(pass->ledger_patch, reply->object))
			fail_not_kept(pass);
		else if (!begin_status(pass))
			begin_actions(pass);
	}
	hf_pass_advance(pass);
	hf_gate_open(op);
}

/* The patch of a status carries the ledger, which may also stand in an annotation. */
static bool has_ledger(struct hf_doc *patch)
{
	return hf_json_type(hf_json_path(hf_doc_json(patch), "status", "recovery", NULL)) ==
	       HF_JSON_OBJECT;
}

static void take_good_status(struct hf_pass *pass, struct hf_doc *object)
{
	bool arrived = hf_status_arrived(pass->patch, object);

	hf_pacing_note_written(pass);
	if (arrived && has_ledger(pass->patch))
		pass->kind->keeps = true;
	take_written_job(pass, object);
	if (!arrived && hf_narrow_learn(pass, object)) {
		hf_narrow_tell(pass);
		hf_pass_fail(
			pass, HF_E_UNSUPPORTED,
			pass->kind->narrow
				? "the API server drops status.recovery: Holdfast writes it into "
				  "an annotation from now on"
				: "this API server drops status.recovery, though the CRD has it: "
				  "Holdfast tries again");
		return;
	}
	if (arrived)
		begin_actions(pass);
	else
		fail_not_kept(pass);
}

static void count_status(struct hf_pass *pass, int code)
{
	const char *kind = pass->kind->framework->kind;

	if (pass->op->metrics.status_patches != NULL)
		hf_family_add(pass->op->metrics.status_patches, 1, kind, NULL);
	if (pass->op->metrics.status_conflicts != NULL && code == HF_E_CONFLICT)
		hf_family_add(pass->op->metrics.status_conflicts, 1, kind, NULL);
}

static void take_status_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_pass *pass = arg;
	struct hf_operator *op = pass->op;

	pass->call = NULL;
	pass->request = HF_REQUEST_OVER;
	note_reply(pass, reply);
	count_status(pass, reply->code);
	if (reply->code == 0) {
		take_good_status(pass, reply->object);
	} else {
		hf_pass_fail(pass, reply->code, reply->message);
		/* After a time-out the status may be stored.  After a conflict or "not found" the
		 * cache is behind. */
		pass->state->unsure = true;
		pass->then = HF_THEN_READ;
	}
	hf_pass_advance(pass);
	hf_gate_open(op);
}

/* --- reading the job -------------------------------------------------------------------------- */

static void take_live_job(struct hf_pass *pass, struct hf_doc *object)
{
	free(pass->state->looked);
	pass->state->looked = hf_xstrdup(hf_doc_resource_version(object));
	pass->state->unsure = false;
	pass->state->pods_made = pass->state->services_made = 0;
	hf_cache_put_live(pass->kind->cache, object);
}

/* The failed read replaces the failure of the pass: a conflict is no problem in itself, but a job
 * that cannot be read is. */
static void replace_failure(struct hf_pass *pass, const struct hf_reply *reply)
{
	pass->code = 0;
	hf_pass_fail(pass, reply->code, reply->message);
}

static void take_read_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_pass *pass = arg;
	struct hf_operator *op = pass->op;

	pass->call = NULL;
	pass->request = HF_REQUEST_OVER;
	note_reply(pass, reply);
	if (reply->code == 0)
		take_live_job(pass, reply->object);
	else if (reply->code == HF_E_NOT_FOUND)
		hf_cache_put_gone(pass->kind->cache, hf_doc_namespace(pass->job),
				  hf_doc_name(pass->job), hf_doc_uid(pass->job));
	else
		replace_failure(pass, reply);
	hf_pass_advance(pass);
	hf_gate_open(op);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void send_for_job(struct hf_pass *pass)
{
	bool ledger = pass->phase == HF_PASS_LEDGER, status = pass->phase == HF_PASS_STATUS;
	hf_reply_fn done = ledger   ? take_ledger_reply
			   : status ? take_status_reply
				    : take_read_reply;
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

	pass->request = HF_REQUEST_SENT;
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

void hf_pass_send(struct hf_pass *pass)
{
	if (pass->phase == HF_PASS_STAGE) {
		send_for_stage(pass);
		hf_pass_advance(pass);
	} else {
		send_for_job(pass);
	}
}

/* --- the step --------------------------------------------------------------------------------- */

static int read_job(struct hf_pass *pass, struct hf_error *err)
{
	/* A document that is not JSON would look like a job without fields. */
	if (hf_doc_json(pass->stepped) == NULL)
		return hf_error_set(err, HF_E_UNAVAILABLE,
				    "the API server sent a job that is not JSON: it is read again");
	hf_job_read(pass->stepped, pass->kind->framework, &pass->op->options.settings, pass->arena,
		    NULL, &pass->view);
	/* In a namespace that is being deleted the job counts as deleted, even before it is
	 * marked. */
	if (pass->view.deletion_time == HF_TIME_NONE &&
	    hf_operator_is_ending(pass->op, pass->view.ns))
		pass->view.deletion_time = hf_operator_now(pass->op);
	return 0;
}

static int run_step(struct hf_pass *pass, struct hf_error *err)
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
	struct hf_observed seen;
	int rc;

	for (size_t i = 0; i < HF_EXTRA_KINDS; i++)
		args.extras[i] = op->extras[i].cache;
	hf_extras_start_rare(op, &pass->view);
	hf_observe(&args, pass->arena, &pass->views, &seen);
	pass->state->size = seen.pods_len + seen.services_len;
	rc = hf_job_step(&pass->view, &seen, now, pass->arena, &pass->plan, err);
	if (rc == 0)
		pass->progress = HF_PROGRESS_PLANNED;
	if (rc == 0 && op->facts.asks != NULL)
		hf_asks_set(op->facts.asks, pass->key, pass->view.ns, &pass->plan);
	if (op->metrics.steps != NULL)
		hf_family_observe(op->metrics.steps,
				  (double)(hf_loop_mono(op->loop) - begin) / (double)HF_SECOND,
				  pass->kind->framework->kind, NULL);
	return rc;
}

static bool creates_again(const struct hf_plan *plan, enum hf_action_kind kind, size_t made)
{
	size_t creates = 0;

	for (size_t s = 0; made > 0 && s < plan->stages_len; s++)
		for (size_t i = 0; i < plan->stages[s].actions_len; i++)
			creates += plan->stages[s].actions[i].kind == kind;
	return creates > 0 && made >= 2 * creates;
}

/* Since the last status write, pods or services vanished as soon as they were created.  So the
 * garbage collector may know that the job is gone before this cache does. */
static bool creates_in_vain(const struct hf_pass *pass)
{
	return creates_again(&pass->plan, HF_ACTION_CREATE_POD, pass->state->pods_made) ||
	       creates_again(&pass->plan, HF_ACTION_CREATE_SERVICE, pass->state->services_made);
}

/* A status write without an answer may be stored, and this plan has no guarded write that would
 * find out before the actions. */
static bool acts_unsure(const struct hf_pass *pass)
{
	return pass->state->unsure && !pass->plan.status_changed && pass->plan.stages_len > 0;
}

static void read_instead(struct hf_pass *pass)
{
	pass->then = HF_THEN_STEP;
	enter_phase(pass, HF_PASS_READ);
}

static void begin_pass(struct hf_pass *pass)
{
	struct hf_error err;
	int rc = read_job(pass, &err);

	if (rc == 0 && hf_narrow_must_look(pass)) {
		read_instead(pass);
		return;
	}
	if (rc == 0)
		rc = run_step(pass, &err);
	if (rc != 0) {
		hf_report_job(pass, true, "FailedStep", err.text);
		hf_pass_fail(pass, err.code, err.text);
		enter_phase(pass, HF_PASS_OVER);
		return;
	}
	hf_pacing_note_start(pass);
	pass->status_due = hf_pacing_status_due(pass);
	if (pass->plan.status_changed && pass->status_due == HF_TIME_NONE)
		pass->writes = HF_WRITES_STATUS;
	if (acts_unsure(pass) || (pass->writes == HF_WRITES_NONE && creates_in_vain(pass))) {
		pass->writes = HF_WRITES_NONE;
		read_instead(pass);
	} else if (pass->status_due != HF_TIME_NONE) {
		enter_first_stage(pass);
	} else {
		hf_narrow_begin(pass);
		begin_writes(pass);
	}
}

static struct hf_job_state *find_state(struct hf_operator *op, const char *key)
{
	struct hf_job_state *state = hf_map_get(op->states, key);

	if (state != NULL)
		return state;
	state = hf_xcalloc(1, sizeof(*state));
	hf_pacing_init(state);
	/* The map of states has more room than the queue has keys. */
	bool put = hf_map_put(op->states, key, state);

	hf_assert(put);
	return state;
}

/* Drop a job from the queue: it is gone, or its kind is not running. */
static void skip_job(struct hf_operator *op, const char *key)
{
	const struct hf_job_state *state = hf_map_get(op->states, key);

	if (state != NULL)
		hf_pacing_forget_start(op, state);
	hf_map_remove(op->states, key);
	if (op->facts.asks != NULL)
		hf_asks_forget(op->facts.asks, key);
	hf_queue_forget(op->queue, key);
	hf_queue_done(op->queue, key);
}

static struct hf_pass *create_pass(struct hf_kind *kind, const char *key, struct hf_doc *job)
{
	struct hf_pass *pass = hf_xcalloc(1, sizeof(*pass));

	pass->op = kind->op;
	pass->kind = kind;
	pass->state = find_state(kind->op, key);
	pass->state->pass = pass;
	pass->key = hf_xstrdup(key);
	pass->began = hf_loop_mono(kind->op->loop);
	pass->status_due = HF_TIME_NONE;
	pass->job = hf_doc_ref(job);
	pass->stepped = hf_doc_ref(job);
	pass->arena = hf_arena_create(HF_OPERATOR_PASS_BYTES_MAX);
	/* Room for pods and services of all ranks, as many of former ranks, and those of other
	 * owners. */
	pass->views.len_max = 8 * (size_t)HF_RANKS_MAX;
	return pass;
}

void hf_pass_run(void *arg, const char *key)
{
	struct hf_operator *op = arg;
	HF_AUTOFREE char *ns = NULL;
	const char *name = NULL;
	struct hf_kind *kind = hf_kind_of_key(op, key, &ns, &name);
	const struct hf_cache_entry *entry = hf_cache_get(kind->cache, ns, name);
	struct hf_pass *pass;
	hf_time rest;

	/* If the kind or its extra objects are not known yet, the job is skipped.  All jobs of the
	 * kind are queued when they are. */
	if (entry != NULL && !op->stopping)
		hf_extras_start(op, kind->framework);
	if (entry == NULL || op->stopping || !kind->running ||
	    !hf_extras_synced(op, kind->framework)) {
		if (entry != NULL && kind->running && !op->stopping)
			hf_groups_tell(kind, entry->doc);
		skip_job(op, key);
		return;
	}
	rest = find_rest(op, key);
	if (rest > 0) {
		hf_operator_enqueue_after(op, key, rest);
		hf_queue_done(op->queue, key);
		return;
	}
	pass = create_pass(kind, key, entry->doc);
	begin_pass(pass);
	hf_pass_advance(pass);
}
