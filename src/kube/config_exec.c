/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* users[].user.exec of a kubeconfig: reads the command, arguments and environment of a credential
 * plugin, and builds the KUBERNETES_EXEC_INFO that the plugin gets. */
#include "kube/config_internal.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 256
/* Limit of KUBERNETES_EXEC_INFO, below the limit of Linux for one environment variable (128
 * KiB). */
#define INFO_BYTES_MAX ((size_t)96 << 10)

static char **copy_texts(char *const *texts)
{
	size_t len = 0;

	while (texts[len] != NULL)
		len++;
	char **copy = hf_xcalloc(len + 1, sizeof(*copy));
	for (size_t i = 0; i < len; i++)
		copy[i] = hf_xstrdup(texts[i]);
	return copy;
}

static void free_texts(char **texts)
{
	for (char **text = texts; text != NULL && *text != NULL; text++) {
		explicit_bzero(*text, strlen(*text));
		free(*text);
	}
	free(texts);
}

struct hf_kube_exec *hf_kube_exec_copy(const struct hf_kube_exec *exec)
{
	struct hf_kube_exec *copy;

	if (exec == NULL)
		return NULL;
	copy = hf_xcalloc(1, sizeof(*copy));
	copy->argv = copy_texts(exec->argv);
	copy->env = copy_texts(exec->env);
	copy->api_version = hf_xstrdup(exec->api_version);
	copy->install_hint = hf_xstrdup(exec->install_hint);
	copy->info = hf_xstrdup(exec->info);
	return copy;
}

struct hf_kube_exec *hf_kube_exec_free(struct hf_kube_exec *exec)
{
	if (exec == NULL)
		return NULL;
	free_texts(exec->argv);
	free_texts(exec->env);
	free(exec->api_version);
	free(exec->install_hint);
	free(exec->info);
	free(exec);
	return NULL;
}

static int check_list(const struct hf_kubeconfig_entry *entry, const char *key,
		      const struct hf_json **ret_list, struct hf_error *err)
{
	const struct hf_json *list = hf_json_get(entry->object, key);
	enum hf_json_type type = hf_json_type(list);

	if (type != HF_JSON_ARRAY && type != HF_JSON_ABSENT && type != HF_JSON_NULL)
		return hf_kubeconfig_refuse(entry, key, HF_E_INVALID, err, "must be a list");
	if (hf_json_len(list) > ARGS_MAX)
		return hf_kubeconfig_refuse(entry, key, HF_E_TOO_LARGE, err,
					    "has more than 256 items");
	*ret_list = list;
	return 0;
}

static int read_argv(const struct hf_kubeconfig_entry *entry, struct hf_kube_exec *exec,
		     struct hf_error *err)
{
	const struct hf_json *args = NULL;
	const char *command;
	int rc = hf_kubeconfig_str(entry, "command", &command, err);

	if (rc == 0 && command[0] == '\0')
		return hf_kubeconfig_refuse(entry, "command", HF_E_INVALID, err, "is missing");
	if (rc == 0)
		rc = check_list(entry, "args", &args, err);
	if (rc != 0)
		return rc;
	exec->argv = hf_xcalloc(hf_json_len(args) + 2, sizeof(*exec->argv));
	/* A name without '/' is searched in PATH; a path is relative to the folder of the
	 * kubeconfig. */
	exec->argv[0] = strchr(command, '/') != NULL ? hf_kubeconfig_path(entry, command)
						     : hf_xstrdup(command);
	for (size_t i = 0; i < hf_json_len(args); i++) {
		const char *arg = hf_json_str(hf_json_item(args, i), NULL);
		if (arg == NULL)
			return hf_kubeconfig_refuse(entry, "args", HF_E_INVALID, err,
						    "must be a list of strings");
		exec->argv[i + 1] = hf_xstrdup(arg);
	}
	return 0;
}

static int read_env(const struct hf_kubeconfig_entry *entry, struct hf_kube_exec *exec,
		    struct hf_error *err)
{
	const struct hf_json *env = NULL;
	int rc = check_list(entry, "env", &env, err);

	if (rc != 0)
		return rc;
	exec->env = hf_xcalloc(hf_json_len(env) + 1, sizeof(*exec->env));
	for (size_t i = 0; i < hf_json_len(env); i++) {
		const struct hf_json *item = hf_json_item(env, i);
		const char *name = hf_json_path_str(item, "name", NULL);
		if (hf_str_is_empty(name) || strchr(name, '=') != NULL)
			return hf_kubeconfig_refuse(entry, "env", HF_E_INVALID, err,
						    "each item needs a name");
		exec->env[i] = hf_xasprintf("%s=%s", name,
					    hf_str_or(hf_json_path_str(item, "value", NULL), ""));
	}
	return 0;
}

static int read_mode(const struct hf_kubeconfig_entry *entry, const char *api_version,
		     struct hf_error *err)
{
	const char *mode;
	int rc = hf_kubeconfig_str(entry, "interactiveMode", &mode, err);

