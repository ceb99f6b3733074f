/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_REMEDIATION_H
#define HF_API_REMEDIATION_H

#include "base/arena.h"
#include "base/error.h"
#include "base/time.h"
#include "json/doc.h"
#include "json/fields.h"

HF_BEGIN_DECLS

/*
 * Remediation: one act that mends one node: the reset of devices, a reboot. Cluster-scoped, in
 * holdfast.dev/v1alpha1. The elected operator or a person creates the object; the spec never changes
 * but for `cancel`. The operator writes the status, and the actor (src/mend) the intent and the result
 * of the act. The texts of rung and phase are those of health/mend_steps.h; this module only carries
 * them.
 */

#define HF_REMEDIATION_KIND "Remediation"
#define HF_REMEDIATION_API_VERSION "holdfast.dev/v1alpha1"
/* The namespace of the actor's pods and of the Leases, and the account of these pods. */
#define HF_MEND_NAMESPACE "holdfast-mend"
#define HF_MEND_ACCOUNT "holdfast-mender"
/* The actor's pod of Remediation NAME is "mend-NAME". The admission policy compares the two names. */
#define HF_MEND_POD_PREFIX "mend-"
/* A Node with this annotation gets no acts of Remediations. See hf_paused for the values. */
#define HF_MEND_HOLD_ANNOTATION "holdfast.dev/hold"

/* Limits of the CRD's schema. */
#define HF_REMEDIATION_NODE_MAX 230
#define HF_REMEDIATION_NONCE_LEN 32
#define HF_REMEDIATION_DEVICES_MAX 16
#define HF_REMEDIATION_HOLDERS_MAX 16
#define HF_REMEDIATION_LABELS_MAX 16
#define HF_REMEDIATION_CONDITIONS_MAX 16
#define HF_REMEDIATION_TEXT_MAX 256    /* bytes of any text but messages */
#define HF_REMEDIATION_MESSAGE_MAX 512 /* bytes of any message */
#define HF_REMEDIATION_DEADLINE_DEFAULT 1800
/* "NODE-ATTEMPT", with the NUL. */
#define HF_REMEDIATION_NAME_MAX 254

struct hf_remediation_device {
	const char *id;   /* "id": PCI address */
	const char *uuid; /* "uuid" */
};

struct hf_remediation_spec {
	const char *node; /* "node"; never NULL */
	const char *rung; /* "rung"; never NULL */
	/* the devices to mend; empty: the act is for the whole node */
	HF_LIST(struct hf_remediation_device) devices;
	/* "fault": the fault that the act answers; cls NULL: a person asked for the act without a
	 * fault */
	struct {
		const char *cls, *text;
		int64_t code;
		hf_time at; /* HF_TIME_NONE: unknown */
	} fault;
	const char *boot_id; /* "bootID": the boot in which the fault was seen; NULL: any boot */
	int32_t attempt;     /* "attempt": the number of this act on the node, counted from 1 */
	const char *nonce;   /* "nonce": 32 hexadecimal digits; never NULL */
	const char *policy;  /* "policy": name of the HealthPolicy; NULL: none */
	/* "requestedBy": "policy", or the name of a user; NULL: unknown */
	const char *requested_by;
	/* "deadlineSeconds": the longest time from the approval to the proof */
	int32_t deadline_seconds;
	bool dry_run; /* "dryRun": check, and do nothing */
	/* "cancel": true: the act is not wanted any more. No other field of the spec may change. */
	bool cancel;
};

struct hf_remediation_condition {
	const char *type;   /* "type": Quarantined, Locked, JobsMoved, … */
	const char *status; /* "status": True, False or Unknown */
	const char *reason; /* "reason" */
	const char *message;
	hf_time since; /* "lastTransitionTime" */
};

/* A process that has a device open. */
struct hf_remediation_holder {
	int64_t pid;
	const char *comm; /* "comm": name of the program */
	/* "pod": NAMESPACE/NAME, or the pod's UID; NULL: a process of the host */
	const char *pod;
};

/* What the actor writes into the status. All times are by the node's clock. */
struct hf_remediation_act {
	const char *nonce;
	const char *actor; /* "actor": random id of the process that wrote startedAt */
	/* "startedAt": the intent to act. After this write no other actor performs this
	 * Remediation. HF_TIME_NONE: no actor has begun */
	hf_time started_at;
	/* "endedAt"; HF_TIME_NONE: the act has not ended, or the actor was lost */
	hf_time ended_at;
	const char *boot_id; /* "bootID" in which the actor acted */
	const char *tool;    /* "tool": nvidia-smi, amd-smi, logind, signal or sysrq */
	bool has_exit_code;
	int32_t exit_code; /* "exitCode" of the tool; 0: done */
	/* "message": the end of the tool's output, or why the actor did nothing */
	const char *message;
	/* "holders": processes that still had the devices open */
	HF_LIST(struct hf_remediation_holder) holders;
};

