/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "cli/verbs_internal.h"

#include "api/job.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/disks.h"
#include "cli/leader.h"
#include "cli/node_devices.h"
#include "cli/output.h"
#include "cli/ready.h"
#include "cli/remediation.h"
#include "cli/rollout.h"
#include "cli/request.h"
#include "cli/facts.h"
#include "cli/text.h"
#include "core/model/names.h"
#include "framework/framework.h"
#include "store/resource.h"
#include "store/selector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * get [KIND] [NAME…]: lists jobs of all kinds, or objects of one kind.  Tables of jobs have
 * Holdfast's own columns, because a server's table has no restarts.  With -w, each change of an
 * object prints one more row.
 */

#define SORT_KEY_BYTES_MAX 4096
#define STATE_LEN_MAX strlen("Restarting")
#define KINDS_MAX 8 /* kinds of jobs; `get jobs -w` opens one watch for each */

struct getting {
	struct hf_cli *cli;
	struct hf_output output;
	const struct hf_resource *kinds[KINDS_MAX];
	size_t n_kinds;
	bool jobs; /* `kinds` are kinds of jobs: their tables have Holdfast's own columns */
	const char *selector;
	struct hf_jsonpath *sort_by; /* NULL: the server's order */
	int64_t limit;               /* --limit, in objects; 0: no limit */
	bool failed;                 /* --failed */
	/* counts the Ready pods of jobs; NULL: the user may not read pods, or no column needs the
	 * number */
	struct hf_ready *ready;
	/* what agents report, for `nodes -o wide`; NULL: no column needs it. `-w` has none of these
	 * columns: a change of a Node says nothing of its devices. */
	struct hf_node_devices *devices;
	bool deleted; /* the row being printed is for a deleted object */
};

struct docs {
	struct hf_doc **items;
	size_t len;
};

static void docs_release(struct docs *docs)
{
	for (size_t i = 0; i < docs->len; i++)
		hf_doc_unref(docs->items[i]);
	free(docs->items);
}

static void docs_add(struct docs *docs, struct hf_doc *doc)
{
	docs->items = hf_xrealloc(docs->items, (docs->len + 1) * sizeof(struct hf_doc *));
	docs->items[docs->len++] = hf_doc_ref(doc);
}

/* ---- rows --------------------------------------------------------------------------------- */

static const char *const job_headers[] = {"NAMESPACE", "KIND",     "NAME",   "STATE", "READY",
					  "GEN",       "RESTARTS", "AGE",    "STEP",  "SAVED",
					  "ETTR",      "CAUSE",    "MESSAGE"};
#define JOB_COLUMNS_WIDE 5
#define COLUMNS_WIDE 2
static const char *const pod_headers[] = {"NAMESPACE", "NAME", "READY", "STATUS",
					  "RESTARTS",  "AGE",  "IP",    "NODE"};
static const char *const node_headers[] = {"NAME",   "STATUS",  "AGE",    "CPU",
					   "MEMORY", "DEVICES", "DRIVER", "PLUGIN"};
static const char *const other_headers[] = {"NAMESPACE", "KIND", "NAME", "AGE"};

static void add_age(struct hf_table *table, struct hf_doc *doc, hf_time now)
{
	hf_table_cell_age(table,
			  hf_json_path_str(hf_doc_json(doc), "metadata", "creationTimestamp", NULL),
			  now);
}

static void add_namespace(const struct getting *get, struct hf_table *table, struct hf_doc *doc)
{
	if (get->cli->all_namespaces)
		hf_table_cell(table, "%s", hf_str_or(hf_doc_namespace(doc), "-"));
}

static void add_step(struct hf_table *table, int64_t step)
{
	if (step > 0)
		hf_table_cell(table, "%" PRId64, step);
	else
		hf_table_cell(table, "-");
}

static void add_training(struct hf_table *table, struct hf_doc *doc, hf_time now)
{
	struct hf_job_training training;

	hf_job_training_read(hf_doc_json(doc), now, &training);
	add_step(table, training.step);
	add_step(table, training.saved_step);
	if (training.has_ettr)
		hf_table_cell(table, "%" PRId64 ".%" PRId64 "%%", training.ettr_permille / 10,
			      training.ettr_permille % 10);
	else
		hf_table_cell(table, "-");
}

