/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/plane.h"

#include "memstore/memstore_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests of clients with faults, of the queue of requests, and of the destruction of clients. */

struct script {
	struct hf_fault fault; /* fault of the next request */
	int asked;
};

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *ret_fault)
{
	struct script *s = arg;

	s->asked++;
	*ret_fault = s->fault;
	s->fault = (struct hf_fault){0};
}

static struct hf_store *make_faulty_client(struct plane *p, struct script *s)
{
	return hf_memstore_client_create(
		p->memstore, &(struct hf_memstore_faults){.request = on_request, .arg = s});
}

static void send_create(struct hf_store *store, const char *name, struct outcome *o,
			struct hf_call **ret_call)
{
	HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
				    "'name':'%s'}}",
				    name);
	struct hf_call *call = hf_store_request(store,
						&(struct hf_request){.verb = HF_VERB_CREATE,
								     .resource = &hf_configmaps,
								     .ns = "default",
								     .body = body,
								     .timeout = 5 * HF_SECOND},
						outcome_take, o);
	if (ret_call)
		*ret_call = call;
}

static bool is_stored(struct plane *p, const char *name)
{
	return hf_memstore_peek(p->memstore, &hf_configmaps, "default", name) != NULL;
}

static void a_refused_request_is_not_performed(void **state)
{
	struct plane p;
	struct script s = {.fault = {.refuse = HF_E_UNAVAILABLE,
				     .message = "come back",
				     .retry_after = 3 * HF_SECOND}};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_store *store = make_faulty_client(&p, &s);
	send_create(store, "c", &o, NULL);
	assert_int_equal(o.calls, 0);
	wait_for(&p.w, &o.calls, 1);
	assert_int_equal(o.code, HF_E_UNAVAILABLE);
	assert_string_equal(o.message, "come back");
	assert_string_equal(text_at(&o, "reason"), "ServiceUnavailable");
	assert_false(is_stored(&p, "c"));
	/* The next request has no fault. */
	outcome_release(&o);
	send_create(store, "c", &o, NULL);
	wait_for(&p.w, &o.calls, 1);
	assert_int_equal(o.code, 0);
	assert_int_equal(s.asked, 2);
	hf_store_destroy(store);
	plane_close(&p);
}

static void a_request_with_a_lost_reply_is_performed(void **state)
{
	struct plane p;
	struct script s = {.fault = {.lose_reply = true}};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_store *store = make_faulty_client(&p, &s);
	send_create(store, "c", &o, NULL);
	settle(&p.w);
	assert_true(is_stored(&p, "c"));
	assert_int_equal(o.calls, 0);
	p.w.pass(&p.w, 4 * HF_SECOND);
	assert_int_equal(o.calls, 0);
	p.w.pass(&p.w, 2 * HF_SECOND);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.code, HF_E_TIMEOUT);
	hf_store_destroy(store);
	plane_close(&p);
}

static void delays_are_before_or_after_the_work(void **state)
{
	struct plane p;
	struct script s = {.fault = {.delay_before = HF_SECOND}};
	AUTO_OUTCOME before = {0};
	AUTO_OUTCOME after = {0};

	plane_open(&p, NULL, false);
	struct hf_store *store = make_faulty_client(&p, &s);
	send_create(store, "before", &before, NULL);
	s.fault.delay_after = HF_SECOND;
	send_create(store, "after", &after, NULL);
	settle(&p.w);
	assert_false(is_stored(&p, "before"));
	assert_true(is_stored(&p, "after"));
	assert_int_equal(after.calls, 0);
	p.w.pass(&p.w, HF_SECOND);
	assert_true(is_stored(&p, "before"));
	assert_int_equal(before.calls, 1);
	assert_int_equal(after.calls, 1);
	hf_store_destroy(store);
	plane_close(&p);
}

/* A client crashes before it sends, between its write and the reply, or after the reply. */
static void a_client_may_die_at_any_point(void **state)
{
	static const struct {
		struct hf_fault fault;
		bool turns, done;
	} cases[] = {
		{{0}, false, false},
		{{.delay_before = HF_SECOND}, true, false},
		{{.delay_after = HF_SECOND}, true, true},
		{{.lose_reply = true}, true, true},
		{{0}, true, true},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct plane p;
		struct script s = {.fault = cases[i].fault};
		struct outcome o = {0};
		plane_open(&p, NULL, false);
		struct hf_store *store = make_faulty_client(&p, &s);
		send_create(store, "c", &o, NULL);
		if (cases[i].turns)
			settle(&p.w);
		bool replied = o.calls == 1;
		hf_store_destroy(store);
		assert_int_equal(o.calls, 1);
		assert_int_equal(o.code, replied ? 0 : HF_E_CANCELED);
		p.w.pass(&p.w, HF_MINUTE);
		assert_int_equal(o.calls, 1);
		assert_int_equal(is_stored(&p, "c"), cases[i].done);
		outcome_release(&o);
		plane_close(&p);
	}
}

