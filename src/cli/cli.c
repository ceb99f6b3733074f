/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Runs one verb: parses the command line with the verb's table, prints help and errors, connects
 * to the server, and turns the verb's result into an exit code. */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"

#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MESSAGE_BYTES_MAX ((size_t)64 << 10)

/* Flags of every verb that talks to a server. */
static const struct hf_flag server_flags[] = {
	{"namespace", 'n', "NAME", "the namespace; else that of the context, else 'default'"},
	{"all-namespaces", 'A', NULL, "list objects of all namespaces"},
	{"kubeconfig", 0, "FILE",
	 "kubeconfig file; else $KUBECONFIG, else a running 'holdfast up'"},
	{"context", 0, "NAME", "the context of the kubeconfig file to use"},
	{"cluster", 0, "NAME", "the cluster of the kubeconfig file to use"},
	{"user", 0, "NAME", "the user of the kubeconfig file to use"},
	{"local", 0, NULL, "use this user's 'holdfast up' and ignore $KUBECONFIG"},
	{"request-timeout", 0, "SPAN", "time limit of each request, such as 10s"},
	{NULL, 0, NULL, NULL},
};

static const struct hf_flag global_flags[] = {
	{"color", 0, "WHEN", "colour the output: auto (the default), always or never"},
	{"help", 'h', NULL, "show this help"},
	{NULL, 0, NULL, NULL},
};

static const char *program_of(const struct hf_cli *cli)
{
	return hf_str_or(cli->program, "holdfast");
}

static void print_complaint(const struct hf_cli *cli, const char *text)
{
	fputs("holdfast: ", cli->err);
	hf_text_print(cli->err, text, cli->utf8);
	fputc('\n', cli->err);
}

int hf_cli_usage(const struct hf_cli *cli, const char *fmt, ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	print_complaint(cli, text.data);
	fprintf(cli->err, "See '%s%s%s --help'.\n", program_of(cli), cli->verb != NULL ? " " : "",
		cli->verb != NULL ? cli->verb->name : "");
	return HF_EXIT_USAGE;
}

int hf_cli_fail(const struct hf_cli *cli, const struct hf_error *err)
{
	print_complaint(cli, err->text);
	switch (err->code) {
	case HF_E_UNAVAILABLE:
	case HF_E_UNAUTHORIZED: return HF_EXIT_UNREACHABLE;
	case HF_E_TIMEOUT: return HF_EXIT_TIMEOUT;
	case HF_E_INTERNAL:
	case HF_E_IO:
	case HF_E_NO_SPACE:
	case HF_E_NO_MEMORY: return HF_EXIT_INTERNAL;
	case HF_E_CANCELED: return HF_EXIT_INTERRUPTED;
	default: return HF_EXIT_FAILED;
	}
}

const char *hf_cli_flag(const struct hf_cli *cli, const char *name)
{
	const char *value = NULL;

	/* If a flag is given twice, the last value counts. */
	for (size_t i = 0; i < cli->n_flags; i++)
		if (hf_streq(cli->flags[i].flag->name, name))
			value = cli->flags[i].value;
	return value;
}

bool hf_cli_has(const struct hf_cli *cli, const char *name)
{
	return hf_cli_flag(cli, name) != NULL;
}

/* ---- help --------------------------------------------------------------------------------- */

#define FLAG_WIDTH_MIN 28
#define FLAG_WIDTH_MAX 48

static int flag_width(const struct hf_flag *flags)
{
	int width = FLAG_WIDTH_MIN;

	for (; flags != NULL && flags->name != NULL; flags++) {
		int n = 6 + (int)strlen(flags->name) +
			(flags->value != NULL ? 1 + (int)strlen(flags->value) : 0);
		if (n > width)
			width = n;
	}
	return width < FLAG_WIDTH_MAX ? width : FLAG_WIDTH_MAX;
}

static void print_flags(const struct hf_cli *cli, const struct hf_flag *flags)
{
	int width = flag_width(flags);

	for (; flags != NULL && flags->name != NULL; flags++) {
		char left[64];
		int n = flags->letter != 0 ? snprintf(left, sizeof(left), "-%c, ", flags->letter)
					   : snprintf(left, sizeof(left), "    ");
		(void)snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", flags->name,
			       flags->value != NULL ? " " : "",
			       flags->value != NULL ? flags->value : "");
		fprintf(cli->out, "  %-*s ", width, left);
		hf_text_print(cli->out, flags->help, cli->utf8);
		fputc('\n', cli->out);
	}
}

