/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_SEEDS_H
#define HF_TESTS_SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The seeds that a program of random worlds runs: those of a corpus first, then a range.
 *
 * A program may have several worlds: 0, 1 "wide" and 2 "wild". A corpus has one seed a line. "wide N" is seed N of
 * world 1, and "wild N" of world 2. Other lines are comments.
 */

enum seeds_world { SEEDS_NARROW, SEEDS_WIDE, SEEDS_WILD };

struct seeds {
	unsigned start, count;
	unsigned world;     /* of the range */
	const char *corpus; /* a file; NULL: none */
};

typedef void (*seed_fn)(void *arg, uint64_t seed, unsigned world);

/* Calls fn with each seed of the file. Returns false if it cannot be read; errno tells why. */
bool seeds_read_corpus(const char *path, seed_fn fn, void *arg);
/* Reads --corpus FILE, --start S, --seeds N and --wide WORLD, of which the program has all below `worlds`. What is not
 * given stays as it is. Returns false after wrong use. */
bool seeds_read_args(int argc, char **argv, unsigned worlds, struct seeds *seeds);
/* Calls fn with each seed, and prints each seed of the range before. Fails the test if the corpus cannot be read. */
void seeds_run(const struct seeds *seeds, seed_fn fn, void *arg);

#endif
