/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_FRAMEWORK_H
#define HF_CORE_FRAMEWORK_H

#include "core/model/field.h"
#include "core/model/plan.h"

HF_BEGIN_DECLS

/*
 * The table of a kind of job (PyTorchJob, TFJob, …): all that differs between two kinds.
 *
 * Everything else (restarts, budgets, suspend, conditions, …) is the same for all kinds and lives
 * in core.  A new kind is one file with one table; src/framework/README.md explains how to write
 * it.
 *
 * Optional functions may be NULL.  All functions are pure; their memory comes from the arena given.
 */

struct hf_role_type {
	const char *name; /* "Master": the canonical spelling, used as key and in condition texts */
	int32_t default_replicas; /* default of spec's replicas */
};

/* The most bytes of an environment variable's value: Linux limits name and value together to 128
 * KiB (MAX_ARG_STRLEN). */
#define HF_ENV_VALUE_MAX ((size_t)127 << 10)

/* Edits collected for one pod. */
struct hf_edits {
	struct hf_arena *arena;
	struct hf_edit *items; /* grown in the arena */
	size_t len;
	size_t cap;
	size_t bytes; /* bytes of its long texts: values of variables, names of nodes */
	/* The text that names all ranks, for the variables of every pod.  It grows with the number
	 * of ranks, so it is made with the first pod of a step and kept here, in the arena; NULL at
	 * first. */
	const char **shared;
};
/* shared outlives the edits. */
void hf_edits_init(struct hf_edits *edits, const char **shared, struct hf_arena *arena);
void hf_edits_add(struct hf_edits *edits, const struct hf_edit *edit);
/* Append an environment variable to one container, or to every container.  A value longer than
 * HF_ENV_VALUE_MAX is cut, so the caller must check its length. */
void hf_edits_env(struct hf_edits *edits, int container, const char *name, const char *fmt, ...)
	HF_PRINTF(4, 5);
/* Like hf_edits_env, with a value that is not copied: it must live as long as the arena. */
void hf_edits_env_text(struct hf_edits *edits, int container, const char *name, const char *value);

/* The rank of the pod that an edit list changes, and the numbers of the pod's stamps. */
struct hf_rank {
	int role;
	int32_t index;
	int64_t generation;
	int64_t attempt;
	int64_t incident;
};

/* The replicaStatuses of a role. */
struct hf_counts {
	int32_t active;
	int32_t succeeded;
	int32_t failed;
	bool first_succeeded; /* the rank with index 0 has succeeded (used by TFJob) */
};

/* The kind's judgement of the counts. */
struct hf_judgement {
	bool running;                  /* its rule for Running=True holds */
	bool succeeded;                /* its rule for Succeeded=True holds */
	const char *running_message;   /* always set */
	const char *succeeded_message; /* always set */
};

struct hf_framework {
	const char *api_version;    /* "kubeflow.org/v1" */
	const char *group;          /* "kubeflow.org" */
	const char *version;        /* "v1" */
	const char *kind;           /* "PyTorchJob" */
	const char *plural;         /* "pytorchjobs" */
	const char *singular;       /* "pytorchjob" */
	const char *replicas_key;   /* "pytorchReplicaSpecs" */
	const char *container_name; /* "pytorch": the default container */
	const char *port_name;      /* "pytorchjob-port" */
	int32_t port_number;
	bool inject_port;  /* if the template lacks the kind's port, add the port */
	bool has_services; /* one headless service per replica */
	enum hf_restart_policy default_restart;
	/* "pytorchjob-controller": label operator-name, event source */
	const char *controller_name;
	const char *metrics_name; /* "pytorch" */
	/* the job has the subresource /scale for `scale_role`, and replicaStatuses a selector */
	bool has_scale;
	int scale_role;
	struct hf_role_type roles[HF_ROLES_MAX]; /* the order of everything: status, creates */
	int roles_len;
	/* Sets of roles, as bits.  single_roles: the role has at most one rank; its pod is called
	 * "<job>-<type>" and has no label replica-index.  given_commands: if the first container
	 * has no command, `pod` adds one. */
	unsigned single_roles, given_commands;
	/* Bits by role: recovery.exec leaves its pods alone, because other pods start programs there. */
	unsigned no_exec_roles;

	/* The name of the init container that `pod` adds to ranks that wait for another role, and
	 * the index of the awaited role.  NULL: the kind adds no init container. */
	const char *init_container;
	int awaited_role;

