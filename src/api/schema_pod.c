/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema_internal.h"

/* Pods.  Made by tools/schema; not for editing. */

/* A row a field. */
/* clang-format off */
static const struct hf_schema_field sysctl_fields[] = {
	REQ(1, "name", STRING),
	REQ(2, "value", STRING),
	END,
};
static const struct hf_schema sysctl = {"Sysctl", sysctl_fields};

static const struct hf_schema_field pod_security_context_fields[] = {
	OPT_OF(1, "seLinuxOptions", hf_schema_se_linux_options),
	OPT(2, "runAsUser", INT64),
	OPT(3, "runAsNonRoot", BOOL),
	LIST(4, "supplementalGroups", INT64),
	OPT(5, "fsGroup", INT64),
	OPT(6, "runAsGroup", INT64),
	LIST_OF(7, "sysctls", sysctl),
	OPT_OF(8, "windowsOptions", hf_schema_windows_security_context_options),
	OPT(9, "fsGroupChangePolicy", STRING),
	OPT_OF(10, "seccompProfile", hf_schema_seccomp_profile),
	OPT_OF(11, "appArmorProfile", hf_schema_app_armor_profile),
	OPT(12, "supplementalGroupsPolicy", STRING),
	OPT(13, "seLinuxChangePolicy", STRING),
	END,
};
static const struct hf_schema pod_security_context = {"PodSecurityContext", pod_security_context_fields};

static const struct hf_schema_field preferred_scheduling_term_fields[] = {
	REQ(1, "weight", INT32),
	ONE_OF(2, "preference", hf_schema_node_selector_term),
	END,
};
static const struct hf_schema preferred_scheduling_term = {"PreferredSchedulingTerm", preferred_scheduling_term_fields};

static const struct hf_schema_field node_affinity_fields[] = {
	OPT_OF(1, "requiredDuringSchedulingIgnoredDuringExecution", hf_schema_node_selector),
	LIST_OF(2, "preferredDuringSchedulingIgnoredDuringExecution", preferred_scheduling_term),
	END,
};
static const struct hf_schema node_affinity = {"NodeAffinity", node_affinity_fields};

static const struct hf_schema_field pod_affinity_term_fields[] = {
	OPT_OF(1, "labelSelector", hf_schema_label_selector),
	LIST(2, "namespaces", STRING),
	REQ(3, "topologyKey", STRING),
	OPT_OF(4, "namespaceSelector", hf_schema_label_selector),
	LIST(5, "matchLabelKeys", STRING),
	LIST(6, "mismatchLabelKeys", STRING),
	END,
};
static const struct hf_schema pod_affinity_term = {"PodAffinityTerm", pod_affinity_term_fields};

static const struct hf_schema_field weighted_pod_affinity_term_fields[] = {
	REQ(1, "weight", INT32),
	ONE_OF(2, "podAffinityTerm", pod_affinity_term),
	END,
};
static const struct hf_schema weighted_pod_affinity_term = {"WeightedPodAffinityTerm", weighted_pod_affinity_term_fields};

static const struct hf_schema_field pod_affinity_fields[] = {
	LIST_OF(1, "requiredDuringSchedulingIgnoredDuringExecution", pod_affinity_term),
	LIST_OF(2, "preferredDuringSchedulingIgnoredDuringExecution", weighted_pod_affinity_term),
	END,
};
static const struct hf_schema pod_affinity = {"PodAffinity", pod_affinity_fields};

static const struct hf_schema_field pod_anti_affinity_fields[] = {
	LIST_OF(1, "requiredDuringSchedulingIgnoredDuringExecution", pod_affinity_term),
	LIST_OF(2, "preferredDuringSchedulingIgnoredDuringExecution", weighted_pod_affinity_term),
	END,
};
static const struct hf_schema pod_anti_affinity = {"PodAntiAffinity", pod_anti_affinity_fields};

static const struct hf_schema_field affinity_fields[] = {
	OPT_OF(1, "nodeAffinity", node_affinity),
	OPT_OF(2, "podAffinity", pod_affinity),
	OPT_OF(3, "podAntiAffinity", pod_anti_affinity),
	END,
};
static const struct hf_schema affinity = {"Affinity", affinity_fields};

static const struct hf_schema_field toleration_fields[] = {
	ONE(1, "key", STRING),
	ONE(2, "operator", STRING),
	ONE(3, "value", STRING),
	ONE(4, "effect", STRING),
	OPT(5, "tolerationSeconds", INT64),
	END,
};
static const struct hf_schema toleration = {"Toleration", toleration_fields};

