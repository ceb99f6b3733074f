/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

/*
 * Kubernetes' own Go types wrote the samples in tests/fixtures/protobuf (JSON) and
 * tests/fuzz/corpus/protobuf (protobuf): each kind once with every field set and once with none.
 */
static const char *json_folder, *protobuf_folder;

static const char *const kinds[] = {
	"binding",
	"config_map",
	"delete_options",
	"event",
	"lease",
	"namespace",
	"node",
	"pod",
	"persistent_volume_claim",
	"scale",
	"secret",
	"service",
	"service_account",
};

static void read_sample(const char *folder, const char *name, const char *suffix,
			struct hf_strbuf *sb)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s%s", folder, name, suffix);
	struct hf_error err;

	assert_ok(hf_fs_read(path, sb, &err), &err);
}

/* True for a value that the decoder leaves out: fieldsV1 of managedFields, and what Go writes for
 * an empty list, an empty struct or a missing time. */
static bool is_nothing(const char *key, const struct hf_json *value)
{
	enum hf_json_type type = hf_json_type(value);

	return hf_streq(key, "fieldsV1") || type == HF_JSON_NULL ||
	       (type == HF_JSON_OBJECT && hf_json_len(value) == 0);
}

static struct hf_json *without_nothing(const struct hf_json *value)
{
	struct hf_json *member, *copy;
	const char *key;

	if (hf_json_type(value) == HF_JSON_ARRAY) {
		copy = hf_json_array();
		for (size_t i = 0; i < hf_json_len(value); i++)
			hf_json_append(copy, without_nothing(hf_json_item(value, i)));
		return copy;
	}
	if (hf_json_type(value) != HF_JSON_OBJECT)
		return hf_json_copy(value);
	copy = hf_json_object();
	for (void *it = NULL; (it = hf_json_next(value, it, &key, &member)) != NULL;) {
		struct hf_json *inner = without_nothing(member);
		if (is_nothing(key, inner))
			hf_json_unref(inner);
		else
			hf_json_set(copy, key, inner);
	}
	return copy;
}

static void check_sample(const char *name)
{
	HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(1 << 20), text = HF_STRBUF_INIT(1 << 20);
	HF_AUTO_STRBUF got = HF_STRBUF_INIT(1 << 20), want = HF_STRBUF_INIT(1 << 20);
	HF_AUTO_JSON object = NULL;
	HF_AUTO_JSON sample = NULL;
	struct hf_error err;

	read_sample(protobuf_folder, name, ".pb", &bytes);
	read_sample(json_folder, name, ".json", &text);
	assert_ok(hf_protobuf_decode(bytes.data, bytes.len, &object, &err), &err);
	assert_ok(hf_json_parse(text.data, text.len, NULL, &sample, &err), &err);
	HF_AUTO_JSON a = without_nothing(object);
	HF_AUTO_JSON b = without_nothing(sample);
	hf_json_write(a, HF_JSON_SORTED, &got);
	hf_json_write(b, HF_JSON_SORTED, &want);
	assert_string_equal(got.data, want.data);
}

static void every_field_of_every_kind_is_read_as_go_writes_it(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		check_sample(kinds[i]);
}

static void an_object_without_fields_has_none(void **state)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++) {
		HF_AUTOFREE char *name = hf_xasprintf("%s_empty", kinds[i]);
		if (!hf_streq(kinds[i], "event") && !hf_streq(kinds[i], "node"))
			check_sample(name);
	}
}

/* ---- hand-written bytes ---------------------------------------------------------------------- */

#define HEAD_NAMESPACE "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace"

static int decode(const char *bytes, size_t len, struct hf_json **ret_object, struct hf_error *err)
{
	/* The copy is a memory block of exactly this size, so the sanitizer reports a read past the
	 * end. */
	HF_AUTOFREE char *exact = hf_xstrndup("", 0);

	exact = hf_xrealloc(exact, len + 1);
	memcpy(exact, bytes, len);
	exact = hf_xrealloc(exact, len > 0 ? len : 1);
	return hf_protobuf_decode(exact, len, ret_object, err);
}

#define NAMESPACE(body) HEAD_NAMESPACE body, sizeof(HEAD_NAMESPACE body) - 1

static void names_and_labels_are_read(void **state)
{
	HF_AUTO_JSON object = NULL;
	struct hf_error err;

	assert_ok(decode(NAMESPACE("\x12\x12\x0a\x10\x0a\x04team\x5a\x08\x0a\x01"
				   "a\x12\x03"
				   "b c"),
			 &object, &err),
		  &err);
	assert_string_equal(hf_json_path_str(object, "kind", NULL), "Namespace");
	assert_string_equal(hf_json_path_str(object, "apiVersion", NULL), "v1");
	assert_string_equal(hf_json_path_str(object, "metadata", "name", NULL), "team");
	assert_string_equal(hf_json_path_str(object, "metadata", "labels", "a", NULL), "b c");
}

static void what_stands_twice_is_the_last_and_objects_merge(void **state)
{
	HF_AUTO_JSON object = NULL;
	struct hf_error err;

	/* A message in which metadata occurs twice: first name "a" and uid "u", then name "b" and
	 * an empty uid. */
	assert_ok(decode(NAMESPACE("\x12\x0f\x0a\x06\x0a\x01"
				   "a\x2a\x01u\x0a\x05\x0a\x01"
				   "b\x2a\x00"),
			 &object, &err),
		  &err);
	assert_string_equal(hf_json_path_str(object, "metadata", "name", NULL), "b");
	assert_null(hf_json_path(object, "metadata", "uid", NULL));
}

