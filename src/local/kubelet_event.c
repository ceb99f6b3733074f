/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "local/kubelet_internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Events about pods.  They are for people: one that cannot be written is left out, and
 * a pod that has nothing new to say says it once.
 */
#define UNDER_WAY_MAX 64 /* more at once are left out */

struct event_call {
	struct hf_kevents *events;
	struct hf_call *call;
};

struct hf_kevents {
	struct hf_kubelet *kubelet;
	uint64_t n; /* makes names differ */
	struct event_call under_way[UNDER_WAY_MAX];
};

struct hf_kevents *hf_kevents_create(struct hf_kubelet *kubelet)
{
	struct hf_kevents *events = hf_xcalloc(1, sizeof(*events));

	events->kubelet = kubelet;
	return events;
}

struct hf_kevents *hf_kevents_destroy(struct hf_kevents *events)
{
	if (!events)
		return NULL;
	for (size_t i = 0; i < UNDER_WAY_MAX; i++)
		hf_call_cancel(events->under_way[i].call);
	free(events);
	return NULL;
}

static void on_reply(void *arg, const struct hf_reply *reply HF_UNUSED)
{
	struct event_call *call = arg;

	call->call = NULL;
}

static struct event_call *free_slot(struct hf_kevents *events)
{
	for (size_t i = 0; i < UNDER_WAY_MAX; i++)
		if (!events->under_way[i].call)
			return &events->under_way[i];
	return NULL;
}

static struct hf_json *compose(const struct hf_kpod *pod, const char *type, const char *reason,
			       const char *message)
{
	struct hf_kevents *events = pod->kubelet->events;
	struct hf_json *event = hf_json_object();
	struct hf_json *meta = hf_json_ensure_object(event, "metadata");
	struct hf_json *about = hf_json_ensure_object(event, "involvedObject");
	struct hf_json *source = hf_json_ensure_object(event, "source");
	hf_time now = hf_loop_wall(pod->kubelet->loop);
	HF_AUTOFREE char *name = hf_xasprintf("%s.%" PRIx64 "%04" PRIx64, pod->name, (uint64_t)now,
					      ++events->n & 0xffff);
	char at[HF_TIME_TEXT_MAX];

	hf_time_format(now, at);
	hf_json_set_str(event, "apiVersion", "v1");
	hf_json_set_str(event, "kind", "Event");
	hf_json_set_str(meta, "name", name);
	hf_json_set_str(meta, "namespace", pod->ns);
	hf_json_set_str(about, "apiVersion", "v1");
	hf_json_set_str(about, "kind", "Pod");
	hf_json_set_str(about, "namespace", pod->ns);
	hf_json_set_str(about, "name", pod->name);
	hf_json_set_str(about, "uid", pod->uid);
	hf_json_set_str(event, "type", type);
	hf_json_set_str(event, "reason", reason);
	hf_json_set_str(event, "message", message);
	hf_json_set_str(source, "component", "kubelet");
	hf_json_set_str(source, "host", pod->kubelet->node_name);
	hf_json_set_str(event, "reportingComponent", "kubelet");
	hf_json_set_str(event, "reportingInstance", pod->kubelet->node_name);
	hf_json_set_str(event, "firstTimestamp", at);
	hf_json_set_str(event, "lastTimestamp", at);
	hf_json_set_i64(event, "count", 1);
	return event;
}

void hf_kevent(struct hf_kpod *pod, const char *type, const char *reason, const char *fmt, ...)
{
	struct event_call *call = free_slot(pod->kubelet->events);
	char message[1024]; /* as the API server bounds it */
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .resource = &hf_events,
				     .ns = pod->ns,
				     .field_manager = "kubelet"};
	HF_AUTO_DOC body = NULL;
	va_list ap;

	if (!call || !pod->ns[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	body = hf_doc_from_json(compose(pod, type, reason, message));
	request.body = body;
	call->events = pod->kubelet->events;
	call->call = hf_store_request(pod->kubelet->store, &request, on_reply, call);
}
