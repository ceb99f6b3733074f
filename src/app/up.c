/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast up: runs the embedded plane as a cluster of one node, with its API on a loopback
 * address. */
#include "app/verbs.h"

#include "apiserver/apiserver.h"
#include "app/job_resources.h"
#include "app/local_gpus.h"
#include "app/local_page.h"
#include "app/up_folder.h"
#include "app/plane.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "http/server.h"
#include "loop/pipe.h"
#include "loop/process.h"
#include "store/resource.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The states of `up`:
 *
 *   starting ─ready─▶ serving ─SIGTERM, SIGINT─▶ over      (pods run on under their shims)
 *                             └─SIGUSR1─▶ draining ─▶ over (`down`: every pod is ended)
 */
enum up_state { UP_STARTING, UP_SERVING, UP_DRAINING, UP_OVER };

#define DEFAULT_LISTEN "127.0.0.1:7443"
#define STARTING_LOOK (200 * HF_MS)
/* time limit of the start; a node normally registers in a fraction of a second */
#define STARTING_MAX HF_MINUTE
#define NOTICES_MAX 16
/* A variable that marks the background process of --detach. */
#define DETACHED_ENV "HOLDFAST_UP_DETACHED"

struct up {
	struct hf_cli *cli;
	struct hf_loop *loop;
	struct hf_up_folder home;
	struct hf_plane *plane;
	struct hf_apiserver *server;
	struct hf_signal *sigint, *sigterm, *sigusr1;
	struct hf_timer *starting;
	int pods_max;
	hf_time started; /* monotonic */
	char *address;
	uint16_t port;
	enum up_state state;
	bool detached;
	int exit_code;
	/* Notices of the kubelet during the start. They are logged once the start is over. */
	char *notices[NOTICES_MAX];
	size_t n_notices;
};

/* ---- the end of the plane ----------------------------------------------------------------- */

static void end_up(struct up *up)
{
	up->state = UP_OVER;
	hf_loop_stop(up->loop);
}

static void on_drained(void *arg)
{
	struct up *up = arg;

	if (up->server != NULL)
		hf_apiserver_quiesce(up->server);
	end_up(up);
}

static void on_stop(void *arg, int signum)
{
	struct up *up = arg;

	hf_log(HF_LOG_INFO, "up", "stopping; pods keep running until 'holdfast down' ends them",
	       "signal", strsignal(signum), NULL);
	if (up->server != NULL)
		hf_apiserver_quiesce(up->server);
	end_up(up);
}

static void on_down(void *arg, int signum)
{
	struct up *up = arg;
	/* A second SIGUSR1 ends the pods without grace. */
	hf_time grace = up->state == UP_DRAINING ? 0 : HF_TIME_NONE;

	hf_log(HF_LOG_INFO, "up", "ending every pod, then stopping", NULL);
	/* The API answers until all pods have ended, so that clients can still read the
	 * objects. */
	up->state = UP_DRAINING;
	hf_plane_stop(up->plane, grace, on_drained, up);
}

static void log_notices(struct up *up)
{
	for (size_t i = 0; i < up->n_notices; i++) {
		hf_log(HF_LOG_WARN, "kubelet", up->notices[i], NULL);
		free(up->notices[i]);
	}
	up->n_notices = 0;
}

static void fail_up(struct up *up, const struct hf_error *err)
{
	/* Log the kubelet's notices, which may have the cause of the error. For a full disk, err
	 * itself has the cause. */
	if (err->code != HF_E_NO_SPACE)
		log_notices(up);
	up->exit_code = hf_cli_fail(up->cli, err);
	end_up(up);
}

/* Checks every 200 ms whether the start has failed. If the store refuses writes, the kubelet would
 * try to register the node for ever, so `up` ends with the store's error. */
static void on_starting(void *arg)
{
	struct up *up = arg;
	struct hf_error err = {0};

	if (up->state != UP_STARTING)
		return;
	if (hf_memstore_health(hf_plane_local(up->plane), &err) != 0) {
		fail_up(up, &err);
	} else if (hf_loop_mono(up->loop) - up->started > STARTING_MAX) {
		(void)hf_error_set(
			&err, HF_E_INTERNAL,
			"the node did not become ready within a minute; the lines above may say why");
		fail_up(up, &err);
	} else {
		hf_timer_arm(up->starting, STARTING_LOOK);
	}
}

