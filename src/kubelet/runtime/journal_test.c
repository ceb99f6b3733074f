/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/runtime/journal_internal.h"

#include "harness/test.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
	char dir[64];
	int dir_fd;
	struct hf_journal journal;
	struct hf_pod_past past;
};

static int set_up(void **state)
{
	struct fixture *f = hf_xcalloc(1, sizeof(*f));

	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/hf-journal-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dir_fd >= 0);
	f->journal.fd = -1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	struct hf_error err;

	hf_journal_release(&f->journal);
	(void)close(f->dir_fd);
	assert_ok(hf_fs_remove_tree(f->dir, &err), &err);
	free(f);
	return 0;
}

static struct hf_journal_record of(enum hf_journal_type type, const char *container,
				   unsigned attempt)
{
	struct hf_journal_record r = {
		.type = type, .at = 1700000000 * HF_SECOND + attempt, .attempt = attempt};

	(void)snprintf(r.container, sizeof(r.container), "%s", container);
	return r;
}

static void append(struct fixture *f, struct hf_journal_record r)
{
	struct hf_error err;

	assert_ok(hf_journal_append(&f->journal, &r, &err), &err);
}

static void append_attempt(struct fixture *f, const char *name, unsigned attempt, int code)
{
	struct hf_journal_record r = of(HF_JOURNAL_BEGIN, name, attempt);

	r.backoff_s = attempt * 10;
	append(f, r);
	r = of(HF_JOURNAL_START, name, attempt);
	r.pid = 4711;
	append(f, r);
	r = of(HF_JOURNAL_EXIT, name, attempt);
	r.code = code;
	append(f, r);
}

static void append_shim(struct fixture *f)
{
	struct hf_journal_record r = {.type = HF_JOURNAL_SHIM,
				      .shim = {.pid = 42, .start_ticks = 99, .boot_id = "boot"}};

	append(f, r);
}

static void what_is_written_is_what_is_read(void **state)
{
	struct fixture *f = *state;
	struct hf_journal_record r;
	struct hf_error err;
	const struct hf_container_past *main_past, *init_past;

	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	append_shim(f);
	append_attempt(f, "init", 0, 0);
	append_attempt(f, "main", 0, 3);
	append(f, of(HF_JOURNAL_BEGIN, "main", 1));
	r = of(HF_JOURNAL_FAIL, "main", 1);
	(void)snprintf(r.text, sizeof(r.text), "100%% odd\ntext \x7f=");
	append(f, r);

	assert_ok(hf_journal_read(f->dir_fd, &f->past, &err), &err);
	assert_int_equal(f->past.shim.pid, 42);
	assert_int_equal(f->past.shim.start_ticks, 99);
	assert_string_equal(f->past.shim.boot_id, "boot");
	assert_int_equal(f->past.n_containers, 2);
	assert_false(f->past.quit);
	init_past = hf_pod_past_find(&f->past, "init");
	main_past = hf_pod_past_find(&f->past, "main");
	assert_int_equal(init_past->last.state, HF_ATTEMPT_EXITED);
	assert_int_equal(init_past->last.code, 0);
	assert_int_equal(init_past->last.pid, 4711);
	assert_int_equal(main_past->previous.code, 3);
	assert_int_equal(main_past->last.state, HF_ATTEMPT_FAILED);
	assert_string_equal(main_past->last.text, "100% odd\ntext \x7f=");
	assert_null(hf_pod_past_find(&f->past, "other"));
	assert_int_equal(hf_pod_past_running(&f->past), 0);
	assert_memory_equal(&f->past, &f->journal.past, sizeof(f->past));
}

static void signals_memory_kills_and_the_end_are_kept(void **state)
{
	struct fixture *f = *state;
	struct hf_journal_record r;
	struct hf_error err;

	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	append(f, of(HF_JOURNAL_BEGIN, "main", 7));
	assert_int_equal(hf_pod_past_running(&f->journal.past), 1);
	r = of(HF_JOURNAL_EXIT, "main", 7);
	r.signum = 9;
	r.oom = true;
	append(f, r);
	append(f, (struct hf_journal_record){.type = HF_JOURNAL_QUIT});
	assert_ok(hf_journal_read(f->dir_fd, &f->past, &err), &err);
	assert_int_equal(f->past.containers[0].last.signum, 9);
	assert_true(f->past.containers[0].last.oom);
	/* The journal has an EXIT and no START: the container ended before its start was recorded,
	 * and counts as started. */
	assert_true(f->past.containers[0].last.started != HF_TIME_NONE);
	assert_true(f->past.quit);
}

