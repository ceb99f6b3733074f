/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_JOB_H
#define HF_CORE_JOB_H

#include "base/arena.h"
#include "core/model/status.h"

HF_BEGIN_DECLS

/*
 * A job as the brain reads it: plain structs without JSON.  Module api decodes documents straight
 * into struct hf_job_view; absent fields stay absent.  hf_job_defaults makes the normal form, on
 * which decisions and kinds work.
 */
struct hf_framework;
struct hf_field_error;

struct hf_key_value {
	const char *key;
	const char *value;
};

struct hf_port {
	const char *name; /* name of the container; "": the template gives none */
	int32_t number;   /* containerPort */
};

struct hf_container {
	const char *name;  /* "" when absent */
	const char *image; /* "" when absent */
	const struct hf_port *ports;
	size_t ports_len;
	bool has_command; /* at least one word */
	/* the next fields are filled only if the kind has reads_containers */
	const char *const *env; /* names of variables */
	size_t env_len;
	const char *const *limits; /* names of resources.limits */
	size_t limits_len;
	/* read only with a gang scheduler: resources.requests, else resources.limits */
	const struct hf_key_value *requests;
	size_t requests_len;
};

/* The facts of a pod template that the brain needs.  The template itself stays in the kept
 * document, to which the plan's edits are applied. */
struct hf_template {
	const struct hf_container *containers;
	size_t containers_len;
	const struct hf_container *init_containers;
	size_t init_containers_len;
	/* restartPolicy in the pod template; NULL: absent, as it should be */
	const char *restart_policy;
	const char *scheduler_name;  /* NULL: absent */
	const char *service_account; /* NULL: absent */
	/* Kueue or the user chooses the node: the template has scheduling gate
	 * kueue.x-k8s.io/topology, or a nodeSelector for kubernetes.io/hostname. */
	bool placed;
	bool devices;       /* the template asks for an extended resource or a claim */
	bool shared_claims; /* the template names a ResourceClaim, which other pods may use too */
	struct hf_opt_int termination_grace_seconds;
};

enum hf_restart_policy {
	HF_RESTART_UNSET,
	HF_RESTART_ALWAYS,
	HF_RESTART_ON_FAILURE,
	HF_RESTART_NEVER,
	HF_RESTART_EXIT_CODE,
	HF_RESTART_UNKNOWN, /* any other text: validation refuses it */
};
/* NULL and "" give UNSET. */
enum hf_restart_policy hf_restart_policy_parse(const char *text);
const char *hf_restart_policy_name(enum hf_restart_policy policy); /* "" for UNSET, UNKNOWN */

/* One entry of spec.<kind>ReplicaSpecs. */
struct hf_replica_spec {
	const char *type; /* the key as written */
	bool null;        /* the entry was null */
	struct hf_opt_int replicas;
	const char *restart_policy; /* as written; NULL: absent */
	struct hf_template pod;
};

/* ---- spec.runPolicy.podFailurePolicy ------------------------------------------------ */

enum hf_rule_action {
	HF_RULE_FAIL_JOB,
	HF_RULE_IGNORE,
	HF_RULE_COUNT,
	HF_RULE_RESTART_REPLICA,
	HF_RULE_RESTART_JOB,
	HF_RULE_UNKNOWN,
};
enum hf_rule_action hf_rule_action_parse(const char *text);
const char *hf_rule_action_name(enum hf_rule_action action);

enum hf_rule_operator { HF_RULE_IN, HF_RULE_NOT_IN, HF_RULE_OPERATOR_UNKNOWN };

struct hf_rule_condition {
	const char *type;
	const char *status; /* NULL: "True" */
	const char *reason; /* NULL: any */
};

/* Exactly one of the four on* fields must be present; the has_* bits say which. */
struct hf_rule {
	const char *name; /* NULL: nameless */
	enum hf_rule_action action;
	/* the rule's action as the user wrote it, for the error text */
	const char *action_text;
	const char *const *replica_types; /* empty: all types */
	size_t replica_types_len;
	bool has_replica_types;
	bool has_exit_codes;
	const char *container; /* onExitCodes.containerName; NULL: any */
	enum hf_rule_operator op;
	const int32_t *values;
	size_t values_len;
	bool has_pod_conditions;
	const struct hf_rule_condition *pod_conditions;
	size_t pod_conditions_len;
	bool has_pod_reasons;
	const char *const *pod_reasons;
	size_t pod_reasons_len;
	bool has_device;
	const char *const *device_classes;
	size_t device_classes_len;
};

/* ---- spec.runPolicy.recovery -------------------------------------------------------- */

