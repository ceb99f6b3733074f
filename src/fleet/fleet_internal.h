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
 *   view.c    the views of policies, nodes and DeviceHealth objects in the caches
 *   see.c     joins the views into the question that src/health/fleet.c decides
 *   act.c     quarantines and releases: reads live, records in the status, writes the Node
 *   drain.c   evictions
 *   report.c  status, events, metrics
 *   room.c    what a HealthPolicy permits other controllers
 *   state.c   the clock, the timer, the table of refusals
 *   impact.c  what a DeviceHealth means for the pods that hold a device
 *   mend*.c   Remediations, see mend_internal.h
 *   device_taint*.c   single devices out of use, see device_taint.h
 *     changes ──▶ round, policy by policy: see ─▶ decide ─▶ acts?  no: write a changed status
 *        ▲                                              │ yes
 *        └── again ◀── Nodes ◀── record (status) ◀──────┴─ live read, decide again
 * Rounds do not overlap. A round takes the policies in turn, and ends with the first policy that
 * has a request to send; the next round begins with the policy after it. A failed request ends its
 * round. A new leader needs nothing from memory:
 * the policy's status stores the breaker and the quarantines that were begun, and the Node carries
 * Holdfast's taint and mark (annotation holdfast.dev/quarantine).
 */

/* Policies beyond this number, by name, are ignored with a logged error. */
#define HF_FLEET_POLICIES_MAX 16
#define HF_FLEET_ACTS_MAX 64
/* Limit of the table of pods and Nodes that are left alone for a while after a refusal. */
#define HF_FLEET_PODS_MAX 4096
#define HF_FLEET_REFUSALS_MAX ((size_t)HF_FLEET_PODS_MAX)
/* Memory of a round: enough for 20,000 nodes and their DeviceHealth objects. */
#define HF_FLEET_ARENA_MAX ((size_t)64 << 20)

struct fleet_policy {
	char *name, *uid;
	int64_t generation;
	struct hf_arena *arena; /* memory of the spec */
	struct hf_health_policy_spec spec;
	struct hf_selector *selector, *exclude, *pods;
	/* spec and selectors are those of the last readable version; false: no version was
	 * readable */
	bool usable;
	bool paused;   /* by annotation holdfast.dev/paused */
	char *problem; /* why the newest version of the policy cannot be read; NULL: it can */
	bool problem_told;
	/* when this process first saw that the policy allows evictions; NONE: not allowed */
	hf_time evicts_at;
	struct hf_map *told;  /* node → message of its last event (char *) */
	struct hf_json *sent; /* last written status; NULL: none */
	hf_time sent_at;      /* monotonic time at which `sent` was written */
	/* the decision of the plan from which on the next round asks for acts */
	size_t wants_from;
	/* Result of the last round, from which the metrics are made. */
	struct hf_health_policy_status status;
	int32_t held[HF_HEALTH_WHY_COUNT];
	bool seen;
};

/* The view of a Node: the facts that the cache keeps of it. The arena holds the strings. */
struct fleet_node {
	struct hf_arena *arena;
	struct hf_node_marks marks;
	struct hf_quarantine_mark mark;
	/* tainted: the taint is on the Node, or the mark takes single devices out of use */
	bool marked, tainted;
	/* When Holdfast put its taint on, and when a person removed the taint. NONE: this process
	 * did not see the event. */
	hf_time put_at, off_at;
	/* since when this process knows the Node without a DeviceHealth, monotonic; without meaning while there is one */
	hf_time unheard_since;
	/* The following three fields are valid while `matched` equals the fleet's `version` of
	 * policies. */
	uint64_t matched;
	struct fleet_policy *policy; /* the policy that selects the node; NULL: no policy does */
	bool excluded;
	const char *domain;
};

struct fleet_holder {
	const char *ns, *pod, *uid;
	bool fatal;
};

