/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema_internal.h"

/* Containers, as asked for and as they are.  Made by tools/schema; not for editing. */

/* A row a field. */
/* clang-format off */
static const struct hf_schema_field container_port_fields[] = {
	ONE(1, "name", STRING),
	ONE(2, "hostPort", INT32),
	REQ(3, "containerPort", INT32),
	ONE(4, "protocol", STRING),
	ONE(5, "hostIP", STRING),
	END,
};
static const struct hf_schema container_port = {"ContainerPort", container_port_fields};

static const struct hf_schema_field config_map_env_source_fields[] = {
	INLINE_OF(1, "localObjectReference", hf_schema_local_object_reference),
	OPT(2, "optional", BOOL),
	END,
};
static const struct hf_schema config_map_env_source = {"ConfigMapEnvSource", config_map_env_source_fields};

static const struct hf_schema_field secret_env_source_fields[] = {
	INLINE_OF(1, "localObjectReference", hf_schema_local_object_reference),
	OPT(2, "optional", BOOL),
	END,
};
static const struct hf_schema secret_env_source = {"SecretEnvSource", secret_env_source_fields};

static const struct hf_schema_field env_from_source_fields[] = {
	ONE(1, "prefix", STRING),
	OPT_OF(2, "configMapRef", config_map_env_source),
	OPT_OF(3, "secretRef", secret_env_source),
	END,
};
static const struct hf_schema env_from_source = {"EnvFromSource", env_from_source_fields};

static const struct hf_schema_field config_map_key_selector_fields[] = {
	INLINE_OF(1, "localObjectReference", hf_schema_local_object_reference),
	REQ(2, "key", STRING),
	OPT(3, "optional", BOOL),
	END,
};
static const struct hf_schema config_map_key_selector = {"ConfigMapKeySelector", config_map_key_selector_fields};

static const struct hf_schema_field secret_key_selector_fields[] = {
	INLINE_OF(1, "localObjectReference", hf_schema_local_object_reference),
	REQ(2, "key", STRING),
	OPT(3, "optional", BOOL),
	END,
};
static const struct hf_schema secret_key_selector = {"SecretKeySelector", secret_key_selector_fields};

static const struct hf_schema_field file_key_selector_fields[] = {
	REQ(1, "volumeName", STRING),
	REQ(2, "path", STRING),
	REQ(3, "key", STRING),
	OPT(4, "optional", BOOL),
	END,
};
static const struct hf_schema file_key_selector = {"FileKeySelector", file_key_selector_fields};

static const struct hf_schema_field env_var_source_fields[] = {
	OPT_OF(1, "fieldRef", hf_schema_object_field_selector),
	OPT_OF(2, "resourceFieldRef", hf_schema_resource_field_selector),
	OPT_OF(3, "configMapKeyRef", config_map_key_selector),
	OPT_OF(4, "secretKeyRef", secret_key_selector),
	OPT_OF(5, "fileKeyRef", file_key_selector),
	END,
};
static const struct hf_schema env_var_source = {"EnvVarSource", env_var_source_fields};

static const struct hf_schema_field env_var_fields[] = {
	REQ(1, "name", STRING),
	ONE(2, "value", STRING),
	OPT_OF(3, "valueFrom", env_var_source),
	END,
};
static const struct hf_schema env_var = {"EnvVar", env_var_fields};

static const struct hf_schema_field resource_claim_fields[] = {
	REQ(1, "name", STRING),
	ONE(2, "request", STRING),
	END,
};
static const struct hf_schema resource_claim = {"ResourceClaim", resource_claim_fields};

static const struct hf_schema_field resource_requirements_fields[] = {
	MAP(1, "limits", QUANTITY),
	MAP(2, "requests", QUANTITY),
	LIST_OF(3, "claims", resource_claim),
	END,
};
const struct hf_schema hf_schema_resource_requirements = {"ResourceRequirements", resource_requirements_fields};

static const struct hf_schema_field container_resize_policy_fields[] = {
	REQ(1, "resourceName", STRING),
	REQ(2, "restartPolicy", STRING),
	END,
};
static const struct hf_schema container_resize_policy = {"ContainerResizePolicy", container_resize_policy_fields};

static const struct hf_schema_field container_restart_rule_on_exit_codes_fields[] = {
	ONE(1, "operator", STRING),
	LIST(2, "values", INT32),
	END,
};
static const struct hf_schema container_restart_rule_on_exit_codes = {"ContainerRestartRuleOnExitCodes", container_restart_rule_on_exit_codes_fields};

