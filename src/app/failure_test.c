/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/failure.h"

#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hf_json *parse(const char *text)
{
	const struct hf_json_limits limits = {.bytes_max = 65536};
	struct hf_json *json;
	struct hf_error err;

	assert_ok(hf_json_parse(text, strlen(text), &limits, &json, &err), &err);
	return json;
}

#define JOB(last)                                                                                       \
	"{\"metadata\":{\"name\":\"ddp\"},\"spec\":{\"runPolicy\":{\"backoffLimit\":1}},"               \
	"\"status\":{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\",\"message\":\"limit\"}]," \
	"\"recovery\":{\"restarts\":{\"application\":2},\"last\":" last "}}}"

static void assert_cause(const char *last, const char *wanted)
{
	char text[2048];
	HF_AUTO_JSON job = NULL;
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);

	(void)snprintf(text, sizeof(text), JOB("%s"), last);
	job = parse(text);
	hf_failure_cause(job, &sb);
	assert_string_equal(sb.data, wanted);
}

static void the_cause_names_the_rank_and_its_end(void **state)
{
	assert_cause("{\"replica\":\"worker-1\",\"exitCode\":3}", "worker-1 exited with code 3");
	assert_cause("{\"replica\":\"worker-1\",\"exitCode\":137,\"signal\":9}",
		     "worker-1 was killed by SIGKILL (code 137)");
	assert_cause("{\"replica\":\"worker-1\",\"exitCode\":139}",
		     "worker-1 was killed by SIGSEGV (code 139)");
	assert_cause("{\"replica\":\"worker-1\",\"exitCode\":137,\"reason\":\"OOMKilled\"}",
		     "worker-1 used more memory than its limit and was killed (OOMKilled)");
	assert_cause("{\"replica\":\"master-0\",\"exitCode\":128,\"reason\":\"StartError\","
		     "\"message\":\"exec: \\\"trian.py\\\": not found\"}",
		     "master-0 never started: StartError: exec: \"trian.py\": not found");
	assert_cause(
		"{\"replica\":\"master-0\",\"reason\":\"InitContainerFailed\","
		"\"message\":\"container 'i' exited with code 5\"}",
		"master-0 never started: InitContainerFailed: container 'i' exited with code 5");
	assert_cause("{\"replica\":\"master-0\",\"reason\":\"Evicted\"}",
		     "master-0 failed: Evicted");
	assert_cause("{}", "limit");
}

static void a_full_disk_is_told_in_place_of_no_output(void **state)
{
	HF_AUTO_JSON job =
		parse(JOB("{\"replica\":\"worker-1\",\"pod\":\"ddp-worker-1\",\"exitCode\":1}"));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_failure failure = {.job = job, .exit_code = 1, .full_disk = "/d/runs/r"};

	hf_failure_write(&failure, &sb);
	assert_non_null(strstr(sb.data,
			       "\nThe disk of /d/runs/r is full, so output of worker-1 may be "
			       "missing; make room there.\n"));
	assert_null(strstr(sb.data, "printed nothing"));
}

static void the_report_has_all_parts(void **state)
{
	HF_AUTO_JSON job =
		parse(JOB("{\"replica\":\"worker-1\",\"pod\":\"ddp-worker-1\",\"exitCode\":3}"));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	static const char log[] = "one\n\n10%\r20%\r\nno end";
	struct hf_run_log files = {.path = (char *)(uintptr_t) "/s/log"};
	const struct hf_failure failure = {.job = job,
					   .exit_code = 3,
					   .log = log,
					   .log_len = sizeof(log) - 1,
					   .files = &files,
					   .run = "@latest"};

	assert_string_equal(hf_failure_pod(job), "ddp-worker-1");
	hf_failure_write(&failure, &sb);
	assert_string_equal(
		sb.data,
		"holdfast: job ddp failed with code 3: worker-1 exited with code 3\n"
		"\nThe last lines of worker-1:\n  | one\n  | 20%\n  | no end\n\n"
		"Full log:  /s/log\n"
		"Holdfast:  charged 2 incidents to the application budget (backoffLimit 1); the job "
		"failed: limit\n"
		"Next:      holdfast why @latest; holdfast logs @latest --rank worker-1\n");
}

