/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_PROCESS_MEMORY_H
#define HF_APP_PROCESS_MEMORY_H

#include <stdbool.h>

/*
 * What a process that stays for months holds of the machine's memory, beyond what it uses.
 * Everything here is the C library's and the kernel's business: on another C library only
 * drop_start does anything.
 */

/* Before anything large is allocated: one heap for all threads (curl's resolver has some), and
 * large buffers outside it, so that each goes back when it is freed. */
void hf_process_memory_set_up(void);

/* The code and tables that only the start needed (relocations and symbols of thirty libraries, TLS
 * set-up) are no longer mapped; what is used again comes back from the page cache by itself. */
void hf_process_memory_drop_start(void);

/* Free pages within the heap go back, where they are worth the walk.  false: they were not. */
bool hf_process_memory_trim(void);

#endif
