/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/model/names.h"
#include "framework/framework.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * The requests of `holdfast check`: reads objects into the facts, a source after the other.  Lists are
 * selected by labels or names, so that a large cluster sends little.  A request that fails ends its
 * source, not the command.  A kind that the server does not have is an empty list.
 */

#define KIND(var, group_, plural_, kind_, namespaced_)                                             \
	static const struct hf_resource var = {.group = (group_),                                  \
					       .version = "v1",                                    \
					       .plural = (plural_),                                \
					       .singular = (plural_),                              \
					       .kind = (kind_),                                    \
					       .namespaced = (namespaced_)}
#define REGISTRATION "admissionregistration.k8s.io"
KIND(crds, "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", false);
KIND(deployments, "apps", "deployments", "Deployment", true);
KIND(validating, REGISTRATION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
     false);
KIND(mutating, REGISTRATION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration",
     false);
KIND(policies, REGISTRATION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", false);
KIND(bindings, REGISTRATION, "validatingadmissionpolicybindings",
     "ValidatingAdmissionPolicyBinding", false);
KIND(endpointslices, "discovery.k8s.io", "endpointslices", "EndpointSlice", true);

#define SERVICES_MAX 64 /* Services of webhooks whose endpoints are read */

struct fetch {
	struct hf_cli *cli;
	struct hf_check_facts *facts;
};

/* A Node with the members that the rules read. Its status names each image on the node, which is most of it. */
static struct hf_doc *shrink_node(struct hf_doc *doc)
{
	static const char *const kept[] = {"conditions", "capacity"};
	const struct hf_json *json = hf_doc_json(doc);
	struct hf_json *node = hf_json_object();
	struct hf_json *status = hf_json_ensure_object(node, "status");
	const struct hf_json *taints = hf_json_path(json, "spec", "taints", NULL);

	hf_json_set_str(hf_json_ensure_object(node, "metadata"), "name",
			hf_str_or(hf_doc_name(doc), ""));
	if (taints != NULL)
		hf_json_set(hf_json_ensure_object(node, "spec"), "taints", hf_json_share(taints));
	for (size_t i = 0; i < HF_ARRAY_LEN(kept); i++) {
		const struct hf_json *value = hf_json_path(json, "status", kept[i], NULL);

		if (value != NULL)
			hf_json_set(status, kept[i], hf_json_share(value));
	}
	hf_doc_unref(doc);
	return hf_doc_from_json(node);
}

/* Moves the objects of a reply into a list. */
static void take_objects(struct hf_check_list *list, struct hf_cli_reply *reply, bool nodes)
{
	for (size_t i = 0; i < reply->n_items; i++)
		hf_check_list_add(list, nodes ? shrink_node(reply->items[i]) : reply->items[i]);
	reply->n_items = 0;
	if (reply->object != NULL)
		hf_check_list_add(list, hf_steal(&reply->object));
}

static void fetch_into(struct fetch *fetch, enum hf_check_source source,
		       const struct hf_request *request)
{
	struct hf_check_list *list = &fetch->facts->lists[source];
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_error err;
	int rc;

	if (list->code != 0)
		return;
	rc = hf_cli_request(fetch->cli, request, &reply, &err);
	if (rc == 0) {
		if (reply.server_time != HF_TIME_NONE)
			fetch->facts->now = reply.server_time;
		take_objects(list, &reply, source == HF_CHECK_NODES);
	} else if (rc != HF_E_NOT_FOUND) {
		list->code = rc;
		snprintf(list->why, sizeof(list->why), "cannot read %s: %s",
			 request->resource->plural, err.text);
	}
}

/* ---- the first request ------------------------------------------------------------------------------- */

/* Reads the version of the server, and compares its clock with this machine's. */
static int fetch_version(struct fetch *fetch, struct hf_error *err)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_server_version, .name = "version"};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	hf_time before = hf_loop_wall(fetch->cli->loop), after;
	const char *text;
	int rc = hf_cli_request(fetch->cli, &request, &reply, err);

	after = hf_loop_wall(fetch->cli->loop);
	fetch->facts->now = after;
	if (rc == HF_E_FORBIDDEN)
		return 0;
	/* Each API server has this path. Another server, such as a proxy, would seem to be an empty cluster. */
	if (rc == HF_E_NOT_FOUND)
		return hf_error_wrap(
			err, "the server is no Kubernetes API server, for it has no /version: "
			     "correct 'server' in the kubeconfig");
	if (rc != 0)
		return rc;
	text = hf_json_path_str(hf_doc_json(reply.object), "gitVersion", NULL);
	fetch->facts->version = text != NULL ? hf_xstrdup(text) : NULL;
	if (reply.server_time == HF_TIME_NONE)
		return 0;
	/* The header has whole seconds, so the server's clock is half a second later on average. */
	fetch->facts->skew = before + (after - before) / 2 - (reply.server_time + HF_SECOND / 2);
	fetch->facts->now = reply.server_time;
	return 0;
}

