/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/table_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "store/resource.h"

#include <inttypes.h>
#include <stdio.h>

/* Tables as an API server prints them for "kubectl get": columns and cells of each kind, and the
 * Table and PartialObjectMetadata around them. table_pods.c has the rows of pods and nodes. */

/* ---- helpers of the printers -------------------------------------------------------------- */

struct hf_json *hf_cell_str(const struct hf_json *object, const char *a, const char *b)
{
	return hf_json_string(hf_str_or(hf_json_path_str(object, a, b, NULL), ""));
}

struct hf_json *hf_cell_age(const char *time, hf_time now)
{
	char text[HF_TIME_TEXT_MAX];
	hf_time t;

	if (hf_str_is_empty(time) || hf_time_parse(time, &t, NULL) != 0)
		return hf_json_string("<unknown>");
	hf_span_format(now - t, text);
	return hf_json_string(text);
}

struct hf_json *hf_cell_or_none(const char *text)
{
	return hf_json_string(hf_str_or(text, "<none>"));
}

void hf_cell_add(struct hf_json *cells, struct hf_json *value)
{
	hf_json_append(cells, value != NULL ? value : hf_json_null());
}

static const char *creation_time(const struct hf_json *object)
{
	return hf_json_path_str(object, "metadata", "creationTimestamp", NULL);
}

static void add_name(struct hf_json *cells, const struct hf_json *object)
{
	hf_cell_add(cells, hf_cell_str(object, "metadata", "name"));
}

/* ---- kinds -------------------------------------------------------------------------------- */

static const struct hf_column plain_columns[] = {
	{"Name", "string", "name", 0},
	{"Age", "string", NULL, 0},
	{NULL, NULL, NULL, 0},
};

static void print_plain(struct hf_json *cells, const struct hf_json *object, hf_time now)
{
	add_name(cells, object);
	hf_cell_add(cells, hf_cell_age(creation_time(object), now));
}

/* The printer columns of the CRDs (deploy/crds). As upstream, the column State has the type of the
 * job's newest condition. */
static const struct hf_column job_columns[] = {
	{"Name", "string", "name", 0}, {"State", "string", NULL, 0},
	{"Age", "date", NULL, 0},      {"Restarts", "string", NULL, 0},
	{"Cause", "string", NULL, 0},  {"Generation", "integer", NULL, 1},
	{NULL, NULL, NULL, 0},
};

/* Adds a cell with a member of the ledger (status.recovery); null if the job does not have the
 * member. */
static void add_recovery(struct hf_json *cells, const struct hf_json *object, const char *group,
			 const char *key)
{
	const struct hf_json *at = hf_json_path(object, "status", "recovery", NULL);
	struct hf_json *value = hf_json_get(group != NULL ? hf_json_get(at, group) : at, key);

	hf_cell_add(cells, hf_json_ref(value));
}

static void print_job(struct hf_json *cells, const struct hf_json *object, hf_time now)
{
	const struct hf_json *conditions = hf_json_path(object, "status", "conditions", NULL);
	size_t n = hf_json_len(conditions);
	const char *state =
		n > 0 ? hf_json_path_str(hf_json_item(conditions, n - 1), "type", NULL) : NULL;

	add_name(cells, object);
	hf_cell_add(cells, state != NULL ? hf_json_string(state) : NULL);
	hf_cell_add(cells, hf_cell_age(creation_time(object), now));
	add_recovery(cells, object, NULL, "summary");
	add_recovery(cells, object, "last", "cause");
	add_recovery(cells, object, NULL, "generation");
}

static const struct hf_column namespace_columns[] = {
	{"Name", "string", "name", 0},
	{"Status", "string", NULL, 0},
	{"Age", "string", NULL, 0},
	{NULL, NULL, NULL, 0},
};

static void print_namespace(struct hf_json *cells, const struct hf_json *object, hf_time now)
{
	add_name(cells, object);
	hf_cell_add(cells, hf_cell_str(object, "status", "phase"));
	hf_cell_add(cells, hf_cell_age(creation_time(object), now));
}

static const struct hf_column configmap_columns[] = {
	{"Name", "string", "name", 0},
	{"Data", "string", NULL, 0},
	{"Age", "string", NULL, 0},
	{NULL, NULL, NULL, 0},
};

