/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_REPORT_H
#define HF_AGENT_REPORT_H

#include "agent/holders.h"
#include "agent/processes.h"
#include "api/device_health.h"
#include "health/step.h"
#include "json/json.h"
#include "probes/intake.h"

HF_BEGIN_DECLS

/*
 * What the agent knows, in the words of the objects it is written to.  Pure: reads no clock.
 */
struct hf_report {
	const char *node;
	const struct hf_health_memory *memory;
	const struct hf_intake *intake;
	const struct hf_holder *holders;
	size_t holders_len;
	const struct hf_rank_report *ranks; /* of the steps' clock */
	size_t ranks_len;
	const struct hf_fence_report *fences;
	size_t fences_len;
	const struct hf_process_entry *processes;
	size_t processes_len;
	bool processes_known; /* else the list stays as it is */
	const char *label;    /* the node's label */
	uint64_t lost;
	hf_time now; /* of the steps' clock */
	/* the wall clock minus the steps' clock: published times are of the wall clock */
	hf_time wall_less;
	hf_time reaches; /* the evidence is whole until then */
};

/* {"status": {"conditions": […]}}: the four of a Node, for a strategic merge patch. */
struct hf_json *hf_report_node_patch(const struct hf_report *report);
/* {"status": {…}} of DeviceHealth, for a merge patch. */
struct hf_json *hf_report_device_patch(const struct hf_report *report);
/* {"status": {"processes": […]}} alone, for a merge patch. */
struct hf_json *hf_report_processes_patch(const struct hf_report *report);

/* The contents of our condition of a pod. */
struct hf_pod_verdict {
	enum hf_device_condition condition;
	char reason[64], message[HF_POD_MESSAGE_MAX];
};
/* The condition of the pod of holder `first`; HF_POD_NO_CONDITION: write none. */
void hf_report_pod(const struct hf_report *report, size_t first, struct hf_pod_verdict *ret);
/* {"metadata": {"uid": …}, "status": {"conditions": […]}}, strategic. */
struct hf_json *hf_report_pod_patch(const struct hf_pod_verdict *verdict, const char *uid,
				    hf_time wall);
/* The device that a holder's id names, or is a part of; NULL: none that is known. */
const struct hf_health_device *hf_report_device_of(const struct hf_report *report,
						   const struct hf_holder *holder);
/* The event concerns that holder: it names the holder's device, and no other MIG instance of it.
 * In doubt the result is true. */
bool hf_report_concerns(const struct hf_report *report, const struct hf_health_notice *told,
			const struct hf_holder *holder);

/* Of a detector: On, Off (with why) or Stale. */
const char *hf_report_detector(const struct hf_report *report, enum hf_health_detector detector,
			       const char **ret_why);

HF_END_DECLS

#endif