static void the_verdict_says_why_there_is_no_restart(void **state)
{
	static const struct {
		const char *ledger, *wanted;
		bool script;
	} rows[] = {
		{"\"verdict\":{\"reason\":\"ExitCode\"}",
		 "Holdfast:  no restart: under restartPolicy ExitCode, a code below 128 ends the job "
		 "(--max-restarts N restarts after any code)\n",
		 true},
		{"\"restarts\":{\"device\":1},\"verdict\":{\"reason\":\"ExitCode\"}",
		 "Holdfast:  charged 1 incident to the device budget; no further restart: under "
		 "restartPolicy ExitCode, a code below 128 ends the job\n",
		 false},
		{"\"restarts\":{\"application\":2},\"incident\":{\"id\":2,\"charged\":\"application\"},"
		 "\"last\":{\"incident\":2,\"replica\":\"worker-1\",\"exitCode\":3},\"verdict\":"
		 "{\"reason\":\"BackoffLimitExceeded\"}",
		 "Holdfast:  charged 2 incidents to the application budget (backoffLimit 1); restarted "
		 "1 time; the limit is reached\n",
		 true},
		{"\"verdict\":{\"reason\":\"RestartPolicyNever\"}",
		 "Holdfast:  no restart: under restartPolicy Never, the first failure ends the job\n",
		 false},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		char text[2048];
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
		HF_AUTO_JSON job = NULL;
		struct hf_failure failure = {.exit_code = 3, .script = rows[i].script};

		(void)snprintf(
			text, sizeof(text),
			"{\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"ddp\"},\"spec\":"
			"{\"runPolicy\":{\"backoffLimit\":1}},\"status\":{\"recovery\":{%s}}}",
			rows[i].ledger);
		failure.job = job = parse(text);
		hf_failure_write(&failure, &sb);
		assert_non_null(strstr(sb.data, rows[i].wanted));
	}
}

static void a_rank_between_two_starts_is_reported(void **state)
{
	static const char log[] = "KeyError: 'x'\n";
	HF_AUTO_JSON job = parse(JOB("{}"));
	HF_AUTO_JSON record = parse("{\"replica\":\"master-0\",\"exitCode\":1}");
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_failure failure = {
		.job = job, .late = record, .log = log, .log_len = sizeof(log) - 1};

	hf_failure_write_waiting(&failure, &sb);
	assert_string_equal(
		sb.data, "holdfast: job ddp was stopped while master-0 waited for its next start: "
			 "master-0 exited with code 1\n"
			 "\nThe last line of master-0:\n  | KeyError: 'x'\n\n");
}

static void the_files_of_the_log_are_named(void **state)
{
	HF_AUTO_JSON job =
		parse(JOB("{\"replica\":\"worker-1\",\"pod\":\"ddp-worker-1\",\"exitCode\":1}"));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_run_log files = {.path = (char *)(uintptr_t) "/s/u/pytorch.1.log",
					 .before = (char *)(uintptr_t) "/s/u/pytorch.0.log",
					 .older = 4,
					 .dropped = 12 << 20};
	const struct hf_failure failure = {
		.job = job, .exit_code = 1, .files = &files, .log_dir = "/s"};

	hf_failure_write(&failure, &sb);
	assert_non_null(strstr(
		sb.data, "Log:       /s/u/pytorch.1.log\n"
			 "           and its older parts /s/u/pytorch.1.log.1 to .4\n"
			 "           the first 12.0 MiB of what worker-1 printed are not kept\n"
			 "           of the start before: /s/u/pytorch.0.log\n"
			 "           of all ranks, the last two starts: /s\n"));
}

