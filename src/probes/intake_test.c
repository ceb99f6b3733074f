/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "probes/intake.h"

#include "base/mem.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

struct world {
	struct hf_loop *loop;
	struct hf_intake *intake;
	int news, urgent;
};

static void on_news(void *arg, bool urgent)
{
	struct world *w = arg;

	w->news++;
	w->urgent += urgent;
}

static int setup(void **state)
{
	static struct world w;
	struct hf_intake_options options = {.boot_at = HF_DAY, .news = on_news, .arg = &w};

	memset(&w, 0, sizeof(w));
	w.loop = options.loop = hf_loop_create_virtual(0);
	w.intake = hf_intake_create(&options);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	hf_intake_destroy(w->intake);
	hf_loop_destroy(w->loop);
	return 0;
}

static struct hf_health_presence gpu(const char *id, const char *uuid)
{
	struct hf_health_presence p = {.kind = HF_HEALTH_GPU};

	snprintf(p.id, sizeof(p.id), "%s", id);
	snprintf(p.uuid, sizeof(p.uuid), "%s", uuid);
	return p;
}

static void what_two_sources_say_of_a_device_is_put_together(void **state)
{
	struct world *w = *state;
	struct hf_health_presence by_sysfs = gpu("0000:1a:00.0", "");
	struct hf_health_presence by_nvml = gpu("0000:1a:00.0", "GPU-1");
	const struct hf_health_presence *devices;
	size_t len;

	hf_intake_device(w->intake, &by_nvml);
	assert_int_equal(w->news, 1);
	hf_intake_device(w->intake, &by_sysfs);
	hf_intake_device(w->intake, &by_nvml);
	assert_int_equal(w->news, 1); /* nothing new */
	devices = hf_intake_devices(w->intake, &len);
	assert_int_equal(len, 1);
	assert_string_equal(devices[0].uuid, "GPU-1");
}

static void evidence_of_the_bus_waits_until_its_device_is_named(void **state)
{
	struct world *w = *state;
	struct hf_health_presence p = gpu("0000:9d:00.0", "");
	struct hf_health_evidence e = hf_health_evidence_none();
	struct hf_health_input input = {0};

	e.detector = HF_HEALTH_AER;
	snprintf(e.device, sizeof(e.device), "0000:9c:01.0");
	assert_true(hf_intake_evidence(w->intake, &e));
	hf_intake_device(w->intake, &p);
	hf_intake_take(w->intake, &input);
	assert_int_equal(input.evidence_len, 0);
	hf_intake_taken(w->intake);
	/* The device's place on the bus becomes known: the evidence about the port above it is
	 * delivered. */
	snprintf(p.above, sizeof(p.above), "0000:9b:00.0 0000:9c:01.0");
	hf_intake_device(w->intake, &p);
	hf_intake_take(w->intake, &input);
	assert_int_equal(input.evidence_len, 1);
	assert_string_equal(input.evidence[0].device, "0000:9c:01.0");
	assert_string_equal(input.devices[0].above, p.above);
	hf_intake_taken(w->intake);
	/* From then on such evidence is delivered at once. NVML's report of the device has no place
	 * and keeps the known one. */
	memset(p.above, 0, sizeof(p.above));
	hf_intake_device(w->intake, &p);
	assert_true(hf_intake_evidence(w->intake, &e));
	hf_intake_take(w->intake, &input);
	assert_int_equal(input.evidence_len, 1);
	assert_string_not_equal(input.devices[0].above, "");
	hf_intake_taken(w->intake);
}

static void evidence_of_the_bus_is_given_at_once_where_an_agent_before_knew_devices(void **state)
{
	struct world *w = *state;
	struct hf_health_evidence e = hf_health_evidence_none();
	struct hf_health_input input = {0};

	hf_intake_remember(w->intake, "0000:9d:00.0", "");
	e.detector = HF_HEALTH_AER;
	snprintf(e.device, sizeof(e.device), "0000:9c:01.0");
	assert_true(hf_intake_evidence(w->intake, &e));
	hf_intake_take(w->intake, &input);
	assert_int_equal(input.evidence_len, 1);
}

