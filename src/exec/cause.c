/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "exec/cause.h"

#include "base/ascii.h"
#include "exec/form.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/*
 * Finds the cause of a failure in a line of a program's stderr.
 *
 * Input: one line.  Output: a cause, and with it an exit code from 220 on. errors.def lists the
 * error messages of the libraries, and forms.def what may stand before a message in a line.  A
 * message behind no known form names no cause: it may be the program's own sentence.
 */

const char *hf_exec_cause_name(enum hf_exec_cause cause)
{
	switch (cause) {
	case HF_EXEC_CAUSE_DEVICE_FATAL: return "device-fatal";
	case HF_EXEC_CAUSE_DEVICE_TRANSIENT: return "device-transient";
	case HF_EXEC_CAUSE_FABRIC: return "fabric";
	case HF_EXEC_CAUSE_STRAGGLER: return "straggler";
	case HF_EXEC_CAUSE_DRIVER: return "driver";
	case HF_EXEC_CAUSE_HANG: return "hang";
	case HF_EXEC_CAUSE_NO_CONTACT: return "no-contact";
	case HF_EXEC_CAUSE_LOG_RULE:
	case HF_EXEC_CAUSE_FAIL_JOB: return "log-rule";
	default: return "";
	}
}

/* ---- errors ------------------------------------------------------------------------------------ */

/* A row of errors.def whose class is a cause (rows of class APPLICATION are left out). */
struct sentence {
	/* the error's name in the library's header, such as "cudaErrorECCUncorrectable" */
	const char *name;
	const char *text; /* the library's sentence for the error; "": no sentence */
	int number;
	enum hf_exec_cause cause;
	/* which labels may stand before the sentence in a line (form.h) */
	enum hf_exec_form_kind label;
};

#define LABEL_RUNTIME HF_EXEC_FORM_RUNTIME
#define LABEL_DRIVER HF_EXEC_FORM_RUNTIME
#define LABEL_HIP HF_EXEC_FORM_RUNTIME
#define LABEL_NVML HF_EXEC_FORM_NVML
#define LABEL_KERNEL HF_EXEC_FORM_KERNEL
#define LABEL_CONTAINER HF_EXEC_FORM_CONTAINER
#define LABEL_VERBS HF_EXEC_FORM_VERBS

#define ROW(library, number, name, cause, text) {name, text, number, cause, LABEL_##library},
#define ROW_DEVICE_FATAL(library, number, name, text)                                              \
	ROW(library, number, name, HF_EXEC_CAUSE_DEVICE_FATAL, text)
#define ROW_DEVICE_TRANSIENT(library, number, name, text)                                          \
	ROW(library, number, name, HF_EXEC_CAUSE_DEVICE_TRANSIENT, text)
#define ROW_FABRIC(library, number, name, text)                                                    \
	ROW(library, number, name, HF_EXEC_CAUSE_FABRIC, text)
#define ROW_DRIVER(library, number, name, text)                                                    \
	ROW(library, number, name, HF_EXEC_CAUSE_DRIVER, text)
#define ROW_APPLICATION(library, number, name, text)
#define E(library, number, name, class, text, source, why) ROW_##class(library, number, name, text)

/* The errors that have a cause. Two libraries may print the same sentence, so two rows may have one
 * text. */
static const struct sentence sentences[] = {
#include "exec/errors.def"
};

/* ---- matching ---------------------------------------------------------------------------------- */

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(text + len - n, end, n) == 0;
}

/* The length of a launcher's marks at the beginning of the line, such as "[trainer3]:[rank3]:". */
static size_t measure_marks(const char *line, size_t len)
{
	size_t at = 0;

	while (at < len && line[at] == '[') {
		const char *end = memchr(line + at, ']', len - at);

		if (end == NULL || end + 1 == line + len || end[1] != ':')
			break;
		at = (size_t)(end + 2 - line);
	}
	return at;
}

/* Whether the line begins with two blanks or more, or has them behind a launcher's marks: Python's tracebacks
 * print source code in this way. */
static bool is_indented(const char *line, size_t len)
{
	size_t at = measure_marks(line, len);

	return at + 2 < len && line[at] == ' ' && line[at + 1] == ' ';
}

/* Whether a string of source code may begin with the character at this index.  An apostrophe within a word begins
 * no string; one of the letters f, b, r and u alone may stand before a string of Python. */
static bool may_open_string(const char *line, size_t at)
{
	if (line[at] == '"')
		return true;
	return line[at] == '\'' && (at == 0 || !hf_ascii_is_alnum(line[at - 1]) ||
				    (strchr("fbru", line[at - 1]) != NULL &&
				     (at == 1 || !hf_ascii_is_alnum(line[at - 2]))));
}

