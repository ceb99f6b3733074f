/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema_internal.h"

/* The training jobs.  Made by tools/crds; not for editing. */

/* A row a field. */
/* clang-format off */
static const struct hf_schema_field scheduling_policy_fields[] = {
	FIELD("minAvailable", INT32, ONE, "Members of the pod group; absent: all ranks."),
	FIELD("minResources", QUANTITY, MAP, "Resources of the pod group."),
	FIELD("priorityClass", STRING, ONE, "Priority class of the pod group."),
	FIELD("queue", STRING, ONE, "Queue of the pod group."),
	FIELD("scheduleTimeoutSeconds", INT32, ONE, "How long the gang scheduler waits for the whole group."),
	END,
};
static const struct hf_schema scheduling_policy = {"SchedulingPolicy", scheduling_policy_fields};

static const struct hf_schema_field on_exit_codes_fields[] = {
	FIELD("containerName", STRING, ONE, "Only codes of this container; absent: of any."),
	FIELD("operator", STRING, ONE, "Whether the code must be one of values, or none of them. Code 0 never matches."),
	FIELD("values", INT32, LIST, "Ascending, each once."),
	END,
};
static const struct hf_schema on_exit_codes = {"OnExitCodes", on_exit_codes_fields};

static const struct hf_schema_field pod_condition_pattern_fields[] = {
	FIELD("type", STRING, ONE, NULL),
	FIELD("status", STRING, ONE, "Absent: \"True\"."),
	FIELD("reason", STRING, ONE, "Absent: any."),
	END,
};
static const struct hf_schema pod_condition_pattern = {"PodConditionPattern", pod_condition_pattern_fields};

static const struct hf_schema_field rule_fields[] = {
	FIELD("name", STRING, ONE, "Shown in status, events and by holdfast why."),
	FIELD("action", STRING, ONE, "FailJob ends the job; Ignore replaces the rank and charges nothing; Count replaces it and charges its budget; RestartReplica and RestartJob restart that rank, or all of them as a new generation."),
	FIELD("replicaTypes", STRING, LIST, "Only ends of these replica types; absent: of all."),
	FIELD_OF("onExitCodes", on_exit_codes, ONE, "Match by a container's exit code."),
	FIELD_OF("onPodConditions", pod_condition_pattern, LIST, "Match by a condition of the pod."),
	FIELD("onPodReasons", STRING, LIST, "Match by the reason in the pod's or the container's state."),
	FIELD("onDevice", STRING, LIST, "Match by the class of a device failure."),
	END,
};
static const struct hf_schema rule = {"Rule", rule_fields};

static const struct hf_schema_field pod_failure_policy_fields[] = {
	FIELD_OF("rules", rule, LIST, "The first that matches decides; without a match the end counts."),
	END,
};
static const struct hf_schema pod_failure_policy = {"PodFailurePolicy", pod_failure_policy_fields};

static const struct hf_schema_field backoff_fields[] = {
	FIELD("initialSeconds", INT32, ONE, "Before the second restart; the first is at once. Default 10."),
	FIELD("maxSeconds", INT32, ONE, "It doubles up to this. Default 600."),
	FIELD("resetAfterSeconds", INT32, ONE, "So long without a failure, and the delay begins anew (the budgets do not). Default 3600."),
	END,
};
static const struct hf_schema backoff = {"Backoff", backoff_fields};

static const struct hf_schema_field node_lost_fields[] = {
	FIELD("afterSeconds", INT32, ONE, "A node counts as lost when it has been Unknown and silent for so many seconds, its Lease not renewed, and as long after a storm of its zone (15 at least). Default 60."),
	FIELD("forceDelete", STRING, ONE, "What it takes to delete a pod on a lost node by force: Presumed (default) is satisfied with silence, Proven wants evidence that the node is dead, Never waits for people."),
	FIELD("selfFence", BOOL, ONE, "Ranks under holdfast exec end themselves when their node has had no contact with the control plane for afterSeconds - 10 s, which proves that they have ended. Pods are made with restartPolicy Never. Default false."),
	END,
};
static const struct hf_schema node_lost = {"NodeLost", node_lost_fields};

static const struct hf_schema_field device_fields[] = {
	FIELD("onUnhealthy", STRING, ONE, "What an unhealthy device of a rank leads to. Default Restart."),
	FIELD("avoid", BOOL, ONE, "Keep replacements off nodes whose devices fail. Default true."),
	END,
};
static const struct hf_schema device = {"Device", device_fields};

