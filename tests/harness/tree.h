/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_TREE_H
#define HF_TESTS_HARNESS_TREE_H

/* Trees of real files in a folder of their own, as the kernel lays files out in sysfs. */

#include "harness/test.h"

#include "base/fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TREE_ROOT_MAX 64

static inline void tree_init(char root[TREE_ROOT_MAX])
{
	snprintf(root, TREE_ROOT_MAX, "/tmp/holdfast-tree-XXXXXX");
	assert_non_null(mkdtemp(root));
}

static inline void tree_release(const char *root)
{
	struct hf_error err = {0};

	assert_ok(hf_fs_remove_tree(root, &err), &err);
}

/* Returns the path of a file below root, and makes the folders in which it lies. */
static inline void tree_path(const char *root, const char *name, char ret_path[512])
{
	struct hf_error err = {0};
	char *slash;

	snprintf(ret_path, 512, "%s%s", root, name);
	slash = strrchr(ret_path, '/');
	*slash = '\0';
	assert_ok(hf_fs_mkdirs(ret_path, 0700, &err), &err);
	*slash = '/';
}

static inline void tree_put_bytes(const char *root, const char *name, const void *bytes, size_t len)
{
	struct hf_error err = {0};
	char path[512];

	tree_path(root, name, path);
	assert_ok(hf_fs_write_atomic(path, bytes, len, 0600, &err), &err);
}

static inline void tree_put(const char *root, const char *name, const char *text)
{
	tree_put_bytes(root, name, text, strlen(text));
}

static inline void tree_link(const char *root, const char *name, const char *target)
{
	char path[512];

	tree_path(root, name, path);
	assert_int_equal(symlink(target, path), 0);
}

static inline void tree_drop(const char *root, const char *name)
{
	struct hf_error err = {0};
	char path[512];

	snprintf(path, sizeof(path), "%s%s", root, name);
	assert_ok(hf_fs_remove_tree(path, &err), &err);
}

/* Makes the files of a network port of "mlx5_0" that is up, and the link to its device on the
 * bus. */
static inline void tree_put_port(const char *root, const char *device, const char *address)
{
	static const char *const files[][2] = {
		{"state", "4: ACTIVE\n"},
		{"phys_state", "5: LinkUp\n"},
		{"counters/link_downed", "2\n"},
		{"counters/excessive_buffer_overrun_errors", "1\n"},
		{"counters/local_link_integrity_errors", "2\n"},
		{"counters/symbol_error", "40\n"},
		{"counters/link_error_recovery", "5\n"},
		{"hw_counters/rnr_nak_retry_err", "3\n"},
		{"hw_counters/roce_slow_restart", "6\n"},
	};
	char name[256], target[256];

	for (size_t i = 0; i < HF_ARRAY_LEN(files); i++) {
		snprintf(name, sizeof(name), "/class/infiniband/%s/ports/1/%s", device,
			 files[i][0]);
		tree_put(root, name, files[i][1]);
	}
	snprintf(name, sizeof(name), "/class/infiniband/%s/device", device);
	snprintf(target, sizeof(target), "../../../%s", address);
	tree_link(root, name, target);
}

#endif
