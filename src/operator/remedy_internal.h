/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_OPERATOR_REMEDY_INTERNAL_H
#define HF_OPERATOR_REMEDY_INTERNAL_H

#include "api/health_policy.h"
#include "health/drain.h"
#include "health/fleet.h"
#include "operator/operator_internal.h"
#include "store/selector.h"

/*
 * What is done about nodes whose devices fail, under HealthPolicy objects.
 *
 *   remedy.c        life, caches, when to look again
 *   remedy_view.c   what is kept of policies, nodes and DeviceHealth objects
 *   remedy_see.c    these joined into what the fleet's brain is asked, and its answer
 *   remedy_act.c    quarantine and release: a live look, the record, the Node
 *   remedy_drain.c  evictions
 *   remedy_tell.c   status, events, metrics
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
#define HF_REMEDY_POLICIES_MAX 16
#define HF_REMEDY_ACTS_MAX 64
/* Pods that a round looks at. */
#define HF_REMEDY_PODS_MAX 4096
/* Memory of one round: 20,000 nodes with what is said of them. */
#define HF_REMEDY_ARENA_MAX ((size_t)64 << 20)

struct remedy_policy {
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
struct remedy_node {
	struct hf_arena *arena;
	struct hf_node_marks marks;
	struct hf_quarantine_mark mark;
	bool marked, tainted;
	/* As long as we watch: when our taint was put on, and when somebody took it off; or NONE. */
	hf_time put_at, off_at;
	/* By the policies of `matched`. */
	uint64_t matched;
	struct remedy_policy *policy; /* NULL: none */
	bool excluded;
	const char *domain;
};

struct remedy_holder {
	const char *ns, *pod, *uid;
	bool fatal;
};

/* Kept of a DeviceHealth. */
struct remedy_health {
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
	const struct remedy_policy *weighed_by;
	bool works;                    /* some device of it is held */
	bool has_devices, has_gpus;    /* it has some, or misses one */
	bool by_pods, rest_well;       /* as the fleet's brain means them */
	enum hf_health_class sure_cls; /* the strictest that acts on what is confirmed */
	int32_t gpus;
	struct remedy_holder *holders; /* of what has failed, each pod once */
	size_t holders_len;
};

/* A node of one policy, beside what the brain is told of it. */
struct remedy_item {
	const char *name, *uid;
	const struct remedy_node *node;
	struct remedy_health *health; /* NULL: none */
	bool counts;                  /* shares are of it too; else it is out, and that is all */
};

struct remedy_seen {
	struct remedy_policy *policy;
	struct hf_doc *doc; /* of the policy, borrowed */
	hf_time now;
	struct hf_health_policy rules;
	struct remedy_item *items;
	struct hf_health_node *nodes; /* as items, by name */
	size_t len;
	int32_t selected;
	struct hf_health_policy_memory memory; /* as it should be stored */
	bool memory_moved;                     /* the breaker is not stored so yet */
	struct hf_health_fleet_plan plan;      /* decisions as items */
	int32_t silent, spares;
};

enum remedy_step {
	REMEDY_IDLE,
	REMEDY_LOOK_POLICY,
	REMEDY_LOOK_NODES,
	REMEDY_LOOK_HEALTH,
	REMEDY_RECORD,
	REMEDY_READ_NODE,
	REMEDY_WRITE_NODE,
	REMEDY_STATUS,
};

struct remedy_act {
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
struct remedy_refusal {
	hf_time not_before;
	unsigned times;
	bool told;
	bool stays; /* it is a DaemonSet's, say: nobody waits for it to go */
};

struct hf_remedy {
	struct hf_operator *op;
	struct hf_cache *policies_cache, *nodes, *health; /* the last two while there is a policy */
	struct remedy_policy *policies[HF_REMEDY_POLICIES_MAX]; /* by name */
	size_t n_policies, turn;
	uint64_t version; /* of the policies as a whole */
	struct hf_timer *timer;
	struct hf_task *reset; /* caches are made and destroyed outside of their callbacks */
	struct hf_arena *arena, *scratch;
	bool stopped, unseen;

	/* The act under way. */
	enum remedy_step step;
	struct hf_call *call;
	char policy[254];
	struct remedy_act acts[HF_REMEDY_ACTS_MAX];
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

	struct hf_map *refusals; /* UID → struct remedy_refusal */

