/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_SESSIONS_H
#define HF_PAGE_SESSIONS_H

#include "base/time.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

HF_BEGIN_DECLS

/*
 * The sessions of the page: each user who has logged in, with the user's rights. Pure: times and keys are arguments.
 *
 * The key of a session is a random number in the browser's cookie and in this table. A session ends when it expires, is
 * closed, or its token is revoked. A full table ends the session that was not used for longest. A caller that keeps a
 * pointer across turns of the loop must hold a reference.
 */

#define HF_PAGE_SESSIONS_MAX 1024
#define HF_PAGE_SESSION_LIFE (8 * HF_HOUR)
#define HF_PAGE_KEY_DIGITS 64 /* hexadecimal digits of a key */
#define HF_PAGE_KEY_TEXT (HF_PAGE_KEY_DIGITS + 1)
/* Browsers share cookies between the ports of a host, so the name of a cookie has the port behind this. */
#define HF_PAGE_COOKIE "holdfast-page-"
#define HF_PAGE_COOKIE_MAX 32
/* Limit of the rights of a session: a right for each namespace and kind, and for all namespaces. */
#define HF_PAGE_RIGHTS_MAX 1024

/* An answer of the API server about one right. */
enum hf_page_right { HF_PAGE_RIGHT_UNKNOWN, HF_PAGE_RIGHT_DENIED, HF_PAGE_RIGHT_ALLOWED };

struct hf_page_session {
	unsigned refs;
	bool closed;  /* the session is no longer in the table */
	bool revoked; /* the API server no longer accepts the token */
	char key[HF_PAGE_KEY_TEXT];
	char *user;
	char *token; /* of the caller, for logs and actions; NULL: the local user */
	struct hf_json
		*identity; /* "user", "groups", "uid", "extra" for reviews; NULL: the local user */
	bool all;          /* the local user: every right */
	hf_time created_at, used_at;
	hf_time reviewed_at; /* monotonic: when the API server last accepted the token; NONE: never */
	struct hf_map *rights;   /* "plural/ns" or "plural/" → struct hf_page_grant */
	hf_time learned_at;      /* monotonic: when all rights were asked; NONE: never */
	uint64_t learned_places; /* hf_page_jobs_places at that time */
	uint64_t rights_version; /* rises when a right changes */
};

struct hf_page_grant {
	enum hf_page_right right;
	hf_time asked_at; /* monotonic: when the answer came; NONE: never */
	bool asking;
};

struct hf_page_sessions;
struct hf_page_sessions *hf_page_sessions_create(uint16_t port);
/* The name of the cookie. */
const char *hf_page_sessions_cookie(const struct hf_page_sessions *sessions);
struct hf_page_sessions *hf_page_sessions_destroy(
	struct hf_page_sessions *sessions); /* NULL is fine */
size_t hf_page_sessions_len(const struct hf_page_sessions *sessions);

/* Adds a session under a new key: HF_PAGE_KEY_DIGITS random hexadecimal digits. now: monotonic. The table holds the
 * reference. */
struct hf_page_session *hf_page_sessions_add(struct hf_page_sessions *sessions, const char *key,
					     const char *user, hf_time now);
/* True if the session is closed, expired or revoked. now: monotonic. */
bool hf_page_session_has_ended(const struct hf_page_session *session, hf_time now);
/* The session that the header Cookie names; NULL: none, or it has ended. Marks the session as used. */
struct hf_page_session *hf_page_sessions_find(struct hf_page_sessions *sessions, const char *cookie,
					      hf_time now);
void hf_page_sessions_close(struct hf_page_sessions *sessions, struct hf_page_session *session);
struct hf_page_session *hf_page_session_ref(struct hf_page_session *session);
struct hf_page_session *hf_page_session_unref(
	struct hf_page_session *session); /* NULL is fine; returns NULL */

/* The grant of a right; a new one is UNKNOWN. ns "": all namespaces. NULL: the session has too many. */
struct hf_page_grant *hf_page_session_grant(struct hf_page_session *session, const char *plural,
					    const char *ns);
/* True if the session may list this kind in this namespace, by the answers so far. */
bool hf_page_session_may(const struct hf_page_session *session, const char *plural, const char *ns);

/* The value of one cookie in a header, copied; false: absent or too long. */
bool hf_page_cookie(const char *header, const char *name, char *ret_value, size_t size);
/* Compares two texts of equal length in a time that does not depend on their bytes. */
bool hf_page_same_secret(const char *a, const char *b);
/* Overwrites a token or key before it frees it. NULL is fine. */
void hf_page_free_secret(char *secret);

HF_END_DECLS

#endif
