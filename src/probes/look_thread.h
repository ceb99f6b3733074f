/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_LOOK_THREAD_H
#define HF_PROBES_LOOK_THREAD_H

#include "probes/intake.h"

HF_BEGIN_DECLS

/*
 * Runs a probe's look on a thread, with a deadline, because the read of a sysfs file may hang:
 * drivers answer it, and some ask the device first. At each deadline that passes without an end of
 * the look, `late` is called. No other look starts until the look has ended.
 */
struct hf_look_thread;

#define HF_LOOK_THREAD_DEADLINE (30 * HF_SECOND)

struct hf_look_thread_options {
	struct hf_intake *intake;
	/* the probe for which the intake counts the times of the looks */
	enum hf_intake_probe probe;
	hf_time deadline; /* 0: HF_LOOK_THREAD_DEADLINE */
	/* Memory that the thread fills. The caller reads it only after `looked`. The look thread
	 * owns it and frees it with `release`, perhaps on the thread. */
	void *bench;
	void (*look)(void *bench);
	void (*release)(void *bench);
	/* Called from the loop. looked: the look ended, and the bench is filled. late: one more
	 * deadline has passed. */
	void (*looked)(void *arg);
	void (*late)(void *arg);
	void *arg;
};

struct hf_look_thread *hf_look_thread_create(const struct hf_look_thread_options *options);
struct hf_look_thread *hf_look_thread_destroy(
	struct hf_look_thread *thread); /* NULL is fine; returns NULL */
/* The thread is not running, so the caller may touch the bench. */
bool hf_look_thread_is_free(const struct hf_look_thread *thread);
/* Starts a look. False: the look before has not ended, or no thread can be created. */
bool hf_look_thread_look(struct hf_look_thread *thread);

HF_END_DECLS

#endif
