/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The test bench of kube_bench.h: a scripted server that plays steps, and helpers that send
 * requests and record the replies. */
#include "harness/kube_bench.h"

#include "store/resource.h"

/* --- the server --- */

static void send_text(struct hf_scripted_peer *peer, const char *text)
{
	hf_scripted_say(peer, text, strlen(text));
}

static void play_huge(struct hf_scripted_peer *peer)
{
	char *block = hf_xmalloc((1u << 20) + 1);

	memset(block, 'x', 1u << 20);
	block[1u << 20] = '\0';
	send_text(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 65; i++) {
		send_text(peer, "100000\r\n");
		send_text(peer, block);
		send_text(peer, "\r\n");
	}
	free(block);
}

static void play_step(struct bench *bench, struct hf_scripted_peer *peer, const struct step *step)
{
	switch (step->end) {
	case WHOLE: hf_scripted_answer(peer, step->head, step->body); return;
	case CUT: hf_scripted_close(peer, false); return;
	case RESET: hf_scripted_close(peer, true); return;
	case CUT_IN_HEAD: send_text(peer, "HTTP/1.1 200 OK\r\nContent-Le"); break;
	case CUT_IN_BODY:
		send_text(peer,
			  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"kind");
		break;
	case CUT_REFUSAL:
		send_text(peer, "HTTP/1.1 ");
		send_text(peer, step->head);
		send_text(peer, "\r\nContent-Length: 43\r\n\r\nToo many");
		break;
	case SHORT_BODY:
		send_text(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n");
		send_text(peer, step->body);
		break;
	case HUGE_BODY: play_huge(peer); return;
	case SILENCE: return;
	case STREAM:
		send_text(peer, "HTTP/1.1 ");
		send_text(peer, step->head);
		send_text(peer, "\r\nTransfer-Encoding: chunked\r\n\r\n");
		bench->streaming = peer;
		hf_loop_stop(bench->t.loop);
		return;
	}
	peer->close_when_sent = true;
}

static void serve_step(void *arg, struct hf_scripted_peer *peer, const char *head, const char *body)
{
	struct bench *bench = arg;
	const struct step *step = bench->next;

	snprintf(bench->last_head, sizeof(bench->last_head), "%s", head);
	snprintf(bench->last_body, sizeof(bench->last_body), "%s", body);
	if (step == NULL || step->head == NULL) {
		fprintf(stderr, "not expected: '%s'\n", head);
		hf_scripted_answer(peer, "418 Not Expected", "");
		return;
	}
	if (step->wants != NULL && strstr(head, step->wants) == NULL) {
		fprintf(stderr, "'%s' is not in '%s'\n", step->wants, head);
		hf_scripted_answer(peer, "418 Not Expected", "");
		return;
	}
	bench->next++;
	play_step(bench, peer, step);
}

void say_chunk(struct bench *bench, const char *text)
{
	char *head = hf_xasprintf("%zx\r\n", strlen(text));

	assert_non_null(bench->streaming);
	send_text(bench->streaming, head);
	send_text(bench->streaming, text);
	send_text(bench->streaming, "\r\n");
	free(head);
}

void end_stream(struct bench *bench, bool whole)
{
	if (whole)
		send_text(bench->streaming, "0\r\n\r\n");
	bench->streaming->close_when_sent = true;
	if (!whole && bench->streaming->out.len == 0)
		hf_scripted_close(bench->streaming, false);
	bench->streaming = NULL;
}

/* --- the client --- */

static void on_seen(void *arg, const struct hf_kube_observation *seen)
{
	struct bench *bench = arg;

	assert_true(bench->seen_count < SEEN_MAX);
	bench->seen[bench->seen_count++] = *seen;
	snprintf(bench->seen_method, sizeof(bench->seen_method), "%s", seen->method);
	snprintf(bench->seen_host, sizeof(bench->seen_host), "%s", seen->host);
	hf_loop_stop(bench->t.loop);
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct bench *bench = arg;
	size_t len = 0;

	bench->replies++;
	bench->code = reply->code;
	snprintf(bench->message, sizeof(bench->message), "%s", reply->message);
	snprintf(bench->name, sizeof(bench->name), "%s",
		 reply->object != NULL ? hf_doc_name(reply->object) : "");
	bench->retry_after = reply->retry_after;
	bench->server_time = reply->server_time;
	bench->warnings[0] = '\0';
	for (size_t i = 0; i < reply->n_warnings; i++)
		len += (size_t)snprintf(bench->warnings + len, sizeof(bench->warnings) - len, "%s|",
					reply->warnings[i]);
	hf_loop_stop(bench->t.loop);
}

struct hf_call *begin_get(struct bench *bench)
{
	const struct hf_request request = {.verb = HF_VERB_GET,
					   .resource = &hf_pods,
					   .ns = "default",
					   .name = "a",
					   .timeout = bench->timeout};

	return hf_store_request(bench->store, &request, on_reply, bench);
}

int send_and_wait(struct bench *bench, const struct hf_request *request)
{
	unsigned before = bench->replies;

	(void)hf_store_request(bench->store, request, on_reply, bench);
	assert_int_equal(bench->replies, before); /* the callback must not run inside the call */
	while (bench->replies == before)
		hf_test_loop_run(&bench->t);
	return bench->code;
}

int get_pod(struct bench *bench)
{
	return send_and_wait(bench, &(struct hf_request){.verb = HF_VERB_GET,
							 .resource = &hf_pods,
							 .ns = "default",
							 .name = "a",
							 .timeout = bench->timeout});
}

int list_pods(struct bench *bench)
{
	return send_and_wait(bench, &(struct hf_request){.verb = HF_VERB_LIST,
							 .resource = &hf_pods,
							 .timeout = bench->timeout});
}

int create_pod(struct bench *bench)
{
	HF_AUTO_DOC body = hf_doc_from_text(POD, strlen(POD));

	return send_and_wait(bench, &(struct hf_request){.verb = HF_VERB_CREATE,
							 .resource = &hf_pods,
							 .ns = "default",
							 .body = body,
							 .timeout = bench->timeout});
}

void change_steps(struct bench *bench, const struct step *steps)
{
	bench->steps = bench->next = steps;
	bench->streaming = NULL;
	bench->server.requests = 0;
	bench->seen_count = 0;
	bench->replies = 0;
}

void play_steps(struct bench *bench, const struct step *steps)
{
	const struct hf_kube_options options = {.seed = 1,
						.watch_silence_max = bench->watch_silence_max,
						.observe = on_seen,
						.observe_arg = bench};
	struct hf_error err;

	bench->store = hf_store_destroy(bench->store);
	assert_ok(hf_kube_create_with(bench->t.loop, &bench->config, &options, &bench->store, &err),
		  &err);
	change_steps(bench, steps);
}

int bench_setup(void **state)
{
	struct bench *bench = hf_xcalloc(1, sizeof(*bench));

	hf_test_loop_init(&bench->t);
	hf_scripted_open(&bench->server, bench->t.loop, serve_step, bench);
	bench->config.server = hf_xasprintf("http://127.0.0.1:%d", (int)bench->server.port);
	play_steps(bench, NULL);
	*state = bench;
	return 0;
}

int bench_teardown(void **state)
{
	struct bench *bench = *state;

	hf_store_destroy(bench->store);
	hf_scripted_shut(&bench->server);
	hf_kube_config_release(&bench->config);
	hf_test_loop_release(&bench->t);
	free(bench);
	return 0;
}
