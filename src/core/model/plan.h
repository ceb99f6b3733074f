/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_PLAN_H
#define HF_CORE_PLAN_H

#include "base/strbuf.h"
#include "core/model/extra_object.h"
#include "core/model/job.h"

HF_BEGIN_DECLS

/*
 * The plan of a step.  The caller performs it in this order:
 *
 * 1. The status, if status_changed: one patch of the status subresource, guarded by the view's
 * resourceVersion.  If status_urgent, everything below waits until that patch has succeeded, and is
 * dropped on any other outcome: after a conflict, read the job and step again; after a time-out,
 * read it.  A status that is not urgent (a job that begins, that it runs, counts) may wait for some
 * seconds, and nothing waits for it; the step after the stages has it again.
 *
 * 2. Events and metrics, after the status is written.
 *
 * 3. The stages, one after the other.  The actions of a stage may run together.  The next stage
 * starts when every reply is in and good.  A reply that is neither good nor a clear refusal is
 * unknown: read, then step again.
 *
 * 4. The next step, at wake_at or when an observed object changes.
 *
 * The caller also reports what was done, each action or a sum, with upstream's event reasons
 * (SuccessfulCreatePod, FailedDeleteService, SuccessfulDeleteJob, …).
 *
 * Two refusals count as good replies: "not found" for a delete, and "already exists" for a create
 * if the existing object is the wanted one.
 */

/* ---- typed edits of a pod template ------------------------------------------------------ */

enum hf_edit_kind {
	HF_EDIT_LABEL,      /* metadata.labels[name] = value */
	HF_EDIT_ANNOTATION, /* metadata.annotations[name] = value */
	HF_EDIT_ENV, /* append {name, value} to the container's env, behind the user's variables */
	HF_EDIT_ENV_FIELD,      /* append {name, valueFrom.fieldRef.fieldPath: value} */
	HF_EDIT_PORT,           /* append {name, containerPort: number} to ports */
	HF_EDIT_RESTART_POLICY, /* spec.restartPolicy = value */
	HF_EDIT_SCHEDULER_NAME, /* spec.schedulerName = value */
	/* Keep the pod away from node `name`.  number 1, a must: matchFields metadata.name NotIn in
	 * every term of the pod's node affinity.  number 0, a preference: a preferred term of
	 * weight 100. */
	HF_EDIT_AVOID_NODE,
	/* append `add` to spec.initContainers; if `add` is NULL: append the container of the
	 * operator's own template file, expanded for the address `value` */
	HF_EDIT_INIT_CONTAINER,
	HF_EDIT_COMMAND,         /* command = [value] */
	HF_EDIT_COMMAND_BEFORE,  /* put `words` before the words of command, which must be there */
	HF_EDIT_ARGS,            /* args = [value] */
	HF_EDIT_SERVICE_ACCOUNT, /* spec.serviceAccountName = value */
	/* append {name, mountPath: value} to volumeMounts; number 1: readOnly */
	HF_EDIT_MOUNT,
	HF_EDIT_VOLUME_EMPTY, /* append {name, emptyDir: {}} to spec.volumes */
	/* append to spec.volumes {name, configMap: {name: value, items: files}} */
	HF_EDIT_VOLUME_CONFIG,
	/* append to spec.volumes {name, hostPath: {path: value, type: DirectoryOrCreate}} */
	HF_EDIT_VOLUME_HOST,
	/* append to spec.volumes {name, csi: {driver: value, readOnly: true}} */
	HF_EDIT_VOLUME_CSI,
};

/* A container that the operator adds. */
struct hf_container_build {
	const char *name;
	const char *image;
	const char *image_pull_policy;
	const char *const *command;
	size_t command_len;
	const struct hf_key_value *limits; /* resources.limits */
	size_t limits_len;
	const struct hf_key_value *requests; /* resources.requests */
	size_t requests_len;
	const struct hf_key_value *env;
	size_t env_len;
	const struct hf_key_value *mounts; /* of volumes: name, mountPath */
	size_t mounts_len;
	bool restricted; /* a user without rights, as the restricted Pod Security Standard asks */
};

/* An item of a ConfigMap, mounted as a file of the same name. */
struct hf_config_file {
	const char *name;
	int32_t mode; /* 0555 */
};

#define HF_EDIT_EVERY_CONTAINER (-1)
struct hf_edit {
	enum hf_edit_kind kind;
	/* ENV*, PORT, COMMAND*, ARGS, MOUNT: the container's index in spec.containers, or
	 * HF_EDIT_EVERY_CONTAINER */
	int container;
	const char *name;
	const char *value;
	int32_t number; /* PORT, AVOID_NODE, MOUNT */
	const struct hf_container_build *add;
	const struct hf_config_file *files; /* VOLUME_CONFIG */
	size_t files_len;
	const char *const *words; /* COMMAND_BEFORE */
	size_t words_len;
};

/* ---- actions ------------------------------------------------------------------------------ */

