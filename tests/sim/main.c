/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/swarm.h"

#include "base/str.h"
#include "sim/crashes.h"
#include "sim/pool.h"

#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

/*
 * The program sim: reads the options, then runs one seed, many seeds, or the scenarios in which
 * the operator dies once (crashes.c). A failed seed runs again,
 * and prints its story and the command that repeats it.
 */

static void help(FILE *to)
{
	fprintf(to,
		"usage: sim [option…]                    runs many seeds, each a world of its own\n"
		"       sim --seed N [option…]           runs one seed\n"
		"       sim --crash-points [option…]     runs scenarios in which the operator dies once\n"
		"\n"
		"many seeds\n"
		"  --seeds N       number of seeds (100; with --seconds alone, as many as it allows)\n"
		"  --start S       first seed (1)\n"
		"  --corpus FILE   runs the seeds of this file first, without a limit of time\n"
		"  --seconds S     begins no seed after S seconds; prints how many were not run\n"
		"  --jobs J        number of processes (1)\n"
		"  --twice         runs each seed twice; both runs must do the same\n"
		"  --go-on         goes on after a failure; each prints a line; exit code 1 at the end\n"
		"  --brief         names a failure, without its story and without making it small\n"
		"one seed\n"
		"  --only LIST     only these troubles happen: \"reply-lost:3,node-off:0\" or \"none\"\n"
		"  --verbose       prints everything that happens\n"
		"crash points\n"
		"  --scenario NAME runs this scenario alone\n"
		"  --each N        every Nth point of a scenario (1)\n"
		"  --verbose       prints everything that happens, without the deaths\n"
		"seeds, one or many\n"
		"  --coverage      prints which troubles happened in which states of a job\n"
		"  --unchecked I   invariants whose names begin with I may break\n"
		"all\n"
		"  --narrow        CRDs without the fields of Holdfast\n"
		"  --help          prints this text\n"
		"\n"
		"exit code: 0 all held, 1 one failed or none was run, 2 wrong use\n");
}

#define SAID 3

static int usage(void)
{
	help(stderr);
	return 2;
}

static int read_number(const char *text, int64_t max, int64_t *ret_number)
{
	return hf_str_to_i64(text, 0, max, ret_number, NULL);
}

static int read_numbers(int c, struct sim_args *args)
{
	int64_t number = 0;

	if (read_number(optarg, c == 'j' || c == 'a' ? SIM_JOBS_AT_ONCE_MAX : INT64_MAX, &number) !=
	    0)
		return 2;
	switch (c) {
	case 'n': args->seeds = number; break;
	case 't': args->seconds = number; break;
	case 'a': args->each = number > 0 ? (unsigned)number : 1; break;
	case 'j': args->jobs = number > 0 ? (int)number : 1; break;
	default: args->start = number; args->one = args->one || c == '1';
	}
	return 0;
}

static int read_only(struct sim_args *args)
{
	if (sim_ids_parse(optarg, &args->only) == 0)
		return 0;
	fprintf(stderr, "'%s' does not name troubles; their kinds are:\n", optarg);
	for (unsigned kind = 0; kind < SIM_TROUBLES; kind++)
		fprintf(stderr, "  %s\n", sim_troubles[kind].name);
	return SAID;
}

/* Reads one option. Returns 0, 2 (wrong use), or SAID if the error has been printed. */
static int read_arg(int c, struct sim_args *args)
{
	switch (c) {
	case 'o': args->has_only = true; return read_only(args);
	case 'c': args->corpus = optarg; return 0;
	case 'u': args->unchecked = optarg; return 0;
	case 'w': args->narrow_schema = true; return 0;
	case 'v': args->verbose = true; return 0;
	case 'g': args->coverage = true; return 0;
	case 'k': args->go_on = true; return 0;
	case 'b': args->brief = true; return 0;
	case 'p': args->crash_points = true; return 0;
	case 'e': args->scenario = optarg; return 0;
	case '2': args->twice = true; return 0;
	case 'h': args->help = true; return 0;
	case '?': return 2;
	default: return read_numbers(c, args);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seeds", required_argument, NULL, 'n'},
		{"start", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, '1'},
		{"corpus", required_argument, NULL, 'c'},
		{"seconds", required_argument, NULL, 't'},
		{"jobs", required_argument, NULL, 'j'},
		{"only", required_argument, NULL, 'o'},
		{"unchecked", required_argument, NULL, 'u'},
		{"narrow", no_argument, NULL, 'w'},
		{"verbose", no_argument, NULL, 'v'},
		{"coverage", no_argument, NULL, 'g'},
		{"twice", no_argument, NULL, '2'},
		{"go-on", no_argument, NULL, 'k'},
		{"crash-points", no_argument, NULL, 'p'},
		{"scenario", required_argument, NULL, 'e'},
		{"brief", no_argument, NULL, 'b'},
		{"each", required_argument, NULL, 'a'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct sim_args args = {.start = 1, .seeds = -1, .jobs = 1, .each = 1};
	int rc = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	/* The process runs thousands of worlds, so freed memory is not given back to the kernel in
	 * between. Small chunks are merged when they are freed, not all at once. */
	mallopt(M_MXFAST, 0);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	mallopt(M_MMAP_THRESHOLD, 256 << 20);
	sim_pool_use();
	for (int c; rc == 0 && (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
		rc = read_arg(c, &args);
	if (rc == SAID)
		rc = 2;
	else if (rc == 0 && args.help)
		help(stdout);
	else if (rc != 0 || optind != argc ||
		 ((args.has_only || args.verbose) && !args.one && !args.crash_points))
		rc = usage();
	else if (args.crash_points)
		rc = sim_crash_points(args.scenario, args.each, args.narrow_schema, args.verbose);
	else
		rc = args.one ? sim_swarm_one(&args) : sim_swarm(&args);
	sim_ids_release(&args.only);
	return rc;
}
