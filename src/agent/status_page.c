/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * The page, /status and the metrics of an agent.
 * Input: the agent's knowledge as a report.  Output: text, JSON, families of metrics.
 */
#include "agent/agent_internal.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The page and the metrics show the node's state to readers that ask the agent instead of the API server. */

static void add_ago(struct hf_strbuf *sb, const struct hf_report *report, hf_time at)
{
	char text[HF_TIME_TEXT_MAX];

	hf_span_format(at == HF_TIME_NONE ? at : report->now - at, text);
	hf_strbuf_addstr(sb, text);
}

static void add_fault(struct hf_strbuf *sb, const struct hf_report *report,
		      const struct hf_health_fault *f)
{
	if (!f->open)
		return;
	hf_strbuf_addf(sb, "    %s %d%s%s: %s, %s; %" PRIu64 " times, last ",
		       hf_health_detector_name(f->detector), f->code, f->unit[0] != '\0' ? " " : "",
		       f->unit, hf_health_class_name(f->cls), hf_health_action_name(f->action),
		       f->count);
	add_ago(sb, report, f->last);
	hf_strbuf_addf(sb, " ago%s\n", hf_health_fault_acts(f) ? "" : "; does not act");
	if (f->line[0] != '\0')
		hf_strbuf_addf(sb, "      %s\n", f->line);
}

static void add_device(struct hf_strbuf *sb, const struct hf_report *report,
		       const struct hf_health_device *d)
{
	hf_strbuf_addf(sb, "  %-14s %-12s since ", d->id[0] != '\0' ? d->id : "(node)",
		       hf_health_state_name(d->state));
	add_ago(sb, report, d->since);
	hf_strbuf_addf(sb, "%s%s\n", d->uuid[0] != '\0' ? "  " : "", d->uuid);
	for (size_t i = 0; i < d->faults_len; i++)
		add_fault(sb, report, &d->faults[i]);
	for (size_t i = 0; i < report->holders_len; i++) {
		const struct hf_holder *h = &report->holders[i];

		if (h->until == HF_TIME_NONE && hf_report_device_of(report, h) == d)
			hf_strbuf_addf(sb, "    held by %s/%s (%s)\n", h->holding.ns,
				       h->holding.pod, h->holding.container);
	}
}

static void add_detectors(struct hf_strbuf *sb, const struct hf_report *report)
{
	hf_strbuf_addstr(sb, "\nDetectors\n");
	for (size_t i = 0; i < HF_HEALTH_DETECTORS; i++) {
		enum hf_health_detector detector = (enum hf_health_detector)i;
		const char *why, *state;

		if (detector == HF_HEALTH_PEERS)
			continue;
		state = hf_report_detector(report, detector, &why);
		hf_strbuf_addf(sb, "  %-10s %s%s%s\n", hf_health_detector_name(detector), state,
			       why[0] != '\0' ? ": " : "", why);
	}
}

