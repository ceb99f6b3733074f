/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBELET_QUESTION_H
#define HF_KUBELET_QUESTION_H

#include "base/error.h"
#include "json/json.h"
#include "loop/loop.h"
#include "loop/process.h"

#include <stdbool.h>

/* A child process that answers with one line of JSON: a subcommand of the verb "shim". */
struct hf_question;

/* Called once, from the loop. answer: borrowed for the call; NULL: the child died or did not write JSON,
 * or it was late and was killed. The function may destroy the question. */
typedef void (*hf_answer_fn)(void *arg, const struct hf_json *answer, bool late);

struct hf_question_options {
	struct hf_loop *loop;
	const char *const *argv; /* NULL-terminated; argv[0] is a path */
	/* descriptor for the child's stdin, which stays the caller's; or HF_PROCESS_STDIO_NULL */
	int input;
	bool die_with_parent; /* as in struct hf_process_spec */
	hf_time within;
	hf_answer_fn fn;
	void *arg;
};
int hf_question_ask(const struct hf_question_options *options, struct hf_question **ret_question,
		    struct hf_error *err) HF_MUST_CHECK;
/* Returns the pid of the child, which may run on after its answer. */
pid_t hf_question_pid(const struct hf_question *question);
/* Frees the question; the child is not killed. NULL is allowed; returns NULL. */
struct hf_question *hf_question_destroy(struct hf_question *question);

#endif
