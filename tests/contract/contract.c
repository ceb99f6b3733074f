/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Helpers of the contract tests: synchronous requests, bodies from text, minimal objects, and a
 * record of the events of a watch. */
#include "contract/contract.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_BYTES_MAX ((size_t)4 << 20)

void (*contract_moved)(void *arg);
void *contract_moved_arg;

static void note_progress(void)
{
	if (contract_moved)
		contract_moved(contract_moved_arg);
}

/* A cluster creates this ConfigMap in every namespace at an unknown time; the tests ignore it. */
static bool is_made_by_cluster(struct hf_doc *doc)
{
	return hf_streq(hf_doc_name(doc), "kube-root-ca.crt");
}

/* --- outcomes --- */

void outcome_release(struct outcome *o)
{
	hf_doc_unref(o->object);
	for (size_t i = 0; i < o->n_items; i++)
		hf_doc_unref(o->items[i]);
	*o = (struct outcome){0};
}

void outcome_take(void *arg, const struct hf_reply *reply)
{
	struct outcome *o = arg;
	int calls = o->calls;

	note_progress();
	outcome_release(o);
	o->calls = calls + 1;
	o->code = reply->code;
	snprintf(o->message, sizeof(o->message), "%s", reply->message);
	o->object = hf_doc_ref(reply->object);
	for (size_t i = 0; i < reply->n_items && o->n_items < HF_ARRAY_LEN(o->items); i++)
		if (!is_made_by_cluster(reply->items[i]))
			o->items[o->n_items++] = hf_doc_ref(reply->items[i]);
	snprintf(o->version, sizeof(o->version), "%s", reply->resource_version);
	snprintf(o->token, sizeof(o->token), "%s", reply->continue_token);
	o->remaining = reply->remaining;
}

void wait_for(struct world *w, const int *calls, int n)
{
	while (*calls < n)
		if (!w->turn(w) && *calls < n)
			fail_msg("nothing moves: %d of %d came", *calls, n);
}

void settle(struct world *w)
{
	if (w->settle) {
		w->settle(w);
		return;
	}
	while (w->turn(w))
		;
}

int ask(struct world *w, const struct hf_request *request, struct outcome *o)
{
	outcome_release(o);
	hf_store_request(w->store, request, outcome_take, o);
	wait_for(w, &o->calls, 1);
	return o->code;
}

/* --- bodies --- */

HF_PRINTF(1, 0) static struct hf_doc *json_doc_va(const char *text, va_list ap)
{
	struct hf_strbuf sb = HF_STRBUF_INIT(BODY_BYTES_MAX);
	struct hf_error err = {0};
	struct hf_doc *doc = NULL;

	hf_strbuf_vaddf(&sb, text, ap);
	json_text(sb.data);
	const struct hf_json_limits limits = {.bytes_max = BODY_BYTES_MAX};
	assert_ok(hf_doc_parse(sb.data, sb.len, &limits, &doc, &err), &err);
	hf_strbuf_release(&sb);
	return doc;
}

struct hf_doc *json_doc(const char *text, ...)
{
	va_list ap;

	va_start(ap, text);
	struct hf_doc *doc = json_doc_va(text, ap);
	va_end(ap);
	return doc;
}

int create(struct world *w, const struct hf_resource *r, const char *ns, struct outcome *o,
	   const char *text, ...)
{
	va_list ap;

	va_start(ap, text);
	HF_AUTO_DOC body = json_doc_va(text, ap);
	va_end(ap);
	return ask(
		w,
		&(struct hf_request){.verb = HF_VERB_CREATE, .resource = r, .ns = ns, .body = body},
		o);
}

int get(struct world *w, const struct hf_resource *r, const char *ns, const char *name,
	struct outcome *o)
{
	return ask(w,
		   &(struct hf_request){.verb = HF_VERB_GET, .resource = r, .ns = ns, .name = name},
		   o);
}

int update(struct world *w, const struct hf_resource *r, const char *ns, const char *name,
	   struct outcome *o, struct hf_json *object)
{
	HF_AUTO_DOC body = hf_doc_from_json(object);

	return ask(w,
		   &(struct hf_request){.verb = HF_VERB_UPDATE,
					.resource = r,
					.ns = ns,
					.name = name,
					.body = body},
		   o);
}

HF_PRINTF(4, 0)
static int merge_va(struct world *w, const struct hf_request *request, struct outcome *o,
		    const char *text, va_list ap)
{
	HF_AUTO_DOC body = json_doc_va(text, ap);
	struct hf_request with_body = *request;

	with_body.body = body;
	return ask(w, &with_body, o);
}

int merge(struct world *w, struct at at, struct outcome *o, const char *text, ...)
{
	va_list ap;

	va_start(ap, text);
	int code = merge_va(w,
			    &(struct hf_request){.verb = HF_VERB_PATCH,
						 .resource = at.resource,
						 .ns = at.ns,
						 .name = at.name,
						 .patch_type = HF_PATCH_MERGE},
			    o, text, ap);
	va_end(ap);
	return code;
}

int merge_status(struct world *w, struct at at, struct outcome *o, const char *text, ...)
{
	va_list ap;

	va_start(ap, text);
	int code = merge_va(w,
			    &(struct hf_request){.verb = HF_VERB_PATCH,
						 .resource = at.resource,
						 .ns = at.ns,
						 .name = at.name,
						 .subresource = "status",
						 .patch_type = HF_PATCH_MERGE},
			    o, text, ap);
	va_end(ap);
	return code;
}

