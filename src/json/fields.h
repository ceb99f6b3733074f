/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_JSON_FIELDS_H
#define HF_JSON_FIELDS_H

#include "base/arena.h"
#include "base/time.h"
#include "json/doc.h"

/*
 * Reads a document into a plain C struct, as a constant table describes it.
 *
 *     struct container { uint64_t present; const char *name, *image; int32_t port; };
 *     enum { CONTAINER_NAME, CONTAINER_IMAGE, CONTAINER_PORT };
 *     static const struct hf_field container_fields[] = {
 *         [CONTAINER_NAME]  = HF_FIELD_STRING("name", struct container, name, 253, HF_FIELD_REQUIRED),
 *         [CONTAINER_IMAGE] = HF_FIELD_STRING("image", struct container, image, 0, 0),
 *         [CONTAINER_PORT]  = HF_FIELD_INT32("port", struct container, port, 1, 65535, 0),
 *     };
 *     static const struct hf_field_table container_table =
 *         HF_FIELD_TABLE(container_fields, struct container);
 *
 * Bit i of `present` is set if the field at index i of the table was read. So presence never
 * depends on a value. A member whose bit is clear is zero. A JSON null counts as an absent field,
 * as in Kubernetes.
 *
 * Every string, list and nested struct is allocated in the arena and lives as long as the arena.
 * Types are strict: a number in quotes is not a number. Every error names the field by its full
 * path, in Kubernetes' form: spec.template.spec.containers[0].image.
 *
 * The same table reads trees and texts with the same result, if hf_json_parse accepts the text.
 * Reading a text makes no tree (json/skip.h lists what it checks).
 */

#define HF_FIELDS_PER_TABLE_MAX 64 /* number of bits in `present` */

enum hf_field_type {
	HF_FIELD_TYPE_STRING, /* const char * */
	HF_FIELD_TYPE_BOOL,   /* bool */
	HF_FIELD_TYPE_INT32,  /* int32_t in [min, max]; 3.0 is an integer, 3.5 is not */
	HF_FIELD_TYPE_INT64,  /* int64_t in [min, max] */
	HF_FIELD_TYPE_TIME,   /* hf_time from RFC 3339, of 1970 or later */
	/* int64_t thousandths (base/quantity.h); the value may also be a number. */
	HF_FIELD_TYPE_QUANTITY,
	HF_FIELD_TYPE_INT_OR_STRING, /* struct hf_int_or_string */
	/* Sets only its bit in `present`, no member; the value may have any type. */
	HF_FIELD_TYPE_PRESENCE,
	HF_FIELD_TYPE_OBJECT, /* the nested struct itself */
	HF_FIELD_TYPE_LIST,   /* HF_LIST of strings, of int64_t, or of structs */
	HF_FIELD_TYPE_MAP,    /* object with any keys: HF_LIST of pairs, or of structs */
};

/* A list in a struct. items is NULL if len is 0. */
#define HF_LIST(type)                                                                              \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t len;                                                                        \
	}

struct hf_int_or_string {
	const char *string; /* the value if it is a string; NULL: the value is the integer */
	int32_t integer;
};

/* One entry of a map of strings or quantities. Entries are in the document's order. */
struct hf_field_pair {
	const char *key;
	const char *value;
	/* in a map of quantities: the quantity in thousandths; `value` has the text as written */
	int64_t milli;
};

enum hf_field_flags {
	HF_FIELD_REQUIRED = 1 << 0, /* a missing field is a problem ("Required value") */
	HF_FIELD_NONEMPTY = 1 << 1, /* an empty string, list or map counts as absent */
	HF_FIELD_DOTTED = 1 << 2,   /* paths print a key of this map as a.key, not a[key] */
};

struct hf_field_table;

struct hf_field {
	const char *name;
	size_t name_len;
	enum hf_field_type type;
	enum hf_field_type item; /* LIST and MAP: type of the items */
	unsigned flags;
	size_t offset; /* offset of the member in the struct */
	/* Integers: the range; other types: max is the limit of bytes or entries. */
	int64_t min, max;
	const struct hf_field_table *table; /* OBJECT, and LIST or MAP of structs */
};

struct hf_field_table {
	const struct hf_field *fields;
	size_t len;
	size_t size;           /* size of the struct, in bytes */
	size_t present_offset; /* offset of the member `uint64_t present` */
	size_t key_offset;     /* offset of the member `const char *key`, for structs in a MAP */
};

#define HF_FIELD_TABLE(array, type)                                                                \
	{                                                                                          \
		.fields = (array), .len = HF_ARRAY_LEN(array), .size = sizeof(type),               \
		.present_offset = offsetof(type, present), .key_offset = 0                         \
	}
