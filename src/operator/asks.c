/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/node.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "operator/facts_internal.h"
#include "operator/operator_internal.h"
#include "store/resource.h"

#include <stdlib.h>
#include <string.h>

/*
 * Reads the objects that plans ask for: Leases, Nodes and PersistentVolumeClaims.
 *
 * Input: the asks of each job's newest plan.  Output: facts for later steps, and jobs in the queue.
 *
 * Three structs: a struct hf_ask (core) is one wish of one plan.  A struct ask is the entry of one
 * object here, whichever jobs want it.  A struct asker is one job with the entries that its newest
 * plan wants.
 *
 * An object is read once for all jobs that ask for it: soon, and then every two seconds as long as
 * a job asks.  Two exceptions: a claim is read only once, because its access modes never change;
 * and each failed read in a row doubles the wait, up to 60 s.  When no job asks any more, the object
 * is forgotten.  So silence is measured from the moment at which a job asked.
 *
 * The times of a Lease are chosen so that silence is never overstated:
 *
 * - If a read finds a new renewTime, the kubelet renewed the Lease after the previous successful
 *   read was sent.  That moment is the renewal's time (renewed_at).
 * - The Lease counts as unchanged from the moment at which the first answer with its present
 *   renewTime arrived (since), up to the moment at which the last request was sent (asked_at).
 */

#define LEASE_NS "kube-node-lease"
/* if reads of a Lease fail for longer, the Lease may have been renewed unseen: kubelets renew every
 * 10 s */
#define LEASE_OUTAGE (15 * HF_SECOND)
#define LEASE_KEY "lease/"
#define NODE_KEY "node/"
#define CLAIM_KEY "claim/"
/* Jobs that were waiting for a read without news are queued after this time, together. */
#define CALM (200 * HF_MS)
#define BURST 50.0

/* An object that at least one job asks for, with the time and the result of the reads. */
struct ask {
	struct hf_asks *asks;
	enum hf_ask_kind kind;
	/* key in the table of asks: "lease/NODE", "node/NODE" or "claim/NAMESPACE/NAME" */
	char *key;
	const char *name; /* name of the object to read: points at the end of the key */
	char *ns;         /* namespace of the object; NULL: it has no namespace */
	HF_VEC(struct asker *) askers;

	struct hf_call *call; /* the read under way; NULL: none */
	bool queued;
	struct ask *before, *after; /* neighbours in the queue, while `queued` is set */
	hf_time due;
	unsigned failures;
	hf_time sent_at; /* when the request of the read under way was sent */

	/* What was read; times are monotonic. */
	bool known;
	hf_time asked_at; /* LEASE: when the last successful read was sent */
	char *renewal; /* LEASE: spec.renewTime as text; NULL: the Lease is missing or has none */
	/* LEASE: when the first answer with the renewal time in `renewal` arrived */
	hf_time since;
	/* LEASE: when the read before that answer was sent: the kubelet renewed it later */
	hf_time renewed_at;
	hf_time looked_at; /* NODE: when the last successful read was sent */
	bool missing;      /* NODE: the last read found no Node object */
	bool off;          /* NODE: the last read found the taint out-of-service */
	bool exclusive;    /* CLAIM: only one node at a time may use the claim */
};

/* A job, and the entries of the objects that its newest plan asks for. */
struct asker {
	char *key;
	struct ask **asks;
	size_t len;
};

struct hf_asks {
	struct hf_operator *op;
	struct hf_map *table;     /* struct ask */
	struct hf_map *askers;    /* job key → struct asker */
	struct ask *first, *last; /* queued, by due */
	struct hf_timer *timer;
	size_t in_flight;
	double tokens;
	hf_time tokens_at;
	bool full_told, stopped;
};

static void send_due(struct hf_asks *asks);

/* --- the queue -------------------------------------------------------------------------------- */

/* Insert the ask into the queue, which is sorted by due time.  Searches from the end, where the
 * place mostly is. */
