/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_NODES_H
#define HF_TESTS_SIM_NODES_H

#include "sim/sim.h"

/*
 * Machines, their kubelets, and what the control plane knows of them.
 *
 * A machine has power or not. Its kubelet runs or not, and reaches the API server or not. While all
 * three hold, the kubelet renews the node's Lease every 10 s. The control plane learns of trouble
 * later. The node life-cycle controller looks every 5 s, and calls a node Unknown after 50 s
 * without a renewal. It taints the node, and the taint-eviction controller deletes pods by name.
 */
#define SIM_NODES_MAX 8
#define SIM_ZONES_MAX 3
/* Index of the whole cluster in the arrays of zones. */
#define SIM_CLUSTER SIM_ZONES_MAX
#define SIM_NODE_LEASES "kube-node-lease"

enum sim_shown { SIM_SHOWN_READY, SIM_SHOWN_NOT_READY, SIM_SHOWN_UNKNOWN };

struct sim_node {
	struct sim *sim;
	char name[16];
	int zone;

	/* the state of the machine: */
	bool power, kubelet, link;
	bool runtime_bad;             /* the kubelet renews the Lease but reports Ready=False */
	bool shutting_down;           /* the node refuses pods, and loses power soon */
	bool stays_dead;              /* in the calm the node stays dead for ever */
	bool flaps;                   /* the node comes back soon and goes again */
	hf_time alive_since, renewed; /* monotonic; renewed: the last renewal that arrived */
	hf_time written;              /* the last renewal that is in the store */
	hf_time dead_since;           /* since when the kubelet does not reach the API server */
	hf_time clock;                /* the machine's clock minus the API server's clock */
	struct hf_timer *timer;       /* the next change of the node's state */

	/* devices.c: one device, which all pods of the node hold */
	struct sim_device *device; /* NULL: the node has no agent */
	struct sim_fence *fence;   /* fences.c; NULL: no rank fences itself */
	struct sim_plugin *plugin; /* plugins.c; NULL: the kubelet reports no devices */

	/* what the control plane knows: */
	bool exists; /* the Node object exists */
	hf_time gone_since;
	hf_time proven_until; /* when the proof of the node's death ended; 0: it was never proven */
	enum sim_shown shown;
	hf_time shown_since;
	hf_time shown_wall; /* shown_since by the control plane's clock */
	bool unreachable_execute, out_of_service, drained; /* taints NoExecute */
	bool tainted;                                      /* the stored Node has a taint */
};

struct sim_nodes {
	struct sim_node nodes[SIM_NODES_MAX];
	size_t n;
	int zones;
	struct hf_rng rng;
	struct hf_timer *deeds;
	/* lifecycle.c */
	struct hf_timer *monitor, *gc;
	hf_time next_taint[SIM_ZONES_MAX]; /* when the queue of the zone may taint the next node */
	/* check_nodes.c, from what the store shows: whether the zone has a storm, and when its last
	 * storm ended */
	bool storm[SIM_ZONES_MAX + 1];        /* the last entry is for the cluster */
	hf_time storm_end[SIM_ZONES_MAX + 1]; /* 0: there was none */
	struct hf_map *evictions;             /* pod name → its timer */
	/* changed pods that the eviction controller has not handled yet */
	struct sim_handling *handling;
	struct sim_fences *fences; /* fences.c */
	bool kcm_down;
	struct hf_timer *kcm_up;
	hf_time handle_max; /* the longest time that a pod waits in this queue */
};

/* --- nodes.c --- */
void sim_nodes_init(struct sim *sim);
void sim_nodes_release(struct sim *sim);
void sim_nodes_calm(struct sim *sim);
void sim_node_off_for_ever(struct sim_node *node);
/* The node's kubelet is dead for this time. Its processes run on. */
void sim_node_mute(struct sim_node *node, hf_time for_span);
/* The node is cut off for this time. Its processes run on. */
void sim_node_cut(struct sim_node *node, hf_time for_span);
/* All nodes of the zone (or all nodes) are cut off. The first comes back after `back`, each next
 * one `apart` later. */
void sim_nodes_cut(struct sim_node *first, bool all, hf_time back, hf_time apart);
/* True if all nodes are back and the control plane knows it. */
bool sim_nodes_are_well(const struct sim *sim);
bool sim_node_alive(const struct sim_node *node);
/* When the last renewal of the kubelet arrived at the API server. */
hf_time sim_node_renewed(const struct sim_node *node);
struct sim_node *sim_node_get(struct sim *sim, const char *name);
/* A node on which the pod may run now; NULL: none. */
struct sim_node *sim_node_for(struct sim *sim, const struct hf_json *pod_spec);
/* Call this before a request: Leases are written when a request reads them. */
void sim_nodes_asked(struct sim *sim, const struct hf_request *request);
void sim_node_write(struct sim_node *node); /* writes condition Ready and the taints */
void sim_node_make(struct sim_node *node);

