/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "health/evidence.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_to_write_an_address_is_one),
		cmocka_unit_test(what_is_no_address_leaves_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
