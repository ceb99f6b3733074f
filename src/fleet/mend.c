/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "fleet/mend_internal.h"

#include "api/lifetime.h"
#include "api/node_locks.h"
#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"
#include "store/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The controller of Remediations: start and stop, the cache, the order of passes, and the live
 * reads of a pass.
 *
 * Input: Remediations, and the acts that the plans of policies ask for. Output: passes, each with
 * at most one write. Invariants: one pass runs at a time. A pass reads all objects that it decides
 * upon from the API server, in the order of enum mend_read. A pass with a failed read ends without
 * a write.
 */

#define PAGE_LIMIT 100
#define ARENA_MAX ((size_t)16 << 20)
/* Leases, pods of nodes and the locks of other tools have no watch here, so a pass looks at them again.
 * A drain looks after a quarter of the time that it waits already, within these limits. */
#define LOOK_AT_WORK_MIN (HF_SECOND / 4)
#define LOOK_AT_WORK (5 * HF_SECOND)
#define LOOK_WAITING (30 * HF_SECOND)
/* A task of a person may wait for weeks, and ends by a report, which wakes it. */
#define LOOK_AT_TASK (5 * HF_MINUTE)
/* The most writes for one Remediation in a row without a change of its phase. More mean that
 * another writer undoes them. */
#define WRITES_MAX 12
#define RETRY_MIN HF_SECOND
#define CONFLICT_MIN (HF_SECOND / 10)
#define RETRY_MAX (30 * HF_SECOND)
/* Interval of the search for old finished Remediations. The operator deletes one at a time. */
#define PRUNE_EVERY (10 * HF_MINUTE)

/* What the cache keeps of an actor's pod. */
struct actor_view {
	bool leaves, ended;
};

static void read_next(struct fleet_mend *mend);

/* ---- the order of passes ------------------------------------------------------------------------ */

static hf_time read_clock(const struct fleet_mend *mend)
{
	return hf_loop_mono(mend->fleet->env.loop);
}

static void look_soon(struct fleet_mend *mend, hf_time within)
{
	if (mend->stopped ||
	    (hf_timer_armed(mend->timer) && hf_timer_due(mend->timer) <= read_clock(mend) + within))
		return;
	hf_timer_arm(mend->timer, within);
}

static void set_due(struct fleet_mend *mend, const char *name, hf_time at)
{
	hf_time *due = hf_xcalloc(1, sizeof(*due));

	*due = at;
	if (!hf_map_put(mend->due, name, due))
		free(due);
}

static hf_time due_at(const struct fleet_mend *mend, const char *name)
{
	const hf_time *due = hf_map_get(mend->due, name);

	return due == NULL ? 0 : *due;
}

/* Keeps the entry if its pass is the earliest so far. */
static void note_pass(const struct fleet_mend *mend, const struct hf_cache_entry *entry,
		      const char **name, hf_time *at)
{
	hf_time due = due_at(mend, entry->name);

	if (*name != NULL && due >= *at)
		return;
	*name = entry->name;
	*at = due;
}

/* Finds the Remediation with the earliest next pass; NULL: none. It is unfinished, or it has an actor's pod: a create that
 * a former leader has sent may be performed after the end of the act. */
static const char *find_first(const struct fleet_mend *mend, hf_time *ret_at)
{
	const struct hf_cache_entry *entry, *pod;
	const char *first = NULL;

	*ret_at = HF_TIME_NEVER;
	for (size_t it = 0; (entry = hf_cache_next(mend->cache, &it)) != NULL;)
		if (((const struct mend_object *)entry->view)->unfinished &&
		    ((const struct mend_object *)entry->view)->readable)
			note_pass(mend, entry, &first, ret_at);
	for (size_t it = 0;
	     mend->actors != NULL && (pod = hf_cache_next(mend->actors, &it)) != NULL;) {
		if (((const struct actor_view *)pod->view)->leaves ||
		    !hf_str_has_prefix(pod->name, HF_MEND_POD_PREFIX))
			continue;
		entry = hf_cache_get(mend->cache, NULL, pod->name + strlen(HF_MEND_POD_PREFIX));
		if (entry != NULL && ((const struct mend_object *)entry->view)->readable)
			note_pass(mend, entry, &first, ret_at);
	}
	return first;
}

static bool can_see(const struct fleet_mend *mend)
{
	const struct hf_fleet *fleet = mend->fleet;

	/* The fleet caches Nodes only while a policy exists, so without a policy there is nothing
	 * to wait for. */
	return hf_cache_synced(mend->cache) && hf_cache_synced(fleet->policies_cache) &&
	       (fleet->nodes == NULL ||
		(hf_cache_synced(fleet->nodes) && hf_cache_synced(fleet->health))) &&
	       fleet->env.knows_pods(fleet->env.arg);
}

