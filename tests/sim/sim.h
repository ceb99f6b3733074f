/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_SIM_H
#define HF_TESTS_SIM_SIM_H

#include "base/map.h"
#include "base/strbuf.h"
#include "ctl/backoff.h"
#include "ctl/metrics.h"
#include "json/doc.h"
#include "local/gc.h"
#include "local/local.h"
#include "loop/loop.h"
#include "operator/manager.h"

/*
 * The simulator: the whole operator on the in-memory engine, one virtual clock, one seed.
 *
 *   people ──▶ engine ◀── scheduler, kubelet (simulated), garbage collector (the real one)
 *                ▲
 *                │ a client with faults: refusals, lost replies, late and lost events
 *             operator ── destroyed and made anew between any two of its requests
 *
 * A run has a time of trouble, then a calm: no more faults, every process succeeds.  What
 * must hold always is checked at every change of the store (check.c); what must hold in
 * the end, when the calm is over.
 */

#define SIM_TROUBLE (10 * HF_MINUTE)
#define SIM_CALM (3 * HF_HOUR) /* back-off of up to 600 s, several times */
#define SIM_QUIET (10 * HF_MINUTE)
#define SIM_JOBS_MAX 3
#define SIM_PODS_MAX 16 /* of one job */

/* How hard a seed is, drawn from it. */
struct sim_mood {
	unsigned refuse_permille, lose_permille, late_permille, crash_permille;
	unsigned watch_end_permille, watch_late_permille, watch_twice_permille;
	unsigned people_per_hour; /* deeds of people */
	unsigned clock_permille;  /* of deeds: the API server's clock steps */
	unsigned fail_percent;    /* of processes */
	hf_time run_max, start_max;
};

struct sim;

/* --- story.c: what happened lately, to be read when a seed fails ------------------------- */

#define SIM_STORY_LINES 400
struct sim_story {
	char *lines[SIM_STORY_LINES];
	size_t next;
	bool aloud; /* print as it comes */
};
void sim_tell(struct sim *sim, const char *fmt, ...) HF_PRINTF(2, 3);
void sim_story_print(const struct sim *sim);
void sim_story_release(struct sim *sim);

/* --- check.c: what must hold --------------------------------------------------------------- */

enum sim_role { SIM_MASTER, SIM_WORKER, SIM_ROLES };

/* The truth about one pod, as the world and not the operator knows it. */
struct sim_pod_truth {
	char *uid, *job_uid, *name;
	enum sim_role role;
	int64_t index, generation, attempt, incident;
	bool alive; /* its process runs */
	bool ended; /* phase Failed or Succeeded, being deleted, or gone */
	bool succeeded, gone;
	bool known;     /* the operator asked for its end: it knew what it was */
	bool disrupted; /* its end was the cluster's doing */
	bool failed;
	unsigned restarts; /* in place, by the kubelet */
};
/* And about one job. */
struct sim_job_truth {
	char *uid, *name;
	bool scope_job, has_rules;
	bool touched; /* by people, in a way that ends or restarts pods */
	bool foreign; /* another controller wrote into its status */
	bool gone;
	char *terminal; /* "Succeeded" or "Failed" once it was seen */
	char *completion_time;
	char *patch_version;                    /* of the last status patch sent for it */
	int64_t ended[SIM_ROLES][SIM_PODS_MAX]; /* pods, by replica */
	int64_t ends;                           /* and restarts in place */
};

struct sim_checks {
	struct hf_map *pods; /* uid → struct sim_pod_truth */
	struct hf_map *jobs; /* uid → struct sim_job_truth */
	struct hf_local_observer observer;
	unsigned long long checked; /* changes looked at */
};
void sim_checks_init(struct sim *sim);
void sim_checks_release(struct sim *sim);
void sim_check_request(struct sim *sim, const struct hf_request *request);
struct sim_life;
void sim_check_leader(struct sim_life *life, const struct hf_request *request);
void sim_check_process_starts(struct sim *sim, const char *pod_uid);
void sim_check_process_ends(struct sim *sim, const char *pod_uid);
void sim_check_restart_in_place(struct sim *sim, const char *pod_uid);
/* When the calm is over. */
void sim_check_end(struct sim *sim);
struct sim_pod_truth *sim_pod_truth(struct sim *sim, const char *uid);
struct sim_job_truth *sim_job_truth(struct sim *sim, const char *uid);
/* A person did something to this job, pod or service. */
void sim_check_touched(struct sim *sim, struct hf_doc *doc);

