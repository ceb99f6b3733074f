/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_ACT_H
#define HF_CLI_ACT_H

#include "cli/request.h"

HF_BEGIN_DECLS

/* What suspend, resume, restart and delete share: the job, a patch, and the reason why. */

#define HF_ACT_FLAG_DRY_RUN                                                                        \
	{                                                                                          \
		"dry-run", 0, "WHERE", "server: have it checked and do nothing"                    \
	}
#define HF_ACT_FLAG_REASON                                                                         \
	{                                                                                          \
		"reason", 0, "TEXT", "why, kept as an event of the job"                            \
	}

/* For each job named on the command line: patch, record the reason as an event with that
 * event_reason, and print "pytorchjob/ddp <done>".  patch is the verb's own. */
int hf_act_patch_all(struct hf_cli *cli, const struct hf_json *patch, const char *event_reason,
		     const char *done);

/* The flag --reason as an event of the job; nothing where it is not given. */
int hf_act_record(struct hf_cli *cli, struct hf_doc *job, const char *event_reason,
		  struct hf_error *err);

HF_END_DECLS

#endif
