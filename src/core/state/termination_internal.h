/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_TERMINATION_INTERNAL_H
#define HF_CORE_TERMINATION_INTERNAL_H

#include "core/model/job.h"
#include "core/model/observed.h"
#include "core/model/status.h"

HF_BEGIN_DECLS

/*
 * One termination on its way from what was seen to what is decided.  policy/terminations.c fills in
 * the first part, policy/classify.c the class, policy/rules.c the rule, policy/restart_policy.c the
 * rest.
 */

enum hf_termination_kind {
	HF_TERMINATION_FAILED, /* the pod's phase is Failed, or its own container has failed for good */
	HF_TERMINATION_DELETED,  /* the pod is being deleted, and not by this operator */
	HF_TERMINATION_VANISHED, /* the pod was seen before and is missing */
	/* the own container ended, or an init container before it had begun, and the kubelet starts
	 * it again */
	HF_TERMINATION_RESTARTED,
	HF_TERMINATION_LOST,      /* the pod's node is lost, and the pod is to be given up */
	HF_TERMINATION_UNHEALTHY, /* the pod runs, and holds a device that cannot be worked with */
	HF_TERMINATION_HUNG, /* the pod runs, and no rank has advanced for progressDeadlineSeconds */
};

enum hf_fate { HF_FATE_RESTART, HF_FATE_FAIL };

/* Reasons that Holdfast itself writes into a record. */
#define HF_REASON_POST_START "PostStartHookError" /* the kubelet's */
#define HF_REASON_INIT_FAILED "InitContainerFailed"
#define HF_REASON_NODE_LOST "NodeLost"
#define HF_REASON_NO_PROGRESS "NoProgress"
#define HF_REASON_SELF_FENCED "SelfFenced"
#define HF_REASON_STRAY "StrayEviction"

/* Reasons of a verdict. The reasons of used-up budgets are in budget.c. */
#define HF_VERDICT_RULE "PodFailurePolicy"
#define HF_VERDICT_NEVER "RestartPolicyNever"
#define HF_VERDICT_EXIT_CODE "ExitCode"
#define HF_VERDICT_DEADLINE "DeadlineExceeded"
#define HF_VERDICT_DEVICE "DeviceUnhealthy"
#define HF_VERDICT_NO_PROGRESS "NoProgress"
#define HF_VERDICT_DO_NOT_RESTART "DoNotRestart"
#define HF_VERDICT_LOG_RULE "LogRule"

struct hf_termination {
	enum hf_termination_kind kind;
	int role;
	int32_t index;
	const struct hf_pod *pod; /* NULL: vanished */
	/* RESTARTED: how many terminations of containers this step counts for the first time */
	int32_t units;
	bool process; /* FAILED: the process ended, and exec keeps its pod */
	/* FAILED: the container's termination was counted before, and it did not start again */
	bool counted;
	bool before_start;           /* RESTARTED, FAILED: the own container has not begun */
	hf_time finished_at;         /* the node's clock; NONE: not known */
	struct hf_opt_int exit_code; /* of the default container */
	struct hf_opt_int signal;
	/* the reason of the own container, if it says more than "Error"; NULL: none */
	const char *status_reason;
	const char *status_message; /* the container runtime's text for that reason; or NULL */
	const char *matched; /* the container, type of condition or reason that a rule matched */
	/* the exit code that a rule matched; 0: no rule on exit codes matched */
	int32_t matched_code;
	/* classify.c */
	enum hf_class cls;
	bool evidence;      /* the class rests on something that was seen, not on a missing pod */
	bool lost;          /* the node of the pod is lost */
	bool fenced;        /* the process ended itself, because its node had no contact */
	bool out_of_memory; /* the deciding container exceeded the memory limit */
	bool code_lost;     /* the node lost the own container and its exit code */
	bool same_fault; /* its fault took another rank before, and was charged then: charges nothing */
	bool stray; /* evicted for a taint that the pod's own node does not have: charges nothing */
	/* the init container that was added by the kind and waited in vain; NULL: none */
	const struct hf_container_seen *gave_up;
	/* A verdict was withdrawn in this step because of this termination, so it opens no second
	 * incident. */
	bool used_by_verdict;
	const struct hf_device_seen *device; /* the device that explains the termination, or NULL */
	/* rules.c */
	int rule; /* index in podFailurePolicy; -1: none matched */
	/* restart_policy.c, then the rule */
	enum hf_fate fate;
	enum hf_scope scope;
	enum hf_budget budget; /* the budget to charge if this termination opens an incident */
	const char *verdict;   /* if the fate is FAIL: the verdict's reason, one word */
};

HF_END_DECLS

#endif
