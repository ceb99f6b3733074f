/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_ROLLOUT_H
#define HF_CLI_ROLLOUT_H

#include "cli/output.h"
#include "cli/request.h"
#include "json/json.h"

HF_BEGIN_DECLS

/* DeviceRollouts in tables, in `describe` and in `why`. The table is made from the fields as they are, so an
 * object that cannot be read as a whole has a row too. */

#define HF_CLI_ROLLOUT_COLUMNS 7
extern const char *const hf_cli_rollout_headers[HF_CLI_ROLLOUT_COLUMNS];
/* deleted: the row is for an object that was deleted. */
void hf_cli_rollout_row(struct hf_table *table, struct hf_doc *doc, hf_time now, bool deleted);

/* phase: status.phase; NULL: no operator has seen the object yet. */
bool hf_cli_rollout_has_ended(const char *phase);

/* The NAME of "rollout/NAME" or "devicerollout/NAME"; NULL: the word does not name a DeviceRollout. */
const char *hf_cli_rollout_named(const char *word);
/* Print one DeviceRollout for people. Returns an exit code. */
int hf_cli_describe_rollout(struct hf_cli *cli, const char *name, const struct hf_output *output);

/* Explain the state of a DeviceRollout, as JSON: {"summary", "reasons": [{"time", "topic", "text"}]}. The
 * caller unrefs ret_account. */
int hf_cli_why_rollout(struct hf_cli *cli, const char *name, struct hf_json **ret_account,
		       struct hf_error *err) HF_MUST_CHECK;

/* Calls fn for each DeviceRollout that has not ended and lists this node in its status. text: the phase of the node,
 * and why. Does not call fn if DeviceRollouts cannot be read. */
typedef void (*hf_cli_rollout_fn)(void *arg, hf_time at, const char *text);
void hf_cli_rollout_reasons(struct hf_cli *cli, const char *node, hf_cli_rollout_fn fn, void *arg);

HF_END_DECLS

#endif
