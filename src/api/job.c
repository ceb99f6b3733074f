/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"

#include "api/extra_object.h"
#include "api/reader_internal.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "core/model/names.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * Reads a job's document into struct hf_job_view: metadata, replicas, elastic policy and the fields
 * of a single kind. policy.c, template.c, status_read.c and annotation.c read the other parts.
 */

/* Replica types that are read. No kind has as many; validation reports the unknown ones. */
#define REPLICA_ENTRIES_MAX 64
#define RDZV_CONF_MAX 256

static void read_metadata(struct hf_reader *r, const struct hf_json *root,
			  struct hf_job_view *ret_view)
{
	const struct hf_json *metadata = hf_reader_get(r, root, "metadata", HF_JSON_OBJECT);
	size_t mark = hf_reader_enter(r, "metadata");
	struct hf_opt_int generation = hf_reader_int(r, metadata, "generation", 0, INT64_MAX);

	ret_view->ns = hf_reader_str(r, metadata, "namespace");
	ret_view->name = hf_str_or(hf_reader_str(r, metadata, "name"), "");
	ret_view->uid = hf_str_or(hf_reader_str(r, metadata, "uid"), "");
	ret_view->resource_version = hf_str_or(hf_reader_str(r, metadata, "resourceVersion"), "");
	ret_view->object_generation = generation.value;
	ret_view->creation_time = hf_reader_time(r, metadata, "creationTimestamp");
	ret_view->deletion_time = hf_reader_time(r, metadata, "deletionTimestamp");
	ret_view->restart = hf_json_path_str(metadata, "annotations", HF_ANNOTATION_RESTART, NULL);
	ret_view->kueue_queue = hf_json_path_str(metadata, "labels", HF_LABEL_KUEUE_QUEUE, NULL);
	hf_reader_leave(r, mark);
}

static void read_replica(struct hf_reader *r, const struct hf_json *map, const char *key,
			 unsigned details, struct hf_replica_spec *ret_spec)
{
	enum hf_json_type type = hf_json_type(hf_json_get(map, key));
	const struct hf_json *replica = hf_reader_get(r, map, key, HF_JSON_OBJECT);
	size_t mark = hf_reader_enter(r, ".%s", key);

	ret_spec->type = key;
	ret_spec->null = type == HF_JSON_NULL;
	ret_spec->replicas = hf_reader_i32(r, replica, "replicas");
	ret_spec->restart_policy = hf_reader_str(r, replica, "restartPolicy");
	hf_read_template(r, replica, details, &ret_spec->pod);
	hf_reader_leave(r, mark);
}

static void read_replicas(struct hf_reader *r, const struct hf_json *spec,
			  struct hf_job_view *ret_view)
{
	const char *map_key = ret_view->framework->replicas_key;
	const struct hf_json *map = hf_reader_get(r, spec, map_key, HF_JSON_OBJECT);
	size_t n = hf_json_len(map), len = 0;
	size_t mark = hf_reader_enter(r, ".%s", map_key);
	const struct hf_settings *settings = ret_view->settings;
	unsigned details =
		(ret_view->framework->reads_containers ? HF_READ_DETAILS : 0) |
		(settings != NULL && settings->gang_scheduler != NULL ? HF_READ_REQUESTS : 0);
	struct hf_replica_spec *replicas;
	struct hf_json *value;
	const char *key;

	if (n > REPLICA_ENTRIES_MAX)
		n = REPLICA_ENTRIES_MAX;
	replicas = HF_ARENA_ARRAY(r->arena, struct hf_replica_spec, n + 1);
	for (void *it = NULL; len < n && (it = hf_json_next(map, it, &key, &value)) != NULL;)
		read_replica(r, map, key, details, &replicas[len++]);
	ret_view->has_replicas = map != NULL;
	ret_view->replicas = replicas;
	ret_view->replicas_len = len;
	hf_reader_leave(r, mark);
}

static void read_rdzv_conf(struct hf_reader *r, const struct hf_json *policy,
			   struct hf_elastic_policy *ret_elastic)
{
	const struct hf_json *array = hf_reader_get(r, policy, "rdzvConf", HF_JSON_ARRAY);
	size_t n = hf_json_len(array) < RDZV_CONF_MAX ? hf_json_len(array) : RDZV_CONF_MAX;
	struct hf_key_value *conf = HF_ARENA_ARRAY(r->arena, struct hf_key_value, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct hf_json *item =
			hf_reader_item(r, array, "rdzvConf", i, HF_JSON_OBJECT);
		size_t mark = hf_reader_enter(r, ".rdzvConf[%zu]", i);
		conf[i].key = hf_str_or(hf_reader_str(r, item, "key"), "");
		conf[i].value = hf_str_or(hf_reader_str(r, item, "value"), "");
		hf_reader_leave(r, mark);
	}
	ret_elastic->has_rdzv_conf = array != NULL;
	ret_elastic->rdzv_conf = conf;
	ret_elastic->rdzv_conf_len = n;
}

/* The metrics are an opaque text here, which the autoscaler object gets unchanged. */
static void read_metrics(struct hf_reader *r, const struct hf_json *policy,
			 struct hf_elastic_policy *ret_elastic)
{
	const struct hf_json *metrics = hf_reader_get(r, policy, "metrics", HF_JSON_ARRAY);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_JSON_BYTES_MAX);

	ret_elastic->has_metrics = metrics != NULL;
	if (hf_json_len(metrics) == 0)
		return;
	hf_json_write(metrics, HF_JSON_COMPACT, &text);
	ret_elastic->metrics = hf_arena_strdup(r->arena, text.data);
	ret_elastic->metrics_digest = hf_extra_value_digest(HF_AUTOSCALER_METRICS, metrics);
}

