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
 * The simulator: the whole operator on the in-memory engine, with virtual clocks, from one seed.
 *
 * - The engine holds all objects. People, Kueue, scheduler, kubelets and node controllers are
 *   simulated and write to it directly. The garbage collector is the real one.
 * - Each operator is a client of the engine with faults: refusals, lost replies, late and lost
 *   events. It has its own loop and clocks. Between any two of its requests it may be stopped and
 *   continued, or destroyed and created again.
 *
 * A run begins with a time of trouble. In the calm after it, no more faults happen and every
 * process succeeds. Invariants are checked at every change of the store (check.c), and others after
 * the calm.
 */

#define SIM_TROUBLE_MIN (5 * HF_MINUTE)
#define SIM_TROUBLE_MAX (30 * HF_MINUTE)
#define SIM_CALM_MAX (3 * HF_HOUR) /* a back-off of up to 600 s may occur several times */
#define SIM_CALM_LOOK (30 * HF_SECOND)
/* For this time the operators must have no work before the calm is over: longer than the
 * generator's times to live. A single operator gets longer, because its queue may hold a job back
 * after many failures in a row (ctl/queue.h). Two operators renew a Lease all the while, so a long
 * wait would cost more. */
#define SIM_CALM_STILL (4 * HF_MINUTE)
#define SIM_CALM_STILL_ALONE (17 * HF_MINUTE)
#define SIM_QUIET (5 * HF_MINUTE)
#define SIM_JOBS_MAX 3
#define SIM_PODS_MAX 16 /* of one job */
#define SIM_WALL_START (1700000000 * HF_SECOND)

/* How hard the world of a seed is. All members are drawn from the seed. */
struct sim_mood {
	/* permille of requests or events, or a share of the group's deeds */
	unsigned weight[SIM_TROUBLES];
	/* deeds of the group; 0 for troubles of requests and events */
	unsigned per_hour[SIM_GROUPS];
	hf_time trouble;            /* how long the time of trouble lasts */
	hf_time run_max, start_max; /* the longest run and the longest start of a process */
	hf_time lag_max;            /* the longest delay of a watch event that lags */
	bool rare;                  /* jobs have rare settings (spec.c) */
	bool trains;  /* ranks report their steps, and every node has an agent (training.c) */
	bool plugins; /* kubelets report devices, and there are no agents (plugins.c) */
	bool fences;  /* ranks fence themselves when their node has no contact (fences.c) */
	bool sunny; /* no faults of requests and operators; in half of these worlds none of nodes */
};

struct sim;

/* --- story.c: what happened, printed when a failed seed runs again ---------------------------- */

#define SIM_STORY_LINES 1000
struct sim_story {
	char *lines[SIM_STORY_LINES];
	size_t next;
	bool kept;  /* false: no lines are made */
	bool aloud; /* each line is printed at once */
};
#define sim_tell(sim, ...) ((sim)->story.kept ? sim_say((sim), __VA_ARGS__) : (void)0)
void sim_say(struct sim *sim, const char *fmt, ...) HF_PRINTF(2, 3);
void sim_story_print(const struct sim *sim);
void sim_story_release(struct sim *sim);

/* --- lives.c: the operators -------------------------------------------------------------------- */

/* One of up to two operators, with its own clocks, connection, deaths and births. */
#define SIM_LIVES_MAX 2
#define SIM_LEASE "leader"
struct sim_life {
	struct sim *sim;
	const char *name;  /* "operator", "other" */
	char identity[32]; /* the name in the Lease; "" for a single operator */
	/* NULL while the operator is dead; monotonic time is that of the world */
	struct hf_loop *loop;
	struct hf_store *client; /* NULL while the operator is dead */
	struct hf_store *bare;   /* the client with faults, without the narrow schema in front */
	struct hf_operator *op;  /* a single operator, which always acts; NULL if there are two */
	/* one of two operators, which acts while it holds the Lease; NULL if there is one */
	struct hf_manager *manager;
	struct hf_timer *crash_timer, *birth_timer, *stop_timer, *wake_timer;
	struct hf_timer *relist_timer; /* after a watch lost an event: breaks the watches */
	/* the watches are broken a second time, because one may be reconnecting at the first */
	bool relist_twice;
	hf_time skew; /* its wall clock minus the world's */
	bool paused, stopping, stopped;
};
void sim_lives_begin(struct sim *sim);
void sim_lives_calm(struct sim *sim);
void sim_lives_end(struct sim *sim);
/* The operator dies after this time. */
void sim_crash_in(struct sim_life *life, hf_time after);
/* Returns NULL if the operator does not act now. */
struct hf_operator *sim_acting(const struct sim_life *life);
/* Runs everything on all loops up to this time. Returns false if an invariant broke. */
bool sim_advance(struct sim *sim, hf_time until);

/* --- faults.c: between the operators and the store ------------------------------------------- */

void sim_faults_init(struct sim_life *life, struct hf_memstore_faults *ret_faults);

/* --- narrow_schema.c: CRDs without the fields of Holdfast ------------------------------------ */

/* Returns a store in front of `behind`, which it then owns. */
struct hf_store *sim_narrow_schema_create(struct hf_store *behind);
void sim_narrow_schema_job(struct hf_json *job);
/* Return the status with its ledger, and runPolicy with its additions, from the spec or the
 * annotations. The caller owns the result and must not change it. NULL: none. */