static void a_device_without_a_name_or_beyond_the_limit_is_left_out(void **state)
{
	struct world *w = *state;
	struct hf_health_presence p = gpu("", "GPU-1");
	size_t len;

	hf_intake_device(w->intake, &p);
	(void)hf_intake_devices(w->intake, &len);
	assert_int_equal(len, 0);
	for (int i = 0; i < HF_HEALTH_DEVICES_MAX + 5; i++) {
		snprintf(p.id, sizeof(p.id), "gpu-%d", i);
		hf_intake_device(w->intake, &p);
	}
	(void)hf_intake_devices(w->intake, &len);
	assert_int_equal(len, HF_HEALTH_DEVICES_MAX);
}

static void texts_without_an_end_or_with_control_characters_are_made_tame(void **state)
{
	struct world *w = *state;
	struct hf_health_evidence e = hf_health_evidence_none();
	struct hf_health_input input = {0};

	memset(e.device, 'x', sizeof(e.device));
	memcpy(e.line, "a\033[2Jb\xff", 7);
	assert_true(hf_intake_evidence(w->intake, &e));
	hf_intake_take(w->intake, &input);
	assert_int_equal(input.evidence_len, 1);
	assert_int_equal(strlen(input.evidence[0].device), HF_HEALTH_DEVICE_MAX - 1);
	assert_string_equal(input.evidence[0].line, "a?[2Jb?");
	assert_true(input.evidence[0].at == HF_DAY);
}

static void a_detector_is_on_where_one_way_sees_and_tells_why_else(void **state)
{
	struct world *w = *state;
	uint64_t before = hf_intake_states_version(w->intake);
	const char *why;

	assert_int_equal(hf_intake_detector(w->intake, HF_HEALTH_BUSLOST, &why), HF_INTAKE_UNTOLD);
	hf_intake_off(w->intake, HF_HEALTH_BY_NVML, HF_HEALTH_BUSLOST, "no library");
	hf_intake_off(w->intake, HF_HEALTH_BY_NVML, HF_HEALTH_BUSLOST, "no library");
	assert_int_equal(hf_intake_states_version(w->intake), before + 1);
	assert_int_equal(hf_intake_detector(w->intake, HF_HEALTH_BUSLOST, &why), HF_INTAKE_OFF);
	assert_string_equal(why, "no library");
	hf_intake_heard(w->intake, HF_HEALTH_BY_KMSG, HF_HEALTH_BUSLOST);
	assert_int_equal(hf_intake_detector(w->intake, HF_HEALTH_BUSLOST, &why), HF_INTAKE_OK);
	assert_int_equal(hf_intake_state(w->intake, HF_HEALTH_BY_NVML, HF_HEALTH_BUSLOST, &why),
			 HF_INTAKE_OFF);
	assert_true(hf_intake_heard_at(w->intake, HF_HEALTH_BUSLOST) == HF_DAY);
	assert_true(hf_intake_heard_at(w->intake, HF_HEALTH_IB) == HF_TIME_NONE);
}

static void a_step_gets_what_came_once_and_the_devices_each_time(void **state)
{
	struct world *w = *state;
	struct hf_health_presence p = gpu("gpu-0", "");
	struct hf_health_sample sample;
	struct hf_health_input input = {0};

	memset(&sample, 0, sizeof(sample));
	sample.detector = HF_HEALTH_ECC;
	sample.at = HF_TIME_NONE;
	assert_true(hf_intake_is_empty(w->intake));
	hf_intake_device(w->intake, &p);
	assert_true(hf_intake_sample(w->intake, &sample));
	hf_intake_heard(w->intake, HF_HEALTH_BY_NVML, HF_HEALTH_ECC);
	assert_false(hf_intake_is_empty(w->intake));
	hf_intake_take(w->intake, &input);
	assert_int_equal(input.samples_len, 1);
	assert_true(input.samples[0].at == HF_DAY);
	assert_int_equal(input.heard_len, 1);
	assert_int_equal(input.devices_len, 1);
	hf_intake_taken(w->intake);
	assert_true(hf_intake_is_empty(w->intake));
	hf_intake_take(w->intake, &input);
	assert_int_equal(input.samples_len + input.heard_len, 0);
	assert_int_equal(input.devices_len, 1);
}