static void print_configmap(struct hf_json *cells, const struct hf_json *object, hf_time now)
{
	add_name(cells, object);
	hf_cell_add(cells, hf_json_int((int64_t)(hf_json_len(hf_json_get(object, "data")) +
						 hf_json_len(hf_json_get(object, "binaryData")))));
	hf_cell_add(cells, hf_cell_age(creation_time(object), now));
}

static const struct hf_column secret_columns[] = {
	{"Name", "string", "name", 0}, {"Type", "string", NULL, 0}, {"Data", "string", NULL, 0},
	{"Age", "string", NULL, 0},    {NULL, NULL, NULL, 0},
};

static void print_secret(struct hf_json *cells, const struct hf_json *object, hf_time now)
{
	add_name(cells, object);
	hf_cell_add(cells, hf_json_string(hf_json_str(hf_json_get(object, "type"), "")));
	hf_cell_add(cells, hf_json_int((int64_t)hf_json_len(hf_json_get(object, "data"))));
	hf_cell_add(cells, hf_cell_age(creation_time(object), now));
}

static const struct hf_column claim_columns[] = {
	{"Name", "string", "name", 0},
	{"Status", "string", NULL, 0},
	{"Volume", "string", NULL, 0},
	{"Capacity", "string", NULL, 0},
	{"Access Modes", "string", NULL, 0},
	{"StorageClass", "string", NULL, 0},
	{"VolumeAttributesClass", "string", NULL, 0},
	{"Age", "string", NULL, 0},
	{"VolumeMode", "string", NULL, 1},
	{NULL, NULL, NULL, 0},
};

/* Returns the cell with the access modes of a claim, in kubectl's short form: "RWO,RWX". */
static struct hf_json *access_modes(const struct hf_json *modes)
{
	static const char *const names[][2] = {{"ReadWriteOnce", "RWO"},
					       {"ReadOnlyMany", "ROX"},
					       {"ReadWriteMany", "RWX"},
					       {"ReadWriteOncePod", "RWOP"}};
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(64);

	for (size_t n = 0; n < HF_ARRAY_LEN(names); n++) {
		bool found = false;
		for (size_t i = 0; i < hf_json_len(modes); i++)
			found = found ||
				hf_streq(hf_json_str(hf_json_item(modes, i), ""), names[n][0]);
		if (found)
			hf_strbuf_addf(&sb, "%s%s", sb.len > 0 ? "," : "", names[n][1]);
	}
	return hf_json_string(sb.data);
}

static void print_claim(struct hf_json *cells, const struct hf_json *object, hf_time now)
{
	bool deleted = hf_json_path(object, "metadata", "deletionTimestamp", NULL) != NULL;
	const char *size = hf_json_path_str(object, "status", "capacity", "storage", NULL);
	const char *mode = hf_json_path_str(object, "spec", "volumeMode", NULL);

	add_name(cells, object);
	hf_cell_add(cells, deleted ? hf_json_string("Terminating")
				   : hf_cell_str(object, "status", "phase"));
	hf_cell_add(cells, hf_cell_str(object, "spec", "volumeName"));
	hf_cell_add(cells, hf_json_string(hf_str_or(size, "")));
	hf_cell_add(cells, access_modes(hf_json_path(object, "status", "accessModes", NULL)));
	hf_cell_add(cells, hf_cell_str(object, "spec", "storageClassName"));
	hf_cell_add(cells, hf_json_string("<unset>"));
	hf_cell_add(cells, hf_cell_age(creation_time(object), now));
	hf_cell_add(cells, hf_json_string(hf_str_or(mode, "Filesystem")));
}

static const struct hf_column lease_columns[] = {
	{"Name", "string", "name", 0},
	{"Holder", "string", NULL, 0},
	{"Age", "string", NULL, 0},
	{NULL, NULL, NULL, 0},
};

static void print_lease(struct hf_json *cells, const struct hf_json *object, hf_time now)
{
	add_name(cells, object);
	hf_cell_add(cells, hf_cell_str(object, "spec", "holderIdentity"));
	hf_cell_add(cells, hf_cell_age(creation_time(object), now));
}

/* ---- services ----------------------------------------------------------------------------- */

static const struct hf_column service_columns[] = {
	{"Name", "string", "name", 0},     {"Type", "string", NULL, 0},
	{"Cluster-IP", "string", NULL, 0}, {"External-IP", "string", NULL, 0},
	{"Port(s)", "string", NULL, 0},    {"Age", "string", NULL, 0},
	{"Selector", "string", NULL, 1},   {NULL, NULL, NULL, 0},
};

