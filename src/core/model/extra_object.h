/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_EXTRA_H
#define HF_CORE_EXTRA_H

#include "base/arena.h"
#include "core/model/types.h"

#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Objects that a job needs beside its pods and services.  The kind of job says by its table which
 * there shall be and what is in them (framework.h); the brain compares that with what is seen;
 * whoever performs the plan makes, changes and deletes them.  They have the job as controller and
 * go with it; a table may want some away while the job is suspended, or when it has finished.
 *
 * A new kind of object is a line in extra.c, one in operator/extras.c, and its resource.
 */
enum hf_extra_kind {
	HF_EXTRA_SERVICE_ACCOUNT,
	HF_EXTRA_CONFIG_MAP,
	HF_EXTRA_ROLE,
	HF_EXTRA_ROLE_BINDING,
	HF_EXTRA_AUTOSCALER,
	HF_EXTRA_POD_GROUP,     /* of scheduler-plugins, and of whoever reads the same */
	HF_EXTRA_VOLCANO_GROUP, /* of Volcano */
	HF_EXTRA_KINDS,
};
#define HF_EXTRA_BIT(kind) (1u << (kind))
const char *hf_extra_kind_name(enum hf_extra_kind kind);    /* "ConfigMap" */
const char *hf_extra_kind_version(enum hf_extra_kind kind); /* apiVersion */
/* The members that are compared and kept as they should be, paths ended by NULL ("data", or
 * "spec/minMember"); the rest of the content is sent with the create alone, and what others put
 * beside these members is left alone. */
#define HF_EXTRA_MEMBERS_MAX 4
const char *const *hf_extra_kind_members(enum hf_extra_kind kind);

/* The member that a job may choose. */
#define HF_AUTOSCALER_METRICS "spec/metrics"

enum hf_leaf_type {
	HF_LEAF_TEXT,
	HF_LEAF_NUMBER,
	HF_LEAF_OBJECT, /* one that may have no members */
	HF_LEAF_JSON,   /* any value, as JSON text: what the brain hands on unread */
};

/*
 * One value in an object: keys joined by '/', the place in a list as a number in brackets:
 * "data/hostfile", "rules/[0]/verbs/[1]".  A key that anybody may choose goes through
 * hf_leaf_key.
 */
struct hf_leaf {
	const char *path;
	const char *value; /* TEXT, JSON */
	enum hf_leaf_type type;
	int64_t number;
	uint64_t digest; /* JSON: of the value under that path, from who has read it */
};
/* '~' is "~0", '/' is "~1", and a '[' that begins it "~2". */
const char *hf_leaf_key(struct hf_arena *arena, const char *key);

struct hf_extra {
	enum hf_extra_kind kind;
	const char *name;
	bool shared;    /* one that is there already serves, whoever made it, and is left alone */
	bool gone;      /* shall not be there (any more), if it is ours */
	bool aside;     /* pods wait neither for it nor because its name is held */
	bool gate;      /* pods are made once whoever reads it has let them in */
	bool annotated; /* it is made with the job's annotations, but for what is said to others */
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
void hf_extra_set_number(struct hf_extras *extras, struct hf_extra *extra, const char *path,
			 int64_t number);
void hf_extra_set_object(struct hf_extras *extras, struct hf_extra *extra, const char *path);
void hf_extra_set_json(struct hf_extras *extras, struct hf_extra *extra, const char *path,
		       const char *json, uint64_t digest);

/* The sum over all leaves under the members says whether two contents are the same, in whatever
 * order the leaves are. */
uint64_t hf_leaf_digest(const char *path, const char *value);
uint64_t hf_number_digest(const char *path, int64_t number);
uint64_t hf_extra_digest(const struct hf_extra *extra);

/* What is seen of one, of any owner. */
struct hf_extra_seen {
	enum hf_extra_kind kind;
	const char *name;
	const char *uid;
	const char *resource_version;
	bool owned;
	bool terminating;
	bool ready;      /* lets pods in: Volcano has looked at its group and has room for it */
	uint64_t digest; /* of what is under the members */
};

/* Of each rank below the replicas, when a table says what shall be there. */
enum hf_rank_state {
	HF_RANK_ABSENT,
	HF_RANK_PRESENT, /* a pod of ours has its name */
	HF_RANK_RUNNING, /* and runs, and nobody deletes it */
};
enum hf_life { HF_LIFE_ACTIVE, HF_LIFE_SUSPENDED, HF_LIFE_FINISHED };
struct hf_ranks_seen {
	enum hf_life life;
	/* enum hf_rank_state, by index; NULL unless the job is active. */
	const unsigned char *states[HF_ROLES_MAX];
};

HF_END_DECLS

#endif