static const struct hf_schema_field container_restart_rule_fields[] = {
	ONE(1, "action", STRING),
	OPT_OF(2, "exitCodes", container_restart_rule_on_exit_codes),
	END,
};
static const struct hf_schema container_restart_rule = {"ContainerRestartRule", container_restart_rule_fields};

static const struct hf_schema_field volume_mount_fields[] = {
	REQ(1, "name", STRING),
	ONE(2, "readOnly", BOOL),
	REQ(3, "mountPath", STRING),
	ONE(4, "subPath", STRING),
	OPT(5, "mountPropagation", STRING),
	ONE(6, "subPathExpr", STRING),
	OPT(7, "recursiveReadOnly", STRING),
	END,
};
static const struct hf_schema volume_mount = {"VolumeMount", volume_mount_fields};

static const struct hf_schema_field volume_device_fields[] = {
	REQ(1, "name", STRING),
	REQ(2, "devicePath", STRING),
	END,
};
static const struct hf_schema volume_device = {"VolumeDevice", volume_device_fields};

static const struct hf_schema_field exec_action_fields[] = {
	LIST(1, "command", STRING),
	END,
};
static const struct hf_schema exec_action = {"ExecAction", exec_action_fields};

static const struct hf_schema_field http_header_fields[] = {
	REQ(1, "name", STRING),
	REQ(2, "value", STRING),
	END,
};
static const struct hf_schema http_header = {"HTTPHeader", http_header_fields};

static const struct hf_schema_field http_get_action_fields[] = {
	ONE(1, "path", STRING),
	ONE(2, "port", INT_OR_STRING),
	ONE(3, "host", STRING),
	ONE(4, "scheme", STRING),
	LIST_OF(5, "httpHeaders", http_header),
	END,
};
static const struct hf_schema http_get_action = {"HTTPGetAction", http_get_action_fields};

static const struct hf_schema_field tcp_socket_action_fields[] = {
	ONE(1, "port", INT_OR_STRING),
	ONE(2, "host", STRING),
	END,
};
static const struct hf_schema tcp_socket_action = {"TCPSocketAction", tcp_socket_action_fields};

static const struct hf_schema_field grpc_action_fields[] = {
	REQ(1, "port", INT32),
	OPT(2, "service", STRING),
	END,
};
static const struct hf_schema grpc_action = {"GRPCAction", grpc_action_fields};

static const struct hf_schema_field probe_handler_fields[] = {
	OPT_OF(1, "exec", exec_action),
	OPT_OF(2, "httpGet", http_get_action),
	OPT_OF(3, "tcpSocket", tcp_socket_action),
	OPT_OF(4, "grpc", grpc_action),
	END,
};
static const struct hf_schema probe_handler = {"ProbeHandler", probe_handler_fields};

static const struct hf_schema_field probe_fields[] = {
	INLINE_OF(1, "probeHandler", probe_handler),
	ONE(2, "initialDelaySeconds", INT32),
	ONE(3, "timeoutSeconds", INT32),
	ONE(4, "periodSeconds", INT32),
	ONE(5, "successThreshold", INT32),
	ONE(6, "failureThreshold", INT32),
	OPT(7, "terminationGracePeriodSeconds", INT64),
	END,
};
static const struct hf_schema probe = {"Probe", probe_fields};

static const struct hf_schema_field sleep_action_fields[] = {
	REQ(1, "seconds", INT64),
	END,
};
static const struct hf_schema sleep_action = {"SleepAction", sleep_action_fields};

static const struct hf_schema_field lifecycle_handler_fields[] = {
	OPT_OF(1, "exec", exec_action),
	OPT_OF(2, "httpGet", http_get_action),
	OPT_OF(3, "tcpSocket", tcp_socket_action),
	OPT_OF(4, "sleep", sleep_action),
	END,
};
static const struct hf_schema lifecycle_handler = {"LifecycleHandler", lifecycle_handler_fields};

static const struct hf_schema_field lifecycle_fields[] = {
	OPT_OF(1, "postStart", lifecycle_handler),
	OPT_OF(2, "preStop", lifecycle_handler),
	OPT(3, "stopSignal", STRING),
	END,
};
static const struct hf_schema lifecycle = {"Lifecycle", lifecycle_fields};

static const struct hf_schema_field capabilities_fields[] = {
	LIST(1, "add", STRING),
	LIST(2, "drop", STRING),
	END,
};
static const struct hf_schema capabilities = {"Capabilities", capabilities_fields};

static const struct hf_schema_field se_linux_options_fields[] = {
	ONE(1, "user", STRING),
	ONE(2, "role", STRING),
	ONE(3, "type", STRING),
	ONE(4, "level", STRING),
	END,
};
const struct hf_schema hf_schema_se_linux_options = {"SELinuxOptions", se_linux_options_fields};

