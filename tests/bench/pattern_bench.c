/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* What it costs to look for a step in a line: with the built-in lines, with an expression, and with one that explodes.
 * Prints nanoseconds of CPU time for a line, the best of five rounds. */
#include "pattern/log_rule.h"
#include "pattern/pattern.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUNDS 5
#define LINES 200000

static double cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(const char *what, const char *regex, const char *line, int lines)
{
	struct hf_pattern_rank rank = {0};
	struct hf_pattern *pattern;
	struct hf_pattern_step step;
	struct hf_error err;
	size_t len = strlen(line);
	double best = 0;
	int result = 0;

	if (hf_pattern_create(regex, &pattern, &err) != 0)
		return;
	for (int round = 0; round < ROUNDS; round++) {
		double begin = cpu_ns(), span;

		for (int i = 0; i < lines; i++)
			result = hf_pattern_read(pattern, &rank, line, len, &step, &err);
		span = (cpu_ns() - begin) / lines;
		best = round == 0 || span < best ? span : best;
	}
	printf("pattern %s ns=%.0f lines=%d result=%s\n", what, best, lines,
	       result < 0                  ? "cut-off"
	       : result == HF_PATTERN_STEP ? "step"
					   : "none");
	hf_pattern_destroy(pattern);
}

/* Rules: what each adds to a line that does not match. */
static void measure_rules(const char *what, const char *rule, int n, const char *line, int lines)
{
	struct hf_log_rules *rules = hf_log_rules_create();
	size_t len = strlen(line);
	struct hf_error err;
	double best = 0;

	for (int i = 0; i < n; i++) {
		char text[256];

		snprintf(text, sizeof(text), "r%d must %s", i, rule);
		if (hf_log_rules_add(rules, text, strlen(text), &err) != 0) {
			fprintf(stderr, "%s\n", err.text);
			return;
		}
	}
	hf_log_rules_begin(rules, 1);
	for (int round = 0; round < ROUNDS; round++) {
		double begin = cpu_ns(), span;

		for (int i = 0; i < lines; i++)
			hf_log_rules_read(rules, line, len, 1);
		span = (cpu_ns() - begin) / lines / n;
		best = round == 0 || span < best ? span : best;
	}
	printf("pattern rule-%s ns=%.0f lines=%d rules=%d\n", what, best, lines, n);
	hf_log_rules_destroy(rules);
}

int main(void)
{
	static const char log[] =
		"INFO:trainer:2026-03-01 10:00:00,123 saved the checkpoint of rank 3 to "
		"/data/run/checkpoint-1200 (1.2 GB, 3.4 s)";
	char pipes[2048], letters[2048];

	memset(pipes, '|', sizeof(pipes) - 1);
	memcpy(pipes + 100, " [", 2);
	pipes[sizeof(pipes) - 1] = '\0';
	memset(letters, 'a', sizeof(letters) - 1);
	letters[sizeof(letters) - 2] = '!';
	letters[sizeof(letters) - 1] = '\0';
	measure("builtin-log", NULL, log, LINES);
	measure("builtin-bracket", NULL, "[INFO] [rank 3] [2026-03-01] loaded 12/40 files [ok]",
		LINES);
	measure("builtin-bars", NULL, pipes, LINES / 10);
	measure("builtin-tqdm", NULL, " 50%|#####     | 5/10 [00:01<00:01,  4.50it/s, loss=0.25]",
		LINES);
	measure("own-log", "step (\\d+)", log, LINES);
	measure("own-step", "step (\\d+)", "epoch 3 step 1200 loss 0.25", LINES);
	measure("own-explodes", "^(a+)+$", letters, 100);
	measure_rules("literal", "be finite: loss=(\\S+)", HF_LOG_RULES_MAX, log, LINES / 10);
	measure_rules("digits", "recur within 10m: \\d+/\\d+ \\[", HF_LOG_RULES_MAX, log,
		      LINES / 10);
	measure_rules("any-case", "recur within 10m: (?i)(step|iteration)\\s+\\d+",
		      HF_LOG_RULES_MAX, log, LINES / 10);
	measure_rules("trainers", "recur within 10m", HF_LOG_RULES_MAX, log, LINES / 10);
	measure_rules("long-line", "be finite: loss=(\\S+)", HF_LOG_RULES_MAX, letters, LINES / 10);
	return 0;
}
