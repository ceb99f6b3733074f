/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "page/access.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/fake_store.h"
#include "harness/page_tables.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
	struct page_tables tables;
	struct fake_store *store;
	struct hf_page_access *access;
	int known, logins;
	char user[64], error[HF_ERROR_TEXT_MAX];
};

static int open_bench(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	bench->store = fake_store_create();
	page_tables_open(&bench->tables, hf_loop_create_virtual(0), NULL);
	bench->tables.session->all = false;
	bench->access =
		hf_page_access_create(bench->tables.loop, &bench->store->base, bench->tables.jobs);
	*state = bench;
	return 0;
}

static int close_bench(void **state)
{
	struct bench *bench = *state;

	hf_page_access_destroy(bench->access);
	page_tables_close(&bench->tables);
	fake_store_destroy(bench->store);
	hf_loop_destroy(bench->tables.loop);
	free(bench);
	return 0;
}

static void on_login(void *arg, const struct hf_json *identity, const struct hf_error *err)
{
	struct bench *bench = arg;

	bench->logins++;
	snprintf(bench->user, sizeof(bench->user), "%s",
		 hf_str_or(hf_json_path_str(identity, "user", NULL), ""));
	snprintf(bench->error, sizeof(bench->error), "%s", identity == NULL ? err->text : "");
}

static void on_known(void *arg)
{
	((struct bench *)arg)->known++;
}

static void answer(struct fake_call *call, const char *status)
{
	HF_AUTOFREE char *text = hf_xasprintf("{\"status\":%s}", status);

	fake_answer_object(call, hf_doc_from_text(text, strlen(text)));
}

static const char *part(const struct fake_call *call, const char *key)
{
	return hf_str_or(hf_json_path_str(hf_doc_json(call->request->body), "spec",
					  "resourceAttributes", key, NULL),
			 "");
}

static void a_token_is_reviewed_by_the_api_server(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	struct hf_error err;

	assert_int_equal(hf_page_access_login(bench->access, "secret", on_login, bench, &err), 0);
	call = fake_next(bench->store);
	assert_string_equal(call->request->resource->plural, "tokenreviews");
	assert_string_equal(
		hf_json_path_str(hf_doc_json(call->request->body), "spec", "token", NULL),
		"secret");
	answer(call, "{\"authenticated\":true,\"user\":{\"username\":\"ada\",\"groups\":[\"g\"]}}");
	assert_string_equal(bench->user, "ada");
}

static void a_refused_token_is_answered_late(void **state)
{
	struct bench *bench = *state;
	struct hf_error err;

	assert_int_equal(hf_page_access_login(bench->access, "bad", on_login, bench, &err), 0);
	answer(fake_next(bench->store), "{\"authenticated\":false}");
	assert_int_equal(bench->logins, 0);
	hf_loop_run_until(bench->tables.loop, HF_PAGE_REFUSE_AFTER);
	assert_int_equal(bench->logins, 1);
	assert_string_equal(bench->error, "the API server does not accept this token");
}

static void an_answer_without_a_user_is_a_refusal(void **state)
{
	static const char *const bad[] = {
		"{\"authenticated\":true}", "{\"authenticated\":\"true\"}",
		"{\"authenticated\":true,\"user\":{\"username\":\"\"}}", "[]"};
	struct bench *bench = *state;
	struct hf_error err;

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		assert_int_equal(hf_page_access_login(bench->access, "t", on_login, bench, &err),
				 0);
		answer(fake_next(bench->store), bad[i]);
		hf_loop_run_until(bench->tables.loop,
				  hf_loop_mono(bench->tables.loop) + HF_PAGE_REFUSE_AFTER);
		assert_int_equal(bench->logins, (int)i + 1);
		assert_string_equal(bench->user, "");
	}
}

static void logins_under_way_have_a_limit(void **state)
{
	struct bench *bench = *state;
	struct hf_error err;

	for (int i = 0; i < HF_PAGE_LOGINS_MAX; i++)
		assert_int_equal(hf_page_access_login(bench->access, "t", on_login, bench, &err),
				 0);
	assert_int_equal(hf_page_access_login(bench->access, "t", on_login, bench, &err),
			 HF_E_TOO_MANY);
}

static void a_login_that_was_forgotten_calls_nobody(void **state)
{
	struct bench *bench = *state;
	struct hf_error err;

	assert_int_equal(hf_page_access_login(bench->access, "t", on_login, bench, &err), 0);
	hf_page_access_forget(bench->access, bench);
	answer(fake_next(bench->store), "{\"authenticated\":true,\"user\":{\"username\":\"ada\"}}");
	assert_int_equal(bench->logins, 0);
}

