/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast run: starts an embedded plane, runs one job on it, shows its progress, and exits with
 * the job's code. Its folder is kept by run_folder.c. */
#include "app/verbs.h"

#include "app/connect.h"
#include "app/failure.h"
#include "app/inject.h"
#include "app/job_resources.h"
#include "app/keyboard.h"
#include "app/local_gpus.h"
#include "app/local_page.h"
#include "app/log_tail.h"
#include "app/plane.h"
#include "app/rank_states.h"
#include "app/run_folder.h"
#include "app/run_input.h"
#include "app/run_objects.h"
#include "app/run_report.h"
#include "app/run_view.h"
#include "app/script_job.h"
#include "app/slow_ends.h"
#include "app/waiting_rank.h"
#include "api/job.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/log_follower.h"
#include "cli/job_manifest.h"
#include "cli/rank.h"
#include "core/model/container_reason.h"
#include "core/model/names.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * The states of a run:
 *
 *   starting ─job created─▶ watching ─job ended─▶ lingering ─logs ended─▶ stopping ─pods ended─▶ over
 *
 * While starting, `run` waits for the kubelet and creates the objects of the manifest.  While lingering,
 * it waits for the last log lines.  Ctrl-C, --timeout and a failure of the plane lead from every state to
 * stopping at once.
 */
enum run_state { RUN_STARTING, RUN_WATCHING, RUN_LINGERING, RUN_STOPPING, RUN_OVER };

#define REDRAW_SPAN (200 * HF_MS)
#define HEARTBEAT_SPAN (30 * HF_SECOND)
/* how long `run` waits for the last log lines after the end of the job */
#define LINGER_SPAN (2 * HF_SECOND)
/* A pod that cannot be made from its manifest is tried again every 2 seconds (HF_KUBELET_POD_RETRY). If
 * it waits for this time, nothing will change: all objects were created before the job. */
#define BLOCKED_SPAN (3 * HF_SECOND)

struct run;

struct injection_timer {
	struct run *run;
	struct hf_injection injection;
	struct hf_timer *timer;
};

struct run {
	struct hf_cli *cli;
	struct hf_loop *loop;
	struct hf_plane *plane;
	struct hf_run_view *view;
	struct hf_progress *progress; /* of the view */
	const struct hf_resource *resource;
	struct hf_run_input in;
	bool told_ranks;     /* the note that rank 0 waits for the other ranks was printed */
	bool told_unlimited; /* the note that no limit applies to restarts was printed */
	bool waited;         /* the last check found ranks that still ran */
	struct hf_run_folder *folder;
	struct hf_log_tails *tails;
	struct hf_slow_ends *slow_ends;
	hf_time stopping_since; /* when the pods were first asked to end; HF_TIME_NONE: not yet */
	char *ns, *name, *selector, *field_selector;
	char *ranks; /* names of --ranks; NULL: all ranks */
	int pods_max;
	bool timed_out;
	enum run_state state;
	int exit_code;
	int interrupts;
	struct hf_run_objects *objects; /* creates the job; NULL: not yet, or no more */
	bool ever_running;
	struct hf_map *started; /* names of the pods that have run */
	hf_time blocked_since; /* a pod cannot be made since this time; HF_TIME_NONE: no such pod */
	struct hf_watch *job_watch, *pod_watch;
	struct hf_doc *job; /* the last version */
	struct hf_log_follower *follows;
	struct injection_timer injections[HF_INJECTIONS_MAX];
	size_t n_injections;
	struct hf_timer *tick, *heartbeat, *linger, *timeout;
	struct hf_signal *sigint, *sigterm, *sighup;
	struct hf_keyboard *keyboard;
};

static hf_time now_of(const struct run *run)
{
	return hf_loop_wall(run->loop);
}

/* ---- the end of a run --------------------------------------------------------------------- */

static void plane_stopped(void *arg)
{
	struct run *run = arg;

	run->state = RUN_OVER;
	hf_loop_stop(run->loop);
}

static void stop_run(struct run *run, int exit_code, hf_time grace)
{
	if (run->state == RUN_OVER)
		return;
	run->objects = hf_run_objects_destroy(run->objects);
	if (run->state != RUN_STOPPING) {
		run->exit_code = exit_code;
		hf_run_folder_save(run->folder, run->job, now_of(run));
		hf_progress_finish(run->progress, now_of(run));
		if (run->state == RUN_WATCHING && run->job != NULL &&
		    (run->interrupts > 0 || run->timed_out))
			hf_report_waiting_rank(run->cli, hf_plane_local(run->plane), run->ns,
					       hf_doc_json(run->job), run->tails, run->folder);
	}
	run->state = RUN_STOPPING;
	if (run->stopping_since == HF_TIME_NONE)
		run->stopping_since = now_of(run);
	hf_plane_stop(run->plane, grace, plane_stopped, run);
}

