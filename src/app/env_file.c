/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Parses the text of an --env-file. Input: bytes of a file. Output: one variable a call. */
#include "app/env_file.h"

#include "base/str.h"

#include <string.h>

#define MARK "\xef\xbb\xbf" /* byte order mark of UTF-8 */

void hf_env_file_begin(struct hf_env_file *file, const char *text, size_t len)
{
	size_t skip =
		len >= strlen(MARK) && memcmp(text, MARK, strlen(MARK)) == 0 ? strlen(MARK) : 0;

	*file = (struct hf_env_file){.at = text + skip, .end = text + len, .line = 1};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct hf_env_file *file)
{
	while (file->at < file->end && is_blank(*file->at))
		file->at++;
}

/* Moves to the end of the line, in front of its newline. */
static void skip_line(struct hf_env_file *file)
{
	const char *end = memchr(file->at, '\n', (size_t)(file->end - file->at));

	file->at = end != NULL ? end : file->end;
}

/* Moves to the first line that has a variable. False: there is none. */
static bool find_variable(struct hf_env_file *file)
{
	while (file->at < file->end) {
		skip_blanks(file);
		if (file->at < file->end && *file->at == '#')
			skip_line(file);
		if (file->at == file->end || *file->at != '\n')
			break;
		file->at++;
		file->line++;
	}
	return file->at < file->end;
}

static void skip_export(struct hf_env_file *file)
{
	static const char word[] = "export";
	size_t len = sizeof(word) - 1;

	if ((size_t)(file->end - file->at) <= len || memcmp(file->at, word, len) != 0 ||
	    !is_blank(file->at[len]))
		return;
	file->at += len;
	skip_blanks(file);
}

/* Reads a value without quotes: up to the end of the line, or to a comment behind a blank. */
static void read_plain(struct hf_env_file *file, struct hf_strbuf *text)
{
	const char *begin = file->at, *stop;

	skip_line(file);
	stop = file->at;
	for (const char *at = begin; at < stop; at++)
		if (*at == '#' && is_blank(at[-1])) {
			stop = at;
			break;
		}
	while (stop > begin && is_blank(stop[-1]))
		stop--;
	hf_strbuf_add(text, begin, (size_t)(stop - begin));
}

/* Returns the character that a backslash and the letter stand for in double quotes; 0: the backslash is an
 * ordinary character. */
static char unescape(char letter)
{
	static const char letters[] = "nrt\"\\$", values[] = "\n\r\t\"\\$";
	const char *found = letter != '\0' ? strchr(letters, letter) : NULL;

	return found != NULL ? values[found - letters] : '\0';
}

/* Reads a quoted value, and moves behind it. False: the quote is not closed. */
static bool read_quoted(struct hf_env_file *file, struct hf_strbuf *text)
{
	char quote = *file->at++;

	for (; file->at < file->end && *file->at != quote; file->at++) {
		char c = *file->at;
		char escaped = quote == '"' && c == '\\' && file->at + 1 < file->end
				       ? unescape(file->at[1])
				       : '\0';

		file->line += c == '\n';
		if (escaped != '\0')
			file->at++;
		/* A CRLF inside the quotes is one newline. */
		if (c == '\r' && file->at + 1 < file->end && file->at[1] == '\n')
			continue;
		hf_strbuf_addch(text, escaped != '\0' ? escaped : c);
	}
	if (file->at == file->end)
		return false;
	file->at++;
	return true;
}

/* After a quoted value only blanks and a comment may follow. */
static bool is_end_of_value(struct hf_env_file *file)
{
	skip_blanks(file);
	if (file->at < file->end && *file->at == '#')
		skip_line(file);
	return file->at == file->end || *file->at == '\n';
}

static int read_value(struct hf_env_file *file, struct hf_env_item *item, struct hf_error *err)
{
	skip_blanks(file);
	if (file->at == file->end || (*file->at != '"' && *file->at != '\'')) {
		read_plain(file, &item->text);
		return 0;
	}
	if (!read_quoted(file, &item->text))
		return hf_error_set(err, HF_E_INVALID,
				    "the value begins with a quote that is not closed");
	if (!is_end_of_value(file))
		return hf_error_set(err, HF_E_INVALID,
				    "text follows the closing quote of the value");
	return 0;
}

int hf_env_file_next(struct hf_env_file *file, struct hf_env_item *item, struct hf_error *err)
{
	const char *begin, *stop;
	int rc;

	hf_strbuf_clear(&item->text);
	if (!find_variable(file))
		return 0;
	item->line = file->line;
	skip_export(file);
	begin = file->at;
	while (file->at < file->end && *file->at != '=' && *file->at != '\n')
		file->at++;
	stop = file->at;
	while (stop > begin && is_blank(stop[-1]))
		stop--;
	if (!hf_utf8_valid(begin, (size_t)(stop - begin)))
		return hf_error_set(err, HF_E_INVALID, "the name of the variable is not UTF-8");
	hf_strbuf_add(&item->text, begin, (size_t)(stop - begin));
	if (file->at == file->end || *file->at != '=')
		return 0;
	file->at++;
	hf_strbuf_addch(&item->text, '=');
	rc = read_value(file, item, err);
	if (rc == 0 && !hf_utf8_valid(item->text.data, item->text.len))
		return hf_error_set(err, HF_E_INVALID,
				    "the value is not UTF-8; save the file as UTF-8");
	return rc;
}
