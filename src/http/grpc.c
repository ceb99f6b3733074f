/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Unary gRPC calls: frames the request message, sends it with the HTTP client, and checks content
 * type, status and framing of the response. */
#include "http/grpc.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_TEXT_MAX 256
#define TIMEOUT_MS_MAX 99999999

/* ---- parsing a response
 * -------------------------------------------------------------------------- */

int hf_grpc_unframe(const void *body, size_t len, const unsigned char **ret_message,
		    size_t *ret_message_len, struct hf_error *err)
{
	const unsigned char *bytes = body;
	uint32_t size;

	if (len < HF_GRPC_PREFIX_BYTES)
		return hf_error_set(err, HF_E_BAD_REQUEST, "%zu bytes are not a gRPC message", len);
	if (bytes[0] != 0)
		return hf_error_set(err, HF_E_BAD_REQUEST, "the message has flags (0x%x)",
				    bytes[0]);
	size = (uint32_t)bytes[1] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 8 |
	       bytes[4];
	if (size != len - HF_GRPC_PREFIX_BYTES)
		return hf_error_set(err, HF_E_BAD_REQUEST,
				    "a message of %u bytes was announced and %zu came", size,
				    len - HF_GRPC_PREFIX_BYTES);
	*ret_message = bytes + HF_GRPC_PREFIX_BYTES;
	*ret_message_len = size;
	return 0;
}

int hf_grpc_status_parse(const char *text)
{
	int64_t status;

	if (!text)
		return -1;
	if (hf_str_to_i64(text, 0, HF_GRPC_STATUS_MAX, &status, NULL) < 0)
		return HF_GRPC_UNKNOWN;
	return (int)status;
}

int hf_grpc_status_code(int status)
{
	/* Error codes by gRPC status. The entry of status 0 (OK) is never read. */
	static const int codes[HF_GRPC_STATUS_MAX + 1] = {
		HF_OK,
		HF_E_CANCELED,
		HF_E_INTERNAL, /* gRPC: unknown */
		HF_E_INVALID,
		HF_E_TIMEOUT,
		HF_E_NOT_FOUND,
		HF_E_EXISTS,
		HF_E_FORBIDDEN,
		HF_E_TOO_MANY, /* gRPC: resource exhausted */
		HF_E_CONFLICT, /* gRPC: failed precondition */
		HF_E_CONFLICT, /* gRPC: aborted */
		HF_E_INVALID,  /* gRPC: out of range */
		HF_E_UNSUPPORTED,
		HF_E_INTERNAL,
		HF_E_UNAVAILABLE,
		HF_E_IO, /* gRPC: data loss */
		HF_E_UNAUTHORIZED,
	};

	return status > 0 && status <= HF_GRPC_STATUS_MAX ? codes[status] : HF_E_INTERNAL;
}

void hf_grpc_text_decode(const char *encoded, char *ret_text, size_t size)
{
	size_t len = 0;

	hf_assert(size > 0);
	for (const char *at = hf_str_or(encoded, ""); *at && len + 1 < size; at++) {
		int escaped = *at == '%' ? hf_ascii_hex_byte(at + 1) : -1;
		unsigned char c = (unsigned char)(escaped >= 0 ? escaped : *at);

		if (escaped >= 0)
			at += 2;
		ret_text[len++] = c >= ' ' && c <= '~' ? (char)c : '?';
	}
	ret_text[len] = '\0';
}

/* ---- the call
 * ------------------------------------------------------------------------------------ */

/* Turns an HTTP response into the result of the call. */
static void read_response(const struct hf_http_result *http, struct hf_grpc_result *result,
			  struct hf_error *err)
{
	const char *type = hf_transfer_header(http->transfer, "content-type");
	char text[STATUS_TEXT_MAX];

	result->status = hf_grpc_status_parse(hf_transfer_header(http->transfer, "grpc-status"));
	if (http->status != 200) {
		int code = hf_code_from_http(http->status, NULL);

		result->code =
			hf_error_set(err, code < 0 ? code : HF_E_BAD_REQUEST,
				     "HTTP status %d instead of a gRPC response", http->status);
	} else if (!hf_str_has_prefix(hf_str_or(type, ""), "application/grpc")) {
		result->code = hf_error_set(err, HF_E_BAD_REQUEST, "the response is not gRPC");
	} else if (result->status < 0) {
		/* Without a status the response may have been cut off, so the message may be
		 * incomplete. */
		result->code =
			hf_error_set(err, HF_E_BAD_REQUEST, "the response has no grpc-status");
	} else if (result->status > 0) {
		hf_grpc_text_decode(hf_transfer_header(http->transfer, "grpc-message"), text,
				    sizeof(text));
		result->code = hf_error_set(err, hf_grpc_status_code(result->status),
					    "gRPC status %d: %s", result->status, text);
	} else {
		result->code = hf_grpc_unframe(http->body, http->body_len, &result->message,
					       &result->message_len, err);
	}
}

static void on_done(void *arg, const struct hf_http_result *http)
{
	struct hf_grpc_call *call = arg;
	struct hf_error err = {0};
	struct hf_grpc_result result = {.code = http->code, .err = http->err, .status = -1};

	call->transfer = NULL;
	if (http->code == 0) {
		read_response(http, &result, &err);
		result.err = &err;
	}
	call->fn(call->arg, &result);
}

int64_t hf_grpc_timeout_ms(hf_time timeout)
{
	int64_t ms = timeout / HF_MS + (timeout % HF_MS > 0);

	return ms < TIMEOUT_MS_MAX ? ms : TIMEOUT_MS_MAX;
}

int hf_grpc_call_start(struct hf_grpc_call *call, struct hf_http_client *client,
		       const struct hf_grpc_request *request, hf_grpc_fn fn, void *arg,
		       struct hf_error *err)
{
	size_t len = HF_GRPC_PREFIX_BYTES + request->message_len;
	size_t bytes_max =
		request->message_bytes_max ? request->message_bytes_max : HF_GRPC_MESSAGE_BYTES_MAX;
	char timeout[48];
	const char *headers[] = {"TE: trailers", timeout, NULL};
	int rc;

	hf_assert(!call->transfer && request->timeout > 0);
	hf_assert(request->message_len <= HF_GRPC_MESSAGE_BYTES_MAX);
	HF_AUTOFREE unsigned char *body = hf_xcalloc(1, len);
	body[1] = (unsigned char)(request->message_len >> 24);
	body[2] = (unsigned char)(request->message_len >> 16);
	body[3] = (unsigned char)(request->message_len >> 8);
	body[4] = (unsigned char)request->message_len;
	if (request->message_len > 0)
		memcpy(body + HF_GRPC_PREFIX_BYTES, request->message, request->message_len);
	snprintf(timeout, sizeof(timeout), "grpc-timeout: %lldm",
		 (long long)hf_grpc_timeout_ms(request->timeout));
	call->fn = fn;
	call->arg = arg;
	rc = hf_http_client_send(client,
				 &(struct hf_http_request){
					 .method = "POST",
					 .target = request->method,
					 .headers = headers,
					 .body = body,
					 .body_len = len,
					 .content_type = "application/grpc",
					 .timeout = request->timeout,
					 .response_bytes_max = bytes_max + HF_GRPC_PREFIX_BYTES,
					 .on_done = on_done,
					 .arg = call,
				 },
				 &call->transfer, err);
	if (rc < 0)
		call->transfer = NULL;
	return rc;
}

void hf_grpc_call_cancel(struct hf_grpc_call *call)
{
	if (call->transfer)
		hf_transfer_cancel(call->transfer);
	call->transfer = NULL;
}
