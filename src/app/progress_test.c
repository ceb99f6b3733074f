/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/progress.h"

#include "base/strbuf.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fixture {
	struct hf_progress *progress;
	FILE *out;
	char *text;
	size_t len;
};

static void setup(struct fixture *f, bool redraw)
{
	struct hf_progress_options options = {.redraw = redraw, .logs = true, .utf8 = true};

	/* The output has local times. */
	assert_int_equal(setenv("TZ", "UTC", 1), 0);
	tzset();
	f->out = open_memstream(&f->text, &f->len);
	options.out = f->out;
	options.width = redraw ? 60 : 0;
	f->progress = hf_progress_create(&options, "ddp");
}

static const char *printed(struct fixture *f)
{
	assert_int_equal(fflush(f->out), 0);
	return f->text;
}

static void teardown(struct fixture *f)
{
	f->progress = hf_progress_destroy(f->progress);
	assert_int_equal(fclose(f->out), 0);
	free(f->text);
}

static void tell_job(struct fixture *f, const char *conditions, int generation, int restarts,
		     hf_time now)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	hf_strbuf_addf(
		&text,
		"{\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"ddp\"},\"status\":{\"conditions\":[%s],"
		"\"recovery\":{\"generation\":%d,\"restarts\":{\"application\":%d}}}}",
		conditions, generation, restarts);
	HF_AUTO_DOC doc = hf_doc_from_text(text.data, text.len);
	hf_progress_job(f->progress, doc, now);
}

static void tell_pod(struct fixture *f, const char *name, const char *uid, const char *status,
		     hf_time now)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	hf_strbuf_addf(&text, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},\"status\":%s}", name,
		       uid, status);
	HF_AUTO_DOC doc = hf_doc_from_text(text.data, text.len);
	hf_progress_pod(f->progress, doc, false, now);
}

#define COND(type) "{\"type\":\"" type "\",\"status\":\"True\",\"message\":\"why\"}"
#define RUNNING "{\"phase\":\"Running\",\"containerStatuses\":[{\"state\":{\"running\":{}}}]}"
#define FAILED                                                                                     \
	"{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":{\"exitCode\":137}}}]}"

static void each_change_is_one_line_with_its_time(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_job(&f, COND("Created"), 1, 0, 9 * HF_HOUR);
	tell_job(&f, COND("Created"), 1, 0, 9 * HF_HOUR + HF_SECOND);
	tell_pod(&f, "ddp-worker-0", "a", RUNNING, 9 * HF_HOUR + 2 * HF_SECOND);
	tell_pod(&f, "ddp-worker-0", "a", RUNNING, 9 * HF_HOUR + 3 * HF_SECOND);
	tell_job(&f, COND("Created") "," COND("Running"), 1, 0, 9 * HF_HOUR + 3 * HF_SECOND);
	tell_pod(&f, "ddp-worker-0", "a", FAILED, 9 * HF_HOUR + 4 * HF_SECOND);
	tell_job(&f, COND("Created") "," COND("Restarting"), 2, 1, 9 * HF_HOUR + 5 * HF_SECOND);
	assert_string_equal(printed(&f),
			    "09:00:00 job/ddp created kind=PyTorchJob generation=1\n"
			    "09:00:02 pod/ddp-worker-0 running\n"
			    "09:00:03 job/ddp running after=3s generation=1\n"
			    "09:00:04 pod/ddp-worker-0 failed code=137 (SIGKILL)\n"
			    "09:00:05 job/ddp restarting after=5s generation=2 restarts=1: why\n");
	teardown(&f);
}

static void tell_delay(struct fixture *f, const char *until, hf_time now)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);

	hf_strbuf_addf(
		&text,
		"{\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"ddp\"},\"spec\":{\"runPolicy\":"
		"{\"backoffLimit\":3}},\"status\":{\"conditions\":[" COND(
			"Restarting") "],"
				      "\"recovery\":{\"generation\":3,\"incident\":{\"id\":2,\"charged\":"
				      "\"application\"},\"restarts\":{\"application\":2},\"last\":{\"incident\":2,"
				      "\"scope\":\"Job\"}%s}}}",
		until);
	HF_AUTO_DOC doc = hf_doc_from_text(text.data, text.len);
	hf_progress_job(f->progress, doc, now);
}

static void a_restart_that_waits_says_for_how_long(void **state)
{
	static const char until[] = ",\"notBefore\":\"1970-01-01T09:00:10.5Z\"";
	struct fixture f;

	setup(&f, false);
	tell_delay(&f, until, 9 * HF_HOUR);
	tell_delay(&f, until, 9 * HF_HOUR + HF_SECOND);
	assert_string_equal(printed(&f),
			    "09:00:00 job/ddp restarting after=0s generation=3 restarts=2: why\n"
			    "09:00:00 job/ddp restarting in 11 s (restart 2 of 3)\n");
	teardown(&f);
	setup(&f, true);
	tell_delay(&f, until, 9 * HF_HOUR);
	hf_progress_resize(f.progress, 43, 24);
	hf_progress_draw(f.progress, 9 * HF_HOUR + 4 * HF_SECOND, true);
	assert_non_null(strstr(printed(&f), " ddp  restarting in 7 s (restart 2 of 3)"));
	tell_delay(&f, "", 9 * HF_HOUR + 5 * HF_SECOND);
	hf_progress_draw(f.progress, 9 * HF_HOUR + 5 * HF_SECOND, true);
	assert_non_null(strstr(printed(&f), "restarts 2\n"));
	teardown(&f);
}

