/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * A hash map from strings to pointers that iterates in the order of insertion.
 *
 * Two arrays hold the map: `entries` in order of insertion, and `slots`, an open-addressed table of
 * positions in `entries`. A removed entry stays in its place with key == NULL, so that probing and
 * a running iteration are not disturbed. rebuild_table drops removed entries.
 *
 * Invariant: there are at least twice as many slots as entries, removed entries included. So half
 * of the slots stay empty and a probe ends soon.
 */
#include "base/map.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	uint64_t hash;
	const char *key; /* NULL: removed */
	void *value;
};

struct hf_map {
	struct entry *entries;
	uint32_t *slots; /* index into entries + 1; 0: empty */
	size_t live;     /* entries that have a key */
	size_t used;     /* entries in use, removed ones included */
	size_t cap;      /* allocated entries; a power of two */
	size_t entries_max;
	uint64_t seed;
	void (*value_free)(void *value);
	bool borrowing; /* true: keys belong to the values and are not copied */
};

#define CAP_FIRST 8
#define SLOTS_PER_ENTRY 2
/* Positions have 32 bits. */
#define ENTRIES_LIMIT ((size_t)1 << 30)

struct hf_map *hf_map_create(size_t entries_max, unsigned long long seed,
			     void (*value_free)(void *value))
{
	struct hf_map *map = hf_xcalloc(1, sizeof(*map));

	map->entries_max = entries_max < ENTRIES_LIMIT ? entries_max : ENTRIES_LIMIT;
	map->seed = seed;
	map->value_free = value_free;
	return map;
}

struct hf_map *hf_map_create_borrowing(size_t entries_max, unsigned long long seed,
				       void (*value_free)(void *value))
{
	struct hf_map *map = hf_map_create(entries_max, seed, value_free);

	map->borrowing = true;
	return map;
}

static void free_key(const struct hf_map *map, const char *key)
{
	if (!map->borrowing)
		free((char *)(uintptr_t)key);
}

struct hf_map *hf_map_destroy(struct hf_map *map)
{
	if (!map)
		return NULL;
	hf_map_clear(map);
	free(map->entries);
	free(map->slots);
	free(map);
	return NULL;
}

size_t hf_map_len(const struct hf_map *map)
{
	return map->live;
}

static size_t slot_mask(const struct hf_map *map)
{
	return map->cap * SLOTS_PER_ENTRY - 1;
}

static struct entry *find_entry(const struct hf_map *map, const char *key, uint64_t hash)
{
	if (!map->live)
		return NULL;
	for (size_t i = hash & slot_mask(map); map->slots[i]; i = (i + 1) & slot_mask(map)) {
		struct entry *entry = &map->entries[map->slots[i] - 1];

		/* Compare the hash first: it is in this entry, but the key is in another cache
		 * line. */
		if (entry->key && entry->hash == hash && hf_streq(entry->key, key))
			return entry;
	}
	return NULL;
}

static uint64_t hash_key(const struct hf_map *map, const char *key)
{
	return hf_siphash(map->seed, key, strlen(key));
}

void *hf_map_get(const struct hf_map *map, const char *key)
{
	const struct entry *entry = find_entry(map, key, hash_key(map, key));

	return entry ? entry->value : NULL;
}

bool hf_map_has(const struct hf_map *map, const char *key)
{
	return find_entry(map, key, hash_key(map, key)) != NULL;
}

static void set_slot(struct hf_map *map, size_t position)
{
	size_t i = map->entries[position].hash & slot_mask(map);

	while (map->slots[i])
		i = (i + 1) & slot_mask(map);
	map->slots[i] = (uint32_t)position + 1;
}

/* Makes room for one more entry: drops removed entries, and doubles the table unless that was
 * enough. */
static void rebuild_table(struct hf_map *map)
{
	size_t cap = map->cap ? map->cap : CAP_FIRST;
	size_t to = 0;

	/* At least half of the entries are free afterwards. So alternating put and remove does
	 * not rebuild the table each time. */
	if (map->live > cap / 2)
		cap *= 2;
	for (size_t from = 0; from < map->used; from++)
		if (map->entries[from].key)
			map->entries[to++] = map->entries[from];
	hf_assert(to == map->live);
	if (cap != map->cap) {
		map->entries = hf_xrealloc(map->entries, cap * sizeof(*map->entries));
		free(map->slots);
		map->slots = hf_xcalloc(cap * SLOTS_PER_ENTRY, sizeof(*map->slots));
		map->cap = cap;
	} else {
		memset(map->slots, 0, cap * SLOTS_PER_ENTRY * sizeof(*map->slots));
	}
	map->used = to;
	for (size_t i = 0; i < to; i++)
		set_slot(map, i);
}

static void drop_value(const struct hf_map *map, void *value)
{
	if (map->value_free && value)
		map->value_free(value);
}

bool hf_map_put(struct hf_map *map, const char *key, void *value)
{
	uint64_t hash = hash_key(map, key);
	struct entry *entry = find_entry(map, key, hash);

	if (entry) {
		void *old = entry->value;

		entry->value = value;
		if (map->borrowing)
			entry->key = key;
		if (old != value)
			drop_value(map, old);
		return true;
	}
	if (map->live >= map->entries_max)
		return false;
	if (map->used == map->cap)
		rebuild_table(map);
	entry = &map->entries[map->used];
	*entry = (struct entry){
		.hash = hash, .key = map->borrowing ? key : hf_xstrdup(key), .value = value};
	set_slot(map, map->used);
	map->used++;
	map->live++;
	return true;
}

bool hf_map_remove(struct hf_map *map, const char *key)
{
	struct entry *entry = find_entry(map, key, hash_key(map, key));
	void *value;

	if (!entry)
		return false;
	value = entry->value;
	/* Remove the entry before value_free runs, because value_free may read the map. */
	free_key(map, hf_steal(&entry->key));
	entry->value = NULL;
	map->live--;
	drop_value(map, value);
	return true;
}

void hf_map_clear(struct hf_map *map)
{
	size_t used = map->used;

	/* Empty the map before value_free runs, because value_free may read the map. */
	map->live = 0;
	map->used = 0;
	if (map->slots)
		memset(map->slots, 0, map->cap * SLOTS_PER_ENTRY * sizeof(*map->slots));
	for (size_t i = 0; i < used; i++) {
		struct entry entry = map->entries[i];

		if (!entry.key)
			continue;
		free_key(map, entry.key);
		drop_value(map, entry.value);
	}
}

bool hf_map_next(const struct hf_map *map, size_t *it, const char **ret_key, void **ret_value)
{
	while (*it < map->used) {
		const struct entry *entry = &map->entries[(*it)++];

		if (!entry->key)
			continue;
		if (ret_key)
			*ret_key = entry->key;
		if (ret_value)
			*ret_value = entry->value;
		return true;
	}
	return false;
}
