/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/remedy_actor.h"

#include "base/mem.h"
#include "base/str.h"
#include "ctl/webhook.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Rung external by a webhook: what is called and when, what becomes of the answer, and what a death of the operator
 * leaves. The double of the webhook answers when the test says so. The node of each test is n003.
 */

#define NODE 3
#define NAME "n003"
#define ACT NAME "-1"
#define WEBHOOK "'external':{'webhook':{'url':'https://power.example/cycle','attempts':2}}"
#define POLICY                                                                                     \
	"{'mode':'remediate','mend':{'rungs':['external'],'maxConcurrent':2," WEBHOOK "}," WIDE "}"

struct hf_webhook_call {
	struct hook *hook;
	hf_webhook_fn done;
	void *done_arg;
};

struct hook {
	struct hf_webhooks webhooks;
	struct hf_webhook_call *call; /* under way; NULL: none */
	struct hf_doc *body;          /* of the last call */
	char url[64], key[64];
	hf_time timeout;
	unsigned attempts;
	unsigned calls, cancels;
	struct ra *actors;
};

static struct hf_webhook_call *begin_call(void *arg, const struct hf_webhook *webhook,
					  hf_webhook_fn done, void *done_arg)
{
	struct hook *hook = arg;
	struct hf_webhook_call *call = hf_xcalloc(1, sizeof(*call));

	*call = (struct hf_webhook_call){.hook = hook, .done = done, .done_arg = done_arg};
	hook->calls++;
	hook->call = call;
	hf_doc_unref(hook->body);
	hook->body = hf_doc_from_text(webhook->body, strlen(webhook->body));
	snprintf(hook->url, sizeof(hook->url), "%s", webhook->url);
	snprintf(hook->key, sizeof(hook->key), "%s", webhook->key);
	hook->timeout = webhook->timeout;
	hook->attempts = webhook->attempts;
	return call;
}

static void cancel_call(struct hf_webhook_call *call)
{
	struct hook *hook = call->hook;

	hook->cancels++;
	if (hook->call == call)
		hook->call = NULL;
	free(call);
}

/* The call under way ends. */
static void answer(struct hook *hook, int code, const char *message)
{
	const struct hf_webhook_result result = {.code = code, .message = message};
	struct hf_webhook_call *call = hook->call;

	assert_non_null(call);
	hook->call = NULL;
	call->done(call->done_arg, &result);
	free(call);
}

static void end(void *arg)
{
	struct hook *hook = arg;

	assert_null(hook->call); /* the end of the operator has cancelled it */
	hf_doc_unref(hook->body);
	free(hook);
}

static struct hook *create(struct rw *w)
{
	struct hook *hook = hf_xcalloc(1, sizeof(*hook));

	hook->webhooks =
		(struct hf_webhooks){.arg = hook, .call = begin_call, .cancel = cancel_call};
	rw_at_end(w, end, hook);
	hook->actors = ra_create(w);
	w->webhooks = &hook->webhooks;
	return hook;
}

/* The webhook of node n003 is being called. */
static struct hook *begin(struct rw *w)
{
	struct hook *hook = create(w);

	rw_begin(w, 10, POLICY);
	rw_patch_node(w, NODE, "{'spec':{'providerID':'fake:///n003'}}");
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_int_equal(hook->calls, 1);
	assert_non_null(hook->call);
	assert_string_equal(ra_phase(hook->actors, NODE), "Acting");
	return hook;
}

static const char *body_text(const struct hook *hook, const char *key)
{
	return hf_str_or(hf_json_path_str(hf_doc_json(hook->body), key, NULL), "(none)");
}

static void the_webhook_learns_which_node_and_why(void **state)
{
	struct rw *w = *state;
	struct hook *hook = begin(w);
	const struct hf_json *body = hf_doc_json(hook->body);

	assert_string_equal(hook->url, "https://power.example/cycle");
	assert_string_equal(hook->key, hf_json_path_str(rw_get(w, &hf_remediations, NULL, ACT),
							"metadata", "uid", NULL));
	assert_int_equal(hook->timeout, 10 * HF_SECOND);
	assert_int_equal(hook->attempts, 2);
	assert_string_equal(body_text(hook, "remediation"), ACT);
	assert_string_equal(body_text(hook, "uid"), hook->key);
	assert_string_equal(body_text(hook, "policy"), "p");
	assert_string_equal(body_text(hook, "node"), NAME);
	assert_string_equal(body_text(hook, "providerID"), "fake:///n003");
	assert_string_equal(body_text(hook, "bootID"), "b-" NAME);
	assert_int_equal(hf_json_i64(hf_json_get(body, "attempt"), 0), 1);
	assert_string_equal(hf_json_path_str(body, "fault", "class", NULL), "gpu-reset");
	assert_true(hf_str_has_suffix(body_text(hook, "proofDue"), "Z"));
	answer(hook, 0, "HTTP 202");
}

static void the_node_proves_the_act_and_not_the_answer(void **state)
{
	struct rw *w = *state;
	struct hook *hook = begin(w);

	answer(hook, 0, "HTTP 202");
	rw_run(w, HF_SECOND / 10);
	assert_string_equal(ra_phase(hook->actors, NODE), "Verifying");
	assert_string_equal(hf_json_path_str(rw_get(w, &hf_remediations, NULL, ACT), "status",
					     "act", "message", NULL),
			    "HTTP 202");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(hook->actors, NODE), "Verifying");
	rw_say(w, NODE, RW_WELL);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(hook->actors, NODE), "Succeeded");
	assert_false(rw_tainted(w, NODE));
	assert_int_equal(hook->calls, 1);
}

