/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/pod.h"

#include "api/reader_internal.h"
#include "base/str.h"
#include "core/names.h"

#include <string.h>

/* A pod may have some hundred containers before its document is too large; conditions are
 * ten or so, each written by one controller. */
#define CONTAINERS_MAX 1024
#define CONDITIONS_MAX 64

static const struct hf_json *controller_ref(const struct hf_json *root)
{
	const struct hf_json *refs = hf_json_path(root, "metadata", "ownerReferences", NULL);

	for (size_t i = 0; i < hf_json_len(refs); i++) {
		const struct hf_json *ref = hf_json_item(refs, i);
		if (hf_json_true(hf_json_get(ref, "controller"), false))
			return ref;
	}
	return NULL;
}

const char *hf_controller_uid(struct hf_doc *doc)
{
	return hf_json_path_str(controller_ref(hf_doc_json(doc)), "uid", NULL);
}

bool hf_controller_ref(struct hf_doc *doc, const char **ret_api_version, const char **ret_kind,
		       const char **ret_name, const char **ret_uid)
{
	const struct hf_json *ref = controller_ref(hf_doc_json(doc));

	if (ref == NULL)
		return false;
	*ret_api_version = hf_str_or(hf_json_path_str(ref, "apiVersion", NULL), "");
	*ret_kind = hf_str_or(hf_json_path_str(ref, "kind", NULL), "");
	*ret_name = hf_str_or(hf_json_path_str(ref, "name", NULL), "");
	*ret_uid = hf_str_or(hf_json_path_str(ref, "uid", NULL), "");
	return true;
}

static int64_t number_or(const char *text, int64_t fallback)
{
	int64_t value;

	return text != NULL && hf_str_to_i64(text, 0, INT64_MAX, &value, NULL) == 0 ? value
										    : fallback;
}

static void read_stamps(const struct hf_json *metadata, struct hf_pod *ret_pod)
{
	const struct hf_json *annotations = hf_json_get(metadata, "annotations");

	ret_pod->generation =
		number_or(hf_json_path_str(annotations, HF_ANNOTATION_GENERATION, NULL), -1);
	ret_pod->attempt =
		number_or(hf_json_path_str(annotations, HF_ANNOTATION_ATTEMPT, NULL), -1);
	ret_pod->incident =
		number_or(hf_json_path_str(annotations, HF_ANNOTATION_INCIDENT, NULL), -1);
	ret_pod->stamped =
		ret_pod->generation >= 0 && ret_pod->attempt >= 0 && ret_pod->incident >= 0;
	if (!ret_pod->stamped)
		ret_pod->generation = ret_pod->attempt = ret_pod->incident = 0;
}

