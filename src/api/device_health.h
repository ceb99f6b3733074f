/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_DEVICE_HEALTH_H
#define HF_API_DEVICE_HEALTH_H

#include "base/arena.h"
#include "base/time.h"
#include "json/doc.h"
#include "json/fields.h"

HF_BEGIN_DECLS

/*
 * DeviceHealth: what a node's agent knows of the node's accelerators.  One object for each node,
 * under the node's name, cluster-scoped, in holdfast.dev/v1alpha1.  The agent makes it (owned by its
 * Node, so that it goes with that) and is the only one to write its status, which is a subresource.
 *
 * The words are those of the device brain (health/types.h): states "Healthy", classes "gpu-reset",
 * actions "reset-device", detectors "xid", kinds "gpu".  This module only carries them.  All times
 * in it are of the node's clock, to the microsecond, as are the times in its pods' statuses.
 */

#define HF_DEVICE_HEALTH_GROUP "holdfast.dev"
#define HF_DEVICE_HEALTH_VERSION "v1alpha1"
#define HF_DEVICE_HEALTH_API_VERSION HF_DEVICE_HEALTH_GROUP "/" HF_DEVICE_HEALTH_VERSION
#define HF_DEVICE_HEALTH_KIND "DeviceHealth"
#define HF_DEVICE_HEALTH_PLURAL "devicehealths"

/* The condition that the agent writes on a pod which holds a device that cannot be worked with:
 * status False, reason as hf_device_reason makes it of the class, message: the device's id, a blank,
 * and words for people.  True
 * once that is over and the pod still holds it; never on a pod that was always well. */
#define HF_POD_COND_DEVICE_HEALTHY "holdfast.dev/DeviceHealthy"

/* What the schema of the CRD allows; beyond it a writer leaves out and counts, the mildest first. */
#define HF_DEVICE_HEALTH_DEVICES_MAX 65 /* of the brain, and the node itself */
#define HF_DEVICE_HEALTH_FAULTS_MAX 8   /* of one device */
#define HF_DEVICE_HEALTH_HOLDERS_MAX 16 /* of one device: a GPU has seven instances at most */
#define HF_DEVICE_HEALTH_DETECTORS_MAX 32
#define HF_DEVICE_HEALTH_RANKS_MAX 128 /* of one node; a kubelet runs 110 pods */
#define HF_DEVICE_HEALTH_TEXT_MAX 256  /* bytes of any text */

struct hf_detector_report {
	const char *name;   /* "name": "xid", "nvml" */
	const char *state;  /* "state": On, Off, Stale */
	const char *reason; /* "reason": why it is not On, for a person; NULL: it is */
	hf_time since;      /* "since" */
};

struct hf_device_fault {
	const char *detector; /* "detector" */
	int64_t code;         /* "code": an Xid, or a number of the detector's own */
	int64_t subcode;      /* "subcode"; -1: none */
	const char *severity; /* "severity": fatal, non-fatal, corrected; NULL: not said */
	const char *cls;      /* "class" */
	const char *action;   /* "action" */
	const char *unit;     /* "unit": of the device; NULL: none */
	const char *line;     /* "line": the evidence as it was found; NULL: none */
	hf_time first;        /* "firstTime" */
	hf_time last;         /* "lastTime": the newest sighting */
	int64_t count;        /* "count" */
	bool acts;            /* "active": it counts against the device now */
};

/* A container that has, or had, the device.  A holder stays in the list for an hour after its end:
 * whoever asks why a pod has died asks then. */
struct hf_device_holder {
	const char *ns, *pod;    /* "namespace", "pod" */
	const char *uid;         /* "uid" of the pod; NULL: not known to the agent */
	const char *container;   /* "container" */
	const char *resource;    /* "resource": "nvidia.com/gpu", or "claim:NAME/REQUEST" */
	const char *resource_id; /* "resourceID": the plugin's, or "driver/pool/device" */
	hf_time until;           /* "until": the kubelet no longer names it; NONE: it holds it */
};