/* Whether this index lies in a string of source code that a traceback prints: the line is indented, and a string
 * is open there.  A string behind a key of JSON ("key": ") is no source code. */
static bool is_in_source_string(const char *line, size_t at)
{
	char quote = '\0';
	size_t from = 0;

	if (!is_indented(line, at))
		return false;
	for (size_t i = 0; i < at; i++) {
		if (line[i] == '\\') {
			i++;
		} else if (quote == '\0' && may_open_string(line, i)) {
			quote = line[i];
			from = i;
		} else if (line[i] == quote) {
			quote = '\0';
		}
	}
	return quote != '\0' && !ends_with(line, from, "\": ");
}

/* Whether the characters before this index are a backslash and "n" or "t": so a text in quotes prints a line feed
 * or a tab. */
static bool is_escaped_blank(const char *line, size_t at)
{
	return at > 1 && line[at - 2] == '\\' && (line[at - 1] == 'n' || line[at - 1] == 't');
}

/* Whether a label (the form before an error) may begin at this index.  A label right behind a quotation mark
 * counts only in "…Error('" or "…Exception('", where a program prints the text of an exception.  Elsewhere such a
 * text is an entry of a program's own list, or source code in a traceback. */
static bool may_begin(const char *line, size_t at)
{
	char before = at > 0 ? line[at - 1] : ' ';

	if (before == '\'' || before == '"')
		return (ends_with(line, at - 1, "Error(") ||
			ends_with(line, at - 1, "Exception(")) &&
		       !is_indented(line, at);
	return !hf_ascii_is_alnum(before) || is_escaped_blank(line, at);
}

static bool stands_for(char wildcard, char c)
{
	switch (wildcard) {
	case '#': return hf_ascii_is_digit(c) || c == '(' || c == ')';
	case '@': return c != ' ';
	case '^': return hf_ascii_is_upper(c);
	default: return true;
	}
}

/* Steps back over the backslashes before an apostrophe: in a text in quotes an apostrophe is escaped. */
static size_t skip_escape(const char *line, size_t len)
{
	if (line[len] == '\'')
		while (len > 0 && line[len - 1] == '\\')
			len--;
	return len;
}

/* Most comparisons with labels for one line: a line of many brackets can match the wildcards of a label in very
 * many ways.  Real lines need some thousand. */
#define STEPS_MAX 16384

/* Whether the line's first len bytes end with the label.  Also false if *steps is used up. */
static bool is_labelled(const char *line, size_t len, const char *label, size_t label_len,
			unsigned *steps)
{
	char last;

	if (*steps == 0)
		return false;
	--*steps;
	if (label_len == 0)
		return may_begin(line, len);
	last = label[--label_len];
	if (strchr("#@*^", last) == NULL)
		return len > 0 && hf_ascii_to_lower(line[len - 1]) == last &&
		       is_labelled(line, skip_escape(line, len - 1), label, label_len, steps);
	if (last == '^')
		return len > 0 && stands_for(last, line[len - 1]) &&
		       is_labelled(line, len - 1, label, label_len, steps);
	while (len > 0 && stands_for(last, line[len - 1]))
		if (is_labelled(line, --len, label, label_len, steps))
			return true;
	return false;
}

/* Whether the word may stand before the place of an error ("at", "in", "file"). */
static bool is_of_place(const char *word, size_t len)
{
	static const char *const words[] = {"at", "in", "on", "during", "file"};

	for (size_t i = 0; i < HF_ARRAY_LEN(words); i++)
		if (strlen(words[i]) == len && memcmp(word, words[i], len) == 0)
			return true;
	return false;
}

/* Whether the library's error ends here: behind it come only a place or a remark, such as "at FILE" or "(code
 * 214)". */
static bool is_over(const char *rest, size_t len)
{
	size_t n = 0;

	if (len == 0)
		return true;
	/* A comma and a word that names no place begin another clause: the sentence is the program's own ("…,
	 * retrying"). */
	if (len > 1 && rest[0] == ',' && rest[1] == ' ')
		rest++, len--;
	if (rest[0] != ' ')
		return !hf_ascii_is_alnum(rest[0]) && rest[0] != '_' && rest[0] != '-';
	for (rest++, len--; n < len && hf_ascii_is_lower(rest[n]); n++)
		continue;
	/* What follows is no word in small letters, but a number, a new sentence or the name of a
	 * file. */
	if (n == 0 || (n < len && rest[n] != ' ' && rest[n] != ','))
		return true;
	return is_of_place(rest, n);
}

