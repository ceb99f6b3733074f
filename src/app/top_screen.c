/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Draws the screen of `holdfast top`, and reads its keys. Input: the model and the state of the screen. No
 * terminal, no clock. */
#include "app/top.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GAP 2
#define FRAME_LINES 3 /* the title, the headers, the keys */
#define NAME_MIN 6    /* columns that the name keeps in the narrowest terminal */
#define LINE_BYTES_MAX ((size_t)8192)
#define BOLD "\033[1m"
#define REVERSE "\033[7m"
#define PLAIN "\033[0m"

/* The rows that are on the screen, as texts, and the layout of their columns. */
struct table {
	const struct hf_top_column *columns;
	size_t n_columns, n_rows;
	size_t name; /* number of the column that may be cut */
	struct hf_top_cells *rows;
	size_t widths[HF_TOP_COLUMNS_MAX]; /* 0: left out */
};

static size_t total_width(const struct table *table)
{
	size_t width = 0;

	for (size_t c = 0; c < table->n_columns; c++)
		width += table->widths[c] > 0 ? table->widths[c] + GAP : 0;
	return width >= GAP ? width - GAP : 0;
}

/* Leaves out columns until the rest fits, then narrows the names. */
static void fit_columns(struct table *table, size_t width)
{
	for (;;) {
		size_t drop = table->n_columns;

		if (total_width(table) <= width)
			return;
		for (size_t c = 0; c < table->n_columns; c++)
			if (table->widths[c] > 0 && table->columns[c].spare > 0 &&
			    (drop == table->n_columns ||
			     table->columns[c].spare > table->columns[drop].spare))
				drop = c;
		if (drop == table->n_columns)
			break;
		table->widths[drop] = 0;
	}
	while (total_width(table) > width && table->widths[table->name] > NAME_MIN)
		table->widths[table->name]--;
}

static void measure_columns(struct table *table, bool namespaces)
{
	for (size_t c = 0; c < table->n_columns; c++) {
		table->widths[c] = strlen(table->columns[c].header);
		for (size_t i = 0; i < table->n_rows; i++) {
			size_t len = hf_utf8_count(table->rows[i].text[c]);

			table->widths[c] = len > table->widths[c] ? len : table->widths[c];
		}
	}
	if (!namespaces && table->columns == hf_top_job_columns)
		table->widths[HF_TOP_JOB_NS] = 0;
}

/* ---- lines ------------------------------------------------------------------------------------------- */

/* Adds at most `width` characters of a text, without control characters. Returns the number of characters. */
static size_t add_text(struct hf_strbuf *line, const char *text, size_t width, bool utf8)
{
	HF_AUTO_STRBUF clean = HF_STRBUF_INIT(LINE_BYTES_MAX);
	size_t n = 0, at = 0;

	hf_text_add_clean(&clean, text, strlen(text), utf8);
	while (n < width && at < clean.len) {
		size_t len = hf_utf8_sequence(clean.data + at, clean.len - at);

		at += len > 0 ? len : 1;
		n++;
	}
	hf_strbuf_add(line, clean.data, at);
	return n;
}

static void add_blanks(struct hf_strbuf *line, size_t n)
{
	while (n-- > 0)
		hf_strbuf_addch(line, ' ');
}

static void add_cell(struct hf_strbuf *line, const char *text, size_t width, bool right, bool utf8)
{
	size_t len = hf_utf8_count(text);

	if (right && len < width)
		add_blanks(line, width - len);
	len = add_text(line, text, width, utf8);
	if (!right)
		add_blanks(line, width - len);
}

/* Ends a line: fills it up if it has an attribute, and clears what stood there before. */
static void end_line(struct hf_strbuf *out, const char *attribute, bool last)
{
	if (*attribute != '\0')
		hf_strbuf_addstr(out, PLAIN);
	hf_strbuf_addstr(out, last ? "\033[K" : "\033[K\r\n");
}

static void add_row(const struct table *table, const char *const *texts, int width, bool utf8,
		    struct hf_strbuf *line)
{
	size_t at = 0;