/* spec.runPolicy.recovery as written.  Validation refuses texts that are not allowed. */
struct hf_recovery_spec {
	const char *restart_scope;                     /* restartScope */
	struct hf_opt_int infrastructure_limit;        /* infrastructureLimit */
	struct hf_opt_int device_limit;                /* deviceLimit */
	struct hf_opt_int backoff_initial_seconds;     /* backoff.initialSeconds */
	struct hf_opt_int backoff_max_seconds;         /* backoff.maxSeconds */
	struct hf_opt_int backoff_reset_after_seconds; /* backoff.resetAfterSeconds */
	struct hf_opt_int incident_seconds;            /* incidentSeconds */
	struct hf_opt_int replace_delay_seconds;       /* replaceDelaySeconds */
	struct hf_opt_int settle_seconds;              /* settleSeconds */
	struct hf_opt_int restart_grace_seconds;       /* restartGraceSeconds */
	struct hf_opt_int node_lost_after_seconds;     /* nodeLost.afterSeconds */
	const char *node_lost_force_delete;            /* nodeLost.forceDelete */
	struct hf_opt_bool node_lost_self_fence;       /* nodeLost.selfFence */
	struct hf_opt_int force_delete_after_seconds;  /* forceDeleteAfterSeconds */
	const char *device_on_unhealthy;               /* device.onUnhealthy */
	struct hf_opt_bool device_avoid;               /* device.avoid */
	struct hf_opt_int progress_deadline_seconds;   /* progressDeadlineSeconds */
	struct hf_opt_int no_progress_limit;           /* noProgressLimit */
	const char *exec;                              /* exec */
	bool has_log_rules;                            /* logRules is there, perhaps empty */
	bool log_rules_fail;                           /* a rule has action FailJob */
	/* All rules as the value of HF_LOG_RULES_ENV; NULL: there are none, or one is wrong. */
	const char *log_rules;
	const struct hf_field_error *log_rule_errors; /* what is wrong with them */
	size_t log_rule_errors_len;
	const char *in_place;                       /* inPlace */
	struct hf_opt_int in_place_limit;           /* inPlaceLimit */
	struct hf_opt_int in_place_wait_seconds;    /* inPlaceWaitSeconds */
	struct hf_opt_int checkpoint_grace_seconds; /* checkpoint.graceSeconds */
	struct hf_opt_int sidecar_grace_seconds;    /* sidecarGraceSeconds */
	const char *pods_after_end;                 /* podsAfterEnd */
};

struct hf_run_policy {
	const char *clean_pod_policy; /* NULL: absent */
	struct hf_opt_int ttl_seconds_after_finished;
	struct hf_opt_int active_deadline_seconds;
	struct hf_opt_int backoff_limit;
	struct hf_opt_bool suspend;
	const char *managed_by; /* runPolicy.managedBy; NULL: absent; "" is a value, not absent */
	/* Fields of schedulingPolicy, used for the pod group if there is a gang scheduler. */
	struct hf_opt_int min_available;
	bool has_min_resources;
	const struct hf_key_value *min_resources;
	size_t min_resources_len;
	const char *queue;
	const char *priority_class;
	struct hf_opt_int schedule_timeout_seconds;
	bool has_pod_failure_policy;
	const struct hf_rule *rules;
	size_t rules_len;
	struct hf_recovery_spec recovery;
};

/* spec.elasticPolicy (PyTorchJob, PaddleJob). */
struct hf_elastic_policy {
	bool present;
	struct hf_opt_int min_replicas;
	struct hf_opt_int max_replicas;
	const char *rdzv_backend;
	struct hf_opt_int rdzv_port;
	const char *rdzv_host;
	const char *rdzv_id;
	bool has_rdzv_conf;
	const struct hf_key_value *rdzv_conf;
	size_t rdzv_conf_len;
	struct hf_opt_bool standalone;
	struct hf_opt_int nproc_per_node; /* deprecated upstream, still honoured */
	struct hf_opt_int max_restarts;
	bool has_metrics; /* asks for an autoscaler */
	/* The metrics by which the autoscaler scales, as JSON, and their digest for the member
	 * HF_AUTOSCALER_METRICS (extra_object.h). */
	const char *metrics;
	uint64_t metrics_digest;
};

