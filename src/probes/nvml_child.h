/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_NVML_CHILD_H
#define HF_PROBES_NVML_CHILD_H

#include "probes/nvml_record.h"

HF_BEGIN_DECLS

/*
 * The process that looks: it alone has the driver's library in its memory, and may hang, crash or
 * write nonsense for it.  Each byte that comes on fd 0 is a question, each record on fd 1 an
 * answer or news; the end of fd 0 ends it.  Returns what the process exits with.
 */
int hf_nvml_child_main(const char *library);

HF_END_DECLS

#endif
