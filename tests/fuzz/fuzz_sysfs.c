/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* Input: the content of a file of sysfs or procfs, as a broken driver or device may produce it. A
 * value that is read is in its range, or unknown. AMD's metrics table is read twice: from each
 * half of the input. */

#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "probes/sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void look_at_tables(const uint8_t *data, size_t size)
{
	struct hf_amd_throttle before, now;
	uint32_t percent = 0;

	hf_amd_metrics(data, size / 2, &before);
	hf_amd_metrics(data + size / 2, size - size / 2, &now);
	if (hf_amd_throttled(&before, &now, &percent))
		hf_assert(before.known && now.known && percent <= 100);
	/* Compare the tables a second time as if both were valid, whatever size they claim. */
	now.known = before.known = true;
	if (hf_amd_throttled(&before, &now, &percent))
		hf_assert(percent <= 100);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HF_AUTOFREE char *text = hf_xstrndup((const char *)data, size);
	char version[HF_SYSFS_NAME_MAX], again[24], above[HF_HEALTH_ABOVE_MAX];
	uint64_t number = 0, other = 0;
	int state = hf_sysfs_state(text);

	look_at_tables(data, size);
	hf_assert(state >= -1 && state < 100);
	hf_assert(hf_sysfs_width(text) <= 32);
	hf_assert(hf_sysfs_speed(text) <= 10009);
	if (hf_sysfs_number(text, &number)) {
		bool ok;

		snprintf(again, sizeof(again), "%llu\n", (unsigned long long)number);
		ok = hf_sysfs_number(again, &other);
		hf_assert(ok && other == number);
	}
	if (hf_sysfs_line(text, "TOTAL_ERR_COR", &number))
		hf_assert(strstr(text, "TOTAL_ERR_COR ") != NULL);
	if (hf_sysfs_ras(text, &number))
		hf_assert(strstr(text, "ue: ") != NULL);
	hf_sysfs_list_above(text, above);
	hf_assert(memchr(above, '\0', sizeof(above)) != NULL);
	hf_assert(strspn(above, "0123456789abcdef:. ") == strlen(above));
	hf_sysfs_driver_version(text, version);
	hf_assert(memchr(version, '\0', sizeof(version)) != NULL);
	hf_assert(strspn(version, "0123456789.") == strlen(version));
	return 0;
}
