/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * From a request to its answer: checks in a fixed order, then the file that knows the answer.
 * Each check that fails answers at once, with a text that names what is wrong.
 */
#include "page/page_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "store/resource.h"

#include <stdlib.h>

/* ---- requests that wait ------------------------------------------------------------------------------------------- */

static void free_request(struct hf_page_request *request)
{
	if (request->prev != NULL)
		request->prev->next = request->next;
	else
		request->page->requests = request->next;
	if (request->next != NULL)
		request->next->prev = request->prev;
	hf_page_session_unref(request->session);
	free(request);
}

static void on_gone(void *arg, struct hf_exchange *ex)
{
	struct hf_page_request *request = arg;

	hf_page_access_forget(request->page->access, request);
	free_request(request);
}

void hf_page_drop_requests(struct hf_page *page)
{
	while (page->requests != NULL) {
		struct hf_page_request *request = page->requests;
		struct hf_exchange *ex = request->ex;

		hf_page_access_forget(page->access, request);
		free_request(request);
		hf_exchange_abort(ex);
	}
}

/* What the route needs to list, for the session's rights. NULL: nothing in particular. */
static const char *needed_plural(const struct hf_page_request *request)
{
	const struct hf_framework *framework;

	switch (request->place.route) {
	case HF_PAGE_NODES:
	case HF_PAGE_NODE: return hf_nodes.plural;
	case HF_PAGE_JOB:
	case HF_PAGE_JOB_YAML:
	case HF_PAGE_JOB_RANKS:
	case HF_PAGE_JOB_LOG:
	case HF_PAGE_JOB_ACTION:
		framework = hf_framework_by_name(request->place.kind);
		return framework == NULL ? request->place.kind : framework->plural;
	default: return NULL;
	}
}

static void open_stream(const struct hf_page_request *request)
{
	struct hf_exchange *ex = request->ex;
	const char *last = hf_exchange_header(ex, "Last-Event-ID");
	const struct hf_page_viewer viewer = {
		.session = request->session,
		.since = !hf_str_is_empty(last) ? last : hf_exchange_query(ex, "since"),
		.once = request->query.once,
	};

	if (!hf_page_streams_admit(request->page->streams)) {
		hf_exchange_add_header(ex, "Retry-After", "10");
		hf_page_answer_error(
			request->page, ex, 503,
			"the page serves at most %d streams; close a tab, or try again later",
			HF_PAGE_STREAMS_MAX);
		return;
	}
	hf_page_add_no_store(ex);
	hf_exchange_add_header(ex, "X-Accel-Buffering", "no"); /* proxies must pass each event on */
	hf_page_count(request->page, HF_PAGE_EVENTS, 200);
	hf_page_streams_open(request->page->streams, ex, &viewer);
}

/* False: the request was answered, because this process does not know the jobs. */
static bool check_ready(const struct hf_page_request *request)
{
	const struct hf_page_source *source = request->page->options.source;

	if (request->place.route == HF_PAGE_SESSION || request->place.route == HF_PAGE_INDEX ||
	    source->ready(source->arg))
		return true;
	hf_exchange_add_header(request->ex, "Retry-After", "2");
	hf_page_answer_error(
		request->page, request->ex, 503,
		"this process does not know the jobs yet, or another replica of the operator "
		"leads");
	return false;
}

static void answer_request(const struct hf_page_request *request)
{
	if (!check_ready(request))
		return;
	switch (request->place.route) {
	case HF_PAGE_EVENTS: open_stream(request); break;
	case HF_PAGE_JOB_LOG: hf_page_log(request); break;
	case HF_PAGE_JOB_ACTION: hf_page_act(request); break;
	case HF_PAGE_INDEX: hf_page_index(request->page, request->ex, request->session); break;
	default: hf_page_read(request); break;
	}
}

/* The session's rights are known: answers, or says which right is missing. */
static void on_known(void *arg)
{
	struct hf_page_request *request = arg;
	const char *plural = needed_plural(request);
	const struct hf_page_place *place = &request->place;

	hf_exchange_on_closed(request->ex, NULL, NULL);
	if (request->session->revoked)
		hf_page_answer_error(request->page, request->ex, 401,
				     "the API server no longer accepts the token of this session; "
				     "log in with a new one");
	else if (plural != NULL && !hf_page_session_may(request->session, plural, place->ns))
		hf_page_answer_error(
			request->page, request->ex, 403,
			"user '%s' may not list %s%s%s%s; an administrator can allow it with a %sRole",
			request->session->user, plural,
			place->ns[0] != '\0' ? " in namespace '" : "", place->ns,
			place->ns[0] != '\0' ? "'" : "", place->ns[0] != '\0' ? "" : "Cluster");
	else
		answer_request(request);
	free_request(request);
}

