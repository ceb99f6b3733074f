/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Runs the contract with the kube store on the API server of the kubeconfig
 * HOLDFAST_TEST_KUBECONFIG. The cluster needs kube-controller-manager and the kubeflow.org CRDs.
 * Without the variable the test is skipped. An argument is a pattern for test names ("31:*"). */
#include "contract/wire.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

#define SKIPPED 77

static void remove_namespaces(struct world *w, int first)
{
	for (int i = first + 1; i <= w->serial; i++) {
		AUTO_OUTCOME o = {0};
		char name[64];

		snprintf(name, sizeof(name), "contract-%d", i);
		(void)erase(w, &hf_namespaces, NULL, name, &o);
	}
}

int main(int argc, char **argv)
{
	const char *path = getenv("HOLDFAST_TEST_KUBECONFIG");
	struct wire wire = {.w = {0}};
	struct hf_kube_config config;
	struct hf_error err;

	if (hf_str_is_empty(path)) {
		fprintf(stderr, "skipped: HOLDFAST_TEST_KUBECONFIG is not set\n");
		return SKIPPED;
	}
	assert_ok(hf_loop_create(&wire.w.loop, &err), &err);
	if (hf_kube_config_read(path, NULL, &config, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	wire_open(&wire, &config);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	/* Namespaces of an earlier run may still be terminating, so use other names. */
	int first = wire.w.serial = (int)(hf_loop_wall(wire.w.loop) / HF_MS % 2000000) * 1000;
	int failed = contract_run("contract: kube, an API server", &wire.w);
	remove_namespaces(&wire.w, first);
	wire_close(&wire);
	hf_kube_config_release(&config);
	hf_loop_destroy(wire.w.loop);
	return failed;
}
