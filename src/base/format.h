/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_FORMAT_H
#define HF_BASE_FORMAT_H

#include "base/compiler.h"

#include <stdarg.h>
#include <stddef.h>

HF_BEGIN_DECLS

/*
 * As vsnprintf and snprintf, whatever the format, with the same bytes and the same result.  What most
 * formats here are made of (%s, %.*s, %d, %u, %zu, %lld, %llu, %c and %%, without flags and widths)
 * costs a fraction of theirs.
 */
int hf_vformat(char *ret_text, size_t size, const char *fmt, va_list ap) HF_PRINTF(3, 0);
int hf_format(char *ret_text, size_t size, const char *fmt, ...) HF_PRINTF(3, 4);

HF_END_DECLS

#endif
