/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema_internal.h"

/* The kinds, and what only they have.  Made by tools/schema; not for editing. */

/* A row a field. */
/* clang-format off */
static const struct hf_schema_field binding_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "target", hf_schema_object_reference),
	END,
};
const struct hf_schema hf_schema_binding = {"Binding", binding_fields};

static const struct hf_schema_field config_map_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	MAP(2, "data", STRING),
	MAP(3, "binaryData", BYTES),
	OPT(4, "immutable", BOOL),
	END,
};
const struct hf_schema hf_schema_config_map = {"ConfigMap", config_map_fields};

static const struct hf_schema_field preconditions_fields[] = {
	OPT(1, "uid", STRING),
	OPT(2, "resourceVersion", STRING),
	END,
};
static const struct hf_schema preconditions = {"Preconditions", preconditions_fields};

static const struct hf_schema_field delete_options_fields[] = {
	TYPE_META,
	OPT(1, "gracePeriodSeconds", INT64),
	OPT_OF(2, "preconditions", preconditions),
	OPT(3, "orphanDependents", BOOL),
	OPT(4, "propagationPolicy", STRING),
	LIST(5, "dryRun", STRING),
	OPT(6, "ignoreStoreReadErrorWithClusterBreakingPotential", BOOL),
	END,
};
const struct hf_schema hf_schema_delete_options = {"DeleteOptions", delete_options_fields};

static const struct hf_schema_field event_source_fields[] = {
	ONE(1, "component", STRING),
	ONE(2, "host", STRING),
	END,
};
static const struct hf_schema event_source = {"EventSource", event_source_fields};

static const struct hf_schema_field event_series_fields[] = {
	ONE(1, "count", INT32),
	ONE(2, "lastObservedTime", MICRO_TIME),
	END,
};
static const struct hf_schema event_series = {"EventSeries", event_series_fields};

static const struct hf_schema_field event_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "involvedObject", hf_schema_object_reference),
	ONE(3, "reason", STRING),
	ONE(4, "message", STRING),
	ONE_OF(5, "source", event_source),
	ONE(6, "firstTimestamp", TIME),
	ONE(7, "lastTimestamp", TIME),
	ONE(8, "count", INT32),
	ONE(9, "type", STRING),
	ONE(10, "eventTime", MICRO_TIME),
	OPT_OF(11, "series", event_series),
	ONE(12, "action", STRING),
	OPT_OF(13, "related", hf_schema_object_reference),
	REQ(14, "reportingComponent", STRING),
	REQ(15, "reportingInstance", STRING),
	END,
};
const struct hf_schema hf_schema_event = {"Event", event_fields};

static const struct hf_schema_field lease_spec_fields[] = {
	OPT(1, "holderIdentity", STRING),
	OPT(2, "leaseDurationSeconds", INT32),
	OPT(3, "acquireTime", MICRO_TIME),
	OPT(4, "renewTime", MICRO_TIME),
	OPT(5, "leaseTransitions", INT32),
	OPT(6, "strategy", STRING),
	OPT(7, "preferredHolder", STRING),
	END,
};
static const struct hf_schema lease_spec = {"LeaseSpec", lease_spec_fields};

static const struct hf_schema_field lease_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "spec", lease_spec),
	END,
};
const struct hf_schema hf_schema_lease = {"Lease", lease_fields};

static const struct hf_schema_field namespace_spec_fields[] = {
	LIST(1, "finalizers", STRING),
	END,
};
static const struct hf_schema namespace_spec = {"NamespaceSpec", namespace_spec_fields};

static const struct hf_schema_field namespace_condition_fields[] = {
	REQ(1, "type", STRING),
	REQ(2, "status", STRING),
	ONE(4, "lastTransitionTime", TIME),
	ONE(5, "reason", STRING),
	ONE(6, "message", STRING),
	END,
};
static const struct hf_schema namespace_condition = {"NamespaceCondition", namespace_condition_fields};

static const struct hf_schema_field namespace_status_fields[] = {
	ONE(1, "phase", STRING),
	LIST_OF(2, "conditions", namespace_condition),
	END,
};
static const struct hf_schema namespace_status = {"NamespaceStatus", namespace_status_fields};

static const struct hf_schema_field namespace_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "spec", namespace_spec),
	ONE_OF(3, "status", namespace_status),
	END,
};
const struct hf_schema hf_schema_namespace = {"Namespace", namespace_fields};

