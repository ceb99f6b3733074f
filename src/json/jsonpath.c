/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Compiles a jsonpath template. Input: the text; output: a list of parts and steps in an arena,
 * which jsonpath_eval.c evaluates.
 *
 * It is a recursive descent over the template. kubectl's parser cuts pieces out of the text with
 * regular expressions and parses them again; so it takes a ']' in a quoted key for the end of the
 * key. Otherwise the language is the same.
 *
 * Invariant: text length, number of nodes and depth are limited (jsonpath.h).
 */
#include "json/jsonpath.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "json/jsonpath_internal.h"

#include <stdlib.h>
#include <string.h>

/* Larger than any list; the sum of two indexes is far from an overflow. */
#define INDEX_MAX 1000000000

struct compiler {
	struct hf_jsonpath *path;
	const char *text, *p;
	int nodes, depth;
	bool in_filter;
	struct hf_error *err;
};

static int parse_steps(struct compiler *c, struct hf_jsonpath_step **ret_steps);
static int parse_parts(struct compiler *c, bool in_range, struct hf_jsonpath_part **ret_parts);

static int report_error(const struct compiler *c, int code, const char *why)
{
	return hf_error_set(c->err, code, "jsonpath, character %zu: %s",
			    (size_t)(c->p - c->text) + 1, why);
}

static int count_node(struct compiler *c)
{
	if (++c->nodes > HF_JSONPATH_NODES_MAX)
		return report_error(c, HF_E_INVALID, "too many parts");
	return 0;
}

static struct hf_jsonpath_step *new_step(struct compiler *c, enum hf_jsonpath_step_kind kind)
{
	struct hf_jsonpath_step *step = HF_ARENA_NEW(c->path->arena, struct hf_jsonpath_step);

	step->kind = kind;
	return step;
}

static struct hf_jsonpath_step *new_literal(struct compiler *c, struct hf_json *value)
{
	struct hf_jsonpath_step *step = new_step(c, HF_JSONPATH_LITERAL);

	step->literal = value;
	step->literal_older = c->path->literals;
	c->path->literals = step;
	return step;
}

static bool is_letter(char ch)
{
	return hf_ascii_is_letter(ch) || ch == '_';
}

/* True for a character that ends a name. Inside a filter, operators end a name too. */
static bool is_name_end(const struct compiler *c, char ch)
{
	return ch == '\0' || strchr(" \t\r\n.,[]$@{}", ch) ||
	       (c->in_filter && strchr("!<>=()&|", ch));
}

static void skip_blanks(struct compiler *c)
{
	while (*c->p == ' ' || *c->p == '\t')
		c->p++;
}

/* Parses a key after a dot. A backslash makes the next character literal. */
static int parse_field(struct compiler *c, struct hf_jsonpath_step **ret_step)
{
	HF_AUTO_STRBUF name = HF_STRBUF_INIT(HF_JSONPATH_TEXT_MAX);
	bool plain = true;

	if (*c->p == '.')
		return report_error(c, HF_E_UNSUPPORTED, "recursive descent (..) is not supported");
	while (!is_name_end(c, *c->p)) {
		if (*c->p == '\\' && c->p[1] != '\0') {
			c->p++;
			plain = false;
		}
		hf_strbuf_addch(&name, *c->p++);
	}
	/* A dot without a name is the value itself. */
	*ret_step = NULL;
	if (name.len == 0)
		return 0;
	bool all = plain && strcmp(name.data, "*") == 0;
	*ret_step = new_step(c, all ? HF_JSONPATH_WILDCARD : HF_JSONPATH_FIELD);
	(*ret_step)->name = hf_arena_strdup(c->path->arena, name.data);
	return 0;
}

/* Parses the four digits after "\u". Surrogates are refused; users write such characters
 * directly. */
