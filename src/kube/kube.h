/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#ifndef HF_KUBE_KUBE_H
#define HF_KUBE_KUBE_H

#include "base/error.h"
#include "loop/loop.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

HF_BEGIN_DECLS

/* The store interface (store/store.h) over HTTPS, for an API server or for the API of an embedded
 * plane. */

/* --- configuration: the server's address and the credentials --- */

/* A credential plugin: a program that prints credentials (users[].user.exec of a kubeconfig). */
struct hf_kube_exec {
	/* the command, NULL-terminated; argv[0] is a path, or a name to search in PATH */
	char **argv;
	char **env; /* "NAME=value" strings added to this program's environment; NULL-terminated */
	char *api_version;
	char *install_hint; /* what the error says when the program is not installed */
	char *info;         /* value of KUBERNETES_EXEC_INFO for the plugin */
};

/* A configuration. It owns all its texts; NULL or "" means not set. */
struct hf_kube_config {
	char *server; /* URL of the server: "https://127.0.0.1:6443" */
	char *ca_pem;
	char *cert_pem, *key_pem;
	char *token;
	/* The files from which ca_pem, cert_pem, key_pem and the token were read; NULL: no file.
	 * The store reads them again, because they are replaced from time to time. */
	char *token_file, *ca_file, *cert_file, *key_file;
	struct hf_kube_exec *exec; /* the plugin that supplies credentials; NULL: none */
	char *tls_server_name;
	/* URL of the proxy, from the kubeconfig or the environment; "": no proxy */
	char *proxy_url;
	char *ns;      /* namespace of the context; "default" if the context has none */
	char *path;    /* path of the kubeconfig file or files, for messages */
	char *warning; /* a warning for the user, for example that no certificate is verified;
	                  * NULL: none */
	bool insecure;
	bool no_gzip;
};

/* Limits of a kubeconfig file, and of the number of files. */
#define HF_KUBECONFIG_BYTES_MAX ((size_t)1 << 20)
#define HF_KUBECONFIG_FILES_MAX 32
/* limit of a token; no server accepts a header of this size */
#define HF_KUBE_TOKEN_BYTES_MAX ((size_t)64 << 10)

struct hf_kube_load {
	/* A list of files in the form of KUBECONFIG ("a:b"), merged as client-go does. The first
	 * file that names a context, cluster or user supplies the whole entry. current-context
	 * comes from the first file that has one. Missing files are skipped. */
	const char *paths;
	bool required; /* paths is a single file and must exist (--kubeconfig) */
	/* Names that override the names in the files; NULL: no override. */
	const char *context, *cluster, *user;
};

/* Loads a configuration. A relative path inside a file starts at the folder of that file. Error
 * texts name the file and the field.
 *
 * HF_E_NOT_FOUND: no file exists. HF_E_INVALID: a value is wrong. HF_E_UNSUPPORTED: the sign-in
 * method is not implemented (passwords, auth providers, impersonation, plugins that need a
 * terminal). */
int hf_kube_config_load(const struct hf_kube_load *load, struct hf_kube_config *ret_config,
			struct hf_error *err) HF_MUST_CHECK;
/* Loads a single, existing file; context may be NULL. */
int hf_kube_config_read(const char *path, const char *context, struct hf_kube_config *ret_config,
			struct hf_error *err) HF_MUST_CHECK;

/* Reads the configuration of a pod from its service account. dir NULL:
 * HF_KUBE_SERVICE_ACCOUNT_DIR. */
#define HF_KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
bool hf_kube_in_cluster(const char *dir);
int hf_kube_config_in_cluster(const char *dir, struct hf_kube_config *ret_config,
			      struct hf_error *err) HF_MUST_CHECK;

/* Finds the configuration as a controller does. The order is: load->paths if not NULL, KUBECONFIG,
 * the service account of the pod, ~/.kube/config. */
int hf_kube_config_find(const struct hf_kube_load *load, struct hf_kube_config *ret_config,
			struct hf_error *err) HF_MUST_CHECK;

/* Frees the texts of a configuration. Keys and tokens are overwritten first. */
void hf_kube_config_release(struct hf_kube_config *config);

/* --- the store --- */

/* The outcome of one HTTP request, for metrics. The texts are valid only during the callback. */
struct hf_kube_observation {
	const char *method; /* HTTP method, "GET" */
	const char *host;   /* host and port of the server, "10.0.0.1:443" */
	int status;         /* HTTP status; 0: no response came */
	unsigned retry;     /* number of earlier tries: 0 for the first try */
	/* time until the end of the response; for a watch or a log, until the end of the response's
	 * head */
	hf_time took;
};
typedef void (*hf_kube_observe_fn)(void *arg, const struct hf_kube_observation *seen);

struct hf_kube_options {
	/* seed for the random part of retry delays; 0: a random seed from the kernel */
	uint64_t seed;
	hf_time timeout; /* timeout of requests without a timeout; 0: HF_KUBE_TIMEOUT */
	/* Longest time without an event or a bookmark before a watch ends with HF_E_TIMEOUT. 0:
	 * four minutes for a watch with bookmarks, else 30 s more than the watch's timeout. */
	hf_time watch_silence_max;
	/* called after each HTTP request, retries included; may be NULL; must not call the store */
	hf_kube_observe_fn observe;
	void *observe_arg;
};

/* default limit of the time for a request with all its tries and delays */
#define HF_KUBE_TIMEOUT (30 * HF_SECOND)
#define HF_KUBE_TRIES_MAX 10u /* limit of the tries of a request, as in client-go */
/* Limit of one response body in bytes, for example of a page of a list. */
#define HF_KUBE_LIST_BYTES_MAX ((size_t)64 << 20)
/* Limit of one event of a watch, and so of an object, in bytes; etcd stores at most 1.5 MiB per
 * object. */
#define HF_KUBE_EVENT_BYTES_MAX ((size_t)4 << 20)
/* Limits of a run of a credential plugin. */
#define HF_KUBE_EXEC_TIMEOUT (60 * HF_SECOND)
#define HF_KUBE_EXEC_BYTES_MAX ((size_t)1 << 20)

/* Creates a store. The caller may release config afterwards; options may be NULL. The store sends
 * nothing before the first request. */
int hf_kube_create_with(struct hf_loop *loop, const struct hf_kube_config *config,
			const struct hf_kube_options *options, struct hf_store **ret_store,
			struct hf_error *err) HF_MUST_CHECK;
int hf_kube_create(struct hf_loop *loop, const struct hf_kube_config *config,
		   struct hf_store **ret_store, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
