/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema_internal.h"

/* The training jobs.  Made by tools/crds; not for editing. */

/* A row a field. */
/* clang-format off */
static const struct hf_schema_field scheduling_policy_fields[] = {
	FIELD("minAvailable", INT32, ONE, "Its members. Default: all ranks."),
	FIELD("minResources", QUANTITY, MAP, "Its resources."),
	FIELD("priorityClass", STRING, ONE, "Its priority class."),
	FIELD("queue", STRING, ONE, "Its queue."),
	FIELD("scheduleTimeoutSeconds", INT32, ONE, "How long to wait for the whole group."),
	END,
};
static const struct hf_schema scheduling_policy = {"SchedulingPolicy", scheduling_policy_fields};

static const struct hf_schema_field on_exit_codes_fields[] = {
	FIELD("containerName", STRING, ONE, "Match only codes of this container. Default: any container."),
	FIELD("operator", STRING, ONE, "In: the code must be in values. NotIn: the code must not be in values. Code 0 never matches."),
	FIELD("values", INT32, LIST, "Exit codes, ascending, without repetition."),
	END,
};
static const struct hf_schema on_exit_codes = {"OnExitCodes", on_exit_codes_fields};

static const struct hf_schema_field pod_condition_pattern_fields[] = {
	FIELD("type", STRING, ONE, "Type of the pod condition."),
	FIELD("status", STRING, ONE, "Status of the pod condition. Default: True."),
	FIELD("reason", STRING, ONE, "Reason of the pod condition. Default: any reason."),
	END,
};
static const struct hf_schema pod_condition_pattern = {"PodConditionPattern", pod_condition_pattern_fields};

static const struct hf_schema_field rule_fields[] = {
	FIELD("name", STRING, ONE, "Name of the rule in status, events and holdfast why."),
	FIELD("action", STRING, ONE, "FailJob: the job fails. Ignore: replaced without a charge. Count: replaced and charged. RestartReplica, RestartJob: the rank or all ranks restart."),
	FIELD("replicaTypes", STRING, LIST, "Match only these replica types. Default: all types."),
	FIELD_OF("onExitCodes", on_exit_codes, ONE, "Match by a container's exit code."),
	FIELD_OF("onPodConditions", pod_condition_pattern, LIST, "Match by a condition of the pod."),
	FIELD("onPodReasons", STRING, LIST, "Match by the reason of the pod or the container."),
	FIELD("onDevice", STRING, LIST, "Match by the class of a device failure."),
	END,
};
static const struct hf_schema rule = {"Rule", rule_fields};

static const struct hf_schema_field pod_failure_policy_fields[] = {
	FIELD_OF("rules", rule, LIST, "The first rule that matches decides."),
	END,
};
static const struct hf_schema pod_failure_policy = {"PodFailurePolicy", pod_failure_policy_fields};

static const struct hf_schema_field backoff_fields[] = {
	FIELD("initialSeconds", INT32, ONE, "Delay of the second restart; the first is immediate. Default: 10."),
	FIELD("maxSeconds", INT32, ONE, "The delay doubles up to this limit. Default: 600."),
	FIELD("resetAfterSeconds", INT32, ONE, "Time without a failure that makes the next restart immediate. Default: 3600."),
	END,
};
static const struct hf_schema backoff = {"Backoff", backoff_fields};

static const struct hf_schema_field node_lost_fields[] = {
	FIELD("afterSeconds", INT32, ONE, "A node is lost after this time in Unknown without a sign of life. Default: 60."),
	FIELD("forceDelete", STRING, ONE, "Evidence for a forced delete. Presumed: silence. Proven: node or pod have ended. Never: a person decides. Default: Presumed."),
	FIELD("selfFence", BOOL, ONE, "Ranks under exec end themselves afterSeconds - 10 s after the node's last contact. Default: false."),
	END,
};
static const struct hf_schema node_lost = {"NodeLost", node_lost_fields};

static const struct hf_schema_field device_fields[] = {
	FIELD("onUnhealthy", STRING, ONE, "Action when a rank's device fails. Default: Restart."),
	FIELD("avoid", BOOL, ONE, "Keep replacements off nodes with failed devices. Default: true."),
	END,
};
static const struct hf_schema device = {"Device", device_fields};