static void log_lines_carry_the_rank_and_no_control_characters(void **state)
{
	struct fixture f;

	setup(&f, false);
	hf_progress_log(f.progress, "ddp-worker-1", "step 1\nst", 9, 0);
	hf_progress_log(f.progress, "ddp-master-0", "x\033[2Jy\r\n", 8, 0);
	hf_progress_log(f.progress, "ddp-master-0", "\xff\0z\n", 4, 0);
	hf_progress_log(f.progress, "ddp-worker-1", "ep 2\n", 5, 0);
	assert_string_equal(printed(&f),
			    "worker-1 | step 1\nmaster-0 | xy\nmaster-0 | ?z\nworker-1 | step 2\n");
	teardown(&f);
}

static void lines_of_an_init_container_carry_its_name(void **state)
{
	struct fixture f;

	setup(&f, false);
	hf_progress_init_log(f.progress, "ddp-worker-0", "fetch", "step 9\n\nhalf", 12, 0);
	hf_progress_log(f.progress, "ddp-worker-0", "a\n", 2, 0);
	assert_string_equal(
		printed(&f),
		"worker-0 fetch | step 9\nworker-0 fetch |\nworker-0 fetch | half\nworker-0 | a\n");
	teardown(&f);
}

static void empty_lines_of_a_program_are_shown(void **state)
{
	struct fixture f;

	setup(&f, false);
	hf_progress_log(f.progress, "ddp-worker-0", "a\n\nb\r\n\r", 8, 0);
	hf_progress_log(f.progress, "ddp-worker-0", "c", 1, 0);
	hf_progress_log_end(f.progress, "ddp-worker-0", 0);
	hf_progress_log_end(f.progress, "ddp-worker-0", 0);
	assert_string_equal(printed(&f), "worker-0 | a\nworker-0 |\nworker-0 | b\nworker-0 | c\n");
	teardown(&f);
}

static void a_line_without_end_is_cut(void **state)
{
	struct fixture f;
	char big[3 * HF_PROGRESS_LINE_BYTES_MAX];

	setup(&f, false);
	memset(big, 'a', sizeof(big));
	hf_progress_log(f.progress, "ddp-worker-1", big, sizeof(big), 0);
	hf_progress_log(f.progress, "ddp-worker-1", "\nb\n", 3, 0);
	assert_non_null(strstr(printed(&f), "aaa [the rest of the line is in the log]\n"));
	assert_non_null(strstr(printed(&f), "worker-1 | b\n"));
	assert_true(strlen(printed(&f)) < 2 * HF_PROGRESS_LINE_BYTES_MAX);
	teardown(&f);
}

static void a_late_word_of_the_pod_before_changes_nothing(void **state)
{
	static const char text[] = "{\"metadata\":{\"name\":\"ddp-worker-0\",\"uid\":\"old\"}}";
	HF_AUTO_DOC old = hf_doc_from_text(text, sizeof(text) - 1);
	struct fixture f;

	setup(&f, false);
	tell_pod(&f, "ddp-worker-0", "new", RUNNING, 0);
	hf_progress_pod(f.progress, old, true, 0);
	hf_progress_heartbeat(f.progress, 0);
	assert_non_null(strstr(printed(&f), "running=1/1"));
	teardown(&f);
}

static void the_block_is_erased_before_it_is_drawn_again(void **state)
{
	struct fixture f;
	const char *second;

	setup(&f, true);
	tell_job(&f, COND("Running"), 1, 0, 0);
	tell_pod(&f, "ddp-worker-0", "a", RUNNING, 0);
	hf_progress_log(f.progress, "ddp-worker-0",
			"a line that is far longer than the terminal is wide, so it is cut\n", 66,
			0);
	hf_progress_draw(f.progress, 0, false);
	hf_progress_draw(f.progress, 0, false); /* nothing is drawn without a change */
	hf_progress_draw(f.progress, HF_SECOND, true);
	second = strstr(printed(&f), "\033[2A\033[2K ddp");
	assert_non_null(second);
	assert_null(strstr(second + 1, "\033[2A"));
	assert_non_null(strstr(second, " ddp  Running 1s  generation 1  restarts 0\n"));
	for (const char *line = strchr(f.text, '\n'); line != NULL; line = strchr(line + 1, '\n')) {
		const char *end = strchr(line + 1, '\n');
		assert_true(end == NULL || end - line <= 60 + 8);
	}
	teardown(&f);
}

