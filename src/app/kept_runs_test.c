/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/kept_runs.h"
#include "app/kept_store.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Unused process IDs: IDs end at 2^22. */
#define NOBODY 2147480000

static char base[64];

static void begin(void)
{
	(void)snprintf(base, sizeof(base), "/tmp/hf-kept-XXXXXX");
	assert_non_null(mkdtemp(base));
}

static void end(void)
{
	struct hf_error err;

	assert_ok(hf_fs_remove_tree(base, &err), &err);
}

/* Makes the folder of a run that started at the second `number`. ended: the run has ended and is
 * settled. */
static void make_run(const char *name, int number, bool ended)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/runs/%s-%d", base, name, NOBODY + number);
	struct hf_kept_run run = {
		.path = path,
		.name = (char *)(uintptr_t)name,
		.ns = (char *)(uintptr_t) "team-a",
		.kind = (char *)(uintptr_t) "PyTorchJob",
		.state = (char *)(uintptr_t) "Failed",
		.cause = (char *)(uintptr_t)(ended ? "master-0 exited with code 3" : ""),
		.started = number * HF_SECOND,
		.ended = ended ? (number + 5) * HF_SECOND : HF_TIME_NONE,
		.restarts = 2,
		.exit_code = 3};
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(path, 0700, &err), &err);
	assert_ok(hf_kept_run_save(&run, &err), &err);
	if (ended)
		assert_ok(hf_kept_run_settle(path, &err), &err);
}

static const char *found(const struct hf_kept_runs *runs, const char *word)
{
	const struct hf_kept_run *run = hf_kept_runs_find(runs, word);

	return run != NULL ? run->id : "none";
}

static void runs_are_found_by_number_and_name(void **state)
{
	HF_AUTO_KEPT_RUNS runs = {.n = 0};

	begin();
	hf_kept_runs_list(base, &runs);
	assert_int_equal(runs.n, 0);
	assert_string_equal(found(&runs, "@latest"), "none");
	make_run("old", 1, true);
	make_run("ddp", 2, true);
	make_run("ddp", 3, true);
	hf_kept_runs_list(base, &runs);
	assert_int_equal(runs.n, 3);
	assert_string_equal(found(&runs, "@latest"), "ddp-2147480003");
	assert_string_equal(found(&runs, "@1"), "ddp-2147480003");
	assert_string_equal(found(&runs, "@3"), "old-2147480001");
	assert_string_equal(found(&runs, "@4"), "none");
	assert_string_equal(found(&runs, "@0"), "none");
	assert_string_equal(found(&runs, "ddp"), "ddp-2147480003");
	assert_string_equal(found(&runs, "pytorchjob/old"), "old-2147480001");
	assert_string_equal(found(&runs, "tfjob/old"), "none");
	assert_string_equal(found(&runs, "ddp-2147480002"), "ddp-2147480002");
	assert_string_equal(runs.items[0].cause, "master-0 exited with code 3");
	assert_string_equal(runs.items[0].ns, "team-a");
	assert_int_equal(runs.items[0].ended, 8 * HF_SECOND);
	assert_int_equal(runs.items[0].exit_code, 3);
	end();
}

static void a_missing_run_is_answered_with_those_that_are_kept(void **state)
{
	HF_AUTO_KEPT_RUNS runs = {.n = 0};
	struct hf_error err;

	begin();
	assert_code(hf_kept_runs_missing(&runs, "@9", &err), HF_E_NOT_FOUND);
	assert_string_equal(err.text,
			    "no kept run '@9': 'holdfast run' keeps its last 20 runs, and "
			    "none has ended here yet");
	make_run("old", 1, true);
	hf_kept_runs_list(base, &runs);
	assert_code(hf_kept_runs_missing(&runs, "@9", &err), HF_E_NOT_FOUND);
	assert_string_equal(err.text, "no kept run '@9': one run is kept, @1");
	hf_kept_runs_release(&runs);
	make_run("ddp", 2, true);
	hf_kept_runs_list(base, &runs);
	assert_code(hf_kept_runs_missing(&runs, "@9", &err), HF_E_NOT_FOUND);
	assert_string_equal(err.text, "no kept run '@9': 2 runs are kept, @1 to @2");
	assert_code(hf_kept_runs_missing(&runs, "ddq", &err), HF_E_NOT_FOUND);
	assert_string_equal(err.text, "no kept run 'ddq': did you mean 'ddp'?");
	end();
}

static void a_killed_run_says_so(void **state)
{
	HF_AUTO_KEPT_RUNS runs = {.n = 0};

	begin();
	make_run("ddp", 1, false);
	hf_kept_runs_list(base, &runs);
	assert_string_equal(runs.items[0].state, "Killed");
	assert_non_null(strstr(runs.items[0].cause, "ranks ended"));
	assert_false(runs.items[0].alive);
	assert_int_equal(runs.items[0].ended, HF_TIME_NONE);
	end();
}

static void write_file(const char *sub, const char *text, size_t len)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", base, sub);
	HF_AUTOFREE char *dir = hf_xstrndup(path, (size_t)(strrchr(path, '/') - path));
	struct hf_error err;

	assert_ok(hf_fs_mkdirs(dir, 0700, &err), &err);
	assert_ok(hf_fs_write_atomic(path, text, len, 0600, &err), &err);
}