	for (size_t c = 0; c < table->n_columns; c++) {
		size_t room = (size_t)width > at ? (size_t)width - at : 0;
		size_t cell = table->widths[c] < room ? table->widths[c] : room;

		if (table->widths[c] == 0 || room == 0)
			continue;
		add_cell(line, texts[c], cell, table->columns[c].right, utf8);
		at += cell;
		if (c + 1 < table->n_columns && at + GAP <= (size_t)width) {
			add_blanks(line, GAP);
			at += GAP;
		}
	}
}

static const char *color_of(const char *state)
{
	static const char *const good[] = {"Running", "Succeeded", "Completed"};
	static const char *const bad[] = {"Failed", "Error", "CrashLoopBackOff", "OOMKilled"};

	for (size_t i = 0; i < HF_ARRAY_LEN(good); i++)
		if (hf_streq(state, good[i]))
			return "";
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		if (hf_streq(state, bad[i]))
			return "\033[31m";
	return "\033[33m";
}

static void draw_headers(const struct table *table, const struct hf_top_screen *screen,
			 struct hf_strbuf *out)
{
	const char *texts[HF_TOP_COLUMNS_MAX];

	for (size_t c = 0; c < table->n_columns; c++)
		texts[c] = table->columns[c].header;
	hf_strbuf_addstr(out, BOLD);
	add_row(table, texts, screen->width, screen->utf8, out);
	end_line(out, BOLD, false);
}

static void draw_row(const struct table *table, size_t i, bool selected, const char *state,
		     const struct hf_top_screen *screen, struct hf_strbuf *out)
{
	const char *attribute = selected ? REVERSE : screen->color ? color_of(state) : "";
	const char *texts[HF_TOP_COLUMNS_MAX];

	for (size_t c = 0; c < table->n_columns; c++)
		texts[c] = table->rows[i].text[c];
	hf_strbuf_addstr(out, attribute);
	add_row(table, texts, screen->width, screen->utf8, out);
	end_line(out, attribute, false);
}

/* ---- selection --------------------------------------------------------------------------------------- */

/* The rows of the present view: jobs, or ranks of the open job. */
struct rows {
	struct hf_top_job *const *jobs;
	struct hf_top_rank *const *ranks;
	struct hf_top_job *open;
	size_t n;
};

static void find_rows(struct hf_top *top, struct hf_top_screen *screen, struct rows *rows)
{
	*rows = (struct rows){.open = hf_top_find(top, screen->open)};
	/* The open job was deleted: show the jobs again. */
	if (screen->open != NULL && rows->open == NULL) {
		free(screen->open);
		free(screen->selected);
		screen->open = screen->selected = NULL;
	}
	if (rows->open != NULL)
		rows->ranks = hf_top_ranks(top, rows->open, screen->sort, &rows->n);
	else
		rows->jobs = hf_top_jobs(top, screen->sort, &rows->n);
}

static const char *uid_at(const struct rows *rows, size_t i)
{
	return rows->open != NULL ? rows->ranks[i]->uid : rows->jobs[i]->uid;
}

/* The number of the selected row. If its object is gone, the first row on the screen. */
static size_t selected_at(const struct rows *rows, const struct hf_top_screen *screen)
{
	for (size_t i = 0; screen->selected != NULL && i < rows->n; i++)
		if (hf_streq(uid_at(rows, i), screen->selected))
			return i;
	return screen->selected == NULL || rows->n == 0 ? 0
	       : screen->first < rows->n                ? screen->first
							: rows->n - 1;
}

static void select_row(const struct rows *rows, struct hf_top_screen *screen, size_t i)
{
	free(screen->selected);
	screen->selected = i < rows->n ? hf_xstrdup(uid_at(rows, i)) : NULL;
}

static size_t room_of(const struct hf_top_screen *screen)
{
	return screen->height > FRAME_LINES ? (size_t)(screen->height - FRAME_LINES) : 1;
}

static void scroll_to(struct hf_top_screen *screen, size_t at, size_t n)
{
	size_t room = room_of(screen);

	if (at < screen->first)
		screen->first = at;
	if (at >= screen->first + room)
		screen->first = at - room + 1;
	if (n <= room)
		screen->first = 0;
	else if (screen->first + room > n)
		screen->first = n - room;
}

/* ---- drawing ----------------------------------------------------------------------------------------- */