static void a_full_list_refuses_and_asks_for_a_step_at_once(void **state)
{
	struct world *w = *state;
	struct hf_health_evidence e = hf_health_evidence_none();
	struct hf_health_sample sample;
	size_t n = 0;

	memset(&sample, 0, sizeof(sample));
	while (hf_intake_evidence(w->intake, &e))
		n++;
	assert_in_range(n, 100, HF_HEALTH_INPUT_MAX);
	assert_int_equal(w->urgent, n + 1);
	hf_intake_taken(w->intake);
	assert_true(hf_intake_evidence(w->intake, &e));
	w->urgent = 0;
	for (n = 0; hf_intake_sample(w->intake, &sample); n++)
		;
	assert_in_range(n, 100, HF_HEALTH_INPUT_MAX);
	/* Two urgent calls: for the last item with room, and for the refused item. */
	assert_int_equal(w->urgent, 2);
}

static void loads_are_found_by_any_name_and_grow_old(void **state)
{
	struct world *w = *state;
	struct hf_health_presence p = gpu("0000:1a:00.0", "GPU-1");
	uint32_t percent;

	hf_intake_device(w->intake, &p);
	assert_false(hf_intake_load_of(w->intake, "GPU-1", &percent));
	hf_intake_load(w->intake, "GPU-1", 70);
	assert_true(hf_intake_load_of(w->intake, "0000:1a:00.0", &percent));
	assert_int_equal(percent, 70);
	assert_true(hf_loop_run_until(w->loop, 2 * HF_MINUTE));
	assert_false(hf_intake_load_of(w->intake, "GPU-1", &percent));
}

static void counts_are_not_known_until_a_probe_counts(void **state)
{
	struct world *w = *state;

	assert_int_equal(hf_intake_counted(w->intake, HF_COUNT_PCI), -1);
	hf_intake_count(w->intake, HF_COUNT_PCI, 8);
	assert_int_equal(hf_intake_counted(w->intake, HF_COUNT_PCI), 8);
	hf_intake_count(w->intake, HF_COUNT_ALLOCATABLE, HF_HEALTH_DIVIDED);
	assert_int_equal(hf_intake_counted(w->intake, HF_COUNT_ALLOCATABLE), HF_HEALTH_DIVIDED);
	assert_int_equal(hf_intake_counted_last(w->intake, HF_COUNT_PCI), 8);
	assert_int_equal(hf_intake_counted_last(w->intake, HF_COUNT_NVML), -1);
	hf_intake_count(w->intake, HF_COUNT_PCI, -7);
	assert_int_equal(hf_intake_counted_last(w->intake, HF_COUNT_PCI), 8);
	assert_int_equal(hf_intake_counted(w->intake, HF_COUNT_PCI), -1);
}

static void holdings_in_another_order_are_the_same_and_two_shares_are_one(void **state)
{
	struct world *w = *state;
	struct hf_holding two[2], turned[2];
	struct hf_holdings told;
	uint64_t version;

	memset(two, 0, sizeof(two));
	snprintf(two[0].pod, sizeof(two[0].pod), "a");
	snprintf(two[1].pod, sizeof(two[1].pod), "b");
	turned[0] = two[1];
	turned[1] = two[0];
	/* Bytes behind the end of a text do not count in a comparison. */
	turned[0].id[5] = 'x';
	assert_true(hf_intake_holdings(w->intake, two, 2, 7));
	version = hf_intake_holdings_version(w->intake);
	assert_true(hf_intake_holdings(w->intake, turned, 2, 8));
	assert_int_equal(hf_intake_holdings_version(w->intake), version);
	turned[0] = two[0];
	turned[1] = two[0];
	assert_true(hf_intake_holdings(w->intake, turned, 2, 8));
	told = hf_intake_holdings_get(w->intake);
	assert_int_equal(told.len, 1);
	assert_true(told.asked_at == 8);
	assert_int_equal(hf_intake_holdings_version(w->intake), version + 1);
	hf_intake_holdings_unknown(w->intake);
	hf_intake_holdings_unknown(w->intake);
	assert_int_equal(hf_intake_holdings_version(w->intake), version + 2);
	told = hf_intake_holdings_get(w->intake);
	assert_int_equal(told.len, 1);
	assert_false(told.known);
	assert_string_equal(told.items[0].pod, "a");
}

