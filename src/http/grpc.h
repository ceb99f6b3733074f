/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_GRPC_H
#define HF_HTTP_GRPC_H

#include "http/client.h"

#include <stdint.h>

/* Unary gRPC calls over a client of client.h: one message to the server, one back. Create the
 * client with `http2_plain` and, for the kubelet, with `unix_path`; the host of its base URL
 * becomes the authority.
 *
 * No compression is offered or accepted. Streaming calls are not implemented. */

/* Limit of a response; grpc-go's default. */
#define HF_GRPC_MESSAGE_BYTES_MAX ((size_t)4 << 20)
/* One byte of flags and four bytes of length precede each message. */
#define HF_GRPC_PREFIX_BYTES 5
/* Highest status code of gRPC; 0 (OK) to 16 (unauthenticated) are defined. */
#define HF_GRPC_STATUS_MAX 16
#define HF_GRPC_UNKNOWN 2

struct hf_grpc_result {
	/* 0: message is the response. Otherwise as in hf_http_result, or the error for the server's
	 * gRPC status: NOT_FOUND, UNSUPPORTED (no such method), FORBIDDEN, TIMEOUT, TOO_MANY, …;
	 * HF_E_BAD_REQUEST: the response is not gRPC. */
	int code;
	const struct hf_error *err;
	int status; /* grpc-status; -1: none came */
	const unsigned char *message;
	size_t message_len;
};
typedef void (*hf_grpc_fn)(void *arg, const struct hf_grpc_result *result);

/* A call; the caller owns and zeroes the struct. One call at a time. */
struct hf_grpc_call {
	/* the HTTP/2 request of the call; NULL: no call is in flight */
	struct hf_transfer *transfer;
	hf_grpc_fn fn;
	void *arg;
};

struct hf_grpc_request {
	const char *method; /* path of the method, "/v1.PodResourcesLister/List" */
	const void *message;
	size_t message_len;
	hf_time timeout;          /* > 0; also sent to the server as grpc-timeout */
	size_t message_bytes_max; /* limit of the response; 0: HF_GRPC_MESSAGE_BYTES_MAX */
};

/* Starts a call. fn is called once, from the loop, unless the call is canceled. fn may start the
 * same call again. Cancel the call before destroying the client. Errors as for
 * hf_http_client_send. */
int hf_grpc_call_start(struct hf_grpc_call *call, struct hf_http_client *client,
		       const struct hf_grpc_request *request, hf_grpc_fn fn, void *arg,
		       struct hf_error *err) HF_MUST_CHECK;
void hf_grpc_call_cancel(struct hf_grpc_call *call); /* no effect without a call in flight */

/* The value of the header grpc-timeout in milliseconds, rounded up. gRPC allows eight digits: a longer
 * timeout is sent as the longest one, 27.7 h. */
int64_t hf_grpc_timeout_ms(hf_time timeout);

/* Parsers of a server's response. They have no side effects, and a fuzz test covers them. */

/* Returns the one message of a body; ret_message points into the body. HF_E_BAD_REQUEST: the body
 * is not exactly one uncompressed message. */
int hf_grpc_unframe(const void *body, size_t len, const unsigned char **ret_message,
		    size_t *ret_message_len, struct hf_error *err) HF_MUST_CHECK;
/* Parses a grpc-status header. HF_GRPC_UNKNOWN: not a gRPC status. -1: text is NULL. */
int hf_grpc_status_parse(const char *text);
/* The error code for a gRPC status other than 0. */
int hf_grpc_status_code(int status);
/* Decodes a grpc-message header (percent-encoded) to printable ASCII and cuts it to `size`. NULL
 * gives "". */
void hf_grpc_text_decode(const char *encoded, char *ret_text, size_t size);

#endif
