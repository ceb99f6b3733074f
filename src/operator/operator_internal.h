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
	hf_time offset; /* server time minus monotonic time, estimated */
	hf_time last;   /* the last time that was returned; later times are never smaller */
};
/* Take the Date of a reply, and what both clocks read at that time.  True: the estimate jumped, so
 * wake-ups that were planned with the old estimate must be planned again. */
bool hf_server_clock_hear(struct hf_server_clock *clock, hf_time server_time, hf_time mono,
			  hf_time wall);
/* The API server's time.  Before the first reply it is the wall clock of this machine. */
hf_time hf_server_clock_now(struct hf_server_clock *clock, hf_time mono, hf_time wall);

/* --- view.c: what the cache keeps of pods and services ------------------------------------ */

/* What the cache keeps of a pod, service or extra object: one block of memory, shared by passes.  A
 * pod takes some 200 bytes.  Caches and indexes read the members; the other facts are packed. */
struct hf_view {
	unsigned refs;
	uint32_t record; /* where the packed part of the record begins, in bytes */
	/* UID in the ownerReference that is the object's controller; NULL: the object has none */
	const char *controller_uid;
	const char *node; /* as in struct hf_pod */
	/* as in struct hf_pod, but on the monotonic clock (the next two as well) */
	hf_time news_at;
	hf_time unwell_at;    /* likewise */
	hf_time own_ended_at; /* likewise */
	unsigned char bytes[];
};
struct hf_view *hf_view_of_pod(struct hf_doc *doc, struct hf_arena *scratch);
struct hf_view *hf_view_of_service(struct hf_doc *doc, struct hf_arena *scratch);
/* Unpack a view.  Texts point into the view, lists are made in the arena.  owned: the object has a
 * controller; hf_observe compares it with the job's UID. */
void hf_view_pod(const struct hf_view *view, struct hf_arena *arena, struct hf_pod *ret_pod);
void hf_view_service(const struct hf_view *view, struct hf_service_seen *ret_service);
struct hf_view *hf_view_of_extra(struct hf_doc *doc, enum hf_extra_kind kind,
				 struct hf_arena *scratch);
void hf_view_extra(const struct hf_view *view, struct hf_extra_seen *ret_seen);
/* A step sees the same in two views of one pod that has not ended.  resourceVersion is not
 * compared, nor conditions that no decision about such a pod reads. */
bool hf_view_is_same_pod(const struct hf_view *a, const struct hf_view *b,
			 struct hf_arena *scratch);
struct hf_view *hf_view_ref(struct hf_view *view);
void hf_view_unref(void *view);

/* --- observe.c: what a step sees ----------------------------------------------------------- */

/* References to views.  hf_observe adds the views that it uses to the list; with NULL the views are
 * borrowed. */
struct hf_views {
	struct hf_view **items;
	size_t len, cap, len_max;
};
void hf_views_release(struct hf_views *views);

struct hf_job_state;
struct hf_observe_args {
	const struct hf_cache *pods, *services;
	/* Caches of extra objects, by enum hf_extra_kind. A cache is read only if the job's
	 * framework has that kind. */
	const struct hf_cache *extras[HF_EXTRA_KINDS];
	/* what this process remembers of the job between passes; NULL: nothing yet */
	const struct hf_job_state *state;
	const struct hf_job_view *job;
	hf_time now;
	/* NULL, or with members NULL: the kubelet runs in this process, and every node is alive. */
	const struct hf_facts *facts;
	hf_time mono;    /* if facts is given: the time `now` on the monotonic clock */
	const char *key; /* if facts is given: the job's key */
};
void hf_observe(const struct hf_observe_args *args, struct hf_arena *arena, struct hf_views *views,
		struct hf_observed *ret_seen);

/* --- render.c: documents ------------------------------------------------------------------- */

struct hf_render_args {
	struct hf_doc *job;
	const char *spec; /* hf_job_view.spec of the job */
	const struct hf_framework *framework;
	const struct hf_settings *settings;
	const char *init_container_template; /* NULL: none */
};
/* HF_E_INVALID: the template is missing or is not an object, or an edit names a container that the
 * template lacks. */
int hf_render_pod(const struct hf_render_args *args, const struct hf_action *action,
		  struct hf_doc **ret_pod, struct hf_error *err) HF_MUST_CHECK;