	bool no_finalizers; /* the pods do not get the finalizers of their template */
	bool any_name;      /* job names need not be DNS labels, because the kind has no services */
	bool any_type;      /* the keys of replica types may be written in any case */
	bool reads_containers; /* the brain reads env and limits of the containers */
	unsigned extra_kinds;  /* HF_EXTRA_BIT of each kind of object that `extras` may add */
	unsigned rare_kinds;   /* kinds of extra_kinds that few jobs use; all of them are aside */
	/* reason of condition Failed if replicas failed; NULL: "<Kind>Failed" */
	const char *failed_reason;
	/* Reason of the event that a template sets a restart policy itself; NULL:
	 * SetPodTemplateRestartPolicy. */
	const char *template_restart_reason;
	/* Reason of the event that a template names a scheduler itself; NULL:
	 * SetPodTemplateSchedulerName. */
	const char *template_scheduler_reason;
	/* Reason of the event that the name of a rank is taken; NULL: "FailedCreatePod" and the
	 * like. */
	const char *taken_reason;

	/* Check the kind's own rules, after core's common rules; field paths and words are
	 * upstream's. */
	void (*validate)(const struct hf_job_view *view, struct hf_field_errors *errors);
	/* The kind's own defaults, after core's. */
	void (*defaults)(struct hf_arena *arena, struct hf_job *job);
	/* Add environment, init containers and the like to the edits of a pod.  Fails with
	 * HF_E_INVALID if the spec lacks something; then no pod is created. */
	int (*pod)(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		   struct hf_error *err);
	/* Label job-role=master. */
	bool (*is_master)(const struct hf_job *job, const struct hf_rank *rank);
	/* counts: one per role. */
	void (*judge)(const struct hf_job *job, const struct hf_counts *counts,
		      struct hf_arena *arena, struct hf_judgement *ret_judgement);
	/* Optional: add the objects that the job needs besides pods and services.  They are created
	 * before the pods.  For a suspended or finished job, the function marks the objects to
	 * delete. */
	void (*extras)(const struct hf_job *job, const struct hf_ranks_seen *seen,
		       struct hf_extras *extras);
	/* Optional: true if a termination in this role does not fail the job; its pod stays as it
	 * is. */
	bool (*outlives)(const struct hf_job *job, int role);
	/* Optional: true if an elastic job trains on although some of its ranks are missing. */
	bool (*goes_on)(const struct hf_job *job, const struct hf_counts *counts);
	/* Optional: upstream's text for a job that failed because of n replicas of this role;
	 * NULL: "<Kind> <name> is failed because <n> <Type> replica(s) failed." */
	const char *(*failed_message)(const struct hf_job *job, int role, int32_t failed,
				      struct hf_arena *arena);
};

/* Whether a set of roles, as bits, has the role. role -1: no role. */
static inline bool hf_has_role(unsigned roles, int role)
{
	return role >= 0 && (roles >> role & 1u) != 0;
}

/* Add all extra objects of a job: those of its kind, and the pod group if there is a gang
 * scheduler. */
void hf_job_extras(const struct hf_job *job, const struct hf_ranks_seen *seen,
		   struct hf_extras *extras);
/* HF_EXTRA_BIT of each possible kind. */
unsigned hf_extra_kinds(const struct hf_framework *framework, const struct hf_settings *settings);

/* The index of the replica type, spelled in any case ("worker", "Worker"); -1: no such type. */
int hf_framework_role(const struct hf_framework *framework, const char *type);

/* The index of the first container with the kind's name; 0: none has that name. */
size_t hf_framework_container(const struct hf_framework *framework, const struct hf_template *pod);

/* The name of a rank's pod and service: "<job>-<type>-<index>", or "<job>-<type>" for a single
 * role. */
const char *hf_framework_pod_name(const struct hf_framework *framework, int role,
				  struct hf_arena *arena, const char *job, int64_t index);

/* The replica specs in an order that does not depend on the document: known types in the kind's
 * order, then the others by name.  The list has view->replicas_len elements, in the arena. */
const struct hf_replica_spec *const *hf_job_replicas(const struct hf_job_view *view,
						     struct hf_arena *arena);

/*
 * Check every rule of a job that is created or updated, upstream's rules first: the name
 * (DNS-1035), the replica map, managedBy, the kind's own rules, then podFailurePolicy and recovery.
 *
 * old: the stored job on update (managedBy must not change); NULL on create.  The view is checked
 * as written, before defaults are applied, as in upstream's webhook.
 */
void hf_job_validate(const struct hf_job_view *view, const struct hf_job_view *old,
		     struct hf_field_errors *errors);
/* Check podFailurePolicy and recovery alone. */
void hf_job_validate_additions(const struct hf_job_view *view, struct hf_field_errors *errors);

/* The problem of a job name that is too long for the services of its ranks, although the API
 * accepts it; NULL: no problem. */
const char *hf_job_unnameable(const struct hf_job_view *view, struct hf_arena *arena);

HF_END_DECLS

#endif
