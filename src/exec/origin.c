/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/origin.h"

#include "base/ascii.h"
#include "exec/form.h"

#include <stdbool.h>
#include <string.h>

/*
 * Reads the mark that a launcher or an exception puts before the line of another host or rank, such
 * as "[node7] …", "worker-1 | …" or "1:…".  Input: one line without escape sequences.  Output: enum
 * hf_exec_origin.
 */

/* ---- marks of launchers ------------------------------------------------------------------------ */

/* Whether the word looks like a host's name but is none, such as "error".  If it has dots, the part after the last
 * dot counts: the class of an exception may be "module.Error". */
static bool is_no_host(const char *word, size_t len)
{
	const char *dot = memrchr(word, '.', len);

	if (dot != NULL) {
		len -= (size_t)(dot + 1 - word);
		word = dot + 1;
	}
	return hf_exec_form_is_word(word, len, HF_EXEC_FORM_NO_HOST);
}

/* Whether the word may be a host: a name of DNS or of a container, or an address.  A word with capitals is taken
 * for the class of an exception, unless it has a dash or a digit and no underscore: classes rarely have a digit,
 * and their modules often have underscores.  *ret_certain: the word has a dash or a digit. */
static bool is_host(const char *word, size_t len, bool *ret_certain)
{
	bool capital = false, underscore = false, other = false;

	for (size_t i = 0; i < len; i++) {
		char c = word[i];

		if (!hf_ascii_is_alnum(c) && c != '.' && c != '-' && c != '_')
			return false;
		capital |= hf_ascii_is_upper(c);
		underscore |= c == '_';
		other |= hf_ascii_is_digit(c) || c == '-';
	}
	*ret_certain = other;
	return len > 0 && hf_ascii_is_alnum(word[0]) && (!capital || (other && !underscore)) &&
	       !is_no_host(word, len);
}

static bool is_of_address(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!hf_ascii_is_digit(word[i]) && !(word[i] >= 'a' && word[i] <= 'f') &&
		    word[i] != ':')
			return false;
	return memmem(word, len, "::", 2) != NULL;
}

/* Whether the line begins with a host and ": ", as in "10.0.0.7: …", which pdsh prints for DeepSpeed. */
static bool is_behind_host(const char *line, size_t len)
{
	const char *end = memmem(line, len, ": ", 2);
	bool certain;

	return end != NULL && (is_host(line, (size_t)(end - line), &certain) ||
			       is_of_address(line, (size_t)(end - line)));
}

/* Whether the word has no letter: a number, a time or a date.  A word with three dots is an address. */
static bool is_number(const char *word, size_t len)
{
	size_t dots = 0;

	for (size_t i = 0; i < len; i++) {
		if (hf_ascii_is_letter(word[i]))
			return false;
		dots += word[i] == '.';
	}
	return dots != 3;
}

/* Whether the line begins with "[trainer3]:TEXT", as torchrun --tee prints it: a role, a local rank, and TEXT as
 * the rank printed it.  Launchers that name hosts put a blank before TEXT. */
static bool is_of_role(const char *line, size_t len, size_t n)
{
	const char *end = line + 1 + n;

	return n > 1 && hf_ascii_is_digit(end[-1]) && hf_ascii_is_letter(line[1]) &&
	       memchr(line + 1, '.', n) == NULL && memchr(line + 1, '-', n) == NULL &&
	       end + 2 < line + len && end[1] == ':' && end[2] != ' ';
}

/* The length of the host's name in "node7:12345", where the number of a process or of a rank follows the name. */
static size_t measure_host(const char *word, size_t len)
{
	size_t n = len;

	while (n > 0 && hf_ascii_is_digit(word[n - 1]))
		n--;
	return n < len && n > 1 && word[n - 1] == ':' ? n - 1 : len;
}

/* Whether the line begins with a host in brackets: "[node7] …", "[gpu_node5]: …" and "[node7:12345] …". */
static bool is_behind_bracket(const char *line, size_t len)
{
	const char *end = len > 0 && line[0] == '[' ? memchr(line, ']', len) : NULL;
	const char *form;
	bool certain;
	size_t n;

	if (end == NULL || end + 1 == line + len || (end[1] != ' ' && end[1] != ':'))
		return false;
	n = (size_t)(end - line) - 1;
	for (size_t at = 0; (form = hf_exec_form_next(HF_EXEC_FORM_LOCAL, &at)) != NULL;)
		if (hf_exec_form_begins(line + 1, n, form))
			return false;
	if (is_of_role(line, len, n))
		return false;
	n = measure_host(line + 1, n);
	return is_host(line + 1, n, &certain) && certain && !is_number(line + 1, n);
}

/* Whether the line begins as "node7> …", or as "worker-1  | …" of docker compose. */
static bool is_behind_sign(const char *line, size_t len)
{
	size_t n = 0, at;
	bool certain;

	while (n < len && line[n] != ' ' && line[n] != '>' && line[n] != '|')
		n++;
	for (at = n; at < len && line[at] == ' ';)
		at++;
	if (at + 1 >= len || line[at + 1] != ' ' || !is_host(line, n, &certain))
		return false;
	return (line[at] == '>' && at == n && certain) || line[at] == '|';
}

/* Whether the line begins with a number and ":" without a blank, as in "1:…" of pdsh and mpirun with a label. */
static bool is_behind_number(const char *line, size_t len)
{
	size_t n = 0;

	while (n < len && hf_ascii_is_digit(line[n]))
		n++;
	return n > 0 && n + 1 < len && line[n] == ':' && !hf_ascii_is_digit(line[n + 1]);
}

/* Whether the line begins with "(NAME pid=7, ip=10.0.0.2) …" of Ray.  Ray prints no address for processes of its
 * own host. */
static bool is_behind_address(const char *line, size_t len)
{
	const char *end = len > 0 && line[0] == '(' ? memchr(line, ')', len) : NULL;

	return end != NULL && memmem(line, (size_t)(end - line), " ip=", 4) != NULL;
}

static bool is_relayed(const char *line, size_t len)
{
	const char *mark;

	/* "[1,3]<stderr>:…" is of Open MPI and Horovod; a time may stand before it. */
	if (is_behind_host(line, len) || is_behind_bracket(line, len) ||
	    is_behind_sign(line, len) || memmem(line, len, "]<std", 5) != NULL)
		return true;
	/* Launchers pad numbers with blanks to the width of the longest number. */
	for (; len > 0 && line[0] == ' '; line++, len--)
		continue;
	for (size_t at = 0; (mark = hf_exec_form_next(HF_EXEC_FORM_RELAYED, &at)) != NULL;)
		if (hf_exec_form_begins(line, len, mark))
			return true;
	return is_behind_number(line, len) || is_behind_address(line, len);
}

/* Whether the line is "[Rank 1, 5]:" alone: then exceptions of other workers of Ray Train follow. */
static bool is_heading(const char *line, size_t len)
{
	return hf_exec_form_begins(line, len, "[Rank #") && memcmp(line + len - 2, "]:", 2) == 0;
}

enum hf_exec_origin hf_exec_find_origin(const char *line, size_t len)
{
	if (is_relayed(line, len))
		return HF_EXEC_ORIGIN_RELAYED;
	if (hf_exec_form_any_in(line, len, HF_EXEC_FORM_OTHERS) || is_heading(line, len))
		return HF_EXEC_ORIGIN_OTHERS;
	return hf_exec_form_any_in(line, len, HF_EXEC_FORM_OWN) ? HF_EXEC_ORIGIN_OWN
								: HF_EXEC_ORIGIN_SAME;
}
