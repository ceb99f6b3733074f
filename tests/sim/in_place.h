/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_IN_PLACE_H
#define HF_TESTS_SIM_IN_PLACE_H

#include "base/map.h"
#include "base/random.h"
#include "base/strbuf.h"
#include "memstore/gc.h"
#include "memstore/memstore.h"
#include "operator/manager.h"
#include "store/resource.h"

/*
 * Restarts in place: the whole operator with agents, execs and kubelets, on the in-memory engine,
 * from one seed. See README.md.
 *
 * The world knows each process: its pod, generation, attempt and node. Checked at every start of a
 * process and every write of the job:
 *
 * - No process starts beside a process of another generation, and no rank has two processes. Nodes
 *   that are cut off are not counted.
 * - No more is charged than the world broke, and each incident is charged once.
 * - A barrier stands no longer than its deadlines allow, where all nodes are well.
 * - Where all ranks restart together, no rank begins again in a generation in which it was let start:
 *   its peers would go on without it.
 * - No process that was asked to save is killed before it has saved or the ledger's time for that is
 *   over. People and the loss of its node may kill it.
 * - A time-out of exec, a lost order and a stop by the agent are charged to nothing.
 * - In the end, with all well again, the job runs: each rank's process has the ledger's generation
 *   and attempt, and no rank is held.
 * - In a quiet world each fault is charged, pods keep their UIDs, and a restart of all ranks takes
 *   at most nodes + 4 writes.
 */
#define WALL_START (1767225600 * HF_SECOND)
#define NODES 4
#define WORKERS_MAX 6
#define RANKS_MAX (1 + WORKERS_MAX)
#define PODS_MAX 100000
#define GRACE_SECONDS 5
#define WAIT (60 * HF_SECOND)     /* inPlaceWaitSeconds */
#define UNHEARD (600 * HF_SECOND) /* how long exec waits with HOLDFAST_HOLD if no order comes */
#define REPEAT (20 * HF_SECOND)   /* an agent gives its orders again after this time */
#define HEARTBEAT (170 * HF_SECOND)
#define TROUBLE (20 * HF_MINUTE)
#define CALM (40 * HF_MINUTE)
#define HOLD_MAX (4 * HF_MINUTE)
#define WATCH_LATE (35 * HF_SECOND) /* an event of the operator's watch was lost */
#define LIVES_MAX 2
#define TEXT_MAX 16384

enum phase { WAITING, RUNNING, ENDED, DOWN };
extern const char *const ip_phase_names[];

struct world;
struct node;

struct pod {
	struct world *w;
	char *name, *uid, *job_uid;
	struct node *node; /* NULL: not bound */
	int64_t g0, a0;    /* the stamps: generation and attempt at the create of the pod */
	bool hold, never;  /* HOLDFAST_HOLD; restartPolicy Never */
	bool object;       /* the pod is in the store */
	bool leaving;      /* the pod is marked for deletion */
	hf_time leaving_since;
	bool container; /* the container runs, so exec lives */
	bool over;      /* the pod has phase Failed or Succeeded */
	int restarts;
	hf_time started; /* when the container started */
	/* exec */
	enum phase phase;
	/* generation and attempt of the process that runs or ran last, or of the last order that
	 * exec obeyed */
	int64_t g, a;
	int ordinal, code;
	bool process, stopping;
	bool saving, saved; /* it was asked to save; it has saved */
	bool excused;       /* people or the loss of its node took the pod */
	hf_time written_at; /* since when it is there */
	bool connected, stays;
	bool written;   /* the agent's last write has a report of this exec */
	int64_t tg, ta; /* generation and attempt of the last order */
	bool thold, told;
	int64_t tsave; /* seconds that the order gives for a save; 0: none is asked for */
	hf_time since; /* since when exec is in its phase */
	struct hf_timer *start, *stop, *connect, *kubelet, *wait, *ends_soon;
	int soon_code;
};

struct node {
	struct world *w;
	char name[8];
	bool power, link, agent, unknown;
	struct hf_timer *write, *read, *repeat, *beat, *lease, *lost, *back, *agent_back;
	struct hf_doc *job; /* the job as the agent has last read it; NULL: never */
};

struct life {
	struct world *w;
	char identity[16];
	/* client: the connection with faults; bare: the same without them */
	struct hf_store *client, *bare;
	struct hf_operator *op;
	struct hf_manager *manager;
	struct hf_timer *death, *birth, *relist;
};

struct met {
	unsigned long long seeds, faults, in_place, moved, recreated, barriers, deaths, node_losses,
		agent_deaths, execs_killed, timeouts, people, charged, lost, requests, saves,
		unsaved;
};

