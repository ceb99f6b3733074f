/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Chooses the API server of a verb from flags, $KUBECONFIG and the folder of `holdfast up`, and
 * opens the store. */
#include "app/connect.h"

#include "app/plane.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/kube.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Loads the kubeconfig: --kubeconfig, else $KUBECONFIG, else the file of this user's 'holdfast up'. */
static int find_config(const struct hf_cli *cli, struct hf_kube_config *ret_config,
		       struct hf_error *err)
{
	const char *given = hf_cli_flag(cli, "kubeconfig"), *env = getenv("KUBECONFIG");
	struct hf_kube_load load = {
		.paths = given,
		.required = given != NULL,
		.context = hf_cli_flag(cli, "context"),
		.cluster = hf_cli_flag(cli, "cluster"),
		.user = hf_cli_flag(cli, "user"),
	};
	bool local = hf_cli_has(cli, "local");
	HF_AUTOFREE char *dir = NULL;
	HF_AUTOFREE char *path = NULL;
	int rc;

	if (local) {
		load.paths = NULL;
		load.required = false;
	} else if (given == NULL && !hf_str_is_empty(env)) {
		load.paths = env;
	}
	if (load.paths != NULL)
		return hf_kube_config_load(&load, ret_config, err);
	rc = hf_plane_default_dir(&dir, err);
	if (rc != 0)
		return rc;
	path = hf_xasprintf("%s/kubeconfig", dir);
	if (access(path, F_OK) != 0)
		return hf_error_set(
			err, HF_E_UNAVAILABLE, "%s",
			local ? "--local: 'holdfast up' is not running on this machine; start it first"
			      : "no server to connect to: start 'holdfast up', or name a "
				"cluster with --kubeconfig or $KUBECONFIG");
	load.paths = path;
	load.required = true;
	return hf_kube_config_load(&load, ret_config, err);
}

int hf_connect(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err)
{
	struct hf_kube_config config;
	int rc;

	if (cli->store != NULL) {
		*ret_store = cli->store;
		return 0;
	}
	rc = find_config(cli, &config, err);
	if (rc != 0)
		return rc;
	if (!hf_str_is_empty(config.warning))
		fprintf(cli->err, "holdfast: warning: %s\n", config.warning);
	if (hf_cli_flag(cli, "namespace") == NULL) {
		free(cli->ns);
		cli->ns = hf_xstrdup(config.ns);
	}
	if (cli->loop == NULL)
		rc = hf_loop_create(&cli->loop, err);
	if (rc == 0)
		rc = hf_kube_create(cli->loop, &config, &cli->store, err);
	hf_kube_config_release(&config);
	if (rc == 0)
		*ret_store = cli->store;
	return rc;
}

void hf_disconnect(struct hf_cli *cli)
{
	cli->store = hf_store_destroy(cli->store);
	cli->loop = hf_loop_destroy(cli->loop);
}
