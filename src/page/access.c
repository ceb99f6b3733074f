/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Sends TokenReviews and SubjectAccessReviews, and calls the waiting callers back. */
#include "page/access.h"

#include "base/map.h"
#include "base/vec.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/* More than the server has connections and streams: each waits at most once. */
#define WAITERS_MAX 4096
#define REVIEW_TIMEOUT (10 * HF_SECOND)

static const struct hf_resource token_reviews = {
	.group = "authentication.k8s.io",
	.version = "v1",
	.plural = "tokenreviews",
	.singular = "tokenreview",
	.kind = "TokenReview",
};
static const struct hf_resource access_reviews = {
	.group = "authorization.k8s.io",
	.version = "v1",
	.plural = "subjectaccessreviews",
	.singular = "subjectaccessreview",
	.kind = "SubjectAccessReview",
};

struct login {
	struct login *next;
	struct hf_page_access *access;
	struct hf_call *call;
	struct hf_timer *timer; /* of a refused login, which is answered late */
	hf_page_login_fn done;
	void *arg; /* NULL: the caller has gone */
	struct hf_error err;
};

struct waiter {
	hf_page_known_fn done;
	void *arg;
};

/* Reviews of one session. */
struct round {
	struct round *next;
	struct hf_page_access *access;
	struct hf_page_session *session;
	size_t open;     /* reviews without an answer */
	uint64_t places; /* hf_page_jobs_places when namespaces were asked for */
	bool namespaces; /* the reviews of single namespaces are sent */
	HF_VEC(struct waiter) waiters;
};

/* A review of a right, or of the session's token: then plural and ns are NULL. */
struct review {
	struct review *next;
	struct round *round;
	struct hf_call *call;
	char *plural, *ns;
};

struct hf_page_access {
	struct hf_loop *loop;
	struct hf_store *store;
	const struct hf_page_jobs *jobs;
	struct login *logins;
	size_t logins_len;
	struct round *rounds;
	struct review *reviews;
};

struct hf_page_access *hf_page_access_create(struct hf_loop *loop, struct hf_store *store,
					     const struct hf_page_jobs *jobs)
{
	struct hf_page_access *access = hf_xcalloc(1, sizeof(*access));

	access->loop = loop;
	access->store = store;
	access->jobs = jobs;
	return access;
}

/* ---- logins ----------------------------------------------------------------------------------------------- */

static void free_login(struct login *login)
{
	struct login **at = &login->access->logins;

	while (*at != login)
		at = &(*at)->next;
	*at = login->next;
	login->access->logins_len--;
	hf_call_cancel(login->call);
	hf_timer_destroy(login->timer);
	free(login);
}

static void end_login(struct login *login, const struct hf_json *identity)
{
	hf_page_login_fn done = login->done;
	struct hf_error err = login->err;
	void *arg = login->arg;

	free_login(login);
	if (arg != NULL)
		done(arg, identity, &err);
}

static void on_refusal_due(void *arg)
{
	end_login(arg, NULL);
}

/* The user of the token that was reviewed; NULL: the API server refuses the token, or was not asked. It lives as long as
 * the reply. */
static const struct hf_json *reviewed_user(const struct hf_reply *reply)
{
	const struct hf_json *status =
		reply->code != 0 ? NULL : hf_json_get(hf_doc_json(reply->object), "status");
	const struct hf_json *user = hf_json_get(status, "user");

	return hf_json_true(hf_json_get(status, "authenticated"), false) &&
			       !hf_str_is_empty(hf_json_path_str(user, "username", NULL))
		       ? user
		       : NULL;
}

