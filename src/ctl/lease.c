/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * Leader election: reads, takes, renews and releases a Lease.
 *
 * The tick timer starts each read or write; the expiry timer ends the leadership if no renewal
 * succeeds in time. While the Lease is being released, the expiry timer limits the wait for the
 * last answer.
 *
 * Invariants: at most one request is in flight. `held` is true only if a write of ours was
 * acknowledged, and only until valid_until.
 */
#include "ctl/lease.h"

#include "base/mem.h"
#include "base/str.h"
#include "ctl/backoff.h"
#include "store/resource.h"

#include <stdlib.h>

#define TRANSITIONS_MAX INT32_MAX
/* Delay before the Lease is read again after a conflict. Without it two competing processes would
 * repeat their requests at full speed. */
#define CONFLICT_DELAY (100 * HF_MS)

struct hf_lease {
	struct hf_lease_options options;
	char *ns, *name, *identity;
	struct hf_rng rng;
	struct hf_timer *tick;   /* starts the next read or write */
	struct hf_timer *expiry; /* fires when the held Lease runs out */
	struct hf_task *released;

	struct hf_call *call;
	hf_time sent; /* monotonic time when the write in flight was sent */
	/* The Lease as this process last wrote it; NULL: read the Lease before the next write. */
	struct hf_doc *doc;

	bool held;
	hf_time valid_until; /* monotonic clock; valid while held */

	/* The record that was last read or written, its holder, and the time since when it has not
	 * changed. */
	char *holder;
	struct hf_doc *record;
	hf_time record_since;

	bool releasing;
	hf_task_fn done;
	void *done_arg;
};

static void read_lease(struct hf_lease *lease);
static void send_release(struct hf_lease *lease);

static hf_time read_clock(const struct hf_lease *lease)
{
	return hf_loop_mono(lease->options.loop);
}

hf_time hf_lease_left(const struct hf_lease *lease)
{
	hf_time left = lease->valid_until - read_clock(lease);

	return lease->held && !lease->releasing && left > 0 ? left : 0;
}

const char *hf_lease_holder(const struct hf_lease *lease)
{
	return hf_str_or(lease->holder, "");
}

static void report_problem(const struct hf_lease *lease, int code, const char *message)
{
	if (lease->options.problem != NULL)
		lease->options.problem(lease->options.arg, code, message);
}

static void lose_lease(struct hf_lease *lease, const char *why)
{
	if (!lease->held)
		return;
	lease->held = false;
	hf_timer_disarm(lease->expiry);
	if (!lease->releasing)
		lease->options.changed(lease->options.arg, false, why);
}

static void expire_lease(void *arg)
{
	struct hf_lease *lease = arg;

	if (hf_lease_left(lease) == 0)
		lose_lease(lease, "the Lease was not renewed in time");
}

/* --- the record ---------------------------------------------------------------------------- */

/* True if the record has the same UID and spec. Metadata is ignored, because other clients may
 * change it. */
static bool is_same_record(struct hf_doc *record, struct hf_doc *doc, const struct hf_json *spec)
{
	return record != NULL && hf_streq(hf_doc_uid(record), hf_doc_uid(doc)) &&
	       hf_json_equal(hf_json_get(hf_doc_json(record), "spec"), spec);
}

/* Remembers a Lease that was read or written. If its record differs from the last one, record_since
 * becomes now. */
static void observe_record(struct hf_lease *lease, struct hf_doc *doc)
{
	const struct hf_json *spec = hf_json_get(hf_doc_json(doc), "spec");

	if (!is_same_record(lease->record, doc, spec)) {
		hf_doc_unref(lease->record);
		lease->record = hf_doc_ref(doc);
		lease->record_since = read_clock(lease);
	}
	free(lease->holder);
	lease->holder = hf_xstrdup(hf_json_str(hf_json_get(spec, "holderIdentity"), ""));
}

