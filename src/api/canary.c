/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/canary.h"

#include "api/condition.h"
#include "api/job.h"
#include "api/writer_internal.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEMPLATE_BYTES_MAX ((size_t)1 << 20)
#define REPLICA_SPECS "ReplicaSpecs"
#define NEEDED (HF_FIELD_REQUIRED | HF_FIELD_NONEMPTY)
/* Bytes of the node's name that the name of a canary repeats. */
#define NODE_PART 24

/* ---- the template ------------------------------------------------------------------------------ */

static bool is_batch(const struct hf_json *template)
{
	return hf_streq(hf_json_path_str(template, "apiVersion", NULL), "batch/v1");
}

static int check_kind(const struct hf_json *template, const char *path, struct hf_error *err)
{
	static const char *const kinds[] = {"PyTorchJob", "TFJob",     "MPIJob",
					    "XGBoostJob", "PaddleJob", "JAXJob"};
	const char *version = hf_str_or(hf_json_path_str(template, "apiVersion", NULL), "");
	const char *kind = hf_str_or(hf_json_path_str(template, "kind", NULL), "");

	if (is_batch(template) && hf_streq(kind, "Job"))
		return 0;
	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		if (hf_streq(version, "kubeflow.org/v1") && hf_streq(kind, kinds[i]))
			return 0;
	return hf_error_set(err, HF_E_INVALID,
			    "%s.kind: Unsupported value: \"%s %s\": must be Job of batch/v1, or a "
			    "kind of job of kubeflow.org/v1",
			    path, version, kind);
}

/* Returns the first key of the object that is not in the list; NULL: there is none. */
static const char *find_other_key(const struct hf_json *object, const char *const *keys, size_t len)
{
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(object, it, &key, &value));) {
		bool known = false;

		for (size_t i = 0; i < len; i++)
			known |= hf_streq(key, keys[i]);
		if (!known)
			return key;
	}
	return NULL;
}

static int check_metadata(const struct hf_json *metadata, const char *path, struct hf_error *err)
{
	static const char *const keys[] = {"namespace", "labels", "annotations"};
	const char *ns = hf_json_path_str(metadata, "namespace", NULL);
	const char *other = find_other_key(metadata, keys, HF_ARRAY_LEN(keys)), *problem;

	if (hf_str_is_empty(ns))
		return hf_error_set(err, HF_E_INVALID, "%s.metadata.namespace: Required value",
				    path);
	problem = hf_dns1123_label_problem(ns);
	if (problem != NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "%s.metadata.namespace: Invalid value: \"%s\": %s", path, ns,
				    problem);
	if (other != NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "%s.metadata.%s: Forbidden: may have namespace, labels and "
				    "annotations only; the operator names the job",
				    path, other);
	return 0;
}

typedef void (*template_fn)(void *arg, struct hf_json *pod_spec);

/* Calls fn for the pod spec of each pod template. Returns the number of pod templates. */
static size_t each_pod_spec(const struct hf_json *job, template_fn fn, void *arg)
{
	const struct hf_json *spec = hf_json_get(job, "spec");
	struct hf_json *roles, *role, *pod;
	const char *key;
	size_t count = 0;

	if (is_batch(job)) {
		pod = hf_json_path(spec, "template", "spec", NULL);
		if (hf_json_type(pod) == HF_JSON_OBJECT && fn != NULL)
			fn(arg, pod);
		return hf_json_type(pod) == HF_JSON_OBJECT;
	}
	for (void *it = NULL; (it = hf_json_next(spec, it, &key, &roles));) {
		if (!hf_str_has_suffix(key, REPLICA_SPECS))
			continue;
		for (void *at = NULL; (at = hf_json_next(roles, at, &key, &role));) {
			pod = hf_json_path(role, "template", "spec", NULL);
			if (hf_json_type(pod) != HF_JSON_OBJECT)
				return 0;
			count++;
			if (fn != NULL)
				fn(arg, pod);
		}
	}
	return count;
}

int hf_canary_template_check(const struct hf_json *template, const char *path, struct hf_error *err)
{
	static const char *const keys[] = {"apiVersion", "kind", "metadata", "spec"};
	const char *other = find_other_key(template, keys, HF_ARRAY_LEN(keys));
	int rc;

	if (hf_json_type(template) != HF_JSON_OBJECT)
		return hf_error_set(err, HF_E_INVALID, "%s: Invalid value: must be a job", path);
	rc = check_kind(template, path, err);
	if (rc == 0)
		rc = check_metadata(hf_json_get(template, "metadata"), path, err);
	if (rc == 0 && other != NULL)
		rc = hf_error_set(err, HF_E_INVALID, "%s.%s: Forbidden: unknown field", path,
				  other);
	if (rc == 0 && each_pod_spec(template, NULL, NULL) == 0)
		rc = hf_error_set(err, HF_E_INVALID,
				  "%s.spec: Required value: each pod template needs a spec", path);
	return rc;
}

/* ---- the job ----------------------------------------------------------------------------------- */

const char *hf_canary_name(const struct hf_canary_place *place, char ret_name[HF_CANARY_NAME_MAX])
{
	HF_AUTO_STRBUF facts = HF_STRBUF_INIT(1024);
	char node[NODE_PART + 1];
	size_t len;

	hf_strbuf_addf(&facts, "%s %s %" PRId64 " %s", hf_str_or(place->rollout_uid, ""),
		       place->node, place->tries, place->before ? "before" : "after");
	snprintf(node, sizeof(node), "%s", place->node);
	/* The name of a job may have no dots: services of its ranks begin with it. */
	for (len = 0; node[len] != '\0'; len++)
		if (node[len] == '.')
			node[len] = '-';
	snprintf(ret_name, HF_CANARY_NAME_MAX, "canary-%s-%08" PRIx32 "-%s", node,
		 (uint32_t)hf_hash_bytes(facts.data, facts.len), place->before ? "b" : "a");
	return ret_name;
}

