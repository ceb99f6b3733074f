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
	bool others_at_least_one; /* replicas of every other role, when written */
};

/* The map is there; each entry has containers, images, and one with the kind's name. */
void hf_replicas_validate(const struct hf_job_view *view, const struct hf_replicas_rules *rules,
			  struct hf_field_errors *errors);

/* Replicas of all present roles: what env calls world or node count. */
int32_t hf_job_total(const struct hf_job *job);

HF_END_DECLS

#endif
