/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_MAP_H
#define HF_BASE_MAP_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * A map from strings to pointers. It iterates in the order of insertion, so that no result depends
 * on a hash seed.
 *
 * Keys are copied (except in a borrowing map, see below). value_free, which may be NULL, is called
 * for each value that is replaced, removed, or left when the map is destroyed. Without it the
 * values stay the caller's.
 *
 * entries_max is the limit that the creator chooses; hf_map_put beyond it returns false.
 *
 * Keys may come from outside, so the hash is SipHash-1-3 under `seed`. Pass a random seed where an
 * attacker may choose keys; pass 0 in tests and in pure code with a bounded number of keys.
 */
struct hf_map;

struct hf_map *hf_map_create(size_t entries_max, unsigned long long seed,
			     void (*value_free)(void *value));
/* As hf_map_create, but keys are not copied: each key must be part of its value, or live as long
 * as the value. Putting under an existing key also replaces the key. */
struct hf_map *hf_map_create_borrowing(size_t entries_max, unsigned long long seed,
				       void (*value_free)(void *value));
struct hf_map *hf_map_destroy(struct hf_map *map); /* accepts NULL; returns NULL */

size_t hf_map_len(const struct hf_map *map);
void *hf_map_get(const struct hf_map *map, const char *key); /* NULL: absent */
bool hf_map_has(const struct hf_map *map, const char *key);
/* Adds or replaces a value. A replaced entry keeps its place in the order. Returns false if the
 * map is full; nothing changes then. */
bool hf_map_put(struct hf_map *map, const char *key, void *value) HF_MUST_CHECK;
bool hf_map_remove(struct hf_map *map, const char *key); /* false: no such key */
void hf_map_clear(struct hf_map *map);

/*
 * Use: for (size_t it = 0; hf_map_next(map, &it, &key, &value);) …
 *
 * The loop may remove the entry that was just returned, but must not put.
 */
bool hf_map_next(const struct hf_map *map, size_t *it, const char **ret_key, void **ret_value);

HF_END_DECLS

#endif