static void log_lines_scroll_above_the_block(void **state)
{
	struct fixture f;

	setup(&f, true);
	tell_job(&f, COND("Running"), 1, 0, 0);
	tell_pod(&f, "ddp-worker-0", "a", RUNNING, 0);
	hf_progress_draw(f.progress, 0, false);
	hf_progress_log(f.progress, "ddp-worker-0", "one\ntwo\nhalf", 12, 0);
	assert_non_null(strstr(
		printed(&f),
		"\033[2A\033[2K\033[B\033[2K\033[1Aworker-0 | one\nworker-0 | two\n ddp  Running 0s  "
		"generation 1  restarts 0\n worker-0  Running\n"));
	hf_progress_log(f.progress, "ddp-worker-0", " a line\n", 8, 0);
	assert_non_null(strstr(printed(&f), "\033[1Aworker-0 | half a line\n ddp"));
	teardown(&f);
}

static void the_whole_run_counts_as_elapsed(void **state)
{
	struct fixture f;

	setup(&f, true);
	tell_job(&f, COND("Created"), 1, 0, 0);
	tell_job(&f, COND("Running"), 1, 0, 10 * HF_SECOND);
	tell_job(&f, COND("Restarting"), 2, 1, 20 * HF_SECOND);
	tell_job(&f, COND("Running"), 2, 1, 30 * HF_SECOND);
	hf_progress_draw(f.progress, 40 * HF_SECOND, true);
	assert_non_null(strstr(printed(&f), " ddp  Running 40s  generation 2  restarts 1\n"));
	teardown(&f);
}

static void ranks_stand_in_order_of_their_numbers(void **state)
{
	struct fixture f;
	const char *text;

	setup(&f, true);
	tell_pod(&f, "ddp-worker-10", "c", RUNNING, 0);
	tell_pod(&f, "ddp-worker-2", "b", RUNNING, 0);
	tell_pod(&f, "ddp-master-0", "a", RUNNING, 0);
	hf_progress_draw(f.progress, 0, false);
	text = printed(&f);
	assert_true(strstr(text, "master-0") < strstr(text, "worker-2 "));
	assert_true(strstr(text, "worker-2 ") < strstr(text, "worker-10"));
	teardown(&f);
}

static void the_state_is_the_last_condition_that_is_true(void **state)
{
	static const char text[] =
		"{\"status\":{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\"},"
		"{\"type\":\"Running\",\"status\":\"False\"}]}}";
	HF_AUTO_DOC doc = hf_doc_from_text(text, sizeof(text) - 1);

	assert_string_equal(hf_progress_state(hf_doc_json(doc)), "Created");
	assert_string_equal(hf_progress_state(NULL), "Created");
}

#define UNSCHEDULABLE                                                                              \
	"{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","  \
	"\"reason\":\"Unschedulable\",\"message\":\"0/1 nodes are available\"}]}"
#define AGAIN(count, state)                                                                        \
	"{\"phase\":\"Running\",\"containerStatuses\":[{\"restartCount\":" count                   \
	",\"state\":" state ",\"lastState\":{\"terminated\":{\"exitCode\":3}}}]}"

static void a_pod_that_no_node_takes_is_shown(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_pod(&f, "ddp-worker-0", "a", "{\"phase\":\"Pending\"}", 0);
	assert_string_equal(printed(&f), "");
	tell_pod(&f, "ddp-worker-0", "a", UNSCHEDULABLE, 0);
	tell_pod(&f, "ddp-worker-0", "a", UNSCHEDULABLE, 0);
	assert_string_equal(printed(&f),
			    "00:00:00 pod/ddp-worker-0 pending: 0/1 nodes are available\n");
	teardown(&f);
}

#define WAITS(reason)                                                                               \
	"{\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":" reason \
	"}}}]}"

static void what_a_container_waits_for_is_said(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f, false);
	tell_pod(&f, "ddp-worker-0", "a", WAITS("\"ContainerCreating\""), 0);
	tell_pod(&f, "ddp-worker-0", "a", WAITS("\"PodInitializing\""), 0);
	assert_string_equal(printed(&f), "");
	tell_pod(&f, "ddp-worker-0", "a",
		 WAITS("\"CreateContainerConfigError\",\"message\":\"no command\""), 0);
	assert_string_equal(printed(&f), "00:00:00 pod/ddp-worker-0 pending: "
					 "CreateContainerConfigError: no command\n");
	teardown(&f);
}

static void a_program_started_again_in_its_pod_is_said(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_pod(&f, "ddp-worker-0", "a", RUNNING, 0);
	tell_pod(&f, "ddp-worker-0", "a", AGAIN("1", "{\"running\":{}}"), 0);
	tell_pod(&f, "ddp-worker-0", "a",
		 AGAIN("1", "{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}"), 0);
	tell_pod(&f, "ddp-worker-0", "a",
		 AGAIN("1", "{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}"), 0);
	/* A new pod counts its container restarts anew. */
	tell_pod(&f, "ddp-worker-0", "b", AGAIN("2", "{\"running\":{}}"), 0);
	assert_string_equal(printed(&f),
			    "00:00:00 pod/ddp-worker-0 running\n"
			    "00:00:00 pod/ddp-worker-0 started again restarts=1 code=3\n"
			    "00:00:00 pod/ddp-worker-0 waiting: CrashLoopBackOff\n"
			    "00:00:00 pod/ddp-worker-0 running\n");
	teardown(&f);
}

