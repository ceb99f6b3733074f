/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_FLEET_INTERNAL_H
#define HF_FLEET_FLEET_INTERNAL_H

#include "api/health_policy.h"
#include "health/drain.h"
#include "health/fleet.h"
#include "base/arena.h"
#include "base/map.h"
#include "ctl/cache.h"
#include "ctl/controller.h"
#include "store/selector.h"

/*
 * What the files of this folder share.
 *   fleet.c   life, caches, when a round starts
 *   view.c    what is kept of policies, nodes and DeviceHealth objects
 *   see.c     joins them into the question that health decides
 *   act.c     quarantines and releases: live read, record, Node
 *   drain.c   evictions
 *   report.c  status, events, metrics
 *   state.c   the clock, the timer, the table of refusals
 *   impact.c  what a DeviceHealth means for the holders of a device
 *     changes ──▶ round, for each policy: see ─▶ decide ─▶ acts?  no: write a changed status
 *        ▲                                              │ yes
 *        └── again ◀── Nodes ◀── record (status) ◀──────┴─ live read, decide again
 * Rounds do not overlap. A failed request ends its round. A new leader needs nothing from memory:
 * the policy's status has the breaker and the quarantines begun, and the Node has our taint and
 * mark.
 */

/* Policies beyond this number, by name, are ignored with a logged error. */
#define HF_FLEET_POLICIES_MAX 16
#define HF_FLEET_ACTS_MAX 64
/* Pods that were refused, for which a wait is remembered. */
#define HF_FLEET_PODS_MAX 4096
#define HF_FLEET_REFUSALS_MAX ((size_t)HF_FLEET_PODS_MAX)
/* Memory of one round: 20,000 nodes with their DeviceHealth. */
#define HF_FLEET_ARENA_MAX ((size_t)64 << 20)

struct fleet_policy {
	char *name, *uid;
	int64_t generation;
	struct hf_arena *arena; /* of the spec */
	struct hf_health_policy_spec spec;
	struct hf_selector *selector, *exclude, *pods;
	bool usable;   /* spec and selectors are from the last version that could be read */
	bool paused;   /* by annotation holdfast.dev/paused */
	char *problem; /* error of the newest version; NULL: none */
	bool problem_told;
	hf_time evicts_at;    /* when this process first saw evictions allowed; NONE: not allowed */
	struct hf_map *told;  /* node → message of its last event (char *) */
	struct hf_json *sent; /* last written status; NULL: none */
	hf_time sent_at;      /* monotonic */
	/* Result of the last round, for metrics. */
	struct hf_health_policy_status status;
	int32_t held[HF_HEALTH_WHY_COUNT];
	bool seen;
};

/* What is kept of a Node. Its arena holds the texts. */
struct fleet_node {
	struct hf_arena *arena;
	struct hf_node_marks marks;
	struct hf_quarantine_mark mark;
	bool marked, tainted;
	/* As seen by this process: when our taint was put on, and when it was removed by hand; or
	 * NONE. */
	hf_time put_at, off_at;
	/* The following three are for the policies at version `matched`. */
	uint64_t matched;
	struct fleet_policy *policy; /* NULL: no policy selects it */
	bool excluded;
	const char *domain;
};

struct fleet_holder {
	const char *ns, *pod, *uid;
	bool fatal;
};

/* What is kept of a DeviceHealth. */
struct fleet_health {
	struct hf_arena *arena;
	enum hf_health_state state;
	enum hf_health_class cls;
	enum hf_health_action action;
	hf_time observed_at, evidence_at, began_at; /* the node's clock */
	hf_time anew_at;   /* newest new fault; a level that stays high is not new */
	hf_time faults_at; /* like anew_at, but of faults alone */
	hf_time eased_at; /* start of a state that followed a graver state, so is not new; else NONE */
	hf_time seen_at; /* monotonic; NONE: it existed before this process */
	const char *boot_id;
	/* The policy whose breaker has counted this fault without opening. Compared only. */
	const struct fleet_policy *weighed_by;
	bool works;                    /* a pod holds one of its devices */
	bool has_devices, has_gpus;    /* it has one, or reports one missing */
	bool by_pods, rest_well;       /* as in struct hf_health_node */
	enum hf_health_class sure_cls; /* strictest class of a confirmed fault */
	int32_t gpus;
	struct fleet_holder *holders; /* holders of failed devices, each pod once */
	size_t holders_len;
};