static void a_request_may_be_canceled_in_every_state(void **state)
{
	static const struct hf_fault faults[] = {
		{0},
		{.delay_before = HF_SECOND},
		{.delay_after = HF_SECOND},
		{.lose_reply = true},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(faults); i++) {
		struct plane p;
		struct script s = {.fault = faults[i]};
		AUTO_OUTCOME o = {0};
		struct hf_call *call;
		plane_open(&p, NULL, false);
		struct hf_store *store = make_faulty_client(&p, &s);
		send_create(store, "c", &o, &call);
		if (i > 0)
			settle(&p.w);
		hf_call_cancel(call);
		p.w.pass(&p.w, HF_MINUTE);
		assert_int_equal(o.calls, 0);
		hf_store_destroy(store);
		plane_close(&p);
	}
}

struct nested {
	struct plane *p;
	struct hf_store *store;
	struct hf_call *other;
	int calls, other_calls;
};

static void count_other(void *arg, const struct hf_reply *reply)
{
	struct nested *n = arg;

	n->other_calls++;
}

static void destroy_inside(void *arg, const struct hf_reply *reply)
{
	struct nested *n = arg;

	n->calls++;
	n->store = hf_store_destroy(n->store);
	/* The reply is still valid. */
	assert_string_equal(hf_doc_name(reply->object), "default");
}

static void a_store_may_be_destroyed_from_a_reply(void **state)
{
	struct plane p;
	struct nested n = {.p = &p};
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_namespaces, .name = "default"};

	plane_open(&p, NULL, false);
	n.store = p.w.client(&p.w);
	hf_store_request(n.store, &request, destroy_inside, &n);
	for (int i = 0; i < 3; i++)
		hf_store_request(n.store, &request, count_other, &n);
	wait_for(&p.w, &n.calls, 1);
	settle(&p.w);
	assert_int_equal(n.calls, 1);
	assert_int_equal(n.other_calls, 3);
	plane_close(&p);
}

static void send_again(void *arg, const struct hf_reply *reply)
{
	struct nested *n = arg;
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_namespaces, .name = "default"};

	if (++n->calls < 10)
		hf_store_request(n->store, &request, send_again, n);
}

static void a_reply_may_send_the_next_request(void **state)
{
	struct plane p;
	struct nested n = {.p = &p};

	plane_open(&p, NULL, false);
	n.store = p.w.store;
	send_again(&n, NULL);
	wait_for(&p.w, &n.calls, 10);
	plane_close(&p);
}

static void stale_reads_return_an_earlier_state(void **state)
{
	struct plane p;
	struct script s = {0};
	AUTO_OUTCOME o = {0};
	struct hf_request get_it = {.verb = HF_VERB_GET,
				    .resource = &hf_configmaps,
				    .ns = "default",
				    .name = "c",
				    .resource_version = "0"};
	struct hf_request list_it = {.verb = HF_VERB_LIST,
				     .resource = &hf_configmaps,
				     .ns = "default",
				     .resource_version = "0"};
	static const char *const values[] = {"2", "1", "0"};

	plane_open(&p, NULL, false);
	struct hf_store *store = make_faulty_client(&p, &s);
	assert_int_equal(create(&p.w, &hf_configmaps, "default", &o,
				"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c'},"
				"'data':{'i':'0'}}"),
			 0);
	for (int i = 1; i <= 2; i++)
		assert_int_equal(merge(&p.w, AT(&hf_configmaps, "default", "c"), &o,
				       "{'data':{'i':'%d'}}", i),
				 0);
	for (uint64_t ago = 0; ago < HF_ARRAY_LEN(values); ago++) {
		s.fault.stale = ago;
		outcome_release(&o);
		hf_store_request(store, &get_it, outcome_take, &o);
		wait_for(&p.w, &o.calls, 1);
		assert_string_equal(text_at(&o, "data.i"), values[ago]);
	}
	/* The object was created less than three changes ago, so the stale state does not have
	 * it. */
	s.fault.stale = 3;
	outcome_release(&o);
	hf_store_request(store, &get_it, outcome_take, &o);
	wait_for(&p.w, &o.calls, 1);
	assert_int_equal(o.code, HF_E_NOT_FOUND);
	s.fault.stale = 1000;
	outcome_release(&o);
	hf_store_request(store, &list_it, outcome_take, &o);
	wait_for(&p.w, &o.calls, 1);
	assert_int_equal(o.code, 0);
	assert_int_equal(o.n_items, 0);
	/* Only reads with resourceVersion "0" are stale, and this read has none. */
	s.fault.stale = 1000;
	list_it.resource_version = NULL;
	outcome_release(&o);
	hf_store_request(store, &list_it, outcome_take, &o);
	wait_for(&p.w, &o.calls, 1);
	assert_int_equal(o.n_items, 1);
	/* An `unaware` server returns an old state for every resourceVersion that a read asks
	 * for. */
	s.fault = (struct hf_fault){.stale = 1000, .unaware = true};
	outcome_release(&o);
	hf_store_request(store, &list_it, outcome_take, &o);
	wait_for(&p.w, &o.calls, 1);
	assert_int_equal(o.n_items, 0);
	hf_store_destroy(store);
	plane_close(&p);
}

