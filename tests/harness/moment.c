/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/moment.h"

#include "api/extra_object.h"
#include "api/job.h"
#include "api/pod.h"
#include "base/str.h"
#include "framework/framework.h"

#include <string.h>

static struct hf_doc *keep(struct moment *moment, const struct hf_json *value)
{
	if (moment->docs_len == MOMENT_DOCS_MAX)
		return NULL;
	return moment->docs[moment->docs_len++] = hf_doc_from_json(hf_json_copy(value));
}

static hf_time time_of(const struct hf_json *value, hf_time fallback)
{
	const char *text = hf_json_str(value, NULL);
	hf_time t;

	return text && hf_time_parse(text, &t, NULL) == 0 ? t : fallback;
}

static int32_t number_of(const struct hf_json *value, int32_t fallback)
{
	int64_t number = hf_json_i64(value, fallback);

	return number >= 0 && number <= INT32_MAX ? (int32_t)number : fallback;
}

/* By the names that are printed. */
static enum hf_node_ready ready_of(const char *name)
{
	for (int r = HF_NODE_READY; r <= HF_NODE_GONE; r++)
		if (hf_streq(hf_node_ready_name((enum hf_node_ready)r), name))
			return (enum hf_node_ready)r;
	return HF_NODE_READY;
}

static void read_nodes(struct moment *moment, const struct hf_json *list, struct hf_arena *arena)
{
	size_t n = hf_json_len(list);
	struct hf_node_seen *nodes = HF_ARENA_ARRAY(arena, struct hf_node_seen, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct hf_json *node = hf_json_item(list, i);

		nodes[i].name = hf_json_str(hf_json_get(node, "name"), "");
		nodes[i].reported_at = time_of(hf_json_get(node, "reportedAt"), HF_TIME_NONE);
		nodes[i].beat_at = time_of(hf_json_get(node, "beatAt"), HF_TIME_NONE);
		nodes[i].has_agent = hf_json_true(hf_json_get(node, "hasAgent"), false);
		nodes[i].ready = ready_of(hf_json_str(hf_json_get(node, "ready"), "Ready"));
		/* Without "renewedAt", a node that is Ready or NotReady has renewed its Lease just
		 * now. */
		nodes[i].renewed_at = time_of(hf_json_get(node, "renewedAt"),
					      nodes[i].ready == HF_NODE_READY ||
							      nodes[i].ready == HF_NODE_NOT_READY
						      ? moment->now
						      : HF_TIME_NONE);
		nodes[i].since = time_of(hf_json_get(node, "since"), moment->now);
		nodes[i].unknown_at = time_of(hf_json_get(node, "unknownAt"), HF_TIME_NONE);
		nodes[i].confirmed_at = time_of(hf_json_get(node, "confirmedAt"), HF_TIME_NONE);
		nodes[i].lease_read_at = time_of(hf_json_get(node, "leaseReadAt"), HF_TIME_NONE);
		nodes[i].renew_time = time_of(hf_json_get(node, "renewTime"), HF_TIME_NONE);
		nodes[i].lease_since = time_of(hf_json_get(node, "leaseSince"), HF_TIME_NONE);
		nodes[i].unreachable = hf_json_true(hf_json_get(node, "unreachable"), false);
		nodes[i].out_of_service = hf_json_true(hf_json_get(node, "outOfService"), false);
		nodes[i].no_execute = hf_json_true(hf_json_get(node, "noExecute"), false);
		nodes[i].evicted_at = time_of(hf_json_get(node, "evictedAt"), HF_TIME_NONE);
		nodes[i].zone_nodes = number_of(hf_json_get(node, "zoneNodes"), 10);
		nodes[i].zone_lost = number_of(hf_json_get(node, "zoneLost"), 0);
		nodes[i].calm_since = time_of(hf_json_get(node, "calmSince"), 0);
		nodes[i].zone = hf_json_str(hf_json_get(node, "zone"), NULL);
	}
	moment->seen.nodes = nodes;
	moment->seen.nodes_len = n;
}