struct hf_doc *hf_render_service(const struct hf_render_args *args, const struct hf_action *action);
struct hf_doc *hf_render_extra(const struct hf_render_args *args, const struct hf_action *action);
/* Expand the operator's template of init containers for this address, and parse it as a list. */
int hf_render_init_containers(const char *text, const char *address,
			      const struct hf_settings *settings, struct hf_json **ret_list,
			      struct hf_error *err) HF_MUST_CHECK;

/* --- status.c ------------------------------------------------------------------------------ */

/* The merge patch that turns the stored status into the plan's, with the job's resourceVersion.
 * NULL: both are equal. */
struct hf_doc *hf_status_patch(struct hf_doc *job, const struct hf_framework *framework,
			       const struct hf_status *status);
/* The strategic merge patch of a pod's status for HF_ACTION_FAIL_POD.  It keeps conditions of other
 * writers. */
struct hf_doc *hf_fail_pod_patch(const struct hf_action *action, hf_time now);
/* The merge patch of a pod for HF_ACTION_STOP_POD.  A deadline of 1 s is the shortest that an API
 * server accepts, and has passed for every running pod. */
#define HF_STOP_DEADLINE_SECONDS 1
struct hf_doc *hf_stop_pod_patch(const struct hf_action *action);
/* The object in the reply has every field that the patch sent, so the API server has stored them
 * all. */
bool hf_status_arrived(struct hf_doc *patch, struct hf_doc *reply);

/* --- the operator -------------------------------------------------------------------------- */

/* A watched kind of object.  Jobs are kept as documents, other objects as views. */
struct hf_kind {
	struct hf_operator *op;
	/* the framework of the jobs of this kind; NULL: the kind is pods, services or extra
	 * objects */
	const struct hf_framework *framework;
	const struct hf_resource *resource;
	struct hf_cache *cache;
	struct hf_cache *crd; /* cache of the kind's CRD; NULL: CRDs are not watched */
	bool running;         /* the jobs of this kind are listed and get passes */
	bool missing;         /* the cluster lacks the kind's CRD, and the log says so */
	/* monotonic: when a list of the jobs has failed first; NONE: never */
	hf_time failed_at;
	bool crd_unseen; /* the right to read the kind's CRD is missing */
	bool narrow;     /* the kind's CRD does not keep the ledger */
	/* the kind's CRD did not keep the ledger at some time since this process started */
	bool was_narrow;
	bool keeps; /* a reply contained the ledger that was sent, so the CRD keeps it */
	bool narrow_told;
	hf_time wide_since; /* monotonic: since when the schema is wide; NONE: narrow or unknown */
	struct hf_timer *wide_timer; /* runs until the schema has been wide for HF_WIDE_SETTLE */
	enum hf_extra_kind extra;    /* for extra objects: the kind of extra object */
	bool started;                /* extra objects: the cache is started */
};
#define HF_KINDS_MAX 8

/* Digest of the extra object as it was last written, and of the object in the reply. */
struct hf_settled {
	uint64_t wanted, seen;
};

/* State of a job between passes. */
struct hf_job_state {
	hf_time status_written; /* monotonic; HF_TIME_NONE: never by this process */
	hf_time status_gap;     /* the shortest time between two routine statuses */
	hf_time status_owed; /* since when a routine status waits to be written; NONE: none waits */
	hf_time starting_since; /* since when ranks are missing or not running; NONE: all run */
	/* when a step is due because ranks succeeded after the last step; NONE: no such step */
	hf_time success_due;
	size_t size; /* the number of pods and services at the last step */
	/* how many were created since the last status write or live read */
	size_t pods_made, services_made;
	/* passes with requests since busy_since, at most for a second */
	uint32_t busy_passes;
	hf_time busy_since;
	/* Seconds of the job that metrics have counted, with the present run or downtime. */
	int64_t productive_counted, downtime_counted;
	bool time_known;      /* the two numbers are set */
	struct hf_pass *pass; /* NULL: none is running */
	bool unsure;          /* a status write had no answer, so it may be stored */
	bool routine_owed;    /* routine changes were seen while the pass ran */
	char *looked;         /* the job's resourceVersion at the last live read; NULL: no read */
	struct hf_settled settled[HF_EXTRA_KINDS];
};

