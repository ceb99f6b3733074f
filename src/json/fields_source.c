/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The two sources of the decoder, tree and text, and the texts of problems.
 *
 * Every text of a problem is "path: message" in Kubernetes' form. Control characters of keys are
 * replaced, because error texts are printed on terminals.
 */
#include "json/fields_internal.h"

#include "base/mem.h"
#include "json/number_internal.h"

#include <stdio.h>
#include <string.h>

/* Bytes. Enough for the names of a manifest; longer paths are cut at the end. */
#define PATH_BYTES_MAX 400
/* Bytes of a value that an error text shows. */
#define SHOWN_BYTES_MAX 64

/* Stops the decoder. The reason replaces earlier problems, which may be its consequence. */
static int stop_decoding(struct hf_fields_reader *r, int rc)
{
	r->rc = rc;
	return -1;
}

int hf_fields_broken(struct hf_fields_reader *r, struct hf_fields_source src, const char *what)
{
	return stop_decoding(r, hf_skip_error(src.skip, what, r->err));
}

static int report_not_json(struct hf_fields_reader *r, struct hf_fields_source src)
{
	return hf_fields_broken(r, src, "not valid JSON");
}

void *hf_fields_alloc(struct hf_fields_reader *r, size_t size)
{
	if (size > hf_arena_left(r->arena)) {
		stop_decoding(r, hf_error_set(r->err, HF_E_TOO_LARGE,
					      "the document needs more memory than its limit"));
		return NULL;
	}
	return hf_arena_alloc(r->arena, size);
}

enum hf_json_type hf_fields_peek(struct hf_fields_source src)
{
	return src.skip ? hf_skip_peek(src.skip) : hf_json_type(src.json);
}

int hf_fields_skip(struct hf_fields_reader *r, struct hf_fields_source src)
{
	return src.skip && !hf_skip_value(src.skip) ? report_not_json(r, src) : 0;
}

/* Returns the text of a string, checked, in the arena; NULL if it is invalid or the arena is
 * full. */
static char *copy_text(struct hf_fields_reader *r, const struct hf_skip_string *string,
		       size_t *ret_len)
{
	if (string->len + 1 > hf_arena_left(r->arena))
		return hf_fields_alloc(r, string->len + 1);
	return hf_skip_text(string, r->arena, ret_len);
}

static int read_text_scalar(struct hf_fields_reader *r, struct hf_fields_source src,
			    struct hf_fields_scalar *ret_scalar)
{
	struct hf_skip_string string;
	struct hf_skip_number number;
	bool is_true, good;

	switch (ret_scalar->type) {
	case HF_JSON_STRING:
		good = hf_skip_string(src.skip, &string);
		ret_scalar->string = good ? copy_text(r, &string, &ret_scalar->len) : NULL;
		if (r->rc == HF_E_TOO_LARGE)
			return -1;
		good = ret_scalar->string;
		break;
	case HF_JSON_INT:
		good = hf_skip_number(src.skip, &number);
		if (good) {
			ret_scalar->type = number.type;
			ret_scalar->integer = number.integer;
			ret_scalar->real = number.real;
		}
		break;
	case HF_JSON_BOOL:
		good = hf_skip_bool(src.skip, &is_true);
		ret_scalar->integer = good && is_true;
		break;
	default: good = hf_skip_value(src.skip); break;
	}
	return good ? 0 : report_not_json(r, src);
}

int hf_fields_scalar(struct hf_fields_reader *r, struct hf_fields_source src,
		     struct hf_fields_scalar *ret_scalar)
{
	memset(ret_scalar, 0, sizeof(*ret_scalar));
	ret_scalar->type = hf_fields_peek(src);
	if (src.skip)
		return read_text_scalar(r, src, ret_scalar);
	if (ret_scalar->type == HF_JSON_STRING) {
		const char *s = hf_json_str(src.json, "");
		ret_scalar->len = strlen(s);
		char *copy = hf_fields_alloc(r, ret_scalar->len + 1);
		if (!copy)
			return -1;
		memcpy(copy, s, ret_scalar->len);
		ret_scalar->string = copy;
	}
	ret_scalar->integer = ret_scalar->type == HF_JSON_BOOL ? hf_json_true(src.json, false)
							       : hf_json_i64(src.json, 0);
	ret_scalar->real = hf_json_num(src.json, 0);
	return 0;
}

int hf_fields_enter(struct hf_fields_reader *r, struct hf_fields_source src,
		    struct hf_fields_entries *ret_entries)
{
	*ret_entries = (struct hf_fields_entries){.src = src, .first = true};
	return src.skip && !hf_skip_enter(src.skip) ? report_not_json(r, src) : 0;
}

int hf_fields_next_member(struct hf_fields_reader *r, struct hf_fields_entries *entries,
			  struct hf_skip_string *ret_key, struct hf_fields_source *ret_value)
{
	struct hf_json *value;
	const char *key;

	*ret_value = entries->src;
	if (entries->src.skip) {
		enum hf_skip_next next =
			hf_skip_next_key(entries->src.skip, &entries->first, ret_key);
		return next == HF_SKIP_BROKEN ? report_not_json(r, entries->src) : (int)next;
	}
	entries->it = hf_json_next(entries->src.json, entries->it, &key, &value);
	if (!entries->it)
		return 0;
	*ret_key = (struct hf_skip_string){.bytes = key, .len = strlen(key)};
	ret_value->json = value;
	return 1;
}