/* The view of a DeviceHealth: the facts that the cache keeps of it. */
struct fleet_health {
	struct hf_arena *arena;
	enum hf_health_state state;
	enum hf_health_class cls;
	enum hf_health_action action;
	hf_time observed_at, evidence_at, began_at; /* the node's clock */
	/* time of the newest new error; a measured level that stays high is no new error */
	hf_time anew_at;
	hf_time faults_at; /* like anew_at, without the times at which a device changed its state */
	/* when a device got into a milder state than before, which is no new error; else NONE */
	hf_time eased_at;
	/* arrival of the report, monotonic; NONE: before this process started */
	hf_time seen_at;
	/* arrival of the report in this process, monotonic: from then on the next one is awaited */
	hf_time got_at;
	/* state Unknown: arrival of the first report of this boot with that state, monotonic */
	hf_time unknown_since;
	const char *boot_id;
	/* The policy that counted this fault in its breaker while the breaker stayed closed. The
	 * pointer is only compared, never read. */
	const struct fleet_policy *weighed_by;
	bool works; /* a pod holds a device of this node */
	bool hangs; /* the driver does not answer, so pods with devices hang */
	/* the node has a device (a GPU), or its agent reports one missing */
	bool has_devices, has_gpus;
	bool can_reset;                /* a GPU with a UUID is out of use */
	bool by_pods, rest_well;       /* as in struct hf_health_node */
	bool confined;                 /* all faults that act belong to single devices */
	bool told;                     /* the annotation HF_DEVICES_OUT_ANNOTATION exists */
	enum hf_health_class sure_cls; /* strictest class of a confirmed fault */
	int32_t gpus;
	/* UUIDs of the devices that are out of use or slow; "": the node itself, or a device without a UUID */
	const char **sick;
	size_t sick_len;
	struct fleet_holder *holders; /* the pods on failed devices, each pod once */
	size_t holders_len;
};

/* A node of a policy, beside its struct hf_health_node. */
struct fleet_item {
	const char *name, *uid;
	const struct fleet_node *node;
	struct fleet_health *health; /* NULL: none */
	/* true: limits in percent refer to a number of nodes that includes this node; false: the
	 * node has no report of devices, and the budgets only count it as out of use */
	bool counts;
	/* a person has a task for the node already: no other is created */
	bool asked;
	/* in this quarantine a person has called an act off: nobody else is asked */
	bool called_off;
	/* in this quarantine the external controller was asked: it is not asked again */
	bool given_away;
};

struct fleet_seen {
	struct fleet_policy *policy;
	struct hf_doc *doc; /* the policy object; borrowed */
	hf_time now;
	struct hf_health_policy rules;
	struct fleet_item *items;
	struct hf_health_node *nodes; /* same order as items, sorted by name */
	size_t len;
	int32_t selected;
	struct hf_health_policy_memory memory; /* what the policy's status must store */
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
	bool release;
	bool looked;  /* the DeviceHealth of the node was read live in this round */
	bool note;    /* the act only writes the time at which a person removed the taint */
	bool graver;  /* the act only writes a graver class into the mark */
	bool widen;   /* the act puts the taint on a node whose mark names single devices */
	bool devices; /* the quarantine takes single devices out of use */
	bool by_pods;
	/* NONE: the quarantine is charged to the budget. Else the Node object was recreated after
	 * this fault's quarantine had been charged, at this time: it is not charged again. */
	hf_time counted_at;
	/* if `note`: when a person removed the taint, which the act writes into the node's mark */
	hf_time off;
	char cls[32], job[512];
};

/* An object that is left alone for a while after a refusal: a pod that cannot be evicted, a Node
 * that cannot be written. */
struct fleet_refusal {
	hf_time not_before;
	unsigned times;
	bool told;
	bool counted;  /* the mark of the Node counts the pod, see drain.c */
	bool stays;    /* the pod will never be evicted, such as a pod of a DaemonSet */
	char why[192]; /* what the API server said; "": it has not refused the last eviction */
};