/* The Remediation gets a pass at once, since an object that passes take with this read has changed. If its pass is under
 * way, and has read the object already, another pass follows. A change that the pass will read is no news: else two
 * passes that read the same node would wake each other for ever. */
static void wake_object(struct fleet_mend *mend, const char *name, enum mend_read read)
{
	if (!hf_streq(name, mend->name)) {
		hf_map_remove(mend->due, name);
		look_soon(mend, 0);
	} else if (!mend->creates && mend->read > read) {
		mend->changed = true;
	}
}

static void wake_answered(struct fleet_mend *mend, const char *name)
{
	wake_object(mend, name, MEND_READ_OBJECT);
}

/* ---- the end of a pass ----------------------------------------------------------------------- */

static void drop_reads(struct fleet_mend *mend)
{
	for (size_t i = 0; i < MEND_READS; i++)
		mend->docs[i] = hf_doc_unref(mend->docs[i]);
	for (size_t i = 0; i < mend->pods_len; i++)
		mend->pods[i] = hf_doc_unref(mend->pods[i]);
	mend->pods_len = 0;
	mend->act_body = hf_doc_unref(mend->act_body);
	free(mend->token);
	mend->token = NULL;
	hf_arena_reset(mend->arena);
}

/* Ends the pass; the next pass for this Remediation begins after the time `wait`. */
static void end_pass(struct fleet_mend *mend, hf_time wait)
{
	if (!mend->creates)
		set_due(mend, mend->name, hf_time_add(read_clock(mend), wait));
	*mend->name = '\0';
	drop_reads(mend);
	look_soon(mend, 0);
}

/* The message is stored, or cannot be stored either. */
static void take_refusal(void *arg, const struct hf_reply *reply)
{
	struct fleet_mend *mend = arg;

	mend->call = NULL;
	hf_fleet_note_reply(mend->fleet, reply);
	if (reply->code == 0)
		hf_cache_put_reply(mend->cache, reply->object);
	end_pass(mend, mend->wait);
}

static void fail_pass(struct fleet_mend *mend, const struct hf_reply *reply)
{
	/* A conflict is no problem to report: the next pass reads the object again. */
	bool conflict = reply->code == HF_E_CONFLICT || reply->code == HF_E_EXISTS;
	hf_time wait = hf_backoff_delay(conflict ? CONFLICT_MIN : RETRY_MIN,
					conflict ? RETRY_MIN : RETRY_MAX, mend->failures++);
	struct hf_request request;
	HF_AUTO_DOC body = NULL;

	if (!conflict)
		hf_fleet_log_problem(mend->fleet, hf_remediations.plural, reply->code,
				     reply->message);
	if (!hf_fleet_mend_note_refusal(mend, reply, &request, &body)) {
		end_pass(mend, wait);
		return;
	}
	mend->wait = wait;
	request.timeout = mend->fleet->env.request_timeout;
	mend->call = hf_store_request(mend->fleet->env.store, &request, take_refusal, mend);
}

/* ---- the write ------------------------------------------------------------------------------- */

static void tell_phase(const struct fleet_mend *mend, const char *what)
{
	enum hf_mend_phase phase;
	const char *reason = "MendPhase";
	char message[HF_REMEDIATION_MESSAGE_MAX + HF_REMEDIATION_NAME_MAX + 64];
	const struct hf_cache_entry *entry = hf_cache_get(mend->cache, NULL, mend->name);
	const struct mend_object *object = entry == NULL ? NULL : entry->view;

	/* A dry run mends nothing. */
	if (object == NULL || !object->readable || object->r.spec.dry_run ||
	    !hf_mend_phase_of(what, &phase))
		return;
	if (phase == HF_MEND_DRAINING)
		reason = "MendBegins";
	else if (phase == HF_MEND_APPROVED)
		reason = "MendApproved";
	else if (phase == HF_MEND_SUCCEEDED)
		reason = "Mended";
	else if (phase == HF_MEND_FAILED)
		reason = "MendFailed";
	else if (phase == HF_MEND_CANCELLED)
		reason = "MendCancelled";
	else
		return;
	snprintf(message, sizeof(message), "%s (Remediation %s): %s", object->r.spec.rung,
		 mend->name, hf_str_or(object->r.status.message, ""));
	hf_fleet_event_node(mend->fleet, mend->node, phase == HF_MEND_FAILED, reason, message);
	if (mend->metrics.done != NULL && hf_mend_is_final(phase))
		hf_family_add(mend->metrics.done, 1, object->r.spec.rung, what, NULL);
}

