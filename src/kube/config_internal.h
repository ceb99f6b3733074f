/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBE_CONFIG_INTERNAL_H
#define HF_KUBE_CONFIG_INTERNAL_H

#include "base/strbuf.h"
#include "json/yaml.h"
#include "kube/kube.h"

/* --- config_files.c: kubeconfig files, merged --- */

struct hf_kubeconfig_file {
	char *path;
	struct hf_yaml *yaml;
	const struct hf_json *root;
};

struct hf_kubeconfig_files {
	struct hf_kubeconfig_file files[HF_KUBECONFIG_FILES_MAX];
	size_t len;
	char *names; /* all paths, for messages about the whole */
};

int hf_kubeconfig_files_read(const struct hf_kube_load *load, struct hf_kubeconfig_files *ret_files,
			     struct hf_error *err) HF_MUST_CHECK;
void hf_kubeconfig_files_release(struct hf_kubeconfig_files *files);

/* An object in one of the files, with what error texts call it. */
struct hf_kubeconfig_entry {
	const struct hf_json *object;
	const char *file;
	char place[160]; /* "users[admin].user" */
};

/* The member of the entry called `name` of a list (clusters, users, contexts): of the first file
 * that has one.  HF_E_INVALID where there is none, or one file has two. */
int hf_kubeconfig_find(const struct hf_kubeconfig_files *files, const char *list,
		       const char *member, const char *name, struct hf_kubeconfig_entry *ret_entry,
		       struct hf_error *err) HF_MUST_CHECK;
/* current-context of the first file that has one; NULL: none has. */
const char *hf_kubeconfig_current_context(const struct hf_kubeconfig_files *files);
/* The object under key as an entry of its own; object NULL where it is absent. */
int hf_kubeconfig_member(const struct hf_kubeconfig_entry *entry, const char *key,
			 struct hf_kubeconfig_entry *ret_member, struct hf_error *err)
	HF_MUST_CHECK;

/* Fields; a value of another type is HF_E_INVALID, an absent one "" or false. */
int hf_kubeconfig_str(const struct hf_kubeconfig_entry *entry, const char *key,
		      const char **ret_text, struct hf_error *err) HF_MUST_CHECK;
int hf_kubeconfig_dup(const struct hf_kubeconfig_entry *entry, const char *key, char **ret_text,
		      struct hf_error *err) HF_MUST_CHECK;
int hf_kubeconfig_bool(const struct hf_kubeconfig_entry *entry, const char *key, bool *ret_value,
		       struct hf_error *err) HF_MUST_CHECK;
/* "kubeconfig 'FILE': PLACE.key: <text>" */
int hf_kubeconfig_refuse(const struct hf_kubeconfig_entry *entry, const char *key, int code,
			 struct hf_error *err, const char *text) HF_MUST_CHECK;
/* A path of the file, made absolute or relative to where this program stands; to be freed. */
char *hf_kubeconfig_path(const struct hf_kubeconfig_entry *entry, const char *file);

/* --- config_exec.c --- */
int hf_kube_exec_read(const struct hf_kubeconfig_entry *user,
		      const struct hf_kubeconfig_entry *cluster,
		      const struct hf_kube_config *config, struct hf_kube_exec **ret_exec,
		      struct hf_error *err) HF_MUST_CHECK;
struct hf_kube_exec *hf_kube_exec_copy(const struct hf_kube_exec *exec); /* NULL is fine */
struct hf_kube_exec *hf_kube_exec_free(struct hf_kube_exec *exec);       /* NULL is fine */

/* --- config_token.c --- */

/* HF_E_INVALID: blanks or control characters stand inside it, which no header could carry.  What
 * stands behind it is not sent either. */
int hf_kube_token_check(const char *token, struct hf_error *err) HF_MUST_CHECK;
/* A file's token without the blanks around it; HF_E_INVALID where there is nothing else, or what is there
 * is no regular file. */
int hf_kube_token_read(const char *path, char **ret_token, struct hf_error *err) HF_MUST_CHECK;

/* --- proxy.c --- */

/* What the environment says of proxies (httpproxy of golang.org/x/net). */
struct hf_kube_proxy_env {
	const char *http, *https, *no_proxy; /* NULL or "": not set */
};
/* The proxy for a server: NULL, or a URL to be freed. */
char *hf_kube_proxy_choose(const char *server, const struct hf_kube_proxy_env *env);
/* As curl is to be told: socks5 lets the proxy look up names, as Go does.  NULL: not one of http,
 * https, socks5, socks5h. */
char *hf_kube_proxy_url(const char *url);
/* Host (without brackets) and port of a URL; false: it has none. */
bool hf_kube_url_host(const char *url, char *ret_host, size_t host_size, char ret_port[8]);
bool hf_kube_host_is_loopback(const char *host);

#endif
