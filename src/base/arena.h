/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_ARENA_H
#define HF_BASE_ARENA_H

#include "base/compiler.h"

#include <stdarg.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * The "pass" lifetime: memory that all dies together.
 *
 * Allocations are 16-byte aligned, zeroed, and live until the next reset or
 * destroy.  A reset keeps one block, which grows to what the pass before it used
 * (1 MiB at most), so a loop of passes allocates nothing from the system once it
 * is warm.  Under AddressSanitizer what no pass owns is poisoned.
 *
 * bytes_max bounds what one pass may take.  Reaching it is a broken promise of
 * the caller (who bounds its input), not an error to handle, and goes to the
 * out-of-memory hook; hf_arena_left lets a caller ask first.
 */
struct hf_arena;

struct hf_arena *hf_arena_create(size_t bytes_max);
struct hf_arena *hf_arena_destroy(struct hf_arena *arena); /* NULL is fine; returns NULL */
void hf_arena_reset(struct hf_arena *arena);
size_t hf_arena_used(const struct hf_arena *arena);
size_t hf_arena_left(const struct hf_arena *arena); /* one allocation of this much succeeds */

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
