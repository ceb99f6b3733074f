/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/map.h"

#include "harness/promise.h"
#include "harness/random.h"

#include "base/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the entries of a map in its order, for example "k1=v1 k2=v2". */
static const char *print_entries(const struct hf_map *map)
{
	static char text[4096];
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(sizeof(text) - 1);
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(map, &it, &key, &value);)
		hf_strbuf_addf(&sb, "%s%s=%s", sb.len ? " " : "", key, (const char *)value);
	memcpy(text, sb.data, sb.len + 1);
	return text;
}

static int freed;

static void count_free(void *value)
{
	freed++;
	free(value);
}

static void put_text(struct hf_map *map, const char *key, const char *value)
{
	assert_true(hf_map_put(map, key, hf_xstrdup(value)));
}

static void a_value_that_was_put_is_found(void **state)
{
	struct hf_map *map = hf_map_create(10, 0, NULL);
	int a, b;

	assert_true(hf_map_put(map, "a", &a));
	assert_true(hf_map_put(map, "", &b));
	assert_ptr_equal(hf_map_get(map, "a"), &a);
	assert_ptr_equal(hf_map_get(map, ""), &b);
	assert_null(hf_map_get(map, "c"));
	assert_true(hf_map_has(map, "a"));
	assert_false(hf_map_has(map, "c"));
	assert_int_equal(hf_map_len(map), 2);
	hf_map_destroy(map);
}

static void a_new_map_is_empty(void **state)
{
	struct hf_map *map = hf_map_create(10, 0, free);
	const char *key = "unchanged";
	size_t it = 0;

	assert_int_equal(hf_map_len(map), 0);
	assert_null(hf_map_get(map, "a"));
	assert_false(hf_map_remove(map, "a"));
	assert_false(hf_map_next(map, &it, &key, NULL));
	assert_string_equal(key, "unchanged");
	hf_map_clear(map);
	assert_null(hf_map_destroy(map));
	assert_null(hf_map_destroy(NULL));
}

static void keys_are_copied(void **state)
{
	struct hf_map *map = hf_map_create(10, 0, NULL);
	char key[] = "key";
	int value;

	assert_true(hf_map_put(map, key, &value));
	key[0] = 'x';
	assert_true(hf_map_has(map, "key"));
	assert_false(hf_map_has(map, key));
	hf_map_destroy(map);
}

static void a_value_may_be_null(void **state)
{
	struct hf_map *map = hf_map_create(10, 0, free);

	assert_true(hf_map_put(map, "a", NULL));
	assert_null(hf_map_get(map, "a"));
	assert_true(hf_map_has(map, "a"));
	assert_true(hf_map_remove(map, "a"));
	hf_map_destroy(map);
}

static void iteration_is_in_order_of_insertion(void **state)
{
	struct hf_map *map = hf_map_create(10, 0, free);

	put_text(map, "zebra", "1");
	put_text(map, "ant", "2");
	put_text(map, "mole", "3");
	assert_string_equal(print_entries(map), "zebra=1 ant=2 mole=3");
	/* A replaced entry keeps its place; an entry that was removed and put again is the last. */
	put_text(map, "zebra", "4");
	assert_true(hf_map_remove(map, "ant"));
	put_text(map, "ant", "5");
	assert_string_equal(print_entries(map), "zebra=4 mole=3 ant=5");
	hf_map_destroy(map);
}

static void the_order_does_not_depend_on_the_seed(void **state)
{
	char first[4096] = "";

	for (unsigned long long seed = 0; seed < 20; seed++) {
		struct hf_map *map = hf_map_create(100, seed * 0x123456789u, free);

		for (int i = 0; i < 60; i++) {
			char key[16];

			(void)snprintf(key, sizeof(key), "k%d", i * 7919 % 60);
			put_text(map, key, "x");
			if (i % 3 == 2)
				assert_true(hf_map_remove(map, key));
		}
		if (seed == 0)
			(void)snprintf(first, sizeof(first), "%s", print_entries(map));
		assert_string_equal(print_entries(map), first);
		hf_map_destroy(map);
	}
}

static void values_are_freed_when_they_leave(void **state)
{
	struct hf_map *map = hf_map_create(10, 0, count_free);
	char *same = hf_xstrdup("same");

	freed = 0;
	put_text(map, "a", "1");
	put_text(map, "a", "2");
	assert_int_equal(freed, 1);
	assert_true(hf_map_remove(map, "a"));
	assert_int_equal(freed, 2);
	/* Putting the same value again must not free it. */
	assert_true(hf_map_put(map, "b", same));
	assert_true(hf_map_put(map, "b", same));
	assert_int_equal(freed, 2);
	assert_string_equal(hf_map_get(map, "b"), "same");
	put_text(map, "c", "3");
	hf_map_clear(map);
	assert_int_equal(freed, 4);
	put_text(map, "d", "4");
	hf_map_destroy(map);
	assert_int_equal(freed, 5);
}

