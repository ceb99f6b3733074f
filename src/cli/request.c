/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Sends requests for the verbs and runs the loop until the reply is in. Also finds a job by the
 * name that the user gave. */
#include "cli/request.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/model/names.h"
#include "framework/framework.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_ITEMS 500 /* as kubectl pages lists */

struct waiting {
	struct hf_loop *loop;
	bool over;
	struct hf_error err;
	struct hf_doc *object;
	HF_VEC(struct hf_doc *) items;
	char *continue_token;
	hf_time server_time;
};

void hf_cli_reply_release(struct hf_cli_reply *reply)
{
	for (size_t i = 0; i < reply->n_items; i++)
		hf_doc_unref(reply->items[i]);
	free(reply->items);
	hf_doc_unref(reply->object);
	*reply = (struct hf_cli_reply){.object = NULL};
}

static void waiting_release(struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->items.len; i++)
		hf_doc_unref(waiting->items.items[i]);
	HF_VEC_RELEASE(&waiting->items);
	hf_doc_unref(waiting->object);
	free(waiting->continue_token);
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct waiting *waiting = arg;

	waiting->over = true;
	hf_error_clear(&waiting->err);
	free(waiting->continue_token);
	waiting->continue_token = NULL;
	if (reply->code != 0) {
		(void)hf_error_set(&waiting->err, reply->code, "%s", reply->message);
	} else {
		waiting->object = hf_doc_ref(reply->object);
		waiting->server_time = reply->server_time;
		if (!hf_str_is_empty(reply->continue_token))
			waiting->continue_token = hf_xstrdup(reply->continue_token);
		for (size_t i = 0; i < reply->n_items; i++) {
			if (HF_VEC_PUSH(&waiting->items, hf_doc_ref(reply->items[i])))
				continue;
			hf_doc_unref(reply->items[i]);
			(void)hf_error_set(
				&waiting->err, HF_E_TOO_LARGE,
				"the list has more than %d objects: select fewer with -n or -l",
				HF_CLI_ITEMS_MAX);
			break;
		}
	}
	hf_loop_stop(waiting->loop);
}

void hf_cli_run_until(struct hf_cli *cli, const bool *over)
{
	/* Run the loop again if another callback stopped it: only *over ends the wait. */
	while (!*over)
		hf_loop_run(cli->loop);
}

int hf_cli_request(struct hf_cli *cli, const struct hf_request *request,
		   struct hf_cli_reply *ret_reply, struct hf_error *err)
{
	struct waiting waiting = {.items = HF_VEC_INIT(HF_CLI_ITEMS_MAX)};
	HF_AUTOFREE char *token = NULL;
	struct hf_request page = *request;
	int rc = 0;

	hf_assert(cli->store != NULL);
	waiting.loop = cli->loop;
	page.timeout = cli->request_timeout;
	if (page.verb == HF_VERB_LIST && page.limit == 0)
		page.limit = PAGE_ITEMS;
	do {
		waiting.over = false;
		page.continue_token = token;
		(void)hf_store_request(cli->store, &page, on_reply, &waiting);
		hf_cli_run_until(cli, &waiting.over);
		if (token != NULL && hf_streq(token, waiting.continue_token))
			(void)hf_error_set(&waiting.err, HF_E_BAD_REQUEST,
					   "the server's list does not end: its continue token "
					   "leads to the same page again");
		free(token);
		token = hf_steal(&waiting.continue_token);
	} while (waiting.err.code == 0 && token != NULL);
	if (waiting.err.code != 0) {
		rc = waiting.err.code;
		if (err != NULL)
			*err = waiting.err;
	} else {
		*ret_reply = (struct hf_cli_reply){.object = waiting.object,
						   .items = waiting.items.items,
						   .n_items = waiting.items.len,
						   .server_time = waiting.server_time};
		waiting.object = NULL;
		waiting.items.items = NULL;
		waiting.items.len = 0;
	}
	waiting_release(&waiting);
	return rc;
}

const struct hf_resource *hf_cli_resource_of(const struct hf_framework *framework)
{
	const struct hf_resource *resource =
		hf_resource_by_plural(framework->group, framework->plural);

	hf_assert(resource != NULL);
	return resource;
}

static int get_job(struct hf_cli *cli, const struct hf_framework *framework, const char *name,
		   struct hf_doc **ret_job, struct hf_error *err)
{
	struct hf_request request = {.verb = HF_VERB_GET,
				     .resource = hf_cli_resource_of(framework),
				     .ns = cli->ns,
				     .name = name};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	int rc = hf_cli_request(cli, &request, &reply, err);

	if (rc == 0)
		*ret_job = hf_steal(&reply.object);
	return rc;
}

static int find_any_kind(struct hf_cli *cli, const char *name, struct hf_doc **ret_job,
			 const struct hf_framework **ret_framework, struct hf_error *err)
{
	HF_AUTO_DOC found = NULL;

	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		HF_AUTO_DOC job = NULL;
		int rc = get_job(cli, hf_frameworks[i], name, &job, err);
		if (rc == HF_E_NOT_FOUND)
			continue;
		if (rc != 0)
			return rc;
		if (found != NULL)
			return hf_error_set(
				err, HF_E_INVALID,
				"two jobs are named '%s': give the kind too, %s/%s or %s/%s", name,
				(*ret_framework)->singular, name, hf_frameworks[i]->singular, name);
		found = hf_steal(&job);
		*ret_framework = hf_frameworks[i];
	}
	if (found == NULL)
		return hf_error_set(err, HF_E_NOT_FOUND, "no job '%s' in namespace '%s'", name,
				    cli->ns);
	*ret_job = hf_steal(&found);
	return 0;
}

