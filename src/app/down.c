/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast down: ends every pod and the `holdfast up` that runs them. If no `up` runs, ends the
 * pods that it left: SIGTERM, then SIGKILL after each pod's grace. Stored objects stay on disk. */
#include "app/verbs.h"

#include "app/plane.h"
#include "app/sweep_runs.h"
#include "app/up_folder.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/kubelet.h"
#include "loop/process.h"

#include <signal.h>
#include <stdlib.h>

/*
 * 1. If an `up` holds the lock of the folder, send it SIGUSR1, then read the lock every 50 ms until it is
 *    free.
 * 2. If pods of the folder still run, start a plane that only ends them (only_drains), and wait for it.
 */

#define LOOK_AGAIN (50 * HF_MS)
/* Time for the plane of step 2 to become ready. A plane whose store refuses writes is never ready; it ends
 * the pods without that. */
#define READY_MAX (10 * HF_SECOND)

struct down {
	struct hf_cli *cli;
	struct hf_loop *loop;
	struct hf_timer *timer, *timeout;
	struct hf_plane *plane;
	const char *dir;
	size_t n_pods; /* pods that ran when `down` began */
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

static int wait_for_up(struct down *down)
{
	down->timer = hf_timer_create(down->loop, check_up, down);
	hf_timer_arm(down->timer, 0);
	hf_loop_run(down->loop);
	down->timer = hf_timer_destroy(down->timer);
	if (down->timed_out)
		return hf_error_set(&down->err, HF_E_TIMEOUT,
				    "'holdfast up' has not ended within --timeout; it is still "
				    "ending its pods in the background");
	return down->err.code;
}

/* ---- pods without an `up` -------------------------------------------------------------------- */

static void on_drained(void *arg)
{
	stop_loop(arg);
}

static void drain_pods(void *arg)
{
	struct down *down = arg;

	hf_timer_disarm(down->timer);
	hf_plane_stop(down->plane, HF_TIME_NONE, on_drained, down);
}

static void on_ready(void *arg, int code HF_UNUSED, const char *message HF_UNUSED)
{
	drain_pods(arg);
}

/* Ends the pods as `up` would: with SIGTERM and the grace of each pod, and with their final statuses in
 * the store. */
static int drain_leftovers(struct down *down)
{
	const struct hf_plane_options options = {.loop = down->loop,
						 .dir = down->dir,
						 .only_drains = true,
						 .no_operator = true,
						 .gpus = "none",
						 .network = HF_KUBELET_NETWORK_HOST,
						 .ready = on_ready,
						 .arg = down};
	int rc = hf_plane_create(&options, &down->plane, &down->err);

	if (rc != 0)
		return rc;
	down->timer = hf_timer_create(down->loop, drain_pods, down);
	hf_timer_arm(down->timer, READY_MAX);
	hf_loop_run(down->loop);
	down->timer = hf_timer_destroy(down->timer);
	down->plane = hf_plane_destroy(down->plane);
	return 0;
}

/* Ends the pods of the folder, after the `up` that ran them has ended. */
static int end_leftovers(struct down *down)
{
	HF_AUTOFREE char *node = hf_xasprintf("%s/node", down->dir);
	size_t left = hf_kubelet_count_running(node);
	int rc = left > 0 ? drain_leftovers(down) : 0;

	if (rc == HF_E_CONFLICT)
		return rc;
	if (down->timed_out)
		return hf_error_set(&down->err, HF_E_TIMEOUT,
				    "pods have not ended within --timeout: %zu still run, and have "
				    "got SIGTERM; 'holdfast down' again ends them",
				    hf_kubelet_count_running(node));
	/* Without its store, a plane cannot know the grace of the pods. */
	if (rc != 0)
		fprintf(down->cli->err,
			"holdfast: %zu pod%s killed without SIGTERM, because the store of the plane "
			"cannot be opened: %s\n",
			left, left > 1 ? "s were" : " was", down->err.text);
	return hf_kubelet_kill_leftovers(node, &down->err);
}

static int end_all(struct down *down, hf_time timeout, struct hf_error *err)
{
	HF_AUTOFREE char *node = hf_xasprintf("%s/node", down->dir);
	int rc = hf_loop_create(&down->loop, err);

	if (rc != 0)
		return rc;
	down->n_pods = hf_kubelet_count_running(node);
	down->timeout = hf_timer_create(down->loop, on_timeout, down);
	if (timeout > 0)
		hf_timer_arm(down->timeout, timeout);
	rc = wait_for_up(down);
	if (rc == 0)
		rc = end_leftovers(down);
	*err = down->err;
	down->timeout = hf_timer_destroy(down->timeout);
	down->loop = hf_loop_destroy(down->loop);
	return rc;
}

/* ---- */

static void print_end(const struct down *down)
{
	FILE *out = down->cli->out;

	fputs(down->signalled ? "stopped" : "'holdfast up' was not running", out);
	if (down->n_pods > 0)
		fprintf(out, "; %zu pod%s ended\n", down->n_pods,
			down->n_pods > 1 ? "s were" : " was");
	else
		fputs(down->signalled ? "\n" : "; no pods of it are left\n", out);
	if (!down->signalled && down->n_pods == 0)
		return;
	fprintf(out,
		"jobs and logs stay in %s: 'holdfast up%s%s' goes on with them, and "
		"removing the folder forgets them\n",
		down->dir, hf_cli_has(down->cli, "data-dir") ? " --data-dir " : "",
		hf_cli_has(down->cli, "data-dir") ? down->dir : "");
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
	swept = hf_sweep_runs(dir, HF_SWEEP_WAIT_MS);
	if (swept > 0)
		fprintf(cli->out, "ended the pods of %zu killed 'holdfast run' process%s\n", swept,
			swept > 1 ? "es" : "");
	print_end(&down);
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
