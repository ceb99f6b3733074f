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
	char *names; /* the paths of all files, for error texts about the whole set */
};

int hf_kubeconfig_files_read(const struct hf_kube_load *load, struct hf_kubeconfig_files *ret_files,
			     struct hf_error *err) HF_MUST_CHECK;
void hf_kubeconfig_files_release(struct hf_kubeconfig_files *files);

/* An object inside one of the files, and the words that error texts use for it. */
struct hf_kubeconfig_entry {
	const struct hf_json *object;
	const char *file;
	/* where the object stands in its file, for error texts: "users[admin].user" */
	char place[160];
};

/* Finds the entry called `name` in a list (clusters, users, contexts) and returns its object
 * `member`. The first file with such an entry decides. HF_E_INVALID: no file has it, or one file
 * has two. */
int hf_kubeconfig_find(const struct hf_kubeconfig_files *files, const char *list,
		       const char *member, const char *name, struct hf_kubeconfig_entry *ret_entry,
		       struct hf_error *err) HF_MUST_CHECK;
/* Returns current-context from the first file that sets the field; NULL: no file sets
 * current-context. */
const char *hf_kubeconfig_current_context(const struct hf_kubeconfig_files *files);
/* Makes an entry from a member of another entry: the object under key. If the member is absent,
 * the object of the new entry is NULL. */
int hf_kubeconfig_member(const struct hf_kubeconfig_entry *entry, const char *key,
			 struct hf_kubeconfig_entry *ret_member, struct hf_error *err)
	HF_MUST_CHECK;

/* Read a field of an entry. A value of another type is HF_E_INVALID; an absent field reads as ""
 * or false. */
int hf_kubeconfig_str(const struct hf_kubeconfig_entry *entry, const char *key,
		      const char **ret_text, struct hf_error *err) HF_MUST_CHECK;
int hf_kubeconfig_dup(const struct hf_kubeconfig_entry *entry, const char *key, char **ret_text,
		      struct hf_error *err) HF_MUST_CHECK;
int hf_kubeconfig_bool(const struct hf_kubeconfig_entry *entry, const char *key, bool *ret_value,
		       struct hf_error *err) HF_MUST_CHECK;
/* Sets the error "kubeconfig 'FILE': PLACE.key: TEXT" and returns `code`. */
int hf_kubeconfig_refuse(const struct hf_kubeconfig_entry *entry, const char *key, int code,
			 struct hf_error *err, const char *text) HF_MUST_CHECK;
/* Resolves a path from a kubeconfig: a relative path starts at the folder of its file. The caller
 * frees the result. */
char *hf_kubeconfig_path(const struct hf_kubeconfig_entry *entry, const char *file);

/* --- config_exec.c --- */
int hf_kube_exec_read(const struct hf_kubeconfig_entry *user,
		      const struct hf_kubeconfig_entry *cluster,
		      const struct hf_kube_config *config, struct hf_kube_exec **ret_exec,
		      struct hf_error *err) HF_MUST_CHECK;
struct hf_kube_exec *hf_kube_exec_copy(const struct hf_kube_exec *exec); /* accepts NULL */
/* accepts NULL; returns NULL */
struct hf_kube_exec *hf_kube_exec_free(struct hf_kube_exec *exec);

/* --- config_token.c --- */

/* Checks that a token fits into an HTTP header. HF_E_INVALID: it contains a blank or a control
 * character. Blanks and line ends at its end are ignored. */
int hf_kube_token_check(const char *token, struct hf_error *err) HF_MUST_CHECK;
/* Reads a token from a file and strips the blanks around it. HF_E_INVALID: the file is empty, not a
 * regular file, or its token does not pass hf_kube_token_check. */
int hf_kube_token_read(const char *path, char **ret_token, struct hf_error *err) HF_MUST_CHECK;

/* --- proxy.c --- */

/* The proxy variables of the environment, read as httpproxy of golang.org/x/net reads them. */
struct hf_kube_proxy_env {
	/* values of HTTP_PROXY, HTTPS_PROXY and NO_PROXY; NULL or "": the variable is not set */
	const char *http, *https, *no_proxy;
};
/* Returns the URL of the proxy for a server, which the caller frees; NULL: connect directly. */
char *hf_kube_proxy_choose(const char *server, const struct hf_kube_proxy_env *env);
/* Returns the URL of a proxy as curl needs it: socks5 becomes socks5h, so that the proxy resolves
 * names, as in Go. NULL: the scheme is not http, https, socks5 or socks5h. The caller frees the
 * URL. */
char *hf_kube_proxy_url(const char *url);
/* Reads host (without brackets) and port from a URL. Returns false if the URL has no host. */
bool hf_kube_url_host(const char *url, char *ret_host, size_t host_size, char ret_port[8]);
bool hf_kube_host_is_loopback(const char *host);

#endif
