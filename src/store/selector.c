/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Label and field selectors: parsing as an API server does it, and matching.
 *
 * Input: the text of a selector, or a LabelSelector object. Output: an immutable list of
 * requirements that all must hold. Matching allocates nothing.
 */
#include "store/selector.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum op { OP_EQ, OP_NE, OP_IN, OP_NOT_IN, OP_EXISTS, OP_ABSENT, OP_GT, OP_LT };

struct requirement {
	char *key; /* a label key, or a field path with a NUL in place of each dot */
	size_t n_segments;
	enum op op;
	char **values;
	size_t n_values;
	int64_t bound; /* for OP_GT and OP_LT */
};

struct hf_selector {
	HF_VEC(struct requirement) requirements;
	size_t n_values; /* sum over all requirements */
};

static struct hf_selector *new_selector(void)
{
	struct hf_selector *selector = hf_xcalloc(1, sizeof(*selector));

	selector->requirements.len_max = HF_SELECTOR_REQUIREMENTS_MAX;
	return selector;
}

static void release_requirement(struct requirement *r)
{
	for (size_t i = 0; i < r->n_values; i++)
		free(r->values[i]);
	free(r->values);
	free(r->key);
}

struct hf_selector *hf_selector_destroy(struct hf_selector *selector)
{
	if (selector) {
		for (size_t i = 0; i < selector->requirements.len; i++)
			release_requirement(&selector->requirements.items[i]);
		HF_VEC_RELEASE(&selector->requirements);
		free(selector);
	}
	return NULL;
}

static int add_value(struct hf_selector *selector, struct requirement *r, const char *value,
		     size_t len, struct hf_error *err)
{
	if (++selector->n_values > HF_SELECTOR_VALUES_MAX)
		return hf_error_set(err, HF_E_BAD_REQUEST, "a selector may have at most %d values",
				    HF_SELECTOR_VALUES_MAX);
	r->values = hf_xrealloc(r->values, (r->n_values + 1) * sizeof(*r->values));
	r->values[r->n_values++] = hf_xstrndup(value, len);
	return 0;
}

/* Adds *r to the selector, which takes over its memory. On failure the memory of r is freed. */
static int add_requirement(struct hf_selector *selector, struct requirement *r,
			   struct hf_error *err)
{
	if (HF_VEC_PUSH(&selector->requirements, *r))
		return 0;
	release_requirement(r);
	return hf_error_set(err, HF_E_BAD_REQUEST, "a selector may have at most %d requirements",
			    HF_SELECTOR_REQUIREMENTS_MAX);
}

static int check_size(const char *text, struct hf_error *err)
{
	if (strlen(text) > HF_SELECTOR_BYTES_MAX)
		return hf_error_set(err, HF_E_BAD_REQUEST, "a selector may have at most %d bytes",
				    HF_SELECTOR_BYTES_MAX);
	return 0;
}

/* --- label selectors --- */

enum token_type { T_END, T_WORD, T_COMMA, T_OPEN, T_CLOSE, T_NOT, T_EQ, T_NE, T_GT, T_LT };

struct token {
	enum token_type type;
	const char *start;
	size_t len;
};

struct lexer {
	const char *text, *at;
	struct token token; /* the token at the cursor */
};

static void read_token(struct lexer *lx)
{
	lx->at += strspn(lx->at, " \t\r\n");
	struct token t = {.start = lx->at, .len = 1};

	switch (*lx->at) {
	case '\0':
		t.type = T_END;
		t.len = 0;
		break;
	case ',': t.type = T_COMMA; break;
	case '(': t.type = T_OPEN; break;
	case ')': t.type = T_CLOSE; break;
	case '>': t.type = T_GT; break;
	case '<': t.type = T_LT; break;
	case '=':
		t.type = T_EQ;
		t.len = lx->at[1] == '=' ? 2 : 1;
		break;
	case '!':
		t.type = lx->at[1] == '=' ? T_NE : T_NOT;
		t.len = lx->at[1] == '=' ? 2 : 1;
		break;
	default: t.type = T_WORD; t.len = strcspn(lx->at, " \t\r\n,()=!<>");
	}
	lx->at += t.len;
	lx->token = t;
}

