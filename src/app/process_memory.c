/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/process_memory.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* glibc's own, but it stays: left alone it grows to the largest buffer ever freed, and buffers of
 * that size then leave holes in the heap. */
#define OWN_MAPPING_BYTES (128 << 10)
/* A walk over the heap takes a millisecond for ten MiB. */
#define TRIM_BYTES_MIN ((size_t)512 << 10)
/* Linkers make three that are read-only: tables, code, constants. */
#define SEGMENTS_MAX 8

void hf_process_memory_set_up(void)
{
#ifdef __GLIBC__
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
#endif
}

bool hf_process_memory_trim(void)
{
#ifdef __GLIBC__
	struct mallinfo2 info = mallinfo2();

	if (info.fordblks >= TRIM_BYTES_MIN)
		return malloc_trim(0) == 1;
#endif
	return false;
}

/* Text that was relocated differs from its file: it would come back wrong. */
static bool is_as_in_file(const struct dl_phdr_info *object)
{
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];

		if (header->p_type != PT_DYNAMIC)
			continue;
		/* The loader's own addresses are numbers; this is how it reads them itself. */
		const ElfW(Dyn) *entry =
			(const void *)(uintptr_t)(object->dlpi_addr + header->p_vaddr);
		for (; entry->d_tag != DT_NULL; entry++)
			if (entry->d_tag == DT_TEXTREL ||
			    (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0))
				return false;
	}
	return true;
}

struct range {
	uintptr_t start, end;
};

/* Its own headers lie in what is dropped, and reading one brings sixteen pages back: they are read
 * first. */
static int drop_object(struct dl_phdr_info *object, size_t size, void *arg)
{
	uintptr_t page = *(const uintptr_t *)arg;
	struct range ranges[SEGMENTS_MAX];
	size_t len = 0;

	if (!is_as_in_file(object))
		return 0;
	for (size_t i = 0; i < object->dlpi_phnum && len < SEGMENTS_MAX; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + header->p_vaddr;

		/* Tables that are read-only only after relocation lie in a writable segment. */
		if (header->p_type == PT_LOAD && (header->p_flags & PF_W) == 0)
			ranges[len++] =
				(struct range){start & ~(page - 1),
					       (start + header->p_filesz + page - 1) & ~(page - 1)};
	}
	for (size_t i = 0; i < len; i++)
		/* What the kernel refuses (its own vdso, locked memory) simply stays. */
		(void)madvise((void *)ranges[i].start, ranges[i].end - ranges[i].start,
			      MADV_DONTNEED);
	return 0;
}

void hf_process_memory_drop_start(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)dl_iterate_phdr(drop_object, &page);
}
