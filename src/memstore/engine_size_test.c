/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"

#include "harness/random.h"
#include "memstore/engine_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t size_of(const struct hf_json *value)
{
	return hf_json_text_size(value, SIZE_MAX);
}

/* --- compared with a measurement of the whole object
 * --------------------------------------------- */

static struct hf_json *some_value(uint64_t *seed, int depth)
{
	static const char *const texts[] = {"",     "a",        "\"quoted\"", "line\n",
					    "\x01", "\xc3\xa4", "xyz"};
	struct hf_json *value;
	char key[8];

	switch (test_random_below(seed, depth > 0 ? 8 : 5)) {
	case 0: return hf_json_null();
	case 1: return hf_json_bool(test_random_below(seed, 2) == 1);
	case 2: return hf_json_int((int64_t)test_random(seed) >> test_random_below(seed, 64));
	case 3: return hf_json_real((double)test_random_below(seed, 100) / 8);
	case 4: return hf_json_string(texts[test_random_below(seed, HF_ARRAY_LEN(texts))]);
	case 5:
		value = hf_json_array();
		for (uint64_t n = test_random_below(seed, 4); n > 0; n--)
			hf_json_append(value, some_value(seed, depth - 1));
		return value;
	default:
		value = hf_json_object();
		for (uint64_t n = test_random_below(seed, 6); n > 0; n--) {
			snprintf(key, sizeof(key), "k%d", (int)test_random_below(seed, 6));
			hf_json_set(value, key, some_value(seed, depth - 1));
		}
		return value;
	}
}

static void measuring_changes_gives_the_size_of_the_whole(void **state)
{
	uint64_t seed = 3;

	for (int i = 0; i < 20000; i++) {
		HF_AUTO_JSON before = some_value(&seed, 4);
		HF_AUTO_JSON patch = some_value(&seed, 4);
		HF_AUTO_JSON shared = hf_patch_merge(before, patch);

		assert_int_equal(hf_json_text_size_after(before, size_of(before), patch),
				 size_of(patch));
		assert_int_equal(hf_json_text_size_after(before, size_of(before), shared),
				 size_of(shared));
	}
}

/* --- sizes in the store
 * -------------------------------------------------------------------------- */

static hf_time get_now(void *arg)
{
	return 1790000000 * HF_SECOND;
}

static void get_random(void *arg, void *bytes, size_t len)
{
	static uint64_t state = 7;
	unsigned char *out = bytes;

	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)test_random(&state);
}

static struct hf_engine *engine_new(size_t object_bytes_max)
{
	const struct hf_engine_env env = {.now = get_now,
					  .random = get_random,
					  .object_bytes_max = object_bytes_max,
					  .objects_max = 1000,
					  .bytes_max = 1 << 24,
					  .watch_history = 40,
					  .event_ttl = HF_HOUR};

	return hf_engine_create(&env);
}

static int apply_text(struct hf_engine *engine, enum hf_verb verb, const char *name,
		      const char *text)
{
	HF_AUTO_RESULT result = {0};
	HF_AUTO_DOC body = text ? json_doc("%s", text) : NULL;
	const struct hf_request request = {.verb = verb,
					   .resource = &hf_nodes,
					   .name = name,
					   .body = body,
					   .grace_seconds = HF_GRACE_DEFAULT};

	hf_engine_apply(engine, &request, &result);
	hf_engine_commit(engine, NULL, NULL);
	return result.code;
}

static void an_entrys_bytes_are_the_size_of_the_stored_object(void **state)
{
	struct hf_engine *engine = engine_new(1 << 20);
	const struct hf_kind *nodes = hf_engine_kind(engine, &hf_nodes);
	uint64_t seed = 11;
	char name[8], text[256];

	for (int i = 0; i < 3000; i++) {
		int n = (int)test_random_below(&seed, 100);
		size_t sum = 0;

		snprintf(name, sizeof(name), "n%d", (int)test_random_below(&seed, 5));
		snprintf(text, sizeof(text),
			 "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s','labels':{'l':"
			 "'%d'},'finalizers':['a/%d']},'spec':{'podCIDR':'%d'}}",
			 name, n, n, n * n);
		switch (test_random_below(&seed, 4)) {
		case 0: (void)apply_text(engine, HF_VERB_CREATE, NULL, text); break;
		case 1: (void)apply_text(engine, HF_VERB_DELETE, name, NULL); break;
		case 2:
			(void)apply_text(engine, HF_VERB_PATCH, name,
					 "{'metadata':{'finalizers':null}}");
			break;
		default: (void)apply_text(engine, HF_VERB_PATCH, name, text);
		}
		for (size_t k = 0; k < nodes->entries.len; k++) {
			const struct hf_entry *entry = nodes->entries.items[k];
			assert_int_equal(entry->bytes, size_of(hf_doc_json(entry->doc)));
			sum += entry->bytes;
		}
		assert_int_equal(engine->bytes, sum);
	}
	hf_engine_destroy(engine);
}

/* A patch that makes the object one byte too long is refused, even if the patch is small. */
static void the_limit_of_an_object_is_exact(void **state)
{
	char text[256];
	size_t limit = 0;

	/* The first round measures the size of the object. The second round uses this size as the
	 * limit. */
	for (int more = 0; more < 2; more++) {
		struct hf_engine *engine = engine_new(limit ? limit : 1 << 20);
		const struct hf_kind *nodes = hf_engine_kind(engine, &hf_nodes);

		assert_int_equal(
			apply_text(engine, HF_VERB_CREATE, NULL,
				   "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n'}}"),
			0);
		memset(text, 0, sizeof(text));
		snprintf(text, sizeof(text),
			 "{'metadata':{'labels':{'l':'xxxxxxxxxxxxxxxxxxxx'}}}");
		assert_int_equal(apply_text(engine, HF_VERB_PATCH, "n", text), 0);
		if (limit == 0) {
			limit = nodes->entries.items[0]->bytes;
		} else {
			assert_int_equal(nodes->entries.items[0]->bytes, limit);
			assert_int_equal(
				apply_text(engine, HF_VERB_PATCH, "n",
					   "{'metadata':{'labels':{'l':'xxxxxxxxxxxxxxxxxxxxx'}}}"),
				HF_E_TOO_LARGE);
			assert_int_equal(
				apply_text(engine, HF_VERB_PATCH, "n",
					   "{'metadata':{'labels':{'l':'xxxxxxxxxxxxxxxxxxx'}}}"),
				0);
		}
		hf_engine_destroy(engine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measuring_changes_gives_the_size_of_the_whole),
		cmocka_unit_test(an_entrys_bytes_are_the_size_of_the_stored_object),
		cmocka_unit_test(the_limit_of_an_object_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
