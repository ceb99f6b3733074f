/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_EVENTS_H
#define HF_CLI_EVENTS_H

#include "cli/cli.h"
#include "cli/output.h"

HF_BEGIN_DECLS

/* Make a table of the events of a job and of its pods and services, oldest first. job NULL: all
 * events of the namespace. The caller prints and destroys the table. */
int hf_cli_events(struct hf_cli *cli, struct hf_doc *job, struct hf_table **ret_table,
		  struct hf_error *err) HF_MUST_CHECK;

/* Find the newest Event which says that the server refused to create a pod or service of the job.
 * The caller owns the reference. NULL: there is no such Event. */
int hf_cli_last_refusal(struct hf_cli *cli, struct hf_doc *job, struct hf_doc **ret_event,
			struct hf_error *err) HF_MUST_CHECK;
/* When the Event last happened; HF_TIME_NONE: the Event has no readable time. */
hf_time hf_event_time(const struct hf_json *event);

HF_END_DECLS

#endif
