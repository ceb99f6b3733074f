/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_FLEET_MEND_INTERNAL_H
#define HF_FLEET_MEND_INTERNAL_H

#include "api/device_health.h"
#include "api/lifetime.h"
#include "api/remediation.h"
#include "fleet/fleet_internal.h"
#include "health/mend_steps.h"

/*
 * The controller of Remediations.
 *
 * - mend.c         start and stop, the cache, the order of passes, the live reads of a pass
 * - mend_facts.c   makes the input of health/mend_steps.h from the objects that were read
 * - mend_pods.c    finds the pods that have to leave the node
 * - mend_do.c      makes the one write that the step asks for
 * - mend_act.c     makes the acts that need no actor on the node
 * - mend_webhook.c calls the webhook of rung external
 * - mend_create.c  creates the Remediations that a policy's plan asks for
 * - mend_metrics.c counts Remediations
 * - mend_refusal.c tells people which request is refused
 * - mend_prune.c   chooses the finished Remediations that are deleted
 * - mend_recall.c  finds attempts and running acts of each node, for the plan of a policy
 *
 * A pass runs after a change of an object, or when its time has come: live reads, then facts, then
 * hf_mend_step, then one write. One pass runs at a time. A pass writes the status or does one
 * thing, never both, so each act depends on facts from after the last write. Between passes nothing
 * is kept but the time of the next pass.
 */

/* The most pods of one node that a pass can read, without ended ones. A kubelet runs 110 by default. */
#define HF_MEND_PODS_MAX 1024
#define HF_MEND_WANTED_MAX 16
#define HF_MEND_OBJECTS_MAX 20000
/* Namespace and name of a pod, in bytes. */
#define HF_MEND_POD_NAME_MAX 320
/* An object that has waited for so long, in phase Pending, held back in phase Draining, or after its act in phase
 * Restoring, takes no place of others: what it waits for may never come. */
#define HF_MEND_WAITING_COUNTS (5 * HF_MINUTE)
/* This finalizer keeps a deleted Remediation until its changes are undone and its Lease is
 * released. */
#define HF_MEND_FINALIZER "holdfast.dev/mend"
/* Message of the Node's condition MaintenanceInProgress: this prefix and the name of the Remediation. */
#define HF_MEND_MAINTENANCE_PREFIX "Remediation "

/* The same annotation as HF_ANNOTATION_CLEARED of src/agent; the value is a list of devices and a
 * time. */
#define HF_MEND_CLEARED_ANNOTATION "holdfast.dev/cleared"

/* What the cache keeps of each Remediation. */
struct mend_object {
	struct hf_arena *arena;
	struct hf_remediation r; /* only if readable */
	enum hf_mend_phase phase;
	enum hf_mend_rung rung;
	bool readable;
	const char *problem; /* why the object cannot be read; NULL: it can */
	bool unfinished;     /* not at an end, or at an end and still with the finalizer */
	bool blocks;         /* see hf_fleet_mend_blocks */
};

enum mend_read {
	MEND_READ_OBJECT,
	MEND_READ_NODE,
	MEND_READ_HEALTH,
	MEND_READ_LEASE,
	MEND_READ_POD,
	/* The reads from here on are needed only before the act. */
	MEND_READ_PODS,
	MEND_READ_OTHERS,
	MEND_READ_POLICY,
	MEND_READ_TEMPLATE, /* of rung external */
	MEND_READ_KURED,
	MEND_READ_MAINTENANCE,
	/* In each phase: what rung external created. */
	MEND_READ_EXTERNAL,
	MEND_READS
};