struct fleet_mend;
struct fleet_taints;

struct hf_fleet {
	struct hf_controller controller; /* must stay the first member */
	struct hf_controller_env env;
	struct hf_cache *policies_cache, *nodes,
		/* nodes and health are NULL while no HealthPolicy exists */
		*health;
	struct fleet_policy *policies[HF_FLEET_POLICIES_MAX]; /* by name */
	size_t n_policies, turn;
	uint64_t version; /* rises with each change of a policy */
	struct hf_timer *timer;
	/* creates and destroys caches, which their own callbacks must not do */
	struct hf_task *reset;
	struct hf_arena *arena, *scratch;
	bool stopped;
	bool unseen; /* see hf_fleet_log_list_problem */

	/* The act under way. */
	enum fleet_step step;
	struct hf_call *call;
	char policy[254];
	struct fleet_act acts[HF_FLEET_ACTS_MAX];
	size_t n_acts, act;
	/* name → UID of the nodes in the live list of this round; not to be confused with
	 * fleet_act.looked, which is about a DeviceHealth */
	struct hf_map *looked;
	/* continue token of the next page of the live list; NULL: first page */
	char *token;
	hf_time began;
	bool spoilt;      /* a write met a conflict: the next round reads and decides again */
	bool worked;      /* this round stored the breaker, or quarantined or released a node */
	hf_time on_since; /* monotonic; see hf_fleet_look_on */
	int on_count;
	bool gathers; /* there are faults that no round has counted yet: see hf_fleet_gather */
	hf_time gathers_until; /* monotonic: latest start of the round that counts them */
	unsigned failures;
	hf_time rests_until; /* monotonic; no round starts before */

	/* The eviction under way. Evictions run beside the rounds. */
	struct hf_call *evicting;
	int evict_step;
	bool evict_late;         /* the pod that is evicted came after the quarantine */
	struct hf_doc *evict_on; /* its Node as read live; NULL: not read yet */
	char evict_node[254], evict_ns[64], evict_pod[254], evict_uid[64], evict_policy[254];
	/* a shared ResourceClaim of the pod; "": the pod has none */
	char evict_claim[254];

	struct hf_map *refusals; /* UID → struct fleet_refusal */
	struct fleet_mend *mend; /* never NULL */
	/* The Remediations are listed, if there are any. Before that a policy must not act: a taint may be of an act. */
	bool knows_acts;
	struct fleet_taints *taints; /* never NULL */

	struct {
		struct hf_family *nodes, *left, *blocked, *tripped, *epoch, *done, *evictions,
			*seconds;
	} metrics;
};

/* --- state.c --- */
hf_time hf_fleet_now(const struct hf_fleet *fleet);
/* True if there is a policy, and policies, nodes and pods have been listed. */
bool hf_fleet_can_see(const struct hf_fleet *fleet);
void hf_fleet_note_reply(const struct hf_fleet *fleet, const struct hf_reply *reply);
void hf_fleet_log_problem(const struct hf_fleet *fleet, const char *what, int code,
			  const char *message);
/* Logs why a kind cannot be listed. If the cluster does not know the kind, the cache tries again and
 * nothing is logged. A missing right is logged once: *unseen notes it until the kind is seen. */
void hf_fleet_log_list_problem(const struct hf_fleet *fleet, const char *what, bool *unseen,
			       int code, const char *message);
/* Starts a round after at most the time `within`. */
void hf_fleet_look_soon(struct hf_fleet *fleet, hf_time within);
/* Starts a round for work that follows a finished step, or for a node that became better. Such a round
 * has nothing to gather, so it starts within a second, and on small clusters within 0.1 s. */
void hf_fleet_look_on(struct hf_fleet *fleet);
/* Faults with one cause appear within moments of each other, and the breaker has to count all of them before the first
 * act. So the round starts 0.3 s after the last fault, and at most 1 s after the first one. */
