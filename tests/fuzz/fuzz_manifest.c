/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Input: a manifest for `holdfast run` or `lint`. If it passes the checks, the plane's admission
 * stores the job, the job has a normal form, and a step makes a plan for it. If not, it is refused
 * with lines that a terminal can show.
 */
#include "api/job.h"
#include "apiserver/admission.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/job_manifest.h"
#include "core/step.h"
#include "framework/framework.h"
#include "fuzz/fuzz.h"
#include "harness/random.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define START (1790000000 * HF_SECOND)
#define ARENA_BYTES ((size_t)256 << 20)

static void seeded(void *arg, void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((unsigned char *)bytes)[i] = (unsigned char)test_random(arg);
}

/* Loads the file, and returns its job if the file has one job and no other object. */
static int load_one(struct hf_cli *cli, const char *path, struct hf_manifest *ret_manifest)
{
	struct hf_manifests set = {.n_jobs = 0};
	int rc = hf_manifests_add(cli, path, &set);

	if (rc == 0 && set.n_jobs == 1 && set.objects.len == 0) {
		*ret_manifest = set.jobs[0];
		set.n_jobs = 0;
	}
	hf_manifests_release(&set);
	return rc;
}

/* Loads a file with these bytes. Returns the exit code and what was printed. */
static int load(const uint8_t *data, size_t size, char **ret_printed,
		struct hf_manifest *ret_manifest)
{
	struct hf_cli cli = {.out = stdout};
	char path[64];
	size_t len;
	int fd = memfd_create("manifest", MFD_CLOEXEC), rc;

	hf_assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	cli.err = open_memstream(ret_printed, &len);
	rc = load_one(&cli, path, ret_manifest);
	fclose(cli.err);
	close(fd);
	return rc;
}

static void check_stored(const struct hf_manifest *manifest)
{
	struct hf_loop *loop = hf_loop_create_virtual(START);
	uint64_t seed = 1;
	struct hf_memstore_options options = {.random = seeded, .random_arg = &seed};
	const struct hf_framework *framework = manifest->framework;
	const char *ns = hf_doc_namespace(manifest->doc);
	struct hf_request request = {
		.verb = HF_VERB_CREATE,
		.resource = hf_resource_by_kind(framework->api_version, framework->kind),
		.ns = *ns != '\0' ? ns : "default",
		.body = manifest->doc,
		.field_validation = "Strict",
	};
	struct hf_result result = {0};
	struct hf_memstore *memstore;
	struct hf_error err = {0};

	hf_assert(hf_memstore_create(loop, &options, &memstore, &err) == 0);
	hf_admission_install(memstore, hf_frameworks);
	hf_memstore_apply(memstore, &request, &result);
	if (result.code != 0 && result.code != HF_E_NOT_FOUND && result.code != HF_E_TOO_LARGE) {
		fprintf(stderr, "linted, but refused: %s\n", result.err.text);
		hf_assert(false);
	}
	hf_result_release(&result);
	hf_memstore_destroy(memstore);
	hf_loop_destroy(loop);
}

static void check_planned(const struct hf_manifest *manifest)
{
	HF_AUTO_ARENA arena = hf_arena_create(ARENA_BYTES);
	struct hf_observed seen = {0};
	struct hf_job_view view;
	struct hf_plan plan;
	struct hf_error err = {0};

	hf_job_read(manifest->doc, manifest->framework, NULL, arena, NULL, &view);
	hf_assert(hf_job_step(&view, &seen, START, arena, &plan, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_manifest manifest = {0};
	char *printed = NULL;
	int rc = load(data, size, &printed, &manifest);

	hf_assert(rc == 0 || (rc == HF_EXIT_USAGE && *printed != '\0'));
	for (const char *at = printed; *at != '\0'; at++)
		hf_assert(*at == '\n' || ((unsigned char)*at >= 0x20 && *at != 0x7f));
	free(printed);
	if (rc != 0 || manifest.doc == NULL)
		return 0;
	check_stored(&manifest);
	check_planned(&manifest);
	hf_manifest_release(&manifest);
	return 0;
}