/* ---- being ready -------------------------------------------------------------------------- */

/* Sends stdout and stderr to up.log, so that the background process leaves the terminal. */
static int redirect_to_log(struct up *up, struct hf_error *err)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/up.log", up->home.dir);
	HF_AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot open '%s'", path);
	(void)fflush(NULL);
	if (dup2(fd, STDERR_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		return hf_error_errno(err, errno, "cannot write to '%s'", path);
	return 0;
}

static void print_ready(const struct up *up)
{
	FILE *out = up->cli->out;
	struct hf_kubelet_facts facts;
	bool v6 = strchr(up->address, ':') != NULL;

	hf_kubelet_facts(hf_plane_kubelet(up->plane), &facts);
	fprintf(out, "export KUBECONFIG=%s\n", up->home.kubeconfig);
	fprintf(out, "# listening on https://%s%s%s:%u; 'holdfast down%s%s' ends it\n",
		v6 ? "[" : "", up->address, v6 ? "]" : "", (unsigned)up->port,
		hf_cli_has(up->cli, "data-dir") ? " --data-dir " : "",
		hf_cli_has(up->cli, "data-dir") ? up->home.dir : "");
	hf_plane_print_page(up->plane, "# ", out);
	if (!facts.pod_network)
		fputs("# pods share this machine's network: two jobs cannot use the same port\n",
		      out);
	(void)fflush(out);
}

static void on_ready(void *arg, int code, const char *message)
{
	struct up *up = arg;
	struct hf_error err = {0};
	int rc = code;

	if (up->state != UP_STARTING)
		return;
	if (rc != 0)
		(void)hf_error_set(&err, code, "%s", message);
	if (rc == 0)
		rc = hf_up_folder_write_kubeconfig(&up->home, up->address, up->port, &err);
	if (rc == 0)
		rc = hf_up_folder_announce(&up->home, &err);
	if (rc == 0) {
		print_ready(up);
		log_notices(up);
		if (up->detached)
			rc = redirect_to_log(up, &err);
	}
	if (rc != 0) {
		fail_up(up, &err);
		return;
	}
	up->state = UP_SERVING;
	hf_log(HF_LOG_INFO, "up", "ready", "kubeconfig", up->home.kubeconfig, NULL);
}

/* ---- callbacks of the plane and the API ------------------------------------------------------ */

static void on_notice(void *arg, const char *text)
{
	struct up *up = arg;

	if (up->state == UP_STARTING && up->n_notices < NOTICES_MAX)
		up->notices[up->n_notices++] = hf_xstrdup(text);
	else
		hf_log(HF_LOG_WARN, "kubelet", text, NULL);
}

static void on_health(void *arg, const struct hf_error *err)
{
	struct up *up = arg;

	/* During the start, on_starting reports errors of the store, so do not log them here. */
	if (err != NULL && up->state == UP_STARTING) {
		if (up->starting != NULL)
			hf_timer_arm(up->starting, 0);
		return;
	}
	if (err != NULL)
		hf_log(HF_LOG_ERROR, "store",
		       "the store cannot be written; requests that change objects are refused",
		       "why", err->text, NULL);
	else
		hf_log(HF_LOG_INFO, "store", "the store can be written again", NULL);
}

static void on_problem(void *arg, const char *key, int code, const char *message)
{
	const struct up *up = arg;

	/* Conflicts between concurrent writers are normal and are retried, so they are not logged. A
	 * full disk during the start is reported once by on_starting, not for each job. */
	if (code != HF_E_CONFLICT && (code != HF_E_NO_SPACE || up->state != UP_STARTING))
		hf_log(HF_LOG_WARN, "operator", message, "job", key, NULL);
}

static bool is_served(const struct hf_resource *resource)
{
	return !hf_resource_is_job(resource) || hf_framework_by_name(resource->plural) != NULL;
}

static void on_metrics(void *arg, struct hf_strbuf *sb)
{
	struct up *up = arg;

	hf_metrics_render(hf_plane_metrics(up->plane), sb);
}

static int on_readyz(void *arg, struct hf_error *err)
{
	const struct up *up = arg;

	return up->state == UP_SERVING ? 0
				       : hf_error_set(err, HF_E_UNAVAILABLE,
						      "'holdfast up' is starting or stopping");
}

/* ---- set-up ------------------------------------------------------------------------------- */

/* "127.0.0.1:7443", "[::1]:0", ":7443" */
static int parse_listen(struct up *up, const char *text)
{
	const char *colon = strrchr(text, ':');
	struct hf_error err;
	int64_t port;
	size_t len;

	if (colon == NULL || hf_str_to_i64(colon + 1, 0, 65535, &port, &err) != 0)
		return hf_cli_usage(up->cli, "--listen takes ADDRESS:PORT, not '%s'", text);
	len = (size_t)(colon - text);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']')
		up->address = hf_xstrndup(text + 1, len - 2);
	else
		up->address = len == 0 ? hf_xstrdup("127.0.0.1") : hf_xstrndup(text, len);
	if (!hf_streq(up->address, "127.0.0.1") && !hf_streq(up->address, "::1"))
		return hf_cli_usage(
			up->cli,
			"--listen: only 127.0.0.1 and ::1 are allowed, because a client of the API "
			"can start programs as you");
	up->port = (uint16_t)port;
	return 0;
}

