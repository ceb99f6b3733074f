/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Tests of streams over real sockets: rights, resume, shared bytes, slow viewers. */
#include "page/streams.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/page_tables.h"
#include "harness/raw_client.h"

#include <stdlib.h>

#define VIEWERS 2
/* A change that fills a viewer's buffer after a few. */
#define LARGE ((size_t)60 << 10)
#define TAIL ((size_t)4096)

struct bench {
	struct hf_test_loop t;
	struct hf_http_server *server;
	struct hf_raw raws[VIEWERS];
	struct page_tables tables;
	struct hf_page_access *access;
	struct hf_page_streams *streams;
	struct hf_timer *poll;
	bool (*done)(struct bench *bench);
};

static void on_request(void *arg, struct hf_exchange *ex)
{
	struct bench *bench = arg;
	const struct hf_page_viewer viewer = {.session = bench->tables.session,
					      .since = hf_exchange_query(ex, "since")};

	assert_true(hf_page_streams_admit(bench->streams));
	hf_page_streams_open(bench->streams, ex, &viewer);
}

static void on_poll(void *arg)
{
	struct bench *bench = arg;

	if (bench->done(bench))
		hf_loop_stop(bench->t.loop);
	else
		hf_timer_arm(bench->poll, 5 * HF_MS);
}

static void run_until(struct bench *bench, bool (*done)(struct bench *bench))
{
	bench->done = done;
	while (!done(bench)) {
		hf_timer_arm(bench->poll, 5 * HF_MS);
		hf_test_loop_run(&bench->t);
	}
	hf_timer_disarm(bench->poll);
}

static int open_bench(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));
	const struct hf_http_server_spec spec = {.address = "127.0.0.1",
						 .handler = on_request,
						 .arg = bench,
						 .stream_bytes_max = HF_PAGE_STREAM_BYTES_MAX};
	struct hf_page_streams_options streams = {.ping = HF_MS, .stall = 50 * HF_MS};
	struct hf_error err = {0};

	hf_test_loop_init(&bench->t);
	page_tables_open(&bench->tables, bench->t.loop, NULL);
	bench->access = hf_page_access_create(bench->t.loop, NULL, bench->tables.jobs);
	streams.loop = bench->t.loop;
	streams.ring = bench->tables.ring;
	streams.jobs = bench->tables.jobs;
	streams.access = bench->access;
	bench->streams = hf_page_streams_create(&streams);
	bench->poll = hf_timer_create(bench->t.loop, on_poll, bench);
	assert_ok(hf_http_server_create(bench->t.loop, &spec, &bench->server, &err), &err);
	for (size_t i = 0; i < VIEWERS; i++)
		bench->raws[i].fd = -1;
	*state = bench;
	return 0;
}

static int close_bench(void **state)
{
	struct bench *bench = *state;

	for (size_t i = 0; i < VIEWERS; i++)
		if (bench->raws[i].fd >= 0)
			hf_raw_close(&bench->raws[i]);
	hf_page_streams_destroy(bench->streams);
	hf_http_server_destroy(bench->server);
	hf_timer_destroy(bench->poll);
	hf_page_access_destroy(bench->access);
	page_tables_close(&bench->tables);
	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}

static void add(struct bench *bench, const char *ns, const char *text, size_t len)
{
	struct hf_page_text_ref *made = hf_page_text_make(text, len);
	const struct hf_page_delta delta = {
		.change = HF_PAGE_CHANGE_JOB, .ns = ns, .plural = "pytorchjobs", .text = made};

	hf_page_ring_add(bench->tables.ring, &delta, 0);
	hf_page_text_unref(made);
}

static void view(struct bench *bench, size_t i, const char *since)
{
	HF_AUTOFREE char *get = hf_xasprintf("GET /%s HTTP/1.1\r\nHost: h\r\n\r\n", since);

	hf_raw_open(&bench->raws[i], &bench->t, hf_http_server_port(bench->server));
	hf_raw_say(&bench->raws[i], get);
	bench->raws[i].until = "retry";
	while (strstr(bench->raws[i].in.data, "retry") == NULL)
		hf_test_loop_run(&bench->t);
	bench->raws[i].until = NULL;
}

/* The last bytes have the text: a search of all of a long answer would take longer than its way. */
static bool has(const struct hf_raw *raw, const char *text)
{
	size_t len = raw->in.len < TAIL ? raw->in.len : TAIL;

	return memmem(raw->in.data + raw->in.len - len, len, text, strlen(text)) != NULL;
}

static bool both_have_it(struct bench *bench)
{
	return has(&bench->raws[0], "{\"name\":\"one\"}") &&
	       has(&bench->raws[1], "{\"name\":\"one\"}");
}