static void take_evicted(struct fleet_mend *mend, const struct hf_reply *reply)
{
	hf_fleet_count_eviction(mend->fleet, reply->code == 0               ? "done"
					     : reply->code == HF_E_TOO_MANY ? "refused"
									    : "failed");
	if (reply->code == HF_E_TOO_MANY) {
		hf_fleet_mend_note_eviction(mend, reply->message);
		end_pass(mend, LOOK_AT_WORK);
	} else if (reply->code != 0 && reply->code != HF_E_NOT_FOUND) {
		/* So the API server answers if two disruption budgets select the pod. */
		if (reply->code == HF_E_INTERNAL)
			hf_fleet_note_refused(mend->fleet, mend->evicts_uid, reply->message);
		fail_pass(mend, reply);
	} else {
		hf_fleet_mend_forget_refusal(mend);
		end_pass(mend, HF_SECOND);
	}
}

/* True if the write changed nothing in the API server: the resource version is the old one. An
 * older CRD drops unknown fields, so the same write would repeat without end. */
static bool is_same_version(const struct fleet_mend *mend, struct hf_doc *doc)
{
	return !mend->creates && doc != NULL && hf_streq(hf_doc_uid(doc), mend->r.uid) &&
	       hf_streq(hf_doc_resource_version(doc), mend->r.resource_version);
}

/* The result is only told: without it the proof decides. */
static void take_result(void *arg, const struct hf_reply *reply)
{
	struct fleet_mend *mend = arg;

	mend->call = NULL;
	hf_fleet_note_reply(mend->fleet, reply);
	if (reply->code != 0) {
		fail_pass(mend, reply);
		return;
	}
	hf_cache_put_reply(mend->cache, reply->object);
	end_pass(mend, 0);
}

static void take_acted(void *arg, const struct hf_reply *reply)
{
	struct fleet_mend *mend = arg;
	struct hf_request request;
	HF_AUTO_DOC body = NULL;

	mend->call = NULL;
	hf_fleet_note_reply(mend->fleet, reply);
	(void)hf_fleet_mend_result(mend, reply->code,
				   reply->code == 0 ? "requested" : reply->message, &request,
				   &body);
	request.timeout = mend->fleet->env.request_timeout;
	mend->call = hf_store_request(mend->fleet->env.store, &request, take_result, mend);
}

/* The intent is stored: acts once. */
static void send_act(struct fleet_mend *mend, struct hf_doc *object)
{
	if (hf_remediation_read(object, mend->arena, &mend->r, NULL) != 0) {
		end_pass(mend, 0);
		return;
	}
	if (mend->act.resource == NULL) {
		hf_fleet_mend_call_webhook(mend, mend->act_body, wake_answered);
		end_pass(mend, 0);
		return;
	}
	mend->act.timeout = mend->fleet->env.request_timeout;
	mend->call = hf_store_request(mend->fleet->env.store, &mend->act, take_acted, mend);
}

/* Without the right to write conditions of Nodes, acts go on without. */
static void take_told(struct fleet_mend *mend, const struct hf_reply *reply)
{
	if (reply->code == HF_E_FORBIDDEN) {
		mend->no_condition = true;
		hf_fleet_log_problem(mend->fleet, "nodes/status", reply->code, reply->message);
		end_pass(mend, 0);
	} else if (reply->code != 0 && reply->code != HF_E_NOT_FOUND) {
		fail_pass(mend, reply);
	} else {
		mend->failures = 0;
		mend->writes++;
		end_pass(mend, mend->writes > WRITES_MAX ? LOOK_AT_WORK : 0);
	}
}

/* The next pass may be of another node, and counts the nodes that are out of use. */
static void cache_written(const struct fleet_mend *mend, struct hf_doc *doc)
{
	const char *kind = doc == NULL ? NULL : hf_json_path_str(hf_doc_json(doc), "kind", NULL);

	if (hf_streq(kind, HF_REMEDIATION_KIND))
		hf_cache_put_reply(mend->cache, doc);
	else if (hf_streq(kind, hf_nodes.kind) && mend->fleet->nodes != NULL)
		hf_cache_put_reply(mend->fleet->nodes, doc);
}

