/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Sends patches of the node, of DeviceHealth and of pods.  Each object has a slot with at most one request under way
 * and one patch that waits, the newest.
 * Input: patches.  Output: requests, and calls of `trouble` at each change.
 */
#include "agent/publisher.h"

#include "api/device_health.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_TIMEOUT (10 * HF_SECOND)
/* How long a slot waits after a refusal (missing rights, a missing CRD): the reason may end, but rarely soon. */
#define REFUSED_WAIT (30 * HF_SECOND)

#define WHY_MAX 512

enum kind { KIND_NODE, KIND_DEVICE, KIND_POD };
/* The next request of a slot.  Only DeviceHealth has more than the patch: if the object is missing, the publisher
 * reads the Node and creates the object. */
enum step { STEP_PATCH, STEP_FIND_NODE, STEP_CREATE };

static const char *const kind_names[] = {"node", "devicehealth", "pod"};

struct slot {
	struct hf_publisher *publisher;
	enum kind kind;
	enum step step;
	char *ns, *name, *uid;  /* the object to write; ns and uid are set for pods only */
	struct hf_doc *waiting; /* the patch to send next; NULL: none */
	struct hf_doc *sent;    /* the patch in the request under way; NULL: no request */
	struct hf_call *call;
	struct hf_timer *timer;
	struct hf_backoff backoff;
	hf_time sent_at, begun_at;
	bool failing, written;
	bool there;        /* the object existed in the last answer of the API server */
	bool made;         /* the object was just created, and its status has yet to be found */
	bool urgent;       /* the waiting patch does not wait for the gap */
	char why[WHY_MAX]; /* while it fails */
};

struct hf_publisher {
	struct hf_publisher_options options;
	char *node;
	struct hf_rng rng;
	struct slot *slots[HF_PUBLISH_PODS_MAX + 2]; /* the node, DeviceHealth, then pods */
	size_t len;
	struct hf_family *seconds;
	/* how many urgent writes may still be sent now, at most HF_PUBLISH_URGENT_MAX */
	int urgent_left;
	hf_time urgent_at;
};

static void send_request(struct slot *slot);

/* Whether the request under way is a question: a patch without members, which only reads the object. */
static bool is_question(const struct slot *slot)
{
	return slot->sent != NULL && hf_json_len(hf_doc_json(slot->sent)) == 0;
}

/* The time to wait before the next write of the object may begin; 0 or below: none. */
static hf_time get_gap(const struct slot *slot)
{
	hf_time now = hf_loop_mono(slot->publisher->options.loop);

	if (slot->kind != KIND_DEVICE || slot->sent_at == HF_TIME_NONE || slot->urgent)
		return 0;
	return slot->sent_at + HF_PUBLISH_GAP - now;
}

static void on_write_timer(void *arg)
{
	send_request(arg);
}

static struct slot *add_slot(struct hf_publisher *p, enum kind kind, const char *name)
{
	struct slot *slot = hf_xcalloc(1, sizeof(*slot));

	hf_assert(p->len < HF_ARRAY_LEN(p->slots));
	slot->publisher = p;
	slot->kind = kind;
	slot->name = hf_xstrdup(name);
	slot->backoff = (struct hf_backoff)HF_BACKOFF_INIT(HF_SECOND / 2, 30 * HF_SECOND, 50);
	slot->timer = hf_timer_create(p->options.loop, on_write_timer, slot);
	slot->sent_at = HF_TIME_NONE;
	p->slots[p->len++] = slot;
	return slot;
}

static void free_slot(struct slot *slot)
{
	hf_call_cancel(slot->call);
	hf_timer_destroy(slot->timer);
	hf_doc_unref(slot->waiting);
	hf_doc_unref(slot->sent);
	free(slot->ns);
	free(slot->name);
	free(slot->uid);
	free(slot);
}