/* A node of a policy, beside its struct hf_health_node. */
struct fleet_item {
	const char *name, *uid;
	const struct fleet_node *node;
	struct fleet_health *health; /* NULL: none */
	bool counts;                 /* budgets count the node; false: it is only out of use */
};

struct fleet_seen {
	struct fleet_policy *policy;
	struct hf_doc *doc; /* borrowed */
	hf_time now;
	struct hf_health_policy rules;
	struct fleet_item *items;
	struct hf_health_node *nodes; /* same order as items, sorted by name */
	size_t len;
	int32_t selected;
	struct hf_health_policy_memory memory; /* to be stored */
	bool memory_moved;                     /* the stored breaker differs */
	struct hf_health_fleet_plan plan;      /* same order as items */
	int32_t silent, spares;
};

enum fleet_step {
	FLEET_IDLE,
	FLEET_LOOK_POLICY,
	FLEET_LOOK_NODES,
	FLEET_LOOK_HEALTH,
	FLEET_RECORD,
	FLEET_READ_NODE,
	FLEET_WRITE_NODE,
	FLEET_STATUS,
};

struct fleet_act {
	char node[254], uid[64];
	bool release, looked;
	bool note;   /* write only when the taint was removed by hand */
	bool graver; /* our mark gets a graver class */
	bool by_pods;
	hf_time counted_at; /* a quarantine of the same fault was charged, and the Node object was recreated since; or NONE */
	hf_time off; /* time for that note */
	char cls[32], job[512];
};

/* A pod or Node that is left alone after a refusal. */
struct fleet_refusal {
	hf_time not_before;
	unsigned times;
	bool told;
	bool stays; /* it will not be evicted, such as the pod of a DaemonSet */
};

struct hf_fleet {
	struct hf_controller controller; /* must stay the first member */
	struct hf_controller_env env;
	struct hf_cache *policies_cache, *nodes,
		*health; /* nodes, health: only while there is a policy */
	struct fleet_policy *policies[HF_FLEET_POLICIES_MAX]; /* by name */
	size_t n_policies, turn;
	uint64_t version; /* rises with each change of a policy */
	struct hf_timer *timer;
	struct hf_task *reset; /* creates and destroys caches outside of their callbacks */
	struct hf_arena *arena, *scratch;
	bool stopped, unseen;

	/* The act under way. */
	enum fleet_step step;
	struct hf_call *call;
	char policy[254];
	struct fleet_act acts[HF_FLEET_ACTS_MAX];
	size_t n_acts, act;
	struct hf_map *looked; /* name → UID of the nodes in the live list */
	char *token;           /* of the list's next page */
	hf_time began;
	bool spoilt; /* a write met a conflict: the next round decides anew */
	unsigned failures;
	hf_time rests_until; /* monotonic; no round starts before */

	/* The eviction under way, beside the rounds. */
	struct hf_call *evicting;
	int evict_step;
	bool evict_late; /* the pod was created after the quarantine */
	char evict_node[254], evict_ns[64], evict_pod[254], evict_uid[64], evict_policy[254];

	struct hf_map *refusals; /* UID → struct fleet_refusal */

	struct {
		struct hf_family *nodes, *left, *blocked, *tripped, *epoch, *done, *evictions,
			*seconds;
	} metrics;
};

/* --- state.c --- */
hf_time hf_fleet_now(const struct hf_fleet *fleet);
void hf_fleet_note_reply(const struct hf_fleet *fleet, const struct hf_reply *reply);
void hf_fleet_log_problem(const struct hf_fleet *fleet, const char *what, int code,
			  const char *message);
