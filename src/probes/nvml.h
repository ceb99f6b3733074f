/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_NVML_H
#define HF_PROBES_NVML_H

#include "probes/nvml_record.h"
#include "probes/probe.h"

HF_BEGIN_DECLS

/*
 * The driver's library (NVML), in a child process with a deadline for each look.
 *
 * One that passes its deadline is killed, and that is a sample of its own: the driver hangs.  The
 * library begins in a child's first look, where it may attach one device after the other for minutes,
 * and what is killed then begins again: that look has longer, in silence, and in later children twice
 * as long as it took.  But once a deadline has passed, each further one is such a sample until an
 * answer comes, whoever waits, and children that begin have twice as long from one to the next.
 * While the kernel does not let go of it (it hangs in a system call) no other is started, and each
 * further deadline that passes is one more such sample.  A child that dies or talks nonsense is
 * no evidence of anything: nobody was heard.  Another is started with a backoff.
 */

/* --- the child, watched: no knowledge of what a record means --- */

enum hf_nvml_outcome {
	HF_NVML_ANSWERED,
	HF_NVML_EVENTS,    /* news */
	HF_NVML_TIMED_OUT, /* a look, or the end of one that was killed; each deadline anew */
	HF_NVML_FAILED,    /* died, talked nonsense, could not be started: err says */
};

struct hf_nvml_watch_options {
	/* What is started; ends in a call of hf_nvml_child_main. */
	const char *const *child_argv;
	hf_time deadline; /* of a look; 0: HF_NVML_DEADLINE */
	/* Of a child's looks before the library has begun; at least the other; 0: HF_NVML_FIRST_DEADLINE */
	hf_time first_deadline;
	hf_time backoff;     /* before the next child, doubling … */
	hf_time backoff_max; /* … up to here; 0: a second, five minutes */
	/* record is NULL where there is none; both live until it returns.  May destroy the watch. */
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
/* Let the child go, with all that it holds of the driver; the next look has a new one, which
 * finds what this one cannot (devices that were reset). */
void hf_nvml_watch_renew(struct hf_nvml_watch *watch);

/* --- the probe --- */

struct hf_nvml_options {
	const char *library; /* "" or NULL: off, and it says so */
	const char *const *child_argv;
	hf_time every;                    /* 0: ten seconds */
	hf_time deadline, first_deadline; /* as above */
	hf_time backoff, backoff_max;
	hf_time renew_after; /* a child that sees a lost device is renewed; 0: a minute */
};

struct hf_probe *hf_nvml_probe_create(struct hf_intake *intake,
				      const struct hf_nvml_options *options);

/* What a record means to the brain, by the devices that sysfs has counted: where there are none of NVIDIA's, a driver
 * that is not loaded is no fault, nor is it that the library counts none beside another maker's. */
void hf_nvml_tell(struct hf_intake *intake, const struct hf_nvml_record *record);
/* It passed its deadline: a driver that hangs, but where the devices are all another maker's. */
void hf_nvml_tell_silence(struct hf_intake *intake);
/* By whoever runs the agent: what it may have missed before is nobody's any more. */
void hf_nvml_turned_off(struct hf_intake *intake);
/* Begins what is said where the library is there, and fails for a reason that is no fault by itself. */
#define HF_NVML_ERROR "NVML: error "
/* None of its detectors sees, and nothing is counted. */
void hf_nvml_off(struct hf_intake *intake, const char *why);

HF_END_DECLS

#endif
