/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_BRAIN_INTERNAL_H
#define HF_CORE_BRAIN_INTERNAL_H

#include "base/strbuf.h"
#include "core/state/termination_internal.h"
#include "core/state/node_loss_internal.h"
#include "core/step.h"

HF_BEGIN_DECLS

/*
 * One pass of the brain: the working state that the policies share.  A policy is one file
 * that reads facts (slots, ledger, ends) and changes the working ledger, the conditions or
 * the lists of actions; step.c says in which order they run.
 */

/* How far the pod of a rank's present attempt has come.  The kind's own container decides: other
 * containers keep a pod, and do not make its rank run. */
enum hf_slot_phase {
	HF_SLOT_ABSENT,   /* no pod of the present attempt, or it is being deleted */
	HF_SLOT_STARTING, /* its own container has not started, or waits to be started again */
	HF_SLOT_RUNNING,  /* the own container runs, or the kubelet has reported no container */
	HF_SLOT_TRAINED,  /* its own container ended with 0 for good, and the pod has not ended */
	HF_SLOT_BROKEN,   /* its own container failed for good, and another one keeps the pod */
	HF_SLOT_ENDED,    /* the pod has ended, or has no container left that could run */
	HF_SLOT_PHASES,
};

/* One rank: what the ledger remembers of it and what is seen. */
struct hf_slot {
	const struct hf_pod *pod;              /* ours, by name; NULL: none */
	const struct hf_service_seen *service; /* ours */
	const struct hf_pod *last;       /* ours, gone by now, as it was on its way; NULL: none */
	bool pod_taken;                  /* the name is held by a pod of another owner … */
	const struct hf_pod *pod_holder; /* … which is this one */
	bool service_taken;
	bool pod_leaving, service_leaving; /* what holds the name is being deleted */
	bool created;                      /* the present attempt's pod was seen once */
	bool succeeded;
	bool trained; /* its own container was seen ended with 0, and the pod had not ended */
	bool covered; /* its kubelet restart in this incident was taken */
	bool current; /* the pod is of this generation and attempt */
	enum hf_slot_phase phase;
	bool gave_up; /* it has ended before its program began: whom it waits for did not run */
	int64_t attempt;
	int64_t seen; /* terminations in the present pod that were counted, see hf_pod_terminations */
};

/* One role with its slots: those the spec asks for come first. */
struct hf_crew {
	const char *type;  /* "Worker" */
	const char *lower; /* "worker" */
	bool present;      /* the spec has it */
	bool single;       /* its pod has no index in its name */
	int32_t replicas;
	struct hf_slot *slots;
	int32_t slots_len; /* >= replicas: whatever the ledger or a pod names */
};

/* A rank on a node that may turn out to be the cause of an incident; looked for once in a step. */
struct hf_suspect {
	int64_t incident; /* that incident; 0: none was looked at yet */
	bool found;
	int role;
	int32_t index;
};

struct hf_actions {
	struct hf_action *items;
	size_t len, cap;
};

struct hf_brain {
	const struct hf_job_view *view;
	const struct hf_observed *seen;
	struct hf_job job;
	hf_time now; /* to the microsecond, which is what a ledger keeps */
	struct hf_arena *arena;
	struct hf_plan *plan; /* the caller's; its status is the working copy, its ledger aside */

	struct hf_ledger ledger; /* the working copy; its texts are written at the end */
	struct hf_crew crews[HF_ROLES_MAX];
	int crews_len;
	const struct hf_pod **strays; /* ours, but under no replica's name */
	size_t strays_len;
	int32_t older_pods;    /* of an older generation than the ledger's */
	struct hf_node *nodes; /* by name; NULL: not asked for yet */
	size_t nodes_lost;
	struct hf_suspect suspect;
	const struct hf_sick_seen **sick;         /* by name; NULL: not asked for yet */
	struct hf_edits avoided[HF_ROLES_MAX][2]; /* made when first asked for; by role, and whether
						   * for pods that replace others */
	const struct hf_gone_seen **gone; /* those that matter, by name; NULL: not asked for yet */
	size_t gone_len;
	struct hf_counts counts[HF_ROLES_MAX];

	struct hf_end *ends;
	size_t ends_len;
	int32_t failed_ends[HF_ROLES_MAX]; /* for upstream's "n replica(s) failed" */

	struct hf_condition *conditions;
	size_t conditions_len, conditions_cap;
	bool settling;       /* a verdict waits for its cause */
	bool gave_way;       /* one was withdrawn in this step, for a cause that is still there */
	const char *blocker; /* of a pod on a lost node, stuck, or that no node takes; NULL: none */
	bool restarting;     /* something was restarted in this step … */
	int restarting_role; /* … in this role first */
	int32_t restarting_count;