static const struct hf_schema_field log_rules_fields[] = {
	FIELD("name", STRING, ONE, "Name of the rule."),
	FIELD("pattern", STRING, ONE, "PCRE2 expression for a line. Default: lines of known trainers."),
	FIELD("must", STRING, ONE, "appear within 30m, recur within 10m, be finite, be below 9 for 5 lines."),
	FIELD("action", STRING, ONE, "Default: Restart."),
	END,
};
static const struct hf_schema log_rules = {"LogRules", log_rules_fields};

static const struct hf_schema_field checkpoint_fields[] = {
	FIELD("graceSeconds", INT32, ONE, "Time to save before a planned end. Default: 0."),
	END,
};
static const struct hf_schema checkpoint = {"Checkpoint", checkpoint_fields};

static const struct hf_schema_field recovery_fields[] = {
	FIELD("restartScope", STRING, ONE, "Replica: the failed rank restarts. Job: all ranks restart. Default: Replica."),
	FIELD("infrastructureLimit", INT32, ONE, "Infrastructure incidents that the job survives. Default: unlimited."),
	FIELD("deviceLimit", INT32, ONE, "Device incidents that the job survives. Default: unlimited."),
	FIELD_OF("backoff", backoff, ONE, "Delays of restarts charged to the application."),
	FIELD("incidentSeconds", INT32, ONE, "Time in which a late termination belongs to the incident. Default: 1800."),
	FIELD("replaceDelaySeconds", INT32, ONE, "Time for which a pod's name stays free after a taint took the pod. Default: 2."),
	FIELD("settleSeconds", INT32, ONE, "How long a verdict waits for evidence. Default: 20."),
	FIELD("restartGraceSeconds", INT32, ONE, "Scope Job: grace period at a restart. Default: that of the pods."),
	FIELD_OF("nodeLost", node_lost, ONE, "Lost nodes."),
	FIELD("forceDeleteAfterSeconds", INT32, ONE, "Time beyond a pod's grace period before a forced delete. Default: 5."),
	FIELD_OF("device", device, ONE, "Failed devices."),
	FIELD("progressDeadlineSeconds", INT32, ONE, "All ranks restart after this time without a step. Default: never."),
	FIELD("noProgressLimit", INT32, ONE, "Restarts in a row without a new best step, from the first reported step on. Default: 0 (unlimited)."),
	FIELD("exec", STRING, ONE, "Inject: put holdfast exec before the training command. Default: None."),
	FIELD_OF("logRules", log_rules, LIST, "Rules for output under exec."),
	FIELD("inPlace", STRING, ONE, "Auto: processes under exec restart in their pods. Default: Auto."),
	FIELD("inPlaceLimit", INT32, ONE, "In-place restarts in a row without a new step. Default: 3."),
	FIELD("inPlaceWaitSeconds", INT32, ONE, "How long exec waits for an order. Default: 60."),
	FIELD_OF("checkpoint", checkpoint, ONE, "Checkpoints."),
	FIELD("sidecarGraceSeconds", INT32, ONE, "How long other containers keep the pod of a rank that has succeeded. Default: unlimited."),
	FIELD("podsAfterEnd", STRING, ONE, "Pods that cleanPodPolicy keeps when the job fails. Stop: they are ended. Keep: they go on. Default: Stop."),
	END,
};
static const struct hf_schema recovery = {"Recovery", recovery_fields};

