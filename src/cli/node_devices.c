/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* What DeviceHealth objects tell of nodes: state of the devices, versions of the driver, device plugin; and how
 * often pods of device plugins were restarted. Texts of the agents are printed through tables, which blank control
 * characters. */
#include "cli/node_devices.h"

#include "api/lifetime.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/facts.h"
#include "cli/request.h"
#include "store/resource.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SEED 0x64657669u
#define CELL_MAX ((size_t)512)

/* The restarts of a node's device plugins. */
struct plugin_restarts {
	int64_t count;
	hf_time last; /* HF_TIME_NONE: unknown */
};

struct hf_node_devices {
	struct hf_cli_reply reply;
	struct hf_map *by_name;
	struct hf_map *restarts; /* of struct plugin_restarts, by the names of nodes */
};

/* ---- versions ---------------------------------------------------------------------------------- */

bool hf_driver_versions(const struct hf_json *health, struct hf_strbuf *text)
{
	static const struct {
		const char *key, *name;
	} parts[] = {{"driverVersion", "driver"},
		     {"libraryVersion", "library"},
		     {"moduleVersion", "module"},
		     {"firmwareVersion", "firmware"}};
	const struct hf_json *status = hf_json_get(health, "status");
	const char *first = NULL;
	bool differ = false;

	for (size_t i = 0; i < HF_ARRAY_LEN(parts); i++) {
		const char *version = hf_json_path_str(status, parts[i].key, NULL);

		if (hf_str_is_empty(version) || hf_streq(version, first))
			continue;
		differ |= first != NULL;
		/* Without an answer of the driver, the text says of which part the version is. */
		hf_strbuf_addf(text, "%s%s%s%s", first != NULL ? ", " : "",
			       i > 0 ? parts[i].name : "", i > 0 ? " " : "", version);
		first = first != NULL ? first : version;
	}
	return differ;
}

/* ---- restarts of device plugins ------------------------------------------------------------------- */

static hf_time find_last_end(const struct hf_json *pod)
{
	const struct hf_json *list = hf_json_path(pod, "status", "containerStatuses", NULL);
	hf_time last = HF_TIME_NONE;

	for (size_t i = 0; i < hf_json_len(list); i++) {
		hf_time end = hf_facts_time(hf_json_path_str(hf_json_item(list, i), "lastState",
							     "terminated", "finishedAt", NULL));

		if (end != HF_TIME_NONE && (last == HF_TIME_NONE || end > last))
			last = end;
	}
	return last;
}

static void count_restarts(struct hf_node_devices *devices, const struct hf_json *pod)
{
	const char *node = hf_json_path_str(pod, "spec", "nodeName", NULL);
	hf_time last = find_last_end(pod);
	struct plugin_restarts *restarts;
	struct hf_pod_facts facts;

	hf_pod_facts_read(pod, &facts);
	if (node == NULL || !hf_is_plugin_pod(pod) || facts.restarts <= 0)
		return;
	restarts = hf_map_get(devices->restarts, node);
	if (restarts == NULL) {
		restarts = hf_xcalloc(1, sizeof(*restarts));
		restarts->last = HF_TIME_NONE;
		if (!hf_map_put(devices->restarts, node, restarts)) {
			free(restarts);
			return;
		}
	}
	restarts->count += facts.restarts;
	if (last != HF_TIME_NONE && (restarts->last == HF_TIME_NONE || last > restarts->last))
		restarts->last = last;
}

/* Reads the pods of the vendors' device plugins. Who may not list pods of all namespaces sees no restarts. */
static void read_plugins(struct hf_cli *cli, struct hf_node_devices *devices)
{
	static const char *const selectors[] = {
		"app in (nvidia-device-plugin-daemonset,nvidia-device-plugin)",
		"name in (nvidia-device-plugin-ds,amdgpu-dp-ds)",
		"k8s-app=nvidia-gpu-device-plugin",
		"app.kubernetes.io/name in (nvidia-device-plugin,device-plugin)",
	};

	/* A pod may have the labels of two selectors. */
	struct hf_map *seen = hf_map_create(HF_CLI_ITEMS_MAX, SEED, NULL);

	for (size_t i = 0; i < HF_ARRAY_LEN(selectors); i++) {
		const struct hf_request request = {
			.verb = HF_VERB_LIST, .resource = &hf_pods, .label_selector = selectors[i]};
		HF_AUTO_CLI_REPLY reply = {.object = NULL};

		if (hf_cli_request(cli, &request, &reply, NULL) != 0)
			break;
		for (size_t k = 0; k < reply.n_items; k++)
			if (!hf_map_has(seen, hf_doc_uid(reply.items[k])) &&
			    hf_map_put(seen, hf_doc_uid(reply.items[k]), NULL))
				count_restarts(devices, hf_doc_json(reply.items[k]));
	}
	hf_map_destroy(seen);
}

