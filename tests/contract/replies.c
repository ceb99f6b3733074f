/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Contract tests of replies: rules 1 to 7 of src/store/CONTRACT.md. */
#include "contract/contract.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void a_callback_never_runs_inside_the_call(struct world *w)
{
	AUTO_OUTCOME o = {0};
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_namespaces, .name = "default"};

	hf_store_request(w->store, &request, outcome_take, &o);
	assert_int_equal(o.calls, 0);
	wait_for(w, &o.calls, 1);
	assert_int_equal(o.code, 0);
}

static void each_request_gets_one_callback(struct world *w)
{
	struct outcome many[50] = {0};
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_namespaces, .name = "default"};

	for (size_t i = 0; i < HF_ARRAY_LEN(many); i++)
		hf_store_request(w->store, &request, outcome_take, &many[i]);
	for (size_t i = 0; i < HF_ARRAY_LEN(many); i++)
		wait_for(w, &many[i].calls, 1);
	settle(w);
	for (size_t i = 0; i < HF_ARRAY_LEN(many); i++) {
		assert_int_equal(many[i].calls, 1);
		outcome_release(&many[i]);
	}
}

static void a_canceled_request_has_no_callback(struct world *w)
{
	AUTO_OUTCOME canceled = {0};
	AUTO_OUTCOME other = {0};
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_namespaces, .name = "default"};
	struct hf_call *call = hf_store_request(w->store, &request, outcome_take, &canceled);

	hf_store_request(w->store, &request, outcome_take, &other);
	hf_call_cancel(call);
	wait_for(w, &other.calls, 1);
	settle(w);
	assert_int_equal(canceled.calls, 0);
}

struct canceling {
	struct hf_call *victim; /* NULL: its reply has come */
	int calls, victim_calls;
};

static void count_victim_reply(void *arg, const struct hf_reply *reply)
{
	struct canceling *c = arg;

	if (contract_moved)
		contract_moved(contract_moved_arg);
	c->victim_calls++;
	c->victim = NULL;
}

static void cancel_victim(void *arg, const struct hf_reply *reply)
{
	struct canceling *c = arg;

	if (contract_moved)
		contract_moved(contract_moved_arg);
	c->calls++;
	hf_call_cancel(c->victim);
	c->victim = NULL;
}

static void a_callback_may_cancel_another_request(struct world *w)
{
	struct canceling first = {0};
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_namespaces, .name = "default"};

	hf_store_request(w->store, &request, cancel_victim, &first);
	first.victim = hf_store_request(w->store, &request, count_victim_reply, &first);
	wait_for(w, &first.calls, 1);
	/* Requests have no order: the reply of the second one may have come first. */
	int before = first.victim_calls;
	settle(w);
	assert_int_equal(first.victim_calls, before);
}

static void strings_and_documents_may_be_freed_after_the_call(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	char *own_ns = hf_xstrdup(ns);
	struct hf_doc *body = json_doc("{'apiVersion':'v1','kind':'ConfigMap',"
				       "'metadata':{'name':'kept'},'data':{'k':'v'}}");

	hf_store_request(w->store,
			 &(struct hf_request){.verb = HF_VERB_CREATE,
					      .resource = &hf_configmaps,
					      .ns = own_ns,
					      .body = body},
			 outcome_take, &o);
	memset(own_ns, 'x', strlen(own_ns));
	free(own_ns);
	hf_doc_unref(body);
	wait_for(w, &o.calls, 1);
	assert_int_equal(o.code, 0);
	assert_string_equal(text_at(&o, "metadata.namespace"), ns);
	assert_string_equal(text_at(&o, "data.k"), "v");
}

static void destroy_ends_requests_and_watches(struct world *w)
{
	struct hf_store *store = w->client(w);
	struct seen seen = {0};
	struct outcome o = {0};

	hf_store_request(store,
			 &(struct hf_request){.verb = HF_VERB_LIST, .resource = &hf_namespaces},
			 outcome_take, &o);
	seen.watch = hf_store_watch(store, &(struct hf_watch_options){.resource = &hf_pods},
				    seen_take, &seen);
	hf_store_destroy(store);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.code, HF_E_CANCELED);
	assert_true(seen.ended);
	assert_int_equal(seen.end_code, HF_E_CANCELED);
	settle(w);
	assert_int_equal(o.calls, 1);
	/* A watch's handle stays valid until it is stopped. */
	seen_release(&seen);
	outcome_release(&o);
}

static void bad_input_comes_back_as_a_reply(struct world *w)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(get(w, &hf_pods, "default", "a/b", &o), HF_E_BAD_REQUEST);
	assert_int_equal(get(w, &hf_pods, "..", "a", &o), HF_E_BAD_REQUEST);
	assert_int_equal(ask(w,
			     &(struct hf_request){.verb = HF_VERB_LIST,
						  .resource = &hf_pods,
						  .label_selector = "a in ("},
			     &o),
			 HF_E_BAD_REQUEST);
	assert_int_equal(ask(w,
			     &(struct hf_request){.verb = HF_VERB_LIST,
						  .resource = &hf_pods,
						  .field_selector = "spec.nope=1"},
			     &o),
			 HF_E_BAD_REQUEST);
	assert_true(strlen(o.message) > 0);
}

static void an_unknown_kind_or_subresource_is_not_found(struct world *w)
{
	static const struct hf_resource unknown = {.group = "nowhere.example",
						   .version = "v1",
						   .plural = "things",
						   .singular = "thing",
						   .kind = "Thing",
						   .namespaced = true};
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(get(w, &unknown, ns, "x", &o), HF_E_NOT_FOUND);
	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(merge_status(w, AT(&hf_configmaps, ns, "c"), &o, "{'status':{}}"),
			 HF_E_NOT_FOUND);
}

static void a_failure_carries_the_servers_status(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};

	assert_int_equal(get(w, &hf_pytorchjobs, ns, "nobody", &o), HF_E_NOT_FOUND);
	assert_string_equal(o.message, "pytorchjobs.kubeflow.org \"nobody\" not found");
	assert_string_equal(text_at(&o, "kind"), "Status");
	assert_string_equal(text_at(&o, "reason"), "NotFound");
	assert_int_equal(number_at(&o, "code"), 404);
	assert_string_equal(text_at(&o, "details.kind"), "pytorchjobs");
	assert_string_equal(text_at(&o, "details.name"), "nobody");
}

const struct contract_test contract_replies[] = {
	{"1: a callback never runs inside the call", a_callback_never_runs_inside_the_call},
	{"1: each request gets one callback", each_request_gets_one_callback},
	{"1: destroy ends requests and watches", destroy_ends_requests_and_watches},
	{"2: a canceled request has no callback", a_canceled_request_has_no_callback},
	{"2: a callback may cancel another request", a_callback_may_cancel_another_request},
	{"3: strings and documents may be freed after the call",
	 strings_and_documents_may_be_freed_after_the_call},
	{"6: bad input comes back as a reply", bad_input_comes_back_as_a_reply},
	{"6: an unknown kind or subresource is not found",
	 an_unknown_kind_or_subresource_is_not_found},
	{"6: a failure carries the server's status", a_failure_carries_the_servers_status},
	{NULL, NULL},
};
