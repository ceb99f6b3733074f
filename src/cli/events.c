/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* holdfast events, and the table of events that `describe` prints: the events of one job and of
 * its pods and services, or of a namespace, oldest first. */
#include "cli/verbs_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/events.h"
#include "cli/facts.h"
#include "cli/output.h"
#include "cli/request.h"
#include "store/resource.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *last_seen(const struct hf_json *event)
{
	const char *text = hf_json_path_str(event, "lastTimestamp", NULL);

	if (hf_str_is_empty(text))
		text = hf_json_path_str(event, "eventTime", NULL);
	if (hf_str_is_empty(text))
		text = hf_json_path_str(event, "metadata", "creationTimestamp", NULL);
	return hf_str_or(text, "");
}

/* Sorts by time, oldest first. Event times have seconds only, so events of one second are sorted by
 * resourceVersion. */
static int compare_by_time(const void *a, const void *b)
{
	struct hf_doc *const *left = a, *const *right = b;
	hf_time left_time = 0, right_time = 0;
	int64_t left_version = 0, right_version = 0;

	(void)(hf_time_parse(last_seen(hf_doc_json(*left)), &left_time, NULL) +
	       hf_time_parse(last_seen(hf_doc_json(*right)), &right_time, NULL));
	if (left_time != right_time)
		return left_time < right_time ? -1 : 1;
	(void)(hf_str_to_i64(hf_doc_resource_version(*left), 0, INT64_MAX, &left_version, NULL) +
	       hf_str_to_i64(hf_doc_resource_version(*right), 0, INT64_MAX, &right_version, NULL));
	return left_version < right_version ? -1 : left_version > right_version;
}

/* True if the event is about the job, or about an object named "JOB-…": a pod or service of the
 * job. */
static bool is_about(const struct hf_json *event, struct hf_doc *job)
{
	const struct hf_json *about = hf_json_get(event, "involvedObject");
	const char *name = hf_str_or(hf_json_path_str(about, "name", NULL), "");
	HF_AUTOFREE char *prefix = NULL;

	if (job == NULL || hf_streq(hf_json_path_str(about, "uid", NULL), hf_doc_uid(job)))
		return true;
	prefix = hf_xasprintf("%s-", hf_doc_name(job));
	return hf_str_has_prefix(name, prefix) &&
	       (hf_streq(hf_json_path_str(about, "kind", NULL), "Pod") ||
		hf_streq(hf_json_path_str(about, "kind", NULL), "Service"));
}

static void add_row(struct hf_table *table, const struct hf_json *event, bool with_namespace,
		    hf_time now)
{
	const struct hf_json *about = hf_json_get(event, "involvedObject");

	if (with_namespace)
		hf_table_cell(
			table, "%s",
			hf_str_or(hf_json_path_str(event, "metadata", "namespace", NULL), "-"));
	hf_table_cell_age(table, last_seen(event), now);
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(event, "type", NULL), ""));
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(event, "reason", NULL), ""));
	hf_table_cell(table, "%s/%s", hf_str_or(hf_json_path_str(about, "kind", NULL), ""),
		      hf_str_or(hf_json_path_str(about, "name", NULL), ""));
	hf_table_cell(table, "%" PRId64, hf_json_i64(hf_json_get(event, "count"), 1));
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(event, "message", NULL), ""));
}

int hf_cli_events(struct hf_cli *cli, struct hf_doc *job, struct hf_table **ret_table,
		  struct hf_error *err)
{
	static const char *const headers[] = {"NAMESPACE", "LAST SEEN", "TYPE",   "REASON",
					      "OBJECT",    "COUNT",     "MESSAGE"};
	bool with_namespace = job == NULL && cli->all_namespaces;
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = &hf_events,
				     .ns = job != NULL           ? hf_doc_namespace(job)
					   : cli->all_namespaces ? NULL
								 : cli->ns};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_table *table;
	int rc = hf_cli_request(cli, &request, &reply, err);

	if (rc != 0)
		return rc;
	if (reply.n_items > 1)
		qsort(reply.items, reply.n_items, sizeof(struct hf_doc *), compare_by_time);
	table = with_namespace ? hf_table_create(headers, HF_ARRAY_LEN(headers))
			       : hf_table_create(headers + 1, HF_ARRAY_LEN(headers) - 1);
	for (size_t i = 0; i < reply.n_items; i++)
		if (is_about(hf_doc_json(reply.items[i]), job))
			add_row(table, hf_doc_json(reply.items[i]), with_namespace,
				hf_loop_wall(cli->loop));
	*ret_table = table;
	return 0;
}

hf_time hf_event_time(const struct hf_json *event)
{
	return hf_facts_time(last_seen(event));
}

int hf_cli_last_refusal(struct hf_cli *cli, struct hf_doc *job, struct hf_doc **ret_event,
			struct hf_error *err)
{
	struct hf_request request = {
		.verb = HF_VERB_LIST, .resource = &hf_events, .ns = hf_doc_namespace(job)};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	int rc = hf_cli_request(cli, &request, &reply, err);

	if (rc != 0)
		return rc;
	if (reply.n_items > 1)
		qsort(reply.items, reply.n_items, sizeof(struct hf_doc *), compare_by_time);
	*ret_event = NULL;
	for (size_t i = reply.n_items; i > 0 && *ret_event == NULL; i--) {
		const struct hf_json *event = hf_doc_json(reply.items[i - 1]);
		if (hf_streq(hf_json_path_str(event, "involvedObject", "uid", NULL),
			     hf_doc_uid(job)) &&
		    hf_str_has_prefix(hf_str_or(hf_json_path_str(event, "reason", NULL), ""),
				      "FailedCreate"))
			*ret_event = hf_doc_ref(reply.items[i - 1]);
	}
	return 0;
}

static int verb_events(struct hf_cli *cli)
{
	const struct hf_framework *framework;
	struct hf_table *table;
	HF_AUTO_DOC job = NULL;
	struct hf_error err;

	if (cli->n_args == 1 && hf_cli_find_job(cli, cli->args[0], &job, &framework, &err) != 0)
		return hf_cli_fail(cli, &err);
	if (hf_cli_events(cli, job, &table, &err) != 0)
		return hf_cli_fail(cli, &err);
	if (hf_table_rows(table) > 0)
		hf_table_print(table, cli->out, true);
	else
		fputs("No events found; the server keeps events for a limited time\n", cli->err);
	hf_table_destroy(table);
	return HF_EXIT_OK;
}

const struct hf_cli_verb hf_verb_events = {
	.name = "events",
	.connects = true,
	.takes_kind = true,
	.reads_kept = true,
	.summary = "List the events of a job or a namespace, oldest first",
	.usage = "[JOB]",
	.group = HF_CLI_LOOK,
	.examples = "  holdfast events\n"
		    "  holdfast events ddp\n"
		    "  holdfast events -A\n",
	.words = HF_CLI_WORDS_JOBS,
	.args_max = 1,
	.run = verb_events,
};