static const struct hf_schema_field windows_security_context_options_fields[] = {
	OPT(1, "gmsaCredentialSpecName", STRING),
	OPT(2, "gmsaCredentialSpec", STRING),
	OPT(3, "runAsUserName", STRING),
	OPT(4, "hostProcess", BOOL),
	END,
};
const struct hf_schema hf_schema_windows_security_context_options = {"WindowsSecurityContextOptions", windows_security_context_options_fields};

static const struct hf_schema_field seccomp_profile_fields[] = {
	REQ(1, "type", STRING),
	OPT(2, "localhostProfile", STRING),
	END,
};
const struct hf_schema hf_schema_seccomp_profile = {"SeccompProfile", seccomp_profile_fields};

static const struct hf_schema_field app_armor_profile_fields[] = {
	REQ(1, "type", STRING),
	OPT(2, "localhostProfile", STRING),
	END,
};
const struct hf_schema hf_schema_app_armor_profile = {"AppArmorProfile", app_armor_profile_fields};

static const struct hf_schema_field security_context_fields[] = {
	OPT_OF(1, "capabilities", capabilities),
	OPT(2, "privileged", BOOL),
	OPT_OF(3, "seLinuxOptions", hf_schema_se_linux_options),
	OPT(4, "runAsUser", INT64),
	OPT(5, "runAsNonRoot", BOOL),
	OPT(6, "readOnlyRootFilesystem", BOOL),
	OPT(7, "allowPrivilegeEscalation", BOOL),
	OPT(8, "runAsGroup", INT64),
	OPT(9, "procMount", STRING),
	OPT_OF(10, "windowsOptions", hf_schema_windows_security_context_options),
	OPT_OF(11, "seccompProfile", hf_schema_seccomp_profile),
	OPT_OF(12, "appArmorProfile", hf_schema_app_armor_profile),
	END,
};
static const struct hf_schema security_context = {"SecurityContext", security_context_fields};

static const struct hf_schema_field container_fields[] = {
	REQ(1, "name", STRING),
	ONE(2, "image", STRING),
	LIST(3, "command", STRING),
	LIST(4, "args", STRING),
	ONE(5, "workingDir", STRING),
	LIST_OF(6, "ports", container_port),
	LIST_OF(7, "env", env_var),
	ONE_OF(8, "resources", hf_schema_resource_requirements),
	LIST_OF(9, "volumeMounts", volume_mount),
	OPT_OF(10, "livenessProbe", probe),
	OPT_OF(11, "readinessProbe", probe),
	OPT_OF(12, "lifecycle", lifecycle),
	ONE(13, "terminationMessagePath", STRING),
	ONE(14, "imagePullPolicy", STRING),
	OPT_OF(15, "securityContext", security_context),
	ONE(16, "stdin", BOOL),
	ONE(17, "stdinOnce", BOOL),
	ONE(18, "tty", BOOL),
	LIST_OF(19, "envFrom", env_from_source),
	ONE(20, "terminationMessagePolicy", STRING),
	LIST_OF(21, "volumeDevices", volume_device),
	OPT_OF(22, "startupProbe", probe),
	LIST_OF(23, "resizePolicy", container_resize_policy),
	OPT(24, "restartPolicy", STRING),
	LIST_OF(25, "restartPolicyRules", container_restart_rule),
	END,
};
const struct hf_schema hf_schema_container = {"Container", container_fields};

static const struct hf_schema_field ephemeral_container_common_fields[] = {
	REQ(1, "name", STRING),
	ONE(2, "image", STRING),
	LIST(3, "command", STRING),
	LIST(4, "args", STRING),
	ONE(5, "workingDir", STRING),
	LIST_OF(6, "ports", container_port),
	LIST_OF(7, "env", env_var),
	ONE_OF(8, "resources", hf_schema_resource_requirements),
	LIST_OF(9, "volumeMounts", volume_mount),
	OPT_OF(10, "livenessProbe", probe),
	OPT_OF(11, "readinessProbe", probe),
	OPT_OF(12, "lifecycle", lifecycle),
	ONE(13, "terminationMessagePath", STRING),
	ONE(14, "imagePullPolicy", STRING),
	OPT_OF(15, "securityContext", security_context),
	ONE(16, "stdin", BOOL),
	ONE(17, "stdinOnce", BOOL),
	ONE(18, "tty", BOOL),
	LIST_OF(19, "envFrom", env_from_source),
	ONE(20, "terminationMessagePolicy", STRING),
	LIST_OF(21, "volumeDevices", volume_device),
	OPT_OF(22, "startupProbe", probe),
	LIST_OF(23, "resizePolicy", container_resize_policy),
	OPT(24, "restartPolicy", STRING),
	LIST_OF(25, "restartPolicyRules", container_restart_rule),
	END,
};
static const struct hf_schema ephemeral_container_common = {"EphemeralContainerCommon", ephemeral_container_common_fields};

