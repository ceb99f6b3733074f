/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/str.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct hf_flag global_flags[] = {
	{"namespace", 'n', "NAME", "the namespace to work in"},
	{"all-namespaces", 'A', NULL, "work in all namespaces"},
	{"kubeconfig", 0, "FILE",
	 "where the server is; else $KUBECONFIG, else a running 'holdfast up'"},
	{"context", 0, "NAME", "the context of the kubeconfig file to use"},
	{"cluster", 0, "NAME", "the cluster of the kubeconfig file to use"},
	{"user", 0, "NAME", "the user of the kubeconfig file to use"},
	{"color", 0, "WHEN", "auto, always or never"},
	{"help", 'h', NULL, "show this help"},
	{NULL, 0, NULL, NULL},
};

int hf_cli_usage(const struct hf_cli *cli, const char *fmt, ...)
{
	va_list ap;

	fputs("holdfast: ", cli->err);
	va_start(ap, fmt);
	vfprintf(cli->err, fmt, ap);
	va_end(ap);
	if (cli->verb != NULL)
		fprintf(cli->err, "\nSee 'holdfast %s --help'.\n", cli->verb->name);
	else
		fputs("\nSee 'holdfast --help'.\n", cli->err);
	return HF_EXIT_USAGE;
}

int hf_cli_fail(const struct hf_cli *cli, const struct hf_error *err)
{
	fprintf(cli->err, "holdfast: %s\n", err->text);
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

	/* The last one counts, as everywhere. */
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

static void print_flags(FILE *out, const struct hf_flag *flags)
{
	int width = flag_width(flags);

	for (; flags != NULL && flags->name != NULL; flags++) {
		char left[64];
		int n = flags->letter != 0 ? snprintf(left, sizeof(left), "-%c, ", flags->letter)
					   : snprintf(left, sizeof(left), "    ");
		(void)snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", flags->name,
			       flags->value != NULL ? " " : "",
			       flags->value != NULL ? flags->value : "");
		fprintf(out, "  %-*s %s\n", width, left, flags->help);
	}
}

static void print_verb_help(const struct hf_cli *cli)
{
	const struct hf_cli_verb *verb = cli->verb;

	fprintf(cli->out, "%s\n\nExamples:\n%s\n", verb->summary, verb->examples);
	fprintf(cli->out, "Usage: holdfast %s%s%s\n", verb->name, verb->usage[0] != '\0' ? " " : "",
		verb->usage);
	if (verb->flags != NULL) {
		fputs("\nFlags:\n", cli->out);
		print_flags(cli->out, verb->flags);
	}
	if (verb->raw)
		return;
	fputs("\nGlobal flags:\n", cli->out);
	print_flags(cli->out, global_flags);
}

static void print_help(FILE *out, const struct hf_cli_verb *const *const *tables)
{
	fputs("Holdfast keeps distributed training running when pods, devices and nodes fail.\n\n"
	      "Usage: holdfast VERB [ARGUMENTS]\n\nVerbs:\n",
	      out);
	for (; *tables != NULL; tables++)
		for (const struct hf_cli_verb *const *verb = *tables; *verb != NULL; verb++)
			if (!(*verb)->hidden)
				fprintf(out, "  %-10s %s\n", (*verb)->name, (*verb)->summary);
	fputs("\n'holdfast VERB --help' has examples and flags.\n", out);
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

	return flag != NULL ? flag : find_in(global_flags, name, len, letter);
}

struct parse {
	int argc, i;
	const char *const *argv;
};

/* Records the flag; its value is what stood behind "=", or the next word. */
static int take_flag(struct hf_cli *cli, struct parse *parse, const struct hf_flag *flag,
		     const char *attached)
{
	const char *value = attached;

	if (flag->value == NULL && attached != NULL) {
		/* As kubectl takes switches: --watch=true. */
		if (hf_streq(attached, "false"))
			return 0;
		if (!hf_streq(attached, "true"))
			return hf_cli_usage(cli, "--%s takes no value", flag->name);
		value = "";
	} else if (flag->value == NULL) {
		value = "";
	} else if (value == NULL) {
		if (parse->i + 1 >= parse->argc)
			return hf_cli_usage(cli, "--%s needs a value (%s)", flag->name,
					    flag->value);
		value = parse->argv[++parse->i];
	}
	if (cli->n_flags == HF_CLI_FLAGS_MAX)
		return hf_cli_usage(cli, "too many flags");
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

/* "-n NAME", "-nNAME", "-ojson", "-fA": letters, the first with a value takes the rest. */
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
	cli->utf8 = hf_streq(nl_langinfo(CODESET), "UTF-8");
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

/* For verbs that have another program's command line.  Help is asked for as everywhere. */
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
	struct hf_error err;
	bool help;
	int rc = take_words(cli, argc, argv, &help);

	if (rc != 0)
		return rc;
	if (help) {
		print_verb_help(cli);
		return HF_EXIT_OK;
	}
	if (cli->n_args < cli->verb->args_min ||
	    (cli->verb->args_max >= 0 && cli->n_args > cli->verb->args_max))
		return hf_cli_usage(cli, "usage: holdfast %s %s", cli->verb->name,
				    cli->verb->usage);
	rc = setup_terminal(cli);
	if (rc != 0)
		return rc;
	cli->all_namespaces = hf_cli_has(cli, "all-namespaces");
	if (hf_cli_flag(cli, "namespace") != NULL) {
		const char *problem = hf_dns1123_label_problem(hf_cli_flag(cli, "namespace"));
		if (problem != NULL)
			return hf_cli_usage(cli, "--namespace '%s': %s",
					    hf_cli_flag(cli, "namespace"), problem);
		free(cli->ns);
		cli->ns = hf_xstrdup(hf_cli_flag(cli, "namespace"));
	}
	if (cli->verb->connects && cli->connect(cli, &cli->store, &err) != 0)
		return hf_cli_fail(cli, &err);
	rc = cli->verb->run(cli);
	/* A full disk or a closed pipe behind stdout is a failure too. */
	if (fflush(cli->out) != 0 && rc == HF_EXIT_OK)
		rc = HF_EXIT_FAILED;
	return rc;
}

int hf_cli_main(struct hf_cli *cli, const struct hf_cli_verb *const *const *tables, int argc,
		const char *const *argv)
{
	int rc;

	(void)setlocale(LC_CTYPE, "");
	if (argc < 2) {
		print_help(cli->err, tables);
		return HF_EXIT_USAGE;
	}
	if (hf_streq(argv[1], "--help") || hf_streq(argv[1], "-h") || hf_streq(argv[1], "help")) {
		print_help(cli->out, tables);
		return HF_EXIT_OK;
	}
	cli->verb = find_verb(tables, hf_streq(argv[1], "--version") ? "version" : argv[1]);
	if (cli->verb == NULL)
		return hf_cli_usage(cli, "unknown verb '%s'", argv[1]);
	if (argc > HF_CLI_ARGS_MAX)
		return hf_cli_usage(cli, "more than %d words", HF_CLI_ARGS_MAX);
	cli->args = hf_xcalloc((size_t)argc, sizeof(*cli->args));
	rc = run_verb(cli, argc - 2, argv + 2);
	free(cli->args);
	cli->args = NULL;
	return rc;
}
