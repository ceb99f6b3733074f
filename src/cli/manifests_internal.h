/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_MANIFESTS_INTERNAL_H
#define HF_CLI_MANIFESTS_INTERNAL_H

#include <stddef.h>

/*
 * The files of deploy/, put into the program by tools/embed-manifests: texts with places where
 * the command line may put another value.  What all CRDs have in common is kept once.
 */

enum hf_manifest_slot {
	HF_MANIFEST_TEXT,
	HF_MANIFEST_NAMESPACE, /* text: the namespace unless another is asked for */
	HF_MANIFEST_IMAGE,     /* likewise */
	HF_MANIFEST_ARGS,      /* text: the operator's flags, "[--a]", where none is asked for */
};

struct hf_manifest_chunk {
	enum hf_manifest_slot slot;
	const char *text;
};

enum hf_manifest_section {
	HF_MANIFESTS_CRDS,
	HF_MANIFESTS_DEVICES, /* CRDs that no other operator has */
	HF_MANIFESTS_HEALTH,  /* the CRD of what the operator may do about devices */
	HF_MANIFESTS_OPERATOR,
	HF_MANIFESTS_GANG, /* the operator's rights to pod groups, where a gang scheduler is named */
	HF_MANIFESTS_AGENT, /* only where asked for: it is privileged */
	HF_MANIFESTS_DENY,  /* the rules of the CRDs, for clusters that keep others */
	HF_MANIFESTS_WARN,  /* goes with either */
};

struct hf_manifest {
	enum hf_manifest_section section;
	const char *name; /* of the file */
	const struct hf_manifest_chunk *chunks;
	size_t chunks_len;
};

extern const struct hf_manifest hf_manifests[];
extern const size_t hf_manifests_len;

#endif
