/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * What an agent publishes after a step: events, log lines, and patches of the node's objects and of the pods.
 * Input: the plan of a step, and the agent's knowledge as a report.  Output: calls of the recorder and the publisher.
 * Only objects that have changed, or that are in a->stale, are written.
 */
#include "agent/agent_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define LOGGER "agent"
/* Limit of the text that lists the detectors of a source with the reasons why they are off. */
#define OFF_TEXT_MAX ((size_t)4096)

uint64_t hf_agent_lost(const struct hf_agent *a)
{
	return a->lost_before + (a->kmsg != NULL ? hf_kmsg_probe_stats(a->kmsg)->lost : 0);
}

bool hf_agent_pod_name(void *arg, const char *uid, struct hf_pod_name *ret_name)
{
	const struct hf_agent *a = arg;

	return hf_holders_name(a->holders, uid, ret_name);
}

struct hf_report hf_agent_report(struct hf_agent *a)
{
	struct hf_process_entry *processes;
	struct hf_device_health ranks;
	hf_time now = hf_intake_now(a->intake);
	struct hf_report report = {
		.node = a->node,
		.memory = &a->memory,
		.intake = a->intake,
		.label = a->label,
		.lost = hf_agent_lost(a),
		.now = now,
		.wall_less = hf_loop_wall(a->options.loop) - now,
		.reaches = a->reaches != HF_TIME_NONE ? a->reaches : now,
	};

	report.holders = hf_holders_list(a->holders, &report.holders_len);
	hf_arena_reset(a->ranks_arena);
	hf_ranks_list(a->ranks, hf_agent_pod_name, a, now, a->ranks_arena, &ranks);
	report.ranks = ranks.ranks.items;
	report.ranks_len = ranks.ranks.len;
	hf_fences_list(a->fences, hf_agent_pod_name, a, a->ranks_arena, &ranks);
	report.fences = ranks.fences.items;
	report.fences_len = ranks.fences.len;
	report.processes_known =
		hf_processes_list(a->processes, a->ranks_arena, &processes, &report.processes_len);
	report.processes = processes;
	return report;
}

static void publish_pods(struct hf_agent *a, const struct hf_report *report)
{
	for (size_t i = 0; i < report->holders_len; i++) {
		const struct hf_holder *h = &report->holders[i];
		const struct hf_holder_pod *pod = hf_holders_pod(a->holders, h);
		struct hf_pod_verdict verdict;

		if (pod == NULL || (i > 0 && hf_streq(report->holders[i - 1].uid, h->uid)))
			continue;
		hf_report_pod(report, i, &verdict);
		if (verdict.condition == HF_POD_NO_CONDITION ||
		    (verdict.condition == HF_POD_WELL && pod->condition != HF_POD_SICK))
			continue;
		if (verdict.condition == pod->condition && hf_streq(verdict.reason, pod->reason) &&
		    hf_streq(verdict.message, pod->message))
			continue;
		hf_publisher_pod(
			a->publisher, h->holding.ns, h->holding.pod, h->uid,
			hf_report_pod_patch(&verdict, h->uid, report->now + report->wall_less));
	}
}

static void record_node_event(struct hf_agent *a, const char *type, const char *reason,
			      const char *message)
{
	/* An event of a node has the node's name as its UID, as with kubelets: kubectl describe looks for such
	 * events. */
	const struct hf_event_note note = {
		.api_version = "v1",
		.kind = "Node",
		.name = a->node,
		.uid = a->node,
		.type = type,
		.reason = reason,
		.message = message,
	};

	hf_recorder_record(a->recorder, &note, hf_loop_wall(a->options.loop));
}

void hf_agent_record_log_rule(struct hf_agent *a, const struct hf_pod_name *pod,
			      const char *message)
{
	const struct hf_event_note note = {
		.api_version = "v1",
		.kind = "Pod",
		.ns = pod->ns,
		.name = pod->name,
		.uid = pod->uid,
		.type = "Warning",
		.reason = "LogRule",
		.message = message,
	};

	hf_recorder_record(a->recorder, &note, hf_loop_wall(a->options.loop));
}

static void record_for_pods(struct hf_agent *a, const struct hf_report *report,
			    const struct hf_health_notice *told, const char *message)
{
	for (size_t i = 0; i < report->holders_len; i++) {
		const struct hf_holder *h = &report->holders[i];
		const struct hf_event_note note = {
			.api_version = "v1",
			.kind = "Pod",
			.ns = h->holding.ns,
			.name = h->holding.pod,
			.uid = h->uid,
			.type = told->warning ? "Warning" : "Normal",
			.reason = told->reason,
			.message = message,
		};

		if (h->until == HF_TIME_NONE && h->uid[0] != '\0' &&
		    hf_report_concerns(report, told, h))
			hf_recorder_record(a->recorder, &note, hf_loop_wall(a->options.loop));
	}
}

