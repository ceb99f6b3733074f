/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/rival.h"

#include "base/str.h"
#include "core/names.h"
#include "json/fields.h"

#include <stdio.h>

const struct hf_resource hf_rival_deployments = {
	.group = "apps",
	.version = "v1",
	.plural = "deployments",
	.singular = "deployment",
	.kind = "Deployment",
	.namespaced = true,
};

/* The fields of a status that an operator alone sets; others add conditions of their own. */
struct owned_status {
	uint64_t present;
};
struct owned {
	uint64_t present;
	struct owned_status status;
};
struct manager {
	uint64_t present;
	const char *name, *subresource, *time;
	struct owned owned;
};
struct metadata {
	uint64_t present;
	HF_LIST(struct manager) managers;
};
struct run_policy {
	uint64_t present;
	const char *managed_by;
};
struct spec {
	uint64_t present;
	struct run_policy run_policy;
};
struct job {
	uint64_t present;
	struct metadata metadata;
	struct spec spec;
};

static const struct hf_field owned_status_fields[] = {
	HF_FIELD_PRESENCE("f:replicaStatuses", 0),
	HF_FIELD_PRESENCE("f:startTime", 0),
	HF_FIELD_PRESENCE("f:completionTime", 0),
};
static const struct hf_field_table owned_status_table =
	HF_FIELD_TABLE(owned_status_fields, struct owned_status);
static const struct hf_field owned_fields[] = {
	HF_FIELD_OBJECT("f:status", struct owned, status, &owned_status_table, 0),
};
static const struct hf_field_table owned_table = HF_FIELD_TABLE(owned_fields, struct owned);
static const struct hf_field manager_fields[] = {
	HF_FIELD_STRING("manager", struct manager, name, 0, 0),
	HF_FIELD_STRING("subresource", struct manager, subresource, 0, 0),
	HF_FIELD_STRING("time", struct manager, time, 0, 0),
	HF_FIELD_OBJECT("fieldsV1", struct manager, owned, &owned_table, 0),
};
static const struct hf_field_table manager_table = HF_FIELD_TABLE(manager_fields, struct manager);
/* API servers fold managers beyond ten into one. */
#define MANAGERS_MAX 1000
static const struct hf_field metadata_fields[] = {
	HF_FIELD_OBJECTS("managedFields", struct metadata, managers, &manager_table, MANAGERS_MAX,
			 0),
};
static const struct hf_field_table metadata_table =
	HF_FIELD_TABLE(metadata_fields, struct metadata);
static const struct hf_field run_policy_fields[] = {
	HF_FIELD_STRING("managedBy", struct run_policy, managed_by, 0, 0),
};
static const struct hf_field_table run_policy_table =
	HF_FIELD_TABLE(run_policy_fields, struct run_policy);
static const struct hf_field spec_fields[] = {
	HF_FIELD_OBJECT("runPolicy", struct spec, run_policy, &run_policy_table, 0),
};
static const struct hf_field_table spec_table = HF_FIELD_TABLE(spec_fields, struct spec);
static const struct hf_field job_fields[] = {
	HF_FIELD_OBJECT("metadata", struct job, metadata, &metadata_table, 0),
	HF_FIELD_OBJECT("spec", struct job, spec, &spec_table, 0),
};
static const struct hf_field_table job_table = HF_FIELD_TABLE(job_fields, struct job);

/* People mend a status by hand now and then; that is no operator. */
static bool is_operator(const char *manager)
{
	return !hf_streq(manager, "holdfast") && !hf_str_has_prefix(manager, "kubectl");
}

static bool wrote_lately(const struct manager *manager, hf_time since)
{
	hf_time time;

	return manager->name != NULL && hf_streq(manager->subresource, "status") &&
	       manager->owned.status.present != 0 && manager->time != NULL &&
	       hf_time_parse(manager->time, &time, NULL) == 0 && time > since;
}

bool hf_rival_wrote(struct hf_doc *doc, hf_time since, struct hf_arena *scratch,
		    char ret_manager[HF_RIVAL_NAME_MAX])
{
	struct job job;
	bool found = false;

	if (hf_fields_read_doc(&job_table, doc, NULL, scratch, &job, NULL) == 0) {
		const char *by = job.spec.run_policy.managed_by;
		bool elsewhere = by != NULL && !hf_streq(by, HF_MANAGED_BY_US);

		for (size_t i = 0; !elsewhere && !found && i < job.metadata.managers.len; i++) {
			const struct manager *manager = &job.metadata.managers.items[i];

			found = wrote_lately(manager, since) && is_operator(manager->name);
			if (found)
				snprintf(ret_manager, HF_RIVAL_NAME_MAX, "%s", manager->name);
		}
	}
	hf_arena_reset(scratch);
	return found;
}

bool hf_rival_is_ready(struct hf_doc *deployment)
{
	const struct hf_json *root = hf_doc_json(deployment);
	const char *name =
		hf_json_path_str(root, "metadata", "labels", "app.kubernetes.io/name", NULL);

	return !hf_streq(name, "holdfast") &&
	       hf_json_i64(hf_json_path(root, "status", "readyReplicas", NULL), 0) > 0;
}
