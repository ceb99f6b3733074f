/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_EXEC_CAUSE_H
#define HF_EXEC_CAUSE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * Exit codes by cause, for rules of podFailurePolicy and for the operator.  They are clear of a program's own (1–127)
 * and of signals (128 + n).
 */
enum hf_exec_cause {
	HF_EXEC_CAUSE_NONE = 0,
	HF_EXEC_CAUSE_DEVICE_FATAL = 220,
	HF_EXEC_CAUSE_DEVICE_TRANSIENT = 221,
	HF_EXEC_CAUSE_FABRIC = 222,
	HF_EXEC_CAUSE_STRAGGLER = 223, /* kept free: nobody is ended for being slow */
	HF_EXEC_CAUSE_DRIVER = 224,
	HF_EXEC_CAUSE_HANG = 225,
	HF_EXEC_CAUSE_NO_CONTACT = 226, /* it fenced itself: fence.c */
};

/* "device-fatal", …; "" for NONE */
const char *hf_exec_cause_name(enum hf_exec_cause cause);

/*
 * What a line of a program's stderr says of the cause, if it says so without doubt: whole sentences of the
 * driver's and the runtime's own, behind what they or the frameworks put before an error; the same words
 * in a program's own sentence are none.  Never those that also follow from a peer's death or a program's
 * mistake.  Whose line it is, exec/whose.h says.
 */
enum hf_exec_cause hf_exec_cause_of(const char *line, size_t len);

HF_END_DECLS

#endif
