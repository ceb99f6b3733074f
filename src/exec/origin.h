/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_ORIGIN_H
#define HF_EXEC_ORIGIN_H

#include "base/compiler.h"

#include <stddef.h>

HF_BEGIN_DECLS

/*
 * Whether a line of a program's stderr may be of another host or rank.  Launchers pass on the lines of other ranks,
 * and some exceptions contain the exception of another rank, so that every rank prints it.  In doubt a line counts as
 * another rank's: a rank without a cause keeps its exit code, but a rank that takes another rank's error for its own
 * blames its node.
 */
enum hf_exec_origin {
	/* the line has no mark: of the same origin as the line before, at first of a process below exec */
	HF_EXEC_ORIGIN_SAME = 0,
	/* a library prints the line at its own failure; no exception contains it */
	HF_EXEC_ORIGIN_OWN,
	/* a launcher's mark shows that this line is of another host or rank */
	HF_EXEC_ORIGIN_RELAYED,
	/* an exception that contains another rank's begins in this line; how many lines it has is unknown */
	HF_EXEC_ORIGIN_OTHERS,
};

/* The line as text: exec/text.h. */
enum hf_exec_origin hf_exec_find_origin(const char *line, size_t len);

HF_END_DECLS

#endif
