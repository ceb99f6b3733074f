/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_ROLLOUT_ROLLOUT_INTERNAL_H
#define HF_ROLLOUT_ROLLOUT_INTERNAL_H

#include "api/canary.h"
#include "api/device_rollout.h"
#include "base/map.h"
#include "ctl/cache.h"
#include "ctl/controller.h"
#include "health/dra_devices.h"
#include "health/rollout_plan.h"
#include "store/selector.h"

/*
 * What the files of this folder share.
 *   rollout.c  life, caches, which pass comes next
 *   views.c    what the caches keep of DeviceRollouts, Nodes and DeviceHealth objects
 *   read.c     the live reads of a pass
 *   node.c     a pass on one node: facts for health/rollout_node.h
 *   canary.c   a pass on one node: the canary's job
 *   act.c      a pass on one node: the one write that the step asks for
 *   whole.c    a pass on the whole: facts for health/rollout_plan.h
 *   status.c   the status of the object: entries, counts, conditions, events, metrics
 *
 *     change or time ──▶ pass: live reads ─▶ facts ─▶ decide ─▶ one write ──▶ (again)
 *
 * One pass runs at a time. A pass is about one node in work, or about the rollout as a whole. A pass with a failed
 * read ends without a write. Between passes nothing is kept but the times of the next passes.
 */

#define RO_OBJECTS_MAX 1000
#define RO_PODS_MAX 1024 /* pods of one node that have not ended */
#define RO_REVISIONS_MAX                                                                           \
	64 /* of a DaemonSet; Kubernetes keeps 10 if the manifest does not say more */
#define RO_DRIVERS_MAX 20000  /* pods of the DaemonSet */
#define RO_FAULTS_MAX 64      /* faults of a node that are counted */
#define RO_SLICES_MAX 256     /* ResourceSlices of one node */
#define RO_RANKS_MAX 16       /* ranks of a node that are compared */
#define RO_COMPARED_MAX 16384 /* ranks of all nodes that are compared */
#define RO_RESTARTS_MAX 4096  /* restarts by devices that are counted */
#define RO_UNSEEN_TEMPLATE "the controller of DaemonSets has not seen the newest template"
#define RO_NO_DRIVER "the node has no pod of the DaemonSet"
#define RO_ARENA_MAX ((size_t)64 << 20)
/* An agent that does not report for longer is silent: it reports every five minutes at least. */
#define RO_SILENT_MAX (15 * HF_MINUTE)
#define RO_SILENT "the agent has not reported for 15 minutes"

/* The view of a DeviceRollout. */
struct ro_object {
	struct hf_arena *arena;
	struct hf_rollout r;
	struct hf_rollout_spec spec;
	enum hf_rollout_state state;
	bool readable; /* r and state are valid */
	bool usable;   /* spec is valid */
};

/* The view of a Node. */
struct ro_node {
	struct hf_arena *arena;
	struct hf_json *labels; /* NULL: none */
	hf_time created_at;     /* when the API server created the Node; 0: unknown */
	bool ready, unschedulable, held, paused, quarantined;
	hf_time unready_at; /* monotonic time since when this process sees the node not Ready; NONE: the node is Ready */
	/* The node is cordoned or leaves the cluster, or a condition tells that a Remediation or a tool works on it. */
	bool attended;
	hf_time alone_at; /* monotonic time since when this process sees the node not attended; NONE: it is attended */
	const char *owner; /* the DeviceRollout that has cordoned the node; NULL: none */
	const char *work; /* message of the condition MaintenanceInProgress; NULL: it is not True */
	struct hf_json *marks; /* annotations that begin with HF_ROLLOUT_MARK_PREFIX */
};

/* A rank that reports how long it works in a step. */
struct ro_rank {
	const char *ns, *pod, *uid, *group;
	int64_t own_us;
};

