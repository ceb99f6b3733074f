/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "agent/acknowledgement.h"
#include "harness/test.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define NOW (20000 * HF_DAY) /* 2024-10-04T00:00:00Z */
#define UUID "GPU-00000000-1111"

static struct hf_health_device devices[3];
static const struct hf_health_memory memory = {.devices = devices, .devices_len = 3};
static struct hf_health_order orders[8];

static int setup(void **state)
{
	(void)state;
	memset(devices, 0, sizeof(devices));
	snprintf(devices[1].id, sizeof(devices[1].id), "0000:1a:00.0");
	snprintf(devices[1].uuid, sizeof(devices[1].uuid), UUID);
	snprintf(devices[2].id, sizeof(devices[2].id), "0000:1b:00.0");
	return 0;
}

static size_t read_at(struct hf_acknowledgement *ack, const char *text, hf_time now)
{
	struct hf_error err;

	return hf_acknowledgement_read(ack, text, now, &err) == 0
		       ? hf_acknowledgement_orders(ack, &memory, HF_HOUR, orders,
						   HF_ARRAY_LEN(orders))
		       : 99;
}

static void a_time_is_about_all_of_them_and_the_node(void **state)
{
	struct hf_acknowledgement ack = {0};

	(void)state;
	assert_int_equal(read_at(&ack, "2024-10-03T23:59:30Z", NOW), 3);
	assert_string_equal(orders[0].device, "");
	assert_string_equal(orders[2].device, "0000:1b:00.0");
	assert_int_equal(orders[2].kind, HF_HEALTH_ORDER_CLEAR);
	/* The orders have the acknowledgement's time on the steps' clock, which is an hour behind the wall clock
	 * here. */
	assert_true(orders[2].at == NOW - HF_HOUR - 30 * HF_SECOND);
	assert_int_equal(hf_acknowledgement_orders(&ack, &memory, 0, orders, 2), 2);
}

static void one_device_is_named_by_address_or_uuid(void **state)
{
	struct hf_acknowledgement ack = {0};

	(void)state;
	assert_int_equal(read_at(&ack, "0000:1b:00.0 2024-10-04T00:00:00Z", NOW), 1);
	assert_string_equal(orders[0].device, "0000:1b:00.0");
	assert_int_equal(read_at(&ack, UUID " 2024-10-04T00:00:00Z", NOW), 1);
	assert_string_equal(orders[0].device, "0000:1a:00.0");
	assert_int_equal(read_at(&ack, "0000:99:00.0 2024-10-04T00:00:00Z", NOW), 0);
}

static void an_address_is_taken_as_anybody_writes_it(void **state)
{
	static const char *const names[] = {"0000:1B:00.0", "00000000:1B:00.0", "1b:00.0",
					    "0000:1b:00"};
	struct hf_acknowledgement ack = {0};
	char text[96];

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(names); i++) {
		snprintf(text, sizeof(text), "%s 2024-10-04T00:00:00Z", names[i]);
		assert_int_equal(read_at(&ack, text, NOW), 1);
		assert_string_equal(orders[0].device, "0000:1b:00.0");
		assert_null(hf_acknowledgement_problem(&ack, &memory, 0));
	}
	assert_int_equal(read_at(&ack, "1c:00.0 2024-10-04T00:00:00Z", NOW), 0);
	assert_string_equal(hf_acknowledgement_problem(&ack, &memory, 0),
			    "the acknowledgement names a device that this node does not have");
	assert_int_equal(read_at(&ack, "GPU-1 2024-10-04T00:00:00Z", NOW), 0);
	assert_string_equal(hf_acknowledgement_problem(&ack, &memory, 0),
			    "the acknowledgement names a device that this node does not have");
	assert_int_equal(read_at(&ack, "2024-10-04T00:00:00Z", NOW), 3);
	assert_null(hf_acknowledgement_problem(&ack, &memory, 0));
}

static void several_devices_are_named_in_one_word(void **state)
{
	char text[HF_ACKNOWLEDGEMENT_DEVICES_MAX * 4 + 64];
	struct hf_acknowledgement ack = {0};

	(void)state;
	assert_int_equal(read_at(&ack, "1b:00.0  " UUID " 2024-10-04T00:00:00Z", NOW), 2);
	assert_string_equal(orders[0].device, "0000:1a:00.0");
	assert_string_equal(orders[1].device, "0000:1b:00.0");
	assert_null(hf_acknowledgement_problem(&ack, &memory, 0));
	/* The known devices of a list are cleared although the list has an unknown device. */
	assert_int_equal(read_at(&ack, "1c:00.0 " UUID " 2024-10-04T00:00:00Z", NOW), 1);
	assert_string_equal(hf_acknowledgement_problem(&ack, &memory, 0),
			    "the acknowledgement names a device that this node does not have");
	memset(text, 'a', sizeof(text));
	for (int i = 0; i <= HF_ACKNOWLEDGEMENT_DEVICES_MAX; i++)
		text[2 * i + 1] = ' ';
	snprintf(text + 2 * HF_ACKNOWLEDGEMENT_DEVICES_MAX + 2, 32, "2024-10-04T00:00:00Z");
	assert_int_equal(read_at(&ack, text, NOW), 99);
	assert_false(ack.pending);
}

