/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PROBES_NVML_CHILD_H
#define HF_PROBES_NVML_CHILD_H

#include "probes/nvml_record.h"

HF_BEGIN_DECLS

/*
 * Main function of the child process, which alone loads the driver's library: the library may hang,
 * crash or write nonsense without harm to the agent. Each byte on fd 0 is a question. Each record
 * on fd 1 is an answer or reports events. The child ends at the end of fd 0. Returns the exit code.
 */
int hf_nvml_child_main(const char *library);

HF_END_DECLS

#endif
