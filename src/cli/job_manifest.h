/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_JOB_MANIFEST_H
#define HF_CLI_JOB_MANIFEST_H

#include "cli/cli.h"
#include "core/model/framework.h"
#include "json/doc.h"

HF_BEGIN_DECLS

/* A job's manifest that has passed every check. */
struct hf_manifest {
	struct hf_doc *doc;
	const struct hf_framework *framework;
};

#define HF_MANIFEST_BYTES_MAX ((size_t)3 << 20) /* the limit of a request's body */

/*
 * Read the one job in the file ("-": stdin) and check it as an API server with strict
 * validation would.  Problems are printed one a line, as
 *
 *     holdfast: job.yaml:12: spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: -1: …
 *
 * and warnings as "holdfast: job.yaml:12: warning: …".  Returns 0, or HF_EXIT_USAGE.
 */
int hf_manifest_load(struct hf_cli *cli, const char *path, struct hf_manifest *ret_manifest);
void hf_manifest_release(struct hf_manifest *manifest);

HF_END_DECLS

#endif
