/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "rollout/rollout.h"

#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"
#include "rollout/rollout_internal.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The controller of DeviceRollouts: its life, its caches, and which pass comes next.
 *
 * Input: DeviceRollouts, Nodes and DeviceHealth objects. Output: passes, each with at most one write. Invariants: one
 * pass runs at a time; Nodes and DeviceHealth objects are cached only while a DeviceRollout is not at an end.
 */

#define PAGE_LIMIT 100
#define KEY_MAX 512
/* Leases, pods and the locks of other tools have no watch here, so a pass looks at them again: after a quarter of the
 * time that the phase lasts already, within these limits. */
#define LOOK_MIN (HF_SECOND / 4)
#define LOOK_MAX (5 * HF_SECOND)
#define LOOK_ENDED (5 * HF_MINUTE)
/* The most writes in a row without a change of a phase or state. More mean that another writer undoes them. */
#define WRITES_MAX 12
#define RETRY_MIN HF_SECOND
#define CONFLICT_MIN (HF_SECOND / 10)
#define RETRY_MAX (30 * HF_SECOND)
/* Passes on the whole list no more pods of a DaemonSet than this. */
#define DRIVERS_A_SECOND 500
/* While a rollout is unfinished, passes are closer than this. */
#define READ_GAP_MAX HF_MINUTE

/* ---- the order of passes ------------------------------------------------------------------------ */

static hf_time read_clock(const struct ro *ro)
{
	return hf_loop_mono(ro->env.loop);
}

static void look_soon(struct ro *ro, hf_time within)
{
	if (ro->stopped ||
	    (hf_timer_armed(ro->timer) && hf_timer_due(ro->timer) <= read_clock(ro) + within))
		return;
	hf_timer_arm(ro->timer, within > 0 ? within : 0);
}

/* When a pass comes next, and before when it does not come, both in monotonic time. */
struct due {
	hf_time at, not_before;
};

/* node "": the pass on the whole. */
static const char *print_key(char key[KEY_MAX], const char *name, const char *node)
{
	snprintf(key, KEY_MAX, "%s%s%s", name, *node != '\0' ? "/" : "", node);
	return key;
}

static void set_due(struct ro *ro, const char *name, const char *node, hf_time at,
		    hf_time not_before)
{
	struct due *due = hf_xcalloc(1, sizeof(*due));
	char key[KEY_MAX];

	*due = (struct due){.at = at > not_before ? at : not_before, .not_before = not_before};
	if (!hf_map_put(ro->due, print_key(key, name, node), due))
		free(due);
}

static void wake_pass(struct ro *ro, const char *name, const char *node)
{
	char key[KEY_MAX];
	struct due *due = hf_map_get(ro->due, print_key(key, name, node));

	/* The pass under way may have read the object before the change. */
	ro->woken |= hf_streq(name, ro->pass.name) && hf_streq(node, ro->pass.node);
	if (due != NULL)
		due->at = due->not_before;
	look_soon(ro, 0);
}

static hf_time due_at(const struct ro *ro, const char *name, const char *node)
{
	char key[KEY_MAX];
	const struct due *due = hf_map_get(ro->due, print_key(key, name, node));

	return due == NULL ? 0 : due->at;
}

struct choice {
	const char *name, *node;
	hf_time at;
};

static void offer_pass(const struct ro *ro, const char *name, const char *node, struct choice *best)
{
	hf_time at = due_at(ro, name, node);

	if (best->name == NULL || at < best->at)
		*best = (struct choice){.name = name, .node = node, .at = at};
}

/* Finds the pass that is due first. The name is NULL if no pass is due at any time. */
static struct choice find_first(const struct ro *ro)
{
	struct choice best = {.at = HF_TIME_NEVER};
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(ro->cache, &it)) != NULL;) {
		const struct ro_object *object = entry->view;

		if (!hf_ro_is_unfinished(object))
			continue;
		offer_pass(ro, entry->name, "", &best);
		for (size_t i = 0; i < object->r.status.nodes.len; i++) {
			const struct hf_rollout_node *node = &object->r.status.nodes.items[i];

			if (hf_ro_needs_pass(node))
				offer_pass(ro, entry->name, node->name, &best);
		}
	}
	return best;
}

