/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/job.h"

#include "api/reader_internal.h"
#include "base/str.h"

/*
 * Keys that no field has.  The names are those of the upstream kinds and of core/v1
 * (Kubernetes 1.36); below a container's own keys nothing is checked here: an API server has
 * the whole schema, and a typo further down is rare.
 */

static const char *const top_keys[] = {"apiVersion", "kind", "metadata", "spec", "status", NULL};

static const char *const metadata_keys[] = {
	"annotations",
	"creationTimestamp",
	"deletionGracePeriodSeconds",
	"deletionTimestamp",
	"finalizers",
	"generateName",
	"generation",
	"labels",
	"managedFields",
	"name",
	"namespace",
	"ownerReferences",
	"resourceVersion",
	"selfLink",
	"uid",
	NULL,
};

static const char *const run_policy_keys[] = {
	"activeDeadlineSeconds",
	"backoffLimit",
	"cleanPodPolicy",
	"managedBy",
	"schedulingPolicy",
	"suspend",
	"ttlSecondsAfterFinished",
	"podFailurePolicy",
	"recovery",
	NULL,
};
static const char *const scheduling_keys[] = {
	"minAvailable", "minResources", "priorityClass", "queue", "scheduleTimeoutSeconds", NULL,
};
static const char *const recovery_keys[] = {
	"restartScope",
	"infrastructureLimit",
	"deviceLimit",
	"backoff",
	"incidentSeconds",
	"replaceDelaySeconds",
	"settleSeconds",
	"restartGraceSeconds",
	"nodeLost",
	"forceDeleteAfterSeconds",
	"device",
	"progressDeadlineSeconds",
	NULL,
};
static const char *const backoff_keys[] = {"initialSeconds", "maxSeconds", "resetAfterSeconds",
					   NULL};
static const char *const node_lost_keys[] = {"afterSeconds", "forceDelete", "selfFence", NULL};
static const char *const device_keys[] = {"onUnhealthy", "avoid", NULL};
static const char *const failure_policy_keys[] = {"rules", NULL};
static const char *const rule_keys[] = {
	"name",         "action",   "replicaTypes", "onExitCodes", "onPodConditions",
	"onPodReasons", "onDevice", NULL,
};
static const char *const exit_code_keys[] = {"containerName", "operator", "values", NULL};

static const char *const elastic_keys[] = {
	"minReplicas", "maxReplicas", "rdzvBackend",  "rdzvPort",    "rdzvHost", "rdzvId",
	"rdzvConf",    "standalone",  "nProcPerNode", "maxRestarts", "metrics",  NULL,
};
/* Beside the replica map; which of them a kind has is in the table below. */
static const char *const pytorch_keys[] = {"runPolicy", "elasticPolicy", "nprocPerNode", NULL};
static const char *const tf_keys[] = {"runPolicy", "successPolicy", "enableDynamicWorker", NULL};
static const char *const mpi_keys[] = {"runPolicy", "slotsPerWorker", "cleanPodPolicy",
				       "mainContainer", NULL};
static const char *const paddle_keys[] = {"runPolicy", "elasticPolicy", NULL};
static const char *const plain_keys[] = {"runPolicy", NULL};

static const char *const replica_keys[] = {"replicas", "restartPolicy", "template", NULL};
static const char *const template_keys[] = {"metadata", "spec", NULL};

static const char *const pod_keys[] = {
	"activeDeadlineSeconds",
	"affinity",
	"automountServiceAccountToken",
	"containers",
	"dnsConfig",
	"dnsPolicy",
	"enableServiceLinks",
	"hostAliases",
	"hostIPC",
	"hostNetwork",
	"hostPID",
	"hostUsers",
	"hostname",
	"hostnameOverride",
	"imagePullSecrets",
	"initContainers",
	"nodeName",
	"nodeSelector",
	"os",
	"overhead",
	"preemptionPolicy",
	"priority",
	"priorityClassName",
	"readinessGates",
	"resourceClaims",
	"resources",
	"restartPolicy",
	"runtimeClassName",
	"schedulerName",
	"schedulingGates",
	"schedulingGroup",
	"securityContext",
	"serviceAccount",
	"serviceAccountName",
	"setHostnameAsFQDN",
	"shareProcessNamespace",
	"subdomain",
	"terminationGracePeriodSeconds",
	"tolerations",
	"topologySpreadConstraints",
	"volumes",
	"workloadRef",
	NULL,
};
static const char *const container_keys[] = {
	"args",
	"command",
	"env",
	"envFrom",
	"image",
	"imagePullPolicy",
	"lifecycle",
	"livenessProbe",
	"name",
	"ports",
	"readinessProbe",
	"resizePolicy",
	"resources",
	"restartPolicy",
	"restartPolicyRules",
	"securityContext",
	"startupProbe",
	"stdin",
	"stdinOnce",
	"terminationMessagePath",
	"terminationMessagePolicy",
	"tty",
	"volumeDevices",
	"volumeMounts",
	"workingDir",
	NULL,
};

static bool is_in(const char *key, const char *const *keys)
{
	for (; *keys != NULL; keys++)
		if (hf_streq(key, *keys))
			return true;
	return false;
}

