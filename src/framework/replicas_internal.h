/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FRAMEWORK_REPLICAS_INTERNAL_H
#define HF_FRAMEWORK_REPLICAS_INTERNAL_H

#include "core/framework.h"

HF_BEGIN_DECLS

/*
 * What the kinds share.  Upstream's webhooks check the replica map in nearly the same way for
 * each kind; the differences are these switches.
 */
struct hf_replicas_rules {
	bool known_types_only;    /* an unknown key is refused; keys are case-sensitive */
	int single_role;          /* replicas of this role must be written and be 1; -1: none */
	bool single_by_default;   /* ... or left out */
	bool any_container;       /* containers may be called anything, but something */
	bool others_at_least_one; /* replicas of every other role, when written */
	int required_role;        /* this role must be there; -1: none */
	bool quoted_container;    /* the container's name stands in quotes in the error */
};

/* The map is there; each entry has containers, images, and one with the kind's name. */
void hf_replicas_validate(const struct hf_job_view *view, const struct hf_replicas_rules *rules,
			  struct hf_field_errors *errors);

/* A variable of every container; value lives as long as the arena. */
void hf_replicas_env(struct hf_edits *edits, const char *name, const char *value);
void hf_replicas_env_number(struct hf_edits *edits, const char *name, int64_t value);
/* The port of the role's container with the kind's name.  HF_E_INVALID: there is no such
 * container. */
int hf_replicas_port(const struct hf_job *job, int role, int32_t *ret_port, struct hf_error *err)
	HF_MUST_CHECK;

/* Bounds of an elastic policy that are not given: the other one, or the role's replicas. */
void hf_replicas_elastic(struct hf_job *job, int role);

/* Running while a rank of the role is active, succeeded when all of them are. */
void hf_replicas_judge(const struct hf_job *job, const struct hf_counts *counts, int role,
		       struct hf_judgement *ret_judgement);
/* Upstream's two shapes: "<Kind> <name> is successfully completed." where a Master decides, and
 * "<Kind> <ns>/<name> successfully completed." where the Workers do. */
void hf_replicas_messages(const struct hf_job *job, bool with_namespace, struct hf_arena *arena,
			  struct hf_judgement *ret_judgement);

/* Replicas of all present roles: what env calls world or node count. */
int32_t hf_job_total(const struct hf_job *job);

HF_END_DECLS

#endif
