/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_STORE_REQUEST_H
#define HF_STORE_REQUEST_H

#include "base/strbuf.h"
#include "store/store.h"

/* What the back ends share: checks, copies, and the Status objects that tell a client about a
 * failure. */

/* Checks whether a request can be sent at all. Returns HF_E_BAD_REQUEST, HF_E_INVALID,
 * HF_E_METHOD or HF_E_NOT_FOUND with a text for the caller; the back end delivers it as a reply.
 * Names and namespaces become segments of a path. So a name that could change the path ("..",
 * "a/b", "%2f") is refused. */
int hf_request_check(const struct hf_request *request, struct hf_error *err) HF_MUST_CHECK;
int hf_watch_options_check(const struct hf_watch_options *options, struct hf_error *err)
	HF_MUST_CHECK;

/* Copies the request and its strings into one block of memory, and takes a reference to the
 * body. */
struct hf_request *hf_request_copy(const struct hf_request *request);
struct hf_request *hf_request_free(struct hf_request *request); /* accepts NULL; returns NULL */

/* A metav1.Status for a failure. */
struct hf_status_args {
	int code; /* HF_E_* code */
	const char *message;
	const struct hf_resource *resource; /* NULL: no details */
	/* name and uid of the object; each may be NULL */
	const char *name;
	const char *uid;
	/* an array of {reason, message, field}; hf_status_failure takes it over; may be NULL */
	struct hf_json *causes;
	/* 0: not given */
	int64_t retry_after_s;
};
struct hf_json *hf_status_failure(const struct hf_status_args *args);
/* The Status of a completed deletion. */
struct hf_json *hf_status_success(const struct hf_resource *resource, const char *name,
				  const char *uid);

/* The messages of an API server, so that users see familiar texts in every client. */
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
