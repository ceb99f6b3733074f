/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "operator/remedy_internal.h"

#include "base/mem.h"
#include "base/str.h"
#include "json/patch.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Quarantine and release.  The plan that began it was made from what watches brought, which may be
 * old.  So first all is read anew: the policy, the nodes that budgets are counted over, and what
 * the agents say of those that are meant.  It is decided once more; what is left is written into
 * the policy's status, guarded by its version, and only then onto the Nodes, each guarded by its
 * own.  Whoever dies in between has spent a part of the budget and done nothing.
 */

#define PAGE_LIMIT 100
/* What was done is to be told, and what could not be is to be seen anew. */
#define AGAIN HF_SECOND
#define SENT_AGAIN (5 * HF_MINUTE)
#define RETRY_MIN HF_SECOND
#define RETRY_MAX (30 * HF_SECOND)

static void step_on(struct hf_remedy *remedy);
static void written(struct hf_remedy *remedy, const struct hf_reply *reply);

/* --- ends ---------------------------------------------------------------------------------- */

static void end(struct hf_remedy *remedy, bool good)
{
	hf_time wait = RETRY_MIN;

	remedy->step = REMEDY_IDLE;
	free(remedy->token);
	remedy->token = NULL;
	hf_map_clear(remedy->looked);
	if (good) {
		remedy->failures = 0;
		hf_remedy_soon(remedy, AGAIN);
		return;
	}
	for (unsigned i = 0; i < remedy->failures && wait < RETRY_MAX; i++)
		wait *= 2;
	remedy->failures++;
	/* Whatever changes meanwhile, our own status for one. */
	remedy->rests_until =
		hf_loop_mono(remedy->op->loop) + (wait < RETRY_MAX ? wait : RETRY_MAX);
	hf_remedy_soon(remedy, 0);
}

static void fail(struct hf_remedy *remedy, const struct hf_reply *reply)
{
	struct remedy_policy *policy = hf_remedy_policy(remedy, remedy->policy);

	if (policy != NULL)
		policy->sent = hf_json_unref(policy->sent);
	/* Somebody else has written: it is looked at again, and that is all. */
	if (reply->code != HF_E_CONFLICT)
		hf_operator_problem(remedy->op, hf_healthpolicies.plural, reply->code,
				    reply->message);
	end(remedy, false);
}

/* The policy, where it is there still and wants what it wanted; else the round has ended. */
static struct remedy_policy *policy_of(struct hf_remedy *remedy, struct hf_doc **ret_doc)
{
	struct remedy_policy *policy = hf_remedy_policy(remedy, remedy->policy);
	const struct hf_cache_entry *entry =
		hf_cache_get(remedy->policies_cache, NULL, remedy->policy);

	if (policy == NULL || entry == NULL || remedy->nodes == NULL) {
		end(remedy, true);
		return NULL;
	}
	*ret_doc = entry->doc;
	return policy;
}

/* --- the live look ------------------------------------------------------------------------- */

static void on_reply(void *arg, const struct hf_reply *reply);

static void send(struct hf_remedy *remedy, struct hf_request *request, enum remedy_step step)
{
	request->timeout = remedy->op->options.request_timeout;
	remedy->step = step;
	remedy->call = hf_store_request(remedy->op->store, request, on_reply, remedy);
}

static void look_at_policy(struct hf_remedy *remedy)
{
	struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_healthpolicies, .name = remedy->policy};

	send(remedy, &request, REMEDY_LOOK_POLICY);
}

static void look_at_nodes(struct hf_remedy *remedy)
{
	struct hf_request request = {.verb = HF_VERB_LIST,
				     .resource = &hf_nodes,
				     .limit = PAGE_LIMIT,
				     .continue_token = remedy->token};

	send(remedy, &request, REMEDY_LOOK_NODES);
}

static void take_nodes(struct hf_remedy *remedy, const struct hf_reply *reply)
{
	for (size_t i = 0; i < reply->n_items; i++) {
		struct hf_doc *doc = reply->items[i];
		char *uid = hf_xstrdup(hf_doc_uid(doc));

		hf_cache_put_live(remedy->nodes, doc);
		/* One more than fit has not been looked at, and is not acted on. */
		if (!hf_map_put(remedy->looked, hf_doc_name(doc), uid))
			free(uid);
	}
	free(remedy->token);
	remedy->token =
		hf_str_is_empty(reply->continue_token) ? NULL : hf_xstrdup(reply->continue_token);
}

