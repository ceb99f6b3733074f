/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/exec_internal.h"

#include "base/ascii.h"
#include "base/str.h"
#include "base/time.h"
#include "health/beat.h"
#include "health/process_line.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP_LINE_BYTES_MAX 1024

/* The flags and the environment variables of `holdfast exec`, and the main function. */

const struct hf_flag hf_exec_flags[] = {
	{"agent-socket", 0, "PATH", "socket of the node's agent; '': none",
	 "$HOLDFAST_AGENT_SOCKET, else " HF_EXEC_AGENT_SOCKET},
	{"termination-log", 0, "FILE", "file for CMD's last error lines",
	 "$TERMINATION_MESSAGE_PATH, else " HF_EXEC_TERMINATION_LOG},
	{"hang-after", 0, "SPAN",
	 "end CMD with code 225 if a rank reports no new step for this long", "never"},
	{"log-rule", 0, "RULE",
	 "what CMD's output must do, such as 'loss must be finite: loss=(\\S+)'; may be repeated",
	 "$" HF_EXEC_RULES_ENV ", else none"},
	{"self-fence", 0, "SPAN",
	 "end CMD if the node loses contact with the API server for this long",
	 "$" HF_EXEC_FENCE_ENV ", else never"},
	{"save-grace", 0, "SPAN", "let SIGTERM wait this long for the ranks to save",
	 "$" HF_EXEC_SAVE_ENV ", else no wait"},
	{"save-signal", 0, "SIGNAL",
	 "ask ranks that do not use should_save() by this signal, such as USR1, to save", "none"},
	{"keep-code", 0, NULL, "exit with CMD's own code, never with one of 220 to 225", NULL},
	{"copy-to", 0, "FILE", "copy this program to FILE, and run no CMD", NULL},
	{"help", 'h', NULL, "show this help", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

static int report_usage(const char *text, const char *word)
{
	fprintf(stderr, "holdfast exec: %s%s%s%s\nSee 'holdfast exec --help'.\n", text,
		word != NULL ? " '" : "", hf_str_or(word, ""), word != NULL ? "'" : "");
	return HF_EXEC_CODE_USAGE;
}

static int take_span(const char *name, const char *value, uint32_t max_s, uint32_t *ret_seconds)
{
	struct hf_error err;
	char text[96];
	hf_time span;

	if (hf_span_parse(value, &span, &err) != 0 || span < 0 ||
	    span / HF_SECOND > (hf_time)max_s || (span > 0 && span < HF_SECOND)) {
		snprintf(text, sizeof(text),
			 "--%s takes a span of at least a second, such as 10m, not", name);
		return report_usage(text, value);
	}
	*ret_seconds = (uint32_t)(span / HF_SECOND);
	return 0;
}

static int take_signal(const char *value, int *ret_signal)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"USR1", SIGUSR1},
		       {"USR2", SIGUSR2},
		       {"HUP", SIGHUP},
		       {"INT", SIGINT},
		       {"WINCH", SIGWINCH}};
	const char *name = hf_str_or(value, "");

	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < HF_ARRAY_LEN(signals); i++) {
		if (!hf_streq(signals[i].name, name))
			continue;
		*ret_signal = signals[i].number;
		return 0;
	}
	return report_usage("--save-signal takes USR1, USR2, HUP, INT or WINCH, not",
			    hf_str_or(value, ""));
}

/* A value of the fence's variable that is no number of seconds is an error: CMD must not run without its fence. */
static int take_seconds_env(const char *name, const char *value, uint32_t *ret_seconds)
{
	char text[96];
	unsigned long seconds;
	char *end;

	if (hf_str_is_empty(value))
		return 0;
	seconds = strtoul(value, &end, 10);
	if (!hf_ascii_is_digit(*value) || *end != '\0' || seconds > HF_BEAT_FENCE_MAX) {
		snprintf(text, sizeof(text), "%s must be a number of seconds, not", name);
		return report_usage(text, value);
	}
	*ret_seconds = (uint32_t)seconds;
	return 0;
}

static int take_rule(struct hf_exec_options *options, const char *text)
{
	struct hf_error err;

	if (options->rules == NULL)
		options->rules = hf_log_rules_create();
	if (hf_log_rules_add(options->rules, text, strlen(text), &err) == 0)
		return 0;
	fprintf(stderr, "holdfast exec: --log-rule '%s': %s\nSee 'holdfast exec --help'.\n", text,
		err.text);
	return HF_EXEC_CODE_USAGE;
}

/* One rule a line.  The operator has checked the rules.  If this version cannot read a rule, a newer operator wrote it: the
 * program runs without that rule. */
static void take_rules_env(struct hf_exec_options *options, const char *text)
{
	struct hf_error err;

	for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (len == 0)
			continue;
		if (options->rules == NULL)
			options->rules = hf_log_rules_create();
		if (hf_log_rules_add(options->rules, text, len, &err) != 0)
			fprintf(stderr,
				"holdfast exec: " HF_EXEC_RULES_ENV ": a rule is left out: %s\n",
				err.text);
	}
}