/* Answers all waiting reviews: one plural in one namespace is allowed. */
static int answer_reviews(struct bench *bench, const char *plural, const char *ns)
{
	struct fake_call *call;
	int n = 0;

	while ((call = fake_next(bench->store)) != NULL) {
		bool allowed = hf_streq(part(call, "resource"), plural) &&
			       hf_streq(part(call, "namespace"), ns);

		assert_string_equal(part(call, "verb"), "list");
		answer(call, allowed ? "{\"allowed\":true}" : "{\"allowed\":false}");
		n++;
	}
	return n;
}

static void put_job(struct bench *bench, const char *ns)
{
	hf_page_jobs_touch(bench->tables.jobs, page_source_put(bench->tables.source, ns, "ddp",
							       page_source_status("Running", 0)));
	hf_loop_run_until(bench->tables.loop, hf_loop_mono(bench->tables.loop) + HF_PAGE_SETTLE);
}

static void namespaces_are_asked_for_where_a_kind_is_not_allowed_everywhere(void **state)
{
	struct bench *bench = *state;

	put_job(bench, "team-a");
	put_job(bench, "team-b");
	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	assert_int_equal(bench->known, 0);
	/* Six kinds and nodes for all namespaces, then PyTorchJobs in two namespaces. */
	assert_int_equal(answer_reviews(bench, "pytorchjobs", "team-a"), 9);
	assert_int_equal(bench->known, 1);
	assert_true(hf_page_session_may(bench->tables.session, "pytorchjobs", "team-a"));
	assert_false(hf_page_session_may(bench->tables.session, "pytorchjobs", "team-b"));
	assert_false(hf_page_access_sees_nodes(bench->tables.session));
	assert_false(hf_page_access_sees_all(bench->tables.session));
}

static void answers_count_for_half_a_minute(void **state)
{
	struct bench *bench = *state;

	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	assert_int_equal(answer_reviews(bench, "nodes", ""), 7);
	assert_true(hf_page_access_sees_nodes(bench->tables.session));
	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	assert_int_equal(bench->known, 2);
	assert_int_equal(answer_reviews(bench, "nodes", ""), 0);
	hf_loop_run_until(bench->tables.loop, HF_PAGE_RIGHTS_FRESH);
	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	assert_int_equal(answer_reviews(bench, "none", ""), 7);
	assert_false(hf_page_access_sees_nodes(bench->tables.session));
	assert_int_equal(bench->known, 3);
}

static void a_new_namespace_is_asked_for_at_once(void **state)
{
	struct bench *bench = *state;

	put_job(bench, "team-a");
	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	assert_int_equal(answer_reviews(bench, "pytorchjobs", "team-a"), 8);
	put_job(bench, "team-c");
	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	assert_int_equal(answer_reviews(bench, "pytorchjobs", "team-c"), 1);
	assert_int_equal(bench->known, 2);
	assert_true(hf_page_session_may(bench->tables.session, "pytorchjobs", "team-c"));
}

static void requests_of_one_session_share_the_reviews(void **state)
{
	struct bench *bench = *state;
	int other = 0;

	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	hf_page_access_learn(bench->access, bench->tables.session, on_known, &other);
	hf_page_access_forget(bench->access, &other);
	assert_int_equal(answer_reviews(bench, "none", ""), 7);
	assert_int_equal(bench->known, 2);
	assert_int_equal(other, 0);
}

/* Two waiters; the callback of the first forgets the second. */
struct pair {
	struct bench *bench;
	struct pair *other;
	int known;
};

static void forget_other(void *arg)
{
	struct pair *pair = arg;

	pair->known++;
	hf_page_access_forget(pair->bench->access, pair->other);
}

static void a_callback_may_forget_a_waiter_of_the_same_session(void **state)
{
	struct bench *bench = *state;
	struct pair second = {.bench = bench}, first = {.bench = bench, .other = &second};

	hf_page_access_learn(bench->access, bench->tables.session, forget_other, &first);
	hf_page_access_learn(bench->access, bench->tables.session, forget_other, &second);
	assert_int_equal(answer_reviews(bench, "none", ""), 7);
	assert_int_equal(first.known, 1);
	assert_int_equal(second.known, 0);
}