static void queue_ask(struct ask *ask, hf_time due)
{
	struct hf_asks *asks = ask->asks;
	struct ask *before = asks->last;

	ask->due = due;
	while (before != NULL && before->due > due)
		before = before->before;
	ask->before = before;
	ask->after = before == NULL ? asks->first : before->after;
	*(before == NULL ? &asks->first : &before->after) = ask;
	*(ask->after == NULL ? &asks->last : &ask->after->before) = ask;
	ask->queued = true;
}

static void unqueue_ask(struct ask *ask)
{
	struct hf_asks *asks = ask->asks;

	if (!ask->queued)
		return;
	*(ask->before == NULL ? &asks->first : &ask->before->after) = ask->after;
	*(ask->after == NULL ? &asks->last : &ask->after->before) = ask->before;
	ask->queued = false;
}

/* --- what the reply to a read shows ----------------------------------------------------------- */

static void wake_askers(const struct ask *ask, bool news)
{
	for (size_t i = 0; i < ask->askers.len; i++) {
		const char *key = ask->askers.items[i]->key;

		if (news)
			hf_operator_enqueue(ask->asks->op, key);
		else
			hf_operator_enqueue_after(ask->asks->op, key, CALM);
	}
}

/* Reads of the Lease have failed for longer than a kubelet takes to renew it.  An API server that
 * did not answer Holdfast may not have answered the kubelet either.  So an unchanged Lease proves
 * nothing after such an outage. */
static bool had_outage(const struct ask *ask)
{
	return ask->failures > 0 && ask->asked_at != HF_TIME_NONE &&
	       ask->sent_at - ask->asked_at > LEASE_OUTAGE;
}

/* Takes the reply to the read of a Lease. Returns true if the reply shows something new. */
static bool lease_read(struct ask *ask, const struct hf_reply *reply)
{
	hf_time now = hf_loop_mono(ask->asks->op->loop);
	bool there = reply->code == 0;
	const char *renewal = there ? hf_node_lease_renewal(reply->object) : NULL;
	bool news = !ask->known || !hf_streq(renewal, ask->renewal);

	if (news) {
		/* The kubelet renewed the Lease at some time after the previous read was sent. */
		if (renewal != NULL && ask->renewal != NULL)
			ask->renewed_at = ask->asked_at;
		free(ask->renewal);
		ask->renewal = renewal == NULL ? NULL : hf_xstrdup(renewal);
		ask->since = renewal == NULL ? HF_TIME_NONE : now;
	} else if (renewal != NULL && had_outage(ask)) {
		ask->since = now;
		news = true;
	}
	ask->asked_at = ask->sent_at;
	return news;
}

static bool node_read(struct ask *ask, const struct hf_reply *reply)
{
	struct hf_operator *op = ask->asks->op;
	bool missing = reply->code != 0, off = false, news;

	if (!missing) {
		struct hf_node_facts facts;

		hf_node_read(reply->object, op->scratch, &facts);
		off = facts.out_of_service;
		hf_arena_reset(op->scratch);
		hf_nodes_put(op->facts.nodes, reply->object);
	}
	news = !ask->known || missing != ask->missing || off != ask->off;
	ask->looked_at = ask->sent_at;
	ask->missing = missing;
	ask->off = off;
	return news;
}

/* Note whether one node at a time may use the claim.  A claim that is gone counts as exclusive,
 * because nothing is known of its volume. */
static void claim_read(struct ask *ask, const struct hf_reply *reply)
{
	const struct hf_json *modes = reply->code == 0 ? hf_json_path(hf_doc_json(reply->object),
								      "spec", "accessModes", NULL)
						       : NULL;

	ask->exclusive = reply->code != 0;
	for (size_t i = 0; i < hf_json_len(modes); i++) {
		const char *mode = hf_json_str(hf_json_item(modes, i), "");

		if (hf_streq(mode, "ReadWriteOnce") || hf_streq(mode, "ReadWriteOncePod"))
			ask->exclusive = true;
	}
}