static void a_wait_for_the_next_start_has_its_length_and_the_code(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_pod(
		&f, "ddp-worker-0", "a",
		"{\"phase\":\"Running\",\"containerStatuses\":[{\"restartCount\":0,\"state\":{\"waiting\":"
		"{\"reason\":\"CrashLoopBackOff\",\"message\":\"back-off 20s restarting failed "
		"container=pytorch pod=ddp-worker-0_default(1-2)\"}},\"lastState\":{\"terminated\":"
		"{\"exitCode\":3,\"reason\":\"Error\"}}}]}",
		0);
	assert_string_equal(
		printed(&f),
		"00:00:00 pod/ddp-worker-0 waiting: CrashLoopBackOff: back-off 20s before the "
		"next start, after code=3\n");
	teardown(&f);
}

#define INIT(phase, state)                                                                         \
	"{\"phase\":\"" phase "\",\"initContainerStatuses\":[{\"name\":\"prep\"," state "}],"      \
	"\"containerStatuses\":[{\"restartCount\":0,\"state\":{\"waiting\":{\"reason\":"           \
	"\"PodInitializing\"}}}]}"

static void an_init_container_that_fails_is_named(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_pod(&f, "ddp-worker-0", "a", INIT("Pending", "\"state\":{\"running\":{}}"), 0);
	tell_pod(&f, "ddp-worker-0", "a",
		 INIT("Pending", "\"state\":{\"terminated\":{\"exitCode\":4}}"), 0);
	tell_pod(
		&f, "ddp-worker-0", "a",
		INIT("Pending",
		     "\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\",\"message\":\"back-off "
		     "10s restarting failed container=prep\"}},\"lastState\":{\"terminated\":"
		     "{\"exitCode\":4,\"reason\":\"Error\"}}"),
		0);
	tell_pod(&f, "ddp-worker-0", "a",
		 INIT("Failed", "\"state\":{\"terminated\":{\"exitCode\":137}}"), 0);
	assert_string_equal(
		printed(&f),
		"00:00:00 pod/ddp-worker-0 pending: init container 'prep' failed code=4\n"
		"00:00:00 pod/ddp-worker-0 pending: init container 'prep' waits: CrashLoopBackOff: "
		"back-off 10s before the next start, after code=4\n"
		"00:00:00 pod/ddp-worker-0 failed: init container 'prep' failed code=137 (SIGKILL)\n");
	teardown(&f);
}

static void a_sidecar_that_ends_after_the_program_is_not_named(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_pod(&f, "ddp-worker-0", "a",
		 "{\"phase\":\"Succeeded\",\"initContainerStatuses\":[{\"name\":\"side\",\"state\":"
		 "{\"terminated\":{\"exitCode\":143}}}],\"containerStatuses\":[{\"restartCount\":0,"
		 "\"state\":{\"terminated\":{\"exitCode\":0}}}]}",
		 0);
	assert_string_equal(printed(&f), "00:00:00 pod/ddp-worker-0 succeeded\n");
	teardown(&f);
}

/* Only the reason of the pod tells that the kubelet ended it. */
static void a_rank_that_saved_when_it_was_stopped_has_not_failed(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_pod(
		&f, "ddp-worker-0", "a",
		"{\"phase\":\"Failed\",\"reason\":\"Terminated\",\"containerStatuses\":[{\"state\":"
		"{\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\"}}}]}",
		0);
	tell_pod(
		&f, "ddp-worker-1", "b",
		"{\"phase\":\"Failed\",\"reason\":\"Terminated\",\"containerStatuses\":[{\"state\":"
		"{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}}}]}",
		0);
	assert_string_equal(printed(&f), "00:00:00 pod/ddp-worker-0 stopped code=0\n"
					 "00:00:00 pod/ddp-worker-1 failed code=1\n");
	teardown(&f);
}

static void a_program_that_was_never_started_is_told_with_the_reason(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_pod(
		&f, "ddp-worker-0", "a",
		"{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":"
		"{\"exitCode\":128,\"reason\":\"StartError\",\"message\":\"exec: a\\u001b[2Jb\"}}}]}",
		0);
	tell_pod(&f, "ddp-worker-1", "b",
		 "{\"phase\":\"Running\",\"containerStatuses\":[{\"state\":{\"running\":{}}}]}", 0);
	tell_pod(&f, "ddp-worker-1", "b",
		 "{\"phase\":\"Running\",\"containerStatuses\":[{\"restartCount\":1,\"state\":"
		 "{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},\"lastState\":{\"terminated\":"
		 "{\"exitCode\":128,\"reason\":\"StartError\",\"message\":\"exec: c\"}}}]}",
		 0);
	assert_string_equal(printed(&f),
			    "00:00:00 pod/ddp-worker-0 failed code=128: StartError: exec: a [2Jb\n"
			    "00:00:00 pod/ddp-worker-1 running\n"
			    "00:00:00 pod/ddp-worker-1 started again restarts=1 code=128: "
			    "StartError: exec: c\n"
			    "00:00:00 pod/ddp-worker-1 waiting: CrashLoopBackOff: exec: c\n");
	teardown(&f);
}

