/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The table of kinds, and functions that find a kind by its names. The table is constant; so the
 * functions have no state.
 */
#include "store/resource.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define CORE(var, plural_, singular_, kind_, namespaced_)                                          \
	const struct hf_resource var = {.group = "",                                               \
					.version = "v1",                                           \
					.plural = (plural_),                                       \
					.singular = (singular_),                                   \
					.kind = (kind_),                                           \
					.namespaced = (namespaced_)}
#define JOB(var, singular_, kind_)                                                                 \
	const struct hf_resource var = {.group = "kubeflow.org",                                   \
					.version = "v1",                                           \
					.plural = singular_ "s",                                   \
					.singular = (singular_),                                   \
					.kind = (kind_),                                           \
					.namespaced = true}

CORE(hf_pods, "pods", "pod", "Pod", true);
CORE(hf_services, "services", "service", "Service", true);
CORE(hf_events, "events", "event", "Event", true);
CORE(hf_configmaps, "configmaps", "configmap", "ConfigMap", true);
CORE(hf_secrets, "secrets", "secret", "Secret", true);
CORE(hf_namespaces, "namespaces", "namespace", "Namespace", false);
CORE(hf_nodes, "nodes", "node", "Node", false);
CORE(hf_persistentvolumeclaims, "persistentvolumeclaims", "persistentvolumeclaim",
     "PersistentVolumeClaim", true);
CORE(hf_serviceaccounts, "serviceaccounts", "serviceaccount", "ServiceAccount", true);

const struct hf_resource hf_leases = {
	.group = "coordination.k8s.io",
	.version = "v1",
	.plural = "leases",
	.singular = "lease",
	.kind = "Lease",
	.namespaced = true,
};

const struct hf_resource hf_devicehealths = {
	.group = "holdfast.dev",
	.version = "v1alpha1",
	.plural = "devicehealths",
	.singular = "devicehealth",
	.kind = "DeviceHealth",
	.namespaced = false,
};

const struct hf_resource hf_healthpolicies = {
	.group = "holdfast.dev",
	.version = "v1alpha1",
	.plural = "healthpolicies",
	.singular = "healthpolicy",
	.kind = "HealthPolicy",
	.namespaced = false,
};

const struct hf_resource hf_devicerollouts = {
	.group = "holdfast.dev",
	.version = "v1alpha1",
	.plural = "devicerollouts",
	.singular = "devicerollout",
	.kind = "DeviceRollout",
	.namespaced = false,
};

const struct hf_resource hf_remediations = {
	.group = "holdfast.dev",
	.version = "v1alpha1",
	.plural = "remediations",
	.singular = "remediation",
	.kind = "Remediation",
	.namespaced = false,
};

#define RBAC(var, singular_, kind_)                                                                \
	const struct hf_resource var = {.group = "rbac.authorization.k8s.io",                      \
					.version = "v1",                                           \
					.plural = singular_ "s",                                   \
					.singular = (singular_),                                   \
					.kind = (kind_),                                           \
					.namespaced = true}
RBAC(hf_roles, "role", "Role");
RBAC(hf_rolebindings, "rolebinding", "RoleBinding");

const struct hf_resource hf_autoscalers = {
	.group = "autoscaling",
	.version = "v2",
	.plural = "horizontalpodautoscalers",
	.singular = "horizontalpodautoscaler",
	.kind = "HorizontalPodAutoscaler",
	.namespaced = true,
};

const struct hf_resource hf_batch_jobs = {
	.group = "batch",
	.version = "v1",
	.plural = "jobs",
	.singular = "job",
	.kind = "Job",
	.namespaced = true,
};

#define POD_GROUPS(var, group_, version_)                                                          \
	const struct hf_resource var = {.group = (group_),                                         \
					.version = (version_),                                     \
					.plural = "podgroups",                                     \
					.singular = "podgroup",                                    \
					.kind = "PodGroup",                                        \
					.namespaced = true}
POD_GROUPS(hf_podgroups, "scheduling.x-k8s.io", "v1alpha1");
POD_GROUPS(hf_volcano_podgroups, "scheduling.volcano.sh", "v1beta1");
#define APPS(var, singular_, kind_)                                                                \
	const struct hf_resource var = {.group = "apps",                                           \
					.version = "v1",                                           \
					.plural = singular_ "s",                                   \
					.singular = (singular_),                                   \
					.kind = (kind_),                                           \
					.namespaced = true}
