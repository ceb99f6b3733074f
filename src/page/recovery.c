/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Counts restarts in buckets of time, and the percentiles of their stages. */
#include "page/recovery.h"

#include "base/mem.h"
#include "base/str.h"
#include "page/json_out.h"

#include <stdlib.h>
#include <string.h>

/* Limit of the spans of a stage for percentiles. */
#define SPANS_MAX 8192

struct kept {
	char ns[64];
	const char *plural;
	struct hf_page_restart restart;
};

struct sample {
	hf_time at;
	float ettr; /* negative: unknown */
	float lost_devices;
};

struct hf_page_recovery {
	hf_time since;
	struct kept restarts[HF_PAGE_RESTARTS_MAX];
	size_t restarts_at, restarts_len;
	struct sample samples[HF_PAGE_SAMPLES_MAX];
	size_t samples_at, samples_len;
};

struct hf_page_recovery *hf_page_recovery_create(hf_time now)
{
	struct hf_page_recovery *recovery = hf_xcalloc(1, sizeof(*recovery));

	recovery->since = now;
	return recovery;
}

struct hf_page_recovery *hf_page_recovery_destroy(struct hf_page_recovery *recovery)
{
	free(recovery);
	return NULL;
}

void hf_page_recovery_keep(struct hf_page_recovery *recovery, const struct hf_page_row *row,
			   const struct hf_page_restart *restart)
{
	struct kept *kept = &recovery->restarts[recovery->restarts_at];

	*kept = (struct kept){.plural = row->framework->plural, .restart = *restart};
	hf_str_print(kept->ns, sizeof(kept->ns), row->ns, strlen(row->ns));
	recovery->restarts_at = (recovery->restarts_at + 1) % HF_PAGE_RESTARTS_MAX;
	recovery->restarts_len += recovery->restarts_len < HF_PAGE_RESTARTS_MAX;
}

void hf_page_recovery_sample(struct hf_page_recovery *recovery, const struct hf_page_jobs *jobs,
			     int64_t lost_devices, hf_time now)
{
	struct sample *sample = &recovery->samples[recovery->samples_at];
	const struct hf_page_row *row;
	int64_t n = 0, permille;
	double sum = 0;

	for (size_t it = 0; (row = hf_page_jobs_next(jobs, &it)) != NULL;) {
		if (row->finished || !hf_training_ettr(&row->times, now, &permille))
			continue;
		sum += (double)permille / 1000;
		n++;
	}
	*sample = (struct sample){.at = now,
				  .ettr = n > 0 ? (float)(sum / (double)n) : -1,
				  .lost_devices = (float)lost_devices};
	recovery->samples_at = (recovery->samples_at + 1) % HF_PAGE_SAMPLES_MAX;
	recovery->samples_len += recovery->samples_len < HF_PAGE_SAMPLES_MAX;
}

/* ---- counting ---------------------------------------------------------------------------------------------- */

/* The stages of a restart, in their order. */
static const char *const stages[] = {"detect", "decide", "down", "start", "firstStep", "total"};
#define STAGES HF_ARRAY_LEN(stages)

struct spans {
	double *seconds;
	size_t len;
};

/* What the restarts of a row in the window cost it, for the list of the worst. */
struct worst {
	const struct hf_page_row *row;
	int64_t restarts;
	hf_time lost;
};

struct count {
	const struct hf_page_recovery_args *args;
	hf_time from;
	size_t buckets;
	int64_t *restarts[HF_PAGE_CAUSES];
	int64_t totals[HF_PAGE_CAUSES];
	struct spans spans[STAGES];
	struct worst worst[HF_PAGE_WORST_MAX + 1];
	size_t worst_len;
};

static void add_span(struct spans *spans, hf_time span)
{
	if (span != HF_TIME_NONE && span >= 0 && spans->len < SPANS_MAX)
		spans->seconds[spans->len++] = (double)span / (double)HF_SECOND;
}