/* ---- checks --------------------------------------------------------------------------------------------------------- */

static bool check_method(struct hf_page *page, struct hf_exchange *ex, enum hf_page_route route)
{
	const char *method = hf_exchange_method(ex);
	bool post = hf_page_route_is_post(route);

	if (post ? hf_streq(method, "POST") : hf_streq(method, "GET") || hf_streq(method, "HEAD"))
		return true;
	hf_exchange_add_header(ex, "Allow", post ? "POST" : "GET, HEAD");
	hf_page_answer_error(page, ex, 405, "this path takes %s only",
			     post ? "POST" : "GET and HEAD");
	return false;
}

/* False: the request was answered, because it may come from a page of another site. */
static bool check_origin(struct hf_page *page, struct hf_exchange *ex, enum hf_page_route route)
{
	const char *host = hf_exchange_header(ex, "Host");

	if (!hf_page_host_ok(&page->options.hosts, host)) {
		hf_page_answer_error(
			page, ex, 403,
			"the page is not served under the name in header Host; an administrator "
			"can add a name with --page-host");
		return false;
	}
	if (hf_page_route_is_post(route) &&
	    !hf_page_origin_ok(hf_exchange_header(ex, "Origin"),
			       hf_exchange_header(ex, "Sec-Fetch-Site"), host)) {
		hf_page_answer_error(page, ex, 403, "the request comes from another site");
		return false;
	}
	return true;
}

static const char *find_param(void *arg, const char *name)
{
	return hf_exchange_query(arg, name);
}

static void begin_request(struct hf_page *page, struct hf_exchange *ex,
			  const struct hf_page_place *place, struct hf_page_session *session)
{
	struct hf_page_request *request;
	struct hf_page_query query;
	struct hf_error err = {0};

	if (hf_page_query_read(find_param, ex, &query, &err) != 0) {
		hf_page_answer_error(page, ex, 400, "%s", err.text);
		return;
	}
	request = hf_xcalloc(1, sizeof(*request));
	request->page = page;
	request->ex = ex;
	request->place = *place;
	request->query = query;
	request->session = hf_page_session_ref(session);
	request->next = page->requests;
	if (page->requests != NULL)
		page->requests->prev = request;
	page->requests = request;
	hf_exchange_on_closed(ex, on_gone, request);
	hf_page_access_learn(page->access, session, on_known, request);
}

void hf_page_serve(void *arg, struct hf_exchange *ex)
{
	struct hf_page *page = arg;
	struct hf_page_session *session;
	struct hf_page_place place;

	hf_page_route(hf_exchange_path(ex), &place);
	if (place.route == HF_PAGE_HEALTH) {
		hf_exchange_respond(ex, 200, "text/plain; charset=utf-8", "ok\n", 3);
		return;
	}
	if (!check_origin(page, ex, place.route))
		return;
	if (place.route == HF_PAGE_NOTHING) {
		hf_page_answer_error(page, ex, 404, "the page has no such path");
		return;
	}
	if (!check_method(page, ex, place.route))
		return;
	session = hf_page_sessions_find(page->sessions, hf_exchange_header(ex, "Cookie"),
					hf_loop_mono(page->options.loop));
	if (place.route == HF_PAGE_ASSET)
		hf_page_asset(page, ex);
	else if (place.route == HF_PAGE_LOGIN)
		hf_page_login(page, ex);
	else if (place.route == HF_PAGE_INDEX && hf_page_redeem(page, ex))
		return;
	else if (place.route == HF_PAGE_INDEX && session == NULL)
		hf_page_index(page, ex, NULL);
	else if (session == NULL)
		hf_page_answer_error(
			page, ex, 401,
			page->options.cluster
				? "not logged in: POST a token to /api/v1/login"
				: "not logged in: open the URL that the program has printed");
	else if (place.route == HF_PAGE_LOGOUT)
		hf_page_logout(page, ex, session);
	else
		begin_request(page, ex, &place, session);
}