static void fail_run(struct run *run, int code, const char *message)
{
	struct hf_error err = {.code = 0};

	(void)hf_error_set(&err, code, "%s", message);
	hf_progress_finish(run->progress, now_of(run));
	stop_run(run, hf_cli_fail(run->cli, &err), 0);
}

/* Prints which pods still run after the end of the job; they end when the plane stops. */
static void note_running_pods(struct run *run)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_OPERATOR_PASS_BYTES_MAX);
	const struct hf_job_ref job = {run->in.manifest.framework, run->ns, run->name};
	struct hf_job_view view;
	struct hf_plan plan;

	if (hf_operator_explain(hf_plane_operator(run->plane), &job, arena, &view, &plan, NULL) ==
		    0 &&
	    plan.left != NULL)
		hf_progress_note(run->progress, now_of(run),
				 "job/%s %s; holdfast run ends them now", run->name, plan.left);
}

/* Prints why the job failed. late, pod: as in hf_run_report_failure. Returns the exit code of the run. */
static int report_failure(struct run *run, int exit_code, const char *pod,
			  const struct hf_json *late)
{
	const struct hf_run_report report = {.cli = run->cli,
					     .folder = run->folder,
					     .tails = run->tails,
					     .job = run->job,
					     .script = run->in.script,
					     .many = hf_map_len(run->started) > 1};

	hf_progress_finish(run->progress, now_of(run));
	return hf_run_report_failure(&report, exit_code, pod, late);
}

/* ---- programs: every rank counts ------------------------------------------------------------ */

static struct hf_rank_states look_at_ranks(struct run *run)
{
	struct hf_rank_states ranks = {.unfinished = NULL};

	if (run->in.script && hf_streq(hf_progress_state(hf_doc_json(run->job)), "Succeeded"))
		ranks = hf_rank_states_of(hf_plane_local(run->plane), run->ns);
	return ranks;
}

/* True if the job is a program and other ranks still run after rank 0 has succeeded. */
static bool waits_for_ranks(struct run *run)
{
	struct hf_rank_states ranks = look_at_ranks(run);

	if (ranks.unfinished == NULL)
		return false;
	if (!run->told_ranks)
		hf_progress_note(run->progress, now_of(run),
				 "rank 0 has succeeded; waiting for the other ranks, %s among them",
				 hf_cli_rank_of_pod(ranks.unfinished, run->name));
	run->told_ranks = true;
	return true;
}

/* Reports a rank of a program that failed after rank 0 had succeeded. Returns the exit code. */
static int report_late_failure(struct run *run, struct hf_doc *pod)
{
	HF_AUTOFREE char *cause = NULL;
	HF_AUTO_JSON late = hf_failure_late(
		hf_doc_json(pod), hf_cli_rank_of_pod(hf_doc_name(pod), run->name), &cause);
	int code = (int)hf_json_i64(hf_json_get(late, "exitCode"), HF_EXIT_FAILED);

	hf_run_folder_set_cause(run->folder, cause);
	return report_failure(run, code, hf_doc_name(pod), late);
}

/* A job with a manifest has succeeded when rank 0 has. Says if other ranks never ran. */
static void note_never_started(struct run *run)
{
	HF_AUTOFREE char *text =
		hf_never_started(&run->in.manifest, hf_doc_json(run->job), run->started);

	if (text == NULL)
		return;
	hf_progress_note(run->progress, now_of(run), "warning: %s", text);
	hf_run_folder_note(run->folder, text);
}

static void finish_job(struct run *run)
{
	const struct hf_json *job = hf_doc_json(run->job);
	struct hf_rank_states ranks = look_at_ranks(run);
	int exit_code = HF_EXIT_OK;

	if (!hf_streq(hf_progress_state(job), "Succeeded")) {
		exit_code = hf_failure_exit_code(job);
		exit_code = report_failure(run, exit_code, hf_failure_pod(job), NULL);
	} else if (ranks.failed != NULL) {
		exit_code = report_late_failure(run, ranks.failed);
	} else {
		note_never_started(run);
	}
	note_running_pods(run);
	stop_run(run, exit_code, HF_TIME_NONE);
}

static void on_linger(void *arg)
{
	struct run *run = arg;

	if (run->state != RUN_LINGERING)
		return;
	if (waits_for_ranks(run)) {
		run->waited = true;
		hf_timer_arm(run->linger, REDRAW_SPAN);
	} else if (run->waited && hf_log_follower_is_open(run->follows)) {
		/* The last rank has just ended: give its last log lines the time to arrive. */
		run->waited = false;
		hf_timer_arm(run->linger, LINGER_SPAN);
	} else {
		finish_job(run);
	}
}

/* ---- logs --------------------------------------------------------------------------------- */

static void on_log(void *arg, const char *pod, const char *bytes, size_t len)
{
	struct run *run = arg;

	hf_log_tails_add(run->tails, pod, bytes, len);
	hf_progress_log(run->progress, pod, bytes, len, now_of(run));
}

