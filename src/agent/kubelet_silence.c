/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Watches the renewal of the kubelet's Lease.
 * Input: the Lease.  Output: a call for each read that finds the Lease unchanged for too long.
 * Invariant: an API server that does not answer proves nothing.
 */
#include "agent/kubelet_silence.h"

#include "api/node.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/loop.h"
#include "store/resource.h"

#include <stdlib.h>

#define LEASE_NS "kube-node-lease"
#define TIMEOUT (5 * HF_SECOND)

struct hf_kubelet_silence {
	struct hf_kubelet_silence_options options;
	char *node;
	bool wanted;
	struct hf_timer *timer;
	struct hf_call *call;
	/* spec.renewTime of the last read; NULL: the Lease was not read since the watch is wanted */
	char *renewal;
	hf_time since; /* when the first read brought that renewTime, on the monotonic clock */
};

static void on_read(void *arg, const struct hf_reply *reply)
{
	struct hf_kubelet_silence *s = arg;
	hf_time now = hf_loop_mono(s->options.loop);
	const char *renewal;

	s->call = NULL;
	hf_timer_arm(s->timer, HF_KUBELET_SILENCE_LOOK_EVERY);
	/* Without an answer the agent does not know whether the kubelet is silent, and could not publish it
	 * either. */
	if (reply->code != 0 || reply->object == NULL)
		return;
	/* A Lease that its kubelet has never renewed counts as unchanged too. */
	renewal = hf_str_or(hf_node_lease_renewal(reply->object), "");
	if (s->renewal == NULL || !hf_streq(s->renewal, renewal)) {
		free(s->renewal);
		s->renewal = hf_xstrdup(renewal);
		s->since = now;
	} else if (now - s->since >= HF_KUBELET_SILENCE_AFTER) {
		s->options.still(s->options.arg);
	}
}

static void on_silence_timer(void *arg)
{
	struct hf_kubelet_silence *s = arg;
	const struct hf_request request = {.verb = HF_VERB_GET,
					   .resource = &hf_leases,
					   .ns = LEASE_NS,
					   .name = s->node,
					   .timeout = TIMEOUT};

	s->call = hf_store_request(s->options.store, &request, on_read, s);
}

struct hf_kubelet_silence *hf_kubelet_silence_create(
	const struct hf_kubelet_silence_options *options)
{
	struct hf_kubelet_silence *s = hf_xcalloc(1, sizeof(*s));

	s->options = *options;
	s->node = hf_xstrdup(options->node);
	s->timer = hf_timer_create(options->loop, on_silence_timer, s);
	return s;
}

struct hf_kubelet_silence *hf_kubelet_silence_destroy(struct hf_kubelet_silence *s)
{
	if (s == NULL)
		return NULL;
	hf_kubelet_silence_want(s, false);
	hf_timer_destroy(s->timer);
	free(s->node);
	free(s);
	return NULL;
}

void hf_kubelet_silence_want(struct hf_kubelet_silence *s, bool wanted)
{
	if (wanted == s->wanted)
		return;
	s->wanted = wanted;
	if (wanted) {
		hf_timer_arm(s->timer, HF_KUBELET_SILENCE_LOOK_EVERY);
		return;
	}
	hf_timer_disarm(s->timer);
	hf_call_cancel(s->call);
	s->call = NULL;
	free(s->renewal);
	s->renewal = NULL;
}
