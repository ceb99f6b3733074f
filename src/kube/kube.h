/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBE_KUBE_H
#define HF_KUBE_KUBE_H

#include "base/error.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>

HF_BEGIN_DECLS

/*
 * The store interface over HTTPS: an API server, or the face of an embedded plane.
 */

/* Where a server is and who we are; owned texts, "" where not set. */
struct hf_kube_config {
	char *server; /* "https://127.0.0.1:6443" */
	char *ca_pem;
	char *cert_pem, *key_pem;
	char *token;
	char *tls_server_name;
	char *proxy_url;
	char *ns;   /* the context's namespace, "default" where it names none */
	char *path; /* the file it came from, for messages */
	bool insecure;
};

#define HF_KUBECONFIG_BYTES_MAX ((size_t)1 << 20)

/*
 * Read the current context (or the one named) of a kubeconfig file.  Relative paths in it are
 * relative to its folder, as kubectl has it.
 *
 * HF_E_NOT_FOUND: no such file.  HF_E_INVALID: what is wrong, with the field.
 * HF_E_UNSUPPORTED: a way of signing in that is not built (exec plugins, auth providers,
 * passwords).
 */
int hf_kube_config_read(const char *path, const char *context, struct hf_kube_config *ret_config,
			struct hf_error *err) HF_MUST_CHECK;
void hf_kube_config_release(struct hf_kube_config *config);

/* config may be released afterwards.  Nothing is sent before the first request. */
int hf_kube_create(struct hf_loop *loop, const struct hf_kube_config *config,
		   struct hf_store **ret_store, struct hf_error *err) HF_MUST_CHECK;

/* Limits of one response: a page of a list, and one event of a watch. */
#define HF_KUBE_LIST_BYTES_MAX ((size_t)64 << 20)
#define HF_KUBE_EVENT_BYTES_MAX ((size_t)4 << 20) /* an object is at most 1.5 MiB in etcd */

HF_END_DECLS

#endif
