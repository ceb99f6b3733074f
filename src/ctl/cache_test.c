/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/fake_store.h"
#include "harness/test.h"
#include "ctl/cache.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "store/resource.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests the cache against a store that does what the test says. Each change that the cache
 * reports is recorded in the trace: "+name=value" (added), "~name=old>new" (updated),
 * "-name=value" (deleted) and "*" (synced). */
struct bench {
	struct hf_loop *loop;
	struct fake_store *store;
	struct hf_cache *cache;
	struct hf_strbuf trace;
	int problem_code;
	unsigned problems;
	bool refuse_all; /* true: decode returns NULL */
};

static void *decode_view(void *arg, struct hf_doc *doc)
{
	struct bench *bench = arg;
	const char *value = hf_json_path_str(hf_doc_json(doc), "value", NULL);

	return bench->refuse_all || hf_streq(value, "ignored") ? NULL : hf_xstrdup(value);
}

static const char *by_value(const struct hf_cache_entry *entry)
{
	return hf_streq(entry->view, "unindexed") ? NULL : entry->view;
}

static void on_change(void *arg, enum hf_cache_change change, const struct hf_cache_entry *before,
		      const struct hf_cache_entry *now)
{
	struct bench *bench = arg;

	switch (change) {
	case HF_CACHE_ADDED:
		assert_null(before);
		hf_strbuf_addf(&bench->trace, "+%s=%s ", now->name, (const char *)now->view);
		break;
	case HF_CACHE_UPDATED:
		assert_string_equal(before->uid, now->uid);
		hf_strbuf_addf(&bench->trace, "~%s=%s>%s ", now->name, (const char *)before->view,
			       (const char *)now->view);
		break;
	case HF_CACHE_DELETED:
		assert_null(now);
		hf_strbuf_addf(&bench->trace, "-%s=%s ", before->name, (const char *)before->view);
		break;
	case HF_CACHE_SYNCED:
		assert_true(hf_cache_synced(bench->cache));
		hf_strbuf_addstr(&bench->trace, "* ");
		break;
	}
}

static void on_problem(void *arg, int code, const char *message)
{
	struct bench *bench = arg;

	bench->problem_code = code;
	bench->problems++;
	assert_non_null(message);
}

static void assert_trace(struct bench *bench, const char *want)
{
	assert_string_equal(bench->trace.data, want);
	hf_strbuf_clear(&bench->trace);
}

static void create_cache(struct bench *bench, size_t entries_max)
{
	const struct hf_cache_options options = {
		.loop = bench->loop,
		.store = &bench->store->base,
		.resource = &hf_pods,
		.ns = "default",
		.seed = 1,
		.entries_max = entries_max,
		.decode = decode_view,
		.view_free = free,
		.index_key = {by_value},
		.changed = on_change,
		.problem = on_problem,
		.arg = bench,
	};

	hf_cache_destroy(bench->cache);
	bench->cache = hf_cache_create(&options);
}

static int setup(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	bench->loop = hf_loop_create_virtual(0);
	bench->store = fake_store_create();
	hf_strbuf_init(&bench->trace, 1 << 16);
	create_cache(bench, 0);
	*state = bench;
	return 0;
}

static int teardown(void **state)
{
	struct bench *bench = *state;

	hf_cache_destroy(bench->cache);
	fake_store_destroy(bench->store);
	hf_loop_destroy(bench->loop);
	hf_strbuf_release(&bench->trace);
	free(bench);
	return 0;
}

/* Starts the cache and answers its list: one object "a" with UID u1 and version 5; the list has
 * version 10. */
static struct fake_watch *sync_one(struct bench *bench)
{
	struct hf_doc *items[] = {fake_object("a", "u1", "5", "one")};

	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	fake_answer_list(fake_next(bench->store), "10", "", items, 1);
	assert_trace(bench, "+a=one * ");
	return fake_watch_live(bench->store);
}

/* Returns the delay until the cache makes its next request. */
static hf_time next_request(struct bench *bench, struct fake_call **ret_call)
{
	hf_time start = hf_loop_mono(bench->loop);

	for (hf_time t = start; t <= start + HF_MINUTE; t += 10 * HF_MS) {
		hf_loop_run_until(bench->loop, t);
		*ret_call = fake_next(bench->store);
		if (*ret_call != NULL || fake_watch_live(bench->store) != NULL)
			return t - start;
	}
	return HF_TIME_NEVER;
}

