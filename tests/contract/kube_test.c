/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Runs the contract with the kube store against the API server of the embedded plane, in memory.
 * Client and server are in one process, on a real loop. */
#include "contract/wire.h"

#include "apiserver/apiserver.h"
#include "memstore/gc.h"

#include <stdio.h>

#define HISTORY 64 /* small, so that it can be overwritten */
#define TOKEN "contract-0123456789"

static void overwrite_history(struct world *w, const char *ns)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "busy", &o), 0);
	for (int i = 0; i <= HISTORY; i++)
		assert_int_equal(
			merge(w, AT(&hf_configmaps, ns, "busy"), &o, "{'data':{'i':'%d'}}", i), 0);
}

int main(void)
{
	static char token[] = TOKEN, server[64];
	const struct hf_memstore_options options = {.watch_history = HISTORY,
						    .bookmark_every = HF_SECOND};
	struct hf_kube_config config = {.server = server, .token = token};
	struct hf_apiserver_options api_options = {.token = TOKEN};
	struct wire wire = {.w = {.forget = overwrite_history}};
	struct hf_memstore *memstore;
	struct hf_apiserver *api;
	struct hf_error err;

	assert_ok(hf_loop_create(&wire.w.loop, &err), &err);
	assert_ok(hf_memstore_create(wire.w.loop, &options, &memstore, &err), &err);
	assert_ok(hf_apiserver_create(wire.w.loop, memstore, &api_options, &api, &err), &err);
	snprintf(server, sizeof(server), "http://127.0.0.1:%d", (int)hf_apiserver_port(api));
	wire_open(&wire, &config);
	struct hf_gc *gc = hf_gc_create(memstore, NULL);
	int failed = contract_run("contract: kube, the HTTP API", &wire.w);
	wire_close(&wire);
	hf_gc_destroy(gc);
	hf_apiserver_destroy(api);
	hf_memstore_destroy(memstore);
	hf_loop_destroy(wire.w.loop);
	return failed;
}