static int report_token(const struct lexer *lx, struct hf_error *err, const char *wanted)
{
	if (lx->token.type == T_END)
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "unable to parse requirement: found the end, expected: %s",
				    wanted);
	return hf_error_set(err, HF_E_BAD_REQUEST,
			    "unable to parse requirement: found '%.*s' at position %zu, "
			    "expected: %s",
			    (int)lx->token.len, lx->token.start,
			    (size_t)(lx->token.start - lx->text), wanted);
}

static bool is_word(const struct token *t, const char *word)
{
	return t->type == T_WORD && t->len == strlen(word) && memcmp(t->start, word, t->len) == 0;
}

static int check_label_value(const char *value, struct hf_error *err)
{
	const char *problem = hf_label_value_problem(value);

	if (problem)
		return hf_error_set(
			err, HF_E_BAD_REQUEST,
			"unable to parse requirement: values: Invalid value: \"%s\": %s", value,
			problem);
	return 0;
}

/* Parses "(x, y)". An empty item between commas is the value "". */
static int parse_set(struct hf_selector *selector, struct lexer *lx, struct requirement *r,
		     struct hf_error *err)
{
	if (lx->token.type != T_OPEN)
		return report_token(lx, err, "'('");
	for (;;) {
		read_token(lx);
		const char *start = "";
		size_t len = 0;
		if (lx->token.type == T_WORD) {
			start = lx->token.start;
			len = lx->token.len;
			read_token(lx);
		}
		if (lx->token.type != T_COMMA && lx->token.type != T_CLOSE)
			return report_token(lx, err, "',' or ')'");
		int rc = add_value(selector, r, start, len, err);
		if (rc == 0)
			rc = check_label_value(r->values[r->n_values - 1], err);
		if (rc)
			return rc;
		if (lx->token.type == T_CLOSE)
			break;
	}
	read_token(lx);
	return 0;
}

static int parse_exact(struct hf_selector *selector, struct lexer *lx, struct requirement *r,
		       struct hf_error *err)
{
	const char *start = "";
	size_t len = 0;

	read_token(lx);
	if (lx->token.type == T_WORD) {
		start = lx->token.start;
		len = lx->token.len;
		read_token(lx);
	}
	int rc = add_value(selector, r, start, len, err);
	if (rc)
		return rc;
	if (r->op == OP_GT || r->op == OP_LT)
		return hf_str_to_i64(r->values[0], INT64_MIN, INT64_MAX, &r->bound, NULL) == 0
			       ? 0
			       : hf_error_set(err, HF_E_BAD_REQUEST,
					      "unable to parse requirement: for 'Gt', 'Lt' "
					      "operators, the value must be an integer");
	return check_label_value(r->values[0], err);
}

static int parse_operator(struct hf_selector *selector, struct lexer *lx, struct requirement *r,
			  struct hf_error *err)
{
	switch (lx->token.type) {
	case T_END:
	case T_COMMA: r->op = OP_EXISTS; return 0;
	case T_EQ: r->op = OP_EQ; return parse_exact(selector, lx, r, err);
	case T_NE: r->op = OP_NE; return parse_exact(selector, lx, r, err);
	case T_GT: r->op = OP_GT; return parse_exact(selector, lx, r, err);
	case T_LT: r->op = OP_LT; return parse_exact(selector, lx, r, err);
	default: break;
	}
	if (is_word(&lx->token, "in"))
		r->op = OP_IN;
	else if (is_word(&lx->token, "notin"))
		r->op = OP_NOT_IN;
	else
		return report_token(lx, err, "one of '=', '!=', 'in', 'notin', '>', '<', ','");
	read_token(lx);
	return parse_set(selector, lx, r, err);
}

static int parse_requirement(struct hf_selector *selector, struct lexer *lx, struct requirement *r,
			     struct hf_error *err)
{
	bool negated = lx->token.type == T_NOT;

