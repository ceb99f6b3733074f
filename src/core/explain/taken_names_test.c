/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/explain/explain_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

static struct brain b;

static const struct hf_condition *taken(void)
{
	return hf_status_condition(&b.view.status, HF_COND_NAME_TAKEN);
}

static void begin(void)
{
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	brain_pod(&b, "demo-hand-0")->pod.owned = false;
}

static void a_name_that_is_held_is_told_once_and_shown_until_it_is_free(void **state)
{
	const struct hf_plan_event *event;

	(void)state;
	begin();
	brain_step(&b);
	event = brain_event(&b, "FailedCreatePod");
	assert_non_null(event);
	assert_true(event->warning);
	assert_string_equal(event->message, "Error creating: the name of hand-0 is taken by a pod "
					    "of another owner");
	brain_perform_all(&b);
	assert_string_equal(taken()->status, "True");
	assert_string_equal(taken()->reason, "PodOfAnotherOwner");
	brain_step(&b);
	assert_null(brain_event(&b, "FailedCreatePod"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "the name of hand-0 is taken by a pod"));
	brain_gone(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_string_equal(taken()->status, "False");
	assert_non_null(brain_pod(&b, "demo-hand-0"));
	brain_release(&b);
}

static void what_leaves_is_no_news(void **state)
{
	(void)state;
	begin();
	brain_terminate(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_null(taken());
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "the name of hand-0 is taken by a pod"));
	brain_release(&b);
}

/* A job was deleted and created again under its name, and a pod of the earlier job is on a dead
 * node. */
static void what_should_have_left_is_told_and_what_to_do(void **state)
{
	struct brain_pod *pod;

	(void)state;
	begin();
	brain_terminate(&b, "demo-hand-0");
	pod = brain_pod(&b, "demo-hand-0");
	b.now = pod->pod.deletion_time + 29 * HF_SECOND;
	brain_quiet(&b);
	assert_null(taken());
	assert_int_equal(b.plan.wake_at, pod->pod.deletion_time + 30 * HF_SECOND);
	brain_after(&b, 1);
	brain_step(&b);
	assert_non_null(brain_event(&b, "FailedCreatePod"));
	assert_int_equal(hf_plan_actions(&b.plan), 0);
	brain_quiet(&b);
	assert_string_equal(taken()->status, "True");
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "should have been gone since"));
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "delete the pod by force"));
	b.blind = true;
	brain_step(&b);
	assert_true(brain_says(&b, HF_TOPIC_NEXT, "delete the pod by force"));
	b.blind = false;
	brain_gone(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_string_equal(taken()->status, "False");
	brain_release(&b);
}

/* A user removed the pod's owner reference.  The pod still runs, so nothing is charged. */
static void a_pod_whose_owner_was_taken_off_has_not_vanished(void **state)
{
	(void)state;
	begin();
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.incident.id, 0);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 0);
	assert_string_equal(taken()->status, "True");
	assert_true(brain_says(&b, HF_TOPIC_NEXT,
			       "as soon as pod demo-hand-0 is gone: delete that pod"));
	/* The pod disappears without a report of how it ended: that is charged once, to
	 * infrastructure. */
	brain_gone(&b, "demo-hand-0");
	brain_quiet(&b);
	assert_int_equal(b.view.status.ledger.restarts[HF_BUDGET_INFRASTRUCTURE], 1);
	brain_release(&b);
}

static void a_service_of_others_is_told_too_and_a_pod_outranks_it(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 2);
	brain_run_up(&b);
	for (size_t i = 0; i < b.services_len; i++)
		if (hf_streq(b.services[i].name, "demo-hand-1"))
			b.services[i].service.owned = false;
	brain_step(&b);
	assert_non_null(brain_event(&b, "FailedCreateService"));
	assert_true(brain_says(&b, HF_TOPIC_BLOCKED, "the name of hand-1 is taken by a service"));
	brain_release(&b);
	begin();
	for (size_t i = 0; i < b.services_len; i++)
		b.services[i].service.owned = false;
	brain_step(&b);
	assert_non_null(brain_event(&b, "FailedCreatePod"));
	assert_null(brain_event(&b, "FailedCreateService"));
	brain_release(&b);
}

static void a_job_that_is_suspended_wants_no_names(void **state)
{
	(void)state;
	begin();
	brain_quiet(&b);
	assert_string_equal(taken()->status, "True");
	b.view.run_policy.suspend = HF_SOME_BOOL(true);
	brain_quiet(&b);
	assert_string_equal(taken()->status, "False");
	brain_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_that_is_held_is_told_once_and_shown_until_it_is_free),
		cmocka_unit_test(what_leaves_is_no_news),
		cmocka_unit_test(what_should_have_left_is_told_and_what_to_do),
		cmocka_unit_test(a_pod_whose_owner_was_taken_off_has_not_vanished),
		cmocka_unit_test(a_service_of_others_is_told_too_and_a_pod_outranks_it),
		cmocka_unit_test(a_job_that_is_suspended_wants_no_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