static int parse_unicode(struct compiler *c, struct hf_strbuf *text)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		int digit = hf_ascii_hex_value(*c->p);
		if (digit < 0)
			return report_error(c, HF_E_INVALID, "\\u needs four hexadecimal digits");
		value = value << 4 | digit;
		c->p++;
	}
	if (value == 0 || (value >= 0xd800 && value <= 0xdfff))
		return report_error(c, HF_E_INVALID, "\\u does not name a character");
	if (value >= 0x800) {
		hf_strbuf_addch(text, (char)(0xe0 | value >> 12));
		hf_strbuf_addch(text, (char)(0x80 | (value >> 6 & 0x3f)));
		hf_strbuf_addch(text, (char)(0x80 | (value & 0x3f)));
	} else if (value >= 0x80) {
		hf_strbuf_addch(text, (char)(0xc0 | value >> 6));
		hf_strbuf_addch(text, (char)(0x80 | (value & 0x3f)));
	} else {
		hf_strbuf_addch(text, (char)value);
	}
	return 0;
}

/* Parses a text in single or double quotes, with Go's escapes. */
static int parse_quoted(struct compiler *c, struct hf_strbuf *text)
{
	static const char from[] = "\\'\"ntrabfv", to[] = "\\'\"\n\t\r\a\b\f\v";
	const char quote = *c->p++;

	while (*c->p != quote) {
		if (*c->p == '\0' || *c->p == '\n')
			return report_error(c, HF_E_INVALID,
					    "a quoted text without its closing quote");
		if (*c->p != '\\') {
			hf_strbuf_addch(text, *c->p++);
			continue;
		}
		char ch = *++c->p;
		const char *at = ch ? strchr(from, ch) : NULL;
		if (ch == 'u') {
			c->p++;
			int rc = parse_unicode(c, text);
			if (rc != 0)
				return rc;
			continue;
		}
		if (!at)
			return report_error(c, HF_E_UNSUPPORTED, "an escape that is not supported");
		hf_strbuf_addch(text, to[at - from]);
		c->p++;
	}
	c->p++;
	return 0;
}

static int parse_text_literal(struct compiler *c, struct hf_jsonpath_step **ret_step)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_JSONPATH_TEXT_MAX);
	int rc = parse_quoted(c, &text);

	if (rc == 0)
		*ret_step = new_literal(c, hf_json_stringn(text.data, text.len));
	return rc;
}

static int parse_number(struct compiler *c, struct hf_jsonpath_step **ret_step)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(64);
	int64_t i;
	char *end;

	if (*c->p == '+')
		c->p++;
	else if (*c->p == '-')
		hf_strbuf_addch(&text, *c->p++);
	while (hf_ascii_is_digit(*c->p) || *c->p == '.')
		hf_strbuf_addch(&text, *c->p++);
	if (hf_str_to_i64(text.data, INT64_MIN, INT64_MAX, &i, NULL) == 0) {
		*ret_step = new_literal(c, hf_json_int(i));
		return 0;
	}
	double d = strtod(text.data, &end);
	if (text.full || *end != '\0' || end == text.data || !__builtin_isfinite(d))
		return report_error(c, HF_E_INVALID, "not a number");
	*ret_step = new_literal(c, hf_json_real(d));
	return 0;
}

/* Parses an optional index; false if the number is out of range. */
static bool parse_index(struct compiler *c, bool *ret_given, int64_t *ret_index)
{
	char *end;

	*ret_given = *c->p == '-' || hf_ascii_is_digit(*c->p);
	if (!*ret_given)
		return true;
	long long index = strtoll(c->p, &end, 10);
	if (end == c->p || index > INDEX_MAX || index < -INDEX_MAX)
		return false;
	c->p = end;
	*ret_index = index;
	return true;
}

