/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/nodes.h"

#include "base/mem.h"
#include "base/str.h"
#include "sim/check.h"
#include "sim/crashes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Each machine has one device, which all its pods hold. When the device fails, their processes hang
 * or exit. The agent reports the fault some seconds later, with the time of the machine's clock.
 * The report may come before or after the pods' ends, or while the node is cut off. A new pod on
 * the node gets the same broken device.
 *
 * If ranks report their steps, the agent passes on whether they advance: after a change, every five
 * minutes, and again and again while the node's kubelet is silent. The agent needs power and the
 * network, but no kubelet.
 */
#define TELL_MAX (4 * HF_SECOND)
#define TELL_LATE_MAX HF_MINUTE /* later than the operator ever waits for a report */
#define MEND_MIN HF_MINUTE
#define MEND_MAX (20 * HF_MINUTE)
#define AGAIN (5 * HF_SECOND) /* until the next try if the agent cannot reach the API server */
#define GONE_MAX 8            /* former holders that the agent remembers */
#define TEXT_MAX ((size_t)256 << 10)
#define RANKS_EVERY (10 * HF_SECOND)
#define STALLED_AFTER (30 * HF_SECOND)
#define MUTE_MAX (10 * HF_MINUTE)
/* A report counts as known between these two times after it was written. */
#define TOLD_MIN (5 * HF_SECOND)
#define TOLD_MAX (14 * HF_MINUTE)
#define HEARTBEAT (5 * HF_MINUTE)

struct gone {
	char name[64], uid[64];
	hf_time until;
};

struct sim_device {
	struct sim_node *node;
	struct hf_timer *tell, *mend;
	bool sick;
	hf_time told_sick; /* since when the store calls the device broken; NONE: it does not */
	/* first and last time of the device's fault, by the machine's clock; NONE: it never
	 * failed */
	hf_time first, last;
	struct gone gone[GONE_MAX];
	size_t n_gone;
	struct hf_timer *look;     /* when the agent next looks at the ranks */
	uint64_t ranks_told;       /* hash of the ranks in the last report */
	hf_time told;              /* when the agent last wrote a report */
	hf_time mute_until;        /* until then the agent is dead */
	hf_time ranks_spoken_of;   /* when the agent last reported ranks that live; NONE: never */
	struct hf_strbuf *holders; /* the lists of a report while the agent writes it; else NULL */
	struct hf_strbuf *ranks;
	uint64_t ranks_hash;
};

static bool can_speak(const struct sim_device *device)
{
	const struct sim_node *node = device->node;

	if (!node->sim->mood.trains)
		return sim_node_alive(node) && node->exists;
	return node->power && node->link && node->exists && !node->stays_dead &&
	       sim_now(node->sim) >= device->mute_until;
}

static hf_time machine_time(const struct sim_node *node)
{
	return hf_loop_wall(node->sim->loop) + node->clock;
}

static void tell_soon(struct sim_device *device, hf_time within)
{
	if (!hf_timer_armed(device->tell))
		hf_timer_arm(device->tell, HF_MS + sim_span(device->node->sim, within));
}

static void remember(struct sim_device *device, const char *name, const char *uid)
{
	struct gone *gone = NULL;

	for (size_t i = 0; i < device->n_gone; i++)
		if (hf_streq(device->gone[i].uid, uid))
			return;
	if (device->n_gone == GONE_MAX) {
		for (size_t i = 1; i < GONE_MAX; i++)
			device->gone[i - 1] = device->gone[i];
		device->n_gone--;
	}
	gone = &device->gone[device->n_gone++];
	gone->until = machine_time(device->node);
	snprintf(gone->name, sizeof(gone->name), "%s", name);
	snprintf(gone->uid, sizeof(gone->uid), "%s", uid);
}

static void add_holder(struct hf_strbuf *sb, const char *name, const char *uid, hf_time until)
{
	char text[HF_TIME_TEXT_MAX];

	hf_strbuf_addf(sb, "%s{\"namespace\":\"default\",\"pod\":\"%s\",\"uid\":\"%s\"",
		       sb->len > 0 ? "," : "", name, uid);
	if (until != HF_TIME_NONE) {
		hf_time_format_micro(until, text);
		hf_strbuf_addf(sb, ",\"until\":\"%s\"", text);
	}
	hf_strbuf_addf(sb, "}");
}

static void note_holder(void *arg, const char *name, const char *uid, bool over)
{
	struct sim_device *device = arg;

	if (over)
		remember(device, name, uid);
	else
		add_holder(device->holders, name, uid, HF_TIME_NONE);
}

