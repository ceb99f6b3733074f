/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_LINK_ASKER_TEST_H
#define HF_HTTP_LINK_ASKER_TEST_H

/* The client side of the link tests: one client, and a record of the outcome of each request. */

#include "harness/real_loop.h"

#include "base/str.h"
#include "http/client.h"

#include <string.h>

#define HF_REQUESTER_NOTES_MAX 128

struct hf_requester_note {
	int code, status;
	bool retry_now, permanent;
	char body[16], retry_after[8], text[HF_ERROR_TEXT_MAX];
	size_t body_len;
};

struct hf_requester {
	struct hf_test_loop t;
	struct hf_http_client *client;
	struct hf_requester_note notes[HF_REQUESTER_NOTES_MAX];
	size_t done, wanted;
	size_t data_len, heads; /* bytes of data and number of heads of all streams so far */
	int head_status;        /* HTTP status of the last stream's head */
	bool pause_on_data;
};

static inline void hf_requester_connect(struct hf_requester *requester, uint16_t port,
					const char *path, struct hf_http_client_spec spec)
{
	char url[64];
	struct hf_error err = {0};

	snprintf(url, sizeof(url), "https://127.0.0.1:%u%s", port, path);
	spec.base_url = url;
	spec.proxy_url = "";
	assert_ok(hf_http_client_create(requester->t.loop, &spec, &requester->client, &err), &err);
}

static inline void hf_requester_on_done(void *arg, const struct hf_http_result *result)
{
	struct hf_requester *requester = (struct hf_requester *)arg;
	struct hf_requester_note *note =
		&requester->notes[requester->done++ % HF_REQUESTER_NOTES_MAX];
	const char *retry_after = hf_transfer_header(result->transfer, "Retry-After");

	note->code = result->code;
	note->status = result->status;
	note->retry_now = result->retry_now;
	note->permanent = result->permanent;
	note->body_len = result->body_len;
	snprintf(note->body, sizeof(note->body), "%s", result->body);
	snprintf(note->retry_after, sizeof(note->retry_after), "%s", hf_str_or(retry_after, ""));
	snprintf(note->text, sizeof(note->text), "%s", result->err->text);
	hf_loop_stop(requester->t.loop);
}

static inline void hf_requester_on_head(void *arg, struct hf_transfer *transfer, int status)
{
	struct hf_requester *requester = (struct hf_requester *)arg;

	requester->heads++;
	requester->head_status = status;
	hf_loop_stop(requester->t.loop);
}

static inline void hf_requester_on_data(void *arg, struct hf_transfer *transfer, const char *bytes,
					size_t len)
{
	struct hf_requester *requester = (struct hf_requester *)arg;

	assert_true(requester->heads > 0);
	requester->data_len += len;
	if (requester->pause_on_data)
		hf_transfer_pause(transfer);
	hf_loop_stop(requester->t.loop);
}

/* Sends a request; by default GET /. */
static inline struct hf_transfer *hf_requester_send(struct hf_requester *requester,
						    struct hf_http_request request)
{
	struct hf_transfer *transfer = NULL;
	struct hf_error err = {0};

	request.method = hf_str_or(request.method, "GET");
	request.target = hf_str_or(request.target, "/");
	request.on_head = hf_requester_on_head;
	request.on_data = hf_requester_on_data;
	request.on_done = hf_requester_on_done;
	request.arg = requester;
	assert_ok(hf_http_client_send(requester->client, &request, &transfer, &err), &err);
	requester->wanted++;
	return transfer;
}

/* Waits until all sent requests have ended; returns the last outcome. */
static inline const struct hf_requester_note *hf_requester_wait(struct hf_requester *requester)
{
	while (requester->done < requester->wanted)
		hf_test_loop_run(&requester->t);
	return &requester->notes[(requester->done - 1) % HF_REQUESTER_NOTES_MAX];
}

static inline const struct hf_requester_note *hf_requester_fetch(struct hf_requester *requester,
								 struct hf_http_request request)
{
	hf_requester_send(requester, request);
	return hf_requester_wait(requester);
}

#endif
