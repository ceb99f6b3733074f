/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast plot: draws the steps of a kept run into a file, as SVG or, by rsvg-convert, as PNG. */
#include "app/verbs.h"

#include "app/kept_runs.h"
#include "app/plane.h"
#include "app/plot.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* time limit of rsvg-convert, which normally takes less than a second */
#define CONVERT_SPAN (60 * HF_SECOND)

static const struct hf_kept_run *find_run(const struct hf_cli *cli, const struct hf_kept_runs *runs,
					  const char *dir)
{
	const char *word = cli->n_args > 0 ? cli->args[0] : "@latest";
	const struct hf_kept_run *run = hf_kept_runs_find(runs, word);
	struct hf_error err;

	if (run != NULL)
		return run;
	if (runs->n == 0)
		(void)hf_error_set(&err, HF_E_NOT_FOUND, "no runs are kept in %s/runs", dir);
	else
		(void)hf_kept_runs_missing(runs, word, &err);
	(void)hf_cli_fail(cli, &err);
	return NULL;
}

static void describe_run(const struct hf_kept_run *run, struct hf_strbuf *title,
			 struct hf_strbuf *note)
{
	char span[HF_TIME_TEXT_MAX], started[HF_TIME_TEXT_MAX];

	hf_strbuf_addf(title, "%s  %s", run->kind, run->name);
	hf_time_format(run->started, started);
	hf_strbuf_addf(note, "%s, started %s", run->state, started);
	if (run->ended != HF_TIME_NONE) {
		hf_span_format(run->ended - run->started, span);
		hf_strbuf_addf(note, ", took %s", span);
	}
	hf_strbuf_addf(note, ", restarts %" PRId64, run->restarts);
	if (!hf_str_is_empty(run->cause))
		hf_strbuf_addf(note, ": %s", run->cause);
}

static int draw_run(const struct hf_kept_run *run, struct hf_strbuf *svg, struct hf_error *err)
{
	HF_AUTO_STRBUF title = HF_STRBUF_INIT(512);
	HF_AUTO_STRBUF note = HF_STRBUF_INIT(160);
	struct hf_plot plot = {.started = run->started};
	struct hf_history *history = NULL;
	int rc = hf_history_load(run->path, &history, err);

	if (rc == HF_E_NOT_FOUND)
		return hf_error_set(
			err, HF_E_NOT_FOUND,
			"run '%s' has no steps: its program reported none, and no log line had one "
			"(--step-regex of 'holdfast run')",
			run->name);
	if (rc != 0)
		return rc;
	describe_run(run, &title, &note);
	plot.title = title.data;
	plot.note = note.data;
	plot.history = history;
	rc = hf_plot_write(&plot, svg, err);
	hf_history_destroy(history);
	return rc;
}

/* ---- PNG ----------------------------------------------------------------------------------- */

struct conversion {
	struct hf_loop *loop;
	struct hf_process_exit exit;
	bool late;
};

static void on_converted(void *arg, const struct hf_process_exit *exit)
{
	struct conversion *conversion = arg;

	conversion->exit = *exit;
	hf_loop_stop(conversion->loop);
}

static void on_late(void *arg)
{
	struct conversion *conversion = arg;

	conversion->late = true;
	hf_loop_stop(conversion->loop);
}

static int run_converter(struct conversion *conversion, const char *svg, const char *png,
			 struct hf_error *err)
{
	const char *const argv[] = {"rsvg-convert", "--format=png", "--output", png, svg, NULL};
	const struct hf_process_spec spec = {
		.argv = argv,
		.stdio = {HF_PROCESS_STDIO_NULL, HF_PROCESS_STDIO_NULL, STDERR_FILENO},
		.search_path = true,
		.die_with_parent = true};
	struct hf_process *process = NULL;
	struct hf_timer *timer;
	int rc = hf_process_spawn(conversion->loop, &spec, on_converted, conversion, &process, err);

