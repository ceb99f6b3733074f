/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_DEVICE_ROLLOUT_H
#define HF_API_DEVICE_ROLLOUT_H

#include "api/health_policy.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/time.h"
#include "json/doc.h"
#include "json/fields.h"

HF_BEGIN_DECLS

/*
 * DeviceRollout: a change of a driver, a device plugin or a node label that goes over the nodes in waves.
 * Cluster-scoped, in holdfast.dev/v1alpha1. A person creates the object; the spec never changes but for
 * `paused` and `cancel`. Only the elected operator writes the status. The texts of the phases are those of
 * health/rollout_node.h and health/rollout_plan.h; this module only carries them.
 */

#define HF_ROLLOUT_KIND "DeviceRollout"
#define HF_ROLLOUT_API_VERSION "holdfast.dev/v1alpha1"
/* This finalizer keeps a deleted DeviceRollout until its cordons and Leases are put back. */
#define HF_ROLLOUT_FINALIZER "holdfast.dev/rollout"
/* On a Node: the DeviceRollout that has cordoned the node. */
#define HF_ROLLOUT_ANNOTATION "holdfast.dev/rollout"
/* On a Node: JSON of struct hf_rollout_mark, written before the node is changed. A dot and a hash of what changes follow
 * (hf_rollout_mark_key), so that a rollout of a driver does not replace the mark of a rollout of a label. */
#define HF_ROLLOUT_MARK_ANNOTATION "holdfast.dev/rollout-change"
#define HF_ROLLOUT_MARK_PREFIX HF_ROLLOUT_MARK_ANNOTATION "."
#define HF_ROLLOUT_MARK_KEY_MAX 64 /* bytes, with the final NUL */
/* On a Node: JSON of struct hf_canary_history (api/canary.h): how long a canary took on the node. */
#define HF_ROLLOUT_CANARY_ANNOTATION "holdfast.dev/rollout-canary"

/* Limits of the CRD's schema. */
#define HF_ROLLOUT_WAVES_MAX 16
#define HF_ROLLOUT_AT_ONCE_MAX 64
#define HF_ROLLOUT_FAILURES_MAX 64
#define HF_ROLLOUT_NODES_MAX 320 /* entries of status.nodes */
#define HF_ROLLOUT_NEWEST_MAX 64 /* of these entries: proved or rolled back */
#define HF_ROLLOUT_RESOURCES_MAX 16
#define HF_ROLLOUT_CONDITIONS_MAX 8
#define HF_ROLLOUT_TEXT_MAX 256    /* bytes of any text but messages */
#define HF_ROLLOUT_MESSAGE_MAX 512 /* bytes of any message */

/* A wave ends when so many of the selected nodes have been handled, by all waves together: a number of
 * nodes, or a percentage of them; the other member is -1. */
struct hf_rollout_wave {
	int32_t count, percent;
};

struct hf_rollout_spec {
	/* "change": exactly one of the two; the name or key of the other is NULL */
	struct {
		const char *ns, *name;
	} daemon_set;
	struct {
		const char *key, *value;
	} label;
	bool has_selector; /* "nodeSelector"; the caller reads the selector from the document */
	struct hf_rollout_wave waves[HF_ROLLOUT_WAVES_MAX];
	size_t waves_len;     /* never 0 */
	const char *group_by; /* label key; NULL: none */
	int32_t at_once;
	hf_time soak;
	const char *empty; /* Save, Wait or Never; never NULL */
	hf_time empty_for;
	struct {
		hf_time within;             /* from the change to the proof */
		const char *driver_version; /* NULL: any */
		HF_LIST(const char *) resources;
		/* "canary": a job on each changed node; api/canary.h makes it from the template of the
		 * document */
		struct {
			bool wanted;
			const char *api_version, *kind, *ns; /* of the template */
			hf_time within;                      /* "seconds" */
			int32_t slower_percent;              /* -1: times are not compared */
		} canary;
	} proof;
	bool rolls_back; /* "onFailure": Rollback */
	int32_t failures_max;
	struct hf_policy_window windows[HF_HEALTH_POLICY_WINDOWS_MAX];
	size_t windows_len;
	bool paused, cancel;
};

/* How long a canary took; 0: unknown. */
struct hf_rollout_times {
	int64_t step_us; /* "stepMicros": own work of the slowest rank in a step */
	int64_t run_ms;  /* "runMillis": the whole job */
};

