/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C library's own failed assert: it prints without a stream of ours and aborts. */
void hf_assert_failed(const char *cond, const char *file, int line)
{
	__assert_fail(cond, file, (unsigned int)line, "hf_assert");
}

/* The one thing in this archive that changes.  Set before threads start, read after. */
static hf_oom_fn oom_hook;

void hf_set_oom_hook(hf_oom_fn fn)
{
	oom_hook = fn;
}

void hf_out_of_memory(size_t size)
{
	if (oom_hook)
		oom_hook(size);
	/* No hook, or one that broke its promise and returned. */
	abort();
}

void *hf_xmalloc(size_t size)
{
	/* malloc(0) may answer NULL, which would read as "out of memory". */
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
	/* strnlen, so that s need not end within len. */
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
	/* Twice instead of vasprintf: that allocates behind the hook's back. */
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

	/* The variable has any pointer type, so it is read as bytes. */
	memcpy(&ptr, ptr_to_ptr, sizeof(ptr));
	free(ptr);
}
