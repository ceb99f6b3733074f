/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/*
 * Discovery: the lists of groups, versions and kinds, for the kinds that are served. The aggregated
 * form is not implemented; clients that prefer it accept plain lists.
 */

bool hf_apiserver_serves(const struct hf_apiserver *server, const struct hf_resource *resource)
{
	return server->options.serves == NULL || server->options.serves(resource);
}

static struct hf_json *make_list(const char *kind)
{
	struct hf_json *object = hf_json_object();

	hf_json_set_str(object, "kind", kind);
	hf_json_set_str(object, "apiVersion", "v1");
	return object;
}

/* True if the kind is the first kind of its group that the plane serves; the table of kinds is
 * sorted by group. */
static bool begins_group(const struct hf_apiserver *server, size_t i)
{
	const struct hf_resource *resource = hf_resource_at(i)->resource;

	if (!hf_apiserver_serves(server, resource))
		return false;
	for (size_t k = 0; k < i; k++)
		if (hf_streq(hf_resource_at(k)->resource->group, resource->group) &&
		    hf_apiserver_serves(server, hf_resource_at(k)->resource))
			return false;
	return true;
}

static bool has_group(const struct hf_apiserver *server, const char *group)
{
	for (size_t i = 0; i < hf_resource_count(); i++)
		if (begins_group(server, i) && hf_streq(hf_resource_at(i)->resource->group, group))
			return true;
	return false;
}

static struct hf_json *group_of(const char *group)
{
	struct hf_json *object = hf_json_object(), *version = hf_json_object();
	struct hf_json *versions = hf_json_array();
	const char *number = hf_resource_group_version(group);
	char group_version[HF_API_VERSION_MAX];

	snprintf(group_version, sizeof(group_version), "%s/%s", group, number);
	hf_json_set_str(version, "groupVersion", group_version);
	hf_json_set_str(version, "version", number);
	hf_json_append(versions, hf_json_copy(version));
	hf_json_set_str(object, "name", group);
	hf_json_set(object, "versions", versions);
	hf_json_set(object, "preferredVersion", version);
	return object;
}

static struct hf_json *list_groups(const struct hf_apiserver *server)
{
	struct hf_json *list = make_list("APIGroupList"),
		       *array = hf_json_ensure_array(list, "groups");

	for (size_t i = 0; i < hf_resource_count(); i++)
		if (begins_group(server, i) && *hf_resource_at(i)->resource->group != '\0')
			hf_json_append(array, group_of(hf_resource_at(i)->resource->group));
	return list;
}

/* ---- kinds -------------------------------------------------------------------------------- */

static struct hf_json *kind_entry(const struct hf_resource *resource, const char *sub,
				  const char *kind, const char *const *verbs)
{
	struct hf_json *entry = hf_json_object(), *list = hf_json_array();
	char name[128];

	snprintf(name, sizeof(name), "%s%s%s", resource->plural, sub != NULL ? "/" : "",
		 sub != NULL ? sub : "");
	hf_json_set_str(entry, "name", name);
	hf_json_set_str(entry, "singularName", sub == NULL ? resource->singular : "");
	hf_json_set_bool(entry, "namespaced", resource->namespaced);
	hf_json_set_str(entry, "kind", kind);
	for (; *verbs != NULL; verbs++)
		hf_json_append(list, hf_json_string(*verbs));
	hf_json_set(entry, "verbs", list);
	return entry;
}

static void add_parts(struct hf_json *list, const struct hf_resource_info *info)
{
	static const char *const get_write[] = {"get", "patch", "update", NULL};
	static const char *const get[] = {"get", NULL}, *const create[] = {"create", NULL};
	const struct hf_resource *resource = info->resource;

	if (resource == &hf_pods) {
		hf_json_append(list, kind_entry(resource, "binding", "Binding", create));
		struct hf_json *eviction = kind_entry(resource, "eviction", "Eviction", create);
		hf_json_set_str(eviction, "group", "policy");
		hf_json_set_str(eviction, "version", "v1");
		hf_json_append(list, eviction);
		hf_json_append(list, kind_entry(resource, "log", resource->kind, get));
	}
	if (info->scale_spec != NULL) {
		struct hf_json *scale = kind_entry(resource, "scale", "Scale", get_write);
		hf_json_set_str(scale, "group", "autoscaling");
		hf_json_set_str(scale, "version", "v1");
		hf_json_append(list, scale);
	}
	if (info->status)
		hf_json_append(list, kind_entry(resource, "status", resource->kind, get_write));
}

