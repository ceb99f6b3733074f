/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_ORIGIN_H
#define HF_EXEC_ORIGIN_H

#include "base/compiler.h"

#include <stddef.h>

HF_BEGIN_DECLS

/*
 * Whether a line of a program's stderr may be of another host or rank.  Launchers pass on the lines of other ranks, and some
 * exceptions hold what another rank raised, so that every rank prints it.  In doubt a line is another's: a rank without a
 * cause keeps its exit code, but a rank that takes another's error for its own blames its node.
 */
enum hf_exec_origin {
	HF_EXEC_ORIGIN_SAME = 0, /* as the lines before; at first, a process below this one */
	HF_EXEC_ORIGIN_OWN, /* printed by a library at its failure, never part of an exception */
	HF_EXEC_ORIGIN_RELAYED, /* a launcher's mark shows that this line is of another rank */
	HF_EXEC_ORIGIN_OTHERS, /* an exception of another rank begins here; its length is not known */
};

/* The line as text: exec/text.h. */
enum hf_exec_origin hf_exec_find_origin(const char *line, size_t len);

HF_END_DECLS

#endif
