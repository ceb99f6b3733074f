/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_MAP_H
#define HF_BASE_MAP_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * A map from strings to pointers that iterates in order of insertion, so that
 * nothing downstream depends on a hash seed.  Keys are copied (but see below); values belong
 * to the caller, and value_free (may be NULL) is called when one is replaced,
 * removed, or left at destroy.
 *
 * entries_max is declared at birth; hf_map_put past it returns false.
 * Keys come from outside: the hash is SipHash-1-3 under `seed`, which whoever
 * owns randomness draws (0 in tests and in pure code whose keys are bounded).
 */
struct hf_map;

struct hf_map *hf_map_create(size_t entries_max, unsigned long long seed,
			     void (*value_free)(void *value));
/* Keys are not copied: each is part of its value, or lives as long.  A put under a key that is
 * there takes the new one. */
struct hf_map *hf_map_create_borrowing(size_t entries_max, unsigned long long seed,
				       void (*value_free)(void *value));
struct hf_map *hf_map_destroy(struct hf_map *map); /* NULL is fine; returns NULL */

size_t hf_map_len(const struct hf_map *map);
void *hf_map_get(const struct hf_map *map, const char *key); /* NULL: absent */
bool hf_map_has(const struct hf_map *map, const char *key);
/* Replacing keeps the key's place in the order.  false: full, nothing changed. */
bool hf_map_put(struct hf_map *map, const char *key, void *value) HF_MUST_CHECK;
bool hf_map_remove(struct hf_map *map, const char *key); /* false: it was not there */
void hf_map_clear(struct hf_map *map);

/*
 * for (size_t it = 0; hf_map_next(map, &it, &key, &value);) …
 * Removing the entry just returned is allowed while iterating; putting is not.
 */
bool hf_map_next(const struct hf_map *map, size_t *it, const char **ret_key, void **ret_value);

HF_END_DECLS

#endif