static bool begins_with(const char *text, size_t len, const char *start)
{
	size_t n = 0;

	/* Letters compare without case: libnvidia-container prints all texts in small letters. */
	for (; start[n] != '\0'; n++)
		if (n == len || hf_ascii_to_lower(text[n]) != hf_ascii_to_lower(start[n]))
			return false;
	return n > 0;
}

/* Whether the line has "error NUMBER: " before this index: PyTorch's cudaGetDeviceCount prints the error's number
 * without its name ("Error 802: …"). */
static bool is_numbered(const char *line, size_t at, const struct sentence *sentence,
			unsigned *steps)
{
	char label[32];
	int n = snprintf(label, sizeof(label), "error %d: ", sentence->number);

	return sentence->label == HF_EXEC_FORM_RUNTIME &&
	       is_labelled(line, at, label, (size_t)n, steps);
}

/* Whether the line begins with "NVRM: " or "[171657.345] NVRM: ", as the kernel and dmesg print it.  If a date or
 * the name of a host stands in front, the line is from a log of another time or host. */
static bool is_of_kernel(const char *line, size_t len)
{
	size_t at = 0;

	if (len > 0 && line[0] == '[') {
		for (at = 1; at < len &&
			     (hf_ascii_is_digit(line[at]) || line[at] == ' ' || line[at] == '.');
		     at++)
			continue;
		if (at + 1 >= len || line[at] != ']' || line[at + 1] != ' ')
			return false;
		at += 2;
	}
	return len - at >= 6 && memcmp(line + at, "NVRM: ", 6) == 0;
}

static bool is_said(const char *line, size_t at, const struct sentence *sentence, unsigned *steps)
{
	const char *label;

	if (sentence->label == HF_EXEC_FORM_KERNEL && !is_of_kernel(line, at))
		return false;
	for (size_t i = 0; (label = hf_exec_form_next(sentence->label, &i)) != NULL;)
		if (is_labelled(line, at, label, strlen(label), steps))
			return true;
	return is_numbered(line, at, sentence, steps);
}

/* Whether the library's text of this error begins at from, and nothing follows that makes it another sentence. */
static bool is_text(const char *from, size_t len, const struct sentence *sentence)
{
	size_t n;

	if (!begins_with(from, len, sentence->text))
		return false;
	n = strlen(sentence->text);
	return is_over(from + n, len - n);
}

/* Whether the name of this error begins at from; the library's text of the error may follow the name. */
static bool is_name(const char *from, size_t len, const struct sentence *sentence)
{
	size_t n;

	if (!begins_with(from, len, sentence->name))
		return false;
	n = strlen(sentence->name);
	return is_over(from + n, len - n) ||
	       (from[n] == ' ' && is_text(from + n + 1, len - n - 1, sentence));
}

/* Whether a label may end before this index.  Labels end with one of the characters below; those before an error's
 * name may also end with "results in " or "api error ". */
static bool is_behind_label(const char *line, size_t at)
{
	char last = line[at - 1], before = at > 1 ? line[at - 2] : ' ';

	if (last != ' ')
		return last == '\'' || last == '(' || last == '=';
	return before == ':' || before == ',' || before == 'n' || before == 'r' || before == ']';
}

static uint64_t letter_bit(char c)
{
	return c >= 'A' && c <= 'z' ? 1ULL << (c - 'A') : 0;
}

/* The first letters of all names and texts of errors: most words of most lines begin with another letter, so a
 * line costs little. */
static uint64_t first_letters(void)
{
	uint64_t letters = 0;

	for (size_t i = 0; i < HF_ARRAY_LEN(sentences); i++)
		letters |= letter_bit(hf_ascii_to_lower(sentences[i].name[0])) |
			   letter_bit(hf_ascii_to_lower(sentences[i].text[0]));
	return letters;
}

static enum hf_exec_cause find_cause_at(const char *line, size_t len, size_t at, unsigned *steps)
{
	char first = hf_ascii_to_lower(line[at]);

	for (size_t i = 0; i < HF_ARRAY_LEN(sentences); i++) {
		const struct sentence *sentence = &sentences[i];

		if (hf_ascii_to_lower(sentence->text[0]) != first &&
		    hf_ascii_to_lower(sentence->name[0]) != first)
			continue;
		if ((is_text(line + at, len - at, sentence) ||
		     is_name(line + at, len - at, sentence)) &&
		    is_said(line, at, sentence, steps))
			return sentence->cause;
	}
	return HF_EXEC_CAUSE_NONE;
}

/* ---- whether a line reports a failure ---------------------------------------------------------------- */

static bool may_stand_beside_level(char c)
{
	return strchr(" [](){}|<>\":=,.;", c) != NULL;
}