static void a_list_that_is_cut_says_so_and_shares_do_not_cut_it(void **state)
{
	struct world *w = *state;
	HF_AUTOFREE struct hf_holding *many = hf_xcalloc(HF_HOLDINGS_MAX + 1, sizeof(*many));

	assert_true(hf_intake_holdings(w->intake, many, HF_HOLDINGS_MAX + 1, 7));
	assert_int_equal(hf_intake_holdings_get(w->intake).len, 1);
	for (int i = 0; i <= HF_HOLDINGS_MAX; i++)
		snprintf(many[i].id, sizeof(many[i].id), "%04d", i);
	assert_true(hf_intake_holdings(w->intake, many, HF_HOLDINGS_MAX, 8));
	assert_false(hf_intake_holdings_get(w->intake).cut);
	/* One holding more than the limit: the intake keeps the same list and marks it as cut. */
	assert_false(hf_intake_holdings(w->intake, many, HF_HOLDINGS_MAX + 1, 9));
	assert_true(hf_intake_holdings_get(w->intake).cut);
	assert_int_equal(hf_intake_holdings_get(w->intake).len, HF_HOLDINGS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void ports_leave_room_for_what_they_connect(void **state)
{
	struct world *w = *state;
	const struct hf_health_presence *devices;
	size_t len;

	for (int i = 0; i < 2 * HF_HEALTH_DEVICES_MAX; i++) {
		struct hf_health_presence port = {.kind = HF_HEALTH_PORT};

		snprintf(port.id, sizeof(port.id), "mlx5_%d/1", i);
		hf_intake_device(w->intake, &port);
	}
	(void)hf_intake_devices(w->intake, &len);
	assert_int_equal(len, HF_HEALTH_PORTS_MAX);
	assert_int_equal(hf_intake_refused(w->intake),
			 2 * HF_HEALTH_DEVICES_MAX - HF_HEALTH_PORTS_MAX);
	for (int i = 0; i < 16; i++) {
		struct hf_health_presence p;
		char id[32];

		snprintf(id, sizeof(id), "0000:%02x:00.0", i);
		p = gpu(id, "");
		hf_intake_device(w->intake, &p);
	}
	devices = hf_intake_devices(w->intake, &len);
	assert_int_equal(len, HF_HEALTH_PORTS_MAX + 16);
	assert_string_equal(devices[len - 1].id, "0000:0f:00.0");
}

/* DeviceHealth shows the versions, so the agent writes it when one has changed. */
static void a_changed_version_of_the_driver_is_news(void **state)
{
	struct world *w = *state;
	uint64_t before = hf_intake_states_version(w->intake);

	assert_null(hf_intake_version_of(w->intake, HF_VERSION_DRIVER));
	hf_intake_note_version(w->intake, HF_VERSION_DRIVER, "");
	assert_int_equal(hf_intake_states_version(w->intake), before);
	hf_intake_note_version(w->intake, HF_VERSION_DRIVER, "570.86.15");
	hf_intake_note_version(w->intake, HF_VERSION_DRIVER, "570.86.15");
	hf_intake_note_version(w->intake, HF_VERSION_MODULE, "570\n86");
	assert_int_equal(hf_intake_states_version(w->intake), before + 2);
	assert_string_equal(hf_intake_version_of(w->intake, HF_VERSION_DRIVER), "570.86.15");
	assert_string_equal(hf_intake_version_of(w->intake, HF_VERSION_MODULE), "570?86");
	assert_null(hf_intake_version_of(w->intake, HF_VERSION_LIBRARY));
	hf_intake_note_version(w->intake, HF_VERSION_DRIVER, "");
	assert_null(hf_intake_version_of(w->intake, HF_VERSION_DRIVER));
	assert_int_equal(hf_intake_states_version(w->intake), before + 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_two_sources_say_of_a_device_is_put_together),
		TEST(ports_leave_room_for_what_they_connect),
		TEST(a_device_without_a_name_or_beyond_the_limit_is_left_out),
		TEST(evidence_of_the_bus_is_given_at_once_where_an_agent_before_knew_devices),
		TEST(evidence_of_the_bus_waits_until_its_device_is_named),
		TEST(texts_without_an_end_or_with_control_characters_are_made_tame),
		TEST(a_detector_is_on_where_one_way_sees_and_tells_why_else),
		TEST(a_changed_version_of_the_driver_is_news),
		TEST(a_step_gets_what_came_once_and_the_devices_each_time),
		TEST(a_full_list_refuses_and_asks_for_a_step_at_once),
		TEST(loads_are_found_by_any_name_and_grow_old),
		TEST(counts_are_not_known_until_a_probe_counts),
		TEST(a_list_that_is_cut_says_so_and_shares_do_not_cut_it),
		TEST(holdings_in_another_order_are_the_same_and_two_shares_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
