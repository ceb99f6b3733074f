/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APP_VERBS_H
#define HF_APP_VERBS_H

#include "cli/cli.h"

/* The verbs that make a plane of their own. */
extern const struct hf_cli_verb hf_verb_run;
extern const struct hf_cli_verb hf_verb_up;
/* The operator alone, for a cluster that there is. */
extern const struct hf_cli_verb hf_verb_operator;
/* On each node of such a cluster. */
extern const struct hf_cli_verb hf_verb_agent;
/* In a pod, around the training process. */
extern const struct hf_cli_verb hf_verb_exec;
/* And the one that ends such a plane. */
extern const struct hf_cli_verb hf_verb_down;

#endif