	if (negated)
		read_token(lx);
	if (lx->token.type != T_WORD)
		return report_token(lx, err, "a label key");
	r->key = hf_xstrndup(lx->token.start, lx->token.len);
	const char *problem = hf_qualified_name_problem(r->key);
	if (problem)
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "unable to parse requirement: key: Invalid value: \"%s\": %s",
				    r->key, problem);
	read_token(lx);
	if (negated) {
		r->op = OP_ABSENT;
		return 0;
	}
	return parse_operator(selector, lx, r, err);
}

static int parse_labels(struct hf_selector *selector, const char *text, struct hf_error *err)
{
	struct lexer lx = {.text = text, .at = text};

	read_token(&lx);
	for (;;) {
		struct requirement r = {0};
		int rc = parse_requirement(selector, &lx, &r, err);
		if (rc) {
			release_requirement(&r);
			return rc;
		}
		rc = add_requirement(selector, &r, err);
		if (rc)
			return rc;
		if (lx.token.type == T_END)
			return 0;
		if (lx.token.type != T_COMMA)
			return report_token(&lx, err, "',' or the end");
		read_token(&lx);
	}
}

int hf_selector_parse_labels(const char *text, struct hf_selector **ret_selector,
			     struct hf_error *err)
{
	if (hf_str_is_empty(text) || text[strspn(text, " \t\r\n")] == '\0') {
		*ret_selector = NULL;
		return 0;
	}
	int rc = check_size(text, err);
	if (rc)
		return rc;

	struct hf_selector *selector = new_selector();
	rc = parse_labels(selector, text, err);
	if (rc) {
		hf_selector_destroy(selector);
		return rc;
	}
	*ret_selector = selector;
	return 0;
}

/* --- field selectors --- */

/* The length of text up to the first unescaped character of `stops`. */
static size_t span_unescaped(const char *text, const char *stops)
{
	size_t i = 0;

	while (text[i] && !strchr(stops, text[i])) {
		if (text[i] == '\\' && text[i + 1])
			i++;
		i++;
	}
	return i;
}

static int unescape_value(const char *text, size_t len, char **ret_value, struct hf_error *err)
{
	char *out = hf_xmalloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\\') {
			i++;
			if (i == len || !strchr("\\,=", text[i])) {
				free(out);
				return hf_error_set(err, HF_E_BAD_REQUEST,
						    "invalid field selector: invalid escape "
						    "sequence in '%.*s'",
						    (int)len, text);
			}
		}
		out[n++] = text[i];
	}
	out[n] = '\0';
	*ret_value = out;
	return 0;
}

static bool is_known_field(const char *path, const char *const *known)
{
	if (!known || hf_streq(path, "metadata.name") || hf_streq(path, "metadata.namespace"))
		return true;
	for (; *known; known++)
		if (hf_streq(*known, path))
			return true;
	return false;
}

/* Replaces "a.b.c" by "a\0b\0c", so that matching needs no copy of the segments. */
static void split_path(struct requirement *r)
{
	r->n_segments = 1;
	for (char *c = r->key; *c; c++)
		if (*c == '.') {
			*c = '\0';
			r->n_segments++;
		}
}

static int parse_field(struct hf_selector *selector, const char *term, size_t len,
		       const char *const *known, struct requirement *r, struct hf_error *err)
{
	size_t key_len = span_unescaped(term, "=!,");

	if (key_len >= len || (term[key_len] == '!' && term[key_len + 1] != '='))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "invalid field selector: '%.*s': can't understand", (int)len,
				    term);
	size_t at = key_len + 1;
	r->op = OP_EQ;
	if (term[key_len] == '!') {
		r->op = OP_NE;
		at++;
	} else if (term[at] == '=') {
		at++;
	}
	r->key = hf_xstrndup(term, key_len);
	if (!is_known_field(r->key, known))
		return hf_error_set(err, HF_E_BAD_REQUEST, "field label not supported: %s", r->key);
	split_path(r);

	char *value = NULL;
	int rc = unescape_value(term + at, len - at, &value, err);
	if (rc == 0)
		rc = add_value(selector, r, value, strlen(value), err);
	free(value);
	return rc;
}

int hf_selector_parse_fields(const char *text, const char *const *known,
			     struct hf_selector **ret_selector, struct hf_error *err)
{
	if (hf_str_is_empty(text)) {
		*ret_selector = NULL;
		return 0;
	}
	int rc = check_size(text, err);
	if (rc)
		return rc;

