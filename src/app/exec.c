/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast exec in the list of verbs. With a command, main() calls hf_exec_main before it
 * changes the process, so this verb only prints help and the error of a missing command. */
#include "exec/exec.h"

#include "app/verbs.h"

static int verb_exec(struct hf_cli *cli)
{
	return hf_cli_usage(
		cli,
		"no command to run: give it after '--', as in 'holdfast exec -- python train.py'");
}

#define ROW(name, value, help) {name, 0, value, help},
static const struct hf_flag exec_flags[] = {HF_EXEC_FLAGS(ROW){NULL, 0, NULL, NULL}};

const struct hf_cli_verb hf_verb_exec = {
	.name = "exec",
	.summary = "Run a training process and report its progress to the node's agent",
	.usage = "[FLAGS] -- CMD...",
	.examples = "  holdfast exec -- python train.py\n"
		    "  holdfast exec --hang-after 10m -- torchrun train.py\n"
		    "  holdfast exec --keep-code -- sh -c 'exit 3'\n",
	.flags = exec_flags,
	.raw = true,
	.run = verb_exec,
};
