/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_ENDS_INTERNAL_H
#define HF_CORE_ENDS_INTERNAL_H

#include "core/model/job.h"
#include "core/model/observed.h"
#include "core/model/status.h"

HF_BEGIN_DECLS

/*
 * Part of the brain: an end of a pod, on its way from what is seen to what is decided.
 */

struct hf_brain;

enum hf_end_kind {
	HF_END_FAILED,    /* the pod's phase is Failed, or its own container has failed for good */
	HF_END_DELETED,   /* somebody else is deleting it */
	HF_END_VANISHED,  /* it was there, and is not */
	HF_END_RESTARTED, /* containers of the pod ended, and the kubelet starts them again */
	HF_END_LOST,      /* its node is lost, and nobody has ended it yet */
	HF_END_SICK,      /* it runs, and a device that it holds cannot be worked with */
	HF_END_HUNG,      /* it runs, and no rank has advanced for progressDeadlineSeconds */
};

enum hf_fate { HF_FATE_RESTART, HF_FATE_FAIL };

/* One end of one attempt, on its way from fact to decision. */
struct hf_end {
	enum hf_end_kind kind;
	int role;
	int32_t index;
	const struct hf_pod *pod; /* NULL: vanished */
	int32_t units;            /* RESTARTED: terminations not counted before */
	bool counted; /* FAILED: a termination of this pod was counted, and no start followed */
	hf_time finished_at;         /* the node's clock; NONE: not known */
	struct hf_opt_int exit_code; /* of the default container */
	struct hf_opt_int signal;
	const char *
		status_reason; /* of the default container, where it tells more than an error; or NULL */
	const char *status_message; /* the container runtime's text for it; or NULL */
	const char *matched;  /* the container, type of condition or reason that a rule matched */
	int32_t matched_code; /* 0: no rule on exit codes did */
	/* classify */
	enum hf_class cls;
	bool evidence;      /* the class rests on something seen, not on absence */
	bool lost;          /* its node is lost */
	bool fenced;        /* it ended itself for want of contact */
	bool out_of_memory; /* the deciding container exceeded the memory limit */
	bool stray; /* evicted for a taint that its own node does not have: charged to nothing */
	const struct hf_container_seen *gave_up; /* added by the kind, it waited in vain; or NULL */
	bool spent; /* a verdict gave way to it: it is the cause of that incident, of no other */
	const struct hf_device_seen *device; /* that explains it; NULL: none does */
	/* rules */
	int rule; /* -1: none matched */
	/* policy, then rule */
	enum hf_fate fate;
	enum hf_scope scope;
	enum hf_budget budget; /* what its incident is charged to, if it opens one */
	const char *verdict;   /* FAIL: the reason, one word */
};

/* ---- an end's way: ends.c, classify.c, rules.c, policy.c, incident.c, budget.c, delay.c ----- */

/* Every end of a present attempt that has not been counted, with class, rule and policy, in an
 * order that does not depend on the input's: by when it finished (of two in one second the one that is
 * tried again is the first), then role and index. */
void hf_ends_collect(struct hf_brain *b);
/* A reason of a termination that says more than the exit code does; NULL: it says no more. */
const char *hf_telling_reason(const char *reason);
const char *hf_own_container_name(const struct hf_brain *b, int role);
/* What the kubelet has said of the kind's own container.  NULL: nothing. */
const struct hf_container_seen *hf_own_container(const struct hf_brain *b, int role,
						 const struct hf_pod *pod);
/* Upstream's event that a pod exited with a code: once, when that is counted. */
void hf_end_event(struct hf_brain *b, const struct hf_end *end);
void hf_classify(struct hf_brain *b, struct hf_end *end);
/* What was seen, in one word for the record; NULL: its exit code says it all. */
const char *hf_end_reason(const struct hf_end *end);
#define HF_REASON_POST_START "PostStartHookError" /* the kubelet's */
#define HF_REASON_NODE_LOST "NodeLost"
#define HF_REASON_NO_PROGRESS "NoProgress"
#define HF_REASON_SELF_FENCED "SelfFenced"
#define HF_REASON_STRAY "StrayEviction"
/* Index of the first rule that matches, or -1; fills the matched container of exit codes. */
int hf_rules_match(const struct hf_brain *b, struct hf_end *end);
/* Fate, scope, budget and verdict of one end, as if it opened an incident. */
void hf_policy_decide(const struct hf_brain *b, struct hf_end *end);
enum hf_budget hf_class_budget(enum hf_class cls);
bool hf_class_is_application(enum hf_class cls); /* its own doing, by whichever name */
/* What an incident is charged to whose cause this end is. */
enum hf_budget hf_end_budget(const struct hf_end *end);