/* True if a value can be an object: an API server gives each object a name and a UID. */
static bool is_object(const struct hf_json *value)
{
	return !hf_str_is_empty(hf_json_path_str(value, "metadata", "name", NULL)) &&
	       !hf_str_is_empty(hf_json_path_str(value, "metadata", "uid", NULL));
}

/* Reads a device as an agent's DeviceHealth reports it, joined with the pod that holds it. */
static struct hf_device_seen device_of(const struct hf_json *item)
{
	return (struct hf_device_seen){
		.id = hf_json_str(hf_json_get(item, "id"), ""),
		.cls = hf_json_str(hf_json_get(item, "class"), ""),
		.agent = true,
		.fatal = hf_json_true(hf_json_get(item, "fatal"), true),
		.held = hf_json_true(hf_json_get(item, "held"), true),
		.first = time_of(hf_json_get(item, "first"), HF_TIME_NONE),
		.last = time_of(hf_json_get(item, "last"), HF_TIME_NONE),
	};
}

/* Adds the devices that an agent reports, behind the devices of the pod's own status. */
static void add_devices(struct hf_pod *pod, const struct hf_json *list, struct hf_arena *arena)
{
	size_t n = hf_json_len(list);
	struct hf_device_seen *devices;

	pod->watched |= n > 0;
	if (n == 0)
		return;
	devices = HF_ARENA_ARRAY(arena, struct hf_device_seen, pod->devices_len + n);
	for (size_t i = 0; i < pod->devices_len; i++)
		devices[i] = pod->devices[i];
	for (size_t i = 0; i < n; i++)
		devices[pod->devices_len + i] = device_of(hf_json_item(list, i));
	pod->devices = devices;
	pod->devices_len += n;
}

static void read_late(struct moment *moment, const struct hf_json *root, struct hf_arena *arena)
{
	const struct hf_json *list = hf_json_get(root, "late"), *names = hf_json_get(root, "sick");
	struct hf_late_seen *late =
		HF_ARENA_ARRAY(arena, struct hf_late_seen, hf_json_len(list) + 1);
	struct hf_sick_seen *sick =
		HF_ARENA_ARRAY(arena, struct hf_sick_seen, hf_json_len(names) + 1);

	for (size_t i = 0; i < hf_json_len(list); i++)
		late[i] = (struct hf_late_seen){
			.pod = hf_json_path_str(hf_json_item(list, i), "pod", NULL),
			.node = hf_json_path_str(hf_json_item(list, i), "node", NULL),
			.device = device_of(hf_json_item(list, i)),
		};
	for (size_t i = 0; i < hf_json_len(names); i++) {
		const struct hf_json *item = hf_json_item(names, i);

		sick[i] = (struct hf_sick_seen){
			.node = hf_json_str(item,
					    hf_str_or(hf_json_path_str(item, "name", NULL), "")),
			.since = time_of(hf_json_get(item, "since"), HF_TIME_NONE),
			.silent = hf_json_true(hf_json_get(item, "silent"), false),
			.withheld = hf_json_true(hf_json_get(item, "withheld"), false)};
	}
	moment->seen.late = late;
	moment->seen.late_len = hf_json_len(list);
	moment->seen.sick = sick;
	moment->seen.sick_len = hf_json_len(names);
}

static void add_progress(struct hf_pod *pod, const struct hf_json *item, hf_time now)
{
	const char *advance = hf_json_str(hf_json_get(item, "advance"), "");

	pod->advance = hf_streq(advance, "Advancing") ? HF_ADVANCING
		       : hf_streq(advance, "Stalled") ? HF_ADVANCE_STALLED
						      : HF_ADVANCE_UNKNOWN;
	pod->stepped_at = time_of(hf_json_get(item, "steppedAt"), HF_TIME_NONE);
	pod->advanced_at = time_of(hf_json_get(item, "advancedAt"), HF_TIME_NONE);
	pod->told_at = time_of(hf_json_get(item, "toldAt"), now);
	pod->slow_permille = number_of(hf_json_get(item, "slowPermille"), 0);
	pod->fence_seconds = number_of(hf_json_get(item, "fenceSeconds"), 0);
}