static void take_written(void *arg, const struct hf_reply *reply)
{
	struct fleet_mend *mend = arg;
	/* A delete of an object that does not exist any more succeeds. */
	bool good = reply->code == 0 || (reply->code == HF_E_NOT_FOUND && mend->deletes);

	mend->call = NULL;
	hf_fleet_note_reply(mend->fleet, reply);
	if (hf_streq(mend->done, HF_MEND_TELLS)) {
		take_told(mend, reply);
		return;
	}
	if (hf_streq(mend->done, "evict")) {
		take_evicted(mend, reply);
		return;
	}
	if (!good) {
		fail_pass(mend, reply);
		return;
	}
	mend->failures = 0;
	hf_fleet_mend_forget_refusal(mend);
	if (is_same_version(mend, reply->object)) {
		end_pass(mend, LOOK_WAITING);
		return;
	}
	cache_written(mend, reply->object);
	mend->writes = mend->done != NULL ? 0 : mend->writes + 1;
	if (mend->done != NULL)
		tell_phase(mend, mend->done);
	if (mend->act_body != NULL && reply->object != NULL) {
		send_act(mend, reply->object);
		return;
	}
	end_pass(mend, mend->writes > WRITES_MAX ? LOOK_AT_WORK : 0);
}

static void send_write(struct fleet_mend *mend, struct hf_request *request)
{
	request->timeout = mend->fleet->env.request_timeout;
	mend->deletes = request->verb == HF_VERB_DELETE;
	mend->call = hf_store_request(mend->fleet->env.store, request, take_written, mend);
}

static void create_wanted(struct fleet_mend *mend)
{
	struct hf_request request;
	HF_AUTO_DOC body = NULL;

	mend->done = NULL;
	if (hf_fleet_mend_make(mend, &request, &body)) {
		send_write(mend, &request);
		return;
	}
	hf_fleet_mend_forget_refusal(mend);
	end_pass(mend, 0);
}

/* The drain waits for pods and for locks of other tools, which have no watch here. */
static hf_time drain_look(const struct fleet_mend *mend, hf_time now)
{
	hf_time since = HF_TIME_NONE, wait = LOOK_AT_WORK;

	for (size_t i = 0; i < mend->r.status.conditions.len; i++)
		if (mend->r.status.conditions.items[i].since > since)
			since = mend->r.status.conditions.items[i].since;
	if (since != HF_TIME_NONE && now > since && (now - since) / 4 < wait)
		wait = (now - since) / 4;
	return wait < LOOK_AT_WORK_MIN ? LOOK_AT_WORK_MIN : wait;
}

static hf_time next_look(const struct fleet_mend *mend, const struct mend_facts *facts,
			 const struct hf_mend_step *step)
{
	hf_time wait = LOOK_AT_WORK;

	if (mend->phase == HF_MEND_PENDING)
		wait = mend->rung == HF_MEND_PERSON ? LOOK_AT_TASK : LOOK_WAITING;
	else if (mend->phase == HF_MEND_DRAINING)
		wait = drain_look(mend, facts->now);
	if (step->wake_at > facts->now && step->wake_at - facts->now < wait)
		wait = step->wake_at - facts->now;
	return wait;
}

static void decide_step(struct fleet_mend *mend)
{
	struct mend_facts *facts = HF_ARENA_NEW(mend->arena, struct mend_facts);
	struct hf_mend_step step;
	struct hf_request request;
	HF_AUTO_DOC body = NULL;

	hf_fleet_mend_facts(mend, facts);
	hf_mend_step(&facts->view, &step);
	if (step.act == HF_MEND_DO_NOTHING && step.next == mend->phase)
		hf_fleet_mend_forget_refusal(mend);
	/* The breaker has to count all faults before an act begins. */
	if (step.approve && !hf_str_is_empty(mend->policy) &&
	    hf_fleet_gathers_for(mend->fleet) > 0) {
		end_pass(mend, hf_fleet_gathers_for(mend->fleet));
		return;
	}
	if (hf_fleet_mend_do(mend, facts, &step, &request, &body, &mend->done))
		send_write(mend, &request);
	else
		end_pass(mend, mend->changed ? 0 : next_look(mend, facts, &step));
}

/* ---- the reads ------------------------------------------------------------------------------- */

static const char *print_name(struct fleet_mend *mend, const char *prefix, const char *name)
{
	return hf_arena_printf(mend->arena, "%s%s", prefix, name);
}

