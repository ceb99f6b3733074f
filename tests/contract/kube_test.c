/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"

#include "kube/kube.h"
#include "local/face.h"
#include "local/gc.h"

#include <stdio.h>
#include <string.h>

/*
 * The contract on kube, the store over HTTP, whose server is the face of an engine in memory:
 * both ends of the wire in one process, on a real loop.
 */

#define HISTORY 64 /* short, so that it can be overwritten */
#define TOKEN "contract-0123456789"
#define PATIENCE (10 * HF_SECOND)
#define QUIET (25 * HF_MS)

struct kube_world {
	struct world w; /* first */
	struct hf_local *local;
	struct hf_face *face;
	struct hf_kube_config config;
	struct hf_timer *timer;
	char server[64];
	bool moved;
};

static void on_moved(void *arg)
{
	struct kube_world *k = arg;

	k->moved = true;
	hf_loop_stop(k->w.loop);
}

static void on_timer(void *arg)
{
	struct kube_world *k = arg;

	hf_loop_stop(k->w.loop);
}

/* Until something has come, or the span is over. */
static bool run_for(struct kube_world *k, hf_time span)
{
	k->moved = false;
	hf_timer_arm(k->timer, span);
	hf_loop_run(k->w.loop);
	hf_timer_disarm(k->timer);
	return k->moved;
}

static bool turn(struct world *w)
{
	return run_for((struct kube_world *)w, PATIENCE);
}

static void settle_world(struct world *w)
{
	while (run_for((struct kube_world *)w, QUIET))
		;
}

static void pass(struct world *w, hf_time span)
{
	struct kube_world *k = (struct kube_world *)w;
	hf_time end = hf_loop_mono(w->loop) + span;

	for (hf_time left; (left = end - hf_loop_mono(w->loop)) > 0;)
		(void)run_for(k, left);
}

static struct hf_store *client(struct world *w)
{
	struct kube_world *k = (struct kube_world *)w;
	struct hf_store *store;
	struct hf_error err;

	assert_ok(hf_kube_create(w->loop, &k->config, &store, &err), &err);
	return store;
}

static void forget(struct world *w, const char *ns)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "busy", &o), 0);
	for (int i = 0; i <= HISTORY; i++)
		assert_int_equal(
			merge(w, AT(&hf_configmaps, ns, "busy"), &o, "{'data':{'i':'%d'}}", i), 0);
}

static void open_world(struct kube_world *k)
{
	static char empty[1], token[] = TOKEN, ns[] = "default";
	const struct hf_local_options options = {.watch_history = HISTORY};
	struct hf_face_options face = {.token = TOKEN};
	struct hf_error err;

	assert_ok(hf_loop_create(&k->w.loop, &err), &err);
	assert_ok(hf_local_create(k->w.loop, &options, &k->local, &err), &err);
	assert_ok(hf_face_create(k->w.loop, k->local, &face, &k->face, &err), &err);
	snprintf(k->server, sizeof(k->server), "http://127.0.0.1:%d", (int)hf_face_port(k->face));
	k->config = (struct hf_kube_config){.server = k->server,
					    .token = token,
					    .ns = ns,
					    .ca_pem = empty,
					    .cert_pem = empty,
					    .key_pem = empty,
					    .tls_server_name = empty,
					    .proxy_url = empty,
					    .path = empty};
	k->timer = hf_timer_create(k->w.loop, on_timer, k);
	contract_moved = on_moved;
	contract_moved_arg = k;
	k->w.store = client(&k->w);
	k->w.other = client(&k->w);
}

int main(void)
{
	struct kube_world k = {.w = {.turn = turn,
				     .settle = settle_world,
				     .pass = pass,
				     .client = client,
				     .forget = forget}};

	open_world(&k);
	struct hf_gc *gc = hf_gc_create(k.local, NULL);
	int failed = contract_run("contract: kube, the face", &k.w);
	hf_store_destroy(k.w.store);
	hf_store_destroy(k.w.other);
	hf_gc_destroy(gc);
	hf_face_destroy(k.face);
	hf_local_destroy(k.local);
	hf_timer_destroy(k.timer);
	hf_loop_destroy(k.w.loop);
	return failed;
}
