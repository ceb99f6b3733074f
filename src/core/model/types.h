/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CORE_TYPES_H
#define HF_CORE_TYPES_H

#include "base/compiler.h"
#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * Small types that the headers of core share, and core's limits.
 *
 * Strings in core's structs are NUL-terminated and live as long as the arena or the document they
 * were read from: one step at least ("pass" lifetime).  NULL means that the field was absent,
 * unless a comment says "" is used.
 *
 * Times are API-server time.  HF_TIME_NONE means absent.
 */

/* A number or a switch that may be absent. */
struct hf_opt_int {
	bool set;
	int64_t value;
};
struct hf_opt_bool {
	bool set;
	bool value;
};
#define HF_SOME_INT(v) ((struct hf_opt_int){.set = true, .value = (v)})
#define HF_SOME_BOOL(v) ((struct hf_opt_bool){.set = true, .value = (v)})

/* Replica types of one kind: TFJob has the most, five. */
#define HF_ROLES_MAX 8
/* Ranks of one job, all types together: twice the largest jobs reported.  The limit of every array
 * that is indexed by rank, and of the numbers in a stored ledger. */
#define HF_RANKS_MAX 20000
/* batch/v1 allows 20 rules of 255 exit codes and 20 patterns each. */
#define HF_RULES_MAX 20
#define HF_RULE_VALUES_MAX 255
#define HF_RULE_PATTERNS_MAX 20
/* Restarts kept in status.recovery: the last restart and ten before it. */
#define HF_RECORDS_MAX 11
/* Of status.recovery as JSON.  etcd takes 1.5 MiB an object, and the spec needs its part. */
#define HF_LEDGER_BYTES_MAX ((size_t)64 << 10)

HF_END_DECLS

#endif
