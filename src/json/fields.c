/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Decodes a JSON object into a C struct, as a constant table describes it. Input: a tree or a text;
 * output: the struct, in an arena, and problems with the paths of their fields.
 *
 * The decoder walks the document, not the table. A text can be read only once and in order, and a
 * tree that is walked in the same order gives the same problems in the same order. Only
 * fields_source.c knows which form the document has.
 *
 * Functions return 0 to continue, and any other value to stop. They stop at invalid text and at a
 * full arena. They also stop at the first problem, unless the caller collects problems.
 */
#include "json/fields.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "json/fields_internal.h"
#include "json/number_internal.h"

#include <stdlib.h>
#include <string.h>

/* The layout of every HF_LIST. */
struct any_list {
	void *items;
	size_t len;
};

/* The target of one value. */
struct slot {
	const struct hf_field *field;
	enum hf_field_type type; /* type of the field, or of its items */
	void *member;
	bool present; /* set if the value was read */
};

/* An object that is being read. */
struct object {
	const struct hf_field_table *table;
	char *base;
	const struct hf_fields_step *at;
	uint64_t seen; /* fields that occur in the document */
	uint64_t bad;  /* fields of the document that have a problem */
};

/* A list or map that is being read. */
struct filling {
	const struct hf_field *field;
	struct any_list *list;
	size_t cap;
	const struct hf_fields_step *at;
};

static int read_value(struct hf_fields_reader *r, struct slot *slot, struct hf_fields_source src,
		      const struct hf_fields_step *at);

/* Accepts integers, and reals with a whole value, because some writers print 3 as 3.0. */
static bool read_whole(const struct hf_fields_scalar *scalar, int64_t *ret_integer)
{
	if (scalar->type == HF_JSON_INT) {
		*ret_integer = scalar->integer;
		return true;
	}
	return scalar->type == HF_JSON_REAL && hf_json_whole(scalar->real, ret_integer);
}

static int put_integer(struct hf_fields_reader *r, const struct slot *slot,
		       const struct hf_fields_scalar *scalar, const struct hf_fields_step *at)
{
	bool is_item = slot->field->type == HF_FIELD_TYPE_LIST;
	int64_t min = is_item ? INT64_MIN : slot->field->min;
	int64_t max = is_item ? INT64_MAX : slot->field->max;
	int64_t i;

	if (!read_whole(scalar, &i))
		return hf_fields_wrong_type(r, scalar, "integer", at);
	if (i < min)
		return hf_fields_invalid(r, scalar, at, "must be greater than or equal to %lld",
					 (long long)min);
	if (i > max)
		return hf_fields_invalid(r, scalar, at, "must be less than or equal to %lld",
					 (long long)max);
	if (slot->type == HF_FIELD_TYPE_INT32)
		*(int32_t *)slot->member = (int32_t)i;
	else
		*(int64_t *)slot->member = i;
	return 0;
}

/* The length limit applies to the field's own type only. The items of lists and maps are limited
 * by the document. */
static int put_string(struct hf_fields_reader *r, const struct hf_field *field,
		      const struct hf_fields_scalar *scalar, const char **member,
		      const struct hf_fields_step *at)
{
	if (scalar->type != HF_JSON_STRING)
		return hf_fields_wrong_type(r, scalar, "string", at);
	if (field->type == HF_FIELD_TYPE_STRING && field->max > 0 &&
	    scalar->len > (size_t)field->max)
		return hf_fields_problem(r, HF_FIELD_PROBLEM_VALUE, at,
					 "Too long: may not be more than %lld bytes",
					 (long long)field->max);
	*member = scalar->string;
	return 0;
}

static int put_time(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar,
		    hf_time *member, const struct hf_fields_step *at)
{
	if (scalar->type != HF_JSON_STRING)
		return hf_fields_wrong_type(r, scalar, "string", at);
	/* Times before 1970 are refused, so that the difference of two times always fits. */
	if (hf_time_parse(scalar->string, member, NULL) != 0 || *member < 0)
		return hf_fields_invalid(r, scalar, at,
					 "must be a time such as 2006-01-02T15:04:05Z");
	return 0;
}

/* *ret_text gets the quantity as written; a number gets the text that JSON has for it. */
static int put_quantity(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar,
			int64_t *member, const char **ret_text, const struct hf_fields_step *at)
{
	const char *text = hf_fields_number_text(r, scalar);

	if (!text)
		return hf_fields_wrong_type(r, scalar, "string or number", at);
	if (hf_quantity_parse_milli(text, member, NULL) != 0)
		return hf_fields_invalid(r, scalar, at, "must be a quantity such as 500m or 2Gi");
	*ret_text = text;
	return 0;
}