/* Reads what the agent reports about the pod's process under exec. */
static void add_process(struct hf_pod *pod, const struct hf_json *item, struct hf_arena *arena)
{
	enum hf_process_phase phase = hf_process_phase_parse(hf_json_path_str(item, "phase", NULL));
	struct hf_process_seen *process = HF_ARENA_NEW(arena, struct hf_process_seen);
	int32_t code = number_of(hf_json_get(item, "code"), -1);
	int32_t signal = number_of(hf_json_get(item, "signal"), -1);

	if ((int)phase == HF_PROCESS_PHASES)
		return;
	*process = (struct hf_process_seen){
		.phase = phase,
		.generation = number_of(hf_json_get(item, "generation"), 1),
		.attempt = number_of(hf_json_get(item, "attempt"), 0),
		.cause = hf_json_path_str(item, "cause", NULL),
		.message = hf_json_path_str(item, "message", NULL),
		.step = number_of(hf_json_get(item, "step"), 0),
		.saved_step = number_of(hf_json_get(item, "savedStep"), 0),
		.save_ms = number_of(hf_json_get(item, "saveMillis"), 0),
		.at = time_of(hf_json_get(item, "time"), HF_TIME_NONE)};
	if (code >= 0)
		process->code = HF_SOME_INT(code);
	if (signal >= 0)
		process->signal = HF_SOME_INT(signal);
	pod->process = process;
}

static void read_pods(struct moment *moment, const struct hf_json *list, struct hf_arena *arena)
{
	struct hf_pod *pods = HF_ARENA_ARRAY(arena, struct hf_pod, hf_json_len(list) + 1);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		struct hf_doc *doc = is_object(hf_json_item(list, i))
					     ? keep(moment, hf_json_item(list, i))
					     : NULL;

		if (doc)
			hf_pod_read(doc, moment->view.uid, arena, &pods[moment->seen.pods_len++]);
		/* When the operator saw changes of the pod is not part of the document: it stands
		 * beside the metadata. */
		if (doc)
			pods[moment->seen.pods_len - 1].news_at =
				time_of(hf_json_get(hf_json_item(list, i), "newsAt"), HF_TIME_NONE);
		if (doc) {
			struct hf_pod *pod = &pods[moment->seen.pods_len - 1];

			pod->unwell_at = time_of(hf_json_get(hf_json_item(list, i), "unwellAt"),
						 HF_TIME_NONE);
			pod->own_ended_at = time_of(
				hf_json_get(hf_json_item(list, i), "ownEndedAt"), HF_TIME_NONE);

			pod->watched =
				hf_json_true(hf_json_get(hf_json_item(list, i), "watched"), false);
			add_progress(pod, hf_json_item(list, i), moment->now);
			add_process(pod, hf_json_get(hf_json_item(list, i), "process"), arena);
			pod->step = number_of(hf_json_get(hf_json_item(list, i), "step"), 0);
			add_devices(pod, hf_json_get(hf_json_item(list, i), "devices"), arena);
		}
	}
	moment->seen.pods = pods;
}

static void read_services(struct moment *moment, const struct hf_json *list, struct hf_arena *arena)
{
	struct hf_service_seen *services =
		HF_ARENA_ARRAY(arena, struct hf_service_seen, hf_json_len(list) + 1);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		struct hf_doc *doc = is_object(hf_json_item(list, i))
					     ? keep(moment, hf_json_item(list, i))
					     : NULL;

		if (doc)
			hf_service_read(doc, moment->view.uid, arena,
					&services[moment->seen.services_len++]);
	}
	moment->seen.services = services;
}

/* Reads documents of the other kinds that a job may own beside pods and services. */
static void read_extras(struct moment *moment, const struct hf_json *list, struct hf_arena *arena)
{
	struct hf_extra_seen *extras =
		HF_ARENA_ARRAY(arena, struct hf_extra_seen, hf_json_len(list) + 1);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);
		const char *name = hf_json_path_str(item, "kind", NULL);
		const char *version = hf_json_path_str(item, "apiVersion", NULL);

		for (int k = 0; k < HF_EXTRA_KINDS && is_object(item); k++) {
			struct hf_doc *doc = NULL;

			if (hf_streq(hf_extra_kind_name((enum hf_extra_kind)k), name) &&
			    hf_streq(hf_extra_kind_version((enum hf_extra_kind)k), version))
				doc = keep(moment, item);
			if (doc)
				hf_extra_read(doc, (enum hf_extra_kind)k, moment->view.uid, arena,
					      &extras[moment->seen.extras_len++]);
		}
	}
	moment->seen.extras = extras;
}

