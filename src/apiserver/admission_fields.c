/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/admission_internal.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/*
 * Field checks shared by the kinds' rules: causes in an API server's words, defaults for absent
 * fields, and the walk over an object along its table of fields (api/schema.h).
 *
 * A wrong type ends the walk with HF_E_BAD_REQUEST, as an object that cannot be decoded. Unknown
 * fields are removed; fieldValidation decides between refusal, warnings and silence.
 */

/* Most bytes of a field's path, without the keys of maps. */
#define PATH_BYTES_MAX 512
#define MESSAGE_BYTES_MAX 4096

/* ---- causes ------------------------------------------------------------------------------- */

static void add_cause(struct hf_admission *admission, const char *reason, const char *message,
		      const char *fmt, va_list ap) HF_PRINTF(4, 0);
static void add_cause(struct hf_admission *admission, const char *reason, const char *message,
		      const char *fmt, va_list ap)
{
	HF_AUTO_STRBUF field = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);

	hf_strbuf_vaddf(&field, fmt, ap);
	hf_admission_cause(admission, reason, field.data, message);
}

void hf_problem_required(struct hf_admission *admission, const char *detail, const char *fmt, ...)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);
	va_list ap;

	hf_strbuf_addf(&sb, "Required value%s%s", *detail != '\0' ? ": " : "", detail);
	va_start(ap, fmt);
	add_cause(admission, "FieldValueRequired", sb.data, fmt, ap);
	va_end(ap);
}

void hf_problem_invalid(struct hf_admission *admission, const struct hf_json *value,
			const char *detail, const char *fmt, ...)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);
	va_list ap;

	hf_strbuf_addstr(&sb, "Invalid value: ");
	if (value != NULL)
		hf_json_write(value, HF_JSON_COMPACT, &sb);
	else
		hf_strbuf_addstr(&sb, "null");
	hf_strbuf_addf(&sb, ": %s", detail);
	va_start(ap, fmt);
	add_cause(admission, "FieldValueInvalid", sb.data, fmt, ap);
	va_end(ap);
}

static void add_quoted(struct hf_strbuf *sb, const char *text)
{
	HF_AUTO_JSON value = hf_json_string(text);

	hf_json_write(value, HF_JSON_COMPACT, sb);
}

void hf_problem_not_supported(struct hf_admission *admission, const char *value,
			      const char *const *supported, const char *fmt, ...)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);
	va_list ap;

	hf_strbuf_addstr(&sb, "Unsupported value: ");
	add_quoted(&sb, value);
	hf_strbuf_addstr(&sb, ": supported values: ");
	for (size_t i = 0; supported[i] != NULL; i++)
		hf_strbuf_addf(&sb, "%s\"%s\"", i > 0 ? ", " : "", supported[i]);
	va_start(ap, fmt);
	add_cause(admission, "FieldValueNotSupported", sb.data, fmt, ap);
	va_end(ap);
}

/* ---- defaults ----------------------------------------------------------------------------- */

static bool is_absent(const struct hf_json *object, const char *key)
{
	const struct hf_json *value = hf_json_get(object, key);

	return value == NULL || hf_json_type(value) == HF_JSON_NULL;
}

void hf_default_str(struct hf_json *object, const char *key, const char *value)
{
	if (is_absent(object, key))
		hf_json_set_str(object, key, value);
}

void hf_default_i64(struct hf_json *object, const char *key, int64_t value)
{
	if (is_absent(object, key))
		hf_json_set_i64(object, key, value);
}

void hf_default_bool(struct hf_json *object, const char *key, bool value)
{
	if (is_absent(object, key))
		hf_json_set_bool(object, key, value);
}

/* ---- unknown fields ----------------------------------------------------------------------- */

