/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_LOOK_THREAD_H
#define HF_PROBES_LOOK_THREAD_H

#include "probes/intake.h"

HF_BEGIN_DECLS

/*
 * Runs a probe's look on a thread, with a deadline. Drivers answer reads of sysfs files, and some
 * ask the device first. A look that hangs is reported at each passed deadline, and no other look
 * starts until it returns.
 */
struct hf_look_thread;

#define HF_LOOK_THREAD_DEADLINE (30 * HF_SECOND)

struct hf_look_thread_options {
	struct hf_intake *intake;
	enum hf_intake_probe probe; /* under which its times are counted */
	hf_time deadline;           /* 0: as above */
	/* Memory that the thread fills. The owner reads it only after `looked`. The look thread
	 * owns it and frees it with `release`, perhaps on the thread. */
	void *bench;
	void (*look)(void *bench);
	void (*release)(void *bench);
	/* From the loop: the bench is filled; the deadline has passed (again). */
	void (*looked)(void *arg);
	void (*late)(void *arg);
	void *arg;
};

struct hf_look_thread *hf_look_thread_create(const struct hf_look_thread_options *options);
struct hf_look_thread *hf_look_thread_destroy(
	struct hf_look_thread *thread); /* NULL is fine; returns NULL */
/* The bench may be touched. */
bool hf_look_thread_is_free(const struct hf_look_thread *thread);
/* False: the one before is still under way, or there is no thread to be had. */
bool hf_look_thread_look(struct hf_look_thread *thread);

HF_END_DECLS

#endif
