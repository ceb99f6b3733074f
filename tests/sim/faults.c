/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/check.h"

#include "base/str.h"
#include "sim/crashes.h"
#include "sim/nodes.h"

#include <string.h>

/*
 * What goes wrong between the operator and the store, and where the operator dies: before a request
 * is sent, after it was done and before the reply arrives, at an event, or some time later.
 */

/* More requests in one moment than three jobs of 16 pods need, with services, events and reads. */
#define BUSY_MAX 2000
#define LATE_MAX (2 * HF_SECOND)
#define LIST_LATE_MAX (10 * HF_SECOND)
#define WATCH_LATE_MAX (5 * HF_SECOND)
#define HISTORY_PAST_MAX 50 /* the most changes by which a list from the past lags behind */
#define LOST_MAX (2 * HF_MINUTE)
#define QUOTA_MAX (3 * HF_MINUTE)

static const char *verb_name(const struct hf_request *request)
{
	static const char *const names[] = {"get", "list", "create", "update", "patch", "delete"};

	return names[request->verb];
}

static const char *object_name(const struct hf_request *request)
{
	if (request->name != NULL)
		return request->name;
	return request->body != NULL ? hf_doc_name(request->body) : "*";
}

static bool writes_pod(const struct hf_request *request)
{
	return request->verb == HF_VERB_CREATE && request->resource == &hf_pods;
}

/* --- refusals ---------------------------------------------------------------------------------- */

static bool refuse(struct sim *sim, const struct hf_request *request, struct hf_fault *fault)
{
	static const struct {
		enum sim_trouble trouble;
		int code;
		hf_time retry_after;
	} kinds[] = {
		{SIM_REFUSE_409, HF_E_CONFLICT, 0},
		{SIM_REFUSE_429, HF_E_TOO_MANY, HF_SECOND},
		{SIM_REFUSE_500, HF_E_INTERNAL, 0},
		{SIM_REFUSE_503, HF_E_UNAVAILABLE, 3 * HF_SECOND},
		{SIM_REFUSE_TIMEOUT, HF_E_TIMEOUT, 0},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(kinds); i++) {
		if (!sim_happens(sim, kinds[i].trouble))
			continue;
		fault->refuse = kinds[i].code;
		fault->retry_after = kinds[i].retry_after;
		fault->message = "refused by the simulator";
		return true;
	}
	/* A used-up quota stays used up for a while. */
	if (writes_pod(request) && sim_happens(sim, SIM_REFUSE_QUOTA))
		sim->quota_until = sim_now(sim) + sim_how_span(sim, QUOTA_MAX);
	if (!writes_pod(request) || sim->calm || sim_now(sim) >= sim->quota_until)
		return false;
	fault->refuse = HF_E_FORBIDDEN;
	fault->message = "exceeded quota: simulated";
	return true;
}

static void maybe_crash(struct sim_life *life, struct hf_fault *fault)
{
	struct sim *sim = life->sim;

	if (sim_happens(sim, SIM_DIES_UNSENT)) {
		fault->delay_before = HF_MINUTE;
		sim_crash_in(life, 0);
	} else if (sim_happens(sim, SIM_DIES_UNANSWERED)) {
		fault->delay_after = HF_MINUTE;
		sim_crash_in(life, HF_MS);
	} else if (sim_happens(sim, SIM_DIES_LATER)) {
		sim_crash_in(life, sim_how_span(sim, HF_SECOND));
	}
}

static void tell_request(const struct sim_life *life, const struct hf_request *request)
{
	struct sim *sim = life->sim;
	bool is_lease = hf_streq(request->resource->plural, "leases");

	if (!hf_streq(request->resource->plural, "events") && !is_lease)
		sim_tell(sim, "%s: %s %s %s%s%s", life->name, verb_name(request),
			 request->resource->plural, object_name(request),
			 request->subresource ? "/" : "",
			 request->subresource ? request->subresource : "");
}

static bool deletes_job(const struct hf_request *request)
{
	return request->verb == HF_VERB_DELETE && hf_resource_is_job(request->resource);
}

/* Deletes of jobs are rare. Often a person wants to keep the job at this moment, and makes its time
 * to live longer. */
static void keep(struct sim *sim, const struct hf_request *request)
{
	if (sim->mood.weight[SIM_MEDDLED] > 0 && hf_rng_below(&sim->dice.of[SIM_MEDDLED], 4) == 0 &&
	    sim_do(sim, SIM_MEDDLED))
		sim_people_keep(sim, request);
}