static void the_broken_launcher_of_debian_is_named(void **state)
{
	static const char log[] =
		"  File \"/usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/api.py\"\n"
		"AttributeError: 'NoneType' object has no attribute 'get'";
	HF_AUTO_JSON job =
		parse(JOB("{\"replica\":\"worker-1\",\"pod\":\"ddp-worker-1\",\"exitCode\":1}"));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_failure failure = {
		.job = job, .exit_code = 1, .log = log, .log_len = sizeof(log) - 1};

	hf_failure_write(&failure, &sb);
	assert_non_null(strstr(sb.data,
			       "\nThis launcher of PyTorch 1.13 fails with Python 3.11: call "
			       "torchrun, which Holdfast mends, or use 'holdfast run --nproc'.\n"));
}

static void a_silent_rank_and_an_unkept_run_are_said(void **state)
{
	HF_AUTO_JSON job =
		parse("{\"metadata\":{\"name\":\"ddp\"},\"status\":{\"conditions\":[{\"type\":"
		      "\"Failed\",\"status\":\"True\",\"message\":\"why\"}],\"recovery\":"
		      "{\"last\":{\"replica\":\"worker-1\",\"exitCode\":3}}}}");
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_failure failure = {.job = job, .exit_code = 3};

	hf_failure_write(&failure, &sb);
	assert_string_equal(sb.data,
			    "holdfast: job ddp failed with code 3: worker-1 exited with code 3\n"
			    "worker-1 printed nothing.\n"
			    "Holdfast:  no restart; the job failed: why\n");
}

static void only_the_last_lines_are_shown_and_long_ones_are_cut(void **state)
{
	HF_AUTO_JSON job = parse(JOB("{\"replica\":\"worker-1\",\"exitCode\":3}"));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	HF_AUTO_STRBUF log = HF_STRBUF_INIT(65536);
	struct hf_failure failure = {.job = job, .exit_code = 3};

	for (int i = 0; i < 40; i++)
		hf_strbuf_addf(&log, "line %d\n", i);
	for (int i = 0; i < HF_FAILURE_LINE_BYTES_MAX + 7; i++)
		hf_strbuf_addch(&log, 'x');
	failure.log = log.data;
	failure.log_len = log.len;
	hf_failure_write(&failure, &sb);
	assert_null(strstr(sb.data, "line 20\n"));
	assert_non_null(strstr(sb.data, "| line 21\n"));
	assert_non_null(strstr(sb.data, "xxx [7 bytes more]\n"));
}

/* As torchrun 2.6 prints it. */
#define PROGRAM                                                                                    \
	"step 1\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"   \
	"ValueError: bad batch\n"
#define ELASTIC                                                                                    \
	"E1126 04:30:01.123000 77 torch/distributed/elastic/multiprocessing/api.py:869] failed "   \
	"(exitcode: 1) local_rank: 1 (pid: 81) of binary: /usr/bin/python3\n"
#define LAUNCHER                                                                                   \
	"Traceback (most recent call last):\n  File \"/usr/bin/torchrun\", line 8, in <module>\n"  \
	"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"                    \
	"Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-26_04:30:01\n"          \
	"  rank      : 3 (local_rank: 1)\n  exitcode  : 1 (pid: 81)\n"

static void assert_program(const char *log, const char *wanted)
{
	assert_int_equal(hf_failure_program_len(log, strlen(log)), strlen(wanted));
}

static void what_the_launcher_prints_is_left_out(void **state)
{
	assert_program(PROGRAM, PROGRAM);
	assert_program(PROGRAM ELASTIC LAUNCHER, PROGRAM);
	assert_program(PROGRAM LAUNCHER, PROGRAM);
	/* If the log has only the launcher's lines, they are shown. */
	assert_program(LAUNCHER, LAUNCHER);
	assert_program(PROGRAM
		       "[2026-11-26 04:30:01,000] [ERROR] [launch.py:321:sigkill_handler] x\n",
		       PROGRAM);
	assert_program(
		PROGRAM
		"Traceback (most recent call last):\n  File \"/venv/bin/accelerate\", line 8\n",
		PROGRAM);
	assert_program("", "");
}

