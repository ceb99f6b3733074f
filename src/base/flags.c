/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Reads a command line by tables of flags.
 *
 * Input: argv and up to three tables. Output: one flag or word a call, in the order of argv, or an
 * error that names the flag. Invariant: every value points into argv or is a constant.
 */
#include "base/flags.h"

#include "base/str.h"

#include <stdint.h>
#include <string.h>

#define NEAR_MAX 3
#define LEFT_WIDTH_MIN 28
#define LEFT_WIDTH_MAX 48
#define SHOWN_BYTES_MAX 100 /* bytes of a wrong word that an error text shows */

/* ---- the nearest name ----------------------------------------------------------------------- */

/* Returns the number of edits that turn a into b. An edit inserts, deletes or replaces a letter, or
 * swaps two neighbours. */
static size_t edit_distance(const char *a, size_t a_len, const char *b)
{
	size_t rows[3][HF_FLAG_NAME_BYTES_MAX + 1], b_len = strlen(b);

	if (a_len > HF_FLAG_NAME_BYTES_MAX || b_len > HF_FLAG_NAME_BYTES_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			row[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
			if (above[j] + 1 < row[j])
				row[j] = above[j] + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    rows[(i + 1) % 3][j - 2] + 1 < row[j])
				row[j] = rows[(i + 1) % 3][j - 2] + 1;
		}
	}
	return rows[a_len % 3][b_len];
}

void hf_nearest_offer(struct hf_nearest *search, const char *name)
{
	size_t len = search->len, name_len = strlen(name);
	size_t distance = edit_distance(search->text, len, name);
	/* Of two equally near names, choose the one with the same last letter: most typos are in the middle. */
	bool has_same_end = len > 0 && name_len > 0 && search->text[len - 1] == name[name_len - 1];

	if (distance > NEAR_MAX || 2 * distance > name_len)
		return;
	if (search->nearest == NULL || distance < search->distance ||
	    (distance == search->distance && has_same_end)) {
		search->nearest = name;
		search->distance = distance;
	}
}

/* ---- tables --------------------------------------------------------------------------------- */

const struct hf_flag *hf_flag_find(const struct hf_flag *table, const char *name)
{
	for (; table != NULL && table->name != NULL; table++)
		if (hf_streq(table->name, name))
			return table;
	return NULL;
}

static const struct hf_flag *find_name(const struct hf_flags *flags, const char *name, size_t len)
{
	for (size_t i = 0; i < HF_FLAGS_TABLES_MAX; i++)
		for (const struct hf_flag *flag = flags->tables[i];
		     flag != NULL && flag->name != NULL; flag++)
			if (strncmp(flag->name, name, len) == 0 && flag->name[len] == '\0')
				return flag;
	return NULL;
}

static const struct hf_flag *find_letter(const struct hf_flags *flags, char letter)
{
	for (size_t i = 0; i < HF_FLAGS_TABLES_MAX; i++)
		for (const struct hf_flag *flag = flags->tables[i];
		     flag != NULL && flag->name != NULL; flag++)
			if (flag->letter == letter)
				return flag;
	return NULL;
}

static int report_unknown_name(const struct hf_flags *flags, const char *name, size_t len,
			       struct hf_error *err)
{
	struct hf_nearest search = {.text = name, .len = len};
	int shown = (int)(len < SHOWN_BYTES_MAX ? len : SHOWN_BYTES_MAX);

	for (size_t i = 0; i < HF_FLAGS_TABLES_MAX; i++)
		for (const struct hf_flag *flag = flags->tables[i];
		     flag != NULL && flag->name != NULL; flag++)
			hf_nearest_offer(&search, flag->name);
	if (search.nearest != NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "unknown flag '--%.*s': did you mean '--%s'?", shown, name,
				    search.nearest);
	return hf_error_set(err, HF_E_INVALID, "unknown flag '--%.*s'", shown, name);
}

/* ---- values --------------------------------------------------------------------------------- */

/* Reads the value of a switch as Go's strconv.ParseBool does. */
static int read_switch(const struct hf_flag *flag, const char *text, const char **ret_value,
		       struct hf_error *err)
{
	static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
	static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};

	for (size_t i = 0; i < HF_ARRAY_LEN(yes); i++) {
		if (hf_streq(text, yes[i]) || hf_streq(text, no[i])) {
			*ret_value = hf_streq(text, yes[i]) ? "" : NULL;
			return 0;
		}
	}
	return hf_error_set(err, HF_E_INVALID, "--%s takes true or false, not '%.*s'", flag->name,
			    SHOWN_BYTES_MAX, text);
}

/* Sets the value of a flag. The value is `attached`, the text behind the flag in the same word, or
 * the next word. A switch never takes the next word. */
