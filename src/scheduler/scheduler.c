/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "scheduler/scheduler.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "scheduler/fit_internal.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * The scheduler. A pass reads all nodes, adds up the requests of the pods on each node, and binds
 * each waiting pod to a node. No state is kept between passes: a pass depends only on the pods and
 * nodes in the store. fit.c decides whether a pod fits on a node.
 */

#define NODES_MAX 10000
#define PENDING_MAX HF_MEMSTORE_OBJECTS_MAX
#define RETRY_AFTER HF_SECOND  /* delay after a failed commit */
#define MESSAGE_BYTES_MAX 1024 /* limit of an Event's message, as in upstream's scheduler */

struct hf_scheduler {
	struct hf_memstore *memstore;
	struct hf_scheduler_options options;
	struct hf_memstore_observer observer;
	struct hf_timer *timer;
};

struct pass {
	struct hf_scheduler *scheduler;
	HF_VEC(struct hf_fit_node) nodes;
	HF_VEC(struct hf_doc *) pending;
	struct hf_map *by_name; /* maps the name of a node to its index in `nodes`, plus 1 */
};

/* --- writes --- */

static void send_request(struct hf_scheduler *s, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	/* Ignore the result: if the pod has changed meanwhile, the store refuses the write, and
	 * the change starts another pass. */
	hf_memstore_apply(s->memstore, request, &result);
}

static void bind_pod(struct hf_scheduler *s, struct hf_doc *pod, const char *node)
{
	struct hf_json *binding = hf_json_object();
	struct hf_json *meta = hf_json_ensure_object(binding, "metadata");
	struct hf_json *target = hf_json_ensure_object(binding, "target");

	hf_json_set_str(binding, "apiVersion", "v1");
	hf_json_set_str(binding, "kind", "Binding");
	hf_json_set_str(meta, "name", hf_doc_name(pod));
	hf_json_set_str(meta, "uid", hf_doc_uid(pod));
	hf_json_set_str(target, "apiVersion", "v1");
	hf_json_set_str(target, "kind", "Node");
	hf_json_set_str(target, "name", node);
	HF_AUTO_DOC body = hf_doc_from_json(binding);
	send_request(s, &(struct hf_request){.verb = HF_VERB_CREATE,
					     .resource = &hf_pods,
					     .ns = hf_doc_namespace(pod),
					     .name = hf_doc_name(pod),
					     .subresource = "binding",
					     .body = body});
}

static struct hf_json *event_about(struct hf_doc *pod, const char *now)
{
	struct hf_json *event = hf_json_object();
	struct hf_json *meta = hf_json_ensure_object(event, "metadata");
	struct hf_json *about = hf_json_ensure_object(event, "involvedObject");
	HF_AUTOFREE char *prefix = hf_xasprintf("%s.", hf_doc_name(pod));

	hf_json_set_str(event, "apiVersion", "v1");
	hf_json_set_str(event, "kind", "Event");
	hf_json_set_str(meta, "generateName", prefix);
	hf_json_set_str(about, "apiVersion", "v1");
	hf_json_set_str(about, "kind", "Pod");
	hf_json_set_str(about, "namespace", hf_doc_namespace(pod));
	hf_json_set_str(about, "name", hf_doc_name(pod));
	hf_json_set_str(about, "uid", hf_doc_uid(pod));
	hf_json_set_str(hf_json_ensure_object(event, "source"), "component", HF_SCHEDULER_NAME);
	hf_json_set_str(event, "reportingComponent", HF_SCHEDULER_NAME);
	hf_json_set_str(event, "reportingInstance", HF_SCHEDULER_NAME);
	hf_json_set_str(event, "firstTimestamp", now);
	hf_json_set_str(event, "lastTimestamp", now);
	hf_json_set_i64(event, "count", 1);
	return event;
}

static void record_event(struct hf_scheduler *s, struct hf_doc *pod, const char *type,
			 const char *reason, const char *message)
{
	char now[HF_TIME_TEXT_MAX];

	hf_time_format(hf_loop_wall(hf_memstore_loop(s->memstore)), now);
	struct hf_json *event = event_about(pod, now);
	hf_json_set_str(event, "type", type);
	hf_json_set_str(event, "reason", reason);
	hf_json_set_str(event, "message", message);
	HF_AUTO_DOC body = hf_doc_from_json(event);
	send_request(s, &(struct hf_request){.verb = HF_VERB_CREATE,
					     .resource = &hf_events,
					     .ns = hf_doc_namespace(pod),
					     .body = body});
}