static void a_watch_from_a_stale_list_catches_up(void **state)
{
	struct plane p;
	struct script s = {.fault = {.stale = 2}};
	AUTO_OUTCOME o = {0};
	AUTO_SEEN seen = {0};
	struct hf_request list_it = {.verb = HF_VERB_LIST,
				     .resource = &hf_configmaps,
				     .ns = "default",
				     .resource_version = "0"};

	plane_open(&p, NULL, false);
	struct hf_store *store = make_faulty_client(&p, &s);
	assert_int_equal(create_configmap(&p.w, "default", "a", &o), 0);
	assert_int_equal(create_configmap(&p.w, "default", "b", &o), 0);
	assert_int_equal(erase(&p.w, &hf_configmaps, "default", "a", &o), 0);
	outcome_release(&o);
	hf_store_request(store, &list_it, outcome_take, &o);
	wait_for(&p.w, &o.calls, 1);
	assert_int_equal(o.n_items, 1);
	assert_string_equal(hf_doc_name(o.items[0]), "a");
	seen_start(&p.w, &seen,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .ns = "default",
					      .resource_version = o.version});
	wait_events(&p.w, &seen, 2);
	assert_string_equal(seen_text(&seen), "A:b D:a");
	seen_release(&seen);
	hf_store_destroy(store);
	plane_close(&p);
}

/* A watch from version "0" would begin with the present objects, and could not be resumed between
 * two of them. So a list of the state before the first write has a version too. */
static void a_watch_from_a_list_before_the_first_write_is_in_order(void **state)
{
	struct plane p;
	struct script s = {.fault = {.stale = 1000, .unaware = true}};
	AUTO_OUTCOME o = {0};
	AUTO_SEEN seen = {0};
	AUTO_SEEN resumed = {0};
	struct hf_request list_it = {
		.verb = HF_VERB_LIST, .resource = &hf_configmaps, .ns = "default"};

	plane_open(&p, NULL, false);
	struct hf_store *store = make_faulty_client(&p, &s);
	assert_int_equal(create_configmap(&p.w, "default", "a", &o), 0);
	assert_int_equal(create_configmap(&p.w, "default", "b", &o), 0);
	assert_int_equal(merge(&p.w, AT(&hf_configmaps, "default", "a"), &o, "{'data':{'i':'1'}}"),
			 0);
	outcome_release(&o);
	hf_store_request(store, &list_it, outcome_take, &o);
	wait_for(&p.w, &o.calls, 1);
	assert_int_equal(o.n_items, 0);
	assert_string_not_equal(o.version, "0");
	seen_start(&p.w, &seen,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .ns = "default",
					      .resource_version = o.version});
	wait_events(&p.w, &seen, 3);
	assert_string_equal(seen_text(&seen), "A:a A:b M:a");
	seen_start(&p.w, &resumed,
		   &(struct hf_watch_options){.resource = &hf_configmaps,
					      .ns = "default",
					      .resource_version = seen.events[0].version});
	wait_events(&p.w, &resumed, 2);
	assert_string_equal(seen_text(&resumed), "A:b M:a");
	seen_release(&seen);
	seen_release(&resumed);
	hf_store_destroy(store);
	plane_close(&p);
}

static void requests_beyond_the_queue_limit_are_refused(void **state)
{
	struct plane p;
	size_t n = HF_MEMSTORE_QUEUE_MAX + 5, refused = 0;
	struct outcome *all = calloc(n, sizeof(*all));
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_namespaces, .name = "nobody"};

	plane_open(&p, NULL, false);
	for (size_t i = 0; i < n; i++)
		hf_store_request(p.w.store, &request, outcome_take, &all[i]);
	settle(&p.w);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(all[i].calls, 1);
		refused += all[i].code == HF_E_TOO_MANY;
		outcome_release(&all[i]);
	}
	assert_int_equal(refused, 5);
	free(all);
	plane_close(&p);
}