/* ---- lists ------------------------------------------------------------------------------------------- */

static void fetch_crds(struct fetch *fetch)
{
	static const char *const others[] = {
		"devicehealths.holdfast.dev",      "healthpolicies.holdfast.dev",
		"remediations.holdfast.dev",       "devicerollouts.holdfast.dev",
		"workloads.kueue.x-k8s.io",        "podgroups.scheduling.x-k8s.io",
		"podgroups.scheduling.volcano.sh",
	};
	struct hf_request request = {.verb = HF_VERB_GET, .resource = &crds};
	char name[128];

	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		snprintf(name, sizeof(name), "%s.%s", hf_frameworks[i]->plural,
			 hf_frameworks[i]->group);
		request.name = name;
		fetch_into(fetch, HF_CHECK_CRDS, &request);
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(others); i++) {
		request.name = others[i];
		fetch_into(fetch, HF_CHECK_CRDS, &request);
	}
}

/* A list of all namespaces, selected by labels, by fields, or in one namespace. */
struct listed {
	enum hf_check_source source;
	const struct hf_resource *resource;
	const char *labels, *fields, *ns;
};

static const struct listed lists[] = {
	{HF_CHECK_DEPLOYMENTS, &deployments, HF_CHECK_LABEL_NAME "=holdfast", NULL, NULL},
	{HF_CHECK_DEPLOYMENTS, &deployments, NULL, "metadata.name=" HF_CHECK_OLD_OPERATOR, NULL},
	{HF_CHECK_PODS, &hf_pods, HF_CHECK_LABEL_NAME " in (holdfast,kueue)", NULL, NULL},
	{HF_CHECK_PODS, &hf_pods, HF_CHECK_OLD_LABEL "=" HF_CHECK_OLD_LABEL_VALUE, NULL, NULL},
	{HF_CHECK_PODS, &hf_pods, "app=mpi-operator", NULL, NULL},
	{HF_CHECK_PODS, &hf_pods, HF_LABEL_JOB_NAME, "status.phase=Pending", NULL},
	{HF_CHECK_NODES, &hf_nodes, NULL, NULL, NULL},
	{HF_CHECK_LEASES, &hf_leases, NULL, NULL, HF_CHECK_NODE_LEASES_NS},
	{HF_CHECK_LEASES, &hf_leases, NULL, "metadata.name=" HF_LEADER_LEASE, NULL},
	{HF_CHECK_WEBHOOKS, &validating, NULL, NULL, NULL},
	{HF_CHECK_WEBHOOKS, &mutating, NULL, NULL, NULL},
	{HF_CHECK_POLICIES, &policies, NULL, NULL, NULL},
	{HF_CHECK_BINDINGS, &bindings, NULL, NULL, NULL},
	{HF_CHECK_CONFIGMAPS, &hf_configmaps, NULL, "metadata.name=kueue-manager-config", NULL},
	{HF_CHECK_DEVICEHEALTHS, &hf_devicehealths, NULL, NULL, NULL},
	{HF_CHECK_HEALTHPOLICIES, &hf_healthpolicies, NULL, NULL, NULL},
	{HF_CHECK_REMEDIATIONS, &hf_remediations, NULL, NULL, NULL},
	{HF_CHECK_ROLLOUTS, &hf_devicerollouts, NULL, NULL, NULL},
};