static const struct hf_schema_field recovery_fields[] = {
	FIELD("restartScope", STRING, ONE, "Replica (default) restarts the rank that failed, Job all ranks as one generation."),
	FIELD("infrastructureLimit", INT32, ONE, "How many incidents of the infrastructure the job survives: node loss, preemption, eviction, admission. Absent: any number."),
	FIELD("deviceLimit", INT32, ONE, "The same for failures of devices. Absent: any number."),
	FIELD_OF("backoff", backoff, ONE, "How long a restart that the application is charged for waits."),
	FIELD("incidentSeconds", INT32, ONE, "How long after the last rank runs again a late end still belongs to the incident. Default 1800."),
	FIELD("replaceDelaySeconds", INT32, ONE, "How long a pod's name stays empty after it was removed from a tainted node. Default 2."),
	FIELD("settleSeconds", INT32, ONE, "How long a verdict that would end the job waits for its cause. Default 20."),
	FIELD("restartGraceSeconds", INT32, ONE, "Scope Job: grace period of the pods that are torn down. Absent: their own."),
	FIELD_OF("nodeLost", node_lost, ONE, NULL),
	FIELD("forceDeleteAfterSeconds", INT32, ONE, "Past a pod's own deadline, on a lost node. Default 5."),
	FIELD_OF("device", device, ONE, NULL),
	FIELD("progressDeadlineSeconds", INT32, ONE, "No rank advanced for so long: all ranks are restarted. Absent: never."),
	FIELD("sidecarGraceSeconds", INT32, ONE, "The kind's own container has ended with 0 and another one keeps the pod: so long after that the rank counts as succeeded and its pod is ended. Absent: Holdfast waits until the pod ends."),
	FIELD("podsAfterEnd", STRING, ONE, "What happens to the pods that cleanPodPolicy keeps when the job fails. Stop (default): pods that have not begun are deleted, and running pods are ended and kept with their logs. Keep: the pods go on, as training-operator lets them."),
	END,
};
static const struct hf_schema recovery = {"Recovery", recovery_fields};

static const struct hf_schema_field run_policy_fields[] = {
	FIELD("activeDeadlineSeconds", INT64, ONE, "The job fails after so many seconds of activity; time suspended does not count."),
	FIELD("backoffLimit", INT32, ONE, "How many incidents of the application the job survives. Absent: any number. 0 under OnFailure: the kubelet restarts no container."),
	FIELD("cleanPodPolicy", STRING, ONE, "Which pods go when the job is over: None (default), Running or All."),
	FIELD("managedBy", STRING, ONE, "Who runs this job; immutable. Absent: the training operator."),
	FIELD_OF("schedulingPolicy", scheduling_policy, ONE, "For gang schedulers."),
	FIELD("suspend", BOOL, ONE, "True: the job has no pods until it is set to false."),
	FIELD("ttlSecondsAfterFinished", INT32, ONE, "The job is deleted so long after its end. Absent: never."),
	FIELD_OF("podFailurePolicy", pod_failure_policy, ONE, "What an end of a rank means, by its exit code, condition, reason or device. Such a job's pods are made with restartPolicy Never."),
	FIELD_OF("recovery", recovery, ONE, "How Holdfast brings the job back. Absent fields have the operator's defaults."),
	END,
};
static const struct hf_schema run_policy = {"RunPolicy", run_policy_fields};

static const struct hf_schema_field replica_spec_fields[] = {
	FIELD("replicas", INT32, ONE, "How many ranks of this type. Absent: 1 (workers of an MPIJob: 0)."),
	FIELD("restartPolicy", STRING, ONE, "What follows the end of a rank: Always, OnFailure, Never, or ExitCode (128 and above are restarted, 1 to 127 fail the job)."),
	FIELD_OF("template", hf_schema_pod_template_spec, ONE, NULL),
	END,
};
static const struct hf_schema replica_spec = {"ReplicaSpec", replica_spec_fields};

static const struct hf_schema_field rdzv_conf_fields[] = {
	FIELD("key", STRING, ONE, NULL),
	FIELD("value", STRING, ONE, NULL),
	END,
};
static const struct hf_schema rdzv_conf = {"RdzvConf", rdzv_conf_fields};

