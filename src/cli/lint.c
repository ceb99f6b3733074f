/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast lint: checks manifests with the rules of an API server, without a server. */
#include "cli/verbs_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/job_manifest.h"
#include "cli/references.h"
#include "cli/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 10000 /* of one folder */

struct linting {
	struct hf_cli *cli;
	size_t n_checked;
	/* There is one file, so objects that it does not have are missing; with several files, the
	 * user may give them to `run` together. */
	bool alone;
	bool in_folder; /* the file was found in a folder, not named by the user */
};

static void print_passed(void *arg, const char *file, const struct hf_json *object, bool known)
{
	const struct linting *linting = arg;
	FILE *out = linting->cli->out;

	hf_text_print_safe(out, file);
	fputs(": ", out);
	hf_text_print_safe(out, hf_json_path_str(object, "kind", NULL));
	fputs(" '", out);
	hf_text_print_safe(out, hf_str_or(hf_json_path_str(object, "metadata", "name", NULL), ""));
	fputs(known ? "' is not a training job, so it is not checked\n"
		    : "' is of a kind that Holdfast does not know, so it is not checked\n",
	      out);
}

/* For the files of a folder, where other programs keep files too. */
static void print_foreign(void *arg, const char *file, const char *why)
{
	const struct linting *linting = arg;

	hf_text_print_safe(linting->cli->out, file);
	fprintf(linting->cli->out, ": %s, so it is not checked\n", why);
}

static void print_valid(FILE *out, const char *file, const char *kind, const char *name)
{
	hf_text_print_safe(out, file);
	fprintf(out, ": %s '%s' is valid\n", kind, name);
}

static bool is_above_zero(const struct hf_json *object, const char *key)
{
	return hf_json_i64(hf_json_get(object, key), 0) > 0;
}

/* The job wants its ranks to report: for a deadline of its progress, or for saves. */
static bool does_report(const struct hf_json *recovery)
{
	return is_above_zero(recovery, "progressDeadlineSeconds") ||
	       is_above_zero(hf_json_get(recovery, "checkpoint"), "graceSeconds");
}

static void advise(FILE *out, const char *file, const struct hf_json *job)
{
	const struct hf_json *recovery = hf_json_path(job, "spec", "runPolicy", "recovery", NULL);

	if (!does_report(recovery) || hf_json_get(recovery, "noProgressLimit") != NULL)
		return;
	hf_text_print_safe(out, file);
	fputs(": advice: spec.runPolicy.recovery.noProgressLimit: not set: restarts that bring no new step "
	      "go on without end; 3 ends the job after three of them in a row\n",
	      out);
}

static void print_checked(void *arg, const char *file, const struct hf_json *object)
{
	struct linting *linting = arg;

	print_valid(linting->cli->out, file, hf_json_path_str(object, "kind", NULL),
		    hf_str_or(hf_json_path_str(object, "metadata", "name", NULL), ""));
	linting->n_checked++;
}

static int lint_file(struct linting *linting, const char *path)
{
	struct hf_manifests set = {.passed = print_passed,
				   .foreign = linting->in_folder ? print_foreign : NULL,
				   .checked = print_checked,
				   .arg = linting,
				   .here = hf_cli_has(linting->cli, "local")};
	int rc = hf_manifests_add(linting->cli, path, &set);

	if (set.here &&
	    hf_references_missing(linting->cli, &set,
				  linting->alone ? "cannot run on this machine: " : "warning: ") >
		    0 &&
	    linting->alone) {
		hf_manifests_release(&set);
		return HF_EXIT_USAGE;
	}
	for (size_t i = 0; i < set.n_jobs; i++) {
		print_valid(linting->cli->out, path, set.jobs[i].framework->kind,
			    hf_doc_name(set.jobs[i].doc));
		advise(linting->cli->out, path, hf_doc_json(set.jobs[i].doc));
	}
	linting->n_checked += set.n_jobs;
	hf_manifests_release(&set);
	return rc;
}

/* ---- folders ------------------------------------------------------------------------------------ */

static int is_manifest(const struct dirent *entry)
{
	static const char *const ends[] = {".yaml", ".yml", ".json"};
	const char *dot = strrchr(entry->d_name, '.');

	for (size_t i = 0; i < HF_ARRAY_LEN(ends); i++)
		if (hf_streq(dot, ends[i]))
			return 1;
	return 0;
}

/* Checks the manifests of a folder, in the order of their names. Folders inside the folder are
 * skipped. */
static int lint_folder(struct linting *linting, const char *dir)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_manifest, alphasort), worst = HF_EXIT_OK;
	struct hf_error err;

	if (n < 0) {
		(void)hf_error_errno(&err, errno, "cannot read '%s'", dir);
		(void)hf_cli_fail(linting->cli, &err);
		return HF_EXIT_USAGE;
	}
	if (n == 0 || n > FILES_MAX)
		worst = hf_cli_usage(linting->cli, "'%s' has %s", dir,
				     n == 0 ? "no .yaml, .yml or .json file" : "too many files");
	for (int i = 0; i < n; i++) {
		HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, entries[i]->d_name);
		int rc = n <= FILES_MAX ? lint_file(linting, path) : 0;

		worst = rc != 0 ? rc : worst;
		free(entries[i]);
	}
	free(entries);
	return worst;
}

static int verb_lint(struct hf_cli *cli)
{
	struct linting linting = {.cli = cli};
	int worst = HF_EXIT_OK;

	for (int i = 0; i < cli->n_args; i++) {
		struct stat st;
		bool folder = stat(cli->args[i], &st) == 0 && S_ISDIR(st.st_mode);
		int rc;

		linting.in_folder = folder;
		linting.alone = cli->n_args == 1 && !folder;
		rc = folder ? lint_folder(&linting, cli->args[i])
			    : lint_file(&linting, cli->args[i]);

		worst = rc != 0 ? rc : worst;
	}
	if (worst == HF_EXIT_OK && linting.n_checked == 0)
		return hf_cli_usage(
			cli,
			"no training job, HealthPolicy or DeviceRollout was found, so nothing was checked");
	return worst;
}

static const struct hf_flag lint_flags[] = {
	{"local", 0, NULL, "also refuse what 'holdfast run' can never start on this machine", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_lint = {
	.name = "lint",
	.summary = "Check manifests of jobs, HealthPolicies and DeviceRollouts without a server",
	.usage = "FILE… | DIR…",
	.group = HF_CLI_RUN_HERE,
	.examples = "  holdfast lint job.yaml\n"
		    "  holdfast lint examples\n"
		    "  holdfast lint --local job.yaml\n"
		    "  holdfast lint policy.yaml rollout.yaml\n",
	.flags = lint_flags,
	.args_min = 1,
	.words = HF_CLI_WORDS_FILES,
	.args_max = -1,
	.run = verb_lint,
};
