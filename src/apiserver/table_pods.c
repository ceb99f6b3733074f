/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "apiserver/table_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The rows of pods and nodes in tables, as upstream prints them (pkg/printers/internalversion). */

/* ---- pods --------------------------------------------------------------------------------- */

const struct hf_column hf_pod_columns[] = {
	{"Name", "string", "name", 0},
	{"Ready", "string", NULL, 0},
	{"Status", "string", NULL, 0},
	{"Restarts", "string", NULL, 0},
	{"Age", "string", NULL, 0},
	{"IP", "string", NULL, 1},
	{"Node", "string", NULL, 1},
	{"Nominated Node", "string", NULL, 1},
	{"Readiness Gates", "string", NULL, 1},
	{NULL, NULL, NULL, 0},
};

/* The summary of a pod's status: the values of kubectl's columns. */
struct pod_state {
	char reason[128];
	int64_t ready, total, restarts;
	hf_time last_restart; /* HF_TIME_NONE: none */
};

static void set_reason(struct pod_state *state, const char *prefix, const char *text)
{
	snprintf(state->reason, sizeof(state->reason), "%s%s", prefix, text);
}

/* Writes the reason of a terminated container; without a reason, "ExitCode:1" or "Signal:9". */
static void set_terminated(struct pod_state *state, const char *prefix,
			   const struct hf_json *terminated)
{
	const char *reason = hf_json_path_str(terminated, "reason", NULL);
	int64_t signum = hf_json_i64(hf_json_get(terminated, "signal"), 0);
	char text[64];

	snprintf(text, sizeof(text), "%s:%" PRId64, signum != 0 ? "Signal" : "ExitCode",
		 signum != 0 ? signum : hf_json_i64(hf_json_get(terminated, "exitCode"), 0));
	set_reason(state, prefix, hf_str_or(reason, text));
}

static void count_restarts(struct pod_state *state, const struct hf_json *container)
{
	const char *finished =
		hf_json_path_str(container, "lastState", "terminated", "finishedAt", NULL);
	hf_time t;

	state->restarts += hf_json_i64(hf_json_get(container, "restartCount"), 0);
	if (!hf_str_is_empty(finished) && hf_time_parse(finished, &t, NULL) == 0 &&
	    t > state->last_restart)
		state->last_restart = t;
}

/* Evaluates one init container. True if the pod still waits for this container. */
static bool judge_init_container(struct pod_state *state, const struct hf_json *container, size_t i,
				 size_t n)
{
	const struct hf_json *terminated = hf_json_path(container, "state", "terminated", NULL);
	const char *waiting = hf_json_path_str(container, "state", "waiting", "reason", NULL);
	char text[64];

	if (terminated != NULL && hf_json_i64(hf_json_get(terminated, "exitCode"), -1) == 0)
		return false;
	if (terminated != NULL) {
		set_terminated(state, "Init:", terminated);
	} else if (!hf_str_is_empty(waiting) && !hf_streq(waiting, "PodInitializing")) {
		set_reason(state, "Init:", waiting);
	} else {
		snprintf(text, sizeof(text), "%zu/%zu", i, n);
		set_reason(state, "Init:", text);
	}
	return true;
}

/* Evaluates the main containers, from the last to the first, so that the reason of the first
 * container which has one is shown. */
static void judge_main_containers(struct pod_state *state, const struct hf_json *statuses)
{
	bool running = false;

	state->restarts = 0;
	state->last_restart = HF_TIME_NONE;
	for (size_t i = hf_json_len(statuses); i-- > 0;) {
		const struct hf_json *container = hf_json_item(statuses, i);
		const struct hf_json *terminated =
			hf_json_path(container, "state", "terminated", NULL);
		const char *waiting =
			hf_json_path_str(container, "state", "waiting", "reason", NULL);
		count_restarts(state, container);
		if (!hf_str_is_empty(waiting)) {
			set_reason(state, "", waiting);
		} else if (terminated != NULL) {
			set_terminated(state, "", terminated);
		} else if (hf_json_true(hf_json_get(container, "ready"), false) &&
			   hf_json_path(container, "state", "running", NULL) != NULL) {
			running = true;
			state->ready++;
		}
	}
	if (running && hf_streq(state->reason, "Completed"))
		set_reason(state, "", "Running");
}

