/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_PAGE_H
#define HF_PAGE_PAGE_H

#include "ctl/metrics.h"
#include "ctl/recorder.h"
#include "health/beat.h"
#include "page/origin.h"
#include "page/source.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * The page: a small HTTP server with the state of jobs and nodes for a browser, from this process's memory.
 *
 * Two worlds. On one machine the user of this process gets a URL with a token that works once. In a cluster a user logs in with a token of the API server, and has on the page the rights of that token. README.md lists the requests.
 */
struct hf_page;

struct hf_page_options {
	struct hf_loop *loop; /* real */
	/* Address to listen on, such as "127.0.0.1"; "": all addresses. */
	const char *address;
	uint16_t port;              /* 0: any free one */
	struct hf_page_hosts hosts; /* names are borrowed */
	bool cluster;
	const struct hf_page_source *source; /* outlives the page */
	/* Reads nodes, asks for reviews; on one machine also acts. Outlives the page. */
	struct hf_store *store;
	bool watch_nodes; /* false: this process may not list nodes, so the page has none */
	/* Makes a store that sends the caller's token and no other credential; the page destroys it. For a
	 * cluster. */
	int (*open_store)(void *arg, const char *token, struct hf_store **ret_store,
			  struct hf_error *err);
	void *arg;
	struct hf_metrics *metrics; /* outlives the page; NULL: none */
	uint64_t seed;              /* of hash tables */
	hf_time settle;             /* 0: HF_PAGE_SETTLE of jobs.h; for tests */
};

/* Begins to listen. Also the errors of hf_http_server_create. */
int hf_page_create(const struct hf_page_options *options, struct hf_page **ret_page,
		   struct hf_error *err) HF_MUST_CHECK;
struct hf_page *hf_page_destroy(struct hf_page *page); /* NULL is fine; returns NULL */
uint16_t hf_page_port(const struct hf_page *page);
/* The token of the URL "http://…/?token=…" on one machine; NULL in a cluster. */
const char *hf_page_token(const struct hf_page *page);

/* What the operator of this process tells. Each call is cheap; the work is done later. */
/* The job with this key, "plural/ns/name", or a pod of it, has changed. */
void hf_page_see_job(struct hf_page *page, const char *key);
/* The source has begun to know jobs, or knows other ones. */
void hf_page_see_all(struct hf_page *page);
void hf_page_see_plan(struct hf_page *page, const char *key, const struct hf_plan *plan);
void hf_page_see_event(struct hf_page *page, const struct hf_event_note *note, hf_time now);
/* A process of the pod has reported a step. */
void hf_page_see_beat(struct hf_page *page, const char *pod_uid, const struct hf_beat *beat);
/* Before hf_metrics_render. */
void hf_page_update_metrics(struct hf_page *page);

HF_END_DECLS

#endif
