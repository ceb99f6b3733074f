/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_OBSERVED_H
#define HF_CORE_OBSERVED_H

#include "core/model/extra_object.h"
#include "core/model/types.h"

HF_BEGIN_DECLS

/*
 * What is seen of a job's pods, services and nodes.  The order of the lists does
 * not matter: the same facts in another order give the same plan, byte for byte.
 *
 * Which objects belong in: every pod and service of the job's namespace that
 *  - has a controller ownerReference with the job's UID (owned = true), or
 *  - has the name of one of the job's replicas and another owner or none
 *    (owned = false), so that the brain knows that the name is taken.
 *
 * Which replica an object stands for is read from its name, which cannot be edited;
 * labels can.
 */

enum hf_pod_phase {
	HF_POD_PENDING, /* "Pending", absent, and "Unknown" */
	HF_POD_RUNNING,
	HF_POD_SUCCEEDED,
	HF_POD_FAILED,
};
enum hf_pod_phase hf_pod_phase_parse(const char *text); /* NULL: PENDING */
const char *hf_pod_phase_name(enum hf_pod_phase phase);

enum hf_container_phase {
	HF_CONTAINER_UNKNOWN, /* no state given */
	HF_CONTAINER_WAITING,
	HF_CONTAINER_RUNNING,
	HF_CONTAINER_TERMINATED,
};

/* Which terminations of a container the kubelet follows with a start in the same pod. */
enum hf_container_again {
	HF_AGAIN_UNKNOWN, /* no policy is known, or the container has rules of its own */
	HF_AGAIN_NEVER,   /* no start; also for a sidecar: its terminations do not end the rank */
	HF_AGAIN_ON_FAILURE,
	HF_AGAIN_ALWAYS,
};

/* One element of status.containerStatuses or .initContainerStatuses. */
struct hf_container_seen {
	const char *name;
	bool init;
	enum hf_container_again again;
	int32_t restart_count; /* 0 of a sidecar, whose restarts are no ends of the rank */
	enum hf_container_phase phase;
	const char *waiting_reason; /* state.waiting.reason */
	const char *waiting_message;
	/* state.terminated; no rule looks at the last state, as in batch/v1 */
	int32_t exit_code;
	int32_t signal;
	const char *terminated_reason;  /* "OOMKilled", "Error", … */
	const char *terminated_message; /* by the runtime, the program or the kubelet; NULL: none */
	hf_time finished_at;            /* the node's clock */
	hf_time started_at;             /* state.running or state.terminated; the node's clock */
	/* lastState.terminated: how the run before ended, for the ledger's account of it */
	struct hf_opt_int last_exit_code;
	int32_t last_signal;
	const char *last_reason, *last_message;
};

/* How a container last ended.  Without an exit code no end was reported. */
struct hf_container_termination {
	struct hf_opt_int exit_code;
	int32_t signal; /* 0: none */
	const char *reason, *message;
};
/* The last end is the present state until the kubelet starts the container again, and the last state
 * after that.  It is also the last state where the kubelet lost the container (ContainerStatusUnknown): a pod that
 * is ended while its container waits to be started again. */
struct hf_container_termination hf_container_last_termination(
	const struct hf_container_seen *container);

/*
 * What speaks against a device that a pod has, or had until its end.  There is no entry for a device
 * that seems well: the kubelet calls devices healthy that it has lost sight of, so nothing follows
 * from that.
 */
struct hf_device_seen {
	const char *id;  /* a PCI address, or as the kubelet calls it */
	const char *cls; /* what it needs, as the agent publishes it; "unhealthy": by the kubelet */
	bool agent;      /* the node's agent says so, else the kubelet */
	bool fatal;      /* it cannot be worked with; else it is known to be degraded */
	bool over;       /* it can be worked with again */
	bool held;       /* the pod has it now, as far as is known */
	hf_time first, last; /* of the sightings, the node's clock; NONE: not told */
};
#define HF_DEVICE_UNHEALTHY "unhealthy"
/* Whether an agent of this version, or the kubelet, publishes that class. */
bool hf_device_class_is_known(const char *cls);

/* What a node's agent says of the training processes of a pod, where they report. */
enum hf_advance {
	HF_ADVANCE_UNKNOWN, /* none reports, or the agent is silent */
	HF_ADVANCING,
	HF_ADVANCE_STALLED, /* none of them has done a step for a while */
};

struct hf_pod_condition {
	const char *type;
	const char *status;
	const char *reason;
	const char *message;
};

struct hf_pod {
	const char *name;
	const char *uid;
	const char *resource_version;
	/* The kind of its controller ("PyTorchJob"), where that is a job of kubeflow.org and the pod has the
	 * name of one of its ranks, whichever its UID is; else NULL. */
	const char *maker;
	bool owned;

