/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_CHECK_H
#define HF_TESTS_SIM_CHECK_H

#include "sim/sim.h"

/* What must hold in each run, and what the world knows of pods and jobs to check it. */

enum sim_role {
	SIM_MASTER,
	SIM_WORKER,
	SIM_CHIEF,
	SIM_PS,
	SIM_EVALUATOR,
	SIM_LAUNCHER,
	SIM_ROLES,
};
#define SIM_BUDGETS 3
extern const char *const sim_role_names[SIM_ROLES];
extern const char *const sim_budgets[SIM_BUDGETS];

/* --- check_read.c: reads documents without the code that wrote them --- */
const char *sim_controller_uid(const struct hf_json *object);
int64_t sim_stamp(const struct hf_json *pod, const char *key);
int64_t sim_fence_seconds(const struct hf_json *pod); /* 0: it has no fence */
bool sim_condition_is(const struct hf_json *status, const char *type);
const char *sim_terminal_of(const struct hf_json *status);
long long sim_sparse_get(const char *text, long long index);
bool sim_ranges_have(const char *text, long long index);
int64_t sim_ledger_int(const struct hf_json *status, const char *group, const char *key);
const char *sim_ledger_text(const struct hf_json *status, const char *role, const char *key);
int64_t sim_all_restarts(const struct hf_json *status);

/* What the world knows of one pod, whether the operator knows it or not. */
struct sim_pod_truth {
	char *uid, *job_uid, *name;
	enum sim_role role;
	int64_t index, generation, attempt, incident;
	bool alive;          /* its process runs */
	hf_time process_end; /* when its process last ended; 0: never */
	bool ended; /* the pod has phase Failed or Succeeded, is being deleted, or is gone */
	bool succeeded, gone;
	bool marked; /* the pod had a deletionTimestamp before it was gone */
	bool missed; /* the operator may have missed that the pod was being deleted */
	bool unseen; /* the pod vanishes, and no watch of the operator reports this */
	bool known;  /* the operator asked for the pod's end, so it knows the cause */
	bool opens;  /* at the end of a run: its end is counted as the first one of an incident */
	bool begun;  /* its process ran at some time */
	/* when its process ended for good while another container ran on; 0: never */
	hf_time held_at;
	int held_code;  /* the exit code of the process that ended at held_at */
	bool disrupted; /* the cluster ended the pod (condition DisruptionTarget) */
	bool sick;      /* its device was broken at some time */
	bool stalled;   /* its job stood still at some time */
	/* since when, and first when, its kubelet calls its device unhealthy; 0: it does not */
	hf_time unwell_since, unwell_first;
	bool away;    /* its node was dead, cut off or shut down at some time */
	bool lost;    /* its node was away for so long that it counts as lost, or was proven dead */
	bool refused; /* its kubelet refused to run it */
	bool oom;
	char node[16];
	/* its process ends itself after so many seconds without contact; 0: it has no fence */
	int64_t fence;
	bool forced;  /* the operator deleted it without grace */
	bool tainted; /* its node had a taint that kept pods off when the pod went */
	hf_time made_at, gone_at;
	hf_time followed_at; /* when the next process of its rank began, after it was gone; 0: not yet */
	uint64_t made_in;       /* check_past.c: the number of the change that created the pod */
	hf_time unplaced_since; /* since when no node takes the pod; 0: it has a node */
	bool failed;
	bool failed_alone; /* the pod failed and was not disrupted before */
	hf_time ended_in_place_at;
	unsigned restarts;   /* terminations after which the kubelet starts the container again */
	unsigned codes_lost; /* ends whose exit code the node has lost */
	unsigned init_ends;  /* restarts of an init container, before the program began */
};
/* What the world knows of one job, whether the operator knows it or not. */
struct sim_job_truth {
	char *uid, *name;
	bool scope_job, has_rules;
	bool touched;  /* people have done something that ends or restarts pods of the job */
	bool not_ours; /* managedBy names another controller */
	/* taint eviction deleted a pod of the job as a stray, or rightly; a stray costs nothing */
	bool evicted;
	bool foreign; /* another controller wrote into its status */
	bool gone;
	char *terminal; /* "Succeeded" or "Failed" once the job had this condition; NULL before */
	char *completion_time;
	char *patch_version; /* the resourceVersion that the operator's last status patch named */
	/* the resourceVersion that the last foreign status write was based on */
	char *foreign_version;
	int64_t ended[SIM_ROLES][SIM_PODS_MAX]; /* ended pods by replica */
	int64_t ends;                           /* all ended pods, and terminations in place */
	enum sim_state state;
	int64_t ours;   /* ends that the operator asked for */
	int64_t made;   /* created pods and other objects of the job */
	int64_t remade; /* updates of other objects of the job: a ConfigMap of hosts, a Role */
	int64_t writes, deeds; /* requests of the operator for the job; deeds of people to it */
	hf_time touched_at;    /* when people last did something to the job */
	/* monotonic: by when, and since when, the job must fail; 0: it need not */
	hf_time must_fail_by, must_fail_since;
	/* training.c: a rank hangs and all ranks stand still since then; stands_since 0: none
	 * hangs */
	hf_time stands_since, stands_until, stood_until;
	int64_t stands_ends;         /* value of `ends` when the job began to stand still */
	enum sim_state stands_state; /* state of the job when it began to stand still */
	char *stands_for;            /* UID of the pod that hangs */
	/* check_policy.c */
	hf_time active;      /* active time of the job before its last suspension */
	int64_t runs_before; /* number of those active periods */
	int64_t incident;    /* the newest incident of the ledger */
	hf_time incident_at; /* when the newest incident was stored */
	hf_time user_at; /* when people last deleted or restarted something of the job; 0: never */
	/* people had deleted or restarted something within the five minutes before user_at */
	bool user_again;
	int64_t user_runs; /* value of runs_before at user_at */
	bool late;         /* more than an hour lay between two incidents */
	bool in_place; /* a container has ended, and the kubelet is to start it again in its pod */
	hf_time ended_at; /* when the job got its terminal condition */
	/* check_past.c: numbers of the changes that stored the fact in the job; 0: none */
	uint64_t terminal_in, suspended_in, succeeded_in[SIM_ROLES][SIM_PODS_MAX];
	/* the generation in which the rank has trained; 0: none */
	int64_t trained_in[SIM_ROLES][SIM_PODS_MAX];
};

