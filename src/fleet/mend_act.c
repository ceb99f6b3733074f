/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "api/lifetime.h"
#include "base/str.h"
#include "store/resource.h"

#include <string.h>

/*
 * The acts that need no actor on the node: restart-process, restart-plugin, external.
 * Input: the facts of a pass. Output: what the act is about, or why there is nothing to act on; the one
 * request of the act. Invariants: the request is sent once, right after the guarded write of phase Acting; a
 * created object belongs to its Remediation by UID.
 *
 * Also what these acts share with mend_do.c: owner references and evictions.
 */

/* The annotation by which a restart of one rank is requested; as HF_ANNOTATION_RESTART of src/core. */
#define RESTART_ANNOTATION "holdfast.dev/restart"
#define TEMPLATE "Template"

/* ---- owner references and evictions ---------------------------------------------------------------- */

struct hf_owner hf_fleet_mend_owner(const struct fleet_mend *mend)
{
	return (struct hf_owner){.api_version = HF_REMEDIATION_API_VERSION,
				 .kind = HF_REMEDIATION_KIND,
				 .name = mend->name,
				 .uid = mend->r.uid};
}

bool hf_fleet_mend_evict(struct hf_doc *pod, struct hf_request *ret_request,
			 struct hf_doc **ret_body)
{
	*ret_body = hf_eviction(hf_doc_namespace(pod), hf_doc_name(pod), hf_doc_uid(pod));
	*ret_request = (struct hf_request){.verb = HF_VERB_CREATE,
					   .resource = &hf_pods,
					   .ns = hf_doc_namespace(pod),
					   .name = hf_doc_name(pod),
					   .subresource = "eviction",
					   .body = *ret_body};
	return true;
}

/* ---- restart-process ----------------------------------------------------------------------------- */

/* "worker-1" of pod "ddp-worker-1" of the job "pytorchjobs/team/ddp"; NULL: the pod has another name. */
static const char *rank_of(const char *job, const char *pod)
{
	const char *name = job == NULL ? NULL : strrchr(job, '/');
	size_t len = name == NULL ? 0 : strlen(name + 1);

	if (len == 0 || pod == NULL || strncmp(pod, name + 1, len) != 0 || pod[len] != '-')
		return NULL;
	return pod + len + 1;
}

/* Finds the first pod that still holds a target and is a rank of a job. Notes the job and the
 * pod. */
static void find_rank(struct fleet_mend *mend, struct mend_facts *facts)
{
	const struct hf_fleet *fleet = mend->fleet;

	for (size_t i = 0; i < facts->view.pods_left && facts->act_job == NULL; i++) {
		struct hf_doc *pod = mend->pods[facts->left[i].at];
		const char *job = fleet->env.find_job(fleet->env.arg, hf_doc_namespace(pod),
						      hf_doc_name(pod), hf_doc_uid(pod));

		if (rank_of(job, hf_doc_name(pod)) == NULL)
			continue;
		facts->act_job = hf_arena_strdup(mend->arena, job);
		facts->act_pod = facts->left[i].at;
	}
	if (facts->act_job == NULL)
		facts->act_missing = "no rank of a job holds the devices";
}

static bool restart_rank(struct fleet_mend *mend, const struct mend_facts *facts,
			 struct hf_request *ret_request, struct hf_doc **ret_body)
{
	char *plural = hf_arena_strdup(mend->arena, facts->act_job);
	char *ns = strchr(plural, '/'), *name, now[HF_TIME_TEXT_MAX];
	struct hf_json *patch = hf_json_object(), *annotations;

	hf_assert(ns != NULL && strchr(ns + 1, '/') != NULL);
	*ns++ = '\0';
	name = strchr(ns, '/');
	*name++ = '\0';
	hf_time_format_micro(facts->now, now);
	annotations =
		hf_json_ensure_object(hf_json_ensure_object(patch, "metadata"), "annotations");
	hf_json_set_str(
		annotations, RESTART_ANNOTATION,
		hf_arena_printf(mend->arena, "%s %s", now,
				rank_of(facts->act_job, hf_doc_name(mend->pods[facts->act_pod]))));
	*ret_body = hf_doc_from_json(patch);
	*ret_request = (struct hf_request){.verb = HF_VERB_PATCH,
					   .resource = hf_resource_by_word(plural),
					   .ns = ns,
					   .name = name,
					   .patch_type = HF_PATCH_MERGE,
					   .body = *ret_body};
	return ret_request->resource != NULL;
}

/* ---- restart-plugin ------------------------------------------------------------------------------ */