	bool stamped;        /* the three annotations below were there and numbers */
	int64_t generation;  /* holdfast.dev/generation */
	int64_t attempt;     /* holdfast.dev/attempt */
	int64_t incident;    /* holdfast.dev/incident */
	const char *avoids;  /* holdfast.dev/avoids; NULL: it may go anywhere */
	const char *stopped; /* holdfast.dev/stopped; NULL: the operator has not ended it */
	struct hf_opt_int active_deadline_seconds; /* spec.activeDeadlineSeconds */

	enum hf_pod_phase phase;
	const char *reason;  /* status.reason: "Evicted", "NodeShutdown", … */
	const char *message; /* status.message */
	hf_time creation_time;
	hf_time start_time;    /* status.startTime: its kubelet took it on; the node's clock */
	hf_time deletion_time; /* metadata.deletionTimestamp; HF_TIME_NONE: not terminating */
	hf_time deleted_at;    /* that less its grace: when it was asked for; NONE: not told */
	const char *node;      /* spec.nodeName; NULL: not bound */
	hf_time bound_at;      /* to that node, by the API server; NONE: not told */
	/* When its containers' part of the status was last seen to change, on our clock: a sign of
	 * life of its kubelet, which alone writes there.  NONE: not since we first saw it. */
	hf_time news_at;
	/* Since when its kubelet has called a device of it unhealthy, without a break, on our clock.
	 * NONE: it does not. */
	hf_time unwell_at;
	/* Since when the container with the name of its kind has been seen terminated, on our clock.
	 * NONE: it is not, or the reader does not watch pods. */
	hf_time own_ended_at;
	/* For how many seconds it tolerates taint unreachable:NoExecute; INT64_MAX: for ever.
	 * Not set: not at all.  Admission adds 300 s to pods that say nothing of it. */
	struct hf_opt_int tolerates_unreachable;
	/* PersistentVolumeClaims of its volumes, those of ephemeral ones too. */
	const char *const *claims;
	size_t claims_len;
	/* Terminating: what was left of its grace is 0, so only finalizers keep the object. */
	bool forced;                   /* metadata.deletionGracePeriodSeconds is 0 */
	const char *const *finalizers; /* metadata.finalizers */
	size_t finalizers_len;

	const struct hf_container_seen *containers; /* main and init ones */
	size_t containers_len;
	/* Only conditions that can matter need to be here: DisruptionTarget, PodScheduled,
	 * Ready, and the types that rules of this job name. */
	const struct hf_pod_condition *conditions;
	size_t conditions_len;

	const struct hf_device_seen *devices;
	size_t devices_len;
	enum hf_advance advance;
	/* Its processes end themselves when their node has had no contact for so long, as the node's
	 * agent tells; 0: they do not, or nobody knows. */
	int32_t fence_seconds;
	hf_time advanced_at;   /* STALLED: the last step of any of them, on our clock */
	hf_time told_at;       /* STALLED: its agent last said so, on our clock; NONE: not yet */
	int32_t slow_permille; /* of its peers' own work in a step, when it is called slow; else 0 */
	/* An agent names it as the holder of a device: when it ends, the agent reports soon. */
	bool watched;
};

/* Finds a main container by name in the kubelet's report; NULL if it is missing.  A name of NULL finds none. */
const struct hf_container_seen *hf_pod_find_container(const struct hf_pod *pod, const char *name);

/* The pod was made by an earlier job of this name and kind, which is gone, and the pod is being deleted.  If its node is
 * dead, only this job can act on it.  So the caller shows the node of such a pod as it shows those of the
 * job's own pods. */
struct hf_job_view;
bool hf_pod_is_inherited(const struct hf_job_view *job, const struct hf_pod *pod);

struct hf_service_seen {
	const char *name;
	const char *uid;
	const char *resource_version;
	bool owned;
	bool terminating;
};

/* How a node stands, by its Ready condition. */
enum hf_node_ready {
	HF_NODE_READY,     /* True */
	HF_NODE_NOT_READY, /* False: its kubelet lives and says so */
	HF_NODE_UNKNOWN,   /* Unknown: the control plane has not heard of its kubelet */
	HF_NODE_GONE,      /* there is no such Node object */
};
const char *hf_node_ready_name(enum hf_node_ready ready); /* "Ready", "NotReady", … */

/*
 * A node that carries a pod of this job.  Facts only: what follows from them is decided in
 * node.c.  Every time but unknown_at is on our clock: when we saw it, never what the node wrote.  A node
 * that is not in the list counts as silent.  A plane whose kubelet is this process gives
 * HF_NODE_READY and renewed_at = now.
 */