static size_t lines_of(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void tell_many(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++) {
		HF_AUTO_STRBUF name = HF_STRBUF_INIT(64);
		hf_strbuf_addf(&name, "ddp-worker-%d", i);
		tell_pod(f, name.data, "a", i == n - 1 ? FAILED : RUNNING, 0);
	}
}

static void a_block_is_never_higher_than_the_terminal(void **state)
{
	struct fixture f;

	setup(&f, true);
	hf_progress_resize(f.progress, 60, 10);
	tell_many(&f, 20);
	hf_progress_draw(f.progress, 0, false);
	/* the terminal has ten rows, and the tenth is for the cursor */
	assert_int_equal(lines_of(printed(&f)), 9);
	assert_non_null(strstr(f.text, " and 13 more ranks\n"));
	/* The failed rank has a row, although its name sorts last. */
	assert_non_null(strstr(f.text, "worker-19  Failed code=137 (SIGKILL)"));
	/* The last block shows all ranks. */
	hf_progress_finish(f.progress, 0);
	assert_non_null(strstr(printed(&f), "worker-18  Running"));
	teardown(&f);
}

static void in_two_rows_there_is_still_the_job(void **state)
{
	struct fixture f;

	setup(&f, true);
	hf_progress_resize(f.progress, 60, 2);
	tell_many(&f, 3);
	hf_progress_draw(f.progress, 0, false);
	assert_non_null(strstr(printed(&f), " ddp  Starting"));
	assert_null(strstr(f.text, "worker-0"));
	teardown(&f);
}

static void lines_that_a_narrower_terminal_broke_are_erased_too(void **state)
{
	struct fixture f;

	setup(&f, true);
	tell_many(&f, 1);
	hf_progress_log(f.progress, "ddp-worker-0", "12345678901234567890\n", 21, 0);
	hf_progress_draw(f.progress, 0, false); /* lines of 44 and 51 columns */
	hf_progress_resize(f.progress, 30, 10);
	hf_progress_draw(f.progress, 0, false);
	/* Four rows are overwritten or erased. tmux copies into its history what "\033[J" erases from the
	 * first row of the screen on. */
	assert_non_null(strstr(printed(&f), "\033[4A\033[2K"));
	assert_null(strstr(f.text, "A\033[J"));
	assert_non_null(strstr(f.text, "\n\033[J"));
	hf_progress_draw(f.progress, 0, true);
	assert_null(strstr(strstr(f.text, "\n\033[J") + 4, "\033[J"));
	teardown(&f);
}

static void another_program_on_the_terminal_keeps_its_lines(void **state)
{
	struct fixture f;

	setup(&f, true);
	tell_many(&f, 1);
	hf_progress_draw(f.progress, 0, false);
	hf_progress_leave(f.progress);
	hf_progress_log(f.progress, "ddp-worker-0", "one\n", 4, 0);
	hf_progress_draw(f.progress, 0, true);
	assert_null(strchr(printed(&f), '\033'));
	teardown(&f);
}

static void logs_are_of_the_ranks_that_were_named(void **state)
{
	struct fixture f = {0};
	struct hf_progress_options options = {
		.logs = true, .utf8 = true, .ranks = "master-0,worker-10"};

	options.out = f.out = open_memstream(&f.text, &f.len);
	f.progress = hf_progress_create(&options, "ddp");
	hf_progress_log(f.progress, "ddp-worker-1", "no\n", 3, 0);
	hf_progress_log(f.progress, "ddp-worker-10", "yes\n", 4, 0);
	hf_progress_log(f.progress, "ddp-master-0", "and this\n", 9, 0);
	hf_progress_toggle_logs(f.progress);
	hf_progress_log(f.progress, "ddp-master-0", "not that\n", 9, 0);
	assert_string_equal(printed(&f), "worker-10 | yes\nmaster-0 | and this\n");
	teardown(&f);
}

static void without_utf8_log_lines_are_ascii(void **state)
{
	struct fixture f = {0};
	struct hf_progress_options options = {.logs = true};

	options.out = f.out = open_memstream(&f.text, &f.len);
	f.progress = hf_progress_create(&options, "ddp");
	hf_progress_log(f.progress, "ddp-worker-1",
			"a\xc3\xa4\tb\xc2\x9b"
			"c\n",
			9, 0);
	assert_string_equal(printed(&f), "worker-1 | a? bc\n");
	teardown(&f);
}

static void the_keys_say_what_they_do_now(void **state)
{
	struct fixture f = {0};
	struct hf_progress_options options = {.redraw = true, .keys = true};

	options.out = f.out = open_memstream(&f.text, &f.len);
	f.progress = hf_progress_create(&options, "ddp");
	tell_job(&f, COND("Running"), 1, 0, 0);
	hf_progress_draw(f.progress, 0, false);
	assert_non_null(strstr(printed(&f), "s suspend"));
	tell_job(&f, COND("Suspended"), 1, 0, 0);
	hf_progress_draw(f.progress, 0, false);
	assert_non_null(strstr(printed(&f), "s resume"));
	teardown(&f);
}