static void fetch_lists(struct fetch *fetch)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(lists); i++) {
		const struct hf_request request = {.verb = HF_VERB_LIST,
						   .resource = lists[i].resource,
						   .ns = lists[i].ns,
						   .label_selector = lists[i].labels,
						   .field_selector = lists[i].fields};

		fetch_into(fetch, lists[i].source, &request);
	}
}

static void fetch_jobs(struct fetch *fetch)
{
	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		const struct hf_request request = {
			.verb = HF_VERB_LIST, .resource = hf_cli_resource_of(hf_frameworks[i])};

		fetch_into(fetch, HF_CHECK_JOBS, &request);
	}
}

/* ---- the Services of webhooks --------------------------------------------------------------------------- */

struct services {
	struct {
		const char *ns, *name;
	} items[SERVICES_MAX];
	size_t len;
};

static bool is_listed(const struct services *services, const char *ns, const char *name)
{
	for (size_t i = 0; i < services->len; i++)
		if (hf_streq(services->items[i].ns, ns) && hf_streq(services->items[i].name, name))
			return true;
	return false;
}

static void fetch_endpoints(struct fetch *fetch, const char *ns, const char *name)
{
	HF_AUTOFREE char *labels = hf_xasprintf("kubernetes.io/service-name=%s", name);
	const struct hf_request request = {.verb = HF_VERB_LIST,
					   .resource = &endpointslices,
					   .ns = ns,
					   .label_selector = labels};

	fetch_into(fetch, HF_CHECK_ENDPOINTS, &request);
}

static void fetch_services_of(struct fetch *fetch, const struct hf_json *configuration,
			      struct services *services)
{
	const struct hf_json *list = hf_json_get(configuration, "webhooks");
	struct hf_check_list *endpoints = &fetch->facts->lists[HF_CHECK_ENDPOINTS];

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *webhook = hf_json_item(list, i);
		const struct hf_json *service =
			hf_json_path(webhook, "clientConfig", "service", NULL);
		const char *ns = hf_json_path_str(service, "namespace", NULL);
		const char *name = hf_json_path_str(service, "name", NULL);

		if (ns == NULL || name == NULL || is_listed(services, ns, name) ||
		    hf_streq(hf_json_path_str(webhook, "failurePolicy", NULL), "Ignore"))
			continue;
		if (services->len == SERVICES_MAX) {
			endpoints->code = HF_E_TOO_LARGE;
			snprintf(endpoints->why, sizeof(endpoints->why),
				 "webhooks have more than %d Services", SERVICES_MAX);
			return;
		}
		services->items[services->len].ns = ns;
		services->items[services->len++].name = name;
		fetch_endpoints(fetch, ns, name);
	}
}

int hf_check_fetch(struct hf_cli *cli, struct hf_check_facts *facts, struct hf_error *err)
{
	struct fetch fetch = {.cli = cli, .facts = facts};
	struct services services = {.len = 0};
	int rc = fetch_version(&fetch, err);

	if (rc != 0)
		return rc;
	fetch_crds(&fetch);
	fetch_lists(&fetch);
	for (size_t i = 0; i < hf_check_len(facts, HF_CHECK_WEBHOOKS); i++)
		fetch_services_of(&fetch, hf_check_item(facts, HF_CHECK_WEBHOOKS, i), &services);
	if (facts->migrate)
		fetch_jobs(&fetch);
	return 0;
}