/* The machine was replaced while the webhook was still being called. */
static void a_call_ends_with_the_node(void **state)
{
	struct rw *w = *state;
	struct hook *hook = begin(w);

	rw_delete(w, &hf_nodes, NAME);
	rw_run(w, HF_MINUTE);
	assert_string_equal(ra_phase(hook->actors, NODE), "Succeeded");
	assert_null(hook->call);
	assert_int_equal(hook->cancels, 1);
	assert_int_equal(hook->calls, 1);
}

static void a_refused_call_is_a_task_of_a_person(void **state)
{
	struct rw *w = *state;
	struct hook *hook = begin(w);

	answer(hook, HF_E_UNAVAILABLE, "HTTP 403");
	rw_run(w, HF_MINUTE);
	rw_expect_message(w, ACT, "HTTP 403");
	assert_string_equal(
		hf_json_path_str(rw_get(w, &hf_remediations, NULL, ACT), "status", "phase", NULL),
		"Failed");
	assert_string_equal(rw_rung(w, NAME "-2"), "person");
	rw_run(w, HF_HOUR);
	assert_int_equal(hook->calls, 1);
}

/* The server may perform the call, so the act has not failed yet. */
static void a_call_without_an_answer_is_proved(void **state)
{
	struct rw *w = *state;
	struct hook *hook = begin(w);

	answer(hook, HF_E_TIMEOUT, "no answer within 10 s");
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(hook->actors, NODE), "Verifying");
	rw_say(w, NODE, RW_WELL);
	rw_run(w, 10 * HF_MINUTE);
	assert_string_equal(ra_phase(hook->actors, NODE), "Succeeded");
}

/* Nobody knows whether the dead operator's call was heard: it is not repeated, and the node shows it. */
static void a_call_is_not_repeated_by_the_next_leader(void **state)
{
	struct rw *w = *state;
	struct hook *hook = begin(w);

	rw_stop(w);
	assert_int_equal(hook->cancels, 1);
	rw_start(w);
	rw_run(w, 20 * HF_MINUTE);
	assert_string_equal(ra_phase(hook->actors, NODE), "Verifying");
	assert_int_equal(hook->calls, 1);
	rw_run(w, HF_HOUR);
	rw_expect_message(w, ACT, "no proof within 1800 s of the approval");
	assert_string_equal(rw_rung(w, NAME "-2"), "person");
	assert_int_equal(hook->calls, 1);
}

/* A server that does not answer keeps no other act waiting. */
static void other_acts_go_on_during_a_call(void **state)
{
	struct rw *w = *state;
	struct hook *hook = begin(w);
	struct hf_webhook_call *first = hook->call;

	rw_say(w, 5, RW_RESET);
	rw_run(w, HF_MINUTE);
	assert_int_equal(hook->calls, 2);
	assert_string_equal(body_text(hook, "node"), "n005");
	answer(hook, 0, "HTTP 200");
	rw_run(w, HF_SECOND);
	assert_string_equal(ra_phase(hook->actors, 5), "Verifying");
	assert_string_equal(ra_phase(hook->actors, NODE), "Acting");
	hook->call = first;
	answer(hook, 0, "HTTP 200");
	rw_run(w, HF_SECOND);
	assert_string_equal(ra_phase(hook->actors, NODE), "Verifying");
}

static void nothing_is_called_without_the_mode_or_for_a_dry_run(void **state)
{
	struct rw *w = *state;
	struct hook *hook = create(w);

	w->people_ask = true;
	rw_begin(w, 10, "{'mode':'observe','mend':{'rungs':['external']," WEBHOOK "}," WIDE "}");
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_HOUR);
	ra_request(hook->actors, NODE, 1, "external", ",'dryRun':true,'policy':'p'");
	rw_run(w, HF_HOUR);
	assert_int_equal(hook->calls, 0);
}

/* A hold stops the act before its call. */
static void a_held_node_is_not_called_for(void **state)
{
	struct rw *w = *state;
	struct hook *hook = create(w);

	rw_begin(w, 10, POLICY);
	rw_patch_node(w, NODE, "{'metadata':{'annotations':{'holdfast.dev/hold':'true'}}}");
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_HOUR);
	assert_int_equal(hook->calls, 0);
	rw_patch_node(w, NODE, "{'metadata':{'annotations':{'holdfast.dev/hold':null}}}");
	rw_run(w, HF_MINUTE);
	assert_int_equal(hook->calls, 1);
	answer(hook, 0, "HTTP 200");
}

/* The program calls no webhooks, such as that of an older version. */
static void an_operator_without_webhooks_says_so(void **state)
{
	struct rw *w = *state;
	struct hook *hook = create(w);

	w->webhooks = NULL;
	rw_begin(w, 10, POLICY);
	rw_say(w, NODE, RW_RESET);
	rw_run(w, HF_MINUTE);
	rw_expect_message(w, ACT, "this operator calls no webhooks");
	assert_string_equal(ra_phase(hook->actors, NODE), "Pending");
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)
	const struct CMUnitTest tests[] = {
		T(the_webhook_learns_which_node_and_why),
		T(the_node_proves_the_act_and_not_the_answer),
		T(a_call_ends_with_the_node),
		T(a_refused_call_is_a_task_of_a_person),
		T(a_call_without_an_answer_is_proved),
		T(a_call_is_not_repeated_by_the_next_leader),
		T(other_acts_go_on_during_a_call),
		T(nothing_is_called_without_the_mode_or_for_a_dry_run),
		T(a_held_node_is_not_called_for),
		T(an_operator_without_webhooks_says_so),
	};

	rw_choose_tests(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
