/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_STORE_RESOURCE_H
#define HF_STORE_RESOURCE_H

#include "store/store.h"

/* The kinds that Holdfast knows: one constant table. Pointers into it are valid until the
 * process ends, and may be kept and compared. Another struct hf_resource with the same group and
 * plural means the same kind (hf_resource_equal). */
extern const struct hf_resource hf_pods;
extern const struct hf_resource hf_services;
extern const struct hf_resource
	hf_events; /* core "v1"; the objects expire, see memstore/README.md */
extern const struct hf_resource hf_configmaps;
extern const struct hf_resource hf_secrets;
extern const struct hf_resource hf_namespaces;
extern const struct hf_resource hf_nodes;
extern const struct hf_resource hf_persistentvolumeclaims;
extern const struct hf_resource hf_serviceaccounts;
extern const struct hf_resource hf_leases;
extern const struct hf_resource hf_devicehealths;  /* api/device_health.h */
extern const struct hf_resource hf_devicerollouts; /* api/device_rollout.h */
extern const struct hf_resource hf_healthpolicies; /* api/health_policy.h */
extern const struct hf_resource hf_remediations;   /* api/remediation.h */
extern const struct hf_resource hf_roles;
extern const struct hf_resource hf_rolebindings;
extern const struct hf_resource hf_pytorchjobs;
extern const struct hf_resource hf_tfjobs;
extern const struct hf_resource hf_mpijobs;
extern const struct hf_resource hf_xgboostjobs;
extern const struct hf_resource hf_paddlejobs;
extern const struct hf_resource hf_jaxjobs;

/* Kinds that exist on an API server only. The table does not contain them. */
extern const struct hf_resource hf_autoscalers;
extern const struct hf_resource hf_batch_jobs;
extern const struct hf_resource hf_daemonsets;
extern const struct hf_resource hf_controllerrevisions;
extern const struct hf_resource hf_nodemaintenances;
extern const struct hf_resource hf_resourceslices;
extern const struct hf_resource hf_podgroups;
extern const struct hf_resource hf_volcano_podgroups;
/* The version of the API server: GET of the name "version" answers with "gitVersion": "v1.36.3". */
extern const struct hf_resource hf_server_version;

/* Size of arrays with one item for each kind. The table has fewer kinds. */
#define HF_RESOURCES_MAX 32

/* The properties of a kind that are not in its names. */
struct hf_resource_info {
	const struct hf_resource *resource;
	const char *short_name; /* "po"; NULL: none */
	/* Defined by a CRD: no strategic merge patch, an UPDATE needs resourceVersion, and a
	 * write of the status ignores metadata */
	bool custom;
	bool status;     /* has the subresource "status" */
	bool generation; /* has metadata.generation, which counts changes of the spec */
	/* Paths of the subresource "scale", as keys joined by dots. All three are NULL if the
	 * kind has no such subresource. */
	const char *scale_spec;     /* "spec.pytorchReplicaSpecs.Worker.replicas" */
	const char *scale_status;   /* "status.replicaStatuses.Worker.active" */
	const char *scale_selector; /* "status.replicaStatuses.Worker.selector" */
	/* The field selectors besides metadata.name and metadata.namespace; ends with NULL. */
	const char *const *fields;
};

/* The number of kinds in the table, and the kind at index i. The table is sorted by group, then by
 * plural. */
size_t hf_resource_count(void);
const struct hf_resource_info *hf_resource_at(size_t i); /* i < hf_resource_count() */

/* Returns what Holdfast knows about a kind: names, scope, subresources. NULL: Holdfast does not
 * know the kind. */
const struct hf_resource_info *hf_resource_info(const struct hf_resource *resource);
const struct hf_resource *hf_resource_by_plural(const char *group, const char *plural);
/* The version of a group's kinds in the table; NULL: the table has no such group. */
const char *hf_resource_group_version(const char *group);
/* Finds a kind by a document's apiVersion ("v1", "kubeflow.org/v1") and kind. */
const struct hf_resource *hf_resource_by_kind(const char *api_version, const char *kind);
/* Finds a kind by the word that a user types: plural, singular, short name or kind, in upper or
 * lower case, with or without ".group" appended. If several kinds match, the core group wins. */
const struct hf_resource *hf_resource_by_word(const char *word);

bool hf_resource_equal(const struct hf_resource *a, const struct hf_resource *b);
/* Returns true for the six kinds of job in group kubeflow.org. */
bool hf_resource_is_job(const struct hf_resource *resource);

/* Prints "v1" or "kubeflow.org/v1" into buf, and returns buf. */
#define HF_API_VERSION_MAX 96
const char *hf_resource_api_version(const struct hf_resource *resource,
				    char buf[HF_API_VERSION_MAX]);
/* Prints "pods" or "pytorchjobs.kubeflow.org" into buf, and returns buf. An API server's error
 * messages name resources in this form. */
const char *hf_resource_group_plural(const struct hf_resource *resource,
				     char buf[HF_API_VERSION_MAX]);

#endif
