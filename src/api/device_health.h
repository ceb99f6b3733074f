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
 * DeviceHealth: what a node's agent knows about the node's accelerators. There is one object for
 * each node, cluster-scoped, in holdfast.dev/v1alpha1, with the node's name. The agent creates it,
 * with the Node as its owner, so Kubernetes deletes it with the Node. Only the agent writes its
 * status, which is a subresource.
 *
 * The texts are those of health/types.h: states "Healthy", classes "gpu-reset", actions
 * "reset-device", detectors "xid", kinds "gpu". This module only carries them. All times are of the
 * node's clock, in microseconds, like the times in the statuses of the node's pods.
 */

#define HF_DEVICE_HEALTH_GROUP "holdfast.dev"
#define HF_DEVICE_HEALTH_VERSION "v1alpha1"
#define HF_DEVICE_HEALTH_API_VERSION HF_DEVICE_HEALTH_GROUP "/" HF_DEVICE_HEALTH_VERSION
#define HF_DEVICE_HEALTH_KIND "DeviceHealth"
#define HF_DEVICE_HEALTH_PLURAL "devicehealths"

/* The condition that the agent writes on a pod which holds a failed device.
 *   status    False; True once the device works again and the pod still holds it
 *   reason    the class, converted by hf_device_reason
 *   message   the device's id, a blank, and an explanation
 * A pod whose devices never failed has no such condition. */
#define HF_POD_COND_DEVICE_HEALTHY "holdfast.dev/DeviceHealthy"

/* An annotation of the operator: the end of the last act that mended this node, with a proof, by the
 * operator's clock; then a blank and the name of its Remediation. */
#define HF_MENDED_ANNOTATION "holdfast.dev/mended"

/* An annotation of the operator: UUIDs (or PCI addresses) of failed devices that no pod can be given any more, with
 * blanks between. Other devices of the node can be used. */
#define HF_DEVICES_OUT_ANNOTATION "holdfast.dev/devices-out"

/* An annotation of the operator: it asks the agent to look at the devices and to report. The value has
 * the name of a Remediation, the end of its act, and for how many seconds the agent waits before it
 * looks. Each new value is one request; the value proves nothing. */
#define HF_REPORT_ANNOTATION "holdfast.dev/report"
/* Most seconds of that wait; as the longest spec.mend.settleSeconds of a HealthPolicy. */
#define HF_REPORT_SECONDS_MAX 3600

/* True if the stored request is the wanted one, or asks for a later report. Two leaders that know different versions of a
 * policy would else replace each other's request without a pause. health NULL: there is no report. */
bool hf_report_is_asked(struct hf_doc *health, const char *wanted);

/* Limits of the CRD's schema. A writer leaves out entries beyond them, the mildest first, and
 * counts the devices it leaves out. */
/* the 64 devices that the agent knows, and the node */
#define HF_DEVICE_HEALTH_DEVICES_MAX 65
#define HF_DEVICE_HEALTH_FAULTS_MAX 8 /* per device */
/* per device; a GPU has at most seven instances */
#define HF_DEVICE_HEALTH_HOLDERS_MAX 16
#define HF_DEVICE_HEALTH_DETECTORS_MAX 32
#define HF_DEVICE_HEALTH_RANKS_MAX 128 /* per node; a kubelet runs at most 110 pods */
#define HF_DEVICE_HEALTH_TEXT_MAX 256  /* bytes of any text */

struct hf_detector_report {
	const char *name;  /* "name": "xid", "nvml" */
	const char *state; /* "state": On, Off, Stale */
	/* "reason": why the detector is Off or Stale, as text for people; NULL: it is On */
	const char *reason;
	hf_time since; /* "since" */
};

struct hf_device_fault {
	const char *detector; /* "detector" */
	int64_t code;         /* "code": an Xid, or a number that another detector has chosen */
	int64_t subcode;      /* "subcode"; -1: none */
	/* "severity": fatal, non-fatal, corrected; NULL: unknown */
	const char *severity;
	const char *cls;    /* "class" */
	const char *action; /* "action" */
	/* "unit": the part of the device, or the port above the device; NULL: none */
	const char *unit;
	/* "line": the evidence, such as the kernel's line; NULL: none */
	const char *line;
	hf_time first; /* "firstTime" */
	hf_time last;  /* "lastTime": when the fault was last seen */
	int64_t count; /* "count" */
	bool acts;     /* "active": the fault counts against the device now */
};