static void drop_slot(struct slot *slot)
{
	struct hf_publisher *p = slot->publisher;

	for (size_t i = 2; i < p->len; i++) {
		if (p->slots[i] != slot)
			continue;
		p->slots[i] = p->slots[--p->len];
		break;
	}
	free_slot(slot);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void report_outcome(struct slot *slot, int code, const char *message)
{
	const struct hf_publisher_options *o = &slot->publisher->options;

	if (code == 0 && !slot->failing)
		return;
	slot->failing = code != 0;
	snprintf(slot->why, sizeof(slot->why), "%s: %s", kind_names[slot->kind], message);
	o->trouble(o->arg, kind_names[slot->kind], code, message);
}

/* Whether the API server will refuse the request for long.  A missing Node is no such case, since its kubelet
 * registers it again. */
static bool is_refusal(const struct slot *slot, int code)
{
	if (code == HF_E_NOT_FOUND && (slot->kind == KIND_NODE || slot->step == STEP_FIND_NODE))
		return false;
	return code == HF_E_FORBIDDEN || code == HF_E_UNAUTHORIZED || code == HF_E_NOT_FOUND ||
	       code == HF_E_INVALID || code == HF_E_METHOD || code == HF_E_UNSUPPORTED;
}

/* Copies all members of `from` into `to`. */
static void set_members(struct hf_json *to, const struct hf_json *from)
{
	struct hf_json *value;
	const char *key;

	for (void *it = NULL; (it = hf_json_next(from, it, &key, &value)) != NULL;)
		hf_json_set(to, key, hf_json_copy(value));
}

/* Joins two merge patches: the result has the members of both statuses, and the newer patch's where both have one.
 * Takes over both patches; older may be NULL. */
static struct hf_doc *join_patches(struct hf_doc *older, struct hf_doc *newer)
{
	struct hf_json *root, *status;

	if (older == NULL)
		return newer;
	root = hf_doc_copy_json(newer);
	status = hf_json_copy(hf_json_get(hf_doc_json(older), "status"));
	if (status == NULL)
		status = hf_json_object();
	set_members(status, hf_json_get(root, "status"));
	hf_json_set(root, "status", status);
	hf_doc_unref(older);
	hf_doc_unref(newer);
	return hf_doc_from_json(root);
}

/* Lets a patch that failed wait again.  A newer patch of DeviceHealth may have fewer members, so the two are
 * joined.  For other objects the newer patch replaces the failed one. */
static void add_older(struct slot *slot)
{
	if (slot->waiting == NULL)
		slot->waiting = hf_steal(&slot->sent);
	else if (slot->kind == KIND_DEVICE && slot->sent != NULL && !is_question(slot))
		slot->waiting = join_patches(hf_doc_ref(slot->sent), slot->waiting);
}

static void try_again(struct slot *slot, const struct hf_reply *reply)
{
	hf_time wait = hf_backoff_next(&slot->backoff, &slot->publisher->rng);

	add_older(slot);
	if (is_refusal(slot, reply->code) && wait < REFUSED_WAIT)
		wait = REFUSED_WAIT;
	if (reply->retry_after > wait)
		wait = reply->retry_after < 10 * HF_MINUTE ? reply->retry_after : 10 * HF_MINUTE;
	slot->step = STEP_PATCH;
	slot->made = false;
	hf_timer_arm(slot->timer, wait);
}

/* Whether the patch of a pod is dropped: the pod is gone, is another pod, or cannot be written.  The next
 * heartbeat looks at the pod again. */
static bool is_given_up(const struct slot *slot, int code)
{
	if (slot->kind != KIND_POD)
		return false;
	return code == HF_E_NOT_FOUND || code == HF_E_CONFLICT || code == HF_E_INVALID ||
	       code == HF_E_FORBIDDEN || slot->backoff.failures >= HF_PUBLISH_TRIES;
}

static void finish_write(struct slot *slot)
{
	struct hf_publisher *p = slot->publisher;
	bool asked = is_question(slot);

	if (p->seconds != NULL && !asked)
		hf_family_observe(p->seconds,
				  (double)(hf_loop_mono(p->options.loop) - slot->begun_at) /
					  (double)HF_SECOND,
				  kind_names[slot->kind], NULL);
	report_outcome(slot, 0, "");
	hf_backoff_reset(&slot->backoff);
	slot->sent = hf_doc_unref(slot->sent);
	slot->made = false;
	slot->there |= !asked;
	slot->written |= !asked;
	if (slot->waiting != NULL)
		hf_timer_arm(slot->timer, asked || slot->urgent       ? get_gap(slot)
					  : slot->kind == KIND_DEVICE ? HF_PUBLISH_GAP
								      : 0);
	else if (slot->kind == KIND_POD)
		drop_slot(slot);
}

/* Hands DeviceHealth to the agent; NULL: the API server has no such object. */
static void show_health(struct slot *slot, struct hf_doc *health)
{
	const struct hf_publisher_options *o = &slot->publisher->options;

	if (slot->kind == KIND_DEVICE && o->seen != NULL)
		o->seen(o->arg, health);
}

/* A patch found no DeviceHealth: creates the object.  If the object was just created, its status cannot be
 * written, so it is not created once more. */
static void on_missing(struct slot *slot, const struct hf_reply *reply)
{
	if (slot->made) {
		report_outcome(
			slot, reply->code,
			"the object was created, but its status is not found: the CRD has no status subresource, or the object was deleted again");
		try_again(slot, reply);
		return;
	}
	if (slot->there)
		show_health(slot, NULL);
	slot->there = false;
	slot->step = STEP_FIND_NODE;
	send_request(slot);
}

static void on_patched(void *arg, const struct hf_reply *reply)
{
	struct slot *slot = arg;
	bool none = reply->code == HF_E_NOT_FOUND && is_question(slot);

	slot->call = NULL;
	if (reply->code == 0 || none) {
		if (reply->object != NULL || none)
			show_health(slot, none ? NULL : reply->object);
		finish_write(slot);
	} else if (slot->kind == KIND_DEVICE && reply->code == HF_E_NOT_FOUND) {
		on_missing(slot, reply);
	} else if (is_given_up(slot, reply->code)) {
		if (reply->code != HF_E_NOT_FOUND && reply->code != HF_E_CONFLICT)
			report_outcome(slot, reply->code, reply->message);
		drop_slot(slot);
	} else {
		report_outcome(slot, reply->code, reply->message);
		try_again(slot, reply);
	}
}

static void on_created(void *arg, const struct hf_reply *reply)
{
	struct slot *slot = arg;

	slot->call = NULL;
	if (reply->code == 0 || reply->code == HF_E_EXISTS) {
		slot->step = STEP_PATCH;
		slot->made = true;
		send_request(slot);
		return;
	}
	report_outcome(slot, reply->code, reply->message);
	try_again(slot, reply);
}

static void on_node(void *arg, const struct hf_reply *reply)
{
	struct slot *slot = arg;

	slot->call = NULL;
	if (reply->code != 0 || reply->object == NULL) {
		report_outcome(slot, reply->code != 0 ? reply->code : HF_E_INTERNAL,
			       reply->message);
		try_again(slot, reply);
		return;
	}
	free(slot->uid);
	slot->uid = hf_xstrdup(hf_doc_uid(reply->object));
	slot->step = STEP_CREATE;
	send_request(slot);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void send_patch(struct slot *slot)
{
	struct hf_publisher *p = slot->publisher;
	static const struct hf_resource *const resources[] = {&hf_nodes, &hf_devicehealths,
							      &hf_pods};
	const struct hf_request request = {
		.verb = HF_VERB_PATCH,
		.resource = resources[slot->kind],
		.ns = slot->ns,
		.name = slot->name,
		.subresource = "status",
		.body = slot->sent,
		.patch_type = slot->kind == KIND_DEVICE ? HF_PATCH_MERGE : HF_PATCH_STRATEGIC,
		.field_manager = "holdfast-agent",
		.timeout = REQUEST_TIMEOUT,
	};

	slot->begun_at = hf_loop_mono(p->options.loop);
	slot->call = hf_store_request(p->options.store, &request, on_patched, slot);
}

static void send_find_node(struct slot *slot)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET,
		.resource = &hf_nodes,
		.name = slot->publisher->node,
		.timeout = REQUEST_TIMEOUT,
	};

	slot->call = hf_store_request(slot->publisher->options.store, &request, on_node, slot);
}

