/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_MEM_H
#define HF_BASE_MEM_H

#include "base/compiler.h"

#include <stddef.h>

HF_BEGIN_DECLS

/* Allocation that does not fail. If memory is exhausted, these functions call the out-of-memory
 * hook, whose default aborts. Check sizes that come from input against a declared limit first.
 * hf_xcalloc also checks the multiplication. */
void *hf_xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *hf_xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *hf_xrealloc(void *ptr, size_t size) __attribute__((returns_nonnull));
char *hf_xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *hf_xstrndup(const char *s, size_t len) __attribute__((malloc, returns_nonnull));
char *hf_xasprintf(const char *fmt, ...) HF_PRINTF(1, 2) __attribute__((malloc, returns_nonnull));

/* The hook gets the size that could not be allocated, and must not return. Only main and tests
 * set it. */
typedef void (*hf_oom_fn)(size_t size);
void hf_set_oom_hook(hf_oom_fn fn);
/* The end of every failed allocation: calls the hook, or aborts. */
HF_NORETURN void hf_out_of_memory(size_t size);

/* Example: HF_AUTOFREE char *s = hf_xstrdup(…); s is freed when it leaves its scope. */
void hf_autofree_cleanup(void *ptr_to_ptr);
#define HF_AUTOFREE HF_CLEANUP(hf_autofree_cleanup)

/* p = hf_steal(&q) moves a pointer from q to p and sets q to NULL, so that the cleanup of q does
 * not free it. */
#define hf_steal(ptr_to_ptr)                                                                       \
	__extension__({                                                                            \
		__typeof__(*(ptr_to_ptr)) hf_stolen_ = *(ptr_to_ptr);                              \
		*(ptr_to_ptr) = NULL;                                                              \
		hf_stolen_;                                                                        \
	})

HF_END_DECLS

#endif