static void a_full_map_takes_no_new_key(void **state)
{
	struct hf_map *map = hf_map_create(3, 0, NULL);
	int value, other;

	assert_true(hf_map_put(map, "a", &value));
	assert_true(hf_map_put(map, "b", &value));
	assert_true(hf_map_put(map, "c", &value));
	assert_false(hf_map_put(map, "d", &value));
	assert_int_equal(hf_map_len(map), 3);
	assert_false(hf_map_has(map, "d"));
	/* In a full map a known key may be replaced, and a removed entry makes room. */
	assert_true(hf_map_put(map, "a", &other));
	assert_true(hf_map_remove(map, "b"));
	assert_true(hf_map_put(map, "d", &value));
	assert_false(hf_map_put(map, "e", &value));
	hf_map_destroy(map);
}

static void a_map_for_nothing_takes_nothing(void **state)
{
	struct hf_map *map = hf_map_create(0, 0, NULL);

	assert_false(hf_map_put(map, "a", NULL));
	hf_map_destroy(map);
}

static void the_entry_just_returned_may_be_removed(void **state)
{
	struct hf_map *map = hf_map_create(100, 0, free);
	const char *key;
	int seen = 0;

	for (int i = 0; i < 100; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%02d", i);
		put_text(map, name, "x");
	}
	for (size_t it = 0; hf_map_next(map, &it, &key, NULL);) {
		char want[16];

		(void)snprintf(want, sizeof(want), "%02d", seen++);
		assert_string_equal(key, want);
		if (seen % 2)
			assert_true(hf_map_remove(map, key));
	}
	assert_int_equal(seen, 100);
	assert_int_equal(hf_map_len(map), 50);
	hf_map_destroy(map);
}

static void a_cleared_map_may_be_used_again(void **state)
{
	struct hf_map *map = hf_map_create(100, 0, free);

	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 50; i++) {
			char name[16];

			(void)snprintf(name, sizeof(name), "%d", i);
			put_text(map, name, "x");
		}
		assert_int_equal(hf_map_len(map), 50);
		hf_map_clear(map);
		assert_int_equal(hf_map_len(map), 0);
		assert_false(hf_map_has(map, "1"));
		assert_string_equal(print_entries(map), "");
	}
	hf_map_destroy(map);
}

static struct hf_map *map_in_use;

static void check_that_it_is_gone(void *value)
{
	/* value_free runs after the entry was removed. */
	assert_false(hf_map_has(map_in_use, value));
}

static void value_free_may_read_the_map(void **state)
{
	static char a[] = "a", b[] = "b", c[] = "c";

	map_in_use = hf_map_create(10, 0, check_that_it_is_gone);
	assert_true(hf_map_put(map_in_use, a, a));
	assert_true(hf_map_put(map_in_use, b, b));
	assert_true(hf_map_put(map_in_use, c, c));
	assert_true(hf_map_remove(map_in_use, b));
	hf_map_clear(map_in_use);
	hf_map_destroy(map_in_use);
}

static void put_and_remove_by_turns_stays_small(void **state)
{
	struct hf_map *map = hf_map_create(1000, 0, NULL);
	size_t it = 0;

	for (int i = 0; i < 100000; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "%d", i);
		assert_true(hf_map_put(map, key, map));
		if (i >= 3) {
			(void)snprintf(key, sizeof(key), "%d", i - 3);
			assert_true(hf_map_remove(map, key));
		}
	}
	assert_int_equal(hf_map_len(map), 3);
	/* The position also counts removed entries. When the table was rebuilt, the removed entries
	 * were dropped and no longer count. */
	while (hf_map_next(map, &it, NULL, NULL))
		continue;
	assert_in_range(it, 3, 16);
	hf_map_destroy(map);
}

/* A simple, slow map to compare with. */
struct model {
	struct {
		char key[8];
		uintptr_t value;
	} rows[200];
	size_t len;
};

static size_t model_find(const struct model *m, const char *key)
{
	size_t i = 0;

	while (i < m->len && strcmp(m->rows[i].key, key) != 0)
		i++;
	return i;
}

static void model_check(const struct model *m, const struct hf_map *map)
{
	const char *key;
	void *value;
	size_t i = 0;

	assert_int_equal(hf_map_len(map), m->len);
	for (size_t it = 0; hf_map_next(map, &it, &key, &value); i++) {
		assert_string_equal(key, m->rows[i].key);
		assert_int_equal((uintptr_t)value, m->rows[i].value);
		assert_ptr_equal(hf_map_get(map, key), value);
	}
	assert_int_equal(i, m->len);
}

