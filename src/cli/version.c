/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast version: prints the version, and with -o json the kinds of jobs too. */
#include "cli/verbs_internal.h"

#include "base/str.h"
#include "framework/framework.h"
#include "json/json.h"

static int verb_version(struct hf_cli *cli)
{
	const char *output = hf_cli_flag(cli, "output");

	if (output == NULL) {
		fprintf(cli->out, "holdfast %s\n", HF_VERSION);
		return HF_EXIT_OK;
	}
	if (!hf_streq(output, "json"))
		return hf_cli_usage(cli, "-o takes only json with this verb, not '%s'", output);

	HF_AUTO_JSON object = hf_json_object();
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_json *kinds = hf_json_ensure_array(object, "kinds");
	hf_json_set_str(object, "version", HF_VERSION);
	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		hf_json_append(kinds, hf_json_string(hf_frameworks[i]->kind));
	hf_json_write(object, HF_JSON_INDENTED, &text);
	fprintf(cli->out, "%s\n", text.data);
	return HF_EXIT_OK;
}

static const struct hf_flag version_flags[] = {
	{"output", 'o', "FORMAT", "json: the version and the kinds of jobs", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_version = {
	.name = "version",
	.summary = "Print the version",
	.usage = "[-o json]",
	.group = HF_CLI_LOOK,
	.examples = "  holdfast version\n"
		    "  holdfast version -o json\n"
		    "  holdfast --version\n",
	.flags = version_flags,
	.run = verb_version,
};