static void bind_pod(void *arg, struct hf_json *pod)
{
	const char *hostname = arg;
	struct hf_json *toleration = hf_json_object();

	hf_json_set_str(hf_json_ensure_object(pod, "nodeSelector"), "kubernetes.io/hostname",
			hostname);
	hf_json_set_str(toleration, "key", "node.kubernetes.io/unschedulable");
	hf_json_set_str(toleration, "operator", "Exists");
	hf_json_set_str(toleration, "effect", "NoSchedule");
	hf_json_append(hf_json_ensure_array(pod, "tolerations"), toleration);
}

/* Without it the job stays until the rollout has read how it ended. */
static void drop_ttl(struct hf_json *job)
{
	struct hf_json *spec = hf_json_ensure_object(job, "spec");

	if (!is_batch(job))
		spec = hf_json_get(spec, "runPolicy");
	if (hf_json_type(spec) == HF_JSON_OBJECT)
		hf_json_remove(spec, "ttlSecondsAfterFinished");
}

struct hf_doc *hf_canary_job(const struct hf_json *template, const char *name,
			     const struct hf_owner *owner, const char *hostname)
{
	struct hf_json *job = hf_json_copy(template);
	struct hf_json *metadata = hf_json_ensure_object(job, "metadata");
	char text[256];

	snprintf(text, sizeof(text), "%s", hostname);
	hf_json_set_str(metadata, "name", name);
	hf_set_owner(metadata, owner);
	(void)each_pod_spec(job, bind_pod, text);
	drop_ttl(job);
	return hf_doc_from_json(job);
}

/* ---- how the job goes -------------------------------------------------------------------------- */

static hf_time time_of(const struct hf_json *text)
{
	hf_time at = HF_TIME_NONE;

	if (hf_json_str(text, NULL) == NULL ||
	    hf_time_parse(hf_json_str(text, NULL), &at, NULL) != 0)
		return HF_TIME_NONE;
	return at;
}

/* Times of jobs are whole seconds. */
static int64_t find_run_ms(const struct hf_json *job, hf_time ended_at)
{
	HF_AUTO_JSON recovery = hf_job_recovery(job);
	int64_t seconds = hf_json_i64(hf_json_get(recovery, "productiveSeconds"), 0);
	hf_time started_at = time_of(hf_json_path(job, "status", "startTime", NULL));

	if (seconds <= 0 && started_at != HF_TIME_NONE && ended_at > started_at)
		seconds = (ended_at - started_at) / HF_SECOND;
	return seconds > 0 && seconds <= INT32_MAX ? seconds * 1000 : 1;
}

void hf_canary_read(const struct hf_json *job, struct hf_arena *arena,
		    struct hf_canary_state *ret_state)
{
	const struct hf_json *status = hf_json_get(job, "status");
	bool failed = hf_condition_is_true(job, "Failed");
	const char *message =
		failed ? hf_json_path_str(hf_find_condition(job, "Failed"), "message", NULL) : NULL;

	*ret_state = (struct hf_canary_state){
		.succeeded = !failed &&
			     hf_condition_is_true(job, is_batch(job) ? "Complete" : "Succeeded"),
		.failed = failed,
		.leaving = hf_is_leaving(job),
		.message = hf_str_is_empty(message) ? NULL : hf_arena_strdup(arena, message),
		.created_at = time_of(hf_json_path(job, "metadata", "creationTimestamp", NULL)),
		.ended_at = time_of(hf_json_get(status, "completionTime")),
	};
	if (ret_state->succeeded)
		ret_state->run_ms = find_run_ms(job, ret_state->ended_at);
}

/* ---- the record on the Node -------------------------------------------------------------------- */

const char *hf_canary_hash(const struct hf_json *template, char ret_hash[HF_CANARY_HASH_MAX])
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEMPLATE_BYTES_MAX);

	hf_json_write(template, HF_JSON_SORTED, &text);
	snprintf(ret_hash, HF_CANARY_HASH_MAX, "%016" PRIx64,
		 hf_hash_bytes(hf_str_or(text.data, ""), text.len));
	return ret_hash;
}

struct history {
	uint64_t present;
	const char *template;
	int64_t step_us, run_ms;
};
static const struct hf_field history_fields[] = {
	HF_FIELD_STRING("template", struct history, template, 64, NEEDED),
	HF_FIELD_INT64("stepMicros", struct history, step_us, 0, INT64_MAX, 0),
	HF_FIELD_INT64("runMillis", struct history, run_ms, 1, INT64_MAX, HF_FIELD_REQUIRED),
};
static const struct hf_field_table history_table = HF_FIELD_TABLE(history_fields, struct history);

struct hf_json *hf_canary_history_json(const char *template_hash,
				       const struct hf_rollout_times *times)
{
	struct hf_json *json = hf_json_object();

	hf_json_set_str(json, "template", template_hash);
	hf_write_count(json, "stepMicros", times->step_us);
	hf_write_count(json, "runMillis", times->run_ms);
	return json;
}

bool hf_canary_history_read(const char *text, const char *template_hash, struct hf_arena *arena,
			    struct hf_rollout_times *ret_times)
{
	const struct hf_fields_text source = {text, text == NULL ? 0 : strlen(text)};
	struct history read;

	if (text == NULL ||
	    hf_fields_read_text(&history_table, &source, NULL, arena, &read, NULL) < 0 ||
	    !hf_streq(read.template, template_hash))
		return false;
	*ret_times = (struct hf_rollout_times){.step_us = read.step_us, .run_ms = read.run_ms};
	return true;
}
