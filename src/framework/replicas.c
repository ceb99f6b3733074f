/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "framework/replicas_internal.h"

#include "base/str.h"

#define CONTAINERS "spec.%s[%s].template.spec.containers"

static void check_type(const struct hf_job_view *view, const struct hf_replica_spec *spec,
		       struct hf_field_errors *errors)
{
	const struct hf_framework *framework = view->framework;
	HF_AUTO_STRBUF supported = HF_STRBUF_INIT(512);

	hf_strbuf_addstr(&supported, "supported values: ");
	for (int r = 0; r < framework->roles_len; r++) {
		if (hf_streq(framework->roles[r].name, spec->type))
			return;
		hf_strbuf_addf(&supported, "%s\"%s\"", r > 0 ? ", " : "", framework->roles[r].name);
	}
	hf_field_add(errors, HF_PROBLEM_NOT_SUPPORTED, hf_field_quote(errors, spec->type),
		     supported.data, "spec.%s[%s]", framework->replicas_key, spec->type);
}

static void check_containers(const struct hf_job_view *view, const struct hf_replica_spec *spec,
			     struct hf_field_errors *errors)
{
	const struct hf_framework *framework = view->framework;
	const char *key = framework->replicas_key;
	bool named = false;

	if (spec->null || spec->pod.containers_len == 0)
		hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL, "must be specified", CONTAINERS,
			     key, spec->type);
	for (size_t i = 0; !spec->null && i < spec->pod.containers_len; i++) {
		const struct hf_container *container = &spec->pod.containers[i];

		if (hf_str_is_empty(container->image))
			hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL, "must be required",
				     CONTAINERS "[%zu].image", key, spec->type, i);
		if (hf_streq(container->name, framework->container_name))
			named = true;
	}
	if (!named)
		hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL,
			     hf_arena_printf(errors->arena,
					     "must have at least one container with name %s",
					     framework->container_name),
			     CONTAINERS, key, spec->type);
}

/* upstream takes any number for some kinds; a negative one is refused for all. */
static void check_count(const struct hf_job_view *view, const struct hf_replica_spec *spec,
			const struct hf_replicas_rules *rules, struct hf_field_errors *errors)
{
	const struct hf_framework *framework = view->framework;
	int role = hf_framework_role(framework, spec->type);
	struct hf_opt_int replicas = spec->replicas;

	if (role >= 0 && role == rules->single_role) {
		if (!replicas.set || replicas.value != 1)
			hf_field_add(errors, HF_PROBLEM_FORBIDDEN, NULL, "must be 1",
				     "spec.%s[%s].replicas", framework->replicas_key, spec->type);
	} else if (rules->others_at_least_one && replicas.set && replicas.value < 1) {
		hf_field_add(errors, HF_PROBLEM_FORBIDDEN, NULL, "must be at least 1",
			     "spec.%s[%s].replicas", framework->replicas_key, spec->type);
	} else if (replicas.set && replicas.value < 0) {
		hf_field_add(errors, HF_PROBLEM_FORBIDDEN, NULL, "must not be negative",
			     "spec.%s[%s].replicas", framework->replicas_key, spec->type);
	}
}

void hf_replicas_validate(const struct hf_job_view *view, const struct hf_replicas_rules *rules,
			  struct hf_field_errors *errors)
{
	const struct hf_replica_spec *const *specs = hf_job_replicas(view, errors->arena);

	hf_assert(rules->single_role < view->framework->roles_len);
	if (!view->has_replicas)
		hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL, "must be required", "spec.%s",
			     view->framework->replicas_key);
	for (size_t i = 0; i < view->replicas_len; i++) {
		if (rules->known_types_only)
			check_type(view, specs[i], errors);
		check_containers(view, specs[i], errors);
		if (!specs[i]->null)
			check_count(view, specs[i], rules, errors);
	}
}

int32_t hf_job_total(const struct hf_job *job)
{
	hf_assert(job->ranks >= 0);
	return job->ranks;
}
