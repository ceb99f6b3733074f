/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_FUZZ_FAKE_HTTP_H
#define HF_TESTS_FUZZ_FAKE_HTTP_H

#include "http/server.h"

/*
 * Takes the place of http/server.h in fuzz harnesses, without sockets: one server at a time. A
 * harness passes requests in, and the responses are checked instead of sent.
 */
#define FAKE_HEADERS_MAX 16

struct fake_request {
	const char *method, *target;
	const char *names[FAKE_HEADERS_MAX], *values[FAKE_HEADERS_MAX];
	size_t headers;
	const char *body; /* followed by a NUL */
	size_t body_len;
};

/* Passes a request to the handler. False: the target is not valid, so the real server would have
 * refused the request. The texts must live until fake_http_hang_up. */
bool fake_http_say(const struct fake_request *request);
/* Closes the connections of all requests that are still open. */
void fake_http_hang_up(void);
/* What streams wrote has been read. */
void fake_http_drain(void);

#endif
