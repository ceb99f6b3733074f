/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_dra_store.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"
#include "json/patch.h"
#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dra_store {
	struct hf_store base; /* first */
	struct dra *dra;
	struct hf_store *inner;
	struct dra_call *calls[DRA_CALLS_MAX];
};

struct dra_call {
	struct hf_call base; /* first */
	struct dra_store *store;
	struct hf_timer *timer;
	enum hf_verb verb;
	bool rules, lost, refused;
	char version[16], name[254], node[254], uid[64];
	struct hf_doc *body;
	hf_reply_fn done;
	void *arg;
};

static const struct hf_store_ops ops;

/* ---- objects -------------------------------------------------------------------------------------- */

static void tell_watches(struct dra *dra, enum hf_event_type type, struct hf_doc *doc)
{
	const struct hf_event event = {
		.type = type, .object = doc, .resource_version = hf_doc_resource_version(doc)};

	for (size_t i = 0; i < DRA_WATCHES_MAX; i++)
		if (dra->watches[i] != NULL)
			dra->watches[i]->fn(dra->watches[i]->arg, &event);
}

static struct hf_doc *stamp(struct dra *dra, struct hf_json *json, const char *uid)
{
	struct hf_json *metadata = hf_json_ensure_object(json, "metadata");
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)++dra->version);
	hf_json_set_str(metadata, "resourceVersion", text);
	if (uid == NULL)
		snprintf(text, sizeof(text), "rule-%lld", (long long)dra->version);
	hf_json_set_str(metadata, "uid", uid != NULL ? uid : text);
	return hf_doc_from_json(json);
}

static size_t find_rule(const struct dra *dra, const char *name)
{
	size_t i = 0;

	while (i < dra->rules_len && !hf_streq(hf_doc_name(dra->rules[i]), name))
		i++;
	return i;
}

/* Notes a broken promise if the rule does not select exactly one device, or if another rule selects the same
 * device. */
static void check_rule(struct dra *dra, const struct hf_json *rule)
{
	static const char *const keys[] = {"driver", "pool", "device"};
	const struct hf_json *selector = hf_json_path(rule, "spec", "deviceSelector", NULL);

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++)
		if (hf_str_is_empty(hf_json_path_str(selector, keys[i], NULL)))
			snprintf(dra->broken, sizeof(dra->broken), "a rule has no %s", keys[i]);
	for (size_t i = 0; i < dra->rules_len; i++)
		if (hf_json_equal(selector, hf_json_path(hf_doc_json(dra->rules[i]), "spec",
							 "deviceSelector", NULL)))
			snprintf(dra->broken, sizeof(dra->broken), "a device has two rules");
}

static void remove_rule(struct dra *dra, size_t at)
{
	struct hf_doc *doc = dra->rules[at], *gone;
	struct hf_json *json = hf_doc_copy_json(doc);

	dra->rules[at] = dra->rules[--dra->rules_len];
	gone = stamp(dra, json, hf_doc_uid(doc));
	tell_watches(dra, HF_EVENT_DELETED, gone);
	hf_doc_unref(gone);
	hf_doc_unref(doc);
}

void dra_remove_rule(struct dra *dra, size_t at)
{
	hf_assert(at < dra->rules_len);
	remove_rule(dra, at);
}

void dra_publish(struct dra *dra, const char *node, const char *text)
{
	for (size_t i = 0; i < dra->slices_len; i++)
		if (hf_streq(
			    hf_json_path_str(hf_doc_json(dra->slices[i]), "spec", "nodeName", NULL),
			    node)) {
			hf_doc_unref(dra->slices[i]);
			dra->slices[i--] = dra->slices[--dra->slices_len];
		}
	if (text != NULL)
		dra_publish_more(dra, text);
}

void dra_publish_more(struct dra *dra, const char *text)
{
	hf_assert(dra->slices_len < DRA_OBJECTS_MAX);
	dra->slices[dra->slices_len++] = json_doc_of(text);
}

static void replace_rule(struct dra *dra, size_t at, struct hf_doc *patch)
{
	struct hf_doc *old = dra->rules[at];

	dra->rules[at] = stamp(dra, hf_json_merge_patch(hf_doc_json(old), hf_doc_json(patch)),
			       hf_doc_uid(old));
	hf_doc_unref(old);
	tell_watches(dra, HF_EVENT_MODIFIED, dra->rules[at]);
}

void dra_edit_rule(struct dra *dra, size_t at, const char *text)
{
	HF_AUTO_DOC patch = json_doc_of(text);

	hf_assert(at < dra->rules_len);
	replace_rule(dra, at, patch);
}

static void tell_put(struct dra *dra, struct hf_doc *rule)
{
	if (dra->put != NULL)
		dra->put(dra->put_arg, hf_doc_json(rule));
}

/* ---- answers -------------------------------------------------------------------------------------- */

