/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Draws a history as SVG, with lines, texts and two style sheets. The picture has no script and no
 * font, and loads no other file. */
#include "app/plot.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 960
#define LEFT 76 /* of the panels */
#define RIGHT 940
#define PANEL_TOP 84
#define PANEL_HEIGHT 190
#define PANEL_GAP 56
#define COLORS 8
#define TICKS 6      /* of an axis, about */
#define LEGEND_MAX 8 /* names of ranks below the panels */
/* restarts of the job that are labelled; further restarts are only a line */
#define RESTART_TEXTS 12

/* Each colour has a rule for the light and one for the dark scheme of the viewer. Variables would
 * be shorter, but librsvg knows neither variables nor schemes, and draws the light scheme. */
static const char style[] =
	"<style>\n"
	"text{font:12px system-ui,sans-serif;fill:#57606a}\n"
	".bg{fill:#ffffff}.title{font-size:16px}.head{font-size:13px}.title,.head{font-weight:600;fill:#1f2328}\n"
	".grid{stroke:#d0d7de;stroke-width:1;fill:none}.restart{stroke:#cf222e;stroke-dasharray:4 3;fill:none}\n"
	".rt{fill:#cf222e}.l{fill:none;stroke-width:1.6;stroke-linejoin:round}\n"
	".c0{stroke:#0969da}.c1{stroke:#bc4c00}.c2{stroke:#1a7f37}.c3{stroke:#8250df}\n"
	".c4{stroke:#bf3989}.c5{stroke:#0e7c86}.c6{stroke:#7d6100}.c7{stroke:#57606a}\n"
	"@media(prefers-color-scheme:dark){text{fill:#9198a1}.bg{fill:#0d1117}.title,.head{fill:#f0f6fc}\n"
	".grid{stroke:#3d444d}.restart{stroke:#ff7b72}.rt{fill:#ff7b72}\n"
	".c0{stroke:#58a6ff}.c1{stroke:#f0883e}.c2{stroke:#56d364}.c3{stroke:#bc8cff}\n"
	".c4{stroke:#f778ba}.c5{stroke:#39c5cf}.c6{stroke:#e3b341}.c7{stroke:#b1bac4}}\n"
	"</style>\n";

struct chart {
	const struct hf_plot *plot;
	const struct hf_history_rank *ranks[HF_HISTORY_RANKS_MAX];
	size_t n;       /* ranks that are drawn */
	double seconds; /* the end of the time axis */
	struct hf_strbuf *sb;
};

struct panel {
	const char *title;
	enum hf_history_value value;
	int top;
	double low, high; /* of the value axis */
};

static void add_escaped(struct hf_strbuf *sb, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '<')
			hf_strbuf_addstr(sb, "&lt;");
		else if (*text == '&')
			hf_strbuf_addstr(sb, "&amp;");
		else if ((unsigned char)*text >= ' ')
			hf_strbuf_addch(sb, *text);
	}
}

static double seconds_at(const struct chart *chart, hf_time at)
{
	return (double)(at - chart->plot->started) / (double)HF_SECOND;
}

static double x_of(const struct chart *chart, double seconds)
{
	return LEFT + seconds / chart->seconds * (RIGHT - LEFT);
}

static double y_of(const struct panel *panel, double value)
{
	return panel->top + PANEL_HEIGHT -
	       (value - panel->low) / (panel->high - panel->low) * PANEL_HEIGHT;
}

/* ---- axes ---------------------------------------------------------------------------------- */

/* Chooses the distance of grid lines: 1, 2 or 5 times a power of ten. */
static double nice_step(double range)
{
	double raw = range / TICKS, power = pow(10, floor(log10(raw)));

	return raw <= power       ? power
	       : raw <= 2 * power ? 2 * power
	       : raw <= 5 * power ? 5 * power
				  : 10 * power;
}

static double nice_seconds(double range)
{
	static const double steps[] = {1,   2,   5,    10,   15,   30,    60,    120,   300,
				       600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800};

	if (range < TICKS)
		return nice_step(range);
	for (size_t i = 0; i < HF_ARRAY_LEN(steps); i++)
		if (range / steps[i] <= TICKS + 2)
			return steps[i];
	return 86400 * nice_step(range / 86400);
}

