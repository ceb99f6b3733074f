/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/health.h"

#include "base/random.h"
#include "base/str.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

/*
 * Random lives of a node: boards fail, are reset, change places over restarts and are exchanged, and the brain gets
 * the evidence that a real node would give.  A sick board is never Healthy.  A well board is not held out of service.
 * A board that has failed for good has had as many stops as that needs.
 */

#define BOARDS 4
#define LIVES 60
#define DEEDS 40
/* After so many measurements a fault that is measured has been found: links must be bad for a while before they
 * count. */
#define FOUND 4

struct board {
	bool lost, wants_reset, narrow;
	/* the number of measurements that found the device lost, or in need of a reset */
	int looks;
	int stops; /* of this life */
};

static struct health_node n;
static struct hf_rng rng;
static struct board boards[BOARDS];
static int at[BOARDS]; /* which board is at an address */
static bool named;     /* the driver has told which */
static char boot_id[16];
static int boots;

static unsigned below(unsigned max)
{
	return (unsigned)hf_rng_below(&rng, max);
}

static void name_all(void)
{
	for (int i = 0; i < BOARDS; i++) {
		struct hf_health_presence *p = &n.devices[i];

		memset(p->uuid, 0, sizeof(p->uuid));
		if (named)
			snprintf(p->uuid, sizeof(p->uuid), "GPU-%d", at[i]);
	}
}

static const char *address_of(int board)
{
	for (int i = 0; i < BOARDS; i++)
		if (at[i] == board)
			return n.devices[i].id;
	fail();
	return "";
}

/* ---- what happens ----------------------------------------------------------------------------------- */

static void stop(int board)
{
	static const int codes[] = {48, 62, 119, 95};

	health_xid(&n, codes[below(HF_ARRAY_LEN(codes))], address_of(board));
	boards[board].wants_reset = true;
	boards[board].stops++;
}

static void lose(int board)
{
	health_xid(&n, 79, address_of(board));
	boards[board].lost = true;
	boards[board].stops++;
}

static void mend(int board)
{
	boards[board] = (struct board){.stops = boards[board].stops};
}

static void say_well(int board)
{
	mend(board);
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, address_of(board));
}

static void say_all_well(void)
{
	for (int i = 0; i < BOARDS; i++)
		say_well(i);
	health_order(&n, HF_HEALTH_ORDER_CLEAR, HF_HEALTH_RECORD, "");
}

static void restart(bool at_once)
{
	snprintf(boot_id, sizeof(boot_id), "boot-%d", ++boots);
	n.boot = boot_id;
	n.now += HF_MINUTE;
	n.boot_at = n.now;
	named = at_once;
	for (int i = 0; i < BOARDS; i++) {
		boards[i].lost = boards[i].wants_reset = false;
		boards[i].looks = 0;
	}
	if (below(3) == 0) {
		unsigned a = below(BOARDS), b = below(BOARDS);
		int was = at[a];

		at[a] = at[b];
		at[b] = was;
	}
}

static void happen(void)
{
	int board = (int)below(BOARDS);

	switch (below(12)) {
	case 0:
	case 1: stop(board); break;
	case 2: lose(board); break;
	case 3: health_xid(&n, 78, address_of(board)); break;
	case 4: health_xid(&n, 13, address_of(board)); break;
	case 5: boards[board].wants_reset = false; break;
	case 6:
		for (int i = 0; i < BOARDS; i++)
			boards[i].wants_reset = false;
		break;
	case 7: restart(below(2)); break;
	case 8: say_well(board); break;
	case 9:
		if (below(3) == 0)
			say_all_well();
		break;
	case 10: boards[board].narrow = !boards[board].narrow; break;
	default:
		for (int i = 0; i < BOARDS; i++)
			stop(i);
		break;
	}
}

/* ---- what is seen ----------------------------------------------------------------------------------- */

static void look_at(int i)
{
	const char *id = n.devices[i].id;
	struct board *board = &boards[at[i]];
	struct hf_health_sample *s;

	board->looks = board->lost || board->wants_reset ? board->looks + 1 : 0;
	health_sample(&n, HF_HEALTH_BUSLOST, id)->bus.lost = board->lost;
	if (board->lost)
		return;
	health_sample(&n, HF_HEALTH_RECOVERY, id)->recovery.action = board->wants_reset;
	s = health_sample(&n, HF_HEALTH_PCIE, id);
	s->source = HF_HEALTH_BY_SYSFS;
	s->pcie.width = board->narrow ? 8 : 16;
	s->pcie.width_max = 16;
	s->pcie.speed = s->pcie.speed_max = 32000;
}

static bool is_for_person(const struct hf_health_device *d)
{
	for (size_t i = 0; i < d->faults_len; i++)
		if (d->faults[i].open && d->faults[i].clear == HF_HEALTH_BY_PERSON)
			return true;
	return false;
}

static void check(unsigned life)
{
	for (int i = 0; i < BOARDS && named; i++) {
		const struct hf_health_device *d = health_device(&n, n.devices[i].id);
		const struct board *board = &boards[at[i]];

		if (board->looks >= FOUND && d->state == HF_HEALTH_HEALTHY)
			fail_msg("life %u: %s is lost or wants a reset, and is Healthy", life,
				 d->id);
		if (board->stops < 5 && is_for_person(d))
			fail_msg("life %u: %s stopped %d times, and is for a person", life, d->id,
				 board->stops);
	}
}

static void look(unsigned life, unsigned times)
{
	for (unsigned k = 0; k < times; k++) {
		if (!named && k >= 2)
			named = true;
		name_all();
		for (int i = 0; i < BOARDS; i++)
			look_at(i);
		health_step(&n, (1 + (hf_time)below(6)) * 10 * HF_SECOND);
		check(life);
	}
}

static bool waits_for_person(void)
{
	for (size_t i = 0; i < n.memory.devices_len; i++)
		if (n.memory.devices[i].state == HF_HEALTH_FAILED ||
		    is_for_person(&n.memory.devices[i]))
			return true;
	return false;
}

static void check_well(unsigned life, const char *when)
{
	for (size_t i = 0; i < n.memory.devices_len; i++)
		if (n.memory.devices[i].state != HF_HEALTH_HEALTHY)
			fail_msg("life %u: %s, '%s' is %s", life, when, n.memory.devices[i].id,
				 hf_health_state_name(n.memory.devices[i].state));
}

static void live(unsigned life)
{
	memset(boards, 0, sizeof(boards));
	hf_rng_init(&rng, life);
	boots = 0;
	named = true;
	for (int i = 0; i < BOARDS; i++)
		at[i] = i;
	health_init(&n, BOARDS, 0);
	look(life, 2);
	for (int i = 0; i < DEEDS; i++) {
		happen();
		look(life, 1 + below(20));
	}
	for (int i = 0; i < BOARDS; i++)
		mend(i);
	restart(true);
	look(life, 150);
	if (!waits_for_person())
		check_well(life, "an hour after a restart");
	say_all_well();
	look(life, 100);
	check_well(life, "after a person's word");
	health_release(&n);
}

static void the_sick_are_not_well_and_the_well_are_not_held(void **state)
{
	(void)state;
	for (unsigned life = 1; life <= LIVES; life++)
		live(life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sick_are_not_well_and_the_well_are_not_held),
	};

	return cmocka_run_group_tests_name("lives", tests, NULL, NULL);
}
