/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_RUNTIME_CGROUP_INTERNAL_H
#define HF_KUBELET_RUNTIME_CGROUP_INTERNAL_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Limits of memory and CPU by control groups, version 2 or 1, if this user may make groups. The
 * groups lie in one folder, one for each attempt of a container with limits: "<pod
 * uid>.<container>.<attempt>".
 */
#define HF_CGROUP_PATH_MAX 512

struct hf_cgroup_base {
	int version; /* 0: no groups */
	/* The folders in which groups are made, as absolute paths; "": the controller is not
	 * available. In version 2 both paths are equal. */
	char memory[HF_CGROUP_PATH_MAX], cpu[HF_CGROUP_PATH_MAX];
};

struct hf_cgroup_limits {
	int64_t memory_bytes; /* 0: no limit */
	int64_t cpu_milli;    /* thousandths of a CPU; 0: no limit */
};

struct hf_cgroup {
	int version; /* 0: no group */
	/* "": no such controller */
	char memory[HF_CGROUP_PATH_MAX + 160], cpu[HF_CGROUP_PATH_MAX + 160];
};

/*
 * Finds a folder for groups by making a group, entering it and removing it. Call it in a child
 * process that exits afterwards: the calling process itself moves between groups. If no folder
 * works, version is 0 and ret_why has the reason.
 */
void hf_cgroup_probe(struct hf_cgroup_base *ret_base, struct hf_error *ret_why);
/* The search of hf_cgroup_probe, for tests. root: the mount point ("/sys/fs/cgroup"); own: the
 * text of /proc/self/cgroup. */
void hf_cgroup_find(const char *root, const char *own, struct hf_cgroup_base *ret_base,
		    struct hf_error *ret_why);

int hf_cgroup_make(const struct hf_cgroup_base *base, const char *name,
		   const struct hf_cgroup_limits *limits, struct hf_cgroup *ret_group,
		   struct hf_error *err) HF_MUST_CHECK;
/* Moves the calling process into the group. Processes that it starts later are in the group
 * too. */
int hf_cgroup_join(const struct hf_cgroup *group, struct hf_error *err) HF_MUST_CHECK;
/* Tells whether the kernel killed a process of the group for lack of memory. */
bool hf_cgroup_oom_killed(const struct hf_cgroup *group);
/* Removes an empty group. A group that cannot be removed stays; hf_cgroup_sweep retries. */
void hf_cgroup_remove(const struct hf_cgroup *group);
/* Removes all empty groups with names that begin with prefix. */
void hf_cgroup_sweep(const struct hf_cgroup_base *base, const char *prefix);

#endif