static void add_job_row(const struct getting *get, struct hf_table *table, struct hf_doc *doc,
			hf_time now)
{
	char restarts[HF_RESTARTS_TEXT_MAX];
	struct hf_job_facts facts;

	hf_job_facts_read(hf_doc_json(doc), &facts);
	hf_restarts_text(facts.restarts, restarts);
	add_namespace(get, table, doc);
	hf_table_cell(table, "%s", facts.kind);
	hf_table_cell(table, "%s", hf_doc_name(doc));
	hf_table_cell(table, "%s", get->deleted ? "Deleted" : facts.state);
	hf_table_cell(
		table, "%" PRId64 "/%" PRId64,
		hf_job_ready(&facts, get->ready != NULL
					     ? hf_ready_count(get->ready, hf_doc_namespace(doc),
							      hf_doc_name(doc))
					     : facts.active),
		facts.wanted);
	hf_table_cell(table, "%" PRId64, facts.generation);
	hf_table_cell(table, "%s", restarts);
	add_age(table, doc, now);
	if (get->output.kind == HF_OUTPUT_WIDE) {
		add_training(table, doc, now);
		hf_table_cell(table, "%s",
			      hf_str_or(hf_json_path_str(hf_doc_json(doc), "status", "recovery",
							 "last", "cause", NULL),
					"<none>"));
		hf_table_cell(table, "%s", facts.message);
	}
}

static void add_node_row(const struct getting *get, struct hf_table *table, struct hf_doc *doc,
			 hf_time now)
{
	const struct hf_json *node = hf_doc_json(doc);
	const struct hf_json *list = hf_json_path(node, "status", "conditions", NULL);
	const char *ready = "Unknown";

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const char *status = hf_json_path_str(hf_json_item(list, i), "status", NULL);
		if (!hf_streq(hf_json_path_str(hf_json_item(list, i), "type", NULL), "Ready"))
			continue;
		ready = hf_streq(status, "True")    ? "Ready"
			: hf_streq(status, "False") ? "NotReady"
						    : "Unknown";
	}
	hf_table_cell(table, "%s", hf_doc_name(doc));
	hf_table_cell(table, "%s%s%s", ready,
		      hf_node_short_disk(doc) != NULL ? ",DiskPressure" : "",
		      hf_json_true(hf_json_path(node, "spec", "unschedulable", NULL), false)
			      ? ",SchedulingDisabled"
			      : "");
	add_age(table, doc, now);
	if (get->output.kind != HF_OUTPUT_WIDE)
		return;
	hf_table_cell(table, "%s",
		      hf_str_or(hf_json_path_str(node, "status", "allocatable", "cpu", NULL), "-"));
	hf_table_cell(
		table, "%s",
		hf_str_or(hf_json_path_str(node, "status", "allocatable", "memory", NULL), "-"));
	if (get->devices != NULL)
		hf_node_devices_cells(get->devices, hf_doc_name(doc), now, table);
}

static void add_pod_row(const struct getting *get, struct hf_table *table, struct hf_doc *doc,
			hf_time now)
{
	const struct hf_json *pod = hf_doc_json(doc);
	struct hf_pod_facts facts;

	hf_pod_facts_read(pod, &facts);
	add_namespace(get, table, doc);
	hf_table_cell(table, "%s", hf_doc_name(doc));
	hf_table_cell(table, "%" PRId64 "/%" PRId64, facts.ready, facts.containers);
	hf_table_cell(table, "%s", get->deleted ? "Deleted" : facts.status);
	hf_table_cell(table, "%" PRId64, facts.restarts);
	add_age(table, doc, now);
	if (get->output.kind == HF_OUTPUT_WIDE) {
		hf_table_cell(table, "%s",
			      hf_str_or(hf_json_path_str(pod, "status", "podIP", NULL), "<none>"));
		hf_table_cell(table, "%s",
			      hf_str_or(hf_json_path_str(pod, "spec", "nodeName", NULL), "<none>"));
	}
}

static void add_other_row(const struct getting *get, struct hf_table *table, struct hf_doc *doc,
			  hf_time now)
{
	add_namespace(get, table, doc);
	hf_table_cell(table, "%s", hf_str_or(hf_json_path_str(hf_doc_json(doc), "kind", NULL), ""));
	hf_table_cell(table, "%s", hf_doc_name(doc));
	add_age(table, doc, now);
}