/* Indexes of the cache of pods: by owner, and by node.  The second index exists only with
 * watch_nodes. */
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
	/* One series for each job. */
	struct hf_family *job_info, *job_condition, *job_productive, *job_downtime;
	struct hf_family *job_step, *job_saved_step, *job_ettr, *job_interval;
	struct hf_family *training_time, *lost_steps; /* over all jobs */
	/* What was already added to counters: counts of caches begin at 0 with each operator, and
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
	/* watches of an extra kind start with the first job that needs the kind */
	struct hf_kind extras[HF_EXTRA_KINDS];
	struct hf_facts facts;
	struct hf_controller *companions[HF_CONTROLLERS_MAX]; /* NULL: none */
	/* Set by operator.c: begins the passes of kinds with known objects. */
	void (*check_synced)(struct hf_operator *op);
	struct hf_queue *queue;
	struct hf_recorder *recorder;
	struct hf_map *job_keys; /* job UID → key of the job (char *) */
	struct hf_map *states;   /* key → struct hf_job_state */
	struct hf_map *ending;   /* namespaces that are being deleted and refused a create */
	struct hf_arena *scratch;
	struct hf_server_clock clock;
	struct hf_operator_metrics metrics;
	bool running; /* pods and services are listed, and the jobs of at least one kind */

	/* The two gates of gate.c.  A pass goes through the second gate only while no pass waits at
	 * the first. */
	struct hf_gate gates[2];
	size_t in_flight, in_flight_max;
	bool in_gate; /* hf_gate_open is running */
	/* the job's cache is taking in the reply to this operator's own status write */
	bool own_write;
	/* if own_write is set: no decision waits for the status that this operator has written */
	bool own_routine;
	struct hf_startups startups;
	double tokens; /* with a rate: how many requests may be sent now */
	hf_time tokens_at;
	struct hf_timer *gate_timer; /* runs until the next token is available */

	bool stopping;
	struct hf_task *stopped_task;
	struct hf_timer *stop_timer; /* limit for sending the waiting events */
	hf_task_fn stopped;
	void *stopped_arg;
};

void hf_operator_problem(struct hf_operator *op, const char *key, int code, const char *message);
/* Split a key such as "pytorchjobs/ns/name".  ret_name points to the end of key.  NULL: no kind has
 * that plural. */
struct hf_kind *hf_kind_of_key(struct hf_operator *op, const char *key, char **ret_ns,
			       const char **ret_name);
/* Must be called with each reply, because its Date header sets the clock. */
void hf_operator_heard(struct hf_operator *op, const struct hf_reply *reply);
/* Begin each kind with known objects.  Must be called whenever a cache is complete. */
void hf_operator_check_synced(struct hf_operator *op);
void hf_operator_enqueue_kind(struct hf_kind *kind);
/* Call fn for the jobs that may use this name: "<job>-<type>-<index>", or one word behind the job's
 * name.  An object of another owner may take or free such a name. */
void hf_operator_each_by_name(struct hf_operator *op, const char *ns, const char *name,
			      void (*fn)(void *arg, const struct hf_kind *kind,
					 const struct hf_cache_entry *job),
			      void *arg);
void hf_operator_enqueue_by_name(struct hf_operator *op, const char *ns, const char *name);
char *hf_operator_job_key(const struct hf_kind *kind, const char *ns, const char *name);
/* Queue the job for a step: at once; after a delay that grows with its size; or after `delay`. */
void hf_operator_enqueue_now(struct hf_operator *op, const char *key);
void hf_operator_enqueue(struct hf_operator *op, const char *key);
void hf_operator_enqueue_after(struct hf_operator *op, const char *key, hf_time delay);
/* Queue the job because a rank of the job has succeeded. */
void hf_operator_enqueue_success(struct hf_operator *op, const char *key);
/* Queue the job for a routine change: one that needs no step at once, such as a service that was
 * created.  The step waits a while, so that it also takes the routine changes that follow. */
void hf_operator_enqueue_routine(struct hf_operator *op, const char *key);
/* How long routine changes wait for further ones.  The time grows with the number of queued
 * jobs. */
