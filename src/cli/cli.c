/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Runs one verb: parses the command line with the verb's table, prints help and errors, connects
 * to the server, and turns the verb's result into an exit code. */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"
#include "framework/framework.h"

#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MESSAGE_BYTES_MAX ((size_t)64 << 10)

/* The flags that every verb with a server has. */
const struct hf_flag hf_cli_server_flags[] = {
	{"namespace", 'n', "NAME", "the namespace", "the context's, else default"},
	{"all-namespaces", 'A', NULL, "list objects of all namespaces", NULL},
	{"kubeconfig", 0, "FILE", "kubeconfig file", "$KUBECONFIG, else a running 'holdfast up'"},
	{"context", 0, "NAME", "the context of the kubeconfig file to use", "its current context"},
	{"cluster", 0, "NAME", "the cluster of the kubeconfig file to use", NULL},
	{"user", 0, "NAME", "the user of the kubeconfig file to use", NULL},
	{"local", 0, NULL, "use this user's 'holdfast up' and ignore $KUBECONFIG", NULL},
	{"request-timeout", 0, "SPAN", "time limit of each request, such as 10s", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_flag hf_cli_global_flags[] = {
	{"color", 0, "WHEN", "colour the output: auto, always or never", "auto"},
	{"help", 'h', NULL, "show this help", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

/* These flags stand only before the verb, as in `holdfast --version`, or without a verb. */
static const struct hf_flag program_flags[] = {
	{"version", 0, NULL, "print the version", NULL},
	{NULL, 0, NULL, NULL, NULL},
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

	for (size_t i = 0; i < cli->n_flags; i++)
		if (hf_streq(cli->flags[i].flag->name, name))
			value = cli->flags[i].value;
	return value;
}

void hf_cli_print_kept_notes(const struct hf_cli *cli)
{
	const char *line = hf_str_or(cli->kept_notes, "");

	while (*line != '\0') {
		size_t len = strcspn(line, "\n");
		HF_AUTOFREE char *text = hf_xstrndup(line, len);

		hf_text_print_safe(cli->out, text);
		fputc('\n', cli->out);
		line += len + (line[len] != '\0');
	}
}

bool hf_cli_has(const struct hf_cli *cli, const char *name)
{
	return hf_cli_flag(cli, name) != NULL;
}

/* ---- help --------------------------------------------------------------------------------- */

#define HELP_LINE_BYTES_MAX 1024

static void print_flags(const struct hf_cli *cli, const struct hf_flag *table)
{
	for (const struct hf_flag *flag = table; flag->name != NULL; flag++) {
		HF_AUTO_STRBUF line = HF_STRBUF_INIT(HELP_LINE_BYTES_MAX);

		hf_flag_add_help(table, flag, &line);
		hf_text_print(cli->out, line.data, cli->utf8);
		fputc('\n', cli->out);
	}
}

/* Replaces "holdfast" in the examples by "kubectl holdfast" if the program runs as kubectl's plugin. */
static void print_examples(const struct hf_cli *cli, const char *examples)
{
	static const char usual[] = "  holdfast ";

	fputs("Examples:\n", cli->out);
	for (const char *line = examples; *line != '\0';) {
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

	fprintf(cli->out, "%s\n\n", verb->summary);
	print_examples(cli, verb->examples);
	fputs("\nUsage: ", cli->out);
	print_usage(cli, cli->out);
	if (verb->note != NULL)
		fprintf(cli->out, "%s\n", verb->note);
	if (verb->flags != NULL) {
		fputs("\nFlags:\n", cli->out);
		print_flags(cli, verb->flags);
	}
	if (verb->style == HF_FLAGS_COMMAND)
		return HF_EXIT_OK;
	fputs("\nGlobal flags:\n", cli->out);
	if (verb->connects)
		print_flags(cli, hf_cli_server_flags);
	print_flags(cli, hf_cli_global_flags);
	return HF_EXIT_OK;
}

static void print_group(const struct hf_cli *cli, enum hf_cli_group group)
{
	static const char *const titles[HF_CLI_GROUPS] = {
		[HF_CLI_RUN_HERE] = "Run here",
		[HF_CLI_LOOK] = "Look",
		[HF_CLI_ACT] = "Act",
		[HF_CLI_ON_CLUSTER] = "On a cluster",
	};

	fprintf(cli->out, "\n%s:\n", titles[group]);
	for (const struct hf_cli_verb *const *const *tables = cli->tables; *tables != NULL;
	     tables++)
		for (const struct hf_cli_verb *const *verb = *tables; *verb != NULL; verb++)
			if (!(*verb)->hidden && (*verb)->group == group)
				fprintf(cli->out, "  %-10s %s\n", (*verb)->name, (*verb)->summary);
}

static void print_help(const struct hf_cli *cli)
{
	fputs("Holdfast keeps distributed training running when pods, devices and nodes fail.\n\n",
	      cli->out);
	print_examples(cli, "  holdfast run examples/hello-2rank.yaml\n"
			    "  holdfast why @latest\n"
			    "  holdfast logs @latest --rank all -f\n");
	fprintf(cli->out, "\nUsage: %s [FLAGS] VERB [ARGUMENTS]\n" HF_CLI_NOTE_JOB "\n",
		program_of(cli));
	for (enum hf_cli_group group = 0; group < HF_CLI_GROUPS; group++)
		print_group(cli, group);
	fputs("\nGlobal flags, before or after the verb:\n", cli->out);
	print_flags(cli, hf_cli_server_flags);
	print_flags(cli, hf_cli_global_flags);
	print_flags(cli, program_flags);
	fprintf(cli->out, "\n'%s VERB --help' prints the examples and flags of a verb.\n",
		program_of(cli));
}

/* ---- the command line --------------------------------------------------------------------- */

static int add_flag(struct hf_cli *cli, const struct hf_flag_item *item)
{
	if (cli->n_flags == HF_CLI_FLAGS_MAX)
		return hf_cli_usage(cli, "too many flags: at most %d are allowed",
				    HF_CLI_FLAGS_MAX);
	cli->flags[cli->n_flags++] = *item;
	return 0;
}

static const struct hf_flag *find_flag(const struct hf_flags *flags, const char *name)
{
	const struct hf_flag *flag = NULL;

	for (size_t i = 0; flag == NULL && i < HF_FLAGS_TABLES_MAX; i++)
		flag = hf_flag_find(flags->tables[i], name);
	return flag;
}

/* Replaces each flag found before the verb by the verb's own flag of that name. If the verb has no
 * such flag, prints a usage error. */
static int adopt_flags(struct hf_cli *cli, const struct hf_flags *flags)
{
	for (size_t i = 0; i < cli->n_flags; i++) {
		const struct hf_flag *early = cli->flags[i].flag;
		const struct hf_flag *flag = find_flag(flags, early->name);

		if (flag == NULL)
			return hf_cli_usage(cli, "'%s' takes no --%s", cli->verb->name,
					    early->name);
		cli->flags[i].flag = flag;
	}
	return 0;
}

void hf_cli_choose_flags(const struct hf_cli_verb *verb, struct hf_flags *flags)
{
	flags->style = verb->style;
	flags->tables[0] = verb->flags;
	flags->tables[1] = hf_cli_global_flags;
	flags->tables[2] = verb->connects ? hf_cli_server_flags : NULL;
}

/* True for "--nproc_per_node=2" and the flag "nproc-per-node". */
static bool is_foreign(const char *word, const char *flag)
{
	size_t len = strlen(flag);

	if (!hf_str_has_prefix(word, "--") || strcspn(word + 2, "=") != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (word[2 + i] != flag[i] && !(word[2 + i] == '_' && flag[i] == '-'))
			return false;
	return true;
}

/* Refuses the word that hf_flags_next has just read. */
static int refuse_flag(struct hf_cli *cli, const char *word, const char *problem)
{
	const struct hf_cli_foreign *foreign = cli->verb->foreign;

	for (; foreign != NULL && foreign->flag != NULL; foreign++)
		if (is_foreign(word, foreign->flag))
			return hf_cli_usage(cli, "unknown flag '%.*s': %s", (int)strcspn(word, "="),
					    word, foreign->advice);
	return hf_cli_usage(cli, "%s", problem);
}

/* Reads the words and flags behind the verb. flags: the reader of the command line, which has just
 * returned the verb. */
static int parse_rest(struct hf_cli *cli, struct hf_flags *flags)
{
	struct hf_flag_item item;
	struct hf_error err;
	int rc;

	hf_cli_choose_flags(cli->verb, flags);
	rc = adopt_flags(cli, flags);
	while (rc == 0) {
		rc = hf_flags_next(flags, &item, &err);
		if (rc < 0)
			return refuse_flag(cli, flags->argv[flags->at - 1], err.text);
		if (rc == 0)
			break;
		rc = 0;
		if (item.flag != NULL) {
			rc = add_flag(cli, &item);
			continue;
		}
		if (cli->n_args == 0)
			cli->literal = flags->over;
		cli->args[cli->n_args++] = item.value;
		if (cli->n_args == 1 && cli->verb->takes_rest != NULL &&
		    cli->verb->takes_rest(cli, item.value, cli->literal))
			break;
	}
	/* If the verb's argument is a program (takes_rest), or the verb's style is a command, all
	 * words behind it belong to the program. */
	for (; rc == 0 && flags->at < flags->argc; flags->at++)
		cli->args[cli->n_args++] = flags->argv[flags->at];
	return rc;
}

/* True for a word that kubectl takes as a kind: "pytorchjob", "job", "node", "remediation"; and "rollout". */
static bool is_kind(const char *word)
{
	static const char *const others[] = {"job",     "jobs",          "node",           "nodes",
					     "no",      "remediation",   "remediations",   "rem",
					     "rollout", "devicerollout", "devicerollouts", "dro"};

	for (size_t i = 0; i < HF_ARRAY_LEN(others); i++)
		if (hf_streq(word, others[i]))
			return true;
	return hf_framework_by_name(word) != NULL;
}

/* Joins two arguments: "KIND NAME" becomes "KIND/NAME", and "job NAME" becomes "NAME". */
static void join_kind(struct hf_cli *cli)
{
	if (!cli->verb->takes_kind || cli->n_args != 2 || !is_kind(cli->args[0]))
		return;
	if (hf_str_has_prefix(cli->args[0], "job"))
		cli->joined = hf_xstrdup(cli->args[1]);
	else
		cli->joined = hf_xasprintf("%s/%s", cli->args[0], cli->args[1]);
	cli->args[0] = cli->joined;
	cli->n_args = 1;
}

static int check_count(const struct hf_cli *cli)
{
	const struct hf_cli_verb *verb = cli->verb;
	bool too_many = verb->args_max >= 0 && cli->n_args > verb->args_max;

	if (!too_many && cli->n_args >= verb->args_min)
		return 0;
	fputs("holdfast: ", cli->err);
	if (too_many) {
		fputs("unexpected argument '", cli->err);
		hf_text_print(cli->err, cli->args[verb->args_max], cli->utf8);
		fputs("'; ", cli->err);
	} else {
		fputs("an argument is missing; ", cli->err);
	}
	fputs("usage: ", cli->err);
	print_usage(cli, cli->err);
	fprintf(cli->err, "See '%s %s --help'.\n", program_of(cli), verb->name);
	return HF_EXIT_USAGE;
}

/* ---- the terminal ------------------------------------------------------------------------- */

int hf_cli_out_fd(const struct hf_cli *cli)
{
	return cli->out_fd > 0 ? cli->out_fd : fileno(cli->out);
}

void hf_cli_print_lost(const struct hf_cli *cli)
{
	fprintf(cli->err,
		"holdfast: part of the output is lost: standard output cannot be written (%s)\n",
		cli->tty ? "the terminal takes no output" : "is its disk full?");
}

static int setup_terminal(struct hf_cli *cli)
{
	const char *when = hf_str_or(hf_cli_flag(cli, "color"), "auto");
	const char *term = getenv("TERM");
	struct winsize size;

	if (!hf_streq(when, "auto") && !hf_streq(when, "always") && !hf_streq(when, "never"))
		return hf_cli_usage(cli, "--color takes auto, always or never, not '%s'", when);
	cli->tty = isatty(hf_cli_out_fd(cli)) == 1 && !hf_str_is_empty(term) &&
		   !hf_streq(term, "dumb");
	cli->color = hf_streq(when, "always") ||
		     (hf_streq(when, "auto") && cli->tty && hf_str_is_empty(getenv("NO_COLOR")));
	if (cli->tty && ioctl(hf_cli_out_fd(cli), TIOCGWINSZ, &size) == 0)
		cli->width = size.ws_col;
	return 0;
}

const struct hf_cli_verb *hf_cli_verb_by_name(const struct hf_cli *cli, const char *name)
{
	for (const struct hf_cli_verb *const *const *tables = cli->tables; *tables != NULL;
	     tables++)
		for (const struct hf_cli_verb *const *verb = *tables; *verb != NULL; verb++)
			if (hf_streq((*verb)->name, name))
				return *verb;
	return NULL;
}

/* Refuses a verb that kubectl has and Holdfast does not: names what to use instead. */
static int refuse_verb(struct hf_cli *cli, const char *name)
{
	static const char *const of_kubectl[] = {"apply", "create", "submit", "launch"};

	for (size_t i = 0; i < HF_ARRAY_LEN(of_kubectl); i++)
		if (hf_streq(name, of_kubectl[i]))
			return hf_cli_usage(
				cli,
				"unknown verb '%s': 'holdfast run FILE' runs a job on this "
				"machine, and 'kubectl apply -f FILE' creates it on a cluster",
				name);
	return hf_cli_usage(cli, "unknown verb '%s'", name);
}

static int choose_verb(struct hf_cli *cli, const char *name)
{
	const struct hf_cli_verb *const *const *tables = cli->tables;
	struct hf_nearest search = {.text = name, .len = strlen(name)};

	cli->verb = hf_cli_verb_by_name(cli, name);
	if (cli->verb != NULL)
		return 0;
	for (; *tables != NULL; tables++)
		for (const struct hf_cli_verb *const *verb = *tables; *verb != NULL; verb++)
			if (!(*verb)->hidden)
				hf_nearest_offer(&search, (*verb)->name);
	if (search.nearest != NULL)
		return hf_cli_usage(cli, "unknown verb '%s': did you mean '%s'?", name,
				    search.nearest);
	return refuse_verb(cli, name);
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
	/* If the kubeconfig is missing or unreadable, the exit code is that of an unreachable
	 * server. */
	rc = hf_cli_fail(cli, &err);
	return rc == HF_EXIT_FAILED && !cli->asked_kept ? HF_EXIT_UNREACHABLE : rc;
}

/* Reports output that could not be written, such as on a full disk. If the reader closed the pipe
 * (POLLERR), only the exit code reports it. */
static int check_output(struct hf_cli *cli, int exit_code)
{
	struct pollfd out = {.fd = hf_cli_out_fd(cli)};

	if (fflush(cli->out) == 0 && ferror(cli->out) == 0)
		return exit_code;
	if (poll(&out, 1, 0) <= 0 || (out.revents & POLLERR) == 0)
		hf_cli_print_lost(cli);
	return exit_code == HF_EXIT_OK ? HF_EXIT_FAILED : exit_code;
}

static int run_verb(struct hf_cli *cli, struct hf_flags *flags)
{
	int rc = parse_rest(cli, flags);

	if (rc != 0)
		return rc;
	if (hf_cli_has(cli, "help"))
		return check_output(cli, print_verb_help(cli));
	join_kind(cli);
	rc = check_count(cli);
	if (rc == 0)
		rc = setup_terminal(cli);
	/* `holdfast operator` has a flag --namespace with another meaning, and no
	 * --all-namespaces. */
	if (rc == 0 && cli->verb->style != HF_FLAGS_GO)
		rc = take_server_flags(cli);
	if (rc == 0 && cli->verb->connects)
		rc = connect_to(cli);
	return rc != 0 ? rc : check_output(cli, cli->verb->run(cli));
}

/* Returns the name of the program for its help. kubectl starts the plugin `kubectl holdfast` as
 * the program kubectl-holdfast. */
static const char *name_of_program(const char *path)
{
	const char *slash = path != NULL ? strrchr(path, '/') : NULL;

	if (slash != NULL)
		path = slash + 1;
	return hf_str_has_prefix(hf_str_or(path, ""), "kubectl-") ? "kubectl holdfast" : "holdfast";
}

/* Reads the flags before the verb and the verb's name; --version stands for the verb.  *ret_name NULL: there is no verb. */
static int parse_start(struct hf_cli *cli, struct hf_flags *flags, const char **ret_name)
{
	struct hf_flag_item item;
	struct hf_error err;
	int rc;

	*ret_name = NULL;
	while ((rc = hf_flags_next(flags, &item, &err)) > 0) {
		if (item.flag == NULL || item.flag == program_flags) {
			*ret_name = item.flag == NULL ? item.value : "version";
			return 0;
		}
		rc = add_flag(cli, &item);
		if (rc != 0)
			return rc;
	}
	return rc < 0 ? hf_cli_usage(cli, "%s", err.text) : 0;
}

/* Prints the help of the program. asked: the user asked for help, so it goes to stdout with exit
 * code 0; else it goes to stderr with exit code 2. */
static int print_program_help(struct hf_cli *cli, bool asked)
{
	struct hf_cli on_stderr = *cli;

	if (asked) {
		print_help(cli);
		return check_output(cli, HF_EXIT_OK);
	}
	on_stderr.out = cli->err;
	print_help(&on_stderr);
	return HF_EXIT_USAGE;
}

/* `holdfast help VERB` is `holdfast VERB --help`. */
static int help_verb(struct hf_cli *cli, const struct hf_flags *flags)
{
	const char *name = flags->at < flags->argc ? flags->argv[flags->at] : NULL;
	int rc;

	if (name == NULL || name[0] == '-')
		return print_program_help(cli, true);
	rc = choose_verb(cli, name);
	return rc != 0 ? rc : check_output(cli, print_verb_help(cli));
}

static int main_verb(struct hf_cli *cli, struct hf_flags *flags)
{
	const char *name;
	int rc = parse_start(cli, flags, &name);

	if (rc != 0)
		return rc;
	if (hf_streq(name, "help"))
		return help_verb(cli, flags);
	if (name == NULL)
		return print_program_help(cli, hf_cli_has(cli, "help"));
	rc = choose_verb(cli, name);
	return rc != 0 ? rc : run_verb(cli, flags);
}

int hf_cli_main(struct hf_cli *cli, const struct hf_cli_verb *const *const *tables, int argc,
		const char *const *argv)
{
	struct hf_flags flags = {
		.tables = {hf_cli_global_flags, hf_cli_server_flags, program_flags},
		.argc = argc,
		.argv = argv,
		.at = 1,
	};
	int rc;

	(void)setlocale(LC_CTYPE, "");
	cli->utf8 = hf_streq(nl_langinfo(CODESET), "UTF-8");
	cli->tables = tables;
	cli->program = name_of_program(argc > 0 ? argv[0] : NULL);
	if (argc > HF_CLI_ARGS_MAX)
		return hf_cli_usage(cli, "the command line has more than %d words",
				    HF_CLI_ARGS_MAX);
	cli->args = hf_xcalloc((size_t)argc + 1, sizeof(*cli->args));
	rc = main_verb(cli, &flags);
	free(cli->args);
	cli->args = NULL;
	free(cli->joined);
	cli->joined = NULL;
	free(cli->kept_id);
	free(cli->kept_end);
	free(cli->kept_state);
	free(cli->kept_notes);
	cli->kept_id = cli->kept_end = cli->kept_state = cli->kept_notes = NULL;
	return rc;
}
