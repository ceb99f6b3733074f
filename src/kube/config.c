/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Loads a kubeconfig: chooses a context, a cluster and a user from the merged files and reads them
 * into one hf_kube_config. Certificates and keys are checked here, so that an error names the file
 * and the field. */
#include "kube/config_internal.h"

#include "base/base64.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/certificate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wipe_secret(char **text)
{
	/* Overwrite the text before freeing it: freed memory must hold no keys or tokens. */
	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void hf_kube_config_release(struct hf_kube_config *config)
{
	char **texts[] = {&config->server,
			  &config->ca_pem,
			  &config->cert_pem,
			  &config->key_pem,
			  &config->token,
			  &config->token_file,
			  &config->tls_server_name,
			  &config->proxy_url,
			  &config->ns,
			  &config->path,
			  &config->warning,
			  &config->ca_file,
			  &config->cert_file,
			  &config->key_file};

	for (size_t i = 0; i < HF_ARRAY_LEN(texts); i++)
		wipe_secret(texts[i]);
	config->exec = hf_kube_exec_free(config->exec);
}

static void add_warning(struct hf_kube_config *config, const char *text)
{
	char *both = hf_str_is_empty(config->warning)
			     ? hf_xstrdup(text)
			     : hf_xasprintf("%s; %s", config->warning, text);

	free(config->warning);
	config->warning = both;
}

/* Reads a PEM text: from the field "<key>-data" (base64) or, without that field, from the file
 * that the field "<key>" names. The text is "" if both fields are absent. */
static int read_pem(const struct hf_kubeconfig_entry *entry, const char *key, char **ret_pem,
		    char **ret_file, struct hf_error *err)
{
	HF_AUTO_STRBUF sb = HF_STRBUF_INIT(HF_KUBECONFIG_BYTES_MAX);
	HF_AUTOFREE char *data_key = hf_xasprintf("%s-data", key);
	const char *data, *file;
	int rc = hf_kubeconfig_str(entry, data_key, &data, err);

	if (rc == 0)
		rc = hf_kubeconfig_str(entry, key, &file, err);
	if (rc != 0)
		return rc;
	if (data[0] != '\0') {
		if (hf_base64_decode(data, &sb, NULL) != 0)
			return hf_kubeconfig_refuse(entry, data_key, HF_E_INVALID, err,
						    "is not base64");
	} else if (file[0] != '\0') {
		HF_AUTOFREE char *path = hf_kubeconfig_path(entry, file);
		rc = hf_fs_read(path, &sb, err);
		if (rc != 0)
			return hf_error_wrap(err, "kubeconfig '%s': %s.%s", entry->file,
					     entry->place, key);
		*ret_file = hf_steal(&path);
	}
	*ret_pem = hf_strbuf_detach(&sb);
	return 0;
}

/* Adds the file and the field to the error about a certificate or key. Without this check curl
 * would report a "blob" without a name, at each request. */
static int refuse_pem(const struct hf_kubeconfig_entry *entry, const char *key, const char *file,
		      struct hf_error *err)
{
	if (file == NULL)
		return hf_error_wrap(err, "kubeconfig '%s': %s.%s-data", entry->file, entry->place,
				     key);
	return hf_error_wrap(err, "kubeconfig '%s': %s.%s: '%s'", entry->file, entry->place, key,
			     file);
}

static int check_client_pem(const struct hf_kubeconfig_entry *user,
			    const struct hf_kube_config *config, struct hf_error *err)
{
	if (hf_certificate_check_certs(config->cert_pem, err) != 0)
		return refuse_pem(user, "client-certificate", config->cert_file, err);
	if (hf_certificate_check_key(config->key_pem, err) != 0 ||
	    hf_certificate_check_pair(config->cert_pem, config->key_pem, err) != 0)
		return refuse_pem(user, "client-key", config->key_file, err);
	return 0;
}

static int read_proxy(const struct hf_kubeconfig_entry *cluster, struct hf_kube_config *config,
		      struct hf_error *err)
{
	const struct hf_kube_proxy_env env = {
		.http = hf_str_or(getenv("HTTP_PROXY"), getenv("http_proxy")),
		.https = hf_str_or(getenv("HTTPS_PROXY"), getenv("https_proxy")),
		.no_proxy = hf_str_or(getenv("NO_PROXY"), getenv("no_proxy")),
	};
	HF_AUTOFREE char *chosen = NULL;
	const char *url;
	int rc = hf_kubeconfig_str(cluster, "proxy-url", &url, err);

	if (rc != 0)
		return rc;
	if (url[0] == '\0') {
		chosen = hf_kube_proxy_choose(config->server, &env);
		if (chosen == NULL)
			return 0;
		config->proxy_url = hf_kube_proxy_url(chosen);
		if (config->proxy_url == NULL)
			return hf_error_set(err, HF_E_INVALID,
					    "the environment's proxy for '%s' must be an http, "
					    "https or socks5 URL",
					    config->server);
		return 0;
	}
	config->proxy_url = hf_kube_proxy_url(url);
	if (config->proxy_url == NULL)
		return hf_kubeconfig_refuse(cluster, "proxy-url", HF_E_INVALID, err,
					    "must be an http, https or socks5 URL");
	return 0;
}

static int read_ca(const struct hf_kubeconfig_entry *cluster, struct hf_kube_config *config,
		   struct hf_error *err)
{
	int rc = read_pem(cluster, "certificate-authority", &config->ca_pem, &config->ca_file, err);

	if (rc != 0)
		return rc;
	if (config->insecure && config->ca_pem[0] != '\0')
		return hf_kubeconfig_refuse(
			cluster, "insecure-skip-tls-verify", HF_E_INVALID, err,
			"cannot be used with certificate-authority, which would have no effect");
	if (config->insecure)
		add_warning(config,
			    "insecure-skip-tls-verify: the server's certificate is not verified");
	if (config->ca_pem[0] != '\0' && hf_certificate_check_certs(config->ca_pem, err) != 0)
		return refuse_pem(cluster, "certificate-authority", config->ca_file, err);
	return 0;
}

static int read_cluster(const struct hf_kubeconfig_entry *cluster, struct hf_kube_config *config,
			struct hf_error *err)
{
	int rc = hf_kubeconfig_dup(cluster, "server", &config->server, err);

	if (rc == 0 && config->server[0] == '\0')
		return hf_kubeconfig_refuse(cluster, "server", HF_E_INVALID, err, "is missing");
	if (rc == 0 && !hf_str_has_prefix(config->server, "https://") &&
	    !hf_str_has_prefix(config->server, "http://"))
		return hf_kubeconfig_refuse(cluster, "server", HF_E_INVALID, err,
					    "must begin with https:// (or http://)");
	if (rc == 0)
		rc = hf_kubeconfig_dup(cluster, "tls-server-name", &config->tls_server_name, err);
	if (rc == 0)
		rc = hf_kubeconfig_bool(cluster, "insecure-skip-tls-verify", &config->insecure,
					err);
	if (rc == 0)
		rc = hf_kubeconfig_bool(cluster, "disable-compression", &config->no_gzip, err);
	if (rc == 0)
		rc = read_proxy(cluster, config, err);
	return rc == 0 ? read_ca(cluster, config, err) : rc;
}

static int refuse_user(const struct hf_kubeconfig_entry *user, struct hf_error *err)
{
	static const struct {
		const char *key, *why;
	} refused[] = {
		{"username", "passwords are not supported (no API server takes them since 1.19); "
			     "use a client certificate, a token or exec"},
		{"password", "passwords are not supported (no API server takes them since 1.19); "
			     "use a client certificate, a token or exec"},
		{"as", "impersonation is not supported"},
		{"as-uid", "impersonation is not supported"},
		{"as-groups", "impersonation is not supported"},
		{"as-user-extra", "impersonation is not supported"},
	};
	const struct hf_json *provider = hf_json_get(user->object, "auth-provider");
	const char *name = hf_json_path_str(provider, "name", NULL);

	for (size_t i = 0; i < HF_ARRAY_LEN(refused); i++) {
		const struct hf_json *value = hf_json_get(user->object, refused[i].key);
		if (value != NULL && hf_json_type(value) != HF_JSON_NULL)
			return hf_kubeconfig_refuse(user, refused[i].key, HF_E_UNSUPPORTED, err,
						    refused[i].why);
	}
	if (provider != NULL && hf_json_type(provider) != HF_JSON_NULL)
		return hf_error_set(err, HF_E_UNSUPPORTED,
				    "kubeconfig '%s': %s.auth-provider '%s' is not supported "
				    "(client-go has none since 1.26); use its exec plugin",
				    user->file, user->place, hf_str_or(name, ""));
	return 0;
}

static int read_token(const struct hf_kubeconfig_entry *user, struct hf_kube_config *config,
		      struct hf_error *err)
{
	const char *file;
	int rc = hf_kubeconfig_dup(user, "token", &config->token, err);

	if (rc == 0)
		rc = hf_kubeconfig_str(user, "tokenFile", &file, err);
	if (rc == 0 && file[0] == '\0' && hf_kube_token_check(config->token, err) != 0)
		return hf_error_wrap(err, "kubeconfig '%s': %s.token", user->file, user->place);
	if (rc != 0 || file[0] == '\0')
		return rc;
	config->token_file = hf_kubeconfig_path(user, file);
	/* The content of tokenFile overrides the field token, as in client-go. */
	wipe_secret(&config->token);
	rc = hf_kube_token_read(config->token_file, &config->token, err);
	if (rc != 0)
		return hf_error_wrap(err, "kubeconfig '%s': %s.tokenFile", user->file, user->place);
	return 0;
}

static int read_user(const struct hf_kubeconfig_entry *user,
		     const struct hf_kubeconfig_entry *cluster, struct hf_kube_config *config,
		     struct hf_error *err)
{
	int rc = refuse_user(user, err);

	if (rc == 0)
		rc = read_pem(user, "client-certificate", &config->cert_pem, &config->cert_file,
			      err);
	if (rc == 0)
		rc = read_pem(user, "client-key", &config->key_pem, &config->key_file, err);
	if (rc == 0)
		rc = read_token(user, config, err);
	if (rc != 0)
		return rc;
	if (config->cert_pem[0] != '\0' && config->key_pem[0] == '\0')
		return hf_kubeconfig_refuse(user, "client-key", HF_E_INVALID, err,
					    "is missing: client-certificate needs it");
	if (config->key_pem[0] != '\0' && config->cert_pem[0] == '\0')
		return hf_kubeconfig_refuse(user, "client-certificate", HF_E_INVALID, err,
					    "is missing: client-key needs it");
	if (config->cert_pem[0] != '\0')
		rc = check_client_pem(user, config, err);
	if (rc != 0)
		return rc;
	/* A plugin is used only without a token and a certificate, as in client-go. */
	if (config->token[0] != '\0' || config->cert_pem[0] != '\0')
		return 0;
	return hf_kube_exec_read(user, cluster, config, &config->exec, err);
}

/* Removes the credentials if the server is not on this machine and uses no TLS: every program on
 * the network could read them. */
static void drop_credentials_without_tls(struct hf_kube_config *config)
{
	char host[256], port[8];
	bool has = config->token[0] != '\0' || config->exec != NULL;

	if (!has || hf_str_has_prefix(config->server, "https:"))
		return;
	if (hf_kube_url_host(config->server, host, sizeof(host), port) &&
	    hf_kube_host_is_loopback(host))
		return;
	wipe_secret(&config->token);
	wipe_secret(&config->token_file);
	config->exec = hf_kube_exec_free(config->exec);
	add_warning(config,
		    "the server URL is http and not on this machine: credentials are not sent");
}

struct choice {
	struct hf_kubeconfig_entry context, cluster, user;
	const char *ns;
};

/* Chooses context, cluster and user. Names in `load` override the names in the context. A user may
 * be missing, but not a cluster. */
static int choose_entries(const struct hf_kubeconfig_files *files, const struct hf_kube_load *load,
			  struct choice *choice, struct hf_error *err)
{
	const char *name = hf_str_or(load->context, hf_kubeconfig_current_context(files));
	const char *cluster_name = load->cluster, *user_name = load->user;
	int rc = 0;

	if (!hf_str_is_empty(name))
		rc = hf_kubeconfig_find(files, "contexts", "context", name, &choice->context, err);
	else if (hf_str_is_empty(cluster_name))
		return hf_error_set(err, HF_E_INVALID, "kubeconfig '%s' names no current-context",
				    files->names);
	if (rc == 0 && hf_str_is_empty(cluster_name))
		rc = hf_kubeconfig_str(&choice->context, "cluster", &cluster_name, err);
	if (rc == 0 && hf_str_is_empty(user_name))
		rc = hf_kubeconfig_str(&choice->context, "user", &user_name, err);
	if (rc == 0)
		rc = hf_kubeconfig_str(&choice->context, "namespace", &choice->ns, err);
	if (rc == 0)
		rc = hf_kubeconfig_find(files, "clusters", "cluster", cluster_name,
					&choice->cluster, err);
	if (rc == 0 && !hf_str_is_empty(user_name))
		rc = hf_kubeconfig_find(files, "users", "user", user_name, &choice->user, err);
	return rc;
}

static int read_context(const struct hf_kubeconfig_files *files, const struct hf_kube_load *load,
			struct hf_kube_config *config, struct hf_error *err)
{
	struct choice choice = {.ns = ""};
	const char *problem;
	int rc = choose_entries(files, load, &choice, err);

	if (rc == 0)
		rc = read_cluster(&choice.cluster, config, err);
	if (rc == 0)
		rc = read_user(&choice.user, &choice.cluster, config, err);
	if (rc != 0)
		return rc;
	problem = choice.ns[0] != '\0' ? hf_dns1123_label_problem(choice.ns) : NULL;
	if (problem != NULL)
		return hf_kubeconfig_refuse(&choice.context, "namespace", HF_E_INVALID, err,
					    problem);
	config->ns = hf_xstrdup(hf_str_or(choice.ns, "default"));
	drop_credentials_without_tls(config);
	return 0;
}

int hf_kube_config_load(const struct hf_kube_load *load, struct hf_kube_config *ret_config,
			struct hf_error *err)
{
	struct hf_kubeconfig_files files;
	struct hf_kube_config config = {.server = NULL};
	int rc = hf_kubeconfig_files_read(load, &files, err);

	if (rc != 0)
		return rc;
	config.path = hf_xstrdup(load->paths);
	rc = read_context(&files, load, &config, err);
	hf_kubeconfig_files_release(&files);
	if (rc != 0) {
		hf_kube_config_release(&config);
		return rc;
	}
	*ret_config = config;
	return 0;
}

int hf_kube_config_read(const char *path, const char *context, struct hf_kube_config *ret_config,
			struct hf_error *err)
{
	const struct hf_kube_load load = {.paths = path, .required = true, .context = context};

	return hf_kube_config_load(&load, ret_config, err);
}

int hf_kube_config_find(const struct hf_kube_load *load, struct hf_kube_config *ret_config,
			struct hf_error *err)
{
	struct hf_kube_load found = *load;
	const char *env = getenv("KUBECONFIG"), *home = getenv("HOME");
	HF_AUTOFREE char *in_home = NULL;

	if (found.paths != NULL)
		return hf_kube_config_load(&found, ret_config, err);
	found.required = false;
	if (!hf_str_is_empty(env)) {
		found.paths = env;
		return hf_kube_config_load(&found, ret_config, err);
	}
	if (hf_kube_in_cluster(NULL))
		return hf_kube_config_in_cluster(NULL, ret_config, err);
	if (!hf_str_is_empty(home))
		in_home = hf_xasprintf("%s/.kube/config", home);
	if (in_home == NULL || access(in_home, F_OK) != 0)
		return hf_error_set(err, HF_E_NOT_FOUND,
				    "no API server is known: --kubeconfig and KUBECONFIG are not "
				    "set, this process runs in no pod with a service account, and "
				    "there is no '%s'",
				    hf_str_or(in_home, "~/.kube/config"));
	found.paths = in_home;
	return hf_kube_config_load(&found, ret_config, err);
}
