/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast top: on a terminal a screen of jobs, or of the ranks of one job, that follows the changes; else one
 * table. The model is in top_model.c, the drawing in top_screen.c. */
#include "app/top.h"

#include "app/keyboard.h"
#include "app/verbs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/request.h"
#include "core/model/names.h"
#include "framework/framework.h"
#include "json/json.h"
#include "store/resource.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_SPAN (HF_SECOND / 4) /* at most four screens a second */
#define AGES_SPAN (5 * HF_SECOND)   /* ages are drawn anew, although nothing has changed */
#define TICK_SPAN HF_SECOND         /* the size of the terminal is read */
#define AGAIN_SPAN HF_SECOND        /* after the end of a watch */
/* A watch that is alive so long has reported each object that exists. */
#define SWEEP_SPAN (10 * HF_SECOND)
#define ESC_SPAN (50 * HF_MS) /* a terminal sends the bytes of a key together */
#define SCREEN_BYTES_MAX ((size_t)1 << 20)
#define JSON_BYTES_MAX ((size_t)64 << 20)
#define KINDS_MAX 8
#define SIGNALS 3

struct topping;

enum watched { WATCHED_JOBS, WATCHED_PODS, WATCHED_HEALTH };

struct following {
	struct topping *topping;
	enum watched what;
	const struct hf_resource *resource;
	struct hf_watch *watch;
	struct hf_timer *again;
	bool stale; /* rows may be those of an earlier watch */
};

struct topping {
	struct hf_cli *cli;
	struct hf_top *top;
	struct hf_top_screen screen;
	struct following follow[KINDS_MAX + 2]; /* the kinds of jobs, pods, DeviceHealths */
	size_t n_follow;
	struct hf_keyboard *keyboard;
	struct hf_top_keys keys;
	struct hf_timer *redraw, *tick, *esc;
	struct hf_signal *signals[SIGNALS];
	char *shown; /* the last screen; NULL: none */
	hf_time drawn_at;
	bool away; /* another program uses the terminal: nothing is drawn */
	bool over;
	int exit_code;
};

static hf_time mono_of(const struct topping *t)
{
	return hf_loop_mono(t->cli->loop);
}

static void end_top(struct topping *t, int exit_code)
{
	t->exit_code = exit_code;
	t->over = true;
	hf_loop_stop(t->cli->loop);
}

/* ---- the screen -------------------------------------------------------------------------------------- */

static void draw_screen(void *arg)
{
	struct topping *t = arg;
	HF_AUTO_STRBUF out = HF_STRBUF_INIT(SCREEN_BYTES_MAX);

	if (t->away)
		return;
	t->drawn_at = mono_of(t);
	t->screen.now = hf_loop_wall(t->cli->loop);
	hf_top_draw(t->top, &t->screen, &out);
	if (t->shown != NULL && hf_streq(t->shown, out.data))
		return;
	fputs(out.data, t->cli->out);
	/* If the terminal is gone, fflush fails. */
	if (fflush(t->cli->out) != 0)
		end_top(t, HF_EXIT_FAILED);
	free(t->shown);
	t->shown = hf_strbuf_detach(&out);
}

/* Draws at the next moment that REDRAW_SPAN allows. */
static void draw_soon(struct topping *t)
{
	hf_time wait = t->drawn_at + REDRAW_SPAN - mono_of(t);

	if (!hf_timer_armed(t->redraw))
		hf_timer_arm(t->redraw, t->shown == NULL || wait < 0 ? 0 : wait);
}

