/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/test.h"

#include "base/strbuf.h"
#include "json/fields.h"

#include <string.h>

struct env {
	uint64_t present;
	const char *name, *value;
};
enum { ENV_NAME, ENV_VALUE };
static const struct hf_field env_fields[] = {
	[ENV_NAME] =
		HF_FIELD_STRING("name", struct env, name, 8, HF_FIELD_REQUIRED | HF_FIELD_NONEMPTY),
	[ENV_VALUE] = HF_FIELD_STRING("value", struct env, value, 0, 0),
};
static const struct hf_field_table env_table = HF_FIELD_TABLE(env_fields, struct env);

struct limits {
	uint64_t present;
	int64_t cpu_milli;
	HF_LIST(struct hf_field_pair) limits;
};
enum { LIMITS_CPU, LIMITS_LIMITS };
static const struct hf_field limits_fields[] = {
	[LIMITS_CPU] = HF_FIELD_QUANTITY("cpu", struct limits, cpu_milli, 0),
	[LIMITS_LIMITS] = HF_FIELD_QUANTITY_MAP("limits", struct limits, limits, 4, 0),
};
static const struct hf_field_table limits_table = HF_FIELD_TABLE(limits_fields, struct limits);

struct replica {
	uint64_t present;
	const char *key;
	int32_t replicas;
	HF_LIST(struct env) env;
};
enum { REPLICA_REPLICAS, REPLICA_ENV };
static const struct hf_field replica_fields[] = {
	[REPLICA_REPLICAS] = HF_FIELD_INT32("replicas", struct replica, replicas, 0, 100, 0),
	[REPLICA_ENV] = HF_FIELD_OBJECTS("env", struct replica, env, &env_table, 3, 0),
};
static const struct hf_field_table replica_table =
	HF_FIELD_TABLE_KEYED(replica_fields, struct replica);

struct thing {
	uint64_t present;
	const char *name;
	bool suspend;
	int64_t big;
	hf_time started;
	struct hf_int_or_string port;
	struct limits resources;
	HF_LIST(const char *) args;
	HF_LIST(int64_t) codes;
	HF_LIST(struct hf_field_pair) labels;
	HF_LIST(struct replica) replicas;
	HF_LIST(struct replica) dotted;
};
enum {
	THING_NAME,
	THING_SUSPEND,
	THING_BIG,
	THING_STARTED,
	THING_PORT,
	THING_RESOURCES,
	THING_ARGS,
	THING_CODES,
	THING_LABELS,
	THING_REPLICAS,
	THING_DOTTED,
	THING_EXTRA,
};
static const struct hf_field thing_fields[] = {
	[THING_NAME] = HF_FIELD_STRING("name", struct thing, name, 16, HF_FIELD_REQUIRED),
	[THING_SUSPEND] = HF_FIELD_BOOL("suspend", struct thing, suspend, 0),
	[THING_BIG] = HF_FIELD_INT64("big", struct thing, big, INT64_MIN, INT64_MAX, 0),
	[THING_STARTED] = HF_FIELD_TIME("started", struct thing, started, 0),
	[THING_PORT] = HF_FIELD_INT_OR_STRING("port", struct thing, port, 0),
	[THING_RESOURCES] = HF_FIELD_OBJECT("resources", struct thing, resources, &limits_table, 0),
	[THING_ARGS] = HF_FIELD_STRINGS("args", struct thing, args, 6, HF_FIELD_NONEMPTY),
	[THING_CODES] = HF_FIELD_INTS("codes", struct thing, codes, 8, 0),
	[THING_LABELS] = HF_FIELD_STRING_MAP("labels", struct thing, labels, 8, 0),
	[THING_REPLICAS] =
		HF_FIELD_OBJECT_MAP("replicaSpecs", struct thing, replicas, &replica_table, 8, 0),
	[THING_DOTTED] = HF_FIELD_OBJECT_MAP("dotted", struct thing, dotted, &replica_table, 8,
					     HF_FIELD_DOTTED),
	[THING_EXTRA] = HF_FIELD_PRESENCE("extra", 0),
};
static const struct hf_field_table thing_table = HF_FIELD_TABLE(thing_fields, struct thing);

static void collect_problem(void *arg, enum hf_field_problem kind, const char *path,
			    const char *text)
{
	static const char letters[] = "RTVMU";

	hf_strbuf_addf(arg, "%c %s: %s\n", letters[kind], path, text);
}