/* Counts of other Remediations, taken from a live list. */
struct mend_others {
	/* Remediations of the same policy in a phase after Pending and not at an end */
	int32_t begun;
	/* Remediations of the same policy that are approved and not at an end */
	int32_t approved;
	int32_t open; /* Remediations of the same policy that are not at an end */
	/* name of a Remediation on the same node in a phase after Pending and not at an
	 * end; NULL: there is none */
	const char *on_node;
	/* the same node has a Remediation that is not at an end and does not wait for a person */
	bool open_on_node;
	/* ... and does not wait in phase Restoring for long, which a task of a person need not wait for */
	bool busy_on_node;
	/* since the quarantine a person has cancelled a Remediation of this node */
	bool cancelled_on_node;
	/* since the quarantine a Remediation of rung person was created for this node */
	bool person_on_node;
	/* since the quarantine a reset, or an act of a later rung, has failed on this node */
	bool failed_on_node;
	/* since the quarantine a Remediation of rung external was created for this node */
	bool external_on_node;
	/* name of a Remediation that cannot be read; NULL: all can be read */
	const char *unreadable;
	int32_t attempt;   /* the highest spec.attempt among the Remediations of the node */
	hf_time mended_at; /* end of the newest proved act that may have mended what is out */
};

struct mend_wanted {
	char node[HF_REMEDIATION_NODE_MAX + 1];
	char policy[254];
};

struct fleet_mend {
	struct hf_fleet *fleet;
	struct hf_cache *cache;
	/* the pods of actors; NULL: no Remediation was unfinished yet */
	struct hf_cache *actors;
	/* name of a Remediation → hf_time *, the monotonic time of its next pass; absent: at
	 * once */
	struct hf_map *due;
	struct hf_timer *timer;
	bool stopped;
	bool unseen; /* see hf_fleet_log_list_problem */

	/* The pass under way. */
	struct hf_call *call;
	/* true: the pass creates a Remediation; false: the pass works on Remediation `name` */
	bool creates;
	char name[HF_REMEDIATION_NAME_MAX];
	char node[HF_REMEDIATION_NODE_MAX + 1];
	char policy[254];
	enum mend_read read;
	struct hf_arena *arena; /* memory of the pass */
	struct hf_doc *docs[MEND_READS];
	struct hf_doc *pods[HF_MEND_PODS_MAX];
	size_t pods_len;
	const char *external_problem; /* why objects of rung external cannot be read; NULL: none */
	bool in_maintenance;          /* a NodeMaintenance names the node */
	/* the API server refuses writes of the Node's conditions */
	bool no_condition;
	char *token;
	struct hf_remediation r;
	enum hf_mend_phase phase;
	enum hf_mend_rung rung;
	bool before_act;
	struct mend_others others;
	bool deletes;
	/* An act without an actor: sent after the write under way, which is its intent. resource NULL: the act is a call of
	 * a webhook with this body. */
	struct hf_request act;
	struct hf_doc *act_body; /* NULL: the write under way is no such intent */
	/* name of a Remediation → the call of its webhook, or its result; see mend_webhook.c */
	struct hf_map *answers;
	const char *done; /* verb of the write under way, for logs and events */
	unsigned failures, writes;
	/* an object that the pass has read already has changed: the next pass follows at once */
	bool changed;
	hf_time wait; /* until the next pass, while the message of a refusal is written */
	/* name of a Remediation → text: which of its requests the API server has refused last */
	struct hf_map *refusals;
	char evicts[HF_MEND_POD_NAME_MAX]; /* namespace and name of the pod that is evicted last */
	char evicts_uid[64];
	hf_time prunes_at; /* monotonic: when old objects are looked for next */

	struct mend_wanted wanted[HF_MEND_WANTED_MAX];
	size_t wanted_len;

	struct {
		struct hf_family *open, *done;
	} metrics;
};

/* A pod that has to leave the node. */
struct mend_left {
	size_t at; /* index of fleet_mend.pods */
	/* the field of its job by which an eviction of this pod fails the job, so the drain does not evict it; NULL: none */
	const char *stays;
	/* its job restarts, which moves the pod */
	bool restarts;
	bool unselected; /* spec.drain.podSelector of the policy leaves it out */
};

