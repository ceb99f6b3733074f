/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_NODES_H
#define HF_TESTS_SIM_NODES_H

#include "sim/sim.h"

/*
 * Machines, their kubelets, and what the control plane believes of them.
 *
 * A machine has power or not; its kubelet runs or not, and reaches the API server or not.  While
 * it does all three it renews its Lease every 10 s.  The rest is belief: the node life-cycle
 * controller looks every 5 s and calls a node Unknown after 50 s without a renewal, taints it,
 * and the taint-eviction controller deletes pods by name.
 */
#define SIM_NODES_MAX 8
#define SIM_ZONES_MAX 3
/* The cluster as a whole, in the arrays of zones. */
#define SIM_CLUSTER SIM_ZONES_MAX
#define SIM_NODE_LEASES "kube-node-lease"

enum sim_shown { SIM_SHOWN_READY, SIM_SHOWN_NOT_READY, SIM_SHOWN_UNKNOWN };

struct sim_node {
	struct sim *sim;
	char name[16];
	int zone;

	/* the truth */
	bool power, kubelet, link;
	bool runtime_bad;             /* its kubelet says Ready=False, and renews */
	bool shutting_down;           /* refuses pods; power goes soon */
	bool stays_dead;              /* in the calm: for ever */
	bool flaps;                   /* comes back soon, goes again */
	hf_time alive_since, renewed; /* monotonic; the last renewal that arrived */
	hf_time written;              /* and the last that is in the store */
	hf_time dead_since;           /* of the kubelet's word, while it is not alive */
	hf_time clock;                /* of the machine, against the API server's */
	struct hf_timer *timer;       /* the next turn of its fate */

	/* devices.c: one device, which all its pods hold */
	struct sim_device *device; /* NULL: no agent, and nothing to tell of */
	struct sim_fence *fence;   /* fences.c; NULL: no rank fences itself */
	struct sim_plugin *plugin; /* plugins.c; NULL: its kubelet says nothing of devices */

	/* the belief */
	bool exists; /* its Node object */
	hf_time gone_since;
	hf_time proven_until; /* its death was proven until then; 0: never */
	enum sim_shown shown;
	hf_time shown_since;
	hf_time shown_wall; /* the same, as the control plane's clock told it */
	bool unreachable_execute, out_of_service, drained; /* taints NoExecute */
	bool tainted;                                      /* any, in the store */
};

struct sim_nodes {
	struct sim_node nodes[SIM_NODES_MAX];
	size_t n;
	int zones;
	struct hf_rng rng;
	struct hf_timer *deeds;
	/* lifecycle.c */
	struct hf_timer *monitor, *gc;
	hf_time next_taint[SIM_ZONES_MAX]; /* the zone's queue lets the next one through */
	/* check_nodes.c: as the store shows the zone, it is in a storm; its last storm ended then */
	bool storm[SIM_ZONES_MAX + 1];        /* the last one: of the cluster */
	hf_time storm_end[SIM_ZONES_MAX + 1]; /* 0: there was none */
	struct hf_map *evictions;             /* pod name → its timer */
	struct sim_handling *handling;        /* pods the controller has yet to look at */
	struct sim_fences *fences;            /* fences.c */
	bool kcm_down;
	struct hf_timer *kcm_up;
	hf_time handle_max; /* how long its queue may take */
};

/* --- nodes.c --- */
void sim_nodes_init(struct sim *sim);
void sim_nodes_release(struct sim *sim);
void sim_nodes_calm(struct sim *sim);
void sim_node_off_for_ever(struct sim_node *node);
/* Its kubelet is dead for so long; its processes are not. */
void sim_node_mute(struct sim_node *node, hf_time for_span);
/* It is cut off for so long; its processes run on. */
void sim_node_cut(struct sim_node *node, hf_time for_span);
/* All nodes of its zone are cut off; the first is back after so long, each next one so much later. */
void sim_nodes_cut(struct sim_node *first, bool all, hf_time back, hf_time apart);
/* All are back, and the control plane knows. */
bool sim_nodes_are_well(const struct sim *sim);
bool sim_node_alive(const struct sim_node *node);
/* When its kubelet last renewed, as far as that arrived. */
hf_time sim_node_renewed(const struct sim_node *node);
struct sim_node *sim_node_get(struct sim *sim, const char *name);
/* Where a pod may go now; NULL: nowhere. */
struct sim_node *sim_node_for(struct sim *sim, const struct hf_json *pod_spec);
/* Leases are brought up to date when somebody asks for them. */
void sim_nodes_asked(struct sim *sim, const struct hf_request *request);
void sim_node_write(struct sim_node *node); /* Ready and taints, as they are believed */
void sim_node_make(struct sim_node *node);

