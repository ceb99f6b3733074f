/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

/* The verbs of these tests print their arguments and flags. */
static struct {
	int runs;
	char args[256];
	char output[64], selector[64];
	bool watch, all;
	char ns[64];
} seen;

static int verb_probe(struct hf_cli *cli)
{
	seen.runs++;
	seen.args[0] = '\0';
	for (int i = 0; i < cli->n_args; i++) {
		size_t len = strlen(seen.args);
		(void)snprintf(seen.args + len, sizeof(seen.args) - len, "[%s]", cli->args[i]);
	}
	(void)snprintf(seen.output, sizeof(seen.output), "%s",
		       hf_str_or(hf_cli_flag(cli, "output"), ""));
	(void)snprintf(seen.selector, sizeof(seen.selector), "%s",
		       hf_str_or(hf_cli_flag(cli, "selector"), ""));
	(void)snprintf(seen.ns, sizeof(seen.ns), "%s", cli->ns);
	seen.watch = hf_cli_has(cli, "watch");
	seen.all = cli->all_namespaces;
	fputs("ran\n", cli->out);
	return 7;
}

static const struct hf_flag probe_flags[] = {
	{"output", 'o', "FORMAT", "how", NULL},
	{"selector", 'l', "LABELS", "which", NULL},
	{"watch", 'w', NULL, "go on", NULL},
	{NULL, 0, NULL, NULL, NULL},
};
static const struct hf_cli_verb probe = {
	.name = "probe",
	.summary = "Probe things",
	.usage = "WHAT…",
	.group = HF_CLI_LOOK,
	.examples = "  holdfast probe a\n",
	.note = HF_CLI_NOTE_JOB,
	.flags = probe_flags,
	.args_min = 1,
	.args_max = 2,
	.connects = true,
	.run = verb_probe,
};
static const struct hf_cli_verb hidden = {
	.name = "secret",
	.summary = "Not listed",
	.usage = "",
	.examples = "",
	.hidden = true,
	.run = verb_probe,
};
static const struct hf_cli_verb go_style = {
	.name = "server",
	.summary = "Serve things",
	.usage = "",
	.group = HF_CLI_ON_CLUSTER,
	.examples = "",
	.flags = probe_flags,
	.style = HF_FLAGS_GO,
	.run = verb_probe,
};
static const struct hf_cli_verb command = {
	.name = "command",
	.summary = "Run a command",
	.usage = "-- CMD",
	.group = HF_CLI_ON_CLUSTER,
	.examples = "",
	.flags = probe_flags,
	.args_max = -1,
	.style = HF_FLAGS_COMMAND,
	.run = verb_probe,
};
static const struct hf_cli_verb *const verbs[] = {&probe, &hidden, &go_style, &command, NULL};

/* the code that the test's connect function returns; 0: a server is reached */
static int connect_code;

static int connect_probe(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err)
{
	return connect_code == 0 ? 0 : hf_error_set(err, connect_code, "no server");
}

struct said {
	int code;
	char *out, *err;
};

static struct said run(const char *line)
{
	static const struct hf_cli_verb *const *const tables[] = {verbs, NULL};
	const char *argv[64] = {"holdfast"};
	char *copy = hf_xstrdup(line), *rest = copy, *word;
	struct said said = {.code = -1};
	struct hf_cli cli = {.ns = hf_xstrdup("default"), .connect = connect_probe};
	size_t out_len, err_len;
	int argc = 1;

	while ((word = strsep(&rest, " ")) != NULL)
		if (word[0] != '\0')
			argv[argc++] = word;
	memset(&seen, 0, sizeof(seen));
	cli.out = open_memstream(&said.out, &out_len);
	cli.err = open_memstream(&said.err, &err_len);
	/* `out` is a memory stream, which has no file descriptor and so is no terminal. */
	said.code = hf_cli_main(&cli, tables, argc, argv);
	assert_int_equal(fclose(cli.out), 0);
	assert_int_equal(fclose(cli.err), 0);
	free(cli.ns);
	free(copy);
	return said;
}

static void said_release(struct said *said)
{
	free(said->out);
	free(said->err);
}

