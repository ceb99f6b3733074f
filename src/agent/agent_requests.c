/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/*
 * What others write into the DeviceHealth of this node: a person or the operator acknowledges a repair
 * (holdfast.dev/cleared), and the operator asks for a report (holdfast.dev/report).  Also the status that an earlier
 * agent has left.
 * Input: DeviceHealth, from the watch and from the replies to writes.  Output: steps, and looks of the probes.
 */
#include "agent/agent_internal.h"

#include "base/log.h"

#define LOGGER "agent"
/* How often the agent checks whether its probes have looked at the devices after an act. */
#define REQUEST_AGAIN (50 * HF_MS)

/* Compares DeviceHealth, as the former agent of this node left it, with the journal. */
static void take_previous_health(struct hf_agent *a, struct hf_doc *health)
{
	bool knows = hf_agent_is_of_this_boot(a) && !a->memory.doubted;
	bool doubted = health != NULL &&
		       hf_previous_health_doubts(health, a->boot_id, knows ? &a->memory : NULL);

	a->history = doubted ? HF_HISTORY_DOUBTED : HF_HISTORY_KNOWN;
	if (hf_agent_is_of_this_boot(a))
		a->memory.doubted = doubted;
	if (doubted)
		hf_log(HF_LOG_WARN, LOGGER,
		       "DeviceHealth shows faults of this boot that the journal lacks: no device becomes Healthy before the next boot or an acknowledgement",
		       NULL);
	hf_agent_move_journal(a, HF_JOURNAL_CHANGED);
	a->stale |= HF_STALE_DEVICE;
	hf_agent_arm_step(a, 0);
}

/* Every 30 s, reads from DeviceHealth whether a person has acknowledged a repair. Stops while no
 * device is in a state that an acknowledgement can change, and while the watch of DeviceHealth works. */
void hf_agent_ask_acknowledgement(void *arg)
{
	struct hf_agent *a = arg;

	if (!hf_acknowledgement_is_of_use(&a->memory) || hf_health_watch_works(a->health_watch))
		return;
	hf_publisher_ask(a->publisher);
	hf_timer_arm(a->acknowledgement_timer, HF_AGENT_ACKNOWLEDGEMENT_EVERY);
}

static void take_acknowledgement(struct hf_agent *a, const char *text)
{
	hf_time wall = hf_loop_wall(a->options.loop);
	const char *problem;
	struct hf_error err;

	if (hf_acknowledgement_read(&a->acknowledgement, text, wall, &err) != 0)
		hf_log(HF_LOG_WARN, LOGGER, "The acknowledgement is not valid", "annotation",
		       HF_ANNOTATION_CLEARED, "error", err.text, NULL);
	problem = hf_acknowledgement_problem(&a->acknowledgement, &a->memory,
					     wall - hf_intake_now(a->intake));
	if (problem != NULL)
		hf_log(HF_LOG_WARN, LOGGER, "The acknowledgement clears less than it names",
		       "annotation", HF_ANNOTATION_CLEARED, "error", problem, NULL);
	if (a->acknowledgement.pending)
		hf_agent_arm_step(a, 0);
}

/* Reports after an act on the node, as soon as the probes have looked at the devices. */
void hf_agent_answer_request(void *arg)
{
	struct hf_agent *a = arg;
	hf_time now = hf_intake_now(a->intake);

	switch (hf_report_request_next(&a->request, now,
				       hf_intake_looked_at(a->intake, HF_PROBE_DEVICES),
				       hf_intake_driver_at(a->intake))) {
	case HF_REPORT_REQUEST_NONE: break;
	case HF_REPORT_REQUEST_WAITS:
		hf_timer_arm(a->request_timer, a->request.look_at - now + HF_MS);
		break;
	case HF_REPORT_REQUEST_LOOK:
		/* Each probe limits how often it looks. */
		hf_agent_poke_probes(a, false);
		hf_timer_arm(a->request_timer, REQUEST_AGAIN);
		break;
	case HF_REPORT_REQUEST_REPORT:
		a->stale |= HF_STALE_DEVICE;
		a->urgent = true;
		hf_agent_arm_step(a, 0);
		break;
	}
}

static void take_request(struct hf_agent *a, const char *text)
{
	struct hf_error err;

	if (hf_report_request_read(&a->request, text, hf_intake_now(a->intake), &err) != 0)
		hf_log(HF_LOG_WARN, LOGGER, "The request for a report is not valid", "annotation",
		       HF_REPORT_ANNOTATION, "error", err.text, NULL);
	if (!a->request.waiting)
		return;
	for (size_t i = 0; i < a->probes_len; i++)
		if (a->probes[i]->ops->resume != NULL)
			a->probes[i]->ops->resume(a->probes[i]);
	hf_timer_arm(a->request_timer, 0);
}

static void on_annotations(void *arg, const char *cleared, const char *report)
{
	struct hf_agent *a = arg;

	if (a->life != HF_LIFE_RUNNING)
		return;
	take_acknowledgement(a, cleared);
	take_request(a, report);
}

void hf_agent_health_seen(void *arg, struct hf_doc *health)
{
	struct hf_agent *a = arg;
	const struct hf_json *annotations;

	hf_processes_seen(a->processes, health != NULL ? hf_doc_json(health) : NULL);
	if (a->history == HF_HISTORY_ASKING) {
		take_previous_health(a, health);
	} else if (health == NULL) {
		/* DeviceHealth was deleted, perhaps together with its Node.  A new Node lacks the agent's
		 * conditions too. */
		a->stale |= HF_STALE_NODE | HF_STALE_DEVICE;
		hf_agent_arm_step(a, 0);
	}
	if (health == NULL)
		return;
	annotations = hf_json_path(hf_doc_json(health), "metadata", "annotations", NULL);
	take_acknowledgement(a, hf_json_path_str(annotations, HF_ANNOTATION_CLEARED, NULL));
	take_request(a, hf_json_path_str(annotations, HF_REPORT_ANNOTATION, NULL));
}

void hf_agent_create_watch(struct hf_agent *a)
{
	const struct hf_health_watch_options options = {.loop = a->options.loop,
							.store = a->options.store,
							.node = a->node,
							.seed = a->options.seed,
							.changed = on_annotations,
							.arg = a};

	a->health_watch = hf_health_watch_create(&options);
}
