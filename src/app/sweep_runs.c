/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Ends the pods of `holdfast run` processes that were killed, and reduces their folders to what is kept. */
#include "app/sweep_runs.h"

#include "app/kept_runs.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubelet/kubelet.h"

#include <dirent.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS 50

/* Waits until the pods have ended by themselves. Returns false if some still run. */
static bool wait_for_pods(const char *node, int *wait_ms)
{
	while (hf_kubelet_count_running(node) > 0) {
		if (*wait_ms <= 0)
			return false;
		(void)poll(NULL, 0, LOOK_MS);
		*wait_ms -= LOOK_MS;
	}
	return true;
}

static bool sweep_one(const char *dir, const char *name, bool kill_late, int *wait_ms)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, name);
	HF_AUTOFREE char *node = hf_xasprintf("%s/node", path);
	HF_AUTOFREE char *index = hf_xasprintf("%s/run.json", path);
	struct hf_error err;

	if (hf_kept_run_owner(path) == 0 || hf_kept_run_is_settled(path) ||
	    hf_kept_run_is_alive(path))
		return false;
	if (!wait_for_pods(node, wait_ms) && !kill_late)
		return false;
	if (hf_kubelet_kill_leftovers(node, &err) != 0)
		return false;
	/* Remove a folder without run.json, because no verb could show the run. */
	if (access(index, F_OK) != 0)
		hf_kept_run_remove(path);
	else
		(void)!hf_kept_run_settle(path, &err);
	return true;
}

/* Completes a removal: the name of the folder says that its removal has begun, and the process
 * that began it may have died. */
static void end_removal(const char *dir, const char *name)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/%s", dir, name);
	struct hf_error err;

	(void)!hf_fs_remove_tree(path, &err);
}

size_t hf_sweep_runs(const char *base, int wait_ms)
{
	bool kill_late = wait_ms > 0;
	HF_AUTOFREE char *dir = hf_xasprintf("%s/runs", base);
	DIR *entries = opendir(dir);
	struct dirent *entry;
	size_t swept = 0;

	if (entries == NULL)
		return 0;
	while ((entry = readdir(entries)) != NULL)
		if (hf_str_has_prefix(entry->d_name, HF_KEPT_REMOVED))
			end_removal(dir, entry->d_name);
		else if (entry->d_name[0] != '.')
			swept += sweep_one(dir, entry->d_name, kill_late, &wait_ms);
	(void)closedir(entries);
	return swept;
}
