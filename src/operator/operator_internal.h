/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_OPERATOR_INTERNAL_H
#define HF_OPERATOR_OPERATOR_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "ctl/cache.h"
#include "ctl/queue.h"
#include "ctl/recorder.h"
#include "operator/facts_internal.h"
#include "operator/operator.h"
#include "operator/startups_internal.h"

/* --- clock.c: API-server time ------------------------------------------------------------- */

struct hf_server_clock {
	bool known;
	hf_time offset; /* server time minus monotonic, as far as told */
	hf_time last;   /* what was given out last: never less after */
};
/* A reply with that Date arrived when our clocks read mono and wall.  true: the estimate jumped, so
 * that what was planned by the old one is to be planned again. */
bool hf_server_clock_hear(struct hf_server_clock *clock, hf_time server_time, hf_time mono,
			  hf_time wall);
/* wall is taken as long as no server was heard. */
hf_time hf_server_clock_now(struct hf_server_clock *clock, hf_time mono, hf_time wall);

/* --- view.c: what the cache keeps of pods and services ------------------------------------ */

/* One block of memory, shared by passes: some 200 bytes for a pod, all of it packed but what caches
 * and indexes look at. */
struct hf_view {
	unsigned refs;
	uint32_t record;            /* where in bytes the rest begins */
	const char *controller_uid; /* of the controller ownerReference; NULL: none */
	const char *node;           /* as in struct hf_pod */
	hf_time news_at;            /* as in struct hf_pod, but on the monotonic clock */
	hf_time unwell_at;          /* likewise */
	hf_time own_ended_at;       /* likewise */
	unsigned char bytes[];
};
struct hf_view *hf_view_of_pod(struct hf_doc *doc, struct hf_arena *scratch);
struct hf_view *hf_view_of_service(struct hf_doc *doc, struct hf_arena *scratch);
/* Texts are the view's, lists come from the arena.  owned: it has a controller; whose is decided by
 * the step. */
void hf_view_pod(const struct hf_view *view, struct hf_arena *arena, struct hf_pod *ret_pod);
void hf_view_service(const struct hf_view *view, struct hf_service_seen *ret_service);
struct hf_view *hf_view_of_extra(struct hf_doc *doc, enum hf_extra_kind kind,
				 struct hf_arena *scratch);
void hf_view_extra(const struct hf_view *view, struct hf_extra_seen *ret_seen);
/* For two views of one pod that has not ended: a step sees the same in both. Not compared are
 * resourceVersion and conditions that no decision about such a pod reads. */
bool hf_view_is_same_pod(const struct hf_view *a, const struct hf_view *b,
			 struct hf_arena *scratch);
struct hf_view *hf_view_ref(struct hf_view *view);
void hf_view_unref(void *view);

/* --- observe.c: what a step sees ----------------------------------------------------------- */

/* The job's pods, services and nodes as the caches have them.  Views taken into it are
 * referenced and pushed onto views (may be NULL: then they are borrowed). */
struct hf_views {
	struct hf_view **items;
	size_t len, cap, len_max;
};
void hf_views_release(struct hf_views *views);

struct hf_job_state;
struct hf_observe_args {
	const struct hf_cache *pods, *services;
	/* By enum hf_extra_kind; looked at where the job's table has the kind. */
	const struct hf_cache *extras[HF_EXTRA_KINDS];
	const struct hf_job_state *state; /* NULL: nothing is remembered */
	const struct hf_job_view *job;
	hf_time now;
	/* NULL, or none in it: the kubelet is part of this process, every node is alive now. */
	const struct hf_facts *facts;
	hf_time mono;    /* with facts: the same instant */
	const char *key; /* with facts: of the job */
};
void hf_observe(const struct hf_observe_args *args, struct hf_arena *arena, struct hf_views *views,
		struct hf_observed *ret_seen);

/* --- render.c: documents ------------------------------------------------------------------- */

struct hf_render_args {
	struct hf_doc *job;
	const struct hf_framework *framework;
	const struct hf_settings *settings;
	const char *init_container_template; /* NULL: none */
};
/* HF_E_INVALID: the template is missing or no object, or an edit names a container that is not
 * there. */
