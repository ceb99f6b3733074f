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
 * What the agent knows, for the fields of the objects that it writes.  Pure: reads no clock.
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
	/* whether the list `processes` is complete; false: the published list stays as it is */
	bool processes_known;
	const char *label; /* the node's label */
	uint64_t lost;
	hf_time now; /* of the steps' clock */
	/* the wall clock minus the steps' clock: published times are wall-clock times */
	hf_time wall_less;
	/* all evidence up to this time is part of the report; published as observedTime */
	hf_time reaches;
};

/* The strategic merge patch {"status": {"conditions": […]}} with the agent's four conditions of the Node. */
struct hf_json *hf_report_node_patch(const struct hf_report *report);
/* The merge patch {"status": {…}} of DeviceHealth. */
struct hf_json *hf_report_device_patch(const struct hf_report *report);
/* The merge patch {"status": {"processes": […]}} of DeviceHealth, with the processes alone. */
struct hf_json *hf_report_processes_patch(const struct hf_report *report);

/* The contents of the agent's condition of a pod. */
struct hf_pod_verdict {
	enum hf_device_condition condition;
	char reason[64], message[HF_POD_MESSAGE_MAX];
};
/* The condition of the pod that has the holder with the index `first`; HF_POD_NO_CONDITION: write none. */
void hf_report_pod(const struct hf_report *report, size_t first, struct hf_pod_verdict *ret);
/* The strategic merge patch {"metadata": {"uid": …}, "status": {"conditions": […]}} of a pod. */
struct hf_json *hf_report_pod_patch(const struct hf_pod_verdict *verdict, const char *uid,
				    hf_time wall);
/* The device that a holder's id names, or of which it names a part; NULL: no known device. */
const struct hf_health_device *hf_report_device_of(const struct hf_report *report,
						   const struct hf_holder *holder);
/* Returns the sick device that the holder has, or had when the fault began; NULL: no sick
 * device. */
const struct hf_health_device *hf_report_sick_device(const struct hf_report *report,
						     const struct hf_holder *holder);
/* Whether the event concerns the holder: it is about the holder's device, and not about another MIG instance of
 * the device.  In doubt the result is true. */
bool hf_report_concerns(const struct hf_report *report, const struct hf_health_notice *told,
			const struct hf_holder *holder);

/* The state of a detector: "On", "Off" (with the reason) or "Stale". */
const char *hf_report_detector(const struct hf_report *report, enum hf_health_detector detector,
			       const char **ret_why);

HF_END_DECLS

#endif