/* Reads the last version of a pod that is gone; NULL: the document has none. */
static const struct hf_pod *read_last(struct moment *moment, const struct hf_json *last,
				      struct hf_arena *arena)
{
	struct hf_pod *pod = HF_ARENA_NEW(arena, struct hf_pod);

	if (!is_object(last))
		return NULL;
	hf_pod_read(keep(moment, last), moment->view.uid, arena, pod);
	return pod;
}

static void read_gone(struct moment *moment, const struct hf_json *list, struct hf_arena *arena)
{
	size_t n = hf_json_len(list);
	struct hf_gone_seen *gone = HF_ARENA_ARRAY(arena, struct hf_gone_seen, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct hf_json *item = hf_json_item(list, i);

		gone[i].name = hf_json_str(hf_json_get(item, "name"), "");
		gone[i].at = time_of(hf_json_get(item, "at"), moment->now);
		gone[i].no_execute = hf_json_true(hf_json_get(item, "noExecute"), false);
		gone[i].last = read_last(moment, hf_json_get(item, "last"), arena);
	}
	moment->seen.gone = gone;
	moment->seen.gone_len = n;
}

static void read_claims(struct moment *moment, const struct hf_json *list, struct hf_arena *arena)
{
	size_t n = hf_json_len(list);
	struct hf_claim_seen *claims = HF_ARENA_ARRAY(arena, struct hf_claim_seen, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct hf_json *item = hf_json_item(list, i);

		claims[i].name = hf_json_str(hf_json_get(item, "name"), "");
		claims[i].exclusive = hf_json_true(hf_json_get(item, "exclusive"), false);
	}
	moment->seen.claims = claims;
	moment->seen.claims_len = n;
}

void moment_read(struct moment *moment, const struct hf_json *root, struct hf_arena *arena)
{
	const struct hf_json *job = hf_json_get(root, "job");

	memset(moment, 0, sizeof(*moment));
	moment->now = time_of(hf_json_get(root, "now"), 0);
	if (!is_object(job))
		return;
	moment->framework = hf_framework_by_kind(hf_json_path_str(job, "apiVersion", NULL),
						 hf_json_path_str(job, "kind", NULL));
	if (!moment->framework)
		return;
	moment->settings.gang_scheduler = hf_json_path_str(root, "settings", "gangScheduler", NULL);
	moment->settings.exec_image = hf_json_path_str(root, "settings", "execImage", NULL);
	moment->settings.exec_csi_driver = hf_json_path_str(root, "settings", "execDriver", NULL);
	moment->settings.exec_program = hf_json_path_str(root, "settings", "execProgram", NULL);
	moment->settings.recovery.exec = hf_json_path_str(root, "settings", "exec", NULL);
	moment->settings.no_autoscaler =
		hf_json_true(hf_json_path(root, "settings", "noAutoscaler", NULL), false);
	hf_job_read(keep(moment, job), moment->framework, &moment->settings, arena, NULL,
		    &moment->view);
	read_pods(moment, hf_json_get(root, "pods"), arena);
	read_services(moment, hf_json_get(root, "services"), arena);
	read_extras(moment, hf_json_get(root, "extras"), arena);
	read_nodes(moment, hf_json_get(root, "nodes"), arena);
	read_gone(moment, hf_json_get(root, "gone"), arena);
	read_claims(moment, hf_json_get(root, "claims"), arena);
	read_late(moment, root, arena);
	moment->seen.watched_since = time_of(hf_json_get(root, "watchedSince"), HF_TIME_NONE);
}

void moment_release(struct moment *moment)
{
	for (size_t i = 0; i < moment->docs_len; i++)
		hf_doc_unref(moment->docs[i]);
	moment->docs_len = 0;
}