static const struct hf_schema_field run_policy_fields[] = {
	FIELD("activeDeadlineSeconds", INT64, ONE, "The job fails after this time of activity. Default: never."),
	FIELD("backoffLimit", INT32, ONE, "Application incidents that the job survives. With 0 the program starts once. Default: unlimited."),
	FIELD("cleanPodPolicy", STRING, ONE, "Pods to delete when the job is over: None, Running or All. Default: None."),
	FIELD("managedBy", STRING, ONE, "Controller of this job; immutable. Default: kubeflow.org/training-operator."),
	FIELD_OF("schedulingPolicy", scheduling_policy, ONE, "Pod group of a gang scheduler."),
	FIELD("suspend", BOOL, ONE, "True: the job has no pods."),
	FIELD("ttlSecondsAfterFinished", INT32, ONE, "Time from the end of the job to its deletion. Default: never."),
	FIELD_OF("podFailurePolicy", pod_failure_policy, ONE, "Rules for terminations. Pods of the job have restartPolicy Never."),
	FIELD_OF("recovery", recovery, ONE, "Recovery. The operator's config file can change the defaults."),
	END,
};
static const struct hf_schema run_policy = {"RunPolicy", run_policy_fields};

static const struct hf_schema_field replica_spec_fields[] = {
	FIELD("replicas", INT32, ONE, "Ranks of this type. Default: 1, and 0 for workers of an MPIJob."),
	FIELD("restartPolicy", STRING, ONE, "ExitCode: codes below 128 fail the job. Default: OnFailure for PyTorchJob and PaddleJob, else Never."),
	FIELD_OF("template", hf_schema_pod_template_spec, ONE, NULL),
	END,
};
static const struct hf_schema replica_spec = {"ReplicaSpec", replica_spec_fields};

static const struct hf_schema_field rdzv_conf_fields[] = {
	FIELD("key", STRING, ONE, "Name of the option."),
	FIELD("value", STRING, ONE, "Value of the option."),
	END,
};
static const struct hf_schema rdzv_conf = {"RdzvConf", rdzv_conf_fields};

static const struct hf_schema_field elastic_policy_fields[] = {
	FIELD("minReplicas", INT32, ONE, "Fewest workers. Default: maxReplicas."),
	FIELD("maxReplicas", INT32, ONE, "Most workers. Default: minReplicas."),
	FIELD("maxRestarts", INT32, ONE, "Passed to the launcher of each pod."),
	FIELD("metrics", RAW, LIST, "Metrics of the HorizontalPodAutoscaler."),
	FIELD("rdzvBackend", STRING, ONE, "Rendezvous back end. Default: c10d."),
	FIELD("rdzvPort", INT32, ONE, "Port of the rendezvous. Default: the port of worker 0."),
	FIELD("rdzvHost", STRING, ONE, "Host of the rendezvous. Default: worker 0."),
	FIELD("rdzvId", STRING, ONE, "Name of the rendezvous."),
	FIELD_OF("rdzvConf", rdzv_conf, LIST, "Options of the rendezvous."),
	FIELD("standalone", BOOL, ONE, "Give each pod a separate rendezvous."),
	FIELD("nProcPerNode", INT32, ONE, "Deprecated: use spec.nprocPerNode."),
	END,
};
static const struct hf_schema elastic_policy = {"ElasticPolicy", elastic_policy_fields};

static const struct hf_schema_field py_torch_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "Settings of the job."),
	FIELD_OF("pytorchReplicaSpecs", replica_spec, MAP, "Replica types of the job: Master and Worker."),
	FIELD_OF("elasticPolicy", elastic_policy, ONE, "Limits for the number of workers of an elastic job."),
	FIELD("nprocPerNode", STRING, ONE, "Processes of a pod: auto, cpu, gpu or a number. Default: auto."),
	END,
};
static const struct hf_schema py_torch_job_spec = {"PyTorchJobSpec", py_torch_job_spec_fields};

static const struct hf_schema_field job_condition_fields[] = {
	FIELD("lastTransitionTime", TIME, ONE, "Last change of the status."),
	FIELD("lastUpdateTime", TIME, ONE, "Last change of the condition."),
	FIELD("message", STRING, ONE, NULL),
	FIELD("reason", STRING, ONE, NULL),
	FIELD("status", STRING, ONE, "True, False or Unknown."),
	FIELD("type", STRING, ONE, NULL),
	END,
};
static const struct hf_schema job_condition = {"JobCondition", job_condition_fields};

