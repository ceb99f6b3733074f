/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Contract tests of watches: rules 9, 16 and 31 to 36 of src/store/CONTRACT.md. */
#include "contract/contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_version(struct world *w, const struct hf_resource *r, const char *ns,
			 char version[32])
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(list(w, r, ns, &o), 0);
	snprintf(version, 32, "%s", o.version);
}

static void start_now(struct world *w, struct seen *s, const struct hf_resource *r, const char *ns)
{
	char version[32];

	read_version(w, r, ns, version);
	seen_start(
		w, s,
		&(struct hf_watch_options){.resource = r, .ns = ns, .resource_version = version});
}

static void changes_come_once_and_in_order(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};

	start_now(w, &s, &hf_configmaps, ns);
	assert_int_equal(create_configmap(w, ns, "a", &o), 0);
	assert_int_equal(create_configmap(w, ns, "b", &o), 0);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "a"), &o, "{'data':{'k':'1'}}"), 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "a", &o), 0);
	wait_events(w, &s, 4);
	settle(w);
	assert_string_equal(seen_text(&s), "A:a A:b M:a D:a");
	for (int i = 1; i < s.n; i++)
		assert_true(strtoull(s.events[i].version, NULL, 10) >
			    strtoull(s.events[i - 1].version, NULL, 10));
}

static void a_write_without_a_change_makes_no_event(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};

	assert_int_equal(create_configmap(w, ns, "a", &o), 0);
	start_now(w, &s, &hf_configmaps, ns);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "a"), &o, "{'data':{'k':'v'}}"), 0);
	assert_int_equal(create_configmap(w, ns, "z", &o), 0);
	wait_events(w, &s, 1);
	settle(w);
	assert_string_equal(seen_text(&s), "A:z");
}

static void a_watch_from_the_start_begins_with_existing_objects(struct world *w)
{
	static const char *const from[] = {NULL, "0"};

	for (size_t i = 0; i < HF_ARRAY_LEN(from); i++) {
		const char *ns = fresh_namespace(w);
		AUTO_OUTCOME o = {0};
		AUTO_SEEN s = {0};

		assert_int_equal(create_configmap(w, ns, "a", &o), 0);
		assert_int_equal(create_configmap(w, ns, "b", &o), 0);
		seen_start(w, &s,
			   &(struct hf_watch_options){.resource = &hf_configmaps,
						      .ns = ns,
						      .label_selector = "app in (a,b,c)",
						      .resource_version = from[i]});
		wait_events(w, &s, 2);
		assert_int_equal(s.events[0].type, HF_EVENT_ADDED);
		assert_int_equal(s.events[1].type, HF_EVENT_ADDED);
		assert_int_equal(create_configmap(w, ns, "c", &o), 0);
		wait_events(w, &s, 3);
		settle(w);
		assert_int_equal(s.n, 3);
		assert_string_equal(s.events[2].name, "c");
	}
}

/* Either the back end supports a list as a stream, or its server refuses it with HF_E_INVALID. */
static void a_list_may_be_a_stream(struct world *w)
{
	const char *ns = fresh_namespace(w);
	const struct hf_watch_options options = {
		.resource = &hf_configmaps, .ns = ns, .bookmarks = true, .initial_events = true};
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};
	AUTO_SEEN none = {0};

	if (!hf_store_can_stream_lists(w->store))
		return;
	assert_int_equal(create_configmap(w, ns, "a", &o), 0);
	assert_int_equal(create_configmap(w, ns, "b", &o), 0);
	seen_start(w, &s, &options);
	while (!s.ended && s.n < 3)
		if (!w->turn(w))
			fail_msg("nothing moves: '%s'", seen_text(&s));
	if (s.ended) {
		assert_int_equal(s.end_code, HF_E_INVALID);
		assert_int_equal(s.n, 0);
		assert_false(hf_store_can_stream_lists(w->store));
		return;
	}
	assert_int_equal(s.events[0].type, HF_EVENT_ADDED);
	assert_int_equal(s.events[1].type, HF_EVENT_ADDED);
	assert_int_equal(s.events[2].type, HF_EVENT_BOOKMARK);
	assert_true(s.events[2].initial_end);
	assert_true(strtoull(s.events[2].version, NULL, 10) >=
		    strtoull(text_at(&o, "metadata.resourceVersion"), NULL, 10));
	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "a", &o), 0);
	wait_events(w, &s, 5);
	assert_string_equal(s.events[3].name, "c");
	assert_int_equal(s.events[4].type, HF_EVENT_DELETED);

	/* An empty selection also ends with a bookmark. */
	seen_start(
		w, &none,
		&(struct hf_watch_options){
			.resource = &hf_pods, .ns = ns, .bookmarks = true, .initial_events = true});
	wait_events(w, &none, 1);
	assert_true(none.events[0].initial_end);
}