struct hf_node_seen {
	const char *name;
	enum hf_node_ready ready;
	hf_time since; /* ready has been as it is; as long as we watched */
	/* UNKNOWN: lastTransitionTime, by the clock of the control plane, which called it so; NONE:
	 * not told.  Not carried of True and False: those are times of the node's. */
	hf_time unknown_at;
	bool unreachable;    /* taint node.kubernetes.io/unreachable, of either effect */
	bool out_of_service; /* taint node.kubernetes.io/out-of-service */
	bool no_execute;     /* any taint with effect NoExecute */
	/* It has none now, and last had one, or was Unknown; NONE: not as long as we watched. */
	hf_time evicted_at;
	hf_time confirmed_at; /* a live GET (HF_ASK_NODE) last said the same; NONE: not yet */
	/*
	 * Its Lease, which is read only while a plan asks (HF_ASK_LEASE).  lease_read_at: last
	 * read, or last found missing; NONE: neither since it was last asked for.  lease_since:
	 * the reads from here to lease_read_at all brought the same spec.renewTime, compared as
	 * text; NONE: none did, or it is missing.  A Lease without renewTime counts as missing.
	 * A missing Lease proves nothing and vetoes nothing.
	 */
	hf_time lease_read_at;
	hf_time lease_since;
	hf_time renewed_at; /* renewTime was last seen to change; NONE: never */
	bool has_agent;
	hf_time reported_at; /* the agent's evidence reaches to here; NONE: never */
	hf_time beat_at;     /* its agent last heard of a training process there; NONE: never */
	/* The storm guard's numbers, of the node's zone or of the cluster: those of the cluster where
	 * the node names no zone, and where only the cluster is in a storm or was in one later.  Nodes,
	 * without those that are cordoned and well, were so before they fell silent, or are lost for more
	 * than a day; and how many of these are lost without proof of death. */
	int32_t zone_nodes, zone_lost;
	/* On our clock: these numbers have been below those of a storm since then, and we watched
	 * them without a gap.  NONE: they are a storm's, or unknown. */
	hf_time calm_since;
	const char *zone; /* of these numbers; NULL: the numbers of the cluster */
};
/* Nothing is known of it but this: no Lease was read, nobody confirms or reports. */
void hf_node_seen_init(struct hf_node_seen *node, const char *name, enum hf_node_ready ready,
		       hf_time since);

/* So many of a zone's nodes are lost at once that the fault is rather in our sight of them:
 * nothing is presumed dead then. */
bool hf_nodes_are_in_storm(int32_t nodes, int32_t lost);

/* A name that was held by a pod of this job until a moment ago.  Whoever watches forgets it after
 * so many seconds: no name stays empty for longer. */
#define HF_GONE_KEPT_SECONDS 300
struct hf_gone_seen {
	const char *name;
	const char *uid; /* of that pod */
	hf_time at;      /* when we saw that it was gone */
	bool no_execute; /* its node had a NoExecute taint then, was Unknown, or did not exist */
	/* The pod as it was seen last, where it was ours and marked for deletion by then: it may have
	 * gone before a step looked.  NULL: nobody knows how it went. */
	const struct hf_pod *last;
};

/* What an agent says of a device that a pod had which is gone by now: it failed before the pod let
 * go of it. */
struct hf_late_seen {
	const char *pod;  /* the name */
	const char *node; /* it was on */
	struct hf_device_seen device;
};

/* A node whose agent calls a device out of service. */
struct hf_sick_seen {
	const char *node;
	hf_time since; /* the one that failed last, on our clock; NONE: not told */
	bool silent;   /* its agent has not been heard of lately: that was so then */
};
/* As many are told of; a step takes them all along. */
#define HF_SICK_MAX 1024

/* A PersistentVolumeClaim that a pod names; read only when a plan asks (HF_ASK_CLAIM). */
struct hf_claim_seen {
	const char *name;
	bool exclusive; /* ReadWriteOnce or ReadWriteOncePod is among its modes, or it is gone */
};

struct hf_observed {
	const struct hf_pod *pods;
	size_t pods_len;
	const struct hf_service_seen *services;
	size_t services_len;
	const struct hf_extra_seen *extras; /* by the names that the job's table wants */
	size_t extras_len;
	unsigned
		extras_unknown; /* HF_EXTRA_BIT of kinds that were not looked at: left as they are */
	const struct hf_node_seen *nodes;
	size_t nodes_len;
	const struct hf_gone_seen *gone;
	size_t gone_len;
	const struct hf_claim_seen *claims;
	size_t claims_len;
	const struct hf_late_seen *late;
	size_t late_len;
	/* Nodes of the job's records, and all others whose agents are heard of; each once. */
	const struct hf_sick_seen *sick;
	size_t sick_len;
	/* We have watched pods without a gap since: who was gone before is not in `gone`. */
	hf_time watched_since;
	/* Whoever looks does not watch nodes (a person's `why`): what the status says of lost nodes
	 * and stuck pods stands, and nothing is concluded from nodes that seem well. */
	bool blind;
};

HF_END_DECLS

#endif