static void assert_usage(const char *line, const char *with)
{
	struct said said = run(line);

	assert_int_equal(said.code, HF_EXIT_USAGE);
	assert_int_equal(seen.runs, 0);
	if (strstr(said.err, with) == NULL)
		fail_msg("'%s' does not say '%s' but: %s", line, with, said.err);
	assert_string_equal(said.out, "");
	said_release(&said);
}

static void a_verb_gets_its_words_and_returns_its_code(void **state)
{
	struct said said = run("probe a b");

	assert_int_equal(said.code, 7);
	assert_string_equal(seen.args, "[a][b]");
	assert_string_equal(seen.ns, "default");
	assert_string_equal(said.out, "ran\n");
	said_release(&said);
}

static void each_verb_has_its_style_of_flags(void **state)
{
	struct said said = run("server -output x --watch=false -selector=y");

	assert_int_equal(said.code, 7);
	assert_string_equal(seen.output, "x");
	assert_string_equal(seen.selector, "y");
	assert_false(seen.watch);
	said_release(&said);
	said = run("server -watch -help");
	assert_int_equal(said.code, HF_EXIT_OK);
	assert_int_equal(seen.runs, 0);
	assert_non_null(strstr(said.out, "Usage: holdfast server"));
	said_release(&said);
	assert_usage("server -watch false", "unexpected argument 'false'");
	said = run("command -o x -- a --watch -- b");
	assert_string_equal(seen.args, "[a][--watch][--][b]");
	assert_string_equal(seen.output, "x");
	assert_false(seen.watch);
	said_release(&said);
}

static void global_flags_may_stand_before_the_verb(void **state)
{
	struct said said = run("-n team --color never probe a -w");

	assert_int_equal(said.code, 7);
	assert_string_equal(seen.args, "[a]");
	assert_string_equal(seen.ns, "team");
	assert_true(seen.watch);
	said_release(&said);
	/* A flag behind the verb overrides the same flag before the verb. */
	said = run("--namespace=team probe a -n other");
	assert_string_equal(seen.ns, "other");
	said_release(&said);
	said = run("-h probe");
	assert_int_equal(said.code, HF_EXIT_OK);
	assert_non_null(strstr(said.out, "Usage: holdfast probe"));
	said_release(&said);
	assert_usage("--output json probe a", "unknown flag '--output'");
	assert_usage("-n team server", "'server' takes no --namespace");
	assert_usage("--version probe", "unknown verb 'version'");
	assert_usage("--contxt x probe a", "unknown flag '--contxt': did you mean '--context'?");
}

static void flags_stand_anywhere_and_in_every_form(void **state)
{
	static const char *const lines[] = {
		"probe a -o json -l x=y -w -n team",
		"probe -ojson --selector=x=y a --watch --namespace team",
		"probe --output json -lx=y -w=true a -nteam",
		"probe --output=yaml -wo json a --selector x=y --namespace=team",
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(lines); i++) {
		struct said said = run(lines[i]);
		if (i == 2) { /* letters of switches take no value */
			assert_int_equal(said.code, HF_EXIT_USAGE);
			said_release(&said);
			continue;
		}
		assert_int_equal(said.code, 7);
		assert_string_equal(seen.args, "[a]");
		assert_string_equal(seen.output, "json");
		assert_string_equal(seen.selector, "x=y");
		assert_string_equal(seen.ns, "team");
		assert_true(seen.watch);
		said_release(&said);
	}
}

static void a_switch_may_be_given_as_true_or_false(void **state)
{
	struct said said = run("probe a --watch=false");

	assert_false(seen.watch);
	said_release(&said);
	said = run("probe a --watch=true -A");
	assert_true(seen.watch);
	assert_true(seen.all);
	said_release(&said);
	assert_usage("probe a --watch=maybe", "--watch takes true or false, not 'maybe'");
	said = run("probe a --watch --watch=false");
	assert_false(seen.watch);
	said_release(&said);
}

static void two_dashes_end_the_flags(void **state)
{
	struct said said = run("probe -- -o");

	assert_string_equal(seen.args, "[-o]");
	said_release(&said);
}

