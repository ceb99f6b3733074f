/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "mend/mend_internal.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "health/mend_steps.h"
#include "store/resource.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/*
 * Performs one act in this order: read, check, prepare, write the intent, act, write the result.  The write of the
 * intent is guarded by the object's resourceVersion, so of any number of actors at most one writes it.  Only the
 * process that wrote the intent acts.
 */

#define ARENA_BYTES_MAX ((size_t)1 << 20)
#define BOOT_ID_BYTES_MAX 64
#define ACTOR_DIGITS 32
#define RESULT_TRIES_MAX 5
#define RESULT_RETRY_EVERY (2 * HF_SECOND)

struct actor {
	const struct hf_mend_options *options;
	struct hf_arena *arena;
	struct hf_remediation remediation;
	char boot_id[BOOT_ID_BYTES_MAX];
	char id[ACTOR_DIGITS + 1];
	struct hf_remediation_act act; /* as written last */
};

/* ---- requests --------------------------------------------------------------------------------- */

struct waiting {
	struct hf_loop *loop;
	bool over;
	struct hf_error err;
	struct hf_doc *object;
};

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct waiting *waiting = arg;

	waiting->over = true;
	if (reply->code != 0)
		(void)hf_error_set(&waiting->err, reply->code, "%s", reply->message);
	else
		waiting->object = hf_doc_ref(reply->object);
	hf_loop_stop(waiting->loop);
}

/* Sends a request, and reads the Remediation in the reply. */
static int request_object(struct actor *actor, const struct hf_request *request,
			  struct hf_error *err)
{
	struct waiting waiting = {.loop = actor->options->loop};
	struct hf_remediation read;
	int rc;

	(void)hf_store_request(actor->options->store, request, on_reply, &waiting);
	while (!waiting.over)
		hf_loop_run(actor->options->loop);
	rc = waiting.err.code;
	if (rc != 0) {
		if (err != NULL)
			*err = waiting.err;
		return rc;
	}
	if (waiting.object == NULL)
		return hf_error_set(err, HF_E_BAD_REQUEST, "the API server's reply has no object");
	rc = hf_remediation_read(waiting.object, actor->arena, &read, err);
	hf_doc_unref(waiting.object);
	if (rc == 0)
		actor->remediation = read;
	return rc;
}

static int read_object(struct actor *actor, struct hf_error *err)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_remediations, .name = actor->options->name};
	int rc = request_object(actor, &request, err);

	return rc != 0 ? hf_error_wrap(err, "cannot read remediation '%s'", actor->options->name)
		       : 0;
}

/* Writes status.act, and the phase with it; phase NULL: the phase stays as it is. */
static int write_act(struct actor *actor, const char *phase, const struct hf_mend_reset *reset,
		     struct hf_error *err)
{
	const struct hf_remediation_act_write write = {
		.resource_version = actor->remediation.resource_version,
		.phase = phase,
		.act = &actor->act,
		.persistence = reset != NULL ? reset->persistence : NULL,
		.persistence_len = reset != NULL ? reset->persistence_len : 0,
	};
	HF_AUTO_DOC body = hf_doc_from_json(hf_remediation_act_patch(&write));
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = &hf_remediations,
					   .name = actor->options->name,
					   .subresource = "status",
					   .patch_type = HF_PATCH_MERGE,
					   .field_manager = "holdfast-mend",
					   .body = body};

	return request_object(actor, &request, err);
}

/* ---- checks ----------------------------------------------------------------------------------- */

static int read_boot_id(struct actor *actor, struct hf_error *err)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(BOOT_ID_BYTES_MAX);
	HF_AUTOFREE char *path = hf_xasprintf("%s/sys/kernel/random/boot_id", actor->options->proc);
	int rc = hf_fs_read(path, &text, err);

	if (rc != 0)
		return rc;
	snprintf(actor->boot_id, sizeof(actor->boot_id), "%.*s", (int)strcspn(text.data, "\n"),
		 text.data);
	return actor->boot_id[0] != '\0'
		       ? 0
		       : hf_error_set(err, HF_E_INVALID, "'%s' has no boot ID", path);
}

