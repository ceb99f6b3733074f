/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_PAGE_ACCESS_H
#define HF_PAGE_ACCESS_H

#include "page/jobs.h"
#include "page/sessions.h"
#include "store/store.h"

HF_BEGIN_DECLS

/*
 * Asks the API server of a cluster for the user of a token (TokenReview), and for the kinds that this user may list (SubjectAccessReview). The page shows a session only what these answers allow.
 *
 * With the rights of a session it asks for the user of the token again. If the API server refuses the token, the session
 * is marked as revoked.
 *
 * An answer is valid for HF_PAGE_RIGHTS_FRESH; then the page asks again, and the old answer stays valid meanwhile. An answer without a renewal for HF_PAGE_RIGHTS_STALE is not valid.
 */
struct hf_page_access;

#define HF_PAGE_RIGHTS_FRESH (30 * HF_SECOND)
#define HF_PAGE_RIGHTS_STALE (2 * HF_MINUTE)
#define HF_PAGE_TOKEN_MAX ((size_t)16 << 10)
/* Logins under way. A refused one is answered after HF_PAGE_REFUSE_AFTER, so that tokens cannot be tried fast. */
#define HF_PAGE_LOGINS_MAX 16
#define HF_PAGE_REFUSE_AFTER HF_SECOND

struct hf_page_access *hf_page_access_create(struct hf_loop *loop, struct hf_store *store,
					     const struct hf_page_jobs *jobs);
/* Calls no callback. NULL is fine; returns NULL. */
struct hf_page_access *hf_page_access_destroy(struct hf_page_access *access);

/* identity: {"user", "groups", "uid", "extra"} of a review; NULL: the token is refused, and err says why
 * (HF_E_FORBIDDEN), or the API server could not be asked. */
typedef void (*hf_page_login_fn)(void *arg, const struct hf_json *identity,
				 const struct hf_error *err);
/* HF_E_TOO_MANY: too many logins are under way. The login is cancelled by its argument. */
int hf_page_access_login(struct hf_page_access *access, const char *token, hf_page_login_fn done,
			 void *arg, struct hf_error *err) HF_MUST_CHECK;

/* Calls done, from the loop or at once, when the session's rights are known. Holds a reference to the session. */
typedef void (*hf_page_known_fn)(void *arg);
void hf_page_access_learn(struct hf_page_access *access, struct hf_page_session *session,
			  hf_page_known_fn done, void *arg);
/* The callback with this argument is not called. */
void hf_page_access_forget(struct hf_page_access *access, const void *arg);

/* True if the session may see every job of every kind; nodes likewise. */
bool hf_page_access_sees_all(const struct hf_page_session *session);
bool hf_page_access_sees_nodes(const struct hf_page_session *session);

HF_END_DECLS

#endif