/* The view of a DeviceHealth. All times but seen_at are of the node's clock. */
struct ro_health {
	struct hf_arena *arena;
	hf_time observed_at;
	hf_time seen_at; /* monotonic time of the arrival of the report; NONE: it is older than this process */
	hf_time heard_at; /* monotonic time at which this process saw the report first */
	int32_t devices;
	const char *sick, *sick_class; /* the first device out of use; NULL: none */
	hf_time sick_at;               /* when its state began */
	/* The first unknown GPU (hf_impact_is_unknown_gpu), and the monotonic time since when this process sees one; NULL: none */
	const char *unknown;
	hf_time unknown_at;
	hf_time faults[RO_FAULTS_MAX]; /* when each fault came first */
	size_t faults_len;
	struct ro_rank *ranks;
	size_t ranks_len;
};

/* A pod of the DaemonSet. */
struct ro_driver {
	const char *node; /* must stay the first member */
	const char *revision;
	hf_time created_at; /* 0: unknown */
	hf_time unready_at; /* when the pod ceased to be Ready, by the node's clock; NONE: it is Ready */
};

enum ro_read {
	RO_READ_OBJECT,
	/* A pass on the whole. */
	RO_READ_DAEMON_SET,
	RO_READ_REVISIONS,
	RO_READ_DRIVERS,
	/* A pass on one node. Before the change, it reads the DaemonSet and its revisions too. */
	RO_READ_NODE,
	RO_READ_HEALTH,
	RO_READ_LEASE,
	RO_READ_PODS,
	/* When the node is recorded or proved. */
	RO_READ_SLICES,
	/* Before the change. */
	RO_READ_KURED,
	RO_READ_MAINTENANCE,
	/* While the node may have a canary. */
	RO_READ_CANARY,
	RO_READS
};

/* A ControllerRevision of the DaemonSet. */
struct ro_revision {
	const char *hash; /* NULL: none */
	int64_t number;
	hf_time created_at; /* when its template was written first; 0: unknown */
};

struct ro_pass {
	char name[254];
	char node[254]; /* "": a pass on the whole */
	enum ro_read read;
	struct hf_arena *arena;
	struct hf_doc *docs[RO_READS];
	struct hf_doc *pods[RO_PODS_MAX];
	size_t pods_len;
	struct ro_driver *drivers;
	size_t drivers_len;
	struct hf_dra_slice *slices; /* of the node, without their devices */
	size_t slices_len;
	struct ro_revision revisions[RO_REVISIONS_MAX];
	size_t revisions_len;
	struct ro_revision newest;
	struct hf_doc *from; /* the ControllerRevision of a rollback; NULL: none */
	bool in_maintenance; /* a NodeMaintenance names the node */
	char *token;
	struct hf_rollout r;
	struct hf_rollout_spec spec;
	const char *spec_problem; /* NULL: the spec is valid */
	enum hf_rollout_state state;
	struct hf_rollout_node *entry; /* of a pass on one node */
	const char *lists_pods;        /* label selector of the DaemonSet's pods */
	const char *evictee;           /* "namespace/name" of the pod that the pass evicts */
};

struct ro {
	struct hf_controller controller; /* must stay the first member */
	struct hf_controller_env env;
	struct hf_cache *cache;          /* DeviceRollouts */
	struct hf_cache *nodes, *health; /* NULL while every DeviceRollout is at an end */
	struct hf_map *due; /* "NAME" or "NAME/NODE" → struct due *, the time of the next pass */
	struct hf_timer *timer;
	struct hf_task
		*reset; /* creates and destroys caches, which their own callbacks must not do */
	struct hf_call *call;
	struct ro_pass pass;
	bool stopped, unseen;
	bool woken;        /* what the pass under way is about has changed since its begin */
	bool no_condition; /* the API server refuses writes of the Node's conditions */
	/* "NAME/NODE" → text: which request of these passes the API server has refused last */
	struct hf_map *refusals;
	hf_time wait; /* until the next pass, while the message of a refusal is written */
	unsigned failures, writes;
	hf_time read_at;    /* monotonic time of the last pass with all reads done; 0: none yet */
	hf_time seen_since; /* time of the API server since which no two passes were far apart */
	const char *done;   /* of the write under way: a phase or state, for events; NULL: none */
	enum hf_rollout_do doing;
	struct {
		struct hf_family *nodes, *done;
	} metrics;
};

