/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Joins the progress of `run` with the pattern for log lines and with the history of the steps. */
#include "app/run_view.h"

#include "base/mem.h"
#include "base/str.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define SAVE_SPAN (5 * HF_SECOND)
/* Time between two saves of the steps, if the job has more than HF_PROGRESS_FEW ranks: the file may
 * then have 3 MB. */
#define SAVE_SPAN_MANY (30 * HF_SECOND)

struct hf_run_view {
	const struct hf_cli *cli;
	struct hf_pattern *pattern; /* NULL: --step-regex none */
	struct hf_history *history;
	struct hf_progress *progress;
	char *folder;
	hf_time saved_at;
};

static bool wants_block(const struct hf_cli *cli)
{
	return cli->tty && !hf_streq(hf_cli_flag(cli, "progress"), "plain");
}

int hf_run_view_create(const struct hf_cli *cli, struct hf_run_view **ret_view)
{
	const char *progress = hf_str_or(hf_cli_flag(cli, "progress"), "auto");
	const char *regex = hf_cli_flag(cli, "step-regex");
	struct hf_run_view *view;
	struct hf_pattern *pattern = NULL;
	struct hf_error err;

	if (!hf_streq(progress, "auto") && !hf_streq(progress, "plain"))
		return hf_cli_usage(cli, "--progress takes auto or plain, not '%s'", progress);
	if (!hf_streq(regex, "none") && hf_pattern_create(regex, &pattern, &err) != 0)
		return hf_cli_usage(cli, "--step-regex '%s': %s", regex, err.text);
	view = hf_xcalloc(1, sizeof(*view));
	view->cli = cli;
	view->pattern = pattern;
	view->history = hf_history_create();
	*ret_view = view;
	return 0;
}

struct hf_run_view *hf_run_view_destroy(struct hf_run_view *view)
{
	if (view == NULL)
		return NULL;
	view->progress = hf_progress_destroy(view->progress);
	view->history = hf_history_destroy(view->history);
	view->pattern = hf_pattern_destroy(view->pattern);
	free(view->folder);
	free(view);
	return NULL;
}

struct hf_progress *hf_run_view_open(struct hf_run_view *view,
				     const struct hf_run_view_options *options)
{
	const struct hf_cli *cli = view->cli;
	const struct hf_progress_options progress = {
		.redraw = wants_block(cli),
		.color = cli->color,
		.utf8 = cli->utf8,
		.width = cli->width,
		.logs = !hf_cli_has(cli, "no-logs"),
		.ranks = options->ranks,
		.keys = wants_block(cli) && options->keyboard,
		.out = cli->out,
		.pattern = view->pattern,
		.history = view->history,
	};

	view->folder = hf_xstrdup(options->folder);
	view->progress = hf_progress_create(&progress, options->job);
	return view->progress;
}

void hf_run_view_save(struct hf_run_view *view, hf_time now, bool now_or_never)
{
	hf_time span = view->history->n_ranks > HF_PROGRESS_FEW ? SAVE_SPAN_MANY : SAVE_SPAN;
	struct hf_error err;

	if (!view->history->changed ||
	    (!now_or_never && now >= view->saved_at && now - view->saved_at < span))
		return;
	view->saved_at = now;
	(void)!hf_history_save(view->history, view->folder, &err);
}

void hf_run_view_why(struct hf_run_view *view, struct hf_operator *op, const struct hf_job_ref *job,
		     hf_time now)
{
	HF_AUTO_ARENA arena = hf_arena_create(HF_OPERATOR_PASS_BYTES_MAX);
	struct hf_job_view seen;
	struct hf_plan plan;

	if (hf_operator_explain(op, job, arena, &seen, &plan, NULL) != 0)
		return;
	hf_progress_note(view->progress, now, "%s %s", job->name, hf_str_or(plan.summary, ""));
	for (size_t i = 0; i < plan.reasons_len; i++)
		hf_progress_note(view->progress, plan.reasons[i].time, "  %-9s %s",
				 hf_topic_name(plan.reasons[i].topic), plan.reasons[i].text);
}

void hf_run_view_end(const struct hf_cli *cli, bool timed_out)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	if (timed_out)
		fprintf(cli->err, "holdfast: timed out after %s (--timeout); the job was stopped\n",
			hf_cli_flag(cli, "timeout"));
	/* If the output could not be written (closed pipe, full disk), the job did not fail, so the
	 * exit code stays that of the job. */
	if (fflush(cli->out) != 0 || ferror(cli->out) != 0) {
		/* POLLERR: the reader of the pipe has ended, as `head` does; that loses nothing. */
		if (poll(&out, 1, 0) <= 0 || (out.revents & POLLERR) == 0)
			hf_cli_print_lost(cli);
		clearerr(cli->out);
	}
}
