/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

static struct brain b;

static void begin(const char *exec, bool command)
{
	brain_init(&b, &brain_kind, 1, 2);
	b.settings.exec_image = "holdfast:1";
	b.view.run_policy.recovery.exec = exec;
	b.container.has_command = command;
}

static void the_program_is_copied_mounted_and_put_before_the_command(void **state)
{
	begin("Inject", true);
	brain_step(&b);
	assert_string_equal(brain_edit(&b, "demo-hand-1", HF_EDIT_MOUNT, "holdfast-exec"),
			    "/holdfast/bin");
	assert_string_equal(brain_edit(&b, "demo-hand-1", HF_EDIT_MOUNT, "holdfast-agent"),
			    "/holdfast/run");
	assert_string_equal(brain_edit(&b, "demo-hand-1", HF_EDIT_VOLUME_HOST, "holdfast-agent"),
			    "/run/holdfast");
	assert_string_equal(brain_edit(&b, "demo-boss-0", HF_EDIT_ENV, "HOLDFAST_AGENT_SOCKET"),
			    "/holdfast/run/agent.sock");
	brain_release(&b);
}

static void a_job_that_does_not_ask_has_the_pods_as_before(void **state)
{
	begin(NULL, true);
	brain_step(&b);
	assert_null(brain_edit(&b, "demo-hand-1", HF_EDIT_MOUNT, "holdfast-exec"));
	assert_null(brain_edit(&b, "demo-hand-1", HF_EDIT_ENV, "HOLDFAST_AGENT_SOCKET"));
	brain_release(&b);
}

/* A job that has begun is not held by validation. */
static void a_command_that_is_taken_out_later_blocks_the_next_pod(void **state)
{
	char *text;

	begin("Inject", true);
	brain_run_up(&b);
	b.container.has_command = false;
	brain_exit(&b, "demo-hand-0", 1);
	brain_quiet(&b);
	text = brain_text(&b);
	assert_non_null(strstr(text, "recovery.exec is Inject, and container 0 of spec."));
	free(text);
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_is_copied_mounted_and_put_before_the_command),
		cmocka_unit_test(a_job_that_does_not_ask_has_the_pods_as_before),
		cmocka_unit_test(a_command_that_is_taken_out_later_blocks_the_next_pod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