static void test_the_first_list_is_consistent_and_the_watch_goes_on_from_it(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	const struct hf_request *list = bench->store->calls[0].request;

	assert_int_equal(list->verb, HF_VERB_LIST);
	assert_null(list->resource_version);
	assert_string_equal(list->ns, "default");
	assert_true(list->limit > 0);
	assert_string_equal(watch->resource_version, "10");
	assert_in_range(watch->timeout, 5 * HF_MINUTE, 10 * HF_MINUTE);
	fake_event(watch, HF_EVENT_ADDED, fake_object("b", "u2", "11", "two"));
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "12", "uno"));
	fake_event(watch, HF_EVENT_DELETED, fake_object("b", "u2", "13", "two"));
	assert_trace(bench, "+b=two ~a=one>uno -b=two ");
	assert_int_equal(hf_cache_len(bench->cache), 1);
	assert_string_equal(hf_cache_get(bench->cache, "default", "a")->resource_version, "12");
	assert_null(hf_cache_get(bench->cache, "default", "b"));
	assert_null(hf_cache_get(bench->cache, "other", "a"));
}

static void test_pages_make_one_list(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *first[] = {fake_object("a", "u1", "5", "one")};
	struct hf_doc *second[] = {fake_object("b", "u2", "6", "two")};
	struct fake_call *call;

	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	fake_answer_list(fake_next(bench->store), "10", "more", first, 1);
	assert_trace(bench, "+a=one ");
	assert_false(hf_cache_synced(bench->cache));
	call = fake_next(bench->store);
	assert_string_equal(call->request->continue_token, "more");
	fake_answer_list(call, "10", "", second, 1);
	assert_trace(bench, "+b=two * ");
	assert_int_equal(hf_cache_stats(bench->cache)->relists, 1);
}

static void test_a_failed_page_is_asked_for_again_and_an_expired_token_starts_over(void **state)
{
	struct bench *bench = *state;
	struct hf_doc *first[] = {fake_object("a", "u1", "5", "one")};
	struct hf_doc *again[] = {fake_object("b", "u2", "20", "two")};
	struct fake_call *call;

	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	fake_answer_list(fake_next(bench->store), "10", "more", first, 1);
	fake_refuse(fake_next(bench->store), HF_E_UNAVAILABLE);
	assert_in_range(next_request(bench, &call), 800 * HF_MS, 1610 * HF_MS);
	assert_string_equal(call->request->continue_token, "more");
	fake_refuse(call, HF_E_GONE);
	assert_int_equal(bench->problem_code, HF_E_GONE);
	next_request(bench, &call);
	assert_null(call->request->continue_token);
	fake_answer_list(call, "21", "", again, 1);
	assert_trace(bench, "+a=one +b=two -a=one * ");
	assert_string_equal(fake_watch_live(bench->store)->resource_version, "21");
}

static void answer_page(struct fake_call *call, const char *token, const char *name)
{
	struct hf_doc *items[] = {name == NULL ? NULL : fake_object(name, "u", "5", "one")};

	fake_answer_list(call, "10", token, items, name == NULL ? 0 : 1);
}

static void test_a_repeated_continue_token_is_reported_and_the_list_restarts_later(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	hf_time low = 800 * HF_MS;

	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	call = fake_next(bench->store);
	for (unsigned i = 1; i < 8; i++) {
		answer_page(call, "abc", "a");
		call = fake_next(bench->store);
		assert_string_equal(call->request->continue_token, "abc");
		assert_int_equal(bench->problems, i - 1);
		answer_page(call, "abc", "a");
		assert_int_equal(bench->problems, i);
		assert_int_equal(bench->problem_code, HF_E_BAD_REQUEST);
		assert_in_range(next_request(bench, &call), low, 2 * low + 10 * HF_MS);
		assert_null(call->request->continue_token);
		low = low * 2 > 30 * HF_SECOND ? 30 * HF_SECOND : low * 2;
	}
	answer_page(call, "abc", "a");
	answer_page(fake_next(bench->store), "", "b");
	assert_trace(bench, "+a=one +b=one * ");
}

static void test_an_empty_page_with_a_token_is_reported_and_the_next_page_comes_later(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	answer_page(fake_next(bench->store), "x1", "a");
	answer_page(fake_next(bench->store), "x2", NULL);
	assert_int_equal(bench->problems, 1);
	assert_in_range(next_request(bench, &call), 800 * HF_MS, 1610 * HF_MS);
	assert_string_equal(call->request->continue_token, "x2");
	answer_page(call, "", "b");
	assert_trace(bench, "+a=one +b=one * ");
	assert_int_equal(hf_cache_stats(bench->cache)->relists, 1);
}

