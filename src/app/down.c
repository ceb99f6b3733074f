/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast down: ends every pod and the `holdfast up` that runs them. If `up` was killed, ends
 * the pods that it left. Stored objects stay on disk. */
#include "app/verbs.h"

#include "app/up_folder.h"
#include "app/sweep_runs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/kubelet.h"
#include "loop/process.h"

#include <signal.h>
#include <stdlib.h>

/*
 * Sends SIGUSR1 to the `up` that holds the lock, then reads the lock every 50 ms until it is free.
 */

#define LOOK_AGAIN (50 * HF_MS)

struct down {
	struct hf_cli *cli;
	struct hf_loop *loop;
	struct hf_timer *timer, *timeout;
	struct hf_process *process;
	const char *dir;
	bool signalled, timed_out;
	struct hf_error err; /* code 0: none */
};

static void stop_loop(struct down *down)
{
	hf_loop_stop(down->loop);
}

/* Checks whether the `up` process still runs. The lock is free when the process has ended, not
 * before. */
static void check_up(void *arg)
{
	struct down *down = arg;
	struct hf_process_id id;
	bool running;
	pid_t pid;
	int rc = hf_up_folder_is_locked(down->dir, &running, &pid, &down->err);

	if (rc != 0 || !running) {
		stop_loop(down);
		return;
	}
	/* pid 0: the `up` process holds the lock, but is still starting and handles no signals
	 * yet. */
	if (!down->signalled && pid != 0 && hf_process_id_get(pid, &id, NULL) == 0) {
		rc = hf_process_id_kill(&id, SIGUSR1, &down->err);
		if (rc != 0 && rc != HF_E_NOT_FOUND) {
			stop_loop(down);
			return;
		}
		down->err = (struct hf_error){0};
		down->signalled = true;
	}
	hf_timer_arm(down->timer, LOOK_AGAIN);
}

static void on_timeout(void *arg)
{
	struct down *down = arg;

	down->timed_out = true;
	stop_loop(down);
}

static int wait_for_up(struct down *down, hf_time timeout)
{
	down->timer = hf_timer_create(down->loop, check_up, down);
	down->timeout = hf_timer_create(down->loop, on_timeout, down);
	hf_timer_arm(down->timer, 0);
	if (timeout > 0)
		hf_timer_arm(down->timeout, timeout);
	hf_loop_run(down->loop);
	hf_timer_destroy(down->timer);
	hf_timer_destroy(down->timeout);
	if (down->timed_out)
		return hf_error_set(&down->err, HF_E_TIMEOUT,
				    "'holdfast up' has not ended within --timeout; it is still "
				    "ending its pods in the background");
	return down->err.code;
}

static int end_all(struct down *down, hf_time timeout, struct hf_error *err)
{
	HF_AUTOFREE char *node = hf_xasprintf("%s/node", down->dir);
	int rc = hf_loop_create(&down->loop, err);

	if (rc != 0)
		return rc;
	rc = wait_for_up(down, timeout);
	*err = down->err;
	down->loop = hf_loop_destroy(down->loop);
	return rc != 0 ? rc : hf_kubelet_kill_leftovers(node, err);
}

static int verb_down(struct hf_cli *cli)
{
	struct down down = {.cli = cli};
	const char *timeout_text = hf_cli_flag(cli, "timeout");
	HF_AUTOFREE char *dir = NULL;
	struct hf_error err = {0};
	hf_time timeout = 0;
	size_t swept;

	if (timeout_text != NULL && hf_span_parse(timeout_text, &timeout, &err) != 0)
		return hf_cli_usage(cli, "--timeout: %s", err.text);
	if (hf_up_folder_path(hf_cli_flag(cli, "data-dir"), &dir, &err) != 0)
		return hf_cli_usage(cli, "%s", err.text);
	down.dir = dir;
	if (end_all(&down, timeout, &err) != 0)
		return hf_cli_fail(cli, &err);
	swept = hf_sweep_runs(dir);
	if (swept > 0)
		fprintf(cli->out, "ended the pods of %zu killed 'holdfast run' process%s\n", swept,
			swept > 1 ? "es" : "");
	fprintf(cli->out, "%s\n",
		down.signalled ? "stopped"
			       : "'holdfast up' was not running; no pods of it are left");
	if (down.signalled)
		fprintf(cli->out,
			"jobs and logs stay in %s: 'holdfast up%s%s' goes on with them, and "
			"removing the folder forgets them\n",
			dir, hf_cli_has(cli, "data-dir") ? " --data-dir " : "",
			hf_cli_has(cli, "data-dir") ? dir : "");
	return HF_EXIT_OK;
}

static const struct hf_flag down_flags[] = {
	{"data-dir", 0, "DIR", "folder of the 'holdfast up' to end",
	 "$HOLDFAST_DIR, else ~/.local/state/holdfast"},
	{"timeout", 0, "SPAN", "stop waiting after this time, such as 1m, with exit code 124",
	 "no limit"},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_down = {
	.name = "down",
	.summary = "End 'holdfast up' and all its pods; stored objects stay",
	.usage = "",
	.group = HF_CLI_RUN_HERE,
	.examples = "  holdfast down\n"
		    "  holdfast down --timeout 1m\n"
		    "  holdfast down --data-dir /tmp/plane\n",
	.flags = down_flags,
	.args_min = 0,
	.args_max = 0,
	.run = verb_down,
};
