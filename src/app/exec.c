/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast exec in the list of verbs. With a command, main() calls hf_exec_main before it
 * changes the process, so this verb only prints help and the error of a missing command. */
#include "exec/exec.h"

#include "app/verbs.h"

static int verb_exec(struct hf_cli *cli)
{
	if (cli->n_args > 0)
		return hf_cli_usage(
			cli, "'exec' takes no flags before the verb: write 'holdfast exec' first");
	return hf_cli_usage(
		cli,
		"no command to run: give it after '--', as in 'holdfast exec -- python train.py'");
}

const struct hf_cli_verb hf_verb_exec = {
	.name = "exec",
	.summary = "Run a training process and report its progress to the node's agent",
	.usage = "[FLAGS] -- CMD...",
	.group = HF_CLI_ON_CLUSTER,
	.examples = "  holdfast exec -- python train.py\n"
		    "  holdfast exec --hang-after 10m -- torchrun train.py\n"
		    "  holdfast exec --keep-code -- sh -c 'exit 3'\n",
	.flags = hf_exec_flags,
	.args_max = -1,
	.style = HF_FLAGS_COMMAND,
	.run = verb_exec,
};
