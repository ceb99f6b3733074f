/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Returns memory to the kernel: pages of code and tables that only the start of the process
 * used, and free pages inside the heap. */
#include "app/process_memory.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Size from which glibc maps a buffer on its own. The value is glibc's default. Setting it stops
 * glibc from raising it to the largest buffer ever freed, after which large buffers would leave
 * holes in the heap. */
#define OWN_MAPPING_BYTES (128 << 10)
/* Trim only if at least this many bytes are free. A trim takes 1 ms for each 10 MiB of heap. */
#define TRIM_BYTES_MIN ((size_t)512 << 10)
/* Limit of the read-only segments of a library. Linkers make three: tables, code, constants. */
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

/* False if relocations have changed the code in memory. Such pages must stay: the kernel would
 * read them again from the file, without the changes. */
static bool is_as_in_file(const struct dl_phdr_info *object)
{
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];

		if (header->p_type != PT_DYNAMIC)
			continue;
		/* The loader gives addresses as numbers, so they are cast to pointers. */
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

/* Drops the read-only pages of one library. Collects the ranges first: the program headers are in the
 * dropped pages, and reading one again maps 16 pages. */
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

		/* Tables that become read-only after relocation are in a writable segment and stay. */
		if (header->p_type == PT_LOAD && (header->p_flags & PF_W) == 0)
			ranges[len++] =
				(struct range){start & ~(page - 1),
					       (start + header->p_filesz + page - 1) & ~(page - 1)};
	}
	for (size_t i = 0; i < len; i++)
		/* Ranges that the kernel refuses (its vdso, locked memory) stay mapped. */
		(void)madvise((void *)ranges[i].start, ranges[i].end - ranges[i].start,
			      MADV_DONTNEED);
	return 0;
}

void hf_process_memory_drop_start(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)dl_iterate_phdr(drop_object, &page);
}
