/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Runs the contract on the embedded plane: in memory, or on SQLite with the argument "disk". */
#include "contract/plane.h"

#include "memstore/gc.h"

#include <string.h>

#define HISTORY 64 /* small, so that it can be overwritten */

static void overwrite_history(struct world *w, const char *ns)
{
	AUTO_OUTCOME o = {0};

	assert_int_equal(create_configmap(w, ns, "busy", &o), 0);
	for (int i = 0; i <= HISTORY; i++)
		assert_int_equal(
			merge(w, AT(&hf_configmaps, ns, "busy"), &o, "{'data':{'i':'%d'}}", i), 0);
}

int main(int argc, char **argv)
{
	bool disk = argc > 1 && strcmp(argv[1], "disk") == 0;
	const struct hf_memstore_options options = {.watch_history = HISTORY};
	struct plane plane;

	plane_open(&plane, &options, disk);
	plane.w.forget = overwrite_history;
	struct hf_gc *gc = hf_gc_create(plane.memstore, NULL);
	int failed = contract_run(
		disk ? "contract: memstore, SQLite" : "contract: memstore, memory", &plane.w);
	hf_gc_destroy(gc);
	plane_close(&plane);
	return failed;
}
