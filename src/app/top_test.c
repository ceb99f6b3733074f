/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

#include "app/top.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"
#include "json/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW ((hf_time)1700000000 * HF_SECOND) /* 2023-11-14T22:13:20Z */

static struct hf_doc *read_doc(const char *text)
{
	HF_AUTO_YAML yaml = NULL;
	struct hf_error err;

	assert_ok(hf_yaml_parse(text, strlen(text), NULL, &yaml, &err), &err);
	return hf_doc_from_json(hf_json_share(hf_yaml_doc(yaml, 0)));
}

static void see_job(struct hf_top *top, const char *name, const char *state, const char *recovery)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: %s, namespace: team, uid: "
		"u-%s, creationTimestamp: '2023-11-14T22:03:20Z'}\n"
		"spec: {pytorchReplicaSpecs: {Worker: {replicas: 2}}}\n"
		"status: {conditions: [{type: %s, status: 'True'}], recovery: {%s}}\n",
		name, name, state, recovery);
	HF_AUTO_DOC doc = read_doc(text);

	hf_top_see_job(top, doc, false, NOW);
}

static struct hf_doc *pod_of(const char *job, const char *rank, const char *node)
{
	HF_AUTOFREE char *text = hf_xasprintf(
		"apiVersion: v1\nkind: Pod\nmetadata: {name: %s-%s, namespace: team, uid: p-%s-%s, labels: "
		"{training.kubeflow.org/job-name: %s}}\nspec: {nodeName: %s}\n"
		"status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}\n",
		job, rank, job, rank, job, node);

	return read_doc(text);
}

static void see_pod(struct hf_top *top, const char *job, const char *rank, const char *node)
{
	HF_AUTO_DOC doc = pod_of(job, rank, node);

	hf_top_see_pod(top, doc, false);
}

static void see_health(struct hf_top *top, const char *reports)
{
	HF_AUTOFREE char *text =
		hf_xasprintf("metadata: {name: n}\nstatus: {ranks: [%s]}\n", reports);
	HF_AUTO_DOC doc = read_doc(text);

	hf_top_see_health(top, doc);
}

#define REPORT(pod, step, own, time)                                                               \
	"{namespace: team, pod: " pod ", uid: p-" pod ", state: Advancing, step: " step            \
	", totalSteps: 500, ownMicros: " own ", advancedTime: '" time "'}"

/* What a person sees of a screen: the lines without escape sequences and without blanks at their ends. A selected
 * line begins with ">". */
static char *read_screen(const char *drawn, const struct hf_top_screen *screen)
{
	struct hf_strbuf text = HF_STRBUF_INIT(1 << 20);
	size_t lines = 0;

	for (const char *at = drawn; *at != '\0';) {
		size_t len = strcspn(at, "\r"), columns = 0;

		if (len > 4 && strncmp(at, "\033[7m", 4) == 0)
			hf_strbuf_addch(&text, '>');
		for (size_t i = 0; i < len;) {
			if (at[i] == '\033') {
				i += strcspn(at + i, "mKHJ") + 1;
				continue;
			}
			hf_strbuf_addch(&text, at[i++]);
			columns++;
		}
		assert_true(columns <= (size_t)screen->width);
		while (text.len > 0 && text.data[text.len - 1] == ' ')
			hf_strbuf_truncate(&text, text.len - 1);
		hf_strbuf_addch(&text, '\n');
		lines++;
		at += len;
		at += *at == '\r' ? 2 : 0;
	}
	assert_int_equal(lines, screen->height);
	return hf_strbuf_detach(&text);
}

static void assert_screen(struct hf_top *top, struct hf_top_screen *screen, const char *wanted)
{
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(1 << 20);
	HF_AUTOFREE char *found = NULL;

	hf_top_draw(top, screen, &out);
	found = read_screen(out.data, screen);
	assert_string_equal(found, wanted);
}

