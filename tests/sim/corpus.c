/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/seeds.h"

#include <stdio.h>

bool seeds_read_corpus(const char *path, seed_fn fn, void *arg)
{
	FILE *file = fopen(path, "r");
	char line[256];

	if (file == NULL)
		return false;
	while (fgets(line, sizeof(line), file) != NULL) {
		unsigned long long seed;

		if (sscanf(line, "wide %llu", &seed) == 1)
			fn(arg, seed, SEEDS_WIDE);
		else if (sscanf(line, "wild %llu", &seed) == 1)
			fn(arg, seed, SEEDS_WILD);
		else if (sscanf(line, "%llu", &seed) == 1)
			fn(arg, seed, SEEDS_NARROW);
	}
	(void)fclose(file);
	return true;
}