static void test_a_list_of_ever_new_tokens_is_given_up_after_ten_times_its_pages(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	char token[16];

	create_cache(bench, 4500); /* nine pages of 500 */
	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	for (int i = 1; i <= 100; i++) {
		assert_int_equal(bench->problems, 0);
		snprintf(token, sizeof(token), "t%d", i);
		answer_page(fake_next(bench->store), token, "a");
	}
	assert_int_equal(bench->problems, 1);
	assert_in_range(next_request(bench, &call), 800 * HF_MS, 1610 * HF_MS);
	assert_null(call->request->continue_token);
	answer_page(call, "t1", "a");
	answer_page(fake_next(bench->store), "", "b");
	assert_trace(bench, "+a=one +b=one * ");
}

static void test_errors_are_retried_with_growing_delays_and_retry_after_is_kept(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	hf_time low = 800 * HF_MS;

	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	call = fake_next(bench->store);
	for (int i = 0; i < 8; i++) {
		fake_refuse(call, HF_E_INTERNAL);
		hf_time delay = next_request(bench, &call);

		assert_in_range(delay, low, 2 * low + 10 * HF_MS);
		low = low * 2 > 30 * HF_SECOND ? 30 * HF_SECOND : low * 2;
	}
	struct hf_reply busy = {.code = HF_E_TOO_MANY,
				.message = "busy",
				.resource_version = "",
				.continue_token = "",
				.retry_after = 59 * HF_SECOND};

	fake_answer(call, &busy);
	assert_in_range(next_request(bench, &call), 59 * HF_SECOND, 60 * HF_SECOND);
	assert_int_equal(bench->problems, 9);
	assert_int_equal(hf_cache_stats(bench->cache)->errors, 9);
}

static void test_a_watch_that_ends_goes_on_from_the_last_version(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	struct fake_call *call;

	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "12", "uno"));
	hf_loop_run_until(bench->loop, 2 * HF_SECOND);
	fake_end(watch, 0, 0);
	assert_int_equal(next_request(bench, &call), 0);
	assert_null(call);
	watch = fake_watch_live(bench->store);
	assert_string_equal(watch->resource_version, "12");
	fake_bookmark(watch, "30");
	fake_end(watch, HF_E_UNAVAILABLE, 0);
	assert_true(next_request(bench, &call) >= 800 * HF_MS);
	assert_string_equal(fake_watch_live(bench->store)->resource_version, "30");
	assert_trace(bench, "~a=one>uno ");
}

static void test_a_watch_that_always_ends_at_once_is_slowed_down(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	struct fake_call *call;
	hf_time delay = 0;

	for (int i = 0; i < 5; i++) {
		fake_end(watch, 0, 0);
		delay = next_request(bench, &call);
		watch = fake_watch_live(bench->store);
	}
	assert_true(delay >= 12 * HF_SECOND);
}

static void test_a_short_watch_with_an_event_is_continued_at_once(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	struct fake_call *call;

	for (int i = 12; i < 15; i++) {
		HF_AUTOFREE char *version = hf_xasprintf("%d", i);

		fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", version, version));
		fake_end(watch, 0, 0);
		assert_int_equal(next_request(bench, &call), 0);
		watch = fake_watch_live(bench->store);
		assert_string_equal(watch->resource_version, version);
	}
	fake_end(watch, 0, 0);
	assert_true(next_request(bench, &call) >= 800 * HF_MS);
}

static void test_a_silent_watch_is_opened_anew_and_a_bookmark_counts_as_life(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);

	hf_loop_run_until(bench->loop, 2 * HF_MINUTE);
	fake_bookmark(watch, "40");
	hf_loop_run_until(bench->loop, 4 * HF_MINUTE);
	assert_true(watch->live);
	hf_loop_run_until(bench->loop, 5 * HF_MINUTE);
	assert_false(watch->live);
	assert_int_equal(hf_cache_stats(bench->cache)->hung, 1);
	assert_string_equal(fake_watch_live(bench->store)->resource_version, "40");
}