static void put_fault(struct sim *sim, const struct hf_request *request, struct hf_fault *fault)
{
	if (deletes_job(request))
		keep(sim, request);
	else if (request->verb != HF_VERB_LIST && sim_happens(sim, SIM_MEDDLED))
		sim_people_act(sim);
	if (refuse(sim, request, fault))
		return;
	if (sim_happens(sim, SIM_REPLY_LOST)) {
		fault->lose_reply = true;
	} else if (request->verb == HF_VERB_LIST && sim_happens(sim, SIM_LIST_LATE)) {
		/* The reply to a list is late, and objects change meanwhile. */
		fault->delay_after = sim_how_span(sim, LIST_LATE_MAX);
	} else if (sim_happens(sim, SIM_REPLY_LATE)) {
		fault->delay_before = sim_how_span(sim, LATE_MAX);
		fault->delay_after = sim_how_span(sim, LATE_MAX);
	}
	/* The operator asks for the present. A server that does not know that it is behind (it was
	 * cut off from the other servers, or its store was restored) answers with the past all the
	 * same. The watch goes on from there: its events may be known already, or speak of another
	 * operator's old writes. */
	if (request->verb == HF_VERB_LIST && sim_happens(sim, SIM_LIST_PAST)) {
		fault->stale = 1 + sim_how(sim, HISTORY_PAST_MAX);
		fault->unaware = true;
		sim_past_told(sim, request->resource, fault->stale);
	}
}

/* An operator whose writes are undone at once would act without end, and time would stand still. */
static void check_busy(struct sim *sim)
{
	if (sim->busy_at != sim_now(sim))
		sim->busy = 0;
	sim->busy_at = sim_now(sim);
	if (++sim->busy > BUSY_MAX)
		sim_fail(sim, "45 livelock", "%u requests in one moment", sim->busy);
}

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *fault)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;
	bool is_event = hf_streq(request->resource->plural, "events");
	bool is_lease = hf_streq(request->resource->plural, "leases");

	sim->requests++;
	check_busy(sim);
	/* Requests for Leases do not count as work, because operators renew their Lease or try to
	 * get it all the time. */
	sim->work += !is_lease;
	sim->requests_quiet += sim->quiet && !is_lease;
	tell_request(life, request);
	if (life->stopped)
		sim_fail(sim, "stop", "the operator sent a request after it had reported its stop");
	sim_nodes_asked(sim, request);
	sim_check_request(sim, request);
	sim_check_leader(life, request);
	if (sim->script != NULL)
		sim_script_request(life, fault);
	if (!sim->calm)
		put_fault(sim, request, fault);
	if (deletes_job(request))
		sim_check_time_to_live(sim, request);
	if (!sim->calm && !is_event && !is_lease)
		maybe_crash(life, fault);
}

/* --- watches ----------------------------------------------------------------------------------- */

static bool ends(struct sim *sim, struct hf_event_fault *fault)
{
	if (sim_happens(sim, SIM_WATCH_410)) {
		sim_check_gap(sim);
		fault->end = HF_E_GONE;
	} else if (sim_happens(sim, SIM_WATCH_5XX)) {
		fault->end = sim_how(sim, 2) == 0 ? HF_E_UNAVAILABLE : HF_E_INTERNAL;
	}
	return fault->end != 0;
}

static bool is_unseen(struct sim *sim, const struct hf_event *event)
{
	const struct sim_pod_truth *pod =
		event->object ? sim_pod_truth(sim, hf_doc_uid(event->object)) : NULL;

	return pod != NULL && pod->unseen;
}

/* An event is lost. The operator's watch ends some time later, and the operator lists again. */
static void lose(struct sim_life *life, struct hf_event_fault *fault)
{
	sim_check_gap(life->sim);
	fault->drop = true;
	life->relist_twice = true;
	if (!hf_timer_armed(life->relist_timer))
		hf_timer_arm(life->relist_timer, sim_how_span(life->sim, LOST_MAX));
}

static void on_event(void *arg, const struct hf_watch_options *options,
		     const struct hf_event *event, struct hf_event_fault *fault)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;

	if (is_unseen(sim, event)) {
		lose(life, fault);
		return;
	}
	if (sim->calm || ends(sim, fault))
		return;
	if (sim_happens(sim, SIM_WATCH_LOST)) {
		lose(life, fault);
		return;
	}
	if (sim_happens(sim, SIM_WATCH_LAG))
		fault->delay = sim_how_span(sim, sim->mood.lag_max);
	else if (sim_happens(sim, SIM_WATCH_LATE))
		fault->delay = sim_how_span(sim, WATCH_LATE_MAX);
	fault->duplicate = sim_happens(sim, SIM_WATCH_TWICE);
	if (sim_happens(sim, SIM_DIES_AT_EVENT))
		sim_crash_in(life, 0);
}

void sim_faults_init(struct sim_life *life, struct hf_memstore_faults *ret_faults)
{
	*ret_faults =
		(struct hf_memstore_faults){.request = on_request, .event = on_event, .arg = life};
}
