/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Ends the pods of `holdfast run` processes that were killed, and removes their folders. */
#include "app/sweep_runs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/kubelet.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define NOTE "ended" /* this file in a kept folder means that no pod is left */

/* The process ID at the end of the folder's name, or 0. */
static pid_t owner_of(const char *name)
{
	const char *dash = strrchr(name, '-');
	int64_t pid;

	if (dash == NULL || hf_str_to_i64(dash + 1, 1, INT32_MAX, &pid, NULL) != 0)
		return 0;
	return (pid_t)pid;
}

void hf_sweep_runs_skip(const char *path)
{
	HF_AUTOFREE char *note = hf_xasprintf("%s/" NOTE, path);
	struct hf_error err;

	(void)!hf_fs_write_atomic(note, "", 0, 0600, &err);
}

static bool sweep_one(const char *dir, const char *name, bool keep)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, name);
	HF_AUTOFREE char *node = hf_xasprintf("%s/node", path);
	HF_AUTOFREE char *swept = hf_xasprintf("%s/" NOTE, path);
	pid_t owner = owner_of(name);
	struct hf_error err;

	/* If another process has this ID by now, a later sweep ends the pods. */
	if (owner == 0 || kill(owner, 0) == 0 || errno != ESRCH)
		return false;
	/* The logs of --keep stay. The file NOTE says that this folder was swept already. */
	if (keep && access(swept, F_OK) == 0)
		return false;
	if (hf_kubelet_kill_leftovers(node, &err) != 0)
		return false;
	if (keep)
		hf_sweep_runs_skip(path);
	else
		(void)!hf_fs_remove_tree(path, &err);
	return true;
}

static size_t sweep_folder(const char *base, const char *sub, bool keep)
{
	HF_AUTOFREE char *dir = hf_xasprintf("%s/%s", base, sub);
	DIR *entries = opendir(dir);
	struct dirent *entry;
	size_t swept = 0;

	if (entries == NULL)
		return 0;
	while ((entry = readdir(entries)) != NULL)
		if (entry->d_name[0] != '.')
			swept += sweep_one(dir, entry->d_name, keep);
	(void)closedir(entries);
	return swept;
}

size_t hf_sweep_runs(const char *base)
{
	size_t swept = sweep_folder(base, "run", false);

	return swept + sweep_folder(base, "kept", true);
}