static hf_time record_duration(const struct hf_lease *lease, struct hf_doc *doc)
{
	int64_t seconds = hf_json_i64(
		hf_json_path(hf_doc_json(doc), "spec", "leaseDurationSeconds", NULL), 0);

	if (seconds <= 0)
		return lease->options.duration;
	return seconds < HF_LEASE_DURATION_MAX / HF_SECOND ? seconds * HF_SECOND
							   : HF_LEASE_DURATION_MAX;
}

/* True if this process may take the Lease: the record has no other holder, or the other holder's
 * record has expired. */
static bool is_free(const struct hf_lease *lease, struct hf_doc *doc)
{
	if (lease->holder[0] == '\0' || hf_streq(lease->holder, lease->identity))
		return true;
	return read_clock(lease) - lease->record_since >= record_duration(lease, doc);
}

static void write_record(const struct hf_lease *lease, struct hf_json *spec, bool give_up)
{
	const char *before = hf_json_str(hf_json_get(spec, "holderIdentity"), "");
	int64_t transitions = hf_json_i64(hf_json_get(spec, "leaseTransitions"), 0);
	bool ours = hf_streq(before, lease->identity);
	char text[HF_TIME_TEXT_MAX];

	hf_time_format_micro(hf_loop_wall(lease->options.loop), text);
	if (transitions < 0 || transitions >= TRANSITIONS_MAX)
		transitions = 0;
	if (!ours || give_up || hf_json_path_str(spec, "acquireTime", NULL) == NULL)
		hf_json_set_str(spec, "acquireTime", text);
	hf_json_set_str(spec, "renewTime", text);
	hf_json_set_i64(spec, "leaseTransitions", transitions + !ours);
	hf_json_set_str(spec, "holderIdentity", give_up ? "" : lease->identity);
	/* A released Lease has no holder and a duration of one second, as client-go writes it. */
	hf_json_set_i64(spec, "leaseDurationSeconds",
			give_up ? 1 : lease->options.duration / HF_SECOND);
}

static struct hf_doc *make_lease_doc(const struct hf_lease *lease, struct hf_doc *before,
				     bool give_up)
{
	struct hf_json *root = before != NULL ? hf_doc_copy_json(before) : hf_json_object();
	struct hf_json *metadata = hf_json_ensure_object(root, "metadata");

	hf_json_set_str(root, "apiVersion", "coordination.k8s.io/v1");
	hf_json_set_str(root, "kind", "Lease");
	hf_json_set_str(metadata, "name", lease->name);
	hf_json_set_str(metadata, "namespace", lease->ns);
	write_record(lease, hf_json_ensure_object(root, "spec"), give_up);
	return hf_doc_from_json(root);
}

/* --- requests ------------------------------------------------------------------------------ */

static void schedule_next(struct hf_lease *lease, hf_time after)
{
	if (lease->releasing)
		send_release(lease);
	else
		hf_timer_arm(lease->tick, after);
}

/* Returns the delay until the next request. A process that waits for the Lease adds jitter. The
 * holder renews it in even steps. */
static hf_time next_delay(struct hf_lease *lease)
{
	hf_time retry = lease->options.retry;

	if (lease->held)
		return retry;
	return retry + (hf_time)hf_rng_below(&lease->rng, (uint64_t)(retry / 10 * 12));
}

/* Returns half of the renewal deadline, so that a second try is possible before the deadline. */
static hf_time request_timeout(const struct hf_lease *lease)
{
	hf_time half = lease->options.renew_deadline / 2, left = hf_lease_left(lease);

	return lease->held && left > 0 && left < half ? left : half;
}

static void forget_doc(struct hf_lease *lease)
{
	lease->doc = hf_doc_unref(lease->doc);
}