/* What the write of a step needs besides the view. */
struct mend_facts {
	struct hf_mend_view view;
	hf_time now;
	struct hf_node_marks marks; /* marks of the Node object; valid only if the node exists */
	struct hf_quarantine_mark mark;
	bool marked;
	bool devices_out;     /* the quarantine takes single devices out of use, not the node */
	bool waits_for_rules; /* ... and pods can still be given the devices of the act */
	/* the quarantine serves Remediations alone, and goes at the end of this one */
	bool removes_taint;
	bool has_finalizer;
	bool tells_maintenance; /* the Node has Holdfast's condition MaintenanceInProgress */
	bool own_maintenance;   /* ... and the condition names this Remediation */
	/* Text of the annotation by which the agent learns which faults the act has mended. NULL:
	 * the DeviceHealth has this text already, or the act needs none. */
	const char *cleared;
	/* Text of HF_MENDED_ANNOTATION; NULL: the DeviceHealth has it already, or nothing is proved. */
	const char *mended;
	/* Text of HF_REPORT_ANNOTATION for this act, or before the act for the pods of the node. */
	const char *request;
	/* why nothing asks for the act any more; NULL: a cancel, if any, comes from spec.cancel */
	const char *cancel_why;
	/* Remediation whose actor is still on the node, though it has no such object or act; NULL: there is none */
	const char *other_actor;
	/* Acts without an actor: the object of the act. */
	const char *act_missing; /* why the act has no object; NULL: the act has an object */
	const char *act_job;     /* key of the job whose rank restarts */
	size_t act_pod;          /* index of pods */
	bool own_external;       /* the object that the act created exists */
	/* ... and is deleted, but finalizers keep it; NULL: it is not deleted */
	const char *external_leaves;
	struct fleet_policy *policy;
	struct mend_left left[HF_MEND_PODS_MAX]; /* view.pods_left of them */
	/* why an act of the policy waits for the end of one of them; NULL: it does not */
	const char *at_work;
};

/* --- mend.c --- */
struct fleet_mend *hf_fleet_mend_create(struct hf_fleet *fleet);
struct fleet_mend *hf_fleet_mend_destroy(struct fleet_mend *mend); /* returns NULL */
void hf_fleet_mend_start(struct fleet_mend *mend);
void hf_fleet_mend_stop(struct fleet_mend *mend);
/* Call this after an object that passes take with this read has changed: the Remediations of this policy (MEND_READ_POLICY)
 * or node (other reads) get a pass at once. */
void hf_fleet_mend_wake(struct fleet_mend *mend, enum mend_read read, const char *name);
/* Keeps which acts the plan of a policy asks for; later passes create them. */
void hf_fleet_mend_want(struct fleet_mend *mend, const struct fleet_seen *seen);
/* True for a Remediation that cannot be read and may have begun its act: it is of another version, and no other act may
 * begin. No operator begins an act on an object that it cannot read. */
bool hf_fleet_mend_blocks(const struct hf_json *unreadable);

/* --- mend_metrics.c --- */
void hf_fleet_mend_init_metrics(struct fleet_mend *mend);
void hf_fleet_mend_update_metrics(struct fleet_mend *mend);

/* --- mend_facts.c --- */
void hf_fleet_mend_facts(struct fleet_mend *mend, struct mend_facts *ret_facts);
/* True if the GPU Operator uses this label of a Node to place a pod that keeps devices open. */
bool hf_fleet_mend_is_operand(const char *label);
/* Counts another Remediation, taken from a live list, in fleet_mend.others. */
void hf_fleet_mend_count_other(struct fleet_mend *mend, struct hf_doc *doc);

/* --- mend_pods.c --- */
/* Notes the pods that have to leave the node, and what else on the node holds the act back. health NULL: there is no
 * report. */
void hf_fleet_mend_see_pods(const struct fleet_mend *mend, const struct hf_device_health *health,
			    struct mend_facts *facts);

/* --- mend_do.c --- */
/* The verb of the write of the Node's condition. */
#define HF_MEND_TELLS "condition"
/* Makes the request that the step asks for; the caller sends it. Returns false if nothing is to be
 * done. *ret_what gets the verb for logs and events. *ret_body owns the body. */
bool hf_fleet_mend_do(struct fleet_mend *mend, const struct mend_facts *facts,
		      const struct hf_mend_step *step, struct hf_request *ret_request,
		      struct hf_doc **ret_body, const char **ret_what);

/* Makes the write of the result of an act without an actor; mend->r is the object with the intent. code 0: what was asked
 * for is accepted. HF_E_TIMEOUT: nobody knows, so only the proof decides. */
