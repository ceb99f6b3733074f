/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "base/str.h"
#include "core/policy/policy_internal.h"
#include "core/model/framework.h"
#include "core/model/names.h"
#include "harness/test.h"

#include <string.h>

static const hf_time now = (hf_time)100 * 3600 * HF_SECOND;

struct world {
	struct hf_arena *arena;
	struct hf_brain brain;
	struct hf_cache cache;
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
	world->brain.cache = &world->cache;
	hf_edits_init(&world->edits, &world->cache.shared, world->arena);
}

static void record(struct world *world, const char *node, const char *reason, enum hf_class cause,
		   hf_time at)
{
	struct hf_ledger *ledger = &world->brain.ledger;

	ledger->records[ledger->records_len++] = (struct hf_record){
		.node = node, .reason = reason, .cause = cause, .detected_at = at};
}

/* Check that a new pod avoids these nodes as a preference, in this order; names: "n1 n2". */
static void expect(struct world *world, const char *names)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(256);

	hf_avoid_nodes(&world->brain, 0, true, &world->edits);
	for (size_t i = 0; i < world->edits.len; i++) {
		assert_int_equal(world->edits.items[i].kind, HF_EDIT_AVOID_NODE);
		assert_int_equal(world->edits.items[i].number, 0);
		hf_strbuf_addf(&text, "%s%s", i > 0 ? " " : "", world->edits.items[i].name);
	}
	assert_string_equal(text.data ? text.data : "", names);
	hf_arena_destroy(world->arena);
}