static void handle_granted(struct hf_lease *lease, struct hf_doc *object)
{
	hf_time until = lease->sent + lease->options.renew_deadline;

	forget_doc(lease);
	observe_record(lease, object);
	if (!hf_streq(lease->holder, lease->identity)) {
		lose_lease(lease, "the API server did not store our identity as the holder");
		schedule_next(lease, next_delay(lease));
		return;
	}
	lease->doc = hf_doc_ref(object);
	if (until <= read_clock(lease)) {
		/* The answer came so late that the renewed Lease has run out already. */
		lose_lease(lease, "the Lease was not renewed in time");
		schedule_next(lease, CONFLICT_DELAY);
		return;
	}
	lease->valid_until = until;
	hf_timer_arm(lease->expiry, until - read_clock(lease));
	if (!lease->held) {
		lease->held = true;
		if (!lease->releasing)
			lease->options.changed(lease->options.arg, true, "");
	}
	schedule_next(lease, next_delay(lease));
}

static void handle_write_failure(struct hf_lease *lease, const struct hf_reply *reply)
{
	hf_time after = next_delay(lease);

	/* After a failed write the stored record is unknown, so read the Lease before the next
	 * write. */
	forget_doc(lease);
	if (reply->code == HF_E_CONFLICT || reply->code == HF_E_EXISTS ||
	    (reply->code == HF_E_NOT_FOUND && lease->held))
		after = CONFLICT_DELAY;
	else
		report_problem(lease, reply->code, reply->message);
	schedule_next(lease, after);
}

static void on_write_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_lease *lease = arg;

	lease->call = NULL;
	if (reply->code == 0)
		handle_granted(lease, reply->object);
	else
		handle_write_failure(lease, reply);
}

static void write_lease(struct hf_lease *lease, struct hf_doc *before)
{
	HF_AUTO_DOC doc = make_lease_doc(lease, before, false);
	const struct hf_request request = {
		.verb = before != NULL ? HF_VERB_UPDATE : HF_VERB_CREATE,
		.resource = &hf_leases,
		.ns = lease->ns,
		.name = before != NULL ? lease->name : NULL,
		.body = doc,
		.timeout = request_timeout(lease),
	};

	lease->sent = read_clock(lease);
	lease->call = hf_store_request(lease->options.store, &request, on_write_reply, lease);
}

static void handle_read(struct hf_lease *lease, struct hf_doc *object)
{
	observe_record(lease, object);
	if (is_free(lease, object)) {
		write_lease(lease, object);
		return;
	}
	lose_lease(lease, "another process has taken the Lease");
	schedule_next(lease, next_delay(lease));
}

static void on_read_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_lease *lease = arg;

	lease->call = NULL;
	if (lease->releasing) {
		send_release(lease);
	} else if (reply->code == 0) {
		handle_read(lease, reply->object);
	} else if (reply->code == HF_E_NOT_FOUND) {
		write_lease(lease, NULL);
	} else {
		report_problem(lease, reply->code, reply->message);
		schedule_next(lease, next_delay(lease));
	}
}

static void read_lease(struct hf_lease *lease)
{
	const struct hf_request request = {
		.verb = HF_VERB_GET,
		.resource = &hf_leases,
		.ns = lease->ns,
		.name = lease->name,
		.timeout = request_timeout(lease),
	};

	lease->call = hf_store_request(lease->options.store, &request, on_read_reply, lease);
}

static void on_tick(void *arg)
{
	struct hf_lease *lease = arg;

	hf_assert(lease->call == NULL);
	/* After a long pause of the process both timers are due, and this one may run first. So
	 * check here whether the Lease has run out. */
	if (lease->held && hf_lease_left(lease) == 0) {
		lose_lease(lease, "the Lease was not renewed in time");
		forget_doc(lease);
	}
	if (lease->doc != NULL)
		write_lease(lease, lease->doc);
	else
		read_lease(lease);
}

/* --- release -------------------------------------------------------------------------------- */

static void on_released(void *arg)
{
	struct hf_lease *lease = arg;
	hf_task_fn done = lease->done;

	hf_timer_disarm(lease->tick);
	hf_timer_disarm(lease->expiry);
	lease->done = NULL;
	if (done != NULL)
		done(lease->done_arg);
}