struct hf_device_report {
	const char *id; /* "id": a PCI address, a port; "" for the node, which is written "node" */
	const char *uuid;        /* "uuid"; NULL: none */
	const char *kind;        /* "kind": node, gpu, switch, port */
	const char *resource;    /* "resource" by which the kubelet gives it out; NULL: not known */
	const char *resource_id; /* "resourceID"; NULL: not known, or it is given out in parts */
	const char *state;       /* "state" */
	const char *cls;         /* "class": the strictest that acts; NULL or "none": none does */
	const char *action;      /* "action" that its evidence asks for; NULL: none */
	hf_time since;           /* "since" it is in that state */
	hf_time hold_until;      /* "holdUntil"; NONE: it is not held */
	int64_t generation;      /* "generation": grows with each change of state */
	HF_LIST(struct hf_device_fault) faults;
	HF_LIST(struct hf_device_holder) holders;
};

/*
 * A training process that reports its steps to the agent.  Written when something about it changes
 * that somebody decides on: it came or went, stopped or began to advance, or its own work takes
 * 5 % longer or shorter than was written.  The step is of that moment.
 */
#define HF_RANK_ADVANCING "Advancing"
#define HF_RANK_STALLED "Stalled" /* it reports, and no step was done for a while */
#define HF_RANK_SILENT "Silent"   /* nothing was heard of its pod for 30 s */
struct hf_rank_report {
	const char *ns, *pod, *uid; /* "namespace", "pod", "uid" */
	int64_t rank;               /* "rank" among all of the job; -1: not said */
	const char *group;          /* "group": it is compared with its like only; NULL: none */
	const char *state;          /* "state" */
	int64_t step, total;        /* "step", "totalSteps"; 0: not said */
	int64_t own_us;             /* "ownMicros" of a step, median; 0: not known yet */
	hf_time advanced_at;        /* "advancedTime": its last step was done */
	hf_time heard_at;           /* "heardTime": of its pod */
};

/* A pod whose processes end themselves when their node has had no contact for so long: none of them
 * has ever run, nor will, without that.  Stays for as long as the pod. */
struct hf_fence_report {
	const char *ns, *pod, *uid; /* "namespace", "pod", "uid" */
	int64_t seconds;            /* "seconds" */
};

struct hf_device_health {
	const char *node; /* metadata.name */
	/*
	 * "observedTime": all that was to be learned on the node until then is in here.  It moves with
	 * each write, so with the heartbeat of at most six minutes at rest, and soon after a container
	 * that held a device has ended.
	 */
	hf_time observed_at;
	const char *boot_id;       /* "bootID": as in the Node's status.nodeInfo */
	const char *agent_version; /* "agentVersion" */
	const char *rules_hash;    /* "rulesHash" */
	/* The node as a whole: the worst of its devices, one that has Failed behind those that can be acted on;
	 * class, action and evidence are of those that make it so. */
	const char *state;       /* "state" */
	const char *cls;         /* "class" */
	const char *action;      /* "action" */
	hf_time evidence_at;     /* "evidenceTime": of their newest fault that acts; NONE: none */
	int64_t lost_records;    /* "lostRecords": kernel lines that were overwritten unread */
	int64_t dropped_devices; /* "droppedDevices": there was no room for */
	bool history_lost;       /* "historyLost": more was known in this boot */
	HF_LIST(struct hf_detector_report) detectors;
	HF_LIST(struct hf_device_report) devices; /* the node first, then by id */
	HF_LIST(struct hf_rank_report) ranks;     /* by pod and rank */
	HF_LIST(struct hf_fence_report) fences;   /* by pod; as many as ranks */
};

/* The object's status, to be put under "status" of a merge patch, which leaves nothing of the one
 * before: lists are replaced, and what no longer is becomes null. */
struct hf_json *hf_device_health_status(const struct hf_device_health *health);
/* The object without a status, for the create.  uid of the Node; NULL: it has no owner. */
struct hf_json *hf_device_health_object(const char *node, const char *node_uid);

/* Whatever can be read; fields of a wrong type count as absent, broken text has no fields.  Texts
 * and lists come from the arena.  Makes no tree of a text. */
void hf_device_health_read(struct hf_doc *doc, struct hf_arena *arena,
			   struct hf_device_health *ret_health);

/* "GpuReset" of "gpu-reset", into a buffer of HF_DEVICE_REASON_MAX bytes, and back (lower case with
 * dashes); cut where it is longer.  For reasons of conditions. */
#define HF_DEVICE_REASON_MAX 64
void hf_device_reason(const char *cls, char ret_reason[HF_DEVICE_REASON_MAX]);
void hf_device_class(const char *reason, char ret_class[HF_DEVICE_REASON_MAX]);

HF_END_DECLS

#endif