static void release_screen(struct hf_top_screen *screen)
{
	free(screen->open);
	free(screen->selected);
}

static struct hf_top *make_jobs(void)
{
	struct hf_top *top = hf_top_create();

	see_job(top, "alpha", "Running",
		"generation: 1, step: 100, savedStep: 90, stepsAt: '2023-11-14T22:12:00Z'");
	see_job(top, "alpha", "Running",
		"generation: 1, step: 180, savedStep: 90, stepsAt: '2023-11-14T22:12:20Z'");
	see_job(top, "beta", "Failed",
		"generation: 3, restarts: {application: 2, device: 1}, last: {cause: device}");
	see_job(top, "gamma", "Succeeded", "");
	see_pod(top, "alpha", "worker-0", "n1");
	see_pod(top, "alpha", "worker-1", "n2");
	see_pod(top, "beta", "worker-0", "n2");
	return top;
}

static void jobs_stand_in_a_table_that_fits_the_terminal(void **state)
{
	struct hf_top *top = make_jobs();
	struct hf_top_screen screen = {
		.width = 200, .height = 7, .utf8 = true, .namespaces = true, .now = NOW};

	assert_screen(
		top, &screen,
		"3 jobs: 1 Failed, 1 Running, 1 Succeeded  by state\n"
		"NAMESPACE  NAME   KIND        STATE      READY  STEP   RATE  ETTR  RESTARTS  CAUSE   AGE\n"
		">team       beta   PyTorchJob  Failed       1/2     -      -     -  2a 1d     device  10m\n"
		"team       alpha  PyTorchJob  Running      2/2   180  4.0/s     -  0         -       10m\n"
		"team       gamma  PyTorchJob  Succeeded    0/2     -      -     -  0         -       10m\n"
		"\n"
		"q quit  Enter ranks  j/k move  s sort\n");
	screen.width = 80;
	screen.namespaces = false;
	assert_screen(
		top, &screen,
		"3 jobs: 1 Failed, 1 Running, 1 Succeeded  by state\n"
		"NAME   KIND        STATE      READY  STEP   RATE  ETTR  RESTARTS  CAUSE   AGE\n"
		">beta   PyTorchJob  Failed       1/2     -      -     -  2a 1d     device  10m\n"
		"alpha  PyTorchJob  Running      2/2   180  4.0/s     -  0         -       10m\n"
		"gamma  PyTorchJob  Succeeded    0/2     -      -     -  0         -       10m\n"
		"\n"
		"q quit  Enter ranks  j/k move  s sort\n");
	screen.width = 40;
	assert_screen(top, &screen,
		      "3 jobs: 1 Failed, 1 Running, 1 Succeeded\n"
		      "NAME   STATE      READY  STEP  RESTARTS\n"
		      ">beta   Failed       1/2     -  2a 1d\n"
		      "alpha  Running      2/2   180  0\n"
		      "gamma  Succeeded    0/2     -  0\n"
		      "\n"
		      "q quit  Enter ranks  j/k move  s sort\n");
	screen.width = 14;
	screen.height = 4;
	assert_screen(top, &screen,
		      "3 jobs: 1 Fail\n"
		      "NAME  STATE\n"
		      ">beta  Failed\n"
		      "q quit  Enter\n");
	release_screen(&screen);
	hf_top_destroy(top);
}

static void a_rate_begins_anew_after_a_restart(void **state)
{
	struct hf_top *top = make_jobs();
	struct hf_top_job *job = hf_top_find(top, "u-alpha");

	assert_true(job->rate > 3.99 && job->rate < 4.01);
	see_job(top, "alpha", "Running", "step: 180, stepsAt: '2023-11-14T22:12:40Z'");
	assert_true(job->rate > 3.99);
	see_job(top, "alpha", "Running", "step: 90, stepsAt: '2023-11-14T22:13:00Z'");
	assert_true(job->rate == 0);
	see_job(top, "alpha", "Running", "step: 100, stepsAt: '2023-11-14T22:13:10Z'");
	assert_true(job->rate > 0.99 && job->rate < 1.01);
	see_job(top, "alpha", "Restarting", "step: 110, stepsAt: '2023-11-14T22:13:20Z'");
	assert_true(job->rate == 0);
	hf_top_destroy(top);
}

