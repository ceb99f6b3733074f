/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_PAGE_INTERNAL_H
#define HF_PAGE_PAGE_INTERNAL_H

#include "http/server.h"
#include "page/access.h"
#include "page/jobs.h"
#include "page/nodes.h"
#include "page/notes.h"
#include "page/page.h"
#include "page/query.h"
#include "page/recovery.h"
#include "page/route.h"
#include "page/streams.h"

/*
 * What the files that answer requests share.
 *   page.c      life; what the operator tells; metrics
 *   serve.c     a request: Host, Origin, method, session, rights; which file answers
 *   answer.c    answers, with their headers
 *   login.c     sessions: the token of the URL, login, logout
 *   index.c     the document with its first rows
 *   read.c      answers from memory
 *   act.c       logs and actions, with the caller's own rights
 */

#define HF_PAGE_HEAD_BYTES_MAX ((size_t)8 << 10)
#define HF_PAGE_BODY_BYTES_MAX ((size_t)64 << 10)
/* Connections: the streams, and as many other requests again. */
#define HF_PAGE_CONNECTIONS_MAX 256
/* Connections of strangers, and of users between two requests. The rest is for streams, logins, logs and actions. */
#define HF_PAGE_IDLE_MAX 96
#define HF_PAGE_ANSWER_BYTES_MAX ((size_t)4 << 20)
/* Logs and actions under way. */
#define HF_PAGE_ACTS_MAX 32

struct hf_page_act;
struct hf_page_login;

struct hf_page {
	struct hf_page_options options;
	struct hf_http_server *server;
	struct hf_page_sessions *sessions;
	struct hf_page_ranks *ranks;
	struct hf_page_ring *ring;
	struct hf_page_jobs *jobs;
	struct hf_page_nodes *nodes; /* NULL: options.watch_nodes is false */
	struct hf_page_notes *notes;
	struct hf_page_recovery *recovery;
	struct hf_page_access *access;
	struct hf_page_streams *streams;
	struct hf_page_request *requests; /* not answered yet: the rights are being asked */
	struct hf_page_login *logins;
	struct hf_page_act *acts;
	size_t acts_len;
	struct hf_timer *sample_timer;
	char token[HF_PAGE_KEY_TEXT]; /* of the URL; "": used, or a cluster */
	struct {
		struct hf_family *requests, *streams, *stream_bytes, *stream_ends, *sessions;
	} metrics;
};

/* A request that has passed the checks without a session. It lives until the answer. */
struct hf_page_request {
	struct hf_page_request *prev, *next;
	struct hf_page *page;
	struct hf_exchange *ex;
	struct hf_page_place place;
	struct hf_page_query query;
	struct hf_page_session *session; /* a reference */
};

/* answer.c */
void hf_page_answer_json(struct hf_page *page, struct hf_exchange *ex, int status,
			 const struct hf_json *object);
HF_PRINTF(4, 5)
void hf_page_answer_error(struct hf_page *page, struct hf_exchange *ex, int status, const char *fmt,
			  ...);
/* Takes the text's memory. */
void hf_page_answer_text(struct hf_page *page, struct hf_exchange *ex, const char *type,
			 struct hf_strbuf *text);
void hf_page_count(const struct hf_page *page, enum hf_page_route route, int status);
/* Adds the headers of every answer. */
void hf_page_add_headers(struct hf_exchange *ex);
/* Adds the same headers, and Cache-Control: no-store. */
void hf_page_add_no_store(struct hf_exchange *ex);

/* serve.c */
void hf_page_serve(void *page, struct hf_exchange *ex);
/* Drops the requests that wait, when the page is destroyed. */
void hf_page_drop_requests(struct hf_page *page);

/* login.c */
void hf_page_login(struct hf_page *page, struct hf_exchange *ex);
void hf_page_logout(struct hf_page *page, struct hf_exchange *ex, struct hf_page_session *session);
/* The one-time token of the URL: true if the request was answered. */
bool hf_page_redeem(struct hf_page *page, struct hf_exchange *ex);
void hf_page_drop_logins(struct hf_page *page);

/* index.c */
void hf_page_index(struct hf_page *page, struct hf_exchange *ex,
		   const struct hf_page_session *session);
void hf_page_asset(struct hf_page *page, struct hf_exchange *ex);

/* read.c: answers a request from memory. */
void hf_page_read(const struct hf_page_request *request);
/* The job of the request; false: the request was answered with 404. */
bool hf_page_find_job(const struct hf_page_request *request, struct hf_page_job *ret_job);

/* act.c: these answer later. */
void hf_page_log(const struct hf_page_request *request);
void hf_page_act(const struct hf_page_request *request);
void hf_page_drop_acts(struct hf_page *page);

#endif