	struct hf_actions deletes;
	struct hf_actions extras;
	struct hf_actions creates;
	struct hf_actions asides; /* extra objects that no pod waits for */
	bool extras_wait;         /* pods are not made: something that they need cannot be yet */
	bool gated;               /* nor services: Volcano has not let the job's group in yet */
	const struct hf_extra *extra_taken; /* the first whose name is held by another owner */
	int32_t extras_staying;             /* ... by what nobody deletes */
	int32_t creates_pods;               /* roles that begin with this step */
	size_t create_bytes;                /* of their variables */
	const char *shared;                 /* see struct hf_edits */
	struct hf_ask *asks;
	size_t asks_len, asks_cap;
	struct hf_plan_event *events;
	size_t events_len, events_cap;
	struct hf_reason *reasons;
	size_t reasons_len;
	struct hf_strbuf scratch;
};

/* ---- facts: world.c, ledger.c ------------------------------------------------------------- */

/* Slots from the ledger's texts and the objects seen.  HF_E_INVALID: the ledger is broken. */
int hf_world_load(struct hf_brain *b, struct hf_error *err) HF_MUST_CHECK;
/* Which pods are of the present generation and attempt; again after either moved. */
void hf_world_refresh(struct hf_brain *b);
/* The rank runs or has trained: the job lacks nothing of it. */
bool hf_slot_is_up(const struct hf_slot *slot);
/* The container is terminated, and its kubelet does not start it again. */
bool hf_container_is_over(const struct hf_container_seen *seen);
/* The first container that keeps the pod after its own container has ended, else NULL. */
const struct hf_container_seen *hf_pod_keeper(const struct hf_pod *pod,
					      const struct hf_container_seen *own);
/* After the end of its own container the pod still has a container that runs or may run: its keeper, or a
 * sidecar that the kubelet ends next. */
bool hf_pod_goes_on(const struct hf_pod *pod, const struct hf_container_seen *own);
/* A main container of the pod has been started, as far as its kubelet has reported. */
bool hf_pod_has_begun(const struct hf_pod *pod);
/* It has been started, or was before. */
bool hf_container_has_begun(const struct hf_container_seen *seen);
/* The rank's pod, else the one of its present attempt that has gone, as it was on its way, else NULL. */
const struct hf_pod *hf_slot_pod(const struct hf_brain *b, const struct hf_slot *slot);
/* Index and role of a replica's name; false: no replica of this job is called so. */
bool hf_world_find(const struct hf_brain *b, const char *name, int *ret_role, int32_t *ret_index);
/* The name of a rank's pod. */
const char *hf_rank_pod_name(struct hf_brain *b, int role, int64_t index);
/* restartCounts of all containers of a pod in that role, init ones too but for the kind's own. */
int64_t hf_pod_restarts(const struct hf_brain *b, int role, const struct hf_pod *pod);
/* The same plus the containers that have ended and wait for the kubelet to start them again. */
int64_t hf_pod_terminations(const struct hf_brain *b, int role, const struct hf_pod *pod);

/* Begin a ledger for a job that has none: from the stamps of its pods, if there are any. */
void hf_ledger_begin(struct hf_brain *b);
/* HF_E_INVALID: a number in it makes no sense.  Drops a verdict that is not whole. */
int hf_ledger_check(struct hf_ledger *ledger, struct hf_error *err) HF_MUST_CHECK;
/* Texts into slots (sized for what they name) and back.  */
int hf_ledger_read(struct hf_brain *b, struct hf_error *err) HF_MUST_CHECK;
void hf_ledger_write(struct hf_brain *b);
/* Highest index that the ledger's texts name, -1: none. */
int hf_ledger_top(const struct hf_role_ledger *role, const char *type, int32_t *ret_top,
		  struct hf_error *err) HF_MUST_CHECK;
/* Bytes of the ledger as JSON, at most (every name and text counted). */
size_t hf_ledger_bytes(const struct hf_ledger *ledger);
/* Set bits of what is seen: created, succeeded. */
void hf_ledger_note(struct hf_brain *b);

/* ---- progress: advance.c -------------------------------------------------------------------- */

/* The job hangs, as the end of the rank that stands for longest. */
bool hf_advance_hung(struct hf_brain *b, struct hf_end *ret_end);
/* Stragglers, and a deadline that is running: said and shown. */
void hf_advance_step(struct hf_brain *b);
void hf_advance_over(struct hf_brain *b); /* no rank is slow any more */

/* ---- verdicts: verdict.c, settle.c --------------------------------------------------------- */

#define HF_VERDICT_RULE "PodFailurePolicy"
#define HF_VERDICT_NEVER "RestartPolicyNever"
#define HF_VERDICT_EXIT_CODE "ExitCode"
#define HF_VERDICT_DEADLINE "DeadlineExceeded"
#define HF_VERDICT_DEVICE "DeviceUnhealthy"