/* An entry of status.nodes. */
struct hf_rollout_node {
	const char *name;
	const char *phase;    /* of health/rollout_node.h; never NULL */
	const char *outcome;  /* the phase that follows Restoring; NULL: not decided */
	hf_time since;        /* when the phase began */
	hf_time changed_at;   /* "changedTime"; HF_TIME_NONE: not changed yet */
	const char *previous; /* value of the label before the change; NULL: none, or no label */
	bool cordoned_by_us;
	/* "wasWell": the node was changed and had not failed, when it was to be taken back */
	bool was_well;
	/* "wasAway": the node could not have been proved then: it was not Ready, or its agent knew nothing of it */
	bool was_away;
	int32_t tries; /* how often the rollout has begun with the node */
	struct {
		HF_LIST(struct hf_field_pair) resources; /* allocatable */
		const char *driver_version, *boot_id;    /* NULL: unknown */
		struct hf_rollout_times canary;
	} before;
	/* The newest canary of the node. */
	struct {
		const char *job; /* "namespace/name"; NULL: none yet */
		struct hf_rollout_times times;
		bool failed;
	} canary;
	const char *message;
};

/* Numbers of all changed nodes, or of all unchanged nodes. */
struct hf_rollout_evidence {
	int64_t nodes, device_minutes, faults;
	int64_t restarts;   /* of jobs, caused by devices */
	int64_t step_nodes; /* nodes with ranks that are compared with ranks on the other nodes */
};

struct hf_rollout_condition {
	const char *type;   /* "type": Progressing, Halted, RolledBack, Accepted */
	const char *status; /* "status": True, False or Unknown */
	const char *reason, *message;
	hf_time since; /* "lastTransitionTime" */
};

struct hf_rollout_status {
	const char *phase; /* NULL: the operator has not handled the object yet */
	const char *message;
	int32_t wave;       /* the wave under way, counted from 1; 0: none yet */
	hf_time started_at; /* "startedTime"; HF_TIME_NONE: not yet */
	hf_time soak_since; /* "soakSince": since when the wave soaks; HF_TIME_NONE: it does not */
	/* controller-revision-hash of the DaemonSet's revisions; NULL: unknown, or a label */
	const char *target_revision, *from_revision;
	struct {
		int32_t selected, changed, failed, skipped;
	} counts;
	struct hf_rollout_evidence changed, unchanged;
	/* "stepPermille": a rank's own work in a step on changed nodes, in thousandths of that of ranks of the
	 * same jobs on unchanged nodes; 0: unknown */
	int64_t step_permille;
	HF_LIST(struct hf_rollout_node) nodes;
	HF_LIST(struct hf_rollout_condition) conditions;
};

struct hf_rollout {
	const char *name, *uid, *resource_version;
	hf_time created_at; /* HF_TIME_NONE: unknown */
	bool deleting;
	bool has_finalizer;
	struct hf_rollout_status status;
};

/* Reads all but the spec. HF_E_INVALID: err names the first field of a wrong type; such a field never
 * counts as absent, because an unreadable phase must not look like none. Texts and lists come from the
 * arena. */
int hf_rollout_read(struct hf_doc *doc, struct hf_arena *arena, struct hf_rollout *ret_rollout,
		    struct hf_error *err) HF_MUST_CHECK;
/* Reads the spec strictly and fills in the defaults. HF_E_INVALID: err names the first wrong or unknown
 * field. */
int hf_rollout_spec_read(struct hf_doc *doc, struct hf_arena *arena,
			 struct hf_rollout_spec *ret_spec, struct hf_error *err) HF_MUST_CHECK;

/* Builds the merge patch of the subresource "status". It replaces the whole stored status, and the
 * server refuses it if the object has changed since resource_version. */
struct hf_json *hf_rollout_status_patch(const char *resource_version,
					const struct hf_rollout_status *status);

/* What a rollout writes on a Node before it changes the node. */
struct hf_rollout_mark {
	const char *rollout, *uid; /* name and UID of the DeviceRollout */
	hf_time at;
	/* value of the label before; NULL: the node had no such label, or the change is no label */
	const char *previous;
	const char *pod;  /* UID of the DaemonSet's pod before; NULL: there was none */
	bool rolled_back; /* the rollout has taken its change back */
};
/* Writes the key of the annotation into ret_key and returns it. Rollouts of the same DaemonSet or of the same label have
 * the same key. */
const char *hf_rollout_mark_key(const struct hf_rollout_spec *spec,
				char ret_key[HF_ROLLOUT_MARK_KEY_MAX]);
struct hf_json *hf_rollout_mark_json(const struct hf_rollout_mark *mark);
/* Reads the text of the annotation. Returns false if the text is no mark. */
bool hf_rollout_mark_read(const char *text, struct hf_arena *arena,
			  struct hf_rollout_mark *ret_mark);

HF_END_DECLS

#endif