/* Checks that the object permits the act for the present node, pod and boot. */
static int check_object(const struct actor *actor, struct hf_error *err)
{
	const struct hf_remediation *r = &actor->remediation;
	const struct hf_mend_options *options = actor->options;
	enum hf_mend_phase phase;
	enum hf_mend_rung rung;

	if (!hf_streq(r->spec.node, options->node))
		return hf_error_set(err, HF_E_INVALID, "spec.node is '%s', this node is '%s'",
				    r->spec.node, options->node);
	if (!hf_streq(r->spec.nonce, options->nonce))
		return hf_error_set(err, HF_E_INVALID, "spec.nonce is not the nonce of this pod");
	if (!hf_mend_phase_of(r->status.phase, &phase) || phase != HF_MEND_APPROVED)
		return hf_error_set(err, HF_E_INVALID, "status.phase is '%s', not Approved",
				    hf_str_or(r->status.phase, ""));
	if (r->status.act.started_at != HF_TIME_NONE)
		return hf_error_set(err, HF_E_INVALID,
				    "status.act has begun already: it is not repeated");
	if (r->status.approval.at == HF_TIME_NONE ||
	    !hf_streq(r->status.approval.boot_id, actor->boot_id))
		return hf_error_set(err, HF_E_INVALID,
				    "status.approval.bootID is '%s', this boot is '%s'",
				    hf_str_or(r->status.approval.boot_id, ""), actor->boot_id);
	if (r->spec.cancel || r->spec.dry_run || r->deleting)
		return hf_error_set(err, HF_E_INVALID, "the act was cancelled, or is a dry run");
	if (!hf_mend_rung_of(r->spec.rung, &rung) || !hf_mend_has_actor(rung))
		return hf_error_set(err, HF_E_INVALID,
				    "spec.rung is '%s', which no actor on the node performs",
				    r->spec.rung);
	return 0;
}

/* ---- intent and result ------------------------------------------------------------------------ */

static bool is_our_intent(const struct actor *actor)
{
	return actor->remediation.status.act.started_at != HF_TIME_NONE &&
	       hf_streq(actor->remediation.status.act.actor, actor->id);
}

/* Writes the intent.  Returns 0 only if the stored intent is of this process: the reply to a write can be lost,
 * and then the stored object decides. */
static int write_intent(struct actor *actor, const struct hf_mend_reset *reset,
			struct hf_error *err)
{
	struct hf_error refused;
	int rc = 0;

	hf_error_clear(&refused);
	for (int tries = 0; tries < 2 && rc == 0; tries++) {
		actor->act = (struct hf_remediation_act){
			.nonce = actor->options->nonce,
			.actor = actor->id,
			.started_at = hf_loop_wall(actor->options->loop),
			.ended_at = HF_TIME_NONE,
			.boot_id = actor->boot_id,
		};
		if (write_act(actor, hf_mend_phase_name(HF_MEND_ACTING), reset, &refused) == 0 &&
		    is_our_intent(actor))
			return 0;
		rc = read_object(actor, err);
		if (rc == 0 && is_our_intent(actor))
			return 0;
		if (rc == 0)
			rc = check_object(actor, err);
	}
	/* The object still permits the act, so the API server refused the write for another reason. */
	if (rc == 0 && err != NULL)
		*err = refused;
	return hf_error_wrap(err, "the intent was not written, nothing was done");
}

static void write_result(struct actor *actor, const struct hf_mend_outcome *outcome)
{
	struct hf_error err;

	actor->act.ended_at = hf_loop_wall(actor->options->loop);
	actor->act.tool = outcome->tool;
	actor->act.has_exit_code = true;
	actor->act.exit_code = outcome->exit_code;
	actor->act.message = outcome->message;
	for (int tries = 0; tries < RESULT_TRIES_MAX; tries++) {
		if (write_act(actor, NULL, NULL, &err) == 0)
			return;
		/* The operator has written in between: only the version is old. */
		if (err.code != HF_E_CONFLICT)
			hf_mend_wait(actor->options->loop, RESULT_RETRY_EVERY);
		if (read_object(actor, &err) != 0)
			continue;
		/* The reply was lost. */
		if (is_our_intent(actor) && actor->remediation.status.act.ended_at != HF_TIME_NONE)
			return;
		if (!is_our_intent(actor))
			break;
	}
	hf_log(HF_LOG_ERROR, "mend",
	       "The result of the act could not be written: only the proof decides", "reason",
	       err.text, NULL);
}