static void fill_request(struct fleet_mend *mend, struct hf_request *request)
{
	*request = (struct hf_request){.verb = HF_VERB_GET, .name = mend->node};
	switch (mend->read) {
	case MEND_READ_OBJECT:
		request->resource = &hf_remediations;
		request->name = mend->name;
		break;
	case MEND_READ_NODE: request->resource = &hf_nodes; break;
	case MEND_READ_HEALTH: request->resource = &hf_devicehealths; break;
	case MEND_READ_LEASE:
		request->resource = &hf_leases;
		request->ns = HF_MEND_NAMESPACE;
		request->name = print_name(mend, HF_NODE_LEASE_PREFIX, mend->node);
		break;
	case MEND_READ_POD:
		request->resource = &hf_pods;
		request->ns = HF_MEND_NAMESPACE;
		request->name = print_name(mend, HF_MEND_POD_PREFIX, mend->name);
		break;
	case MEND_READ_PODS:
		*request = (struct hf_request){
			.verb = HF_VERB_LIST,
			.resource = &hf_pods,
			.field_selector = print_name(mend, "spec.nodeName=", mend->node)};
		break;
	case MEND_READ_OTHERS:
		*request = (struct hf_request){.verb = HF_VERB_LIST, .resource = &hf_remediations};
		break;
	case MEND_READ_POLICY:
		request->resource = &hf_healthpolicies;
		request->name = mend->policy;
		break;
	case MEND_READ_TEMPLATE: (void)hf_fleet_mend_external(mend, true, request); break;
	case MEND_READ_EXTERNAL: (void)hf_fleet_mend_external(mend, false, request); break;
	case MEND_READ_KURED:
		request->resource = &hf_daemonsets;
		request->ns = HF_KURED_NAMESPACE;
		request->name = HF_KURED_NAME;
		break;
	case MEND_READ_MAINTENANCE:
	case MEND_READS:
		*request =
			(struct hf_request){.verb = HF_VERB_LIST, .resource = &hf_nodemaintenances};
		break;
	}
	if (request->verb == HF_VERB_LIST) {
		request->limit = PAGE_LIMIT;
		request->continue_token = mend->token;
	}
	request->timeout = mend->fleet->env.request_timeout;
}

/* True if a pass that creates a Remediation needs this read. */
static bool is_needed_to_create(const struct fleet_mend *mend, enum mend_read read)
{
	return read == MEND_READ_NODE || read == MEND_READ_HEALTH || read == MEND_READ_OTHERS ||
	       (read == MEND_READ_POLICY && !hf_str_is_empty(mend->policy));
}

/* True if the present pass needs this read. */
static bool is_needed(struct fleet_mend *mend, enum mend_read read)
{
	struct hf_request external;

	if (mend->creates)
		return is_needed_to_create(mend, read);
	if (read == MEND_READ_EXTERNAL)
		return hf_fleet_mend_external(mend, false, &external);
	if (read <= MEND_READ_POD)
		return true;
	if (read == MEND_READ_POLICY && hf_str_is_empty(mend->policy))
		return false;
	/* Pods count from the drain on. Acts without an actor need a pod to act upon. */
	if (read == MEND_READ_PODS && mend->phase == HF_MEND_PENDING &&
	    hf_mend_has_actor(mend->rung) && !mend->r.spec.dry_run)
		return false;
	return mend->before_act &&
	       (read != MEND_READ_TEMPLATE || hf_fleet_mend_external(mend, true, &external));
}

static bool take_object(struct fleet_mend *mend, struct hf_doc *doc)
{
	if (hf_remediation_read(doc, mend->arena, &mend->r, NULL) != 0 ||
	    !hf_mend_phase_of(mend->r.status.phase, &mend->phase) ||
	    !hf_mend_rung_of(mend->r.spec.rung, &mend->rung))
		return false;
	hf_cache_put_live(mend->cache, doc);
	snprintf(mend->node, sizeof(mend->node), "%s", mend->r.spec.node);
	snprintf(mend->policy, sizeof(mend->policy), "%s", hf_str_or(mend->r.spec.policy, ""));
	mend->before_act = mend->phase <= HF_MEND_APPROVED;
	return true;
}

static void cache_read(const struct fleet_mend *mend, struct hf_doc *doc)
{
	struct hf_fleet *fleet = mend->fleet;

	if (mend->read == MEND_READ_NODE && fleet->nodes != NULL)
		hf_cache_put_live(fleet->nodes, doc);
	else if (mend->read == MEND_READ_HEALTH && fleet->health != NULL)
		hf_cache_put_live(fleet->health, doc);
	else if (mend->read == MEND_READ_POLICY)
		hf_cache_put_live(fleet->policies_cache, doc);
}

/* Takes one page of a list into the pass. Returns false if there are more than HF_MEND_PODS_MAX
 * pods that have not ended. */
static bool take_items(struct fleet_mend *mend, const struct hf_reply *reply)
{
	for (size_t i = 0; i < reply->n_items; i++) {
		struct hf_doc *doc = reply->items[i];

		if (mend->read == MEND_READ_OTHERS) {
			hf_cache_put_live(mend->cache, doc);
			hf_fleet_mend_count_other(mend, doc);
		} else if (mend->read == MEND_READ_MAINTENANCE) {
			mend->in_maintenance |= hf_streq(
				hf_json_path_str(hf_doc_json(doc), "spec", "nodeName", NULL),
				mend->node);
		} else if (hf_is_pod_over(hf_doc_json(doc))) {
			continue;
		} else if (mend->pods_len == HF_MEND_PODS_MAX) {
			return false;
		} else {
			mend->pods[mend->pods_len++] = hf_doc_ref(doc);
		}
	}
	free(mend->token);
	mend->token =
		hf_str_is_empty(reply->continue_token) ? NULL : hf_xstrdup(reply->continue_token);
	return true;
}

