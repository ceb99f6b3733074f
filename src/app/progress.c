/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* What `holdfast run` prints: on a terminal a block that is redrawn in place, elsewhere one line
 * for each change. Input: every version of the job and of its pods, log bytes and training
 * steps. */
#include "app/progress.h"

#include "app/pod_state.h"
#include "app/rank_row.h"
#include "app/rank_states.h"
#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "cli/facts.h"
#include "cli/rank.h"
#include "cli/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCK_LINES                                                                                \
	4 /* lines of the block that are not ranks: job, sparklines, number of hidden ranks, keys */
#define NARROW 50    /* columns: below, words are short */
#define SPARK_MAX 40 /* columns of one sparkline */
#define COUNTS_SPAN HF_SECOND
/* limit of lines about failed pods in one COUNTS_SPAN, if the job has many ranks */
#define FAILURES_SHOWN 5

struct rank {
	char *pod;
	char *uid;   /* UID of the newest pod with the name in `pod` */
	char *state; /* "Pending", "Running", "Failed (137)", … */
	char *last_line;
	char *init; /* the init container whose bytes arrived last; "": the first container's did */
	struct hf_strbuf partial; /* the unfinished line of the log */
	bool returned; /* a carriage return ended the last line: a newline after it is no empty line */
	int64_t restarts; /* container restarts of this pod */
	/* The last report of the rank. If several processes of the pod report, the one that came
	 * last. */
	bool has_step;
	struct hf_beat step;
	/* steps a second: measured over the last few seconds, or read from a log line; 0:
	 * unknown */
	double per_second;
	hf_time step_at;
	/* the rank's process reports steps itself, so no steps are read from its log lines */
	bool reports;
	struct hf_pattern_rank said; /* what its log lines said before */
	/* The step of the rank when the present interval began; the interval measures
	 * per_second. */
	uint64_t counted_step;
	hf_time counted_at;
};

/* Interval in which the step rate is measured. */
#define RATE_SPAN (2 * HF_SECOND)

struct hf_progress {
	struct hf_progress_options options;
	char *job;
	HF_VEC(struct rank *) ranks;
	/* the state of the job that was printed last */
	char *state;
	char *message;
	int64_t generation, restarts;
	struct hf_job_delay delay; /* until HF_TIME_NONE: no restart waits */
	hf_time first_seen;
	bool dirty;
	/* the width in columns of each line of the block that is now on the screen */
	HF_VEC(int) drawn;
	int under; /* rows of the block before that are not yet overwritten or erased */
	/* For jobs with many ranks: the counts of pods have changed since they were printed; the
	 * note about hidden logs was printed. */
	bool counts_changed, told_logs;
	hf_time counts_at;
	int failures_shown;
};

static void replace_text(char **text, const char *with)
{
	free(*text);
	*text = hf_xstrdup(with);
}

struct hf_progress *hf_progress_create(const struct hf_progress_options *options, const char *job)
{
	struct hf_progress *p = hf_xcalloc(1, sizeof(*p));

	p->options = *options;
	p->job = hf_xstrdup(job);
	p->state = hf_xstrdup("");
	p->message = hf_xstrdup("");
	p->ranks.len_max = HF_PROGRESS_RANKS_MAX;
	p->drawn.len_max = HF_PROGRESS_RANKS_MAX + BLOCK_LINES;
	p->first_seen = HF_TIME_NONE;
	p->delay.until = HF_TIME_NONE;
	return p;
}

static void rank_free(struct rank *rank)
{
	free(rank->pod);
	free(rank->uid);
	free(rank->state);
	free(rank->last_line);
	free(rank->init);
	hf_strbuf_release(&rank->partial);
	free(rank);
}

struct hf_progress *hf_progress_destroy(struct hf_progress *p)
{
	if (p == NULL)
		return NULL;
	for (size_t i = 0; i < p->ranks.len; i++)
		rank_free(p->ranks.items[i]);
	HF_VEC_RELEASE(&p->ranks);
	HF_VEC_RELEASE(&p->drawn);
	free(p->job);
	free(p->state);
	free(p->message);
	free(p);
	return NULL;
}

/* ---- ranks -------------------------------------------------------------------------------- */

static const char *rank_name(const struct hf_progress *p, const struct rank *rank)
{
	return hf_cli_rank_of_pod(rank->pod, p->job);
}