/* Starts a round within this time. */
void hf_fleet_look_soon(struct hf_fleet *fleet, hf_time within);
struct fleet_policy *hf_fleet_find_policy(const struct hf_fleet *fleet, const char *name);
/* The failure concerns the API server and not the object. */
bool hf_fleet_is_server_failure(int code);
/* Leaves the object alone for `wait`; if grows, longer with each refusal. */
void hf_fleet_refuse(struct hf_fleet *fleet, const char *uid, hf_time wait, bool grows);
/* When the object may be tried again; 0: at any time. */
hf_time hf_fleet_not_before(const struct hf_fleet *fleet, const char *uid);
/* Pods that were created on a quarantined node and evicted from it. */
void hf_fleet_count_late(struct hf_fleet *fleet, const char *node);
unsigned hf_fleet_late_pods(const struct hf_fleet *fleet, const char *node);
/* The node was released: the count starts at 0 again. */
void hf_fleet_forget_late(struct hf_fleet *fleet, const char *node);

/* --- view.c --- */
void *hf_fleet_read_node(struct hf_fleet *fleet, struct hf_doc *doc);
void *hf_fleet_read_health(struct hf_fleet *fleet, struct hf_doc *doc);
void hf_fleet_free_node(void *view);
void hf_fleet_free_health(void *view);
/* No decision depends on the differences. */
bool hf_fleet_is_same_node(const struct fleet_node *a, const struct fleet_node *b);
bool hf_fleet_is_same_health(const struct fleet_health *a, const struct fleet_health *b);
/* A milder state after a graver one is no new fault: takes over the older times. */
void hf_fleet_ease_health(const struct fleet_health *was, struct fleet_health *view);
/* Takes over the newest object. */
void hf_fleet_update_policy(struct fleet_policy *policy, struct hf_doc *doc);
struct fleet_policy *hf_fleet_create_policy(const struct hf_fleet *fleet, const char *name);
void hf_fleet_free_policy(struct fleet_policy *policy);

/* --- see.c --- */
/* When the node's present fault was charged to the quarantine budget, if its Node object was
 * recreated since. NONE: it was not charged, or the Node is the same. */
hf_time hf_fleet_counted_at(const struct fleet_seen *seen, size_t i);
void hf_fleet_see(struct hf_fleet *fleet, struct fleet_policy *policy, struct hf_doc *doc,
		  struct hf_arena *arena, struct fleet_seen *ret_seen);
bool hf_fleet_is_halted(const struct fleet_seen *seen);
/* The node's report is too old, or from another boot. */
bool hf_fleet_is_stale(const struct fleet_seen *seen, size_t i);
/* When the taint was removed, by the mark or by what this process saw. NONE: unknown, or the taint
 * is there. */
hf_time hf_fleet_off_at(const struct fleet_node *node);
/* Like hf_fleet_off_at, or as the policy's status notes it. */
hf_time hf_fleet_seen_off_at(const struct fleet_seen *seen, const struct fleet_item *item);
/* --- act.c --- */
/* Begins the acts of the plan. False: there are none. */
bool hf_fleet_act(struct hf_fleet *fleet, const struct fleet_seen *seen);
/* Writes the status if it has changed. False: it has not. */
bool hf_fleet_write_status(struct hf_fleet *fleet, const struct fleet_seen *seen);

/* --- drain.c --- */
/* Begins the next eviction. Lowers ret_wake to the time of the one after. */
void hf_fleet_drain(struct hf_fleet *fleet, const struct fleet_seen *seen, hf_time *ret_wake);

/* --- report.c --- */
void hf_fleet_fill_status(struct hf_fleet *fleet, const struct fleet_seen *seen,
			  struct hf_arena *arena, struct hf_health_policy_status *ret_status);
void hf_fleet_report(struct hf_fleet *fleet, const struct fleet_seen *seen);
/* Records an event of a Node. A Node's name stands for its UID, as in kubelets'
 * events. */
void hf_fleet_event_node(struct hf_fleet *fleet, const char *node, bool warning, const char *reason,
			 const char *message);
void hf_fleet_init_metrics(struct hf_fleet *fleet);
void hf_fleet_count_act(struct hf_fleet *fleet, const char *what, const char *result);
void hf_fleet_count_eviction(struct hf_fleet *fleet, const char *result);
void hf_fleet_update_metrics(struct hf_fleet *fleet);

#endif