static void on_init_log(void *arg, const char *pod, const char *container, const char *bytes,
			size_t len)
{
	struct run *run = arg;

	/* What the plane's own container prints tells the user nothing. */
	if (!hf_streq(container, HF_PLANE_INIT_CONTAINER))
		hf_progress_init_log(run->progress, pod, container, bytes, len, now_of(run));
}

static void on_log_begin(void *arg, struct hf_doc *pod, int64_t number HF_UNUSED)
{
	struct run *run = arg;

	hf_log_tails_begin(run->tails, hf_doc_name(pod));
}

static void on_log_end(void *arg, const char *pod, int code, const char *message)
{
	struct run *run = arg;

	hf_progress_log_end(run->progress, pod, now_of(run));
	if (run->state == RUN_LINGERING && !hf_log_follower_is_open(run->follows))
		hf_timer_arm(run->linger, 0);
}

static void create_follows(struct run *run)
{
	struct hf_log_follower_options options = {.loop = run->loop,
						  .store = hf_plane_store(run->plane),
						  .ns = run->ns,
						  .tail_lines = -1,
						  .began = on_log_begin,
						  .bytes = on_log,
						  .init_bytes = on_init_log,
						  .ended = on_log_end,
						  .arg = run};

	run->follows = hf_log_follower_create(&options);
}

/* ---- job and pods ---------------------------------------------------------------------- */

static void watch_job(struct run *run);
static void watch_pods(struct run *run);

static void arm_injections(struct run *run)
{
	for (size_t i = 0; i < run->n_injections; i++)
		hf_timer_arm(run->injections[i].timer, run->injections[i].injection.after);
}

static void on_job(void *arg, const struct hf_event *event)
{
	struct run *run = arg;
	const char *state;

	if (event->type == HF_EVENT_ENDED) {
		run->job_watch = hf_watch_stop(run->job_watch);
		watch_job(run);
		return;
	}
	if (event->type == HF_EVENT_BOOKMARK)
		return;
	hf_doc_unref(run->job);
	run->job = hf_doc_ref(event->object);
	hf_progress_job(run->progress, run->job, now_of(run));
	hf_run_folder_changed(run->folder);
	if (run->state != RUN_WATCHING)
		return;
	hf_run_folder_tick(run->folder, run->job, now_of(run));
	if (event->type == HF_EVENT_DELETED) {
		hf_run_folder_set_end(run->folder, "Failed", "was deleted while it ran");
		fail_run(run, HF_E_NOT_FOUND, "the job was deleted while it ran");
		return;
	}
	state = hf_progress_state(hf_doc_json(run->job));
	if (hf_streq(state, "Running") && !run->ever_running) {
		run->ever_running = true;
		arm_injections(run);
	}
	if (hf_streq(state, "Succeeded") || hf_streq(state, "Failed")) {
		run->state = RUN_LINGERING;
		hf_timer_arm(run->linger, hf_log_follower_is_open(run->follows) ? LINGER_SPAN : 0);
	}
}

/* True once the job has ended and the plane ends its pods: these pod events are not shown. */
static bool is_clearing_up(const struct run *run)
{
	const char *state = run->job != NULL ? hf_progress_state(hf_doc_json(run->job)) : "";

	return run->state > RUN_LINGERING &&
	       (hf_streq(state, "Succeeded") || hf_streq(state, "Failed"));
}

static void note_replaced(struct run *run, const struct hf_json *pod)
{
	HF_AUTOFREE char *text = hf_run_input_replaced(&run->in, pod);

	if (text != NULL)
		hf_progress_note(run->progress, now_of(run), "note: %s", text);
}

/* Says once that the job may be restarted for ever. */
static void note_unlimited(struct run *run, const struct hf_json *pod)
{
	if (run->told_unlimited || run->job == NULL ||
	    !hf_restarts_without_limit(hf_doc_json(run->job), pod))
		return;
	run->told_unlimited = true;
	hf_progress_note(run->progress, now_of(run),
			 "note: no limit applies to the restarts of this job, because it has no "
			 "spec.runPolicy.backoffLimit; Ctrl-C ends it");
}

static void on_pod(void *arg, const struct hf_event *event)
{
	struct run *run = arg;

	if (event->type == HF_EVENT_ENDED) {
		run->pod_watch = hf_watch_stop(run->pod_watch);
		watch_pods(run);
		return;
	}
	if (event->type == HF_EVENT_BOOKMARK || is_clearing_up(run))
		return;
	hf_note_started(run->started, event->object);
	note_replaced(run, hf_doc_json(event->object));
	hf_progress_pod(run->progress, event->object, event->type == HF_EVENT_DELETED, now_of(run));
	if (run->state == RUN_WATCHING)
		note_unlimited(run, hf_doc_json(event->object));
	hf_run_folder_pod(run->folder, event->object, event->type == HF_EVENT_DELETED);
	if (run->state == RUN_WATCHING)
		hf_run_folder_tick(run->folder, run->job, now_of(run));
	if (event->type != HF_EVENT_DELETED && run->state <= RUN_LINGERING)
		hf_log_follower_update_pod(run->follows, event->object);
}

