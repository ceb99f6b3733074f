/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/golden.h"
#include "harness/health_scene.h"

/* The health brain's golden files: see health/README.md for what is in one. */

static void actual(const struct golden_file *file, struct hf_strbuf *sb)
{
	health_scene_run(file->root, sb);
}

int main(int argc, char **argv)
{
	static const char *const sections[] = {"then: |\n", NULL};
	static const struct golden_kind kind = {
		.name = "health golden", .sections = sections, .actual = actual};

	return golden_main(argc, argv, &kind);
}
