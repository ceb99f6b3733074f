/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/pass_internal.h"

#include "api/extra_object.h"
#include "api/pod.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/names.h"
#include "store/resource.h"

#include <stdlib.h>

/*
 * Performs one action of a plan: makes its request, and judges the reply.
 *
 * Input: an action of a stage.  Output: the state of struct hf_pass_call: good, bad or unsure.  A
 * call is unsure if the reply does not show whether the API server carried out the request.  Then
 * the object is read, and the object decides (judge_…_read).  Replies go into the caches at once.
 *
 * Invariant: a request changes only the object with the action's UID.
 */

static const struct hf_resource *resource_of(const struct hf_pass_call *call)
{
	switch (call->action->kind) {
	case HF_ACTION_CREATE_POD:
	case HF_ACTION_DELETE_POD:
	case HF_ACTION_FAIL_POD:
	case HF_ACTION_STOP_POD: return &hf_pods;
	case HF_ACTION_CREATE_SERVICE:
	case HF_ACTION_DELETE_SERVICE: return &hf_services;
	case HF_ACTION_CREATE_EXTRA:
	case HF_ACTION_UPDATE_EXTRA:
	case HF_ACTION_DELETE_EXTRA: return hf_extra_resource(call->action->extra->kind);
	case HF_ACTION_DELETE_JOB: break;
	}
	return call->pass->kind->resource;
}

static struct hf_cache *cache_of(const struct hf_pass_call *call)
{
	const struct hf_resource *resource = resource_of(call);

	if (resource == &hf_pods)
		return call->pass->op->pods.cache;
	if (call->action->extra != NULL)
		return call->pass->op->extras[call->action->extra->kind].cache;
	return resource == &hf_services ? call->pass->op->services.cache : call->pass->kind->cache;
}

static bool is_create(const struct hf_action *action)
{
	return action->kind == HF_ACTION_CREATE_POD || action->kind == HF_ACTION_CREATE_SERVICE ||
	       action->kind == HF_ACTION_CREATE_EXTRA;
}

static void put_gone(const struct hf_pass_call *call)
{
	hf_cache_put_gone(cache_of(call), hf_doc_namespace(call->pass->job), call->action->name,
			  call->action->uid);
}

/* The object is the one that this action wanted to create: owned by the job, not terminating, with
 * the same generation and attempt. */
static bool is_wanted(const struct hf_pass_call *call, struct hf_doc *doc)
{
	const struct hf_action *action = call->action;
	const struct hf_json *annotations =
		hf_json_path(hf_doc_json(doc), "metadata", "annotations", NULL);

	if (!hf_streq(hf_controller_uid(doc, call->pass->arena), hf_doc_uid(call->pass->job)) ||
	    hf_is_terminating(doc, call->pass->arena))
		return false;
	for (size_t i = 0; i < action->edits_len; i++) {
		const struct hf_edit *edit = &action->edits[i];
		bool stamp = edit->kind == HF_EDIT_ANNOTATION &&
			     (hf_streq(edit->name, HF_ANNOTATION_GENERATION) ||
			      hf_streq(edit->name, HF_ANNOTATION_ATTEMPT));
		const char *stored = hf_json_str(hf_json_get(annotations, edit->name), NULL);

		if (stamp && !hf_streq(stored, edit->value))
			return false;
	}
	return true;
}

static void note_good(struct hf_pass_call *call)
{
	const struct hf_action *action = call->action;
	struct hf_tally *tally = &call->pass->tally[action->kind];

	call->state = HF_CALL_GOOD;
	call->pass->state->pods_made += action->kind == HF_ACTION_CREATE_POD;
	call->pass->state->services_made += action->kind == HF_ACTION_CREATE_SERVICE;
	hf_report_extra(call->pass, action);
	if (tally->n < HF_TALLY_NAMES_MAX)
		tally->names[tally->n] = action->name;
	tally->n++;
}

/* The object already was as wanted, so no event is recorded. */
static void good_already(struct hf_pass_call *call)
{
	call->state = HF_CALL_GOOD;
}

static void note_bad(struct hf_pass_call *call, int code, const char *message)
{
	call->state = HF_CALL_BAD;
	hf_pass_fail(call->pass, code, message);
}

static void note_unsure(struct hf_pass_call *call)
{
	call->state = HF_CALL_UNSURE;
	call->pass->n_unsure++;
}

/* --- live reads after a reply that left the outcome open -------------------------------------- */