static void on_heard(void *arg, const char *pod_uid, const struct hf_beat *beat)
{
	struct run *run = arg;

	if (beat->has_step)
		hf_progress_step(run->progress, pod_uid, beat, now_of(run));
}

static void watch_job(struct run *run)
{
	struct hf_watch_options options = {
		.resource = run->resource, .ns = run->ns, .field_selector = run->field_selector};

	run->job_watch = hf_store_watch(hf_plane_store(run->plane), &options, on_job, run);
}

static void watch_pods(struct run *run)
{
	struct hf_watch_options options = {
		.resource = &hf_pods, .ns = run->ns, .label_selector = run->selector};

	run->pod_watch = hf_store_watch(hf_plane_store(run->plane), &options, on_pod, run);
}

/* The job and the objects beside it exist now, or one was refused. */
static void on_created(void *arg, int code, const char *message)
{
	struct run *run = arg;

	if (code != 0) {
		fail_run(run, code, message);
		return;
	}
	run->state = RUN_WATCHING;
	create_follows(run);
	watch_job(run);
	watch_pods(run);
}

static void create_objects(struct run *run)
{
	HF_AUTOFREE char *network =
		hf_run_input_share_network(hf_plane_kubelet(run->plane), &run->in);

	if (network != NULL)
		hf_progress_note(run->progress, now_of(run), "note: %s", network);
	run->objects = hf_run_objects_create(
		&(struct hf_run_objects_options){.store = hf_plane_store(run->plane),
						 .in = &run->in,
						 .resource = run->resource,
						 .ns = run->ns,
						 .done = on_created,
						 .arg = run});
}

static void on_ready(void *arg, int code, const char *message)
{
	struct run *run = arg;

	if (run->state != RUN_STARTING)
		return;
	if (code != 0)
		fail_run(run, code, message);
	else
		create_objects(run);
}

static void on_notice(void *arg, const char *text)
{
	struct run *run = arg;

	hf_progress_note(run->progress, now_of(run), "note: %s", text);
}

static void on_problem(void *arg, const char *key, int code, const char *message)
{
	struct run *run = arg;

	/* Conflicts between concurrent writers are normal and are retried, so they are not shown. */
	if (code != HF_E_CONFLICT && run->state < RUN_STOPPING)
		hf_progress_note(run->progress, now_of(run), "%s: %s", key, message);
}

/* ---- keys and signals ---------------------------------------------------------------------------- */

static void on_signal(void *arg, int signum)
{
	struct run *run = arg;
	HF_AUTOFREE char *end =
		signum == SIGINT ? hf_xstrdup("was interrupted by Ctrl-C (SIGINT)")
				 : hf_xasprintf("was interrupted by %s", hf_signal_name(signum));

	run->interrupts++;
	if (run->interrupts == 1) {
		hf_progress_note(
			run->progress, now_of(run),
			"stopping: waiting for the pods to end; interrupt again to kill them at once");
		if (run->state < RUN_STOPPING)
			hf_run_folder_set_end(run->folder, "Interrupted", end);
		/* A signal sets the exit code, even if the run was already stopping for another
		 * reason. */
		run->exit_code = 128 + signum;
	}
	stop_run(run, run->exit_code, run->interrupts == 1 ? HF_TIME_NONE : 0);
}

static void on_suspended(void *arg, const struct hf_reply *reply)
{
	struct run *run = arg;

	if (reply->code != 0)
		hf_progress_note(run->progress, now_of(run), "%s", reply->message);
}

static void toggle_suspend(struct run *run)
{
	bool suspended = hf_json_true(
		hf_json_path(hf_doc_json(run->job), "spec", "runPolicy", "suspend", NULL), false);
	const char *text = suspended ? "{\"spec\":{\"runPolicy\":{\"suspend\":false}}}"
				     : "{\"spec\":{\"runPolicy\":{\"suspend\":true}}}";
	HF_AUTO_DOC patch = hf_doc_from_text(text, strlen(text));
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = run->resource,
				     .ns = run->ns,
				     .name = run->name,
				     .body = patch,
				     .patch_type = HF_PATCH_MERGE};

	(void)hf_store_request(hf_plane_store(run->plane), &request, on_suspended, run);
}

static void on_key(void *arg, char key)
{
	struct run *run = arg;
	const struct hf_job_ref job = {run->in.manifest.framework, run->ns, run->name};

	if (run->state != RUN_WATCHING)
		return;
	switch (key) {
	case 'l': hf_progress_toggle_logs(run->progress); break;
	case 'w':
		hf_run_view_why(run->view, hf_plane_operator(run->plane), &job, now_of(run));
		break;
	case 's': toggle_suspend(run); break;
	case 'q': on_signal(run, SIGINT); break;
	default: break;
	}
}

