/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_OBSERVED_H
#define HF_CORE_OBSERVED_H

#include "core/model/extra_object.h"
#include "core/model/types.h"

HF_BEGIN_DECLS

/*
 * What is seen of a job's pods, services and nodes.  The order of the lists does not matter: the
 * same facts in another order give the same plan, byte for byte.
 *
 * The lists contain every pod and service of the job's namespace that
 *
 * - has a controller ownerReference with the job's UID (owned = true), or
 * - has the name of one of the job's replicas and another owner or none (owned = false), so that
 *   the brain knows that the name is taken.
 *
 * The replica of an object is read from its name, because labels can be edited.
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

/* After which terminations of a container the kubelet starts it again in the same pod. */
enum hf_container_again {
	HF_AGAIN_UNKNOWN, /* no policy is known, or a rule of the container has an unknown action */
	/* never; also for a sidecar, because its terminations do not end the rank */
	HF_AGAIN_NEVER,
	HF_AGAIN_ON_FAILURE,
	HF_AGAIN_ALWAYS, /* always; or a rule of the container matches its last exit code */
};

/* One element of status.containerStatuses or .initContainerStatuses. */
struct hf_container_seen {
	const char *name;
	bool init;
	enum hf_container_again again;
	int32_t restart_count; /* restartCount; 0 for a sidecar: the rank has not ended with it */
	enum hf_container_phase phase;
	const char *waiting_reason; /* state.waiting.reason */
	const char *waiting_message;
	/* state.terminated; rules do not look at lastState, as in batch/v1 */
	int32_t exit_code;
	int32_t signal;
	const char *terminated_reason; /* "OOMKilled", "Error", … */
	/* written by the runtime, the program or the kubelet; NULL: none */
	const char *terminated_message;
	hf_time finished_at; /* the node's clock */
	hf_time started_at;  /* state.running or state.terminated; the node's clock */
	/* lastState.terminated: how the container's previous run ended, for the ledger's record */
	struct hf_opt_int last_exit_code;
	int32_t last_signal;
	const char *last_reason, *last_message;
};

/* How a container last ended.  If the exit code is not set, no termination was reported. */
struct hf_container_termination {
	struct hf_opt_int exit_code;
	int32_t signal; /* 0: none */
	const char *reason, *message;
};
/*
 * The container's last termination: state.terminated, or lastState.terminated after the kubelet has
 * started the container again.
 *
 * Exception: if the kubelet lost the container (ContainerStatusUnknown: the pod was ended while the
 * container waited to be started again), lastState.terminated counts.
 */
struct hf_container_termination hf_container_last_termination(
	const struct hf_container_seen *container);

/* A kernel line about a device may be written this much later than the termination that it
 * explains. */
#define HF_LINE_LATE (10 * HF_SECOND)

/*
 * Evidence against a device that a pod has, or had until it ended.  A device without evidence has
 * no entry.  Nothing follows from a missing entry, because the kubelet calls devices healthy that
 * it has lost sight of.
 */
struct hf_device_seen {
	const char *id; /* the device: a PCI address from the agent, or the kubelet's name */
	/* the agent's word for the repair that the device needs; "unhealthy" from the
	 * kubelet */
	const char *cls;
	bool agent; /* true: the node's agent reports the fault; false: the kubelet does */
	bool fatal; /* true: the device is unusable; false: it is degraded */
	bool over;  /* the device works again */
	bool held;  /* as far as is known, the pod has the device now */
	/* first and last sighting of the fault, by the node's clock; NONE: not reported */
	hf_time first, last;
};
#define HF_DEVICE_UNHEALTHY "unhealthy"
/* An agent of this version or the kubelet publishes this device class. */
bool hf_device_class_is_known(const char *cls);

/* The agent's report on the training processes of a pod. */
enum hf_advance {
	HF_ADVANCE_UNKNOWN, /* no process of the pod reports, or the agent is silent */
	HF_ADVANCING,
	HF_ADVANCE_STALLED, /* no process of the pod has finished a step for a while */
};

/*
 * The program of a pod under `holdfast exec`, as the agent of its node reports it.
 *
 * The operator has checked the pod's UID, its node and the job's UID.  Generation and attempt are
 * those of the process that runs or ran last.  In phase DOWN they are those of the order that
 * stopped it; the next process starts with them.
 */
