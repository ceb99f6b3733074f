/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kube/kube_internal.h"

#include "base/mem.h"

#include <stdlib.h>

void hf_kube_op_link(struct hf_kube *kube, struct hf_kube_op *op, enum hf_kube_op_kind kind)
{
	op->kube = kube;
	op->kind = kind;
	op->prev = NULL;
	op->next = kube->ops;
	if (kube->ops != NULL)
		kube->ops->prev = op;
	kube->ops = op;
}

void hf_kube_op_unlink(struct hf_kube_op *op)
{
	struct hf_kube *kube = op->kube;

	hf_assert(kube != NULL);
	if (op->transfer != NULL)
		hf_transfer_cancel(op->transfer);
	op->transfer = NULL;
	op->fail_task = hf_task_destroy(op->fail_task);
	if (op->prev != NULL)
		op->prev->next = op->next;
	else
		kube->ops = op->next;
	if (op->next != NULL)
		op->next->prev = op->prev;
	op->kube = NULL;
}

void hf_kube_op_send(struct hf_kube_op *op, const struct hf_http_request *request,
		     hf_task_fn failed)
{
	if (hf_http_client_send(op->kube->client, request, &op->transfer, &op->err) != 0)
		hf_kube_op_fail(op, failed);
}

void hf_kube_op_fail(struct hf_kube_op *op, hf_task_fn failed)
{
	/* Refused before it was sent; told from the loop, as every other outcome is. */
	op->transfer = NULL;
	op->fail_task = hf_task_create(op->kube->loop, failed, op);
	hf_task_post(op->fail_task);
}

static void kube_destroy(struct hf_store *store)
{
	struct hf_kube *kube = (struct hf_kube *)store;

	/* Each abandon unlinks its op and may run a callback that cancels others. */
	while (kube->ops != NULL) {
		struct hf_kube_op *op = kube->ops;
		switch (op->kind) {
		case HF_KUBE_CALL: hf_kube_call_abandon(op); break;
		case HF_KUBE_WATCH: hf_kube_watch_abandon(op); break;
		case HF_KUBE_LOGS: hf_kube_logs_abandon(op); break;
		}
	}
	kube->client = hf_http_client_destroy(kube->client);
	free(kube);
}

const struct hf_store_ops hf_kube_ops = {
	.name = "kube",
	.request = hf_kube_request,
	.cancel = hf_kube_cancel,
	.watch = hf_kube_watch,
	.watch_stop = hf_kube_watch_stop,
	.logs = hf_kube_logs,
	.logs_stop = hf_kube_logs_stop,
	.destroy = kube_destroy,
};

static const char *none_if_empty(const char *text)
{
	return text != NULL && text[0] != '\0' ? text : NULL;
}

int hf_kube_create(struct hf_loop *loop, const struct hf_kube_config *config,
		   struct hf_store **ret_store, struct hf_error *err)
{
	struct hf_http_client_spec spec = {
		.base_url = config->server,
		.ca_pem = none_if_empty(config->ca_pem),
		.cert_pem = none_if_empty(config->cert_pem),
		.key_pem = none_if_empty(config->key_pem),
		.tls_server_name = none_if_empty(config->tls_server_name),
		.proxy_url = none_if_empty(config->proxy_url),
		.insecure = config->insecure,
	};
	struct hf_kube *kube;
	struct hf_http_client *client;
	int rc = hf_http_client_create(loop, &spec, &client, err);

	if (rc != 0)
		return hf_error_wrap(err, "kubeconfig '%s'", config->path);
	if (none_if_empty(config->token) != NULL)
		hf_http_client_set_bearer(client, config->token);
	kube = hf_xcalloc(1, sizeof(*kube));
	kube->base.ops = &hf_kube_ops;
	kube->loop = loop;
	kube->client = client;
	*ret_store = &kube->base;
	return 0;
}