static void a_suspended_job_says_what_it_waits_for(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_job(&f, COND("Suspended"), 1, 0, 0);
	assert_string_equal(printed(&f), "00:00:00 job/ddp suspended after=0s generation=1: why\n");
	teardown(&f);
}

static void tell_step(struct fixture *f, const char *uid, const char *text, hf_time now)
{
	struct hf_beat beat;

	assert_true(hf_beat_parse(text, strlen(text), &beat));
	hf_progress_step(f->progress, uid, &beat, now);
}

static void a_rank_shows_how_far_it_is(void **state)
{
	struct fixture f;

	setup(&f, true);
	hf_progress_resize(f.progress, 100, 10);
	tell_pod(&f, "ddp-worker-0", "a", RUNNING, 0);
	tell_pod(&f, "ddp-worker-1", "b", RUNNING, 0);
	tell_step(&f, "a", "holdfast/1 step=100 total=200 own_us=31000", 10 * HF_SECOND);
	tell_step(&f, "a", "holdfast/1 step=120 total=200 own_us=31000 loss=0.5", 12 * HF_SECOND);
	tell_step(&f, "b", "holdfast/1 step=7 own_us=1500 phase=other", 12 * HF_SECOND);
	tell_step(&f, "nobody", "holdfast/1 step=9", 12 * HF_SECOND);
	hf_progress_draw(f.progress, 12 * HF_SECOND, false);
	assert_non_null(strstr(
		printed(&f),
		" worker-0  ██████▌░░░░  step 120/200  10.0/s  loss 0.5  eta 8s  (own 31 ms)\n"));
	assert_non_null(
		strstr(printed(&f),
		       " worker-1  Running      step 7                                  (own 1.5 "
		       "ms)  (not training)\n"));
	teardown(&f);
}

static void the_next_pod_begins_anew(void **state)
{
	struct fixture f;

	setup(&f, true);
	tell_pod(&f, "ddp-worker-0", "a", RUNNING, 0);
	tell_step(&f, "a", "holdfast/1 step=100", 0);
	tell_pod(&f, "ddp-worker-0", "c", RUNNING, 0);
	hf_progress_draw(f.progress, 0, true);
	assert_null(strstr(printed(&f), "step 100"));
	tell_step(&f, "a", "holdfast/1 step=101", 0);
	hf_progress_draw(f.progress, 0, true);
	assert_null(strstr(printed(&f), "step 101"));
	teardown(&f);
}

static void in_lines_the_heartbeat_has_the_step_of_the_slowest_rank(void **state)
{
	struct fixture f;

	setup(&f, false);
	tell_job(&f, COND("Running"), 1, 0, 0);
	tell_pod(&f, "ddp-worker-0", "a", RUNNING, 0);
	tell_pod(&f, "ddp-worker-1", "b", RUNNING, 0);
	tell_step(&f, "a", "holdfast/1 step=120 total=200", 0);
	tell_step(&f, "b", "holdfast/1 step=109 total=200", 0);
	hf_progress_heartbeat(f.progress, 30 * HF_SECOND);
	assert_non_null(strstr(printed(&f), "elapsed=30s running=2/2 step=109/200\n"));
	tell_step(&f, "b", "holdfast/1 step=119 total=200 loss=0.25", 10 * HF_SECOND);
	hf_progress_heartbeat(f.progress, 30 * HF_SECOND);
	assert_non_null(
		strstr(printed(&f), "running=2/2 step=119/200 rate=1.0/s loss=0.25 eta=81s\n"));
	teardown(&f);
}

/* ---- steps from log lines ------------------------------------------------------------------- */

struct pattern_fixture {
	struct fixture f;
	struct hf_pattern *pattern;
	struct hf_history *history;
};

static void setup_pattern(struct pattern_fixture *p, bool redraw, const char *regex)
{
	struct hf_progress_options options = {
		.redraw = redraw, .logs = true, .utf8 = true, .width = 80};
	struct hf_error err;

	assert_int_equal(setenv("TZ", "UTC", 1), 0);
	tzset();
	assert_int_equal(hf_pattern_create(regex, &p->pattern, &err), 0);
	p->history = hf_history_create();
	options.out = p->f.out = open_memstream(&p->f.text, &p->f.len);
	options.pattern = p->pattern;
	options.history = p->history;
	p->f.progress = hf_progress_create(&options, "ddp");
	tell_pod(&p->f, "ddp-worker-0", "a", RUNNING, 0);
}

static void teardown_pattern(struct pattern_fixture *p)
{
	teardown(&p->f);
	hf_pattern_destroy(p->pattern);
	hf_history_destroy(p->history);
}

static void print_log(struct pattern_fixture *p, const char *text, hf_time now)
{
	hf_progress_log(p->f.progress, "ddp-worker-0", text, strlen(text), now);
}