static const struct hf_schema_field elastic_policy_fields[] = {
	FIELD("minReplicas", INT32, ONE, "Fewest workers to go on with; absent: maxReplicas."),
	FIELD("maxReplicas", INT32, ONE, "Most workers; absent: minReplicas."),
	FIELD("maxRestarts", INT32, ONE, "Passed to the launcher of each pod."),
	FIELD("metrics", RAW, LIST, "What a HorizontalPodAutoscaler scales the workers by."),
	FIELD("rdzvBackend", STRING, ONE, "Absent: c10d."),
	FIELD("rdzvPort", INT32, ONE, "Absent: the port of worker 0."),
	FIELD("rdzvHost", STRING, ONE, "Absent: worker 0."),
	FIELD("rdzvId", STRING, ONE, "Name of the rendezvous."),
	FIELD_OF("rdzvConf", rdzv_conf, LIST, "Options of the rendezvous."),
	FIELD("standalone", BOOL, ONE, "A rendezvous inside each pod."),
	FIELD("nProcPerNode", INT32, ONE, "Deprecated: use spec.nprocPerNode."),
	END,
};
static const struct hf_schema elastic_policy = {"ElasticPolicy", elastic_policy_fields};

static const struct hf_schema_field py_torch_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "What holds for the job as a whole."),
	FIELD_OF("pytorchReplicaSpecs", replica_spec, MAP, "Replica types of the job, by name: Master and Worker."),
	FIELD_OF("elasticPolicy", elastic_policy, ONE, "How the number of workers may change while the job runs."),
	FIELD("nprocPerNode", STRING, ONE, "Processes of a pod: auto (default), cpu, gpu or a number."),
	END,
};
static const struct hf_schema py_torch_job_spec = {"PyTorchJobSpec", py_torch_job_spec_fields};

static const struct hf_schema_field job_condition_fields[] = {
	FIELD("lastTransitionTime", TIME, ONE, NULL),
	FIELD("lastUpdateTime", TIME, ONE, NULL),
	FIELD("message", STRING, ONE, NULL),
	FIELD("reason", STRING, ONE, NULL),
	FIELD("status", STRING, ONE, "True, False or Unknown."),
	FIELD("type", STRING, ONE, NULL),
	END,
};
static const struct hf_schema job_condition = {"JobCondition", job_condition_fields};

static const struct hf_schema_field incident_fields[] = {
	FIELD("id", INT64, ONE, NULL),
	FIELD("openedAt", TIME, ONE, NULL),
	FIELD("cause", STRING, ONE, NULL),
	FIELD("charged", STRING, ONE, "Budget that pays; empty while the cause may still turn up."),
	END,
};
static const struct hf_schema incident = {"Incident", incident_fields};

static const struct hf_schema_field budgets_fields[] = {
	FIELD("application", INT64, ONE, NULL),
	FIELD("infrastructure", INT64, ONE, NULL),
	FIELD("device", INT64, ONE, NULL),
	END,
};
static const struct hf_schema budgets = {"Budgets", budgets_fields};

static const struct hf_schema_field streaks_fields[] = {
	FIELD("application", INT64, ONE, NULL),
	FIELD("infrastructure", INT64, ONE, NULL),
	FIELD("device", INT64, ONE, NULL),
	FIELD("user", INT64, ONE, "What people deleted or had restarted, in a row."),
	END,
};
static const struct hf_schema streaks = {"Streaks", streaks_fields};

static const struct hf_schema_field replica_ledger_fields[] = {
	FIELD("attempts", STRING, ONE, "Starts after the first, as index:number."),
	FIELD("created", STRING, ONE, "Ranks whose pod was seen, as index ranges: 0-3,7."),
	FIELD("succeeded", STRING, ONE, "Ranks that succeeded in this generation, as index ranges: 0-3,7."),
	FIELD("seen", STRING, ONE, "Container restarts already counted, as index:number."),
	FIELD("trained", STRING, ONE, "Ranks whose own container ended with 0 and whose pod has not ended, as index ranges: 0-3,7."),
	FIELD("covered", STRING, ONE, "Ranks whose container restart this incident paid for, as index ranges: 0-3,7."),
	END,
};
static const struct hf_schema replica_ledger = {"ReplicaLedger", replica_ledger_fields};