static void the_ranks_of_a_job_show_who_is_slow(void **state)
{
	struct hf_top *top = make_jobs();
	struct hf_top_screen screen = {.width = 120, .height = 6, .now = NOW};

	see_pod(top, "alpha", "worker-10", "n3");
	see_health(top, REPORT("alpha-worker-0", "170", "100000", "2023-11-14T22:13:00Z"));
	see_health(top,
		   REPORT("alpha-worker-0", "180", "100000", "2023-11-14T22:13:10Z") ", " REPORT(
			   "alpha-worker-1", "180", "150000", "2023-11-14T22:13:10Z"));
	screen.open = hf_xstrdup("u-alpha");
	assert_screen(
		top, &screen,
		"team/alpha  Running  step 180 4.0/s  ETTR -  restarts 0  by state\n"
		"RANK       STATE       STEP   RATE     OWN    WAIT  SCORE  NODE  RESTARTS  LAST STEP\n"
		">worker-0   Running  180/500  1.0/s  100 ms  900 ms   1.00  n1           0        10s\n"
		"worker-1   Running  180/500      -  150 ms  100 ms   1.50  n2           0        10s\n"
		"worker-10  Running        -      -       -       -      -  n3           0          -\n"
		"q quit  Esc jobs  j/k move  s sort\n");
	screen.sort = HF_TOP_BY_SCORE;
	screen.width = 40;
	assert_screen(top, &screen,
		      "team/alpha  Running  step 180 4.0/s  ETT\n"
		      "RANK       STATE       STEP  SCORE\n"
		      ">worker-1   Running  180/500   1.50\n"
		      "worker-0   Running  180/500   1.00\n"
		      "worker-10  Running        -      -\n"
		      "q quit  Esc jobs  j/k move  s sort\n");
	release_screen(&screen);
	hf_top_destroy(top);
}

static void a_report_that_arrives_before_its_pod_is_kept(void **state)
{
	struct hf_top *top = hf_top_create();
	struct hf_top_rank *const *ranks;
	size_t n;

	see_job(top, "alpha", "Running", "");
	see_health(top, REPORT("alpha-worker-0", "170", "100000", "2023-11-14T22:13:00Z"));
	hf_top_ranks(top, hf_top_find(top, "u-alpha"), HF_TOP_BY_NAME, &n);
	assert_int_equal(n, 0);
	see_pod(top, "alpha", "worker-0", "n1");
	ranks = hf_top_ranks(top, hf_top_find(top, "u-alpha"), HF_TOP_BY_NAME, &n);
	assert_int_equal(n, 1);
	assert_int_equal(ranks[0]->step, 170);
	/* After a lost watch, the pods come again. */
	hf_top_mark(top, NULL);
	see_pod(top, "alpha", "worker-0", "n1");
	hf_top_sweep(top, NULL);
	ranks = hf_top_ranks(top, hf_top_find(top, "u-alpha"), HF_TOP_BY_NAME, &n);
	assert_int_equal(ranks[0]->step, 170);
	HF_AUTO_DOC gone = pod_of("alpha", "worker-0", "n1");
	hf_top_see_pod(top, gone, true);
	hf_top_ranks(top, hf_top_find(top, "u-alpha"), HF_TOP_BY_NAME, &n);
	assert_int_equal(n, 0);
	hf_top_destroy(top);
}