static void on_token_review(void *arg, const struct hf_reply *reply)
{
	struct login *login = arg;
	const struct hf_json *user = reviewed_user(reply);

	login->call = NULL;
	if (user != NULL) {
		/* The document lives until the end of this callback. */
		HF_AUTO_JSON identity = hf_json_object();
		hf_json_set_str(identity, "user", hf_json_path_str(user, "username", NULL));
		hf_json_set(identity, "groups", hf_json_share(hf_json_get(user, "groups")));
		hf_json_set(identity, "uid", hf_json_share(hf_json_get(user, "uid")));
		hf_json_set(identity, "extra", hf_json_share(hf_json_get(user, "extra")));
		end_login(login, identity);
		return;
	}
	if (reply->code != 0)
		(void)hf_error_set(&login->err, HF_E_UNAVAILABLE,
				   "the API server could not be asked about the token: %s",
				   reply->message);
	else
		(void)hf_error_set(&login->err, HF_E_FORBIDDEN,
				   "the API server does not accept this token");
	login->timer = hf_timer_create(login->access->loop, on_refusal_due, login);
	hf_timer_arm(login->timer, HF_PAGE_REFUSE_AFTER);
}

static struct hf_doc *review_doc(const struct hf_resource *resource, struct hf_json *spec)
{
	struct hf_json *object = hf_json_object();
	char version[HF_API_VERSION_MAX];

	hf_json_set_str(object, "apiVersion", hf_resource_api_version(resource, version));
	hf_json_set_str(object, "kind", resource->kind);
	hf_json_set(object, "spec", spec);
	return hf_doc_from_json(object);
}

static struct hf_doc *token_doc(const char *token)
{
	struct hf_json *spec = hf_json_object();

	hf_json_set_str(spec, "token", token);
	return review_doc(&token_reviews, spec);
}

int hf_page_access_login(struct hf_page_access *access, const char *token, hf_page_login_fn done,
			 void *arg, struct hf_error *err)
{
	struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &token_reviews, .timeout = REVIEW_TIMEOUT};
	struct login *login;

	if (access->logins_len >= HF_PAGE_LOGINS_MAX)
		return hf_error_set(err, HF_E_TOO_MANY,
				    "too many logins are under way; try again in a second");
	HF_AUTO_DOC body = token_doc(token);

	login = hf_xcalloc(1, sizeof(*login));
	login->access = access;
	login->done = done;
	login->arg = arg;
	login->next = access->logins;
	access->logins = login;
	access->logins_len++;
	request.body = body;
	login->call = hf_store_request(access->store, &request, on_token_review, login);
	return 0;
}

/* ---- rights --------------------------------------------------------------------------------------------------- */

static void end_round(struct round *round)
{
	struct round **at = &round->access->rounds;

	round->session->learned_at = hf_loop_mono(round->access->loop);
	round->session->learned_places = round->places;
	/* A callback may call hf_page_access_forget, which removes the function of another waiter. So the list has the
	 * round until the last callback has returned. */
	for (size_t i = 0; i < round->waiters.len; i++)
		if (round->waiters.items[i].done != NULL)
			round->waiters.items[i].done(round->waiters.items[i].arg);
	while (*at != round)
		at = &(*at)->next;
	*at = round->next;
	HF_VEC_RELEASE(&round->waiters);
	hf_page_session_unref(round->session);
	free(round);
}

static void ask_namespaces(struct round *round);

static void free_review(struct review *review)
{
	struct review **at = &review->round->access->reviews;

	while (*at != review)
		at = &(*at)->next;
	*at = review->next;
	hf_call_cancel(review->call);
	free(review->plural);
	free(review->ns);
	free(review);
}

static void end_review(struct round *round)
{
	if (--round->open > 0)
		return;
	if (!round->namespaces) {
		round->namespaces = true;
		round->places = hf_page_jobs_places(round->access->jobs);
		ask_namespaces(round);
	}
	if (round->open == 0)
		end_round(round);
}

