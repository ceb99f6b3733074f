/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_LINK_ASKER_TEST_H
#define HF_HTTP_LINK_ASKER_TEST_H

/* The side of the tests of links that asks: one client, and what came of its requests. */

#include "harness/real_loop.h"

#include "base/str.h"
#include "http/client.h"

#include <string.h>

#define HF_ASKER_NOTES_MAX 128

struct hf_asker_note {
	int code, status;
	bool retry_now, permanent;
	char body[16], retry_after[8], text[HF_ERROR_TEXT_MAX];
	size_t body_len;
};

struct hf_asker {
	struct hf_test_loop t;
	struct hf_http_client *client;
	struct hf_asker_note notes[HF_ASKER_NOTES_MAX];
	size_t done, wanted;
	size_t data_len, heads; /* of streams, in all */
	int head_status;        /* the last one */
	bool pause_on_data;
};

static inline void hf_asker_connect(struct hf_asker *asker, uint16_t port, const char *path,
				    struct hf_http_client_spec spec)
{
	char url[64];
	struct hf_error err = {0};

	snprintf(url, sizeof(url), "https://127.0.0.1:%u%s", port, path);
	spec.base_url = url;
	spec.proxy_url = "";
	assert_ok(hf_http_client_create(asker->t.loop, &spec, &asker->client, &err), &err);
}

static inline void hf_asker_on_done(void *arg, const struct hf_http_result *result)
{
	struct hf_asker *asker = (struct hf_asker *)arg;
	struct hf_asker_note *note = &asker->notes[asker->done++ % HF_ASKER_NOTES_MAX];
	const char *retry_after = hf_transfer_header(result->transfer, "Retry-After");

	note->code = result->code;
	note->status = result->status;
	note->retry_now = result->retry_now;
	note->permanent = result->permanent;
	note->body_len = result->body_len;
	snprintf(note->body, sizeof(note->body), "%s", result->body);
	snprintf(note->retry_after, sizeof(note->retry_after), "%s", hf_str_or(retry_after, ""));
	snprintf(note->text, sizeof(note->text), "%s", result->err->text);
	hf_loop_stop(asker->t.loop);
}

static inline void hf_asker_on_head(void *arg, struct hf_transfer *transfer, int status)
{
	struct hf_asker *asker = (struct hf_asker *)arg;

	asker->heads++;
	asker->head_status = status;
	hf_loop_stop(asker->t.loop);
}

static inline void hf_asker_on_data(void *arg, struct hf_transfer *transfer, const char *bytes,
				    size_t len)
{
	struct hf_asker *asker = (struct hf_asker *)arg;

	assert_true(asker->heads > 0);
	asker->data_len += len;
	if (asker->pause_on_data)
		hf_transfer_pause(transfer);
	hf_loop_stop(asker->t.loop);
}

/* GET / where nothing else is said. */
static inline struct hf_transfer *hf_asker_send(struct hf_asker *asker,
						struct hf_http_request request)
{
	struct hf_transfer *transfer = NULL;
	struct hf_error err = {0};

	request.method = hf_str_or(request.method, "GET");
	request.target = hf_str_or(request.target, "/");
	request.on_head = hf_asker_on_head;
	request.on_data = hf_asker_on_data;
	request.on_done = hf_asker_on_done;
	request.arg = asker;
	assert_ok(hf_http_client_send(asker->client, &request, &transfer, &err), &err);
	asker->wanted++;
	return transfer;
}

/* For all that were sent; the last one that ended. */
static inline const struct hf_asker_note *hf_asker_wait(struct hf_asker *asker)
{
	while (asker->done < asker->wanted)
		hf_test_loop_run(&asker->t);
	return &asker->notes[(asker->done - 1) % HF_ASKER_NOTES_MAX];
}

static inline const struct hf_asker_note *hf_asker_fetch(struct hf_asker *asker,
							 struct hf_http_request request)
{
	hf_asker_send(asker, request);
	return hf_asker_wait(asker);
}

#endif