APPS(hf_daemonsets, "daemonset", "DaemonSet");
APPS(hf_controllerrevisions, "controllerrevision", "ControllerRevision");
const struct hf_resource hf_nodemaintenances = {
	.group = "nodemaintenance.medik8s.io",
	.version = "v1beta1",
	.plural = "nodemaintenances",
	.singular = "nodemaintenance",
	.kind = "NodeMaintenance",
	.namespaced = false,
};
const struct hf_resource hf_resourceslices = {
	.group = "resource.k8s.io",
	.version = "v1",
	.plural = "resourceslices",
	.singular = "resourceslice",
	.kind = "ResourceSlice",
	.namespaced = false,
};
const struct hf_resource hf_server_version = {
	.group = "", .version = "", .plural = "version", .singular = "version", .kind = "Info"};

JOB(hf_pytorchjobs, "pytorchjob", "PyTorchJob");
JOB(hf_tfjobs, "tfjob", "TFJob");
JOB(hf_mpijobs, "mpijob", "MPIJob");
JOB(hf_xgboostjobs, "xgboostjob", "XGBoostJob");
JOB(hf_paddlejobs, "paddlejob", "PaddleJob");
JOB(hf_jaxjobs, "jaxjob", "JAXJob");

/* The field selectors that kube-apiserver supports for each kind
 * (pkg/apis/core/v1/conversion.go). For custom resources it supports metadata.name and
 * metadata.namespace only. */
static const char *const pod_fields[] = {
	"spec.nodeName",
	"spec.restartPolicy",
	"spec.schedulerName",
	"spec.serviceAccountName",
	"spec.hostNetwork",
	"status.phase",
	"status.podIP",
	"status.nominatedNodeName",
	NULL,
};
static const char *const event_fields[] = {
	"involvedObject.kind",
	"involvedObject.namespace",
	"involvedObject.name",
	"involvedObject.uid",
	"involvedObject.apiVersion",
	"involvedObject.resourceVersion",
	"involvedObject.fieldPath",
	"reason",
	"reportingComponent",
	"source",
	"type",
	NULL,
};
static const char *const node_fields[] = {"spec.unschedulable", NULL};
static const char *const namespace_fields[] = {"status.phase", NULL};
static const char *const secret_fields[] = {"type", NULL};
static const char *const service_fields[] = {"spec.clusterIP", "spec.type", NULL};
static const char *const no_fields[] = {NULL};

#define JOB_INFO(var)                                                                              \
	.resource = &(var), .custom = true, .status = true, .generation = true, .fields = no_fields
#define JOB_SCALE(specs)                                                                           \
	.scale_spec = "spec." specs ".Worker.replicas",                                            \
	.scale_status = "status.replicaStatuses.Worker.active",                                    \
	.scale_selector = "status.replicaStatuses.Worker.selector"

static const struct hf_resource_info table[] = {
	{.resource = &hf_configmaps, .short_name = "cm", .fields = no_fields},
	{.resource = &hf_events, .short_name = "ev", .fields = event_fields},
	{.resource = &hf_namespaces,
	 .short_name = "ns",
	 .status = true,
	 .fields = namespace_fields},
	{.resource = &hf_nodes, .short_name = "no", .status = true, .fields = node_fields},
	{.resource = &hf_persistentvolumeclaims,
	 .short_name = "pvc",
	 .status = true,
	 .fields = no_fields},
	{.resource = &hf_pods,
	 .short_name = "po",
	 .status = true,
	 .generation = true,
	 .fields = pod_fields},
	{.resource = &hf_secrets, .fields = secret_fields},
	{.resource = &hf_serviceaccounts, .short_name = "sa", .fields = no_fields},
	{.resource = &hf_services, .short_name = "svc", .status = true, .fields = service_fields},
	{.resource = &hf_leases, .fields = no_fields},
	{.resource = &hf_devicehealths,
	 .short_name = "dh",
	 .custom = true,
	 .status = true,
	 .generation = true,
	 .fields = no_fields},
	{.resource = &hf_devicerollouts,
	 .short_name = "dro",
	 .custom = true,
	 .status = true,
	 .generation = true,
	 .fields = no_fields},
	{.resource = &hf_healthpolicies,
	 .short_name = "hp",
	 .custom = true,
	 .status = true,
	 .generation = true,
	 .fields = no_fields},
	{.resource = &hf_remediations,
	 .short_name = "rem",
	 .custom = true,
	 .status = true,
	 .generation = true,
	 .fields = no_fields},
	{JOB_INFO(hf_jaxjobs), JOB_SCALE("jaxReplicaSpecs")},
	{JOB_INFO(hf_mpijobs)},
	{JOB_INFO(hf_paddlejobs), JOB_SCALE("paddleReplicaSpecs")},
	{JOB_INFO(hf_pytorchjobs), JOB_SCALE("pytorchReplicaSpecs")},
	{JOB_INFO(hf_tfjobs)},
	{JOB_INFO(hf_xgboostjobs)},
	{.resource = &hf_rolebindings, .fields = no_fields},
	{.resource = &hf_roles, .fields = no_fields},
};
_Static_assert(HF_ARRAY_LEN(table) <= HF_RESOURCES_MAX, "raise HF_RESOURCES_MAX");

