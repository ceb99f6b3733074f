/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_CGROUP_INTERNAL_H
#define HF_LOCAL_CGROUP_INTERNAL_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Limits of memory and CPU by control groups, version 2 or 1, where this user may make
 * them.  Groups lie flat under one folder of ours, one per attempt of a container that
 * has limits: "<pod uid>.<container>.<attempt>".
 */
#define HF_CGROUP_PATH_MAX 512

struct hf_cgroup_base {
	int version; /* 0: none */
	/* Absolute folders, "" where that controller cannot be had; equal in version 2. */
	char memory[HF_CGROUP_PATH_MAX], cpu[HF_CGROUP_PATH_MAX];
};

struct hf_cgroup_limits {
	int64_t memory_bytes; /* 0: none */
	int64_t cpu_milli;    /* thousandths of a CPU; 0: none */
};

struct hf_cgroup {
	int version;                                                          /* 0: no group */
	char memory[HF_CGROUP_PATH_MAX + 160], cpu[HF_CGROUP_PATH_MAX + 160]; /* "": none */
};

/*
 * Find where groups can be made, by making one, moving a process in and removing it: the
 * calling process itself, which must be a child of its own for this (it stays in that group's
 * parent's view only until it exits).  version 0 and why, where there is none.
 */
void hf_cgroup_probe(struct hf_cgroup_base *ret_base, struct hf_error *ret_why);
/* root: where cgroup file systems are mounted ("/sys/fs/cgroup"), own: text of
 * /proc/self/cgroup; for tests. */
void hf_cgroup_find(const char *root, const char *own, struct hf_cgroup_base *ret_base,
		    struct hf_error *ret_why);

int hf_cgroup_make(const struct hf_cgroup_base *base, const char *name,
		   const struct hf_cgroup_limits *limits, struct hf_cgroup *ret_group,
		   struct hf_error *err) HF_MUST_CHECK;
/* The calling process enters; its children follow. */
int hf_cgroup_join(const struct hf_cgroup *group, struct hf_error *err) HF_MUST_CHECK;
/* Whether the kernel killed in it for lack of memory. */
bool hf_cgroup_oom_killed(const struct hf_cgroup *group);
/* The group must be empty; what cannot be removed stays (see hf_cgroup_sweep). */
void hf_cgroup_remove(const struct hf_cgroup *group);
/* Remove the empty groups whose name begins with prefix. */
void hf_cgroup_sweep(const struct hf_cgroup_base *base, const char *prefix);

#endif
