/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Logs that outlive their pod: moves them out of a pod's folder, and finds the file of a container's
 * run among them. A log is named CONTAINER.ATTEMPT.log (kubelet/runtime/shim_internal.h). */
#include "kubelet/kubelet_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How many attempts before the status's attempt are searched for a log: a shim keeps the logs of
 * the last two attempts. */
#define ATTEMPTS_BACK 3

int hf_kubelet_keep_logs(const char *pod_dir, const char *kept_logs, const char *uid,
			 struct hf_error *err)
{
	HF_AUTOFREE char *from = hf_xasprintf("%s/logs", pod_dir);
	HF_AUTOFREE char *to = hf_xasprintf("%s/%s", kept_logs, uid);
	int rc = hf_fs_mkdirs(kept_logs, 0700, err);

	if (rc == 0 && rename(from, to) != 0 && errno != ENOENT)
		rc = hf_error_errno(err, errno, "cannot move '%s' to '%s'", from, to);
	return rc;
}

int hf_kubelet_keep_all_logs(const char *state_dir, const char *kept_logs, struct hf_error *err)
{
	HF_AUTOFREE char *pods = hf_xasprintf("%s/pods", state_dir);
	DIR *entries = opendir(pods);
	struct dirent *entry;
	int rc = 0;

	if (!entries)
		return errno == ENOENT ? 0 : hf_error_errno(err, errno, "cannot read '%s'", pods);
	while (rc == 0 && (entry = readdir(entries))) {
		HF_AUTOFREE char *pod = hf_xasprintf("%s/%s", pods, entry->d_name);

		if (entry->d_name[0] != '.')
			rc = hf_kubelet_keep_logs(pod, kept_logs, entry->d_name, err);
	}
	(void)closedir(entries);
	return rc;
}

char *hf_kubelet_kept_log(const char *logs_dir, const struct hf_json *pod, const char *container,
			  bool previous)
{
	const struct hf_json *status = hf_kubelet_find_status(pod, container);
	const char *name = hf_json_path_str(status, "name", NULL);
	/* Begin one attempt above restartCount: a container that waits for its next start may
	 * already have a log with that number. */
	int64_t attempt = hf_json_i64(hf_json_get(status, "restartCount"), 0) + 1;

	/* The container's name becomes a part of a path, so it must not contain "/". */
	if (hf_str_is_empty(name) || hf_dns1123_label_problem(name))
		return NULL;
	for (int i = 0; i <= ATTEMPTS_BACK && attempt >= 0; i++, attempt--) {
		HF_AUTOFREE char *path =
			hf_xasprintf("%s/%s.%" PRId64 ".log", logs_dir, name, attempt);

		if (access(path, F_OK) != 0)
			continue;
		if (!previous)
			return hf_steal(&path);
		previous = false;
	}
	return NULL;
}

void hf_kubelet_log_extent(const char *path, struct hf_kubelet_log_extent *ret_extent)
{
	HF_AUTOFREE char *note = hf_xasprintf("%s" HF_LOG_DROPPED, path);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(64);

	*ret_extent = (struct hf_kubelet_log_extent){.parts = 0};
	for (int i = 0; i < HF_KUBELET_LOG_FILES_MAX; i++) {
		HF_AUTOFREE char *part = i ? hf_xasprintf("%s.%d", path, i) : hf_xstrdup(path);

		ret_extent->parts += access(part, F_OK) == 0;
	}
	if (hf_fs_read_regular(note, &text, NULL) == 0 && text.len > 0)
		(void)!hf_str_to_i64(text.data, 0, INT64_MAX, &ret_extent->dropped, NULL);
}
