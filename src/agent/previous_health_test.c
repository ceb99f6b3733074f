/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/previous_health.h"

#include "harness/health.h"
#include "harness/json_text.h"

#include <stdio.h>
#include <string.h>

static bool doubts_beside(const char *status, const struct hf_health_memory *journal)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{'apiVersion':'holdfast.dev/v1alpha1','kind':'DeviceHealth','metadata':"
		 "{'name':'n1'},'status':%s}",
		 status);
	HF_AUTO_DOC doc = json_doc_of(text);

	return hf_previous_health_doubts(doc, "this-boot", journal);
}

static bool doubts(const char *status)
{
	return doubts_beside(status, NULL);
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

/* After failed writes the journal has fewer faults than DeviceHealth. */
static void what_the_journal_lacks_is_doubted_unless_it_is_the_later(void **state)
{
	static const struct {
		const char *said;
		bool ahead;
	} rows[] = {
		{"{'id':'gpu-0','state':'Unhealthy','generation':9}", true},
		{"{'id':'gpu-0','state':'Unhealthy','generation':2}", true},
		{"{'id':'gpu-0','state':'Unhealthy','generation':1}", false},
		{"{'id':'gpu-0','state':'Healthy','generation':9}", false},
		{"{'id':'gpu-7','state':'Unhealthy','generation':1}", true},
		{"{'id':'gpu-7','state':'Healthy','generation':1}", false},
		{"{'id':'node','state':'Degraded','generation':9}", true},
		{"{'id':'gpu-1','state':'Unhealthy','generation':2,'faults':[{'detector':'xid',"
		 "'code':62,'class':'gpu-reset','active':true}]}",
		 false},
		{"{'id':'gpu-1','state':'Unhealthy','generation':2,'faults':[{'detector':'xid',"
		 "'code':46,'class':'gpu-reset','active':true}]}",
		 true},
	};
	struct health_node n;

	(void)state;
	health_init(&n, 2, 0);
	health_xid(&n, 62, "gpu-1");
	health_step(&n, HF_SECOND);
	health_device(&n, "gpu-0")->generation = 2;
	health_device(&n, "gpu-1")->generation = 2;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		for (int ours = 0; ours < 2; ours++) {
			char text[512];

			snprintf(text, sizeof(text), "{'bootID':'%s','devices':[%s]}",
				 ours ? "this-boot" : "the-one-before", rows[i].said);
			if (doubts_beside(text, &n.memory) != (ours && rows[i].ahead))
				fail_msg("%s", text);
		}
	}
	health_release(&n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_not_well_in_this_boot_is_not_called_well),
		cmocka_unit_test(
			a_fault_that_acts_and_a_journal_lost_before_count_though_all_is_unknown),
		cmocka_unit_test(what_the_journal_lacks_is_doubted_unless_it_is_the_later),
		cmocka_unit_test(another_boot_a_fresh_node_and_one_that_was_well_are_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
