/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Viewers, and the bytes that they get. */
#include "page/streams.h"

#include "base/mem.h"
#include "base/str.h"
#include "page/json_out.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that one write gives a viewer at most; the next write follows when they are sent. */
#define BATCH_BYTES_MAX ((size_t)96 << 10)
/* How often viewers are looked at for pings, stalls and sessions that have ended. */
#define SWEEP HF_SECOND
#define SUMMARY_BYTES_MAX ((size_t)64 << 10)

struct viewer {
	struct viewer *prev, *next;
	struct hf_page_streams *streams;
	struct hf_exchange *ex;
	struct hf_page_session *session;
	uint64_t at;     /* the newest change that the viewer has, or may not see */
	uint64_t rights; /* rights_version of the session when it was last looked at */
	bool once;
	bool waits;         /* a write did not fit */
	hf_time written_at; /* monotonic: the last write that fitted */
	hf_time summary_at; /* monotonic: the last summary */
	bool owes_summary;  /* changes came too soon after the last summary */
};

/* Bytes for viewers at one place with the same rights. */
struct batch {
	struct hf_strbuf sb;
	uint64_t from, to;
	const struct hf_page_session *session; /* NULL: for all who may see everything */
	uint64_t rights;
	bool valid;
};

struct hf_page_streams {
	struct hf_page_streams_options options;
	struct viewer *first;
	struct batch batch;
	struct hf_timer *timer;
	struct hf_page_stream_stats stats;
};

