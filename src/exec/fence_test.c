/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"
#include "exec/exec_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT "0a1b2c3d-1111-2222-3333-444455556666"
#define NOW_MS 1000000
#define LIMIT_S 50

static char dir[64], socket_path[96], contact[96], fake_proc[96];
static struct hf_fence fence;

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void put(const char *text)
{
	write_file(contact, text, strlen(text));
}

static void open_with(const char *boot_id)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", fake_proc);
	write_file(path, boot_id, strlen(boot_id));
	hf_fence_open(&fence, socket_path, LIMIT_S, fake_proc);
}

static int make(void **state)
{
	char path[192];

	snprintf(dir, sizeof(dir), "/tmp/hf-fence-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(socket_path, sizeof(socket_path), "%s/agent.sock", dir);
	snprintf(contact, sizeof(contact), "%s/contact", dir);
	snprintf(fake_proc, sizeof(fake_proc), "%s/proc", dir);
	assert_int_equal(mkdir(fake_proc, 0755), 0);
	snprintf(path, sizeof(path), "%s/sys", fake_proc);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/sys/kernel", fake_proc);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/sys/kernel/random", fake_proc);
	assert_int_equal(mkdir(path, 0755), 0);
	open_with(BOOT "\n");
	return 0;
}

static int unmake(void **state)
{
	static const char *const names[] = {"contact",
					    "proc/sys/kernel/random/boot_id",
					    "proc/sys/kernel/random",
					    "proc/sys/kernel",
					    "proc/sys",
					    "proc",
					    ""};
	char path[192];

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)remove(path);
	}
	return 0;
}

static void a_contact_holds_until_its_limit(void **state)
{
	put("holdfast-contact/1 boot=" BOOT " at_ms=1000000\n");
	assert_true(hf_fence_holds(&fence, NOW_MS));
	assert_true(hf_fence_holds(&fence, NOW_MS + LIMIT_S * 1000 - 1));
	assert_false(hf_fence_holds(&fence, NOW_MS + LIMIT_S * 1000));
	assert_string_equal(fence.why, "no contact with the control plane for 50 s (limit 50 s)");
	put("holdfast-contact/1 boot=" BOOT " at_ms=1040000\n");
	assert_true(hf_fence_holds(&fence, NOW_MS + LIMIT_S * 1000));
}

/* An agent without fences does not read the Lease, so after the first report with a fence it needs time to find
 * the contact. */
static void a_process_starts_if_the_fence_holds_until_the_next_contact(void **state)
{
	put("holdfast-contact/1 boot=" BOOT " at_ms=1000000\n");
	assert_true(hf_fence_lets_start(&fence, NOW_MS));
	assert_true(hf_fence_lets_start(&fence, NOW_MS + LIMIT_S * 1000 - 12001));
	assert_false(hf_fence_lets_start(&fence, NOW_MS + LIMIT_S * 1000 - 12000));
	assert_string_equal(
		fence.why,
		"the last contact with the control plane is too old to start CMD with a limit of 50 s");
	assert_true(hf_fence_holds(&fence, NOW_MS + LIMIT_S * 1000 - 12000));
	assert_false(hf_fence_lets_start(&fence, NOW_MS + LIMIT_S * 1000));
	assert_string_equal(fence.why, "no contact with the control plane for 50 s (limit 50 s)");
	/* Nothing but what was is believed. */
	assert_false(hf_fence_lets_start(&fence, NOW_MS - 1));
	hf_fence_open(&fence, socket_path, 4, fake_proc);
	assert_true(hf_fence_lets_start(&fence, NOW_MS + 1999));
	assert_false(hf_fence_lets_start(&fence, NOW_MS + 2000));
}

static void without_a_record_there_is_none(void **state)
{
	assert_false(hf_fence_holds(&fence, NOW_MS));
	assert_non_null(strstr(fence.why, "/contact cannot be read (No such file"));
	put("");
	assert_false(hf_fence_holds(&fence, NOW_MS));
	assert_non_null(strstr(fence.why, "holds no time of contact"));
	put("holdfast-contact/1 boot=" BOOT " at_ms=1000000");
	assert_false(hf_fence_holds(&fence, NOW_MS));
}

static void what_is_not_of_this_boots_clock_is_none(void **state)
{
	put("holdfast-contact/1 boot=" BOOT " at_ms=1000001\n");
	assert_false(hf_fence_holds(&fence, NOW_MS));
	assert_non_null(strstr(fence.why, "has a time in the future"));
	put("holdfast-contact/1 boot=0a1b at_ms=1000000\n");
	assert_false(hf_fence_holds(&fence, NOW_MS));
	assert_non_null(strstr(fence.why, "was written in another boot"));
}

static void what_is_no_file_is_not_waited_for(void **state)
{
	assert_int_equal(mkfifo(contact, 0600), 0);
	assert_false(hf_fence_holds(&fence, NOW_MS));
	assert_int_equal(unlink(contact), 0);
	assert_int_equal(mkdir(contact, 0755), 0);
	assert_false(hf_fence_holds(&fence, NOW_MS));
}

static void a_file_without_end_is_none(void **state)
{
	static char large[1 << 20];

	memset(large, '1', sizeof(large));
	write_file(contact, large, sizeof(large));
	assert_false(hf_fence_holds(&fence, NOW_MS));
	assert_non_null(strstr(fence.why, "holds no time of contact"));
}

static void without_the_boots_name_nothing_is_believed(void **state)
{
	put("holdfast-contact/1 boot=" BOOT " at_ms=1000000\n");
	open_with("");
	assert_false(hf_fence_holds(&fence, NOW_MS));
	assert_non_null(strstr(fence.why, "the boot ID of this machine cannot be read"));
	hf_fence_open(&fence, socket_path, LIMIT_S, dir);
	assert_false(hf_fence_holds(&fence, NOW_MS));
}

static void the_record_is_beside_the_socket(void **state)
{
	char path[300];

	hf_fence_open(&fence, "/run/holdfast/agent.sock", LIMIT_S, fake_proc);
	assert_string_equal(fence.path, "/run/holdfast/contact");
	hf_fence_open(&fence, "agent.sock", LIMIT_S, fake_proc);
	assert_string_equal(fence.path, "contact");
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	hf_fence_open(&fence, path, LIMIT_S, fake_proc);
	assert_string_equal(fence.path, "");
	assert_false(hf_fence_holds(&fence, NOW_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_contact_holds_until_its_limit, make, unmake),
		cmocka_unit_test_setup_teardown(
			a_process_starts_if_the_fence_holds_until_the_next_contact, make, unmake),
		cmocka_unit_test_setup_teardown(without_a_record_there_is_none, make, unmake),
		cmocka_unit_test_setup_teardown(what_is_not_of_this_boots_clock_is_none, make,
						unmake),
		cmocka_unit_test_setup_teardown(what_is_no_file_is_not_waited_for, make, unmake),
		cmocka_unit_test_setup_teardown(a_file_without_end_is_none, make, unmake),
		cmocka_unit_test_setup_teardown(without_the_boots_name_nothing_is_believed, make,
						unmake),
		cmocka_unit_test_setup_teardown(the_record_is_beside_the_socket, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