	struct hf_selector *selector = new_selector();
	while (*text) {
		size_t len = span_unescaped(text, ",");
		struct requirement r = {0};
		if (len > 0) {
			rc = parse_field(selector, text, len, known, &r, err);
			if (rc)
				release_requirement(&r);
			else
				rc = add_requirement(selector, &r, err);
		}
		if (rc) {
			hf_selector_destroy(selector);
			return rc;
		}
		text += len + (text[len] == ',');
	}
	if (selector->requirements.len == 0)
		selector = hf_selector_destroy(selector);
	*ret_selector = selector;
	return 0;
}

/* --- LabelSelector objects --- */

/* Refuses a key or value that no label can have; such a selector is certainly a mistake. value
 * may be NULL. */
static int check_label(const char *key, const char *value, struct hf_error *err)
{
	const char *problem = hf_qualified_name_problem(key);

	if (problem)
		return hf_error_set(err, HF_E_BAD_REQUEST, "key \"%s\": %s", key, problem);
	problem = value ? hf_label_value_problem(value) : NULL;
	return problem ? hf_error_set(err, HF_E_BAD_REQUEST, "value \"%s\" of \"%s\": %s", value,
				      key, problem)
		       : 0;
}

static int read_expression(struct hf_selector *selector, const struct hf_json *expression,
			   struct requirement *r, struct hf_error *err)
{
	static const struct {
		const char *name;
		enum op op;
	} ops[] = {{"In", OP_IN},
		   {"NotIn", OP_NOT_IN},
		   {"Exists", OP_EXISTS},
		   {"DoesNotExist", OP_ABSENT}};
	const char *key = hf_json_path_str(expression, "key", NULL);
	const char *name = hf_json_path_str(expression, "operator", NULL);
	const struct hf_json *values = hf_json_get(expression, "values");
	size_t i = 0;

	while (i < HF_ARRAY_LEN(ops) && !hf_streq(ops[i].name, name))
		i++;
	if (!key || i == HF_ARRAY_LEN(ops))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "matchExpressions: '%s' is not a label selector operator",
				    hf_str_or(name, ""));
	r->key = hf_xstrdup(key);
	r->op = ops[i].op;
	int rc = check_label(key, NULL, err);
	for (size_t v = 0; rc == 0 && v < hf_json_len(values); v++) {
		const char *value = hf_json_str(hf_json_item(values, v), "");

		rc = check_label(key, value, err);
		if (rc == 0)
			rc = add_value(selector, r, value, strlen(value), err);
	}
	if (rc)
		return rc;
	bool set = r->op == OP_IN || r->op == OP_NOT_IN;
	if (set != (r->n_values > 0))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "matchExpressions: values must be given for 'In' and 'NotIn' "
				    "and for no other operator");
	return 0;
}

static int read_label_selector(struct hf_selector *selector, const struct hf_json *json,
			       struct hf_error *err)
{
	const struct hf_json *labels = hf_json_get(json, "matchLabels");
	const struct hf_json *expressions = hf_json_get(json, "matchExpressions");
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(labels, it, &key, &value));) {
		const char *text = hf_json_str(value, "");
		struct requirement r = {.key = hf_xstrdup(key), .op = OP_EQ};
		int rc = check_label(key, text, err);

		if (rc == 0)
			rc = add_value(selector, &r, text, strlen(text), err);
		if (rc)
			release_requirement(&r);
		else
			rc = add_requirement(selector, &r, err);
		if (rc)
			return rc;
	}
	for (size_t i = 0; i < hf_json_len(expressions); i++) {
		struct requirement r = {0};
		int rc = read_expression(selector, hf_json_item(expressions, i), &r, err);
		if (rc)
			release_requirement(&r);
		else
			rc = add_requirement(selector, &r, err);
		if (rc)
			return rc;
	}
	return 0;
}

int hf_selector_from_json(const struct hf_json *json, struct hf_selector **ret_selector,
			  struct hf_error *err)
{
	struct hf_selector *selector = new_selector();
	int rc = read_label_selector(selector, json, err);