/* For one kind of jobs, or for pods: how many changes there were, and what lists from the past
 * told. An operator that was told of the state after change `from` may not know of the changes up
 * to `to`. */
struct sim_past {
	const struct hf_resource *resource;
	uint64_t changes, from, to;
	hf_time at; /* when the last list from the past was answered; 0: never */
};
#define SIM_PASTS_MAX 8

struct sim_checks {
	struct hf_map *pods; /* uid → struct sim_pod_truth */
	struct hf_map *jobs; /* uid → struct sim_job_truth */
	struct hf_memstore_observer observer;
	unsigned long long checked; /* changes that were checked */
	hf_time gap_at; /* when an operator last missed news that watches told; 0: never */
	struct sim_past past[SIM_PASTS_MAX];
	uint64_t digest;
};
void sim_checks_init(struct sim *sim);
void sim_checks_release(struct sim *sim);
void sim_check_request(struct sim *sim, const struct hf_request *request);
/* Call this before the operator's delete of a job is done: the job is still stored. */
void sim_check_time_to_live(struct sim *sim, const struct hf_request *request);
void sim_check_leader(struct sim_life *life, const struct hf_request *request);
void sim_check_process_starts(struct sim *sim, const char *pod_uid);
void sim_check_process_ends(struct sim *sim, const char *pod_uid);
/* The pod was killed for want of memory, which is charged to the application whatever else
 * happened. */
void sim_check_oom(struct sim *sim, const char *pod_uid);
/* No node takes the pod, and the scheduler has said so. Called each time the scheduler looks. */
void sim_check_unplaced(struct sim *sim, const char *pod_uid);
void sim_check_bound(struct sim *sim, const char *pod_uid, const char *node);
/* The pod vanishes, and no operator is told of it. */
void sim_check_unseen(struct sim *sim, const char *pod_uid);
/* The pod's node is, or was for a while, unable to report. */
void sim_check_away(struct sim *sim, const char *pod_uid);
/* The node is back, its death is proven, or the run is over. If the node was away long enough, its
 * pods count as lost with it. */