static void steps_come_from_log_lines(void **state)
{
	struct pattern_fixture p;

	setup_pattern(&p, true, "step (?<step>\\d+)/(?<total>\\d+)");
	print_log(&p, "step 1/20\nother\n", 0);
	print_log(&p, "step 5/20\n", 4 * HF_SECOND);
	hf_progress_draw(p.f.progress, 4 * HF_SECOND, true);
	assert_non_null(strstr(printed(&p.f), "step 5/20  1.0/s  eta 15s\n"));
	assert_int_equal(p.history->ranks[0]->n, 2);
	teardown_pattern(&p);
}

static void a_bar_that_is_redrawn_is_not_printed_each_time(void **state)
{
	struct pattern_fixture p;

	setup_pattern(&p, false, NULL);
	print_log(&p, "\r  5%|#    | 1/20 [00:00<00:10,  2.00it/s]", 0);
	print_log(&p, "\r 10%|#    | 2/20 [00:01<00:09,  2.00it/s]", HF_SECOND);
	print_log(&p, "\r              \r{'loss': 0.5, 'epoch': 0.1}\n", HF_SECOND);
	print_log(&p, "\r100%|#####| 20/20 [00:09<00:00,  2.00it/s]\n", 9 * HF_SECOND);
	hf_progress_heartbeat(p.f.progress, 9 * HF_SECOND);
	assert_string_equal(
		printed(&p.f),
		"00:00:00 pod/ddp-worker-0 running\n"
		"worker-0 | {'loss': 0.5, 'epoch': 0.1}\n"
		"worker-0 | 100%|#####| 20/20 [00:09<00:00,  2.00it/s]\n"
		"00:00:09 job/ddp still starting elapsed=0s running=1/1 step=20/20 rate=2.0/s loss=0.5\n");
	teardown_pattern(&p);
}

static void log_lines_of_a_rank_that_reports_are_not_read(void **state)
{
	struct pattern_fixture p;

	setup_pattern(&p, false, "step (\\d+)");
	tell_step(&p.f, "a", "holdfast/1 step=3", 0);
	print_log(&p, "step 99\n", 0);
	hf_progress_heartbeat(p.f.progress, 0);
	assert_non_null(strstr(printed(&p.f), " step=3\n"));
	/* The next process may report nothing. */
	tell_pod(&p.f, "ddp-worker-0", "b", RUNNING, 0);
	print_log(&p, "step 99\n", 0);
	hf_progress_heartbeat(p.f.progress, 0);
	assert_non_null(strstr(printed(&p.f), " step=99\n"));
	assert_true(p.history->ranks[0]->points[1].begins);
	teardown_pattern(&p);
}

static void an_expression_that_explodes_is_turned_off_with_one_line(void **state)
{
	static const char off[] =
		"note: --step-regex is off from now on: on a line of worker-0 the match took too many steps";
	struct pattern_fixture p;
	char line[600];
	const char *first;

	setup_pattern(&p, false, "^(a+)+$");
	memset(line, 'a', sizeof(line));
	memcpy(line + sizeof(line) - 3, "!\n", 3);
	for (int i = 0; i < 3; i++)
		print_log(&p, line, 0);
	first = strstr(printed(&p.f), off);
	assert_non_null(first);
	assert_null(strstr(first + 1, off));
	teardown_pattern(&p);
}

static void the_block_has_sparklines_with_the_restarts(void **state)
{
	struct pattern_fixture p;
	char text[64];

	setup_pattern(&p, true, NULL);
	for (int i = 1; i <= 8; i++) {
		(void)snprintf(text, sizeof(text), "holdfast/1 step=%d loss=%d", i, 10 - i);
		tell_step(&p.f, "a", text, i * HF_SECOND);
	}
	tell_pod(&p.f, "ddp-worker-0", "b", RUNNING, 9 * HF_SECOND);
	for (int i = 5; i <= 7; i++) {
		(void)snprintf(text, sizeof(text), "holdfast/1 step=%d loss=%d", i, 10 - i);
		tell_step(&p.f, "b", text, (i + 6) * HF_SECOND);
	}
	hf_progress_draw(p.f.progress, 20 * HF_SECOND, true);
	assert_non_null(strstr(printed(&p.f), " loss █▇▆▅▄▃▂▁┆▃▂  step time ███████┆██\n"));
	hf_progress_resize(p.f.progress, 29, 10);
	hf_progress_draw(p.f.progress, 20 * HF_SECOND, true);
	assert_non_null(strstr(printed(&p.f), " ddp  Starting 0s  gen 0  re"));
	assert_null(strstr(strrchr(printed(&p.f), 'J'), "step time"));
	teardown_pattern(&p);
}

/* ---- many ranks ------------------------------------------------------------------------------ */