/* "RuntimeWarning" and the like of Python. */
static bool is_mild(const char *word, size_t len)
{
	return hf_exec_form_is_word(word, len, HF_EXEC_FORM_MILD) ||
	       (len > strlen("Warning") && ends_with(word, len, "Warning"));
}

/* Whether the name before "=" is that of a log level, as in "level=warn" and "levelname=INFO".  In NCCL's
 * "NCCL_DEBUG=INFO" it is not. */
static bool is_of_level(const char *line, size_t len)
{
	static const char *const names[] = {"level", "lvl", "levelname", "loglevel", "severity"};
	size_t n = 0;

	while (n < len && hf_ascii_is_letter(line[len - 1 - n]))
		n++;
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++)
		if (hf_exec_form_is_same_word(line + len - n, n, names[i]))
			return true;
	return false;
}

/* Whether the first log level that stands before the error is a mild one (MILD of forms.def): then the program
 * goes on. */
static bool has_mild_level(const char *before, size_t len)
{
	for (size_t at = 0, n; at < len; at += n + 1) {
		for (n = 0; at + n < len && !may_stand_beside_level(before[at + n]); n++)
			continue;
		if (at > 0 && before[at - 1] == '=' && !is_of_level(before, at - 1))
			continue;
		if (is_mild(before + at, n))
			return true;
		if (hf_exec_form_is_word(before + at, n, HF_EXEC_FORM_GRAVE))
			return false;
	}
	return false;
}

static bool has_recovered_word(const char *line, size_t len)
{
	for (size_t at = 0, n; at < len; at += n + 1) {
		for (n = 0; at + n < len && hf_ascii_is_alnum(line[at + n]); n++)
			continue;
		if (hf_exec_form_is_word(line + at, n, HF_EXEC_FORM_RECOVERED))
			return true;
	}
	return false;
}

/* Whether the line reports the error at this index as a failure.  False for source code, for another rank's error,
 * and for an error after which, by the line's own words, the program went on. */
static bool is_failure(const char *line, size_t len, size_t at)
{
	if (hf_exec_form_any_phrase_in(line, at, HF_EXEC_FORM_SOURCE) ||
	    is_in_source_string(line, at) ||
	    hf_exec_form_any_phrase_in(line, at, HF_EXEC_FORM_ANOTHERS))
		return false;
	if (hf_exec_form_any_phrase_in(line, at, HF_EXEC_FORM_REPORTED))
		return true;
	return !hf_exec_form_any_in(line, at, HF_EXEC_FORM_LOG) && !has_mild_level(line, at) &&
	       !has_recovered_word(line, len) &&
	       !hf_exec_form_any_phrase_in(line, len, HF_EXEC_FORM_GOES_ON);
}

enum hf_exec_cause hf_exec_cause_of(const char *line, size_t len)
{
	/* the first letters of all errors; found only for a line with a label, which most lines lack */
	uint64_t letters = 0;
	enum hf_exec_cause cause = HF_EXEC_CAUSE_NONE;
	unsigned steps = STEPS_MAX;

	for (size_t at = 1; at < len && cause == HF_EXEC_CAUSE_NONE; at++) {
		if (!is_behind_label(line, at))
			continue;
		if (letters == 0)
			letters = first_letters();
		if ((letters & letter_bit(hf_ascii_to_lower(line[at]))) == 0)
			continue;
		cause = find_cause_at(line, len, at, &steps);
		/* The search goes on behind an error that is no failure: the same line may hold another error. */
		if (cause != HF_EXEC_CAUSE_NONE && !is_failure(line, len, at))
			cause = HF_EXEC_CAUSE_NONE;
	}
	return cause;
}

/* ---- an error of two lines --------------------------------------------------------------------- */

bool hf_exec_cause_is_head(const char *line, size_t len)
{
	unsigned steps = STEPS_MAX;
	const char *form;

	/* Every first line of an error of two lines ends with a number. */
	if (len == 0 || !hf_ascii_is_digit(line[len - 1]))
		return false;
	for (size_t i = 0; (form = hf_exec_form_next(HF_EXEC_FORM_HEAD, &i)) != NULL;)
		if (is_labelled(line, len, form, strlen(form), &steps))
			return is_failure(line, len, len);
	return false;
}

enum hf_exec_cause hf_exec_cause_below(const char *line, size_t len)
{
	size_t at = begins_with(line, len, "-> ") ? 3 : 0;

	for (size_t i = 0; i < HF_ARRAY_LEN(sentences); i++)
		if (sentences[i].label == HF_EXEC_FORM_RUNTIME &&
		    is_text(line + at, len - at, &sentences[i]))
			return sentences[i].cause;
	return HF_EXEC_CAUSE_NONE;
}
