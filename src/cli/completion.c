/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Shell completion. `holdfast completion SHELL` prints a script for the shell (completion_scripts.c). The script calls the
 * hidden verb `holdfast __complete -- WORDS`. The cursor is at the last word. The verb prints a line for each word that fits:
 * the word, a tab and a description. The line ":files" asks the shell for names of files.
 *
 * All words come from the tables of verbs and flags, from the server and from the kept runs. Nothing is printed on an
 * error: a shell has no place for it.
 */
#include "cli/completion_internal.h"
#include "cli/verbs_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/request.h"
#include "cli/text.h"
#include "framework/framework.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

#define SERVER_SPAN (2 * HF_SECOND) /* a person waits for the answer */
#define NAMES_MAX 1000 /* limit of the names of objects that the server offers for one word */
#define LINE_BYTES_MAX 512

/* The command line under completion. */
struct line {
	struct hf_cli *cli;
	const struct hf_cli_verb *verb; /* NULL: no verb yet */
	const char *current;            /* the word under the cursor */
	const char *prefix;             /* "--output=" of "--output=js"; else "" */
	const char *first; /* the first word that is not a flag; NULL: all words are flags */
	int n_words; /* number of arguments behind the verb, without the word under the cursor */
	bool over;   /* flags have ended: the words are a program's, or stand behind "--" */
};

/* Prints the word as a completion if it begins with the word under the cursor. */
static void offer_word(const struct line *line, const char *word, const char *description)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(LINE_BYTES_MAX);

	if (!hf_str_has_prefix(word, line->current))
		return;
	hf_text_add_clean(&text, word, strlen(word), line->cli->utf8);
	fprintf(line->cli->out, "%s%s", line->prefix, text.data);
	hf_strbuf_clear(&text);
	hf_text_add_clean(&text, description, strlen(description), line->cli->utf8);
	fprintf(line->cli->out, "%s%s\n", text.len > 0 ? "\t" : "", text.data);
}

static void offer_all(const struct line *line, const char *const *words)
{
	for (; *words != NULL; words++)
		offer_word(line, *words, "");
}

static void offer_files(const struct line *line)
{
	fputs(":files\n", line->cli->out);
}

/* ---- names from the server ------------------------------------------------------------------- */

static bool connect_server(const struct line *line)
{
	struct hf_cli *cli = line->cli;
	struct hf_error err;

	cli->request_timeout = SERVER_SPAN;
	cli->n_args = 0;
	return cli->store != NULL || cli->connect(cli, &cli->store, &err) == 0;
}

/* Offers the names of the objects of a resource. Offers nothing if the server cannot be asked. */
static void list_objects(const struct line *line, const struct hf_resource *resource,
			 struct hf_cli_reply *ret_reply)
{
	const struct hf_request request = {.verb = HF_VERB_LIST,
					   .resource = resource,
					   .ns = resource->namespaced ? line->cli->ns : NULL};
	struct hf_error err;

	*ret_reply = (struct hf_cli_reply){.object = NULL};
	if (!connect_server(line) || hf_cli_request(line->cli, &request, ret_reply, &err) != 0)
		*ret_reply = (struct hf_cli_reply){.object = NULL};
	else if (ret_reply->n_items > NAMES_MAX)
		ret_reply->n_items = NAMES_MAX;
}

static void offer_objects(const struct line *line, const struct hf_resource *resource,
			  const char *before)
{
	HF_AUTO_CLI_REPLY reply = {.object = NULL};

	list_objects(line, resource, &reply);
	for (size_t i = 0; i < reply.n_items; i++) {
		HF_AUTOFREE char *word = hf_xasprintf("%s%s", before, hf_doc_name(reply.items[i]));
		const char *state = hf_json_path_str(
			hf_job_last_condition(hf_doc_json(reply.items[i])), "type", NULL);

		offer_word(line, word, hf_str_or(state, ""));
	}
}

static void offer_run(void *arg, const char *name, const char *description)
{
	offer_word(arg, name, description);
}

