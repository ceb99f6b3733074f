/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_EVENTS_H
#define HF_CLI_EVENTS_H

#include "cli/cli.h"
#include "cli/output.h"

HF_BEGIN_DECLS

/* The events of a job, its pods and services (NULL: of the namespace), oldest first, as a table
 * for the caller to print and destroy. */
int hf_cli_events(struct hf_cli *cli, struct hf_doc *job, struct hf_table **ret_table,
		  struct hf_error *err) HF_MUST_CHECK;

/* What the server said last when it refused a pod or service of that job: an Event, the caller's
 * reference; NULL: it has refused none, as far as Events go back. */
int hf_cli_last_refusal(struct hf_cli *cli, struct hf_doc *job, struct hf_doc **ret_event,
			struct hf_error *err) HF_MUST_CHECK;
/* When it was seen last; HF_TIME_NONE: it does not say. */
hf_time hf_event_time(const struct hf_json *event);

HF_END_DECLS

#endif
