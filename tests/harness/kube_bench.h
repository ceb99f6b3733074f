/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_TESTS_HARNESS_KUBE_BENCH_H
#define HF_TESTS_HARNESS_KUBE_BENCH_H

/* A test bench, implemented in kube_bench.c: a kube store and a scripted HTTP server on one
 * loop. */

#include "harness/scripted_server.h"

#include "kube/kube.h"
#include "store/store.h"

#include <stdbool.h>

#define POD                                                                                        \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","                    \
	"\"resourceVersion\":\"5\"}}"

/* How the scripted server ends its response. */
enum end {
	WHOLE,
	CUT,         /* closes the connection before any byte */
	RESET,       /* resets the connection (RST) before any byte */
	CUT_IN_HEAD, /* closes the connection in the middle of the head */
	CUT_IN_BODY, /* closes the connection in the middle of the body */
	CUT_REFUSAL, /* sends a whole head with the given status, half of the body, then closes */
	SHORT_BODY,  /* announces a longer body than it sends, then closes */
	HUGE_BODY,   /* sends 65 MiB in chunks */
	SILENCE,     /* sends nothing and keeps the connection open */
	STREAM,      /* sends a chunked head; the test sends the chunks */
};

struct step {
	/* status line of the response without "HTTP/1.1 ", with further headers if wanted; NULL ends
	 * the list of steps */
	const char *head;
	const char *body;
	enum end end;
	const char *wants; /* text that the head of the request must contain; NULL: any head */
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
	hf_time timeout; /* of each request; 0: the default */
	hf_time watch_silence_max;
	const struct step *steps, *next;
	char last_head[4096], last_body[1024];
	struct hf_scripted_peer *streaming;

	/* the last reply, and the number of replies */
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

/* Makes a new store from config. From now on the server answers with these steps. */
void play_steps(struct bench *bench, const struct step *steps);
/* As play_steps, but keeps the store. */
void change_steps(struct bench *bench, const struct step *steps);
/* Sends one chunk of a STREAM response. */
void say_chunk(struct bench *bench, const char *text);
/* Ends the STREAM response: with the last chunk (whole), or by closing in the middle. */
void end_stream(struct bench *bench, bool whole);

/* sends the request and runs the loop until the reply */
int send_and_wait(struct bench *bench, const struct hf_request *request);
int get_pod(struct bench *bench);
int list_pods(struct bench *bench);
int create_pod(struct bench *bench);
struct hf_call *begin_get(struct bench *bench);

#endif