static const struct hf_schema_field taint_fields[] = {
	REQ(1, "key", STRING),
	ONE(2, "value", STRING),
	REQ(3, "effect", STRING),
	OPT(4, "timeAdded", TIME),
	END,
};
static const struct hf_schema taint = {"Taint", taint_fields};

static const struct hf_schema_field config_map_node_config_source_fields[] = {
	REQ(1, "namespace", STRING),
	REQ(2, "name", STRING),
	ONE(3, "uid", STRING),
	ONE(4, "resourceVersion", STRING),
	REQ(5, "kubeletConfigKey", STRING),
	END,
};
static const struct hf_schema config_map_node_config_source = {"ConfigMapNodeConfigSource", config_map_node_config_source_fields};

static const struct hf_schema_field node_config_source_fields[] = {
	OPT_OF(2, "configMap", config_map_node_config_source),
	END,
};
static const struct hf_schema node_config_source = {"NodeConfigSource", node_config_source_fields};

static const struct hf_schema_field node_spec_fields[] = {
	ONE(1, "podCIDR", STRING),
	ONE(2, "externalID", STRING),
	ONE(3, "providerID", STRING),
	ONE(4, "unschedulable", BOOL),
	LIST_OF(5, "taints", taint),
	OPT_OF(6, "configSource", node_config_source),
	LIST(7, "podCIDRs", STRING),
	END,
};
static const struct hf_schema node_spec = {"NodeSpec", node_spec_fields};

static const struct hf_schema_field node_condition_fields[] = {
	REQ(1, "type", STRING),
	REQ(2, "status", STRING),
	ONE(3, "lastHeartbeatTime", TIME),
	ONE(4, "lastTransitionTime", TIME),
	ONE(5, "reason", STRING),
	ONE(6, "message", STRING),
	END,
};
static const struct hf_schema node_condition = {"NodeCondition", node_condition_fields};

static const struct hf_schema_field node_address_fields[] = {
	REQ(1, "type", STRING),
	REQ(2, "address", STRING),
	END,
};
static const struct hf_schema node_address = {"NodeAddress", node_address_fields};

static const struct hf_schema_field daemon_endpoint_fields[] = {
	REQ(1, "Port", INT32),
	END,
};
static const struct hf_schema daemon_endpoint = {"DaemonEndpoint", daemon_endpoint_fields};

static const struct hf_schema_field node_daemon_endpoints_fields[] = {
	ONE_OF(1, "kubeletEndpoint", daemon_endpoint),
	END,
};
static const struct hf_schema node_daemon_endpoints = {"NodeDaemonEndpoints", node_daemon_endpoints_fields};

static const struct hf_schema_field node_swap_status_fields[] = {
	OPT(1, "capacity", INT64),
	END,
};
static const struct hf_schema node_swap_status = {"NodeSwapStatus", node_swap_status_fields};

static const struct hf_schema_field node_system_info_fields[] = {
	REQ(1, "machineID", STRING),
	REQ(2, "systemUUID", STRING),
	REQ(3, "bootID", STRING),
	REQ(4, "kernelVersion", STRING),
	REQ(5, "osImage", STRING),
	REQ(6, "containerRuntimeVersion", STRING),
	REQ(7, "kubeletVersion", STRING),
	REQ(8, "kubeProxyVersion", STRING),
	REQ(9, "operatingSystem", STRING),
	REQ(10, "architecture", STRING),
	OPT_OF(11, "swap", node_swap_status),
	END,
};
static const struct hf_schema node_system_info = {"NodeSystemInfo", node_system_info_fields};

static const struct hf_schema_field container_image_fields[] = {
	LIST(1, "names", STRING),
	ONE(2, "sizeBytes", INT64),
	END,
};
static const struct hf_schema container_image = {"ContainerImage", container_image_fields};

static const struct hf_schema_field attached_volume_fields[] = {
	REQ(1, "name", STRING),
	REQ(2, "devicePath", STRING),
	END,
};
static const struct hf_schema attached_volume = {"AttachedVolume", attached_volume_fields};

static const struct hf_schema_field node_config_status_fields[] = {
	OPT_OF(1, "assigned", node_config_source),
	OPT_OF(2, "active", node_config_source),
	OPT_OF(3, "lastKnownGood", node_config_source),
	ONE(4, "error", STRING),
	END,
};
static const struct hf_schema node_config_status = {"NodeConfigStatus", node_config_status_fields};

static const struct hf_schema_field node_runtime_handler_features_fields[] = {
	OPT(1, "recursiveReadOnlyMounts", BOOL),
	OPT(2, "userNamespaces", BOOL),
	END,
};
static const struct hf_schema node_runtime_handler_features = {"NodeRuntimeHandlerFeatures", node_runtime_handler_features_fields};