/* A container that holds a device, or held it. The agent keeps a holder in the list for an hour
 * after the container's end, because the operator asks only after a pod has failed. */
struct hf_device_holder {
	const char *ns, *pod;  /* "namespace", "pod" */
	const char *uid;       /* "uid": the UID of the pod; NULL: the agent does not know it */
	const char *container; /* "container" */
	const char *resource;  /* "resource": "nvidia.com/gpu", or "claim:NAME/REQUEST" */
	/* "resourceID": the device's id from its device plugin, or "driver/pool/device" */
	const char *resource_id;
	/* "until": since when the kubelet does not list the container any more; HF_TIME_NONE: the
	 * container holds the device */
	hf_time until;
	bool of_node; /* "ofNode": the pod is of a DaemonSet or static, and does not leave the node */
};

struct hf_device_report {
	/* "id": a PCI address or port; "" for the node, which is written as "node" */
	const char *id;
	const char *uuid; /* "uuid"; NULL: none */
	const char *kind; /* "kind": node, gpu, switch, port */
	/* "resource" under which the kubelet allocates the device; NULL: unknown */
	const char *resource;
	/* "resourceID"; NULL: unknown, or the device is allocated in parts */
	const char *resource_id;
	const char *state; /* "state" */
	/* "class": the most severe of the active faults; NULL or "none": no active fault */
	const char *cls;
	const char *action; /* "action" that the faults require; NULL: none */
	hf_time since;      /* "since": when the device entered its present state */
	/* "holdUntil": until when the device is kept out of use; HF_TIME_NONE: the device is not
	 * kept out */
	hf_time hold_until;
	int64_t generation; /* "generation": grows with each change of the state */
	HF_LIST(struct hf_device_fault) faults;
	HF_LIST(struct hf_device_holder) holders;
};

/*
 * A training process that reports its steps to the agent. The agent writes the report when a fact
 * changes that the operator decides on: the process appeared or disappeared, its steps stopped or
 * began to advance, or its own work per step changed by 5 %. `step` is as of that moment.
 */
#define HF_RANK_ADVANCING "Advancing"
/* the process reports, but finished no step for a while */
#define HF_RANK_STALLED "Stalled"
#define HF_RANK_SILENT "Silent" /* the agent has received no report of the process for 30 s */
struct hf_rank_report {
	const char *ns, *pod, *uid; /* "namespace", "pod", "uid" */
	int64_t rank;               /* "rank" in the job; -1: unknown */
	/* "group": ranks are compared only inside of a group; NULL: none */
	const char *group;
	const char *state;   /* "state" */
	int64_t step, total; /* "step", "totalSteps"; 0: unknown */
	int64_t own_us;      /* "ownMicros": median of a step's own work; 0: not yet known */
	hf_time advanced_at; /* "advancedTime": when the process's last step ended */
	hf_time heard_at;    /* "heardTime": when the agent received the last report */
};

/* A fenced pod: its processes end themselves once their node has had no contact for `seconds`. No
 * process of the pod runs without this fence. The report stays as long as the pod. */
struct hf_fence_report {
	const char *ns, *pod, *uid; /* "namespace", "pod", "uid" */
	int64_t seconds;            /* "seconds" */
};

/* The program of a pod under `holdfast exec`. Only the agent writes this record. */
#define HF_DEVICE_HEALTH_PROCESSES_MAX 128 /* per node */
#define HF_DEVICE_HEALTH_MESSAGE_MAX 512   /* bytes of "message" */
struct hf_process_report {
	const char *ns, *pod, *uid; /* "namespace", "pod", "uid" */
	const char *job;            /* "job": the UID of the pod's job */
	/* "generation", "attempt" of the running process, or of the last one; -1: absent */
	int64_t generation, attempt;
	int64_t ordinal;          /* "ordinal": how many processes this exec has started so far */
	const char *phase;        /* "phase": Waiting, Running, Ended, Down */
	int64_t code;             /* "code": 0 to 255; -1: absent */
	int64_t signal;           /* "signal": 1 to 64; -1: absent */
	const char *cause;        /* "cause": one word; NULL: none */
	const char *message;      /* "message": what the program printed last; NULL: none */
	int64_t step, saved_step; /* "step", "savedStep"; 0: unknown */
	int64_t save_ms; /* "saveMillis": of the last save that exec asked for; 0: unknown */
	hf_time at;      /* "time": when exec told the phase; HF_TIME_NONE: unknown */
};