static bool can_see(const struct ro *ro)
{
	return ro->nodes != NULL && hf_cache_synced(ro->cache) && hf_cache_synced(ro->nodes) &&
	       hf_cache_synced(ro->health) && ro->env.knows_pods(ro->env.arg);
}

static void on_timer(void *arg)
{
	struct ro *ro = arg;
	struct choice first;

	if (ro->stopped || ro->call != NULL)
		return;
	first = find_first(ro);
	if (first.name == NULL)
		return;
	if (!can_see(ro)) {
		look_soon(ro, HF_SECOND);
		return;
	}
	if (first.at > read_clock(ro)) {
		look_soon(ro, first.at - read_clock(ro));
		return;
	}
	snprintf(ro->pass.name, sizeof(ro->pass.name), "%s", first.name);
	snprintf(ro->pass.node, sizeof(ro->pass.node), "%s", first.node);
	ro->woken = false;
	hf_ro_begin_pass(ro);
}

/* ---- the end of a pass -------------------------------------------------------------------------- */

/* How long the next pass of the same kind waits at least. In a large fleet many nodes end their work in the time in which
 * a pass on the whole lists the pods of the DaemonSet: one pass is enough for all of them. */
static hf_time find_rest(const struct ro *ro)
{
	return (hf_time)(ro->pass.drivers_len / DRIVERS_A_SECOND) * HF_SECOND;
}

static void leave_pass(struct ro *ro, hf_time wait)
{
	hf_time now = read_clock(ro);

	set_due(ro, ro->pass.name, ro->pass.node, hf_time_add(now, wait), now + find_rest(ro));
	hf_ro_drop_reads(ro);
	hf_task_post(ro->reset);
	look_soon(ro, 0);
}

void hf_ro_end_pass(struct ro *ro, hf_time wait)
{
	ro->failures = 0;
	leave_pass(ro, ro->woken ? 0 : wait);
}

/* The message is stored, or cannot be stored either. */
static void take_refusal(void *arg, const struct hf_reply *reply)
{
	struct ro *ro = arg;

	ro->call = NULL;
	ro->env.heard(ro->env.arg, reply);
	if (reply->code == 0)
		hf_cache_put_reply(ro->cache, reply->object);
	leave_pass(ro, ro->wait);
}

/* Ends the pass after a refused request, and writes the refusal into the status. */
static void leave_refused(struct ro *ro, int code, const char *message, hf_time wait)
{
	struct hf_request request;
	HF_AUTO_DOC body = NULL;

	if (!hf_ro_note_refusal(ro, code, message, &request, &body)) {
		leave_pass(ro, wait);
		return;
	}
	ro->wait = wait;
	request.timeout = ro->env.request_timeout;
	ro->call = hf_store_request(ro->env.store, &request, take_refusal, ro);
}

void hf_ro_fail_pass(struct ro *ro, int code, const char *message)
{
	/* A conflict is no problem to report: the next pass reads the object again. */
	bool conflict = code == HF_E_CONFLICT || code == HF_E_EXISTS;
	hf_time wait = hf_backoff_delay(conflict ? CONFLICT_MIN : RETRY_MIN,
					conflict ? RETRY_MIN : RETRY_MAX, ro->failures++);

	if (!conflict)
		ro->env.problem(ro->env.arg, hf_devicerollouts.plural, code, message);
	leave_refused(ro, code, message, wait);
}

/* ---- the write ---------------------------------------------------------------------------------- */

/* A write that changed nothing would repeat without end. */
static bool is_same_version(const struct ro *ro, struct hf_doc *doc)
{
	return doc != NULL && hf_streq(hf_doc_uid(doc), ro->pass.r.uid) &&
	       hf_streq(hf_doc_resource_version(doc), ro->pass.r.resource_version);
}

static bool is_refused_condition(const struct ro *ro, const struct hf_reply *reply)
{
	return reply->code == HF_E_FORBIDDEN &&
	       (ro->doing == HF_ROLLOUT_SET_CONDITION || ro->doing == HF_ROLLOUT_CLEAR_CONDITION);
}