enum hf_process_phase {
	HF_PROCESS_WAITING, /* exec has started no process yet and waits for its first order */
	HF_PROCESS_RUNNING,
	HF_PROCESS_ENDED, /* the process ended by itself, and exec waits for an order */
	HF_PROCESS_DOWN,  /* exec stopped the process and waits for the order to start the next */
};
/* HF_PROCESS_PHASES for an unknown text. */
#define HF_PROCESS_PHASES (HF_PROCESS_DOWN + 1)
enum hf_process_phase hf_process_phase_parse(const char *text);
struct hf_process_seen {
	int64_t generation, attempt;
	int64_t ordinal; /* how many processes this exec has started so far */
	enum hf_process_phase phase;
	struct hf_opt_int code, signal; /* ENDED */
	const char *cause;              /* ENDED: one word, or NULL */
	const char *message;            /* ENDED: its last words, or NULL */
	int64_t step, saved_step;       /* 0: unknown */
	int64_t save_ms; /* how long the last save took that exec asked for; 0: unknown */
	hf_time at;      /* when the phase began, by the node's clock; NONE: unknown */
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
	/* The kind of the pod's controller ("PyTorchJob"); NULL: its controller is no job of
	 * kubeflow.org, or the pod's name is not that of one of its ranks.  The controller may have
	 * any UID. */
	const char *maker;
	bool owned;

	bool stamped;        /* the next three annotations are present and are numbers */
	int64_t generation;  /* holdfast.dev/generation */
	int64_t attempt;     /* holdfast.dev/attempt */
	int64_t incident;    /* holdfast.dev/incident */
	const char *avoids;  /* holdfast.dev/avoids; NULL: no node is avoided */
	const char *stopped; /* holdfast.dev/stopped; NULL: the operator has not stopped the pod */
	const char *spec;    /* holdfast.dev/spec; NULL: an earlier version made the pod */
	struct hf_opt_int active_deadline_seconds; /* spec.activeDeadlineSeconds */
	struct hf_opt_int grace_seconds;           /* not set: HF_POD_GRACE_SECONDS */

	enum hf_pod_phase phase;
	const char *reason;  /* status.reason: "Evicted", "NodeShutdown", … */
	const char *message; /* status.message */
	hf_time creation_time;
	hf_time start_time; /* status.startTime: the kubelet accepted the pod; the node's clock */
	hf_time deletion_time; /* metadata.deletionTimestamp; HF_TIME_NONE: not terminating */
	/* when the delete was requested: deletion_time less the grace; NONE: unknown */
	hf_time deleted_at;
	const char *node; /* spec.nodeName; NULL: not bound */
	hf_time bound_at; /* when the API server bound the pod to the node; NONE: unknown */
	/* When the containers' part of the status last changed, by the operator's clock.  That is a
	 * sign of life, because only the kubelet writes there.  NONE: no change since the operator
	 * first saw the pod. */
	hf_time news_at;
	/* Since when, without a break, the kubelet has called a device of the pod unhealthy, by the
	 * operator's clock.  NONE: it calls none unhealthy. */
	hf_time unwell_at;
	/* When the operator first saw the own container terminated, by the operator's clock.  NONE:
	 * it is not terminated, or the caller does not watch pods. */
	hf_time own_ended_at;
	/* For how many seconds the pod tolerates taint node.kubernetes.io/unreachable:NoExecute;
	 * INT64_MAX: for ever; not set: no toleration.  Admission adds 300 s to pods without
	 * one. */
	struct hf_opt_int tolerates_unreachable;
	/* Names of the PersistentVolumeClaims of its volumes, ephemeral volumes included. */
	const char *const *claims;
	size_t claims_len;
	/* The pod is terminating with a grace of 0, so only finalizers keep the object. */
	bool forced;                   /* metadata.deletionGracePeriodSeconds is 0 */
	const char *const *finalizers; /* metadata.finalizers */
	size_t finalizers_len;

	const struct hf_container_seen *containers; /* main and init ones */
	size_t containers_len;
	/* The conditions that the brain reads: DisruptionTarget, PodScheduled, Ready, and the types
	 * that rules of this job name.  Others may be left out. */
	const struct hf_pod_condition *conditions;
	size_t conditions_len;

