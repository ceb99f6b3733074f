/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/apiserver_internal.h"

#include "api/schema.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * OpenAPI documents, as far as clients need them.
 *
 * Version 3 says for each kind that PATCH supports the query parameter fieldValidation; kubectl
 * then leaves validation to the server, which has Holdfast's rules. The schemas are made of the
 * tables of api/schema.h, for kubectl explain. Version 2 is the shortest valid document: clients
 * that ask for it fall back to their built-in knowledge.
 */

#define SCHEMA_PREFIX "dev.holdfast.v1."

static struct hf_json *ensure_member(struct hf_json *object, const char *key)
{
	return hf_json_ensure_object(object, key);
}

static struct hf_json *gvk_of(const struct hf_resource *resource)
{
	struct hf_json *gvk = hf_json_object();

	hf_json_set_str(gvk, "group", resource->group);
	hf_json_set_str(gvk, "kind", resource->kind);
	hf_json_set_str(gvk, "version", resource->version);
	return gvk;
}

static struct hf_json *make_parameter(const char *name, const char *in, const char *description)
{
	struct hf_json *p = hf_json_object();

	hf_json_set_str(p, "name", name);
	hf_json_set_str(p, "in", in);
	hf_json_set_str(p, "description", description);
	if (hf_streq(in, "path"))
		hf_json_set_bool(p, "required", true);
	hf_json_set_str(ensure_member(p, "schema"), "type", "string");
	return p;
}

static void add_operation(struct hf_json *path, const char *method, const char *action,
			  const struct hf_resource *resource)
{
	static const char *const queries[][2] = {
		{"dryRun", "All: check the request, but store nothing."},
		{"fieldManager", "Name of the client that writes."},
		{"fieldValidation", "Treatment of unknown fields: Ignore, Warn or Strict."},
	};
	struct hf_json *operation = ensure_member(path, method);
	struct hf_json *parameters = hf_json_ensure_array(operation, "parameters");
	struct hf_json *ok = ensure_member(ensure_member(operation, "responses"), "200");

	for (size_t i = 0; i < HF_ARRAY_LEN(queries) && !hf_streq(method, "get"); i++)
		hf_json_append(parameters, make_parameter(queries[i][0], "query", queries[i][1]));
	hf_json_set_str(ok, "description", "OK");
	hf_json_set_str(operation, "x-kubernetes-action", action);
	hf_json_set(operation, "x-kubernetes-group-version-kind", gvk_of(resource));
}

/* ---- schemas ------------------------------------------------------------------------------ */

static void add_tables(struct hf_json *schemas, const struct hf_schema *schema);

/* Sets the type of a value that is neither a list nor a map. */
static void set_type(struct hf_json *property, const struct hf_schema_field *field)
{
	static const struct {
		const char *type, *format;
	} types[] = {
		[HF_SCHEMA_STRING] = {"string", NULL},
		[HF_SCHEMA_INT32] = {"integer", "int32"},
		[HF_SCHEMA_INT64] = {"integer", "int64"},
		[HF_SCHEMA_BOOL] = {"boolean", NULL},
		[HF_SCHEMA_BYTES] = {"string", "byte"},
		[HF_SCHEMA_QUANTITY] = {"string", "quantity"},
		[HF_SCHEMA_TIME] = {"string", "date-time"},
		[HF_SCHEMA_MICRO_TIME] = {"string", "date-time"},
		[HF_SCHEMA_INT_OR_STRING] = {"string", "int-or-string"},
		[HF_SCHEMA_RAW] = {"object", NULL},
	};
	char ref[160];

	if (field->type == HF_SCHEMA_OBJECT) {
		snprintf(ref, sizeof(ref), "#/components/schemas/" SCHEMA_PREFIX "%s",
			 field->schema->name);
		hf_json_set_str(property, "$ref", ref);
		return;
	}
	hf_json_set_str(property, "type", types[field->type].type);
	hf_json_set_str(property, "format", types[field->type].format);
}