/* Parses [2], [-1], [1:3], [:2] or [*], after the opening bracket. */
static int parse_slice(struct compiler *c, struct hf_jsonpath_step **ret_step)
{
	struct hf_jsonpath_step *step = new_step(c, HF_JSONPATH_SLICE);

	*ret_step = step;
	if (*c->p == '*') {
		c->p++;
	} else {
		if (!parse_index(c, &step->has_start, &step->start))
			return report_error(c, HF_E_INVALID, "not an index");
		if (*c->p == ':') {
			c->p++;
			if (!parse_index(c, &step->has_end, &step->end))
				return report_error(c, HF_E_INVALID, "not an index");
			if (*c->p == ':')
				return report_error(c, HF_E_UNSUPPORTED,
						    "a slice with a step is not supported");
		} else if (step->has_start) {
			step->single = true;
		} else {
			return report_error(c, HF_E_INVALID,
					    "an index, a slice, * or a quoted key is expected");
		}
	}
	skip_blanks(c);
	if (*c->p == ',')
		return report_error(c, HF_E_UNSUPPORTED, "a union ([a,b]) is not supported");
	if (*c->p != ']')
		return report_error(c, HF_E_INVALID, "']' is expected");
	c->p++;
	return 0;
}

/* Parses ['key']. kubectl accepts a\.b for a key with a dot here, so a backslash is dropped. */
static int parse_key(struct compiler *c, struct hf_jsonpath_step **ret_step)
{
	HF_AUTO_STRBUF name = HF_STRBUF_INIT(HF_JSONPATH_TEXT_MAX);
	const char quote = *c->p++;

	for (; *c->p != quote; c->p++) {
		if (*c->p == '\\' && c->p[1] != '\0')
			c->p++;
		if (*c->p == '\0')
			return report_error(c, HF_E_INVALID,
					    "a quoted key without its closing quote");
		hf_strbuf_addch(&name, *c->p);
	}
	c->p++;
	skip_blanks(c);
	if (*c->p == ',')
		return report_error(c, HF_E_UNSUPPORTED, "a union ([a,b]) is not supported");
	if (*c->p != ']')
		return report_error(c, HF_E_INVALID, "']' is expected");
	c->p++;
	*ret_step = new_step(c, HF_JSONPATH_FIELD);
	(*ret_step)->name = hf_arena_strdup(c->path->arena, name.data);
	return 0;
}

static int parse_operator(struct compiler *c, enum hf_jsonpath_op *ret_op)
{
	static const struct {
		const char *text;
		enum hf_jsonpath_op op;
	} ops[] = {
		{"==", HF_JSONPATH_EQ}, {"!=", HF_JSONPATH_NE}, {"<=", HF_JSONPATH_LE},
		{">=", HF_JSONPATH_GE}, {"<", HF_JSONPATH_LT},  {">", HF_JSONPATH_GT},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(ops); i++) {
		size_t len = strlen(ops[i].text);
		if (strncmp(c->p, ops[i].text, len) != 0)
			continue;
		c->p += len;
		*ret_op = ops[i].op;
		return 0;
	}
	return report_error(c, HF_E_UNSUPPORTED,
			    "an operator other than == != < <= > >= is not supported");
}

/* Parses a filter from after "[?(" to the end of ")]". */
static int parse_filter_inside(struct compiler *c, struct hf_jsonpath_step *step)
{
	int rc = parse_steps(c, &step->left);

	if (rc != 0)
		return rc;
	if (*c->p != ')') {
		if (strchr("&|", *c->p))
			return report_error(c, HF_E_UNSUPPORTED, "&& and || are not supported");
		rc = parse_operator(c, &step->op);
		if (rc == 0)
			rc = parse_steps(c, &step->right);
		if (rc != 0)
			return rc;
		if (!step->right)
			return report_error(c, HF_E_INVALID, "nothing to compare with");
	}
	if (*c->p && strchr("&|", *c->p))
		return report_error(c, HF_E_UNSUPPORTED, "&& and || are not supported");
	if (c->p[0] != ')' || c->p[1] != ']')
		return report_error(c, HF_E_INVALID, "')]' is expected");
	c->p += 2;
	return 0;
}

static int parse_filter(struct compiler *c, struct hf_jsonpath_step **ret_step)
{
	bool outer = c->in_filter;

	if (c->p[1] != '(')
		return report_error(c, HF_E_INVALID, "'(' is expected");
	if (c->depth >= HF_JSONPATH_DEPTH_MAX)
		return report_error(c, HF_E_INVALID, "nested too deeply");
	c->p += 2;
	c->depth++;
	c->in_filter = true;
	*ret_step = new_step(c, HF_JSONPATH_FILTER);
	int rc = parse_filter_inside(c, *ret_step);
	c->in_filter = outer;
	c->depth--;
	return rc;
}

