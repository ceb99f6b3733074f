/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_STORE_REQUEST_H
#define HF_STORE_REQUEST_H

#include "base/strbuf.h"
#include "store/store.h"

/* What back ends share: checks, copies, and the Status that tells a client what went wrong. */

/* Whether the request makes sense at all: HF_E_BAD_REQUEST or HF_E_INVALID with a text for the
 * caller, to be delivered as a reply.  Names and namespaces become path segments: those that
 * could leave their place ("..", "a/b", "%2f") are refused here. */
int hf_request_check(const struct hf_request *request, struct hf_error *err) HF_MUST_CHECK;
int hf_watch_options_check(const struct hf_watch_options *options, struct hf_error *err)
	HF_MUST_CHECK;

/* One block of memory that holds the request and its strings; the body is referenced. */
struct hf_request *hf_request_copy(const struct hf_request *request);
struct hf_request *hf_request_free(struct hf_request *request); /* NULL is fine; returns NULL */

/*
 * metav1.Status of a failure.  name may be NULL; uid may be NULL; causes is an array of
 * {reason, message, field} (taken over, may be NULL); retry_after_s 0: not told.
 */
struct hf_status_args {
	int code; /* HF_E_* */
	const char *message;
	const struct hf_resource *resource; /* NULL: no details */
	const char *name;
	const char *uid;
	struct hf_json *causes;
	int64_t retry_after_s;
};
struct hf_json *hf_status_failure(const struct hf_status_args *args);
/* Status of a deletion that is complete. */
struct hf_json *hf_status_success(const struct hf_resource *resource, const char *name,
				  const char *uid);

/* Messages in an API server's words, so that every client shows what its user knows. */
void hf_message_not_found(struct hf_strbuf *sb, const struct hf_resource *r, const char *name);
void hf_message_exists(struct hf_strbuf *sb, const struct hf_resource *r, const char *name);
void hf_message_conflict(struct hf_strbuf *sb, const struct hf_resource *r, const char *name,
			 const char *why);
void hf_message_invalid(struct hf_strbuf *sb, const struct hf_resource *r, const char *name,
			const char *problems);
void hf_message_forbidden(struct hf_strbuf *sb, const struct hf_resource *r, const char *name,
			  const char *why);
#define HF_MESSAGE_MODIFIED                                                                        \
	"the object has been modified; please apply your changes to the latest version and try "   \
	"again"

#endif
