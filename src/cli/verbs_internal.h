/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_VERBS_INTERNAL_H
#define HF_CLI_VERBS_INTERNAL_H

#include "cli/cli.h"
#include "json/json.h"

/* Each verb has its own file. */
extern const struct hf_cli_verb hf_verb_check;
extern const struct hf_cli_verb hf_verb_complete;
extern const struct hf_cli_verb hf_verb_completion;
extern const struct hf_cli_verb hf_verb_delete;
extern const struct hf_cli_verb hf_verb_describe;
extern const struct hf_cli_verb hf_verb_events;
extern const struct hf_cli_verb hf_verb_get;
extern const struct hf_cli_verb hf_verb_lint;
extern const struct hf_cli_verb hf_verb_logs;
extern const struct hf_cli_verb hf_verb_manifests;
extern const struct hf_cli_verb hf_verb_mend;
extern const struct hf_cli_verb hf_verb_restart;
extern const struct hf_cli_verb hf_verb_resume;
extern const struct hf_cli_verb hf_verb_suspend;
extern const struct hf_cli_verb hf_verb_version;
extern const struct hf_cli_verb hf_verb_wait;
extern const struct hf_cli_verb hf_verb_why;

/* Explain what keeps pods off a node, as JSON: {"summary", "reasons": [{"time", "topic",
 * "text"}]}. The caller unrefs ret_account. */
int hf_cli_why_node(struct hf_cli *cli, const char *name, struct hf_json **ret_account,
		    struct hf_error *err) HF_MUST_CHECK;

#endif
