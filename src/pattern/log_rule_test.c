/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "pattern/log_rule.h"

#include "base/str.h"
#include "harness/test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static struct hf_log_rules *rules;

static void begin(const char *text)
{
	struct hf_error err;

	rules = hf_log_rules_create();
	assert_ok(hf_log_rules_add(rules, text, strlen(text), &err), &err);
	hf_log_rules_begin(rules, 1000);
}

static void end(void)
{
	rules = hf_log_rules_destroy(rules);
}

static void read_line(const char *line, int64_t now_ms)
{
	hf_log_rules_read(rules, line, strlen(line), now_ms);
}

/* The text of the next finding, "": none. */
static const char *find(int64_t now_ms)
{
	static struct hf_log_finding finding;

	return hf_log_rules_next(rules, now_ms, &finding) ? finding.why : "";
}

static void a_line_that_does_not_appear_in_time_is_missed_once(void **state)
{
	begin("start must appear within 10s: epoch 1\\b");
	read_line("epoch 10", 2000);
	assert_string_equal(find(10999), "");
	assert_int_equal(hf_log_rules_wake_ms(rules), 11000);
	assert_string_equal(find(11000),
			    "log rule 'start': no line matched within 10 s of the start");
	assert_string_equal(find(12000), "");
	assert_true(hf_log_rules_wake_ms(rules) == INT64_MAX);
	end();
}

static void a_line_that_has_appeared_is_not_awaited_again(void **state)
{
	begin("start must appear within 10s: epoch 1\\b");
	read_line("epoch 1: begin", 2000);
	assert_string_equal(find(100000), "");
	hf_log_rules_begin(rules, 200000);
	assert_string_equal(find(209999), "");
	assert_string_not_equal(find(210000), "");
	end();
}

static void a_line_that_recurs_is_awaited_from_its_first_appearance_on(void **state)
{
	begin("steps must recur within 10s: step \\d+");
	assert_string_equal(find(900000), "");
	read_line("step 1", 900000);
	read_line("step 2", 905000);
	read_line("evaluation", 914000);
	assert_string_equal(find(914999), "");
	assert_string_equal(find(915000), "log rule 'steps': no line matched for 10 s");
	end();
}

static void numbers_are_judged_in_a_row(void **state)
{
	begin("norm must be below 10 for 3 lines: norm=(\\S+)");
	read_line("norm=11", 0);
	read_line("norm=nan", 0);
	read_line("norm=9", 0);
	read_line("norm=10", 0);
	read_line("norm=none", 0);
	read_line("norm=inf", 0);
	assert_string_equal(find(0), "");
	read_line("norm=12.5", 0);
	assert_string_equal(find(0), "log rule 'norm': 12.5 is not below 10, 3 lines in a row");
	read_line("norm=12.5", 0);
	assert_string_equal(find(0), "");
	end();
}

static void a_number_that_is_not_finite_is_bad(void **state)
{
	static const char *const bad[] = {"nan", "NaN", "-inf", "Infinity"};

	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		char line[64];

		begin("loss must be finite or FailJob: (\\d+) loss (?<value>\\S+)");
		read_line("3 loss -1e-3", 0);
		assert_string_equal(find(0), "");
		snprintf(line, sizeof(line), "4 loss %s", bad[i]);
		read_line(line, 0);
		assert_string_not_equal(find(0), "");
		end();
	}
}

static void a_lower_bound_holds_for_numbers_above_it(void **state)
{
	begin("rate must be above -2.5: rate (\\S+)");
	read_line("rate -2.4", 0);
	assert_string_equal(find(0), "");
	read_line("rate -2.5", 0);
	assert_string_equal(find(0), "log rule 'rate': -2.5 is not above -2.5, 1 line in a row");
	end();
}

static void an_event_comes_again_after_a_minute_if_the_rule_was_kept_in_between(void **state)
{
	begin("loss must be finite or Event: loss (\\S+)");
	read_line("loss nan", 1000);
	assert_string_not_equal(find(1000), "");
	read_line("loss nan", 100000);
	assert_string_equal(find(100000), "");
	read_line("loss 1", 101000);
	read_line("loss nan", 102000);
	assert_string_not_equal(find(102000), "");
	read_line("loss 1", 103000);
	read_line("loss nan", 104000);
	assert_string_equal(find(104000), "");
	end();
}

