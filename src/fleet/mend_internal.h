/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_MEND_INTERNAL_H
#define HF_FLEET_MEND_INTERNAL_H

#include "api/remediation.h"
#include "fleet/fleet_internal.h"
#include "health/mend_steps.h"

/*
 * The controller of Remediations.
 *   mend.c         life, the cache, the order of passes, the live reads of a pass
 *   mend_facts.c   makes the view for health/mend_steps.h from the objects read
 *   mend_do.c      performs the answer: one write
 *   mend_create.c  creates Remediations that a policy's plan asks for
 *   mend_recall.c  attempts and running acts of each node, for the plan of a policy
 *     change or time ──▶ pass over one object: live reads ─▶ facts ─▶ hf_mend_step ─▶ one write
 * One pass runs at a time. It writes the status or does one thing, never both, so each thing is
 * done upon facts read after the last write. Nothing is kept between passes but the time of the
 * next one.
 */

/* Pods of one node. A kubelet runs 110 by default; the limit is beyond any node. */
#define HF_MEND_PODS_MAX 1024
#define HF_MEND_WANTED_MAX 16
/* Keeps a deleted object until what was changed is put back and the Lease is released. */
#define HF_MEND_FINALIZER "holdfast.dev/mend"
/* Begin of the policy's name in the mark of a quarantine for one Remediation. The rest is the name of
 * that Remediation. */
#define HF_MEND_MARK_PREFIX "remediations/"

/* As HF_ANNOTATION_CLEARED of src/agent: devices and a time. */
#define HF_MEND_CLEARED_ANNOTATION "holdfast.dev/cleared"

/* The view of a Remediation in the cache. */
struct mend_object {
	struct hf_arena *arena;
	struct hf_remediation r; /* only if readable */
	enum hf_mend_phase phase;
	enum hf_mend_rung rung;
	bool readable;
	bool unfinished; /* not at an end, or it has the finalizer */
};

enum mend_read {
	MEND_READ_OBJECT,
	MEND_READ_NODE,
	MEND_READ_HEALTH,
	MEND_READ_LEASE,
	MEND_READ_POD,
	/* Only before the act. */
	MEND_READ_PODS,
	MEND_READ_OTHERS,
	MEND_READ_POLICY,
	MEND_READ_KURED,
	MEND_READ_MAINTENANCE,
	MEND_READS
};

/* Numbers of the other Remediations, from a live list. */
struct mend_others {
	int32_t begun;    /* of the same policy, beyond Pending */
	int32_t approved; /* of the same policy, approved and not at an end */
	int32_t open;     /* of the same policy, not at an end */
	const char *
		on_node; /* name of one on the same node in a phase after Pending; NULL: no such one */
	bool open_on_node; /* one on the same node that is not at an end, no matter for a person */
	bool cancelled_on_node; /* a person has cancelled one that was made since the quarantine */
	bool person_on_node;    /* one of rung person, made since the quarantine */
	const char *unreadable; /* name of one; NULL: all can be read */
	int32_t attempt;        /* the highest number on the node */
	hf_time mended_at;      /* end of the newest proved act on the node */
};

struct mend_wanted {
	char node[HF_REMEDIATION_NODE_MAX + 1];
	char policy[254];
};

struct fleet_mend {
	struct hf_fleet *fleet;
	struct hf_cache *cache;
	struct hf_map *due; /* name → hf_time *: monotonic time of the next pass; absent: now */
	struct hf_timer *timer;
	bool stopped, silent;

	/* The pass under way. */
	struct hf_call *call;
	bool creates; /* the pass creates an object; false: it is about object `name` */
	char name[HF_REMEDIATION_NAME_MAX];
	char node[HF_REMEDIATION_NODE_MAX + 1];
	char policy[254];
	enum mend_read read;
	struct hf_arena *arena; /* memory of the pass */
	struct hf_doc *docs[MEND_READS];
	struct hf_doc *pods[HF_MEND_PODS_MAX];
	size_t pods_len;
	bool in_maintenance; /* a NodeMaintenance names the node */
	char *token;
	struct hf_remediation r;
	enum hf_mend_phase phase;
	enum hf_mend_rung rung;
	bool before_act;
	struct mend_others others;
	bool deletes;
	const char *done; /* what the write under way does, for logs and events */
	unsigned failures, writes;

	struct mend_wanted wanted[HF_MEND_WANTED_MAX];
	size_t wanted_len;

	struct {
		struct hf_family *open, *done;
	} metrics;
};

/* What a step needs besides the view. */
struct mend_facts {
	struct hf_mend_view view;
	hf_time now;
	struct hf_node_marks marks; /* only if the node exists */
	struct hf_quarantine_mark mark;
	bool marked;
	bool own_taint; /* the quarantine serves this Remediation alone */
	bool has_finalizer;
	/* Text of the annotation that tells the agent which faults the act has mended; NULL: the
	 * DeviceHealth has it already, or the act needs none. */
	const char *cleared;
	const char *cancel_why; /* why the act is not wanted any more; NULL: by spec.cancel */
	struct fleet_policy *policy;
	/* The pods that have to go, as indexes of pods. */
	size_t left[HF_MEND_PODS_MAX];
};

/* --- mend.c --- */
struct fleet_mend *hf_fleet_mend_create(struct hf_fleet *fleet);
struct fleet_mend *hf_fleet_mend_destroy(struct fleet_mend *mend); /* returns NULL */
void hf_fleet_mend_start(struct fleet_mend *mend);
void hf_fleet_mend_stop(struct fleet_mend *mend);
/* A fact about this node has changed. */
void hf_fleet_mend_wake_node(struct fleet_mend *mend, const char *node);
/* Takes over which acts the plan of a policy asks for. */
void hf_fleet_mend_want(struct fleet_mend *mend, const struct fleet_seen *seen);
void hf_fleet_mend_update_metrics(struct fleet_mend *mend);

/* --- mend_facts.c --- */
void hf_fleet_mend_facts(struct fleet_mend *mend, struct mend_facts *ret_facts);
/* True for the label of a Node that places an operand of the GPU Operator which keeps devices open. */
bool hf_fleet_mend_is_operand(const char *label);
/* Adds one other Remediation, live. */
void hf_fleet_mend_count_other(struct fleet_mend *mend, struct hf_doc *doc);

/* --- mend_do.c --- */
/* Makes the request of this step; the caller sends it. False: nothing to do. `what` says what is
 * done. The body lives in ret_body. */
bool hf_fleet_mend_do(struct fleet_mend *mend, const struct mend_facts *facts,
		      const struct hf_mend_step *step, struct hf_request *ret_request,
		      struct hf_doc **ret_body, const char **ret_what);

/* --- mend_create.c --- */
/* Makes the request that creates what the plan asks for, upon live facts. False: nothing. */
bool hf_fleet_mend_make(struct fleet_mend *mend, struct hf_request *ret_request,
			struct hf_doc **ret_body);

/* --- mend_recall.c --- */
void *hf_fleet_read_remediation(void *arg, struct hf_doc *doc);
void hf_fleet_free_remediation(void *view);
bool hf_fleet_mend_has_finalizer(struct hf_doc *doc);
/* The rung of the ladder for an act; HF_HEALTH_RECORD: none. */
enum hf_health_action hf_fleet_action_of(enum hf_mend_rung rung);

#endif