struct hf_remediation_status {
	/* "phase"; NULL: the operator has not handled the object yet */
	const char *phase;
	const char *message;
	const char *outcome; /* "outcome": the phase that follows Restoring; NULL: not decided */
	HF_LIST(struct hf_remediation_condition) conditions;
	/* "approval": when the operator allowed the act to begin; at HF_TIME_NONE: the act is not
	 * allowed yet */
	struct {
		hf_time at; /* "time", of the operator's clock */
		const char *boot_id, *node_version;
	} approval;
	struct hf_remediation_act act;
	/* "saved": what was changed on the node for the act and has to be put back */
	struct {
		/* "labels": the changed labels of the Node with their former values */
		HF_LIST(struct hf_field_pair) labels;
		/* "cordoned": the node was cordoned before; not present: nothing was changed */
		bool has_cordoned, cordoned;
		/* "persistenceMode": UUID to "on" or "off" */
		HF_LIST(struct hf_field_pair) persistence;
		/* "external": the object that was created for another controller, with the name of
		 * the node; kind NULL: none. ns NULL: the kind has no namespace */
		struct {
			const char *api_version, *kind, *ns;
		} external;
	} saved;
	/* "proof"; at HF_TIME_NONE: none */
	struct {
		const char *boot_id, *text;
		hf_time at;
	} proof;
};

struct hf_remediation {
	const char *name, *uid, *resource_version;
	hf_time created_at; /* HF_TIME_NONE: unknown */
	bool deleting;
	struct hf_remediation_spec spec;
	struct hf_remediation_status status;
};

/* Whether acts of this rung end the work on the node: then the node has the quarantine's taint and is empty before. As
 * hf_mend_disturbs_work of health/mend_steps.h; src/fleet/mend_rungs_test.c compares the two. */
bool hf_remediation_disturbs_work(const char *rung);

/* Prints the name of a node's Remediation: NODE-ATTEMPT. The CRD refuses any other name, so two
 * creators that choose the same attempt cannot both succeed. */
void hf_remediation_name(const char *node, int32_t attempt, char ret_name[HF_REMEDIATION_NAME_MAX]);

/* Builds the object for the create. spec->cancel is left out. */
struct hf_json *hf_remediation_object(const struct hf_remediation_spec *spec);
/* Builds the merge patch of the subresource "status". It replaces the whole stored status, and the
 * server refuses it if the object has changed since resource_version. */
struct hf_json *hf_remediation_status_patch(const char *resource_version,
					    const struct hf_remediation_status *status);
/* Builds the patch of the actor: status.phase (NULL: the phase stays) and status.act. With a
 * persistence_len above 0, status.saved.persistenceMode too. The server refuses the patch if the
 * object has changed since resource_version. */
struct hf_remediation_act_write {
	const char *resource_version;
	const char *phase;
	const struct hf_remediation_act *act;
	const struct hf_field_pair *persistence;
	size_t persistence_len;
};
struct hf_json *hf_remediation_act_patch(const struct hf_remediation_act_write *write);

/* The kubelet ends the actor's pod after this time. The actor's own deadlines are shorter. */
#define HF_MEND_POD_DEADLINE_SECONDS 900
/* The actor's pod. */
struct hf_remediation_pod {
	const char *name, *uid; /* name and UID of the Remediation, which owns the pod */
	const char *node, *nonce;
	const char *image;
	bool reboots;       /* rung reboot; else reset-device */
	bool arms_watchdog; /* with reboots: arm /dev/watchdog */
	/* for a reboot: the one method that the actor may use; NULL: every method */
	const char *only;
	/* for a reset: the diagnostic command after it; words_len 0: none */
	const char *const *words;
	size_t words_len;
	int64_t diagnostic_seconds; /* deadline of that command */
	int64_t deadline_seconds;   /* seconds until the kubelet ends the pod */
};
/* Builds the pod as the admission policy demands it (deploy/mend/policy.yaml), with the flags of
 * `holdfast mend-node` for the host's paths. */
struct hf_json *hf_remediation_pod_json(const struct hf_remediation_pod *pod);

/* Reads a Remediation strictly. HF_E_INVALID: err names the first field of a wrong type. Such a
 * field never counts as absent, because an unreadable intent must not look like no intent. Unknown
 * fields are ignored. Texts and lists come from the arena. */
int hf_remediation_read(struct hf_doc *doc, struct hf_arena *arena,
			struct hf_remediation *ret_remediation, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
