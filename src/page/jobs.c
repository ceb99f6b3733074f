/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The rows of jobs: marks, rows made anew, and what the ring is told. jobs_list.c makes lists of them. */
#include "page/jobs_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"

#include <stdlib.h>
#include <string.h>

/* Memory for the pods and the ledger of a job. */
#define ROW_BYTES_MAX ((size_t)256 << 20)
#define TEXT_BYTES_MAX ((size_t)64 << 10)
/* Bytes of a sentence that a row keeps. */
#define SENTENCE_MAX 512

static void free_row(void *value)
{
	struct hf_page_row *row = value;

	hf_page_text_unref(row->text);
	free(row->records);
	free(row->sentence);
	free(row->state);
	free((char *)(uintptr_t)row->ns);
	free(row->key);
	free(row);
}

/* ---- marks ---------------------------------------------------------------------------------------- */

static void mark_row(struct hf_page_jobs *jobs, struct hf_page_row *row)
{
	if (row->marked)
		return;
	row->marked = true;
	row->next_marked = NULL;
	*jobs->last = row;
	jobs->last = &row->next_marked;
	if (!hf_timer_armed(jobs->timer))
		hf_timer_arm(jobs->timer, jobs->options.settle);
}

static struct hf_page_row *create_row(struct hf_page_jobs *jobs, const char *key)
{
	const char *slash = strchr(key, '/');
	const char *name = slash == NULL ? NULL : strchr(slash + 1, '/');
	HF_AUTOFREE char *plural = slash == NULL ? NULL : hf_xstrndup(key, (size_t)(slash - key));
	const struct hf_framework *framework = name == NULL ? NULL : hf_framework_by_name(plural);
	struct hf_page_row *row;

	if (framework == NULL)
		return NULL;
	row = hf_xcalloc(1, sizeof(*row));
	row->framework = framework;
	row->key = hf_xstrdup(key);
	row->ns = hf_xstrndup(slash + 1, (size_t)(name - slash - 1));
	row->name = row->key + (name + 1 - key);
	row->cause = "";
	row->created = HF_TIME_NONE;
	row->times.productive = -1;
	if (hf_map_put(jobs->rows, row->key, row))
		return row;
	free_row(row);
	return NULL;
}

static struct hf_page_row *find_row(struct hf_page_jobs *jobs, const char *key)
{
	struct hf_page_row *row = hf_map_get(jobs->rows, key);

	return row != NULL ? row : create_row(jobs, key);
}

void hf_page_jobs_touch(struct hf_page_jobs *jobs, const char *key)
{
	struct hf_page_row *row = find_row(jobs, key);

	if (row != NULL)
		mark_row(jobs, row);
}

static void touch_job(void *arg, const struct hf_page_job *job)
{
	HF_AUTOFREE char *key =
		hf_xasprintf("%s/%s/%s", job->framework->plural, job->ns, job->name);

	hf_page_jobs_touch(arg, key);
}

void hf_page_jobs_touch_all(struct hf_page_jobs *jobs)
{
	const char *key;
	void *value;

	/* Rows of jobs that are gone since are marked too, and then removed. */
	for (size_t it = 0; hf_map_next(jobs->rows, &it, &key, &value);)
		mark_row(jobs, value);
	jobs->options.source->each_job(jobs->options.source->arg, touch_job, jobs);
}

/* Copies a summary such as "Restarting for 12s: worker-3 …" without the span, which would be that of the last pass
 * for hours. The member "since" has the time. */
static char *copy_sentence(const char *summary)
{
	static const char span[] = " for ";
	const char *at = strstr(summary, span);
	size_t state = strcspn(summary, " :");
	const char *rest;

	if (at == NULL || (size_t)(at - summary) != state)
		return hf_xstrndup(summary, hf_utf8_cut(summary, SENTENCE_MAX));
	rest = at + strlen(span);
	rest += strcspn(rest, ":");
	return hf_xasprintf("%.*s%.*s", (int)state, summary, (int)hf_utf8_cut(rest, SENTENCE_MAX),
			    rest);
}

void hf_page_jobs_tell(struct hf_page_jobs *jobs, const char *key, const char *summary)
{
	struct hf_page_row *row = find_row(jobs, key);
	HF_AUTOFREE char *sentence = hf_str_is_empty(summary) ? NULL : copy_sentence(summary);

	if (row == NULL || sentence == NULL || hf_streq(row->sentence, sentence))
		return;
	free(row->sentence);
	row->sentence = hf_steal(&sentence);
	mark_row(jobs, row);
}

