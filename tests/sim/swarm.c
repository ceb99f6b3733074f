/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/swarm.h"
#include "sim/seeds.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a worker process shares with the process that waits for it. */
struct worker {
	pid_t pid;
	bool done;                   /* false: the worker died, while it ran `seed` */
	uint64_t seed;               /* the seed that is running */
	unsigned long long failures; /* number of seeds that failed; bad: the first of them */
	uint64_t bad;
	char failure[1024];
	double cpu; /* seconds */
	struct sim_summary summary;
};

struct swarm {
	const struct sim_args *args;
	uint64_t *corpus;
	size_t n_corpus, corpus_size;
	int64_t seeds; /* seeds to run besides those of the corpus */
	time_t begin;
	bool *stop; /* shared by all workers; true: a seed failed, so they stop */
};

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- a seed that failed ---------------------------------------------------------------------- */

static void print_again(const struct sim_options *options, const struct sim_ids *only)
{
	printf("again: ./dev sim --seed %llu%s", (unsigned long long)options->seed,
	       options->narrow_schema ? " --narrow" : "");
	if (only != NULL) {
		printf(" --only ");
		sim_ids_print(only);
	}
	printf(" --verbose\n");
}

/* Runs the seed again, makes the failure small, and prints the story. */
static void tell_failure(const struct sim_options *base)
{
	struct sim_options options = *base;
	struct sim_outcome first, last;
	struct sim_ids kept;

	sim_try(&options, &first);
	if (!first.failed) {
		printf("seed %llu did not fail in the second run\n",
		       (unsigned long long)options.seed);
		sim_ids_release(&first.happened);
		return;
	}
	sim_shrink(&options, &first, &kept);
	options.only = &kept;
	options.story = true;
	sim_try(&options, &last);
	/* A process that died has no story, so it runs once more and prints as it goes. */
	if (strncmp(last.failure, "died", 4) == 0) {
		options.aloud = true;
		sim_ids_release(&last.happened);
		sim_try(&options, &last);
	}
	printf("the failure needs only %zu of the %zu troubles:\n", kept.len, first.happened.len);
	print_again(&options, &kept);
	sim_ids_release(&first.happened);
	sim_ids_release(&last.happened);
	sim_ids_release(&kept);
}

/* --- a worker -------------------------------------------------------------------------------- */

static void note_failure(struct worker *worker, const struct sim_args *args, const char *failure)
{
	if (args->go_on)
		printf("seed %llu: %s\n", (unsigned long long)worker->seed, failure);
	if (worker->failures++ > 0)
		return;
	worker->bad = worker->seed;
	snprintf(worker->failure, sizeof(worker->failure), "%s", failure);
}

static bool run_seed(struct worker *worker, const struct sim_args *args, uint64_t seed, bool *stop)
{
	const struct sim_options options = {
		.seed = seed, .narrow_schema = args->narrow_schema, .unchecked = args->unchecked};
	struct sim_outcome outcome, again;
	struct sim_summary unused = {0};

	worker->seed = seed;
	sim_run(&options, &worker->summary, &outcome);
	if (args->twice && !outcome.failed) {
		sim_run(&options, &unused, &again);
		if (again.digest != outcome.digest) {
			outcome.failed = true;
			snprintf(outcome.failure, sizeof(outcome.failure),
				 "35 the same again: two runs of the seed differ");
		}
		sim_ids_release(&again.happened);
	}
	if (outcome.failed)
		note_failure(worker, args, outcome.failure);
	sim_ids_release(&outcome.happened);
	if (outcome.failed && !args->go_on)
		*stop = true;
	return !outcome.failed || args->go_on;
}

static void work(const struct swarm *swarm, struct worker *worker, int number)
{
	const struct sim_args *args = swarm->args;
	bool good = true;

	for (size_t i = (size_t)number; good && i < swarm->n_corpus; i += (size_t)args->jobs)
		good = run_seed(worker, args, swarm->corpus[i], swarm->stop);
	for (int64_t i = number; good && i < swarm->seeds && !*swarm->stop; i += args->jobs) {
		if (args->seconds > 0 && time(NULL) - swarm->begin >= args->seconds)
			break;
		good = run_seed(worker, args, (uint64_t)args->start + (uint64_t)i, swarm->stop);
	}
	worker->cpu = cpu_seconds();
	worker->done = true;
}

/* --- the swarm ------------------------------------------------------------------------------- */

static void add_to_corpus(void *arg, uint64_t seed, unsigned world)
{
	struct swarm *swarm = arg;

	(void)world;
	if (swarm->n_corpus == swarm->corpus_size) {
		swarm->corpus_size = swarm->corpus_size == 0 ? 64 : 2 * swarm->corpus_size;
		swarm->corpus =
			hf_xrealloc(swarm->corpus, swarm->corpus_size * sizeof(*swarm->corpus));
	}
	swarm->corpus[swarm->n_corpus++] = seed;
}

static int read_corpus(struct swarm *swarm)
{
	if (seeds_read_corpus(swarm->args->corpus, add_to_corpus, swarm))
		return 0;
	fprintf(stderr, "cannot read '%s': %s\n", swarm->args->corpus, strerror(errno));
	return 2;
}