static void answer(struct dra_call *call, int code, struct hf_doc *object)
{
	if (call->lost) {
		code = HF_E_UNAVAILABLE;
		object = NULL;
	}
	const struct hf_reply reply = {.code = code,
				       .message = code == 0 ? "" : "as the test wants it",
				       .object = object,
				       .resource_version = "",
				       .continue_token = "",
				       .server_time = HF_TIME_NONE};

	call->done(call->arg, &reply);
}

static void answer_list(struct dra_call *call)
{
	struct dra *dra = call->store->dra;
	struct hf_doc *items[DRA_OBJECTS_MAX];
	char version[32];
	struct hf_reply reply = {.message = "",
				 .items = items,
				 .resource_version = version,
				 .continue_token = "",
				 .remaining = -1,
				 .server_time = HF_TIME_NONE};

	if (call->lost) {
		answer(call, 0, NULL);
		return;
	}
	snprintf(version, sizeof(version), "%lld", (long long)++dra->version);
	for (size_t i = 0; call->rules && i < dra->rules_len; i++)
		items[reply.n_items++] = dra->rules[i];
	for (size_t i = 0; !call->rules && i < dra->slices_len; i++)
		if (hf_streq(
			    hf_json_path_str(hf_doc_json(dra->slices[i]), "spec", "nodeName", NULL),
			    call->node))
			items[reply.n_items++] = dra->slices[i];
	call->done(call->arg, &reply);
}

static void create_rule(struct dra_call *call)
{
	struct dra *dra = call->store->dra;
	struct hf_doc *doc;

	if (find_rule(dra, hf_doc_name(call->body)) < dra->rules_len) {
		answer(call, HF_E_EXISTS, NULL);
		return;
	}
	check_rule(dra, hf_doc_json(call->body));
	hf_assert(dra->rules_len < DRA_OBJECTS_MAX);
	dra->creates++;
	doc = dra->rules[dra->rules_len++] = stamp(dra, hf_doc_copy_json(call->body), NULL);
	tell_watches(dra, HF_EVENT_ADDED, doc);
	tell_put(dra, doc);
	answer(call, 0, doc);
}

static void change_rule(struct dra_call *call, size_t at)
{
	struct dra *dra = call->store->dra;
	struct hf_doc *old = dra->rules[at];
	const char *guard =
		hf_json_path_str(hf_doc_json(call->body), "metadata", "resourceVersion", NULL);

	if (!hf_streq(guard, hf_doc_resource_version(old))) {
		answer(call, HF_E_CONFLICT, NULL);
		return;
	}
	dra->changes++;
	replace_rule(dra, at, call->body);
	tell_put(dra, dra->rules[at]);
	answer(call, 0, dra->rules[at]);
}

static void delete_rule(struct dra_call *call, size_t at)
{
	struct dra *dra = call->store->dra;

	if (!hf_streq(call->uid, hf_doc_uid(dra->rules[at]))) {
		answer(call, HF_E_CONFLICT, NULL);
		return;
	}
	dra->deletes++;
	remove_rule(dra, at);
	answer(call, 0, NULL);
}

static void forget_call(struct dra_call *call)
{
	for (size_t i = 0; i < DRA_CALLS_MAX; i++)
		if (call->store->calls[i] == call)
			call->store->calls[i] = NULL;
}

static void free_call(struct dra_call *call)
{
	hf_timer_destroy(call->timer);
	hf_doc_unref(call->body);
	free(call);
}

/* Refuses the request, or loses its reply: then the request is done, and its sender learns nothing. */
static void lose_some(struct dra_call *call)
{
	const struct dra *dra = call->store->dra;

	if (dra->lose_permille == 0 || hf_rng_below(dra->rng, 1000) >= dra->lose_permille)
		return;
	call->lost = true;
	call->refused = hf_rng_below(dra->rng, 2) == 0;
}

static void on_due(void *arg)
{
	struct dra_call *call = arg;
	struct dra *dra = call->store->dra;
	size_t at = find_rule(dra, call->name);

	forget_call(call);
	lose_some(call);
	if (call->refused)
		answer(call, 0, NULL);
	else if (call->rules && !hf_streq(call->version, dra->serves))
		answer(call, HF_E_NOT_FOUND, NULL);
	else if (call->verb == HF_VERB_LIST)
		answer_list(call);
	else if (dra->refuse_rules != 0)
		answer(call, dra->refuse_rules, NULL);
	else if (call->verb == HF_VERB_CREATE)
		create_rule(call);
	else if (at == dra->rules_len)
		answer(call, HF_E_NOT_FOUND, NULL);
	else if (call->verb == HF_VERB_PATCH)
		change_rule(call, at);
	else
		delete_rule(call, at);
	free_call(call);
}

/* ---- the store ------------------------------------------------------------------------------------ */