static const struct hf_schema_field node_runtime_handler_fields[] = {
	REQ(1, "name", STRING),
	OPT_OF(2, "features", node_runtime_handler_features),
	END,
};
static const struct hf_schema node_runtime_handler = {"NodeRuntimeHandler", node_runtime_handler_fields};

static const struct hf_schema_field node_features_fields[] = {
	OPT(1, "supplementalGroupsPolicy", BOOL),
	END,
};
static const struct hf_schema node_features = {"NodeFeatures", node_features_fields};

static const struct hf_schema_field node_status_fields[] = {
	MAP(1, "capacity", QUANTITY),
	MAP(2, "allocatable", QUANTITY),
	ONE(3, "phase", STRING),
	LIST_OF(4, "conditions", node_condition),
	LIST_OF(5, "addresses", node_address),
	ONE_OF(6, "daemonEndpoints", node_daemon_endpoints),
	ONE_OF(7, "nodeInfo", node_system_info),
	LIST_OF(8, "images", container_image),
	LIST(9, "volumesInUse", STRING),
	LIST_OF(10, "volumesAttached", attached_volume),
	OPT_OF(11, "config", node_config_status),
	LIST_OF(12, "runtimeHandlers", node_runtime_handler),
	OPT_OF(13, "features", node_features),
	LIST(14, "declaredFeatures", STRING),
	END,
};
static const struct hf_schema node_status = {"NodeStatus", node_status_fields};

static const struct hf_schema_field node_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "spec", node_spec),
	ONE_OF(3, "status", node_status),
	END,
};
const struct hf_schema hf_schema_node = {"Node", node_fields};

static const struct hf_schema_field persistent_volume_claim_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "spec", hf_schema_persistent_volume_claim_spec),
	ONE_OF(3, "status", hf_schema_persistent_volume_claim_status),
	END,
};
const struct hf_schema hf_schema_persistent_volume_claim = {"PersistentVolumeClaim", persistent_volume_claim_fields};

static const struct hf_schema_field pod_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "spec", hf_schema_pod_spec),
	ONE_OF(3, "status", hf_schema_pod_status),
	END,
};
const struct hf_schema hf_schema_pod = {"Pod", pod_fields};

static const struct hf_schema_field policy_rule_fields[] = {
	LIST(1, "verbs", STRING),
	LIST(2, "apiGroups", STRING),
	LIST(3, "resources", STRING),
	LIST(4, "resourceNames", STRING),
	LIST(5, "nonResourceURLs", STRING),
	END,
};
static const struct hf_schema policy_rule = {"PolicyRule", policy_rule_fields};

static const struct hf_schema_field role_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	LIST_OF(2, "rules", policy_rule),
	END,
};
const struct hf_schema hf_schema_role = {"Role", role_fields};

static const struct hf_schema_field subject_fields[] = {
	REQ(1, "kind", STRING),
	ONE(2, "apiGroup", STRING),
	REQ(3, "name", STRING),
	ONE(4, "namespace", STRING),
	END,
};
static const struct hf_schema subject = {"Subject", subject_fields};

static const struct hf_schema_field role_ref_fields[] = {
	REQ(1, "apiGroup", STRING),
	REQ(2, "kind", STRING),
	REQ(3, "name", STRING),
	END,
};
static const struct hf_schema role_ref = {"RoleRef", role_ref_fields};

static const struct hf_schema_field role_binding_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	LIST_OF(2, "subjects", subject),
	ONE_OF(3, "roleRef", role_ref),
	END,
};
const struct hf_schema hf_schema_role_binding = {"RoleBinding", role_binding_fields};

static const struct hf_schema_field scale_spec_fields[] = {
	ONE(1, "replicas", INT32),
	END,
};
static const struct hf_schema scale_spec = {"ScaleSpec", scale_spec_fields};

static const struct hf_schema_field scale_status_fields[] = {
	REQ(1, "replicas", INT32),
	ONE(2, "selector", STRING),
	END,
};
static const struct hf_schema scale_status = {"ScaleStatus", scale_status_fields};

static const struct hf_schema_field scale_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "spec", scale_spec),
	ONE_OF(3, "status", scale_status),
	END,
};
const struct hf_schema hf_schema_scale = {"Scale", scale_fields};

