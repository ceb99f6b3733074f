/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_FRAMEWORK_H
#define HF_CORE_FRAMEWORK_H

#include "core/model/field.h"
#include "core/model/plan.h"

HF_BEGIN_DECLS

/*
 * The difference between two kinds of job is a const table.  Everything else (restarts, budgets,
 * suspend, conditions, …) is the same for all kinds and lives in core.  A new kind is one file
 * with one table; src/framework/README.md walks through it.
 *
 * Optional functions may be NULL.  All functions are pure; their memory comes from the arena
 * given.
 */

struct hf_role_type {
	const char *name;         /* "Master": canonical case, key and condition texts */
	int32_t default_replicas; /* default of spec's replicas */
};

/* The longest value of a variable: Linux limits name and value to 128 KiB (MAX_ARG_STRLEN). */
#define HF_ENV_VALUE_MAX ((size_t)127 << 10)

/* Edits collected for one pod. */
struct hf_edits {
	struct hf_arena *arena;
	struct hf_edit *items; /* grown in the arena */
	size_t len;
	size_t cap;
	size_t bytes; /* of long texts: values of variables, names of nodes */
	/* The text that tells every rank of all others grows with the ranks.  It is made with the
	 * first pod of a step and kept here, in the arena; NULL at first. */
	const char **shared;
};
/* shared outlives the edits. */
void hf_edits_init(struct hf_edits *edits, const char **shared, struct hf_arena *arena);
void hf_edits_add(struct hf_edits *edits, const struct hf_edit *edit);
/* Append an environment variable to one container, or to every container.  A longer value than
 * HF_ENV_VALUE_MAX is cut, so the caller checks the length. */
void hf_edits_env(struct hf_edits *edits, int container, const char *name, const char *fmt, ...)
	HF_PRINTF(4, 5);
/* The same with a value that is not copied: the value must live as long as the arena. */
void hf_edits_env_text(struct hf_edits *edits, int container, const char *name, const char *value);

/* The rank that an edit list is for. */
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
	bool first_succeeded; /* the pod with index 0 has succeeded (TFJob) */
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
	bool inject_port;  /* add the port if the template lacks it */
	bool has_services; /* one headless service per replica */
	enum hf_restart_policy default_restart;
	const char
		*controller_name; /* "pytorchjob-controller": label operator-name, event source */
	const char *metrics_name; /* "pytorch" */
	bool has_scale;           /* /scale on the role below, and a selector in replicaStatuses */
	int scale_role;
	struct hf_role_type roles[HF_ROLES_MAX]; /* the order of everything: status, creates */
	int roles_len;
	/* Bits by role.  Single: there is one at most, its pod is called "<job>-<type>" and has no
	 * label replica-index.  Given: a first container without a command gets one from `pod`. */
	unsigned single_roles, given_commands;

	/* The init container that `pod` adds to ranks that wait for another role, and the index of
	 * that role.  NULL: no such container. */
	const char *init_container;
	int awaited_role;

	bool no_finalizers; /* pods do not get the template's finalizers */
	bool any_name; /* every name that an API server takes, because there are no services; else a DNS label */
	bool any_type;             /* the keys of replica types are read in any case */
	bool reads_containers;     /* env, limits and command of containers are read */
	unsigned extra_kinds;      /* HF_EXTRA_BIT of every kind that `extras` may name */
	unsigned rare_kinds;       /* the rare kinds among extra_kinds; each of them is aside */
	const char *failed_reason; /* of the condition when replicas failed; NULL: "<Kind>Failed" */
	/* Of the event about a template's own restart policy; NULL: SetPodTemplateRestartPolicy. */
	const char *template_restart_reason;
	/* Of the event about a template's own scheduler; NULL: SetPodTemplateSchedulerName. */
	const char *template_scheduler_reason;
	/* Reason of the event when a name is taken; NULL: "FailedCreatePod" and the like. */
	const char *taken_reason;

	/* The kind's own rules, after core's common ones; paths and words are upstream's. */
	void (*validate)(const struct hf_job_view *view, struct hf_field_errors *errors);
	/* The kind's own defaults, after core's. */
	void (*defaults)(struct hf_arena *arena, struct hf_job *job);
	/* Environment, init containers and the like.  Fails with HF_E_INVALID if the spec lacks
	 * something; then no pod is created. */
	int (*pod)(const struct hf_job *job, const struct hf_rank *rank, struct hf_edits *edits,
		   struct hf_error *err);
	/* Label job-role=master. */
	bool (*is_master)(const struct hf_job *job, const struct hf_rank *rank);
	/* counts: one per role. */
	void (*judge)(const struct hf_job *job, const struct hf_counts *counts,
		      struct hf_arena *arena, struct hf_judgement *ret_judgement);
	/* Optional: the objects that the job needs beside pods and services.  Pods are created
	 * after them.  For a job that is not active, the function marks the objects to remove. */
	void (*extras)(const struct hf_job *job, const struct hf_ranks_seen *seen,
		       struct hf_extras *extras);
	/* Optional: a termination in this role does not fail the job; the pod stays as it is. */
	bool (*outlives)(const struct hf_job *job, int role);
	/* Optional: the job goes on training although active ranks are missing (elastic). */
	bool (*goes_on)(const struct hf_job *job, const struct hf_counts *counts);
	/* Optional: upstream's text for a job that failed because of n replicas of this role;
	 * NULL: "<Kind> <name> is failed because <n> <Type> replica(s) failed." */
	const char *(*failed_message)(const struct hf_job *job, int role, int32_t failed,
				      struct hf_arena *arena);
};

/* All extra objects of a job: its kind's, and the pod group if there is a gang scheduler. */
void hf_job_extras(const struct hf_job *job, const struct hf_ranks_seen *seen,
		   struct hf_extras *extras);
/* HF_EXTRA_BIT of each possible kind. */
unsigned hf_extra_kinds(const struct hf_framework *framework, const struct hf_settings *settings);

/* The index of the type in any case ("worker", "Worker"), or -1. */
int hf_framework_role(const struct hf_framework *framework, const char *type);

/* The name of a rank's pod and service: hf_replica_name, or without the index. */
const char *hf_framework_pod_name(const struct hf_framework *framework, int role,
				  struct hf_arena *arena, const char *job, int64_t index);

/* The replica specs in an order that does not depend on the document: known types in the kind's
 * order, the rest by name.  view->replicas_len elements, in the arena. */
const struct hf_replica_spec *const *hf_job_replicas(const struct hf_job_view *view,
						     struct hf_arena *arena);

/*
 * Check every rule of a job at create and update, upstream's first: the name (DNS-1035), the
 * replica map, managedBy, the kind's own rules, then runPolicy's new fields.  old: the stored
 * object on update, where managedBy must not change; NULL on create.  The view is checked as
 * written, before defaulting, as in upstream's webhook.
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