static int report_busy(struct actor *actor, struct hf_mend_reset *reset,
		       char message[HF_MEND_TEXT_MAX])
{
	const struct hf_remediation_holder *first = &reset->holders.items[0];
	struct hf_error err;

	snprintf(message, HF_MEND_TEXT_MAX,
		 "%zu process%s kept the devices open: %s (%lld)%s%.200s", reset->holders.total,
		 reset->holders.total == 1 ? "" : "es", first->comm, (long long)first->pid,
		 first->pod != NULL ? " of " : "", hf_str_or(first->pod, ""));
	actor->act = (struct hf_remediation_act){
		.nonce = actor->options->nonce,
		.actor = actor->id,
		.started_at = HF_TIME_NONE,
		.ended_at = hf_loop_wall(actor->options->loop),
		.boot_id = actor->boot_id,
		.message = message,
		.holders = {reset->holders.items, reset->holders.len},
	};
	if (write_act(actor, NULL, NULL, &err) != 0)
		hf_log(HF_LOG_ERROR, "mend", "The names of the busy processes could not be written",
		       "reason", err.text, NULL);
	return HF_MEND_EXIT_BUSY;
}

/* ---- the act ---------------------------------------------------------------------------------- */

static int refuse_act(const struct hf_error *err, char message[HF_MEND_TEXT_MAX])
{
	snprintf(message, HF_MEND_TEXT_MAX, "refused: %s", err->text);
	return HF_MEND_EXIT_REFUSED;
}

/* After the intent the deletion of the pod must not interrupt the act, so SIGTERM and SIGINT are ignored. */
static void hold_signals(void)
{
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
}

static int perform_act(struct actor *actor, struct hf_mend_reset *reset,
		       char message[HF_MEND_TEXT_MAX])
{
	struct hf_mend_outcome outcome;
	struct hf_error err;

	if (reset != NULL && reset->holders.total > 0)
		return report_busy(actor, reset, message);
	if (write_intent(actor, reset, &err) != 0)
		return refuse_act(&err, message);
	hold_signals();
	hf_log(HF_LOG_INFO, "mend", "Acting", "remediation", actor->options->name, "rung",
	       actor->remediation.spec.rung, NULL);
	if (reset != NULL)
		hf_mend_reset_act(actor->options, reset, &outcome);
	else
		hf_mend_reboot_act(actor->options, &outcome);
	write_result(actor, &outcome);
	snprintf(message, HF_MEND_TEXT_MAX, "%s: %.480s", outcome.tool, outcome.message);
	return outcome.exit_code == 0 ? HF_MEND_EXIT_DONE : HF_MEND_EXIT_FAILED;
}

static int run_actor(struct actor *actor, char message[HF_MEND_TEXT_MAX])
{
	const struct hf_mend_options *options = actor->options;
	struct hf_remediation_spec spec;
	struct hf_mend_reset reset;
	struct hf_error err;
	int rc = read_boot_id(actor, &err);
	bool resets;

	if (rc == 0)
		rc = hf_random_hex(actor->id, ACTOR_DIGITS, &err);
	if (rc == 0)
		rc = read_object(actor, &err);
	if (rc == 0)
		rc = check_object(actor, &err);
	if (rc != 0)
		return refuse_act(&err, message);
	/* The spec does not change except for `cancel`, which is checked again before the intent. */
	spec = actor->remediation.spec;
	resets = hf_streq(spec.rung, hf_mend_rung_name(HF_MEND_RESET_DEVICE));
	rc = resets ? hf_mend_reset_prepare(options, &spec, &reset, &err)
		    : hf_mend_reboot_prepare(options, &err);
	if (rc != 0)
		return refuse_act(&err, message);
	return perform_act(actor, resets ? &reset : NULL, message);
}

int hf_mend_run(const struct hf_mend_options *options, char ret_message[HF_MEND_TEXT_MAX])
{
	struct actor actor = {.options = options, .arena = hf_arena_create(ARENA_BYTES_MAX)};
	int rc = run_actor(&actor, ret_message);

	hf_arena_destroy(actor.arena);
	return rc;
}