static void add(struct sim_summary *to, const struct sim_summary *from)
{
	to->seeds += from->seeds;
	to->crashes += from->crashes;
	to->leaders += from->leaders;
	to->requests += from->requests;
	to->checked += from->checked;
	to->troubles += from->troubles;
	to->minutes += from->minutes;
	sim_coverage_add(&to->coverage, &from->coverage);
}

static void print_summary(const struct sim_summary *sum, double cpu)
{
	printf("%llu seeds, %llu hours, %llu troubles, %llu deaths of the operator, %llu changes of "
	       "leader, %llu requests, %llu changes checked\n",
	       sum->seeds, sum->minutes / 60, sum->troubles, sum->crashes, sum->leaders,
	       sum->requests, sum->checked);
	if (cpu > 0)
		printf("%.0f seeds a second of one core\n", (double)sum->seeds / cpu);
}

static void wait_for(const struct swarm *swarm, struct worker *worker)
{
	char failure[64];
	int status = 0;

	while (waitpid(worker->pid, &status, 0) != worker->pid)
		;
	if (worker->done)
		return;
	*swarm->stop = true;
	snprintf(failure, sizeof(failure), "died: of signal %d",
		 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	note_failure(worker, swarm->args, failure);
}

/* Prints how many of the requested seeds were not run. */
static void print_left_out(const struct swarm *swarm, unsigned long long seeds)
{
	unsigned long long asked = swarm->n_corpus + (unsigned long long)swarm->args->seeds;

	if (swarm->args->seeds >= 0 && seeds < asked)
		printf("%llu of the %llu seeds were NOT run: %s\n", asked - seeds, asked,
		       *swarm->stop ? "one failed before" : "the time was up (--seconds)");
}

static int wait_for_all(const struct swarm *swarm, struct worker *workers, size_t n)
{
	const struct sim_args *args = swarm->args;
	struct sim_summary sum = {0};
	double cpu = 0;
	const struct worker *bad = NULL;
	unsigned long long failures = 0;

	for (size_t i = 0; i < n; i++) {
		struct worker *worker = &workers[i];

		wait_for(swarm, worker);
		if (bad == NULL && worker->failures > 0)
			bad = worker;
		add(&sum, &worker->summary);
		cpu += worker->cpu;
		failures += worker->failures;
	}
	if (args->coverage)
		sim_coverage_print(&sum.coverage);
	print_summary(&sum, cpu);
	print_left_out(swarm, sum.seeds);
	if (bad == NULL && sum.seeds == 0)
		printf("no seed was run, so nothing was checked\n");
	if (bad == NULL)
		return sum.seeds == 0;
	if (args->go_on)
		printf("%llu seeds failed, see the lines above\n", failures);
	else
		printf("seed %llu: %s\n", (unsigned long long)bad->bad, bad->failure);
	if (!args->brief && !args->go_on)
		tell_failure(&(struct sim_options){.seed = bad->bad,
						   .narrow_schema = args->narrow_schema,
						   .unchecked = args->unchecked});
	return 1;
}

int sim_swarm(const struct sim_args *args)
{
	size_t n = (size_t)args->jobs;
	size_t bytes = n * sizeof(struct worker) + sizeof(bool);
	struct worker *workers =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct swarm swarm = {.args = args,
			      .begin = time(NULL),
			      .seeds = args->seeds >= 0    ? args->seeds
				       : args->seconds > 0 ? INT64_MAX
							   : SIM_SEEDS};
	int rc = 0;

	hf_assert(workers != MAP_FAILED);
	swarm.stop = (bool *)(workers + n);
	if (args->corpus != NULL)
		rc = read_corpus(&swarm);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		pid_t pid = fork();

		hf_assert(pid >= 0);
		if (pid == 0) {
			work(&swarm, &workers[i], (int)i);
			free(swarm.corpus);
			munmap(workers, bytes);
			exit(0);
		}
		workers[i].pid = pid;
	}
	if (rc == 0)
		rc = wait_for_all(&swarm, workers, n);
	free(swarm.corpus);
	munmap(workers, bytes);
	return rc;
}

int sim_swarm_one(const struct sim_args *args)
{
	const struct sim_options options = {.seed = (uint64_t)args->start,
					    .narrow_schema = args->narrow_schema,
					    .unchecked = args->unchecked,
					    .aloud = args->verbose,
					    .only = args->has_only ? &args->only : NULL};
	struct sim_summary summary = {0};
	struct sim_outcome outcome;

	sim_run(&options, &summary, &outcome);
	if (args->coverage)
		sim_coverage_print(&summary.coverage);
	print_summary(&summary, 0);
	printf("digest %016llx\n", (unsigned long long)outcome.digest);
	sim_ids_release(&outcome.happened);
	if (!outcome.failed)
		return 0;
	printf("seed %llu: %s\n", (unsigned long long)options.seed, outcome.failure);
	if (!args->verbose && !args->has_only)
		tell_failure(&options);
	return 1;
}