/* Another program uses the terminal from now on. */
static void on_leave(void *arg)
{
	struct run *run = arg;

	hf_progress_leave(run->progress);
}

/* ---- pods that can never start --------------------------------------------------------------- */

/* Ends the run if a pod can never start. The exit code is that of a wrong manifest. */
static void end_if_blocked(struct run *run)
{
	const struct hf_blocked_pod blocked =
		hf_blocked_pod_of(hf_plane_local(run->plane), run->ns);
	HF_AUTOFREE char *cause = NULL;
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_FAILURE_BYTES_MAX);

	if (blocked.pod == NULL) {
		run->blocked_since = HF_TIME_NONE;
		return;
	}
	if (run->blocked_since == HF_TIME_NONE)
		run->blocked_since = now_of(run);
	if (now_of(run) - run->blocked_since < BLOCKED_SPAN)
		return;
	cause = hf_xasprintf("%s can never start: %s", hf_cli_rank_of_pod(blocked.pod, run->name),
			     blocked.message);
	hf_run_folder_set_end(run->folder, "Failed", "was given up");
	hf_run_folder_set_cause(run->folder, cause);
	hf_strbuf_addf(&text, "holdfast: job %s: %s\n", run->name, cause);
	hf_progress_finish(run->progress, now_of(run));
	(void)fflush(run->cli->out);
	hf_failure_print(run->cli, &text);
	stop_run(run, HF_EXIT_USAGE, HF_TIME_NONE);
}

/* ---- timers ------------------------------------------------------------------------------- */

/* Prints once for which ranks `run` waits although they got SIGTERM. */
static void note_slow_ends(struct run *run)
{
	HF_AUTOFREE char *text = hf_slow_ends_look(run->slow_ends, hf_plane_local(run->plane),
						   run->ns, run->stopping_since, now_of(run));

	if (text != NULL && run->interrupts < 2)
		hf_progress_note(run->progress, now_of(run), "%s", text);
}

static void on_tick(void *arg)
{
	struct run *run = arg;

	int out_fd = hf_cli_out_fd(run->cli);
	struct winsize size;

	hf_keyboard_look(run->keyboard);
	if (run->cli->tty && ioctl(out_fd, TIOCGWINSZ, &size) == 0)
		hf_progress_resize(run->progress, size.ws_col, size.ws_row);
	/* In the background, another program writes to the terminal: a block would erase its lines. */
	if (run->cli->tty && !hf_terminal_in_foreground(out_fd))
		hf_progress_leave(run->progress);
	else
		/* Redraw even if nothing else has changed: the first line has the elapsed time. */
		hf_progress_draw(run->progress, now_of(run), true);
	hf_run_view_save(run->view, now_of(run), false);
	note_slow_ends(run);
	if (run->state == RUN_WATCHING)
		hf_run_folder_tick(run->folder, run->job, now_of(run));
	if (run->state == RUN_WATCHING)
		end_if_blocked(run);
	if (run->state < RUN_STOPPING && hf_run_folder_is_gone(run->folder)) {
		HF_AUTOFREE char *text = hf_xasprintf(
			"the folder of this run, '%s', was removed while the job ran; the pods are ended, and nothing of the run is kept",
			hf_run_folder_path(run->folder));
		fail_run(run, HF_E_IO, text);
	}
	hf_timer_arm(run->tick, REDRAW_SPAN);
}

static void on_heartbeat(void *arg)
{
	struct run *run = arg;

	hf_progress_heartbeat(run->progress, now_of(run));
	hf_timer_arm(run->heartbeat, HEARTBEAT_SPAN);
}

static void on_timeout(void *arg)
{
	struct run *run = arg;

	HF_AUTOFREE char *end =
		hf_xasprintf("was ended by --timeout=%s", hf_cli_flag(run->cli, "timeout"));

	if (run->state > RUN_LINGERING || (run->state == RUN_LINGERING && !run->told_ranks))
		return;
	hf_progress_note(run->progress, now_of(run), "timed out after --timeout=%s",
			 hf_cli_flag(run->cli, "timeout"));
	run->timed_out = true;
	hf_run_folder_set_end(run->folder, "TimedOut", end);
	stop_run(run, HF_EXIT_TIMEOUT, HF_TIME_NONE);
}

static void on_injection(void *arg)
{
	struct injection_timer *timer = arg;
	struct run *run = timer->run;
	HF_AUTOFREE char *pod = hf_xasprintf("%s-%s", run->name, timer->injection.rank);
	struct hf_error err;

	if (run->state != RUN_WATCHING)
		return;
	if (hf_kubelet_signal(hf_plane_kubelet(run->plane), run->ns, pod, NULL, SIGKILL, &err) ==
	    0) {
		HF_AUTOFREE char *text = hf_xasprintf(
			"%s got SIGKILL from --inject of 'holdfast run'", timer->injection.rank);

		hf_run_folder_note(run->folder, text);
		hf_progress_note(run->progress, now_of(run), "pod/%s killed by --inject", pod);
	} else {
		hf_progress_note(run->progress, now_of(run), "--inject: %s", err.text);
	}
}

