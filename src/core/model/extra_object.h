/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_EXTRA_H
#define HF_CORE_EXTRA_H

#include "base/arena.h"
#include "core/model/types.h"

#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Objects that a job needs beside its pods and services.  The kind's table (framework.h) says
 * which objects must exist and what is in them; the brain compares that with what is seen; the
 * caller creates, changes and deletes them.  The job is their controller, so they are deleted with
 * the job.  A table may remove objects while the job is suspended or finished.
 *
 * A new kind of object is a line in extra_object.c, a line in operator/extras.c, and its resource.
 */
enum hf_extra_kind {
	HF_EXTRA_SERVICE_ACCOUNT,
	HF_EXTRA_CONFIG_MAP,
	HF_EXTRA_ROLE,
	HF_EXTRA_ROLE_BINDING,
	HF_EXTRA_AUTOSCALER,
	HF_EXTRA_POD_GROUP,     /* of scheduler-plugins */
	HF_EXTRA_VOLCANO_GROUP, /* of Volcano */
	HF_EXTRA_KINDS,
};
#define HF_EXTRA_BIT(kind) (1u << (kind))
const char *hf_extra_kind_name(enum hf_extra_kind kind);    /* "ConfigMap" */
const char *hf_extra_kind_version(enum hf_extra_kind kind); /* apiVersion */
/* The members of an object that are compared and kept up to date, as paths ended by NULL ("data",
 * "spec/minMember").  The other content is sent only when the object is created; members that
 * Holdfast does not know are left alone. */
#define HF_EXTRA_MEMBERS_MAX 4
const char *const *hf_extra_kind_members(enum hf_extra_kind kind);

/* The member with the metrics of an autoscaler, which a job may choose. */
#define HF_AUTOSCALER_METRICS "spec/metrics"

enum hf_leaf_type {
	HF_LEAF_TEXT,
	HF_LEAF_NUMBER,
	HF_LEAF_OBJECT, /* an object, possibly empty */
	HF_LEAF_JSON,   /* any JSON value, as text that the brain does not read */
};

/*
 * One value in an object.  The keys of its path are joined by '/'; an index in a list is a number
 * in brackets: "data/hostfile", "rules/[0]/verbs/[1]".  A key that a user may choose must pass
 * through hf_leaf_key.
 */
struct hf_leaf {
	const char *path;
	const char *value; /* TEXT, JSON */
	enum hf_leaf_type type;
	int64_t number;
	uint64_t
		/* JSON: the digest of the value under its path, computed by the reader of the
		 * document */
		digest;
};
/* Escape a key for a path: '~' becomes "~0", '/' becomes "~1", and a '[' at its beginning "~2". */
const char *hf_leaf_key(struct hf_arena *arena, const char *key);

struct hf_extra {
	enum hf_extra_kind kind;
	const char *name;
	/* if any owner has an object of this name, that object serves and is left alone */
	bool shared;
	bool gone;  /* if the job owns the object, the object must be deleted */
	bool aside; /* pods are created without waiting for the object or for its name */
	/* pods are created only after a scheduler that reads the object has admitted them */
	bool gate;
	bool annotated; /* the object gets the job's annotations, except those for other readers */
	struct hf_leaf *labels; /* path: the key */
	size_t labels_len, labels_cap;
	struct hf_leaf *content;
	size_t content_len, content_cap;
};

/* A growing list of wanted objects.  All its memory comes from the arena. */
struct hf_extras {
	struct hf_arena *arena;
	struct hf_extra *items;
	size_t len, cap;
};
/* Add a wanted object.  The pointer is valid until the next object is added. */
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

/* Two contents are equal if the sums of the digests of all leaves under the compared members are
 * equal.  The order of leaves does not matter. */
uint64_t hf_leaf_digest(const char *path, const char *value);
uint64_t hf_number_digest(const char *path, int64_t number);
uint64_t hf_extra_digest(const struct hf_extra *extra);

/* An existing object with a wanted name, of any owner. */
struct hf_extra_seen {
	enum hf_extra_kind kind;
	const char *name;
	const char *uid;
	const char *resource_version;
	bool owned;
	bool terminating;
	/* Volcano has looked at this group and has room for it, so pods may be created */
	bool ready;
	uint64_t digest; /* of the content under the members */
};

/* The state of a rank that the spec asks for, as input of the kind's table. */
enum hf_rank_state {
	HF_RANK_ABSENT,
	HF_RANK_PRESENT, /* the job's pod has the rank's name */
	HF_RANK_RUNNING, /* the pod runs and is not being deleted */
};
enum hf_life { HF_LIFE_ACTIVE, HF_LIFE_SUSPENDED, HF_LIFE_FINISHED };
struct hf_ranks_seen {
	enum hf_life life;
	/* the states of the ranks by role and index; NULL unless the job is active */
	const unsigned char *states[HF_ROLES_MAX];
};

HF_END_DECLS

#endif
