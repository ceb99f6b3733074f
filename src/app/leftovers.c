/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/leftovers.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "local/kubelet.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

/* The process that a folder is named after, or 0. */
static pid_t owner_of(const char *name)
{
	const char *dash = strrchr(name, '-');
	int64_t pid;

	if (dash == NULL || hf_str_to_i64(dash + 1, 1, INT32_MAX, &pid, NULL) != 0)
		return 0;
	return (pid_t)pid;
}

static void sweep_one(const char *dir, const char *name)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, name);
	HF_AUTOFREE char *node = hf_xasprintf("%s/node", path);
	pid_t owner = owner_of(name);
	struct hf_error err;

	/* A number that another process has by now only puts the sweep off. */
	if (owner == 0 || kill(owner, 0) == 0 || errno != ESRCH)
		return;
	if (hf_kubelet_kill_leftovers(node, &err) == 0)
		(void)!hf_fs_remove_tree(path, &err);
}

void hf_leftovers_sweep(const char *dir)
{
	DIR *entries = opendir(dir);
	struct dirent *entry;

	if (entries == NULL)
		return;
	while ((entry = readdir(entries)) != NULL)
		if (entry->d_name[0] != '.')
			sweep_one(dir, entry->d_name);
	(void)closedir(entries);
}