/* --- devices.c: a device of each machine, and its agent --- */
void sim_devices_init(struct sim *sim);
void sim_devices_release(struct sim *sim);
void sim_devices_calm(struct sim *sim); /* all are mended */
void sim_device_fails(struct sim_node *node);
/* True if the agent has reported the device as broken for some seconds, and reports now. */
bool sim_device_is_told_sick(const struct sim_node *node);
bool sim_device_has_failed(const struct sim_node *node); /* ever */
/* A pod of the node has begun, ended or gone, so its agent reports soon. */
void sim_device_pod(struct sim_node *node, const char *name, const char *uid, bool gone);

/* The agent is dead for a while. The next agent reports what it finds. */
void sim_agent_dies(struct sim_node *node);
/* True if the agent lives, even if the node is cut off. */
bool sim_agent_up(const struct sim_node *node);
/* True if the agent reported live ranks of this node within this time. */
bool sim_agent_spoke(const struct sim_node *node, hf_time within);

/* --- training.c: jobs whose ranks report their steps --- */
/* The pod hangs, so its job stands still: for a while, or until the process is ended. */
void sim_training_hangs(struct sim *sim, const char *pod_uid);
bool sim_training_stands(struct sim *sim, const char *pod_uid);
/* When the last step of the pod ended: now, or when its job began to stand still. */
hf_time sim_training_advanced(struct sim *sim, const char *pod_uid);

/* --- fences.c: ranks that end when their node has lost the control plane --- */
void sim_fences_init(struct sim *sim);
void sim_fences_release(struct sim *sim);
/* Delays a trouble until the node has been watched for long enough. Returns false if the trouble
 * may happen now. */
bool sim_fence_fuse(struct sim_node *node, enum sim_trouble kind);
enum sim_fence_word { SIM_FENCE_HOLDS, SIM_FENCE_WAITS, SIM_FENCE_NEVER };
/* A process with a fence of so many seconds is about to start. Returns whether it may. */
enum sim_fence_word sim_fence_starts(struct sim_node *node, const char *uid, int64_t seconds);
void sim_fence_ended(struct sim *sim, const char *uid);
/* news: the agent looks at its ranks; true if its list of fences has changed. tell: appends this
 * list as JSON. */
bool sim_fence_news(struct sim_node *node);
void sim_fence_tell(struct sim_node *node, struct hf_strbuf *sb);
void sim_fence_agent_dies(struct sim_node *node);
/* the agent has gone, perhaps with the machine's power */
void sim_fence_down(struct sim_node *node);
void sim_fence_harmed(struct sim_node *node);
/* True if a rank of this node had a reason to end itself within this time. */
bool sim_fence_may_act(const struct sim_node *node, hf_time within);

/* --- plugins.c: what kubelets say of devices --- */
void sim_plugins_init(struct sim *sim);
void sim_plugins_release(struct sim *sim);
void sim_plugins_calm(struct sim *sim);
void sim_plugin_happens(struct sim_node *node, enum sim_trouble kind);
/* Texts for the status of a pod: `mine` for its first container, `beside` for a second one. Returns
 * whether they call a device unhealthy. */
struct sim_plugin_words {
	char mine[512], beside[768];
};
bool sim_plugin_words(const struct sim_node *node, const char *uid, const char *phase,
		      struct sim_plugin_words *ret_words);

/* --- lifecycle.c: the controllers that act upon nodes --- */
void sim_lifecycle_init(struct sim *sim);
void sim_lifecycle_release(struct sim *sim);
/* A fact about a node changed, so the controllers look again. */
void sim_lifecycle_wake(struct sim *sim);
void sim_lifecycle_pod(struct sim *sim, const struct hf_memstore_change *change);
void sim_lifecycle_taints(struct sim_node *node);
void sim_lifecycle_restart(struct sim *sim);
/* Sets a condition of a pod, and the phase if it is not NULL. */
void sim_pod_mark(struct sim *sim, const char *name, const char *type, const char *status,
		  const char *reason, const char *phase);

/* --- kubelet.c: the pods of a node --- */
/* the kubelet cannot report any more, perhaps because power is gone */
void sim_kubelet_down(struct sim_node *node);
void sim_kubelet_up(struct sim_node *node);
void sim_kubelet_shutdown(struct sim_node *node); /* gracefully */
/* The processes of the node hang, or exit. */
void sim_kubelet_device_fails(struct sim_node *node);
/* A process of the node ends itself because it has had no contact for too long. */
void sim_kubelet_fenced(struct sim_node *node, const char *uid, const char *why);
/* The kubelet writes the statuses of its pods again, with the present words of the plugins. */
void sim_kubelet_says_again(struct sim_node *node);
/* Calls the function for each pod of the node. */
void sim_kubelet_each(struct sim_node *node,
		      void (*fn)(void *arg, const char *name, const char *uid, bool over),
		      void *arg);

/* Lets one of the troubles of nodes happen. */
void sim_node_happens(struct sim_node *node, enum sim_trouble kind);

#endif