/* A disruption budget may refuse an eviction for a while. */
static void take_refused_eviction(struct ro *ro, const struct hf_reply *reply)
{
	const char *message = hf_arena_printf(ro->pass.arena, "eviction of pod %s: %s",
					      ro->pass.evictee, reply->message);

	hf_ro_tell(ro, ro->pass.node, true, "EvictionRefused", message);
	ro->failures = 0;
	leave_refused(ro, reply->code, message, LOOK_MAX);
}

/* Takes the reply of an eviction. */
static void take_evicted(struct ro *ro, const struct hf_reply *reply)
{
	if (reply->code == HF_E_TOO_MANY) {
		take_refused_eviction(ro, reply);
	} else if (reply->code != 0 && reply->code != HF_E_NOT_FOUND) {
		hf_ro_fail_pass(ro, reply->code, reply->message);
	} else {
		hf_ro_forget_refusal(ro);
		hf_ro_end_pass(ro, LOOK_MIN);
	}
}

static void tell_done(struct ro *ro)
{
	const struct hf_cache_entry *entry = hf_cache_get(ro->cache, NULL, ro->pass.name);
	const struct ro_object *object = entry == NULL ? NULL : entry->view;

	if (ro->done != NULL && object != NULL && object->readable)
		hf_ro_tell_change(ro, object, ro->done);
}

static void take_written(void *arg, const struct hf_reply *reply)
{
	struct ro *ro = arg;

	ro->call = NULL;
	ro->env.heard(ro->env.arg, reply);
	if (ro->doing == HF_ROLLOUT_EVICT) {
		take_evicted(ro, reply);
		return;
	}
	/* A missing kind or namespace is a refusal too: NOT_FOUND. */
	if (ro->doing == HF_ROLLOUT_CREATE_CANARY && reply->code != 0 &&
	    reply->code != HF_E_EXISTS) {
		hf_ro_keep_refusal(ro, reply->message);
		hf_ro_tell(ro, ro->pass.node, true, "CanaryRefused", reply->message);
		hf_ro_fail_pass(ro, reply->code, reply->message);
		return;
	}
	if (is_refused_condition(ro, reply)) {
		ro->env.problem(ro->env.arg, "nodes/status", reply->code, reply->message);
		ro->no_condition = true;
		hf_ro_end_pass(ro, 0);
		return;
	}
	/* What is deleted or released may be gone already. A Lease to take is not: its namespace is missing. */
	if (reply->code != 0 &&
	    (reply->code != HF_E_NOT_FOUND || ro->doing == HF_ROLLOUT_TAKE_LEASE)) {
		hf_ro_fail_pass(ro, reply->code, reply->message);
		return;
	}
	ro->failures = 0;
	hf_ro_forget_refusal(ro);
	if (is_same_version(ro, reply->object)) {
		hf_ro_end_pass(ro, 6 * LOOK_MAX);
		return;
	}
	if (reply->code == 0 && reply->object != NULL &&
	    hf_streq(hf_json_path_str(hf_doc_json(reply->object), "kind", NULL), HF_ROLLOUT_KIND))
		hf_cache_put_reply(ro->cache, reply->object);
	ro->writes = ro->done != NULL ? 0 : ro->writes + 1;
	tell_done(ro);
	hf_ro_end_pass(ro, ro->writes > WRITES_MAX ? LOOK_MAX : 0);
}

static void send_write(struct ro *ro, struct hf_request *request)
{
	request->timeout = ro->env.request_timeout;
	ro->call = hf_store_request(ro->env.store, request, take_written, ro);
}

static hf_time next_look(const struct ro *ro, const struct ro_facts *facts,
			 const struct hf_rollout_node_step *step)
{
	hf_time age = facts->view.now - ro->pass.entry->since, wait = age / 4;

	if (wait > LOOK_MAX)
		wait = LOOK_MAX;
	/* A failed node keeps its cordon. A change of the Node wakes the pass earlier. */
	if (hf_rollout_phase_is_end(facts->view.phase) && !facts->view.ends)
		wait = LOOK_ENDED;
	if (step->wake_at > facts->view.now && step->wake_at - facts->view.now < wait)
		wait = step->wake_at - facts->view.now;
	return wait < LOOK_MIN ? LOOK_MIN : wait;
}