static void publish_events(struct hf_agent *a, const struct hf_report *report,
			   const struct hf_health_plan *plan)
{
	for (size_t i = 0; i < plan->events_len; i++) {
		const struct hf_health_notice *told = &plan->events[i];
		HF_AUTOFREE char *message = hf_xasprintf(
			"%s: %s", told->device[0] != '\0' ? told->device : "node", told->message);

		hf_log(told->warning ? HF_LOG_WARN : HF_LOG_INFO, LOGGER, told->reason, "device",
		       told->device, "message", told->message, NULL);
		record_node_event(a, told->warning ? "Warning" : "Normal", told->reason, message);
		record_for_pods(a, report, told, message);
	}
	hf_agent_count_moves(a, plan);
	for (size_t i = 0; i < plan->moves_len; i++)
		hf_log(HF_LOG_INFO, LOGGER, "State", "device", plan->moves[i].device, "from",
		       hf_health_state_name(plan->moves[i].from), "to",
		       hf_health_state_name(plan->moves[i].to), "why", plan->moves[i].why, NULL);
	if (hf_agent_lost(a) > a->lost_told) {
		char text[128];

		snprintf(
			text, sizeof(text),
			"%llu records of the kernel's log were overwritten or gone before they were read",
			(unsigned long long)(hf_agent_lost(a) - a->lost_told));
		hf_log(HF_LOG_WARN, LOGGER, text, NULL);
		record_node_event(a, "Warning", "EvidenceLost", text);
		a->lost_told = hf_agent_lost(a);
	}
}

/* Lists the detectors of a source that are off, by reason: "ecc recovery: no library; pcie: no bus". */
static void list_off(const struct hf_agent *a, enum hf_health_source source, struct hf_strbuf *sb)
{
	bool listed[HF_HEALTH_DETECTORS] = {false};
	const char *why, *other;

	for (size_t d = 0; d < HF_HEALTH_DETECTORS; d++) {
		if (listed[d] || hf_intake_state(a->intake, source, (enum hf_health_detector)d,
						 &why) != HF_INTAKE_OFF)
			continue;
		hf_strbuf_addstr(sb, sb->len > 0 ? "; " : "");
		for (size_t k = d; k < HF_HEALTH_DETECTORS; k++) {
			enum hf_health_detector detector = (enum hf_health_detector)k;

			if (hf_intake_state(a->intake, source, detector, &other) != HF_INTAKE_OFF ||
			    !hf_streq(why, other))
				continue;
			listed[k] = true;
			hf_strbuf_addf(sb, "%s%s", k > d ? " " : "",
				       hf_health_detector_name(detector));
		}
		hf_strbuf_addf(sb, ": %s", why);
	}
}

/* Logs the detectors that are off, once for each change, so that an administrator finds the reason in the log. */
void hf_agent_log_detectors(struct hf_agent *a)
{
	if (hf_intake_states_version(a->intake) == a->states_seen)
		return;
	a->states_seen = hf_intake_states_version(a->intake);
	a->stale |= HF_STALE_DEVICE;
	for (size_t s = 0; s < HF_HEALTH_SOURCES; s++) {
		HF_AUTO_STRBUF off = HF_STRBUF_INIT(OFF_TEXT_MAX);
		uint64_t hash;

		list_off(a, (enum hf_health_source)s, &off);
		hash = hf_hash_str(off.data);
		if (hash == a->off_told[s] || (off.len == 0 && a->off_told[s] == 0))
			continue;
		a->off_told[s] = hash;
		hf_log(HF_LOG_INFO, LOGGER,
		       off.len > 0 ? "Detectors are off" : "No detector is off any more", "source",
		       hf_health_source_name((enum hf_health_source)s), "detectors", off.data,
		       NULL);
	}
}

static bool is_stale(const struct hf_agent *a, enum hf_agent_stale object)
{
	return (a->stale & object) != 0;
}

static bool concerns_pods(const struct hf_agent *a, const struct hf_health_plan *plan)
{
	return plan->write_conditions || plan->write_devices || plan->moves_len > 0 ||
	       is_stale(a, HF_STALE_PODS);
}

/* The journal does not hold the processes, since they are no finding of a step; so they are published without it. */
void hf_agent_publish_processes(struct hf_agent *a)
{
	struct hf_report report = hf_agent_report(a);

	/* The agent writes DeviceHealth only after it has read the DeviceHealth of the former agent. */
	if (a->history == HF_HISTORY_ASKING || !report.processes_known) {
		a->stale |= HF_STALE_DEVICE;
		return;
	}
	hf_publisher_urgent(a->publisher, hf_report_processes_patch(&report));
	hf_processes_published(a->processes);
}

void hf_agent_publish(struct hf_agent *a, const struct hf_health_plan *plan)
{
	struct hf_report report = hf_agent_report(a);
	bool news = plan->write_conditions || plan->write_devices || is_stale(a, HF_STALE_DEVICE);

	publish_events(a, &report, plan);
	/* The first step always writes the conditions: the journal does not know whether the former agent's last
	 * write succeeded. */
	if (plan->write_conditions || a->steps == 1 || is_stale(a, HF_STALE_NODE))
		hf_publisher_node(a->publisher, hf_report_node_patch(&report));
	if (news && a->history != HF_HISTORY_ASKING) {
		if (a->urgent)
			hf_publisher_urgent(a->publisher, hf_report_device_patch(&report));
		else
			hf_publisher_device(a->publisher, hf_report_device_patch(&report));
		a->urgent = false;
		hf_ranks_published(a->ranks, hf_agent_pod_name, a, report.now);
		hf_fences_published(a->fences, hf_agent_pod_name, a);
		hf_processes_published(a->processes);
	}
	if (concerns_pods(a, plan))
		publish_pods(a, &report);
	a->stale = news && a->history == HF_HISTORY_ASKING ? HF_STALE_DEVICE : 0;
	if (hf_acknowledgement_is_of_use(&a->memory) && !hf_timer_armed(a->acknowledgement_timer))
		hf_timer_arm(a->acknowledgement_timer, HF_AGENT_ACKNOWLEDGEMENT_EVERY);
}