static void a_change_is_made_once_for_all_viewers(void **state)
{
	struct bench *bench = *state;
	const struct hf_page_stream_stats *stats = hf_page_streams_stats(bench->streams);

	view(bench, 0, "");
	view(bench, 1, "");
	assert_int_equal(stats->open, 2);
	add(bench, "a", "{\"name\":\"one\"}", strlen("{\"name\":\"one\"}"));
	hf_page_streams_push(bench->streams);
	run_until(bench, both_have_it);
	assert_true(has(&bench->raws[0], "event: job\nid: 0000000000000001-1\ndata: {"));
	assert_int_equal(stats->built, strlen("event: job\nid: 0000000000000001-1\ndata: "
					      "{\"name\":\"one\"}\n\n"));
}

static bool first_has_end(struct bench *bench)
{
	return has(&bench->raws[0], "\"end\"");
}

static void a_viewer_that_comes_back_gets_what_it_missed(void **state)
{
	struct bench *bench = *state;

	add(bench, "a", "\"old\"", 5);
	add(bench, "a", "\"missed\"", 8);
	add(bench, "a", "\"end\"", 5);
	view(bench, 0, "?since=0000000000000001-1");
	run_until(bench, first_has_end);
	assert_true(has(&bench->raws[0], "\"missed\""));
	assert_false(has(&bench->raws[0], "\"old\""));
	assert_false(has(&bench->raws[0], "event: reset"));
}

static bool first_has_reset(struct bench *bench)
{
	return has(&bench->raws[0], "event: reset");
}

static void a_viewer_that_the_ring_has_passed_is_reset(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < HF_PAGE_RING_MAX + 2; i++)
		add(bench, "a", "\"x\"", 3);
	view(bench, 0, "?since=0000000000000001-1");
	run_until(bench, first_has_reset);
	assert_int_equal(hf_page_streams_stats(bench->streams)->resets, 1);
}

static void a_viewer_gets_only_what_its_session_may_see(void **state)
{
	struct bench *bench = *state;

	bench->tables.session->all = false;
	bench->tables.session->learned_at = hf_loop_mono(bench->t.loop);
	bench->tables.session->learned_places = hf_page_jobs_places(bench->tables.jobs);
	hf_page_session_grant(bench->tables.session, "pytorchjobs", "a")->right =
		HF_PAGE_RIGHT_ALLOWED;
	view(bench, 0, "");
	add(bench, "b", "\"secret\"", 8);
	add(bench, "a", "\"end\"", 5);
	hf_page_streams_push(bench->streams);
	run_until(bench, first_has_end);
	assert_false(has(&bench->raws[0], "secret"));
}

static void a_viewer_with_other_rights_than_before_is_reset(void **state)
{
	struct bench *bench = *state;

	view(bench, 0, "");
	bench->tables.session->rights_version++;
	hf_page_streams_push(bench->streams);
	run_until(bench, first_has_reset);
}

static bool is_cut(struct bench *bench)
{
	return hf_page_streams_stats(bench->streams)->cut == 1;
}

static void a_viewer_that_reads_nothing_is_cut_and_the_other_gets_all(void **state)
{
	struct bench *bench = *state;
	HF_AUTOFREE char *large = hf_xcalloc(1, LARGE + 1);
	const int small = 4096;

	memset(large, 'x', LARGE);
	view(bench, 0, "");
	view(bench, 1, "");
	(void)setsockopt(bench->raws[1].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	bench->raws[1].paused = true;
	hf_raw_want(&bench->raws[1]);
	/* More than the buffers of the kernel and of the server hold. */
	for (int i = 0; i < 150; i++)
		add(bench, "a", large, LARGE);
	add(bench, "a", "\"end\"", 5);
	hf_page_streams_push(bench->streams);
	run_until(bench, first_has_end);
	run_until(bench, is_cut);
	assert_int_equal(hf_page_streams_stats(bench->streams)->open, 1);
}

static bool all_are_gone(struct bench *bench)
{
	return hf_page_streams_stats(bench->streams)->open == 0;
}

static void the_stream_of_a_closed_session_ends(void **state)
{
	struct bench *bench = *state;

	view(bench, 0, "");
	hf_page_sessions_close(bench->tables.sessions, bench->tables.session);
	run_until(bench, all_are_gone);
}

static bool first_has_ping(struct bench *bench)
{
	return has(&bench->raws[0], ": ping");
}

static void a_quiet_stream_is_pinged(void **state)
{
	struct bench *bench = *state;

	view(bench, 0, "");
	run_until(bench, first_has_ping);
}

int main(void)
{
#define BENCH_TEST(fn) cmocka_unit_test_setup_teardown(fn, open_bench, close_bench)
	const struct CMUnitTest tests[] = {
		BENCH_TEST(a_change_is_made_once_for_all_viewers),
		BENCH_TEST(a_viewer_that_comes_back_gets_what_it_missed),
		BENCH_TEST(a_viewer_that_the_ring_has_passed_is_reset),
		BENCH_TEST(a_viewer_gets_only_what_its_session_may_see),
		BENCH_TEST(a_viewer_with_other_rights_than_before_is_reset),
		BENCH_TEST(a_viewer_that_reads_nothing_is_cut_and_the_other_gets_all),
		BENCH_TEST(the_stream_of_a_closed_session_ends),
		BENCH_TEST(a_quiet_stream_is_pinged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