static void judge_pod(const struct hf_json *pod, struct pod_state *state)
{
	const struct hf_json *status = hf_json_get(pod, "status");
	const struct hf_json *init = hf_json_get(status, "initContainerStatuses");
	size_t n_init = hf_json_len(hf_json_path(pod, "spec", "initContainers", NULL));
	const struct hf_json *conditions = hf_json_get(status, "conditions");
	bool initializing = false;

	*state = (struct pod_state){.last_restart = HF_TIME_NONE};
	state->total = (int64_t)hf_json_len(hf_json_path(pod, "spec", "containers", NULL));
	set_reason(state, "", hf_str_or(hf_json_path_str(status, "phase", NULL), ""));
	if (!hf_str_is_empty(hf_json_path_str(status, "reason", NULL)))
		set_reason(state, "", hf_json_path_str(status, "reason", NULL));
	for (size_t i = 0; i < hf_json_len(conditions); i++) {
		const struct hf_json *c = hf_json_item(conditions, i);
		if (hf_streq(hf_json_path_str(c, "type", NULL), "PodScheduled") &&
		    hf_streq(hf_json_path_str(c, "reason", NULL), "SchedulingGated"))
			set_reason(state, "", "SchedulingGated");
	}
	for (size_t i = 0; !initializing && i < hf_json_len(init); i++) {
		count_restarts(state, hf_json_item(init, i));
		initializing = judge_init_container(state, hf_json_item(init, i), i, n_init);
	}
	if (!initializing)
		judge_main_containers(state, hf_json_get(status, "containerStatuses"));
	if (hf_json_path(pod, "metadata", "deletionTimestamp", NULL) != NULL &&
	    !hf_streq(hf_json_path_str(status, "phase", NULL), "Succeeded") &&
	    !hf_streq(hf_json_path_str(status, "phase", NULL), "Failed"))
		set_reason(state, "", "Terminating");
}

static struct hf_json *restarts_cell(const struct pod_state *state, hf_time now)
{
	char age[HF_TIME_TEXT_MAX], text[96];

	if (state->restarts > 0 && state->last_restart != HF_TIME_NONE) {
		hf_span_format(now - state->last_restart, age);
		snprintf(text, sizeof(text), "%" PRId64 " (%s ago)", state->restarts, age);
	} else {
		snprintf(text, sizeof(text), "%" PRId64, state->restarts);
	}
	return hf_json_string(text);
}

static struct hf_json *gates_cell(const struct hf_json *pod)
{
	const struct hf_json *gates = hf_json_path(pod, "spec", "readinessGates", NULL);
	const struct hf_json *conditions = hf_json_path(pod, "status", "conditions", NULL);
	size_t good = 0;
	char text[64];

	if (hf_json_len(gates) == 0)
		return hf_json_string("<none>");
	for (size_t i = 0; i < hf_json_len(gates) * hf_json_len(conditions); i++) {
		const struct hf_json *gate = hf_json_item(gates, i / hf_json_len(conditions));
		const struct hf_json *c = hf_json_item(conditions, i % hf_json_len(conditions));
		good += hf_streq(hf_json_path_str(gate, "conditionType", NULL),
				 hf_json_path_str(c, "type", NULL)) &&
			hf_streq(hf_json_path_str(c, "status", NULL), "True");
	}
	snprintf(text, sizeof(text), "%zu/%zu", good, hf_json_len(gates));
	return hf_json_string(text);
}

void hf_print_pod(struct hf_json *cells, const struct hf_json *pod, hf_time now)
{
	struct pod_state state;
	char ready[64];

	judge_pod(pod, &state);
	snprintf(ready, sizeof(ready), "%" PRId64 "/%" PRId64, state.ready, state.total);
	hf_cell_add(cells, hf_cell_str(pod, "metadata", "name"));
	hf_cell_add(cells, hf_json_string(ready));
	hf_cell_add(cells, hf_json_string(state.reason));
	hf_cell_add(cells, restarts_cell(&state, now));
	hf_cell_add(cells,
		    hf_cell_age(hf_json_path_str(pod, "metadata", "creationTimestamp", NULL), now));
	hf_cell_add(cells, hf_cell_or_none(hf_json_path_str(pod, "status", "podIP", NULL)));
	hf_cell_add(cells, hf_cell_or_none(hf_json_path_str(pod, "spec", "nodeName", NULL)));
	hf_cell_add(cells,
		    hf_cell_or_none(hf_json_path_str(pod, "status", "nominatedNodeName", NULL)));
	hf_cell_add(cells, gates_cell(pod));
}