static const struct hf_schema_field incident_fields[] = {
	FIELD("id", INT64, ONE, "Number of the incident."),
	FIELD("openedAt", TIME, ONE, "First termination."),
	FIELD("cause", STRING, ONE, "Class of the cause."),
	FIELD("charged", STRING, ONE, "Charged budget; empty while evidence is awaited."),
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
	FIELD("user", INT64, ONE, "Restarts in a row that a person asked for."),
	END,
};
static const struct hf_schema streaks = {"Streaks", streaks_fields};

static const struct hf_schema_field replica_ledger_fields[] = {
	FIELD("attempts", STRING, ONE, "Restarts of each rank, by index."),
	FIELD("created", STRING, ONE, "Ranks with a pod of the present attempt: 0-3,7."),
	FIELD("succeeded", STRING, ONE, "Ranks that succeeded in this generation: 0-3,7."),
	FIELD("seen", STRING, ONE, "Container terminations already counted, by index."),
	FIELD("initSeen", STRING, ONE, "The same of init containers, by index."),
	FIELD("trained", STRING, ONE, "Ranks whose own container ended with 0: 0-3,7."),
	FIELD("covered", STRING, ONE, "Ranks restarted by this incident: 0-3,7."),
	FIELD("hold", STRING, ONE, "Ranks that must not run yet: 0-3,7."),
	FIELD("inPlace", STRING, ONE, "Restarts in the present pod, by index."),
	FIELD("inPlaceSince", STRING, ONE, "Incident of the last restart in the pod, by index."),
	END,
};
static const struct hf_schema replica_ledger = {"ReplicaLedger", replica_ledger_fields};

static const struct hf_schema_field record_fields[] = {
	FIELD("generation", INT64, ONE, "Generation after the restart."),
	FIELD("incident", INT64, ONE, "Number of the incident."),
	FIELD("cause", STRING, ONE, "Class of the cause."),
	FIELD("reason", STRING, ONE, "One word, such as NodeLost, Evicted or OOMKilled."),
	FIELD("message", STRING, ONE, "The node's text; newest record only."),
	FIELD("scope", STRING, ONE, "Replica, Job or Container; absent if the job ended."),
	FIELD("replica", STRING, ONE, "Replica type and index."),
	FIELD("pod", STRING, ONE, "Name of the pod."),
	FIELD("node", STRING, ONE, "Node of the pod."),
	FIELD("device", STRING, ONE, "Failed device of the pod."),
	FIELD("exitCode", INT32, ONE, "Its exit code, or that of a container that a rule matched."),
	FIELD("signal", INT32, ONE, "Its signal."),
	FIELD("rule", STRING, ONE, "Rule by name or number, or the restart annotation."),
	FIELD("detectedAt", TIME, ONE, "When the operator saw the termination."),
	FIELD("decidedAt", TIME, ONE, "When the operator decided."),
	FIELD("runningAt", TIME, ONE, "When all ranks ran again."),
	FIELD("inPlace", BOOL, ONE, "Processes restarted in their pods."),
	FIELD("endedAt", TIME, ONE, "When the process ended, or when its lost node became Unknown."),
	FIELD("downAt", TIME, ONE, "When no process of the old generation ran."),
	FIELD("step", INT64, ONE, "Last step before the termination."),
	FIELD("savedStep", INT64, ONE, "Last saved step then."),
	FIELD("steppedAt", TIME, ONE, "First step after the restart."),
	END,
};
static const struct hf_schema record = {"Record", record_fields};

static const struct hf_schema_field verdict_fields[] = {
	FIELD("reason", STRING, ONE, "Reason in one word."),
	FIELD("message", STRING, ONE, "Reason for people."),
	FIELD("at", TIME, ONE, "Time of the verdict."),
	END,
};
static const struct hf_schema verdict = {"Verdict", verdict_fields};