/* The proof of an act ends the avoidance of a failed device, and of nothing else. */
static void a_mended_node_is_not_avoided(void **state)
{
	static const struct hf_mended_seen mended[] = {
		{.node = "n1", .at = (hf_time)99 * 3600 * HF_SECOND},
		{.node = "n2", .at = (hf_time)97 * 3600 * HF_SECOND},
		{.node = "n3", .at = (hf_time)99 * 3600 * HF_SECOND},
	};
	const hf_time failed = (hf_time)98 * 3600 * HF_SECOND;
	struct world world;

	(void)state;
	begin(&world);
	world.seen.mended = mended;
	world.seen.mended_len = HF_ARRAY_LEN(mended);
	record(&world, "n1", NULL, HF_CLASS_DEVICE, failed);
	/* It failed again after that act. */
	record(&world, "n2", NULL, HF_CLASS_DEVICE, failed);
	/* An act on devices does not bring a lost node back. */
	record(&world, "n3", HF_REASON_NODE_LOST, HF_CLASS_INFRASTRUCTURE, failed);
	record(&world, "n4", NULL, HF_CLASS_DEVICE, failed);
	expect(&world, "n2 n3 n4");
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
	static const struct hf_sick_seen sick[] = {
		{.node = "n2", .since = HF_TIME_NONE, .silent = true}};
	struct world world;

	(void)state;
	begin(&world);
	record(&world, "n2", "NodeLost", HF_CLASS_INFRASTRUCTURE, now);
	record(&world, "n1", "fabric", HF_CLASS_DEVICE, now);
	record(&world, "n2", "reboot", HF_CLASS_DEVICE, now);
	world.seen.sick = sick;
	world.seen.sick_len = 1;
	hf_avoid_nodes(&world.brain, 0, false, &world.edits);
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

/* Let the nodes n0 to n<len - 1> of the list `sick` have a device that failed a second ago.  Check
 * that a new pod must not run on the nodes in names ("n1 n2"), in this order. */
static void expect_musts(struct world *world, struct hf_sick_seen *sick, size_t len, bool replaces,
			 const char *names)
{
	HF_AUTO_STRBUF text = HF_STRBUF_INIT(4096);
	struct hf_edits edits;

	world->seen.sick = sick;
	world->seen.sick_len = len;
	world->cache.sick = NULL;
	memset(world->cache.avoided, 0, sizeof(world->cache.avoided));
	hf_edits_init(&edits, &world->cache.shared, world->arena);
	hf_avoid_nodes(&world->brain, 0, replaces, &edits);
	for (size_t i = 0; i < edits.len; i++)
		if (edits.items[i].number == 1)
			hf_strbuf_addf(&text, "%s%s", i > 0 ? " " : "", edits.items[i].name);
	assert_string_equal(text.data ? text.data : "", names);
}

static void what_is_out_of_service_now_must_be_avoided_whoever_had_it(void **state)
{
	struct hf_sick_seen sick[] = {{.node = "n4", .since = now - HF_SECOND},
				      {.node = "n3", .since = HF_TIME_NONE},
				      {.node = "n2", .since = now, .silent = true},
				      {.node = "n1", .since = now - 24 * 3600 * HF_SECOND},
				      {.node = "n0", .since = now}};
	struct hf_node_seen node;
	struct world world;

	(void)state;
	begin(&world);
	world.pod.devices = true;
	expect_musts(&world, sick, HF_ARRAY_LEN(sick), true, "n0 n3 n4");
	/* The order of excluded nodes: nodes with a record, then the job's own nodes, then the
	 * others. */
	hf_node_seen_init(&node, "n4", HF_NODE_READY, now);
	world.seen.nodes = &node;
	world.seen.nodes_len = 1;
	expect_musts(&world, sick, HF_ARRAY_LEN(sick), true, "n4 n0 n3");
	record(&world, "n2", "reboot", HF_CLASS_DEVICE, now);
	record(&world, "n3", "NodeLost", HF_CLASS_INFRASTRUCTURE, now);
	expect_musts(&world, sick, HF_ARRAY_LEN(sick), true, "n2 n3 n4 n0");
	hf_arena_destroy(world.arena);
}

static void only_replacements_that_ask_for_devices_are_kept_off_what_is_out_of_service(void **state)
{
	struct hf_sick_seen sick[] = {{.node = "n0", .since = now}};
	struct world world;

	(void)state;
	begin(&world);
	expect_musts(&world, sick, 1, true, "");
	world.pod.devices = true;
	expect_musts(&world, sick, 1, false, "");
	expect_musts(&world, sick, 1, true, "n0");
	world.brain.job.recovery.avoid_devices = false;
	expect_musts(&world, sick, 1, true, "");
	world.brain.job.recovery.avoid_devices = true;
	world.pod.placed = true;
	expect_musts(&world, sick, 1, true, "");
	hf_arena_destroy(world.arena);
}

/* A claim that pods share stays allocated while one of them is left, so a pod with such a claim gets the failed device
 * again. */
static void a_device_that_is_withheld_concerns_pods_with_shared_claims_alone(void **state)
{
	struct hf_sick_seen sick[] = {{.node = "n0", .since = now, .withheld = true},
				      {.node = "n1", .since = now}};
	struct world world;

	(void)state;
	begin(&world);
	world.pod.devices = true;
	expect_musts(&world, sick, 2, true, "n1");
	record(&world, "n0", "gpu-reset", HF_CLASS_DEVICE, now);
	assert_false(hf_avoid_is_must(&world.brain, 0, "n0", 2));
	world.pod.shared_claims = true;
	expect_musts(&world, sick, 2, true, "n0 n1");
	assert_true(hf_avoid_is_must(&world.brain, 0, "n0", 2));
	hf_arena_destroy(world.arena);
}

static void more_than_fit_are_cut_the_same_way_in_whatever_order_they_come(void **state)
{
	struct hf_sick_seen sick[40];
	HF_AUTO_STRBUF names = HF_STRBUF_INIT(4096);
	struct world world;

	(void)state;
	begin(&world);
	world.pod.devices = true;
	for (int i = 0; i < 40; i++)
		sick[(i * 7) % 40] = (struct hf_sick_seen){
			.node = hf_arena_printf(world.arena, "n%02d", i), .since = now};
	for (int i = 0; i < 32; i++)
		hf_strbuf_addf(&names, "%sn%02d", i > 0 ? " " : "", i);
	expect_musts(&world, sick, 40, true, names.data);
	/* Each node remains a must. */
	assert_true(hf_avoid_is_must(&world.brain, 0, "n39", 3));
	assert_false(hf_avoid_is_must(&world.brain, 0, "n399", 4));
	assert_false(hf_avoid_is_must(&world.brain, 0, "n3", 2));
	hf_arena_destroy(world.arena);
}

static void devices_are_not_avoided_unless_the_job_wants_it(void **state)
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

static void nothing_is_added_to_a_pod_that_is_placed(void **state)
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
		cmocka_unit_test(devices_are_not_avoided_unless_the_job_wants_it),
		cmocka_unit_test(what_is_out_of_service_now_must_be_avoided_whoever_had_it),
		cmocka_unit_test(
			only_replacements_that_ask_for_devices_are_kept_off_what_is_out_of_service),
		cmocka_unit_test(more_than_fit_are_cut_the_same_way_in_whatever_order_they_come),
		cmocka_unit_test(a_device_that_is_withheld_concerns_pods_with_shared_claims_alone),
		cmocka_unit_test(a_mended_node_is_not_avoided),
		cmocka_unit_test(lost_nodes_broken_devices_and_refusals_are_avoided_newest_first),
		cmocka_unit_test(other_ends_say_nothing_about_a_node),
		cmocka_unit_test(a_day_is_enough),
		cmocka_unit_test(each_node_is_named_once),
		cmocka_unit_test(nothing_is_added_to_a_pod_that_is_placed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