/* ---- nodes -------------------------------------------------------------------------------- */

const struct hf_column hf_node_columns[] = {
	{"Name", "string", "name", 0},
	{"Status", "string", NULL, 0},
	{"Roles", "string", NULL, 0},
	{"Age", "string", NULL, 0},
	{"Version", "string", NULL, 0},
	{"Internal-IP", "string", NULL, 1},
	{"External-IP", "string", NULL, 1},
	{"OS-Image", "string", NULL, 1},
	{"Kernel-Version", "string", NULL, 1},
	{"Container-Runtime", "string", NULL, 1},
	{NULL, NULL, NULL, 0},
};

static struct hf_json *node_status(const struct hf_json *node)
{
	const struct hf_json *conditions = hf_json_path(node, "status", "conditions", NULL);
	bool off = hf_json_true(hf_json_path(node, "spec", "unschedulable", NULL), false);
	const char *ready = "Unknown";
	char text[64];

	for (size_t i = 0; i < hf_json_len(conditions); i++) {
		const struct hf_json *c = hf_json_item(conditions, i);
		if (hf_streq(hf_json_path_str(c, "type", NULL), "Ready"))
			ready = hf_streq(hf_json_path_str(c, "status", NULL), "True") ? "Ready"
										      : "NotReady";
	}
	snprintf(text, sizeof(text), "%s%s", ready, off ? ",SchedulingDisabled" : "");
	return hf_json_string(text);
}

static struct hf_json *node_roles(const struct hf_json *node)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1024);
	const char *prefix = "node-role.kubernetes.io/", *key;
	struct hf_json *value;
	const struct hf_json *labels = hf_json_path(node, "metadata", "labels", NULL);

	for (void *it = NULL; (it = hf_json_next(labels, it, &key, &value)) != NULL;)
		if (hf_str_has_prefix(key, prefix) && key[strlen(prefix)] != '\0')
			hf_strbuf_addf(&sb, "%s%s", sb.len > 0 ? "," : "", key + strlen(prefix));
	return hf_cell_or_none(sb.data);
}

static struct hf_json *node_address(const struct hf_json *node, const char *type)
{
	const struct hf_json *addresses = hf_json_path(node, "status", "addresses", NULL);

	for (size_t i = 0; i < hf_json_len(addresses); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(addresses, i), "type", NULL), type))
			return hf_cell_or_none(
				hf_json_path_str(hf_json_item(addresses, i), "address", NULL));
	return hf_json_string("<none>");
}

static struct hf_json *node_info(const struct hf_json *node, const char *key)
{
	const char *text = hf_json_path_str(node, "status", "nodeInfo", key, NULL);

	return hf_json_string(hf_str_or(text, "<unknown>"));
}

void hf_print_node(struct hf_json *cells, const struct hf_json *node, hf_time now)
{
	hf_cell_add(cells, hf_cell_str(node, "metadata", "name"));
	hf_cell_add(cells, node_status(node));
	hf_cell_add(cells, node_roles(node));
	hf_cell_add(
		cells,
		hf_cell_age(hf_json_path_str(node, "metadata", "creationTimestamp", NULL), now));
	hf_cell_add(cells, hf_cell_str(hf_json_get(node, "status"), "nodeInfo", "kubeletVersion"));
	hf_cell_add(cells, node_address(node, "InternalIP"));
	hf_cell_add(cells, node_address(node, "ExternalIP"));
	hf_cell_add(cells, node_info(node, "osImage"));
	hf_cell_add(cells, node_info(node, "kernelVersion"));
	hf_cell_add(cells, node_info(node, "containerRuntimeVersion"));
}
