/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast runs: lists the kept runs of `holdfast run`. */
#include "app/verbs.h"

#include "app/kept_runs.h"
#include "app/plane.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/output.h"

#include <inttypes.h>
#include <time.h>

#define PRINT_BYTES_MAX ((size_t)4 << 20)

static void print_local_time(hf_time time, char *text, size_t size)
{
	time_t seconds = (time_t)(time / HF_SECOND);
	struct tm tm;

	text[0] = '\0';
	if (localtime_r(&seconds, &tm) != NULL)
		(void)strftime(text, size, "%Y-%m-%d %H:%M:%S", &tm);
}

/* Computes how long the run took; for a run that goes on, the time until now. False for a killed
 * run: its end is unknown. */
static bool elapsed_of(const struct hf_kept_run *run, hf_time now, hf_time *ret_span)
{
	hf_time end = run->ended != HF_TIME_NONE ? run->ended : now;

	if (run->ended == HF_TIME_NONE && !run->alive)
		return false;
	*ret_span = end > run->started ? end - run->started : 0;
	return true;
}

static void print_table(struct hf_cli *cli, const struct hf_kept_runs *runs, hf_time now)
{
	static const char *const headers[] = {"RUN",     "NAME",     "STATE", "STARTED",
					      "ELAPSED", "RESTARTS", "CAUSE"};
	struct hf_table *table = hf_table_create(headers, HF_ARRAY_LEN(headers));

	for (size_t i = 0; i < runs->n; i++) {
		const struct hf_kept_run *run = &runs->items[i];
		char started[64], elapsed[HF_TIME_TEXT_MAX] = "-";
		hf_time span;

		print_local_time(run->started, started, sizeof(started));
		if (elapsed_of(run, now, &span))
			hf_span_format(span - span % HF_SECOND, elapsed);
		hf_table_cell(table, "@%zu", i + 1);
		hf_table_cell(table, "%s", run->name);
		hf_table_cell(table, "%s", run->state);
		hf_table_cell(table, "%s", started);
		hf_table_cell(table, "%s", elapsed);
		hf_table_cell(table, "%" PRId64, run->restarts);
		hf_table_cell(table, "%s", hf_str_is_empty(run->cause) ? "-" : run->cause);
	}
	hf_table_print(table, cli->out, true);
	hf_table_destroy(table);
}

static void set_time(struct hf_json *object, const char *key, hf_time time)
{
	char text[HF_TIME_TEXT_MAX];

	hf_time_format_micro(time, text);
	hf_json_set_str(object, key, text);
}

static int print_json(struct hf_cli *cli, const struct hf_kept_runs *runs, hf_time now)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(PRINT_BYTES_MAX);
	HF_AUTO_JSON list = hf_json_array();

	for (size_t i = 0; i < runs->n; i++) {
		const struct hf_kept_run *run = &runs->items[i];
		struct hf_json *object = hf_json_object();
		hf_time span;

		hf_json_set_i64(object, "run", (int64_t)i + 1);
		hf_json_set_str(object, "id", run->id);
		hf_json_set_str(object, "name", run->name);
		hf_json_set_str(object, "namespace", run->ns);
		hf_json_set_str(object, "kind", run->kind);
		hf_json_set_str(object, "state", run->state);
		set_time(object, "startedAt", run->started);
		if (run->ended != HF_TIME_NONE) {
			set_time(object, "endedAt", run->ended);
			hf_json_set_i64(object, "exitCode", run->exit_code);
		}
		if (elapsed_of(run, now, &span))
			hf_json_set_i64(object, "elapsedSeconds", span / HF_SECOND);
		hf_json_set_i64(object, "restarts", run->restarts);
		hf_json_set_str(object, "cause", run->cause);
		hf_json_set_str(object, "folder", run->path);
		hf_json_append(list, object);
	}
	hf_json_write(list, HF_JSON_INDENTED, &text);
	fprintf(cli->out, "%s\n", text.data);
	return HF_EXIT_OK;
}

void hf_kept_runs_each(void (*fn)(void *arg, const char *name, const char *description), void *arg)
{
	HF_AUTO_KEPT_RUNS runs = {.n = 0};
	HF_AUTOFREE char *dir = NULL;
	struct hf_error err;

	if (hf_plane_default_dir(&dir, &err) != 0)
		return;
	hf_kept_runs_list(dir, &runs);
	for (size_t i = 0; i < runs.n; i++) {
		const struct hf_kept_run *run = &runs.items[i];
		HF_AUTOFREE char *number = hf_xasprintf("@%zu", i + 1);
		HF_AUTOFREE char *what = hf_xasprintf("%s, %s", run->name, run->state);

		fn(arg, number, what);
		/* Offer a job's name once, for its newest run: that is the run which the name
		 * stands for. */
		if (hf_kept_runs_find(&runs, run->name) == run)
			fn(arg, run->name, run->state);
	}
}

static int verb_runs(struct hf_cli *cli)
{
	const char *output = hf_cli_flag(cli, "output");
	HF_AUTO_KEPT_RUNS runs = {.n = 0};
	HF_AUTOFREE char *dir = NULL;
	struct timespec wall;
	struct hf_error err;
	hf_time now;

	if (output != NULL && !hf_streq(output, "json"))
		return hf_cli_usage(cli, "-o takes only json with this verb, not '%s'", output);
	if (hf_plane_default_dir(&dir, &err) != 0)
		return hf_cli_usage(cli, "%s", err.text);
	(void)clock_gettime(CLOCK_REALTIME, &wall);
	now = (hf_time)wall.tv_sec * HF_SECOND;
	hf_kept_runs_list(dir, &runs);
	if (output != NULL)
		return print_json(cli, &runs, now);
	if (runs.n == 0)
		fprintf(cli->err, "holdfast: no runs are kept in %s/runs\n", dir);
	else
		print_table(cli, &runs, now);
	return HF_EXIT_OK;
}

static const struct hf_flag runs_flags[] = {
	{"output", 'o', "FORMAT", "json: also has the exit codes and the folders", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_runs = {
	.name = "runs",
	.summary = "List the last runs on this machine",
	.usage = "",
	.group = HF_CLI_LOOK,
	.examples = "  holdfast runs\n"
		    "  holdfast runs -o json\n"
		    "  holdfast logs @2 --rank worker-1\n",
	.flags = runs_flags,
	.args_min = 0,
	.args_max = 0,
	.run = verb_runs,
};
