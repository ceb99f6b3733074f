/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_VERBS_H
#define HF_APP_VERBS_H

#include "cli/cli.h"

/* Verbs that run an embedded plane. */
extern const struct hf_cli_verb hf_verb_run;
extern const struct hf_cli_verb hf_verb_up;
/* Lists the runs that `run` kept. */
extern const struct hf_cli_verb hf_verb_runs;
/* Draws one of them. */
extern const struct hf_cli_verb hf_verb_plot;
/* holdfast operator: runs the operator for an existing cluster. */
extern const struct hf_cli_verb hf_verb_operator;
/* holdfast agent: watches the devices of one node; runs on each node of a cluster. */
extern const struct hf_cli_verb hf_verb_agent;
/* holdfast mend-node: runs in a privileged pod that the operator creates, and performs one act on
 * its node. */
extern const struct hf_cli_verb hf_verb_mend_node;
/* holdfast exec: runs in a pod, around the training process. */
extern const struct hf_cli_verb hf_verb_exec;
/* Follows jobs on one screen. */
extern const struct hf_cli_verb hf_verb_top;
/* Ends the embedded plane of `up`. */
extern const struct hf_cli_verb hf_verb_down;

#endif