/* The process ID in the name is that of this process, which does not hold the lock. */
static void a_reused_process_id_is_not_the_run(void **state)
{
	HF_AUTOFREE char *path = NULL;
	struct hf_error err;
	int fd = -1;

	begin();
	path = hf_xasprintf("%s/runs/ddp-%d", base, (int)getpid());
	assert_ok(hf_fs_mkdirs(path, 0700, &err), &err);
	assert_true(hf_kept_run_is_alive(path)); /* without a lock, the process ID decides */
	assert_ok(hf_kept_run_lock(path, &fd, &err), &err);
	assert_true(hf_kept_run_is_alive(path));
	hf_fd_cleanup(&fd);
	assert_false(hf_kept_run_is_alive(path));
	end();
}

static void damaged_folders_are_left_out(void **state)
{
	HF_AUTO_KEPT_RUNS runs = {.n = 0};

	begin();
	write_file("runs/ddp-1/run.json", "{\"startedAt\":", 13);
	write_file("runs/ddp-2/run.json", "[]", 2);
	write_file("runs/ddp-3/other", "", 0);
	write_file("runs/nobody/run.json", "{}", 2);
	hf_kept_runs_list(base, &runs);
	assert_int_equal(runs.n, 0);
	end();
}

static bool has_run(const char *id)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/runs/%s", base, id);

	return access(path, F_OK) == 0;
}

static void the_oldest_runs_are_removed(void **state)
{
	begin();
	for (int i = 1; i <= 4; i++)
		make_run("ddp", i, i != 2);
	hf_kept_runs_prune(base, 2, HF_KEPT_RUNS_BYTES_MAX);
	assert_false(has_run("ddp-2147480001"));
	assert_true(has_run("ddp-2147480002")); /* it has not ended */
	assert_true(has_run("ddp-2147480003"));
	assert_true(has_run("ddp-2147480004"));
	end();
}

static void the_run_that_ended_last_is_never_removed(void **state)
{
	HF_AUTO_KEPT_RUNS runs = {.n = 0};

	begin();
	for (int i = 2; i <= 4; i++)
		make_run("short", i, true);
	(void)poll(NULL, 0, 20);   /* the clock of a file system is coarse */
	make_run("long", 1, true); /* began first, and ended last */
	hf_kept_runs_prune(base, 2, HF_KEPT_RUNS_BYTES_MAX);
	assert_true(has_run("long-2147480001"));
	assert_true(has_run("short-2147480004"));
	assert_false(has_run("short-2147480003"));
	hf_kept_runs_prune(base, 20, 1000);
	hf_kept_runs_list(base, &runs);
	assert_int_equal(runs.n, 1);
	assert_string_equal(runs.items[0].id, "long-2147480001");
	end();
}

static void many_bytes_are_removed_but_never_the_newest_run(void **state)
{
	static char big[1 << 20];

	begin();
	for (int i = 1; i <= 3; i++) {
		HF_AUTOFREE char *log = hf_xasprintf("runs/ddp-%d/logs/uid/c.0.log", NOBODY + i);

		make_run("ddp", i, true);
		memset(big, 'x', sizeof(big));
		write_file(log, big, sizeof(big));
	}
	hf_kept_runs_prune(base, 20, (5 << 20) / 2);
	assert_false(has_run("ddp-2147480001"));
	assert_true(has_run("ddp-2147480002"));
	hf_kept_runs_prune(base, 20, 1000);
	assert_false(has_run("ddp-2147480002"));
	assert_true(has_run("ddp-2147480003"));
	end();
}

/* ---- the store of a kept run --------------------------------------------------------------- */

#define POD                                                                                              \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"ddp-master-0\",\"namespace\":" \
	"\"team-a\",\"uid\":\"u-1\",\"resourceVersion\":\"77\"},\"status\":{\"phase\":\"Failed\","       \
	"\"containerStatuses\":[{\"name\":\"pytorch\",\"restartCount\":1}]}}"
#define JOB                                                                                           \
	"{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"ddp\"," \
	"\"namespace\":\"team-a\",\"uid\":\"u-2\",\"resourceVersion\":\"76\"}}"
#define LINE(stamp, text) "2026-11-26T04:00:0" stamp ".000000Z stdout F " text "\n"

static struct hf_strbuf read_bytes = HF_STRBUF_INIT(4096);
static int read_code;

static void on_log(void *arg, const char *bytes, size_t len, int code, const char *message)
{
	if (len > 0) {
		hf_strbuf_add(&read_bytes, bytes, len);
		return;
	}
	read_code = code;
	hf_loop_stop(arg);
}

static const char *read_log(struct hf_loop *loop, struct hf_store *store, bool previous,
			    int64_t tail)
{
	const struct hf_log_options options = {.ns = "team-a",
					       .pod = "ddp-master-0",
					       .container = "pytorch",
					       .previous = previous,
					       .follow = true,
					       .tail_lines = tail};
	struct hf_log_stream *stream;

	hf_strbuf_clear(&read_bytes);
	stream = hf_store_logs(store, &options, on_log, loop);
	hf_loop_run(loop);
	(void)hf_log_stream_stop(stream);
	return read_bytes.data;
}