static bool take_doc(struct fleet_mend *mend, struct hf_doc *doc)
{
	mend->docs[mend->read] = hf_doc_ref(doc);
	if (mend->read == MEND_READ_OBJECT)
		return take_object(mend, doc);
	cache_read(mend, doc);
	return true;
}

static void on_read(void *arg, const struct hf_reply *reply)
{
	static const struct hf_reply unusable = {
		.code = HF_E_TOO_LARGE,
		.message = "an object that the act depends on is too large or cannot be read"};
	struct fleet_mend *mend = arg;
	bool good;

	mend->call = NULL;
	hf_fleet_note_reply(mend->fleet, reply);
	if (reply->code == HF_E_NOT_FOUND && mend->read == MEND_READ_OBJECT) {
		hf_fleet_mend_forget_refusal(mend);
		end_pass(mend, LOOK_WAITING);
		return;
	}
	/* In phase Restoring the object has to be found, because it has to go. */
	if (reply->code == HF_E_FORBIDDEN &&
	    (mend->read == MEND_READ_TEMPLATE ||
	     (mend->read == MEND_READ_EXTERNAL && mend->phase != HF_MEND_RESTORING))) {
		mend->external_problem = hf_arena_printf(mend->arena, "%.200s", reply->message);
	} else if (reply->code != 0 && reply->code != HF_E_NOT_FOUND) {
		fail_pass(mend, reply);
		return;
	}
	good = reply->object != NULL && reply->code == 0 ? take_doc(mend, reply->object)
							 : take_items(mend, reply);
	if (!good) {
		fail_pass(mend, &unusable);
		return;
	}
	if (mend->token == NULL)
		mend->read++;
	read_next(mend);
}

static void read_next(struct fleet_mend *mend)
{
	struct hf_request request;

	while (mend->read < MEND_READS && !is_needed(mend, mend->read))
		mend->read++;
	if (mend->read == MEND_READS) {
		if (mend->creates)
			create_wanted(mend);
		else
			decide_step(mend);
		return;
	}
	fill_request(mend, &request);
	mend->call = hf_store_request(mend->fleet->env.store, &request, on_read, mend);
}

/* ---- old objects ------------------------------------------------------------------------------ */

static void take_pruned(void *arg, const struct hf_reply *reply)
{
	struct fleet_mend *mend = arg;

	mend->call = NULL;
	hf_fleet_note_reply(mend->fleet, reply);
	/* Older rights do not allow it: then people delete. */
	if (reply->code != 0 && reply->code != HF_E_NOT_FOUND)
		mend->prunes_at = hf_time_add(read_clock(mend), PRUNE_EVERY);
	look_soon(mend, HF_SECOND);
}

/* Returns true if a request is under way. */
static bool prune_next(struct fleet_mend *mend)
{
	const struct hf_cache_entry *old;
	struct hf_request request;

	if (read_clock(mend) < mend->prunes_at)
		return false;
	old = hf_fleet_mend_find_old(mend);
	if (old == NULL) {
		mend->prunes_at = hf_time_add(read_clock(mend), PRUNE_EVERY);
		return false;
	}
	request = (struct hf_request){.verb = HF_VERB_DELETE,
				      .resource = &hf_remediations,
				      .name = old->name,
				      .precondition_uid =
					      ((const struct mend_object *)old->view)->r.uid,
				      .grace_seconds = HF_GRACE_DEFAULT,
				      .timeout = mend->fleet->env.request_timeout};
	mend->call = hf_store_request(mend->fleet->env.store, &request, take_pruned, mend);
	return true;
}

/* ---- the beginning of a pass ------------------------------------------------------------------ */

static void begin_pass(struct fleet_mend *mend)
{
	drop_reads(mend);
	mend->read = MEND_READ_OBJECT;
	mend->others = (struct mend_others){.mended_at = HF_TIME_NONE};
	mend->in_maintenance = false;
	mend->external_problem = NULL;
	mend->before_act = false;
	mend->changed = false;
	read_next(mend);
}

/* ---- the actors' pods -------------------------------------------------------------------------- */

static void *read_actor(void *arg, struct hf_doc *doc)
{
	struct actor_view *view = hf_xcalloc(1, sizeof(*view));

	(void)arg;
	view->leaves = hf_is_leaving(hf_doc_json(doc));
	view->ended = hf_has_pod_ended(hf_doc_json(doc));
	return view;
}