static void test_after_gone_a_new_list_removes_objects_that_it_does_not_contain(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	struct hf_doc *items[] = {fake_object("b", "u2", "15", "two")};
	struct fake_call *call;

	hf_loop_run_until(bench->loop, 2 * HF_SECOND);
	fake_end(watch, HF_E_GONE, 0);
	assert_int_equal(next_request(bench, &call), 0);
	assert_int_equal(call->request->verb, HF_VERB_LIST);
	assert_true(hf_cache_synced(bench->cache));
	assert_non_null(hf_cache_get(bench->cache, "default", "a"));
	fake_answer_list(call, "20", "", items, 1);
	assert_trace(bench, "+b=two -a=one ");
	assert_string_equal(fake_watch_live(bench->store)->resource_version, "20");
}

static void count_change(void *arg, enum hf_cache_change change,
			 const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	*(int *)arg += change == HF_CACHE_UPDATED && before != NULL && now != NULL;
}

/* A reader that reads again after each change would never stop if an unchanged object counted as
 * a change. */
static void test_a_live_read_of_the_held_version_changes_nothing(void **state)
{
	struct bench *bench = *state;
	int changes = 0;
	const struct hf_cache_options options = {
		.loop = bench->loop,
		.store = &bench->store->base,
		.resource = &hf_pods,
		.seed = 1,
		.keep_docs = true,
		.changed = count_change,
		.arg = &changes,
	};
	struct hf_cache *cache = hf_cache_create(&options);
	HF_AUTO_DOC held = fake_object("a", "u1", "5", "one");
	HF_AUTO_DOC same = fake_object("a", "u1", "5", "one");
	HF_AUTO_DOC other = fake_object("a", "u1", "5", "two");
	struct hf_doc *items[] = {hf_doc_ref(held)};

	hf_cache_start(cache);
	hf_loop_run_ready(bench->loop);
	fake_answer_list(fake_next(bench->store), "10", "", items, 1);
	assert_true(hf_cache_put_live(cache, same));
	assert_int_equal(changes, 0);
	assert_true(hf_cache_put_live(cache, other));
	assert_int_equal(changes, 1);
	hf_cache_destroy(cache);
}

static void test_every_question_has_the_field_selector(void **state)
{
	struct bench *bench = *state;
	const struct hf_cache_options options = {
		.loop = bench->loop,
		.store = &bench->store->base,
		.resource = &hf_pods,
		.field_selector = "metadata.name=a",
		.seed = 1,
	};
	struct hf_cache *cache = hf_cache_create(&options);
	struct fake_call *call;

	hf_cache_start(cache);
	hf_loop_run_ready(bench->loop);
	call = fake_next(bench->store);
	assert_string_equal(call->request->field_selector, "metadata.name=a");
	fake_answer_list(call, "10", "", NULL, 0);
	assert_string_equal(fake_watch_live(bench->store)->field_selector, "metadata.name=a");
	bench->store->streams = true;
	hf_loop_run_until(bench->loop, 2 * HF_SECOND);
	fake_end(fake_watch_live(bench->store), HF_E_GONE, 0);
	hf_loop_run_ready(bench->loop);
	assert_true(fake_watch_live(bench->store)->initial_events);
	assert_string_equal(fake_watch_live(bench->store)->field_selector, "metadata.name=a");
	hf_cache_destroy(cache);
}

/* Starts the cache on a store that streams lists. No event has arrived yet. */
static struct fake_watch *start_stream(struct bench *bench)
{
	bench->store->streams = true;
	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	assert_null(fake_next(bench->store));
	return fake_watch_live(bench->store);
}

static void test_a_list_may_be_a_stream_and_the_watch_goes_on_with_it(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = start_stream(bench);
	struct fake_call *call;

	assert_true(watch->initial_events);
	assert_null(watch->resource_version);
	assert_in_range(watch->timeout, 5 * HF_MINUTE, 10 * HF_MINUTE);
	fake_event(watch, HF_EVENT_ADDED, fake_object("a", "u1", "9", "one"));
	fake_event(watch, HF_EVENT_ADDED, fake_object("b", "u2", "4", "two"));
	fake_event(watch, HF_EVENT_DELETED, fake_object("b", "u2", "10", "two"));
	assert_false(hf_cache_synced(bench->cache));
	fake_initial_end(watch, "10");
	assert_trace(bench, "+a=one +b=two -b=two * ");
	assert_true(watch->live);
	fake_event(watch, HF_EVENT_ADDED, fake_object("c", "u3", "11", "three"));
	assert_trace(bench, "+c=three ");
	hf_loop_run_until(bench->loop, 2 * HF_SECOND);
	fake_end(watch, 0, 0);
	assert_int_equal(next_request(bench, &call), 0);
	watch = fake_watch_live(bench->store);
	assert_string_equal(watch->resource_version, "11");
	assert_false(watch->initial_events);
	assert_int_equal(hf_cache_stats(bench->cache)->relists, 1);
}