int hf_fields_unknown(struct hf_admission *admission, char *const *unknown, size_t len,
		      struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);

	if (len == 0 || hf_streq(admission->field_validation, "Ignore"))
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (!hf_streq(admission->field_validation, "Strict")) {
			HF_AUTOFREE char *text = hf_xasprintf("unknown field \"%s\"", unknown[i]);
			hf_admission_warn(admission, text);
			continue;
		}
		hf_strbuf_addf(&sb, "%sunknown field \"%s\"", i > 0 ? ", " : "", unknown[i]);
	}
	if (!hf_streq(admission->field_validation, "Strict"))
		return 0;
	return hf_error_set(
		err, HF_E_BAD_REQUEST,
		"%s in version \"%s\" cannot be handled as a %s: strict decoding error: %s",
		admission->resource->kind, admission->resource->version, admission->resource->kind,
		sb.data);
}

/* Reads an index at the start of a path, "[12]rest": sets the index and returns "rest". NULL: the
 * path does not begin with an index. */
static const char *index_of(const char *path, size_t *ret_index)
{
	size_t index = 0;

	if (*path++ != '[' || !hf_ascii_is_digit(*path))
		return NULL;
	for (; hf_ascii_is_digit(*path) && index < 1000000; path++)
		index = index * 10 + (size_t)(*path - '0');
	*ret_index = index;
	return *path == ']' ? path + 1 : NULL;
}

/* Removes the field at a path. A key may contain dots and brackets, so the path does not show
 * where a key ends: the function tries every member whose name the path begins with. */
bool hf_fields_remove(struct hf_json *object, const char *path)
{
	const char *key;
	struct hf_json *value;
	size_t i;

	if (hf_json_type(object) == HF_JSON_ARRAY) {
		const char *rest = index_of(path, &i);
		if (rest == NULL)
			return false;
		return hf_fields_remove(hf_json_item(object, i), *rest == '.' ? rest + 1 : rest);
	}
	if (hf_json_get(object, path) != NULL) {
		hf_json_remove(object, path);
		return true;
	}
	for (void *it = NULL; (it = hf_json_next(object, it, &key, &value)) != NULL;) {
		size_t len = strlen(key);
		if (strncmp(path, key, len) != 0 || (path[len] != '.' && path[len] != '['))
			continue;
		if (hf_fields_remove(value, path[len] == '.' ? path + len + 1 : path + len))
			return true;
	}
	return false;
}

/* ---- tables ------------------------------------------------------------------------------- */

struct walk {
	struct hf_admission *admission;
	struct hf_error *err;
	struct hf_strbuf path;
	char *unknown[HF_FIELDS_UNKNOWN_MAX];
	size_t n_unknown;
};

static int check_object(struct walk *walk, struct hf_json *object, const struct hf_schema *schema);

static int type_error(struct walk *walk, const struct hf_json *value, const char *wanted)
{
	const struct hf_resource *resource = walk->admission->resource;

	return hf_error_set(
		walk->err, HF_E_BAD_REQUEST,
		"%s in version \"%s\" cannot be handled as a %s: json: cannot unmarshal "
		"%s into field %s of type %s",
		resource->kind, resource->version, resource->kind,
		hf_json_type_name(hf_json_type(value)), walk->path.data, wanted);
}

static int check_scalar(struct walk *walk, struct hf_json *value,
			const struct hf_schema_field *field)
{
	if (!hf_schema_takes(field, hf_json_type(value)))
		return type_error(walk, value, hf_schema_type_name(field->type));
	return field->type == HF_SCHEMA_OBJECT ? check_object(walk, value, field->schema) : 0;
}

static int check_items(struct walk *walk, struct hf_json *value,
		       const struct hf_schema_field *field)
{
	size_t mark = walk->path.len;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < hf_json_len(value); i++) {
		hf_strbuf_addf(&walk->path, "[%zu]", i);
		rc = check_scalar(walk, hf_json_item(value, i), field);
		hf_strbuf_truncate(&walk->path, mark);
	}
	return rc;
}

static int check_map(struct walk *walk, struct hf_json *value, const struct hf_schema_field *field)
{
	const char *key;
	struct hf_json *item;
	int rc = 0;

	for (void *it = NULL; rc == 0 && (it = hf_json_next(value, it, &key, &item)) != NULL;)
		rc = check_scalar(walk, item, field);
	return rc;
}

