/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_CHECK_H
#define HF_TESTS_SIM_CHECK_H

#include "sim/sim.h"

/* What must hold, and the truth that it is held against. */

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

/* --- check_read.c: documents, read apart from the code that wrote them --- */
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

/* The truth about one pod, as the world and not the operator knows it. */
struct sim_pod_truth {
	char *uid, *job_uid, *name;
	enum sim_role role;
	int64_t index, generation, attempt, incident;
	bool alive;          /* its process runs */
	hf_time process_end; /* it last ended; 0: it never has */
	bool ended;          /* phase Failed or Succeeded, being deleted, or gone */
	bool succeeded, gone;
	bool marked;     /* for deletion, before it was gone … */
	bool missed;     /* … when an operator may not have learned of it */
	bool unseen;     /* no watch tells that it goes */
	bool known;      /* the operator asked for its end: it knew what it was */
	bool begun;      /* its process ran at some time */
	hf_time held_at; /* its process ended for good beside another container; 0: it did not */
	int held_code;   /* with that code */
	bool disrupted;  /* its end was the cluster's doing */
	bool sick;       /* its device was broken at some time */
	bool stalled;    /* its job stood still at some time */
	hf_time unwell_since, unwell_first; /* its kubelet calls its device unhealthy; 0: not */
	bool away;    /* its node was dead, cut off or shut down at some time */
	bool lost;    /* and so for as long as it takes to count as lost, or was proven dead */
	bool refused; /* by its kubelet */
	bool oom;
	char node[16];
	int64_t fence; /* it ends itself after so many seconds without contact; 0: it does not */
	bool forced;   /* the operator deleted it without grace */
	bool tainted;  /* its node kept pods off when it went */
	hf_time made_at, gone_at;
	uint64_t made_in;       /* check_past.c: the change of pods that made it */
	hf_time unplaced_since; /* no node takes it; 0: it has one */
	bool failed;
	bool failed_alone; /* and was not disrupted when it did */
	hf_time ended_in_place_at;
	unsigned restarts; /* terminations that the kubelet follows with a start in the pod … */
	unsigned codes_lost; /* ends whose exit code the node has lost */
	unsigned init_ends; /* restarts of an init container, before the program */
};
/* And about one job. */
struct sim_job_truth {
	char *uid, *name;
	bool scope_job, has_rules;
	bool touched;  /* by people, in a way that ends or restarts pods */
	bool not_ours; /* managedBy names another */
	bool evicted;  /* a taint evicted one of its pods: a stray eviction costs nothing */
	bool foreign;  /* another controller wrote into its status */
	bool gone;
	char *terminal; /* "Succeeded" or "Failed" once it was seen */
	char *completion_time;
	char *patch_version;   /* of the last status patch sent for it */
	char *foreign_version; /* that a stranger's write into the status was made for */
	int64_t ended[SIM_ROLES][SIM_PODS_MAX]; /* pods, by replica */
	int64_t ends;                           /* and terminations in place */
	enum sim_state state;
	int64_t ours;          /* ends that the operator asked for */
	int64_t made;          /* pods, and objects beside them */
	int64_t remade;        /* a ConfigMap of hosts, a Role: brought up to date */
	int64_t writes, deeds; /* requests of the operator; what people did */
	hf_time touched_at;    /* the last time */
	hf_time must_fail_by, must_fail_since; /* monotonic; 0: it need not */
	/* training.c: a rank hangs, and all stand still; since 0: they do not */
	hf_time stands_since, stands_until, stood_until;
	int64_t stands_ends;         /* ends at that time */
	enum sim_state stands_state; /* where the job stood then */
	char *stands_for;            /* UID of the pod that hangs */
	/* check_policy.c */
	hf_time active;      /* of the times before this one: it was suspended in between */
	int64_t runs_before; /* and how many those were */
	int64_t incident;    /* the newest */
	hf_time incident_at; /* when it was written down */
	hf_time user_at;     /* when people last deleted or restarted something of it; 0: never */
	bool user_again;     /* and had done so within five minutes before */
	int64_t user_runs;   /* runs_before then */
	bool late;           /* an hour lay between two of them */
	bool in_place;       /* a container ended and is to be started again in its pod */
	hf_time ended_at;    /* its terminal condition was seen then */
	/* check_past.c: which change of its kind wrote that down; 0: none */
	uint64_t terminal_in, suspended_in, succeeded_in[SIM_ROLES][SIM_PODS_MAX];
	int64_t trained_in[SIM_ROLES][SIM_PODS_MAX]; /* the generation; 0: none */
};