static void look_at_health(struct hf_remedy *remedy)
{
	struct hf_request request = {.verb = HF_VERB_GET,
				     .resource = &hf_devicehealths,
				     .name = remedy->acts[remedy->act].node};

	send(remedy, &request, REMEDY_LOOK_HEALTH);
}

static bool any_quarantine(const struct hf_remedy *remedy)
{
	for (size_t i = 0; i < remedy->n_acts; i++)
		if (!remedy->acts[i].release)
			return true;
	return false;
}

/* --- decided once more --------------------------------------------------------------------- */

static void set_act(struct remedy_act *act, const struct remedy_seen *seen, size_t i)
{
	const struct hf_health_node *node = &seen->nodes[i];

	*act = (struct remedy_act){.release =
					   seen->plan.decisions[i].doing == HF_HEALTH_DO_RELEASE};
	snprintf(act->node, sizeof(act->node), "%s", node->name);
	snprintf(act->uid, sizeof(act->uid), "%s", seen->items[i].uid);
	snprintf(act->cls, sizeof(act->cls), "%s", hf_health_class_name(node->cls));
	snprintf(act->job, sizeof(act->job), "%s", node->job);
	act->by_pods = node->by_pods;
	act->counted_at = hf_remedy_counted_at(seen, i);
}

static bool is_act(const struct hf_health_decision *d)
{
	return d->answer == HF_HEALTH_GO &&
	       (d->doing == HF_HEALTH_DO_QUARANTINE || d->doing == HF_HEALTH_DO_RELEASE);
}

static bool was_looked_at(const struct hf_remedy *remedy, const struct remedy_act *act)
{
	for (size_t i = 0; i < remedy->n_acts; i++) {
		const struct remedy_act *old = &remedy->acts[i];

		if (hf_streq(old->node, act->node))
			return old->looked && hf_streq(old->uid, act->uid) &&
			       old->release == act->release &&
			       (act->release ||
				hf_streq(hf_map_get(remedy->looked, act->node), act->uid));
	}
	return false;
}

/* What the plan wants of what was looked at. */
static size_t confirm(const struct hf_remedy *remedy, const struct remedy_seen *seen,
		      struct remedy_act acts[HF_REMEDY_ACTS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < seen->plan.len && n < HF_REMEDY_ACTS_MAX; i++) {
		if (!is_act(&seen->plan.decisions[i]))
			continue;
		set_act(&acts[n], seen, i);
		n += was_looked_at(remedy, &acts[n]);
	}
	return n;
}

static void note_begun(struct remedy_seen *seen, const struct remedy_act *act)
{
	struct hf_health_policy_memory *memory = &seen->memory;

	for (size_t i = 0; i < memory->recent.len; i++) {
		struct hf_policy_recent *r = &memory->recent.items[i];

		if (r->done || !hf_streq(r->node, act->node))
			continue;
		r->at = seen->now;
		return;
	}
	/* There is room for one of each node. */
	memory->recent.items[memory->recent.len++] = (struct hf_policy_recent){
		.node = act->node, .job = act->job, .at = seen->now, .off = HF_TIME_NONE};
}

static struct hf_doc *status_patch(const struct remedy_seen *seen, struct hf_json *status)
{
	struct hf_json *patch = hf_json_object();

	hf_json_set_str(hf_json_ensure_object(patch, "metadata"), "resourceVersion",
			hf_doc_resource_version(seen->doc));
	hf_json_set(patch, "status", status);
	return hf_doc_from_json(patch);
}

static struct hf_json *status_of(struct hf_remedy *remedy, const struct remedy_seen *seen)
{
	struct hf_health_policy_status status;

	hf_remedy_status(remedy, seen, remedy->arena, &status);
	return hf_health_policy_status_json(&status, hf_json_get(hf_doc_json(seen->doc), "status"),
					    seen->now);
}

static void write_status(struct hf_remedy *remedy, const struct remedy_seen *seen,
			 struct hf_json *status, enum remedy_step step)
{
	HF_AUTO_DOC patch = status_patch(seen, status);
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_healthpolicies,
				     .name = seen->policy->name,
				     .subresource = "status",
				     .patch_type = HF_PATCH_MERGE,
				     .body = patch};

	send(remedy, &request, step);
}

