/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Chooses the API server of a verb from flags, $KUBECONFIG and the folder of `holdfast up`, and
 * opens the store. Verbs that only read can open a kept run instead. */
#include "app/connect.h"

#include "app/kept_store.h"
#include "app/plane.h"
#include "app/up_folder.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/kube.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Checks the kubeconfig of a `holdfast up` that has ended: no server answers there. Other kubeconfigs pass. */
static int check_up_runs(const char *path, struct hf_error *err)
{
	const char *slash = strrchr(path, '/');
	HF_AUTOFREE char *dir = slash != NULL ? hf_xstrndup(path, (size_t)(slash - path)) : NULL;
	HF_AUTOFREE char *lock = hf_xasprintf("%s/up.pid", hf_str_or(dir, ""));
	struct hf_error ignored;
	bool running = true;
	pid_t pid;

	if (dir == NULL || !hf_streq(slash, "/kubeconfig") || access(lock, F_OK) != 0 ||
	    hf_up_folder_is_locked(dir, &running, &pid, &ignored) != 0 || running)
		return 0;
	return hf_error_set(
		err, HF_E_UNAVAILABLE,
		"no server runs: '%s' is of a 'holdfast up' that has ended; start it again", path);
}

/* Loads the kubeconfig: --kubeconfig, else $KUBECONFIG, else the file of this user's 'holdfast up'. */
static int find_config(const struct hf_cli *cli, struct hf_kube_config *ret_config,
		       struct hf_error *err)
{
	const char *given = hf_cli_flag(cli, "kubeconfig"), *env = getenv("KUBECONFIG");
	struct hf_kube_load load = {
		.paths = given,
		.required = given != NULL,
		.context = hf_cli_flag(cli, "context"),
		.cluster = hf_cli_flag(cli, "cluster"),
		.user = hf_cli_flag(cli, "user"),
	};
	bool local = hf_cli_has(cli, "local");
	HF_AUTOFREE char *dir = NULL;
	HF_AUTOFREE char *path = NULL;
	int rc;

	if (local) {
		load.paths = NULL;
		load.required = false;
	} else if (given == NULL && !hf_str_is_empty(env)) {
		load.paths = env;
	}
	if (load.paths != NULL) {
		rc = check_up_runs(load.paths, err);
		return rc != 0 ? rc : hf_kube_config_load(&load, ret_config, err);
	}
	rc = hf_plane_default_dir(&dir, err);
	if (rc != 0)
		return rc;
	path = hf_xasprintf("%s/kubeconfig", dir);
	if (access(path, F_OK) != 0)
		return hf_error_set(
			err, HF_E_UNAVAILABLE, "%s",
			local ? "--local: 'holdfast up' is not running on this machine; start it first"
			      : "no server to connect to: start 'holdfast up', or name a "
				"cluster with --kubeconfig or $KUBECONFIG");
	rc = check_up_runs(path, err);
	if (rc != 0)
		return rc;
	load.paths = path;
	load.required = true;
	return hf_kube_config_load(&load, ret_config, err);
}

/* ---- kept runs ----------------------------------------------------------------------------- */

/* True if a flag, $KUBECONFIG or a running `holdfast up` names a server. */
static bool has_server(const struct hf_cli *cli, const char *dir)
{
	static const char *const flags[] = {"kubeconfig", "context", "cluster", "user", "local"};
	struct hf_error err;
	bool running = false;
	pid_t pid;

	for (size_t i = 0; i < HF_ARRAY_LEN(flags); i++)
		if (hf_cli_has(cli, flags[i]))
			return true;
	if (!hf_str_is_empty(getenv("KUBECONFIG")))
		return true;
	return hf_up_folder_is_locked(dir, &running, &pid, &err) == 0 && running;
}

bool hf_connect_prefers_server(const struct hf_cli *cli)
{
	HF_AUTOFREE char *dir = NULL;
	struct hf_error err;

	return hf_plane_default_dir(&dir, &err) == 0 && has_server(cli, dir);
}

static void note_unfinished(const struct hf_cli *cli, const struct hf_kept_run *run)
{
	bool follows = run->alive && hf_cli_has(cli, "follow");

	if (run->ended == HF_TIME_NONE && !follows)
		fprintf(cli->err,
			run->alive
				? "holdfast: run %s still runs; its state here is about a "
				  "second old\n"
				: "holdfast: the process of run %s was killed, and its ranks ended "
				  "soon after it; this is the last state that it saved\n",
			run->id);
}