bool hf_fleet_mend_result(struct fleet_mend *mend, int code, const char *message,
			  struct hf_request *ret_request, struct hf_doc **ret_body);

/* --- mend_act.c --- */
/* This Remediation as the owner of an object. */
struct hf_owner hf_fleet_mend_owner(const struct fleet_mend *mend);
/* Makes the request that evicts the pod. Returns true. */
bool hf_fleet_mend_evict(struct hf_doc *pod, struct hf_request *ret_request,
			 struct hf_doc **ret_body);
/* Finds what an act without an actor is about. */
void hf_fleet_mend_see_act(struct fleet_mend *mend, struct mend_facts *facts);
/* Makes the request of such an act. False: nothing to act on. */
bool hf_fleet_mend_act(struct fleet_mend *mend, const struct mend_facts *facts,
		       struct hf_request *ret_request, struct hf_doc **ret_body);
/* Makes the read of the template of rung external, or of the created object. False: the rung or its policy
 * has none. */
bool hf_fleet_mend_external(struct fleet_mend *mend, bool is_template,
			    struct hf_request *ret_request);
/* Notes in the status which object the act creates, so that it is deleted although the policy has changed. */
void hf_fleet_mend_save_external(const struct fleet_mend *mend,
				 struct hf_remediation_status *status);
/* Makes the delete of the created object, which this pass has read. */
bool hf_fleet_mend_remove_external(struct fleet_mend *mend, struct hf_request *ret_request);

/* --- mend_webhook.c --- */
struct hf_map *hf_fleet_mend_create_answers(const struct fleet_mend *mend);
/* Cancels all calls, and forgets their results. */
void hf_fleet_mend_drop_calls(struct fleet_mend *mend);
/* Why no webhook can be called now; NULL: one can. */
const char *hf_fleet_mend_lacks_webhook(struct fleet_mend *mend);
struct hf_doc *hf_fleet_mend_webhook_body(const struct fleet_mend *mend);
/* Begins the call of the pass, whose intent is stored. wake: gives the Remediation a pass at once. */
void hf_fleet_mend_call_webhook(struct fleet_mend *mend, struct hf_doc *body,
				void (*wake)(struct fleet_mend *mend, const char *name));
/* Whether the call for this Remediation is under way. */
bool hf_fleet_mend_is_calling(const struct fleet_mend *mend);
/* True if the call for this Remediation has ended, and its result has to be written. */
bool hf_fleet_mend_take_answer(struct fleet_mend *mend, int *ret_code, const char **ret_message);

/* --- mend_create.c --- */
/* Takes the acts that the plan of the policy asks for into fleet_mend.wanted. */
void hf_fleet_mend_list_wanted(struct fleet_mend *mend, const struct fleet_seen *seen);
/* Makes the request that creates the Remediation of the plan, from live facts. Returns false if the
 * plan asks for none now. */
bool hf_fleet_mend_make(struct fleet_mend *mend, struct hf_request *ret_request,
			struct hf_doc **ret_body);

/* --- mend_refusal.c --- */
/* Notes that the API server has refused a request of the pass. Returns true if the request of the message has to be
 * sent; false: the object has this message, or the failure ends by itself. */
bool hf_fleet_mend_note_refusal(struct fleet_mend *mend, const struct hf_reply *reply,
				struct hf_request *ret_request, struct hf_doc **ret_body);
/* Why the API server has refused the last request for this Remediation; NULL: it has not. */
const char *hf_fleet_mend_refusal(const struct fleet_mend *mend);
/* Why the API server has refused the last create of a Remediation for this node; NULL: it has not. */
const char *hf_fleet_mend_refused_create(const struct fleet_mend *mend, const char *node);
void hf_fleet_mend_forget_refusal(struct fleet_mend *mend);
/* Tells that the API server has refused the eviction of the pod fleet_mend.evicts. */
void hf_fleet_mend_note_eviction(struct fleet_mend *mend, const char *message);
const char *hf_fleet_mend_print_wait(const struct fleet_mend *mend, const char *why);
/* The message of phase Restoring: how the act ended, and why nothing is put back (NULL: it is put back). */
const char *hf_fleet_mend_print_end(const struct fleet_mend *mend, const char *why);

