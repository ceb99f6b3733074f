/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/swarm.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Makes a failure small by delta debugging: it leaves out a part of the troubles, and keeps the
 * rest if the same invariant still breaks. The parts become smaller and smaller.
 */

#define TRIES_MAX 3000
#define IDS_SHARED_MAX 20000

struct shared {
	bool done; /* false: the run's process died */
	bool failed;
	char failure[1024];
	uint64_t digest;
	size_t n_ids;
	uint32_t ids[IDS_SHARED_MAX];
};

void sim_try(const struct sim_options *options, struct sim_outcome *ret_outcome)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	hf_assert(shared != MAP_FAILED);
	fflush(stdout);
	pid = fork();
	hf_assert(pid >= 0);
	if (pid == 0) {
		struct sim_summary summary = {0};
		struct sim_outcome outcome;

		if (!options->story && !options->aloud && freopen("/dev/null", "w", stderr) == NULL)
			_exit(1);
		sim_run(options, &summary, &outcome);
		shared->failed = outcome.failed;
		shared->digest = outcome.digest;
		snprintf(shared->failure, sizeof(shared->failure), "%s", outcome.failure);
		shared->n_ids = outcome.happened.len < IDS_SHARED_MAX ? outcome.happened.len
								      : IDS_SHARED_MAX;
		if (shared->n_ids > 0)
			memcpy(shared->ids, outcome.happened.ids, shared->n_ids * sizeof(uint32_t));
		shared->done = true;
		fflush(stdout);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) != pid)
		;
	*ret_outcome = (struct sim_outcome){.failed = !shared->done || shared->failed,
					    .digest = shared->digest};
	if (shared->done)
		snprintf(ret_outcome->failure, sizeof(ret_outcome->failure), "%s", shared->failure);
	else
		snprintf(ret_outcome->failure, sizeof(ret_outcome->failure), "died: of signal %d",
			 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	for (size_t i = 0; i < shared->n_ids; i++)
		sim_ids_push(&ret_outcome->happened, shared->ids[i]);
	munmap(shared, sizeof(*shared));
}

/* True if both failures are of the same invariant: its name stands before the colon. */
static bool is_same(const char *a, const char *b)
{
	size_t len = strcspn(a, ":");

	return len == strcspn(b, ":") && strncmp(a, b, len) == 0;
}

static bool still_fails(const struct sim_options *base, const struct sim_ids *only,
			const char *failure)
{
	struct sim_options options = *base;
	struct sim_outcome outcome;
	bool same;

	options.only = only;
	options.story = options.aloud = false;
	sim_try(&options, &outcome);
	same = outcome.failed && is_same(outcome.failure, failure);
	sim_ids_release(&outcome.happened);
	return same;
}

static void without(const struct sim_ids *set, size_t from, size_t to, struct sim_ids *ret_rest)
{
	*ret_rest = (struct sim_ids){0};
	for (size_t i = 0; i < set->len; i++)
		if (i < from || i >= to)
			sim_ids_push(ret_rest, set->ids[i]);
}

void sim_shrink(const struct sim_options *options, const struct sim_outcome *failure,
		struct sim_ids *ret_kept)
{
	struct sim_ids kept = {0};
	unsigned tries = 0;

	for (size_t i = 0; i < failure->happened.len; i++)
		sim_ids_push(&kept, failure->happened.ids[i]);
	/* A process that died has not reported its troubles, so every trouble may have happened. */
	for (uint32_t id = 0; kept.len == 0 && id < SIM_TROUBLES * 2000; id++)
		sim_ids_push(&kept, id / 2000 * SIM_ORDINALS + id % 2000);
	sim_ids_sort(&kept);
	for (size_t part = kept.len; part > 0; part /= 2) {
		for (size_t at = 0; at < kept.len && tries < TRIES_MAX;) {
			struct sim_ids rest;

			without(&kept, at, at + part, &rest);
			tries++;
			if (still_fails(options, &rest, failure->failure)) {
				sim_ids_release(&kept);
				kept = rest;
			} else {
				sim_ids_release(&rest);
				at += part;
			}
		}
	}
	*ret_kept = kept;
}
