/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* What calls, watches and log streams share: the list of operations, sending, waiting for
 * credentials, and failures before sending. No function here calls the user of the store. */
#include "kube/kube_internal.h"

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
	/* Report the failure by a task: no function may call the user's callback directly, and
	 * nothing has been sent yet. */
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
	/* The functions `send` and `failed` only start something. They call no callback of the
	 * store's user, which could change this list. */
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
	/* Treat every failed connection as a possibly rejected certificate: TLS libraries report
	 * that in many forms. */
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
