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
 * If a look passes its deadline, the watch kills the child and reports a sample: the driver hangs.
 * The library starts in a child's first look, where it may attach device after device for minutes.
 * If it were killed then, the next child would have to start over. So a child's first look has a
 * longer deadline; after a successful start, the deadline of later starts is twice the time of
 * that start. While no answer comes, each further deadline is one more sample, and each new child
 * has twice the time of the child before.
 *
 * While the kernel keeps the killed child (in a system call), no other child starts, and each
 * further deadline is one more sample. If a child crashes or sends malformed records, that is no
 * evidence of a fault. The next child starts after a backoff.
 *
 * The actor of a reset kills the child, because it keeps the devices open. A child that started in the middle of the
 * reset would fail it. So after a kill by another program the next child starts only after hf_nvml_watch_resume, or
 * after a while.
 */

/* --- the watch of the child, which does not know what a record means --- */

enum hf_nvml_outcome {
	HF_NVML_ANSWERED,
	HF_NVML_EVENTS, /* the library reported events, without a question of the watch */
	/* a look passed its deadline, or a killed child has not ended; once for each deadline that
	 * passes */
	HF_NVML_TIMED_OUT,
	/* the child crashed, sent malformed bytes or did not start; err has the reason */
	HF_NVML_FAILED,
};

struct hf_nvml_watch_options {
	/* The command line of the child. The child's program must call hf_nvml_child_main. */
	const char *const *child_argv;
	hf_time deadline; /* how long the child may take for one look; 0: HF_NVML_DEADLINE */
	/* Deadline of a look in which the child has yet to start the library; at least `deadline`;
	 * 0: HF_NVML_FIRST_DEADLINE */
	hf_time first_deadline;
	/* wait before the next child is started; it doubles after each failure up to backoff_max;
	 * 0: one second and five minutes */
	hf_time backoff;
	hf_time backoff_max;
	/* How long no child starts after another program has killed one; 0: HF_NVML_YIELD */
	hf_time yield;
	/* Reports an outcome. record is NULL if there is no answer. record and err are valid until
	 * the callback returns. The callback may destroy the watch. */
	void (*told)(void *arg, enum hf_nvml_outcome outcome, const struct hf_nvml_record *record,
		     const struct hf_error *err);
	void *arg;
};
#define HF_NVML_DEADLINE (30 * HF_SECOND)
/* A reset of a device takes 10 s. */
#define HF_NVML_YIELD (30 * HF_SECOND)
/* Without persistence mode, the start attaches each GPU and loads its firmware, which takes
 * seconds: enough for 16 GPUs. */
#define HF_NVML_FIRST_DEADLINE (5 * HF_MINUTE)

struct hf_nvml_watch;

struct hf_nvml_watch *hf_nvml_watch_create(struct hf_loop *loop,
					   const struct hf_nvml_watch_options *options);
struct hf_nvml_watch *hf_nvml_watch_destroy(struct hf_nvml_watch *watch); /* NULL is fine */
/* Starts a look. False: a look is under way, or the next child has to wait for its backoff. */
bool hf_nvml_watch_ask(struct hf_nvml_watch *watch);
/* The devices are free again for a child, if another program has killed the last one. */
void hf_nvml_watch_resume(struct hf_nvml_watch *watch);
/* Kills the child, which frees its handles to the driver. The next look starts a new child, which
 * can see reset devices. */
void hf_nvml_watch_renew(struct hf_nvml_watch *watch);

/* --- the probe --- */

struct hf_nvml_options {
	/* name of the library; "" or NULL: the probe is off and reports that */
	const char *library;
	const char *const *child_argv;
	hf_time every;                    /* 0: ten seconds */
	hf_time deadline, first_deadline; /* as above */
	hf_time backoff, backoff_max, yield;
	/* how long a child may see a lost device before a new child replaces it; 0: one minute */
	hf_time renew_after;
};

struct hf_probe *hf_nvml_probe_create(struct hf_intake *intake,
				      const struct hf_nvml_options *options);

/* Turns a record into samples and states of detectors. The number of NVIDIA devices in sysfs
 * decides what a failure means: if it is 0, an unloaded driver and a count of zero are no
 * faults. */
void hf_nvml_report(struct hf_intake *intake, const struct hf_nvml_record *record);
/* A look passed its deadline: reports a hanging driver, unless all devices of the node are of
 * another maker. */
void hf_nvml_report_silence(struct hf_intake *intake);
/* The administrator turned NVML off: the brain drops earlier reports of lost devices, which nothing
 * could take back. */
void hf_nvml_turned_off(struct hf_intake *intake);
/* Prefix of the reason if the library is present and fails in a way that is no fault of a
 * device. */
#define HF_NVML_ERROR "NVML: error "
/* Reports all detectors of NVML as off, and the count of devices by NVML as unknown. */
void hf_nvml_off(struct hf_intake *intake, const char *why);

HF_END_DECLS

#endif