static bool is_only(const struct getting *get, const struct hf_resource *kind)
{
	return get->n_kinds == 1 && hf_resource_equal(get->kinds[0], kind);
}

static struct hf_table *make_table(const struct getting *get)
{
	const char *const *headers = other_headers;
	size_t n = HF_ARRAY_LEN(other_headers);
	/* Columns left out. */
	size_t wide = get->output.kind == HF_OUTPUT_WIDE ? 0 : COLUMNS_WIDE;

	if (is_only(get, &hf_nodes))
		return hf_table_create(
			node_headers, HF_ARRAY_LEN(node_headers) - wide -
					      (get->devices != NULL ? 0 : HF_NODE_DEVICES_COLUMNS));
	if (is_only(get, &hf_devicerollouts))
		return hf_table_create(hf_cli_rollout_headers, HF_CLI_ROLLOUT_COLUMNS);
	if (is_only(get, &hf_remediations))
		return hf_table_create(hf_cli_remediation_headers,
				       HF_CLI_REMEDIATION_COLUMNS -
					       (wide > 0 ? HF_CLI_REMEDIATION_WIDE : 0));
	if (get->jobs) {
		headers = job_headers;
		n = HF_ARRAY_LEN(job_headers) -
		    (get->output.kind == HF_OUTPUT_WIDE ? 0 : JOB_COLUMNS_WIDE);
	} else if (is_only(get, &hf_pods)) {
		headers = pod_headers;
		n = HF_ARRAY_LEN(pod_headers) - wide;
	}
	return get->cli->all_namespaces ? hf_table_create(headers, n)
					: hf_table_create(headers + 1, n - 1);
}

static void add_row(const struct getting *get, struct hf_table *table, struct hf_doc *doc)
{
	hf_time now = hf_loop_wall(get->cli->loop);

	if (get->jobs)
		add_job_row(get, table, doc, now);
	else if (is_only(get, &hf_pods))
		add_pod_row(get, table, doc, now);
	else if (is_only(get, &hf_nodes))
		add_node_row(get, table, doc, now);
	else if (is_only(get, &hf_devicerollouts))
		hf_cli_rollout_row(table, doc, now, get->deleted);
	else if (is_only(get, &hf_remediations))
		hf_cli_remediation_row(table, doc, now, get->output.kind == HF_OUTPUT_WIDE,
				       get->deleted);
	else
		add_other_row(get, table, doc, now);
}

static int print_docs(const struct getting *get, const struct docs *docs, bool single)
{
	struct hf_table *table;

	if (get->output.kind != HF_OUTPUT_TABLE && get->output.kind != HF_OUTPUT_WIDE)
		return hf_output_docs(get->cli, &get->output, docs->items, docs->len, single);
	if (docs->len == 0) {
		if (get->cli->all_namespaces || !get->kinds[0]->namespaced)
			fputs("No resources found\n", get->cli->err);
		else
			fprintf(get->cli->err, "No resources found in namespace %s\n",
				get->cli->ns);
		return HF_EXIT_OK;
	}
	table = make_table(get);
	for (size_t i = 0; i < docs->len; i++)
		add_row(get, table, docs->items[i]);
	hf_table_print(table, get->cli->out, !hf_cli_has(get->cli, "no-headers"));
	hf_table_destroy(table);
	return HF_EXIT_OK;
}

/* ---- filter and sort --------------------------------------------------------------- */

static bool has_failed(const struct getting *get, struct hf_doc *doc)
{
	struct hf_job_facts facts;

	if (!get->jobs)
		return hf_streq(hf_json_path_str(hf_doc_json(doc), "status", "phase", NULL),
				"Failed");
	hf_job_facts_read(hf_doc_json(doc), &facts);
	return hf_streq(facts.state, "Failed");
}

static void keep_failed(const struct getting *get, struct docs *docs)
{
	size_t kept = 0;

	for (size_t i = 0; i < docs->len; i++) {
		if (has_failed(get, docs->items[i]))
			docs->items[kept++] = docs->items[i];
		else
			hf_doc_unref(docs->items[i]);
	}
	docs->len = kept;
}

struct sorting {
	struct hf_doc *doc;
	char *key;
	int64_t number;
	bool is_number;
	size_t at;
};

