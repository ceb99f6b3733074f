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
 * How many reports of training processes are heard in a second: of a process, of a pod, of the node.
 * What a pod sends beyond its own limit takes nothing from the node's, from however many processes it
 * comes.
 */
#define HF_REPORT_LIMITS_PROCESS 60
#define HF_REPORT_LIMITS_POD 500   /* eight ranks, and who else has something to say */
#define HF_REPORT_LIMITS_NODE 4000 /* heard */
/* Looked up whose they are, of those that are not known to be over their pod's limit. */
#define HF_REPORT_LIMITS_LOOKUPS 12000

/* Who is counted; of more senders some are held by their pod's limit alone. */
#define HF_REPORT_LIMITS_SENDERS 1024

struct hf_report_limits_count {
	uint64_t who; /* 0: nobody */
	uint32_t reports;
	struct hf_report_limits_count *pod; /* of a process, once it is known in this second */
};

struct hf_report_limits {
	hf_time second; /* that the counts are of */
	uint32_t heard, lookups;
	struct hf_report_limits_count processes[HF_REPORT_LIMITS_SENDERS],
		pods[HF_REPORT_LIMITS_SENDERS];
};

/* A report of the process has come; mono: of a clock that does not go back.  True: it may be looked up
 * whose it is. */
bool hf_report_limits_may_ask(struct hf_report_limits *throttle, pid_t pid, hf_time mono);
/* It is the pod's.  True: it may be heard. */
bool hf_report_limits_may_hear(struct hf_report_limits *throttle, pid_t pid, const char *pod_uid);

HF_END_DECLS

#endif
