/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_ARENA_H
#define HF_BASE_ARENA_H

#include "base/compiler.h"

#include <stdarg.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * An arena holds the memory of one pass (the "pass" lifetime in ARCHITECTURE.md).
 *
 * Every allocation is aligned to 16 bytes, filled with zeros, and valid until the next reset or
 * destroy. A reset keeps one block. That block grows to the size of the previous pass, up to 1 MiB,
 * so repeated passes of one size need no further memory from the system. Under AddressSanitizer,
 * memory that no pass owns is poisoned.
 *
 * bytes_max is the limit of one pass. The caller must bound its input so that the limit is never
 * reached. Reaching the limit is a programming error: it calls the out-of-memory hook. Call
 * hf_arena_left first if the input is not bounded.
 */
struct hf_arena;

struct hf_arena *hf_arena_create(size_t bytes_max);
struct hf_arena *hf_arena_destroy(struct hf_arena *arena); /* accepts NULL; returns NULL */
void hf_arena_reset(struct hf_arena *arena);
size_t hf_arena_used(const struct hf_arena *arena);
/* Returns the largest size in bytes that the next allocation may have. */
size_t hf_arena_left(const struct hf_arena *arena);

void *hf_arena_alloc(struct hf_arena *arena, size_t size) __attribute__((returns_nonnull));
void *hf_arena_array(struct hf_arena *arena, size_t count, size_t size)
	__attribute__((returns_nonnull));
char *hf_arena_strdup(struct hf_arena *arena, const char *s) __attribute__((returns_nonnull));
char *hf_arena_strndup(struct hf_arena *arena, const char *s, size_t len)
	__attribute__((returns_nonnull));
char *hf_arena_printf(struct hf_arena *arena, const char *fmt, ...) HF_PRINTF(2, 3)
	__attribute__((returns_nonnull));

#define HF_ARENA_NEW(arena, type) ((type *)hf_arena_alloc((arena), sizeof(type)))
#define HF_ARENA_ARRAY(arena, type, count) ((type *)hf_arena_array((arena), (count), sizeof(type)))

void hf_arena_cleanup(struct hf_arena **arena);
#define HF_AUTO_ARENA HF_CLEANUP(hf_arena_cleanup) struct hf_arena *

HF_END_DECLS

#endif