static void on_release_reply(void *arg, const struct hf_reply *reply)
{
	struct hf_lease *lease = arg;

	lease->call = NULL;
	lease->held = false;
	if (reply->code != 0)
		report_problem(lease, reply->code, reply->message);
	hf_task_post(lease->released);
}

static void send_release(struct hf_lease *lease)
{
	hf_time left = lease->valid_until - read_clock(lease);

	if (!lease->held || left <= 0 || lease->doc == NULL) {
		lease->held = false;
		hf_task_post(lease->released);
		return;
	}
	HF_AUTO_DOC doc = make_lease_doc(lease, lease->doc, true);
	const struct hf_request request = {
		.verb = HF_VERB_UPDATE,
		.resource = &hf_leases,
		.ns = lease->ns,
		.name = lease->name,
		.body = doc,
		.timeout = left < HF_LEASE_RELEASE_MAX ? left : HF_LEASE_RELEASE_MAX,
	};

	lease->call = hf_store_request(lease->options.store, &request, on_release_reply, lease);
}

static void give_up_release(struct hf_lease *lease)
{
	hf_call_cancel(lease->call);
	lease->call = NULL;
	lease->held = false;
	hf_task_post(lease->released);
}

/* The expiry timer has two uses: the end of the held Lease, and, during a release, the end of
 * the wait for the answer. */
static void on_expiry(void *arg)
{
	struct hf_lease *lease = arg;

	if (lease->releasing)
		give_up_release(lease);
	else
		expire_lease(lease);
}

void hf_lease_release(struct hf_lease *lease, hf_task_fn done, void *arg)
{
	hf_assert(!lease->releasing);
	lease->releasing = true;
	lease->done = done;
	lease->done_arg = arg;
	hf_timer_disarm(lease->tick);
	hf_timer_arm(lease->expiry, HF_LEASE_RELEASE_MAX);
	/* Wait for a write in flight: its answer has the version that the release must name. */
	if (lease->call == NULL)
		send_release(lease);
}

/* --- creation and destruction --------------------------------------------------------------- */

struct hf_lease *hf_lease_create(const struct hf_lease_options *options)
{
	struct hf_lease *lease = hf_xcalloc(1, sizeof(*lease));
	struct hf_lease_options *o = &lease->options;

	*o = *options;
	if (o->duration == 0)
		o->duration = HF_LEASE_DURATION;
	if (o->renew_deadline == 0)
		o->renew_deadline = HF_LEASE_RENEW_DEADLINE;
	if (o->retry == 0)
		o->retry = HF_LEASE_RETRY;
	hf_assert(o->retry < o->renew_deadline && o->renew_deadline < o->duration);
	hf_assert(!hf_str_is_empty(options->identity) && o->changed != NULL);
	lease->ns = hf_xstrdup(options->ns);
	lease->name = hf_xstrdup(options->name);
	lease->identity = hf_xstrdup(options->identity);
	hf_rng_init(&lease->rng, options->seed);
	lease->tick = hf_timer_create(o->loop, on_tick, lease);
	lease->expiry = hf_timer_create(o->loop, on_expiry, lease);
	lease->released = hf_task_create(o->loop, on_released, lease);
	return lease;
}

void hf_lease_start(struct hf_lease *lease)
{
	hf_timer_arm(lease->tick, 0);
}

struct hf_lease *hf_lease_destroy(struct hf_lease *lease)
{
	if (lease == NULL)
		return NULL;
	hf_call_cancel(lease->call);
	hf_timer_destroy(lease->tick);
	hf_timer_destroy(lease->expiry);
	hf_task_destroy(lease->released);
	hf_doc_unref(lease->doc);
	free(lease->ns);
	free(lease->name);
	free(lease->identity);
	free(lease->holder);
	hf_doc_unref(lease->record);
	free(lease);
	return NULL;
}