static void on_access_review(void *arg, const struct hf_reply *reply)
{
	struct review *review = arg;
	struct round *round = review->round;
	struct hf_page_grant *grant =
		hf_page_session_grant(round->session, review->plural, review->ns);
	hf_time now = hf_loop_mono(round->access->loop);
	enum hf_page_right right = HF_PAGE_RIGHT_DENIED;

	review->call = NULL;
	free_review(review);
	if (grant == NULL) {
		end_review(round);
		return;
	}
	grant->asking = false;
	if (reply->code == 0) {
		if (hf_json_true(
			    hf_json_path(hf_doc_json(reply->object), "status", "allowed", NULL),
			    false))
			right = HF_PAGE_RIGHT_ALLOWED;
		grant->asked_at = now;
	} else if (grant->asked_at != HF_TIME_NONE &&
		   now - grant->asked_at < HF_PAGE_RIGHTS_STALE) {
		right = grant->right; /* the last answer counts for a while */
	}
	if (grant->right != right)
		round->session->rights_version++;
	grant->right = right;
	end_review(round);
}

static struct hf_doc *access_doc(const struct hf_page_session *session, const char *plural,
				 const char *ns)
{
	const struct hf_json *identity = session->identity;
	struct hf_json *spec = hf_json_object();
	struct hf_json *attributes = hf_json_ensure_object(spec, "resourceAttributes");

	hf_json_set(spec, "user", hf_json_share(hf_json_get(identity, "user")));
	hf_json_set(spec, "groups", hf_json_share(hf_json_get(identity, "groups")));
	hf_json_set(spec, "uid", hf_json_share(hf_json_get(identity, "uid")));
	hf_json_set(spec, "extra", hf_json_share(hf_json_get(identity, "extra")));
	hf_json_set_str(attributes, "verb", "list");
	hf_json_set_str(attributes, "group",
			hf_streq(plural, hf_nodes.plural) ? "" : hf_pytorchjobs.group);
	hf_json_set_str(attributes, "resource", plural);
	if (*ns != '\0')
		hf_json_set_str(attributes, "namespace", ns);
	return review_doc(&access_reviews, spec);
}

static struct review *create_review(struct round *round)
{
	struct review *review = hf_xcalloc(1, sizeof(*review));

	review->round = round;
	review->next = round->access->reviews;
	round->access->reviews = review;
	round->open++;
	return review;
}

static void on_token_review_again(void *arg, const struct hf_reply *reply)
{
	struct review *review = arg;
	struct round *round = review->round;

	review->call = NULL;
	free_review(review);
	if (reviewed_user(reply) != NULL)
		round->session->reviewed_at = hf_loop_mono(round->access->loop);
	else if (reply->code == 0)
		round->session->revoked = true;
	/* Without an answer the session goes on: its rights end after HF_PAGE_RIGHTS_STALE. */
	end_review(round);
}

/* A token may expire, or its account may be deleted, long before the session ends. */
static void ask_token(struct round *round)
{
	const struct hf_page_session *session = round->session;
	struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &token_reviews, .timeout = REVIEW_TIMEOUT};
	struct review *review;

	if (session->token == NULL ||
	    (session->reviewed_at != HF_TIME_NONE &&
	     hf_loop_mono(round->access->loop) - session->reviewed_at < HF_PAGE_RIGHTS_FRESH))
		return;
	HF_AUTO_DOC body = token_doc(session->token);

	review = create_review(round);
	request.body = body;
	review->call =
		hf_store_request(round->access->store, &request, on_token_review_again, review);
}

/* Sends the review of one right, if its answer is missing or old. */
static void ask_right(struct round *round, const char *plural, const char *ns)
{
	struct hf_page_access *access = round->access;
	struct hf_page_grant *grant = hf_page_session_grant(round->session, plural, ns);
	struct hf_request request = {
		.verb = HF_VERB_CREATE, .resource = &access_reviews, .timeout = REVIEW_TIMEOUT};
	struct review *review;

	if (grant == NULL || grant->asking ||
	    (grant->asked_at != HF_TIME_NONE &&
	     hf_loop_mono(access->loop) - grant->asked_at < HF_PAGE_RIGHTS_FRESH))
		return;
	HF_AUTO_DOC body = access_doc(round->session, plural, ns);

	grant->asking = true;
	review = create_review(round);
	review->plural = hf_xstrdup(plural);
	review->ns = hf_xstrdup(ns);
	request.body = body;
	review->call = hf_store_request(access->store, &request, on_access_review, review);
}

