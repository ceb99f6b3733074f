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

struct hf_act {
	/* Sees the job as it is; what it gives back is patched in.  An error: it cannot be done
	 * to this job.  *ret_patch stays NULL: there is nothing to do, it is so already. */
	int (*prepare)(struct hf_cli *cli, const struct hf_framework *framework, struct hf_doc *job,
		       struct hf_json **ret_patch, struct hf_error *err);
	const char *event_reason; /* of the event that keeps --reason */
	const char *done;         /* "pytorchjob/ddp <done>" is printed */
	const char *already;      /* printed instead where there is nothing to do */
};

/* To each job named on the command line; the code of the first that failed. */
int hf_act_all(struct hf_cli *cli, const struct hf_act *act);

/* HF_E_CONFLICT where the job has come to its end: nothing is done to it any more. */
int hf_act_refuse_ended(struct hf_doc *job, struct hf_error *err) HF_MUST_CHECK;

/* The flag --reason as an event of the job; nothing where it is not given. */
int hf_act_record(struct hf_cli *cli, struct hf_doc *job, const char *event_reason,
		  struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
