/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_AGENT_REPORT_REQUEST_H
#define HF_AGENT_REPORT_REQUEST_H

#include "base/error.h"
#include "base/time.h"

HF_BEGIN_DECLS

/*
 * The operator asks for a report from after an act on this node (annotation holdfast.dev/report of DeviceHealth).
 * Input: the annotation's text, and when the probes last looked.  Output: whether to look again, or to report.
 * Invariants: a text is one request, however often it is read.  The answer is never older than the request.  Pure.
 */

/* How long the agent tries to look at the devices.  A driver that does not answer for so long is reported as such
 * by its own detector. */
#define HF_REPORT_REQUEST_TRIES (10 * HF_MINUTE)

struct hf_report_request {
	uint64_t seen; /* hash of the last text; 0: there was none */
	bool waiting;  /* a request is not answered yet */
	hf_time look_at;
};

enum hf_report_request_step {
	HF_REPORT_REQUEST_NONE,   /* nothing to do */
	HF_REPORT_REQUEST_WAITS,  /* not yet time to look */
	HF_REPORT_REQUEST_LOOK,   /* ask the probes to look at the devices */
	HF_REPORT_REQUEST_REPORT, /* the probes have looked: report */
};

/* Reads the text; NULL: there is none.  Fails if the text is no request. */
int hf_report_request_read(struct hf_report_request *request, const char *text, hf_time now,
			   struct hf_error *err) HF_MUST_CHECK;

/* bus_at: when the probe of the bus last looked; driver_at: when the driver was asked what it last answered.  NONE:
 * that probe has never looked, so nothing waits for it.  After the step REPORT the request is answered. */
enum hf_report_request_step hf_report_request_next(struct hf_report_request *request, hf_time now,
						   hf_time bus_at, hf_time driver_at);

HF_END_DECLS

#endif
