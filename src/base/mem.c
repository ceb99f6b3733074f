/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Allocation that does not fail: an exhausted memory ends in the out-of-memory hook, or in
 * abort.
 */
#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* __assert_fail is the C library's own: it prints without a stream of this program and aborts. */
void hf_assert_failed(const char *cond, const char *file, int line)
{
	__assert_fail(cond, file, (unsigned int)line, "hf_assert");
}

/* The only writable data in this archive. It is set before threads start and only read
 * afterwards. */
static hf_oom_fn oom_hook;

void hf_set_oom_hook(hf_oom_fn fn)
{
	oom_hook = fn;
}

void hf_out_of_memory(size_t size)
{
	if (oom_hook)
		oom_hook(size);
	/* No hook is set, or the hook returned although it must not. */
	abort();
}

void *hf_xmalloc(size_t size)
{
	/* malloc(0) may return NULL, which would look like "out of memory". */
	void *ptr = malloc(size ? size : 1);

	if (!ptr)
		hf_out_of_memory(size);
	return ptr;
}

void *hf_xcalloc(size_t count, size_t size)
{
	void *ptr;

	if (size && count > SIZE_MAX / size)
		hf_out_of_memory(SIZE_MAX);
	ptr = count && size ? calloc(count, size) : calloc(1, 1);
	if (!ptr)
		hf_out_of_memory(count * size);
	return ptr;
}

void *hf_xrealloc(void *ptr, size_t size)
{
	void *grown = realloc(ptr, size ? size : 1);

	if (!grown)
		hf_out_of_memory(size);
	return grown;
}

char *hf_xstrdup(const char *s)
{
	return hf_xstrndup(s, strlen(s));
}

char *hf_xstrndup(const char *s, size_t len)
{
	/* strnlen: s need not have a NUL within its first len bytes. */
	size_t n = strnlen(s, len);
	char *copy;

	if (n == SIZE_MAX)
		hf_out_of_memory(n);
	copy = hf_xmalloc(n + 1);
	memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}

char *hf_xasprintf(const char *fmt, ...)
{
	va_list ap;
	int n;
	char *s;

	va_start(ap, fmt);
	/* Print twice. vasprintf would allocate without calling the out-of-memory hook. */
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	hf_assert(n >= 0);
	s = hf_xmalloc((size_t)n + 1);
	va_start(ap, fmt);
	(void)vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

void hf_autofree_cleanup(void *ptr_to_ptr)
{
	void *ptr;

	/* ptr_to_ptr points to a pointer of any type, so its value is copied as bytes. */
	memcpy(&ptr, ptr_to_ptr, sizeof(ptr));
	free(ptr);
}