static void without_a_pattern_the_lines_of_trainers_count(void **state)
{
	struct hf_error err;
	static const char loss[] = "loss must be finite";

	begin("steps must recur within 10s");
	assert_ok(hf_log_rules_add(rules, loss, strlen(loss), &err), &err);
	read_line(" 50%|#####     | 5/10 [00:01<00:01,  4.50it/s, loss=0.25]", 1000);
	assert_string_equal(find(10999), "");
	read_line(" 60%|######    | 6/10 [00:01<00:01,  4.50it/s, loss=nan]", 5000);
	assert_string_equal(find(5000), "log rule 'loss': nan is not finite, 1 line in a row");
	assert_string_equal(find(15000), "log rule 'steps': no line matched for 10 s");
	end();
}

/* A match that takes too many steps turns the rule off, with one finding. */
static void an_expression_that_explodes_is_turned_off(void **state)
{
	char line[2048];
	struct hf_log_finding finding;

	begin("x must recur within 10s: ^(a+)+$");
	memset(line, 'a', sizeof(line));
	line[sizeof(line) - 1] = '!';
	read_line("aaa", 1000);
	hf_log_rules_read(rules, line, sizeof(line), 2000);
	assert_true(hf_log_rules_next(rules, 2000, &finding));
	assert_true(finding.off);
	assert_int_equal(finding.action, HF_LOG_RULE_EVENT);
	assert_string_equal(finding.why,
			    "log rule 'x' is off: its pattern took too many steps for a line");
	assert_false(hf_log_rules_next(rules, 99000, &finding));
	end();
}

static void what_is_no_rule_is_refused_with_the_part(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "a rule reads NAME must MUST"},
		{"steps must recur", "'recur': write appear within SPAN"},
		{"steps must recur within 0s", "the span must be between 1s and 720h"},
		{"steps must recur within 721h", "the span must be between 1s and 720h"},
		{"steps must recur within soon", "the span must be between 1s and 720h"},
		{"loss must be good: (x)", "'be good': write appear within SPAN"},
		{"loss must be below nan: (x)", "the bound must be a finite number"},
		{"loss must be below 1 for 0 lines: (x)", "the number of lines must be between"},
		{"loss must be below 1 for 2: (x)", "'be below 1 for 2': write"},
		{"loss must be finite or Stop: (x)",
		 "the action must be Restart, FailJob or Event"},
		{"a b must be finite: (x)", "the name must have 1 to 63 letters"},
		{"loss must be finite: loss",
		 "the expression has no group: write the number in brackets"},
		{"loss must be finite: lo(ss", "missing closing parenthesis, at character 6"},
		{"steps must recur within 1m: a\tb", "it has a control character, at character 2"},
	};

	rules = hf_log_rules_create();
	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		struct hf_error err;

		assert_int_equal(
			hf_log_rules_add(rules, cases[i].text, strlen(cases[i].text), &err),
			HF_E_INVALID);
		if (strstr(err.text, cases[i].error) == NULL)
			fail_msg("'%s' gives '%s'", cases[i].text, err.text);
	}
	assert_int_equal(hf_log_rules_len(rules), 0);
	end();
}

static void names_are_taken_once_and_rules_are_limited(void **state)
{
	struct hf_error err;
	char text[64];

	begin("r0 must recur within 1m: x");
	assert_int_equal(hf_log_rules_add(rules, "r0 must be finite", 17, &err), HF_E_INVALID);
	for (int i = 1; i < HF_LOG_RULES_MAX; i++) {
		int len = snprintf(text, sizeof(text), "r%d must recur within 1m: x", i);

		assert_ok(hf_log_rules_add(rules, text, (size_t)len, &err), &err);
	}
	assert_int_equal(hf_log_rules_add(rules, "r must recur within 1m", 22, &err),
			 HF_E_TOO_LARGE);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_that_does_not_appear_in_time_is_missed_once),
		cmocka_unit_test(a_line_that_has_appeared_is_not_awaited_again),
		cmocka_unit_test(a_line_that_recurs_is_awaited_from_its_first_appearance_on),
		cmocka_unit_test(numbers_are_judged_in_a_row),
		cmocka_unit_test(a_number_that_is_not_finite_is_bad),
		cmocka_unit_test(a_lower_bound_holds_for_numbers_above_it),
		cmocka_unit_test(
			an_event_comes_again_after_a_minute_if_the_rule_was_kept_in_between),
		cmocka_unit_test(without_a_pattern_the_lines_of_trainers_count),
		cmocka_unit_test(an_expression_that_explodes_is_turned_off),
		cmocka_unit_test(what_is_no_rule_is_refused_with_the_part),
		cmocka_unit_test(names_are_taken_once_and_rules_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