static const struct hf_schema_field ledger_fields[] = {
	FIELD("schema", INT64, ONE, "Version of the ledger."),
	FIELD("generation", INT64, ONE, "Restarts of all ranks, from 1."),
	FIELD("phase", STRING, ONE, "Phase of the job: Creating, Running, Tearing, Suspended or Ended."),
	FIELD("since", TIME, ONE, "Begin of the phase."),
	FIELD_OF("incident", incident, ONE, "The present or last incident."),
	FIELD("notBefore", TIME, ONE, "Pods are not created before this time."),
	FIELD("activeSeconds", INT64, ONE, "Activity before the present run."),
	FIELD_OF("restarts", budgets, ONE, "Charged incidents, by budget."),
	FIELD("summary", STRING, ONE, "Restarts in words."),
	FIELD_OF("streak", streaks, ONE, "Incidents in a row."),
	FIELD_OF("replicas", replica_ledger, MAP, "Counts by replica type, as short texts."),
	FIELD_OF("last", record, ONE, "The newest restart, or the end of the job."),
	FIELD_OF("history", record, LIST, "Earlier records like last, newest first, at most 10."),
	FIELD("downtimeSeconds", INT64, ONE, "Time in which not all ranks ran."),
	FIELD("productiveSeconds", INT64, ONE, "Time in which all ranks ran."),
	FIELD("inPlaceBase", INT64, ONE, "Pods from this generation on are kept."),
	FIELD("inPlaceIncident", INT64, ONE, "Incident of the restart in place."),
	FIELD("inPlaceAt", TIME, ONE, "Order of the restart in place."),
	FIELD("inPlaceStreak", INT64, ONE, "Restarts in place without a new best step."),
	FIELD("saveUntil", TIME, ONE, "Ranks save until then."),
	FIELD("step", INT64, ONE, "Last step of any rank."),
	FIELD("savedStep", INT64, ONE, "Last saved step."),
	FIELD("saveMillis", INT64, ONE, "Time of the last requested save."),
	FIELD("stepsAt", TIME, ONE, "When step was noted."),
	FIELD("bestStep", INT64, ONE, "Furthest step of any attempt."),
	FIELD("noProgressStreak", INT64, ONE, "Restarts without a new best step."),
	FIELD("restartHandled", STRING, ONE, "The restart annotation handled last."),
	FIELD_OF("verdict", verdict, ONE, "Decision that the job fails."),
	END,
};
static const struct hf_schema ledger = {"Ledger", ledger_fields};

static const struct hf_schema_field replica_status_fields[] = {
	FIELD("active", INT32, ONE, "Running pods."),
	FIELD("failed", INT32, ONE, "Failed pods."),
	FIELD("succeeded", INT32, ONE, "Succeeded ranks."),
	FIELD_OF("labelSelector", hf_schema_label_selector, ONE, "Deprecated: use selector."),
	FIELD("selector", STRING, ONE, "Label selector of the pods of this type."),
	END,
};
static const struct hf_schema replica_status = {"ReplicaStatus", replica_status_fields};

static const struct hf_schema_field job_status_fields[] = {
	FIELD("completionTime", TIME, ONE, "When the job succeeded or failed."),
	FIELD_OF("conditions", job_condition, LIST, "The last one names the state."),
	FIELD("lastReconcileTime", TIME, ONE, "Last write by the operator."),
	FIELD_OF("recovery", ledger, ONE, "Ledger of Holdfast. Not for editing."),
	FIELD_OF("replicaStatuses", replica_status, MAP, "Counts of pods, by replica type."),
	FIELD("startTime", TIME, ONE, "When the job began, or was resumed last."),
	END,
};
static const struct hf_schema job_status = {"JobStatus", job_status_fields};

static const struct hf_schema_field py_torch_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", py_torch_job_spec, ONE, "The wanted job."),
	FIELD_OF("status", job_status, ONE, "State of the job."),
	END,
};
const struct hf_schema hf_schema_py_torch_job = {"PyTorchJob", py_torch_job_fields};

static const struct hf_schema_field tf_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "Settings of the job."),
	FIELD_OF("tfReplicaSpecs", replica_spec, MAP, "Replica types of the job: Chief, Evaluator, Master, PS, Worker."),
	FIELD("successPolicy", STRING, ONE, "Empty: the job succeeds with its chief, or with worker 0. AllWorkers: the job succeeds with all workers. Default: empty."),
	FIELD("enableDynamicWorker", BOOL, ONE, "The number of workers may change while the job runs. Default: false."),
	END,
};
static const struct hf_schema tf_job_spec = {"TFJobSpec", tf_job_spec_fields};

