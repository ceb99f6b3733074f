/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/journal.h"

#include "base/fs.h"
#include "base/str.h"
#include "harness/health.h"
#include "harness/health_plan_text.h"
#include "harness/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A node that has lived for a while: devices in several states, faults, samples. */
static void live(struct health_node *n)
{
	struct hf_health_sample *sample;

	health_init(n, 3, 1);
	health_step(n, HF_SECOND);
	(void)health_xid(n, 79, "gpu-1");
	(void)health_xid(n, 31, "gpu-0");
	sample = health_sample(n, HF_HEALTH_ECC, "gpu-2");
	sample->supported = true;
	sample->ecc.uncorrectable = 7;
	health_step(n, HF_SECOND);
	health_step(n, HF_MINUTE);
}

static struct hf_journal journal_of(const struct health_node *n)
{
	return (struct hf_journal){
		.memory = n->memory,
		.boot_at = 5 * HF_DAY,
		.place = {.has_seq = true, .seq = 77, .file_inode = UINT64_MAX, .file_offset = 9},
		.lost = 3,
	};
}

static void what_was_written_is_read_again_to_the_byte(void **state)
{
	struct health_node n;
	struct hf_journal journal, again;
	struct hf_error err;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)16 << 20);
	HF_AUTO_STRBUF one = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);
	HF_AUTO_STRBUF two = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);

	live(&n);
	snprintf(n.memory.devices[1].above, sizeof(n.memory.devices[1].above), "0000:9c:01.0");
	assert_true(n.memory.devices[1].faults_len > 0);
	n.memory.devices[1].faults[0].of_port = true;
	journal = journal_of(&n);
	hf_journal_encode(&journal, &one);
	assert_ok(hf_journal_decode(one.data, one.len, arena, &again, &err), &err);
	assert_int_equal(again.memory.devices_len, journal.memory.devices_len);
	for (size_t i = 0; i < journal.memory.devices_len; i++) {
		const struct hf_health_device *a = &journal.memory.devices[i];
		const struct hf_health_device *b = &again.memory.devices[i];

		assert_memory_equal(a->tracks, b->tracks, sizeof(a->tracks));
		assert_memory_equal(a->faults, b->faults, a->faults_len * sizeof(a->faults[0]));
		assert_int_equal(a->state, b->state);
		assert_string_equal(a->above, b->above);
		assert_true(a->since == b->since && a->heard_at == b->heard_at);
	}
	assert_memory_equal(journal.memory.conditions, again.memory.conditions,
			    sizeof(journal.memory.conditions));
	assert_memory_equal(&journal.place, &again.place, sizeof(journal.place));
	assert_int_equal(again.lost, 3);
	assert_true(again.boot_at == 5 * HF_DAY);
	hf_journal_encode(&again, &two);
	assert_string_equal(one.data, two.data);
	health_release(&n);
}

static void the_brain_goes_on_from_what_was_read_as_if_nothing_had_been(void **state)
{
	struct health_node n, other;
	struct hf_journal journal, again;
	struct hf_error err;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)16 << 20);
	HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);
	HF_AUTO_STRBUF left = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);
	HF_AUTO_STRBUF right = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);

	live(&n);
	live(&other);
	journal = journal_of(&n);
	hf_journal_encode(&journal, &bytes);
	assert_ok(hf_journal_decode(bytes.data, bytes.len, arena, &again, &err), &err);
	other.memory = again.memory;
	health_step(&n, HF_HOUR);
	health_step(&other, HF_HOUR);
	hf_health_plan_render(&n.plan, 0, &left);
	hf_health_plan_render(&other.plan, 0, &right);
	assert_string_equal(left.data, right.data);
	health_release(&n);
	health_release(&other);
}

static void a_journal_cut_at_any_byte_is_refused(void **state)
{
	struct health_node n;
	struct hf_journal journal, again;
	struct hf_error err;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)16 << 20);
	HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);

	live(&n);
	journal = journal_of(&n);
	hf_journal_encode(&journal, &bytes);
	for (size_t len = 0; len < bytes.len; len++)
		assert_code(hf_journal_decode(bytes.data, len, arena, &again, &err), HF_E_INVALID);
	health_release(&n);
}

static void a_journal_with_any_byte_changed_is_refused(void **state)
{
	struct health_node n;
	struct hf_journal journal, again;
	struct hf_error err;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)16 << 20);
	HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);

	live(&n);
	journal = journal_of(&n);
	hf_journal_encode(&journal, &bytes);
	for (size_t i = 0; i < bytes.len; i++) {
		bytes.data[i] ^= 1;
		assert_code(hf_journal_decode(bytes.data, bytes.len, arena, &again, &err),
			    HF_E_INVALID);
		bytes.data[i] ^= 1;
	}
	health_release(&n);
}

