/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Sessions: how they begin and end. */
#include "page/page_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "page/json_out.h"

#include <stdlib.h>
#include <string.h>

/* Attributes of the cookie: no script reads it, and no other site makes a browser send it. */
#define COOKIE_ATTRIBUTES "; Path=/; HttpOnly; SameSite=Strict"

/* NULL: the kernel gives no random bytes, and the request was answered. */
static struct hf_page_session *create_session(struct hf_page *page, struct hf_exchange *ex,
					      const char *user)
{
	char key[HF_PAGE_KEY_TEXT];
	struct hf_error err;

	if (hf_random_hex(key, HF_PAGE_KEY_DIGITS, &err) != 0) {
		hf_page_answer_error(page, ex, 500, "%s", err.text);
		return NULL;
	}
	return hf_page_sessions_add(page->sessions, key, user, hf_loop_mono(page->options.loop));
}

/* Over TLS, which a proxy in front of the page speaks, the cookie must not go over plain HTTP. */
static bool is_secure(const struct hf_exchange *ex)
{
	return hf_streq(hf_exchange_header(ex, "X-Forwarded-Proto"), "https");
}

static void set_cookie(const struct hf_page *page, struct hf_exchange *ex,
		       const struct hf_page_session *session)
{
	int life = session == NULL ? 0 : (int)(HF_PAGE_SESSION_LIFE / HF_SECOND);
	HF_AUTOFREE char *cookie = hf_xasprintf(
		"%s=%s" COOKIE_ATTRIBUTES "; Max-Age=%d%s", hf_page_sessions_cookie(page->sessions),
		session == NULL ? "" : session->key, life, is_secure(ex) ? "; Secure" : "");

	hf_exchange_add_header(ex, "Set-Cookie", cookie);
}

bool hf_page_redeem(struct hf_page *page, struct hf_exchange *ex)
{
	const char *token = hf_exchange_query(ex, "token");
	struct hf_page_session *session;

	if (token == NULL || page->options.cluster)
		return false;
	if (page->token[0] != '\0' && hf_page_same_secret(page->token, token)) {
		page->token[0] = '\0';
		session = create_session(page, ex, "local user");
		if (session == NULL)
			return true;
		session->all = true;
		set_cookie(page, ex, session);
	}
	/* The token must not stay in the address bar, in the history or in a Referer. A token that was used already
	 * leads to the page too: the browser may have the session. */
	hf_page_add_no_store(ex);
	hf_exchange_add_header(ex, "Location", hf_exchange_path(ex));
	hf_page_count(page, HF_PAGE_INDEX, 303);
	hf_exchange_respond(ex, 303, NULL, "", 0);
	return true;
}

/* ---- login with a token of the API server -------------------------------------------------------------------- */

struct hf_page_login {
	struct hf_page_login *next;
	struct hf_page *page;
	struct hf_exchange *ex;
	char *token;
};

static void free_login(struct hf_page_login *login)
{
	struct hf_page_login **at = &login->page->logins;

	while (*at != login)
		at = &(*at)->next;
	*at = login->next;
	hf_page_free_secret(login->token);
	free(login);
}

static void on_gone(void *arg, struct hf_exchange *ex)
{
	struct hf_page_login *login = arg;

	hf_page_access_forget(login->page->access, login);
	free_login(login);
}

static void on_reviewed(void *arg, const struct hf_json *identity, const struct hf_error *err)
{
	struct hf_page_login *login = arg;
	struct hf_page *page = login->page;
	struct hf_exchange *ex = login->ex;
	HF_AUTO_JSON object = hf_json_object();
	struct hf_page_session *session;

	hf_exchange_on_closed(ex, NULL, NULL);
	if (identity == NULL) {
		hf_page_answer_error(page, ex, err->code == HF_E_FORBIDDEN ? 401 : 503, "%s",
				     err->text);
	} else {
		session = create_session(page, ex, hf_json_path_str(identity, "user", NULL));
		if (session != NULL) {
			session->identity = hf_json_share(identity);
			session->token = hf_xstrdup(login->token);
			session->reviewed_at = hf_loop_mono(page->options.loop);
			set_cookie(page, ex, session);
			hf_json_set_str(object, "user", session->user);
			hf_page_answer_json(page, ex, 200, object);
		}
	}
	free_login(login);
}

/* A token is printable ASCII without blanks. */
static bool is_token(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return len > 0 && len <= HF_PAGE_TOKEN_MAX;
}

static char *read_token(const struct hf_exchange *ex)
{
	HF_AUTO_JSON body = NULL;
	const char *bytes, *token;
	size_t len;

	bytes = hf_exchange_body(ex, &len);
	if (hf_json_parse(bytes, len, NULL, &body, NULL) != 0)
		return NULL;
	token = hf_json_path_str(body, "token", NULL);
	return token != NULL && is_token(token) ? hf_xstrdup(token) : NULL;
}

void hf_page_login(struct hf_page *page, struct hf_exchange *ex)
{
	struct hf_page_login *login;
	struct hf_error err;
	char *token;

	if (!page->options.cluster) {
		hf_page_answer_error(page, ex, 403, "open the URL that the program has printed");
		return;
	}
	token = read_token(ex);
	if (token == NULL) {
		hf_page_answer_error(
			page, ex, 400,
			"the body must be {\"token\": \"…\"} with a token of the API server");
		return;
	}
	login = hf_xcalloc(1, sizeof(*login));
	login->page = page;
	login->ex = ex;
	login->token = token;
	login->next = page->logins;
	page->logins = login;
	hf_exchange_on_closed(ex, on_gone, login);
	if (hf_page_access_login(page->access, token, on_reviewed, login, &err) == 0)
		return;
	hf_exchange_on_closed(ex, NULL, NULL);
	free_login(login);
	hf_exchange_add_header(ex, "Retry-After", "1");
	hf_page_answer_error(page, ex, 429, "%s", err.text);
}

void hf_page_drop_logins(struct hf_page *page)
{
	while (page->logins != NULL) {
		struct hf_exchange *ex = page->logins->ex;

		hf_page_access_forget(page->access, page->logins);
		free_login(page->logins);
		hf_exchange_abort(ex);
	}
}

void hf_page_logout(struct hf_page *page, struct hf_exchange *ex, struct hf_page_session *session)
{
	HF_AUTO_JSON object = hf_json_object();

	hf_page_sessions_close(page->sessions, session);
	set_cookie(page, ex, NULL);
	hf_page_answer_json(page, ex, 200, object);
}
