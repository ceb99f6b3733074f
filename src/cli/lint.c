/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast lint: checks manifests with the rules of an API server, without a server. */
#include "cli/verbs_internal.h"

#include "cli/job_manifest.h"
#include "cli/text.h"

static int verb_lint(struct hf_cli *cli)
{
	int worst = HF_EXIT_OK;

	for (int i = 0; i < cli->n_args; i++) {
		struct hf_manifest manifest;
		int rc = hf_manifest_load(cli, cli->args[i], &manifest);
		if (rc != 0) {
			worst = rc;
			continue;
		}
		hf_text_print_safe(cli->out, cli->args[i]);
		fprintf(cli->out, ": %s '%s' is valid\n", manifest.framework->kind,
			hf_doc_name(manifest.doc));
		hf_manifest_release(&manifest);
	}
	return worst;
}

const struct hf_cli_verb hf_verb_lint = {
	.name = "lint",
	.summary = "Check job manifests without a server",
	.usage = "FILE…",
	.group = HF_CLI_RUN_HERE,
	.examples = "  holdfast lint job.yaml\n"
		    "  holdfast lint examples/*.yaml\n"
		    "  generate-job | holdfast lint -\n",
	.args_min = 1,
	.args_max = -1,
	.run = verb_lint,
};