static void judge_create_read(struct hf_pass_call *call, const struct hf_reply *reply)
{
	if (reply->code == HF_E_NOT_FOUND) {
		note_bad(call, HF_E_TIMEOUT,
			 "the API server did not answer a create, and the object does not exist: "
			 "the operator tries again");
		return;
	}
	hf_cache_put_reply(cache_of(call), reply->object);
	if (is_wanted(call, reply->object))
		note_good(call);
	else
		note_bad(call, HF_E_EXISTS,
			 "the name is taken by another object: the operator tries again when the "
			 "name is free");
	if (call->state == HF_CALL_BAD)
		hf_report_failure(call->pass, call->action, call->pass->message);
}

/* Put the object of a live read into the cache.  False: the name is free, so nothing is left to do.
 * ret_other: the object has another UID than the action names. */
static bool note_read(struct hf_pass_call *call, const struct hf_reply *reply, bool *ret_other)
{
	if (reply->code == HF_E_NOT_FOUND) {
		put_gone(call);
		good_already(call);
		return false;
	}
	*ret_other = !hf_streq(hf_doc_uid(reply->object), call->action->uid);
	if (*ret_other)
		put_gone(call);
	hf_cache_put_reply(cache_of(call), reply->object);
	return true;
}

static void judge_delete_read(struct hf_pass_call *call, const struct hf_reply *reply)
{
	bool other;

	if (!note_read(call, reply, &other))
		return;
	if (!other && hf_is_terminating(reply->object, call->pass->arena))
		good_already(call);
	else
		note_bad(call, HF_E_CONFLICT,
			 "the object changed after the decision to delete it: the operator decides "
			 "again");
}

/* A pod that is gone or has ended need not be marked as failed. */
static void judge_fail_read(struct hf_pass_call *call, const struct hf_reply *reply)
{
	struct hf_pod pod;
	bool other;

	if (!note_read(call, reply, &other))
		return;
	hf_pod_read(reply->object, NULL, call->pass->arena, &pod);
	if (!other && (pod.phase == HF_POD_FAILED || pod.phase == HF_POD_SUCCEEDED))
		good_already(call);
	else
		note_bad(call, HF_E_CONFLICT,
			 "the pod changed after the decision to fail it: the operator decides "
			 "again");
}

/* A pod that is gone or has ended need not be stopped. */
static void judge_stop_read(struct hf_pass_call *call, const struct hf_reply *reply)
{
	struct hf_pod pod;
	bool other;

	if (!note_read(call, reply, &other))
		return;
	hf_pod_read(reply->object, NULL, call->pass->arena, &pod);
	if (other || pod.phase == HF_POD_FAILED || pod.phase == HF_POD_SUCCEEDED)
		good_already(call);
	else if (pod.active_deadline_seconds.set &&
		 pod.active_deadline_seconds.value <= HF_STOP_DEADLINE_SECONDS)
		note_good(call);
	else
		note_bad(call, HF_E_TIMEOUT,
			 "the API server did not answer the stop of a pod, and the pod is "
			 "unchanged: the operator tries again");
}

/* After a live read the next step sees the present object and plans what is missing. */
static void judge_update_read(struct hf_pass_call *call, const struct hf_reply *reply)
{
	struct hf_extra_seen seen;

	if (reply->code == HF_E_NOT_FOUND) {
		put_gone(call);
		note_bad(call, HF_E_CONFLICT,
			 "the object was deleted while the operator changed it: the operator "
			 "decides again");
		return;
	}
	hf_cache_put_reply(cache_of(call), reply->object);
	(void)hf_extra_read(reply->object, call->action->extra->kind, NULL, call->pass->arena,
			    &seen);
	if (hf_streq(seen.uid, call->action->uid) &&
	    seen.digest == hf_extra_digest(call->action->extra))
		note_good(call);
	else
		note_bad(call, HF_E_TIMEOUT,
			 "the API server did not answer a change, and the object is unchanged: the "
			 "operator tries again");
}

static void read_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_pass_call *call = arg;

	call->call = NULL;
	if (reply->code != 0 && reply->code != HF_E_NOT_FOUND)
		note_bad(call, reply->code, reply->message);
	else if (is_create(call->action))
		judge_create_read(call, reply);
	else if (call->action->kind == HF_ACTION_FAIL_POD)
		judge_fail_read(call, reply);
	else if (call->action->kind == HF_ACTION_STOP_POD)
		judge_stop_read(call, reply);
	else if (call->action->kind == HF_ACTION_UPDATE_EXTRA)
		judge_update_read(call, reply);
	else
		judge_delete_read(call, reply);
	hf_pass_take_reply(call->pass, reply);
}

