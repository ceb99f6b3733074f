/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "local/admission_internal.h"

/*
 * The fields of core/v1 kinds (Kubernetes 1.36): as deep as mistakes are likely and as the
 * kubelet reads; below that HF_FIELD_ANY.
 */

#define STR(name)                                                                                  \
	{                                                                                          \
		name, HF_FIELD_STRING, NULL                                                        \
	}
#define INT(name)                                                                                  \
	{                                                                                          \
		name, HF_FIELD_INT, NULL                                                           \
	}
#define BOOL(name)                                                                                 \
	{                                                                                          \
		name, HF_FIELD_BOOL, NULL                                                          \
	}
#define ANY(name)                                                                                  \
	{                                                                                          \
		name, HF_FIELD_ANY, NULL                                                           \
	}
#define STRS(name)                                                                                 \
	{                                                                                          \
		name, HF_FIELD_STRINGS, NULL                                                       \
	}
#define TEXTS(name)                                                                                \
	{                                                                                          \
		name, HF_FIELD_TEXTS, NULL                                                         \
	}
#define AMOUNTS(name)                                                                              \
	{                                                                                          \
		name, HF_FIELD_AMOUNTS, NULL                                                       \
	}
#define PORT(name)                                                                                 \
	{                                                                                          \
		name, HF_FIELD_PORT, NULL                                                          \
	}
#define OBJ(name, fields)                                                                          \
	{                                                                                          \
		name, HF_FIELD_OBJECT, fields                                                      \
	}
#define LIST(name, fields)                                                                         \
	{                                                                                          \
		name, HF_FIELD_LIST, fields                                                        \
	}
#define END                                                                                        \
	{                                                                                          \
		NULL, HF_FIELD_ANY, NULL                                                           \
	}

/* Types inside metadata are the engine's to check. */
static const struct hf_field_spec metadata[] = {
	ANY("annotations"),
	ANY("creationTimestamp"),
	ANY("deletionGracePeriodSeconds"),
	ANY("deletionTimestamp"),
	ANY("finalizers"),
	STR("generateName"),
	ANY("generation"),
	ANY("labels"),
	ANY("managedFields"),
	STR("name"),
	STR("namespace"),
	ANY("ownerReferences"),
	STR("resourceVersion"),
	STR("selfLink"),
	STR("uid"),
	END,
};

static const struct hf_field_spec selected_key[] = {STR("key"), STR("name"), BOOL("optional"), END};
static const struct hf_field_spec field_ref[] = {STR("apiVersion"), STR("fieldPath"), END};
static const struct hf_field_spec resource_field_ref[] = {STR("containerName"), ANY("divisor"),
							  STR("resource"), END};
static const struct hf_field_spec value_from[] = {
	OBJ("configMapKeyRef", selected_key),
	OBJ("secretKeyRef", selected_key),
	OBJ("fieldRef", field_ref),
	OBJ("resourceFieldRef", resource_field_ref),
	ANY("fileKeyRef"),
	END,
};
static const struct hf_field_spec env[] = {STR("name"), STR("value"), OBJ("valueFrom", value_from),
					   END};
static const struct hf_field_spec named[] = {STR("name"), BOOL("optional"), END};
static const struct hf_field_spec env_from[] = {
	STR("prefix"),
	OBJ("configMapRef", named),
	OBJ("secretRef", named),
	END,
};
static const struct hf_field_spec container_port[] = {
	STR("name"), INT("containerPort"), INT("hostPort"), STR("hostIP"), STR("protocol"), END,
};
static const struct hf_field_spec resources[] = {AMOUNTS("limits"), AMOUNTS("requests"),
						 ANY("claims"), END};
static const struct hf_field_spec mount[] = {
	STR("name"),      STR("mountPath"),        STR("subPath"),           STR("subPathExpr"),
	BOOL("readOnly"), STR("mountPropagation"), STR("recursiveReadOnly"), END,
};
static const struct hf_field_spec exec_action[] = {STRS("command"), END};
static const struct hf_field_spec http_get[] = {
	STR("path"), PORT("port"), STR("host"), STR("scheme"), ANY("httpHeaders"), END,
};
static const struct hf_field_spec tcp_socket[] = {PORT("port"), STR("host"), END};
static const struct hf_field_spec probe[] = {
	OBJ("exec", exec_action),
	OBJ("httpGet", http_get),
	OBJ("tcpSocket", tcp_socket),
	ANY("grpc"),
	INT("initialDelaySeconds"),
	INT("timeoutSeconds"),
	INT("periodSeconds"),
	INT("successThreshold"),
	INT("failureThreshold"),
	INT("terminationGracePeriodSeconds"),
	END,
};
static const struct hf_field_spec container[] = {
	STRS("args"),
	STRS("command"),
	LIST("env", env),
	LIST("envFrom", env_from),
	STR("image"),
	STR("imagePullPolicy"),
	ANY("lifecycle"),
	OBJ("livenessProbe", probe),
	STR("name"),
	LIST("ports", container_port),
	OBJ("readinessProbe", probe),
	ANY("resizePolicy"),
	OBJ("resources", resources),
	STR("restartPolicy"),
	ANY("restartPolicyRules"),
	ANY("securityContext"),
	OBJ("startupProbe", probe),
	BOOL("stdin"),
	BOOL("stdinOnce"),
	STR("terminationMessagePath"),
	STR("terminationMessagePolicy"),
	BOOL("tty"),
	ANY("volumeDevices"),
	LIST("volumeMounts", mount),
	STR("workingDir"),
	END,
};