static void a_sum_that_is_right_does_not_make_nonsense_a_memory(void **state)
{
	static const struct {
		const char *from, *to;
	} lies[] = {
		{"\"state\":\"Unhealthy\"", "\"state\":\"Unheilthy\""},
		{"\"detector\":\"xid\"", "\"detector\":\"xyz\""},
		{"\"kind\":1", "\"kind\":9"},
		{"\"id\":\"gpu-0\"", "\"id\":\"gpu-9\""},
		{"\"scope\":1", "\"scope\":7"},
	};
	struct health_node n;
	struct hf_journal journal, again;
	struct hf_error err;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)16 << 20);

	live(&n);
	journal = journal_of(&n);
	for (size_t i = 0; i < HF_ARRAY_LEN(lies); i++) {
		HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(HF_JOURNAL_BYTES_MAX);
		char *body, *at, sum[32];

		hf_journal_encode(&journal, &bytes);
		body = strchr(bytes.data, '\n') + 1;
		at = strstr(body, lies[i].from);
		if (at == NULL)
			continue;
		memcpy(at, lies[i].to, strlen(lies[i].to));
		snprintf(sum, sizeof(sum), "%016llx",
			 (unsigned long long)hf_siphash(UINT64_C(0x686f6c6466617374), body,
							strlen(body)));
		memcpy(body - 17, sum, 16);
		assert_code(hf_journal_decode(bytes.data, bytes.len, arena, &again, &err),
			    HF_E_INVALID);
	}
	health_release(&n);
}

/* ---- on disk ---------------------------------------------------------------------------------- */

static void child_saves(const char *dir, struct hf_journal *journal)
{
	struct hf_error err;

	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	(void)raise(SIGSTOP);
	_exit(hf_journal_save(dir, journal, &err) == 0 ? 0 : 1);
}

/* Runs the save in a child, and kills the child at its n-th system call.  False: the child had ended before. */
static bool kill_at(const char *dir, struct hf_journal *journal, int n)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		child_saves(dir, journal);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < n; i++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
	}
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return true;
}

static void killed_at_any_step_the_old_or_the_new_one_stands(void **state)
{
	char dir[] = "/tmp/hf-journal-XXXXXX";
	struct health_node n;
	struct hf_journal journal, again;
	struct hf_error err;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)16 << 20);
	bool was_new = false;
	int steps = 0;

	assert_non_null(mkdtemp(dir));
	live(&n);
	journal = journal_of(&n);
	assert_ok(hf_journal_save(dir, &journal, &err), &err);
	journal.lost = 4;
	while (kill_at(dir, &journal, ++steps)) {
		hf_arena_reset(arena);
		assert_ok(hf_journal_load(dir, arena, &again, &err), &err);
		assert_true(again.lost == 3 || again.lost == 4);
		/* Once it is there it stays. */
		assert_true(!was_new || again.lost == 4);
		was_new = again.lost == 4;
	}
	assert_true(was_new);
	assert_in_range(steps, 10, 1000);
	assert_ok(hf_fs_remove_tree(dir, &err), &err);
	health_release(&n);
}

static void no_journal_and_a_torn_one_are_told_apart(void **state)
{
	char dir[] = "/tmp/hf-journal-XXXXXX", path[64];
	struct hf_journal again;
	struct hf_error err;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)16 << 20);

	assert_non_null(mkdtemp(dir));
	assert_code(hf_journal_load(dir, arena, &again, &err), HF_E_NOT_FOUND);
	snprintf(path, sizeof(path), "%s/" HF_JOURNAL_FILE, dir);
	assert_ok(hf_fs_write_atomic(path, "hold", 4, 0600, &err), &err);
	assert_code(hf_journal_load(dir, arena, &again, &err), HF_E_INVALID);
	assert_non_null(strstr(err.text, "does not begin"));
	assert_ok(hf_fs_remove_tree(dir, &err), &err);
}

static void a_save_that_fails_leaves_the_one_before(void **state)
{
	char dir[] = "/tmp/hf-journal-XXXXXX";
	struct health_node n;
	struct hf_journal journal, again;
	struct hf_error err;
	HF_AUTO_ARENA arena = hf_arena_create((size_t)16 << 20);
	char elsewhere[64];

	assert_non_null(mkdtemp(dir));
	live(&n);
	journal = journal_of(&n);
	assert_ok(hf_journal_save(dir, &journal, &err), &err);
	snprintf(elsewhere, sizeof(elsewhere), "%s/" HF_JOURNAL_FILE "/below", dir);
	assert_true(hf_journal_save(elsewhere, &journal, &err) < 0);
	assert_ok(hf_journal_load(dir, arena, &again, &err), &err);
	assert_ok(hf_fs_remove_tree(dir, &err), &err);
	health_release(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read_again_to_the_byte),
		cmocka_unit_test(the_brain_goes_on_from_what_was_read_as_if_nothing_had_been),
		cmocka_unit_test(a_journal_cut_at_any_byte_is_refused),
		cmocka_unit_test(a_journal_with_any_byte_changed_is_refused),
		cmocka_unit_test(a_sum_that_is_right_does_not_make_nonsense_a_memory),
		cmocka_unit_test(killed_at_any_step_the_old_or_the_new_one_stands),
		cmocka_unit_test(no_journal_and_a_torn_one_are_told_apart),
		cmocka_unit_test(a_save_that_fails_leaves_the_one_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