/* False: the restart is not in the window. */
static bool count_restart(struct count *count, const struct hf_page_restart *restart)
{
	const struct hf_record_parts *parts = &restart->parts;
	const hf_time spans[STAGES] = {parts->detect, parts->decide,     parts->down,
				       parts->start,  parts->first_step, parts->total};
	size_t bucket;

	if (restart->at < count->from || restart->at > count->args->now)
		return false;
	bucket = (size_t)((restart->at - count->from) / count->args->bucket);
	if (bucket >= count->buckets)
		bucket = count->buckets - 1;
	count->restarts[restart->cause][bucket]++;
	count->totals[restart->cause]++;
	for (size_t i = 0; i < STAGES; i++)
		add_span(&count->spans[i], spans[i]);
	return true;
}

/* The time until all ranks ran again. If they do not yet, that is known of the newest restart alone. */
static hf_time find_lost_time(const struct count *count, const struct hf_page_row *row,
			      size_t index)
{
	const struct hf_page_restart *restart = &row->records[index];

	if (restart->parts.total != HF_TIME_NONE)
		return restart->parts.total;
	return index == 0 && !row->finished ? count->args->now - restart->at : 0;
}

static bool is_worse(const struct worst *a, const struct worst *b)
{
	return a->lost != b->lost ? a->lost > b->lost : a->restarts > b->restarts;
}

/* Puts the row into the list of those that lost the most time. */
static void rate_row(struct count *count, const struct worst *rated)
{
	size_t i = count->worst_len;

	if (rated->restarts == 0)
		return;
	for (; i > 0 && is_worse(rated, &count->worst[i - 1]); i--)
		count->worst[i] = count->worst[i - 1];
	count->worst[i] = *rated;
	if (count->worst_len < HF_PAGE_WORST_MAX)
		count->worst_len++;
}

static void count_rows(struct count *count)
{
	const struct hf_page_row *row;

	for (size_t it = 0; (row = hf_page_jobs_next(count->args->jobs, &it)) != NULL;) {
		struct worst rated = {.row = row};

		if (!hf_page_session_may(count->args->session, row->framework->plural, row->ns))
			continue;
		for (size_t i = 0; i < row->records_len; i++) {
			if (!count_restart(count, &row->records[i]))
				continue;
			rated.restarts++;
			rated.lost = hf_time_add(rated.lost, find_lost_time(count, row, i));
		}
		rate_row(count, &rated);
	}
}

