/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_SIM_H
#define HF_TESTS_SIM_SIM_H

#include "base/map.h"
#include "base/random.h"
#include "base/strbuf.h"
#include "json/doc.h"
#include "loop/loop.h"
#include "memstore/gc.h"
#include "memstore/memstore.h"
#include "operator/manager.h"
#include "sim/trouble.h"

/*
 * The simulator: the whole operator on the in-memory engine, virtual clocks, one seed.
 *
 *   people, Kueue ──▶ engine ◀── scheduler, kubelets, node controllers (simulated),
 *                       ▲        garbage collector (the real one)
 *                       │ a client with faults: refusals, lost replies, late and lost events
 *                    operator ── with a loop and clocks of its own; stopped, gone on with,
 *                                destroyed and made anew between any two of its requests
 *
 * A run has a time of trouble, then a calm: no more faults, every process succeeds.  What
 * must hold always is checked at every change of the store (check.c); what must hold in
 * the end, when the calm is over.
 */

#define SIM_TROUBLE_MIN (5 * HF_MINUTE)
#define SIM_TROUBLE_MAX (30 * HF_MINUTE)
#define SIM_CALM_MAX (3 * HF_HOUR) /* back-off of up to 600 s, several times */
#define SIM_CALM_LOOK (30 * HF_SECOND)
/* Longer than the TTLs of the generator; where one operator is alone, as long as its queue may keep
 * a job after many failures in a row (ctl/queue.h): two renew a Lease all the while. */
#define SIM_CALM_STILL (4 * HF_MINUTE)
#define SIM_CALM_STILL_ALONE (17 * HF_MINUTE)
#define SIM_QUIET (5 * HF_MINUTE)
#define SIM_JOBS_MAX 3
#define SIM_PODS_MAX 16 /* of one job */
#define SIM_WALL_START (1700000000 * HF_SECOND)

/* How hard a seed is, drawn from it. */
struct sim_mood {
	unsigned weight[SIM_TROUBLES]; /* permille, or a share of the group's deeds */
	unsigned per_hour[SIM_GROUPS]; /* deeds; 0 for what comes with requests and events */
	hf_time trouble;               /* how long it lasts */
	hf_time run_max, start_max;    /* of processes */
	hf_time lag_max;               /* of watch events that lag */
	bool rare;                     /* jobs have fields that few people set (spec.c) */
	bool trains;  /* ranks tell of their steps, and agents are everywhere (training.c) */
	bool plugins; /* kubelets speak of devices, and there are no agents (plugins.c) */
	bool fences;  /* and end themselves when their node has no contact (fences.c) */
	bool sunny; /* the API and the operators are well; in half of these worlds the nodes too */
};

struct sim;

/* --- story.c: what happened, told when a seed that failed is run again ------------------------ */

#define SIM_STORY_LINES 1000
struct sim_story {
	char *lines[SIM_STORY_LINES];
	size_t next;
	bool kept;  /* lines are made at all */
	bool aloud; /* printed as they come */
};
#define sim_tell(sim, ...) ((sim)->story.kept ? sim_say((sim), __VA_ARGS__) : (void)0)
void sim_say(struct sim *sim, const char *fmt, ...) HF_PRINTF(2, 3);
void sim_story_print(const struct sim *sim);
void sim_story_release(struct sim *sim);

/* --- lives.c: the operators -------------------------------------------------------------------- */

/* One operator of up to two: with its own clocks and connection, its own deaths and births. */
#define SIM_LIVES_MAX 2
#define SIM_LEASE "leader"
struct sim_life {
	struct sim *sim;
	const char *name;           /* "operator", "other" */
	char identity[32];          /* in the Lease; "" where it is alone */
	struct hf_loop *loop;       /* NULL while it is dead; monotonic as the world's */
	struct hf_store *client;    /* NULL while it is dead */
	struct hf_store *bare;      /* the client, without what stands in front */
	struct hf_operator *op;     /* acts always; NULL where there are two */
	struct hf_manager *manager; /* acts while it holds the Lease */
	struct hf_timer *crash_timer, *birth_timer, *stop_timer, *wake_timer;
	struct hf_timer *relist_timer; /* a watch lost an event: it ends */
	bool relist_twice;             /* ... and once more: it may be broken just then */
	hf_time skew;                  /* its wall clock is off by so much */
	bool paused, stopping, stopped;
};
void sim_lives_begin(struct sim *sim);
void sim_lives_calm(struct sim *sim);
void sim_lives_end(struct sim *sim);
/* It dies after so long. */
void sim_crash_in(struct sim_life *life, hf_time after);
/* NULL: it does not act now. */
struct hf_operator *sim_acting(const struct sim_life *life);
/* Run everything up to then, on all loops.  false: it failed. */
bool sim_advance(struct sim *sim, hf_time until);

/* --- faults.c: between the operators and the store ------------------------------------------- */

void sim_faults_init(struct sim_life *life, struct hf_memstore_faults *ret_faults);

/* --- narrow_schema.c: CRDs without the fields of Holdfast --------------------- */

/* A store in front, which it takes over. */
struct hf_store *sim_narrow_schema_create(struct hf_store *behind);
void sim_narrow_schema_job(struct hf_json *job);
/* Status with the ledger in it, and runPolicy's additions, wherever they stand: to be read; the caller's,
 * NULL: none. */