void hf_perform_read(struct hf_pass_call *call)
{
	struct hf_pass *pass = call->pass;
	const struct hf_request request = {
		.verb = HF_VERB_GET,
		.resource = resource_of(call),
		.ns = hf_doc_namespace(pass->job),
		.name = call->action->name,
		.timeout = pass->op->options.request_timeout,
	};

	call->state = HF_CALL_READING;
	call->call = hf_store_request(pass->op->store, &request, read_reply, call);
}

/* --- the action itself ------------------------------------------------------------------------ */

/* The reply does not say whether the request was performed. */
static bool tells_nothing(int code)
{
	return code == HF_E_TIMEOUT || code == HF_E_INTERNAL || code == HF_E_IO ||
	       code == HF_E_CANCELED;
}

/* The namespace is being deleted: it refuses every create and never comes back.  Further tries
 * would only load the API server that is clearing it. */
static bool namespace_ends(const struct hf_reply *reply)
{
	const struct hf_json *causes =
		hf_json_path(hf_doc_json(reply->object), "details", "causes", NULL);

	for (size_t i = 0; reply->code == HF_E_FORBIDDEN && i < hf_json_len(causes); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(causes, i), "reason", NULL),
			     "NamespaceTerminating"))
			return true;
	return false;
}

static bool is_doomed(const struct hf_pass *pass)
{
	return hf_operator_is_ending(pass->op, hf_doc_namespace(pass->job));
}

static void settle_extra(struct hf_pass_call *call, struct hf_doc *object)
{
	if (call->action->extra != NULL)
		hf_extras_settle(call->pass->state, call->action->extra, object, call->pass->arena);
}

static void judge_create(struct hf_pass_call *call, const struct hf_reply *reply)
{
	if (reply->code == 0) {
		settle_extra(call, reply->object);
		hf_cache_put_reply(cache_of(call), reply->object);
		note_good(call);
	} else if (reply->code == HF_E_EXISTS || tells_nothing(reply->code)) {
		note_unsure(call);
	} else {
		/* "not found" may mean that the namespace is gone, and the job with it. */
		if (reply->code == HF_E_NOT_FOUND)
			call->pass->then = HF_THEN_READ;
		if (namespace_ends(reply))
			hf_operator_namespace_ends(call->pass->op,
						   hf_doc_namespace(call->pass->job));
		note_bad(call, reply->code, reply->message);
	}
}

/* The reply to a finished DELETE is a Status, the last object, or, for a pod that had ended, the
 * pod marked with grace 0.  The name is free then, before the watch reports it.  If the DELETE
 * waits for grace or finalizers, the reply is the marked object. */
static void judge_delete(struct hf_pass_call *call, const struct hf_reply *reply)
{
	if (reply->code == HF_E_NOT_FOUND) {
		put_gone(call);
		good_already(call);
	} else if (reply->code == 0) {
		struct hf_doc *object = reply->object;

		if (object != NULL && hf_streq(hf_doc_uid(object), call->action->uid) &&
		    !hf_is_deleted(object, call->pass->arena))
			hf_cache_put_reply(cache_of(call), object);
		else
			put_gone(call);
		note_good(call);
	} else if (reply->code == HF_E_CONFLICT || tells_nothing(reply->code)) {
		note_unsure(call);
	} else {
		note_bad(call, reply->code, reply->message);
	}
}

/* A patch of a pod or of its status. */
static void judge_patch(struct hf_pass_call *call, const struct hf_reply *reply)
{
	if (reply->code == 0) {
		hf_cache_put_reply(cache_of(call), reply->object);
		note_good(call);
	} else if (reply->code == HF_E_NOT_FOUND) {
		put_gone(call);
		good_already(call);
	} else if (reply->code == HF_E_CONFLICT || tells_nothing(reply->code)) {
		note_unsure(call);
	} else {
		note_bad(call, reply->code, reply->message);
	}
}

