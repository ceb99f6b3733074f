/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"
#include "core/brain_internal.h"
#include "core/framework.h"
#include "core/names.h"
#include "harness/test.h"

#include <string.h>

static const hf_time now = (hf_time)100 * 3600 * HF_SECOND;

struct world {
	struct hf_arena *arena;
	struct hf_brain brain;
	struct hf_template pod;
	struct hf_edits edits;
	struct hf_observed seen;
};

static void begin(struct world *world)
{
	memset(world, 0, sizeof(*world));
	world->arena = hf_arena_create((size_t)1 << 20);
	world->brain.arena = world->arena;
	world->brain.now = now;
	world->brain.job.roles[0].pod = &world->pod;
	world->brain.job.recovery.avoid_devices = true;
	world->brain.seen = &world->seen;
	hf_edits_init(&world->edits, &world->brain.shared, world->arena);
}

static void record(struct world *world, const char *node, const char *reason, enum hf_class cause,
		   hf_time at)
{
	struct hf_ledger *ledger = &world->brain.ledger;

	ledger->records[ledger->records_len++] = (struct hf_record){
		.node = node, .reason = reason, .cause = cause, .detected_at = at};
}

/* "n1 n2": the nodes that are avoided, in order. */
static void expect(struct world *world, const char *names)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(256);

	hf_avoid_nodes(&world->brain, 0, &world->edits);
	for (size_t i = 0; i < world->edits.len; i++) {
		assert_int_equal(world->edits.items[i].kind, HF_EDIT_AVOID_NODE);
		assert_int_equal(world->edits.items[i].number, 0);
		hf_strbuf_addf(&text, "%s%s", i > 0 ? " " : "", world->edits.items[i].name);
	}
	assert_string_equal(text.data ? text.data : "", names);
	hf_arena_destroy(world->arena);
}

static void lost_nodes_broken_devices_and_refusals_are_avoided_newest_first(void **state)
{
	struct world world;

	(void)state;
	begin(&world);
	record(&world, "n3", "UnexpectedAdmissionError", HF_CLASS_ADMISSION, now - HF_SECOND);
	record(&world, "n2", NULL, HF_CLASS_DEVICE, now - HF_SECOND);
	record(&world, "n1", "NodeLost", HF_CLASS_INFRASTRUCTURE, now - HF_SECOND);
	expect(&world, "n3 n2 n1");
}

static void a_device_that_is_out_of_service_must_be_avoided(void **state)
{
	static const char *const sick[] = {"n2"};
	struct world world;

	(void)state;
	begin(&world);
	record(&world, "n2", "NodeLost", HF_CLASS_INFRASTRUCTURE, now);
	record(&world, "n1", "fabric", HF_CLASS_DEVICE, now);
	record(&world, "n2", "reboot", HF_CLASS_DEVICE, now);
	world.seen.sick = sick;
	world.seen.sick_len = 1;
	hf_avoid_nodes(&world.brain, 0, &world.edits);
	assert_int_equal(world.edits.len, 3);
	/* The stricter of two reasons counts. */
	assert_string_equal(world.edits.items[0].name, "n2");
	assert_int_equal(world.edits.items[0].number, 1);
	assert_int_equal(world.edits.items[1].number, 0);
	/* The pod says so itself. */
	assert_string_equal(world.edits.items[2].name, HF_ANNOTATION_AVOIDS);
	assert_string_equal(world.edits.items[2].value, "n2");
	hf_arena_destroy(world.arena);
}

static void devices_are_not_avoided_where_nobody_wants_it(void **state)
{
	struct world world;

	(void)state;
	begin(&world);
	world.brain.job.recovery.avoid_devices = false;
	record(&world, "n2", "reboot", HF_CLASS_DEVICE, now);
	record(&world, "n1", "NodeLost", HF_CLASS_INFRASTRUCTURE, now);
	expect(&world, "n1");
}

static void other_ends_say_nothing_about_a_node(void **state)
{
	struct world world;

	(void)state;
	begin(&world);
	record(&world, "n1", NULL, HF_CLASS_APPLICATION, now);
	record(&world, "n2", "PreemptionByScheduler", HF_CLASS_INFRASTRUCTURE, now);
	record(&world, NULL, NULL, HF_CLASS_DEVICE, now);
	expect(&world, "");
}

static void a_day_is_enough(void **state)
{
	struct world world;

	(void)state;
	begin(&world);
	record(&world, "n1", "NodeLost", HF_CLASS_INFRASTRUCTURE, now - 24 * 3600 * HF_SECOND);
	record(&world, "n2", "NodeLost", HF_CLASS_INFRASTRUCTURE,
	       now - 24 * 3600 * HF_SECOND + HF_SECOND);
	expect(&world, "n2");
}

static void each_node_is_named_once(void **state)
{
	struct world world;

	(void)state;
	begin(&world);
	for (int i = 0; i < 4; i++)
		record(&world, i % 2 ? "n1" : "n2", "NodeLost", HF_CLASS_INFRASTRUCTURE, now);
	expect(&world, "n2 n1");
}

static void nothing_is_added_where_somebody_else_places(void **state)
{
	struct world world;

	(void)state;
	begin(&world);
	world.pod.placed = true;
	record(&world, "n1", "NodeLost", HF_CLASS_INFRASTRUCTURE, now);
	expect(&world, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_that_is_out_of_service_must_be_avoided),
		cmocka_unit_test(devices_are_not_avoided_where_nobody_wants_it),
		cmocka_unit_test(lost_nodes_broken_devices_and_refusals_are_avoided_newest_first),
		cmocka_unit_test(other_ends_say_nothing_about_a_node),
		cmocka_unit_test(a_day_is_enough),
		cmocka_unit_test(each_node_is_named_once),
		cmocka_unit_test(nothing_is_added_where_somebody_else_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