/* --- devices.c: a device of each machine, and its agent --- */
void sim_devices_init(struct sim *sim);
void sim_devices_release(struct sim *sim);
void sim_devices_calm(struct sim *sim); /* all are mended */
void sim_device_fails(struct sim_node *node);
/* Its agent has called it broken for some seconds, and is not silent. */
bool sim_device_is_told_sick(const struct sim_node *node);
bool sim_device_has_failed(const struct sim_node *node); /* ever */
/* A pod there has begun, ended or gone: its agent tells of it soon. */
void sim_device_pod(struct sim_node *node, const char *name, const char *uid, bool gone);

/* An agent says nothing for a while, and then what it knows. */
void sim_agent_dies(struct sim_node *node);
/* It lives, whether anybody hears it or not. */
bool sim_agent_up(const struct sim_node *node);
/* Ranks that trained there were told of to the store within so long. */
bool sim_agent_spoke(const struct sim_node *node, hf_time within);

/* --- training.c: jobs whose ranks tell of their steps --- */
/* This one hangs, and its job stands still: for a while, or until its process is ended. */
void sim_training_hangs(struct sim *sim, const char *pod_uid);
bool sim_training_stands(struct sim *sim, const char *pod_uid);
/* When its last step was done: now, or when its job came to stand. */
hf_time sim_training_advanced(struct sim *sim, const char *pod_uid);

/* --- fences.c: ranks that end when their node has lost the control plane --- */
void sim_fences_init(struct sim *sim);
void sim_fences_release(struct sim *sim);
/* This is to happen to the node: true: it will, when the node has been watched for long enough. */
bool sim_fence_fuse(struct sim_node *node, enum sim_trouble kind);
enum sim_fence_word { SIM_FENCE_HOLDS, SIM_FENCE_WAITS, SIM_FENCE_NEVER };
/* A process is about to start that fences itself after so many seconds. */
enum sim_fence_word sim_fence_starts(struct sim_node *node, const char *uid, int64_t seconds);
void sim_fence_ended(struct sim *sim, const char *uid);
/* The agent has heard its ranks: what it would tell of those with a fence is news; and that, as JSON. */
bool sim_fence_news(struct sim_node *node);
void sim_fence_tell(struct sim_node *node, struct hf_strbuf *sb);
void sim_fence_agent_dies(struct sim_node *node);
void sim_fence_down(struct sim_node *node); /* it can say nothing; power may be gone */
void sim_fence_harmed(struct sim_node *node);
/* Within so long there was, or is, a reason why ranks there may end themselves. */
bool sim_fence_may_act(const struct sim_node *node, hf_time within);

/* --- plugins.c: what kubelets say of devices --- */
void sim_plugins_init(struct sim *sim);
void sim_plugins_release(struct sim *sim);
void sim_plugins_calm(struct sim *sim);
void sim_plugin_happens(struct sim_node *node, enum sim_trouble kind);
/* In the status of a pod there: behind the state of its container, and behind that container.  Whether
 * they say that a device is unhealthy. */
struct sim_plugin_words {
	char mine[512], beside[768];
};
bool sim_plugin_words(const struct sim_node *node, const char *uid, const char *phase,
		      struct sim_plugin_words *ret_words);

/* --- lifecycle.c: the controllers that act upon nodes --- */
void sim_lifecycle_init(struct sim *sim);
void sim_lifecycle_release(struct sim *sim);
/* Something about a node changed: they look again. */
void sim_lifecycle_wake(struct sim *sim);
void sim_lifecycle_pod(struct sim *sim, const struct hf_memstore_change *change);
void sim_lifecycle_taints(struct sim_node *node);
void sim_lifecycle_restart(struct sim *sim);
/* A condition on a pod, by type, and perhaps a phase (NULL: as it is). */
void sim_pod_mark(struct sim *sim, const char *name, const char *type, const char *status,
		  const char *reason, const char *phase);

/* --- kubelet.c: what becomes of the pods there --- */
void sim_kubelet_down(struct sim_node *node); /* it can say nothing; power may be gone */
void sim_kubelet_up(struct sim_node *node);
void sim_kubelet_shutdown(struct sim_node *node); /* gracefully */
/* Processes on it hang, or exit with that code. */
void sim_kubelet_device_fails(struct sim_node *node);
/* One of its processes ends itself for want of contact. */
void sim_kubelet_fenced(struct sim_node *node, const char *uid, const char *why);
/* It writes the statuses of its pods again, with what plugins say now. */
void sim_kubelet_says_again(struct sim_node *node);
/* Each pod there. */
void sim_kubelet_each(struct sim_node *node,
		      void (*fn)(void *arg, const char *name, const char *uid, bool over),
		      void *arg);

/* One of the troubles of nodes. */
void sim_node_happens(struct sim_node *node, enum sim_trouble kind);

#endif