	if (rc != 0)
		return hf_error_set(
			err, HF_E_NOT_FOUND,
			"a PNG needs the program rsvg-convert (Debian package librsvg2-bin); an SVG needs "
			"nothing: -o %s",
			"run.svg");
	timer = hf_timer_create(conversion->loop, on_late, conversion);
	hf_timer_arm(timer, CONVERT_SPAN);
	hf_loop_run(conversion->loop);
	hf_timer_destroy(timer);
	if (conversion->late)
		(void)hf_process_kill(process, SIGKILL, err);
	hf_process_destroy(process);
	if (conversion->late || !conversion->exit.known || conversion->exit.code != 0)
		return hf_error_set(err, HF_E_IO, "rsvg-convert has failed on '%s'", png);
	return 0;
}

/* rsvg-convert gets a temporary file with a known name, because a name that the user chose could
 * look like an option. */
static int write_png(const char *path, const struct hf_strbuf *svg, struct hf_error *err)
{
	HF_AUTOFREE char *absolute = path[0] == '/' ? hf_xstrdup(path) : hf_xasprintf("./%s", path);
	char source[] = "/tmp/holdfast-plot-XXXXXX";
	HF_AUTO_FD fd = mkostemp(source, O_CLOEXEC);
	struct conversion conversion = {.loop = NULL};
	int rc;

	if (fd < 0)
		return hf_error_errno(err, errno, "cannot create a file in /tmp");
	rc = hf_fs_write_all(fd, svg->data, svg->len);
	if (rc != 0)
		rc = hf_error_errno(err, errno, "cannot write '%s'", source);
	if (rc == 0)
		rc = hf_loop_create(&conversion.loop, err);
	if (rc == 0)
		rc = run_converter(&conversion, source, absolute, err);
	if (conversion.loop != NULL)
		hf_loop_destroy(conversion.loop);
	(void)unlink(source);
	return rc;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int write_picture(const struct hf_cli *cli, const char *path, const struct hf_strbuf *svg,
			 struct hf_error *err)
{
	if (hf_streq(path, "-")) {
		(void)fwrite(svg->data, 1, svg->len, cli->out);
		return 0;
	}
	if (hf_str_has_suffix(path, ".png"))
		return write_png(path, svg, err);
	return hf_fs_write_atomic(path, svg->data, svg->len, 0644, err);
}

static int verb_plot(struct hf_cli *cli)
{
	const char *path = hf_cli_flag(cli, "output");
	HF_AUTO_STRBUF svg = HF_STRBUF_INIT(HF_PLOT_BYTES_MAX);
	HF_AUTO_KEPT_RUNS runs = {.n = 0};
	HF_AUTOFREE char *dir = NULL;
	HF_AUTOFREE char *own = NULL;
	const struct hf_kept_run *run;
	struct hf_error err;
	int rc;

	if (path != NULL && !hf_streq(path, "-") && !hf_str_has_suffix(path, ".svg") &&
	    !hf_str_has_suffix(path, ".png"))
		return hf_cli_usage(
			cli, "-o takes a file that ends in .svg or .png, or -, not '%s'", path);
	if (hf_plane_default_dir(&dir, &err) != 0)
		return hf_cli_usage(cli, "%s", err.text);
	hf_kept_runs_list(dir, &runs);
	run = find_run(cli, &runs, dir);
	if (run == NULL)
		return HF_EXIT_FAILED;
	own = hf_xasprintf("%s.svg", run->name);
	path = hf_str_or(path, own);
	rc = draw_run(run, &svg, &err);
	if (rc == 0)
		rc = write_picture(cli, path, &svg, &err);
	if (rc != 0)
		return hf_cli_fail(cli, &err);
	if (!hf_streq(path, "-"))
		fprintf(cli->out, "%s\n", path);
	return HF_EXIT_OK;
}

static const struct hf_flag plot_flags[] = {
	{"output", 'o', "FILE", "the picture, .svg or .png; -: SVG on standard output", "NAME.svg"},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_plot = {
	.name = "plot",
	.summary = "Draw loss, step time and restarts of a run on this machine",
	.usage = "[RUN]",
	.group = HF_CLI_LOOK,
	.examples = "  holdfast plot\n"
		    "  holdfast plot @latest -o run.svg\n"
		    "  holdfast plot train -o run.png\n",
	.note = "RUN is @latest (the default), @2, a job's NAME or KIND/NAME; 'holdfast runs' lists the runs.\n"
		"A PNG needs the program rsvg-convert.",
	.flags = plot_flags,
	.args_min = 0,
	.words = HF_CLI_WORDS_RUNS,
	.args_max = 1,
	.run = verb_plot,
};
