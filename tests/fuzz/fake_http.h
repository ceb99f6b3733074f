/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_FUZZ_FAKE_HTTP_H
#define HF_TESTS_FUZZ_FAKE_HTTP_H

#include "http/server.h"

/*
 * http/server.h without sockets: one server at a time, whose requests are handed in and whose
 * answers are judged, not sent.  Linked in place of the real one.
 */
#define FAKE_HEADERS_MAX 16

struct fake_request {
	const char *method, *target;
	const char *names[FAKE_HEADERS_MAX], *values[FAKE_HEADERS_MAX];
	size_t headers;
	const char *body; /* followed by a NUL */
	size_t body_len;
};

/* Hand it to the handler; false: the target is none, as the real server would have said.  The
 * texts must live until fake_http_hang_up. */
bool fake_http_say(const struct fake_request *request);
/* The client of every request that is still open leaves. */
void fake_http_hang_up(void);
/* What streams wrote has been read. */
void fake_http_drain(void);

#endif