static const struct hf_json *scheduled_condition(struct hf_doc *pod)
{
	const struct hf_json *conditions =
		hf_json_path(hf_doc_json(pod), "status", "conditions", NULL);

	for (size_t i = 0; i < hf_json_len(conditions); i++) {
		const struct hf_json *c = hf_json_item(conditions, i);
		if (hf_streq(hf_json_path_str(c, "type", NULL), "PodScheduled"))
			return c;
	}
	return NULL;
}

/* Sets the condition PodScheduled and records an Event, unless the condition already has this
 * message. */
static void mark_unschedulable(struct hf_scheduler *s, struct hf_doc *pod, const char *message)
{
	const struct hf_json *old = scheduled_condition(pod);
	char now[HF_TIME_TEXT_MAX];

	if (hf_streq(hf_json_path_str(old, "message", NULL), message))
		return;
	hf_time_format(hf_loop_wall(hf_memstore_loop(s->memstore)), now);
	struct hf_json *patch = hf_json_object();
	struct hf_json *list =
		hf_json_ensure_array(hf_json_ensure_object(patch, "status"), "conditions");
	struct hf_json *c = hf_json_object();
	hf_json_set_str(c, "type", "PodScheduled");
	hf_json_set_str(c, "status", "False");
	hf_json_set(c, "lastProbeTime", hf_json_null());
	hf_json_set_str(c, "lastTransitionTime",
			hf_str_or(hf_json_path_str(old, "lastTransitionTime", NULL), now));
	hf_json_set_str(c, "reason", "Unschedulable");
	hf_json_set_str(c, "message", message);
	hf_json_append(list, c);
	HF_AUTO_DOC body = hf_doc_from_json(patch);
	/* Use a strategic merge patch, which leaves the other conditions unchanged. */
	send_request(s, &(struct hf_request){.verb = HF_VERB_PATCH,
					     .resource = &hf_pods,
					     .ns = hf_doc_namespace(pod),
					     .name = hf_doc_name(pod),
					     .subresource = "status",
					     .body = body,
					     .patch_type = HF_PATCH_STRATEGIC});
	record_event(s, pod, "Warning", "FailedScheduling", message);
}

/* --- a pass --- */

static bool is_terminal(const struct hf_json *pod)
{
	const char *phase = hf_json_path_str(pod, "status", "phase", NULL);

	return hf_streq(phase, "Succeeded") || hf_streq(phase, "Failed");
}

static bool is_waiting(const struct hf_json *pod)
{
	return hf_str_is_empty(hf_json_path_str(pod, "spec", "nodeName", NULL)) &&
	       !hf_fit_other_scheduler(hf_json_get(pod, "spec")) &&
	       hf_json_len(hf_json_path(pod, "spec", "schedulingGates", NULL)) == 0 &&
	       !hf_json_path(pod, "metadata", "deletionTimestamp", NULL) && !is_terminal(pod);
}

static void add_node(void *arg, struct hf_doc *doc)
{
	struct pass *pass = arg;

	if (!HF_VEC_PUSH(&pass->nodes, (struct hf_fit_node){.node = hf_doc_json(doc)}))
		return;
	hf_assert(hf_map_put(pass->by_name, hf_doc_name(doc), (void *)(pass->nodes.len)));
}

static void add_usage(struct hf_fit_node *node, const struct hf_amounts *requests)
{
	for (size_t i = 0; i < requests->n; i++)
		hf_amounts_add(&node->used, requests->items[i].name, requests->items[i].milli);
	node->n_pods++;
}

static void add_pending(void *arg, struct hf_doc *doc)
{
	struct pass *pass = arg;

	if (is_waiting(hf_doc_json(doc)))
		(void)HF_VEC_PUSH(&pass->pending, hf_doc_ref(doc));
}

static void add_bound(void *arg, struct hf_doc *doc)
{
	struct pass *pass = arg;
	const struct hf_json *pod = hf_doc_json(doc);
	const char *name = hf_json_path_str(pod, "spec", "nodeName", NULL);
	size_t index = name && !is_terminal(pod) ? (size_t)hf_map_get(pass->by_name, name) : 0;
	struct hf_amounts requests;

	if (index == 0)
		return;
	hf_fit_requests(pod, &requests);
	add_usage(&pass->nodes.items[index - 1], &requests);
}

struct reason {
	char text[HF_FIT_REASON_MAX];
	size_t n;
};

#define REASONS_MAX 16

