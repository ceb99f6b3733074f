/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PROBE_H
#define HF_PROBES_PROBE_H

#include "probes/intake.h"

HF_BEGIN_DECLS

/*
 * A probe reads one source (the kernel's log, a driver's library, sysfs, the kubelet) and puts
 * what it finds into the intake. A probe judges nothing.
 *
 * Each probe has a header of its own with a constructor:
 *
 *     struct hf_probe *hf_NAME_probe_create(struct hf_intake *intake,
 *                                           const struct hf_NAME_options *options);
 *
 * The constructor never fails and touches nothing outside the probe. If a probe cannot read its
 * source, it reports that with hf_intake_off, from `start` on and at each change, and tries again
 * with a backoff. A probe runs on the loop of its intake and never blocks the loop: a read that
 * may hang runs on a thread or in a child process, with a deadline. A source is hostile: the probe
 * checks every byte, every list has a limit, and an odd value is "not known" and never a fault.
 *
 * Each probe's own struct begins with a struct hf_probe.
 */
struct hf_probe;

struct hf_probe_ops {
	/* "kmsg", "nvml", "sysfs", "kubelet"; used on the agent's page and in the log */
	const char *name;
	/* true: the probe reports holdings, so it is poked too when the node's pods change */
	bool has_holders;
	void (*start)(struct hf_probe *probe);
	/* Asks for a look now rather than at the next interval. May be called at any time and
	 * often. NULL: the probe has none. */
	void (*poke)(struct hf_probe *probe);
	/* An act on the node has ended: the probe need not stay off the devices any longer. NULL: the probe never does. */
	void (*resume)(struct hf_probe *probe);
	/* Ends everything that the probe started. No callback of the probe runs after this. */
	void (*destroy)(struct hf_probe *probe);
};

struct hf_probe {
	const struct hf_probe_ops *ops;
};

HF_END_DECLS

#endif