/* Reads both forms into two structs, which must agree. Returns the result of the tree. */
static int read_both(const char *text, const struct hf_fields_options *options,
		     struct hf_arena *arena, struct thing *ret_thing, struct hf_error *err)
{
	HF_AUTO_JSON tree = NULL;
	struct hf_error text_err, parse_err;
	struct thing from_text;
	const struct hf_fields_text span = {text, strlen(text)};

	assert_ok(hf_json_parse(text, strlen(text), NULL, &tree, &parse_err), &parse_err);
	int rc = hf_fields_read(&thing_table, tree, options, arena, ret_thing, err);
	int text_rc =
		hf_fields_read_text(&thing_table, &span, options, arena, &from_text, &text_err);
	if (rc != text_rc)
		fail_msg("%s: %s but %s", text, rc ? err->text : "read", text_err.text);
	if (rc != 0) {
		assert_string_equal(err->text, text_err.text);
	} else {
		assert_int_equal(ret_thing->present, from_text.present);
		assert_int_equal(ret_thing->args.len, from_text.args.len);
		assert_int_equal(ret_thing->labels.len, from_text.labels.len);
	}
	return rc;
}

static void a_whole_document_fills_the_struct(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	struct thing t;
	struct hf_error err;

	assert_ok(
		read_both("{\"name\":\"n\\u00e4\",\"suspend\":false,\"big\":9223372036854775807,"
			  "\"started\":\"1970-01-01T00:00:01Z\",\"port\":\"http\","
			  "\"resources\":{\"cpu\":0.5,\"limits\":{\"memory\":\"1Ki\",\"cpu\":2}},"
			  "\"args\":[\"a\",\"b\",\"c\",\"d\",\"e\"],\"codes\":[1,2.0,-3],"
			  "\"labels\":{\"a/b\":\"1\",\"c\":\"\"},"
			  "\"replicaSpecs\":{\"Worker\":{\"replicas\":3,\"env\":[{\"name\":\"E\"},"
			  "{\"value\":\"v\",\"name\":\"F\"}]},\"Master\":{}},"
			  "\"extra\":[{}],\"unknown\":{\"deep\":[1,{\"x\":\"}\"}]}}",
			  NULL, arena, &t, &err),
		&err);
	assert_string_equal(t.name, "n\xc3\xa4");
	assert_true(hf_field_has(t.present, THING_SUSPEND));
	assert_false(t.suspend);
	assert_true(t.big == INT64_MAX);
	assert_true(t.started == HF_SECOND);
	assert_string_equal(t.port.string, "http");
	assert_int_equal(t.resources.cpu_milli, 500);
	assert_int_equal(t.resources.limits.len, 2);
	assert_string_equal(t.resources.limits.items[0].value, "1Ki");
	assert_int_equal(t.resources.limits.items[0].milli, 1024000);
	assert_string_equal(t.resources.limits.items[1].value, "2");
	assert_int_equal(t.resources.limits.items[1].milli, 2000);
	assert_int_equal(t.args.len, 5);
	assert_string_equal(t.args.items[4], "e");
	assert_int_equal(t.codes.len, 3);
	assert_int_equal(t.codes.items[1], 2);
	assert_int_equal(t.codes.items[2], -3);
	assert_string_equal(hf_field_pair_find(t.labels.items, t.labels.len, "a/b"), "1");
	assert_string_equal(hf_field_pair_find(t.labels.items, t.labels.len, "c"), "");
	assert_null(hf_field_pair_find(t.labels.items, t.labels.len, "d"));
	assert_int_equal(t.replicas.len, 2);
	assert_string_equal(t.replicas.items[0].key, "Worker");
	assert_int_equal(t.replicas.items[0].replicas, 3);
	assert_int_equal(t.replicas.items[0].env.len, 2);
	assert_string_equal(t.replicas.items[0].env.items[1].value, "v");
	assert_false(hf_field_has(t.replicas.items[0].env.items[0].present, ENV_VALUE));
	assert_string_equal(t.replicas.items[1].key, "Master");
	assert_int_equal(t.replicas.items[1].present, 0);
	assert_true(hf_field_has(t.present, THING_EXTRA));
	assert_false(hf_field_has(t.present, THING_DOTTED));
}

