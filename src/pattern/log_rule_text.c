/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Reads the text of a rule. Every part is checked alone, so that an API can name the field of a wrong part. */
#include "pattern/log_rule_internal.h"

#include "base/ascii.h"
#include "base/str.h"
#include "base/time.h"
#include "pattern/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 8
#define MUST_MAX 64

static const char help[] =
	"write appear within SPAN, recur within SPAN, be finite, be below NUMBER or be above NUMBER, "
	"the last three also with 'for N lines'";

/* ---- words ---------------------------------------------------------------------------------------- */

struct words {
	char text[MUST_MAX];
	const char *items[WORDS_MAX];
	size_t len;
};

/* False: too long, or too many words. */
static bool split_words(const char *text, size_t len, struct words *ret)
{
	*ret = (struct words){.len = 0};
	if (len >= sizeof(ret->text))
		return false;
	memcpy(ret->text, text, len);
	for (char *at = ret->text; *at != '\0';) {
		if (*at == ' ') {
			*at++ = '\0';
			continue;
		}
		if (ret->len == WORDS_MAX)
			return false;
		ret->items[ret->len++] = at;
		while (*at != '\0' && *at != ' ')
			at++;
	}
	return true;
}

static bool is_word(const struct words *words, size_t i, const char *word)
{
	return i < words->len && hf_streq(words->items[i], word);
}

static int refuse_text(const char *text, const char *why, struct hf_error *err)
{
	return hf_error_set(err, HF_E_INVALID, "'%.*s': %s", MUST_MAX, text, why);
}

/* ---- must ------------------------------------------------------------------------------------------ */

static int parse_span(const char *text, const struct words *words, struct hf_log_rule_must *ret,
		      struct hf_error *err)
{
	hf_time span;

	if (words->len != 3 || !is_word(words, 1, "within"))
		return refuse_text(text, help, err);
	if (hf_span_parse(words->items[2], &span, err) != 0 || span < HF_SECOND ||
	    span / HF_SECOND > HF_LOG_RULE_SECONDS_MAX)
		return refuse_text(text, "the span must be between 1s and 720h, such as 10m", err);
	ret->kind = is_word(words, 0, "appear") ? HF_LOG_RULE_APPEARS : HF_LOG_RULE_RECURS;
	ret->span_ms = span / HF_MS;
	return 0;
}

/* "for N lines" from word i on. */
static int parse_lines(const char *text, const struct words *words, size_t i,
		       struct hf_log_rule_must *ret, struct hf_error *err)
{
	int64_t lines = 1;

	if (i != words->len && (i + 3 != words->len || !is_word(words, i, "for") ||
				!(is_word(words, i + 2, "lines") || is_word(words, i + 2, "line"))))
		return refuse_text(text, help, err);
	if (i != words->len &&
	    hf_str_to_i64(words->items[i + 1], 1, HF_LOG_RULE_LINES_MAX, &lines, NULL) != 0)
		return refuse_text(text, "the number of lines must be between 1 and 1000000", err);
	ret->lines = (uint32_t)lines;
	return 0;
}

static bool parse_bound(const char *text, struct hf_log_rule_must *ret)
{
	char *end;

	if (strlen(text) >= sizeof(ret->bound))
		return false;
	ret->limit = strtod(text, &end);
	memcpy(ret->bound, text, strlen(text) + 1);
	return *end == '\0' && end != text && isfinite(ret->limit);
}

static int parse_number(const char *text, const struct words *words, struct hf_log_rule_must *ret,
			struct hf_error *err)
{
	if (is_word(words, 1, "finite")) {
		ret->kind = HF_LOG_RULE_FINITE;
		return parse_lines(text, words, 2, ret, err);
	}
	if (words->len < 3 || !(is_word(words, 1, "below") || is_word(words, 1, "above")))
		return refuse_text(text, help, err);
	ret->kind = is_word(words, 1, "below") ? HF_LOG_RULE_BELOW : HF_LOG_RULE_ABOVE;
	if (!parse_bound(words->items[2], ret))
		return refuse_text(
			text, "the bound must be a finite number of at most 31 characters", err);
	return parse_lines(text, words, 3, ret, err);
}

