/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kube/kube.h"

#include "base/base64.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/yaml.h"

#include <stdlib.h>
#include <string.h>

/* Reading a kubeconfig file: the context, then its cluster and its user. */

struct reading {
	const char *path;
	const struct hf_json *root;
};

void hf_kube_config_release(struct hf_kube_config *config)
{
	char **texts[] = {&config->server,    &config->ca_pem, &config->cert_pem,
			  &config->key_pem,   &config->token,  &config->tls_server_name,
			  &config->proxy_url, &config->ns,     &config->path};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++) {
		/* Keys and tokens do not stay in freed memory. */
		if (*texts[i] != NULL)
			explicit_bzero(*texts[i], strlen(*texts[i]));
		free(*texts[i]);
		*texts[i] = NULL;
	}
}

static char *dup_or_empty(const struct hf_json *object, const char *key)
{
	return hf_xstrdup(hf_str_or(hf_json_path_str(object, key, NULL), ""));
}

/* The entry called `name` of clusters, users or contexts: {name, <member>: {…}}. */
static int find_entry(const struct reading *rd, const char *list, const char *member,
		      const char *name, const struct hf_json **ret_entry, struct hf_error *err)
{
	const struct hf_json *items = hf_json_get(rd->root, list);

	for (size_t i = 0; i < hf_json_len(items); i++) {
		const struct hf_json *item = hf_json_item(items, i);
		if (hf_streq(hf_json_path_str(item, "name", NULL), name)) {
			*ret_entry = hf_json_get(item, member);
			return 0;
		}
	}
	return hf_error_set(err, HF_E_INVALID, "kubeconfig '%s': %s has no entry '%s'", rd->path,
			    list, name);
}

static int read_relative(const struct reading *rd, const char *file, struct hf_strbuf *sb,
			 struct hf_error *err)
{
	const char *slash = strrchr(rd->path, '/');
	HF_AUTOFREE char *path = NULL;

	if (file[0] == '/' || slash == NULL)
		path = hf_xstrdup(file);
	else
		path = hf_xasprintf("%.*s/%s", (int)(slash - rd->path), rd->path, file);
	return hf_fs_read(path, sb, err);
}

/* "<key>-data" in base64, or the file that "<key>" names; "" where there is neither. */
static int read_pem(const struct reading *rd, const struct hf_json *object, const char *key,
		    char **ret_pem, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_KUBECONFIG_BYTES_MAX);
	HF_AUTOFREE char *data_key = hf_xasprintf("%s-data", key);
	const char *data = hf_json_path_str(object, data_key, NULL);
	const char *file = hf_json_path_str(object, key, NULL);

	if (!hf_str_is_empty(data)) {
		if (hf_base64_decode(data, &sb, NULL) != 0)
			return hf_error_set(err, HF_E_INVALID, "kubeconfig '%s': %s is not base64",
					    rd->path, data_key);
	} else if (!hf_str_is_empty(file)) {
		int rc = read_relative(rd, file, &sb, err);
		if (rc != 0)
			return hf_error_wrap(err, "kubeconfig '%s': %s", rd->path, key);
	}
	*ret_pem = hf_strbuf_detach(&sb);
	return 0;
}

static int read_cluster(const struct reading *rd, const struct hf_json *cluster,
			struct hf_kube_config *config, struct hf_error *err)
{
	config->server = dup_or_empty(cluster, "server");
	config->tls_server_name = dup_or_empty(cluster, "tls-server-name");
	config->proxy_url = dup_or_empty(cluster, "proxy-url");
	config->insecure = hf_json_true(hf_json_get(cluster, "insecure-skip-tls-verify"), false);
	if (config->server[0] == '\0')
		return hf_error_set(err, HF_E_INVALID, "kubeconfig '%s': the cluster has no server",
				    rd->path);
	return read_pem(rd, cluster, "certificate-authority", &config->ca_pem, err);
}