static void model_put(struct model *m, struct hf_map *map, const char *key, uintptr_t value)
{
	size_t at = model_find(m, key);
	bool fits = at < m->len || m->len < HF_ARRAY_LEN(m->rows);

	assert_int_equal(hf_map_put(map, key, (void *)value), fits);
	if (!fits)
		return;
	if (at == m->len) {
		(void)snprintf(m->rows[at].key, sizeof(m->rows[at].key), "%s", key);
		m->len++;
	}
	m->rows[at].value = value;
}

static void model_remove(struct model *m, struct hf_map *map, const char *key)
{
	size_t at = model_find(m, key);

	assert_int_equal(hf_map_remove(map, key), at < m->len);
	if (at == m->len)
		return;
	memmove(&m->rows[at], &m->rows[at + 1], (m->len - at - 1) * sizeof(m->rows[0]));
	m->len--;
}

static void a_map_behaves_as_a_plain_list_does(void **state)
{
	uint64_t seed = 4;

	for (int round = 0; round < 8; round++) {
		struct model m = {.len = 0};
		struct hf_map *map = hf_map_create(HF_ARRAY_LEN(m.rows), test_random(&seed), NULL);
		/* The share of puts grows from round to round. */
		uint64_t put_share = 30 + (uint64_t)round * 8;

		for (int step = 0; step < 6000; step++) {
			char key[8];

			(void)snprintf(key, sizeof(key), "%x",
				       (unsigned int)test_random_below(&seed, 400));
			if (test_random_below(&seed, 100) < put_share)
				model_put(&m, map, key, (uintptr_t)test_random(&seed));
			else
				model_remove(&m, map, key);
			if (step % 50 == 0)
				model_check(&m, map);
		}
		model_check(&m, map);
		hf_map_destroy(map);
	}
}

struct named {
	int number;
	char name[8];
};

static struct named *make_named(const char *name, int number)
{
	struct named *thing = hf_xcalloc(1, sizeof(*thing));

	thing->number = number;
	(void)snprintf(thing->name, sizeof(thing->name), "%s", name);
	return thing;
}

static void a_borrowed_key_is_that_of_the_newest_value(void **state)
{
	struct hf_map *map = hf_map_create_borrowing(100, 0, free);
	struct named *first = make_named("a", 1), *second = make_named("a", 2);
	const char *key = NULL;
	size_t it = 0;

	assert_true(hf_map_put(map, first->name, first));
	assert_true(hf_map_put(map, second->name,
			       second)); /* replaces and frees the first value, with its key */
	assert_true(hf_map_next(map, &it, &key, NULL));
	assert_ptr_equal(key, second->name);
	assert_int_equal(((struct named *)hf_map_get(map, "a"))->number, 2);
	/* When the table grows, keys stay where they are. */
	for (int i = 0; i < 50; i++) {
		char name[8];
		struct named *thing;

		(void)snprintf(name, sizeof(name), "n%d", i);
		thing = make_named(name, i);
		assert_true(hf_map_put(map, thing->name, thing));
	}
	assert_int_equal(((struct named *)hf_map_get(map, "n49"))->number, 49);
	/* The key that is passed belongs to the value and is freed with it. */
	assert_true(hf_map_remove(map, second->name));
	assert_false(hf_map_has(map, "a"));
	hf_map_clear(map);
	assert_int_equal(hf_map_len(map), 0);
	hf_map_destroy(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_that_was_put_is_found),
		cmocka_unit_test(a_new_map_is_empty),
		cmocka_unit_test(keys_are_copied),
		cmocka_unit_test(a_borrowed_key_is_that_of_the_newest_value),
		cmocka_unit_test(a_value_may_be_null),
		cmocka_unit_test(iteration_is_in_order_of_insertion),
		cmocka_unit_test(the_order_does_not_depend_on_the_seed),
		cmocka_unit_test(values_are_freed_when_they_leave),
		cmocka_unit_test(a_full_map_takes_no_new_key),
		cmocka_unit_test(a_map_for_nothing_takes_nothing),
		cmocka_unit_test(the_entry_just_returned_may_be_removed),
		cmocka_unit_test(a_cleared_map_may_be_used_again),
		cmocka_unit_test(value_free_may_read_the_map),
		cmocka_unit_test(put_and_remove_by_turns_stays_small),
		cmocka_unit_test(a_map_behaves_as_a_plain_list_does),
	};

	return cmocka_run_group_tests(tests, promise_setup, NULL);
}
