/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_GOLDEN_H
#define HF_TESTS_HARNESS_GOLDEN_H

#include "base/strbuf.h"
#include "json/json.h"

/*
 * Golden files: YAML whose last section is what is expected, indented by two blanks and compared as
 * text, so that the comparison does not depend on any parser of ours.
 *
 *     PROGRAM FOLDER         run every file in it and in the folders below it
 *     PROGRAM --print FILE   print what is actual, to be read and pasted by a person
 */

#define GOLDEN_TEXT_MAX ((size_t)16 << 20)

struct golden_file {
	const char *path;
	const struct hf_json *root; /* of the whole file */
	int section;                /* which of the kind's sections it has; 0: none */
};

struct golden_kind {
	const char *name;
	/* The lines, at the left margin, behind which the expectation stands; the first that a file
	 * has is taken.  Ends with NULL. */
	const char *const *sections;
	/* What is actual, in lines without the indentation. */
	void (*actual)(const struct golden_file *file, struct hf_strbuf *sb);
};

int golden_main(int argc, char **argv, const struct golden_kind *kind);

#endif