static int take_flag(struct hf_exec_options *options, const struct hf_flag_item *item)
{
	const char *name = item->flag->name, *value = item->value;

	if (hf_streq(name, "agent-socket")) {
		options->agent_socket = value;
	} else if (hf_streq(name, "termination-log")) {
		options->termination_log = value;
		options->termination_create = true;
	} else if (hf_streq(name, "hang-after")) {
		return take_span(name, value, INT32_MAX, &options->hang_after_s);
	} else if (hf_streq(name, "log-rule")) {
		return take_rule(options, value);
	} else if (hf_streq(name, "self-fence")) {
		return take_span(name, value, HF_BEAT_FENCE_MAX, &options->fence_s);
	} else if (hf_streq(name, "save-grace")) {
		return take_span(name, value, HF_PROCESS_SPAN_MAX, &options->save_s);
	} else if (hf_streq(name, "save-signal")) {
		return take_signal(value, &options->save_signal);
	} else if (hf_streq(name, "keep-code")) {
		options->keep_code = value != NULL;
	} else if (hf_streq(name, "copy-to")) {
		options->copy_to = value;
	}
	return 0;
}

static int read_environment(struct hf_exec_options *options)
{
	int rc = take_seconds_env(HF_EXEC_FENCE_ENV, getenv(HF_EXEC_FENCE_ENV), &options->fence_s);

	options->agent_socket = getenv("HOLDFAST_AGENT_SOCKET");
	/* An empty value means: no agent. */
	if (options->agent_socket == NULL)
		options->agent_socket = HF_EXEC_AGENT_SOCKET;
	options->termination_log =
		hf_str_or(getenv("TERMINATION_MESSAGE_PATH"), HF_EXEC_TERMINATION_LOG);
	options->hold = hf_streq(hf_str_or(getenv(HF_EXEC_HOLD_ENV), ""), "1");
	if (rc == 0)
		rc = take_seconds_env(HF_EXEC_SAVE_ENV, getenv(HF_EXEC_SAVE_ENV), &options->save_s);
	return rc;
}

/* words: CMD; NULL if there is none. */
static int check_options(const struct hf_exec_options *options, char *const *words)
{
	if (options->copy_to != NULL)
		return words != NULL
			       ? report_usage("--copy-to runs no command, so leave out", words[0])
			       : 0;
	if (words == NULL)
		return report_usage("no command: holdfast exec [FLAGS] -- CMD…", NULL);
	if (options->fence_s > 0 && hf_str_is_empty(options->agent_socket))
		return report_usage("--self-fence needs the agent: give --agent-socket", NULL);
	return 0;
}

int hf_exec_parse(int argc, char *const *argv, struct hf_exec_options *ret_options)
{
	struct hf_exec_options options = {.argv = NULL};
	struct hf_flags flags = {
		.style = HF_FLAGS_COMMAND,
		.tables = {hf_exec_flags},
		.argc = argc,
		.argv = (const char *const *)argv,
	};
	struct hf_flag_item item;
	struct hf_error err;
	int rc = read_environment(&options);

	while (rc == 0 && (rc = hf_flags_next(&flags, &item, &err)) > 0)
		rc = take_flag(&options, &item);
	if (rc < 0)
		rc = report_usage(err.text, NULL);
	options.argv = flags.at < argc ? argv + flags.at : NULL;
	if (rc == 0)
		rc = check_options(&options, options.argv);
	/* As with all flags, the command line wins over the environment. */
	if (rc == 0 && options.rules == NULL)
		take_rules_env(&options, hf_str_or(getenv(HF_EXEC_RULES_ENV), ""));
	if (rc != 0 || (options.rules != NULL && hf_log_rules_len(options.rules) == 0))
		options.rules = hf_log_rules_destroy(options.rules);
	if (rc == 0)
		*ret_options = options;
	return rc;
}

static int print_help(void)
{
	puts("Run a training process and report its progress to the node's agent\n\n"
	     "Usage: holdfast exec [FLAGS] -- CMD…\n\nFlags:");
	for (const struct hf_flag *flag = hf_exec_flags; flag->name != NULL; flag++) {
		HF_AUTO_STRBUF line = HF_STRBUF_INIT(HELP_LINE_BYTES_MAX);

		hf_flag_add_help(hf_exec_flags, flag, &line);
		puts(line.data);
	}
	return 0;
}

int hf_exec_main(int argc, char **argv)
{
	struct hf_exec_options options;
	int rc;

	if (argc == 2 && (hf_streq(argv[1], "--help") || hf_streq(argv[1], "-h")))
		return print_help();
	rc = hf_exec_parse(argc - 1, argv + 1, &options);
	if (rc != 0)
		return rc;
	rc = options.copy_to != NULL ? hf_exec_copy(options.copy_to) : hf_exec_run(&options);
	hf_log_rules_destroy(options.rules);
	return rc;
}
