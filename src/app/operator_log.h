/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_OPERATOR_LOG_H
#define HF_APP_OPERATOR_LOG_H

#include "operator/manager.h"

/*
 * What the operator says in the log: a line for each event of a job, each pass that failed
 * and each change of its own state, with controller-runtime's keys (controller, namespace,
 * name, reconcileID, error) and ours (job, generation, pod, node, cause).
 *
 * Each kind of message may come 100 times at once and 10 times a second after; what is left
 * out is counted in the next line of that kind (suppressed=17).  Texts of users are escaped
 * and cut by base/log.
 */
struct hf_operator_log;

#define HF_LOG_BURST 100
#define HF_LOG_PER_SECOND 10

struct hf_operator_log *hf_operator_log_create(struct hf_loop *loop, uint64_t seed);
struct hf_operator_log *hf_operator_log_destroy(struct hf_operator_log *log); /* NULL is fine */

void hf_operator_log_passed(struct hf_operator_log *log, const struct hf_operator_pass *pass);
/* Of a cache (key "pods") or of a job, which passed has told already. */
void hf_operator_log_problem(struct hf_operator_log *log, const char *key, int code,
			     const char *message);
/* Of the Lease or of the look for another operator. */
void hf_operator_log_trouble(struct hf_operator_log *log, const char *what, int code,
			     const char *message);
void hf_operator_log_state(struct hf_operator_log *log, enum hf_manager_state state,
			   const char *why);

/* Whether a line of that kind may be written; ret_suppressed: how many were not before it. */
bool hf_operator_log_allows(struct hf_operator_log *log, const char *kind,
			    unsigned long long *ret_suppressed);

#endif