/* ---- set-up ------------------------------------------------------------------------------- */

static bool has_keyboard(const struct run *run)
{
	return run->cli->tty && isatty(STDIN_FILENO) == 1;
}

/* Sets the name and namespace of the job before it is created. */
static int prepare_job(struct run *run)
{
	const struct hf_json *metadata = hf_json_get(hf_doc_json(run->in.manifest.doc), "metadata");
	const char *in_file = hf_json_path_str(metadata, "namespace", NULL);
	bool suspended = hf_json_true(hf_json_path(hf_doc_json(run->in.manifest.doc), "spec",
						   "runPolicy", "suspend", NULL),
				      false);
	HF_AUTOFREE char *problem = NULL;

	run->name = hf_xstrdup(hf_str_or(hf_json_path_str(metadata, "name", NULL), ""));
	run->ns = hf_xstrdup(
		hf_str_or(hf_cli_flag(run->cli, "namespace"), hf_str_or(in_file, "default")));
	if (in_file != NULL && !hf_streq(in_file, run->ns))
		return hf_cli_usage(
			run->cli,
			"metadata.namespace is '%s', but --namespace is '%s': change one of them",
			in_file, run->ns);
	if (suspended && !has_keyboard(run))
		return hf_cli_usage(
			run->cli, "the job is suspended (spec.runPolicy.suspend), and only the key "
				  "'s' on a terminal could resume it; remove the field");
	problem = hf_run_input_problem(&run->in);
	if (problem != NULL)
		return hf_cli_usage(run->cli, "%s", problem);
	run->resource = hf_resource_by_plural(run->in.manifest.framework->group,
					      run->in.manifest.framework->plural);
	hf_assert(run->resource != NULL);
	run->selector = hf_xasprintf("%s=%s", HF_LABEL_JOB_NAME, run->name);
	run->field_selector = hf_xasprintf("metadata.name=%s", run->name);
	return 0;
}

static int parse_injection(struct run *run, const char *text)
{
	struct injection_timer *timer = &run->injections[run->n_injections];
	HF_AUTOFREE char *name = NULL;
	struct hf_error err;
	int rc;

	if (run->n_injections == HF_INJECTIONS_MAX)
		return hf_cli_usage(run->cli, "--inject is given more than %d times",
				    HF_INJECTIONS_MAX);
	rc = hf_injection_parse(text, &timer->injection, &err);
	if (rc == 0)
		rc = hf_cli_rank_name(run->in.manifest.framework, hf_doc_json(run->in.manifest.doc),
				      timer->injection.rank, &name, &err);
	if (rc != 0)
		return hf_cli_usage(run->cli, "--inject: %s", err.text);
	(void)snprintf(timer->injection.rank, sizeof(timer->injection.rank), "%s", name);
	timer->run = run;
	run->n_injections++;
	return 0;
}

static int parse_flags(struct run *run)
{
	const char *ranks = hf_cli_flag(run->cli, "ranks");
	int rc = hf_run_view_create(run->cli, &run->view);

	if (rc == 0 && hf_streq(ranks, "all"))
		run->ranks = hf_xstrdup(ranks);
	else if (rc == 0 && ranks != NULL)
		rc = hf_run_input_ranks(run->cli, &run->in, ranks, &run->ranks);
	for (size_t i = 0; rc == 0 && i < run->cli->n_flags; i++)
		if (hf_streq(run->cli->flags[i].flag->name, "inject"))
			rc = parse_injection(run, run->cli->flags[i].value);
	return rc;
}

static void create_timers(struct run *run, hf_time timeout)
{
	run->tick = hf_timer_create(run->loop, on_tick, run);
	run->heartbeat = hf_timer_create(run->loop, on_heartbeat, run);
	run->linger = hf_timer_create(run->loop, on_linger, run);
	run->timeout = hf_timer_create(run->loop, on_timeout, run);
	hf_timer_arm(run->tick, REDRAW_SPAN);
	hf_timer_arm(run->heartbeat, HEARTBEAT_SPAN);
	if (timeout > 0)
		hf_timer_arm(run->timeout, timeout);
	for (size_t i = 0; i < run->n_injections; i++)
		run->injections[i].timer =
			hf_timer_create(run->loop, on_injection, &run->injections[i]);
}

/* A signal from here on waits for the loop, so it ends the run in order even while the run begins. */
static int create_signals(struct run *run, struct hf_error *err)
{
	int rc = hf_signal_create(run->loop, SIGINT, on_signal, run, &run->sigint, err);

	if (rc == 0)
		rc = hf_signal_create(run->loop, SIGTERM, on_signal, run, &run->sigterm, err);
	/* Closing the terminal ends the job, except under nohup, which ignores SIGHUP. */
	if (rc == 0 && !hf_signal_is_ignored(SIGHUP))
		rc = hf_signal_create(run->loop, SIGHUP, on_signal, run, &run->sighup, err);
	return rc;
}

