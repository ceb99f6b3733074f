/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_PROCSTAT_H
#define HF_BASE_PROCSTAT_H

#include "base/compiler.h"

HF_BEGIN_DECLS

/* Numbers of the fields, as in proc(5). */
#define HF_PROC_STATE 3
#define HF_PROC_PARENT 4
#define HF_PROC_USER_TICKS 14
#define HF_PROC_SYSTEM_TICKS 15
#define HF_PROC_THREADS 20
#define HF_PROC_START_TICKS 22
#define HF_PROC_VIRTUAL_BYTES 23
#define HF_PROC_RESIDENT_PAGES 24

/* Returns the start of a field (3 or higher) in the text of /proc/PID/stat. The field ends at a
 * blank, a line feed or the end of the text. Returns NULL if the text has fewer fields. Field 2
 * is the process name and may contain any character, parentheses and blanks included. */
const char *hf_proc_stat_field(const char *text, int field);

HF_END_DECLS

#endif
