/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_CLI_REQUEST_H
#define HF_CLI_REQUEST_H

#include "cli/cli.h"
#include "core/model/framework.h"

HF_BEGIN_DECLS

/* Sends the requests of verbs, one at a time: each call runs the loop until the reply has
 * arrived. */

struct hf_cli_reply {
	struct hf_doc *object;
	struct hf_doc **items;
	size_t n_items;
	hf_time server_time; /* the server's clock, in whole seconds; HF_TIME_NONE: unknown */
};
void hf_cli_reply_release(struct hf_cli_reply *reply);
#define HF_AUTO_CLI_REPLY HF_CLEANUP(hf_cli_reply_release) struct hf_cli_reply

/* Limit of the objects in one list; a longer list gives HF_E_TOO_LARGE. */
#define HF_CLI_ITEMS_MAX 100000

/* Send a request and wait for the reply.  A LIST reads all pages.  The caller releases ret_reply. */
int hf_cli_request(struct hf_cli *cli, const struct hf_request *request,
		   struct hf_cli_reply *ret_reply, struct hf_error *err) HF_MUST_CHECK;

/*
 * Find the job that the user named: "ddp", "pytorchjob/ddp", "pytorchjobs/ddp", or "@latest" for the
 * newest job.  Without a kind, all kinds are searched, and only one may have a job of that name.
 */
int hf_cli_find_job(struct hf_cli *cli, const char *word, struct hf_doc **ret_job,
		    const struct hf_framework **ret_framework, struct hf_error *err) HF_MUST_CHECK;

/* The kinds that `get` lists, besides those of the frameworks; ends with NULL. */
extern const char *const hf_cli_kinds[];
/* Returns NAME of "node/NAME", "nodes/NAME" or "no/NAME". NULL: the word does not name a node. */
const char *hf_cli_node_named(const char *word);

const struct hf_resource *hf_cli_resource_of(const struct hf_framework *framework);
/* List the pods or services that name the job in their label. */
int hf_cli_list_owned(struct hf_cli *cli, const struct hf_resource *resource, struct hf_doc *job,
		      struct hf_cli_reply *ret_reply, struct hf_error *err) HF_MUST_CHECK;
/* Patch a job by a merge patch (not its status). With --dry-run the server only checks the
 * patch. */
int hf_cli_patch_job(struct hf_cli *cli, const struct hf_framework *framework, struct hf_doc *job,
		     struct hf_json *patch, struct hf_cli_reply *ret_reply, struct hf_error *err)
	HF_MUST_CHECK;
/* Read --dry-run. Returns 0 and sets *ret_dry_run: true for "server", false for "none" or an
 * absent flag. If the value is wrong, prints a usage error and returns its exit code. */
int hf_cli_dry_run(const struct hf_cli *cli, bool *ret_dry_run);

/* Run the loop until *over is true; a callback must set it. */
void hf_cli_run_until(struct hf_cli *cli, const bool *over);

HF_END_DECLS

#endif