static const struct hf_schema_field host_alias_fields[] = {
	REQ(1, "ip", STRING),
	LIST(2, "hostnames", STRING),
	END,
};
static const struct hf_schema host_alias = {"HostAlias", host_alias_fields};

static const struct hf_schema_field pod_dns_config_option_fields[] = {
	ONE(1, "name", STRING),
	OPT(2, "value", STRING),
	END,
};
static const struct hf_schema pod_dns_config_option = {"PodDNSConfigOption", pod_dns_config_option_fields};

static const struct hf_schema_field pod_dns_config_fields[] = {
	LIST(1, "nameservers", STRING),
	LIST(2, "searches", STRING),
	LIST_OF(3, "options", pod_dns_config_option),
	END,
};
static const struct hf_schema pod_dns_config = {"PodDNSConfig", pod_dns_config_fields};

static const struct hf_schema_field pod_readiness_gate_fields[] = {
	REQ(1, "conditionType", STRING),
	END,
};
static const struct hf_schema pod_readiness_gate = {"PodReadinessGate", pod_readiness_gate_fields};

static const struct hf_schema_field topology_spread_constraint_fields[] = {
	REQ(1, "maxSkew", INT32),
	REQ(2, "topologyKey", STRING),
	REQ(3, "whenUnsatisfiable", STRING),
	OPT_OF(4, "labelSelector", hf_schema_label_selector),
	OPT(5, "minDomains", INT32),
	OPT(6, "nodeAffinityPolicy", STRING),
	OPT(7, "nodeTaintsPolicy", STRING),
	LIST(8, "matchLabelKeys", STRING),
	END,
};
static const struct hf_schema topology_spread_constraint = {"TopologySpreadConstraint", topology_spread_constraint_fields};

static const struct hf_schema_field pod_os_fields[] = {
	REQ(1, "name", STRING),
	END,
};
static const struct hf_schema pod_os = {"PodOS", pod_os_fields};

static const struct hf_schema_field pod_scheduling_gate_fields[] = {
	REQ(1, "name", STRING),
	END,
};
static const struct hf_schema pod_scheduling_gate = {"PodSchedulingGate", pod_scheduling_gate_fields};

static const struct hf_schema_field pod_resource_claim_fields[] = {
	REQ(1, "name", STRING),
	OPT(3, "resourceClaimName", STRING),
	OPT(4, "resourceClaimTemplateName", STRING),
	END,
};
static const struct hf_schema pod_resource_claim = {"PodResourceClaim", pod_resource_claim_fields};

static const struct hf_schema_field pod_scheduling_group_fields[] = {
	OPT(1, "podGroupName", STRING),
	END,
};
static const struct hf_schema pod_scheduling_group = {"PodSchedulingGroup", pod_scheduling_group_fields};

static const struct hf_schema_field pod_spec_fields[] = {
	LIST_OF(1, "volumes", hf_schema_volume),
	LIST_OF(2, "containers", hf_schema_container),
	ONE(3, "restartPolicy", STRING),
	OPT(4, "terminationGracePeriodSeconds", INT64),
	OPT(5, "activeDeadlineSeconds", INT64),
	ONE(6, "dnsPolicy", STRING),
	MAP(7, "nodeSelector", STRING),
	ONE(8, "serviceAccountName", STRING),
	ONE(9, "serviceAccount", STRING),
	ONE(10, "nodeName", STRING),
	ONE(11, "hostNetwork", BOOL),
	ONE(12, "hostPID", BOOL),
	ONE(13, "hostIPC", BOOL),
	OPT_OF(14, "securityContext", pod_security_context),
	LIST_OF(15, "imagePullSecrets", hf_schema_local_object_reference),
	ONE(16, "hostname", STRING),
	ONE(17, "subdomain", STRING),
	OPT_OF(18, "affinity", affinity),
	ONE(19, "schedulerName", STRING),
	LIST_OF(20, "initContainers", hf_schema_container),
	OPT(21, "automountServiceAccountToken", BOOL),
	LIST_OF(22, "tolerations", toleration),
	LIST_OF(23, "hostAliases", host_alias),
	ONE(24, "priorityClassName", STRING),
	OPT(25, "priority", INT32),
	OPT_OF(26, "dnsConfig", pod_dns_config),
	OPT(27, "shareProcessNamespace", BOOL),
	LIST_OF(28, "readinessGates", pod_readiness_gate),
	OPT(29, "runtimeClassName", STRING),
	OPT(30, "enableServiceLinks", BOOL),
	OPT(31, "preemptionPolicy", STRING),
	MAP(32, "overhead", QUANTITY),
	LIST_OF(33, "topologySpreadConstraints", topology_spread_constraint),
	LIST_OF(34, "ephemeralContainers", hf_schema_ephemeral_container),
	OPT(35, "setHostnameAsFQDN", BOOL),
	OPT_OF(36, "os", pod_os),
	OPT(37, "hostUsers", BOOL),
	LIST_OF(38, "schedulingGates", pod_scheduling_gate),
	LIST_OF(39, "resourceClaims", pod_resource_claim),
	OPT_OF(40, "resources", hf_schema_resource_requirements),
	OPT(41, "hostnameOverride", STRING),
	OPT_OF(43, "schedulingGroup", pod_scheduling_group),
	END,
};
const struct hf_schema hf_schema_pod_spec = {"PodSpec", pod_spec_fields};

