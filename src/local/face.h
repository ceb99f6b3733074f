/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_LOCAL_FACE_H
#define HF_LOCAL_FACE_H

#include "local/local.h"

#include <stdint.h>

/*
 * The HTTP API of the embedded plane: what kubectl and the Kubernetes clients of other
 * languages speak, over an hf_local.
 *
 * Served: discovery, OpenAPI v3 (the fields; clients leave validation to the server), reads, lists in pages, watches, writes, patches (merge, JSON, server-side
 * apply, strategic for core kinds), deletions with their options, status, scale, logs, server-side tables.
 * Bodies are JSON, YAML or Kubernetes' protobuf; answers are JSON.  Refused with a Status:
 * exec, attach and port-forward (501), streaming lists (422, upon which clients list).
 *
 * Who has the token may do everything; /healthz, /livez, /readyz and /version answer
 * anybody.
 */
struct hf_face;

/* Limits, and why. */
#define HF_FACE_LIST_BYTES_MAX ((size_t)256 << 20) /* of an answer: half of what the store holds */
#define HF_FACE_STREAM_BYTES_MAX                                                                   \
	((size_t)4 << 20)                        /* written and not sent, per watch or log: an
						      event with the largest object fits */
#define HF_FACE_LOG_BYTES_MAX ((size_t)64 << 20) /* of a log, behind a client that is slow */
#define HF_FACE_WATCH_TIMEOUT HF_HOUR            /* of a watch that names none */

struct hf_face_options {
	const char *address; /* NULL: 127.0.0.1 */
	uint16_t port;       /* 0: an ephemeral one */
	/* PEM; both NULL: plain HTTP, for tests. */
	const char *cert_pem, *key_pem;
	const char *token; /* at least HF_FACE_TOKEN_MIN bytes */
	/* Kinds that are there at all; NULL: every one the engine has. */
	bool (*serves)(const struct hf_resource *resource);
	/* Text of /metrics, in Prometheus' format; NULL: 404. */
	void (*metrics)(void *arg, struct hf_strbuf *sb);
	/* 0, or why /readyz says no; NULL: hf_local_health alone decides. */
	int (*ready)(void *arg, struct hf_error *err);
	void *arg; /* of both */
};
#define HF_FACE_TOKEN_MIN 16

/* Texts are copied.  Errors as of hf_http_server_create; HF_E_INVALID: no usable token. */
int hf_face_create(struct hf_loop *loop, struct hf_local *local,
		   const struct hf_face_options *options, struct hf_face **ret_face,
		   struct hf_error *err) HF_MUST_CHECK;
/* Cuts every connection.  NULL is fine; returns NULL.  Before hf_local_destroy. */
struct hf_face *hf_face_destroy(struct hf_face *face);
uint16_t hf_face_port(const struct hf_face *face);
/* Take no new connections, and end the watches and logs that are open. */
void hf_face_quiesce(struct hf_face *face);

#endif