/* ---- rows made anew --------------------------------------------------------------------------------- */

void hf_page_jobs_input(const struct hf_page_jobs *jobs, const struct hf_page_job *job,
			struct hf_arena *arena, struct hf_page_job_input *ret_input)
{
	HF_AUTOFREE char *key =
		hf_xasprintf("%s/%s/%s", job->framework->plural, job->ns, job->name);
	const struct hf_page_row *row = hf_map_get(jobs->rows, key);
	const struct hf_pod *pods;
	size_t len = jobs->options.source->find_pods(jobs->options.source->arg, job, arena, &pods);

	*ret_input = (struct hf_page_job_input){
		.job = job,
		.pods = pods,
		.pods_len = len,
		.progress = hf_page_ranks_progress(jobs->options.ranks, pods, len),
		.sentence = row == NULL ? NULL : row->sentence,
		.now = hf_loop_wall(jobs->options.loop),
	};
}

static void drop_record(struct hf_page_jobs *jobs, const struct hf_page_row *row,
			const struct hf_page_restart *restart)
{
	if (jobs->options.dropped != NULL)
		jobs->options.dropped(jobs->options.arg, row, restart);
}

/* Replaces the records of a row by those of the ledger. A record that the ledger does not have any more was
 * dropped for want of room, or belongs to an earlier job of this name. */
static void take_records(struct hf_page_jobs *jobs, struct hf_page_row *row,
			 const struct hf_ledger *ledger)
{
	struct hf_page_restart *records = NULL;
	size_t len = 0;

	if (ledger->records_len > 0)
		records = hf_xcalloc(ledger->records_len, sizeof(*records));
	for (size_t i = 0; i < ledger->records_len; i++) {
		const struct hf_record *record = &ledger->records[i];

		/* A record without scope is of the termination that ended the job: no restart. */
		if (hf_str_is_empty(record->scope) || record->detected_at == HF_TIME_NONE)
			continue;
		records[len++] = (struct hf_page_restart){.at = record->detected_at,
							  .cause = hf_page_cause_of(record->cause),
							  .parts = hf_record_parts(record)};
	}
	for (size_t i = 0; i < row->records_len; i++) {
		bool kept = false;

		for (size_t k = 0; k < len && !kept; k++)
			kept = records[k].at == row->records[i].at;
		if (!kept)
			drop_record(jobs, row, &row->records[i]);
	}
	free(row->records);
	row->records = records;
	row->records_len = len;
}

static void push_change(struct hf_page_jobs *jobs, struct hf_page_row *row,
			enum hf_page_change change, struct hf_page_text_ref *text)
{
	const struct hf_page_delta delta = {
		.change = change, .ns = row->ns, .plural = row->framework->plural, .text = text};

	row->version = hf_page_ring_add(jobs->options.ring, &delta, row->version);
}

static void remove_row(struct hf_page_jobs *jobs, struct hf_page_row *row)
{
	HF_AUTO_JSON gone = hf_json_object();
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(TEXT_BYTES_MAX);
	struct hf_page_text_ref *text;

	for (size_t i = 0; i < row->records_len; i++)
		drop_record(jobs, row, &row->records[i]);
	if (row->text != NULL) {
		hf_json_set_str(gone, "kind", row->framework->kind);
		hf_json_set_str(gone, "namespace", row->ns);
		hf_json_set_str(gone, "name", row->name);
		hf_json_write(gone, HF_JSON_COMPACT, &sb);
		text = hf_page_text_make(sb.data, sb.len);
		push_change(jobs, row, HF_PAGE_CHANGE_GONE_JOB, text);
		hf_page_text_unref(text);
	}
	hf_map_remove(jobs->rows, row->key);
}

/* Takes the facts that lists are filtered and sorted by. */
static void take_keys(struct hf_page_row *row, const struct hf_page_job_keys *keys)
{
	if (!hf_streq(row->state, keys->state)) {
		free(row->state);
		row->state = hf_xstrdup(keys->state);
	}
	row->cause = keys->cause;
	row->restarts = keys->restarts;
	row->created = keys->created;
	row->times = keys->times;
	row->finished =
		hf_streq(keys->state, HF_COND_SUCCEEDED) || hf_streq(keys->state, HF_COND_FAILED);
}