static int32_t clamp_i32(int64_t value)
{
	return value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static void read_container(struct hf_reader *r, const struct hf_json *status, bool init,
			   struct hf_container_seen *ret_seen)
{
	const struct hf_json *state = hf_json_get(status, "state");
	const struct hf_json *terminated = hf_json_get(state, "terminated");
	const struct hf_json *running = hf_json_get(state, "running");
	const struct hf_json *waiting = hf_json_get(state, "waiting");

	*ret_seen = (struct hf_container_seen){
		.name = hf_str_or(hf_json_path_str(status, "name", NULL), ""),
		.init = init,
		.restart_count = clamp_i32(hf_json_i64(hf_json_get(status, "restartCount"), 0)),
		.finished_at = HF_TIME_NONE,
		.started_at = HF_TIME_NONE,
	};
	if (hf_json_type(terminated) == HF_JSON_OBJECT) {
		ret_seen->phase = HF_CONTAINER_TERMINATED;
		ret_seen->exit_code =
			clamp_i32(hf_json_i64(hf_json_get(terminated, "exitCode"), 0));
		ret_seen->signal = clamp_i32(hf_json_i64(hf_json_get(terminated, "signal"), 0));
		ret_seen->terminated_reason = hf_json_path_str(terminated, "reason", NULL);
		ret_seen->finished_at = hf_reader_time(r, terminated, "finishedAt");
		ret_seen->started_at = hf_reader_time(r, terminated, "startedAt");
	} else if (hf_json_type(running) == HF_JSON_OBJECT) {
		ret_seen->phase = HF_CONTAINER_RUNNING;
		ret_seen->started_at = hf_reader_time(r, running, "startedAt");
	} else if (hf_json_type(waiting) == HF_JSON_OBJECT) {
		ret_seen->phase = HF_CONTAINER_WAITING;
		ret_seen->waiting_reason = hf_json_path_str(waiting, "reason", NULL);
	}
}

static void read_containers(struct hf_reader *r, const struct hf_json *status,
			    struct hf_pod *ret_pod)
{
	const struct hf_json *lists[] = {hf_json_get(status, "initContainerStatuses"),
					 hf_json_get(status, "containerStatuses")};
	size_t n = hf_json_len(lists[0]) + hf_json_len(lists[1]), len = 0;
	struct hf_container_seen *seen;

	if (n > CONTAINERS_MAX)
		n = CONTAINERS_MAX;
	seen = HF_ARENA_ARRAY(r->arena, struct hf_container_seen, n + 1);
	for (size_t list = 0; list < HF_ARRAY_LEN(lists); list++)
		for (size_t i = 0; i < hf_json_len(lists[list]) && len < n; i++)
			read_container(r, hf_json_item(lists[list], i), list == 0, &seen[len++]);
	ret_pod->containers = seen;
	ret_pod->containers_len = len;
}

static void read_conditions(struct hf_reader *r, const struct hf_json *status,
			    struct hf_pod *ret_pod)
{
	const struct hf_json *list = hf_json_get(status, "conditions");
	size_t n = hf_json_len(list) < CONDITIONS_MAX ? hf_json_len(list) : CONDITIONS_MAX;
	struct hf_pod_condition *conditions =
		HF_ARENA_ARRAY(r->arena, struct hf_pod_condition, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct hf_json *item = hf_json_item(list, i);
		conditions[i].type = hf_str_or(hf_json_path_str(item, "type", NULL), "");
		conditions[i].status = hf_str_or(hf_json_path_str(item, "status", NULL), "");
		conditions[i].reason = hf_json_path_str(item, "reason", NULL);
		conditions[i].message = hf_json_path_str(item, "message", NULL);
	}
	ret_pod->conditions = conditions;
	ret_pod->conditions_len = n;
}

void hf_pod_read(struct hf_doc *doc, const char *job_uid, struct hf_arena *arena,
		 struct hf_pod *ret_pod)
{
	const struct hf_json *root = hf_doc_json(doc);
	const struct hf_json *metadata = hf_json_get(root, "metadata");
	const struct hf_json *status = hf_json_get(root, "status");
	struct hf_reader r = {.arena = arena};
	struct hf_pod pod = {
		.name = hf_doc_name(doc),
		.uid = hf_doc_uid(doc),
		.resource_version = hf_doc_resource_version(doc),
		.owned = hf_streq(hf_controller_uid(doc), job_uid),
		.phase = hf_pod_phase_parse(hf_json_path_str(status, "phase", NULL)),
		.reason = hf_json_path_str(status, "reason", NULL),
		.message = hf_json_path_str(status, "message", NULL),
		.creation_time = hf_reader_time(&r, metadata, "creationTimestamp"),
		.deletion_time = hf_reader_time(&r, metadata, "deletionTimestamp"),
		.node = hf_json_path_str(root, "spec", "nodeName", NULL),
	};

	read_stamps(metadata, &pod);
	read_containers(&r, status, &pod);
	read_conditions(&r, status, &pod);
	*ret_pod = pod;
}

void hf_service_read(struct hf_doc *doc, const char *job_uid, struct hf_service_seen *ret_service)
{
	const struct hf_json *metadata = hf_json_get(hf_doc_json(doc), "metadata");
	struct hf_service_seen service = {
		.name = hf_doc_name(doc),
		.uid = hf_doc_uid(doc),
		.resource_version = hf_doc_resource_version(doc),
		.owned = hf_streq(hf_controller_uid(doc), job_uid),
		.terminating = hf_json_path_str(metadata, "deletionTimestamp", NULL) != NULL,
	};
	*ret_service = service;
}
