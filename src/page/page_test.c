/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of the page in a cluster, over real sockets. A fake store is the API server. */
#include "page/page.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/fake_store.h"
#include "harness/page_source.h"
#include "harness/raw_client.h"

#include <stdlib.h>

#define HOST "page.example"

struct bench {
	struct hf_test_loop t;
	struct fake_store *store, *caller; /* of the operator; with the caller's token */
	struct page_source *source;
	struct hf_page *page;
	struct hf_raw raw;
	char token[64]; /* with which the caller's store was opened */
	char cookie[128];
	struct hf_timer *poll;
};

/* Creates a store for each call, because the page destroys it at the end. */
static int open_store(void *arg, const char *token, struct hf_store **ret_store,
		      struct hf_error *err)
{
	struct bench *bench = arg;

	snprintf(bench->token, sizeof(bench->token), "%s", token);
	bench->caller = fake_store_create();
	*ret_store = &bench->caller->base;
	return 0;
}

static void on_poll(void *arg)
{
	hf_loop_stop(((struct bench *)arg)->t.loop);
}

static int open_bench(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	struct hf_page_options options = {.address = "127.0.0.1",
					  .hosts = {.names = {HOST}},
					  .cluster = true,
					  .open_store = open_store,
					  .settle = HF_MS,
					  .arg = bench};
	struct hf_error err = {0};

	hf_test_loop_init(&bench->t);
	bench->store = fake_store_create();
	bench->source = page_source_create();
	options.loop = bench->t.loop;
	options.store = &bench->store->base;
	options.source = &bench->source->source;
	assert_ok(hf_page_create(&options, &bench->page, &err), &err);
	bench->raw.fd = -1;
	bench->poll = hf_timer_create(bench->t.loop, on_poll, bench);
	*state = bench;
	return 0;
}

static int close_bench(void **state)
{
	struct bench *bench = *state;

	if (bench->raw.fd >= 0)
		hf_raw_close(&bench->raw);
	hf_page_destroy(bench->page);
	hf_timer_destroy(bench->poll);
	page_source_destroy(bench->source);
	fake_store_destroy(bench->store);
	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}

static void say(struct bench *bench, const char *method, const char *path, const char *body)
{
	HF_AUTOFREE char *text =
		hf_xasprintf("%s %s HTTP/1.1\r\nHost: " HOST
			     "\r\nCookie: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
			     method, path, bench->cookie, strlen(body), body);

	if (bench->raw.fd >= 0)
		hf_raw_close(&bench->raw);
	hf_raw_open(&bench->raw, &bench->t, hf_page_port(bench->page));
	hf_raw_say(&bench->raw, text);
}

/* The next request that reaches a store; the loop runs until it does. NULL: the page has answered, or opened the
 * caller's store. */
static struct fake_call *wait_call(struct bench *bench, struct fake_store *const *store)
{
	struct fake_call *call = *store == NULL ? NULL : fake_next(*store);

	while (call == NULL && !bench->raw.eof &&
	       (store == &bench->caller || bench->caller == NULL)) {
		hf_timer_arm(bench->poll, HF_MS);
		hf_test_loop_run(&bench->t);
		call = *store == NULL ? NULL : fake_next(*store);
	}
	return call;
}

static void answer(struct fake_call *call, const char *text)
{
	fake_answer_object(call, hf_doc_from_text(text, strlen(text)));
}

static void expect(struct bench *bench, const char *text)
{
	hf_raw_expect(&bench->raw, text);
}

/* Logs in as ada. */
static void log_in(struct bench *bench)
{
	struct fake_call *call;
	const char *at;

	say(bench, "POST", "/api/v1/login", "{\"token\":\"ada-secret\"}");
	call = wait_call(bench, &bench->store);
	assert_string_equal(call->request->resource->plural, "tokenreviews");
	answer(call,
	       "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"ada\",\"groups\":[\"g\"]}}}");
	expect(bench, "{\"user\":\"ada\"}");
	at = strstr(bench->raw.in.data, "Set-Cookie: ");
	assert_non_null(at);
	snprintf(bench->cookie, sizeof(bench->cookie), "%.*s", (int)strcspn(at + 12, ";"), at + 12);
}

/* Answers the reviews of rights: PyTorchJobs in this namespace are allowed. The last answer is given when the loop runs
 * again. */
static void answer_reviews(struct bench *bench, const char *ns)
{
	struct fake_call *call;

	while ((call = wait_call(bench, &bench->store)) != NULL) {
		const struct hf_json *part = hf_json_path(hf_doc_json(call->request->body), "spec",
							  "resourceAttributes", NULL);
		bool allowed = hf_streq(hf_json_path_str(part, "resource", NULL), "pytorchjobs") &&
			       hf_streq(hf_json_path_str(part, "namespace", NULL), ns);

		assert_string_equal(call->request->resource->plural, "subjectaccessreviews");
		assert_string_equal(
			hf_json_path_str(hf_doc_json(call->request->body), "spec", "user", NULL),
			"ada");
		answer(call, allowed ? "{\"status\":{\"allowed\":true}}"
				     : "{\"status\":{\"allowed\":false}}");
	}
}