/* "3 Running, 1 Failed", in the order of the rows. */
static void add_states(const struct rows *rows, struct hf_strbuf *text)
{
	bool any = false;

	for (size_t s = 0; hf_top_states[s] != NULL; s++) {
		size_t n = 0;

		for (size_t i = 0; i < rows->n; i++)
			n += hf_streq(rows->jobs[i]->state, hf_top_states[s]);
		if (n > 0)
			hf_strbuf_addf(text, "%s%zu %s", any ? ", " : "", n, hf_top_states[s]);
		any |= n > 0;
	}
}

static void draw_title(const struct rows *rows, const struct hf_top_screen *screen,
		       struct hf_strbuf *out)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(LINE_BYTES_MAX);

	if (rows->open != NULL) {
		struct hf_top_cells cells = {.text = {""}};

		hf_top_job_cells(rows->open, screen->now, &cells);
		hf_strbuf_addf(&text, "%s/%s  %s  step %s", rows->open->ns, rows->open->name,
			       rows->open->state, cells.text[HF_TOP_JOB_STEP]);
		if (rows->open->rate > 0)
			hf_strbuf_addf(&text, " %s", cells.text[HF_TOP_JOB_RATE]);
		hf_strbuf_addf(&text, "  ETTR %s  restarts %s", cells.text[HF_TOP_JOB_ETTR],
			       cells.text[HF_TOP_JOB_RESTARTS]);
	} else {
		hf_strbuf_addf(&text, "%zu job%s%s", rows->n, rows->n == 1 ? "" : "s",
			       rows->n > 0 ? ": " : "");
		add_states(rows, &text);
	}
	hf_strbuf_addf(&text, "  by %s", hf_top_sort_name(screen->sort));
	(void)add_text(out, text.data, (size_t)screen->width, screen->utf8);
	end_line(out, "", false);
}

static void draw_keys(const struct rows *rows, const struct hf_top_screen *screen,
		      struct hf_strbuf *out)
{
	const char *text = screen->notice != NULL ? screen->notice
			   : rows->open != NULL   ? "q quit  Esc jobs  j/k move  s sort"
						  : "q quit  Enter ranks  j/k move  s sort";

	(void)add_text(out, text, (size_t)screen->width, screen->utf8);
	end_line(out, "", true);
}

void hf_top_draw(struct hf_top *top, struct hf_top_screen *screen, struct hf_strbuf *out)
{
	struct table table = {.name = 0};
	size_t room = room_of(screen), at;
	struct rows rows;

	find_rows(top, screen, &rows);
	at = selected_at(&rows, screen);
	scroll_to(screen, at, rows.n);
	table.columns = rows.open != NULL ? hf_top_rank_columns : hf_top_job_columns;
	table.n_columns = rows.open != NULL ? HF_TOP_RANK_COLUMNS : HF_TOP_JOB_COLUMNS;
	table.name = rows.open != NULL ? HF_TOP_RANK_NAME : HF_TOP_JOB_NAME;
	table.n_rows = rows.n - screen->first < room ? rows.n - screen->first : room;
	table.rows = hf_xcalloc(table.n_rows + 1, sizeof(*table.rows));
	for (size_t i = 0; i < table.n_rows; i++) {
		if (rows.open != NULL)
			hf_top_rank_cells(rows.ranks[screen->first + i], rows.open, screen->now,
					  &table.rows[i]);
		else
			hf_top_job_cells(rows.jobs[screen->first + i], screen->now, &table.rows[i]);
	}
	measure_columns(&table, screen->namespaces);
	fit_columns(&table, (size_t)screen->width);
	hf_strbuf_addstr(out, "\033[H");
	draw_title(&rows, screen, out);
	draw_headers(&table, screen, out);
	for (size_t i = 0; i < room; i++) {
		if (i < table.n_rows)
			draw_row(&table, i, screen->first + i == at,
				 table.rows[i].text[rows.open != NULL ? HF_TOP_RANK_STATE
								      : HF_TOP_JOB_STATE],
				 screen, out);
		else
			end_line(out, "", false);
	}
	draw_keys(&rows, screen, out);
	free(table.rows);
}

/* ---- keys -------------------------------------------------------------------------------------------- */

