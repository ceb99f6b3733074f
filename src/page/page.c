/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Creates and destroys the page, takes news of the operator, and updates metrics. */
#include "page/page.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "page/page_internal.h"

#include <stdlib.h>

static void on_changed(void *arg)
{
	struct hf_page *page = arg;

	hf_page_streams_push(page->streams);
}

static void on_dropped(void *arg, const struct hf_page_row *row,
		       const struct hf_page_restart *restart)
{
	struct hf_page *page = arg;

	hf_page_recovery_keep(page->recovery, row, restart);
}

static void on_sample(void *arg)
{
	struct hf_page *page = arg;

	hf_page_recovery_sample(page->recovery, page->jobs,
				page->nodes == NULL ? 0 : hf_page_nodes_lost_devices(page->nodes),
				hf_loop_wall(page->options.loop));
	hf_timer_arm(page->sample_timer, HF_PAGE_SAMPLE_EVERY);
}

/* ---- what the operator tells ------------------------------------------------------------------------------------ */

void hf_page_see_job(struct hf_page *page, const char *key)
{
	hf_page_jobs_touch(page->jobs, key);
}

void hf_page_see_all(struct hf_page *page)
{
	hf_page_jobs_touch_all(page->jobs);
}

void hf_page_see_plan(struct hf_page *page, const char *key, const struct hf_plan *plan)
{
	hf_page_jobs_tell(page->jobs, key, plan->summary);
}

void hf_page_see_event(struct hf_page *page, const struct hf_event_note *note, hf_time now)
{
	hf_page_notes_add(page->notes, note, now);
}

void hf_page_see_beat(struct hf_page *page, const char *pod_uid, const struct hf_beat *beat)
{
	const struct hf_page_rank_report report = {
		.uid = pod_uid,
		.step = beat->has_step && beat->step <= INT64_MAX ? (int64_t)beat->step : 0,
		.total = beat->total <= INT64_MAX ? (int64_t)beat->total : 0,
		.own_us = beat->has_own && beat->own_us <= INT64_MAX ? (int64_t)beat->own_us : 0,
		.wait_us = beat->wait_us <= INT64_MAX ? (int64_t)beat->wait_us : 0,
		.at = hf_loop_wall(page->options.loop),
	};

	hf_page_ranks_report(page->ranks, &report);
}

/* ---- metrics ------------------------------------------------------------------------------------------------------ */

static struct hf_family *add_family(struct hf_page *page, enum hf_metric_type type,
				    const char *name, const char *help, const char *label)
{
	const struct hf_metric_options options = {
		.name = name, .help = help, .type = type, .labels = {label}};

	return hf_metrics_family(page->options.metrics, &options);
}

static void create_metrics(struct hf_page *page)
{
	const struct hf_metric_options requests = {
		.name = "holdfast_page_requests_total",
		.help = "Requests to the page, by what they asked for and the status code.",
		.type = HF_METRIC_COUNTER,
		.labels = {"path", "code"},
		.series_max = 200,
	};

	if (page->options.metrics == NULL)
		return;
	page->metrics.requests = hf_metrics_family(page->options.metrics, &requests);
	page->metrics.streams = add_family(page, HF_METRIC_GAUGE, "holdfast_page_streams",
					   "Streams of changes that are open.", NULL);
	page->metrics.stream_bytes =
		add_family(page, HF_METRIC_COUNTER, "holdfast_page_stream_bytes_total",
			   "Bytes written to streams of changes.", NULL);
	page->metrics.stream_ends =
		add_family(page, HF_METRIC_COUNTER, "holdfast_page_stream_events_total",
			   "What happened to streams of changes.", "event");
	page->metrics.sessions = add_family(page, HF_METRIC_GAUGE, "holdfast_page_sessions",
					    "Sessions that are logged in.", NULL);
}

