/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Fuzzes what a server may send on a link, below TLS: any bytes, in pieces, and then the end. The
 * first input byte selects the requests, the second the length of a piece. The third tells whether
 * a valid SETTINGS frame comes first, so that later frames are processed. Each request must end
 * once, with a code and a text; a stream must get a head before data. */

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "http/link_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REQUESTS 4
#define BODY_BYTES 40000
#define ANSWER_BYTES_MAX 100000
#define TURNS_MAX 400

struct asked {
	struct scene *scene;
	struct hf_transfer *transfer;
	bool stream, pausing, head, done;
};

struct scene {
	struct hf_loop *loop;
	struct hf_http_client *client;
	struct hf_timer *turn;
	struct asked asked[REQUESTS];
	const uint8_t *data;
	size_t size, piece;
	int listener, peer;
	unsigned turns;
	bool greet, over;
};

static void on_done(void *arg, const struct hf_http_result *result)
{
	struct asked *asked = arg;

	hf_assert(!asked->done && result->transfer == asked->transfer);
	asked->done = true;
	hf_assert((result->code < 0) == (result->err->text[0] != '\0'));
	hf_assert(result->code == 0 || result->code == HF_E_UNAVAILABLE ||
		  result->code == HF_E_TIMEOUT || result->code == HF_E_TOO_LARGE);
	hf_assert(result->code < 0 || (result->status >= 200 && result->status <= 999));
	hf_assert(result->body_len <= ANSWER_BYTES_MAX && strlen(result->body) <= result->body_len);
	(void)hf_transfer_header(result->transfer, "content-type");
}

static void on_head(void *arg, struct hf_transfer *transfer, int status)
{
	struct asked *asked = arg;

	hf_assert(!asked->head && !asked->done && status >= 200);
	asked->head = true;
}

static void on_data(void *arg, struct hf_transfer *transfer, const char *bytes, size_t len)
{
	struct asked *asked = arg;

	hf_assert(asked->head && !asked->done && len > 0);
	if (asked->pausing)
		hf_transfer_pause(transfer);
}

static void send_requests(struct scene *scene, unsigned what)
{
	static const char body[BODY_BYTES];

	for (size_t i = 0; i < REQUESTS; i++) {
		struct asked *asked = &scene->asked[i];

		asked->scene = scene;
		asked->stream = i >= 2;
		asked->pausing = what & 2;
		const struct hf_http_request request = {
			.method = what & 1 ? "POST" : "GET",
			.target = "/",
			.body = what & 1 ? body : NULL,
			.body_len = what & 1 ? sizeof(body) : 0,
			.response_bytes_max = asked->stream ? 0 : ANSWER_BYTES_MAX,
			.stream = asked->stream,
			.on_head = on_head,
			.on_data = on_data,
			.on_done = on_done,
			.arg = asked,
		};
		int rc = hf_http_client_send(scene->client, &request, &asked->transfer, NULL);
		hf_assert(rc == 0);
	}
}

/* Sends the input to the first connection; further connections are left waiting. */
static void send_piece(struct scene *scene)
{
	static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
	char heard[65536];
	size_t len = scene->size < scene->piece ? scene->size : scene->piece;

	if (scene->peer < 0) {
		scene->peer = accept4(scene->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (scene->peer >= 0 && scene->greet)
			(void)send(scene->peer, settings, sizeof(settings), MSG_NOSIGNAL);
		return;
	}
	while (recv(scene->peer, heard, sizeof(heard), 0) > 0)
		;
	ssize_t n = len > 0 ? send(scene->peer, scene->data, len, MSG_NOSIGNAL) : 0;
	if (n > 0) {
		scene->data += n;
		scene->size -= (size_t)n;
	} else if (n == 0) {
		(void)shutdown(scene->peer, SHUT_WR);
		scene->over = true;
	}
}

static void on_turn(void *arg)
{
	struct scene *scene = arg;

	/* Run some more turns, so that everything received is delivered. */
	if (!scene->over)
		send_piece(scene);
	else if (scene->turns < TURNS_MAX - 8)
		scene->turns = TURNS_MAX - 8;
	for (size_t i = 0; i < REQUESTS; i++) {
		if (scene->asked[i].pausing && !scene->asked[i].done && scene->turns % 4 == 3)
			hf_transfer_resume(scene->asked[i].transfer);
	}
	if (++scene->turns >= TURNS_MAX)
		hf_loop_stop(scene->loop);
	else
		hf_timer_arm(scene->turn, 0);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	(void)unlink(path);
	rc = bind(fd, (struct sockaddr *)&address, sizeof(address));
	hf_assert(fd >= 0 && rc == 0);
	rc = listen(fd, 64);
	hf_assert(rc == 0);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scene scene = {.peer = -1};
	char path[64];
	int rc;

	if (size < 3)
		return 0;
	snprintf(path, sizeof(path), "/tmp/holdfast-fuzz-link-%d", (int)getpid());
	scene.listener = listen_at(path);
	scene.piece = data[1] == 0 ? size : (size_t)data[1] * 16;
	scene.greet = data[2] & 1;
	scene.data = data + 3;
	scene.size = size - 3;
	if (scene.size / scene.piece > TURNS_MAX / 2)
		scene.piece = scene.size;
	rc = hf_loop_create(&scene.loop, NULL);
	hf_assert(rc == 0);
	const struct hf_http_client_spec spec = {
		.base_url = "http://localhost", .unix_path = path, .http2_plain = true};
	rc = hf_http_client_create(scene.loop, &spec, &scene.client, NULL);
	hf_assert(rc == 0);
	scene.client->spec.http2_plain = false; /* requests share links, as over TLS */
	scene.turn = hf_timer_create(scene.loop, on_turn, &scene);
	send_requests(&scene, data[0]);
	hf_timer_arm(scene.turn, 0);
	hf_loop_run(scene.loop);
	hf_http_client_destroy(scene.client);
	hf_timer_destroy(scene.turn);
	hf_loop_destroy(scene.loop);
	if (scene.peer >= 0)
		close(scene.peer);
	close(scene.listener);
	(void)unlink(path);
	return 0;
}
