/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Finds a field in the text of /proc/PID/stat. The search starts after the last ')', because the
 * process name (field 2) may contain blanks and parentheses.
 */
#include "base/procstat.h"

#include <string.h>

const char *hf_proc_stat_field(const char *text, int field)
{
	const char *at = strrchr(text, ')');

	hf_assert(field >= HF_PROC_STATE);
	for (int i = HF_PROC_STATE; at && i <= field; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at && *at > ' ' ? at : NULL;
}
