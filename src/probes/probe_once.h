/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PROBE_ONCE_H
#define HF_PROBES_PROBE_ONCE_H

#include "base/error.h"
#include "base/strbuf.h"
#include "loop/loop.h"

HF_BEGIN_DECLS

/*
 * One look at a node by all of its measuring probes, as text for people: what would the agent see
 * here, and what not, and why?  What it prints on a machine with devices can be kept as a golden
 * file.
 */

struct hf_probe_once_options {
	const char *library;           /* of NVML; "" or NULL: not asked, here and below */
	const char *const *child_argv; /* as in probes/nvml.h */
	const char *sys_root, *proc_root;
	const char *podresources; /* the kubelet's socket */
	hf_time timeout;          /* of each */
};

#define HF_PROBE_ONCE_BYTES_MAX ((size_t)4 << 20)

/* Runs the loop, which must be idle and real, until all have answered or their time is over.
 * Never fails: what could not be seen is in the text. */
void hf_probe_once(struct hf_loop *loop, const struct hf_probe_once_options *options,
		   struct hf_strbuf *sb);

HF_END_DECLS

#endif
