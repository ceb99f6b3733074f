/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The environment variables of CMD: the socket for its reports, and the generation and attempt of the rank. */
#include "exec/state_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest value of PET_RDZV_ID or TORCHELASTIC_RUN_ID to which exec appends the number of the rendezvous. */
#define RENDEZVOUS_BYTES_MAX 1024

#define REPORT_ENV "HOLDFAST_REPORT_SOCKET"
#define GENERATION_ENV "HOLDFAST_GENERATION"
#define ATTEMPT_ENV "HOLDFAST_ATTEMPT"

/* torch's names for the rendezvous. */
static const char *const rendezvous_names[] = {"PET_RDZV_ID", "TORCHELASTIC_RUN_ID"};

static void set_number(const char *name, int64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)number);
	(void)setenv(name, text, 1);
}

/* Appends the number of the rendezvous to torch's names for it: after a restart of the whole job in place the
 * ranks meet under a new name.  All ranks of a generation get the same number, since the agents read it from the
 * job. */
static void name_rendezvous(struct hf_exec_run *x)
{
	int64_t number = x->orders.target.rendezvous;

	for (size_t i = 0; i < HF_ARRAY_LEN(rendezvous_names); i++) {
		char text[RENDEZVOUS_BYTES_MAX];
		const char *own = x->rendezvous[i];

		if (own == NULL || strlen(own) + 24 > sizeof(text))
			continue;
		snprintf(text, sizeof(text), "%s-%lld", own, (long long)number);
		(void)setenv(rendezvous_names[i], number > 0 ? text : own, 1);
	}
}

/* Below another exec, ranks report to the outer exec: it alone gets orders, so it asks the ranks to save and tells the
 * agent their steps.  --hang-after and --save-signal of this exec need the reports here. */
static bool leaves_reports_to_outer(const struct hf_exec_run *x)
{
	return x->nested && x->options->hang_after_s == 0 && x->options->save_signal == 0;
}

void hf_exec_set_environment(struct hf_exec_run *x)
{
	if (x->link.report_fd >= 0 && !leaves_reports_to_outer(x))
		(void)setenv(REPORT_ENV, x->link.report_name, 1);
	if (x->orders.own.known) {
		set_number(GENERATION_ENV, x->orders.own.generation);
		set_number(ATTEMPT_ENV, x->orders.own.attempt);
	}
	name_rendezvous(x);
}

void hf_exec_read_environment(struct hf_exec_run *x)
{
	for (size_t i = 0; i < HF_ARRAY_LEN(rendezvous_names); i++)
		x->rendezvous[i] = getenv(rendezvous_names[i]);
	x->nested = hf_exec_link_is_there(getenv(REPORT_ENV));
	/* Both variables are for this exec. If CMD is an exec too, that exec must not wait for a go, and its output is judged
	 * here. */
	(void)unsetenv(HF_EXEC_HOLD_ENV);
	(void)unsetenv(HF_EXEC_RULES_ENV);
}
