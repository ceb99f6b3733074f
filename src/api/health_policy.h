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
 * HealthPolicy: what may be done about nodes whose devices fail, cluster-scoped, in
 * holdfast.dev/v1alpha1.  People write the spec, the elected operator alone the status.  The words
 * are those of the device brain (health/types.h, health/fleet.h); this module only carries them.
 */

#define HF_HEALTH_POLICY_KIND "HealthPolicy"
#define HF_HEALTH_POLICY_API_VERSION "holdfast.dev/v1alpha1"

/* What we put on a Node, and the annotation that says so: JSON, see struct hf_quarantine_mark. */
#define HF_QUARANTINE_TAINT "holdfast.dev/device"
#define HF_QUARANTINE_ANNOTATION "holdfast.dev/quarantine"
/* "true" on a Node: nothing is done to it; on a HealthPolicy: under it nothing is done. */
#define HF_PAUSED_ANNOTATION "holdfast.dev/paused" /* see hf_paused */

/* As the schema of the CRD has them. */
#define HF_HEALTH_POLICY_TAINTS_MAX 16
/* Quarantines remembered, each within the longer of the two windows. */
#define HF_HEALTH_POLICY_RECENT_MAX 128
/* Nodes that a status tells of; the rest is counted. */
#define HF_HEALTH_POLICY_NODES_MAX 64
#define HF_HEALTH_POLICY_TEXT_MAX 1024

/* -1: none; both: the lower one counts. */
struct hf_policy_limit {
	int32_t count, percent;
	bool at_least_one;
};

struct hf_health_policy_spec {
	const char *mode; /* observe, quarantine or remediate; never NULL */
	bool paused;
	/* selector and exclude are read by who matches them: whether they are there. */
	bool has_selector, has_exclude, has_pod_selector;
	struct hf_policy_limit unavailable;
	struct hf_policy_limit quarantines;
	hf_time quarantine_window;
	const char *domain_key; /* NULL: none */
	int32_t domain_max;
	int32_t job_max; /* 0: no limit */
	hf_time job_window;
	int32_t spares_min;
	struct hf_policy_limit breaker;
	hf_time breaker_window;
	int64_t breaker_epoch; /* above that of the status: a person closes it */
	bool drain_evicts;     /* drain.mode immediate */
	hf_time drain_grace, drain_timeout;
	hf_time stale_after;
	const char *taints[HF_HEALTH_POLICY_TAINTS_MAX]; /* keys that say a node is out */
	size_t taints_len;
};

/* A quarantine that was begun, and is done when the Node has its mark. */
struct hf_policy_recent {
	const char *node, *job; /* job "": none */
	hf_time at;
	bool done;
	hf_time off; /* a person took the taint off; NONE: nobody did */
};

/* What the status keeps between decisions. */
struct hf_health_policy_memory {
	bool breaker_open;
	int64_t breaker_epoch;
	hf_time breaker_opened_at, breaker_closed_at; /* or NONE */
	HF_LIST(struct hf_policy_recent) recent;      /* the oldest first */
};

/* Spec of a policy, its defaults filled in.  HF_E_INVALID: err names the first field that is wrong,
 * unknown ones included.  Texts come from the arena. */
int hf_health_policy_read(struct hf_doc *doc, struct hf_arena *arena,
			  struct hf_health_policy_spec *ret_spec, struct hf_error *err)
	HF_MUST_CHECK;
/* What cannot be read counts as absent; a breaker that cannot be read is open. */
void hf_health_policy_read_memory(struct hf_doc *doc, struct hf_arena *arena,
				  struct hf_health_policy_memory *ret_memory);

struct hf_policy_node {
	const char *name, *state, *cls;
	const char *answer; /* nothing, go, would, held, waits */
	const char *next;   /* quarantine, release, an action…; NULL: nothing */
	const char *why;
	bool quarantined;
	int32_t pods; /* that hold what has failed */
};

struct hf_health_policy_status {
	int64_t generation;
	const char *mode;
	const char *problem; /* of the spec; NULL: it is the one in force */
	struct hf_health_policy_memory memory;
	const char *breaker_message; /* NULL: it is closed */
	int32_t selected, unhealthy, quarantined, unavailable, silent;
	int32_t unavailable_left, quarantines_left; /* -1: no limit */
	HF_LIST(struct hf_policy_node) nodes;       /* at most NODES_MAX are written */
};
/* The status, to be put under "status"; before: the stored one, for times of conditions. */
struct hf_json *hf_health_policy_status_json(const struct hf_health_policy_status *status,
					     const struct hf_json *before, hf_time now);

/* --- what is on a Node -------------------------------------------------------------------------- */

struct hf_quarantine_mark {
	const char *policy; /* the name of the one it was done under */
	const char *cls;
	hf_time at;
	int64_t epoch; /* of the breaker */
	hf_time off;   /* the taint was found taken off by a person; NONE: it was not */
};
struct hf_json *hf_quarantine_mark_json(const struct hf_quarantine_mark *mark);
/* false: it is none of ours. */
bool hf_quarantine_mark_read(const char *text, struct hf_arena *arena,
			     struct hf_quarantine_mark *ret_mark);

struct hf_node_taint {
	const char *key, *value, *effect;
};
/* What of a Node matters to who may take it out. */
struct hf_node_marks {
	const char *boot_id; /* NULL: not told */
	hf_time created_at;  /* by the server's clock; 0: not told */
	bool ready, unschedulable, paused;
	const char *quarantine; /* the annotation's text; NULL: none */
	HF_LIST(struct hf_node_taint) taints;
	HF_LIST(struct hf_field_pair) labels;
};
/* Whoever writes it means it: every value but "false" pauses; NULL: there is none. */
bool hf_paused(const char *annotation);
void hf_node_marks_read(struct hf_doc *doc, struct hf_arena *arena,
			struct hf_node_marks *ret_marks);
/* The merge patch, guarded by the document's version, that puts our taint and mark on (mark NULL:
 * takes them off); all other taints stay as they are.  NULL: the document cannot be read as a whole. */
struct hf_doc *hf_node_quarantine_patch(struct hf_doc *node, const struct hf_quarantine_mark *mark,
					hf_time now);
/* The mark alone, without a change to the taints. */
struct hf_doc *hf_node_mark_patch(struct hf_doc *node, const struct hf_quarantine_mark *mark);
/* Our taint is there, whatever its value. */
bool hf_node_has_quarantine_taint(const struct hf_node_marks *marks);

/* The Eviction of a pod, by UID. */
struct hf_doc *hf_eviction(const char *ns, const char *name, const char *uid);

HF_END_DECLS

#endif
