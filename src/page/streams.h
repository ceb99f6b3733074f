/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_STREAMS_H
#define HF_PAGE_STREAMS_H

#include "http/server.h"
#include "page/access.h"
#include "page/jobs.h"
#include "page/nodes.h"

HF_BEGIN_DECLS

/*
 * The streams of changes (text/event-stream). Each viewer has a place in the ring and gets the changes behind it that its
 * session may see. Viewers at the same place with the same rights get the same bytes, made once.
 *
 * A viewer that reads slowly waits in the ring: its server buffer is bounded. If the ring has passed it, the viewer gets
 * "reset" and fetches anew; if it takes no byte for HF_PAGE_STALL, its stream is cut.
 */

#define HF_PAGE_STREAMS_MAX 100
#define HF_PAGE_STREAM_BYTES_MAX ((size_t)256 << 10) /* not yet sent, of one viewer */
#define HF_PAGE_PING (15 * HF_SECOND)
#define HF_PAGE_STALL (30 * HF_SECOND)
#define HF_PAGE_SUMMARY_EVERY HF_SECOND

struct hf_page_streams;
struct hf_page_streams_options {
	struct hf_loop *loop;
	struct hf_page_ring *ring;
	struct hf_page_jobs *jobs;
	struct hf_page_nodes *nodes; /* NULL: the page has no nodes */
	struct hf_page_access *access;
	hf_time ping, stall; /* 0: the constants above */
};
struct hf_page_streams *hf_page_streams_create(const struct hf_page_streams_options *options);
struct hf_page_streams *hf_page_streams_destroy(
	struct hf_page_streams *streams); /* NULL is fine; returns NULL */

struct hf_page_viewer {
	struct hf_page_session *session;
	const char *since; /* version that the viewer knows; NULL: it wants only later changes */
	bool once;         /* end the stream after the catch-up */
};
/* False: all streams are in use. Counts the refusal. */
bool hf_page_streams_admit(struct hf_page_streams *streams) HF_MUST_CHECK;
/* Begins a stream on the exchange, after hf_page_streams_admit. The caller has added the headers. */
void hf_page_streams_open(struct hf_page_streams *streams, struct hf_exchange *ex,
			  const struct hf_page_viewer *viewer);
/* Changes went into the ring. */
void hf_page_streams_push(struct hf_page_streams *streams);

struct hf_page_stream_stats {
	size_t open;
	uint64_t opened, refused, resets, cut;
	uint64_t bytes; /* written to all viewers */
	uint64_t built; /* bytes made; less than `bytes` if viewers share them */
};
const struct hf_page_stream_stats *hf_page_streams_stats(const struct hf_page_streams *streams);

HF_END_DECLS

#endif