/* For the entries of a MAP: the struct has a member const char *key, which gets the entry's key. */
#define HF_FIELD_TABLE_KEYED(array, type)                                                          \
	{                                                                                          \
		.fields = (array), .len = HF_ARRAY_LEN(array), .size = sizeof(type),               \
		.present_offset = offsetof(type, present), .key_offset = offsetof(type, key)       \
	}

/* clang-format off: it would break the rows */
/* Rows of a table. HF_FIELD_OFFSET refuses a member of another type at compile time. */
#define HF_FIELD_OFFSET(type, member, want)                                                        \
	(offsetof(type, member) +                                                                  \
	 0 * sizeof(char[_Generic(&((type *)0)->member, want * : 1, default                        \
				  : -1)]))
#define HF_FIELD_ROW_(key, kind, flag_bits)                                                        \
	.name = (key), .name_len = sizeof(key) - 1, .type = HF_FIELD_TYPE_##kind,                  \
	.flags = (flag_bits)

/* bytes_max 0: no limit for this field. */
#define HF_FIELD_STRING(key, type, member, bytes_max, flag_bits)                                   \
	{                                                                                          \
		HF_FIELD_ROW_(key, STRING, flag_bits),                                             \
			.offset = HF_FIELD_OFFSET(type, member, const char *), .max = (bytes_max)  \
	}
#define HF_FIELD_BOOL(key, type, member, flag_bits)                                                \
	{                                                                                          \
		HF_FIELD_ROW_(key, BOOL, flag_bits), .offset = HF_FIELD_OFFSET(type, member, bool) \
	}
#define HF_FIELD_INT32(key, type, member, lowest, highest, flag_bits)                              \
	{                                                                                          \
		HF_FIELD_ROW_(key, INT32, flag_bits),                                              \
			.offset = HF_FIELD_OFFSET(type, member, int32_t), .min = (lowest),         \
			.max = (highest)                                                           \
	}
#define HF_FIELD_INT64(key, type, member, lowest, highest, flag_bits)                              \
	{                                                                                          \
		HF_FIELD_ROW_(key, INT64, flag_bits),                                              \
			.offset = HF_FIELD_OFFSET(type, member, int64_t), .min = (lowest),         \
			.max = (highest)                                                           \
	}
#define HF_FIELD_TIME(key, type, member, flag_bits)                                                \
	{                                                                                          \
		HF_FIELD_ROW_(key, TIME, flag_bits),                                               \
			.offset = HF_FIELD_OFFSET(type, member, hf_time)                           \
	}
#define HF_FIELD_QUANTITY(key, type, member, flag_bits)                                            \
	{                                                                                          \
		HF_FIELD_ROW_(key, QUANTITY, flag_bits),                                           \
			.offset = HF_FIELD_OFFSET(type, member, int64_t)                           \
	}
#define HF_FIELD_INT_OR_STRING(key, type, member, flag_bits)                                       \
	{                                                                                          \
		HF_FIELD_ROW_(key, INT_OR_STRING, flag_bits),                                      \
			.offset = HF_FIELD_OFFSET(type, member, struct hf_int_or_string)           \
	}
#define HF_FIELD_PRESENCE(key, flag_bits)                                                          \
	{                                                                                          \
		HF_FIELD_ROW_(key, PRESENCE, flag_bits)                                            \
	}
#define HF_FIELD_OBJECT(key, type, member, nested, flag_bits)                                      \
	{                                                                                          \
		HF_FIELD_ROW_(key, OBJECT, flag_bits), .offset = offsetof(type, member),           \
						       .table = (nested)                           \
	}
/* member: HF_LIST(const char *) */
#define HF_FIELD_STRINGS(key, type, member, len_max, flag_bits)                                    \
	{                                                                                          \
		HF_FIELD_ROW_(key, LIST, flag_bits), .item = HF_FIELD_TYPE_STRING,                 \
						     .offset = offsetof(type, member),             \
						     .max = (len_max)                              \
	}
/* member: HF_LIST(int64_t) */
#define HF_FIELD_INTS(key, type, member, len_max, flag_bits)                                       \
	{                                                                                          \
		HF_FIELD_ROW_(key, LIST, flag_bits), .item = HF_FIELD_TYPE_INT64,                  \
						     .offset = offsetof(type, member),             \
						     .max = (len_max)                              \
	}
/* member: HF_LIST(struct …) */
#define HF_FIELD_OBJECTS(key, type, member, nested, len_max, flag_bits)                            \
	{                                                                                          \
		HF_FIELD_ROW_(key, LIST, flag_bits), .item = HF_FIELD_TYPE_OBJECT,                 \
						     .offset = offsetof(type, member),             \
						     .max = (len_max), .table = (nested)           \
	}
