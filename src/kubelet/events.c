/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "kubelet/pod_internal.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Writes Events about pods and about the Node. They are for people only: an Event that cannot be
 * written is dropped, and the same event is not repeated.
 */
#define UNDER_WAY_MAX 64 /* limit of requests that have no reply yet; further Events are dropped */

struct event_call {
	struct hf_kubelet_events *events;
	struct hf_call *call;
};

struct hf_kubelet_events {
	struct hf_kubelet *kubelet;
	uint64_t n; /* a counter that makes names unique */
	struct event_call under_way[UNDER_WAY_MAX];
};

struct hf_kubelet_events *hf_kubelet_events_create(struct hf_kubelet *kubelet)
{
	struct hf_kubelet_events *events = hf_xcalloc(1, sizeof(*events));

	events->kubelet = kubelet;
	return events;
}

struct hf_kubelet_events *hf_kubelet_events_destroy(struct hf_kubelet_events *events)
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

static struct event_call *free_slot(struct hf_kubelet_events *events)
{
	for (size_t i = 0; i < UNDER_WAY_MAX; i++)
		if (!events->under_way[i].call)
			return &events->under_way[i];
	return NULL;
}

/* The object that an Event is about. */
struct about {
	const char *kind, *ns, *name, *uid;
};

static struct hf_json *make_event(struct hf_kubelet *k, const struct about *of, const char *type,
				  const char *reason, const char *message)
{
	struct hf_json *event = hf_json_object();
	struct hf_json *meta = hf_json_ensure_object(event, "metadata");
	struct hf_json *about = hf_json_ensure_object(event, "involvedObject");
	struct hf_json *source = hf_json_ensure_object(event, "source");
	hf_time now = hf_loop_wall(k->loop);
	HF_AUTOFREE char *name = hf_xasprintf("%s.%" PRIx64 "%04" PRIx64, of->name, (uint64_t)now,
					      ++k->events->n & 0xffff);
	char at[HF_TIME_TEXT_MAX];

	hf_time_format(now, at);
	hf_json_set_str(event, "apiVersion", "v1");
	hf_json_set_str(event, "kind", "Event");
	hf_json_set_str(meta, "name", name);
	hf_json_set_str(meta, "namespace", of->ns ? of->ns : "default");
	hf_json_set_str(about, "apiVersion", "v1");
	hf_json_set_str(about, "kind", of->kind);
	if (of->ns)
		hf_json_set_str(about, "namespace", of->ns);
	hf_json_set_str(about, "name", of->name);
	hf_json_set_str(about, "uid", of->uid);
	hf_json_set_str(event, "type", type);
	hf_json_set_str(event, "reason", reason);
	hf_json_set_str(event, "message", message);
	hf_json_set_str(source, "component", "kubelet");
	hf_json_set_str(source, "host", k->node_name);
	hf_json_set_str(event, "reportingComponent", "kubelet");
	hf_json_set_str(event, "reportingInstance", k->node_name);
	hf_json_set_str(event, "firstTimestamp", at);
	hf_json_set_str(event, "lastTimestamp", at);
	hf_json_set_i64(event, "count", 1);
	return event;
}

static void send_event(struct hf_kubelet *k, const char *ns, struct hf_json *event)
{
	struct event_call *call = free_slot(k->events);
	struct hf_request request = {.verb = HF_VERB_CREATE,
				     .resource = &hf_events,
				     .ns = ns,
				     .field_manager = "kubelet"};
	HF_AUTO_DOC body = hf_doc_from_json(event);

	if (!call)
		return;
	request.body = body;
	call->events = k->events;
	call->call = hf_store_request(k->store, &request, on_reply, call);
}

void hf_kubelet_event(struct hf_kubelet_pod *pod, const char *type, const char *reason,
		      const char *fmt, ...)
{
	const struct about about = {"Pod", pod->ns, pod->name, pod->uid};
	char message[1024]; /* the API server's limit */
	va_list ap;

	if (!pod->ns[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	send_event(pod->kubelet, pod->ns, make_event(pod->kubelet, &about, type, reason, message));
}

void hf_kubelet_event_node(struct hf_kubelet *kubelet, const char *type, const char *reason,
			   const char *message)
{
	/* Upstream's kubelet uses the Node's name as its UID here, and kubectl describe selects by
	 * it. */
	const struct about about = {"Node", NULL, kubelet->node_name, kubelet->node_name};

	send_event(kubelet, "default", make_event(kubelet, &about, type, reason, message));
}

/* --- notices for the user --- */

void hf_kubelet_notice(struct hf_kubelet *k, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (k->notice)
		k->notice(k->arg, text);
}
