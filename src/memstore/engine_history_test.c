/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"

#include "harness/random.h"
#include "memstore/engine_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests of the engine alone, without loop and clients. They compare undo and reads of the past with
 * remembered states. */

#define HISTORY 40
#define NAMES 10

static hf_time now = 1790000000 * HF_SECOND;

static hf_time get_now(void *arg)
{
	return now;
}

static void get_random(void *arg, void *bytes, size_t len)
{
	static uint64_t state = 7;
	unsigned char *out = bytes;

	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)test_random(&state);
}

static struct hf_engine *engine_new(void)
{
	const struct hf_engine_env env = {.now = get_now,
					  .random = get_random,
					  .object_bytes_max = 1 << 20,
					  .objects_max = 1000,
					  .bytes_max = 1 << 24,
					  .watch_history = HISTORY,
					  .event_ttl = HF_HOUR};
	struct hf_engine *engine = hf_engine_create(&env);
	HF_AUTO_RESULT result = {0};
	HF_AUTO_DOC body = json_doc("{'apiVersion':'v1','kind':'Namespace','metadata':{"
				    "'name':'n'}}");

	hf_engine_apply(engine,
			&(struct hf_request){
				.verb = HF_VERB_CREATE, .resource = &hf_namespaces, .body = body},
			&result);
	assert_int_equal(result.code, 0);
	hf_engine_commit(engine, NULL, NULL);
	return engine;
}

static void random_change(struct hf_engine *engine, uint64_t *seed)
{
	HF_AUTO_RESULT result = {0};
	char name[8];
	int value = (int)test_random_below(seed, 100);

	snprintf(name, sizeof(name), "o%d", (int)test_random_below(seed, NAMES));
	HF_AUTO_DOC object = json_doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{"
				      "'name':'%s','ownerReferences':[{'apiVersion':'v1',"
				      "'kind':'ConfigMap','name':'x','uid':'u%d'}]},"
				      "'data':{'v':'%d'}}",
				      name, value % 3, value);
	HF_AUTO_DOC patch = json_doc("{'metadata':{'ownerReferences':[{'apiVersion':'v1',"
				     "'kind':'ConfigMap','name':'x','uid':'u%d'}]},"
				     "'data':{'v':'%d'}}",
				     value % 3, value);
	struct hf_request request = {.resource = &hf_configmaps,
				     .ns = "n",
				     .name = name,
				     .grace_seconds = HF_GRACE_DEFAULT};
	switch (test_random_below(seed, 3)) {
	case 0:
		request.verb = HF_VERB_CREATE;
		request.name = NULL;
		request.body = object;
		break;
	case 1:
		request.verb = HF_VERB_PATCH;
		request.body = patch;
		break;
	default: request.verb = HF_VERB_DELETE;
	}
	hf_engine_apply(engine, &request, &result);
}

/* Everything that a reader of the engine can see, as text. */
struct state {
	uint64_t version;
	char text[4096];
};

static bool add_doc(void *arg, struct hf_doc *doc)
{
	struct state *s = arg;
	size_t len = strlen(s->text);

	snprintf(s->text + len, sizeof(s->text) - len, "%s=%s@%s ", hf_doc_name(doc),
		 hf_json_path_str(hf_doc_json(doc), "data", "v", NULL),
		 hf_doc_resource_version(doc));
	return true;
}

static void see_now(struct hf_engine *engine, struct state *s)
{
	const struct hf_kind *kind = hf_engine_kind(engine, &hf_configmaps);

	s->version = engine->version;
	s->text[0] = '\0';
	for (size_t i = 0; i < kind->entries.len; i++)
		add_doc(s, kind->entries.items[i]->doc);
}

static void every_version_history_reaches_can_be_read(void **state)
{
	static struct state states[400];

	for (uint64_t round = 0; round < 20; round++) {
		uint64_t seed = round;
		struct hf_engine *engine = engine_new();
		struct hf_kind *kind = hf_engine_kind(engine, &hf_configmaps);
		size_t n = 0;
		for (int step = 0; step < 150; step++) {
			random_change(engine, &seed);
			if (test_random_below(&seed, 3) == 0)
				hf_engine_commit(engine, NULL, NULL);
			see_now(engine, &states[n++]);
			struct state *then = &states[test_random_below(&seed, n)];
			struct state past = {0};
			struct hf_error err = {0};
			int rc = hf_engine_snapshot(engine,
						    &(struct hf_snapshot){.kind = kind,
									  .version = then->version,
									  .fn = add_doc,
									  .arg = &past},
						    &err);
			if (then->version < kind->history.oldest) {
				assert_int_equal(rc, HF_E_GONE);
				continue;
			}
			assert_ok(rc, &err);
			assert_string_equal(past.text, then->text);
		}
		assert_true(kind->history.len <= HISTORY);
		assert_int_equal(
			hf_engine_snapshot(
				engine,
				&(struct hf_snapshot){.kind = kind, .version = engine->version + 1},
				NULL),
			HF_E_GONE);
		hf_engine_destroy(engine);
	}
}

/* Counts the dependents of each owner. */
static void count_owned(struct hf_engine *engine, size_t counts[3])
{
	for (int i = 0; i < 3; i++) {
		char uid[4];
		snprintf(uid, sizeof(uid), "u%d", i);
		struct hf_owner *owner = hf_engine_owner(engine, uid);
		counts[i] = 0;
		for (struct hf_owner_link *l = owner ? owner->first : NULL; l; l = l->next) {
			assert_string_equal(
				hf_json_path_str(
					hf_json_item(hf_json_path(hf_doc_json(l->entry->doc),
								  "metadata", "ownerReferences",
								  NULL),
						     0),
					"uid", NULL),
				uid);
			counts[i]++;
		}
	}
}