static void only_selected_objects_give_events(struct world *w)
{
	char ns[64], other[64];
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};

	snprintf(other, sizeof(other), "%s", fresh_namespace(w));
	snprintf(ns, sizeof(ns), "%s", fresh_namespace(w));
	start_now(w, &s, &hf_configmaps, ns);
	assert_int_equal(create_configmap(w, other, "elsewhere", &o), 0);
	assert_int_equal(create_pod(w, ns, "otherkind", &o), 0);
	assert_int_equal(create_configmap(w, ns, "here", &o), 0);
	wait_events(w, &s, 1);
	settle(w);
	assert_string_equal(seen_text(&s), "A:here");
}

static void entering_and_leaving_a_selection_is_added_and_deleted(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};
	char version[32];

	read_version(w, &hf_configmaps, ns, version);
	seen_start(w, &s,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .ns = ns,
					      .label_selector = "app=on",
					      .resource_version = version});
	assert_int_equal(create_configmap(w, ns, "a", &o), 0);
	assert_int_equal(
		merge(w, AT(&hf_configmaps, ns, "a"), &o, "{'metadata':{'labels':{'app':'on'}}}"),
		0);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "a"), &o, "{'data':{'k':'2'}}"), 0);
	assert_int_equal(
		merge(w, AT(&hf_configmaps, ns, "a"), &o, "{'metadata':{'labels':{'app':'off'}}}"),
		0);
	assert_int_equal(merge(w, AT(&hf_configmaps, ns, "a"), &o, "{'data':{'k':'3'}}"), 0);
	wait_events(w, &s, 3);
	settle(w);
	assert_string_equal(seen_text(&s), "A:a M:a D:a");
	/* DELETED carries the last state that matched the selector. */
	const struct hf_json *last = hf_doc_json(s.events[2].object);
	assert_string_equal(hf_json_path_str(last, "metadata", "labels", "app", NULL), "on");
	assert_string_equal(hf_json_path_str(last, "data", "k", NULL), "2");
	assert_string_equal(s.events[2].version, hf_doc_resource_version(s.events[2].object));
}

static void field_selectors_work_on_watches(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};
	char version[32];

	read_version(w, &hf_pods, ns, version);
	seen_start(w, &s,
		   &(struct hf_watch_options){.resource = &hf_pods,
					      .ns = ns,
					      .field_selector = "spec.nodeName=node-a",
					      .resource_version = version});
	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	assert_int_equal(create_pod(w, ns, "q", &o), 0);
	bind_pod(w, ns, "p", "node-a");
	bind_pod(w, ns, "q", "node-b");
	assert_int_equal(
		merge_status(w, AT(&hf_pods, ns, "p"), &o, "{'status':{'phase':'Running'}}"), 0);
	wait_events(w, &s, 2);
	settle(w);
	assert_string_equal(seen_text(&s), "A:p M:p");
}