/* Orders the rows of --sort-by: numbers before texts; rows with equal keys stay in the server's
 * order. */
static int compare_by_key(const void *a, const void *b)
{
	const struct sorting *left = a, *right = b;
	int order;

	if (left->is_number != right->is_number)
		return left->is_number ? -1 : 1;
	if (left->is_number)
		order = left->number < right->number ? -1 : left->number > right->number;
	else
		order = strcmp(left->key, right->key);
	return order != 0 ? order : left->at < right->at ? -1 : left->at > right->at;
}

static void sort_docs(const struct getting *get, struct docs *docs)
{
	struct sorting *rows = hf_xcalloc(docs->len + 1, sizeof(*rows));

	for (size_t i = 0; i < docs->len; i++) {
		HF_AUTO_STRBUF key = HF_STRBUF_INIT(SORT_KEY_BYTES_MAX);
		if (hf_jsonpath_column(get->sort_by, hf_doc_json(docs->items[i]), &key, NULL) != 0)
			hf_strbuf_clear(&key);
		rows[i] = (struct sorting){.doc = docs->items[i], .at = i};
		rows[i].key = hf_strbuf_detach(&key);
		rows[i].is_number = hf_str_to_i64(rows[i].key, INT64_MIN, INT64_MAX,
						  &rows[i].number, NULL) == 0;
	}
	if (docs->len > 1)
		qsort(rows, docs->len, sizeof(*rows), compare_by_key);
	for (size_t i = 0; i < docs->len; i++) {
		docs->items[i] = rows[i].doc;
		free(rows[i].key);
	}
	free(rows);
}

static void choose_docs(const struct getting *get, struct docs *docs)
{
	if (get->failed)
		keep_failed(get, docs);
	if (get->sort_by != NULL)
		sort_docs(get, docs);
	while (get->limit > 0 && docs->len > (size_t)get->limit)
		hf_doc_unref(docs->items[--docs->len]);
}

/* ---- lists -------------------------------------------------------------------------------- */

static int list_kind(const struct getting *get, const struct hf_resource *kind, struct docs *docs,
		     struct hf_error *err)
{
	struct hf_request request = {
		.verb = HF_VERB_LIST,
		.resource = kind,
		.ns = get->cli->all_namespaces || !kind->namespaced ? NULL : get->cli->ns,
		.label_selector = get->selector};
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	int rc = hf_cli_request(get->cli, &request, &reply, err);

	for (size_t i = 0; rc == 0 && i < reply.n_items; i++)
		docs_add(docs, reply.items[i]);
	return rc;
}

static bool is_table(const struct getting *get)
{
	return get->output.kind == HF_OUTPUT_TABLE || get->output.kind == HF_OUTPUT_WIDE;
}

static void warn_of_disk(void *arg, const char *node, const char *why)
{
	const struct hf_cli *cli = arg;

	fprintf(cli->err, "holdfast: warning: node '%s': ", node);
	hf_text_print_safe(cli->err, why);
	fputc('\n', cli->err);
}

/* Counts the Ready pods of one job, or of all jobs (job NULL). If the user may not list pods, the
 * READY column comes from the job's status. */
static void count_ready_pods(struct getting *get, const char *job)
{
	HF_AUTOFREE char *selector = job != NULL ? hf_xasprintf("%s=%s", HF_LABEL_JOB_NAME, job)
						 : hf_xstrdup(HF_LABEL_JOB_NAME);
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = &hf_pods,
				     .ns = get->cli->all_namespaces ? NULL : get->cli->ns,
				     .label_selector = selector};
	HF_AUTO_CLI_REPLY pods = {.object = NULL};

	if (!get->jobs || !is_table(get) || hf_cli_request(get->cli, &request, &pods, NULL) != 0)
		return;
	get->ready = hf_ready_create();
	for (size_t i = 0; i < pods.n_items; i++)
		(void)hf_ready_see(get->ready, pods.items[i], false);
	hf_cli_short_disks(get->cli, pods.items, pods.n_items, warn_of_disk, get->cli);
}