static bool is_same_actor(const struct actor_view *a, const struct actor_view *b)
{
	return a->leaves == b->leaves && a->ended == b->ended;
}

static void actor_changed(void *arg, enum hf_cache_change change,
			  const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct fleet_mend *mend = arg;
	const struct hf_cache_entry *pod = now != NULL ? now : before;

	if (change == HF_CACHE_SYNCED || !hf_str_has_prefix(pod->name, HF_MEND_POD_PREFIX) ||
	    (before != NULL && now != NULL && is_same_actor(before->view, now->view)))
		return;
	wake_object(mend, pod->name + strlen(HF_MEND_POD_PREFIX), MEND_READ_POD);
}

/* Watches the namespace of the actors once there is an unfinished Remediation, until this leader stops. Without
 * the right to watch, passes look at the pods again and again. */
static void watch_actors(struct fleet_mend *mend)
{
	const struct hf_cache_options options = {
		.loop = mend->fleet->env.loop,
		.store = mend->fleet->env.store,
		.resource = &hf_pods,
		.ns = HF_MEND_NAMESPACE,
		.entries_max = HF_MEND_OBJECTS_MAX,
		.page_limit = PAGE_LIMIT,
		.seed = mend->fleet->env.seed ^ hf_hash_str(HF_MEND_NAMESPACE),
		.decode = read_actor,
		.view_free = free,
		.changed = actor_changed,
		.arg = mend,
	};

	if (mend->actors != NULL)
		return;
	mend->actors = hf_cache_create(&options);
	hf_cache_start(mend->actors);
}

static void begin_next(struct fleet_mend *mend)
{
	hf_time at;
	const char *name = find_first(mend, &at);

	if (name != NULL)
		watch_actors(mend);
	if (name != NULL && at <= read_clock(mend)) {
		snprintf(mend->name, sizeof(mend->name), "%s", name);
		mend->creates = false;
		begin_pass(mend);
		return;
	}
	if (mend->wanted_len > 0) {
		const struct mend_wanted *wanted = &mend->wanted[--mend->wanted_len];

		mend->creates = true;
		snprintf(mend->node, sizeof(mend->node), "%s", wanted->node);
		snprintf(mend->policy, sizeof(mend->policy), "%s", wanted->policy);
		begin_pass(mend);
		return;
	}
	if (prune_next(mend))
		return;
	look_soon(mend, mend->prunes_at - read_clock(mend));
	if (name != NULL)
		look_soon(mend, at - read_clock(mend));
}

static void on_timer(void *arg)
{
	struct fleet_mend *mend = arg;

	if (mend->stopped || mend->call != NULL)
		return;
	if (can_see(mend))
		begin_next(mend);
	else
		look_soon(mend, HF_SECOND);
}

void hf_fleet_mend_want(struct fleet_mend *mend, const struct fleet_seen *seen)
{
	hf_fleet_mend_list_wanted(mend, seen);
	if (mend->wanted_len > 0)
		look_soon(mend, 0);
}

/* ---- the cache ------------------------------------------------------------------------------- */

void hf_fleet_mend_wake(struct fleet_mend *mend, enum mend_read read, const char *name)
{
	const struct hf_cache_entry *entry;

	if (mend == NULL)
		return;
	for (size_t it = 0; (entry = hf_cache_next(mend->cache, &it)) != NULL;) {
		const struct mend_object *object = entry->view;

		if (object->unfinished && object->readable &&
		    hf_streq(read == MEND_READ_POLICY ? object->r.spec.policy : object->r.spec.node,
			     name))
			wake_object(mend, entry->name, read);
	}
}

/* The step of the object may differ now. A message or a condition alone changes no step: two leaders that see
 * different facts would wake each other with their messages for ever. */
static bool is_step_changed(const struct mend_object *a, const struct mend_object *b)
{
	const struct hf_remediation *x = &a->r, *y = &b->r;

	return !a->readable || !b->readable || a->phase != b->phase ||
	       a->unfinished != b->unfinished || x->spec.cancel != y->spec.cancel ||
	       x->deleting != y->deleting || x->status.approval.at != y->status.approval.at ||
	       x->status.act.started_at != y->status.act.started_at ||
	       x->status.act.ended_at != y->status.act.ended_at ||
	       x->status.act.holders.len != y->status.act.holders.len ||
	       x->status.saved.labels.len != y->status.saved.labels.len;
}

static bool is_at_work(const struct mend_object *object)
{
	return object != NULL && object->readable && !hf_mend_is_final(object->phase);
}

