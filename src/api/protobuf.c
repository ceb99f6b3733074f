/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/wire.h"

#include <stdlib.h>
#include <string.h>

/*
 * Decodes Kubernetes' protobuf into JSON, by the tables of schema.h. The sender is not trusted:
 * every read stays inside its message, the tables bound the depth, and a message of n bytes makes
 * at most n values.
 */

#define SECONDS_MAX INT64_C(9223372000)

struct decoder {
	const char *where; /* name of the message's table */
	struct hf_error *err;
};

static int set_broken(const struct decoder *d, const char *what)
{
	return hf_error_set(d->err, HF_E_BAD_REQUEST, "protobuf: %s: %s", d->where, what);
}

/* ---- the wire ----------------------------------------------------------------------------- */

static int next_field(const struct decoder *d, struct hf_wire *in, struct hf_wire_field *ret_field)
{
	switch (hf_wire_next(in, ret_field)) {
	case HF_WIRE_OK: return 0;
	case HF_WIRE_NO_FIELD: return set_broken(d, "the next bytes are no field");
	case HF_WIRE_NO_TYPE: return set_broken(d, "an undefined wire type");
	default: return set_broken(d, "the message ends inside a field");
	}
}

/* ---- values ------------------------------------------------------------------------------- */

static int read_text(const struct decoder *d, struct hf_wire bytes, char **ret_text)
{
	size_t len = (size_t)(bytes.end - bytes.at);

	/* A text with a zero byte is refused: Kubernetes has no such text, and C code would not see
	 * what follows the zero. */
	if (len > 0 && (!hf_utf8_valid((const char *)bytes.at, len) || memchr(bytes.at, 0, len)))
		return set_broken(d, "a text is not UTF-8");
	*ret_text = hf_xstrndup(len > 0 ? (const char *)bytes.at : "", len);
	return 0;
}

static int text_value(const struct decoder *d, struct hf_wire bytes, struct hf_json **ret_value)
{
	HF_AUTOFREE char *text = NULL;
	int rc = read_text(d, bytes, &text);

	if (rc == 0)
		*ret_value = hf_json_string(text);
	return rc;
}

static struct hf_json *bytes_value(struct hf_wire bytes)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(2 * HF_JSON_BYTES_MAX);

	hf_base64_encode(bytes.at, (size_t)(bytes.end - bytes.at), &sb);
	return hf_json_string(sb.data);
}

/* The first three fields of a message that is a single value in JSON, such as a time or a quantity. */
struct parts {
	uint64_t numbers[4];
	struct hf_wire bytes[4];
};

static int read_parts(const struct decoder *d, struct hf_wire in, struct parts *ret_parts)
{
	*ret_parts = (struct parts){0};
	while (in.at < in.end) {
		struct hf_wire_field entry;
		int rc = next_field(d, &in, &entry);
		if (rc != 0)
			return rc;
		if (entry.number >= HF_ARRAY_LEN(ret_parts->numbers))
			continue;
		if (entry.type == HF_WIRE_VARINT)
			ret_parts->numbers[entry.number] = entry.value;
		else if (entry.type == HF_WIRE_BYTES)
			ret_parts->bytes[entry.number] = entry.bytes;
	}
	return 0;
}

/* Converts seconds and nanoseconds. If both are zero, this is Go's zero time, which JSON leaves
 * out. */
static int time_value(const struct decoder *d, const struct parts *parts, bool micro,
		      struct hf_json **ret_value)
{
	int64_t seconds = (int64_t)parts->numbers[1];
	int32_t nanos = (int32_t)parts->numbers[2];
	char text[HF_TIME_TEXT_MAX];
	hf_time time;

	*ret_value = NULL;
	if (seconds == 0 && nanos == 0)
		return 0;
	if (seconds < -SECONDS_MAX || seconds > SECONDS_MAX || nanos < 0 || nanos >= HF_SECOND)
		return set_broken(d, "a time that is none");
	time = seconds * HF_SECOND + nanos;
	if (micro)
		hf_time_format_micro(time, text);
	else
		hf_time_format(time, text);
	*ret_value = hf_json_string(text);
	return 0;
}

static int parts_value(const struct decoder *d, const struct hf_schema_field *field,
		       struct hf_wire bytes, struct hf_json **ret_value)
{
	struct parts parts;
	int rc = read_parts(d, bytes, &parts);

	if (rc != 0)
		return rc;
	switch (field->type) {
	case HF_SCHEMA_TIME:
	case HF_SCHEMA_MICRO_TIME:
		return time_value(d, &parts, field->type == HF_SCHEMA_MICRO_TIME, ret_value);
	case HF_SCHEMA_INT_OR_STRING:
		if (parts.numbers[1] == 1)
			return text_value(d, parts.bytes[3], ret_value);
		*ret_value = hf_json_int((int32_t)parts.numbers[2]);
		return 0;
	default: /* a quantity: an empty text counts as zero */
		if (parts.bytes[1].at == parts.bytes[1].end) {
			*ret_value = field->zero || field->shape != HF_SCHEMA_ONE
					     ? hf_json_string("0")
					     : NULL;
			return 0;
		}
		return text_value(d, parts.bytes[1], ret_value);
	}
}