/* Of one kind of jobs, or pods: how many changes there have been, and what lists from the past told of.  Who was told
 * as things were after `from` changes may not know of those up to `to`. */
struct sim_past {
	const struct hf_resource *resource;
	uint64_t changes, from, to;
	hf_time at; /* of the last such list; 0: none */
};
#define SIM_PASTS_MAX 8

struct sim_checks {
	struct hf_map *pods; /* uid → struct sim_pod_truth */
	struct hf_map *jobs; /* uid → struct sim_job_truth */
	struct hf_memstore_observer observer;
	unsigned long long checked; /* changes looked at */
	hf_time gap_at;             /* an operator knew less than the watches told; 0: never */
	struct sim_past past[SIM_PASTS_MAX];
	uint64_t digest;
};
void sim_checks_init(struct sim *sim);
void sim_checks_release(struct sim *sim);
void sim_check_request(struct sim *sim, const struct hf_request *request);
/* Of a job that the operator deletes, as it stands when the request arrives. */
void sim_check_time_to_live(struct sim *sim, const struct hf_request *request);
void sim_check_leader(struct sim_life *life, const struct hf_request *request);
void sim_check_process_starts(struct sim *sim, const char *pod_uid);
void sim_check_process_ends(struct sim *sim, const char *pod_uid);
/* It was killed for its memory: that is the application's, whatever else is. */
void sim_check_oom(struct sim *sim, const char *pod_uid);
/* No node takes it, and its scheduler has said so; each time that it looks. */
void sim_check_unplaced(struct sim *sim, const char *pod_uid);
void sim_check_bound(struct sim *sim, const char *pod_uid, const char *node);
/* It vanishes: no operator is told that it goes. */
void sim_check_unseen(struct sim *sim, const char *pod_uid);
/* Its node is, or was for a while, unable to speak for it. */
void sim_check_away(struct sim *sim, const char *pod_uid);
/* The node is back, its death is proven, or the run is over: its pods may have been lost with it. */
void sim_check_lost(struct sim *sim, const char *node);
/* Its device is broken; the device of a node breaks, and may explain the ends of pods that are gone. */
void sim_check_sick(struct sim *sim, const char *pod_uid);
void sim_check_sick_late(struct sim *sim, const char *node);
/* check_fences.c: it ends itself; it has ended; it is about to be deleted by force. */
void sim_check_fenced(struct sim *sim, const char *pod_uid);
void sim_check_contact(struct sim *sim, const struct sim_pod_truth *pod);
void sim_check_stopped(struct sim *sim, const struct sim_pod_truth *pod,
		       const struct hf_request *request, struct hf_doc *object);
/* check_plugins.c: what its kubelet has said of its device; a status was written. */
void sim_check_word(struct sim *sim, const char *pod_uid, bool unhealthy);
void sim_check_moved(struct sim *sim, const struct sim_job_truth *job, const struct hf_json *before,
		     const struct hf_json *after);
/* An operator dies, or news are lost that it finds out about later. */
void sim_check_gap(struct sim *sim);
/* Who was marked for deletion, as a person's delete does, is known to have been so, whenever the
 * operator looks: both events may come in one turn.  Unless the news were lost, or who had them. */
