/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/question.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/pipe.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/*
 * Starts a child process and reads one line of JSON from it.
 *
 * Input: the child's command line and a time limit.  Output: one call of the caller's function.
 * The line may have 64 KiB.  A child that is late gets SIGKILL; a child that has answered may run
 * on.
 */

#define ANSWER_BYTES_MAX ((size_t)64 << 10)

struct hf_question {
	hf_answer_fn fn;
	void *arg;
	struct hf_process *child;
	struct hf_reader *reader;
	struct hf_timer *timer;
	struct hf_strbuf answer;
};

struct hf_question *hf_question_destroy(struct hf_question *q)
{
	if (!q)
		return NULL;
	q->reader = hf_reader_destroy(q->reader);
	q->timer = hf_timer_destroy(q->timer);
	q->child = hf_process_destroy(q->child);
	hf_strbuf_release(&q->answer);
	free(q);
	return NULL;
}

pid_t hf_question_pid(const struct hf_question *q)
{
	return hf_process_pid(q->child);
}

static void finish_question(struct hf_question *q, const struct hf_json *answer, bool late)
{
	q->reader = hf_reader_destroy(q->reader);
	hf_timer_disarm(q->timer);
	q->fn(q->arg, answer, late);
}

static void on_answer(void *arg, const char *bytes, size_t len, int read_error HF_UNUSED)
{
	struct hf_question *q = arg;
	HF_AUTO_JSON json = NULL;

	hf_strbuf_add(&q->answer, bytes, len);
	/* Wait for a whole line. len 0 is the end of the output: the child has died without an
	 * answer. */
	if (len > 0 && !memchr(bytes, '\n', len))
		return;
	if (hf_json_parse(q->answer.data, q->answer.len, NULL, &json, NULL) != 0)
		finish_question(q, NULL, false);
	else
		finish_question(q, json, false);
}

static void on_late(void *arg)
{
	struct hf_question *q = arg;

	(void)hf_process_kill(q->child, SIGKILL, NULL);
	finish_question(q, NULL, true);
}

static void on_exit_of_child(void *arg HF_UNUSED, const struct hf_process_exit *ended HF_UNUSED)
{
	/* on_answer is called at the end of the child's output, so nothing is to be done here. */
}

int hf_question_ask(const struct hf_question_options *options, struct hf_question **ret_question,
		    struct hf_error *err)
{
	struct hf_question *q = hf_xcalloc(1, sizeof(*q));
	int out[2] = {-1, -1};
	struct hf_process_spec spec = {.argv = options->argv,
				       .new_session = true,
				       .die_with_parent = options->die_with_parent};
	int rc = hf_pipe_make(out, err);

	q->fn = options->fn;
	q->arg = options->arg;
	hf_strbuf_init(&q->answer, ANSWER_BYTES_MAX);
	q->timer = hf_timer_create(options->loop, on_late, q);
	spec.stdio[0] = options->input;
	spec.stdio[1] = out[1];
	spec.stdio[2] = HF_PROCESS_STDIO_NULL;
	if (!rc)
		rc = hf_process_spawn(options->loop, &spec, on_exit_of_child, q, &q->child, err);
	hf_fd_cleanup(&out[1]);
	if (!rc)
		rc = hf_reader_create(options->loop, out[0], on_answer, q, &q->reader, err);
	if (rc) {
		hf_fd_cleanup(&out[0]);
		hf_question_destroy(q);
		return rc;
	}
	hf_timer_arm(q->timer, options->within);
	*ret_question = q;
	return 0;
}