static void undo_restores_the_state_before(void **state)
{
	for (uint64_t round = 0; round < 60; round++) {
		uint64_t seed = round;
		struct hf_engine *engine = engine_new();
		struct state before, after;
		size_t owned_before[3], owned_after[3];
		for (int i = 0; i < 30; i++)
			random_change(engine, &seed);
		hf_engine_commit(engine, NULL, NULL);
		see_now(engine, &before);
		count_owned(engine, owned_before);
		size_t bytes = engine->bytes;
		uint64_t version = engine->version;
		for (int i = 0; i < 20; i++)
			random_change(engine, &seed);
		hf_engine_undo(engine);
		see_now(engine, &after);
		count_owned(engine, owned_after);
		assert_string_equal(after.text, before.text);
		assert_memory_equal(owned_after, owned_before, sizeof(owned_before));
		assert_int_equal(engine->bytes, bytes);
		assert_int_equal(engine->pending.len, 0);
		/* An undone version is not assigned again: code in this process may have seen
		 * it. */
		assert_true(engine->version >= version);
		hf_engine_destroy(engine);
	}
}

static void the_ring_forgets_the_oldest(void **state)
{
	struct hf_history h = {0};
	struct hf_change c = {0};

	for (uint64_t v = 1; v <= 200; v++) {
		c.version = v * 2;
		hf_history_push(&h, &c, 100);
	}
	assert_int_equal(h.len, 100);
	assert_int_equal(h.oldest, 200);
	assert_int_equal(h.first, 100);
	assert_null(hf_history_at(&h, 99));
	assert_int_equal(hf_history_at(&h, 100)->version, 202);
	assert_int_equal(hf_history_at(&h, 199)->version, 400);
	assert_null(hf_history_at(&h, 200));
	/* Four cases: a version between two changes, the version of a change, a version before all
	 * changes, and the last version. */
	assert_int_equal(hf_history_after(&h, 300), 150);
	assert_int_equal(hf_history_after(&h, 301), 150);
	assert_int_equal(hf_history_after(&h, 0), 100);
	assert_int_equal(hf_history_after(&h, 400), 200);
	hf_history_release(&h);
}

static void lookups_find_stored_objects(void **state)
{
	struct hf_engine *engine = engine_new();
	struct hf_kind *kind = hf_engine_kind(engine, &hf_configmaps);
	uint64_t seed = 3;

	for (int i = 0; i < 200; i++) {
		random_change(engine, &seed);
		for (size_t e = 1; e < kind->entries.len; e++)
			assert_true(hf_key_compare(kind->entries.items[e - 1]->ns,
						   kind->entries.items[e - 1]->name,
						   kind->entries.items[e]->ns,
						   kind->entries.items[e]->name) < 0);
		for (size_t e = 0; e < kind->entries.len; e++)
			assert_ptr_equal(hf_kind_find(kind, "n", kind->entries.items[e]->name),
					 kind->entries.items[e]);
	}
	assert_null(hf_kind_find(kind, "n", "absent"));
	assert_null(hf_kind_find(kind, "other", "o1"));
	assert_int_equal(hf_kind_lower_bound(kind, "", ""), 0);
	assert_int_equal(hf_kind_lower_bound(kind, "z", ""), kind->entries.len);
	hf_engine_destroy(engine);
}

static void pages_of_a_list_show_one_version(void **state)
{
	for (uint64_t round = 0; round < 40; round++) {
		uint64_t seed = round;
		struct hf_engine *engine = engine_new();
		struct state whole, paged = {0};
		struct hf_request request = {
			.verb = HF_VERB_LIST, .resource = &hf_configmaps, .ns = "n", .limit = 2};
		char *token = NULL;
		for (int i = 0; i < 40; i++)
			random_change(engine, &seed);
		hf_engine_commit(engine, NULL, NULL);
		see_now(engine, &whole);
		do {
			HF_AUTO_RESULT page = {0};
			request.continue_token = token;
			hf_engine_apply(engine, &request, &page);
			assert_int_equal(page.code, 0);
			assert_int_equal(page.version, whole.version);
			for (size_t i = 0; i < page.n_items; i++)
				add_doc(&paged, page.items[i]);
			free(token);
			token = page.continue_token;
			page.continue_token = NULL;
			random_change(engine, &seed);
			if (test_random_below(&seed, 2))
				hf_engine_commit(engine, NULL, NULL);
		} while (token);
		assert_string_equal(paged.text, whole.text);
		hf_engine_destroy(engine);
	}
}

static void remaining_counts_the_objects_after_the_page(void **state)
{
	struct hf_engine *engine = engine_new();
	uint64_t seed = 11;

	while (hf_engine_kind(engine, &hf_configmaps)->entries.len < 7)
		random_change(engine, &seed);
	for (int64_t limit = 1; limit < 9; limit++) {
		HF_AUTO_RESULT page = {0};
		hf_engine_apply(engine,
				&(struct hf_request){.verb = HF_VERB_LIST,
						     .resource = &hf_configmaps,
						     .ns = "n",
						     .limit = limit},
				&page);
		assert_int_equal(page.remaining, limit < 7 ? 7 - limit : 0);
		assert_int_equal(page.continue_token != NULL, limit < 7);
	}
	hf_engine_destroy(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version_history_reaches_can_be_read),
		cmocka_unit_test(undo_restores_the_state_before),
		cmocka_unit_test(the_ring_forgets_the_oldest),
		cmocka_unit_test(lookups_find_stored_objects),
		cmocka_unit_test(pages_of_a_list_show_one_version),
		cmocka_unit_test(remaining_counts_the_objects_after_the_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