static int put_int_or_string(struct hf_fields_reader *r, const struct hf_fields_scalar *scalar,
			     struct hf_int_or_string *member, const struct hf_fields_step *at)
{
	int64_t i;

	if (scalar->type == HF_JSON_STRING) {
		member->string = scalar->string;
		return 0;
	}
	if (!read_whole(scalar, &i))
		return hf_fields_wrong_type(r, scalar, "integer or string", at);
	if (i < INT32_MIN || i > INT32_MAX)
		return hf_fields_invalid(r, scalar, at, "must fit 32 bits");
	member->integer = (int32_t)i;
	return 0;
}

static int read_scalar(struct hf_fields_reader *r, struct slot *slot, struct hf_fields_source src,
		       const struct hf_fields_step *at)
{
	struct hf_fields_scalar scalar;
	const char *text;
	int problems = r->problems;

	if (hf_fields_scalar(r, src, &scalar) != 0)
		return -1;
	int stop = 0;
	switch (slot->type) {
	case HF_FIELD_TYPE_STRING:
		stop = put_string(r, slot->field, &scalar, slot->member, at);
		break;
	case HF_FIELD_TYPE_BOOL:
		if (scalar.type != HF_JSON_BOOL)
			stop = hf_fields_wrong_type(r, &scalar, "boolean", at);
		else
			*(bool *)slot->member = scalar.integer != 0;
		break;
	case HF_FIELD_TYPE_INT32:
	case HF_FIELD_TYPE_INT64: stop = put_integer(r, slot, &scalar, at); break;
	case HF_FIELD_TYPE_TIME: stop = put_time(r, &scalar, slot->member, at); break;
	case HF_FIELD_TYPE_QUANTITY:
		stop = put_quantity(r, &scalar, slot->member, &text, at);
		break;
	case HF_FIELD_TYPE_INT_OR_STRING:
		stop = put_int_or_string(r, &scalar, slot->member, at);
		break;
	default: hf_assert(!"a scalar");
	}
	bool empty = scalar.type == HF_JSON_STRING && scalar.len == 0 &&
		     (slot->field->flags & HF_FIELD_NONEMPTY) != 0;
	slot->present = r->problems == problems && !empty;
	return stop;
}

static size_t item_size(const struct hf_field *field)
{
	if (field->type == HF_FIELD_TYPE_MAP && field->item != HF_FIELD_TYPE_OBJECT)
		return sizeof(struct hf_field_pair);
	switch (field->item) {
	case HF_FIELD_TYPE_STRING: return sizeof(const char *);
	case HF_FIELD_TYPE_INT64: return sizeof(int64_t);
	case HF_FIELD_TYPE_OBJECT: return field->table->size;
	default: hf_assert(!"a list cannot have items of this type"); return 0;
	}
}

/* Adds a zeroed item to the list; NULL if the arena is full. */
static void *add_item(struct hf_fields_reader *r, struct filling *f)
{
	size_t size = item_size(f->field);

	if (f->list->len == f->cap) {
		size_t more = f->cap ? f->cap * 2 : 4;
		void *items = hf_fields_alloc(r, more * size);
		if (!items)
			return NULL;
		if (f->list->len > 0)
			memcpy(items, f->list->items, f->list->len * size);
		f->list->items = items;
		f->cap = more;
	}
	return (char *)f->list->items + f->list->len++ * size;
}

/* Items beyond the limit are only counted, so that the message can state their number. */
static int check_count(struct hf_fields_reader *r, const struct filling *f, size_t count)
{
	if (count <= (size_t)f->field->max)
		return 0;
	return hf_fields_problem(r, HF_FIELD_PROBLEM_TOO_MANY, f->at,
				 "Too many: %zu: must have at most %lld items", count,
				 (long long)f->field->max);
}

static int read_list(struct hf_fields_reader *r, struct filling *f, struct hf_fields_source src)
{
	struct hf_fields_entries entries;
	struct hf_fields_source item;
	struct hf_fields_step step = {.up = f->at, .kind = HF_FIELDS_STEP_INDEX};
	struct slot slot = {.field = f->field, .type = f->field->item};
	size_t count = 0;
	int rc;

	if (hf_fields_enter(r, src, &entries) != 0)
		return -1;
	while ((rc = hf_fields_next_item(r, &entries, &item)) > 0) {
		step.index = count++;
		if (count > (size_t)f->field->max) {
			if (hf_fields_skip(r, item) != 0)
				return -1;
			continue;
		}
		slot.member = add_item(r, f);
		if (!slot.member || read_value(r, &slot, item, &step) != 0)
			return -1;
	}
	return rc < 0 ? -1 : check_count(r, f, count);
}