int erase(struct world *w, const struct hf_resource *r, const char *ns, const char *name,
	  struct outcome *o)
{
	return ask(w,
		   &(struct hf_request){.verb = HF_VERB_DELETE,
					.resource = r,
					.ns = ns,
					.name = name,
					.grace_seconds = HF_GRACE_DEFAULT},
		   o);
}

int list(struct world *w, const struct hf_resource *r, const char *ns, struct outcome *o)
{
	return ask(w, &(struct hf_request){.verb = HF_VERB_LIST, .resource = r, .ns = ns}, o);
}

/* --- objects --- */

const char *fresh_namespace(struct world *w)
{
	static char name[64];
	AUTO_OUTCOME o = {0};

	snprintf(name, sizeof(name), "contract-%d", ++w->serial);
	assert_int_equal(create(w, &hf_namespaces, NULL, &o,
				"{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'%s'}}",
				name),
			 0);
	return name;
}

int create_configmap(struct world *w, const char *ns, const char *name, struct outcome *o)
{
	return create(w, &hf_configmaps, ns, o,
		      "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'%s',"
		      "'labels':{'app':'%s'}},'data':{'k':'v'}}",
		      name, name);
}

int create_pod(struct world *w, const char *ns, const char *name, struct outcome *o)
{
	/* No scheduler has this name, so the pod stays where a test puts it. */
	return create(w, &hf_pods, ns, o,
		      "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s',"
		      "'labels':{'app':'%s'}},'spec':{'schedulerName':'nobody',"
		      "'terminationGracePeriodSeconds':20,"
		      "'containers':[{'name':'c','image':'i'}]}}",
		      name, name);
}

int create_job(struct world *w, const char *ns, const char *name, struct outcome *o)
{
	return create(w, &hf_pytorchjobs, ns, o,
		      "{'apiVersion':'kubeflow.org/v1','kind':'PyTorchJob','metadata':{"
		      "'name':'%s'},'spec':{'pytorchReplicaSpecs':{'Worker':{'replicas':2,"
		      "'template':{'spec':{'containers':[{'name':'pytorch','image':'i'}]}}}}}}",
		      name);
}

void bind_pod(struct world *w, const char *ns, const char *name, const char *node)
{
	AUTO_OUTCOME o = {0};
	HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'Binding','metadata':{'name':'%s'},"
				    "'target':{'apiVersion':'v1','kind':'Node','name':'%s'}}",
				    name, node);

	assert_int_equal(ask(w,
			     &(struct hf_request){.verb = HF_VERB_CREATE,
						  .resource = &hf_pods,
						  .ns = ns,
						  .name = name,
						  .subresource = "binding",
						  .body = body},
			     &o),
			 0);
}

static const struct hf_json *value_at(const struct outcome *o, const char *path)
{
	HF_AUTOFREE char *copy = hf_xstrdup(path);
	const struct hf_json *value = hf_doc_json(o->object);
	char *rest = copy;

	for (char *key; (key = strsep(&rest, "."));)
		value = *key >= '0' && *key <= '9' ? hf_json_item(value, (size_t)(*key - '0'))
						   : hf_json_get(value, key);
	return value;
}

const char *text_at(const struct outcome *o, const char *path)
{
	return hf_json_str(value_at(o, path), "");
}

int64_t number_at(const struct outcome *o, const char *path)
{
	return hf_json_i64(value_at(o, path), INT64_MIN);
}

bool has(const struct outcome *o, const char *path)
{
	return value_at(o, path) != NULL;
}

/* --- watches --- */

void seen_take(void *arg, const struct hf_event *event)
{
	struct seen *s = arg;

	note_progress();
	assert_false(s->ended);
	if (event->type == HF_EVENT_ENDED) {
		s->ended = true;
		s->end_code = event->code;
		return;
	}
	if (is_made_by_cluster(event->object))
		return;
	assert_true(s->n < SEEN_MAX);
	s->events[s->n].type = event->type;
	s->events[s->n].object = hf_doc_ref(event->object);
	s->events[s->n].initial_end = event->initial_end;
	snprintf(s->events[s->n].name, sizeof(s->events[0].name), "%s", hf_doc_name(event->object));
	snprintf(s->events[s->n].version, sizeof(s->events[0].version), "%s",
		 event->resource_version);
	s->n++;
	if (s->stop_after && s->n == s->stop_after)
		s->watch = hf_watch_stop(s->watch);
}

void seen_start(struct world *w, struct seen *s, const struct hf_watch_options *options)
{
	s->watch = hf_store_watch(w->store, options, seen_take, s);
}

void seen_release(struct seen *s)
{
	hf_watch_stop(s->watch);
	for (int i = 0; i < s->n; i++)
		hf_doc_unref(s->events[i].object);
	*s = (struct seen){0};
}

void wait_events(struct world *w, struct seen *s, int n)
{
	wait_for(w, &s->n, n);
}

void wait_ended(struct world *w, struct seen *s)
{
	while (!s->ended)
		if (!w->turn(w) && !s->ended)
			fail_msg("the watch does not end");
}

const char *seen_text(const struct seen *s)
{
	static char text[4096];
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < s->n && len < sizeof(text) - 80; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%c:%s", i ? " " : "",
					"AMDB"[s->events[i].type], s -> events[i].name);
	return text;
}