static hf_time now_of(const struct hf_page_streams *streams)
{
	return hf_loop_mono(streams->options.loop);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------- */

static bool is_node_change(const struct hf_page_delta *delta)
{
	return delta->change == HF_PAGE_CHANGE_NODE || delta->change == HF_PAGE_CHANGE_GONE_NODE;
}

static bool may_see(const struct hf_page_session *session, const struct hf_page_delta *delta)
{
	return is_node_change(delta) ? hf_page_access_sees_nodes(session)
				     : hf_page_session_may(session, delta->plural, delta->ns);
}

static bool may_see_all(const struct hf_page_session *session)
{
	return hf_page_access_sees_all(session) && hf_page_access_sees_nodes(session);
}

static const char *event_name(const struct hf_page_delta *delta)
{
	switch (delta->change) {
	case HF_PAGE_CHANGE_JOB: return "job";
	case HF_PAGE_CHANGE_NODE: return "node";
	case HF_PAGE_CHANGE_GONE_JOB:
	case HF_PAGE_CHANGE_GONE_NODE: break;
	}
	return "gone";
}

static void add_frame(const struct hf_page_streams *streams, const struct hf_page_delta *delta,
		      uint64_t number, struct hf_strbuf *sb)
{
	char version[HF_PAGE_VERSION_MAX];

	hf_page_ring_version(streams->options.ring, number, version);
	hf_strbuf_addf(sb, "event: %s\nid: %s\ndata: ", event_name(delta), version);
	hf_strbuf_add(sb, delta->text->bytes, delta->text->len);
	hf_strbuf_addstr(sb, "\n\n");
}

/* Makes the bytes behind `from`, up to BATCH_BYTES_MAX. */
static void fill_batch(struct hf_page_streams *streams, const struct viewer *viewer,
		       bool everything)
{
	struct batch *batch = &streams->batch;
	uint64_t newest = hf_page_ring_newest(streams->options.ring);

	hf_strbuf_clear(&batch->sb);
	batch->from = batch->to = viewer->at;
	batch->session = everything ? NULL : viewer->session;
	batch->rights = viewer->session->rights_version;
	batch->valid = true;
	while (batch->to < newest) {
		const struct hf_page_delta *delta =
			hf_page_ring_at(streams->options.ring, batch->to + 1);

		if (delta != NULL && delta->text != NULL && may_see(viewer->session, delta)) {
			if (batch->sb.len > 0 && batch->sb.len + delta->text->len > BATCH_BYTES_MAX)
				break;
			add_frame(streams, delta, batch->to + 1, &batch->sb);
		}
		batch->to++;
	}
	streams->stats.built += batch->sb.len;
}

static const struct batch *find_batch(struct hf_page_streams *streams, const struct viewer *viewer)
{
	struct batch *batch = &streams->batch;
	bool everything = may_see_all(viewer->session);
	const struct hf_page_session *session = everything ? NULL : viewer->session;

	if (!batch->valid || batch->from != viewer->at || batch->session != session ||
	    (!everything && batch->rights != viewer->session->rights_version))
		fill_batch(streams, viewer, everything);
	return batch;
}

/* ---- viewers -------------------------------------------------------------------------------------------------------- */

static void free_viewer(struct viewer *viewer)
{
	struct hf_page_streams *streams = viewer->streams;

	if (viewer->prev != NULL)
		viewer->prev->next = viewer->next;
	else
		streams->first = viewer->next;
	if (viewer->next != NULL)
		viewer->next->prev = viewer->prev;
	streams->stats.open--;
	/* The batch may be for this session, and the next session may get the same address. */
	if (streams->batch.session == viewer->session)
		streams->batch.valid = false;
	hf_page_access_forget(streams->options.access, viewer);
	hf_page_session_unref(viewer->session);
	free(viewer);
}

static void on_closed(void *arg, struct hf_exchange *ex)
{
	free_viewer(arg);
}

static bool write_viewer(struct viewer *viewer, const char *bytes, size_t len)
{
	if (!hf_exchange_write(viewer->ex, bytes, len)) {
		viewer->waits = true;
		return false;
	}
	viewer->waits = false;
	viewer->written_at = now_of(viewer->streams);
	viewer->streams->stats.bytes += len;
	return true;
}

/* Tells the viewer to fetch everything again. */
static bool reset_viewer(struct viewer *viewer)
{
	struct hf_page_streams *streams = viewer->streams;
	uint64_t newest = hf_page_ring_newest(streams->options.ring);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(SUMMARY_BYTES_MAX);
	char version[HF_PAGE_VERSION_MAX];

	hf_page_ring_version(streams->options.ring, newest, version);
	hf_strbuf_addf(&sb, "event: reset\nid: %s\ndata: {\"resourceVersion\":\"%s\"}\n\n", version,
		       version);
	if (!write_viewer(viewer, sb.data, sb.len))
		return false;
	viewer->at = newest;
	viewer->rights = viewer->session->rights_version;
	streams->stats.resets++;
	return true;
}

/* Writes the changes behind the viewer's place, as far as they fit. */
static void advance_viewer(struct viewer *viewer)
{
	struct hf_page_streams *streams = viewer->streams;
	const struct hf_page_ring *ring = streams->options.ring;

	if ((!hf_page_ring_has_after(ring, viewer->at) ||
	     viewer->rights != viewer->session->rights_version) &&
	    !reset_viewer(viewer))
		return;
	while (viewer->at < hf_page_ring_newest(ring)) {
		const struct batch *batch = find_batch(streams, viewer);

		if (batch->sb.len > 0 && !write_viewer(viewer, batch->sb.data, batch->sb.len))
			return;
		viewer->at = batch->to;
	}
}

static void add_counts(struct hf_page_streams *streams, const struct viewer *viewer,
		       struct hf_json *object)
{
	int64_t total;

	hf_json_set(object, "states",
		    hf_page_jobs_count(streams->options.jobs, viewer->session, &total));
	hf_json_set_i64(object, "jobs", total);
	if (streams->options.nodes == NULL || !hf_page_access_sees_nodes(viewer->session))
		return;
	hf_json_set(object, "nodeStates", hf_page_nodes_count(streams->options.nodes, &total));
	hf_json_set_i64(object, "nodes", total);
}

/* Writes the number of jobs in each state. `shared` has the text for viewers with all rights during one push. */
static void write_summary(struct viewer *viewer, struct hf_strbuf *shared)
{
	struct hf_page_streams *streams = viewer->streams;
	HF_AUTO_STRBUF own = HF_STRBUF_INIT(SUMMARY_BYTES_MAX);
	struct hf_strbuf *sb = may_see_all(viewer->session) ? shared : &own;

	viewer->owes_summary = true;
	if (now_of(streams) - viewer->summary_at < HF_PAGE_SUMMARY_EVERY || viewer->waits)
		return;
	if (sb->len == 0) {
		HF_AUTO_JSON object = hf_json_object();

		add_counts(streams, viewer, object);
		hf_strbuf_addstr(sb, "event: summary\ndata: ");
		hf_json_write(object, HF_JSON_COMPACT, sb);
		hf_strbuf_addstr(sb, "\n\n");
	}
	if (!write_viewer(viewer, sb->data, sb->len))
		return;
	viewer->summary_at = now_of(streams);
	viewer->owes_summary = false;
}

void hf_page_streams_push(struct hf_page_streams *streams)
{
	HF_AUTO_STRBUF shared = HF_STRBUF_INIT(SUMMARY_BYTES_MAX);

	streams->batch.valid = false;
	for (struct viewer *viewer = streams->first; viewer != NULL; viewer = viewer->next) {
		/* If the buffer of a viewer is full, on_drained continues. */
		if (!viewer->waits)
			advance_viewer(viewer);
		write_summary(viewer, &shared);
	}
	streams->batch.valid = false;
}

static void end_viewer(struct viewer *viewer, bool cut)
{
	struct hf_exchange *ex = viewer->ex;

	free_viewer(viewer);
	if (cut)
		hf_exchange_abort(ex);
	else
		hf_exchange_finish(ex);
}

/* Ends a viewer with `once` after the catch-up. */
static void end_if_caught_up(struct viewer *viewer)
{
	if (viewer->once && !viewer->waits &&
	    viewer->at == hf_page_ring_newest(viewer->streams->options.ring))
		end_viewer(viewer, false);
}

static void on_drained(void *arg, struct hf_exchange *ex)
{
	struct viewer *viewer = arg;

	viewer->waits = false;
	viewer->written_at = now_of(viewer->streams);
	advance_viewer(viewer);
	end_if_caught_up(viewer);
}

static void on_rights(void *arg)
{
	struct viewer *viewer = arg;

	if (viewer->rights != viewer->session->rights_version && !viewer->waits)
		advance_viewer(viewer);
}

/* False: the viewer was ended. */
static bool sweep_viewer(struct hf_page_streams *streams, struct viewer *viewer,
			 struct hf_strbuf *shared)
{
	hf_time now = now_of(streams);
	hf_time quiet = now - viewer->written_at;

	if (viewer->waits && quiet >= streams->options.stall) {
		streams->stats.cut++;
		end_viewer(viewer, true);
		return false;
	}
	if (hf_page_session_has_ended(viewer->session, now)) {
		end_viewer(viewer, false);
		return false;
	}
	/* A session with an open stream is in use. */
	viewer->session->used_at = now;
	if (viewer->owes_summary)
		write_summary(viewer, shared);
	if (!viewer->waits && quiet >= streams->options.ping)
		(void)write_viewer(viewer, ": ping\n\n", strlen(": ping\n\n"));
	return true;
}

static void on_sweep(void *arg)
{
	struct hf_page_streams *streams = arg;
	HF_AUTO_STRBUF shared = HF_STRBUF_INIT(SUMMARY_BYTES_MAX);
	struct viewer *next;

	for (struct viewer *viewer = streams->first; viewer != NULL; viewer = next) {
		next = viewer->next;
		if (!sweep_viewer(streams, viewer, &shared))
			continue;
		hf_page_access_forget(streams->options.access, viewer);
		hf_page_access_learn(streams->options.access, viewer->session, on_rights, viewer);
	}
	if (streams->first != NULL)
		hf_timer_arm(streams->timer, SWEEP);
}

static struct viewer *create_viewer(struct hf_page_streams *streams, struct hf_exchange *ex,
				    const struct hf_page_viewer *args)
{
	struct viewer *viewer = hf_xcalloc(1, sizeof(*viewer));

	viewer->streams = streams;
	viewer->ex = ex;
	viewer->session = hf_page_session_ref(args->session);
	viewer->rights = args->session->rights_version;
	viewer->once = args->once;
	viewer->written_at = now_of(streams);
	viewer->summary_at = viewer->written_at - HF_PAGE_SUMMARY_EVERY;
	viewer->at = hf_page_ring_newest(streams->options.ring);
	viewer->next = streams->first;
	if (streams->first != NULL)
		streams->first->prev = viewer;
	streams->first = viewer;
	streams->stats.open++;
	streams->stats.opened++;
	return viewer;
}

bool hf_page_streams_admit(struct hf_page_streams *streams)
{
	bool fits = streams->stats.open < HF_PAGE_STREAMS_MAX;

	streams->stats.refused += !fits;
	return fits;
}

void hf_page_streams_open(struct hf_page_streams *streams, struct hf_exchange *ex,
			  const struct hf_page_viewer *args)
{
	static const char hello[] = "retry: 2000\n\n";
	HF_AUTO_STRBUF shared = HF_STRBUF_INIT(SUMMARY_BYTES_MAX);
	struct viewer *viewer;
	uint64_t since;

	hf_assert(streams->stats.open < HF_PAGE_STREAMS_MAX);
	viewer = create_viewer(streams, ex, args);
	hf_exchange_on_closed(ex, on_closed, viewer);
	hf_exchange_on_drained(ex, on_drained, viewer);
	hf_exchange_begin(ex, 200, "text/event-stream");
	(void)write_viewer(viewer, hello, sizeof(hello) - 1);
	if (args->since != NULL && hf_page_ring_parse(streams->options.ring, args->since, &since) &&
	    hf_page_ring_has_after(streams->options.ring, since))
		viewer->at = since;
	else if (args->since != NULL)
		(void)reset_viewer(viewer);
	streams->batch.valid = false;
	advance_viewer(viewer);
	write_summary(viewer, &shared);
	if (!hf_timer_armed(streams->timer))
		hf_timer_arm(streams->timer, SWEEP);
	end_if_caught_up(viewer);
}

const struct hf_page_stream_stats *hf_page_streams_stats(const struct hf_page_streams *streams)
{
	return &streams->stats;
}

struct hf_page_streams *hf_page_streams_create(const struct hf_page_streams_options *options)
{
	struct hf_page_streams *streams = hf_xcalloc(1, sizeof(*streams));

	streams->options = *options;
	if (options->ping <= 0)
		streams->options.ping = HF_PAGE_PING;
	if (options->stall <= 0)
		streams->options.stall = HF_PAGE_STALL;
	hf_strbuf_init(&streams->batch.sb, HF_PAGE_STREAM_BYTES_MAX);
	streams->timer = hf_timer_create(options->loop, on_sweep, streams);
	return streams;
}

struct hf_page_streams *hf_page_streams_destroy(struct hf_page_streams *streams)
{
	if (streams == NULL)
		return NULL;
	while (streams->first != NULL)
		end_viewer(streams->first, true);
	hf_timer_destroy(streams->timer);
	hf_strbuf_release(&streams->batch.sb);
	free(streams);
	return NULL;
}