static void add_rank(struct sim_device *device, const char *name, const char *uid, bool stalled)
{
	struct sim *sim = device->node->sim;
	char advanced[HF_TIME_TEXT_MAX], heard[HF_TIME_TEXT_MAX];

	hf_time_format_micro(sim_training_advanced(sim, uid) - sim_now(sim) +
				     machine_time(device->node),
			     advanced);
	hf_time_format_micro(machine_time(device->node), heard);
	hf_strbuf_addf(
		device->ranks,
		"%s{\"namespace\":\"default\",\"pod\":\"%s\",\"uid\":\"%s\",\"state\":\"%s\","
		"\"advancedTime\":\"%s\",\"heardTime\":\"%s\"}",
		device->ranks->len > 0 ? "," : "", name, uid, stalled ? "Stalled" : "Advancing",
		advanced, heard);
}

/* A rank reports its steps while its process lives. */
static void note_rank(void *arg, const char *name, const char *uid, bool over)
{
	struct sim_device *device = arg;
	struct sim *sim = device->node->sim;
	const struct sim_pod_truth *pod = sim_pod_truth(sim, uid);
	bool stalled;

	if (over || !pod->alive || sim_job_truth(sim, pod->job_uid) == NULL)
		return;
	stalled = sim_now(sim) - sim_training_advanced(sim, uid) >= STALLED_AFTER;
	device->ranks_hash += hf_hash_str(uid) * (stalled ? 3 : 5);
	if (device->ranks != NULL)
		add_rank(device, name, uid, stalled);
}

static uint64_t look_at_ranks(struct sim_device *device, struct hf_strbuf *ranks)
{
	device->ranks = ranks;
	device->ranks_hash = 0;
	if (device->node->sim->mood.trains)
		sim_kubelet_each(device->node, note_rank, device);
	device->ranks = NULL;
	return device->ranks_hash;
}

static void write_health(struct sim_device *device)
{
	struct sim_node *node = device->node;
	struct sim *sim = node->sim;
	HF_AUTO_STRBUF holders = HF_STRBUF_INIT(TEXT_MAX), ranks = HF_STRBUF_INIT(TEXT_MAX);
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(2 * TEXT_MAX + 1024);
	char now[HF_TIME_TEXT_MAX], first[HF_TIME_TEXT_MAX];
	char last[HF_TIME_TEXT_MAX], fault[512] = "";

	device->holders = &holders;
	sim_kubelet_each(node, note_holder, device);
	device->ranks_told = look_at_ranks(device, &ranks);
	if (ranks.len > 0)
		device->ranks_spoken_of = sim_now(sim);
	for (size_t i = 0; i < device->n_gone; i++)
		add_holder(&holders, device->gone[i].name, device->gone[i].uid,
			   device->gone[i].until);
	hf_time_format_micro(machine_time(node), now);
	if (device->first != HF_TIME_NONE) {
		hf_time_format_micro(device->first, first);
		hf_time_format_micro(device->last, last);
		snprintf(fault, sizeof(fault),
			 "{\"detector\":\"xid\",\"code\":79,\"class\":\"reboot\",\"active\":%s,"
			 "\"firstTime\":\"%s\",\"lastTime\":\"%s\"}",
			 device->sick ? "true" : "false", first, last);
	}
	hf_strbuf_addf(&text,
		       "{\"status\":{\"observedTime\":\"%s\",\"devices\":[{\"id\":\"0000:1a:00.0\","
		       "\"state\":\"%s\",\"faults\":[%s],\"holders\":[%s]}]",
		       now, device->sick ? "Unhealthy" : "Healthy", fault, holders.data);
	if (sim->mood.trains)
		hf_strbuf_addf(&text, ",\"ranks\":[%s]", ranks.data);
	sim_fence_tell(node, &text);
	hf_strbuf_addf(&text, "}}");
	sim_patch(sim, &hf_devicehealths, NULL, node->name, "status", text.data);
	if (!device->sick)
		device->told_sick = HF_TIME_NONE;
	else if (device->told_sick == HF_TIME_NONE)
		device->told_sick = sim_now(sim);
	device->told = sim_now(sim);
	sim_tell(sim, "agent: %s is %s", node->name, device->sick ? "sick" : "well");
}

static void on_tell(void *arg)
{
	struct sim_device *device = arg;
	struct sim_node *node = device->node;
	char text[256];
	HF_AUTO_DOC body = NULL;

	if (!can_speak(device)) {
		hf_timer_arm(device->tell, AGAIN);
		return;
	}
	if (hf_memstore_peek(node->sim->memstore, &hf_devicehealths, NULL, node->name) == NULL) {
		snprintf(text, sizeof(text),
			 "{\"apiVersion\":\"holdfast.dev/v1alpha1\",\"kind\":\"DeviceHealth\","
			 "\"metadata\":{\"name\":\"%s\"}}",
			 node->name);
		body = hf_doc_from_text(text, strlen(text));
		const struct hf_request request = {
			.verb = HF_VERB_CREATE, .resource = &hf_devicehealths, .body = body};

		sim_apply(node->sim, &request);
	}
	write_health(device);
}

static bool is_due(const struct sim_device *device)
{
	return sim_now(device->node->sim) - device->ranks_spoken_of >= HEARTBEAT;
}

