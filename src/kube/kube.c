/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The store over HTTPS: its creation from a kubeconfig, its functions, and its end. Calls, watches and
 * log streams have a file each and share op.c. */
#include "kube/kube_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/config_internal.h"

#include <stdlib.h>
#include <string.h>

static void kube_destroy(struct hf_store *store)
{
	struct hf_kube *kube = (struct hf_kube *)store;

	/* Begin at the head of the list in each round: the callback of an abandoned op may have
	 * cancelled other ops. */
	while (kube->ops != NULL)
		kube->ops->kind->abandon(kube->ops);
	kube->credentials = hf_kube_credentials_destroy(kube->credentials);
	kube->client = hf_http_client_destroy(kube->client);
	free(kube->host);
	free(kube);
}

static bool kube_can_stream_lists(const struct hf_store *store)
{
	return !((const struct hf_kube *)store)->no_streams;
}

static const struct hf_store_ops kube_ops = {
	.name = "kube",
	.request = hf_kube_request,
	.cancel = hf_kube_cancel,
	.watch = hf_kube_watch,
	.watch_stop = hf_kube_watch_stop,
	.logs = hf_kube_logs,
	.logs_stop = hf_kube_logs_stop,
	.destroy = kube_destroy,
	.can_stream_lists = kube_can_stream_lists,
};

static const char *none_if_empty(const char *text)
{
	return hf_str_is_empty(text) ? NULL : text;
}

static int fill_options(struct hf_kube *kube, const struct hf_kube_options *options,
			struct hf_error *err)
{
	int rc = 0;

	if (options != NULL)
		kube->options = *options;
	if (kube->options.timeout == 0)
		kube->options.timeout = HF_KUBE_TIMEOUT;
	if (kube->options.seed == 0)
		rc = hf_random_bytes(&kube->options.seed, sizeof(kube->options.seed), err);
	hf_rng_init(&kube->rng, kube->options.seed);
	return rc;
}

static void fill_host(struct hf_kube *kube, const struct hf_kube_config *config)
{
	char host[256] = "", port[8] = "";
	bool known = hf_kube_url_host(config->server, host, sizeof(host), port);
	bool v6 = strchr(host, ':') != NULL;

	kube->host = hf_xasprintf("%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
	/* Ask for no gzip on loopback, where compression costs more time than it saves. */
	kube->gzip = !config->no_gzip && !(known && hf_kube_host_is_loopback(host));
}

int hf_kube_create_with(struct hf_loop *loop, const struct hf_kube_config *config,
			const struct hf_kube_options *options, struct hf_store **ret_store,
			struct hf_error *err)
{
	const struct hf_http_client_spec spec = {
		.base_url = config->server,
		.ca_pem = none_if_empty(config->ca_pem),
		.cert_pem = none_if_empty(config->cert_pem),
		.key_pem = none_if_empty(config->key_pem),
		.tls_server_name = none_if_empty(config->tls_server_name),
		.proxy_url = hf_str_or(config->proxy_url, ""),
		.insecure = config->insecure,
	};
	struct hf_kube *kube = hf_xcalloc(1, sizeof(*kube));
	int rc = fill_options(kube, options, err);

	if (rc == 0)
		rc = hf_http_client_create(loop, &spec, &kube->client, err);
	if (rc != 0) {
		free(kube);
		return hf_error_wrap(err, "kubeconfig '%s'", hf_str_or(config->path, ""));
	}
	kube->base.ops = &kube_ops;
	kube->loop = loop;
	fill_host(kube, config);
	kube->credentials = hf_kube_credentials_create(kube, config);
	*ret_store = &kube->base;
	return 0;
}

int hf_kube_create(struct hf_loop *loop, const struct hf_kube_config *config,
		   struct hf_store **ret_store, struct hf_error *err)
{
	return hf_kube_create_with(loop, config, NULL, ret_store, err);
}
