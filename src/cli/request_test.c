/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/request.h"

#include "base/mem.h"
#include "harness/cli_world.h"
#include "harness/fake_store.h"
#include "harness/test.h"
#include "store/resource.h"

#include <string.h>

static void a_job_is_found_by_name_kind_and_age(void **state)
{
	struct cli_world *w = *state;

	cli_world_run(w, "describe", "@latest", NULL);
	assert_said(w, 1, "", "holdfast: @latest: there are no jobs in namespace 'default'\n");
	cli_world_job(w, "z", 1, "Running");
	cli_world_job(w, "a", 1, "Running");
	cli_world_run(w, "wait", "@latest", "--for=running", NULL);
	assert_said(w, 0, "z is Running\n",
		    /* all jobs were created in the same second, so the last by name counts as the
		     * newest */
		    "");
	cli_world_run(w, "wait", "PyTorchJob/a", "--for=running", NULL);
	assert_said(w, 0, "a is Running\n", "");
	cli_world_run(w, "wait", "pytorchjob", "a", "--for=running", NULL);
	assert_said(w, 0, "a is Running\n", "");
	cli_world_run(w, "wait", "job", "a", "--for=running", NULL);
	assert_said(w, 0, "a is Running\n", "");
	cli_world_run(w, "wait", "pod", "a", "--for=running", NULL);
	assert_int_equal(w->code, HF_EXIT_USAGE);
	cli_world_run(w, "wait", "pytorchjbo/a", "--for=running", NULL);
	assert_said(w, 1, "",
		    "holdfast: unknown kind of job 'pytorchjbo': did you mean 'pytorchjob'?\n");
	cli_world_run(w, "wait", "pods/a", "--for=running", NULL);
	assert_said(
		w, 1, "",
		"holdfast: unknown kind of job 'pods'; 'holdfast version -o json' lists the kinds\n");
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

struct liar {
	struct fake_store *store;
	struct hf_timer *timer;
	int pages;
};

static void answer_with_the_same_token(void *arg)
{
	struct liar *liar = arg;
	struct hf_doc *items[] = {fake_object("a", "u1", "5", "one")};

	liar->pages++;
	fake_answer_list(fake_next(liar->store), "10", "abc", items, 1);
	hf_timer_arm(liar->timer, HF_MS);
}

static void a_list_whose_token_leads_nowhere_is_an_error(void **state)
{
	struct hf_loop *loop = hf_loop_create_virtual(0);
	struct liar liar = {.store = fake_store_create()};
	struct hf_cli cli = {.loop = loop, .store = &liar.store->base};
	const struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_pods};
	struct hf_cli_reply reply = {.n_items = 0};
	struct hf_error err;

	(void)state;
	liar.timer = hf_timer_create(loop, answer_with_the_same_token, &liar);
	hf_timer_arm(liar.timer, HF_MS);
	assert_int_equal(hf_cli_request(&cli, &request, &reply, &err), HF_E_BAD_REQUEST);
	assert_string_equal(err.text, "the server's list does not end: its continue token leads "
				      "to the same page again");
	assert_int_equal(liar.pages, 2);
	hf_timer_destroy(liar.timer);
	fake_store_destroy(liar.store);
	hf_loop_destroy(loop);
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
		cmocka_unit_test(a_list_whose_token_leads_nowhere_is_an_error),
		cmocka_unit_test_setup_teardown(lists_are_followed_page_by_page, cli_world_setup,
						cli_world_teardown),
		cmocka_unit_test_setup_teardown(without_a_server_the_code_is_3, cli_world_setup,
						cli_world_teardown),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