static int check_value(struct walk *walk, struct hf_json *value,
		       const struct hf_schema_field *field)
{
	enum hf_json_type type = hf_json_type(value);

	switch (field->shape) {
	case HF_SCHEMA_LIST:
		return type == HF_JSON_ARRAY ? check_items(walk, value, field)
					     : type_error(walk, value, "array");
	case HF_SCHEMA_MAP:
		return type == HF_JSON_OBJECT ? check_map(walk, value, field)
					      : type_error(walk, value, "map");
	default: return check_scalar(walk, value, field);
	}
}

/* Returns the key of the first member that is null or not in the table. The caller removes the
 * member after the iteration, because a removal would break the iterator. */
static const char *next_unknown(const struct hf_json *object, const struct hf_schema *schema)
{
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(object, it, &key, &value)) != NULL;)
		if (hf_json_type(value) == HF_JSON_NULL || hf_schema_field(schema, key) == NULL)
			return key;
	return NULL;
}

/* Removes unknown members and nulls. A null in a known field means "absent" and is not reported. */
static void remove_unknown(struct walk *walk, struct hf_json *object,
			   const struct hf_schema *schema)
{
	for (const char *key; (key = next_unknown(object, schema)) != NULL;) {
		HF_AUTOFREE char *copy = hf_xstrdup(key);
		if (hf_schema_field(schema, key) == NULL && walk->n_unknown < HF_FIELDS_UNKNOWN_MAX)
			walk->unknown[walk->n_unknown++] = hf_xasprintf(
				"%s%s%s", walk->path.data, walk->path.len > 0 ? "." : "", key);
		hf_json_remove(object, copy);
	}
}

/* Checks a member against its table. In metadata only unknown fields are removed, because the
 * store checks the types. status is not checked: controllers and the kubelet write it in their
 * own forms. */
static int check_member(struct walk *walk, struct hf_json *value,
			const struct hf_schema_field *field)
{
	if (hf_streq(walk->path.data, "status"))
		return 0;
	if (!hf_streq(walk->path.data, "metadata"))
		return check_value(walk, value, field);
	if (hf_json_type(value) != HF_JSON_OBJECT)
		return type_error(walk, value, "object");
	remove_unknown(walk, value, field->schema);
	return 0;
}

static int check_object(struct walk *walk, struct hf_json *object, const struct hf_schema *schema)
{
	size_t mark = walk->path.len;
	const char *key;
	struct hf_json *value;
	int rc = 0;

	remove_unknown(walk, object, schema);
	for (void *it = NULL; rc == 0 && (it = hf_json_next(object, it, &key, &value)) != NULL;) {
		hf_strbuf_addf(&walk->path, "%s%s", mark > 0 ? "." : "", key);
		rc = check_member(walk, value, hf_schema_field(schema, key));
		hf_strbuf_truncate(&walk->path, mark);
	}
	return rc;
}

int hf_fields_check(struct hf_admission *admission, const struct hf_schema *schema,
		    struct hf_error *err)
{
	struct walk walk = {
		.admission = admission, .err = err, .path = HF_STRBUF_INIT(PATH_BYTES_MAX)};
	int rc = check_object(&walk, admission->object, schema);

	if (rc == 0)
		rc = hf_fields_unknown(admission, walk.unknown, walk.n_unknown, err);
	for (size_t i = 0; i < walk.n_unknown; i++)
		free(walk.unknown[i]);
	hf_strbuf_release(&walk.path);
	return rc;
}

void hf_admission_report(struct hf_admission *admission, const struct hf_field_errors *errors)
{
	for (size_t i = 0; i < errors->len; i++) {
		HF_AUTO_STRBUF sb = HF_STRBUF_INIT(8192);
		const struct hf_field_error *error = &errors->items[i];
		size_t skip = strlen(error->field) + strlen(": ");
		hf_field_error_write(error, &sb);
		hf_admission_cause(admission, hf_problem_reason(error->problem), error->field,
				   sb.len > skip ? sb.data + skip : sb.data);
	}
	for (size_t i = 0; i < errors->warnings_len; i++)
		hf_admission_warn(admission, errors->warnings[i]);
}