/* Reads one entry of a map. An entry with the value null counts as absent. */
static int read_entry(struct hf_fields_reader *r, struct filling *f,
		      const struct hf_skip_string *raw_key, struct hf_fields_source src)
{
	struct hf_fields_step step = {
		.up = f->at,
		.kind = f->field->flags & HF_FIELD_DOTTED ? HF_FIELDS_STEP_NAME
							  : HF_FIELDS_STEP_KEY,
	};
	struct slot slot = {.field = f->field, .type = f->field->item};
	struct hf_fields_scalar scalar;

	if (hf_fields_peek(src) == HF_JSON_NULL)
		return hf_fields_skip(r, src);
	step.key = hf_fields_key(r, src, raw_key);
	slot.member = step.key ? add_item(r, f) : NULL;
	if (!slot.member)
		return -1;
	if (slot.type == HF_FIELD_TYPE_OBJECT) {
		size_t offset = f->field->table->key_offset;
		*(const char **)(void *)((char *)slot.member + offset) = step.key;
		return read_value(r, &slot, src, &step);
	}
	struct hf_field_pair *pair = slot.member;
	pair->key = step.key;
	if (hf_fields_scalar(r, src, &scalar) != 0)
		return -1;
	if (slot.type == HF_FIELD_TYPE_QUANTITY)
		return put_quantity(r, &scalar, &pair->milli, &pair->value, &step);
	return put_string(r, f->field, &scalar, &pair->value, &step);
}

static int read_map(struct hf_fields_reader *r, struct filling *f, struct hf_fields_source src)
{
	struct hf_fields_entries entries;
	struct hf_fields_source value;
	struct hf_skip_string key;
	size_t count = 0;
	int rc;

	if (hf_fields_enter(r, src, &entries) != 0)
		return -1;
	while ((rc = hf_fields_next_member(r, &entries, &key, &value)) > 0) {
		int stop = ++count > (size_t)f->field->max ? hf_fields_skip(r, value)
							   : read_entry(r, f, &key, value);
		if (stop != 0)
			return stop;
	}
	return rc < 0 ? -1 : check_count(r, f, count);
}

/* A linear search: tables are short, and most names differ in length already. */
static int find_field(const struct hf_field_table *table, const struct hf_skip_string *key)
{
	for (size_t i = 0; i < table->len; i++)
		if (hf_skip_equals(key, table->fields[i].name, table->fields[i].name_len))
			return (int)i;
	return -1;
}

static int read_member(struct hf_fields_reader *r, struct object *object,
		       const struct hf_skip_string *key, struct hf_fields_source src)
{
	struct hf_fields_step step = {.up = object->at, .kind = HF_FIELDS_STEP_NAME};
	int i = find_field(object->table, key);
	int problems = r->problems;

	if (i < 0) {
		if (r->options->strict) {
			step.key = hf_fields_key(r, src, key);
			if (!step.key || hf_fields_problem(r, HF_FIELD_PROBLEM_UNKNOWN, &step,
							   "unknown field") != 0)
				return -1;
		}
		return hf_fields_skip(r, src);
	}
	uint64_t bit = (uint64_t)1 << i;
	/* Only text can repeat a key; a parsed tree cannot. */
	if (object->seen & bit)
		return hf_fields_broken(r, src, "duplicate key");
	object->seen |= bit;
	if (hf_fields_peek(src) == HF_JSON_NULL)
		return hf_fields_skip(r, src);

	const struct hf_field *field = &object->table->fields[i];
	struct slot slot = {
		.field = field,
		.type = field->type,
		.member = object->base + field->offset,
	};
	step.key = field->name;
	if (read_value(r, &slot, src, &step) != 0)
		return -1;
	if (slot.present)
		*(uint64_t *)(void *)(object->base + object->table->present_offset) |= bit;
	if (r->problems > problems)
		object->bad |= bit;
	return 0;
}

static int check_required(struct hf_fields_reader *r, const struct object *object)
{
	uint64_t there = *(uint64_t *)(void *)(object->base + object->table->present_offset);

	/* A field with a problem is present, so do not report it as missing too. */
	there |= object->bad;
	for (size_t i = 0; i < object->table->len; i++) {
		const struct hf_field *field = &object->table->fields[i];
		struct hf_fields_step step = {
			.up = object->at,
			.kind = HF_FIELDS_STEP_NAME,
			.key = field->name,
		};
		if ((field->flags & HF_FIELD_REQUIRED) == 0 || (there >> i & 1))
			continue;
		if (hf_fields_problem(r, HF_FIELD_PROBLEM_REQUIRED, &step, "Required value") != 0)
			return -1;
	}
	return 0;
}

static int read_object(struct hf_fields_reader *r, struct object *object,
		       struct hf_fields_source src)
{
	struct hf_fields_entries entries;
	struct hf_fields_source value;
	struct hf_skip_string key;
	int rc;