static int get_named(const struct getting *get, const char *name, struct docs *docs,
		     struct hf_error *err)
{
	HF_AUTO_CLI_REPLY reply = {.object = NULL};
	struct hf_request request = {.verb = HF_VERB_GET,
				     .resource = get->kinds[0],
				     .name = name,
				     .ns = get->kinds[0]->namespaced ? get->cli->ns : NULL};
	const struct hf_framework *framework;
	HF_AUTO_DOC job = NULL;
	int rc;

	if (get->jobs && (get->n_kinds > 1 || hf_streq(name, "@latest"))) {
		rc = hf_cli_find_job(get->cli, name, &job, &framework, err);
		if (rc == 0)
			docs_add(docs, job);
		return rc;
	}
	rc = hf_cli_request(get->cli, &request, &reply, err);
	if (rc == 0)
		docs_add(docs, reply.object);
	return rc;
}

/* Warns if the states of these jobs are old, because no operator leads. */
static void warn_of_no_leader(const struct getting *get, const struct docs *docs)
{
	HF_AUTO_NO_LEADER missing = {.found = NULL};

	if (!get->jobs || !is_table(get))
		return;
	hf_no_leader_find(get->cli, docs->items, docs->len, &missing);
	if (missing.found == NULL)
		return;
	fputs("holdfast: warning: ", get->cli->err);
	hf_text_print_safe(get->cli->err, missing.found);
	fputs("; ", get->cli->err);
	hf_text_print_safe(get->cli->err, missing.action);
	fputc('\n', get->cli->err);
}

/* Reads what the columns of the table need, and prints the objects. */
static int print_found(struct getting *get, const struct docs *docs, bool single)
{
	if (docs->len > 0)
		warn_of_no_leader(get, docs);
	if (docs->len > 0)
		count_ready_pods(get, docs->len == 1 ? hf_doc_name(docs->items[0]) : NULL);
	if (docs->len > 0 && is_only(get, &hf_nodes) && get->output.kind == HF_OUTPUT_WIDE)
		get->devices = hf_node_devices_read(get->cli);
	if (is_only(get, &hf_pods) && is_table(get))
		hf_cli_short_disks(get->cli, docs->items, docs->len, warn_of_disk, get->cli);
	return print_docs(get, docs, single);
}

static int get_once(struct getting *get, const char *const *names, int n_names)
{
	struct docs docs = {.items = NULL};
	struct hf_error err = {.code = 0};
	int worst = HF_EXIT_OK, rc = 0;

	for (int i = 0; i < n_names; i++) {
		if (get_named(get, names[i], &docs, &err) != 0)
			worst = hf_cli_fail(get->cli, &err);
	}
	for (size_t i = 0; n_names == 0 && rc == 0 && i < get->n_kinds; i++)
		rc = list_kind(get, get->kinds[i], &docs, &err);
	if (rc == 0)
		choose_docs(get, &docs);
	if (rc != 0)
		worst = hf_cli_fail(get->cli, &err);
	else if (worst == HF_EXIT_OK || docs.len > 0) {
		rc = print_found(get, &docs, n_names == 1);
		worst = worst != HF_EXIT_OK ? worst : rc;
	}
	docs_release(&docs);
	return worst;
}

/* ---- watching ----------------------------------------------------------------------------- */

struct watching {
	struct getting *get;
	const char *name; /* show only the object of this name; NULL: all */
	struct hf_table_widths widths;
	/* the version of each job that was printed last; a job is printed again when its number of
	 * Ready pods changes */
	struct docs jobs;
	bool headers_done;
	bool over;
	int exit_code;
};

static void end_watching(struct watching *watching, int exit_code)
{
	watching->exit_code = exit_code;
	watching->over = true;
	hf_loop_stop(watching->get->cli->loop);
}

/* Handles the end of a watch. True: the event is the end, or the verb is over, so the event is not
 * shown. */
static bool is_end(struct watching *watching, const struct hf_event *event)
{
	struct hf_error err = {.code = 0};

	if (watching->over)
		return true;
	if (event->type != HF_EVENT_ENDED)
		return false;
	(void)hf_error_set(&err, event->code != 0 ? event->code : HF_E_UNAVAILABLE, "%s",
			   hf_str_or(event->message, "the server ended the watch"));
	end_watching(watching, hf_cli_fail(watching->get->cli, &err));
	return true;
}

