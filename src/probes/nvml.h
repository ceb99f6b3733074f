/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_NVML_H
#define HF_PROBES_NVML_H

#include "probes/nvml_record.h"
#include "probes/probe.h"

HF_BEGIN_DECLS

/*
 * NVML, the driver's library, in a child process with a deadline for each look.
 *
 * A look that passes its deadline is killed and counts as a sample: the driver hangs. The library
 * starts in a child's first look, where it may attach device after device for minutes; killing it
 * then would make the next child start over. So the first look has a longer deadline, and in later
 * children twice the time of a successful start. After the first passed deadline, each further
 * deadline without an answer is one more sample, and each new child has twice the time of the child
 * before.
 *
 * While the kernel keeps the killed child (in a system call), no other child starts, and each
 * further deadline is one more sample. A child that crashes or sends malformed records is no
 * evidence. The next child starts after a backoff.
 */

/* --- the child, watched: no knowledge of what a record means --- */

enum hf_nvml_outcome {
	HF_NVML_ANSWERED,
	HF_NVML_EVENTS, /* news */
	/* a look passed its deadline, or a killed child still lives; at each deadline */
	HF_NVML_TIMED_OUT,
	/* the child crashed, sent malformed bytes or did not start; err has the reason */
	HF_NVML_FAILED,
};

struct hf_nvml_watch_options {
	/* What is started; ends in a call of hf_nvml_child_main. */
	const char *const *child_argv;
	hf_time deadline; /* of a look; 0: HF_NVML_DEADLINE */
	/* Of a child's looks before the library has begun; at least the other; 0: HF_NVML_FIRST_DEADLINE */
	hf_time first_deadline;
	hf_time backoff;     /* before the next child, doubling … */
	hf_time backoff_max; /* … up to here; 0: a second, five minutes */
	/* record is NULL without an answer; record and err live until the callback returns. The
	 * callback may destroy the watch. */
	void (*told)(void *arg, enum hf_nvml_outcome outcome, const struct hf_nvml_record *record,
		     const struct hf_error *err);
	void *arg;
};
#define HF_NVML_DEADLINE (30 * HF_SECOND)
/* Without persistence mode each GPU is attached and loads its firmware, for seconds: 16 of them, with room. */
#define HF_NVML_FIRST_DEADLINE (5 * HF_MINUTE)

struct hf_nvml_watch;

struct hf_nvml_watch *hf_nvml_watch_create(struct hf_loop *loop,
					   const struct hf_nvml_watch_options *options);
struct hf_nvml_watch *hf_nvml_watch_destroy(struct hf_nvml_watch *watch); /* NULL is fine */
/* Look.  One look at a time: false where one is under way, or a child is still to be started. */
bool hf_nvml_watch_ask(struct hf_nvml_watch *watch);
/* Ends the child and so frees its driver handles. The next look starts a new child, which finds
 * reset devices. */
void hf_nvml_watch_renew(struct hf_nvml_watch *watch);

/* --- the probe --- */

struct hf_nvml_options {
	const char *library; /* "" or NULL: off, and reported as off */
	const char *const *child_argv;
	hf_time every;                    /* 0: ten seconds */
	hf_time deadline, first_deadline; /* as above */
	hf_time backoff, backoff_max;
	hf_time renew_after; /* a child that sees a lost device is renewed; 0: a minute */
};

struct hf_probe *hf_nvml_probe_create(struct hf_intake *intake,
				      const struct hf_nvml_options *options);

/* Turns a record into samples and states. sysfs's count decides what a failure means: on a node
 * without NVIDIA devices, an unloaded driver and a count of zero are no faults. */
void hf_nvml_report(struct hf_intake *intake, const struct hf_nvml_record *record);
/* It passed its deadline: a driver that hangs, but where the devices are all another maker's. */
void hf_nvml_report_silence(struct hf_intake *intake);
/* Takes note that the administrator turned NVML off: earlier losses are dropped. */
void hf_nvml_turned_off(struct hf_intake *intake);
/* The prefix of reasons if the library is present and fails without a fault. */
#define HF_NVML_ERROR "NVML: error "
/* Reports all detectors of NVML as off, and its counts as unknown. */
void hf_nvml_off(struct hf_intake *intake, const char *why);

HF_END_DECLS

#endif
