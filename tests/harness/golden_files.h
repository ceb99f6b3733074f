/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_GOLDEN_FILES_H
#define HF_TESTS_HARNESS_GOLDEN_FILES_H

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The golden files of a folder and of the folders in it, sorted by name. */
static inline void golden_each(const char *folder, void (*fn)(void *arg, const char *path),
			       void *arg)
{
	struct dirent **names;
	int n = scandir(folder, &names, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		HF_AUTOFREE char *path = hf_xasprintf("%s/%s", folder, names[i]->d_name);
		struct stat st;

		if (hf_str_has_suffix(path, ".yaml"))
			fn(arg, path);
		else if (names[i]->d_name[0] != '.' && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			golden_each(path, fn, arg);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

#endif