static void read_elastic(struct hf_reader *r, const struct hf_json *spec,
			 struct hf_elastic_policy *ret_elastic)
{
	const struct hf_json *policy = hf_reader_get(r, spec, "elasticPolicy", HF_JSON_OBJECT);
	size_t mark = hf_reader_enter(r, ".elasticPolicy");

	ret_elastic->present = policy != NULL;
	ret_elastic->min_replicas = hf_reader_i32(r, policy, "minReplicas");
	ret_elastic->max_replicas = hf_reader_i32(r, policy, "maxReplicas");
	ret_elastic->rdzv_backend = hf_reader_str(r, policy, "rdzvBackend");
	ret_elastic->rdzv_port = hf_reader_i32(r, policy, "rdzvPort");
	ret_elastic->rdzv_host = hf_reader_str(r, policy, "rdzvHost");
	ret_elastic->rdzv_id = hf_reader_str(r, policy, "rdzvId");
	read_rdzv_conf(r, policy, ret_elastic);
	ret_elastic->standalone = hf_reader_bool(r, policy, "standalone");
	ret_elastic->nproc_per_node = hf_reader_i32(r, policy, "nProcPerNode");
	ret_elastic->max_restarts = hf_reader_i32(r, policy, "maxRestarts");
	read_metrics(r, policy, ret_elastic);
	hf_reader_leave(r, mark);
}

/* Fields that only MPIJob has. */
static void read_mpi(struct hf_reader *r, const struct hf_json *spec, struct hf_job_view *ret_view)
{
	ret_view->slots = hf_reader_i32(r, spec, "slotsPerWorker");
	ret_view->main_container = hf_reader_str(r, spec, "mainContainer");
	ret_view->spec_clean = hf_reader_str(r, spec, "cleanPodPolicy");
}

/* The order of the members does not matter at the top, because each member has a hash of its own. */
void hf_job_spec_digest(const struct hf_json *job, char ret_text[HF_SPEC_DIGEST_SIZE])
{
	const struct hf_json *spec = hf_json_get(job, "spec");
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_JSON_BYTES_MAX);
	struct hf_json *value;
	const char *key;
	uint64_t sum = 0;

	for (void *it = NULL; (it = hf_json_next(spec, it, &key, &value)) != NULL;) {
		if (hf_streq(key, "runPolicy"))
			continue;
		hf_strbuf_truncate(&text, 0);
		hf_strbuf_addf(&text, "%s=", key);
		hf_json_write(value, HF_JSON_COMPACT, &text);
		sum += hf_hash_bytes(text.data, text.len);
	}
	snprintf(ret_text, HF_SPEC_DIGEST_SIZE, "%016" PRIx64, sum);
}

void hf_job_read(struct hf_doc *doc, const struct hf_framework *framework,
		 const struct hf_settings *settings, struct hf_arena *arena,
		 struct hf_field_errors *errors, struct hf_job_view *ret_view)
{
	const struct hf_json *root = hf_doc_json(doc);
	struct hf_reader r = {.arena = arena, .errors = errors};
	struct hf_job_view view = {.framework = framework, .settings = settings};
	const struct hf_json *spec;
	char digest[HF_SPEC_DIGEST_SIZE];
	size_t mark;

	hf_assert(framework != NULL);
	read_metadata(&r, root, &view);
	hf_job_spec_digest(root, digest);
	view.spec = hf_arena_strdup(arena, digest);
	spec = hf_reader_get(&r, root, "spec", HF_JSON_OBJECT);
	mark = hf_reader_enter(&r, "spec");
	hf_read_run_policy(&r, spec, &view.run_policy);
	read_replicas(&r, spec, &view);
	read_elastic(&r, spec, &view.elastic);
	/* The CRD's schema says string, so no API server accepts a number here. */
	view.nproc_per_node = hf_reader_str(&r, spec, "nprocPerNode");
	view.success_policy = hf_reader_str(&r, spec, "successPolicy");
	view.dynamic_workers = hf_reader_bool(&r, spec, "enableDynamicWorker").value;
	if (framework->reads_containers)
		read_mpi(&r, spec, &view);
	hf_reader_leave(&r, mark);
	hf_status_read(hf_json_get(root, "status"), framework, arena, &view.status);
	hf_read_policy_annotation(&r, root, &view);
	/* With a CRD that has status.recovery, the next write moves the ledger there from the
	 * annotation. */
	if (!view.status.ledger.present)
		hf_read_ledger_annotation(root, arena, &view);
	*ret_view = view;
}

void hf_job_check(struct hf_doc *doc, struct hf_doc *old, const struct hf_framework *framework,
		  struct hf_field_errors *errors)
{
	struct hf_job_view view, old_view;

	hf_job_read(doc, framework, NULL, errors->arena, errors, &view);
	if (old != NULL)
		hf_job_read(old, framework, NULL, errors->arena, NULL, &old_view);
	/* If a value could not be read, a rule about it would only repeat the type error. */
	if (errors->len == 0)
		hf_job_validate(&view, old != NULL ? &old_view : NULL, errors);
}
