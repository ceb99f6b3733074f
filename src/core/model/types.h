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
 * Strings in core's structs are NUL-terminated and live as long as the arena or the document from
 * which they were read: one step at least ("pass" lifetime).  NULL means that the field was absent,
 * unless a comment says that "" is used.  Times are API-server time.  HF_TIME_NONE means absent.
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

/* The most replica types of one kind.  TFJob has five, more than any other kind. */
#define HF_ROLES_MAX 8
/* The most ranks of one job, all types together: twice the largest jobs reported.  This limits
 * every array that is indexed by rank, and the numbers in a stored ledger. */
#define HF_RANKS_MAX 20000
/* Kubernetes' default of spec.terminationGracePeriodSeconds. */
#define HF_POD_GRACE_SECONDS 30
/* The most rules of a podFailurePolicy.  batch/v1 allows 20 rules of 255 exit codes and 20 patterns
 * each. */
#define HF_RULES_MAX 20
#define HF_RULE_VALUES_MAX 255
#define HF_RULE_PATTERNS_MAX 20
/* How many restarts status.recovery keeps: the last one and ten before it. */
#define HF_RECORDS_MAX 11
/* The most bytes of status.recovery as JSON.  etcd takes 1.5 MiB for an object, and the spec needs
 * its part. */
#define HF_LEDGER_BYTES_MAX ((size_t)64 << 10)

HF_END_DECLS

#endif
