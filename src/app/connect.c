/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "app/connect.h"

#include "app/plane.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/kube.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a list of files (a:b) the first that is there, or else the first. */
static char *first_file(const char *list)
{
	for (const char *s = list; *s != '\0';) {
		size_t len = strcspn(s, ":");
		HF_AUTOFREE char *path = hf_xstrndup(s, len);
		if (len > 0 && access(path, F_OK) == 0)
			return hf_steal(&path);
		s += len + (s[len] == ':');
	}
	return hf_xstrndup(list, strcspn(list, ":"));
}

static int find_file(const struct hf_cli *cli, char **ret_path, struct hf_error *err)
{
	const char *given = hf_cli_flag(cli, "kubeconfig"), *env = getenv("KUBECONFIG");
	HF_AUTOFREE char *dir = NULL;
	int rc;

	if (given != NULL) {
		*ret_path = hf_xstrdup(given);
		return 0;
	}
	if (!hf_str_is_empty(env)) {
		*ret_path = first_file(env);
		return 0;
	}
	rc = hf_plane_default_dir(&dir, err);
	if (rc != 0)
		return rc;
	*ret_path = hf_xasprintf("%s/kubeconfig", dir);
	if (access(*ret_path, F_OK) == 0)
		return 0;
	free(*ret_path);
	*ret_path = NULL;
	return hf_error_set(
		err, HF_E_UNAVAILABLE,
		"no server: start one with 'holdfast up', or name one by --kubeconfig or "
		"KUBECONFIG");
}

int hf_connect(struct hf_cli *cli, struct hf_store **ret_store, struct hf_error *err)
{
	struct hf_kube_config config;
	HF_AUTOFREE char *path = NULL;
	int rc;

	if (cli->store != NULL) {
		*ret_store = cli->store;
		return 0;
	}
	rc = find_file(cli, &path, err);
	if (rc == 0)
		rc = hf_kube_config_read(path, hf_cli_flag(cli, "context"), &config, err);
	if (rc != 0)
		return rc;
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