/* --- the rest ------------------------------------------------------------------------------ */

void sim_kubelet_init(struct sim *sim);
void sim_kubelet_release(struct sim *sim);
void sim_people_init(struct sim *sim);
void sim_people_release(struct sim *sim);
void sim_people_calm(struct sim *sim); /* resume what they suspended, then do nothing more */
struct hf_json *sim_random_job(struct sim *sim, const char *name);

/* One operator of up to two: with its own connection, its own deaths and births. */
#define SIM_LIVES_MAX 2
#define SIM_LEASE "leader"
struct sim_life {
	struct sim *sim;
	const char *name;           /* "operator", "other" */
	char identity[32];          /* in the Lease; "" where it is alone */
	struct hf_store *client;    /* NULL while it is dead */
	struct hf_operator *op;     /* acts always; NULL where there are two */
	struct hf_manager *manager; /* acts while it holds the Lease */
	struct hf_timer *crash_timer, *birth_timer, *stop_timer;
	bool stopping, stopped;
};
void sim_faults_init(struct sim_life *life, struct hf_local_faults *ret_faults);
/* It dies after so long. */
void sim_crash_in(struct sim_life *life, hf_time after);
/* NULL: it does not act now. */
struct hf_operator *sim_acting(const struct sim_life *life);

/* --- narrow.c: CRDs that do not keep what is ours ------------------------------------------ */

/* A store in front, which it takes over. */
struct hf_store *sim_narrow_create(struct hf_store *behind);
void sim_narrow_job(struct hf_json *job);
/* Status with the ledger in it, and runPolicy's additions, wherever they stand; the caller's,
 * NULL: none. */
struct hf_json *sim_status(struct hf_doc *job);
struct hf_json *sim_run_policy(struct hf_doc *job);

struct sim {
	uint64_t seed;
	struct hf_rng rng; /* the world's; the engine's randomness is drawn from it as well */
	struct sim_mood mood;
	bool narrow;
	bool calm;
	struct hf_loop *loop;
	struct hf_local *local;
	struct hf_gc *gc;

	struct sim_life lives[SIM_LIVES_MAX];
	size_t n_lives; /* two elect a leader */
	unsigned crashes, leaders;
	unsigned long long requests; /* of the operators */
	unsigned long long requests_quiet;
	bool quiet;

	struct sim_kubelet *kubelet;
	struct sim_people *people;
	struct sim_story story;
	struct sim_checks checks;

	bool failed;
	char failure[1024];
};

/* An invariant is broken: the first one is kept, the run ends. */
void sim_fail(struct sim *sim, const char *invariant, const char *fmt, ...) HF_PRINTF(3, 4);

/* For observers: a commit in memory never fails, so nothing is ever undone. */
void sim_on_reset(void *arg);

bool sim_chance(struct sim *sim, unsigned permille);
hf_time sim_span(struct sim *sim, hf_time max);
/* Perform at once as the world; the result's code is told, nothing else. */
int sim_apply(struct sim *sim, const struct hf_request *request);
/* A merge patch given as text. */
int sim_patch(struct sim *sim, const struct hf_resource *resource, const char *ns, const char *name,
	      const char *subresource, const char *text);

struct sim_options {
	uint64_t seed;
	bool narrow; /* the API does not keep what is ours */
	bool aloud;
};
struct sim_summary {
	unsigned crashes, leaders;
	unsigned long long requests, checked;
};
/* One seed from beginning to end.  false: it failed, and the story was printed. */
bool sim_run(const struct sim_options *options, struct sim_summary *ret_summary);

#endif