static void decide_node(struct ro *ro)
{
	struct ro_facts *facts = HF_ARENA_NEW(ro->pass.arena, struct ro_facts);
	struct hf_rollout_node_step step;
	struct hf_request request;
	HF_AUTO_DOC body = NULL;

	hf_ro_node_facts(ro, facts);
	hf_rollout_node_step(&facts->view, &step);
	if (hf_ro_act(ro, facts, &step, &request, &body))
		send_write(ro, &request);
	else
		hf_ro_end_pass(ro, next_look(ro, facts, &step));
}

/* Notes since when the cluster has been read without a long gap: an operator that did not run, or an API server that did
 * not answer, says nothing about a driver. */
static void note_read(struct ro *ro)
{
	hf_time now = read_clock(ro);

	if (ro->read_at == 0 || now - ro->read_at > READ_GAP_MAX)
		ro->seen_since = hf_ro_now(ro);
	ro->read_at = now;
}

void hf_ro_decide(struct ro *ro)
{
	struct hf_request request;
	HF_AUTO_DOC body = NULL;
	hf_time wait;

	note_read(ro);
	ro->done = NULL;
	ro->doing = HF_ROLLOUT_DO_NOTHING;
	if (*ro->pass.node != '\0')
		decide_node(ro);
	else if (hf_ro_whole(ro, &request, &body, &wait))
		send_write(ro, &request);
	else
		hf_ro_end_pass(ro, wait);
}

/* ---- the caches --------------------------------------------------------------------------------- */

static bool is_news(const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	return before == NULL || now == NULL ||
	       !hf_streq(before->resource_version, now->resource_version);
}

static const char *phase_of(const struct ro_object *object, const char *node)
{
	const struct hf_rollout_node *entry = hf_ro_find_entry(&object->r.status, node);

	return entry == NULL ? NULL : entry->phase;
}

/* Wakes each node with a new phase. Returns true if work on a node has begun or ended: then the plan may differ. */
static bool wake_changed(struct ro *ro, const char *name, const struct ro_object *was,
			 const struct ro_object *is)
{
	bool any = was == NULL || was->r.status.nodes.len != is->r.status.nodes.len;
	enum hf_rollout_phase phase;

	for (size_t i = 0; i < is->r.status.nodes.len; i++) {
		const struct hf_rollout_node *node = &is->r.status.nodes.items[i];

		if (was != NULL && hf_streq(phase_of(was, node->name), node->phase))
			continue;
		wake_pass(ro, name, node->name);
		any |= !hf_rollout_phase_of(node->phase, &phase) || hf_rollout_phase_is_end(phase);
	}
	return any;
}

/* A message alone changes no step: two leaders that see different facts would wake each other for ever. */
static bool is_step_changed(const struct ro_object *a, const struct ro_object *b)
{
	return !a->readable || !b->readable || a->state != b->state ||
	       a->r.deleting != b->r.deleting || a->r.has_finalizer != b->r.has_finalizer ||
	       a->usable != b->usable || a->spec.cancel != b->spec.cancel ||
	       a->spec.paused != b->spec.paused || a->r.status.wave != b->r.status.wave;
}

static void object_changed(void *arg, enum hf_cache_change change,
			   const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct ro *ro = arg;
	const struct ro_object *was = before == NULL ? NULL : before->view;
	const struct ro_object *is = now == NULL ? NULL : now->view;

	ro->unseen = false;
	hf_task_post(ro->reset);
	if (change == HF_CACHE_SYNCED || !is_news(before, now)) {
		look_soon(ro, 0);
		return;
	}
	if (is != NULL &&
	    (wake_changed(ro, now->name, was, is) || was == NULL || is_step_changed(was, is)))
		wake_pass(ro, now->name, "");
	if (is != NULL && was != NULL && is_step_changed(was, is))
		for (size_t i = 0; i < is->r.status.nodes.len; i++)
			wake_pass(ro, now->name, is->r.status.nodes.items[i].name);
}