enum hf_action_kind {
	HF_ACTION_CREATE_POD, /* the role's template with the edits applied in order */
	HF_ACTION_DELETE_POD,
	HF_ACTION_CREATE_SERVICE,
	HF_ACTION_DELETE_SERVICE,
	HF_ACTION_DELETE_JOB, /* propagation is Foreground; refused if the job has changed */
	/* Set the pod's phase to Failed and add condition holdfast.dev/NodeLost with `message`, in
	 * one patch.  Refused if uid or resource_version has changed. */
	HF_ACTION_FAIL_POD,
	/* Set the pod's spec.activeDeadlineSeconds to 1 and its annotation holdfast.dev/stopped to
	 * `message`.  The kubelet then ends the containers, and the object stays.  Refused if uid
	 * has changed. */
	HF_ACTION_STOP_POD,
	HF_ACTION_CREATE_EXTRA,
	/* replace the members that the object's kind compares by the wanted ones */
	HF_ACTION_UPDATE_EXTRA,
	HF_ACTION_DELETE_EXTRA,
};
const char *hf_action_name(enum hf_action_kind kind); /* "create pod", … */

struct hf_action {
	enum hf_action_kind kind;
	const char *name; /* the object's name; the object is in the job's namespace */

	const struct hf_extra *extra; /* *_EXTRA */

	/* for deletes and updates: preconditions, and the grace in seconds (not set: the object's
	 * own) */
	const char *uid;              /* always set */
	const char *resource_version; /* NULL: not a precondition */
	/* 0 is a forced delete: the API server removes the object at once */
	struct hf_opt_int grace_seconds;
	const char *message; /* FAIL_POD, STOP_POD */

	/* for creates: the job is the controller in ownerReferences, with blockOwnerDeletion */
	int role;
	int32_t index;
	const struct hf_edit *edits; /* pods */
	size_t edits_len;
	/* for services, which are headless: both the labels and the selector */
	const struct hf_key_value *labels;
	size_t labels_len;
	const struct hf_port *ports; /* services */
	size_t ports_len;
};

struct hf_stage {
	const struct hf_action *actions;
	size_t actions_len;
};
#define HF_STAGES_MAX 4

/* ---- words for people --------------------------------------------------------------------- */

struct hf_plan_event {
	bool warning; /* type Warning, else Normal */
	const char *reason;
	const char *message;
	const char *pod; /* the pod that the event is about; NULL: the event is about the job */
	const char *pod_uid;
};

/* An object that the brain needs to know and that the caller does not watch.  The caller reads it
 * soon, and steps again after a change.  As long as plans ask for it, the caller reads a Lease and a
 * Node again every few seconds; a claim is read once.  A
 * node is asked for only if it carries pods of the job. */
enum hf_ask_kind {
	HF_ASK_LEASE, /* the node's Lease */
	HF_ASK_NODE,  /* a live GET of a node that is gone or out of service */
	HF_ASK_CLAIM, /* a PersistentVolumeClaim of the job's namespace */
};
struct hf_ask {
	enum hf_ask_kind kind;
	const char *name;
};

enum hf_metric {
	HF_METRIC_CREATED, /* training_operator_jobs_created_total */
	/* never in a plan; counted when the API server has confirmed the delete of a job */
	HF_METRIC_DELETED,
	HF_METRIC_SUCCESSFUL,
	HF_METRIC_FAILED,
	HF_METRIC_RESTARTED,
	HF_METRIC_RESTARTS, /* holdfast_job_restarts_total{cause, scope}: see the plan's fields */
	/* holdfast_stray_evictions_total: a taint's timer deleted a replacement */
	HF_METRIC_STRAYS,
	/* holdfast_force_deletes_total{reason}: Proven, Presumed */
	HF_METRIC_FORCED_PROVEN,
	HF_METRIC_FORCED_PRESUMED,
	HF_METRICS,
};

enum hf_topic {
	HF_TOPIC_EVIDENCE, /* the facts that were seen */
	HF_TOPIC_CLASS,    /* the class of the termination */
	HF_TOPIC_RULE,     /* the rule or policy that applied */
	HF_TOPIC_DECISION,
	HF_TOPIC_BUDGET,
	HF_TOPIC_DONE,    /* what earlier steps did, as the records of the ledger say */
	HF_TOPIC_BLOCKED, /* what a pod or the whole job waits for */
	HF_TOPIC_NEXT,    /* what will happen, and when */
};
const char *hf_topic_name(enum hf_topic topic); /* "evidence", … */

/* One line of `holdfast why`.  The oldest line comes first. */
struct hf_reason {
	hf_time time;
	enum hf_topic topic;
	const char *text;
};
/* The most lines of one plan.  A thousand ranks that wait for the same thing give one line. */
#define HF_REASONS_MAX 64

struct hf_plan {
	struct hf_status status; /* the whole status as it should be stored */
	bool status_changed;
	bool status_urgent;

	struct hf_stage stages[HF_STAGES_MAX];
	size_t stages_len;

	const struct hf_plan_event *events;
	size_t events_len;
	int32_t metrics[HF_METRICS]; /* to add */
	enum hf_class restart_cause; /* labels of HF_METRIC_RESTARTS */
	enum hf_scope restart_scope;

	hf_time wake_at;           /* HF_TIME_NEVER: only after a change */
	const struct hf_ask *asks; /* objects to read, each once, sorted by kind and name */
	size_t asks_len;

	const char *left;    /* a text on the pods of an ended job that run on; NULL: no pod does */
	const char *summary; /* one sentence: "Restarting for 12s: worker-3 …" */
	const struct hf_reason *reasons;
	size_t reasons_len;
};

/* Actions of all stages together. */
size_t hf_plan_actions(const struct hf_plan *plan);

HF_END_DECLS

#endif
