/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FRAMEWORK_REPLICAS_INTERNAL_H
#define HF_FRAMEWORK_REPLICAS_INTERNAL_H

#include "core/model/framework.h"

HF_BEGIN_DECLS

/* The differences between the kinds' checks of the replica map. In all other points upstream's
 * webhooks check it in the same way. */
struct hf_replicas_rules {
	/* A replica type that the kind does not define is refused; types are case-sensitive. */
	bool known_types_only;
	/* The role that must have exactly one replica and a written number of replicas; -1: no such
	 * role. */
	int single_role;
	bool single_by_default; /* the replicas of single_role may be omitted */
	bool any_container;     /* at least one container is needed, but its name does not matter */
	/* The replicas of every other role, if given, must be 1 or more. */
	bool others_at_least_one;
	int required_role;     /* the role that must be present; -1: none */
	bool quoted_container; /* the error's text has the container's name in quotes */
};

/* Checks that the replica map exists, and that each replica type has containers, images, and a
 * container with the kind's name. */
void hf_replicas_validate(const struct hf_job_view *view, const struct hf_replicas_rules *rules,
			  struct hf_field_errors *errors);

/* Adds an environment variable to every container. value must live as long as the arena. */
void hf_replicas_env(struct hf_edits *edits, const char *name, const char *value);
void hf_replicas_env_number(struct hf_edits *edits, const char *name, int64_t value);
/* Returns the port of the role's container with the kind's name. HF_E_INVALID if there is no
 * such container. */
int hf_replicas_port(const struct hf_job *job, int role, int32_t *ret_port, struct hf_error *err)
	HF_MUST_CHECK;

/* Completes the bounds of an elastic policy. A missing bound becomes the other bound. If both are
 * missing, both become the role's number of replicas. */
void hf_replicas_elastic(struct hf_job *job, int role);

/* Judges a job by one role: it runs while a rank of the role is active, and it has succeeded when
 * all ranks of the role have succeeded. */
void hf_replicas_judge(const struct hf_job *job, const struct hf_counts *counts, int role,
		       struct hf_judgement *ret_judgement);
/* Sets the job's messages in one of upstream's two forms. If a Master decides: "<Kind> <name> is
 * successfully completed." If the Workers decide: "<Kind> <ns>/<name> successfully completed." */
void hf_replicas_messages(const struct hf_job *job, bool with_namespace, struct hf_arena *arena,
			  struct hf_judgement *ret_judgement);

/* The number of replicas of all roles: the world size. */
int32_t hf_job_total(const struct hf_job *job);

HF_END_DECLS

#endif