static void decide_again(struct hf_remedy *remedy)
{
	struct remedy_act acts[HF_REMEDY_ACTS_MAX];
	struct remedy_policy *policy;
	struct remedy_seen seen;
	struct hf_doc *doc;
	size_t n;

	policy = policy_of(remedy, &doc);
	if (policy == NULL)
		return;
	hf_arena_reset(remedy->arena);
	hf_remedy_see(remedy, policy, doc, remedy->arena, &seen);
	n = seen.memory_moved ? 0 : confirm(remedy, &seen, acts);
	memcpy(remedy->acts, acts, n * sizeof(acts[0]));
	remedy->n_acts = n;
	remedy->act = 0;
	remedy->began = seen.now;
	if (n == 0) {
		end(remedy, true);
	} else if (any_quarantine(remedy)) {
		for (size_t i = 0; i < n; i++)
			if (!acts[i].release && acts[i].counted_at == HF_TIME_NONE)
				note_begun(&seen, &remedy->acts[i]);
		/* The plan has not wanted more than there is room for. */
		hf_assert(seen.memory.recent.len <= HF_HEALTH_POLICY_RECENT_MAX);
		write_status(remedy, &seen, status_of(remedy, &seen), REMEDY_RECORD);
	} else {
		step_on(remedy);
	}
}

/* --- the Nodes ----------------------------------------------------------------------------- */

static void read_node(struct hf_remedy *remedy)
{
	struct hf_request request = {
		.verb = HF_VERB_GET, .resource = &hf_nodes, .name = remedy->acts[remedy->act].node};

	send(remedy, &request, REMEDY_READ_NODE);
}

/* Nobody has forbidden to write to it. */
static bool is_free(const struct remedy_policy *policy, const struct remedy_node *node)
{
	return !node->marks.paused && !policy->paused && !policy->spec.paused &&
	       !hf_streq(policy->spec.mode, "observe");
}

/* It tells when the taint was taken off, and of no such time while that is there. */
static bool is_to_note(const struct remedy_node *node)
{
	return node->marked && (node->tainted ? node->mark.off != HF_TIME_NONE
					      : node->mark.off == HF_TIME_NONE ||
							hf_remedy_off(node) > node->mark.off);
}

/* A class that nobody knows is. */
static bool is_milder(const char *name, enum hf_health_class than)
{
	enum hf_health_class cls;

	return than >= HF_HEALTH_SOFTWARE && (!hf_health_class_of(name, &cls) || cls < than);
}

static bool may_be_graver(const struct remedy_node *node, const char *name)
{
	enum hf_health_class cls;

	return node->marked && node->tainted && hf_health_class_of(name, &cls) &&
	       is_milder(node->mark.cls, cls);
}

/* As it is at this moment, may it be done? */
static bool may_write(struct hf_remedy *remedy, const struct remedy_policy *policy,
		      const struct remedy_act *act)
{
	const struct hf_cache_entry *entry = hf_cache_get(remedy->nodes, NULL, act->node);
	const struct hf_cache_entry *said = hf_cache_get(remedy->health, NULL, act->node);
	const struct remedy_node *node = entry == NULL ? NULL : entry->view;
	const struct remedy_health *health = said == NULL ? NULL : said->view;

	if (node == NULL || !hf_streq(entry->uid, act->uid) || !is_free(policy, node))
		return false;
	if (act->note)
		return is_to_note(node);
	if (act->graver)
		return may_be_graver(node, act->cls);
	if (health == NULL)
		return false;
	if (!hf_streq(node->marks.boot_id, health->boot_id) || node->marks.boot_id == NULL)
		return false;
	return act->release ? node->marked && node->tainted : !node->tainted;
}

static struct hf_doc *note_patch(const struct hf_remedy *remedy, const struct remedy_act *act,
				 struct hf_doc *doc)
{
	const struct hf_cache_entry *entry = hf_cache_get(remedy->nodes, NULL, act->node);
	const struct remedy_node *node = entry->view;
	struct hf_quarantine_mark mark = node->mark;

	mark.off = hf_remedy_off(node);
	if (act->off > mark.off && !node->tainted)
		mark.off = act->off;
	/* It was while nobody watched, and is found now. */
	if (mark.off == HF_TIME_NONE && !node->tainted)
		mark.off = hf_operator_now(remedy->op);
	return hf_node_mark_patch(doc, &mark);
}