int hf_render_pod(const struct hf_render_args *args, const struct hf_action *action,
		  struct hf_doc **ret_pod, struct hf_error *err) HF_MUST_CHECK;
struct hf_doc *hf_render_service(const struct hf_render_args *args, const struct hf_action *action);
struct hf_doc *hf_render_extra(const struct hf_render_args *args, const struct hf_action *action);
/* The list in a template text, expanded for this address. */
int hf_render_init_containers(const char *text, const char *address,
			      const struct hf_settings *settings, struct hf_json **ret_list,
			      struct hf_error *err) HF_MUST_CHECK;

/* --- status.c ------------------------------------------------------------------------------ */

/* The merge patch that makes the plan's status of what is stored, with its resourceVersion;
 * NULL: there is nothing to write. */
struct hf_doc *hf_status_patch(struct hf_doc *job, const struct hf_framework *framework,
			       const struct hf_status *status);
/* The strategic merge patch of a pod's status that HF_ACTION_FAIL_POD asks for: conditions of
 * others stay. */
struct hf_doc *hf_fail_pod_patch(const struct hf_action *action, hf_time now);
/* The merge patch of a pod that HF_ACTION_STOP_POD asks for.  1 is the least that an API server takes,
 * and has passed for every pod that runs. */
#define HF_STOP_DEADLINE_SECONDS 1
struct hf_doc *hf_stop_pod_patch(const struct hf_action *action);
/* Whether the object in the reply holds all that was sent. */
bool hf_status_arrived(struct hf_doc *patch, struct hf_doc *reply);

/* --- the operator -------------------------------------------------------------------------- */

/* A kind that is watched.  Jobs are kept as documents, pods and services as views. */
struct hf_kind {
	struct hf_operator *op;
	const struct hf_framework *framework; /* NULL: pods, services, extra objects */
	const struct hf_resource *resource;
	struct hf_cache *cache;
	struct hf_cache *crd; /* of its CRD; NULL: it is not watched */
	bool running;         /* its jobs are known and worked on */
	bool missing;         /* the cluster does not know it, which was told */
	bool crd_unseen;      /* we may not look at it */
	bool narrow;          /* it does not keep the ledger (narrow_schema_internal.h) */
	bool was_narrow;      /* since this process began */
	bool keeps;           /* a reply showed that it does */
	bool narrow_told;
	hf_time wide_since;          /* monotonic; the schema says so; HF_TIME_NONE: it does not */
	struct hf_timer *wide_timer; /* it has said so long enough */
	enum hf_extra_kind extra;    /* of extra objects */
	bool started;                /* extra objects: they are watched */
};
#define HF_KINDS_MAX 8

/* Digests of what was last written to an extra object, and of what the server made of it. */
struct hf_settled {
	uint64_t wanted, seen;
};

/* What is remembered of a job between passes. */
struct hf_job_state {
	hf_time status_written; /* monotonic; HF_TIME_NONE: not by this process */
	hf_time status_gap;     /* until the next one that may wait */
	hf_time status_owed;    /* since when there is one to write that may wait; or NONE */
	hf_time starting_since; /* ranks are missing or not running yet since then; or NONE */
	hf_time success_due;    /* of the last step for ranks that have succeeded; or NONE */
	size_t size;            /* pods and services at the last step */
	/* Since its status was written or it was read live. */
	size_t pods_made, services_made;
	struct hf_pass *pass; /* NULL: none is running */
	bool unsure;          /* a write may have been done that nobody has read since */
	bool routine_owed;    /* routine changes came while the pass ran */
	char *looked; /* the version of the job that was read live for its ledger; or NULL */
	struct hf_settled settled[HF_EXTRA_KINDS];
};

/* Indexes of the pods' cache; the second one only where nodes are watched. */
enum { HF_PODS_BY_OWNER, HF_PODS_BY_NODE };