struct hf_device_health {
	const char *node; /* metadata.name */
	/*
	 * "observedTime": the object contains everything that the agent could learn up to this
	 * time. Each write moves it: the heartbeat, at most six minutes apart, and a write soon
	 * after a container that held a device has ended.
	 */
	hf_time observed_at;
	/* "driverTime": when the agent asked the driver's library the last question that the library
	 * answered; HF_TIME_NONE: the agent asks no such library, or had no answer yet */
	hf_time driver_at;
	/* "driverVersion": of the driver that answers the library; "libraryVersion": of the library, in the
	 * form of the driver's versions; "moduleVersion": of the loaded kernel module; "firmwareVersion":
	 * of the firmware that the GPUs run. NULL: unknown. On a well node all are equal. */
	const char *driver_version, *library_version, *module_version, *firmware_version;
	const char *boot_id;       /* "bootID", equal to the Node's status.nodeInfo */
	const char *agent_version; /* "agentVersion" */
	const char *rules_hash;    /* "rulesHash" */
	/* The node as a whole: the state of its worst device. A Failed device ranks behind devices
	 * for which an action exists. class, action and evidenceTime are of the devices with that
	 * state. */
	const char *state;  /* "state" */
	const char *cls;    /* "class" */
	const char *action; /* "action" */
	/* "evidenceTime": when the newest active fault was seen; HF_TIME_NONE: no fault is
	 * active */
	hf_time evidence_at;
	/* "lostRecords": kernel lines that were overwritten before the agent read them */
	int64_t lost_records;
	/* "droppedDevices": devices beyond HF_DEVICE_HEALTH_DEVICES_MAX */
	int64_t dropped_devices;
	/* "historyLost": the agent lost earlier facts of this boot */
	bool history_lost;
	/* Of HF_MENDED_ANNOTATION, by the operator's clock; HF_TIME_NONE: no act mended the node. */
	hf_time mended_at;
	/* Text of HF_DEVICES_OUT_ANNOTATION; NULL: no such annotation. */
	const char *devices_out;
	HF_LIST(struct hf_detector_report) detectors;
	/* the entry of the node itself comes first, the devices follow in the order of their ids */
	HF_LIST(struct hf_device_report) devices;
	HF_LIST(struct hf_rank_report) ranks; /* sorted by pod and rank */
	/* sorted by pod; at most HF_DEVICE_HEALTH_RANKS_MAX */
	HF_LIST(struct hf_fence_report) fences;
	HF_LIST(struct hf_process_report) processes;
};

/* Builds the object for "status" of a merge patch. The patch replaces the whole stored status: it
 * names every list, and sets members without a value to null. */
struct hf_json *hf_device_health_status(const struct hf_device_health *health);
/* Builds the object for the create, without a status. node_uid: the UID of the Node that owns the
 * object; NULL: the object gets no owner. */
struct hf_json *hf_device_health_object(const char *node, const char *node_uid);
/* Builds the merge patch that writes an annotation; text NULL: that removes it. The guard is the UID: the agent
 * writes the same object at any time, and the annotation depends on none of its fields. */
struct hf_doc *hf_device_health_note(struct hf_doc *health, const char *key, const char *text);

/* Reads a DeviceHealth without building a tree. Fields of a wrong type count as absent; a document
 * that cannot be parsed has no fields. Texts and lists come from the arena. */
void hf_device_health_read(struct hf_doc *doc, struct hf_arena *arena,
			   struct hf_device_health *ret_health);

/* Whether the annotation HF_DEVICES_OUT_ANNOTATION names the device: no pod can be given it. */
bool hf_device_is_withheld(const struct hf_device_health *health,
			   const struct hf_device_report *device);

/* Convert a class to the reason of a condition ("gpu-reset" to "GpuReset") and back. The buffers
 * have HF_DEVICE_REASON_MAX bytes; a longer text is cut. */
#define HF_DEVICE_REASON_MAX 64
void hf_device_reason(const char *cls, char ret_reason[HF_DEVICE_REASON_MAX]);
void hf_device_class(const char *reason, char ret_class[HF_DEVICE_REASON_MAX]);

HF_END_DECLS

#endif