static struct hf_doc *act_patch(const struct hf_remedy *remedy, const struct remedy_policy *policy,
				const struct remedy_act *act, struct hf_doc *doc)
{
	const struct hf_quarantine_mark mark = {
		.policy = policy->name,
		.cls = act->cls,
		.at = act->counted_at != HF_TIME_NONE ? act->counted_at : remedy->began,
		.epoch = policy->status.memory.breaker_epoch,
		.off = HF_TIME_NONE};

	return hf_node_quarantine_patch(doc, act->release ? NULL : &mark,
					hf_operator_now(remedy->op));
}

/* The same quarantine, of another class. */
static struct hf_doc *graver_patch(const struct hf_remedy *remedy, const struct remedy_act *act,
				   struct hf_doc *doc)
{
	const struct hf_cache_entry *entry = hf_cache_get(remedy->nodes, NULL, act->node);
	struct hf_quarantine_mark mark = ((const struct remedy_node *)entry->view)->mark;

	mark.cls = act->cls;
	return hf_node_quarantine_patch(doc, &mark, hf_operator_now(remedy->op));
}

static struct hf_doc *patch_of(const struct hf_remedy *remedy, const struct remedy_policy *policy,
			       const struct remedy_act *act, struct hf_doc *doc)
{
	if (act->note)
		return note_patch(remedy, act, doc);
	return act->graver ? graver_patch(remedy, act, doc) : act_patch(remedy, policy, act, doc);
}

static void write_node(struct hf_remedy *remedy, struct hf_doc *doc)
{
	const struct remedy_act *act = &remedy->acts[remedy->act];
	struct remedy_policy *policy;
	struct hf_doc *stored;
	HF_AUTO_DOC patch = NULL;

	policy = policy_of(remedy, &stored);
	if (policy == NULL)
		return;
	if (!may_write(remedy, policy, act)) {
		remedy->act++;
		step_on(remedy);
		return;
	}
	patch = patch_of(remedy, policy, act, doc);
	if (patch == NULL) {
		written(remedy, &(struct hf_reply){.code = HF_E_BAD_REQUEST,
						   .message = "a Node is more than can be read"});
		return;
	}
	struct hf_request request = {.verb = HF_VERB_PATCH,
				     .resource = &hf_nodes,
				     .name = act->node,
				     .patch_type = HF_PATCH_MERGE,
				     .body = patch};

	send(remedy, &request, REMEDY_WRITE_NODE);
}

bool hf_remedy_is_servers(int code)
{
	return code == HF_E_UNAVAILABLE || code == HF_E_TIMEOUT || code == HF_E_TOO_MANY ||
	       code == HF_E_UNAUTHORIZED;
}

/* This one is left alone for a while, and the others are served. */
static void not_written(struct hf_remedy *remedy, const struct remedy_act *act,
			const struct hf_reply *reply)
{
	if (reply->code == HF_E_CONFLICT) {
		remedy->spoilt = true;
		step_on(remedy);
		return;
	}
	hf_remedy_refuse(remedy, act->uid, reply->retry_after, true);
	if (hf_remedy_is_servers(reply->code)) {
		fail(remedy, reply);
		return;
	}
	hf_operator_problem(remedy->op, hf_healthpolicies.plural, reply->code, reply->message);
	step_on(remedy);
}

/* A tool may put back what was there before: then it is written ever more seldom. */
static char *graver_key(const char *node)
{
	return hf_xasprintf("graver/%s", node);
}

static void tell_act(struct hf_remedy *remedy, const struct remedy_act *act)
{
	char message[512];

	if (act->release)
		snprintf(message, sizeof(message),
			 "%s: taint " HF_QUARANTINE_TAINT " is taken off (policy %s)",
			 act->by_pods ? "what is left is mended by a pod of its driver or plugin, "
					"which the taint would keep away"
				      : "its faults have ended",
			 remedy->policy);
	else
		snprintf(message, sizeof(message),
			 "%s: taint " HF_QUARANTINE_TAINT ":NoSchedule %s (policy %s)", act->cls,
			 act->graver ? "says so now" : "is put on", remedy->policy);
	hf_remedy_note_node(remedy, act->node, !act->release,
			    act->release ? "Released" : "Quarantined", message);
}