/* The facts of a pass on one node, beside the view. */
struct ro_facts {
	struct hf_rollout_node_view view;
	struct hf_rollout_mark mark;
	bool has_mark;       /* mark is of this rollout */
	const char *request; /* text of HF_REPORT_ANNOTATION */
	/* The time in that text: when the pod became Ready, by the node's clock. Each leader converts that time differently, and
	 * two leaders would replace each other's text without a pause. */
	hf_time request_at;
	struct hf_doc *driver;  /* the node's pod of the DaemonSet; NULL: none */
	struct hf_doc *evictee; /* NULL: no pod can be evicted now */
	/* What the Node's record of canaries should be, as text; NULL: it needs no change. */
	const char *history;
};

/* --- state.c --- */
hf_time hf_ro_now(const struct ro *ro);
/* Finds the mark of this rollout among annotations of a Node. False: there is none. */
bool hf_ro_find_mark(const struct ro_pass *pass, const struct hf_json *annotations,
		     struct hf_rollout_mark *ret_mark);
/* The holder of the Leases of this rollout. */
const char *hf_ro_print_holder(const struct ro *ro);
/* The message of the Node's condition while the rollout works on the node. */
const char *hf_ro_print_work(const struct ro *ro);
const char *hf_ro_print_pod(const struct ro *ro, struct hf_doc *pod); /* "namespace/name" */
void hf_ro_drop_reads(struct ro *ro);
/* True if cordons are put back: cancelled or deleted. */
bool hf_ro_ends(const struct hf_rollout *r, const struct hf_rollout_spec *spec);
bool hf_ro_is_of_daemon_set(const struct hf_json *pod, const struct hf_rollout_spec *spec);
const char *hf_ro_print_daemon_set(const struct ro_pass *pass);
/* Why the rollout cannot use the DaemonSet that the pass has read; NULL: it can. */
const char *hf_ro_find_daemon_set_problem(const struct ro_pass *pass);
/* The controller of DaemonSets writes a revision for each new template. True: it has written that of the newest. */
bool hf_ro_is_observed(const struct ro_pass *pass);
/* True if a person has undone the template of this revision, and no more nodes have it than the newest one: a rollback would
 * spread it. */
bool hf_ro_is_undone(const struct ro_pass *pass, const struct ro_revision *revision);
/* Since when the pod is Ready (or not Ready), by the node's clock; NONE: it is not, 0: since an unknown time. */
hf_time hf_ro_find_ready(const struct hf_json *pod, bool ready);
/* True for the name of an extended resource such as nvidia.com/gpu. */
bool hf_ro_is_extended(const char *resource);
/* True if the record of the node names a DRA driver: its name has no slash, unlike that of an extended resource. */
bool hf_ro_has_dra(const struct hf_rollout_node *entry);
/* How much of the resource the node of the pass offers, in thousandths: of an allocatable resource, or of the devices of the DRA
 * driver with this name. */
int64_t hf_ro_read_amount(const struct ro_pass *pass, const char *resource);
/* Returns that no window of the rollout is open, and when the next one opens. NULL: one is open. */
const char *hf_ro_find_closed(const struct ro *ro);

/* --- views.c --- */
void *hf_ro_read_object(void *arg, struct hf_doc *doc);
void hf_ro_free_object(void *view);
void *hf_ro_read_node(void *arg, struct hf_doc *doc);
void hf_ro_free_node(void *view);
void *hf_ro_read_health(void *arg, struct hf_doc *doc);
void hf_ro_free_health(void *view);
/* Converts a time of the node's clock to the API server's clock. */
hf_time hf_ro_convert_time(const struct ro *ro, const char *node, hf_time at);
/* True if the newest report of the node's agent is older than RO_SILENT_MAX. */
bool hf_ro_is_stale(const struct ro *ro, const char *node);
/* True if passes are needed: the rollout is not at an end, or something has to be put back. */
bool hf_ro_is_unfinished(const struct ro_object *object);
/* True if the entry needs passes: it is in work, or it has a cordon to put back. */
bool hf_ro_needs_pass(const struct hf_rollout_node *entry);

/* --- read.c --- */
/* Begins the reads of the pass; hf_ro_decide follows. */
void hf_ro_begin_pass(struct ro *ro);

/* --- rollout.c --- */
/* Ends the pass; the next pass of the same kind begins after the time `wait`. */
void hf_ro_end_pass(struct ro *ro, hf_time wait);
void hf_ro_fail_pass(struct ro *ro, int code, const char *message);
/* All reads are done. */
void hf_ro_decide(struct ro *ro);

