/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Collects the variables that `run` passes to the ranks. */
#include "app/run_env.h"

#include "app/env_file.h"
#include "base/ascii.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* True for a variable of the shell that is never passed on: the kubelet sets it, or each pod has
 * its own. */
static bool is_reserved(const char *item)
{
	static const char *const names[] = {"PATH",
					    "HOME",
					    "USER",
					    "LOGNAME",
					    "LANG",
					    "LC_ALL",
					    "LC_CTYPE",
					    "TZ",
					    "LD_LIBRARY_PATH",
					    "PWD",
					    "OLDPWD",
					    "HOSTNAME",
					    "SHLVL",
					    "_",
					    "LD_PRELOAD",
					    "HOLDFAST_AGENT_SOCKET",
					    "HOLDFAST_POD_UID",
					    "HOLDFAST_HOSTS"};
	size_t len = strcspn(item, "=");

	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && strncmp(names[i], item, len) == 0)
			return true;
	return false;
}

static char **find_variable(const struct hf_run_env *env, const char *name, size_t len)
{
	for (size_t i = 0; i < env->n_all; i++)
		if (strncmp(env->all[i], name, len) == 0 && env->all[i][len] == '=')
			return &env->all[i];
	return NULL;
}

bool hf_run_env_has(const struct hf_run_env *env, const char *name)
{
	return find_variable(env, name, strlen(name)) != NULL;
}

/* Adds a variable, or replaces the variable of the same name. False: the environment has
 * HF_RUN_ENV_MAX variables. */
static bool put_variable(struct hf_run_env *env, const char *item)
{
	char **place = find_variable(env, item, strcspn(item, "="));

	if (place != NULL) {
		free(*place);
		*place = hf_xstrdup(item);
		return true;
	}
	if (env->n_all == HF_RUN_ENV_MAX)
		return false;
	env->all[env->n_all++] = hf_xstrdup(item);
	return true;
}

void hf_run_env_add(struct hf_run_env *env, const char *name, const char *value)
{
	HF_AUTOFREE char *item = hf_xasprintf("%s=%s", name, value);

	(void)put_variable(env, item);
}

/* ---- variables of the shell ------------------------------------------------------------------- */