struct hf_operator_metrics {
	struct hf_family *jobs[HF_METRICS]; /* by enum hf_metric */
	struct hf_family *reconcile, *reconcile_errors, *reconcile_time;
	struct hf_family *active_workers, *workers_max;
	struct hf_family *steps, *status_patches, *status_conflicts;
	struct hf_family *states, *watch_events, *relists, *cache_objects;
	struct hf_family *queue_depth, *queue_adds, *queue_retries, *events_dropped;
	struct hf_family *queue_wait, *queue_work, *queue_unfinished, *queue_longest;
	struct hf_family *recovery_time, *start_time;
	struct hf_family *crd_narrow, *crd_missing;
	struct hf_family *nodes_lost, *node_loss_guard;
	/* One series a job. */
	struct hf_family *job_info, *job_condition, *job_productive, *job_downtime;
	/* What was added to counters that are kept elsewhere: they begin anew with each operator,
	 * the metrics do not. */
	struct hf_cache_stats told[HF_KINDS_MAX + 2 + HF_EXTRA_KINDS];
	struct hf_queue_stats told_queue;
	uint64_t told_events_dropped;
};

struct hf_gate {
	struct hf_pass *first, **last;
};

struct hf_operator {
	struct hf_operator_options options;
	char *ns, *init_container_template;
	struct hf_loop *loop;
	struct hf_store *store;
	struct hf_kind kinds[HF_KINDS_MAX];
	size_t n_kinds;
	struct hf_kind pods, services;
	struct hf_kind extras[HF_EXTRA_KINDS]; /* watched from the first job on that has any */
	struct hf_facts facts;
	struct hf_controller *companion; /* NULL: none */
	/* Set by operator.c: begins the kinds whose objects are known. */
	void (*check_synced)(struct hf_operator *op);
	struct hf_queue *queue;
	struct hf_recorder *recorder;
	struct hf_map *job_keys; /* uid → key of the job (char *) */
	struct hf_map *states;   /* key → struct hf_job_state */
	struct hf_map *ending;   /* namespaces that are being deleted, as far as was told */
	struct hf_arena *scratch;
	struct hf_server_clock clock;
	struct hf_operator_metrics metrics;
	bool running; /* pods, services and jobs of some kind are known */

	/* The gates: passes that have a request to send, first come first served, and nobody
	 * through the second while somebody waits at the first. */
	struct hf_gate gates[2];
	size_t in_flight, in_flight_max;
	bool in_gate;     /* the gate is being worked on */
	bool own_write;   /* what the job's cache takes in now is our status and nothing else */
	bool own_routine; /* ... and it was a routine one: nothing waits for it */
	struct hf_startups startups;
	double tokens; /* requests that may be sent now, where there is a rate */
	hf_time tokens_at;
	struct hf_timer *gate_timer; /* when the next one may */

	bool stopping;
	struct hf_task *stopped_task;
	struct hf_timer *stop_timer; /* how long events may take to be sent */
	hf_task_fn stopped;
	void *stopped_arg;
};

void hf_operator_problem(struct hf_operator *op, const char *key, int code, const char *message);
/* Takes a key such as "pytorchjobs/ns/name" apart. ret_name is the end of key. NULL: no kind has that
 * plural. */
struct hf_kind *hf_kind_of_key(struct hf_operator *op, const char *key, char **ret_ns,
			       const char **ret_name);
/* Every reply passes here first: its Date sets the clock. */
void hf_operator_heard(struct hf_operator *op, const struct hf_reply *reply);
/* kinds.c: begin with every kind that can be begun with; called whenever a cache is filled. */
void hf_operator_check_synced(struct hf_operator *op);
void hf_operator_enqueue_kind(struct hf_kind *kind);
/* The jobs that may want a name: a stranger's object may hold or free "<job>-<type>-<index>", or a
 * name with one word behind the job's. */
void hf_operator_each_by_name(struct hf_operator *op, const char *ns, const char *name,
			      void (*fn)(void *arg, const struct hf_kind *kind,
					 const struct hf_cache_entry *job),
			      void *arg);
