/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_PROCSTAT_H
#define HF_BASE_PROCSTAT_H

#include "base/compiler.h"

HF_BEGIN_DECLS

/* As proc(5) counts them. */
#define HF_PROC_STATE 3
#define HF_PROC_PARENT 4
#define HF_PROC_USER_TICKS 14
#define HF_PROC_SYSTEM_TICKS 15
#define HF_PROC_THREADS 20
#define HF_PROC_START_TICKS 22
#define HF_PROC_VIRTUAL_BYTES 23
#define HF_PROC_RESIDENT_PAGES 24

/*
 * Where that field, 3 or more, begins in what /proc/PID/stat holds; it ends with a blank, a line feed or
 * the text.  NULL: there are fewer.  The second field is what the process calls itself, and may hold
 * anything, parentheses and blanks included.
 */
const char *hf_proc_stat_field(const char *text, int field);

HF_END_DECLS

#endif