static void note_place(struct hf_page_jobs *jobs, const struct hf_page_row *row)
{
	HF_AUTOFREE char *place = hf_xasprintf("%s/%s", row->framework->plural, row->ns);

	/* If the table is full, new namespaces are seen when rights are asked again. */
	if (!hf_map_has(jobs->places, place))
		(void)!hf_map_put(jobs->places, place, jobs);
}

static void make_row(struct hf_page_jobs *jobs, struct hf_page_row *row)
{
	const struct hf_page_source *source = jobs->options.source;
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(TEXT_BYTES_MAX);
	struct hf_page_job_input input;
	struct hf_page_job_keys keys;
	struct hf_status status;
	struct hf_page_job job;

	hf_arena_reset(jobs->arena);
	if (!source->find_job(source->arg, row->framework, row->ns, row->name, &job)) {
		remove_row(jobs, row);
		return;
	}
	HF_AUTO_JSON tree = hf_page_tree(job.doc);
	HF_AUTO_JSON read = hf_page_read_status(tree, row->framework, jobs->arena, &status);

	hf_page_jobs_input(jobs, &job, jobs->arena, &input);
	input.tree = tree;
	HF_AUTO_JSON object = hf_page_job_json(&input, &keys);

	hf_json_write(object, HF_JSON_COMPACT, &sb);
	take_records(jobs, row, &status.ledger);
	take_keys(row, &keys);
	if (sb.full || (row->text != NULL && row->text->len == sb.len &&
			memcmp(row->text->bytes, sb.data, sb.len) == 0))
		return;
	if (row->text == NULL)
		note_place(jobs, row);
	hf_page_text_unref(row->text);
	row->text = hf_page_text_make(sb.data, sb.len);
	push_change(jobs, row, HF_PAGE_CHANGE_JOB, row->text);
}

static void on_settled(void *arg)
{
	struct hf_page_jobs *jobs = arg;
	uint64_t before = hf_page_ring_newest(jobs->options.ring);

	/* While another process leads, the rows stay as they are. */
	if (!jobs->options.source->ready(jobs->options.source->arg)) {
		if (jobs->first != NULL)
			hf_timer_arm(jobs->timer, HF_SECOND);
		return;
	}
	for (size_t n = 0; jobs->first != NULL && n < HF_PAGE_SLICE; n++) {
		struct hf_page_row *row = jobs->first;

		jobs->first = row->next_marked;
		if (jobs->first == NULL)
			jobs->last = &jobs->first;
		row->marked = false;
		make_row(jobs, row);
	}
	if (jobs->first != NULL)
		hf_timer_arm(jobs->timer, 0);
	if (hf_page_ring_newest(jobs->options.ring) != before && jobs->options.changed != NULL)
		jobs->options.changed(jobs->options.arg);
}

/* ---- life -------------------------------------------------------------------------------------------- */

struct hf_page_jobs *hf_page_jobs_create(const struct hf_page_jobs_options *options)
{
	struct hf_page_jobs *jobs = hf_xcalloc(1, sizeof(*jobs));

	jobs->options = *options;
	if (options->settle <= 0)
		jobs->options.settle = HF_PAGE_SETTLE;
	jobs->last = &jobs->first;
	jobs->places = hf_map_create(HF_PAGE_ROWS_MAX, options->seed, NULL);
	jobs->rows = hf_map_create_borrowing(HF_PAGE_ROWS_MAX, options->seed, free_row);
	jobs->arena = hf_arena_create(ROW_BYTES_MAX);
	jobs->timer = hf_timer_create(jobs->options.loop, on_settled, jobs);
	return jobs;
}

struct hf_page_jobs *hf_page_jobs_destroy(struct hf_page_jobs *jobs)
{
	if (jobs == NULL)
		return NULL;
	hf_timer_destroy(jobs->timer);
	hf_map_destroy(jobs->rows);
	hf_map_destroy(jobs->places);
	hf_arena_destroy(jobs->arena);
	free(jobs);
	return NULL;
}

uint64_t hf_page_jobs_places(const struct hf_page_jobs *jobs)
{
	return hf_map_len(jobs->places);
}

size_t hf_page_jobs_len(const struct hf_page_jobs *jobs)
{
	return hf_map_len(jobs->rows);
}

const struct hf_page_row *hf_page_jobs_next(const struct hf_page_jobs *jobs, size_t *it)
{
	const char *key;
	void *value;

	while (hf_map_next(jobs->rows, it, &key, &value))
		if (((const struct hf_page_row *)value)->text != NULL)
			return value;
	return NULL;
}
