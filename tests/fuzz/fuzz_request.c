/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Input: up to REQUESTS_MAX HTTP requests of a client with the token, for one plane. Each request
 * is a line "METHOD TARGET", lines of headers, an empty line and the body; a line "%%" separates
 * two requests. The requests go through the API server, admission and the store. Each must be
 * answered or stay open; fake_http.c checks the answers.
 */
#include "apiserver/admission.h"
#include "apiserver/apiserver.h"
#include "base/mem.h"
#include "base/str.h"
#include "framework/framework.h"
#include "fuzz/fake_http.h"
#include "fuzz/fuzz.h"
#include "harness/random.h"
#include "memstore/gc.h"
#include "scheduler/scheduler.h"

#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 8
#define START (1790000000 * HF_SECOND)
#define TOKEN "0123456789abcdef"

static void seeded(void *arg, void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((unsigned char *)bytes)[i] = (unsigned char)test_random(arg);
}

/* Returns the line at *at without its line end, and moves *at behind it. */
static char *take_line(char **at, char *end)
{
	char *line = *at, *newline = memchr(line, '\n', (size_t)(end - line));

	if (newline == NULL)
		newline = end;
	*newline = '\0';
	*at = newline < end ? newline + 1 : end;
	return line;
}

static void take_headers(char **at, char *end, struct fake_request *ret_request)
{
	while (*at < end && ret_request->headers < FAKE_HEADERS_MAX) {
		char *line = take_line(at, end), *colon = strchr(line, ':');
		if (*line == '\0')
			return;
		if (colon == NULL)
			continue;
		*colon = '\0';
		ret_request->names[ret_request->headers] = line;
		ret_request->values[ret_request->headers++] = colon + 1 + strspn(colon + 1, " ");
	}
}

/* Reads one request from the text. False: the text does not begin with a method and a target. */
static bool take_request(char *text, char *end, struct fake_request *ret_request)
{
	char *line = take_line(&text, end), *blank = strchr(line, ' ');

	*ret_request = (struct fake_request){
		.headers = 1, .names = {"Authorization"}, .values = {"Bearer " TOKEN}};
	if (blank == NULL)
		return false;
	*blank = '\0';
	ret_request->method = line;
	ret_request->target = blank + 1;
	take_headers(&text, end, ret_request);
	ret_request->body = text;
	ret_request->body_len = (size_t)(end - text);
	return true;
}

static void say_all(struct hf_loop *loop, char *text, char *end,
		    struct fake_request requests[REQUESTS_MAX])
{
	for (size_t i = 0; i < REQUESTS_MAX && text < end; i++) {
		char *mark = memmem(text, (size_t)(end - text), "\n%%\n", 4);
		char *stop = mark != NULL ? mark : end;
		*stop = '\0';
		if (take_request(text, stop, &requests[i]))
			(void)fake_http_say(&requests[i]);
		while (hf_loop_run_ready(loop))
			;
		if (i % 2 != 0)
			fake_http_drain();
		text = mark != NULL ? mark + 4 : end;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTOFREE char *text = hf_xmalloc(size + 1);
	struct fake_request requests[REQUESTS_MAX];
	struct hf_loop *loop = hf_loop_create_virtual(START);
	uint64_t seed = 1;
	struct hf_memstore_options options = {.random = seeded, .random_arg = &seed};
	struct hf_memstore *memstore;
	struct hf_apiserver *server;
	struct hf_error err = {0};

	memcpy(text, data, size);
	text[size] = '\0';
	hf_assert(hf_memstore_create(loop, &options, &memstore, &err) == 0);
	hf_admission_install(memstore, hf_frameworks);
	struct hf_gc *gc = hf_gc_create(memstore, NULL);
	struct hf_scheduler *scheduler = hf_scheduler_create(memstore, NULL);
	hf_assert(hf_apiserver_create(loop, memstore,
				      &(struct hf_apiserver_options){.token = TOKEN}, &server,
				      &err) == 0);
	say_all(loop, text, text + size, requests);
	/* Give watches a minute, in which they may end by themselves. Then the clients of all open
	 * requests disconnect. */
	hf_loop_run_until(loop, hf_time_add(hf_loop_mono(loop), HF_MINUTE));
	fake_http_hang_up();
	hf_apiserver_destroy(server);
	hf_scheduler_destroy(scheduler);
	hf_gc_destroy(gc);
	hf_memstore_destroy(memstore);
	hf_loop_destroy(loop);
	return 0;
}