struct world {
	struct hf_rng rng, engine_rng;
	struct hf_loop *loop;
	struct hf_memstore *memstore;
	struct hf_gc *gc;
	struct hf_memstore_observer observer;
	struct node nodes[NODES];
	struct hf_map *pods; /* uid → struct pod */
	struct life lives[LIVES_MAX];
	int n_lives;
	struct hf_timer *deeds;
	bool calm, quiet, aloud, scope_job;
	bool narrow;          /* the CRD has no field for the ledger, so it is in an annotation */
	int64_t save_seconds; /* recovery.checkpoint.graceSeconds */
	hf_time save_since;   /* the operator asks for saves; 0: it does not */
	bool never_saves;     /* requests to save are not answered */
	char job_uid[64];
	int jobs;              /* jobs that were created so far */
	int64_t faults;        /* faults of the present job */
	hf_time hold_since;    /* since when ranks are held; 0: no rank is held */
	hf_time delayed_until; /* the ledger's notBefore, on the server's clock; 0: no delay */
	hf_time unwell_until;  /* until then a node is, or was, not well */
	int64_t generation, restarts, incident, running_in;
	/* Of the master and of each worker: the generation in which it was let start, and whether
	 * people have scaled it away. */
	int64_t let_start[RANKS_MAX];
	bool retired[RANKS_MAX];
	unsigned long long agent_writes, job_writes;
	struct met *met;
	bool failed;
	char failure[512];
};

/* --- in_place_world.c: the story, requests of the world, and the checks --- */

int ip_apply(struct world *w, const struct hf_request *request);
uint64_t ip_below(struct world *w, uint64_t n);
bool ip_chance(struct world *w, unsigned permille);
void ip_check_barrier(struct world *w);
/* Returns the ledger of this version of the job, from its status or its annotation. The caller owns
 * the result. NULL: the job has none. */
struct hf_json *ip_ledger(struct hf_doc *job);
void ip_check_job(struct world *w, struct hf_doc *doc);
void ip_check_made(const struct pod *pod);
void ip_check_start(struct pod *pod);
void ip_check_kill(const struct pod *pod);
int ip_create(struct world *w, const struct hf_resource *resource, const char *ns,
	      const char *text);
int ip_delete_object(struct world *w, const struct hf_resource *resource, const char *ns,
		     const char *name, const char *uid, int64_t grace);
void ip_fail_world(struct world *w, const char *fmt, ...) HF_PRINTF(2, 3);
const char *ip_format_time(struct world *w, char text[HF_TIME_TEXT_MAX]);
bool ip_is_held(const struct hf_json *ledger);
bool ip_is_reachable(const struct pod *pod);
struct hf_doc *ip_job_doc(struct world *w);
hf_time ip_now(const struct world *w);
int ip_patch(struct world *w, const struct hf_resource *resource, const char *ns, const char *name,
	     const char *sub, const char *text);
hf_time ip_span(struct world *w, hf_time max);
int64_t ip_sum_restarts(const struct hf_json *ledger);
void ip_tell(struct world *w, const char *fmt, ...) HF_PRINTF(2, 3);
bool ip_trouble(struct world *w, unsigned permille);

/* --- in_place_exec.c: exec and kubelet --- */

void ip_container_ends(struct pod *pod, int code);
bool ip_is_lower(const struct pod *pod);
void ip_obey(struct pod *pod);
void ip_on_change(void *arg, const struct hf_memstore_change *change);
void ip_on_reset(void *arg);
void ip_pod_free(void *value);
void ip_program_ends(struct pod *pod, int code);
void ip_report_ended(struct pod *pod, const char *phase);
void ip_report_running(struct pod *pod);
void ip_stop_exec(struct pod *pod);

/* --- in_place_agent.c: agents and nodes --- */

long long ip_index_of(const struct pod *pod);
/* The pod counts for its rank by the ledger, and the rank is not held. */
bool ip_is_let_start(const struct pod *pod, const struct hf_json *ledger);
void ip_agent_dies(struct node *node, hf_time away);
void ip_agent_hears(struct pod *pod);
void ip_job_changed(struct world *w);
void ip_node_goes(struct node *node, bool power);
void ip_on_agent_back(void *arg);
void ip_on_back(void *arg);
void ip_on_beat(void *arg);
void ip_on_lease(void *arg);
void ip_on_lost(void *arg);
void ip_on_read(void *arg);
void ip_on_repeat(void *arg);
void ip_on_write(void *arg);
void ip_set_ready(struct node *node, const char *status);
const char *ip_type_of(const struct pod *pod);

#endif
