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

/*
 * The store interface over HTTPS: an API server, or the face of an embedded plane.
 */

/* --- where a server is, and who we are --- */

/* A program that hands out credentials (users[].user.exec of a kubeconfig). */
struct hf_kube_exec {
	char **argv; /* NULL-terminated; argv[0] is a path, or looked for in PATH */
	char **env;  /* "NAME=value" on top of this program's own; NULL-terminated */
	char *api_version;
	char *install_hint; /* what to tell who lacks the program */
	char *info;         /* KUBERNETES_EXEC_INFO */
};

/* Owned texts; NULL or "" where not set. */
struct hf_kube_config {
	char *server; /* "https://127.0.0.1:6443" */
	char *ca_pem;
	char *cert_pem, *key_pem;
	char *token;
	/* Sources of the above, read again as they rotate. */
	char *token_file, *ca_file, *cert_file, *key_file;
	struct hf_kube_exec *exec; /* the credentials' source */
	char *tls_server_name;
	char *proxy_url; /* of the kubeconfig or of the environment; "": none */
	char *ns;        /* the context's namespace, "default" where it names none */
	char *path;      /* the file (or files) it came from, for messages */
	char *warning;   /* what a person should be told, such as that nothing is verified */
	bool insecure;
	bool no_gzip;
};

/* Limits of what is read. */
#define HF_KUBECONFIG_BYTES_MAX ((size_t)1 << 20)
#define HF_KUBECONFIG_FILES_MAX 32
#define HF_KUBE_TOKEN_BYTES_MAX ((size_t)64 << 10) /* a header of this size no server takes */

struct hf_kube_load {
	/* A list of files as in KUBECONFIG ("a:b"), merged as client-go does: the first file
	 * to name a context, cluster or user has all of it, current-context is that of the
	 * first that has one, and files that are not there are passed over. */
	const char *paths;
	bool required; /* paths is one file that must be there (--kubeconfig) */
	/* Names that win over those of the files; NULL: none. */
	const char *context, *cluster, *user;
};

/*
 * Relative paths in a file are relative to its folder.  Errors name the file and
 * the field.
 *
 * HF_E_NOT_FOUND: no such file.  HF_E_INVALID: what is wrong.  HF_E_UNSUPPORTED: a
 * way of signing in that is not built (passwords, auth providers, impersonation,
 * plugins that need a terminal).
 */
int hf_kube_config_load(const struct hf_kube_load *load, struct hf_kube_config *ret_config,
			struct hf_error *err) HF_MUST_CHECK;
/* One file, which must be there; context may be NULL. */
int hf_kube_config_read(const char *path, const char *context, struct hf_kube_config *ret_config,
			struct hf_error *err) HF_MUST_CHECK;

/* What a pod finds of its service account.  dir: NULL for where Kubernetes puts it. */
#define HF_KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
bool hf_kube_in_cluster(const char *dir);
int hf_kube_config_in_cluster(const char *dir, struct hf_kube_config *ret_config,
			      struct hf_error *err) HF_MUST_CHECK;

/* As a controller looks for it: the given file, else KUBECONFIG, else in the cluster, else
 * ~/.kube/config.  load->paths may be NULL. */
int hf_kube_config_find(const struct hf_kube_load *load, struct hf_kube_config *ret_config,
			struct hf_error *err) HF_MUST_CHECK;

void hf_kube_config_release(struct hf_kube_config *config); /* wipes keys and tokens */

/* --- the store --- */

/* One request's outcome, for metrics; texts live for the callback. */
struct hf_kube_observation {
	const char *method; /* "GET" */
	const char *host;   /* "10.0.0.1:443" */
	int status;         /* 0: no answer */
	unsigned retry;     /* 0: the first try, 1: its first repetition, … */
	hf_time took;       /* until the answer's end; of a watch or log until its head */
};
typedef void (*hf_kube_observe_fn)(void *arg, const struct hf_kube_observation *seen);

struct hf_kube_options {
	uint64_t seed;   /* of the jitter; 0: from the kernel */
	hf_time timeout; /* of requests that name none; 0: HF_KUBE_TIMEOUT */
	/* A watch on which neither an event nor a bookmark came for this long is ended as lost;
	 * 0: four minutes where bookmarks were asked for, else half a minute past its timeout. */
	hf_time watch_silence_max;
	hf_kube_observe_fn observe; /* may be NULL; must not call the store */
	void *observe_arg;
};

#define HF_KUBE_TIMEOUT (30 * HF_SECOND) /* tries, waiting and signing in together */
#define HF_KUBE_TRIES_MAX 10u            /* as client-go has it */
/* Limits of one response: a page of a list, and one event of a watch. */
#define HF_KUBE_LIST_BYTES_MAX ((size_t)64 << 20)
#define HF_KUBE_EVENT_BYTES_MAX ((size_t)4 << 20) /* an object is at most 1.5 MiB in etcd */
/* Of a credential plugin. */
#define HF_KUBE_EXEC_TIMEOUT (60 * HF_SECOND)
#define HF_KUBE_EXEC_BYTES_MAX ((size_t)1 << 20)

/* config may be released afterwards; options may be NULL.  Nothing is sent before the first
 * request. */
int hf_kube_create_with(struct hf_loop *loop, const struct hf_kube_config *config,
			const struct hf_kube_options *options, struct hf_store **ret_store,
			struct hf_error *err) HF_MUST_CHECK;
int hf_kube_create(struct hf_loop *loop, const struct hf_kube_config *config,
		   struct hf_store **ret_store, struct hf_error *err) HF_MUST_CHECK;

HF_END_DECLS

#endif
