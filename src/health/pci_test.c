/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/memory.h"

#include "harness/test.h"

#include <string.h>

static void every_way_to_write_an_address_is_one(void **state)
{
	static const char *const same[] = {"0000:1a:00.0",   "0000:1A:00.0", "00000000:1A:00.0",
					   "PCI:0000:1a:00", "0000:1a:00",   "1a:00.0",
					   "PCI:0:1a:0"};
	char text[HF_HEALTH_DEVICE_MAX];

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(same); i++) {
		assert_true(hf_health_pci_normalize(same[i], strlen(same[i]), text));
		assert_string_equal(text, "0000:1a:00.0");
	}
	assert_true(hf_health_pci_normalize("00010002:C3:1F.7", 16, text));
	assert_string_equal(text, "10002:c3:1f.7");
}

static void what_is_no_address_leaves_the_text(void **state)
{
	static const char *const bad[] = {
		"",         ":",           "1a",           "1a:",
		"1a:00.8",  "1a:20.0",     "100:00.0",     "0:0:0:0",
		"g:00:00",  "0000:1a:00.", "0000:1a:00 ",  "123456789:0:0",
		"1a:00.0x", "PCI:",        "0000:1a:00.00"};
	char text[HF_HEALTH_DEVICE_MAX] = "kept";

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(bad); i++)
		assert_false(hf_health_pci_normalize(bad[i], strlen(bad[i]), text));
	assert_false(hf_health_pci_normalize("1a:00\0.0", 8, text));
	assert_string_equal(text, "kept");
}

static void functions_of_one_device_differ_in_the_last_digit(void **state)
{
	(void)state;
	assert_true(hf_health_pci_same_device("0000:1a:00.0", "0000:1a:00.1"));
	assert_true(hf_health_pci_same_device("10002:c3:1f.7", "10002:c3:1f.7"));
	assert_false(hf_health_pci_same_device("0000:1a:00.0", "0000:1a:01.0"));
	assert_false(hf_health_pci_same_device("0000:1a:00.0", "0001:1a:00.0"));
	assert_false(hf_health_pci_same_device("0000:1a:00.0", ""));
	assert_false(hf_health_pci_same_device("", ""));
	assert_false(hf_health_pci_same_device("mlx5_0/1", "mlx5_0/1"));
	assert_true(hf_health_pci_same_domain("0000:1a:00.0", "0000:b1:00.1"));
	assert_false(hf_health_pci_same_domain("", "0000:1a:00.0"));
}

/* Only the upstream port of a switch (seen from the device the second port, the fourth and so on) may have
 * functions beside it that are no ports of their own. */
static void a_function_beside_the_upstream_port_of_a_switch_names_that_port(void **state)
{
	static const struct {
		const char *above, *address;
		int place;
	} rows[] = {
		{"0000:17:01.0 0000:18:00.0 0000:19:00.0", "0000:17:01.0", 0},
		{"0000:17:01.0 0000:18:00.0 0000:19:00.0", "0000:18:00.0", 1},
		{"0000:17:01.0 0000:18:00.0 0000:19:00.0", "0000:18:00.1", 1},
		{"0000:17:01.0 0000:18:00.0 0000:19:00.0", "0000:17:01.1", -1},
		{"0000:17:01.0 0000:18:00.0 0000:19:00.0", "0000:19:00.1", -1},
		{"0000:17:01.0 0000:18:00.0 0000:19:00.0", "0000:18:01.0", -1},
		/* A root port alone, and a root port behind Intel's VMD, which has a PCI domain of its own. */
		{"0000:17:01.0", "0000:17:01.1", -1},
		{"0000:e2:00.5 10001:e0:01.0", "0000:e2:00.4", -1},
		{"0000:e2:00.5 10001:e0:01.0", "10001:e0:01.1", -1},
		{"0000:e2:00.5 10001:e0:01.0 10001:e1:00.0 10001:e2:00.0", "10001:e1:00.1", 2},
		/* The list had no room for the ports next to the processor. */
		{"0000:18:00.0 0000:19:00.0 0000:1a:00.0 0000:1b:00.0", "0000:1a:00.3", 2},
		{"0000:18:00.0 0000:19:00.0 0000:1a:00.0 0000:1b:00.0", "0000:18:00.1", -1},
		{"", "0000:17:01.0", -1},
		{"0000:17:01.0", "", -1},
	};
	char port[HF_HEALTH_DEVICE_MAX];

	(void)state;
	for (size_t i = 0; i < HF_ARRAY_LEN(rows); i++) {
		int place = hf_health_find_above(rows[i].above, rows[i].address, port);

		if (place != rows[i].place)
			fail_msg("%s in %s: %d, not %d", rows[i].address, rows[i].above, place,
				 rows[i].place);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_one_device_differ_in_the_last_digit),
		cmocka_unit_test(a_function_beside_the_upstream_port_of_a_switch_names_that_port),
		cmocka_unit_test(every_way_to_write_an_address_is_one),
		cmocka_unit_test(what_is_no_address_leaves_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
