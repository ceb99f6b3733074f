/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_MANIFESTS_INTERNAL_H
#define HF_CLI_MANIFESTS_INTERNAL_H

#include <stddef.h>

/*
 * The files of deploy/, which tools/embed-manifests puts into the program. A file is a list of
 * chunks of text. A chunk that the command line can replace, such as the image, is called a slot.
 * Text that all CRDs have in common is stored once.
 */

enum hf_manifest_slot {
	HF_MANIFEST_TEXT,
	HF_MANIFEST_NAMESPACE, /* text: the default namespace */
	HF_MANIFEST_IMAGE,     /* text: the default image */
	HF_MANIFEST_ARGS,      /* text: the operator's default flags, "[--a]" */
};

struct hf_manifest_chunk {
	enum hf_manifest_slot slot;
	const char *text;
};

enum hf_manifest_section {
	HF_MANIFESTS_CRDS,
	HF_MANIFESTS_DEVICES, /* CRDs that only Holdfast has */
	HF_MANIFESTS_HEALTH,  /* the CRDs HealthPolicy, Remediation and DeviceRollout */
	HF_MANIFESTS_OPERATOR,
	HF_MANIFESTS_GANG, /* roles for pod groups; printed if a gang scheduler is named */
	/* the agent; printed only with --agent, because the agent is privileged */
	HF_MANIFESTS_AGENT,
	/* the namespace of the actor's pods and of the Leases of nodes, and its policies: for
	 * --mender and --rollouts */
	HF_MANIFESTS_MEND,
	/* the actor that resets GPUs and reboots nodes; printed only with --mender, because its
	 * pods are privileged */
	HF_MANIFESTS_MENDER,
	/* rollouts of drivers; printed only with --rollouts, because the operator then may change
	 * DaemonSets and cordon nodes */
	HF_MANIFESTS_ROLLOUTS,
	/* the rules of Holdfast's CRDs as admission policies, for a cluster that keeps upstream's
	 * CRDs */
	HF_MANIFESTS_DENY,
	HF_MANIFESTS_WARN, /* warnings, for either CRDs */
};

struct hf_manifest {
	enum hf_manifest_section section;
	const char *name; /* name of the file */
	const struct hf_manifest_chunk *chunks;
	size_t chunks_len;
};

extern const struct hf_manifest hf_manifests[];
extern const size_t hf_manifests_len;

#endif