static void server_time_is_the_loops_time(void **state)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	char text[HF_TIME_TEXT_MAX];

	plane_open(&p, NULL, false);
	p.w.pass(&p.w, 90 * HF_SECOND);
	assert_int_equal(create_configmap(&p.w, "default", "c", &o), 0);
	hf_time_format(PLANE_START + 90 * HF_SECOND, text);
	assert_string_equal(text_at(&o, "metadata.creationTimestamp"), text);
	hf_loop_step_wall(p.w.loop, -10 * HF_MINUTE);
	assert_int_equal(create_configmap(&p.w, "default", "d", &o), 0);
	hf_time_format(PLANE_START - 510 * HF_SECOND, text);
	assert_string_equal(text_at(&o, "metadata.creationTimestamp"), text);
	plane_close(&p);
}

/* Runs the same calls and writes what they return to out. Two runs must give the same bytes. */
static void a_run(char *out, size_t size)
{
	struct plane p;
	AUTO_OUTCOME o = {0};
	size_t len = 0;

	plane_open(&p, NULL, false);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(create_pod(&p.w, "default", i % 2 ? "a" : "b", &o),
				 i < 2 ? 0 : HF_E_EXISTS);
		len += (size_t)snprintf(out + len, size - len, "%s\n",
					o.object ? hf_doc_text(o.object, NULL) : "");
	}
	assert_int_equal(list(&p.w, &hf_pods, NULL, &o), 0);
	for (size_t i = 0; i < o.n_items; i++)
		len += (size_t)snprintf(out + len, size - len, "%s\n",
					hf_doc_text(o.items[i], NULL));
	plane_close(&p);
}

static void two_runs_of_one_seed_are_alike(void **state)
{
	static char first[16384], second[16384];

	a_run(first, sizeof(first));
	a_run(second, sizeof(second));
	assert_true(strlen(first) > 1000);
	assert_string_equal(first, second);
}

static void a_paused_client_is_answered_when_it_resumes(void **state)
{
	struct plane p;
	struct script s = {.fault = {.delay_after = HF_SECOND}};
	AUTO_OUTCOME late = {0};
	AUTO_OUTCOME soon = {0};

	plane_open(&p, NULL, false);
	struct hf_store *store = make_faulty_client(&p, &s);
	send_create(store, "late", &late, NULL);
	send_create(store, "soon", &soon, NULL);
	hf_memstore_client_pause(store, true);
	p.w.pass(&p.w, HF_MINUTE);
	assert_true(is_stored(&p, "late") && is_stored(&p, "soon"));
	assert_int_equal(late.calls + soon.calls, 0);
	hf_memstore_client_pause(store, false);
	settle(&p.w);
	assert_int_equal(late.calls, 1);
	assert_int_equal(soon.calls, 1);
	assert_int_equal(late.code, 0);
	hf_store_destroy(store);
	plane_close(&p);
}

static void a_paused_client_may_be_destroyed(void **state)
{
	struct plane p;
	struct script s = {0};
	AUTO_OUTCOME o = {0};

	plane_open(&p, NULL, false);
	struct hf_store *store = make_faulty_client(&p, &s);
	send_create(store, "c", &o, NULL);
	hf_memstore_client_pause(store, true);
	settle(&p.w);
	hf_store_destroy(store);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.code, HF_E_CANCELED);
	plane_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_request_is_not_performed),
		cmocka_unit_test(a_request_with_a_lost_reply_is_performed),
		cmocka_unit_test(delays_are_before_or_after_the_work),
		cmocka_unit_test(a_client_may_die_at_any_point),
		cmocka_unit_test(a_request_may_be_canceled_in_every_state),
		cmocka_unit_test(a_store_may_be_destroyed_from_a_reply),
		cmocka_unit_test(a_reply_may_send_the_next_request),
		cmocka_unit_test(stale_reads_return_an_earlier_state),
		cmocka_unit_test(a_watch_from_a_stale_list_catches_up),
		cmocka_unit_test(a_watch_from_a_list_before_the_first_write_is_in_order),
		cmocka_unit_test(requests_beyond_the_queue_limit_are_refused),
		cmocka_unit_test(server_time_is_the_loops_time),
		cmocka_unit_test(a_paused_client_is_answered_when_it_resumes),
		cmocka_unit_test(a_paused_client_may_be_destroyed),
		cmocka_unit_test(two_runs_of_one_seed_are_alike),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