static const struct hf_schema_field record_fields[] = {
	FIELD("generation", INT64, ONE, "That the restart led to."),
	FIELD("incident", INT64, ONE, "The incident it was part of."),
	FIELD("cause", STRING, ONE, "Class of the end: application, out-of-memory, infrastructure, device, admission, user."),
	FIELD("reason", STRING, ONE, "What was seen, in one word: NodeLost, Evicted, OOMKilled and the like."),
	FIELD("message", STRING, ONE, "The node's own text for that reason; of the newest record alone."),
	FIELD("scope", STRING, ONE, "Replica, Job or Container; absent: the job ended."),
	FIELD("replica", STRING, ONE, "Type and index."),
	FIELD("pod", STRING, ONE, NULL),
	FIELD("node", STRING, ONE, NULL),
	FIELD("device", STRING, ONE, NULL),
	FIELD("exitCode", INT32, ONE, NULL),
	FIELD("signal", INT32, ONE, NULL),
	FIELD("rule", STRING, ONE, "Of podFailurePolicy, by name or number; or the annotation."),
	FIELD("detectedAt", TIME, ONE, NULL),
	FIELD("decidedAt", TIME, ONE, NULL),
	FIELD("runningAt", TIME, ONE, "When the last rank ran again."),
	END,
};
static const struct hf_schema record = {"Record", record_fields};

static const struct hf_schema_field verdict_fields[] = {
	FIELD("reason", STRING, ONE, NULL),
	FIELD("message", STRING, ONE, NULL),
	FIELD("at", TIME, ONE, NULL),
	END,
};
static const struct hf_schema verdict = {"Verdict", verdict_fields};

static const struct hf_schema_field ledger_fields[] = {
	FIELD("schema", INT64, ONE, "Version of this record."),
	FIELD("generation", INT64, ONE, "Rises when all ranks are started anew."),
	FIELD("phase", STRING, ONE, "Creating, Running, Tearing, Suspended or Ended."),
	FIELD("since", TIME, ONE, "The phase has lasted since."),
	FIELD_OF("incident", incident, ONE, "The failure that is being recovered from, or the last one."),
	FIELD("notBefore", TIME, ONE, "No pod is created earlier."),
	FIELD("activeSeconds", INT64, ONE, "Of runs before a suspension."),
	FIELD_OF("restarts", budgets, ONE, "Incidents charged, by budget."),
	FIELD("summary", STRING, ONE, "The incidents charged, in words: 0, 1 (infrastructure), 3 (2 application, 1 device)."),
	FIELD_OF("streak", streaks, ONE, "Failures in a row, which make the delay grow."),
	FIELD_OF("replicas", replica_ledger, MAP, "Per replica type, in short texts."),
	FIELD_OF("last", record, ONE, "The newest restart, or the end of the job."),
	FIELD_OF("history", record, LIST, "What came before it, newest first."),
	FIELD("downtimeSeconds", INT64, ONE, "Not all ranks were running."),
	FIELD("productiveSeconds", INT64, ONE, "All ranks were running."),
	FIELD("restartHandled", STRING, ONE, "The value of the restart annotation that was last acted on."),
	FIELD_OF("verdict", verdict, ONE, "Why the job fails, unless another cause turns up while it settles."),
	END,
};
static const struct hf_schema ledger = {"Ledger", ledger_fields};

static const struct hf_schema_field replica_status_fields[] = {
	FIELD("active", INT32, ONE, "Pods that run; of a suspended job, pods that are still there."),
	FIELD("failed", INT32, ONE, NULL),
	FIELD("succeeded", INT32, ONE, NULL),
	FIELD_OF("labelSelector", hf_schema_label_selector, ONE, NULL),
	FIELD("selector", STRING, ONE, "Selects the pods of this type."),
	END,
};
static const struct hf_schema replica_status = {"ReplicaStatus", replica_status_fields};

static const struct hf_schema_field job_status_fields[] = {
	FIELD("completionTime", TIME, ONE, "When the job succeeded or failed."),
	FIELD_OF("conditions", job_condition, LIST, "The last one names the state."),
	FIELD("lastReconcileTime", TIME, ONE, NULL),
	FIELD_OF("recovery", ledger, ONE, "Holdfast's ledger: what was counted, and what of it. Not for editing."),
	FIELD_OF("replicaStatuses", replica_status, MAP, "Pods by replica type."),
	FIELD("startTime", TIME, ONE, "When the job began, or was resumed."),
	END,
};
static const struct hf_schema job_status = {"JobStatus", job_status_fields};

static const struct hf_schema_field py_torch_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", py_torch_job_spec, ONE, "What the job shall be."),
	FIELD_OF("status", job_status, ONE, "What became of it."),
	END,
};
const struct hf_schema hf_schema_py_torch_job = {"PyTorchJob", py_torch_job_fields};