static void deleted_carries_the_last_state(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};

	assert_int_equal(create_configmap(w, ns, "a", &o), 0);
	unsigned long long before = strtoull(text_at(&o, "metadata.resourceVersion"), NULL, 10);
	start_now(w, &s, &hf_configmaps, ns);
	assert_int_equal(erase(w, &hf_configmaps, ns, "a", &o), 0);
	wait_events(w, &s, 1);
	assert_string_equal(seen_text(&s), "D:a");
	assert_string_equal(hf_json_path_str(hf_doc_json(s.events[0].object), "data", "k", NULL),
			    "v");
	assert_true(strtoull(s.events[0].version, NULL, 10) > before);
	assert_string_equal(s.events[0].version, hf_doc_resource_version(s.events[0].object));
}

static void resuming_repeats_and_loses_nothing(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN first = {0};
	AUTO_SEEN second = {0};

	start_now(w, &first, &hf_configmaps, ns);
	assert_int_equal(create_configmap(w, ns, "a", &o), 0);
	assert_int_equal(create_configmap(w, ns, "b", &o), 0);
	wait_events(w, &first, 2);
	first.watch = hf_watch_stop(first.watch);
	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	assert_int_equal(erase(w, &hf_configmaps, ns, "a", &o), 0);
	seen_start(w, &second,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .ns = ns,
					      .resource_version = first.events[0].version});
	wait_events(w, &second, 3);
	settle(w);
	assert_string_equal(seen_text(&second), "A:b A:c D:a");
}

static void a_list_and_a_watch_from_there_miss_nothing(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_OUTCOME listed = {0};
	AUTO_SEEN s = {0};
	const struct hf_request request = {.verb = HF_VERB_LIST,
					   .resource = &hf_configmaps,
					   .ns = ns,
					   .label_selector = "app"};
	struct outcome made[20] = {0};

	/* Another client writes while the list is read. */
	for (int i = 0; i < 20; i++) {
		HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
					    "'name':'m%02d','labels':{'app':'x'}}}",
					    i);
		hf_store_request(w->other,
				 &(struct hf_request){.verb = HF_VERB_CREATE,
						      .resource = &hf_configmaps,
						      .ns = ns,
						      .body = body},
				 outcome_take, &made[i]);
		if (i == 10)
			hf_store_request(w->store, &request, outcome_take, &listed);
	}
	wait_for(w, &listed.calls, 1);
	seen_start(w, &s,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .ns = ns,
					      .label_selector = "app",
					      .resource_version = listed.version});
	for (int i = 0; i < 20; i++) {
		wait_for(w, &made[i].calls, 1);
		/* After a timeout the create may have been done (rule 5); the list shows whether it
		 * was. */
		if (made[i].code != 0 && made[i].code != HF_E_TIMEOUT)
			fail_msg("%s", made[i].message);
		outcome_release(&made[i]);
	}
	assert_int_equal(ask(w,
			     &(struct hf_request){.verb = HF_VERB_LIST,
						  .resource = &hf_configmaps,
						  .ns = ns,
						  .label_selector = "app"},
			     &o),
			 0);
	wait_events(w, &s, (int)(o.n_items - listed.n_items));
	settle(w);
	assert_int_equal(s.n + (int)listed.n_items, o.n_items);
}

static void an_expired_version_is_gone(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};
	char version[32];

	if (!w->forget)
		return;
	assert_int_equal(create_configmap(w, ns, "a", &o), 0);
	read_version(w, &hf_configmaps, ns, version);
	w->forget(w, ns);
	seen_start(w, &s,
		   &(struct hf_watch_options){
			   .resource = &hf_configmaps, .ns = ns, .resource_version = version});
	wait_ended(w, &s);
	assert_int_equal(s.end_code, HF_E_GONE);
	assert_int_equal(s.n, 0);
}

static void a_bad_watch_ends(struct world *w)
{
	AUTO_SEEN s = {0};
	AUTO_SEEN t = {0};

	seen_start(
		w, &s,
		&(struct hf_watch_options){.resource = &hf_configmaps, .label_selector = "a in"});
	assert_false(s.ended); /* not from inside the call */
	wait_ended(w, &s);
	assert_int_equal(s.end_code, HF_E_BAD_REQUEST);
	seen_start(w, &t,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .field_selector = "spec.x=1"});
	wait_ended(w, &t);
	assert_int_equal(t.end_code, HF_E_BAD_REQUEST);
}