static void on_reply(void *arg, const struct hf_reply *reply)
{
	struct ask *ask = arg;
	struct hf_asks *asks = ask->asks;
	hf_time now = hf_loop_mono(asks->op->loop), wait = HF_ASKS_INTERVAL;
	bool good = reply->code == 0 || reply->code == HF_E_NOT_FOUND, news = true;

	ask->call = NULL;
	asks->in_flight--;
	hf_operator_heard(asks->op, reply);
	if (!good) {
		for (unsigned i = 0; i < ask->failures && wait < HF_ASKS_RETRY_MAX; i++)
			wait *= 2;
		if (ask->failures++ == 0)
			hf_operator_problem(asks->op, ask->key, reply->code, reply->message);
		queue_ask(ask, now + (wait < HF_ASKS_RETRY_MAX ? wait : HF_ASKS_RETRY_MAX));
		send_due(asks);
		return;
	}
	switch (ask->kind) {
	case HF_ASK_LEASE: news = lease_read(ask, reply); break;
	case HF_ASK_NODE: news = node_read(ask, reply); break;
	case HF_ASK_CLAIM: claim_read(ask, reply); break;
	}
	ask->failures = 0;
	ask->known = true;
	/* The access modes of a claim never change, so a claim is read only once. */
	if (ask->kind != HF_ASK_CLAIM)
		queue_ask(ask, now + wait);
	wake_askers(ask, news);
	send_due(asks);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void send_read(struct ask *ask)
{
	static const struct hf_resource *const resources[] = {
		[HF_ASK_LEASE] = &hf_leases,
		[HF_ASK_NODE] = &hf_nodes,
		[HF_ASK_CLAIM] = &hf_persistentvolumeclaims,
	};
	struct hf_asks *asks = ask->asks;
	const struct hf_request request = {
		.verb = HF_VERB_GET,
		.resource = resources[ask->kind],
		.ns = ask->ns,
		.name = ask->name,
		.timeout = asks->op->options.request_timeout,
	};

	unqueue_ask(ask);
	ask->sent_at = hf_loop_mono(asks->op->loop);
	asks->in_flight++;
	ask->call = hf_store_request(asks->op->store, &request, on_reply, ask);
}

/* When the next read may be sent under the limit of HF_ASKS_RATE: now, or later. */
static hf_time allowed_at(struct hf_asks *asks, hf_time now)
{
	asks->tokens += HF_ASKS_RATE * (double)(now - asks->tokens_at) / (double)HF_SECOND;
	asks->tokens_at = now;
	if (asks->tokens > BURST)
		asks->tokens = BURST;
	if (asks->tokens >= 1)
		return now;
	return now + (hf_time)((1 - asks->tokens) / HF_ASKS_RATE * (double)HF_SECOND) + 1;
}

static void send_due(struct hf_asks *asks)
{
	hf_time now = hf_loop_mono(asks->op->loop);

	while (asks->first != NULL && !asks->stopped && asks->in_flight < HF_ASKS_IN_FLIGHT_MAX) {
		hf_time allowed = allowed_at(asks, now);
		hf_time at = asks->first->due > allowed ? asks->first->due : allowed;

		if (at > now) {
			hf_timer_arm(asks->timer, at - now);
			return;
		}
		asks->tokens--;
		send_read(asks->first);
	}
}

static void on_timer(void *arg)
{
	send_due(arg);
}

/* --- which job asks for which read ------------------------------------------------------------ */

static void ask_free(void *arg)
{
	struct ask *ask = arg;

	if (ask->call != NULL) {
		hf_call_cancel(ask->call);
		ask->asks->in_flight--;
	}
	unqueue_ask(ask);
	HF_VEC_RELEASE(&ask->askers);
	free(ask->renewal);
	free(ask->ns);
	free(ask->key);
	free(ask);
}

static char *key_of(enum hf_ask_kind kind, const char *ns, const char *name)
{
	if (kind == HF_ASK_CLAIM)
		return hf_xasprintf(CLAIM_KEY "%s/%s", ns, name);
	return hf_xasprintf("%s%s", kind == HF_ASK_LEASE ? LEASE_KEY : NODE_KEY, name);
}

/* Finds or adds the ask for an object. NULL: there are too many asks. */
static struct ask *ask_make(struct hf_asks *asks, const struct hf_ask *wanted, const char *ns)
{
	HF_AUTOFREE char *key = key_of(wanted->kind, ns, wanted->name);
	struct ask *ask = hf_map_get(asks->table, key);

	if (ask != NULL)
		return ask;
	ask = hf_xcalloc(1, sizeof(*ask));
	if (!hf_map_put(asks->table, key, ask)) {
		free(ask);
		if (!asks->full_told)
			hf_operator_problem(asks->op, key, HF_E_TOO_LARGE,
					    "plans ask for more objects than the operator may "
					    "read: further Leases, nodes and claims are not read");
		asks->full_told = true;
		return NULL;
	}
	ask->asks = asks;
	ask->kind = wanted->kind;
	ask->name = strrchr(key, '/') + 1;
	ask->key = hf_steal(&key);
	if (wanted->kind != HF_ASK_NODE)
		ask->ns = hf_xstrdup(wanted->kind == HF_ASK_LEASE ? LEASE_NS : ns);
	ask->askers.len_max = 2 * HF_QUEUE_KEYS_MAX;
	ask->since = ask->renewed_at = ask->looked_at = ask->asked_at = HF_TIME_NONE;
	return ask;
}

/* Find or make the entry for an object, and add the job to its askers. */
static struct ask *ask_ref(struct asker *asker, const struct hf_ask *wanted, const char *ns,
			   struct hf_asks *asks)
{
	struct ask *ask = ask_make(asks, wanted, ns);

	if (ask == NULL)
		return NULL;
	/* The list holds each job once, or twice while a job's new asks replace its old ones. */
	bool pushed = HF_VEC_PUSH(&ask->askers, asker);

	hf_assert(pushed);
	/* The entry is new: it was not read yet, and no read is planned or under way. */
	if (!ask->known && !ask->queued && ask->call == NULL)
		queue_ask(ask, hf_loop_mono(asks->op->loop));
	return ask;
}

static void ask_unref(struct asker *asker, struct ask *ask)
{
	for (size_t i = 0; i < ask->askers.len; i++) {
		if (ask->askers.items[i] == asker) {
			HF_VEC_REMOVE(&ask->askers, i);
			break;
		}
	}
	if (ask->askers.len == 0)
		hf_map_remove(ask->asks->table, ask->key);
}

static bool same_asks(const struct asker *asker, const struct hf_plan *plan)
{
	if (asker->len != plan->asks_len)
		return false;
	for (size_t i = 0; i < asker->len; i++)
		if (asker->asks[i]->kind != plan->asks[i].kind ||
		    !hf_streq(asker->asks[i]->name, plan->asks[i].name))
			return false;
	return true;
}

static void asker_release(struct asker *asker)
{
	for (size_t i = 0; i < asker->len; i++)
		ask_unref(asker, asker->asks[i]);
	free(asker->asks);
	asker->asks = NULL;
	asker->len = 0;
}

static void asker_free(void *arg)
{
	struct asker *asker = arg;

	asker_release(asker);
	free(asker->key);
	free(asker);
}

static struct asker *asker_make(struct hf_asks *asks, const char *key)
{
	struct asker *asker = hf_xcalloc(1, sizeof(*asker));

	asker->key = hf_xstrdup(key);
	/* Cannot fail: there are at most as many askers as jobs. */
	bool put = hf_map_put(asks->askers, key, asker);

	hf_assert(put);
	return asker;
}

void hf_asks_set(struct hf_asks *asks, const char *key, const char *ns, const struct hf_plan *plan)
{
	struct asker *asker = hf_map_get(asks->askers, key), old;
	bool read_before = false;

	if (plan->asks_len == 0 || asks->stopped) {
		hf_asks_forget(asks, key);
		return;
	}
	if (asker == NULL)
		asker = asker_make(asks, key);
	else if (same_asks(asker, plan))
		return;
	/* Add the new asks before removing the old ones, so that an object in both lists is not
	 * forgotten. */
	old = *asker;
	asker->asks = hf_xcalloc(plan->asks_len, sizeof(*asker->asks));
	asker->len = 0;
	for (size_t i = 0; i < plan->asks_len; i++) {
		struct ask *ask = ask_ref(asker, &plan->asks[i], ns, asks);

		if (ask != NULL)
			asker->asks[asker->len++] = ask;
		read_before |= ask != NULL && ask->known && ask->kind == HF_ASK_CLAIM;
	}
	for (size_t i = 0; i < old.len; i++)
		ask_unref(asker, old.asks[i]);
	free(old.asks);
	/* A claim was already read for another job, so this job must be stepped to use the
	 * result. */
	if (read_before)
		hf_operator_enqueue_after(asks->op, key, CALM);
	send_due(asks);
}

void hf_asks_forget(struct hf_asks *asks, const char *key)
{
	/* If a read of the job was cancelled, another read may be sent in its place. */
	if (hf_map_remove(asks->askers, key))
		send_due(asks);
}

/* --- facts for a step ------------------------------------------------------------------------- */

static const struct ask *find_ask(const struct hf_asks *asks, enum hf_ask_kind kind,
				  const char *name)
{
	HF_AUTOFREE char *key = NULL;

	if (hf_map_len(asks->table) == 0)
		return NULL;
	key = key_of(kind, "", name);
	return hf_map_get(asks->table, key);
}

void hf_asks_see_node(const struct hf_asks *asks, const struct hf_moment *moment,
		      struct hf_node_seen *node)
{
	const struct ask *lease = find_ask(asks, HF_ASK_LEASE, node->name), *live;

	if (lease != NULL && lease->known) {
		node->lease_read_at = hf_moment_at(moment, lease->asked_at);
		node->lease_since = hf_moment_at(moment, lease->since);
		node->renewed_at = hf_moment_at(moment, lease->renewed_at);
		if (lease->renewal == NULL ||
		    hf_time_parse(lease->renewal, &node->renew_time, NULL) != 0)
			node->renew_time = HF_TIME_NONE;
	}
	/* A live read confirms the state of the node if both agree on whether the node exists and is out of
	 * service.  A watch may repeat old events after the read. */
	live = find_ask(asks, HF_ASK_NODE, node->name);
	if (live != NULL && live->known && live->missing == (node->ready == HF_NODE_GONE) &&
	    live->off == node->out_of_service)
		node->confirmed_at = hf_moment_at(moment, live->looked_at);
}

void hf_asks_see_claims(const struct hf_asks *asks, const char *key, struct hf_arena *arena,
			struct hf_observed *seen)
{
	const struct asker *asker = hf_map_get(asks->askers, key);
	struct hf_claim_seen *claims;

	if (asker == NULL)
		return;
	claims = HF_ARENA_ARRAY(arena, struct hf_claim_seen, asker->len + 1);
	for (size_t i = 0; i < asker->len; i++) {
		const struct ask *ask = asker->asks[i];

		if (ask->kind == HF_ASK_CLAIM && ask->known)
			claims[seen->claims_len++] =
				(struct hf_claim_seen){.name = hf_arena_strdup(arena, ask->name),
						       .exclusive = ask->exclusive};
	}
	seen->claims = claims;
}

/* --- life ------------------------------------------------------------------------------------- */

struct hf_asks *hf_asks_create(struct hf_operator *op)
{
	struct hf_asks *asks = hf_xcalloc(1, sizeof(*asks));

	asks->op = op;
	asks->table = hf_map_create(HF_ASKS_MAX, op->options.seed, ask_free);
	asks->askers = hf_map_create(HF_QUEUE_KEYS_MAX, op->options.seed, asker_free);
	asks->timer = hf_timer_create(op->loop, on_timer, asks);
	asks->tokens = BURST;
	asks->tokens_at = hf_loop_mono(op->loop);
	return asks;
}

void hf_asks_stop(struct hf_asks *asks)
{
	asks->stopped = true;
	hf_timer_disarm(asks->timer);
}

struct hf_asks *hf_asks_destroy(struct hf_asks *asks)
{
	if (asks == NULL)
		return NULL;
	hf_map_destroy(asks->askers);
	hf_map_destroy(asks->table);
	hf_timer_destroy(asks->timer);
	free(asks);
	return NULL;
}
