/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_GOLDEN_H
#define HF_TESTS_HARNESS_GOLDEN_H

#include "base/strbuf.h"
#include "json/json.h"

/*
 * Golden files: YAML documents whose last section is the expected output, indented by two blanks.
 * The output is compared as text, so that the comparison does not depend on Holdfast's YAML
 * parser. PROGRAM FOLDER tests every file in the folder and the folders below it. PROGRAM --print
 * FILE prints the actual output, which a person can read and paste into the file.
 */

#define GOLDEN_TEXT_MAX ((size_t)16 << 20)

struct golden_file {
	const char *path;
	const struct hf_json *root; /* of the whole file */
	int section;                /* index of the file's section among the sections of the kind */
};

struct golden_kind {
	const char *name;
	/* The lines that begin the expectation, for instance "plan:"; the first of them that a
	 * file has is used. Ends with NULL. */
	const char *const *sections;
	/* Writes the actual output for a file, in lines without the indentation. */
	void (*actual)(const struct golden_file *file, struct hf_strbuf *sb);
};

int golden_main(int argc, char **argv, const struct golden_kind *kind);

#endif