void hf_fleet_gather(struct hf_fleet *fleet);
/* Returns how long the round that counts the newest faults may still wait; 0: all faults are counted. */
hf_time hf_fleet_gathers_for(const struct hf_fleet *fleet);
struct fleet_policy *hf_fleet_find_policy(const struct hf_fleet *fleet, const char *name);
/* The failure concerns the API server (such as a time-out) and not the object of the request. */
bool hf_fleet_is_server_failure(int code);
/* Leaves a Node or pod alone for `wait`. If `grows`, each further refusal makes the wait longer. */
void hf_fleet_refuse(struct hf_fleet *fleet, const char *uid, hf_time wait, bool grows);
/* Notes why the API server has refused the eviction of the pod, after hf_fleet_refuse. */
void hf_fleet_note_refused(struct hf_fleet *fleet, const char *uid, const char *why);
/* Returns why the API server has refused the last eviction of the pod; NULL: it has not. */
const char *hf_fleet_find_refused(const struct hf_fleet *fleet, const char *uid);
/* The time before which the Node or pod is left alone; 0: it may be tried now. */
hf_time hf_fleet_not_before(const struct hf_fleet *fleet, const char *uid);
/* Counts an evicted pod that came after its node was quarantined. */
void hf_fleet_count_late(struct hf_fleet *fleet, const char *node);
unsigned hf_fleet_late_pods(const struct hf_fleet *fleet, const char *node);
/* The node was released: starts its count of late pods at 0 again. */
void hf_fleet_forget_late(struct hf_fleet *fleet, const char *node);

/* --- room.c --- */
void hf_fleet_find_limits(struct hf_controller *controller,
			  const struct hf_limit_question *question);
/* Returns the limit of the policy that forbids to take the node out of use; NULL: the node may go out of use, or is out
 * of use already. */
const char *hf_fleet_find_room(struct hf_fleet *fleet, struct fleet_policy *policy,
			       const char *node);

/* --- view.c --- */
void *hf_fleet_read_node(struct hf_fleet *fleet, struct hf_doc *doc);
void *hf_fleet_read_health(struct hf_fleet *fleet, struct hf_doc *doc);
void hf_fleet_free_node(void *view);
void hf_fleet_free_health(void *view);
/* Compare two views of a Node, or of a DeviceHealth. Return true if no decision depends on their
 * differences. */
bool hf_fleet_is_same_node(const struct fleet_node *a, const struct fleet_node *b);
bool hf_fleet_is_same_health(const struct fleet_health *a, const struct fleet_health *b);
/* If a device's state became milder than before, that is no new error: the view takes over the
 * older times. */
void hf_fleet_ease_health(const struct fleet_health *was, struct fleet_health *view);
/* Takes over the newest object. */
void hf_fleet_update_policy(struct fleet_policy *policy, struct hf_doc *doc);
struct fleet_policy *hf_fleet_create_policy(const struct hf_fleet *fleet, const char *name);
void hf_fleet_free_policy(struct fleet_policy *policy);

/* --- see.c --- */
/* When the node's present fault was charged to the quarantine budget, if its Node object was
 * recreated since: then it is not charged again. NONE: it was not charged, or the Node is the
 * same. */
hf_time hf_fleet_counted_at(const struct fleet_seen *seen, size_t i);
void hf_fleet_see(struct hf_fleet *fleet, struct fleet_policy *policy, struct hf_doc *doc,
		  struct hf_arena *arena, struct fleet_seen *ret_seen);
bool hf_fleet_is_halted(const struct fleet_seen *seen);
/* The views of the caches, which stay as long as the caches do; NULL: the object is not there. */
struct fleet_node *hf_fleet_find_node(const struct hf_fleet *fleet, const char *name);
struct fleet_health *hf_fleet_find_health(const struct hf_fleet *fleet, const char *node);
/* The policy that selects the node, by the caches; NULL: none does. */
struct fleet_policy *hf_fleet_policy_of(struct hf_fleet *fleet, const char *node);
/* Converts a time of the node's clock to the API server's clock. */
hf_time hf_fleet_convert_time(const struct hf_fleet *fleet, const struct fleet_health *health,
			      hf_time at, hf_time now);