static void send_create(struct slot *slot)
{
	HF_AUTO_DOC body =
		hf_doc_from_json(hf_device_health_object(slot->publisher->node, slot->uid));
	const struct hf_request request = {
		.verb = HF_VERB_CREATE,
		.resource = &hf_devicehealths,
		.body = body,
		.field_manager = "holdfast-agent",
		.timeout = REQUEST_TIMEOUT,
	};

	slot->call = hf_store_request(slot->publisher->options.store, &request, on_created, slot);
}

static void send_request(struct slot *slot)
{
	if (slot->call != NULL)
		return;
	if (slot->step == STEP_PATCH && slot->waiting != NULL) {
		hf_doc_unref(slot->sent);
		slot->sent = hf_steal(&slot->waiting);
		slot->urgent = false;
	}
	if (slot->sent == NULL)
		return;
	if (!is_question(slot))
		slot->sent_at = hf_loop_mono(slot->publisher->options.loop);
	if (slot->step == STEP_PATCH)
		send_patch(slot);
	else if (slot->step == STEP_FIND_NODE)
		send_find_node(slot);
	else
		send_create(slot);
}

static void put_patch(struct slot *slot, struct hf_json *patch)
{
	hf_doc_unref(slot->waiting);
	slot->waiting = hf_doc_from_json(patch);
	/* After a failure, the running timer of the backoff starts the next write. */
	if (slot->call != NULL || hf_timer_armed(slot->timer))
		return;
	hf_timer_arm(slot->timer, get_gap(slot));
}

