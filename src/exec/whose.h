/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_WHOSE_H
#define HF_EXEC_WHOSE_H

#include "base/compiler.h"

#include <stddef.h>

HF_BEGIN_DECLS

/*
 * Whose words a line of a program's stderr is: launchers pass on what ranks of other hosts print, and some exceptions
 * hold what another rank raised, so that every rank prints it.  When in doubt they are another's: a rank that says
 * nothing of its cause keeps its exit code, but one that takes another's for its own blames its node.
 */
enum hf_exec_whose {
	HF_EXEC_WHOSE_UNSAID = 0, /* as those before it; at first, of a process below us */
	HF_EXEC_WHOSE_OWN,        /* as a runtime prints it where it fails: no exception holds it */
	HF_EXEC_WHOSE_RELAYED,    /* of another host, this line alone: it bears a launcher's mark */
	HF_EXEC_WHOSE_OTHERS,     /* others' words begin, for an unknown number of lines */
};

/* The line as text: exec/text.h. */
enum hf_exec_whose hf_exec_whose(const char *line, size_t len);

HF_END_DECLS

#endif