static int begin_run(struct run *run, struct hf_error *err)
{
	struct hf_plane_options options = {
		.dir = hf_run_folder_path(run->folder),
		.kept_logs = hf_run_folder_logs(run->folder),
		.env = (const char *const *)run->in.env.all,
		/* No init containers: in a program that ends at once, the other ranks would wait
		 * for the name of a rank 0 that is gone. */
		.no_init_containers = run->in.script,
		.in_memory = true,
		.watch_gpus = true,
		.gpus = hf_local_gpus_option(run->cli),
		.network = HF_KUBELET_NETWORK_AUTO,
		.pods_max = run->pods_max,
		.page = hf_local_page_address(run->cli),
		.notice = on_notice,
		.ready = on_ready,
		.problem = on_problem,
		.heard = on_heard,
		.arg = run,
	};
	int rc = 0;

	options.loop = run->loop;
	if (has_keyboard(run))
		rc = hf_keyboard_create(
			&(struct hf_keyboard_options){
				.loop = run->loop, .key = on_key, .leave = on_leave, .arg = run},
			&run->keyboard, err);
	if (rc == 0)
		rc = hf_plane_create(&options, &run->plane, err);
	if (rc == 0)
		hf_plane_print_page(run->plane, "", run->cli->err);
	if (rc == 0)
		hf_run_folder_attach(run->folder, hf_plane_local(run->plane));
	return rc;
}

static void release_run(struct run *run)
{
	run->keyboard = hf_keyboard_destroy(run->keyboard);
	run->job_watch = hf_watch_stop(run->job_watch);
	run->pod_watch = hf_watch_stop(run->pod_watch);
	run->follows = hf_log_follower_destroy(run->follows);
	for (size_t i = 0; i < run->n_injections; i++)
		run->injections[i].timer = hf_timer_destroy(run->injections[i].timer);
	run->tick = hf_timer_destroy(run->tick);
	run->heartbeat = hf_timer_destroy(run->heartbeat);
	run->linger = hf_timer_destroy(run->linger);
	run->timeout = hf_timer_destroy(run->timeout);
	run->sigint = hf_signal_destroy(run->sigint);
	run->sigterm = hf_signal_destroy(run->sigterm);
	run->sighup = hf_signal_destroy(run->sighup);
	run->objects = hf_run_objects_destroy(run->objects);
	run->plane = hf_plane_destroy(run->plane);
	run->loop = hf_loop_destroy(run->loop);
	run->job = hf_doc_unref(run->job);
	run->view = hf_run_view_destroy(run->view);
	run->tails = hf_log_tails_destroy(run->tails);
	run->slow_ends = hf_slow_ends_destroy(run->slow_ends);
	hf_map_destroy(run->started);
	run->folder = hf_run_folder_close(run->folder, run->cli);
	hf_run_input_release(&run->in);
	free(run->ns);
	free(run->name);
	free(run->ranks);
	free(run->selector);
	free(run->field_selector);
}

static int run_job(struct run *run, hf_time timeout)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(8192);
	HF_AUTOFREE char *base = NULL;
	struct hf_error err;
	int rc;

	if (hf_plane_default_dir(&base, &err) != 0)
		return hf_cli_usage(run->cli, "%s", err.text);
	rc = hf_loop_create(&run->loop, &err);
	if (rc == 0)
		rc = create_signals(run, &err);
	if (rc == 0)
		rc = hf_run_folder_open(
			run->cli,
			&(struct hf_run_folder_options){.base = base,
							.manifest = &run->in.manifest,
							.ns = run->ns,
							.now = now_of(run)},
			&run->folder, &err);
	if (rc != 0)
		return hf_cli_fail(run->cli, &err);
	hf_run_input_place(&run->in, hf_run_folder_errors(run->folder));
	run->started = hf_map_create(HF_LOG_TAIL_PODS_MAX, 0, NULL);
	run->tails = hf_log_tails_create();
	run->slow_ends = hf_slow_ends_create(run->name);
	run->progress = hf_run_view_open(
		run->view,
		&(struct hf_run_view_options){.job = run->name,
					      .ranks = run->ranks,
					      .keyboard = has_keyboard(run),
					      .folder = hf_run_folder_path(run->folder)});
	hf_run_input_describe(&run->in, &text);
	hf_progress_note(run->progress, now_of(run), "%s", text.data);
	hf_progress_note_lines(run->progress, now_of(run), run->in.fitted);
	hf_progress_note_lines(run->progress, now_of(run), run->in.not_created);
	create_timers(run, timeout);
	if (begin_run(run, &err) != 0)
		return hf_cli_fail(run->cli, &err);
	hf_loop_run(run->loop);
	hf_run_view_save(run->view, now_of(run), true);
	hf_run_folder_finish(run->folder, run->job, run->exit_code, now_of(run));
	hf_run_view_end(run->cli, run->timed_out);
	if (run->job != NULL && (run->interrupts > 0 || run->timed_out))
		hf_run_report_logs(run->cli, run->folder);
	return run->exit_code;
}