static void absent_null_and_empty_differ_by_the_bit(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	struct thing t;
	struct hf_error err;

	assert_ok(read_both("{\"name\":\"\",\"big\":0,\"suspend\":null,\"args\":[],\"codes\":[],"
			    "\"labels\":{\"a\":null},\"port\":8080,\"extra\":null}",
			    NULL, arena, &t, &err),
		  &err);
	assert_true(hf_field_has(t.present, THING_NAME));
	assert_true(hf_field_has(t.present, THING_BIG));
	assert_false(hf_field_has(t.present, THING_SUSPEND));
	/* args is empty, and its field has the flag NONEMPTY. */
	assert_false(hf_field_has(t.present, THING_ARGS));
	assert_true(hf_field_has(t.present, THING_CODES));
	assert_true(hf_field_has(t.present, THING_LABELS));
	assert_int_equal(t.labels.len, 0);
	assert_null(t.port.string);
	assert_int_equal(t.port.integer, 8080);
	assert_false(hf_field_has(t.present, THING_EXTRA));
	assert_false(hf_field_has(t.present, THING_RESOURCES));
}

static void the_first_problem_ends_the_read_and_names_its_path(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"{}", "name: Required value"},
		{"{\"name\":null}", "name: Required value"},
		{"[]", "Invalid value: \"array\": must be of type object"},
		{"null", "Invalid value: \"null\": must be of type object"},
		{"{\"name\":5}", "name: Invalid value: 5: must be of type string"},
		{"{\"name\":\"12345678901234567\"}",
		 "name: Too long: may not be more than 16 bytes"},
		{"{\"suspend\":\"true\"}",
		 "suspend: Invalid value: \"true\": must be of type boolean"},
		{"{\"big\":1.5}", "big: Invalid value: 1.5: must be of type integer"},
		{"{\"big\":1e19}",
		 "big: Invalid value: 10000000000000000000.0: must be of type integer"},
		{"{\"big\":\"1\"}", "big: Invalid value: \"1\": must be of type integer"},
		{"{\"started\":\"noon\"}",
		 "started: Invalid value: \"noon\": must be a time such as 2006-01-02T15:04:05Z"},
		{"{\"started\":\"1678-01-01T00:00:00Z\"}",
		 "started: Invalid value: \"1678-01-01T00:00:00Z\": must be a time such as "
		 "2006-01-02T15:04:05Z"},
		{"{\"started\":5}", "started: Invalid value: 5: must be of type string"},
		{"{\"port\":true}", "port: Invalid value: true: must be of type integer or string"},
		{"{\"port\":2147483648}", "port: Invalid value: 2147483648: must fit 32 bits"},
		{"{\"resources\":{\"cpu\":\"fast\"}}",
		 "resources.cpu: Invalid value: \"fast\": must be a quantity such as 500m or 2Gi"},
		{"{\"resources\":{\"limits\":{\"m\":[]}}}",
		 "resources.limits[m]: Invalid value: \"array\": must be of type string or number"},
		{"{\"resources\":[]}",
		 "resources: Invalid value: \"array\": must be of type object"},
		{"{\"args\":\"a\"}", "args: Invalid value: \"a\": must be of type array"},
		{"{\"args\":[\"a\",null]}",
		 "args[1]: Invalid value: \"null\": must be of type string"},
		{"{\"args\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",{}]}",
		 "args: Too many: 8: must have at most 6 items"},
		{"{\"labels\":{\"a.b/c\":1}}",
		 "labels[a.b/c]: Invalid value: 1: must be of type string"},
		{"{\"replicaSpecs\":{\"Worker\":{\"replicas\":-1}}}",
		 "replicaSpecs[Worker].replicas: Invalid value: -1: must be greater than or equal "
		 "to 0"},
		{"{\"dotted\":{\"Worker\":{\"replicas\":1000000000}}}",
		 "dotted.Worker.replicas: Invalid value: 1000000000: must be less than or equal to "
		 "100"},
		{"{\"replicaSpecs\":{\"W\":{\"env\":[{\"name\":\"a\"},{\"value\":\"x\"}]}}}",
		 "replicaSpecs[W].env[1].name: Required value"},
		{"{\"replicaSpecs\":{\"W\":{\"env\":[{\"name\":\"\"}]}}}",
		 "replicaSpecs[W].env[0].name: Required value"},
		{"{\"labels\":{\"a\\u001b\\n\":[\"x\"]}}",
		 "labels[a?\?]: Invalid value: \"array\": must be of type string"},
		{"{\"big\":\"0123456789012345678901234567890123456789012345678901234567890123\xc3\xa4\"}",
		 "big: Invalid value: "
		 "\"0123456789012345678901234567890123456789012345678901234567890123\"...: "
		 "must be of type integer"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
		struct thing t, before;
		struct hf_error err;
		memset(&t, 0x5a, sizeof(t));
		before = t;
		assert_code(read_both(cases[i].text, NULL, arena, &t, &err), HF_E_INVALID);
		assert_string_equal(err.text, cases[i].error);
		assert_memory_equal(&t, &before, sizeof(t));
	}
}