static void many_ranks_do_not_flood_the_terminal(void **state)
{
	struct fixture f;

	setup(&f, false);
	for (int i = 0; i < 200; i++) {
		HF_AUTO_STRBUF name = HF_STRBUF_INIT(64);
		hf_strbuf_addf(&name, "ddp-worker-%d", i);
		tell_pod(&f, name.data, "a", RUNNING, HF_SECOND);
	}
	hf_progress_draw(f.progress, 2 * HF_SECOND, false);
	hf_progress_draw(f.progress, 5 * HF_SECOND, false);
	assert_int_equal(lines_of(printed(&f)), HF_PROGRESS_FEW + 1);
	assert_non_null(
		strstr(printed(&f), "pods of ddp: running=200 failed=0 succeeded=0 other=0\n"));
	/* These are the logs of the first rank, which are shown. */
	hf_progress_log(f.progress, "ddp-worker-0", "yes\n", 4, 0);
	hf_progress_log(f.progress, "ddp-worker-150", "no\n", 3, 0);
	assert_non_null(strstr(printed(&f), "worker-0 | yes\n"));
	assert_null(strstr(printed(&f), "worker-150 | no\n"));
	assert_non_null(
		strstr(printed(&f),
		       "note: the logs of worker-0 alone are shown, because there are more than 16 "
		       "ranks; --ranks all shows the logs of all\n"));
	for (int i = 0; i < 200; i++) {
		HF_AUTO_STRBUF name = HF_STRBUF_INIT(64);
		hf_strbuf_addf(&name, "ddp-worker-%d", i);
		tell_pod(&f, name.data, "a", FAILED, 6 * HF_SECOND);
	}
	hf_progress_draw(f.progress, 7 * HF_SECOND, false);
	assert_true(lines_of(printed(&f)) < HF_PROGRESS_FEW + 10);
	assert_non_null(strstr(printed(&f), "pod/ddp-worker-0 failed code=137 (SIGKILL)\n"));
	assert_non_null(strstr(printed(&f), "running=0 failed=200 "));
	teardown(&f);
}

static void logs_of_all_ranks_are_shown_if_asked(void **state)
{
	struct fixture f = {0};
	struct hf_progress_options options = {.logs = true, .utf8 = true, .ranks = "all"};

	options.out = f.out = open_memstream(&f.text, &f.len);
	f.progress = hf_progress_create(&options, "ddp");
	tell_many(&f, 20);
	hf_progress_log(f.progress, "ddp-worker-15", "yes\n", 4, 0);
	assert_non_null(strstr(printed(&f), "worker-15 | yes\n"));
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_shows_how_far_it_is),
		cmocka_unit_test(the_next_pod_begins_anew),
		cmocka_unit_test(in_lines_the_heartbeat_has_the_step_of_the_slowest_rank),
		cmocka_unit_test(steps_come_from_log_lines),
		cmocka_unit_test(a_bar_that_is_redrawn_is_not_printed_each_time),
		cmocka_unit_test(log_lines_of_a_rank_that_reports_are_not_read),
		cmocka_unit_test(an_expression_that_explodes_is_turned_off_with_one_line),
		cmocka_unit_test(the_block_has_sparklines_with_the_restarts),
		cmocka_unit_test(many_ranks_do_not_flood_the_terminal),
		cmocka_unit_test(logs_of_all_ranks_are_shown_if_asked),
		cmocka_unit_test(each_change_is_one_line_with_its_time),
		cmocka_unit_test(a_restart_that_waits_says_for_how_long),
		cmocka_unit_test(log_lines_carry_the_rank_and_no_control_characters),
		cmocka_unit_test(a_line_without_end_is_cut),
		cmocka_unit_test(lines_of_an_init_container_carry_its_name),
		cmocka_unit_test(empty_lines_of_a_program_are_shown),
		cmocka_unit_test(a_late_word_of_the_pod_before_changes_nothing),
		cmocka_unit_test(the_block_is_erased_before_it_is_drawn_again),
		cmocka_unit_test(log_lines_scroll_above_the_block),
		cmocka_unit_test(the_whole_run_counts_as_elapsed),
		cmocka_unit_test(ranks_stand_in_order_of_their_numbers),
		cmocka_unit_test(the_state_is_the_last_condition_that_is_true),
		cmocka_unit_test(a_pod_that_no_node_takes_is_shown),
		cmocka_unit_test(what_a_container_waits_for_is_said),
		cmocka_unit_test(a_program_started_again_in_its_pod_is_said),
		cmocka_unit_test(a_wait_for_the_next_start_has_its_length_and_the_code),
		cmocka_unit_test(an_init_container_that_fails_is_named),
		cmocka_unit_test(a_sidecar_that_ends_after_the_program_is_not_named),
		cmocka_unit_test(a_rank_that_saved_when_it_was_stopped_has_not_failed),
		cmocka_unit_test(a_program_that_was_never_started_is_told_with_the_reason),
		cmocka_unit_test(a_block_is_never_higher_than_the_terminal),
		cmocka_unit_test(in_two_rows_there_is_still_the_job),
		cmocka_unit_test(lines_that_a_narrower_terminal_broke_are_erased_too),
		cmocka_unit_test(another_program_on_the_terminal_keeps_its_lines),
		cmocka_unit_test(logs_are_of_the_ranks_that_were_named),
		cmocka_unit_test(without_utf8_log_lines_are_ascii),
		cmocka_unit_test(the_keys_say_what_they_do_now),
		cmocka_unit_test(a_suspended_job_says_what_it_waits_for),
	};

	return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
