/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "base/mem.h"
#include "base/str.h"
#include "sim/check.h"
#include "sim/crashes.h"
#include "sim/nodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_on_reset(void *arg)
{
	sim_fail(arg, "engine", "changes were undone");
}

bool sim_chance(struct sim *sim, unsigned permille)
{
	return hf_rng_below(&sim->rng, 1000) < permille;
}

hf_time sim_span(struct sim *sim, hf_time max)
{
	return (hf_time)hf_rng_below(&sim->rng, (uint64_t)max + 1);
}

hf_time sim_now(const struct sim *sim)
{
	return hf_loop_mono(sim->loop);
}

void sim_fail(struct sim *sim, const char *invariant, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	if (sim->unchecked != NULL && hf_str_has_prefix(invariant, sim->unchecked))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sim_tell(sim, "BROKEN: %s: %s", invariant, text);
	if (!sim->failed)
		snprintf(sim->failure, sizeof(sim->failure), "%s: %s", invariant, text);
	sim->failed = true;
}

int sim_apply(struct sim *sim, const struct hf_request *request)
{
	HF_AUTO_RESULT result = {0};

	hf_memstore_apply(sim->memstore, request, &result);
	if (result.code != 0)
		sim_tell(sim, "  (not done: %s)", result.err.text);
	return result.code;
}

int sim_patch(struct sim *sim, const struct hf_resource *resource, const char *ns, const char *name,
	      const char *subresource, const char *text)
{
	HF_AUTO_DOC body = hf_doc_from_text(text, strlen(text));
	const struct hf_request request = {.verb = HF_VERB_PATCH,
					   .resource = resource,
					   .ns = ns,
					   .name = name,
					   .subresource = subresource,
					   .body = body,
					   .patch_type = HF_PATCH_MERGE};

	return sim_apply(sim, &request);
}

/* --- a seed's mood --------------------------------------------------------------------------- */

/* Draws how often a trouble happens. A third of the seeds has none of it, a third little, a third
 * much. */
static unsigned level(struct sim *sim, unsigned little, unsigned much)
{
	const unsigned levels[] = {0, little, much};

	return levels[hf_rng_below(&sim->rng, HF_ARRAY_LEN(levels))];
}

#define FENCED_NODES_PER_HOUR 60
#define FENCED_RUN (5 * HF_MINUTE)
#define PLUGIN_PODS_PER_HOUR 60

/* In half of the sunny worlds people only create jobs. */
static void people_wait(struct sim_mood *mood)
{
	for (unsigned kind = 0; kind < SIM_TROUBLES; kind++)
		if (sim_troubles[kind].group == SIM_BY_PEOPLE)
			mood->weight[kind] = 0;
}

/* Ranks have fences in a few of the worlds in which ranks report steps and nodes fail. */
static void draw_fences(struct sim *sim)
{
	unsigned *per_hour = &sim->mood.per_hour[SIM_BY_NODE];

	sim->mood.fences = sim->seed % 64 == 22 || sim->seed % 256 == 44;
	if (!sim->mood.fences)
		return;
	for (unsigned kind = SIM_FENCES_FIRST; kind < SIM_PLUGINS_FIRST; kind++)
		sim->mood.weight[kind] =
			level(sim, sim_troubles[kind].little, sim_troubles[kind].much);
	/* The jobs run long enough for nodes to be lost under them. The troubles that leave a lost
	 * machine alive are more frequent. */
	*per_hour = *per_hour < FENCED_NODES_PER_HOUR ? FENCED_NODES_PER_HOUR : *per_hour;
	sim->mood.weight[SIM_KUBELET_DEAD] += sim_troubles[SIM_KUBELET_DEAD].much;
	sim->mood.weight[SIM_PARTITIONED] += sim_troubles[SIM_PARTITIONED].much;
	sim->mood.run_max += FENCED_RUN;
}

/* Kubelets report devices in some sunny worlds, and in some with rare settings. */
static void draw_plugins(struct sim *sim)
{
	unsigned *per_hour = &sim->mood.per_hour[SIM_BY_POD];

	sim->mood.plugins = sim->seed % 64 == 8 || sim->seed % 64 == 21;
	if (!sim->mood.plugins)
		return;
	for (unsigned kind = SIM_PLUGINS_FIRST; kind < SIM_TROUBLES; kind++)
		sim->mood.weight[kind] =
			level(sim, sim_troubles[kind].little, sim_troubles[kind].much);
	sim->mood.weight[SIM_DEVICE_FAILED] = 0;
	*per_hour = *per_hour < PLUGIN_PODS_PER_HOUR ? PLUGIN_PODS_PER_HOUR : *per_hour;
}