static const struct hf_schema_field pod_condition_fields[] = {
	REQ(1, "type", STRING),
	REQ(2, "status", STRING),
	ONE(3, "lastProbeTime", TIME),
	ONE(4, "lastTransitionTime", TIME),
	ONE(5, "reason", STRING),
	ONE(6, "message", STRING),
	ONE(7, "observedGeneration", INT64),
	END,
};
static const struct hf_schema pod_condition = {"PodCondition", pod_condition_fields};

static const struct hf_schema_field host_ip_fields[] = {
	REQ(1, "ip", STRING),
	END,
};
static const struct hf_schema host_ip = {"HostIP", host_ip_fields};

static const struct hf_schema_field pod_ip_fields[] = {
	REQ(1, "ip", STRING),
	END,
};
static const struct hf_schema pod_ip = {"PodIP", pod_ip_fields};

static const struct hf_schema_field pod_resource_claim_status_fields[] = {
	REQ(1, "name", STRING),
	OPT(2, "resourceClaimName", STRING),
	END,
};
static const struct hf_schema pod_resource_claim_status = {"PodResourceClaimStatus", pod_resource_claim_status_fields};

static const struct hf_schema_field container_extended_resource_request_fields[] = {
	REQ(1, "containerName", STRING),
	REQ(2, "resourceName", STRING),
	REQ(3, "requestName", STRING),
	END,
};
static const struct hf_schema container_extended_resource_request = {"ContainerExtendedResourceRequest", container_extended_resource_request_fields};

static const struct hf_schema_field pod_extended_resource_claim_status_fields[] = {
	LIST_OF(1, "requestMappings", container_extended_resource_request),
	REQ(2, "resourceClaimName", STRING),
	END,
};
static const struct hf_schema pod_extended_resource_claim_status = {"PodExtendedResourceClaimStatus", pod_extended_resource_claim_status_fields};

static const struct hf_schema_field node_allocatable_resource_claim_status_fields[] = {
	REQ(1, "resourceClaimName", STRING),
	LIST(2, "containers", STRING),
	MAP(3, "resources", QUANTITY),
	END,
};
static const struct hf_schema node_allocatable_resource_claim_status = {"NodeAllocatableResourceClaimStatus", node_allocatable_resource_claim_status_fields};

static const struct hf_schema_field pod_status_fields[] = {
	ONE(1, "phase", STRING),
	LIST_OF(2, "conditions", pod_condition),
	ONE(3, "message", STRING),
	ONE(4, "reason", STRING),
	ONE(5, "hostIP", STRING),
	ONE(6, "podIP", STRING),
	OPT(7, "startTime", TIME),
	LIST_OF(8, "containerStatuses", hf_schema_container_status),
	ONE(9, "qosClass", STRING),
	LIST_OF(10, "initContainerStatuses", hf_schema_container_status),
	ONE(11, "nominatedNodeName", STRING),
	LIST_OF(12, "podIPs", pod_ip),
	LIST_OF(13, "ephemeralContainerStatuses", hf_schema_container_status),
	ONE(14, "resize", STRING),
	LIST_OF(15, "resourceClaimStatuses", pod_resource_claim_status),
	LIST_OF(16, "hostIPs", host_ip),
	ONE(17, "observedGeneration", INT64),
	OPT_OF(18, "extendedResourceClaimStatus", pod_extended_resource_claim_status),
	MAP(19, "allocatedResources", QUANTITY),
	OPT_OF(20, "resources", hf_schema_resource_requirements),
	LIST_OF(21, "nodeAllocatableResourceClaimStatuses", node_allocatable_resource_claim_status),
	END,
};
const struct hf_schema hf_schema_pod_status = {"PodStatus", pod_status_fields};

static const struct hf_schema_field pod_template_spec_fields[] = {
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "spec", hf_schema_pod_spec),
	END,
};
const struct hf_schema hf_schema_pod_template_spec = {"PodTemplateSpec", pod_template_spec_fields};