/* Finds the newest job, over all kinds of jobs. If several were created in the same second, takes
 * the last by name. */
static int find_latest(struct hf_cli *cli, struct hf_doc **ret_job,
		       const struct hf_framework **ret_framework, struct hf_error *err)
{
	HF_AUTO_DOC latest = NULL;
	hf_time newest = HF_TIME_NONE;

	for (size_t i = 0; hf_frameworks[i] != NULL; i++) {
		HF_AUTO_CLI_REPLY reply = {.object = NULL};
		struct hf_request request = {.verb = HF_VERB_LIST,
					     .resource = hf_cli_resource_of(hf_frameworks[i]),
					     .ns = cli->ns};
		int rc = hf_cli_request(cli, &request, &reply, err);
		if (rc != 0)
			return rc;
		for (size_t k = 0; k < reply.n_items; k++) {
			hf_time made = 0;
			(void)!hf_time_parse(
				hf_str_or(hf_json_path_str(hf_doc_json(reply.items[k]), "metadata",
							   "creationTimestamp", NULL),
					  ""),
				&made, NULL);
			if (latest != NULL && made < newest)
				continue;
			newest = made;
			hf_doc_unref(latest);
			latest = hf_doc_ref(reply.items[k]);
			*ret_framework = hf_frameworks[i];
		}
	}
	if (latest == NULL)
		return hf_error_set(err, HF_E_NOT_FOUND,
				    "@latest: there are no jobs in namespace '%s'", cli->ns);
	*ret_job = hf_steal(&latest);
	return 0;
}

const char *const hf_cli_kinds[] = {"jobs",   "pods",         "services",       "nodes",
				    "events", "remediations", "devicerollouts", NULL};

const char *hf_cli_node_named(const char *word)
{
	static const char *const kinds[] = {"node/", "nodes/", "no/"};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++)
		if (hf_str_has_prefix(word, kinds[i]))
			return word + strlen(kinds[i]);
	return NULL;
}

static int refuse_kind(const char *kind, struct hf_error *err)
{
	struct hf_nearest search = {.text = kind, .len = strlen(kind)};

	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		hf_nearest_offer(&search, hf_frameworks[i]->singular);
	if (search.nearest != NULL)
		return hf_error_set(err, HF_E_INVALID,
				    "unknown kind of job '%s': did you mean '%s'?", kind,
				    search.nearest);
	return hf_error_set(err, HF_E_INVALID,
			    "unknown kind of job '%s'; 'holdfast version -o json' lists the kinds",
			    kind);
}

int hf_cli_find_job(struct hf_cli *cli, const char *word, struct hf_doc **ret_job,
		    const struct hf_framework **ret_framework, struct hf_error *err)
{
	const char *slash = strchr(word, '/');
	const struct hf_framework *framework;
	HF_AUTOFREE char *kind = NULL;
	int rc;

	if (hf_streq(word, "@latest"))
		return find_latest(cli, ret_job, ret_framework, err);
	if (slash == NULL)
		return find_any_kind(cli, word, ret_job, ret_framework, err);
	kind = hf_xstrndup(word, (size_t)(slash - word));
	framework = hf_framework_by_name(kind);
	if (framework == NULL)
		return refuse_kind(kind, err);
	rc = get_job(cli, framework, slash + 1, ret_job, err);
	if (rc == 0)
		*ret_framework = framework;
	return rc;
}

int hf_cli_list_owned(struct hf_cli *cli, const struct hf_resource *resource, struct hf_doc *job,
		      struct hf_cli_reply *ret_reply, struct hf_error *err)
{
	HF_AUTOFREE char *selector = hf_xasprintf("%s=%s", HF_LABEL_JOB_NAME, hf_doc_name(job));
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = resource,
				     .ns = hf_doc_namespace(job),
				     .label_selector = selector};

	return hf_cli_request(cli, &request, ret_reply, err);
}

int hf_cli_dry_run(const struct hf_cli *cli, bool *ret_dry_run)
{
	const char *value = hf_cli_flag(cli, "dry-run");

	if (value != NULL && !hf_streq(value, "server") && !hf_streq(value, "none"))
		return hf_cli_usage(cli, "--dry-run takes server or none, not '%s'", value);
	*ret_dry_run = value != NULL && hf_streq(value, "server");
	return 0;
}

int hf_cli_patch_job(struct hf_cli *cli, const struct hf_framework *framework, struct hf_doc *job,
		     struct hf_json *patch, struct hf_cli_reply *ret_reply, struct hf_error *err)
{
	HF_AUTO_DOC body = hf_doc_from_json(hf_json_ref(patch));
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = hf_cli_resource_of(framework),
				     .ns = hf_doc_namespace(job),
				     .name = hf_doc_name(job),
				     .body = body,
				     .patch_type = HF_PATCH_MERGE};

	(void)hf_cli_dry_run(cli, &request.dry_run);
	return hf_cli_request(cli, &request, ret_reply, err);
}