void hf_page_update_metrics(struct hf_page *page)
{
	const struct hf_page_stream_stats *stats = hf_page_streams_stats(page->streams);

	if (page->options.metrics == NULL)
		return;
	hf_family_set(page->metrics.streams, (double)stats->open, NULL);
	hf_family_set(page->metrics.stream_bytes, (double)stats->bytes, NULL);
	hf_family_set(page->metrics.stream_ends, (double)stats->opened, "opened", NULL);
	hf_family_set(page->metrics.stream_ends, (double)stats->refused, "refused", NULL);
	hf_family_set(page->metrics.stream_ends, (double)stats->resets, "reset", NULL);
	hf_family_set(page->metrics.stream_ends, (double)stats->cut, "cut", NULL);
	hf_family_set(page->metrics.sessions, (double)hf_page_sessions_len(page->sessions), NULL);
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

static void write_refusal(void *arg, int code, const char *text, struct hf_strbuf *ret_body)
{
	HF_AUTO_JSON object = hf_json_object();

	hf_json_set_str(object, "error", text);
	hf_json_write(object, HF_JSON_COMPACT, ret_body);
}

/* A connection is trusted during the requests of a session. So neither strangers nor idle connections of one user can keep
 * other users out. */
static int trust_session(void *arg, const struct hf_exchange *ex, struct hf_error *err)
{
	const struct hf_page *page = arg;

	if (hf_page_sessions_find(page->sessions, hf_exchange_header(ex, "Cookie"),
				  hf_loop_mono(page->options.loop)) != NULL)
		hf_exchange_trust(ex);
	return 0;
}

static int listen_page(struct hf_page *page, struct hf_error *err)
{
	const struct hf_http_server_spec spec = {
		.address = page->options.address,
		.port = page->options.port,
		.handler = hf_page_serve,
		.admit = trust_session,
		.refusal = write_refusal,
		.refusal_content_type = "application/json",
		.arg = page,
		.body_bytes_max = HF_PAGE_BODY_BYTES_MAX,
		.head_bytes_max = HF_PAGE_HEAD_BYTES_MAX,
		.stream_bytes_max = HF_PAGE_STREAM_BYTES_MAX,
		.connections_max = HF_PAGE_CONNECTIONS_MAX,
		.untrusted_max = HF_PAGE_IDLE_MAX,
		.trust_ends_with_request = true,
	};
	return hf_http_server_create_at(page->options.loop, &spec, &page->server, err);
}

static int create_tables(struct hf_page *page, struct hf_error *err)
{
	struct hf_loop *loop = page->options.loop;
	struct hf_page_jobs_options jobs = {
		.loop = loop,
		.source = page->options.source,
		.settle = page->options.settle,
		.seed = page->options.seed,
		.changed = on_changed,
		.dropped = on_dropped,
		.arg = page,
	};
	uint64_t epoch;
	int rc = hf_random_bytes(&epoch, sizeof(epoch), err);

	if (rc == 0 && !page->options.cluster)
		rc = hf_random_hex(page->token, HF_PAGE_KEY_DIGITS, err);
	if (rc != 0)
		return rc;
	page->ranks = hf_page_ranks_create();
	page->ring = hf_page_ring_create(epoch);
	page->notes = hf_page_notes_create();
	page->recovery = hf_page_recovery_create(hf_loop_wall(loop));
	jobs.ranks = page->ranks;
	jobs.ring = page->ring;
	page->jobs = hf_page_jobs_create(&jobs);
	page->access = hf_page_access_create(loop, page->options.store, page->jobs);
	return 0;
}

static void create_nodes(struct hf_page *page)
{
	const struct hf_page_nodes_options options = {
		.loop = page->options.loop,
		.store = page->options.store,
		.source = page->options.source,
		.ranks = page->ranks,
		.ring = page->ring,
		.settle = page->options.settle,
		.seed = page->options.seed,
		.changed = on_changed,
		.arg = page,
	};

	if (page->options.watch_nodes)
		page->nodes = hf_page_nodes_create(&options);
}

static void create_streams(struct hf_page *page)
{
	const struct hf_page_streams_options options = {
		.loop = page->options.loop,
		.ring = page->ring,
		.jobs = page->jobs,
		.nodes = page->nodes,
		.access = page->access,
	};

	page->streams = hf_page_streams_create(&options);
}

int hf_page_create(const struct hf_page_options *options, struct hf_page **ret_page,
		   struct hf_error *err)
{
	struct hf_page *page = hf_xcalloc(1, sizeof(*page));
	int rc;

	page->options = *options;
	rc = create_tables(page, err);
	if (rc == 0)
		rc = listen_page(page, err);
	if (rc == 0)
		page->sessions = hf_page_sessions_create(hf_http_server_port(page->server));
	if (rc != 0) {
		hf_page_destroy(page);
		return rc;
	}
	create_nodes(page);
	create_streams(page);
	create_metrics(page);
	page->sample_timer = hf_timer_create(page->options.loop, on_sample, page);
	hf_timer_arm(page->sample_timer, HF_PAGE_SAMPLE_EVERY);
	*ret_page = page;
	return 0;
}

struct hf_page *hf_page_destroy(struct hf_page *page)
{
	if (page == NULL)
		return NULL;
	hf_timer_destroy(page->sample_timer);
	hf_page_streams_destroy(page->streams);
	hf_page_drop_acts(page);
	hf_page_drop_requests(page);
	hf_page_drop_logins(page);
	hf_http_server_destroy(page->server);
	hf_page_access_destroy(page->access);
	hf_page_nodes_destroy(page->nodes);
	hf_page_jobs_destroy(page->jobs);
	hf_page_recovery_destroy(page->recovery);
	hf_page_notes_destroy(page->notes);
	hf_page_ring_destroy(page->ring);
	hf_page_ranks_destroy(page->ranks);
	hf_page_sessions_destroy(page->sessions);
	free(page);
	return NULL;
}

uint16_t hf_page_port(const struct hf_page *page)
{
	return hf_http_server_port(page->server);
}

const char *hf_page_token(const struct hf_page *page)
{
	return page->options.cluster ? NULL : page->token;
}