struct hf_json *sim_status(struct hf_doc *job);
struct hf_json *sim_run_policy(struct hf_doc *job);

/* --- the world --------------------------------------------------------------------------------- */

void sim_kubelet_init(struct sim *sim);
void sim_kubelet_release(struct sim *sim);
void sim_people_init(struct sim *sim);
void sim_people_release(struct sim *sim);
/* One of them does something, now. */
void sim_people_act(struct sim *sim);
/* Makes the time to live longer of a job that is about to be deleted. */
void sim_people_keep(struct sim *sim, const struct hf_request *request);
/* Where people delete pods at all. */
void sim_people_delete_pod(struct sim *sim);
void sim_people_calm(struct sim *sim); /* resume what they suspended, then do nothing more */
struct hf_json *sim_random_job(struct sim *sim, const char *name);

/* --- kinds.c: which kinds of jobs a world has ------------------------------------------------ */

struct sim_kind {
	const struct hf_framework *framework;
	const struct hf_resource *resource;
};
/* A job's name tells its kind. */
const struct sim_kind *sim_kind_of(const struct sim *sim, const char *job);
bool sim_is_mixed(const struct sim *sim);
/* Those that the operator knows; ends with NULL. */
const struct hf_framework *const *sim_frameworks(const struct sim *sim);
void sim_each_job(struct sim *sim, void (*fn)(void *arg, struct hf_doc *doc), void *arg);
struct hf_doc *sim_job_peek(struct sim *sim, const char *name); /* NULL: none */
/* Of a job's spec: an object by replica type. */
const struct hf_json *sim_replicas_of(const struct sim *sim, struct hf_doc *job);

/* --- check.c: what must hold --------------------------------------------------------------- */

struct sim_checks;

struct sim {
	uint64_t seed;
	struct hf_rng rng;        /* the world's */
	struct hf_rng engine_rng; /* of UIDs */
	struct hf_rng people_rng; /* when people act, and what they do */
	struct hf_rng beside; /* second containers of jobs, and what their end leaves (spec.c) */
	struct sim_mood mood;
	struct sim_dice dice; /* of troubles */
	bool narrow_schema;
	bool calm;
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_gc *gc;

	struct sim_life lives[SIM_LIVES_MAX];
	size_t n_lives; /* two elect a leader */
	struct hf_timer *lives_timer;
	unsigned crashes, leaders;
	unsigned long long requests, work; /* of the operators; but for Leases */
	/* ... in a quiet world, and processes that end there, of pods that a job left behind */
	unsigned long long requests_quiet, ends_quiet;
	hf_time busy_at; /* the last request came then, and so many at that moment */
	unsigned busy;
	bool quiet;
	hf_time quota_until; /* creates of pods are refused */

	struct sim_nodes *nodes;
	struct sim_kubelet *kubelet;
	struct sim_people *people;
	struct sim_story story;
	struct sim_checks *checks;

	/* crashes.c */
	const struct sim_script *script; /* NULL: chance rules */
	bool played;                     /* from outside: no people, no operators */
	struct sim_script_state *script_state;
	unsigned long long crash_at;
	int crash;

	const char *unchecked; /* invariants that begin so may be broken; NULL: none */
	bool failed;
	char failure[1024];
};

/* An invariant is broken: the first one is kept, the run ends. */
void sim_fail(struct sim *sim, const char *invariant, const char *fmt, ...) HF_PRINTF(3, 4);

/* For observers: a commit in memory never fails, so nothing is ever undone. */
void sim_on_reset(void *arg);

bool sim_chance(struct sim *sim, unsigned permille);
hf_time sim_span(struct sim *sim, hf_time max);
hf_time sim_now(const struct sim *sim); /* monotonic */
/* Perform at once as the world; the result's code is told, nothing else. */
int sim_apply(struct sim *sim, const struct hf_request *request);
/* A merge patch given as text. */
int sim_patch(struct sim *sim, const struct hf_resource *resource, const char *ns, const char *name,
	      const char *subresource, const char *text);

/* --- sim.c: a run ------------------------------------------------------------------------------ */

struct sim_script;
struct sim_options {
	uint64_t seed;
	const struct sim_script *script; /* NULL: what the seed makes */
	unsigned long long crash_at;     /* of a script: the request, from 1 */
	int crash;                       /* enum sim_crash */
	bool narrow_schema;              /* the API does not keep what is ours */
	bool aloud;
	bool story;                 /* keep the story, for sim_failure */
	const struct sim_ids *only; /* NULL: every trouble happens that is drawn */
	const char *unchecked;      /* NULL: nothing is left unchecked */
	/* With a script; not NULL: a world without job, people and operators, and this happens. */
	void (*play)(struct sim *sim, void *arg);
	void *play_arg;
};
struct sim_summary {
	unsigned long long seeds, crashes, leaders, requests, checked, troubles;
	unsigned long long minutes; /* of virtual time */
	struct sim_coverage coverage;
};
struct sim_outcome {
	bool failed;
	char failure[1024];
	char result[256];        /* of a script */
	uint64_t digest;         /* of all that was stored: the same run has the same */
	struct sim_ids happened; /* the troubles, in order; release with sim_ids_release */
};
/* One seed from beginning to end; adds to the summary. */
void sim_run(const struct sim_options *options, struct sim_summary *summary,
	     struct sim_outcome *ret_outcome);

#endif