static void format_clock(double seconds, double step, char text[32])
{
	int64_t s = (int64_t)(seconds + 0.5);

	if (step < 1)
		(void)snprintf(text, 32, "%gs", seconds);
	else if (s < 60 || (s < 120 && step < 60))
		(void)snprintf(text, 32, "%" PRId64 "s", s);
	else if (s < 3600 && s % 60 != 0)
		(void)snprintf(text, 32, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else if (s < 3600)
		(void)snprintf(text, 32, "%" PRId64 "m", s / 60);
	else if (s < 2 * 86400 && s % 3600 != 0)
		(void)snprintf(text, 32, "%" PRId64 "h%02" PRId64 "m", s / 3600, s % 3600 / 60);
	else if (s < 2 * 86400)
		(void)snprintf(text, 32, "%" PRId64 "h", s / 3600);
	else
		(void)snprintf(text, 32, "%.3gd", seconds / 86400);
}

static void format_value(const struct panel *panel, double value, char text[32])
{
	if (panel->value == HF_HISTORY_LOSS)
		(void)snprintf(text, 32, "%.4g",
			       fabs(value) < (panel->high - panel->low) * 1e-9 ? 0 : value);
	else if (panel->high < 1)
		(void)snprintf(text, 32, "%.4g ms", value * 1000);
	else
		(void)snprintf(text, 32, "%.4g s", value);
}

static void find_extremes(const struct chart *chart, const struct panel *panel, double *ret_low,
			  double *ret_high)
{
	*ret_low = INFINITY;
	*ret_high = -INFINITY;
	for (size_t r = 0; r < chart->n; r++)
		for (size_t i = 0; i < chart->ranks[r]->n; i++) {
			double v = hf_history_value_at(chart->ranks[r], panel->value, i);

			*ret_low = isfinite(v) ? fmin(v, *ret_low) : *ret_low;
			*ret_high = isfinite(v) ? fmax(v, *ret_high) : *ret_high;
		}
}

/* Sets the range of the panel's values. False: no rank has a value to draw. */
static bool find_range(const struct chart *chart, struct panel *panel)
{
	double low, high, step;

	find_extremes(chart, panel, &low, &high);
	if (!isfinite(low) || fabs(low) > 1e300 || fabs(high) > 1e300)
		return false;
	if (panel->value == HF_HISTORY_STEP_SECONDS || (low > 0 && low < high / 3))
		low = 0;
	if (high - low <= fabs(high) * 1e-9) {
		double room = fabs(high) > 0 ? fabs(high) / 2 : 1;

		low -= room;
		high += room;
	}
	step = nice_step(high - low);
	panel->low = floor(low / step) * step;
	panel->high = ceil(high / step) * step;
	return panel->high > panel->low;
}

static void draw_axes(const struct chart *chart, const struct panel *panel)
{
	double step = nice_step(panel->high - panel->low), tick = nice_seconds(chart->seconds);
	char text[32];

	hf_strbuf_addf(chart->sb, "<text x=\"%d\" y=\"%d\" class=\"head\">%s</text>\n", LEFT,
		       panel->top - 10, panel->title);
	for (int i = 0; i <= 2 * TICKS + 2; i++) {
		double v = panel->low + i * step;

		if (v > panel->high + step / 2)
			break;
		format_value(panel, v, text);
		hf_strbuf_addf(chart->sb, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT,
			       y_of(panel, v), RIGHT);
		hf_strbuf_addf(chart->sb,
			       "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			       LEFT - 8, y_of(panel, v) + 4, text);
	}
	for (int i = 0; i <= 2 * TICKS + 2 && i * tick <= chart->seconds; i++) {
		format_clock(i * tick, tick, text);
		hf_strbuf_addf(chart->sb,
			       "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
			       x_of(chart, i * tick), panel->top + PANEL_HEIGHT + 18, text);
	}
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Draws the values of one rank as a line. The line is interrupted where a new process begins and
 * where a value is missing. */
static void draw_rank(const struct chart *chart, const struct panel *panel, size_t r)
{
	const struct hf_history_rank *rank = chart->ranks[r];
	bool open = false, any = false;

	for (size_t i = 0; i < rank->n; i++) {
		double v = hf_history_value_at(rank, panel->value, i);

		if (!isfinite(v)) {
			open = false;
			continue;
		}
		if (!any)
			hf_strbuf_addf(chart->sb, "<path class=\"l c%zu\" d=\"", r % COLORS);
		open = open && !rank->points[i].begins;
		hf_strbuf_addf(chart->sb, "%s%.1f %.1f", open ? "L" : "M",
			       x_of(chart, seconds_at(chart, rank->points[i].at)), y_of(panel, v));
		open = any = true;
	}
	if (any) {
		hf_strbuf_addstr(chart->sb, "\"><title>");
		add_escaped(chart->sb, rank->name);
		hf_strbuf_addstr(chart->sb, "</title></path>\n");
	}
}

static void draw_restarts(const struct chart *chart, const struct panel *panel)
{
	const struct hf_history *history = chart->plot->history;

	for (size_t i = 0; i < history->n_restarts; i++) {
		double x = x_of(chart, seconds_at(chart, history->restarts[i].at));

		if (x < LEFT || x > RIGHT)
			continue;
		hf_strbuf_addf(chart->sb, "<path class=\"restart\" d=\"M%.1f %dV%d\"/>\n", x,
			       panel->top, panel->top + PANEL_HEIGHT);
		if (i < RESTART_TEXTS && panel->value == HF_HISTORY_LOSS)
			hf_strbuf_addf(
				chart->sb,
				"<text class=\"rt\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">generation %" PRId64
				"</text>\n",
				x < RIGHT - 100 ? x + 4 : x - 4,
				panel->top + 12 + (int)(i % 4) * 14,
				x < RIGHT - 100 ? "start" : "end", history->restarts[i].generation);
	}
}

/* Draws a short mark at the bottom for each new process of a rank. (A restart of the whole job has
 * its own dashed line.) */
static void draw_new_processes(const struct chart *chart, const struct panel *panel)
{
	for (size_t r = 0; r < chart->n; r++)
		for (size_t i = 0; i < chart->ranks[r]->n; i++) {
			const struct hf_history_point *point = &chart->ranks[r]->points[i];

			if (!point->begins)
				continue;
			hf_strbuf_addf(chart->sb,
				       "<path class=\"l c%zu\" d=\"M%.1f %dv-10\"><title>",
				       r % COLORS, x_of(chart, seconds_at(chart, point->at)),
				       panel->top + PANEL_HEIGHT);
			add_escaped(chart->sb, chart->ranks[r]->name);
			hf_strbuf_addstr(chart->sb, " began anew</title></path>\n");
		}
}

static void draw_panel(const struct chart *chart, struct panel *panel)
{
	if (!find_range(chart, panel)) {
		hf_strbuf_addf(chart->sb, "<text x=\"%d\" y=\"%d\">%s: not reported</text>\n", LEFT,
			       panel->top + PANEL_HEIGHT / 2, panel->title);
		return;
	}
	draw_axes(chart, panel);
	draw_restarts(chart, panel);
	for (size_t r = 0; r < chart->n; r++)
		draw_rank(chart, panel, r);
	draw_new_processes(chart, panel);
}

static void draw_legend(const struct chart *chart, int y)
{
	size_t shown = chart->n < LEGEND_MAX ? chart->n : LEGEND_MAX;
	char more[64] = "";

	for (size_t r = 0; r < shown; r++) {
		int x = LEFT + (int)r * 104;

		hf_strbuf_addf(chart->sb,
			       "<path class=\"l c%zu\" d=\"M%d %dh16\"/><text x=\"%d\" y=\"%d\">",
			       r % COLORS, x, y - 4, x + 20, y);
		add_escaped(chart->sb, chart->ranks[r]->name);
		hf_strbuf_addstr(chart->sb, "</text>\n");
	}
	if (chart->n < chart->plot->history->n_ranks)
		(void)snprintf(more, sizeof(more), "the %zu slowest of %zu ranks", chart->n,
			       chart->plot->history->n_ranks);
	else if (chart->n > shown)
		(void)snprintf(more, sizeof(more), "and %zu more ranks", chart->n - shown);
	hf_strbuf_addf(chart->sb, "<text x=\"%d\" y=\"%d\">%s</text>\n", LEFT, y + 18, more);
}

/* ---- the picture --------------------------------------------------------------------------- */

static double mean_step_seconds(const struct hf_history_rank *rank)
{
	double mean = hf_history_mean(rank, HF_HISTORY_STEP_SECONDS, 0, rank->n);

	return isfinite(mean) ? mean : 0;
}

static int compare_slowest(const void *a, const void *b)
{
	double x = mean_step_seconds(*(const struct hf_history_rank *const *)a);
	double y = mean_step_seconds(*(const struct hf_history_rank *const *)b);

	return (x < y) - (x > y);
}

static int compare_names(const void *a, const void *b)
{
	return strverscmp((*(const struct hf_history_rank *const *)a)->name,
			  (*(const struct hf_history_rank *const *)b)->name);
}

static int choose_ranks(struct chart *chart, struct hf_error *err)
{
	const struct hf_history *history = chart->plot->history;

	for (size_t i = 0; i < history->n_ranks; i++) {
		const struct hf_history_rank *rank = history->ranks[i];

		if (rank->n < 2)
			continue;
		chart->ranks[chart->n++] = rank;
		chart->seconds =
			fmax(chart->seconds, seconds_at(chart, rank->points[rank->n - 1].at));
	}
	if (chart->n == 0 || chart->seconds <= 0)
		return hf_error_set(err, HF_E_NOT_FOUND,
				    "no rank of this run has reported two steps");
	if (chart->n > HF_PLOT_RANKS_MAX) {
		qsort(chart->ranks, chart->n, sizeof(chart->ranks[0]), compare_slowest);
		chart->n = HF_PLOT_RANKS_MAX;
	}
	qsort(chart->ranks, chart->n, sizeof(chart->ranks[0]), compare_names);
	return 0;
}

int hf_plot_write(const struct hf_plot *plot, struct hf_strbuf *sb, struct hf_error *err)
{
	struct panel panels[] = {{"Loss", HF_HISTORY_LOSS, PANEL_TOP, 0, 0},
				 {"Time of a step", HF_HISTORY_STEP_SECONDS,
				  PANEL_TOP + PANEL_HEIGHT + PANEL_GAP, 0, 0}};
	int bottom = PANEL_TOP + 2 * PANEL_HEIGHT + PANEL_GAP, height = bottom + 68;
	struct chart *chart = hf_xcalloc(1, sizeof(*chart));
	int rc;

	chart->plot = plot;
	chart->sb = sb;
	rc = choose_ranks(chart, err);
	if (rc == 0) {
		hf_strbuf_addf(
			sb,
			"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
			"role=\"img\">\n<title>",
			WIDTH, height, WIDTH, height);
		add_escaped(sb, plot->title);
		hf_strbuf_addf(sb, "</title>\n%s<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n",
			       style, WIDTH, height);
		hf_strbuf_addf(sb, "<text class=\"title\" x=\"%d\" y=\"28\">", LEFT);
		add_escaped(sb, plot->title);
		hf_strbuf_addf(sb, "</text>\n<text x=\"%d\" y=\"48\">", LEFT);
		add_escaped(sb, plot->note);
		hf_strbuf_addstr(sb, "</text>\n");
		for (size_t i = 0; i < HF_ARRAY_LEN(panels); i++)
			draw_panel(chart, &panels[i]);
		draw_legend(chart, bottom + 42);
		hf_strbuf_addstr(sb, "</svg>\n");
		rc = hf_strbuf_ok(sb, "the picture", err);
	}
	free(chart);
	return rc;
}
