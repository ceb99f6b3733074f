/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/rules_file.h"

#include "base/fs.h"
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int parse(const char *text, struct hf_arena *arena, struct hf_health_rules *rules,
		 struct hf_error *err)
{
	return hf_rules_parse(text, strlen(text), arena, rules, err);
}

static void a_table_says_what_its_words_say(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	struct hf_health_rules rules;
	struct hf_error err;

	assert_ok(parse("{\"rules\": [{\"detector\": \"xid\", \"code\": 43, \"class\": \"app\","
			" \"action\": \"restart-process\", \"comment\": \"as we see it\"},"
			"{\"detector\": \"xid\", \"codes\": [144, 150], \"severity\": \"fatal\","
			" \"class\": \"gpu-reset\", \"action\": \"reset-device\","
			" \"clear\": \"signal\", \"count\": 3, \"window\": \"10m\","
			" \"burst\": \"15s\", \"below\": \"info\", \"sameUnit\": true}],"
			" \"escalateCount\": 4, \"escalateWindow\": \"12h\"}",
			arena, &rules, &err),
		  &err);
	assert_int_equal(rules.len, 2);
	assert_int_equal(rules.items[0].code_min, 43);
	assert_int_equal(rules.items[0].code_max, 43);
	assert_int_equal(rules.items[0].subcode, -1);
	assert_int_equal(rules.items[0].cls, HF_HEALTH_APP);
	assert_int_equal(rules.items[1].code_max, 150);
	assert_int_equal(rules.items[1].severity, HF_HEALTH_FATAL);
	assert_int_equal(rules.items[1].clear, HF_HEALTH_BY_SIGNAL);
	assert_int_equal(rules.items[1].count, 3);
	assert_true(rules.items[1].window == 10 * HF_MINUTE);
	assert_true(rules.items[1].same_unit);
	assert_int_equal(rules.escalate_count, 4);
	assert_true(rules.escalate_window == 12 * HF_HOUR);
}

static void what_is_no_table_is_refused_by_rule_and_key(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"[]", "'rules' must be a list"},
		{"{\"rules\": 3}", "'rules' must be a list"},
		{"{\"rules\": [3]}", "rule 1: is not an object"},
		{"{\"rules\": [{\"class\": \"app\", \"action\": \"record\"}]}",
		 "'detector' is missing"},
		{"{\"rules\": [{\"detector\": \"xyz\", \"class\": \"app\", \"action\": \"record\"}]}",
		 "rule 1: 'detector' is not one of"},
		{"{\"rules\": [{\"detector\": \"xid\", \"class\": \"app\", \"action\": \"record\","
		 " \"colour\": 1}]}",
		 "an unknown key"},
		{"{\"rules\": [{\"detector\": \"xid\", \"class\": \"app\", \"action\": \"record\","
		 " \"code\": -1}]}",
		 "'code' is not a number"},
		{"{\"rules\": [{\"detector\": \"xid\", \"class\": \"app\", \"action\": \"record\","
		 " \"code\": 79}]}",
		 "rule 1: 'detector' has no code 79: use detector 'buslost'"},
		{"{\"rules\": [{\"detector\": \"xid\", \"class\": \"app\", \"action\": \"record\","
		 " \"codes\": [5, 4]}]}",
		 "'codes' must be"},
		{"{\"rules\": [{\"detector\": \"xid\", \"class\": \"app\", \"action\": \"record\","
		 " \"window\": \"soon\"}]}",
		 "'window' is not a duration"},
		{"{\"rules\": [{\"detector\": \"xid\", \"class\": \"app\", \"action\": \"record\","
		 " \"follows\": 1}]}",
		 "'follows' must be"},
		{"{\"rules\": [], \"escalateCount\": 1000}", "'escalateCount' is not a number"},
		{"{\"rules\": [], \"other\": 1}", "an unknown key"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
		struct hf_health_rules rules;
		struct hf_error err;

		assert_code(parse(cases[i].text, arena, &rules, &err), HF_E_INVALID);
		if (strstr(err.text, cases[i].error) == NULL)
			fail_msg("%s: %s", cases[i].text, err.text);
	}
}

static void text_that_is_cut_and_files_that_are_not_there_are_told(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	struct hf_health_rules rules;
	struct hf_error err;

	assert_true(parse("{\"rules\": [", arena, &rules, &err) < 0);
	assert_code(hf_rules_load("/nowhere/rules.json", arena, &rules, &err), HF_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "/nowhere/rules.json"));
}

/* Opening a FIFO would wait for a writer, and the agent would wait with it. */
static void a_pipe_is_no_table_and_the_agent_does_not_wait_for_it(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create((size_t)1 << 20);
	char dir[] = "/tmp/holdfast-rules-XXXXXX", path[64];
	struct hf_health_rules rules;
	struct hf_error err;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/rules", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(hf_rules_load(path, arena, &rules, &err), HF_E_INVALID);
	assert_non_null(strstr(err.text, "is no regular file"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pipe_is_no_table_and_the_agent_does_not_wait_for_it),
		cmocka_unit_test(a_table_says_what_its_words_say),
		cmocka_unit_test(what_is_no_table_is_refused_by_rule_and_key),
		cmocka_unit_test(text_that_is_cut_and_files_that_are_not_there_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