static struct rank *find_rank(struct hf_progress *p, const char *pod)
{
	struct rank *rank;
	size_t at = 0;

	for (size_t i = 0; i < p->ranks.len; i++)
		if (hf_streq(p->ranks.items[i]->pod, pod))
			return p->ranks.items[i];
	rank = hf_xcalloc(1, sizeof(*rank));
	rank->pod = hf_xstrdup(pod);
	rank->uid = hf_xstrdup("");
	rank->state = hf_xstrdup("");
	rank->last_line = hf_xstrdup("");
	rank->init = hf_xstrdup("");
	hf_strbuf_init(&rank->partial, HF_PROGRESS_LINE_BYTES_MAX);
	if (!HF_VEC_PUSH(&p->ranks, rank)) {
		rank_free(rank);
		return NULL;
	}
	/* Sort by name, so that the rows have the same order in every run, however the pods
	 * started. */
	while (at + 1 < p->ranks.len && strverscmp(p->ranks.items[at]->pod, pod) < 0)
		at++;
	memmove(&p->ranks.items[at + 1], &p->ranks.items[at],
		(p->ranks.len - 1 - at) * sizeof(p->ranks.items[0]));
	p->ranks.items[at] = rank;
	return rank;
}

static bool is_crowded(const struct hf_progress *p)
{
	return p->ranks.len > HF_PROGRESS_FEW;
}

static bool wants_logs_of(const struct hf_progress *p, const struct rank *rank)
{
	const char *name = rank_name(p, rank), *at = p->options.ranks;

	if (!p->options.logs || hf_streq(at, "all") || (at == NULL && !is_crowded(p)))
		return p->options.logs;
	if (at == NULL)
		return rank == p->ranks.items[0];
	while (*at != '\0') {
		size_t len = strcspn(at, ",");
		if (strlen(name) == len && strncmp(at, name, len) == 0)
			return true;
		at += len + (at[len] == ',');
	}
	return false;
}

/* ---- steps -------------------------------------------------------------------------------- */

static void count_rate(struct rank *rank, const struct hf_beat *beat, hf_time now)
{
	bool anew = !rank->has_step || beat->step < rank->step.step ||
		    beat->attempt != rank->step.attempt;

	if (anew || now < rank->counted_at) {
		rank->per_second = 0;
	} else if (now - rank->counted_at < RATE_SPAN) {
		return;
	} else {
		rank->per_second = (double)(beat->step - rank->counted_step) * (double)HF_SECOND /
				   (double)(now - rank->counted_at);
	}
	rank->counted_step = beat->step;
	rank->counted_at = now;
}

/* Takes a step of the rank. per_second: the step rate that the process reported; 0: measure the
 * rate here. */
static void take_step(struct hf_progress *p, struct rank *rank, const struct hf_beat *beat,
		      double per_second, hf_time now)
{
	count_rate(rank, beat, now);
	if (per_second > 0)
		rank->per_second = per_second;
	rank->step = *beat;
	rank->step_at = now;
	rank->has_step = true;
	p->dirty = true;
	if (p->options.history != NULL)
		hf_history_step(p->options.history, rank_name(p, rank), beat, now);
}

void hf_progress_step(struct hf_progress *p, const char *pod_uid, const struct hf_beat *beat,
		      hf_time now)
{
	for (size_t i = 0; i < p->ranks.len; i++) {
		if (!hf_streq(p->ranks.items[i]->uid, pod_uid))
			continue;
		p->ranks.items[i]->reports = true;
		take_step(p, p->ranks.items[i], beat, 0, now);
	}
}

static struct hf_rank_row row_of(const struct hf_progress *p, const struct rank *rank, hf_time now)
{
	return (struct hf_rank_row){
		.name = rank_name(p, rank),
		.state = rank->state,
		.restarts = rank->restarts,
		.step = rank->has_step ? &rank->step : NULL,
		.per_second = rank->per_second,
		.silent = rank->has_step && now > rank->step_at ? now - rank->step_at : 0,
	};
}

/* ---- lines -------------------------------------------------------------------------------- */

