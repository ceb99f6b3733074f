/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * page_bench JOBS CHANGES: serves the page over JOBS jobs, CHANGES of which change each second, until its standard input
 * ends. Prints the URL. tests/bench/page.py opens it.
 */
#include "base/mem.h"
#include "base/str.h"
#include "harness/page_source.h"
#include "page/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK (10 * HF_MS)

struct bench {
	struct hf_loop *loop;
	struct page_source *source;
	struct hf_page *page;
	struct hf_timer *timer;
	struct hf_io *in;
	int64_t jobs, changes, made;
	hf_time began;
};

static void change_job(struct bench *bench, int64_t number)
{
	char name[32];

	snprintf(name, sizeof(name), "job-%05" PRId64, number % bench->jobs);
	/* Each round changes the number of restarts of a job. */
	hf_page_see_job(
		bench->page,
		page_source_put(bench->source, "team-a", name,
				page_source_status("Running", (int)(number / bench->jobs))));
}

static void on_tick(void *arg)
{
	struct bench *bench = arg;
	hf_time spent = hf_loop_mono(bench->loop) - bench->began;
	int64_t due = bench->changes * (spent / HF_MS) / 1000;

	for (; bench->made < due; bench->made++)
		change_job(bench, bench->jobs + bench->made);
	hf_timer_arm(bench->timer, TICK);
}

static void on_input(void *arg, unsigned events)
{
	struct bench *bench = arg;
	char bytes[64];

	if (read(STDIN_FILENO, bytes, sizeof(bytes)) <= 0)
		hf_loop_stop(bench->loop);
}

static int begin(struct bench *bench, struct hf_error *err)
{
	struct hf_page_options options = {.address = "127.0.0.1", .hosts = {.loopback = true}};
	int rc = hf_loop_create(&bench->loop, err);

	if (rc != 0)
		return rc;
	bench->source = page_source_create();
	options.loop = bench->loop;
	options.source = &bench->source->source;
	rc = hf_page_create(&options, &bench->page, err);
	if (rc == 0)
		rc = hf_io_create(bench->loop, STDIN_FILENO, on_input, bench, &bench->in, err);
	if (rc != 0)
		return rc;
	hf_io_want(bench->in, HF_IO_READ);
	for (int64_t i = 0; i < bench->jobs; i++)
		change_job(bench, i);
	bench->timer = hf_timer_create(bench->loop, on_tick, bench);
	bench->began = hf_loop_mono(bench->loop);
	hf_timer_arm(bench->timer, TICK);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench bench = {.made = 0};
	struct hf_error err;

	if (argc != 3 || hf_str_to_i64(argv[1], 1, PAGE_SOURCE_JOBS_MAX, &bench.jobs, &err) != 0 ||
	    hf_str_to_i64(argv[2], 0, 100000, &bench.changes, &err) != 0) {
		fputs("usage: page_bench JOBS CHANGES\n", stderr);
		return 2;
	}
	if (begin(&bench, &err) != 0) {
		fprintf(stderr, "page_bench: %s\n", err.text);
		return 1;
	}
	printf("http://127.0.0.1:%u/?token=%s\n", (unsigned)hf_page_port(bench.page),
	       hf_page_token(bench.page));
	(void)fflush(stdout);
	hf_loop_run(bench.loop);
	hf_io_destroy(bench.in);
	hf_timer_destroy(bench.timer);
	hf_page_destroy(bench.page);
	page_source_destroy(bench.source);
	hf_loop_destroy(bench.loop);
	return 0;
}
