/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_MEM_H
#define HF_BASE_MEM_H

#include "base/compiler.h"

#include <stddef.h>

HF_BEGIN_DECLS

/*
 * Allocation that does not fail: out of memory calls the hook, whose default
 * aborts.  Sizes are products of input only after a declared limit was checked;
 * hf_xcalloc checks the multiplication as well.
 */
void *hf_xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *hf_xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *hf_xrealloc(void *ptr, size_t size) __attribute__((returns_nonnull));
char *hf_xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *hf_xstrndup(const char *s, size_t len) __attribute__((malloc, returns_nonnull));
char *hf_xasprintf(const char *fmt, ...) HF_PRINTF(1, 2) __attribute__((malloc, returns_nonnull));

/* Called with the size that could not be had; must not return.  For main and tests. */
typedef void (*hf_oom_fn)(size_t size);
void hf_set_oom_hook(hf_oom_fn fn);
/* What the functions above end in: the hook, or abort. */
HF_NORETURN void hf_out_of_memory(size_t size);

/* HF_AUTOFREE char *s = hf_xstrdup(…): freed when s leaves its scope. */
void hf_autofree_cleanup(void *ptr_to_ptr);
#define HF_AUTOFREE HF_CLEANUP(hf_autofree_cleanup)

/* p = hf_steal(&q): hand a pointer over and keep the cleanup of q from freeing it. */
#define hf_steal(ptr_to_ptr)                                                                       \
	__extension__({                                                                            \
		__typeof__(*(ptr_to_ptr)) hf_stolen_ = *(ptr_to_ptr);                              \
		*(ptr_to_ptr) = NULL;                                                              \
		hf_stolen_;                                                                        \
	})

HF_END_DECLS

#endif
