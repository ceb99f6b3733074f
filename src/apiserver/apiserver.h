/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_FACE_H
#define HF_LOCAL_FACE_H

#include "memstore/memstore.h"

#include <stdint.h>

/*
 * The HTTP API of the embedded plane, for kubectl and the Kubernetes clients of other languages,
 * over an hf_local.
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
struct hf_face;

/* Limits of the HTTP API. The unsent bytes of a stream have room for an event with the largest
 * object. */
#define HF_FACE_LIST_BYTES_MAX ((size_t)256 << 20) /* of a response: half of what the store holds */
#define HF_FACE_STREAM_BYTES_MAX ((size_t)4 << 20) /* written, not yet sent, per watch or log */
#define HF_FACE_LOG_BYTES_MAX ((size_t)64 << 20)   /* of a log, waiting for a slow client */
#define HF_FACE_WATCH_TIMEOUT HF_HOUR              /* of a watch without timeoutSeconds */

struct hf_face_options {
	const char *address; /* NULL: 127.0.0.1 */
	uint16_t port;       /* 0: the kernel chooses one */
	/* PEM texts; both NULL: plain HTTP, for tests. */
	const char *cert_pem, *key_pem;
	const char *token; /* at least HF_FACE_TOKEN_MIN bytes */
	/* Tells whether a kind is served; NULL: all kinds are. */
	bool (*serves)(const struct hf_resource *resource);
	/* Writes the text of /metrics, in Prometheus' format; NULL: /metrics is a 404. */
	void (*metrics)(void *arg, struct hf_strbuf *sb);
	/* Returns 0, or the error that /readyz reports; NULL: hf_local_health alone decides. */
	int (*ready)(void *arg, struct hf_error *err);
	void *arg; /* argument of metrics and ready */
};
#define HF_FACE_TOKEN_MIN 16

/* Starts to serve. Texts are copied. Errors of hf_http_server_create; HF_E_INVALID: the token is
 * missing or too short. */
int hf_face_create(struct hf_loop *loop, struct hf_local *local,
		   const struct hf_face_options *options, struct hf_face **ret_face,
		   struct hf_error *err) HF_MUST_CHECK;
/* Closes every connection. Call it before hf_local_destroy. NULL is fine; returns NULL. */
struct hf_face *hf_face_destroy(struct hf_face *face);
uint16_t hf_face_port(const struct hf_face *face);
/* Accepts no new connections, and ends open watches and logs. */
void hf_face_quiesce(struct hf_face *face);

#endif
