/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health_plan_text.h"

static const char *name_of(const char *id)
{
	return id[0] ? id : "node";
}

static void add_span(struct hf_strbuf *sb, const char *what, hf_time at, hf_time zero)
{
	hf_time ms = (at - zero) / HF_MS;

	if (ms % 1000 == 0)
		hf_strbuf_addf(sb, "%s%llds", what, (long long)(ms / 1000));
	else
		hf_strbuf_addf(sb, "%s%lldms", what, (long long)ms);
}

static void add_fault(struct hf_strbuf *sb, const struct hf_health_fault *f)
{
	hf_strbuf_addf(sb, "  - %s %d", hf_health_detector_name(f->detector), f->code);
	if (f->subcode >= 0)
		hf_strbuf_addf(sb, ".%d", f->subcode);
	if (f->unit[0])
		hf_strbuf_addf(sb, " [%s]", f->unit);
	if (f->severity)
		hf_strbuf_addf(sb, " %s", hf_health_severity_name(f->severity));
	hf_strbuf_addf(sb, ": %s, %s, %s, ends by %s, x%llu%s%s\n", hf_health_class_name(f->cls),
		       hf_health_action_name(f->action), hf_health_scope_name(f->scope),
		       hf_health_clear_name(f->clear), (unsigned long long)f->count,
		       hf_health_fault_follows(f) ? ", follows another" : "",
		       f->covered ? ", covered by the node" : "");
}

static void add_devices(const struct hf_health_plan *plan, hf_time zero, struct hf_strbuf *sb)
{
	for (size_t i = 0; i < plan->memory.devices_len; i++) {
		const struct hf_health_device *d = &plan->memory.devices[i];

		hf_strbuf_addf(sb, "- %s: %s", name_of(d->id), hf_health_state_name(d->state));
		if (d->hold_until > plan->memory.now)
			add_span(sb, " held until ", d->hold_until, zero);
		hf_strbuf_addch(sb, '\n');
		for (size_t k = 0; k < d->faults_len; k++)
			if (d->faults[k].open)
				add_fault(sb, &d->faults[k]);
	}
}

static void add_conditions(const struct hf_health_plan *plan, struct hf_strbuf *sb)
{
	if (!plan->write_conditions)
		return;
	hf_strbuf_addstr(sb, "conditions:\n");
	for (size_t i = 0; i < HF_HEALTH_CONDITIONS; i++) {
		const struct hf_health_condition *c = &plan->memory.conditions[i];

		hf_strbuf_addf(sb, "- %s %s %s%s%s\n", hf_health_condition_names[i],
			       hf_health_truth_name(c->status), c->reason,
			       c->message[0] ? ": " : "", c->message);
	}
}

void hf_health_plan_render(const struct hf_health_plan *plan, hf_time zero, struct hf_strbuf *sb)
{
	for (size_t i = 0; i < plan->moves_len; i++) {
		const struct hf_health_move *m = &plan->moves[i];

		hf_strbuf_addf(sb, "- move %s: %s to %s, %s%s%s\n", name_of(m->device),
			       hf_health_state_name(m->from), hf_health_state_name(m->to),
			       hf_health_event_name(m->event), m->why[0] ? ": " : "", m->why);
	}
	add_devices(plan, zero, sb);
	for (size_t i = 0; i < plan->events_len; i++) {
		const struct hf_health_notice *e = &plan->events[i];

		hf_strbuf_addf(sb, "- event %s %s: %s\n", e->reason, name_of(e->device),
			       e->message);
	}
	add_conditions(plan, sb);
	hf_strbuf_addf(sb, "node: %s, %s%s%s\n", plan->label, hf_health_class_name(plan->cls),
		       plan->write_devices ? ", write devices" : "",
		       plan->changed ? ", journal" : "");
	if (plan->wake_at != HF_TIME_NEVER) {
		add_span(sb, "wake: ", plan->wake_at, zero);
		hf_strbuf_addch(sb, '\n');
	}
}

void hf_health_fleet_render(const struct hf_health_fleet_plan *plan, struct hf_strbuf *sb)
{
	for (size_t i = 0; i < plan->len; i++) {
		const struct hf_health_decision *d = &plan->decisions[i];

		hf_strbuf_addf(sb, "- %s: %s", d->node, hf_health_answer_name(d->answer));
		if (d->doing != HF_HEALTH_DO_NOTHING)
			hf_strbuf_addf(sb, " %s", hf_health_doing_name(d->doing));
		if (d->action != HF_HEALTH_RECORD && d->doing != HF_HEALTH_DO_QUARANTINE)
			hf_strbuf_addf(sb, " %s", hf_health_action_name(d->action));
		hf_strbuf_addf(sb, ", %s\n", hf_health_why_text(d->why));
	}
	hf_strbuf_addf(sb, "left: unavailable %d, quarantines %d, concurrent %d\n",
		       plan->unavailable_left, plan->quarantines_left, plan->concurrent_left);
	hf_strbuf_addf(sb, "breaker: %s, epoch %llu\n", plan->breaker.tripped ? "open" : "closed",
		       (unsigned long long)plan->breaker.epoch);
}