/* Wakes the entries of this node, and the rollouts as a whole if `whole`. */
static void wake_node(struct ro *ro, const char *node, bool whole)
{
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(ro->cache, &it)) != NULL;) {
		const struct ro_object *object = entry->view;

		if (!hf_ro_is_unfinished(object))
			continue;
		if (phase_of(object, node) != NULL)
			wake_pass(ro, entry->name, node);
		if (whole)
			wake_pass(ro, entry->name, "");
	}
}

/* Notes since when this process sees the node not Ready, and not attended. */
static void note_node(const struct ro *ro, const struct ro_node *was, struct ro_node *is)
{
	hf_time now = read_clock(ro);

	if (!is->ready)
		is->unready_at = was != NULL && !was->ready ? was->unready_at : now;
	if (!is->attended)
		is->alone_at = was != NULL && !was->attended ? was->alone_at : now;
}

static void node_changed(void *arg, enum hf_cache_change change,
			 const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	const struct ro_node *was = before == NULL ? NULL : before->view;
	struct ro_node *is = now == NULL ? NULL : now->view;

	if (is != NULL)
		note_node(arg, was, is);
	if (change == HF_CACHE_SYNCED || !is_news(before, now)) {
		look_soon(arg, 0);
		return;
	}
	wake_node(arg, now != NULL ? now->name : before->name,
		  was == NULL || is == NULL || was->held != is->held || was->paused != is->paused ||
			  was->ready != is->ready);
}

/* Notes when this process has seen the report, and the unknown GPU, first. */
static void note_times(const struct ro *ro, const struct ro_health *was, struct ro_health *is)
{
	hf_time now = read_clock(ro);
	bool is_new = was == NULL || was->observed_at != is->observed_at;
	bool is_old = was == NULL && !hf_cache_synced(ro->health);

	is->heard_at = is_new ? now : was->heard_at;
	is->seen_at = !is_new ? was->seen_at : is_old ? HF_TIME_NONE : now;
	if (is->unknown != NULL)
		is->unknown_at = was != NULL && was->unknown != NULL ? was->unknown_at : now;
}

static void health_changed(void *arg, enum hf_cache_change change,
			   const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct ro *ro = arg;
	const struct ro_health *was = before == NULL ? NULL : before->view;
	struct ro_health *is = now == NULL ? NULL : now->view;

	if (is != NULL)
		note_times(ro, was, is);
	if (change == HF_CACHE_SYNCED || !is_news(before, now)) {
		look_soon(ro, 0);
		return;
	}
	wake_node(ro, now != NULL ? now->name : before->name,
		  is != NULL && is->sick != NULL && (was == NULL || was->sick == NULL));
}

static void note_reply(void *arg, const struct hf_reply *reply)
{
	const struct ro *ro = arg;

	ro->env.heard(ro->env.arg, reply);
}

static void list_problem(void *arg, int code, const char *message)
{
	struct ro *ro = arg;
	bool told = ro->unseen;

	/* A cluster without this kind has no rollouts; a missing right is told once. */
	if (code == HF_E_NOT_FOUND || code == HF_E_FORBIDDEN || code == HF_E_UNSUPPORTED) {
		ro->unseen = true;
		if (told || code != HF_E_FORBIDDEN)
			return;
	}
	ro->env.problem(ro->env.arg, hf_devicerollouts.plural, code, message);
}