static struct hf_json *service_ports(const struct hf_json *object)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(4096);
	const struct hf_json *ports = hf_json_path(object, "spec", "ports", NULL);

	for (size_t i = 0; i < hf_json_len(ports); i++)
		hf_strbuf_addf(&sb, "%s%" PRId64 "/%s", i > 0 ? "," : "",
			       hf_json_i64(hf_json_get(hf_json_item(ports, i), "port"), 0),
			       hf_str_or(hf_json_path_str(hf_json_item(ports, i), "protocol", NULL),
					 "TCP"));
	return hf_cell_or_none(sb.data);
}

struct hf_json *hf_cell_labels(const struct hf_json *labels)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(16384);
	const char *key;
	struct hf_json *value;

	for (void *it = NULL; (it = hf_json_next(labels, it, &key, &value)) != NULL;)
		hf_strbuf_addf(&sb, "%s%s=%s", sb.len > 0 ? "," : "", key, hf_json_str(value, ""));
	return hf_cell_or_none(sb.data);
}

static void print_service(struct hf_json *cells, const struct hf_json *object, hf_time now)
{
	add_name(cells, object);
	hf_cell_add(cells, hf_cell_str(object, "spec", "type"));
	hf_cell_add(cells, hf_cell_or_none(hf_json_path_str(object, "spec", "clusterIP", NULL)));
	hf_cell_add(cells, hf_json_string("<none>"));
	hf_cell_add(cells, service_ports(object));
	hf_cell_add(cells, hf_cell_age(creation_time(object), now));
	hf_cell_add(cells, hf_cell_labels(hf_json_path(object, "spec", "selector", NULL)));
}

/* ---- events ------------------------------------------------------------------------------- */

static const struct hf_column event_columns[] = {
	{"Last Seen", "string", NULL, 0},
	{"Type", "string", NULL, 0},
	{"Reason", "string", NULL, 0},
	{"Object", "string", NULL, 0},
	{"Subobject", "string", NULL, 1},
	{"Source", "string", NULL, 1},
	{"Message", "string", NULL, 0},
	{"First Seen", "string", NULL, 1},
	{"Count", "string", NULL, 1},
	{"Name", "string", "name", 1},
	{NULL, NULL, NULL, 0},
};

static const char *first_of(const struct hf_json *object, const char *a, const char *b)
{
	const char *text = hf_json_path_str(object, a, NULL);

	return !hf_str_is_empty(text) ? text : hf_json_path_str(object, b, NULL);
}

static const char *last_seen(const struct hf_json *event)
{
	const char *text = hf_json_path_str(event, "series", "lastObservedTime", NULL);

	return !hf_str_is_empty(text) ? text : first_of(event, "lastTimestamp", "eventTime");
}

/* Returns the cell with the object of an event, such as "pod/ddp-worker-0". */
static struct hf_json *event_object(const struct hf_json *event)
{
	HF_AUTOFREE char *kind =
		hf_xstrdup(hf_str_or(hf_json_path_str(event, "involvedObject", "kind", NULL), ""));
	HF_AUTOFREE char *text = NULL;

	hf_str_lower(kind);
	text = hf_xasprintf("%s/%s", kind,
			    hf_str_or(hf_json_path_str(event, "involvedObject", "name", NULL), ""));
	return hf_json_string(text);
}

static struct hf_json *event_source(const struct hf_json *event)
{
	const char *component = hf_json_path_str(event, "source", "component", NULL);
	const char *host = hf_json_path_str(event, "source", "host", NULL);
	HF_AUTOFREE char *text = NULL;

	if (hf_str_is_empty(component))
		component = hf_json_path_str(event, "reportingComponent", NULL);
	text = hf_xasprintf("%s%s%s", hf_str_or(component, ""), hf_str_is_empty(host) ? "" : ", ",
			    hf_str_or(host, ""));
	return hf_json_string(text);
}

static void print_event(struct hf_json *cells, const struct hf_json *event, hf_time now)
{
	hf_cell_add(cells, hf_cell_age(last_seen(event), now));
	hf_cell_add(cells, hf_json_string(hf_str_or(hf_json_path_str(event, "type", NULL), "")));
	hf_cell_add(cells, hf_json_string(hf_str_or(hf_json_path_str(event, "reason", NULL), "")));
	hf_cell_add(cells, event_object(event));
	hf_cell_add(cells, hf_cell_str(event, "involvedObject", "fieldPath"));
	hf_cell_add(cells, event_source(event));
	hf_cell_add(cells, hf_json_string(hf_str_or(hf_json_path_str(event, "message", NULL), "")));
	hf_cell_add(cells, hf_cell_age(first_of(event, "firstTimestamp", "eventTime"), now));
	hf_cell_add(cells, hf_json_int(hf_json_i64(hf_json_get(event, "count"), 1)));
	add_name(cells, event);
}