static void show_row(struct watching *watching, struct hf_doc *doc, bool deleted)
{
	struct getting *get = watching->get;

	if (is_table(get)) {
		struct hf_table *table = make_table(get);
		get->deleted = deleted;
		add_row(get, table, doc);
		hf_table_print_on(table, get->cli->out,
				  !watching->headers_done && !hf_cli_has(get->cli, "no-headers"),
				  &watching->widths);
		hf_table_destroy(table);
		watching->headers_done = true;
	} else {
		(void)hf_output_docs(get->cli, &get->output, &doc, 1, true);
	}
	/* If the reader of the output closed the pipe, fflush fails, and `get -w` ends. */
	if (fflush(get->cli->out) != 0)
		end_watching(watching, HF_EXIT_FAILED);
}

static void remember_job(struct watching *watching, struct hf_doc *doc, bool deleted)
{
	struct docs *jobs = &watching->jobs;
	size_t i = 0;

	if (watching->get->ready == NULL)
		return;
	while (i < jobs->len && !hf_streq(hf_doc_uid(jobs->items[i]), hf_doc_uid(doc)))
		i++;
	if (i == jobs->len && !deleted)
		docs_add(jobs, doc);
	if (i == jobs->len || jobs->items[i] == doc)
		return;
	hf_doc_unref(jobs->items[i]);
	jobs->items[i] = deleted ? jobs->items[--jobs->len] : hf_doc_ref(doc);
}

static void on_event(void *arg, const struct hf_event *event)
{
	struct watching *watching = arg;

	if (is_end(watching, event) || event->type == HF_EVENT_BOOKMARK ||
	    (watching->name != NULL && !hf_streq(hf_doc_name(event->object), watching->name)))
		return;
	remember_job(watching, event->object, event->type == HF_EVENT_DELETED);
	show_row(watching, event->object, event->type == HF_EVENT_DELETED);
}

/* Prints a job again if the number of its Ready pods has changed. */
static void on_pod(void *arg, const struct hf_event *event)
{
	struct watching *watching = arg;

	if (is_end(watching, event) || event->type == HF_EVENT_BOOKMARK ||
	    !hf_ready_see(watching->get->ready, event->object, event->type == HF_EVENT_DELETED))
		return;
	for (size_t i = 0; i < watching->jobs.len; i++) {
		struct hf_doc *job = watching->jobs.items[i];
		if (hf_streq(hf_doc_name(job), hf_pod_job(event->object)) &&
		    hf_streq(hf_doc_namespace(job), hf_doc_namespace(event->object)))
			show_row(watching, job, false);
	}
}

/* Sets the column widths from the objects that exist now; rows printed later will have similar
 * lengths. */
static void fit_columns(const struct getting *get, const struct docs *docs,
			struct hf_table_widths *widths)
{
	struct hf_table *table;

	if (!is_table(get))
		return;
	table = make_table(get);
	for (size_t i = 0; i < docs->len; i++)
		add_row(get, table, docs->items[i]);
	hf_table_fit(table, false, widths);
	hf_table_destroy(table);
	/* The state of a job changes while `get -w` runs, so make room for the longest state. */
	if (get->jobs) {
		size_t *state = &widths->columns[get->cli->all_namespaces ? 3 : 2];
		*state = *state > STATE_LEN_MAX ? *state : STATE_LEN_MAX;
	}
}

static int get_watch(struct getting *get, const char *name)
{
	struct watching watching = {.get = get, .name = name, .exit_code = HF_EXIT_FAILED};
	struct hf_watch *watches[KINDS_MAX + 1] = {NULL};
	struct docs now = {.items = NULL};
	struct hf_error err;
	int rc = 0;

	/* List once before watching, so that an unreachable server or a missing name is an error. */
	if (name != NULL)
		rc = get_named(get, name, &now, &err);
	else
		rc = list_kind(get, get->kinds[0], &now, &err);
	if (rc == 0)
		count_ready_pods(get, name);
	if (rc == 0)
		warn_of_no_leader(get, &now);
	fit_columns(get, &now, &watching.widths);
	docs_release(&now);
	if (rc != 0)
		return hf_cli_fail(get->cli, &err);
	for (size_t i = 0; i < get->n_kinds; i++) {
		struct hf_watch_options options = {
			.resource = get->kinds[i],
			.ns = get->cli->all_namespaces || !get->kinds[i]->namespaced ? NULL
										     : get->cli->ns,
			.label_selector = get->selector,
		};
		watches[i] = hf_store_watch(get->cli->store, &options, on_event, &watching);
	}
	if (get->ready != NULL) {
		struct hf_watch_options options = {
			.resource = &hf_pods,
			.ns = get->cli->all_namespaces ? NULL : get->cli->ns,
			.label_selector = HF_LABEL_JOB_NAME,
		};
		watches[get->n_kinds] =
			hf_store_watch(get->cli->store, &options, on_pod, &watching);
	}
	hf_cli_run_until(get->cli, &watching.over);
	for (size_t i = 0; i <= get->n_kinds; i++)
		(void)hf_watch_stop(watches[i]);
	docs_release(&watching.jobs);
	return watching.exit_code;
}

