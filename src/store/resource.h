/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_STORE_RESOURCE_H
#define HF_STORE_RESOURCE_H

#include "store/store.h"

/*
 * The kinds Holdfast knows: one static, constant table (process lifetime), so a
 * pointer into it may be kept and compared.  Another struct hf_resource with the
 * same group and plural means the same kind (hf_resource_equal).
 */
extern const struct hf_resource hf_pods;
extern const struct hf_resource hf_services;
extern const struct hf_resource hf_events; /* core "v1"; objects expire, see local/README.md */
extern const struct hf_resource hf_configmaps;
extern const struct hf_resource hf_secrets;
extern const struct hf_resource hf_namespaces;
extern const struct hf_resource hf_nodes;
extern const struct hf_resource hf_persistentvolumeclaims;
extern const struct hf_resource hf_serviceaccounts;
extern const struct hf_resource hf_leases;
extern const struct hf_resource hf_devicehealths;  /* api/device_health.h */
extern const struct hf_resource hf_healthpolicies; /* api/health_policy.h */
extern const struct hf_resource hf_roles;
extern const struct hf_resource hf_rolebindings;
extern const struct hf_resource hf_pytorchjobs;
extern const struct hf_resource hf_tfjobs;
extern const struct hf_resource hf_mpijobs;
extern const struct hf_resource hf_xgboostjobs;
extern const struct hf_resource hf_paddlejobs;
extern const struct hf_resource hf_jaxjobs;

/* Those that only an API server has: not in the table. */
extern const struct hf_resource hf_autoscalers;
extern const struct hf_resource hf_podgroups;
extern const struct hf_resource hf_volcano_podgroups;

#define HF_RESOURCES_MAX 32 /* the table is shorter; for arrays indexed by it */

/* What an API server knows about a kind beyond its names. */
struct hf_resource_info {
	const struct hf_resource *resource;
	const char *short_name; /* "po"; NULL: none */
	bool custom;            /* defined by a CRD upstream: no strategic merge, a PUT needs
				   resourceVersion, a status write resets metadata */
	bool status;            /* has the subresource "status" */
	bool generation;        /* metadata.generation counts changes of the spec */
	/* Paths of the subresource "scale", keys joined by dots; all NULL where there is none. */
	const char *scale_spec;     /* "spec.pytorchReplicaSpecs.Worker.replicas" */
	const char *scale_status;   /* "status.replicaStatuses.Worker.active" */
	const char *scale_selector; /* "status.replicaStatuses.Worker.selector" */
	/* Field selectors beyond metadata.name and metadata.namespace; NULL-terminated. */
	const char *const *fields;
};

/* The table, sorted by group, then plural; entries live for ever. */
size_t hf_resource_count(void);
const struct hf_resource_info *hf_resource_at(size_t i); /* i < hf_resource_count() */

/* NULL: not a kind Holdfast knows. */
const struct hf_resource_info *hf_resource_info(const struct hf_resource *resource);
const struct hf_resource *hf_resource_by_plural(const char *group, const char *plural);
/* The one version in which the kinds of a group are known here; NULL: no such group. */
const char *hf_resource_group_version(const char *group);
/* From a document's apiVersion ("v1", "kubeflow.org/v1") and kind. */
const struct hf_resource *hf_resource_by_kind(const char *api_version, const char *kind);
/* By what a person types: plural, singular, short name or kind in any case, each also with
 * ".group" behind it; the core group wins where several fit. */
const struct hf_resource *hf_resource_by_word(const char *word);

bool hf_resource_equal(const struct hf_resource *a, const struct hf_resource *b);
bool hf_resource_is_job(const struct hf_resource *resource); /* one of the kubeflow.org six */

/* "v1", "kubeflow.org/v1".  buf is filled and returned. */
#define HF_API_VERSION_MAX 96
const char *hf_resource_api_version(const struct hf_resource *resource,
				    char buf[HF_API_VERSION_MAX]);
/* "pods", "pytorchjobs.kubeflow.org": the name in error messages of an API server. */
const char *hf_resource_group_plural(const struct hf_resource *resource,
				     char buf[HF_API_VERSION_MAX]);

#endif