/* The operator's settings, which are the same for every job. */
struct hf_settings {
	const char *init_container_image; /* NULL: upstream's alpine:3.10 */
	int init_container_max_tries;     /* 0: upstream's 100 */
	/* the operator was given a template file for the init container, which replaces the
	 * default */
	bool init_container_template;
	/* image of MPIJob's init container; NULL: upstream's default */
	const char *kubectl_image;
	const char *cluster_domain; /* CUSTOM_CLUSTER_DOMAIN; NULL: none */
	/* recovery.exec: Inject.  The image from which an init container copies `holdfast-exec`;
	 * NULL: none is known. */
	const char *exec_image;
	/* The driver that serves the agent's folder as an inline CSI volume; NULL: a hostPath. */
	const char *exec_csi_driver;
	/* The program `holdfast` in the file system of every pod; NULL: the image is needed. */
	const char *exec_program;
	/* The scheduler that pod groups are written for: "volcano" in any case, or the name of a
	 * scheduler that reads scheduler-plugins' PodGroups; NULL: no groups. */
	const char *gang_scheduler;
	bool no_autoscaler; /* no component acts on an autoscaler, so none is created */
	bool no_fence;      /* one machine: its node is never lost, so no pod fences itself */
	/* defaults of the cluster; a field of the job itself has priority */
	struct hf_recovery_spec recovery;
};

struct hf_job_view {
	const struct hf_framework *framework; /* never NULL */
	const struct hf_settings *settings;   /* NULL: all defaults */

	const char *ns; /* metadata.namespace */
	const char *name;
	const char *uid;
	const char *resource_version;
	int64_t object_generation; /* metadata.generation */
	hf_time creation_time;
	hf_time deletion_time;   /* HF_TIME_NONE: not being deleted */
	const char *restart;     /* annotation holdfast.dev/restart; NULL: absent */
	const char *kueue_queue; /* label kueue.x-k8s.io/queue-name; NULL: absent */

	const char *spec; /* digest of the spec without runPolicy; NULL: unknown */
	struct hf_run_policy run_policy;
	bool has_replicas; /* the spec has the map of replica types, possibly empty */
	const struct hf_replica_spec *replicas; /* in any order */
	size_t replicas_len;
	struct hf_elastic_policy elastic;
	const char *nproc_per_node; /* PyTorchJob; NULL: absent */
	const char *success_policy; /* TFJob; NULL: absent */
	bool dynamic_workers;       /* TFJob: enableDynamicWorker */
	struct hf_opt_int slots;    /* MPIJob: slotsPerWorker */
	const char *main_container; /* MPIJob; NULL: absent */
	const char *spec_clean;     /* MPIJob: spec.cleanPodPolicy; NULL: absent */
	/* A part of run_policy comes from an annotation, which the API server has not checked. */
	bool policy_annotated;
	/* why the annotation with run_policy cannot be read; NULL: no problem */
	const char *policy_problem;
	bool ledger_annotated; /* status.ledger is stored in an annotation */

	struct hf_status status; /* as stored */
};

/* ---- the normal form ---------------------------------------------------------------- */

/* Seconds from the moment at which a rank without contact ends itself (nodeLost.selfFence) to the
 * moment at which Holdfast counts it as ended.  The rank needs them to notice and to die. */
#define HF_FENCE_MARGIN_SECONDS 10
/* The shortest fence.  A kubelet renews its Lease every 10 s, and its agent may notice 10 s later,
 * so a shorter fence would end ranks of a healthy cluster. */
#define HF_FENCE_AFTER_SECONDS_MIN 40
/* The exit code of `holdfast exec` when it ends a process because its node has no contact. */
#define HF_FENCED_EXIT_CODE 226
/* The exit code of `holdfast exec` when no order to start came in time. */
#define HF_BARRIER_EXIT_CODE 227
/* A pod with this variable starts its program only when the agent gives the order. */
#define HF_HOLD_ENV "HOLDFAST_HOLD"
/* Which start of its rank a process is. */
#define HF_GENERATION_ENV "HOLDFAST_GENERATION"
#define HF_ATTEMPT_ENV "HOLDFAST_ATTEMPT"
/* How long SIGTERM of the kubelet waits for a save of the ranks. */
#define HF_SAVE_ENV "HOLDFAST_SAVE_SECONDS"
#define HF_FENCE_ENV "HOLDFAST_SELF_FENCE_SECONDS"
/* The rules for the output of a program, one a line. */
#define HF_LOG_RULES_ENV "HOLDFAST_LOG_RULES"
/* The exit code of `holdfast exec` when a rule with action FailJob is broken. */
#define HF_LOG_RULE_FAIL_EXIT_CODE 229

enum hf_scope { HF_SCOPE_REPLICA, HF_SCOPE_JOB };
enum hf_clean { HF_CLEAN_NONE, HF_CLEAN_RUNNING, HF_CLEAN_ALL };