static void a_right_is_lost_if_the_api_server_cannot_be_asked_for_long(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	answer_reviews(bench, "nodes", "");
	hf_loop_run_until(bench->tables.loop, HF_PAGE_RIGHTS_FRESH);
	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	while ((call = fake_next(bench->store)) != NULL)
		fake_refuse(call, HF_E_UNAVAILABLE);
	assert_true(hf_page_access_sees_nodes(bench->tables.session));
	hf_loop_run_until(bench->tables.loop, HF_PAGE_RIGHTS_STALE);
	hf_page_access_learn(bench->access, bench->tables.session, on_known, bench);
	while ((call = fake_next(bench->store)) != NULL)
		fake_refuse(call, HF_E_UNAVAILABLE);
	assert_false(hf_page_access_sees_nodes(bench->tables.session));
}

/* Begins a round of a session with a token, and returns the review of the token. */
static struct fake_call *review_token(struct bench *bench)
{
	struct hf_page_session *session = bench->tables.session;
	struct fake_call *call;

	if (session->token == NULL)
		session->token = hf_xstrdup("secret");
	hf_page_access_learn(bench->access, session, on_known, bench);
	call = fake_next(bench->store);
	assert_string_equal(call->request->resource->plural, "tokenreviews");
	assert_string_equal(
		hf_json_path_str(hf_doc_json(call->request->body), "spec", "token", NULL),
		"secret");
	return call;
}

static bool has_ended(const struct bench *bench)
{
	return hf_page_session_has_ended(bench->tables.session, hf_loop_mono(bench->tables.loop));
}

static void a_token_that_is_refused_later_ends_its_session(void **state)
{
	static const char accepted[] = "{\"authenticated\":true,\"user\":{\"username\":\"ada\"}}";
	struct bench *bench = *state;

	answer(review_token(bench), accepted);
	answer_reviews(bench, "nodes", "");
	assert_int_equal(bench->known, 1);
	assert_false(has_ended(bench));
	hf_loop_run_until(bench->tables.loop, HF_PAGE_RIGHTS_FRESH);
	answer(review_token(bench), "{\"authenticated\":false}");
	assert_true(has_ended(bench));
	assert_false(hf_page_access_sees_nodes(bench->tables.session));
	/* The waiting request is answered when the reviews of its rights have answers too. */
	assert_int_equal(bench->known, 1);
	answer_reviews(bench, "nodes", "");
	assert_int_equal(bench->known, 2);
	assert_false(hf_page_access_sees_nodes(bench->tables.session));
}

static void a_token_that_cannot_be_reviewed_ends_no_session(void **state)
{
	struct bench *bench = *state;

	fake_refuse(review_token(bench), HF_E_UNAVAILABLE);
	answer_reviews(bench, "nodes", "");
	assert_int_equal(bench->known, 1);
	assert_false(has_ended(bench));
	assert_true(hf_page_access_sees_nodes(bench->tables.session));
}

static void a_review_under_way_ends_with_the_page(void **state)
{
	struct bench *bench = *state;

	(void)review_token(bench);
	bench->access = hf_page_access_destroy(bench->access);
	assert_int_equal(bench->known, 0);
}

int main(void)
{
#define BENCH_TEST(fn) cmocka_unit_test_setup_teardown(fn, open_bench, close_bench)
	const struct CMUnitTest tests[] = {
		BENCH_TEST(a_token_is_reviewed_by_the_api_server),
		BENCH_TEST(a_refused_token_is_answered_late),
		BENCH_TEST(an_answer_without_a_user_is_a_refusal),
		BENCH_TEST(logins_under_way_have_a_limit),
		BENCH_TEST(a_login_that_was_forgotten_calls_nobody),
		BENCH_TEST(namespaces_are_asked_for_where_a_kind_is_not_allowed_everywhere),
		BENCH_TEST(answers_count_for_half_a_minute),
		BENCH_TEST(a_new_namespace_is_asked_for_at_once),
		BENCH_TEST(requests_of_one_session_share_the_reviews),
		BENCH_TEST(a_callback_may_forget_a_waiter_of_the_same_session),
		BENCH_TEST(a_right_is_lost_if_the_api_server_cannot_be_asked_for_long),
		BENCH_TEST(a_token_that_is_refused_later_ends_its_session),
		BENCH_TEST(a_token_that_cannot_be_reviewed_ends_no_session),
		BENCH_TEST(a_review_under_way_ends_with_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
