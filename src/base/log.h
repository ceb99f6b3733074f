/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_LOG_H
#define HF_BASE_LOG_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdio.h>

HF_BEGIN_DECLS

/*
 * The log sink of the process, in the archive base_os, not in base. Only programs log (operator,
 * agent, the command line, main); libraries return errors.
 *
 * A line is a constant message and key/value pairs, so that lines can be searched and counted.
 * Format for people:
 *
 *     2026-11-21T09:00:01.250Z INFO  job running  namespace=default name=ddp
 *
 * Format for machines: JSON with the keys of controller-runtime (level, ts, logger, msg, then the
 * pairs).
 */
enum hf_log_level { HF_LOG_DEBUG, HF_LOG_INFO, HF_LOG_WARN, HF_LOG_ERROR };
enum hf_log_format { HF_LOG_TEXT, HF_LOG_JSON };

/* Sets the sink; call it once, before threads start. out must stay open until the process ends. */
void hf_log_setup(FILE *out, enum hf_log_level level, enum hf_log_format format);
bool hf_log_enabled(enum hf_log_level level);

/* Writes one line. The pairs are const char *key, const char *value, …, and end with NULL. A
 * NULL value is written as "". */
void hf_log(enum hf_log_level level, const char *logger, const char *msg, ...)
	__attribute__((sentinel));

HF_END_DECLS

#endif