/* Draws which worlds have jobs with rare settings, and ranks that report their steps; some sunny
 * worlds are among both. All other seeds mean what they did before. */
static void draw_jobs(struct sim *sim)
{
	/* The operator may rely on lists of the present, except in these worlds. */
	if (sim->seed % 16 != 9)
		sim->mood.weight[SIM_LIST_PAST] = 0;
	sim->mood.rare = sim->seed % 8 == 5 || sim->seed % 64 == 24 || sim->seed % 64 == 28;
	sim->mood.trains = sim->seed % 16 == 6 || sim->seed % 64 == 40 || sim->seed % 64 == 44;
	for (unsigned kind = SIM_TRAINING_FIRST; sim->mood.trains && kind < SIM_FENCES_FIRST;
	     kind++)
		sim->mood.weight[kind] =
			level(sim, sim_troubles[kind].little, sim_troubles[kind].much);
	draw_fences(sim);
	draw_plugins(sim);
}

static void draw_mood(struct sim *sim)
{
	struct sim_mood *mood = &sim->mood;
	/* Troubles of requests and events are drawn kind by kind. Besides, a third of the seeds has
	 * none of the requests, and a third none of the events. */
	unsigned api = level(sim, 1, 1), watch = level(sim, 1, 1);

	bool nodes_only = sim->seed % 8 == 4;

	mood->sunny = sim->seed % 8 == 0 || nodes_only;
	for (unsigned kind = 0; kind < SIM_TRAINING_FIRST; kind++) {
		const struct sim_trouble_info *info = &sim_troubles[kind];
		unsigned weight = level(sim, info->little, info->much);
		bool quiet = (info->group == SIM_BY_REQUEST && api == 0) ||
			     (info->group == SIM_BY_EVENT && watch == 0) ||
			     (info->group <= SIM_BY_LIFE && mood->sunny);

		mood->weight[kind] = quiet ? 0 : weight;
	}
	if (mood->sunny && sim->seed / 64 % 2 == 0)
		people_wait(mood);
	mood->weight[SIM_JOB_MADE] = sim_troubles[SIM_JOB_MADE].much;
	mood->per_hour[SIM_BY_LIFE] = mood->sunny ? 0 : level(sim, 5, 30);
	mood->per_hour[SIM_BY_PEOPLE] = 10 + level(sim, 30, 120);
	mood->per_hour[SIM_BY_POD] = level(sim, 40, 200);
	mood->per_hour[SIM_BY_NODE] = nodes_only ? 40 : mood->sunny ? 0 : level(sim, 6, 40);
	mood->trouble = SIM_TROUBLE_MIN + sim_span(sim, SIM_TROUBLE_MAX - SIM_TROUBLE_MIN);
	mood->run_max = HF_SECOND * (hf_time)(10 + hf_rng_below(&sim->rng, 290));
	mood->start_max = HF_MS * (hf_time)(1 + hf_rng_below(&sim->rng, 5000));
	mood->lag_max = HF_SECOND * (hf_time)(10 + hf_rng_below(&sim->rng, 170));
	draw_jobs(sim);
}

/* In a script nothing happens by chance. */
static void script_mood(struct sim *sim)
{
	sim->mood.sunny = sim->calm = true;
	sim->mood.trains = sim->script->trains;
	sim->mood.fences = sim->script->fences;
	sim->mood.run_max = SIM_SCRIPT_RUN;
	sim->mood.start_max = HF_SECOND;
}

/* --- one seed ------------------------------------------------------------------------------ */

static void random_bytes(void *arg, void *bytes, size_t len)
{
	struct sim *sim = arg;
	unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		at[i] = (unsigned char)hf_rng_next(&sim->engine_rng);
}