static void written(struct hf_remedy *remedy, const struct hf_reply *reply)
{
	const struct remedy_act *act = &remedy->acts[remedy->act];
	const char *what = act->release ? "release" : "quarantine";

	if (!act->note && !act->graver)
		hf_remedy_count(remedy, what, reply->code == 0 ? "done" : "failed");
	if (reply->code != 0) {
		remedy->act++;
		not_written(remedy, act, reply);
		return;
	}
	hf_map_remove(remedy->refusals, act->uid);
	hf_cache_put_reply(remedy->nodes, reply->object);
	remedy->act++;
	if (act->release)
		hf_remedy_forget_late(remedy, act->node);
	if (act->graver) {
		HF_AUTOFREE char *key = graver_key(act->node);

		hf_remedy_refuse(remedy, key, 0, true);
	}
	if (!act->note)
		tell_act(remedy, act);
	step_on(remedy);
}

/* --- steps --------------------------------------------------------------------------------- */

/* The next Node, or the end. */
static void step_on(struct hf_remedy *remedy)
{
	if (remedy->act < remedy->n_acts)
		read_node(remedy);
	else
		end(remedy, !remedy->spoilt);
}

static void health_read(struct hf_remedy *remedy, const struct hf_reply *reply)
{
	struct remedy_act *act = &remedy->acts[remedy->act++];

	if (reply->code == 0) {
		act->looked = true;
		hf_cache_put_live(remedy->health, reply->object);
	}
	if (remedy->act < remedy->n_acts)
		look_at_health(remedy);
	else
		decide_again(remedy);
}

static void node_read(struct hf_remedy *remedy, const struct hf_reply *reply)
{
	HF_AUTO_DOC doc = hf_doc_ref(reply->object);

	if (reply->code == HF_E_NOT_FOUND) {
		remedy->act++;
		step_on(remedy);
		return;
	}
	hf_cache_put_live(remedy->nodes, doc);
	write_node(remedy, doc);
}

static void status_written(struct hf_remedy *remedy, const struct hf_reply *reply)
{
	hf_cache_put_reply(remedy->policies_cache, reply->object);
	if (remedy->step == REMEDY_RECORD)
		step_on(remedy);
	else
		end(remedy, true);
}

static void take(struct hf_remedy *remedy, const struct hf_reply *reply)
{
	switch (remedy->step) {
	case REMEDY_LOOK_POLICY:
		hf_cache_put_live(remedy->policies_cache, reply->object);
		if (any_quarantine(remedy))
			look_at_nodes(remedy);
		else
			look_at_health(remedy);
		break;
	case REMEDY_LOOK_NODES:
		take_nodes(remedy, reply);
		if (remedy->token != NULL)
			look_at_nodes(remedy);
		else
			look_at_health(remedy);
		break;
	case REMEDY_LOOK_HEALTH: health_read(remedy, reply); break;
	case REMEDY_READ_NODE: node_read(remedy, reply); break;
	case REMEDY_WRITE_NODE: written(remedy, reply); break;
	case REMEDY_RECORD:
	case REMEDY_STATUS: status_written(remedy, reply); break;
	case REMEDY_IDLE: hf_assert(false);
	}
}

/* What is not there has gone meanwhile; whether a Node was written is told either way. */
static bool may_fail(const struct hf_remedy *remedy, int code)
{
	return remedy->step == REMEDY_WRITE_NODE ||
	       (code == HF_E_NOT_FOUND &&
		(remedy->step == REMEDY_LOOK_HEALTH || remedy->step == REMEDY_READ_NODE));
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_remedy *remedy = arg;

	remedy->call = NULL;
	hf_operator_heard(remedy->op, reply);
	if (remedy->nodes == NULL)
		end(remedy, true);
	else if (reply->code != 0 && !may_fail(remedy, reply->code))
		fail(remedy, reply);
	else
		take(remedy, reply);
}

/* --- beginning ----------------------------------------------------------------------------- */

/* Who tolerates our taint for what is slow would come to what has died since.  It never says less than it did: a
 * fault that comes and goes would be written each time. */
static bool is_graver(const struct remedy_seen *seen, size_t i)
{
	const struct remedy_health *health = seen->items[i].health;
	const struct hf_health_node *node = &seen->nodes[i];

	if (!node->owned || node->excluded || health == NULL || hf_remedy_halted(seen) ||
	    hf_remedy_stale(seen, i))
		return false;
	return is_milder(seen->items[i].node->mark.cls, health->sure_cls);
}

