/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_REQUEST_H
#define HF_CLI_REQUEST_H

#include "cli/cli.h"
#include "core/framework.h"

HF_BEGIN_DECLS

/* One request at a time, for verbs: the loop runs until the reply is in. */

struct hf_cli_reply {
	struct hf_doc *object;
	struct hf_doc **items;
	size_t n_items;
};
void hf_cli_reply_release(struct hf_cli_reply *reply);
#define HF_AUTO_CLI_REPLY HF_CLEANUP(hf_cli_reply_release) struct hf_cli_reply

/* Objects that one verb lists at most: more is a job for a server's own tools. */
#define HF_CLI_ITEMS_MAX 100000

/* LIST follows continue tokens to the end. */
int hf_cli_request(struct hf_cli *cli, const struct hf_request *request,
		   struct hf_cli_reply *ret_reply, struct hf_error *err) HF_MUST_CHECK;

/*
 * What a person calls a job: "ddp", "pytorchjob/ddp", "pytorchjobs/ddp", or "@latest", the one
 * made last.  Without a kind, all kinds are asked, and the name must be there once.
 */
int hf_cli_find_job(struct hf_cli *cli, const char *word, struct hf_doc **ret_job,
		    const struct hf_framework **ret_framework, struct hf_error *err) HF_MUST_CHECK;

const struct hf_resource *hf_cli_resource_of(const struct hf_framework *framework);
/* The pods or services of a job, by its label. */
int hf_cli_list_owned(struct hf_cli *cli, const struct hf_resource *resource, struct hf_doc *job,
		      struct hf_cli_reply *ret_reply, struct hf_error *err) HF_MUST_CHECK;
/* Merge-patch a job; "status" is not touched.  dry_run: --dry-run=server. */
int hf_cli_patch_job(struct hf_cli *cli, const struct hf_framework *framework, struct hf_doc *job,
		     struct hf_json *patch, struct hf_cli_reply *ret_reply, struct hf_error *err)
	HF_MUST_CHECK;
/* --dry-run is absent (0, false), or "server" (0, true); else a usage error was printed. */
int hf_cli_dry_run(const struct hf_cli *cli, bool *ret_dry_run);

/* Run the loop until *over, which some callback sets. */
void hf_cli_run_until(struct hf_cli *cli, const bool *over);

HF_END_DECLS

#endif