/* ---- the verb ----------------------------------------------------------------------------- */

static int refuse_word(const struct hf_cli *cli, const char *word)
{
	struct hf_nearest search = {.text = word, .len = strlen(word)};

	for (size_t i = 0; hf_cli_kinds[i] != NULL; i++)
		hf_nearest_offer(&search, hf_cli_kinds[i]);
	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		hf_nearest_offer(&search, hf_frameworks[i]->plural);
	if (search.nearest != NULL)
		return hf_cli_usage(cli,
				    "unknown kind '%s': did you mean '%s'? (one job: jobs NAME)",
				    word, search.nearest);
	return hf_cli_usage(
		cli,
		"unknown kind '%s'; try jobs, pods, services, nodes or events (one job: jobs NAME)",
		word);
}

/* Sets the kinds to list from the word "jobs" or the name of a kind. NULL means jobs. */
static int choose_kinds(struct getting *get, const char *word)
{
	const struct hf_resource *resource;

	if (word == NULL || hf_streq(word, "jobs") || hf_streq(word, "job")) {
		get->jobs = true;
		for (size_t i = 0; i < KINDS_MAX && hf_frameworks[i] != NULL; i++)
			get->kinds[get->n_kinds++] = hf_cli_resource_of(hf_frameworks[i]);
		return 0;
	}
	resource = hf_resource_by_word(word);
	if (resource == NULL)
		return refuse_word(get->cli, word);
	get->kinds[get->n_kinds++] = resource;
	get->jobs = hf_resource_is_job(resource);
	return 0;
}

static int check_selector(const struct getting *get)
{
	struct hf_selector *selector = NULL;
	struct hf_error err;
	int rc = 0;

	if (get->selector != NULL && hf_selector_parse_labels(get->selector, &selector, &err) != 0)
		rc = hf_cli_usage(get->cli, "-l '%s': %s", get->selector, err.text);
	hf_selector_destroy(selector);
	return rc;
}

static int parse_choice(struct getting *get)
{
	const char *sort_by = hf_cli_flag(get->cli, "sort-by");
	const char *limit = hf_cli_flag(get->cli, "limit");
	bool chooses;
	struct hf_error err;

	get->failed = hf_cli_has(get->cli, "failed");
	chooses = sort_by != NULL || limit != NULL || get->failed;
	if (chooses && hf_cli_has(get->cli, "watch"))
		return hf_cli_usage(get->cli,
				    "-w cannot be combined with --sort-by, --failed or --limit");
	if (get->failed && !get->jobs && !is_only(get, &hf_pods) &&
	    !is_only(get, &hf_remediations) && !is_only(get, &hf_devicerollouts))
		return hf_cli_usage(
			get->cli,
			"--failed works for jobs, pods, remediations and devicerollouts only");
	if (limit != NULL && hf_str_to_i64(limit, 1, INT32_MAX, &get->limit, &err) != 0)
		return hf_cli_usage(get->cli, "--limit: %s", err.text);
	if (sort_by != NULL && hf_jsonpath_compile_relaxed(sort_by, &get->sort_by, &err) != 0)
		return hf_cli_usage(get->cli, "--sort-by: %s", err.text);
	return 0;
}

