/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_CAPABILITIES_H
#define HF_APP_CAPABILITIES_H

#include "base/error.h"

#include <stdint.h>

HF_BEGIN_DECLS

/* Gives up all Linux capabilities of the calling thread, and of its children, but those in `kept` (bit N is capability
 * number N of capabilities(7)). Call it before other threads begin. A process without capabilities stays as it is. */
int hf_capabilities_keep(uint64_t kept, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
