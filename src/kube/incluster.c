/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The configuration of a pod: two environment variables and the files of its service account. */
#include "kube/config_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/certificate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *dir_or_default(const char *dir)
{
	return dir != NULL ? dir : HF_KUBE_SERVICE_ACCOUNT_DIR;
}

bool hf_kube_in_cluster(const char *dir)
{
	HF_AUTOFREE char *token = hf_xasprintf("%s/token", dir_or_default(dir));

	return !hf_str_is_empty(getenv("KUBERNETES_SERVICE_HOST")) &&
	       !hf_str_is_empty(getenv("KUBERNETES_SERVICE_PORT")) && access(token, F_OK) == 0;
}

/* Finds the namespace of the pod: POD_NAMESPACE (set through the downward API), else the service
 * account's file, as in client-go. */
static char *find_namespace(const char *dir)
{
	HF_AUTOFREE char *path = hf_xasprintf("%s/namespace", dir);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(1024);
	const char *env = getenv("POD_NAMESPACE");

	if (!hf_str_is_empty(env))
		return hf_xstrdup(env);
	if (hf_fs_read(path, &sb, NULL) == 0) {
		sb.data[strcspn(sb.data, " \t\r\n")] = '\0';
		if (hf_dns1123_label_problem(sb.data) == NULL)
			return hf_xstrdup(sb.data);
	}
	return hf_xstrdup("default");
}

static int read_files(const char *dir, struct hf_kube_config *config, struct hf_error *err)
{
	HF_AUTOFREE char *ca = hf_xasprintf("%s/ca.crt", dir);
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_KUBECONFIG_BYTES_MAX);
	int rc;

	config->token_file = hf_xasprintf("%s/token", dir);
	rc = hf_kube_token_read(config->token_file, &config->token, err);
	if (rc == 0)
		rc = hf_fs_read(ca, &sb, err);
	if (rc == 0 && hf_certificate_check_certs(hf_str_or(sb.data, ""), err) != 0)
		rc = hf_error_wrap(err, "'%s'", ca);
	if (rc != 0)
		return hf_error_wrap(err, "service account");
	config->ca_pem = hf_strbuf_detach(&sb);
	config->ca_file = hf_steal(&ca);
	config->ns = find_namespace(dir);
	return 0;
}

int hf_kube_config_in_cluster(const char *dir, struct hf_kube_config *ret_config,
			      struct hf_error *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"),
		   *port = getenv("KUBERNETES_SERVICE_PORT");
	struct hf_kube_config config = {.server = NULL};
	int64_t number;
	bool v6;
	int rc;

	if (hf_str_is_empty(host) || hf_str_is_empty(port))
		return hf_error_set(err, HF_E_NOT_FOUND,
				    "not in a pod: KUBERNETES_SERVICE_HOST and "
				    "KUBERNETES_SERVICE_PORT are not both set");
	rc = hf_str_to_i64(port, 1, 65535, &number, err);
	if (rc != 0)
		return hf_error_wrap(err, "KUBERNETES_SERVICE_PORT");
	v6 = strchr(host, ':') != NULL && host[0] != '[';
	config.server =
		hf_xasprintf("https://%s%s%s:%d", v6 ? "[" : "", host, v6 ? "]" : "", (int)number);
	config.path = hf_xstrdup(dir_or_default(dir));
	rc = read_files(dir_or_default(dir), &config, err);
	if (rc != 0) {
		hf_kube_config_release(&config);
		return rc;
	}
	*ret_config = config;
	return 0;
}
