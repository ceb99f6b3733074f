/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_API_HEALTH_POLICY_H
#define HF_API_HEALTH_POLICY_H

#include "base/arena.h"
#include "base/error.h"
#include "base/time.h"
#include "json/doc.h"
#include "json/fields.h"

HF_BEGIN_DECLS

/*
 * HealthPolicy: what Holdfast may do about nodes whose devices fail. Cluster-scoped, in
 * holdfast.dev/v1alpha1. Users write the spec; only the elected operator writes the status. The
 * texts are those of health/types.h and health/fleet.h; this module only carries them.
 */

#define HF_HEALTH_POLICY_KIND "HealthPolicy"
#define HF_HEALTH_POLICY_API_VERSION "holdfast.dev/v1alpha1"

/* The taint that Holdfast puts on a Node, and the annotation that records why: JSON of struct
 * hf_quarantine_mark. */
#define HF_QUARANTINE_TAINT "holdfast.dev/device"
#define HF_QUARANTINE_ANNOTATION "holdfast.dev/quarantine"
/* On a Node: Holdfast does nothing to this node. On a HealthPolicy: Holdfast does nothing under
 * this policy. See hf_paused for the values. */
#define HF_PAUSED_ANNOTATION "holdfast.dev/paused"

/* Limits of the CRD's schema. */
#define HF_HEALTH_POLICY_TAINTS_MAX 16
/* The status remembers this many quarantines, each for the longer of the two windows (quarantines
 * and breaker). */
#define HF_HEALTH_POLICY_RECENT_MAX 128
/* Most nodes that the status lists by name; further nodes are only counted. */
#define HF_HEALTH_POLICY_NODES_MAX 64
#define HF_HEALTH_POLICY_TEXT_MAX 1024
#define HF_HEALTH_POLICY_WINDOWS_MAX 16
#define HF_HEALTH_POLICY_WORDS_MAX 16 /* of the diagnostic command */

/* A limit as a number of nodes and as a percentage; -1: not set. If both are set, the lower result
 * is the limit. */
struct hf_policy_limit {
	int32_t count, percent;
	bool at_least_one;
};

/* A window in which acts may begin, every week at the same time in UTC. */
struct hf_policy_window {
	uint8_t days; /* bit 0: Sunday */
	/* Minutes of the day. from > to: the window ends on the next day. */
	int32_t from_minute, to_minute;
};

/* "mend" of the spec: what mode remediate may do. Each single act is a struct hf_remediation. */
struct hf_policy_mend {
	/* the policy has the section `mend`; false: mode remediate performs no act */
	bool allowed;
	/* true: no act begins, and an approved act that has not begun loses the approval */
	bool hold;
	bool resets, reboots, plugins, externals; /* the rungs that are allowed */
	/* before a reboot, /dev/watchdog is armed: it resets a machine that hangs */
	bool watchdog;
	int32_t at_once; /* the most acts that may be under way at the same time */
	/* seconds from the approval of an act to the proof that the node is well */
	int32_t deadline;
	hf_time settle;     /* the devices must have no fault for this time after a reset */
	size_t windows_len; /* 0: at any time */
	struct hf_policy_window windows[HF_HEALTH_POLICY_WINDOWS_MAX];
	/* "diagnostic": runs on the node after a reset; words_len 0: none */
	const char *words[HF_HEALTH_POLICY_WORDS_MAX];
	size_t words_len;
	int32_t diagnostic_seconds; /* deadline of that command */
	/* "external.template": the template of the object that rung external creates; kind NULL: none */
	struct {
		const char *api_version, *kind, *name;
		const char *ns; /* NULL: the kind has no namespaces */
	} external;
	/* "external.webhook": what rung external calls instead; url NULL: none */
	struct {
		const char *url;  /* http:// or https://, without control characters */
		hf_time timeout;  /* of an attempt */
		int32_t attempts; /* at least 1 */
	} webhook;
};

struct hf_health_policy_spec {
	const char *mode; /* observe, quarantine or remediate; never NULL */
	bool paused;
	/* Which of the three label selectors the spec has. The caller reads the selectors
	 * themselves from the document. */
	bool has_selector, has_exclude, has_pod_selector;
	struct hf_policy_limit unavailable;
	struct hf_policy_limit quarantines;
	hf_time quarantine_window;
	/* label key of a failure domain; NULL: no limit per domain */
	const char *domain_key;
	int32_t domain_max;
	int32_t job_max; /* 0: no limit */
	hf_time job_window;
	int32_t spares_min;
	struct hf_policy_limit breaker;
	hf_time breaker_window;
	/* if a person sets a value above the epoch of the status, the breaker closes */
	int64_t breaker_epoch;
	/* "quarantine": Device: failed devices are taken out of use alone, where that is possible */
	bool quarantine_devices;
	bool drain_evicts; /* drain.mode immediate */
	hf_time drain_grace, drain_timeout;
	/* "drain.latePods": if only devices of a node are out of use, and its device plugin still offers one of them, so
	 * many pods that came later and were given it are evicted before the node gets the taint */
	int32_t late_pods;
	hf_time stale_after;
	/* keys of taints that mark a node as unavailable */
	const char *taints[HF_HEALTH_POLICY_TAINTS_MAX];
	size_t taints_len;
	struct hf_policy_mend mend;
};