static void on_look(void *arg)
{
	struct sim_device *device = arg;
	uint64_t seen = look_at_ranks(device, NULL);

	hf_timer_arm(device->look, RANKS_EVERY);
	if (sim_fence_news(device->node) || seen != device->ranks_told ||
	    (seen != 0 && (!device->node->kubelet || is_due(device))))
		tell_soon(device, HF_SECOND);
}

void sim_agent_dies(struct sim_node *node)
{
	if (node->device == NULL)
		return;
	sim_tell(node->sim, "world: the agent of %s dies", node->name);
	node->device->mute_until = sim_now(node->sim) + sim_how_span(node->sim, MUTE_MAX);
	sim_fence_agent_dies(node);
	/* The next agent reports all that it finds in its journal. */
	tell_soon(node->device, TELL_MAX);
}

bool sim_agent_up(const struct sim_node *node)
{
	return node->power && node->device != NULL &&
	       sim_now(node->sim) >= node->device->mute_until;
}

bool sim_agent_spoke(const struct sim_node *node, hf_time within)
{
	return node->device != NULL && node->device->ranks_spoken_of != HF_TIME_NONE &&
	       sim_now(node->sim) - node->device->ranks_spoken_of <= within;
}

static void mend(void *arg)
{
	struct sim_device *device = arg;

	if (!device->sick)
		return;
	device->sick = false;
	sim_tell(device->node->sim, "world: the device of %s works again", device->node->name);
	tell_soon(device, TELL_MAX);
}

void sim_device_fails(struct sim_node *node)
{
	struct sim_device *device = node->device;
	struct sim *sim = node->sim;

	if (device == NULL || device->sick || !node->power)
		return;
	device->sick = true;
	device->first = device->last = machine_time(node);
	sim_tell(sim, "world: the device of %s fails", node->name);
	sim_kubelet_device_fails(node);
	hf_timer_arm(device->mend, MEND_MIN + sim_how_span(sim, MEND_MAX));
	/* This report replaces one that was due. In a script no report is late. */
	bool late = sim_how(sim, 4) == 0 && sim->script == NULL;

	hf_timer_arm(device->tell, HF_MS + sim_how_span(sim, late ? TELL_LATE_MAX : TELL_MAX));
}

bool sim_device_is_told_sick(const struct sim_node *node)
{
	const struct sim_device *device = node->device;

	return device != NULL && device->told_sick != HF_TIME_NONE &&
	       sim_now(node->sim) - device->told_sick > TOLD_MIN &&
	       sim_now(node->sim) - device->told < TOLD_MAX;
}

bool sim_device_has_failed(const struct sim_node *node)
{
	return node->device != NULL && node->device->first != HF_TIME_NONE;
}

void sim_device_pod(struct sim_node *node, const char *name, const char *uid, bool gone)
{
	struct sim_device *device = node->device;

	if (device == NULL)
		return;
	if (gone)
		remember(device, name, uid);
	else if (device->sick)
		sim_check_sick(node->sim, uid);
	tell_soon(device, TELL_MAX);
}

void sim_devices_calm(struct sim *sim)
{
	for (size_t i = 0; i < sim->nodes->n; i++) {
		struct sim_device *device = sim->nodes->nodes[i].device;

		if (device == NULL)
			continue;
		device->mute_until = 0;
		mend(device);
	}
}

void sim_devices_init(struct sim *sim)
{
	/* A world without this trouble has no agents, so that its seed means the same as before
	 * agents existed. */
	if (sim->script != NULL ? !sim->script->devices
				: sim->mood.weight[SIM_DEVICE_FAILED] == 0 && !sim->mood.trains)
		return;
	for (size_t i = 0; i < sim->nodes->n; i++) {
		struct sim_node *node = &sim->nodes->nodes[i];

		node->device = hf_xcalloc(1, sizeof(*node->device));
		*node->device = (struct sim_device){.node = node,
						    .first = HF_TIME_NONE,
						    .last = HF_TIME_NONE,
						    .told_sick = HF_TIME_NONE,
						    .ranks_spoken_of = HF_TIME_NONE};
		node->device->tell = hf_timer_create(sim->loop, on_tell, node->device);
		node->device->mend = hf_timer_create(sim->loop, mend, node->device);
		if (sim->mood.trains) {
			node->device->look = hf_timer_create(sim->loop, on_look, node->device);
			hf_timer_arm(node->device->look, RANKS_EVERY);
		}
		tell_soon(node->device, TELL_MAX);
	}
}

void sim_devices_release(struct sim *sim)
{
	for (size_t i = 0; i < sim->nodes->n; i++) {
		struct sim_device *device = sim->nodes->nodes[i].device;

		if (device == NULL)
			continue;
		hf_timer_destroy(device->tell);
		hf_timer_destroy(device->mend);
		hf_timer_destroy(device->look);
		free(device);
	}
}