int hf_log_rule_parse_must(const char *text, struct hf_log_rule_must *ret_must,
			   struct hf_error *err)
{
	const char *own = hf_str_or(text, "");
	struct words words;

	*ret_must = (struct hf_log_rule_must){.lines = 1};
	if (!split_words(own, strlen(own), &words))
		return refuse_text(own, help, err);
	if (is_word(&words, 0, "appear") || is_word(&words, 0, "recur"))
		return parse_span(own, &words, ret_must, err);
	return is_word(&words, 0, "be") ? parse_number(own, &words, ret_must, err)
					: refuse_text(own, help, err);
}

/* ---- the other parts ------------------------------------------------------------------------------- */

int hf_log_rule_check_name(const char *name, struct hf_error *err)
{
	size_t len = name != NULL ? strlen(name) : 0;
	bool plain = len > 0 && len < HF_LOG_RULE_NAME_MAX;

	for (size_t i = 0; plain && i < len; i++)
		plain = hf_ascii_is_alnum(name[i]) || strchr("-_.", name[i]) != NULL;
	if (plain)
		return 0;
	return hf_error_set(err, HF_E_INVALID,
			    "the name must have 1 to 63 letters, digits, '-', '_' or '.'");
}

int hf_log_rule_parse_action(const char *text, enum hf_log_rule_action *ret_action,
			     struct hf_error *err)
{
	if (text == NULL || hf_streq(text, "Restart"))
		*ret_action = HF_LOG_RULE_RESTART;
	else if (hf_streq(text, "FailJob"))
		*ret_action = HF_LOG_RULE_FAIL_JOB;
	else if (hf_streq(text, "Event"))
		*ret_action = HF_LOG_RULE_EVENT;
	else
		return hf_error_set(err, HF_E_INVALID,
				    "the action must be Restart, FailJob or Event");
	return 0;
}

int hf_log_rule_compile(const char *pattern, enum hf_log_rule_kind kind,
			struct hf_regex **ret_regex, struct hf_error *err)
{
	size_t len = strlen(pattern);

	if (len > HF_PATTERN_BYTES_MAX)
		return hf_error_set(err, HF_E_INVALID, "it has more than %d characters",
				    HF_PATTERN_BYTES_MAX);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)pattern[i] < 0x20 || pattern[i] == 0x7f)
			return hf_error_set(err, HF_E_INVALID,
					    "it has a control character, at character %zu: write "
					    "\\t or \\x07 instead",
					    i + 1);
	return hf_regex_create(pattern,
			       kind == HF_LOG_RULE_APPEARS || kind == HF_LOG_RULE_RECURS
				       ? HF_REGEX_NEEDS_NOTHING
				       : HF_REGEX_NEEDS_VALUE,
			       ret_regex, err);
}

int hf_log_rule_check_pattern(const char *pattern, enum hf_log_rule_kind kind, struct hf_error *err)
{
	struct hf_regex *regex = NULL;
	int rc = hf_str_is_empty(pattern) ? 0 : hf_log_rule_compile(pattern, kind, &regex, err);

	hf_regex_destroy(regex);
	return rc;
}

/* ---- the whole rule -------------------------------------------------------------------------------- */

/* The first " must " and what follows it up to " or " or the end. */
static int split_head(char *head, struct hf_log_rule_parts *ret, struct hf_error *err)
{
	static const char must[] = " must ", or [] = " or ";
	char *at = strstr(head, must), *action;

	if (at == NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "a rule reads NAME must MUST [or ACTION][: PATTERN], such as "
				    "'steps must recur within 10m or Restart: step \\d+'");
	*at = '\0';
	ret->name = head;
	ret->must = at + strlen(must);
	action = strstr(at + strlen(must), or);
	if (action != NULL) {
		*action = '\0';
		ret->action = action + strlen(or);
	}
	return 0;
}

int hf_log_rule_split(char *text, struct hf_log_rule_parts *ret, struct hf_error *err)
{
	char *colon = strchr(text, ':');

	*ret = (struct hf_log_rule_parts){.pattern = ""};
	if (colon != NULL) {
		ret->pattern = colon + 1 + (colon[1] == ' ');
		*colon = '\0';
	}
	return split_head(text, ret, err);
}