static void read_size(struct topping *t)
{
	struct winsize size;
	struct hf_top_screen *screen = &t->screen;

	if (ioctl(hf_cli_out_fd(t->cli), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
	    size.ws_row == 0)
		size = (struct winsize){.ws_col = 80, .ws_row = 24};
	if (size.ws_col == screen->width && size.ws_row == screen->height)
		return;
	screen->width = size.ws_col;
	screen->height = size.ws_row;
	/* What the terminal shows after a change of its size is unknown. */
	fputs("\033[2J", t->cli->out);
	free(t->shown);
	t->shown = NULL;
}

static void on_tick(void *arg)
{
	struct topping *t = arg;

	hf_keyboard_look(t->keyboard);
	if (!t->away)
		read_size(t);
	if (t->shown == NULL || mono_of(t) - t->drawn_at >= AGES_SPAN)
		draw_soon(t);
	hf_timer_arm(t->tick, TICK_SPAN);
}

static void on_signal(void *arg, int signum)
{
	(void)signum;
	end_top(arg, HF_EXIT_INTERRUPTED);
}

/* ---- watches ----------------------------------------------------------------------------------------- */

static void see_object(struct topping *t, enum watched what, struct hf_doc *object, bool gone)
{
	switch (what) {
	case WATCHED_JOBS: hf_top_see_job(t->top, object, gone, hf_loop_wall(t->cli->loop)); break;
	case WATCHED_PODS: hf_top_see_pod(t->top, object, gone); break;
	case WATCHED_HEALTH: hf_top_see_health(t->top, object); break;
	}
}

static void on_event(void *arg, const struct hf_event *event)
{
	struct following *follow = arg;
	struct topping *t = follow->topping;

	if (event->type == HF_EVENT_BOOKMARK || t->over)
		return;
	if (event->type == HF_EVENT_ENDED) {
		follow->watch = hf_watch_stop(follow->watch);
		follow->stale = true;
		/* An account without the right to read DeviceHealths sees no steps of ranks. */
		if (follow->what == WATCHED_HEALTH &&
		    (event->code == HF_E_FORBIDDEN || event->code == HF_E_NOT_FOUND))
			return;
		t->screen.notice =
			event->code != 0 ? "the server is not reached; trying again" : NULL;
		hf_timer_arm(follow->again, AGAIN_SPAN);
		draw_soon(t);
		return;
	}
	t->screen.notice = NULL;
	see_object(t, follow->what, event->object, event->type == HF_EVENT_DELETED);
	draw_soon(t);
}

/* The kind of jobs that the watch reports; NULL: pods. */
static const char *kind_of(const struct following *follow)
{
	return follow->what == WATCHED_JOBS ? follow->resource->kind : NULL;
}

/* Begins the watch, with an event for each object that exists. Some time later, removes the rows that it has not
 * reported. */
static void follow_again(void *arg)
{
	struct following *follow = arg;
	struct topping *t = follow->topping;
	const struct hf_watch_options options = {
		.resource = follow->resource,
		.ns = follow->resource->namespaced && !t->cli->all_namespaces ? t->cli->ns : NULL,
		.label_selector = follow->what == WATCHED_PODS ? HF_LABEL_JOB_NAME : NULL,
	};

	if (follow->watch != NULL) {
		hf_top_sweep(t->top, kind_of(follow));
		follow->stale = false;
		t->screen.notice = NULL;
		draw_soon(t);
		return;
	}
	follow->watch = hf_store_watch(t->cli->store, &options, on_event, follow);
	if (!follow->stale || follow->what == WATCHED_HEALTH)
		return;
	hf_top_mark(t->top, kind_of(follow));
	hf_timer_arm(follow->again, SWEEP_SPAN);
}

static void follow_kind(struct topping *t, enum watched what, const struct hf_resource *resource)
{
	struct following *follow = &t->follow[t->n_follow++];

	*follow = (struct following){.topping = t, .what = what, .resource = resource};
	follow->again = hf_timer_create(t->cli->loop, follow_again, follow);
	follow_again(follow);
}

/* Steps of ranks are read once a job is opened: the reports of all nodes are many. */
static void follow_health(struct topping *t)
{
	for (size_t i = 0; i < t->n_follow; i++)
		if (t->follow[i].what == WATCHED_HEALTH)
			return;
	if (t->screen.open != NULL)
		follow_kind(t, WATCHED_HEALTH, &hf_devicehealths);
}

static void follow_all(struct topping *t)
{
	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		follow_kind(t, WATCHED_JOBS, hf_cli_resource_of(hf_frameworks[i]));
	follow_kind(t, WATCHED_PODS, &hf_pods);
	follow_health(t);
}

/* ---- keys -------------------------------------------------------------------------------------------- */

static void press_key(struct topping *t, enum hf_top_key key)
{
	if (key == HF_TOP_NO_KEY)
		return;
	if (key == HF_TOP_QUIT) {
		end_top(t, HF_EXIT_OK);
		return;
	}
	hf_top_press(t->top, &t->screen, key);
	follow_health(t);
	draw_soon(t);
}

static void on_key(void *arg, char byte)
{
	struct topping *t = arg;

	press_key(t, hf_top_keys_feed(&t->keys, byte));
	if (t->keys.len > 0)
		hf_timer_arm(t->esc, ESC_SPAN);
}

static void on_esc(void *arg)
{
	struct topping *t = arg;

	press_key(t, hf_top_keys_end(&t->keys));
}

/* ---- following on a terminal ----------------------------------------------------------------------------- */

static void open_screen(struct topping *t)
{
	fputs("\033[?1049h\033[?25l\033[2J", t->cli->out); /* the other screen, no cursor */
	free(t->shown);
	t->shown = NULL;
	t->away = false;
}

static void come_back(void *arg)
{
	open_screen(arg);
	draw_soon(arg);
}

static void leave_screen(void *arg)
{
	struct topping *t = arg;

	fputs("\033[?25h\033[?1049l", t->cli->out);
	(void)fflush(t->cli->out);
	t->away = true;
}

static int open_terminal(struct topping *t, struct hf_error *err)
{
	static const int numbers[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < SIGNALS; i++)
		rc = hf_signal_create(t->cli->loop, numbers[i], on_signal, t, &t->signals[i], err);
	if (rc == 0)
		rc = hf_keyboard_create(&(struct hf_keyboard_options){.loop = t->cli->loop,
								      .key = on_key,
								      .leave = leave_screen,
								      .back = come_back,
								      .arg = t},
					&t->keyboard, err);
	if (rc == 0)
		open_screen(t);
	return rc;
}

static void close_terminal(struct topping *t)
{
	if (!t->away)
		leave_screen(t);
	t->keyboard = hf_keyboard_destroy(t->keyboard);
	for (size_t i = 0; i < SIGNALS; i++)
		t->signals[i] = hf_signal_destroy(t->signals[i]);
}

static int follow_changes(struct topping *t)
{
	struct hf_error err;

	if (open_terminal(t, &err) != 0) {
		close_terminal(t);
		return hf_cli_fail(t->cli, &err);
	}
	t->redraw = hf_timer_create(t->cli->loop, draw_screen, t);
	t->tick = hf_timer_create(t->cli->loop, on_tick, t);
	t->esc = hf_timer_create(t->cli->loop, on_esc, t);
	read_size(t);
	follow_all(t);
	on_tick(t);
	hf_cli_run_until(t->cli, &t->over);
	for (size_t i = 0; i < t->n_follow; i++) {
		(void)hf_watch_stop(t->follow[i].watch);
		hf_timer_destroy(t->follow[i].again);
	}
	hf_timer_destroy(t->redraw);
	hf_timer_destroy(t->tick);
	hf_timer_destroy(t->esc);
	close_terminal(t);
	return t->exit_code;
}

/* ---- one table --------------------------------------------------------------------------------------- */

static int list_into(struct topping *t, enum watched what, const struct hf_resource *resource,
		     struct hf_error *err)
{
	const struct hf_request request = {
		.verb = HF_VERB_LIST,
		.resource = resource,
		.ns = resource->namespaced && !t->cli->all_namespaces ? t->cli->ns : NULL,
		.label_selector = what == WATCHED_PODS ? HF_LABEL_JOB_NAME : NULL,
	};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	int rc = hf_cli_request(t->cli, &request, &reply, err);

	for (size_t i = 0; rc == 0 && i < reply.n_items; i++)
		see_object(t, what, reply.items[i], false);
	return rc;
}

static int list_all(struct topping *t, struct hf_error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && hf_frameworks[i] != NULL; i++)
		rc = list_into(t, WATCHED_JOBS, hf_cli_resource_of(hf_frameworks[i]), err);
	/* Without the right to read pods or DeviceHealths, the numbers of jobs remain. */
	if (rc == 0)
		(void)!list_into(t, WATCHED_PODS, &hf_pods, NULL);
	if (rc == 0 && t->screen.open != NULL)
		(void)!list_into(t, WATCHED_HEALTH, &hf_devicehealths, NULL);
	return rc;
}

