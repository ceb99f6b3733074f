/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/brain.h"
#include "harness/test.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static struct brain b;

static bool shows(const char *part)
{
	char *text = brain_text(&b);
	bool found = strstr(text, part) != NULL;

	if (!found)
		print_message("%s\n", text);
	free(text);
	return found;
}

static void a_plan_reads_as_yaml(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	brain_step(&b);
	assert_true(shows(
		"write: within a second\nconditions:\n- {type: \"Created\", status: \"True\""));
	assert_true(shows("\n- create pod: demo-hand-0\n  labels: [\"training"));
	assert_true(shows("\n  env: [\"RANK=0\"]\n"));
	assert_true(shows("\ncount created: 1\n"));
	assert_false(hf_plan_actions(&b.plan) != 4);
	brain_run_up(&b);
	assert_true(shows("write: nothing\n"));
	brain_release(&b);
}

static void quotes_in_texts_are_escaped(void **state)
{
	(void)state;
	brain_init(&b, &brain_kind, 1, 1);
	b.view.run_policy.managed_by = "a\"b\\c\n";
	brain_step(&b);
	assert_true(shows("managed by 'a\\\"b\\\\c\\n'"));
	brain_release(&b);
}

static void names_of_actions_and_topics(void **state)
{
	(void)state;
	assert_string_equal(hf_action_name(HF_ACTION_DELETE_JOB), "delete job");
	assert_string_equal(hf_topic_name(HF_TOPIC_EVIDENCE), "evidence");
	assert_string_equal(hf_topic_name(HF_TOPIC_NEXT), "next");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_reads_as_yaml),
		cmocka_unit_test(quotes_in_texts_are_escaped),
		cmocka_unit_test(names_of_actions_and_topics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