static void a_record_out_of_order_is_refused_and_not_written(void **state)
{
	struct fixture *f = *state;
	struct hf_journal_record r = of(HF_JOURNAL_START, "main", 0);
	struct hf_error err;
	size_t bytes;

	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	assert_code(hf_journal_append(&f->journal, &r, &err), HF_E_INVALID);
	append_attempt(f, "main", 4, 0);
	bytes = f->journal.bytes;
	for (enum hf_journal_type t = HF_JOURNAL_START; t <= HF_JOURNAL_EXIT; t++) {
		r = of(t, "main", 4);
		assert_code(hf_journal_append(&f->journal, &r, &err), HF_E_INVALID);
	}
	r = of(HF_JOURNAL_BEGIN, "main", 4); /* not newer than the last attempt */
	assert_code(hf_journal_append(&f->journal, &r, &err), HF_E_INVALID);
	append(f, of(HF_JOURNAL_BEGIN, "main", 5));
	r = of(HF_JOURNAL_BEGIN, "main", 6); /* attempt 5 still runs */
	assert_code(hf_journal_append(&f->journal, &r, &err), HF_E_INVALID);
	assert_true(f->journal.bytes > bytes);
	assert_ok(hf_journal_read(f->dir_fd, &f->past, &err), &err);
	assert_int_equal(f->past.containers[0].last.number, 5);
}

static void more_containers_than_a_pod_may_have_are_refused(void **state)
{
	struct fixture *f = *state;
	struct hf_journal_record r;
	struct hf_error err;
	char name[16];

	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	for (int i = 0; i < HF_POD_CONTAINERS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "c%d", i);
		append(f, of(HF_JOURNAL_BEGIN, name, 0));
	}
	r = of(HF_JOURNAL_BEGIN, "one-more", 0);
	assert_code(hf_journal_append(&f->journal, &r, &err), HF_E_INVALID);
}

static void no_journal_is_told_apart_from_an_empty_one(void **state)
{
	struct fixture *f = *state;
	struct hf_error err;

	assert_code(hf_journal_read(f->dir_fd, &f->past, &err), HF_E_NOT_FOUND);
	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	assert_ok(hf_journal_read(f->dir_fd, &f->past, &err), &err);
	assert_int_equal(f->past.n_records, 0);
}

/* Reads a damaged journal: it is cut after `keep` bytes, and byte `spoil` is changed (-1:
 * none). */
static int read_damaged(struct fixture *f, size_t keep, ssize_t spoil)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);
	struct hf_error err;
	char path[128];
	int rc;

	(void)snprintf(path, sizeof(path), "%s/" HF_JOURNAL_FILE, f->dir);
	assert_ok(hf_fs_read(path, &text, &err), &err);
	if (spoil >= 0)
		text.data[spoil] ^= 1;
	assert_true(keep <= text.len);
	{
		HF_AUTO_FD fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

		assert_int_equal(write(fd, text.data, keep), keep);
	}
	memset(&f->past, 0x5a, sizeof(f->past));
	rc = hf_journal_read(f->dir_fd, &f->past, &err);
	{
		HF_AUTO_FD fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

		if (spoil >= 0)
			text.data[spoil] ^= 1;
		assert_int_equal(write(fd, text.data, text.len), text.len);
	}
	return rc;
}

static void cut_anywhere_it_tells_a_beginning_of_what_happened(void **state)
{
	struct fixture *f = *state;
	struct hf_error err;
	uint64_t n = 0;

	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	append_shim(f);
	append_attempt(f, "main", 0, 1);
	append_attempt(f, "main", 1, 2);
	for (size_t keep = 0; keep <= f->journal.bytes; keep++) {
		assert_int_equal(read_damaged(f, keep, -1), 0);
		assert_true(f->past.n_records == n || f->past.n_records == n + 1);
		n = f->past.n_records;
	}
	assert_int_equal(n, 7);
}

static void one_changed_bit_before_the_last_line_is_found(void **state)
{
	struct fixture *f = *state;
	struct hf_error err;

	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	append_shim(f);
	append_attempt(f, "main", 0, 1);
	for (size_t i = 0; i + 1 < f->journal.bytes; i++)
		assert_int_equal(read_damaged(f, f->journal.bytes, (ssize_t)i), HF_E_INVALID);
}

static void a_missing_line_is_found(void **state)
{
	struct fixture *f = *state;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_journal_record r = of(HF_JOURNAL_BEGIN, "main", 0);
	struct hf_error err;
	char path[128];

	hf_journal_format(&r, 5, &text);
	r = of(HF_JOURNAL_START, "main", 0);
	r.pid = 2;
	hf_journal_format(&r, 7, &text);
	(void)snprintf(path, sizeof(path), "%s/" HF_JOURNAL_FILE, f->dir);
	assert_ok(hf_fs_write_atomic(path, text.data, text.len, 0600, &err), &err);
	assert_code(hf_journal_read(f->dir_fd, &f->past, &err), HF_E_INVALID);
	assert_string_equal(err.text, "journal: record 6 is missing");
}