static void all_problems_are_collected_when_asked_for(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
	struct thing t;
	struct hf_error err;
	const struct hf_fields_options options = {
		.root = "spec",
		.strict = true,
		.problem = collect_problem,
		.arg = &sb,
	};
	const char *text = "{\"suspend\":1,\"nmae\":\"x\",\"args\":[1,\"a\",{\"b\":2}],"
			   "\"replicaSpecs\":{\"W\":{\"replica\":[3],\"env\":[{},{},{},{}]}}}";
	const char *want = "T spec.suspend: Invalid value: 1: must be of type boolean\n"
			   "U spec.nmae: unknown field\n"
			   "T spec.args[0]: Invalid value: 1: must be of type string\n"
			   "T spec.args[2]: Invalid value: \"object\": must be of type string\n"
			   "U spec.replicaSpecs[W].replica: unknown field\n"
			   "R spec.replicaSpecs[W].env[0].name: Required value\n"
			   "R spec.replicaSpecs[W].env[1].name: Required value\n"
			   "R spec.replicaSpecs[W].env[2].name: Required value\n"
			   "M spec.replicaSpecs[W].env: Too many: 4: must have at most 3 items\n"
			   "R spec.name: Required value\n";

	assert_code(read_both(text, &options, arena, &t, &err), HF_E_INVALID);
	assert_string_equal(err.text, "spec.suspend: Invalid value: 1: must be of type boolean");
	/* The callback reports each problem twice: once from the tree and once from the text. */
	assert_int_equal(sb.len, 2 * strlen(want));
	assert_memory_equal(sb.data, want, strlen(want));
	assert_string_equal(sb.data + strlen(want), want);
}

static void in_lenient_mode_an_invalid_field_counts_as_absent(void **state)
{
	static const struct hf_fields_options lenient = {.lenient = true};
	static const char text[] =
		"{\"suspend\":\"yes\",\"big\":7,\"resources\":{\"cpu\":[],\"limits\":{\"a\":1}},"
		"\"replicaSpecs\":{\"A\":{\"replicas\":\"3\",\"env\":[{\"name\":\"x\"},5,{\"value\":1},"
		"{\"name\":\"over\"}]}}}";
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	HF_AUTO_DOC doc = hf_doc_from_text(text, strlen(text));
	struct thing thing;
	struct hf_error err;

	assert_ok(hf_fields_read_doc(&thing_table, doc, &lenient, arena, &thing, &err), &err);
	assert_false(hf_field_has(thing.present, THING_NAME));
	assert_false(hf_field_has(thing.present, THING_SUSPEND));
	assert_int_equal(thing.big, 7);
	assert_true(hf_field_has(thing.present, THING_RESOURCES));
	assert_false(hf_field_has(thing.resources.present, LIMITS_CPU));
	assert_int_equal(thing.resources.limits.len, 1);
	assert_int_equal(thing.replicas.len, 1);
	assert_false(hf_field_has(thing.replicas.items[0].present, REPLICA_REPLICAS));
	assert_int_equal(thing.replicas.items[0].env.len, 3);
	assert_string_equal(thing.replicas.items[0].env.items[0].name, "x");
	assert_null(thing.replicas.items[0].env.items[1].name);
	assert_null(thing.replicas.items[0].env.items[2].value);
}

