/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * What several job kinds share: checks of the replica map, environment variables, ports, and the
 * default judgement of counts.
 */
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
			     const struct hf_replicas_rules *rules, struct hf_field_errors *errors)
{
	const struct hf_framework *framework = view->framework;
	const char *key = framework->replicas_key;
	const char *quote = rules->quoted_container ? "\"" : "";
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
		if (rules->any_container && hf_str_is_empty(container->name))
			hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL, "must be required",
				     CONTAINERS "[%zu].name", key, spec->type, i);
	}
	if (!named && !rules->any_container)
		hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL,
			     hf_arena_printf(errors->arena,
					     "must have at least one container with name %s%s%s",
					     quote, framework->container_name, quote),
			     CONTAINERS, key, spec->type);
}

/* Checks the number of replicas. Upstream accepts any number for some kinds; here a negative number
 * is refused for every kind. */
static void check_count(const struct hf_job_view *view, const struct hf_replica_spec *spec,
			const struct hf_replicas_rules *rules, struct hf_field_errors *errors)
{
	const struct hf_framework *framework = view->framework;
	int role = hf_framework_role(framework, spec->type);
	struct hf_opt_int replicas = spec->replicas;

	if (role >= 0 && role == rules->single_role) {
		if (replicas.set ? replicas.value != 1 : !rules->single_by_default)
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

static void check_required(const struct hf_job_view *view, int role, struct hf_field_errors *errors)
{
	const struct hf_framework *framework = view->framework;

	for (size_t i = 0; i < view->replicas_len; i++)
		if (hf_streq(view->replicas[i].type, framework->roles[role].name))
			return;
	hf_field_add(errors, HF_PROBLEM_REQUIRED, NULL, "must be present", "spec.%s[%s]",
		     framework->replicas_key, framework->roles[role].name);
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
		check_containers(view, specs[i], rules, errors);
		if (!specs[i]->null)
			check_count(view, specs[i], rules, errors);
	}
	if (rules->required_role >= 0)
		check_required(view, rules->required_role, errors);
}

int32_t hf_job_total(const struct hf_job *job)
{
	hf_assert(job->ranks >= 0);
	return job->ranks;
}

void hf_replicas_env(struct hf_edits *edits, const char *name, const char *value)
{
	hf_edits_env_text(edits, HF_EDIT_EVERY_CONTAINER, name, value);
}

void hf_replicas_env_number(struct hf_edits *edits, const char *name, int64_t value)
{
	hf_edits_env(edits, HF_EDIT_EVERY_CONTAINER, name, "%lld", (long long)value);
}

int hf_replicas_port(const struct hf_job *job, int role, int32_t *ret_port, struct hf_error *err)
{
	const struct hf_framework *framework = job->framework;
	const struct hf_role *spec = &job->roles[role];

	hf_assert(role < framework->roles_len);
	if (!spec->present || spec->pod->containers_len == 0 ||
	    !hf_streq(spec->pod->containers[spec->default_container].name,
		      framework->container_name))
		return hf_error_set(err, HF_E_INVALID,
				    "spec.%s[%s] has no container named '%s' to take the port "
				    "from",
				    framework->replicas_key, framework->roles[role].name,
				    framework->container_name);
	*ret_port = spec->port;
	return 0;
}

void hf_replicas_elastic(struct hf_job *job, int role)
{
	struct hf_elastic_policy *elastic = &job->elastic;

	hf_assert(role < job->framework->roles_len);
	if (!elastic->present)
		return;
	if (!elastic->min_replicas.set && !elastic->max_replicas.set)
		elastic->min_replicas = elastic->max_replicas =
			HF_SOME_INT(job->roles[role].replicas);
	else if (!elastic->min_replicas.set)
		elastic->min_replicas = elastic->max_replicas;
	else if (!elastic->max_replicas.set)
		elastic->max_replicas = elastic->min_replicas;
}

void hf_replicas_judge(const struct hf_job *job, const struct hf_counts *counts, int role,
		       struct hf_judgement *ret_judgement)
{
	const struct hf_role *spec = &job->roles[role];

	hf_assert(role < job->framework->roles_len);
	ret_judgement->running = counts[role].active > 0;
	/* If the role has no replicas, no rank is unfinished, so the job has succeeded, as in
	 * upstream. */
	ret_judgement->succeeded = spec->present && counts[role].succeeded >= spec->replicas;
}

void hf_replicas_messages(const struct hf_job *job, bool with_namespace, struct hf_arena *arena,
			  struct hf_judgement *ret_judgement)
{
	const char *kind = job->framework->kind, *name = job->view->name;
	const char *ns = hf_str_or(job->view->ns, "");

	hf_assert(name);
	if (with_namespace) {
		ret_judgement->running_message =
			hf_arena_printf(arena, "%s %s/%s is running.", kind, ns, name);
		ret_judgement->succeeded_message =
			hf_arena_printf(arena, "%s %s/%s successfully completed.", kind, ns, name);
	} else {
		ret_judgement->running_message =
			hf_arena_printf(arena, "%s %s is running.", kind, name);
		ret_judgement->succeeded_message =
			hf_arena_printf(arena, "%s %s is successfully completed.", kind, name);
	}
}
