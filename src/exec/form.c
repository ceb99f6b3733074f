/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/form.h"

#include "base/ascii.h"

#include <string.h>

/*
 * Compares the beginning of a line with the forms of forms.def: the label, time or file that a
 * library or a framework prints before its message.
 */

#define F(kind, form, source) {HF_EXEC_FORM_##kind, form},
static const struct {
	enum hf_exec_form_kind kind;
	const char *form;
} forms[] = {
#include "exec/forms.def"
};

const char *hf_exec_form_next(enum hf_exec_form_kind kind, size_t *at)
{
	while (*at < HF_ARRAY_LEN(forms)) {
		size_t i = (*at)++;

		if (forms[i].kind == kind)
			return forms[i].form;
	}
	return NULL;
}

/* Whether the line begins with the form.  The character `number` of the form stands for a number.  fold: capitals
 * of the line match small letters of the form. */
static bool begins_with_form(const char *line, size_t len, const char *form, char number, bool fold)
{
	size_t at = 0;

	for (; *form != '\0'; form++) {
		char c;

		if (at == len)
			return false;
		c = fold ? hf_ascii_to_lower(line[at]) : line[at];
		if (*form == number ? !hf_ascii_is_digit(c) : c != *form)
			return false;
		for (at++; *form == number && at < len && hf_ascii_is_digit(line[at]); at++)
			continue;
	}
	return true;
}

bool hf_exec_form_begins(const char *line, size_t len, const char *form)
{
	return begins_with_form(line, len, form, '#', false);
}

/* Tells whether the form occurs anywhere in the line; hf_exec_form_begins looks at its beginning
 * only. */
static bool is_in_line(const char *line, size_t len, const char *form)
{
	const char *end = line + len;
	char first = form[0];

	for (; line < end; line++) {
		if (first != '#')
			line = memchr(line, first, (size_t)(end - line));
		if (line == NULL)
			return false;
		if (hf_exec_form_begins(line, (size_t)(end - line), form))
			return true;
	}
	return false;
}

bool hf_exec_form_any_in(const char *line, size_t len, enum hf_exec_form_kind kind)
{
	const char *form;

	for (size_t at = 0; (form = hf_exec_form_next(kind, &at)) != NULL;)
		if (is_in_line(line, len, form))
			return true;
	return false;
}

bool hf_exec_form_any_phrase_in(const char *line, size_t len, enum hf_exec_form_kind kind)
{
	const char *form;

	for (size_t i = 0; (form = hf_exec_form_next(kind, &i)) != NULL;)
		for (size_t at = 0; at < len; at++)
			if (begins_with_form(line + at, len - at, form, '%', true))
				return true;
	return false;
}

bool hf_exec_form_is_same_word(const char *word, size_t len, const char *form)
{
	if (strlen(form) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (hf_ascii_to_lower(word[i]) != form[i])
			return false;
	return true;
}

bool hf_exec_form_is_word(const char *word, size_t len, enum hf_exec_form_kind kind)
{
	const char *form;

	for (size_t at = 0; (form = hf_exec_form_next(kind, &at)) != NULL;)
		if (hf_exec_form_is_same_word(word, len, form))
			return true;
	return false;
}