static void judge_update(struct hf_pass_call *call, const struct hf_reply *reply)
{
	if (reply->code == 0) {
		settle_extra(call, reply->object);
		hf_cache_put_reply(cache_of(call), reply->object);
		note_good(call);
	} else if (reply->code == HF_E_NOT_FOUND) {
		put_gone(call);
		note_bad(call, HF_E_CONFLICT,
			 "the object was deleted while the operator changed it: the operator "
			 "decides again");
	} else if (tells_nothing(reply->code)) {
		note_unsure(call);
	} else {
		note_bad(call, reply->code, reply->message);
	}
}

static void action_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_pass_call *call = arg;

	call->call = NULL;
	if (is_create(call->action))
		judge_create(call, reply);
	else if (call->action->kind == HF_ACTION_FAIL_POD ||
		 call->action->kind == HF_ACTION_STOP_POD)
		judge_patch(call, reply);
	else if (call->action->kind == HF_ACTION_UPDATE_EXTRA)
		judge_update(call, reply);
	else
		judge_delete(call, reply);
	/* No event is recorded in a namespace that is being deleted, because it refuses events
	 * too. */
	if (call->state == HF_CALL_BAD && !is_doomed(call->pass))
		hf_report_failure(call->pass, call->action, reply->message);
	hf_pass_take_reply(call->pass, reply);
}

static int render_body(const struct hf_pass_call *call, struct hf_doc **ret_doc,
		       struct hf_error *err)
{
	const struct hf_pass *pass = call->pass;
	const struct hf_render_args args = {
		.job = pass->stepped,
		.spec = pass->view.spec,
		.framework = pass->kind->framework,
		.settings = &pass->op->options.settings,
		.init_container_template = pass->op->init_container_template,
	};

	if (call->action->kind == HF_ACTION_CREATE_POD)
		return hf_render_pod(&args, call->action, ret_doc, err);
	if (call->action->kind == HF_ACTION_CREATE_EXTRA) {
		*ret_doc = hf_render_extra(&args, call->action);
		return 0;
	}
	*ret_doc = hf_render_service(&args, call->action);
	return 0;
}

void hf_perform_send(struct hf_pass_call *call)
{
	struct hf_pass *pass = call->pass;
	const struct hf_action *action = call->action;
	struct hf_request request = {
		.resource = resource_of(call),
		.ns = hf_doc_namespace(pass->job),
		.timeout = pass->op->options.request_timeout,
	};
	HF_AUTO_DOC body = NULL;
	struct hf_error err;

	if (is_create(action) && is_doomed(pass)) {
		good_already(call);
		return;
	}
	if (is_create(action)) {
		if (render_body(call, &body, &err) != 0) {
			call->state = HF_CALL_BAD;
			hf_pass_fail(pass, err.code, err.text);
			hf_report_failure(pass, action, err.text);
			return;
		}
		request.verb = HF_VERB_CREATE;
		request.body = body;
	} else if (action->kind == HF_ACTION_FAIL_POD) {
		body = hf_fail_pod_patch(action, hf_operator_now(pass->op));
		request.verb = HF_VERB_PATCH;
		request.name = action->name;
		request.subresource = "status";
		request.patch_type = HF_PATCH_STRATEGIC;
		request.body = body;
	} else if (action->kind == HF_ACTION_STOP_POD) {
		body = hf_stop_pod_patch(action);
		request.verb = HF_VERB_PATCH;
		request.name = action->name;
		request.patch_type = HF_PATCH_MERGE;
		request.body = body;
	} else if (action->kind == HF_ACTION_UPDATE_EXTRA) {
		body = hf_doc_from_json(hf_extra_patch(action->extra, action->uid));
		request.verb = HF_VERB_PATCH;
		request.name = action->name;
		request.patch_type = HF_PATCH_JSON;
		request.body = body;
	} else {
		request.verb = HF_VERB_DELETE;
		request.name = action->name;
		request.precondition_uid = action->uid;
		/* Delete only the version of the job that was stepped, because its TTL may have
		 * been extended since. */
		request.precondition_resource_version = action->kind == HF_ACTION_DELETE_JOB
								? hf_doc_resource_version(pass->job)
								: action->resource_version;
		request.grace_seconds =
			action->grace_seconds.set ? action->grace_seconds.value : HF_GRACE_DEFAULT;
		request.propagation = action->kind == HF_ACTION_DELETE_JOB
					      ? HF_PROPAGATE_FOREGROUND
					      : HF_PROPAGATE_BACKGROUND;
	}
	call->state = HF_CALL_SENT;
	call->call = hf_store_request(pass->op->store, &request, action_reply, call);
}
