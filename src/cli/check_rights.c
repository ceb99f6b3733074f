/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/check_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/manifests_internal.h"
#include "json/yaml.h"
#include "store/resource.h"

#include <string.h>

/*
 * The rights that `holdfast check` asks for, one review for each verb on each resource: those of the
 * caller by SelfSubjectAccessReviews, those of the operator's account by SubjectAccessReviews.  The
 * operator's rights are the rules of the manifests in this program. Rights for acts on nodes and for rollouts are asked
 * only if an object needs them.
 */

#define MANIFEST_BYTES_MAX ((size_t)1 << 20)
#define DEFAULT_NS "holdfast-system"
#define ACCOUNT_PREFIX "system:serviceaccount"

static const struct hf_resource self_reviews = {.group = "authorization.k8s.io",
						.version = "v1",
						.plural = "selfsubjectaccessreviews",
						.singular = "selfsubjectaccessreview",
						.kind = "SelfSubjectAccessReview"};
static const struct hf_resource reviews = {.group = "authorization.k8s.io",
					   .version = "v1",
					   .plural = "subjectaccessreviews",
					   .singular = "subjectaccessreview",
					   .kind = "SubjectAccessReview"};

/* Copies a text that may be NULL. */
static const char *copy_text(const struct hf_check_facts *facts, const char *text)
{
	return text != NULL ? hf_arena_strdup(facts->arena, text) : NULL;
}

static void add_right(struct hf_check_facts *facts, const struct hf_check_right *right)
{
	const struct hf_check_right copy = {
		.who = right->who,
		.answer = HF_CHECK_UNKNOWN,
		.verb = copy_text(facts, right->verb),
		.group = copy_text(facts, right->group),
		.resource = copy_text(facts, right->resource),
		.ns = copy_text(facts, right->ns),
		.name = copy_text(facts, right->name),
	};

	/* The manifests of this program have fewer rights than the limit. */
	hf_assert(HF_VEC_PUSH(&facts->rights, copy));
}

/* ---- the caller -------------------------------------------------------------------------------------- */

struct needed {
	enum hf_check_who who;
	const char *verb, *group, *resource;
};

#define RBAC "rbac.authorization.k8s.io"
static const struct needed caller[] = {
	{HF_CHECK_INSTALLER, "create", "apiextensions.k8s.io", "customresourcedefinitions"},
	{HF_CHECK_INSTALLER, "patch", "apiextensions.k8s.io", "customresourcedefinitions"},
	{HF_CHECK_INSTALLER, "create", RBAC, "clusterroles"},
	{HF_CHECK_INSTALLER, "create", RBAC, "clusterrolebindings"},
	{HF_CHECK_INSTALLER, "create", "", "namespaces"},
	{HF_CHECK_INSTALLER, "create", "apps", "deployments"},
	{HF_CHECK_INSTALLER, "create", "admissionregistration.k8s.io",
	 "validatingadmissionpolicies"},
	{HF_CHECK_USER, "get", "kubeflow.org", "pytorchjobs"},
	{HF_CHECK_USER, "list", "kubeflow.org", "pytorchjobs"},
	{HF_CHECK_USER, "create", "kubeflow.org", "pytorchjobs"},
	{HF_CHECK_USER, "patch", "kubeflow.org", "pytorchjobs"},
	{HF_CHECK_USER, "delete", "kubeflow.org", "pytorchjobs"},
	{HF_CHECK_USER, "list", "", "pods"},
	{HF_CHECK_USER, "get", "", "pods/log"},
	{HF_CHECK_USER, "list", "", "events"},
};

static void add_caller(struct hf_check_facts *facts)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(caller); i++) {
		const struct hf_check_right right = {
			.who = caller[i].who,
			.verb = caller[i].verb,
			.group = caller[i].group,
			.resource = caller[i].resource,
			.ns = caller[i].who == HF_CHECK_USER ? facts->ns : NULL,
		};

		add_right(facts, &right);
	}
}

/* ---- the operator ------------------------------------------------------------------------------------ */

