/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PROCESS_MEMORY_H
#define HF_APP_PROCESS_MEMORY_H

#include <stdbool.h>

/*
 * Keeps the memory of long-lived processes small.  With a C library other than glibc, only
 * hf_process_memory_drop_start has an effect.
 */

/* Use one heap for all threads (curl's resolver has some) and mmap for large buffers, so that a freed
 * buffer returns to the kernel.  Call it before any large allocation. */
void hf_process_memory_set_up(void);

/* Unmap code and tables that only the start of the process used, such as relocations of libraries and TLS
 * set-up.  Pages that are used again come back from the page cache. */
void hf_process_memory_drop_start(void);

/* Return free heap pages to the kernel if there are enough of them.  False: nothing was returned. */
bool hf_process_memory_trim(void);

#endif