static void offer_jobs(struct line *line)
{
	const char *slash = strchr(line->current, '/');
	HF_AUTOFREE char *kind =
		slash != NULL ? hf_xstrndup(line->current, (size_t)(slash - line->current)) : NULL;
	HF_AUTOFREE char *before = slash != NULL ? hf_xasprintf("%s/", kind) : NULL;
	const struct hf_framework *framework = slash != NULL ? hf_framework_by_name(kind) : NULL;
	bool reads_kept = line->verb->reads_kept || line->verb->words == HF_CLI_WORDS_RUNS;

	if (slash != NULL && framework != NULL)
		offer_objects(line, hf_cli_resource_of(framework), before);
	if (slash != NULL)
		return;
	offer_word(line, "@latest", "the newest job");
	if (reads_kept && line->cli->each_run != NULL)
		line->cli->each_run(offer_run, line);
	for (size_t i = 0; line->verb->connects && hf_frameworks[i] != NULL; i++)
		offer_objects(line, hf_cli_resource_of(hf_frameworks[i]), "");
}

static void offer_nodes(const struct line *line)
{
	if (strchr(line->current, '/') == NULL)
		offer_word(line, "node/", "a node");
	else if (hf_str_has_prefix(line->current, "node/"))
		offer_objects(line, &hf_nodes, "node/");
}

static void offer_rollouts(const struct line *line)
{
	if (strchr(line->current, '/') == NULL)
		offer_word(line, "rollout/", "a rollout of a driver");
	else if (hf_str_has_prefix(line->current, "rollout/"))
		offer_objects(line, &hf_devicerollouts, "rollout/");
}

static void offer_acts(const struct line *line)
{
	if (strchr(line->current, '/') == NULL)
		offer_word(line, "remediation/", "an act that mends a node");
	else if (hf_str_has_prefix(line->current, "remediation/"))
		offer_objects(line, &hf_remediations, "remediation/");
}

/* Completes `get`: the first argument is a kind, the others are names of objects of this kind. */
static void offer_kinds(const struct line *line)
{
	const struct hf_resource *resource =
		line->n_words > 0 ? hf_resource_by_word(line->first) : NULL;

	if (line->n_words == 0) {
		offer_all(line, hf_cli_kinds);
		for (size_t i = 0; hf_frameworks[i] != NULL; i++)
			offer_word(line, hf_frameworks[i]->plural, hf_frameworks[i]->kind);
	} else if (resource != NULL) {
		offer_objects(line, resource, "");
	} else if (hf_str_has_prefix(line->first, "job")) {
		for (size_t i = 0; hf_frameworks[i] != NULL; i++)
			offer_objects(line, hf_cli_resource_of(hf_frameworks[i]), "");
	}
}

/* ---- verbs and flags ------------------------------------------------------------------------- */

static void offer_verbs(const struct line *line)
{
	for (const struct hf_cli_verb *const *const *tables = line->cli->tables; *tables != NULL;
	     tables++)
		for (const struct hf_cli_verb *const *verb = *tables; *verb != NULL; verb++)
			if (!(*verb)->hidden)
				offer_word(line, (*verb)->name, (*verb)->summary);
	offer_word(line, "help", "Show the help of a verb");
}

static void offer_table(const struct line *line, const struct hf_flag *table)
{
	for (; table != NULL && table->name != NULL; table++) {
		HF_AUTOFREE char *word = hf_xasprintf("--%s", table->name);

		offer_word(line, word, table->help);
	}
}

static void offer_flags(const struct line *line)
{
	bool connects = line->verb == NULL || line->verb->connects;

	offer_table(line, line->verb != NULL ? line->verb->flags : NULL);
	if (line->verb != NULL && line->verb->style == HF_FLAGS_COMMAND)
		return;
	offer_table(line, connects ? hf_cli_server_flags : NULL);
	offer_table(line, hf_cli_global_flags);
}

