/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "base/str.h"

/*
 * What goes wrong between the operator and the store, and where the operator dies: before a
 * request is sent, after it was done and before the reply is in, or some time after.
 */

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

static void refuse(struct sim *sim, struct hf_fault *fault)
{
	static const struct {
		int code;
		hf_time retry_after;
	} kinds[] = {
		{HF_E_TOO_MANY, HF_SECOND}, {HF_E_INTERNAL, 0}, {HF_E_UNAVAILABLE, 0},
		{HF_E_TIMEOUT, 0},          {HF_E_CONFLICT, 0}, {HF_E_UNAVAILABLE, 3 * HF_SECOND},
	};
	size_t i = (size_t)hf_rng_below(&sim->rng, HF_ARRAY_LEN(kinds));

	fault->refuse = kinds[i].code;
	fault->retry_after = kinds[i].retry_after;
	fault->message = "refused by the simulator";
	sim_tell(sim, "  fault: refused with %s", hf_code_name(fault->refuse));
}

static void maybe_crash(struct sim_life *life, struct hf_fault *fault)
{
	struct sim *sim = life->sim;

	if (!sim_chance(sim, sim->mood.crash_permille))
		return;
	switch (hf_rng_below(&sim->rng, 4)) {
	case 0:
		sim_tell(sim, "  fault: the operator dies before this is sent");
		fault->delay_before = HF_MINUTE;
		sim_crash_in(life, 0);
		break;
	case 1:
		sim_tell(sim, "  fault: the operator dies before the reply is in");
		fault->delay_after = HF_MINUTE;
		sim_crash_in(life, HF_MS);
		break;
	default: sim_crash_in(life, sim_span(sim, HF_SECOND)); break;
	}
}

static void tell_request(const struct sim_life *life, const struct hf_request *request)
{
	struct sim *sim = life->sim;
	bool is_lease = hf_streq(request->resource->plural, "leases");

	if (!hf_streq(request->resource->plural, "events") && !(is_lease && sim->calm))
		sim_tell(sim, "%s: %s %s %s%s%s", life->name, verb_name(request),
			 request->resource->plural, object_name(request),
			 request->subresource ? "/" : "",
			 request->subresource ? request->subresource : "");
}

static void on_request(void *arg, const struct hf_request *request, struct hf_fault *fault)
{
	struct sim_life *life = arg;
	struct sim *sim = life->sim;
	bool is_event = hf_streq(request->resource->plural, "events");
	bool is_lease = hf_streq(request->resource->plural, "leases");

	sim->requests++;
	/* Whoever leads, or would like to, goes on saying so. */
	sim->requests_quiet += sim->quiet && !is_lease;
	tell_request(life, request);
	if (life->stopped)
		sim_fail(sim, "stop", "a request after the operator said it had stopped");
	sim_check_request(sim, request);
	sim_check_leader(life, request);
	if (sim->calm)
		return;
	if (sim_chance(sim, sim->mood.refuse_permille)) {
		refuse(sim, fault);
	} else if (sim_chance(sim, sim->mood.lose_permille)) {
		sim_tell(sim, "  fault: done, but the reply is lost");
		fault->lose_reply = true;
	} else if (request->verb == HF_VERB_LIST && sim_chance(sim, sim->mood.late_permille)) {
		/* A long list takes its time, and much happens behind it. */
		fault->delay_after = sim_span(sim, 10 * HF_SECOND);
	} else if (sim_chance(sim, sim->mood.late_permille)) {
		fault->delay_before = sim_span(sim, 2 * HF_SECOND);
		fault->delay_after = sim_span(sim, 2 * HF_SECOND);
	}
	if (!is_event && !is_lease)
		maybe_crash(life, fault);
}

static void on_event(void *arg, const struct hf_watch_options *options,
		     const struct hf_event *event, struct hf_event_fault *fault)
{
	static const int ends[] = {HF_E_GONE, HF_E_UNAVAILABLE, HF_E_INTERNAL};
	struct sim *sim = ((struct sim_life *)arg)->sim;

	if (sim->calm)
		return;
	if (sim_chance(sim, sim->mood.watch_end_permille)) {
		fault->end = ends[hf_rng_below(&sim->rng, HF_ARRAY_LEN(ends))];
		sim_tell(sim, "  fault: the watch of %s ends with %s", options->resource->plural,
			 hf_code_name(fault->end));
	} else if (sim_chance(sim, sim->mood.watch_late_permille)) {
		fault->delay = sim_span(sim, 5 * HF_SECOND);
	}
	fault->duplicate = sim_chance(sim, sim->mood.watch_twice_permille);
}

void sim_faults_init(struct sim_life *life, struct hf_local_faults *ret_faults)
{
	*ret_faults =
		(struct hf_local_faults){.request = on_request, .event = on_event, .arg = life};
}