static void mistakes_are_named_with_where_to_read_on(void **state)
{
	assert_usage("prob a", "unknown verb 'prob': did you mean 'probe'?");
	assert_usage("secrt", "unknown verb 'secrt'\n");
	assert_usage("apply",
		     "unknown verb 'apply': 'holdfast run FILE' runs a job on this machine, "
		     "and 'kubectl apply -f FILE' creates it on a cluster");
	assert_usage("probe", "an argument is missing; usage: holdfast probe WHAT");
	assert_usage("probe a b c", "unexpected argument 'c'; usage: holdfast probe WHAT");
	assert_usage("probe a --nope", "unknown flag '--nope'");
	assert_usage("probe a --selctor=x", "did you mean '--selector'?");
	assert_usage("probe a -x", "unknown flag '-x'");
	assert_usage("probe a -o", "--output needs a value: --output FORMAT");
	assert_usage("probe a --color=pink", "auto, always or never");
	assert_usage("probe a -n Bad_NS", "--namespace 'Bad_NS'");
	assert_usage("probe a -n x -A", "not both");
	assert_usage("probe a --request-timeout=x", "--request-timeout: 'x'");
	assert_usage("probe a --nope", "See 'holdfast probe --help'.");
}

static void help_lists_verbs_in_groups_but_hidden_ones(void **state)
{
	struct said said = run("--help");
	const char *examples = strstr(said.out, "Examples:\n  holdfast run ");
	const char *look = strstr(said.out, "\nLook:\n  probe      Probe things\n");
	const char *cluster = strstr(said.out, "\nOn a cluster:\n  server     Serve things\n");

	assert_int_equal(said.code, HF_EXIT_OK);
	assert_non_null(examples);
	assert_true(examples < look && look < cluster);
	assert_null(strstr(said.out, "secret"));
	assert_non_null(strstr(said.out, "@latest, the newest job"));
	assert_non_null(strstr(said.out, "--color WHEN"));
	assert_non_null(strstr(said.out, "always or never [auto]\n"));
	said_release(&said);
	said = run("");
	assert_int_equal(said.code, HF_EXIT_USAGE);
	assert_string_equal(said.out, "");
	assert_non_null(strstr(said.err, "\nLook:\n"));
	said_release(&said);
}

static void help_of_a_verb_begins_with_examples(void **state)
{
	struct said said = run("probe --help");
	const char *examples = strstr(said.out, "Examples:");

	assert_int_equal(said.code, HF_EXIT_OK);
	assert_int_equal(seen.runs, 0);
	assert_non_null(examples);
	assert_true(examples < strstr(said.out, "Flags:"));
	assert_non_null(strstr(said.out, "-o, --output FORMAT"));
	assert_non_null(strstr(said.out, "--kubeconfig FILE"));
	assert_non_null(strstr(said.out, "\nJOB is NAME, KIND/NAME or @latest"));
	said_release(&said);
}

static void errors_have_the_exit_codes_of_the_header(void **state)
{
	static const struct {
		int code, exit_code;
	} cases[] = {
		{HF_E_NOT_FOUND, HF_EXIT_FAILED},        {HF_E_CONFLICT, HF_EXIT_FAILED},
		{HF_E_UNAVAILABLE, HF_EXIT_UNREACHABLE}, {HF_E_UNAUTHORIZED, HF_EXIT_UNREACHABLE},
		{HF_E_TIMEOUT, HF_EXIT_TIMEOUT},         {HF_E_NO_SPACE, HF_EXIT_INTERNAL},
		{HF_E_CANCELED, HF_EXIT_INTERRUPTED},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		char *text = NULL;
		size_t len;
		struct hf_cli cli = {.err = open_memstream(&text, &len)};
		struct hf_error err;
		(void)hf_error_set(&err, cases[i].code, "no such thing");
		assert_int_equal(hf_cli_fail(&cli, &err), cases[i].exit_code);
		assert_int_equal(fclose(cli.err), 0);
		assert_string_equal(text, "holdfast: no such thing\n");
		free(text);
	}
}

static void help_may_be_asked_in_either_order(void **state)
{
	struct said said = run("help probe");
	struct said other = run("probe --help");

	assert_int_equal(said.code, HF_EXIT_OK);
	assert_string_equal(said.out, other.out);
	said_release(&said);
	said_release(&other);
	said = run("help nope");
	assert_int_equal(said.code, HF_EXIT_USAGE);
	said_release(&said);
}