static bool may_write_mark(const struct hf_remedy *remedy, const struct remedy_seen *seen, size_t i,
			   bool graver)
{
	HF_AUTOFREE char *key = graver_key(seen->items[i].name);

	return is_free(seen->policy, seen->items[i].node) &&
	       seen->now >= seen->nodes[i].not_before &&
	       (!graver || seen->now >= hf_remedy_not_before(remedy, key));
}

static void add_mark(struct hf_remedy *remedy, const struct remedy_seen *seen, size_t i,
		     bool graver)
{
	struct remedy_act *act = &remedy->acts[remedy->n_acts++];

	set_act(act, seen, i);
	act->off = hf_remedy_seen_off(seen, &seen->items[i]);
	act->note = !graver;
	act->graver = graver;
	if (graver)
		snprintf(act->cls, sizeof(act->cls), "%s",
			 hf_health_class_name(seen->items[i].health->sure_cls));
}

static bool begin_marks(struct hf_remedy *remedy, const struct remedy_seen *seen)
{
	if (remedy->n_acts == 0)
		return false;
	snprintf(remedy->policy, sizeof(remedy->policy), "%s", seen->policy->name);
	step_on(remedy);
	return true;
}

/* Before all else: what was known when a person took the taint off does not bring it back, and who comes
 * after us has to know when that was.  Of a taint that is back it says nothing any more. */
static bool note_taken_off(struct hf_remedy *remedy, const struct remedy_seen *seen)
{
	for (size_t i = 0; i < seen->len && remedy->n_acts < HF_REMEDY_ACTS_MAX; i++)
		if (is_to_note(seen->items[i].node) && may_write_mark(remedy, seen, i, false))
			add_mark(remedy, seen, i, false);
	return begin_marks(remedy, seen);
}

static bool make_graver(struct hf_remedy *remedy, const struct remedy_seen *seen)
{
	for (size_t i = 0; i < seen->len && remedy->n_acts < HF_REMEDY_ACTS_MAX; i++)
		if (is_graver(seen, i) && may_write_mark(remedy, seen, i, true))
			add_mark(remedy, seen, i, true);
	return begin_marks(remedy, seen);
}

bool hf_remedy_act(struct hf_remedy *remedy, const struct remedy_seen *seen)
{
	remedy->n_acts = remedy->act = 0;
	remedy->spoilt = false;
	/* The breaker first, so that it outlives us. */
	if (seen->memory_moved)
		return false;
	if (note_taken_off(remedy, seen))
		return true;
	for (size_t i = 0; i < seen->plan.len && remedy->n_acts < HF_REMEDY_ACTS_MAX; i++)
		if (is_act(&seen->plan.decisions[i]))
			set_act(&remedy->acts[remedy->n_acts++], seen, i);
	if (remedy->n_acts == 0)
		return make_graver(remedy, seen);
	snprintf(remedy->policy, sizeof(remedy->policy), "%s", seen->policy->name);
	look_at_policy(remedy);
	return true;
}

/* A server whose CRD is older keeps not all of it: that is written again as seldom as at rest. */
static bool is_sent(const struct hf_remedy *remedy, const struct remedy_seen *seen,
		    const struct hf_json *status)
{
	return hf_json_equal(seen->policy->sent, status) &&
	       hf_loop_mono(remedy->op->loop) - seen->policy->sent_at < SENT_AGAIN;
}

bool hf_remedy_write(struct hf_remedy *remedy, const struct remedy_seen *seen)
{
	const struct hf_json *stored = hf_json_get(hf_doc_json(seen->doc), "status");
	HF_AUTO_JSON status = status_of(remedy, seen);
	HF_AUTO_JSON merged = hf_json_merge_patch(stored, status);

	if (stored != NULL && (hf_json_equal(merged, stored) || is_sent(remedy, seen, status)))
		return false;
	hf_json_unref(seen->policy->sent);
	seen->policy->sent = hf_json_copy(status);
	seen->policy->sent_at = hf_loop_mono(remedy->op->loop);
	snprintf(remedy->policy, sizeof(remedy->policy), "%s", seen->policy->name);
	write_status(remedy, seen, hf_steal(&status), REMEDY_STATUS);
	return true;
}
