/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/before.h"

#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static bool doubts(const char *status)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"apiVersion\":\"holdfast.dev/v1alpha1\",\"kind\":\"DeviceHealth\",\"metadata\":"
		 "{\"name\":\"n1\"},\"status\":%s}",
		 status);
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));

	return hf_before_doubts(doc, "this-boot");
}

static void what_was_not_well_in_this_boot_is_not_called_well(void **state)
{
	static const char *const words[] = {"Suspect",     "Degraded",          "Unhealthy",
					    "Quarantined", "Remediating",       "Probation",
					    "Failed",      "of-a-later-version"};
	char text[256];

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++) {
		snprintf(
			text, sizeof(text),
			"{\"bootID\":\"this-boot\",\"state\":\"Healthy\",\"devices\":[{\"id\":\"node\","
			"\"state\":\"Healthy\"},{\"id\":\"a\",\"state\":\"%s\"}]}",
			words[i]);
		assert_true(doubts(text));
		snprintf(text, sizeof(text), "{\"bootID\":\"this-boot\",\"state\":\"%s\"}",
			 words[i]);
		assert_true(doubts(text));
	}
}

static void a_fault_that_acts_and_a_journal_lost_before_count_though_all_is_unknown(void **state)
{
	(void)state;
	assert_true(
		doubts("{\"bootID\":\"this-boot\",\"state\":\"Unknown\",\"historyLost\":true}"));
	assert_true(doubts(
		"{\"bootID\":\"this-boot\",\"devices\":[{\"id\":\"a\",\"state\":\"Unknown\","
		"\"faults\":[{\"detector\":\"pcie\",\"class\":\"degraded\",\"active\":true}]}]}"));
	assert_false(
		doubts("{\"bootID\":\"this-boot\",\"devices\":[{\"id\":\"a\",\"state\":\"Healthy\","
		       "\"faults\":[{\"detector\":\"xid\",\"class\":\"app\",\"active\":true}]}]}"));
	assert_false(doubts(
		"{\"bootID\":\"this-boot\",\"devices\":[{\"id\":\"a\",\"state\":\"Unknown\","
		"\"faults\":[{\"detector\":\"pcie\",\"class\":\"degraded\",\"active\":false}]}]}"));
}

static void another_boot_a_fresh_node_and_one_that_was_well_are_as_they_were(void **state)
{
	(void)state;
	assert_false(doubts("{}"));
	assert_false(doubts("null"));
	assert_false(doubts("[]"));
	assert_false(doubts("{\"state\":\"Unhealthy\"}"));
	assert_false(doubts("{\"bootID\":\"the-one-before\",\"state\":\"Unhealthy\","
			    "\"historyLost\":true}"));
	assert_false(doubts("{\"bootID\":\"this-boot\",\"state\":\"Healthy\",\"devices\":"
			    "[{\"id\":\"a\",\"state\":\"Unknown\"}]}"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_not_well_in_this_boot_is_not_called_well),
		cmocka_unit_test(
			a_fault_that_acts_and_a_journal_lost_before_count_though_all_is_unknown),
		cmocka_unit_test(another_boot_a_fresh_node_and_one_that_was_well_are_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