	const struct hf_device_seen *devices;
	size_t devices_len;
	enum hf_advance advance;
	/* Seconds without contact of the node after which the pod's processes end themselves, as
	 * the agent reports; 0: they do not, or no report. */
	int32_t fence_seconds;
	/* if STALLED: when any process last finished a step, by the operator's clock */
	hf_time advanced_at;
	/* if STALLED: when the agent last reported, by the operator's clock; NONE: not yet */
	hf_time told_at;
	/* the report of an exec in this pod; NULL: no report */
	const struct hf_process_seen *process;
	int64_t step; /* the highest step that a rank of the pod has reported; 0: unknown */
	/* when any process last finished a step, by the operator's clock; NONE: unknown */
	hf_time stepped_at;
	/* for a slow rank: its work per step in permille of that of its peers; else 0 */
	int32_t slow_permille;
	/* An agent reports soon after this pod ends, because it names the pod as holder of a
	 * device. */
	bool watched;
};

/* Find a main container by name in the kubelet's report; NULL: missing, or the name is NULL. */
const struct hf_container_seen *hf_pod_find_container(const struct hf_pod *pod, const char *name);

/* An earlier job of this name and kind, which is gone, created the pod, and the pod is being
 * deleted. If the pod's node is dead, only this job can act on the pod. So the caller must show the
 * node of such a pod, too. */
struct hf_job_view;
bool hf_pod_is_inherited(const struct hf_job_view *job, const struct hf_pod *pod);

struct hf_service_seen {
	const char *name;
	const char *uid;
	const char *resource_version;
	bool owned;
	bool terminating;
};

/* The state of a node by its Ready condition. */
enum hf_node_ready {
	HF_NODE_READY,     /* True */
	HF_NODE_NOT_READY, /* False: the kubelet is alive and reports that the node is not ready */
	HF_NODE_UNKNOWN,   /* Unknown: the control plane no longer hears from the kubelet */
	HF_NODE_GONE,      /* the Node object does not exist */
};
const char *hf_node_ready_name(enum hf_node_ready ready); /* "Ready", "NotReady", … */

/*
 * Facts about a node that carries a pod of this job.  policy/node_evidence.c decides what follows from them.
 *
 * Every time except unknown_at and renew_time is of the operator's clock: when the operator saw it,
 * never what the node wrote.  A node that is not in the list counts as silent.  If kubelet and control plane are
 * one process, the caller gives HF_NODE_READY and renewed_at = now.
 */
struct hf_node_seen {
	const char *name;
	enum hf_node_ready ready;
	hf_time since; /* since when `ready` has had this value, as far as the operator watched */
	/* if UNKNOWN: lastTransitionTime, by the control plane's clock; NONE: not reported.  For
	 * True and False, lastTransitionTime is a time of the node's clock, so it is left out. */
	hf_time unknown_at;
	bool unreachable;    /* taint node.kubernetes.io/unreachable, of either effect */
	bool out_of_service; /* taint node.kubernetes.io/out-of-service */
	bool no_execute;     /* any taint with effect NoExecute */
	/* If the node has no NoExecute taint now: the last moment at which it had one, or was
	 * Unknown.  NONE: never, as far as the operator watched. */
	hf_time evicted_at;
	/* when a live GET (HF_ASK_NODE) last confirmed this state; NONE: not yet */
	hf_time confirmed_at;
	/*
	 * The node's Lease, which is read only while a plan asks (HF_ASK_LEASE).
	 *
	 * - lease_read_at: last read, or last found missing; NONE: neither since it was last asked
	 *   for.
	 * - lease_since: all reads from here to lease_read_at brought the same spec.renewTime,
	 *   compared as text; NONE: no read did, or the Lease is missing.
	 *
	 * A Lease without renewTime counts as missing.  A missing Lease proves nothing and vetoes
	 * nothing.
	 */
	hf_time lease_read_at;
	hf_time lease_since;
	hf_time renewed_at; /* last change of renewTime; NONE: never */
	hf_time renew_time; /* spec.renewTime, by the node's clock, for figures; NONE: unknown */
	bool has_agent;
	/* until when the agent's evidence is complete; NONE: the agent never reported */
	hf_time reported_at;
	hf_time beat_at; /* when the agent last saw a sign of a training process; NONE: never */
	/*
	 * The storm guard's numbers for the node's zone.  They are those of the whole cluster if
	 * the node names no zone, or if only the cluster is in a storm, or was in one later.
	 *
	 * zone_nodes: the nodes, without those that are cordoned and well, were cordoned before
	 * they fell silent, or are lost for more than a day.  zone_lost: how many of zone_nodes are
	 * lost without proof of death.
	 */
	int32_t zone_nodes, zone_lost;
	/* Since when the numbers have been below a storm, by the operator's clock, watched without
	 * a gap.  NONE: a storm, or unknown. */
	hf_time calm_since;
	const char *zone; /* the zone that the numbers are of; NULL: the whole cluster */
};
/* Initialise a node without further facts: no read of its Lease, no report, no confirmation. */
void hf_node_seen_init(struct hf_node_seen *node, const char *name, enum hf_node_ready ready,
		       hf_time since);