static int number_value(const struct hf_schema_field *field, uint64_t value,
			struct hf_json **ret_value)
{
	if (field->type == HF_SCHEMA_BOOL)
		*ret_value = hf_json_bool(value != 0);
	else if (field->type == HF_SCHEMA_INT32)
		*ret_value = hf_json_int((int32_t)value);
	else
		*ret_value = hf_json_int((int64_t)value);
	return 0;
}

/* Converts a number or text. Leaves NULL in ret_value if Go would leave the field out of JSON. */
static int scalar_value(const struct decoder *d, const struct hf_schema_field *field,
			const struct hf_wire_field *entry, struct hf_json **ret_value)
{
	bool number = field->type == HF_SCHEMA_BOOL || field->type == HF_SCHEMA_INT32 ||
		      field->type == HF_SCHEMA_INT64;

	*ret_value = NULL;
	if (entry->type != (number ? HF_WIRE_VARINT : HF_WIRE_BYTES))
		return set_broken(d, "a field with a wrong wire type");
	if (number)
		return number_value(field, entry->value, ret_value);
	switch (field->type) {
	case HF_SCHEMA_STRING: return text_value(d, entry->bytes, ret_value);
	case HF_SCHEMA_BYTES: *ret_value = bytes_value(entry->bytes); return 0;
	case HF_SCHEMA_RAW: return 0;
	default: return parts_value(d, field, entry->bytes, ret_value);
	}
}

static bool is_zero(const struct hf_json *value)
{
	switch (hf_json_type(value)) {
	case HF_JSON_STRING: return *hf_json_str(value, "") == '\0';
	case HF_JSON_INT: return hf_json_i64(value, 0) == 0;
	case HF_JSON_BOOL: return !hf_json_true(value, false);
	case HF_JSON_OBJECT: return hf_json_len(value) == 0;
	default: return false;
	}
}

/* ---- messages ----------------------------------------------------------------------------- */

static int decode_message(const struct hf_schema *schema, struct hf_wire in, struct hf_json *object,
			  struct hf_error *err);

static const struct hf_schema_field *field_of(const struct hf_schema *schema, uint32_t number)
{
	for (const struct hf_schema_field *field = schema->fields; field->name != NULL; field++)
		if (field->number == number)
			return field;
	return NULL;
}

/* Decodes one field. If a field occurs twice, the later value replaces the earlier one; objects are
 * merged. */
static int decode_one(const struct decoder *d, const struct hf_schema_field *field,
		      const struct hf_wire_field *entry, struct hf_json *object)
{
	struct hf_json *value;
	int rc;

	if (field->type != HF_SCHEMA_OBJECT) {
		rc = scalar_value(d, field, entry, &value);
		if (rc == 0)
			hf_json_remove(object, field->name);
		if (rc == 0 && value != NULL && (field->zero || !is_zero(value)))
			hf_json_set(object, field->name, value);
		else
			hf_json_unref(rc == 0 ? value : NULL);
		return rc;
	}
	if (entry->type != HF_WIRE_BYTES)
		return set_broken(d, "a field with a wrong wire type");
	value = hf_json_ensure_object(object, field->name);
	rc = decode_message(field->schema, entry->bytes, value, d->err);
	if (rc == 0 && !field->zero && is_zero(value))
		hf_json_remove(object, field->name);
	return rc;
}

/* Decodes a packed list: several numbers in one field. */
static int decode_packed(const struct decoder *d, const struct hf_schema_field *field,
			 struct hf_wire in, struct hf_json *list)
{
	while (in.at < in.end) {
		struct hf_json *value;
		uint64_t number;
		if (!hf_wire_varint(&in, &number))
			return set_broken(d, "the message ends inside a field");
		(void)number_value(field, number, &value);
		hf_json_append(list, value);
	}
	return 0;
}

static int decode_item(const struct decoder *d, const struct hf_schema_field *field,
		       const struct hf_wire_field *entry, struct hf_json *object)
{
	struct hf_json *list = hf_json_ensure_array(object, field->name), *value = NULL;
	int rc;

	if (entry->type == HF_WIRE_BYTES &&
	    (field->type == HF_SCHEMA_INT32 || field->type == HF_SCHEMA_INT64))
		return decode_packed(d, field, entry->bytes, list);
	if (field->type != HF_SCHEMA_OBJECT) {
		rc = scalar_value(d, field, entry, &value);
	} else if (entry->type != HF_WIRE_BYTES) {
		rc = set_broken(d, "a field with a wrong wire type");
	} else {
		value = hf_json_object();
		rc = decode_message(field->schema, entry->bytes, value, d->err);
	}
	if (rc == 0 && value != NULL)
		hf_json_append(list, value);
	else
		hf_json_unref(value);
	return rc;
}