static void a_watch_ends_at_its_timeout(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_SEEN s = {0};
	char version[32];

	read_version(w, &hf_configmaps, ns, version);
	seen_start(w, &s,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .ns = ns,
					      .resource_version = version,
					      .timeout = 2 * HF_SECOND});
	for (int i = 0; i < 10 && !s.ended; i++)
		w->pass(w, HF_SECOND);
	assert_true(s.ended);
	assert_int_equal(s.end_code, 0);
}

static void no_event_comes_after_stop(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN outside = {0};
	AUTO_SEEN inside = {.stop_after = 1};

	start_now(w, &outside, &hf_configmaps, ns);
	start_now(w, &inside, &hf_configmaps, ns);
	assert_int_equal(create_configmap(w, ns, "a", &o), 0);
	assert_int_equal(create_configmap(w, ns, "b", &o), 0);
	wait_events(w, &inside, 1);
	wait_events(w, &outside, 2);
	outside.watch = hf_watch_stop(outside.watch);
	assert_int_equal(create_configmap(w, ns, "c", &o), 0);
	settle(w);
	assert_int_equal(outside.n, 2);
	assert_int_equal(inside.n, 1);
}

static void bookmarks_never_go_back(struct world *w)
{
	const char *ns = fresh_namespace(w);
	AUTO_OUTCOME o = {0};
	AUTO_SEEN s = {0};
	AUTO_SEEN resumed = {0};
	char version[32];
	int bookmark = -1;

	read_version(w, &hf_configmaps, ns, version);
	seen_start(w, &s,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .ns = ns,
					      .resource_version = version,
					      .bookmarks = true});
	assert_int_equal(create_configmap(w, ns, "a", &o), 0);
	wait_events(w, &s, 1);
	/* A change of another kind, so that the store's version passes the last event of this
	 * watch. */
	assert_int_equal(create_pod(w, ns, "p", &o), 0);
	for (int i = 0; i < 200 && bookmark < 0; i++) {
		w->pass(w, HF_SECOND);
		for (int e = 0; e < s.n; e++)
			if (s.events[e].type == HF_EVENT_BOOKMARK)
				bookmark = e;
	}
	assert_true(bookmark > 0);
	assert_true(strtoull(s.events[bookmark].version, NULL, 10) >=
		    strtoull(s.events[0].version, NULL, 10));
	assert_int_equal(create_configmap(w, ns, "b", &o), 0);
	seen_start(w, &resumed,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .ns = ns,
					      .resource_version = s.events[bookmark].version});
	wait_events(w, &resumed, 1);
	settle(w);
	assert_string_equal(seen_text(&resumed), "A:b");
}

const struct contract_test contract_watches[] = {
	{"9: a write without a change makes no event", a_write_without_a_change_makes_no_event},
	{"16: a list and a watch from there miss nothing",
	 a_list_and_a_watch_from_there_miss_nothing},
	{"31: changes come once and in order", changes_come_once_and_in_order},
	{"31: a watch from the start begins with existing objects",
	 a_watch_from_the_start_begins_with_existing_objects},
	{"31: a list may be a stream", a_list_may_be_a_stream},
	{"31: only selected objects give events", only_selected_objects_give_events},
	{"32: entering and leaving a selection is ADDED and DELETED",
	 entering_and_leaving_a_selection_is_added_and_deleted},
	{"32: field selectors work on watches", field_selectors_work_on_watches},
	{"33: DELETED carries the last state", deleted_carries_the_last_state},
	{"34: resuming repeats and loses nothing", resuming_repeats_and_loses_nothing},
	{"34: bookmarks never go back", bookmarks_never_go_back},
	{"35: an expired version is gone", an_expired_version_is_gone},
	{"35: a bad watch ends", a_bad_watch_ends},
	{"35: a watch ends at its timeout", a_watch_ends_at_its_timeout},
	{"36: no event comes after stop", no_event_comes_after_stop},
	{NULL, NULL},
};