static void print_table(struct topping *t, const struct hf_top_column *columns, size_t n_columns,
			const struct hf_top_cells *rows, size_t n)
{
	size_t from = columns == hf_top_job_columns && !t->screen.namespaces ? 1 : 0;
	const char *headers[HF_TOP_COLUMNS_MAX];
	struct hf_table *table;

	for (size_t c = 0; c < n_columns; c++)
		headers[c] = columns[c].header;
	table = hf_table_create(headers + from, n_columns - from);
	for (size_t i = 0; i < n; i++)
		for (size_t c = from; c < n_columns; c++)
			hf_table_cell(table, "%s", rows[i].text[c]);
	hf_table_print(table, t->cli->out, !hf_cli_has(t->cli, "no-headers"));
	hf_table_destroy(table);
}

/* Prints the cells as JSON: a list of objects whose keys are the headers in lower case. */
static void print_json(struct topping *t, const struct hf_top_column *columns, size_t n_columns,
		       const struct hf_top_cells *rows, size_t n)
{
	HF_AUTO_JSON object = hf_json_object();
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(JSON_BYTES_MAX);
	struct hf_json *list =
		hf_json_ensure_array(object, columns == hf_top_job_columns ? "jobs" : "ranks");

	for (size_t i = 0; i < n; i++) {
		struct hf_json *item = hf_json_object();

		for (size_t c = 0; c < n_columns; c++) {
			HF_AUTOFREE char *key = hf_xstrdup(columns[c].header);

			hf_str_lower(key);
			for (char *blank = key; (blank = strchr(blank, ' ')) != NULL;)
				*blank = '-';
			hf_json_set_str(item, key, rows[i].text[c]);
		}
		hf_json_append(list, item);
	}
	hf_json_write(object, HF_JSON_INDENTED, &text);
	fprintf(t->cli->out, "%s\n", text.data);
}