static void add_clock(struct hf_strbuf *sb, hf_time now)
{
	time_t seconds = (time_t)(now / HF_SECOND);
	struct tm tm;

	if (localtime_r(&seconds, &tm) != NULL)
		hf_strbuf_addf(sb, "%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* The number of screen rows that the block takes now. If the terminal has become narrower, a long
 * line takes several rows. */
static int drawn_rows(const struct hf_progress *p)
{
	int rows = 0, width = p->options.width;

	for (size_t i = 0; i < p->drawn.len; i++)
		rows += width > 0 && p->drawn.items[i] > width
				? (p->drawn.items[i] + width - 1) / width
				: 1;
	/* The cursor cannot move above the first row of the terminal, so at most height - 1 rows
	 * are redrawn. */
	return p->options.height > 0 && rows >= p->options.height ? p->options.height - 1 : rows;
}

/* Moves the cursor to the first row of the block, which the next lines overwrite. */
static void go_to_block(struct hf_progress *p)
{
	p->under = p->drawn.len > 0 ? drawn_rows(p) : 0;
	if (p->under > 0)
		fprintf(p->options.out, "\033[%dA", p->under);
	p->drawn.len = 0;
}

/* Erases the row of the cursor, if it is of the block before. */
static void erase_row(struct hf_progress *p)
{
	if (p->under == 0)
		return;
	fputs("\033[2K", p->options.out);
	p->under--;
}

/* Erases the block row by row. tmux and screen copy what "erase to the end of the screen" erases into their
 * history, if the cursor is in the first row of the screen; then the history would have a copy of every block. */
static void erase_block(struct hf_progress *p)
{
	int rows;

	go_to_block(p);
	rows = p->under;
	while (p->under > 0) {
		erase_row(p);
		if (p->under > 0)
			fputs("\033[B", p->options.out);
	}
	if (rows > 1)
		fprintf(p->options.out, "\033[%dA", rows - 1);
}

/* Prints one line of output, above the block if there is a block. */
static void put_line(struct hf_progress *p, const char *line)
{
	erase_block(p);
	fputs(line, p->options.out);
	fputc('\n', p->options.out);
	p->dirty = true;
	if (!p->options.redraw)
		(void)fflush(p->options.out);
}

void hf_progress_note(struct hf_progress *p, hf_time now, const char *fmt, ...)
{
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(8192);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(8192);
	va_list ap;

	add_clock(&line, now);
	hf_strbuf_addch(&line, ' ');
	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	hf_text_add_clean(&line, text.data, text.len, p->options.utf8);
	put_line(p, line.data);
}

void hf_progress_note_lines(struct hf_progress *p, hf_time now, const char *text)
{
	HF_AUTOFREE char *copy = hf_xstrdup(hf_str_or(text, ""));
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n")) != NULL)
		if (*line != '\0')
			hf_progress_note(p, now, "%s", line);
}

/* ---- the job ------------------------------------------------------------------------------ */

const char *hf_progress_state(const struct hf_json *job)
{
	return hf_str_or(hf_json_path_str(hf_job_last_condition(job), "type", NULL), "Created");
}

static void note_state(struct hf_progress *p, const struct hf_json *job, hf_time now)
{
	HF_AUTO_STRBUF detail = HF_STRBUF_INIT(2048);
	char span[HF_TIME_TEXT_MAX];
	HF_AUTOFREE char *lower = hf_xstrdup(p->state);

	hf_str_lower(lower);
	hf_span_format(now - p->first_seen, span);
	if (hf_streq(p->state, "Created"))
		hf_strbuf_addf(&detail, " kind=%s",
			       hf_str_or(hf_json_path_str(job, "kind", NULL), ""));
	else
		hf_strbuf_addf(&detail, " after=%s", span);
	if (p->generation > 0)
		hf_strbuf_addf(&detail, " generation=%" PRId64, p->generation);
	if (p->restarts > 0)
		hf_strbuf_addf(&detail, " restarts=%" PRId64, p->restarts);
	if (hf_streq(p->state, "Failed") || hf_streq(p->state, "Restarting") ||
	    hf_streq(p->state, "Suspended"))
		hf_strbuf_addf(&detail, ": %s", p->message);
	hf_progress_note(p, now, "job/%s %s%s", p->job, lower, detail.data);
}

/* Prints once that a restart waits for the end of its delay. The block counts the seconds down. */
static void note_delay(struct hf_progress *p, const struct hf_json *job, hf_time now)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(256);
	hf_time before = p->delay.until;

	if (!hf_job_delay_read(job, now, &p->delay)) {
		p->delay.until = HF_TIME_NONE;
		return;
	}
	if (p->options.redraw || p->delay.until == before)
		return;
	hf_job_delay_text(&p->delay, now, &text);
	hf_progress_note(p, now, "job/%s %s", p->job, text.data);
}

void hf_progress_job(struct hf_progress *p, struct hf_doc *doc, hf_time now)
{
	const struct hf_json *job = hf_doc_json(doc);
	struct hf_job_facts facts;
	bool changed;

	hf_job_facts_read(job, &facts);
	if (p->first_seen == HF_TIME_NONE)
		p->first_seen = now;
	changed = !hf_streq(facts.state, p->state) ||
		  (facts.generation != p->generation && p->generation != 0);
	if (p->options.history != NULL && p->generation != 0 && facts.generation > p->generation)
		hf_history_restart(p->options.history, facts.generation, now);
	p->generation = facts.generation;
	p->restarts = hf_job_restarts(&facts);
	replace_text(&p->message, facts.message);
	if (changed) {
		replace_text(&p->state, facts.state);
		if (!p->options.redraw || hf_streq(facts.state, "Failed") ||
		    hf_streq(facts.state, "Restarting"))
			note_state(p, job, now);
	}
	note_delay(p, job, now);
	p->dirty = true;
}

/* ---- pods --------------------------------------------------------------------------------- */

/* Prints that the kubelet restarted the container in the same pod. */
static void note_restart(struct hf_progress *p, const struct rank *rank, const struct hf_json *pod,
			 hf_time now)
{
	const struct hf_json *code =
		hf_json_path(hf_pod_main_status(pod), "lastState", "terminated", "exitCode", NULL);
	HF_AUTO_STRBUF how = HF_STRBUF_INIT(HF_FAILED_START_MAX);

	if (code == NULL)
		return;
	hf_pod_state_add_end(hf_pod_main_status(pod), hf_json_i64(code, 0), &how);
	hf_progress_note(p, now, "pod/%s started again restarts=%" PRId64 " code=%" PRId64 "%s",
			 rank->pod, rank->restarts, hf_json_i64(code, 0), how.data);
}

/* Forgets the last log line and the step of a rank after its process was replaced. */
static void forget_process(struct hf_progress *p, struct rank *rank, bool same_pod)
{
	if (!same_pod)
		replace_text(&rank->last_line, "");
	rank->has_step = false;
	rank->reports = false;
	rank->said = (struct hf_pattern_rank){0};
	if (p->options.history != NULL)
		hf_history_begin(p->options.history, rank_name(p, rank));
}

/* Prints the new state of a pod; if the job has many ranks, only counts it. */
static void note_pod(struct hf_progress *p, const struct rank *rank, hf_time now)
{
	HF_AUTOFREE char *text = hf_xstrdup(rank->state);

	p->counts_changed = true;
	if (is_crowded(p) &&
	    (!hf_str_has_prefix(text, "Failed") || p->failures_shown++ >= FAILURES_SHOWN))
		return;
	/* Do not print a plain "Pending": it lasts a moment. Print the reason once there is one. */
	if (hf_streq(text, "Pending"))
		return;
	text[0] = hf_ascii_to_lower(text[0]);
	hf_progress_note(p, now, "pod/%s %s", rank->pod, text);
}

/* If the job has many ranks, prints how many pods are in which state. */
static void note_counts(struct hf_progress *p, hf_time now)
{
	size_t running = 0, failed = 0, succeeded = 0;

	if (!is_crowded(p) || !p->counts_changed || now - p->counts_at < COUNTS_SPAN)
		return;
	for (size_t i = 0; i < p->ranks.len; i++) {
		const char *state = p->ranks.items[i]->state;

		running += hf_str_has_prefix(state, "Running");
		failed += hf_str_has_prefix(state, "Failed");
		succeeded += hf_str_has_prefix(state, "Succeeded");
	}
	p->counts_changed = false;
	p->counts_at = now;
	p->failures_shown = 0;
	hf_progress_note(p, now, "pods of %s: running=%zu failed=%zu succeeded=%zu other=%zu",
			 p->job, running, failed, succeeded,
			 p->ranks.len - running - failed - succeeded);
}

void hf_progress_pod(struct hf_progress *p, struct hf_doc *doc, bool gone, hf_time now)
{
	const struct hf_json *pod = hf_doc_json(doc);
	struct rank *rank = find_rank(p, hf_doc_name(doc));
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(2048);
	int64_t restarts = hf_json_i64(hf_json_get(hf_pod_main_status(pod), "restartCount"), 0);
	bool again;

	if (rank == NULL)
		return;
	if (gone && !hf_streq(rank->uid, hf_doc_uid(doc)))
		return; /* the event is of an older pod; a newer one exists already */
	if (gone)
		hf_strbuf_addstr(&text, "gone");
	else
		hf_pod_state_add(pod, &text);
	again = hf_streq(rank->uid, hf_doc_uid(doc)) && restarts > rank->restarts;
	if (again || !hf_streq(rank->uid, hf_doc_uid(doc)))
		forget_process(p, rank, again);
	replace_text(&rank->uid, hf_doc_uid(doc));
	rank->restarts = restarts;
	p->dirty = true;
	if (again && !p->options.redraw && !gone)
		note_restart(p, rank, pod, now);
	if (hf_streq(rank->state, text.data))
		return;
	replace_text(&rank->state, text.data);
	if (!p->options.redraw && !gone)
		note_pod(p, rank, now);
}

/* ---- logs --------------------------------------------------------------------------------- */

/* Reads a step from a log line. True if the line is one of a progress bar or matches the step
 * pattern. */
static bool read_step(struct hf_progress *p, struct rank *rank, const struct hf_strbuf *line,
		      hf_time now)
{
	struct hf_pattern_step step;
	struct hf_error err;
	int kind;

	if (p->options.pattern == NULL || rank->reports)
		return false;
	kind = hf_pattern_read(p->options.pattern, &rank->said, line->data, line->len, &step, &err);
	if (kind < 0) {
		p->options.pattern = NULL;
		hf_progress_note(
			p, now,
			"note: --step-regex is off from now on: on a line of %s %s; use an expression without "
			"nested repeats",
			rank_name(p, rank), err.text);
	}
	/* Programs print the same step many times, when they redraw a progress bar. Only a change
	 * of step or loss counts as a report. */
	if (kind == HF_PATTERN_STEP && (!rank->has_step || step.beat.step != rank->step.step ||
					!hf_streq(step.beat.loss, rank->step.loss)))
		take_step(p, rank, &step.beat, step.per_second, now);
	return kind == HF_PATTERN_STEP || kind == HF_PATTERN_BAR;
}

/* Prints once that only the logs of the first rank are shown, if the job has many ranks. */
static void note_hidden_logs(struct hf_progress *p, hf_time now)
{
	if (p->told_logs || !is_crowded(p) || !p->options.logs || p->options.ranks != NULL)
		return;
	p->told_logs = true;
	hf_progress_note(
		p, now,
		"note: the logs of %s alone are shown, because there are more than %d ranks; --ranks all "
		"shows the logs of all",
		rank_name(p, p->ranks.items[0]), HF_PROGRESS_FEW);
}

/* Handles one complete log line. overwritten: the line ended with a carriage return, so that the
 * next line replaces it on a terminal. */
/* Starts a line of the log: "worker-0 | ", or "worker-0 fetch | " for an init container. */
static void add_line_start(struct hf_strbuf *line, const struct hf_progress *p,
			   const struct rank *rank)
{
	hf_strbuf_addstr(line, rank_name(p, rank));
	if (rank->init[0] != '\0')
		hf_strbuf_addf(line, " %s", rank->init);
	hf_strbuf_addstr(line, " |");
}

static void take_line(struct hf_progress *p, struct rank *rank, bool overwritten, hf_time now)
{
	HF_AUTO_STRBUF clean = HF_STRBUF_INIT(HF_PROGRESS_LINE_BYTES_MAX);
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(2 * HF_PROGRESS_LINE_BYTES_MAX);
	bool cut = rank->partial.full, is_step;

	hf_text_add_clean(&clean, rank->partial.data, rank->partial.len, p->options.utf8);
	hf_strbuf_clear(&rank->partial);
	if (clean.len == 0) {
		if (!overwritten && !rank->returned && wants_logs_of(p, rank)) {
			add_line_start(&line, p, rank);
			put_line(p, line.data);
		}
		rank->returned = overwritten;
		return;
	}
	rank->returned = overwritten;
	is_step = rank->init[0] == '\0' && read_step(p, rank, &clean, now);
	note_hidden_logs(p, now);
	/* The row of a rank shows the step in its own cell, so only other lines become its last
	 * log line. */
	if (!is_step)
		replace_text(&rank->last_line, clean.data);
	p->dirty = true;
	/* Skip a line that the program overwrites and that is blank: programs clear a progress bar
	 * in this way. */
	if (overwritten && strspn(clean.data, " ") == clean.len)
		return;
	if (!wants_logs_of(p, rank) || (is_step && overwritten))
		return;
	add_line_start(&line, p, rank);
	hf_strbuf_addf(&line, " %s%s", clean.data,
		       cut ? " [the rest of the line is in the log]" : "");
	put_line(p, line.data);
}

static void add_bytes(struct hf_progress *p, struct rank *rank, const char *bytes, size_t len,
		      hf_time now)
{
	bool drawn = p->drawn.len > 0;

	for (size_t i = 0; i < len; i++) {
		/* A carriage return ends a line too, because progress bars redraw with it. */
		if (bytes[i] == '\n' || bytes[i] == '\r')
			take_line(p, rank, bytes[i] == '\r', now);
		else
			hf_strbuf_addch(&rank->partial, bytes[i]);
	}
	/* Printing a log line erases the block. Draw the block again at once, or the screen
	 * flickers. */
	if (drawn && p->drawn.len == 0)
		hf_progress_draw(p, now, true);
}

void hf_progress_log(struct hf_progress *p, const char *pod, const char *bytes, size_t len,
		     hf_time now)
{
	hf_progress_init_log(p, pod, "", bytes, len, now);
}

void hf_progress_init_log(struct hf_progress *p, const char *pod, const char *container,
			  const char *bytes, size_t len, hf_time now)
{
	struct rank *rank = find_rank(p, pod);

	if (rank == NULL)
		return;
	if (!hf_streq(rank->init, container)) {
		hf_progress_log_end(p, pod, now);
		replace_text(&rank->init, container);
	}
	add_bytes(p, rank, bytes, len, now);
}

void hf_progress_log_end(struct hf_progress *p, const char *pod, hf_time now)
{
	struct rank *rank = find_rank(p, pod);

	if (rank != NULL && rank->partial.len > 0)
		add_bytes(p, rank, "\n", 1, now);
}

/* ---- drawing the block of ranks on the terminal ------------------------------------------- */

static const char *color_of(const struct hf_progress *p, const char *state)
{
	if (!p->options.color)
		return "";
	if (hf_str_has_prefix(state, "Running") || hf_str_has_prefix(state, "Succeeded"))
		return "\033[32m";
	if (hf_str_has_prefix(state, "Failed"))
		return "\033[31m";
	return "\033[33m";
}

/* Returns how many bytes of the text fit into the columns. Continuation bytes of UTF-8 have no
 * width. */
static size_t cut_at(const char *text, int columns)
{
	size_t i = 0;
	int used = 0;

	for (; text[i] != '\0'; i++) {
		if (((unsigned char)text[i] & 0xc0) != 0x80 && used++ == columns)
			break;
	}
	return i;
}

static void draw_line(struct hf_progress *p, const char *color, const char *text)
{
	/* Leave the last column free: some terminals break the line after it. */
	size_t len = p->options.width > 0 ? cut_at(text, p->options.width - 1) : strlen(text);
	int columns = 0;

	for (size_t i = 0; i < len; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	erase_row(p);
	fprintf(p->options.out, "%s%.*s%s\n", color, (int)len, text,
		color[0] != '\0' ? "\033[0m" : "");
	(void)!HF_VEC_PUSH(&p->drawn, columns);
}

static void draw_rank(struct hf_progress *p, const struct rank *rank,
		      const struct hf_rank_columns *columns, hf_time now)
{
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(2 * HF_PROGRESS_LINE_BYTES_MAX);
	struct hf_rank_row row = row_of(p, rank, now);

	hf_rank_row_write(&row, columns, p->options.utf8, &line);
	/* Show the last log line in the row only if the logs of this rank are not shown above the
	 * block. */
	if (p->options.logs && !wants_logs_of(p, rank) && rank->last_line[0] != '\0')
		hf_strbuf_addf(&line, "  %s", rank->last_line);
	draw_line(p, color_of(p, rank->state), line.data);
}

static bool is_well(const struct rank *rank)
{
	return hf_streq(rank->state, "Running") || hf_streq(rank->state, "Succeeded");
}

/* Chooses the ranks to show, in a list of pointers. If the terminal has too few rows, ranks that are not Running come
 * first. Returns their number. */
static size_t choose_ranks(const struct hf_progress *p, size_t room, const struct rank **ret_ranks)
{
	size_t troubled = 0, well, n = 0;

	for (size_t i = 0; i < p->ranks.len; i++)
		troubled += !is_well(p->ranks.items[i]);
	if (p->ranks.len <= room) {
		well = p->ranks.len;
	} else {
		room -= room > 0; /* keep one row for the number of hidden ranks */
		troubled = troubled < room ? troubled : room;
		well = room - troubled;
	}
	for (size_t i = 0; i < p->ranks.len; i++) {
		size_t *quota = is_well(p->ranks.items[i]) ? &well : &troubled;

		if (*quota == 0)
			continue;
		(*quota)--;
		ret_ranks[n++] = p->ranks.items[i];
	}
	return n;
}

static void draw_ranks(struct hf_progress *p, size_t room, hf_time now)
{
	const struct rank **shown = hf_xcalloc(p->ranks.len + 1, sizeof(struct rank *));
	size_t n = choose_ranks(p, room, shown);
	struct hf_rank_columns columns = {.name = 0};
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(128);

	for (size_t i = 0; i < n; i++) {
		struct hf_rank_row row = row_of(p, shown[i], now);

		hf_rank_columns_add(&columns, &row);
	}
	hf_rank_columns_fit(&columns, p->options.width);
	for (size_t i = 0; i < n; i++)
		draw_rank(p, shown[i], &columns, now);
	free(shown);
	if (n < p->ranks.len) {
		hf_strbuf_addf(&line, " and %zu more ranks", p->ranks.len - n);
		draw_line(p, "", line.data);
	}
}

/* Draws the row of sparklines, for the first rank that has points. Returns the number of rows
 * drawn: 0 or 1. */
static int draw_sparks(struct hf_progress *p)
{
	const struct hf_history *history = p->options.history;
	int width = p->options.width > 0 ? p->options.width : 80, room = (width - 20) / 2;
	const struct hf_history_rank *rank = NULL;
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(1024);
	HF_AUTO_STRBUF loss = HF_STRBUF_INIT(512);
	HF_AUTO_STRBUF time = HF_STRBUF_INIT(512);

	for (size_t i = 0; history != NULL && rank == NULL && i < history->n_ranks; i++)
		rank = history->ranks[i]->n > 2 ? history->ranks[i] : NULL;
	if (rank == NULL || room < 5)
		return 0;
	room = room < SPARK_MAX ? room : SPARK_MAX;
	if (hf_history_spark(rank, HF_HISTORY_LOSS, room, p->options.utf8, &loss) > 0)
		hf_strbuf_addf(&line, " loss %s ", loss.data);
	if (hf_history_spark(rank, HF_HISTORY_STEP_SECONDS, room, p->options.utf8, &time) > 0)
		hf_strbuf_addf(&line, " step time %s", time.data);
	if (line.len == 0)
		return 0;
	draw_line(p, "", line.data);
	return 1;
}

/* Writes the first line of the block. While a restart is delayed, the count of the seconds comes first, so
 * that a narrow terminal shows it. */
static void add_job_line(const struct hf_progress *p, hf_time now, struct hf_strbuf *line)
{
	char span[HF_TIME_TEXT_MAX];

	hf_span_format(p->first_seen != HF_TIME_NONE ? now - p->first_seen : 0, span);
	hf_strbuf_addf(line, " %s  ", p->job);
	if (p->delay.until != HF_TIME_NONE && p->delay.until > now) {
		hf_job_delay_text(&p->delay, now, line);
		hf_strbuf_addf(line, "  %s", span);
		return;
	}
	hf_strbuf_addf(line, "%s %s  %s %" PRId64 "  restarts %" PRId64,
		       p->state[0] != '\0' ? p->state : "Starting", span,
		       p->options.width > 0 && p->options.width < NARROW ? "gen" : "generation",
		       p->generation, p->restarts);
}

static void draw_keys(struct hf_progress *p)
{
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(128);

	hf_strbuf_addf(&line, " l %s  w why  s %s  q stop", p->options.logs ? "logs" : "show logs",
		       hf_streq(p->state, "Suspended") ? "resume" : "suspend");
	draw_line(p, "", line.data);
}

void hf_progress_draw(struct hf_progress *p, hf_time now, bool force)
{
	HF_AUTO_STRBUF line = HF_STRBUF_INIT(2 * HF_PROGRESS_LINE_BYTES_MAX);
	/* Leave rows for the line of the job, for the line of the keys and for the cursor. */
	int room = p->options.height - 2 - p->options.keys;

	if (!p->options.redraw)
		note_counts(p, now);
	if (!p->options.redraw || (!p->dirty && !force))
		return;
	go_to_block(p);
	add_job_line(p, now, &line);
	draw_line(p, color_of(p, p->state), line.data);
	if (p->options.height == 0 || room > 2)
		room -= draw_sparks(p);
	draw_ranks(p, p->options.height == 0 ? SIZE_MAX : room > 0 ? (size_t)room : 0, now);
	if (p->options.keys)
		draw_keys(p);
	/* The block before may have had more rows. The cursor is below the first row, see erase_block. */
	if (p->under > 0)
		fputs("\033[J", p->options.out);
	p->under = 0;
	(void)fflush(p->options.out);
	p->dirty = false;
}

void hf_progress_leave(struct hf_progress *p)
{
	p->drawn.len = 0;
}

void hf_progress_resize(struct hf_progress *p, int width, int height)
{
	p->dirty = p->dirty || width != p->options.width || height != p->options.height;
	p->options.width = width;
	p->options.height = height;
}

void hf_progress_finish(struct hf_progress *p, hf_time now)
{
	erase_block(p);
	/* The last block of the run is never redrawn. It may be higher than the terminal, so it
	 * shows all ranks. */
	p->options.keys = false;
	p->options.height = 0;
	hf_progress_draw(p, now, true);
	p->drawn.len = 0;
	p->options.redraw = false;
}

void hf_progress_toggle_logs(struct hf_progress *p)
{
	p->options.logs = !p->options.logs;
	p->dirty = true;
}

/* Finds the rank with the lowest step, which is the step of the job. NULL: no rank has reported a step. */
static const struct rank *slowest_rank(const struct hf_progress *p)
{
	const struct rank *last = NULL;

	for (size_t i = 0; i < p->ranks.len; i++)
		if (p->ranks.items[i]->has_step &&
		    (last == NULL || p->ranks.items[i]->step.step < last->step.step))
			last = p->ranks.items[i];
	return last;
}

/* Writes " step=119/200 rate=4.1/s loss=0.0972 eta=19s". */
static void add_slowest(const struct hf_progress *p, hf_time now, struct hf_strbuf *sb)
{
	const struct rank *rank = slowest_rank(p);
	char rate[HF_RATE_TEXT_MAX], loss[HF_LOSS_TEXT_MAX], left[HF_TIME_TEXT_MAX];
	struct hf_rank_row row;

	if (rank == NULL)
		return;
	row = row_of(p, rank, now);
	hf_strbuf_addf(sb, " step=%" PRIu64, rank->step.step);
	if (rank->step.total > 0)
		hf_strbuf_addf(sb, "/%" PRIu64, rank->step.total);
	if (rank->per_second > 0) {
		hf_rank_row_rate(rank->per_second, rate);
		hf_strbuf_addf(sb, " rate=%s", rate);
	}
	if (rank->step.loss[0] != '\0') {
		hf_rank_row_loss(rank->step.loss, loss);
		hf_strbuf_addf(sb, " loss=%s", loss);
	}
	if (hf_rank_row_left(&row, left))
		hf_strbuf_addf(sb, " eta=%s", left);
}

void hf_progress_heartbeat(struct hf_progress *p, hf_time now)
{
	HF_AUTOFREE char *lower = hf_xstrdup(hf_str_or(p->state, "Starting"));
	HF_AUTO_STRBUF step = HF_STRBUF_INIT(512);
	char span[HF_TIME_TEXT_MAX];
	size_t running = 0;

	if (p->options.redraw)
		return;
	hf_str_lower(lower);
	for (size_t i = 0; i < p->ranks.len; i++)
		running += hf_streq(p->ranks.items[i]->state, "Running");
	hf_span_format(p->first_seen != HF_TIME_NONE ? now - p->first_seen : 0, span);
	add_slowest(p, now, &step);
	hf_progress_note(p, now, "job/%s still %s elapsed=%s running=%zu/%zu%s", p->job, lower,
			 span, running, p->ranks.len, step.data);
}
