/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/request.h"

#include "base/mem.h"
#include "harness/cli_world.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

static void a_job_is_found_by_name_kind_and_age(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "describe", "@latest", NULL);
	assert_said(w, 1, "", "holdfast: no job at all in namespace 'default'\n");
	cli_world_job(w, "z", 1, "Running");
	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "wait", "@latest", "--for=running", NULL);
	assert_said(w, 0, "z is Running\n", ""); /* of one second: the last by name */
	cli_world_run(w, "wait", "PyTorchJob/a", "--for=running", NULL);
	assert_said(w, 0, "a is Running\n", "");
	cli_world_run(w, "wait", "pods/a", "--for=running", NULL);
	assert_said(w, 1, "", "holdfast: unknown kind of job 'pods'\n");
	cli_world_run(w, "wait", "pytorchjob/nosuch", "--for=running", NULL);
	assert_int_equal(w->code, HF_EXIT_FAILED);
	cli_world_run(w, "wait", "pytorchjob/", "--for=running", NULL);
	assert_int_equal(w->code, HF_EXIT_FAILED);
}

static void lists_are_followed_page_by_page(void **state)
{
	struct cli_world *w = *state;
	size_t lines = 0;

	for (int i = 0; i < 501; i++) { /* one more than a page */
		HF_AUTOFREE char *text = hf_xasprintf(
			"{'apiVersion':'v1','kind':'Node','metadata':{'name':'n%d'}}", i);
		cli_world_put(w, text);
	}
	cli_world_run(w, "get", "nodes", "-o", "name", NULL);
	for (const char *c = w->out; *c != '\0'; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 501);
}

static void without_a_server_the_code_is_3(void **state)
{
	static const char *const verbs[] = {"get",  "describe", "why",    "logs",    "events",
					    "wait", "suspend",  "resume", "restart", "delete"};
	static const int codes[] = {HF_E_UNAVAILABLE, HF_E_UNAUTHORIZED, HF_E_NOT_FOUND,
				    HF_E_INVALID};
	struct cli_world *w = *state;

	for (size_t i = 0; i < HF_ARRAY_LEN(verbs); i++) {
		for (size_t k = 0; k < HF_ARRAY_LEN(codes); k++) {
			w->connect_code = codes[k];
			cli_world_run(w, verbs[i], "x", NULL);
			assert_said(w, HF_EXIT_UNREACHABLE, "", "holdfast: cannot connect\n");
		}
	}
	w->connect_code = HF_E_INTERNAL;
	cli_world_run(w, "get", NULL);
	assert_int_equal(w->code, HF_EXIT_INTERNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_job_is_found_by_name_kind_and_age,
						cli_world_setup, cli_world_teardown),
		cmocka_unit_test_setup_teardown(lists_are_followed_page_by_page, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(without_a_server_the_code_is_3, cli_world_setup,
						cli_world_teardown),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