static int print_once(struct topping *t)
{
	const struct hf_top_column *columns = hf_top_job_columns;
	hf_time now = hf_loop_wall(t->cli->loop);
	size_t n_columns = HF_TOP_JOB_COLUMNS, n;
	const struct hf_top_job *open;
	struct hf_top_cells *rows;
	struct hf_error err;

	if (list_all(t, &err) != 0)
		return hf_cli_fail(t->cli, &err);
	open = hf_top_find(t->top, t->screen.open);
	if (open != NULL) {
		struct hf_top_rank *const *ranks = hf_top_ranks(t->top, open, t->screen.sort, &n);

		columns = hf_top_rank_columns;
		n_columns = HF_TOP_RANK_COLUMNS;
		rows = hf_xcalloc(n + 1, sizeof(*rows));
		for (size_t i = 0; i < n; i++)
			hf_top_rank_cells(ranks[i], open, now, &rows[i]);
	} else {
		struct hf_top_job *const *jobs = hf_top_jobs(t->top, t->screen.sort, &n);

		rows = hf_xcalloc(n + 1, sizeof(*rows));
		for (size_t i = 0; i < n; i++)
			hf_top_job_cells(jobs[i], now, &rows[i]);
	}
	if (hf_streq(hf_cli_flag(t->cli, "output"), "json"))
		print_json(t, columns, n_columns, rows, n);
	else if (n > 0)
		print_table(t, columns, n_columns, rows, n);
	else
		fputs(open != NULL ? "The job has no pods\n" : "No jobs found\n", t->cli->err);
	free(rows);
	return HF_EXIT_OK;
}

/* ---- the verb ---------------------------------------------------------------------------------------- */

static int read_sort(struct topping *t)
{
	const char *name = hf_cli_flag(t->cli, "sort-by");

	while (name != NULL && t->screen.sort < HF_TOP_SORTS &&
	       !hf_streq(name, hf_top_sort_name(t->screen.sort)))
		t->screen.sort++;
	if (t->screen.sort < HF_TOP_SORTS)
		return 0;
	return hf_cli_usage(
		t->cli, "--sort-by takes state, name, restarts, progress or speed, not '%s'", name);
}

static int run_top(struct topping *t)
{
	const char *output = hf_cli_flag(t->cli, "output");
	const struct hf_framework *framework;
	HF_AUTO_DOC job = NULL;
	struct hf_error err;
	int rc = read_sort(t);

	if (rc != 0)
		return rc;
	if (output != NULL && !hf_streq(output, "json") && !hf_streq(output, "table"))
		return hf_cli_usage(t->cli, "-o takes table or json with this verb, not '%s'",
				    output);
	if (t->cli->n_args > 0) {
		if (hf_cli_find_job(t->cli, t->cli->args[0], &job, &framework, &err) != 0)
			return hf_cli_fail(t->cli, &err);
		t->screen.open = hf_xstrdup(hf_str_or(hf_doc_uid(job), ""));
		hf_top_see_job(t->top, job, false, hf_loop_wall(t->cli->loop));
	}
	if (output == NULL && t->cli->tty && isatty(STDIN_FILENO) == 1)
		return follow_changes(t);
	return print_once(t);
}

static int verb_top(struct hf_cli *cli)
{
	struct topping t = {.cli = cli,
			    .screen = {.color = cli->color,
				       .utf8 = cli->utf8,
				       .namespaces = cli->all_namespaces}};
	int rc;

	t.top = hf_top_create();
	rc = run_top(&t);
	hf_top_destroy(t.top);
	free(t.screen.open);
	free(t.screen.selected);
	free(t.shown);
	return rc;
}

static const struct hf_flag top_flags[] = {
	{"sort-by", 0, "ORDER", "state, name, restarts, progress or speed (slowest first)",
	 "state"},
	{"output", 'o', "FORMAT", "print once instead: table or json", NULL},
	{"no-headers", 0, NULL, "print the table without the header line", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_top = {
	.name = "top",
	.connects = true,
	.takes_kind = true,
	.summary = "Follow jobs, or the ranks of a job, on one screen",
	.usage = "[JOB]",
	.note = HF_CLI_NOTE_JOB
	"\nKeys: q quits, j and k move, Enter shows the ranks of a job, Esc the jobs, s "
	"sorts.\nWithout a terminal, one table is printed.",
	.group = HF_CLI_LOOK,
	.examples = "  holdfast top -A\n"
		    "  holdfast top ddp\n"
		    "  holdfast top -A --sort-by restarts -o table\n",
	.flags = top_flags,
	.words = HF_CLI_WORDS_JOBS,
	.args_max = 1,
	.run = verb_top,
};
