/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/connect.h"
#include "app/verbs.h"
#include "cli/cli.h"
#include "json/json.h"
#include "local/shim.h"

#include "base/fs.h"
#include "base/mem.h"

#include <stdlib.h>

static const struct hf_cli_verb *const plane_verbs[] = {&hf_verb_run, &hf_verb_up, &hf_verb_down,
							NULL};

int main(int argc, char **argv)
{
	static const struct hf_cli_verb *const *const tables[] = {plane_verbs, hf_cli_verbs, NULL};
	struct hf_cli cli = {.out = stdout, .err = stderr, .connect = hf_connect};
	struct hf_error err;
	uint32_t seed;
	int rc;

	/* This binary is also what its own kubelet starts inside pods. */
	rc = hf_local_helper_main(argc, argv);
	if (rc >= 0)
		return rc;
	if (hf_random_bytes(&seed, sizeof(seed), &err) != 0)
		return hf_cli_fail(&cli, &err);
	hf_json_seed(seed);
	cli.ns = hf_xstrdup("default");
	rc = hf_cli_main(&cli, tables, argc, (const char *const *)argv);
	hf_disconnect(&cli);
	free(cli.ns);
	return rc;
}