static int take_value(struct hf_flags *flags, const struct hf_flag *flag, const char *attached,
		      struct hf_flag_item *ret_item, struct hf_error *err)
{
	const char *value = attached;
	int rc = 0;

	if (flag->value == NULL && attached == NULL) {
		value = "";
	} else if (flag->value == NULL) {
		rc = read_switch(flag, attached, &value, err);
	} else if (value == NULL) {
		if (flags->at >= flags->argc)
			return hf_error_set(err, HF_E_INVALID, "--%s needs a value: --%s %s",
					    flag->name, flag->name, flag->value);
		value = flags->argv[flags->at++];
	}
	if (rc == 0)
		*ret_item = (struct hf_flag_item){.flag = flag, .value = value};
	return rc != 0 ? rc : 1;
}

/* Reads "name" or "name=VALUE"; the caller has removed the dashes. */
static int read_name(struct hf_flags *flags, const char *name, struct hf_flag_item *ret_item,
		     struct hf_error *err)
{
	size_t len = strcspn(name, "=");
	const struct hf_flag *flag = find_name(flags, name, len);

	/* Go's programs accept -h too. */
	if (flag == NULL && flags->style == HF_FLAGS_GO && len == 1)
		flag = find_letter(flags, name[0]);
	if (flag == NULL)
		return report_unknown_name(flags, name, len, err);
	return take_value(flags, flag, name[len] == '=' ? name + len + 1 : NULL, ret_item, err);
}

/* Reads one letter of "-nNAME", "-n=NAME" or "-abc".  A letter that needs a value takes the rest of the
 * word. */
static int read_letter(struct hf_flags *flags, struct hf_flag_item *ret_item, struct hf_error *err)
{
	char letter = *flags->letters++;
	const struct hf_flag *flag = find_letter(flags, letter);
	const char *rest = flags->letters;

	if (flag == NULL)
		return hf_error_set(err, HF_E_INVALID, "unknown flag '-%c'", letter);
	if (flag->value == NULL)
		return take_value(flags, flag, NULL, ret_item, err);
	flags->letters = NULL;
	if (*rest == '\0')
		return take_value(flags, flag, NULL, ret_item, err);
	return take_value(flags, flag, *rest == '=' ? rest + 1 : rest, ret_item, err);
}

/* ---- the command line ----------------------------------------------------------------------- */

int hf_flags_next(struct hf_flags *flags, struct hf_flag_item *ret_item, struct hf_error *err)
{
	const char *word;

	if (!hf_str_is_empty(flags->letters))
		return read_letter(flags, ret_item, err);
	if (!flags->over && flags->at < flags->argc && hf_streq(flags->argv[flags->at], "--")) {
		flags->over = true;
		flags->at++;
	}
	if (flags->at >= flags->argc)
		return 0;
	word = flags->argv[flags->at];
	if (flags->over || word[0] != '-' || word[1] == '\0') {
		if (flags->style == HF_FLAGS_COMMAND)
			return 0;
		flags->at++;
		*ret_item = (struct hf_flag_item){.value = word};
		return 1;
	}
	flags->at++;
	if (word[1] == '-')
		return read_name(flags, word + 2, ret_item, err);
	if (flags->style == HF_FLAGS_GO)
		return read_name(flags, word + 1, ret_item, err);
	flags->letters = word + 1;
	return read_letter(flags, ret_item, err);
}

/* ---- help ----------------------------------------------------------------------------------- */

/* The columns of "-n, --name VALUE". */
static size_t left_width(const struct hf_flag *flag)
{
	return strlen("-n, --") + strlen(flag->name) +
	       (flag->value != NULL ? 1 + hf_utf8_count(flag->value) : 0);
}

void hf_flag_add_help(const struct hf_flag *table, const struct hf_flag *flag, struct hf_strbuf *sb)
{
	size_t width = LEFT_WIDTH_MIN, used = left_width(flag);

	for (; table->name != NULL; table++)
		if (left_width(table) > width && left_width(table) <= LEFT_WIDTH_MAX)
			width = left_width(table);
	hf_strbuf_addstr(sb, "  ");
	if (flag->letter != 0)
		hf_strbuf_addf(sb, "-%c, ", flag->letter);
	else
		hf_strbuf_addstr(sb, "    ");
	hf_strbuf_addf(sb, "--%s%s%s", flag->name, flag->value != NULL ? " " : "",
		       hf_str_or(flag->value, ""));
	for (; used < width + 1; used++)
		hf_strbuf_addch(sb, ' ');
	hf_strbuf_addstr(sb, flag->help);
	if (flag->fallback != NULL)
		hf_strbuf_addf(sb, " [%s]", flag->fallback);
}