	hf_assert(object->table->len <= HF_FIELDS_PER_TABLE_MAX);
	if (hf_fields_peek(src) != HF_JSON_OBJECT)
		return hf_fields_not_container(r, src, "object", object->at);
	if (hf_fields_enter(r, src, &entries) != 0)
		return -1;
	while ((rc = hf_fields_next_member(r, &entries, &key, &value)) > 0)
		if (read_member(r, object, &key, value) != 0)
			return -1;
	return rc < 0 ? -1 : check_required(r, object);
}

static int read_items(struct hf_fields_reader *r, const struct slot *slot,
		      struct hf_fields_source src, const struct hf_fields_step *at)
{
	struct filling f = {.field = slot->field, .list = slot->member, .at = at};
	bool is_list = slot->type == HF_FIELD_TYPE_LIST;

	/* Every list and map must have a limit. */
	hf_assert(slot->field->max > 0);
	if (hf_fields_peek(src) != (is_list ? HF_JSON_ARRAY : HF_JSON_OBJECT))
		return hf_fields_not_container(r, src, is_list ? "array" : "object", at);
	return is_list ? read_list(r, &f, src) : read_map(r, &f, src);
}

/* Reads one value. Any result but 0 means stop; the reason is in r. */
static int read_value(struct hf_fields_reader *r, struct slot *slot, struct hf_fields_source src,
		      const struct hf_fields_step *at)
{
	const struct any_list *list = slot->member;
	struct object object = {.at = at};
	int problems = r->problems;
	bool good; /* the container itself is valid; its content may not be */
	int rc;

	switch (slot->type) {
	case HF_FIELD_TYPE_PRESENCE: slot->present = true; return hf_fields_skip(r, src);
	case HF_FIELD_TYPE_OBJECT:
		object.table = slot->field->table;
		object.base = slot->member;
		good = r->options->lenient && hf_fields_peek(src) == HF_JSON_OBJECT;
		rc = read_object(r, &object, src);
		slot->present = good || r->problems == problems;
		return rc;
	case HF_FIELD_TYPE_LIST:
	case HF_FIELD_TYPE_MAP:
		rc = read_items(r, slot, src, at);
		good = r->options->lenient && list->len > 0;
		slot->present = (good || r->problems == problems) &&
				(list->len > 0 || (slot->field->flags & HF_FIELD_NONEMPTY) == 0);
		return rc;
	default: return read_scalar(r, slot, src, at);
	}
}

const char *hf_field_pair_find(const struct hf_field_pair *items, size_t len, const char *key)
{
	for (size_t i = 0; i < len; i++)
		if (strcmp(items[i].key, key) == 0)
			return items[i].value;
	return NULL;
}

static int read_root(const struct hf_field_table *table, struct hf_fields_source src,
		     const struct hf_fields_options *options, struct hf_arena *arena,
		     void *ret_struct, struct hf_error *err)
{
	static const struct hf_fields_options defaults;
	struct hf_fields_reader r = {
		.options = options ? options : &defaults,
		.arena = arena,
		.err = err,
	};
	struct object object = {.table = table, .base = hf_fields_alloc(&r, table->size)};

	if (object.base && read_object(&r, &object, src) == 0 && src.skip &&
	    !hf_skip_at_end(src.skip))
		(void)hf_fields_broken(&r, src, "text after the value");
	if (r.rc == 0)
		memcpy(ret_struct, object.base, table->size);
	return r.rc;
}

int hf_fields_read(const struct hf_field_table *table, const struct hf_json *value,
		   const struct hf_fields_options *options, struct hf_arena *arena,
		   void *ret_struct, struct hf_error *err)
{
	const struct hf_fields_source src = {.json = value};

	return read_root(table, src, options, arena, ret_struct, err);
}

int hf_fields_read_text(const struct hf_field_table *table, const struct hf_fields_text *text,
			const struct hf_fields_options *options, struct hf_arena *arena,
			void *ret_struct, struct hf_error *err)
{
	struct hf_skip skip;
	const struct hf_fields_source src = {.skip = &skip};

	hf_skip_init(&skip, text->bytes, text->len);
	return read_root(table, src, options, arena, ret_struct, err);
}

int hf_fields_read_doc(const struct hf_field_table *table, struct hf_doc *doc,
		       const struct hf_fields_options *options, struct hf_arena *arena,
		       void *ret_struct, struct hf_error *err)
{
	struct hf_fields_text text;

	if (hf_doc_has_tree(doc))
		return hf_fields_read(table, hf_doc_json(doc), options, arena, ret_struct, err);
	text.bytes = hf_doc_text(doc, &text.len);
	return hf_fields_read_text(table, &text, options, arena, ret_struct, err);
}
