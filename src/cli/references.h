/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_REFERENCES_H
#define HF_CLI_REFERENCES_H

#include "cli/job_manifest.h"

/*
 * Print a line for each ConfigMap and Secret that the pods of a job need and that is not in the set,
 * and return the number of lines. `holdfast run` has no other objects, so such a pod would wait for
 * ever. References with optional: true are left out. verdict: "warning: " or what stands in its place.
 */
size_t hf_references_missing(struct hf_cli *cli, const struct hf_manifests *set,
			     const char *verdict);

#endif