/* --- node.c --- */
void hf_ro_node_facts(struct ro *ro, struct ro_facts *ret_facts);

/* --- canary.c --- */
/* The kind of the canary; NULL: the spec has none. */
const struct hf_resource *hf_ro_canary_kind(const struct hf_rollout_spec *spec);
/* True if the node of the pass may have a canary, so that the pass has to read it. */
bool hf_ro_may_have_canary(const struct ro_pass *pass);
/* The name of the node's canary; before: the one before the change. */
const char *hf_ro_canary_name(const struct ro_pass *pass, bool before);
/* The name of the newest canary of the node, by its entry; "": none yet. */
const char *hf_ro_present_canary(const struct ro_pass *pass);
void hf_ro_see_canary(struct ro *ro, struct ro_facts *facts);
/* The shortest times of canaries on the node, by its record. All are 0: there is no record for this template. */
struct hf_rollout_times hf_ro_canary_history(struct ro *ro);
bool hf_ro_create_canary(struct ro *ro, struct hf_request *ret_request, struct hf_doc **ret_body);

/* --- refusal.c --- */
/* Notes that the API server has refused a request of the pass. Returns true if the request of the message has to be
 * sent; false: the object has this message, or the failure ends by itself. */
bool hf_ro_note_refusal(struct ro *ro, int code, const char *message,
			struct hf_request *ret_request, struct hf_doc **ret_body);
/* Keeps the reason for hf_ro_refusal alone. */
void hf_ro_keep_refusal(struct ro *ro, const char *message);
/* Why the API server has refused the last request of these passes; NULL: it has not. */
const char *hf_ro_refusal(const struct ro *ro);
void hf_ro_forget_refusal(struct ro *ro);

/* --- act.c --- */
/* Makes the request of the step; the caller sends it. False: nothing to do. */
bool hf_ro_act(struct ro *ro, const struct ro_facts *facts, const struct hf_rollout_node_step *step,
	       struct hf_request *ret_request, struct hf_doc **ret_body);

/* --- whole.c --- */
/* The limit of a HealthPolicy that forbids the node to go out of use, while the nodes in work are out; NULL: none. */
const char *hf_ro_find_limit(struct ro *ro, const char *node);
/* Decides about the whole, and makes the request. False: nothing to do. */
bool hf_ro_whole(struct ro *ro, struct hf_request *ret_request, struct hf_doc **ret_body,
		 hf_time *ret_wait);

/* --- status.c --- */
struct hf_rollout_node *hf_ro_find_entry(const struct hf_rollout_status *status, const char *name);
/* True if the rollout has halted because the spec or the DaemonSet was wrong or changed, and not by evidence. */
bool hf_ro_is_halted_without_evidence(struct hf_rollout_status *status);
/* True if the nodes in work are taken back: in a rollback, and after a halt of a rollback. */
bool hf_ro_is_on_way_back(const struct ro_pass *pass);
/* Sets or replaces a condition. True: its status or reason differs. */
bool hf_ro_set_condition(const struct ro *ro, struct hf_rollout_status *status, const char *type,
			 bool is_true, const char *reason, const char *message);
/* Drops the oldest finished entries beyond the limits of the list. Reads the phase of the status. */
void hf_ro_trim_entries(struct hf_rollout_status *status);
bool hf_ro_write_status(struct ro *ro, const struct hf_rollout_status *status,
			struct hf_request *ret_request, struct hf_doc **ret_body);
/* Makes the request that adds or removes the finalizer. */
bool hf_ro_write_finalizer(struct ro *ro, bool wanted, struct hf_request *ret_request,
			   struct hf_doc **ret_body);
/* Records the events of a write that changed a phase of a node or the state of the rollout to `done`. */
void hf_ro_tell_change(struct ro *ro, const struct ro_object *object, const char *done);
/* Records an event of a Node, or of the rollout if node is "". */
void hf_ro_tell(struct ro *ro, const char *node, bool warning, const char *reason,
		const char *message);
void hf_ro_init_metrics(struct ro *ro);
void hf_ro_update_metrics(struct ro *ro);

#endif
