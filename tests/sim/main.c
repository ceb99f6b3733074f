/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "base/str.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * sim [--seeds N] [--start S] [--seed N] [--corpus FILE] [--seconds S] [--narrow] [--verbose]
 *
 * Exit code 0: all seeds hold; 1: one failed (its number and story are printed); 2: usage.
 */
struct args {
	uint64_t start;
	long long seeds, seconds; /* seconds 0: no limit */
	const char *corpus;
	bool narrow, verbose;
};

static int usage(void)
{
	fprintf(stderr, "usage: sim [--seeds N] [--start S] [--seed N] [--corpus FILE] "
			"[--seconds S] [--narrow] [--verbose]\n");
	return 2;
}

static int read_args(int argc, char **argv, struct args *args)
{
	static const struct option options[] = {
		{"seeds", required_argument, NULL, 'n'},   {"start", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, '1'},    {"corpus", required_argument, NULL, 'c'},
		{"seconds", required_argument, NULL, 't'}, {"narrow", no_argument, NULL, 'w'},
		{"verbose", no_argument, NULL, 'v'},       {0},
	};
	int64_t number = 0;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		bool has_number = c == 'n' || c == 's' || c == '1' || c == 't';

		if (has_number && hf_str_to_i64(optarg, 0, INT64_MAX, &number, NULL) != 0)
			return usage();
		if (c == 'n') {
			args->seeds = number;
		} else if (c == 's') {
			args->start = (uint64_t)number;
		} else if (c == '1') {
			args->start = (uint64_t)number;
			args->seeds = 1;
		} else if (c == 't') {
			args->seconds = number;
		} else if (c == 'c') {
			args->corpus = optarg;
		} else if (c == 'w') {
			args->narrow = true;
		} else if (c == 'v') {
			args->verbose = true;
		} else {
			return usage();
		}
	}
	return optind == argc ? 0 : usage();
}

static bool run_seed(uint64_t seed, const struct args *args, struct sim_summary *summary)
{
	const struct sim_options options = {
		.seed = seed, .narrow = args->narrow, .aloud = args->verbose};

	if (sim_run(&options, summary))
		return true;
	printf("again: sim --seed %llu%s --verbose\n", (unsigned long long)seed,
	       args->narrow ? " --narrow" : "");
	return false;
}

/* Seeds that once failed, a number a line, "#" for comments. */
static int run_corpus(const struct args *args, struct sim_summary *summary, long long *ran)
{
	FILE *file = fopen(args->corpus, "r");
	char line[256];
	int rc = 0;

	if (file == NULL) {
		fprintf(stderr, "cannot read '%s': %s\n", args->corpus, strerror(errno));
		return 2;
	}
	while (rc == 0 && fgets(line, sizeof(line), file) != NULL) {
		unsigned long long seed;

		if (sscanf(line, "%llu", &seed) != 1)
			continue;
		rc = run_seed(seed, args, summary) ? 0 : 1;
		++*ran;
	}
	fclose(file);
	return rc;
}

int main(int argc, char **argv)
{
	struct args args = {.start = 1, .seeds = 100};
	struct sim_summary summary = {0};
	time_t begin = time(NULL);
	long long ran = 0;
	int rc = read_args(argc, argv, &args);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (rc == 0 && args.corpus != NULL)
		rc = run_corpus(&args, &summary, &ran);
	for (long long i = 0; rc == 0 && i < args.seeds; i++) {
		if (args.seconds > 0 && time(NULL) - begin >= args.seconds)
			break;
		rc = run_seed(args.start + (uint64_t)i, &args, &summary) ? 0 : 1;
		ran++;
	}
	printf("%lld seeds, %u deaths of the operator, %u changes of leader, %llu requests, %llu "
	       "changes checked\n",
	       ran, summary.crashes, summary.leaders, summary.requests, summary.checked);
	return rc;
}