/* Offers the values of a flag, if the flag has a fixed list or names objects. */
static void offer_values(const struct line *line, const struct hf_flag *flag)
{
	static const struct {
		const char *flag;
		const char *words[7];
	} known[] = {
		{"color", {"auto", "always", "never"}},
		{"rung",
		 {"reset-device", "reboot", "restart-process", "restart-plugin", "external",
		  "person"}},
		{"progress", {"auto", "plain"}},
		{"dry-run", {"server", "none"}},
		{"gpus", {"all", "none"}},
		{"sort-by", {"state", "name", "restarts", "progress", "speed"}},
		{"for", {"succeeded", "running", "suspended", "failed", "delete"}},
	};
	static const char *const formats[] = {"json", "yaml", "wide", "name", "table", NULL};

	if (hf_streq(flag->value, "FILE") || hf_streq(flag->value, "FOLDER") ||
	    hf_streq(flag->value, "DIR"))
		offer_files(line);
	if (hf_streq(flag->name, "cancel"))
		offer_objects(line, &hf_remediations, "");
	if (hf_streq(flag->name, "namespace"))
		offer_objects(line, &hf_namespaces, "");
	if (hf_streq(flag->value, "FORMAT"))
		for (size_t i = 0; formats[i] != NULL; i++)
			if (strstr(flag->help, formats[i]) != NULL)
				offer_word(line, formats[i], "");
	/* `get --sort-by` takes a path instead of a word. */
	for (size_t i = 0; i < HF_ARRAY_LEN(known); i++)
		if (hf_streq(flag->name, known[i].flag) && !hf_streq(flag->value, "PATH"))
			offer_all(line, known[i].words);
}

static void offer_arguments(struct line *line)
{
	static const char *const shells[] = {"bash", "fish", "zsh", NULL};
	static const char *const checks[] = {"migrate", NULL};
	bool full = line->verb->args_max >= 0 && line->n_words >= line->verb->args_max;

	if (line->over || (line->verb->words == HF_CLI_WORDS_FILES && !full)) {
		offer_files(line);
		return;
	}
	if (full)
		return;
	switch (line->verb->words) {
	case HF_CLI_WORDS_NODES:
		offer_nodes(line);
		offer_rollouts(line);
		offer_jobs(line);
		break;
	case HF_CLI_WORDS_ACTS:
		offer_acts(line);
		offer_rollouts(line);
		offer_jobs(line);
		break;
	case HF_CLI_WORDS_MEND: offer_objects(line, &hf_nodes, ""); break;
	case HF_CLI_WORDS_JOBS:
	case HF_CLI_WORDS_RUNS: offer_jobs(line); break;
	case HF_CLI_WORDS_KINDS: offer_kinds(line); break;
	case HF_CLI_WORDS_SHELLS: offer_all(line, shells); break;
	case HF_CLI_WORDS_CHECK: offer_all(line, checks); break;
	default: break;
	}
}

/* ---- the line -------------------------------------------------------------------------------- */

static const struct hf_flag *find_flag(const struct hf_flags *flags, const char *name, size_t len)
{
	for (size_t i = 0; i < HF_FLAGS_TABLES_MAX; i++)
		for (const struct hf_flag *flag = flags->tables[i];
		     flag != NULL && flag->name != NULL; flag++) {
			bool is_letter = len == 2 && name[1] == flag->letter;
			bool is_name = len > 2 && hf_str_has_prefix(name, "--") &&
				       strlen(flag->name) == len - 2 &&
				       memcmp(name + 2, flag->name, len - 2) == 0;

			if (is_letter || is_name)
				return flag;
		}
	return NULL;
}

/* Takes one word that is not a flag: the verb, or an argument. */
static void take_word(struct line *line, struct hf_flags *flags, const char *word)
{
	if (line->verb == NULL) {
		line->verb = hf_cli_verb_by_name(line->cli, word);
		line->over = line->verb == NULL;
		if (line->verb != NULL)
			hf_cli_choose_flags(line->verb, flags);
		return;
	}
	line->first = line->n_words == 0 ? word : line->first;
	line->n_words++;
	if (line->verb->style == HF_FLAGS_COMMAND ||
	    (line->n_words == 1 && line->verb->takes_rest != NULL &&
	     line->verb->takes_rest(line->cli, word, flags->over)))
		line->over = true;
}

/* Reads the words before the word under the cursor. Returns the flag that waits for its value,
 * which is being typed; NULL: no flag waits for a value. */
