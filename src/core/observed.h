/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_OBSERVED_H
#define HF_CORE_OBSERVED_H

#include "core/types.h"

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

/* One element of status.containerStatuses or .initContainerStatuses. */
struct hf_container_seen {
	const char *name;
	bool init;
	int32_t restart_count;
	enum hf_container_phase phase;
	const char *waiting_reason; /* state.waiting.reason */
	const char *waiting_message;
	/* state.terminated; no rule looks at the last state, as in batch/v1 */
	int32_t exit_code;
	int32_t signal;
	const char *terminated_reason; /* "OOMKilled", "Error", … */
	hf_time finished_at;           /* the node's clock */
	hf_time started_at;            /* state.running or state.terminated; the node's clock */
	/* lastState.terminated: how the run before ended, for the ledger's account of it */
	struct hf_opt_int last_exit_code;
	int32_t last_signal;
	const char *last_reason, *last_message;
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
	bool owned;

	bool stamped;       /* the three annotations below were there and numbers */
	int64_t generation; /* holdfast.dev/generation */
	int64_t attempt;    /* holdfast.dev/attempt */
	int64_t incident;   /* holdfast.dev/incident */

	enum hf_pod_phase phase;
	const char *reason;  /* status.reason: "Evicted", "NodeShutdown", … */
	const char *message; /* status.message */
	hf_time creation_time;
	hf_time deletion_time; /* metadata.deletionTimestamp; HF_TIME_NONE: not terminating */
	const char *node;      /* spec.nodeName; NULL: not bound */

	const struct hf_container_seen *containers; /* main and init ones */
	size_t containers_len;
	/* Only conditions that can matter need to be here: DisruptionTarget, PodScheduled,
	 * Ready, and the types that rules of this job name. */
	const struct hf_pod_condition *conditions;
	size_t conditions_len;
};

struct hf_service_seen {
	const char *name;
	const char *uid;
	const char *resource_version;
	bool owned;
	bool terminating;
};

/*
 * A node that carries or carried a pod of this job: what settling needs to know.
 * renewed_at and reported_at are on our clock: when we saw the news, never what the
 * node wrote.  A plane whose kubelet is this process gives renewed_at = now.
 * A node that is not in the list counts as silent.
 */
struct hf_node_seen {
	const char *name;
	hf_time renewed_at; /* the node's Lease was last seen to change; NONE: never */
	bool has_agent;
	hf_time reported_at; /* the agent's evidence reaches to here; NONE: never */
	bool lost;           /* gone, out of service, or Ready=Unknown */
	bool suspect;        /* may be about to become lost: settling waits longer */
};

struct hf_observed {
	const struct hf_pod *pods;
	size_t pods_len;
	const struct hf_service_seen *services;
	size_t services_len;
	const struct hf_node_seen *nodes;
	size_t nodes_len;
};

HF_END_DECLS

#endif