	struct {
		struct hf_family *nodes, *left, *blocked, *tripped, *epoch, *done, *evictions,
			*seconds;
	} metrics;
};

/* --- remedy.c --- */
/* Look again, in so long at the latest. */
void hf_remedy_soon(struct hf_remedy *remedy, hf_time within);
struct remedy_policy *hf_remedy_policy(const struct hf_remedy *remedy, const char *name);
/* A failure is about the server, and not about the object. */
bool hf_remedy_is_servers(int code);
/* What has this UID is left alone for so long, and longer each time where that grows. */
void hf_remedy_refuse(struct hf_remedy *remedy, const char *uid, hf_time wait, bool grows);
/* Until when; 0: nobody has refused it. */
hf_time hf_remedy_not_before(const struct hf_remedy *remedy, const char *uid);

/* --- remedy_view.c --- */
void *hf_remedy_node_view(struct hf_remedy *remedy, struct hf_doc *doc);
void *hf_remedy_health_view(struct hf_remedy *remedy, struct hf_doc *doc);
void hf_remedy_node_free(void *view);
void hf_remedy_health_free(void *view);
/* Nothing that decides anything is different. */
bool hf_remedy_node_same(const struct remedy_node *a, const struct remedy_node *b);
bool hf_remedy_health_same(const struct remedy_health *a, const struct remedy_health *b);
/* What it says after that: that a fault has ended, and a milder one is left, is no news. */
void hf_remedy_health_ease(const struct remedy_health *was, struct remedy_health *view);
/* The policy as its newest object has it. */
void hf_remedy_policy_update(struct remedy_policy *policy, struct hf_doc *doc);
struct remedy_policy *hf_remedy_policy_make(const struct hf_operator *op, const char *name);
void hf_remedy_policy_free(struct remedy_policy *policy);

/* --- remedy_see.c --- */
/* When a quarantine was begun for what is wrong with it now, which its Node does not show any more, as it was made
 * anew since; NONE: none was. */
hf_time hf_remedy_counted_at(const struct remedy_seen *seen, size_t i);
void hf_remedy_see(struct hf_remedy *remedy, struct remedy_policy *policy, struct hf_doc *doc,
		   struct hf_arena *arena, struct remedy_seen *ret_seen);
bool hf_remedy_halted(const struct remedy_seen *seen);
/* What is known of it is too old, or of another boot. */
bool hf_remedy_stale(const struct remedy_seen *seen, size_t i);
/* A person has taken our taint off; the mark is there still. */
bool hf_remedy_taken_off(const struct remedy_node *node);
/* When that was, by its mark or by what we saw; NONE: nobody knows, or it is there. */
hf_time hf_remedy_off(const struct remedy_node *node);
/* Likewise, or by what was noted in the policy's status when it was seen. */
hf_time hf_remedy_seen_off(const struct remedy_seen *seen, const struct remedy_item *item);
/* The job under this key ("pytorchjobs/ns/name", may be NULL) restarts at the moment. */
bool hf_remedy_restarts(const struct hf_operator *op, const char *key);
const char *hf_remedy_job(const struct hf_operator *op, const char *ns, const char *pod,
			  const char *uid);

/* --- remedy_act.c --- */
/* Begin what the plan wants; false: nothing. */
bool hf_remedy_act(struct hf_remedy *remedy, const struct remedy_seen *seen);
/* Write the status where it differs; false: it does not. */
bool hf_remedy_write(struct hf_remedy *remedy, const struct remedy_seen *seen);

/* --- remedy_drain.c --- */
/* Evict the next one, if there is one; ret_wake is lowered. */
void hf_remedy_drain(struct hf_remedy *remedy, const struct remedy_seen *seen, hf_time *ret_wake);
/* It is released: who comes there now comes for the first time. */
void hf_remedy_forget_late(struct hf_remedy *remedy, const char *node);

/* --- remedy_tell.c --- */
void hf_remedy_status(struct hf_remedy *remedy, const struct remedy_seen *seen,
		      struct hf_arena *arena, struct hf_health_policy_status *ret_status);
void hf_remedy_tell(struct hf_remedy *remedy, const struct remedy_seen *seen);
/* An event of a Node (whose UID is its name, as kubelets have it) or of a policy. */
void hf_remedy_note_node(struct hf_remedy *remedy, const char *node, bool warning,
			 const char *reason, const char *message);
void hf_remedy_note_policy(struct hf_remedy *remedy, const struct remedy_policy *policy,
			   bool warning, const char *reason, const char *message);
void hf_remedy_metrics_init(struct hf_remedy *remedy);
void hf_remedy_count(struct hf_remedy *remedy, const char *what, const char *result);
void hf_remedy_count_eviction(struct hf_remedy *remedy, const char *result);

#endif