static void add_restarts(const struct hf_node_devices *devices, const char *node, hf_time now,
			 struct hf_strbuf *cell)
{
	const struct plugin_restarts *restarts = hf_map_get(devices->restarts, node);
	char ago[HF_TIME_TEXT_MAX];

	if (restarts == NULL)
		return;
	hf_strbuf_addf(cell, ", %" PRId64 " restart%s", restarts->count,
		       restarts->count == 1 ? "" : "s");
	if (restarts->last == HF_TIME_NONE)
		return;
	hf_span_format(now > restarts->last ? now - restarts->last : 0, ago);
	hf_strbuf_addf(cell, ", last %s ago", ago);
}

/* ---- columns ------------------------------------------------------------------------------------ */

struct hf_node_devices *hf_node_devices_read(struct hf_cli *cli)
{
	const struct hf_request request = {.verb = HF_VERB_LIST, .resource = &hf_devicehealths};
	struct hf_node_devices *devices = hf_xcalloc(1, sizeof(*devices));

	devices->by_name = hf_map_create(HF_CLI_ITEMS_MAX, SEED, NULL);
	devices->restarts = hf_map_create(HF_CLI_ITEMS_MAX, SEED, free);
	read_plugins(cli, devices);
	if (hf_cli_request(cli, &request, &devices->reply, NULL) != 0)
		return devices;
	for (size_t i = 0; i < devices->reply.n_items; i++)
		/* nodes beyond the limit get empty cells */
		(void)!hf_map_put(devices->by_name, hf_doc_name(devices->reply.items[i]),
				  devices->reply.items[i]);
	return devices;
}

struct hf_node_devices *hf_node_devices_destroy(struct hf_node_devices *devices)
{
	if (devices == NULL)
		return NULL;
	hf_map_destroy(devices->by_name);
	hf_map_destroy(devices->restarts);
	hf_cli_reply_release(&devices->reply);
	free(devices);
	return NULL;
}

static void add_state(const struct hf_json *status, hf_time now, struct hf_table *table)
{
	hf_time seen = hf_facts_time(hf_json_path_str(status, "observedTime", NULL));
	const char *state = hf_json_path_str(status, "state", NULL);

	if (state == NULL)
		hf_table_cell(table, "<none>");
	else if (seen == HF_TIME_NONE || now - seen > HF_CLI_AGENT_SILENT)
		hf_table_cell(table, "%s (old report)", state);
	else
		hf_table_cell(table, "%s", state);
}

/* The agent's text of an active fault of the detector `plugin` on the node as a whole; NULL: none. */
static const char *find_plugin_fault(const struct hf_json *status)
{
	const struct hf_json *devices = hf_json_get(status, "devices");

	for (size_t i = 0; i < hf_json_len(devices); i++) {
		const struct hf_json *faults = hf_json_get(hf_json_item(devices, i), "faults");

		for (size_t k = 0; k < hf_json_len(faults); k++) {
			const struct hf_json *fault = hf_json_item(faults, k);

			if (hf_streq(hf_json_path_str(fault, "detector", NULL), "plugin") &&
			    hf_json_true(hf_json_get(fault, "active"), false))
				return hf_json_i64(hf_json_get(fault, "code"), 0) == 1
					       ? "kubelet does not answer"
					       : "resource is gone";
		}
	}
	return NULL;
}

/* What the agent sees of the device plugin, through the kubelet. */
static const char *plugin_text(const struct hf_json *status)
{
	const struct hf_json *detectors = hf_json_get(status, "detectors");
	const char *fault = find_plugin_fault(status);

	if (fault != NULL)
		return fault;
	for (size_t i = 0; i < hf_json_len(detectors); i++) {
		const struct hf_json *detector = hf_json_item(detectors, i);

		if (hf_streq(hf_json_path_str(detector, "name", NULL), "plugin"))
			return hf_streq(hf_json_path_str(detector, "state", NULL), "On")
				       ? "ok"
				       : "<unseen>";
	}
	return "<none>";
}

void hf_node_devices_cells(const struct hf_node_devices *devices, const char *node, hf_time now,
			   struct hf_table *table)
{
	struct hf_doc *doc = hf_map_get(devices->by_name, node);
	const struct hf_json *health = doc != NULL ? hf_doc_json(doc) : NULL;
	const struct hf_json *status = hf_json_get(health, "status");
	HF_AUTO_STRBUF versions = HF_STRBUF_INIT(CELL_MAX);
	HF_AUTO_STRBUF plugin = HF_STRBUF_INIT(CELL_MAX);

	(void)hf_driver_versions(health, &versions);
	add_state(status, now, table);
	hf_table_cell(table, "%s", versions.len > 0 ? versions.data : "<none>");
	hf_strbuf_addf(&plugin, "%s", plugin_text(status));
	add_restarts(devices, node, now, &plugin);
	hf_table_cell(table, "%s", plugin.data);
}