/* Decodes an entry of a map: a message with the key in field 1 and the value in field 2. */
static int decode_pair(const struct decoder *d, const struct hf_schema_field *field,
		       struct hf_wire in, struct hf_json *object)
{
	struct hf_json *map = hf_json_ensure_object(object, field->name), *value = NULL;
	struct hf_wire_field of_value = {.type = HF_WIRE_BYTES};
	struct hf_wire of_key = {NULL, NULL};
	HF_AUTOFREE char *key = NULL;
	int rc = 0;

	while (in.at < in.end) {
		struct hf_wire_field entry;
		rc = next_field(d, &in, &entry);
		if (rc != 0)
			return rc;
		if (entry.number == 1 && entry.type == HF_WIRE_BYTES)
			of_key = entry.bytes;
		else if (entry.number == 2)
			of_value = entry;
	}
	rc = read_text(d, of_key, &key);
	if (rc == 0)
		rc = scalar_value(d, field, &of_value, &value);
	if (rc != 0)
		return rc;
	if (hf_json_get(map, key) == NULL && hf_json_len(map) >= HF_JSON_KEYS_MAX) {
		hf_json_unref(value);
		return hf_error_set(d->err, HF_E_TOO_LARGE, "%s has more than %d keys", field->name,
				    HF_JSON_KEYS_MAX);
	}
	if (value != NULL)
		hf_json_set(map, key, value);
	return 0;
}

static int decode_field(const struct decoder *d, const struct hf_schema_field *field,
			const struct hf_wire_field *entry, struct hf_json *object)
{
	switch (field->shape) {
	case HF_SCHEMA_LIST: return decode_item(d, field, entry, object);
	case HF_SCHEMA_MAP:
	case HF_SCHEMA_INLINE:
		if (entry->type != HF_WIRE_BYTES)
			return set_broken(d, "a field with a wrong wire type");
		return field->shape == HF_SCHEMA_MAP
			       ? decode_pair(d, field, entry->bytes, object)
			       : decode_message(field->schema, entry->bytes, object, d->err);
	default: return decode_one(d, field, entry, object);
	}
}

static int decode_message(const struct hf_schema *schema, struct hf_wire in, struct hf_json *object,
			  struct hf_error *err)
{
	const struct decoder d = {.where = schema->name, .err = err};

	while (in.at < in.end) {
		const struct hf_schema_field *field;
		struct hf_wire_field entry;
		int rc = next_field(&d, &in, &entry);
		if (rc != 0)
			return rc;
		field = field_of(schema, entry.number);
		if (field != NULL)
			rc = decode_field(&d, field, &entry, object);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* ---- the envelope ------------------------------------------------------------------------- */

/* Reads a runtime.Unknown. Field 1 is the TypeMeta, field 2 holds the object, and the further
 * fields say how the object is encoded. */
static int decode_envelope(const struct decoder *d, struct hf_wire in, char *ret_type[2],
			   struct hf_wire *ret_raw)
{
	struct parts unknown, type = {0};
	int rc = read_parts(d, in, &unknown);

	if (rc == 0)
		rc = read_parts(d, unknown.bytes[1], &type);
	if (rc == 0 && unknown.bytes[3].at != unknown.bytes[3].end)
		rc = set_broken(d, "the content has an unknown encoding");
	for (int i = 0; rc == 0 && i < 2; i++)
		rc = read_text(d, type.bytes[i + 1], &ret_type[i]);
	*ret_raw = unknown.bytes[2];
	return rc;
}

int hf_protobuf_decode(const void *bytes, size_t len, struct hf_json **ret_object,
		       struct hf_error *err)
{
	static const unsigned char magic[] = {'k', '8', 's', 0};
	const struct decoder d = {.where = "Unknown", .err = err};
	struct hf_wire in = {bytes, bytes}, raw = {NULL, NULL};
	const struct hf_schema *schema;
	HF_AUTOFREE char *api_version = NULL;
	HF_AUTOFREE char *kind = NULL;
	char *type[2] = {NULL, NULL};
	struct hf_json *object;
	int rc;

	if (len > HF_JSON_BYTES_MAX)
		return hf_error_set(err, HF_E_TOO_LARGE, "more than %zu bytes", HF_JSON_BYTES_MAX);
	if (len < sizeof(magic) || memcmp(bytes, magic, sizeof(magic)) != 0)
		return set_broken(&d, "the message does not begin with 'k8s' and a zero byte");
	in.end += len;
	in.at += sizeof(magic);
	rc = decode_envelope(&d, in, type, &raw);
	api_version = type[0];
	kind = type[1];
	if (rc != 0)
		return rc;
	schema = hf_schema_by_kind(api_version, kind);
	if (schema == NULL)
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "no kind \"%.64s\" of version \"%.64s\" is known", kind,
				    api_version);
	object = hf_json_object();
	hf_json_set_str(object, "kind", kind);
	hf_json_set_str(object, "apiVersion", api_version);
	rc = decode_message(schema, raw, object, err);
	if (rc == 0)
		*ret_object = object;
	else
		hf_json_unref(object);
	return rc;
}