	if (rc) {
		hf_selector_destroy(selector);
		return rc;
	}
	if (selector->requirements.len == 0)
		selector = hf_selector_destroy(selector);
	*ret_selector = selector;
	return 0;
}

/* --- matching --- */

static bool has_value(const struct requirement *r, const char *text)
{
	for (size_t i = 0; i < r->n_values; i++)
		if (hf_streq(r->values[i], text))
			return true;
	return false;
}

/* True if the label or field has a value that satisfies r. text is NULL if the label is absent. */
static bool satisfies_requirement(const struct requirement *r, const char *text)
{
	int64_t number;

	switch (r->op) {
	case OP_EQ:
	case OP_IN: return text && has_value(r, text);
	case OP_NE:
	case OP_NOT_IN: return !text || !has_value(r, text);
	case OP_EXISTS: return text != NULL;
	case OP_ABSENT: return text == NULL;
	case OP_GT:
	case OP_LT:
		if (!text || hf_str_to_i64(text, INT64_MIN, INT64_MAX, &number, NULL))
			return false;
		return r->op == OP_GT ? number > r->bound : number < r->bound;
	}
	return false;
}

bool hf_selector_match_labels(const struct hf_selector *selector, const struct hf_json *labels)
{
	if (!selector)
		return true;
	for (size_t i = 0; i < selector->requirements.len; i++) {
		const struct requirement *r = &selector->requirements.items[i];
		if (!satisfies_requirement(r, hf_json_str(hf_json_get(labels, r->key), NULL)))
			return false;
	}
	return true;
}

/* The text of a field that has no string, bool or integer at its path (pkg/apis/core/v1). Absent
 * flags are "false", and an event's "source" is its component. */
static const char *default_field_text(const struct requirement *r, const struct hf_json *object)
{
	const char *last = r->key;

	for (size_t i = 1; i < r->n_segments; i++)
		last += strlen(last) + 1;
	if (hf_streq(last, "unschedulable") || hf_streq(last, "hostNetwork"))
		return "false";
	if (r->n_segments == 1 && hf_streq(last, "source")) {
		const char *component = hf_json_path_str(object, "source", "component", NULL);
		if (hf_str_is_empty(component))
			component = hf_json_path_str(object, "reportingComponent", NULL);
		return hf_str_or(component, "");
	}
	return "";
}

static const char *field_text(const struct requirement *r, const struct hf_json *object,
			      char buf[32])
{
	const struct hf_json *value = object;
	const char *segment = r->key;

	for (size_t i = 0; i < r->n_segments; i++) {
		value = hf_json_get(value, segment);
		segment += strlen(segment) + 1;
	}
	switch (hf_json_type(value)) {
	case HF_JSON_STRING: return hf_json_str(value, "");
	case HF_JSON_BOOL: return hf_json_true(value, false) ? "true" : "false";
	case HF_JSON_INT: snprintf(buf, 32, "%lld", (long long)hf_json_i64(value, 0)); return buf;
	default: return default_field_text(r, object);
	}
}

bool hf_selector_match_fields(const struct hf_selector *selector, const struct hf_json *object)
{
	if (!selector)
		return true;
	for (size_t i = 0; i < selector->requirements.len; i++) {
		const struct requirement *r = &selector->requirements.items[i];
		char buf[32];
		if (!satisfies_requirement(r, field_text(r, object, buf)))
			return false;
	}
	return true;
}

/* True if the key of r equals the path. The key of r is already split at the dots. */
static bool is_path(const struct requirement *r, const char *path)
{
	const char *segment = r->key;

	for (size_t i = 0; i < r->n_segments; i++) {
		size_t len = strlen(segment);
		if (strncmp(path, segment, len) != 0)
			return false;
		path += len;
		if (*path != (i + 1 < r->n_segments ? '.' : '\0'))
			return false;
		path += *path == '.';
		segment += len + 1;
	}
	return true;
}

const char *hf_selector_exact(const struct hf_selector *selector, const char *path)
{
	for (size_t i = 0; selector && i < selector->requirements.len; i++) {
		const struct requirement *r = &selector->requirements.items[i];
		if (r->op == OP_EQ && is_path(r, path))
			return r->values[0];
	}
	return NULL;
}
