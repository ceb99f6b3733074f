/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The store itself, and the part that calls, watches and log streams share: the list of operations,
 * sending, waiting for credentials, and failures before sending. */
#include "kube/kube_internal.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/config_internal.h"

#include <stdlib.h>
#include <string.h>

/* --- ops --- */

void hf_kube_op_link(struct hf_kube *kube, struct hf_kube_op *op,
		     const struct hf_kube_op_class *kind)
{
	op->kube = kube;
	op->kind = kind;
	op->deadline = HF_TIME_NEVER;
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
	op->waiting = false;
	op->fail_task = hf_task_destroy(op->fail_task);
	op->timer = hf_timer_destroy(op->timer);
	if (op->prev != NULL)
		op->prev->next = op->next;
	else
		kube->ops = op->next;
	if (op->next != NULL)
		op->next->prev = op->prev;
	op->kube = NULL;
}

static void on_fail_task(void *arg)
{
	struct hf_kube_op *op = arg;
	struct hf_error err = op->err;

	op->kind->failed(op, &err);
}

void hf_kube_op_fail(struct hf_kube_op *op)
{
	/* The failure is found before sending; a task reports it, because every outcome is reported
	 * from the loop. */
	op->transfer = NULL;
	op->waiting = false;
	if (op->fail_task == NULL)
		op->fail_task = hf_task_create(op->kube->loop, on_fail_task, op);
	hf_task_post(op->fail_task);
}

void hf_kube_op_send(struct hf_kube_op *op, const struct hf_http_request *request)
{
	struct hf_kube *kube = op->kube;

	op->method = request->method;
	op->sent_at = hf_loop_mono(kube->loop);
	op->credentials = hf_kube_credentials_generation(kube->credentials);
	op->tries++;
	if (hf_http_client_send(kube->client, request, &op->transfer, &op->err) != 0)
		hf_kube_op_fail(op);
}

static void on_timer(void *arg)
{
	struct hf_kube_op *op = arg;

	if (!op->waiting) {
		hf_kube_op_start(op);
		return;
	}
	(void)hf_error_set(
		&op->err, HF_E_UNAVAILABLE,
		"the request was not sent in time: the credential plugin has not answered");
	hf_kube_op_fail(op);
}

static void arm_timer(struct hf_kube_op *op, hf_time after)
{
	if (op->timer == NULL)
		op->timer = hf_timer_create(op->kube->loop, on_timer, op);
	hf_timer_arm(op->timer, after);
}

void hf_kube_op_start(struct hf_kube_op *op)
{
	struct hf_kube *kube = op->kube;

	switch (hf_kube_credentials_check(kube->credentials, &op->err)) {
	case HF_KUBE_READY: op->kind->send(op); break;
	case HF_KUBE_NO_CREDENTIALS: hf_kube_op_fail(op); break;
	case HF_KUBE_WAIT:
		op->waiting = true;
		if (op->deadline != HF_TIME_NEVER)
			arm_timer(op, op->deadline - hf_loop_mono(kube->loop));
		break;
	}
}

void hf_kube_op_start_after(struct hf_kube_op *op, hf_time delay)
{
	arm_timer(op, delay);
}

void hf_kube_wake_ops(struct hf_kube *kube, const struct hf_error *err)
{
	/* No callback runs in this loop: send and fail only start something. */
	for (struct hf_kube_op *op = kube->ops; op != NULL; op = op->next) {
		if (!op->waiting)
			continue;
		op->waiting = false;
		if (op->timer != NULL)
			hf_timer_disarm(op->timer);
		if (err == NULL) {
			op->kind->send(op);
		} else {
			op->err = *err;
			hf_kube_op_fail(op);
		}
	}
}

void hf_kube_op_observe(struct hf_kube_op *op, int status)
{
	struct hf_kube *kube = op->kube;
	const struct hf_kube_observation seen = {
		.method = op->method,
		.host = kube->host,
		.status = status,
		.retry = op->tries - 1,
		.took = hf_loop_mono(kube->loop) - op->sent_at,
	};

	if (kube->options.observe != NULL)
		kube->options.observe(kube->options.observe_arg, &seen);
}

bool hf_kube_op_renew_credentials(struct hf_kube_op *op, const struct hf_http_result *result)
{
	struct hf_kube_credentials *credentials = op->kube->credentials;
	bool refused = result->code == 0 && result->status == 401;
	/* TLS libraries report a rejected certificate in many forms, so every failed connection
	 * counts. */
	bool connected = result->code != HF_E_UNAVAILABLE || result->status != 0;

	if (op->renewed || (!refused && connected) ||
	    !(refused ? hf_kube_credentials_renew_after_401(credentials, op->credentials)
		      : hf_kube_credentials_renew_after_disconnect(credentials, op->credentials)))
		return false;
	op->renewed = true;
	return true;
}

void hf_kube_op_explain(const struct hf_kube_op *op, const struct hf_http_result *result,
			struct hf_error *err)
{
	if (result->code == 0 && result->status == 401)
		hf_kube_credentials_explain(op->kube->credentials, err);
}

/* --- the store --- */

static void kube_destroy(struct hf_store *store)
{
	struct hf_kube *kube = (struct hf_kube *)store;

	/* An abandon unlinks the op and may run a callback, which may cancel other ops. */
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

const struct hf_store_ops hf_kube_ops = {
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
	/* Over loopback, compression costs more time than it saves. */
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
	kube->base.ops = &hf_kube_ops;
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