static enum hf_top_key plain_key(char byte)
{
	switch (byte) {
	case 'q':
	case 'Q': return HF_TOP_QUIT;
	case 'j': return HF_TOP_DOWN;
	case 'k': return HF_TOP_UP;
	case 's': return HF_TOP_SORT;
	case '\r':
	case '\n': return HF_TOP_ENTER;
	case ' ': return HF_TOP_PAGE_DOWN;
	case 'b': return HF_TOP_PAGE_UP;
	case 'h':
	case '\x7f': return HF_TOP_BACK;
	default: return HF_TOP_NO_KEY;
	}
}

/* The key of a whole sequence behind Esc, such as "[A"; NO_KEY: a key without a meaning. */
static enum hf_top_key sequence_key(const char *sequence)
{
	static const struct {
		const char *sequence;
		enum hf_top_key key;
	} keys[] = {
		{"[A", HF_TOP_UP},       {"OA", HF_TOP_UP},         {"[B", HF_TOP_DOWN},
		{"OB", HF_TOP_DOWN},     {"[C", HF_TOP_ENTER},      {"[D", HF_TOP_BACK},
		{"[5~", HF_TOP_PAGE_UP}, {"[6~", HF_TOP_PAGE_DOWN},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(keys); i++)
		if (hf_streq(sequence, keys[i].sequence))
			return keys[i].key;
	return HF_TOP_NO_KEY;
}

enum hf_top_key hf_top_keys_feed(struct hf_top_keys *keys, char byte)
{
	enum hf_top_key key;

	if (keys->len == 0 && byte != '\033')
		return plain_key(byte);
	if (keys->len > 0 && byte == '\033')
		return HF_TOP_BACK; /* Esc, twice: the second one begins anew */
	if (keys->len == sizeof(keys->sequence)) {
		keys->len = 0;
		return HF_TOP_NO_KEY;
	}
	keys->sequence[keys->len++] = byte;
	/* A sequence is Esc, '[' or 'O', parameters, and a final byte from '@' to '~'. */
	if (keys->len == 2 && byte != '[' && byte != 'O') {
		keys->len = 0;
		return plain_key(byte) == HF_TOP_NO_KEY ? HF_TOP_BACK : plain_key(byte);
	}
	if (keys->len < 3 || byte < '@' || byte > '~')
		return HF_TOP_NO_KEY;
	key = HF_TOP_NO_KEY;
	if (keys->len < sizeof(keys->sequence)) {
		keys->sequence[keys->len] = '\0';
		key = sequence_key(keys->sequence + 1);
	}
	keys->len = 0;
	return key;
}

enum hf_top_key hf_top_keys_end(struct hf_top_keys *keys)
{
	bool alone = keys->len == 1;

	keys->len = 0;
	return alone ? HF_TOP_BACK : HF_TOP_NO_KEY;
}

static void move_selection(const struct rows *rows, struct hf_top_screen *screen, int64_t by)
{
	int64_t at = (int64_t)selected_at(rows, screen) + by;

	if (at >= (int64_t)rows->n)
		at = (int64_t)rows->n - 1;
	select_row(rows, screen, at > 0 ? (size_t)at : 0);
}

void hf_top_press(struct hf_top *top, struct hf_top_screen *screen, enum hf_top_key key)
{
	struct rows rows;

	find_rows(top, screen, &rows);
	switch (key) {
	case HF_TOP_UP: move_selection(&rows, screen, -1); break;
	case HF_TOP_DOWN: move_selection(&rows, screen, 1); break;
	case HF_TOP_PAGE_UP: move_selection(&rows, screen, -(int64_t)room_of(screen)); break;
	case HF_TOP_PAGE_DOWN: move_selection(&rows, screen, (int64_t)room_of(screen)); break;
	case HF_TOP_ENTER:
		if (rows.open == NULL && rows.n > 0) {
			screen->open = hf_xstrdup(uid_at(&rows, selected_at(&rows, screen)));
			free(screen->selected);
			screen->selected = NULL;
			screen->first = 0;
		}
		break;
	case HF_TOP_BACK:
		if (rows.open != NULL) {
			free(screen->selected);
			screen->selected = screen->open;
			screen->open = NULL;
			screen->first = 0;
		}
		break;
	case HF_TOP_SORT: screen->sort = (screen->sort + 1) % HF_TOP_SORTS; break;
	case HF_TOP_NO_KEY:
	case HF_TOP_QUIT: break;
	}
}
