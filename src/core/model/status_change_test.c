/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "core/model/model_internal.h"
#include "core/model/ledger_text_internal.h"

#include "harness/brain.h"
#include "harness/test.h"

static struct hf_condition condition = {
	.type = "A", .status = "True", .reason = "R", .message = "m"};

static struct hf_status plain(void)
{
	struct hf_status status = {.conditions = &condition, .conditions_len = 1};

	status.ledger.present = true;
	status.ledger.records_len = 1;
	return status;
}

/* "same", "progress" or "urgent" */
static const char *compare(const struct hf_status *a, const struct hf_status *b)
{
	bool urgent;
	bool differs = hf_status_differs(a, b, &urgent);

	return urgent ? "urgent" : differs ? "progress" : "same";
}

static void absent_and_empty_texts_are_the_same(void **state)
{
	struct hf_status a = plain(), b = plain();

	(void)state;
	assert_string_equal(compare(&a, &b), "same");
	b.ledger.roles[0].attempts = "";
	b.ledger.restart_handled = "";
	b.replicas[0].selector = "";
	assert_string_equal(compare(&a, &b), "same");
}

static void progress_may_wait(void **state)
{
	struct hf_condition own, told;
	struct hf_status a = plain(), b;

	(void)state;
	b = plain();
	b.replicas[1].active = 3;
	assert_string_equal(compare(&a, &b), "progress");
	b = plain();
	b.ledger.roles[0].created = "0-3";
	assert_string_equal(compare(&a, &b), "progress");
	b = plain();
	b.ledger.phase = HF_PHASE_RUNNING;
	assert_string_equal(compare(&a, &b), "progress");
	b = plain();
	b.ledger.records[0].running_at = 5;
	assert_string_equal(compare(&a, &b), "progress");
	b = plain();
	b.ledger.productive_seconds = 5;
	assert_string_equal(compare(&a, &b), "progress");
	/* Only the message of a condition of Holdfast changes. */
	own = told = (struct hf_condition){.type = HF_COND_POD_STUCK,
					   .status = "True",
					   .reason = "Kubelet",
					   .message = "2 pods",
					   .last_transition = 5};
	told.message = "1 pod";
	told.last_update = 9;
	b = plain();
	a.conditions = &own;
	b.conditions = &told;
	a.conditions_len = b.conditions_len = 1;
	assert_string_equal(compare(&a, &b), "progress");
	told.reason = "Finalizers";
	assert_string_equal(compare(&a, &b), "urgent");
	a = plain();
	a.ledger.not_before = 7;
	b = plain();
	b.ledger.not_before = HF_TIME_NONE; /* a delay that is over */
	assert_string_equal(compare(&a, &b), "progress");
}

static void decisions_may_not(void **state)
{
	struct hf_condition other = condition;
	struct hf_status a = plain(), b;

	(void)state;
	other.message = "another";
	b = plain();
	b.conditions = &other;
	assert_string_equal(compare(&a, &b), "urgent");
#define CHANGED(field, value)                                                                      \
	do {                                                                                       \
		b = plain();                                                                       \
		b.field = (value);                                                                 \
		assert_string_equal(compare(&a, &b), "urgent");                                    \
	} while (0)
	CHANGED(conditions_len, 0);
	CHANGED(start_time, 1);
	CHANGED(completion_time, 1);
	CHANGED(ledger.present, false);
	CHANGED(ledger.generation, 2);
	CHANGED(ledger.incident.id, 2);
	CHANGED(ledger.incident.charged, HF_BUDGET_NONE);
	CHANGED(ledger.incident.cause, HF_CLASS_DEVICE);
	CHANGED(ledger.not_before, 8);
	CHANGED(ledger.active_seconds, 8);
	CHANGED(ledger.restarts[HF_BUDGET_DEVICE], 1);
	CHANGED(ledger.streak[HF_BUDGET_APPLICATION], 1);
	CHANGED(ledger.in_place_wait_seconds, 60);
	CHANGED(ledger.in_place_grace_seconds, 5);
	CHANGED(ledger.in_place_save_seconds, 5);
	CHANGED(ledger.roles[0].attempts, "1:1");
	CHANGED(ledger.roles[0].succeeded, "1");
	CHANGED(ledger.roles[0].seen, "1:1");
	CHANGED(ledger.roles[0].covered, "1");
	CHANGED(ledger.roles[0].init_seen, "0:1");
	CHANGED(ledger.records_len, 0);
	CHANGED(ledger.records[0].decided_at, 1);
	CHANGED(ledger.restart_handled, "t");
	CHANGED(ledger.verdict.reason, "ExitCode");
#undef CHANGED
}

