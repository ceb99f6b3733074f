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
#define HF_MANIFEST_JOBS_MAX 1000 /* limit of the jobs in all files of a command line */

/* The objects that are not jobs, in the order of the files. */
struct hf_manifest_objects {
	struct hf_doc **items;
	size_t len;
};
void hf_manifest_objects_release(struct hf_manifest_objects *objects);

/* The jobs and other objects of several files. */
struct hf_manifests {
	struct hf_manifest *jobs;
	char **job_files; /* the file of each job */
	size_t n_jobs;
	/* the objects that are not jobs, if the embedded store knows their kinds */
	struct hf_manifest_objects objects;
	size_t n_files;
	/* Called for each valid object that is not a job and has rules here: a DeviceRollout. May be
	 * NULL. */
	void (*checked)(void *arg, const char *file, const struct hf_json *object);
	/* Called for each other object that is not a job. known: the embedded store knows the kind, so
	 * the object is in `objects`. May be NULL. */
	void (*passed)(void *arg, const char *file, const struct hf_json *object, bool known);
	/* Called for each file or document that is not meant for Kubernetes: a configuration of another program, for
	 * instance. why: a phrase. NULL: such a document is an error. */
	void (*foreign)(void *arg, const char *file, const char *why);
	void *arg;
	bool here; /* also refuse jobs that can never run on this machine (cli->check_here) */
};

/*
 * Read a file ("-": stdin) with one or more documents, kind List included, and check its jobs as an API
 * server with strict validation would.  Problems are printed one a line, as
 *
 *     holdfast: job.yaml:12: spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: -1: …
 *
 * and warnings as "holdfast: job.yaml:12: warning: …".  Other objects are not checked, but unknown kinds of
 * the jobs' group are errors.  Returns 0, or HF_EXIT_USAGE; jobs without problems are added in any case.
 */
int hf_manifests_add(struct hf_cli *cli, const char *path, struct hf_manifests *set);
void hf_manifests_release(struct hf_manifests *set);

void hf_manifest_release(struct hf_manifest *manifest);

HF_END_DECLS

#endif