static int parse_word(struct compiler *c, struct hf_jsonpath_step **ret_step)
{
	const char *start = c->p;

	while (!is_name_end(c, *c->p))
		c->p++;
	size_t len = (size_t)(c->p - start);
	bool is_true = len == 4 && strncmp(start, "true", 4) == 0;
	if (is_true || (len == 5 && strncmp(start, "false", 5) == 0)) {
		*ret_step = new_literal(c, hf_json_bool(is_true));
		return 0;
	}
	c->p = start;
	return report_error(c, HF_E_INVALID, "an unknown word; a key begins with a dot");
}

/* Parses one step at c->p, which is not at the end of the expression. *ret_step is NULL if the
 * step has no effect. */
static int parse_step(struct compiler *c, struct hf_jsonpath_step **ret_step)
{
	*ret_step = NULL;
	switch (*c->p) {
	case '@':
	case '$': c->p++; return 0;
	case '.': c->p++; return parse_field(c, ret_step);
	case '"':
	case '\'': return parse_text_literal(c, ret_step);
	case '[':
		c->p++;
		skip_blanks(c);
		if (*c->p == '?')
			return parse_filter(c, ret_step);
		if (*c->p == '\'' || *c->p == '"')
			return parse_key(c, ret_step);
		return parse_slice(c, ret_step);
	}
	if (*c->p == '+' || *c->p == '-' || hf_ascii_is_digit(*c->p))
		return parse_number(c, ret_step);
	if (is_letter(*c->p))
		return parse_word(c, ret_step);
	return report_error(c, HF_E_INVALID, "an unexpected character");
}

/* Parses steps up to the end of the expression: '}', or inside a filter an operator or ')'. */
static int parse_steps(struct compiler *c, struct hf_jsonpath_step **ret_steps)
{
	struct hf_jsonpath_step **tail = ret_steps, *step;

	*ret_steps = NULL;
	for (skip_blanks(c); !(c->in_filter ? strchr("!<>=)&|", *c->p) != NULL : *c->p == '}');
	     skip_blanks(c)) {
		if (*c->p == '\0' || *c->p == '\n' || *c->p == '\r')
			return report_error(c, HF_E_INVALID, "'}' is expected");
		int rc = count_node(c);
		if (rc == 0)
			rc = parse_step(c, &step);
		if (rc != 0)
			return rc;
		if (step) {
			*tail = step;
			tail = &step->next;
		}
	}
	if (*c->p == '\0')
		return report_error(c, HF_E_INVALID, "')' is expected");
	return 0;
}

static struct hf_jsonpath_part *new_part(struct compiler *c, enum hf_jsonpath_part_kind kind)
{
	struct hf_jsonpath_part *part = HF_ARENA_NEW(c->path->arena, struct hf_jsonpath_part);

	part->kind = kind;
	return part;
}

static bool is_at_word(struct compiler *c, const char *word)
{
	size_t len = strlen(word);

	return strncmp(c->p, word, len) == 0 && is_name_end(c, c->p[len]);
}

/* Parses an action after '{'. *ret_part stays NULL for {end}. */
static int parse_action(struct compiler *c, bool in_range, struct hf_jsonpath_part **ret_part)
{
	skip_blanks(c);
	if (is_at_word(c, "end")) {
		if (!in_range)
			return report_error(c, HF_E_INVALID, "{end} without {range}");
		c->p += 3;
		skip_blanks(c);
		if (*c->p != '}')
			return report_error(c, HF_E_INVALID, "'}' is expected");
		c->p++;
		return 0;
	}
	bool is_range = is_at_word(c, "range");
	if (is_range)
		c->p += 5;
	struct hf_jsonpath_part *part =
		new_part(c, is_range ? HF_JSONPATH_RANGE : HF_JSONPATH_EXPR);
	int rc = parse_steps(c, &part->steps);
	if (rc != 0)
		return rc;
	c->p++;
	if (is_range) {
		if (c->depth >= HF_JSONPATH_DEPTH_MAX)
			return report_error(c, HF_E_INVALID, "nested too deeply");
		c->depth++;
		rc = parse_parts(c, true, &part->body);
		c->depth--;
	}
	*ret_part = part;
	return rc;
}