static int parse_network(const struct up *up, enum hf_kubelet_network *ret_network)
{
	bool host;
	int rc = hf_network_read(up->cli, &host);

	*ret_network = rc == 0 && host ? HF_KUBELET_NETWORK_HOST : HF_KUBELET_NETWORK_AUTO;
	return rc;
}

static int create_server(struct up *up, struct hf_error *err)
{
	struct hf_apiserver_options options = {
		.address = up->address,
		.port = up->port,
		.cert_pem = up->home.cert_pem,
		.key_pem = up->home.key_pem,
		.token = up->home.token,
		.serves = is_served,
		.metrics = on_metrics,
		.ready = on_readyz,
		.arg = up,
	};
	int rc = hf_apiserver_create(up->loop, hf_plane_local(up->plane), &options, &up->server,
				     err);

	if (rc != 0)
		return hf_error_wrap(err, "--listen %s:%u", up->address, (unsigned)up->port);
	up->port = hf_apiserver_port(up->server);
	return 0;
}

static int create_signals(struct up *up, struct hf_error *err)
{
	int rc = hf_signal_create(up->loop, SIGINT, on_stop, up, &up->sigint, err);

	if (rc == 0)
		rc = hf_signal_create(up->loop, SIGTERM, on_stop, up, &up->sigterm, err);
	if (rc == 0)
		rc = hf_signal_create(up->loop, SIGUSR1, on_down, up, &up->sigusr1, err);
	return rc;
}

/* Checks the port before any file is made, so that a used port leaves nothing behind. If another `up`
 * uses the folder, hf_up_folder_open reports that instead. */
static int check_address(const struct up *up, const char *dir, struct hf_error *err)
{
	bool running = false;
	pid_t pid;
	int rc;

	if (hf_up_folder_is_locked(dir, &running, &pid, NULL) == 0 && running)
		return 0;
	rc = hf_http_listen_check(up->address, up->port, err);
	if (rc != 0 && strstr(err->text, strerror(EADDRINUSE)) != NULL)
		return hf_error_set(err, rc,
				    "another program listens on %s, port %u: '--listen %s:0' takes "
				    "a free port",
				    up->address, (unsigned)up->port, up->address);
	return rc == 0 ? 0 : hf_error_wrap(err, "--listen %s:%u", up->address, (unsigned)up->port);
}