/* The next report of the node may still come: until then the node is not silent, whatever the time of its last report. A
 * leader that has just started does not know the node's clock, and the agent writes a deleted DeviceHealth again. A node
 * in state Unknown may still report the devices that its driver names some minutes after the boot. */
bool hf_fleet_is_awaited(const struct hf_fleet *fleet, const char *node, hf_time stale_after);
/* The labels of a node as an object, for a selector. The caller releases it. */
struct hf_json *hf_fleet_make_labels(const struct hf_node_marks *marks);
/* By what a person or another tool has taken the node out of use: "cordon", or the key of a taint. NULL: by
 * nothing; that the node is not Ready does not count. */
const char *hf_fleet_find_foreign(const struct fleet_policy *policy,
				  const struct hf_node_marks *marks);
/* The node is out of use, and not by Holdfast. */
bool hf_fleet_is_foreign(const struct fleet_policy *policy, const struct fleet_node *node);
/* The node's DeviceHealth is from an earlier boot of the node, or its evidence from before the breaker was closed. */
bool hf_fleet_is_outdated(const struct fleet_seen *seen, size_t i);
/* The same, or the DeviceHealth is too old for a decision. */
bool hf_fleet_is_stale(const struct fleet_seen *seen, size_t i);
/* When a person removed Holdfast's taint, by the mark on the Node or by what this process saw.
 * NONE: unknown, or the taint is there. */
hf_time hf_fleet_off_at(const struct fleet_node *node);
/* Like hf_fleet_off_at, and also looks for the time in the policy's status. */
hf_time hf_fleet_seen_off_at(const struct fleet_seen *seen, const struct fleet_item *item);
/* --- act.c --- */
/* Begins the acts of the round's plan. False: the plan has none. */
bool hf_fleet_act(struct hf_fleet *fleet, const struct fleet_seen *seen);
/* Writes the policy's status if it has changed. False: nothing to write. */
bool hf_fleet_write_status(struct hf_fleet *fleet, const struct fleet_seen *seen);

/* --- drain.c --- */
/* Begins the next eviction. Lowers ret_wake to the time at which another one may begin. */
void hf_fleet_drain(struct hf_fleet *fleet, const struct fleet_seen *seen, hf_time *ret_wake);

/* --- mend_recall.c --- */
/* The rungs that the section `mend` of a policy allows. */
void hf_fleet_set_mend_rules(const struct hf_health_policy_spec *spec,
			     struct hf_health_policy *rules);
/* Sets, for each node, the finished attempts and the act at work, from the Remediations. */
void hf_fleet_recall_acts(struct hf_fleet *fleet, struct fleet_seen *seen, struct hf_arena *arena);

/* --- report.c --- */
void hf_fleet_fill_status(struct hf_fleet *fleet, const struct fleet_seen *seen,
			  struct hf_arena *arena, struct hf_health_policy_status *ret_status);
void hf_fleet_report(struct hf_fleet *fleet, const struct fleet_seen *seen);
/* Returns true once for each quarantine of the node, by its time: then the event about the topic is recorded. */
bool hf_fleet_is_news(struct fleet_policy *policy, const char *topic, const char *node, hf_time at);
/* Records an event of a Node. The event's involvedObject.uid is the Node's name, as in the
 * kubelet's events. */
void hf_fleet_event_node(struct hf_fleet *fleet, const char *node, bool warning, const char *reason,
			 const char *message);
void hf_fleet_init_metrics(struct hf_fleet *fleet);
void hf_fleet_count_act(struct hf_fleet *fleet, const char *what, const char *result);
void hf_fleet_count_eviction(struct hf_fleet *fleet, const char *result);
void hf_fleet_update_metrics(struct hf_fleet *fleet);

#endif