/* Replaces "holdfast" in the examples by "kubectl holdfast" if the program runs as kubectl's plugin. */
static void print_examples(const struct hf_cli *cli)
{
	static const char usual[] = "  holdfast ";

	for (const char *line = cli->verb->examples; *line != '\0';) {
		size_t len = strcspn(line, "\n");
		if (hf_str_has_prefix(line, usual)) {
			fprintf(cli->out, "  %s ", program_of(cli));
			line += strlen(usual);
			len -= strlen(usual);
		}
		fprintf(cli->out, "%.*s\n", (int)len, line);
		line += len + (line[len] == '\n');
	}
}

static void print_usage(const struct hf_cli *cli, FILE *out)
{
	const struct hf_cli_verb *verb = cli->verb;

	fprintf(out, "%s %s%s", program_of(cli), verb->name, verb->usage[0] != '\0' ? " " : "");
	hf_text_print(out, verb->usage, cli->utf8);
	fputc('\n', out);
}

static int print_verb_help(const struct hf_cli *cli)
{
	const struct hf_cli_verb *verb = cli->verb;

	fprintf(cli->out, "%s\n\nExamples:\n", verb->summary);
	print_examples(cli);
	fputs("\nUsage: ", cli->out);
	print_usage(cli, cli->out);
	if (verb->flags != NULL) {
		fputs("\nFlags:\n", cli->out);
		print_flags(cli, verb->flags);
	}
	if (verb->raw)
		return HF_EXIT_OK;
	fputs("\nGlobal flags:\n", cli->out);
	if (verb->connects)
		print_flags(cli, server_flags);
	print_flags(cli, global_flags);
	return HF_EXIT_OK;
}

static void print_help(const struct hf_cli *cli, FILE *out,
		       const struct hf_cli_verb *const *const *tables)
{
	fprintf(out,
		"Holdfast keeps distributed training running when pods, devices and nodes fail.\n\n"
		"Usage: %s VERB [ARGUMENTS]\n\nVerbs:\n",
		program_of(cli));
	for (; *tables != NULL; tables++)
		for (const struct hf_cli_verb *const *verb = *tables; *verb != NULL; verb++)
			if (!(*verb)->hidden)
				fprintf(out, "  %-10s %s\n", (*verb)->name, (*verb)->summary);
	fprintf(out, "\n'%s VERB --help' prints the examples and flags of a verb.\n",
		program_of(cli));
}

/* ---- the command line --------------------------------------------------------------------- */

static const struct hf_flag *find_in(const struct hf_flag *flags, const char *name, size_t len,
				     char letter)
{
	for (; flags != NULL && flags->name != NULL; flags++) {
		if (name != NULL && strlen(flags->name) == len &&
		    strncmp(flags->name, name, len) == 0)
			return flags;
		if (letter != 0 && flags->letter == letter)
			return flags;
	}
	return NULL;
}

static const struct hf_flag *find_flag(const struct hf_cli_verb *verb, const char *name, size_t len,
				       char letter)
{
	const struct hf_flag *flag = find_in(verb->flags, name, len, letter);

	if (flag == NULL && verb->connects)
		flag = find_in(server_flags, name, len, letter);
	return flag != NULL ? flag : find_in(global_flags, name, len, letter);
}

struct parse {
	int argc, i;
	const char *const *argv;
};

/* Records the flag with its value: `attached` (the text after "=") or the next word. */
static int take_flag(struct hf_cli *cli, struct parse *parse, const struct hf_flag *flag,
		     const char *attached)
{
	const char *value = attached;

	if (flag->value == NULL && attached != NULL) {
		/* kubectl accepts a value for a switch: --watch=true. */
		if (hf_streq(attached, "false"))
			return 0;
		if (!hf_streq(attached, "true"))
			return hf_cli_usage(
				cli, "--%s is a switch: it takes no value, only true or false",
				flag->name);
		value = "";
	} else if (flag->value == NULL) {
		value = "";
	} else if (value == NULL) {
		if (parse->i + 1 >= parse->argc)
			return hf_cli_usage(cli, "--%s needs a value: --%s %s", flag->name,
					    flag->name, flag->value);
		value = parse->argv[++parse->i];
	}
	if (cli->n_flags == HF_CLI_FLAGS_MAX)
		return hf_cli_usage(cli, "too many flags: at most %d are allowed",
				    HF_CLI_FLAGS_MAX);
	cli->flags[cli->n_flags++] = (struct hf_cli_flag){.flag = flag, .value = value};
	return 0;
}