struct hf_json *sim_status(struct hf_doc *job);
struct hf_json *sim_run_policy(struct hf_doc *job);

/* --- the world --------------------------------------------------------------------------------- */

void sim_kubelet_init(struct sim *sim);
void sim_kubelet_release(struct sim *sim);
void sim_people_init(struct sim *sim);
void sim_people_release(struct sim *sim);
/* One of the people does something now. */
void sim_people_act(struct sim *sim);
/* A person sets a longer time to live, just before the operator deletes the job. */
void sim_people_keep(struct sim *sim, const struct hf_request *request);
/* A person deletes a pod, in worlds where people delete pods. */
void sim_people_delete_pod(struct sim *sim);
/* people resume what they suspended, and then do nothing more */
void sim_people_calm(struct sim *sim);
struct hf_json *sim_random_job(struct sim *sim, const char *name);

/* --- kinds.c: which kinds of jobs a world has ------------------------------------------------ */

struct sim_kind {
	const struct hf_framework *framework;
	const struct hf_resource *resource;
};
/* The name of a job decides which kind it has. */
const struct sim_kind *sim_kind_of(const struct sim *sim, const char *job);
bool sim_is_mixed(const struct sim *sim);
/* Returns the kinds that the operator knows; NULL ends the list. */
const struct hf_framework *const *sim_frameworks(const struct sim *sim);
void sim_each_job(struct sim *sim, void (*fn)(void *arg, struct hf_doc *doc), void *arg);
struct hf_doc *sim_job_peek(struct sim *sim, const char *name); /* NULL: none */
/* Returns the replicas of the job's spec, an object by replica type. */
const struct hf_json *sim_replicas_of(const struct sim *sim, struct hf_doc *job);

/* --- check.c: what must hold --------------------------------------------------------------- */

struct sim_checks;

struct sim {
	uint64_t seed;
	struct hf_rng rng;        /* random numbers of the world */
	struct hf_rng engine_rng; /* random numbers of UIDs */
	struct hf_rng people_rng; /* random numbers of people: when they act, and what they do */
	/* random numbers of second containers, and of what the end of a job leaves (spec.c) */
	struct hf_rng beside;
	struct sim_mood mood;
	struct sim_dice dice; /* random numbers of troubles */
	bool narrow_schema;
	bool calm;
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_gc *gc;

	struct sim_life lives[SIM_LIVES_MAX];
	size_t n_lives; /* with two, they elect a leader */
	struct hf_timer *lives_timer;
	unsigned crashes, leaders;
	/* requests of the operators; work: those that are not for Leases */
	unsigned long long requests, work;
	/* requests in the quiet, and ends of processes there, of pods that a job left behind */
	unsigned long long requests_quiet, ends_quiet;
	hf_time busy_at; /* when the last request came, and how many came at that moment */
	unsigned busy;
	bool quiet;
	hf_time quota_until; /* until then creates of pods are refused */

	struct sim_nodes *nodes;
	struct sim_kubelet *kubelet;
	struct sim_people *people;
	struct sim_story story;
	struct sim_checks *checks;

	/* crashes.c */
	const struct sim_script *script; /* NULL: the world is random */
	bool played; /* the world is driven from outside: no people and no operators */
	struct sim_script_state *script_state;
	unsigned long long crash_at;
	int crash;

	const char *unchecked; /* invariants whose names begin so may break; NULL: none may */
	bool failed;
	char failure[1024];
};

/* An invariant is broken. The first failure is kept, and the run ends. */
void sim_fail(struct sim *sim, const char *invariant, const char *fmt, ...) HF_PRINTF(3, 4);

/* For observers of the store: a write in memory never fails, so the store is never reset. */
void sim_on_reset(void *arg);

bool sim_chance(struct sim *sim, unsigned permille);
hf_time sim_span(struct sim *sim, hf_time max);
hf_time sim_now(const struct sim *sim); /* monotonic */
/* Does a request as the world, at once. Returns the result's code. */
int sim_apply(struct sim *sim, const struct hf_request *request);
/* A merge patch, given as text. */
int sim_patch(struct sim *sim, const struct hf_resource *resource, const char *ns, const char *name,
	      const char *subresource, const char *text);

/* --- sim.c: a run ------------------------------------------------------------------------------ */

struct sim_script;
struct sim_options {
	uint64_t seed;
	const struct sim_script *script; /* NULL: the world of the seed */
	/* of a script: the number of the request at which the operator dies, from 1 */
	unsigned long long crash_at;
	int crash;          /* enum sim_crash */
	bool narrow_schema; /* the CRDs drop the fields of Holdfast */
	bool aloud;
	bool story;                 /* keep the lines of the story, to print them after a failure */
	const struct sim_ids *only; /* NULL: every trouble that is drawn happens */
	const char *unchecked;      /* NULL: every invariant is checked */
	/* If set, with a script: the function drives a world without job, people and operators. */
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
	char result[256]; /* result of a script */
	uint64_t digest;  /* hash of all stored changes: equal runs have equal digests */
	/* the troubles that happened, in order; release with sim_ids_release */
	struct sim_ids happened;
};
/* Runs one seed from beginning to end, and adds its numbers to the summary. */
void sim_run(const struct sim_options *options, struct sim_summary *summary,
	     struct sim_outcome *ret_outcome);

#endif