static void count_reason(struct reason *reasons, size_t *n, const char *text)
{
	size_t i = 0;

	while (i < *n && !hf_streq(reasons[i].text, text))
		i++;
	if (i == REASONS_MAX)
		return;
	if (i == *n) {
		snprintf(reasons[i].text, sizeof(reasons[i].text), "%s", text);
		reasons[i].n = 0;
		*n += 1;
	}
	reasons[i].n++;
}

static int compare_reasons(const void *a, const void *b)
{
	const struct reason *ra = a, *rb = b;

	/* Sort by the text of the reason alone. kube-scheduler sorts texts that begin with the
	 * number of nodes. */
	return __builtin_strcmp(ra->text, rb->text);
}

static void write_reasons(const struct pass *pass, struct reason *reasons, size_t n,
			  struct hf_strbuf *sb)
{
	if (pass->nodes.len == 0) {
		hf_strbuf_addstr(sb, "no nodes available to schedule pods");
		return;
	}
	qsort(reasons, n, sizeof(*reasons), compare_reasons);
	hf_strbuf_addf(sb, "0/%zu nodes are available: ", pass->nodes.len);
	for (size_t i = 0; i < n; i++)
		hf_strbuf_addf(sb, "%s%zu %s", i ? ", " : "", reasons[i].n, reasons[i].text);
	hf_strbuf_addch(sb, '.');
}

/* Chooses one of the n nodes on which the pod fits: by options.choose, else the node with the
 * fewest pods. */
static size_t choose_node(struct pass *pass, const size_t *fitting, size_t n)
{
	const struct hf_scheduler_options *o = &pass->scheduler->options;
	size_t best = 0;

	if (o->choose) {
		best = o->choose(o->choose_arg, n);
		hf_assert(best < n);
		return fitting[best];
	}
	for (size_t i = 1; i < n; i++)
		if (pass->nodes.items[fitting[i]].n_pods < pass->nodes.items[fitting[best]].n_pods)
			best = i;
	return fitting[best];
}

/* Returns the name of a PersistentVolumeClaim that the pod uses and the store does not have; NULL:
 * the store has all claims of the pod. */
static const char *find_missing_claim(const struct hf_scheduler *s, struct hf_doc *pod)
{
	const struct hf_json *volumes = hf_json_path(hf_doc_json(pod), "spec", "volumes", NULL);

	for (size_t i = 0; i < hf_json_len(volumes); i++) {
		const char *claim = hf_json_path_str(hf_json_item(volumes, i),
						     "persistentVolumeClaim", "claimName", NULL);
		if (claim && !hf_memstore_peek(s->memstore, &hf_persistentvolumeclaims,
					       hf_doc_namespace(pod), claim))
			return claim;
	}
	return NULL;
}

/* Returns false if a claim of the pod is missing. Then the pod's condition PodScheduled names the
 * claim. */
static bool has_claims(const struct pass *pass, struct hf_doc *pod)
{
	struct hf_scheduler *s = pass->scheduler;
	const char *claim = s->options.missing_claims ? NULL : find_missing_claim(s, pod);

	if (!claim)
		return true;
	HF_AUTOFREE char *message =
		hf_xasprintf("0/%zu nodes are available: persistentvolumeclaim \"%s\" not found.",
			     pass->nodes.len, claim);
	mark_unschedulable(s, pod, message);
	return false;
}

static void place_pod(struct pass *pass, struct hf_doc *pod, size_t *fitting)
{
	struct reason reasons[REASONS_MAX];
	size_t n_reasons = 0, n_fitting = 0;
	struct hf_amounts requests;
	char buf[HF_FIT_REASON_MAX];

	if (!has_claims(pass, pod))
		return;
	hf_fit_requests(hf_doc_json(pod), &requests);
	for (size_t i = 0; i < pass->nodes.len; i++) {
		const char *problem =
			hf_fit_problem(hf_doc_json(pod), &requests, &pass->nodes.items[i], buf);
		if (problem)
			count_reason(reasons, &n_reasons, problem);
		else
			fitting[n_fitting++] = i;
	}
	if (n_fitting == 0) {
		struct hf_strbuf sb = HF_STRBUF_INIT(MESSAGE_BYTES_MAX);
		write_reasons(pass, reasons, n_reasons, &sb);
		mark_unschedulable(pass->scheduler, pod, sb.data);
		hf_strbuf_release(&sb);
		return;
	}
	struct hf_fit_node *node = &pass->nodes.items[choose_node(pass, fitting, n_fitting)];
	const char *name = hf_json_path_str(node->node, "metadata", "name", NULL);
	HF_AUTOFREE char *message = hf_xasprintf("Successfully assigned %s/%s to %s",
						 hf_doc_namespace(pod), hf_doc_name(pod), name);
	bind_pod(pass->scheduler, pod, name);
	add_usage(node, &requests);
	record_event(pass->scheduler, pod, "Normal", "Scheduled", message);
}