static const struct hf_field_spec key_to_path[] = {STR("key"), STR("path"), INT("mode"), END};
static const struct hf_field_spec configmap_volume[] = {
	STR("name"), LIST("items", key_to_path), INT("defaultMode"), BOOL("optional"), END,
};
static const struct hf_field_spec secret_volume[] = {
	STR("secretName"), LIST("items", key_to_path), INT("defaultMode"), BOOL("optional"), END,
};
static const struct hf_field_spec downward_item[] = {
	STR("path"),
	INT("mode"),
	OBJ("fieldRef", field_ref),
	OBJ("resourceFieldRef", resource_field_ref),
	END,
};
static const struct hf_field_spec downward_volume[] = {LIST("items", downward_item),
						       INT("defaultMode"), END};
static const struct hf_field_spec empty_dir[] = {STR("medium"), ANY("sizeLimit"), END};
static const struct hf_field_spec host_path[] = {STR("path"), STR("type"), END};
static const struct hf_field_spec volume[] = {
	STR("name"),
	OBJ("emptyDir", empty_dir),
	OBJ("hostPath", host_path),
	OBJ("configMap", configmap_volume),
	OBJ("secret", secret_volume),
	OBJ("downwardAPI", downward_volume),
	ANY("projected"),
	ANY("persistentVolumeClaim"),
	ANY("nfs"),
	ANY("csi"),
	ANY("ephemeral"),
	ANY("image"),
	ANY("iscsi"),
	ANY("fc"),
	ANY("glusterfs"),
	ANY("rbd"),
	ANY("cephfs"),
	ANY("cinder"),
	ANY("gitRepo"),
	ANY("azureDisk"),
	ANY("azureFile"),
	ANY("awsElasticBlockStore"),
	ANY("gcePersistentDisk"),
	ANY("vsphereVolume"),
	ANY("portworxVolume"),
	ANY("scaleIO"),
	ANY("storageos"),
	ANY("flocker"),
	ANY("flexVolume"),
	ANY("quobyte"),
	ANY("photonPersistentDisk"),
	END,
};

static const struct hf_field_spec toleration[] = {
	STR("key"), STR("operator"), STR("value"), STR("effect"), INT("tolerationSeconds"), END,
};
static const struct hf_field_spec gate[] = {STR("name"), END};
static const struct hf_field_spec pod_spec[] = {
	INT("activeDeadlineSeconds"),
	ANY("affinity"),
	BOOL("automountServiceAccountToken"),
	LIST("containers", container),
	ANY("dnsConfig"),
	STR("dnsPolicy"),
	BOOL("enableServiceLinks"),
	ANY("ephemeralContainers"),
	ANY("hostAliases"),
	BOOL("hostIPC"),
	BOOL("hostNetwork"),
	BOOL("hostPID"),
	BOOL("hostUsers"),
	STR("hostname"),
	STR("hostnameOverride"),
	LIST("imagePullSecrets", gate),
	LIST("initContainers", container),
	STR("nodeName"),
	TEXTS("nodeSelector"),
	ANY("os"),
	AMOUNTS("overhead"),
	STR("preemptionPolicy"),
	INT("priority"),
	STR("priorityClassName"),
	ANY("readinessGates"),
	ANY("resourceClaims"),
	OBJ("resources", resources),
	STR("restartPolicy"),
	STR("runtimeClassName"),
	STR("schedulerName"),
	LIST("schedulingGates", gate),
	ANY("schedulingGroup"),
	ANY("securityContext"),
	STR("serviceAccount"),
	STR("serviceAccountName"),
	BOOL("setHostnameAsFQDN"),
	BOOL("shareProcessNamespace"),
	STR("subdomain"),
	INT("terminationGracePeriodSeconds"),
	LIST("tolerations", toleration),
	ANY("topologySpreadConstraints"),
	LIST("volumes", volume),
	ANY("workloadRef"),
	END,
};
const struct hf_field_spec hf_fields_pod[] = {
	STR("apiVersion"),     STR("kind"),   OBJ("metadata", metadata),
	OBJ("spec", pod_spec), ANY("status"), END,
};

static const struct hf_field_spec service_port[] = {
	STR("name"), STR("protocol"),    STR("appProtocol"),
	INT("port"), PORT("targetPort"), INT("nodePort"),
	END,
};
static const struct hf_field_spec service_spec[] = {
	LIST("ports", service_port),
	TEXTS("selector"),
	STR("clusterIP"),
	STRS("clusterIPs"),
	STR("type"),
	STRS("externalIPs"),
	STR("sessionAffinity"),
	ANY("sessionAffinityConfig"),
	STR("externalName"),
	STR("externalTrafficPolicy"),
	STR("internalTrafficPolicy"),
	BOOL("publishNotReadyAddresses"),
	STRS("ipFamilies"),
	STR("ipFamilyPolicy"),
	STR("loadBalancerIP"),
	STR("loadBalancerClass"),
	STRS("loadBalancerSourceRanges"),
	INT("healthCheckNodePort"),
	BOOL("allocateLoadBalancerNodePorts"),
	STR("trafficDistribution"),
	END,
};
const struct hf_field_spec hf_fields_service[] = {
	STR("apiVersion"),         STR("kind"),   OBJ("metadata", metadata),
	OBJ("spec", service_spec), ANY("status"), END,
};

const struct hf_field_spec hf_fields_configmap[] = {
	STR("apiVersion"),
	STR("kind"),
	OBJ("metadata", metadata),
	TEXTS("data"),
	TEXTS("binaryData"),
	BOOL("immutable"),
	END,
};

const struct hf_field_spec hf_fields_secret[] = {
	STR("apiVersion"),
	STR("kind"),
	OBJ("metadata", metadata),
	TEXTS("data"),
	TEXTS("stringData"),
	BOOL("immutable"),
	STR("type"),
	END,
};