bool hf_verdict_pending(const struct hf_brain *b);
bool hf_verdict_is_final(const struct hf_brain *b); /* whether or not it is to be suspended */
/* The job is to fail because of this end; opens an incident unless one covers it. */
void hf_verdict_of_end(struct hf_brain *b, const struct hf_end *end);
void hf_verdict_set(struct hf_brain *b, const char *reason, const char *message);
/* A pending verdict gives way to a cause that outranks it. */
void hf_verdict_reconsider(struct hf_brain *b);
/* Fail the job when nothing is awaited any more, else say what is. */
void hf_verdict_settle(struct hf_brain *b);
/* The latest time to which a verdict of time `since` may wait for news of nodes. */
hf_time hf_settle_end(const struct hf_brain *b, hf_time since);
/* Whether every node of the job has been heard of since; else when to look again at the
 * latest, and one silent node. */
bool hf_settle_done(struct hf_brain *b, hf_time since, hf_time *ret_until, const char **ret_silent);

/* ---- consequences -------------------------------------------------------------------------- */

/* restart.c, gang.c */
void hf_restart_replica(struct hf_brain *b, int role, int32_t index);
void hf_gang_restart(struct hf_brain *b);
void hf_restart_retire(struct hf_brain *b);
/* The restart annotation, once per value; its key as the ledger has it (NULL or empty: none). */
const char *hf_restart_key(struct hf_brain *b);
void hf_restart_requested(struct hf_brain *b);
/* What a restart that is decided tells and counts, once for its incident. */
void hf_restart_tell(struct hf_brain *b, enum hf_class cause);
/* A ledger that has grown too large is emptied by a new generation. */
void hf_restart_when_too_large(struct hf_brain *b);

/* suspend.c */
void hf_suspend(struct hf_brain *b);
bool hf_suspend_is_due(const struct hf_brain *b); /* wanted, or booked and not told of yet */
void hf_resume(struct hf_brain *b);

/* finish.c */
void hf_finish_failed(struct hf_brain *b);
void hf_finish_succeeded(struct hf_brain *b, const struct hf_judgement *judgement);
/* What a finished job still does: clean up, heal, expire. */
void hf_finished(struct hf_brain *b);

/* cleanup.c: delete, end or keep each pod of a finished job, and say what still runs. */
void hf_cleanup_step(struct hf_brain *b);

/* sidecar.c: ranks with an own container that ended with 0 and another container that keeps the pod.  Those that
 * have waited for sidecarGraceSeconds count as succeeded (release, before the counts are taken) and
 * their pods are ended; the others are told.  Those with a pod that failed, was deleted or was lost after the own
 * container's success was seen count as succeeded too. */
void hf_sidecar_release(struct hf_brain *b);
void hf_sidecar_step(struct hf_brain *b);
/* The rank's program has succeeded, and its other containers have had their time: its pod is to be
 * ended.  Wakes the job for the end of that time. */
bool hf_sidecar_is_over(struct hf_brain *b, int role, const struct hf_slot *slot);
void hf_sidecar_over(struct hf_brain *b); /* the job is not active: the condition is lowered */

/* deadline.c: active time is what lies between start and now, and what earlier runs had. */
int64_t hf_active_seconds(const struct hf_brain *b);
/* Sets the verdict when it has passed, else the wake-up. */
void hf_deadline_step(struct hf_brain *b);

/* phase.c */
void hf_phase_step(struct hf_brain *b);
/* When phase, Running or Restarting have changed: the time until now was productive (Running)
 * or down (Restarting), and begins anew. */
void hf_phase_book(struct hf_brain *b);

/* extras.c: after the counts are known, before pods are planned. */
void hf_extras_plan(struct hf_brain *b);
/* Of a job that is not active: those that are to go. */
void hf_extras_drop(struct hf_brain *b, enum hf_life life);

/* podgroup.c: the group itself; whether its pods must wait; what its pods say of it; a warning where
 * a template has a scheduler of its own. */
enum hf_extra_kind hf_podgroup_kind(const struct hf_settings *settings);
void hf_podgroup_extra(const struct hf_job *job, const struct hf_ranks_seen *seen,
		       struct hf_extras *extras);
bool hf_podgroup_awaited(const struct hf_brain *b);
void hf_podgroup_edits(struct hf_brain *b, int role, struct hf_edits *edits);
void hf_podgroup_warn(struct hf_brain *b);

/* pods.c, services.c: actions that bring the objects to what the ledger says. */
void hf_pods_plan(struct hf_brain *b);
void hf_services_plan(struct hf_brain *b);
void hf_pod_delete(struct hf_brain *b, const struct hf_pod *pod, struct hf_opt_int grace);
/* End the pod's containers and keep the object, with its logs; `why` is one of HF_STOPPED_*.
 * Nothing where that is done already. */
