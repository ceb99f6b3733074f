/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

#include "base/str.h"

/*
 * POST pods/NAME/eviction: deletes a pod and marks the deletion as no fault of the pod's, by the
 * condition DisruptionTarget. Condition and deletion are committed together. The embedded control
 * plane has no disruption budgets, so it never refuses an eviction with the status 429.
 */

#define CONDITION "DisruptionTarget"

static int check_eviction(const struct apiserver_route *route, const struct hf_json *eviction,
			  struct hf_error *err)
{
	const char *api_version = hf_json_path_str(eviction, "apiVersion", NULL);
	const char *kind = hf_json_path_str(eviction, "kind", NULL);
	const char *ns = hf_json_path_str(eviction, "metadata", "namespace", NULL);

	if (hf_json_type(eviction) != HF_JSON_OBJECT ||
	    !hf_streq(hf_str_or(kind, "Eviction"), "Eviction") ||
	    (!hf_str_is_empty(api_version) && !hf_str_has_prefix(api_version, "policy/v1")))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "the body must be an Eviction of policy/v1, not %s of %s",
				    hf_str_or(kind, "nothing"), hf_str_or(api_version, "nothing"));
	if (!hf_streq(hf_json_path_str(eviction, "metadata", "name", NULL), route->name))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "name in URL does not match name in Eviction object");
	if (!hf_str_is_empty(ns) && !hf_streq(ns, route->ns))
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "the namespace of the provided object does not match the "
				    "namespace sent on the request");
	return 0;
}

static bool is_target(const struct hf_json *condition)
{
	return hf_streq(hf_json_path_str(condition, "type", NULL), CONDITION);
}

/* Makes the condition like upstream's podutil.UpdatePodCondition: lastTransitionTime changes only
 * if the status of the condition changes. */
static struct hf_json *target_condition(const struct hf_json *old, hf_time now)
{
	struct hf_json *made = hf_json_object();
	const char *since = hf_json_path_str(old, "lastTransitionTime", NULL);
	char text[HF_TIME_TEXT_MAX];

	hf_time_format(now, text);
	if (since == NULL || !hf_streq(hf_json_path_str(old, "status", NULL), "True"))
		since = text;
	hf_json_set_str(made, "type", CONDITION);
	hf_json_set_str(made, "status", "True");
	hf_json_set(made, "lastProbeTime", hf_json_null());
	hf_json_set_str(made, "lastTransitionTime", since);
	hf_json_set_str(made, "reason", "EvictionByEvictionAPI");
	hf_json_set_str(made, "message", "Eviction API: evicting");
	return made;
}

static struct hf_doc *condition_patch(const struct hf_json *pod, hf_time now)
{
	const struct hf_json *old = hf_json_path(pod, "status", "conditions", NULL), *was = NULL;
	struct hf_json *patch = hf_json_object(), *list;

	list = hf_json_ensure_array(hf_json_ensure_object(patch, "status"), "conditions");
	for (size_t i = 0; i < hf_json_len(old); i++) {
		if (is_target(hf_json_item(old, i)))
			was = hf_json_item(old, i);
		else
			hf_json_append(list, hf_json_copy(hf_json_item(old, i)));
	}
	hf_json_append(list, target_condition(was, now));
	return hf_doc_from_json(patch);
}

static int apply_request(struct hf_apiserver *server, const struct hf_request *request,
			 struct hf_result *result, struct hf_error *err)
{
	hf_memstore_apply(server->memstore, request, result);
	return result->code == 0 ? 0 : hf_error_set(err, result->code, "%s", result->err.text);
}

/* Evicts a pod: sets the condition DisruptionTarget, then deletes the pod with the options of the
 * request `deletion`. */
static int evict_pod(struct hf_apiserver *server, struct hf_request *deletion, struct hf_error *err)
{
	struct hf_request trial = *deletion;
	struct hf_request mark = {.verb = HF_VERB_PATCH,
				  .resource = &hf_pods,
				  .ns = deletion->ns,
				  .name = deletion->name,
				  .subresource = "status",
				  .patch_type = HF_PATCH_MERGE};
	HF_AUTO_RESULT tried = {0};
	HF_AUTO_RESULT marked = {0};
	HF_AUTO_RESULT deleted = {0};
	HF_AUTO_DOC patch = NULL;
	int rc;

	/* Try the deletion as a dry run first: if it is refused, the pod must not get the
	 * condition. */
	trial.dry_run = true;
	rc = apply_request(server, &trial, &tried, err);
	if (rc != 0 || deletion->dry_run)
		return rc;
	patch = condition_patch(hf_doc_json(hf_memstore_peek(server->memstore, &hf_pods,
							     deletion->ns, deletion->name)),
				hf_loop_wall(server->loop));
	mark.body = patch;
	rc = apply_request(server, &mark, &marked, err);
	if (rc == 0 && deletion->precondition_resource_version != NULL)
		deletion->precondition_resource_version = hf_doc_resource_version(marked.object);
	if (rc == 0)
		rc = apply_request(server, deletion, &deleted, err);
	return rc == 0 ? hf_memstore_flush(server->memstore, err) : rc;
}

void hf_apiserver_evict(struct hf_apiserver *server, struct hf_exchange *ex,
			const struct apiserver_route *route)
{
	struct hf_request request = {.verb = HF_VERB_DELETE,
				     .resource = &hf_pods,
				     .ns = route->ns,
				     .name = route->name,
				     .grace_seconds = HF_GRACE_DEFAULT};
	struct hf_error err = {0};
	HF_AUTO_DOC body = NULL;
	int rc;

	if (!hf_streq(hf_exchange_method(ex), "POST")) {
		hf_apiserver_fail(
			ex, HF_E_METHOD,
			"the server does not allow this method on the requested resource");
		return;
	}
	rc = hf_apiserver_read_common(ex, &request, &err);
	if (rc == 0)
		rc = hf_apiserver_read_object(ex, &body, &err);
	if (rc == 0)
		rc = check_eviction(route, hf_doc_json(body), &err);
	if (rc == 0)
		rc = hf_apiserver_delete_options(hf_json_get(hf_doc_json(body), "deleteOptions"),
						 &request, &err);
	if (rc == 0)
		rc = evict_pod(server, &request, &err);
	if (rc != 0) {
		hf_apiserver_fail_err(ex, &err);
		return;
	}
	HF_AUTO_JSON status = hf_json_object();
	hf_json_set_str(status, "kind", "Status");
	hf_json_set_str(status, "apiVersion", "v1");
	(void)hf_json_ensure_object(status, "metadata");
	hf_json_set_str(status, "status", "Success");
	hf_json_set_i64(status, "code", 201);
	hf_apiserver_answer_json(ex, 201, status);
}