static void assert_torch(const char *torch, const char *wanted)
{
	HF_AUTO_JSON job = parse(JOB("{\"replica\":\"master-0\",\"exitCode\":1}"));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	HF_AUTO_JSON error = torch != NULL ? parse(torch) : NULL;
	static const char log[] = PROGRAM ELASTIC LAUNCHER;
	const struct hf_failure failure = {
		.job = job, .exit_code = 1, .log = log, .log_len = sizeof(log) - 1, .torch = error};

	hf_failure_write(&failure, &sb);
	assert_non_null(strstr(sb.data, wanted));
	assert_null(strstr(sb.data, "ChildFailedError"));
}

static void torchrun_names_the_first_rank_and_its_exception(void **state)
{
	assert_torch(
		"{\"message\":{\"message\":\"ValueError: bad batch\\nmore\",\"extraInfo\":{}}}",
		"\ntorchrun: rank 3 (local_rank: 1) failed first, with ValueError: bad batch\n");
	assert_torch("{\"message\":\"RuntimeError: x\"}",
		     "\ntorchrun: rank 3 (local_rank: 1) failed first, with RuntimeError: x\n");
	assert_torch(NULL, "\ntorchrun: rank 3 (local_rank: 1) failed first\n");
	assert_torch("[]", "\ntorchrun: rank 3 (local_rank: 1) failed first\n");
}

static void assert_exception(const char *log, const char *torch, const char *wanted)
{
	HF_AUTO_JSON error = torch != NULL ? parse(torch) : NULL;
	const struct hf_failure failure = {.log = log, .log_len = strlen(log), .torch = error};
	char *text = hf_failure_exception(&failure);

	if (wanted == NULL)
		assert_null(text);
	else
		assert_string_equal(text, wanted);
	free(text);
}

#define TRACE(line) "Traceback (most recent call last):\n  File \"t.py\", line 3\n" line "\n"
#define CLOSED "RuntimeError: [gloo] Connection closed by peer [127.0.0.1]:1"

static void the_exception_comes_from_the_record_or_the_traceback(void **state)
{
	assert_exception("no traceback\n", NULL, NULL);
	assert_exception("", NULL, NULL);
	assert_exception("x\n" TRACE("KeyError: 'x'") "bye\n", NULL, "KeyError: 'x'");
	/* An exception that was raised while another was handled ended the program. */
	assert_exception(TRACE("KeyError: 'x'") "\nDuring handling of it:\n\n" TRACE("OSError: y"),
			 NULL, "OSError: y");
	assert_exception("[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t\"\n"
			 "[rank1]: ValueError: z\n",
			 NULL, "ValueError: z");
	assert_exception(TRACE("KeyError: 'x'"),
			 "{\"message\":\"OSError: from the record\\nmore\"}",
			 "OSError: from the record");
	/* Two ranks of torchrun share a log. The second rank only lost its connection. */
	assert_exception(TRACE("KeyError: 'x'") TRACE(CLOSED) ELASTIC, NULL, "KeyError: 'x'");
	assert_exception(TRACE(CLOSED) TRACE("KeyError: 'x'") ELASTIC,
			 "{\"message\":\"" CLOSED "\"}", "KeyError: 'x'");
}

/* tqdm ends no line before the program ends, and fills a line that became shorter with blanks. */
#define BAR "  0%|   | 0/50 [00:00<?, ?it/s]\r 46%|###| 23/50 [00:04<00:05,  5.00it/s]"

static void a_traceback_may_follow_a_progress_bar_in_the_same_line(void **state)
{
	static const char log[] = BAR "   " TRACE("KeyError: 'x'");
	HF_AUTO_JSON job = parse(JOB("{\"replica\":\"master-0\",\"exitCode\":1}"));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_failure failure = {
		.job = job, .exit_code = 1, .log = log, .log_len = sizeof(log) - 1};

	assert_exception(BAR TRACE("KeyError: 'x'"), NULL, "KeyError: 'x'");
	assert_exception(BAR "   " TRACE("KeyError: 'x'"), NULL, "KeyError: 'x'");
	assert_exception(BAR "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"t\"\n"
			     "[rank1]: ValueError: z\n",
			 NULL, "ValueError: z");
	/* Tracebacks that the program quotes are not its end. */
	assert_exception("text = \"" TRACE("KeyError: 'x'"), NULL, NULL);
	assert_exception("  traceback : " TRACE("KeyError: 'x'"), NULL, NULL);

	hf_failure_write(&failure, &sb);
	assert_non_null(strstr(sb.data, "\n  |  46%|###| 23/50 [00:04<00:05,  5.00it/s]\n"
					"  | Traceback (most recent call last):\n"));
}