static void unknown_fields_are_passed_over(void **state)
{
	HF_AUTO_JSON object = NULL;
	struct hf_error err;

	/* A message with the unknown field 100 in all four wire types (varint, eight bytes, bytes,
	 * four bytes) before a name. */
	assert_ok(decode(NAMESPACE("\x12\x1e\xa0\x06\x96\x01\xa1\x06"
				   "12345678\xa2\x06\x02xy\xa5\x06"
				   "1234\x0a\x03\x0a\x01"
				   "a"),
			 &object, &err),
		  &err);
	assert_string_equal(hf_json_path_str(object, "metadata", "name", NULL), "a");
}

static void what_is_broken_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *message;
	} rows[] = {
		{"", 0, "does not begin with 'k8s'"},
		{"k8s", 3, "does not begin with 'k8s'"},
		{"{\"kind\":\"Pod\"}", 14, "does not begin with 'k8s'"},
		{"k8s\0", 4, "no kind \"\""},
		{"k8s\0\x0a", 5, "the message ends inside a field"},
		{"k8s\0\x0a\x7f", 6, "the message ends inside a field"},
		{"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 15,
		 "the message ends inside a field"},
		{"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 15,
		 "the message ends inside a field"},
		{"k8s\0\x00", 5, "the next bytes are no field"},
		{"k8s\0\x80", 5, "the next bytes are no field"},
		{"k8s\0\x0b", 5, "an undefined wire type"},
		{"k8s\0\x0f", 5, "an undefined wire type"},
		{"k8s\0\x0a\x08\x0a\x02v1\x12\x02Oh", 14, "no kind \"Oh\" of version \"v1\""},
		{NAMESPACE("\x1a\x04gzip"), "unknown encoding"},
		{NAMESPACE("\x12\x02\x08\x01"), "Namespace: a field with a wrong wire type"},
		{NAMESPACE("\x12\x04\x0a\x02\x08\x01"),
		 "ObjectMeta: a field with a wrong wire type"},
		{NAMESPACE("\x12\x05\x0a\x03\x0a\x01\xff"), "a text is not UTF-8"},
		{NAMESPACE("\x12\x06\x0a\x04\x0a\x02"
			   "a\0"),
		 "a text is not UTF-8"},
		{NAMESPACE("\x12\x06\x0a\x05\x0a\x02"
			   "ab"),
		 "Namespace: the message ends inside a field"},
		/* A time in the year 300,000. */
		{NAMESPACE("\x12\x0b\x0a\x09\x42\x07\x08\x80\xc0\xca\xf3\x84\x22"),
		 "a time that is none"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		HF_AUTO_JSON object = NULL;
		struct hf_error err = {0};
		assert_code(decode(rows[i].bytes, rows[i].len, &object, &err), HF_E_BAD_REQUEST);
		if (strstr(err.text, rows[i].message) == NULL)
			fail_msg("row %zu: '%s', expected '%s'", i, err.text, rows[i].message);
		assert_null(object);
	}
}

static void a_sample_cut_anywhere_does_no_harm(void **state)
{
	HF_AUTO_STRBUF bytes = HF_STRBUF_INIT(1 << 20);

	read_sample(protobuf_folder, "service", ".pb", &bytes);
	for (size_t len = 0; len < bytes.len; len++) {
		HF_AUTO_JSON object = NULL;
		struct hf_error err;
		/* A message that is cut at some byte may still be valid, so only errors are
		 * counted. */
		if (decode(bytes.data, len, &object, &err) != 0)
			assert_int_equal(err.code, HF_E_BAD_REQUEST);
	}
}

static void a_map_has_a_limit(void **state)
{
	HF_AUTO_STRBUF map = HF_STRBUF_INIT(1 << 20), bytes = HF_STRBUF_INIT(1 << 20);
	HF_AUTO_JSON object = NULL;
	struct hf_error err;

	for (int i = 0; i <= HF_JSON_KEYS_MAX; i++)
		hf_strbuf_addf(&map, "\x12\x0a\x0a\x05%05d\x12\x01x", i);
	hf_strbuf_add(&bytes,
		      "k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
		      "ConfigMap\x12",
		      22);
	for (size_t left = map.len; left > 0 || bytes.len == 22; left >>= 7)
		hf_strbuf_addch(&bytes, (char)((left & 127) | (left > 127 ? 128 : 0)));
	hf_strbuf_add(&bytes, map.data, map.len);
	assert_code(hf_protobuf_decode(bytes.data, bytes.len, &object, &err), HF_E_TOO_LARGE);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_of_every_kind_is_read_as_go_writes_it),
		cmocka_unit_test(an_object_without_fields_has_none),
		cmocka_unit_test(names_and_labels_are_read),
		cmocka_unit_test(what_stands_twice_is_the_last_and_objects_merge),
		cmocka_unit_test(unknown_fields_are_passed_over),
		cmocka_unit_test(what_is_broken_is_refused),
		cmocka_unit_test(a_sample_cut_anywhere_does_no_harm),
		cmocka_unit_test(a_map_has_a_limit),
	};

	if (argc != 3) {
		fprintf(stderr, "usage: protobuf_test JSON-FOLDER PROTOBUF-FOLDER\n");
		return 2;
	}
	json_folder = argv[1];
	protobuf_folder = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