static int take_long(struct hf_cli *cli, struct parse *parse, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);
	const struct hf_flag *flag = find_flag(cli->verb, word, len, 0);

	if (flag == NULL)
		return hf_cli_usage(cli, "unknown flag '--%.*s'", (int)len, word);
	return take_flag(cli, parse, flag, equals != NULL ? equals + 1 : NULL);
}

/* Parses "-n NAME", "-nNAME", "-ojson", "-fA". The first letter that needs a value takes the rest
 * of the word as its value. */
static int take_letters(struct hf_cli *cli, struct parse *parse, const char *letters)
{
	for (; *letters != '\0'; letters++) {
		const struct hf_flag *flag = find_flag(cli->verb, NULL, 0, *letters);
		int rc;
		if (flag == NULL)
			return hf_cli_usage(cli, "unknown flag '-%c'", *letters);
		if (flag->value != NULL) {
			const char *rest = letters + 1;
			if (*rest == '=')
				rest++;
			return take_flag(cli, parse, flag, letters[1] != '\0' ? rest : NULL);
		}
		rc = take_flag(cli, parse, flag, NULL);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int parse_words(struct hf_cli *cli, int argc, const char *const *argv)
{
	struct parse parse = {.argc = argc, .argv = argv};
	bool flags_over = false;

	for (; parse.i < argc; parse.i++) {
		const char *word = argv[parse.i];
		int rc = 0;
		if (!flags_over && hf_streq(word, "--"))
			flags_over = true;
		else if (!flags_over && hf_str_has_prefix(word, "--"))
			rc = take_long(cli, &parse, word + 2);
		else if (!flags_over && word[0] == '-' && word[1] != '\0')
			rc = take_letters(cli, &parse, word + 1);
		else
			cli->args[cli->n_args++] = word;
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* ---- the terminal ------------------------------------------------------------------------- */

static int setup_terminal(struct hf_cli *cli)
{
	const char *when = hf_str_or(hf_cli_flag(cli, "color"), "auto");
	const char *term = getenv("TERM");
	struct winsize size;

	if (!hf_streq(when, "auto") && !hf_streq(when, "always") && !hf_streq(when, "never"))
		return hf_cli_usage(cli, "--color takes auto, always or never, not '%s'", when);
	cli->tty =
		isatty(fileno(cli->out)) == 1 && !hf_str_is_empty(term) && !hf_streq(term, "dumb");
	cli->color = hf_streq(when, "always") ||
		     (hf_streq(when, "auto") && cli->tty && hf_str_is_empty(getenv("NO_COLOR")));
	if (cli->tty && ioctl(fileno(cli->out), TIOCGWINSZ, &size) == 0)
		cli->width = size.ws_col;
	return 0;
}

static const struct hf_cli_verb *find_verb(const struct hf_cli_verb *const *const *tables,
					   const char *name)
{
	for (; *tables != NULL; tables++)
		for (const struct hf_cli_verb *const *verb = *tables; *verb != NULL; verb++)
			if (hf_streq((*verb)->name, name))
				return *verb;
	return NULL;
}

static int take_server_flags(struct hf_cli *cli)
{
	const char *ns = hf_cli_flag(cli, "namespace");
	const char *timeout = hf_cli_flag(cli, "request-timeout");
	const char *problem = ns != NULL ? hf_dns1123_label_problem(ns) : NULL;
	struct hf_error err;

	if (problem != NULL)
		return hf_cli_usage(cli, "--namespace '%s': %s", ns, problem);
	if (ns != NULL) {
		free(cli->ns);
		cli->ns = hf_xstrdup(ns);
	}
	cli->all_namespaces = hf_cli_has(cli, "all-namespaces");
	if (cli->all_namespaces && ns != NULL)
		return hf_cli_usage(cli, "give --namespace or --all-namespaces, not both");
	/* kubectl writes "0" for "no limit". */
	if (timeout != NULL && !hf_streq(timeout, "0") &&
	    hf_span_parse(timeout, &cli->request_timeout, &err) != 0)
		return hf_cli_usage(cli, "--request-timeout: %s", err.text);
	return 0;
}

static int connect_to(struct hf_cli *cli)
{
	struct hf_error err;
	int rc;

	if (cli->connect(cli, &cli->store, &err) == 0)
		return HF_EXIT_OK;
	/* A missing or unreadable kubeconfig counts as "no server reached". */
	rc = hf_cli_fail(cli, &err);
	return rc == HF_EXIT_FAILED ? HF_EXIT_UNREACHABLE : rc;
}

/* Reports output that could not be written, such as on a full disk. If the reader closed the pipe
 * (POLLERR), only the exit code reports it. */
static int check_output(struct hf_cli *cli, int exit_code)
{
	struct pollfd out = {.fd = fileno(cli->out)};

	if (fflush(cli->out) == 0 && ferror(cli->out) == 0)
		return exit_code;
	if (poll(&out, 1, 0) <= 0 || (out.revents & POLLERR) == 0)
		print_complaint(
			cli,
			"part of the output is lost: standard output cannot be written (is its disk full?)");
	return exit_code == HF_EXIT_OK ? HF_EXIT_FAILED : exit_code;
}

/* Passes all words to a verb that parses its own command line. Only the help flags are recognized
 * here. */
static int take_raw(struct hf_cli *cli, int argc, const char *const *argv, bool *ret_help)
{
	for (int i = 0; i < argc; i++) {
		cli->args[cli->n_args++] = argv[i];
		if (hf_streq(argv[i], "--help") || hf_streq(argv[i], "-help") ||
		    hf_streq(argv[i], "-h"))
			*ret_help = true;
	}
	return 0;
}

static int take_words(struct hf_cli *cli, int argc, const char *const *argv, bool *ret_help)
{
	int rc;

	*ret_help = false;
	if (cli->verb->raw)
		return take_raw(cli, argc, argv, ret_help);
	rc = parse_words(cli, argc, argv);
	*ret_help = rc == 0 && hf_cli_has(cli, "help");
	return rc;
}

static int run_verb(struct hf_cli *cli, int argc, const char *const *argv)
{
	bool help;
	int rc = take_words(cli, argc, argv, &help);

	if (rc != 0)
		return rc;
	if (help)
		return check_output(cli, print_verb_help(cli));
	if (cli->n_args < cli->verb->args_min ||
	    (cli->verb->args_max >= 0 && cli->n_args > cli->verb->args_max)) {
		fputs("holdfast: usage: ", cli->err);
		print_usage(cli, cli->err);
		fprintf(cli->err, "See '%s %s --help'.\n", program_of(cli), cli->verb->name);
		return HF_EXIT_USAGE;
	}
	rc = setup_terminal(cli);
	if (rc == 0)
		rc = take_server_flags(cli);
	if (rc == 0 && cli->verb->connects)
		rc = connect_to(cli);
	return rc != 0 ? rc : check_output(cli, cli->verb->run(cli));
}

static bool asks_for_help(const char *word)
{
	return hf_streq(word, "--help") || hf_streq(word, "-h") || hf_streq(word, "help");
}

/* kubectl starts the plugin `kubectl holdfast` as the program kubectl-holdfast. */
static const char *name_of_program(const char *path)
{
	const char *slash = path != NULL ? strrchr(path, '/') : NULL;

	if (slash != NULL)
		path = slash + 1;
	return hf_str_has_prefix(hf_str_or(path, ""), "kubectl-") ? "kubectl holdfast" : "holdfast";
}

int hf_cli_main(struct hf_cli *cli, const struct hf_cli_verb *const *const *tables, int argc,
		const char *const *argv)
{
	int rc;

	(void)setlocale(LC_CTYPE, "");
	cli->utf8 = hf_streq(nl_langinfo(CODESET), "UTF-8");
	cli->program = name_of_program(argc > 0 ? argv[0] : NULL);
	if (argc < 2) {
		print_help(cli, cli->err, tables);
		return HF_EXIT_USAGE;
	}
	if (asks_for_help(argv[1]) && (argc == 2 || argv[2][0] == '-')) {
		print_help(cli, cli->out, tables);
		return check_output(cli, HF_EXIT_OK);
	}
	if (asks_for_help(argv[1])) {
		cli->verb = find_verb(tables, argv[2]);
		return cli->verb != NULL ? check_output(cli, print_verb_help(cli))
					 : hf_cli_usage(cli, "unknown verb '%s'", argv[2]);
	}
	cli->verb = find_verb(tables, hf_streq(argv[1], "--version") ? "version" : argv[1]);
	if (cli->verb == NULL)
		return hf_cli_usage(cli, "unknown verb '%s'", argv[1]);
	if (argc > HF_CLI_ARGS_MAX)
		return hf_cli_usage(cli, "the command line has more than %d words",
				    HF_CLI_ARGS_MAX);
	cli->args = hf_xcalloc((size_t)argc, sizeof(*cli->args));
	rc = run_verb(cli, argc - 2, argv + 2);
	free(cli->args);
	cli->args = NULL;
	return rc;
}