static struct hf_cache *make_cache(struct ro *ro, const struct hf_resource *resource)
{
	bool own = resource == &hf_devicerollouts, nodes = resource == &hf_nodes;
	const struct hf_cache_options options = {
		.loop = ro->env.loop,
		.store = ro->env.store,
		.resource = resource,
		.entries_max = own ? RO_OBJECTS_MAX : 0,
		.page_limit = PAGE_LIMIT,
		.seed = ro->env.seed ^ hf_hash_str("rollout") ^ hf_hash_str(resource->plural),
		.decode = own     ? hf_ro_read_object
			  : nodes ? hf_ro_read_node
				  : hf_ro_read_health,
		.view_free = own     ? hf_ro_free_object
			     : nodes ? hf_ro_free_node
				     : hf_ro_free_health,
		.changed = own     ? object_changed
			   : nodes ? node_changed
				   : health_changed,
		.problem = list_problem,
		.heard = note_reply,
		.arg = ro,
	};

	return hf_cache_create(&options);
}

static bool is_any_unfinished(const struct ro *ro)
{
	const struct hf_cache_entry *entry;

	for (size_t it = 0; (entry = hf_cache_next(ro->cache, &it)) != NULL;)
		if (hf_ro_is_unfinished(entry->view))
			return true;
	return false;
}

/* Watches nodes once a DeviceRollout is unfinished, and stops when all are at an end. */
static void on_reset(void *arg)
{
	struct ro *ro = arg;
	bool wanted = !ro->stopped && is_any_unfinished(ro);

	if (wanted == (ro->nodes != NULL) || ro->call != NULL)
		return;
	if (wanted) {
		ro->nodes = make_cache(ro, &hf_nodes);
		ro->health = make_cache(ro, &hf_devicehealths);
		hf_cache_start(ro->nodes);
		hf_cache_start(ro->health);
		look_soon(ro, 0);
		return;
	}
	hf_map_clear(ro->due);
	ro->nodes = hf_cache_destroy(ro->nodes);
	ro->health = hf_cache_destroy(ro->health);
}

/* ---- life --------------------------------------------------------------------------------------- */

static struct ro *ro_of(struct hf_controller *controller)
{
	return (struct ro *)controller;
}

static void start_rollouts(struct hf_controller *controller)
{
	hf_cache_start(ro_of(controller)->cache);
}

static void wake_rollouts(struct hf_controller *controller)
{
	look_soon(ro_of(controller), 0);
}

static void stop_rollouts(struct hf_controller *controller)
{
	struct ro *ro = ro_of(controller);

	ro->stopped = true;
	hf_timer_disarm(ro->timer);
	if (ro->call != NULL)
		hf_call_cancel(ro->call);
	ro->call = NULL;
}

static void update_metrics(struct hf_controller *controller)
{
	hf_ro_update_metrics(ro_of(controller));
}

static void destroy_rollouts(struct hf_controller *controller)
{
	struct ro *ro = ro_of(controller);

	stop_rollouts(controller);
	hf_ro_drop_reads(ro);
	hf_cache_destroy(ro->cache);
	hf_cache_destroy(ro->nodes);
	hf_cache_destroy(ro->health);
	hf_timer_destroy(ro->timer);
	hf_task_destroy(ro->reset);
	hf_map_destroy(ro->due);
	hf_map_destroy(ro->refusals);
	hf_arena_destroy(ro->pass.arena);
	free(ro);
}

static const struct hf_controller_ops rollout_ops = {
	.start = start_rollouts,
	.wake = wake_rollouts,
	.stop = stop_rollouts,
	.update_metrics = update_metrics,
	.destroy = destroy_rollouts,
};

struct hf_controller *hf_rollout_create(const struct hf_controller_env *env)
{
	struct ro *ro = hf_xcalloc(1, sizeof(*ro));

	ro->controller.ops = &rollout_ops;
	ro->env = *env;
	ro->pass.arena = hf_arena_create(RO_ARENA_MAX);
	ro->due = hf_map_create(RO_OBJECTS_MAX * HF_ROLLOUT_AT_ONCE_MAX, env->seed, free);
	ro->refusals = hf_map_create(RO_OBJECTS_MAX * HF_ROLLOUT_AT_ONCE_MAX, env->seed, free);
	ro->timer = hf_timer_create(env->loop, on_timer, ro);
	ro->reset = hf_task_create(env->loop, on_reset, ro);
	ro->cache = make_cache(ro, &hf_devicerollouts);
	hf_ro_init_metrics(ro);
	return &ro->controller;
}