static void find_plugin(struct fleet_mend *mend, struct mend_facts *facts)
{
	for (size_t i = 0; i < mend->pods_len; i++) {
		const struct hf_json *pod = hf_doc_json(mend->pods[i]);

		if (!hf_is_plugin_pod(pod) || hf_is_leaving(pod))
			continue;
		facts->act_pod = i;
		return;
	}
	facts->act_missing = "no pod of a GPU device plugin's DaemonSet runs on the node";
}

/* ---- external ------------------------------------------------------------------------------------ */

/* The plural of a kind, by the rule of controller-runtime's tools for such templates. */
static const char *plural_of(struct hf_arena *arena, const char *kind)
{
	char *plural = hf_arena_strdup(arena, kind);
	size_t len = strlen(plural);

	hf_str_lower(plural);
	if (hf_str_has_suffix(plural, "s"))
		return hf_arena_printf(arena, "%ses", plural);
	if (hf_str_has_suffix(plural, "y"))
		return hf_arena_printf(arena, "%.*sies", (int)len - 1, plural);
	return hf_arena_printf(arena, "%ss", plural);
}

/* A kind, and the namespace of its object. */
struct place {
	const char *api_version, *kind, *ns;
};

static const struct hf_resource *make_resource(struct hf_arena *arena, const struct place *place)
{
	struct hf_resource *resource = HF_ARENA_NEW(arena, struct hf_resource);
	const char *slash = strchr(place->api_version, '/');

	*resource = (struct hf_resource){
		.group = slash == NULL
				 ? ""
				 : hf_arena_printf(arena, "%.*s", (int)(slash - place->api_version),
						   place->api_version),
		.version = slash == NULL ? place->api_version : slash + 1,
		.plural = plural_of(arena, place->kind),
		.singular = place->kind,
		.kind = place->kind,
		.namespaced = place->ns != NULL};
	return resource;
}

/* The rules of a policy with a template; NULL: it has none. */
static const struct hf_policy_mend *rules_of(const struct fleet_mend *mend)
{
	const struct hf_policy_mend *rules = hf_fleet_mend_rules(mend);

	return rules == NULL || rules->external.kind == NULL ? NULL : rules;
}

static bool has_webhook(const struct fleet_mend *mend)
{
	const struct hf_policy_mend *rules = hf_fleet_mend_rules(mend);

	return rules != NULL && rules->webhook.url != NULL;
}

/* The template of the policy, or the object: from the intent on as the status has it, because the policy may change. */
static bool find_place(const struct fleet_mend *mend, bool is_template, struct place *ret_place)
{
	const struct hf_remediation_status *status = &mend->r.status;
	const struct hf_policy_mend *rules = rules_of(mend);

	if (!is_template && !hf_str_is_empty(status->saved.external.kind)) {
		*ret_place = (struct place){hf_str_or(status->saved.external.api_version, "v1"),
					    status->saved.external.kind, status->saved.external.ns};
		return true;
	}
	if (rules == NULL)
		return false;
	*ret_place = (struct place){rules->external.api_version, rules->external.kind,
				    rules->external.ns};
	if (!is_template)
		ret_place->kind = hf_arena_printf(
			mend->arena, "%.*s", (int)(strlen(rules->external.kind) - strlen(TEMPLATE)),
			rules->external.kind);
	return true;
}

bool hf_fleet_mend_external(struct fleet_mend *mend, bool is_template,
			    struct hf_request *ret_request)
{
	struct place place;

	if (mend->rung != HF_MEND_EXTERNAL || !find_place(mend, is_template, &place))
		return false;
	*ret_request = (struct hf_request){.verb = HF_VERB_GET,
					   .resource = make_resource(mend->arena, &place),
					   .ns = place.ns,
					   .name = is_template ? rules_of(mend)->external.name
							       : mend->node};
	return true;
}

void hf_fleet_mend_save_external(const struct fleet_mend *mend,
				 struct hf_remediation_status *status)
{
	struct place place;

	if (mend->rung != HF_MEND_EXTERNAL || !find_place(mend, false, &place))
		return;
	status->saved.external.api_version = place.api_version;
	status->saved.external.kind = place.kind;
	status->saved.external.ns = place.ns;
}

/* The kind may not exist either, or the template may be in another namespace. */
static const char *say_missing(struct hf_arena *arena, const struct hf_policy_mend *rules)
{
	bool placed = !hf_str_is_empty(rules->external.ns);

	return hf_arena_printf(arena, "%s %s does not exist (%s%s%s)", rules->external.kind,
			       rules->external.name, rules->external.api_version,
			       placed ? ", namespace " : "", placed ? rules->external.ns : "");
}