static int parse_parts(struct compiler *c, bool in_range, struct hf_jsonpath_part **ret_parts)
{
	struct hf_jsonpath_part **tail = ret_parts;

	*ret_parts = NULL;
	while (*c->p) {
		struct hf_jsonpath_part *part = NULL;
		int rc = count_node(c);
		if (rc != 0)
			return rc;
		if (*c->p == '{') {
			c->p++;
			rc = parse_action(c, in_range, &part);
			if (rc != 0)
				return rc;
			if (!part)
				return 0;
		} else {
			size_t len = strcspn(c->p, "{");
			part = new_part(c, HF_JSONPATH_TEXT);
			part->text = hf_arena_strndup(c->path->arena, c->p, len);
			c->p += len;
		}
		*tail = part;
		tail = &part->next;
	}
	return in_range ? report_error(c, HF_E_INVALID, "{range} without {end}") : 0;
}

int hf_jsonpath_compile(const char *text, struct hf_jsonpath **ret_path, struct hf_error *err)
{
	struct compiler c = {.text = text, .p = text, .err = err};
	size_t len = strlen(text);

	if (len > HF_JSONPATH_TEXT_MAX)
		return hf_error_set(err, HF_E_INVALID, "jsonpath: longer than %d characters",
				    HF_JSONPATH_TEXT_MAX);
	c.path = hf_xcalloc(1, sizeof(*c.path));
	/* Enough for the maximum number of nodes, all texts in them, and alignment. */
	c.path->arena = hf_arena_create(
		(size_t)HF_JSONPATH_NODES_MAX *
			(sizeof(struct hf_jsonpath_step) + sizeof(struct hf_jsonpath_part) + 64) +
		2 * HF_JSONPATH_TEXT_MAX + 4096);
	int rc = parse_parts(&c, false, &c.path->parts);
	if (rc != 0) {
		hf_jsonpath_destroy(c.path);
		return rc;
	}
	*ret_path = c.path;
	return 0;
}

int hf_jsonpath_compile_relaxed(const char *text, struct hf_jsonpath **ret_path,
				struct hf_error *err)
{
	HF_AUTO_STRBUF full = HF_STRBUF_INIT(HF_JSONPATH_TEXT_MAX);
	HF_AUTO_JSONPATH path = NULL;
	size_t len = strlen(text);
	bool braces = len >= 2 && text[0] == '{' && text[len - 1] == '}';

	text += braces;
	len -= braces ? 2 : 0;
	bool dot = len > 0 && strchr(".[@$", text[0]);
	hf_strbuf_addstr(&full, dot ? "{" : "{.");
	hf_strbuf_add(&full, text, len);
	hf_strbuf_addch(&full, '}');
	if (full.full)
		return hf_error_set(err, HF_E_INVALID, "jsonpath: longer than %d characters",
				    HF_JSONPATH_TEXT_MAX);
	int rc = hf_jsonpath_compile(full.data, &path, err);
	if (rc != 0)
		return rc;
	if (len == 0 || path->parts->next || path->parts->kind != HF_JSONPATH_EXPR)
		return hf_error_set(err, HF_E_INVALID, "jsonpath: one expression is expected");
	*ret_path = hf_steal(&path);
	return 0;
}

struct hf_jsonpath *hf_jsonpath_destroy(struct hf_jsonpath *path)
{
	if (path) {
		for (struct hf_jsonpath_step *s = path->literals; s; s = s->literal_older)
			hf_json_unref(s->literal);
		hf_arena_destroy(path->arena);
		free(path);
	}
	return NULL;
}

void hf_jsonpath_cleanup(struct hf_jsonpath **path)
{
	*path = hf_jsonpath_destroy(*path);
}