static void add_kind(struct hf_json *list, const struct hf_resource_info *info)
{
	static const char *const verbs[] = {"create", "delete", "deletecollection",
					    "get",    "list",   "patch",
					    "update", "watch",  NULL};
	const struct hf_resource *resource = info->resource;
	struct hf_json *entry = kind_entry(resource, NULL, resource->kind, verbs);

	if (info->short_name != NULL)
		hf_json_append(hf_json_ensure_array(entry, "shortNames"),
			       hf_json_string(info->short_name));
	/* Puts a kind into the category "all", which "kubectl get all" shows. Jobs belong to it,
	 * because the plane has no Deployments or other workloads of Kubernetes. */
	if (resource == &hf_pods || resource == &hf_services || hf_resource_is_job(resource))
		hf_json_append(hf_json_ensure_array(entry, "categories"), hf_json_string("all"));
	hf_json_append(list, entry);
	add_parts(list, info);
}

static struct hf_json *list_kinds(const struct hf_apiserver *server, const char *group)
{
	struct hf_json *list = make_list("APIResourceList");
	char group_version[HF_API_VERSION_MAX];
	struct hf_json *array;

	snprintf(group_version, sizeof(group_version), "%s%s%s", group, *group != '\0' ? "/" : "",
		 hf_resource_group_version(group));
	hf_json_set_str(list, "groupVersion", group_version);
	array = hf_json_ensure_array(list, "resources");
	for (size_t i = 0; i < hf_resource_count(); i++)
		if (hf_streq(hf_resource_at(i)->resource->group, group) &&
		    hf_apiserver_serves(server, hf_resource_at(i)->resource))
			add_kind(array, hf_resource_at(i));
	return list;
}

/* ---- */

static struct hf_json *legacy_versions(void)
{
	struct hf_json *versions = make_list("APIVersions");

	hf_json_remove(versions, "apiVersion");
	hf_json_append(hf_json_ensure_array(versions, "versions"), hf_json_string("v1"));
	(void)hf_json_ensure_array(versions, "serverAddressByClientCIDRs");
	return versions;
}

/* Makes the answer for "/apis/GROUP" and "/apis/GROUP/VERSION"; NULL: the path has another
 * form. */
static struct hf_json *group_answer(const struct hf_apiserver *server, const char *path)
{
	const char *name = path + strlen("/apis/");
	size_t len = strcspn(name, "/");
	char group[HF_API_VERSION_MAX];
	struct hf_json *answer;

	if (len == 0 || len >= sizeof(group))
		return NULL;
	memcpy(group, name, len);
	group[len] = '\0';
	if (!has_group(server, group))
		return NULL;
	if (name[len] != '\0' && !hf_streq(name + len, "/")) {
		const char *version = hf_resource_group_version(group);
		const char *said = name + len + 1, *behind = said + strlen(version);

		if (!hf_str_has_prefix(said, version) ||
		    (*behind != '\0' && !hf_streq(behind, "/")))
			return NULL;
		return list_kinds(server, group);
	}
	answer = group_of(group);
	hf_json_set_str(answer, "kind", "APIGroup");
	hf_json_set_str(answer, "apiVersion", "v1");
	return answer;
}

bool hf_apiserver_discovery(struct hf_apiserver *server, struct hf_exchange *ex)
{
	const char *path = hf_exchange_path(ex);
	HF_AUTO_JSON answer = NULL;

	if (hf_streq(path, "/api") || hf_streq(path, "/api/"))
		answer = legacy_versions();
	else if (hf_streq(path, "/apis") || hf_streq(path, "/apis/"))
		answer = list_groups(server);
	else if (hf_streq(path, "/api/v1") || hf_streq(path, "/api/v1/"))
		answer = list_kinds(server, "");
	else if (hf_str_has_prefix(path, "/apis/"))
		answer = group_answer(server, path);
	if (answer == NULL)
		return false;
	hf_apiserver_answer_json(ex, 200, answer);
	return true;
}