hf_time hf_operator_gather_time(const struct hf_operator *op);
/* Note that a namespace is being deleted: all its jobs count as deleted.  A job that is added later
 * belongs to a new namespace of the same name, and removes the note. */
void hf_operator_namespace_ends(struct hf_operator *op, const char *ns);
bool hf_operator_is_ending(const struct hf_operator *op, const char *ns);
/* End the stop, if no reply is outstanding. */
void hf_operator_check_stopped(struct hf_operator *op);

/* --- extras.c: ConfigMaps and the like --------------------------------------------------- */

const struct hf_resource *hf_extra_resource(enum hf_extra_kind kind);
/* Start the cache of this kind of extra object, unless it is started. */
void hf_extras_start_kind(struct hf_operator *op, enum hf_extra_kind kind);
/* Start the caches of the extra objects that jobs of this kind need. */
void hf_extras_start(struct hf_operator *op, const struct hf_framework *framework);
/* Start the caches of rare kinds of objects that this job needs. */
void hf_extras_start_rare(struct hf_operator *op, const struct hf_job_view *job);
/* Remember the object in the reply to a create or a change. */
void hf_extras_settle(struct hf_job_state *state, const struct hf_extra *extra,
		      struct hf_doc *object, struct hf_arena *arena);
/* If this is the digest of the last reply to a write, the digest that was wanted then; else the
 * digest itself. */
uint64_t hf_extras_as_wanted(const struct hf_job_state *state, enum hf_extra_kind kind,
			     uint64_t digest);
/* All extra objects that jobs of this kind need are listed. */
bool hf_extras_synced(const struct hf_operator *op, const struct hf_framework *framework);
/* Queue the jobs that waited until extra objects were listed. */
void hf_extras_enqueue(struct hf_operator *op);
/* Add to `seen` the extra objects with names that the job may use. */
void hf_extras_see(const struct hf_observe_args *args, const struct hf_job *job,
		   struct hf_arena *arena, struct hf_views *views, struct hf_observed *seen);

/* --- report.c --- */

/* Record a warning event of a job that has no pass. */
void hf_report_waiting(struct hf_kind *kind, struct hf_doc *job, const char *reason,
		       const char *message);

/* --- metrics.c ----------------------------------------------------------------------------- */

void hf_operator_metrics_init(struct hf_operator *op);
/* A family without buckets.  labels: ends with NULL; NULL: the family has no label. */
struct hf_family *hf_operator_family(struct hf_operator *op, enum hf_metric_type type,
				     const char *name, const char *help,
				     const char *const labels[]);
/* job_metrics.c: the series of one job. */
void hf_operator_job_metrics_init(struct hf_operator *op);
void hf_operator_job_metrics_clear(struct hf_operator *op);
void hf_operator_job_metrics_add(struct hf_operator *op, const struct hf_kind *kind,
				 struct hf_doc *job);
/* Count the recovery times of a recovery that ends with this status. */
void hf_operator_count_recovery(struct hf_operator *op, const struct hf_status *before,
				const struct hf_status *now);
/* Count the time that the job has run or was down since the last call, and the first step after a restart. state: NULL if
 * nothing is remembered of the job yet; then nothing is counted. */
void hf_operator_count_time(struct hf_operator *op, struct hf_job_state *state,
			    const struct hf_status *before, const struct hf_status *now);
/* Count the start times of a job that runs for the first time with this status. */
void hf_operator_count_start(struct hf_operator *op, const struct hf_job_view *job,
			     const struct hf_status *now);
void hf_operator_count_pass(struct hf_operator *op, const struct hf_framework *framework, int code,
			    hf_time took);
void hf_operator_count_wait(void *op, hf_time waited); /* the queue's waited */
void hf_operator_count_plan(struct hf_operator *op, const char *key, const struct hf_job_view *job,
			    const struct hf_plan *plan);

/* --- pass.c: one pass over one job --------------------------------------------------------- */

void hf_pass_run(void *op, const char *key); /* the queue's run */
void hf_pass_abort(struct hf_pass *pass);    /* as if the process had died */
void hf_pass_stop(struct hf_pass *pass);     /* sends nothing more, waits for replies */
/* Send as many requests of waiting passes as the limits allow. */
void hf_gate_open(struct hf_operator *op);

#endif
