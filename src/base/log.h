/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_BASE_LOG_H
#define HF_BASE_LOG_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdio.h>

HF_BEGIN_DECLS

/*
 * The log sink of the process.  Only programs log (operator, agent, the verbs,
 * main); libraries return errors.  Lives in the archive base_os, not in base.
 *
 * A line is a message that never varies plus key/value pairs, so that it can be
 * searched and counted.  Text for people:
 *
 *     2026-11-21T09:00:01.250Z INFO  job running  namespace=default name=ddp
 *
 * JSON with controller-runtime's keys (level ts logger msg …) for machines.
 */
enum hf_log_level { HF_LOG_DEBUG, HF_LOG_INFO, HF_LOG_WARN, HF_LOG_ERROR };
enum hf_log_format { HF_LOG_TEXT, HF_LOG_JSON };

/* out is borrowed for the life of the process. */
void hf_log_setup(FILE *out, enum hf_log_level level, enum hf_log_format format);
bool hf_log_enabled(enum hf_log_level level);

/* Pairs are const char * key, const char * value, …, NULL.  A NULL value is logged as "". */
void hf_log(enum hf_log_level level, const char *logger, const char *msg, ...)
	__attribute__((sentinel));

HF_END_DECLS

#endif