static void rows_of_objects_that_a_new_watch_does_not_report_are_removed(void **state)
{
	struct hf_top *top = make_jobs();
	struct hf_top_job *const *jobs;
	size_t n;

	hf_top_mark(top, "PyTorchJob");
	hf_top_mark(top, NULL);
	hf_top_jobs(top, HF_TOP_BY_NAME, &n);
	assert_int_equal(n, 3);
	see_job(top, "alpha", "Running", "");
	see_pod(top, "alpha", "worker-1", "n2");
	hf_top_sweep(top, "TFJob");
	hf_top_jobs(top, HF_TOP_BY_NAME, &n);
	assert_int_equal(n, 3);
	hf_top_sweep(top, "PyTorchJob");
	hf_top_sweep(top, NULL);
	jobs = hf_top_jobs(top, HF_TOP_BY_NAME, &n);
	assert_int_equal(n, 1);
	assert_string_equal(jobs[0]->name, "alpha");
	assert_int_equal(jobs[0]->ready, 1);
	hf_top_ranks(top, jobs[0], HF_TOP_BY_NAME, &n);
	assert_int_equal(n, 1);
	hf_top_destroy(top);
}

static enum hf_top_key feed(struct hf_top_keys *keys, const char *bytes)
{
	enum hf_top_key key = HF_TOP_NO_KEY;

	for (; *bytes != '\0'; bytes++)
		key = hf_top_keys_feed(keys, *bytes);
	return key;
}

static void keys_are_decoded(void **state)
{
	struct hf_top_keys keys = {.len = 0};

	assert_int_equal(feed(&keys, "q"), HF_TOP_QUIT);
	assert_int_equal(feed(&keys, "j"), HF_TOP_DOWN);
	assert_int_equal(feed(&keys, "\033[A"), HF_TOP_UP);
	assert_int_equal(feed(&keys, "\033OB"), HF_TOP_DOWN);
	assert_int_equal(feed(&keys, "\033[6~"), HF_TOP_PAGE_DOWN);
	assert_int_equal(feed(&keys, "\033[1;5A"), HF_TOP_NO_KEY);
	assert_int_equal(feed(&keys, "\033[99999999999999A"), HF_TOP_NO_KEY);
	keys.len = 0;
	assert_int_equal(feed(&keys, "\r"), HF_TOP_ENTER);
	assert_int_equal(feed(&keys, "\033"), HF_TOP_NO_KEY);
	assert_int_equal(hf_top_keys_end(&keys), HF_TOP_BACK);
	assert_int_equal(hf_top_keys_end(&keys), HF_TOP_NO_KEY);
	assert_int_equal(feed(&keys, "\033q"), HF_TOP_QUIT);
	assert_int_equal(feed(&keys, "x"), HF_TOP_NO_KEY);
	/* An unfinished sequence is dropped. */
	assert_int_equal(feed(&keys, "\033[1"), HF_TOP_NO_KEY);
	assert_int_equal(hf_top_keys_end(&keys), HF_TOP_NO_KEY);
	assert_int_equal(feed(&keys, "k"), HF_TOP_UP);
}

static void enter_opens_a_job_and_back_selects_it_again(void **state)
{
	struct hf_top *top = make_jobs();
	struct hf_top_screen screen = {.width = 80, .height = 8, .now = NOW};

	hf_top_press(top, &screen, HF_TOP_DOWN);
	assert_string_equal(screen.selected, "u-alpha");
	hf_top_press(top, &screen, HF_TOP_ENTER);
	assert_string_equal(screen.open, "u-alpha");
	hf_top_press(top, &screen, HF_TOP_DOWN);
	assert_string_equal(screen.selected, "p-alpha-worker-1");
	hf_top_press(top, &screen, HF_TOP_DOWN);
	assert_string_equal(screen.selected, "p-alpha-worker-1");
	hf_top_press(top, &screen, HF_TOP_BACK);
	assert_null(screen.open);
	assert_string_equal(screen.selected, "u-alpha");
	/* The selection stays with its job in another order. */
	hf_top_press(top, &screen, HF_TOP_SORT);
	assert_int_equal(screen.sort, HF_TOP_BY_NAME);
	assert_string_equal(screen.selected, "u-alpha");
	hf_top_press(top, &screen, HF_TOP_UP);
	assert_string_equal(screen.selected, "u-alpha");
	hf_top_press(top, &screen, HF_TOP_ENTER);
	hf_top_mark(top, "PyTorchJob");
	hf_top_sweep(top, "PyTorchJob");
	hf_top_press(top, &screen, HF_TOP_DOWN);
	assert_null(screen.open);
	assert_null(screen.selected);
	release_screen(&screen);
	hf_top_destroy(top);
}