/* So many nodes are lost at once that the network is the likely fault.  In such a storm no node is
 * presumed dead. */
bool hf_nodes_are_in_storm(int32_t nodes, int32_t lost);

/* A pod with the name of a rank that disappeared a moment ago: of this job, of an earlier job of this name, or of
 * another owner.  The caller forgets it after HF_GONE_KEPT_SECONDS; no name stays unused for longer. */
#define HF_GONE_KEPT_SECONDS 300
struct hf_gone_seen {
	const char *name;
	const char *uid; /* of that pod */
	hf_time at;      /* when the operator saw that the pod was gone */
	bool no_execute; /* the pod's node had a NoExecute taint, was Unknown, or did not exist */
	/* The job's own pod as it was last seen, marked for deletion.  NULL: unknown, or not of this job. */
	const struct hf_pod *last;
};

/* An agent's report, after the pod was gone, that a device failed while the pod had it. */
struct hf_late_seen {
	const char *pod;  /* the name */
	const char *node; /* the node of that pod */
	struct hf_device_seen device;
};

/* A node with a device that its agent reports as out of service. */
struct hf_sick_seen {
	const char *node;
	hf_time since; /* the last of its devices failed then, by the operator's clock; NONE: unknown */
	bool silent; /* the agent has not been heard of lately, so its report may be out of date */
	bool withheld; /* no pod can be given these devices anew; a shared claim may still have them */
};
#define HF_SICK_MAX 1024 /* the most such nodes in one observation */

struct hf_mended_seen {
	const char *node; /* of the job's records, mended by a proved act */
	hf_time at;       /* end of the last such act, by the operator's clock */
};

/* A PersistentVolumeClaim of a pod.  It is read only when a plan asks for it (HF_ASK_CLAIM). */
struct hf_claim_seen {
	const char *name;
	/* only one node at a time may use the claim (ReadWriteOnce or ReadWriteOncePod), or it is gone */
	bool exclusive;
};

struct hf_observed {
	const struct hf_pod *pods;
	size_t pods_len;
	const struct hf_service_seen *services;
	size_t services_len;
	/* existing objects with the names that the kind's table wants */
	const struct hf_extra_seen *extras;
	size_t extras_len;
	/* HF_EXTRA_BIT of kinds that the caller did not read; their objects are left
	 * alone */
	unsigned extras_unknown;
	const struct hf_node_seen *nodes;
	size_t nodes_len;
	const struct hf_gone_seen *gone;
	size_t gone_len;
	const struct hf_claim_seen *claims;
	size_t claims_len;
	const struct hf_late_seen *late;
	size_t late_len;
	/* Nodes with a device out of service, each once: those that the job's records name, and all
	 * others with a live agent. */
	const struct hf_sick_seen *sick;
	size_t sick_len;
	const struct hf_mended_seen *mended;
	size_t mended_len;
	/* Since when the caller has watched pods without a gap.  Pods that disappeared earlier are
	 * not in `gone`. */
	hf_time watched_since;
	/* The caller does not watch nodes (`holdfast why`).  Then the stored conditions on lost
	 * nodes and stuck pods stay, and nothing follows from nodes that seem well. */
	bool blind;
};

HF_END_DECLS

#endif