/* A quarantine that the operator began. `done` is set once the Node has its mark. */
struct hf_policy_recent {
	/* the quarantined node, and the job with the pods that made the quarantine necessary; job
	 * "": no job */
	const char *node, *job;
	hf_time at;
	bool done;
	/* when a person removed the taint of this quarantine; HF_TIME_NONE: no person did */
	hf_time off;
};

/* Facts that the operator keeps in the status for later decisions. */
struct hf_health_policy_memory {
	bool breaker_open;
	int64_t breaker_epoch;
	hf_time breaker_opened_at, breaker_closed_at; /* HF_TIME_NONE: never */
	HF_LIST(struct hf_policy_recent) recent;      /* oldest first */
};

/* Reads a policy's spec and fills in the defaults. HF_E_INVALID: err names the first wrong or
 * unknown field. Texts come from the arena. */
int hf_health_policy_read(struct hf_doc *doc, struct hf_arena *arena,
			  struct hf_health_policy_spec *ret_spec, struct hf_error *err)
	HF_MUST_CHECK;
/* Reads the status. Fields that cannot be read count as absent, but a breaker that cannot be read
 * counts as open. */
void hf_health_policy_read_memory(struct hf_doc *doc, struct hf_arena *arena,
				  struct hf_health_policy_memory *ret_memory);

struct hf_policy_node {
	const char *name, *state, *cls;
	const char *answer; /* nothing, go, would, held or waits */
	/* what is planned for the node: a quarantine, a release or an action; NULL: nothing */
	const char *next;
	const char *why;
	bool quarantined;
	int32_t pods; /* pods that hold a failed device */
};

struct hf_health_policy_status {
	int64_t generation;
	const char *mode;
	const char *problem; /* why the spec is invalid; NULL: the policy is in force */
	struct hf_health_policy_memory memory;
	const char *breaker_message; /* why the breaker is open; NULL: it is closed */
	int32_t selected, unhealthy, quarantined, unavailable, silent;
	int32_t unavailable_left, quarantines_left; /* -1: no limit */
	/* the first HF_HEALTH_POLICY_NODES_MAX are written */
	HF_LIST(struct hf_policy_node) nodes;
};
/* Builds the object for "status" of a merge patch. before: the stored status, for the transition
 * times of conditions. */
struct hf_json *hf_health_policy_status_json(const struct hf_health_policy_status *status,
					     const struct hf_json *before, hf_time now);

/* A quarantine as the Node's annotation records it. */

struct hf_quarantine_mark {
	const char *policy; /* name of the policy that ordered the quarantine */
	const char *cls;
	hf_time at;
	int64_t epoch; /* the breaker's epoch */
	/* "scope": Device: the failed devices are out of use, and the Node has no taint */
	bool devices;
	/* when the operator saw that a person had removed the taint; HF_TIME_NONE: no person did */
	hf_time off;
	/* "late": how many pods the operator has begun to evict from the node's failed devices although they came after the
	 * quarantine, counted while `devices`. "latePod": UID of the last one; NULL: none. */
	int32_t late;
	const char *late_pod;
};
/* A quarantine for one Remediation alone has this prefix and the name of the Remediation in place of a policy's
 * name. */
#define HF_MEND_MARK_PREFIX "remediations/"
/* Returns the name of the Remediation that the quarantine serves; NULL: the quarantine is of a policy. policy: of the
 * mark; NULL: unknown. */
const char *hf_quarantine_act(const char *policy);
struct hf_json *hf_quarantine_mark_json(const struct hf_quarantine_mark *mark);
/* Reads the text of the annotation. Returns false if the text is not a mark of Holdfast. */
bool hf_quarantine_mark_read(const char *text, struct hf_arena *arena,
			     struct hf_quarantine_mark *ret_mark);

struct hf_node_taint {
	const char *key, *value, *effect;
};
/* The facts about a Node that decide whether it can be quarantined. */
struct hf_node_marks {
	const char *boot_id; /* NULL: unknown */
	hf_time created_at;  /* when the API server created the Node; 0: unknown */
	bool ready, unschedulable, paused;
	bool held;              /* annotation holdfast.dev/hold of api/remediation.h */
	const char *quarantine; /* text of the annotation; NULL: none */
	HF_LIST(struct hf_node_taint) taints;
	HF_LIST(struct hf_field_pair) labels;
};
/* True if the value of this annotation pauses Holdfast. Every value but "false" does. NULL (no
 * annotation) does not. */
bool hf_paused(const char *annotation);
void hf_node_marks_read(struct hf_doc *doc, struct hf_arena *arena,
			struct hf_node_marks *ret_marks);
/* Builds the merge patch that puts Holdfast's taint and mark on the Node; mark NULL: that removes
 * them. A mark of single devices comes without a taint. The patch keeps all other taints, and the server
 * refuses it if the Node has changed since doc was read. Returns NULL if the document cannot be read as a
 * whole. */
struct hf_doc *hf_node_quarantine_patch(struct hf_doc *node, const struct hf_quarantine_mark *mark,
					hf_time now);
/* Builds the merge patch that writes the mark alone and leaves the taints. */
struct hf_doc *hf_node_mark_patch(struct hf_doc *node, const struct hf_quarantine_mark *mark);
/* Tells whether the Node has Holdfast's taint, with any value. */
bool hf_node_has_quarantine_taint(const struct hf_node_marks *marks);

/* Builds the Eviction of a pod, for this UID only. */
struct hf_doc *hf_eviction(const char *ns, const char *name, const char *uid);

HF_END_DECLS

#endif
