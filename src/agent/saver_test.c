/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/saver.h"
#include "harness/real_loop.h"

#include "base/mem.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The disk waits for `go`, then returns the chosen result. */
static sem_t go;
static bool waits, fails;

int __real_hf_journal_write(const char *dir, const struct hf_strbuf *encoded, struct hf_error *err);
int __wrap_hf_journal_write(const char *dir, const struct hf_strbuf *encoded, struct hf_error *err);
int __wrap_hf_journal_write(const char *dir, const struct hf_strbuf *encoded, struct hf_error *err)
{
	while (waits && sem_wait(&go) != 0)
		assert_int_equal(errno, EINTR);
	if (fails)
		return hf_error_set(err, HF_E_IO, "the disk is full");
	return __real_hf_journal_write(dir, encoded, err);
}

struct bench {
	struct hf_test_loop t;
	struct hf_saver *saver;
	struct hf_journal journal;
	char dir[64];
	int codes[4];
	char message[64];
	size_t told;
};

static void on_saved(void *arg, int code, const char *message)
{
	struct bench *b = arg;

	assert_true(b->told < HF_ARRAY_LEN(b->codes));
	b->codes[b->told++] = code;
	snprintf(b->message, sizeof(b->message), "%s", message);
	hf_loop_stop(b->t.loop);
}

static int setup(void **state)
{
	struct bench *b = hf_xcalloc(1, sizeof(*b));

	assert_int_equal(sem_init(&go, 0, 0), 0);
	waits = fails = false;
	snprintf(b->dir, sizeof(b->dir), "/tmp/holdfast-saver-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	hf_test_loop_init(&b->t);
	hf_health_memory_init(&b->journal.memory);
	snprintf(b->journal.memory.boot_id, sizeof(b->journal.memory.boot_id), "boot");
	b->saver = hf_saver_create(&(struct hf_saver_options){
		.loop = b->t.loop, .dir = b->dir, .saved = on_saved, .arg = b});
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	char path[96];

	hf_saver_destroy(b->saver);
	hf_test_loop_release(&b->t);
	snprintf(path, sizeof(path), "%s/" HF_JOURNAL_FILE, b->dir);
	(void)unlink(path);
	(void)rmdir(b->dir);
	free(b);
	return 0;
}

static uint64_t lost_on_disk(const struct bench *b)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	struct hf_journal read;
	struct hf_error err = {0};

	assert_ok(hf_journal_load(b->dir, arena, &read, &err), &err);
	return read.lost;
}

static void what_is_told_as_saved_is_on_disk(void **state)
{
	struct bench *b = *state;

	b->journal.lost = 7;
	assert_true(hf_saver_took(b->saver) == HF_TIME_NONE);
	assert_true(hf_saver_save(b->saver, &b->journal));
	/* The file has the journal as it was at the call: later changes are not in it. */
	b->journal.lost = 8;
	hf_test_loop_run(&b->t);
	assert_int_equal(b->told, 1);
	assert_int_equal(b->codes[0], 0);
	assert_int_equal(lost_on_disk(b), 7);
	assert_true(hf_saver_took(b->saver) > 0);
	assert_false(hf_saver_is_busy(b->saver));
}

static void a_failure_is_told_with_its_text(void **state)
{
	struct bench *b = *state;

	fails = true;
	assert_true(hf_saver_save(b->saver, &b->journal));
	hf_test_loop_run(&b->t);
	assert_int_equal(b->codes[0], HF_E_IO);
	assert_string_equal(b->message, "the disk is full");
}

static void a_disk_that_hangs_is_told_and_what_it_does_in_the_end_too(void **state)
{
	struct bench *b = *state;

	waits = true;
	assert_true(hf_saver_save(b->saver, &b->journal));
	assert_false(hf_saver_save(b->saver, &b->journal));
	hf_test_loop_run(&b->t);
	assert_int_equal(b->codes[0], HF_E_TIMEOUT);
	assert_true(hf_saver_is_busy(b->saver));
	assert_false(hf_saver_save(b->saver, &b->journal));
	sem_post(&go);
	hf_test_loop_run(&b->t);
	assert_int_equal(b->told, 2);
	assert_int_equal(b->codes[1], 0);
	assert_false(hf_saver_is_busy(b->saver));
}

static void settling_tells_what_was_under_way(void **state)
{
	struct bench *b = *state;

	hf_saver_settle(b->saver);
	assert_int_equal(b->told, 0);
	assert_true(hf_saver_save(b->saver, &b->journal));
	hf_saver_settle(b->saver);
	assert_int_equal(b->told, 1);
	assert_int_equal(b->codes[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_told_as_saved_is_on_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failure_is_told_with_its_text, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_disk_that_hangs_is_told_and_what_it_does_in_the_end_too, setup, teardown),
		cmocka_unit_test_setup_teardown(settling_tells_what_was_under_way, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