void hf_pod_stop(struct hf_brain *b, const struct hf_pod *pod, const char *why);
void hf_service_delete(struct hf_brain *b, const struct hf_service_seen *service);
void hf_action_add(struct hf_brain *b, struct hf_actions *list, const struct hf_action *action);
/* The list as the plan's next stage, if there is anything in it. */
void hf_stage_add(struct hf_brain *b, const struct hf_actions *actions);
/* The labels of a replica, in the arena: HF_REPLICA_LABELS, or one less without the index. */
#define HF_REPLICA_LABELS 4
const struct hf_key_value *hf_replica_labels(struct hf_brain *b, int role, int32_t index,
					     int *ret_len);

/* ---- status: counts.c, conditions.c, changed.c ---------------------------------------------- */

/* Counts from slots.  Suspended: active is every pod that is not terminal. */
void hf_counts_take(struct hf_brain *b);
void hf_counts_write(struct hf_brain *b);

/* The stored conditions, one for each type. */
void hf_cond_load(struct hf_brain *b, const struct hf_status *stored);
struct hf_condition *hf_cond_find(const struct hf_brain *b, const char *type);
bool hf_cond_is_true(const struct hf_brain *b, const char *type);
/* Upstream's rules: nothing when status and reason are what they were; else rewritten and
 * moved last; the transition time stays while the status does.  A condition of ours takes a new
 * message in its place. */
void hf_cond_set(struct hf_brain *b, const char *type, bool status, const char *reason,
		 const char *message);
/* To False where it stands, if it is True; reason and message as they were when NULL. */
void hf_cond_lower(struct hf_brain *b, const char *type, const char *reason, const char *message);
/* Lower all conditions of Holdfast but Held, for a job that is Held. */
void hf_cond_lower_unwatched(struct hf_brain *b);
/* Created, as the first condition; counts the job when it was not there. */
void hf_cond_created(struct hf_brain *b);
/* Running and Restarting for a job that is neither suspended nor finished. */
void hf_cond_active(struct hf_brain *b, const struct hf_judgement *judgement);
/* The True condition that names the state comes last. */
void hf_cond_arrange(struct hf_brain *b);
/* "PyTorchJob" + suffix */
const char *hf_cond_reason(struct hf_brain *b, const char *suffix);
/* The type that names the state: "Running", …; "" before there is any. */
const char *hf_cond_state(const struct hf_brain *b);
bool hf_cond_finished(const struct hf_brain *b);

/* Whether two statuses differ, and whether that must be written before anything is done. */
bool hf_status_differs(const struct hf_status *a, const struct hf_status *b, bool *ret_urgent);

/* ---- words: why.c ------------------------------------------------------------------------- */

void hf_event(struct hf_brain *b, bool warning, const char *reason, const char *message);
void hf_event_pod(struct hf_brain *b, bool warning, const char *reason, const char *message,
		  const struct hf_pod *pod);
void hf_say(struct hf_brain *b, hf_time time, enum hf_topic topic, const char *fmt, ...)
	HF_PRINTF(4, 5);
/* One event for each incident that restarts something: who, why, by which rule, at what cost. */
void hf_cause_event(struct hf_brain *b);
/* " (worker-0 never started: StartError: …)" where that is the cause of the present incident; else "". */
const char *hf_never_started_text(struct hf_brain *b);
/* What the ledger tells of the last restart; before anything of this step is said. */
void hf_why_history(struct hf_brain *b);
/* taken.c: names that objects of other owners hold are said and shown. */
void hf_taken_step(struct hf_brain *b);
void hf_taken_over(struct hf_brain *b); /* the job makes no pods */
/* What keeps ranks from running, where the brain waits for somebody else. */
void hf_trouble_say(struct hf_brain *b);
void hf_trouble_over(struct hf_brain *b); /* the job is not active: the condition is lowered */
/* One sentence for all of it. */
void hf_why_summary(struct hf_brain *b);
void hf_wake(struct hf_brain *b, hf_time at);

/* ---- odds and ends ------------------------------------------------------------------------ */

/* A longer copy of a list in the arena, when it is full. */
void *hf_grow(struct hf_arena *arena, void *items, size_t len, size_t *cap, size_t size);
/* Seconds as a span, and how much later `to` is (0 when it is not): what does not fit is
 * HF_TIME_NEVER. */
#define HF_SECONDS_MAX ((int64_t)9000000000) /* 285 years */
hf_time hf_seconds(int64_t seconds);
hf_time hf_elapsed(hf_time from, hf_time to);
const char *hf_time_text(struct hf_arena *arena, hf_time t);    /* RFC 3339, "" for NONE */
const char *hf_span_text(struct hf_arena *arena, hf_time span); /* "1m30s" */

HF_END_DECLS

#endif