static const struct hf_schema_field tf_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "What holds for the job as a whole."),
	FIELD_OF("tfReplicaSpecs", replica_spec, MAP, "Replica types of the job, by name: Chief, Evaluator, Master, PS and Worker have a meaning."),
	FIELD("successPolicy", STRING, ONE, "Empty: the chief's or worker 0's success is the job's. AllWorkers: the success of all workers."),
	FIELD("enableDynamicWorker", BOOL, ONE, "The number of workers may change while the job runs."),
	END,
};
static const struct hf_schema tf_job_spec = {"TFJobSpec", tf_job_spec_fields};

static const struct hf_schema_field tf_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", tf_job_spec, ONE, "What the job shall be."),
	FIELD_OF("status", job_status, ONE, "What became of it."),
	END,
};
const struct hf_schema hf_schema_tf_job = {"TFJob", tf_job_fields};

static const struct hf_schema_field mpi_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "What holds for the job as a whole."),
	FIELD_OF("mpiReplicaSpecs", replica_spec, MAP, "Replica types of the job, by name: Launcher and Worker."),
	FIELD("slotsPerWorker", INT32, ONE, "Slots of a worker in the host file. Absent: 1."),
	FIELD("cleanPodPolicy", STRING, ONE, "runPolicy.cleanPodPolicy wins."),
	FIELD("mainContainer", STRING, ONE, "The workers' container in which the launcher starts ranks."),
	END,
};
static const struct hf_schema mpi_job_spec = {"MPIJobSpec", mpi_job_spec_fields};

static const struct hf_schema_field mpi_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", mpi_job_spec, ONE, "What the job shall be."),
	FIELD_OF("status", job_status, ONE, "What became of it."),
	END,
};
const struct hf_schema hf_schema_mpi_job = {"MPIJob", mpi_job_fields};

static const struct hf_schema_field xg_boost_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "What holds for the job as a whole."),
	FIELD_OF("xgbReplicaSpecs", replica_spec, MAP, "Replica types of the job, by name: Master and Worker."),
	END,
};
static const struct hf_schema xg_boost_job_spec = {"XGBoostJobSpec", xg_boost_job_spec_fields};

static const struct hf_schema_field xg_boost_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", xg_boost_job_spec, ONE, "What the job shall be."),
	FIELD_OF("status", job_status, ONE, "What became of it."),
	END,
};
const struct hf_schema hf_schema_xg_boost_job = {"XGBoostJob", xg_boost_job_fields};

static const struct hf_schema_field paddle_job_elastic_policy_fields[] = {
	FIELD("minReplicas", INT32, ONE, "Fewest workers to go on with; absent: maxReplicas."),
	FIELD("maxReplicas", INT32, ONE, "Most workers; absent: minReplicas."),
	FIELD("maxRestarts", INT32, ONE, "Passed to the launcher of each pod."),
	FIELD("metrics", RAW, LIST, "What a HorizontalPodAutoscaler scales the workers by."),
	END,
};
static const struct hf_schema paddle_job_elastic_policy = {"PaddleJobElasticPolicy", paddle_job_elastic_policy_fields};

static const struct hf_schema_field paddle_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "What holds for the job as a whole."),
	FIELD_OF("paddleReplicaSpecs", replica_spec, MAP, "Replica types of the job, by name: Master and Worker."),
	FIELD_OF("elasticPolicy", paddle_job_elastic_policy, ONE, "How the number of workers may change while the job runs."),
	END,
};
static const struct hf_schema paddle_job_spec = {"PaddleJobSpec", paddle_job_spec_fields};

static const struct hf_schema_field paddle_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", paddle_job_spec, ONE, "What the job shall be."),
	FIELD_OF("status", job_status, ONE, "What became of it."),
	END,
};
const struct hf_schema hf_schema_paddle_job = {"PaddleJob", paddle_job_fields};

static const struct hf_schema_field jax_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "What holds for the job as a whole."),
	FIELD_OF("jaxReplicaSpecs", replica_spec, MAP, "Replica types of the job, by name: Worker."),
	END,
};
static const struct hf_schema jax_job_spec = {"JAXJobSpec", jax_job_spec_fields};

static const struct hf_schema_field jax_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", jax_job_spec, ONE, "What the job shall be."),
	FIELD_OF("status", job_status, ONE, "What became of it."),
	END,
};
const struct hf_schema hf_schema_jax_job = {"JAXJob", jax_job_fields};