bool hf_incident_is_open(const struct hf_brain *b);
/* The end's attempt had started before the open incident did. */
bool hf_incident_covers(struct hf_brain *b, const struct hf_end *end);
/* A new incident and its record; budget PENDING: not decided, nothing charged yet.
 * end may be NULL for a restart that a person asked for. */
void hf_incident_open(struct hf_brain *b, const struct hf_end *end, enum hf_class cause,
		      enum hf_budget budget);
/* One more record, of this end; nothing is decided in it yet.  NULL: nobody's end. */
void hf_incident_record(struct hf_brain *b, const struct hf_end *end);
/* An incident whose record was erased with the ledger gets one, of an end that it covers. */
void hf_incident_ensure_record(struct hf_brain *b, const struct hf_end *end);
/* The whole incident takes the cause of an end with evidence of infrastructure or device: a
 * charge moves from the application's budget.  False: the new budget does not allow it. */
bool hf_incident_adopt(struct hf_brain *b, const struct hf_end *end);
/* The open incident and its record tell of another end than the one that opened it. */
void hf_incident_retell(struct hf_brain *b, const struct hf_end *end);
/* An end whose cause outranks an application's. */
bool hf_end_outranks(const struct hf_end *end);
/* A rule that a person wrote ignores it. */
bool hf_end_is_ignored(const struct hf_end *end);
/* Run all ends through coverage, incident, budget and verdict; restart what is to be. */
void hf_ends_apply(struct hf_brain *b);

/* One more unit stays within the limit. */
bool hf_budget_allows(const struct hf_brain *b, enum hf_budget budget);
void hf_budget_charge(struct hf_brain *b, enum hf_budget budget); /* the open incident */
const char *hf_budget_verdict(enum hf_budget budget);             /* "BackoffLimitExceeded", … */
/* The budget whose verdict that is; HF_BUDGET_NONE: none. */
enum hf_budget hf_budget_of_verdict(const char *verdict);
const char *hf_budget_message(struct hf_brain *b, enum hf_budget budget);

/* How long the n-th restart of a streak waits. */
hf_time hf_delay(const struct hf_recovery *recovery, enum hf_budget budget, int64_t n,
		 const char *uid, bool kueue);
/* Lengthen the streak and set notBefore.  Before the restart is recorded. */
void hf_delay_next(struct hf_brain *b, enum hf_budget budget);
/* Pods that waited in vain are made anew a tenth of the time later for which ranks have been missing, while
 * whom they wait for still is: without a streak, so that the first failure behind it does not wait. */
void hf_delay_waited(struct hf_brain *b, bool still);
/* A job that has run for long enough begins its streaks anew. */
void hf_delay_reset(struct hf_brain *b);

/* device.c: the device that explains the end of the pod best, NULL: none.  At: when it ended, by
 * its node's clock; NONE: not known. */
const struct hf_device_seen *hf_device_of(const struct hf_pod *pod, hf_time at);
/* As that, of the classes that a rule names. */
const struct hf_device_seen *hf_device_match(const struct hf_rule *rule, const struct hf_pod *pod,
					     hf_time at);
/* Nobody has ended the pod, and a device that it holds cannot be worked with. */
bool hf_device_ends(struct hf_brain *b, const struct hf_pod *pod);
/* While the open incident is being mended it takes what is told late of its pod's device. */
void hf_device_adopt(struct hf_brain *b);

/* awaited.c: whether the kind has added it; the added one that has ended in vain before the program began, while
 * not all that it waits for ran, or NULL; those pods are made anew; what waits so now. */
bool hf_awaited_is_added(const struct hf_brain *b, int role,
			 const struct hf_container_seen *container);
const struct hf_container_seen *hf_awaited_gave_up(const struct hf_brain *b,
						   const struct hf_end *end);
void hf_awaited_step(struct hf_brain *b);
void hf_awaited_say(struct hf_brain *b);

HF_END_DECLS

#endif
