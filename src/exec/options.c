/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/exec.h"

#include "base/str.h"
#include "base/time.h"
#include "health/beat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The command line.  holdfast-exec has it too, so it does not use the parser of the verbs. */

#define ROW(name, value, help) {name, value, help},
static const struct {
	const char *name, *value, *help;
} flags[] = {HF_EXEC_FLAGS(ROW)};

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

/* A fence that cannot be read is an error: CMD must not run without it. */
static int take_fence_env(const char *value, uint32_t *ret_seconds)
{
	unsigned long seconds;
	char *end;

	if (hf_str_is_empty(value))
		return 0;
	seconds = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end != '\0' || seconds > HF_BEAT_FENCE_MAX)
		return report_usage(HF_EXEC_FENCE_ENV " must be a number of seconds, not", value);
	*ret_seconds = (uint32_t)seconds;
	return 0;
}

static int take_flag(struct hf_exec_options *options, const char *name, const char *value)
{
	if (hf_streq(name, "agent-socket")) {
		options->agent_socket = value;
	} else if (hf_streq(name, "termination-log")) {
		options->termination_log = value;
		options->termination_create = true;
	} else if (hf_streq(name, "hang-after")) {
		return take_span(name, value, INT32_MAX, &options->hang_after_s);
	} else if (hf_streq(name, "self-fence")) {
		return take_span(name, value, HF_BEAT_FENCE_MAX, &options->fence_s);
	} else {
		options->keep_code = true;
	}
	return 0;
}

/* Takes "--name=value", "--name value" or "--switch"; moves *at to its last word. */
static int take_word(struct hf_exec_options *options, int argc, char *const *argv, int *at)
{
	const char *word = argv[*at] + 2, *equals = strchr(word, '=');
	size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);

	for (size_t i = 0; i < HF_ARRAY_LEN(flags); i++) {
		const char *name = flags[i].name;
		const char *value = equals != NULL ? equals + 1 : NULL;

		if (strlen(name) != len || strncmp(name, word, len) != 0)
			continue;
		if (flags[i].value == NULL && value != NULL)
			return report_usage("this flag takes no value:", argv[*at]);
		if (flags[i].value != NULL && value == NULL) {
			if (*at + 1 >= argc)
				return report_usage("a value is missing after", argv[*at]);
			value = argv[++*at];
		}
		return take_flag(options, name, value);
	}
	return report_usage("unknown flag", argv[*at]);
}

int hf_exec_parse(int argc, char *const *argv, struct hf_exec_options *ret_options)
{
	struct hf_exec_options options = {
		.agent_socket = getenv("HOLDFAST_AGENT_SOCKET"),
		.termination_log =
			hf_str_or(getenv("TERMINATION_MESSAGE_PATH"), HF_EXEC_TERMINATION_LOG),
	};
	int at = 0, fence;

	/* An empty value means: no agent. */
	if (options.agent_socket == NULL)
		options.agent_socket = HF_EXEC_AGENT_SOCKET;
	fence = take_fence_env(getenv(HF_EXEC_FENCE_ENV), &options.fence_s);
	if (fence != 0)
		return fence;
	for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
		int rc;

		if (argv[at][2] == '\0') {
			at++;
			break;
		}
		rc = take_word(&options, argc, argv, &at);
		if (rc != 0)
			return rc;
	}
	if (at >= argc)
		return report_usage("no command: holdfast exec [FLAGS] -- CMD…", NULL);
	if (options.fence_s > 0 && hf_str_is_empty(options.agent_socket))
		return report_usage("--self-fence needs the agent: give --agent-socket", NULL);
	options.argv = argv + at;
	*ret_options = options;
	return 0;
}

static int print_help(void)
{
	puts("Run a training process, and report its steps to the node's agent\n\n"
	     "Usage: holdfast exec [FLAGS] -- CMD…\n\nFlags:");
	for (size_t i = 0; i < HF_ARRAY_LEN(flags); i++)
		printf("  --%s %-*s %s\n", flags[i].name, (int)(22 - strlen(flags[i].name)),
		       hf_str_or(flags[i].value, ""), flags[i].help);
	return 0;
}

int hf_exec_main(int argc, char **argv)
{
	struct hf_exec_options options;
	int rc;

	if (argc == 2 && (hf_streq(argv[1], "--help") || hf_streq(argv[1], "-h")))
		return print_help();
	rc = hf_exec_parse(argc - 1, argv + 1, &options);
	return rc != 0 ? rc : hf_exec_run(&options);
}