/* True if the pattern matches the whole name; "*" stands for any number of letters. */
static bool matches_one(const char *name, const char *pattern)
{
	const char *star = NULL, *again = NULL;

	while (*name != '\0') {
		if (*pattern == '*') {
			star = pattern++;
			again = name;
		} else if (*pattern == *name) {
			pattern++;
			name++;
		} else if (star != NULL) {
			/* The match failed: let the last star match one letter more, and try
			 * again. */
			pattern = star + 1;
			name = ++again;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

/* True if the name matches one of the patterns "HF_*,WANDB_*". */
static bool matches_any(const char *name, const char *patterns)
{
	HF_AUTOFREE char *copy = hf_xstrdup(patterns);
	char *rest = copy, *pattern;

	while ((pattern = strsep(&rest, ",")) != NULL)
		if (matches_one(name, pattern))
			return true;
	return false;
}

static bool is_wanted(const struct hf_cli *cli, const char *name)
{
	for (size_t i = 0; i < cli->n_flags; i++)
		if (hf_streq(cli->flags[i].flag->name, "pass-env") &&
		    matches_any(name, cli->flags[i].value))
			return true;
	return false;
}

static int pass_shell(struct hf_cli *cli, bool whole, char *const *environ, struct hf_run_env *env)
{
	for (; *environ != NULL; environ++) {
		HF_AUTOFREE char *name = hf_xstrndup(*environ, strcspn(*environ, "="));

		if (strchr(*environ, '=') == NULL || name[0] == '\0' || is_reserved(*environ) ||
		    !(whole || is_wanted(cli, name)))
			continue;
		if (!put_variable(env, *environ))
			return hf_cli_usage(cli, "more than %d variables would be passed",
					    HF_RUN_ENV_MAX);
		env->n_passed++;
	}
	return 0;
}

/* ---- flags ------------------------------------------------------------------------------------- */

static bool is_name(const char *text, size_t len)
{
	if (len == 0 || hf_ascii_is_digit(text[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!hf_ascii_is_alnum(text[i]) && strchr("_.-", text[i]) == NULL)
			return false;
	return true;
}

/* Adds a variable. text: "NAME=value", or "NAME" for the value in the shell. what: the flag or the
 * line of the file, for messages. */
static int give_variable(struct hf_cli *cli, const char *text, const char *what,
			 struct hf_run_env *env)
{
	size_t len = strcspn(text, "=");
	HF_AUTOFREE char *item = NULL;

	if (!is_name(text, len))
		return hf_cli_usage(cli, "%s: '%.*s' cannot name a variable; write NAME=VALUE",
				    what, (int)(len < 80 ? len : 80), text);
	if (text[len] == '=') {
		item = hf_xstrdup(text);
	} else if (getenv(text) != NULL) {
		item = hf_xasprintf("%s=%s", text, getenv(text));
	} else {
		return hf_cli_usage(cli,
				    "%s: '%s' has no value here, and the shell has no such "
				    "variable; write %s=VALUE",
				    what, text, text);
	}
	if (env->n_given == HF_RUN_ENV_MAX || !put_variable(env, item))
		return hf_cli_usage(cli, "more than %d variables would be passed", HF_RUN_ENV_MAX);
	env->given[env->n_given++] = hf_steal(&item);
	return 0;
}

static int read_env_file(struct hf_cli *cli, const char *path, struct hf_run_env *env)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_RUN_ENV_FILE_BYTES_MAX);
	struct hf_env_item item = {.text = HF_STRBUF_INIT(HF_RUN_ENV_FILE_BYTES_MAX)};
	struct hf_env_file file;
	struct hf_error err;
	int rc = 0;

	if (hf_fs_read(path, &text, &err) != 0)
		return hf_cli_usage(cli, "--env-file: %s", err.text);
	if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL)
		return hf_cli_usage(cli, "--env-file: '%s' is not a text file", path);
	hf_env_file_begin(&file, text.data, text.len);
	do {
		bool wrong = hf_env_file_next(&file, &item, &err) != 0;
		HF_AUTOFREE char *what = hf_xasprintf("%s:%d", path, item.line);

		if (wrong)
			rc = hf_cli_usage(cli, "%s: %s", what, err.text);
		else if (item.text.len > 0)
			rc = give_variable(cli, item.text.data, what, env);
	} while (rc == 0 && item.text.len > 0);
	hf_strbuf_release(&item.text);
	return rc;
}

int hf_run_env_read(struct hf_cli *cli, bool whole, char *const *environ,
		    struct hf_run_env *ret_env)
{
	int rc;

	*ret_env = (struct hf_run_env){
		.given = hf_xcalloc(HF_RUN_ENV_MAX + 1, sizeof(char *)),
		/* Room for HF_RUN_ENV_MAX variables and for the few that `run` itself adds. */
		.all = hf_xcalloc(HF_RUN_ENV_MAX + 16, sizeof(char *)),
	};
	rc = pass_shell(cli, whole, environ, ret_env);
	for (size_t i = 0; rc == 0 && i < cli->n_flags; i++)
		if (hf_streq(cli->flags[i].flag->name, "env-file"))
			rc = read_env_file(cli, cli->flags[i].value, ret_env);
	for (size_t i = 0; rc == 0 && i < cli->n_flags; i++)
		if (hf_streq(cli->flags[i].flag->name, "env"))
			rc = give_variable(cli, cli->flags[i].value, "--env", ret_env);
	return rc;
}

void hf_run_env_release(struct hf_run_env *env)
{
	for (size_t i = 0; i < env->n_given; i++)
		free(env->given[i]);
	for (size_t i = 0; i < env->n_all; i++)
		free(env->all[i]);
	free(env->given);
	free(env->all);
	*env = (struct hf_run_env){.n_all = 0};
}
