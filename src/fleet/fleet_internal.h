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
 * What is done about nodes whose devices fail, under HealthPolicy objects.
 *
 *   fleet.c        life, caches, when to look again
 *   view.c   what is kept of policies, nodes and DeviceHealth objects
 *   see.c    these joined into what the fleet's brain is asked, and its answer
 *   act.c    quarantine and release: a live look, the record, the Node
 *   drain.c  evictions
 *   report.c   status, events, metrics
 *
 *     changes ──▶ round: for each policy  see ─▶ decide ─▶ acts?  no: the status, if it differs
 *        ▲                                         │ yes
 *        └── again ◀── Nodes ◀── record (status) ◀─┴─ live look, decided once more
 *
 * Rounds come one after the other; a request that fails ends its round, and the next one sees
 * anew.  Nothing is remembered that a new leader needs: the breaker and the quarantines begun are
 * in the policy's status, what is ours of a Node is on the Node.
 */

/* Policies beyond these are told that they do not count. */
#define HF_FLEET_POLICIES_MAX 16
#define HF_FLEET_ACTS_MAX 64
/* Pods that a round looks at. */
#define HF_FLEET_PODS_MAX 4096
#define HF_FLEET_REFUSALS_MAX ((size_t)HF_FLEET_PODS_MAX)
/* Memory of one round: 20,000 nodes with what is said of them. */
#define HF_FLEET_ARENA_MAX ((size_t)64 << 20)

struct fleet_policy {
	char *name, *uid;
	int64_t generation;
	struct hf_arena *arena; /* of the spec */
	struct hf_health_policy_spec spec;
	struct hf_selector *selector, *exclude, *pods;
	bool usable;   /* some version of it could be read: spec and selectors are that one's */
	bool paused;   /* by annotation */
	char *problem; /* of the newest version; NULL: none */
	bool problem_told;
	hf_time evicts_at; /* since when it lets pods be evicted, as long as we know it; NONE: it does not */
	struct hf_map *told;  /* node → what the last event said (char *) */
	struct hf_json *sent; /* the status that was written last; NULL: none was */
	hf_time sent_at;      /* monotonic */
	/* Of the last round, for metrics. */
	struct hf_health_policy_status status;
	int32_t held[HF_HEALTH_WHY_COUNT];
	bool seen;
};

/* Kept of a Node; texts are in its arena. */
struct fleet_node {
	struct hf_arena *arena;
	struct hf_node_marks marks;
	struct hf_quarantine_mark mark;
	bool marked, tainted;
	/* As long as we watch: when our taint was put on, and when somebody took it off; or NONE. */
	hf_time put_at, off_at;
	/* By the policies of `matched`. */
	uint64_t matched;
	struct fleet_policy *policy; /* NULL: none */
	bool excluded;
	const char *domain;
};

struct fleet_holder {
	const char *ns, *pod, *uid;
	bool fatal;
};

/* Kept of a DeviceHealth. */
struct fleet_health {
	struct hf_arena *arena;
	enum hf_health_state state;
	enum hf_health_class cls;
	enum hf_health_action action;
	hf_time observed_at, evidence_at, began_at; /* the node's clock */
	hf_time anew_at; /* the newest that was not there before: a level that is measured on is not */
	hf_time faults_at; /* the same of faults alone, whenever a state began by them */
	hf_time eased_at; /* that its state began then is no news: it was worse before; NONE: it is */
	hf_time seen_at; /* monotonic; NONE: it was there when we came */
	const char *boot_id;
	/* The policy whose breaker was asked about this very trouble, and did not open; to be compared alone. */
	const struct fleet_policy *weighed_by;
	bool works;                    /* some device of it is held */
	bool has_devices, has_gpus;    /* it has some, or misses one */
	bool by_pods, rest_well;       /* as the fleet's brain means them */
	enum hf_health_class sure_cls; /* the strictest that acts on what is confirmed */
	int32_t gpus;
	struct fleet_holder *holders; /* of what has failed, each pod once */
	size_t holders_len;
};

/* A node of one policy, beside what the brain is told of it. */
struct fleet_item {
	const char *name, *uid;
	const struct fleet_node *node;
	struct fleet_health *health; /* NULL: none */
	bool counts;                 /* shares are of it too; else it is out, and that is all */
};

struct fleet_seen {
	struct fleet_policy *policy;
	struct hf_doc *doc; /* of the policy, borrowed */
	hf_time now;
	struct hf_health_policy rules;
	struct fleet_item *items;
	struct hf_health_node *nodes; /* as items, by name */
	size_t len;
	int32_t selected;
	struct hf_health_policy_memory memory; /* as it should be stored */
	bool memory_moved;                     /* the breaker is not stored so yet */
	struct hf_health_fleet_plan plan;      /* decisions as items */
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
	bool note;   /* a person has taken the taint off: that is all that is written */
	bool graver; /* it is ours, and its class is to say more */
	bool by_pods;
	hf_time counted_at; /* a quarantine for the same is remembered, and its Node was made anew since; or NONE */
	hf_time off; /* for that note */
	char cls[32], job[512];
};

/* A pod whose eviction, or a Node whose patch, was refused. */
struct fleet_refusal {
	hf_time not_before;
	unsigned times;
	bool told;
	bool stays; /* it is a DaemonSet's, say: nobody waits for it to go */
};