bool sim_may_miss(const struct sim *sim, const struct sim_pod_truth *pod);
/* A node goes down: late watches may still show pods there that went a while ago. */
void sim_check_node_down(struct sim *sim, const char *node);
void sim_check_ends_in_place(struct sim *sim, const char *pod_uid);
void sim_check_init_ends(struct sim *sim, const char *pod_uid);
void sim_check_code_lost(struct sim *sim, const char *pod_uid);
void sim_check_starts_again(struct sim *sim, const char *pod_uid);
/* check_cleanup.c: its process has ended for good and its second container runs on; that one ends by
 * itself; the operator asks for the end of a pod that is to be kept; a process starts; what a pod may
 * be when all is over. */
void sim_check_held(struct sim *sim, const char *pod_uid, int code);
void sim_check_held_ends(struct sim *sim, const char *pod_uid);
void sim_check_trained(struct sim *sim, const struct sim_job_truth *job,
		       const struct sim_pod_truth *pod);
void sim_check_stop(struct sim *sim, const struct hf_request *request);
void sim_check_begins(struct sim *sim, const struct sim_job_truth *job, struct sim_pod_truth *pod);
void sim_check_leftover(struct sim *sim, const struct sim_job_truth *job,
			const struct sim_pod_truth *pod);
/* The clean-up of that failed job ends what runs. */
bool sim_stops_pods(const struct sim_job_truth *job, struct hf_doc *stored);
/* check_nodes.c */
void sim_check_forced(struct sim *sim, const struct hf_request *request);
/* What the store shows of nodes has changed: a storm may have begun, or ended. */
void sim_check_weather(struct sim *sim);
void sim_check_given_up(struct sim *sim, const char *pod_uid);
void sim_check_gone(struct sim *sim, struct sim_pod_truth *pod);
/* Lists may be answered from the past though the present was asked for.  What is not there yet looks
 * as if it had gone, and what has ended as if it had not: a unit may be charged, and a pod made that is
 * removed again; all else holds. */
bool sim_lists_lie(const struct sim *sim);
/* Nothing between the operator and the store that makes it see the past. */
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
/* A list is answered as it was so many changes ago. */
void sim_past_told(struct sim *sim, const struct hf_resource *resource, uint64_t stale);
void sim_past_note(struct sim *sim, struct sim_job_truth *job, const struct hf_json *before,
		   const struct hf_json *after);
void sim_past_made(struct sim *sim, struct sim_pod_truth *pod);
/* An operator may have been told that the pod is not there. */
bool sim_may_not_know_of(struct sim *sim, const struct sim_pod_truth *pod);
/* An operator may have been told of the job as it was before that change of its kind, and not of it since. */
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
/* Its process ends. */
void sim_check_ran_on(struct sim *sim, const struct sim_job_truth *job,
		      const struct sim_pod_truth *pod);
void sim_check_left(struct sim *sim, struct hf_doc *doc);
/* After a write of the status, and in the end. */
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
/* This pod has just ended; object as it is now, NULL: gone. */
void sim_check_ended(struct sim *sim, struct sim_job_truth *job, const struct sim_pod_truth *pod,
		     struct hf_doc *object);
void sim_check_not_made_again(struct sim *sim, const struct sim_job_truth *job,
			      const struct sim_pod_truth *pod);
void sim_check_cost(struct sim *sim, const struct hf_request *request);
void sim_check_writes(struct sim *sim, const struct sim_job_truth *job);
/* Time goes by. */
void sim_check_clock(struct sim *sim);
/* Every job has ended or is suspended, with nothing left that is to go. */
bool sim_is_settled(struct sim *sim);
/* When the quiet is over. */
void sim_check_end(struct sim *sim);
struct sim_pod_truth *sim_pod_truth(struct sim *sim, const char *uid);
struct sim_job_truth *sim_job_truth(struct sim *sim, const char *uid);
/* A person did something to this job, pod or service. */
void sim_check_touched(struct sim *sim, struct hf_doc *doc);
enum sim_state sim_state_of(const struct hf_json *job, const struct hf_json *status);
/* Adds one for each job to the state it is in; how many there are. */
size_t sim_states_count(struct sim *sim, unsigned long long hits[SIM_STATES]);

#endif
