/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_EXTRA_H
#define HF_CORE_EXTRA_H

#include "base/arena.h"
#include "core/types.h"

#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Objects that a job needs beside its pods and services.  The kind of job says by its table which
 * there shall be and what is in them (framework.h); the brain compares that with what is seen;
 * whoever performs the plan makes, changes and deletes them.  They have the job as controller and
 * go with it; nothing removes them when it is finished or suspended.
 *
 * A new kind of object is a line in extra.c, one in operator/extras.c, and its resource.
 */
enum hf_extra_kind {
	HF_EXTRA_SERVICE_ACCOUNT,
	HF_EXTRA_CONFIG_MAP,
	HF_EXTRA_ROLE,
	HF_EXTRA_ROLE_BINDING,
	HF_EXTRA_KINDS,
};
#define HF_EXTRA_BIT(kind) (1u << (kind))
const char *hf_extra_kind_name(enum hf_extra_kind kind);    /* "ConfigMap" */
const char *hf_extra_kind_version(enum hf_extra_kind kind); /* apiVersion */
/* The member that is compared and kept as it should be ("data"); the rest of the content is sent
 * with the create alone.  NULL: nothing is. */
const char *hf_extra_kind_root(enum hf_extra_kind kind);

/*
 * One text in an object: keys joined by '/', the place in a list as a number in brackets:
 * "data/hostfile", "rules/[0]/verbs/[1]".
 */
struct hf_leaf {
	const char *path;
	const char *value;
};

struct hf_extra {
	enum hf_extra_kind kind;
	const char *name;
	bool shared; /* one that is there already serves, whoever made it, and is left alone */
	bool gone;   /* shall not be there (any more), if it is ours */
	struct hf_leaf *labels; /* path: the key */
	size_t labels_len, labels_cap;
	struct hf_leaf *content;
	size_t content_len, content_cap;
};

/* Being collected; memory comes from the arena. */
struct hf_extras {
	struct hf_arena *arena;
	struct hf_extra *items;
	size_t len, cap;
};
/* Good until the next one is added. */
struct hf_extra *hf_extras_add(struct hf_extras *extras, enum hf_extra_kind kind, const char *name);
void hf_extra_label(struct hf_extras *extras, struct hf_extra *extra, const char *key,
		    const char *value);
void hf_extra_set(struct hf_extras *extras, struct hf_extra *extra, const char *path,
		  const char *value);

/* The sum over all leaves under the root says whether two contents are the same, in whatever order
 * the leaves are. */
uint64_t hf_leaf_digest(const char *path, const char *value);
uint64_t hf_extra_digest(const struct hf_extra *extra);

/* What is seen of one, of any owner. */
struct hf_extra_seen {
	enum hf_extra_kind kind;
	const char *name;
	const char *uid;
	const char *resource_version;
	bool owned;
	bool terminating;
	uint64_t digest; /* of what is under the root */
};

/* Of each rank below the replicas, when a table says what shall be there. */
enum hf_rank_state {
	HF_RANK_ABSENT,
	HF_RANK_PRESENT, /* a pod of ours has its name */
	HF_RANK_RUNNING, /* and runs, and nobody deletes it */
};
struct hf_ranks_seen {
	const unsigned char *states[HF_ROLES_MAX]; /* enum hf_rank_state, by index */
};

HF_END_DECLS

#endif