static void a_kept_run_is_read_like_a_server(void **state)
{
	HF_AUTO_DOC pod = hf_doc_from_text(POD, sizeof(POD) - 1);
	HF_AUTO_DOC job = hf_doc_from_text(JOB, sizeof(JOB) - 1);
	struct hf_doc *const objects[] = {job, pod};
	HF_AUTO_KEPT_RUNS runs = {.n = 0};
	struct hf_kept_store *kept;
	struct hf_store *store;
	struct hf_loop *loop;
	struct hf_error err;

	begin();
	make_run("ddp", 1, true);
	hf_kept_runs_list(base, &runs);
	assert_ok(hf_kept_run_save_objects(runs.items[0].path, HF_KEPT_OBJECTS, objects, 2, &err),
		  &err);
	write_file("runs/ddp-2147480001/logs/u-1/pytorch.0.log", LINE("1", "first run"),
		   sizeof(LINE("1", "first run")) - 1);
	write_file("runs/ddp-2147480001/logs/u-1/pytorch.1.log.1", LINE("2", "a"),
		   sizeof(LINE("2", "a")) - 1);
	write_file("runs/ddp-2147480001/logs/u-1/pytorch.1.log", LINE("3", "b") LINE("4", "c"),
		   sizeof(LINE("3", "b") LINE("4", "c")) - 1);
	assert_ok(hf_loop_create(&loop, &err), &err);
	assert_ok(hf_kept_store_open(loop, &runs.items[0], &kept, &store, &err), &err);
	assert_string_equal(read_log(loop, store, false, -1), "a\nb\nc\n");
	assert_int_equal(read_code, 0);
	assert_string_equal(read_log(loop, store, false, 2), "b\nc\n");
	assert_string_equal(read_log(loop, store, true, -1), "first run\n");
	hf_strbuf_release(&read_bytes);
	(void)hf_store_destroy(store);
	(void)hf_kept_store_close(kept);
	(void)hf_loop_destroy(loop);
	end();
}

static void damaged_objects_are_an_error(void **state)
{
	HF_AUTO_KEPT_RUNS runs = {.n = 0};
	struct hf_kept_store *kept;
	struct hf_store *store;
	struct hf_loop *loop;
	struct hf_error err;

	begin();
	make_run("ddp", 1, true);
	write_file("runs/ddp-2147480001/objects.json", "[{]", 3);
	hf_kept_runs_list(base, &runs);
	assert_ok(hf_loop_create(&loop, &err), &err);
	assert_int_not_equal(hf_kept_store_open(loop, &runs.items[0], &kept, &store, &err), 0);
	assert_non_null(strstr(err.text, "cannot read the kept run ddp-2147480001"));
	(void)hf_loop_destroy(loop);
	end();
}

/* Opens the newest run, which must fail with the text. */
static void assert_refused(struct hf_loop *loop, const char *text)
{
	HF_AUTO_KEPT_RUNS runs = {.n = 0};
	struct hf_kept_store *kept;
	struct hf_store *store;
	struct hf_error err;

	hf_kept_runs_list(base, &runs);
	assert_int_equal(hf_kept_store_open(loop, &runs.items[0], &kept, &store, &err),
			 HF_E_NOT_FOUND);
	assert_string_equal(err.text, text);
}

static void a_run_that_ended_before_its_job_says_so(void **state)
{
	struct hf_loop *loop;
	struct hf_error err;

	begin();
	assert_ok(hf_loop_create(&loop, &err), &err);
	make_run("ddp", 1, false);
	assert_refused(
		loop,
		"run ddp-2147480001 ended when the process of 'holdfast run' was killed before its job was created; no rank ran");
	write_file("runs/ddp-2147480001/objects.json", "[]", 2);
	assert_refused(
		loop,
		"run ddp-2147480001 ended when the process of 'holdfast run' was killed before its job was created; no rank ran");
	make_run("ddp", 2, true);
	assert_refused(loop, "run ddp-2147480002 ended before its job was created: "
			     "master-0 exited with code 3");
	(void)hf_loop_destroy(loop);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_are_found_by_number_and_name),
		cmocka_unit_test(a_missing_run_is_answered_with_those_that_are_kept),
		cmocka_unit_test(a_killed_run_says_so),
		cmocka_unit_test(a_reused_process_id_is_not_the_run),
		cmocka_unit_test(damaged_folders_are_left_out),
		cmocka_unit_test(the_oldest_runs_are_removed),
		cmocka_unit_test(the_run_that_ended_last_is_never_removed),
		cmocka_unit_test(many_bytes_are_removed_but_never_the_newest_run),
		cmocka_unit_test(a_kept_run_is_read_like_a_server),
		cmocka_unit_test(damaged_objects_are_an_error),
		cmocka_unit_test(a_run_that_ended_before_its_job_says_so),
	};

	return cmocka_run_group_tests_name("kept_runs", tests, NULL, NULL);
}