/* --- mend_prune.c --- */
/* The oldest finished object that nothing needs any more; NULL: none. */
const struct hf_cache_entry *hf_fleet_mend_find_old(const struct fleet_mend *mend);

/* --- mend_recall.c --- */
/* Notes an attempt of a node, whose highest number the next act exceeds. A person may have chosen the last number that
 * there is: it does not count, else it would end all acts of the node. */
void hf_fleet_mend_note_attempt(int32_t *highest, int64_t attempt);
/* Returns the stored condition if it has this status; NULL: the status differs, or the condition is missing. */
const struct hf_remediation_condition *hf_fleet_mend_find_condition(const struct hf_remediation *r,
								    const char *type,
								    const char *status);
/* Returns since when the stored condition has this status; NONE: the status differs, or the condition is missing. */
hf_time hf_fleet_mend_condition_time(const struct hf_remediation *r, const char *type,
				     const char *status);
/* The object takes a place of its policy's maxConcurrent. */
bool hf_fleet_mend_takes_place(const struct hf_fleet *fleet, const struct hf_remediation *r,
			       enum hf_mend_phase phase);
/* The act names a device with this UUID. */
bool hf_fleet_mend_names(const struct hf_remediation *r, const char *uuid);
/* Whether the success of the act shows that the node is well after the failed act: a reset shows nothing of the devices
 * that it does not name. */
bool hf_fleet_mend_covers(const struct hf_remediation *r, enum hf_mend_rung rung,
			  const struct mend_object *failed);
/* Whether the quarantine is of another act, which waits. */
bool hf_fleet_mend_is_of_waiting(const struct fleet_mend *mend,
				 const struct hf_quarantine_mark *mark);
/* Whether a later act of the node has succeeded and covers the failed act. */
bool hf_fleet_mend_is_covered(const struct fleet_mend *mend, const struct mend_object *failed);
/* Whether the act may have mended what is out of use now. A reset mends the devices that it names, any other act the
 * node. health NULL: there is no report. acted_at: the end of the act, by the operator's clock. */
bool hf_fleet_mend_concerns(const struct hf_fleet *fleet, const struct hf_remediation *r,
			    enum hf_mend_rung rung, const struct fleet_health *health,
			    hf_time acted_at);
void *hf_fleet_read_remediation(void *arg, struct hf_doc *doc);
void hf_fleet_free_remediation(void *view);
/* Returns when a proved act was done, by the operator's clock: never later than its proof. NONE: unknown. health: of
 * the node; NULL: there is no report. */
hf_time hf_fleet_mend_acted_at(const struct hf_fleet *fleet, const struct hf_remediation *r,
			       enum hf_mend_rung rung, const struct fleet_health *health);
/* When the object was created, for a comparison with the mark of a quarantine. The API server writes whole seconds, and
 * a mark has microseconds. An object of a policy follows the mark of its quarantine, so it counts as created at the end
 * of its second. A person may create an object before the mark: if the mark is of this object, the object has the time
 * of the mark. */
hf_time hf_fleet_mend_created_at(const struct hf_remediation *r, const struct fleet_node *node);
/* A reboot for the faults of this report ends no work: the policy lets pods with devices of the node end by themselves. */
bool hf_fleet_mend_lets_work_end(const struct hf_health_policy_spec *spec,
				 const struct fleet_health *health);
/* The act has asked an external controller, or may still do so. A boot cancels an act that has not begun. */
bool hf_fleet_mend_has_asked(const struct hf_remediation *r, enum hf_mend_phase phase,
			     enum hf_mend_rung rung, const struct fleet_node *node);
/* What the policy of the pass's act allows; NULL: there is no such policy, or it cannot be read. */
const struct hf_policy_mend *hf_fleet_mend_rules(const struct fleet_mend *mend);
/* The action of the ladder that an act performs; HF_HEALTH_RECORD: none. */
enum hf_health_action hf_fleet_action_of(enum hf_mend_rung rung);

#endif