/* Runs until the operators have had no work for a while and all jobs have settled. */
static bool calm_down(struct sim *sim)
{
	hf_time still_since = sim_now(sim), limit = sim_now(sim) + SIM_CALM_MAX;
	hf_time still = sim->n_lives > 1 ? SIM_CALM_STILL : SIM_CALM_STILL_ALONE;
	unsigned long long work = sim->work;

	while (sim_now(sim) < limit) {
		if (!sim_advance(sim, sim_now(sim) + SIM_CALM_LOOK))
			return false;
		sim_check_clock(sim);
		if (work != sim->work || !sim_is_settled(sim))
			still_since = sim_now(sim);
		work = sim->work;
		if (sim_now(sim) - still_since >= still)
			break;
	}
	return true;
}

static void live(struct sim *sim)
{
	if (sim->script == NULL && !sim_advance(sim, sim->mood.trouble))
		return;
	sim_tell(sim, "---- calm ----");
	sim->calm = true;
	if (sim->script == NULL) {
		sim_lives_calm(sim);
		sim_nodes_calm(sim);
		sim_people_calm(sim);
	}
	if (!calm_down(sim))
		return;
	sim_tell(sim, "---- quiet ----");
	sim->quiet = true;
	if (sim_advance(sim, sim_now(sim) + SIM_QUIET))
		sim_check_end(sim);
}

static void world_begin(struct sim *sim)
{
	struct hf_memstore_options options = {.random = random_bytes, .random_arg = sim};
	struct hf_error err;
	int rc;

	sim->loop = hf_loop_create_virtual(SIM_WALL_START);
	rc = hf_memstore_create(sim->loop, &options, &sim->memstore, &err);
	hf_assert(rc == 0);
	sim->gc = hf_gc_create(sim->memstore, NULL);
	sim_checks_init(sim);
	sim_kubelet_init(sim);
	if (sim->played)
		return;
	if (sim->script != NULL)
		sim_script_begin(sim);
	else
		sim_people_init(sim);
	sim_lives_begin(sim);
}

static void world_end(struct sim *sim)
{
	if (!sim->played)
		sim_lives_end(sim);
	if (sim->script == NULL)
		sim_people_release(sim);
	else if (!sim->played)
		sim_script_end(sim);
	sim_kubelet_release(sim);
	sim_checks_release(sim);
	hf_gc_destroy(sim->gc);
	hf_memstore_destroy(sim->memstore);
	hf_loop_destroy(sim->loop);
}

static void sum_up(struct sim *sim, struct sim_summary *summary, struct sim_outcome *outcome)
{
	summary->seeds++;
	summary->crashes += sim->crashes;
	summary->leaders += sim->leaders;
	summary->requests += sim->requests;
	summary->checked += sim->checks->checked;
	summary->troubles += sim->dice.happened.len;
	summary->minutes += (unsigned long long)(sim_now(sim) / HF_MINUTE);
	sim_coverage_add(&summary->coverage, &sim->dice.coverage);
	outcome->failed = sim->failed;
	outcome->digest = sim->checks->digest;
	snprintf(outcome->failure, sizeof(outcome->failure), "%s", sim->failure);
	outcome->happened = sim->dice.happened;
}

void sim_run(const struct sim_options *options, struct sim_summary *summary,
	     struct sim_outcome *ret_outcome)
{
	struct sim *sim = hf_xcalloc(1, sizeof(*sim));

	sim->seed = options->seed;
	sim->narrow_schema = options->narrow_schema;
	sim->unchecked = options->unchecked;
	sim->story.aloud = options->aloud;
	sim->story.kept = options->story || options->aloud;
	hf_rng_init(&sim->rng, options->seed);
	hf_rng_init(&sim->engine_rng, options->seed + 1);
	hf_rng_init(&sim->beside, options->seed + 41);
	sim_dice_init(sim, options->only);
	sim->script = options->script;
	sim->crash_at = options->crash_at;
	sim->crash = options->crash;
	sim->played = options->play != NULL;
	if (sim->script == NULL)
		draw_mood(sim);
	else
		script_mood(sim);
	world_begin(sim);
	if (sim->played)
		options->play(sim, options->play_arg);
	else
		live(sim);
	if (sim->failed && sim->story.kept && !sim->story.aloud)
		sim_story_print(sim);
	sum_up(sim, summary, ret_outcome);
	if (sim->script != NULL && !sim->played)
		sim_script_result(sim, ret_outcome->result);
	world_end(sim);
	sim_story_release(sim);
	free(sim);
}