/* Every key of object must be in keys, or be `also` (may be NULL). */
static void check_keys(struct hf_reader *r, const struct hf_json *object, const char *const *keys,
		       const char *also)
{
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(object, it, &key, &value)) != NULL;) {
		if (is_in(key, keys) || hf_streq(key, also))
			continue;
		size_t mark = hf_reader_enter(r, r->path_len == 0 ? "%s" : ".%s", key);
		hf_field_add(r->errors, HF_PROBLEM_UNKNOWN, NULL, "", "%s", hf_reader_path(r));
		hf_reader_leave(r, mark);
	}
}

/* check_keys of a member. */
static const struct hf_json *check_member(struct hf_reader *r, const struct hf_json *object,
					  const char *key, const char *const *keys)
{
	const struct hf_json *member = hf_json_get(object, key);
	size_t mark = hf_reader_enter(r, ".%s", key);

	check_keys(r, member, keys, NULL);
	hf_reader_leave(r, mark);
	return member;
}

static void check_rules(struct hf_reader *r, const struct hf_json *policy)
{
	const struct hf_json *rules = hf_json_get(policy, "rules");
	size_t n = hf_json_len(rules) <= HF_RULES_MAX ? hf_json_len(rules) : HF_RULES_MAX;

	for (size_t i = 0; i < n; i++) {
		size_t mark = hf_reader_enter(r, ".podFailurePolicy.rules[%zu]", i);
		check_keys(r, hf_json_item(rules, i), rule_keys, NULL);
		(void)check_member(r, hf_json_item(rules, i), "onExitCodes", exit_code_keys);
		hf_reader_leave(r, mark);
	}
}

static void check_run_policy(struct hf_reader *r, const struct hf_json *spec)
{
	const struct hf_json *policy = check_member(r, spec, "runPolicy", run_policy_keys);
	const struct hf_json *recovery;
	size_t mark = hf_reader_enter(r, ".runPolicy");

	(void)check_member(r, policy, "schedulingPolicy", scheduling_keys);
	check_rules(r, check_member(r, policy, "podFailurePolicy", failure_policy_keys));
	recovery = check_member(r, policy, "recovery", recovery_keys);
	(void)hf_reader_enter(r, ".recovery");
	(void)check_member(r, recovery, "backoff", backoff_keys);
	(void)check_member(r, recovery, "nodeLost", node_lost_keys);
	(void)check_member(r, recovery, "device", device_keys);
	hf_reader_leave(r, mark);
}

static void check_containers(struct hf_reader *r, const struct hf_json *pod, const char *key)
{
	const struct hf_json *list = hf_json_get(pod, key);

	for (size_t i = 0; i < hf_json_len(list); i++) {
		size_t mark = hf_reader_enter(r, ".%s[%zu]", key, i);
		check_keys(r, hf_json_item(list, i), container_keys, NULL);
		hf_reader_leave(r, mark);
	}
}

static void check_replica(struct hf_reader *r, const struct hf_json *replica)
{
	const struct hf_json *template, *pod;
	size_t mark;

	check_keys(r, replica, replica_keys, NULL);
	template = check_member(r, replica, "template", template_keys);
	mark = hf_reader_enter(r, ".template");
	(void)check_member(r, template, "metadata", metadata_keys);
	pod = check_member(r, template, "spec", pod_keys);
	(void)hf_reader_enter(r, ".spec");
	check_containers(r, pod, "containers");
	check_containers(r, pod, "initContainers");
	hf_reader_leave(r, mark);
}

static const char *const *spec_keys(const struct hf_framework *framework)
{
	static const struct {
		const char *kind;
		const char *const *keys;
	} kinds[] = {
		{"PyTorchJob", pytorch_keys},
		{"TFJob", tf_keys},
		{"MPIJob", mpi_keys},
		{"PaddleJob", paddle_keys},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		if (hf_streq(framework->kind, kinds[i].kind))
			return kinds[i].keys;
	return plain_keys;
}

void hf_job_read_unknown(struct hf_doc *doc, const struct hf_framework *framework,
			 struct hf_field_errors *errors)
{
	const struct hf_json *root = hf_doc_json(doc);
	const struct hf_json *spec = hf_json_get(root, "spec");
	const struct hf_json *replicas = hf_json_get(spec, framework->replicas_key);
	struct hf_reader r = {.arena = errors->arena, .errors = errors};
	struct hf_json *value;
	const char *key;
	size_t mark;

	check_keys(&r, root, top_keys, NULL);
	(void)check_member(&r, root, "metadata", metadata_keys);
	(void)hf_reader_enter(&r, "spec");
	check_keys(&r, spec, spec_keys(framework), framework->replicas_key);
	check_run_policy(&r, spec);
	(void)check_member(&r, spec, "elasticPolicy", elastic_keys);
	mark = hf_reader_enter(&r, ".%s", framework->replicas_key);
	for (void *it = NULL; (it = hf_json_next(replicas, it, &key, &value)) != NULL;) {
		size_t entry = hf_reader_enter(&r, ".%s", key);
		check_replica(&r, value);
		hf_reader_leave(&r, entry);
	}
	hf_reader_leave(&r, mark);
}