void sim_check_lost(struct sim *sim, const char *node);
/* The device of the pod is broken. With _late: the device of a node breaks, and may explain ends of
 * pods that are gone. */
void sim_check_sick(struct sim *sim, const char *pod_uid);
void sim_check_sick_late(struct sim *sim, const char *node);
/* check_fences.c. fenced: a rank ends itself. contact: a rank with a fence has ended. stopped: the
 * operator is about to delete a pod by force. */
void sim_check_fenced(struct sim *sim, const char *pod_uid);
void sim_check_contact(struct sim *sim, const struct sim_pod_truth *pod);
void sim_check_stopped(struct sim *sim, const struct sim_pod_truth *pod,
		       const struct hf_request *request, struct hf_doc *object);
/* check_plugins.c. word: what the kubelet says of the pod's device. moved: a status was written. */
void sim_check_word(struct sim *sim, const char *pod_uid, bool unhealthy);
void sim_check_moved(struct sim *sim, const struct sim_job_truth *job, const struct hf_json *before,
		     const struct hf_json *after);
/* An operator dies, or misses news that it learns of later. */
void sim_check_gap(struct sim *sim);
/* True if an operator may have missed that the pod was marked for deletion. It cannot miss this
 * where no news was lost and one operator lives: both events then come in order, even if in one
 * turn. */
bool sim_may_miss(const struct sim *sim, const struct sim_pod_truth *pod);
/* A node goes down: watches that lag may still show pods that left the node a while ago. */
void sim_check_node_down(struct sim *sim, const char *node);
void sim_check_ends_in_place(struct sim *sim, const char *pod_uid);
void sim_check_init_ends(struct sim *sim, const char *pod_uid);
void sim_check_code_lost(struct sim *sim, const char *pod_uid);
void sim_check_starts_again(struct sim *sim, const char *pod_uid);
/*
 * check_cleanup.c.
 *
 * - held: the process of a pod has ended for good, and the second container runs on.
 * - held_ends: this second container ends by itself.
 * - trained: a pod is created.
 * - stop: the operator ends a pod that it keeps.
 * - begins: a process starts.
 * - leftover: a pod is left after the end of a job.
 */
void sim_check_held(struct sim *sim, const char *pod_uid, int code);
void sim_check_held_ends(struct sim *sim, const char *pod_uid);
void sim_check_trained(struct sim *sim, const struct sim_job_truth *job,
		       const struct sim_pod_truth *pod);
void sim_check_stop(struct sim *sim, const struct hf_request *request);
/* How many pods of the job were evicted, on a dead node or on a failed device: all those of one node may be one fault. */
int64_t sim_pods_taken(struct sim *sim, const struct sim_job_truth *job);
/* Call this when a process of the pod begins. Notes the former pods of the same rank. */
void sim_check_follows(struct sim *sim, const struct sim_pod_truth *pod);
void sim_check_begins(struct sim *sim, const struct sim_job_truth *job, struct sim_pod_truth *pod);
void sim_check_leftover(struct sim *sim, const struct sim_job_truth *job,
			const struct sim_pod_truth *pod);
/* True if the clean-up policy of this failed job ends running pods. */
bool sim_stops_pods(const struct sim_job_truth *job, struct hf_doc *stored);
/* check_nodes.c */
void sim_check_forced(struct sim *sim, const struct hf_request *request);
/* What the store shows of nodes has changed, so a storm may have begun or ended. */
void sim_check_weather(struct sim *sim);
void sim_check_given_up(struct sim *sim, const char *pod_uid);
void sim_check_gone(struct sim *sim, struct sim_pod_truth *pod);
/* True if lists may show the past although the operator asked for the present. New objects are then
 * missing, and ended ones look alive. A charge too many, or a pod that is created and removed
 * again, is allowed; all else must hold. */
bool sim_lists_lie(const struct sim *sim);
/* True if nothing between the operator and the store lets the operator see the past. */
bool sim_sees_the_present(const struct sim *sim);
void sim_check_avoids(struct sim *sim, const struct sim_pod_truth *pod, struct hf_doc *object,
		      const struct hf_json *status);