void hf_publisher_node(struct hf_publisher *p, struct hf_json *patch)
{
	put_patch(p->slots[KIND_NODE], patch);
}

void hf_publisher_device(struct hf_publisher *p, struct hf_json *patch)
{
	put_patch(p->slots[KIND_DEVICE], patch);
}

static bool take_urgent(struct hf_publisher *p)
{
	hf_time now = hf_loop_mono(p->options.loop);
	hf_time seconds = (now - p->urgent_at) / HF_SECOND;

	if (seconds >= HF_PUBLISH_URGENT_MAX - p->urgent_left)
		p->urgent_left = HF_PUBLISH_URGENT_MAX;
	else
		p->urgent_left += (int)seconds;
	p->urgent_at += seconds * HF_SECOND;
	if (p->urgent_left == 0)
		return false;
	p->urgent_left--;
	return true;
}

void hf_publisher_urgent(struct hf_publisher *p, struct hf_json *patch)
{
	struct slot *slot = p->slots[KIND_DEVICE];

	slot->waiting = join_patches(slot->waiting, hf_doc_from_json(patch));
	slot->urgent |= take_urgent(p);
	/* After a failure, the timer of the backoff starts the next write, also an urgent one. */
	if (slot->call == NULL && slot->backoff.failures == 0)
		hf_timer_arm(slot->timer, get_gap(slot));
}

void hf_publisher_ask(struct hf_publisher *p)
{
	struct slot *slot = p->slots[KIND_DEVICE];

	if (slot->call == NULL && slot->waiting == NULL && slot->sent == NULL) {
		slot->waiting = hf_doc_from_json(hf_json_object());
		hf_timer_arm(slot->timer, 0);
	}
}

void hf_publisher_pod(struct hf_publisher *p, const char *ns, const char *name, const char *uid,
		      struct hf_json *patch)
{
	struct slot *slot = NULL;

	for (size_t i = 2; i < p->len; i++)
		if (hf_streq(p->slots[i]->uid, uid))
			slot = p->slots[i];
	if (slot == NULL && p->len == HF_ARRAY_LEN(p->slots)) {
		hf_json_unref(patch);
		return;
	}
	if (slot == NULL) {
		slot = add_slot(p, KIND_POD, name);
		slot->ns = hf_xstrdup(ns);
		slot->uid = hf_xstrdup(uid);
	}
	put_patch(slot, patch);
}

/* ---- */

struct hf_publisher *hf_publisher_create(const struct hf_publisher_options *options)
{
	static const struct hf_metric_options seconds = {
		.name = "holdfast_agent_write_seconds",
		.help = "Duration of a successful write to the API server, by object.",
		.type = HF_METRIC_HISTOGRAM,
		.labels = {"object"},
		.buckets = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 5, 10},
	};
	struct hf_publisher *p = hf_xcalloc(1, sizeof(*p));

	p->options = *options;
	p->node = hf_xstrdup(options->node);
	p->options.node = p->node;
	hf_rng_init(&p->rng, options->seed);
	p->urgent_left = HF_PUBLISH_URGENT_MAX;
	p->urgent_at = hf_loop_mono(options->loop);
	if (options->metrics != NULL)
		p->seconds = hf_metrics_family(options->metrics, &seconds);
	(void)add_slot(p, KIND_NODE, p->node);
	(void)add_slot(p, KIND_DEVICE, p->node);
	return p;
}

struct hf_publisher *hf_publisher_destroy(struct hf_publisher *p)
{
	if (p == NULL)
		return NULL;
	while (p->len > 0)
		free_slot(p->slots[--p->len]);
	free(p->node);
	free(p);
	return NULL;
}

bool hf_publisher_is_idle(const struct hf_publisher *p)
{
	for (size_t i = 0; i < p->len; i++)
		if (p->slots[i]->call != NULL || p->slots[i]->waiting != NULL ||
		    p->slots[i]->sent != NULL)
			return false;
	return true;
}

const char *hf_publisher_why(const struct hf_publisher *p)
{
	for (size_t i = KIND_NODE; i <= KIND_DEVICE; i++)
		if (p->slots[i]->failing)
			return p->slots[i]->why;
	return NULL;
}

bool hf_publisher_has_written(const struct hf_publisher *p)
{
	return p->slots[KIND_NODE]->written && p->slots[KIND_DEVICE]->written;
}
