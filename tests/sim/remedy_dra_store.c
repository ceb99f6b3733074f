/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/front_store.h"
#include "sim/remedy_dra_store.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"
#include "json/patch.h"
#include "loop/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hf_store_ops watch_ops;

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

static void answer(struct dra *dra, struct front_call *call, int code, struct hf_doc *object)
{
	if (dra->loses)
		front_answer(call, HF_E_UNAVAILABLE, NULL);
	else
		front_answer(call, code, object);
}

static void answer_rules(struct dra *dra, struct front_call *call)
{
	char version[32];

	snprintf(version, sizeof(version), "%lld", (long long)++dra->version);
	front_answer_list(call, dra->rules, dra->rules_len, version);
}

/* Lists the slices of the node in the field selector. */
static void answer_slices(struct dra *dra, struct front_call *call)
{
	struct hf_doc *items[DRA_OBJECTS_MAX];
	const char *node = strchr(call->field_selector, '=');
	char version[32];
	size_t len = 0;

	snprintf(version, sizeof(version), "%lld", (long long)++dra->version);
	for (size_t i = 0; i < dra->slices_len; i++)
		if (hf_streq(
			    hf_json_path_str(hf_doc_json(dra->slices[i]), "spec", "nodeName", NULL),
			    node == NULL ? "" : node + 1))
			items[len++] = dra->slices[i];
	front_answer_list(call, items, len, version);
}

static void create_rule(struct dra *dra, struct front_call *call)
{
	struct hf_doc *doc;

	if (find_rule(dra, hf_doc_name(call->body)) < dra->rules_len) {
		answer(dra, call, HF_E_EXISTS, NULL);
		return;
	}
	check_rule(dra, hf_doc_json(call->body));
	hf_assert(dra->rules_len < DRA_OBJECTS_MAX);
	dra->creates++;
	doc = dra->rules[dra->rules_len++] = stamp(dra, hf_doc_copy_json(call->body), NULL);
	tell_watches(dra, HF_EVENT_ADDED, doc);
	tell_put(dra, doc);
	answer(dra, call, 0, doc);
}

static void change_rule(struct dra *dra, struct front_call *call, size_t at)
{
	struct hf_doc *old = dra->rules[at];
	const char *guard =
		hf_json_path_str(hf_doc_json(call->body), "metadata", "resourceVersion", NULL);

	if (!hf_streq(guard, hf_doc_resource_version(old))) {
		answer(dra, call, HF_E_CONFLICT, NULL);
		return;
	}
	dra->changes++;
	replace_rule(dra, at, call->body);
	tell_put(dra, dra->rules[at]);
	answer(dra, call, 0, dra->rules[at]);
}

static void delete_rule(struct dra *dra, struct front_call *call, size_t at)
{
	if (!hf_streq(call->uid, hf_doc_uid(dra->rules[at]))) {
		answer(dra, call, HF_E_CONFLICT, NULL);
		return;
	}
	dra->deletes++;
	remove_rule(dra, at);
	answer(dra, call, 0, NULL);
}

/* Refuses the request, or loses its reply: then the request is done, and its sender learns nothing. */
static bool lose_some(struct dra *dra)
{
	dra->loses = dra->lose_permille > 0 && hf_rng_below(dra->rng, 1000) < dra->lose_permille;
	return dra->loses && hf_rng_below(dra->rng, 2) == 0;
}

static void answer_request(void *arg, struct front_call *call)
{
	struct dra *dra = arg;
	bool rules = hf_streq(call->plural, "devicetaintrules");
	size_t at = find_rule(dra, call->name);

	if (lose_some(dra))
		answer(dra, call, 0, NULL);
	else if (rules && !hf_streq(call->version, dra->serves))
		answer(dra, call, HF_E_NOT_FOUND, NULL);
	else if (call->verb == HF_VERB_LIST && dra->loses)
		answer(dra, call, 0, NULL);
	else if (call->verb == HF_VERB_LIST && rules)
		answer_rules(dra, call);
	else if (call->verb == HF_VERB_LIST)
		answer_slices(dra, call);
	else if (dra->refuse_rules != 0)
		answer(dra, call, dra->refuse_rules, NULL);
	else if (call->verb == HF_VERB_CREATE)
		create_rule(dra, call);
	else if (at == dra->rules_len)
		answer(dra, call, HF_E_NOT_FOUND, NULL);
	else if (call->verb == HF_VERB_PATCH)
		change_rule(dra, call, at);
	else
		delete_rule(dra, call, at);
}

/* ---- the store ------------------------------------------------------------------------------------ */

static struct hf_watch *watch(void *arg, hf_event_fn fn, void *fn_arg)
{
	struct dra *dra = arg;
	struct dra_watch *w;
	size_t at = 0;

	while (at < DRA_WATCHES_MAX && dra->watches[at] != NULL)
		at++;
	hf_assert(at < DRA_WATCHES_MAX);
	w = dra->watches[at] = hf_xcalloc(1, sizeof(*w));
	w->base.ops = &watch_ops;
	w->dra = dra;
	w->fn = fn;
	w->arg = fn_arg;
	return &w->base;
}

static void watch_stop(struct hf_watch *base)
{
	struct dra_watch *w = (struct dra_watch *)base;

	for (size_t i = 0; i < DRA_WATCHES_MAX; i++)
		if (w->dra->watches[i] == w)
			w->dra->watches[i] = NULL;
	free(w);
}

static const struct hf_store_ops watch_ops = {.name = "dra", .watch_stop = watch_stop};

static struct hf_store *wrap(void *arg, struct hf_store *inner)
{
	struct dra *dra = arg;
	const struct front_options options = {.loop = dra->loop,
					      .group = "resource.k8s.io",
					      .delay = &dra->delay,
					      .answer = answer_request,
					      .watch = watch,
					      .arg = dra};

	return front_store_create(&options, inner);
}

static void destroy(void *arg)
{
	struct dra *dra = arg;

	assert_string_equal(dra->broken, "");
	while (dra->rules_len > 0)
		hf_doc_unref(dra->rules[--dra->rules_len]);
	while (dra->slices_len > 0)
		hf_doc_unref(dra->slices[--dra->slices_len]);
	free(dra);
}

struct dra *dra_create(struct rw *w)
{
	struct dra *dra = hf_xcalloc(1, sizeof(*dra));

	dra->loop = w->loop;
	dra->serves = "v1";
	dra->delay = HF_MS;
	w->wrap = wrap;
	w->wrap_arg = dra;
	rw_at_end(w, destroy, dra);
	return dra;
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

const char *dra_mark_of(struct rw *w, const char *name)
{
	return hf_str_or(hf_json_path_str(rw_get(w, &hf_nodes, NULL, name), "metadata",
					  "annotations", "holdfast.dev/quarantine", NULL),
			 "");
}

bool dra_is_marked(struct rw *w, const char *name)
{
	return *dra_mark_of(w, name) != '\0';
}

const char *dra_devices_out(struct rw *w, const char *name)
{
	return hf_str_or(hf_json_path_str(rw_get(w, &hf_devicehealths, NULL, name), "metadata",
					  "annotations", "holdfast.dev/devices-out", NULL),
			 "");
}