static void see_external(struct fleet_mend *mend, struct mend_facts *facts)
{
	struct hf_doc *object = mend->docs[MEND_READ_EXTERNAL];
	const struct hf_policy_mend *rules = rules_of(mend);

	facts->own_external = object != NULL && hf_is_owned_by(hf_doc_json(object), mend->r.uid);
	if (facts->own_external && hf_is_leaving(hf_doc_json(object)))
		facts->external_leaves = hf_arena_printf(
			mend->arena, "%.64s %s is deleted, but its finalizers keep it",
			hf_str_or(hf_json_path_str(hf_doc_json(object), "kind", NULL), "object"),
			mend->node);
	if (has_webhook(mend))
		facts->act_missing = hf_fleet_mend_lacks_webhook(mend);
	else if (rules == NULL)
		facts->act_missing = "the act names no policy with spec.mend.external";
	else if (mend->external_problem != NULL)
		facts->act_missing = mend->external_problem;
	else if (mend->docs[MEND_READ_TEMPLATE] == NULL)
		facts->act_missing = say_missing(mend->arena, rules);
	else if (hf_json_path(hf_doc_json(mend->docs[MEND_READ_TEMPLATE]), "spec", "template",
			      "spec", NULL) == NULL)
		facts->act_missing = hf_arena_printf(mend->arena, "%s %s has no spec.template.spec",
						     rules->external.kind, rules->external.name);
	else if (object != NULL && !facts->own_external)
		facts->act_missing =
			hf_arena_printf(mend->arena, "another %.*s %s is at work",
					(int)(strlen(rules->external.kind) - strlen(TEMPLATE)),
					rules->external.kind, mend->node);
}

static bool create_external(struct fleet_mend *mend, struct hf_request *ret_request,
			    struct hf_doc **ret_body)
{
	const struct hf_json *template =
		hf_json_path(hf_doc_json(mend->docs[MEND_READ_TEMPLATE]), "spec", "template", NULL);
	const struct hf_owner owner = hf_fleet_mend_owner(mend);
	struct hf_json *object = hf_json_object(), *metadata;

	if (!hf_fleet_mend_external(mend, false, ret_request))
		return false;
	hf_json_set_str(object, "apiVersion", rules_of(mend)->external.api_version);
	hf_json_set_str(object, "kind", ret_request->resource->kind);
	metadata = hf_json_ensure_object(object, "metadata");
	hf_json_set_str(metadata, "name", mend->node);
	if (ret_request->ns != NULL)
		hf_json_set_str(metadata, "namespace", ret_request->ns);
	hf_set_owner(metadata, &owner);
	hf_json_set(object, "spec", hf_json_copy(hf_json_get(template, "spec")));
	*ret_body = hf_doc_from_json(object);
	ret_request->verb = HF_VERB_CREATE;
	ret_request->name = NULL;
	ret_request->body = *ret_body;
	return true;
}

bool hf_fleet_mend_remove_external(struct fleet_mend *mend, struct hf_request *ret_request)
{
	if (!hf_fleet_mend_external(mend, false, ret_request))
		return false;
	ret_request->verb = HF_VERB_DELETE;
	ret_request->precondition_uid = hf_doc_uid(mend->docs[MEND_READ_EXTERNAL]);
	ret_request->grace_seconds = HF_GRACE_DEFAULT;
	return true;
}

/* ---- both ---------------------------------------------------------------------------------------- */

void hf_fleet_mend_see_act(struct fleet_mend *mend, struct mend_facts *facts)
{
	if (mend->rung == HF_MEND_EXTERNAL)
		see_external(mend, facts);
	else if (mend->rung == HF_MEND_RESTART_PROCESS)
		find_rank(mend, facts);
	else if (mend->rung == HF_MEND_RESTART_PLUGIN)
		find_plugin(mend, facts);
}

bool hf_fleet_mend_act(struct fleet_mend *mend, const struct mend_facts *facts,
		       struct hf_request *ret_request, struct hf_doc **ret_body)
{
	*ret_body = NULL;
	if (facts->act_missing != NULL)
		return false;
	switch (mend->rung) {
	case HF_MEND_RESTART_PROCESS: return restart_rank(mend, facts, ret_request, ret_body);
	case HF_MEND_RESTART_PLUGIN:
		/* The DaemonSet makes another pod. A disruption budget may refuse. */
		return hf_fleet_mend_evict(mend->pods[facts->act_pod], ret_request, ret_body);
	case HF_MEND_EXTERNAL:
		if (!has_webhook(mend))
			return create_external(mend, ret_request, ret_body);
		*ret_request = (struct hf_request){.resource = NULL};
		*ret_body = hf_fleet_mend_webhook_body(mend);
		return true;
	default: return false;
	}
}