/* Taint eviction deletes a pod whose node has no taint. */
void sim_check_stray(struct sim *sim, const char *pod);
void sim_check_replace_delay(struct sim *sim, const struct sim_pod_truth *pod);
void sim_check_barrier(struct sim *sim, const struct sim_job_truth *job,
		       const struct sim_pod_truth *pod);
/* check_past.c */
void sim_past_changed(struct sim *sim, const struct hf_resource *resource);
/* A list was answered with the state before this many changes. */
void sim_past_told(struct sim *sim, const struct hf_resource *resource, uint64_t stale);
void sim_past_note(struct sim *sim, struct sim_job_truth *job, const struct hf_json *before,
		   const struct hf_json *after);
void sim_past_made(struct sim *sim, struct sim_pod_truth *pod);
/* True if a list may have told an operator that the pod does not exist. */
bool sim_may_not_know_of(struct sim *sim, const struct sim_pod_truth *pod);
/* True if a list may have told an operator of the job before this change, and no later news has
 * corrected it. */
bool sim_may_not_know(struct sim *sim, const struct sim_job_truth *job, uint64_t change);
/* check_policy.c */
void sim_check_policy(struct sim *sim, struct sim_job_truth *job, struct hf_doc *doc,
		      const struct hf_json *before, const struct hf_json *after);
void sim_check_delay_of_people(struct sim *sim, const struct sim_job_truth *job,
			       const struct sim_pod_truth *pod, const struct hf_json *status);
void sim_check_delay(struct sim *sim, const struct sim_job_truth *job,
		     const struct sim_pod_truth *pod, struct hf_doc *doc,
		     const struct hf_json *status);
void sim_check_service(struct sim *sim, const struct sim_job_truth *job,
		       const struct sim_pod_truth *pod);
/* A process of the pod ends. */
void sim_check_ran_on(struct sim *sim, const struct sim_job_truth *job,
		      const struct sim_pod_truth *pod);
void sim_check_left(struct sim *sim, struct hf_doc *doc);
/* Call this after a write of the status, and at the end of the run. */
void sim_check_texts(struct sim *sim, const struct sim_job_truth *job,
		     const struct hf_json *status);
void sim_check_cleaned(struct sim *sim, const struct sim_job_truth *job,
		       const struct sim_pod_truth *pod);
/* training.c */
void sim_check_no_progress(struct sim *sim, const struct sim_job_truth *job,
			   const struct hf_json *before, const struct hf_json *after);
void sim_training_started(struct sim *sim, struct sim_pod_truth *pod);
void sim_training_ended(struct sim *sim, const struct sim_pod_truth *pod);
/* check_time.c */
void sim_check_deadline(struct sim *sim, const struct sim_job_truth *job,
			const struct hf_json *spec, const struct hf_json *status);
/* A pod has just ended. object: the pod as it is stored now; NULL: gone. */
void sim_check_ended(struct sim *sim, struct sim_job_truth *job, const struct sim_pod_truth *pod,
		     struct hf_doc *object);
void sim_check_not_made_again(struct sim *sim, const struct sim_job_truth *job,
			      const struct sim_pod_truth *pod);
void sim_check_cost(struct sim *sim, const struct hf_request *request);
void sim_check_writes(struct sim *sim, const struct sim_job_truth *job);
/* Called when time goes by. */
void sim_check_clock(struct sim *sim);
/* True if every job has ended or is suspended, and nothing is left that has to go. */
bool sim_is_settled(struct sim *sim);
/* Call this after the quiet at the end of the run. */
void sim_check_end(struct sim *sim);
struct sim_pod_truth *sim_pod_truth(struct sim *sim, const char *uid);
struct sim_job_truth *sim_job_truth(struct sim *sim, const char *uid);
/* A person did something to this job, pod or service. */
void sim_check_touched(struct sim *sim, struct hf_doc *doc);
enum sim_state sim_state_of(const struct hf_json *job, const struct hf_json *status);
/* Adds one to the count of each job's state. Returns the number of jobs. */
size_t sim_states_count(struct sim *sim, unsigned long long hits[SIM_STATES]);

#endif