static void a_rank_that_lost_its_connection_is_not_the_first_to_fail(void **state)
{
	static const char log[] = TRACE("KeyError: 'x'") TRACE(CLOSED) ELASTIC
		"Failures:\n[1]:\n  rank      : 1 (local_rank: 1)\n"
		"Root Cause (first observed failure):\n[0]:\n  rank      : 0 (local_rank: 0)\n";
	HF_AUTO_JSON job = parse(JOB("{\"replica\":\"master-0\",\"exitCode\":1}"));
	HF_AUTO_JSON torch = parse("{\"message\":\"" CLOSED "\"}");
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_failure failure = {
		.job = job, .exit_code = 1, .log = log, .log_len = sizeof(log) - 1, .torch = torch};

	hf_failure_write(&failure, &sb);
	assert_non_null(strstr(sb.data,
			       "\ntorchrun: rank 0 (local_rank: 0) lost its connection, because "
			       "rank 1 (local_rank: 1) failed with KeyError: 'x'\n"));
	assert_null(strstr(sb.data, "failed first"));
}

static void a_failed_init_container_has_its_log(void **state)
{
	HF_AUTO_JSON job = parse(JOB("{\"replica\":\"worker-1\",\"reason\":\"InitContainerFailed\","
				     "\"message\":\"container 'i' exited with code 5\"}"));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_failure failure = {.job = job,
					   .exit_code = 5,
					   .init = "i",
					   .log = "no network\n",
					   .log_len = 11,
					   .run = "@latest"};

	hf_failure_write(&failure, &sb);
	assert_non_null(strstr(
		sb.data, "\nThe last line of init container 'i' of worker-1:\n  | no network\n"));
	assert_non_null(strstr(sb.data, "holdfast logs @latest --rank worker-1 -c i\n"));
}

static void the_advice_of_torchrun_about_threads_is_left_out(void **state)
{
	static const char log[] =
		"WARNING:torch.distributed.run:\n*****************************************\n"
		"Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
		"*****************************************\nstep 1\n";
	HF_AUTO_JSON job = parse(JOB("{\"replica\":\"worker-16\",\"exitCode\":1}"));
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);
	const struct hf_failure failure = {
		.job = job, .script = true, .exit_code = 1, .log = log, .log_len = sizeof(log) - 1};

	hf_failure_write(&failure, &sb);
	assert_non_null(strstr(sb.data, "worker-16 exited with code 1 (worker-16 is rank 17)\n\n"
					"The last line of worker-16:\n  | step 1\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cause_names_the_rank_and_its_end),
		cmocka_unit_test(a_full_disk_is_told_in_place_of_no_output),
		cmocka_unit_test(a_rank_between_two_starts_is_reported),
		cmocka_unit_test(the_files_of_the_log_are_named),
		cmocka_unit_test(the_verdict_says_why_there_is_no_restart),
		cmocka_unit_test(the_broken_launcher_of_debian_is_named),
		cmocka_unit_test(the_report_has_all_parts),
		cmocka_unit_test(a_silent_rank_and_an_unkept_run_are_said),
		cmocka_unit_test(only_the_last_lines_are_shown_and_long_ones_are_cut),
		cmocka_unit_test(what_the_launcher_prints_is_left_out),
		cmocka_unit_test(torchrun_names_the_first_rank_and_its_exception),
		cmocka_unit_test(the_exception_comes_from_the_record_or_the_traceback),
		cmocka_unit_test(a_traceback_may_follow_a_progress_bar_in_the_same_line),
		cmocka_unit_test(a_rank_that_lost_its_connection_is_not_the_first_to_fail),
		cmocka_unit_test(a_failed_init_container_has_its_log),
		cmocka_unit_test(the_advice_of_torchrun_about_threads_is_left_out),
	};

	return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