static void add_names(struct hf_check_facts *facts, const struct hf_json *rule,
		      struct hf_check_right *right)
{
	const struct hf_json *names = hf_json_get(rule, "resourceNames");

	if (hf_json_len(names) == 0)
		add_right(facts, right);
	for (size_t i = 0; i < hf_json_len(names); i++) {
		right->name = hf_json_str(hf_json_item(names, i), "");
		add_right(facts, right);
	}
	right->name = NULL;
}

static void add_rule(struct hf_check_facts *facts, enum hf_check_who who,
		     const struct hf_json *rule, const char *ns)
{
	const struct hf_json *groups = hf_json_get(rule, "apiGroups");
	const struct hf_json *resources = hf_json_get(rule, "resources");
	const struct hf_json *verbs = hf_json_get(rule, "verbs");
	struct hf_check_right right = {.who = who, .ns = ns};

	for (size_t g = 0; g < hf_json_len(groups); g++) {
		for (size_t r = 0; r < hf_json_len(resources); r++) {
			for (size_t v = 0; v < hf_json_len(verbs); v++) {
				right.group = hf_json_str(hf_json_item(groups, g), "");
				right.resource = hf_json_str(hf_json_item(resources, r), "");
				right.verb = hf_json_str(hf_json_item(verbs, v), "");
				add_names(facts, rule, &right);
			}
		}
	}
}

/* Which roles have the operator's rights for a purpose. */
struct roles {
	enum hf_check_who who;
	enum hf_manifest_section section;
	const char *name; /* NULL: all roles of the manifest */
};

/* Adds the rules of these ClusterRoles and Roles in one manifest. */
static void add_manifest(struct hf_check_facts *facts, const struct hf_manifest *manifest,
			 const struct roles *roles, const char *ns)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(MANIFEST_BYTES_MAX);
	HF_AUTO_YAML yaml = NULL;

	for (size_t i = 0; i < manifest->chunks_len; i++)
		hf_strbuf_addstr(&text, manifest->chunks[i].slot == HF_MANIFEST_NAMESPACE
						? ns
						: manifest->chunks[i].text);
	if (hf_yaml_parse(text.data, text.len, NULL, &yaml, NULL) != 0)
		return;
	for (size_t i = 0; i < hf_yaml_len(yaml); i++) {
		const struct hf_json *doc = hf_yaml_doc(yaml, i);
		const struct hf_json *rules = hf_json_get(doc, "rules");
		const char *kind = hf_str_or(hf_json_path_str(doc, "kind", NULL), "");
		const char *of = hf_json_path_str(doc, "metadata", "namespace", NULL);

		if ((!hf_streq(kind, "ClusterRole") && !hf_streq(kind, "Role")) ||
		    (roles->name != NULL && !hf_streq(hf_check_name_of(doc), roles->name)))
			continue;
		for (size_t k = 0; k < hf_json_len(rules); k++)
			add_rule(facts, roles->who, hf_json_item(rules, k), of);
	}
}

static void add_roles(struct hf_check_facts *facts, const struct roles *roles, const char *ns)
{
	for (size_t i = 0; i < hf_manifests_len; i++)
		if (hf_manifests[i].section == roles->section &&
		    hf_streq(hf_manifests[i].name, "rbac.yaml"))
			add_manifest(facts, &hf_manifests[i], roles, ns);
}

static void add_operator(struct hf_check_facts *facts, const char *ns)
{
	static const struct roles jobs = {HF_CHECK_OPERATOR, HF_MANIFESTS_OPERATOR, NULL};
	static const struct roles acts = {HF_CHECK_MENDER, HF_MANIFESTS_MENDER,
					  "holdfast-mend-operator"};
	static const struct roles rollouts = {HF_CHECK_ROLLER, HF_MANIFESTS_ROLLOUTS,
					      "holdfast-rollout-operator"};

	add_roles(facts, &jobs, ns);
	if (hf_check_wants_acts(facts))
		add_roles(facts, &acts, ns);
	if (hf_check_wants_rollouts(facts))
		add_roles(facts, &rollouts, ns);
}

