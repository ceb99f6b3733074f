/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The end of CMD, or of a wait without CMD, as an exit code, a termination message and a state for the agent. */
#include "exec/state_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* See find_cause_start_s(). */
#define CAUSE_S 60
#define CAUSE_STANDS_S 3600
#define STEP_ENDS_S 5

static int make_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void add_left(const struct hf_exec_run *x, const char *why, char *ret_text, size_t size)
{
	if (x->left == 0)
		snprintf(ret_text, size, "%s", why);
	else
		snprintf(ret_text, size, "%s%s%zu processes of the rank did not end by SIGKILL",
			 why, why[0] == '\0' ? "" : "; ", x->left);
}

/* The time from which a cause in stderr explains the end.  As a rule a cause counts for a minute.  If no rank has
 * advanced since the cause, it counts for up to an hour: collectives wait for half an hour before they abort.
 * Another rank may complete a step up to 5 s after the cause. */
static int64_t find_cause_start_s(const struct hf_exec_run *x)
{
	int64_t now_s = x->now_ms / 1000, last_s = x->step_ms / 1000 - STEP_ENDS_S;

	if (!x->any_step)
		return now_s - CAUSE_S;
	if (last_s < now_s - CAUSE_STANDS_S)
		last_s = now_s - CAUSE_STANDS_S;
	return x->ending == HF_EXEC_ENDS_HUNG || last_s < now_s - CAUSE_S ? last_s
									  : now_s - CAUSE_S;
}

/* True if CMD ended by itself or hung: then a cause in its stderr explains the end.  False after a signal to end,
 * an order or a fence. */
bool hf_exec_is_own_end(const struct hf_exec_run *x)
{
	return x->ending == HF_EXEC_ENDS_ITSELF || x->ending == HF_EXEC_ENDS_HUNG ||
	       x->ending == HF_EXEC_ENDS_RULE;
}

static bool is_rule_end(const struct hf_exec_run *x)
{
	return x->rule.name != NULL &&
	       (x->ending == HF_EXEC_ENDS_HUNG || x->ending == HF_EXEC_ENDS_RULE);
}

/* exec ended CMD by a rule. Code 0 here means that CMD was about to end. */
static void set_rule_end(const struct hf_exec_run *x, struct hf_exec_ending *end)
{
	if (end->code == 0)
		return;
	if (x->rule.action == HF_LOG_RULE_FAIL_JOB)
		end->given = HF_EXEC_CAUSE_FAIL_JOB;
	else
		end->given = x->rule.hang ? HF_EXEC_CAUSE_HANG : HF_EXEC_CAUSE_LOG_RULE;
	end->why = x->rule.why;
}

/* Makes the exit code and the explanation of CMD's end. */
void hf_exec_make_ending(struct hf_exec_run *x)
{
	struct hf_exec_ending end = {.code = make_code(x->status), .why = "", .tail = &x->tail};
	int64_t since_s = find_cause_start_s(x);
	enum hf_exec_cause cause = hf_tail_cause(&x->tail, since_s);
	char why[96];

	end.given = end.code;
	if (x->ending == HF_EXEC_ENDS_FENCED) {
		end.given = HF_EXEC_CAUSE_NO_CONTACT;
		end.why = x->fence.why;
	} else if (is_rule_end(x) && x->rule.action == HF_LOG_RULE_FAIL_JOB) {
		/* A rule with action FailJob decides about the job, for every cause. */
		set_rule_end(x, &end);
	} else if (hf_exec_is_own_end(x) && end.code != 0 && cause != HF_EXEC_CAUSE_NONE) {
		end.given = (int)cause;
		end.why = hf_tail_cause_line(&x->tail, since_s);
	} else if (is_rule_end(x)) {
		set_rule_end(x, &end);
	} else if (x->ending == HF_EXEC_ENDS_HUNG && end.code != 0) {
		/* A rank that hung and ended with code 0 had finished: closing devices takes a while. */
		end.given = HF_EXEC_CAUSE_HANG;
		if (x->hung_rank >= 0)
			snprintf(why, sizeof(why), "rank %d reported no step for %u s",
				 (int)x->hung_rank, x->options->hang_after_s);
		else
			snprintf(why, sizeof(why), "no step was reported for %u s",
				 x->options->hang_after_s);
		end.why = why;
	}
	/* By the code 226 the operator learns that exec stopped CMD because the node had no contact with the control
	 * plane.  So even with --keep-code exec does not give CMD's code instead of 226.  After a log rule CMD's code is that of the signal by which exec ended CMD. */
	if (x->options->keep_code && x->ending != HF_EXEC_ENDS_FENCED && !is_rule_end(x))
		end.given = end.code;
	/* If processes outlive the stop that the agent ordered, exec ends with 227: the program is not at fault. */
	if (x->ending == HF_EXEC_ENDS_ORDERED)
		end.given = end.code = HF_EXEC_CODE_BARRIER;
	add_left(x, end.why, x->end_text, sizeof(x->end_text));
	end.why = x->end_text;
	x->end = end;
}

/* Sets the exit code and the reason of an end of exec while CMD does not run. */
void hf_exec_give_code(struct hf_exec_run *x, int code, const char *why)
{
	snprintf(x->end_text, sizeof(x->end_text), "%s", why);
	x->end = (struct hf_exec_ending){
		.code = code, .given = code, .why = x->end_text, .tail = &x->tail};
}

int hf_exec_report_end(struct hf_exec_run *x)
{
	if (x->end.given != 0)
		hf_exec_message_write(x->options->termination_log, x->options->termination_create,
				      &x->end);
	if (x->foreground && !x->background)
		(void)tcsetpgrp(STDIN_FILENO, getpgrp());
	return x->end.given;
}

int hf_exec_report_no_start(struct hf_exec_run *x, int err)
{
	struct hf_exec_ending ending = {.tail = &x->tail};
	char text[512];

	snprintf(text, sizeof(text), "cannot run '%s': %s", x->options->argv[0], strerror(err));
	fprintf(stderr, "holdfast exec: %s\n", text);
	ending.code = ending.given = err == ENOENT ? HF_EXEC_CODE_NOT_FOUND
				     : err == EACCES || err == ENOEXEC || err == EISDIR
					     ? HF_EXEC_CODE_NOT_EXECUTABLE
					     : HF_EXEC_CODE_INTERNAL;
	ending.why = text;
	hf_exec_message_write(x->options->termination_log, x->options->termination_create, &ending);
	return ending.given;
}

void hf_exec_tell_end(struct hf_exec_run *x)
{
	struct hf_process_state *told = &x->orders.told;
	char text[HF_PROCESS_WORDS_MAX + 64];
	size_t len = hf_exec_message_format(&x->end, text, sizeof(text));

	told->code = (uint32_t)x->end.given;
	/* A rule ended CMD by a signal of exec, which is no cause. */
	told->signal =
		WIFSIGNALED(x->status) && !is_rule_end(x) ? (uint32_t)WTERMSIG(x->status) : 0;
	if (x->end.given != x->end.code)
		snprintf(told->cause, sizeof(told->cause), "%s",
			 hf_exec_cause_name((enum hf_exec_cause)x->end.given));
	hf_process_words(text, len, told->words);
	hf_exec_orders_touch(&x->orders);
}