static int verb_run(struct hf_cli *cli)
{
	struct run run = {.cli = cli,
			  .exit_code = HF_EXIT_INTERNAL,
			  .stopping_since = HF_TIME_NONE,
			  .blocked_since = HF_TIME_NONE};
	const char *timeout_text = hf_cli_flag(cli, "timeout");
	struct hf_error err;
	hf_time timeout = 0;
	int rc;

	if (timeout_text != NULL && hf_span_parse(timeout_text, &timeout, &err) != 0)
		return hf_cli_usage(cli, "--timeout: %s", err.text);
	rc = hf_local_page_check(cli);
	if (rc == 0)
		rc = hf_max_pods_read(cli, &run.pods_max);
	if (rc == 0)
		rc = hf_run_input_load(cli, &run.in);
	if (rc == 0 && run.in.print)
		rc = hf_script_job_print(cli, &run.in.manifest);
	if (rc == 0 && !run.in.print)
		rc = prepare_job(&run);
	if (rc == 0 && !run.in.print)
		rc = parse_flags(&run);
	if (rc == 0 && !run.in.print)
		rc = run_job(&run, timeout);
	release_run(&run);
	return rc;
}

static const struct hf_flag run_flags[] = {
	{"filename", 'f', "FILE", "a manifest; give the flag again for further files", NULL},
	{"nproc", 0, "N",
	 "ranks of the program, each with a GPU if there are any: a number, gpu, cpu or auto",
	 "a rank for each GPU, else 1"},
	{"module", 'm', NULL, "the program is a Python module, such as pkg.train", NULL},
	{"max-restarts", 0, "N", "restart the program after any failure, up to N times",
	 "3, and only ranks that a signal killed"},
	{"print-job", 0, NULL, "print the manifest of the program's job, and do not run it", NULL},
	{"env", 'e', "NAME=VALUE", "a variable for the ranks; NAME alone: the shell's value", NULL},
	{"env-file", 0, "FILE", "variables for the ranks, one NAME=VALUE in a line", NULL},
	{"pass-env", 0, "NAMES",
	 "variables of the shell for the ranks, such as 'HF_*,WANDB_*'; a program gets all", NULL},
	{"gpus", 0, "GPUS", "GPUs for the ranks: all, none, or numbers such as 0,2",
	 "$CUDA_VISIBLE_DEVICES, else all"},
	{"fit", 0, NULL, "if the job asks for more than this machine has: fewer ranks, or no GPUs",
	 NULL},
	{"max-pods", 0, "N", "how many pods, and so ranks, run here at once", "110"},
	{"progress", 0, "HOW", "auto: a status block on a terminal; plain: lines", "auto"},
	{"no-logs", 0, NULL, "do not show the logs of the ranks", NULL},
	{"ranks", 0, "LIST", "show the logs of these ranks only, such as 0,2 or worker-1; all",
	 "all ranks; of more than 16, the first"},
	{"step-regex", 0, "REGEX",
	 "read steps from log lines: the first group, or the groups step, total, loss, rate; none: read no lines",
	 "the lines of well-known trainers"},
	{"timeout", 0, "SPAN", "stop after this time, such as 10m, with exit code 124; 0: never",
	 "0"},
	{"inject", 0, "FAULT",
	 "cause a fault, such as 'kill worker-1 at 5s': 5 s after the job first runs", NULL},
	{"network", 0, "HOW",
	 "auto: a network for each pod; a program that would have no internet gets this machine's; host: this machine's network",
	 "auto"},
	HF_LOCAL_PAGE_FLAGS,
	{"namespace", 'n', "NAME", "namespace of the job, if the manifest has none", "default"},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_run = {
	.name = "run",
	.summary = "Train a job on this machine, without a cluster",
	.usage = "FILE | [--nproc N] SCRIPT [ARGUMENTS] | -- COMMAND",
	.group = HF_CLI_RUN_HERE,
	.examples = "  holdfast run --nproc 2 train.py --epochs 3\n"
		    "  holdfast run job.yaml --inject 'kill worker-1 at 5s'\n"
		    "  holdfast run --nproc 2 train.py --print-job >job.yaml\n",
	.note = "FILE is a manifest of a job; -: standard input. A word that ends in .py, or an executable "
		"file,\nis a program: the flags of run stand before it. --print-job may also stand last.",
	.flags = run_flags,
	.foreign = hf_script_foreign_flags,
	.args_min = 0,
	.words = HF_CLI_WORDS_FILES,
	.args_max = -1,
	.takes_rest = hf_script_is_program,
	.run = verb_run,
};
