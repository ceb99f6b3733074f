/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/nodes.h"

#include "base/mem.h"
#include "base/str.h"
#include "sim/check.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * What kubelets say of devices in pods' statuses, in worlds without agents. Half of the nodes have
 * a device plugin, the others a driver of claims.
 *
 * This word comes late or never, and may stay after the device is mended. For a moment it may be
 * wrong. It is repeated in pods that have ended, and may stand in the status of another container
 * than the training container.
 */
#define LATE_MAX HF_MINUTE
#define SICK_MIN HF_MINUTE
#define SICK_MAX (20 * HF_MINUTE)
#define MENDED_WITHIN (10 * HF_SECOND)
#define STALE_MAX (10 * HF_MINUTE)
#define BLINK_MAX (20 * HF_SECOND) /* shorter than the 30 s after which a pod is moved */
#define SILENT_MAX (10 * HF_MINUTE)

enum word { HEALTHY, UNHEALTHY, UNKNOWN };
static const char *const words[] = {"Healthy", "Unhealthy", "Unknown"};

struct sim_plugin {
	struct sim_node *node;
	struct hf_timer *say, *mend;
	enum word now, next;
	bool claims; /* true: the node has a driver of claims; false: a device plugin */
	bool sick;
	/* the plugin still calls the device unhealthy this long after it is mended */
	hf_time stale;
};

static void say(struct sim_plugin *plugin, enum word word)
{
	plugin->now = word;
	sim_tell(plugin->node->sim, "plugin: of %s: %s", plugin->node->name, words[word]);
	sim_kubelet_says_again(plugin->node);
}

static void say_in(struct sim_plugin *plugin, enum word word, hf_time in)
{
	plugin->next = word;
	hf_timer_arm(plugin->say, in);
}

static void on_say(void *arg)
{
	struct sim_plugin *plugin = arg;

	say(plugin, plugin->next);
}

static void on_mend(void *arg)
{
	struct sim_plugin *plugin = arg;

	sim_tell(plugin->node->sim, "world: the device of %s works again", plugin->node->name);
	plugin->sick = false;
	say_in(plugin, HEALTHY, plugin->stale);
}

static void fails(struct sim_plugin *plugin)
{
	struct sim *sim = plugin->node->sim;

	if (plugin->sick || !plugin->node->power)
		return;
	plugin->sick = true;
	sim_tell(sim, "world: the device of %s fails", plugin->node->name);
	sim_kubelet_device_fails(plugin->node);
	if (sim_how(sim, 4) > 0)
		say_in(plugin, UNHEALTHY, sim_how_span(sim, LATE_MAX));
	plugin->stale = sim_how_span(sim, sim_how(sim, 3) == 0 ? STALE_MAX : MENDED_WITHIN);
	hf_timer_arm(plugin->mend, SICK_MIN + sim_how_span(sim, SICK_MAX));
}

static void blinks(struct sim_plugin *plugin)
{
	if (plugin->now != HEALTHY || hf_timer_armed(plugin->say))
		return;
	say(plugin, UNHEALTHY);
	say_in(plugin, HEALTHY, sim_how_span(plugin->node->sim, BLINK_MAX));
}

/* A kubelet that restarts says Unknown (claims) or Healthy (device plugin) until it hears of the
 * device. */
static void falls_silent(struct sim_plugin *plugin)
{
	say(plugin, plugin->claims ? UNKNOWN : HEALTHY);
	say_in(plugin, plugin->sick ? UNHEALTHY : HEALTHY,
	       sim_how_span(plugin->node->sim, SILENT_MAX));
}

void sim_plugin_happens(struct sim_node *node, enum sim_trouble kind)
{
	if (node == NULL || node->plugin == NULL)
		return;
	if (kind == SIM_PLUGIN_FAILS)
		fails(node->plugin);
	else if (kind == SIM_PLUGIN_BLINKS)
		blinks(node->plugin);
	else
		falls_silent(node->plugin);
}

bool sim_plugin_words(const struct sim_node *node, const char *uid, const char *phase,
		      struct sim_plugin_words *ret_words)
{
	const struct sim_plugin *plugin = node == NULL ? NULL : node->plugin;
	bool beside = hf_hash_str(uid) % 4 == 0;
	char list[512];

	ret_words->mine[0] = ret_words->beside[0] = '\0';
	if (plugin == NULL)
		return false;
	if (plugin->claims)
		snprintf(
			list, sizeof(list),
			",\"allocatedResourcesStatus\":[{\"name\":\"claim:gpus/all\",\"resources\":[{"
			"\"resourceID\":\"gpu.example.com/%s/gpu-0\",\"health\":\"%s\"}]}]",
			node->name, words[plugin->now]);
	else
		snprintf(
			list, sizeof(list),
			",\"allocatedResourcesStatus\":[{\"name\":\"example.com/nic\",\"resources\":"
			"[{\"resourceID\":\"nic-0\",\"health\":\"Healthy\"}]},{\"name\":"
			"\"example.com/gpu\",\"resources\":[{\"resourceID\":\"gpu-%s\",\"health\":"
			"\"%s\"}]}]",
			node->name, words[plugin->now]);
	if (beside)
		snprintf(
			ret_words->beside, sizeof(ret_words->beside),
			",{\"name\":\"beside\",\"ready\":true,\"restartCount\":0,\"state\":{%s}%s}",
			hf_streq(phase, "Succeeded") || hf_streq(phase, "Failed")
				? "\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\"}"
				: "\"running\":{}",
			list);
	else
		snprintf(ret_words->mine, sizeof(ret_words->mine), "%s", list);
	return plugin->now == UNHEALTHY;
}

void sim_plugins_calm(struct sim *sim)
{
	for (size_t i = 0; i < sim->nodes->n; i++) {
		struct sim_plugin *plugin = sim->nodes->nodes[i].plugin;

		if (plugin == NULL)
			continue;
		hf_timer_disarm(plugin->mend);
		plugin->sick = false;
		say_in(plugin, HEALTHY, MENDED_WITHIN);
	}
}

void sim_plugins_init(struct sim *sim)
{
	for (size_t i = 0; sim->mood.plugins && i < sim->nodes->n; i++) {
		struct sim_plugin *plugin = hf_xcalloc(1, sizeof(*plugin));

		plugin->node = &sim->nodes->nodes[i];
		plugin->claims = i % 2 == 1;
		plugin->say = hf_timer_create(sim->loop, on_say, plugin);
		plugin->mend = hf_timer_create(sim->loop, on_mend, plugin);
		plugin->node->plugin = plugin;
	}
}

void sim_plugins_release(struct sim *sim)
{
	for (size_t i = 0; i < sim->nodes->n; i++) {
		struct sim_plugin *plugin = sim->nodes->nodes[i].plugin;

		if (plugin == NULL)
			continue;
		hf_timer_destroy(plugin->say);
		hf_timer_destroy(plugin->mend);
		free(plugin);
	}
}
