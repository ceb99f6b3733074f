/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "contract/contract.h"

#include "base/fs.h"
#include "local/gc.h"
#include "harness/random.h"
#include "local/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The contract on the embedded plane: in memory, or on SQLite with "disk". */

#define HISTORY 64 /* short, so that it can be overwritten */

static struct hf_local *local;

static bool turn(struct world *w)
{
	return hf_loop_run_ready(w->loop);
}

static void pass(struct world *w, hf_time span)
{
	hf_loop_run_until(w->loop, hf_time_add(hf_loop_mono(w->loop), span));
}

static struct hf_store *client(struct world *w)
{
	return hf_local_client_create(local, NULL);
}

static void forget(struct world *w, const char *ns)
{
	AUTO_OUTCOME o = { 0 };

	assert_int_equal(create_configmap(w, ns, "busy", &o), 0);
	for (int i = 0; i <= HISTORY; i++)
		assert_int_equal(merge(w, AT(&hf_configmaps, ns, "busy"), &o, "{'data':{'i':'%d'}}", i),
				 0);
}

/* Repeatable, and no two UIDs alike. */
static void counted(void *arg, void *bytes, size_t len)
{
	static uint64_t state = 1;
	unsigned char *out = bytes;

	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)test_random(&state);
}

int main(int argc, char **argv)
{
	bool disk = argc > 1 && strcmp(argv[1], "disk") == 0;
	char dir[] = "/tmp/holdfast-contract-XXXXXX";
	struct hf_error err = { 0 };
	struct world world = { .turn = turn, .pass = pass, .client = client, .forget = forget };
	struct hf_local_options options = { .random = counted, .watch_history = HISTORY };

	if (disk) {
		if (!mkdtemp(dir))
			return 1;
		options.data_dir = dir;
	}
	world.loop = hf_loop_create_virtual(1790000000 * HF_SECOND);
	if (hf_local_create(world.loop, &options, &local, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	struct hf_gc *gc = hf_gc_create(local, NULL);
	world.store = hf_local_store(local);
	world.other = hf_local_client_create(local, NULL);

	int failed = contract_run(disk ? "contract: local, SQLite" : "contract: local, memory",
				  &world);
	hf_store_destroy(world.other);
	hf_gc_destroy(gc);
	hf_local_destroy(local);
	hf_loop_destroy(world.loop);
	if (disk && hf_fs_remove_tree(dir, &err))
		fprintf(stderr, "%s\n", err.text);
	return failed;
}
