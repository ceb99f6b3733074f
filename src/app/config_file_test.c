/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/config_file.h"

#include "harness/test.h"

#include "base/fs.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];
static struct hf_loop *loop;
static struct hf_config_file *file;
static unsigned changes, rejections, recoveries;
static char last_why[HF_ERROR_TEXT_MAX];

static void write_file(const char *text)
{
	struct hf_error err;

	assert_ok(hf_fs_write_atomic(path, text, strlen(text), 0644, &err), &err);
}

static void on_changed(void *arg)
{
	changes++;
}

static void on_rejected(void *arg, const char *why)
{
	if (why == NULL) {
		recoveries++;
		return;
	}
	rejections++;
	snprintf(last_why, sizeof(last_why), "%s", why);
}

static int read_file(bool may_be_missing, struct hf_error *err)
{
	const struct hf_config_file_options options = {
		.path = path,
		.may_be_missing = may_be_missing,
		.changed = on_changed,
		.rejected = on_rejected,
	};

	return hf_config_file_read(&options, &file, err);
}

static void begin(bool may_be_missing)
{
	struct hf_error err;

	assert_ok(read_file(may_be_missing, &err), &err);
	hf_config_file_watch(file, loop);
}

static void pass_interval(void)
{
	hf_loop_run_until(loop, hf_loop_mono(loop) + HF_CONFIG_FILE_INTERVAL);
}

static int setup(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/holdfast-config-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/operator.yaml", folder);
	loop = hf_loop_create_virtual(0);
	file = NULL;
	changes = rejections = recoveries = 0;
	last_why[0] = '\0';
	return 0;
}

static int teardown(void **state)
{
	hf_config_file_destroy(file);
	hf_loop_destroy(loop);
	(void)unlink(path);
	assert_int_equal(rmdir(folder), 0);
	return 0;
}

static void the_content_is_read_and_an_equal_file_is_no_change(void **state)
{
	write_file("recovery:\n  restartScope: Job\n");
	begin(false);
	assert_string_equal(hf_config_file_recovery(file)->restart_scope, "Job");
	pass_interval();
	write_file("recovery:\n  restartScope: Job\n");
	pass_interval();
	assert_int_equal(changes, 0);
	assert_int_equal(rejections, 0);
}

static void a_change_is_reported_once(void **state)
{
	write_file("recovery:\n  restartScope: Job\n");
	begin(false);
	write_file("recovery:\n  restartScope: Replica\n");
	assert_int_equal(changes, 0);
	pass_interval();
	assert_int_equal(changes, 1);
	write_file("recovery:\n  settleSeconds: 1\n");
	pass_interval();
	pass_interval();
	assert_int_equal(changes, 1);
}

static void an_invalid_file_is_rejected_until_it_is_valid(void **state)
{
	write_file("recovery:\n  restartScope: Job\n");
	begin(false);
	write_file("recovery:\n  restartScope: Some\n");
	pass_interval();
	pass_interval();
	assert_int_equal(rejections, 1);
	assert_non_null(strstr(last_why, "operator.yaml:2:3: recovery.restartScope"));
	assert_true(hf_config_file_is_rejected(file));
	assert_string_equal(hf_config_file_recovery(file)->restart_scope, "Job");
	write_file("recovery: [");
	pass_interval();
	assert_int_equal(rejections, 2);
	write_file("recovery:\n  restartScope: Job\n");
	pass_interval();
	assert_int_equal(recoveries, 1);
	assert_false(hf_config_file_is_rejected(file));
	assert_int_equal(changes, 0);
	write_file("recovery:\n  restartScope: Some\n");
	pass_interval();
	write_file("recovery:\n  restartScope: Replica\n");
	pass_interval();
	assert_int_equal(changes, 1);
}

static void a_default_file_may_appear_and_disappear(void **state)
{
	begin(true);
	assert_null(hf_config_file_recovery(file)->restart_scope);
	pass_interval();
	assert_int_equal(changes, 0);
	write_file("recovery:\n  restartScope: Job\n");
	pass_interval();
	assert_int_equal(changes, 1);
	hf_config_file_destroy(file);
	begin(true);
	assert_string_equal(hf_config_file_recovery(file)->restart_scope, "Job");
	assert_int_equal(unlink(path), 0);
	pass_interval();
	assert_int_equal(changes, 2);
}

static void a_given_file_must_be_there_and_its_loss_changes_nothing(void **state)
{
	struct hf_error err;

	assert_code(read_file(false, &err), HF_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "--config"));
	write_file("recovery:\n  restartScope: Job\n");
	begin(false);
	assert_int_equal(unlink(path), 0);
	pass_interval();
	assert_int_equal(changes, 0);
	assert_int_equal(rejections, 1);
	assert_string_equal(hf_config_file_recovery(file)->restart_scope, "Job");
}

static void a_pipe_is_refused_and_never_waited_for(void **state)
{
	struct hf_error err;

	assert_int_equal(mkfifo(path, 0600), 0);
	assert_code(read_file(false, &err), HF_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_content_is_read_and_an_equal_file_is_no_change,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_change_is_reported_once, setup, teardown),
		cmocka_unit_test_setup_teardown(an_invalid_file_is_rejected_until_it_is_valid,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_default_file_may_appear_and_disappear, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_given_file_must_be_there_and_its_loss_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pipe_is_refused_and_never_waited_for, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("config_file", tests, NULL, NULL);
}
