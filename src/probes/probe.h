/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PROBE_H
#define HF_PROBES_PROBE_H

#include "probes/intake.h"

HF_BEGIN_DECLS

/*
 * A probe: what reads one place (the kernel's log, a driver's library, sysfs, the kubelet)
 * and puts what it finds into the intake.  It judges nothing.
 *
 * Each probe has a header of its own with a constructor,
 *
 *     struct hf_probe *hf_NAME_probe_create(struct hf_intake *intake,
 *                                           const struct hf_NAME_options *options);
 *
 * which never fails and touches nothing outside: what cannot be had is told with hf_intake_off,
 * from start on and as often as it changes, and tried again by the probe itself with a backoff.
 * All of a probe runs on the loop of its intake and never blocks it: what may hang lives in a
 * child process with a deadline.  What it reads is hostile: every byte is checked, every list
 * has a limit, and what is odd is "not known" and never a fault.
 *
 * The probe's own struct begins with a struct hf_probe.
 */
struct hf_probe;

struct hf_probe_ops {
	const char *name; /* "kmsg", "nvml", "sysfs", "kubelet": for the page and the log */
	/* The probe reports holdings: poked as well when the node's pods change. */
	bool has_holders;
	void (*start)(struct hf_probe *probe);
	/* Look now rather than at the next turn; may come at any time and often.  May be NULL. */
	void (*poke)(struct hf_probe *probe);
	/* Ends everything it started; no callback of it runs any more. */
	void (*destroy)(struct hf_probe *probe);
};

struct hf_probe {
	const struct hf_probe_ops *ops;
};

HF_END_DECLS

#endif