static const struct hf_schema_field ephemeral_container_fields[] = {
	INLINE_OF(1, "ephemeralContainerCommon", ephemeral_container_common),
	ONE(2, "targetContainerName", STRING),
	END,
};
const struct hf_schema hf_schema_ephemeral_container = {"EphemeralContainer", ephemeral_container_fields};

static const struct hf_schema_field container_state_waiting_fields[] = {
	ONE(1, "reason", STRING),
	ONE(2, "message", STRING),
	END,
};
static const struct hf_schema container_state_waiting = {"ContainerStateWaiting", container_state_waiting_fields};

static const struct hf_schema_field container_state_running_fields[] = {
	ONE(1, "startedAt", TIME),
	END,
};
static const struct hf_schema container_state_running = {"ContainerStateRunning", container_state_running_fields};

static const struct hf_schema_field container_state_terminated_fields[] = {
	REQ(1, "exitCode", INT32),
	ONE(2, "signal", INT32),
	ONE(3, "reason", STRING),
	ONE(4, "message", STRING),
	ONE(5, "startedAt", TIME),
	ONE(6, "finishedAt", TIME),
	ONE(7, "containerID", STRING),
	END,
};
static const struct hf_schema container_state_terminated = {"ContainerStateTerminated", container_state_terminated_fields};

static const struct hf_schema_field container_state_fields[] = {
	OPT_OF(1, "waiting", container_state_waiting),
	OPT_OF(2, "running", container_state_running),
	OPT_OF(3, "terminated", container_state_terminated),
	END,
};
static const struct hf_schema container_state = {"ContainerState", container_state_fields};

static const struct hf_schema_field image_volume_status_fields[] = {
	ONE(1, "imageRef", STRING),
	END,
};
static const struct hf_schema image_volume_status = {"ImageVolumeStatus", image_volume_status_fields};

static const struct hf_schema_field volume_status_fields[] = {
	OPT_OF(1, "image", image_volume_status),
	END,
};
static const struct hf_schema volume_status = {"VolumeStatus", volume_status_fields};

static const struct hf_schema_field volume_mount_status_fields[] = {
	REQ(1, "name", STRING),
	REQ(2, "mountPath", STRING),
	ONE(3, "readOnly", BOOL),
	OPT(4, "recursiveReadOnly", STRING),
	OPT_OF(5, "volumeStatus", volume_status),
	END,
};
static const struct hf_schema volume_mount_status = {"VolumeMountStatus", volume_mount_status_fields};

static const struct hf_schema_field linux_container_user_fields[] = {
	REQ(1, "uid", INT64),
	REQ(2, "gid", INT64),
	LIST(3, "supplementalGroups", INT64),
	END,
};
static const struct hf_schema linux_container_user = {"LinuxContainerUser", linux_container_user_fields};

static const struct hf_schema_field container_user_fields[] = {
	OPT_OF(1, "linux", linux_container_user),
	END,
};
static const struct hf_schema container_user = {"ContainerUser", container_user_fields};

static const struct hf_schema_field resource_health_fields[] = {
	REQ(1, "resourceID", STRING),
	ONE(2, "health", STRING),
	OPT(6, "message", STRING),
	END,
};
static const struct hf_schema resource_health = {"ResourceHealth", resource_health_fields};

static const struct hf_schema_field resource_status_fields[] = {
	REQ(1, "name", STRING),
	LIST_OF(2, "resources", resource_health),
	END,
};
static const struct hf_schema resource_status = {"ResourceStatus", resource_status_fields};

static const struct hf_schema_field container_status_fields[] = {
	REQ(1, "name", STRING),
	ONE_OF(2, "state", container_state),
	ONE_OF(3, "lastState", container_state),
	REQ(4, "ready", BOOL),
	REQ(5, "restartCount", INT32),
	REQ(6, "image", STRING),
	REQ(7, "imageID", STRING),
	ONE(8, "containerID", STRING),
	OPT(9, "started", BOOL),
	MAP(10, "allocatedResources", QUANTITY),
	OPT_OF(11, "resources", hf_schema_resource_requirements),
	LIST_OF(12, "volumeMounts", volume_mount_status),
	OPT_OF(13, "user", container_user),
	LIST_OF(14, "allocatedResourcesStatus", resource_status),
	OPT(15, "stopSignal", STRING),
	END,
};
const struct hf_schema hf_schema_container_status = {"ContainerStatus", container_status_fields};