static const struct hf_schema_field tf_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", tf_job_spec, ONE, "The wanted job."),
	FIELD_OF("status", job_status, ONE, "State of the job."),
	END,
};
const struct hf_schema hf_schema_tf_job = {"TFJob", tf_job_fields};

static const struct hf_schema_field mpi_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "Settings of the job."),
	FIELD_OF("mpiReplicaSpecs", replica_spec, MAP, "Replica types of the job: Launcher and Worker."),
	FIELD("slotsPerWorker", INT32, ONE, "Slots of a worker in the host file. Default: 1."),
	FIELD("cleanPodPolicy", STRING, ONE, "As runPolicy.cleanPodPolicy, which wins."),
	FIELD("mainContainer", STRING, ONE, "Container of the workers in which the launcher starts ranks. Default: the first container."),
	END,
};
static const struct hf_schema mpi_job_spec = {"MPIJobSpec", mpi_job_spec_fields};

static const struct hf_schema_field mpi_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", mpi_job_spec, ONE, "The wanted job."),
	FIELD_OF("status", job_status, ONE, "State of the job."),
	END,
};
const struct hf_schema hf_schema_mpi_job = {"MPIJob", mpi_job_fields};

static const struct hf_schema_field xg_boost_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "Settings of the job."),
	FIELD_OF("xgbReplicaSpecs", replica_spec, MAP, "Replica types of the job: Master and Worker."),
	END,
};
static const struct hf_schema xg_boost_job_spec = {"XGBoostJobSpec", xg_boost_job_spec_fields};

static const struct hf_schema_field xg_boost_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", xg_boost_job_spec, ONE, "The wanted job."),
	FIELD_OF("status", job_status, ONE, "State of the job."),
	END,
};
const struct hf_schema hf_schema_xg_boost_job = {"XGBoostJob", xg_boost_job_fields};

static const struct hf_schema_field paddle_job_elastic_policy_fields[] = {
	FIELD("minReplicas", INT32, ONE, "Fewest workers. Default: maxReplicas."),
	FIELD("maxReplicas", INT32, ONE, "Most workers. Default: minReplicas."),
	FIELD("maxRestarts", INT32, ONE, "Passed to the launcher of each pod."),
	FIELD("metrics", RAW, LIST, "Metrics of the HorizontalPodAutoscaler."),
	END,
};
static const struct hf_schema paddle_job_elastic_policy = {"PaddleJobElasticPolicy", paddle_job_elastic_policy_fields};

static const struct hf_schema_field paddle_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "Settings of the job."),
	FIELD_OF("paddleReplicaSpecs", replica_spec, MAP, "Replica types of the job: Master and Worker."),
	FIELD_OF("elasticPolicy", paddle_job_elastic_policy, ONE, "Limits for the number of workers of an elastic job."),
	END,
};
static const struct hf_schema paddle_job_spec = {"PaddleJobSpec", paddle_job_spec_fields};

static const struct hf_schema_field paddle_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", paddle_job_spec, ONE, "The wanted job."),
	FIELD_OF("status", job_status, ONE, "State of the job."),
	END,
};
const struct hf_schema hf_schema_paddle_job = {"PaddleJob", paddle_job_fields};

static const struct hf_schema_field jax_job_spec_fields[] = {
	FIELD_OF("runPolicy", run_policy, ONE, "Settings of the job."),
	FIELD_OF("jaxReplicaSpecs", replica_spec, MAP, "Replica types of the job: Worker."),
	END,
};
static const struct hf_schema jax_job_spec = {"JAXJobSpec", jax_job_spec_fields};

static const struct hf_schema_field jax_job_fields[] = {
	FIELD("apiVersion", STRING, ONE, NULL),
	FIELD("kind", STRING, ONE, NULL),
	FIELD_OF("metadata", hf_schema_object_meta, ONE, NULL),
	FIELD_OF("spec", jax_job_spec, ONE, "The wanted job."),
	FIELD_OF("status", job_status, ONE, "State of the job."),
	END,
};
const struct hf_schema hf_schema_jax_job = {"JAXJob", jax_job_fields};