	if (rc != 0)
		return rc;
	if (hf_streq(mode, "Always"))
		return hf_kubeconfig_refuse(entry, "interactiveMode", HF_E_UNSUPPORTED, err,
					    "is Always, but Holdfast gives plugins no terminal");
	if (hf_streq(mode, "Never") || hf_streq(mode, "IfAvailable"))
		return 0;
	if (mode[0] == '\0' && !hf_str_has_suffix(api_version, "/v1"))
		return 0;
	return hf_kubeconfig_refuse(entry, "interactiveMode", HF_E_INVALID, err,
				    "must be Never, IfAvailable or Always");
}

static int read_version(const struct hf_kubeconfig_entry *entry, struct hf_kube_exec *exec,
			struct hf_error *err)
{
	const char *version;
	int rc = hf_kubeconfig_dup(entry, "apiVersion", &exec->api_version, err);

	version = exec->api_version;
	if (rc != 0)
		return rc;
	if (hf_streq(version, "client.authentication.k8s.io/v1") ||
	    hf_streq(version, "client.authentication.k8s.io/v1beta1"))
		return read_mode(entry, version, err);
	return hf_kubeconfig_refuse(
		entry, "apiVersion",
		hf_str_has_prefix(version, "client.authentication.k8s.io/") ? HF_E_UNSUPPORTED
									    : HF_E_INVALID,
		err,
		"must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1");
}

/* Finds the extension with the reserved name, in which a cluster entry of a kubeconfig has data
 * for plugins. */
static const struct hf_json *find_extension(const struct hf_json *cluster)
{
	const struct hf_json *list = hf_json_get(cluster, "extensions");

	for (size_t i = 0; i < hf_json_len(list); i++) {
		const struct hf_json *item = hf_json_item(list, i);
		if (hf_streq(hf_json_path_str(item, "name", NULL),
			     "client.authentication.k8s.io/exec"))
			return hf_json_get(item, "extension");
	}
	return NULL;
}

static void write_cluster(struct hf_json *spec, const struct hf_json *cluster,
			  const struct hf_kube_config *config)
{
	HF_AUTO_STRBUF ca = HF_STRBUF_INIT(HF_KUBECONFIG_BYTES_MAX * 2);
	struct hf_json *to = hf_json_ensure_object(spec, "cluster");
	const struct hf_json *extension = find_extension(cluster);

	hf_json_set_str(to, "server", config->server);
	if (config->tls_server_name[0] != '\0')
		hf_json_set_str(to, "tls-server-name", config->tls_server_name);
	if (config->insecure)
		hf_json_set_bool(to, "insecure-skip-tls-verify", true);
	if (config->ca_pem[0] != '\0') {
		hf_base64_encode(config->ca_pem, strlen(config->ca_pem), &ca);
		hf_json_set_str(to, "certificate-authority-data", ca.data);
	}
	hf_json_set_str(to, "proxy-url", hf_json_path_str(cluster, "proxy-url", NULL));
	if (config->no_gzip)
		hf_json_set_bool(to, "disable-compression", true);
	hf_json_set(to, "config", hf_json_copy(extension));
}

static int write_info(const struct hf_kubeconfig_entry *entry, struct hf_kube_exec *exec,
		      const struct hf_json *cluster, const struct hf_kube_config *config,
		      struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(INFO_BYTES_MAX);
	HF_AUTO_JSON info = hf_json_object();
	struct hf_json *spec;
	bool with_cluster;
	int rc = hf_kubeconfig_bool(entry, "provideClusterInfo", &with_cluster, err);

	if (rc != 0)
		return rc;
	hf_json_set_str(info, "kind", "ExecCredential");
	hf_json_set_str(info, "apiVersion", exec->api_version);
	spec = hf_json_ensure_object(info, "spec");
	if (with_cluster)
		write_cluster(spec, cluster, config);
	hf_json_set_bool(spec, "interactive", false);
	hf_json_write(info, HF_JSON_COMPACT, &sb);
	if (sb.full)
		return hf_kubeconfig_refuse(entry, "provideClusterInfo", HF_E_TOO_LARGE, err,
					    "the cluster's data are too large for a plugin");
	exec->info = hf_strbuf_detach(&sb);
	return 0;
}

int hf_kube_exec_read(const struct hf_kubeconfig_entry *user,
		      const struct hf_kubeconfig_entry *cluster,
		      const struct hf_kube_config *config, struct hf_kube_exec **ret_exec,
		      struct hf_error *err)
{
	struct hf_kubeconfig_entry entry;
	struct hf_kube_exec *exec;
	int rc = hf_kubeconfig_member(user, "exec", &entry, err);

	if (rc != 0 || entry.object == NULL)
		return rc;
	exec = hf_xcalloc(1, sizeof(*exec));
	rc = read_argv(&entry, exec, err);
	if (rc == 0)
		rc = read_env(&entry, exec, err);
	if (rc == 0)
		rc = read_version(&entry, exec, err);
	if (rc == 0)
		rc = hf_kubeconfig_dup(&entry, "installHint", &exec->install_hint, err);
	if (rc == 0)
		rc = write_info(&entry, exec, cluster->object, config, err);
	if (rc != 0) {
		(void)hf_kube_exec_free(exec);
		return rc;
	}
	*ret_exec = exec;
	return 0;
}