static void many_jobs_scroll_with_the_selection(void **state)
{
	struct hf_top *top = hf_top_create();
	struct hf_top_screen screen = {
		.width = 40, .height = 6, .sort = HF_TOP_BY_NAME, .now = NOW};
	char name[16];

	for (int i = 0; i < 12; i++) {
		(void)snprintf(name, sizeof(name), "job-%d", i);
		see_job(top, name, "Running", "");
	}
	assert_screen(top, &screen,
		      "12 jobs: 12 Running  by name\n"
		      "NAME   STATE    READY  STEP  RESTARTS\n"
		      ">job-0  Running    0/2     -  0\n"
		      "job-1  Running    0/2     -  0\n"
		      "job-2  Running    0/2     -  0\n"
		      "q quit  Enter ranks  j/k move  s sort\n");
	for (int i = 0; i < 4; i++)
		hf_top_press(top, &screen, HF_TOP_PAGE_DOWN);
	assert_screen(top, &screen,
		      "12 jobs: 12 Running  by name\n"
		      "NAME    STATE    READY  STEP  RESTARTS\n"
		      "job-9   Running    0/2     -  0\n"
		      "job-10  Running    0/2     -  0\n"
		      ">job-11  Running    0/2     -  0\n"
		      "q quit  Enter ranks  j/k move  s sort\n");
	screen.notice = "the server is not reached; trying again";
	hf_top_press(top, &screen, HF_TOP_PAGE_UP);
	assert_screen(top, &screen,
		      "12 jobs: 12 Running  by name\n"
		      "NAME    STATE    READY  STEP  RESTARTS\n"
		      ">job-8   Running    0/2     -  0\n"
		      "job-9   Running    0/2     -  0\n"
		      "job-10  Running    0/2     -  0\n"
		      "the server is not reached; trying again\n");
	release_screen(&screen);
	hf_top_destroy(top);
}

static void a_name_with_control_characters_draws_no_escape(void **state)
{
	struct hf_top *top = hf_top_create();
	struct hf_top_screen screen = {.width = 80, .height = 4, .now = NOW};
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(1 << 20);

	HF_AUTO_DOC doc = read_doc(
		"kind: PyTorchJob\nmetadata: {name: \"a\\e[31mb\\u20ac\", namespace: x, uid: u}\n");

	hf_top_see_job(top, doc, false, NOW);
	hf_top_draw(top, &screen, &out);
	assert_null(strstr(out.data, "[31m"));
	assert_null(strstr(out.data, "€"));
	release_screen(&screen);
	hf_top_destroy(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_stand_in_a_table_that_fits_the_terminal),
		cmocka_unit_test(a_rate_begins_anew_after_a_restart),
		cmocka_unit_test(the_ranks_of_a_job_show_who_is_slow),
		cmocka_unit_test(a_report_that_arrives_before_its_pod_is_kept),
		cmocka_unit_test(rows_of_objects_that_a_new_watch_does_not_report_are_removed),
		cmocka_unit_test(keys_are_decoded),
		cmocka_unit_test(enter_opens_a_job_and_back_selects_it_again),
		cmocka_unit_test(many_jobs_scroll_with_the_selection),
		cmocka_unit_test(a_name_with_control_characters_draws_no_escape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