/* Columns of the subresource "scale". */
static const struct hf_column scale_columns[] = {
	{"Name", "string", "name", 0},
	{"Desired", "integer", NULL, 0},
	{"Available", "integer", NULL, 0},
	{NULL, NULL, NULL, 0},
};

static void print_scale(struct hf_json *cells, const struct hf_json *scale, hf_time now)
{
	add_name(cells, scale);
	hf_cell_add(cells, hf_json_copy(hf_json_path(scale, "spec", "replicas", NULL)));
	hf_cell_add(cells, hf_json_copy(hf_json_path(scale, "status", "replicas", NULL)));
}

/* ---- tables ------------------------------------------------------------------------------- */

const struct hf_resource hf_apiserver_scale = {
	.group = "autoscaling", .version = "v1", .kind = "Scale", .plural = "scales"};

static const struct hf_printer printers[] = {
	{&hf_apiserver_scale, scale_columns, print_scale},
	{&hf_pods, hf_pod_columns, hf_print_pod},
	{&hf_nodes, hf_node_columns, hf_print_node},
	{&hf_services, service_columns, print_service},
	{&hf_events, event_columns, print_event},
	{&hf_configmaps, configmap_columns, print_configmap},
	{&hf_secrets, secret_columns, print_secret},
	{&hf_namespaces, namespace_columns, print_namespace},
	{&hf_leases, lease_columns, print_lease},
	{&hf_persistentvolumeclaims, claim_columns, print_claim},
};
static const struct hf_printer job_printer = {NULL, job_columns, print_job};
static const struct hf_printer plain_printer = {NULL, plain_columns, print_plain};

static const struct hf_printer *printer_of(const struct hf_resource *resource)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(printers); i++)
		if (hf_resource_equal(printers[i].resource, resource))
			return &printers[i];
	return hf_resource_is_job(resource) ? &job_printer : &plain_printer;
}

struct hf_json *hf_apiserver_table(const struct hf_resource *resource, bool columns)
{
	const struct hf_column *column = printer_of(resource)->columns;
	struct hf_json *table = hf_json_object(), *definitions;

	hf_json_set_str(table, "kind", "Table");
	hf_json_set_str(table, "apiVersion", "meta.k8s.io/v1");
	(void)hf_json_ensure_object(table, "metadata");
	definitions = hf_json_ensure_array(table, "columnDefinitions");
	for (; columns && column->name != NULL; column++) {
		struct hf_json *definition = hf_json_object();
		hf_json_set_str(definition, "name", column->name);
		hf_json_set_str(definition, "type", column->type);
		hf_json_set_str(definition, "format", hf_str_or(column->format, ""));
		hf_json_set_str(definition, "description", "");
		hf_json_set_i64(definition, "priority", column->priority);
		hf_json_append(definitions, definition);
	}
	(void)hf_json_ensure_array(table, "rows");
	return table;
}

struct hf_json *hf_apiserver_metadata_of(const struct hf_json *object)
{
	struct hf_json *part = hf_json_object();

	hf_json_set_str(part, "kind", "PartialObjectMetadata");
	hf_json_set_str(part, "apiVersion", "meta.k8s.io/v1");
	hf_json_set(part, "metadata", hf_json_copy(hf_json_get(object, "metadata")));
	return part;
}

void hf_apiserver_table_add(struct hf_json *table, const struct hf_resource *resource,
			    const struct hf_json *object, enum apiserver_include include,
			    hf_time now)
{
	struct hf_json *row = hf_json_object();

	printer_of(resource)->print(hf_json_ensure_array(row, "cells"), object, now);
	if (include == APISERVER_INCLUDE_METADATA)
		hf_json_set(row, "object", hf_apiserver_metadata_of(object));
	else if (include == APISERVER_INCLUDE_OBJECT)
		hf_json_set(row, "object", hf_json_copy(object));
	hf_json_append(hf_json_ensure_array(table, "rows"), row);
}
