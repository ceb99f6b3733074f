/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_REPORT_LIMITS_H
#define HF_AGENT_REPORT_LIMITS_H

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

HF_BEGIN_DECLS

/*
 * How many reports of training processes the agent takes in a second: of a process, of a pod, of the node.  Reports
 * beyond a pod's own limit do not count for the node's limit, however many processes send them.
 */
#define HF_REPORT_LIMITS_PROCESS 60
#define HF_REPORT_LIMITS_POD 500   /* enough for eight ranks and some other processes of the pod */
#define HF_REPORT_LIMITS_NODE 4000 /* heard */
/* Look-ups of a process's pod; processes of pods that are known to be over their limit need no look-up. */
#define HF_REPORT_LIMITS_LOOKUPS 12000

/* Most processes with a count of their own; further processes have only the limit of their pod. */
#define HF_REPORT_LIMITS_SENDERS 1024

struct hf_report_limits_count {
	uint64_t who; /* key of the process or pod; 0: the entry is free */
	uint32_t reports;
	/* the pod of the process, if it was looked up in this second */
	struct hf_report_limits_count *pod;
};

struct hf_report_limits {
	hf_time second; /* the second in which the reports below were counted */
	uint32_t heard, lookups;
	struct hf_report_limits_count processes[HF_REPORT_LIMITS_SENDERS],
		pods[HF_REPORT_LIMITS_SENDERS];
};

/* Counts a report of the process; mono is a clock that does not go back.  True: the process's pod may be looked
 * up. */
bool hf_report_limits_may_ask(struct hf_report_limits *limits, pid_t pid, hf_time mono);
/* Counts the report for the pod.  True: the report may be taken. */
bool hf_report_limits_may_hear(struct hf_report_limits *limits, pid_t pid, const char *pod_uid);

HF_END_DECLS

#endif
