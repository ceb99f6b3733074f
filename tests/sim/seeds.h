/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_SIM_SEEDS_H
#define HF_TESTS_SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The seeds that a program of random worlds runs: those of a corpus first, then a range.
 *
 * A corpus has one seed a line. "wide N" is seed N of a program's wide world. Other lines are comments.
 */

struct seeds {
	unsigned start, count;
	bool wide;          /* the range is of the wide world */
	const char *corpus; /* a file; NULL: none */
};

typedef void (*seed_fn)(void *arg, uint64_t seed, bool wide);

/* Calls fn with each seed of the file. Returns false if it cannot be read; errno tells why. */
bool seeds_read_corpus(const char *path, seed_fn fn, void *arg);
/* Reads --corpus FILE, --start S, --seeds N and, if has_wide, --wide 0|1. What is not given stays as it is. Returns false
 * after wrong use. */
bool seeds_read_args(int argc, char **argv, bool has_wide, struct seeds *seeds);
/* Calls fn with each seed, and prints each seed of the range before. Fails the test if the corpus cannot be read. */
void seeds_run(const struct seeds *seeds, seed_fn fn, void *arg);

#endif