int hf_fields_next_item(struct hf_fields_reader *r, struct hf_fields_entries *entries,
			struct hf_fields_source *ret_item)
{
	*ret_item = entries->src;
	if (entries->src.skip) {
		enum hf_skip_next next = hf_skip_next_item(entries->src.skip, &entries->first);
		return next == HF_SKIP_BROKEN ? report_not_json(r, entries->src) : (int)next;
	}
	ret_item->json = hf_json_item(entries->src.json, entries->index++);
	return ret_item->json != NULL;
}

const char *hf_fields_key(struct hf_fields_reader *r, struct hf_fields_source src,
			  const struct hf_skip_string *key)
{
	char *text;

	if (!src.skip) {
		text = hf_fields_alloc(r, key->len + 1);
		if (text)
			memcpy(text, key->bytes, key->len);
		return text;
	}
	text = copy_text(r, key, NULL);
	if (!text && r->rc != HF_E_TOO_LARGE)
		(void)hf_fields_broken(r, src, "a key is not a valid string");
	return text;
}

const char *hf_fields_number_text(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar)
{
	char text[HF_JSON_REAL_TEXT_MAX];

	switch (scalar->type) {
	case HF_JSON_STRING: return scalar->string;
	case HF_JSON_INT: snprintf(text, sizeof(text), "%lld", (long long)scalar->integer); break;
	case HF_JSON_REAL: hf_json_format_real(scalar->real, text); break;
	default: return NULL;
	}
	char *copy = hf_fields_alloc(r, sizeof(text));
	if (copy)
		memcpy(copy, text, sizeof(text));
	return copy;
}

/* Keys come from outside, and error texts are printed on terminals. */
static void add_printable(struct hf_strbuf *sb, const char *s)
{
	for (; *s; s++)
		hf_strbuf_addch(sb, (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
}

static void add_path(struct hf_strbuf *sb, const struct hf_fields_step *at)
{
	if (!at)
		return;
	add_path(sb, at->up);
	switch (at->kind) {
	case HF_FIELDS_STEP_NAME:
		if (sb->len > 0)
			hf_strbuf_addch(sb, '.');
		add_printable(sb, at->key);
		break;
	case HF_FIELDS_STEP_KEY:
		hf_strbuf_addch(sb, '[');
		add_printable(sb, at->key);
		hf_strbuf_addch(sb, ']');
		break;
	case HF_FIELDS_STEP_INDEX: hf_strbuf_addf(sb, "[%zu]", at->index); break;
	}
}

/* Reports a problem to the caller. err keeps only the first one. */
static int report_problem(struct hf_fields_reader *r, enum hf_field_problem kind,
			  const struct hf_fields_step *at, const char *text)
{
	HF_AUTO_STRBUF path = HF_STRBUF_INIT(PATH_BYTES_MAX);

	if (r->options->lenient) {
		r->problems++;
		return 0;
	}
	hf_strbuf_addstr(&path, r->options->root ? r->options->root : "");
	add_path(&path, at);
	if (r->problems++ == 0)
		r->rc = hf_error_set(r->err, HF_E_INVALID, "%s%s%s", path.data,
				     path.len > 0 ? ": " : "", text);
	if (!r->options->problem)
		return -1;
	r->options->problem(r->options->arg, kind, path.data, text);
	return 0;
}

int hf_fields_problem(struct hf_fields_reader *r, enum hf_field_problem kind,
		      const struct hf_fields_step *at, const char *fmt, ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);
	va_list ap;

	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	return report_problem(r, kind, at, text.data);
}

/* Appends the value as upstream's messages show it: strings in quotes, containers by their type. */
static void add_value_text(struct hf_strbuf *sb, const struct hf_fields_scalar *scalar)
{
	HF_AUTO_JSON value = NULL;
	size_t len = scalar->len;

	switch (scalar->type) {
	case HF_JSON_STRING:
		if (len > SHOWN_BYTES_MAX) {
			len = SHOWN_BYTES_MAX;
			while (len > 0 && ((unsigned char)scalar->string[len] & 0xc0) == 0x80)
				len--;
		}
		value = hf_json_stringn(scalar->string, len);
		break;
	case HF_JSON_INT: value = hf_json_int(scalar->integer); break;
	case HF_JSON_REAL: value = hf_json_real(scalar->real); break;
	case HF_JSON_BOOL: value = hf_json_bool(scalar->integer != 0); break;
	default: value = hf_json_string(hf_json_type_name(scalar->type)); break;
	}
	hf_json_write(value, HF_JSON_COMPACT, sb);
	if (len < scalar->len)
		hf_strbuf_addstr(sb, "...");
}

int hf_fields_invalid(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar,
		      const struct hf_fields_step *at, const char *fmt, ...)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);
	va_list ap;

	hf_strbuf_addstr(&text, "Invalid value: ");
	add_value_text(&text, scalar);
	hf_strbuf_addstr(&text, ": ");
	va_start(ap, fmt);
	hf_strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	return report_problem(r, HF_FIELD_PROBLEM_VALUE, at, text.data);
}

int hf_fields_wrong_type(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar,
			 const char *want, const struct hf_fields_step *at)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_ERROR_TEXT_MAX);

	/* If the arena is full, report that, and not the type: the value may be valid. */
	if (r->rc == HF_E_TOO_LARGE)
		return -1;
	hf_strbuf_addstr(&text, "Invalid value: ");
	add_value_text(&text, scalar);
	hf_strbuf_addf(&text, ": must be of type %s", want);
	return report_problem(r, HF_FIELD_PROBLEM_TYPE, at, text.data);
}

int hf_fields_not_container(struct hf_fields_reader *r, struct hf_fields_source src,
			    const char *want, const struct hf_fields_step *at)
{
	struct hf_fields_scalar scalar;

	if (hf_fields_scalar(r, src, &scalar) != 0)
		return -1;
	return hf_fields_wrong_type(r, &scalar, want, at);
}