static const struct hf_schema_field secret_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	MAP(2, "data", BYTES),
	ONE(3, "type", STRING),
	MAP(4, "stringData", STRING),
	OPT(5, "immutable", BOOL),
	END,
};
const struct hf_schema hf_schema_secret = {"Secret", secret_fields};

static const struct hf_schema_field service_account_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	LIST_OF(2, "secrets", hf_schema_object_reference),
	LIST_OF(3, "imagePullSecrets", hf_schema_local_object_reference),
	OPT(4, "automountServiceAccountToken", BOOL),
	END,
};
const struct hf_schema hf_schema_service_account = {"ServiceAccount", service_account_fields};

static const struct hf_schema_field service_port_fields[] = {
	ONE(1, "name", STRING),
	ONE(2, "protocol", STRING),
	REQ(3, "port", INT32),
	ONE(4, "targetPort", INT_OR_STRING),
	ONE(5, "nodePort", INT32),
	OPT(6, "appProtocol", STRING),
	END,
};
static const struct hf_schema service_port = {"ServicePort", service_port_fields};

static const struct hf_schema_field client_ip_config_fields[] = {
	OPT(1, "timeoutSeconds", INT32),
	END,
};
static const struct hf_schema client_ip_config = {"ClientIPConfig", client_ip_config_fields};

static const struct hf_schema_field session_affinity_config_fields[] = {
	OPT_OF(1, "clientIP", client_ip_config),
	END,
};
static const struct hf_schema session_affinity_config = {"SessionAffinityConfig", session_affinity_config_fields};

static const struct hf_schema_field service_spec_fields[] = {
	LIST_OF(1, "ports", service_port),
	MAP(2, "selector", STRING),
	ONE(3, "clusterIP", STRING),
	ONE(4, "type", STRING),
	LIST(5, "externalIPs", STRING),
	ONE(7, "sessionAffinity", STRING),
	ONE(8, "loadBalancerIP", STRING),
	LIST(9, "loadBalancerSourceRanges", STRING),
	ONE(10, "externalName", STRING),
	ONE(11, "externalTrafficPolicy", STRING),
	ONE(12, "healthCheckNodePort", INT32),
	ONE(13, "publishNotReadyAddresses", BOOL),
	OPT_OF(14, "sessionAffinityConfig", session_affinity_config),
	OPT(17, "ipFamilyPolicy", STRING),
	LIST(18, "clusterIPs", STRING),
	LIST(19, "ipFamilies", STRING),
	OPT(20, "allocateLoadBalancerNodePorts", BOOL),
	OPT(21, "loadBalancerClass", STRING),
	OPT(22, "internalTrafficPolicy", STRING),
	OPT(23, "trafficDistribution", STRING),
	END,
};
static const struct hf_schema service_spec = {"ServiceSpec", service_spec_fields};

static const struct hf_schema_field port_status_fields[] = {
	REQ(1, "port", INT32),
	REQ(2, "protocol", STRING),
	OPT(3, "error", STRING),
	END,
};
static const struct hf_schema port_status = {"PortStatus", port_status_fields};

static const struct hf_schema_field load_balancer_ingress_fields[] = {
	ONE(1, "ip", STRING),
	ONE(2, "hostname", STRING),
	OPT(3, "ipMode", STRING),
	LIST_OF(4, "ports", port_status),
	END,
};
static const struct hf_schema load_balancer_ingress = {"LoadBalancerIngress", load_balancer_ingress_fields};

static const struct hf_schema_field load_balancer_status_fields[] = {
	LIST_OF(1, "ingress", load_balancer_ingress),
	END,
};
static const struct hf_schema load_balancer_status = {"LoadBalancerStatus", load_balancer_status_fields};

static const struct hf_schema_field condition_fields[] = {
	REQ(1, "type", STRING),
	REQ(2, "status", STRING),
	ONE(3, "observedGeneration", INT64),
	ONE(4, "lastTransitionTime", TIME),
	REQ(5, "reason", STRING),
	REQ(6, "message", STRING),
	END,
};
static const struct hf_schema condition = {"Condition", condition_fields};

static const struct hf_schema_field service_status_fields[] = {
	ONE_OF(1, "loadBalancer", load_balancer_status),
	LIST_OF(2, "conditions", condition),
	END,
};
static const struct hf_schema service_status = {"ServiceStatus", service_status_fields};

static const struct hf_schema_field service_fields[] = {
	TYPE_META,
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "spec", service_spec),
	ONE_OF(3, "status", service_status),
	END,
};
const struct hf_schema hf_schema_service = {"Service", service_fields};
