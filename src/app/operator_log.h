/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_OPERATOR_LOG_H
#define HF_APP_OPERATOR_LOG_H

#include "operator/manager.h"

/*
 * The operator's log: one line for each event of a job, each failed pass and each change of the
 * operator's state.  Keys are controller-runtime's (controller, namespace, name, reconcileID, error) and
 * Holdfast's (job, generation, pod, node, cause).
 *
 * Each kind of message has a burst of 100 lines and a rate of 10 lines a second.  The next line of the
 * kind has the number of suppressed lines (suppressed=17).  base/log escapes and cuts texts of users.
 */
struct hf_operator_log;

#define HF_LOG_BURST 100
#define HF_LOG_PER_SECOND 10

struct hf_operator_log *hf_operator_log_create(struct hf_loop *loop, uint64_t seed);
struct hf_operator_log *hf_operator_log_destroy(struct hf_operator_log *log); /* NULL is fine */

void hf_operator_log_passed(struct hf_operator_log *log, const struct hf_operator_pass *pass);
/* Log a problem of a cache (key "pods").  Problems of jobs are left out: hf_operator_log_passed logs
 * them. */
void hf_operator_log_problem(struct hf_operator_log *log, const char *key, int code,
			     const char *message);
/* Log an error of the operator's Lease, or of the search for another operator in the cluster. */
void hf_operator_log_trouble(struct hf_operator_log *log, const char *what, int code,
			     const char *message);
void hf_operator_log_state(struct hf_operator_log *log, enum hf_manager_state state,
			   const char *why);

/* Ask whether the rate limit allows one more line of the kind. ret_suppressed: how many lines of
 * the kind were suppressed since the last allowed one. */
bool hf_operator_log_allows(struct hf_operator_log *log, const char *kind,
			    unsigned long long *ret_suppressed);

#endif
