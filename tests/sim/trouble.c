/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "sim/sim.h"

#include "base/mem.h"
#include "base/str.h"
#include "sim/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_ROW(kind, name_, group_, little_, much_)                                               \
	[SIM_##kind] = {name_, SIM_BY_##group_, little_, much_},
const struct sim_trouble_info sim_troubles[SIM_TROUBLES] = {SIM_TROUBLES_LIST(SIM_ROW)};
#undef SIM_ROW

static const char *const state_names[SIM_STATES] = {"no job",     "created",   "running",
						    "restart",    "tearing",   "creating",
						    "suspending", "suspended", "ended"};

/* --- dice ------------------------------------------------------------------------------------ */

void sim_dice_init(struct sim *sim, const struct sim_ids *only)
{
	sim->dice.only = only;
	for (unsigned kind = 0; kind < SIM_TROUBLES; kind++)
		hf_rng_init(&sim->dice.of[kind],
			    sim->seed * 1000003 + hf_hash_str(sim_troubles[kind].name));
}

static void cover(struct sim *sim, enum sim_trouble kind)
{
	unsigned long long *hits = sim->dice.coverage.hits[kind];

	if (sim_states_count(sim, hits) == 0)
		hits[SIM_NO_JOB]++;
}

bool sim_do(struct sim *sim, enum sim_trouble kind)
{
	struct sim_dice *dice = &sim->dice;
	uint32_t id = kind * SIM_ORDINALS + dice->seen[kind]++;

	hf_assert(dice->seen[kind] < SIM_ORDINALS);
	if (dice->only != NULL && !sim_ids_have(dice->only, id))
		return false;
	hf_rng_init(&dice->how, sim->seed ^ (0x9e3779b97f4a7c15u * (id + 1)));
	sim_ids_push(&dice->happened, id);
	cover(sim, kind);
	sim_tell(sim, "! %s:%u", sim_troubles[kind].name, id % SIM_ORDINALS);
	return true;
}

bool sim_happens(struct sim *sim, enum sim_trouble kind)
{
	unsigned weight = sim->mood.weight[kind];

	return weight > 0 && !sim->calm && hf_rng_below(&sim->dice.of[kind], 1000) < weight &&
	       sim_do(sim, kind);
}

uint64_t sim_how(struct sim *sim, uint64_t bound)
{
	return hf_rng_below(&sim->dice.how, bound);
}

hf_time sim_how_span(struct sim *sim, hf_time max)
{
	return (hf_time)sim_how(sim, (uint64_t)max + 1);
}

enum sim_trouble sim_pick(struct sim *sim, enum sim_group group, struct hf_rng *rng)
{
	uint64_t sum = 0, at;

	for (unsigned kind = 0; kind < SIM_TROUBLES; kind++)
		if (sim_troubles[kind].group == group)
			sum += sim->mood.weight[kind];
	if (sum == 0)
		return SIM_TROUBLES;
	at = hf_rng_below(rng, sum);
	for (unsigned kind = 0; kind < SIM_TROUBLES; kind++) {
		if (sim_troubles[kind].group != group)
			continue;
		if (at < sim->mood.weight[kind])
			return (enum sim_trouble)kind;
		at -= sim->mood.weight[kind];
	}
	return SIM_TROUBLES;
}

/* --- sets of troubles ------------------------------------------------------------------------ */

void sim_ids_push(struct sim_ids *set, uint32_t id)
{
	if (set->len == set->size) {
		set->size = set->size == 0 ? 64 : 2 * set->size;
		set->ids = hf_xrealloc(set->ids, set->size * sizeof(*set->ids));
	}
	set->ids[set->len++] = id;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void sim_ids_sort(struct sim_ids *set)
{
	if (set->len > 0)
		qsort(set->ids, set->len, sizeof(*set->ids), by_number);
}

bool sim_ids_have(const struct sim_ids *set, uint32_t id)
{
	return set->len > 0 &&
	       bsearch(&id, set->ids, set->len, sizeof(*set->ids), by_number) != NULL;
}

void sim_ids_release(struct sim_ids *set)
{
	free(set->ids);
	*set = (struct sim_ids){0};
}

void sim_ids_print(const struct sim_ids *set)
{
	for (size_t i = 0; i < set->len; i++)
		printf("%s%s:%u", i > 0 ? "," : "", sim_troubles[set->ids[i] / SIM_ORDINALS].name,
		       set->ids[i] % SIM_ORDINALS);
	if (set->len == 0)
		printf("none");
}

static int parse_one(const char *text, struct sim_ids *set)
{
	const char *colon = strchr(text, ':');
	int64_t ordinal = 0;

	if (colon == NULL || hf_str_to_i64(colon + 1, 0, SIM_ORDINALS - 1, &ordinal, NULL) != 0)
		return -1;
	for (unsigned kind = 0; kind < SIM_TROUBLES; kind++) {
		const char *name = sim_troubles[kind].name;

		if (strlen(name) != (size_t)(colon - text) ||
		    strncmp(text, name, (size_t)(colon - text)) != 0)
			continue;
		sim_ids_push(set, kind * SIM_ORDINALS + (uint32_t)ordinal);
		return 0;
	}
	return -1;
}

int sim_ids_parse(const char *text, struct sim_ids *ret_set)
{
	HF_AUTOFREE char *copy = hf_xstrdup(text);
	char *rest = copy;

	for (char *one; (one = strsep(&rest, ",")) != NULL;)
		if (!hf_streq(one, "none") && parse_one(one, ret_set) != 0)
			return -1;
	sim_ids_sort(ret_set);
	return 0;
}

/* --- coverage -------------------------------------------------------------------------------- */

void sim_coverage_add(struct sim_coverage *to, const struct sim_coverage *from)
{
	for (unsigned kind = 0; kind < SIM_TROUBLES; kind++)
		for (unsigned state = 0; state < SIM_STATES; state++)
			to->hits[kind][state] += from->hits[kind][state];
}

void sim_coverage_print(const struct sim_coverage *coverage)
{
	unsigned zeros = 0;

	printf("%-16s", "trouble × job");
	for (unsigned state = 0; state < SIM_STATES; state++)
		printf(" %10s", state_names[state]);
	printf("\n");
	for (unsigned kind = 0; kind < SIM_TROUBLES; kind++) {
		printf("%-16s", sim_troubles[kind].name);
		for (unsigned state = 0; state < SIM_STATES; state++) {
			zeros += coverage->hits[kind][state] == 0;
			printf(" %10llu", coverage->hits[kind][state]);
		}
		printf("\n");
	}
	printf("%u of %u fields are zero\n", zeros, SIM_TROUBLES * SIM_STATES);
}