static void invalid_text_is_refused_with_its_position(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "line 1, column 1: not valid JSON"},
		{"{", "line 1, column 2: not valid JSON"},
		{"{\"name\":\"a\"", "line 1, column 12: not valid JSON"},
		{"{\"name\":\"a\"}\n x", "line 2, column 2: text after the value"},
		{"{\"name\":\"a\",\n\"name\":\"b\"}", "line 2, column 8: duplicate key"},
		{"{\"name\":\"\xff\"}", "not valid JSON"},
		{"{\"name\":\"\\x\"}", "not valid JSON"},
		{"{\"name\":\"\\ud800\"}", "not valid JSON"},
		{"{\"name\":\"a\nb\"}", "not valid JSON"},
		{"{\"name\":\"a\",}", "not valid JSON"},
		{"{\"name\" \"a\"}", "not valid JSON"},
		{"{\"name\":\"a\" \"big\":1}", "not valid JSON"},
		{"{\"name\":\"a\",\"big\":01}", "not valid JSON"},
		{"{\"name\":\"a\",\"big\":9223372036854775808}", "not valid JSON"},
		{"{\"name\":\"a\",\"big\":1e999}", "not valid JSON"},
		{"{\"name\":\"a\",\"suspend\":tru}", "not valid JSON"},
		{"{\"name\":\"a\",\"args\":[\"b\"}", "not valid JSON"},
		{"{\"name\":\"a\",\"x\":[[}", "not valid JSON"},
		{"{\"labels\":{\"\\ud800\":\"a\"}}", "a key is not a valid string"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(cases); i++) {
		HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
		const struct hf_fields_text text = {cases[i].text, strlen(cases[i].text)};
		struct thing t;
		struct hf_error err;
		int rc = hf_fields_read_text(&thing_table, &text, NULL, arena, &t, &err);
		assert_code(rc, HF_E_BAD_REQUEST);
		if (!strstr(err.text, cases[i].error))
			fail_msg("%s: %s", cases[i].text, err.text);
	}
}

static void keys_with_escapes_are_found_in_text_too(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	struct thing t;
	struct hf_error err;

	assert_ok(read_both("{\"\\u006ea\\u006de\":\"x\",\"n\\u0061\":1,\"nam\\u0065x\":2}", NULL,
			    arena, &t, &err),
		  &err);
	assert_string_equal(t.name, "x");
}

static void a_document_too_large_for_the_arena_is_an_error_not_the_end(void **state)
{
	static const char text[] =
		"{\"name\":\"0123456789\",\"labels\":{\"a\":\"b\"},\"codes\":[1,2,3]}";
	const struct hf_fields_text span = {text, sizeof(text) - 1};
	HF_AUTO_JSON tree = NULL;
	struct thing t;
	struct hf_error err;

	assert_ok(hf_json_parse(text, sizeof(text) - 1, NULL, &tree, &err), &err);
	for (size_t room = 16;; room += 16) {
		HF_AUTO_ARENA arena = hf_arena_create(room);
		HF_AUTO_ARENA arena_text = hf_arena_create(room);
		int rc = hf_fields_read(&thing_table, tree, NULL, arena, &t, &err);
		int text_rc = hf_fields_read_text(&thing_table, &span, NULL, arena_text, &t, &err);
		if (rc == 0 && text_rc == 0)
			break;
		assert_true(rc == 0 || rc == HF_E_TOO_LARGE);
		assert_true(text_rc == 0 || text_rc == HF_E_TOO_LARGE);
	}
}

static void a_document_is_read_from_the_form_it_has(void **state)
{
	HF_AUTO_ARENA arena = hf_arena_create(1 << 20);
	HF_AUTO_DOC doc = hf_doc_from_text("{\"name\":\"d\"}", 12);
	struct thing t;
	struct hf_error err;

	assert_ok(hf_fields_read_doc(&thing_table, doc, NULL, arena, &t, &err), &err);
	assert_string_equal(t.name, "d");
	assert_false(hf_doc_has_tree(doc));
	assert_non_null(hf_doc_json(doc));
	assert_true(hf_doc_has_tree(doc));
	assert_ok(hf_fields_read_doc(&thing_table, doc, NULL, arena, &t, &err), &err);
	assert_string_equal(t.name, "d");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_document_fills_the_struct),
		cmocka_unit_test(absent_null_and_empty_differ_by_the_bit),
		cmocka_unit_test(the_first_problem_ends_the_read_and_names_its_path),
		cmocka_unit_test(all_problems_are_collected_when_asked_for),
		cmocka_unit_test(in_lenient_mode_an_invalid_field_counts_as_absent),
		cmocka_unit_test(invalid_text_is_refused_with_its_position),
		cmocka_unit_test(keys_with_escapes_are_found_in_text_too),
		cmocka_unit_test(a_document_too_large_for_the_arena_is_an_error_not_the_end),
		cmocka_unit_test(a_document_is_read_from_the_form_it_has),
	};
	return cmocka_run_group_tests_name("json/fields", tests, NULL, NULL);
}