static int read_token(const struct reading *rd, const struct hf_json *user,
		      struct hf_kube_config *config, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(65536);
	const char *file = hf_json_path_str(user, "tokenFile", NULL);
	int rc;

	if (hf_str_is_empty(file)) {
		config->token = dup_or_empty(user, "token");
		return 0;
	}
	rc = read_relative(rd, file, &sb, err);
	if (rc != 0)
		return hf_error_wrap(err, "kubeconfig '%s': tokenFile", rd->path);
	while (sb.len > 0 && strchr(" \t\r\n", sb.data[sb.len - 1]) != NULL)
		hf_strbuf_truncate(&sb, sb.len - 1);
	config->token = hf_strbuf_detach(&sb);
	return 0;
}

static int read_user(const struct reading *rd, const struct hf_json *user,
		     struct hf_kube_config *config, struct hf_error *err)
{
	static const char *const refused[] = {"exec", "auth-provider", "username", "password",
					      "as"};
	int rc;

	for (size_t i = 0; i < HF_ARRAY_LEN(refused); i++)
		if (hf_json_get(user, refused[i]) != NULL)
			return hf_error_set(err, HF_E_UNSUPPORTED,
					    "kubeconfig '%s': signing in by '%s' is not supported; "
					    "use a token or a client certificate",
					    rd->path, refused[i]);
	rc = read_pem(rd, user, "client-certificate", &config->cert_pem, err);
	if (rc == 0)
		rc = read_pem(rd, user, "client-key", &config->key_pem, err);
	if (rc == 0)
		rc = read_token(rd, user, config, err);
	return rc;
}

static int read_context(const struct reading *rd, const char *name, struct hf_kube_config *config,
			struct hf_error *err)
{
	const struct hf_json *context, *cluster, *user = NULL;
	const char *user_name;
	int rc;

	if (hf_str_is_empty(name))
		name = hf_json_path_str(rd->root, "current-context", NULL);
	if (hf_str_is_empty(name))
		return hf_error_set(err, HF_E_INVALID, "kubeconfig '%s' names no current-context",
				    rd->path);
	rc = find_entry(rd, "contexts", "context", name, &context, err);
	if (rc != 0)
		return rc;
	config->ns = hf_xstrdup(hf_str_or(hf_json_path_str(context, "namespace", NULL), "default"));
	rc = find_entry(rd, "clusters", "cluster",
			hf_str_or(hf_json_path_str(context, "cluster", NULL), ""), &cluster, err);
	user_name = hf_str_or(hf_json_path_str(context, "user", NULL), "");
	if (rc == 0 && user_name[0] != '\0')
		rc = find_entry(rd, "users", "user", user_name, &user, err);
	if (rc == 0)
		rc = read_cluster(rd, cluster, config, err);
	if (rc == 0)
		rc = read_user(rd, user, config, err);
	return rc;
}

int hf_kube_config_read(const char *path, const char *context, struct hf_kube_config *ret_config,
			struct hf_error *err)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(HF_KUBECONFIG_BYTES_MAX);
	HF_AUTO_YAML yaml = NULL;
	struct hf_kube_config config = {.server = NULL};
	struct reading rd = {.path = path};
	int rc = hf_fs_read(path, &text, err);

	if (rc != 0)
		return rc;
	rc = hf_yaml_parse(text.data, text.len, NULL, &yaml, err);
	if (rc != 0)
		return hf_error_wrap(err, "kubeconfig '%s'", path);
	if (hf_yaml_len(yaml) != 1)
		return hf_error_set(err, HF_E_INVALID, "kubeconfig '%s' is not one document", path);
	rd.root = hf_yaml_doc(yaml, 0);
	config.path = hf_xstrdup(path);
	rc = read_context(&rd, context, &config, err);
	if (rc != 0) {
		hf_kube_config_release(&config);
		return rc;
	}
	*ret_config = config;
	return 0;
}