/* Makes the schema of a field. Clients ignore members beside a $ref, so a field with a description
 * has its $ref inside allOf. */
static struct hf_json *property_of(const struct hf_schema_field *field)
{
	struct hf_json *property = hf_json_object(), *value = property;

	hf_json_set_str(property, "description", field->about);
	if (field->shape == HF_SCHEMA_LIST) {
		hf_json_set_str(property, "type", "array");
		value = ensure_member(property, "items");
	} else if (field->shape == HF_SCHEMA_MAP) {
		hf_json_set_str(property, "type", "object");
		value = ensure_member(property, "additionalProperties");
	} else if (field->type == HF_SCHEMA_OBJECT && field->about != NULL) {
		value = hf_json_object();
		hf_json_append(hf_json_ensure_array(property, "allOf"), value);
	}
	set_type(value, field);
	return property;
}

static void add_properties(struct hf_json *schemas, struct hf_json *properties,
			   const struct hf_schema *schema)
{
	for (const struct hf_schema_field *field = schema->fields; field->name != NULL; field++) {
		if (field->shape == HF_SCHEMA_INLINE) {
			add_properties(schemas, properties, field->schema);
			continue;
		}
		hf_json_set(properties, field->name, property_of(field));
		if (field->type == HF_SCHEMA_OBJECT)
			add_tables(schemas, field->schema);
	}
}

/* Adds a schema and, recursively, the schemas that it refers to. */
static void add_tables(struct hf_json *schemas, const struct hf_schema *schema)
{
	char name[128];
	struct hf_json *object;

	snprintf(name, sizeof(name), SCHEMA_PREFIX "%s", schema->name);
	if (hf_json_get(schemas, name) != NULL)
		return;
	object = ensure_member(schemas, name);
	hf_json_set_str(object, "type", "object");
	add_properties(schemas, ensure_member(object, "properties"), schema);
}

static void add_schema(struct hf_json *schemas, const struct hf_resource *resource)
{
	char api_version[HF_API_VERSION_MAX], name[128];
	const struct hf_schema *schema =
		hf_schema_by_kind(hf_resource_api_version(resource, api_version), resource->kind);

	snprintf(name, sizeof(name), SCHEMA_PREFIX "%s",
		 schema != NULL ? schema->name : resource->kind);
	/* If a kind has no table of fields, no properties are listed, and the schema allows any
	 * field. */
	if (schema != NULL)
		add_tables(schemas, schema);
	else
		hf_json_set_str(ensure_member(schemas, name), "type", "object");
	hf_json_append(
		hf_json_ensure_array(hf_json_get(schemas, name), "x-kubernetes-group-version-kind"),
		gvk_of(resource));
}

/* ---- documents ---------------------------------------------------------------------------- */

static void add_resource(struct hf_json *doc, const struct hf_resource *resource)
{
	struct hf_json *paths = ensure_member(doc, "paths"), *path;
	char base[256], named[300];

	snprintf(base, sizeof(base), "/%s%s%s/%s/%s%s", *resource->group != '\0' ? "apis" : "api",
		 *resource->group != '\0' ? "/" : "", resource->group, resource->version,
		 resource->namespaced ? "namespaces/{namespace}/" : "", resource->plural);
	snprintf(named, sizeof(named), "%s/{name}", base);
	path = ensure_member(paths, base);
	add_operation(path, "get", "list", resource);
	add_operation(path, "post", "post", resource);
	path = ensure_member(paths, named);
	add_operation(path, "get", "get", resource);
	add_operation(path, "put", "put", resource);
	add_operation(path, "patch", "patch", resource);
	add_operation(path, "delete", "delete", resource);

	add_schema(ensure_member(ensure_member(doc, "components"), "schemas"), resource);
}

/* Makes the OpenAPI document of an API group; NULL: the plane serves no kind of the group. */
static struct hf_json *make_document(const struct hf_apiserver *server, const char *group)
{
	struct hf_json *doc = NULL;