/* Where a kind may not be listed in all namespaces, asks for each namespace with a job of that kind. */
static void ask_namespaces(struct round *round)
{
	const struct hf_page_row *row;

	for (size_t it = 0; (row = hf_page_jobs_next(round->access->jobs, &it)) != NULL;) {
		const char *plural = row->framework->plural;
		const struct hf_page_grant *all = hf_page_session_grant(round->session, plural, "");

		if (all != NULL && all->right != HF_PAGE_RIGHT_ALLOWED)
			ask_right(round, plural, row->ns);
	}
}

static struct round *find_round(const struct hf_page_access *access,
				const struct hf_page_session *session)
{
	struct round *round = access->rounds;

	while (round != NULL && round->session != session)
		round = round->next;
	return round;
}

static bool is_known(const struct hf_page_access *access, const struct hf_page_session *session)
{
	return session->all ||
	       (session->learned_at != HF_TIME_NONE &&
		session->learned_places == hf_page_jobs_places(access->jobs) &&
		hf_loop_mono(access->loop) - session->learned_at < HF_PAGE_RIGHTS_FRESH);
}

static void add_waiter(struct round *round, const struct waiter *waiter)
{
	bool fits = HF_VEC_PUSH(&round->waiters, *waiter);

	hf_assert(fits);
}

void hf_page_access_learn(struct hf_page_access *access, struct hf_page_session *session,
			  hf_page_known_fn done, void *arg)
{
	struct round *round = session->all ? NULL : find_round(access, session);
	struct waiter waiter = {done, arg};

	if (is_known(access, session)) {
		done(arg);
		return;
	}
	if (round != NULL) {
		add_waiter(round, &waiter);
		return;
	}
	round = hf_xcalloc(1, sizeof(*round));
	round->access = access;
	round->session = hf_page_session_ref(session);
	round->waiters.len_max = WAITERS_MAX;
	round->next = access->rounds;
	access->rounds = round;
	/* One more than the reviews, so that the round does not end before all are sent. */
	round->open = 1;
	add_waiter(round, &waiter);
	ask_token(round);
	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		ask_right(round, hf_frameworks[i]->plural, "");
	ask_right(round, hf_nodes.plural, "");
	end_review(round);
}

void hf_page_access_forget(struct hf_page_access *access, const void *arg)
{
	for (struct login *login = access->logins; login != NULL; login = login->next)
		if (login->arg == arg)
			login->arg = NULL;
	for (struct round *round = access->rounds; round != NULL; round = round->next)
		for (size_t i = 0; i < round->waiters.len; i++)
			if (round->waiters.items[i].arg == arg)
				round->waiters.items[i].done = NULL;
}

struct hf_page_access *hf_page_access_destroy(struct hf_page_access *access)
{
	if (access == NULL)
		return NULL;
	while (access->logins != NULL)
		free_login(access->logins);
	while (access->reviews != NULL)
		free_review(access->reviews);
	while (access->rounds != NULL) {
		struct round *round = access->rounds;

		access->rounds = round->next;
		HF_VEC_RELEASE(&round->waiters);
		hf_page_session_unref(round->session);
		free(round);
	}
	free(access);
	return NULL;
}

bool hf_page_access_sees_all(const struct hf_page_session *session)
{
	for (size_t i = 0; hf_frameworks[i] != NULL; i++)
		if (!hf_page_session_may(session, hf_frameworks[i]->plural, ""))
			return false;
	return true;
}

bool hf_page_access_sees_nodes(const struct hf_page_session *session)
{
	return hf_page_session_may(session, hf_nodes.plural, "");
}
