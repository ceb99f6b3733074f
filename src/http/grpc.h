/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_GRPC_H
#define HF_HTTP_GRPC_H

#include "http/client.h"

#include <stdint.h>

/*
 * Unary gRPC calls over a client of client.h: one message there, one back.  The client is made
 * with `http2_plain` and, for the kubelet, `unix_path`; its base URL's host is the authority.
 *
 * No compression is offered and none is taken.  Streams of messages are not here.
 */

/* Of an answer; what grpc-go takes if nobody tells it otherwise. */
#define HF_GRPC_MESSAGE_BYTES_MAX ((size_t)4 << 20)
/* A byte of flags and four of length, before each message. */
#define HF_GRPC_PREFIX_BYTES 5
/* Of a status that an answer may carry: 0 (OK) to 16 (unauthenticated). */
#define HF_GRPC_STATUS_MAX 16
#define HF_GRPC_UNKNOWN 2

struct hf_grpc_result {
	/*
	 * 0: message is the answer.  Else as hf_http_result's, or the server's own status:
	 * NOT_FOUND, UNSUPPORTED (no such method), FORBIDDEN, TIMEOUT, TOO_MANY, …;
	 * HF_E_BAD_REQUEST: what came is not gRPC.
	 */
	int code;
	const struct hf_error *err;
	int status; /* grpc-status; -1: none came */
	const unsigned char *message;
	size_t message_len;
};
typedef void (*hf_grpc_fn)(void *arg, const struct hf_grpc_result *result);

/* The caller's, zeroed at first; one call at a time. */
struct hf_grpc_call {
	struct hf_transfer *transfer; /* NULL: none is under way */
	hf_grpc_fn fn;
	void *arg;
};

struct hf_grpc_request {
	const char *method; /* "/v1.PodResourcesLister/List" */
	const void *message;
	size_t message_len;
	hf_time timeout;          /* > 0; the server is told too */
	size_t message_bytes_max; /* of the answer; 0: the value above */
};

/*
 * fn is called once, from the loop, unless the call is canceled; the call may be started again
 * from inside it.  Cancel before the client is destroyed.  As hf_http_client_send for errors.
 */
int hf_grpc_call_start(struct hf_grpc_call *call, struct hf_http_client *client,
		       const struct hf_grpc_request *request, hf_grpc_fn fn, void *arg,
		       struct hf_error *err) HF_MUST_CHECK;
void hf_grpc_call_cancel(struct hf_grpc_call *call); /* fine where none is under way */

/* What a server sent, taken apart; pure, and fuzzed. */

/* The one message of a body; ret_message points into it.  HF_E_BAD_REQUEST for anything else
 * than exactly one that is not compressed. */
int hf_grpc_unframe(const void *body, size_t len, const unsigned char **ret_message,
		    size_t *ret_message_len, struct hf_error *err) HF_MUST_CHECK;
/* A grpc-status header: its number, or HF_GRPC_UNKNOWN for what is none; -1 for NULL. */
int hf_grpc_status_parse(const char *text);
/* The error code that a status other than 0 stands for. */
int hf_grpc_status_code(int status);
/* A grpc-message header (percent-encoded) as printable ASCII, cut to what fits; NULL gives "". */
void hf_grpc_text_decode(const char *encoded, char *ret_text, size_t size);

#endif