static void a_word_older_than_what_it_names_ends_nothing(void **state)
{
	static const char later[] =
		"every named device entered its state after the acknowledgement's time";
	/* the acknowledgement's time, on the steps' clock */
	const hf_time at = NOW - HF_MINUTE - HF_HOUR;
	struct hf_acknowledgement ack = {0};

	(void)state;
	devices[0].since = devices[1].since = devices[2].since = at;
	assert_int_equal(read_at(&ack, "2024-10-03T23:59:00Z", NOW), 3);
	assert_string_equal(hf_acknowledgement_problem(&ack, &memory, HF_HOUR), later);
	devices[2].since = at - 1;
	assert_null(hf_acknowledgement_problem(&ack, &memory, HF_HOUR));
	assert_int_equal(read_at(&ack, UUID " 2024-10-03T23:59:00Z", NOW), 1);
	assert_string_equal(hf_acknowledgement_problem(&ack, &memory, HF_HOUR), later);
	ack.pending = false;
	assert_null(hf_acknowledgement_problem(&ack, &memory, HF_HOUR));
}

static void a_text_counts_once(void **state)
{
	struct hf_acknowledgement ack = {0};

	(void)state;
	assert_int_equal(read_at(&ack, "2024-10-03T23:59:30Z", NOW), 3);
	ack.pending = false;
	assert_int_equal(read_at(&ack, "2024-10-03T23:59:30Z", NOW + HF_MINUTE), 0);
	assert_int_equal(read_at(&ack, "2024-10-04T00:00:30Z", NOW + HF_MINUTE), 3);
	assert_int_equal(read_at(&ack, NULL, NOW + HF_MINUTE), 0);
}

static void what_is_no_word_of_now_is_refused_once(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"now",
		"true",
		"2024-10-03",
		"2024-10-03T22:59:59Z",
		"2024-10-04T00:01:01Z",
		"2024-10-04T00:00:00Z ",
		"2024-10-04T00:00:00Z 0000:1b:00.0",
		("GPU-0123456789012345678901234567890123456789012345678901234567890123456789012345678"
		 "9012345678901234567890123456789 2024-10-04T00:00:00Z")};
	struct hf_acknowledgement ack = {0};

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++) {
		assert_int_equal(read_at(&ack, bad[i], NOW), 99);
		assert_int_equal(read_at(&ack, bad[i], NOW), 0);
		assert_false(ack.pending);
	}
	/* A time less than a minute ahead of the node's clock is valid: the person's clock may be ahead. */
	assert_int_equal(read_at(&ack, "2024-10-04T00:00:59Z", NOW), 3);
	assert_true(orders[0].at == NOW - HF_HOUR);
}

#define T(name) cmocka_unit_test_setup(name, setup)

static void a_word_is_of_use_where_it_would_end_something(void **state)
{
	struct hf_health_memory m = memory;

	(void)state;
	devices[0].kind = HF_HEALTH_NODE;
	devices[1].kind = devices[2].kind = HF_HEALTH_GPU;
	devices[0].state = devices[1].state = devices[2].state = HF_HEALTH_HEALTHY;
	devices[1].seen = devices[2].seen = true;
	assert_false(hf_acknowledgement_is_of_use(&m));
	devices[2].state = HF_HEALTH_PROBATION;
	assert_false(hf_acknowledgement_is_of_use(&m));
	devices[2].state = HF_HEALTH_SUSPECT;
	assert_true(hf_acknowledgement_is_of_use(&m));
	devices[2].state = HF_HEALTH_HEALTHY;
	/* The device is remembered, and no probe has seen it in this boot. */
	devices[1].seen = false;
	assert_true(hf_acknowledgement_is_of_use(&m));
	devices[1].seen = true;
	m.doubted = true;
	assert_true(hf_acknowledgement_is_of_use(&m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_time_is_about_all_of_them_and_the_node),
		T(one_device_is_named_by_address_or_uuid),
		T(an_address_is_taken_as_anybody_writes_it),
		T(several_devices_are_named_in_one_word),
		T(a_word_older_than_what_it_names_ends_nothing),
		T(a_text_counts_once),
		T(what_is_no_word_of_now_is_refused_once),
		cmocka_unit_test_setup(a_word_is_of_use_where_it_would_end_something, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