static void test_after_gone_a_stream_removes_objects_that_it_does_not_contain(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = start_stream(bench);
	struct fake_call *call;

	fake_event(watch, HF_EVENT_ADDED, fake_object("a", "u1", "5", "one"));
	fake_event(watch, HF_EVENT_ADDED, fake_object("b", "u2", "6", "two"));
	fake_initial_end(watch, "10");
	assert_trace(bench, "+a=one +b=two * ");
	hf_loop_run_until(bench->loop, 2 * HF_SECOND);
	fake_end(watch, HF_E_GONE, 0);
	assert_int_equal(next_request(bench, &call), 0);
	watch = fake_watch_live(bench->store);
	assert_true(watch->initial_events);
	fake_event(watch, HF_EVENT_ADDED, fake_object("b", "u2", "6", "two"));
	fake_initial_end(watch, "20");
	assert_trace(bench, "-a=one ");
}

static void test_an_interrupted_stream_restarts_and_removes_nothing(void **state)
{
	static const int codes[] = {HF_E_UNAVAILABLE, 0, HF_E_GONE, HF_E_INVALID};
	struct bench *bench = *state;
	struct fake_watch *watch = start_stream(bench);
	struct fake_call *call;

	for (size_t i = 0; i < HF_ARRAY_LEN(codes); i++) {
		fake_event(watch, HF_EVENT_ADDED, fake_object("a", "u1", "5", "one"));
		fake_end(watch, codes[i], 0);
		assert_false(hf_cache_synced(bench->cache));
		assert_true(next_request(bench, &call) >= 800 * HF_MS);
		assert_null(call);
		watch = fake_watch_live(bench->store);
		assert_true(watch->initial_events);
	}
	assert_int_equal(bench->problems, HF_ARRAY_LEN(codes));
	/* A silent stream is replaced too. */
	hf_loop_run_until(bench->loop, hf_loop_mono(bench->loop) + 4 * HF_MINUTE);
	assert_false(watch->live);
	assert_true(fake_watch_live(bench->store)->initial_events);
	assert_trace(bench, "+a=one ");
}

static void test_a_server_without_streams_is_asked_for_pages_at_once(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = start_stream(bench);
	struct hf_doc *items[] = {fake_object("a", "u1", "5", "one")};
	struct fake_call *call;

	bench->store->streams = false;
	fake_end(watch, HF_E_INVALID, 0);
	assert_int_equal(next_request(bench, &call), 0);
	assert_int_equal(call->request->verb, HF_VERB_LIST);
	assert_int_equal(bench->problems, 0);
	fake_answer_list(call, "10", "", items, 1);
	assert_trace(bench, "+a=one * ");
	assert_string_equal(fake_watch_live(bench->store)->resource_version, "10");
}

static void test_a_reply_runs_ahead_and_the_late_watch_events_are_stale(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	HF_AUTO_DOC newer = fake_object("a", "u1", "14", "new");

	assert_true(hf_cache_put_reply(bench->cache, newer));
	assert_false(hf_cache_put_reply(bench->cache, newer));
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "12", "old"));
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "14", "new"));
	assert_trace(bench, "~a=one>new ");
	assert_int_equal(hf_cache_stats(bench->cache)->stale, 3);
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "15", "newest"));
	assert_trace(bench, "~a=new>newest ");
}

/* The watch is past the version of the reply but lost its event, so the cache holds an older
 * version. */
static void test_a_reply_replaces_a_version_whose_event_the_watch_lost(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	HF_AUTO_DOC lost = fake_object("a", "u1", "14", "lost");
	HF_AUTO_DOC gone = fake_object("b", "u2", "15", "gone");
	HF_AUTO_DOC other = fake_object("a", "u0", "16", "another");

	fake_event(watch, HF_EVENT_ADDED, fake_object("c", "u3", "20", "later"));
	assert_true(hf_cache_put_reply(bench->cache, lost));
	assert_false(hf_cache_put_reply(bench->cache, lost));
	/* The cache does not hold b and the other object: both may have been deleted since, so
	 * their replies are dropped. */
	assert_false(hf_cache_put_reply(bench->cache, gone));
	assert_false(hf_cache_put_live(bench->cache, other));
	assert_trace(bench, "+c=later ~a=one>lost ");
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "21", "new"));
	assert_trace(bench, "~a=lost>new ");
}

