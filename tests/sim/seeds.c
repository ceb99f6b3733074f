/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/seeds.h"

#include "base/str.h"
#include "harness/test.h"

bool seeds_read_args(int argc, char **argv, unsigned worlds, struct seeds *seeds)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		bool is_world = hf_streq(argv[i], "--wide");
		int64_t number;

		if (hf_streq(argv[i], "--corpus")) {
			seeds->corpus = argv[i + 1];
			continue;
		}
		if (hf_str_to_i64(argv[i + 1], is_world ? 0 : 1,
				  is_world ? (int64_t)worlds - 1 : INT32_MAX, &number, NULL) != 0)
			return false;
		if (is_world)
			seeds->world = (unsigned)number;
		else if (hf_streq(argv[i], "--seeds"))
			seeds->count = (unsigned)number;
		else if (hf_streq(argv[i], "--start"))
			seeds->start = (unsigned)number;
		else
			return false;
	}
	return true;
}

void seeds_run(const struct seeds *seeds, seed_fn fn, void *arg)
{
	if (seeds->corpus != NULL && !seeds_read_corpus(seeds->corpus, fn, arg))
		fail_msg("cannot read '%s'", seeds->corpus);
	for (unsigned i = 0; i < seeds->count; i++) {
		print_message("seed %u\r", seeds->start + i);
		fn(arg, seeds->start + i, seeds->world);
	}
}
