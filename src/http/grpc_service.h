/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_HTTP_GRPC_SERVICE_H
#define HF_HTTP_GRPC_SERVICE_H

#include "base/error.h"
#include "base/strbuf.h"
#include "loop/loop.h"

#include <stddef.h>
#include <sys/types.h>

/* A server of unary gRPC calls without TLS, on connections that the caller accepts (Unix sockets). Each call is answered
 * at once: the handler gets the whole request message and returns the whole response message.
 *
 * Peers are hostile: limits on connections, calls, headers, messages and unsent bytes. If all connections are taken, the one
 * that was quiet longest is closed for a new one. No compression is accepted or offered. */
struct hf_grpc_service;

#define HF_GRPC_SERVICE_CONNECTIONS_MAX 32
#define HF_GRPC_SERVICE_CALLS_MAX 8                          /* at one time, on a connection */
#define HF_GRPC_SERVICE_MESSAGE_BYTES_MAX ((size_t)64 << 10) /* of a request, and of a response */
#define HF_GRPC_SERVICE_HEAD_BYTES_MAX ((size_t)8 << 10)
#define HF_GRPC_SERVICE_METHOD_MAX 128

/* Status codes of gRPC, which handlers return. */
#define HF_GRPC_OK 0
#define HF_GRPC_INVALID_ARGUMENT 3
#define HF_GRPC_RESOURCE_EXHAUSTED 8
#define HF_GRPC_UNIMPLEMENTED 12
#define HF_GRPC_INTERNAL 13

struct hf_grpc_asked {
	const char *method; /* "/nvhcd.HealthCheckService/RunHealthCheck" */
	const unsigned char *message;
	size_t message_len;
	pid_t pid; /* the process that connected; 0: not known */
};

/* Writes the response message. If the returned status is not HF_GRPC_OK, the response is dropped, and err's text is sent. */
typedef int (*hf_grpc_answer_fn)(void *arg, const struct hf_grpc_asked *asked,
				 struct hf_strbuf *ret_message, struct hf_error *err);

struct hf_grpc_service *hf_grpc_service_create(struct hf_loop *loop, hf_grpc_answer_fn serve,
					       void *arg);
/* Closes all connections. NULL is fine; returns NULL. */
struct hf_grpc_service *hf_grpc_service_destroy(struct hf_grpc_service *service);
/* Accepts connections at a listening socket that does not block: all that wait, but at most 16. The caller's loop calls
 * again while others wait. */
void hf_grpc_service_accept(struct hf_grpc_service *service, int listener);

#endif