static void test_a_live_read_replaces_the_watchs_text_of_the_same_version(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	HF_AUTO_DOC live = fake_object("a", "u1", "14", "whole");
	HF_AUTO_DOC older = fake_object("a", "u1", "13", "older");
	HF_AUTO_DOC other = fake_object("a", "u0", "14", "another");

	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "14", "pruned"));
	assert_false(hf_cache_put_reply(bench->cache, live));
	assert_true(hf_cache_put_live(bench->cache, live));
	/* A further event or live read of the same version is stale. */
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "14", "pruned"));
	assert_false(hf_cache_put_live(bench->cache, older));
	assert_false(hf_cache_put_live(bench->cache, other));
	assert_trace(bench, "~a=one>pruned ~a=pruned>whole ");
	fake_event(watch, HF_EVENT_DELETED, fake_object("a", "u1", "15", ""));
	assert_false(hf_cache_put_live(bench->cache, live));
	assert_int_equal(hf_cache_len(bench->cache), 0);
}

static void test_a_late_reply_does_not_revive_an_object_that_the_watch_deleted(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	HF_AUTO_DOC created = fake_object("b", "u2", "11", "two");
	HF_AUTO_DOC ahead = fake_object("c", "u3", "21", "three");

	/* The watch reports that the object was created at 11 and deleted at 13. Then the reply
	 * to the create arrives. */
	fake_event(watch, HF_EVENT_ADDED, fake_object("b", "u2", "11", "two"));
	fake_event(watch, HF_EVENT_DELETED, fake_object("b", "u2", "13", "two"));
	assert_false(hf_cache_put_reply(bench->cache, created));
	assert_trace(bench, "+b=two -b=two ");
	/* A bookmark also advances the position. */
	fake_bookmark(watch, "20");
	assert_true(hf_cache_put_reply(bench->cache, ahead));
	assert_trace(bench, "+c=three ");
}

static void test_a_reply_without_a_version_does_not_revive_a_deleted_object(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	HF_AUTO_DOC late = fake_object("a", "u1", "", "one");

	fake_event(watch, HF_EVENT_DELETED, fake_object("a", "u1", "13", "one"));
	assert_false(hf_cache_put_reply(bench->cache, late));
	assert_trace(bench, "-a=one ");
	assert_int_equal(hf_cache_len(bench->cache), 0);
}

static void test_versions_are_compared_as_numbers_not_as_text(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);

	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "99", "x"));
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "100", "y"));
	assert_trace(bench, "~a=one>x ~a=x>y ");
	/* A version that is not a number cannot be compared, so its event is accepted. */
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "z9", "z"));
	assert_trace(bench, "~a=y>z ");
}

static void test_an_object_gone_by_reply_does_not_come_back_from_the_past(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);

	hf_cache_put_gone(bench->cache, "default", "a", "another");
	assert_trace(bench, "");
	hf_cache_put_gone(bench->cache, "default", "a", "u1");
	assert_trace(bench, "-a=one ");
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "12", "late"));
	assert_trace(bench, "");
	/* A new object with the same name and another UID is accepted. */
	fake_event(watch, HF_EVENT_ADDED, fake_object("a", "u7", "13", "next"));
	assert_trace(bench, "+a=next ");
	fake_event(watch, HF_EVENT_DELETED, fake_object("a", "u1", "12", "late"));
	assert_trace(bench, "");
}

static void test_a_mark_of_gone_holds_through_a_list_begun_before_it(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	struct hf_doc *past[] = {fake_object("a", "u1", "5", "one")};
	struct fake_call *call;

	fake_end(watch, HF_E_GONE, 0);
	next_request(bench, &call);
	hf_cache_put_gone(bench->cache, "default", "a", "u1");
	fake_answer_list(call, "20", "", past, 1);
	assert_trace(bench, "-a=one ");
	fake_event(fake_watch_live(bench->store), HF_EVENT_DELETED,
		   fake_object("a", "u1", "21", "one"));
	assert_int_equal(hf_cache_len(bench->cache), 0);
}