static void tell_unreadable(const struct fleet_mend *mend, const struct hf_cache_entry *entry)
{
	const struct mend_object *object = entry == NULL ? NULL : entry->view;
	char message[512];

	if (object == NULL || object->readable)
		return;
	snprintf(message, sizeof(message), "%s is left alone, because it cannot be read: %.300s",
		 entry->name, object->problem);
	hf_fleet_log_problem(mend->fleet, hf_remediations.plural, HF_E_INVALID, message);
}

/* The API server may have no Remediations, or refuse to list them. */
static void note_list(struct fleet_mend *mend)
{
	bool knew = mend->fleet->knows_acts;

	mend->fleet->knows_acts = mend->unseen || hf_cache_synced(mend->cache);
	if (!knew && mend->fleet->knows_acts)
		hf_fleet_look_soon(mend->fleet, 0);
}

static void object_changed(void *arg, enum hf_cache_change change,
			   const struct hf_cache_entry *before, const struct hf_cache_entry *now)
{
	struct fleet_mend *mend = arg;

	(void)change;
	mend->unseen = false;
	note_list(mend);
	/* The cache already had this version: the change is the result of a live read of this
	 * program, so nothing is new. */
	if (before != NULL && now != NULL &&
	    hf_streq(before->resource_version, now->resource_version))
		return;
	tell_unreadable(mend, now);
	if (before != NULL && now != NULL && before->view != NULL && now->view != NULL &&
	    !is_step_changed(before->view, now->view))
		return;
	if (before != NULL || now != NULL)
		wake_object(mend, now != NULL ? now->name : before->name, MEND_READ_OBJECT);
	look_soon(mend, 0);
	/* Attempts and running acts are part of a policy's plan, so the fleet looks at its policies
	 * again. An act that has ended may be followed by the next rung. */
	if (is_at_work(now == NULL ? NULL : now->view))
		hf_fleet_look_soon(mend->fleet, HF_SECOND);
	else
		hf_fleet_look_on(mend->fleet);
}

static void cache_problem(void *arg, int code, const char *message)
{
	struct fleet_mend *mend = arg;

	hf_fleet_log_list_problem(mend->fleet, hf_remediations.plural, &mend->unseen, code,
				  message);
	note_list(mend);
}

static void note_reply(void *arg, const struct hf_reply *reply)
{
	const struct fleet_mend *mend = arg;

	hf_fleet_note_reply(mend->fleet, reply);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct fleet_mend *hf_fleet_mend_create(struct hf_fleet *fleet)
{
	struct fleet_mend *mend = hf_xcalloc(1, sizeof(*mend));
	const struct hf_cache_options options = {
		.loop = fleet->env.loop,
		.store = fleet->env.store,
		.resource = &hf_remediations,
		.entries_max = HF_MEND_OBJECTS_MAX,
		.page_limit = PAGE_LIMIT,
		.seed = fleet->env.seed ^ hf_hash_str(hf_remediations.plural),
		.decode = hf_fleet_read_remediation,
		.view_free = hf_fleet_free_remediation,
		.changed = object_changed,
		.problem = cache_problem,
		.heard = note_reply,
		.arg = mend,
	};

	mend->fleet = fleet;
	mend->arena = hf_arena_create(ARENA_MAX);
	mend->due = hf_map_create(HF_MEND_OBJECTS_MAX, fleet->env.seed, free);
	mend->refusals = hf_map_create(HF_MEND_OBJECTS_MAX, fleet->env.seed, free);
	mend->answers = hf_fleet_mend_create_answers(mend);
	mend->timer = hf_timer_create(fleet->env.loop, on_timer, mend);
	mend->cache = hf_cache_create(&options);
	hf_fleet_mend_init_metrics(mend);
	return mend;
}

void hf_fleet_mend_start(struct fleet_mend *mend)
{
	hf_cache_start(mend->cache);
}

void hf_fleet_mend_stop(struct fleet_mend *mend)
{
	mend->stopped = true;
	hf_timer_disarm(mend->timer);
	hf_fleet_mend_drop_calls(mend);
	if (mend->call != NULL)
		hf_call_cancel(mend->call);
	mend->call = NULL;
}

struct fleet_mend *hf_fleet_mend_destroy(struct fleet_mend *mend)
{
	if (mend == NULL)
		return NULL;
	hf_fleet_mend_stop(mend);
	drop_reads(mend);
	hf_cache_destroy(mend->cache);
	hf_cache_destroy(mend->actors);
	hf_timer_destroy(mend->timer);
	hf_map_destroy(mend->due);
	hf_map_destroy(mend->refusals);
	hf_map_destroy(mend->answers);
	hf_arena_destroy(mend->arena);
	free(mend);
	return NULL;
}