static void a_ledger_that_is_kept_is_no_news(void **state)
{
	struct hf_status a = plain(), b = plain();

	(void)state;
	b.ledger.kept = true;
	b.ledger.generation = 7;
	b.ledger.verdict.message = "no reason beside it";
	b.ledger.roles[0].created = "0-3";
	assert_string_equal(compare(&a, &b), "same");
	b.ledger.present = false;
	assert_string_equal(compare(&a, &b), "urgent");
}

/* How urgent a change of one condition is; `was` NULL: the condition is new. */
static const char *becomes(const char *type, const char *was, const char *is)
{
	struct hf_condition before[2] = {condition, {.type = type, .status = was}};
	struct hf_condition now[2] = {condition, {.type = type, .status = is}};
	struct hf_status a = plain(), b = plain();

	a.conditions = before;
	a.conditions_len = was != NULL ? 2 : 1;
	b.conditions = now;
	b.conditions_len = is != NULL ? 2 : 1;
	return compare(&a, &b);
}

static void running_true_is_progress_and_running_false_is_a_decision(void **state)
{
	(void)state;
	assert_string_equal(becomes("Created", NULL, "True"), "progress");
	assert_string_equal(becomes("Running", NULL, "True"), "progress");
	assert_string_equal(becomes("Running", "False", "True"), "progress");
	assert_string_equal(becomes("Restarting", "True", "False"), "progress");
	assert_string_equal(becomes("Running", "True", "False"), "urgent");
	assert_string_equal(becomes("Restarting", NULL, "True"), "urgent");
	assert_string_equal(becomes("Suspended", "True", "False"), "urgent");
	assert_string_equal(becomes("Succeeded", NULL, "True"), "urgent");
	assert_string_equal(becomes("Running", "True", NULL), "urgent");
}

static void a_job_that_begins_may_wait_unless_something_was_decided(void **state)
{
	struct hf_status a = {.start_time = HF_TIME_NONE}, b = {.start_time = 5};

	(void)state;
	hf_ledger_blank(&b.ledger);
	b.ledger.generation = 1;
	assert_string_equal(compare(&a, &b), "progress");
	b.ledger.roles[0].created = "0-3";
	assert_string_equal(compare(&a, &b), "progress");
	b.ledger.roles[0].attempts = "0:1";
	assert_string_equal(compare(&a, &b), "urgent");
	b.ledger.roles[0].attempts = NULL;
	/* `hold` is urgent, because agents stop and start processes by it. */
	b.ledger.roles[0].hold = "0-3";
	assert_string_equal(compare(&a, &b), "urgent");
	b.ledger.roles[0].hold = NULL;
	b.ledger.in_place_at = 5;
	assert_string_equal(compare(&a, &b), "urgent");
	b.ledger.in_place_at = HF_TIME_NONE;
	b.ledger.generation = 0; /* pods that another operator made */
	assert_string_equal(compare(&a, &b), "urgent");
	b.ledger.generation = 1;
	a.conditions = &condition; /* a client erased the ledger alone */
	a.conditions_len = b.conditions_len = 1;
	b.conditions = &condition;
	assert_string_equal(compare(&a, &b), "urgent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(absent_and_empty_texts_are_the_same),
		cmocka_unit_test(progress_may_wait),
		cmocka_unit_test(decisions_may_not),
		cmocka_unit_test(a_ledger_that_is_kept_is_no_news),
		cmocka_unit_test(running_true_is_progress_and_running_false_is_a_decision),
		cmocka_unit_test(a_job_that_begins_may_wait_unless_something_was_decided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