static void count_kept(struct count *count, const struct hf_page_recovery *recovery)
{
	for (size_t i = 0; i < recovery->restarts_len; i++) {
		const struct kept *kept = &recovery->restarts[i];

		if (hf_page_session_may(count->args->session, kept->plural, kept->ns))
			(void)count_restart(count, &kept->restart);
	}
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double find_percentile(const struct spans *spans, size_t percent)
{
	return spans->len == 0 ? -1 : spans->seconds[(spans->len - 1) * percent / 100];
}

static void write_stages(struct count *count, struct hf_json *object)
{
	struct hf_json *mttr = hf_json_ensure_object(object, "mttr");

	for (size_t i = 0; i < STAGES; i++) {
		struct hf_json *stage = hf_json_ensure_object(mttr, stages[i]);

		qsort(count->spans[i].seconds, count->spans[i].len, sizeof(double), by_number);
		hf_page_set_number(stage, "p50", find_percentile(&count->spans[i], 50));
		hf_page_set_number(stage, "p90", find_percentile(&count->spans[i], 90));
		hf_page_set_count(stage, "count", (int64_t)count->spans[i].len);
	}
}

static void write_restarts(const struct count *count, struct hf_json *object)
{
	struct hf_json *restarts = hf_json_ensure_object(object, "restarts");

	for (int cause = 0; cause < HF_PAGE_CAUSES; cause++) {
		struct hf_json *list = hf_json_ensure_array(
			restarts, hf_page_cause_name((enum hf_page_cause)cause));

		for (size_t i = 0; i < count->buckets; i++)
			hf_json_append(list, hf_json_int(count->restarts[cause][i]));
	}
}

static void append_number(struct hf_json *list, bool known, double number)
{
	hf_json_append(list, known ? hf_json_real(number) : hf_json_null());
}

/* The means of the samples of each bucket. */
static void write_samples(const struct count *count, const struct hf_page_recovery *recovery,
			  struct hf_json *object)
{
	struct hf_json *ettr = hf_json_ensure_array(object, "ettr");
	struct hf_json *lost = hf_json_ensure_array(object, "lostDeviceHours");
	double hours = (double)count->args->bucket / (double)HF_HOUR;
	HF_AUTOFREE double *sums = hf_xcalloc(count->buckets, 2 * sizeof(double));
	HF_AUTOFREE int64_t *counts = hf_xcalloc(count->buckets, 2 * sizeof(int64_t));

	for (size_t i = 0; i < recovery->samples_len; i++) {
		const struct sample *sample = &recovery->samples[i];
		size_t bucket = (size_t)((sample->at - count->from) / count->args->bucket);

		if (sample->at < count->from || bucket >= count->buckets)
			continue;
		sums[2 * bucket] += sample->ettr >= 0 ? (double)sample->ettr : 0;
		counts[2 * bucket] += sample->ettr >= 0;
		sums[2 * bucket + 1] += (double)sample->lost_devices;
		counts[2 * bucket + 1]++;
	}
	for (size_t i = 0; i < count->buckets; i++) {
		int64_t n = counts[2 * i], m = counts[2 * i + 1];

		append_number(ettr, count->args->sees_all && n > 0,
			      n > 0 ? sums[2 * i] / (double)n : 0);
		append_number(lost, count->args->sees_nodes && m > 0,
			      m > 0 ? sums[2 * i + 1] / (double)m * hours : 0);
	}
}

static void write_totals(const struct count *count, struct hf_json *object)
{
	struct hf_json *totals = hf_json_ensure_object(object, "totals");
	struct hf_json *restarts = hf_json_ensure_object(totals, "restarts");
	int64_t all = 0;

	for (int cause = 0; cause < HF_PAGE_CAUSES; cause++) {
		hf_page_set_count(restarts, hf_page_cause_name((enum hf_page_cause)cause),
				  count->totals[cause]);
		all += count->totals[cause];
	}
	hf_page_set_count(totals, "all", all);
}

static void write_worst(const struct count *count, struct hf_json *object)
{
	struct hf_json *list = hf_json_ensure_array(object, "worst");

	for (size_t i = 0; i < count->worst_len; i++) {
		const struct hf_page_text_ref *text = count->worst[i].row->text;
		struct hf_json *job;

		if (hf_json_parse(text->bytes, text->len, NULL, &job, NULL) != 0)
			continue;
		hf_json_set_i64(job, "restartsInWindow", count->worst[i].restarts);
		hf_json_append(list, job);
	}
}

static void init_count(struct count *count, const struct hf_page_recovery_args *args)
{
	*count = (struct count){.args = args,
				.from = args->now - args->window,
				.buckets = (size_t)(args->window / args->bucket)};
	for (int i = 0; i < HF_PAGE_CAUSES; i++)
		count->restarts[i] = hf_xcalloc(count->buckets, sizeof(int64_t));
	for (size_t i = 0; i < STAGES; i++)
		count->spans[i].seconds = hf_xcalloc(SPANS_MAX, sizeof(double));
}

static void release_count(struct count *count)
{
	for (int i = 0; i < HF_PAGE_CAUSES; i++)
		free(count->restarts[i]);
	for (size_t i = 0; i < STAGES; i++)
		free(count->spans[i].seconds);
}

struct hf_json *hf_page_recovery_json(const struct hf_page_recovery *recovery,
				      const struct hf_page_recovery_args *args)
{
	struct hf_json *object = hf_json_object();
	struct count count;

	init_count(&count, args);
	count_rows(&count);
	count_kept(&count, recovery);
	hf_page_set_time(object, "from", count.from);
	hf_page_set_time(object, "to", args->now);
	hf_page_set_time(object, "since", recovery->since);
	hf_json_set_i64(object, "bucketSeconds", args->bucket / HF_SECOND);
	write_restarts(&count, object);
	write_samples(&count, recovery, object);
	write_stages(&count, object);
	write_totals(&count, object);
	write_worst(&count, object);
	release_count(&count);
	return object;
}
