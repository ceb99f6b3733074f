/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* A table of sessions by key, and what each may see. */
#include "page/sessions.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RIGHT_KEY_MAX 160

struct hf_page_sessions {
	char cookie[HF_PAGE_COOKIE_MAX];
	struct hf_map *by_key; /* key → session; the table's references */
};

static void drop_session(void *value)
{
	struct hf_page_session *session = value;

	session->closed = true;
	hf_page_session_unref(session);
}

struct hf_page_sessions *hf_page_sessions_create(uint16_t port)
{
	struct hf_page_sessions *sessions = hf_xcalloc(1, sizeof(*sessions));

	snprintf(sessions->cookie, sizeof(sessions->cookie), HF_PAGE_COOKIE "%u", (unsigned)port);

	/* Keys are random numbers of this process, so the table needs no secret seed. */
	sessions->by_key = hf_map_create(HF_PAGE_SESSIONS_MAX, 0, drop_session);
	return sessions;
}

struct hf_page_sessions *hf_page_sessions_destroy(struct hf_page_sessions *sessions)
{
	if (sessions == NULL)
		return NULL;
	hf_map_destroy(sessions->by_key);
	free(sessions);
	return NULL;
}

const char *hf_page_sessions_cookie(const struct hf_page_sessions *sessions)
{
	return sessions->cookie;
}

size_t hf_page_sessions_len(const struct hf_page_sessions *sessions)
{
	return hf_map_len(sessions->by_key);
}

struct hf_page_session *hf_page_session_ref(struct hf_page_session *session)
{
	session->refs++;
	return session;
}

struct hf_page_session *hf_page_session_unref(struct hf_page_session *session)
{
	if (session == NULL || --session->refs > 0)
		return NULL;
	hf_map_destroy(session->rights);
	hf_json_unref(session->identity);
	hf_page_free_secret(session->token);
	free(session->user);
	free(session);
	return NULL;
}

bool hf_page_session_has_ended(const struct hf_page_session *session, hf_time now)
{
	return session->closed || session->revoked ||
	       now - session->created_at >= HF_PAGE_SESSION_LIFE;
}

/* Removes sessions that have ended; of a full table also the one that was not used for longest. */
static void make_room(struct hf_page_sessions *sessions, hf_time now)
{
	struct hf_page_session *oldest = NULL;
	const char *key;
	void *value;

	for (size_t it = 0; hf_map_next(sessions->by_key, &it, &key, &value);) {
		struct hf_page_session *session = value;

		if (hf_page_session_has_ended(session, now))
			hf_map_remove(sessions->by_key, session->key);
		else if (oldest == NULL || session->used_at < oldest->used_at)
			oldest = session;
	}
	if (oldest != NULL && hf_map_len(sessions->by_key) >= HF_PAGE_SESSIONS_MAX)
		hf_map_remove(sessions->by_key, oldest->key);
}

struct hf_page_session *hf_page_sessions_add(struct hf_page_sessions *sessions, const char *key,
					     const char *user, hf_time now)
{
	struct hf_page_session *session = hf_xcalloc(1, sizeof(*session));

	make_room(sessions, now);
	snprintf(session->key, sizeof(session->key), "%s", key);
	session->refs = 1;
	session->user = hf_xstrdup(user);
	session->created_at = session->used_at = now;
	session->learned_at = session->reviewed_at = HF_TIME_NONE;
	session->rights = hf_map_create(HF_PAGE_RIGHTS_MAX, 0, free);
	bool put = hf_map_put(sessions->by_key, session->key, session);

	hf_assert(put);
	return session;
}

bool hf_page_cookie(const char *header, const char *name, char *ret_value, size_t size)
{
	size_t name_len = strlen(name);
	const char *at = header;

	while (at != NULL && *at != '\0') {
		size_t len = strcspn(at, ";");

		if (len > name_len && strncmp(at, name, name_len) == 0 && at[name_len] == '=') {
			len -= name_len + 1;
			if (len >= size)
				return false;
			memcpy(ret_value, at + name_len + 1, len);
			ret_value[len] = '\0';
			return true;
		}
		at += len;
		at += strspn(at, "; ");
	}
	return false;
}

bool hf_page_same_secret(const char *a, const char *b)
{
	size_t len = strlen(a);
	unsigned differ = 0;

	if (len != strlen(b))
		return false;
	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return differ == 0;
}

void hf_page_free_secret(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

struct hf_page_session *hf_page_sessions_find(struct hf_page_sessions *sessions, const char *cookie,
					      hf_time now)
{
	char key[HF_PAGE_KEY_TEXT];
	struct hf_page_session *session;

	if (cookie == NULL || !hf_page_cookie(cookie, sessions->cookie, key, sizeof(key)))
		return NULL;
	session = hf_map_get(sessions->by_key, key);
	if (session == NULL || !hf_page_same_secret(session->key, key))
		return NULL;
	if (hf_page_session_has_ended(session, now)) {
		hf_map_remove(sessions->by_key, key);
		return NULL;
	}
	session->used_at = now;
	return session;
}

void hf_page_sessions_close(struct hf_page_sessions *sessions, struct hf_page_session *session)
{
	if (!session->closed)
		hf_map_remove(sessions->by_key, session->key);
}

static void write_right_key(const char *plural, const char *ns, char key[RIGHT_KEY_MAX])
{
	snprintf(key, RIGHT_KEY_MAX, "%s/%s", plural, ns);
}

struct hf_page_grant *hf_page_session_grant(struct hf_page_session *session, const char *plural,
					    const char *ns)
{
	char key[RIGHT_KEY_MAX];
	struct hf_page_grant *grant;

	write_right_key(plural, ns, key);
	grant = hf_map_get(session->rights, key);
	if (grant != NULL)
		return grant;
	grant = hf_xcalloc(1, sizeof(*grant));
	grant->asked_at = HF_TIME_NONE;
	if (hf_map_put(session->rights, key, grant))
		return grant;
	free(grant);
	return NULL;
}

static bool is_allowed(const struct hf_page_session *session, const char *plural, const char *ns)
{
	char key[RIGHT_KEY_MAX];
	const struct hf_page_grant *grant;

	write_right_key(plural, ns, key);
	grant = hf_map_get(session->rights, key);
	return grant != NULL && grant->right == HF_PAGE_RIGHT_ALLOWED;
}

bool hf_page_session_may(const struct hf_page_session *session, const char *plural, const char *ns)
{
	return !session->closed && !session->revoked &&
	       (session->all || is_allowed(session, plural, "") ||
		(ns[0] != '\0' && is_allowed(session, plural, ns)));
}