static int begin_up(struct up *up, const char *dir, enum hf_kubelet_network network,
		    struct hf_error *err)
{
	struct hf_plane_options options = {
		.no_operator = hf_cli_has(up->cli, "no-operator"),
		.watch_gpus = true,
		.gpus = hf_local_gpus_option(up->cli),
		.network = network,
		.pods_max = up->pods_max,
		.page = hf_local_page_address(up->cli),
		.notice = on_notice,
		.health = on_health,
		.ready = on_ready,
		.problem = on_problem,
		.arg = up,
	};
	int rc = hf_loop_create(&up->loop, err);

	if (rc == 0)
		rc = check_address(up, dir, err);
	if (rc == 0)
		rc = hf_up_folder_open(dir, hf_loop_wall(up->loop), &up->home, err);
	if (rc != 0)
		return rc;
	options.loop = up->loop;
	options.dir = up->home.dir;
	rc = hf_plane_create(&options, &up->plane, err);
	if (rc == 0)
		rc = create_server(up, err);
	if (rc == 0)
		rc = create_signals(up, err);
	if (rc != 0)
		return rc;
	up->started = hf_loop_mono(up->loop);
	up->starting = hf_timer_create(up->loop, on_starting, up);
	hf_timer_arm(up->starting, STARTING_LOOK);
	return 0;
}

static void release_up(struct up *up)
{
	up->sigint = hf_signal_destroy(up->sigint);
	up->sigterm = hf_signal_destroy(up->sigterm);
	up->sigusr1 = hf_signal_destroy(up->sigusr1);
	up->starting = hf_timer_destroy(up->starting);
	up->server = hf_apiserver_destroy(up->server);
	up->plane = hf_plane_destroy(up->plane);
	hf_up_folder_release(&up->home);
	up->loop = hf_loop_destroy(up->loop);
	free(up->address);
	for (size_t i = 0; i < up->n_notices; i++)
		free(up->notices[i]);
}

static int serve_up(struct up *up, const char *dir, enum hf_kubelet_network network)
{
	struct hf_error err;

	hf_log_setup(stderr, HF_LOG_INFO, isatty(STDERR_FILENO) == 1 ? HF_LOG_TEXT : HF_LOG_JSON);
	if (begin_up(up, dir, network, &err) != 0)
		return hf_cli_fail(up->cli, &err);
	hf_loop_run(up->loop);
	return up->exit_code;
}

/* ---- --detach ----------------------------------------------------------------------------- */

struct detach {
	struct hf_cli *cli;
	struct hf_loop *loop;
	/* the background process is ready, and has printed its output */
	bool has_output;
	bool ended;
	int exit_code;
};

static void on_output(void *arg, const char *bytes, size_t len, int read_error)
{
	struct detach *detach = arg;

	if (len > 0) {
		detach->has_output = true;
		(void)fwrite(bytes, 1, len, detach->cli->out);
	} else if (detach->has_output) {
		/* The background process is ready: it has printed its output and closed its end of
		 * the pipe. */
		hf_loop_stop(detach->loop);
	}
}

static void on_exit_early(void *arg, const struct hf_process_exit *exit)
{
	struct detach *detach = arg;

	detach->ended = true;
	detach->exit_code = exit->code > 0 ? exit->code : HF_EXIT_INTERNAL;
	hf_loop_stop(detach->loop);
}

static int start_detached(struct detach *detach, const char *dir, struct hf_error *err)
{
	const struct hf_cli *cli = detach->cli;
	const char *argv[] = {"/proc/self/exe",
			      "up",
			      "--data-dir",
			      dir,
			      "--listen",
			      hf_str_or(hf_cli_flag(cli, "listen"), DEFAULT_LISTEN),
			      "--network",
			      hf_str_or(hf_cli_flag(cli, "network"), "auto"),
			      "--max-pods",
			      hf_str_or(hf_cli_flag(cli, "max-pods"), "110"),
			      "--gpus",
			      hf_str_or(hf_cli_flag(cli, "gpus"), "all"),
			      "--page-listen",
			      hf_str_or(hf_local_page_address(cli), "none"),
			      hf_cli_has(cli, "no-operator") ? "--no-operator" : NULL,
			      NULL};
	struct hf_process_spec spec = {.argv = argv, .cwd = "/", .new_session = true};
	struct hf_process *process = NULL;
	struct hf_reader *reader = NULL;
	int fds[2];
	int rc = hf_pipe_make(fds, err);

	if (rc != 0)
		return rc;
	spec.stdio[0] = HF_PROCESS_STDIO_NULL;
	spec.stdio[1] = fds[1];
	spec.stdio[2] = STDERR_FILENO;
	(void)setenv(DETACHED_ENV, "1", 1);
	rc = hf_process_spawn(detach->loop, &spec, on_exit_early, detach, &process, err);
	(void)close(fds[1]);
	if (rc == 0)
		rc = hf_reader_create(detach->loop, fds[0], on_output, detach, &reader, err);
	if (rc != 0) {
		(void)close(fds[0]);
	} else {
		hf_loop_run(detach->loop);
	}
	hf_reader_destroy(reader);
	hf_process_destroy(process);
	return rc;
}