size_t hf_resource_count(void)
{
	return HF_ARRAY_LEN(table);
}

const struct hf_resource_info *hf_resource_at(size_t i)
{
	hf_assert(i < HF_ARRAY_LEN(table));
	return &table[i];
}

bool hf_resource_equal(const struct hf_resource *a, const struct hf_resource *b)
{
	return a == b || (hf_streq(a->plural, b->plural) && hf_streq(a->group, b->group));
}

const struct hf_resource_info *hf_resource_info(const struct hf_resource *resource)
{
	/* Nearly every caller passes a pointer from the table, so compare pointers before texts. */
	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++)
		if (table[i].resource == resource)
			return &table[i];
	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++)
		if (hf_resource_equal(table[i].resource, resource))
			return &table[i];
	return NULL;
}

const struct hf_resource *hf_resource_by_plural(const char *group, const char *plural)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++)
		if (hf_streq(table[i].resource->plural, plural) &&
		    hf_streq(table[i].resource->group, group))
			return table[i].resource;
	return NULL;
}

const char *hf_resource_group_version(const char *group)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++)
		if (hf_streq(table[i].resource->group, group))
			return table[i].resource->version;
	return NULL;
}

const struct hf_resource *hf_resource_by_kind(const char *api_version, const char *kind)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++) {
		char buf[HF_API_VERSION_MAX];
		if (hf_streq(table[i].resource->kind, kind) &&
		    hf_streq(hf_resource_api_version(table[i].resource, buf), api_version))
			return table[i].resource;
	}
	return NULL;
}

static bool is_name_of(const struct hf_resource_info *info, const char *word)
{
	const struct hf_resource *r = info->resource;

	return hf_str_case_eq(word, r->plural) || hf_str_case_eq(word, r->singular) ||
	       hf_str_case_eq(word, r->kind) ||
	       (info->short_name && hf_str_case_eq(word, info->short_name));
}

const struct hf_resource *hf_resource_by_word(const char *word)
{
	const char *dot = strchr(word, '.');
	char head[64];

	if (dot) {
		size_t len = (size_t)(dot - word);
		if (len >= sizeof(head))
			return NULL;
		memcpy(head, word, len);
		head[len] = '\0';
	}
	for (size_t i = 0; i < HF_ARRAY_LEN(table); i++) {
		if (!dot && is_name_of(&table[i], word))
			return table[i].resource;
		if (dot && hf_str_case_eq(table[i].resource->group, dot + 1) &&
		    is_name_of(&table[i], head))
			return table[i].resource;
	}
	return NULL;
}

bool hf_resource_is_job(const struct hf_resource *resource)
{
	return hf_streq(resource->group, hf_pytorchjobs.group);
}

const char *hf_resource_api_version(const struct hf_resource *resource,
				    char buf[HF_API_VERSION_MAX])
{
	snprintf(buf, HF_API_VERSION_MAX, "%s%s%s", resource->group, *resource->group ? "/" : "",
		 resource->version);
	return buf;
}

const char *hf_resource_group_plural(const struct hf_resource *resource,
				     char buf[HF_API_VERSION_MAX])
{
	snprintf(buf, HF_API_VERSION_MAX, "%s%s%s", resource->plural, *resource->group ? "." : "",
		 resource->group);
	return buf;
}