static void take_end(struct hf_cli *cli, const struct hf_kept_run *run)
{
	bool early = !run->alive && !hf_str_is_empty(run->end);

	free(cli->kept_end);
	free(cli->kept_state);
	cli->kept_over = !run->alive;
	cli->kept_end = early ? hf_xstrdup(run->end) : NULL;
	cli->kept_state = early ? hf_xstrdup(run->state) : NULL;
	cli->kept_started = run->started;
	cli->kept_ended = run->ended;
}

/* Called when the process of a run that is followed has ended. */
static void on_kept_over(void *arg)
{
	struct hf_cli *cli = arg;
	HF_AUTOFREE char *dir = NULL;
	HF_AUTO_KEPT_RUNS runs = {.n = 0};
	struct hf_error err;

	if (hf_plane_default_dir(&dir, &err) != 0)
		return;
	hf_kept_runs_list(dir, &runs);
	for (size_t i = 0; i < runs.n; i++)
		if (hf_streq(runs.items[i].id, cli->kept_id))
			take_end(cli, &runs.items[i]);
}

/* Opens the run that the first argument names. The store has this one job, so the argument becomes
 * @latest. */
static int open_kept_run(struct hf_cli *cli, const struct hf_kept_run *run, struct hf_error *err)
{
	int rc = cli->loop == NULL ? hf_loop_create(&cli->loop, err) : 0;

	if (rc == 0)
		rc = hf_kept_store_open(cli->loop, run, &cli->kept, &cli->store, err);
	if (rc != 0)
		return rc;
	note_unfinished(cli, run);
	take_end(cli, run);
	free(cli->kept_id);
	cli->kept_id = hf_xstrdup(run->id);
	if (run->alive && hf_cli_has(cli, "follow"))
		hf_kept_store_follow(cli->kept, on_kept_over, cli);
	free(cli->kept_notes);
	cli->kept_notes = hf_xstrdup(run->notes);
	free(cli->ns);
	cli->ns = hf_xstrdup(run->ns);
	cli->args[0] = "@latest";
	return 0;
}

/* Opens a kept run if the first argument names one. Sets *ret_opened. */
static int try_kept_run(struct hf_cli *cli, bool *ret_opened, struct hf_error *err)
{
	const char *word = cli->n_args > 0 ? cli->args[0] : "";
	bool number = hf_kept_runs_is_number(word);
	HF_AUTOFREE char *dir = NULL;
	HF_AUTO_KEPT_RUNS runs = {.n = 0};
	const struct hf_kept_run *run;
	struct hf_error ignored;

	*ret_opened = false;
	cli->asked_kept = number;
	if (number && !cli->verb->reads_kept)
		return hf_error_set(
			err, HF_E_INVALID,
			"%s is a kept run, which has ended: '%s' needs a job on a server", word,
			cli->verb->name);
	if (!cli->verb->reads_kept || hf_str_is_empty(word) ||
	    hf_plane_default_dir(&dir, &ignored) != 0 || (!number && has_server(cli, dir)))
		return 0;
	hf_kept_runs_list(dir, &runs);
	run = hf_kept_runs_find(&runs, word);
	if (run == NULL && !number && runs.n == 0)
		return 0;
	cli->asked_kept = true;
	if (run == NULL)
		return hf_kept_runs_missing(&runs, word, err);
	*ret_opened = true;
	return open_kept_run(cli, run, err);
}

int hf_connect(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err)
{
	struct hf_kube_config config;
	bool opened;
	int rc;

	if (cli->store != NULL) {
		*ret_store = cli->store;
		return 0;
	}
	rc = try_kept_run(cli, &opened, err);
	if (rc == 0 && opened)
		*ret_store = cli->store;
	if (rc != 0 || opened)
		return rc;
	rc = find_config(cli, &config, err);
	if (rc != 0)
		return rc;
	if (!hf_str_is_empty(config.warning))
		fprintf(cli->err, "holdfast: warning: %s\n", config.warning);
	if (hf_cli_flag(cli, "namespace") == NULL) {
		free(cli->ns);
		cli->ns = hf_xstrdup(config.ns);
	}
	if (cli->loop == NULL)
		rc = hf_loop_create(&cli->loop, err);
	if (rc == 0)
		rc = hf_kube_create(cli->loop, &config, &cli->store, err);
	hf_kube_config_release(&config);
	if (rc == 0)
		*ret_store = cli->store;
	return rc;
}

void hf_disconnect(struct hf_cli *cli)
{
	cli->store = hf_store_destroy(cli->store);
	cli->kept = hf_kept_store_close(cli->kept);
	cli->loop = hf_loop_destroy(cli->loop);
}
