/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The names and texts that upstream's MPIJob puts into its pods: hostfile, remote shell, host
 * discovery script. Input: the job's name and counts; output: a text in the arena.
 */
#include "framework/mpi_wire_internal.h"

#include "base/compare.h"
#include "base/strbuf.h"
#include "base/str.h"
#include "core/model/names.h"

#include <stdlib.h>

/* bytes; the API server limits a ConfigMap to 1 MiB */
#define TEXT_MAX ((size_t)8 << 20)

const char *hf_mpi_launcher(struct hf_arena *arena, const char *job)
{
	return hf_arena_printf(arena, "%s-launcher", job);
}

const char *hf_mpi_config(struct hf_arena *arena, const char *job)
{
	return hf_arena_printf(arena, "%s-config", job);
}

const char *hf_mpi_hostfile(struct hf_arena *arena, const char *job, int32_t workers, int64_t slots,
			    bool launcher_computes)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	hf_assert(workers >= 0);
	if (launcher_computes)
		hf_strbuf_addf(&text, "%s-launcher slots=%lld\n", job, (long long)slots);
	for (int32_t i = 0; i < workers; i++)
		hf_strbuf_addf(&text, "%s-worker-%d slots=%lld\n", job, i, (long long)slots);
	return hf_arena_strdup(arena, text.len > 0 ? text.data : "");
}

const char *hf_mpi_kubexec(struct hf_arena *arena, const char *main_container)
{
	bool named = !hf_str_is_empty(main_container);

	return hf_arena_printf(arena,
			       "#!/bin/sh\n"
			       "set -x\n"
			       "POD_NAME=$1\n"
			       "shift\n" MPI_KUBECTL_PATH "/kubectl exec ${POD_NAME}%s%s"
			       " -- /bin/sh -c \"$*\"",
			       named ? " --container " : "", named ? main_container : "");
}

const char *hf_mpi_discover_hosts(struct hf_arena *arena, const char *job, const char **workers,
				  size_t workers_len, int64_t slots, bool launcher_computes)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(TEXT_MAX);

	hf_strbuf_addstr(&text, "#!/bin/sh");
	/* The newline behind the launcher's line makes an empty line, as in upstream's script. */
	if (launcher_computes)
		hf_strbuf_addf(&text, "\necho %s-launcher:%lld\n", job, (long long)slots);
	if (workers_len > 0)
		qsort(workers, workers_len, sizeof(*workers), hf_compare_by_name);
	for (size_t i = 0; i < workers_len; i++)
		hf_strbuf_addf(&text, "\necho %s:%lld", workers[i], (long long)slots);
	return hf_arena_strdup(arena, text.data);
}