static void test_a_list_keeps_an_object_that_a_reply_created_after_it(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	HF_AUTO_DOC created = fake_object("c", "u3", "25", "three");
	HF_AUTO_DOC older = fake_object("d", "u4", "19", "four");
	struct fake_call *call;

	fake_end(watch, HF_E_GONE, 0);
	next_request(bench, &call);
	hf_cache_put_reply(bench->cache, created);
	hf_cache_put_reply(bench->cache, older);
	fake_answer_list(call, "20", "", NULL, 0);
	/* d has version 19. The list of version 20 does not contain d, so d was deleted. */
	hf_strbuf_clear(&bench->trace);
	assert_non_null(hf_cache_get(bench->cache, "default", "c"));
	assert_null(hf_cache_get(bench->cache, "default", "d"));
	assert_null(hf_cache_get(bench->cache, "default", "a"));
}

static void test_an_object_made_anew_is_a_deletion_and_an_addition(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);

	fake_event(watch, HF_EVENT_ADDED, fake_object("a", "u9", "15", "nine"));
	assert_trace(bench, "-a=one +a=nine ");
	fake_event(watch, HF_EVENT_DELETED, fake_object("a", "u1", "14", "one"));
	assert_trace(bench, "");
	assert_int_equal(hf_cache_len(bench->cache), 1);
}

static void test_an_object_that_decode_refuses_is_absent(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);

	fake_event(watch, HF_EVENT_ADDED, fake_object("b", "u2", "11", "ignored"));
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "12", "ignored"));
	fake_event(watch, HF_EVENT_DELETED, fake_object("b", "u2", "13", "ignored"));
	assert_trace(bench, "-a=one ");
	assert_int_equal(hf_cache_len(bench->cache), 0);
}

static void test_an_index_finds_entries_by_key_and_follows_changes(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch = sync_one(bench);
	const struct hf_cache_entry *entry;

	fake_event(watch, HF_EVENT_ADDED, fake_object("b", "u2", "11", "one"));
	fake_event(watch, HF_EVENT_ADDED, fake_object("c", "u3", "12", "one"));
	fake_event(watch, HF_EVENT_ADDED, fake_object("d", "u4", "13", "unindexed"));
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("b", "u2", "14", "two"));
	entry = hf_cache_first(bench->cache, 0, "one");
	assert_string_equal(entry->name, "a");
	entry = hf_cache_after(bench->cache, 0, entry);
	assert_string_equal(entry->name, "c");
	assert_null(hf_cache_after(bench->cache, 0, entry));
	assert_string_equal(hf_cache_first(bench->cache, 0, "two")->name, "b");
	assert_null(hf_cache_first(bench->cache, 0, "unindexed"));
	fake_event(watch, HF_EVENT_DELETED, fake_object("a", "u1", "15", "one"));
	fake_event(watch, HF_EVENT_DELETED, fake_object("c", "u3", "16", "one"));
	assert_null(hf_cache_first(bench->cache, 0, "one"));
	size_t it = 0, n = 0;

	while (hf_cache_next(bench->cache, &it) != NULL)
		n++;
	assert_int_equal(n, 2);
}

static void test_a_full_cache_is_reported_once_and_keeps_its_objects(void **state)
{
	struct bench *bench = *state;
	struct fake_watch *watch;

	create_cache(bench, 1);
	watch = sync_one(bench);
	fake_event(watch, HF_EVENT_ADDED, fake_object("b", "u2", "11", "two"));
	fake_event(watch, HF_EVENT_ADDED, fake_object("c", "u3", "12", "three"));
	fake_event(watch, HF_EVENT_MODIFIED, fake_object("a", "u1", "13", "uno"));
	assert_trace(bench, "~a=one>uno ");
	assert_int_equal(bench->problem_code, HF_E_TOO_LARGE);
	assert_int_equal(bench->problems, 1);
}

static void test_nothing_runs_after_destroy_at_any_stage(void **state)
{
	struct bench *bench = *state;

	/* Destroyed while listing. */
	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	bench->cache = hf_cache_destroy(bench->cache);
	assert_true(fake_next(bench->store)->canceled);
	/* Destroyed while waiting for a retry. */
	create_cache(bench, 0);
	hf_cache_start(bench->cache);
	hf_loop_run_ready(bench->loop);
	fake_refuse(fake_next(bench->store), HF_E_UNAVAILABLE);
	bench->cache = hf_cache_destroy(bench->cache);
	/* Destroyed while watching. */
	create_cache(bench, 0);
	struct fake_watch *watch = sync_one(bench);

	bench->cache = hf_cache_destroy(bench->cache);
	assert_false(watch->live);
	hf_loop_run(bench->loop);
	assert_null(fake_next(bench->store));
}

