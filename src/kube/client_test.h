/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBE_CLIENT_TEST_H
#define HF_KUBE_CLIENT_TEST_H

/* A store of this module and a server that answers as it is told to, on one loop. */

#include "harness/scripted_server.h"

#include "kube/kube.h"
#include "store/store.h"

#include <stdbool.h>

#define POD                                                                                        \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","                    \
	"\"resourceVersion\":\"5\"}}"

/* How an answer ends. */
enum end {
	WHOLE,
	CUT,         /* no byte, then closed */
	RESET,       /* no byte, then RST */
	CUT_IN_HEAD, /* half a head, then closed */
	CUT_IN_BODY, /* half a body, then closed */
	CUT_REFUSAL, /* the head says it all: 429 with Retry-After; half its body, then closed */
	SHORT_BODY,  /* says that it is longer than it is, then closed */
	HUGE_BODY,   /* chunks without end */
	SILENCE,     /* nothing at all */
	STREAM,      /* a chunked head, then what the test says */
};

struct step {
	const char *head; /* "200 OK", with further headers; NULL: the end */
	const char *body;
	enum end end;
	const char *wants; /* in the request's head; NULL: anything */
};

#define SAYS(head_, body_)                                                                         \
	{                                                                                          \
		.head = (head_), .body = (body_)                                                   \
	}
#define BREAKS(body_, end_)                                                                        \
	{                                                                                          \
		.head = "200 OK", .body = (body_), .end = (end_)                                   \
	}

#define DONE                                                                                       \
	{                                                                                          \
		.head = NULL                                                                       \
	}

#define SEEN_MAX 64

struct bench {
	struct hf_test_loop t;
	struct hf_scripted server;
	struct hf_kube_config config;
	struct hf_store *store;
	hf_time timeout; /* of requests; 0: none */
	hf_time watch_silence_max;
	const struct step *steps, *next;
	char last_head[4096], last_body[1024];
	struct hf_scripted_peer *streaming;

	/* the last reply, and how many there were */
	unsigned replies;
	int code;
	char message[HF_ERROR_TEXT_MAX], name[64], warnings[256];
	hf_time retry_after, server_time;

	struct hf_kube_observation seen[SEEN_MAX];
	unsigned seen_count;
	char seen_method[16], seen_host[64];
};

int bench_setup(void **state);
int bench_teardown(void **state);
#define UNIT(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

/* The server plays these from now on; config's changes count, the store is a new one. */
void play(struct bench *bench, const struct step *steps);
/* Only the steps change. */
void play_on(struct bench *bench, const struct step *steps);
/* One chunk of a STREAM. */
void say_chunk(struct bench *bench, const char *text);
/* The stream's end: in order, or by closing in the middle. */
void end_stream(struct bench *bench, bool whole);

int ask(struct bench *bench, const struct hf_request *request); /* and wait */
int get_pod(struct bench *bench);
int list_pods(struct bench *bench);
int create_pod(struct bench *bench);
struct hf_call *begin_get(struct bench *bench);

#endif