static const struct hf_flag *read_line(struct line *line, struct hf_flags *flags)
{
	const char *last = flags->argc > 0 ? flags->argv[flags->argc - 1] : "";
	struct hf_flag_item item;
	struct hf_error err;
	int rc = 0;

	while (!line->over && (rc = hf_flags_next(flags, &item, &err)) > 0) {
		if (item.flag == NULL)
			take_word(line, flags, item.value);
		else if (line->cli->n_flags < HF_CLI_FLAGS_MAX)
			line->cli->flags[line->cli->n_flags++] = item;
	}
	line->over = line->over || flags->over;
	/* The reader stops at a flag without a value, or at an unknown flag. In the first case the
	 * word under the cursor is the value. */
	return rc < 0 && last[0] == '-' ? find_flag(flags, last, strlen(last)) : NULL;
}

/* Splits "--output=js" into the flag and the beginning of its value. NULL: the word under the
 * cursor does not have this form. */
static const struct hf_flag *split_current(struct line *line, const struct hf_flags *flags,
					   char **ret_prefix)
{
	const char *equals = strchr(line->current, '=');
	const struct hf_flag *flag;

	if (equals == NULL || !hf_str_has_prefix(line->current, "--"))
		return NULL;
	flag = find_flag(flags, line->current, (size_t)(equals - line->current));
	if (flag == NULL || flag->value == NULL)
		return NULL;
	*ret_prefix = hf_xstrndup(line->current, (size_t)(equals - line->current) + 1);
	line->prefix = *ret_prefix;
	line->current = equals + 1;
	return flag;
}

static void take_namespace(struct hf_cli *cli)
{
	const char *ns = hf_cli_flag(cli, "namespace");

	if (hf_str_is_empty(ns))
		return;
	free(cli->ns);
	cli->ns = hf_xstrdup(ns);
}

static int verb_complete(struct hf_cli *cli)
{
	struct line line = {.cli = cli, .current = "", .prefix = ""};
	struct hf_flags flags = {.tables = {hf_cli_global_flags, hf_cli_server_flags, NULL},
				 .argc = cli->n_args - 1,
				 .argv = cli->args};
	HF_AUTOFREE char *prefix = NULL;
	const struct hf_flag *flag;

	if (cli->n_args == 0)
		return HF_EXIT_OK;
	line.current = cli->args[cli->n_args - 1];
	flag = read_line(&line, &flags);
	take_namespace(cli);
	if (flag == NULL && !line.over)
		flag = split_current(&line, &flags, &prefix);
	if (flag != NULL)
		offer_values(&line, flag);
	else if (!line.over && line.current[0] == '-')
		offer_flags(&line);
	else if (line.verb != NULL)
		offer_arguments(&line);
	else if (!line.over || hf_streq(cli->args[0], "help"))
		offer_verbs(&line);
	return HF_EXIT_OK;
}

const struct hf_cli_verb hf_verb_complete = {
	.name = "__complete",
	.summary = "Print the words that fit at the end of a command line",
	.usage = "-- WORDS",
	.examples = "  holdfast __complete -- why ''\n",
	.group = HF_CLI_LOOK,
	.hidden = true,
	.style = HF_FLAGS_COMMAND,
	.args_max = -1,
	.run = verb_complete,
};

static int verb_completion(struct hf_cli *cli)
{
	const char *script = hf_completion_script(cli->args[0]);

	if (script == NULL)
		return hf_cli_usage(cli,
				    "there is no completion for '%s', but for bash, zsh and fish",
				    cli->args[0]);
	fputs(script, cli->out);
	return HF_EXIT_OK;
}

const struct hf_cli_verb hf_verb_completion = {
	.name = "completion",
	.summary = "Print the completion script for bash, zsh or fish",
	.usage = "bash|zsh|fish",
	.note = "The script completes verbs, flags, and the names of jobs, kept runs, nodes and namespaces.",
	.examples = "  source <(holdfast completion bash)\n"
		    "  holdfast completion zsh >~/.zsh/_holdfast\n"
		    "  holdfast completion fish >~/.config/fish/completions/holdfast.fish\n",
	.group = HF_CLI_LOOK,
	.words = HF_CLI_WORDS_SHELLS,
	.args_min = 1,
	.args_max = 1,
	.run = verb_completion,
};