static int check_names(const struct getting *get, const char *const *names, int n_names)
{
	for (int i = 0; i < n_names; i++)
		if (names[i][0] == '\0')
			return hf_cli_usage(get->cli, "the name of the object is empty");
	if (n_names > 0 && get->cli->all_namespaces)
		return hf_cli_usage(
			get->cli,
			"a name belongs to one namespace: use -n NAMESPACE instead of -A");
	if (n_names > 0 && get->selector != NULL)
		return hf_cli_usage(
			get->cli,
			"names and -l exclude each other: give names, or select by labels");
	if (n_names > 1 && hf_cli_has(get->cli, "watch"))
		return hf_cli_usage(get->cli,
				    "-w watches one name or all objects: give at most one name");
	return check_selector(get);
}

static int get_names(struct getting *get, const char *const *names, int n_names)
{
	int rc = check_names(get, names, n_names);

	if (rc == 0)
		rc = parse_choice(get);
	if (rc == 0)
		rc = hf_output_parse(get->cli, &get->output);
	if (rc == 0)
		rc = hf_cli_has(get->cli, "watch") ? get_watch(get, n_names > 0 ? names[0] : NULL)
						   : get_once(get, names, n_names);
	get->ready = hf_ready_destroy(get->ready);
	get->devices = hf_node_devices_destroy(get->devices);
	hf_jsonpath_destroy(get->sort_by);
	hf_output_release(&get->output);
	return rc;
}

/* True if the word is not a kind and a job has that name. */
static bool is_job_name(struct hf_cli *cli, const char *word)
{
	const struct hf_framework *framework;
	HF_AUTO_DOC job = NULL;
	struct hf_error err;

	if (hf_streq(word, "jobs") || hf_streq(word, "job") || hf_resource_by_word(word) != NULL)
		return false;
	return !cli->all_namespaces && hf_cli_find_job(cli, word, &job, &framework, &err) == 0;
}

static int verb_get(struct hf_cli *cli)
{
	struct getting get = {.cli = cli, .selector = hf_cli_flag(cli, "selector")};
	const char *word = cli->n_args > 0 ? cli->args[0] : NULL;
	const char *slash = word != NULL ? strchr(word, '/') : NULL;
	HF_AUTOFREE char *kind = NULL;
	const char *name;
	int rc;

	/* `get NAME` prints the job of this name, although NAME stands where `get` expects a kind:
	 * the other verbs take a job there. */
	if (slash == NULL && cli->n_args == 1 && is_job_name(cli, word)) {
		rc = choose_kinds(&get, NULL);
		return rc != 0 ? rc : get_names(&get, &word, 1);
	}
	if (slash == NULL) {
		rc = choose_kinds(&get, word);
		return rc != 0 ? rc
			       : get_names(&get, cli->args + 1, word != NULL ? cli->n_args - 1 : 0);
	}
	if (cli->n_args > 1)
		return hf_cli_usage(cli, "give KIND/NAME alone, or KIND NAME…");
	kind = hf_xstrndup(word, (size_t)(slash - word));
	name = slash + 1;
	rc = choose_kinds(&get, kind);
	return rc != 0 ? rc : get_names(&get, &name, 1);
}

static const struct hf_flag get_flags[] = {
	{"output", 'o', "FORMAT", "wide, json, yaml, name, jsonpath=… or custom-columns=…", NULL},
	{"watch", 'w', NULL, "then print each change, until Ctrl-C", NULL},
	{"selector", 'l', "LABELS", "only objects with these labels, such as team=a", NULL},
	{"sort-by", 0, "PATH", "sort by a field, such as .metadata.creationTimestamp", NULL},
	{"failed", 0, NULL, "only jobs, pods, remediations or rollouts that have failed", NULL},
	{"limit", 0, "COUNT", "print at most this many objects", NULL},
	{"no-headers", 0, NULL, "print tables without the header line", NULL},
	{NULL, 0, NULL, NULL, NULL},
};

const struct hf_cli_verb hf_verb_get = {
	.name = "get",
	.connects = true,
	.summary = "List jobs, pods, services, nodes or other objects",
	.usage = "[jobs|pods|services|nodes|KIND] [NAME…]",
	.group = HF_CLI_LOOK,
	.examples = "  holdfast get\n"
		    "  holdfast get pods -o wide\n"
		    "  holdfast get pytorchjob/ddp -o jsonpath='{.status.conditions[-1].type}'\n",
	.flags = get_flags,
	.words = HF_CLI_WORDS_KINDS,
	.args_max = -1,
	.run = verb_get,
};
