/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Asks the kubelet for PodResources by gRPC over its socket. Output: decoded lists, or an error
 * with the socket's path.
 */
#include "probes/podresources.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "http/grpc.h"

#include <stdlib.h>
#include <string.h>

#define SERVICE "/v1.PodResourcesLister/"

typedef int (*decode_fn)(const void *bytes, size_t len, struct hf_arena *arena,
			 struct hf_podresources *ret_found, struct hf_error *err);

enum kind { LIST, ALLOCATABLE, GET, KINDS };

static const struct {
	const char *method;
	decode_fn decode;
} kinds[KINDS] = {
	[LIST] = {SERVICE "List", hf_podresources_decode_list},
	[ALLOCATABLE] = {SERVICE "GetAllocatableResources", hf_podresources_decode_allocatable},
	[GET] = {SERVICE "Get", hf_podresources_decode_get},
};

struct question {
	struct hf_podresources_client *client;
	enum kind kind;
	struct hf_grpc_call call;
	hf_podresources_fn fn;
	void *arg;
};

struct hf_podresources_client {
	struct hf_http_client *http;
	char *path; /* for error messages */
	hf_time timeout;
	struct question questions[KINDS];
};

int hf_podresources_client_create(struct hf_loop *loop, const char *socket_path, hf_time timeout,
				  struct hf_podresources_client **ret_client, struct hf_error *err)
{
	struct hf_podresources_client *client = hf_xcalloc(1, sizeof(*client));
	int rc = hf_http_client_create(loop,
				       &(struct hf_http_client_spec){
					       .base_url = "http://localhost",
					       .unix_path = socket_path,
					       .http2_plain = true,
					       .in_flight_max = KINDS,
					       .queue_max = KINDS,
				       },
				       &client->http, err);

	if (rc < 0) {
		free(client);
		return rc;
	}
	client->path = hf_xstrdup(socket_path);
	client->timeout = timeout;
	for (int i = 0; i < KINDS; i++) {
		client->questions[i].client = client;
		client->questions[i].kind = (enum kind)i;
	}
	*ret_client = client;
	return 0;
}

struct hf_podresources_client *hf_podresources_client_destroy(struct hf_podresources_client *client)
{
	if (!client)
		return NULL;
	for (int i = 0; i < KINDS; i++)
		hf_grpc_call_cancel(&client->questions[i].call);
	hf_http_client_destroy(client->http);
	free(client->path);
	free(client);
	return NULL;
}

static void on_answer(void *arg, const struct hf_grpc_result *result)
{
	struct question *q = arg;
	HF_AUTO_ARENA arena = hf_arena_create(HF_PODRESOURCES_ARENA_MAX);
	struct hf_podresources found = {0};
	struct hf_error err = {0};
	int code = result->code;

	if (code < 0) {
		err = *result->err;
		/* The HTTP client's error names a host and a port, and a unix socket has neither:
		 * name the socket's path. */
		if (code == HF_E_UNAVAILABLE && result->status < 0)
			hf_error_set(&err, code, "the kubelet does not answer at '%s'",
				     q->client->path);
		hf_error_wrap(&err, "PodResources");
	} else {
		code = kinds[q->kind].decode(result->message, result->message_len, arena, &found,
					     &err);
	}
	q->fn(q->arg, code, code == 0 ? &found : NULL, &err);
}

static int ask_kubelet(struct hf_podresources_client *client, enum kind kind,
		       const struct hf_strbuf *message, struct question with, struct hf_error *err)
{
	struct question *q = &client->questions[kind];

	if (q->call.transfer)
		return hf_error_set(err, HF_E_CONFLICT,
				    "the same question to the kubelet is still open");
	q->fn = with.fn;
	q->arg = with.arg;
	return hf_grpc_call_start(&q->call, client->http,
				  &(struct hf_grpc_request){
					  .method = kinds[kind].method,
					  .message = message ? message->data : NULL,
					  .message_len = message ? message->len : 0,
					  .timeout = client->timeout,
					  .message_bytes_max = HF_PODRESOURCES_BYTES_MAX,
				  },
				  on_answer, q, err);
}

int hf_podresources_list(struct hf_podresources_client *client, hf_podresources_fn fn, void *arg,
			 struct hf_error *err)
{
	return ask_kubelet(client, LIST, NULL, (struct question){.fn = fn, .arg = arg}, err);
}

int hf_podresources_allocatable(struct hf_podresources_client *client, hf_podresources_fn fn,
				void *arg, struct hf_error *err)
{
	return ask_kubelet(client, ALLOCATABLE, NULL, (struct question){.fn = fn, .arg = arg}, err);
}

/* Adds a text field to a request. Names are shorter than 2^14 bytes, so one or two bytes hold the
 * length. */
static void add_text(struct hf_strbuf *sb, char key, const char *text)
{
	size_t len = strlen(text);

	hf_strbuf_addch(sb, key);
	if (len < 128) {
		hf_strbuf_addch(sb, (char)len);
	} else {
		hf_strbuf_addch(sb, (char)(128 | (len & 127)));
		hf_strbuf_addch(sb, (char)(len >> 7));
	}
	hf_strbuf_add(sb, text, len);
}

int hf_podresources_get(struct hf_podresources_client *client, const char *ns, const char *pod,
			hf_podresources_fn fn, void *arg, struct hf_error *err)
{
	HF_AUTO_STRBUF message = HF_STRBUF_INIT(4 * HF_PODRESOURCES_TEXT_MAX);

	if (strlen(ns) > HF_PODRESOURCES_TEXT_MAX || strlen(pod) > HF_PODRESOURCES_TEXT_MAX)
		return hf_error_set(err, HF_E_INVALID, "the name is longer than %d bytes",
				    HF_PODRESOURCES_TEXT_MAX);
	/* GetPodResourcesRequest: pod_name 1, pod_namespace 2. */
	add_text(&message, 1 << 3 | 2, pod);
	add_text(&message, 2 << 3 | 2, ns);
	return ask_kubelet(client, GET, &message, (struct question){.fn = fn, .arg = arg}, err);
}
