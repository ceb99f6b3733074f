/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_CAUSE_H
#define HF_EXEC_CAUSE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * The exit codes of `holdfast exec` by cause, for the rules of a podFailurePolicy and for the operator.  They differ
 * from the usual codes of programs (1 to 127) and of signals (128 + n).
 */
enum hf_exec_cause {
	HF_EXEC_CAUSE_NONE = 0,
	HF_EXEC_CAUSE_DEVICE_FATAL = 220,
	HF_EXEC_CAUSE_DEVICE_TRANSIENT = 221,
	HF_EXEC_CAUSE_FABRIC = 222,
	HF_EXEC_CAUSE_STRAGGLER = 223, /* reserved: exec ends no process because it is slow */
	HF_EXEC_CAUSE_DRIVER = 224,
	HF_EXEC_CAUSE_HANG = 225,
	HF_EXEC_CAUSE_NO_CONTACT = 226, /* the fence has ended CMD: fence.c */
	HF_EXEC_CAUSE_LOG_RULE = 228,   /* a number in CMD's output broke a log rule */
	HF_EXEC_CAUSE_FAIL_JOB = 229,   /* a log rule with action FailJob was broken */
};

/* "device-fatal", …; "" for NONE */
const char *hf_exec_cause_name(enum hf_exec_cause cause);

/*
 * The cause of a failure that a line of a program's stderr names.  The line must hold a whole error message of a
 * library (errors.def) behind a form that the library or a framework prints before it (forms.def).  The same words in
 * a program's own sentence name no cause, nor does an error that may also follow from a peer's death or from a
 * mistake of the program.  exec/origin.h tells whether the line may be another rank's.
 */
enum hf_exec_cause hf_exec_cause_of(const char *line, size_t len);

/* Whether the line is the first line of an error that a program prints in two lines: "CUDA Runtime Error at:
 * FILE:LINE". */
bool hf_exec_cause_is_head(const char *line, size_t len);
/* The cause that the second line of an error of two lines names. */
enum hf_exec_cause hf_exec_cause_below(const char *line, size_t len);

HF_END_DECLS

#endif