static void run_pass(void *arg)
{
	struct hf_scheduler *s = arg;
	struct pass pass = {.scheduler = s};

	pass.nodes.len_max = NODES_MAX;
	pass.pending.len_max = PENDING_MAX;
	hf_memstore_each(s->memstore, &hf_pods, NULL, add_pending, &pass);
	if (pass.pending.len > 0) {
		pass.by_name = hf_map_create(NODES_MAX, 0, NULL);
		hf_memstore_each(s->memstore, &hf_nodes, NULL, add_node, &pass);
		hf_memstore_each(s->memstore, &hf_pods, NULL, add_bound, &pass);
		size_t *fitting = hf_xcalloc(pass.nodes.len + 1, sizeof(*fitting));
		for (size_t i = 0; i < pass.pending.len; i++)
			place_pod(&pass, pass.pending.items[i], fitting);
		free(fitting);
		hf_map_destroy(pass.by_name);
	}
	for (size_t i = 0; i < pass.pending.len; i++)
		hf_doc_unref(pass.pending.items[i]);
	HF_VEC_RELEASE(&pass.pending);
	HF_VEC_RELEASE(&pass.nodes);
}

/* --- changes that start a pass --- */

static bool uses_node(struct hf_doc *pod)
{
	const struct hf_json *json = hf_doc_json(pod);

	return !hf_str_is_empty(hf_json_path_str(json, "spec", "nodeName", NULL)) &&
	       !is_terminal(json);
}

static bool pod_matters(const struct hf_memstore_change *c)
{
	if (c->after && is_waiting(hf_doc_json(c->after)))
		return !c->before || !is_waiting(hf_doc_json(c->before)) ||
		       !hf_json_equal(hf_json_get(hf_doc_json(c->before), "spec"),
				      hf_json_get(hf_doc_json(c->after), "spec"));
	return c->before && uses_node(c->before) && !(c->after && uses_node(c->after));
}

/* True if the node is new, or if its spec, labels or allocatable changed. A heartbeat changes none
 * of these. */
static bool node_matters(const struct hf_memstore_change *c)
{
	const struct hf_json *a = hf_doc_json(c->before), *b = hf_doc_json(c->after);

	return b && !(hf_json_equal(hf_json_get(a, "spec"), hf_json_get(b, "spec")) &&
		      hf_json_equal(hf_json_path(a, "metadata", "labels", NULL),
				    hf_json_path(b, "metadata", "labels", NULL)) &&
		      hf_json_equal(hf_json_path(a, "status", "allocatable", NULL),
				    hf_json_path(b, "status", "allocatable", NULL)) &&
		      a);
}

static void on_changed(void *arg, const struct hf_memstore_change *change)
{
	struct hf_scheduler *s = arg;
	bool matters = change->resource == &hf_pods                     ? pod_matters(change)
		       : change->resource == &hf_nodes                  ? node_matters(change)
		       : change->resource == &hf_persistentvolumeclaims ? !change->before
									: false;

	if (matters && !hf_timer_armed(s->timer))
		hf_timer_arm(s->timer, s->options.delay);
}

static void on_reset(void *arg)
{
	struct hf_scheduler *s = arg;

	hf_timer_arm(s->timer, RETRY_AFTER);
}

struct hf_scheduler *hf_scheduler_create(struct hf_memstore *memstore,
					 const struct hf_scheduler_options *options)
{
	struct hf_scheduler *s = hf_xcalloc(1, sizeof(*s));

	s->memstore = memstore;
	if (options)
		s->options = *options;
	s->timer = hf_timer_create(hf_memstore_loop(memstore), run_pass, s);
	s->observer =
		(struct hf_memstore_observer){.changed = on_changed, .reset = on_reset, .arg = s};
	hf_memstore_observe(memstore, &s->observer);
	hf_timer_arm(s->timer, s->options.delay);
	return s;
}

struct hf_scheduler *hf_scheduler_destroy(struct hf_scheduler *s)
{
	if (!s)
		return NULL;
	hf_memstore_unobserve(s->memstore, &s->observer);
	hf_timer_destroy(s->timer);
	free(s);
	return NULL;
}