static const char *by_nothing(const struct hf_cache_entry *entry)
{
	return NULL;
}

/* The memory that the cache uses for one pod of a job, without the view. A change that needs
 * more bytes for each of 40,000 pods must raise this limit. */
static void test_an_entry_takes_at_most_272_bytes(void **state)
{
	enum { PODS = 4000, BYTES_MAX = 272 };
	struct bench *bench = *state;
	const struct hf_cache_options options = {.loop = bench->loop,
						 .store = &bench->store->base,
						 .resource = &hf_pods,
						 .index_key = {by_nothing, by_nothing}};
	struct hf_cache *cache = hf_cache_create(&options);
	size_t before = mallinfo2().uordblks;

	/* mallinfo2 does not measure AddressSanitizer's own heap. */
	if (HF_UNDER_ASAN) {
		hf_cache_destroy(cache);
		skip();
	}
	for (int i = 0; i < PODS; i++) {
		char text[512];

		snprintf(
			text, sizeof(text),
			"{\"metadata\":{\"name\":\"ddp-%d-worker-1\",\"namespace\":\"default\",\"uid\":"
			"\"0b9f5f0e-7c5c-4a37-9b53-0d2a4a3a8c11\",\"resourceVersion\":\"%d\"}}",
			i, 100000 + i);
		HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));

		assert_true(hf_cache_put_reply(cache, doc));
	}
	size_t bytes = (mallinfo2().uordblks - before) / PODS;

	hf_cache_destroy(cache);
	assert_in_range(bytes, 1, BYTES_MAX);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_the_first_list_is_consistent_and_the_watch_goes_on_from_it),
		T(test_pages_make_one_list),
		T(test_a_failed_page_is_asked_for_again_and_an_expired_token_starts_over),
		T(test_a_repeated_continue_token_is_reported_and_the_list_restarts_later),
		T(test_an_empty_page_with_a_token_is_reported_and_the_next_page_comes_later),
		T(test_a_list_of_ever_new_tokens_is_given_up_after_ten_times_its_pages),
		T(test_errors_are_retried_with_growing_delays_and_retry_after_is_kept),
		T(test_a_watch_that_ends_goes_on_from_the_last_version),
		T(test_a_watch_that_always_ends_at_once_is_slowed_down),
		T(test_a_silent_watch_is_opened_anew_and_a_bookmark_counts_as_life),
		T(test_a_short_watch_with_an_event_is_continued_at_once),
		T(test_after_gone_a_new_list_removes_objects_that_it_does_not_contain),
		T(test_a_list_may_be_a_stream_and_the_watch_goes_on_with_it),
		T(test_after_gone_a_stream_removes_objects_that_it_does_not_contain),
		T(test_an_interrupted_stream_restarts_and_removes_nothing),
		T(test_a_live_read_of_the_held_version_changes_nothing),
		T(test_every_question_has_the_field_selector),
		T(test_a_server_without_streams_is_asked_for_pages_at_once),
		T(test_a_reply_runs_ahead_and_the_late_watch_events_are_stale),
		T(test_a_reply_replaces_a_version_whose_event_the_watch_lost),
		T(test_a_live_read_replaces_the_watchs_text_of_the_same_version),
		T(test_a_late_reply_does_not_revive_an_object_that_the_watch_deleted),
		T(test_a_reply_without_a_version_does_not_revive_a_deleted_object),
		T(test_versions_are_compared_as_numbers_not_as_text),
		T(test_an_object_gone_by_reply_does_not_come_back_from_the_past),
		T(test_a_mark_of_gone_holds_through_a_list_begun_before_it),
		T(test_a_list_keeps_an_object_that_a_reply_created_after_it),
		T(test_an_object_made_anew_is_a_deletion_and_an_addition),
		T(test_an_object_that_decode_refuses_is_absent),
		T(test_an_index_finds_entries_by_key_and_follows_changes),
		T(test_a_full_cache_is_reported_once_and_keeps_its_objects),
		T(test_nothing_runs_after_destroy_at_any_stage),
		T(test_an_entry_takes_at_most_272_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