struct hf_fleet {
	struct hf_controller controller; /* must stay the first member */
	struct hf_controller_env env;
	struct hf_cache *policies_cache, *nodes, *health; /* the last two while there is a policy */
	struct fleet_policy *policies[HF_FLEET_POLICIES_MAX]; /* by name */
	size_t n_policies, turn;
	uint64_t version; /* of the policies as a whole */
	struct hf_timer *timer;
	struct hf_task *reset; /* caches are made and destroyed outside of their callbacks */
	struct hf_arena *arena, *scratch;
	bool stopped, unseen;

	/* The act under way. */
	enum fleet_step step;
	struct hf_call *call;
	char policy[254];
	struct fleet_act acts[HF_FLEET_ACTS_MAX];
	size_t n_acts, act;
	struct hf_map *looked; /* names of nodes that the live list had, with their UID */
	char *token;           /* of its next page */
	hf_time began;
	bool spoilt; /* somebody else wrote to one of these Nodes: it is seen anew */
	unsigned failures;
	hf_time rests_until; /* monotonic: no round before */

	/* Evictions: one at a time, beside the rounds. */
	struct hf_call *evicting;
	int evict_step;
	bool evict_late; /* it came after the quarantine */
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
/* Look again, in so long at the latest. */
void hf_fleet_look_soon(struct hf_fleet *fleet, hf_time within);
struct fleet_policy *hf_fleet_find_policy(const struct hf_fleet *fleet, const char *name);
/* A failure is about the server, and not about the object. */
bool hf_fleet_is_server_failure(int code);
/* What has this UID is left alone for so long, and longer each time where that grows. */
void hf_fleet_refuse(struct hf_fleet *fleet, const char *uid, hf_time wait, bool grows);
/* Until when; 0: nobody has refused it. */
hf_time hf_fleet_not_before(const struct hf_fleet *fleet, const char *uid);
/* Pods that came to the node in spite of its quarantine and were evicted. */
void hf_fleet_count_late(struct hf_fleet *fleet, const char *node);
unsigned hf_fleet_late_pods(const struct hf_fleet *fleet, const char *node);
/* It is released: who comes there now comes for the first time. */
void hf_fleet_forget_late(struct hf_fleet *fleet, const char *node);

/* --- view.c --- */
void *hf_fleet_read_node(struct hf_fleet *fleet, struct hf_doc *doc);
void *hf_fleet_read_health(struct hf_fleet *fleet, struct hf_doc *doc);
void hf_fleet_free_node(void *view);
void hf_fleet_free_health(void *view);
/* Nothing that decides anything is different. */
bool hf_fleet_is_same_node(const struct fleet_node *a, const struct fleet_node *b);
bool hf_fleet_is_same_health(const struct fleet_health *a, const struct fleet_health *b);
/* What it says after that: that a fault has ended, and a milder one is left, is no news. */
void hf_fleet_ease_health(const struct fleet_health *was, struct fleet_health *view);
/* The policy as its newest object has it. */
void hf_fleet_update_policy(struct fleet_policy *policy, struct hf_doc *doc);
struct fleet_policy *hf_fleet_create_policy(const struct hf_fleet *fleet, const char *name);
void hf_fleet_free_policy(struct fleet_policy *policy);

/* --- see.c --- */
/* When a quarantine was begun for what is wrong with it now, which its Node does not show any more, as it was made
 * anew since; NONE: none was. */
hf_time hf_fleet_counted_at(const struct fleet_seen *seen, size_t i);
void hf_fleet_see(struct hf_fleet *fleet, struct fleet_policy *policy, struct hf_doc *doc,
		  struct hf_arena *arena, struct fleet_seen *ret_seen);
bool hf_fleet_is_halted(const struct fleet_seen *seen);
/* What is known of it is too old, or of another boot. */
bool hf_fleet_is_stale(const struct fleet_seen *seen, size_t i);
/* A person has taken our taint off; the mark is there still. */
bool hf_fleet_is_taken_off(const struct fleet_node *node);
/* When that was, by its mark or by what we saw; NONE: nobody knows, or it is there. */
hf_time hf_fleet_off_at(const struct fleet_node *node);
/* Likewise, or by what was noted in the policy's status when it was seen. */
hf_time hf_fleet_seen_off_at(const struct fleet_seen *seen, const struct fleet_item *item);
/* --- act.c --- */
/* Begin what the plan wants; false: nothing. */
bool hf_fleet_act(struct hf_fleet *fleet, const struct fleet_seen *seen);
/* Write the status where it differs; false: it does not. */
bool hf_fleet_write_status(struct hf_fleet *fleet, const struct fleet_seen *seen);

/* --- drain.c --- */
/* Evict the next one, if there is one; ret_wake is lowered. */
void hf_fleet_drain(struct hf_fleet *fleet, const struct fleet_seen *seen, hf_time *ret_wake);

/* --- report.c --- */
void hf_fleet_fill_status(struct hf_fleet *fleet, const struct fleet_seen *seen,
			  struct hf_arena *arena, struct hf_health_policy_status *ret_status);
void hf_fleet_report(struct hf_fleet *fleet, const struct fleet_seen *seen);
/* An event of a Node (whose UID is its name, as kubelets have it) or of a policy. */
void hf_fleet_event_node(struct hf_fleet *fleet, const char *node, bool warning, const char *reason,
			 const char *message);
void hf_fleet_event_policy(struct hf_fleet *fleet, const struct fleet_policy *policy, bool warning,
			   const char *reason, const char *message);
void hf_fleet_init_metrics(struct hf_fleet *fleet);
void hf_fleet_count_act(struct hf_fleet *fleet, const char *what, const char *result);
void hf_fleet_count_eviction(struct hf_fleet *fleet, const char *result);
void hf_fleet_update_metrics(struct hf_fleet *fleet);

#endif