void hf_operator_enqueue_by_name(struct hf_operator *op, const char *ns, const char *name);
char *hf_operator_job_key(const struct hf_kind *kind, const char *ns, const char *name);
/* Step the job: at once, as soon as its size allows, or in so long. */
void hf_operator_enqueue_now(struct hf_operator *op, const char *key);
void hf_operator_enqueue(struct hf_operator *op, const char *key);
void hf_operator_enqueue_after(struct hf_operator *op, const char *key, hf_time delay);
/* Step the job when the ranks that succeed with this one have done so. */
void hf_operator_enqueue_success(struct hf_operator *op, const char *key);
/* Step the job when changes that decide nothing alone have gathered. */
void hf_operator_enqueue_routine(struct hf_operator *op, const char *key);
/* How long what nobody waits for is left to gather: the longer, the more jobs wait for a pass. */
hf_time hf_operator_gather_time(const struct hf_operator *op);
/* A namespace that is being deleted never comes back as what it was: one that gets a new job is
 * another.  All jobs in it are on their way out, though some may not be marked yet. */
void hf_operator_namespace_ends(struct hf_operator *op, const char *ns);
bool hf_operator_is_ending(const struct hf_operator *op, const char *ns);
/* Called when a reply came in while stopping. */
void hf_operator_check_stopped(struct hf_operator *op);

/* --- extras.c: ConfigMaps and the like --------------------------------------------------- */

const struct hf_resource *hf_extra_resource(enum hf_extra_kind kind);
/* Begin to watch this kind, unless it is watched. */
void hf_extras_start_kind(struct hf_operator *op, enum hf_extra_kind kind);
/* The job's kind has some: begin to watch those that are not watched yet. */
void hf_extras_start(struct hf_operator *op, const struct hf_framework *framework);
/* This job has one of those that few have. */
void hf_extras_start_rare(struct hf_operator *op, const struct hf_job_view *job);
/* The server has answered a create or a change with this object. */
void hf_extras_settle(struct hf_job_state *state, const struct hf_extra *extra,
		      struct hf_doc *object, struct hf_arena *arena);
/* The digest that was wanted, where this one is what the server made of it. */
uint64_t hf_extras_as_wanted(const struct hf_job_state *state, enum hf_extra_kind kind,
			     uint64_t digest);
/* All that the jobs of this kind need are known. */
bool hf_extras_synced(const struct hf_operator *op, const struct hf_framework *framework);
/* Jobs whose passes waited for that. */
void hf_extras_enqueue(struct hf_operator *op);
/* A view of an object that a job may need, or that may hold a name; what no controller has is kept
 * for its name alone. */
void hf_extras_see(const struct hf_observe_args *args, const struct hf_job *job,
		   struct hf_arena *arena, struct hf_views *views, struct hf_observed *seen);

/* --- report.c --- */

/* A warning of a job that no pass is begun for. */
void hf_report_waiting(struct hf_kind *kind, struct hf_doc *job, const char *reason,
		       const char *message);

/* --- metrics.c ----------------------------------------------------------------------------- */

void hf_operator_metrics_init(struct hf_operator *op);
/* job_metrics.c: one job's series and its state. */
void hf_operator_job_metrics_init(struct hf_operator *op);
void hf_operator_job_metrics_clear(struct hf_operator *op);
void hf_operator_job_metrics_add(struct hf_operator *op, const struct hf_framework *framework,
				 struct hf_doc *job);
/* A recovery that is over with this status and was not before. */
void hf_operator_count_recovery(struct hf_operator *op, const struct hf_status *before,
				const struct hf_status *now);
/* A job that is Running with this status and never was before. */
void hf_operator_count_start(struct hf_operator *op, const struct hf_job_view *job,
			     const struct hf_status *now);
void hf_operator_count_pass(struct hf_operator *op, const struct hf_framework *framework, int code,
			    hf_time took);
void hf_operator_count_wait(void *op, hf_time waited); /* the queue's waited */
void hf_operator_count_plan(struct hf_operator *op, const struct hf_job_view *job,
			    const struct hf_plan *plan);

/* --- pass.c: one pass over one job --------------------------------------------------------- */

void hf_pass_run(void *op, const char *key); /* the queue's run */
void hf_pass_abort(struct hf_pass *pass);    /* as if the process had died */
void hf_pass_stop(struct hf_pass *pass);     /* sends nothing more, waits for replies */
/* Send what may be sent. */
void hf_gate_open(struct hf_operator *op);

#endif