static struct hf_call *request(struct hf_store *base, const struct hf_request *r, hf_reply_fn done,
			       void *arg)
{
	struct dra_store *store = (struct dra_store *)base;
	struct dra_call *call;
	size_t at = 0;

	if (!hf_streq(r->resource->group, "resource.k8s.io"))
		return hf_store_request(store->inner, r, done, arg);
	while (at < DRA_CALLS_MAX && store->calls[at] != NULL)
		at++;
	hf_assert(at < DRA_CALLS_MAX);
	call = store->calls[at] = hf_xcalloc(1, sizeof(*call));
	call->base.ops = &ops;
	call->store = store;
	call->verb = r->verb;
	call->rules = hf_streq(r->resource->plural, "devicetaintrules");
	call->body = r->body == NULL ? NULL : hf_doc_ref(r->body);
	call->done = done;
	call->arg = arg;
	snprintf(call->version, sizeof(call->version), "%s", r->resource->version);
	snprintf(call->name, sizeof(call->name), "%s", hf_str_or(r->name, ""));
	snprintf(call->uid, sizeof(call->uid), "%s", hf_str_or(r->precondition_uid, ""));
	if (r->field_selector != NULL && hf_str_has_prefix(r->field_selector, "spec.nodeName="))
		snprintf(call->node, sizeof(call->node), "%s",
			 r->field_selector + strlen("spec.nodeName="));
	call->timer = hf_timer_create(store->dra->loop, on_due, call);
	hf_timer_arm(call->timer, store->dra->delay);
	return &call->base;
}

static void cancel(struct hf_call *base)
{
	struct dra_call *call = (struct dra_call *)base;

	forget_call(call);
	free_call(call);
}

static struct hf_watch *watch(struct hf_store *base, const struct hf_watch_options *options,
			      hf_event_fn fn, void *arg)
{
	struct dra_store *store = (struct dra_store *)base;
	struct dra_watch *w;
	size_t at = 0;

	if (!hf_streq(options->resource->group, "resource.k8s.io"))
		return hf_store_watch(store->inner, options, fn, arg);
	while (at < DRA_WATCHES_MAX && store->dra->watches[at] != NULL)
		at++;
	hf_assert(at < DRA_WATCHES_MAX);
	w = store->dra->watches[at] = hf_xcalloc(1, sizeof(*w));
	w->base.ops = &ops;
	w->store = store;
	w->fn = fn;
	w->arg = arg;
	return &w->base;
}

static void watch_stop(struct hf_watch *base)
{
	struct dra_watch *w = (struct dra_watch *)base;

	for (size_t i = 0; i < DRA_WATCHES_MAX; i++)
		if (w->store->dra->watches[i] == w)
			w->store->dra->watches[i] = NULL;
	free(w);
}

static void destroy(struct hf_store *base)
{
	struct dra_store *store = (struct dra_store *)base;

	for (size_t i = 0; i < DRA_CALLS_MAX; i++)
		if (store->calls[i] != NULL)
			free_call(store->calls[i]);
	hf_store_destroy(store->inner);
	free(store);
}

static const struct hf_store_ops ops = {.name = "dra",
					.request = request,
					.cancel = cancel,
					.watch = watch,
					.watch_stop = watch_stop,
					.destroy = destroy};

struct hf_store *dra_wrap(struct dra *dra, struct hf_store *inner)
{
	struct dra_store *store = hf_xcalloc(1, sizeof(*store));

	store->base.ops = &ops;
	store->dra = dra;
	store->inner = inner;
	return &store->base;
}

struct dra *dra_create(struct hf_loop *loop)
{
	struct dra *dra = hf_xcalloc(1, sizeof(*dra));

	dra->loop = loop;
	dra->serves = "v1";
	dra->delay = HF_MS;
	return dra;
}

void dra_destroy(struct dra *dra)
{
	while (dra->rules_len > 0)
		hf_doc_unref(dra->rules[--dra->rules_len]);
	while (dra->slices_len > 0)
		hf_doc_unref(dra->slices[--dra->slices_len]);
	free(dra);
}

/* ---- looking -------------------------------------------------------------------------------------- */

static const struct hf_json *rule_of(const struct dra *dra, const char *node)
{
	for (size_t i = 0; i < dra->rules_len; i++)
		if (hf_streq(hf_json_path_str(hf_doc_json(dra->rules[i]), "metadata", "annotations",
					      "holdfast.dev/node", NULL),
			     node))
			return hf_doc_json(dra->rules[i]);
	return NULL;
}

const char *dra_device_of(const struct dra *dra, const char *node)
{
	return hf_str_or(
		hf_json_path_str(rule_of(dra, node), "spec", "deviceSelector", "device", NULL), "");
}

const char *dra_effect_of(const struct dra *dra, const char *node)
{
	return hf_str_or(hf_json_path_str(rule_of(dra, node), "spec", "taint", "effect", NULL), "");
}