	for (size_t i = 0; i < hf_resource_count(); i++) {
		const struct hf_resource *resource = hf_resource_at(i)->resource;
		if (!hf_streq(resource->group, group) || !hf_apiserver_serves(server, resource))
			continue;
		if (doc == NULL) {
			doc = hf_json_object();
			hf_json_set_str(doc, "openapi", "3.0.0");
			hf_json_set_str(ensure_member(doc, "info"), "title", "Holdfast");
			hf_json_set_str(ensure_member(doc, "info"), "version", HF_VERSION);
		}
		add_resource(doc, resource);
	}
	return doc;
}

static struct hf_json *index_of_groups(const struct hf_apiserver *server)
{
	struct hf_json *index = hf_json_object(), *paths = ensure_member(index, "paths");

	for (size_t i = 0; i < hf_resource_count(); i++) {
		const struct hf_resource *resource = hf_resource_at(i)->resource;
		char key[128], url[256];
		HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_APISERVER_LIST_BYTES_MAX);
		snprintf(key, sizeof(key), "%s%s/%s", *resource->group != '\0' ? "apis/" : "api",
			 resource->group, resource->version);
		if (!hf_apiserver_serves(server, resource) || hf_json_get(paths, key) != NULL)
			continue;
		/* Put a hash of the content into the URL: clients cache the document by its
		 * URL. */
		HF_AUTO_JSON content = make_document(server, resource->group);
		hf_json_write(content, HF_JSON_COMPACT, &text);
		snprintf(url, sizeof(url), "/openapi/v3/%s?hash=%016" PRIx64, key,
			 hf_hash_bytes(text.data, text.len));
		hf_json_set_str(ensure_member(paths, key), "serverRelativeURL", url);
	}
	return index;
}

/* ---- version 2 ---------------------------------------------------------------------------- */

static void serve_v2(struct hf_exchange *ex)
{
	/* The document of version 2 in protobuf: swagger "2.0", title "Holdfast", version "v1", no
	 * paths. */
	static const unsigned char protobuf[] = {
		0x0a, 3,   '2', '.', '0', 0x12, 14, 0x0a, 8,   'H',  'o', 'l',
		'd',  'f', 'a', 's', 't', 0x12, 2,  'v',  '1', 0x42, 0,
	};
	static const char text[] = "{\"swagger\":\"2.0\",\"info\":{\"title\":\"Holdfast\","
				   "\"version\":\"v1\"},\"paths\":{}}\n";
	const char *accept = hf_exchange_header(ex, "Accept");

	if (accept != NULL && strstr(accept, "proto-openapi") != NULL)
		hf_exchange_respond(ex, 200,
				    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
				    protobuf, sizeof(protobuf));
	else
		hf_exchange_respond(ex, 200, "application/json", text, strlen(text));
}

bool hf_apiserver_openapi(struct hf_apiserver *server, struct hf_exchange *ex)
{
	const char *path = hf_exchange_path(ex);
	HF_AUTO_JSON answer = NULL;

	if (hf_streq(path, "/openapi/v2")) {
		serve_v2(ex);
		return true;
	}
	if (hf_streq(path, "/openapi/v3") || hf_streq(path, "/openapi/v3/")) {
		answer = index_of_groups(server);
	} else if (hf_streq(path, "/openapi/v3/api/v1")) {
		answer = make_document(server, "");
	} else if (hf_str_has_prefix(path, "/openapi/v3/apis/")) {
		const char *name = path + strlen("/openapi/v3/apis/");
		size_t len = strcspn(name, "/");
		char group[HF_API_VERSION_MAX];
		if (len == 0 || len >= sizeof(group) || name[len] == '\0')
			return false;
		memcpy(group, name, len);
		group[len] = '\0';
		if (hf_streq(name + len + 1, hf_resource_group_version(group)))
			answer = make_document(server, group);
	}
	if (answer == NULL)
		return false;
	hf_apiserver_answer_json(ex, 200, answer);
	return true;
}