static void put_jobs(struct bench *bench)
{
	static const char *const namespaces[] = {"team-a", "team-b"};

	for (size_t i = 0; i < HF_ARRAY_LEN(namespaces); i++)
		hf_page_see_job(bench->page, page_source_put(bench->source, namespaces[i], "ddp",
							     page_source_status("Running", 0)));
}

static void a_user_sees_the_jobs_that_the_api_server_allows(void **state)
{
	struct bench *bench = *state;

	put_jobs(bench);
	log_in(bench);
	say(bench, "GET", "/api/v1/jobs", "");
	answer_reviews(bench, "team-a");
	expect(bench, "\"namespace\":\"team-a\"");
	assert_null(strstr(bench->raw.in.data, "team-b"));
}

static void a_job_of_another_namespace_is_forbidden(void **state)
{
	struct bench *bench = *state;

	put_jobs(bench);
	log_in(bench);
	say(bench, "GET", "/api/v1/jobs/team-b/pytorchjobs/ddp", "");
	answer_reviews(bench, "team-a");
	expect(bench, "HTTP/1.1 403");
	expect(bench, "user 'ada' may not list pytorchjobs in namespace 'team-b'");
	say(bench, "GET", "/api/v1/nodes", "");
	expect(bench,
	       "user 'ada' may not list nodes; an administrator can allow it with a ClusterRole");
}

static void an_action_goes_to_the_api_server_with_the_callers_token(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;

	put_jobs(bench);
	log_in(bench);
	say(bench, "POST", "/api/v1/jobs/team-a/pytorchjobs/ddp/action",
	    "{\"action\":\"suspend\"}");
	answer_reviews(bench, "team-a");
	call = wait_call(bench, &bench->caller);
	assert_string_equal(bench->token, "ada-secret");
	assert_int_equal(call->request->verb, HF_VERB_PATCH);
	assert_string_equal(call->request->ns, "team-a");
	answer(call, "{}");
	expect(bench, "HTTP/1.1 202");
	expect(bench, "pytorchjob/ddp suspended");
}

static void a_refused_action_says_what_the_api_server_says(void **state)
{
	struct bench *bench = *state;
	struct fake_call *call;
	struct hf_reply reply = {.code = HF_E_FORBIDDEN, .message = "ada cannot patch"};

	put_jobs(bench);
	log_in(bench);
	say(bench, "POST", "/api/v1/jobs/team-a/pytorchjobs/ddp/action",
	    "{\"action\":\"restart\"}");
	answer_reviews(bench, "team-a");
	call = wait_call(bench, &bench->caller);
	fake_answer(call, &reply);
	expect(bench, "HTTP/1.1 403");
	expect(bench, "ada cannot patch");
}

static void a_session_needs_a_login(void **state)
{
	struct bench *bench = *state;

	say(bench, "GET", "/api/v1/jobs", "");
	expect(bench, "HTTP/1.1 401");
	say(bench, "POST", "/api/v1/login", "{\"token\":\"a b\"}");
	expect(bench, "HTTP/1.1 400");
	say(bench, "POST", "/api/v1/login", "no json");
	expect(bench, "HTTP/1.1 400");
	say(bench, "GET", "/?token=0", "");
	expect(bench, "HTTP/1.1 200");
	assert_null(strstr(bench->raw.in.data, "Set-Cookie"));
}

static void a_token_that_is_refused_gives_no_cookie(void **state)
{
	struct bench *bench = *state;

	say(bench, "POST", "/api/v1/login", "{\"token\":\"bad\"}");
	answer(wait_call(bench, &bench->store), "{\"status\":{\"authenticated\":false}}");
	expect(bench, "HTTP/1.1 401");
	assert_null(strstr(bench->raw.in.data, "Set-Cookie"));
}

static void while_another_replica_leads_the_page_says_so(void **state)
{
	struct bench *bench = *state;

	log_in(bench);
	bench->source->ready = false;
	say(bench, "GET", "/api/v1/jobs", "");
	answer_reviews(bench, "team-a");
	expect(bench, "HTTP/1.1 503");
	expect(bench, "another replica of the operator leads");
	say(bench, "GET", "/api/v1/session", "");
	expect(bench, "\"ready\":false");
}

static void requests_that_wait_end_with_the_page(void **state)
{
	struct bench *bench = *state;

	log_in(bench);
	say(bench, "GET", "/api/v1/jobs", "");
	assert_non_null(wait_call(bench, &bench->store));
	/* The teardown destroys the page while the reviews are open. */
}

int main(void)
{
#define BENCH_TEST(fn) cmocka_unit_test_setup_teardown(fn, open_bench, close_bench)
	const struct CMUnitTest tests[] = {
		BENCH_TEST(a_user_sees_the_jobs_that_the_api_server_allows),
		BENCH_TEST(a_job_of_another_namespace_is_forbidden),
		BENCH_TEST(an_action_goes_to_the_api_server_with_the_callers_token),
		BENCH_TEST(a_refused_action_says_what_the_api_server_says),
		BENCH_TEST(a_session_needs_a_login),
		BENCH_TEST(a_token_that_is_refused_gives_no_cookie),
		BENCH_TEST(while_another_replica_leads_the_page_says_so),
		BENCH_TEST(requests_that_wait_end_with_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