static int detach_up(struct hf_cli *cli, const char *dir)
{
	struct detach detach = {.cli = cli};
	struct hf_error err;
	int rc = hf_loop_create(&detach.loop, &err);

	if (rc == 0)
		rc = start_detached(&detach, dir, &err);
	detach.loop = hf_loop_destroy(detach.loop);
	if (rc != 0)
		return hf_cli_fail(cli, &err);
	/* If the background process ended early, it has printed the error on stderr itself. */
	return detach.ended ? detach.exit_code : HF_EXIT_OK;
}

/* ---- */

static int verb_up(struct hf_cli *cli)
{
	struct up up = {.cli = cli, .home = {.lock = -1}, .detached = getenv(DETACHED_ENV) != NULL};
	enum hf_kubelet_network network = HF_KUBELET_NETWORK_AUTO;
	HF_AUTOFREE char *dir = NULL;
	struct hf_error err;
	int rc = parse_listen(&up, hf_str_or(hf_cli_flag(cli, "listen"), DEFAULT_LISTEN));

	(void)unsetenv(DETACHED_ENV);
	if (rc == 0)
		rc = parse_network(&up, &network);
	if (rc == 0)
		rc = hf_max_pods_read(cli, &up.pods_max);
	if (rc == 0)
		rc = hf_local_gpus_check(cli);
	if (rc == 0)
		rc = hf_local_page_check(cli);
	if (rc == 0 && hf_up_folder_path(hf_cli_flag(cli, "data-dir"), &dir, &err) != 0)
		rc = hf_cli_usage(cli, "%s", err.text);
	if (rc == 0)
		rc = hf_cli_has(cli, "detach") ? detach_up(cli, dir) : serve_up(&up, dir, network);
	release_up(&up);
	return rc;
}

static const struct hf_flag up_flags[] = {
	{"listen", 0, "ADDRESS:PORT", "address of the API; port 0: any free port", DEFAULT_LISTEN},
	{"data-dir", 0, "DIR", "folder for all data",
	 "$HOLDFAST_DIR, else ~/.local/state/holdfast"},
	{"detach", 'd', NULL, "run in the background once ready; the log is DIR/up.log", NULL},
	{"max-pods", 0, "N", "how many pods run here at once", "110"},
	{"network", 0, "HOW",
	 "auto: a network for each pod if possible; host: this machine's network", "auto"},
	{"gpus", 0, "GPUS", "GPUs for pods: all, none, or numbers such as 0,2", "all"},
	HF_LOCAL_PAGE_FLAGS,
	{"no-operator", 0, NULL, "do not run the operator: 'holdfast operator' or another one does",
	 NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_up = {
	.name = "up",
	.summary = "Start a one-node cluster on this machine, for kubectl and the SDK",
	.usage = "",
	.group = HF_CLI_RUN_HERE,
	.examples = "  holdfast up\n"
		    "  eval \"$(holdfast up --detach)\" && kubectl get nodes\n"
		    "  holdfast up --listen 127.0.0.1:0 --data-dir /tmp/plane\n",
	.flags = up_flags,
	.args_min = 0,
	.args_max = 0,
	.run = verb_up,
};