/* cleanPodPolicy.  NULL means None; an unknown text means All, as upstream. */
enum hf_clean hf_clean_parse(const char *text);

/* nodeLost.forceDelete: the evidence that a forced delete of a pod on a lost node requires. */
enum hf_force {
	/* a node that was silent for nodeLost.afterSeconds, or proof that the machine is dead */
	HF_FORCE_PRESUMED,
	HF_FORCE_PROVEN, /* proof that the machine is dead */
	HF_FORCE_NEVER,
};

/* device.onUnhealthy: what follows if a running pod holds a device that is unusable. */
enum hf_on_unhealthy {
	HF_DEVICE_RESTART,
	HF_DEVICE_IGNORE, /* no consequence while the pod runs */
	HF_DEVICE_FAIL,   /* the job fails */
};

/* podsAfterEnd: what happens to pods that cleanPodPolicy keeps when the job fails. */
enum hf_after_end {
	/* pods that have not begun are deleted, the others are stopped and kept */
	HF_AFTER_END_STOP,
	HF_AFTER_END_KEEP, /* pods run on, as under upstream's operator */
};

struct hf_recovery {
	enum hf_scope scope;
	/* how many incidents each budget may be charged; not set: unlimited */
	struct hf_opt_int limits[HF_BUDGETS];
	int64_t backoff_initial_seconds;
	int64_t backoff_max_seconds;
	int64_t backoff_reset_after_seconds;
	int64_t incident_seconds;
	int64_t settle_seconds;
	enum hf_force force;
	int64_t node_lost_after_seconds;
	/* nodeLost.selfFence: seconds without contact after which pods end themselves; 0: never */
	int64_t fence_seconds;
	/* seconds after the pod's own deadline at which a forced delete is allowed */
	int64_t force_delete_after_seconds;
	int64_t replace_delay_seconds;
	struct hf_opt_int progress_deadline_seconds; /* not set: for ever */
	int64_t no_progress_limit;                   /* 0: unlimited */
	bool inject_exec;                            /* exec is Inject */
	bool log_rules_fail;                         /* a rule has action FailJob */
	const char *log_rules;                       /* for HF_LOG_RULES_ENV; NULL: none */
	const struct hf_field_error *log_rule_error; /* the first one; NULL: none */
	/* restarts in place are allowed: inPlace is Auto and inPlaceLimit is not 0 */
	bool in_place;
	int64_t in_place_limit;
	int64_t in_place_wait_seconds;
	/* seconds that ranks get to save a checkpoint; 0: they are not asked to save */
	int64_t checkpoint_grace_seconds;
	struct hf_opt_int sidecar_grace_seconds; /* not set: for ever */
	enum hf_after_end after_end;
	/* at least 1, because 0 would be a forced delete */
	struct hf_opt_int restart_grace_seconds;
	enum hf_on_unhealthy on_unhealthy;
	bool avoid_devices;
};

/* A replica type of this job, with the kind's defaults. */
struct hf_role {
	bool present;
	int32_t replicas;
	enum hf_restart_policy restart;
	const struct hf_template *pod;
	/* index of the container with the kind's name; 0 if none has that name */
	size_t default_container;
	int32_t port;  /* the port that the job's kind defines, in the container above */
	bool add_port; /* the template lacks the kind's port, so an edit adds it */
};

struct hf_job {
	const struct hf_job_view *view;
	const struct hf_framework *framework;
	const struct hf_settings *settings; /* never NULL */
	struct hf_role roles[HF_ROLES_MAX]; /* in the kind's order */
	int32_t ranks;                      /* number of ranks in all roles that the job has */
	struct hf_recovery recovery;
	enum hf_clean clean;
	bool suspend;
	/* the job's elasticPolicy; minReplicas and maxReplicas have values even if the spec lacks them */
	struct hf_elastic_policy elastic;
	/* PyTorchJob's nprocPerNode: "auto" by default, NULL where upstream leaves it unset */
	const char *nproc_per_node;
};

/*
 * Fill in what upstream defaults at each reconcile and never stores: cleanPodPolicy None, replica
 * keys in their canonical case, replicas, restartPolicy and port of the kind, the kind's own
 * fields, and the defaults of `recovery`.  Entries with unknown keys are ignored.  Replicas below
 * 0 count as 0, and beyond HF_RANKS_MAX as HF_RANKS_MAX; validation reports both.  Memory comes
 * from the arena; the view must outlive ret_job.
 */
void hf_job_defaults(const struct hf_job_view *view, struct hf_arena *arena,
		     struct hf_job *ret_job);

HF_END_DECLS

#endif
