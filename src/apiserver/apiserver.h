/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_APISERVER_APISERVER_H
#define HF_APISERVER_APISERVER_H

#include "memstore/memstore.h"

#include <stdint.h>

/*
 * The HTTP API of the embedded plane, for kubectl and the Kubernetes clients of other languages,
 * over an hf_memstore.
 *
 * Served: discovery; OpenAPI v3 with the kinds' fields (clients leave validation to the server);
 * reads; lists in pages; watches; writes; patches (merge, JSON, apply, and strategic for core
 * kinds); deletions with their options; status, scale, binding, eviction; logs; server-side tables.
 *
 * Bodies are JSON, YAML or Kubernetes' protobuf; responses are JSON. Refused with a Status: exec,
 * attach and port-forward (501), and streaming lists (422, after which clients list).
 *
 * The token allows everything. /healthz, /livez, /readyz and /version need no token.
 */
struct hf_apiserver;

/* Limit of a list in one response, in bytes; half of what the store can hold. */
#define HF_APISERVER_LIST_BYTES_MAX ((size_t)256 << 20)
/* Limit of the bytes of a watch or log that are written and not yet sent. An event with the
 * largest object fits. */
#define HF_APISERVER_STREAM_BYTES_MAX ((size_t)4 << 20)
/* Limit of the bytes of a log that wait because a client reads slowly. */
#define HF_APISERVER_LOG_BYTES_MAX ((size_t)64 << 20)
/* duration of a watch if its request has no timeoutSeconds */
#define HF_APISERVER_WATCH_TIMEOUT HF_HOUR

struct hf_apiserver_options {
	const char *address; /* NULL: 127.0.0.1 */
	uint16_t port;       /* port to listen on; 0: the kernel chooses a free one */
	/* The certificate and the key as PEM texts. Both NULL: plain HTTP, for tests. */
	const char *cert_pem, *key_pem;
	const char *token; /* at least HF_APISERVER_TOKEN_MIN bytes */
	/* Tells whether a kind is served; NULL: all kinds are. */
	bool (*serves)(const struct hf_resource *resource);
	/* Writes the text of /metrics, in Prometheus' format; NULL: /metrics is a 404. */
	void (*metrics)(void *arg, struct hf_strbuf *sb);
	/* Called for /readyz: returns 0, or the error to report. NULL: hf_memstore_health alone
	 * decides. */
	int (*ready)(void *arg, struct hf_error *err);
	void *arg; /* argument of metrics and ready */
};
#define HF_APISERVER_TOKEN_MIN 16

/* Starts to serve. Texts are copied. HF_E_INVALID: the token is missing or too short. Also returns
 * the errors of hf_http_server_create. */
int hf_apiserver_create(struct hf_loop *loop, struct hf_memstore *memstore,
			const struct hf_apiserver_options *options,
			struct hf_apiserver **ret_server, struct hf_error *err) HF_MUST_CHECK;
/* Closes every connection. Call it before hf_memstore_destroy. NULL is fine; returns NULL. */
struct hf_apiserver *hf_apiserver_destroy(struct hf_apiserver *server);
uint16_t hf_apiserver_port(const struct hf_apiserver *server);
/* Accepts no new connections, and ends open watches and logs. */
void hf_apiserver_quiesce(struct hf_apiserver *server);

#endif
