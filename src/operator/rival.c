/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/rival.h"

#include "base/str.h"
#include "core/model/names.h"
#include "json/fields.h"

#include <stdio.h>
#include <string.h>

/*
 * Detects another operator for the same jobs (rival.h), from documents alone: a job's
 * managedFields, and the Deployment training-operator with its flags.  This file sends no request;
 * manager.c does.
 */

const struct hf_resource hf_rival_deployments = {
	.group = "apps",
	.version = "v1",
	.plural = "deployments",
	.singular = "deployment",
	.kind = "Deployment",
	.namespaced = true,
};

/* The fields of a status that only an operator sets.  Other clients add only conditions. */
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
/* The most managers that are read.  API servers fold managers beyond ten into one. */
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

/* The manager's name is that of an operator.  People sometimes repair a status by hand, with
 * kubectl. */
static bool is_operator(const char *manager)
{
	return !hf_streq(manager, "holdfast") && !hf_str_has_prefix(manager, "kubectl");
}

static bool wrote_lately(const struct manager *manager, hf_time since, hf_time until)
{
	hf_time time;

	return manager->name != NULL && hf_streq(manager->subresource, "status") &&
	       manager->owned.status.present != 0 && manager->time != NULL &&
	       hf_time_parse(manager->time, &time, NULL) == 0 && time > since && time <= until;
}

bool hf_rival_wrote(struct hf_doc *doc, hf_time since, hf_time until, struct hf_arena *scratch,
		    char ret_manager[HF_RIVAL_NAME_MAX])
{
	struct job job;
	bool found = false;

	if (hf_fields_read_doc(&job_table, doc, NULL, scratch, &job, NULL) == 0) {
		const char *by = job.spec.run_policy.managed_by;
		bool elsewhere = by != NULL && !hf_streq(by, HF_MANAGED_BY_US);

		for (size_t i = 0; !elsewhere && !found && i < job.metadata.managers.len; i++) {
			const struct manager *manager = &job.metadata.managers.items[i];

			found = wrote_lately(manager, since, until) && is_operator(manager->name);
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

/* --- which jobs the Go operator handles, by its command line ---------------------------------- */

#define NAMESPACE_VARIABLE "KUBEFLOW_NAMESPACE"
#define FLAG_BYTES_MAX 64

/* Which jobs (kinds, namespace) the Go operator handles, as far as its command line tells.
 * hf_rival_shares compares them with the jobs of this operator. */
struct share {
	/* the job kinds of this operator */
	const struct hf_framework *const *frameworks;
	/* namespace in the Go operator's flag --namespace; NULL: the flag is not given */
	const char *ns;
	/* kinds_given: flag --enable-scheme is given; kinds_met: it names a kind that this operator
	 * handles */
	bool kinds_given, kinds_met;
	/* the command line has a word that is no flag, so the Go operator may handle any job */
	bool unclear;
	/* name of the flag that takes the next word as its value; NULL: the next word is a flag */
	const char *awaits;
};

/* True for the flags of the Go operator that take no value. All other flags take one. */
static bool is_switch(const char *name)
{
	return hf_streq(name, "leader-elect") || hf_streq(name, "zap-devel");
}

static void take_value(struct share *share, const char *name, const char *value)
{
	/* The kubelet replaces $(NAME) by a variable, so the value is unknown here. */
	bool unknown = strstr(value, "$(") != NULL;

	if (hf_streq(name, "namespace")) {
		share->ns = unknown ? "" : value;
	} else if (hf_streq(name, "enable-scheme")) {
		share->kinds_given = true;
		share->kinds_met |= unknown;
		for (size_t i = 0; share->frameworks[i] != NULL; i++)
			share->kinds_met |= hf_str_case_eq(share->frameworks[i]->kind, value);
	}
}

/* Read one word of the command line like Go's flag package: -name=value or --name value. */
static void take_word(struct share *share, const char *word)
{
	const char *name = word + strspn(word, "-");
	size_t len = strcspn(name, "=");
	char copy[FLAG_BYTES_MAX];

	if (share->awaits != NULL) {
		take_value(share, share->awaits, word);
		share->awaits = NULL;
		return;
	}
	/* The word is no flag: a shell or another program starts the operator, and its flags are
	 * unknown. */
	if (name == word || name > word + 2 || len == 0 || len >= sizeof(copy)) {
		share->unclear = true;
		return;
	}
	memcpy(copy, name, len);
	copy[len] = '\0';
	if (name[len] == '=')
		take_value(share, copy, name + len + 1);
	else if (!is_switch(copy))
		share->awaits = name;
}

static void take_words(struct share *share, const struct hf_json *words, size_t from)
{
	for (size_t i = from; i < hf_json_len(words); i++)
		take_word(share, hf_str_or(hf_json_str(hf_json_item(words, i), NULL), ""));
}

/* Returns the default of the flag --namespace: the value of environment variable
 * KUBEFLOW_NAMESPACE. NULL: the variable is not set, or its value is not known. */
static const char *ns_of_env(const struct hf_json *env, const char *own_ns)
{
	const char *ns = NULL;

	for (size_t i = 0; i < hf_json_len(env); i++) {
		const struct hf_json *item = hf_json_item(env, i);
		const char *field =
			hf_json_path_str(item, "valueFrom", "fieldRef", "fieldPath", NULL);

		if (!hf_streq(hf_json_path_str(item, "name", NULL), NAMESPACE_VARIABLE))
			continue;
		ns = hf_json_path_str(item, "value", NULL);
		if (hf_streq(field, "metadata.namespace"))
			ns = own_ns;
		else if (ns != NULL && strstr(ns, "$(") != NULL)
			ns = NULL;
	}
	return ns;
}

/* The operator's container: the container with the name from upstream's manifests, else the only
 * one. */
static const struct hf_json *find_container(const struct hf_json *root)
{
	const struct hf_json *list =
		hf_json_path(root, "spec", "template", "spec", "containers", NULL);

	for (size_t i = 0; i < hf_json_len(list); i++)
		if (hf_streq(hf_json_path_str(hf_json_item(list, i), "name", NULL),
			     HF_RIVAL_DEPLOYMENT))
			return hf_json_item(list, i);
	return hf_json_len(list) == 1 ? hf_json_item(list, 0) : NULL;
}

bool hf_rival_shares(struct hf_doc *deployment, const struct hf_framework *const *frameworks,
		     const char *ns)
{
	const struct hf_json *container = find_container(hf_doc_json(deployment));
	struct share share = {.frameworks = frameworks};

	if (container == NULL)
		return true;
	/* The first word of a command is the program, so flags begin with the second. */
	take_words(&share, hf_json_get(container, "command"), 1);
	take_words(&share, hf_json_get(container, "args"), 0);
	if (share.unclear || share.awaits != NULL)
		return true;
	if (share.ns == NULL)
		share.ns = ns_of_env(hf_json_get(container, "env"), hf_doc_namespace(deployment));
	if (!hf_str_is_empty(share.ns) && ns != NULL && !hf_streq(share.ns, ns))
		return false;
	return !share.kinds_given || share.kinds_met;
}