/* ---- reviews ----------------------------------------------------------------------------------------- */

/* The attributes of a review. An absent namespace means all namespaces, and an absent name all names. */
static struct hf_json *attributes_of(const struct hf_check_right *right)
{
	struct hf_json *attributes = hf_json_object();
	const char *slash = strchr(right->resource, '/');
	HF_AUTOFREE char *resource =
		slash != NULL ? hf_xstrndup(right->resource, (size_t)(slash - right->resource))
			      : hf_xstrdup(right->resource);

	hf_json_set_str(attributes, "verb", right->verb);
	hf_json_set_str(attributes, "group", right->group);
	hf_json_set_str(attributes, "resource", resource);
	if (slash != NULL)
		hf_json_set_str(attributes, "subresource", slash + 1);
	if (right->ns != NULL)
		hf_json_set_str(attributes, "namespace", right->ns);
	if (right->name != NULL)
		hf_json_set_str(attributes, "name", right->name);
	return attributes;
}

/* Adds the account and the groups in which every ServiceAccount is. */
static void set_account(struct hf_json *spec, const char *ns, const char *account)
{
	HF_AUTOFREE char *user = hf_xasprintf(ACCOUNT_PREFIX ":%s:%s", ns, account);
	HF_AUTOFREE char *group = hf_xasprintf(ACCOUNT_PREFIX "s:%s", ns);
	struct hf_json *groups = hf_json_ensure_array(spec, "groups");

	hf_json_set_str(spec, "user", user);
	hf_json_append(groups, hf_json_string(ACCOUNT_PREFIX "s"));
	hf_json_append(groups, hf_json_string(group));
	hf_json_append(groups, hf_json_string("system:authenticated"));
}

/* Sends one review. ns NULL: about the caller. Returns the code of a failed request. */
static int send_review(struct hf_cli *cli, struct hf_check_right *right, const char *ns,
		       const char *account)
{
	const struct hf_resource *resource = ns != NULL ? &reviews : &self_reviews;
	char version[HF_API_VERSION_MAX];
	struct hf_json *json = hf_json_object();
	struct hf_json *spec = hf_json_ensure_object(json, "spec");
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_request request = {.verb = HF_VERB_CREATE, .resource = resource};
	int rc;

	hf_json_set_str(json, "apiVersion", hf_resource_api_version(resource, version));
	hf_json_set_str(json, "kind", resource->kind);
	hf_json_set(spec, "resourceAttributes", attributes_of(right));
	if (ns != NULL)
		set_account(spec, ns, account);
	HF_AUTO_DOC body = hf_doc_from_json(json);
	request.body = body;
	rc = hf_cli_request(cli, &request, &reply, NULL);
	if (rc == 0)
		right->answer = hf_json_true(hf_json_path(hf_doc_json(reply.object), "status",
							  "allowed", NULL),
					     false)
					? HF_CHECK_ALLOWED
					: HF_CHECK_DENIED;
	return rc;
}

void hf_check_ask_rights(struct hf_cli *cli, struct hf_check_facts *facts)
{
	const struct hf_json *operator= hf_check_operator(facts);
	const char *ns = operator!= NULL ? hf_check_ns_of(operator) : DEFAULT_NS;
	const char *account = hf_str_or(
		hf_json_path_str(operator, "spec", "template", "spec", "serviceAccountName", NULL),
		"default");
	bool refused = false;

	if (!facts->as_operator)
		add_caller(facts);
	if (facts->as_operator || operator!= NULL)
		add_operator(facts, ns);
	/* If the server refuses one review of the account, it refuses all. */
	for (size_t i = 0; i < facts->rights.len && !refused; i++) {
		struct hf_check_right *right = &facts->rights.items[i];
		bool other = right->who >= HF_CHECK_OPERATOR && !facts->as_operator;

		refused = send_review(cli, right, other ? ns : NULL, account) != 0;
	}
}