static void what_is_wrong_is_shown_without_control_characters(void **state)
{
	struct said said = run("probe a --no\033[2J");

	assert_null(strchr(said.err, '\033'));
	assert_non_null(strstr(said.err, "unknown flag '--no?[2J'"));
	said_release(&said);
}

static void no_server_is_code_3_and_the_verb_does_not_run(void **state)
{
	struct said said;

	connect_code = HF_E_NOT_FOUND; /* the code for a missing kubeconfig */
	said = run("probe a");
	connect_code = 0;
	assert_int_equal(said.code, HF_EXIT_UNREACHABLE);
	assert_int_equal(seen.runs, 0);
	assert_string_equal(said.err, "holdfast: no server\n");
	said_release(&said);
}

static void output_that_cannot_be_written_is_a_failure(void **state)
{
	static const struct hf_cli_verb *const *const tables[] = {verbs, NULL};
	static const char *const argv[] = {"holdfast", "probe", "--help"};
	char *text = NULL;
	size_t len;
	struct hf_cli cli = {.ns = hf_xstrdup("default"), .connect = connect_probe};

	cli.out = fopen("/dev/full", "w");
	assert_non_null(cli.out);
	cli.err = open_memstream(&text, &len);
	assert_int_equal(hf_cli_main(&cli, tables, 3, argv), HF_EXIT_FAILED);
	(void)fclose(cli.out);
	assert_int_equal(fclose(cli.err), 0);
	assert_string_equal(
		text,
		"holdfast: part of the output is lost: standard output cannot be written (is its disk full?)\n");
	free(text);
	free(cli.ns);
}

static void as_a_plugin_of_kubectl_it_calls_itself_so(void **state)
{
	static const struct hf_cli_verb *const *const tables[] = {verbs, NULL};
	static const char *const argv[] = {"/usr/bin/kubectl-holdfast", "probe", "--help"};
	char *out = NULL, *text = NULL;
	size_t len, err_len;
	struct hf_cli cli = {.ns = hf_xstrdup("default"), .connect = connect_probe};

	cli.out = open_memstream(&out, &len);
	cli.err = open_memstream(&text, &err_len);
	assert_int_equal(hf_cli_main(&cli, tables, 3, argv), HF_EXIT_OK);
	cli.n_flags = 0;
	assert_int_equal(hf_cli_main(&cli, tables, 2, argv), HF_EXIT_USAGE);
	assert_int_equal(fclose(cli.out), 0);
	assert_int_equal(fclose(cli.err), 0);
	assert_non_null(strstr(out, "  kubectl holdfast probe a\n"));
	assert_non_null(strstr(out, "Usage: kubectl holdfast probe WHAT"));
	assert_non_null(strstr(text, "See 'kubectl holdfast probe --help'."));
	free(out);
	free(text);
	free(cli.ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verb_gets_its_words_and_returns_its_code),
		cmocka_unit_test(each_verb_has_its_style_of_flags),
		cmocka_unit_test(global_flags_may_stand_before_the_verb),
		cmocka_unit_test(flags_stand_anywhere_and_in_every_form),
		cmocka_unit_test(a_switch_may_be_given_as_true_or_false),
		cmocka_unit_test(two_dashes_end_the_flags),
		cmocka_unit_test(mistakes_are_named_with_where_to_read_on),
		cmocka_unit_test(help_lists_verbs_in_groups_but_hidden_ones),
		cmocka_unit_test(help_of_a_verb_begins_with_examples),
		cmocka_unit_test(errors_have_the_exit_codes_of_the_header),
		cmocka_unit_test(help_may_be_asked_in_either_order),
		cmocka_unit_test(what_is_wrong_is_shown_without_control_characters),
		cmocka_unit_test(no_server_is_code_3_and_the_verb_does_not_run),
		cmocka_unit_test(output_that_cannot_be_written_is_a_failure),
		cmocka_unit_test(as_a_plugin_of_kubectl_it_calls_itself_so),
	};

	return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
