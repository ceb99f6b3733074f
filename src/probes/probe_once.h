/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PROBE_ONCE_H
#define HF_PROBES_PROBE_ONCE_H

#include "base/strbuf.h"
#include "loop/loop.h"
#include "probes/probe_checks.h"

HF_BEGIN_DECLS

/*
 * One look at a node by all probes that measure, for people: what the agent can see here, what it
 * cannot, and why. Output: a check for each source (probe_checks.h), and the details of all sources
 * as text, which a test can keep as a golden file.
 */

struct hf_probe_once_options {
	/* path of the kernel's log; "" or NULL, here and in the members below: the source is not
	 * read */
	const char *kmsg;
	const char *library;           /* path of NVML's library */
	const char *const *child_argv; /* as in probes/nvml.h */
	const char *sys_root, *proc_root;
	const char *podresources; /* the kubelet's socket */
	hf_time timeout;          /* time limit of each source */
};

#define HF_PROBE_ONCE_BYTES_MAX ((size_t)4 << 20)

/* Runs the loop until each source has answered or has reached its timeout. The loop must be idle
 * and real. Never fails: for a source without an answer, the check and the text have the reason. */
void hf_probe_once(struct hf_loop *loop, const struct hf_probe_once_options *options,
		   struct hf_probe_checks *ret_checks, struct hf_strbuf *sb);

HF_END_DECLS

#endif
