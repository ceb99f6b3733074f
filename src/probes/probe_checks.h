/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_PROBE_CHECKS_H
#define HF_PROBES_PROBE_CHECKS_H

#include "probes/nvml_record.h"
#include "probes/podresources.h"
#include "probes/sysfs.h"

HF_BEGIN_DECLS

/*
 * The checks of `holdfast agent --probe-once`: what the agent can see on this node, one check for
 * each source. Input: the answer of each source, or the reason why there is none. Output: a
 * verdict, a message, and what the administrator must provide. Pure functions.
 *
 *   ok    the source can be read, or the node has no device for it
 *   warn  the agent works without the source: it is turned off, or the node shows no device
 *   fail  the node has devices that the agent cannot see, or the kubelet does not answer
 */
enum hf_probe_verdict { HF_CHECK_OK, HF_CHECK_WARN, HF_CHECK_FAIL };

#define HF_PROBE_CHECKS_MAX 6

struct hf_probe_check {
	const char *name; /* "kernel-log", "pci", "nvml", "ports", "holders", "allocatable" */
	enum hf_probe_verdict verdict;
	char message[256];
	char missing[256]; /* what the administrator must provide; "" unless warn or fail */
};

struct hf_probe_checks {
	size_t len;
	struct hf_probe_check items[HF_PROBE_CHECKS_MAX];
};

/* "ok", "warn", "fail" */
const char *hf_probe_verdict_name(enum hf_probe_verdict verdict);

/* path: of the kernel's log. why: the reason why it cannot be read; NULL: it can. */
void hf_probe_check_log(struct hf_probe_checks *checks, const char *path, const char *why);
void hf_probe_check_pci(struct hf_probe_checks *checks, const struct hf_sysfs_gpus *gpus);
/* record NULL: NVML gave no answer, for the reason `why`. gpus NULL: sysfs was not read. */
void hf_probe_check_nvml(struct hf_probe_checks *checks, const struct hf_nvml_record *record,
			 const char *why, const struct hf_sysfs_gpus *gpus);
void hf_probe_check_ports(struct hf_probe_checks *checks, const struct hf_sysfs_ports *ports);
/* found NULL: the kubelet gave no answer, for the reason `why`. */
void hf_probe_check_holders(struct hf_probe_checks *checks, const struct hf_podresources *found,
			    const char *why);
void hf_probe_check_allocatable(struct hf_probe_checks *checks, const struct hf_podresources *found,
				const char *why, const struct hf_sysfs_gpus *gpus);
/* Adds a check of a source that the administrator turned off with this flag. */
void hf_probe_check_off(struct hf_probe_checks *checks, const char *name, const char *flag);

/* Writes one line for each check: "fail  nvml         REASON; missing: THING". */
void hf_probe_checks_render(const struct hf_probe_checks *checks, struct hf_strbuf *sb);

HF_END_DECLS

#endif