static void lines_that_are_no_records_are_refused(void **state)
{
	static const char *const bodies[] = {
		"1",
		"1 2",
		"x 2 quit",
		"1 2 jump",
		"1 2 begin c",
		"1 2 begin zebra=1",
		"1 2 begin a=-1",
		"1 2 exit code=256",
		"1 2 exit signal=65",
		"1 2 exit oom=2",
		"1 2 stop why=3",
		"1 2 stop ran=65",
		"1 2 start pid=0",
		"1 2 fail text=%4",
		"1 2 fail text=%zz",
		"1 2 begin c=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	struct hf_journal_record r;
	struct hf_error err;
	uint64_t sequence;

	for (size_t i = 0; i < HF_ARRAY_LEN(bodies); i++) {
		char line[256];
		int n = snprintf(line, sizeof(line), "%08x %s\n", 0u, bodies[i]);

		assert_code(hf_journal_parse(line, (size_t)n, &sequence, &r, &err), HF_E_INVALID);
	}
	assert_code(hf_journal_parse("", 0, &sequence, &r, &err), HF_E_INVALID);
}

static void a_journal_that_grows_is_rewritten_with_the_last_two_attempts(void **state)
{
	struct fixture *f = *state;
	struct hf_error err;
	struct stat st;
	unsigned last = 0;

	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	append_shim(f);
	append_attempt(f, "init", 0, 0);
	for (unsigned i = 0; i < 1500; i++)
		append_attempt(f, "main", last = i, (int)(i % 256));
	assert_int_equal(fstat(f->journal.fd, &st), 0);
	assert_true((size_t)st.st_size <= HF_JOURNAL_COMPACT_BYTES + 4096);
	assert_ok(hf_journal_read(f->dir_fd, &f->past, &err), &err);
	assert_int_equal(f->past.shim.pid, 42);
	assert_int_equal(hf_pod_past_find(&f->past, "init")->last.state, HF_ATTEMPT_EXITED);
	assert_int_equal(hf_pod_past_find(&f->past, "main")->last.number, last);
	assert_int_equal(hf_pod_past_find(&f->past, "main")->last.code, last % 256);
	assert_int_equal(hf_pod_past_find(&f->past, "main")->previous.number, last - 1);
}

static void why_a_pod_was_ended_is_kept_once_and_through_a_rewrite(void **state)
{
	struct fixture *f = *state;
	struct hf_journal_record r = of(HF_JOURNAL_STOP, "", 0);
	struct hf_error err;

	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	append_shim(f);
	append_attempt(f, "main", 0, 3);
	/* A STOP without a reason is invalid. */
	assert_code(hf_journal_append(&f->journal, &r, &err), HF_E_INVALID);
	r.stop = HF_STOPPED_BY_DRAIN;
	r.ran = 2;
	append(f, r);
	r.stop = HF_STOPPED_BY_DEADLINE;
	assert_code(hf_journal_append(&f->journal, &r, &err), HF_E_INVALID);
	assert_ok(hf_journal_read(f->dir_fd, &f->past, &err), &err);
	assert_int_equal(f->past.stop, HF_STOPPED_BY_DRAIN);
	assert_int_equal(f->past.ran_at_stop, 2);
	for (unsigned i = 1; i < 1500; i++)
		append_attempt(f, "main", i, 1);
	assert_ok(hf_journal_read(f->dir_fd, &f->past, &err), &err);
	assert_true(f->past.n_records < 1500);
	assert_int_equal(f->past.stop, HF_STOPPED_BY_DRAIN);
	assert_int_equal(f->past.ran_at_stop, 2);
	assert_int_equal(f->past.stopped, r.at);
}

static void what_cannot_be_written_can_be_tried_again(void **state)
{
	struct fixture *f = *state;
	struct hf_journal_record r = of(HF_JOURNAL_BEGIN, "main", 0);
	struct hf_error err;
	int good;

	assert_ok(hf_journal_create(&f->journal, f->dir_fd, &err), &err);
	good = f->journal.fd;
	f->journal.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(f->journal.fd >= 0);
	assert_code(hf_journal_append(&f->journal, &r, &err), HF_E_NO_SPACE);
	assert_int_equal(f->journal.past.n_containers, 0);
	(void)close(f->journal.fd);
	f->journal.fd = good;
	assert_ok(hf_journal_append(&f->journal, &r, &err), &err);
	assert_ok(hf_journal_read(f->dir_fd, &f->past, &err), &err);
	assert_int_equal(f->past.n_records, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(what_is_written_is_what_is_read),
		T(signals_memory_kills_and_the_end_are_kept),
		T(a_record_out_of_order_is_refused_and_not_written),
		T(more_containers_than_a_pod_may_have_are_refused),
		T(no_journal_is_told_apart_from_an_empty_one),
		T(cut_anywhere_it_tells_a_beginning_of_what_happened),
		T(one_changed_bit_before_the_last_line_is_found),
		T(a_missing_line_is_found),
		T(lines_that_are_no_records_are_refused),
		T(a_journal_that_grows_is_rewritten_with_the_last_two_attempts),
		T(why_a_pod_was_ended_is_kept_once_and_through_a_rewrite),
		T(what_cannot_be_written_can_be_tried_again),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