/* member: HF_LIST(struct hf_field_pair) */
#define HF_FIELD_STRING_MAP(key, type, member, len_max, flag_bits)                                 \
	{                                                                                          \
		HF_FIELD_ROW_(key, MAP, flag_bits), .item = HF_FIELD_TYPE_STRING,                  \
						    .offset = offsetof(type, member),              \
						    .max = (len_max)                               \
	}
#define HF_FIELD_QUANTITY_MAP(key, type, member, len_max, flag_bits)                               \
	{                                                                                          \
		HF_FIELD_ROW_(key, MAP, flag_bits), .item = HF_FIELD_TYPE_QUANTITY,                \
						    .offset = offsetof(type, member),              \
						    .max = (len_max)                               \
	}
/* member: HF_LIST(struct …), in the document's order; nested must be made with
 * HF_FIELD_TABLE_KEYED */
#define HF_FIELD_OBJECT_MAP(key, type, member, nested, len_max, flag_bits)                         \
	{                                                                                          \
		HF_FIELD_ROW_(key, MAP, flag_bits), .item = HF_FIELD_TYPE_OBJECT,                  \
						    .offset = offsetof(type, member),              \
						    .max = (len_max), .table = (nested)            \
	}

/* clang-format on */

/* Example: if (hf_field_has(c->present, CONTAINER_PORT)) … */
static inline bool hf_field_has(uint64_t present, unsigned index)
{
	return (present >> index & 1) != 0;
}

/* The member that HF_FIELD_TIME filled, or HF_TIME_NONE where the field was absent. */
static inline hf_time hf_field_time(uint64_t present, unsigned index, hf_time time)
{
	return hf_field_has(present, index) ? time : HF_TIME_NONE;
}

/* The value of a key in a map of strings, or NULL. */
const char *hf_field_pair_find(const struct hf_field_pair *items, size_t len, const char *key);

enum hf_field_problem {
	HF_FIELD_PROBLEM_REQUIRED, /* "Required value" */
	HF_FIELD_PROBLEM_TYPE,     /* "Invalid value: …: must be of type integer" */
	HF_FIELD_PROBLEM_VALUE,    /* "Invalid value: …: must be greater than or equal to 1" */
	HF_FIELD_PROBLEM_TOO_MANY, /* "Too many: 70: must have at most 64 items" */
	HF_FIELD_PROBLEM_UNKNOWN,  /* "unknown field", only if strict */
};

struct hf_fields_options {
	/* path of the value that is read, for error texts, such as "spec"; NULL or "": the
	 * document */
	const char *root;
	bool strict; /* fields that are not in a table are problems */
	/* A field with a problem counts as absent, and nothing is reported. For objects that an
	 * API server has validated. An object or list keeps its valid parts; an invalid item of
	 * a list is left as zeros, and items beyond the limit are dropped. Invalid text still
	 * ends the reading. */
	bool lenient;
	/* Called for each problem, in the document's order, and for missing required fields at
	 * the end of their object. Reading then continues. If it is NULL, reading stops at the
	 * first problem. */
	void (*problem)(void *arg, enum hf_field_problem kind, const char *path, const char *text);
	void *arg;
};

/* Reads value into the struct at ret_struct, and overwrites all table->size bytes. HF_E_INVALID:
 * a problem was found; err holds the first one as "path: text". HF_E_TOO_LARGE: the arena is too
 * small. After a failure ret_struct is unchanged. options may be NULL. */
int hf_fields_read(const struct hf_field_table *table, const struct hf_json *value,
		   const struct hf_fields_options *options, struct hf_arena *arena,
		   void *ret_struct, struct hf_error *err) HF_MUST_CHECK;

/* The source of hf_fields_read_text, which reads like hf_fields_read but from a text.
 * HF_E_BAD_REQUEST: the part that was read is not valid JSON. */
struct hf_fields_text {
	const char *bytes;
	size_t len;
};
int hf_fields_read_text(const struct hf_field_table *table, const struct hf_fields_text *text,
			const struct hf_fields_options *options, struct hf_arena *arena,
			void *ret_struct, struct hf_error *err) HF_MUST_CHECK;

/* Reads like hf_fields_read, from the document's text or its tree, whichever exists. It never makes
 * a tree. */
int hf_fields_read_doc(const struct hf_field_table *table, struct hf_doc *doc,
		       const struct hf_fields_options *options, struct hf_arena *arena,
		       void *ret_struct, struct hf_error *err) HF_MUST_CHECK;

#endif