/* Sorts ranks by own_us, the slowest first; ranks that do not report own_us come last. */
static int by_own(const void *left, const void *right)
{
	const struct hf_rank_report *a = *(const struct hf_rank_report *const *)left;
	const struct hf_rank_report *b = *(const struct hf_rank_report *const *)right;
	int order;

	if (a->own_us != b->own_us)
		return a->own_us > b->own_us ? -1 : 1;
	order = strcmp(a->pod, b->pod);
	return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static void add_ranks(struct hf_strbuf *sb, const struct hf_report *report)
{
	const struct hf_rank_report *sorted[HF_RANKS_HEARD_MAX];
	size_t len =
		report->ranks_len < HF_RANKS_HEARD_MAX ? report->ranks_len : HF_RANKS_HEARD_MAX;

	for (size_t i = 0; i < len; i++)
		sorted[i] = &report->ranks[i];
	if (len > 0) {
		qsort(sorted, len, sizeof(sorted[0]), by_own);
		hf_strbuf_addstr(sb, "\nTraining processes\n");
	}
	for (size_t i = 0; i < len; i++) {
		const struct hf_rank_report *r = sorted[i];

		hf_strbuf_addf(sb, "  %s/%s", r->ns, r->pod);
		if (r->rank >= 0)
			hf_strbuf_addf(sb, " rank %" PRId64, r->rank);
		hf_strbuf_addf(sb, "  %s  step %" PRId64, r->state, r->step);
		if (r->own_us > 0)
			hf_strbuf_addf(sb, "  own %.1f ms", (double)r->own_us / 1000);
		hf_strbuf_addstr(sb, "  advanced ");
		add_ago(sb, report, r->advanced_at);
		hf_strbuf_addstr(sb, " ago\n");
	}
}

void hf_agent_page(struct hf_agent *a, struct hf_strbuf *sb)
{
	struct hf_report report = hf_agent_report(a);

	hf_strbuf_addf(sb, "Holdfast %s agent of node %s: %s\nboot %s, rules %016" PRIx64 "\n",
		       HF_VERSION, a->node, a->label, a->boot_id, a->memory.rules_hash);
	if (report.lost > 0)
		hf_strbuf_addf(sb, "%" PRIu64 " records of the kernel's log were lost\n",
			       report.lost);
	if (a->journal_failing)
		hf_strbuf_addstr(sb, "the journal cannot be written\n");
	if (a->memory.doubted)
		hf_strbuf_addf(sb, "%s: no device becomes Healthy yet\n",
			       a->history == HF_HISTORY_ASKING
				       ? "there was no journal, and DeviceHealth has not been read"
				       : "the journal of this boot is lost");
	hf_strbuf_addstr(sb, "\nConditions\n");
	for (size_t i = 0; i < HF_HEALTH_CONDITIONS; i++) {
		const struct hf_health_condition *c = &a->memory.conditions[i];

		hf_strbuf_addf(sb, "  %-30s %-8s %s%s%s\n", hf_health_condition_names[i],
			       hf_health_truth_name(c->status), c->reason,
			       c->message[0] != '\0' ? ": " : "", c->message);
	}
	hf_strbuf_addstr(sb, "\nDevices\n");
	for (size_t i = 0; i < a->memory.devices_len; i++)
		add_device(sb, &report, &a->memory.devices[i]);
	add_ranks(sb, &report);
	add_detectors(sb, &report);
}

struct hf_json *hf_agent_status(struct hf_agent *a)
{
	struct hf_report report = hf_agent_report(a);

	return hf_report_device_patch(&report);
}

/* ---- metrics ----------------------------------------------------------------------------------- */

static struct hf_family *get_family(struct hf_agent *a, enum hf_metric_type type, const char *name,
				    const char *help, const char *label, const char *second)
{
	const struct hf_metric_options options = {
		.name = name, .help = help, .type = type, .labels = {label, second}};

	return hf_metrics_family(a->options.metrics, &options);
}

static void kmsg_metrics(struct hf_agent *a)
{
	const struct hf_kmsg_stats *stats = hf_kmsg_probe_stats(a->kmsg);
	const struct {
		const char *name, *help;
		uint64_t value;
	} counters[] = {
		{"holdfast_agent_kmsg_records_total",
		 "Records of the kernel's log that the agent has read.", stats->records},
		{"holdfast_agent_kmsg_lost_total",
		 "Records of the kernel's log that were lost before the agent read them, in this boot.",
		 hf_agent_lost(a)},
		{"holdfast_agent_kmsg_forged_total",
		 "Records of the kernel's log that a process wrote, and the agent dropped.",
		 stats->forged},
		{"holdfast_agent_kmsg_foreign_total",
		 "Records of the kernel's log about a device of another driver, dropped.",
		 stats->foreign},
		{"holdfast_agent_evidence_total",
		 "Records of the kernel's log with evidence about a device.", stats->evidence},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(counters); i++)
		hf_family_set(get_family(a, HF_METRIC_COUNTER, counters[i].name, counters[i].help,
					 NULL, NULL),
			      (double)counters[i].value, NULL);
}

void hf_agent_count_moves(struct hf_agent *a, const struct hf_health_plan *plan)
{
	struct hf_family *moves;

	if (a->options.metrics == NULL)
		return;
	moves = get_family(a, HF_METRIC_COUNTER, "holdfast_agent_transitions_total",
			   "Changes of devices from one state to another.", "from", "to");
	for (size_t i = 0; i < plan->moves_len; i++)
		hf_family_add(moves, 1, hf_health_state_name(plan->moves[i].from),
			      hf_health_state_name(plan->moves[i].to), NULL);
}

static void rank_metrics(struct hf_agent *a, const struct hf_report *report)
{
	struct hf_family *states =
		get_family(a, HF_METRIC_GAUGE, "holdfast_agent_ranks",
			   "Training processes that report, by state.", "state", NULL);
	static const char *const names[] = {HF_RANK_ADVANCING, HF_RANK_STALLED, HF_RANK_SILENT};

	for (size_t s = 0; s < HF_ARRAY_LEN(names); s++) {
		size_t n = 0;

		for (size_t i = 0; i < report->ranks_len; i++)
			n += hf_streq(report->ranks[i].state, names[s]);
		hf_family_set(states, (double)n, names[s], NULL);
	}
}

/* How long ago each detector last worked; a detector that never worked has no value. */
static void age_metrics(struct hf_agent *a, const struct hf_report *report)
{
	struct hf_family *detectors =
		get_family(a, HF_METRIC_GAUGE, "holdfast_agent_detector_age_seconds",
			   "Time since a detector last could observe; absent if it never could.",
			   "detector", NULL);
	struct hf_family *probes = get_family(
		a, HF_METRIC_GAUGE, "holdfast_agent_probe_age_seconds",
		"Time since a probe's last answer; absent before its first answer.", "probe", NULL);

	for (size_t i = 0; i < HF_HEALTH_DETECTORS; i++) {
		enum hf_health_detector detector = (enum hf_health_detector)i;
		hf_time at = hf_intake_heard_at(a->intake, detector);

		if (detector != HF_HEALTH_PEERS && at != HF_TIME_NONE)
			hf_family_set(detectors, (double)(report->now - at) / (double)HF_SECOND,
				      hf_health_detector_name(detector), NULL);
	}
	for (size_t i = 0; i < HF_PROBES; i++) {
		enum hf_intake_probe probe = (enum hf_intake_probe)i;
		hf_time at = hf_intake_looked_at(a->intake, probe);

		if (at != HF_TIME_NONE)
			hf_family_set(probes, (double)(report->now - at) / (double)HF_SECOND,
				      hf_intake_probe_name(probe), NULL);
	}
	if (a->saver != NULL && hf_saver_took(a->saver) != HF_TIME_NONE)
		hf_family_set(get_family(a, HF_METRIC_GAUGE, "holdfast_agent_journal_write_seconds",
					 "Duration of the last write of the journal.", NULL, NULL),
			      (double)hf_saver_took(a->saver) / (double)HF_SECOND, NULL);
	hf_family_set(get_family(a, HF_METRIC_GAUGE, "holdfast_agent_journal_failing",
				 "1 while the journal cannot be written.", NULL, NULL),
		      a->journal_failing ? 1 : 0, NULL);
}

void hf_agent_update_metrics(struct hf_agent *a)
{
	struct hf_report report = hf_agent_report(a);
	struct hf_family *states =
		get_family(a, HF_METRIC_GAUGE, "holdfast_agent_device_state",
			   "1 for the state that a device has now.", "device", "state");
	struct hf_family *up = get_family(a, HF_METRIC_GAUGE, "holdfast_agent_detector_up",
					  "1 if a detector can see.", "detector", NULL);

	for (size_t i = 0; i < a->memory.devices_len; i++) {
		const struct hf_health_device *d = &a->memory.devices[i];
		const char *id = d->id[0] != '\0' ? d->id : "node";

		for (size_t s = 0; s < HF_HEALTH_STATES; s++)
			hf_family_set(states, d->state == s ? 1 : 0, id,
				      hf_health_state_name((enum hf_health_state)s), NULL);
	}
	for (size_t i = 0; i < HF_HEALTH_DETECTORS; i++) {
		const char *why;
		const char *state = hf_report_detector(&report, (enum hf_health_detector)i, &why);

		if (i != HF_HEALTH_PEERS)
			hf_family_set(up, hf_streq(state, "On") ? 1 : 0,
				      hf_health_detector_name((enum hf_health_detector)i), NULL);
	}
	rank_metrics(a, &report);
	age_metrics(a, &report);
	hf_family_set(get_family(a, HF_METRIC_COUNTER, "holdfast_agent_steps_total",
				 "Steps of the device brain.", NULL, NULL),
		      (double)a->steps, NULL);
	if (a->kmsg != NULL)
		kmsg_metrics(a);
}
